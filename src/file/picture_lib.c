/*
 * picture_lib.c: the formats that a library decodes: JPEG by libjpeg-turbo, PNG by
 * libpng, WebP by libwebp, TIFF by libtiff 4.5 and newer, JPEG 2000 by OpenJPEG.
 *
 * Each decoder finds all its functions first, which may throw; what it then gets
 * from the library it gives back before it returns. Types whose layout a library
 * keeps to itself are void here; the two others are laid out below as their
 * headers have them since libpng 1.6 and OpenJPEG 2.0.
 */
#include "file/picture.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void *picture_library(arena *a, const char *name)
{
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (lib == NULL)
		env_fail(arena_env(a), TN_EINVAL, "picture.library", (loc){0},
			"pictures of this format are decoded by %s, which is not "
			"installed", name);
	return lib;
}

static void *symbol(const picture *p, const char *name)
{
	void *f = dlsym(p->lib, name);

	if (f == NULL)
		env_fail(arena_env(p->a), TN_EINVAL, "picture.library", (loc){0},
			"%s has no function %s: it must be newer", p->lib_name,
			name);
	return f;
}

#define FIND(p, to, name) (*(void **)&(to) = symbol((p), (name)))

/* ---- JPEG ---- */

enum { TURBO_RGBA = 7, TURBO_ACCURATE = 4096, TURBO_LIMIT_SCANS = 32768 };

bool picture_jpeg(picture *p)
{
	void *(*start)(void);
	int (*stop)(void *h);
	int (*header)(void *h, const unsigned char *at, unsigned long n, int *w,
		int *height, int *sampling, int *space);
	int (*decode)(void *h, const unsigned char *at, unsigned long n,
		unsigned char *to, int w, int pitch, int height, int format,
		int flags);
	int w = 0, h = 0, sampling, space;
	void *handle;
	bool good;

	FIND(p, start, "tjInitDecompress");
	FIND(p, stop, "tjDestroy");
	FIND(p, header, "tjDecompressHeader3");
	FIND(p, decode, "tjDecompress2");
	handle = start();
	if (handle == NULL)
		return false;
	good = header(handle, p->at, p->n, &w, &h, &sampling, &space) == 0;
	if (p->rgba != NULL)
		good = good && w == p->w && h == p->h &&
		       decode(handle, p->at, p->n, p->rgba, w, 0, h, TURBO_RGBA,
			       TURBO_ACCURATE | TURBO_LIMIT_SCANS) == 0;
	p->w = w;
	p->h = h;
	stop(handle);
	return good;
}

/* ---- PNG ---- */

enum { PNG_VERSION = 1, PNG_RGBA = 3, PNG_16_BITS_ARE_SRGB = 4 };

typedef struct png {
	void *opaque;
	uint32_t version, width, height, format, flags, n_colors, trouble;
	char message[64];
} png;

bool picture_png(picture *p)
{
	int (*begin)(png *g, const void *at, size_t n);
	int (*finish)(png *g, const void *background, void *to, int32_t stride,
		void *colors);
	void (*stop)(png *g);
	png g = {.version = PNG_VERSION};
	bool good;

	FIND(p, begin, "png_image_begin_read_from_memory");
	FIND(p, finish, "png_image_finish_read");
	FIND(p, stop, "png_image_free");
	good = begin(&g, p->at, p->n) != 0;
	if (p->rgba != NULL && good) {
		g.format = PNG_RGBA;
		g.flags |= PNG_16_BITS_ARE_SRGB;
		good = g.width == p->w && g.height == p->h &&
		       finish(&g, NULL, p->rgba, 0, NULL) != 0;
	}
	p->w = g.width;
	p->h = g.height;
	stop(&g);
	return good;
}

/* ---- WebP ---- */

bool picture_webp(picture *p)
{
	int (*info)(const uint8_t *at, size_t n, int *w, int *h);
	uint8_t *(*decode)(const uint8_t *at, size_t n, uint8_t *to,
		size_t n_to, int stride);
	int w = 0, h = 0;

	FIND(p, info, "WebPGetInfo");
	FIND(p, decode, "WebPDecodeRGBAInto");
	if (info(p->at, p->n, &w, &h) == 0)
		return false;
	if (p->rgba != NULL)
		return w == p->w && h == p->h &&
		       decode(p->at, p->n, p->rgba, (size_t)(p->w * p->h) * 4,
			       w * 4) != NULL;
	p->w = w;
	p->h = h;
	return true;
}

/* ---- a file in memory, for libtiff and OpenJPEG ---- */

typedef struct source {
	const uint8_t *at;
	size_t n, pos; /* pos may lie behind the end */
} source;

static size_t take(source *s, void *to, size_t n)
{
	size_t left = s->pos < s->n ? s->n - s->pos : 0;

	n = n < left ? n : left;
	memcpy(to, s->at + (n > 0 ? s->pos : 0), n);
	s->pos += n;
	return n;
}

/* ---- TIFF ---- */

enum {
	TIFF_WIDTH = 256,
	TIFF_LENGTH = 257,
	TIFF_FROM_TOP_LEFT = 1,
	TIFF_MOST = 1 << 28 /* bytes of one allocation */
};

static ptrdiff_t tiff_read(void *s, void *to, ptrdiff_t n)
{
	return n < 0 ? -1 : (ptrdiff_t)take(s, to, (size_t)n);
}

static ptrdiff_t tiff_write(void *s, void *from, ptrdiff_t n)
{
	(void)s;
	(void)from;
	(void)n;
	return -1;
}

static uint64_t tiff_seek(void *arg, uint64_t to, int from)
{
	source *s = arg;

	s->pos = (size_t)to + (from == SEEK_CUR ? s->pos
					: from == SEEK_END ? s->n : 0);
	return s->pos;
}

static int tiff_close(void *s)
{
	(void)s;
	return 0;
}

static uint64_t tiff_size(void *s)
{
	return ((const source *)s)->n;
}

static int tiff_map(void *s, void **base, uint64_t *n)
{
	(void)s;
	(void)base;
	(void)n;
	return 0;
}

static void tiff_unmap(void *s, void *base, uint64_t n)
{
	(void)s;
	(void)base;
	(void)n;
}

/* Said instead of printing: 1. */
static int tiff_quiet(
	void *t, void *arg, const char *where, const char *fmt, va_list ap)
{
	(void)t;
	(void)arg;
	(void)where;
	(void)fmt;
	(void)ap;
	return 1;
}

typedef struct tiff_calls {
	void *(*options)(void);
	void (*drop_options)(void *o);
	void (*most)(void *o, ptrdiff_t n);
	void (*on_error)(void *o, int (*f)(void *, void *, const char *,
				  const char *, va_list), void *arg);
	void (*on_warning)(void *o, int (*f)(void *, void *, const char *,
				    const char *, va_list), void *arg);
	void *(*open)(const char *name, const char *mode, void *s,
		ptrdiff_t (*read)(void *, void *, ptrdiff_t),
		ptrdiff_t (*write)(void *, void *, ptrdiff_t),
		uint64_t (*seek)(void *, uint64_t, int), int (*close)(void *),
		uint64_t (*size)(void *),
		int (*map)(void *, void **, uint64_t *),
		void (*unmap)(void *, void *, uint64_t), void *o);
	int (*field)(void *t, uint32_t tag, ...);
	int (*read)(void *t, uint32_t w, uint32_t h, uint32_t *to, int from,
		int stop);
	void (*close)(void *t);
} tiff_calls;

static void tiff_find(const picture *p, tiff_calls *c)
{
	FIND(p, c->options, "TIFFOpenOptionsAlloc");
	FIND(p, c->drop_options, "TIFFOpenOptionsFree");
	FIND(p, c->most, "TIFFOpenOptionsSetMaxSingleMemAlloc");
	FIND(p, c->on_error, "TIFFOpenOptionsSetErrorHandlerExtR");
	FIND(p, c->on_warning, "TIFFOpenOptionsSetWarningHandlerExtR");
	FIND(p, c->open, "TIFFClientOpenExt");
	FIND(p, c->field, "TIFFGetField");
	FIND(p, c->read, "TIFFReadRGBAImageOriented");
	FIND(p, c->close, "TIFFClose");
}

static void *tiff_open(const tiff_calls *c, source *s)
{
	void *options = c->options(), *t;

	if (options == NULL)
		return NULL;
	c->most(options, TIFF_MOST);
	c->on_error(options, tiff_quiet, NULL);
	c->on_warning(options, tiff_quiet, NULL);
	t = c->open("", "rm", s, tiff_read, tiff_write, tiff_seek, tiff_close,
		tiff_size, tiff_map, tiff_unmap, options);
	c->drop_options(options);
	return t;
}

bool picture_tiff(picture *p)
{
	source s = {p->at, p->n, 0};
	uint32_t w = 0, h = 0;
	tiff_calls c;
	void *t;
	bool good;

	tiff_find(p, &c);
	t = tiff_open(&c, &s);
	if (t == NULL)
		return false;
	good = c.field(t, TIFF_WIDTH, &w) == 1 &&
	       c.field(t, TIFF_LENGTH, &h) == 1;
	if (p->rgba != NULL) {
		/* an element has R in its low byte */
		uint32_t *to = (void *)p->rgba;

		good = good && w == p->w && h == p->h &&
		       c.read(t, w, h, to, TIFF_FROM_TOP_LEFT, 1) == 1;
		for (int64_t i = 0; good && i < p->w * p->h; i++) {
			uint32_t v = to[i];

			for (int k = 0; k < 4; k++)
				p->rgba[4 * i + k] = (uint8_t)(v >> 8 * k);
		}
	}
	p->w = w;
	p->h = h;
	c.close(t);
	return good;
}

/* ---- JPEG 2000 ---- */

enum { OPJ_CODE_STREAM = 0, OPJ_JP2 = 2, OPJ_SYCC = 3, OPJ_ROOM = 1 << 16 };

typedef struct opj_part {
	uint32_t dx, dy, w, h, x0, y0, bits, bpp, is_signed, resolution, factor;
	int32_t *data;
	uint16_t alpha;
} opj_part;

typedef struct opj_image {
	uint32_t x0, y0, x1, y1, n_parts;
	int space;
	opj_part *part;
	uint8_t *icc;
	uint32_t n_icc;
} opj_image;

static size_t opj_read(void *to, size_t n, void *s)
{
	n = take(s, to, n);
	return n > 0 ? n : (size_t)-1;
}

static int64_t opj_skip(int64_t n, void *arg)
{
	source *s = arg;

	if (n < 0 || s->pos > s->n || (uint64_t)n > s->n - s->pos)
		return -1;
	s->pos += (size_t)n;
	return n;
}

static int opj_seek(int64_t to, void *arg)
{
	source *s = arg;

	if (to < 0 || (uint64_t)to > s->n)
		return 0;
	s->pos = (size_t)to;
	return 1;
}

typedef struct opj_calls {
	void *(*stream)(int is_input);
	void (*drop_stream)(void *s);
	void (*set_read)(void *s, size_t (*f)(void *, size_t, void *));
	void (*set_skip)(void *s, int64_t (*f)(int64_t, void *));
	void (*set_seek)(void *s, int (*f)(int64_t, void *));
	void (*set_data)(void *s, void *data, void (*drop)(void *));
	void (*set_length)(void *s, uint64_t n);
	void *(*codec)(int kind);
	void (*drop_codec)(void *c);
	void (*defaults)(void *o);
	int (*setup)(void *c, void *o);
	int (*header)(void *s, void *c, opj_image **out);
	int (*decode)(void *c, void *s, opj_image *i);
	void (*drop_image)(opj_image *i);
} opj_calls;

static void opj_find(const picture *p, opj_calls *c)
{
	FIND(p, c->stream, "opj_stream_default_create");
	FIND(p, c->drop_stream, "opj_stream_destroy");
	FIND(p, c->set_read, "opj_stream_set_read_function");
	FIND(p, c->set_skip, "opj_stream_set_skip_function");
	FIND(p, c->set_seek, "opj_stream_set_seek_function");
	FIND(p, c->set_data, "opj_stream_set_user_data");
	FIND(p, c->set_length, "opj_stream_set_user_data_length");
	FIND(p, c->codec, "opj_create_decompress");
	FIND(p, c->drop_codec, "opj_destroy_codec");
	FIND(p, c->defaults, "opj_set_default_decoder_parameters");
	FIND(p, c->setup, "opj_setup_decoder");
	FIND(p, c->header, "opj_read_header");
	FIND(p, c->decode, "opj_decode");
	FIND(p, c->drop_image, "opj_image_destroy");
}

/* Grey, or R, G and B, of whole samples; then perhaps what is not color. */
static bool opj_is_known(const opj_image *i)
{
	if (i->n_parts < 1 || i->n_parts > 4 || i->space >= OPJ_SYCC ||
		i->x1 <= i->x0 || i->y1 <= i->y0)
		return false;
	for (uint32_t k = 0; k < i->n_parts; k++)
		if (i->part[k].dx != 1 || i->part[k].dy != 1 ||
			i->part[k].bits < 1 || i->part[k].bits > 31)
			return false;
	return true;
}

/* A sample as a number of 0 to 255, rounded. */
static uint8_t opj_sample(const opj_part *q, int64_t i)
{
	int64_t most = (INT64_C(1) << q->bits) - 1, v = q->data[i];

	v += q->is_signed != 0 ? INT64_C(1) << (q->bits - 1) : 0;
	v = v < 0 ? 0 : v > most ? most : v;
	return (uint8_t)((v * 255 + most / 2) / most);
}

static bool opj_pixels(picture *p, const opj_image *i)
{
	uint32_t n = i->n_parts < 3 ? 1 : 3;

	for (uint32_t k = 0; k < n; k++)
		if (i->part[k].w != p->w || i->part[k].h != p->h ||
			i->part[k].data == NULL)
			return false;
	for (int64_t at = 0; at < p->w * p->h; at++) {
		for (uint32_t k = 0; k < 3; k++)
			p->rgba[4 * at + k] =
				opj_sample(&i->part[n == 1 ? 0 : k], at);
		p->rgba[4 * at + 3] = 255;
	}
	return true;
}

static bool opj_run(picture *p, const opj_calls *c, void *stream, void *codec)
{
	void *options = calloc(1, OPJ_ROOM); /* 8,252 bytes in 2.5 */
	opj_image *i = NULL;
	bool good = options != NULL;

	if (good) {
		c->defaults(options);
		good = c->setup(codec, options) != 0 &&
		       c->header(stream, codec, &i) != 0 && i != NULL &&
		       opj_is_known(i);
	}
	if (good && p->rgba == NULL) {
		p->w = (int64_t)i->x1 - i->x0;
		p->h = (int64_t)i->y1 - i->y0;
	} else if (good) {
		good = p->w == (int64_t)i->x1 - i->x0 &&
		       p->h == (int64_t)i->y1 - i->y0 &&
		       c->decode(codec, stream, i) != 0 && opj_is_known(i) &&
		       opj_pixels(p, i);
	}
	if (i != NULL)
		c->drop_image(i);
	free(options);
	return good;
}

static uint32_t be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
	       (uint32_t)at[2] << 8 | at[3];
}

/*
 * Every head of a code stream in the file: the library allocates for each tile and
 * part what its head says, so there must be few parts, and tiles that the bytes of
 * the file are enough for.
 */
static bool opj_is_small(const picture *p)
{
	static const uint8_t mark[] = {0xff, 0x4f, 0xff, 0x51};

	for (size_t i = 0; i + 44 <= p->n; i++) {
		const uint8_t *at = p->at + i;
		uint64_t w, h, parts;

		if (memcmp(at, mark, sizeof mark) != 0)
			continue;
		w = be32(at + 24);
		h = be32(at + 28);
		parts = (uint64_t)at[40] << 8 | at[41];
		if (w == 0 || h == 0 || parts > 4 ||
			(be32(at + 8) / w + 1) * (be32(at + 12) / h + 1) > p->n)
			return false;
	}
	return true;
}

bool picture_jpeg2000(picture *p)
{
	source s = {p->at, p->n, 0};
	opj_calls c;
	void *stream, *codec;
	bool good = false;

	opj_find(p, &c);
	if (!opj_is_small(p))
		return false;
	stream = c.stream(1);
	codec = c.codec(p->at[0] == 0xff ? OPJ_CODE_STREAM : OPJ_JP2);
	if (stream != NULL && codec != NULL) {
		c.set_read(stream, opj_read);
		c.set_skip(stream, opj_skip);
		c.set_seek(stream, opj_seek);
		c.set_data(stream, &s, NULL);
		c.set_length(stream, p->n);
		good = opj_run(p, &c, stream, codec);
	}
	if (stream != NULL)
		c.drop_stream(stream);
	if (codec != NULL)
		c.drop_codec(codec);
	return good;
}
