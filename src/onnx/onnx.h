/*
 * onnx.h: interface of onnx/: models of the ONNX format as programs.
 *
 *   open     a file becomes structs: every length checked, nothing executed
 *   give     sizes of named dimensions, values of inputs, where they decide
 *            shapes
 *   import   every node becomes calls of rows (onnx_ops.def says which);
 *            initialisers become inputs that are bound to their elements
 *
 *     onnx_model *m = onnx_open(a, "model.onnx");
 *     onnx_import *x = onnx_import_new(a, m);
 *     onnx_program p = onnx_import_run(x);       p.ir is a program
 *
 * Shapes in a program are constants. Values that determine shapes (Reshape's second
 * input, NonZero's count, Loop's trip count) are evaluated by the interpreter
 * during import. An input of the model on which such a value depends must be given,
 * and is pinned: the program is valid only for that value, which each run checks.
 */
#ifndef ONNX_H
#define ONNX_H

#include "program/program.h"

typedef enum onnx_kind {
	ONNX_TENSOR,
	ONNX_SEQUENCE, /* of what `of` says */
	ONNX_OPTIONAL,
	ONNX_OTHER /* maps, sparse tensors: not supported */
} onnx_kind;

/* TypeProto */
typedef struct onnx_type {
	onnx_kind kind;
	int32_t elem; /* tensor: ONNX's number; 0: not said */
	bool has_shape;
	int32_t rank;
	int64_t dim[TN_MAX_RANK];	   /* -1: not said */
	const char *dim_name[TN_MAX_RANK]; /* NULL: none */
	const struct onnx_type *of;
} onnx_type;

/* ValueInfoProto: an input or output of a graph */
typedef struct onnx_port {
	const char *name;
	onnx_type type;
} onnx_port;

typedef struct onnx_array {
	ir_type type;
	int32_t elem; /* ONNX's number */
	const void *data;
} onnx_array;

typedef struct onnx_model onnx_model;

/* Throws [onnx.open] [onnx.wire] [onnx.model] ... (docs/onnx.md). */
onnx_model *onnx_open(arena *a, const char *path);
/* From memory that outlives the arena; folder NULL: no external data. */
onnx_model *onnx_parse(arena *a, const char *name, const char *folder,
	const void *bytes, size_t n);

/* Strings: elements of i32 are their numbers. Throws [onnx.string] [onnx.size] */
int32_t onnx_model_string(onnx_model *m, const void *text, size_t n_bytes);
int32_t onnx_n_strings(const onnx_model *m);
bool onnx_is_string(int32_t elem); /* ONNX's number */
const char *onnx_text_of(const onnx_model *m, int32_t number, int64_t *n_bytes);

/* Inputs without initialisers; outputs. */
int32_t onnx_n_inputs(const onnx_model *m);
int32_t onnx_n_outputs(const onnx_model *m);
const onnx_port *onnx_input(const onnx_model *m, int32_t i);
const onnx_port *onnx_output(const onnx_model *m, int32_t i);
/* What holds its elements; false: nothing does, out is left alone. */
bool onnx_port_dtype(const onnx_port *p, tn_dtype *out);
/* "tensor(float)[N,3]", "seq(tensor(int64))" */
void onnx_type_print(str *out, const onnx_type *t);
/* The version of a domain, "" for ai.onnx, that it is written for; 0: none. */
int64_t onnx_opset_of(const onnx_model *m, const char *domain);
typedef struct onnx_import onnx_import; /* below */
/*
 * What it is made of, as text: producer, opset, operators, parameters; and what
 * cannot run, for which x, a new import, tries to import it.
 */
void onnx_info(str *out, onnx_model *m, onnx_import *x, bool json);

/*
 * A .pb file of a value of that type: one tensor; of a sequence any number; of
 * an optional one or none. Returned in arena a; *n of them. Strings are those of
 * the model; m NULL: there must be none.
 */
const onnx_array *onnx_read_value(arena *a, onnx_model *m, const char *path,
	const onnx_type *type, int32_t *n);
const onnx_array *onnx_parse_value(arena *a, onnx_model *m, const char *name,
	const void *bytes, size_t n_bytes, const onnx_type *type, int32_t *n);

/* New elements of an initialiser, or of the only result of a node. */
typedef struct onnx_new {
	const char *name;
	onnx_array array;
} onnx_new;
/*
 * The model with these parameters, all else as it was. Throws [onnx.undefined]
 * [onnx.shape] [onnx.graph] [onnx.size] [onnx.write]
 */
void onnx_save(arena *a, onnx_model *m, const char *path, int32_t n,
	const onnx_new *new);

/*
 * Changes the number of classes to n: draws new weights of the last layer before
 * the first output, and changes the shapes after it.
 * Throws [onnx.head].
 */
onnx_model *onnx_classes(arena *a, onnx_model *m, int64_t n, uint64_t seed);

/*
 * A program as a model: the first n_free inputs are inputs, the others bound
 * to elements. Throws [export.row] [export.attr] [export.size] [onnx.write]
 */
void onnx_export(arena *a, const ir_program *p, int32_t n_free,
	const void *const *bound, const char *path);

/* ---- import ---- */

/* The model must live as long as the arena. */
onnx_import *onnx_import_new(arena *a, onnx_model *m);
/* Size of a named dimension, or of an axis of an input ("x[0]"): [onnx.dim] */
void onnx_bind_dim(onnx_import *x, const char *name, int64_t size);
/*
 * Floats that depend on no input and have at least so many elements are
 * computed at once, and bound like initialisers. 0, the default: none are.
 */
void onnx_fold_from(onnx_import *x, int64_t n_elems);
/*
 * For training: batch norms use the statistics of the batch, and the next
 * value of each running one is a further output, named as the running one is;
 * dropout drops, by a key that is one more free input, the last. logits: a
 * Softmax that makes an output of the model is left out (also without
 * training).
 */
void onnx_train(onnx_import *x, bool training, bool logits);
/* Loops become calls of their rounds, one after another: for tests, which compare
 * both. */
void onnx_unroll(onnx_import *x, bool unrolled);
/* Value of input i: n arrays (1 for a tensor), whose data is borrowed. */
void onnx_give(
	onnx_import *x, int32_t i, int32_t n, const onnx_array *arrays);

typedef struct onnx_value {
	const char *name; /* as the model has it; "x[2]" of a sequence */
	int32_t elem;
} onnx_value;

typedef struct onnx_program {
	ir_program *ir;
	/* by input of ir: the first n_free are the caller's */
	int32_t n_free;
	const onnx_value *input; /* (inputs) */
	const void *const *bound; /* (inputs): elements of the others; */
	const bool *pinned; /* (inputs) of the free: must equal bound[i] */
	const onnx_value *output; /* (outputs) */
	const int32_t *of;	  /* (inputs) their numbers while importing */
} onnx_program;

/* Fails if the model cannot run; with all attributes and inputs of nodes that are
 * not known, not the first. */
onnx_program onnx_import_run(onnx_import *x);
/* Only looks for what cannot run; extents that are not known count as 1. */
void onnx_import_try(onnx_import *x);

/* ---- stages: shapes that follow from data at each run ---- */

typedef struct onnx_staged onnx_staged;

/* Compiles and runs programs; `made` lives as long as the arena. */
typedef struct onnx_runner {
	void *(*make)(void *arg, arena *a, const onnx_program *p);
	void (*run)(void *arg, void *made, const void *const *in,
		void *const *out);
	void *arg;
	size_t most_bytes; /* of all programs that are kept */
} onnx_runner;

/* fold: as onnx_fold_from. The model must live as long as the arena. */
onnx_staged *onnx_staged_new(
	arena *a, onnx_model *m, int64_t fold, onnx_runner runner);
/*
 * One array for each input of the model, all of them tensors, of any shape
 * that the model takes; out: one for each output, its data in arena `to`.
 * Programs are kept by the shapes of the inputs and by what decides shapes.
 * Throws what importing throws, and [onnx.type] for outputs that are not tensors.
 */
void onnx_staged_run(onnx_staged *s, arena *to, const onnx_array *in,
	onnx_array *out);
/* How often the model has been imported. */
int64_t onnx_staged_imports(const onnx_staged *s);

/* The table of operators of docs/onnx.md. */
void onnx_ops_md(str *out);

#endif
