/*
 * lex.h: tokens of the notation and of the system text.
 *
 * A text becomes an array of tokens; the last one is LEX_END. Errors are
 * FAMILY.RULE with the source line and a caret, also for a text that stands
 * inside a larger file.
 */
#ifndef NOTATION_LEX_H
#define NOTATION_LEX_H

#include "base/base.h"

/* Deepest expression and deepest nesting of any text. */
enum { IR_MAX_DEPTH = 400 };

typedef enum lex_kind {
	LEX_END,
	LEX_NAME, /* letters, digits, _ and trailing '; with dots if asked */
	LEX_INT,
	LEX_REAL,
	LEX_SYMBOL
} lex_kind;

typedef struct lex_token {
	lex_kind kind;
	const char *at; /* in the text */
	int32_t n;	/* bytes */
	int64_t i;
	uint64_t u; /* LEX_REAL: an integer from 2^63 + 1 to 2^64 - 1, or 0 */
	double f;
} lex_token;

typedef struct lex {
	arena *a;
	const char *family; /* "notation", "system" */
	const char *text;
	size_t n_text;
	loc base; /* where the text begins */
	const lex_token *token;
	int32_t n, next;
	int32_t depth; /* of the parser that reads it: lex_enter */
} lex;

/* text is borrowed */
lex *lex_new(arena *a, const char *family, const char *text, size_t n, loc base,
	bool dotted);

static inline const lex_token *lex_peek(const lex *l)
{
	return &l->token[l->next];
}
/* the one after the next; LEX_END at the end */
const lex_token *lex_peek2(const lex *l, int32_t ahead);
bool lex_is(const lex *l, const char *symbol);	/* symbol or name */
bool lex_is2(const lex *l, int32_t ahead, const char *symbol);
bool lex_eat(lex *l, const char *symbol);	/* takes it if it is next */
void lex_need(lex *l, const char *symbol);	/* throws if it is not */
const lex_token *lex_take(lex *l);
const char *lex_name(lex *l, const char *what); /* copied; throws */
int64_t lex_int(lex *l, const char *what);	/* with sign */
/* An integer of dtype t: for u64 the bits. Throws if t does not hold it. */
int64_t lex_int_of(lex *l, tn_dtype t);
static inline int64_t lex_minus(int64_t v)
{
	return (int64_t)(0 - (uint64_t)v);
}
loc lex_loc(const lex *l, const lex_token *t);
bool lex_same(const lex_token *t, const char *s);

/* Nesting of the parser: throws FAMILY.depth beyond the bound. */
void lex_enter(lex *l);
static inline void lex_leave(lex *l)
{
	l->depth--;
}

/* Binary operators: which scalar function, how strong. Level 0: none. */
enum { LEX_OR = 1, LEX_AND, LEX_COMPARE, LEX_SUM, LEX_PRODUCT, LEX_UNARY };
typedef struct lex_operator {
	const char *symbol, *fn;
	int32_t level;
} lex_operator;
const lex_operator *lex_operator_next(const lex *l); /* NULL: none is next */
const lex_operator *lex_operator_of(const char *fn); /* NULL: a call */

_Noreturn void lex_fail(const lex *l, const lex_token *at, const char *rule,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* the next token is not what was wanted */
_Noreturn void lex_unexpected(const lex *l, const char *wanted);

#endif
