/*
 * step.c: `tenon bench step`: measures a training step as one compiled
 * function: forward, gradients, AdamW.
 *
 *   NAME_step      the compiled step, against the same calls without compiling
 *   NAME_overhead  time of the compiled step of a small network outside of its
 *                  kernels, compared with 5 us plus 0.3 us for each kernel
 *   NAME_memory    memory that is live between steps plus that of the plan,
 *                  divided by the used memory: target 1 / 1.05
 *
 * gpt: 6 layers. resnet: 8 blocks of two convolutions. It is an error if a step
 * copies a parameter or compiles anything.
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { LAYERS = 6, BLOCKS = 8, WARMUP = 3 };

typedef struct unit {
	tn_layer *conv, *norm;
} unit;

typedef struct net {
	tn_context *c;
	tn_params *p;
	tn_optimizer *o;
	tn_function *f;
	bool is_gpt;
	int64_t batch, size, width; /* size: of an image, or of the context */
	struct {
		tn_layer *norm1, *attention, *norm2, *up, *down;
	} layer[LAYERS];
	tn_layer *token, *place, *norm, *head;
	unit stem, a[BLOCKS], b[BLOCKS], skip[BLOCKS];
	tn_tensor *x, *y, *t; /* x, y: a batch; t: numbers of positions */
	double outside;	      /* seconds of the last step outside of kernels */
} net;

enum { VOCABULARY = 64, HEADS = 4, CLASSES = 10 };

/* ---- a transformer ---- */

static void gpt_new(net *n)
{
	tn_nn_attention_options o = TN_NN_ATTENTION_OPTIONS_INIT;
	int64_t w = n->width;

	o.causal = true;
	n->token = tn_nn_embedding(n->p, "token", VOCABULARY, w, NULL);
	n->place = tn_nn_embedding(n->p, "place", n->size, w, NULL);
	for (int i = 0; i < LAYERS; i++) {
		tn_params_enter(n->p, "block%d", i);
		n->layer[i].norm1 = tn_nn_layer_norm(n->p, "norm1", w, NULL);
		n->layer[i].attention = tn_nn_attention(
			n->p, "attention", w, HEADS, &o);
		n->layer[i].norm2 = tn_nn_layer_norm(n->p, "norm2", w, NULL);
		n->layer[i].up = tn_nn_linear(n->p, "up", w, 4 * w, NULL);
		n->layer[i].down = tn_nn_linear(n->p, "down", 4 * w, w, NULL);
		tn_params_leave(n->p);
	}
	n->norm = tn_nn_layer_norm(n->p, "norm", w, NULL);
}

static tn_tensor *gpt_run(const net *n, tn_tensor *ids)
{
	const int64_t flat[] = {n->batch * n->size, VOCABULARY};
	tn_tensor *x = tn_add(tn_nn_forward(n->token, ids),
		tn_nn_forward(n->place, n->t)); /* (B, T, C) */

	for (int i = 0; i < LAYERS; i++) {
		tn_tensor *h = tn_nn_forward(n->layer[i].norm1, x);

		x = tn_add(x, tn_nn_forward(n->layer[i].attention, h));
		h = tn_nn_forward(n->layer[i].norm2, x);
		h = tn_gelu_tanh(tn_nn_forward(n->layer[i].up, h));
		x = tn_add(x, tn_nn_forward(n->layer[i].down, h));
	}
	x = tn_linear_nobias(tn_nn_forward(n->norm, x),
		tn_params_get(n->p, "token.weight")); /* (B, T, V) */
	return tn_reshape(x, flat, 2);
}

/* ---- a residual network ---- */

static unit unit_new(net *n, const char *name, int i, int64_t in, int64_t out,
	int64_t k, int64_t stride)
{
	tn_nn_conv2d_options o = TN_NN_CONV2D_OPTIONS_INIT;
	unit u;

	o.stride[0] = o.stride[1] = stride;
	o.padding[0] = o.padding[1] = k / 2;
	o.no_bias = true;
	tn_params_enter(n->p, "%s%d", name, i);
	u.conv = tn_nn_conv2d(n->p, "conv", in, out, k, k, &o);
	u.norm = tn_nn_batch_norm(n->p, "norm", out, NULL);
	tn_params_leave(n->p);
	return u;
}

static tn_tensor *unit_run(const unit *u, tn_tensor *x)
{
	return tn_nn_forward(u->norm, tn_nn_forward(u->conv, x));
}

/* Does block i halve the image? The third, fifth and seventh do. */
static bool halves(int i)
{
	return i > 0 && i % 2 == 0;
}

static void resnet_new(net *n)
{
	int64_t w = n->width;

	n->stem = unit_new(n, "stem", 0, 3, w, 3, 1);
	for (int i = 0; i < BLOCKS; i++) {
		int64_t to = halves(i) ? 2 * w : w;

		n->a[i] = unit_new(n, "a", i, w, to, 3, halves(i) ? 2 : 1);
		n->b[i] = unit_new(n, "b", i, to, to, 3, 1);
		if (halves(i))
			n->skip[i] = unit_new(n, "skip", i, w, to, 1, 2);
		w = to;
	}
	n->head = tn_nn_linear(n->p, "head", w, CLASSES, NULL);
}

static tn_tensor *resnet_run(const net *n, tn_tensor *x)
{
	int64_t flat[] = {n->batch, 8 * n->width};
	tn_tensor *h = tn_relu(unit_run(&n->stem, x)); /* (B, W, S, S) */

	for (int i = 0; i < BLOCKS; i++) {
		tn_tensor *r = tn_relu(unit_run(&n->a[i], h));

		r = unit_run(&n->b[i], r);
		if (halves(i))
			h = unit_run(&n->skip[i], h);
		h = tn_relu(tn_add(h, r));
	}
	return tn_nn_forward(
		n->head, tn_reshape(tn_global_avg_pool(h), flat, 2));
}

/* ---- steps ---- */

static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	net *n = user;
	tn_tensor *y = n->is_gpt ? gpt_run(n, in[0]) : resnet_run(n, in[0]);
	tn_tensor *loss = tn_cross_entropy(y, in[1]);

	(void)tn_backward(loss, NULL);
	(void)tn_optimizer_step(n->o);
	tn_no_grad_enter(c);
	out[0] = tn_copy(loss);
	tn_no_grad_leave(c);
	return TN_OK;
}

/* Seconds of one step, including reading its loss; negative: failed. */
static double step(net *n, bool compiled)
{
	tn_tensor *in[] = {n->x, n->y}, *loss;
	double start = cli_now(), end;
	tn_stats a, b;
	tn_status s;
	float v;

	tn_context_stats(n->c, &a);
	tn_scope_enter(n->c);
	s = compiled ? tn_function_call(n->f, in, &loss)
		     : body(n->c, n, in, &loss);
	if (s >= 0)
		s = tn_read(loss, &v, sizeof v);
	if (s >= 0)
		s = tn_params_eval(n->p);
	tn_scope_leave(n->c);
	end = cli_now();
	tn_context_stats(n->c, &b);
	n->outside = end - start - 1e-3 * (b.run_ms - a.run_ms);
	return s < 0 ? -1 : end - start;
}

static void make_batch(net *n)
{
	int64_t t[256], ids[] = {n->batch, n->size};
	int64_t picture[] = {n->batch, 3, n->size, n->size};
	int64_t labels[] = {n->is_gpt ? n->batch * n->size : n->batch};

	for (int i = 0; i < 256; i++)
		t[i] = i;
	tn_set_seed(n->c, 1);
	n->t = tn_tensor_new(n->c, TN_I64, 1, &n->size, t);
	if (n->is_gpt)
		n->x = tn_tensor_new(n->c, TN_I64, 2, ids, NULL);
	else
		n->x = tn_normal(tn_random_key(n->c), picture, 4, TN_F32);
	n->y = tn_tensor_new(n->c, TN_I64, 1, labels, NULL);
}

static bool net_new(net *n, bool is_gpt, int64_t batch, int64_t size,
	int64_t width)
{
	*n = (net){.is_gpt = is_gpt,
		.batch = batch,
		.size = size,
		.width = width};
	if (cli_context_new(&n->c, NULL) < 0 ||
		tn_params_new(&n->p, n->c) < 0 ||
		tn_optimizer_new(&n->o, n->c, "adamw", NULL) < 0)
		return false;
	if (is_gpt)
		gpt_new(n);
	else
		resnet_new(n);
	make_batch(n);
	return tn_optimizer_add_all(n->o, n->p) >= 0 &&
		tn_compile(&n->f, n->c, body, n, 2, 1, "step") >= 0;
}

static void net_free(net *n)
{
	tn_function_free(n->f);
	tn_optimizer_free(n->o);
	tn_params_free(n->p);
	cli_context_free(n->c);
}

/* ---- measurements ---- */

static void say(const char *model, const char *what, double seconds,
	const char *reference, double ratio, double target, bool json)
{
	char name[48];
	bench_result r = {.bench = "step",
		.name = name,
		.seconds = seconds,
		.reference = reference,
		.ratio = ratio,
		.target = target};

	snprintf(name, sizeof name, "%s_%s", model, what);
	bench_say(&r, json);
}

/*
 * After warm-up steps, measures in turn the plain step, if there is one, and
 * the compiled step. Sets out to the medians; without a plain step out[0] is
 * the time outside of kernels. false: a step failed.
 */
static bool measure(net *plain, net *ours, int repeat, double out[2])
{
	double *v = cli_alloc(2 * (size_t)repeat, sizeof *v);
	bool good = v != NULL;

	for (int i = -WARMUP; i < repeat && good; i++) {
		double a = plain != NULL ? step(plain, false) : 0;
		double b = step(ours, true);

		good = a >= 0 && b >= 0;
		if (i >= 0) {
			v[i] = plain != NULL ? a : ours->outside;
			v[repeat + i] = b;
		}
	}
	if (good) {
		out[0] = bench_median(v, repeat);
		out[1] = bench_median(v + repeat, repeat);
	}
	free(v);
	return good;
}

/* Checks that warm steps compile nothing and copy no parameter. */
static bool is_steady(net *n)
{
	tn_stats a, b;

	tn_context_stats(n->c, &a);
	if (step(n, true) < 0)
		return false;
	tn_context_stats(n->c, &b);
	if (a.n_copies == b.n_copies && a.n_programs == b.n_programs &&
		a.n_inner_copies == b.n_inner_copies)
		return true;
	cli_error(NULL, "bench.step",
		"a step must copy and compile nothing, but copied %lld values and "
		"%lld parts, and compiled %lld programs",
		(long long)(b.n_copies - a.n_copies),
		(long long)(b.n_inner_copies - a.n_inner_copies),
		(long long)(b.n_programs - a.n_programs));
	return false;
}

static bool speed(const char *name, bool is_gpt, int64_t batch, int64_t size,
	int64_t width, int repeat, bool json)
{
	net plain = {0}, ours = {0};
	double t[2];
	tn_stats s;
	bool good = net_new(&plain, is_gpt, batch, size, width) &&
		net_new(&ours, is_gpt, batch, size, width) &&
		measure(&plain, &ours, repeat, t) && is_steady(&ours);

	if (good) {
		int64_t planned, peak;

		tn_context_stats(ours.c, &s);
		planned = s.bytes_live + s.bytes_plans;
		peak = s.bytes_peak + s.bytes_plans + s.bytes_cached;
		say(name, "step", t[1], "uncompiled", t[0] / t[1], 1, json);
		say(name, "memory", t[1], "planned",
			(double)planned / (double)peak, 1 / 1.05, json);
		if (!json)
			printf("  %.2f MB between steps, %.2f in slabs of plans, "
			       "%.2f at most, %.2f in free blocks\n",
				1e-6 * (double)s.bytes_live,
				1e-6 * (double)s.bytes_plans,
				1e-6 * (double)s.bytes_peak,
				1e-6 * (double)s.bytes_cached);
	} else {
		cli_diag(tn_context_diag(
			ours.c != NULL ? ours.c : plain.c));
	}
	net_free(&plain);
	net_free(&ours);
	return good;
}

static bool overhead(const char *name, bool is_gpt, int repeat, bool json)
{
	net n = {0};
	double t[2];
	tn_stats s;
	bool good = net_new(&n, is_gpt, 1, 8, 4) &&
		measure(NULL, &n, 10 * repeat, t) && is_steady(&n);

	if (good) {
		tn_context_stats(n.c, &s);
		say(name, "overhead", t[0], "5us+0.3us/kernel",
			(5e-6 + 0.3e-6 * (double)s.n_kernels) / t[0], 1, json);
		if (!json)
			printf("  %lld kernels in %lld programs; the step "
			       "takes %.1f us\n",
				(long long)s.n_kernels,
				(long long)s.n_programs, 1e6 * t[1]);
	} else {
		cli_diag(tn_context_diag(n.c));
	}
	net_free(&n);
	return good;
}

static const char *const names[] = {"gpt", "resnet"};

const char *bench_step_name(int i)
{
	return names[i];
}

char *bench_step_text(int i)
{
	net n = {0};
	char *text = NULL, *copy = NULL;

	if ((i == 0 ? net_new(&n, true, 4, 64, 128)
		    : net_new(&n, false, 4, 16, 16)) &&
		step(&n, true) >= 0 &&
		tn_function_program_text(&text, n.f) >= 0) {
		copy = cli_alloc(strlen(text) + 1, 1);
		if (copy != NULL)
			strcpy(copy, text);
		tn_text_free(text);
	} else {
		cli_diag(tn_context_diag(n.c));
	}
	net_free(&n);
	return copy;
}

int bench_step(const char *only, int repeat, bool json)
{
	bool good = true;

	bench_heading(json);
	for (int i = 0; i < 2 && good; i++) {
		if (only != NULL && strcmp(only, names[i]) != 0)
			continue;
		good = overhead(names[i], i == 0, repeat, json) &&
			(i == 0 ? speed(names[i], true, 4, 64, 128, repeat, json)
				: speed(names[i], false, 4, 16, 16, repeat,
					  json));
	}
	return good ? CLI_OK : CLI_FAILED;
}
