/*
 * local.h: private to program/: what builds programs, for the .tn parser.
 */
#ifndef PROGRAM_LOCAL_H
#define PROGRAM_LOCAL_H

#include "program/program.h"

/* A call that is to be added. */
typedef struct prog_call {
	const ir_row *row;
	int32_t n_args;
	const int32_t *arg; /* values */
	int32_t n_attrs;
	ir_attr *attr; /* kinds are adapted to the row's in place */
	int32_t n_names;	 /* -1: not counted */
	const char *const *name; /* of the results; NULL: they have none yet */
	loc at;
} prog_call;

int32_t prog_add_call(ir_program *p, const prog_call *c);
/*
 * y = row_(x, ...): the row's first result is written where x looks; y is x
 * as it is then. The names are those of the row's results.
 */
void prog_add_in_place(ir_program *p, const prog_call *c);
/* The row; throws tn.unknown_op with the nearest names. */
const ir_row *prog_find_row(const ir_program *p, const char *name, loc at);
/* Is this the row that ir_program_write makes calls of? */
bool prog_is_write(const ir_row *r);
/* A value that call `call` makes (-1 an input). */
int32_t prog_add_value(ir_program *p, const char *name, ir_type type,
	int32_t call, int32_t result, loc at);
/* Value of that name, or -1. */
int32_t prog_find_value(const ir_program *p, const char *name);
/* First free name of the form v0, v1, ... for a value that has none. */
void prog_name_value(ir_program *p, int32_t value);
/* Parameter of the row that is its operand number k; NULL: variadic. */
const ir_param *prog_operand(const ir_row *r, int32_t k);
/* Throws what lowering has against an instance: see bounds.c. */
void ir_check_bounds(ir_table *t, env *e, const ir_inst *p, loc at);

#endif
