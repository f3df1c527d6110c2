/*
 * interp.h: the slow meaning of a program; the oracle of every test.
 *
 * Evaluates the equations of the instances directly: every instance of every
 * equation, in order, on plain arrays. It knows neither ix/ nor the pull form,
 * so that lowering is tested by it too. Sums accumulate in f64 (ints in i64).
 */
#ifndef INTERP_H
#define INTERP_H

#include "program/program.h"

/*
 * input[i]: data of the program's input i, dense, row-major. output[i]: where
 * the result goes, of the size of the program's output i. Throws TN_ERANGE
 * ("index.range") when an unguarded index read from data is outside, and
 * ("index.overflow") when index arithmetic on data leaves +-2^62.
 */
void interp_run(env *e, const ir_program *p, const void *const *input,
	void *const *output);
/* The same; what it throws while call *at is evaluated; -1: none. */
void interp_run_at(env *e, const ir_program *p, const void *const *input,
	void *const *output, int32_t *at);
/* One instance on its own: tensor[i] is the data of inst->tensor[i]; all but the operands are written. */
void interp_inst(env *e, const ir_inst *inst, void *const *tensor);

#endif
