/*
 * bench_math: nanoseconds per element of the helpers of generated code, on
 * 4096 floats in the first-level cache and one thread, against the C library
 * called element by element. One JSON object a line, as `tenon bench` prints.
 *
 *     $ build/bench/bench_math
 *     {"bench":"math","case":"exp","seconds":1.0e-06,"ns":0.24, ...}
 */
#include "target/c/math.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 4096
#define ROUNDS 201
#define CALLS 10

static const struct {
	const char *name;
	float (*libm)(float);
	float lo, hi;
	double target_ns; /* on a machine with 512-bit vectors; 0: none */
} rows[] = {
	{"exp", expf, -10, 10, 0.35},
	{"log", logf, 0.01f, 100, 0.35},
	{"tanh", tanhf, -5, 5, 0.5},
	{"erf", erff, -4, 4, 0.6},
	{"sin", sinf, -100, 100, 0},
	{"cos", cosf, -100, 100, 0},
	{"expm1", expm1f, -10, 10, 0},
	{"log1p", log1pf, -0.9f, 100, 0},
	{"sigmoid", NULL, -10, 10, 0},
	{"softplus", NULL, -10, 10, 0},
	{"sqrt", sqrtf, 0, 100, 0},
	{"floor", floorf, -100, 100, 0},
};
#define N_ROWS ((int32_t)(sizeof rows / sizeof *rows))

typedef void kernel(const float *x, float *y);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *p, const void *q)
{
	double a = *(const double *)p, b = *(const double *)q;

	return (a > b) - (a < b);
}

/* median seconds of one pass over x; f, or if it is NULL the library's g */
static double measure(kernel *f, float (*g)(float), const float *x, float *y)
{
	double t[ROUNDS];
	int32_t r, k, i;

	for (r = 0; r < ROUNDS; r++) {
		double start = now();

		for (k = 0; k < CALLS; k++) {
			if (f)
				f(x, y);
			else
				for (i = 0; i < N; i++)
					y[i] = g(x[i]);
		}
		t[r] = (now() - start) / CALLS;
	}
	qsort(t, ROUNDS, sizeof *t, by_value);
	return t[ROUNDS / 2];
}

static const char *text_of(arena *a, int32_t lanes)
{
	c_math *m = c_math_new(a);
	const char *load = c_math_use(m, "load", TN_F32, lanes);
	const char *store = c_math_use(m, "store", TN_F32, lanes);
	str s = str_new(a);
	int32_t i;

	for (i = 0; i < N_ROWS; i++)
		str_printf(&s,
			"\nvoid k_%s(const float *x, float *y)\n{\n"
			"	for (int i = 0; i < %d; i += %d)\n"
			"		%s(y + i, %s(%s(x + i)));\n}\n",
			rows[i].name, N, lanes, store,
			c_math_use(m, rows[i].name, TN_F32, lanes), load);
	return arena_printf(a, "%s%s", c_math_text(m), s.at);
}

static void bench(void *arg)
{
	arena *a = arena_new(arg);
	run_jit *j = run_jit_new(a, NULL);
	float *x = run_slab(a, N * sizeof *x), *y = run_slab(a, N * sizeof *y);
	const char *text = text_of(a, run_jit_target(j)->vector_bytes / 4);
	int32_t i, k;
	run_lib *lib;

	run_compile(j, &text, 1, &lib);
	for (i = 0; i < N_ROWS; i++) {
		double ours, theirs = 0;
		kernel *f;

		for (k = 0; k < N; k++)
			x[k] = rows[i].lo +
			       (rows[i].hi - rows[i].lo) * (float)k / N;
		run_symbol(j, lib, arena_printf(a, "k_%s", rows[i].name), &f);
		ours = measure(f, NULL, x, y);
		printf("{\"bench\":\"math\",\"case\":\"%s\",\"seconds\":%.3e,"
		       "\"ns\":%.3f",
			rows[i].name, ours, ours / N * 1e9);
		if (rows[i].target_ns > 0)
			printf(",\"target_ns\":%.2f", rows[i].target_ns);
		if (rows[i].libm) {
			theirs = measure(NULL, rows[i].libm, x, y);
			printf(",\"reference\":\"libm\",\"ratio\":%.2f",
				theirs / ours);
		}
		printf("}\n");
	}
	arena_free(a);
}

int main(void)
{
	env *e = env_new();
	int r = !e || env_run(e, bench, e) != TN_OK;

	if (e && r)
		fprintf(stderr, "%s\n", env_diag(e)->text);
	env_free(e);
	return r;
}
