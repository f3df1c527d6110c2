/*
 * report.h: private to func/: names for the values of a compiled function.
 *
 *   report.c      prints its split as text
 *   report_dot.c  prints it as a graph
 */
#ifndef FUNC_REPORT_H
#define FUNC_REPORT_H

#include "func/function.h"

typedef struct naming {
	tensors *t;
	arena *a;
	const variant *v;
	map *of; /* value -> number in name */
	VEC(const char *) name;
	int32_t n_free; /* number of names made for values without one */
} naming;

/* Names for all values of the forward and, if there is one, the backward. */
naming *report_names(arena *a, tensors *t, const variant *v);
const char *report_name(naming *m, const t_value *v);
/* What operand i of the trace is called: "x", "a0" without a name of its own. */
const char *report_slot_name(arena *a, const variant *v, int32_t i);
/* A name that the .tn text allows and that is not among those taken, which it is
 * from here on. */
const char *report_fresh(arena *a, map *taken, const char *from);
/* The value of h->p that output i of the function is; adds calls for its view. */
int32_t report_output(
	const tensor_function *f, const variant *v, t_halves *h, int32_t i);
/* The slot whose chain contains v, and its version there; false: none. */
bool report_slot(
	const t_trace *f, const t_value *v, int32_t *slot, int32_t *version);

/* The backward of all results; NULL: there is none. */
const t_back *report_back(const variant *v);

/* step_region.c: a t_put_region; arg: an ir_loop_run *. */
void step_put_region(tensors *t, ir_program *p, const t_trace *f,
	const int32_t *operand, int32_t *result, void *arg);

typedef enum fate {
	FATE_SLOT,  /* the final version of a slot */
	FATE_FRESH, /* an output */
	FATE_SAVED, /* a version that a later write replaces: copied or renamed */
	FATE_OWN    /* a value outside of slots: kept without a copy */
} fate;

/* Describes operand k of the backward; false: it is a seed. */
typedef struct middle {
	fate fate;
	const t_value *v; /* the value that the adjoint reads */
	int32_t slot, version, result;
	bool is_stored;
	size_t bytes; /* kept only for the backward */
	t_version end; /* FATE_SAVED: the write */
} middle;
bool report_middle(const variant *v, int32_t k, middle *out);

#endif
