/*
 * Helpers of generated code other than the f32 polynomials: on edge values
 * against the scalar table and base/, for one lane and for many.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "unit.h"

#include "base/random.h"
#include "notation/notation.h"
#include "run/run.h"
#include "target/c/math.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define N 1024 /* values of one call; a multiple of all lanes */

static const int32_t all_lanes[] = {1, 2, 16};
#define N_LANES 3

typedef void kernel(const void *x, const void *y, void *o);

/* for (i ...) store(o + i, F(load(x + i), load(y + i))) */
static void add_kernel(str *s, c_math *m, const char *k, const char *name,
	tn_dtype t, int32_t lanes, int32_t arity, bool compares)
{
	const char *f = c_math_use(m, name, t, lanes);
	const char *load = c_math_use(m, "load", t, lanes);
	const char *store = c_math_use(m, "store", t, lanes);
	const char *sel = c_math_use(m, "sel", t, lanes);
	const char *splat = c_math_use(m, "splat", t, lanes);
	const char *elem = c_math_type(m, t, 1), *call;

	if (!f)
		fail_msg("no %s for %s", name, dtype_name(t));
	call = arena_printf(s->a,
		arity == 1 ? "%s(%s((const %s *)x + i))"
			   : "%s(%s((const %s *)x + i), %s((const %s *)y + i))",
		f, load, elem, load, elem);
	if (compares)
		call = arena_printf(
			s->a, "%s(%s, %s(1), %s(0))", sel, call, splat, splat);
	str_printf(s,
		"\nvoid %s(const void *x, const void *y, void *o)\n{\n"
		"	(void)y;\n"
		"	for (int i = 0; i < %d; i += %d)\n"
		"		%s((%s *)o + i, %s);\n}\n",
		k, N, lanes, store, elem, call);
}

struct data {
	_Alignas(64) uint8_t x[N * 8];
	_Alignas(64) uint8_t y[N * 8];
	_Alignas(64) uint8_t o[N * 8];
};

/* every pair of edge values */
static void fill(struct data *d, tn_dtype t)
{
	static const double f[] = {0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5,
		INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 3e38, -3e38, 5.5, 10,
		-7, 0.9999999, 1e10, -1e10, 3, 2, 4, 1e-3, -1e-3, 20, -20, 88.7,
		0.75, -0.25};
	static const int64_t n[] = {0, 1, -1, 2, -2, 3, 5, 7, -7, 10, 31, 32,
		33, 63, 64, 65, 100, -100, 127, -128, 255, 32767, -32768,
		INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1000003, -1000003,
		8, 15, 16};
	int64_t i;

	for (i = 0; i < N; i++) {
		if (dtype_is_float(t)) {
			dtype_store_f64(t, d->x, i, f[i % 32]);
			dtype_store_f64(t, d->y, i, f[i / 32]);
		} else {
			dtype_store_i64(t, d->x, i, n[i % 32]);
			dtype_store_i64(t, d->y, i, n[i / 32]);
		}
	}
}

static bool close_to(double v, double want, double tolerance)
{
	if (isnan(want) || isnan(v))
		return isnan(want) && isnan(v);
	return v == want || fabs(v - want) <= tolerance * fabs(want) ||
	       /* f32 results: below its range, or beyond */
	       (fabs(v - want) < 3e-45 && tolerance > 1e-9) ||
	       (isinf(v) && fabs(want) > 3.4e38 && tolerance > 1e-9);
}

struct row {
	const char *name;
	const char *kinds; /* f, d, i as in math_base.def */
	double tolerance;  /* relative; 0: equal */
	bool compares;
};

static void check(
	struct data *d, const struct row *r, tn_dtype t, int32_t lanes)
{
	const ir_scalar *s = ir_scalar_at(
		ir_scalar_find(r->name, strlen(r->name)));
	struct data w;
	int64_t i;

	memset(&w, 0, sizeof w);
	for (i = 0; i < N; i++) {
		bool ok;

		if (dtype_is_float(t)) {
			double x = dtype_load_f64(t, d->x, i);
			double y = dtype_load_f64(t, d->y, i);
			double v = dtype_load_f64(t, d->o, i);
			double want = s->f(x, y, 0);

			if (t == TN_F32 && r->tolerance == 0)
				want = (double)(float)want;
			ok = close_to(v, want, r->tolerance);
			if (!ok)
				fail_msg("%s(%g, %g) of %s x%d is %g, not %g",
					r->name, x, y, dtype_name(t), lanes, v,
					want);
		} else {
			int64_t x = dtype_load_i64(t, d->x, i);
			int64_t y = dtype_load_i64(t, d->y, i);
			int64_t v = dtype_load_i64(t, d->o, i), want;

			dtype_store_i64(t, w.o, 0, s->i(x, y, 0));
			want = dtype_load_i64(t, w.o, 0);
			if (v != want)
				fail_msg("%s(%lld, %lld) of %s x%d is %lld, "
					 "not %lld",
					r->name, (long long)x, (long long)y,
					dtype_name(t), lanes, (long long)v,
					(long long)want);
		}
	}
}

static const struct row rows[] = {
	{"min", "fdi", 0, false},
	{"max", "fdi", 0, false},
	{"relu", "fdi", 0, false},
	{"abs", "fdi", 0, false},
	{"sign", "fdi", 0, false},
	{"div", "fdi", 0, false},
	{"fmod", "fdi", 0, false},
	{"mod", "di", 0, false},
	{"mod", "f", 1e-6, false},
	{"pow", "i", 0, false},
	{"pow", "fd", 1e-6, false},
	{"shl", "i", 0, false},
	{"shr", "i", 0, false},
	{"lt", "fdi", 0, true},
	{"le", "fdi", 0, true},
	{"gt", "fdi", 0, true},
	{"ge", "fdi", 0, true},
	{"eq", "fdi", 0, true},
	{"ne", "fdi", 0, true},
	{"isnan", "fd", 0, true},
	{"isinf", "fd", 0, true},
	{"sqrt", "fd", 0, false},
	{"rsqrt", "d", 0, false},
	{"floor", "fd", 0, false},
	{"ceil", "fd", 0, false},
	{"round", "fd", 0, false},
	{"trunc", "fd", 0, false},
	{"tf32", "fd", 0, false},
	{"exp", "d", 1e-15, false},
	{"log", "d", 1e-15, false},
	{"tanh", "d", 1e-15, false},
	{"erf", "d", 1e-15, false},
	{"sin", "d", 1e-15, false},
	{"cos", "d", 1e-15, false},
	{"expm1", "d", 1e-15, false},
	{"log1p", "d", 1e-15, false},
	{"sigmoid", "d", 1e-15, false},
	{"softplus", "d", 1e-15, false},
	{"tan", "fd", 1e-6, false},
	{"asin", "fd", 1e-6, false},
	{"acos", "fd", 1e-6, false},
	{"atan", "fd", 1e-6, false},
	{"sinh", "fd", 1e-6, false},
	{"cosh", "fd", 1e-6, false},
	{"asinh", "fd", 1e-6, false},
	{"acosh", "fd", 1e-6, false},
	{"atanh", "fd", 1e-6, false},
	{"atan2", "fd", 1e-6, false},
};
#define N_ROWS ((int32_t)(sizeof rows / sizeof *rows))

static void table_of(arena *a, void *arg)
{
	tn_dtype t = *(tn_dtype *)arg;
	char kind = t == TN_F32 ? 'f' : t == TN_F64 ? 'd' : 'i';
	const char *text[N_LANES];
	run_lib *lib[N_LANES];
	run_jit *j = run_jit_new(a, NULL);
	int32_t i, k;
	struct data d;

	memset(&d, 0, sizeof d);
	fill(&d, t);
	for (k = 0; k < N_LANES; k++) {
		c_math *m = c_math_new(a);
		str s = str_new(a);

		for (i = 0; i < N_ROWS; i++) {
			int32_t fn = ir_scalar_find(
				rows[i].name, strlen(rows[i].name));

			assert_true(fn >= 0);
			if (!strchr(rows[i].kinds, kind))
				continue;
			assert_non_null(c_math_use(
				m, rows[i].name, t, all_lanes[k]));
			add_kernel(&s, m, arena_printf(a, "k%d", i),
				rows[i].name, t, all_lanes[k],
				ir_scalar_at(fn)->n_args, rows[i].compares);
		}
		text[k] = arena_printf(a, "%s%s", c_math_text(m), s.at);
	}
	run_compile(j, text, N_LANES, lib);
	for (k = 0; k < N_LANES; k++)
		for (i = 0; i < N_ROWS; i++) {
			kernel *f;

			if (!strchr(rows[i].kinds, kind))
				continue;
			run_symbol(j, lib[k], arena_printf(a, "k%d", i), &f);
			f(d.x, d.y, d.o);
			check(&d, &rows[i], t, all_lanes[k]);
		}
}

static void test_table(void **state)
{
	static const tn_dtype types[] = {
		TN_F32, TN_F64, TN_I8, TN_I32, TN_I64, TN_U8};
	tn_diag d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof types / sizeof *types; i++) {
		tn_dtype t = types[i];

		if (unit_run(table_of, &t, 0, &d) != TN_OK)
			fail_msg("%s", d.text);
	}
}

/* ---- f16, bf16 ------------------------------------------------------- */

static const char *convert_text(arena *a, int32_t lanes)
{
	static const char *const h[] = {"f16", "bf16"};
	c_math *m = c_math_new(a);
	const char *load = c_math_use(m, "load", TN_F32, lanes);
	const char *store = c_math_use(m, "store", TN_F32, lanes);
	const char *load_h = c_math_use(m, "load", TN_F16, lanes);
	const char *store_h = c_math_use(m, "store", TN_BF16, lanes);
	str s = str_new(a);
	int32_t i;

	for (i = 0; i < 2; i++) {
		const char *to = arena_printf(a, "%s_from_f32", h[i]);
		const char *from = arena_printf(a, "f32_from_%s", h[i]);

		str_printf(&s,
			"\nvoid to_%s(const f32 *x, u16 *o)\n{\n"
			"	for (int i = 0; i < %d; i += %d)\n"
			"		%s(o + i, %s(%s(x + i)));\n}\n",
			h[i], N, lanes, store_h,
			c_math_use(m, to, TN_F32, lanes), load);
		str_printf(&s,
			"\nvoid from_%s(const u16 *x, f32 *o)\n{\n"
			"	for (int i = 0; i < %d; i += %d)\n"
			"		%s(o + i, %s(%s(x + i)));\n}\n",
			h[i], N, lanes, store,
			c_math_use(m, from, TN_F32, lanes), load_h);
	}
	c_math_type(m, TN_F32, 1);
	c_math_type(m, TN_F16, 1);
	return arena_printf(a, "%s%s", c_math_text(m), s.at);
}

static bool same_f32(float a, float b)
{
	return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static bool nan_h(uint16_t h, bool bf)
{
	return (h & 0x7fff) > (bf ? 0x7f80 : 0x7c00);
}

static void check_from(void (*f)(const uint16_t *, float *), bool bf)
{
	uint16_t h[N];
	float o[N];
	int32_t i, k;

	for (k = 0; k < 65536 / N; k++) {
		for (i = 0; i < N; i++)
			h[i] = (uint16_t)(k * N + i);
		f(h, o);
		for (i = 0; i < N; i++) {
			float want = bf ? bf16_to_f32(h[i]) : f16_to_f32(h[i]);

			if (!same_f32(o[i], want))
				fail_msg("%s %04x is %a, not %a",
					bf ? "bf16" : "f16", h[i], (double)o[i],
					(double)want);
		}
	}
}

/* every 4999th float, and all within 2 of a tie of f16 */
static void check_to(void (*f)(const float *, uint16_t *), bool bf)
{
	uint16_t o[N];
	float x[N];
	uint64_t at;
	int32_t i;

	for (at = 0; at < (uint64_t)1 << 32; at += (uint64_t)N * 4999) {
		for (i = 0; i < N; i++) {
			uint32_t b = (uint32_t)(at + (uint64_t)i * 4999);

			if (i % 2) /* next to a tie */
				b = (b & ~UINT32_C(0x1fff)) + UINT32_C(0x0fff) +
				    (b & 3);
			memcpy(&x[i], &b, sizeof b);
		}
		f(x, o);
		for (i = 0; i < N; i++) {
			uint16_t want = bf ? f32_to_bf16(x[i])
					   : f32_to_f16(x[i]);

			if (o[i] != want &&
				!(nan_h(o[i], bf) && nan_h(want, bf)))
				fail_msg("%a as %s is %04x, not %04x",
					(double)x[i], bf ? "bf16" : "f16", o[i],
					want);
		}
	}
}

static void conversions(arena *a, void *arg)
{
	static const int32_t lanes[] = {1, 4, 8, 16};
	run_jit *j = run_jit_new(a, NULL);
	const char *text[4];
	run_lib *lib[4];
	int32_t i;

	(void)arg;
	for (i = 0; i < 4; i++)
		text[i] = convert_text(a, lanes[i]);
	run_compile(j, text, 4, lib);
	for (i = 0; i < 4; i++) {
		void (*from)(const uint16_t *, float *);
		void (*to)(const float *, uint16_t *);

		run_symbol(j, lib[i], "from_f16", &from);
		check_from(from, false);
		run_symbol(j, lib[i], "from_bf16", &from);
		check_from(from, true);
		run_symbol(j, lib[i], "to_f16", &to);
		check_to(to, false);
		run_symbol(j, lib[i], "to_bf16", &to);
		check_to(to, true);
	}
}

static void test_conversions(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(conversions, NULL, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
}

/* ---- u01, folds ------------------------------------------------------ */

static const char *other_text(arena *a, int32_t lanes)
{
	static const char *const folds[] = {"sum", "prod", "hmax", "hmin"};
	c_math *m = c_math_new(a);
	const char *load = c_math_use(m, "load", TN_F32, lanes);
	const char *store = c_math_use(m, "store", TN_F32, lanes);
	const char *load_i = c_math_use(m, "load", TN_I64, lanes);
	const char *u01 = c_math_use(m, "u01", TN_F32, lanes);
	str s = str_new(a);
	int32_t i;

	c_math_type(m, TN_I64, 1);
	str_printf(&s,
		"\nvoid u01(const i64 *x, const i64 *y, f32 *o)\n{\n"
		"	for (int i = 0; i < %d; i += %d)\n"
		"		%s(o + i, %s(%s(x + i), %s(y + i)));\n}\n",
		N, lanes, store, u01, load_i, load_i);
	for (i = 0; i < 4; i++)
		str_printf(&s,
			"\nf32 %s(const f32 *x)\n{\n	return %s("
			"%s(x));\n}\n",
			folds[i], c_math_use(m, folds[i], TN_F32, lanes),
			load);
	return arena_printf(a, "%s%s", c_math_text(m), s.at);
}

static void check_u01(void (*f)(const int64_t *, const int64_t *, float *))
{
	int64_t key[N], counter[N];
	float o[N];
	int32_t i;

	for (i = 0; i < N; i++) {
		key[i] = i % 3 ? i / 100 : INT64_MIN + i;
		counter[i] = i % 5 ? i : INT64_MAX - i;
	}
	f(key, counter, o);
	for (i = 0; i < N; i++)
		if (!same_f32(o[i], base_u01(key[i], counter[i])))
			fail_msg("u01(%lld, %lld) is %a", (long long)key[i],
				(long long)counter[i], (double)o[i]);
}

static float fold(const char *how, const float *x, int32_t n)
{
	float a, b;

	if (n == 1)
		return x[0];
	if (how[0] == 's' || how[0] == 'p') {
		float y[32];
		int32_t i;

		for (i = 0; i < n / 2; i++)
			y[i] = how[0] == 's' ? x[i] + x[i + n / 2]
					     : x[i] * x[i + n / 2];
		return fold(how, y, n / 2);
	}
	a = fold(how, x, n / 2);
	b = fold(how, x + n / 2, n / 2);
	if (isnan(a) || isnan(b))
		return NAN;
	return (how[2] == 'a') == (a > b) ? a : b;
}

static void others(arena *a, void *arg)
{
	static const int32_t lanes[] = {1, 4, 16, 32};
	static const char *const folds[] = {"sum", "prod", "hmax", "hmin"};
	run_jit *j = run_jit_new(a, NULL);
	const char *text[4];
	run_lib *lib[4];
	int32_t i, k, n;

	(void)arg;
	for (i = 0; i < 4; i++)
		text[i] = other_text(a, lanes[i]);
	run_compile(j, text, 4, lib);
	for (i = 0; i < 4; i++) {
		void (*u)(const int64_t *, const int64_t *, float *);

		run_symbol(j, lib[i], "u01", &u);
		check_u01(u);
		for (k = 0; k < 4 * 40; k++) {
			float (*f)(const float *), x[32];

			run_symbol(j, lib[i], folds[k % 4], &f);
			for (n = 0; n < 32; n++)
				x[n] = base_u01(k, n) * 3 - 1;
			if (k >= 4 * 30)
				x[k % 32] = NAN;
			if (!same_f32(f(x), fold(folds[k % 4], x, lanes[i])))
				fail_msg("%s of %d lanes", folds[k % 4],
					lanes[i]);
		}
	}
}

static void test_others(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(others, NULL, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
}

/* ---- parts of vectors ------------------------------------------------- */

/*
 * For each number of lanes in memory: loads and stores of so many; of floats also
 * loads of those that a mask wants.
 */
static const char *parts_text(arena *a, tn_dtype t, int32_t lanes)
{
	c_math *m = c_math_new(a);
	const char *elem = c_math_type(m, t, 1);
	const char *load = c_math_use(m, "load", t, lanes);
	const char *store = c_math_use(m, "store", t, lanes);
	const char *load_part = c_math_use(m, "load_part", t, lanes);
	const char *store_part = c_math_use(m, "store_part", t, lanes);
	const char *mask = c_math_use(m, "load_mask", t, lanes);
	str s = str_new(a);

	for (int32_t n = 1; n <= lanes; n++) {
		str_printf(&s,
			"\nvoid load_%d(const %s *x, %s *o)\n{\n"
			"	%s(o, %s(x, %d));\n}\n"
			"\nvoid store_%d(const %s *x, %s *o)\n{\n"
			"	%s(o, %s(x), %d);\n}\n",
			n, elem, elem, store, load_part, n, n, elem, elem,
			store_part, load, n);
		if (mask != NULL)
			str_printf(&s,
				"\nvoid mask_%d(const %s *x, %s *o)\n{\n"
				"	%s(o, %s(x, %s(%s(o), %s(0)), %d, 0));\n}\n",
				n, elem, elem, store, mask,
				c_math_use(m, "ne", t, lanes), load,
				c_math_use(m, "splat", t, lanes), n);
	}
	return arena_printf(a, "%s%s", c_math_text(m), s.at);
}

typedef void part(const void *x, void *o);

/* A page behind which nothing may be touched; `end` is behind it. */
static uint8_t *page_new(uint8_t **end)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mprotect(p + size, size, PROT_NONE), 0);
	*end = p + size;
	return p;
}

enum { MOST_BYTES = 16 * 8, FILL = 0x5a };

/* x: n elements up to the end of a page; others are read nowhere. */
static void check_part(arena *a, run_jit *j, run_lib *lib, int32_t n,
	size_t vector, size_t one, uint8_t *end)
{
	uint8_t x[MOST_BYTES], want[MOST_BYTES], o[MOST_BYTES], *at;
	size_t bytes = (size_t)n * one;
	part *f;

	for (size_t i = 0; i < MOST_BYTES; i++)
		x[i] = (uint8_t)(3 * i + 1);
	at = end - bytes;
	memcpy(at, x, bytes);
	memset(want, 0, sizeof want);
	memcpy(want, x, bytes);
	run_symbol(j, lib, arena_printf(a, "load_%d", n), &f);
	f(at, o);
	assert_memory_equal(o, want, vector);
	memset(at - vector, FILL, vector + bytes);
	run_symbol(j, lib, arena_printf(a, "store_%d", n), &f);
	f(x, at);
	assert_memory_equal(at, x, bytes);
	for (size_t i = 0; i < vector; i++)
		assert_int_equal((at - vector)[i], FILL);
}

/* Every third lane is wanted, none of them behind the end. */
static void check_mask(arena *a, run_jit *j, run_lib *lib, int32_t n,
	int32_t lanes, uint8_t *end)
{
	float x[16], o[16], *at = (float *)(void *)end - n;
	part *f;

	for (int32_t i = 0; i < n; i++)
		at[i] = x[i] = (float)(i + 7);
	for (int32_t i = 0; i < lanes; i++)
		o[i] = i % 3 == 0;
	run_symbol(j, lib, arena_printf(a, "mask_%d", n), &f);
	f(at, o);
	for (int32_t i = 0; i < lanes; i++)
		if (i % 3 == 0)
			assert_true(o[i] == (i < n ? x[i] : 0));
}

static void parts(arena *a, void *arg)
{
	static const tn_dtype types[] = {
		TN_F32, TN_F64, TN_I32, TN_BF16, TN_U8};
	static const int32_t lanes[] = {4, 8, 16};
	run_jit *j = run_jit_new(a, NULL);
	const char *text[15];
	run_lib *lib[15];
	uint8_t *end, *page = page_new(&end);

	(void)arg;
	for (int32_t i = 0; i < 15; i++)
		text[i] = parts_text(a, types[i / 3], lanes[i % 3]);
	run_compile(j, text, 15, lib);
	for (int32_t i = 0; i < 15; i++)
		for (int32_t n = 1; n <= lanes[i % 3]; n++) {
			size_t one = dtype_size(types[i / 3]);

			check_part(a, j, lib[i], n,
				(size_t)lanes[i % 3] * one, one, end);
			if (types[i / 3] == TN_F32)
				check_mask(a, j, lib[i], n, lanes[i % 3], end);
		}
	munmap(page, 2 * (size_t)(end - page));
}

static void test_parts(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(parts, NULL, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
}

/* ---- the text -------------------------------------------------------- */

static void once_each(arena *a, void *arg)
{
	c_math *m = c_math_new(a);
	const char *f = c_math_use(m, "sin", TN_F32, 8), *one;
	size_t n = strlen(c_math_text(m));

	(void)arg;
	assert_string_equal(f, "sin_f32x8");
	assert_string_equal(c_math_use(m, "sin", TN_F32, 8), "sin_f32x8");
	assert_string_equal(c_math_use(m, "sin", TN_F32, 1), "sin_f32");
	assert_int_equal(strlen(c_math_text(m)), n); /* sin_f32 was there */
	one = strstr(c_math_text(m), "f32 sin_f32(");
	assert_non_null(one);
	assert_null(strstr(one + 1, "f32 sin_f32("));
	assert_true(one < strstr(c_math_text(m), "f32x8 sin_f32x8("));
	assert_string_equal(c_math_type(m, TN_BF16, 4), "u16x4");
	assert_null(c_math_use(m, "no_such", TN_F32, 1));
	assert_null(c_math_use(m, "exp", TN_I32, 1));
	assert_null(strchr(c_math_text(m), '@'));
}

static void test_text(void **state)
{
	(void)state;
	assert_int_equal(unit_run(once_each, NULL, 0, NULL), TN_OK);
	unit_each_alloc_fails(once_each, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
