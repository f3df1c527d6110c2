/*
 * grad.h: interface of grad/: derives the adjoint of an instance.
 *
 * Consumes a row on given shapes; produces the equations that compute cotangents
 * of its operands from cotangents of its results, by the rules of
 * docs/gradients.md. The adjoint is an instance, so it has an adjoint itself.
 *
 *     o[i, j] += x[i, k] * y[k, j]      gx[i, k] += go[i, j] * y[k, j]
 */
#ifndef GRAD_H
#define GRAD_H

#include "notation/notation.h"

typedef enum grad_from { GRAD_OPERAND, GRAD_RESULT, GRAD_SEED } grad_from;

typedef struct grad_rule {
	const ir_inst *inst;
	/* operand k of inst is operand, result or cotangent `i` of the call */
	int32_t n_operands;
	struct grad_operand {
		grad_from from;
		int32_t i;
		bool is_shape; /* its elements are not read: any will do */
	} *operand;
	/* result k of inst is the cotangent of operand of_operand[k] */
	int32_t n_results;
	int32_t *of_operand;
} grad_rule;

/*
 * wanted, seeded: a bit for each operand and result of fwd. If the row has a grad
 * block, uses that; cotangents that are not seeded are zero. NULL: no wanted
 * operand has a gradient, or the row is opaque without a grad block. Throws
 * [grad.none] if an update other than += would have to be undone.
 */
const grad_rule *grad_adjoint(arena *a, ir_table *t, const ir_inst *fwd,
	uint64_t wanted, uint64_t seeded);

#endif
