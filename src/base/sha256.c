/*
 * sha256.c: SHA-256 (FIPS 180-4), written from the standard.
 *
 * Its hashes name the objects in the cache, and detect damage in them and in
 * checkpoints. The constants are the first 32 bits of the fractions of cube and
 * square roots of primes.
 */
#include "base/sha256.h"

static const uint32_t K[64] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
	0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138,
	0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624,
	0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
	0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f,
	0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* A round; what it does not change is in the next one under another letter. */
static inline void one(uint32_t a, uint32_t b, uint32_t c, uint32_t *d,
	uint32_t e, uint32_t f, uint32_t g, uint32_t *h, uint32_t add)
{
	uint32_t t = *h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
		     ((e & f) ^ (~e & g)) + add;

	*d += t;
	*h = t + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
	     ((a & b) ^ (a & c) ^ (b & c));
}

static void mix(uint32_t s[8], const uint8_t *p)
{
	uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5],
		 g = s[6], h = s[7], w[64];
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (; i < 64; i++) {
		uint32_t x = w[i - 15], y = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] +
		       (turn(x, 7) ^ turn(x, 18) ^ x >> 3) +
		       (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
	}
	for (i = 0; i < 64; i += 8) {
		one(a, b, c, &d, e, f, g, &h, K[i] + w[i]);
		one(h, a, b, &c, d, e, f, &g, K[i + 1] + w[i + 1]);
		one(g, h, a, &b, c, d, e, &f, K[i + 2] + w[i + 2]);
		one(f, g, h, &a, b, c, d, &e, K[i + 3] + w[i + 3]);
		one(e, f, g, &h, a, b, c, &d, K[i + 4] + w[i + 4]);
		one(d, e, f, &g, h, a, b, &c, K[i + 5] + w[i + 5]);
		one(c, d, e, &f, g, h, a, &b, K[i + 6] + w[i + 6]);
		one(b, c, d, &e, f, g, h, &a, K[i + 7] + w[i + 7]);
	}
	s[0] += a, s[1] += b, s[2] += c, s[3] += d;
	s[4] += e, s[5] += f, s[6] += g, s[7] += h;
}

void sha256_start(sha256 *s)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
		0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memset(s, 0, sizeof *s);
	memcpy(s->h, start, sizeof start);
}

void sha256_add(sha256 *s, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n > 0) {
		size_t have = (size_t)(s->n % 64);
		size_t take = 64 - have < n ? 64 - have : n;

		if (take == 64) {
			mix(s->h, p);
		} else {
			memcpy(s->block + have, p, take);
			if (have + take == 64)
				mix(s->h, s->block);
		}
		s->n += take;
		p += take;
		n -= take;
	}
}

void sha256_add_str(sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

void sha256_end(sha256 *s, uint8_t out[HASH_BYTES])
{
	static const uint8_t pad[64] = {0x80};
	uint64_t bits = s->n * 8;
	size_t have = (size_t)(s->n % 64);
	uint8_t length[8];
	int i;

	sha256_add(s, pad, have < 56 ? 56 - have : 120 - have);
	for (i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(s, length, 8);
	for (i = 0; i < HASH_BYTES; i++)
		out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

const char *sha256_hex(arena *a, sha256 *s)
{
	uint8_t d[HASH_BYTES];
	char *hex = arena_array(a, char, HASH_HEX + 1);
	int i;

	sha256_end(s, d);
	for (i = 0; i < HASH_BYTES; i++) {
		hex[2 * i] = "0123456789abcdef"[d[i] >> 4];
		hex[2 * i + 1] = "0123456789abcdef"[d[i] & 15];
	}
	return hex;
}
