/*
 * export.h: private to onnx/: parts of an exported model (export_part.c), and
 * rows that need several ONNX operators, as text (export_text.c).
 *
 *     {"silu", "Sigmoid 0 > t; Mul 0 t > o"}
 */
#ifndef ONNX_EXPORT_H
#define ONNX_EXPORT_H

#include "onnx/model.h"

typedef struct exporter {
	arena *a;
	const ir_program *p;
	const char *const *name; /* of values; NULL: those of the program */
	const char *path;
	const ir_call *call; /* the current call */
	str node, graph; /* the unfinished NodeProto and GraphProto */
	int32_t n_made;	 /* number of added initialisers */
	int64_t pads[2 * TN_MAX_RANK];
} exporter;

_Noreturn void export_refuse(const exporter *x, const char *rule,
	const char *what, const char *name);
const char *export_name(const exporter *x, int32_t value);
/* The attribute of the call, or NULL. */
const ir_attr *export_attr(const exporter *x, const char *name);
/* Adds an initialiser of this name. */
void export_tensor(exporter *x, const char *name, const ir_type *t,
	const void *data);
/*
 * Adds an initialiser, and returns its name, which no value of a program has.
 */
const char *export_const(exporter *x, const ir_type *t, const void *data);
void export_attr_int(exporter *x, const char *name, int64_t v);
void export_attr_ints(
	exporter *x, const char *name, int32_t n, const int64_t *v);
void export_attr_real(exporter *x, const char *name, double v);

/* The text for the call's row and attributes; NULL: there is none. */
const char *export_text_of(const exporter *x);
void export_run_text(exporter *x, const char *text);

#endif
