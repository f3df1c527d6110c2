/*
 * api.c: `tenon bench api`: measures the cost of recording.
 *
 *   record_op   one call on small tensors, recorded: limit 1 us
 *   lookup_op   per call, the time to find the program that was compiled
 *               before, and of running it
 *   mlp_record_call  the same in a training step of [32,784]-512-512-10 with
 *               AdamW: forward, adjoints and update, per recorded call
 *   mlp_peak_memory  of that step: the least memory that any schedule needs,
 *               divided by the used memory: limit 1 / 1.15
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { OPS = 100, WARM = 10 };

static void say(const char *name, double seconds, const char *reference,
	double limit, bool json)
{
	bench_result r = {.bench = "api",
		.name = name,
		.seconds = seconds,
		.reference = reference,
		.ratio = limit / seconds,
		.target = 1};

	bench_say(&r, json);
}

/* Measures seconds per call of recording, and of everything after it. */
static bool chain(tn_context *c, tn_tensor *w, double *record, double *rest)
{
	tn_tensor *x = w;
	double start = cli_now(), mid;
	tn_status s;

	if (tn_scope_enter(c) < 0)
		return false;
	for (int i = 0; i < OPS; i++)
		x = i % 2 ? tn_add(x, w) : tn_tanh(x);
	tn_keep(x);
	tn_scope_leave(c);
	mid = cli_now();
	s = tn_eval(&x, 1);
	*rest = (cli_now() - mid) / OPS;
	*record = (mid - start) / OPS;
	tn_drop(x);
	return s >= 0;
}

static bool overhead(tn_context *c, int repeat, bool json)
{
	double *record = cli_alloc((size_t)repeat, sizeof *record);
	double *rest = cli_alloc((size_t)repeat, sizeof *rest);
	int64_t n = 8;
	tn_tensor *w = tn_parameter(c, "w", TN_F32, 1, &n, NULL);
	bool good = record != NULL && rest != NULL;

	tn_no_grad_enter(c);
	for (int i = -WARM; i < repeat && good; i++) {
		double a = 0, b = 0;

		good = chain(c, w, &a, &b);
		if (i >= 0) {
			record[i] = a;
			rest[i] = b;
		}
	}
	tn_no_grad_leave(c);
	if (good) {
		say("record_op", bench_median(record, repeat), "limit_1us",
			1e-6, json);
		say("lookup_op", bench_median(rest, repeat), "limit_1us", 1e-6,
			json);
	}
	free(record);
	free(rest);
	tn_drop(w);
	return good;
}

/* ---- a training step ---- */

typedef struct mlp {
	tn_optimizer *opt;
	tn_tensor *w[3], *b[3];
	float *x;
	int64_t *y;
} mlp;

static const int64_t width[] = {784, 512, 512, 10};
enum { B = 32 };

static bool mlp_new(tn_context *c, mlp *m)
{
	if (tn_optimizer_new(&m->opt, c, "adamw", NULL) < 0)
		return false;
	for (int i = 0; i < 3; i++) {
		int64_t shape[] = {width[i], width[i + 1]};
		float *w = cli_alloc(
			(size_t)(shape[0] * shape[1]), sizeof *w);

		if (w == NULL)
			return false;
		tn_fill_random(TN_F32, w, shape[0] * shape[1],
			(uint64_t)i + 1, 0, 0);
		for (int64_t k = 0; k < shape[0] * shape[1]; k++)
			w[k] *= 0.05f;
		m->w[i] = tn_parameter(c, "w", TN_F32, 2, shape, w);
		m->b[i] = tn_parameter(c, "b", TN_F32, 1, &shape[1], NULL);
		free(w);
		tn_optimizer_add(m->opt, m->w[i]);
		tn_optimizer_add(m->opt, m->b[i]);
	}
	m->x = cli_alloc((size_t)(B * width[0]), sizeof *m->x);
	m->y = cli_alloc(B, sizeof *m->y);
	if (m->x == NULL || m->y == NULL)
		return false;
	tn_fill_random(TN_F32, m->x, B * width[0], 7, 0, 0);
	tn_fill_random(TN_I64, m->y, B, 8, 0, 10);
	return true;
}

/*
 * The least number of bytes that any schedule of this step needs. Parameters,
 * both moments and the batch are live all the time; the gradient of a weight is
 * added to its moments where it is computed. Each other value is live from the
 * layer that computes it to the last one that reads it:
 *
 *     forward, after layer i       h[0] .. h[i]
 *     adjoint of layer i           h[0] .. h[i-1], cotangents of h[i], h[i-1]
 *
 * The adjoint of relu reads h.
 */
static int64_t least_bytes(void)
{
	int64_t weights = 0, batch = B * width[0] * 4 + B * 8, most = 0;
	int64_t before = 0; /* h[0] .. h[i-1] */

	for (int i = 0; i < 3; i++) {
		int64_t in = i > 0 ? B * width[i] * 4 : 0;
		int64_t out = B * width[i + 1] * 4, now;

		weights += (width[i] + 1) * width[i + 1] * 4;
		before += in;
		now = before + out + in;
		most = now > most ? now : most;
	}
	return 3 * weights + batch + most + 4; /* 4: the loss */
}

static void say_memory(const tn_stats *s, bool json)
{
	int64_t least = least_bytes();
	int64_t peak = s->bytes_peak + s->bytes_plans + s->bytes_cached;
	double ratio = (double)least / (double)peak;

	if (json)
		printf("{\"bench\":\"api\",\"case\":\"mlp_peak_memory\","
		       "\"bytes\":%lld,\"reference\":\"planned_minimum\","
		       "\"reference_bytes\":%lld,\"ratio\":%.6f,"
		       "\"target\":%.6f}\n",
			(long long)peak, (long long)least, ratio, 1 / 1.15);
	else
		printf("%-24s %7.2f MB %9s  %-16s %6.2f %7.2f%s\n"
		       "  %.3f MB: values %.3f, slabs of programs %.3f, free "
		       "blocks %.3f; the least possible is %.3f MB: %.3f times "
		       "that\n",
			"mlp_peak_memory", 1e-6 * (double)peak, "-",
			"planned_minimum", ratio, 1 / 1.15,
			ratio < 1 / 1.15 ? "  missed" : "",
			1e-6 * (double)peak, 1e-6 * (double)s->bytes_peak,
			1e-6 * (double)s->bytes_plans,
			1e-6 * (double)s->bytes_cached, 1e-6 * (double)least,
			1 / ratio);
}

/* Runs a step; *record: seconds until everything was recorded. */
static bool step(tn_context *c, mlp *m, double *record)
{
	int64_t xs[] = {B, width[0]}, ys[] = {B};
	tn_tensor *h, *y, *loss, *all[6];
	double start;
	tn_status s;

	tn_scope_enter(c);
	h = tn_tensor_new(c, TN_F32, 2, xs, m->x); /* (B, 784) */
	y = tn_tensor_new(c, TN_I64, 1, ys, m->y); /* (B) */
	start = cli_now();
	for (int i = 0; i < 3; i++) {
		h = tn_add(tn_matmul(h, m->w[i]), m->b[i]);
		if (i < 2)
			h = tn_relu(h); /* (B, 512) */
	}
	loss = tn_cross_entropy(h, y);
	tn_backward(loss, NULL);
	tn_optimizer_step(m->opt);
	tn_scope_leave(c);
	*record = cli_now() - start;
	for (int i = 0; i < 3; i++) {
		all[2 * i] = m->w[i];
		all[2 * i + 1] = m->b[i];
	}
	s = tn_eval(all, 6);
	return s >= 0;
}

static bool training(tn_context *c, int repeat, bool json)
{
	mlp m = {0};
	double *whole = cli_alloc((size_t)repeat, sizeof *whole);
	double *record = cli_alloc((size_t)repeat, sizeof *record);
	bool good = whole != NULL && record != NULL && mlp_new(c, &m);
	tn_stats before, after;

	tn_context_stats(c, &before);
	for (int i = -WARM; i < repeat && good; i++) {
		double start = cli_now(), r;

		good = step(c, &m, &r);
		if (i == -1)
			tn_context_stats(c, &before);
		if (i >= 0) {
			whole[i] = cli_now() - start;
			record[i] = r;
		}
	}
	tn_context_stats(c, &after);
	if (good) {
		double calls = (double)(after.n_calls - before.n_calls) / repeat;
		double r = bench_median(record, repeat);
		double w = bench_median(whole, repeat);

		say("mlp_record_call", r / calls, "limit_1us", 1e-6, json);
		if (!json)
			printf("  a step of the network: %.3f ms, %.0f calls; "
			       "%lld programs compiled while measuring\n",
				1e3 * w, calls,
				(long long)(after.n_plan_misses -
					before.n_plan_misses));
		say_memory(&after, json);
	}
	tn_optimizer_free(m.opt);
	free(m.x);
	free(m.y);
	free(whole);
	free(record);
	return good;
}

int bench_api(tn_context *c, int repeat, bool json)
{
	bool good;

	bench_heading(json);
	good = overhead(c, repeat * 10, json) &&
		training(c, repeat, json);
	if (!good)
		cli_diag(tn_context_diag(c));
	fflush(stdout);
	return good ? CLI_OK : CLI_FAILED;
}
