/*
 * local.h: private to system/: what its files share.
 */
#ifndef SYSTEM_LOCAL_H
#define SYSTEM_LOCAL_H

#include "notation/lex.h"
#include "system/system.h"

/* The expression table behind ir_system.intern. */
typedef struct ex_table {
	map *index; /* key of a node -> its id */
	VEC(const expr *) node;
	map *name;	/* names of tensors -> number */
	int32_t *stamp; /* by id: last visit that saw it */
	int32_t n_stamp, visit;
	VEC(ex_reads) reads;   /* by id, as far as asked; at NULL: not listed */
} ex_table;

static inline ex_table *ir_exprs(const ir_system *s)
{
	return s->intern;
}

/* Starts a visit; ex_first is true when it meets a node for the first time. */
void ex_visit(ir_system *s);
bool ex_first(ir_system *s, const expr *e);

/* The axes, of the first n, that its reads walk. */
uint32_t ex_axes(ir_system *s, const expr *e, int32_t n);

/* lo <= f < hi; a constant if the range of f decides it */
const expr *ir_inside_simple(ir_system *s, const ix_dom *d, const ix_form *f,
	int64_t lo, int64_t hi);
/* ex_call; drops constant operands of and, or */
const expr *ir_call_simple(ir_system *s, int32_t fn, const expr *const *arg);

/* e where the condition `what` is known; simplified */
const expr *ex_decided(
	ir_system *s, const expr *e, const expr *what, bool truth);

/* "x0 + y0" over EX_PARAM 0.. and 3..; acc[k] is the dtype of xk and yk */
const expr *sys_parse_params(ir_system *s, const char *text, size_t n,
	int32_t n_comp, const tn_dtype *acc);

/* expr_parse.c: the lexer, and the names that are visible */
typedef struct sys_parser {
	lex *l;
	ir_system *s;
	ir_scope in;
} sys_parser;

void sys_fail_if(sys_parser *p, bool bad, const lex_token *at,
	const char *rule, const char *what);
int32_t sys_find_tensor(sys_parser *p, const lex_token *t);
tn_dtype sys_parse_dtype(sys_parser *p);
const ix_form *sys_parse_form(sys_parser *p);
const expr *sys_parse_expr(sys_parser *p);

/* ir_system_verify that fails with `status`, for systems read from a text */
void sys_check(ir_system *s, tn_status status);

#endif
