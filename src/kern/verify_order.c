/*
 * verify_order.c: what is read of scratch, of the worker's memory, of arrays of
 * blocks and of results has been written before.
 *
 * Walks the statements with what integers and conditions may be (order_value.c)
 * and which bytes have been written (order_memory.c). A lane that is loaded from
 * memory that may not be written is followed: it may be dropped, by a selection
 * or by a store of a part; it must not get into a result, an address or a
 * condition. A chunk, and a loop that stores nothing that outlives an iteration,
 * is walked once for all its iterations. Only if something is read too early then,
 * step by step. So it is with conditions: where one is not known, what both sides
 * have written is.
 *
 * Results that may lie in the memory of inputs count as written. A kernel of too
 * many steps is not looked at, apart from indices that arrays of blocks hold.
 */
#include "kern/order.h"

enum { MOST_STEPS = 1 << 21, MOST_ROUNDS = 6 };

static void block(struct kern_order *o, const kern_block *b);

/* ---- registers, before a loop or a condition ---- */

static void keep(struct kern_order *o)
{
	for (int32_t i = 0; i < o->reg.n; i++) {
		kern_val r = o->reg.at[i];

		*vec_push(o->a, &o->kept) =
			(struct kern_kept){o->bad[r], o->early[r]};
		for (int32_t l = 0; l < o->n_cells[r]; l++)
			*vec_push(o->a, &o->spans) = o->cell[o->first[r] + l];
	}
}

/* What registers are, and what was kept last, as one; wide: integers that differ
 * may be anything. Is the one not what was kept? */
static bool join(struct kern_order *o, bool wide)
{
	int32_t at = o->spans.n;
	bool more = false;

	for (int32_t i = o->reg.n - 1; i >= 0; i--) {
		struct kern_kept *was = &o->kept.at[o->kept.n - o->reg.n];
		kern_val r = o->reg.at[i];

		more |= (o->bad[r] & ~was[i].bad) != 0;
		if (o->bad[r] == 0)
			o->early[r] = was[i].early;
		o->bad[r] |= was[i].bad;
		was[i] = (struct kern_kept){o->bad[r], o->early[r]};
		for (int32_t l = o->n_cells[r] - 1; l >= 0; l--) {
			struct kern_span *old = &o->spans.at[--at];
			struct kern_span *now = &o->cell[o->first[r] + l];

			if (now->lo >= old->lo && now->hi <= old->hi) {
				*now = *old;
				continue;
			}
			more = true;
			now->lo = wide ? INT64_MIN : now->lo < old->lo ? now->lo : old->lo;
			now->hi = wide ? INT64_MAX : now->hi > old->hi ? now->hi : old->hi;
			*old = *now;
		}
	}
	return more;
}

/* Registers are again what was kept last; `swap`: that is what they were. */
static void put_back(struct kern_order *o, bool swap)
{
	int32_t at = o->spans.n;

	for (int32_t i = o->reg.n - 1; i >= 0; i--) {
		struct kern_kept *was = &o->kept.at[o->kept.n - o->reg.n];
		kern_val r = o->reg.at[i];
		struct kern_kept now = {o->bad[r], o->early[r]};

		o->bad[r] = was[i].bad;
		o->early[r] = was[i].early;
		if (swap)
			was[i] = now;
		for (int32_t l = o->n_cells[r] - 1; l >= 0; l--) {
			struct kern_span *cell = &o->cell[o->first[r] + l];
			struct kern_span c = *cell;

			*cell = o->spans.at[--at];
			if (swap)
				o->spans.at[at] = c;
		}
	}
}

static void forget_kept(struct kern_order *o)
{
	o->kept.n -= o->reg.n;
	for (int32_t i = 0; i < o->reg.n; i++)
		o->spans.n -= o->n_cells[o->reg.at[i]];
}

/* ---- loops ---- */

static void be(struct kern_order *o, kern_val v, struct kern_span is)
{
	o->bad[v] = 0;
	o->cell[o->first[v]] = is;
}

/* The number of iterations. */
static int64_t trips(const kern_stmt *s, int64_t lo, int64_t hi)
{
	if (hi <= lo)
		return 0;
	return s->whole ? (hi - lo) / s->step : (hi - lo - 1) / s->step + 1;
}

/* What the loop's variable may be: all of it. */
static struct kern_span walked(
	const kern_stmt *s, struct kern_span lo, struct kern_span hi)
{
	int64_t last = hi.hi;

	if (kern_span_is_one(lo) && kern_span_is_one(hi) && hi.hi > lo.lo)
		last = lo.lo + (trips(s, lo.lo, hi.hi) - 1) * s->step;
	else if (last < INT64_MAX && last >= INT64_MIN + s->step)
		last -= s->whole ? s->step : 1;
	return (struct kern_span){lo.lo, last < lo.lo ? lo.lo : last};
}

/* .. and behind the loop */
static struct kern_span left_at(
	const kern_stmt *s, struct kern_span lo, struct kern_span hi)
{
	struct kern_span e = {lo.lo, hi.hi > lo.hi ? hi.hi : lo.hi};

	if (kern_span_is_one(lo) && kern_span_is_one(hi))
		e.lo = e.hi = lo.lo + trips(s, lo.lo, hi.lo) * s->step;
	else if (!s->whole && !add_ok(e.hi, s->step - 1, &e.hi))
		e.hi = INT64_MAX;
	return e;
}

/* The body once, for all iterations; a register may be what it is behind it. */
static void rounds(
	struct kern_order *o, const kern_stmt *s, struct kern_span i)
{
	int32_t undo = o->undo.n, later = o->later.n;

	keep(o);
	for (int32_t n = 0; !kern_order_stops(o); n++) {
		be(o, s->v, i);
		o->later.n = later;
		block(o, &s->body);
		kern_order_undo(o, undo, true);
		if (!join(o, n > 0))
			break;
		if (n == MOST_ROUNDS)
			o->left = -1;
	}
	(void)join(o, false);
	forget_kept(o);
	if (o->fault != NULL)
		o->later.n = later;
}

/* All iterations of a loop whose bounds are known: stores whose addresses follow
 * from such loops are repeated behind it. */
static void as_one(struct kern_order *o, const kern_stmt *s, int64_t lo, int64_t hi)
{
	int64_t n = trips(s, lo, hi), last = lo + (n - 1) * s->step;
	int32_t later = o->later.n;

	*vec_push(o->a, &o->open) = (struct kern_open){s->v,
		s->down ? hi - 1 : lo, s->down ? -1 : s->step, n};
	rounds(o, s, (struct kern_span){lo, last});
	o->open.n--;
	kern_order_write_later(o, later);
}

/* .. whose bounds are not: what it writes is not known to be written. */
static void of_any_bounds(struct kern_order *o, const kern_stmt *s,
	struct kern_span lo, struct kern_span hi)
{
	int32_t base = o->base, later = o->later.n;
	int64_t writes = o->writes;

	if (hi.hi <= lo.lo)
		return;
	o->base = o->open.n;
	rounds(o, s, walked(s, lo, hi));
	o->base = base;
	o->later.n = later;
	o->lost += o->writes > writes;
}

static void step_by_step(
	struct kern_order *o, const kern_stmt *s, int64_t lo, int64_t hi)
{
	int64_t n = trips(s, lo, hi);

	for (int64_t i = 0; i < n && !kern_order_stops(o); i++) {
		int64_t at = s->down ? hi - 1 - i : lo + i * s->step;

		o->left--;
		be(o, s->v, (struct kern_span){at, at});
		block(o, &s->body);
	}
}

static void loop(struct kern_order *o, const kern_stmt *s)
{
	struct kern_span lo = kern_order_form(o, s->lo);
	struct kern_span hi = kern_order_form(o, s->hi);
	bool known = kern_span_is_one(lo) && kern_span_is_one(hi);
	bool once = !o->exact;
	int32_t undo = o->undo.n, later = o->later.n;
	int64_t lost = o->lost;

	if (kern_order_stops(o))
		return;
	if (!known) {
		of_any_bounds(o, s, lo, hi);
	} else if (once && trips(s, lo.lo, hi.lo) > 1) {
		keep(o);
		as_one(o, s, lo.lo, hi.lo);
		once = o->fault == NULL && (!o->stores[s->v] || o->lost == lost);
		if (!once) {
			o->fault = NULL;
			o->lost = lost;
			o->later.n = later;
			kern_order_undo(o, undo, false);
			put_back(o, false);
		}
		forget_kept(o);
	} else {
		once = false;
	}
	if (known && !once)
		step_by_step(o, s, lo.lo, hi.lo);
	if (s->after != 0)
		be(o, s->after, left_at(s, lo, hi));
}

/* ---- conditions ---- */

static void set_word(struct kern_order *o, uint64_t *at, uint64_t to)
{
	if (*at == to)
		return;
	*vec_push(o->a, &o->undo) = (struct kern_undo){at, *at};
	*at = to;
}

/*
 * The second side has been walked, from entry `from` of o->undo on, and one[]
 * is what the first one had left: what both have written is written.
 */
static void meet(struct kern_order *o, int32_t from, const struct kern_undo *one,
	int32_t n)
{
	map *in_one = map_new(o->a);
	int32_t end = o->undo.n;

	for (int32_t i = 0; i < n; i++) {
		map_set(in_one, &one[i].at, sizeof one[i].at, 1);
		set_word(o, one[i].at, *one[i].at & one[i].was);
	}
	for (int32_t i = from; i < end; i++) {
		struct kern_undo w = o->undo.at[i];

		if (map_get(in_one, &w.at, sizeof w.at, 0) == 0)
			set_word(o, w.at, *w.at & w.was);
	}
}

/* Both sides, the second one from what was before the first one. */
static void both(struct kern_order *o, const kern_stmt *s)
{
	int32_t from = o->undo.n, n, base = o->base, later = o->later.n;
	int64_t writes = o->writes;
	struct kern_undo *one;

	keep(o);
	o->base = o->open.n;
	block(o, &s->body);
	n = o->undo.n - from;
	one = arena_array(o->a, struct kern_undo, n + 1);
	for (int32_t i = 0; i < n; i++) {
		one[i] = o->undo.at[from + i];
		one[i].was = *one[i].at;
	}
	kern_order_undo(o, from, false);
	put_back(o, true);
	block(o, &s->other);
	meet(o, from, one, n);
	o->base = base;
	o->later.n = later;
	o->lost += o->open.n > base && o->writes > writes;
	(void)join(o, false);
	forget_kept(o);
}

static void condition(struct kern_order *o, const kern_stmt *s)
{
	struct kern_span c;

	kern_order_take(o, s->x);
	if (o->bad[s->x] != 0)
		o->fault = o->early[s->x];
	c = kern_order_cell(o, s->x, 0);
	if (kern_span_is_one(c))
		block(o, c.lo != 0 ? &s->body : &s->other);
	else
		both(o, s);
}

/* ---- other statements ---- */

static void set(struct kern_order *o, const kern_stmt *s)
{
	int32_t n = kern_at(o->k, s->v)->type.lanes;
	struct kern_span lane = {0, n - 1};
	uint64_t bits;

	if (s->x != 0)
		kern_order_take(o, s->x);
	if (s->kind == KERN_SET_LANE)
		lane = kern_order_form(o, s->lo);
	if (kern_order_stops(o))
		return;
	if (s->kind != KERN_SET_LANE) {
		o->bad[s->v] = o->bad[s->x];
		o->early[s->v] = o->early[s->x];
		for (int32_t l = 0; l < o->n_cells[s->v]; l++)
			o->cell[o->first[s->v] + l] =
				s->x != 0 ? kern_order_cell(o, s->x, l)
					  : (struct kern_span){0, 0};
		return;
	}
	lane.lo = lane.lo < 0 ? 0 : lane.lo;
	lane.hi = lane.hi >= n ? n - 1 : lane.hi;
	bits = kern_order_lanes((int32_t)lane.hi + 1) &
	       ~kern_order_lanes((int32_t)lane.lo);
	if (o->bad[s->x] != 0) {
		o->bad[s->v] |= bits;
		o->early[s->v] = o->early[s->x];
	} else if (kern_span_is_one(lane)) {
		o->bad[s->v] &= ~bits;
	}
	for (int64_t l = lane.lo; l <= lane.hi && o->n_cells[s->v] > 0; l++) {
		struct kern_span *c = &o->cell[o->first[s->v] + l];
		struct kern_span x = kern_order_cell(o, s->x, 0);

		if (!kern_span_is_one(lane)) {
			x.lo = x.lo < c->lo ? x.lo : c->lo;
			x.hi = x.hi > c->hi ? x.hi : c->hi;
		}
		*c = x;
	}
}

static void store(struct kern_order *o, const kern_stmt *s)
{
	const kern_access *at = &s->at;
	struct kern_span base = kern_order_form(o, at->at), one;
	int32_t n = kern_at(o->k, s->x)->type.lanes;
	struct kern_span m = {1, 1};

	kern_order_take(o, s->x);
	if (at->part > 0)
		n = at->part;
	if (at->mask != 0 && o->bad[at->mask] != 0)
		o->fault = o->early[at->mask];
	if (at->mask == 0 && o->bad[s->x] == 0 && !kern_order_stops(o)) {
		kern_order_write(o, at, base, n);
		return;
	}
	for (int32_t l = 0; l < n && !kern_order_stops(o); l++) {
		bool bad = (o->bad[s->x] >> l & 1) != 0;

		if (at->mask != 0)
			m = kern_order_cell(o, at->mask, l);
		if (m.lo == 0 && m.hi == 0)
			continue;
		one = kern_span_plus(base, l * at->stride, l * at->stride);
		kern_order_put(o, at->array, one,
			m.lo == m.hi, bad ? o->early[s->x] : NULL);
	}
}

/* A square: row i of the one is column i of the other. */
static void turn(struct kern_order *o, const kern_stmt *s)
{
	struct kern_span to = kern_order_form(o, s->at.at);
	struct kern_span from = kern_order_form(o, s->from.at);
	int64_t side = s->type.lanes, far = (side - 1) * s->m;
	int64_t width = side * kern_turn_unit(s);
	struct kern_early *e = arena_make(o->a, struct kern_early);
	struct kern_span all = kern_span_plus(from, far < 0 ? far : 0,
		(far > 0 ? far : 0) + width - 1);
	bool bad = o->tracked[s->from.array];

	*e = (struct kern_early){s, s->from.array, all};
	if (bad && kern_span_is_one(from)) {
		bad = false;
		for (int64_t j = 0; j < side; j++)
			bad |= !kern_order_is_set(o, s->from.array,
				kern_span_plus(from, j * s->m, j * s->m + width - 1));
	} else if (bad) {
		bad = !kern_order_is_set(o, s->from.array, all);
	}
	if (bad && o->k->array.at[s->from.array].space == KERN_SCRATCH)
		o->fault = e;
	for (int64_t i = 0; i < side * width && !kern_order_stops(o); i++) {
		int64_t d = i / width * s->n + i % width;

		kern_order_put(o, s->at.array, kern_span_plus(to, d, d), true,
			bad ? e : NULL);
	}
}

/* Rows that are written. */
static void put_rows(struct kern_order *o, const kern_access *at, int64_t step,
	int32_t rows, int32_t width)
{
	struct kern_span to = kern_order_form(o, at->at);
	kern_access row = *at;

	row.stride = 1;
	for (int32_t i = 0; i < rows && !kern_order_stops(o); i++) {
		row.at = kern_form_addc(o->k, at->at, i * step);
		kern_order_write(o, &row, kern_span_plus(to, i * step, i * step), width);
	}
}

static void tiles(struct kern_order *o, const kern_stmt *s)
{
	int32_t each = kern_tile_terms(o->k->array.at[s->at.array].dtype,
		o->k->array.at[s->from.array].dtype);
	bool begins = false;

	kern_order_read_rows(o, s, &s->at, s->n, s->rows, s->terms);
	kern_order_read_rows(o, s, &s->from, s->m, (s->terms - 1) / each + 1,
		(int64_t)s->width * each);
	if (s->x != 0) {
		kern_order_take(o, s->x);
		begins = kern_order_cell(o, s->x, 0).lo > 0;
	}
	if (!begins)
		kern_order_read_rows(o, s, &s->to, s->l, s->rows, s->width);
	put_rows(o, &s->to, s->l, s->rows, s->width);
}

static void matrix(struct kern_order *o, const kern_stmt *s)
{
	int64_t width = kern_part_columns(s), rows = kern_part_rows(s);
	struct kern_span to;

	if (s->kind == KERN_MMA) {
		int64_t terms = kern_part_terms(s);

		kern_order_read_rows(o, s, &s->at, s->n, s->at_turned ? terms : rows,
			s->at_turned ? rows : terms);
		kern_order_read_rows(o, s, &s->from, s->m, s->from_turned ? width : terms,
			s->from_turned ? terms : width);
		return;
	}
	if (s->kind == KERN_TAKE) {
		kern_order_read_rows(o, s, &s->at, s->n, rows, width);
		return;
	}
	to = kern_order_form(o, s->at.at);
	for (int64_t i = 0; i < rows * width && !kern_order_stops(o); i++) {
		int64_t d = i / width * s->n + i % width;

		kern_order_put(o, s->at.array, kern_span_plus(to, d, d), true,
			NULL);
	}
}

/* Rows that are copied from a param, which nobody writes: async.c checks that what
 * reads them has waited. */
static void copied(struct kern_order *o, const kern_stmt *s)
{
	put_rows(o, &s->at, s->n, s->rows, s->width);
}

static void statement(struct kern_order *o, const kern_stmt *s)
{
	o->s = s;
	o->left--;
	switch (s->kind) {
	case KERN_LET:
		kern_order_value(o, s->v);
		break;
	case KERN_VAR:
		*vec_push(o->a, &o->reg) = s->v;
		set(o, s);
		break;
	case KERN_SET:
	case KERN_SET_LANE:
		set(o, s);
		break;
	case KERN_STORE:
		store(o, s);
		break;
	case KERN_FOR:
		loop(o, s);
		break;
	case KERN_IF:
		condition(o, s);
		break;
	case KERN_BLOCK:
		block(o, &s->body);
		break;
	case KERN_ARRAY:
		kern_order_fill(o, s->array, s->stream);
		break;
	case KERN_TURN:
		turn(o, s);
		break;
	case KERN_MMA:
	case KERN_TAKE:
	case KERN_GIVE:
		matrix(o, s);
		break;
	case KERN_TILES:
		tiles(o, s);
		break;
	case KERN_ASYNC:
		copied(o, s);
		break;
	case KERN_PREFETCH:
	case KERN_FENCE:
	case KERN_RELOAD:
	case KERN_BARRIER:
	case KERN_COMMIT:
	case KERN_WAIT:
	case KERN_NOTE:
		break;
	}
}

static void block(struct kern_order *o, const kern_block *b)
{
	int32_t done = o->done.n, reg = o->reg.n;

	for (int32_t i = 0; i < b->list.n && !kern_order_stops(o); i++)
		statement(o, b->list.at[i]);
	o->done.n = o->done.n < done ? o->done.n : done;
	o->reg.n = reg;
}

/* ---- phases ---- */

/* The chunks as one; if something is read too early then, one by one. */
static void phase(struct kern_order *o, const kern_phase *p)
{
	bool one_by_one = o->exact || o->stores[p->chunk];

	for (int32_t n = one_by_one; n < 2; n++) {
		o->fault = NULL;
		for (int64_t i = 0; i < (n == 0 ? 1 : p->n_chunks) &&
				    !kern_order_stops(o);
			i++) {
			be(o, p->chunk,
				n == 0 ? (struct kern_span){0, p->n_chunks - 1}
				       : (struct kern_span){i, i});
			block(o, &p->body);
			if (o->fault == NULL || n == 1)
				kern_order_forget_local(o);
			else
				kern_order_undo(o, 0, false);
		}
		if (o->fault == NULL)
			break;
	}
}

/* ---- what is looked at ---- */

static void read_of(struct kern_order *o, bool *is_read, kern_val x)
{
	if (kern_at(o->k, x)->op == KERN_LOAD)
		is_read[kern_at(o->k, x)->at.array] = true;
}

/* Arrays that are read; depths of declarations; names. */
static void find(struct kern_order *o, const kern_block *b, bool *is_read,
	int32_t depth)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_accessed t[KERN_MOST_ACCESSED];

		if (s->kind == KERN_LET)
			o->named[s->v] = true;
		if (s->kind == KERN_LET)
			read_of(o, is_read, s->v);
		if (s->x != 0)
			read_of(o, is_read, s->x);
		for (int32_t j = kern_accesses(s, t) - 1; j >= 0; j--)
			is_read[t[j].at->array] |= t[j].reads;
		if (s->kind == KERN_ARRAY)
			o->depth[s->array] = depth + 1;
		find(o, &s->body, is_read, depth + (s->kind == KERN_FOR));
		find(o, &s->other, is_read, depth);
	}
}

/* The least depth of arrays that it stores into; sets o->stores. */
static int32_t find_stores(struct kern_order *o, const kern_block *b, int32_t depth)
{
	int32_t least = INT32_MAX, d;

	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_accessed t[KERN_MOST_ACCESSED];

		d = find_stores(o, &s->body, depth + (s->kind == KERN_FOR));
		if (s->kind == KERN_FOR)
			o->stores[s->v] = d <= depth;
		least = d < least ? d : least;
		d = find_stores(o, &s->other, depth);
		least = d < least ? d : least;
		for (int32_t j = kern_accesses(s, t) - 1; j >= 0; j--)
			if (t[j].writes && o->tracked[t[j].at->array] &&
				o->depth[t[j].at->array] < least)
				least = o->depth[t[j].at->array];
	}
	return least;
}

/* Is what it holds known to come from stores of this kernel alone? */
static bool is_tracked(const struct kern_order *o, int32_t array, bool indices)
{
	const kern_array *r = &o->k->array.at[array];

	if (indices)
		return r->space == KERN_STACK && o->v->range.checked[array] > 0;
	return r->space != KERN_PARAM ||
	       (r->out && r->in == 0 && !o->k->shared);
}

static bool stores_of(
	const struct kern_order *o, const kern_block *b, const bool *later)
{
	bool some = false;

	for (int32_t i = 0; i < b->list.n && !some; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_accessed t[KERN_MOST_ACCESSED];
		int32_t n = kern_accesses(s, t);

		some = stores_of(o, &s->body, later) ||
		       stores_of(o, &s->other, later);
		for (int32_t j = 0; j < n * o->k->array.n && !some; j++)
			some = t[j % n].writes && later[j / n] && o->tracked[j / n] &&
			       kern_arrays_overlap(o->k, t[j % n].at->array, j / n);
	}
	return some;
}

/* o->stores of chunks: does a later phase read what they store? */
static void find_later(struct kern_order *o)
{
	const kern_kernel *k = o->k;
	bool *later = arena_array(o->a, bool, k->array.n + 1);

	for (int32_t i = k->n_phases - 1; i >= 0; i--) {
		o->stores[k->phase[i].chunk] =
			stores_of(o, &k->phase[i].body, later);
		find(o, &k->phase[i].body, later, 0);
		for (int32_t j = 0; j < k->array.n; j++)
			later[j] &= k->array.at[j].space == KERN_SCRATCH ||
				    k->array.at[j].space == KERN_PARAM;
	}
}

static bool has_data(const struct kern_order *o, const kern_form *f)
{
	for (int32_t i = 0; f != NULL && i < f->n; i++)
		if (o->data[f->t[i].v])
			return true;
	return false;
}

/* Values come in order, so that loops are known by their bounds. */
static void find_data(struct kern_order *o)
{
	const kern_kernel *k = o->k;

	for (kern_val i = 1; i < k->value.n; i++) {
		const kern_value *x = kern_at(k, i);
		const kern_stmt *s =
			i < o->v->range.n_loop ? o->v->range.loop[i] : NULL;

		o->data[i] = x->op == KERN_LOAD || x->op == KERN_REG ||
			     has_data(o, x->form[0]) || has_data(o, x->form[1]);
		for (int32_t j = 0; j < KERN_MAX_ARGS; j++)
			o->data[i] |= o->data[x->arg[j]];
		if (s != NULL)
			o->data[i] |= has_data(o, s->lo) || has_data(o, s->hi);
	}
}

static void make_cells(struct kern_order *o)
{
	const kern_kernel *k = o->k;
	int64_t n = 0;

	o->first = arena_array(o->a, int64_t, k->value.n + 1);
	o->n_cells = arena_array(o->a, int32_t, k->value.n + 1);
	o->bad = arena_array(o->a, uint64_t, k->value.n + 1);
	o->early = arena_array(o->a, const struct kern_early *, k->value.n + 1);
	for (int32_t i = 1; i < k->value.n; i++) {
		o->first[i] = n;
		if (!dtype_is_float(kern_at(k, i)->type.dt))
			o->n_cells[i] = kern_at(k, i)->type.lanes;
		n += o->n_cells[i];
	}
	o->cell = arena_array(o->a, struct kern_span, n + 1);
	for (int32_t i = 1; i < k->value.n; i++) {
		const kern_value *x = kern_at(k, i);

		for (int32_t l = 0; l < o->n_cells[i]; l++)
			o->cell[o->first[i] + l] =
				x->op == KERN_CONST
					? (struct kern_span){x->c.i, x->c.i}
					: KERN_ALL;
	}
}

/* Walks the kernel; exact: each loop step by step. */
static void walk(struct kern_order *o, bool exact)
{
	const kern_kernel *k = o->k;

	o->exact = exact;
	o->fault = NULL;
	o->left = MOST_STEPS;
	o->open.n = o->later.n = o->base = 0;
	o->undo.n = o->done.n = o->kept.n = o->spans.n = o->reg.n = 0;
	make_cells(o);
	kern_order_room(o);
	for (int32_t i = 0; i < k->n_phases && !kern_order_stops(o); i++)
		phase(o, &k->phase[i]);
}

/* false: too many steps */
static bool is_in_order(struct kern_verifier *v, bool indices)
{
	struct kern_order o = {.v = v, .k = v->k, .a = arena_child(v->a)};
	const kern_kernel *k = v->k;
	bool *is_read = arena_array(o.a, bool, k->array.n + 1), any = false;

	o.tracked = arena_array(o.a, bool, k->array.n + 1);
	o.depth = arena_array(o.a, int32_t, k->array.n + 1);
	o.stores = arena_array(o.a, bool, k->value.n + 1);
	o.data = arena_array(o.a, bool, k->value.n + 1);
	o.named = arena_array(o.a, bool, k->value.n + 1);
	for (int32_t i = 1; i < k->value.n; i++)
		o.named[i] = strchr(kern_op_at(kern_at(k, i)->op)->flags, 'd') != NULL;
	for (int32_t i = 0; i < k->n_phases; i++)
		find(&o, &k->phase[i].body, is_read, 0);
	for (int32_t i = 0; i < k->array.n; i++) {
		o.tracked[i] = is_read[i] && is_tracked(&o, i, indices);
		any |= o.tracked[i];
	}
	for (int32_t i = 0; i < k->n_phases; i++)
		(void)find_stores(&o, &k->phase[i].body, 1);
	find_later(&o);
	find_data(&o);
	for (int32_t exact = 0; exact < 2 && any; exact++) {
		walk(&o, exact == 1);
		if (o.fault == NULL)
			break;
	}
	v->s = o.fault != NULL ? o.fault->s : NULL;
	if (o.fault != NULL)
		kern_refuse(v, "order",
			"elements %lld to %lld of %s may be read before they are written",
			(long long)o.fault->at.lo, (long long)o.fault->at.hi,
			kern_access_text(v, o.fault->array));
	any = o.left >= 0;
	arena_free(o.a);
	return any;
}

void kern_verify_order(struct kern_verifier *v)
{
	if (is_in_order(v, false) || is_in_order(v, true))
		return;
	kern_refuse(v, "order",
		"whether the indices in arrays of blocks are written before they are read needs too many steps; shorter loops around them would be accepted");
}
