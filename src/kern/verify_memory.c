/*
 * verify_memory.c: each element that is accessed lies in its array, in memory
 * that something has been written to.
 *
 * Lanes of an access lie between its first and its last one. Of an access with
 * a mask each lane is shown to be inside under what its mask says.
 */
#include "kern/verify.h"

/* Times of the usual steps of a proof that are tried before a kernel is refused. */
enum { PATIENCE = 19 };

static void bound_text(str *s, int64_t c)
{
	if (c == INT64_MIN || c == INT64_MAX)
		str_add(s, "?");
	else
		str_printf(s, "%lld", (long long)c);
}

/* "-1 .. 99", as far as it is known */
static const char *range_text(struct kern_verifier *v, const kern_form *lo,
	const kern_form *hi)
{
	str s = str_new(v->a);

	bound_text(&s, kern_least(&v->range, lo, INT64_MAX));
	str_add(&s, " to ");
	bound_text(&s, kern_most(&v->range, hi, INT64_MIN));
	return s.at;
}

void kern_verify_form(struct kern_verifier *v, const char *rule,
	const kern_form *f, int64_t lo, int64_t hi, const char *what)
{
	str want = str_new(v->a);

	if (kern_is_inside(&v->range, f, lo, hi))
		return;
	bound_text(&want, lo);
	str_add(&want, " to ");
	bound_text(&want, hi == INT64_MAX ? hi : hi - 1);
	kern_refuse(v, rule, "%s: it is %s, and must be %s", what,
		range_text(v, f, f), want.at);
}

static bool is_inside(struct kern_verifier *v, const kern_form *first,
	const kern_form *last, int64_t n)
{
	kern_range *r = &v->range;

	return kern_is_inside(r, first, 0, INT64_MAX) &&
	       kern_is_inside(r, last, INT64_MIN, n);
}

/* Elements at + lo .. at + hi are inside. */
static void inside(struct kern_verifier *v, const kern_access *at, int64_t lo,
	int64_t hi)
{
	kern_kernel *k = v->k;
	const kern_array *r = &k->array.at[at->array];
	const kern_form *first = kern_form_addc(k, at->at, lo);
	const kern_form *last = kern_form_addc(k, at->at, hi);
	bool some;

	v->range.data = false;
	if (is_inside(v, first, last, r->elems) ||
		is_inside(v, kern_first_made(&v->range, first, 0),
			kern_first_made(&v->range, last, 0), r->elems))
		return;
	v->range.patience = PATIENCE; /* before a kernel is refused */
	some = is_inside(v, first, last, r->elems);
	v->range.patience = 0;
	if (some)
		return;
	if (v->range.data)
		kern_refuse(v, "check",
			"an address of %s depends on data: an index that was read must first pass a `check`",
			kern_access_text(v, at->array));
	kern_refuse(v, "bounds",
		"this may access elements %s of %s, whose elements are 0 to %lld",
		range_text(v, first, last), kern_access_text(v, at->array),
		(long long)r->elems - 1);
}

/* Do two arrays share bytes? */
bool kern_arrays_overlap(const kern_kernel *k, int32_t i, int32_t j)
{
	const kern_array *a = &k->array.at[i], *b = &k->array.at[j];
	int64_t n, m;

	if (i == j)
		return true;
	if (a->space != b->space || a->space == KERN_STACK)
		return false;
	if (a->space == KERN_PARAM)
		return (a->in > 0 ? a->in - 1 : i) ==
		       (b->in > 0 ? b->in - 1 : j);
	n = a->elems * (int64_t)dtype_size(a->dtype);
	m = b->elems * (int64_t)dtype_size(b->dtype);
	return a->offset < b->offset + m && b->offset < a->offset + n;
}

/* Has something been written to it, in this chunk or by an earlier phase? */
static bool is_written(const struct kern_verifier *v, int32_t array)
{
	const kern_array *r = &v->k->array.at[array];
	bool mine = r->space == KERN_LOCAL || r->space == KERN_STACK;

	for (int32_t i = 0; i < v->k->array.n; i++) {
		const kern_array *o = &v->k->array.at[i];

		if (kern_arrays_overlap(v->k, i, array) &&
			((v->written[i] & (mine ? 1 : 3)) != 0 ||
				(o->space == KERN_PARAM && !o->out)))
			return true;
	}
	return false;
}

static _Noreturn void not_written(struct kern_verifier *v, int32_t array)
{
	kern_refuse(v, "order", "%s is read before it is written",
		kern_access_text(v, array));
}

/*
 * A scan reads what its loop has written before: not in the first iteration. Of
 * the worker's own memory anything may be read that is written later in a loop
 * around: what is no value yet is not selected. So with what only a selection
 * uses.
 */
static void written(struct kern_verifier *v, int32_t array, bool masked)
{
	bool own = v->k->array.at[array].space == KERN_LOCAL;
	struct kern_touch *t;

	if (is_written(v, array))
		return;
	if (v->loops == 0 || (v->guards == 0 && !masked && !own &&
				     !v->selected[v->value]))
		not_written(v, array);
	t = vec_push(v->a, &v->early);
	*t = (struct kern_touch){.s = v->s, .array = array};
}

void kern_verify_early(struct kern_verifier *v)
{
	for (int32_t i = 0; v->loops == 0 && i < v->early.n; i++)
		if (!is_written(v, v->early.at[i].array)) {
			v->s = v->early.at[i].s;
			not_written(v, v->early.at[i].array);
		}
	if (v->loops == 0)
		v->early.n = 0;
}

const struct kern_fact *kern_verify_facts(struct kern_verifier *v)
{
	size_t n = (size_t)v->range.fact.n * sizeof *v->range.fact.at;
	int64_t at;

	if (n == 0)
		return NULL;
	at = map_get(v->same, v->range.fact.at, n, -1);
	if (at < 0) {
		at = v->set.n;
		*vec_push(v->a, &v->set) = arena_copy(v->a, v->range.fact.at, n);
		map_set(v->same, v->set.at[at], n, at);
	}
	return v->set.at[at];
}

static void touch(struct kern_verifier *v, const struct kern_touch *like)
{
	struct kern_touch *t;

	if (like->write)
		v->written[like->array] |= 1;
	if (kern_is_never(&v->range))
		return;
	t = vec_push(v->a, &v->touch);
	*t = *like;
	t->s = v->s;
	t->n_facts = v->range.fact.n;
	t->facts = kern_verify_facts(v);
}

static void may_write(struct kern_verifier *v, int32_t array)
{
	const kern_array *r = &v->k->array.at[array];

	if (r->space == KERN_PARAM && !r->out)
		kern_refuse(v, "write", "%s cannot be written: it is not marked `out`",
			kern_access_text(v, array));
}

static bool is_condition(const struct kern_verifier *v, kern_val mask)
{
	return kern_at(v->k, mask)->type.lanes == 1;
}

/* All lanes, where the condition holds; or those that the mask has, one by one. */
static void masked(struct kern_verifier *v, const kern_access *at, int32_t n)
{
	int32_t facts = v->range.fact.n;
	int64_t last = at->stride * (n - 1);

	if (is_condition(v, at->mask)) {
		kern_assume(&v->range, at->mask, NULL, true);
		inside(v, at, last < 0 ? last : 0, last < 0 ? 0 : last);
		v->range.fact.n = facts;
		return;
	}
	if (at->whole != 0) {
		kern_assume(&v->range, at->whole, NULL, true);
		inside(v, at, 0, at->stride * (n - 1));
		v->range.fact.n = facts;
	}
	for (int32_t l = 0; l < n; l++) {
		if (at->whole != 0)
			kern_assume(&v->range, at->whole, NULL, false);
		kern_assume(&v->range, at->mask, kern_form_const(v->k, l), true);
		inside(v, at, at->stride * l, at->stride * l);
		v->range.fact.n = facts;
	}
}

/* A mask of the lanes of the value at hand that shuffles take; 0: all. */
static kern_val looked_at(struct kern_verifier *v, int32_t lanes)
{
	uint64_t is = v->shuffled[v->value];
	kern_value m = {.op = KERN_LANES, .type = kern_mask(1, lanes)};
	int64_t *list;

	if (v->value == 0 || lanes < 2 || is == UINT64_MAX)
		return 0;
	list = arena_array(v->k->a, int64_t, lanes);
	for (int32_t l = 0; l < lanes; l++)
		list[l] = (int64_t)(is >> l & 1);
	m.list = list;
	return kern_ins(v->k, &m);
}

static void need_by(struct kern_verifier *v, const kern_access *at,
	int32_t lanes, bool write)
{
	const kern_array *r = &v->k->array.at[at->array];

	if (write || r->dtype != TN_F32 ||
		!kern_same_type(kern_at(v->k, at->by)->type,
			kern_num(TN_I32, lanes)))
		kern_refuse(v, "type",
			"`by` is for loads of f32, and takes as many i32");
	if (at->stride != 1 || at->whole != 0 ||
		(at->mask != 0 && is_condition(v, at->mask)))
		kern_refuse(v, "type",
			"with `by` a load has no `step`, no `whole`, and a mask for each lane or none");
	if (r->space != KERN_PARAM || r->elems > INT32_MAX)
		kern_refuse(v, "type",
			"`by` is for parameters of fewer than 2^31 elements");
	for (int32_t i = 0; i < v->k->array.n; i++)
		if (v->k->array.at[i].out &&
			kern_arrays_overlap(v->k, i, at->array))
			kern_refuse(v, "type",
				"`by` is for what the kernel does not write");
}

/* Lanes that load elements anywhere, of an input that stays as it is: each is inside,
 * where the mask has it. */
static void by_lanes(struct kern_verifier *v, const kern_access *at, int32_t n)
{
	for (int32_t l = 0; l < n; l++) {
		const kern_form *lane = kern_form_const(v->k, l), *f;
		int32_t facts = v->range.fact.n;
		kern_access one = *at;

		if (at->mask != 0)
			kern_assume(&v->range, at->mask, lane, true);
		f = kern_lane_form(&v->range, at->by, lane);
		if (f == NULL)
			kern_refuse(v, "bounds",
				"what lane %d adds to the address in %s is not a sum of known integers",
				l, kern_access_text(v, at->array));
		one.at = kern_form_add(v->k, at->at, f);
		inside(v, &one, 0, 0);
		v->range.fact.n = facts;
	}
}

void kern_verify_access(struct kern_verifier *v, const kern_access *at,
	int32_t lanes, bool write)
{
	int32_t n = at->part > 0 ? at->part : lanes;
	struct kern_touch t = {.array = at->array, .write = write,
		.at = at->at, .step = {at->stride, 0}, .n = {n, 1}};
	int32_t facts = v->range.fact.n;
	int64_t last;

	if (at->part < 0 || n > lanes)
		kern_refuse(v, "lanes", "a part of %d lanes; it must be 0 to %d",
			at->part, lanes);
	if (!mul_ok(at->stride, n - 1, &last) || at->stride == 0)
		kern_refuse(v, "lanes", 
			"the distance of two lanes must not be 0, nor exceed 64 bits");
	if (at->mask != 0) {
		kern_type m = kern_at(v->k, at->mask)->type;

		if (m.dt != TN_BOOL || (m.lanes != lanes && m.lanes != 1))
			kern_refuse(v, "type",
				"this mask must have %d lanes, or be a condition",
				lanes);
	}
	if (at->whole != 0 &&
		!kern_same_type(kern_at(v->k, at->whole)->type, kern_bool()))
		kern_refuse(v, "type", "`whole` must be a condition");
	if (at->by != 0) {
		need_by(v, at, lanes, write);
		by_lanes(v, at, n);
		return;
	}
	if (write)
		may_write(v, at->array);
	else
		written(v, at->array, at->mask != 0);
	if (at->mask != 0)
		masked(v, at, n);
	else
		inside(v, at, last < 0 ? last : 0, last < 0 ? 0 : last);
	if (at->mask != 0 && is_condition(v, at->mask))
		kern_assume(&v->range, at->mask, NULL, true);
	else
		t.mask = at->mask != 0	    ? at->mask
			 : v->interest != 0 ? v->interest
					    : looked_at(v, lanes);
	touch(v, &t);
	v->range.fact.n = facts;
}

void kern_verify_rows(struct kern_verifier *v, const kern_access *at,
	int64_t step, int32_t rows, int32_t width, bool write)
{
	struct kern_touch t = {.array = at->array, .write = write,
		.at = at->at, .step = {1, step}, .n = {width, rows}};
	int64_t last;

	if (!mul_ok(step, rows, &last) || step == 0)
		kern_refuse(v, "lanes", 
			"the distance of two rows must not be 0, nor exceed 64 bits");
	last -= step;
	if (write)
		may_write(v, at->array);
	else
		written(v, at->array, false);
	inside(v, at, last < 0 ? last : 0,
		width - 1 + (last > 0 ? last : 0));
	touch(v, &t);
}
