/*
 * lower_finish.c: applies the epilogue to the finished sums of a tile, in
 * loops, because unrolled code may be long. Also computes a tile term by term,
 * if its result is not finite.
 */
#include "kern/lower.h"

/* Do conditions leave out terms, or whole blocks, from n up to the blocks of this sum? */
static bool has_needs(const loop_node *n, int32_t sum)
{
	for (; n != NULL; n = n->up) {
		if (n->n_needs > 0)
			return true;
		if (n->kind == LOOP_BLOCK && n->var == sum)
			return false;
	}
	return false;
}

struct memory_only {
	const loop_kernel *k;
	bool other;
};

/* Does the term need anything but tensors in memory that this kernel does not make? */
static void on_term(void *arg, const expr *x)
{
	struct memory_only *m = arg;
	int32_t eqn, comp;

	if (x->form != NULL && ix_has_fun(x->form))
		m->other = true;
	if (x->kind == EX_READ)
		m->other |= loop_maker(m->k, x->tensor, &eqn, &comp) ||
			    loop_kept(m->k, x->tensor) >= 0;
}

/*
 * Is it enough to look at the sums when their last terms have been added? What is not
 * finite stays so. Then the tile is computed from its first term on, so its sums must
 * begin here, its terms must still be in memory, and no last block may be left out.
 * id 0: no, or there is one block only.
 */
static val at_last(struct tile *t)
{
	lowering *lw = t->lw;
	struct memory_only m = {.k = lw->k};
	val c = lw_bool(lw, true);
	bool one = true;

	loop_walk(lw->a, t->e->body[0], on_term, &m);
	if (m.other)
		return (val){0};
	for (int32_t i = 0; i < t->n->n_sums; i++) {
		int32_t v = t->n->sum[i];
		int64_t from;

		if (has_needs(t->n, v) || !kern_form_is_const(lw_start_of(lw, t->n, v), &from) ||
			from != 0)
			return (val){0};
		if (lw->span[v].len == lw->k->var[v].extent)
			continue;
		c = lw_and(lw, c,
			lw_equal(lw, lw->span[v].hi, lw_num(lw, lw->k->var[v].extent)));
		one = false;
	}
	return one || !t->n->start ? (val){0} : c;
}

/* Makes the intervals of the sums those of all terms; returns what they were. */
static struct span *all_terms(struct tile *t)
{
	lowering *lw = t->lw;
	struct span *kept =
		arena_copy(lw->a, lw->span, (size_t)lw->k->n_vars * sizeof *kept);

	for (int32_t i = 0; i < t->n->n_sums; i++) {
		int64_t n = lw->k->var[t->n->sum[i]].extent;

		lw->span[t->n->sum[i]] = (struct span){.lo = lw_num(lw, 0),
			.hi = lw_num(lw, n), .chi = n, .len = n};
	}
	return kept;
}

/*
 * Computes the elements from the tile's first one to the ends of rows and columns
 * term by term, as the equation says.
 */
static void one_by_one(struct tile *t, form rows, form columns)
{
	lowering *lw = t->lw;
	struct span *kept = NULL;
	int32_t var[2] = {t->n->row_var, t->n->var};
	form end[2] = {rows, columns};
	val a, old = {0}, later;
	struct marks m;
	struct place_of p;

	lw->lanes = 1;
	lw->vvar = -1;
	for (int32_t i = 0; i < 2; i++)
		if (var[i] >= 0)
			lw->var[var[i]] = lw_form_of(
				lw, lw_for(lw, lw->span[var[i]].lo, end[i]));
	m = lw_mark(lw);
	p = lw_place_tensor(lw, t->e->e->out[0], t->e->at, false);
	if (t->at_last.id != 0) {
		kept = all_terms(t);
	} else if (t->n->start && !t->all_first) {
		later = lw_not(lw, t->first);
		old = lw_load_scalar(lw, &p, 0, &later);
	} else if (!t->n->start) {
		old = lw_load_scalar(lw, &p, 0, NULL);
	}
	a = lw_register(lw, lw_type(lw, t->e->acc[0], 1), old.id);
	lw_open_sums(t);
	lw_set(lw, a,
		lw_call2(lw, lw->fn.add, a, a, lw_ex(lw, t->e->body[0])));
	lw_release(lw, m);
	lw_close_loops(lw, t->n->n_sums);
	if (kept != NULL)
		memcpy(lw->span, kept, (size_t)lw->k->n_vars * sizeof *kept);
	lw_store(lw, &p, a);
	lw_close_loops(lw, (var[0] >= 0) + 1);
	for (int32_t i = 0; i < 2; i++)
		if (var[i] >= 0)
			lw->var[var[i]] = lw->span[var[i]].lo;
	lw->lanes = t->n->lanes;
	lw->vvar = t->n->var;
}

void lw_find_last(struct tile *t)
{
	if (t->n->checked && t->n->finish == NULL && !t->n->matrix)
		t->at_last = at_last(t);
}

void lw_again(struct tile *t)
{
	const struct span *s = t->lw->span;
	int32_t row = t->n->row_var;

	kern_if(t->lw->b, t->again.id, true);
	one_by_one(t, row >= 0 ? s[row].hi : NULL, s[t->n->var].hi);
	lw_close(t->lw);
}

static void clear(struct tile *t, int32_t row, int32_t vector)
{
	val a = lw_acc(t, row, vector);

	lw_set(t->lw, a, lw_to_lanes(t->lw, lw_const(t->lw, a.dt, 0, 0)));
}

/*
 * If the sums are not finite, takes those of the blocks before again, and says so to
 * what computes this block term by term, behind all sizes of tiles.
 */
static void before_again(struct tile *t)
{
	lowering *lw = t->lw;

	kern_if(lw->b, t->finite.id, true);
	lw_set(lw, t->again, lw_bool(lw, true));
	lw_each(t, clear);
	lw_load_accs(t);
	lw_close(lw);
}

/*
 * If the sums are not finite, computes this tile term by term. Then opens the branch
 * in which they are.
 */
static void open_finite(struct tile *t, int64_t columns)
{
	lowering *lw = t->lw;
	const struct span *s = lw->span;
	int32_t row = t->n->row_var;
	kern_stmt *bad;

	bad = kern_if(lw->b, t->finite.id, true);
	one_by_one(t, row >= 0 ? lw_addc(lw, s[row].lo, t->rows) : NULL,
		lw_addc(lw, s[t->n->var].lo, columns));
	kern_else(lw->b, bad);
}

static void put_in_array(struct tile *t, int32_t row, int32_t vector)
{
	lowering *lw = t->lw;
	int32_t i = row * t->vectors + vector;

	lw_store_to(lw, t->array, lw_num(lw, i * lw->lanes), t->acc[i], 0);
}

static val taken(struct tile *t, form at)
{
	return lw_load_from(t->lw, t->array, at,
		lw_type(t->lw, t->e->acc[0], t->lw->lanes), 0);
}

/*
 * at: index in the array of the first element of a vector, or of an element of
 * an incomplete last one
 */
typedef void of_place(struct tile *t, form at);

static void columns_of(struct tile *t, of_place *fn, form row, int64_t from,
	int64_t n, bool whole)
{
	lowering *lw = t->lw;
	int32_t lanes = t->n->lanes, j = t->n->var;
	struct marks m;
	form c;

	if (n == 0)
		return;
	c = lw_form_of(lw, kern_for(lw->b, lw_num(lw, from),
				   lw_num(lw, from + n), whole ? lanes : 1,
				   TN_I64));
	lw->var[j] = lw_add(lw, lw->span[j].lo, c);
	m = lw_mark(lw);
	lw->lanes = whole ? lanes : 1;
	lw->vvar = whole ? j : -1;
	fn(t, lw_add(lw, row, c));
	lw_release(lw, m);
	lw->lanes = lanes;
	lw->vvar = j;
	lw->var[j] = lw->span[j].lo;
	lw_close(lw);
}

/*
 * Loops with constant ends, so that a C compiler sees that accesses are inside
 * of the array.
 */
static void each_place(struct tile *t, of_place *fn)
{
	lowering *lw = t->lw;
	form row = lw_num(lw, 0), r;
	int64_t lanes = t->n->lanes;
	int32_t whole = t->vectors - (t->valid < lanes), i = t->n->row_var;

	if (i >= 0) {
		r = lw_form_of(lw, lw_for_lanes(lw, t->rows));
		lw->var[i] = lw_add(lw, lw->span[i].lo, r);
		row = lw_scale(lw, r, t->vectors * lanes);
	} else {
		kern_scope(lw->b);
	}
	columns_of(t, fn, row, 0, whole * lanes, true);
	if (whole < t->vectors)
		columns_of(t, fn, row, whole * lanes, t->valid, false);
	if (i >= 0)
		lw->var[i] = lw->span[i].lo;
	lw_close(lw);
}

/*
 * Applies the epilogue to the sum at an index of the array. If the tile is
 * checked, adds the result to t->finite.
 */
static void finish_place(struct tile *t, form at)
{
	lowering *lw = t->lw;
	const expr *f = t->n->finish;
	val v = taken(t, at), sum = lw->lanes > 1 ? t->finite : t->last;

	lw->param[0] = v;
	if (f != NULL) {
		v = lw_to_lanes(lw, lw_ex(lw, f));
		lw_store_to(lw, t->array, at, v, 0);
	}
	if (t->n->checked)
		lw_set(lw, sum, lw_call2(lw, lw->fn.add, sum, sum, v));
}

static void add_place(struct tile *t, form at)
{
	lowering *lw = t->lw;
	struct place_of p = lw_place_tensor(
		lw, t->e->e->out[0], t->e->at, false);
	val v = taken(t, at);

	v = lw_call2(lw, lw->fn.add, v, v,
		lw_to_lanes(lw, lw_load(lw, &p, false)));
	lw_store_to(lw, t->array, at, v, 0);
}

static void store_place(struct tile *t, form at)
{
	struct place_of p = lw_place_tensor(
		t->lw, t->e->e->out[0], t->e->at, false);

	lw_store(t->lw, &p, taken(t, at));
}

/*
 * Sets t->finite to the condition that a sum is not finite. A guarded term is 0
 * times the other factor, which is wrong if that is infinite or NaN; then the
 * sum is NaN.
 */
static void check(struct tile *t)
{
	lowering *lw = t->lw;
	val v = t->finite, zero = lw_const(lw, t->e->acc[0], 0, 0), bad;
	val type = lw_type(lw, TN_BOOL, 1);

	lw_set(lw, v, lw_call2(lw, lw->fn.sub, v, v, v));
	for (int32_t half = lw->lanes / 2; half > 0; half /= 2) {
		int64_t list[KERN_MAX_LANES];

		for (int32_t i = 0; i < lw->lanes; i++)
			list[i] = (i + half) % lw->lanes;
		lw_set(lw, v, lw_call2(lw, lw->fn.add, v, v,
				      lw_shuffle(lw, v, v, list)));
	}
	bad = lw_call2(lw, lw->fn.ne, type,
		lw_lane_of(lw, v, lw_num(lw, 0)), zero);
	if (t->has_last) {
		val d = lw_call2(lw, lw->fn.sub, t->last, t->last, t->last);

		d = lw_not(lw, lw_call2(lw, lw->fn.eq, type, d, zero));
		bad = lw_call2(lw, lw->fn.or, type, bad, d);
	}
	t->finite = bad;
}

/*
 * The lanes of an accumulator that are columns of the result; the other lanes
 * are undefined.
 */
static val columns_only(struct tile *t, int32_t vector, val a)
{
	lowering *lw = t->lw;

	if (vector < t->vectors - 1 || t->valid == lw->lanes)
		return a;
	return lw_call(lw, lw->fn.sel, a, 3,
		(val[]){lw_first_lanes(lw, (int32_t)dtype_size(a.dt), t->valid),
			a, lw_to_lanes(lw, lw_const(lw, a.dt, 0, 0))});
}

/* Sets t->finite to the condition that a sum in the registers is not finite. */
static void check_all(struct tile *t)
{
	lowering *lw = t->lw;
	val *sum = arena_array(lw->a, val, t->vectors);

	for (int32_t v = 0; v < t->vectors; v++) {
		sum[v] = lw_register(
			lw, lw_type(lw, t->e->acc[0], lw->lanes), 0);
		for (int32_t r = 0; r < t->rows; r++)
			lw_set(lw, sum[v],
				lw_call2(lw, lw->fn.add, sum[v], sum[v],
					columns_only(t, v,
						t->acc[r * t->vectors + v])));
		if (v > 0)
			lw_set(lw, sum[0],
				lw_call2(lw, lw->fn.add, sum[0], sum[0],
					sum[v]));
	}
	t->finite = sum[0];
	t->has_last = false;
	check(t);
}

/*
 * Stores the tile from its registers if all sums are finite, else computes it
 * term by term.
 */
void lw_store_checked(struct tile *t, int64_t columns)
{
	lowering *lw = t->lw;

	if (t->at_last.id != 0) {
		val bad = lw_register(lw, lw_type(lw, TN_BOOL, 1), 0);

		lw_if(lw, t->at_last);
		check_all(t);
		lw_set(lw, bad, t->finite);
		lw_close(lw);
		t->finite = bad;
	} else {
		check_all(t);
	}
	if (t->again.id != 0)
		before_again(t);
	else
		open_finite(t, columns);
	lw_each(t, lw_store_acc);
	lw_close_loops(lw, t->again.id == 0);
}

/*
 * Applies the epilogue to the sums of a tile, adds earlier partial results, and
 * stores the tile.
 */
void lw_finish(struct tile *t, int64_t columns)
{
	lowering *lw = t->lw;

	if (t->array == 0) {
		t->array = kern_stack(lw->b, t->e->acc[0],
			(int64_t)t->rows * t->vectors * lw->lanes, false);
		lw_each(t, put_in_array);
	}
	if (t->n->checked) {
		t->finite = lw_register(
			lw, lw_type(lw, t->e->acc[0], lw->lanes), 0);
		t->last = lw_register(lw, lw_type(lw, t->e->acc[0], 1), 0);
		t->has_last = true;
	}
	each_place(t, finish_place);
	if (t->n->checked) {
		check(t);
		open_finite(t, columns);
	}
	if (!t->all_first)
		lw_if(lw, lw_not(lw, t->first));
	if (!t->n->start || !t->all_first)
		each_place(t, add_place);
	if (!t->all_first)
		lw_close(lw);
	each_place(t, store_place);
	lw_close_loops(lw, t->n->checked);
}
