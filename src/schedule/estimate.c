/*
 * estimate.c: estimates the cycles of the statements of a scheduled kernel, and
 * its seconds.
 *
 * A walk over each tree keeps the interval of every variable and how often the
 * node runs. Each distinct subexpression of a statement counts as often as in the
 * C text: outside the innermost loops that it does not depend on; in lanes if it
 * depends on their variable, else once for all lanes.
 *
 *   for i < 56 { for j < 64 lanes 16 { o = f(x[64 i + j]) * w[i] } }
 *   f and the load of x: 56 * 4 vectors;  the load of w: 56 elements
 */
#include "schedule/estimate.h"

#include "schedule/estimate_local.h"

/* ---- expressions ---- */

/* Statements of one iteration of n, where short loops are written out. */
static double written(const estimate *w, const loop_node *n)
{
	double all = loop_is_loop(n) ? 0 : 1;

	for (int32_t i = 0; i < n->n_child; i++) {
		const loop_node *c = n->child[i];

		all += written(w, c) *
		       (c->kind == LOOP_FOR && c->lanes <= 1 && c->unroll > 1
				       ? (double)w->k->var[c->var].extent
				       : 1);
	}
	return all;
}

/* How often does an expression run that depends on these variables? Iterations of a loop
 * that is written out share its values, if registers hold those of one iteration. */
static double times_of(const estimate *w, loop_set vars)
{
	int32_t last = -1;
	double n = 1;

	for (int32_t i = 0; i < w->depth; i++)
		if ((vars & BIT(w->loop[i].var)) != 0 && !w->loop[i].unrolled)
			last = i;
	for (int32_t i = 0; i < w->depth; i++) {
		const struct estimate_loop *l = &w->loop[i];

		if (i <= last ||
			(l->unrolled && ((vars & BIT(l->var)) != 0 || l->is_long)))
			n *= l->trips;
	}
	return n * w->share;
}

static void add_ops(estimate *w, double weight, loop_set vars)
{
	const machine_cycles *c = &w->k->machine->cycles;
	double n = weight * times_of(w, vars);

	if (estimate_in_lanes(w, vars))
		w->out->vector_cycles += n * (w->abreast ? c->fma : c->vector_op) * w->wide;
	else
		w->out->scalar_cycles += n * c->scalar_op;
}

static void add_access(estimate *w, bool store, machine_access kind, double n)
{
	const machine_cycles *c = &w->k->machine->cycles;
	double each = store ? c->store[kind] : c->load[kind];

	if (kind == MACHINE_GATHERED)
		n *= w->lanes;
	else if (kind != MACHINE_SCALAR)
		n *= w->wide;
	(store ? w->out->store : w->out->load)[kind] += n;
	w->out->access_cycles += n * each;
}

/* Element `at` of memory, or of a buffer (b) of its subscripts. */
static machine_access kind_of(const estimate *w, const loop_buf *b,
	const ix_form *at, loop_set vars, bool masked)
{
	int64_t s = 0;

	if (!estimate_in_lanes(w, vars))
		return MACHINE_SCALAR;
	if (b != NULL && b->n_vars > 0 && b->var[b->n_vars - 1] == w->lane_var)
		return masked ? MACHINE_MASKED : MACHINE_WHOLE;
	if (b != NULL && (b->lanes || estimate_own_banks(w, b)))
		return MACHINE_WHOLE;
	if (!ix_stride(at, w->lane_var, w->k->var[w->lane_var].extent, &s))
		return MACHINE_GATHERED;
	if (s == 1)
		return masked ? MACHINE_MASKED : MACHINE_WHOLE;
	return s == -1 || s == 2 ? MACHINE_STRIDED : MACHINE_GATHERED;
}

/* The buffer of the kernel for the tensor, or NULL. */
static const loop_buf *buffer_of(const estimate *w, int32_t tensor)
{
	int32_t eqn = loop_kept(w->k, tensor), comp = 0;

	if (eqn < 0 && !loop_maker(w->k, tensor, &eqn, &comp))
		return NULL;
	return w->k->buf_of[eqn][comp] < 0 ? NULL
					   : &w->k->buf[w->k->buf_of[eqn][comp]];
}

static void add_read(estimate *w, const expr *e, loop_set vars, bool masked)
{
	const loop_buf *b = w->copies ? NULL : buffer_of(w, e->tensor);

	if (b != NULL &&
		(b->where == LOOP_REGISTER || b->where == LOOP_HELD))
		return;
	add_access(w, false, kind_of(w, b, e->form, vars, masked),
		w->abreast ? times_of(w, ~(loop_set)0) * estimate_shared(w, e->form)
			   : times_of(w, vars));
}

static loop_set visit(estimate *w, const expr *e, bool masked);

/* Adds the cost of each condition that can fail. */
static void add_guards(estimate *w, const expr *e)
{
	loop_set vars;
	double part;

	if (e->kind != EX_INSIDE) {
		add_guards(w, e->arg[0]);
		add_guards(w, e->arg[1]);
		return;
	}
	vars = loop_form_vars(e->form);
	part = estimate_inside(w, e->form, e->lo, e->hi);
	if (part <= 0 || part >= 1 || estimate_is_free(w, e, vars))
		return;
	if (estimate_in_lanes(w, vars))
		add_ops(w, 1, vars);
	else
		w->out->scalar_cycles += times_of(w, vars) *
					 w->k->machine->cycles.scalar_guard;
}

/* A select by a condition on indices: only the side that is taken costs. */
static loop_set visit_guarded(
	estimate *w, const expr *e, const estimate_guard *g, bool masked)
{
	double share = w->share, late;
	loop_set x, y;

	if (g->part >= 1)
		return visit(w, e->arg[1], masked);
	if (g->part <= 0)
		return visit(w, e->arg[2], masked);
	add_guards(w, e->arg[0]);
	if (!g->by_lane)
		w->share = share * g->part;
	x = visit(w, e->arg[1], masked || g->by_lane);
	late = w->last_late;
	if (!g->by_lane)
		w->share = share * (1 - g->part);
	y = visit(w, e->arg[2], masked || g->by_lane);
	w->last_late = late > w->last_late ? late : w->last_late;
	w->share = share;
	return x | y | g->vars;
}

static loop_set visit(estimate *w, const expr *e, bool masked)
{
	estimate_guard g = {.part = 1};
	loop_set v = 0;
	int64_t own = e->flops;
	int64_t known = map_get(w->seen, &e->id, sizeof e->id, -1);
	double late = 0;

	if (known >= 0) {
		w->last_late = w->late.at[known];
		return w->vars.at[known];
	}
	if (e->kind == EX_SELECT && estimate_is_guard(w, e->arg[0], &g)) {
		v = visit_guarded(w, e, &g, masked);
		late = w->last_late;
	} else {
		for (int32_t i = 0; i < IR_MAX_ARGS && e->arg[i] != NULL; i++) {
			v |= visit(w, e->arg[i], masked);
			own -= e->arg[i]->flops;
			late = w->last_late > late ? w->last_late : late;
		}
		if (e->form != NULL)
			v |= loop_form_vars(e->form);
		if (e->kind == EX_READ) {
			add_read(w, e, v, masked);
			late = estimate_read(w, e->tensor);
		} else if (own > 0) {
			add_ops(w, (double)own, v);
			late += (double)own * w->k->machine->cycles.chain;
		}
	}
	map_set(w->seen, &e->id, sizeof e->id, w->vars.n);
	*vec_push(w->a, &w->vars) = v;
	*vec_push(w->a, &w->late) = w->last_late = late;
	return v;
}

/* ---- statements ---- */

static void add_store(
	estimate *w, const loop_eqn *e, int32_t eqn, int32_t comp, bool update)
{
	int32_t at = w->k->buf_of[eqn][comp];
	const loop_buf *b = at < 0 ? NULL : &w->k->buf[at];
	const ix_form *f = e->at;
	loop_set vars = loop_form_vars(f);
	machine_access kind;
	double n;

	if (b != NULL &&
		(b->where == LOOP_REGISTER || b->where == LOOP_HELD))
		return;
	kind = kind_of(w, b, f, vars, false);
	/* a sum is in a register during loops that do not walk it */
	n = times_of(w, vars);
	add_access(w, true, kind, n);
	if (update)
		add_access(w, false, kind, n);
}

/*
 * Adds what a sum along the lanes costs each time its loop ends: accumulators,
 * and then the halves of their lanes, are combined. Elements behind the vectors
 * are added one by one, and if loops around belong to the sum, too, then each
 * waits for the one before, as does what the lanes give.
 */
static void add_lane_sum(estimate *w, const loop_eqn *e)
{
	const machine_cycles *c = &w->k->machine->cycles;
	double times = w->share, steps, rest = 0;
	int32_t at = -1;

	for (int32_t i = 0; i < w->depth; i++)
		if (w->loop[i].node->lanes > 1)
			at = i;
	if (at < 0 || e->e->monoid == IR_SET ||
		(e->reduced & BIT(w->loop[at].var)) == 0)
		return;
	for (int32_t i = 0; i < at; i++)
		times *= w->loop[i].trips;
	steps = w->loop[at].node->unroll - 1;
	for (int32_t l = w->lanes; l > 1; l /= 2)
		steps += 2; /* a shuffle, and an operation */
	w->out->vector_cycles += times * steps * e->e->n_out * c->vector_op;
	if (at == 0 || (e->reduced & BIT(w->loop[at - 1].var)) == 0)
		return;
	rest = w->loop[at].rest + 1;
	w->out->scalar_cycles += times * rest * (c->chain - 1);
}

/* Adds the latency of a sum: each term waits for the one before. */
static void add_chain(estimate *w, const loop_eqn *e)
{
	const machine_cycles *c = &w->k->machine->cycles;
	const struct estimate_loop *l = w->depth > 0 ? &w->loop[w->depth - 1]
						     : NULL;
	double n, at_once;

	if (l == NULL || l->unrolled || (e->reduced & BIT(l->var)) == 0 ||
		e->e->monoid == IR_SET || l->trips < w->k->machine->schedule.short_sum)
		return;
	at_once = l->node->lanes > 1 && l->node->unroll > 1 ? l->node->unroll
							    : 1;
	n = c->chain / at_once - 1;
	if (n > 0)
		w->out->scalar_cycles += n * times_of(w, ~(loop_set)0);
}

/* A copy that goes on meanwhile: an instruction for each so many bytes of a lane. */
static void add_copy(estimate *w, const loop_eqn *e)
{
	double bytes = (double)dtype_size(e->body[0]->dtype);

	add_access(w, false, MACHINE_WHOLE,
		times_of(w, ~(loop_set)0) * bytes /
			w->k->machine->wide_bytes);
}

static void add_statement(estimate *w, const loop_node *n)
{
	const loop_eqn *e = &w->k->eqn[n->eqn];
	bool sums = e->e->monoid != IR_SET;
	double late = 0;

	if (w->staged && e->pack) {
		add_copy(w, e);
		return;
	}

	w->copies = estimate_copies(w, e);
	w->abreast = sums && estimate_is_abreast(w, n->eqn);
	w->seen = map_new(w->a);
	w->vars.n = w->late.n = 0;
	for (int32_t i = 0; i < e->e->n_out; i++) {
		const expr *x = e->body[i];
		loop_set vars = visit(w, x, false) | e->reduced | e->left;

		late = w->last_late > late ? w->last_late : late;

		/* a product and its sum are one instruction */
		if (w->abreast && x->kind == EX_SELECT)
			x = x->arg[1];
		if (sums && (x->kind != EX_CALL || x->flops != 1))
			add_ops(w, 1, vars);
		if (e->push)
			add_access(w, true, MACHINE_SCALAR,
				2 * times_of(w, ~(loop_set)0));
		else if (w->k->buf_of[n->eqn][i] >= 0 || !sums || e->stage)
			add_store(w, e, n->eqn, i, sums);
		else
			add_store(w, e, n->eqn, i, true);
	}
	w->copies = w->abreast = false;
	w->last_late = late;
	estimate_ready(w, e, n->eqn);
	add_chain(w, e);
	add_lane_sum(w, e);
	if (e->scan_var >= 0)
		estimate_scan(w, e, times_of(w, ~(loop_set)0));
}

/* The part of a scatter's updates that change an element of the blocks around. */
static double owned(const estimate *w, const loop_node *n)
{
	const loop_eqn *e = &w->k->eqn[n->eqn];
	const ix_form *row;
	double part = 1;

	for (const loop_node *u = n->up; u != NULL && e->push; u = u->up)
		if (u->kind == LOOP_BLOCK && loop_row_of(w->k, e, u->var, &row))
			part *= (double)u->size /
				(double)w->k->var[u->var].extent;
	return part;
}

/* Each update of a scatter is asked whether it is one of these. */
static void add_owned(estimate *w, const loop_node *n, double part)
{
	const machine_cycles *c = &w->k->machine->cycles;
	double share = w->share, all = times_of(w, ~(loop_set)0);

	w->out->scalar_cycles += all * c->scalar_guard;
	add_access(w, false, MACHINE_SCALAR, all);
	w->share *= part;
	add_statement(w, n);
	w->share = share;
}

static void add_leaf(estimate *w, const loop_node *n)
{
	const loop_eqn *e = &w->k->eqn[n->eqn];
	double all = times_of(w, ~(loop_set)0);

	switch (n->kind) {
	case LOOP_STMT:
		if (owned(w, n) < 1)
			add_owned(w, n, owned(w, n));
		else
			add_statement(w, n);
		break;
	case LOOP_INIT:
	case LOOP_DONE:
		for (int32_t i = 0; i < e->e->n_out; i++) {
			w->seen = map_new(w->a);
			w->vars.n = w->late.n = 0;
			if (n->kind == LOOP_INIT && e->init[i] != NULL)
				visit(w, e->init[i], false);
			if (n->kind == LOOP_DONE)
				add_access(w, true,
					kind_of(w, NULL, e->start_at,
						loop_form_vars(e->start_at),
						false),
					all);
			else
				add_store(w, e, n->eqn, i, false);
		}
		break;
	case LOOP_PART:
		add_access(w, true,
			w->lanes > 1 ? MACHINE_WHOLE : MACHINE_SCALAR,
			all * e->e->n_out);
		estimate_parts(w, e, all * w->lanes);
		break;
	case LOOP_JOIN:
		add_access(w, false,
			w->lanes > 1 ? MACHINE_WHOLE : MACHINE_SCALAR,
			all * (double)e->n_parts * e->e->n_out);
		add_ops(w, (double)e->n_parts, ~(loop_set)0);
		estimate_parts(w, e, all * w->lanes * (double)e->n_parts);
		break;
	case LOOP_SCALE:
		add_ops(w, 2, ~(loop_set)0);
		break;
	case LOOP_STAGE:
	case LOOP_TILE:
	case LOOP_FOR:
	case LOOP_BLOCK:
	case LOOP_SPAN:
		break;
	}
}

/* ---- squares ---- */

static void add_turn(estimate *w, const loop_node *n)
{
	double all = estimate_length(w, n->var);

	if (n->row_var >= 0)
		all *= estimate_length(w, n->row_var);
	w->out->access_cycles += times_of(w, ~(loop_set)0) * all *
				 w->k->machine->cycles.turned;
}

/* ---- the tree ---- */

/* Does a statement below n add up along the variable? */
static bool adds_along(const estimate *w, const loop_node *n, int32_t var)
{
	if (!loop_is_loop(n))
		return (w->k->eqn[n->eqn].reduced & BIT(var)) != 0;
	for (int32_t i = 0; i < n->n_child; i++)
		if (adds_along(w, n->child[i], var))
			return true;
	return false;
}

/* The number of vectors for n elements; the remainder in halves or a partial
 * one, or, in sums along the lanes, one by one. */
static double vectors_of(estimate *w, const loop_node *n, double elems)
{
	double full = (double)((int64_t)(elems / n->lanes));
	double rest = elems - full * n->lanes;

	if (rest <= 0 || loop_may_part(w->k, n))
		return full + (rest > 0);
	if (adds_along(w, n, n->var))
		return full + rest;
	for (int32_t lanes = n->lanes / 2; lanes >= 1 && rest > 0; lanes /= 2)
		if (rest >= lanes) {
			rest -= lanes;
			full += 1;
		}
	return full;
}

static void walk(estimate *w, const loop_node *n);

static void walk_children(estimate *w, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		walk(w, n->child[i]);
}

static void walk_for(estimate *w, const loop_node *n)
{
	struct estimate_range was = w->range[n->var];
	int32_t lanes = w->lanes, lane_var = w->lane_var;
	double wide = w->wide, share = w->share;
	double elems = estimate_length(w, n->var);
	struct estimate_loop *l = &w->loop[w->depth];
	estimate_scope outer = {0};

	w->share *= estimate_needed(w, n);
	*l = (struct estimate_loop){.var = n->var, .trips = elems, .node = n};
	if (n->lanes > 1) {
		struct loop_widest widest = {w->k, n->var, 1};

		loop_widest(&widest, n);
		l->trips = vectors_of(w, n, elems);
		l->rest = (double)((int64_t)elems % n->lanes);
		w->lanes = n->lanes;
		w->lane_var = n->var;
		w->wide = estimate_whole((double)n->lanes * widest.bytes /
				w->k->machine->vector_bytes);
	}
	l->unrolled = n->lanes <= 1 && n->unroll >= (int32_t)elems &&
		      n->unroll > 1;
	l->is_long = l->unrolled && written(w, n) > w->k->machine->vector_registers;
	w->depth++;
	if (!l->unrolled) {
		outer = estimate_enter(w);
		w->out->scalar_cycles += times_of(w, ~(loop_set)0) *
					 w->k->machine->cycles.loop;
	}
	walk_children(w, n);
	if (!l->unrolled)
		estimate_leave(w, outer, times_of(w, ~(loop_set)0));
	w->depth--;
	w->range[n->var] = was;
	w->lanes = lanes;
	w->lane_var = lane_var;
	w->wide = wide;
	w->share = share;
}

/* Walks one block, the first, for all. */
static void walk_block(estimate *w, const loop_node *n)
{
	struct estimate_range was = w->range[n->var];
	double elems = estimate_length(w, n->var), share = w->share;
	double blocks = estimate_whole(elems / (double)n->size);
	bool staged = w->staged;

	if (n->stages > 1) { /* but those of the first pieces */
		w->out->ahead = 1 - 1 / blocks;
		w->staged = true;
	}
	w->loop[w->depth++] = (struct estimate_loop){
		.var = n->var, .trips = blocks, .node = n};
	/* a shorter block at the end counts with its length */
	if (elems < blocks * (double)n->size)
		w->share *= elems / (blocks * (double)n->size);
	if (was.lo + n->size < was.hi)
		w->range[n->var].hi = was.lo + n->size;
	else
		w->share = share;
	w->share *= estimate_needed(w, n);
	walk_children(w, n);
	w->range[n->var] = was;
	w->share = share;
	w->staged = staged;
	w->depth--;
}

/* Inside a block, a span is its intersection with the block. */
static void walk_span(estimate *w, const loop_node *n)
{
	struct estimate_range was = w->range[n->var], now = was;
	struct estimate_range reach = w->reach[n->var];
	double share = w->share;
	int64_t extent = w->k->var[n->var].extent;

	if (was.lo == 0 && was.hi == extent) {
		now.lo = n->lo > was.lo ? n->lo : was.lo;
		now.hi = n->hi < was.hi ? n->hi : was.hi;
	} else { /* blocks walk all of it */
		w->share *= (double)(n->hi - n->lo) / (double)extent;
	}
	w->range[n->var] = now;
	w->reach[n->var] = (struct estimate_range){n->lo, n->hi};
	if (now.hi > now.lo)
		walk_children(w, n);
	w->range[n->var] = was;
	w->reach[n->var] = reach;
	w->share = share;
}

static void walk_node(estimate *w, const loop_node *n)
{
	switch (n->kind) {
	case LOOP_FOR:
		walk_for(w, n);
		break;
	case LOOP_BLOCK:
		walk_block(w, n);
		break;
	case LOOP_SPAN:
		walk_span(w, n);
		break;
	case LOOP_TILE:
		w->out->tile_cycles += times_of(w, ~(loop_set)0) * estimate_tile(w, n);
		break;
	case LOOP_STAGE:
		add_turn(w, n);
		break;
	case LOOP_INIT:
	case LOOP_STMT:
	case LOOP_DONE:
	case LOOP_PART:
	case LOOP_JOIN:
	case LOOP_SCALE:
		add_leaf(w, n);
		break;
	}
}

/* One thread begins the copy: what it moves is as without it. */
static void walk_bulk(estimate *w, const loop_node *n)
{
	loop_phase_cost was = *w->out;

	walk_node(w, n);
	w->out->vector_cycles = was.vector_cycles;
	w->out->access_cycles = was.access_cycles;
	w->out->wait_cycles = was.wait_cycles;
	w->out->scalar_cycles = was.scalar_cycles +
		times_of(w, ~(loop_set)0) * w->k->machine->block.bulk_cycles;
}

/* Outside of the loops by warp, each warp of a block does all of it. */
static void walk(estimate *w, const loop_node *n)
{
	bool dealt = w->dealt;
	double share = w->share;

	if (w->depth == ESTIMATE_MAX_DEPTH)
		return;
	if (n->by_warp)
		w->out->scalar_cycles += times_of(w, ~(loop_set)0) * w->warps *
					 w->k->machine->block.meet_cycles;
	w->dealt |= n->by_warp;
	if (!w->dealt && !loop_is_loop(n))
		w->share *= w->warps;
	if (n->bulk)
		walk_bulk(w, n);
	else
		walk_node(w, n);
	w->dealt = dealt;
	w->share = share;
}

void loop_estimate_of(loop_kernel *k, loop_estimate *out)
{
	arena *a = arena_child(k->a);
	estimate w = {.a = a, .k = k, .lanes = 1, .lane_var = -1, .wide = 1};

	*out = (loop_estimate){.machine = k->machine,
		.n_phases = k->n_phases,
		.in_rounds = k->s->in_rounds};
	w.range = arena_array(a, struct estimate_range, k->n_vars + 1);
	w.reach = arena_array(a, struct estimate_range, k->n_vars + 1);
	loop_link(k);
	w.ready = arena_array(a, double, k->n_eqns + 1);
	w.made = arena_array(a, int64_t, k->n_eqns + 1);
	for (int32_t i = 0; i < k->n_eqns; i++)
		w.made[i] = -1;
	loop_estimate_homes(&w);
	for (int32_t p = 0; p < k->n_phases; p++) {
		const loop_phase *ph = &k->phase[p];

		w.out = &out->phase[p];
		w.warps = ph->warps > 1 ? ph->warps : 1;
		w.out->chunks = (double)ph->n_chunks * w.warps;
		w.share = estimate_keeps(k, ph) ? 0 : 1;
		for (int32_t v = 0; v < k->n_vars; v++)
			w.range[v] = w.reach[v] = (struct estimate_range){
				0, k->var[v].extent};
		for (int32_t i = 0; i < ph->n_roots && w.share > 0; i++)
			walk(&w, ph->root[i]);
		if (w.share > 0)
			loop_estimate_memory(&w, ph);
	}
	out->serial = w.all / k->machine->schedule.bytes_an_elem +
			      w.work / k->machine->schedule.ops_an_elem <
		      (double)k->machine->schedule.serial_elems;
	arena_free(a);
}

/* ---- seconds ---- */

static double phase_arithmetic(const machine *m, const loop_phase_cost *p)
{
	double ops = p->vector_cycles + p->scalar_cycles;
	double most = ops > p->access_cycles ? ops : p->access_cycles;
	double least = ops > p->access_cycles ? p->access_cycles : ops;

	return (most + m->cycles.beside * least + p->tile_cycles) / m->hertz;
}

static double phase_memory(const machine *m, const loop_phase_cost *p)
{
	double s = 0;

	for (int32_t l = MACHINE_L2; l < MACHINE_N_LEVELS; l++)
		s += p->bytes[l] / m->memory[l].bytes_per_s;
	return s;
}

static double phase_seconds(
	const machine *m, const loop_phase_cost *p, double threads)
{
	double a = phase_arithmetic(m, p), b = phase_memory(m, p);
	double hidden = m->hidden * (1 - p->ahead);
	double all = (a > b ? a + hidden * b : b + hidden * a) +
		     p->wait_cycles / m->hertz;
	/* threads may be idle during the last chunks; this is not counted */
	double rounds = p->chunks > threads ? p->chunks / threads : 1;

	return all * rounds / (p->chunks > 0 ? p->chunks : 1) +
	       rounds * m->chunk_s;
}

double loop_estimate_seconds(const loop_estimate *e, int32_t threads)
{
	const machine *m = e->machine;
	double n = threads > 0 ? threads : m->threads;
	double sum;

	if (e->serial)
		n = 1;
	sum = machine_launch(m, e->in_rounds && n <= 1);
	for (int32_t i = 0; i < e->n_phases; i++)
		sum += phase_seconds(m, &e->phase[i], n) +
		       (i > 0 && !e->serial ? m->phase_s : 0);
	return sum;
}

double loop_estimate_part(const loop_estimate *e, loop_term t)
{
	const machine *m = e->machine;
	double cycles = 0, s = 0;

	for (int32_t i = 0; i < e->n_phases; i++) {
		const loop_phase_cost *p = &e->phase[i];

		switch (t) {
		case LOOP_TERM_VECTOR:
			cycles += p->vector_cycles + p->wait_cycles;
			break;
		case LOOP_TERM_SCALAR:
			cycles += p->scalar_cycles;
			break;
		case LOOP_TERM_ACCESS:
			cycles += p->access_cycles;
			break;
		case LOOP_TERM_TILE:
			cycles += p->tile_cycles;
			break;
		case LOOP_TERM_MEMORY:
			s += phase_memory(m, p);
			break;
		case LOOP_TERM_LAUNCH:
			s += i == 0 ? m->launch_s : m->phase_s;
			break;
		case LOOP_N_TERMS:
			break;
		}
	}
	return s + cycles / m->hertz;
}
