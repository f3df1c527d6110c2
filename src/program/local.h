/*
 * local.h: private to program/: functions that build programs.
 */
#ifndef PROGRAM_LOCAL_H
#define PROGRAM_LOCAL_H

#include "program/program.h"
#include "system/lower.h"

/* A call to add. */
typedef struct prog_call {
	const ir_row *row;
	int32_t n_args;
	const int32_t *arg; /* values */
	int32_t n_attrs;
	ir_attr *attr; /* converted in place to the kinds of the row */
	int32_t n_names;	 /* -1: not checked */
	const char *const *name; /* of the results, or NULL */
	loc at;
} prog_call;

/* ---- call.c ---- */

int32_t prog_add_call(ir_program *p, const prog_call *c);
/*
 * y = row_(x, ...): writes the first result of the row through the view x; y is
 * the new version of x. c->name names the results of the row.
 */
void prog_add_in_place(ir_program *p, const prog_call *c);
/* The parameter for operand k of the row; NULL if the row is variadic. */
const ir_param *prog_operand(const ir_row *r, int32_t k);

/* ---- program.c ---- */

/* The row of that name; else throws tn.unknown_op with similar names. */
const ir_row *prog_find_row(const ir_program *p, const char *name, loc at);
/* Is this the row `write`, which ir_program_write calls? */
bool prog_is_write(const ir_row *r);
/* Adds result number `result` of a call; call -1: an input. */
int32_t prog_add_value(ir_program *p, const char *name, ir_type type,
	int32_t call, int32_t result, loc at);
/* The value of that name, or -1. */
int32_t prog_find_value(const ir_program *p, const char *name);
/* Gives a value without a name the first free one of v0, v1, ... */
void prog_name_value(ir_program *p, int32_t value);
/* Adds the call and a value for each result. */
void prog_add_results(ir_program *p, ir_call *call, const char *const *name);

/* ---- match.c ---- */

/* Drops the axes of a reduction whose index a condition compares with data. */
void prog_match(leq *c, sys_eqn *e);

/* ---- bounds.c ---- */

/* Throws the error that lowering this instance would throw: see bounds.c. */
void ir_check_bounds(ir_table *t, env *e, const ir_inst *p, loc at);

#endif
