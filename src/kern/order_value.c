/*
 * order_value.c: what integers and conditions may be, and which lanes of values
 * may come from memory that is not written.
 *
 * Floats, and what is loaded, may be anything. All other integers follow from
 * constants, the chunk and the variables of loops: each is a span lo .. hi, a
 * single number if those are.
 */
#include "kern/order.h"

/* Elements of a load whose address is not known that are asked for one by one. */
enum { MOST_EACH = 4096, A_STEP = 16 };

uint64_t kern_order_lanes(int32_t n)
{
	return n >= KERN_MAX_LANES ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

struct kern_span kern_order_cell(
	const struct kern_order *o, kern_val x, int32_t lane)
{
	if (o->n_cells[x] == 0)
		return KERN_ALL;
	return o->cell[o->first[x] + (o->n_cells[x] > 1 ? lane : 0)];
}

/* ---- spans ---- */

static struct kern_span join(struct kern_span a, struct kern_span b)
{
	return (struct kern_span){a.lo < b.lo ? a.lo : b.lo,
		a.hi > b.hi ? a.hi : b.hi};
}

static struct kern_span plus(struct kern_span a, struct kern_span b)
{
	return kern_span_plus(a, b.lo, b.hi);
}

static struct kern_span scaled(struct kern_span a, int64_t c)
{
	struct kern_span s;

	if (!mul_ok(c < 0 ? a.hi : a.lo, c, &s.lo) ||
		!mul_ok(c < 0 ? a.lo : a.hi, c, &s.hi))
		return KERN_ALL;
	return s;
}

/* The span, if the dtype has all of it. */
static struct kern_span fitted(tn_dtype t, struct kern_span s)
{
	return ir_wrap(t, s.lo) == s.lo && ir_wrap(t, s.hi) == s.hi ? s
								    : KERN_ALL;
}

static struct kern_span truth(bool may_not, bool may)
{
	return (struct kern_span){may_not ? 0 : 1, may ? 1 : 0};
}

static bool may_be(struct kern_span s)
{
	return s.hi != 0 || s.lo != 0;
}

static bool may_not_be(struct kern_span s)
{
	return s.lo <= 0 && s.hi >= 0;
}

struct kern_span kern_order_form(struct kern_order *o, const kern_form *f)
{
	struct kern_span s = {f->c0, f->c0};

	for (int32_t i = 0; i < f->n; i++) {
		kern_val v = f->t[i].v;

		if (o->bad[v] != 0)
			o->fault = o->early[v];
		s = plus(s, scaled(kern_order_cell(o, v, 0), f->t[i].coef));
	}
	return s;
}

/* ---- instructions ---- */

/* form + l, divided */
static struct kern_span quotient(
	struct kern_order *o, const kern_value *x, int32_t l)
{
	struct kern_span f = plus(kern_order_form(o, x->form[0]),
		(struct kern_span){l, l});
	int64_t m = x->num[0], lo, hi;

	if (x->op == KERN_INDEX)
		return f;
	lo = floor_div(f.lo, m);
	hi = floor_div(f.hi, m);
	if (x->op != KERN_MOD)
		return (struct kern_span){lo, hi};
	if (lo != hi)
		return (struct kern_span){0, m - 1};
	return (struct kern_span){floor_mod(f.lo, m), floor_mod(f.hi, m)};
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t largest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct kern_span chosen(struct kern_order *o, const kern_value *x)
{
	struct kern_span f = kern_order_form(o, x->form[0]), g, c;
	int64_t lo = x->num[0], hi = x->num[1];

	if (x->op == KERN_CLAMP)
		return (struct kern_span){least(largest(f.lo, lo), hi),
			least(largest(f.hi, lo), hi)};
	if (x->op == KERN_INSIDE)
		return truth(f.lo < lo || (hi != INT64_MAX && f.hi >= hi),
			f.hi >= lo && (hi == INT64_MAX || f.lo < hi));
	g = kern_order_form(o, x->form[1]);
	if (x->op == KERN_MIN)
		return (struct kern_span){least(f.lo, g.lo), least(f.hi, g.hi)};
	if (x->op == KERN_MAX)
		return (struct kern_span){
			largest(f.lo, g.lo), largest(f.hi, g.hi)};
	c = kern_order_cell(o, x->arg[0], 0);
	return !may_be(c) ? g : !may_not_be(c) ? f : join(f, g);
}

/* What comparing a with b gives, from what a - b may be. */
static struct kern_span compared(const char *name, struct kern_span d)
{
	bool below = d.lo < 0, above = d.hi > 0, same = d.lo <= 0 && d.hi >= 0;

	if (strcmp(name, "lt") == 0)
		return truth(same || above, below);
	if (strcmp(name, "le") == 0)
		return truth(above, same || below);
	if (strcmp(name, "gt") == 0)
		return truth(same || below, above);
	if (strcmp(name, "ge") == 0)
		return truth(below, same || above);
	if (strcmp(name, "eq") == 0)
		return truth(below || above, same);
	if (strcmp(name, "ne") == 0)
		return truth(same, below || above);
	return KERN_ALL;
}

/* A scalar function of what is not a single number. */
static struct kern_span call_of_spans(
	const kern_value *x, const struct kern_span *a)
{
	const char *name = ir_scalar_at(x->fn)->name;

	if (strcmp(name, "not") == 0)
		return truth(may_be(a[0]), may_not_be(a[0]));
	if (strcmp(name, "and") == 0 && x->type.dt == TN_BOOL)
		return truth(may_not_be(a[0]) || may_not_be(a[1]),
			may_be(a[0]) && may_be(a[1]));
	if (strcmp(name, "or") == 0 && x->type.dt == TN_BOOL)
		return truth(may_not_be(a[0]) && may_not_be(a[1]),
			may_be(a[0]) || may_be(a[1]));
	if (strcmp(name, "sel") == 0)
		return !may_be(a[0])	   ? a[2]
		       : !may_not_be(a[0]) ? a[1]
					   : join(a[1], a[2]);
	if (strcmp(name, "add") == 0)
		return fitted(x->type.dt, plus(a[0], a[1]));
	if (strcmp(name, "sub") == 0)
		return fitted(x->type.dt, plus(a[0], scaled(a[1], -1)));
	if (x->type.dt == TN_BOOL && ir_scalar_at(x->fn)->n_args == 2)
		return compared(name, plus(a[0], scaled(a[1], -1)));
	return KERN_ALL;
}

static struct kern_span call(
	const struct kern_order *o, const kern_value *x, int32_t l)
{
	int32_t n = ir_scalar_at(x->fn)->n_args;
	struct kern_span a[KERN_MAX_ARGS];
	ir_number v[KERN_MAX_ARGS] = {{0}};
	bool known = true, cells = true;
	int64_t is;

	for (int32_t i = 0; i < n; i++) {
		a[i] = kern_order_cell(o, x->arg[i], l);
		cells &= o->n_cells[x->arg[i]] > 0;
		known &= kern_span_is_one(a[i]);
		v[i].i = a[i].lo;
	}
	if (!cells)
		return KERN_ALL;
	if (!known)
		return call_of_spans(x, a);
	is = ir_scalar_eval(x->fn, kern_at(o->k, x->arg[n - 1])->type.dt, v).i;
	is = ir_wrap(x->type.dt, is);
	return (struct kern_span){is, is};
}

static struct kern_span within(const kern_check *c)
{
	return (struct kern_span){c->lo, c->hi - 1};
}

/* An index of an array in which only indices of one check are stored. */
static struct kern_span loaded(const struct kern_order *o, const kern_value *x)
{
	int32_t n = o->v->range.checked[x->at.array];

	return n < 1 || n > o->k->check.n ? KERN_ALL
					  : within(&o->k->check.at[n - 1]);
}

static struct kern_span one_of_lanes(const struct kern_order *o, kern_val x)
{
	struct kern_span s = kern_order_cell(o, x, 0);

	for (int32_t l = 1; l < kern_at(o->k, x)->type.lanes; l++)
		s = join(s, kern_order_cell(o, x, l));
	return s;
}

/* Lane l of an integer or a condition that is not loaded. */
static struct kern_span lane(struct kern_order *o, const kern_value *x, int32_t l)
{
	struct kern_span f;

	switch (x->op) {
	case KERN_CALL:
		return call(o, x, l);
	case KERN_COPY:
	case KERN_SPLAT:
		return kern_order_cell(o, x->arg[0], l);
	case KERN_LANE:
		f = kern_order_form(o, x->form[0]);
		return kern_span_is_one(f)
			       ? kern_order_cell(o, x->arg[0], (int32_t)f.lo)
			       : one_of_lanes(o, x->arg[0]);
	case KERN_SHUFFLE:
		return x->list[l] < x->type.lanes
			       ? kern_order_cell(o, x->arg[0], (int32_t)x->list[l])
			       : kern_order_cell(o, x->arg[1],
					 (int32_t)x->list[l] - x->type.lanes);
	case KERN_REPEAT:
		return kern_order_cell(o, x->arg[0],
			l % kern_at(o->k, x->arg[0])->type.lanes);
	case KERN_ZIP:
		return kern_order_cell(o, x->arg[l % 2], l / 2);
	case KERN_LANES:
		return (struct kern_span){x->list[l], x->list[l]};
	case KERN_CAST:
		return kern_at(o->k, x->arg[0])->type.dt == TN_BOOL
			       ? kern_order_cell(o, x->arg[0], l)
			       : KERN_ALL;
	case KERN_ANY:
		f = one_of_lanes(o, x->arg[0]);
		for (int32_t i = 0; i < kern_at(o->k, x->arg[0])->type.lanes; i++)
			if (!may_not_be(kern_order_cell(o, x->arg[0], i)))
				return truth(false, true);
		return f;
	case KERN_INDEX:
	case KERN_DIV:
	case KERN_FLOOR:
	case KERN_MOD:
		return fitted(x->type.dt, quotient(o, x, l));
	case KERN_MIN:
	case KERN_MAX:
	case KERN_CLAMP:
	case KERN_PICK:
	case KERN_INSIDE:
		return fitted(x->type.dt, chosen(o, x));
	case KERN_CHECK:
		return within(&o->k->check.at[x->num[0] - 1]);
	case KERN_LOAD:
		return loaded(o, x);
	case KERN_MAD:
	case KERN_MULADD:
	case KERN_DOT:
	case KERN_WIDEN:
	case KERN_NARROW:
	case KERN_ROUND:
	case KERN_NONE:
	case KERN_CONST:
	case KERN_CHUNK:
	case KERN_WALK:
	case KERN_AFTER:
	case KERN_REG:
	case KERN_N_OPS:
		break;
	}
	return KERN_ALL;
}

/* ---- lanes of memory that is not written ---- */

/* Of argument i, in the lanes of x. */
static uint64_t bad_arg(
	const struct kern_order *o, const kern_value *x, int32_t i)
{
	uint64_t b = o->bad[x->arg[i]];

	if (kern_at(o->k, x->arg[i])->type.lanes == 1 && x->type.lanes > 1)
		return (b & 1) != 0 ? kern_order_lanes(x->type.lanes) : 0;
	return b;
}

static uint64_t bad_selected(const struct kern_order *o, const kern_value *x)
{
	uint64_t b = bad_arg(o, x, 0), bit;

	for (int32_t l = 0; l < x->type.lanes; l++) {
		struct kern_span c = kern_order_cell(o, x->arg[0], l);

		bit = UINT64_C(1) << l;
		if (may_be(c))
			b |= bad_arg(o, x, 1) & bit;
		if (may_not_be(c))
			b |= bad_arg(o, x, 2) & bit;
	}
	return b;
}

static uint64_t bad_shuffled(const struct kern_order *o, const kern_value *x)
{
	uint64_t b = 0;

	for (int32_t l = 0; l < x->type.lanes; l++) {
		int64_t from = x->list[l];
		kern_val of = x->arg[from >= x->type.lanes];

		b |= (o->bad[of] >> from % x->type.lanes & 1) << l;
	}
	return b;
}

/* Lane l of a dot, of lanes that are repeated or zipped. */
static bool is_bad_lane(
	const struct kern_order *o, const kern_value *x, int32_t l)
{
	int32_t n = kern_at(o->k, x->arg[0])->type.lanes;
	uint64_t a = o->bad[x->arg[0]], b, some;

	if (x->op == KERN_REPEAT)
		return (a >> l % n & 1) != 0;
	b = o->bad[x->arg[1]];
	if (x->op == KERN_ZIP)
		return ((l % 2 == 0 ? a : b) >> l / 2 & 1) != 0;
	n /= x->type.lanes;
	some = (UINT64_C(1) << n) - 1;
	return ((a | b) >> n * l & some) != 0 ||
	       (o->bad[x->arg[2]] >> l & 1) != 0;
}

static uint64_t bad_of(struct kern_order *o, const kern_value *x)
{
	uint64_t b = 0;

	if (x->op == KERN_SHUFFLE)
		return bad_shuffled(o, x);
	if (x->op == KERN_DOT || x->op == KERN_REPEAT || x->op == KERN_ZIP) {
		for (int32_t l = 0; l < x->type.lanes; l++)
			b |= (uint64_t)is_bad_lane(o, x, l) << l;
		return b;
	}
	if (x->op == KERN_CALL &&
		strcmp(ir_scalar_at(x->fn)->name, "sel") == 0)
		return bad_selected(o, x);
	if (x->op == KERN_LANE) {
		struct kern_span l = kern_order_form(o, x->form[0]);

		b = o->bad[x->arg[0]];
		return (kern_span_is_one(l) ? b >> l.lo & 1 : b) != 0;
	}
	for (int32_t i = 0; i < KERN_MAX_ARGS && x->arg[i] != 0; i++)
		b |= bad_arg(o, x, i);
	return x->type.lanes == 1 ? b != 0 : b;
}

/* ---- loads ---- */

static bool is_done(const struct kern_order *o, const kern_access *at, int32_t n)
{
	for (int32_t i = o->done.n - 1; i >= 0; i--) {
		const struct kern_done *d = &o->done.at[i];

		if (d->array == at->array && d->at == at->at && d->n >= n &&
			(n == 1 || d->stride == at->stride))
			return true;
	}
	return false;
}

/*
 * Is each element written that the terms of f from `i` on give, added to `at`? false,
 * too, if these are too many.
 */
static bool each_is_set(struct kern_order *o, int32_t array,
	const kern_form *f, int32_t i, struct kern_span at, int64_t *left)
{
	struct kern_span v, one;

	if (i == f->n)
		return --*left >= 0 && kern_order_is_set(o, array, at);
	v = kern_order_cell(o, f->t[i].v, 0);
	if (v.hi > MOST_EACH || v.lo < -MOST_EACH)
		v = kern_span_is_one(v) ? v : KERN_ALL;
	if (v.lo == INT64_MIN)
		return false;
	for (int64_t j = v.lo; j <= v.hi; j++) {
		one = scaled((struct kern_span){j, j}, f->t[i].coef);
		if (!each_is_set(o, array, f, i + 1, plus(at, one), left))
			return false;
	}
	return true;
}

static bool is_set(struct kern_order *o, const kern_access *at,
	struct kern_span base, int64_t more)
{
	int64_t left = MOST_EACH, c;
	bool all;

	if (kern_order_is_set(o, at->array, kern_span_plus(base, more, more)))
		return true;
	if (kern_span_is_one(base) || !add_ok(at->at->c0, more, &c))
		return false;
	all = each_is_set(o, at->array, at->at, 0, (struct kern_span){c, c}, &left);
	o->left -= (MOST_EACH - left) / A_STEP;
	return all;
}

/*
 * Of an address that depends on data, conditions say more than is known here: some
 * element that it may be must be written. Indices are not taken on trust.
 */
static bool may_be_set(struct kern_order *o, const kern_access *at,
	struct kern_span base, int64_t more)
{
	const kern_array *r = &o->k->array.at[at->array];
	struct kern_span all = kern_span_plus(base, more, more);
	bool data = false, some = false;

	for (int32_t i = 0; i < at->at->n; i++)
		data |= o->data[at->at->t[i].v];
	if (!data || r->space == KERN_SCRATCH ||
		o->v->range.checked[at->array] > 0)
		return false;
	for (int64_t i = largest(all.lo, 0);
		i <= least(all.hi, r->elems - 1) && !some; i++) {
		some = kern_order_is_set(
			o, at->array, (struct kern_span){i, i});
		o->left -= i % A_STEP == 0;
	}
	return some;
}

static void too_early(struct kern_order *o, kern_val i, struct kern_span at)
{
	const kern_value *x = kern_at(o->k, i);
	struct kern_early *e = arena_make(o->a, struct kern_early);

	*e = (struct kern_early){o->s, x->at.array, at};
	o->early[i] = e;
	if (o->k->array.at[x->at.array].space == KERN_SCRATCH &&
		x->type.lanes == 1)
		o->fault = e;
}

static void load(struct kern_order *o, kern_val i)
{
	const kern_value *x = kern_at(o->k, i);
	const kern_access *at = &x->at;
	struct kern_span base = kern_order_form(o, at->at);
	int32_t n = at->part > 0 ? at->part : x->type.lanes;
	struct kern_span all;

	o->bad[i] = 0;
	if (at->mask != 0 && o->bad[at->mask] != 0)
		o->fault = o->early[at->mask];
	if (!o->tracked[at->array] || is_done(o, at, n))
		return;
	all = plus(base, (struct kern_span){0, n - 1});
	if (at->stride == 1 && kern_order_is_set(o, at->array, all))
		return;
	for (int32_t l = 0; l < n; l++) {
		if ((at->mask != 0 &&
			    !may_be(kern_order_cell(o, at->mask, l))) ||
			is_set(o, at, base, l * at->stride) ||
			may_be_set(o, at, base, l * at->stride))
			continue;
		if (o->bad[i] == 0)
			too_early(o, i,
				kern_span_plus(base, l * at->stride,
					l * at->stride));
		o->bad[i] |= UINT64_C(1) << l;
	}
}

void kern_order_value(struct kern_order *o, kern_val i)
{
	const kern_value *x = kern_at(o->k, i);

	if (--o->left < 0 || o->fault != NULL)
		return;
	if (x->op == KERN_LOAD) {
		load(o, i);
	} else {
		o->bad[i] = bad_of(o, x);
		for (int32_t j = 0; o->bad[i] != 0 && j < KERN_MAX_ARGS; j++)
			if (o->bad[x->arg[j]] != 0)
				o->early[i] = o->early[x->arg[j]];
		if (x->op == KERN_CHECK && o->bad[i] != 0)
			o->fault = o->early[i];
	}
	for (int32_t l = 0; l < o->n_cells[i]; l++)
		o->cell[o->first[i] + l] = lane(o, x, l);
}

void kern_order_take(struct kern_order *o, kern_val x)
{
	if (!o->named[x])
		kern_order_value(o, x);
}

void kern_order_read_rows(struct kern_order *o, const kern_stmt *s,
	const kern_access *at, int64_t step, int64_t rows, int64_t width)
{
	struct kern_span from = kern_order_form(o, at->at);
	struct kern_early *e = arena_make(o->a, struct kern_early);
	bool bad = o->tracked[at->array];

	*e = (struct kern_early){s, at->array,
		kern_span_plus(from, 0,
			(rows - 1) * step + width - 1)};
	if (bad && kern_span_is_one(from)) {
		bad = false;
		for (int64_t i = 0; i < rows; i++)
			bad |= !kern_order_is_set(o, at->array,
				kern_span_plus(from, i * step,
					i * step + width - 1));
	} else if (bad) {
		bad = !kern_order_is_set(o, at->array, e->at);
	}
	if (bad)
		o->fault = e;
}
