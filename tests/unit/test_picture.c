/*
 * picture.c, picture_plain.c, picture_lib.c: each format is decoded; what is cut
 * off or changed is refused or decoded, and never reads or writes beyond.
 */
#include "unit.h"

#include "file/picture.h"

#include <stdlib.h>

/* R, G, B, then (10,20,30); black, white, (128,64,32), (200,100,50) */
static const uint8_t colors[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30,
	0, 0, 0, 255, 255, 255, 128, 64, 32, 200, 100, 50};

/* a grey picture of 77, [2,4] */
static const uint8_t jpeg[] = {
	255, 216, 255, 224, 0, 16, 74, 70, 73, 70, 0, 1, 1, 0, 0, 1, 0, 1, 0,
	0, 255, 219, 0, 67, 0, 3, 2, 2, 3, 2, 2, 3, 3, 3, 3, 4, 3, 3, 4, 5,
	8, 5, 5, 4, 4, 5, 10, 7, 7, 6, 8, 12, 10, 12, 12, 11, 10, 11, 11, 13,
	14, 18, 16, 13, 14, 17, 14, 11, 11, 16, 22, 16, 17, 19, 20, 21, 21,
	21, 12, 15, 23, 24, 22, 20, 24, 18, 20, 21, 20, 255, 192, 0, 11, 8,
	0, 2, 0, 4, 1, 1, 17, 0, 255, 196, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 8, 255, 196, 0, 20, 16, 1, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 218, 0, 8, 1, 1, 0, 0, 63, 0, 59,
	191, 255, 217};

/* the colors, by the libraries that wrote them */
static const uint8_t png[] = {
	137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0,
	0, 4, 0, 0, 0, 2, 8, 2, 0, 0, 0, 240, 202, 234, 52, 0, 0, 0, 34, 73,
	68, 65, 84, 120, 218, 99, 248, 207, 192, 192, 240, 159, 129, 129,
	225, 63, 151, 136, 28, 35, 3, 3, 195, 255, 255, 255, 27, 29, 21, 61,
	84, 132, 0, 96, 65, 7, 153, 83, 212, 148, 165, 0, 0, 0, 0, 73, 69,
	78, 68, 174, 66, 96, 130};

static const uint8_t webp[] = {
	82, 73, 70, 70, 68, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 76, 56, 0,
	0, 0, 47, 3, 64, 0, 0, 63, 64, 22, 96, 178, 32, 50, 232, 204, 95,
	111, 26, 100, 194, 16, 251, 21, 147, 72, 125, 4, 2, 20, 49, 193, 1,
	255, 87, 54, 255, 1, 66, 138, 28, 82, 115, 95, 173, 3, 129, 0, 25,
	139, 49, 98, 193, 140, 136, 254, 7, 57};

static const uint8_t tiff[] = {
	73, 73, 42, 0, 8, 0, 0, 0, 10, 0, 0, 1, 4, 0, 1, 0, 0, 0, 4, 0, 0, 0,
	1, 1, 4, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 3, 0, 3, 0, 0, 0, 134, 0,
	0, 0, 3, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6, 1, 3, 0, 1, 0, 0, 0, 2,
	0, 0, 0, 17, 1, 4, 0, 1, 0, 0, 0, 140, 0, 0, 0, 21, 1, 3, 0, 1, 0, 0,
	0, 3, 0, 0, 0, 22, 1, 4, 0, 1, 0, 0, 0, 2, 0, 0, 0, 23, 1, 4, 0, 1,
	0, 0, 0, 24, 0, 0, 0, 28, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
	0, 8, 0, 8, 0, 8, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 0,
	0, 0, 255, 255, 255, 128, 64, 32, 200, 100, 50};

static const uint8_t jpeg2000[] = {
	0, 0, 0, 12, 106, 80, 32, 32, 13, 10, 135, 10, 0, 0, 0, 20, 102, 116,
	121, 112, 106, 112, 50, 32, 0, 0, 0, 0, 106, 112, 50, 32, 0, 0, 0,
	45, 106, 112, 50, 104, 0, 0, 0, 22, 105, 104, 100, 114, 0, 0, 0, 2,
	0, 0, 0, 4, 0, 3, 7, 7, 0, 0, 0, 0, 0, 15, 99, 111, 108, 114, 1, 0,
	0, 0, 0, 0, 16, 0, 0, 0, 174, 106, 112, 50, 99, 255, 79, 255, 81, 0,
	47, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4,
	0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 7, 1, 1, 7, 1, 1, 7, 1, 1,
	255, 82, 0, 12, 0, 0, 0, 1, 0, 0, 4, 4, 0, 1, 255, 92, 0, 4, 64, 64,
	255, 100, 0, 37, 0, 1, 67, 114, 101, 97, 116, 101, 100, 32, 98, 121,
	32, 79, 112, 101, 110, 74, 80, 69, 71, 32, 118, 101, 114, 115, 105,
	111, 110, 32, 50, 46, 53, 46, 52, 255, 144, 0, 10, 0, 0, 0, 0, 0, 54,
	0, 1, 255, 147, 223, 128, 80, 11, 228, 111, 194, 29, 29, 169, 59, 35,
	63, 223, 128, 88, 8, 244, 224, 134, 202, 33, 41, 156, 17, 146, 131,
	223, 128, 80, 8, 179, 237, 5, 69, 160, 243, 48, 131, 223, 255, 217};

#define S(text) (const uint8_t *)(text), sizeof(text) - 1
#define LE2(v) v "\0"
#define LE4(v) v "\0\0\0"
/* the two heads of a BMP: where pixels begin, w, h, bits, code, colors */
#define BMP(pixels, w, h, bits, code, n)                                       \
	"BM\0\0\0\0\0\0\0\0" LE4(pixels) LE4("\x28") LE4(w) h "\1\0" LE2(bits)     \
	LE4(code) LE4("\x00") LE4("\x00") LE4("\x00") LE4(n) LE4("\x00")
#define H2 LE4("\x02")
#define TOP2 "\xfe\xff\xff\xff" /* -2: from the top */

static const struct decoded {
	const uint8_t *at;
	size_t n;
	int64_t w, h;
	const char *grey; /* of each pixel its R in hexadecimal, G = B = R */
	const uint8_t *rgb;
	const char *lib;
} decoded[] = {
	{S("P6 4 2 255\n\xff\0\0\0\xff\0\0\0\xff\n\x14\x1e\0\0\0\xff\xff\xff"
	   "\x80\x40\x20\xc8\x64\x32"), 4, 2, NULL, colors, NULL},
	{S("P3 # text\n4\t2\n#\n255 255 0 0 0 255 0 0 0 255 10 20 30 0 0 0 "
	   "255 255 255 128 64 32 200 100 50"), 4, 2, NULL, colors, NULL},
	{S("P1\n3 2\n101 0 1\n0"), 3, 2, "00ff00ff00ff", NULL, NULL},
	{S("P4\n3 2\n\xa0\x5f"), 3, 2, "00ff00ff00ff", NULL, NULL},
	{S("P2 2 1 3 0 2"), 2, 1, "00aa", NULL, NULL},
	{S("P5 2 1 15 \0\x0f"), 2, 1, "00ff", NULL, NULL},
	{S("P5 2 1 65535 \x80\0\xff\xff"), 2, 1, "80ff", NULL, NULL},
	{S(BMP("\x36", "\x04", H2, "\x18", "\x00", "\x00") "\0\0\0\xff\xff\xff\x20\x40\x80\x32\x64\xc8"
	   "\0\0\xff\0\xff\0\xff\0\0\x1e\x14\n"), 4, 2, NULL, colors, NULL},
	{S(BMP("\x36", "\x04", TOP2, "\x18", "\x00", "\x00") "\0\0\xff\0\xff\0\xff\0\0\x1e\x14\n\0\0\0"
	   "\xff\xff\xff\x20\x40\x80\x32\x64\xc8"), 4, 2, NULL, colors, NULL},
	{S("BM\0\0\0\0\0\0\0\0" LE4("\x20") LE4("\x0c") "\3\0\2\0\1\0\1\0"
	   "\0\0\0\xff\xff\xff" "\x40\0\0\0\xa0\0\0\0"),
		3, 2, "ff00ff00ff00", NULL, NULL},
	{S(BMP("\x3e", "\x03", TOP2, "\x04", "\x00", "\x02") "\0\0\0\0\x77\x77\x77\0\1\0\0\0\x10\x10\0\0"),
		3, 2, "007700770077", NULL, NULL},
	{S(BMP("\x3e", "\x02", LE4("\x01"), "\x08", "\x00", "\x02") "\0\0\0\0\x77\x77\x77\0\1\0\0\0"),
		2, 1, "7700", NULL, NULL},
	{S(BMP("\x36", "\x02", LE4("\x01"), "\x10", "\x00", "\x00") "\xff\x7f\0\0"), 2, 1, "ff00", NULL, NULL},
	{S(BMP("\x42", "\x02", LE4("\x01"), "\x20", "\x03", "\x00") "\xff\0\0\0\0\xff\0\0\0\0\xff\0"
	   "\x80\x80\x80\0\xff\xff\xff\0"), 2, 1, "80ff", NULL, NULL},
	/* three of color 1, a line's end; two as they are, the end */
	{S(BMP("\x3e", "\x03", H2, "\x08", "\x01", "\x02") "\0\0\0\0\x77\x77\x77\0\3\1\0\0\1\0\2\1\0\1"),
		3, 2, "007777777777", NULL, NULL},
	{S(BMP("\x3e", "\x05", LE4("\x01"), "\x08", "\x01", "\x02") "\0\0\0\0\x77\x77\x77\0\0\2\1\0\0\3\1\0\1\0"
	   "\0\1"), 5, 1, "0077007700", NULL, NULL},
	{S(BMP("\x3e", "\x05", LE4("\x01"), "\x04", "\x02", "\x02") "\0\0\0\0\x77\x77\x77\0\5\x10\0\1"), 5, 1,
		"7700770077", NULL, NULL},
	{S(BMP("\x3e", "\x04", LE4("\x01"), "\x04", "\x02", "\x02") "\0\0\0\0\x77\x77\x77\0\0\4\1\x01\0\1"), 4,
		1, "00770077", NULL, NULL},
	{jpeg, sizeof jpeg, 4, 2, "4d4d4d4d4d4d4d4d", NULL, "libturbojpeg.so.0"},
	{png, sizeof png, 4, 2, NULL, colors, "libpng16.so.16"},
	{webp, sizeof webp, 4, 2, NULL, colors, "libwebp.so.7"},
	{tiff, sizeof tiff, 4, 2, NULL, colors, "libtiff.so.6"},
	{jpeg2000, sizeof jpeg2000, 4, 2, NULL, colors, "libopenjp2.so.7"},
};
enum { N_DECODED = (int)(sizeof decoded / sizeof *decoded) };

/* One file in a block of its own size, so that ASan sees what lies beyond. */
struct job {
	const uint8_t *at;
	size_t n;
	file_picture p;
	bool good, keep;
	uint8_t rgba[256];
};

static void parse(arena *a, void *arg)
{
	struct job *j = arg;
	uint8_t *bytes = malloc(j->n + (j->n == 0));

	assert_non_null(bytes);
	arena_defer(a, free, bytes);
	memcpy(bytes, j->at, j->n);
	j->good = file_picture_parse(a, bytes, j->n, &j->p);
	if (j->good && j->keep) {
		assert_true(j->p.width * j->p.height * 4 <=
			    (int64_t)sizeof j->rgba);
		memcpy(j->rgba, j->p.rgba,
			(size_t)(j->p.width * j->p.height) * 4);
	}
}

/* false: its library is not installed */
static bool is_there(const struct decoded *c)
{
	struct job j = {.at = c->at, .n = c->n};
	tn_diag d = {0};

	if (unit_run(parse, &j, 0, &d) == TN_OK)
		return true;
	assert_non_null(c->lib);
	assert_string_equal(d.rule, "picture.library");
	assert_non_null(strstr(d.text, c->lib));
	print_message("not decoded: %s\n", d.text);
	return false;
}

static void test_formats(void **state)
{
	(void)state;
	for (int i = 0; i < N_DECODED; i++) {
		const struct decoded *c = &decoded[i];
		struct job j = {.at = c->at, .n = c->n, .keep = true};
		tn_diag d = {0};

		if (!is_there(c))
			continue;
		assert_int_equal(unit_run(parse, &j, 0, &d), TN_OK);
		if (!j.good)
			print_error("case %d is not decoded\n", i);
		assert_true(j.good);
		assert_int_equal(j.p.width, c->w);
		assert_int_equal(j.p.height, c->h);
		for (int64_t k = 0; k < c->w * c->h * 3; k++) {
			char hex[3] = {0};
			long want = c->rgb != NULL ? c->rgb[k] : 0;

			if (c->grey != NULL) {
				memcpy(hex, c->grey + k / 3 * 2, 2);
				want = strtol(hex, NULL, 16);
			}
			if (j.rgba[k / 3 * 4 + k % 3] != want)
				print_error("case %d, value %d\n", i, (int)k);
			assert_int_equal(j.rgba[k / 3 * 4 + k % 3], want);
		}
	}
}

/* All beginnings of each file, and each byte changed in three ways. */
static void test_damage(void **state)
{
	(void)state;
	for (int i = 0; i < N_DECODED; i++) {
		const struct decoded *c = &decoded[i];
		uint8_t *copy = malloc(c->n);

		assert_non_null(copy);
		for (size_t n = is_there(c) ? 0 : c->n; n < c->n; n++) {
			static const uint8_t other[] = {0x01, 0x80, 0xff};
			struct job cut = {.at = c->at, .n = n};
			tn_diag d = {0};

			assert_int_equal(unit_run(parse, &cut, 0, &d), TN_OK);
			assert_false(cut.good && n == 0);
			for (size_t k = 0; k < sizeof other; k++) {
				struct job j = {.at = copy, .n = c->n};
				tn_status s;

				memcpy(copy, c->at, c->n);
				copy[n] ^= other[k];
				s = unit_run(parse, &j, 0, &d);
				assert_true(s == TN_OK || s == TN_EINVAL);
				if (s == TN_EINVAL)
					assert_string_equal(
						d.rule, "picture.size");
			}
		}
		free(copy);
	}
}

static const struct refused {
	const uint8_t *at;
	size_t n;
	const char *rule; /* NULL: it is no picture */
} refused[] = {
	{S(""), NULL},
	{S("GIF89a"), NULL},
	{S("P7 1 1 255 "), NULL},
	{S("P6 1 1 65536 abc"), NULL},
	{S("P6 1 1 255 ab"), NULL},
	{S("P2 1 1 3 4"), NULL},
	{S("P5 99999999999 1 255 "), NULL},
	{S("P5 0 1 255 "), NULL},
	{S("P5 1000000 1000000 255 "), NULL},
	{S("P5 2147483646 2147483646 255 "), NULL},
	{S("P1 3 1 1"), NULL},
	{S(BMP("\x3e", "\x03", H2, "\x08", "\x01", "\x02") "\0\0\0\0\x77\x77\x77\0\4\1\0\1"), NULL},
	{S(BMP("\x36", "\x04", "\0\0\0\x80", "\x18", "\x00", "\x00")), NULL},
	/* runs, 2^31 rows */
	{S(BMP("\x3e", "\x03", "\0\0\0\x80", "\x08", "\x01", "\x02")
	   "\0\0\0\0\x77\x77\x77\0\0\1"), "picture.size"},
	{S(BMP("\x36", "\x04", H2, "\x19", "\x00", "\x00") "\0\0\0"), NULL},
	{S("BM\0\0\0\0\0\0\0\0" LE4("\x36") "\xff\xff\xff\xff" LE4("\x04") H2), NULL},
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct job j = {.at = refused[i].at, .n = refused[i].n};
		tn_diag d = {0};
		tn_status s = unit_run(parse, &j, 0, &d);

		if (refused[i].rule != NULL) {
			assert_int_equal(s, TN_EINVAL);
			assert_string_equal(d.rule, refused[i].rule);
		} else {
			assert_int_equal(s, TN_OK);
			assert_false(j.good);
		}
	}
}

static void open_none(arena *a, void *arg)
{
	picture_library(a, arg);
}

static void test_library(void **state)
{
	static char name[] = "libtenon-has-no-such-library.so.1";
	tn_diag d = {0};

	(void)state;
	assert_int_equal(unit_run(open_none, name, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "picture.library");
	assert_non_null(strstr(d.text, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
