/*
 * safetensors.c, json.c: what others write is read; what nobody should have
 * written is refused, each with its rule and the name; what is written is what
 * the format's own library writes.
 */
#define _GNU_SOURCE /* memmem */
#include "unit.h"
#include "memory_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file.h"

/* A file in memory: length, header, n_data bytes 1, 2, 3 ... */
struct image {
	unsigned char bytes[4096];
	size_t n;
};

static void make_image(struct image *m, const char *header, size_t n_data)
{
	size_t n = strlen(header);

	for (int i = 0; i < 8; i++)
		m->bytes[i] = (unsigned char)(n >> 8 * i & 0xff);
	memcpy(m->bytes + 8, header, n);
	m->n = 8 + n;
	for (size_t i = 0; i < n_data; i++)
		m->bytes[m->n++] = (unsigned char)(i + 1);
}

struct parse {
	const struct image *m;
	void (*check)(const file_tensors *x);
};

static void parses(arena *a, void *arg)
{
	const struct parse *p = arg;
	file_tensors x;

	file_tensors_open(a, memory_file(a, p->m->bytes, p->m->n), &x);
	for (int32_t i = 0; i < x.n; i++) {
		void *data = arena_alloc(a, x.at[i].n_bytes, 1);

		assert_int_equal(x.at[i].n_bytes,
			(size_t)shape_numel(x.at[i].shape, x.at[i].rank) *
				dtype_size(x.at[i].dtype));
		file_tensors_read(&x, i, data);
	}
	if (p->check != NULL)
		p->check(&x);
}

#define T(name, dtype, shape, from, to)                                        \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape               \
	",\"data_offsets\":[" #from "," #to "]}"

/* ---- good ---- */

static void check_two(const file_tensors *x)
{
	int16_t v[6];
	unsigned char b[2];

	assert_int_equal(x->n, 3);
	assert_string_equal(x->at[0].name, "a.weight");
	assert_int_equal(x->at[0].dtype, TN_I16);
	assert_int_equal(x->at[0].rank, 2);
	assert_int_equal(x->at[0].shape[0], 2);
	assert_int_equal(x->at[0].shape[1], 3);
	file_tensors_read(x, 0, v);
	assert_int_equal(v[0], 0x0201);
	assert_int_equal(v[5], 0x0c0b);
	/* without bytes, where the next one starts */
	assert_string_equal(x->at[1].name, "e");
	assert_int_equal(x->at[1].n_bytes, 0);
	assert_string_equal(x->at[2].name, "b");
	file_tensors_read(x, 2, b);
	assert_int_equal(b[0], 1);
	assert_int_equal(b[1], 1);
	assert_int_equal(x->n_pairs, 2);
	assert_string_equal(x->pair[0].key, "format");
	assert_string_equal(x->pair[0].value, "pt");
	assert_string_equal(x->pair[1].value, "");
}

static void check_text(const file_tensors *x)
{
	assert_int_equal(x->n, 1);
	assert_string_equal(x->at[0].name,
		"q\"\\/\b\f\n\r\t A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_int_equal(x->at[0].rank, 0);
}

static void check_raw(const file_tensors *x)
{
	assert_string_equal(
		x->at[0].name, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_int_equal(x->at[0].dtype, TN_BF16);
	assert_int_equal(x->at[0].rank, 8);
}

/* What Python's json.dumps and struct.pack make. */
static void check_python(const file_tensors *x)
{
	uint16_t v[2];

	assert_int_equal(x->n, 1);
	assert_string_equal(x->at[0].name, "\xc3\xa9.w");
	file_tensors_read(x, 0, v);
	assert_int_equal(v[1], 0x0403);
	assert_string_equal(x->pair[0].value, "pt");
}

static void check_empty(const file_tensors *x)
{
	assert_int_equal(x->n, 0);
	assert_int_equal(x->n_pairs, 0);
}

static const struct {
	const char *header;
	size_t n_data;
	void (*check)(const file_tensors *x);
} good[] = {
	/* in another order than their data, keys in another order, spaces */
	{"{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"},"
	 " \"b\" : { \"shape\":[ 2 ] , \"data_offsets\":[12 ,14],"
	 "\"dtype\":\"BOOL\" }," T("a.weight", "I16", "[2,3]", 0, 12) ","
		T("e", "F64", "[4,0]", 12, 12) "}      ",
		14, check_two},
	{"{" T("q\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0020\\u0041\\u00e9\\u20AC"
	       "\\ud83d\\uDE00",
		 "U8", "[]", 0, 1) "}",
		1, check_text},
	{"{" T("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "BF16",
		 "[1,1,1,1,1,1,1,3]", 0, 6) "}",
		6, check_raw},
	{"{\"__metadata__\": {\"format\": \"pt\"}, \"\\u00e9.w\": {\"dtype\": "
	 "\"F16\", \"shape\": [2], \"data_offsets\": [0, 4]}}   ",
		4, check_python},
	{"{}", 0, check_empty},
	{"{\"__metadata__\":{}}   ", 0, check_empty},
};

static void test_good(void **state)
{
	static struct image m;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct parse p = {&m, good[i].check};
		tn_diag d;

		make_image(&m, good[i].header, good[i].n_data);
		if (unit_run(parses, &p, 0, &d) != TN_OK)
			fail_msg("%s: %s", good[i].header, d.text);
		unit_each_alloc_fails(parses, &p);
	}
}

/* ---- bad ---- */

static const struct {
	const char *header;
	size_t n_data;
	const char *rule, *text;
} bad[] = {
	{"", 0, "safetensors.json", "'{' at byte 0"},
	{"[]", 0, "safetensors.json", "'{'"},
	{"{", 0, "safetensors.json", "name"},
	{"{} x", 0, "safetensors.json", "end"},
	{"{}\n", 0, "safetensors.json", "end"},
	{"{1:2}", 0, "safetensors.json", "name"},
	{"{\"a\"}", 0, "safetensors.json", "':'"},
	{"{\"a\":3}", 0, "safetensors.json", "in \"a\": expected '{' at byte"},
	{"{\"a\":{}}", 0, "safetensors.json", "key"},
	{"{\"a\":{\"dtype\":\"U8\"}}", 0, "safetensors.json",
		"dtype, shape and data_offsets"},
	{"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "safetensors.json",
		"each once"},
	{"{\"a\":{\"dtype\":\"U8\",\"colour\":\"U8\"}}", 0, "safetensors.json",
		"each once"},
	{"{" T("a", "U8", "[1]", 0, 1) ",}", 1, "safetensors.json", "name"},
	{"{" T("a", "U8", "[1]", 0, 1) " " T("b", "U8", "[1]", 1, 2) "}", 2,
		"safetensors.json", "',' or '}'"},
	{"{" T("a", "U8", "[1", 0, 1) "}", 1, "safetensors.json", "extent"},
	{"{" T("a", "U8", "[1 1]", 0, 1) "}", 1, "safetensors.json",
		"',' or ']'"},
	{"{" T("a", "U8", "[1,]", 0, 1) "}", 1, "safetensors.json", "extent"},
	{"{" T("a", "U8", "[-1]", 0, 1) "}", 1, "safetensors.json", "extent"},
	{"{" T("a", "U8", "[01]", 0, 1) "}", 1, "safetensors.json", "extent"},
	{"{" T("a", "U8", "[1.0]", 0, 1) "}", 1, "safetensors.json",
		"',' or ']'"},
	{"{" T("a", "U8", "[1e1]", 0, 10) "}", 10, "safetensors.json",
		"',' or ']'"},
	{"{" T("a", "U8", "[[1]]", 0, 1) "}", 1, "safetensors.json", "extent"},
	{"{" T("a", "U8", "[9223372036854775808]", 0, 1) "}", 1,
		"safetensors.json", "2^63"},
	{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
		"safetensors.json", "','"},
	{"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}",
		1, "safetensors.json", "']'"},
	/* text */
	{"{\"a", 0, "safetensors.json", "end of a string"},
	{"{\"a\\", 0, "safetensors.json", "escape"},
	{"{\"a\\x\"", 0, "safetensors.json", "escape"},
	{"{\"\\u12", 0, "safetensors.json", "hexadecimal"},
	{"{\"\\u12g4\"", 0, "safetensors.json", "hexadecimal"},
	{"{\"\\u0000\"", 0, "safetensors.json", "character"},
	{"{\"\\ud83d\"", 0, "safetensors.json", "second half"},
	{"{\"\\ud83d\\u0041\"", 0, "safetensors.json", "second half"},
	{"{\"\\ude00\"", 0, "safetensors.json", "character"},
	{"{\"\n\"", 0, "safetensors.json", "character"},
	{"{\"\x80\"", 0, "safetensors.json", "character"},
	{"{\"\xc0\xaf\"", 0, "safetensors.json", "character"},
	{"{\"\xed\xa0\x80\"", 0, "safetensors.json", "character"},
	{"{\"\xf4\x90\x80\x80\"", 0, "safetensors.json", "character"},
	{"{\"\xe2\x82", 0, "safetensors.json", "character"},
	{"{\"__metadata__\":{\"a\":1}}", 0, "safetensors.json",
		"in \"__metadata__\": expected a string at byte"},
	{"{\"__metadata__\":[]}", 0, "safetensors.json", "'{'"},
	/* names */
	{"{" T("a", "U8", "[1]", 0, 1) "," T("\\u0061", "U8", "[1]", 1, 2) "}",
		2, "safetensors.name", "\"a\": this name appears twice"},
	{"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "safetensors.name",
		"__metadata__"},
	{"{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0, "safetensors.name",
		"\"k\""},
	/* types and shapes */
	{"{" T("a", "F6_E2M3", "[1]", 0, 1) "}", 1, "safetensors.dtype",
		"\"a\": dtype \"F6_E2M3\""},
	{"{" T("a", "f32", "[1]", 0, 4) "}", 4, "safetensors.dtype",
		"accepted are F32 F64"},
	{"{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1,
		"safetensors.shape", "\"a\": the shape has more than 8 axes"},
	{"{" T("a", "U8", "[4294967296,4294967296]", 0, 0) "}", 0,
		"safetensors.shape", "2^48"},
	{"{" T("a", "U8", "[0,4611686018427387904]", 0, 0) "}", 0,
		"safetensors.shape", "2^48"},
	/* places */
	{"{" T("a", "F32", "[2]", 0, 7) "}", 7, "safetensors.offsets",
		"\"a\": data_offsets [0, 7] do not span the 8 bytes"},
	{"{" T("a", "F32", "[2]", 8, 0) "}", 8, "safetensors.offsets",
		"do not span"},
	{"{" T("a", "F32", "[2]", 9223372036854775800,
		 9223372036854775807) "}",
		8, "safetensors.offsets", "do not span"},
	{"{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 1, 3) "}", 3,
		"safetensors.offsets",
		"\"b\": its data starts at byte 1, within another's"},
	{"{" T("b", "U8", "[2]", 0, 2) "," T("a", "U8", "[2]", 0, 2) "}", 2,
		"safetensors.offsets", "within another's"},
	{"{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 3, 5) "}", 5,
		"safetensors.offsets", "but what is before it ends at 2"},
	{"{" T("a", "U8", "[2]", 1, 3) "}", 3, "safetensors.offsets",
		"ends at 0"},
	{"{" T("a", "U8", "[0]", 1, 1) "," T("b", "U8", "[2]", 0, 2) "}", 2,
		"safetensors.offsets", "\"a\""},
	{"{" T("a", "F32", "[2]", 0, 8) "}", 7, "safetensors.truncated",
		"\"a\" ends at byte 8 of the data, but the file has only 7"},
	{"{" T("a", "U8", "[281474976710656]", 0, 281474976710656) "}", 7,
		"safetensors.truncated", "only 7"},
	{"{" T("a", "F32", "[2]", 0, 8) "}", 9, "safetensors.size",
		"8 bytes of data, but the file has 9"},
	{"{}", 1, "safetensors.size", "0 bytes"},
};

static void expect_refused(struct image *m, const char *rule, const char *text)
{
	struct parse p = {m, NULL};
	tn_diag d;

	if (unit_run(parses, &p, 0, &d) >= 0)
		fail_msg("not refused: %.*s", (int)m->n - 8,
			(const char *)m->bytes + 8);
	assert_string_equal(d.rule, rule);
	assert_memory_equal(d.file, "/proc/self/fd/", 14);
	if (strstr(d.text, text) == NULL)
		fail_msg("no %s in: %s", text, d.text);
}

static void test_bad(void **state)
{
	static struct image m;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		make_image(&m, bad[i].header, bad[i].n_data);
		expect_refused(&m, bad[i].rule, bad[i].text);
	}
}

static const char small[] = "{\"__metadata__\":{\"a\":\"\\u00e9\"}," T("w",
	"F32", "[2,1]", 0, 8) "," T("b", "U8", "[3]", 8, 11) "} ";

static void test_lengths(void **state)
{
	static struct image m;

	(void)state;
	make_image(&m, small, 11);
	for (size_t n = m.n - 1; n > 0; n--) { /* cut anywhere */
		m.n = n;
		expect_refused(&m, "safetensors.truncated", "");
	}
	m.n = 0;
	expect_refused(&m, "safetensors.truncated", "the file has 0 bytes");
	make_image(&m, small, 11);
	m.bytes[7] = 0x80; /* 2^63 and some */
	expect_refused(&m, "safetensors.header", "at most 100000000");
	make_image(&m, small, 11);
	m.bytes[2] = 1;
	expect_refused(&m, "safetensors.truncated", "within its header");
}

/* Every byte of a header as every other byte: read or refused, no crash. */
static void test_flips(void **state)
{
	static struct image m, whole;
	int n_read = 0, n_refused = 0;

	(void)state;
	make_image(&whole, small, 11);
	for (size_t i = 0; i < whole.n - 11; i++)
		for (int b = 0; b < 256; b++) {
			struct parse p = {&m, NULL};
			tn_diag d;

			m = whole;
			m.bytes[i] = (unsigned char)b;
			if (unit_run(parses, &p, 0, &d) == TN_OK) {
				n_read++;
				continue;
			}
			n_refused++;
			assert_memory_equal(d.rule, "safetensors.", 12);
		}
	assert_true(n_read > 100 && n_refused > 10000);
}

/* ---- files ---- */

static char folder[] = "/tmp/tenon_st_XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/x.safetensors", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* fails if a test left something */
}

/* Does the format have a name for it? */
static bool has_name(tn_dtype t)
{
	return dtype_bits(t) >= 8 && t != TN_F8E4M3FNUZ && t != TN_F8E5M2FNUZ;
}

static void writes_unnamed(arena *a, void *arg)
{
	static const uint8_t data[2] = {1, 2};
	file_tensor x = {.name = "a", .dtype = *(const tn_dtype *)arg,
		.rank = 1, .shape = {2}, .data = data};

	file_tensors_write(a, path, 1, &x, 0, NULL);
}

static void test_unnamed(void **state)
{
	(void)state;
	for (int32_t i = 0; i < TN_N_DTYPES; i++) {
		tn_dtype t = (tn_dtype)i;
		tn_diag d;

		if (has_name(t))
			continue;
		assert_int_equal(
			unit_run(writes_unnamed, &t, 0, &d), TN_EINVAL);
		assert_string_equal(d.rule, "safetensors.dtype");
		assert_non_null(strstr(d.text, dtype_name(t)));
		assert_int_equal(access(path, F_OK), -1);
	}
}

static void round_trips(arena *a, void *arg)
{
	file_tensor x[TN_N_DTYPES];
	int32_t n = 0;
	file_pair pair[] = {{"zeta", "1\n\"2\""}, {"alpha", "\xc3\xa9\x01"}};
	file_tensors y;
	struct stat st;

	(void)arg;
	for (int32_t i = 0; i < TN_N_DTYPES; i++) {
		if (!has_name((tn_dtype)i))
			continue;
		x[n] = (file_tensor){.name = arena_printf(a, "t\"%d", (int)i),
			.dtype = (tn_dtype)i,
			.rank = i % 4,
			.shape = {3, i == 2 ? 0 : 2, 1}};
		x[n].data = arena_alloc(a, 6, 8);
		for (int64_t k = 0; k < 6; k++)
			dtype_store_i64(x[n].dtype, (void *)(uintptr_t)x[n].data,
				k, k * 37 - 9 + i);
		n++;
	}
	file_tensors_write(a, path, n, x, 2, pair);
	file_tensors_open(a, path, &y);
	assert_int_equal(y.n, n);
	assert_int_equal(y.n_pairs, 2);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(y.pair[i].key, pair[i].key);
		assert_string_equal(y.pair[i].value, pair[i].value);
	}
	for (int32_t i = 0; i < y.n; i++) {
		const file_tensor *t = &y.at[i], *from = x;
		void *data = arena_alloc(a, t->n_bytes, 1);

		assert_int_equal(t->from % dtype_size(t->dtype), 0);
		while (strcmp(from->name, t->name) != 0)
			from++;
		assert_int_equal(t->dtype, from->dtype);
		assert_int_equal(t->rank, from->rank);
		assert_memory_equal(t->shape, from->shape,
			(size_t)t->rank * sizeof *t->shape);
		file_tensors_read(&y, i, data);
		assert_memory_equal(data, from->data, t->n_bytes);
	}
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(y.at[y.n - 1].from + y.at[y.n - 1].n_bytes,
		(size_t)st.st_size);
}

static void test_round_trip(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(round_trips, NULL, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
	unit_each_alloc_fails(round_trips, NULL);
	assert_int_equal(unlink(path), 0);
}

/* What the library of the format's authors writes for these, byte for byte. */
static void writes_small(arena *a, void *arg)
{
	static const float w[] = {1, 2, 3};
	static const uint8_t b[] = {4, 5};
	static const float s[] = {6};
	const file_tensor x[] = {
		{"b", TN_U8, 1, {2}, 0, 0, b},
		{"w", TN_F32, 2, {1, 3}, 0, 0, w},
		{"a.s", TN_F32, 0, {0}, 0, 0, s},
	};
	const file_pair pair = {"format", "np"};

	file_tensors_write(a, arg, 3, x, 1, &pair);
}

static void test_bytes(void **state)
{
	static const char header[] =
		"{\"__metadata__\":{\"format\":\"np\"},"
		"\"a.s\":{\"dtype\":\"F32\",\"shape\":[],"
		"\"data_offsets\":[0,4]},"
		"\"w\":{\"dtype\":\"F32\",\"shape\":[1,3],"
		"\"data_offsets\":[4,16]},"
		"\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
		"\"data_offsets\":[16,18]}}";
	static const char data[] = "\0\0\xc0\x40\0\0\x80\x3f\0\0\0\x40"
				   "\0\0\x40\x40\4\5";
	unsigned char bytes[512];
	size_t n = (sizeof header - 1 + 7) / 8 * 8;
	FILE *f;

	(void)state;
	assert_int_equal(unit_run(writes_small, path, 0, NULL), TN_OK);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, sizeof bytes, f), 8 + n + 18);
	fclose(f);
	assert_int_equal(bytes[0], n);
	assert_memory_equal(bytes + 1, "\0\0\0\0\0\0\0", 7);
	assert_memory_equal(bytes + 8, header, sizeof header - 1);
	for (size_t i = sizeof header - 1; i < n; i++)
		assert_int_equal(bytes[8 + i], ' ');
	assert_memory_equal(bytes + 8 + n, data, 18);
	unlink(path);
}

struct refusal {
	const char *name; /* of the second tensor, behind a */
	int64_t extent;
	int32_t n_pairs;
	file_pair pair[2];
	const char *rule, *text;
};

static void refused_write(arena *a, void *arg)
{
	const struct refusal *r = arg;
	const file_tensor x[] = {
		{.name = "a", .dtype = TN_U8, .rank = 1},
		{.name = r->name,
			.dtype = TN_U8,
			.rank = 1,
			.shape = {r->extent}},
	};

	file_tensors_write(a, path, 2, x, r->n_pairs, r->pair);
}

static void opens(arena *a, void *arg)
{
	file_tensors x;

	file_tensors_open(a, arg, &x);
}

static void test_refused_files(void **state)
{
	static struct refusal r[] = {
		{"a", 0, 0, {{0, 0}}, "safetensors.name",
			"\"a\": this name appears twice"},
		{"\xff", 0, 0, {{0, 0}}, "safetensors.name", "UTF-8"},
		{"__metadata__", 0, 0, {{0, 0}}, "safetensors.name",
			"__metadata__"},
		{"b", -1, 0, {{0, 0}}, "safetensors.shape", "\"b\""},
		{"b", 0, 2, {{"k", ""}, {"k", ""}}, "safetensors.name",
			"\"k\""},
		{"b", 0, 1, {{"k", "\xc0\xaf"}}, "safetensors.name",
			"the value of \"k\""},
	};
	tn_diag d;

	(void)state;
	for (size_t i = 0; i < sizeof r / sizeof *r; i++) {
		assert_int_equal(unit_run(refused_write, &r[i], 0, &d),
			TN_EINVAL);
		assert_string_equal(d.rule, r[i].rule);
		if (strstr(d.text, r[i].text) == NULL)
			fail_msg("no %s in: %s", r[i].text, d.text);
		assert_int_equal(access(path, F_OK), -1);
	}
	assert_int_equal(unit_run(opens, path, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "safetensors.open");
	assert_int_equal(unit_run(writes_small, folder, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "safetensors.write");
	assert_int_equal(unit_run(writes_small, path, 0, NULL), TN_OK);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(unit_run(opens, path, 0, &d), TN_EIO);
	assert_string_equal(d.rule, "safetensors.truncated");
	assert_int_equal(unlink(path), 0);
}

/* ---- the checksum ---- */

static void writes_summed(arena *a, void *arg)
{
	static const float w[] = {1, 2, 3};
	static const uint8_t b[] = {4, 5};
	const file_tensor x[] = {
		{"b", TN_U8, 1, {2}, 0, 0, b},
		{"say \"tenon.sha256\":\"", TN_F32, 2, {1, 3}, 0, 0, w},
	};
	const file_pair pair[] = {{"k", "\"tenon.sha256\":\""},
		{FILE_SUM, "anything"}, {"step", "12"}};

	file_tensors_write(a, arg, 2, x, 3, pair);
}

static void checks(arena *a, void *arg)
{
	bool *has = arg;
	file_tensors x;

	file_tensors_open(a, path, &x);
	*has = file_tensors_check(a, &x);
	/* nothing has a name or a length that was not written */
	assert_true(!*has || (x.n == 2 && x.n_pairs == 3));
}

/* each bit of a file with a checksum, flipped */
static void test_checksum(void **state)
{
	static unsigned char bytes[1024];
	const char *key;
	bool has = false;
	size_t n, n_lost = 0;
	tn_diag d;
	FILE *f;

	(void)state;
	assert_int_equal(unit_run(writes_summed, path, 0, &d), TN_OK);
	assert_int_equal(unit_run(checks, &has, 0, &d), TN_OK);
	assert_true(has);
	f = fopen(path, "rb");
	n = fread(bytes, 1, sizeof bytes - 1, f);
	fclose(f);
	assert_true(n > 200 && n < sizeof bytes - 1);
	key = memmem(bytes, n, "\"" FILE_SUM "\":\"", 16);
	assert_non_null(key);
	for (size_t i = 0; i < 8 * n; i++) {
		bytes[i / 8] ^= (unsigned char)(1u << i % 8);
		f = fopen(path, "wb");
		assert_int_equal(fwrite(bytes, 1, n, f), n);
		assert_int_equal(fclose(f), 0);
		has = true;
		if (unit_run(checks, &has, 0, &d) == TN_OK) {
			/* the key has another name: it has no checksum */
			assert_false(has);
			n_lost++;
			assert_true(i / 8 > (size_t)(key - (char *)bytes));
			assert_true(i / 8 <= (size_t)(key - (char *)bytes) + 12);
		} else {
			assert_string_equal(d.file, path);
		}
		bytes[i / 8] ^= (unsigned char)(1u << i % 8);
	}
	assert_true(n_lost <= 12 * 8);
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_flips),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_unnamed),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_refused_files),
		cmocka_unit_test(test_checksum),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
