/*
 * reads.c: finds the operands that an adjoint reads, and those of which it only needs
 * the shape.
 *
 * `inside(x[i])` is true if i is an index of x; it does not read the element. If x
 * occurs only so, its elements need not be kept.
 *
 *     copy, pad, concat    x is a shape
 *     gather               ids is read, in an index
 */
#include "grad/local.h"

static void look(const in_node *n, bool *read)
{
	if (n == NULL)
		return;
	if (n->kind == IN_INSIDE)
		n = n->arg[0];
	else if (n->kind == IN_READ)
		read[n->tensor] = true;
	for (int32_t i = 0; i < n->n_index; i++)
		look(n->index[i], read);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		look(n->arg[i], read);
}

void reads_find(arena *a, grad_rule *r)
{
	const ir_inst *p = r->inst;
	bool *read = arena_array(a, bool, p->n_tensors + 1);

	for (int32_t i = 0; i < p->n_eqns; i++) {
		const in_eqn *q = &p->eqn[i];

		for (int32_t k = 0; k < q->n_left; k++)
			look(q->left[k], read);
		for (int32_t k = 0; k < ir_n_bodies(q); k++)
			look(q->body[k], read);
	}
	for (int32_t i = 0; i < p->n_tensors; i++)
		if (p->tensor[i].operand >= 0)
			r->operand[p->tensor[i].operand].is_shape = !read[i];
}
