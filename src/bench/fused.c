/*
 * fused.c: `tenon bench fused`: measures memory-bound kernels of 16M elements.
 * Bytes: each input and each output once. Each run of a program is followed by
 * a run of the best hand-written loop with the same ratio of reads to writes
 * and the same number of bytes, so that both meet the same state of the
 * machine; the result is the median of the ratios of the pairs.
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

typedef struct fused_case {
	const char *name;
	bench_traffic traffic;
	double target;
	const char *text;
} fused_case;

#define PROGRAM "program {\n"
#define SQUARE "  x: f32[4096,4096]\n"

static const fused_case cases[] = {
	{"relu_ax_b_plus_y", BENCH_READ2_WRITE, 0.8,
		PROGRAM SQUARE "  y: f32[4096,4096]\n"
			       "  a: f32[1]\n"
			       "  b: f32[1]\n"
			       "  t = mul(x, a)\n"
			       "  u = add(t, b)\n"
			       "  v = relu(u)\n"
			       "  o = add(v, y)\n"
			       "  return o\n}\n"},
	/* bound by arithmetic: one erf per element */
	{"bias_gelu", BENCH_READ_WRITE, 0.6,
		PROGRAM SQUARE "  b: f32[4096]\n"
			       "  t = add(x, b)\n"
			       "  o = gelu(t)\n"
			       "  return o\n}\n"},
	{"softmax_last", BENCH_READ_WRITE, 0.8,
		PROGRAM SQUARE "  o = softmax(x, axis=1)\n  return o\n}\n"},
	{"softmax_first", BENCH_READ_WRITE, 0.8,
		PROGRAM SQUARE "  o = softmax(x, axis=0)\n  return o\n}\n"},
	{"layer_norm_residual", BENCH_READ2_WRITE, 0.8,
		PROGRAM "  x: f32[8192,1024]\n"
			"  r: f32[8192,1024]\n"
			"  g: f32[1024]\n"
			"  b: f32[1024]\n"
			"  t = add(x, r)\n"
			"  o = layer_norm(t, g, b)\n"
			"  return o\n}\n"},
	{"rms_norm", BENCH_READ_WRITE, 0.8,
		PROGRAM SQUARE "  g: f32[4096]\n"
			       "  o = rms_norm(x, g)\n"
			       "  return o\n}\n"},
	{"sum_axis_0", BENCH_READ, 0.8,
		PROGRAM SQUARE
		"  o = reduce_sum(x, axes=[0])\n  return o\n}\n"},
	{"sum_axis_1", BENCH_READ, 0.8,
		PROGRAM SQUARE
		"  o = reduce_sum(x, axes=[1])\n  return o\n}\n"},
	{"sum_all", BENCH_READ, 0.8,
		PROGRAM SQUARE "  o = reduce_sum(x)\n  return o\n}\n"},
	{"batch_norm", BENCH_READ_WRITE, 0.8,
		PROGRAM "  x: f32[32,64,56,56]\n"
			"  g: f32[64]\n"
			"  b: f32[64]\n"
			"  m: f32[64]\n"
			"  v: f32[64]\n"
			"  o, m1, v1 = batch_norm(x, g, b, m, v)\n"
			"  return o, m1, v1\n}\n"},
	{"transpose_add", BENCH_READ2_WRITE, 0.8,
		PROGRAM SQUARE "  y: f32[4096,4096]\n"
			       "  t = transpose(x, perm=[1,0])\n"
			       "  o = add(t, y)\n"
			       "  return o\n}\n"},
	{"box_blur_3x3", BENCH_READ_WRITE, 0.8,
		"op blur(x[h, w]:float) -> o {\n"
		"  s[h, w] += x[h + k - 1, w + l - 1] else 0 for k < 3, l < 3;\n"
		"  o[h, w] = s[h, w] / 9 }\n" PROGRAM SQUARE
		"  o = blur(x)\n  return o\n}\n"},
	{"cross_entropy", BENCH_READ, 0.8,
		PROGRAM "  x: f32[8192,8192]\n"
			"  t: i64[8192]\n"
			"  o = cross_entropy(x, t)\n"
			"  return o\n}\n"},
	{"argmax", BENCH_READ, 0.8,
		PROGRAM SQUARE "  o = argmax(x, axis=1)\n  return o\n}\n"},
};
enum { N_CASES = sizeof cases / sizeof cases[0], MAX_REPEAT = 1000 };

bool bench_fused_text(int i, const char **name, const char **text)
{
	if (i >= N_CASES)
		return false;
	*name = cases[i].name;
	*text = cases[i].text;
	return true;
}

static double bytes_of(const tn_program *p)
{
	double n = 0;

	for (int32_t i = 0; i < tn_program_n_inputs(p); i++)
		n += (double)tn_program_input(p, i)->n_bytes;
	for (int32_t i = 0; i < tn_program_n_outputs(p); i++)
		n += (double)tn_program_output(p, i)->n_bytes;
	return n;
}

/* Times a program and the loop in turn; false: failed, and reported. */
static bool pairs(tn_context *c, tn_program *p, const cli_arrays *a,
	bench_ref *ref, int repeat, bench_traffic t, bench_result *out)
{
	double ours[MAX_REPEAT], ratio[MAX_REPEAT];
	double per_byte = bytes_of(p) / bench_ref_bytes(ref, t);

	for (int i = -2; i < repeat; i++) { /* the first two warm up */
		double start = cli_now(), seconds;

		if (tn_program_run(p, a->in, a->out) < 0) {
			cli_diag(tn_context_diag(c));
			return false;
		}
		seconds = cli_now() - start;
		if (i >= 0) {
			ours[i] = seconds;
			ratio[i] = bench_ref_run(ref, t) * per_byte / seconds;
		}
	}
	out->seconds = bench_median(ours, repeat);
	out->ratio = bench_median(ratio, repeat);
	out->rate = bytes_of(p) / out->seconds;
	return true;
}

static bool measure(tn_context *c, const fused_case *f, int repeat, bool json)
{
	static const double arrays[] = {1, 2, 3};
	bench_result r = {.bench = "fused", .name = f->name,
		.target = f->target};
	cli_list none = {NULL, 0};
	tn_program *p = NULL;
	cli_arrays *a = NULL;
	bench_ref *ref = NULL;
	bool good = false;

	cli_progress("bench fused: %s", f->name);
	if (tn_program_parse(&p, c, f->text, strlen(f->text), f->name) < 0 ||
		tn_program_compile(p) < 0) {
		cli_diag(tn_context_diag(c));
		goto out;
	}
	a = cli_arrays_new(c, &(cli_model){.program = p}, &none, 1, false);
	if (a == NULL)
		goto out;
	ref = bench_ref_new(
		(int64_t)(bytes_of(p) / arrays[f->traffic] / sizeof(float)),
		0);
	if (ref == NULL)
		goto out;
	r.reference = bench_ref_choose(ref, f->traffic);
	good = pairs(c, p, a, ref, repeat, f->traffic, &r);
	cli_progress("%s", "");
	if (good)
		bench_say(&r, json);
out:
	bench_ref_free(ref);
	cli_arrays_free(a);
	tn_program_free(p);
	return good;
}

int bench_fused(tn_context *c, const char *only, int repeat, bool json)
{
	bool all = true;
	int n = 0;

	bench_heading(json);
	for (int i = 0; i < N_CASES; i++)
		if (only == NULL || strstr(cases[i].name, only) != NULL) {
			n++;
			all = measure(c, &cases[i], repeat, json) && all;
		}
	if (n == 0)
		return cli_error(NULL, "bench.case",
			"no case contains \"%s\"; `tenon bench fused` lists "
			"them",
			only);
	return all ? CLI_OK : CLI_FAILED;
}
