/*
 * directive.h: a schedule changed by hand, or by a search: functions tree ->
 * tree, each with a precondition that it checks.
 *
 *     loop_variant v = {0};                 the recipe, and nothing else
 *     loop_vary(k, m, &v);                  k: as loop_build made it
 *     loop_neighbours(a, k, &list);         what may be changed of that
 *     v.edit[v.n_edits++] = list.at[i];     another variant
 *
 * A variant is a recipe with a few choices of its own, and directives on the
 * tree that comes out. It is data: the same variant of the same kernel gives
 * the same tree, so kernels that are alike take the same variant.
 */
#ifndef SCHEDULE_DIRECTIVE_H
#define SCHEDULE_DIRECTIVE_H

#include "schedule/schedule.h"

typedef enum directive_kind {
#define DIRECTIVE(id, word, sentence) DIRECT_##id,
#include "schedule/directive.def"
	DIRECT_N
} directive_kind;

typedef struct directive {
	directive_kind kind;
	int32_t node;  /* its number in preorder, over all phases; STREAM: the output */
	int64_t value; /* rows, vectors, elements, lanes; or 0 and 1 */
} directive;

typedef VEC(directive) directives;

/* What it changes: "block", ... */
const char *directive_word(directive_kind k);
/* Is its precondition met? Then the tree may be changed so. */
bool loop_may_direct(loop_kernel *k, const directive *d);
/* Changes the tree; false, and nothing is changed: it may not. */
bool loop_direct(loop_kernel *k, const directive *d);
/* Does every result keep its bits? It does if all sums keep their order. */
bool loop_keeps_bits(loop_kernel *k, const directive *d);
/* All that may be changed of a scheduled tree by one step up or down. */
void loop_neighbours(arena *a, loop_kernel *k, directives *out);

enum { LOOP_MAX_EDITS = 16, LOOP_MAX_VARIANTS = 32 };
typedef struct loop_variant {
	uint32_t without; /* passes: see loop_recipe */
	loop_copies copies;
	bool keeps_bits; /* all of it does: said by who made it */
	int32_t n_edits;
	directive edit[LOOP_MAX_EDITS];
} loop_variant;

/* Recipes beside Tenon's own, i = 0, 1, ..; false: there are no more. */
bool loop_variant_at(int32_t i, loop_variant *out);
/* Used instead of loop_schedule; false: an edit does not fit this kernel. */
bool loop_vary(loop_kernel *k, const machine *m, const loop_variant *v);
/* "without guards; block 3 by 64", for people */
void loop_variant_text(str *out, const loop_variant *v);

#endif
