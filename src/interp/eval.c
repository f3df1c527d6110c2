/*
 * eval.c: the value of one expression of an instance, at given letters.
 *
 * Every operation is rounded to its dtype where it stands: f32 after every
 * operation, integers wrapped to their width, f64 as it is. Expressions of
 * f16 and bf16 are computed in f32; they are rounded where they are cast or
 * stored, no sooner. The branch of `where` that is not taken, and E of
 * `E else F` where a read of E is outside, are not evaluated.
 */
#include "interp/local.h"

static tn_dtype wide(tn_dtype t)
{
	return t == TN_F16 || t == TN_BF16 ? TN_F32 : t;
}

/* An integer as a value of dtype t: literals and letters adapt. */
static ir_number from_int(tn_dtype t, int64_t v)
{
	ir_number r = {0};

	if (dtype_is_float(t))
		r.f = ir_round(wide(t), (double)v);
	else
		r.i = ir_wrap(t, v);
	return r;
}

/* ---- reads ---- */

bool walk_place(const walk *w, int32_t tensor, const in_node *const *index,
	int64_t *place, int32_t *axis)
{
	const ir_type *t = &w->inst->tensor[tensor].type;

	*place = 0;
	for (int32_t d = 0; d < t->rank; d++) {
		int64_t i = walk_index(w, index[d]);

		if (i < 0 || i >= t->shape[d]) {
			*axis = d;
			return false;
		}
		*place = *place * t->shape[d] + i;
	}
	return true;
}

void walk_outside(const walk *w, int32_t tensor, const in_node *const *index,
	int32_t axis)
{
	const in_tensor *t = &w->inst->tensor[tensor];

	env_fail(w->e, TN_ERANGE, "index.range", (loc){0},
		"%s: index %lld is outside axis %d of %s, whose extent is %lld",
		ir_row_name(w->inst->row),
		(long long)walk_index(w, index[axis]), axis, t->name,
		(long long)t->type.shape[axis]);
}

/* Is the read inside? Its element number, and the axis that is outside. */
static bool find(const walk *w, const in_node *n, int64_t *place,
	int32_t *axis)
{
	const ir_type *t = &w->inst->tensor[n->tensor].type;

	if (!n->flat)
		return walk_place(w, n->tensor, n->index, place, axis);
	*place = walk_index(w, n->index[0]);
	*axis = 0;
	return *place >= 0 && *place < shape_numel(t->shape, t->rank);
}

static ir_number read_element(const walk *w, const in_node *n)
{
	tn_dtype t = w->inst->tensor[n->tensor].type.dtype;
	ir_number r = {0};
	int64_t place;
	int32_t axis;

	if (!find(w, n, &place, &axis))
		walk_outside(w, n->tensor, n->index, axis);
	if (dtype_is_float(t))
		r.f = dtype_load_f64(t, w->tensor[n->tensor], place);
	else
		r.i = dtype_load_i64(t, w->tensor[n->tensor], place);
	return r;
}

/*
 * Is every read in n inside its tensor? Reads in an index come before the
 * read that they index. What has an else of its own is no concern of ours.
 */
static bool all_inside(const walk *w, const in_node *n)
{
	int64_t place;
	int32_t axis;

	if (n == NULL || n->kind == IN_ELSE || n->kind == IN_INSIDE)
		return true;
	if (n->kind == IN_READ) {
		for (int32_t i = 0; i < n->n_index; i++)
			if (!all_inside(w, n->index[i]))
				return false;
		return find(w, n, &place, &axis);
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if (!all_inside(w, n->arg[i]))
			return false;
	return true;
}

/* ---- expressions ---- */

/* Only data gets there: compiled code computes with less, and checks it. */
static bool beyond(int64_t v)
{
	const int64_t most = (int64_t)1 << 62;

	return v < -most || v >= most;
}

static _Noreturn void too_large(const walk *w)
{
	env_fail(w->e, TN_ERANGE, "index.overflow", (loc){0},
		"%s: an index made from data is beyond 2^62",
		ir_row_name(w->inst->row));
}

static int64_t divide(const walk *w, const in_node *n)
{
	int64_t a = walk_index(w, n->arg[0]), b = walk_index(w, n->arg[1]);

	if (b <= 0)
		env_bug(w->e, "interp.divide", "a divisor that is not positive");
	return n->kind == IN_DIV ? floor_div(a, b) : floor_mod(a, b);
}

static int64_t add_sub_mul(const walk *w, const in_node *n)
{
	int64_t a = walk_index(w, n->arg[0]), b = walk_index(w, n->arg[1]);
	int64_t r = 0;
	bool bad = n->kind == IN_ADD ? __builtin_add_overflow(a, b, &r) :
		n->kind == IN_SUB    ? __builtin_sub_overflow(a, b, &r) :
				       __builtin_mul_overflow(a, b, &r);

	if (bad || beyond(r))
		too_large(w);
	return r;
}

static int64_t clamp(int64_t i, int64_t n)
{
	int64_t top = i < n - 1 ? i : n - 1;

	return top > 0 ? top : 0;
}

static ir_number call(const walk *w, const in_node *n)
{
	int32_t n_args = ir_scalar_at(n->fn)->n_args;
	ir_number v[IR_MAX_ARGS] = {{0}}, r;

	for (int32_t i = 0; i < n_args; i++)
		v[i] = walk_eval(w, n->arg[i]);
	r = ir_scalar_eval(n->fn, n->arg[n_args - 1]->dtype, v);
	if (dtype_is_float(n->dtype))
		r.f = ir_round(wide(n->dtype), r.f);
	else
		r.i = ir_wrap(n->dtype, r.i);
	return r;
}

int64_t walk_index(const walk *w, const in_node *n)
{
	int64_t v = walk_eval(w, n).i;

	if (n->kind == IN_READ && beyond(v))
		too_large(w);
	return v;
}

ir_number walk_eval(const walk *w, const in_node *n)
{
	int64_t place;
	int32_t axis;

	switch (n->kind) {
	case IN_INT:
		return from_int(n->dtype, n->i);
	case IN_REAL:
		return (ir_number){.f = ir_round(wide(n->dtype), n->f)};
	case IN_LETTER:
		return from_int(n->dtype, w->letter[n->i]);
	case IN_ADD:
	case IN_SUB:
	case IN_MUL:
		return from_int(n->dtype, add_sub_mul(w, n));
	case IN_DIV:
	case IN_MOD:
		return from_int(n->dtype, divide(w, n));
	case IN_CLAMP:
		return from_int(n->dtype, clamp(walk_index(w, n->arg[0]), n->i));
	case IN_POS:
		return from_int(n->dtype, w->pos);
	case IN_READ:
		return read_element(w, n);
	case IN_CALL:
		return call(w, n);
	case IN_WHERE:
		return walk_eval(w,
			n->arg[walk_eval(w, n->arg[0]).i != 0 ? 1 : 2]);
	case IN_ELSE:
		return walk_eval(w, n->arg[all_inside(w, n->arg[0]) ? 0 : 1]);
	case IN_INSIDE:
		return (ir_number){.i = find(w, n->arg[0], &place, &axis)};
	case IN_CAST:
		return ir_cast(n->dtype, n->arg[0]->dtype,
			walk_eval(w, n->arg[0]));
	case IN_STOP:
		return walk_eval(w, n->arg[0]);
	}
	env_bug(w->e, "interp.eval", "unknown kind of node %d", (int)n->kind);
}
