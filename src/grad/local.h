/*
 * local.h: private to grad/: an adjoint under construction.
 *
 *   node.c     builds nodes of the new instance
 *   terms.c    makes its tensors, and adds terms to cotangents
 *   chain.c    walks down a body: derivatives, guards, reads
 *   adjoint.c  walks the equations backwards
 *   block.c    rows with a grad block
 *   reads.c    finds operands of which only the shape is needed
 */
#ifndef GRAD_LOCAL_H
#define GRAD_LOCAL_H

#include "grad/grad.h"

typedef struct adjoint {
	arena *a;
	env *e;
	ir_table *table;
	const ir_inst *fwd;
	uint64_t wanted, seeded;
	VEC(in_tensor) tensor;
	VEC(struct grad_operand) operand;
	VEC(in_eqn) eqn;	/* of the adjoint, in order */
	VEC(in_eqn) again;	/* of the forward, that it needs, in order */
	int32_t *value;		/* forward tensor -> here; -1: not yet */
	int32_t *cotangent;	/* the same of its cotangent */
	int32_t *seed;		/* the operand that begins it; -1 */
	bool *has_grad;		/* forward tensor depends on a wanted float */
	bool *is_made;		/* forward equation is in `again` */
	bool *used;		/* by operand: is it read? */
	VEC(struct in_letter) letter;
	struct scan_of {
		bool on;	/* its own reads are looked for */
		const in_eqn *q;
		int32_t h;	/* its cotangent, a scan the other way */
		const in_node *sum;
	} scan;
} adjoint;

/* The conditions that hold, outermost first. */
typedef struct guards {
	int32_t n;
	const in_node *at[32]; /* bool nodes that must hold */
} guards;

/* node.c */
const in_node *nd_int(adjoint *g, int64_t v);
const in_node *nd_real(adjoint *g, tn_dtype t, double v);
const in_node *nd_index(
	adjoint *g, in_kind kind, const in_node *x, const in_node *y);
const in_node *nd_call(adjoint *g, const char *fn, tn_dtype t,
	const in_node *x, const in_node *y, const in_node *z);
const in_node *nd_mul(adjoint *g, const in_node *x, const in_node *y);
const in_node *nd_cast(adjoint *g, tn_dtype t, const in_node *x);
const in_node *nd_where(adjoint *g, const in_node *c, const in_node *x,
	const in_node *y);
const in_node *nd_read(adjoint *g, int32_t tensor, int32_t n,
	const in_node *const *at);
const in_node *nd_inside(adjoint *g, const in_node *read);
const in_node *nd_not(adjoint *g, const in_node *c);
/* value under all guards, else 0 */
const in_node *nd_guarded(adjoint *g, const guards *w, const in_node *v);
/* n with `letter` moved by k */
const in_node *nd_shifted(
	adjoint *g, const in_node *n, int32_t letter, int64_t k);

/* block.c: there: is there a grad block? */
grad_rule *block_rule(arena *a, const ir_inst *fwd, uint64_t wanted,
	uint64_t seeded, bool *there);

/* reads.c: is_shape of all operands of r */
void reads_find(arena *a, grad_rule *r);

/* terms.c */
/* a forward node as one of the adjoint: values renumbered, pos spelled out */
const in_node *nd_again(
	adjoint *g, const in_eqn *q, const in_node *n);
int32_t adj_value(adjoint *g, int32_t tensor); /* forward -> here */
/* cotangent of forward tensor t gets body at left, over q's letters */
void adj_add(adjoint *g, const in_eqn *q, int32_t t,
	const in_node *const *left, bool may_skip, const in_node *body);
/* a scan's read of itself: see through_scan */
void adj_self(adjoint *g, const in_eqn *q, const in_node *const *left,
	const in_node *body);
int32_t adj_tensor(
	adjoint *g, const char *name, const ir_type *type, tn_dtype dtype);
void adj_eqn(adjoint *g, const in_eqn *q);
/* an equation with one result and one body */
in_eqn adj_new_eqn(int32_t out, int32_t monoid, int32_t n_left,
	const in_node *const *left, const in_node *body);
/* letters of r: of its left side, of q those that only count how often, of its body:
 * as the same row would be read from text */
void adj_set_letters(adjoint *g, const in_eqn *q, in_eqn *r);
/* the forward tensor's name behind a prefix */
const char *adj_named(adjoint *g, const char *prefix, int32_t t);
/* the element of tensor at the left side of q */
const in_node *adj_at_left(adjoint *g, const in_eqn *q, int32_t tensor);

/* chain.c: everything that node n of q passes cotangent c on to */
void chain_down(adjoint *g, const in_eqn *q, const in_node *n,
	const in_node *c, guards w);
/* Does n compute with a float that has a gradient? */
bool chain_reaches(const adjoint *g, const in_node *n);

#endif
