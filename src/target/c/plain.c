/*
 * plain.c: C99 without extensions: the text of a unit that has one lane and fuses
 * nothing, in words of the standard.
 *
 *     typedef __INT32_TYPE__ i32;        typedef int32_t i32;
 *     __builtin_memcpy(&r, p, 4);        memcpy(&r, p, 4);
 *     -__builtin_inff()                  -INFINITY
 *     #if defined(__F16C__) .. #else     what is behind #else
 *
 * The printer has no other words of GNU C where there are no vectors: what is left
 * is a bug, and found here.
 */
#include "target/c/text.h"

static const struct word {
	const char *gnu, *c99;
	const char *declares; /* a function of libm that may be called; or NULL */
} words[] = {
	{"__INT8_TYPE__", "int8_t", NULL},
	{"__INT16_TYPE__", "int16_t", NULL},
	{"__INT32_TYPE__", "int32_t", NULL},
	{"__INT64_TYPE__", "int64_t", NULL},
	{"__UINT8_TYPE__", "uint8_t", NULL},
	{"__UINT16_TYPE__", "uint16_t", NULL},
	{"__UINT32_TYPE__", "uint32_t", NULL},
	{"__UINT64_TYPE__", "uint64_t", NULL},
	{"__UINTPTR_TYPE__", "uintptr_t", NULL},
	{"__INT64_MAX__", "INT64_MAX", NULL},
	{"__attribute__((always_inline, unused))", "", NULL},
	{"__attribute__((noinline, cold))", "", NULL},
	{"__builtin_memcpy", "memcpy", NULL},
	{"__builtin_inff()", "INFINITY", NULL},
	{"__builtin_inf()", "(double)INFINITY", NULL},
	{"__builtin_nanf(\"\")", "NAN", NULL},
	{"__builtin_nan(\"\")", "(double)NAN", NULL},
	{"__builtin_expect", "EXPECT", NULL},
	{"__builtin_prefetch", "PREFETCH", NULL},
	/* of `mad`, which does not call it where nothing is fused */
	{"__builtin_fmaf", "fmaf", NULL},
	{"__builtin_fma", "fma", NULL},
	{"__builtin_fabsf", "fabsf", NULL},
	{"__builtin_copysignf", "copysignf", NULL},
	{"__builtin_sqrtf", "sqrtf", "extern float sqrtf(float);\n"},
	{"__builtin_sqrt", "sqrt", "extern double sqrt(double);\n"},
};
enum { N_WORDS = sizeof words / sizeof words[0] };

static const char head[] =
	"#include <math.h>\n"
	"#include <stdint.h>\n"
	"#include <string.h>\n"
	"#define EXPECT(x, likely) (x)\n"
	"#define PREFETCH(at, write, how) ((void)(at))\n";

/*
 * Behind a line of `#if` about the compiler: the part that holds without it, behind
 * #else. The `#endif` of that part is passed over by the caller.
 */
static const char *otherwise(const char *s)
{
	static const char word[] = "\n#else\n";
	const char *at = strstr(s, word);

	return at != NULL ? at + sizeof word - 1 : s + strlen(s);
}

static bool is_line(const char *s, const char *begin, const char *text)
{
	return (s == begin || s[-1] == '\n') &&
	       strncmp(s, text, strlen(text)) == 0;
}

/* Is it a condition on what only a compiler defines? */
static bool asks_compiler(const char *s)
{
	const char *end = strchr(s, '\n'), *at = strstr(s, "__");

	return at != NULL && (end == NULL || at < end);
}

/* The same without conditions on the compiler. */
static const char *unconditional(arena *a, const char *text)
{
	str s = str_new(a);
	bool inside = false;

	for (const char *p = text; *p != '\0';) {
		if (is_line(p, text, "#if ") && asks_compiler(p)) {
			p = otherwise(p);
			inside = true;
		} else if (inside && is_line(p, text, "#endif\n")) {
			p += strlen("#endif\n");
			inside = false;
		} else {
			str_addc(&s, *p++);
		}
	}
	return s.at != NULL ? s.at : "";
}

/* The longest word that the text begins with, or -1. */
static int32_t word_at(const char *s)
{
	int32_t best = -1;

	for (int32_t i = 0; i < N_WORDS; i++)
		if (strncmp(s, words[i].gnu, strlen(words[i].gnu)) == 0 &&
			(best < 0 || strlen(words[i].gnu) >
					     strlen(words[best].gnu)))
			best = i;
	return best;
}

void c_plain_text(str *out, const char *text)
{
	bool used[N_WORDS] = {false};
	str body = str_new(out->a);

	text = unconditional(out->a, text);
	for (const char *s = text; *s != '\0';) {
		int32_t i = *s == '_' && s[1] == '_' ? word_at(s) : -1;

		if (i < 0) {
			str_addc(&body, *s++);
			continue;
		}
		used[i] = true;
		str_add(&body, words[i].c99);
		s += strlen(words[i].gnu);
	}
	if (strstr(body.at, "__") != NULL)
		env_bug(arena_env(out->a), "target/c/plain",
			"a word that C99 does not have: %.60s",
			strstr(body.at, "__"));
	str_add(out, head);
	for (int32_t i = 0; i < N_WORDS; i++)
		if (used[i] && words[i].declares != NULL)
			str_add(out, words[i].declares);
	str_add(out, body.at);
}
