/*
 * words.h: the words in which GNU C and C99 differ; words.def has them all.
 */
#ifndef TARGET_C_WORDS_H
#define TARGET_C_WORDS_H

#include "base/base.h"

typedef enum c_language {
	C_GNU,
	C_PLAIN /* C99 without extensions, of one lane */
} c_language;

typedef enum c_word {
#define WORD(id, ...) C_WORD_##id,
#include "target/c/words.def"
#undef WORD
	C_N_WORDS
} c_word;

const char *c_word_in(c_language l, c_word w);
/* The word that templates call so, or C_N_WORDS. */
c_word c_word_named(const char *name, size_t n);
/* What a file declares that uses the word, or NULL. */
const char *c_word_declares(c_language l, c_word w);
/* What a file of the language begins with. */
const char *c_words_head(c_language l);

#endif
