/*
 * build.c: builds the MapExpr of a fused kernel, over loop variables.
 *
 * Consumes a fuse_kernel: equations over their own axes, each axis a form over
 * the kernel's variables, and the loop tree. Produces bodies, initial values
 * and written addresses over variables, and the same tree. A variable that a
 * subscript cuts is split, if the cuts nest, so that subscripts become sums of
 * variables without division:
 *
 *   for i < 12 { o[i] = x[i % 4] }  ->  for i < 3 { for j < 4 { o[4*i+j] = x[j] } }
 */
#include "loop/loop.h"

#define MAX_CUTS 16

struct cuts {
	int32_t n; /* at[0] = 1 | at[1] | ... | at[n-1] = extent */
	int64_t at[MAX_CUTS];
};

struct build {
	arena *a;
	ir_system *s;
	ix *x;
	const fuse_kernel *fk;
	loop_kernel *k;
	struct cuts *cut; /* of each variable of the fuse_kernel */
	int32_t *first;	  /* its first new variable: the slowest */
};

/* Adds cut q if it divides and is divided by its neighbours. */
static void add_cut(struct cuts *c, int64_t q)
{
	int32_t i = 0, j;

	while (i < c->n && c->at[i] < q)
		i++;
	if (i == 0 || i == c->n || c->at[i] == q || c->n == MAX_CUTS)
		return;
	if (q % c->at[i - 1] != 0 || c->at[i] % q != 0)
		return;
	for (j = c->n; j > i; j--)
		c->at[j] = c->at[j - 1];
	c->at[i] = q;
	c->n++;
}

static void form_cuts(struct build *b, const ix_form *f)
{
	int32_t i;

	for (i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_DIGIT) {
			add_cut(&b->cut[t->axis], t->lo);
			add_cut(&b->cut[t->axis], t->hi);
		} else {
			form_cuts(b, t->f);
		}
	}
}

/* Adds cuts where the axes of a tensor end that f addresses. */
static void shape_cuts(struct build *b, const sys_tensor *t, const ix_form *f)
{
	int32_t i, d;

	for (i = 0; i < f->n; i++) {
		const ix_atom *m = f->t[i].atom;
		int64_t coef = f->t[i].coef, p = 1;

		if (m->kind != IX_DIGIT || m->lo != 1 || coef < 0)
			continue;
		for (d = t->rank - 1; d >= 0; d--) {
			p *= t->shape[d];
			if (p > coef && p % coef == 0)
				add_cut(&b->cut[m->axis], p / coef);
		}
	}
}

struct cut_visit {
	struct build *b;
	bool shapes;
};

static void expr_cuts(void *arg, const expr *e)
{
	struct cut_visit *v = arg;

	form_cuts(v->b, e->form);
	if (v->shapes && e->kind == EX_READ)
		shape_cuts(v->b, &v->b->s->tensor.at[e->tensor], e->form);
}

/* The expressions and addresses of an equation over the fuse_kernel's variables. */
static void over_vars(struct build *b, const fuse_eqn *fe, loop_eqn *le)
{
	const sys_eqn *e = &fe->e;
	ix_dom d = {{b->fk->n_vars, b->fk->var_extent}, 0, NULL};
	int64_t *ext = arena_array(b->a, int64_t, e->n_axes + 1);
	int32_t i;

	for (i = 0; i < e->n_axes; i++)
		ext[i] = e->axis[i].extent;
	for (i = 0; i < e->n_out; i++) {
		le->body[i] = ex_subst(b->s, &d, e->body[i], e->n_axes, ext,
			fe->axis_at, NULL, NULL);
		if (e->init[i] != NULL && e->push == NULL)
			le->init[i] = ex_subst(b->s, &d, e->init[i], e->n_left,
				ext, fe->axis_at, NULL, NULL);
	}
	le->start_at = e->push != NULL ? fe->out_at : NULL;
	for (i = 0; i < e->n_out && e->push != NULL; i++)
		if (e->init[i] != NULL) {
			int64_t numel = b->s->tensor.at[e->out[0]].numel;

			le->init[i] = ex_subst(b->s, &d, e->init[i], 1, &numel,
				&le->start_at, NULL, NULL);
		}
	if (e->push != NULL)
		le->at = ix_subst(
			b->x, &d, e->push, e->n_axes, ext, fe->axis_at);
	else
		le->at = ix_linearise(b->x, &d, e->n_left, ext, fe->axis_at);
	for (i = 0; i < e->n_axes; i++) {
		loop_set v = loop_form_vars(fe->axis_at[i]);

		if (e->axis[i].kind == AXIS_R)
			le->reduced |= v;
		else
			le->left |= v;
	}
	le->tail = fe->tail;
	le->scan_var = e->scan_axis < 0
			       ? -1
			       : fe->axis_at[e->scan_axis]->t[0].atom->axis;
}

/* The anchor is first: if cuts do not nest, its shape is kept. */
static void gather_cuts(struct build *b, bool shapes)
{
	loop_kernel *k = b->k;
	int32_t i, j, n;

	for (n = 0; n < k->n_eqns; n++) {
		loop_eqn *e = &k->eqn[i = n == 0	   ? k->anchor
					  : n <= k->anchor ? n - 1
							   : n];
		struct cut_visit v = {b, false};

		form_cuts(b, e->at);
		if (e->push)
			form_cuts(b, e->start_at);
		for (j = 0; j < e->e->n_out; j++) {
			loop_walk(b->a, e->body[j], expr_cuts, &v);
			if (e->init[j] != NULL)
				loop_walk(b->a, e->init[j], expr_cuts, &v);
		}
		if (shapes && !e->push)
			shape_cuts(b, &b->s->tensor.at[e->e->out[0]], e->at);
	}
	for (i = 0; shapes && i < k->n_eqns; i++) {
		struct cut_visit v = {b, true};

		for (j = 0; j < k->eqn[i].e->n_out; j++)
			loop_walk(b->a, k->eqn[i].body[j], expr_cuts, &v);
	}
}

static loop_set split_set(const struct build *b, loop_set s)
{
	loop_set out = 0;
	int32_t v, j;

	for (v = 0; v < b->fk->n_vars; v++)
		for (j = 0; s >> v & 1 && j < b->cut[v].n - 1; j++)
			out |= (loop_set)1 << (b->first[v] + j);
	return out;
}

/* Is no variable cut? Then each is one new variable of the same number. */
static bool is_whole(const struct build *b)
{
	for (int32_t v = 0; v < b->fk->n_vars; v++)
		if (b->cut[v].n != 2)
			return false;
	return true;
}

/* Replaces every old variable by a sum of new ones, in all forms. */
static void split_vars(struct build *b)
{
	const fuse_kernel *fk = b->fk;
	loop_kernel *k = b->k;
	const ix_form **with = arena_array(
		b->a, const ix_form *, fk->n_vars + 1);
	int32_t v, i, j;

	for (i = 0; i < k->n_eqns && is_whole(b); i++)
		if (!k->eqn[i].push)
			k->eqn[i].start_at = k->eqn[i].at;
	if (is_whole(b))
		return;
	for (v = 0; v < fk->n_vars; v++) {
		const struct cuts *c = &b->cut[v];

		with[v] = ix_const(b->x, 0);
		for (j = 0; j < c->n - 1; j++)
			with[v] = ix_add(b->x, &k->dom, with[v],
				ix_scale(b->x,
					ix_axis(b->x, &k->dom, b->first[v] + j),
					c->at[c->n - 2 - j]));
	}
	for (i = 0; i < k->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		for (j = 0; j < e->e->n_out; j++) {
			e->body[j] = ex_subst(b->s, &k->dom, e->body[j],
				fk->n_vars, fk->var_extent, with, NULL, NULL);
			if (e->init[j] != NULL)
				e->init[j] = ex_subst(b->s, &k->dom, e->init[j],
					fk->n_vars, fk->var_extent, with, NULL,
					NULL);
		}
		e->at = ix_subst(
			b->x, &k->dom, e->at, fk->n_vars, fk->var_extent, with);
		if (e->push)
			e->start_at = ix_subst(b->x, &k->dom, e->start_at,
				fk->n_vars, fk->var_extent, with);
		if (!e->push)
			e->start_at = e->at;
		e->left = split_set(b, e->left);
		e->reduced = split_set(b, e->reduced);
		if (e->scan_var >= 0)
			e->scan_var = b->first[e->scan_var];
	}
}

static void new_vars(struct build *b)
{
	const fuse_kernel *fk = b->fk;
	loop_kernel *k = b->k;
	int32_t v, j, n = 0;
	int64_t *ext;

	for (v = 0; v < fk->n_vars; v++) {
		if (fk->var[v].kind == AXIS_S)
			b->cut[v].n = 2, b->cut[v].at[1] = fk->var[v].extent;
		n += b->cut[v].n - 1;
	}
	for (v = 0; n > IX_MAX_AXES && v < fk->n_vars; v++)
		b->cut[v].n = 2, b->cut[v].at[1] = fk->var[v].extent;
	k->n_vars = 0;
	for (v = 0; v < fk->n_vars; v++) {
		b->first[v] = k->n_vars;
		k->n_vars += b->cut[v].n - 1;
	}
	k->var = arena_array(b->a, loop_var, k->n_vars + 1);
	ext = arena_array(b->a, int64_t, k->n_vars + 1);
	for (v = 0; v < fk->n_vars; v++) {
		const struct cuts *c = &b->cut[v];

		for (j = 0; j < c->n - 1; j++) {
			int32_t w = b->first[v] + j;

			ext[w] = c->at[c->n - 1 - j] / c->at[c->n - 2 - j];
			k->var[w].extent = ext[w];
			k->var[w].kind = fk->var[v].kind;
		}
	}
	k->dom = (ix_dom){{k->n_vars, ext}, 0, NULL};
}

static loop_node *tree(struct build *b, const fuse_node *f, int32_t *n_names)
{
	loop_node *top = NULL, *n = NULL;
	int32_t i;

	if (f->kind != FUSE_LOOP) {
		n = arena_make(b->a, loop_node);
		n->kind = f->kind == FUSE_INIT ? LOOP_INIT : LOOP_STMT;
		n->eqn = f->eqn;
		return n;
	}
	for (i = 0; i < b->cut[f->var].n - 1; i++) {
		loop_node *m = arena_make(b->a, loop_node);

		m->kind = LOOP_FOR;
		m->number = -1;
		m->var = b->first[f->var] + i;
		if (b->k->var[m->var].name == NULL)
			b->k->var[m->var].name = arena_printf(
				b->a, "i_%d", (*n_names)++);
		if (top == NULL) {
			top = m;
		} else {
			n->n_child = 1;
			n->child = arena_array(b->a, loop_node *, 1);
			n->child[0] = m;
		}
		n = m;
	}
	n->n_child = f->n_child;
	n->child = arena_array(b->a, loop_node *, f->n_child + 1);
	for (i = 0; i < f->n_child; i++)
		n->child[i] = tree(b, f->child[i], n_names);
	return top;
}

static void params(struct build *b)
{
	const fuse_kernel *fk = b->fk;
	int32_t *p = arena_array(
		b->a, int32_t, fk->n_outputs + fk->n_inputs + 1);
	int32_t i, n = 0;

	for (i = 0; i < fk->n_outputs; i++)
		p[n++] = fk->output[i];
	for (i = 0; i < fk->n_inputs; i++)
		p[n++] = fk->input[i];
	b->k->param = p;
	b->k->n_params = n;
	b->k->n_outputs = fk->n_outputs;
}

loop_kernel *loop_build(
	arena *a, ir_system *s, const fuse_kernel *fk, bool with_shapes)
{
	struct build b = {a, s, s->x, fk, arena_make(a, loop_kernel),
		arena_array(a, struct cuts, fk->n_vars + 1),
		arena_array(a, int32_t, fk->n_vars + 1)};
	loop_kernel *k = b.k;
	int32_t i, j, n_names = 0;

	k->a = a;
	k->s = s;
	k->name = fk->name;
	k->anchor = fk->anchor;
	k->n_eqns = fk->n_eqns;
	k->eqn = arena_array(a, loop_eqn, fk->n_eqns + 1);
	for (i = 0; i < fk->n_vars; i++)
		b.cut[i] = (struct cuts){2, {1, fk->var[i].extent}};
	for (i = 0; i < fk->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		e->e = &fk->eqn[i].e;
		e->push = e->e->push != NULL;
		e->reversed = e->e->scan_step < 0;
		for (j = 0; j < e->e->n_out; j++) {
			e->acc[j] = loop_natural_acc(k, e, j);
		}
		over_vars(&b, &fk->eqn[i], e);
	}
	gather_cuts(&b, with_shapes);
	new_vars(&b);
	split_vars(&b);
	k->n_roots = fk->n_roots;
	k->root = arena_array(a, loop_node *, fk->n_roots + 1);
	for (i = 0; i < fk->n_roots; i++)
		k->root[i] = tree(&b, fk->root[i], &n_names);
	for (i = 0; i < k->n_vars; i++)
		if (k->var[i].name == NULL)
			k->var[i].name = arena_printf(a, "i_%d", n_names++);
	params(&b);
	loop_link(k);
	return k;
}
