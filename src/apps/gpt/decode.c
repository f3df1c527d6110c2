/*
 * decode.c: scores of the next token of a text that grows token by token. Keys
 * and values of earlier tokens are kept, so a new token costs one row of the
 * model.
 *
 *     cache of a layer, (heads, context, d)      at = 5
 *     k0 k1 k2 k3 k4 __ __ __                    row 5 is written in place
 *     k0 k1 k2 k3 k4 k5 __ __                    and rows 0 .. 5 are attended
 *
 * One compiled function: the rows are an argument, and their position is data.
 * It is recorded for one row, and for a whole context, which serves to read
 * many tokens at once: a prompt, or the rest when the context is moved. After
 * that nothing is compiled and no memory is allocated.
 */
#include "apps/gpt/gpt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 8 }; /* up to this number, tokens are read faster one by one */

struct train_decode {
	const train_gpt *g;
	tn_params *p;
	tn_function *f;
	/* ids of one row and of a whole context; i64 */
	tn_tensor *one, *all, *at, *last;
	struct kept {
		tn_tensor *k, *v; /* (heads, context, d) */
	} *kept;
	int64_t *ids;	     /* (context) */
	/* of the text; keys of start .. start + n_read are kept */
	size_t start, n_read;
};

size_t train_context_start(const train_gpt *g, size_t n)
{
	size_t t = (size_t)g->k.context, half = (t + 1) / 2;

	return n <= t ? 0 : (n - t + half - 1) / half * half;
}

/* ---- recorded once ---- */

/* Applies the named linear layer of the attention to x (m, w). */
static tn_tensor *project(
	const train_gpt *g, int64_t layer, const char *name, tn_tensor *x)
{
	char w[80], b[80];

	snprintf(w, sizeof w, "block%d.attention.%s.weight", (int)layer, name);
	snprintf(b, sizeof b, "block%d.attention.%s.bias", (int)layer, name);
	return tn_linear(x, tn_params_get(g->p, w), tn_params_get(g->p, b));
}

/* (m, w) -> (heads, m, d) */
static tn_tensor *split_heads(const train_gpt *g, tn_tensor *x)
{
	static const int64_t swap[] = {1, 0, 2};
	int64_t shape[] = {tn_tensor_n_elems(x) / g->k.width, g->k.heads,
		g->k.width / g->k.heads};

	return tn_transpose(tn_reshape(x, shape, 3), swap, 3);
}

/* Attention of rows at .. at + m, x (m, w); bias (m, context) -> (m, w) */
static tn_tensor *attend(const train_decode *d, int64_t layer, tn_tensor *x,
	tn_tensor *at, tn_tensor *bias)
{
	static const int64_t swap[] = {1, 0, 2};
	const train_gpt *g = d->g;
	const struct kept *kept = &d->kept[layer];
	int64_t m = tn_tensor_n_elems(x) / g->k.width;
	int64_t flat[] = {m, g->k.width};
	double scale = 1 / sqrt((double)(g->k.width / g->k.heads));
	tn_tensor *q = split_heads(g, project(g, layer, "query", x)), *o;

	tn_copy_(tn_dynamic_narrow(kept->k, at, 1, m),
		split_heads(g, project(g, layer, "key", x)));
	tn_copy_(tn_dynamic_narrow(kept->v, at, 1, m),
		split_heads(g, project(g, layer, "value", x)));
	o = tn_attention_bias(q, kept->k, kept->v, bias, scale);
	o = tn_reshape(tn_transpose(o, swap, 3), flat, 2);
	return project(g, layer, "out", o);
}

/*
 * in: ids (1, m), at (), last (); out: scores of the token after row last
 * (vocab)
 */
static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const train_decode *d = user;
	const train_gpt *g = d->g;
	int64_t m = tn_tensor_n_elems(in[0]), t = g->k.context;
	int64_t flat[] = {m}, rows[] = {m, 1}, shape[] = {1, t};
	tn_dtype type = train_config_dtype(&g->k);
	tn_tensor *row = tn_add(tn_arange(c, m, 0, 1, TN_I64), in[1]);
	tn_tensor *seen = tn_le(tn_reshape(tn_arange(c, t, 0, 1, TN_I64),
					shape, 2), tn_reshape(row, rows, 2));
	tn_tensor *bias = tn_where(seen, tn_scalar(c, type, 0),
		tn_scalar(c, type, -INFINITY)); /* (m, t) */
	tn_tensor *x, *h;

	x = tn_nn_forward(g->token, tn_reshape(in[0], flat, 1));
	x = tn_add(x, tn_nn_forward(g->place, row)); /* (m, w) */
	for (int64_t i = 0; i < g->k.layers; i++) {
		const block *b = &g->block[i];

		h = tn_nn_forward(b->norm1, x);
		x = tn_add(x, attend(d, i, h, in[1], bias));
		h = tn_nn_forward(b->norm2, x);
		h = tn_gelu_tanh(tn_nn_forward(b->up, h));
		x = tn_add(x, tn_nn_forward(b->down, h));
	}
	x = tn_nn_forward(g->norm, tn_dynamic_narrow(x, in[2], 0, 1));
	x = tn_linear_nobias(x, tn_params_get(g->p, "token.weight"));
	out[0] = tn_cast(x, TN_F32); /* (1, vocab) */
	return tn_context_status(c);
}

/* ---- called ---- */

tn_status train_decode_new(train_decode **out, const train_gpt *g)
{
	tn_context *c = tn_params_context(g->p);
	int64_t t = g->k.context, one[] = {1, 1}, all[] = {1, t};
	int64_t shape[] = {g->k.heads, t, g->k.width / g->k.heads};
	tn_dtype type = train_config_dtype(&g->k);
	tn_params *p;
	train_decode *d;

	*out = NULL;
	if (tn_params_new(&p, c) < 0)
		return TN_ENOMEM;
	d = tn_params_alloc(p, sizeof *d);
	if (d == NULL) {
		tn_params_free(p);
		return TN_ENOMEM;
	}
	*d = (train_decode){.g = g, .p = p};
	*out = d;
	d->kept = tn_params_alloc(p, (size_t)g->k.layers * sizeof *d->kept);
	d->ids = tn_params_alloc(p, (size_t)t * sizeof *d->ids);
	if (d->kept == NULL || d->ids == NULL)
		return tn_fail(c, TN_ENOMEM, "train.memory", "no memory");
	d->one = tn_params_make(p, "one", TN_I64, 2, one, false);
	d->all = tn_params_make(p, "all", TN_I64, 2, all, false);
	d->at = tn_params_make(p, "at", TN_I64, 0, NULL, false);
	d->last = tn_params_make(p, "last", TN_I64, 0, NULL, false);
	for (int64_t i = 0; i < g->k.layers; i++) {
		tn_params_enter(p, "block%d", (int)i);
		d->kept[i].k = tn_params_make(p, "k", type, 3, shape, false);
		d->kept[i].v = tn_params_make(p, "v", type, 3, shape, false);
		tn_params_leave(p);
	}
	return tn_compile(&d->f, c, body, d, 3, 1, "decode");
}

void train_decode_free(train_decode *d)
{
	if (d == NULL)
		return;
	tn_function_free(d->f);
	tn_params_free(d->p);
}

/*
 * Runs the m rows at `at`. ids: d->one or d->all, which may have room for more
 * than m.
 */
static tn_status step(train_decode *d, tn_tensor *ids, int64_t at, int64_t m,
	float *score)
{
	tn_context *c = tn_params_context(d->p);
	size_t n = (size_t)tn_tensor_n_elems(ids) * sizeof *d->ids;
	tn_tensor *in[] = {ids, d->at, d->last}, *out[1];
	int64_t last = m - 1;
	tn_status s;

	tn_scope_enter(c);
	tn_no_grad_enter(c);
	tn_set_data(ids, d->ids, n);
	tn_set_data(d->at, &at, sizeof at);
	tn_set_data(d->last, &last, sizeof last);
	s = tn_function_call(d->f, in, out);
	if (s >= 0)
		s = tn_read(out[0], score,
			(size_t)tn_tensor_n_elems(out[0]) * sizeof *score);
	tn_no_grad_leave(c);
	tn_scope_leave(c);
	return s;
}

tn_status train_decode_scores(
	train_decode *d, const train_token *text, size_t n, float *score)
{
	size_t start = train_context_start(d->g, n), need = n - start;
	size_t t = (size_t)d->g->k.context;
	tn_status s = TN_OK;

	if (start != d->start || d->n_read > need) {
		d->start = start;
		d->n_read = 0;
	}
	if (d->n_read == need)
		/* the same text again: read its last token again */
		d->n_read--;
	if (d->n_read == 0 && need > FEW) {
		memset(d->ids, 0, t * sizeof *d->ids);
		for (size_t i = 0; i < need; i++)
			d->ids[i] = text[start + i];
		s = step(d, d->all, 0, (int64_t)need, score);
		d->n_read = need;
	}
	for (; d->n_read < need && s >= 0; d->n_read++) {
		d->ids[0] = text[start + d->n_read];
		s = step(d, d->one, (int64_t)d->n_read, 1, score);
	}
	return s;
}
