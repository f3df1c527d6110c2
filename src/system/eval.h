/*
 * eval.h: a slow reference: evaluates the equations of a system point by point.
 */
#ifndef SYSTEM_EVAL_H
#define SYSTEM_EVAL_H

#include "system/system.h"

/* The point at which expressions are evaluated, and their data. */
typedef struct shard_machine {
	env *e;
	ir_system *s;
	ir_number (*load)(void *arg, int32_t tensor, int64_t at);
	void *arg;
	const int64_t *point;
	const ir_number *param; /* EX_PARAM */
	const char *label;	/* for messages */
} shard_machine;
ir_number shard_value(shard_machine *m, const expr *e);
/* Throws TN_ERANGE [index.range], as a kernel does. */
int64_t shard_form_value(shard_machine *m, const ix_form *f);
/* far = far (+) next, with n components of dtypes acc[] */
void shard_join(shard_machine *m, int32_t monoid, int32_t n,
	const tn_dtype *acc, ir_number *far, const ir_number *next);
ir_number shard_load_number(tn_dtype t, const void *data, int64_t at);
void shard_store_number(tn_dtype t, void *data, int64_t at, ir_number r);
/* Evaluates all equations in order; data[t] is the array of tensor t. */
void shard_eval(arena *scratch, ir_system *s, void *const *data);
void shard_eval_equation(
	arena *scratch, ir_system *s, const sys_eqn *e, void *const *data);

/* The same with arrays of inputs and outputs; an output that is stored into an
 * input's memory has that array. */
void shard_eval_system(arena *a, ir_system *s, const void *const *in,
	void *const *out);
/* far[k] = far[k] (+) next[k] for n elements */
void shard_eval_join(arena *a, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, void *const *far, void *const *next);

#endif
