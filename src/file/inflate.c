/*
 * inflate.c: decodes DEFLATE into a buffer of known size.
 *
 * Codes are canonical: those of n bits are consecutive numbers, and the first
 * is twice the number after the last code of n - 1 bits. So a code is read bit
 * by bit with only the counts per length and the symbols in order; no other
 * tables are needed. Each write is compared with the known size of the buffer.
 */
#include "file/inflate.h"

enum { MAX_BITS = 15, MAX_LITERALS = 288, MAX_DISTANCES = 32 };

typedef struct stream {
	env *e;
	const char *path;
	const uint8_t *in;
	size_t n_in, at;
	uint32_t bits; /* read, and not yet used */
	int n_bits;
	uint8_t *out;
	size_t n_out, done;
} stream;

typedef struct code {
	uint16_t count[MAX_BITS + 1]; /* of codes, by length */
	uint16_t symbol[MAX_LITERALS]; /* in the order of their codes */
} code;

static _Noreturn void damaged(const stream *s, const char *what)
{
	env_fail(s->e, TN_EIO, "npz.deflate", (loc){.file = s->path},
		"compressed data is damaged: %s", what);
}

static uint32_t take(stream *s, int n)
{
	uint32_t v;

	while (s->n_bits < n) {
		if (s->at == s->n_in)
			damaged(s, "a member ends too early");
		s->bits |= (uint32_t)s->in[s->at++] << s->n_bits;
		s->n_bits += 8;
	}
	v = s->bits & ((UINT32_C(1) << n) - 1);
	s->bits >>= n;
	s->n_bits -= n;
	return v;
}

/* Makes a code from the length of each symbol's code; 0: no code. */
static void make_code(stream *s, code *c, const uint8_t *length, int n)
{
	uint16_t from[MAX_BITS + 1];
	int32_t left = 1;

	memset(c, 0, sizeof *c);
	for (int i = 0; i < n; i++)
		c->count[length[i]]++;
	c->count[0] = 0;
	from[0] = from[1] = 0;
	for (int k = 1; k <= MAX_BITS; k++) {
		left = 2 * left - c->count[k];
		if (left < 0)
			damaged(s, "more codes than fit their lengths");
		if (k < MAX_BITS)
			from[k + 1] = (uint16_t)(from[k] + c->count[k]);
	}
	for (int i = 0; i < n; i++)
		if (length[i] > 0)
			c->symbol[from[length[i]]++] = (uint16_t)i;
}

static int next_symbol(stream *s, const code *c)
{
	uint32_t first = 0, at = 0, v = 0;

	for (int k = 1; k <= MAX_BITS; k++) {
		v |= take(s, 1);
		if (v - first < c->count[k])
			return c->symbol[at + v - first];
		at += c->count[k];
		first = (first + c->count[k]) << 1;
		v <<= 1;
	}
	damaged(s, "no such code");
}

static void copy_stored(stream *s)
{
	size_t n, inverse;

	s->bits = 0;
	s->n_bits = 0;
	n = take(s, 16);
	inverse = take(s, 16);
	if (n != (inverse ^ 0xffff))
		damaged(s, "the length of a stored part");
	if (n > s->n_in - s->at || n > s->n_out - s->done)
		damaged(s, "a stored part is longer than there is room");
	memcpy(s->out + s->done, s->in + s->at, n);
	s->at += n;
	s->done += n;
}

static void copy_back(stream *s, size_t distance, size_t n)
{
	if (distance > s->done)
		damaged(s, "it refers to bytes before its beginning");
	if (n > s->n_out - s->done)
		damaged(s, "it is longer than the directory says");
	for (; n > 0; n--, s->done++)
		s->out[s->done] = s->out[s->done - distance];
}

static void decode(stream *s, const code *literal, const code *distance)
{
	for (;;) {
		int k = next_symbol(s, literal);
		size_t n, back;
		int extra;

		if (k == 256)
			return;
		if (k < 256) {
			if (s->done == s->n_out)
				damaged(s, "it is longer than the directory "
					   "says");
			s->out[s->done++] = (uint8_t)k;
			continue;
		}
		/*
		 * 257 means 3, and so on; from 265 on there are four codes for
		 * each number of extra bits
		 */
		k -= 257;
		extra = k < 8 || k == 28 ? 0 : (k - 4) / 4;
		n = k < 8 ? (size_t)k + 3
			: (size_t)(4 + k % 4) << extra;
		n = k == 28 ? 258 : k < 8 ? n : n + 3;
		if (k > 28)
			damaged(s, "no such length");
		n += take(s, extra);
		k = next_symbol(s, distance);
		if (k > 29)
			damaged(s, "no such distance");
		extra = k < 4 ? 0 : (k - 2) / 2;
		back = k < 4 ? (size_t)k + 1
			: ((size_t)(2 + k % 2) << extra) + 1;
		copy_back(s, back + take(s, extra), n);
	}
}

static void fixed_codes(stream *s, code *literal, code *distance)
{
	uint8_t length[MAX_LITERALS];

	for (int i = 0; i < MAX_LITERALS; i++)
		length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
	make_code(s, literal, length, MAX_LITERALS);
	memset(length, 5, MAX_DISTANCES);
	make_code(s, distance, length, MAX_DISTANCES);
}

/*
 * Reads the two codes. Their lengths are themselves encoded, with a third code
 * that comes first.
 */
static void read_codes(stream *s, code *literal, code *distance)
{
	static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4,
		12, 3, 13, 2, 14, 1, 15};
	uint8_t length[MAX_LITERALS + MAX_DISTANCES] = {0};
	int n_literals = 257 + (int)take(s, 5), n = 1 + (int)take(s, 5);
	int n_order = 4 + (int)take(s, 4), at = 0;

	if (n_literals > MAX_LITERALS)
		damaged(s, "too many codes");
	n += n_literals;
	for (int i = 0; i < n_order; i++)
		length[order[i]] = (uint8_t)take(s, 3);
	make_code(s, literal, length, 19);
	memset(length, 0, 19);
	while (at < n) {
		int k = next_symbol(s, literal), times = 1;
		uint8_t value = (uint8_t)k;

		if (k >= 16) {
			if (k == 16 && at == 0)
				damaged(s, "nothing to repeat");
			value = k == 16 ? length[at - 1] : 0;
			times = k == 16 ? 3 + (int)take(s, 2)
				: k == 17 ? 3 + (int)take(s, 3)
					  : 11 + (int)take(s, 7);
		}
		if (times > n - at)
			damaged(s, "too many codes");
		memset(length + at, value, (size_t)times);
		at += times;
	}
	make_code(s, literal, length, n_literals);
	make_code(s, distance, length + n_literals, n - n_literals);
}

void inflate_all(env *e, const char *path, const uint8_t *in, size_t n_in,
	uint8_t *out, size_t n_out)
{
	stream s = {.e = e, .path = path, .in = in, .n_in = n_in, .out = out,
		.n_out = n_out};
	code literal, distance;
	bool is_last;

	do {
		uint32_t kind;

		is_last = take(&s, 1) != 0;
		kind = take(&s, 2);
		if (kind == 0) {
			copy_stored(&s);
			continue;
		}
		if (kind == 1)
			fixed_codes(&s, &literal, &distance);
		else if (kind == 2)
			read_codes(&s, &literal, &distance);
		else
			damaged(&s, "no such kind of part");
		decode(&s, &literal, &distance);
	} while (!is_last);
	if (s.done != n_out)
		damaged(&s, "it is shorter than the directory says");
}
