/*
 * import.h: private to onnx/: the interface for builders of operators.
 *
 * A builder turns one node into calls of rows. It is named in onnx_ops.def:
 *
 *     void onnx_elu(node *d)
 *     {
 *             int32_t x = on_in(d, 0);
 *
 *             on_set(d, 0, rowa(d, "elu", A(x),
 *                     REAL("alpha", on_real(d, "alpha", 1))));
 *     }
 *
 * Values are numbers of values of the program that is built. A builder gets
 * elements that determine shapes by on_ints and similar functions, which
 * compute them with the interpreter.
 */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include "onnx/model.h"

typedef enum val_kind {
	VAL_NONE, /* an input that is not there; an optional without value */
	VAL_TENSOR,
	VAL_SEQUENCE
} val_kind;

/* The value of a name of the model. */
typedef struct val {
	val_kind kind;
	int32_t v;    /* tensor: value of the program */
	int32_t elem; /* tensor: ONNX's element type */
	int32_t n;    /* sequence */
	const struct val *at;
} val;

typedef struct scope {
	map *name; /* -> number */
	VEC(val) value;
	const struct scope *outer; /* of the graph around; NULL: none */
} scope;

/* Known facts about a value of the program. */
typedef struct fact {
	const void *data;  /* its elements if they are known, else NULL */
	const char *label; /* its name in the model; NULL: none */
	int32_t elem;	   /* ONNX's number, of an input; 0: that of the dtype */
	bool is_const;	   /* depends on no input of the model */
	bool is_free;	   /* is an input of the model */
	/* is an input of the model that determines a shape */
	bool is_pinned;
	bool is_live;	   /* an output needs it */
	bool is_folded;	   /* computed here, and bound to the program */
	bool is_carried;   /* made by an earlier stage */
	/* it depends on what differs from round to round of this many loops around
	 * it: see loop.c */
	int32_t level;
	const struct scaled *scaled; /* NULL: not known, see scaled.h */
} fact;

typedef enum strings_rule {
	STRINGS_REFUSED,
	STRINGS_MOVED, /* results of i32 are strings if an operand is */
	STRINGS_READ   /* the builder says what its results are */
} strings_rule;

struct node;
typedef struct onnx_op {
	const char *name;
	int32_t since;
	void (*build)(struct node *d);
	const char *text; /* for builders of many operators */
	strings_rule strings;
	/* inputs that may be strings: bit i is input i, bit 63 all from 63 on */
	uint64_t of;
} onnx_op;

/* The row for the opset: the newest that is not younger; NULL: none. */
const onnx_op *onnx_op_find(
	const char *domain, const char *name, int64_t version);
/* The first opset that has a row for it; -1: none has. */
int32_t onnx_op_since(const char *domain, const char *name);

/* ---- refuse.c: what cannot run ---- */

enum refused {
	REFUSED_OPERATOR,
	REFUSED_ELEM, /* of a tensor */
	REFUSED_ATTR, /* no builder has asked for it */
	REFUSED_INPUT,
	REFUSED_BUILD /* what the import failed with */
};

typedef struct onnx_refusal {
	enum refused kind;
	/* of the node, or of its first output; of a tensor; BUILD: the place */
	const char *name;
	const onnx_node *node;
	const char *domain;
	int64_t opset;
	int32_t since; /* OPERATOR: as onnx_op_since */
	int32_t input;
	/* ELEM: the type of elements; ATTR: its name; BUILD: the message */
	const char *what;
	const char *rule;  /* BUILD */
	const char *where; /* ATTR, INPUT: onnx_import.where */
} onnx_refusal;
typedef VEC(onnx_refusal) onnx_refusals;
onnx_refusals onnx_refused(arena *a, const onnx_model *m);
/* The name of a node, or of its first output. */
const char *onnx_node_name(const onnx_node *n);
const char *onnx_refusal_rule(const onnx_refusal *r);
/* Adds them to the message of an error if they are several, as far as it goes. */
void onnx_refusals_list(str *out, const onnx_refusals *all);
void onnx_refusal_print(str *out, const onnx_refusal *r);
void onnx_refusal_json(str *out, const onnx_refusal *r);
/* Is the node a call of a function of the model? */
bool onnx_is_function(const onnx_model *m, const onnx_node *n);

/*
 * In training: the next value of a constant of the model, such as a statistic.
 */
typedef struct update {
	int32_t old, new;
} update;

struct onnx_import {
	arena *a;
	env *e;
	onnx_model *m;
	map *dim;
	struct given {
		bool is;
		int32_t n;
		const onnx_array *at;
	} *given; /* (inputs of the model) */
	ir_program *p;
	VEC(fact) fact; /* by value of p */
	size_t host_bytes; /* bytes of evaluated values */
	int64_t host_points; /* points that were evaluated */
	/* least number of elements to fold; 0: nothing is folded */
	int64_t fold_from;
	int32_t depth;	   /* of graphs and functions */
	int64_t n_nodes;   /* built so far; loops are unrolled */
	map *function;	   /* key of domain and name -> number */
	int64_t n_listed;  /* elements of all sequences so far */
	VEC(int32_t) stack; /* of onnx_host */
	const char *where; /* "model.onnx, node 3 (Conv \"c1\")" */
	uint64_t n_random;
	bool training, logits;
	int32_t key; /* of random numbers in training; -1: not asked for */
	VEC(update) update;
	struct onnx_path *path; /* NULL: shapes are decided while importing */
	/* The elements of v, which depends on an input, in the run under way;
	 * only with a path. */
	const void *(*decide)(struct onnx_import *x, int32_t v);
	/* The body of If, Loop, Scan, SequenceMap: inputs to outputs, all in a. */
	void (*run_graph)(struct node *d, const onnx_graph *g, int32_t n_in,
		const val *in, val *out);
	int32_t level; /* of loops whose bodies are being built (loop.c) */
	bool unrolled; /* no loops: see onnx_unroll */
	onnx_refusals unasked; /* inputs and attributes that no builder knows */
	bool tries;	       /* extents that are not known count as 1 */
	bool has_assumed;      /* such an extent was needed */
	scope *top;
	int32_t top_node; /* of the graph, the one being built */
	bool is_batched; /* the first extent of an input is more than its 1 */
};

typedef struct node {
	onnx_import *x;
	const onnx_node *n;
	const onnx_op *op;
	int64_t opset;
	int32_t n_in, n_out;
	const val *in;
	val *out;
	scope *scope; /* of the node */
	/* of the function whose body this is; NULL: none */
	const onnx_node *caller;
	const onnx_function *callee;
	const struct onnx_opsets *opsets;
	/* what the builder has asked for: what it has not must not be there */
	bool *asked_in, *asked_attr;
} node;

/* ---- graphs ---- */

typedef struct onnx_opsets {
	int32_t n;
	const onnx_opset *at;
} onnx_opsets;

/* ---- host.c: elements that are known while importing ---- */

fact *onnx_fact(onnx_import *x, int32_t v);
/* Adds a value with known elements, which are borrowed. */
int32_t onnx_const(onnx_import *x, const ir_type *t, const void *data);
/* Adds an input of the model. */
int32_t onnx_free(onnx_import *x, const char *name, const onnx_array *known,
	const ir_type *t);
/* A key of random numbers that differs for each call of this: [] i64 */
int32_t onnx_train_key(onnx_import *x);
/* Adds a call; returns its first result. */
int32_t onnx_call(onnx_import *x, const char *row, int32_t n,
	const int32_t *arg, int32_t n_attrs, const ir_attr *attr);
/* The elements of v, dense, computed by the interpreter. */
const void *onnx_host(onnx_import *x, int32_t v);
/* A program of the calls that these outputs need. */
onnx_program onnx_prune(
	onnx_import *x, int32_t n_out, const int32_t *out, onnx_value *output);

/* ---- loop.c: loops ---- */

/*
 * n rounds of a body, which gets what is carried, then a row of each of the rows,
 * and makes what is carried next, then a row of each output.
 */
typedef struct on_loop {
	int64_t n;
	int32_t n_carried, n_rows, n_out;
	const int32_t *in; /* first values of what is carried; rows [n, ..] */
	void (*body)(struct node *d, void *arg, const int32_t *in, int32_t *out);
	void *arg;
} on_loop;
/* out: what is carried at the end; rows [n, ..]. false: it must be unrolled. */
bool on_loop_call(struct node *d, const on_loop *l, int32_t *out);
/* The same, unrolled where it must be. */
void on_loop_run(struct node *d, const on_loop *l, int32_t *out);

/* ---- build.c: for builders ---- */

/* The value of a name in a scope, and in that of the node: [onnx.undefined] */
val onnx_find(const onnx_import *x, const scope *s, const char *name);
val on_named(const node *d, const char *name);

_Noreturn void on_fail(const node *d, const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

typedef struct list {
	int32_t n;
	int64_t *at;
} list;
list on_list_new(node *d, int32_t n, int64_t value);
list on_list_from(node *d, int32_t n, const int64_t *at);
#define LIST(d, ...)                                                           \
	on_list_from((d),                                                         \
		(int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
		(const int64_t[]){__VA_ARGS__})
/* 0 .. n-1 */
list on_list_iota(node *d, int32_t n);

/* inputs and outputs */
bool on_has(const node *d, int32_t i);
int32_t on_in(node *d, int32_t i);
int32_t on_elem(node *d, int32_t i); /* ONNX's element type */
const val *on_val(const node *d, int32_t i); /* of any kind */
const val *on_vals(const node *d); /* all of them */
bool on_wants(const node *d, int32_t i); /* is output i named? */
void on_set(node *d, int32_t i, int32_t v);
void on_set_elem(node *d, int32_t i, int32_t v, int32_t elem);
void on_set_val(node *d, int32_t i, val v);

/* attributes */
/* Accepts an attribute and ignores it. */
void on_ignore(const node *d, const char *name);
bool on_has_attr(const node *d, const char *name);
int64_t on_int(const node *d, const char *name, int64_t otherwise);
double on_real(const node *d, const char *name, double otherwise);
const char *on_text(const node *d, const char *name, const char *otherwise);
bool on_list(node *d, const char *name, list *out); /* ints; false: none */
const wire_floats *on_reals(const node *d, const char *name); /* or NULL */
const onnx_tensor *on_tensor(const node *d, const char *name); /* or NULL */
const onnx_graph *on_graph(const node *d, const char *name);
int32_t on_n_texts(const node *d, const char *name);
const char *on_text_at(const node *d, const char *name, int32_t i);
/* The number of a string (strings.h), and those of an attribute's strings. */
int32_t on_string(const node *d, const char *text);
list on_strings(node *d, const char *name);
/* an axis of rank, negative from the end: [onnx.axis] */
int32_t on_axis(const node *d, int64_t axis, int32_t rank);
/* small sizes out of files: [onnx.attr] unless lo <= v <= hi */
int64_t on_bound(const node *d, const char *what, int64_t v, int64_t lo,
	int64_t hi);

/* Refuses parts of an axis of extent n that are not together the whole of it. */
void on_check_parts(const node *d, list sizes, int64_t n);

/* types */
const ir_type *on_ty(const node *d, int32_t v);
int32_t on_rank_of(const node *d, int32_t v);
int64_t on_extent(const node *d, int32_t v, int32_t axis);
int64_t on_numel(const node *d, int32_t v);
tn_dtype on_dt(const node *d, int32_t v);
list on_shape_of(node *d, int32_t v);

/* elements that must be known */
list on_ints(node *d, int32_t i);	/* of input i */
int64_t on_host_int(node *d, int32_t i); /* its only element */
double on_host_real(node *d, int32_t i);
list on_host_ints(node *d, int32_t v);

/* calls: row(d, "add", A(x, y)); rowa(d, "softmax", A(x), INT("axis", 1)) */
int32_t on_row(node *d, const char *row, int32_t n, const int32_t *arg,
	int32_t n_attrs, const ir_attr *attr);
#define A(...)                                                                 \
	(int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)),         \
		(const int32_t[]){__VA_ARGS__}
#define NO_ARGS 0, NULL
#define VALUES(n, at) (n), (at)
#define row(d, name, args) on_row((d), (name), args, 0, NULL)
#define rowa(d, name, args, ...)                                               \
	on_row((d), (name), args,                                           \
		(int32_t)(sizeof((ir_attr[]){__VA_ARGS__}) / sizeof(ir_attr)), \
		(const ir_attr[]){__VA_ARGS__})
#define INT(nm, v)                                                             \
	{                                                                      \
		.name = (nm), .kind = ATTR_INT, .i = (v)                       \
	}
#define REAL(nm, v)                                                            \
	{                                                                      \
		.name = (nm), .kind = ATTR_REAL, .f = (v)                      \
	}
#define INTS(nm, v)                                                            \
	{                                                                      \
		.name = (nm), .kind = ATTR_INTS, .n = (v).n, .ints = (v).at    \
	}
#define DTYPE(nm, v)                                                           \
	{                                                                      \
		.name = (nm), .kind = ATTR_DTYPE, .dtype = (v)                 \
	}
#define TEXT(nm, v)                                                            \
	{                                                                      \
		.name = (nm), .kind = ATTR_STRING, .string = (v)               \
	}
static inline int32_t on_two(node *d, const char *name, int32_t x, int32_t y)
{
	return row(d, name, A(x, y));
}
/* result number k of the call that made v as its first */
int32_t on_result(node *d, int32_t v, int32_t k);

/* short forms */
int32_t on_scalar(node *d, tn_dtype t, double v); /* rank 0 */
int32_t on_constant(node *d, tn_dtype t, list shape, const void *data);
int32_t on_const_ints(node *d, list v);	  /* i64 [n] */
int32_t on_const_real(node *d, tn_dtype t, list shape, const double *v);
int32_t on_filled(node *d, tn_dtype t, list shape, double v);
int32_t on_cast_to(node *d, int32_t v, tn_dtype t);
int32_t on_reshape(node *d, int32_t v, list shape);
/* v of n axes as axis .. axis+n-1 of a tensor of rank r, others of extent 1 */
int32_t on_along(node *d, int32_t v, int32_t axis, int32_t r);
int32_t on_unsqueeze(node *d, int32_t v, int32_t axis);
int32_t on_drop_axis(node *d, int32_t v, int32_t axis);
int32_t on_transpose(node *d, int32_t v, list perm);
int32_t on_move_axis(node *d, int32_t v, int32_t from, int32_t to);
int32_t on_narrow(node *d, int32_t v, int32_t axis, int64_t start, int64_t count);
int32_t on_concat(node *d, int32_t n, const int32_t *v, int32_t axis);
/* tensors of equal shape along a new axis */
int32_t on_stack(node *d, int32_t n, const int32_t *v, int32_t axis);
/* in the opposite order along an axis */
int32_t on_flip(node *d, int32_t v, int32_t axis);
/* indices into an axis of extent n: negative ones count from the end */
int32_t on_wrap_index(node *d, int32_t ids, int64_t n);
tn_dtype on_elem_dtype(node *d, int64_t elem); /* [onnx.elem] */

#endif
