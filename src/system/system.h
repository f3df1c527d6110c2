/*
 * system.h: the door of system/: equations over tensors in pull form, on index
 * forms. It is what fusion and code generation see. Operations have no names
 * any more (labels are kept for printing only).
 *
 *   expr     interned expressions; substitution
 *   system   tensors and equations; their text, printed and read
 *   lowering the equations of an instance, in lower.h, for program/
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
/* Between these two tensors may be added that nobody has seen behind them:
 * their numbers and names are free again. */
typedef struct ir_trial {
	int32_t n_tensors;
	map *name;
} ir_trial;
ir_trial ir_trial_begin(ir_system *s, arena *a);
void ir_trial_end(ir_system *s, const ir_trial *t);
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

#endif
