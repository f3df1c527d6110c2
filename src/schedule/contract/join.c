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
 * In the gradient of a convolution by its weights, the taps of all channels are one
 * axis, if the estimate says that the copies, element by element, are worth it:
 *
 *   for c < 64 { for h < 3 { for w < 3 { o[9*c + 3*h + w] += .. } } }  ->
 *   for z < 576 { o[z] += .. x[.. z / 9, y + z / 3 % 3, x + z % 3] .. }
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

enum { MOST_VARIABLES = 62 };

struct join {
	loop_kernel *k;
	int32_t y, x, z; /* outer, inner, both */
	const loop_node *around; /* the loop around y that may be joined, too; or NULL */
	bool again; /* x was joined before: its factor is copied in any case */
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
		    (!ix_stride(e->form, f->w->y, ny, &sy) ||
			    !ix_stride(e->form, f->w->x, nx, &sx) ||
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
	       (!f.apart || w->again);
}

/* The factor that walks all these variables, if the other one walks none; or -1. */
static int32_t factor_of(loop_kernel *k, const contract_terms *t, loop_set vars)
{
	for (int32_t i = 0; i < 2; i++)
		if ((loop_expr_vars(k, t->f[i]) & vars) == vars &&
			(loop_expr_vars(k, t->f[1 - i]) & vars) == 0)
			return i;
	return -1;
}

/* Are both and the loop around one axis of the result, and walk the same factor? */
static bool goes_on(const struct join *w, const loop_eqn *e, const contract_terms *t)
{
	loop_kernel *k = w->k;
	int64_t both = k->var[w->y].extent * k->var[w->x].extent, s;
	int32_t v = w->around == NULL ? -1 : w->around->var;

	return v >= 0 && ix_stride(e->at, v, k->var[v].extent, &s) && s == both &&
	       factor_of(k, t, BIT(v) | BIT(w->y) | BIT(w->x)) >= 0;
}

/*
 * Do both walk only one factor of the product, and are they adjacent in the
 * result?
 */
static bool helps(struct join *w, const loop_eqn *e)
{
	loop_kernel *k = w->k;
	int64_t ny = k->var[w->y].extent, nx = k->var[w->x].extent, sy, sx;
	int64_t lanes;
	contract_terms t;

	if (!contract_is_product(k, e) ||
		!contract_factors(k, e, &t) ||
		!ix_stride(e->at, w->y, ny, &sy) ||
		!ix_stride(e->at, w->x, nx, &sx) || sx != 1 || sy != nx)
		return false;
	lanes = machine_lanes(k->machine, (int32_t)dtype_size(e->acc[0]));
	if ((100 * nx >= k->machine->product.join_lanes * lanes &&
		    !wastes(w, &t, lanes)) ||
		(nx * ny < lanes && !goes_on(w, e, &t)))
		return false;
	return factor_of(k, &t, BIT(w->y) | BIT(w->x)) >= 0;
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

/* Finds the last two loops; false: there are not two. */
static bool begin(struct join *w, bool all)
{
	loop_kernel *k = w->k;
	const loop_node *two = k->n_vars < MOST_VARIABLES ? last_two(k, k->root[0]) : NULL;
	const loop_node *u = two == NULL ? NULL : two->up;

	if (two == NULL)
		return false;
	w->y = two->var;
	w->x = two->child[0]->var;
	w->around = all && u != NULL && u->kind == LOOP_FOR &&
				    k->var[u->var].kind == AXIS_P && !u->backward
			    ? u
			    : NULL;
	return true;
}

/* Joins the last two loops, if that helps; false: it does not. */
static bool join_last(struct join *w, bool all)
{
	loop_kernel *k = w->k;
	bool any = false, torn = false;
	int32_t by = -1;

	if (!begin(w, all))
		return false;
	for (int32_t i = 0; i < k->n_eqns; i++) {
		if (helps(w, &k->eqn[i]))
			any = true;
		else if (tears(w, &k->eqn[i])) {
			torn = true;
			by = i;
		}
	}
	if (any && torn)
		loop_decide(k, DECIDE_JOIN_TORN, w->y, by, 0, 0);
	if (!any || torn || !loop_change_join(k, w->y, w->x))
		return false;
	change_trees(w);
	loop_decide(k, DECIDE_JOIN_TAKEN, w->y, w->x, k->var[w->z].extent, 0);
	return true;
}

void contract_join(loop_kernel *k, bool all)
{
	struct join w = {.k = k};

	if (k->n_roots != 1 || k->phase[0].n_roots != 1)
		return;
	loop_link(k);
	while (join_last(&w, all) && all)
		w.again = true;
}

int32_t contract_joins_more(loop_kernel *k)
{
	struct join w = {.k = k};
	contract_terms t;

	if (k->n_roots != 1 || k->phase[0].n_roots != 1)
		return -1;
	loop_link(k);
	if (!begin(&w, true) || w.around == NULL)
		return -1;
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (contract_is_product(k, &k->eqn[i]) &&
			contract_factors(k, &k->eqn[i], &t) &&
			goes_on(&w, &k->eqn[i], &t))
			return w.around->var;
	return -1;
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
