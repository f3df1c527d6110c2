/*
 * sha256.h: SHA-256: names for what is the same, and a check for damage.
 *
 *     sha256 h;
 *
 *     sha256_start(&h);
 *     sha256_add(&h, bytes, n);
 *     sha256_end(&h, digest);
 */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include "base/base.h"

typedef struct sha256 {
	uint32_t h[8];
	uint64_t n; /* bytes so far */
	uint8_t block[64];
} sha256;

#define HASH_BYTES 32
#define HASH_HEX (2 * HASH_BYTES)

void sha256_start(sha256 *s);
void sha256_add(sha256 *s, const void *data, size_t n);
/* text with its end, so that ("ab","c") and ("a","bc") differ */
void sha256_add_str(sha256 *s, const char *text);
void sha256_end(sha256 *s, uint8_t out[HASH_BYTES]);
/* the digest as 64 hexadecimal digits */
const char *sha256_hex(arena *a, sha256 *s);

#endif
