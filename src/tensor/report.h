/*
 * report.h: private to tensor/: names for what is in a compiled function.
 *
 *   report.c      its split as text
 *   report_dot.c  and as a picture
 */
#ifndef TENSOR_REPORT_H
#define TENSOR_REPORT_H

#include "tensor/function.h"

typedef struct naming {
	tensors *t;
	arena *a;
	const variant *v;
	map *of; /* value -> number in name */
	VEC(const char *) name;
	int32_t n_free; /* of values without a name of their own */
} naming;

/* Names for all values of the forward and, if there is one, the backward. */
naming *report_names(arena *a, tensors *t, const variant *v);
const char *report_name(naming *m, const t_value *v);
/* "mean@1[i + 2, j]" */
void report_read(str *s, naming *m, const t_read *r);
/* The slot in whose chain v lies, and as which version; false: in none. */
bool report_slot(
	const t_trace *f, const t_value *v, int32_t *slot, int32_t *version);
/* "model.c:12"; "" when nobody knows */
const char *report_line(const t_trace *f, int32_t call, arena *a);

/* The backward of all results, and what it reads; NULL: there is none. */
const t_back *report_back(const variant *v);

typedef enum fate {
	FATE_SLOT,  /* a slot's version that the call leaves */
	FATE_FRESH, /* an output */
	FATE_SAVED, /* a version that a later write ends: copied or renamed */
	FATE_OWN    /* a value of its own: passes over, nothing is copied */
} fate;

/* What operand k of the backward is; seeds have none: false. */
typedef struct middle {
	fate fate;
	const t_value *v; /* as the backward was to read it */
	int32_t slot, version, result;
	bool is_stored;
	size_t bytes; /* kept for the backward alone */
	t_version end; /* FATE_SAVED: the write */
} middle;
bool report_middle(const variant *v, int32_t k, middle *out);

#endif
