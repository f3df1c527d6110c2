/*
 * picture.c: a file of a picture as its pixels.
 *
 *     "P6 2 1 255\n" and 6 bytes  ->  height 1, width 2, 8 bytes: R G B A R G B A
 *
 * BMP and PNM are read here (picture_plain.c). The others are formats of some
 * size, for each of which there is one library that all use: libjpeg-turbo, libpng,
 * libwebp, libtiff and OpenJPEG. They are loaded when such a file is read, so the
 * library needs none of them (picture_lib.c).
 */
#include "file/picture.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define MAX_PIXELS (INT64_C(1) << 16)
#else
#define MAX_PIXELS (INT64_C(1) << 26)
#endif

static const struct format {
	const char *magic;
	size_t at, n; /* of magic in the file */
	picture_decoder *decode;
	const char *lib; /* by its name for the loader, or NULL */
} formats[] = {
	{"BM", 0, 2, picture_bmp, NULL},
	{"P1", 0, 2, picture_pnm, NULL},
	{"P2", 0, 2, picture_pnm, NULL},
	{"P3", 0, 2, picture_pnm, NULL},
	{"P4", 0, 2, picture_pnm, NULL},
	{"P5", 0, 2, picture_pnm, NULL},
	{"P6", 0, 2, picture_pnm, NULL},
	{"\xff\xd8\xff", 0, 3, picture_jpeg, "libturbojpeg.so.0"},
	{"\x89PNG\r\n\x1a\n", 0, 8, picture_png, "libpng16.so.16"},
	{"WEBP", 8, 4, picture_webp, "libwebp.so.7"},
	{"II*\0", 0, 4, picture_tiff, "libtiff.so.6"},
	{"MM\0*", 0, 4, picture_tiff, "libtiff.so.6"},
	{"II+\0", 0, 4, picture_tiff, "libtiff.so.6"},
	{"MM\0+", 0, 4, picture_tiff, "libtiff.so.6"},
	{"jP  \r\n\x87\n", 4, 8, picture_jpeg2000, "libopenjp2.so.7"},
	{"\xff\x4f\xff\x51", 0, 4, picture_jpeg2000, "libopenjp2.so.7"},
};

bool file_picture_parse(arena *a, const void *bytes, size_t n, file_picture *out)
{
	const struct format *f = NULL;
	picture p = {.a = a, .at = bytes, .n = n};

	for (size_t i = 0; i < sizeof formats / sizeof *formats && f == NULL; i++)
		if (n >= formats[i].at + formats[i].n &&
			memcmp(p.at + formats[i].at, formats[i].magic,
				formats[i].n) == 0)
			f = &formats[i];
	if (f == NULL)
		return false;
	if (f->lib != NULL)
		p.lib = picture_library(a, f->lib);
	p.lib_name = f->lib;
	if (!f->decode(&p) || p.w < 1 || p.h < 1)
		return false;
	if (p.w > MAX_PIXELS / p.h)
		env_fail(arena_env(a), TN_EINVAL, "picture.size", (loc){0},
			"a picture has %lld x %lld pixels; at most 2^26 are "
			"decoded", (long long)p.w, (long long)p.h);
	p.rgba = arena_array(a, uint8_t, p.w * p.h * 4);
	out->width = p.w;
	out->height = p.h;
	out->rgba = p.rgba;
	return f->decode(&p);
}
