/*
 * need.c: loops without the parts where nothing happens.
 *
 * Consumes what holds wherever a node does anything (loop_node.need); produces
 * a shorter interval of one of its variables, or an empty one:
 *
 *   sums over k of x[i, k] * y[k, j] where k <= i, in a tile of rows b .. e
 *     const i64 s0 = sooner_i64(hi, (e - 1) - -1);
 *     for (k = lo; k < s0; k++) ..
 *
 * Of the other variables it knows their intervals (near: the values they have
 * now), so some of what is left may still be nothing: bodies keep their guards.
 */
#include "emit/local.h"

#include <inttypes.h>

static bool is_walked(const loop_node *n, int32_t var)
{
	for (n = n->up; n != NULL; n = n->up)
		if (n->kind == LOOP_FOR && n->var == var)
			return true;
	return false;
}

static const char *value(emitter *em, int32_t var)
{
	if (em->var[var][0] == '\0')
		return arena_printf(em->a, "%" PRId64, em->plus[var]);
	if (em->plus[var] == 0)
		return em->var[var];
	return arena_printf(
		em->a, "(%s + %" PRId64 ")", em->var[var], em->plus[var]);
}

/* The largest value of f without its terms of `but`, or the smallest. */
static const char *end_of(emitter *em, const loop_node *n, const ix_form *f,
	int32_t but, bool largest)
{
	str s = str_new(em->a);

	if (f->c0 != 0 || f->n == 0)
		str_printf(&s, "%" PRId64, f->c0);
	for (int32_t i = 0; i < f->n; i++) {
		int32_t v = f->t[i].atom->axis;
		int64_t c = f->t[i].coef;
		const struct span *p = &em->span[v];

		if (v == but)
			continue;
		str_add(&s, c < 0 ? " - " : s.n > 0 ? " + " : "");
		if (c != 1 && c != -1)
			str_printf(&s, "%" PRIu64 " * ",
				c < 0 ? -(uint64_t)c : (uint64_t)c);
		if (n->near && is_walked(n, v))
			str_add(&s, value(em, v));
		else if (largest == (c > 0))
			str_printf(&s, "(%s - 1)", p->hi);
		else
			str_add(&s, p->lo);
	}
	return s.n > 0 ? s.at : "0";
}

static const char *name_of(emitter *em, const char *text)
{
	const char *s = em_fresh(em, "s");

	em_line(em, "const i64 %s = %s;", s, text);
	em_line(em, "(void)%s;", s); /* an end may be nobody's */
	return s;
}

/* Of the interval's ends so many whole vectors from its start. */
static const char *in_lanes(
	emitter *em, const char *lo, const char *at, int32_t lanes, bool up)
{
	if (lanes <= 1)
		return at;
	return arena_printf(em->a, "%s + %s(%s - (%s)%s, 0) / %d * %d", lo,
		em_own(em, "later_i64"), at, lo,
		up ? arena_printf(em->a, " + %d", lanes - 1) : "", lanes,
		lanes);
}

/* The interval without what lies in front of `from`, or from `to` on. */
static void cut_off(emitter *em, const loop_node *n, int32_t var,
	const char *from, const char *to)
{
	struct span *s = &em->span[var], old = *s;
	int32_t lanes = n->kind == LOOP_FOR ? n->lanes : 1;
	bool whole = lanes > 1 && old.len >= 0 && old.len % lanes == 0;

	*s = (struct span){old.lo, old.hi, -1, -1, -1,
		lanes > 1 ? old.mult : 1, whole ? lanes : 0, 0, 0};
	if (from != NULL)
		s->lo = name_of(em, arena_printf(em->a, "%s(%s, %s)",
			em_own(em, "later_i64"), old.lo,
			in_lanes(em, old.lo, from, lanes, false)));
	else
		s->clo = old.clo;
	if (to != NULL)
		s->hi = name_of(em, arena_printf(em->a, "%s(%s, %s)",
			em_own(em, "sooner_i64"), old.hi,
			in_lanes(em, old.lo, to, lanes, true)));
}

/* lo <= rest + stride * var < hi for some rest between its ends */
static void narrow(emitter *em, const loop_node *n, const ix_fact *f,
	int32_t var, int64_t stride)
{
	const char *min = end_of(em, n, f->f, var, false);
	const char *max = end_of(em, n, f->f, var, true);
	const char *from = NULL, *to = NULL;

	if (stride > 0 && f->lo != INT64_MIN)
		from = arena_printf(em->a, "%" PRId64 " - (%s)", f->lo, max);
	if (stride > 0 && f->hi != INT64_MAX)
		to = arena_printf(em->a, "%" PRId64 " - (%s)", f->hi, min);
	if (stride < 0 && f->hi != INT64_MAX)
		from = arena_printf(em->a, "%s - %" PRId64, min, f->hi - 1);
	if (stride < 0 && f->lo != INT64_MIN)
		to = arena_printf(em->a, "%s - %" PRId64, max, f->lo - 1);
	cut_off(em, n, var, from, to);
}

/* Nothing at all, unless the fact may hold. */
static void close(emitter *em, const loop_node *n, const ix_fact *f,
	int32_t var)
{
	struct span *s = &em->span[var];
	str c = str_new(em->a);

	if (f->hi != INT64_MAX)
		str_printf(&c, "%s < %" PRId64,
			end_of(em, n, f->f, -1, false), f->hi);
	if (f->lo != INT64_MIN)
		str_printf(&c, "%s%s >= %" PRId64, c.n > 0 ? " && " : "",
			end_of(em, n, f->f, -1, true), f->lo);
	if (c.n == 0)
		return;
	s->hi = name_of(em,
		arena_printf(em->a, "%s ? %s : %s", c.at, s->hi, s->lo));
	s->chi = s->len = -1;
	s->whole = s->most = 0;
}

/* A variable of the node that is to be narrowed: -1 none of them is in f. */
static int32_t narrowed(
	const emitter *em, const loop_node *n, const ix_form *f, int64_t *stride)
{
	int32_t m = n->kind == LOOP_TILE ? n->n_sums : 1;

	if (n->kind == LOOP_STAGE)
		return -1;
	for (int32_t i = 0; i < m; i++) {
		int32_t v = n->kind == LOOP_TILE ? n->sum[i] : n->var;

		if (loop_stride(f, v, em->k->var[v].extent, stride) &&
			(*stride == 1 || *stride == -1))
			return v;
	}
	return -1;
}

void em_narrow(emitter *em, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_needs; i++) {
		const ix_fact *f = &n->need[i];
		int64_t stride;
		int32_t v = narrowed(em, n, f->f, &stride);

		if (v >= 0)
			narrow(em, n, f, v, stride);
		else
			close(em, n, f,
				n->kind == LOOP_TILE    ? n->sum[0]
				: n->kind == LOOP_STAGE ? n->row_var
							: n->var);
	}
}
