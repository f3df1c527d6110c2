/*
 * words.c: the table of words.def.
 *
 *     typedef __INT32_TYPE__ i32;        typedef int32_t i32;
 *     __builtin_memcpy(&r, p, 4);        memcpy(&r, p, 4);
 *     -__builtin_inff()                  -INFINITY
 */
#include "target/c/words.h"

static const struct word {
	const char *name, *in[2], *declares;
} words[] = {
#define WORD(id, name, gnu, plain, declares) \
	[C_WORD_##id] = {name, {gnu, plain}, declares},
#include "target/c/words.def"
#undef WORD
};

static const char plain_head[] =
	"#include <math.h>\n"
	"#include <stdint.h>\n"
	"#include <string.h>\n"
	"#define EXPECT(x, likely) (x)\n"
	"#define PREFETCH(at, write, how) ((void)(at))\n";

const char *c_word_in(c_language l, c_word w)
{
	return words[w].in[l];
}

c_word c_word_named(const char *name, size_t n)
{
	int32_t i = 0;

	while (i < C_N_WORDS && (strlen(words[i].name) != n ||
					memcmp(words[i].name, name, n) != 0))
		i++;
	return (c_word)i;
}

const char *c_word_declares(c_language l, c_word w)
{
	return l == C_PLAIN ? words[w].declares : NULL;
}

const char *c_words_head(c_language l)
{
	return l == C_PLAIN ? plain_head : "";
}
