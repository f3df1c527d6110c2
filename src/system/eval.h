/*
 * eval.h: a slow reference: evaluates the equations of a system point by point.
 */
#ifndef SYSTEM_EVAL_H
#define SYSTEM_EVAL_H

#include "system/system.h"

/* The point at which expressions are evaluated, and their data. */
typedef struct eval_machine {
	env *e;
	ir_system *s;
	ir_number (*load)(void *arg, int32_t tensor, int64_t at);
	void *arg;
	const int64_t *point;
	const ir_number *param; /* EX_PARAM */
	const char *label;	/* for messages */
	/* what eval_combine last parsed: combine[k] for the components of a
	 * monoid with accumulators of acc[]; n_combine is 0 before */
	int32_t monoid, n_combine;
	tn_dtype acc[IR_MAX_COMP];
	const expr *combine[IR_MAX_COMP];
} eval_machine;
ir_number eval_value(eval_machine *m, const expr *e);
/* Throws TN_ERANGE [index.range], as a kernel does. */
int64_t eval_form(eval_machine *m, const ix_form *f);
/* far = far (+) next, with n components of dtypes acc[] */
void eval_combine(eval_machine *m, int32_t monoid, int32_t n,
	const tn_dtype *acc, ir_number *far, const ir_number *next);
ir_number eval_load(tn_dtype t, const void *data, int64_t at);
void eval_store(tn_dtype t, void *data, int64_t at, ir_number r);
/* Evaluates all equations in order; data[t] is the array of tensor t. */
void eval_equations(arena *scratch, ir_system *s, void *const *data);
void eval_equation(
	arena *scratch, ir_system *s, const sys_eqn *e, void *const *data);

/* The same with arrays of inputs and outputs; an output that is stored into an
 * input's memory has that array. */
void eval_arrays(arena *a, ir_system *s, const void *const *in,
	void *const *out);
/* far[k] = far[k] (+) next[k] for n elements */
void eval_join(arena *a, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, void *const *far, void *const *next);

#endif
