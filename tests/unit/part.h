/*
 * part.h: which part of a run over a whole space this is. make check runs one,
 * which the commit chooses; TN_PART, a number, says which, modulo the number of
 * parts. Without it all of them run (make check-long). tools/part.sh is the
 * same for random programs.
 */
#ifndef PART_H
#define PART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* 0 .. parts - 1; -1: all */
static inline int64_t part_now(int64_t parts)
{
	const char *v = getenv("TN_PART");

	return v == NULL || v[0] == '\0'
		? -1
		: (int64_t)(strtoull(v, NULL, 10) % (uint64_t)parts);
}

/* Is number k in this part? Each number is in one of them. */
static inline bool part_has(int64_t parts, int64_t part, int64_t k)
{
	return part < 0 || k % parts == part;
}

#endif
