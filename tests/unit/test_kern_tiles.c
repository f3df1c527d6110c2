/*
 * kern/: sums in tile registers are the same bits in the interpreter and in C: by the
 * instructions of the machine, where it has them, else in plain C.
 */
#include "unit.h"
#include "kern_run.h"

#include "run/run.h"
#include "target/c/c.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct product {
	int32_t rows, vectors, terms;
	tn_dtype x, y;
	bool wild; /* any bits: subnormal numbers, infinities, NaN */
};

static const struct product products[] = {
	{32, 2, 64, TN_BF16, TN_BF16, false}, {32, 2, 64, TN_BF16, TN_BF16, true},
	{1, 1, 1, TN_BF16, TN_BF16, false}, {16, 1, 32, TN_BF16, TN_BF16, true},
	{17, 2, 33, TN_BF16, TN_BF16, false}, {23, 2, 77, TN_BF16, TN_BF16, true},
	{5, 2, 7, TN_BF16, TN_BF16, true}, {32, 1, 31, TN_BF16, TN_BF16, false},
	{32, 2, 128, TN_I8, TN_I8, false}, {19, 1, 70, TN_U8, TN_I8, false},
	{3, 2, 5, TN_I8, TN_U8, false}, {31, 2, 65, TN_U8, TN_U8, false}};

enum { GAP = 5 }; /* elements between rows of sums, which stay as they are */

/* Twice the same: sums begin with 0, whatever is in memory, then with others. */
static const char *text_of(arena *a, const struct product *p)
{
	int32_t each = kern_tile_terms(p->x, p->y), columns = 16 * p->vectors;
	const char *sum = p->x == TN_BF16 ? "f32" : "i32";
	str s = str_new(a);

	str_printf(&s, "kernel 0 tiles {\n  param p0: %s[%d] out\n", sum,
		p->rows * (columns + GAP));
	str_printf(&s, "  param p1: %s[%d] in\n  param p2: %s[%d] in\n",
		dtype_name(p->x), (p->rows - 1) * (p->terms + 3) + p->terms,
		dtype_name(p->y),
		(p->terms + each - 1) / each * columns * each);
	str_printf(&s,
		"  phase of 1 chunks {\n"
		"    for %%i0 = 0 .. 2 {\n"
		"      %%1: bool = inside %%i0, 0, 1\n"
		"      tiles p0[0] rows %d of p1[0] rows %d, p2[0] rows %d, %d by %d by %d zero %%1\n"
		"    }\n  }\n}\n",
		columns + GAP, p->terms + 3, columns * each, p->rows, columns,
		p->terms);
	return s.at;
}

/* 0 <= n < most, from a sequence of a prime number of states */
static uint32_t below(uint64_t *state, uint32_t most)
{
	*state = *state * 48271 % 2147483647;
	return (uint32_t)(*state % most);
}

/* Near 1, near the smallest normal number, or any bits. */
static uint16_t bits_of(uint64_t *r, bool wild)
{
	uint16_t any = (uint16_t)below(r, 1 << 16);

	if (!wild || below(r, 3) > 0)
		return (uint16_t)((any & 0x80ff) | 0x3f00);
	return below(r, 2) > 0 ? (uint16_t)(any & 0xa0ff) : any;
}

static void *data_of(arena *a, const kern_array *p, uint64_t *r, bool wild)
{
	uint8_t *at = arena_alloc(a, (size_t)p->elems * dtype_size(p->dtype), 64);

	for (int64_t i = 0; i < p->elems; i++) {
		uint32_t n = p->dtype == TN_BF16 ? bits_of(r, wild)
			     : p->out		 ? below(r, 1 << 30) << 2
						 : below(r, 256);

		memcpy(at + i * (int64_t)dtype_size(p->dtype), &n,
			dtype_size(p->dtype));
	}
	return at;
}

typedef void kernel(void *const *, void *, void *, int64_t, int64_t *);

static void same_bits(arena *a, void *arg)
{
	const struct product *p = arg;
	const char *text = text_of(a, p);
	kern_kernel *k = kern_parse(a, text, strlen(text), "text");
	run_jit *j = run_jit_new(a, "");
	uint64_t r = 11 + (uint64_t)(p - products);
	void *param[3], *other[3], *before;
	const c_kernel *c;
	str unit = str_new(a);
	const char *source;
	run_lib *lib;
	kernel *fn;
	int64_t err = 0;

	kern_verify(k);
	for (int32_t i = 0; i < 3; i++)
		other[i] = param[i] = data_of(a, &k->array.at[i], &r, p->wild);
	before = arena_copy(a, param[0],
		(size_t)k->array.at[0].elems * dtype_size(k->array.at[0].dtype));
	other[0] = arena_copy(a, before,
		(size_t)k->array.at[0].elems * dtype_size(k->array.at[0].dtype));
	assert_int_equal(kern_run(a, k, param, 1), 0);
	c = c_gnu.print(a, k);
	c_gnu.unit(&unit, &c, 1);
	source = unit.at;
	run_compile(j, &source, 1, &lib);
	run_symbol(j, lib, c->phase[0].fn, &fn);
	fn(other, NULL, NULL, 0, &err);
	for (int64_t i = 0; i < k->array.at[0].elems; i++) {
		bool gap = i % (16 * p->vectors + GAP) >= 16 * p->vectors;
		uint32_t want = ((uint32_t *)(gap ? before : param[0]))[i];
		uint32_t got = ((uint32_t *)other[0])[i];
		bool nan = p->x == TN_BF16 && isnan(((float *)param[0])[i]) &&
			   isnan(((float *)other[0])[i]);

		if (want != got && !nan)
			fail_msg("%d x %d vectors, %d terms: element %" PRId64
				 " is %08x, not %08x",
				p->rows, p->vectors, p->terms, i, got, want);
	}
	if (p == products)
		print_message("in %s\n", run_jit_target(j)->tiles
				? "tile registers"
				: "plain C: this machine has no tile registers, or lets nobody use them");
}

static void test_same_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
		tn_diag d = {0};

		if (unit_run(same_bits, (void *)(uintptr_t)&products[i], 0, &d) !=
			TN_OK)
			fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
	}
}

/* .. of a processor without these registers. */
static void test_plain(void **state)
{
#if defined(__x86_64__)
	assert_int_equal(setenv("TENON_TARGET", "haswell", 1), 0);
	test_same_bits(state);
#else
	(void)state;
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_plain)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
