/*
 * parse.h: reading .tn text: tokens, types and errors (program_lex.c),
 * which programs are made of (program_parse.c).
 */
#ifndef PROGRAM_PARSE_H
#define PROGRAM_PARSE_H

#include "program/local.h"

typedef enum token_kind {
	T_END,
	T_NAME,
	T_INT,
	T_REAL,
	T_STRING,
	T_SYMBOL /* one character */
} token_kind;

typedef struct token {
	token_kind kind;
	const char *at;
	size_t n;
	loc where;
	int64_t i;
	double f;
} token;

typedef struct parser {
	arena *a;
	env *e;
	const char *file, *text, *end;
	const char *p; /* after `next` */
	int32_t line;
	const char *line_start;
	token next;
	ir_program *prog;	/* or the body of a loop in it */
	ir_loop_run *run;	/* of loops */
	ir_loop *loop;		/* whose body is read, or NULL */
	int32_t depth;		/* of loops in loops */
} parser;

enum { MAX_NAME = 200, MAX_NUMBER = 400, MAX_LIST = 1 << 20, MAX_DEPTH = 16 };

_Noreturn void parse_fail(parser *s, loc at, const char *rule,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* [tn.syntax] wanted: "an extent" */
_Noreturn void parse_unexpected(parser *s, const char *wanted);
/*
 * Calls fn; adds line and caret to errors of rows and instances, which do not
 * know them.
 */
void parse_with_source(parser *s, void (*fn)(void *), void *arg, loc at);

/* The place of a character of the text in the line that is read. */
loc parse_here(const parser *s, const char *p);
void parse_new_line(parser *s, const char *start);
void parse_skip_blank(parser *s);
/* Reads the next token into s->next. */
void parse_advance(parser *s);
bool token_is(const token *t, const char *word);
bool parse_at(const parser *s, char c);
bool parse_eat(parser *s, char c);
void parse_need(parser *s, char c);
/* A name that is not reserved. */
char *parse_name(parser *s, const char *wanted);
/* inf, nan, true, false and numbers; is_int: an integer or a truth value */
bool parse_literal(parser *s, bool *is_int, int64_t *i, double *f);
tn_dtype parse_dtype(parser *s);
/* "f32[2,3]"; "f32" and "f32[]" have rank 0 */
ir_type parse_type(parser *s);

#endif
