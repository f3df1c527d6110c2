/*
 * inflate.h: DEFLATE (RFC 1951), as .npz files have it.
 *
 *     inflate_all(e, "x.npz", in, n_in, out, n_out);
 *
 * Fills all of out; throws TN_EIO [npz.deflate] when the stream is damaged or
 * holds more or less than n_out bytes.
 */
#ifndef FILE_INFLATE_H
#define FILE_INFLATE_H

#include "base/base.h"

void inflate_all(env *e, const char *path, const uint8_t *in, size_t n_in,
	uint8_t *out, size_t n_out);

#endif
