/*
 * program.h: the door of program/: named calls of rows on values, their views,
 * the .tn text, and the way to a system of equations.
 *
 *   .tn text -> ir_program -> (ir_instantiate each call) -> ir_system
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "system/system.h"

/* ---- programs ------------------------------------------------------------ */

typedef struct ir_value {
	const char *name;
	const char *shown; /* what the user calls it; NULL: nothing */
	ir_type type;
	int32_t call;	/* -1: input */
	int32_t result; /* which result of the call */
	bool is_param;	/* input whose memory ends with its newest version */
	int32_t next_version; /* made by a write; -1: none */
	bool apart; /* is never one with a value that is equal */
	bool steady; /* input that stays as it is from run to run, mostly */
	loc at;
} ir_value;

typedef struct ir_call {
	const ir_row *row;
	int32_t n_args;
	const int32_t *arg; /* values */
	int32_t n_attrs;
	const ir_attr *attr; /* only those given */
	int32_t n_results;
	const int32_t *result; /* values */
	const ir_inst *inst;
	int32_t view; /* of a write: through which it was asked for; else -1 */
	loc at;
} ir_call;

typedef struct ir_program {
	arena *a;
	ir_table *table;
	VEC(ir_value) value;
	VEC(ir_call) call;
	VEC(int32_t) input, output;
	map *name;	   /* private: values by name */
	int32_t next_name; /* private: number of the next v0, v1, ... */
} ir_program;

ir_program *ir_program_new(arena *a, ir_table *t);
/* name NULL: it has none, and messages call it by the operand that it is */
int32_t ir_program_input(ir_program *p, const char *name, ir_type type, loc at);
/* Instantiates; result names may be NULL (then v0, v1, ...). Returns the call. */
int32_t ir_program_call(ir_program *p, const char *row, int32_t n_args,
	const int32_t *arg, int32_t n_attrs, const ir_attr *attr,
	const char *const *result_name, loc at);
void ir_program_output(ir_program *p, int32_t value);
/* As an input, and writable: at the end its memory holds its newest version. */
int32_t ir_program_param(ir_program *p, const char *name, ir_type type, loc at);
/* The newest version of a value, itself if it never was written. */
int32_t ir_program_newest(const ir_program *p, int32_t value);
/*
 * A call of an instance that is at hand already; of no row of the table, too.
 * name: of the results, NULL: v0, v1, ... Returns the call.
 */
int32_t ir_program_inst(ir_program *p, const ir_inst *inst, int32_t n_args,
	const int32_t *arg, const char *const *name, loc at);
/*
 * v = write(view, value): the next version of what view is a view of (through
 * calls that are views, down to an input or another call's result), with the
 * elements of the view replaced. Errors: [write.shape] [write.version] a
 * version has one next; [write.repeats] an element of the view is not an element of its own.
 */
int32_t ir_program_write(ir_program *p, int32_t view, int32_t value,
	const char *name, loc at);

/* ---- views (view.c) ---- */

/* Each result has one equation =, whose body is one bare read of operand 0. */
bool ir_inst_is_view(const ir_inst *p);
/* Its only result has the elements of operand 0, in their places. */
bool ir_inst_is_copy(const ir_inst *p);
/* Of a view: result r alone, as an instance. */
ir_inst *ir_view_part(arena *a, const ir_inst *p, int32_t r);
/*
 * From a place in result r of the view, by axis, forms over d, to the place in
 * operand 0 that it reads. fun[t]: id for data read from tensor t of the
 * instance. below has room for max(2, its rank).
 */
void ir_view_place(ix *x, const ix_dom *d, const ir_inst *view, int32_t r,
	const int64_t *fun, const ix_form *const *at, const ix_form **below);

/* .tn text: `op` rows, then program { ... }. Throws tn.* with a caret. */
ir_program *ir_program_parse(arena *a, const char *text, size_t n,
	const char *file);
/*
 * One call on types: "softmax(f32[2,3], axis=1)", of the rows of t. The name
 * alone: NULL, and *row is set in both cases. Throws as the above.
 */
const ir_inst *ir_call_parse(arena *a, ir_table *t, const char *text, size_t n,
	const ir_row **row);
void ir_program_print(str *out, const ir_program *p); /* parse(print(p)) = p */
/* The same with comments: note adds whole lines, "  // forward\n", that stand
 * in front of the call which makes this value, or of this input. */
typedef void ir_note(void *arg, str *out, int32_t value);
void ir_program_print_notes(
	str *out, const ir_program *p, ir_note *note, void *arg);
/* Another name for a value; where that is taken, it keeps its own. */
void ir_program_rename(ir_program *p, int32_t value, const char *name);
void ir_program_verify(const ir_program *p);

/* Equations of all calls in pull form, simplified, dead ones removed. */
ir_system *ir_lower(arena *a, ix *x, const ir_program *p);

#endif
