/*
 * model.h: private to onnx/: an ONNX file as structs. Names and small numbers
 * are copied into the arena; elements of tensors stay in the file until they are
 * needed.
 */
#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H

#include "onnx/onnx.h"
#include "onnx/strings.h"

enum { ONNX_MAX_DEPTH = 32 }; /* graphs within graphs, types within types */

typedef struct onnx_graph onnx_graph;

/* TensorProto */
typedef struct onnx_tensor {
	const char *name;
	int32_t elem; /* ONNX's number of the element type */
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
	onnx_bytes message; /* all of it: typed elements are read from it */
	onnx_bytes raw;
	bool has_raw, is_external;
	const char *location; /* external: file beside the model */
	int64_t offset, length; /* length -1: to the end of the elements */
} onnx_tensor;

typedef enum onnx_attr_type {
	ONNX_ATTR_NONE,
	ONNX_ATTR_FLOAT,
	ONNX_ATTR_INT,
	ONNX_ATTR_STRING,
	ONNX_ATTR_TENSOR,
	ONNX_ATTR_GRAPH,
	ONNX_ATTR_FLOATS,
	ONNX_ATTR_INTS,
	ONNX_ATTR_STRINGS,
	ONNX_ATTR_OTHER /* lists of tensors and graphs, types, sparse */
} onnx_attr_type;

typedef struct onnx_attr {
	const char *name, *ref; /* ref: of the function's caller, or NULL */
	onnx_attr_type type;
	float f;
	int64_t i;
	const char *s;
	const onnx_tensor *t;
	const onnx_graph *g;
	wire_floats floats;
	wire_ints ints;
	VEC(const char *) strings;
} onnx_attr;

typedef struct onnx_node {
	const char *name, *op, *domain;
	VEC(const char *) in, out; /* "": not there */
	VEC(onnx_attr) attr;
} onnx_node;

struct onnx_graph {
	const char *name;
	VEC(onnx_node) node;
	VEC(onnx_tensor) init;
	VEC(onnx_port) in, out;
};

typedef struct onnx_opset {
	const char *domain; /* "": ai.onnx */
	int64_t version;
} onnx_opset;

/* FunctionProto */
typedef struct onnx_function {
	const char *name, *domain;
	VEC(const char *) in, out;
	VEC(onnx_node) node;
	VEC(onnx_attr) attr; /* defaults */
	VEC(onnx_opset) opset;
} onnx_function;

struct onnx_model {
	arena *a;
	const char *file;   /* for messages */
	onnx_bytes bytes;   /* all of it */
	const char *folder; /* of external data; NULL: not allowed */
	int64_t ir_version;
	const char *producer;
	VEC(onnx_opset) opset;
	VEC(onnx_function) function;
	onnx_graph graph;
	VEC(onnx_port) input; /* of the graph, without initialisers */
	map *files; /* mapped external data: name -> number in `mapped` */
	VEC(onnx_bytes) mapped;
	map *held; /* address of a tensor -> number in `array` */
	VEC(onnx_array) array;
	onnx_strings *strings;
};

/* read.c */
typedef struct onnx_reader {
	arena *a;
	const char *file;
	int32_t depth;
} onnx_reader;
void onnx_read_tensor(const onnx_reader *r, onnx_bytes b, onnx_tensor *t);
void onnx_read_model(onnx_model *m, onnx_bytes b);

/* order.c: n nodes, each behind those whose results it reads. given: names that
 * are there already. Throws [onnx.cycle]. */
void onnx_order(arena *a, const char *file, const map *given, int32_t n,
	onnx_node *at);

/* tensor.c */

/* What Tenon holds elements of an ONNX type in; false: nothing does. */
bool onnx_elem_dtype(int32_t elem, tn_dtype *out);
int32_t onnx_dtype_elem(tn_dtype t);
const char *onnx_elem_name(int32_t elem); /* "float16", "string" */
/*
 * The elements, dense, row-major, aligned: in the mapped file, or a copy in arena
 * a. m NULL: external data is refused. Throws [onnx.elem]
 * [onnx.size] [onnx.external] [onnx.range].
 */
onnx_array onnx_tensor_array(
	arena *a, onnx_model *m, const char *file, const onnx_tensor *t);

/* The same of a value that is not of the model. s NULL: strings are refused. */
onnx_array onnx_value_array(
	arena *a, onnx_strings *s, const char *file, const onnx_tensor *t);

/* The same of a tensor of the model, which keeps the copy: all programs that are
 * built from it read one. */
onnx_array onnx_model_array(
	onnx_model *m, const char *file, const onnx_tensor *t);

/* The elements as files hold them: fewer bits than a byte are packed. */
onnx_bytes onnx_packed(arena *a, const ir_type *t, const void *data);

/* Its external data, as in the file. */
onnx_bytes onnx_external(
	arena *a, onnx_model *m, const char *file, const onnx_tensor *t);

/* A file, read-only, as long as the arena lives: [onnx.open]. */
onnx_bytes onnx_map_file(arena *a, const char *path);

#endif
