/*
 * halves.h: numbers of type f16 for tests, of either sign, between 1/16 and 1.
 */
#ifndef HALVES_H
#define HALVES_H

#include <stdint.h>

static inline void halves_fill(uint16_t *x, int32_t n, uint32_t seed)
{
	for (int32_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (uint16_t)((seed >> 16 & 0x8000) | (0x2c00 + (seed >> 8 & 0xfff)));
	}
}

#endif
