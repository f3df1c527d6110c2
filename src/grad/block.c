/*
 * block.c: the adjoint that a row says itself: its grad block.
 *
 * Consumes the block on the shapes of a call; keeps the equations that wanted
 * operands need, takes cotangents that do not come for zero, and leaves only
 * the operands that are read then.
 */
#include "grad/local.h"

typedef struct block {
	arena *a;
	const ir_inst *fwd, *all; /* the call; the block as it stands */
	uint64_t seeded;
	int32_t n_in; /* operands of the call */
	bool *live;   /* by tensor of the block */
	int32_t *here; /* its number in the adjoint */
	bool is_seeded; /* some cotangent is read */
} block;

/* -1: no cotangent; else whose, and is it zero? */
static int32_t cotangent(const block *b, int32_t tensor, bool *is_zero)
{
	int32_t k = b->all->tensor[tensor].operand - b->n_in -
		    b->fwd->n_results;
	const ir_type *t;

	if (k < 0)
		return -1;
	t = &b->fwd->tensor[b->fwd->result[k]].type;
	*is_zero = k >= 64 || (b->seeded >> k & 1) == 0 ||
		   !dtype_is_float(t->dtype);
	return k;
}

static void mark(block *b, const in_node *n)
{
	bool is_zero;

	if (n == NULL)
		return;
	if (n->kind == IN_READ) {
		int32_t k = cotangent(b, n->tensor, &is_zero);

		if (k >= 0 && is_zero)
			return;
		b->is_seeded = b->is_seeded || k >= 0;
		b->live[n->tensor] = true;
	}
	for (int32_t i = 0; i < n->n_index; i++)
		mark(b, n->index[i]);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		mark(b, n->arg[i]);
}

/* n with tensors renumbered and absent cotangents zero */
static const in_node *moved(block *b, const in_node *n)
{
	in_node *r;
	bool is_zero;

	if (n == NULL)
		return NULL;
	r = arena_copy(b->a, n, sizeof *n);
	if (n->kind == IN_READ && cotangent(b, n->tensor, &is_zero) >= 0 &&
		is_zero) {
		*r = (in_node){.kind = IN_REAL, .dtype = n->dtype};
		return r;
	}
	if (n->kind == IN_READ)
		r->tensor = b->here[n->tensor];
	if (n->n_index > 0) {
		const in_node **at = arena_array(
			b->a, const in_node *, n->n_index);

		for (int32_t i = 0; i < n->n_index; i++)
			at[i] = moved(b, n->index[i]);
		r->index = at;
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		r->arg[i] = moved(b, n->arg[i]);
	return r;
}

static bool is_live(const block *b, const in_eqn *q)
{
	for (int32_t k = 0; k < q->n_out; k++)
		if (b->live[q->out[k]])
			return true;
	return false;
}

static void find_live(block *b, uint64_t wanted, const int32_t *of)
{
	const ir_inst *p = b->all;

	for (int32_t k = 0; k < p->n_results; k++)
		b->live[p->result[k]] = (wanted >> of[k] & 1) != 0;
	for (int32_t i = p->n_eqns - 1; i >= 0; i--) {
		const in_eqn *q = &p->eqn[i];

		for (int32_t k = 0; k < q->n_left && is_live(b, q); k++)
			mark(b, q->left[k]);
		for (int32_t k = 0; k < ir_n_bodies(q) && is_live(b, q); k++)
			mark(b, q->body[k]);
	}
	/* what no equation makes is no result */
	for (int32_t k = 0; k < p->n_results; k++) {
		bool made = false;

		for (int32_t i = 0; i < p->n_eqns; i++)
			made = made || p->eqn[i].out[0] == p->result[k];
		if (!made)
			b->live[p->result[k]] = false;
	}
}

static void take_tensors(
	block *b, const int32_t *of, ir_inst *inst, grad_rule *r)
{
	const ir_inst *p = b->all;
	in_tensor *to = arena_array(b->a, in_tensor, p->n_tensors + 1);
	int32_t *result = arena_array(b->a, int32_t, p->n_results + 1);

	r->operand = arena_array(b->a, struct grad_operand, p->n_tensors + 1);
	r->of_operand = arena_array(b->a, int32_t, p->n_results + 1);
	for (int32_t i = 0; i < p->n_tensors; i++) {
		in_tensor t = p->tensor[i];
		int32_t k = t.operand;

		if (!b->live[i])
			continue;
		if (k >= 0) {
			t.operand = r->n_operands;
			r->operand[r->n_operands++] = (struct grad_operand){
				k < b->n_in ? GRAD_OPERAND
				: k < b->n_in + b->fwd->n_results
					? GRAD_RESULT
					: GRAD_SEED,
				k < b->n_in ? k
					    : (k - b->n_in) % b->fwd->n_results,
				false};
		}
		if (t.result >= 0) {
			r->of_operand[r->n_results] = of[t.result];
			result[r->n_results] = inst->n_tensors;
			t.result = r->n_results++;
		}
		b->here[i] = inst->n_tensors;
		to[inst->n_tensors++] = t;
	}
	inst->tensor = to;
	inst->n_results = r->n_results;
	inst->result = result;
}

static void take_eqns(block *b, ir_inst *inst)
{
	const ir_inst *p = b->all;
	in_eqn *to = arena_array(b->a, in_eqn, p->n_eqns + 1);

	for (int32_t i = 0; i < p->n_eqns; i++) {
		in_eqn q = p->eqn[i];
		const in_node **left = arena_array(
			b->a, const in_node *, q.n_left + 1);

		if (!is_live(b, &q))
			continue;
		for (int32_t k = 0; k < q.n_left; k++)
			left[k] = moved(b, q.left[k]);
		q.left = left;
		for (int32_t k = 0; k < ir_n_bodies(&q); k++)
			q.body[k] = moved(b, q.body[k]);
		for (int32_t k = 0; k < q.n_out; k++)
			q.out[k] = b->here[q.out[k]];
		to[inst->n_eqns++] = q;
	}
	inst->eqn = to;
}

grad_rule *block_rule(arena *a, const ir_inst *fwd, uint64_t wanted,
	uint64_t seeded, bool *there)
{
	const int32_t *of = NULL;
	const ir_inst *all = ir_instantiate_grad(a, fwd, &of);
	grad_rule *r = arena_make(a, grad_rule);
	ir_inst *inst = arena_make(a, ir_inst);
	block b = {.a = a, .fwd = fwd, .all = all, .seeded = seeded};

	*there = all != NULL;
	if (all == NULL)
		return NULL;
	for (int32_t i = 0; i < fwd->n_tensors; i++)
		b.n_in += fwd->tensor[i].operand >= 0;
	b.live = arena_array(a, bool, all->n_tensors + 1);
	b.here = arena_array(a, int32_t, all->n_tensors + 1);
	find_live(&b, wanted, of);
	take_tensors(&b, of, inst, r);
	if (r->n_results == 0 || !b.is_seeded)
		return NULL;
	take_eqns(&b, inst);
	inst->row = ir_row_named(
		a, arena_printf(a, "%s_grad", ir_row_name(fwd->row)));
	inst->n_letters = all->n_letters;
	inst->letter = all->letter;
	r->inst = inst;
	return r;
}
