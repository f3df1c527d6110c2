/*
 * npy.c, header.c: what NumPy writes is read; what nobody should have written
 * is refused, each with its rule; a file that cannot be written stays as it was.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file.h"

/* A file in memory: version, dictionary, n_data bytes 1, 2, 3 ... */
struct image {
	unsigned char bytes[70000];
	size_t n;
};

static void make_image(
	struct image *m, int version, const char *dictionary, size_t n_data)
{
	size_t n = strlen(dictionary);

	memcpy(m->bytes, "\x93NUMPY", 6);
	m->bytes[6] = (unsigned char)version;
	m->bytes[7] = 0;
	m->bytes[8] = n & 0xff;
	m->bytes[9] = n >> 8 & 0xff;
	m->n = 10;
	if (version > 1) {
		m->bytes[10] = n >> 16 & 0xff;
		m->bytes[11] = 0;
		m->n = 12;
	}
	memcpy(m->bytes + m->n, dictionary, n);
	m->n += n;
	for (size_t i = 0; i < n_data; i++)
		m->bytes[m->n++] = (unsigned char)(i + 1);
}

struct parse {
	const struct image *m;
	file_array x;
	int64_t first, last; /* elements, as integers */
};

static void parses(arena *a, void *arg)
{
	struct parse *p = arg;
	int64_t n;
	/* in a block of its own size, so that ASan sees an overrun */
	unsigned char *bytes = malloc(p->m->n > 0 ? p->m->n : 1);

	assert_non_null(bytes);
	arena_defer(a, free, bytes);
	memcpy(bytes, p->m->bytes, p->m->n);
	file_npy_parse(a, "x.npy", bytes, p->m->n, &p->x);
	n = shape_numel(p->x.shape, p->x.rank);
	if (n > 0) {
		p->first = dtype_load_i64(p->x.dtype, p->x.data, 0);
		p->last = dtype_load_i64(p->x.dtype, p->x.data, n - 1);
	}
}

#define HEAD(descr, order, shape)                                            \
	"{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape \
	", }  \n"

static const struct {
	const char *dictionary;
	size_t n_data;
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK], first, last;
} good[] = {
	{HEAD("|u1", "False", "(2, 3)"), 6, TN_U8, 2, {2, 3}, 1, 6},
	{HEAD("|i1", "True", "(6,)"), 6, TN_I8, 1, {6}, 1, 6},
	{HEAD("<i1", "True", "()"), 1, TN_I8, 0, {0}, 1, 1},
	{HEAD("|b1", "False", "(3,)"), 3, TN_BOOL, 1, {3}, 1, 1},
	{HEAD("<i2", "False", "(2,)"), 4, TN_I16, 1, {2}, 0x201, 0x403},
	{HEAD(">i2", "False", "(2,)"), 4, TN_I16, 1, {2}, 0x102, 0x304},
	{HEAD("=i2", "False", "(2,)"), 4, TN_I16, 1, {2}, 0x201, 0x403},
	{HEAD("<i4", "False", "()"), 4, TN_I32, 0, {0}, 0x4030201, 0x4030201},
	{HEAD(">i4", "True", "()"), 4, TN_I32, 0, {0}, 0x1020304, 0x1020304},
	{HEAD(">i8", "False", "(1,)"), 8, TN_I64, 1, {1}, 0x102030405060708,
		0x102030405060708},
	{HEAD("<u2", "False", "(2,)"), 4, TN_U16, 1, {2}, 0x201, 0x403},
	{HEAD(">u4", "False", "()"), 4, TN_U32, 0, {0}, 0x1020304, 0x1020304},
	{HEAD("<u8", "False", "()"), 8, TN_U64, 0, {0}, 0x807060504030201,
		0x807060504030201},
	{HEAD("<f2", "False", "(1, 1)"), 2, TN_F16, 2, {1, 1}, 0, 0},
	{HEAD("<f4", "False", "(0, 7)"), 0, TN_F32, 2, {0, 7}, 0, 0},
	{HEAD("<f8", "True", "(7, 0)"), 0, TN_F64, 2, {7, 0}, 0, 0},
	{HEAD("|u1", "True", "(1, 1, 1, 1, 1, 1, 1, 2)"), 2, TN_U8, 8,
		{1, 1, 1, 1, 1, 1, 1, 2}, 1, 2},
	/* any order of keys, other quotes, no spaces, an L of Python 2 */
	{"{\"shape\":(2L,3L),'descr':\"|u1\",'fortran_order':False}", 6, TN_U8,
		2, {2, 3}, 1, 6},
};

static void test_good(void **state)
{
	static struct image m;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		for (int version = 1; version <= 3; version++) {
			struct parse p = {.m = &m};
			tn_diag d;

			make_image(&m, version, good[i].dictionary,
				good[i].n_data);
			if (unit_run(parses, &p, 0, &d) != TN_OK)
				fail_msg("%s: %s", good[i].dictionary, d.text);
			assert_int_equal(p.x.dtype, good[i].dtype);
			assert_int_equal(p.x.rank, good[i].rank);
			for (int32_t k = 0; k < p.x.rank; k++)
				assert_int_equal(
					p.x.shape[k], good[i].shape[k]);
			assert_int_equal(p.first, good[i].first);
			assert_int_equal(p.last, good[i].last);
		}
}

#define OK_HEAD HEAD("|u1", "False", "(2, 3)")

static const struct {
	const char *dictionary;
	size_t n_data;
	const char *rule, *text;
} bad[] = {
	{"", 0, "npy.header", "'{'"},
	{"{", 0, "npy.header", "key"},
	{"{}", 0, "npy.header", "all three keys"},
	{"{'descr", 0, "npy.header", "key"},
	{"{'descr'", 0, "npy.header", "':'"},
	{"{'descr': ", 0, "npy.header", "dtype"},
	{"{'descr': '<f4", 0, "npy.header", "dtype"},
	{"{'descr': '<f4', ", 0, "npy.header", "key"},
	{"{'descr': '<f4', 'descr': '<f4'}", 0, "npy.header", "each once"},
	{"{'colour': '<f4'}", 0, "npy.header", "each once"},
	{"{'\\x41': '<f4'}", 0, "npy.header", "key"},
	{"{'descr': '<f4', 'shape': ()}", 4, "npy.header", "all three keys"},
	{OK_HEAD "x", 6, "npy.header", "end"},
	{OK_HEAD "{'descr': '<f4'}", 6, "npy.header", "end"},
	{HEAD("<f4", "Maybe", "()"), 4, "npy.header", "True or False"},
	{HEAD("<f4", "False", "3"), 12, "npy.header", "'('"},
	{HEAD("<f4", "False", "(3)"), 12, "npy.header", "','"},
	{HEAD("<f4", "False", "(2 3)"), 24, "npy.header", "','"},
	{HEAD("<f4", "False", "(2,, 3)"), 24, "npy.header", "extent"},
	{HEAD("<f4", "False", "(2, 0x3)"), 24, "npy.header", "','"},
	{HEAD("<f4", "False", "(2.0,)"), 8, "npy.header", "','"},
	{HEAD("<f4", "False", "((2,), 3)"), 24, "npy.header", "extent"},
	{HEAD("<f4", "False", "(((((((((((((((((((("), 4, "npy.header",
		"extent"},
	{HEAD("<f4", "False", "[2, 3]"), 24, "npy.header", "'('"},
	{HEAD("<f4", "False", "(2, "), 24, "npy.header", "extent"},
	{HEAD("<f4", "False", "(-1, 3)"), 12, "npy.shape", "negative"},
	{HEAD("<f4", "False", "(2, -0)"), 0, "npy.shape", "negative"},
	{HEAD("<f4", "False", "(9223372036854775808,)"), 4, "npy.shape",
		"64 bits"},
	{HEAD("<f4", "False", "(99999999999999999999999999999999,)"), 4,
		"npy.shape", "64 bits"},
	{HEAD("<f4", "False", "(4294967296, 4294967296)"), 4, "npy.shape",
		"2^48"},
	{HEAD("<f8", "False", "(4611686018427387904, 0)"), 0, "npy.shape",
		"2^48"},
	{HEAD("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, "npy.shape",
		"more than 8 axes"},
	{HEAD("<f4", "False", "(281474976710656,)"), 4, "npy.truncated",
		"takes 1125899906842624 bytes"},
	{HEAD("<f8", "False", "(2,)"), 15, "npy.truncated", "only 15"},
	{HEAD("<f8", "True", "(3, 2)"), 40, "npy.truncated", "takes 48"},
	{HEAD("<f8", "False", "(2,)"), 17, "npy.size", "has 17"},
	{HEAD("<f4", "False", "(0,)"), 1, "npy.size", "takes 0 bytes"},
	{HEAD("<c16", "False", "()"), 16, "npy.dtype", "'<c16'"},
	{HEAD("<f1", "False", "()"), 1, "npy.dtype", "f4 f8 f2 i1 i2 i4"},
	{HEAD("|O", "False", "()"), 8, "npy.dtype", "'|O'"},
	{HEAD("<U7", "False", "()"), 28, "npy.dtype", "'<U7'"},
	{HEAD("f4", "False", "()"), 4, "npy.dtype", "'f4'"},
	{HEAD("|f4", "False", "()"), 4, "npy.dtype", "'|f4'"},
	{HEAD("!f4", "False", "()"), 4, "npy.dtype", "'!f4'"},
	{HEAD("", "False", "()"), 4, "npy.dtype", "''"},
	{HEAD("<f4aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 "False", "()"),
		4, "npy.dtype", "aaa' are"},
	{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 4,
		"npy.dtype", "structured"},
};

static void expect_refused(struct image *m, const char *rule, const char *text)
{
	struct parse p = {.m = m};
	tn_diag d;

	assert_true(unit_run(parses, &p, 0, &d) < 0);
	assert_string_equal(d.rule, rule);
	assert_string_equal(d.file, "x.npy");
	if (strstr(d.text, text) == NULL)
		fail_msg("no %s in: %s", text, d.text);
}

static void test_bad(void **state)
{
	static struct image m;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		make_image(
			&m, 1 + (int)i % 3, bad[i].dictionary, bad[i].n_data);
		expect_refused(&m, bad[i].rule, bad[i].text);
	}
}

static void test_bad_prefix(void **state)
{
	static struct image m;

	(void)state;
	make_image(&m, 1, OK_HEAD, 6);
	for (size_t n = m.n - 1; n > 0; n--) { /* cut anywhere */
		m.n = n;
		expect_refused(&m, n < 10 ? "npy.magic" : "npy.truncated", "");
	}
	m.n = 0;
	expect_refused(&m, "npy.magic", "not an .npy file");
	make_image(&m, 2, OK_HEAD, 6);
	m.n = 11; /* within the length of version 2 */
	expect_refused(&m, "npy.truncated", "11 bytes");
	make_image(&m, 1, OK_HEAD, 6);
	m.bytes[0] = 'x';
	expect_refused(&m, "npy.magic", "not an .npy file");
	make_image(&m, 4, OK_HEAD, 6);
	expect_refused(&m, "npy.version", "version 4.0");
	make_image(&m, 1, OK_HEAD, 6);
	m.bytes[7] = 1;
	expect_refused(&m, "npy.version", "version 1.1");
	make_image(&m, 2, OK_HEAD, 6);
	m.bytes[11] = 0xff; /* 4 GB of header */
	expect_refused(&m, "npy.header", "at most 65536");
	make_image(&m, 1, OK_HEAD, 6);
	m.bytes[9] = 0xff;
	expect_refused(&m, "npy.truncated", "within its header");
}

/* ---- order of elements ---- */

/* u1 [2,3,4]: in Fortran order byte 1 + i + 2j + 6k is element [i,j,k] */
static void turns(arena *a, void *arg)
{
	static struct image m;
	const unsigned char *data;
	file_array x;

	(void)arg;
	make_image(&m, 1, HEAD("|u1", "True", "(2, 3, 4)"), 24);
	file_npy_parse(a, "x.npy", m.bytes, m.n, &x);
	data = x.data;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++)
			for (int k = 0; k < 4; k++)
				assert_int_equal(
					*data++, 1 + i + 2 * j + 6 * k);
	make_image(&m, 1, HEAD(">i2", "True", "(2, 2)"), 8);
	file_npy_parse(a, "x.npy", m.bytes, m.n, &x);
	assert_int_equal(((int16_t *)x.data)[0], 0x0102);
	assert_int_equal(((int16_t *)x.data)[1], 0x0506);
	assert_int_equal(((int16_t *)x.data)[2], 0x0304);
	assert_int_equal(((int16_t *)x.data)[3], 0x0708);
}

static void test_order(void **state)
{
	(void)state;
	unit_each_alloc_fails(turns, NULL);
}

/* ---- files ---- */

static char folder[] = "/tmp/tenon_npy_XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int count_entries(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* fails if a test left something */
}

/* Every dtype and rank, written and read; the bytes are those of NumPy. */
static void round_trips(arena *a, void *arg)
{
	static const int64_t shapes[][1 + TN_MAX_RANK] = {
		{0},
		{1, 5},
		{1, 0},
		{2, 3, 4},
		{3, 2, 0, 4},
		{8, 1, 2, 1, 2, 1, 2, 1, 2},
	};
	const char *path = arena_printf(a, "%s/x.npy", folder);

	(void)arg;
	for (int t = 0; t < TN_N_DTYPES; t++)
		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
			file_array x = {.dtype = (tn_dtype)t}, y;
			int64_t n;

			x.rank = (int32_t)shapes[i][0];
			memcpy(x.shape, shapes[i] + 1, sizeof x.shape);
			n = shape_numel(x.shape, x.rank);
			x.data = arena_alloc(a, (size_t)n, dtype_size(x.dtype));
			for (int64_t k = 0; k < n; k++)
				dtype_store_i64(x.dtype, x.data, k, k * 37 - 9);
			file_npy_write(a, path, &x);
			file_npy_read(a, path, &y);
			/* what NumPy lacks is written in its wide type */
			assert_int_equal(y.dtype, x.dtype == TN_F16
					? TN_F16
					: dtype_wide(x.dtype));
			assert_int_equal(y.rank, x.rank);
			assert_memory_equal(y.shape, x.shape,
				(size_t)x.rank * sizeof *x.shape);
			for (int64_t k = 0; k < n; k++)
				assert_true(
					dtype_load_f64(y.dtype, y.data, k) ==
					dtype_load_f64(x.dtype, x.data, k));
		}
}

static void writes_small(arena *a, void *arg)
{
	float data[3] = {1, 2, 3};
	file_array x = {TN_F32, 2, {1, 3}, data};

	file_npy_write(a, arg, &x);
}

static void reads(arena *a, void *arg)
{
	file_array x;

	file_npy_read(a, arg, &x);
}

static void test_round_trip(void **state)
{
	char path[64];

	(void)state;
	assert_int_equal(unit_run(round_trips, NULL, 0, NULL), TN_OK);
	assert_int_equal(count_entries(), 1);
	snprintf(path, sizeof path, "%s/x.npy", folder);
	unit_each_alloc_fails(reads, path);
	unit_each_alloc_fails(writes_small, path);
	assert_int_equal(count_entries(), 1);
	assert_int_equal(unlink(path), 0);
}

/* What numpy.save writes for float32 [[1, 2, 3]], byte for byte. */
static void test_bytes(void **state)
{
	static const char head[] =
		"\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': "
		"False, 'shape': (1, 3), }";
	char path[64], bytes[256];
	FILE *f;

	(void)state;
	snprintf(path, sizeof path, "%s/b.npy", folder);
	assert_int_equal(unit_run(writes_small, path, 0, NULL), TN_OK);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, sizeof bytes, f), 128 + 12);
	fclose(f);
	assert_memory_equal(bytes, head, sizeof head - 1);
	for (size_t i = sizeof head - 1; i < 127; i++)
		assert_int_equal(bytes[i], ' ');
	assert_int_equal(bytes[127], '\n');
	assert_memory_equal(
		bytes + 128, "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40", 12);
	unlink(path);
}

static void test_unreadable(void **state)
{
	char path[64];
	tn_diag d;

	(void)state;
	snprintf(path, sizeof path, "%s/none.npy", folder);
	assert_int_equal(unit_run(reads, path, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npy.open");
	assert_string_equal(d.file, path);
	assert_non_null(strstr(d.text, "No such file"));
	assert_int_equal(unit_run(reads, folder, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npy.open");
	assert_non_null(strstr(d.text, "not a plain file"));
	/* a pipe that nobody writes to is refused, not waited for */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(unit_run(reads, path, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npy.open");
	unlink(path);
}

static void writes_large(arena *a, void *arg)
{
	file_array x = {TN_F32, 1, {100000}, NULL};

	x.data = arena_alloc(a, 100000, 4);
	file_npy_write(a, arg, &x);
}

static void writes_negative(arena *a, void *arg)
{
	file_array x = {TN_F32, 1, {-1}, NULL};

	file_npy_write(a, arg, &x);
}

static void test_unwritable(void **state)
{
	struct rlimit kept, small;
	char path[64], below[80];
	tn_diag d;

	(void)state;
	snprintf(path, sizeof path, "%s/w.npy", folder);
	snprintf(below, sizeof below, "%s/none/w.npy", folder);
	assert_int_equal(unit_run(writes_small, below, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npy.write");
	assert_non_null(strstr(d.text, "No such file"));
	assert_int_equal(unit_run(writes_small, folder, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npy.write");
	assert_int_equal(unit_run(writes_negative, path, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "npy.shape");
	assert_int_equal(count_entries(), 0);

	/* no room after 4096 bytes: what was there before is there after */
	assert_int_equal(unit_run(writes_small, path, 0, NULL), TN_OK);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &kept);
	small = kept;
	small.rlim_cur = 4096;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(unit_run(writes_large, path, 0, &d), TN_EIO);
	setrlimit(RLIMIT_FSIZE, &kept);
	assert_string_equal(d.rule, "npy.write");
	assert_non_null(strstr(d.text, "File too large"));
	assert_int_equal(count_entries(), 1);
	assert_int_equal(unit_run(reads, path, 0, NULL), TN_OK);

	/* and replaced as a whole when there is room */
	assert_int_equal(unit_run(writes_large, path, 0, NULL), TN_OK);
	assert_int_equal(count_entries(), 1);
	assert_int_equal(truncate(path, 5000), 0);
	assert_int_equal(unit_run(reads, path, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "npy.truncated");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_bad_prefix),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_unwritable),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
