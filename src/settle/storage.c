/*
 * storage.c: finds the versions of each memory, and chooses which writes are in
 * place.
 *
 * The versions of a param share the caller's array, as the system says. An internal
 * tensor that is written through views has versions, too, and we can choose:
 *
 *     t1 = write(t[0:2], a); t2 = write(t1[2:4], b); ...
 *
 * As equations, each version has all elements, and a few versions are usually
 * fused into one kernel without memory. In one memory, each write only walks the
 * elements that it changes, but the tensor is stored before and read afterwards.
 * So many small writes are in place; few or large ones are not.
 */
#include "settle/local.h"

enum {
	MANY = 4, /* least number of writes in place */
	SMALL = 4 /* .. that change at most this part of the tensor */
};

static void add_version(settled *w, int32_t storage, int32_t tensor)
{
	settle_storage *o = &w->storage[storage];

	w->s->tensor.at[tensor].storage = storage;
	w->version[tensor] = o->tensor.n;
	*vec_push(w->a, &o->tensor) = tensor;
}

settled *settle_new(arena *a, ir_system *s, const settle_options *o)
{
	settled *w = arena_make(a, settled);
	int32_t n = s->tensor.n, room = 3 * n + s->output.n + 2;

	*w = (settled){.a = a, .env = arena_env(a), .s = s};
	if (o != NULL)
		w->o = *o;
	for (int32_t i = 0; i < n; i++)
		if (s->tensor.at[i].storage >= w->n_storages)
			w->n_storages = s->tensor.at[i].storage + 1;
	s->n_caller_storages = w->n_storages;
	w->storage = arena_array(
		a, settle_storage, w->n_storages + n + 1);
	w->version = arena_array(a, int32_t, room);
	for (int32_t i = 0; i < room; i++)
		w->version[i] = -1;
	for (int32_t i = 0; i < n; i++)
		if (s->tensor.at[i].storage >= 0)
			add_version(w, s->tensor.at[i].storage, i);
	settle_outputs(w);
	return w;
}

/* ---- own storages ---- */

typedef struct links {
	int32_t *old;  /* by tensor: the version whose memory it can use, or -1 */
	int32_t *next; /* the inverse of old */
	double *share; /* by tensor: the part that the write changes */
} links;

/* An estimate of the part of the box that the guard leaves. */
static double share_of(const eqn_writes *q, const expr *c, int32_t depth)
{
	int64_t min, max;
	double width;

	if (c->kind == EX_INSIDE) {
		ix_range(&q->dom, c->form, &min, &max);
		width = (double)max - (double)min + 1;
		return (double)(c->hi - c->lo) < width
			? (double)(c->hi - c->lo) / width
			: 1;
	}
	if (c->kind == EX_CALL && depth < 50 &&
		strcmp(ir_scalar_at(c->fn)->name, "and") == 0)
		return share_of(q, c->arg[0], depth + 1) *
			share_of(q, c->arg[1], depth + 1);
	return 1;
}

static double share_of_all(const eqn_writes *q)
{
	double share = 0;

	for (int32_t k = 0; k < q->n_guards; k++)
		share += share_of(q, q->guard[k], 0);
	return share < 1 ? share : 1;
}

double settle_share(settled *w, const eqn_unit *u)
{
	const sys_tensor *t = &w->s->tensor.at[u->e.out[0]];
	eqn_writes q;

	if (t->storage < 0 || !eqn_find_writes(w->a, w->s, &u->e, &q) ||
		w->s->tensor.at[q.old].storage != t->storage)
		return 1;
	return share_of_all(&q);
}

static void link_writes(settled *w, links *l)
{
	for (int32_t i = 0; i < w->s->eqn.n; i++) {
		const eqn_unit *u = w->unit[i];
		eqn_writes q;
		int32_t to;

		if (u == NULL || !eqn_find_writes(w->a, w->s, &u->e, &q))
			continue;
		to = u->e.out[0];
		if (w->version[to] >= 0 || w->version[q.old] >= 0 ||
			maker_of(w, q.old) < 0 ||
			w->unit[maker_of(w, q.old)] == NULL ||
			w->unit[maker_of(w, q.old)]->e.opaque != NULL ||
			l->next[q.old] >= 0)
			continue;
		if (w->kept[q.old] && !rule_dropped(w, SETTLE_RULE_USED))
			continue;
		l->old[to] = q.old;
		l->next[q.old] = to;
		l->share[to] = share_of_all(&q);
	}
}

static void choose_chain(settled *w, const links *l, int32_t first)
{
	int32_t n = 0;
	double share = 0;

	for (int32_t t = l->next[first]; t >= 0; t = l->next[t], n++)
		share += l->share[t];
	if (n == 0 || (!w->o.eager && (n < MANY || share * SMALL > n)))
		return;
	for (int32_t t = first; t >= 0; t = l->next[t])
		add_version(w, w->n_storages, t);
	w->n_storages++;
}

void settle_own_storages(settled *w)
{
	int32_t n = w->s->tensor.n;
	links l = {.old = arena_array(w->a, int32_t, n + 1),
		.next = arena_array(w->a, int32_t, n + 1),
		.share = arena_array(w->a, double, n + 1)};

	for (int32_t t = 0; t < n; t++)
		l.old[t] = l.next[t] = -1;
	link_writes(w, &l);
	for (int32_t t = 0; t < n; t++)
		if (l.old[t] < 0)
			choose_chain(w, &l, t);
}
