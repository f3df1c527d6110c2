/*
 * apart.c: which equations of the system a kernel computes, and which no
 * kernel may compute both.
 *
 * Consumes the units as they were prepared; keeps, for each, what was put into
 * it since. Produces the merges of a kernel: its edges, as equations of the
 * system have them. A caller who wants to know what a merge is worth names its
 * two ends, and gets a plan in which they are in different kernels.
 *
 *   t = exp(x); s = sum(t, 1); o = t / s    ->   one kernel: t s, t o, s o
 *   t and s apart                           ->   t | s o
 *
 * What is made again, so that memory is free in between, is made where it is
 * needed: not in a kernel of what stands before it.
 *
 *   h = silu(a); o = sum(h); h2 = silu(a) again; g = h2 * o   ->   h o | h2 g
 *
 * Squares of which each group of readers has one (recompute.c) are in kernels of these
 * readers, which no two groups share.
 */
#include "fuse/inner.h"

typedef VEC(int32_t) sources;

struct fuse_apart {
	int32_t first_again; /* that is made again; INT32_MAX: none */
	int32_t n;
	const fuse_pair *pair;
	const eqn_unit **first; /* by source: as it was prepared; NULL */
	sources *within;	/* by source: what was put into it */
};

void fuse_apart_new(fuse_state *f, const fuse_options *o)
{
	struct fuse_apart *t = arena_make(f->a, struct fuse_apart);
	size_t n = (size_t)f->n_sources + 1;

	t->n = o == NULL ? 0 : o->n_apart;
	t->pair = o == NULL ? NULL : o->apart;
	t->first_again = INT32_MAX;
	for (int32_t i = f->s->eqn.n - 1; i >= 0; i--)
		if (f->s->eqn.at[i].again > 0)
			t->first_again = i;
	t->first = arena_copy(f->a, f->unit, n * sizeof *f->unit);
	t->within = arena_alloc(f->a, n, sizeof *t->within);
	f->apart = t;
}

static bool computes(const struct fuse_apart *t, const eqn_unit *u, int32_t e)
{
	const sources *in = &t->within[u->source];

	for (int32_t i = 0; i < in->n; i++)
		if (in->at[i] == e)
			return true;
	return u->source == e;
}

bool fuse_apart_both(const fuse_state *f, int32_t n, eqn_unit *const *unit)
{
	const struct fuse_apart *t = f->apart;

	for (int32_t k = 0; k < t->n; k++) {
		bool first = false, then = false;

		for (int32_t i = 0; i < n; i++) {
			first |= computes(t, unit[i], t->pair[k].first);
			then |= computes(t, unit[i], t->pair[k].then);
		}
		if (first && then)
			return true;
	}
	return false;
}

/* What a kernel computes: its first equation that is made again, the run of that,
 * and the first of the others. */
struct order {
	int32_t again, run, other;
};

/* false: equations of two runs. */
static bool put_in_order(const fuse_state *f, int32_t e, struct order *o)
{
	int32_t run = f->s->eqn.at[e].again;

	if (run == 0) {
		o->other = e < o->other ? e : o->other;
		return true;
	}
	if (o->run > 0 && o->run != run)
		return false;
	o->run = run;
	o->again = e < o->again ? e : o->again;
	return true;
}

bool fuse_apart_again(const fuse_state *f, int32_t n, eqn_unit *const *unit)
{
	const struct fuse_apart *t = f->apart;
	struct order o = {INT32_MAX, 0, INT32_MAX};

	for (int32_t i = 0; t->first_again < INT32_MAX && i < n; i++) {
		const sources *in = &t->within[unit[i]->source];

		if (!put_in_order(f, unit[i]->source, &o))
			return true;
		for (int32_t k = 0; k < in->n; k++)
			if (!put_in_order(f, in->at[k], &o))
				return true;
	}
	return o.run > 0 && o.other < o.again;
}

/* false: a square of another group than *first, which is the first group that is seen. */
static bool is_of_group(const fuse_state *f, int32_t e, int32_t *first)
{
	int32_t square = f->s->eqn.at[e].square;

	if (*first == 0)
		*first = square;
	return !sys_other_group(*first, square);
}

bool fuse_apart_groups(const fuse_state *f, int32_t n, eqn_unit *const *unit)
{
	const struct fuse_apart *t = f->apart;
	int32_t first = 0;

	for (int32_t i = 0; i < n; i++) {
		const sources *in = &t->within[unit[i]->source];

		if (!is_of_group(f, unit[i]->source, &first))
			return true;
		for (int32_t k = 0; k < in->n; k++)
			if (!is_of_group(f, in->at[k], &first))
				return true;
	}
	return false;
}

int32_t fuse_first_again(const fuse_state *f)
{
	return f->apart->first_again;
}

void fuse_apart_in(
	fuse_state *f, const eqn_unit *e, int32_t n, eqn_unit *const *p)
{
	sources *to = &f->apart->within[e->source];

	for (int32_t i = 0; i < n; i++) {
		const sources *in = &f->apart->within[p[i]->source];

		for (int32_t k = 0; k < in->n; k++)
			*vec_push(f->a, to) = in->at[k];
		*vec_push(f->a, to) = p[i]->source;
	}
}

void fuse_apart_out(
	fuse_state *f, const eqn_unit *e, int32_t n, eqn_unit *const *p)
{
	sources *to = &f->apart->within[e->source];

	for (int32_t i = 0; i < n; i++)
		to->n -= f->apart->within[p[i]->source].n + 1;
}

/* ---- merges ---- */

/* All that a kernel computes. */
typedef struct contents {
	fuse_state *f;
	fuse_plan *p;
	int32_t kernel;
	sources all;
	int32_t *part; /* of all: number of the set that merges tie it to */
} contents;

static int32_t number_of(const contents *w, int32_t source)
{
	for (int32_t i = 0; i < w->all.n; i++)
		if (w->all.at[i] == source)
			return i;
	return -1;
}

static void add_source(contents *w, int32_t source)
{
	if (number_of(w, source) < 0)
		*vec_push(fuse_scratch(w->f), &w->all) = source;
}

/* Equation number `first` of the kernel and number `then` of it are a merge. */
static void add_merge(contents *w, int32_t first, int32_t then)
{
	int32_t old = w->part[then], now = w->part[first];
	fuse_merge m = {w->kernel, w->all.at[first], w->all.at[then],
		{first, then}};

	for (int32_t i = w->p->merge.n - 1; i >= 0; i--) {
		const fuse_merge *o = &w->p->merge.at[i];

		if (o->kernel != m.kernel)
			break;
		if (o->first == m.first && o->then == m.then)
			return;
	}
	*vec_push(w->f->a, &w->p->merge) = m;
	for (int32_t i = 0; i < w->all.n; i++)
		if (w->part[i] == old)
			w->part[i] = now;
}

static void add_edges(contents *w, int32_t then)
{
	const settled *q = w->f->w;
	int32_t source = w->all.at[then];
	const eqn_unit *u = w->f->apart->first[source];

	for (int32_t i = 0; i < u->n_reads; i++) {
		int32_t m = fuse_maker(w->f, u->read[i].tensor);
		int32_t at = m < 0 || m == source ? -1 : number_of(w, m);

		if (at >= 0)
			add_merge(w, at, then);
	}
	for (int32_t i = 0; i < q->readers_of[source].n; i++) {
		int32_t r = q->wait.at[q->readers_of[source].at[i]].reader;
		int32_t at = r == source ? -1 : number_of(w, r);

		if (at >= 0)
			add_merge(w, at, then);
	}
}

static bool read_one_tensor(const eqn_unit *u, const eqn_unit *v)
{
	for (int32_t i = 0; i < u->n_reads; i++)
		for (int32_t k = 0; k < v->n_reads; k++)
			if (u->read[i].tensor == v->read[k].tensor)
				return true;
	return false;
}

/* What no edge ties to those before stands there for a tensor that both read. */
static void add_siblings(contents *w, int32_t then)
{
	const eqn_unit *const *first = w->f->apart->first;
	const eqn_unit *u = first[w->all.at[then]];

	for (int32_t i = 0; i < then; i++)
		if (w->part[i] != w->part[then] &&
			read_one_tensor(first[w->all.at[i]], u))
			add_merge(w, i, then);
}

void fuse_merges(fuse_state *f, fuse_plan *p, const fuse_kernel *k)
{
	contents w = {.f = f, .p = p, .kernel = k->id};

	for (int32_t i = 0; i < k->n_eqns; i++) {
		const sources *in = &f->apart->within[k->eqn[i].source];

		for (int32_t j = 0; j < in->n; j++)
			add_source(&w, in->at[j]);
		add_source(&w, k->eqn[i].source);
	}
	if (w.all.n > 1) {
		w.part = arena_array(fuse_scratch(f), int32_t, w.all.n);
		for (int32_t i = 0; i < w.all.n; i++)
			w.part[i] = i;
		for (int32_t i = 0; i < w.all.n; i++)
			add_edges(&w, i);
		for (int32_t i = 0; i < w.all.n; i++)
			add_siblings(&w, i);
	}
	fuse_scratch_trim(f);
}
