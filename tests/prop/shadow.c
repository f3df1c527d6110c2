/*
 * shadow.c: the interpreter again, with a bound for what rounding may do.
 *
 * Every element is a pair (v, e): v as the interpreter computes it, bit for
 * bit (which is checked), and e such that right compiled code is within e of
 * v; e = INFINITY: it may be anything. How e comes about:
 *
 *   - moves, integers, comparisons and one IEEE operation (+ - * / sqrt) of
 *     exact arguments are exact: e = 0, the same bits are demanded. (Generated
 *     code is compiled without contraction.)
 *   - a function that is computed otherwise (flops of its row > 4) is off by
 *     up to 5 units in the last place: 4 that target/c/ promises, 1 for v.
 *   - a function of inexact arguments is evaluated at places spread over their
 *     intervals; e is 1.25 times the largest deviation. So a step (floor, a
 *     comparison, a rounding to f16) costs nothing unless it lies within the
 *     interval, and then its whole height.
 *   - where an argument may be anything, the result may, unless no value of it
 *     makes a difference.
 *   - a weight of a row that is rounded to two bytes, or to tf32, may be so before it is
 *     scaled to the row's maximum: one unit in the last place of these.
 *   - sums, products and statistics: reduce.c.
 *
 * Programs on exact data therefore have e = 0 nearly everywhere.
 */
#include "prop.h"

#include <math.h>
#include <string.h>

enum { MAX_SAMPLES = 16 };

static tn_dtype wide(tn_dtype t)
{
	return ir_wide(t);
}

double dtype_ulp(tn_dtype t, double v)
{
	int32_t digits = t == TN_F64 ? 52 : 23, least = t == TN_F64 ? -1022 : -126;
	int32_t k;

	if (!isfinite(v))
		return 0;
	k = v == 0 ? least : ilogb(v);
	return ldexp(1, (k > least ? k : least) - digits);
}

shadow shadow_wild(shadow x)
{
	x.e = INFINITY;
	return x;
}

static bool same(tn_dtype t, ir_number x, ir_number y)
{
	if (!dtype_is_float(t))
		return x.i == y.i;
	return x.f == y.f || (isnan(x.f) && isnan(y.f));
}

/* How far apart: INFINITY where no distance can be told. */
static double distance(tn_dtype t, ir_number x, ir_number y)
{
	double d;

	if (same(t, x, y))
		return 0;
	if (t == TN_U64)
		return fabs((double)(uint64_t)x.i - (double)(uint64_t)y.i);
	if (!dtype_is_float(t))
		return fabs((double)x.i - (double)y.i);
	d = fabs(x.f - y.f);
	return isnan(d) ? INFINITY : d;
}

shadow shadow_hull(tn_dtype t, shadow x, shadow y)
{
	double e = distance(t, x.v, y.v) + y.e;

	if (e > x.e)
		x.e = e;
	return x;
}

/* ---- functions ---- */

typedef struct function {
	int32_t n;
	tn_dtype arg[IR_MAX_ARGS], result;
	int32_t fn;	/* scalar function; -1: cast */
	bool rounds;	/* results are rounded to their dtype */
} function;

static ir_number apply(const function *f, const ir_number *x)
{
	ir_number r;

	if (f->fn < 0)
		return ir_cast(f->result, f->arg[0], x[0]);
	r = ir_scalar_eval(f->fn, f->arg[f->n - 1], x);
	if (!f->rounds)
		return r;
	if (dtype_is_float(f->result))
		r.f = ir_round(wide(f->result), r.f);
	else
		r.i = ir_wrap(wide(f->result), r.i);
	return r;
}

/*
 * The ends of an integer type: an interval of width 4 about an i2 is not a point.
 * u64 is stored in an int64_t, whose ends it has; no double is nearer to 2^63 - 1.
 */
static double least_of(tn_dtype t)
{
	return dtype_is_unsigned(t) && dtype_bits(t) < 64
		? 0
		: -ldexp(1, dtype_bits(t) - 1);
}

static double most_of(tn_dtype t)
{
	int32_t bits = dtype_bits(t) - !dtype_is_unsigned(t);

	return bits < 63 ? ldexp(1, bits) - 1 : 0x1.fffffffffffffp62;
}

/*
 * Places in the interval of x, the middle first. A function of one argument is
 * looked at more closely: between few places a sine may go up and down.
 */
static int32_t samples(tn_dtype t, shadow x, bool closely, ir_number *at)
{
	static const double spread[] = {-1, 1, 0.61, -0.43, 0.83, -0.74, 0.37,
		-0.21, 0.13, -0.92};
	static const double wild[] = {NAN, -INFINITY, -1, 0, 1, INFINITY};
	int32_t n = 1;

	at[0] = x.v;
	if (x.e == 0)
		return 1;
	if (t == TN_BOOL) {
		at[n++].i = !x.v.i;
	} else if (isinf(x.e)) {
		for (int32_t i = 0; i < 6; i++)
			if (dtype_is_float(t))
				at[n++].f = wild[i];
			else
				at[n++].i = ir_wrap(t,
					(int64_t)(UINT64_MAX / 2 * (uint64_t)(i % 2) +
						(uint64_t)i));
	} else if (dtype_is_float(t)) {
		for (int32_t i = 0; i < (closely ? 10 : 4); i++)
			at[n++].f = x.v.f + spread[i] * x.e;
		if (fabs(x.v.f) <= x.e) /* 1 / x: the pole itself */
			at[n++].f = 0;
	} else {
		at[n++].i = (int64_t)fmax((double)x.v.i - x.e, least_of(t));
		at[n++].i = (int64_t)fmin((double)x.v.i + x.e, most_of(t));
	}
	return n;
}

/* Ties matter to comparisons: the other's value, if it may be this one's. */
static int32_t add_ties(const function *f, int32_t i, const shadow *x,
	ir_number *at, int32_t n)
{
	for (int32_t k = 0; k < f->n; k++)
		if (k != i && f->arg[k] == f->arg[i] && x[i].e > 0 &&
			f->arg[i] != TN_BOOL &&
			distance(f->arg[i], x[i].v, x[k].v) <= x[i].e &&
			n < MAX_SAMPLES)
			at[n++] = x[k].v;
	return n;
}

/* The largest deviation of f from v over the intervals of its arguments. */
static double deviation(const function *f, const shadow *x, ir_number v)
{
	ir_number at[IR_MAX_ARGS][MAX_SAMPLES];
	int32_t n[IR_MAX_ARGS] = {1, 1, 1};
	double most = 0;
	bool wild = false;

	for (int32_t i = 0; i < f->n; i++) {
		n[i] = samples(f->arg[i], x[i], f->n == 1, at[i]);
		n[i] = add_ties(f, i, x, at[i], n[i]);
		wild = wild || isinf(x[i].e);
	}
	for (int32_t k = 1; k < n[0] * n[1] * n[2]; k++) {
		ir_number arg[IR_MAX_ARGS] = {{0}};
		int32_t which[IR_MAX_ARGS] = {k % n[0], k / n[0] % n[1],
			k / n[0] / n[1]};
		double d;

		for (int32_t i = 0; i < f->n; i++)
			arg[i] = at[i][which[i]];
		d = distance(f->result, apply(f, arg), v);
		if (d > most)
			most = d;
	}
	return wild && most > 0 ? INFINITY : 1.25 * most;
}

/* Units in the last place by which right code may differ. */
static double units(const function *f)
{
	const ir_scalar *s;

	if (f->fn < 0 || !dtype_is_float(f->result))
		return 0;
	s = ir_scalar_at(f->fn);
	if (strchr(s->laws, '^') != NULL) /* exact for integers only */
		return 5;
	return s->g != NULL || s->flops <= 4 ? 0 : 5;
}

static shadow evaluate(const function *f, const shadow *x)
{
	ir_number arg[IR_MAX_ARGS] = {{0}};
	bool exact = true;
	double ulps = units(f);
	shadow r;

	for (int32_t i = 0; i < f->n; i++) {
		arg[i] = x[i].v;
		exact = exact && x[i].e == 0;
	}
	r.v = apply(f, arg);
	r.e = exact ? 0 : deviation(f, x, r.v);
	if (dtype_is_float(f->result)) {
		if (r.e > 0 && (f->result == TN_F64 || !f->rounds))
			ulps += 1; /* the samples themselves are rounded */
		if (ulps > 0 && isfinite(r.v.f) && !isinf(r.e))
			r.e += ulps * dtype_ulp(wide(f->result),
				fabs(r.v.f) + r.e);
	} else if (r.e > 0) {
		r.e = f->result == TN_BOOL ? 1
			: r.e < 0x1p40	   ? ceil(r.e)
					   : INFINITY;
	}
	return r;
}

/* The step between numbers of 10 bits of fraction near v. */
static double tf32_ulp(double v)
{
	int32_t k = v == 0 ? -126 : ilogb(v);

	return ldexp(1, (k > -126 ? k : -126) - 10);
}

shadow shadow_call(int32_t fn, tn_dtype arg, tn_dtype result, bool rounds,
	const shadow *x)
{
	const ir_scalar *s = ir_scalar_at(fn);
	function f = {.n = s->n_args, .result = result, .fn = fn,
		.rounds = rounds};

	shadow r;

	for (int32_t i = 0; i < f.n; i++)
		f.arg[i] = s->sig[2 * i] == 'B' ? TN_BOOL : arg;
	r = evaluate(&f, x);
	r.weight = s->laws[0] == '+' && x[0].v.f - x[0].e <= 0;
	if (s->laws[0] == '~' && x[0].weight && isfinite(r.v.f) && !isinf(r.e)) {
		r.weight = true;
		r.e += tf32_ulp(fabs(r.v.f) + r.e);
	}
	return r;
}

/* The step between numbers of two bytes near v. */
static double short_ulp(tn_dtype t, double v)
{
	int32_t digits = t == TN_F16 ? 10 : 7, least = t == TN_F16 ? -14 : -126;
	int32_t k = v == 0 ? least : ilogb(v);

	return ldexp(1, (k > least ? k : least) - digits);
}

shadow shadow_cast(tn_dtype to, tn_dtype from, shadow x)
{
	function f = {.n = 1, .arg = {from}, .result = to, .fn = -1};
	shadow r = evaluate(&f, &x);

	r.weight = x.weight;
	if (x.weight && (to == TN_F16 || to == TN_BF16) && isfinite(r.v.f) && !isinf(r.e))
		r.e += short_ulp(to, fabs(r.v.f) + r.e);
	return r;
}

/* ---- expressions of instances: as in interp/eval.c ---- */

static shadow exact_int(tn_dtype t, int64_t v)
{
	shadow r = {.e = 0};

	if (dtype_is_float(t))
		r.v.f = ir_round(wide(t), (double)v);
	else
		r.v.i = ir_wrap(wide(t), v);
	return r;
}

static shadow exact_real(tn_dtype t, double v)
{
	return (shadow){.v.f = ir_round(wide(t), v)};
}

int32_t shadow_place(walk *w, const ir_type *t, const in_node *const *index,
	int64_t *place)
{
	int32_t verdict = 0;

	*place = 0;
	for (int32_t d = 0; d < t->rank; d++) {
		shadow i = shadow_eval(w, index[d]);

		if (i.e > 0) {
			*w->unsure = true;
			verdict = verdict == 1 ? 1 : -1;
		} else if (i.v.i < 0 || i.v.i >= t->shape[d]) {
			verdict = 1;
		}
		*place = *place * t->shape[d] + i.v.i;
	}
	return verdict;
}

static int32_t find(walk *w, const in_node *n, int64_t *place)
{
	const ir_type *t = &w->inst->tensor[n->tensor].type;
	shadow i;

	if (!n->flat)
		return shadow_place(w, t, n->index, place);
	i = shadow_eval(w, n->index[0]);
	*place = i.v.i;
	return i.e > 0 ? -1 : i.v.i < 0 || i.v.i >= type_numel(t);
}

/* In a sum of products of bf16 a subnormal factor may count as 0: docs/contractions.md. */
static shadow as_factor(const walk *w, tn_dtype t, shadow x)
{
	if (t == TN_BF16 && w->eqn->monoid == IR_SUM && fabs(x.v.f) < 0x1p-126)
		x.e += fabs(x.v.f);
	return x;
}

static shadow read_element(walk *w, const in_node *n)
{
	int64_t place;
	int32_t where = find(w, n, &place);

	if (where != 0) {
		if (where == 1 && w->maybe == 0)
			env_bug(w->e, "shadow.read", "a read is outside");
		return (shadow){.e = INFINITY};
	}
	return as_factor(w, w->inst->tensor[n->tensor].type.dtype,
		w->tensor[n->tensor][place]);
}

/* 0 all inside, 1 one is outside, -1 not known */
static int32_t all_inside(walk *w, const in_node *n)
{
	int32_t verdict = 0, v;
	int64_t place;

	if (n == NULL || n->kind == IN_ELSE || n->kind == IN_INSIDE)
		return 0;
	if (n->kind == IN_READ) {
		for (int32_t i = 0; i < n->n_index; i++) {
			v = all_inside(w, n->index[i]);
			if (v == 1)
				return 1;
			verdict = v != 0 ? v : verdict;
		}
		if (verdict != 0)
			return verdict;
		return find(w, n, &place);
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++) {
		v = all_inside(w, n->arg[i]);
		if (v == 1)
			return 1;
		verdict = v != 0 ? v : verdict;
	}
	return verdict;
}

static shadow either(walk *w, const in_node *n, int32_t taken, int32_t other)
{
	shadow x = shadow_eval(w, n->arg[taken]), y;

	w->maybe++;
	y = shadow_eval(w, n->arg[other]);
	w->maybe--;
	return shadow_hull(n->dtype, x, y);
}

static shadow arithmetic(walk *w, const in_node *n)
{
	shadow a = shadow_eval(w, n->arg[0]), b = shadow_eval(w, n->arg[1]);
	int64_t x = a.v.i, y = b.v.i, r = 0;
	bool bad = false;

	if (n->kind == IN_ADD)
		bad = __builtin_add_overflow(x, y, &r);
	else if (n->kind == IN_SUB)
		bad = __builtin_sub_overflow(x, y, &r);
	else if (n->kind == IN_MUL)
		bad = __builtin_mul_overflow(x, y, &r);
	else if (y <= 0)
		bad = true;
	else
		r = n->kind == IN_DIV ? floor_div(x, y) : floor_mod(x, y);
	if (bad || a.e > 0 || b.e > 0)
		return shadow_wild(exact_int(n->dtype, r));
	return exact_int(n->dtype, r);
}

static shadow clamp(walk *w, const in_node *n)
{
	shadow a = shadow_eval(w, n->arg[0]);
	int64_t v = a.v.i < n->i - 1 ? a.v.i : n->i - 1;
	shadow r = exact_int(n->dtype, v > 0 ? v : 0);

	return a.e > 0 && n->i > 1 ? shadow_wild(r) : r;
}

static shadow call(walk *w, const in_node *n)
{
	int32_t n_args = ir_scalar_at(n->fn)->n_args;
	shadow x[IR_MAX_ARGS] = {{.e = 0}};

	for (int32_t i = 0; i < n_args; i++)
		x[i] = shadow_eval(w, n->arg[i]);
	return shadow_call(n->fn, n->arg[n_args - 1]->dtype, n->dtype, true, x);
}

shadow shadow_eval(walk *w, const in_node *n)
{
	int64_t place;
	int32_t where;
	shadow c;

	switch (n->kind) {
	case IN_INT:
		return exact_int(n->dtype, n->i);
	case IN_REAL:
		return exact_real(n->dtype, n->f);
	case IN_LETTER:
		return exact_int(n->dtype, w->letter[n->i]);
	case IN_ADD:
	case IN_SUB:
	case IN_MUL:
	case IN_DIV:
	case IN_MOD:
		return arithmetic(w, n);
	case IN_CLAMP:
		return clamp(w, n);
	case IN_POS:
		return exact_int(n->dtype, w->pos);
	case IN_READ:
		return read_element(w, n);
	case IN_CALL:
		return call(w, n);
	case IN_WHERE:
		c = shadow_eval(w, n->arg[0]);
		if (c.e > 0)
			return either(w, n, c.v.i != 0 ? 1 : 2,
				c.v.i != 0 ? 2 : 1);
		return shadow_eval(w, n->arg[c.v.i != 0 ? 1 : 2]);
	case IN_ELSE:
		where = all_inside(w, n->arg[0]);
		if (where < 0)
			return shadow_wild((shadow){.e = 0});
		return shadow_eval(w, n->arg[where]);
	case IN_INSIDE:
		where = find(w, n->arg[0], &place);
		return (shadow){.v.i = where == 0, .e = where < 0 ? 1 : 0};
	case IN_CAST:
		return shadow_cast(n->dtype, n->arg[0]->dtype,
			shadow_eval(w, n->arg[0]));
	case IN_STOP:
		return shadow_eval(w, n->arg[0]);
	}
	env_bug(w->e, "shadow.eval", "unknown kind of node %d", (int)n->kind);
}

/* ---- equations, instances, programs ---- */

bool walk_first(walk *w)
{
	const in_eqn *q = w->eqn;

	for (int32_t i = 0; i < q->n_letters; i++) {
		int32_t l = q->letters[i];
		int64_t n = w->inst->letter[l].extent;

		if (n == 0)
			return false;
		w->letter[l] = q->is_scan && l == q->scan_letter &&
				q->scan_step < 0
			? n - 1
			: 0;
	}
	return true;
}

bool walk_next(walk *w)
{
	const in_eqn *q = w->eqn;

	for (int32_t i = q->n_letters - 1; i >= 0; i--) {
		int32_t l = q->letters[i];
		int64_t n = w->inst->letter[l].extent;
		bool down = q->is_scan && l == q->scan_letter &&
			q->scan_step < 0;

		w->letter[l] += down ? -1 : 1;
		if (w->letter[l] >= 0 && w->letter[l] < n)
			return true;
		w->letter[l] = down ? n - 1 : 0;
	}
	return false;
}

static void set(walk *w)
{
	const in_eqn *q = w->eqn;
	const ir_type *t = &w->inst->tensor[q->out[0]].type;

	if (!walk_first(w))
		return;
	do {
		if (shadow_place(w, t, q->left, &w->pos) == 0)
			w->tensor[q->out[0]][w->pos] = shadow_cast(t->dtype,
				q->body[0]->dtype, shadow_eval(w, q->body[0]));
	} while (walk_next(w));
}

static shadow load(tn_dtype t, const void *data, int64_t i)
{
	if (dtype_is_float(t))
		return (shadow){.v.f = dtype_load_f64(t, data, i)};
	return (shadow){.v.i = dtype_load_i64(t, data, i)};
}

static void store(tn_dtype t, void *data, int64_t i, shadow x)
{
	if (dtype_is_float(t))
		dtype_store_f64(t, data, i, x.v.f);
	else
		dtype_store_i64(t, data, i, x.v.i);
}

/*
 * Whole tensors in C: exact where all operands are, else anything. Which bits a
 * NaN has is not said, and a result of another dtype may show them: bit_cast.
 */
static void run_opaque(walk *w)
{
	const ir_inst *inst = w->inst;
	const void *in[IR_MAX_OPERANDS];
	void *out[IR_MAX_OPERANDS];
	ir_type type[2 * IR_MAX_OPERANDS];
	int32_t n_in = 0;
	double e = 0;
	tn_dtype made = inst->tensor[inst->result[0]].type.dtype;

	for (; n_in < inst->n_tensors && inst->tensor[n_in].operand >= 0;
		n_in++) {
		const ir_type *t = type + n_in;
		void *data;

		type[n_in] = inst->tensor[n_in].type;
		in[n_in] = data = arena_alloc(w->a, type_bytes(t) + 1, 1);
		for (int64_t i = 0; i < type_numel(t); i++) {
			store(t->dtype, data, i, w->tensor[n_in][i]);
			if (w->tensor[n_in][i].e > 0 ||
				(t->dtype != made && dtype_is_float(t->dtype) &&
					isnan(w->tensor[n_in][i].v.f)))
				e = INFINITY;
		}
	}
	for (int32_t k = 0; k < inst->n_results; k++) {
		type[n_in + k] = inst->tensor[inst->result[k]].type;
		out[k] = arena_alloc(w->a, type_bytes(&type[n_in + k]) + 1, 1);
	}
	inst->opaque->run(w->e, inst->opaque, type, in, type + n_in, out,
		inst->opaque_attr);
	for (int32_t k = 0; k < inst->n_results; k++)
		for (int64_t i = 0; i < type_numel(&type[n_in + k]); i++) {
			shadow *to = &w->tensor[inst->result[k]][i];

			*to = load(type[n_in + k].dtype, out[k], i);
			to->e = e;
		}
}

static void run_call(arena *a, const ir_call *c, shadow_run *r)
{
	walk w = {.a = a, .e = arena_env(a), .inst = c->inst,
		.unsure = &r->unsure};

	w.tensor = arena_array(a, shadow *, c->inst->n_tensors);
	w.letter = arena_array(a, int64_t, c->inst->n_letters + 1);
	for (int32_t i = 0; i < c->inst->n_tensors; i++) {
		const in_tensor *t = &c->inst->tensor[i];

		if (t->operand >= 0)
			w.tensor[i] = r->value[c->arg[t->operand]];
		else
			w.tensor[i] = arena_array(a, shadow,
				type_numel(&t->type) + 1);
		if (t->next_of >= 0) /* operands are the first tensors */
			memcpy(w.tensor[i], w.tensor[t->next_of],
				(size_t)type_numel(&t->type) * sizeof(shadow));
		if (t->result >= 0)
			r->value[c->result[t->result]] = w.tensor[i];
	}
	if (c->inst->opaque != NULL)
		run_opaque(&w);
	for (int32_t i = 0; i < c->inst->n_eqns; i++) {
		w.eqn = &c->inst->eqn[i];
		if (w.eqn->monoid == IR_SET)
			set(&w);
		else
			shadow_reduce(&w);
	}
}

/*
 * A call that no element of an output needs is not compiled, and may read
 * outside: t of which narrow(t, axis=0, start=0, count=0) is returned.
 */
static bool *needed_calls(arena *a, const ir_program *p)
{
	bool *value = arena_array(a, bool, p->value.n + 1);
	bool *call = arena_array(a, bool, p->call.n + 1);

	for (int32_t i = 0; i < p->output.n; i++)
		value[p->output.at[i]] = true;
	for (int32_t i = p->call.n - 1; i >= 0; i--) {
		const ir_call *c = &p->call.at[i];

		for (int32_t k = 0; k < c->n_results; k++)
			call[i] |= value[c->result[k]] &&
				type_numel(&p->value.at[c->result[k]].type) > 0;
		for (int32_t k = 0; k < c->n_args && call[i]; k++)
			value[c->arg[k]] = true;
	}
	return call;
}

void shadow_program(arena *a, const ir_program *p, const void *const *in,
	shadow_run *out)
{
	const bool *needed = needed_calls(a, p);

	*out = (shadow_run){.value = arena_array(a, shadow *, p->value.n + 1)};
	for (int32_t i = 0; i < p->input.n; i++) {
		const ir_type *t = &p->value.at[p->input.at[i]].type;
		shadow *to = arena_array(a, shadow, type_numel(t) + 1);

		for (int64_t k = 0; k < type_numel(t); k++)
			to[k] = load(t->dtype, in[i], k);
		out->value[p->input.at[i]] = to;
	}
	for (int32_t i = 0; i < p->call.n; i++)
		if (needed[i])
			run_call(a, &p->call.at[i], out);
}
