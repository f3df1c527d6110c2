/*
 * verify.c: checks a MapExpr; throws TN_EINTERNAL. (schedule/verify.c checks the
 * trees of a schedule.)
 *
 *   V1 a statement is inside one loop over each of its variables; an INIT only
 *      inside loops over its left variables
 *   V2 each element of a tensor is written exactly once: the address is the
 *      mixed-radix number of the left variables
 *   V3 a value is read when it is final: after its statement, and outside the
 *      loops that reduce it
 *   V4 a value is read in the iteration that computed it: in loops around both,
 *      the left variables of the producer have the same values on both sides
 *   V5 addresses are inside their tensor, by ranges and guards
 */
#include "loop/tree.h"

struct verify {
	loop_kernel *k;
	const loop_node *reader;
	loop_eqn *of; /* the equation whose expression is checked */
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

/* The conditions around an expression, innermost first. */
struct path {
	const expr *cond;
	bool holds;
	const struct path *up;
};

/* The value of an integer or bool at a point, if it does not depend on data. */
static bool value_at(const expr *e, const int64_t *point, int64_t *out)
{
	ir_number v[IR_MAX_ARGS];

	switch (e->kind) {
	case EX_CONST:
		*out = e->c.i;
		return !dtype_is_float(e->dtype);
	case EX_INDEX:
	case EX_INSIDE:
		if (ix_has_fun(e->form))
			return false;
		*out = ix_eval(e->form, point, NULL, NULL);
		if (e->kind == EX_INSIDE)
			*out = *out >= e->lo && *out < e->hi;
		return true;
	case EX_CALL:
		if (dtype_is_float(e->dtype) || e->n_args == 0)
			return false;
		for (int32_t i = 0; i < e->n_args; i++)
			if (dtype_is_float(e->arg[i]->dtype) ||
				!value_at(e->arg[i], point, &v[i].i))
				return false;
		*out = ir_scalar_eval(
			e->fn, e->arg[e->n_args - 1]->dtype, v).i;
		return true;
	case EX_READ:
	case EX_SELECT:
	case EX_CAST:
	case EX_PARAM:
		return false;
	}
	return false;
}

static bool reached(const struct path *p, const int64_t *point)
{
	for (; p != NULL; p = p->up) {
		int64_t is;

		if (!value_at(p->cond, point, &is) || (is != 0) != p->holds)
			return false;
	}
	return true;
}

/* Tests some points of the box for a witness; this is not a proof. */
static bool witness(const ix_box *box, const struct path *path,
	const ix_form *f, int64_t numel)
{
	int64_t point[IX_MAX_AXES], at;
	uint64_t seed = 1;

	if (ix_has_fun(f))
		return false;
	for (int32_t n = 0; n < 200; n++) {
		for (int32_t i = 0; i < box->n; i++) {
			seed = hash_bytes(&seed, sizeof seed, (uint64_t)i);
			point[i] = (int64_t)(seed % (uint64_t)box->extent[i]);
		}
		at = ix_eval(f, point, NULL, NULL);
		if ((at < 0 || at >= numel) && reached(path, point))
			return true;
	}
	return false;
}

/* 'a': and; 'o': or; 0: e is neither. */
static char connective(const expr *e)
{
	const char *name = e->kind == EX_CALL ? ir_scalar_at(e->fn)->name : "";

	return strcmp(name, "and") == 0 ? 'a' : strcmp(name, "or") == 0 ? 'o' : 0;
}

/* Checks every read below e, once for each path to it. */
static void check_inside(
	struct verify *v, map *seen, const expr *e, const struct path *path)
{
	const struct {
		const struct path *path;
		int64_t id;
	} key = {path, e->id};

	if (map_get(seen, &key, sizeof key, -1) >= 0)
		return;
	map_set(seen, &key, sizeof key, 1);
	if (e->kind == EX_READ) {
		const sys_tensor *t = &v->k->s->tensor.at[e->tensor];
		int64_t min, max;

		ix_range(&v->k->dom, e->form, &min, &max);
		if ((min < 0 || max >= t->numel) && v->of->scan_var < 0 &&
			witness(&v->k->dom.box, path, e->form, t->numel))
			broken(v, "V5", "it reads outside a tensor");
	} else if (e->kind == EX_SELECT || connective(e)) {
		/* the right side of and, or: evaluated if the left one allows it */
		struct path *way = arena_array(v->k->a, struct path, 2);

		way[0] = (struct path){e->arg[0], true, path};
		way[1] = (struct path){e->arg[0], false, path};
		check_inside(v, seen, e->arg[0], path);
		if (e->kind == EX_SELECT) {
			check_inside(v, seen, e->arg[1], &way[0]);
			check_inside(v, seen, e->arg[2], &way[1]);
		} else {
			check_inside(v, seen, e->arg[1],
				&way[connective(e) == 'a' ? 0 : 1]);
		}
	} else {
		for (int32_t i = 0; i < e->n_args; i++)
			check_inside(v, seen, e->arg[i], path);
	}
}

static const expr *check_read(void *arg, const expr *read, const ix_dom *d)
{
	struct verify *v = arg;
	loop_kernel *k = v->k;
	int32_t p, c, i;
	const loop_node *made, *both;
	loop_eqn *e;

	if (!loop_maker(k, read->tensor, &p, &c) || &k->eqn[p] == v->of ||
		k->eqn[p].stage || k->eqn[p].pack)
		return NULL;
	e = &k->eqn[p];
	made = leaf_of(k, LOOP_STMT, p);
	if (made == NULL || made->order >= v->reader->order)
		broken(v, "V3", "it reads a value before the statement that computes it");
	for (both = made; !above(v->reader, both);)
		both = both->up;
	if ((loop_node_open(both) & e->reduced) != 0)
		broken(v, "V3", "it reads a sum inside the loops of that sum");
	for (i = 0; i < k->n_vars; i++) {
		const ix_atom *digit;
		const ix_form *f;
		int64_t n = k->var[i].extent, stride;

		if ((loop_node_open(both) & e->left & BIT(i)) == 0 || n == 1)
			continue;
		/* the address of a scatter has data; that of its initial value has not */
		if (!ix_stride(e->push ? e->start_at : e->at, i, n,
			    &stride) ||
			stride < 1)
			broken(v, "V2", "the address of a value that it reads is not a sum of digits");
		f = ix_mod(
			k->s->x, d, ix_div(k->s->x, d, read->form, stride), n);
		if ((!ix_is_digit(f, &digit) || digit->axis != i) &&
			ix_equal(k->s->x, d, f, ix_axis(k->s->x, d, i)) ==
				IX_DIFFERENT)
			broken(v, "V4", "it reads a value in another iteration than computed it");
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
	e = ex_subst(k->s, &k->dom, e, k->n_vars, k->dom.box.extent, same,
		check_read, v);
	check_inside(v, map_new(k->a), e, NULL);
}

/* V2: the strides of the left variables are products of faster extents. */
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
				!ix_stride(
					e->at, i, k->var[i].extent, &stride) ||
				stride != covered)
				continue;
			covered *= k->var[i].extent;
			todo &= ~BIT(i);
		}
		if (todo == before)
			broken(v, "V2", "the address that it writes is not row-major");
	}
	if (covered != numel)
		broken(v, "V2", "its loops do not write each element once");
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
			broken(v, "V1", "two nested loops walk one variable");
		if (u->kind == LOOP_FOR)
			open |= BIT(u->var);
	}
	if (n->kind == LOOP_STMT)
		want |= e->reduced;
	else if (e->push)
		want = loop_form_vars(e->start_at);
	if ((want & ~open) != 0)
		broken(v, "V1", "it is outside a loop over one of its variables");
	if (n->kind == LOOP_INIT && (open & e->reduced) != 0 && !e->push)
		broken(v, "V1", "its initialisation is inside the loops of its sum");
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
	for (i = 0; i < k->n_eqns && !k->pinned; i++) {
		v.of = &k->eqn[i];
		if (v.of->stage || v.of->pack) /* added by the schedule */
			continue;
		if (n_leaf[i] != 1)
			broken(&v, "V1", "it does not have exactly one statement");
		if (!v.of->push)
			check_written(&v);
		if (v.of->e->monoid != IR_SET && !v.of->push &&
			leaf_of(k, LOOP_INIT, i) == NULL)
			broken(&v, "V1", "its sum is not initialised");
	}
}
