/*
 * func.h: interface of func/: compiled functions, and regions: conditions, loops
 * and C functions of the caller, which are calls like others.
 */
#ifndef FUNC_H
#define FUNC_H

#include "tape/tape.h"

tensors *tensors_new(arena *a, const tensor_backend *b);

/* ---- compiled functions (function.c) ---- */

/*
 * A function on tensors whose body is recorded once for each variant (shapes and
 * aliasing of its arguments) and is then one call. Tensors that the body uses
 * without being arguments are read again at each call. The body may throw.
 */
typedef struct tensor_function tensor_function;
typedef void tensor_body(void *arg, tensor *const *in, tensor **out);
tensor_function *tensor_function_new(tensors *t, const char *name,
	int32_t n_in, int32_t n_out, tensor_body *body, void *arg);
void tensor_function_free(tensor_function *f);
/* Throws TN_EINVAL [compile.donate] if another handle shares a donated argument. */
void tensor_function_check_donated(
	tensor_function *f, tensor *const *in, const bool *donated);
void tensor_function_take_donated(
	tensor_function *f, tensor *const *in, const bool *donated);
void tensor_function_call(
	tensor_function *f, tensor *const *in, tensor **out);
/* The number of times that body was recorded. */
int32_t tensor_function_n_traces(const tensor_function *f);
/* Prints components, slots and middles of every variant. */
void tensor_function_print(str *out, const tensor_function *f);
void tensor_function_dot(str *out, const tensor_function *f);
/*
 * Prints forward and backward of the variant of the last call as one program.
 * Throws [compile.program] if there was no call, or if it contains a condition, a
 * loop or a C function.
 */
void tensor_function_program(str *out, const tensor_function *f);

/* ---- a call as a program (step.c) ---- */

/* Tensors from outside that keep their place though the function only reads them:
 * someone else writes to them, as to a learning rate. */
typedef struct tensor_kept {
	int32_t n;
	tensor *const *at;
} tensor_kept;
/* Of arguments and outputs; NULL: those of the tensors, or a0, a1 .., y0, y1 .. */
typedef struct tensor_step_names {
	const char *const *in, *const *out;
} tensor_step_names;

/* An input of the program. */
typedef struct tensor_step_input {
	int32_t arg; /* the argument that it is, or -1 */
	bool is_key; /* a key for random numbers, another one in each call */
	/* the present elements of a tensor from outside; NULL: it is an argument
	 * or a key */
	const void *data;
	bool is_kept; /* the next call sees what this one, or the user, wrote */
	bool is_steady;
} tensor_step_input;
typedef struct tensor_step_program {
	ir_program *p;
	tensor_step_input *in; /* by input */
} tensor_step_program;

/*
 * What a call with these arguments computes, in arena a, and the elements that
 * it begins with; the call is not made. run: of loops of the program. Throws
 * TN_EINVAL [export.region] (a function in C, or a loop that cannot be one),
 * [export.gradient] (it reads or leaves collected ones), [export.overlap],
 * [export.shard].
 */
void tensor_function_step(arena *a, tensor_function *f, tensor *const *in,
	const tensor_kept *kept, const tensor_step_names *names,
	ir_loop_run *run, tensor_step_program *out);

/* ---- regions (region.c, region_loop.c) ---- */

/*
 * Evaluates one of two bodies, depending on a truth value. Both have outputs of
 * the same shapes and dtypes. out[i] is an existing storage if both bodies return
 * it through the same view.
 */
void tensor_cond(tensors *t, tensor *pred, tensor_body *const body[2],
	void *const arg[2], tensor *const *in, int32_t n_out, tensor **out);

/*
 * A loop: body(carried, rows) returns the carried tensors of the next round, and
 * a row of each output. Writes of the body to carried tensors, or to tensors
 * from outside, are in place.
 */
typedef struct tensor_loop {
	const char *name;
	tensor_body *test; /* of the carried tensors: another round? NULL: n rounds */
	tensor_body *body;
	void *test_arg, *arg;
	int64_t n; /* rounds; with a test, the most; 0: no limit, and no gradient */
	int32_t n_carried, n_rows, n_out;
} tensor_loop;
enum { TENSOR_MAX_CARRIED = 256 };
/* in: carried tensors, then rows [n, ..]; out: the carried tensors at the end,
 * then outputs [n, ..]. */
void tensor_loop_call(tensors *t, const tensor_loop *l, tensor *const *in,
	tensor **out);

/* A C function of the caller on arrays; it runs when a result is needed, and may
 * throw. */
typedef void tensor_host(void *arg, int32_t n_in, const ir_type *in_type,
	const void *const *in, int32_t n_out, const ir_type *out_type,
	void *const *out);
/* back NULL: no gradient; else computes cotangents of in[] from in[], out[] and
 * cotangents of out[], all of which are floats. */
void tensor_host_call(tensors *t, tensor_host *fn, tensor_host *back, void *arg,
	int32_t n_in, tensor *const *in, int32_t n_out, const ir_type *type,
	tensor **out);

#endif
