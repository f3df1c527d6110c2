/*
 * op_state.c: operators that carry a state from step to step: linear attention,
 * a loop (loop.c), and causal convolutions.
 *
 *     LinearAttention       s = exp(g) s + k v', o = s' q        (gated)
 *                           v - s' k, times beta, instead of v   (delta)
 *     CausalConvWithState   y = conv(past and x), the last of both is the state
 *
 * All of it is computed in f32 (f64 where the inputs are), and rounded once.
 */
#include "onnx/ops.h"

#include <math.h>

enum { MAX_STEPS = 1 << 24 };

/* ---- linear attention ---- */

struct linear {
	node *d;
	tn_dtype t;			 /* computed in */
	int64_t batch, steps, heads, groups; /* groups: of q for one of k, v */
	int64_t size_k, size_v;
	/* [batch, steps, heads, ..]; -1: none */
	int32_t q, k, v, decay, beta;
	int32_t state; /* [batch, heads, size_k, size_v] */
};

/* Input i [batch, steps, heads * size] as [batch, steps, heads, size]. */
static int32_t packed(struct linear *l, int32_t i, int64_t heads, int64_t *size)
{
	node *d = l->d;
	int32_t x = on_in(d, i);
	const int64_t *e = on_ty(d, x)->shape;

	if (on_rank_of(d, x) != 3 || e[0] != l->batch || e[1] != l->steps ||
		e[2] % heads != 0)
		on_fail(d, "onnx.shape", "input %d must have the shape "
			"[%lld,%lld,n] (batch, steps, all heads), n a multiple "
			"of %lld",
			(int)i, (long long)l->batch, (long long)l->steps,
			(long long)heads);
	*size = e[2] / heads;
	return on_reshape(d, on_cast_to(d, x, l->t),
		LIST(d, l->batch, l->steps, heads, *size));
}

static void find_gates(struct linear *l)
{
	node *d = l->d;
	const char *rule = on_text(d, "update_rule", "gated_delta");
	bool gated = !strcmp(rule, "gated") || !strcmp(rule, "gated_delta");
	bool delta = !strcmp(rule, "delta") || !strcmp(rule, "gated_delta");
	int64_t size;

	if (!gated && !delta && strcmp(rule, "linear") != 0)
		on_fail(d, "onnx.attr", "update_rule is \"%.50s\"; accepted are "
			"linear, gated, delta and gated_delta", rule);
	if (on_has(d, 4) != gated || on_has(d, 5) != delta)
		on_fail(d, "onnx.input", "update_rule %s %s decay and %s beta",
			rule, gated ? "needs" : "forbids",
			delta ? "needs" : "forbids");
	l->decay = l->beta = -1;
	if (gated) {
		l->decay = row(d, "exp", A(packed(l, 4, l->heads, &size)));
		if (size != 1 && size != l->size_k)
			on_fail(d, "onnx.shape", "decay has %lld numbers for "
				"each head; accepted are 1 and %lld",
				(long long)size, (long long)l->size_k);
	}
	if (delta) {
		int32_t b = on_in(d, 5);
		bool one = on_rank_of(d, b) == 3 && on_extent(d, b, 2) == 1;

		l->beta = packed(l, 5, one ? 1 : l->heads, &size);
		if (size != 1)
			on_fail(d, "onnx.shape", "beta has %lld numbers for "
				"each head; accepted is 1", (long long)size);
	}
}

static void find_state(struct linear *l)
{
	node *d = l->d;
	list shape = LIST(d, l->batch, l->heads, l->size_k, l->size_v);

	if (!on_has(d, 3)) {
		l->state = on_filled(d, l->t, shape, 0);
		return;
	}
	l->state = on_in(d, 3);
	if (on_rank_of(d, l->state) != 4 ||
		memcmp(on_ty(d, l->state)->shape, shape.at,
			4 * sizeof *shape.at) != 0)
		on_fail(d, "onnx.shape", "the state must have the shape "
			"[%lld,%lld,%lld,%lld] (batch, heads, sizes of key and "
			"value)",
			(long long)l->batch, (long long)l->heads,
			(long long)l->size_k, (long long)l->size_v);
	l->state = on_cast_to(d, l->state, l->t);
}

/* x of one step as [batch, heads, down, right], one of them the last extent. */
static int32_t turned(struct linear *l, int32_t x, bool down)
{
	node *d = l->d;
	int64_t heads = on_extent(d, x, 1), n = on_extent(d, x, 2);

	return on_reshape(d, x, down ? LIST(d, l->batch, heads, n, 1)
				     : LIST(d, l->batch, heads, 1, n));
}

/*
 * One step: the state, then its q, k and v, decay and beta, [batch, heads, size];
 * the next state, and what is read of it: [batch, all heads of q].
 */
static void step(node *d, void *arg, const int32_t *in, int32_t *out)
{
	struct linear *l = arg;
	int32_t state = in[0], v = turned(l, in[3], false), o, at = 4;

	if (l->decay >= 0) {
		state = row(d, "mul", A(state, turned(l, in[at], true)));
		at++;
	}
	if (l->beta >= 0) {
		o = row(d, "matmul", A(turned(l, in[2], false), state));
		v = row(d, "mul", A(row(d, "sub", A(v, o)),
				      turned(l, in[at], false)));
	}
	out[0] = row(d, "add", A(state, row(d, "mul",
					A(turned(l, in[2], true), v))));
	o = on_reshape(d, in[1],
		LIST(d, l->batch, l->heads, l->groups, l->size_k));
	out[1] = on_reshape(d, row(d, "matmul", A(o, out[0])),
		LIST(d, l->batch, l->heads * l->groups * l->size_v));
}

/* All steps: [batch, steps, all heads of q]; sets the state. */
static int32_t steps_of(struct linear *l)
{
	node *d = l->d;
	int32_t in[6] = {l->state, l->q, l->k, l->v}, out[2], n = 4;
	on_loop loop = {.n = l->steps, .n_carried = 1, .n_out = 1, .in = in,
		.body = step, .arg = l};

	if (l->decay >= 0)
		in[n++] = l->decay;
	if (l->beta >= 0)
		in[n++] = l->beta;
	loop.n_rows = n - 1;
	for (int32_t i = 1; i < n; i++)
		in[i] = on_move_axis(d, in[i], 1, 0);
	on_loop_run(d, &loop, out);
	l->state = out[0];
	return on_move_axis(d, out[1], 0, 1);
}

void onnx_linear_attention(node *d)
{
	struct linear l = {.d = d, .t = on_dt(d, on_in(d, 0))};
	int64_t n_q = on_bound(d, "q_num_heads", on_int(d, "q_num_heads", 0), 1,
		1 << 20);
	int64_t n_k = on_bound(d, "kv_num_heads", on_int(d, "kv_num_heads", 0),
		1, n_q), size;
	double scale = on_real(d, "scale", 0);
	tn_dtype out = l.t, kept = on_has(d, 3) ? on_dt(d, on_in(d, 3)) : out;
	int32_t o;

	on_ignore(d, "chunk_size");
	if (n_q % n_k != 0)
		on_fail(d, "onnx.attr", "q_num_heads is %lld and kv_num_heads "
			"%lld: the first must be a multiple of the second",
			(long long)n_q, (long long)n_k);
	if (on_rank_of(d, on_in(d, 0)) != 3)
		on_fail(d, "onnx.shape", "the query must have 3 axes (batch, "
			"steps, all heads), and has %d",
			(int)on_rank_of(d, on_in(d, 0)));
	l.t = l.t == TN_F64 ? TN_F64 : TN_F32;
	l.heads = n_k;
	l.groups = n_q / n_k;
	l.batch = on_extent(d, on_in(d, 0), 0);
	l.steps = on_bound(d, "the number of steps",
		on_extent(d, on_in(d, 0), 1), 0, MAX_STEPS);
	l.q = packed(&l, 0, n_q, &size);
	l.k = packed(&l, 1, n_k, &l.size_k);
	l.v = packed(&l, 2, n_k, &l.size_v);
	if (size != l.size_k)
		on_fail(d, "onnx.shape", "a head of the query has %lld numbers, "
			"but one of the key %lld",
			(long long)size, (long long)l.size_k);
	find_gates(&l);
	find_state(&l);
	o = l.steps > 0 ? steps_of(&l)
		: on_filled(d, l.t, LIST(d, l.batch, 0, n_q * l.size_v), 0);
	if (scale == 0)
		scale = 1 / sqrt(size > 0 ? (double)size : 1);
	o = row(d, "mul", A(o, on_scalar(d, l.t, scale)));
	on_set(d, 0, on_cast_to(d, o, out));
	on_set(d, 1, on_cast_to(d, l.state, kept));
}

/* ---- causal convolutions ---- */

void onnx_causal_conv(node *d)
{
	int32_t x = on_in(d, 0), w = on_in(d, 1), all, o;
	const char *act = on_text(d, "activation", "none");
	tn_dtype out = on_dt(d, x), t = out == TN_F64 ? TN_F64 : TN_F32;
	int64_t batch, channels, n, k;
	list shape;

	if (on_rank_of(d, x) != 3 || on_rank_of(d, w) != 3 ||
		on_extent(d, w, 0) != on_extent(d, x, 1) ||
		on_extent(d, w, 1) != 1 || on_extent(d, w, 2) < 1)
		on_fail(d, "onnx.shape", "an input (batch, channels, steps) and "
			"weights (channels, 1, size) are needed");
	batch = on_extent(d, x, 0);
	channels = on_extent(d, x, 1);
	n = on_extent(d, x, 2);
	k = on_extent(d, w, 2);
	shape = LIST(d, batch, channels, k - 1);
	if (on_has(d, 3) && (on_rank_of(d, on_in(d, 3)) != 3 ||
		memcmp(on_ty(d, on_in(d, 3))->shape, shape.at,
			3 * sizeof *shape.at) != 0))
		on_fail(d, "onnx.shape", "the state must have the shape "
			"[%lld,%lld,%lld] (batch, channels, size - 1)",
			(long long)batch, (long long)channels,
			(long long)k - 1);
	all = on_has(d, 3) ? on_cast_to(d, on_in(d, 3), out)
			   : on_filled(d, out, shape, 0);
	all = on_concat(d, 2, (int32_t[]){all, x}, 2);
	o = rowa(d, "conv", A(on_cast_to(d, all, t), on_cast_to(d, w, t)),
		INT("groups", channels));
	if (on_has(d, 2)) {
		int32_t b = on_cast_to(d, on_in(d, 2), t);

		if (on_rank_of(d, b) != 1 || on_numel(d, b) != channels)
			on_fail(d, "onnx.shape", "the bias must have %lld "
				"numbers", (long long)channels);
		o = row(d, "add", A(o, on_along(d, b, 1, 3)));
	}
	if (!strcmp(act, "silu") || !strcmp(act, "swish"))
		o = row(d, "mul", A(o, row(d, "sigmoid", A(o))));
	else if (strcmp(act, "none") != 0)
		on_fail(d, "onnx.attr", "activation is \"%.50s\"; accepted are "
			"none, silu and swish", act);
	on_set(d, 0, on_cast_to(d, o, out));
	on_set(d, 1, on_narrow(d, all, 2, n, k - 1));
}
