/*
 * fuse_gen_writes.c: random writes: of whole tensors, of parts, and reads of parts.
 */
#include "fuse_draft.h"

/* x' = f(x), the whole or a part of it, into x's own storage */
void fuse_write(gen *g)
{
	int32_t n = g->latest.n, k = below(g, n + 1), old, b = -1, t;
	const ix_form *where[8];
	const expr *body, *now;
	sys_tensor st;
	draft w;

	if (k == n && n < 2) { /* an input becomes one that is overwritten */
		old = g->s->input.at[below(g, g->n_base)];
		if (tensor(g, old)->storage >= 0)
			return;
		g->s->tensor.at[old].storage = n;
		*vec_push(g->a, &g->latest) = old;
	}
	if (k >= g->latest.n)
		k = 0;
	old = g->latest.at[k];
	st = *tensor(g, old);
	for (int32_t i = 0; i < 10 && b < 0; i++) {
		int32_t c = pick(g);

		if (tensor(g, c)->rank == st.rank && fits(g, old, c))
			b = c;
	}
	start(&w, g, "write");
	letters(&w, st.rank, st.shape, where);
	now = read(&w, old, where);
	body = unary(g, now);
	if (b >= 0) {
		const ix_form *other[8];

		for (int32_t i = 0; i < st.rank; i++)
			other[i] = tensor(g, b)->shape[i] == 1
					   ? ix_const(g->x, 0)
					   : where[i];
		body = chance(g, 40) ? unary(g, read(&w, b, other))
				     : binary(g, now, read(&w, b, other));
	}
	if (chance(g, 30) && st.rank > 0 && st.shape[0] > 1)
		body = ex_select(
			g->s, ex_inside(g->s, where[0], 0, 1), body, now);
	t = end(&w, "z", st.rank, st.shape, body);
	g->s->tensor.at[t].storage = k;
	g->latest.at[k] = t;
}

/* a tensor of old's shape: old, an older version of it, or any */
int32_t fuse_alike(gen *g, int32_t old)
{
	const sys_tensor *st = tensor(g, old);

	for (int32_t i = 0; i < 12; i++) {
		int32_t c = chance(g, 50) ? below(g, g->s->tensor.n) : pick(g);
		const sys_tensor *q = tensor(g, c);

		if (q->rank == st->rank && fits(g, old, c) &&
			q->numel == st->numel && q->name[0] != 'i' &&
			(q->storage >= 0 || chance(g, 50)))
			return c;
	}
	return old;
}

/* lo <= where < hi of one axis, or every second of it */
static const expr *stretch(gen *g, draft *w, const ix_form *where, int64_t n,
	int64_t *lo, int64_t *hi)
{
	*lo = below(g, (int32_t)n);
	*hi = *lo + 1 + below(g, (int32_t)(n - *lo));
	if (n >= 4 && n % 2 == 0 && chance(g, 25)) {
		int64_t odd = below(g, 2);

		*lo = 0;
		*hi = n;
		return ex_inside(g->s, ix_mod(g->x, &w->d, where, 2), odd,
			odd + 1);
	}
	return ex_inside(g->s, where, *lo, *hi);
}

/* Elements of old that a box leaves out stay; the others come from anywhere. */
void fuse_write_part(gen *g)
{
	int32_t n = g->latest.n, k = -1, old = pick(g), from, t;
	const ix_form *where[8], *seen[8];
	const expr *guard = NULL, *now, *body;
	sys_tensor st;
	draft w;

	if (n > 0 && chance(g, 70)) {
		k = below(g, n);
		old = g->latest.at[k];
	}
	st = *tensor(g, old);
	from = fuse_alike(g, old);
	start(&w, g, "write");
	letters(&w, st.rank, st.shape, where);
	now = read(&w, old, where);
	for (int32_t i = 0; i < st.rank; i++) {
		int64_t lo = 0, hi = st.shape[i], to;
		const expr *c;

		seen[i] = where[i];
		if (st.shape[i] == 1 || !chance(g, 60))
			continue;
		c = stretch(g, &w, where[i], st.shape[i], &lo, &hi);
		guard = guard == NULL ? c : call(g, "and", guard, c);
		to = below(g, (int32_t)(st.shape[i] - (hi - lo)) + 1);
		if (chance(g, 60)) /* elsewhere: there, or backwards */
			seen[i] = chance(g, 30)
				? ix_addc(g->x, ix_scale(g->x, where[i], -1),
					  to + hi - 1)
				: ix_addc(g->x, where[i], to - lo);
	}
	body = read(&w, from, seen);
	if (chance(g, 70))
		body = unary(g, body);
	if (chance(g, 30))
		body = binary(g, now, body);
	if (guard != NULL)
		body = ex_select(g->s, guard, body, now);
	t = end(&w, "z", st.rank, st.shape, body);
	if (k >= 0) {
		g->s->tensor.at[t].storage = k;
		g->latest.at[k] = t;
	}
}

/* a box of t */
void fuse_part(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	int64_t lo[8], shape[8];
	draft w;

	for (int32_t i = 0; i < st.rank; i++) {
		lo[i] = below(g, (int32_t)st.shape[i]);
		shape[i] = 1 + below(g, (int32_t)(st.shape[i] - lo[i]));
	}
	start(&w, g, "part");
	letters(&w, st.rank, shape, where);
	for (int32_t i = 0; i < st.rank; i++)
		where[i] = ix_addc(g->x, where[i], lo[i]);
	end(&w, "m", st.rank, shape, unary(g, read(&w, t, where)));
}
