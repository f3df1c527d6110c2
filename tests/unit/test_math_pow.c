/*
 * pow of generated code in f32 against the C library in double: the largest error
 * in units in the last place, for one lane and for vectors, which must also agree
 * bit for bit. Zeros, infinities, NaN, negative numbers and subnormal ones are in
 * it, and what over- and underflows.
 */
#include "unit.h"

#include "base/random.h"
#include "run/run.h"
#include "target/c/math.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 4096, N_RANDOM = 512, STRIDE = 16381 };
#define BOUND 4.0

typedef void kernel(const float *x, const float *y, float *o);

typedef struct sweep {
	kernel *f, *one;
	double worst;
	float x, y;
	int64_t n;
} sweep;

static const char *text_of(arena *a, int32_t lanes, bool fused)
{
	c_math *m = c_math_new_as(a, fused, C_GNU);
	const char *load = c_math_use(m, "load", TN_F32, lanes);
	const char *store = c_math_use(m, "store", TN_F32, lanes);
	const char *f = c_math_use(m, "pow", TN_F32, lanes);

	c_math_type(m, TN_F32, 1);
	return arena_printf(a,
		"%s\nvoid k(const f32 *x, const f32 *y, f32 *o)\n{\n"
		"	for (int i = 0; i < %d; i += %d)\n"
		"		%s(o + i, %s(%s(x + i), %s(y + i)));\n}\n",
		c_math_text(m), BATCH, lanes, store, f, load, load);
}

/* Units in the last place of r by which v is off; 1e9: another kind of number. */
static double off(float v, double r)
{
	int e;

	if (isnan(r) || isnan(v))
		return isnan(r) && isnan(v) ? 0 : 1e9;
	if ((float)r == v)
		return signbit(v) == signbit((float)r) ? 0 : 1e9;
	if (isinf(v) || isinf(r)) /* within the bound of the greatest float */
		return isinf(v) && fabs(r) > 0x1.fffffcp127 ? 0 : 1e9;
	frexp(r, &e);
	e = e < -125 ? -125 : e;
	return fabs((double)v - r) / ldexp(1, e - 24);
}

static bool same(float a, float b)
{
	return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void check(sweep *s, const float *x, const float *y)
{
	static float o[BATCH], one[BATCH];

	s->f(x, y, o);
	s->one(x, y, one);
	for (int32_t i = 0; i < BATCH; i++) {
		double u = off(o[i], pow((double)x[i], (double)y[i]));

		if (!same(o[i], one[i]))
			fail_msg("pow(%a, %a): %a in lanes, %a alone", (double)x[i],
				(double)y[i], (double)o[i], (double)one[i]);
		if (u > BOUND)
			fail_msg("pow(%a, %a) is %a, not %a", (double)x[i],
				(double)y[i], (double)o[i], pow((double)x[i], (double)y[i]));
		if (u > s->worst) {
			s->worst = u;
			s->x = x[i];
			s->y = y[i];
		}
	}
	s->n += BATCH;
}

static float from_bits(uint32_t b)
{
	float f;

	memcpy(&f, &b, sizeof f);
	return f;
}

/* all pairs of numbers where something ends, and of their neighbours */
static void check_special(sweep *s)
{
	static const uint32_t bits[] = {0, 1, 0x7fffff, 0x800000, 0x34000000,
		0x3f000000, 0x3f400000, 0x3f3504f3, 0x3f800000, 0x3fc00000,
		0x40000000, 0x40400000, 0x40a00000, 0x42fe0000, 0x43000000,
		0x43150000, 0x4b000000, 0x4b800000, 0x4b7fffff, 0x53800000,
		0x7f7fffff, 0x7f800000, 0x7fc00000};
	enum { N = sizeof bits / sizeof *bits * 6 };
	static float at[N], x[BATCH], y[BATCH];

	for (int32_t i = 0; i < N; i++)
		at[i] = from_bits((bits[i / 6] + (uint32_t)(i / 2 % 3) - 1) ^
			(uint32_t)(i % 2) << 31);
	for (int32_t at_pair = 0; at_pair < N * N; at_pair += BATCH) {
		for (int32_t i = 0; i < BATCH; i++) {
			x[i] = at[(at_pair + i) / N % N];
			y[i] = at[(at_pair + i) % N];
		}
		check(s, x, y);
	}
}

/* all magnitudes to powers that programs have */
static void check_powers(sweep *s)
{
	static const float power[] = {0.5f, 0.75f, -0.75f, 0.3333333f, 2, 3, -1, -2,
		1.5f, 2.4f, 0.41666666f, 10, -37.5f, 1e-3f, 100, 1e-6f, 0.9f};
	static float x[BATCH], y[BATCH];

	for (size_t k = 0; k < sizeof power / sizeof *power; k++)
		for (uint32_t b = 0; b < 0x7f800000 - BATCH * STRIDE; b += BATCH * STRIDE) {
			for (uint32_t i = 0; i < BATCH; i++) {
				x[i] = from_bits(b + i * STRIDE);
				y[i] = power[k];
			}
			check(s, x, y);
		}
}

/* pairs of any floats; and near 1, powers that reach the ends of the range */
static void check_random(sweep *s)
{
	static float x[BATCH], y[BATCH];

	for (uint64_t k = 0; k < N_RANDOM; k++) {
		for (uint64_t i = 0; i < BATCH; i++) {
			uint64_t r = base_mix64(k * BATCH + i + 1);

			x[i] = from_bits((uint32_t)r);
			y[i] = from_bits((uint32_t)(r >> 32));
			if (k % 4 != 0) /* base 2: up to 160 */
				y[i] = (float)(((double)(r >> 32) / 0x1p31 - 1) * 160 /
					log2(fabs((double)x[i])));
			if (k % 4 == 2) {
				x[i] = 1 + (float)(r % 8191) * 0x1p-20f;
				y[i] = (float)(((double)(r >> 32) / 0x1p31 - 1) * 160 /
					log2((double)x[i]));
			}
		}
		check(s, x, y);
	}
}

/* The last two are as on a machine that does not fuse multiplication and addition. */
static const struct {
	int32_t lanes;
	bool fused, all;
} forms[] = {{1, true, false}, {2, true, false}, {4, true, true}, {8, true, false},
	{16, true, false}, {32, true, false}, {1, false, false}, {4, false, true}};
#define N_FORMS ((int32_t)(sizeof forms / sizeof *forms))

static void sweeps(arena *a, void *arg)
{
	run_jit *j = run_jit_new(a, NULL);
	const char *text[N_FORMS];
	run_lib *lib[N_FORMS];

	(void)arg;
	for (int32_t k = 0; k < N_FORMS; k++)
		text[k] = text_of(a, forms[k].lanes, forms[k].fused);
	run_compile(j, text, N_FORMS, lib);
	for (int32_t k = 0; k < N_FORMS; k++) {
		sweep s = {0};

		run_symbol(j, lib[forms[k].fused ? 0 : N_FORMS - 2], "k", &s.one);
		run_symbol(j, lib[k], "k", &s.f);
		check_special(&s);
		if (forms[k].all) {
			check_powers(&s);
			check_random(&s);
		}
		printf("pow x%-2d %s max %.3f ULP at %a, %a, %lld pairs\n",
			(int)forms[k].lanes, forms[k].fused ? "     " : "apart", s.worst,
			(double)s.x, (double)s.y, (long long)s.n);
	}
}

static void test_pow(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(sweeps, NULL, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_pow)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
