/*
 * lower_nest.c: lowers loops. The variable of a node has an interval, with
 * constant ends or forms; FOR walks it, BLOCK cuts it, SPAN restricts it. A
 * vector loop becomes a loop over whole vectors, possibly several at a time,
 * and one over the remaining elements:
 *
 *   for %i = lo .. hi step 64 whole    4 vectors, 4 accumulators
 *   for %i = .. .. hi step 16 whole
 *   for %i = .. .. hi step 8 whole     if the remainder is long enough
 *   for %i = .. .. hi
 */
#include "kern/lower.h"

void lw_declare_registers(lowering *lw, const loop_node *scope)
{
	for (int32_t i = 0; i < lw->k->n_bufs; i++) {
		const loop_buf *b = &lw->k->buf[i];

		if (b->scope != loop_first(scope) ||
			(scope == NULL && b->phase != lw->phase))
			continue;
		if (b->where == LOOP_HELD)
			lw_declare_held(lw, i);
		if (b->where != LOOP_REGISTER || !lw->named[i])
			continue;
		for (int64_t j = 0; j < b->elems; j++)
			lw->reg[i][j] = lw_register(
				lw, lw_type(lw, b->dtype, lw->lanes), 0);
	}
}

/* Adds a fact that holds inside. */
static void add_fact(lowering *lw, const ix_form *f, int64_t lo, int64_t hi)
{
	*vec_push(lw->a, &lw->facts) = (ix_fact){f, lo, hi};
	lw->dom->facts = lw->facts.at;
	lw->dom->n_facts = lw->facts.n;
}

static void body(lowering *lw, const loop_node *n)
{
	struct marks m = lw_mark(lw);

	lw_declare_registers(lw, n);
	lw_nest(lw, n->child, n->n_child);
	lw_release(lw, m);
}

static void unrolled(lowering *lw, const loop_node *n)
{
	const struct span *s = &lw->span[n->var];
	form v = lw->var[n->var], from = s->lo;
	int64_t len = s->len, min, max;
	int32_t first;
	struct marks m;

	/* i iterations are before this one, and len - 1 - i behind it */
	ix_range(lw->dom, ix_axis(lw->s->x, lw->dom, n->var), &min, &max);
	if (s->clo >= 0) {
		min = s->clo;
		max = s->clo + len - 1;
	}
	lw_masks_in_front(lw, n, true);
	lw_rows_in_front(lw, n);
	first = lw_hold_sums(lw, n);
	m = lw_mark(lw);
	for (int64_t i = 0; i < len; i++) {
		kern_scope(lw->b);
		add_fact(lw, ix_axis(lw->s->x, lw->dom, n->var), min + i,
			max - len + i + 2);
		lw->var[n->var] = from;
		lw->plus[n->var] = i;
		body(lw, n);
		lw_release(lw, m);
		lw_close(lw);
	}
	lw->var[n->var] = v;
	lw->plus[n->var] = 0;
	lw_let_go_of(lw, first);
}

static void one_by_one(lowering *lw, const loop_node *n, form from);

/* Walks the updates of a scatter, of which this chunk does some. */
static void searched(lowering *lw, const loop_node *n, const loop_node *leaf)
{
	const struct span *s = &lw->span[n->var];
	int32_t lanes = lw->k->machine->lanes;
	kern_stmt loop = {.lo = s->lo, .step = lanes};
	struct marks m = lw_mark(lw);
	form v = lw->var[n->var], at;
	val found;
	kern_val l;

	loop.hi = lw_addc(lw, s->lo, s->len / lanes * lanes);
	at = lw_form_of(lw, kern_for_as(lw->b, &loop, NULL));
	lw->var[n->var] = at;
	found = lw_search(lw, n, leaf);
	lw_if(lw, lw_op1(lw, KERN_ANY, (val){0, TN_BOOL, 1, 0}, found));
	l = lw_for_lanes(lw, lanes);
	lw_if(lw, lw_lane_of(lw, found, lw_form_of(lw, l)));
	lw->var[n->var] = lw_add(lw, at, lw_form_of(lw, l));
	body(lw, n);
	lw_close(lw);
	lw_close(lw);
	lw_close(lw);
	lw_close(lw);
	lw_release(lw, m);
	lw->var[n->var] = v;
	if (s->len % lanes != 0)
		one_by_one(lw, n, loop.hi);
}

/* from: the first iteration; NULL: the loop's start */
static void one_by_one(lowering *lw, const loop_node *n, form from)
{
	const loop_node *leaf = from == NULL ? lw_searched(lw, n) : NULL;
	const struct span *s = &lw->span[n->var];
	form v = lw->var[n->var];
	struct marks m = lw_mark(lw);
	int32_t n_carry = lw->carry.n;
	kern_stmt loop = {
		.step = 1, .down = n->backward, .by_warp = n->by_warp};

	if (leaf != NULL) {
		searched(lw, n, leaf);
		return;
	}
	if (from == NULL && lw_is_unrolled(lw, n)) {
		unrolled(lw, n);
		return;
	}
	lw_masks_in_front(lw, n, false);
	loop.lo = from == NULL ? s->lo : from;
	loop.hi = s->hi;
	lw_open_scans(lw, n);
	lw->var[n->var] = lw_form_of(lw, kern_for_as(lw->b, &loop, NULL));
	lw_enter_scans(lw, n);
	body(lw, n);
	lw_leave_scans(lw, n);
	lw_close(lw);
	lw->carry.n = n_carry;
	lw->var[n->var] = v;
	lw_release(lw, m);
}

/* Prefetches what later vectors read. */
static void ahead(lowering *lw, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_ahead; i++) {
		const loop_ahead *a = &n->ahead[i];

		kern_prefetch(lw->b, loop_param(lw->k, a->tensor),
			lw_form(lw, a->at, 0), a->far);
	}
}

/* Lowers the body for a vector, with the accumulators of turn `turn`. */
static void vector(lowering *lw, const loop_node *n, int32_t turn)
{
	for (int32_t i = 0; i < lw->acc.n; i++)
		lw->acc.at[i].turn = turn % lw->acc.at[i].n;
	lw->plus[n->var] = lw->each > 1 ? turn : (int64_t)turn * lw->lanes;
	ahead(lw, n);
	lw_enter_windows(lw);
	body(lw, n);
	lw_move_windows(lw);
}

/*
 * Lowers the loop over `unroll` vectors at a time, from *from on; sets *from to
 * the start of the remainder.
 */
static void vectors(
	lowering *lw, const loop_node *n, int32_t unroll, form *from)
{
	const struct span *s = &lw->span[n->var];
	kern_stmt loop = {.lo = *from,
		.hi = s->hi,
		.step = (int64_t)unroll * lw->lanes,
		.whole = true};
	form v = lw->var[n->var];
	kern_val after;
	struct marks m = lw_mark(lw);
	int64_t len;

	if (kern_form_is_const(lw_sub(lw, s->hi, *from), &len) &&
		len >= loop.step)
		lw_hoist_funs(lw, n);
	lw->var[n->var] = *from;
	if (n->unroll <= 1 && s->len >= lw->lanes)
		lw_open_windows(lw, n);
	if (kern_form_is_const(lw_sub(lw, s->hi, *from), &len)) {
		loop.hi = lw_addc(lw, *from, len / loop.step * loop.step);
		loop.whole = false;
	}
	lw->var[n->var] = lw_form_of(lw,
		kern_for_as(lw->b, &loop, loop.whole ? &after : NULL));
	lw->each = n->wide && unroll > 1 ? unroll : 1;
	for (int32_t u = 0; u < unroll; u++) {
		if (unroll > 1)
			kern_scope(lw->b);
		vector(lw, n, u);
		if (unroll > 1)
			lw_close(lw);
	}
	lw_close(lw);
	lw->each = 1;
	*from = loop.whole ? lw_form_of(lw, after) : loop.hi;
	lw->plus[n->var] = 0;
	lw->var[n->var] = v;
	lw->window.n = 0;
	lw_release(lw, m);
}

/* Is there a reduction along the variable below n? */
static bool adds_along(const lowering *lw, const loop_node *n, int32_t var)
{
	if (!loop_is_loop(n))
		return (n->kind != LOOP_STMT && n->kind != LOOP_INIT &&
			       n->kind != LOOP_DONE) ||
		       (lw->k->eqn[n->eqn].reduced >> var & 1) != 0;
	for (int32_t i = 0; i < n->n_child; i++)
		if (adds_along(lw, n->child[i], var))
			return true;
	return false;
}

enum { LEAST_LANES = 4 };

/*
 * Lowers shorter vectors for `left` remaining elements; returns how many still
 * remain.
 */
static int64_t short_vectors(
	lowering *lw, const loop_node *n, int64_t left, form *from)
{
	if (adds_along(lw, n, n->var))
		return left;
	for (lw->lanes = n->lanes / 2; lw->lanes >= LEAST_LANES; lw->lanes /= 2)
		if (left >= lw->lanes) {
			vectors(lw, n, 1, from);
			left -= lw->lanes;
		}
	return left;
}

/* Lowers the remaining elements as one incomplete vector. */
static void part_vector(
	lowering *lw, const loop_node *n, int64_t left, form from)
{
	struct marks m = lw_mark(lw);
	form v = lw->var[n->var];

	lw->var[n->var] = from;
	lw->lanes = n->lanes;
	while (lw->lanes / 2 >= left && lw->lanes / 2 >= LEAST_LANES)
		lw->lanes /= 2;
	lw->dead = lw->lanes - (int32_t)left;
	lw_masks_in_front(lw, n, false);
	body(lw, n);
	lw_release(lw, m);
	lw->dead = 0;
	lw->var[n->var] = v;
}

/*
 * The number of remaining elements that are lowered as an incomplete vector, if
 * only the last block is not a multiple of vectors; 0: unknown, or not allowed.
 */
static int64_t last_part(const lowering *lw, const loop_node *n)
{
	const struct span *s = &lw->span[n->var];

	return s->most > 0 && s->most % n->lanes == 0 &&
			       loop_may_part(lw->k, n)
		       ? s->rest % n->lanes
		       : 0;
}

/*
 * Lowers whole vectors; returns the number of remaining elements, or -1 if it
 * is unknown.
 */
static int64_t whole_vectors(lowering *lw, const loop_node *n, form *from)
{
	const struct span *s = &lw->span[n->var];
	int32_t first = lw->acc.n, unroll = n->unroll > 1 ? n->unroll : 1;
	int64_t left = s->len;

	if (s->len >= 0 && s->len < (int64_t)unroll * n->lanes)
		unroll = 1;
	if (left >= 0 && left < n->lanes)
		return left;
	lw_open_lane_accs(lw, n, unroll);
	if (unroll > 1) {
		vectors(lw, n, unroll, from);
		if (left >= 0)
			left %= (int64_t)unroll * n->lanes;
	}
	if (left < 0 || left >= n->lanes)
		vectors(lw, n, 1, from);
	lw_close_lane_accs(lw, first);
	return left >= 0 ? left % n->lanes : left;
}

static void vector_for(lowering *lw, const loop_node *n)
{
	struct span *s = &lw->span[n->var];
	struct marks m = lw_mark(lw);
	int32_t n_carry = lw->carry.n;
	int64_t left, min, max;
	form from = s->lo;

	ix_range(lw->dom, ix_axis(lw->s->x, lw->dom, n->var), &min, &max);
	/* a block that is cut again */
	if (s->len < 0 && max - min + 1 < n->lanes) {
		one_by_one(lw, n, NULL);
		return;
	}
	kern_scope(lw->b);
	lw_open_scans(lw, n);
	lw->vvar = n->var;
	lw->lanes = n->lanes;
	left = whole_vectors(lw, n, &from);
	if (left > 1 && loop_may_part(lw->k, n)) {
		part_vector(lw, n, left, from);
		left = 0;
	} else if (left < 0 && last_part(lw, n) > 1) {
		lw_if(lw, lw_less(lw, from, s->hi));
		part_vector(lw, n, last_part(lw, n), from);
		lw_close(lw);
		left = 0;
	} else if (left > 0) {
		left = short_vectors(lw, n, left, &from);
	}
	lw->lanes = 1;
	lw->vvar = -1;
	lw_release(lw, m);
	if (left > 0 || (left < 0 && (s->whole == 0 || s->whole % n->lanes != 0)))
		one_by_one(lw, n, from);
	lw->carry.n = n_carry;
	lw_close(lw);
}

/* ---- chunks ---- */

/* The number of iterations of a chunk loop, and of chunk loops inside it. */
static int64_t n_pieces(const lowering *lw, const loop_node *n)
{
	int64_t ext = lw->k->var[n->var].extent;

	return n->kind == LOOP_FOR ? ext : (ext + n->size - 1) / n->size;
}

static int64_t pieces_inside(const lowering *lw, const loop_node *n)
{
	int64_t p = 1;

	while (n->n_child == 1) {
		n = n->child[0];
		if (n->parallel)
			p *= n_pieces(lw, n);
	}
	return p;
}

static form number_of_chunk(lowering *lw, const loop_node *n)
{
	form t = kern_div(lw->b, lw->chunk, pieces_inside(lw, n));

	return n->up != NULL ? kern_mod(lw->b, t, n_pieces(lw, n)) : t;
}

/* Restricts the loop to the iterations in which its clips hold. */
static void clip(lowering *lw, const loop_node *n)
{
	ix *x = lw->s->x;
	struct span *s = &lw->span[n->var];

	for (int32_t i = 0; i < n->n_clip; i++) {
		const loop_clip *c = &n->clip[i];
		const ix_form *rest = c->rest, *from, *to;
		form lo, hi;

		lw_load_funs(lw, rest);
		if (c->stride > 0) { /* lo - rest <= var < hi - rest */
			from = ix_sub(x, lw->dom, ix_const(x, c->lo), rest);
			to = ix_sub(x, lw->dom, ix_const(x, c->hi), rest);
		} else { /* rest - hi < var <= rest - lo */
			from = ix_sub(x, lw->dom, rest, ix_const(x, c->hi - 1));
			to = ix_sub(x, lw->dom, rest, ix_const(x, c->lo - 1));
		}
		lo = kern_max(lw->b, s->lo, lw_form(lw, from, 0));
		hi = kern_min(lw->b, s->hi, lw_form(lw, to, 0));
		*s = (struct span){lo, hi, -1, -1, -1, 1, 0, 0, 0, 0};
		*vec_push(lw->a, &lw->facts) = (ix_fact){c->f, c->lo, c->hi};
	}
	lw->dom->facts = lw->facts.at;
	lw->dom->n_facts = lw->facts.n;
}

static void for_loop(lowering *lw, const loop_node *n);

static void clipped(lowering *lw, const loop_node *n)
{
	struct span old = lw->span[n->var], *s = &lw->span[n->var];
	form v = lw->var[n->var];
	struct marks m = lw_mark(lw);
	loop_node all = *n;

	all.n_clip = 0;
	kern_scope(lw->b);
	if (n->parallel) {
		lw->var[n->var] = number_of_chunk(lw, n);
		s->lo = lw->var[n->var];
		s->hi = lw_addc(lw, s->lo, 1);
		clip(lw, n);
		lw_if(lw, lw_less(lw, s->lo, s->hi));
		body(lw, n);
		lw_close(lw);
		lw->var[n->var] = v;
	} else {
		clip(lw, n);
		for_loop(lw, &all);
	}
	lw_release(lw, m);
	*s = old;
	lw_close(lw);
}

static void walk(lowering *lw, const loop_node *n)
{
	if (n->lanes > 1)
		vector_for(lw, n);
	else
		one_by_one(lw, n, NULL);
}

/*
 * Lowers the part of an interval before or after the needed one, in which the
 * guard's form is within these bounds.
 */
static void fill(lowering *lw, const loop_node *n, struct span s, int64_t lo,
	int64_t hi)
{
	struct marks m = lw_mark(lw);
	loop_node one = *n; /* only constants are stored */

	one.unroll = 0;
	lw->span[n->var] = s;
	add_fact(lw, n->need[0].f, lo, hi);
	walk(lw, &one);
	lw_release(lw, m);
}

static void fill_outside(lowering *lw, const loop_node *n, struct span old)
{
	struct span s = lw->span[n->var], left = old;
	const ix_fact *f = &n->need[0];
	int64_t min, max, stride;

	ix_range(lw->dom, f->f, &min, &max);
	ix_stride(f->f, n->var, lw->k->var[n->var].extent, &stride);
	left.clo = left.chi = left.len = -1;
	left.mult = 1;
	left.whole = s.whole;
	left.most = 0;
	if (s.lo != old.lo) {
		left.hi = kern_min(lw->b, s.lo, old.hi);
		fill(lw, n, left, stride > 0 ? min : f->hi,
			stride > 0 ? f->lo : max + 1);
	}
	if (s.hi != old.hi) {
		left.lo = s.hi;
		left.hi = old.hi;
		fill(lw, n, left, stride > 0 ? f->hi : min,
			stride > 0 ? max + 1 : f->lo);
	}
	lw->span[n->var] = s;
}

static void for_loop(lowering *lw, const loop_node *n)
{
	struct span old = lw->span[n->var];

	if (n->n_clip > 0) {
		clipped(lw, n);
		return;
	}
	lw_narrow_to_need(lw, n);

	if (n->parallel) {
		lw->var[n->var] = number_of_chunk(lw, n);
		lw_declare_registers(lw, n);
		lw_nest(lw, n->child, n->n_child);
		return;
	}
	if (n->n_needs > 0 && n->fills)
		fill_outside(lw, n, old);
	walk(lw, n);
	lw->span[n->var] = old;
}

/*
 * The possible lengths of blocks of an interval, of which there are one or two.
 */
static void pieces(struct span *s, const struct span *old, int64_t size)
{
	int64_t most = old->len >= 0 ? old->len : old->most;
	int64_t rest = old->len >= 0 ? old->len : old->rest;

	if (most < size) {
		s->most = most;
		s->rest = rest;
	} else if (old->len >= 0 || most % size == 0) {
		s->most = size;
		s->rest = rest % size;
	}
}

/* A number of which the length is a multiple; 1: unknown. */
static int64_t length_of(const struct span *s)
{
	if (s->len >= 0)
		return s->len;
	if (s->most > 0)
		return gcd_i64(s->most, s->rest);
	return s->whole > 0 ? s->whole : 1;
}

/* The body of a block, if what it needs can hold in it. */
static void guarded(lowering *lw, const loop_node *n)
{
	int32_t open;

	if (!lw_open_need(lw, n, &open))
		return;
	lw_declare_registers(lw, n);
	lw_nest(lw, n->child, n->n_child);
	lw_close_loops(lw, open);
}

/* Lowers the block that begins at `from`. */
static void piece(lowering *lw, const loop_node *n, form from)
{
	struct span old = lw->span[n->var], *s = &lw->span[n->var];
	int64_t mult = gcd_i64(old.mult, n->size);
	form end = lw_addc(lw, from, n->size);

	if (n->number >= 0)
		lw->var[n->number] = kern_div(lw->b, from, n->size);
	if (length_of(&old) % n->size == 0) {
		*s = (struct span){
			from, end, -1, -1, n->size, mult, 0, 0, 0, 0};
	} else {
		*s = (struct span){from, NULL, -1, -1, -1, mult, 0, 0, 0, 0};
		pieces(s, &old, n->size);
		s->end = old.clo >= 0 ? old.chi : old.end;
		s->hi = kern_min(lw->b, end, old.hi);
	}
	guarded(lw, n);
	*s = old;
}

static void block(lowering *lw, const loop_node *n)
{
	const struct span *s = &lw->span[n->var];
	struct block b = {n->var, lw_block_level(n), NULL};
	struct marks m = lw_mark(lw);
	/* if the block contains the whole loop, its ends do not change */
	bool only = s->clo >= 0 && s->len <= n->size && n->number < 0 &&
		    !n->by_warp;
	kern_stmt loop = {.lo = s->lo,
		.hi = s->hi,
		.step = n->size,
		.by_warp = n->by_warp};

	if (only) {
		b.from = lw_num(lw, s->clo);
		if (!n->parallel)
			kern_scope(lw->b);
	} else if (n->parallel) {
		b.from = lw_scale(lw, number_of_chunk(lw, n), n->size);
	} else {
		b.from = lw_form_of(lw, kern_for_as(lw->b, &loop, NULL));
	}
	*vec_push(lw->a, &lw->block) = b;
	if (only) {
		lw_declare_registers(lw, n);
		lw_nest(lw, n->child, n->n_child);
	} else {
		piece(lw, n, b.from);
	}
	lw->block.n--;
	if (!n->parallel) {
		lw_release(lw, m);
		lw_close(lw);
	}
}

/*
 * ---- stages ----
 *
 * A block with n stages: each of its buffers is n arrays.
 *
 *   copies of piece 0 into array 0; commit; .. of piece n - 2 into array n - 2; commit
 *   for %k = .. step n pieces {
 *     wait n - 2; barrier                 piece 0 is there, in array 0; and all warps
 *     copies of piece n - 1; commit       have read what array n - 1 had
 *     what computes with piece 0
 *     wait n - 2; barrier; ..             the same with piece 1, in array 1
 *   }
 *   wait 0
 *
 * Where the number of pieces is no multiple of n, the last of them are under
 * conditions.
 */

struct stages {
	lowering *lw;
	const loop_node *n;
	form hi;
	int32_t of; /* so many */
};

static void staged(struct stages *s, form from, int32_t stage, int32_t only)
{
	lowering *lw = s->lw;
	struct marks m = lw_mark(lw);

	kern_scope(lw->b);
	lw->stage = stage % s->of;
	lw->only = only;
	*vec_push(lw->a, &lw->block) =
		(struct block){s->n->var, lw_block_level(s->n), from};
	piece(lw, s->n, from);
	lw->block.n--;
	lw->only = LW_ALL;
	lw->stage = 0;
	lw_release(lw, m);
	lw_close(lw);
}

/* The copies of a piece, if there is one, and the end of their group. */
static void copies(struct stages *s, form from, int32_t stage, bool sure)
{
	lowering *lw = s->lw;

	if (!sure)
		lw_if(lw, lw_less(lw, from, s->hi));
	staged(s, from, stage, LW_COPIES);
	if (!sure)
		lw_close(lw);
	kern_commit(lw->b);
}

/* A piece is computed with; sure: there is one. */
static void next_piece(struct stages *s, form from, int32_t stage, bool sure, bool next)
{
	lowering *lw = s->lw;
	int32_t ahead = s->of - 1;

	if (!sure)
		lw_if(lw, lw_less(lw, from, s->hi));
	kern_wait(lw->b, s->of - 2);
	kern_barrier(lw->b);
	copies(s, lw_addc(lw, from, ahead * s->n->size), stage + ahead, next);
	staged(s, from, stage, LW_OTHERS);
	if (!sure)
		lw_close(lw);
}

static void stages(lowering *lw, const loop_node *n)
{
	struct stages s = {lw, n, lw->span[n->var].hi, n->stages};
	int64_t pieces = lw->span[n->var].len / n->size;
	bool whole = pieces % s.of == 0;
	kern_stmt loop = {.lo = lw->span[n->var].lo,
		.hi = s.hi,
		.step = n->size * s.of};
	form at;

	for (int32_t i = 0; i + 1 < s.of && i < pieces; i++)
		copies(&s, lw_addc(lw, loop.lo, i * n->size), i, true);
	at = lw_form_of(lw, kern_for_as(lw->b, &loop, NULL));
	for (int32_t i = 0; i < s.of; i++)
		next_piece(&s, lw_addc(lw, at, i * n->size), i, whole || i == 0,
			whole && i == 0);
	lw_close(lw);
	kern_wait(lw->b, 0);
}

static void span(lowering *lw, const loop_node *n)
{
	struct span old = lw->span[n->var], *s = &lw->span[n->var];
	struct marks m = lw_mark(lw);
	int64_t ends = gcd_i64(n->lo, n->hi);
	/* else the last block, which may be shorter, can end in the span */
	bool whole = n->hi <= old.end;

	s->mult = gcd_i64(old.mult, n->lo);
	if (old.clo >= 0) {
		kern_scope(lw->b);
		s->clo = n->lo > old.clo ? n->lo : old.clo;
		s->chi = n->hi < old.chi ? n->hi : old.chi;
		s->len = s->chi > s->clo ? s->chi - s->clo : 0;
		s->lo = lw_num(lw, s->clo);
		s->hi = lw_num(lw, s->chi);
	} else {
		s->len = -1;
		s->whole = gcd_i64(old.mult, ends);
		if (!whole)
			s->whole = gcd_i64(s->whole, length_of(&old));
		s->most = s->end = 0;
		s->lo = kern_max(lw->b, old.lo, lw_num(lw, n->lo));
		s->hi = kern_min(lw->b, old.hi, lw_num(lw, n->hi));
		lw_if(lw, lw_less(lw, s->lo, s->hi));
	}
	add_fact(lw, ix_axis(lw->s->x, lw->dom, n->var), n->lo, n->hi);
	lw_declare_registers(lw, n);
	lw_nest(lw, n->child, n->n_child);
	lw_release(lw, m);
	*s = old;
	lw_close(lw);
}

/* The statements for one element of sums that warps hold. */
static void held(lowering *lw, const loop_node *rows)
{
	lw_declare_registers(lw, rows);
	body(lw, rows->child[0]);
}

enum { MAX_HELD = 8 };

void lw_nest(lowering *lw, loop_node *const *list, int32_t n)
{
	int32_t until[MAX_HELD], eqn[MAX_HELD], n_held = 0;

	for (int32_t i = 0; i < n; i++) {
		const loop_node *c = list[i];

		if (lw_copies(lw, c))
			continue;
		lw->dealt += c->by_warp;
		if (c->kind == LOOP_BLOCK && c->stages > 1)
			stages(lw, c);
		else if (c->kind == LOOP_FOR && c->held > 0)
			lw_walk_held(lw, c, held);
		else if (c->kind == LOOP_FOR)
			for_loop(lw, c);
		else if (c->kind == LOOP_BLOCK)
			block(lw, c);
		else if (c->kind == LOOP_SPAN)
			span(lw, c);
		else if (c->kind == LOOP_INIT && n_held < MAX_HELD &&
			 (until[n_held] = lw_hold_until(lw, list, n, i)) >= 0) {
			eqn[n_held++] = c->eqn;
			lw_init(lw, c, true);
		} else
			lw_leaf(lw, c);
		lw->dealt -= c->by_warp;
		for (int32_t k = 0; k < n_held; k++)
			if (until[k] == i)
				lw_let_go(lw, eqn[k]);
	}
}
