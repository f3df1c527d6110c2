/*
 * eval.c: evaluates an expression of an instance, at given letters.
 *
 * Every operation is rounded to its dtype: f32 after every operation, integers
 * wrapped to their width. Expressions of f16 and bf16 are computed in f32, others
 * in what base/dtype.def says, and rounded only when they are cast or stored. The branch of `where` that is not taken, and E of
 * `E else F` where a read of E is outside, are not evaluated.
 *
 * An expression is evaluated many times, so it is prepared first: each node
 * has the function that evaluates it, constants are rounded, and a read whose
 * place is a sum of letters with factors, and inside for all of them, is
 *
 *     x[2*i, k]    x f32[8, 5], i < 4, k < 5      at 0 + 10*i + 1*k
 */
#include "interp/local.h"

/* An integer as a value of dtype t: literals and letters adapt. */
static ir_number from_int(tn_dtype t, int64_t v)
{
	ir_number r = {0};

	if (t == TN_I64)
		r.i = v;
	else if (is_float(t))
		r.f = ir_round(ir_wide(t), (double)v);
	else
		r.i = ir_wrap(ir_wide(t), v);
	return r;
}

static ir_number eval(const walk *w, const step *s)
{
	return s->eval(w, s);
}

/* ---- indices ---- */

/* Only data can be so large: compiled code checks that it is smaller. */
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

static int64_t index_of(const walk *w, const step *s)
{
	int64_t v = eval(w, s).i;

	if (s->kind == IN_READ && beyond(v))
		too_large(w);
	if (s->hi > s->lo && (v < s->lo || v >= s->hi))
		env_fail(w->e, TN_ERANGE, "index.range", (loc){0},
			"%s: %lld moves a view, and accepted are %lld <= v < %lld",
			ir_row_name(w->inst->row), (long long)v,
			(long long)s->lo, (long long)s->hi);
	return v;
}

static ir_number eval_divide(const walk *w, const step *s)
{
	int64_t a = index_of(w, s->arg[0]), b = index_of(w, s->arg[1]);

	if (b <= 0)
		env_bug(w->e, "interp.divide", "a divisor that is not positive");
	return from_int(s->dtype,
		s->kind == IN_DIV ? floor_div(a, b) : floor_mod(a, b));
}

static ir_number eval_add_sub_mul(const walk *w, const step *s)
{
	int64_t a = index_of(w, s->arg[0]), b = index_of(w, s->arg[1]);
	int64_t r = 0;
	bool bad = s->kind == IN_ADD ? __builtin_add_overflow(a, b, &r) :
		s->kind == IN_SUB    ? __builtin_sub_overflow(a, b, &r) :
				       __builtin_mul_overflow(a, b, &r);

	if (bad || beyond(r))
		too_large(w);
	return from_int(s->dtype, r);
}

static ir_number eval_clamp(const walk *w, const step *s)
{
	int64_t i = index_of(w, s->arg[0]), n = s->i;
	int64_t top = i < n - 1 ? i : n - 1;

	return from_int(s->dtype, top > 0 ? top : 0);
}

/* ---- reads ---- */

bool walk_place(const walk *w, const step *s, int64_t *place, int32_t *axis)
{
	const ir_type *t = s->type;

	if (s->is_straight) {
		*place = s->at;
		for (int32_t k = 0; k < s->n_terms; k++)
			*place += s->term[k].by * w->letter[s->term[k].letter];
		return true;
	}
	if (s->flat) {
		*place = index_of(w, s->index[0]);
		*axis = 0;
		return *place >= 0 && *place < shape_numel(t->shape, t->rank);
	}
	*place = 0;
	for (int32_t d = 0; d < t->rank; d++) {
		int64_t i = index_of(w, s->index[d]);

		if (i < 0 || i >= t->shape[d]) {
			*axis = d;
			return false;
		}
		*place = *place * t->shape[d] + i;
	}
	return true;
}

void walk_outside(const walk *w, const step *s, int32_t axis)
{
	env_fail(w->e, TN_ERANGE, "index.range", (loc){0},
		"%s: index %lld is outside axis %d of %s, whose extent is %lld",
		ir_row_name(w->inst->row),
		(long long)index_of(w, s->index[axis]), axis,
		w->inst->tensor[s->tensor].name,
		(long long)s->type->shape[axis]);
}

static ir_number eval_read(const walk *w, const step *s)
{
	int64_t place;
	int32_t axis;

	if (!walk_place(w, s, &place, &axis))
		walk_outside(w, s, axis);
	return load_number(s->type->dtype, w->tensor[s->tensor], place);
}

/*
 * Is every read in s inside its tensor? Reads in an index come before the
 * read that they index. Reads with another `else` are not checked.
 */
static bool all_inside(const walk *w, const step *s)
{
	int64_t place;
	int32_t axis;

	if (s == NULL || s->kind == IN_ELSE || s->kind == IN_INSIDE)
		return true;
	if (s->kind == IN_READ) {
		for (int32_t i = 0; i < s->n_index; i++)
			if (!all_inside(w, s->index[i]))
				return false;
		return walk_place(w, s, &place, &axis);
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if (!all_inside(w, s->arg[i]))
			return false;
	return true;
}

/* ---- expressions ---- */

static ir_number eval_const(const walk *w, const step *s)
{
	(void)w;
	return s->c;
}

static ir_number eval_letter(const walk *w, const step *s)
{
	return from_int(s->dtype, w->letter[s->i]);
}

static ir_number eval_pos(const walk *w, const step *s)
{
	return from_int(s->dtype, w->pos);
}

/* any function of any dtype */
static ir_number eval_call(const walk *w, const step *s)
{
	ir_number v[IR_MAX_ARGS] = {{0}}, r;
	int32_t n = s->row->n_args;

	for (int32_t i = 0; i < n; i++)
		v[i] = eval(w, s->arg[i]);
	r = ir_scalar_eval(s->fn, s->arg[n - 1]->dtype, v);
	if (dtype_is_float(s->dtype))
		r.f = ir_round(ir_wide(s->dtype), r.f);
	else
		r.i = ir_wrap(ir_wide(s->dtype), r.i);
	return r;
}

/* of floats */
static ir_number eval_call_f64(const walk *w, const step *s)
{
	double x = eval(w, s->arg[0]).f;
	double y = s->row->n_args > 1 ? eval(w, s->arg[1]).f : 0;
	double z = s->row->n_args > 2 ? eval(w, s->arg[2]).f : 0;

	return (ir_number){.f = s->row->f(x, y, z)};
}

/* of floats, in f32 or narrower */
static ir_number eval_call_f32(const walk *w, const step *s)
{
	return (ir_number){.f = (double)(float)eval_call_f64(w, s).f};
}

static ir_number eval_where(const walk *w, const step *s)
{
	return eval(w, s->arg[eval(w, s->arg[0]).i != 0 ? 1 : 2]);
}

static ir_number eval_else(const walk *w, const step *s)
{
	return eval(w, s->arg[all_inside(w, s->arg[0]) ? 0 : 1]);
}

static ir_number eval_inside(const walk *w, const step *s)
{
	int64_t place;
	int32_t axis;

	return (ir_number){.i = walk_place(w, s->arg[0], &place, &axis)};
}

static ir_number eval_cast(const walk *w, const step *s)
{
	return cast_number(s->dtype, s->arg[0]->dtype, eval(w, s->arg[0]));
}

static ir_number eval_stop(const walk *w, const step *s)
{
	return eval(w, s->arg[0]);
}

/* ---- places that are sums of letters ---- */

enum { MAX_TERMS = 16 };

typedef struct line {
	int64_t at, size; /* size: bound of the magnitude */
	int32_t n;
	struct step_term term[MAX_TERMS];
} line;

/* Adds |by| * n to the bound of the sum; false: it may overflow. */
static bool grow(line *l, int64_t by, int64_t n)
{
	int64_t m;

	return by != 0 && by > INT64_MIN &&
		!__builtin_mul_overflow(by < 0 ? -by : by, n, &m) &&
		!__builtin_add_overflow(l->size, m, &l->size) &&
		l->size < (int64_t)1 << 60;
}

static bool add_letter(const walk *w, int64_t by, int64_t letter, line *l)
{
	int32_t k = 0;

	if (!grow(l, by, w->inst->letter[letter].extent))
		return false;
	while (k < l->n && l->term[k].letter != letter)
		k++;
	if (k == MAX_TERMS)
		return false;
	if (k == l->n)
		l->term[l->n++] = (struct step_term){(int32_t)letter, 0};
	l->term[k].by += by;
	return true;
}

/* Adds by times the index n; false: it is not a sum of letters with factors. */
static bool add_index(const walk *w, const in_node *n, int64_t by, line *l)
{
	int64_t factor;
	int32_t other;

	if (n->dtype != TN_I64 || by == INT64_MIN)
		return false;
	switch (n->kind) {
	case IN_INT:
		if (n->i == INT64_MIN ||
			!grow(l, by, n->i < 0 ? -n->i : n->i))
			return false;
		l->at += by * n->i;
		return true;
	case IN_LETTER:
		return add_letter(w, by, n->i, l);
	case IN_ADD:
	case IN_SUB:
		return add_index(w, n->arg[0], by, l) &&
			add_index(w, n->arg[1],
				n->kind == IN_SUB ? -by : by, l);
	case IN_MUL:
		other = n->arg[0]->kind == IN_INT ? 1 : 0;
		return n->arg[1 - other]->kind == IN_INT &&
			n->arg[1 - other]->dtype == TN_I64 &&
			!__builtin_mul_overflow(
				by, n->arg[1 - other]->i, &factor) &&
			add_index(w, n->arg[other], factor, l);
	case IN_REAL:
	case IN_DIV:
	case IN_MOD:
	case IN_CLAMP:
	case IN_POS:
	case IN_READ:
	case IN_CALL:
	case IN_WHERE:
	case IN_ELSE:
	case IN_INSIDE:
	case IN_CAST:
	case IN_STOP:
		return false;
	}
	return false;
}

static bool is_within(const walk *w, const line *l, int64_t n)
{
	int64_t lo = l->at, hi = l->at;

	for (int32_t k = 0; k < l->n; k++) {
		int64_t e = w->inst->letter[l->term[k].letter].extent;
		int64_t far = e > 0 ? l->term[k].by * (e - 1) : 0;

		lo += far < 0 ? far : 0;
		hi += far > 0 ? far : 0;
	}
	return lo >= 0 && hi < n;
}

/* Of a read whose index are these nodes. */
static void straighten(arena *a, const walk *w, step *s, int32_t n,
	const in_node *const *index)
{
	const ir_type *t = s->type;
	struct step_term *term;
	line all = {0};
	int64_t by = 1;

	for (int32_t d = n - 1; d >= 0; d--) {
		int64_t extent = s->flat ? shape_numel(t->shape, t->rank)
					 : t->shape[d];
		line one = {0};

		if (!add_index(w, index[d], 1, &one) ||
			!is_within(w, &one, extent) ||
			!add_index(w, index[d], by, &all))
			return;
		by *= extent;
	}
	s->is_straight = true;
	s->at = all.at;
	s->n_terms = all.n;
	s->term = term = arena_array(a, struct step_term, all.n + 1);
	memcpy(term, all.term, (size_t)all.n * sizeof *term);
}

/* ---- preparing ---- */

static const step *prepare(arena *a, const walk *w, const in_node *n);

static const step *read_of(arena *a, const walk *w, const step *base,
	int32_t tensor, int32_t n, const in_node *const *index)
{
	step *s = arena_make(a, step);
	const step **list = arena_array(a, const step *, n + 1);

	*s = *base;
	s->kind = IN_READ;
	s->eval = eval_read;
	s->tensor = tensor;
	s->type = &w->inst->tensor[tensor].type;
	s->n_index = n;
	s->index = list;
	for (int32_t i = 0; i < n; i++)
		list[i] = prepare(a, w, index[i]);
	straighten(a, w, s, n, index);
	return s;
}

static step_fn *call_of(const step *s)
{
	int32_t n = s->row->n_args;

	if (!dtype_is_float(s->dtype) || s->row->g != NULL ||
		strchr(s->row->sig, 'B') != NULL)
		return eval_call;
	for (int32_t i = 0; i < n; i++)
		if (!dtype_is_float(s->arg[i]->dtype))
			return eval_call;
	return s->dtype == TN_F64 ? eval_call_f64 : eval_call_f32;
}

static step_fn *const evals[] = {
	[IN_INT] = eval_const,
	[IN_REAL] = eval_const,
	[IN_LETTER] = eval_letter,
	[IN_ADD] = eval_add_sub_mul,
	[IN_SUB] = eval_add_sub_mul,
	[IN_MUL] = eval_add_sub_mul,
	[IN_DIV] = eval_divide,
	[IN_MOD] = eval_divide,
	[IN_CLAMP] = eval_clamp,
	[IN_POS] = eval_pos,
	[IN_READ] = eval_read,
	[IN_CALL] = eval_call,
	[IN_WHERE] = eval_where,
	[IN_ELSE] = eval_else,
	[IN_INSIDE] = eval_inside,
	[IN_CAST] = eval_cast,
	[IN_STOP] = eval_stop,
};

static const step *prepare(arena *a, const walk *w, const in_node *n)
{
	step *s;

	if (n == NULL)
		return NULL;
	s = arena_make(a, step);
	*s = (step){.eval = evals[n->kind], .kind = n->kind,
		.dtype = n->dtype, .i = n->i, .fn = n->fn, .flat = n->flat,
		.lo = n->lo, .hi = n->hi};
	if (n->kind == IN_READ)
		return read_of(a, w, s, n->tensor, n->n_index, n->index);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		s->arg[i] = prepare(a, w, n->arg[i]);
	if (n->kind == IN_INT)
		s->c = from_int(n->dtype, n->i);
	if (n->kind == IN_REAL)
		s->c.f = ir_round(ir_wide(n->dtype), n->f);
	if (n->kind == IN_CALL) {
		s->row = ir_scalar_at(n->fn);
		s->eval = call_of(s);
	}
	return s;
}

void walk_prepare(arena *a, walk *w)
{
	const in_eqn *q = w->eqn;
	const step none = {.dtype = TN_I64};

	for (int32_t i = 0; i < q->n_letters; i++)
		if (w->inst->letter[q->letters[i]].extent == 0)
			return; /* no iterations: its index may be invalid */
	for (int32_t k = 0; k < ir_n_bodies(q); k++)
		w->body[k] = prepare(a, w, q->body[k]);
	w->left = read_of(a, w, &none, q->out[0],
		w->inst->tensor[q->out[0]].type.rank, q->left);
}
