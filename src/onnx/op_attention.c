/*
 * op_attention.c: attention as an operator.
 *
 *     Attention(q, k, v)              attention_grouped(q, k, v)
 *     Attention(q, k, v, mask), softcap, windows, products as outputs
 *         s = softcap(scale * q k');  softmax of s + bias where allowed;  p v
 *     FlexAttention(q, k, v){score_mod, prob_mod}
 *         s = score_mod(scale * q k');  prob_mod(softmax of s) v
 *
 * All of it is computed in f32 (f64 where the inputs or the softmax are), and
 * rounded once.
 */
#include "onnx/attention.h"
#include "onnx/ops.h"

#include <math.h>

/* ---- attention ---- */

int32_t attention_heads(node *d, int32_t x, int64_t heads)
{
	const int64_t *e = on_ty(d, x)->shape;

	if (heads < 1 || e[2] % heads != 0)
		on_fail(d, "onnx.shape", "%lld elements of a position cannot be "
			"divided into %lld heads", (long long)e[2],
			(long long)heads);
	return on_move_axis(d, on_reshape(d, x, LIST(d, e[0], e[1], heads,
						       e[2] / heads)),
		2, 1);
}

static void find_heads(struct attention *a)
{
	node *d = a->d;
	int64_t n_q = on_int(d, "q_num_heads", 0);
	int64_t n_k = on_int(d, "kv_num_heads", 0);
	int32_t rank = on_rank_of(d, a->q);

	if ((rank != 3 && rank != 4) || on_rank_of(d, a->k) != rank ||
		on_rank_of(d, a->v) != rank)
		on_fail(d, "onnx.shape", "query, key and value must have 3 axes "
			"each, or 4; they have %d, %d and %d", (int)rank,
			(int)on_rank_of(d, a->k), (int)on_rank_of(d, a->v));
	a->flat = rank == 3;
	if (!a->flat)
		return;
	a->q = attention_heads(d, a->q, n_q);
	a->k = attention_heads(d, a->k, n_k);
	a->v = attention_heads(d, a->v, n_k);
}

static int32_t behind_past(node *d, int32_t i, int32_t x)
{
	int32_t past = on_in(d, i);

	if (on_rank_of(d, past) != 4)
		on_fail(d, "onnx.shape", "input %d must have 4 axes, and has %d",
			(int)i, (int)on_rank_of(d, past));
	return on_concat(d, 2, (int32_t[]){past, x}, 2);
}

void attention_check(struct attention *a)
{
	node *d = a->d;
	const int64_t *q = on_ty(d, a->q)->shape, *k = on_ty(d, a->k)->shape;
	const int64_t *v = on_ty(d, a->v)->shape;

	a->batch = q[0];
	a->heads = q[1];
	a->n_q = q[2];
	a->n_k = k[2];
	if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] ||
		k[3] != q[3] || k[1] < 1 || q[1] < 1 || q[1] % k[1] != 0)
		on_fail(d, "onnx.shape", "query [%lld,%lld,%lld,%lld], key "
			"[%lld,%lld,%lld,%lld] and value [%lld,%lld,%lld,%lld] "
			"(batch, heads, positions, size) do not fit: the heads "
			"of the query must be a multiple of those of key and "
			"value",
			(long long)q[0], (long long)q[1], (long long)q[2],
			(long long)q[3], (long long)k[0], (long long)k[1],
			(long long)k[2], (long long)k[3], (long long)v[0],
			(long long)v[1], (long long)v[2], (long long)v[3]);
	a->groups = q[1] / k[1];
}

void attention_allow(struct attention *a, int32_t c)
{
	a->allowed = a->allowed < 0
		? c : row(a->d, "and", A(a->allowed, c));
}

int32_t attention_positions(node *d, int64_t n, bool down)
{
	return rowa(d, "iota", NO_ARGS,
		INTS("shape", down ? LIST(d, n, 1) : LIST(d, n)),
		INT("axis", 0), DTYPE("dtype", TN_I64));
}

void attention_near(struct attention *a, int32_t offset)
{
	node *d = a->d;
	int32_t i = row(d, "add", A(attention_positions(d, a->n_q, true), offset));
	int32_t j =  attention_positions(d, a->n_k, false);
	int32_t one;

	if (a->causal)
		attention_allow(a, row(d, "le", A(j, i)));
	if (a->left >= 0) {
		one = on_scalar(d, TN_I64, (double)a->left);
		attention_allow(a, row(d, "le", A(row(d, "sub", A(i, j)), one)));
	}
	if (a->right >= 0) {
		one = on_scalar(d, TN_I64, (double)a->right);
		attention_allow(a, row(d, "le", A(row(d, "sub", A(j, i)), one)));
	}
}

/* Keys behind the last one that counts, given for each of the batch. */
static int32_t allow_counted(struct attention *a)
{
	node *d = a->d;
	int32_t n = on_cast_to(d, on_in(d, 6), TN_I64);

	if (on_rank_of(d, n) != 1 || on_extent(d, n, 0) != a->batch)
		on_fail(d, "onnx.shape", "nonpad_kv_seqlen must have %lld elements",
			(long long)a->batch);
	if (a->past > 0 || on_has(d, 4))
		on_fail(d, "onnx.input", "nonpad_kv_seqlen and past keys exclude "
			"each other");
	n = on_reshape(d, n, LIST(d, a->batch, 1, 1, 1));
	attention_allow(a, row(d, "lt", A(attention_positions(d, a->n_k, false), n)));
	return row(d, "sub", A(n, on_scalar(d, TN_I64, (double)a->n_q)));
}

/* The mask: bools select, numbers are added; keys behind its end are not seen. */
static void take_mask(struct attention *a)
{
	node *d = a->d;
	int32_t m = on_in(d, 3), r = on_rank_of(d, m);
	int64_t short_of = a->n_k - (r > 0 ? on_extent(d, m, r - 1) : a->n_k);
	bool is_bool = on_dt(d, m) == TN_BOOL;

	if (r > 4)
		on_fail(d, "onnx.shape", "the mask has %d axes, more than 4",
			(int)r);
	if (!is_bool)
		m = on_cast_to(d, m, a->t);
	if (r > 0 && short_of > 0 && on_extent(d, m, r - 1) != 1) {
		list lo = on_list_new(d, r, 0), hi = on_list_new(d, r, 0);

		hi.at[r - 1] = short_of;
		m = rowa(d, "pad", A(m), INTS("lo", lo), INTS("hi", hi),
			REAL("value", is_bool ? 0 : -INFINITY));
	}
	if (is_bool) {
		attention_allow(a, m);
		return;
	}
	a->bias = m;
	/* a sum with -inf is nothing, whatever the product is */
	attention_allow(a, row(d, "gt", A(m, on_scalar(d, a->t, -INFINITY))));
}

static void find_bias(struct attention *a)
{
	node *d = a->d;
	int32_t offset = on_scalar(d, TN_I64, (double)a->past);

	a->allowed = a->bias = -1;
	if (on_has(d, 3))
		take_mask(a);
	if (on_has(d, 6))
		offset = allow_counted(a);
	attention_near(a, offset);
}

/* [batch, heads, n, size] in the dtype of the computation; of keys and values an
 * axis for the heads of queries that share them */
static int32_t grouped(struct attention *a, int32_t x, bool query)
{
	node *d = a->d;
	const int64_t *e;

	x = on_cast_to(d, x, a->t);
	e = on_ty(d, x)->shape;
	if (a->groups == 1)
		return x;
	return on_reshape(d, x, query
		? LIST(d, e[0], e[1] / a->groups, a->groups, e[2], e[3])
		: LIST(d, e[0], e[1], 1, e[2], e[3]));
}

static int32_t of_heads(struct attention *a, int32_t x)
{
	node *d = a->d;
	int32_t r = on_rank_of(d, x);

	return a->groups == 1 ? x
		: on_reshape(d, x, LIST(d, a->batch, a->heads,
					    on_extent(d, x, r - 2),
					    on_extent(d, x, r - 1)));
}

static int32_t times(node *d, int32_t x, double by)
{
	return row(d, "mul", A(x, on_scalar(d, on_dt(d, x), by)));
}

/* Another key of each head, of which only the product counts. */
static int32_t with_sink(struct attention *a, int32_t s)
{
	node *d = a->d;
	list one = LIST(d, a->batch, a->heads, a->n_q, 1);
	int32_t sink = rowa(d, "broadcast_to", A(a->sink), INTS("shape", one));

	if (a->allowed >= 0)
		a->allowed = on_concat(d, 2, (int32_t[]){a->allowed,
				on_filled(d, TN_BOOL, one, 1)}, 3);
	return on_concat(d, 2, (int32_t[]){s, on_cast_to(d, sink, a->t)}, 3);
}

/* The weights of all keys. */
static int32_t weights_of(struct attention *a, int32_t s)
{
	node *d = a->d;
	list shape = on_shape_of(d, s);
	int32_t p;

	if (a->allowed >= 0)
		a->allowed = rowa(d, "broadcast_to", A(a->allowed),
			INTS("shape", shape));
	if (a->sink >= 0)
		s = with_sink(a, s);
	p = a->allowed >= 0
		? rowa(d, "masked_softmax", A(s, a->allowed), INT("axis", -1))
		: rowa(d, "softmax", A(s), INT("axis", -1));
	return a->sink >= 0 ? on_narrow(d, p, 3, 0, a->n_k) : p;
}

int32_t attention_steps(struct attention *a, int64_t mode, int32_t *products)
{
	node *d = a->d;
	tn_dtype out = on_dt(d, a->q);
	int32_t k = grouped(a, a->k, false), r = on_rank_of(d, k), s, p;
	int32_t forbidden = on_scalar(d, a->t, -INFINITY), shown;

	s = row(d, "matmul", A(grouped(a, a->q, true),
				 on_move_axis(d, k, r - 1, r - 2)));
	s = shown = times(d, of_heads(a, s), a->scale);
	if (a->softcap > 0)
		s = times(d, row(d, "tanh", A(times(d, s, 1 / a->softcap))),
			a->softcap);
	if (mode == 1)
		shown = s;
	if (a->bias >= 0)
		s = row(d, "add", A(s, a->bias));
	p = weights_of(a, s);
	if (a->allowed >= 0 && a->sink < 0)
		s = row(d, "where", A(a->allowed, s, forbidden));
	if (mode >= 2)
		shown = mode == 2 ? s : p;
	*products = on_cast_to(d, shown, out);
	if (a->groups > 1)
		p = on_reshape(d, p, LIST(d, a->batch, a->heads / a->groups,
					     a->groups, a->n_q, a->n_k));
	return of_heads(a, row(d, "matmul", A(p, grouped(a, a->v, false))));
}

int32_t attention_at_once(struct attention *a)
{
	node *d = a->d;

	return rowa(d, "attention_grouped",
		A(on_cast_to(d, a->q, a->t), on_cast_to(d, a->k, a->t),
			on_cast_to(d, a->v, a->t)),
		INT("groups", a->groups), INT("causal", a->causal),
		INT("shift", a->past), REAL("scale", a->scale));
}

int32_t attention_flat(struct attention *a, int32_t o)
{
	node *d = a->d;

	return on_reshape(d, on_move_axis(d, o, 1, 2),
		LIST(d, a->batch, a->n_q, a->heads * on_extent(d, o, 3)));
}

static void find_options(struct attention *a)
{
	node *d = a->d;
	tn_dtype t = on_dt(d, a->q), softmax = t;
	int64_t precision = on_int(d, "softmax_precision", 0);

	if (precision != 0)
		softmax = on_elem_dtype(d, precision);
	a->t = t == TN_F64 || softmax == TN_F64 ? TN_F64 : TN_F32;
	a->causal = on_int(d, "is_causal", 0) != 0;
	a->softcap = on_real(d, "softcap", 0);
	a->left = on_int(d, "left_window_size", -1);
	a->right = on_int(d, "right_window_size", -1);
	if (a->left < -1 || a->right < -1)
		on_fail(d, "onnx.attr", "the window reaches from %lld to %lld: "
			"accepted are -1 (no end), 0 and more",
			(long long)a->left, (long long)a->right);
}

void onnx_attention(node *d)
{
	struct attention a = {.d = d, .q = on_in(d, 0), .k = on_in(d, 1),
		.v = on_in(d, 2), .sink = -1};
	tn_dtype out = on_dt(d, a.q);
	int64_t size, mode;
	int32_t o, products = -1;

	find_options(&a);
	find_heads(&a);
	if (on_has(d, 4) != on_has(d, 5))
		on_fail(d, "onnx.input", "past keys and past values belong "
			"together: one of them is missing");
	if (on_has(d, 4)) {
		a.k = behind_past(d, 4, a.k);
		a.v = behind_past(d, 5, a.v);
		a.past = on_extent(d, on_in(d, 4), 2);
	}
	attention_check(&a);
	size = on_extent(d, a.q, 3);
	a.scale = on_real(d, "scale", 1 / sqrt(size > 0 ? (double)size : 1));
	mode = on_bound(d, "qk_matmul_output_mode",
		on_int(d, "qk_matmul_output_mode", 0), 0, 3);
	find_bias(&a);
	if (on_wants(d, 3) || a.softcap > 0 || a.bias >= 0 || on_has(d, 3) ||
		on_has(d, 6) || a.left >= 0 || a.right >= 0)
		o = attention_steps(&a, mode, &products);
	else
		o = attention_at_once(&a);
	o = on_cast_to(d, o, out);
	on_set(d, 0, a.flat ? attention_flat(&a, o) : o);
	if (products >= 0)
		on_set(d, 3, products);
	on_set(d, 1, a.k);
	on_set(d, 2, a.v);
}

/* ---- attention with graphs inside ---- */

/* The graph of an attribute on x; without the attribute: x. */
static int32_t changed(node *d, const char *name, int32_t x)
{
	val in = {.kind = VAL_TENSOR, .v = x,
		.elem = onnx_dtype_elem(on_dt(d, x))}, out;
	const onnx_graph *g;

	if (!on_has_attr(d, name))
		return x;
	g = on_graph(d, name);
	if (g->out.n != 1)
		on_fail(d, "onnx.graph", "%s has %d outputs, but must have one",
			name, (int)g->out.n);
	d->x->run_graph(d, g, 1, &in, &out);
	if (out.kind != VAL_TENSOR || out.elem != in.elem ||
		on_rank_of(d, out.v) != 4 ||
		memcmp(on_ty(d, out.v)->shape, on_ty(d, x)->shape,
			4 * sizeof(int64_t)) != 0)
		on_fail(d, "onnx.graph", "what %s makes must have the shape and "
			"element type of what it gets", name);
	return out.v;
}

void onnx_flex_attention(node *d)
{
	struct attention a = {.d = d, .q = on_in(d, 0), .k = on_in(d, 1),
		.v = on_in(d, 2), .sink = -1};
	tn_dtype out = on_dt(d, a.v), softmax;
	int64_t precision = on_int(d, "softmax_precision", 0), size;
	int32_t s, k, r;

	if (on_rank_of(d, a.q) != 4)
		on_fail(d, "onnx.shape", "query, key and value must have 4 axes "
			"each; the query has %d", (int)on_rank_of(d, a.q));
	find_heads(&a);
	attention_check(&a);
	softmax = on_dt(d, a.q) == TN_F64 ? TN_F64 : TN_F32;
	if (precision != 0)
		softmax = on_elem_dtype(d, precision);
	if (!dtype_is_float(softmax))
		on_fail(d, "onnx.attr", "softmax_precision is %s; accepted are "
			"types of floats", dtype_name(softmax));
	a.t = on_dt(d, a.q) == TN_F64 || softmax == TN_F64 ? TN_F64 : TN_F32;
	size = on_extent(d, a.q, 3);
	a.scale = on_real(d, "scale", 1 / sqrt(size > 0 ? (double)size : 1));
	k = grouped(&a, a.k, false);
	r = on_rank_of(d, k);
	s = row(d, "matmul", A(grouped(&a, a.q, true),
				 on_move_axis(d, k, r - 1, r - 2)));
	s = on_cast_to(d, times(d, of_heads(&a, s), a.scale), softmax);
	s = rowa(d, "softmax", A(changed(d, "score_mod", s)), INT("axis", -1));
	s = on_cast_to(d, changed(d, "prob_mod", s), a.t);
	if (a.groups > 1)
		s = on_reshape(d, s, LIST(d, a.batch, a.heads / a.groups,
					     a.groups, a.n_q, a.n_k));
	s = of_heads(&a, row(d, "matmul", A(s, grouped(&a, a.v, false))));
	on_set(d, 0, on_cast_to(d, s, out));
}
