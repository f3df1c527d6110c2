/*
 * interp.h: a slow interpreter of programs, the reference of all tests.
 *
 * Evaluates the equations of the instances directly: every instance of every
 * equation, in order, on plain arrays. It knows neither ix/ nor the pull form,
 * so that lowering is tested by it too. Sums accumulate in f64 (ints in i64).
 */
#ifndef INTERP_H
#define INTERP_H

#include "program/program.h"

/*
 * input[i]: data of the program's input i, dense, row-major. output[i]: memory for
 * the program's output i. Throws TN_ERANGE
 * ("index.range") if an unguarded index read from data is out of range, and
 * ("index.overflow") when index arithmetic on data leaves +-2^62.
 */
void interp_run(env *e, const ir_program *p, const void *const *input,
	void *const *output);
/* The same; if it throws, *at is the call that was evaluated, or -1. */
void interp_run_at(env *e, const ir_program *p, const void *const *input,
	void *const *output, int32_t *at);
/* Evaluates one instance: tensor[i] is the data of inst->tensor[i]; writes all but
 * the operands. */
void interp_inst(env *e, const ir_inst *inst, void *const *tensor);

/* Runs a loop: for ir_program_loop. */
void interp_loop(env *e, const ir_opaque *self, const ir_type *in_type,
	const void *const *in, const ir_type *out_type, void *const *out,
	const int64_t *attr);

#endif
