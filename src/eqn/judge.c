/*
 * judge.c: relates a digit of a producer to a digit of its reader.
 *
 * Digit D = (a, lo, hi) of the producer has at the read the value
 * Q = (X_a div lo) mod (hi / lo). D is related iff Q is exactly one digit of
 * the reader, of the same extent, with coefficient 1 and no constant: then the
 * reader at value v of that digit needs only what the producer computes at value v
 * of D. Otherwise the reason is:
 *
 *     X = i      related        X = i + 1    shift       X = 7 - i   reversed
 *     X = 0      free           X = 6i + j   misaligned  X = ids[i]  opaque
 */
#include "eqn/local.h"

/*
 * The initial value of a scatter is over the element number of the result: finds
 * the digit of a left axis that is digit (lo, hi) of it.
 */
static bool from_flat(const eqn_unit *u, eqn_digit *d)
{
	for (int32_t i = 0; i < u->e.n_left; i++) {
		int64_t k = u->stride[i];

		if (k == 0 || d->lo % k != 0 || d->hi % k != 0)
			continue;
		if (d->hi / k > u->box.extent[i])
			continue;
		*d = (eqn_digit){.axis = i, .lo = d->lo / k, .hi = d->hi / k};
		return true;
	}
	return false;
}

static bool one_digit(const eqn_edge *e, const eqn_memo *m, eqn_digit *out)
{
	const ix_atom *atom;

	if (m->q == NULL || !ix_is_digit(m->q, &atom))
		return false;
	*out = (eqn_digit){.axis = atom->axis, .lo = atom->lo, .hi = atom->hi};
	if (out->hi % out->lo != 0)
		return false;
	if (e->p != NULL && out->hi / out->lo != m->of.hi / m->of.lo)
		return false;
	if (e->read->in_init && e->c->e.push != NULL)
		return from_flat(e->c, out);
	return true;
}

/*
 * One of several concatenated parts of equal length: c0 + digit, which guards
 * restrict to 0 .. n - 1, is that digit mod n.
 */
static bool of_part(const eqn_edge *e, const eqn_memo *m, eqn_digit *out)
{
	int64_t n = m->of.hi / m->of.lo, min, max;
	const ix_form *q = m->q;
	const ix_atom *t = q->n == 1 ? q->t[0].atom : NULL;

	if (t == NULL || t->kind != IX_DIGIT || q->t[0].coef != 1 ||
		q->c0 % n != 0 || t->hi % t->lo != 0 ||
		t->hi / t->lo % n != 0 ||
		(e->read->in_init && e->c->e.push != NULL))
		return false;
	ix_range(&e->read->dom, q, &min, &max);
	*out = (eqn_digit){.axis = t->axis, .lo = t->lo, .hi = t->lo * n};
	return min >= 0 && max < n;
}

static const eqn_memo *ask(eqn_graph *g, eqn_edge *e, eqn_digit d)
{
	ix *x = g->s->x;
	const ix_dom *dom = &e->read->dom;
	eqn_memo *m;
	int64_t extent;

	for (int32_t i = 0; i < e->memo.n; i++) {
		m = &e->memo.at[i];
		if (m->of.axis == d.axis && m->of.lo == d.lo &&
			m->of.hi == d.hi)
			return m;
	}
	m = vec_push(g->a, &e->memo);
	*m = (eqn_memo){.of = d};
	if (d.axis >= e->n_x || e->x[d.axis] == NULL)
		return m;
	extent = e->p == NULL ? g->s->tensor.at[e->read->tensor].numel
			      : e->p->box.extent[d.axis];
	m->q = e->x[d.axis];
	if (d.lo > 1)
		m->q = ix_div(x, dom, m->q, d.lo);
	if (d.hi != extent)
		m->q = ix_mod(x, dom, m->q, d.hi / d.lo);
	m->related = one_digit(e, m, &m->at);
	return m;
}

bool eqn_relate(eqn_graph *g, eqn_edge *e, eqn_digit d, eqn_digit *out)
{
	const eqn_memo *m = ask(g, e, d);

	*out = m->at;
	return m->related;
}

bool eqn_relate_part(eqn_graph *g, eqn_edge *e, eqn_digit d, eqn_digit *out)
{
	const eqn_memo *m = ask(g, e, d);

	return !m->related && m->q != NULL && of_part(e, m, out);
}

const ix_form *eqn_value(eqn_graph *g, eqn_edge *e, eqn_digit d)
{
	return ask(g, e, d)->q;
}

eqn_verdict eqn_judge(eqn_graph *g, eqn_edge *e, eqn_digit d)
{
	const eqn_memo *m = ask(g, e, d);
	const ix_form *q = m->q;
	const ix_atom *atom;

	if (m->related)
		return EQN_RELATED;
	if (q == NULL || ix_has_fun(q))
		return EQN_OPAQUE;
	if (q->n == 0)
		return EQN_FREE;
	atom = q->t[0].atom;
	if (q->n > 1 || atom->kind != IX_DIGIT)
		return EQN_MISALIGNED;
	if (q->t[0].coef == -1)
		return EQN_REVERSED;
	if (q->t[0].coef == 1 &&
		(q->c0 != 0 || atom->hi / atom->lo != d.hi / d.lo))
		return EQN_SHIFT;
	return EQN_MISALIGNED;
}
