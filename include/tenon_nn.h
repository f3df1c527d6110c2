/*
 * tenon_nn.h: initialisers and layers; part of tenon.h, which includes it.
 *
 *     tn_layer *fc = tn_nn_linear(p, "fc", 784, 10, NULL);
 *     y = tn_nn_forward(fc, x);        // x [b, 784] -> y [b, 10]
 */
#ifndef TENON_NN_H
#define TENON_NN_H

/* ---- initialisers ------------------------------------------------------ */

/**
 * Every element of x becomes value, or is drawn, at once and without a
 * gradient. What is drawn follows from the context's seed (tn_set_seed) and
 * the number of keys asked for before.
 *
 * dtypes  floats; tn_init_constant any
 * errors  [init.dtype]
 * since   0.1
 */
#define tn_init_constant(...)                                                  \
	tn_at_init_constant(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_init_constant(
	const char *file, int32_t line, tn_tensor *x, double value);
#define tn_init_zeros(...)                                                     \
	tn_at_init_constant(__FILE__, __LINE__, __VA_ARGS__, 0)
#define tn_init_ones(...)                                                      \
	tn_at_init_constant(__FILE__, __LINE__, __VA_ARGS__, 1)

/** Uniform in lo .. hi. */
#define tn_init_uniform(...) tn_at_init_uniform(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_init_uniform(const char *file, int32_t line,
	tn_tensor *x, double lo, double hi);

/** Normal. */
#define tn_init_normal(...) tn_at_init_normal(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_init_normal(const char *file, int32_t line,
	tn_tensor *x, double mean, double deviation);

/**
 * Weights with a deviation of gain / sqrt(fan in), so that a layer keeps the
 * deviation of what goes through it: gain 1 for linear units, sqrt(2) in
 * front of relu.
 *
 * shapes  x [out, in, ..]: the fan in is in times the extents behind it
 * errors  [init.rank] x has less than two axes   [init.dtype]
 * source  He, Zhang, Ren, Sun 2015
 */
#define tn_init_kaiming_uniform(...)                                           \
	tn_at_init_kaiming_uniform(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_init_kaiming_uniform(
	const char *file, int32_t line, tn_tensor *x, double gain);
#define tn_init_kaiming_normal(...)                                            \
	tn_at_init_kaiming_normal(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_init_kaiming_normal(
	const char *file, int32_t line, tn_tensor *x, double gain);

/**
 * Weights with a deviation of gain * sqrt(2 / (fan in + fan out)).
 *
 * shapes  x [out, in, ..]: the fan out is out times the extents behind in
 * errors  [init.rank]   [init.dtype]
 * source  Glorot, Bengio 2010
 */
#define tn_init_xavier_uniform(...)                                            \
	tn_at_init_xavier_uniform(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_init_xavier_uniform(
	const char *file, int32_t line, tn_tensor *x, double gain);

/* ---- layers ------------------------------------------------------------ */

/**
 * Parameters under a name, and what is computed with them. A layer belongs to
 * the set that it was made in: its parameters are name.weight, name.bias ...
 * of it. Made with NULL for options, it has the defaults.
 *
 * errors  [nn.options] of another version   [nn.extent] one is not positive
 *         [params.*]; what comes from a failed call is NULL, and passes
 *         through tn_nn_forward
 */
typedef struct tn_layer tn_layer;

/**
 * The layer on x; each kind says what shapes.
 *
 * errors  those of the rows that it is made of, such as [linear.k]
 * owner   result belongs to the innermost scope       since  0.1
 */
#define tn_nn_forward(...) tn_at_nn_forward(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_nn_forward(
	const char *file, int32_t line, tn_layer *layer, tn_tensor *x);

/** Choices of linear layers; start from TN_NN_LINEAR_OPTIONS_INIT. */
typedef struct tn_nn_linear_options {
	size_t n_bytes; /* sizeof(tn_nn_linear_options) of the caller */
	tn_dtype dtype;
	bool no_bias;
	double gain; /* weight: tn_init_kaiming_uniform; bias: zeros */
} tn_nn_linear_options;
#define TN_NN_LINEAR_OPTIONS_INIT                                              \
	{                                                                      \
		sizeof(tn_nn_linear_options), TN_F32, false, 1                 \
	}

/**
 * x weight' + bias.
 *
 * shapes  x [.., in] -> [.., out]; weight [out, in], bias [out]
 * dtypes  x = weight = bias = result: floats
 */
#define tn_nn_linear(...) tn_at_nn_linear(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_layer *tn_at_nn_linear(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t in, int64_t out,
	const tn_nn_linear_options *options);

/** Choices of embeddings; start from TN_NN_EMBEDDING_OPTIONS_INIT. */
typedef struct tn_nn_embedding_options {
	size_t n_bytes; /* sizeof(tn_nn_embedding_options) of the caller */
	tn_dtype dtype;
	double deviation; /* weight: tn_init_normal around 0 */
} tn_nn_embedding_options;
#define TN_NN_EMBEDDING_OPTIONS_INIT                                           \
	{                                                                      \
		sizeof(tn_nn_embedding_options), TN_F32, 1                     \
	}

/**
 * Rows of a table of n.
 *
 * shapes  x [..], integers 0 <= x < n -> [.., width]; weight [n, width]
 * dtypes  x any integer; weight = result: a float
 * errors  [index.range] when it is computed
 */
#define tn_nn_embedding(...) tn_at_nn_embedding(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_layer *tn_at_nn_embedding(const char *file, int32_t line,
	tn_params *p, const char *name, int64_t n, int64_t width,
	const tn_nn_embedding_options *options);

/** Choices of norms; start from TN_NN_NORM_OPTIONS_INIT. */
typedef struct tn_nn_norm_options {
	size_t n_bytes; /* sizeof(tn_nn_norm_options) of the caller */
	tn_dtype dtype;
	double eps;	 /* added to the variance */
	double momentum; /* tn_nn_batch_norm: weight of the newest batch */
} tn_nn_norm_options;
#define TN_NN_NORM_OPTIONS_INIT                                                \
	{                                                                      \
		sizeof(tn_nn_norm_options), TN_F32, 1e-5, 0.1                  \
	}

/**
 * Normalised along the last axis, times weight, plus bias.
 *
 * shapes  x [.., n] -> [.., n]; weight [n] ones, bias [n] zeros
 * dtypes  x = weight = bias = result: floats; statistics in f32 at least
 * source  Ba, Kiros, Hinton 2016
 */
#define tn_nn_layer_norm(...)                                                  \
	tn_at_nn_layer_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_layer *tn_at_nn_layer_norm(const char *file, int32_t line,
	tn_params *p, const char *name, int64_t n,
	const tn_nn_norm_options *options);

/**
 * Over the root mean square along the last axis, times weight.
 *
 * shapes  x [.., n] -> [.., n]; weight [n] ones
 * dtypes  x = weight = result: floats; the mean in f32 at least
 * source  Zhang, Sennrich 2019
 */
#define tn_nn_rms_norm(...) tn_at_nn_rms_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_layer *tn_at_nn_rms_norm(const char *file, int32_t line,
	tn_params *p, const char *name, int64_t n,
	const tn_nn_norm_options *options);

/**
 * Normalised per channel, times weight, plus bias. In training by the
 * statistics of the batch; each call then moves running_mean and running_var
 * towards them by momentum, in place, without a gradient. Else by the running
 * ones. Both variances are divided by the count of elements.
 *
 * shapes  x [n, channels, ..] -> the same; weight [channels] ones, bias zeros,
 *         running_mean zeros, running_var ones: the last two are not trained
 * dtypes  x = weight = bias = statistics = result: floats
 * source  Ioffe, Szegedy 2015
 */
#define tn_nn_batch_norm(...)                                                  \
	tn_at_nn_batch_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_layer *tn_at_nn_batch_norm(const char *file, int32_t line,
	tn_params *p, const char *name, int64_t channels,
	const tn_nn_norm_options *options);

/** Choices of convolutions; start from TN_NN_CONV2D_OPTIONS_INIT. */
typedef struct tn_nn_conv2d_options {
	size_t n_bytes; /* sizeof(tn_nn_conv2d_options) of the caller */
	tn_dtype dtype;
	int64_t stride[2];   /* of rows and columns, as all pairs here */
	int64_t padding[2];  /* zeros on each side */
	int64_t dilation[2]; /* distance of what a kernel reads */
	int64_t groups;	     /* of channels; outputs see their group's alone */
	bool no_bias;
	double gain; /* weight: tn_init_kaiming_uniform; bias: zeros */
} tn_nn_conv2d_options;
#define TN_NN_CONV2D_OPTIONS_INIT                                              \
	{                                                                      \
		sizeof(tn_nn_conv2d_options), TN_F32, {1, 1}, {0, 0}, {1, 1},  \
			1, false, 1                                            \
	}

/**
 * Convolution (correlation) of pictures with kernels of rows x columns.
 *
 * shapes  x [n, in, h, w] -> [n, out, h', w'],
 *         h' = (h + 2 padding - dilation (rows - 1) - 1) / stride + 1;
 *         weight [out, in / groups, rows, columns], bias [out]
 * dtypes  x = weight = bias = result: floats
 * errors  [nn.groups] they do not divide in and out
 */
#define tn_nn_conv2d(...) tn_at_nn_conv2d(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_layer *tn_at_nn_conv2d(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t in, int64_t out, int64_t rows,
	int64_t columns, const tn_nn_conv2d_options *options);

/** Choices of attention; start from TN_NN_ATTENTION_OPTIONS_INIT. */
typedef struct tn_nn_attention_options {
	size_t n_bytes; /* sizeof(tn_nn_attention_options) of the caller */
	tn_dtype dtype;
	bool causal;	  /* t sees only u <= t */
	int64_t kv_heads; /* heads of keys and values; 0: as many as heads */
	bool no_bias;
	double gain; /* weights: tn_init_kaiming_uniform; biases: zeros */
} tn_nn_attention_options;
#define TN_NN_ATTENTION_OPTIONS_INIT                                           \
	{                                                                      \
		sizeof(tn_nn_attention_options), TN_F32, false, 0, false, 1    \
	}

/**
 * Self attention of several heads, d = width / heads wide each:
 * softmax(q k' / sqrt(d)) v, and a linear layer on all heads side by side.
 *
 * shapes  x [.., t, width] -> the same; query.weight [width, width],
 *         key.weight and value.weight [kv_heads d, width],
 *         out.weight [width, width], and their biases
 * dtypes  x = weights = biases = result: floats
 * errors  [nn.heads] they do not divide width, or kv_heads does not divide
 *         them   [nn.rank] x has no axis t
 * source  Vaswani et al. 2017; groups of heads: Ainslie et al. 2023
 */
#define tn_nn_attention(...) tn_at_nn_attention(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_layer *tn_at_nn_attention(const char *file, int32_t line,
	tn_params *p, const char *name, int64_t width, int64_t heads,
	const tn_nn_attention_options *options);

/**
 * In training x with elements zeroed with probability p, the others divided by
 * 1 - p, by the context's next random key; else x itself.
 *
 * errors  [nn.dropout] p is not within 0 <= p < 1
 * source  Srivastava et al. 2014
 */
#define tn_nn_dropout(...) tn_at_nn_dropout(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_nn_dropout(const char *file, int32_t line,
	tn_tensor *x, double p, bool training);

#endif
