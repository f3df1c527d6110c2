/*
 * query.c: queries about a MapExpr, for its passes and for kern/: on which
 * variables does a form depend, with which stride; which element of a buffer has
 * a value?
 */
#include "loop/tree.h"

loop_set loop_form_vars(const ix_form *f)
{
	loop_set s = 0;
	int32_t i;

	for (i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_DIGIT)
			s |= (loop_set)1 << t->axis;
		else
			s |= loop_form_vars(t->f);
	}
	return s;
}

const char *loop_label(const loop_eqn *e)
{
	return e->e->label != NULL ? e->e->label
	       : e->e->op != NULL  ? e->e->op
				   : "let";
}

/* Most expressions have few nodes: a list of these is searched faster than a
 * map is made. */
enum { FEW_NODES = 24 };

struct walk {
	arena *a;
	int32_t n_few, few[FEW_NODES];
	map *seen; /* those behind the few; NULL: none yet */
	loop_visit *fn;
	void *arg;
};

/* Is it visited for the first time? */
static bool is_new(struct walk *w, const expr *e)
{
	for (int32_t i = 0; i < w->n_few; i++)
		if (w->few[i] == e->id)
			return false;
	if (w->n_few < FEW_NODES) {
		w->few[w->n_few++] = e->id;
		return true;
	}
	if (w->seen == NULL)
		w->seen = map_new(w->a);
	if (map_get(w->seen, &e->id, sizeof e->id, 0) != 0)
		return false;
	map_set(w->seen, &e->id, sizeof e->id, 1);
	return true;
}

static void walk(struct walk *w, const expr *e)
{
	int32_t i;

	if (!is_new(w, e))
		return;
	for (i = 0; i < IR_MAX_ARGS && e->arg[i] != NULL; i++)
		walk(w, e->arg[i]);
	w->fn(w->arg, e);
}

void loop_walk(arena *a, const expr *e, loop_visit *fn, void *arg)
{
	struct walk w;

	w.a = a;
	w.n_few = 0;
	w.seen = NULL;
	w.fn = fn;
	w.arg = arg;
	walk(&w, e);
}

static void add_vars(void *arg, const expr *e)
{
	loop_set *s = arg;

	if (e->form != NULL)
		*s |= loop_form_vars(e->form);
}

loop_set loop_expr_vars(loop_kernel *k, const expr *e)
{
	loop_set s = 0;

	loop_walk(k->a, e, add_vars, &s);
	return s;
}

bool loop_writes_input(const loop_kernel *k)
{
	for (int32_t i = 0; i < k->n_outputs; i++)
		for (int32_t j = 0; j < k->n_params; j++)
			if (ir_same_memory(k->s, k->param[i], k->param[j]))
				return true;
	return false;
}

bool loop_maker(
	const loop_kernel *k, int32_t tensor, int32_t *eqn, int32_t *comp)
{
	int32_t i, j;

	for (i = 0; i < k->n_eqns; i++)
		for (j = 0; j < k->eqn[i].e->n_out; j++)
			if (k->eqn[i].e->out[j] == tensor) {
				*eqn = i;
				*comp = j;
				return true;
			}
	return false;
}

int32_t loop_kept(const loop_kernel *k, int32_t tensor)
{
	int32_t made, comp;

	if (!loop_maker(k, tensor, &made, &comp))
		return -1;
	for (int32_t i = made + 1; i < k->n_eqns; i++)
		if (k->eqn[i].stage && k->eqn[i].e->out[0] == tensor)
			return i;
	return -1;
}

int32_t loop_param(const loop_kernel *k, int32_t tensor)
{
	int32_t i;

	for (i = 0; i < k->n_params; i++)
		if (k->param[i] == tensor)
			return i;
	return -1;
}

tn_dtype loop_lane_acc(loop_kernel *k, const loop_eqn *e, int32_t comp)
{
	int64_t min, max;

	if (e->e->monoid == IR_SET || e->body[comp]->kind != EX_INDEX ||
		ix_has_fun(e->body[comp]->form) ||
		ir_monoid_at(e->e->monoid)->comp[comp] != 'K')
		return e->acc[comp];
	ix_range(&k->dom, e->body[comp]->form, &min, &max);
	return min >= 0 && max <= INT32_MAX ? TN_I32 : e->acc[comp];
}

void loop_subscript(loop_kernel *k, const ix_dom *d, const loop_buf *b,
	const ix_form *at, const ix_form **digit)
{
	const loop_eqn *e = &k->eqn[b->eqn];
	int32_t i;

	for (i = 0; i < b->n_vars; i++) {
		int64_t n = k->var[b->var[i]].extent, stride;

		if (!ix_stride(e->at, b->var[i], n, &stride) || stride < 1)
			env_bug(arena_env(k->a), "loop_subscript",
				"%s: variable %s is not a digit of %s", k->name,
				k->var[b->var[i]].name,
				k->s->tensor.at[e->e->out[b->comp]].name);
		digit[i] = ix_mod(
			k->s->x, d, ix_div(k->s->x, d, at, stride), n);
	}
}

bool loop_is_staged(loop_kernel *k, const loop_buf *b, const ix_form *at)
{
	const loop_eqn *e = &k->eqn[b->eqn];
	const loop_node *n;

	for (n = b->scope; n != NULL; n = n->up) {
		const ix_atom *digit;
		const ix_form *f;
		int64_t ext, s;

		if ((e->left >> n->var & 1) == 0)
			continue;
		ext = k->var[n->var].extent;
		if (!ix_stride(e->at, n->var, ext, &s) || s < 1)
			return false;
		f = ix_mod(
			k->s->x, &k->dom, ix_div(k->s->x, &k->dom, at, s), ext);
		if (!ix_is_digit(f, &digit) || digit->axis != n->var ||
			digit->lo != 1 || digit->hi != ext)
			return false;
	}
	return true;
}

static void link_node(loop_node *n, loop_node *up, int32_t *order)
{
	int32_t i;

	n->up = up;
	n->order = (*order)++;
	for (i = 0; i < n->n_child; i++)
		link_node(n->child[i], n, order);
}

void loop_link(loop_kernel *k)
{
	int32_t i, j, order = 0;

	for (i = 0; i < k->n_roots; i++)
		link_node(k->root[i], NULL, &order);
	for (j = 0; j < k->n_phases; j++)
		for (i = 0; i < k->phase[j].n_roots; i++)
			link_node(k->phase[j].root[i], NULL, &order);
}

struct part {
	loop_kernel *k;
	bool bad;
};

/* Lanes without an element compute with zeros, and an integer quotient of zeros
 * may trap. */
static void on_part(void *arg, const expr *e)
{
	struct part *p = arg;

	p->bad |= (e->form != NULL && ix_has_fun(e->form)) ||
		  (e->kind == EX_CALL && dtype_is_int(e->dtype) &&
			  e->dtype != TN_BOOL);
}

static bool part_leaf(loop_kernel *k, const loop_node *n, int32_t var)
{
	const loop_eqn *e = &k->eqn[n->eqn];
	struct part p = {k, false};

	if ((n->kind != LOOP_STMT && n->kind != LOOP_INIT &&
		    n->kind != LOOP_DONE) ||
		e->push || e->stage || e->n_parts > 0 || e->scan_var == var ||
		(e->reduced & BIT(var)) != 0 || ix_has_fun(e->at))
		return false;
	for (int32_t i = 0; i < e->e->n_out; i++) {
		loop_walk(k->a, e->body[i], on_part, &p);
		if (e->init[i] != NULL)
			loop_walk(k->a, e->init[i], on_part, &p);
	}
	return !p.bad;
}

static bool part_below(loop_kernel *k, const loop_node *n, int32_t var)
{
	if (!loop_is_loop(n))
		return part_leaf(k, n, var);
	for (int32_t i = 0; i < n->n_child; i++)
		if (!part_below(k, n->child[i], var))
			return false;
	return true;
}

bool loop_may_part(loop_kernel *k, const loop_node *n)
{
	return !n->backward && part_below(k, n, n->var);
}

bool loop_row_of(
	const loop_kernel *k, const loop_eqn *e, int32_t var, const ix_form **row)
{
	ix *x = k->s->x;
	int64_t step, min, max, ext = k->var[var].extent;
	const ix_form *in;

	if (!e->push || ((e->left | e->reduced) >> var & 1) != 0 ||
		!ix_stride(e->start_at, var, ext, &step) || step < 1)
		return false;
	ix_range(&k->dom,
		ix_sub(x, &k->dom, e->start_at,
			ix_scale(x, ix_axis(x, &k->dom, var), step)),
		&min, &max);
	if (min < 0 || max >= step)
		return false;
	*row = ix_div(x, &k->dom, e->at, step);
	in = ix_sub(x, &k->dom, e->at, ix_scale(x, *row, step));
	ix_range(&k->dom, in, &min, &max);
	return min >= 0 && max < step && (loop_form_vars(*row) & e->left) == 0;
}

tn_dtype loop_natural_acc(const loop_kernel *k, const loop_eqn *e, int32_t comp)
{
	const sys_tensor *t = k->s->tensor.at;

	return e->e->monoid == IR_SET
		       ? t[e->e->out[comp]].dtype
		       : ir_monoid_acc(e->e->monoid, comp, t[e->e->out[0]].dtype);
}

int64_t loop_slack(const machine *m)
{
	return 4 * (int64_t)m->vector_bytes;
}

/* Does it copy what does not come from registers of the warps? */
static bool is_copy(const loop_kernel *k, const loop_node *n)
{
	return n->kind == LOOP_STMT && k->eqn[n->eqn].pack && !k->eqn[n->eqn].row &&
	       (n->up == NULL || n->up->held == 0);
}

bool loop_has_copies(const loop_kernel *k, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_has_copies(k, n->child[i]))
			return true;
	return is_copy(k, n);
}

bool loop_has_others(const loop_kernel *k, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_has_others(k, n->child[i]))
			return true;
	return !loop_is_loop(n) && !is_copy(k, n);
}

static const loop_node *tile_below(const loop_node *n, int32_t eqn)
{
	const loop_node *t = n->kind == LOOP_TILE && n->eqn == eqn ? n : NULL;

	for (int32_t i = 0; i < n->n_child && t == NULL; i++)
		t = tile_below(n->child[i], eqn);
	return t;
}

const loop_node *loop_tile_of(const loop_kernel *k, int32_t eqn)
{
	const loop_node *t = NULL;

	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots && t == NULL; i++)
			t = tile_below(k->phase[p].root[i], eqn);
	return t;
}

bool loop_same_sums(const loop_node *a, const loop_node *b)
{
	return a->row_var == b->row_var && a->var == b->var &&
	       a->size == b->size && a->lanes == b->lanes &&
	       a->unroll == b->unroll && a->matrix == b->matrix &&
	       a->tiled == b->tiled;
}

bool loop_has_parts(const loop_node *n)
{
	return n->matrix && n->factor[0]->dtype == TN_F32 &&
	       n->factor[1]->dtype != TN_F32;
}

bool loop_is_written_out(const loop_kernel *k, const loop_node *n)
{
	int64_t size = n->unroll, length = k->var[n->var].extent;
	bool cut = false, ends = length % (size > 0 ? size : 1) == 0;

	if (n->kind != LOOP_FOR || n->lanes > 1 || size < 1 || n->backward ||
		n->parallel || n->by_warp || n->n_clip > 0 || n->n_needs > 0 ||
		size > loop_first(n)->unroll)
		return false;
	for (const loop_node *u = n->up; u != NULL; u = u->up) {
		if (u->var != n->var || !loop_is_loop(u))
			continue;
		if (u->kind == LOOP_SPAN && !cut)
			return u->hi - u->lo == size &&
			       loop_block_around(u, u->var) == NULL;
		if (u->kind == LOOP_SPAN ? u->lo % size != 0 || u->hi % size != 0
		    : cut		 ? u->size % size != 0
					 : u->size != size)
			return false;
		ends |= u->kind == LOOP_SPAN;
		cut = true;
	}
	return cut ? ends : length == size;
}

bool loop_has_abreast(const loop_kernel *k, const loop_node *n)
{
	int32_t buf = loop_is_loop(n) ? -1 : k->buf_of[n->eqn][0];

	if (buf >= 0 && k->buf[buf].where == LOOP_REGISTER && k->buf[buf].elems > 1)
		return true;
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_has_abreast(k, n->child[i]))
			return true;
	return false;
}
