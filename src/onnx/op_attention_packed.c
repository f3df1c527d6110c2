/*
 * op_attention_packed.c: attention as optimisers write it, in com.microsoft:
 * projections, heads, masks and the keys of the past in one operator.
 *
 *     Attention(x, w, b, mask)   q, k, v = heads of x w + b, then attention
 *     GroupQueryAttention(..)    rotary positions, then new keys behind the past
 *
 * A mask forbids nothing: it adds mask_filter_value, -10000, so a query that may
 * see no key at all still has weights.
 */
#include "onnx/attention.h"
#include "onnx/fused.h"
#include "onnx/ops.h"
#include "onnx/quant.h"

#include <math.h>

/* Refuses a value of an attribute other than its default. */
static void only(const node *d, const char *name, int64_t v)
{
	on_bound(d, name, on_int(d, name, v), v, v);
}

static void find_scale(struct attention *a)
{
	node *d = a->d;
	int64_t size = on_extent(d, a->q, 3);

	a->t = on_dt(d, a->q) == TN_F64 ? TN_F64 : TN_F32;
	a->scale = on_real(d, "scale", 0);
	if (a->scale == 0)
		a->scale = 1 / sqrt(size > 0 ? (double)size : 1);
}

/* ---- masks ---- */

/* Keys from a start, or from 0, to an end: [ends], or [ends, starts]. */
static int32_t by_ends(struct attention *a, int32_t m)
{
	node *d = a->d;
	list shape = LIST(d, a->batch, 1, 1, 1);
	int32_t at = attention_positions(d, a->n_k, false), ends, starts;
	int64_t n = on_numel(d, m);

	m = on_cast_to(d, m, TN_I64);
	ends = on_reshape(d, on_narrow(d, m, 0, 0, a->batch), shape);
	ends = row(d, "lt", A(at, ends));
	if (n == a->batch)
		return ends;
	starts = on_narrow(d, m, 0, a->batch, a->batch);
	starts = row(d, "ge", A(at, on_reshape(d, starts, shape)));
	return row(d, "and", A(ends, starts));
}

/* Keys whose number is above 0: of the batch, of each query, or as a square of
 * which the queries are the last rows. */
static int32_t by_numbers(struct attention *a, int32_t m)
{
	node *d = a->d;
	int32_t r = on_rank_of(d, m);

	if (r == 4) {
		m = on_narrow(d, m, 2, a->past, a->n_q);
		m = on_narrow(d, m, 3, 0, a->n_k);
	} else {
		m = on_unsqueeze(d, m, 1);
		if (r == 2)
			m = on_unsqueeze(d, m, 1);
	}
	return row(d, "gt", A(m, on_scalar(d, on_dt(d, m), 0)));
}

/* Does input i have one of the shapes that a mask may have? */
static bool is_mask(const struct attention *a, int32_t m)
{
	node *d = a->d;
	int32_t r = on_rank_of(d, m);
	const int64_t *e = on_ty(d, m)->shape;

	if (r == 1)
		return e[0] == a->batch || e[0] == 2 * a->batch;
	if (r == 2)
		return e[0] == a->batch && e[1] == a->n_k;
	if (r == 3)
		return e[0] == a->batch && e[1] == a->n_q && e[2] == a->n_k;
	return r == 4 && e[0] == a->batch && e[1] == 1 &&
		e[2] >= a->past + a->n_q && e[3] >= a->n_k;
}

/* Numbers that are added to the products. */
static void add_bias(struct attention *a, int32_t b)
{
	a->bias = a->bias < 0 ? b : row(a->d, "add", A(a->bias, b));
}

static void take_masks(struct attention *a, int32_t mask, int32_t bias)
{
	node *d = a->d;
	double filter = on_real(d, "mask_filter_value", -10000);
	int32_t m;

	a->allowed = a->bias = -1;
	if (on_has(d, bias))
		add_bias(a, on_cast_to(d, on_in(d, bias), a->t));
	if (on_has(d, mask)) {
		m = on_in(d, mask);
		if (!is_mask(a, m))
			on_fail(d, "onnx.shape", "input %d, a mask, does not fit: "
				"accepted are [batch], [2 * batch], [batch, keys], "
				"[batch, queries, keys] and [batch, 1, most, most] "
				"with %lld, %lld queries and %lld keys",
				(int)mask, (long long)a->batch,
				(long long)a->n_q, (long long)a->n_k);
		m = on_rank_of(d, m) == 1 ? by_ends(a, m) : by_numbers(a, m);
		add_bias(a, row(d, "where", A(m, on_scalar(d, a->t, 0),
						 on_scalar(d, a->t, filter))));
	}
}

/* The result, [batch, queries, heads * size], and the products if asked for. */
static int32_t result(struct attention *a, int32_t *products)
{
	node *d = a->d;
	tn_dtype out = on_dt(d, a->q);
	int32_t o, unused;

	if (a->bias < 0 && a->allowed < 0 && a->sink < 0 && a->softcap == 0 &&
		a->left < 0 && products == NULL)
		o = attention_at_once(a);
	else
		o = attention_steps(a, 3, products != NULL ? products : &unused);
	return attention_flat(a, on_cast_to(d, o, out));
}

/* ---- Attention, QAttention ---- */

/* Columns of the projection, [batch, positions, ..], with heads. */
static int32_t columns(node *d, int32_t x, int64_t from, int64_t n)
{
	int64_t heads = on_int(d, "num_heads", 0);

	if (n < 0 || from + n > on_extent(d, x, 2))
		on_fail(d, "onnx.shape", "the projection has %lld columns, too "
			"few for queries, keys and values",
			(long long)on_extent(d, x, 2));
	return attention_heads(d, on_narrow(d, x, 2, from, n), heads);
}

/* x: what the projection makes; inputs and outputs by their numbers */
static void from_projection(node *d, int32_t x, int32_t mask, int32_t past,
	int32_t bias)
{
	struct attention a = {.d = d, .sink = -1, .left = -1, .right = -1};
	int32_t p, now[2];
	list sizes;
	int64_t third;

	if (on_rank_of(d, x) != 3)
		on_fail(d, "onnx.shape", "the input must have 3 axes");
	third = on_extent(d, x, 2) / 3;
	if (!on_list(d, "qkv_hidden_sizes", &sizes))
		sizes = LIST(d, third, third, third);
	if (sizes.n != 3)
		on_fail(d, "onnx.attr", "qkv_hidden_sizes has %d numbers, not 3",
			(int)sizes.n);
	for (int32_t i = 0; i < 3; i++)
		on_bound(d, "a size of qkv_hidden_sizes", sizes.at[i], 0,
			on_extent(d, x, 2));
	a.q = columns(d, x, 0, sizes.at[0]);
	a.k = columns(d, x, sizes.at[0], sizes.at[1]);
	a.v = columns(d, x, sizes.at[0] + sizes.at[1], sizes.at[2]);
	if (on_has(d, past)) {
		p = on_in(d, past);
		if (on_rank_of(d, p) != 5 || on_extent(d, p, 0) != 2)
			on_fail(d, "onnx.shape", "past must be [2, batch, "
				"heads, positions, size]");
		a.past = on_extent(d, p, 3);
		now[0] = rowa(d, "select", A(p), INT("axis", 0),
			INT("index", 0));
		now[1] = rowa(d, "select", A(p), INT("axis", 0),
			INT("index", 1));
		a.k = on_concat(d, 2, (int32_t[]){now[0], a.k}, 2);
		a.v = on_concat(d, 2, (int32_t[]){now[1], a.v}, 2);
	}
	attention_check(&a);
	find_scale(&a);
	only(d, "do_rotary", 0);
	only(d, "past_present_share_buffer", 0);
	on_ignore(d, "rotary_embedding_dim");
	a.causal = on_int(d, "unidirectional", 0) != 0;
	take_masks(&a, mask, bias);
	if (a.bias >= 0)
		attention_near(&a, on_scalar(d, TN_I64, (double)a.past));
	on_set(d, 0, result(&a, NULL));
	if (on_wants(d, 1))
		on_set(d, 1, on_stack(d, 2, (int32_t[]){a.k, a.v}, 0));
}

void onnx_attention_packed(node *d)
{
	int32_t x = on_product(d, on_in(d, 0), on_in(d, 1));

	if (on_has(d, 2))
		x = row(d, "add", A(x, on_in(d, 2)));
	from_projection(d, x, 3, 4, 5);
}

void onnx_qattention(node *d)
{
	int32_t x = on_product(d, quant_centred(d, 0, 6, TN_MAX_RANK),
		quant_centred(d, 1, 7, -1));

	x = quant_scaled(d, x, quant_scale(d, 3),
		quant_along(d, 4, on_in(d, 1), -1, on_rank_of(d, x)));
	x = row(d, "add", A(x, on_in(d, 2)));
	from_projection(d, x, 5, 8, d->n_in);
}

/* ---- MultiHeadAttention ---- */

/* Part k of [batch, positions, heads, n, size] as [batch, heads, positions, size] */
static int32_t of_packed(node *d, int32_t x, int64_t n, int64_t k)
{
	if (on_extent(d, x, 3) != n)
		on_fail(d, "onnx.shape", "packed heads hold %lld vectors, not "
			"%lld", (long long)on_extent(d, x, 3), (long long)n);
	return on_move_axis(d, on_drop_axis(d, on_narrow(d, x, 3, k, 1), 3), 2,
		1);
}

/* An operand and its part of the bias, with heads; what has them stays. */
static int32_t biased(node *d, int32_t x, int64_t *from)
{
	int64_t heads = on_int(d, "num_heads", 0), n;
	int32_t r = on_rank_of(d, x);

	if (r != 3 && r != 4)
		on_fail(d, "onnx.shape", "queries, keys and values must have 3, "
			"4 or 5 axes; one has %d", (int)r);
	n = r == 3 ? on_extent(d, x, 2)
		   : on_extent(d, x, 1) * on_extent(d, x, 3);
	if (on_has(d, 3) && r == 3) {
		int32_t b = on_in(d, 3);

		if (on_rank_of(d, b) != 1 || *from + n > on_numel(d, b))
			on_fail(d, "onnx.shape", "the bias must have one axis, "
				"with an element for each of queries, keys and "
				"values");
		x = row(d, "add", A(x, on_narrow(d, b, 0, *from, n)));
	}
	*from += n;
	return r == 3 ? attention_heads(d, x, heads) : x;
}

static void find_operands(struct attention *a)
{
	node *d = a->d;
	int32_t q = on_in(d, 0), k;
	int64_t from = 0;

	if (on_rank_of(d, q) == 5) {
		a->q = of_packed(d, q, 3, 0);
		a->k = of_packed(d, q, 3, 1);
		a->v = of_packed(d, q, 3, 2);
		if (on_has(d, 3))
			on_fail(d, "onnx.input", "packed heads have no bias");
		return;
	}
	k = on_in(d, 1);
	a->q = biased(d, q, &from);
	if (on_rank_of(d, k) == 5) {
		a->k = of_packed(d, k, 2, 0);
		a->v = of_packed(d, k, 2, 1);
		return;
	}
	a->k = biased(d, k, &from);
	a->v = biased(d, on_in(d, 2), &from);
}

static int32_t behind(node *d, int32_t i, int32_t x)
{
	return on_concat(d, 2, (int32_t[]){on_in(d, i), x}, 2);
}

void onnx_multi_head(node *d)
{
	struct attention a = {.d = d, .sink = -1, .left = -1, .right = -1};
	int32_t products = -1;

	find_operands(&a);
	if (on_has(d, 6) != on_has(d, 7))
		on_fail(d, "onnx.input", "past keys and past values belong "
			"together: one of them is missing");
	if (on_has(d, 6)) {
		a.past = on_rank_of(d, on_in(d, 6)) == 4
			? on_extent(d, on_in(d, 6), 2) : 0;
		a.k = behind(d, 6, a.k);
		a.v = behind(d, 7, a.v);
	}
	attention_check(&a);
	find_scale(&a);
	a.causal = on_int(d, "unidirectional", 0) != 0;
	take_masks(&a, 4, 5);
	if (a.bias >= 0 || on_wants(d, 3))
		attention_near(&a, on_scalar(d, TN_I64, (double)a.past));
	on_set(d, 0, result(&a, on_wants(d, 3) ? &products : NULL));
	on_set(d, 1, a.k);
	on_set(d, 2, a.v);
	if (products >= 0)
		on_set(d, 3, products);
}

/* ---- GroupQueryAttention ---- */

struct grouped {
	struct attention a;
	int64_t total; /* positions of past and new ones */
	int32_t first; /* [batch, 1, 1, 1]: where the new ones begin */
	bool fresh;    /* there is no past */
};

/* New rows behind those of the past, where `first` says, and zeros behind them. */
static int32_t appended(struct grouped *g, int32_t past, int32_t x)
{
	node *d = g->a.d;
	list shape = on_shape_of(d, x), lo = on_list_new(d, 4, 0);
	list hi = on_list_new(d, 4, 0);
	int64_t n = shape.at[2];
	int32_t at, before, inside, old = -1, most;

	if (g->fresh)
		return x;
	if (on_has(d, past)) {
		old = on_in(d, past);
		if (on_rank_of(d, old) != 4 || on_extent(d, old, 1) != shape.at[1] ||
			on_extent(d, old, 3) != shape.at[3])
			on_fail(d, "onnx.shape", "input %d must be [batch, "
				"%lld, positions, %lld]", (int)past,
				(long long)shape.at[1], (long long)shape.at[3]);
	}
	shape.at[2] = g->total;
	at = rowa(d, "iota", NO_ARGS, INTS("shape", LIST(d, g->total, 1)),
		INT("axis", 0), DTYPE("dtype", TN_I64));
	at = row(d, "sub", A(at, g->first)); /* [batch, 1, total, 1] */
	most = on_scalar(d, TN_I64, (double)n);
	before = row(d, "lt", A(at, on_scalar(d, TN_I64, 0)));
	inside = row(d, "and", A(row(d, "not", A(before)),
				     row(d, "lt", A(at, most))));
	at = rowa(d, "clip", A(at), REAL("lo", 0), REAL("hi", (double)(n - 1)));
	at = rowa(d, "broadcast_to", A(at), INTS("shape", shape));
	x = rowa(d, "take_along", A(x, at), INT("axis", 2));
	if (old < 0 || on_extent(d, old, 2) == 0)
		old = on_filled(d, on_dt(d, x), shape, 0);
	hi.at[2] = g->total - on_extent(d, old, 2);
	if (hi.at[2] > 0)
		old = rowa(d, "pad", A(old), INTS("lo", lo), INTS("hi", hi));
	old = row(d, "where", A(before, old, on_scalar(d, on_dt(d, x), 0)));
	return row(d, "where", A(inside, x, old));
}

/* Heads of queries or keys, turned by their positions. */
static int32_t turned(struct grouped *g, int32_t x)
{
	node *d = g->a.d;
	int32_t at;
	tn_dtype t = on_dt(d, x);

	if (on_int(d, "do_rotary", 0) == 0)
		return x;
	if (on_has(d, 9)) {
		at = on_in(d, 9);
	} else {
		at = attention_positions(d, on_extent(d, x, 2), false);
		at = row(d, "add", A(at, on_reshape(d, g->first,
						LIST(d, g->a.batch, 1))));
	}
	x = rotary_turn(d, x, on_unsqueeze(d, rotary_rows(d, 7, at), 1),
		on_unsqueeze(d, rotary_rows(d, 8, at), 1),
		on_int(d, "rotary_interleaved", 0) != 0);
	return on_cast_to(d, x, t);
}

static void find_new(struct grouped *g)
{
	node *d = g->a.d;
	int32_t q = on_in(d, 0), part[3];
	int64_t n = on_int(d, "num_heads", 0), m = on_int(d, "kv_num_heads", 0);
	int64_t size, from = 0, all;

	on_bound(d, "num_heads", n, 1, 1 << 20);
	on_bound(d, "kv_num_heads", m, 1, 1 << 20);
	if (on_rank_of(d, q) != 3)
		on_fail(d, "onnx.shape", "the query must have 3 axes, and has %d",
			(int)on_rank_of(d, q));
	all = n + 2 * m;
	if (!on_has(d, 1) && on_extent(d, q, 2) % all != 0)
		on_fail(d, "onnx.shape", "%lld elements of a position cannot be "
			"divided into %lld heads of queries, keys and values",
			(long long)on_extent(d, q, 2), (long long)all);
	for (int32_t i = 0; i < 3; i++) {
		int64_t heads = i == 0 ? n : m;

		if (on_has(d, 1)) {
			part[i] = on_in(d, i);
			if (on_rank_of(d, part[i]) != 3)
				on_fail(d, "onnx.shape", "input %d must have 3 "
					"axes", (int)i);
		} else {
			size = on_extent(d, q, 2) / all;
			part[i] = on_narrow(d, q, 2, from, heads * size);
			from += heads * size;
		}
		part[i] = attention_heads(d, part[i], heads);
	}
	g->a.q = part[0];
	g->a.k = part[1];
	g->a.v = part[2];
}

/* How many positions there are, and where the new ones begin. */
static void find_positions(struct grouped *g)
{
	node *d = g->a.d;
	int64_t n = on_extent(d, g->a.q, 2), batch = on_extent(d, g->a.q, 0);
	int64_t total = on_host_int(d, 6), past = 0;
	int32_t last = on_cast_to(d, on_in(d, 5), TN_I64);

	if (on_has(d, 3) != on_has(d, 4))
		on_fail(d, "onnx.input", "past keys and past values belong "
			"together: one of them is missing");
	if (on_has(d, 3) && on_rank_of(d, on_in(d, 3)) == 4)
		past = on_extent(d, on_in(d, 3), 2);
	on_bound(d, "total_sequence_length", total, n, INT64_C(1) << 32);
	if (on_extent(d, g->a.k, 2) != n || on_numel(d, last) != batch)
		on_fail(d, "onnx.shape", "there must be as many new keys as "
			"queries, and a length for each of the batch");
	g->fresh = total == n && past == 0;
	g->total = total > past ? total : past;
	g->a.batch = batch;
	if (total == n)
		g->first = on_filled(d, TN_I64, LIST(d, batch, 1, 1, 1), 0);
	else
		g->first = row(d, "add",
			A(on_reshape(d, last, LIST(d, batch, 1, 1, 1)),
				on_scalar(d, TN_I64, (double)(1 - n))));
}

static void find_sink(struct grouped *g)
{
	node *d = g->a.d;
	list shape = LIST(d, 1, g->a.heads, 1, 1);

	g->a.sink = -1;
	if (on_has(d, 11)) {
		if (on_numel(d, on_in(d, 11)) != g->a.heads)
			on_fail(d, "onnx.shape", "head_sink must have %lld "
				"elements", (long long)g->a.heads);
		g->a.sink = on_reshape(d, on_in(d, 11), shape);
	} else if (on_int(d, "smooth_softmax", 0) > 0) {
		g->a.sink = on_filled(d, g->a.t, shape, 0);
	}
}

void onnx_group_query(node *d)
{
	struct grouped g = {.a = {.d = d, .left = -1, .right = -1,
				    .allowed = -1, .bias = -1}};
	int64_t window = on_int(d, "local_window_size", -1);
	int32_t end;

	only(d, "sliding_window_cache", 0);
	only(d, "kv_cache_bit_width", 0);
	only(d, "qk_output", 0);
	for (int32_t i = 0; i < 2; i++)
		if (strcmp(on_text(d, i == 0 ? "k_quant_type" : "v_quant_type",
				   "NONE"), "NONE") != 0)
			on_fail(d, "onnx.attr", "quantised past keys and values "
				"are not supported; accepted is NONE");
	on_ignore(d, "qk_norm_epsilon"); /* of inputs that are refused */
	find_new(&g);
	find_positions(&g);
	g.a.q = turned(&g, g.a.q);
	g.a.k = appended(&g, 3, turned(&g, g.a.k));
	g.a.v = appended(&g, 4, g.a.v);
	attention_check(&g.a);
	find_scale(&g.a);
	find_sink(&g);
	g.a.softcap = on_real(d, "softcap", 0);
	g.a.causal = on_int(d, "causal", 1) != 0;
	g.a.left = window > 0 ? window - 1 : -1;
	if (on_has(d, 10))
		g.a.bias = on_cast_to(d, on_in(d, 10), g.a.t);
	if (!g.fresh || g.a.bias >= 0 || g.a.left >= 0 || g.a.sink >= 0 ||
		g.a.softcap > 0)
		attention_near(&g.a, g.first);
	if (!g.a.causal && !g.fresh) {
		end = row(d, "add", A(g.first, on_scalar(d, TN_I64,
						 (double)g.a.n_q)));
		attention_allow(&g.a, row(d, "lt",
			A(attention_positions(d, g.a.n_k, false), end)));
	}
	on_set(d, 0, result(&g.a, NULL));
	on_set(d, 1, g.a.k);
	on_set(d, 2, g.a.v);
}
