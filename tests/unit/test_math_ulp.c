/*
 * The f32 helpers of generated code against the C library in double: largest
 * error in units in the last place, for one lane and for vectors, which must
 * also agree bit for bit. Every 8191st float here; all of them in
 * test_math_all.c, which includes this file, in PARTS (part.h). The floats on
 * both sides of every quarter of an octave, and of every number where a formula
 * begins or ends, are in each part.
 */
#define _GNU_SOURCE /* sincos */
#include "part.h"
#include "unit.h"

#include "target/c/math.h"
#include "run/run.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef STRIDE
#define STRIDE 8191
#endif
#define BATCH 4096
/* for the vectors of the machine; the same operations, the same bits */
#if defined(__x86_64__) && !defined(__clang__)
#define CLONES __attribute__((target_clones( \
	"arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif
/*
 * Scalar helpers on every float: gcc may use vectors for them, which computes
 * the same. As scalar instructions they are run on every 8191st.
 */
#define VECTORISED \
	"__attribute__((optimize(\"O3\", \"tree-loop-vectorize\")))\n"
#define BLOCK ((uint64_t)1 << 21) /* bit patterns of one chunk */
#define PARTS (STRIDE == 1 ? 12 : 1)

/* ---- references ------------------------------------------------------ */

/* Series where they are exact enough: most floats are tiny. */
static double ref_exp(double x)
{
	return fabs(x) < 0x1p-20 ? 1 + x + x * x / 2
	       : x > 90		 ? HUGE_VAL
	       : x < -105	 ? 0x1p-160
				 : exp(x);
}

static double ref_log(double x)
{
	return x < 0 ? (double)NAN : log(x);
}

static double ref_tanh(double x)
{
	return fabs(x) < 0x1p-13 ? x * (1 - x * x / 3)
	       : fabs(x) > 12	 ? copysign(1, x)
				 : tanh(x);
}

static double ref_erf(double x)
{
	return fabs(x) < 0x1p-13 ? 1.1283791670955126 * x * (1 - x * x / 3)
	       : fabs(x) > 6	 ? copysign(1, x)
				 : erf(x);
}

static void ref_sin_cos(double x, double *s, double *c)
{
	*s = fabs(x) < 0x1p-13 ? x * (1 - x * x / 6) : 0;
	*c = fabs(x) < 0x1p-20 ? 1 - x * x / 2 : 0;
	if (!(fabs(x) < 0x1p-13))
		sincos(x, s, c);
	else if (*c == 0)
		*c = cos(x);
}

/*
 * The same of n numbers, from x[0] in equal steps. Beyond 2^27 the library
 * needs 50 ns to reduce each: there of every 64th, and of the steps between,
 * which are multiplied. That is exact to some 2^-51, and so to 2^-17 ULP of a
 * float where the result is not tiny; the library is asked where it is.
 */
static void ref_sin_cos_batch(const float *x, double *s, double *c, int32_t n)
{
	enum { STEP = 64 };
	double sk[STEP], ck[STEP], d = n > 1 ? (double)x[1] - (double)x[0] : 0;
	bool even = x[0] >= 0x1p27f && isfinite(x[n - 1]) &&
		(double)x[0] + d * (n - 1) == (double)x[n - 1];

	for (int32_t k = 0; even && k < STEP; k++)
		sincos(d * k, &sk[k], &ck[k]);
	for (int32_t i = 0; i < n; i += STEP) {
		int32_t m = n - i < STEP ? n - i : STEP;
		double s0, c0;

		if (!even) {
			for (int32_t k = i; k < i + m; k++)
				ref_sin_cos((double)x[k], &s[k], &c[k]);
			continue;
		}
		sincos((double)x[i], &s0, &c0);
		for (int32_t k = 0; k < m; k++) {
			s[i + k] = s0 * ck[k] + c0 * sk[k];
			c[i + k] = c0 * ck[k] - s0 * sk[k];
		}
		for (int32_t k = i; k < i + m; k++)
			if (fabs(s[k]) < 0x1p-10 || fabs(c[k]) < 0x1p-10)
				sincos((double)x[k], &s[k], &c[k]);
	}
}

static double ref_expm1(double x)
{
	return x > 90 ? HUGE_VAL : expm1(x);
}

static double ref_sigmoid(double x)
{
	return x < 0 ? ref_exp(x) / (1 + ref_exp(x)) : 1 / (1 + ref_exp(-x));
}

static double ref_exp_weight(double x)
{
	return x <= -87 ? 0 : ref_exp(x);
}

static double ref_softplus(double x)
{
	return isnan(x) ? x : fmax(x, 0) + log1p(ref_exp(-fabs(x)));
}

static double ref_rsqrt(double x)
{
	return 1 / sqrt(x);
}

/* of a batch at once: a call for each float would take longer than most */
#define OF_BATCH(ref)                                                   \
	static void ref##_batch(const float *x, double *r, int32_t n)   \
	{                                                               \
		for (int32_t i = 0; i < n; i++)                         \
			r[i] = ref((double)x[i]);                       \
	}
OF_BATCH(ref_exp)
OF_BATCH(ref_exp_weight)
OF_BATCH(ref_log)
OF_BATCH(ref_tanh)
OF_BATCH(ref_erf)
OF_BATCH(ref_expm1)
OF_BATCH(log1p)
OF_BATCH(ref_sigmoid)
OF_BATCH(ref_softplus)
OF_BATCH(ref_rsqrt)
OF_BATCH(sqrt)
OF_BATCH(rint)
OF_BATCH(floor)
OF_BATCH(ceil)
OF_BATCH(trunc)
OF_BATCH(fabs)

static const struct {
	const char *name;
	/* NULL: by the row before it */
	void (*ref)(const float *x, double *r, int32_t n);
	double bound;
	int32_t parity; /* 1 even, -1 odd: of -x only this is checked */
	bool all;	/* in the run over every float too */
} rows[] = {
	{"exp", ref_exp_batch, 2, 0, true},
	{"log", ref_log_batch, 2, 0, true},
	{"tanh", ref_tanh_batch, 2, -1, true},
	{"erf", ref_erf_batch, 2, -1, true},
	{"sin", NULL, 2, -1, true},
	{"cos", NULL, 2, 1, true},
	{"expm1", ref_expm1_batch, 4, 0, false},
	{"log1p", log1p_batch, 4, 0, false},
	{"sigmoid", ref_sigmoid_batch, 4, 0, false},
	{"softplus", ref_softplus_batch, 4, 0, false},
	{"exp_weight", ref_exp_weight_batch, 2, 0, false},
	{"rsqrt", ref_rsqrt_batch, 2, 0, false},
	{"sqrt", sqrt_batch, 0.5, 0, false},
	{"round", rint_batch, 0, 0, false},
	{"floor", floor_batch, 0, 0, false},
	{"ceil", ceil_batch, 0, 0, false},
	{"trunc", trunc_batch, 0, 0, false},
	{"abs", fabs_batch, 0, 1, false},
};
#define N_ROWS ((int32_t)(sizeof rows / sizeof *rows))
#define SIN 4 /* row; COS is the next */

/* ---- kernels --------------------------------------------------------- */

typedef void kernel(const float *x, float *y);

static const char *kernel_text(arena *a, int32_t lanes)
{
	c_math *m = c_math_new(a);
	str s = str_new(a);
	const char *load = c_math_use(m, "load", TN_F32, lanes);
	const char *store = c_math_use(m, "store", TN_F32, lanes);
	int32_t i;

	for (i = 0; i < N_ROWS; i++)
		str_printf(&s,
			"\n%s"
			"void k_%s(const float *restrict x, float *restrict y)"
			"\n{\n"
			"	for (int i = 0; i < %d; i += %d)\n"
			"		%s(y + i, %s(%s(x + i)));\n}\n",
			STRIDE == 1 && lanes == 1 ? VECTORISED : "",
			rows[i].name, BATCH, lanes, store,
			c_math_use(m, rows[i].name, TN_F32, lanes), load);
	return arena_printf(a, "%s%s", c_math_text(m), s.at);
}

/* ---- errors ---------------------------------------------------------- */

/*
 * Error of y in units of the last place of r; 0 also for up to 0.5, and 1e9
 * for the wrong kind of number.
 */
static double ulps(float y, double r)
{
	uint64_t bits;
	double scale;
	int e;

	if (y == (float)r && y != 0)
		return 0; /* as near as can be: at most 0.5 */
	if (isnan(r) || isnan(y))
		return isnan(r) && isnan(y) ? 0 : 1e9;
	if (signbit(y) ? !signbit(r) : signbit(r))
		return 1e9;
	if (isinf(y))
		return fabs(r) >= 0x1.ffffffp127 ? 0 : 1e9;
	if (isinf(r))
		return 1e9;
	memcpy(&bits, &r, sizeof bits);
	e = (int)(bits >> 52 & 2047) - 1023 - 23;
	e = e < -149 ? -149 : e > 104 ? 104 : e;
	bits = (uint64_t)(1023 - e) << 52; /* 2^-e */
	memcpy(&scale, &bits, sizeof scale);
	return fabs((double)y - r) * scale;
}

struct worst {
	_Alignas(64) double ulp[N_ROWS];
	float at[N_ROWS];
	int64_t n_differ[N_ROWS], n_checked[N_ROWS];
	float differs[N_ROWS];
};

struct sweep {
	kernel *vector[N_ROWS], *scalar[N_ROWS];
	int32_t row[N_ROWS], n_rows;
	int64_t n_blocks, part;
	struct worst *worst; /* of each worker */
};

static bool same(float a, float b)
{
	return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void differ(struct worst *w, int32_t row, float x)
{
	w->n_differ[row]++;
	w->differs[row] = x;
}

static uint32_t bits_of(float x)
{
	uint32_t b;

	memcpy(&b, &x, sizeof b);
	return b;
}

/* -x of the batch, by parity */
static void check_mirror(struct sweep *s, struct worst *w, int32_t row,
	const float *x, const float *y, int32_t n)
{
	_Alignas(64) float minus[BATCH], z[BATCH];
	uint32_t sign = rows[row].parity < 0 ? 0x80000000 : 0, differs = 0;
	int32_t i;

	for (i = 0; i < BATCH; i++)
		minus[i] = -x[i];
	s->vector[row](minus, z);
	for (i = 0; i < n; i++)
		differs |= bits_of(z[i]) ^ bits_of(y[i]) ^ sign;
	for (i = 0; differs != 0 && i < n; i++)
		if (!same(z[i], rows[row].parity < 0 ? -y[i] : y[i]))
			differ(w, row, minus[i]);
}

/*
 * Whether an element may be worse than the worst so far; if it says no, none
 * is. As ulps(), but for what has the wrong sign or is no number on one side,
 * and in steps that the compiler has vectors for: so it takes a thirtieth of
 * the time.
 */
CLONES static bool may_be_worse(double worst, const float *y, const double *r,
	int32_t n)
{
	const int64_t exponent = (int64_t)2047 << 52;
	const int64_t least = (int64_t)(1023 - 126) << 52;
	const int64_t most = (int64_t)(1023 + 127) << 52;
	const uint64_t top = (uint64_t)(2 * 1023 + 23) << 52;
	int64_t wrong = 0; /* its sign counts */
	int32_t i;

	for (i = 0; i < n; i++) {
		double v = (double)y[i], scale, u;
		uint64_t bits;
		int64_t a, b, e;

		memcpy(&a, &v, sizeof a);
		memcpy(&b, &r[i], sizeof b);
		e = b & exponent;
		e = e < least ? least : e;
		bits = top - (uint64_t)(e > most ? most : e);
		memcpy(&scale, &bits, sizeof scale);
		u = fabs(v - r[i]) * scale;
		wrong |= a ^ b;
		wrong |= u > worst ? INT64_MIN : 0;
		wrong |= (v != v) == (r[i] != r[i]) ? 0 : INT64_MIN;
	}
	return wrong < 0;
}

static void check_row(struct sweep *s, struct worst *w, int32_t row,
	const float *x, const double *ref, int32_t n)
{
	_Alignas(64) float y[BATCH], z[BATCH];
	int32_t i;

	s->vector[row](x, y);
	/* beyond 8192 the vectors of sin and cos call the scalar code */
	if (STRIDE > 1 || fabsf(x[0]) < 8192)
		s->scalar[row](x, z);
	else
		memcpy(z, y, sizeof z);
	if (may_be_worse(w->ulp[row], y, ref, n))
		for (i = 0; i < n; i++) {
			double u = ulps(y[i], ref[i]);

			if (u > w->ulp[row]) {
				w->ulp[row] = u;
				w->at[row] = x[i];
			}
		}
	if (memcmp(y, z, (size_t)n * sizeof *y) != 0)
		for (i = 0; i < n; i++)
			if (!same(y[i], z[i]))
				differ(w, row, x[i]);
	if (rows[row].parity)
		check_mirror(s, w, row, x, y, n);
}

static void check_batch(struct sweep *s, struct worst *w, int32_t row,
	const float *x, int32_t n)
{
	double ref[BATCH], other[BATCH];

	if (row == SIN)
		ref_sin_cos_batch(x, ref, other, n);
	else
		rows[row].ref(x, ref, n);
	check_row(s, w, row, x, ref, n);
	if (row == SIN)
		check_row(s, w, row + 1, x, other, n);
}

/* what a stride or a part may miss: zeros, the ends of ranges, infinities, NaN;
 * and the floats before and after each of them */
static void check_special(struct sweep *s)
{
	static const uint32_t bits[] = {0, 0x80000000, 1, 0x80000001, 0x7fffff,
		0x807fffff, 0x800000, 0x80800000, 0x3f800000, 0xbf800000,
		0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
		0xffc00000, 0x46000000, 0x46000001, 0x42b17218, 0x42b17219,
		0xc2cff1b5, 0xc2ce8ed0};
	_Alignas(64) float x[BATCH] = {0};
	enum { N_BITS = sizeof bits / sizeof *bits };
	int32_t i, k;

	memcpy(x, bits, sizeof bits);
	for (i = 0; i < s->n_rows; i++)
		check_batch(s, s->worst, s->row[i], x, N_BITS);
	for (k = 0; k < N_BITS; k++) {
		for (i = 0; i < BATCH; i++) {
			uint32_t near = bits[k] + (uint32_t)i - BATCH / 2;

			memcpy(&x[i], &near, sizeof near);
		}
		for (i = 0; i < s->n_rows; i++)
			check_batch(s, s->worst, s->row[i], x, BATCH);
	}
}

/* bit patterns from `at` to `end`, in steps of STRIDE */
static void check_range(struct sweep *s, int32_t worker, int32_t row,
	uint64_t at, uint64_t end)
{
	_Alignas(64) float x[BATCH] = {0};
	int32_t i, n;

	for (; at < end; at += BATCH * STRIDE) {
		n = BATCH;
		if (at + (BATCH - 1) * STRIDE >= end)
			n = (int32_t)((end - at + STRIDE - 1) / STRIDE);
		for (i = 0; i < n; i++) {
			uint32_t bits = (uint32_t)at + (uint32_t)i * STRIDE;

			memcpy(&x[i], &bits, sizeof bits);
		}
		check_batch(s, &s->worst[worker], row, x, n);
		s->worst[worker].n_checked[row] += n;
	}
}

static void check_block(void *arg, int64_t chunk, int32_t worker)
{
	struct sweep *s = arg;
	int32_t row = s->row[chunk / s->n_blocks];
	uint64_t at = (uint64_t)(chunk % s->n_blocks) * BLOCK * STRIDE;
	uint64_t end = at + BLOCK * STRIDE;
	uint64_t all = (uint64_t)1 << (rows[row].parity ? 31 : 32);

	if (end > all)
		end = all;
	if (at >= end)
		return;
	if (part_has(PARTS, s->part, chunk % s->n_blocks)) {
		check_range(s, worker, row, at, end);
		return;
	}
	check_range(s, worker, row, at, at + BATCH);
	check_range(s, worker, row, end - BATCH, end);
}

static void sweep_all(run_pool *p, struct sweep *s, int32_t lanes)
{
	struct worst all = {0};
	int32_t i, t;

	s->n_blocks = (int64_t)((((uint64_t)1 << 32) + BLOCK * STRIDE - 1) /
				(BLOCK * STRIDE));
	s->part = part_now(PARTS);
	check_special(s);
	run_parallel(p, s->n_blocks * s->n_rows, check_block, s);
	for (t = 0; t < run_pool_threads(p); t++)
		for (i = 0; i < N_ROWS; i++) {
			struct worst *w = &s->worst[t];

			if (w->ulp[i] > all.ulp[i]) {
				all.ulp[i] = w->ulp[i];
				all.at[i] = w->at[i];
			}
			if (w->n_differ[i])
				all.differs[i] = w->differs[i];
			all.n_differ[i] += w->n_differ[i];
			all.n_checked[i] += w->n_checked[i];
		}
	for (i = 0; i < N_ROWS; i++) {
		if (STRIDE == 1 && !rows[i].all)
			continue;
		printf("%-8s x%-2d  max %6.3f ULP at %a, %" PRId64 " floats\n",
			rows[i].name, lanes, all.ulp[i], (double)all.at[i],
			all.n_checked[i]);
		if (all.ulp[i] > rows[i].bound)
			fail_msg("%s(%a): %g ULP", rows[i].name,
				(double)all.at[i], all.ulp[i]);
		if (all.n_differ[i])
			fail_msg("%s: %d floats differ between 1 and %d lanes "
				 "or "
				 "in sign, such as %a",
				rows[i].name, (int)all.n_differ[i], lanes,
				(double)all.differs[i]);
	}
}

/* ---- runs ------------------------------------------------------------ */

static void sweeps(arena *a, void *arg)
{
	int32_t lanes[] = {2, 4, 8, 16, 32, 0}, n, i, k;
	run_jit *j = run_jit_new(a, NULL);
	run_pool *p = run_pool_new(a, 0);
	const char *text[7];
	run_lib *lib[7];

	(void)arg;
	if (STRIDE == 1) { /* only what the machine would use */
		lanes[0] = run_jit_target(j)->vector_bytes / 4;
		lanes[1] = 0;
	}
	for (n = 0; lanes[n]; n++)
		text[n] = kernel_text(a, lanes[n]);
	text[n] = kernel_text(a, 1);
	run_compile(j, text, n + 1, lib);
	for (k = 0; k < n; k++) {
		struct sweep s = {.n_rows = 0};

		s.worst = run_slab(
			a, (size_t)run_pool_threads(p) * sizeof *s.worst);
		for (i = 0; i < N_ROWS; i++) {
			const char *f = arena_printf(a, "k_%s", rows[i].name);

			run_symbol(j, lib[k], f, &s.vector[i]);
			run_symbol(j, lib[n], f, &s.scalar[i]);
			if (i != SIN + 1 && (STRIDE > 1 || rows[i].all))
				s.row[s.n_rows++] = i;
		}
		sweep_all(p, &s, lanes[k]);
	}
}

static void test_ulp(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(sweeps, NULL, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ulp)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
