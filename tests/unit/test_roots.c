/*
 * roots: powers of quarters, which kernels make of square roots, against pow of the C
 * library in double: floats of all magnitudes and both signs, zeros, infinities, NaN,
 * in vectors and behind them, in f32 and f64.
 */
#include "unit.h"

#include <tenon.h>

#include <math.h>
#include <stdio.h>

enum { N = 200003 };
#define BOUND 2.0 /* units in the last place */

static float from_bits(uint32_t b)
{
	float f;

	memcpy(&f, &b, sizeof f);
	return f;
}

static void numbers(float *x)
{
	static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f,
		-1.0f, 16.0f, 0x1p-149f, -0x1p-149f, 0x1.fffffep127f, -0x1.fffffep127f};
	enum { N_SPECIAL = sizeof special / sizeof *special };
	uint32_t step = UINT32_MAX / N;

	for (uint32_t i = 0; i < N; i++)
		x[i] = from_bits(i * step);
	for (int32_t i = 0; i < N_SPECIAL; i++) /* in a vector, and behind all */
		x[32 + i] = x[N - 1 - i] = special[i];
}

/* Units in the last place of r by which v is off, for so many bits of a number. */
static double off(double v, double r, int bits, int least)
{
	int e;

	if (isnan(r) || isnan(v))
		return isnan(r) && isnan(v) ? 0 : 1e9;
	if (isinf(v) || isinf(r))
		return v == r ? 0 : 1e9;
	if (v == 0 && r == 0)
		return signbit(v) == signbit(r) ? 0 : 1e9;
	frexp(r, &e);
	return fabs(v - r) / ldexp(1, (e < least ? least : e) - bits);
}

static void check(const char *power, const char *type)
{
	static float x[N], y[N];
	static double dx[N], dy[N];
	bool wide = strcmp(type, "f64") == 0;
	const void *in[] = {wide ? (void *)dx : (void *)x};
	void *out[] = {wide ? (void *)dy : (void *)y};
	tn_context *c;
	tn_program *p;
	char text[128];

	numbers(x);
	for (int32_t i = 0; i < N; i++)
		dx[i] = (double)x[i];
	snprintf(text, sizeof text, "program { x: %s[%d]\n y = pow(x, %s)\n return y }",
		type, N, power);
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	if (tn_program_parse(&p, c, text, strlen(text), "roots") < 0 ||
		tn_program_run(p, in, out) < 0)
		fail_msg("%s: %s", text, tn_context_diag(c)->text);
	for (int32_t i = 0; i < N; i++) {
		double r = pow(dx[i], strtod(power, NULL));
		double v = wide ? dy[i] : (double)y[i];
		double u = wide ? off(v, r, 53, -1021) : off(v, isnan(r) ? r : (double)(float)r, 24, -125);

		if (u > BOUND)
			fail_msg("%s: pow(%a, %s) is %a, not %a", type, dx[i], power, v, r);
	}
	tn_program_free(p);
	tn_context_free(c);
}

static void test_roots(void **state)
{
	static const char *const power[] = {"0.25", "0.5", "0.75", "1.5", "-0.5"};

	(void)state;
	for (size_t i = 0; i < sizeof power / sizeof *power; i++) {
		check(power[i], "f32");
		check(power[i], "f64");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
