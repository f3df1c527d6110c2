/*
 * verify_read.c: each read of a schedule sees the value that it means: after
 * its statement, when it is final, in the iteration that made it; and before a
 * write in place changes the element, or in the iteration that changes it.
 */
#include "schedule/verify.h"

/* ---- order ---- */

struct reader {
	struct sv *v;
	const struct sv_leaf *l;
};

static bool makes(const loop_node *n)
{
	return n->kind == LOOP_STMT || n->kind == LOOP_TILE ||
	       n->kind == LOOP_STAGE || n->kind == LOOP_JOIN;
}

static const struct sv_leaf *maker_before(
	struct sv *v, const struct sv_leaf *r, int32_t eqn)
{
	const struct sv_leaf *made = NULL;

	for (int32_t i = 0; i < v->leaf.n; i++) {
		const struct sv_leaf *m = &v->leaf.at[i];

		if (m->n->eqn != eqn || !makes(m->n) || m->phase > r->phase)
			continue;
		if (m->phase < r->phase || m->n->order < r->n->order)
			made = m;
		else if (m->n->kind != LOOP_STAGE && !v->online &&
			v->k->eqn[eqn].e->monoid != IR_SET &&
			verify_span_var(m->n, r->n) < 0)
			return NULL; /* a later statement adds to it */
	}
	return made;
}

/* Does index `read` have var as the same digit that `made` has it as? */
static bool is_same_digit(struct sv *v, const ix_dom *d, const ix_form *made,
	const ix_form *read, int32_t var)
{
	loop_kernel *k = v->k;
	int64_t n = k->var[var].extent, stride;
	const ix_atom *digit;
	const ix_form *f;

	if (n == 1)
		return true;
	if (!ix_stride(made, var, n, &stride) || stride < 1)
		return false;
	f = ix_mod(k->s->x, d, ix_div(k->s->x, d, read, stride), n);
	return (ix_is_digit(f, &digit) && digit->axis == var) ||
	       ix_equal(k->s->x, d, f, ix_axis(k->s->x, d, var)) !=
		       IX_DIFFERENT;
}

static void check_made(struct sv *v, const struct sv_leaf *r, int32_t eqn,
	const ix_form *at, const ix_dom *d)
{
	const loop_eqn *e = &v->k->eqn[eqn];
	const struct sv_leaf *m = maker_before(v, r, eqn);
	const loop_node *both, *u;

	if (m == NULL)
		verify_fail(v, r->n, "order",
			"%s is read before its statement; it must be read after it",
			verify_eqn(v, eqn));
	if (m->phase != r->phase)
		return;
	both = verify_common(m->n, r->n);
	for (u = both; u != NULL; u = u->up) {
		if ((e->reduced & ~e->left & BIT(u->var)) != 0 &&
			u->number < 0 && (v->keys & BIT(u->var)) == 0)
			verify_fail(v, r->n, "order",
				"%s is read inside its sum over %s; it must be read after that loop",
				verify_eqn(v, eqn), verify_var(v, u->var));
		if ((e->left & BIT(u->var)) != 0 && at != NULL && !e->push &&
			u->number < 0 &&
			!is_same_digit(v, d, e->at, at, u->var))
			verify_fail(v, r->n, "order",
				"%s is read at another %s than that of the iteration around",
				verify_eqn(v, eqn), verify_var(v, u->var));
	}
}

/* ---- writes in place ---- */

/* The innermost node around both; if they are in different spans of one loop,
 * the span of a. */
static const loop_node *around_both(const loop_node *a, const loop_node *b)
{
	const loop_node *both = verify_common(a, b);

	while (verify_span_var(a, b) >= 0 && a->up != both)
		a = a->up;
	return verify_span_var(a, b) >= 0 ? a : both;
}

/*
 * If another leaf writes the memory that this one reads, it runs later; in
 * loops around both, it writes the element that this iteration reads.
 */
static void check_written(struct sv *v, const struct sv_leaf *r, const expr *read,
	const ix_dom *d)
{
	const sys_tensor *t = v->k->s->tensor.at;

	for (int32_t i = 0; t[read->tensor].storage >= 0 && i < v->leaf.n; i++) {
		const struct sv_leaf *w = &v->leaf.at[i];
		const loop_eqn *e = &v->k->eqn[w->n->eqn];
		int32_t out = e->e->out[0];

		if (e->stage || e->pack || w->n->eqn == r->n->eqn ||
			!ir_same_memory(v->k->s, out, read->tensor) ||
			loop_param(v->k, out) < 0 ||
			loop_param(v->k, read->tensor) < 0)
			continue;
		if (loop_leaves(v->k, e, read->form, d))
			continue;
		if (w->phase < r->phase ||
			(w->phase == r->phase && w->n->order < r->n->order &&
				verify_span_var(w->n, r->n) < 0))
			verify_fail(v, r->n, "write",
				"%s reads %s after %s has overwritten it; it must read "
				"it before",
				verify_eqn(v, r->n->eqn), t[read->tensor].name,
				verify_eqn(v, w->n->eqn));
		if (w->phase != r->phase)
			continue;
		for (const loop_node *u = around_both(w->n, r->n); u != NULL;
			u = u->up)
			if ((e->left & BIT(u->var)) != 0 &&
				!is_same_digit(v, d, e->at, read->form, u->var))
				verify_fail(v, r->n, "write",
					"%s overwrites elements of %s that other "
					"iterations over %s read later",
					verify_eqn(v, w->n->eqn),
					t[read->tensor].name,
					verify_var(v, u->var));
	}
}

/* ---- all reads of a leaf ---- */

static const expr *on_read(void *arg, const expr *read, const ix_dom *d)
{
	struct reader *r = arg;
	int32_t eqn, comp;

	check_written(r->v, r->l, read, d);
	if (loop_maker(r->v->k, read->tensor, &eqn, &comp) &&
		eqn != r->l->n->eqn && !r->v->k->eqn[eqn].stage &&
		!(r->v->online && r->l->n->eqn == r->v->was &&
			eqn == r->v->max))
		check_made(r->v, r->l, eqn, read->form, d);
	return NULL;
}

/* Checks the reads of tensors whose elements are indices in f. */
static void check_data(struct sv *v, const struct sv_leaf *l, const ix_form *f)
{
	int32_t eqn, comp;

	for (int32_t i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN &&
			loop_maker(v->k, (int32_t)t->fun, &eqn, &comp) &&
			eqn != l->n->eqn)
			check_made(v, l, eqn, NULL, NULL);
		if (t->kind != IX_DIGIT)
			check_data(v, l, t->f);
	}
}

struct data {
	struct sv *v;
	const struct sv_leaf *l;
};

static void on_form(void *arg, const expr *e)
{
	struct data *d = arg;

	check_data(d->v, d->l, e->form);
}

static void check_expr(struct sv *v, const struct sv_leaf *l, const expr *e)
{
	loop_kernel *k = v->k;
	struct reader r = {v, l};
	struct data f = {v, l};

	if (e == NULL)
		return;
	ex_subst(k->s, &k->dom, e, k->n_vars, k->dom.box.extent, v->same,
		on_read, &r);
	loop_walk(k->a, e, on_form, &f);
}

void verify_reads(struct sv *v, const struct sv_leaf *l)
{
	const loop_node *n = l->n;
	const loop_eqn *e = &v->k->eqn[n->eqn];

	switch (n->kind) {
	case LOOP_TILE:
		check_expr(v, l, n->factor[0]);
		check_expr(v, l, n->factor[1]);
		check_expr(v, l, n->finish);
		if (n->checked)
			check_expr(v, l, e->body[0]);
		break;
	case LOOP_SCALE:
		check_expr(v, l, n->finish);
		break;
	case LOOP_INIT:
	case LOOP_STMT:
	case LOOP_STAGE:
		for (int32_t i = 0; i < e->e->n_out; i++)
			check_expr(v, l,
				n->kind == LOOP_INIT ? e->init[i] : e->body[i]);
		if (e->push)
			check_data(v, l, e->at);
		break;
	case LOOP_DONE:
		check_made(v, l, n->eqn, e->at, &v->k->dom);
		break;
	case LOOP_PART:
	case LOOP_JOIN:
	case LOOP_FOR:
	case LOOP_BLOCK:
	case LOOP_SPAN:
		break;
	}
}
