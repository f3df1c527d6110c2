/*
 * join.c: joins two short axes of columns, and the axes of sums.
 *
 * Consumes a kernel whose two innermost outer loops are adjacent in the result
 * and walk the same factor of a product, and whose inner one does not fill the
 * lanes well: the pixels of a small image. They become one variable; subscripts
 * that need them separately use its digits, and such factors are copied into
 * panels.
 *
 *   for y < 14 { for x < 14 { o[14*y + x] += w[k] * in[.. y .. x ..] } }   ->
 *   for z < 196 { o[z] += w[k] * in[.. z / 14 .. z % 14 ..] }
 *
 * Where blocks of warps copy both factors, the loops of a sum become one as well:
 * its terms come in pieces of equal length, whatever they are called, and the copies
 * take elements at digits of their number. A convolution is then a product like any
 * other one.
 *
 *   for c < 64 { for h < 3 { for w < 3 { o += x[.. c, y + h, x + w ..] * .. } } }  ->
 *   for k < 576 { o += x[.. k / 9, y + k / 3 % 3, x + k % 3 ..] * .. }
 */
#include "schedule/contract/contract.h"

struct join {
	loop_kernel *k;
	int32_t y, x, z; /* outer, inner, both */
};

/* The outer one of the last two outer loops; NULL: there are not two. */
static loop_node *last_two(const loop_kernel *k, loop_node *n)
{
	loop_node *at = NULL;

	for (; n->kind == LOOP_FOR && k->var[n->var].kind == AXIS_P &&
		!n->backward && n->n_child == 1;
		n = n->child[0])
		if (n->child[0]->kind == LOOP_FOR &&
			k->var[n->child[0]->var].kind == AXIS_P &&
			!n->child[0]->backward)
			at = n;
	return at;
}

struct follow {
	struct join *w;
	bool guards; /* guards count, too */
	bool apart;
};

static void on_read(void *arg, const expr *e)
{
	struct follow *f = arg;
	loop_kernel *k = f->w->k;
	int64_t ny = k->var[f->w->y].extent, nx = k->var[f->w->x].extent;
	int64_t sy, sx;

	f->apart |= (e->kind == EX_READ ||
			    (f->guards && e->kind == EX_INSIDE)) &&
		    (!loop_stride(e->form, f->w->y, ny, &sy) ||
			    !loop_stride(e->form, f->w->x, nx, &sx) ||
			    sy != sx * nx);
}

/*
 * Do rows not fill panels, but are contiguous in memory, so that a panel may
 * begin in one row and end in the next?
 */
static bool wastes(struct join *w, const contract_terms *t, int64_t lanes)
{
	int64_t nx = w->k->var[w->x].extent;
	int64_t all = contract_ceil(nx, 2 * lanes) * 2 * lanes;
	struct follow f = {w, false, false};

	for (int32_t i = 0; i < 2; i++)
		loop_walk(w->k->a, t->f[i], on_read, &f);
	return all * 100 > nx * (100 + w->k->machine->product.join_waste) &&
	       !f.apart;
}

/*
 * Do both walk only one factor of the product, and are they adjacent in the
 * result?
 */
static bool helps(struct join *w, const loop_eqn *e)
{
	loop_kernel *k = w->k;
	int64_t ny = k->var[w->y].extent, nx = k->var[w->x].extent, sy, sx;
	loop_set both = BIT(w->y) | BIT(w->x);
	int64_t lanes;
	contract_terms t;

	if (!contract_is_product(k, e) ||
		!contract_factors(k, e, &t) ||
		!loop_stride(e->at, w->y, ny, &sy) ||
		!loop_stride(e->at, w->x, nx, &sx) || sx != 1 || sy != nx)
		return false;
	lanes = machine_lanes(k->machine, (int32_t)dtype_size(e->acc[0]));
	if ((100 * nx >= k->machine->product.join_lanes * lanes &&
		    !wastes(w, &t, lanes)) ||
		nx * ny < lanes)
		return false;
	for (int32_t i = 0; i < 2; i++)
		if ((loop_expr_vars(k, t.f[i]) & both) == both &&
			(loop_expr_vars(k, t.f[1 - i]) & both) == 0)
			return true;
	return false;
}

/*
 * Does a statement have its own sliding window along these axes? With one axis
 * its reads are vectors, with the joined axis they are element by element or
 * masked, which is worse unless rows are shorter than a vector.
 */
static bool tears(struct join *w, const loop_eqn *e)
{
	int64_t lanes = machine_lanes(
		w->k->machine, (int32_t)dtype_size(e->acc[0]));
	struct follow f = {w, true, false};

	for (int32_t i = 0; i < e->e->n_out; i++)
		loop_walk(w->k->a, e->body[i], on_read, &f);
	return f.apart && w->k->var[w->x].extent >= lanes;
}

/* Replaces each loop over y, and the one over x in it, by one loop. */
static void change_tree(const struct join *w, loop_node *n)
{
	if (n->kind == LOOP_FOR && n->var == w->y) {
		n->var = w->z;
		n->n_child = n->child[0]->n_child;
		n->child = n->child[0]->child;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		change_tree(w, n->child[i]);
}

static void change_trees(struct join *w)
{
	loop_kernel *k = w->k;

	w->z = k->n_vars - 1;
	for (int32_t i = 0; i < k->n_roots; i++)
		change_tree(w, k->root[i]);
	for (int32_t i = 0; i < k->phase[0].n_roots; i++)
		change_tree(w, k->phase[0].root[i]);
	loop_link(k);
}

void contract_join(loop_kernel *k)
{
	loop_node *two;
	struct join w = {.k = k};
	bool any = false, torn = false;
	int32_t by = -1;

	if (k->n_roots != 1 || k->phase[0].n_roots != 1 || k->n_vars >= 62)
		return;
	two = last_two(k, k->root[0]);
	if (two == NULL)
		return;
	w.y = two->var;
	w.x = two->child[0]->var;
	for (int32_t i = 0; i < k->n_eqns; i++) {
		if (helps(&w, &k->eqn[i]))
			any = true;
		else if (tears(&w, &k->eqn[i])) {
			torn = true;
			by = i;
		}
	}
	if (any && torn)
		loop_decide(k, DECIDE_JOIN_TORN, w.y, by, 0, 0);
	if (!any || torn || !loop_change_join(k, w.y, w.x))
		return;
	change_trees(&w);
	loop_decide(k, DECIDE_JOIN_TAKEN, w.y, w.x, k->var[w.z].extent, 0);
}

/* ---- sums ---- */

/*
 * Does every loop over y or x below n stand in such a pair: over y, and in it one
 * over x and nothing else?
 */
static bool are_pairs(const struct join *w, const loop_node *n)
{
	if (loop_is_loop(n) && (n->var == w->y || n->var == w->x)) {
		const loop_node *x = n->child[0];

		if (n->var != w->y || n->kind != LOOP_FOR || n->backward ||
			n->n_child != 1 || x->kind != LOOP_FOR ||
			x->var != w->x || x->backward)
			return false;
		n = x;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		if (!are_pairs(w, n->child[i]))
			return false;
	return true;
}

/* Finds two loops, one in the other, that the sum of a product walks. */
static bool find_sums(struct join *w, const loop_node *n, const loop_eqn *e)
{
	if (n->kind == LOOP_FOR && n->n_child == 1 &&
		n->child[0]->kind == LOOP_FOR &&
		(e->reduced & BIT(n->var)) != 0 &&
		(e->reduced & BIT(n->child[0]->var)) != 0) {
		w->y = n->var;
		w->x = n->child[0]->var;
		return true;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		if (find_sums(w, n->child[i], e))
			return true;
	return false;
}

static bool join_sum(struct join *w, int32_t eqn)
{
	loop_kernel *k = w->k;
	const loop_node *root = k->root[0];

	if (!contract_is_product(k, &k->eqn[eqn]) ||
		!find_sums(w, root, &k->eqn[eqn]) || !are_pairs(w, root) ||
		!are_pairs(w, k->phase[0].root[0]) ||
		!loop_change_join(k, w->y, w->x))
		return false;
	change_trees(w);
	loop_decide(k, DECIDE_JOIN_SUM, w->y, w->x, k->var[w->z].extent, 0);
	return true;
}

void contract_join_sums(loop_kernel *k)
{
	struct join w = {.k = k};

	if (k->machine->block.warps < 2 || k->n_roots != 1 ||
		k->phase[0].n_roots != 1)
		return;
	for (int32_t i = 0; i < k->n_eqns; i++)
		while (join_sum(&w, i))
			;
}
