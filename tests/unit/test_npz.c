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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_checksum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
