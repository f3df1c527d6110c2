/*
 * row_warps.c: gives long rows to blocks of warps.
 *
 * Consumes phases whose chunks walk rows, with sums along them, behind the choice
 * of lanes and chunks, on a machine that has blocks of warps. Where rows are long
 * and few, each loop along a row is cut into a piece for each warp of a block. A
 * warp keeps the sum of its piece where all of them can read it, and all of them
 * add up the pieces, in their order:
 *
 *   for r parallel {                    for r parallel {
 *     init m                              block i 1024 by warp { part[w] = max of x }
 *     for i < 8192 { m max= x }     ->    init m; for w < 8 { m max= part[w] }
 *     for i < 8192 { y = exp(x - m) }     block i 1024 by warp { y = exp(x - m) }
 *   }                                   }
 *
 * Guarantees that what stands outside of such loops is the same for all warps: a
 * value that they compute alike. How many warps there are follows from the estimate,
 * so from sizes and the machine alone.
 */
#include "schedule/estimate.h"
#include "schedule/local.h"

enum { MOST = 56, MOST_SUMS = 8 };

struct rows {
	loop_kernel *k;
	int32_t phase;
	loop_node *row;	 /* its children are what is done for a row */
	int32_t n_sums;
	int32_t sum[MOST_SUMS]; /* equations that are cut into pieces */
	int64_t shortest; /* vectors of the shortest loop along the row */
	int32_t n_loops;
};

/* The innermost node around everything that is done for a row; NULL: none. */
static loop_node *row_of(const loop_kernel *k, const loop_phase *ph)
{
	loop_node *n = ph->n_roots == 1 ? ph->root[0] : NULL;

	if (n == NULL || !n->parallel)
		return NULL;
	while (n->n_child == 1 && loop_is_loop(n->child[0]) &&
		n->child[0]->kind != LOOP_SPAN && n->child[0]->lanes <= 1 &&
		k->var[n->child[0]->var].kind == AXIS_P)
		n = n->child[0];
	return n;
}

static bool is_along_row(const loop_node *n)
{
	return n->kind == LOOP_FOR && n->lanes > 1;
}

/* Elements that a loop takes in one iteration. */
static int64_t step_of(const loop_node *n)
{
	return (int64_t)n->lanes * (n->unroll > 1 ? n->unroll : 1);
}

static bool is_started_in(const loop_node *row, int32_t eqn)
{
	for (int32_t i = 0; i < row->n_child; i++)
		if (row->child[i]->kind == LOOP_INIT &&
			row->child[i]->eqn == eqn)
			return true;
	return false;
}

/* Notes that the sum is cut; false: it cannot be. */
static bool add_sum(struct rows *r, int32_t eqn)
{
	const loop_eqn *e = &r->k->eqn[eqn];

	if (e->e->n_out != 1 || r->n_sums == MOST_SUMS ||
		(e->left & ~loop_node_open(r->row)) != 0 ||
		!is_started_in(r->row, eqn))
		return false;
	r->sum[r->n_sums++] = eqn;
	return true;
}

/* Can the statements at and below n, in a loop over var, be done in pieces? */
static bool fits(struct rows *r, const loop_node *n, int32_t var)
{
	const loop_eqn *e;

	for (int32_t i = 0; i < n->n_child; i++)
		if (!fits(r, n->child[i], var))
			return false;
	if (loop_is_loop(n))
		return n->n_clip == 0 && n->n_needs == 0 && !n->backward;
	e = &r->k->eqn[n->eqn];
	if ((n->kind != LOOP_STMT && n->kind != LOOP_INIT) || e->push ||
		e->stage || e->pack || e->scan_var >= 0 || e->n_parts > 0)
		return false;
	if ((e->left & BIT(var)) != 0)
		return true;
	return n->kind == LOOP_STMT && (e->reduced & BIT(var)) != 0 &&
	       add_sum(r, n->eqn);
}

/* May all warps do this alike: is it short, and nothing that goes on elsewhere? */
static bool is_alike(const struct rows *r, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (!is_alike(r, n->child[i]))
			return false;
	if (!loop_is_loop(n)) {
		const loop_eqn *e = &r->k->eqn[n->eqn];

		return (n->kind == LOOP_STMT || n->kind == LOOP_INIT) &&
		       !e->push && !e->stage && !e->pack && e->scan_var < 0 &&
		       e->n_parts == 0;
	}
	return n->kind == LOOP_FOR && n->lanes <= 1 && n->n_clip == 0;
}

/* Can the row be done in pieces? Finds its sums. */
static bool look(struct rows *r)
{
	for (int32_t i = 0; i < r->row->n_child; i++) {
		const loop_node *c = r->row->child[i];
		int64_t n;

		if (!is_along_row(c)) {
			if (!is_alike(r, c) || loop_work(r->k, c) >
						       r->k->machine->schedule.short_loop)
				return false;
			continue;
		}
		if (!fits(r, c, c->var))
			return false;
		n = r->k->var[c->var].extent / step_of(c);
		if (r->n_loops == 0 || n < r->shortest)
			r->shortest = n;
		r->n_loops++;
	}
	return true;
}

/* ---- the price ---- */

/* The kernel as it would be without pieces, with its locations. */
static loop_kernel *located(const loop_kernel *k)
{
	loop_kernel *t = loop_trial(k);

	loop_locate(t);
	return t;
}

static bool is_sum(const struct rows *r, int32_t eqn)
{
	for (int32_t i = 0; i < r->n_sums; i++)
		if (r->sum[i] == eqn)
			return true;
	return false;
}

/* Is a statement of eqn at or below n? */
static bool does(const loop_node *n, int32_t eqn)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (does(n->child[i], eqn))
			return true;
	return !loop_is_loop(n) && n->eqn == eqn;
}

/*
 * Is each value, as it lies in t, one of all warps, or one of a piece? A register
 * outside of the loops along the row is one of all of them: these loops must not
 * set it. An array inside of one would be one of each warp.
 */
static bool values_fit(const struct rows *r, const loop_kernel *t)
{
	const loop_node *row = row_of(t, &t->phase[r->phase]);

	for (int32_t i = 0; i < t->n_bufs; i++) {
		const loop_buf *b = &t->buf[i];

		for (int32_t c = 0; c < row->n_child; c++) {
			const loop_node *n = row->child[c];
			bool in = b->scope != NULL && loop_is_below(b->scope, n);

			if (!is_along_row(n) || !does(n, b->eqn))
				continue;
			if (b->where == LOOP_REGISTER ? !in && !is_sum(r, b->eqn)
						      : in)
				return false;
		}
	}
	return true;
}

static int64_t rows_of(const struct rows *r)
{
	int64_t n = 1;

	for (const loop_node *u = r->row; u != NULL; u = u->up)
		if (u->kind == LOOP_FOR)
			n *= r->k->var[u->var].extent;
	return n;
}

/* What blocks of so many warps take longer, in cycles of all warps. */
static double cycles_more(const struct rows *r, int32_t warps)
{
	const machine *m = r->k->machine;
	double each = (double)r->n_sums * warps *
			      (m->cycles.chain + m->cycles.loop) +
		      (double)(r->n_loops + r->n_sums) * m->block.meet_cycles;

	return (double)rows_of(r) * warps * each;
}

/* The number of warps with which the estimate is the least; 1: no block. */
static int32_t cheapest(const struct rows *r, loop_kernel *t, double *alone,
	double *best)
{
	loop_estimate e;
	int32_t warps = 1;

	loop_estimate_of(t, &e);
	*best = *alone = loop_estimate_seconds(&e, 0);
	for (int32_t w = 2; w <= r->k->machine->block.warps && w <= r->shortest;
		w *= 2) {
		loop_estimate with = e;
		double s;

		with.phase[r->phase].chunks *= w;
		with.phase[r->phase].scalar_cycles += cycles_more(r, w);
		s = loop_estimate_seconds(&with, 0);
		if (s < *best) {
			*best = s;
			warps = w;
		}
	}
	return warps;
}

/* ---- the pieces ---- */

static loop_node *leaf(loop_kernel *k, loop_kind kind, int32_t eqn)
{
	loop_node *n = loop_node_new(k->a, kind);

	n->eqn = eqn;
	return n;
}

/* Gives the statements of an equation at and below n to another one. */
static void rename_leaf(loop_node *n, int32_t from, int32_t to)
{
	for (int32_t i = 0; i < n->n_child; i++)
		rename_leaf(n->child[i], from, to);
	if (!loop_is_loop(n) && n->eqn == from)
		n->eqn = to;
}

/* What was decided about the loop and the sum is about its pieces. */
static void decided_of(loop_kernel *k, int32_t var, int32_t eqn, int32_t part)
{
	for (int32_t i = 0; i < k->decision.n; i++) {
		loop_decision *d = &k->decision.at[i];
		decide_pass p = decide_pass_of(d->kind);

		if ((p == DECIDE_PASS_LANES || p == DECIDE_PASS_WIDE) &&
			d->of == var && d->with == eqn)
			d->with = part;
	}
}

/* Takes the statement of eqn, and loops that are empty without it, from n. */
static void drop(loop_node *n, int32_t eqn)
{
	int32_t m = 0;

	for (int32_t i = 0; i < n->n_child; i++) {
		loop_node *c = n->child[i];

		drop(c, eqn);
		if (loop_is_loop(c) ? c->n_child > 0
				    : c->eqn != eqn || c->kind != LOOP_STMT)
			n->child[m++] = c;
	}
	n->n_child = m;
}

/* Is the sum's statement at or below n? */
static bool adds(const loop_node *n, int32_t eqn)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (adds(n->child[i], eqn))
			return true;
	return n->kind == LOOP_STMT && n->eqn == eqn;
}

/* In the tree that is not scheduled, too, the sum adds up its pieces: behind the
 * outermost loop that it reduced. */
static void add_up(loop_kernel *k, loop_node ***list, int32_t *n, int32_t eqn,
	loop_set reduced, int32_t number)
{
	loop_node **out = arena_array(k->a, loop_node *, *n + 2);
	int32_t m = 0;

	for (int32_t i = 0; i < *n; i++) {
		loop_node *c = (*list)[i];
		bool here = loop_is_loop(c) && adds(c, eqn);

		if (here && (reduced & BIT(c->var)) == 0) {
			add_up(k, &c->child, &c->n_child, eqn, reduced, number);
			here = false;
		}
		if (here)
			drop(c, eqn);
		if (!here || c->n_child > 0)
			out[m++] = c;
		if (here)
			out[m++] = loop_node_for(
				k->a, number, leaf(k, LOOP_STMT, eqn));
	}
	*list = out;
	*n = m;
}

/*
 * The loop in pieces; what adds them up goes to sums. A block numbers the pieces of
 * one sum; those of further sums are numbered by blocks inside, which hold the
 * same piece.
 */
static loop_node *in_pieces(struct rows *r, loop_node *loop, int32_t warps,
	loop_node **sums, int32_t *n)
{
	loop_kernel *k = r->k;
	int64_t step = step_of(loop), len = k->var[loop->var].extent;
	int64_t size = (len + warps - 1) / warps;
	loop_node *top = loop_node_new(k->a, LOOP_BLOCK), *b = top;

	top->var = loop->var;
	top->size = (size + step - 1) / step * step;
	top->by_warp = true;
	for (int32_t i = 0; i < r->n_sums; i++) {
		int32_t eqn = r->sum[i], part;
		loop_set reduced = k->eqn[eqn].reduced;

		if (!does(loop, eqn) ||
			!loop_change_cut(k, eqn, loop->var, top->size))
			continue;
		part = k->n_eqns - 1;
		decided_of(k, loop->var, eqn, part);
		loop_decide(k, DECIDE_LANES_SHORT, k->n_vars - 1, eqn,
			k->var[k->n_vars - 1].extent, k->machine->lanes);
		add_up(k, &k->root, &k->n_roots, eqn, reduced, k->n_vars - 1);
		if (b->number >= 0) {
			loop_node *in = loop_node_new(k->a, LOOP_BLOCK);

			in->var = top->var;
			in->size = top->size;
			loop_node_adopt(k->a, b, in);
			b = in;
		}
		b->number = k->n_vars - 1;
		rename_leaf(loop, eqn, part);
		sums[(*n)++] = leaf(k, LOOP_INIT, eqn);
		sums[(*n)++] = loop_node_for(
			k->a, b->number, leaf(k, LOOP_STMT, eqn));
	}
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].part && does(loop, i))
			loop_node_adopt(k->a, b, leaf(k, LOOP_INIT, i));
	loop_node_adopt(k->a, b, loop);
	return top;
}

static void cut_rows(struct rows *r, int32_t warps)
{
	loop_kernel *k = r->k;
	loop_node *row = r->row;
	loop_node **old = row->child;
	int32_t n_old = row->n_child, n = 0;
	loop_node **list = arena_array(
		k->a, loop_node *, n_old + 2 * MOST_SUMS + 1);

	for (int32_t i = 0; i < n_old; i++) {
		loop_node *c = old[i];

		if (c->kind == LOOP_INIT && is_sum(r, c->eqn))
			continue; /* it begins where the pieces are added up */
		if (is_along_row(c)) {
			int32_t at = n++;

			list[at] = in_pieces(r, c, warps, list, &n);
		} else {
			list[n++] = c;
		}
	}
	row->child = list;
	row->n_child = n;
	k->phase[r->phase].warps = warps;
	loop_link(k);
}

static void decide(struct rows *r)
{
	loop_kernel *k = r->k;
	const machine *m = k->machine;
	loop_kernel *t = located(k);
	size_t each = 64 + (size_t)loop_slack(m);
	size_t bytes = t->local_bytes + (size_t)r->n_sums * each;
	double alone, best;
	int32_t warps;

	if (!values_fit(r, t)) {
		loop_decide(k, DECIDE_WARPS_ROW_LOOPS, r->phase, -1, 0, 0);
		return;
	}
	if (bytes > (size_t)m->block.shared_bytes) {
		loop_decide(k, DECIDE_WARPS_LARGE, r->phase, -1, (int64_t)bytes,
			m->block.shared_bytes);
		return;
	}
	warps = cheapest(r, t, &alone, &best);
	loop_decide(k, warps > 1 ? DECIDE_WARPS_ROW_TAKEN : DECIDE_WARPS_ROW_COST,
		r->phase, -1, warps > 1 ? warps : rows_of(r),
		warps > 1 ? (int64_t)((alone - best) * 1e9)
			  : (int64_t)(alone * 1e9));
	if (warps > 1)
		cut_rows(r, warps);
}

static bool has_lanes_sums(const loop_kernel *k, const loop_node *row)
{
	for (int32_t i = 0; i < row->n_child; i++)
		if (is_along_row(row->child[i]) &&
			k->var[row->child[i]->var].kind == AXIS_R)
			return true;
	return false;
}

static void give(loop_kernel *k, int32_t phase)
{
	struct rows r = {.k = k, .phase = phase,
		.row = row_of(k, &k->phase[phase])};

	if (k->phase[phase].tiles || r.row == NULL ||
		!has_lanes_sums(k, r.row))
		return;
	if (loop_writes_input(k) || !look(&r) || r.n_sums == 0 ||
		k->n_eqns + r.n_sums > MOST || k->n_vars + r.n_sums > MOST)
		loop_decide(k, DECIDE_WARPS_ROW_LOOPS, phase, -1, 0, 0);
	else if (r.shortest < 2)
		loop_decide(k, DECIDE_WARPS_ROW_SHORT, phase, -1, 0, 0);
	else
		decide(&r);
}

void loop_rows_to_warps(loop_kernel *k)
{
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases && k->machine->block.warps > 1; p++)
		give(k, p);
}
