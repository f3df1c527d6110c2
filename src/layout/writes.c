/*
 * writes.c: what is written through a view is computed where it is written.
 *
 * Consumes the equations of a system; produces, for versions of storages, the
 * equation with the elementwise ones that it alone reads put into it. The write
 * then walks the storage in the storage's own order, and a view that no process
 * has a box of costs no traffic:
 *
 *     t[i,j] = x[5i + j] + 1;  x1[k] = t[k]     x in blocks of 3
 *     ->  x1[k] = x[k] + 1
 */
#include "layout/local.h"

enum { MAX_ROUNDS = 16, MAX_FLOPS = 200 };

typedef struct writes {
	shard_plan *p;
	int32_t *readers; /* by tensor: equations that read it */
} writes;

static void count_readers(writes *w)
{
	const ir_system *s = w->p->s;
	int32_t *last = arena_array(w->p->a, int32_t, s->tensor.n + 1);

	w->readers = arena_array(w->p->a, int32_t, s->tensor.n + 1);
	for (int32_t i = 0; i < s->eqn.n; i++) {
		const eqn_unit *u = w->p->eqn[i].unit;

		for (int32_t r = 0; r < u->n_reads; r++) {
			int32_t t = u->read[r].tensor;

			if (last[t] != i + 1)
				w->readers[t]++;
			last[t] = i + 1;
		}
		for (int32_t r = 0; r < u->e.n_opaque_in; r++)
			w->readers[u->e.opaque_in[r]] += 2; /* stays */
	}
}

/* What makes a tensor, if that may be put where it is read; -1. */
static int32_t maker(const writes *w, const eqn_unit *u, int32_t read)
{
	const ir_system *s = w->p->s;
	int32_t t = u->read[read].tensor, n = 0;
	const sys_tensor *y = &s->tensor.at[t];
	const sys_eqn *e;

	if (y->eqn < 0 || y->is_output || y->storage >= 0 ||
		w->readers[t] != 1 || u->read[read].is_index)
		return -1;
	for (int32_t r = 0; r < u->n_reads; r++)
		n += u->read[r].tensor == t;
	e = &w->p->eqn[y->eqn].unit->e;
	return n == 1 && e->monoid == IR_SET && e->n_out == 1 &&
			e->opaque == NULL && e->push == NULL &&
			e->scan_step == 0 &&
			w->p->eqn[y->eqn].unit->flops < MAX_FLOPS
		? y->eqn
		: -1;
}

/*
 * Is the tensor read still? A read stays where an index from data would no longer
 * be checked, because it cancels: x[i + k[] - k[]].
 */
static bool is_read(const eqn_unit *u, int32_t tensor)
{
	for (int32_t r = 0; r < u->n_reads; r++)
		if (u->read[r].tensor == tensor)
			return true;
	return false;
}

/* One equation more in the write; false: there is none. */
static bool put_in(writes *w, int32_t write)
{
	shard_plan *p = w->p;
	const eqn_unit *u = p->eqn[write].unit;

	for (int32_t r = 0; r < u->n_reads; r++) {
		int32_t from = maker(w, u, r);
		eqn_unit *with;
		sys_eqn e;

		if (from < 0)
			continue;
		eqn_replace(p->graph, &p->eqn[from].unit->e);
		e = eqn_inline(p->graph, &u->e);
		eqn_keep(p->graph, &p->eqn[from].unit->e);
		with = eqn_unit_new(p->graph, &e, write);
		if (is_read(with, u->read[r].tensor))
			continue;
		p->eqn[write].unit = with;
		p->eqn[from].dead = true;
		return true;
	}
	return false;
}

void writes_inline(shard_plan *p)
{
	writes w = {.p = p};

	count_readers(&w);
	for (int32_t i = 0; i < p->s->eqn.n; i++) {
		const sys_eqn *e = &p->eqn[i].unit->e;

		if (p->s->tensor.at[e->out[0]].storage < 0 ||
			e->monoid != IR_SET || e->opaque != NULL ||
			e->push != NULL || e->scan_step != 0)
			continue;
		for (int32_t k = 0; k < MAX_ROUNDS && put_in(&w, i); k++)
			;
	}
}
