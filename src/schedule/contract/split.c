/*
 * split.c: splits loops by residues, if only the iterations of one residue read
 * neighbours.
 *
 * Lanes run along the pixels of one residue, and read whole vectors: the gradients of
 * strided pooling and of depthwise convolutions. (Sums of products have equations of
 * their own for each residue: system/residues.c.)
 *
 *   for h < 64 { o[h] += g[(h + 1)/2 - q] }  ->
 *   for r < 2 { for h < 32 { o[2*h + r] += g[h + (r + 1)/2 - q] } }
 */
#include "schedule/contract/contract.h"

enum { MOST_VARIABLES = 60 };

struct split {
	loop_kernel *k;
	int32_t v, outer; /* v becomes the residue */
	int64_t by;
	ix_dom dom;
	const ix_form **with;
};

static void prepare(struct split *w)
{
	loop_kernel *k = w->k;
	int32_t n = k->n_vars;
	int64_t *extent = arena_array(k->a, int64_t, n + 2);

	w->outer = n;
	for (int32_t i = 0; i < n; i++)
		extent[i] = k->var[i].extent;
	extent[n] = extent[w->v] / w->by;
	extent[w->v] = w->by;
	w->dom = (ix_dom){{n + 1, extent}, 0, NULL};
	w->with = arena_array(k->a, const ix_form *, n + 1);
	for (int32_t i = 0; i < n; i++)
		w->with[i] = ix_axis(k->s->x, &w->dom, i);
	w->with[w->v] = ix_add(k->s->x, &w->dom, w->with[w->v],
		ix_scale(k->s->x, ix_axis(k->s->x, &w->dom, n), w->by));
}

static const expr *put(const struct split *w, const expr *e)
{
	return e == NULL ? NULL
			 : ex_subst(w->k->s, &w->dom, e, w->outer,
				   w->k->dom.box.extent, w->with, NULL, NULL);
}

struct strides {
	const loop_kernel *k;
	int32_t v;
	int64_t extent;
	bool all; /* each form that uses v has a stride along it */
};

static void on_form(void *arg, const expr *e)
{
	struct strides *x = arg;
	int64_t s;

	if (e->form != NULL && (loop_form_vars(e->form) & BIT(x->v)) != 0)
		x->all &= ix_stride(e->form, x->v, x->extent, &s);
}

static bool has_strides(const struct split *w, const expr *e, int32_t v,
	int64_t extent)
{
	struct strides x = {w->k, v, extent, true};

	loop_walk(w->k->a, e, on_form, &x);
	return x.all;
}

/* Do reads along the lanes jump now, and not any more along the new loop? */
static bool smooths(const struct split *w, const loop_eqn *e)
{
	loop_kernel *k = w->k;
	int64_t n = k->var[w->v].extent, s;

	if ((e->left & BIT(w->v)) == 0 || e->push || e->e->n_out != 1 ||
		!ix_stride(e->at, w->v, n, &s) || s != 1 ||
		n / w->by < machine_lanes(k->machine,
			(int32_t)dtype_size(e->acc[0])))
		return false;
	return !has_strides(w, e->body[0], w->v, n) &&
	       has_strides(w, put(w, e->body[0]), w->outer, n / w->by);
}

static bool only_plain_loops(const loop_node *n, int32_t v)
{
	if (n->var == v && loop_is_loop(n) &&
		(n->kind != LOOP_FOR || n->backward))
		return false;
	for (int32_t i = 0; i < n->n_child; i++)
		if (!only_plain_loops(n->child[i], v))
			return false;
	return true;
}

static void change_tree(const struct split *w, loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		change_tree(w, n->child[i]);
	if (n->kind != LOOP_FOR || n->var != w->v)
		return;
	loop_node *inner = arena_copy(w->k->a, n, sizeof *n);

	n->child = arena_array(w->k->a, loop_node *, 1);
	n->child[0] = inner;
	n->n_child = 1;
	n->var = w->outer;
}

static void change_trees(const struct split *w)
{
	loop_kernel *k = w->k;

	for (int32_t i = 0; i < k->n_roots; i++)
		change_tree(w, k->root[i]);
	for (int32_t i = 0; i < k->phase[0].n_roots; i++)
		change_tree(w, k->phase[0].root[i]);
	loop_link(k);
}

/* Can the outer loop be split, and is this an improvement? */
static bool may_split(struct split *w)
{
	loop_kernel *k = w->k;
	bool any = false;

	if (k->var[w->v].extent % w->by != 0 ||
		k->var[w->v].extent <= w->by)
		return false;
	prepare(w);
	for (int32_t i = 0; i < k->n_eqns; i++)
		any |= smooths(w, &k->eqn[i]);
	return any && only_plain_loops(k->root[0], w->v) &&
	       only_plain_loops(k->phase[0].root[0], w->v);
}

void contract_split(loop_kernel *k)
{
	struct split w = {.k = k};

	if (k->n_roots != 1 || k->phase[0].n_roots != 1 || k->n_phases != 1)
		return;
	for (const loop_node *n = k->root[0];
		n->kind == LOOP_FOR && k->var[n->var].kind == AXIS_P &&
		k->n_vars < MOST_VARIABLES;
		n = n->child[0]) {
		w.v = n->var;
		for (w.by = 2; w.by <= k->machine->product.most_residues;
			w.by++)
			if (may_split(&w) &&
				loop_change_split(k, w.v, w.by)) {
				change_trees(&w);
				loop_decide(k, DECIDE_RESIDUES_LANES, w.v, -1,
					w.by, 0);
				break;
			}
		if (n->n_child != 1)
			break;
	}
}
