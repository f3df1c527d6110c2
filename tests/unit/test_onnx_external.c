/*
 * External data: elements of initialisers in files beside the model. Where such a
 * file may be, what offsets and lengths may be, many files, and files of more than
 * 4 GB, which are mapped and not read.
 */
#define _POSIX_C_SOURCE 200809L
#include "unit.h"

#include "onnx_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a folder with a model ---- */

typedef struct world {
	char root[32];
	char path[300];
	tn_context *c;
} world;

static const char *at(world *w, const char *name)
{
	snprintf(w->path, sizeof w->path, "%s/%s", w->root, name);
	return w->path;
}

static void begin(world *w)
{
	tn_options o = TN_OPTIONS_INIT;

	*w = (world){.root = "/tmp/tenon_outside_XXXXXX"};
	assert_non_null(mkdtemp(w->root));
	assert_int_equal(mkdir(at(w, "m"), 0700), 0);
	o.interp = true;
	assert_int_equal(tn_context_new(&w->c, &o), TN_OK);
}

static void end(world *w)
{
	tn_context_free(w->c);
	assert_int_equal(remove(at(w, "m/m.onnx")), 0);
	assert_int_equal(remove(at(w, "m")), 0);
	assert_int_equal(remove(w->root), 0);
}

static void put(world *w, const char *name, const void *data, size_t n)
{
	FILE *f = fopen(at(w, name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Loads the model of a text from m/m.onnx. */
static tn_status load(world *w, tn_program **p, const char *text)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb bytes = onnx_write(a, text);

	put(w, "m/m.onnx", bytes.s.at, bytes.s.n);
	arena_free(a);
	env_free(e);
	return tn_onnx_load(p, w->c, at(w, "m/m.onnx"));
}

/* Output 0 of a program without inputs is these floats. */
static void gives(world *w, const char *text, int32_t n, const float *want)
{
	tn_program *p;
	float y[8];
	void *out[] = {y};

	assert_in_range(n, 1, 8);
	if (load(w, &p, text) != TN_OK)
		fail_msg("%s: %s", text, tn_context_diag(w->c)->text);
	assert_int_equal(tn_program_run(p, NULL, out), TN_OK);
	assert_memory_equal(y, want, (size_t)n * sizeof *y);
	tn_program_free(p);
}

/* ---- where it may be ---- */

static void test_places(void **state)
{
	static const struct {
		const char *where, *rule;
	} cases[] = {
		{"location=w.bin offset=0", NULL},
		{"location=w.bin", NULL},
		{"location=./in/../w.bin", "onnx.external"},
		{"location=in/inside", NULL}, /* a link that stays below */
		{"location=in/../w.bin offset=0", "onnx.external"},
		{"location=../w.bin offset=0", "onnx.external"},
		{"location=in/../../m/w.bin offset=0", "onnx.external"},
		{"location=.. offset=0", "onnx.external"},
		{"location=/etc/passwd offset=0", "onnx.external"},
		{"location=//etc/passwd offset=0", "onnx.external"},
		{"location=passwd offset=0", "onnx.external"},
		{"location=etc/passwd offset=0", "onnx.external"},
		{"location=beside offset=0", "onnx.external"},
		{"location=in\\..\\w.bin", "onnx.external"},
		{"location=loop", "onnx.open"},
		{"location=fifo offset=0", "onnx.open"},
		{"location=in offset=0", "onnx.open"},
		{"location=none", "onnx.open"},
		{"location= offset=0", "onnx.external"},
		{"offset=0", "onnx.external"},
	};
	static const char *const made[] = {"m/w.bin", "m/passwd", "m/etc",
		"m/beside", "m/loop", "m/fifo", "w.bin", "m/in/inside", "m/in"};
	static const float data[2] = {1, 2};
	world w;

	(void)state;
	begin(&w);
	assert_int_equal(mkdir(at(&w, "m/in"), 0700), 0);
	put(&w, "w.bin", data, sizeof data);
	put(&w, "m/w.bin", data, sizeof data);
	assert_int_equal(symlink("/etc/passwd", at(&w, "m/passwd")), 0);
	assert_int_equal(symlink("/etc", at(&w, "m/etc")), 0);
	assert_int_equal(symlink("../w.bin", at(&w, "m/beside")), 0);
	assert_int_equal(symlink("loop", at(&w, "m/loop")), 0);
	assert_int_equal(symlink("../w.bin", at(&w, "m/in/inside")), 0);
	assert_int_equal(mkfifo(at(&w, "m/fifo"), 0600), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[200];
		tn_program *p;
		tn_status s;

		snprintf(text, sizeof text, "outside w float [2] %s; out w;",
			cases[i].where);
		s = load(&w, &p, text);
		if (cases[i].rule == NULL) {
			if (s != TN_OK)
				fail_msg("%s: %s", text,
					tn_context_diag(w.c)->text);
			tn_program_free(p);
			continue;
		}
		if (s == TN_OK || strcmp(tn_context_diag(w.c)->rule,
					  cases[i].rule) != 0)
			fail_msg("%s: %s expected, %s: %s", text, cases[i].rule,
				tn_context_diag(w.c)->rule,
				tn_context_diag(w.c)->text);
	}
	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
		assert_int_equal(remove(at(&w, made[i])), 0);
	end(&w);
}

/* ---- offsets and lengths ---- */

static void test_ranges(void **state)
{
	static const struct {
		const char *tensor, *rule; /* the file has 16 bytes */
	} cases[] = {
		{"float [4]", NULL},
		{"float [3] location=w.bin offset=4 length=12", NULL},
		{"float [0] location=w.bin offset=16 length=0", NULL},
		{"float [0] location=w.bin offset=17", "onnx.external"},
		{"float [2] location=w.bin offset=9", "onnx.external"},
		{"float [5] location=w.bin", "onnx.external"},
		{"float [2] location=w.bin offset=-8", "onnx.external"},
		{"float [2] location=w.bin length=-8", "onnx.external"},
		{"float [2] location=w.bin offset=", "onnx.external"},
		{"float [2] location=w.bin offset=0x8", "onnx.external"},
		{"float [2] location=w.bin offset=8.0", "onnx.external"},
		{"float [2] location=w.bin offset=9223372036854775807",
			"onnx.external"},
		{"float [2] location=w.bin offset=9223372036854775808",
			"onnx.external"},
		{"float [2] location=w.bin offset=18446744073709551608",
			"onnx.external"},
		{"float [2] location=w.bin length=9223372036854775807",
			"onnx.external"},
		{"float [2] location=w.bin length=7", "onnx.size"},
		{"float [2] location=w.bin length=9", "onnx.size"},
		{"float [2] location=w.bin length=12", "onnx.size"},
		{"float [2] location=w.bin length=0", "onnx.size"},
		{"int4 [3] location=w.bin offset=15 length=2", "onnx.external"},
		{"float [281474976710656] location=w.bin", "onnx.external"},
		{"float [4611686018427387904] location=w.bin", "onnx.size"},
		{"string [2] location=w.bin", "onnx.string"},
	};
	static const float data[4] = {1, 2, 3, 4};
	world w;

	(void)state;
	begin(&w);
	put(&w, "m/w.bin", data, sizeof data);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[200];
		tn_program *p;
		tn_status s;

		snprintf(text, sizeof text, "outside w %s%s; out w;",
			cases[i].tensor, i == 0 ? " location=w.bin" : "");
		s = load(&w, &p, text);
		if (cases[i].rule == NULL) {
			if (s != TN_OK)
				fail_msg("%s: %s", text,
					tn_context_diag(w.c)->text);
			tn_program_free(p);
			continue;
		}
		if (s == TN_OK || strcmp(tn_context_diag(w.c)->rule,
					  cases[i].rule) != 0)
			fail_msg("%s: %s expected, %s: %s", text, cases[i].rule,
				s == TN_OK ? "nothing"
					   : tn_context_diag(w.c)->rule,
				s == TN_OK ? "" : tn_context_diag(w.c)->text);
	}
	assert_int_equal(remove(at(&w, "m/w.bin")), 0);
	end(&w);
}

/* Elements need no alignment in the file; two bytes hold three of 4 bits. */
static void test_unaligned(void **state)
{
	static const float data[3] = {1.5F, -2, 3}, few[3] = {7, -8, 1};
	unsigned char bytes[32] = {0};
	world w;

	(void)state;
	begin(&w);
	bytes[0] = 0x87; /* the first number in the low bits */
	bytes[1] = 0x01;
	memcpy(bytes + 3, data, sizeof data);
	put(&w, "m/w.bin", bytes, sizeof bytes);
	gives(&w, "opset 21; outside w float [3] location=w.bin offset=3;"
		  "out y; node Identity w > y;", 3, data);
	gives(&w, "opset 21; outside w int4 [3] location=w.bin length=2;"
		  "out y; node Cast w > y : to=1;", 3, few);
	assert_int_equal(remove(at(&w, "m/w.bin")), 0);
	end(&w);
}

/* ---- many and large ---- */

/* 300 files, each for one number, and one file for 300 numbers. */
static void test_many(void **state)
{
	enum { MANY = 300 };
	env *e = env_new();
	arena *a = arena_new(e);
	str apart = str_new(a), all = str_new(a), sum = str_new(a);
	float number[MANY], want = 0;
	char name[40];
	world w;

	(void)state;
	begin(&w);
	str_add(&sum, "node Sum");
	for (int i = 0; i < MANY; i++) {
		number[i] = (float)i;
		want += number[i];
		snprintf(name, sizeof name, "m/%d.bin", i);
		put(&w, name, &number[i], sizeof number[i]);
		str_printf(&apart, "outside w%d float [1] location=%d.bin;", i, i);
		str_printf(&all, "outside w%d float [1] location=all.bin offset=%d;",
			i, 4 * i);
		str_printf(&sum, " w%d", i);
	}
	put(&w, "m/all.bin", number, sizeof number);
	str_add(&sum, " > y; out y;");
	gives(&w, arena_printf(a, "opset 13; %s%s", apart.at, sum.at), 1, &want);
	gives(&w, arena_printf(a, "opset 13; %s%s", all.at, sum.at), 1, &want);
	assert_int_equal(remove(at(&w, "m/all.bin")), 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "m/%d.bin", i);
		assert_int_equal(remove(at(&w, name)), 0);
	}
	end(&w);
	arena_free(a);
	env_free(e);
}

/* Pages of this process that are in memory, in bytes. */
static int64_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long long size = 0, pages = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lld %lld", &size, &pages) != 2)
		pages = 0;
	fclose(f);
	return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

/*
 * A matrix of 2.4 GB that begins behind 4 GB: a file of zeros that takes no room
 * on the disk, but for the row that is looked up.
 */
static void test_large(void **state)
{
	static const float row[2] = {3, 4};
	const off_t begins = (off_t)5 << 30, columns = 2, rows = 300000000;
	const off_t looked = 299999999;
	int64_t before = resident();
	world w;
	int fd;

	(void)state;
	begin(&w);
	fd = open(at(&w, "m/w.bin"), O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	if (ftruncate(fd, begins + rows * columns * 4) < 0) {
		assert_true(errno == EFBIG || errno == EINVAL || errno == ENOSPC);
		print_message("no file of 7.4 GB is possible in /tmp\n");
		put(&w, "m/m.onnx", row, 0);
	} else {
		assert_int_equal(pwrite(fd, row, sizeof row,
			begins + looked * columns * 4), sizeof row);
		gives(&w, "opset 13; outside w float [300000000,2] location=w.bin"
			  " offset=5368709120 length=2400000000;"
			  "init i int64 [] 299999999; out y;"
			  "node Gather w i > y;", 2, row);
		assert_true(resident() - before < (int64_t)256 << 20);
	}
	close(fd);
	assert_int_equal(remove(at(&w, "m/w.bin")), 0);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_unaligned),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
