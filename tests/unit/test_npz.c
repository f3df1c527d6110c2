/*
 * npz.c, inflate.c: archives of each kind are read; whatever byte of one is
 * changed or missing, it is refused or gives the same arrays.
 */
#include "unit.h"

#include <stdlib.h>

#include "file/file.h"
#include "npz_bytes.h"

enum { N = sizeof npz_bytes };

struct parse {
	unsigned char bytes[N];
	size_t n;
};

static const char *const names[] = {"stored", "kept", "fixed", "dynamic"};

static void check_arrays(const file_named *z)
{
	assert_int_equal(z->n, 4);
	for (int32_t i = 0; i < 3; i++) {
		const file_array *x = &z->array[i];

		assert_int_equal(x->dtype, TN_U8);
		assert_int_equal(x->rank, 2);
		for (int64_t k = 0; k < 6; k++)
			assert_int_equal(dtype_load_i64(TN_U8, x->data, k), k);
	}
	assert_int_equal(z->array[3].dtype, TN_I32);
	assert_int_equal(z->array[3].shape[0], 300);
	for (int64_t k = 0; k < 300; k++)
		assert_int_equal(dtype_load_i64(TN_I32, z->array[3].data, k),
			k * k % 251 * 7);
}

static void parses(arena *a, void *arg)
{
	const struct parse *p = arg;
	unsigned char *bytes = malloc(p->n + 1); /* so that ASan sees its end */
	file_named z;

	assert_non_null(bytes);
	arena_defer(a, free, bytes);
	memcpy(bytes, p->bytes, p->n);
	file_npz_parse(a, "x.npz", bytes, p->n, &z);
	check_arrays(&z);
	for (int32_t i = 0; i < 4 && memcmp(p->bytes, npz_bytes, N) == 0; i++)
		assert_string_equal(z.name[i], names[i]);
}

static void refused(struct parse *p, const char *what, size_t at)
{
	tn_diag d;

	if (unit_run(parses, p, 0, &d) == TN_OK)
		return; /* dates, versions, names: the arrays are the same */
	if (strncmp(d.rule, "npz.", 4) != 0 && strncmp(d.rule, "npy.", 4) != 0)
		fail_msg("%s %zu: [%s] %s", what, at, d.rule, d.text);
}

static void test_good(void **state)
{
	struct parse p = {.n = N};
	tn_diag d;

	(void)state;
	memcpy(p.bytes, npz_bytes, N);
	if (unit_run(parses, &p, 0, &d) != TN_OK)
		fail_msg("[%s] %s", d.rule, d.text);
}

static void test_truncated(void **state)
{
	(void)state;
	for (size_t n = 0; n < N; n++) {
		struct parse p = {.n = n};
		tn_diag d;

		memcpy(p.bytes, npz_bytes, N);
		assert_int_not_equal(unit_run(parses, &p, 0, &d), TN_OK);
		assert_string_equal(d.rule, "npz.magic");
	}
}

static void test_changed(void **state)
{
	static const unsigned char mask[] = {1, 0x10, 0x80, 0xff};

	(void)state;
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < sizeof mask; k++) {
			struct parse p = {.n = N};

			memcpy(p.bytes, npz_bytes, N);
			p.bytes[i] ^= mask[k];
			refused(&p, "byte", i);
		}
}

/* A byte of the compressed data itself: the checksum is another. */
static void test_checksum(void **state)
{
	struct parse p = {.n = N};
	tn_diag d;

	(void)state;
	memcpy(p.bytes, npz_bytes, N);
	p.bytes[30 + 10 + 128] ^= 4; /* the first element of "stored" */
	assert_int_equal(unit_run(parses, &p, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npz.checksum");
}

/* ---- much out of little ---- */

static size_t directory_at(const unsigned char *b, size_t n)
{
	const unsigned char *at = b + n - 22 + 16;

	return at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16;
}

/* Entry `to` of the directory says what entry `from` says, but for its name. */
static void share(struct parse *p, int from, int to)
{
	unsigned char *entry[4], *at = p->bytes + directory_at(p->bytes, N);

	for (int i = 0; i < 4; i++) {
		entry[i] = at;
		at += 46 + at[28] + (at[29] << 8) + at[30] + (at[31] << 8);
	}
	memcpy(entry[to] + 10, entry[from] + 10, 18);
	memcpy(entry[to] + 42, entry[from] + 42, 4);
}

static void test_shared(void **state)
{
	static const int pairs[][2] = {{3, 0}, {3, 2}, {0, 3}, {0, 2}, {2, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct parse p = {.n = N};
		tn_diag d;

		memcpy(p.bytes, npz_bytes, N);
		share(&p, pairs[i][0], pairs[i][1]);
		assert_int_equal(unit_run(parses, &p, 0, &d), TN_EIO);
		assert_string_equal(d.rule, "npz.overlap");
	}
}

static void put(unsigned char *b, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		b[i] = (unsigned char)(v >> (8 * i));
}

/* Two members of 3 MB that say they make 3 GB each. */
static void huge(arena *a, void *arg)
{
	enum { PACKED = 3000000, LOCAL = 30 + 5, ENTRY = 46 + 5 };
	const uint64_t size = 1030 * (uint64_t)PACKED;
	const size_t n = 2 * (LOCAL + PACKED) + 2 * ENTRY + 22;
	unsigned char *b = calloc(n, 1), *at = b;
	file_named z;

	(void)arg;
	assert_non_null(b);
	arena_defer(a, free, b);
	for (int i = 0; i < 2; i++, at += LOCAL + PACKED) {
		put(at, 0x04034b50, 4);
		put(at + 26, 5, 2);
		memcpy(at + 30, i == 0 ? "a.npy" : "b.npy", 5);
	}
	for (uint64_t i = 0; i < 2; i++, at += ENTRY) {
		put(at, 0x02014b50, 4);
		put(at + 10, 8, 2);
		put(at + 20, PACKED, 4);
		put(at + 24, size, 4);
		put(at + 28, 5, 2);
		put(at + 42, i * (LOCAL + PACKED), 4);
		memcpy(at + 46, i == 0 ? "a.npy" : "b.npy", 5);
	}
	put(at, 0x06054b50, 4);
	put(at + 10, 2, 2);
	put(at + 16, 2 * (LOCAL + PACKED), 4);
	file_npz_parse(a, "x.npz", b, n, &z);
}

static void test_huge(void **state)
{
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(huge, NULL, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npz.size");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_huge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
