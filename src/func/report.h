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
/* The slot whose chain contains v, and its version there; false: none. */
bool report_slot(
	const t_trace *f, const t_value *v, int32_t *slot, int32_t *version);

/* The backward of all results; NULL: there is none. */
const t_back *report_back(const variant *v);

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
