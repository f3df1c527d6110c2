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
 * It is recorded for each number of rows, and for each number of keys that they
 * see:
 *
 *     rows   1, 16, 128               a text of 150: 128 + 16 + 6 of 16
 *     keys   256, 512 .. context      rows 128 .. 143 see 256
 *
 * So texts of all lengths run the same few programs; after that nothing is compiled
 * and no memory is allocated.
 */
#include "apps/gpt/gpt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FEW = 2, /* up to this number, tokens are read faster one by one */
	LEAST_KEYS = 256,
	MOST_KEYS = 16, /* numbers of keys, each twice the one before */
	N_BLOCKS = 3
};
static const int64_t blocks[N_BLOCKS] = {1, 16, 128};

struct train_decode {
	const train_gpt *g;
	tn_params *p;
	tn_function *f;
	/* i64: ids (1, blocks[i]), positions of keys (n); NULL: not used */
	tn_tensor *ids_of[N_BLOCKS], *keys[MOST_KEYS], *at, *last;
	struct kept {
		tn_tensor *k, *v; /* (heads, context, d) */
	} *kept;
	int64_t *ids;	     /* (the largest block), (context) */
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

/* Attention of rows at .. at + m, x (m, w); bias (m, keys) -> (m, w) */
static tn_tensor *attend(const train_decode *d, int64_t layer, tn_tensor *x,
	tn_tensor *at, tn_tensor *bias)
{
	static const int64_t swap[] = {1, 0, 2};
	const train_gpt *g = d->g;
	const struct kept *kept = &d->kept[layer];
	int64_t m = tn_tensor_n_elems(x) / g->k.width;
	int64_t flat[] = {m, g->k.width}, n = tn_tensor_n_elems(bias) / m;
	double scale = 1 / sqrt((double)(g->k.width / g->k.heads));
	tn_tensor *q = split_heads(g, project(g, layer, "query", x)), *o;

	tn_copy_(tn_dynamic_narrow(kept->k, at, 1, m),
		split_heads(g, project(g, layer, "key", x)));
	tn_copy_(tn_dynamic_narrow(kept->v, at, 1, m),
		split_heads(g, project(g, layer, "value", x)));
	o = tn_attention_bias(q, tn_narrow(kept->k, 1, 0, n),
		tn_narrow(kept->v, 1, 0, n), bias, scale);
	o = tn_reshape(tn_transpose(o, swap, 3), flat, 2);
	return project(g, layer, "out", o);
}

/*
 * in: ids (1, m), at (), last (), keys (n); out: scores of the token after row
 * last (vocab)
 */
static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const train_decode *d = user;
	const train_gpt *g = d->g;
	int64_t m = tn_tensor_n_elems(in[0]), n = tn_tensor_n_elems(in[3]);
	int64_t flat[] = {m}, rows[] = {m, 1}, shape[] = {1, n};
	tn_dtype type = train_config_dtype(&g->k);
	tn_tensor *row = tn_add(tn_arange(c, m, 0, 1, TN_I64), in[1]);
	tn_tensor *seen = tn_le(
		tn_reshape(in[3], shape, 2), tn_reshape(row, rows, 2));
	tn_tensor *bias = tn_where(seen, tn_scalar(c, type, 0),
		tn_scalar(c, type, -INFINITY)); /* (m, n) */
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

/* The rows of block i. */
static int64_t rows_of(const train_decode *d, int i)
{
	int64_t t = d->g->k.context;

	return blocks[i] < t ? blocks[i] : t;
}

/* The arguments of all programs; rows that a context does not have are left out. */
static void make_arguments(train_decode *d)
{
	int64_t t = d->g->k.context, n = LEAST_KEYS;

	for (int i = 0; i < N_BLOCKS; i++) {
		int64_t shape[] = {1, rows_of(d, i)};

		tn_params_enter(d->p, "rows%d", (int)shape[1]);
		if (i == 0 || shape[1] > rows_of(d, i - 1))
			d->ids_of[i] = tn_params_make(
				d->p, "ids", TN_I64, 2, shape, false);
		tn_params_leave(d->p);
	}
	for (int64_t i = 0; i < t; i++)
		d->ids[i] = i;
	for (int i = 0; i < MOST_KEYS; i++, n *= 2) {
		int64_t most = n < t && i < MOST_KEYS - 1 ? n : t;

		tn_params_enter(d->p, "keys%d", (int)most);
		d->keys[i] = tn_params_make(
			d->p, "places", TN_I64, 1, &most, false);
		tn_params_leave(d->p);
		tn_set_data(d->keys[i], d->ids, (size_t)most * sizeof *d->ids);
		if (most == t)
			break;
	}
	d->at = tn_params_make(d->p, "at", TN_I64, 0, NULL, false);
	d->last = tn_params_make(d->p, "last", TN_I64, 0, NULL, false);
}

tn_status train_decode_new(train_decode **out, const train_gpt *g)
{
	tn_context *c = tn_params_context(g->p);
	int64_t t = g->k.context;
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
	make_arguments(d);
	for (int64_t i = 0; i < g->k.layers; i++) {
		tn_params_enter(p, "block%d", (int)i);
		d->kept[i].k = tn_params_make(p, "k", type, 3, shape, false);
		d->kept[i].v = tn_params_make(p, "v", type, 3, shape, false);
		tn_params_leave(p);
	}
	if (tn_context_status(c) < 0)
		return tn_context_status(c);
	return tn_compile(&d->f, c, body, d, 4, 1, "decode");
}

void train_decode_free(train_decode *d)
{
	if (d == NULL)
		return;
	tn_function_free(d->f);
	tn_params_free(d->p);
}

void train_decode_forget(train_decode *d)
{
	d->n_read = 0;
}

/* The block that reads the next of so many tokens. */
static int block_of(const train_decode *d, size_t left)
{
	int i = 0;

	while (i + 1 < N_BLOCKS && d->ids_of[i + 1] != NULL &&
		((size_t)rows_of(d, i + 1) <= left || (i == 0 && left > FEW)))
		i++;
	return i;
}

/* Runs the m rows at `at` with the ids in d->ids; block i may have more rows. */
static tn_status step(train_decode *d, int i, size_t at, size_t m, float *score)
{
	tn_context *c = tn_params_context(d->p);
	tn_tensor *ids = d->ids_of[i];
	size_t n = (size_t)rows_of(d, i);
	int64_t from = (int64_t)at, last = (int64_t)m - 1;
	tn_tensor **keys = d->keys, *out[1];
	tn_status s;

	while (tn_tensor_n_elems(*keys) < from + (int64_t)n)
		keys++;
	memset(d->ids + m, 0, (n - m) * sizeof *d->ids);
	tn_scope_enter(c);
	tn_no_grad_enter(c);
	tn_set_data(ids, d->ids, n * sizeof *d->ids);
	tn_set_data(d->at, &from, sizeof from);
	tn_set_data(d->last, &last, sizeof last);
	s = tn_function_call(
		d->f, (tn_tensor *[]){ids, d->at, d->last, *keys}, out);
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
	while (d->n_read < need && s >= 0) {
		int i = block_of(d, need - d->n_read);
		size_t rows = (size_t)rows_of(d, i), at = d->n_read, m;

		/* the last block of a context begins earlier, with rows that
		 * have been read */
		at = at + rows > t ? t - rows : at;
		m = need - at < rows ? need - at : rows;
		for (size_t k = 0; k < m; k++)
			d->ids[k] = text[start + at + k];
		s = step(d, i, at, m, score);
		if (s >= 0)
			d->n_read = at + m;
	}
	return s;
}
