/*
 * attention.c: self-attention with several heads.
 *
 *     x (.., t, width)
 *     q (.., t, heads d) -> (.., t, heads, d) -> (.., heads, t, d)    views
 *     k, v the same with kv_heads
 *     o (.., heads, t, d) -> (.., t, heads d) -> out
 */
#include "nn/local.h"

#include <math.h>

typedef struct weights {
	tn_tensor *w, *b; /* (out, in); (out), or NULL */
} weights;

typedef struct attention {
	tn_layer layer;
	int64_t heads, kv_heads, d;
	bool causal;
	weights q, k, v, out;
} attention;

/* (.., t, h d) -> (.., h, t, d), or back. */
static tn_tensor *swap_axes(
	const nn_site *at, tn_tensor *x, int32_t i, int32_t k)
{
	int64_t perm[TN_MAX_RANK];
	int32_t rank = tn_tensor_rank(x);
	tn_tensor *out;

	for (int32_t a = 0; a < rank; a++)
		perm[a] = a == i ? k : a == k ? i : a;
	out = tn_at_transpose(at->file, at->line, x, perm, rank);
	tn_drop(x);
	return out;
}

/*
 * Applies a linear layer to x, splits its last axis into heads, and moves the
 * heads before the axis of positions.
 */
static tn_tensor *split_heads(const nn_site *at, tn_tensor *x,
	const weights *w, int64_t heads, int64_t d)
{
	int32_t rank = tn_tensor_rank(x);
	int64_t shape[TN_MAX_RANK];
	tn_tensor *y = NN_LINEAR(at, x, w->w, w->b); /* (.., t, heads d) */
	tn_tensor *z;

	for (int32_t i = 0; i < rank - 1; i++)
		shape[i] = tn_tensor_shape(x)[i];
	shape[rank - 1] = heads;
	shape[rank] = d;
	z = tn_at_reshape(at->file, at->line, y, shape, rank + 1);
	tn_drop(y);
	return swap_axes(at, z, rank - 2, rank - 1); /* (.., heads, t, d) */
}

static tn_tensor *join_heads(const nn_site *at, tn_tensor *x,
	const weights *w, const int64_t *shape, int32_t rank)
{
	tn_tensor *y = swap_axes(at, x, rank - 2, rank - 1);
	tn_tensor *z = tn_at_reshape(at->file, at->line, y, shape, rank);
	tn_tensor *out = NN_LINEAR(at, z, w->w, w->b);

	tn_drop(y);
	tn_drop(z);
	return out;
}

static tn_tensor *run(
	const nn_site *at, const tn_layer *layer, tn_tensor *x)
{
	const attention *l = (const attention *)(const void *)layer;
	int32_t rank = tn_tensor_rank(x);
	double scale = 1 / sqrt((double)l->d);
	tn_tensor *q, *k, *v, *o;

	if (!tn_is_valid(x))
		return NULL;
	if (rank < 2 || rank >= TN_MAX_RANK) {
		tn_at_fail(at->file, at->line, tn_tensor_context(x), TN_EINVAL,
			"nn.rank", "attention needs x [.., t, width] with 2 to "
				"%d axes, but it has %d",
				TN_MAX_RANK - 1, rank);
		return NULL;
	}
	q = split_heads(at, x, &l->q, l->heads, l->d);
	k = split_heads(at, x, &l->k, l->kv_heads, l->d);
	v = split_heads(at, x, &l->v, l->kv_heads, l->d);
	o = l->kv_heads == l->heads
		? tn_at_attention(at->file, at->line, q, k, v, l->causal, scale)
		: tn_at_attention_grouped(at->file, at->line, q, k, v,
			  l->heads / l->kv_heads, l->causal, 0, scale);
	tn_drop(q);
	tn_drop(k);
	tn_drop(v);
	return join_heads(at, o, &l->out, tn_tensor_shape(x), rank);
}

static weights make(nn_making *m, const char *name, int64_t in, int64_t out,
	const tn_nn_attention_options *o)
{
	int64_t shape[] = {out, in};
	weights w = {NULL, NULL};

	if (m->failed || tn_at_params_enter(m->at.file, m->at.line, m->p, "%s",
				 name) < 0) {
		m->failed = true;
		return w;
	}
	w.w = nn_weight(m, "weight", o->dtype, 2, shape, o->gain);
	if (!o->no_bias)
		w.b = nn_vector(m, "bias", o->dtype, out, 0);
	m->failed = tn_params_leave(m->p) < 0 || m->failed;
	return w;
}

tn_layer *tn_at_nn_attention(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t width, int64_t heads,
	const tn_nn_attention_options *options)
{
	static const tn_nn_attention_options defaults =
		TN_NN_ATTENTION_OPTIONS_INIT;
	const tn_nn_attention_options *o =
		options != NULL ? options : &defaults;
	int64_t kv_heads = o->kv_heads != 0 ? o->kv_heads : heads;
	nn_making m = nn_begin((nn_site){file, line}, p, name, o->n_bytes,
		sizeof *o, sizeof(attention));
	attention *l = (attention *)(void *)m.layer;

	nn_want_extent(&m, "width", width);
	nn_want_extent(&m, "heads", heads);
	nn_want_extent(&m, "kv_heads", kv_heads);
	if (!m.failed)
		nn_want(&m, width % heads == 0 && heads % kv_heads == 0,
			"nn.heads", "heads must divide width, and kv_heads "
			"must divide heads");
	if (m.failed)
		return nn_end(&m);
	l->layer.run = run;
	l->heads = heads;
	l->kv_heads = kv_heads;
	l->d = width / heads;
	l->causal = o->causal;
	l->q = make(&m, "query", width, width, o);
	l->k = make(&m, "key", width, kv_heads * l->d, o);
	l->v = make(&m, "value", width, kv_heads * l->d, o);
	l->out = make(&m, "out", width, width, o);
	return nn_end(&m);
}
