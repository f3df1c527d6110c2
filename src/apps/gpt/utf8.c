/*
 * utf8.c: turns the bytes that a model writes into characters that can be
 * shown. A character is written as a whole; bytes that are not UTF-8 are
 * replaced.
 *
 *     c3 | a4 61 | ff        -> (nothing), "ä", "a", instead
 */
#include "apps/gpt/train.h"

#include <string.h>

/* Number of bytes of a character that begins with b; 0: no character does. */
static int length_of(uint8_t b)
{
	if (b < 0x80)
		return 1;
	if (b >= 0xc2 && b <= 0xdf)
		return 2;
	if (b >= 0xe0 && b <= 0xef)
		return 3;
	return b >= 0xf0 && b <= 0xf4 ? 4 : 0;
}

/* May the bytes so far begin a character? (Unicode, table 3-7) */
static bool may_be(const uint8_t *b, int n)
{
	if (length_of(b[0]) == 0)
		return false;
	if (n >= 2) {
		uint8_t lo = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
		uint8_t hi = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;

		if (b[1] < lo || b[1] > hi)
			return false;
	}
	for (int i = 2; i < n; i++)
		if (b[i] < 0x80 || b[i] > 0xbf)
			return false;
	return true;
}

/* Replaces the waiting bytes, which are not a character. */
static size_t give_up(train_utf8 *u, const char *instead, char *out)
{
	size_t n = (size_t)u->n;

	if (n > 0 && instead != NULL) {
		n = strlen(instead);
		memcpy(out, instead, n);
	} else {
		memcpy(out, u->at, n);
	}
	u->n = 0;
	return n;
}

size_t train_utf8_push(
	train_utf8 *u, uint8_t byte, const char *instead, char *out)
{
	size_t n = 0;

	u->at[u->n] = byte;
	if (!may_be(u->at, u->n + 1)) {
		n = give_up(u, instead, out); /* the waiting bytes */
		u->at[u->n++] = byte;
		if (!may_be(u->at, 1))
			return n + give_up(u, instead, out + n);
	} else {
		u->n++;
	}
	if (u->n < length_of(u->at[0]))
		return n;
	memcpy(out + n, u->at, (size_t)u->n);
	n += (size_t)u->n;
	u->n = 0;
	return n;
}

size_t train_utf8_end(train_utf8 *u, const char *instead, char *out)
{
	return give_up(u, instead, out);
}
