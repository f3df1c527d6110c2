/*
 * bpe_file.c: reads and writes a vocabulary, a file next to the weights.
 *
 *     {
 *     "format": "tenon byte pairs 1",
 *     "merges": [
 *     [116, 104],
 *     [256, 101]
 *     ]
 *     }
 *
 * Tokens 0 .. 255 are bytes; 256 + i is merges[i]: two earlier tokens, one
 * after the other. The file is not trusted: its size and every number are
 * checked, and it may contain nothing else.
 */
#define _POSIX_C_SOURCE 200809L
#include "apps/gpt/bpe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "tenon byte pairs 1"

enum { MOST = 2 << 20 }; /* bytes of a file */

static tn_status wrong(
	tn_context *c, const char *path, int32_t line, const char *what)
{
	return tn_at_fail(path, line, c, TN_EINVAL, "train.vocab", "%s", what);
}

/* ---- reading ---- */

typedef struct reader {
	const char *at; /* the rest of the text, which ends with a zero */
	int32_t line;
} reader;

static void skip(reader *r)
{
	for (; *r->at == ' ' || *r->at == '\n' || *r->at == '\t' ||
		*r->at == '\r'; r->at++)
		r->line += *r->at == '\n';
}

/* Skips `what` if the text continues with it; returns whether it does. */
static bool take(reader *r, const char *what)
{
	size_t n = strlen(what);

	skip(r);
	if (strncmp(r->at, what, n) != 0)
		return false;
	r->at += n;
	return true;
}

/* Reads a number; -1: there is none, or it is too large. */
static int64_t number(reader *r)
{
	int64_t v = 0;
	int n = 0;

	skip(r);
	for (; r->at[n] >= '0' && r->at[n] <= '9' && n < 7; n++)
		v = 10 * v + (r->at[n] - '0');
	r->at += n;
	return n > 0 && n < 7 ? v : -1;
}

static const char *merges(train_bpe *b, reader *r)
{
	if (take(r, "]"))
		return NULL;
	do {
		const char *bad;
		int64_t left = -1, right = -1;

		if (take(r, "["))
			left = number(r);
		if (left >= 0 && take(r, ","))
			right = number(r);
		if (right < 0 || !take(r, "]"))
			return "expected a pair of numbers, such as "
			       "[116, 104]";
		bad = bpe_add(b, left, right);
		if (bad != NULL)
			return bad;
	} while (take(r, ","));
	return take(r, "]") ? NULL : "expected ',' or ']'";
}

static const char *parse(train_bpe *b, reader *r)
{
	const char *bad;

	if (!take(r, "{") || !take(r, "\"format\"") || !take(r, ":") ||
		!take(r, "\"" FORMAT "\""))
		return "this is not a vocabulary of tenon train";
	if (!take(r, ",") || !take(r, "\"merges\"") || !take(r, ":") ||
		!take(r, "["))
		return "expected \"merges\": [";
	bad = merges(b, r);
	if (bad != NULL)
		return bad;
	if (!take(r, "}"))
		return "expected '}'";
	skip(r);
	return *r->at == '\0' ? NULL : "something follows the end";
}

/*
 * Reads a whole file and appends a zero; NULL: failed, and the error is
 * reported.
 */
static char *slurp(tn_context *c, const char *path)
{
	FILE *f = fopen(path, "r");
	char *text;
	size_t n;

	if (f == NULL) {
		tn_at_fail(path, 0, c, TN_EIO, "train.vocab",
			"the vocabulary cannot be opened: %s", strerror(errno));
		return NULL;
	}
	text = malloc(MOST + 1);
	n = text != NULL ? fread(text, 1, MOST + 1, f) : 0;
	if (text == NULL)
		bpe_no_memory(c);
	else if (ferror(f) != 0)
		tn_at_fail(path, 0, c, TN_EIO, "train.vocab",
			"the vocabulary cannot be read: %s", strerror(errno));
	else if (n > MOST || memchr(text, 0, n) != NULL)
		wrong(c, path, 0, "this is not a vocabulary of tenon train");
	else
		text[n] = '\0';
	fclose(f);
	if (tn_context_status(c) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

tn_status train_bpe_read(train_bpe **out, tn_context *c, const char *path)
{
	char *text = slurp(c, path);
	train_bpe *b = text != NULL ? bpe_new() : NULL;
	reader r = {text, 1};
	const char *bad;

	*out = NULL;
	if (b == NULL) {
		free(text);
		return text != NULL ? bpe_no_memory(c) : tn_context_status(c);
	}
	bad = parse(b, &r);
	free(text);
	if (bad == NULL) {
		*out = b;
		return TN_OK;
	}
	train_bpe_free(b);
	return wrong(c, path, r.line, bad);
}

/* ---- writing ---- */

static bool put_all(const train_bpe *b, FILE *f)
{
	fprintf(f, "{\n\"format\": \"" FORMAT "\",\n\"merges\": [");
	for (int32_t i = 256; i < b->vocab; i++)
		fprintf(f, "%s\n[%" PRIu32 ", %" PRIu32 "]",
			i > 256 ? "," : "", b->merge[i] >> 16,
			b->merge[i] & 0xffff);
	fprintf(f, "\n]\n}\n");
	return fflush(f) == 0 && ferror(f) == 0 && fsync(fileno(f)) == 0;
}

tn_status train_bpe_write(
	const train_bpe *b, tn_context *c, const char *path)
{
	size_t n = strlen(path) + sizeof ".tmp";
	char *beside = malloc(n);
	FILE *f;
	bool ok;

	if (beside == NULL)
		return bpe_no_memory(c);
	snprintf(beside, n, "%s.tmp", path);
	f = fopen(beside, "w");
	ok = f != NULL && put_all(b, f);
	if (f != NULL)
		ok = fclose(f) == 0 && ok;
	if (ok)
		ok = rename(beside, path) == 0;
	if (!ok) {
		int error = errno;

		(void)unlink(beside);
		tn_at_fail(path, 0, c, TN_EIO, "train.vocab",
			"the vocabulary cannot be written: %s",
			strerror(error));
	}
	free(beside);
	return tn_context_status(c);
}
