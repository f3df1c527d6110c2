/*
 * parse.h: private to kern/: the state of the parser, and its parts.
 */
#ifndef KERN_PARSE_H
#define KERN_PARSE_H

#include "notation/lex.h"
#include "kern/local.h"

struct kern_parser {
	lex *l;
	kern_kernel *k;
	kern_builder b;
	map *value, *array; /* by name */
	VEC(int32_t) scope; /* by value: number of the block that it is in */
	VEC(bool) open;	    /* by block */
	VEC(int32_t) blocks; /* the open ones */
	/* end of the text whose lines are counted */
	const char *at;
	int32_t line, column;
};

/* parse_value.c */
void kern_parse_place(struct kern_parser *p, const lex_token *t, int32_t *line,
	int32_t *column);
kern_type kern_parse_type(struct kern_parser *p);
tn_dtype kern_parse_dtype(struct kern_parser *p);
kern_val kern_parse_value(struct kern_parser *p);
const kern_form *kern_parse_form(struct kern_parser *p);
int32_t kern_parse_array(struct kern_parser *p);
kern_access kern_parse_access(struct kern_parser *p, bool all);
int64_t kern_parse_int(
	struct kern_parser *p, int64_t lo, int64_t hi, const char *what);
/* An instruction, whose result has type t. */
kern_val kern_parse_ins(struct kern_parser *p, kern_type t);
/* A value, or an instruction; t NULL: its type is in front of it. */
kern_val kern_parse_right(struct kern_parser *p, const kern_type *t);
/* %NAME, which is defined here; kern_parse_know makes it visible. */
const lex_token *kern_parse_name(struct kern_parser *p);
void kern_parse_know(struct kern_parser *p, const lex_token *name, kern_val v);

/* parse.c */
void kern_parse_body(struct kern_parser *p); /* one statement */
/* Parses from behind '{' to '}' into k, which is empty. */
void kern_parse_kernel(lex *l, kern_kernel *k);

#endif
