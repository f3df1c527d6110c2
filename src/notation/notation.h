/*
 * notation.h: interface of notation/: operations as rows of the notation.
 *
 *   scalar   scalar functions (scalar.def): name, signature, meaning, C text
 *   monoid   reductions (monoid.def): identity and combination, as text
 *   row      one operation in the notation (ops.def, user `op` text)
 *   inst     a row on given shapes: letters with extents, no packs, no
 *            attributes. What the interpreter evaluates: the oracle.
 *
 * program/ calls rows on values; system/ takes instances to equations.
 */
#ifndef NOTATION_H
#define NOTATION_H

#include "base/base.h"

#define IR_MAX_AXES 32	/* axes of one equation, extent 1 included */
#define IR_MAX_COMP 3	/* components of a tuple monoid */
#define IR_MAX_OUT 8	/* results of an opaque row */
#define IR_MAX_PIECES 256 /* results of a row that has any number: split */
#define IR_MAX_ARGS 3	/* arguments of a scalar function */
#define IR_MAX_OPERANDS 64

/* ---- scalar functions -------------------------------------------------- */

/*
 * scalar.def has one line each:
 *   SCALAR(name, "F>F", F, I, "emit", "dx", "dy", "dz", "laws", "doc")
 * signature letters as in docs/notation.md (F float, N number, I integer, B bool, O ordered, T any);
 * F, I: C expressions of x, y, z on double / int64_t (bool is 0 or 1) for the interpreter;
 * MIXED(..., G, ...): a function of integers with a float result (u01) has g alone;
 * emit: C text for generated code: "(x + y)" holds for scalars and vectors alike,
 *       a bare name is a helper of emit/ ("exp");
 * d*:   derivative by argument in the notation; o is the result; "" none.
 */
typedef struct ir_scalar {
	const char *name, *sig, *emit, *d[IR_MAX_ARGS], *doc;
	int32_t n_args;
	double (*f)(double x, double y, double z);
	int64_t (*i)(int64_t x, int64_t y, int64_t z);
	int64_t (*u)(int64_t x, int64_t y, int64_t z); /* of u64 */
	double (*g)(int64_t x, int64_t y, int64_t z); /* else NULL */
	int32_t flops; /* rough cost: 12 for exp and its like, 4 div, 1 */
	const char *laws; /* see scalar.def */
} ir_scalar;

int32_t ir_scalar_n(void);
const ir_scalar *ir_scalar_at(int32_t fn);
int32_t ir_scalar_find(const char *name, size_t n); /* -1 unknown */
/* Result dtype from the signature; -1 when the arguments do not fit. */
int32_t ir_scalar_dtype(int32_t fn, const tn_dtype *arg, int32_t n);
/*
 * Value, not yet rounded to the result. arg: dtype of the last argument; v: .f
 * of floats, .i of ints and bool; the bits of a u64.
 */
typedef union ir_number {
	double f;
	int64_t i;
} ir_number;
ir_number ir_scalar_eval(int32_t fn, tn_dtype arg, const ir_number *v);
/* a value of dtype `from` in dtype `to`: as dtype_store does (ints wrap) */
ir_number ir_cast(tn_dtype to, tn_dtype from, ir_number v);
/* an integer as this dtype holds it: two's complement wrap, bool 0 or 1 */
int64_t ir_wrap(tn_dtype t, int64_t v);
/* a double as this dtype holds it: rounded to f32, f16, bf16 */
double ir_round(tn_dtype t, double v);

/* what an integer type holds; the greatest u64 has the bits of -1 */
int64_t ir_int_least(tn_dtype t);
int64_t ir_int_greatest(tn_dtype t);
/* Does it hold v, an integer that is written with its sign? */
bool ir_int_holds(tn_dtype t, int64_t v);
/* Adds the decimal digits of an integer of t, or of a bool 0 or 1. */
void ir_add_int(str *s, tn_dtype t, int64_t v);
/* dtype in which values of t are computed: f32 for f16, f8 .., i8 for i4 */
static inline tn_dtype ir_wide(tn_dtype t)
{
	return dtype_wide(t);
}

/* ---- monoids ----------------------------------------------------------- */

/*
 * monoid.def: components, their result dtypes ("T" the element's, "S" the
 * element's, summed in dtype_acc, "A" its accumulator, "K" i64), identity and
 * combination. f16 and bf16 are always combined in f32. The combination is text in the notation
 * over x0 x1 x2 (so far) and y0 y1 y2 (next), parsed once into exprs with
 * EX_PARAM 0..2 and 3..5; so the interpreter and the emitter need no second
 * definition. lowest(T) of identities is -inf for floats, the least integer else.
 */
enum ir_monoid_id { /* order of monoid.def */
	IR_SET = -1,
	IR_SUM,
	IR_PROD,
	IR_MAX,
	IR_MIN,
	IR_AND,
	IR_OR,
	IR_ARGMAX,
	IR_ARGMIN,
	IR_WELFORD,
	IR_SOFTMAX /* rescalable (m, l, acc): online softmax */
};
typedef struct ir_monoid {
	const char *name, *token; /* "argmax", "argmax=" */
	int32_t n_comp;
	const char *comp; /* "TK" */
	const char *identity[IR_MAX_COMP], *combine[IR_MAX_COMP];
	bool rescalable; /* component 0 is a maximum; others scale by exp(old - new) */
	const char *doc;
} ir_monoid;

int32_t ir_monoid_n(void);
const ir_monoid *ir_monoid_at(int32_t monoid);
int32_t ir_monoid_find(const char *name, size_t n); /* -1 unknown */
/* in which a component is combined, and in which it is stored */
tn_dtype ir_monoid_acc(int32_t monoid, int32_t comp, tn_dtype element);
tn_dtype ir_monoid_result(int32_t monoid, int32_t comp, tn_dtype element);

/* ---- rows and instances -------------------------------------------------- */

typedef struct ir_table ir_table; /* the built-in rows and those of the user */
typedef struct ir_row ir_row;

ir_table *ir_table_new(arena *a);
int32_t ir_table_n(const ir_table *t);
const ir_row *ir_table_at(const ir_table *t, int32_t i);
bool ir_table_is_user(const ir_table *t, int32_t i); /* by ir_table_define */
const ir_row *ir_table_find(const ir_table *t, const char *name);
/* Adds "; near: relu, prelu": names similar to an unknown one. */
void ir_table_near(str *s, const ir_table *t, const char *name);
/* parse one row in the notation and add it; throws notation.* with a caret */
const ir_row *ir_table_define(ir_table *t, const char *text, size_t n, loc at);
/* A row of no table: parsed and checked; or only a name for instances. */
const ir_row *ir_row_make(arena *a, const char *text, size_t n, loc at);
const ir_row *ir_row_named(arena *a, const char *name);
const char *ir_row_name(const ir_row *r);
const char *ir_row_text(const ir_row *r); /* as written */
const char *ir_row_doc(const ir_row *r);
bool ir_row_has_grad(const ir_row *r); /* has it a grad block? */
bool ir_row_is_user(const ir_row *r); /* made by ir_table_define */

typedef enum attr_kind {
	ATTR_INT,
	ATTR_REAL,
	ATTR_INTS,
	ATTR_DTYPE,
	ATTR_STRING /* einsum's equation */
} attr_kind;
typedef struct ir_attr {
	const char *name;
	attr_kind kind;
	int64_t i;
	double f;
	int32_t n;
	const int64_t *ints;
	tn_dtype dtype;
	const char *string;
	loc at;
} ir_attr;

/* attributes of a row, for documentation, parsing and random programs */
typedef struct ir_param {
	const char *name;
	bool is_operand;
	const char *pattern;	 /* as written */
	const char *dtype_class; /* operand: "" num float int bool */
	const char *kind;	 /* attribute: int real flag ints axis axes mask perm dtype string */
	const char *default_text; /* NULL: required */
} ir_param;
int32_t ir_row_n_params(const ir_row *r);
const ir_param *ir_row_param(const ir_row *r, int32_t i);
bool ir_row_is_variadic(const ir_row *r); /* concat, stack, einsum */
/* The row that joins the results of parts of this one's operands, where there
 * are more than IR_MAX_OPERANDS; NULL: there may not be more. */
const ir_row *ir_row_join(const ir_table *t, const ir_row *r);
int32_t ir_row_n_results(const ir_row *r); /* -1: depends on attributes (split) */

typedef struct ir_type {
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
} ir_type;
/* Bytes of all its elements. */
static inline size_t ir_type_bytes(const ir_type *t)
{
	return (size_t)shape_numel(t->shape, t->rank) * dtype_size(t->dtype);
}
/* "f32[2,3]" */
static inline void ir_type_add(str *s, const ir_type *t)
{
	str_add(s, dtype_name(t->dtype));
	str_shape(s, t->shape, t->rank);
}

static inline bool ir_type_same(const ir_type *x, const ir_type *y)
{
	return x->dtype == y->dtype && x->rank == y->rank &&
		(x->rank == 0 ||
			memcmp(x->shape, y->shape,
				(size_t)x->rank * sizeof x->shape[0]) == 0);
}

/* How many a call has room for, 1 to IR_MAX_PIECES, also of one that is wrong;
 * operand: the first one's type, NULL: not known. */
int32_t ir_row_count_results(const ir_row *r, const ir_type *operand,
	int32_t n_attrs, const ir_attr *attr);

/* The expression tree of an instance: plain, no sharing, no simplification. */
typedef enum in_kind {
	IN_INT,	   /* i */
	IN_REAL,   /* f */
	IN_LETTER, /* letter number i: its current value */
	IN_ADD, IN_SUB, IN_MUL, IN_DIV, IN_MOD, /* index arithmetic, floor; a, b */
	IN_CLAMP,  /* max(0, min(a, i - 1)) */
	IN_POS,	   /* row-major position of the left side in its tensor */
	IN_READ,   /* tensor at index[] */
	IN_CALL,   /* scalar function fn of arg[] */
	IN_WHERE,  /* arg[0] ? arg[1] : arg[2], lazy */
	IN_ELSE,   /* arg[0] if every read in it is inside its tensor, else arg[1] */
	IN_INSIDE, /* bool: the read arg[0] is inside */
	IN_CAST,   /* arg[0] in dtype */
	IN_STOP	   /* arg[0]; no gradient */
} in_kind;
typedef struct in_node in_node;
struct in_node {
	in_kind kind;
	tn_dtype dtype; /* of the value; index arithmetic is i64 */
	int64_t i;
	double f;
	int32_t tensor, fn, n_index;
	bool flat; /* READ x[*]: index[0] is the row-major element number, n_index 1 */
	/* READ of data as a part of an index: lo <= value < hi; both 0: the index says */
	int64_t lo, hi;
	const in_node *const *index;
	const in_node *arg[IR_MAX_ARGS]; /* ADD.. use arg[0], arg[1] */
};

/* Are they the same expression? */
bool ir_same(const in_node *a, const in_node *b);

typedef struct in_tensor {
	const char *name;
	ir_type type;
	int32_t operand; /* number of the operand it is, else -1 */
	int32_t result;	 /* number of the result it is, else -1 */
	int32_t next_of; /* result x': the operand it is the next version of, else -1 */
} in_tensor;

typedef struct in_eqn {
	int32_t n_out, out[IR_MAX_COMP];
	int32_t monoid;	 /* IR_SET for '=' */
	bool is_update;	 /* out has elements from an earlier equation: combine with them */
	bool skip;	 /* instances whose left index is outside are dropped */
	int32_t n_left;	 /* = rank of out */
	const in_node *const *left;
	int32_t n_letters;
	const int32_t *letters; /* letters that occur, left ones first */
	const in_node *body[IR_MAX_COMP];
	bool is_scan;		/* reads its own result at other places */
	int32_t scan_axis;	/* of the result: the position that is shifted */
	int32_t scan_letter, scan_step; /* 1: ascending, reads earlier ones; -1 */
} in_eqn;

/* A row on given shapes, dtypes and attributes. */
typedef struct ir_inst {
	const ir_row *row;
	int32_t n_letters;
	const struct in_letter {
		const char *name; /* "i_1" for axis 1 of pack i.. */
		int64_t extent;	  /* may be 0 */
	} *letter;
	int32_t n_tensors; /* operands first, in order */
	const in_tensor *tensor;
	int32_t n_results;
	const int32_t *result; /* tensors */
	int32_t n_eqns;	       /* 0 for opaque rows */
	const in_eqn *eqn;
	const struct ir_opaque *opaque;
	int32_t n_opaque_attr;
	const int64_t *opaque_attr;
	/* opaque: axes of packs that occur in every operand and every result, as
	 * in sys_eqn. The row is independent along them. */
	int32_t n_batch;
	const int32_t *batch;
	/* what it was asked for by: a row of a table; NULL: made otherwise */
	const ir_row *asked;
	int32_t n_attrs;
	const ir_attr *attr; /* only those given */
} ir_inst;

/*
 * Unification: types of operands and attributes -> instance with all result
 * types. Throws rule ids "ROW.LETTER", messages as in docs/notation.md. shown: what
 * the user calls the operands, for messages; NULL, or NULL of one: nothing.
 */
ir_inst *ir_instantiate(arena *a, const ir_table *t, const ir_row *r,
	int32_t n_operands, const ir_type *operand, const char *const *shown,
	int32_t n_attrs, const ir_attr *attr, loc at);

/*
 * The row on small shapes and attributes that fit it, for people to look at;
 * NULL: none was found, or it has any number of operands.
 */
ir_inst *ir_row_example(arena *a, const ir_table *t, const ir_row *r);

/*
 * The grad block of fwd's row on fwd's shapes: an instance whose operands are
 * fwd's operands, its results, and the cotangents of those; result k is what
 * comes to operand of[k], each a float; no equation may be there for it. NULL:
 * the row has no grad block.
 */
ir_inst *ir_instantiate_grad(
	arena *a, const ir_inst *fwd, const int32_t **of);

/*
 * An instance as a row of the notation with a new name, without packs and
 * attributes: instantiated on the same operands it means the same. Not of
 * opaque rows, nor of writes.
 */
void ir_inst_print(str *out, const ir_inst *p, const char *name);

/* The term of a sum whose result has dtype t: that of `+= cast(e, t)` is e in the dtype
 * that sums accumulate in, because the finished sum is rounded, not each term. */
static inline const in_node *ir_term(const in_node *n, tn_dtype t)
{
	return n->kind == IN_CAST && n->dtype == t && dtype_is_float(t) &&
			       dtype_acc(t) != t && n->arg[0]->dtype == dtype_acc(t)
		       ? n->arg[0]
		       : n;
}

/* bodies of an equation: one, or one per component of a tuple monoid */
static inline int32_t ir_n_bodies(const in_eqn *q)
{
	return q->n_out;
}

/* Opaque rows, and loops: plain C over whole, dense tensors. */
typedef struct ir_opaque {
	const char *name;
	/* in[], out[]: data; types as unified; throws through e */
	void (*run)(env *e, const struct ir_opaque *self,
		const ir_type *in_type, const void *const *in,
		const ir_type *out_type, void *const *out,
		const int64_t *attr);
	const struct ir_loop *loop; /* a loop of a program; NULL: a row */
	/* of a row: texts in C99, which ends with NULL, of what its function calls
	 * and of run_ROW(const row_call *) itself, for exported C; and the bytes
	 * of the room that it needs */
	const char *const *const *text;
	size_t (*room)(const ir_type *in_type, const ir_type *out_type,
		const int64_t *attr);
} ir_opaque;
const ir_opaque *ir_opaque_find(const char *name);

/* docs/ops.md: every row of the table, by chapter of ops.def */
void ir_ops_md(str *out, const ir_table *t);
void ir_attr_print(str *out, const ir_attr *a); /* axis=1 */

#endif
