/*
 * kernel_texts.h: a file of texts of kernels, of any level that has one:
 *
 *     LEVEL MACHINE
 *     kernel NUMBER NAME { .. }
 *     kernel NUMBER NAME opaque
 *
 * The level reads what stands between the braces. Errors are LEVEL.RULE, with
 * the line and a caret.
 */
#ifndef NOTATION_KERNEL_TEXTS_H
#define NOTATION_KERNEL_TEXTS_H

#include "notation/lex.h"

typedef struct kernel_texts kernel_texts;

/* Throws LEVEL.machine if the file is for another machine. */
kernel_texts *kernel_texts_new(arena *a, const char *level, const char *text,
	size_t n, const char *file, const char *machine);
/*
 * The tokens behind the '{' of kernel `number` of the program, which is called
 * `name`; *at: the word "kernel" before it, for errors. NULL: the file has no
 * text for it.
 */
lex *kernel_texts_open(kernel_texts *f, int32_t number, const char *name,
	const lex_token **at);
/* Has the program, with these names of kernels (NULL: opaque), every kernel that
 * the file has a text for? */
bool kernel_texts_fit(
	const kernel_texts *f, int32_t n, const char *const *name);
/* Throws LEVEL.kernel if a text was for no kernel of the program. */
void kernel_texts_end(kernel_texts *f, int32_t n_kernels);

#endif
