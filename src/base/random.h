/*
 * random.h: the one random number of Tenon: a pure function of key and counter.
 *
 * 24 bits of a 64-bit mix, as a float in [0, 1). The counters of one key walk
 * a Weyl sequence whose start is the mixed key; each value is then mixed by
 * the finaliser of splitmix64 (Steele, Lea, Flood 2014; constants of Stafford,
 * variant 13). Sequences of two keys are the same one from different places,
 * 2^64 places to choose from. Generated code computes the same bits.
 *
 *     base_u01(7, 0) == base_u01(7, 0), and says nothing about base_u01(7, 1)
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t base_mix64(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline float base_u01(int64_t key, int64_t counter)
{
	uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t start = base_mix64((uint64_t)key + golden);
	uint64_t z = base_mix64((uint64_t)counter * golden + start);

	return (float)(int32_t)(z >> 40) * 0x1p-24f;
}

#endif
