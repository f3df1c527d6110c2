/*
 * conv.c: convolution of pictures.
 *
 *     x (n, in, h, w), weight (out, in / groups, rows, columns)
 *     -> (n, out, h', w') + bias (out, 1, 1)
 */
#include "nn/local.h"

typedef struct conv2d {
	tn_layer layer;
	tn_nn_conv2d_options o;
	tn_tensor *w; /* (out, in / groups, rows, columns) */
	tn_tensor *b; /* (out), or NULL */
} conv2d;

static tn_tensor *run(
	const nn_site *at, const tn_layer *layer, tn_tensor *x)
{
	const conv2d *l = (const conv2d *)(const void *)layer;
	const tn_nn_conv2d_options *o = &l->o;
	tn_tensor *y = tn_at_conv(at->file, at->line, x, l->w, o->groups,
		o->stride, 2, o->dilation, 2, o->padding, 2, o->padding, 2);
	tn_tensor *b, *out;
	int64_t shape[] = {0, 1, 1};

	if (l->b == NULL)
		return y;
	shape[0] = tn_tensor_n_elems(l->b);
	b = tn_at_reshape(at->file, at->line, l->b, shape, 3);
	out = tn_at_add(at->file, at->line, y, b);
	tn_drop(b);
	tn_drop(y);
	return out;
}

static void check(nn_making *m, const tn_nn_conv2d_options *o, int64_t in,
	int64_t out, int64_t rows, int64_t columns)
{
	nn_want_extent(m, "in", in);
	nn_want_extent(m, "out", out);
	nn_want_extent(m, "rows", rows);
	nn_want_extent(m, "columns", columns);
	nn_want_extent(m, "groups", o->groups);
	for (int i = 0; i < 2; i++) {
		nn_want_extent(m, "stride", o->stride[i]);
		nn_want_extent(m, "dilation", o->dilation[i]);
		nn_want(m, o->padding[i] >= 0, "nn.extent",
			"padding is negative");
	}
	if (!m->failed)
		nn_want(m, in % o->groups == 0 && out % o->groups == 0,
			"nn.groups", "the groups of a convolution must divide "
			"both in and out");
}

tn_layer *tn_at_nn_conv2d(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t in, int64_t out, int64_t rows,
	int64_t columns, const tn_nn_conv2d_options *options)
{
	static const tn_nn_conv2d_options defaults = TN_NN_CONV2D_OPTIONS_INIT;
	const tn_nn_conv2d_options *o = options != NULL ? options : &defaults;
	nn_making m = nn_begin((nn_site){file, line}, p, name, o->n_bytes,
		sizeof *o, sizeof(conv2d));
	conv2d *l = (conv2d *)(void *)m.layer;

	if (!m.failed)
		check(&m, o, in, out, rows, columns);
	if (m.failed)
		return nn_end(&m);
	l->layer.run = run;
	l->o = *o;
	l->w = nn_weight(&m, "weight", o->dtype, 4,
		(int64_t[]){out, in / o->groups, rows, columns}, o->gain);
	if (!o->no_bias)
		l->b = nn_vector(&m, "bias", o->dtype, out, 0);
	return nn_end(&m);
}
