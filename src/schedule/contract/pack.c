/*
 * pack.c: copies of the factors of a product, in the order in which tiles read them.
 *
 * Consumes a factor, which may be any expression; adds an equation that copies it,
 * and the loops that do so, to the body of a block, or as a phase before all others.
 * The factor is then a read of the copy.
 *
 *   y[64 k + j]  ->  pack[k, j], a panel of columns; pack[k / 2, j, k mod 2] for
 *   instructions that add up two neighbours along the sum
 */
#include "schedule/contract/contract.h"

/*
 * Adds an equation that copies the factor, which is then replaced by a read of
 * the copy.
 */
static int32_t add_pack(contract *c, const expr *from, tn_dtype acc, int32_t n,
	const int32_t *var, const expr **read)
{
	loop_kernel *k = c->k;
	int32_t i;

	if (from->dtype != acc) /* a factor of matrix instructions stays */
		from = dtype_size(acc) < dtype_size(from->dtype)
			       ? contract_as_short(k, from, acc)
			       : ex_cast(k->s, acc, from);
	i = loop_add_copy(k, from, n, var);
	*read = ex_read(k->s, k->eqn[i].e->out[0], k->eqn[i].at);
	return i;
}

/* The dtype of a copy: that of the sum, or what matrix instructions take. */
static tn_dtype packed(
	const contract *c, const contract_product *p, const expr *of)
{
	return p->dot > 0  ? of->dtype
	       : p->matrix ? p->taken[of == p->y]
			   : c->k->eqn[p->eqn].acc[0];
}

/*
 * Orders the factor's variables inside the blocks: rows, sums, then that of the
 * lanes.
 */
static int32_t order_vars(const contract *c, const contract_product *p,
	loop_set in, int32_t last, int32_t *var)
{
	int32_t n = 0;

	for (int32_t pass = 0; pass < 2; pass++)
		for (int32_t v = 0; v < c->k->n_vars; v++)
			if ((in & BIT(v)) != 0 && v != last &&
				((p->sums & BIT(v)) != 0) == (pass == 1))
				var[n++] = v;
	if (last >= 0 && (in & BIT(last)) != 0)
		var[n++] = last;
	return n;
}

/* Transposes squares in registers: reads along v, writes along j. */
static loop_node *turned(
	contract *c, const contract_product *p, int32_t eqn, int32_t v)
{
	loop_node *s = contract_leaf(c, LOOP_STAGE, eqn);

	s->var = v;
	s->row_var = p->j;
	s->lanes = p->lanes;
	return s;
}

static bool may_turn(const contract *c, const expr *y, int32_t lanes)
{
	int64_t size = (int64_t)dtype_size(y->dtype);

	return c->k->machine->block.warps == 1 && /* else rows are dealt to warps */
	       y->kind == EX_READ && loop_param(c->k, y->tensor) >= 0 &&
	       !ix_has_fun(y->form) && (size == 4 || size == 8) &&
	       lanes == machine_lanes(c->k->machine, (int32_t)size);
}

/*
 * Restricts the copy, which walks `in`, to the elements that are needed: by guards
 * of the loops outside of it, and of those of its own that are in `of`.
 */
static void put_needs(contract *c, const contract_product *p, loop_set in,
	loop_set of, loop_node *copy)
{
	for (int32_t i = 0; i < p->n_needs; i++) {
		loop_set all = loop_form_vars(p->need[i].f), v = all & of;
		loop_node *at = copy, *n;
		ix_fact *list;

		if (v == 0 && (all & in) != 0)
			continue;
		for (n = copy; n->n_child == 1; n = n->child[0])
			if (n->kind == LOOP_FOR && (v & p->sums & BIT(n->var)))
				at = n;
		list = arena_array(c->k->a, ix_fact, at->n_needs + 1);
		for (int32_t k = 0; k < at->n_needs; k++)
			list[k] = at->need[k];
		list[at->n_needs++] = p->need[i];
		at->need = list;
	}
}

struct guarded {
	loop_kernel *k;
	loop_set vars;
	int32_t j;
	bool digits; /* a guard uses digits of the variable of the lanes */
};

static void on_form(void *arg, const expr *e)
{
	struct guarded *g = arg;
	int64_t s;

	g->digits |= e->form != NULL &&
		     !ix_stride(e->form, g->j, g->k->var[g->j].extent, &s);
}

static void on_guard(void *arg, const expr *e)
{
	struct guarded *g = arg;

	if (e->kind != EX_SELECT)
		return;
	g->vars |= loop_expr_vars(g->k, e->arg[0]);
	loop_walk(g->k->a, e->arg[0], on_form, g);
}

/*
 * If guards of y use digits of columns, the sums are walked inside the lanes,
 * and those that guards depend on outside of the others: so a mask of a vector
 * of columns is computed once for all iterations for which it holds. Returns
 * the sums inside the lanes; *asked: those of the guards.
 */
static loop_set sums_inside(const contract *c, const contract_product *p,
	const expr *y, int32_t j, loop_set *asked)
{
	struct guarded g = {c->k, 0, j, false};

	loop_walk(c->k->a, y, on_guard, &g);
	*asked = g.vars & p->sums;
	if (c->k->machine->block.warps > 1 && *asked == p->sums)
		return 0; /* rows are dealt to the warps */
	return g.digits ? p->sums : 0;
}

/* Puts v behind the others. */
static void move_last(int32_t n, int32_t *var, int32_t v)
{
	int32_t m = 0;

	for (int32_t i = 0; i < n; i++)
		if (var[i] != v)
			var[m++] = var[i];
	if (m < n)
		var[m] = v;
}

/* Makes the loops of the copy of a factor; the last variable has the lanes. */
static loop_node *in_rows(contract *c, const contract_product *p,
	const expr *of, int32_t eqn, int32_t n, const int32_t *var)
{
	arena *a = c->k->a;
	loop_set asked, inside = sums_inside(c, p, of, var[n - 1], &asked);
	loop_node *copy = contract_leaf(c, LOOP_STMT, eqn);

	for (int32_t pass = 0; pass < 2; pass++)
		for (int32_t i = n - 2; i >= 0; i--)
			if ((inside & BIT(var[i])) != 0 &&
				((asked & BIT(var[i])) != 0) == (pass == 1))
				copy = loop_node_for(a, var[i], copy);
	copy = loop_node_for(a, var[n - 1], copy);
	loop_take_lanes(c->k, copy);
	for (int32_t i = n - 2; i >= 0; i--)
		if ((inside & BIT(var[i])) == 0)
			copy = loop_node_for(a, var[i], copy);
	return copy;
}

/* The loops of a copy of y in which neighbours along the sum adjoin, for each column. */
static loop_node *in_groups(contract *c, const contract_product *p, int32_t eqn,
	int32_t n, const int32_t *var)
{
	loop_node *copy = turned(c, p, eqn, p->s);

	c->k->eqn[eqn].group = p->dot;
	c->k->eqn[eqn].group_var = p->s;
	for (int32_t i = n - 2; i >= 0; i--)
		if (var[i] != p->s)
			copy = loop_node_for(c->k->a, var[i], copy);
	return copy;
}

/* Copies y in the body of a panel; later reads of y use the copy. */
void contract_pack_y(contract *c, contract_product *p, loop_node *panel)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	loop_set in = loop_expr_vars(k, p->y) & (p->columns | p->sums);
	const expr *y = p->y;
	loop_node *copy;
	int64_t s;

	in = (in & p->sums) | BIT(p->j);
	n = order_vars(c, p, in, contract_last_of(c, p, y, p->j, p->s), var);
	eqn = add_pack(c, y, packed(c, p, y), n, var, &p->y);
	if (p->dot > 0) {
		copy = in_groups(c, p, eqn, n, var);
		put_needs(c, p, in, in, copy);
		loop_node_adopt(k->a, panel, copy);
		return;
	}
	if (y->dtype == k->eqn[p->eqn].acc[0] && may_turn(c, y, p->lanes) &&
		 !contract_adjoins(k, y->form, p->j))
		for (int32_t i = n - 2; i >= 0; i--)
			if (contract_adjoins(k, y->form, var[i]) &&
				contract_extent(c, var[i]) >= p->lanes &&
				ix_stride(y->form, p->j,
					k->var[p->j].extent, &s)) {
				int32_t v = var[i];

				copy = turned(c, p, eqn, v);
				for (i = n - 2; i >= 0; i--)
					if (var[i] != v)
						copy = loop_node_for(
							k->a, var[i], copy);
				put_needs(c, p, in, in, copy);
				loop_node_adopt(k->a, panel, copy);
				return;
			}
	move_last(n, var, contract_lanes_of(c, p, y, var[n - 1],
		var[n - 1] == p->s ? p->j : p->s));
	copy = in_rows(c, p, y, eqn, n, var);
	if (!p->matrix) /* instructions take whole pieces */
		put_needs(c, p, in, in, copy);
	loop_node_adopt(k->a, panel, copy);
}

/* A copy of x in which the terms of a row adjoin. */
static void let_adjoin(contract *c, const contract_product *p, int32_t eqn)
{
	c->k->eqn[eqn].group = 1;
	c->k->eqn[eqn].group_var = p->s;
}

/* Does leaf b read values of loop a's leaves only as they are made: its own elements, and
 * no sums but those of one term? */
static bool reads_own(loop_kernel *k, const loop_node *a, const loop_node *b)
{
	for (int32_t i = 0; i < a->n_child; i++) {
		const loop_node *n = a->child[i];
		const loop_eqn *e = &k->eqn[n->eqn];

		for (int32_t j = 0; j < e->e->n_out; j++)
			if ((n->kind != LOOP_STMT &&
				    (n->kind != LOOP_INIT || e->reduced != 0)) ||
				(e->e->monoid != IR_SET && e->reduced != 0 &&
					loop_leaf_reads(k, b, e->e->out[j])) ||
				!loop_leaf_reads_at(k, b, e->e->out[j], e->at))
				return false;
	}
	return true;
}

/* Does a statement below n make what leaf b reads? */
static bool makes_for(loop_kernel *k, const loop_node *n, const loop_node *b)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (makes_for(k, n->child[i], b))
			return true;
	return !loop_is_loop(n) && loop_leaf_reads(k, b, k->eqn[n->eqn].e->out[0]);
}

/* The innermost loop of nest a, if it walks the variables of b, in their order, and has
 * statements alone that the leaf of b can follow; else NULL. */
static loop_node *joins(loop_kernel *k, loop_node *a, const loop_node *b)
{
	for (;; a = a->child[0], b = b->child[0]) {
		if (a->kind != LOOP_FOR || b->kind != LOOP_FOR || a->var != b->var)
			return NULL;
		if (!loop_is_loop(b->child[0]))
			break;
		if (a->n_child != 1)
			return NULL;
	}
	for (int32_t i = 0; i < a->n_child; i++)
		if (loop_is_loop(a->child[i]))
			return NULL;
	return a->n_child > 1 && b->n_child == 1 && b->child[0]->n_needs == 0 &&
			       reads_own(k, a, b->child[0])
		       ? a
		       : NULL;
}

/* The last nest of body, a copy of what a nest in front of it makes in loops over the same
 * variables, is made with that: then it may be in registers. */
static void join_copy(contract *c, loop_node *body)
{
	loop_node *b = body->child[body->n_child - 1], *leaf = b;

	while (loop_is_loop(leaf))
		leaf = leaf->child[0];
	for (int32_t i = body->n_child - 2; i >= 0; i--) {
		loop_node *a = joins(c->k, body->child[i], b);

		if (a == NULL && !makes_for(c->k, body->child[i], leaf))
			continue;
		if (a != NULL) {
			loop_node_adopt(c->k->a, a, leaf);
			body->n_child--;
		}
		return;
	}
}

/* Do the innermost loops of two nests, which walk the same variables in the same order,
 * have statements alone? Sets them. */
static bool are_alike(loop_node **a, loop_node **b)
{
	for (;; *a = (*a)->child[0], *b = (*b)->child[0]) {
		const loop_node *x = *a, *y = *b;

		if (x->kind != LOOP_FOR || y->kind != LOOP_FOR || x->var != y->var ||
			loop_is_loop(x->child[0]) != loop_is_loop(y->child[0]))
			return false;
		if (!loop_is_loop(x->child[0]))
			break;
		if (x->n_child != 1 || y->n_child != 1)
			return false;
	}
	for (int32_t i = 0; i < (*a)->n_child + (*b)->n_child; i++)
		if (loop_is_loop(i < (*a)->n_child ? (*a)->child[i]
						   : (*b)->child[i - (*a)->n_child]))
			return false;
	return true;
}

/* Can each iteration of loop a be followed by that of loop b? */
static bool may_follow(loop_kernel *k, const loop_node *a, const loop_node *b)
{
	for (int32_t j = 0; j < b->n_child; j++) {
		int32_t made = k->eqn[b->child[j]->eqn].e->out[0];

		if (b->child[j]->kind != LOOP_STMT || b->child[j]->n_needs > 0 ||
			!reads_own(k, a, b->child[j]))
			return false;
		for (int32_t i = 0; i < a->n_child; i++)
			if (loop_leaf_reads(k, a->child[i], made))
				return false;
	}
	return true;
}

void contract_join_behind(contract *c, loop_node *body)
{
	loop_node *first = body->child[body->n_child - 2], *a = first;
	loop_node *last = body->child[body->n_child - 1], *b = last, *both;
	int32_t n = 0;

	if (!are_alike(&a, &b) || !may_follow(c->k, a, b))
		return;
	both = loop_node_new(c->k->a, LOOP_FOR);
	for (int32_t i = 0; i < a->n_child + b->n_child; i++)
		loop_node_adopt(c->k->a, both,
			i < a->n_child ? a->child[i] : b->child[i - a->n_child]);
	b->child = both->child;
	b->n_child = both->n_child;
	for (int32_t i = 0; i < b->n_child; i++)
		b->child[i]->up = b;
	body->n_child--;
	body->child[body->n_child - 1] = last;
	for (int32_t i = 0; i < c->plain.n; i++)
		if (c->plain.at[i] != first)
			c->plain.at[n++] = c->plain.at[i];
	c->plain.n = n;
}

/* Copies all rows of x in the block. */
void contract_pack_x(contract *c, contract_product *p, loop_node *body)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	loop_set in = loop_expr_vars(k, p->x) & (p->rows | p->sums);
	const expr *x = p->x;
	loop_node *copy;

	n = order_vars(c, p, in,
		p->panel_x > 0 ? p->i
			       : contract_last_of(c, p, p->x, p->s, p->i),
		var);
	eqn = add_pack(c, p->x, packed(c, p, p->x), n, var, &p->x);
	k->eqn[eqn].panel = p->panel_x;
	if (p->dot > 0)
		let_adjoin(c, p, eqn);
	/* instructions of matrices and dots take terms that adjoin */
	if (p->matrix || p->dot > 0 || p->panel_x > 0) {
		if (p->panel_x == 0)
			move_last(n, var, contract_lanes_of(c, p, x, var[n - 1],
				var[n - 1] == p->s ? p->i : p->s));
		copy = in_rows(c, p, x, eqn, n, var);
		if (p->panel_x > 0)
			put_needs(c, p, in, in & p->sums, copy);
		loop_node_adopt(k->a, body, copy);
		if (p->dot > 0)
			join_copy(c, body);
		return;
	}
	copy = contract_leaf(c, LOOP_STMT, eqn);
	for (int32_t i = n - 1; i >= 0; i--)
		copy = loop_node_for(k->a, var[i], copy);
	put_needs(c, p, in, in & p->sums, copy);
	contract_put(c, body, copy);
}

/* What the phase of this copy copies, and does no more; -1: it widens what it reads. */
static int32_t copied(const contract *c, int32_t eqn)
{
	const expr *body = c->k->eqn[eqn].body[0];

	return body->kind == EX_READ ? body->tensor : -1;
}

/* The length of chunks of a copy, of whole pieces of so many. */
static int64_t chunk_of(const contract *c, int32_t var, int64_t each)
{
	int64_t size = contract_ceil(
		c->k->var[var].extent, c->k->machine->product.copy_chunks);

	return contract_ceil(size, each) * each;
}

/*
 * The chunks that copy all of y in groups: of terms, whose columns adjoin in memory; or
 * where the terms adjoin, of panels of columns, each of which is read along its terms.
 */
static loop_node *all_groups(contract *c, const contract_product *p, const expr *y,
	int32_t eqn, int32_t n, const int32_t *var)
{
	int64_t panel = (int64_t)p->lanes * p->vectors;
	loop_node *copy = in_groups(c, p, eqn, n, var);

	if (!contract_adjoins(c->k, y->form, p->s))
		return contract_block(c, var[0],
			chunk_of(c, var[0], var[0] == p->s ? p->dot : 1), copy);
	copy = contract_block(c, p->j, panel, copy);
	return contract_block(c, p->j, chunk_of(c, p->j, panel), copy);
}

/*
 * Copies a whole factor, in a separate phase; `last` is the variable that is
 * contiguous in the copy.
 */
void contract_pack_whole(contract *c, const contract_product *p, const expr **f,
	int32_t last)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	const expr *of = *f;
	loop_node *copy, *top;

	n = order_vars(c, p, loop_expr_vars(k, of), last, var);
	eqn = add_pack(c, of, packed(c, p, of), n, var, f);
	if (p->dot > 0)
		let_adjoin(c, p, eqn);
	top = contract_block(c, var[0], chunk_of(c, var[0], 1), NULL);
	if (p->dot > 0 && last == p->j) {
		top = all_groups(c, p, of, eqn, n, var);
	} else if (of->kind == EX_READ) {
		copy = contract_leaf(c, LOOP_STMT, eqn);
		for (int32_t i = n - 1; i >= 0; i--)
			copy = loop_node_for(k->a, var[i], copy);
		contract_put(c, top, copy);
	} else {
		loop_node_adopt(k->a, top, in_rows(c, p, of, eqn, n, var));
	}
	top->parallel = true;
	loop_decide(k, DECIDE_COPY_WHOLE, p->eqn, contract_tensor_of(of), 0, 0);
	*vec_push(k->a, &c->before) = top;
	*vec_push(k->a, &c->before_of) = copied(c, eqn);
}

/*
 * Copies all of x, of which rows adjoin, in panels of whole vectors and whole tiles
 * of rows: a tile reads its terms one after the other. A block of rows goes along
 * the sums, so that lines are read once and each panel is written from end to end.
 */
void contract_pack_panels(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	const expr *of = p->x;
	int64_t ext = k->var[p->i].extent, size = p->panel_x;
	loop_node *top;

	n = order_vars(c, p, loop_expr_vars(k, of), p->i, var);
	eqn = add_pack(c, of, packed(c, p, of), n, var, &p->x);
	k->eqn[eqn].panel = p->panel_x;
	size *= contract_ceil(
		contract_ceil(ext, k->machine->product.copy_chunks), size);
	top = contract_block(
		c, p->i, size, in_rows(c, p, of, eqn, n, var));
	top->parallel = true;
	loop_decide(k, DECIDE_COPY_WHOLE, p->eqn, of->tensor, 0, 0);
	*vec_push(k->a, &c->before) = top;
	*vec_push(k->a, &c->before_of) = copied(c, eqn);
}
