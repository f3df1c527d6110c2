/* scalar.c, monoid.c: values at the edges, signatures, monoid laws. */
#include "unit.h"

#include "eval_system.h"
#include "system/eval.h"

#include <math.h>

static int32_t fn(const char *name)
{
	int32_t i = ir_scalar_find(name, strlen(name));

	assert_true(i >= 0);
	return i;
}

static void test_ints(void **state)
{
	static const struct {
		const char *name;
		int64_t x, y, want;
	} cases[] = {
		{"add", INT64_MAX, 1, INT64_MIN},
		{"sub", INT64_MIN, 1, INT64_MAX},
		{"mul", INT64_MAX, 2, -2},
		{"neg", INT64_MIN, 0, INT64_MIN},
		{"abs", INT64_MIN, 0, INT64_MIN},
		{"abs", -7, 0, 7},
		{"sign", -7, 0, -1},
		{"div", 7, 2, 3},
		{"div", -7, 2, -3},
		{"div", 7, 0, 0},
		{"div", INT64_MIN, -1, INT64_MIN},
		{"fmod", -7, 3, -1},
		{"fmod", 7, 0, 0},
		{"fmod", INT64_MIN, -1, 0},
		{"mod", -7, 3, 2},
		{"mod", 7, -3, -2},
		{"mod", 6, -3, 0},
		{"mod", 7, 0, 0},
		{"pow", 3, 4, 81},
		{"pow", 2, 64, 0},
		{"pow", -1, -3, -1},
		{"pow", 2, -1, 0},
		{"pow", 0, 0, 1},
		{"shl", 1, 63, INT64_MIN},
		{"shl", 1, 64, 0},
		{"shl", 1, -1, 0},
		{"shr", -8, 1, -4},
		{"shr", -8, 64, -1},
		{"shr", -8, -1, -1},
		{"shr", 8, 64, 0},
		{"shr", 8, -1, 0},
		{"bit_not", 5, 0, -6},
		{"bit_xor", 6, 3, 5},
		{"max", -1, 2, 2},
		{"min", -1, 2, -1},
		{"relu", -1, 0, 0},
		{"le", 2, 2, 1},
		{"ne", 2, 2, 0},
		{"and", 1, 0, 0},
		{"xor", 1, 0, 1},
		{"not", 0, 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(ir_scalar_at(fn(cases[i].name))
					 ->i(cases[i].x, cases[i].y, 0),
			cases[i].want);
}

/* Equal, or both NaN. */
static void same(double x, double want)
{
	if (want != want)
		assert_true(x != x);
	else
		assert_true(fabs(x - want) <= 1e-15 * fabs(want) || x == want);
}

static void test_floats(void **state)
{
	static const struct {
		const char *name;
		double x, y, want;
	} cases[] = {
		{"round", 0.5, 0, 0},
		{"round", 2.5, 0, 2},
		{"round", -1.5, 0, -2},
		{"max", NAN, 1, NAN},
		{"max", 1, NAN, NAN},
		{"min", NAN, 1, NAN},
		{"min", -HUGE_VAL, 1, -HUGE_VAL},
		{"relu", NAN, 0, NAN},
		{"sign", NAN, 0, NAN},
		{"sign", -0.5, 0, -1},
		{"mod", -7, 3, 2},
		{"mod", 7, -3, -2},
		{"fmod", -7, 3, -1},
		{"sigmoid", -1000, 0, 0},
		{"sigmoid", 1000, 0, 1},
		{"softplus", 1000, 0, 1000},
		{"softplus", -1000, 0, 0},
		{"isnan", NAN, 0, 1},
		{"isinf", -HUGE_VAL, 0, 1},
		{"recip", 0, 0, HUGE_VAL},
		{"eq", NAN, NAN, 0},
		{"ne", NAN, NAN, 1},
		{"rsqrt", 4, 0, 0.5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		same(ir_scalar_at(fn(cases[i].name))
				->f(cases[i].x, cases[i].y, 0),
			cases[i].want);
}

static void test_dtypes(void **state)
{
	static const struct {
		const char *name;
		int32_t n;
		tn_dtype arg[3];
		int32_t want;
	} cases[] = {
		{"exp", 1, {TN_F32}, TN_F32},
		{"exp", 1, {TN_I32}, -1},
		{"add", 2, {TN_I8, TN_I8}, TN_I8},
		{"add", 2, {TN_I8, TN_I16}, -1},
		{"add", 2, {TN_BOOL, TN_BOOL}, -1},
		{"lt", 2, {TN_F64, TN_F64}, TN_BOOL},
		{"eq", 2, {TN_BOOL, TN_BOOL}, TN_BOOL},
		{"sel", 3, {TN_BOOL, TN_U8, TN_U8}, TN_U8},
		{"sel", 3, {TN_U8, TN_U8, TN_U8}, -1},
		{"shl", 2, {TN_F32, TN_F32}, -1},
		{"not", 1, {TN_I8}, -1},
		{"u01", 2, {TN_I64, TN_I64}, TN_F32},
		{"add", 1, {TN_F32}, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(ir_scalar_dtype(fn(cases[i].name),
					 cases[i].arg, cases[i].n),
			cases[i].want);
	assert_int_equal(ir_scalar_find("nosuch", 6), -1);
	assert_int_equal(ir_wrap(TN_I8, 300), 44);
	assert_int_equal(ir_wrap(TN_U8, -1), 255);
	assert_int_equal(ir_wrap(TN_BOOL, 7), 1);
}

/* ---- monoids: identity on both sides, any order of combination ---- */

struct elements {
	int32_t monoid;
	tn_dtype dtype;
	int32_t n;
	double v[6];
	double want[IR_MAX_COMP];
};

static void set(ir_number *r, tn_dtype t, double v)
{
	*r = (ir_number){0};
	if (dtype_is_float(t))
		r->f = v;
	else
		r->i = (int64_t)v;
}

static void get_element(const struct elements *c, const tn_dtype *acc,
	int32_t i, ir_number *r)
{
	const double second[] = {[IR_WELFORD] = c->v[i], [IR_SOFTMAX] = 1};

	set(&r[0], acc[0], c->monoid == IR_WELFORD ? 1 : c->v[i]);
	if (c->monoid == IR_ARGMAX || c->monoid == IR_ARGMIN)
		set(&r[1], acc[1], i);
	else if (c->monoid == IR_WELFORD || c->monoid == IR_SOFTMAX)
		set(&r[1], acc[1], second[c->monoid]);
	set(&r[2], acc[2], c->monoid == IR_SOFTMAX ? 2 : 0);
}

/* Elements from .. to-1, split at random, with identities strewn in. */
static void fold(eval_machine *v, const struct elements *c,
	const sys_eqn *e, const tn_dtype *acc, int32_t from, int32_t to,
	uint32_t *seed, ir_number *r)
{
	ir_number right[IR_MAX_COMP];
	int32_t cut;

	*seed = *seed * 1664525 + 1013904223;
	if (to - from == 0 || (to - from == 1 && (*seed >> 20) % 2 == 0)) {
		for (int32_t k = 0; to == from && k < e->n_out; k++)
			r[k] = eval_value(
				v, ir_identity(v->s, e->monoid, k, acc[k]));
		if (to > from)
			get_element(c, acc, from, r);
		return;
	}
	cut = from + (int32_t)((*seed >> 16) % (uint32_t)(to - from + 1));
	fold(v, c, e, acc, from, cut, seed, r);
	fold(v, c, e, acc, cut, to, seed, right);
	eval_combine(v, e->monoid, e->n_out, acc, r, right);
}

static const struct elements monoid_cases[] = {
	{IR_SUM, TN_F32, 3, {1, 2, 4}, {7}},
	{IR_SUM, TN_I8, 3, {100, 100, 100}, {300}},
	{IR_PROD, TN_I64, 3, {2, 3, 5}, {30}},
	{IR_MAX, TN_F64, 3, {1, NAN, 3}, {NAN}},
	{IR_MAX, TN_I16, 2, {-5, -9}, {-5}},
	{IR_MAX, TN_I8, 0, {0}, {-128}},
	{IR_MIN, TN_U8, 0, {0}, {255}},
	{IR_MAX, TN_F32, 0, {0}, {-HUGE_VAL}},
	{IR_AND, TN_BOOL, 2, {1, 0}, {0}},
	{IR_AND, TN_BOOL, 0, {0}, {1}},
	{IR_OR, TN_BOOL, 2, {1, 0}, {1}},
	{IR_ARGMAX, TN_F32, 4, {1, 5, 5, 2}, {5, 1}},
	{IR_ARGMAX, TN_F32, 5, {1, NAN, 9, NAN, 7}, {NAN, 1}},
	{IR_ARGMAX, TN_F32, 3, {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL},
		{-HUGE_VAL, 0}},
	{IR_ARGMAX, TN_I8, 2, {-128, -128}, {-128, 0}},
	{IR_ARGMIN, TN_F32, 4, {3, 1, 2, 1}, {1, 1}},
	{IR_ARGMIN, TN_F64, 3, {HUGE_VAL, NAN, 0}, {NAN, 1}},
	{IR_ARGMIN, TN_F32, 2, {HUGE_VAL, HUGE_VAL}, {HUGE_VAL, 0}},
	{IR_WELFORD, TN_F64, 5, {1, 2, 3, 4, 10}, {5, 4, 50}},
	{IR_WELFORD, TN_F64, 0, {0}, {0, 0, 0}},
	{IR_SOFTMAX, TN_F64, 2, {0, 0}, {0, 2, 4}},
	{IR_SOFTMAX, TN_F64, 2, {-HUGE_VAL, 3}, {3, 1, 2}},
	{IR_SOFTMAX, TN_F64, 0, {0}, {-HUGE_VAL, 0, 0}},
};

static void laws(arena *a, void *arg)
{
	ir_system *s = ir_system_new(a, ix_new(a));
	eval_machine v = {.e = arena_env(a), .s = s};
	uint32_t seed = 1;

	(void)arg;
	for (size_t i = 0; i < sizeof monoid_cases / sizeof monoid_cases[0];
		i++) {
		const struct elements *c = &monoid_cases[i];
		sys_eqn e = {.monoid = c->monoid,
			.n_out = ir_monoid_at(c->monoid)->n_comp};
		tn_dtype acc[IR_MAX_COMP] = {TN_F32, TN_F32, TN_F32};

		for (int32_t k = 0; k < e.n_out; k++)
			acc[k] = ir_monoid_acc(c->monoid, k, c->dtype);
		for (int32_t turn = 0; turn < 40; turn++) {
			ir_number r[IR_MAX_COMP];

			fold(&v, c, &e, acc, 0, c->n, &seed, r);
			for (int32_t k = 0; k < e.n_out; k++)
				if (dtype_is_float(acc[k]) && c->n == 5 &&
					c->monoid == IR_WELFORD)
					assert_true(fabs(r[k].f - c->want[k]) <
						1e-12);
				else
					same(dtype_is_float(acc[k])
							? r[k].f
							: (double)r[k].i,
						c->want[k]);
		}
	}
}

static void test_monoids(void **state)
{
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(laws, NULL, 0, &d), TN_OK);
	assert_int_equal(ir_monoid_acc(IR_SUM, 0, TN_F16), TN_F32);
	assert_int_equal(ir_monoid_result(IR_SUM, 0, TN_F16), TN_F16);
	assert_int_equal(ir_monoid_acc(IR_MAX, 0, TN_BF16), TN_F32);
	assert_int_equal(ir_monoid_acc(IR_MAX, 0, TN_I8), TN_I8);
	assert_int_equal(ir_monoid_result(IR_WELFORD, 2, TN_F16), TN_F32);
	assert_int_equal(ir_monoid_result(IR_ARGMAX, 1, TN_F16), TN_I64);
}

/* f of the numbers, those named by the law being a, b, or their sum. */
static double at(const ir_scalar *f, const char *law, size_t len, int which)
{
	static const double v[3][3] = {
		{1, -2.75, 0.5}, {1, 1.5, -3.25}, {1, 4.5, 2.25}};
	double x[3];

	for (int i = 0; i < 3; i++) {
		bool in = memchr(law, "xyz"[i], len) != NULL;

		x[i] = !in ? v[2][i]
		       : which < 2 ? v[which][i] : v[0][i] + v[1][i];
	}
	return f->f(x[0], x[1], x[2]);
}

static void test_laws(void **state)
{
	int n = 0;

	(void)state;
	for (int32_t i = 0; i < ir_scalar_n(); i++) {
		const ir_scalar *f = ir_scalar_at(i);

		for (const char *l = f->laws; *l != '\0';) {
			size_t len = strcspn(l, " ");
			double a, b, c;

			if (*l == '+') {
				a = f->f(0.75, 0, 0);
				b = f->f(-1.5, 0, 0);
				c = f->f(-0.75, 0, 0) / (a * b);
			} else if (*l == '~') {
				a = fabs(f->f(0.75 + 1e-9, 0, 0) - 0.75);
				b = fabs(f->f(-1.0 / 3, 0, 0) * -3 - 1);
				c = a == 0 && b < 0x1p-10 ? 1 : 0;
			} else if (*l == '^') {
				a = f->f(-1.5, 2, 0) / f->f(-1.5, 1, 0);
				b = f->f(-1.5, 3, 0) / f->f(-1.5, 2, 0);
				c = a / b * f->f(-1.5, 1, 0) / -1.5;
			} else {
				a = at(f, l, len, 0);
				b = at(f, l, len, 1);
				c = at(f, l, len, 2) - (a + b) + 1;
			}
			if (fabs(c - 1) > 1e-12)
				fail_msg("%s: law %s", f->name, l);
			l += len + (l[len] == ' ');
			n++;
		}
	}
	assert_true(n > 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ints),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_dtypes),
		cmocka_unit_test(test_monoids),
		cmocka_unit_test(test_laws),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
