/*
 * ir.h: the door of ir/: operations as rows, programs, systems.
 *
 *   scalar   scalar functions (scalar.def): name, signature, meaning, C text
 *   monoid   reductions (monoid.def): identity and combination, as text
 *   row      one operation in the notation (ops.def, user `op` text)
 *   inst     a row on given shapes: letters with extents, no packs, no
 *            attributes. What the interpreter evaluates: the oracle.
 *   program  named calls of rows on values: the .tn text
 *   system   equations over tensors in pull form, on index forms: what fusion
 *            and code generation see. No names of operations needed any more
 *            (labels are kept for printing only).
 *
 *   .tn text -> ir_program -> (ir_instantiate each call) -> ir_system
 */
#ifndef IR_H
#define IR_H

#include "base/base.h"
#include "ix/ix.h"

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
	double (*g)(int64_t x, int64_t y, int64_t z); /* else NULL */
	int32_t flops; /* rough cost: 12 for exp and its like, 4 div, 1 */
	const char *laws; /* see scalar.def */
} ir_scalar;

int32_t ir_scalar_n(void);
const ir_scalar *ir_scalar_at(int32_t fn);
int32_t ir_scalar_find(const char *name, size_t n); /* -1 unknown */
/* Result dtype from the signature; -1 when the arguments do not fit. */
int32_t ir_scalar_dtype(int32_t fn, const tn_dtype *arg, int32_t n);
/* Value, not yet rounded to the result. arg: dtype of the last argument; v: .f of floats, .i of ints and bool. */
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

/* ---- expressions of a system -------------------------------------------- */

typedef enum ex_kind {
	EX_CONST,  /* c.f (floats) or c.i (ints, bool) */
	EX_INDEX,  /* i64: value of form */
	EX_READ,   /* element `form` (flat, row-major) of `tensor` */
	EX_CALL,   /* scalar function fn of arg[] */
	EX_SELECT, /* arg[0] ? arg[1] : arg[2]; the branch not taken is not evaluated */
	EX_INSIDE, /* bool: lo <= form < hi */
	EX_CAST,   /* arg[0] in this dtype */
	EX_PARAM   /* parameter number c.i (monoid combinations only) */
} ex_kind;

/*
 * Interned per system: equal pointers iff the same tree. READ and CAST are the
 * only nodes of dtype f16/bf16: arithmetic on them is in f32 and rounded once,
 * where the value of an equation is formed (lowering puts the casts; so does
 * substitution). Small ints wrap after every operation.
 */
typedef struct expr expr;
struct expr {
	ex_kind kind;
	tn_dtype dtype;
	int32_t id; /* dense in the system */
	int32_t tensor;
	int32_t fn, n_args;
	const ix_form *form;
	int64_t lo, hi;
	struct {
		double f;
		int64_t i;
	} c;
	const expr *arg[IR_MAX_ARGS];
	int64_t flops; /* of the tree, saturating; see ex_flops */
	int32_t depth;
};

/* ---- systems ------------------------------------------------------------- */

typedef enum axis_kind {
	AXIS_P, /* parallel: a bare axis of the left side */
	AXIS_R, /* reduced */
	AXIS_S	/* scan: on the left side, iterated in order */
} axis_kind;

typedef struct sys_tensor {
	const char *name; /* unique in the system */
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
	int64_t numel;
	int32_t eqn;  /* the equation that makes it; -1 input */
	int32_t comp; /* as which component */
	bool is_input, is_output;
	bool steady; /* an input that stays as it is from run to run, mostly */
	int32_t storage; /* inputs that are overwritten: tensors of one storage share this number; else -1 */
} sys_tensor;

typedef struct sys_axis {
	int64_t extent; /* >= 2 in a lowered system: extent 1 is dropped */
	axis_kind kind;
	const char *name; /* letter of the row, for printing */
} sys_axis;

/*
 * Pull form:  out[axes 0 .. n_left-1]  monoid=  body(all axes)
 * dtypes: IR_SET: body has the dtype of out. A monoid: body[k] and init[k] have
 * the dtype ir_monoid_acc(monoid, k, e) where e is the dtype of out[0] ("A"
 * first components: of the accumulator); the finished value is rounded to out[k].
 * The left axes are bare and row-major: element number of `out` = mixed-radix
 * number of the left axes (extent-1 axes dropped, so it equals the row-major
 * number in the tensor's shape). Value = init (+) sum over the R axes of body;
 * init is over the left axes, NULL = identity of the monoid.
 * Scan: one left axis is AXIS_S; body reads out[0] at the own position but for
 * a shift c < 0 (scan_step = 1: ascending) or c > 0 (scan_step = -1) on it.
 * Push form (scatter): push != NULL is the element number of out; left axes are
 * the out axes that are bare (kind P) and that `push` walks injectively, the
 * others are reduced; init is over out's own row-major number as the single
 * axis 0 of box [numel] (init_flat).
 * Opaque: a named C function of whole tensors (in reads[]), no axes.
 * Extents are >= 1 everywhere: equations without elements are not made,
 * reductions over nothing are IR_SET of the identity.
 */
typedef struct sys_eqn {
	int32_t id;
	const char *label; /* "add", "softmax.m": for printed MapExpr */
	const char *op;	   /* row name */
	int32_t call;	   /* number of the program's call */
	int32_t monoid;	   /* ir_monoid_id, IR_SET for '=' */
	int32_t n_out, out[IR_MAX_OUT]; /* more than IR_MAX_COMP: opaque */
	int32_t n_axes, n_left;
	sys_axis axis[IR_MAX_AXES];
	const expr *body[IR_MAX_OUT], *init[IR_MAX_OUT]; /* opaque: NULL */
	const ix_form *push;
	int32_t scan_axis, scan_step; /* -1, 0 when none */
	const struct ir_opaque *opaque;
	int32_t n_opaque_in;
	const int32_t *opaque_in;
	int32_t n_opaque_attr;
	const int64_t *opaque_attr; /* as the row's opaque function wants them */
	/* opaque: axis b of the batch is axis batch[b * n + t] of tensor t, of
	 * n operands and results in their order */
	int32_t n_batch;
	const int32_t *batch;
	bool is_view; /* IR_SET, one bare injective read, nothing else */
	const char *why; /* of a copy that a write in place made necessary; else NULL */
} sys_eqn;

typedef struct ir_system {
	arena *a;
	ix *x;
	VEC(sys_tensor) tensor;
	VEC(sys_eqn) eqn; /* topological order; every tensor is made once */
	VEC(int32_t) input, output; /* tensors, in the program's order; an output may be an input, or occur twice */
	VEC(int32_t) store; /* by output: the input in whose memory it ends; -1 or beyond its end: in an array of its own */
	int32_t n_caller_storages; /* storages from this number on are nobody's but ours; -1: none is */
	void *intern; /* private: expression table */
} ir_system;

ir_system *ir_system_new(arena *a, ix *x);
/*
 * The number of the input in whose memory all versions of the storage of t
 * are made, one over the other: a param's. -1: t has memory of its own.
 */
int32_t ir_place_of_storage(const ir_system *s, int32_t t);
/* Are all versions of the storage of t made in one memory? */
bool ir_in_place(const ir_system *s, int32_t t);
/* adds a tensor that no equation makes yet; the name is made unique */
int32_t ir_add_tensor(ir_system *s, const char *name, tn_dtype t, int32_t rank,
	const int64_t *shape);
/* adds a copy of e (id, sys_tensor.eqn and is_view are filled in); returns its number */
int32_t ir_add_eqn(ir_system *s, const sys_eqn *e);
/* the box of an equation (extents live in the arena) */
ix_box ir_eqn_box(ir_system *s, const sys_eqn *e);

/* interned constructors; args are checked, dtype derived where not given */
const expr *ex_const_f(ir_system *s, tn_dtype t, double v);
const expr *ex_const_i(ir_system *s, tn_dtype t, int64_t v);
const expr *ex_index(ir_system *s, const ix_form *f);
const expr *ex_read(ir_system *s, int32_t tensor, const ix_form *at);
const expr *ex_call(ir_system *s, int32_t fn, const expr *const *arg);
const expr *ex_select(ir_system *s, const expr *c, const expr *a,
	const expr *b);
const expr *ex_inside(ir_system *s, const ix_form *f, int64_t lo, int64_t hi);
const expr *ex_cast(ir_system *s, tn_dtype t, const expr *a);
const expr *ex_param(ir_system *s, tn_dtype t, int32_t number);

/*
 * e with the axes of its box replaced by forms over d, simplified under the
 * guards on the way; and with reads replaced: swap (may be NULL) is asked for
 * every READ after substitution and returns a replacement or NULL.
 */
typedef const expr *ex_swap(void *arg, const expr *read, const ix_dom *d);
const expr *ex_subst(ir_system *s, const ix_dom *d, const expr *e, int32_t n,
	const int64_t *old_extent, const ix_form *const *with, ex_swap *swap,
	void *arg);
/* e and f with tensor[t] for every tensor t that they read, data included */
const expr *ex_renumber(ir_system *s, const ix_dom *d, const expr *e,
	const int32_t *tensor);
const ix_form *ir_renumber(ir_system *s, const ix_dom *d, const ix_form *f,
	const int32_t *tensor);
/* d with what is known where c holds, or where it does not (d->facts if nothing) */
ix_dom ir_dom_when(ir_system *s, const ix_dom *d, const expr *c, bool holds);
/* the reads of e, each (tensor, form) once, in order of first occurrence; reads inside forms (fun atoms) included */
typedef struct ex_reads {
	int32_t n;
	const struct ex_read_item {
		int32_t tensor;
		const ix_form *at;
		bool is_index; /* stands inside an index: data */
	} *at;
} ex_reads;
ex_reads ex_list_reads(ir_system *s, const expr *e);
/* rough cost in flops per evaluation (exp 12, div 4, others 1) */
int64_t ex_flops(const expr *e);
int32_t ex_n(const ir_system *s); /* ids are 0 .. ex_n - 1 */

/* combination and identity of an equation's monoid on its dtypes */
const expr *ir_combine(ir_system *s, int32_t monoid, int32_t comp,
	const tn_dtype *acc);
/* the same when y is a single element, whose index (components K) is larger
 * than all that are in x */
const expr *ir_combine_next(ir_system *s, int32_t monoid, int32_t comp,
	const tn_dtype *acc);
const expr *ir_identity(ir_system *s, int32_t monoid, int32_t comp,
	tn_dtype acc);

void ir_system_verify(ir_system *s); /* throws TN_EINTERNAL */
void ir_system_print(str *out, ir_system *s);
/* names[axis]: as they are to be printed (NULL: a_<axis>) */
void ir_expr_print(str *out, ir_system *s, const expr *e, const ix_box *box,
	const char *const *names);
/*
 * What a text outside of a system calls by name: the axes of its box, tensors
 * by number, and x0, x1 .. of these dtypes. Throws FAMILY.RULE of the lexer.
 */
struct lex;
typedef struct ir_scope {
	ix_dom dom;
	int32_t n_names;
	const char *const *names; /* of the axes */
	map *tensor;		  /* name -> number */
	int32_t n_params;
	const tn_dtype *param;
} ir_scope;
const ix_form *ir_form_parse(struct lex *l, ir_system *s, const ir_scope *in);
const expr *ir_expr_parse(struct lex *l, ir_system *s, const ir_scope *in);
void ir_form_print(str *out, ir_system *s, const ix_form *f, const ix_box *box,
	const char *const *names);
void ir_eqn_print(str *out, ir_system *s, const sys_eqn *e);
ir_system *ir_system_parse(arena *a, ix *x, const char *text, size_t n,
	const char *file); /* parse(print(s)) prints the same */

/* ---- rows and instances -------------------------------------------------- */

typedef struct ir_table ir_table; /* the built-in rows and those of the user */
typedef struct ir_row ir_row;

ir_table *ir_table_new(arena *a);
int32_t ir_table_n(const ir_table *t);
const ir_row *ir_table_at(const ir_table *t, int32_t i);
bool ir_table_is_user(const ir_table *t, int32_t i); /* by ir_table_define */
const ir_row *ir_table_find(const ir_table *t, const char *name);
/* Adds "; near: relu, prelu": what may be meant by a name that is none. */
void ir_table_near(str *s, const ir_table *t, const char *name);
/* parse one row in the notation and add it; throws notation.* with a caret */
const ir_row *ir_table_define(ir_table *t, const char *text, size_t n, loc at);
/* A row of no table: parsed and checked; or only a name for instances. */
const ir_row *ir_row_make(arena *a, const char *text, size_t n, loc at);
const ir_row *ir_row_named(arena *a, const char *name);
const char *ir_row_name(const ir_row *r);
const char *ir_row_text(const ir_row *r); /* as written */
const char *ir_row_doc(const ir_row *r);
bool ir_row_is_opaque(const ir_row *r);
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
	const in_node *const *index;
	const in_node *arg[IR_MAX_ARGS]; /* ADD.. use arg[0], arg[1] */
};

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
	/* opaque: axes of packs that stand in every operand and every result,
	 * as in sys_eqn. Each place on them is worked out by itself. */
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
 * The grad block of fwd's row on fwd's shapes: an instance whose operands are
 * fwd's operands, its results, and the cotangents of those; result k is what
 * comes to operand of[k], each a float; no equation may be there for it. NULL:
 * the row has no grad block.
 */
ir_inst *ir_instantiate_grad(
	arena *a, const ir_inst *fwd, const int32_t **of);

/*
 * An instance as a row of the notation under a name of its own, without packs
 * and attributes: instantiated on the same operands it means the same. Not of
 * opaque rows, nor of writes.
 */
void ir_inst_print(str *out, const ir_inst *p, const char *name);

/* bodies of an equation: one, or one per component of a tuple monoid */
static inline int32_t ir_n_bodies(const in_eqn *q)
{
	return q->n_out;
}

/* Opaque rows: plain C over whole, dense tensors. */
typedef struct ir_opaque {
	const char *name;
	/* in[], out[]: data; types as unified; throws through e */
	void (*run)(env *e, const ir_type *in_type, const void *const *in,
		const ir_type *out_type, void *const *out,
		const int64_t *attr);
} ir_opaque;
const ir_opaque *ir_opaque_find(const char *name);

/* ---- programs ------------------------------------------------------------ */

typedef struct ir_value {
	const char *name;
	const char *shown; /* what the user calls it; NULL: nothing */
	ir_type type;
	int32_t call;	/* -1: input */
	int32_t result; /* which result of the call */
	bool is_param;	/* input whose memory ends with its newest version */
	int32_t next_version; /* made by a write; -1: none */
	bool apart; /* is never one with a value that is equal */
	bool steady; /* input that stays as it is from run to run, mostly */
	loc at;
} ir_value;

typedef struct ir_call {
	const ir_row *row;
	int32_t n_args;
	const int32_t *arg; /* values */
	int32_t n_attrs;
	const ir_attr *attr; /* only those given */
	int32_t n_results;
	const int32_t *result; /* values */
	const ir_inst *inst;
	int32_t view; /* of a write: through which it was asked for; else -1 */
	loc at;
} ir_call;

typedef struct ir_program {
	arena *a;
	ir_table *table;
	VEC(ir_value) value;
	VEC(ir_call) call;
	VEC(int32_t) input, output;
	map *name;	   /* private: values by name */
	int32_t next_name; /* private: number of the next v0, v1, ... */
} ir_program;

ir_program *ir_program_new(arena *a, ir_table *t);
/* name NULL: it has none, and messages call it by the operand that it is */
int32_t ir_program_input(ir_program *p, const char *name, ir_type type, loc at);
/* Instantiates; result names may be NULL (then v0, v1, ...). Returns the call. */
int32_t ir_program_call(ir_program *p, const char *row, int32_t n_args,
	const int32_t *arg, int32_t n_attrs, const ir_attr *attr,
	const char *const *result_name, loc at);
void ir_program_output(ir_program *p, int32_t value);
/* As an input, and writable: at the end its memory holds its newest version. */
int32_t ir_program_param(ir_program *p, const char *name, ir_type type, loc at);
/* The newest version of a value, itself if it never was written. */
int32_t ir_program_newest(const ir_program *p, int32_t value);
/*
 * A call of an instance that is at hand already; of no row of the table, too.
 * name: of the results, NULL: v0, v1, ... Returns the call.
 */
int32_t ir_program_inst(ir_program *p, const ir_inst *inst, int32_t n_args,
	const int32_t *arg, const char *const *name, loc at);
/*
 * v = write(view, value): the next version of what view is a view of (through
 * calls that are views, down to an input or another call's result), with the
 * elements of the view replaced. Errors: [write.shape] [write.version] a
 * version has one next; [write.repeats] an element of the view is not an element of its own.
 */
int32_t ir_program_write(ir_program *p, int32_t view, int32_t value,
	const char *name, loc at);

/* ---- views (view.c) ---- */

/* Each result has one equation =, whose body is one bare read of operand 0. */
bool ir_inst_is_view(const ir_inst *p);
/* Its only result has the elements of operand 0, in their places. */
bool ir_inst_is_copy(const ir_inst *p);
/* Of a view: result r alone, as an instance. */
ir_inst *ir_view_part(arena *a, const ir_inst *p, int32_t r);
/*
 * From a place in result r of the view, by axis, forms over d, to the place in
 * operand 0 that it reads. fun[t]: id for data read from tensor t of the
 * instance. below has room for max(2, its rank).
 */
void ir_view_place(ix *x, const ix_dom *d, const ir_inst *view, int32_t r,
	const int64_t *fun, const ix_form *const *at, const ix_form **below);

/* .tn text: `op` rows, then program { ... }. Throws tn.* with a caret. */
ir_program *ir_program_parse(arena *a, const char *text, size_t n,
	const char *file);
/* docs/ops.md: every row of the table, by chapter of ops.def */
void ir_ops_md(str *out, const ir_table *t);
void ir_attr_print(str *out, const ir_attr *a); /* axis=1 */
void ir_program_print(str *out, const ir_program *p); /* parse(print(p)) = p */
void ir_program_verify(const ir_program *p);

/* Equations of all calls in pull form, simplified, dead ones removed. */
ir_system *ir_lower(arena *a, ix *x, const ir_program *p);

#endif
