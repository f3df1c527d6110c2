/*
 * scalars.c: moves statements beside loops to loops of their own, with lanes.
 *
 * If the loops in a body get the lanes, its other statements run element by element.
 * Those before and behind these loops move to copies of the loop around, where they
 * have lanes, too. The values that pass between go through buffers, and the loop is
 * cut into blocks, so that these stay in the first cache.
 *
 *   for i { a = f(x)  for j { m += a * w }  o = g(m) }   ->
 *   block i { for i { a = f(x) } for i { for j { m += a * w } } for i { o = g(m) } }
 *
 * It is done where lanes save more cycles of operations than the values cost, and no
 * small part of all. What remains has only one loop nest, so no row that several loops
 * read has to wait for another loop.
 */
#include "schedule/lanes.h"

/* A loop whose body is divided: what comes first, the loops, and what comes last. */
struct parts {
	loop_node *front, *rest, *back; /* front, back: NULL if they stay */
};

static loop_set eqns_of(const loop_node *n)
{
	loop_set s = loop_is_loop(n) ? 0 : BIT(n->eqn);

	for (int32_t i = 0; i < n->n_child; i++)
		s |= eqns_of(n->child[i]);
	return s;
}

/* Are these statements, in loops that are short, that can have lanes of var? */
static bool is_light(loop_kernel *k, const loop_node *n, int32_t var)
{
	bool light = n->kind == LOOP_FOR && n->lanes <= 1 && !n->backward &&
		     !n->parallel && n->n_needs == 0 &&
		     k->var[n->var].extent <= k->machine->schedule.short_loop;
	bool unit;

	if (!loop_is_loop(n))
		return (n->kind == LOOP_INIT || n->kind == LOOP_STMT ||
			       n->kind == LOOP_DONE) &&
		       !k->eqn[n->eqn].push && k->eqn[n->eqn].scan_var < 0 &&
		       loop_parallel_below(k, n, var) &&
		       loop_jumps(k, n, var, &unit) == 0;
	for (int32_t i = 0; i < n->n_child && light; i++)
		light = is_light(k, n->child[i], var);
	return light;
}

/* Can the iterations of var below n wait for statements before and behind them? */
static bool may_wait(loop_kernel *k, const loop_node *n, int32_t var)
{
	const loop_eqn *e = &k->eqn[n->eqn < 0 ? 0 : n->eqn];

	for (int32_t i = 0; i < n->n_child; i++)
		if (!may_wait(k, n->child[i], var))
			return false;
	return loop_is_loop(n) ||
	       (e->scan_var < 0 && !e->push && !e->stage && !e->pack &&
		       (loop_parallel_below(k, n, var) ||
			       (n->kind == LOOP_STMT &&
				       (e->reduced & BIT(var)) != 0)));
}

/* A loop as n with the children from `first` on, before `end`. */
static loop_node *piece(loop_kernel *k, const loop_node *n, int32_t first,
	int32_t end)
{
	loop_node *p = arena_copy(k->a, n, sizeof *n);

	p->child = NULL;
	p->n_child = 0;
	for (int32_t i = first; i < end; i++)
		loop_node_adopt(k->a, p, n->child[i]);
	return p;
}

static loop_set eqns_from(const loop_node *n, int32_t first, int32_t end)
{
	loop_set s = 0;

	for (int32_t i = first; i < end; i++)
		s |= eqns_of(n->child[i]);
	return s;
}

/*
 * Divides n, a loop over var or a short loop at the beginning of its body: the
 * statements at the beginning are *front. Returns the rest.
 */
static loop_node *take_front(
	loop_kernel *k, const loop_node *n, int32_t var, loop_node **front)
{
	loop_node *inner = NULL, *rest = NULL, *left;
	int32_t m = 0;

	*front = NULL;
	while (m < n->n_child && is_light(k, n->child[m], var))
		m++;
	if (m == n->n_child)
		return piece(k, n, 0, m);
	while (m > 0 && (eqns_from(n, 0, m) & eqns_from(n, m, n->n_child)) != 0)
		m--;
	if (n->child[m]->kind == LOOP_FOR && !n->child[m]->backward &&
		n->child[m]->lanes <= 1 && n->child[m]->n_needs == 0 &&
		k->var[n->child[m]->var].extent <=
			k->machine->schedule.short_loop)
		rest = take_front(k, n->child[m], var, &inner);
	left = piece(k, n, inner != NULL ? m + 1 : m, n->n_child);
	if (m > 0 || inner != NULL)
		*front = piece(k, n, 0, m);
	if (inner != NULL) {
		loop_node *first = piece(k, n, 0, 0);

		loop_node_adopt(k->a, *front, inner);
		loop_node_adopt(k->a, first, rest);
		for (int32_t i = 0; i < left->n_child; i++)
			loop_node_adopt(k->a, first, left->child[i]);
		left = first;
	}
	return left;
}

/* .. the statements at the end of a loop. */
static loop_node *take_back(
	loop_kernel *k, const loop_node *n, loop_node **back)
{
	int32_t m = n->n_child;

	*back = NULL;
	while (m > 0 && is_light(k, n->child[m - 1], n->var))
		m--;
	while (m < n->n_child &&
		(eqns_from(n, 0, m) & eqns_from(n, m, n->n_child)) != 0)
		m++;
	if (m < n->n_child)
		*back = piece(k, n, m, n->n_child);
	return piece(k, n, 0, m);
}

/* ---- what it costs ---- */

/* Operations of these statements in an iteration of the loop around. */
static double ops_of(loop_kernel *k, const loop_node *n)
{
	double sum = n->kind == LOOP_STMT ? (double)loop_flops(k, n) : 0;

	for (int32_t i = 0; i < n->n_child; i++)
		sum += ops_of(k, n->child[i]) *
		       (loop_is_loop(n->child[i])
				       ? (double)k->var[n->child[i]->var].extent
				       : 1);
	return sum;
}

static bool reads_below(loop_kernel *k, const loop_node *n, int32_t tensor)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (reads_below(k, n->child[i], tensor))
			return true;
	return !loop_is_loop(n) && loop_leaf_reads(k, n, tensor);
}

/*
 * Do those below n read, of what the equation makes, only what it has made in the same
 * iteration of var? Under a condition such as i <= 0 the read may say 0 for i.
 */
static bool reads_same(loop_kernel *k, const loop_node *n, const loop_eqn *e,
	int32_t tensor, int32_t var)
{
	int64_t step;

	for (int32_t i = 0; i < n->n_child; i++)
		if (!reads_same(k, n->child[i], e, tensor, var))
			return false;
	return loop_is_loop(n) || !loop_leaf_reads(k, n, tensor) ||
	       (ix_stride(e->at, var, k->var[var].extent, &step) &&
		       loop_leaf_reads_along(k, n, tensor, var, step));
}

/* Is what `from` makes for `to` found there, in a buffer by var? */
static bool may_pass(loop_kernel *k, const loop_node *from, const loop_node *to,
	int32_t var)
{
	loop_set made = eqns_of(from);

	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t o = 0; (made & BIT(i)) != 0 && o < k->eqn[i].e->n_out;
			o++)
			if (!reads_same(k, to, &k->eqn[i], k->eqn[i].e->out[o],
				    var))
				return false;
	return true;
}

/* The values that the statements of `from` make in an iteration of the loop over
 * var, and those of `to` read; *bytes: their memory. */
static int64_t passed(loop_kernel *k, const loop_node *from, const loop_node *to,
	loop_set inside, int64_t *bytes)
{
	loop_set made = eqns_of(from);
	int64_t all = 0;

	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t o = 0; (made & BIT(i)) != 0 && o < k->eqn[i].e->n_out;
			o++) {
			int64_t n = 1;

			if (!reads_below(k, to, k->eqn[i].e->out[o]))
				continue;
			for (int32_t v = 0; v < k->n_vars; v++)
				if ((k->eqn[i].left & inside & BIT(v)) != 0 &&
					!mul_ok(n, k->var[v].extent, &n))
					n = INT32_MAX;
			n = n < INT32_MAX ? n : INT32_MAX;
			all += n;
			*bytes += n * (int64_t)dtype_size(k->eqn[i].acc[o]);
		}
	return all;
}

/* Is it faster to run these statements in lanes, given what they read and make, and
 * by an amount that matters beside the rest? */
static bool pays(loop_kernel *k, const loop_node *part, const loop_node *from,
	const loop_node *to, int64_t *bytes)
{
	const machine_cycles *m = &k->machine->cycles;
	const loop_node *rest = part == from ? to : from;
	int32_t lanes = loop_lanes_for(k, part);
	loop_set inside = ~(loop_node_open(part->up) | BIT(part->var));
	int64_t more = 0, values = passed(k, from, to, inside, &more);
	double of_lanes = m->vector_op / lanes; /* cycles of an operation */
	double gain = ops_of(k, part) * (m->scalar_op - of_lanes);
	double each = m->store[MACHINE_SCALAR] + m->load[MACHINE_SCALAR] +
		      (m->store[MACHINE_WHOLE] + m->load[MACHINE_WHOLE]) / lanes;

	if (lanes < 2 || loop_too_few(k, part, lanes) ||
		!may_pass(k, from, to, part->var) ||
		passed(k, to, from, inside, &(int64_t){0}) > 0 ||
		gain <= (double)values * each ||
		gain * k->machine->schedule.beside_part <
			ops_of(k, rest) * of_lanes)
		return false;
	*bytes += more;
	return true;
}

/* ---- dividing ---- */

/* Do all statements below n only add, over both variables? */
static bool sums_both(loop_kernel *k, const loop_node *n, int32_t v, int32_t w)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (!sums_both(k, n->child[i], v, w))
			return false;
	return loop_is_loop(n) ||
	       (loop_adds_up(k, n, v) && loop_adds_up(k, n, w));
}

/*
 * Two loops over one sum, and nothing else: the one with the longer steps goes
 * outside, so that lines follow each other.
 */
static void long_sums_outside(loop_kernel *k, loop_node *n)
{
	loop_node *m, was = *n;

	if (n->n_child != 1 || n->child[0]->kind != LOOP_FOR)
		return;
	m = n->child[0];
	if (m->lanes > 1 || !loop_has_loops(m) || n->n_needs > 0 || m->n_needs > 0 ||
		k->var[m->var].kind != AXIS_R || !sums_both(k, m, n->var, m->var) ||
		loop_step_of(k, n, n->var) >= loop_step_of(k, n, m->var))
		return;
	loop_node_take_var(n, m);
	loop_node_take_var(m, &was);
}

static bool divide(loop_kernel *k, const loop_node *n, struct parts *p,
	int64_t *bytes)
{
	loop_node *whole;

	*p = (struct parts){NULL, NULL, NULL};
	*bytes = 0;
	whole = take_front(k, n, n->var, &p->front);
	if (p->front != NULL &&
		((eqns_of(p->front) & eqns_of(whole)) != 0 ||
			!pays(k, p->front, p->front, whole, bytes))) {
		p->front = NULL;
		whole = piece(k, n, 0, n->n_child);
	}
	p->rest = take_back(k, whole, &p->back);
	if (p->back != NULL && !pays(k, p->back, p->rest, p->back, bytes)) {
		p->back = NULL;
		p->rest = whole;
	}
	return (p->front != NULL || p->back != NULL) &&
	       loop_has_loops(p->rest);
}

/* The iterations of a block of n, whose values are in the first cache; 0: too few. */
static int64_t block_size(loop_kernel *k, const loop_node *n, int64_t bytes)
{
	int64_t ext = k->var[n->var].extent, step = 2 * loop_lanes_for(k, n);
	int64_t t = k->machine->memory[MACHINE_L1].bytes / 2 / (bytes + 1);

	if (n->up != NULL && n->up->kind == LOOP_BLOCK && n->up->var == n->var)
		return n->up->size <= t ? n->up->size : 0;
	if (t > ext / k->machine->schedule.row_blocks)
		t = ext / k->machine->schedule.row_blocks;
	t = t < step ? step : t / step * step;
	return t < ext ? t : ext;
}

static void put(loop_kernel *k, loop_node *n, const struct parts *p, int64_t size)
{
	loop_node *b = n->up, **old;
	int32_t count;

	if (b == NULL || b->kind != LOOP_BLOCK || b->var != n->var) {
		n->kind = LOOP_BLOCK;
		n->size = size;
		n->n_child = 0;
		n->child = NULL;
		b = n;
	}
	old = b->child;
	count = b->n_child;
	b->child = NULL;
	b->n_child = 0;
	for (int32_t i = 0; i < (b == n ? 1 : count); i++) {
		if (b != n && old[i] != n) {
			loop_node_adopt(k->a, b, old[i]);
			continue;
		}
		if (p->front != NULL)
			loop_node_adopt(k->a, b, p->front);
		loop_node_adopt(k->a, b, p->rest);
		if (p->back != NULL)
			loop_node_adopt(k->a, b, p->back);
	}
}

/* Divides a loop, if that pays; false: it stays. */
static bool divide_loop(loop_kernel *k, loop_node *n)
{
	struct parts p;
	int64_t bytes, size;

	if (n->kind != LOOP_FOR || n->backward || n->parallel || n->lanes > 1 ||
		n->n_needs > 0 || !loop_has_loops(n) ||
		(loop_parallel_below(k, n, n->var) && loop_wants_lanes(k, n)) ||
		!may_wait(k, n, n->var) || !divide(k, n, &p, &bytes))
		return false;
	size = block_size(k, n, bytes);
	if (size == 0)
		return false;
	if (loop_writes_input(k)) {
		loop_decide(k, DECIDE_APART_IN_PLACE, n->var, -1, 0, 0);
		return false;
	}
	loop_decide(k, DECIDE_APART_LANES, n->var, -1, bytes, size);
	long_sums_outside(k, p.rest);
	put(k, n, &p, size);
	return true;
}

/* .. n, or else loops below it. */
static void divide_below(loop_kernel *k, loop_node *n)
{
	loop_node *const *list = n->child; /* as it is now */
	int32_t count = n->n_child;

	if (!loop_is_loop(n) || divide_loop(k, n))
		return;
	for (int32_t i = 0; i < count; i++)
		divide_below(k, list[i]);
}

void loop_take_scalars_out(loop_kernel *k)
{
	if (k->machine->block.warps > 1) /* lanes are threads, and wait anyway */
		return;
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases; p++) {
		loop_phase *ph = &k->phase[p];

		for (int32_t i = 0; i < ph->n_roots && !ph->tiles; i++)
			divide_below(k, ph->root[i]);
	}
	loop_link(k);
}
