/*
 * gpu.c: `tenon bench gpu`: kernels on a device, with all tensors in its memory.
 *
 * Each case is one compiled function, which is called several times before the
 * device is waited for. Memory-bound cases are compared with the driver's copy
 * of as many bytes, products with cuBLAS, each pair in turn; other cases have no
 * reference here: bench/peers/gpu.py measures PyTorch beside them. Elements are
 * random: a product of zeros takes less power, and so less time. On emulated
 * warps, and with --small, extents are small; times mean nothing then.
 */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_IN = 4,
	MAX_AXES = 4,
	N_LETTERS = 4,
	MOST_REPEAT = 1000,
	MOST_CALLS = 100000
};

#define ROW_SECONDS 0.02

typedef struct gpu_case {
	const char *name;
	tn_body *body;
	double goal; /* of the ratio, or of PyTorch's: docs/performance.md */
	int64_t big[N_LETTERS], small[N_LETTERS]; /* extents a, b, c, d */
	/* inputs: "f32:ab i64:a<b": extents a and b; numbers from 0 to b - 1 */
	const char *in;
	double flops;	     /* for each element of `volume`; 0: memory-bound */
	const char *volume;  /* letters */
	int32_t n_out;	     /* 0: one */
	bool is_product;     /* in[0] times in[1], which cuBLAS computes as well */
	bool tf32;	     /* by tn_options.tf32 */
	bool reads_as_written; /* it reads only as many bytes as it writes */
} gpu_case;

typedef struct gpu_run {
	const gpu_case *k;
	const int64_t *extent;
	int32_t n_in;
	tn_context *c;
	tn_function *f;
	tn_tensor *in[MAX_IN], *out; /* out: where a reference writes */
	double bytes; /* each input and each output once */
	int calls;    /* of one measurement */
} gpu_run;

/* ---- what is measured ---- */

static tn_status done(tn_tensor *y, tn_tensor **out)
{
	*out = y;
	return y != NULL ? TN_OK : TN_EINVAL;
}

static tn_status relu_ax_b(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	tn_tensor *t = tn_add(tn_mul(in[0], in[2]), in[3]);

	(void)c, (void)user;
	return done(tn_add(tn_relu(t), in[1]), out);
}

static tn_status bias_gelu(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	return done(tn_gelu(tn_add(in[0], in[1])), out);
}

static tn_status softmax(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	return done(tn_softmax(in[0], 1), out);
}

static tn_status norm(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	tn_tensor *t = tn_add(in[0], in[1]);

	(void)c, (void)user;
	return done(tn_layer_norm(t, in[2], in[3], 1, 1e-5), out);
}

static tn_status sum_rows(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const int64_t axis = 1;

	(void)c, (void)user;
	return done(tn_reduce_sum(in[0], &axis, 1, false), out);
}

static tn_status sum_columns(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const int64_t axis = 0;

	(void)c, (void)user;
	return done(tn_reduce_sum(in[0], &axis, 1, false), out);
}

static tn_status transpose(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const int64_t perm[] = {1, 0};

	(void)c, (void)user;
	return done(tn_neg(tn_transpose(in[0], perm, 2)), out);
}

static tn_status scan(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	return done(tn_cumsum(in[0], 1), out);
}

static tn_status gather(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	return done(tn_embedding(in[0], in[1]), out);
}

static tn_status scatter(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	return done(tn_scatter_add(in[1], in[0], in[2]), out);
}

static tn_status product(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	return done(tn_matmul(in[0], in[1]), out);
}

static tn_status product_gelu(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	return done(tn_gelu(tn_add(tn_matmul(in[0], in[1]), in[2])), out);
}

static tn_tensor *attend(void *user, tn_tensor *const *in)
{
	const gpu_run *r = user;
	double width = (double)r->extent[3];

	return tn_attention(in[0], in[1], in[2], true, 1 / sqrt(width));
}

static tn_status attention(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	return done(attend(user, in), out);
}

/* Forward and backward; the gradients are the outputs. */
static tn_status attention_step(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	if (tn_backward(attend(user, in), in[3]) < 0)
		return TN_EINVAL;
	for (int32_t i = 0; i < 3; i++) {
		out[i] = tn_gradient(in[i]);
		tn_zero_grad(in[i]);
	}
	return TN_OK;
}

static tn_status conv(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const int64_t one[] = {1, 1};

	(void)c, (void)user;
	return done(tn_conv(in[0], in[1], 1, one, 2, one, 2, one, 2, one, 2),
		out);
}

static const gpu_case cases[] = {
	{"relu_ax_b_plus_y", relu_ax_b, .goal = 0.92, .big = {8192, 8192},
		.small = {24, 40},
		.in = "f32:ab f32:ab f32:b f32:b"},
	{"bias_gelu_bf16", bias_gelu, .goal = 0.92, .big = {8192, 8192},
		.small = {24, 40},
		.in = "bf16:ab bf16:b"},
	{"softmax_1024", softmax, .goal = 0.88, .big = {65536, 1024},
		.small = {24, 40},
		.in = "f32:ab"},
	{"softmax_8192", softmax, .goal = 0.88, .big = {8192, 8192},
		.small = {5, 300},
		.in = "f32:ab"},
	{"softmax_65536", softmax, .goal = 0.88, .big = {1024, 65536},
		.small = {2, 1100},
		.in = "f32:ab"},
	{"layer_norm_residual", norm, .goal = 0.88, .big = {65536, 1024},
		.small = {24, 40},
		.in = "f32:ab f32:ab f32:b f32:b"},
	{"sum_rows", sum_rows, .goal = 0.88, .big = {8192, 8192},
		.small = {24, 40},
		.in = "f32:ab"},
	{"sum_columns", sum_columns, .goal = 0.88, .big = {8192, 8192},
		.small = {24, 40},
		.in = "f32:ab"},
	{"transpose", transpose, .goal = 0.80, .big = {8192, 8192},
		.small = {40, 24},
		.in = "f32:ab"},
	{"cumsum", scan, .goal = 0.60, .big = {8192, 8192},
		.small = {6, 70},
		.in = "f32:ab"},
	{"embedding", gather, .goal = 0.80, .big = {65536, 32768, 1024},
		.small = {12, 30, 24},
		.in = "i64:a<b f32:bc",
		.reads_as_written = true},
	{"scatter_add", scatter, .goal = 0.50, .big = {65536, 32768, 1024},
		.small = {12, 30, 24},
		.in = "i64:a<b f32:bc f32:ac"},
	{"product_bf16_4096", product, .goal = 0.90, .big = {4096, 4096, 4096},
		.small = {32, 48, 16},
		.in = "bf16:ac bf16:cb",
		.flops = 2, .volume = "abc", .is_product = true},
	{"product_bf16_8192", product, .goal = 0.90, .big = {8192, 8192, 8192},
		.small = {32, 32, 32},
		.in = "bf16:ac bf16:cb",
		.flops = 2, .volume = "abc", .is_product = true},
	{"product_bf16_gpt", product, .goal = 0.80, .big = {16384, 3072, 768},
		.small = {48, 24, 16},
		.in = "bf16:ac bf16:cb",
		.flops = 2, .volume = "abc", .is_product = true},
	{"product_f16_2048", product, .goal = 0.80, .big = {2048, 2048, 2048},
		.small = {32, 32, 16},
		.in = "f16:ac f16:cb",
		.flops = 2, .volume = "abc", .is_product = true},
	{"product_f32_4096", product, .goal = 0.85, .big = {4096, 4096, 4096},
		.small = {17, 33, 20},
		.in = "f32:ac f32:cb",
		.flops = 2, .volume = "abc", .is_product = true},
	{"product_tf32_4096", product, .goal = 0.85, .big = {4096, 4096, 4096},
		.small = {17, 33, 20},
		.in = "f32:ac f32:cb",
		.flops = 2, .volume = "abc", .is_product = true, .tf32 = true},
	{"product_gelu_bf16", product_gelu, .goal = 1.10, .big = {16384, 3072, 768},
		.small = {48, 24, 16},
		.in = "bf16:ac bf16:cb bf16:b",
		.flops = 2, .volume = "abc"},
	/* causal: two products, of which half is needed; five more for gradients */
	{"attention_bf16", attention, .goal = 0.80, .big = {4, 16, 4096, 128},
		.small = {1, 2, 20, 16},
		.in = "bf16:abcd bf16:abcd bf16:abcd",
		.flops = 2, .volume = "abccd"},
	{"attention_step_bf16", attention_step, .goal = 0.75, .big = {4, 16, 4096, 128},
		.small = {1, 2, 20, 16},
		.in = "bf16:abcd bf16:abcd bf16:abcd bf16:abcd",
		.flops = 7, .volume = "abccd", .n_out = 3},
	{"conv_3x3_f16", conv, .goal = 0.75, .big = {64, 256, 28, 3},
		.small = {2, 8, 6, 3},
		.in = "f16:abcc f16:bbdd",
		.flops = 2, .volume = "abccbdd"},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

/* ---- one case ---- */

static double volume(const gpu_run *r, const char *letters)
{
	double n = 1;

	for (; *letters != '\0'; letters++)
		n *= (double)r->extent[*letters - 'a'];
	return n;
}

/* The dtype of a name, which ends at a colon. */
static tn_dtype dtype_at(const char *name)
{
	size_t n = strcspn(name, ":");
	tn_dtype t = TN_F32;

	for (int i = 0; tn_dtype_name((tn_dtype)i) != NULL; i++) {
		const char *known = tn_dtype_name((tn_dtype)i);

		if (strlen(known) == n && strncmp(name, known, n) == 0)
			t = (tn_dtype)i;
	}
	return t;
}

/* The input that `text` describes, with random elements; NULL: failed. */
static tn_tensor *input(gpu_run *r, const char *text)
{
	tn_dtype t = dtype_at(text);
	int64_t shape[MAX_AXES], n = 1, below = 0;
	int32_t rank = 0;
	tn_tensor *x;
	void *data;

	for (text = strchr(text, ':') + 1; *text >= 'a'; text++) {
		shape[rank] = r->extent[*text - 'a'];
		n *= shape[rank++];
	}
	if (*text == '<')
		below = r->extent[text[1] - 'a'];
	data = cli_alloc((size_t)n, tn_dtype_bytes(t));
	if (data == NULL)
		return NULL;
	tn_fill_random(t, data, n, (uint64_t)r->n_in + 1, 0, below);
	x = tn_tensor_new(r->c, t, rank, shape, data);
	free(data);
	r->bytes += (double)n * (double)tn_dtype_bytes(t);
	return x;
}

static bool inputs(gpu_run *r)
{
	const char *text = r->k->in;

	while (text != NULL) {
		tn_tensor *x = input(r, text);

		if (x == NULL)
			return false;
		if (r->n_in < r->k->n_out)
			tn_requires_grad(x);
		r->in[r->n_in++] = x;
		text = strchr(text, ' ');
		if (text != NULL)
			text++;
	}
	return true;
}

/* One call; n_out results are dropped. */
static bool call(gpu_run *r)
{
	tn_tensor *out[MAX_IN];
	tn_status s;

	tn_scope_enter(r->c);
	s = tn_function_call(r->f, r->in, out);
	if (s >= 0)
		s = tn_eval(out, r->k->n_out > 0 ? r->k->n_out : 1);
	tn_scope_leave(r->c);
	return s >= 0;
}

static bool calls(gpu_run *r, double *seconds)
{
	double start;

	if (tn_device_wait(r->c) < 0)
		return false;
	start = cli_now();
	for (int i = 0; i < r->calls; i++)
		if (!call(r))
			return false;
	if (tn_device_wait(r->c) < 0)
		return false;
	*seconds = (cli_now() - start) / r->calls;
	return true;
}

/* The first call, which compiles; the bytes of results; how many calls last long
 * enough. */
static bool prepare(gpu_run *r)
{
	tn_tensor *out[MAX_IN];
	double written = 0, seconds = 0;

	if (!inputs(r) ||
		tn_compile(&r->f, r->c, r->k->body, r, r->n_in,
		    r->k->n_out > 0 ? r->k->n_out : 1, r->k->name) < 0 ||
		tn_function_call(r->f, r->in, out) < 0)
		return false;
	for (int32_t i = 0; i == 0 || i < r->k->n_out; i++)
		written += (double)tn_tensor_n_elems(out[i]) *
			   (double)tn_dtype_bytes(tn_tensor_dtype(out[i]));
	r->bytes = r->k->reads_as_written ? 2 * written : r->bytes + written;
	r->out = out[0];
	r->calls = 1;
	if (tn_eval(out, r->k->n_out > 0 ? r->k->n_out : 1) < 0 ||
		!calls(r, &seconds) || !calls(r, &seconds))
		return false;
	if (seconds * MOST_CALLS > ROW_SECONDS)
		r->calls = (int)(ROW_SECONDS / seconds) + 1;
	else
		r->calls = MOST_CALLS;
	return true;
}

static bool reference(gpu_run *r, bench_gpu *g, double *seconds)
{
	const int64_t *e = r->extent;

	if (r->k->is_product)
		return bench_gpu_product(g, r->k->tf32, r->in[0], r->in[1],
			r->out, e[0], e[1], e[2], r->calls, seconds);
	return r->k->flops == 0 &&
	       bench_gpu_copy(g, r->bytes / 2, r->calls, seconds);
}

static bool measure(
	tn_context *c, const gpu_case *k, bool small, int repeat, bool json)
{
	double ours[MOST_REPEAT], ratio[MOST_REPEAT], other = 0;
	gpu_run r = {.k = k, .c = c, .extent = small ? k->small : k->big};
	bench_result out = {.bench = "gpu", .name = k->name, .target = k->goal};
	bench_gpu *g = NULL;
	bool good;

	cli_progress("bench gpu: %s", k->name);
	tn_scope_enter(c);
	good = prepare(&r);
	if (good)
		g = bench_gpu_open(c);
	for (int i = -1; i < repeat && good; i++) {
		double s = 0;

		good = calls(&r, &s);
		if (i < 0)
			continue;
		ours[i] = s;
		if (g != NULL && reference(&r, g, &other))
			ratio[i] = other / s;
		else
			ratio[i] = -1;
	}
	cli_progress("%s", "");
	if (good) {
		out.seconds = bench_median(ours, repeat);
		out.rate = k->flops == 0 ? r.bytes / out.seconds : 0;
		out.flops = k->flops * volume(&r, k->flops == 0 ? "" : k->volume);
		out.flops /= out.seconds;
		out.ratio = bench_median(ratio, repeat);
		if (out.ratio > 0)
			out.reference = k->is_product ? "cublas" : "copy";
		bench_say(&out, json);
	} else {
		cli_diag(tn_context_diag(c));
	}
	bench_gpu_close(g);
	tn_function_free(r.f);
	tn_scope_leave(c);
	return good;
}

int bench_gpu_cases(const char *device, const char *only, bool small,
	int repeat, bool json)
{
	tn_options o = TN_OPTIONS_INIT;
	bool all = true;
	int n = 0;

	o.device = device;
	for (int i = 0; i < N_CASES; i++) {
		tn_context *c = NULL;

		if (only != NULL && strstr(cases[i].name, only) == NULL)
			continue;
		o.tf32 = cases[i].tf32;
		if (cli_context_new(&c, &o) < 0)
			return cli_no_context();
		if (n++ == 0)
			bench_heading(json);
		all = measure(c, &cases[i], small, repeat, json) && all;
		cli_context_free(c);
	}
	if (n == 0)
		return cli_error(NULL, "bench.case",
			"no case contains \"%s\"; `tenon bench gpu` lists them",
			only);
	return all ? CLI_OK : CLI_FAILED;
}
