/*
 * program.h: interface of program/: a program is a list of calls of rows on
 * values; it is read from and printed as .tn text, and lowered to a system.
 *
 *   .tn text -> ir_program -> (ir_instantiate each call) -> ir_system
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "system/system.h"

/* ---- programs ------------------------------------------------------------ */

typedef struct ir_value {
	const char *name;
	const char *shown; /* the name for messages, or NULL */
	ir_type type;
	int32_t call;	/* -1: input */
	int32_t result; /* which result of the call */
	bool is_param;	/* an input whose memory holds its newest version at the end */
	int32_t next_version; /* the value that a write made of it, or -1 */
	bool apart; /* is not merged with an equal value */
	bool again; /* computed once more, so that memory is free in between: none
		     * of the equations of its call is merged */
	bool steady; /* an input that mostly keeps its elements from run to run */
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
	int32_t view; /* of a write: the view that the user wrote through; else -1 */
	loc at;
} ir_call;

typedef struct ir_program {
	arena *a;
	ir_table *table;
	VEC(ir_value) value;
	VEC(ir_call) call;
	VEC(int32_t) input, output;
	map *name;	   /* private: name -> value */
	int32_t next_name; /* private: number of the next v0, v1, ... */
	bool in_rounds;	   /* it is computed in each round of a loop */
} ir_program;

ir_program *ir_program_new(arena *a, ir_table *t);
/* name NULL: messages describe it as an operand of its call */
int32_t ir_program_input(ir_program *p, const char *name, ir_type type, loc at);
/* Adds a call of a row; result_name NULL: v0, v1, ... Returns its number. */
int32_t ir_program_call(ir_program *p, const char *row, int32_t n_args,
	const int32_t *arg, int32_t n_attrs, const ir_attr *attr,
	const char *const *result_name, loc at);
void ir_program_output(ir_program *p, int32_t value);
/* Adds a writable input: at the end its memory holds its newest version. */
int32_t ir_program_param(ir_program *p, const char *name, ir_type type, loc at);
/* The newest version of a value; the value itself if it was never written. */
int32_t ir_program_newest(const ir_program *p, int32_t value);
/*
 * Adds a call of an instance, whose row need not be in the table. name: of the
 * results; NULL: v0, v1, ... Returns the call's number.
 */
int32_t ir_program_inst(ir_program *p, const ir_inst *inst, int32_t n_args,
	const int32_t *arg, const char *const *name, loc at);
/*
 * v = write(view, value): the next version of the value that view is a view of
 * (followed through all calls that are views), with the elements of the view
 * replaced. Errors: [write.shape]; [write.version] that version was written
 * before; [write.repeats] two elements of the view are the same element.
 */
int32_t ir_program_write(ir_program *p, int32_t view, int32_t value,
	const char *name, loc at);

/* ---- loops (loop.c) ---- */

/*
 * A call whose results a loop computes. Operands: the first values of what is
 * carried; rows [n, ..], of which round i gets row i; then what is the same in
 * every round. Results: what is carried, at the end; rows [n, ..], of which round
 * i makes row i. The body has an input for each operand, in order, and an output
 * for each result. With a test it is a `while`, or, of one round, an `if`.
 */
typedef struct ir_loop {
	ir_program *body; /* without params */
	int64_t n; /* rounds, at least 1; with a test at most so many */
	int32_t n_carried, n_rows, n_same, n_out;
	/* 1 + the carried value, one bool or integer, that is not 0 before each
	 * round: with 0 the loop ends; then it makes no rows. 0: no test */
	int32_t test;
} ir_loop;
/* Runs it without compiled code: interp_loop. */
typedef void ir_loop_run(env *e, const struct ir_opaque *self,
	const ir_type *in_type, const void *const *in, const ir_type *out_type,
	void *const *out, const int64_t *attr);
/*
 * Adds the call; returns its number. l is kept. name: of the results, or NULL.
 * Errors: [tn.loop] operands or results do not fit the body; more than
 * IR_MAX_OPERANDS or IR_MAX_OUT of them; [tn.extent] a result is too large.
 */
int32_t ir_program_loop(ir_program *p, const ir_loop *l, ir_loop_run *run,
	int32_t n_args, const int32_t *arg, const char *const *name, loc at);
/* The loop that computes the instance, or NULL. */
const ir_loop *ir_loop_of(const ir_inst *p);
/* Number of points of all its equations, in all rounds; at most `most` + 1. */
int64_t ir_inst_points(const ir_inst *p, int64_t most);

/* ---- views (view.c) ---- */

/* Is each result one equation "=" whose body is a read of operand 0? */
bool ir_inst_is_view(const ir_inst *p);
/* Is its only result equal to operand 0? */
bool ir_inst_is_copy(const ir_inst *p);
/* The operand whose elements result r has, each in its place (a sum of one term
 * counts: it has +0 for -0), or -1. */
int32_t ir_inst_passes(const ir_inst *p, int32_t r);
/* An instance of a view that has only result r. */
ir_inst *ir_view_part(arena *a, const ir_inst *p, int32_t r);
/*
 * rows.c: the sum of result r over n rows: operands with is_row have an axis of
 * n in front. operand[i]: which operand of p operand i of it is (room for all).
 * NULL: there is none, or it would keep rows as large as the result.
 */
ir_inst *ir_inst_sum_rows(arena *a, const ir_inst *p, int32_t r,
	const bool *is_row, int64_t n, int32_t *operand);
/*
 * Maps an index of result r of the view (a form over d for each axis) to the
 * index of operand 0 that it reads, `below`, which has room for max(2, rank of
 * operand 0). fun[t]: id for data read from tensor t of the instance.
 */
void ir_view_place(ix *x, const ix_dom *d, const ir_inst *view, int32_t r,
	const int64_t *fun, const ix_form *const *at, const ix_form **below);

/* .tn text: `op` rows, then program { ... }; run: of its loops (interp_loop).
 * Throws tn.* with a caret. */
ir_program *ir_program_parse(arena *a, const char *text, size_t n,
	const char *file, ir_loop_run *run);
/*
 * Parses a call on types, "softmax(f32[2,3], axis=1)", of a row of t. Returns
 * NULL if the text is only a name. Sets *row in both cases. Throws as above.
 */
const ir_inst *ir_call_parse(arena *a, ir_table *t, const char *text, size_t n,
	const ir_row **row);
void ir_program_print(str *out, const ir_program *p); /* parse(print(p)) = p */
/* The same with comments: note adds whole lines, "  // forward\n", before the
 * call that makes the value, or before the input. */
typedef void ir_note(void *arg, str *out, int32_t value);
void ir_program_print_notes(
	str *out, const ir_program *p, ir_note *note, void *arg);
/* Renames a value, unless another value has that name. */
void ir_program_rename(ir_program *p, int32_t value, const char *name);
void ir_program_verify(const ir_program *p);

/* The equations of all calls, in pull form, simplified; equal ones are merged. */
ir_system *ir_lower_all(arena *a, ix *x, const ir_program *p);
/* The same without equations that no output needs. */
ir_system *ir_lower(arena *a, ix *x, const ir_program *p);

#endif
