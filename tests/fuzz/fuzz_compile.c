/*
 * fuzz_compile.c: any bytes as a program, through tenon.h and every level up
 * to C text. Either it is refused with a rule, a sentence and a place, or all
 * levels are there and the program level reads back. Never the library's own
 * fault: TN_EINTERNAL is a finding.
 *
 * Sizes are bounded only by what the reader accepts: no level allocates by
 * the size of a tensor.
 */
#define _GNU_SOURCE /* memmem */
#include "fuzz.h"

#include <tenon.h>

#include <string.h>

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static void refused(const tn_context *c, tn_status s)
{
	const tn_diag *d = tn_context_diag(c);

	check(s == TN_EINVAL || s == TN_ENOMEM);
	check(d->status == s && d->rule[0] != '\0' && d->text[0] != '\0');
}

static void reads_back(tn_context *c, const char *text)
{
	tn_program *p;
	char *again;

	check(tn_program_parse(&p, c, text, strlen(text), "again") == TN_OK);
	check(tn_program_explain(&again, p, TN_LEVEL_PROGRAM, 0) == TN_OK);
	check(!strcmp(text, again));
	tn_text_free(again);
	tn_program_free(p);
}

/* Golden files are programs up to the line before what is printed. */
static size_t program_bytes(const uint8_t *bytes, size_t n)
{
	static const char mark[] = "\n# >>>\n";
	const void *at = memmem(bytes, n, mark, sizeof mark - 1);

	return at != NULL ? (size_t)((const uint8_t *)at - bytes) + 1 : n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	tn_context *c;
	tn_program *p;
	tn_status s = TN_OK;

	n = program_bytes(bytes, n);
	check(tn_context_new(&c, NULL) == TN_OK);
	s = tn_program_parse(&p, c, (const char *)bytes, n, "fuzz.tn");
	if (s < 0) {
		refused(c, s);
		check(!strcmp(tn_context_diag(c)->file, "fuzz.tn"));
	}
	for (int level = 0; s == TN_OK && level <= TN_LEVEL_C; level++) {
		char *text;

		s = tn_program_explain(&text, p, (tn_level)level, 0);
		if (s < 0)
			refused(c, s);
		else if (level == TN_LEVEL_PROGRAM)
			reads_back(c, text);
		tn_text_free(text);
	}
	tn_program_free(p);
	tn_context_free(c);
	return 0;
}
