/*
 * verify.c: what must hold of every MapExpr; throws TN_EINTERNAL.
 *
 *   V1 a statement stands under a loop over each of its variables, once;
 *      INIT under its left variables only
 *   V2 each element of a tensor is written exactly once: the address is the
 *      mixed-radix number of the left variables
 *   V3 a value is read after it is complete: its statement comes before, and
 *      no loop around both reduces it
 *   V4 a value is read where it was made: every left variable of the producer
 *      that is walked around both has the same value on both sides
 *   V5 addresses are inside their tensor, by range and guards in force
 */
#include "loop/local.h"

struct verify {
	loop_kernel *k;
	const loop_node *reader;
	loop_eqn *of; /* whose expression is looked at */
};

static _Noreturn void broken(
	struct verify *v, const char *rule, const char *what)
{
	env_bug(arena_env(v->k->a), "loop_verify", "%s of %s in %s: %s", rule,
		loop_label(v->of), v->k->name, what);
}

static bool find_leaf(
	const loop_node *n, loop_kind kind, int32_t eqn, const loop_node **out)
{
	bool found = false;
	int32_t i;

	if (n->kind == kind && n->eqn == eqn) {
		*out = n;
		return true;
	}
	for (i = 0; i < n->n_child; i++) /* the last one */
		found |= find_leaf(n->child[i], kind, eqn, out);
	return found;
}

static const loop_node *leaf_of(
	const loop_kernel *k, loop_kind kind, int32_t eqn)
{
	const loop_node *n = NULL;
	int32_t i;

	for (i = 0; i < k->n_roots; i++)
		find_leaf(k->root[i], kind, eqn, &n);
	return n;
}

static bool above(const loop_node *n, const loop_node *top)
{
	for (; n != NULL; n = n->up)
		if (n == top)
			return true;
	return top == NULL;
}

/* Some points of the domain: a proof is not asked for, a witness is. */
static bool witness(
	struct verify *v, const ix_dom *d, const ix_form *f, int64_t numel)
{
	int64_t point[IX_MAX_AXES];
	uint64_t seed = 1;
	int32_t n, i;

	for (n = 0; n < 200; n++) {
		bool holds = !ix_has_fun(f);
		int64_t at;

		for (i = 0; i < d->box.n; i++) {
			seed = hash_bytes(&seed, sizeof seed, (uint64_t)i);
			point[i] = (int64_t)(seed % (uint64_t)d->box.extent[i]);
		}
		for (i = 0; i < d->n_facts && holds; i++) {
			holds = !ix_has_fun(d->facts[i].f);
			at = holds ? ix_eval(d->facts[i].f, point, NULL, NULL)
				   : 0;
			holds = holds && at >= d->facts[i].lo &&
				at < d->facts[i].hi;
		}
		at = holds ? ix_eval(f, point, NULL, NULL) : 0;
		if (at < 0 || at >= numel)
			return true;
	}
	(void)v;
	return false;
}

/* No guard decides: only where no select is on the way is this an error. */
static const expr *check_read(void *arg, const expr *read, const ix_dom *d)
{
	struct verify *v = arg;
	loop_kernel *k = v->k;
	const sys_tensor *t = &k->s->tensor.at[read->tensor];
	int64_t min, max;
	int32_t p, c, i;
	const loop_node *made, *both;
	loop_eqn *e;

	ix_range(d, read->form, &min, &max);
	if ((min < 0 || max >= t->numel) && v->of->scan_var < 0 &&
		witness(v, d, read->form, t->numel))
		broken(v, "V5", "a read is outside its tensor");
	if (!loop_maker(k, read->tensor, &p, &c) || &k->eqn[p] == v->of ||
		k->eqn[p].stage)
		return NULL;
	e = &k->eqn[p];
	made = leaf_of(k, LOOP_STMT, p);
	if (made == NULL || made->order >= v->reader->order)
		broken(v, "V3", "read before it is made");
	for (both = made; !above(v->reader, both);)
		both = both->up;
	if ((loop_node_open(both) & e->reduced) != 0)
		broken(v, "V3", "read before it is complete");
	for (i = 0; i < k->n_vars; i++) {
		const ix_atom *digit;
		const ix_form *f;
		int64_t n = k->var[i].extent, stride;

		if ((loop_node_open(both) & e->left & BIT(i)) == 0 || n == 1)
			continue;
		/* a scatter's own address holds data; where it starts does not */
		if (!loop_stride(e->push ? e->start_at : e->at, i, n,
			    &stride) ||
			stride < 1)
			broken(v, "V2", "an address is no number of digits");
		f = ix_mod(
			k->s->x, d, ix_div(k->s->x, d, read->form, stride), n);
		if ((!ix_is_digit(f, &digit) || digit->axis != i) &&
			ix_equal(k->s->x, d, f, ix_axis(k->s->x, d, i)) ==
				IX_DIFFERENT)
			broken(v, "V4", "read where it was not made");
	}
	return NULL;
}

static void check_expr(struct verify *v, const expr *e)
{
	loop_kernel *k = v->k;
	const ix_form **same = arena_array(
		k->a, const ix_form *, k->n_vars + 1);
	int32_t i;

	for (i = 0; i < k->n_vars; i++)
		same[i] = ix_axis(k->s->x, &k->dom, i);
	ex_subst(k->s, &k->dom, e, k->n_vars, k->dom.box.extent, same,
		check_read, v);
}

/* V2: strides of the left variables are products of faster extents. */
static void check_written(struct verify *v)
{
	loop_kernel *k = v->k;
	const loop_eqn *e = v->of;
	int64_t covered = 1, numel = k->s->tensor.at[e->e->out[0]].numel;
	loop_set todo = e->left;

	while (todo != 0) {
		loop_set before = todo;
		int32_t i;

		for (i = 0; i < k->n_vars; i++) {
			int64_t stride;

			if ((todo & BIT(i)) == 0 ||
				!loop_stride(
					e->at, i, k->var[i].extent, &stride) ||
				stride != covered)
				continue;
			covered *= k->var[i].extent;
			todo &= ~BIT(i);
		}
		if (todo == before)
			broken(v, "V2", "the address written is not row-major");
	}
	if (covered != numel)
		broken(v, "V2", "elements are missing or written twice");
}

static void check_leaf(struct verify *v, const loop_node *n)
{
	const loop_eqn *e = v->of;
	loop_set open = 0, want = e->left;
	const loop_node *u;
	int32_t i;

	v->reader = n;
	for (u = n->up; u != NULL; u = u->up) {
		if (u->kind == LOOP_FOR && (open & BIT(u->var)) != 0)
			broken(v, "V1", "two loops over one variable");
		if (u->kind == LOOP_FOR)
			open |= BIT(u->var);
	}
	if (n->kind == LOOP_STMT)
		want |= e->reduced;
	else if (e->push)
		want = loop_form_vars(e->start_at);
	if ((want & ~open) != 0)
		broken(v, "V1", "a loop is missing");
	if (n->kind == LOOP_INIT && (open & e->reduced) != 0 && !e->push)
		broken(v, "V1", "initialised inside its reduction");
	for (i = 0; i < e->e->n_out; i++) {
		const expr *x = n->kind == LOOP_INIT ? e->init[i] : e->body[i];

		if (x != NULL)
			check_expr(v, x);
	}
}

static void check_tree(struct verify *v, const loop_node *n, int32_t *n_leaf)
{
	int32_t i;

	if (!loop_is_loop(n)) {
		v->of = &v->k->eqn[n->eqn];
		if (n->kind == LOOP_STMT)
			n_leaf[n->eqn]++;
		check_leaf(v, n);
	}
	for (i = 0; i < n->n_child; i++)
		check_tree(v, n->child[i], n_leaf);
}

void loop_verify(loop_kernel *k)
{
	struct verify v = {k, NULL, NULL};
	int32_t *n_leaf = arena_array(k->a, int32_t, k->n_eqns + 1);
	int32_t i;

	for (i = 0; i < k->n_roots; i++)
		check_tree(&v, k->root[i], n_leaf);
	for (i = 0; i < k->n_eqns; i++) {
		v.of = &k->eqn[i];
		if (v.of->stage) /* made by the schedule */
			continue;
		if (n_leaf[i] != 1)
			broken(&v, "V1", "not exactly one statement");
		if (!v.of->push)
			check_written(&v);
		if (v.of->e->monoid != IR_SET && !v.of->push &&
			leaf_of(k, LOOP_INIT, i) == NULL)
			broken(&v, "V1", "no initialisation");
	}
}
