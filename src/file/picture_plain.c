/*
 * picture_plain.c: the formats that need no library: BMP (Windows' bitmaps, all
 * headers from OS/2's on, 1 to 32 bits, masks, both run-length codes) and PNM (PBM,
 * PGM and PPM, as text and as bytes).
 */
#include "file/picture.h"

static int64_t le(const picture *p, size_t at, int32_t n_bytes)
{
	uint64_t v = 0;

	for (int32_t i = n_bytes - 1; i >= 0; i--)
		v = v << 8 | p->at[at + (size_t)i];
	return (int64_t)v;
}

static void put(picture *p, int64_t x, int64_t y, const uint8_t rgb[3])
{
	uint8_t *to = p->rgba + (y * p->w + x) * 4;

	memcpy(to, rgb, 3);
	to[3] = 255;
}

/* ---- BMP ---- */

enum { RGB = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, ALPHA_MASKS = 6 };

typedef struct bmp {
	size_t header, pixels; /* bytes of the second header; where pixels begin */
	int32_t bits, code;
	bool from_top;
	uint32_t mask[3];
	uint8_t palette[256][3];
} bmp;

static bool bmp_header(picture *p, bmp *b)
{
	if (p->n < 26)
		return false;
	b->pixels = (size_t)le(p, 10, 4);
	b->header = (size_t)le(p, 14, 4);
	if (b->header == 12) {
		p->w = le(p, 18, 2);
		p->h = le(p, 20, 2);
		b->bits = (int32_t)le(p, 24, 2);
		return b->bits <= 8 || b->bits == 24;
	}
	if (b->header < 40 || b->header > 1024 || p->n < 14 + b->header)
		return false;
	p->w = (int32_t)le(p, 18, 4);
	p->h = (int32_t)le(p, 22, 4);
	b->from_top = p->h < 0;
	p->h = p->h < 0 ? -p->h : p->h;
	b->bits = (int32_t)le(p, 28, 2);
	b->code = (int32_t)le(p, 30, 4);
	return b->code == RGB || (b->code == RLE8 && b->bits == 8) ||
	       (b->code == RLE4 && b->bits == 4) ||
	       ((b->code == MASKS || b->code == ALPHA_MASKS) &&
		       (b->bits == 16 || b->bits == 32));
}

static bool bmp_colors(const picture *p, bmp *b)
{
	size_t at = 14 + b->header, entry = b->header == 12 ? 3 : 4;
	size_t n = b->header == 12 ? 0 : (size_t)le(p, 46, 4);

	if (b->code == MASKS || b->code == ALPHA_MASKS) {
		if (p->n < 66)
			return false;
		for (size_t i = 0; i < 3; i++)
			b->mask[i] = (uint32_t)le(p, 54 + 4 * i, 4);
		return true;
	}
	for (int32_t i = 0; i < 3; i++)
		b->mask[i] = b->bits == 16 ? 31u << (10 - 5 * i)
					   : 255u << (16 - 8 * i);
	if (b->bits > 8)
		return true;
	n = n == 0 || n > (size_t)1 << b->bits ? (size_t)1 << b->bits : n;
	if (at > p->n || n > (p->n - at) / entry)
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 3; k++)
			b->palette[i][k] = p->at[at + i * entry + 2 - k];
	return true;
}

/* The bits of a mask as a number of 0 to 255, rounded. */
static uint8_t masked(uint32_t v, uint32_t mask)
{
	uint64_t low = mask & (~mask + 1), most;

	if (mask == 0)
		return 0;
	most = mask / low;
	return (uint8_t)(((v & mask) / low * 255 + most / 2) / most);
}

static size_t bmp_stride(const picture *p, const bmp *b)
{
	return ((size_t)p->w * (size_t)b->bits + 31) / 32 * 4;
}

static void bmp_rows(picture *p, const bmp *b)
{
	size_t stride = bmp_stride(p, b), bytes = (size_t)b->bits / 8;

	for (int64_t i = 0; i < p->w * p->h; i++) {
		int64_t x = i % p->w, y = i / p->w;
		size_t row = b->pixels + (size_t)y * stride;
		size_t bit = (size_t)x * (size_t)b->bits;
		uint8_t rgb[3];

		if (b->bits <= 8) {
			int32_t v = p->at[row + bit / 8] >>
				    (8 - b->bits - (int32_t)(bit % 8));

			memcpy(rgb, b->palette[v & ((1 << b->bits) - 1)], 3);
		} else {
			uint32_t v = (uint32_t)le(p, row + (size_t)x * bytes,
				(int32_t)bytes);

			for (int32_t k = 0; k < 3; k++)
				rgb[k] = masked(v, b->mask[k]);
		}
		put(p, x, b->from_top ? y : p->h - 1 - y, rgb);
	}
}

typedef struct pen {
	picture *p;
	const bmp *b;
	int64_t x, y; /* from the bottom */
} pen;

/* false: beyond the picture */
static bool draw(pen *d, int32_t color)
{
	if (d->x >= d->p->w || d->y >= d->p->h)
		return false;
	put(d->p, d->x++, d->p->h - 1 - d->y, d->b->palette[color]);
	return true;
}

/* n pixels of bytes, which are two pixels each with 4 bits. */
static bool draw_bytes(pen *d, const uint8_t *from, int32_t n, bool same)
{
	for (int32_t i = 0; i < n; i++) {
		int32_t color = from[same || d->b->bits == 8 ? 0 : i / 2];

		if (!same && d->b->bits == 8)
			color = from[i];
		if (d->b->bits == 4)
			color = i % 2 == 0 ? color >> 4 : color & 15;
		if (!draw(d, color))
			return false;
	}
	return true;
}

static bool bmp_runs(picture *p, const bmp *b)
{
	pen d = {p, b, 0, 0};
	size_t at = b->pixels;

	for (int64_t i = 0; i < p->w * p->h; i++)
		put(p, i % p->w, i / p->w, b->palette[0]);
	while (at < p->n && p->n - at >= 2) {
		int32_t n = p->at[at], what = p->at[at + 1];
		size_t bytes = b->bits == 8 ? (size_t)what : ((size_t)what + 1) / 2;

		at += 2;
		if (n > 0) {
			if (!draw_bytes(&d, p->at + at - 1, n, true))
				return false;
		} else if (what == 0) {
			d.x = 0;
			d.y++;
		} else if (what == 1) {
			return true;
		} else if (what == 2) {
			if (p->n - at < 2)
				return false;
			d.x += p->at[at];
			d.y += p->at[at + 1];
			at += 2;
		} else {
			if (p->n - at < bytes ||
				!draw_bytes(&d, p->at + at, what, false))
				return false;
			at += bytes + bytes % 2;
		}
	}
	return false;
}

bool picture_bmp(picture *p)
{
	bmp b = {0};
	bool is_runs;

	if (!bmp_header(p, &b) || p->w < 1 || p->h < 1 || b.pixels > p->n ||
		(b.bits != 1 && b.bits != 4 && b.bits != 8 && b.bits != 16 &&
			b.bits != 24 && b.bits != 32))
		return false;
	is_runs = b.code == RLE8 || b.code == RLE4;
	if (!is_runs && (size_t)p->h > (p->n - b.pixels) / bmp_stride(p, &b))
		return false;
	if (p->rgba == NULL)
		return true;
	if (!bmp_colors(p, &b))
		return false;
	if (is_runs)
		return bmp_runs(p, &b);
	bmp_rows(p, &b);
	return true;
}

/* ---- PNM ---- */

typedef struct pnm {
	const picture *p;
	size_t at;
} pnm;

/* Skips blanks, and comments from # to the end of their line. */
static void skip(pnm *r)
{
	while (r->at < r->p->n) {
		uint8_t c = r->p->at[r->at];

		if (c == '#')
			while (r->at < r->p->n && r->p->at[r->at] != '\n')
				r->at++;
		else if (c == ' ' || (c >= '\t' && c <= '\r'))
			r->at++;
		else
			return;
	}
}

/* -1: there is none, or it is too large */
static int64_t number(pnm *r, bool one_digit)
{
	int64_t v = -1;

	skip(r);
	while (r->at < r->p->n && r->p->at[r->at] >= '0' &&
		r->p->at[r->at] <= '9' && v < INT32_MAX) {
		v = (v < 0 ? 0 : v * 10) + (r->p->at[r->at++] - '0');
		if (one_digit)
			break;
	}
	return v < INT32_MAX ? v : -1;
}

/* The next number of a body of bytes, or -1. */
static int64_t next(pnm *r, int64_t bytes)
{
	int64_t v = 0;

	if (r->p->n - r->at < (size_t)bytes)
		return -1;
	for (int64_t i = 0; i < bytes; i++)
		v = v << 8 | r->p->at[r->at++];
	return v;
}

static void pbm_bytes(picture *p, const pnm *r)
{
	size_t stride = ((size_t)p->w + 7) / 8;

	for (int64_t i = 0; i < p->w * p->h; i++) {
		int64_t x = i % p->w, y = i / p->w;
		uint8_t c = p->at[r->at + (size_t)y * stride + (size_t)x / 8];
		uint8_t v = (c >> (7 - x % 8) & 1) != 0 ? 0 : 255;

		put(p, x, y, (uint8_t[3]){v, v, v});
	}
}

bool picture_pnm(picture *p)
{
	int kind = p->at[1] - '0', n = kind % 3 == 0 ? 3 : 1;
	pnm r = {p, 2};
	int64_t most = 1, row;

	p->w = number(&r, false);
	p->h = number(&r, false);
	if (kind % 3 != 1)
		most = number(&r, false);
	if (p->w < 1 || p->h < 1 || most < 1 || most > 65535)
		return false;
	if (kind > 3 && r.at++ >= p->n) /* one blank before the bytes */
		return false;
	/* a row of the text has as many digits as samples, at least */
	row = kind == 4 ? (p->w + 7) / 8 : p->w * n * (kind > 3 && most > 255 ? 2 : 1);
	if (p->h > (int64_t)(p->n - r.at) / row)
		return false;
	if (p->rgba == NULL)
		return true;
	if (kind == 4) {
		pbm_bytes(p, &r);
		return true;
	}
	for (int64_t i = 0; i < p->w * p->h; i++) {
		uint8_t rgb[3];

		for (int k = 0; k < n; k++) {
			int64_t v = kind > 3 ? next(&r, most > 255 ? 2 : 1)
					     : number(&r, kind == 1);

			if (v < 0 || v > most)
				return false;
			v = kind == 1 ? 1 - v : v;
			rgb[k] = (uint8_t)((v * 255 + most / 2) / most);
		}
		if (n == 1)
			rgb[1] = rgb[2] = rgb[0];
		put(p, i % p->w, i / p->w, rgb);
	}
	return true;
}
