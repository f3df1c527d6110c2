/*
 * local.h: private to interp/: one equation while it is evaluated.
 */
#ifndef INTERP_LOCAL_H
#define INTERP_LOCAL_H

#include "interp/interp.h"

typedef struct walk {
	env *e;
	const ir_inst *inst;
	const in_eqn *eqn;
	void *const *tensor; /* by tensor of the instance */
	int64_t *letter;     /* current value, by letter of the instance */
	int64_t pos;	     /* element number of the left side */
} walk;

/* .f for float nodes, .i for the others */
ir_number walk_eval(const walk *w, const in_node *n);
int64_t walk_index(const walk *w, const in_node *n);

/* Element number of index[] in tensor; false if outside, with the axis. */
bool walk_place(const walk *w, int32_t tensor, const in_node *const *index,
	int64_t *place, int32_t *axis);
_Noreturn void walk_outside(const walk *w, int32_t tensor,
	const in_node *const *index, int32_t axis);

#endif
