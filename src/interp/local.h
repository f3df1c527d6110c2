/*
 * local.h: private to interp/: the evaluation of an equation.
 */
#ifndef INTERP_LOCAL_H
#define INTERP_LOCAL_H

#include "interp/interp.h"

typedef struct step step;

typedef struct walk {
	env *e;
	const ir_inst *inst;
	const in_eqn *eqn;
	void *const *tensor; /* by tensor of the instance */
	int64_t *letter;     /* current value, by letter of the instance */
	int64_t pos;	     /* element number of the left side */
	const step *body[IR_MAX_COMP];
	const step *left; /* a read of the element that it writes */
} walk;

/*
 * A node of an expression and its function: the value is .f for float nodes, .i for
 * others.
 */
typedef ir_number step_fn(const walk *w, const step *s);
struct step {
	step_fn *eval;
	in_kind kind;
	tn_dtype dtype;
	int64_t i;
	ir_number c; /* of a constant */
	const step *arg[IR_MAX_ARGS];
	int32_t fn;
	const ir_scalar *row; /* of fn */
	/* reads */
	int32_t tensor, n_index;
	const ir_type *type; /* of the tensor */
	bool flat;
	int64_t lo, hi; /* see in_node */
	const step *const *index;
	/* true: it is inside for all letters, at element at + sum of by * letter */
	bool is_straight;
	int64_t at;
	int32_t n_terms;
	const struct step_term {
		int32_t letter;
		int64_t by;
	} *term;
};

/* Sets w->body and w->left of w->eqn, if that has instances. */
void walk_prepare(arena *a, walk *w);

/* The element number that s reads; false: axis *axis is out of range. */
bool walk_place(const walk *w, const step *s, int64_t *place, int32_t *axis);
_Noreturn void walk_outside(const walk *w, const step *s, int32_t axis);

/* ---- elements: what is most frequent in line ---- */

static inline bool is_float(tn_dtype t)
{
	return t == TN_F32 || t == TN_F64 || dtype_is_float(t);
}

static inline ir_number load_number(tn_dtype t, const void *data, int64_t i)
{
	float f;

	if (t == TN_F32) {
		memcpy(&f, (const char *)data + i * 4, sizeof f);
		return (ir_number){.f = (double)f};
	}
	return dtype_is_float(t) ?
		(ir_number){.f = dtype_load_f64(t, data, i)} :
		(ir_number){.i = dtype_load_i64(t, data, i)};
}

static inline void store_number(tn_dtype t, void *data, int64_t i, ir_number v)
{
	if (t == TN_F32) {
		float f = (float)v.f;

		memcpy((char *)data + i * 4, &f, sizeof f);
	} else if (dtype_is_float(t)) {
		dtype_store_f64(t, data, i, v.f);
	} else {
		dtype_store_i64(t, data, i, v.i);
	}
}

/* As ir_cast: a float is itself in f64. */
static inline ir_number cast_number(tn_dtype to, tn_dtype from, ir_number v)
{
	if (to == TN_F64 && is_float(from))
		return v;
	if (to == TN_F32 && is_float(from))
		return (ir_number){.f = (double)(float)v.f};
	return ir_cast(to, from, v);
}

#endif
