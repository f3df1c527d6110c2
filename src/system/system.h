/*
 * system.h: interface of system/: equations over tensors, in pull form, with
 * index forms. Fusion and code generation work on these; operations are not
 * visible in them (labels are only for printing).
 *
 *   expr     interned expressions; substitution
 *   system   tensors and equations; printing and parsing
 *   lowering of the equations of an instance: lower.h, for program/
 */
#ifndef SYSTEM_H
#define SYSTEM_H

#include "ix/ix.h"
#include "notation/notation.h"

/* ---- expressions of a system -------------------------------------------- */

typedef enum ex_kind {
	EX_CONST,  /* c.f (floats) or c.i (ints, bool) */
	EX_INDEX,  /* i64: value of form */
	EX_READ,   /* element `form` (flat, row-major) of `tensor` */
	EX_CALL,   /* scalar function fn of arg[] */
	EX_SELECT, /* arg[0] ? arg[1] : arg[2]; evaluates only the branch taken */
	EX_INSIDE, /* bool: lo <= form < hi */
	EX_CAST,   /* arg[0] in this dtype */
	EX_PARAM   /* parameter number c.i (monoid combinations only) */
} ex_kind;

/*
 * Interned per system: pointers are equal iff the trees are. Only READ and CAST
 * have dtype f16 or bf16: arithmetic is in f32, and the value of an equation is
 * rounded once (lowering and substitution insert the casts). Integers of 8 and
 * 16 bits wrap after every operation.
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
	int64_t flops; /* of the tree, saturated; see ex_flops */
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
	int32_t eqn;  /* the equation that computes it; -1: an input */
	int32_t comp; /* the component of that equation */
	bool is_input, is_output;
	bool steady; /* an input that mostly keeps its elements from run to run */
	int32_t storage; /* number of its storage if that is overwritten; else -1 */
} sys_tensor;

typedef struct sys_axis {
	int64_t extent; /* >= 2 in a lowered system: extent 1 is dropped */
	axis_kind kind;
	const char *name; /* letter of the row, for printing */
} sys_axis;

/*
 * Pull form:  out[axes 0 .. n_left-1]  monoid=  body(all axes)
 * dtypes: with IR_SET, body has the dtype of out. With a monoid, body[k] and
 * init[k] have the dtype ir_monoid_acc(monoid, k, dtype of out[0]), that of the
 * accumulator; the final value is rounded to the dtype of out[k].
 * The left axes are bare and row-major: the element number of `out` is the
 * mixed-radix number of the left axes (axes of extent 1 are dropped, which does
 * not change it). The value is init (+) the sum of body over the R axes; init
 * is over the left axes; NULL: the identity of the monoid.
 * Scan: one left axis is AXIS_S; body reads out[0] at its own index, shifted on
 * that axis by c < 0 (scan_step 1: ascending) or c > 0 (scan_step -1).
 * Push form (scatter): push is the element number of out. The left axes (kind
 * P) are the bare axes of out, on which `push` is injective; all others are
 * reduced. init is over one axis 0, the element number of out (init_flat).
 * Opaque: a named C function of whole tensors (opaque_in[]), without axes.
 * All extents are >= 1: equations without elements are not made, and reductions
 * over no elements are IR_SET of the identity.
 */
typedef struct sys_eqn {
	int32_t id;
	const char *label; /* "add", "softmax.m": for printed MapExpr */
	const char *op;	   /* row name */
	int32_t call;	   /* number of the program's call */
	int32_t again;	   /* of a call that is made again to save memory: the number,
			    * from 1, of the run of such calls that it is in; else 0 */
	int32_t square;	   /* of a square that is computed again: the number, from 1, of
			    * its group of readers (recompute.c); else 0 */
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
	const int64_t *opaque_attr; /* arguments of the row's C function */
	/* opaque: axis b of the batch is axis batch[b * n + t] of tensor t; the
	 * n tensors are the operands, then the results */
	int32_t n_batch;
	const int32_t *batch;
	bool is_view; /* IR_SET of one injective read, nothing else */
	const char *why; /* why this copy is needed, if a write in place needs it; else NULL */
} sys_eqn;

typedef struct ir_system {
	arena *a;
	ix *x;
	VEC(sys_tensor) tensor;
	VEC(sys_eqn) eqn; /* topological order; each tensor has one equation at most */
	VEC(int32_t) input, output; /* tensors, in the program's order; an output may be an input, or occur twice */
	VEC(int32_t) store; /* by output: the input whose memory it is stored in; -1, or an index beyond the end: its own array */
	bool in_rounds; /* the body of a loop: it runs many times on the same weights */
	int32_t n_caller_storages; /* storages from this number on are internal; -1: all are the caller's */
	void *intern; /* private: expression table */
} ir_system;

ir_system *ir_system_new(arena *a, ix *x);
/*
 * The number of the input (a param) whose memory all versions of t's storage
 * are written to, each over the one before. -1: t has its own memory.
 */
int32_t ir_place_of_storage(const ir_system *s, int32_t t);
/* Do all versions of t's storage use the same memory? */
bool ir_in_place(const ir_system *s, int32_t t);
/* Are a and b versions of one storage that use the same memory? */
bool ir_same_memory(const ir_system *s, int32_t a, int32_t b);
/* A trial: ir_trial_end removes the tensors that were added since
 * ir_trial_begin; nothing may refer to them any longer. */
typedef struct ir_trial {
	int32_t n_tensors;
	map *name;
} ir_trial;
ir_trial ir_trial_begin(ir_system *s, arena *a);
void ir_trial_end(ir_system *s, const ir_trial *t);
/* Adds a tensor without an equation; makes its name unique. */
int32_t ir_add_tensor(ir_system *s, const char *name, tn_dtype t, int32_t rank,
	const int64_t *shape);
/* Adds a copy of e, sets its id, its is_view and sys_tensor.eqn; returns its number. */
int32_t ir_add_eqn(ir_system *s, const sys_eqn *e);
/* The box of an equation; the extents are in the arena. */
ix_box ir_eqn_box(ir_system *s, const sys_eqn *e);
/* The row-major number of the left axes, over that box. */
const ix_form *ir_left_number(ir_system *s, const sys_eqn *e);

/* Constructors: interned; they check their arguments and derive the dtype. */
const expr *ex_const_f(ir_system *s, tn_dtype t, double v);
const expr *ex_const_i(ir_system *s, tn_dtype t, int64_t v);
const expr *ex_index(ir_system *s, const ix_form *f);
const expr *ex_read(ir_system *s, int32_t tensor, const ix_form *at);
const expr *ex_call(ir_system *s, int32_t fn, const expr *const *arg);
/* Is it a call of the scalar function of that name; a constant that is 0? */
bool ex_is_call(const expr *e, const char *name);
bool ex_is_zero(const expr *e);
const expr *ex_select(ir_system *s, const expr *c, const expr *a,
	const expr *b);
const expr *ex_inside(ir_system *s, const ix_form *f, int64_t lo, int64_t hi);
const expr *ex_cast(ir_system *s, tn_dtype t, const expr *a);
/* e without casts from dtype t to a wider dtype and back. */
const expr *ex_uncast(const expr *e, tn_dtype t);
const expr *ex_param(ir_system *s, tn_dtype t, int32_t number);

/*
 * Replaces the axes of e's box by the forms with[], over d, and simplifies under
 * the guards that hold. swap, if not NULL, is called with every READ after that,
 * and returns a replacement or NULL.
 */
typedef const expr *ex_swap(void *arg, const expr *read, const ix_dom *d);
const expr *ex_subst(ir_system *s, const ix_dom *d, const expr *e, int32_t n,
	const int64_t *old_extent, const ix_form *const *with, ex_swap *swap,
	void *arg);
/* Replace each tensor t that e or f reads, data included, by tensor[t]. */
const expr *ex_renumber(ir_system *s, const ix_dom *d, const expr *e,
	const int32_t *tensor);
const ix_form *ir_renumber(ir_system *s, const ix_dom *d, const ix_form *f,
	const int32_t *tensor);
/* d with the facts that follow from c, or from its negation if !holds */
ix_dom ir_dom_when(ir_system *s, const ix_dom *d, const expr *c, bool holds);
/* The reads of e, each (tensor, form) once, in order of first occurrence, with
 * those inside forms (fun atoms). */
typedef struct ex_reads {
	int32_t n;
	const struct ex_read_item {
		int32_t tensor;
		const ix_form *at;
		bool is_index; /* its value is part of an index */
	} *at;
} ex_reads;
ex_reads ex_list_reads(ir_system *s, const expr *e);
/* Rough cost of one evaluation in flops (exp 12, div 4, others 1). */
int64_t ex_flops(const expr *e);
/* The power, in quarters, if e is one of 1/4, 1/2, 3/4, 3/2 or -1/2, which kernels make of
 * square roots; else 0. */
int32_t ex_root(const expr *e);

/* The combination of a monoid, x (+) y, on accumulators of dtypes acc[]. */
const expr *ir_combine(ir_system *s, int32_t monoid, int32_t comp,
	const tn_dtype *acc);
/* The same if y is a single element whose index (components K) is larger than
 * all indices in x. */
const expr *ir_combine_next(ir_system *s, int32_t monoid, int32_t comp,
	const tn_dtype *acc);
const expr *ir_identity(ir_system *s, int32_t monoid, int32_t comp,
	tn_dtype acc);

void ir_system_verify(ir_system *s); /* throws TN_EINTERNAL */
/* The same without what no output needs; s itself where all is needed. */
ir_system *ir_prune(ir_system *s);
/* residues.c: replaces sums of at least so many products that walk an axis by residues,
 * at most `most` of them, by a sum for each residue. */
void ir_residues(ir_system *s, int64_t most, double least);
/* relate.c: the axis of e that each left axis of q is at a read of q's result in e;
 * false: an axis of q is none of e. */
bool ir_read_axes(ir_system *s, const sys_eqn *e, const ix_form *at, const sys_eqn *q,
	int32_t *axis);
/* The expression e over the axes of q, at the element of q's result that has this number,
 * over d. q has no reduced axes. */
const expr *ir_at_number(ir_system *s, const sys_eqn *q, const expr *e, const ix_dom *d,
	const ix_form *number);
/* scales.c: moves factors of rows away from values of two bytes that are multiplied; s
 * itself if there are none. */
ir_system *ir_move_scales(ir_system *s);
/* tf32.c: gives factors in f32 of products of matrices 10 bits of fraction. */
void ir_round_factors(ir_system *s);
/* What is computed again rather than stored: products of at most so many terms, whose
 * elements for one set of rows and keys would take more bytes than this. */
typedef struct sys_recompute {
	int64_t terms;
	double bytes;
} sys_recompute;
enum { SYS_MOST_GROUPS = 8 };
/* Are these the numbers of different groups that read the same squares? */
static inline bool sys_other_group(int32_t a, int32_t b)
{
	return a > 0 && b > 0 && a != b &&
	       (a - 1) / SYS_MOST_GROUPS == (b - 1) / SYS_MOST_GROUPS;
}
/* recompute.c: the system in which each group of sums has such squares of its own; s
 * itself if there are none. */
ir_system *ir_recompute(ir_system *s, const sys_recompute *limit);
void ir_system_print(str *out, ir_system *s);
/* names[axis]: names of the axes; NULL: a_<axis> */
void ir_expr_print(str *out, ir_system *s, const expr *e, const ix_box *box,
	const char *const *names);
/*
 * The names that a form or an expression in a text may use: axes of its box,
 * tensors, and parameters x0, x1 .. of these dtypes. Throws FAMILY.RULE of the
 * lexer.
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

#endif
