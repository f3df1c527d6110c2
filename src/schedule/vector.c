/*
 * vector.c: chooses the loops that have lanes.
 *
 * In every chain of parallel loops, the variable for which the fewest memory
 * accesses jump is innermost. A loop whose body contains other loops is preferred
 * to those if its accesses jump less:
 *
 *   few iterations inside: the loop itself has the lanes (sliding windows)
 *     for j { init; for k < 9 { acc } }       ->  for j by 16 { .. }
 *   many: it is cut into blocks and becomes innermost; accumulators become rows
 *   in the cache (column reductions without strided accesses)
 *     for j { init; for i { acc } }           ->
 *     block j 512 { for j { init } for i { for j { acc } } }
 */
#include "schedule/lanes.h"

/* Operations of one iteration of all statements below n. */
int64_t loop_flops(loop_kernel *k, const loop_node *n)
{
	int64_t f = 0;
	int32_t i;

	if (n->kind == LOOP_STMT)
		for (i = 0; i < k->eqn[n->eqn].e->n_out; i++)
			f += ex_flops(k->eqn[n->eqn].body[i]);
	for (i = 0; i < n->n_child; i++)
		f += loop_flops(k, n->child[i]);
	return f;
}

/* .. of all iterations, with those of the loops around n. */
static double work(loop_kernel *k, const loop_node *n)
{
	double sum = 0;

	if (n->kind == LOOP_STMT) {
		sum = (double)loop_flops(k, n) + 1;
		for (const loop_node *u = n->up; u != NULL; u = u->up)
			if (u->kind == LOOP_FOR)
				sum *= (double)k->var[u->var].extent;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		sum += work(k, n->child[i]);
	return sum;
}

static bool reduces(const loop_kernel *k, const loop_node *n, int32_t var)
{
	int32_t i;

	if (n->kind == LOOP_STMT)
		return (k->eqn[n->eqn].reduced & BIT(var)) != 0;
	for (i = 0; i < n->n_child; i++)
		if (reduces(k, n->child[i], var))
			return true;
	return false;
}

/* The equation of the first statement below n, which names the loop. */
static int32_t first_eqn(const loop_node *n)
{
	while (loop_is_loop(n) && n->n_child > 0)
		n = n->child[0];
	return loop_is_loop(n) ? -1 : n->eqn;
}

static void say_lanes(
	loop_kernel *k, const loop_node *n, decide_kind why, int64_t a, int64_t b)
{
	loop_decide(k, why, n->var, first_eqn(n), a, b);
}

static bool scatters(const loop_kernel *k, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (scatters(k, n->child[i]))
			return true;
	return n->kind == LOOP_STMT && k->eqn[n->eqn].push;
}

/* Does n walk updates of a scatter, each of which is asked whose it is? Then its
 * lanes ask for several of them, and those of the elements stand inside. */
static bool asks(const loop_kernel *k, const loop_node *n)
{
	return k->machine->schedule.owner_updates < INT64_MAX && scatters(k, n);
}

static void give_lanes(loop_kernel *k, loop_node *n, int32_t lanes)
{
	const machine_schedule *m = &k->machine->schedule;

	n->lanes = lanes;
	n->unroll = !reduces(k, n, n->var)	     ? 1
		    : loop_flops(k, n) > m->long_ops ? m->long_vectors
						     : m->sum_vectors;
}

/* The reason why n has lanes, or none. */
static decide_kind why_lanes(loop_kernel *k, const loop_node *n, int32_t lanes)
{
	if (!loop_lanes_allowed(k, n, n->var) || n->backward)
		return scatters(k, n) ? DECIDE_LANES_SCATTER : DECIDE_LANES_SCAN;
	if (lanes < 2)
		return DECIDE_LANES_WIDE;
	return loop_too_few(k, n, lanes) ? DECIDE_LANES_SHORT : DECIDE_LANES_TAKEN;
}

static bool blocked_above(const loop_node *n, int32_t var)
{
	while (n != NULL && (n->kind != LOOP_BLOCK || n->var != var))
		n = n->up;
	return n != NULL;
}

/*
 * Lanes of a sum along n's variable. What whole vectors leave of a row is added
 * one by one, and each term waits for the one before if a loop around belongs to
 * the sum, too. So fewer lanes may be faster: a row of 56 is 7 vectors of 8, or
 * 3 vectors of 16 and 8 elements.
 */
static int32_t lanes_of_sum(loop_kernel *k, const loop_node *n, int32_t lanes)
{
	int64_t ext = k->var[n->var].extent;
	const loop_node *up = n->up;
	double each = 1, least = 0;
	int32_t best = lanes;

	if (!reduces(k, n, n->var) || blocked_above(n, n->var))
		return lanes;
	if (up != NULL && up->kind == LOOP_FOR && reduces(k, n, up->var))
		each = k->machine->cycles.chain;
	for (int32_t l = lanes; l >= k->machine->schedule.least_lanes; l /= 2) {
		double steps = (double)(ext / l) + (double)(ext % l) * each;

		if (l == lanes || steps < least) {
			best = l;
			least = steps;
		}
	}
	return best;
}

void loop_take_lanes(loop_kernel *k, loop_node *n)
{
	int32_t lanes = loop_lanes_for(k, n);
	decide_kind why = why_lanes(k, n, lanes);

	if (why == DECIDE_LANES_TAKEN)
		lanes = lanes_of_sum(k, n, lanes);
	say_lanes(k, n, why, why == DECIDE_LANES_SHORT ? k->var[n->var].extent
						       : lanes, lanes);
	if (why == DECIDE_LANES_TAKEN)
		give_lanes(k, n, lanes);
}

struct written {
	loop_kernel *k;
	const loop_node *of; /* the loop with lanes */
	int64_t n;
};

/* Lanes far apart are loaded one by one. */
static void count_elements(void *arg, const struct loop_access *a)
{
	struct written *w = arg;
	int64_t s = 0;
	int32_t var = w->of->var;

	if (!ix_stride(a->at, var, w->k->var[var].extent, &s) ||
		s > w->k->machine->schedule.near_lanes)
		w->n += w->of->lanes;
}

/* Writes out the short loops in n, from the inside, while there are few statements and
 * elements; returns their number. */
static int64_t unroll_small(loop_kernel *k, loop_node *n, const loop_node *of)
{
	const machine_schedule *m = &k->machine->schedule;
	struct written w = {k, of, 1};
	int64_t all = 0, length;

	for (int32_t i = 0; i < n->n_child; i++)
		all += unroll_small(k, n->child[i], of);
	if (!loop_is_loop(n)) {
		loop_each_access(k, n, count_elements, &w);
		return w.n;
	}
	if (n->kind != LOOP_FOR)
		return all;
	length = k->var[n->var].extent;
	if (length > m->short_loop)
		return all;
	if (all * length > m->most_unrolled) /* nor are the loops around it */
		return m->most_unrolled + 1;
	n->unroll = (int32_t)length;
	return all * length;
}

/* Writes out the sliding windows in n, whose vectors share elements where the lanes of
 * n are neighbours. Lanes far apart are loaded one by one, with nothing to share. */
static void unroll_windows(loop_kernel *k, loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (!loop_is_far(k, n->child[i], n->var))
			unroll_small(k, n->child[i], n);
}

/*
 * Is it a short sum, such as of a sliding window, with fewer jumps in lanes of var
 * than in those of the parallel loops between? Then one loop over var contains it.
 */
static bool is_window(loop_kernel *k, const loop_node *n, int32_t var)
{
	int64_t most;
	bool unit;
	double here;

	if (n->kind != LOOP_FOR || asks(k, n) ||
		loop_parallel_below(k, n, n->var) ||
		!mul_ok(loop_inside(k, n), k->var[n->var].extent, &most) ||
		most > k->machine->schedule.small_inside)
		return false;
	here = loop_jumps(k, n, var, &unit);
	for (const loop_node *u = n->up; u != NULL && u->var != var; u = u->up)
		if (u->kind == LOOP_FOR && loop_parallel_below(k, u, u->var) &&
			loop_jumps(k, n, u->var, &unit) < here)
			return false;
	return true;
}

/* Gives lanes to n, a loop over var made by sink that is whole now, if it has
 * sliding windows; other loops get theirs later. NULL: nothing is done. */
static void finish_sunk(loop_kernel *k, loop_node *n)
{
	int32_t lanes;

	if (n == NULL || !loop_has_loops(n))
		return;
	for (lanes = loop_lanes_for(k, n); lanes > 1 && loop_too_few(k, n, lanes);
		lanes /= 2)
		;
	n->lanes = lanes > 1 ? lanes : 0;
	if (lanes > 1)
		say_lanes(k, n, DECIDE_LANES_TAKEN, lanes, 0);
	else
		say_lanes(k, n, DECIDE_LANES_SHORT, k->var[n->var].extent,
			loop_lanes_for(k, n));
	n->unroll = 1;
	unroll_windows(k, n);
}

/* Wraps neighbouring leaves and sliding windows in a loop over var; enters other
 * loops. */
static void sink(loop_kernel *k, loop_node *n, int32_t var)
{
	loop_node **list = arena_array(k->a, loop_node *, n->n_child + 1);
	loop_node *open = NULL;
	int32_t i, m = 0;

	for (i = 0; i < n->n_child; i++) {
		loop_node *c = n->child[i];

		if (loop_is_loop(c) && !is_window(k, c, var)) {
			finish_sunk(k, open);
			sink(k, c, var);
			list[m++] = c;
			open = NULL;
			continue;
		}
		if (open == NULL)
			list[m++] = open = loop_node_for(k->a, var, NULL);
		loop_node_adopt(k->a, open, c);
	}
	finish_sunk(k, open);
	n->child = list;
	n->n_child = m;
}

struct reader {
	int32_t tensor;
	bool found;
};

static void on_read(void *arg, const expr *e)
{
	struct reader *r = arg;

	if (e->kind == EX_READ && e->tensor == r->tensor)
		r->found = true;
}

/* Does a statement below n, in another list than `list`, read the tensor? */
static bool read_apart(loop_kernel *k, const loop_node *n, int32_t tensor,
	const loop_node *list)
{
	struct reader r = {tensor, false};
	int32_t i;

	if (n->kind == LOOP_STMT && n->up != list)
		for (i = 0; i < k->eqn[n->eqn].e->n_out; i++)
			loop_walk(k->a, k->eqn[n->eqn].body[i], on_read, &r);
	for (i = 0; i < n->n_child && !r.found; i++)
		r.found = read_apart(k, n->child[i], tensor, list);
	return r.found;
}

/* Bytes of values in arrays that the loops in one iteration of top share. */
static int64_t kept_bytes(
	loop_kernel *k, const loop_node *n, const loop_node *top)
{
	loop_set inner = loop_node_open(n->up) & ~loop_node_open(top);
	int64_t sum = 0;
	int32_t i;

	for (i = 0; i < n->n_child; i++)
		sum += kept_bytes(k, n->child[i], top);
	if (n->kind != LOOP_STMT)
		return sum;
	for (i = 0; i < k->eqn[n->eqn].e->n_out; i++) {
		const loop_eqn *e = &k->eqn[n->eqn];
		int32_t t = e->e->out[i], v;
		int64_t bytes = (int64_t)dtype_size(e->acc[i]);

		if (e->e->monoid == IR_SET &&
			(loop_param(k, t) >= 0 ||
				!read_apart(k, top, t, n->up)))
			continue;
		for (v = 0; v < k->n_vars; v++)
			if ((e->left & inner & BIT(v)) != 0 &&
				!mul_ok(bytes, k->var[v].extent, &bytes))
				return INT64_MAX / 64;
		sum += bytes;
	}
	return sum;
}

/* Are iterations of the loops around n enough chunks? */
static bool are_enough(const loop_kernel *k, const loop_node *n)
{
	int64_t chunks = 1;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->kind == LOOP_FOR && k->var[u->var].kind == AXIS_P &&
			!mul_ok(chunks, k->var[u->var].extent, &chunks))
			return true;
	return chunks >= k->machine->schedule.min_chunks;
}

/* Elements of n's variable in a block whose rows fit the cache. */
static int64_t block_size(loop_kernel *k, const loop_node *n)
{
	int64_t ext = k->var[n->var].extent, t;
	int64_t lanes = loop_lanes_for(k, n), least = 2 * lanes;
	int64_t bytes = kept_bytes(k, n, n) + loop_stage_bytes(k, n) + 1;

	t = k->machine->memory[MACHINE_L1].bytes / 2 / bytes;
	if (t < least) { /* rows that do not fit the first cache */
		t = k->machine->memory[MACHINE_L2].bytes / bytes;
		/* memory is read in pieces of this number of elements: several
		 * lines, even if they are in the last cache */
		if (t < k->machine->schedule.far_vectors * lanes)
			t = k->machine->schedule.far_vectors * lanes;
	}
	if (t > ext / k->machine->schedule.row_blocks)
		t = ext / k->machine->schedule.row_blocks; /* for threads */
	t = t < least ? least : t / least * least;
	/* half a block more costs less than vectors that are cut, and borders */
	if (ext < 2 * t && are_enough(k, n) &&
		ext * bytes <= k->machine->memory[MACHINE_L2].bytes / 2)
		return ext;
	return t < ext ? t : ext; /* one block: its ends are known */
}

static bool outer_wins(loop_kernel *k, const loop_node *n)
{
	return loop_parallel_below(k, n, n->var) && loop_wants_lanes(k, n);
}

/* The last loop of a chain of parallel loops, the best for lanes: see order. */
static bool chained(const loop_kernel *k, const loop_node *n)
{
	return n->n_child == 1 && n->child[0]->kind == LOOP_FOR &&
	       loop_parallel_below(k, n->child[0], n->child[0]->var);
}

/*
 * A row of accumulators is loaded and stored in every outer iteration, so a few of
 * these are joined; not in a block of columns, whose rows are short and far from
 * each other.
 *   for i { for j { acc } }   ->   block i 8 { for j { for i { acc } } }
 */
static void jam(loop_kernel *k, loop_node *n)
{
	loop_node *j, *i;

	if (n->kind != LOOP_FOR || n->n_child != 1 || n->backward ||
		n->child[0]->kind != LOOP_FOR || n->child[0]->lanes <= 1)
		return;
	j = n->child[0];
	if (loop_has_loops(j) || !reduces(k, j, n->var) || reduces(k, j, j->var) ||
		blocked_above(n, j->var) ||
		!loop_parallel_below(k, j, j->var) ||
		!loop_lanes_allowed(k, n, n->var) || loop_flops(k, j) > k->machine->schedule.long_ops ||
		k->var[n->var].extent < 2 * k->machine->schedule.rows_at_once)
		return;
	i = loop_node_copy(k->a, n);
	i->child = j->child;
	i->n_child = j->n_child;
	i->unroll = k->machine->schedule.rows_at_once;
	i->lanes = 0;
	j->child = arena_array(k->a, loop_node *, 1);
	j->child[0] = i;
	j->n_child = 1;
	n->kind = LOOP_BLOCK;
	n->size = k->machine->schedule.rows_at_once;
	loop_link(k);
}

/*
 * At the root: a column reduction that no statement of the kernel reads. Its
 * columns become one row of accumulators, and the inner loop becomes the outer
 * one, which split_reductions can cut:
 *   for j { init; for i { acc } }   ->   for j { init } for i { for j { acc } }
 */
void loop_columns_to_rows(loop_kernel *k)
{
	loop_phase *ph = &k->phase[k->n_phases - 1];
	loop_node *n = ph->root[0], *r = NULL;
	loop_set eqns = 0;
	int64_t most;
	int32_t i;

	loop_link(k);
	if (ph->n_roots != 1 || n->kind != LOOP_FOR || chained(k, n) ||
		!loop_has_loops(n) || !outer_wins(k, n) ||
		loop_is_small(k, n))
		return;
	for (i = 0; i < n->n_child; i++) {
		if (loop_is_loop(n->child[i]) && r != NULL)
			return;
		if (loop_is_loop(n->child[i]))
			r = n->child[i];
		else if (n->child[i]->kind != LOOP_INIT)
			return;
	}
	most = k->machine->memory[MACHINE_L1].bytes /
	       k->machine->schedule.bytes_an_elem;
	if (r == NULL || r->kind != LOOP_FOR || k->var[r->var].kind != AXIS_R ||
		!loop_reducers(k, r, r->var, &eqns) || eqns == 0)
		return;
	if (k->var[n->var].extent > most) {
		loop_decide(k, DECIDE_ROWS_LONG, n->var, -1,
			k->var[n->var].extent, most);
		return;
	}
	loop_decide(k, DECIDE_ROWS_TAKEN, n->var, -1, k->var[n->var].extent, 0);
	sink(k, n, n->var);
	ph->root = n->child;
	ph->n_roots = n->n_child;
	loop_link(k);
}

/* Is all of n one vector, so that sums inside of it are in a register from end to end?
 * In a row of accumulators, a part of a vector would be stored and loaded with a mask. */
static bool is_one_vector(loop_kernel *k, const loop_node *n)
{
	return k->machine->block.warps == 1 &&
	       k->var[n->var].extent <= loop_lanes_for(k, n);
}

static void choose(loop_kernel *k, loop_node **at)
{
	loop_node *n = *at;
	int32_t i;

	if (!loop_is_loop(n) || n->lanes > 1)
		return;
	if (n->kind == LOOP_FOR && !loop_has_loops(n)) {
		loop_take_lanes(k, n);
		return;
	}
	if (n->kind == LOOP_FOR && !chained(k, n) && outer_wins(k, n)) {
		if ((loop_is_small(k, n) || is_one_vector(k, n)) && !asks(k, n)) {
			n->lanes = loop_lanes_for(k, n);
			say_lanes(k, n, DECIDE_LANES_TAKEN, n->lanes, 0);
			n->unroll = 1;
			unroll_windows(k, n);
			return;
		}
		n->kind = LOOP_BLOCK;
		n->size = block_size(k, n);
		sink(k, n, n->var);
		loop_link(k);
	}
	for (i = 0; i < n->n_child; i++)
		choose(k, &n->child[i]);
	if (n->kind == LOOP_BLOCK && !n->parallel)
		loop_stage_columns(k, n);
	jam(k, n);
}

static void order(loop_kernel *k, loop_node *n)
{
	loop_node *m = n, *best = NULL;
	double least = 0, all;
	int32_t i;

	if (n->kind != LOOP_FOR || !loop_parallel_below(k, n, n->var)) {
		for (i = 0; i < n->n_child; i++)
			order(k, n->child[i]);
		return;
	}
	all = work(k, n);
	for (m = n;; m = m->child[0]) {
		int64_t ext = k->var[m->var].extent;
		int32_t lanes = loop_lanes_for(k, m);
		bool unit, wide = !loop_too_few(k, m, lanes);
		double j = loop_jumps(k, n, m->var, &unit) +
			   all / (double)(ext < lanes && ext > 0 ? ext : lanes);

		/* on ties the later, which is faster in the result */
		if (wide && (best == NULL || j <= least)) {
			best = m;
			least = j;
		}
		if (m->n_child != 1 || m->child[0]->kind != LOOP_FOR ||
			!loop_parallel_below(k, m->child[0], m->child[0]->var))
			break;
	}
	if (best != NULL) { /* moves its variable down, the others up */
		loop_node was = *best, *u;

		for (u = best; u != m; u = u->child[0])
			loop_node_take_var(u, u->child[0]);
		loop_node_take_var(m, &was);
	}
	if (best != NULL && !loop_has_loops(m)) {
		int32_t lanes = loop_lanes_for(k, m);

		if (why_lanes(k, m, lanes) == DECIDE_LANES_TAKEN)
			give_lanes(k, m, lanes);
		if (m->lanes > 1 && loop_stage_transpose(k, n, m)) {
			say_lanes(k, m, DECIDE_LANES_TAKEN, lanes, lanes);
			return;
		}
		m->lanes = 0;
	}
	for (i = 0; i < m->n_child; i++)
		order(k, m->child[i]);
}

struct steps {
	int32_t var;
	int64_t extent;
	double sum;
};

static void add_step(void *arg, const struct loop_access *a)
{
	struct steps *x = arg;
	int64_t s = 0;

	if (ix_stride(a->at, x->var, x->extent, &s))
		x->sum += (double)(s < 0 ? -s : s);
}

double loop_step_of(loop_kernel *k, const loop_node *n, int32_t var)
{
	struct steps x = {var, k->var[var].extent, 0};

	loop_each_access(k, n, add_step, &x);
	return x.sum;
}

/*
 * Orders the two loops around the lanes of a nest: the one with longer steps is
 * outside, so that successive reads are close. Elsewhere the outer loops are
 * chunks, and stay.
 */
static void long_steps_outside(loop_kernel *k, loop_node *n)
{
	for (bool again = true; again;) {
		loop_node *m = n;

		again = false;
		for (; chained(k, m) && m->kind == LOOP_FOR &&
			m->child[0]->lanes <= 1 && loop_has_loops(m->child[0]) &&
			loop_parallel_below(k, m, m->var);
			m = m->child[0]) {
			loop_node was = *m;

			if (loop_step_of(k, n, m->var) >=
				loop_step_of(k, n, m->child[0]->var))
				continue;
			loop_node_take_var(m, m->child[0]);
			loop_node_take_var(m->child[0], &was);
			again = true;
		}
	}
}

/* Chooses the lanes of a nest inside the trees of k, whose links are set. */
void loop_vectorise_nest(loop_kernel *k, loop_node *n)
{
	order(k, n);
	if (n->kind == LOOP_FOR)
		long_steps_outside(k, n);
	choose(k, &n);
	loop_link(k);
}

void loop_vectorise(loop_kernel *k)
{
	int32_t p, i;

	loop_link(k);
	for (p = 0; p < k->n_phases; p++)
		for (i = 0; i < k->phase[p].n_roots &&
			    !k->phase[p].tiles;
			i++) {
			order(k, k->phase[p].root[i]);
			choose(k, &k->phase[p].root[i]);
		}
	loop_link(k);
}
