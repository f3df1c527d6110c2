/*
 * kern.h: the door of kern/: the language of one kernel after all decisions.
 *
 * A kernel is structured: phases, in them blocks of statements, loops and
 * conditions. All that a target's printer has to know stands in it, and nothing
 * that it would have to decide.
 *
 *     kernel 0 fn_relu_0 {
 *       param p0: f32[1000] out
 *       param p1: f32[1000] in
 *       phase chunks 4 {
 *         %1: i64 = imin 256*chunk + 256, 1000
 *         for %i2 = 256*chunk .. %1 step 16 whole after %3 {
 *           %4: f32x16 = load p1[%i2]
 *           %5: f32x16 = relu %4
 *           store p0[%i2] = %5
 *         }
 *         for %i6 = %3 .. %1 {
 *           %7: f32 = load p1[%i6]
 *           %8: f32 = relu %7
 *           store p0[%i6] = %8
 *         }
 *       }
 *     }
 *
 * Types. dtype x lanes. bool of one lane is a condition; of several it is a
 * mask, whose lanes have `mask` bytes: those of what it selects (text m4x16).
 * f16, bf16, and u8 from arrays of bool, are what memory holds: `widen` makes
 * f32 and conditions of them, which are what is computed with, `narrow` goes
 * back.
 *
 * Values. Each is defined once: by a statement `let`, a loop, the phase (the
 * chunk's number); constants need no definition. A register (`var`) is a value
 * that `set` changes; it is read as it is then. Values are numbered from 1 in
 * order of creation, of the whole kernel; 0 is none.
 *
 * Forms. Addresses and bounds of loops are sums c0 + coef * value, of i64
 * values that are no registers. They are interned: equal pointers, equal forms.
 * What is not a sum (div, min ..) is a value of its own.
 *
 *   kern_new, kern_form_*, kern_ins, kern_let .. build.c    make a kernel
 *   kern_print, kern_parse     its text, and back
 *   kern_verify                what a text, or a pass, may get wrong
 *   kern_run                   its meaning, slowly
 */
#ifndef KERN_H
#define KERN_H

#include "notation/kernel_texts.h"
#include "system/system.h"

enum {
	KERN_MAX_PHASES = 4,
	KERN_MAX_ARGS = 3,
	KERN_MAX_LANES = 64,
	KERN_MAX_DEPTH = 200 /* of blocks within each other */
};

/* ---- types ---- */

typedef struct kern_type {
	tn_dtype dt;
	int32_t lanes; /* 1, 2, 4 .. 64 */
	int32_t mask;  /* dt bool, lanes > 1: bytes of a lane; else 0 */
} kern_type;

static inline kern_type kern_num(tn_dtype dt, int32_t lanes)
{
	return (kern_type){dt, lanes, 0};
}
static inline kern_type kern_mask(int32_t bytes, int32_t lanes)
{
	return (kern_type){TN_BOOL, lanes, lanes > 1 ? bytes : 0};
}
static inline kern_type kern_bool(void)
{
	return (kern_type){TN_BOOL, 1, 0};
}
static inline kern_type kern_i64(void)
{
	return (kern_type){TN_I64, 1, 0};
}
static inline bool kern_same_type(kern_type a, kern_type b)
{
	return a.dt == b.dt && a.lanes == b.lanes && a.mask == b.mask;
}
/* What an array of dt gives and takes: that of bool u8. */
static inline tn_dtype kern_stored(tn_dtype dt)
{
	return dt == TN_BOOL ? TN_U8 : dt;
}
const char *kern_type_text(arena *a, kern_type t); /* "f32x16", "m4x16" */

/* ---- operations ---- */

/* One line each in kern_op.def. */
typedef enum kern_op {
#define KERN_OP(id, name, operands, types, flags, doc) KERN_##id,
#include "kern/kern_op.def"
#undef KERN_OP
	KERN_N_OPS
} kern_op;

typedef struct kern_op_row {
	const char *name;
	/* in the order of the text: v value, F form, # integer, % integer or '*',
	 * D dtype, L list of integers, A access to an array, f function */
	const char *operands;
	/* arguments > result, one letter each: see kern_op.def */
	const char *types;
	/* p pure: equal operands, equal value; m reads memory; e sets *err;
	 * d defined elsewhere: no instruction */
	const char *flags;
	const char *doc;
} kern_op_row;
const kern_op_row *kern_op_at(kern_op op);

typedef int32_t kern_val; /* 0: none */

/* coef * value */
typedef struct kern_term {
	int64_t coef; /* never 0 */
	kern_val v;
} kern_term;
typedef struct kern_form {
	int32_t n;
	int64_t c0;
	kern_term t[]; /* by value */
} kern_form;

/* Elements of an array: lane l is element at + stride * l. */
typedef struct kern_access {
	int32_t array;
	const kern_form *at;
	int64_t stride; /* 1: lanes adjoin */
	/* the first so many lanes are accessed, the others loaded as 0; 0: all */
	int32_t part;
	/* of them those that the mask has; others are loaded as anything. A
	 * condition: all of them or none, which is then loaded as 0 */
	kern_val mask;
	/* bool: where it holds all lanes are in memory, whatever the mask is */
	kern_val whole;
} kern_access;

typedef struct kern_value {
	kern_op op;
	kern_type type;
	int32_t fn; /* CALL: scalar function */
	kern_val arg[KERN_MAX_ARGS];
	const kern_form *form[2];
	int64_t num[2]; /* integers, in order; none: INT64_MIN, INT64_MAX */
	tn_dtype dt;	/* ROUND */
	const int64_t *list; /* SHUFFLE, LANES: type.lanes integers */
	kern_access at;	     /* LOAD */
	union {		     /* CONST */
		double f;
		int64_t i;
	} c;
} kern_value;

/* ---- statements ---- */

typedef enum kern_kind {
	KERN_LET,      /* v, an instruction, gets its value */
	KERN_VAR,      /* the register v; x: what it starts with, 0: zero */
	KERN_SET,      /* v = x */
	KERN_SET_LANE, /* lane `lo` of v = x, which has one lane */
	KERN_STORE,    /* at = x; stream: past the caches if the array is aligned */
	KERN_FOR,
	KERN_IF,
	KERN_BLOCK,    /* names of its own */
	KERN_ARRAY,    /* the array `array` exists in this block from here on */
	KERN_PREFETCH, /* at, which may be outside: then nothing happens */
	KERN_FENCE,    /* stores past the caches are seen by whoever sees later ones */
	KERN_TURN,     /* element at + i*n + j = element from + j*m + i of a square */
	KERN_NOTE      /* text */
} kern_kind;

typedef struct kern_stmt kern_stmt;
typedef struct kern_block {
	VEC(kern_stmt *) list;
} kern_block;

/*
 * x may be a value without a `let` of its own: then it is computed here, and
 * used nowhere else.
 *
 * FOR: v = lo, lo + step .. while v < hi; whole: while v + step <= hi. after
 * (0: none): the first value that was not walked: it is defined behind the
 * loop. down: v = hi - 1, hi - 2 .. lo, step 1.
 */
struct kern_stmt {
	kern_kind kind;
	kern_val v, x;
	const kern_form *lo, *hi;
	int64_t step;
	bool down, whole;
	kern_val after;
	bool rarely; /* IF */
	bool stream; /* STORE; KERN_ARRAY: zeroed */
	bool far;    /* PREFETCH: for the second level of cache */
	kern_block body, other; /* FOR, IF, BLOCK; other: else */
	kern_access at, from;	/* STORE, PREFETCH, TURN */
	int64_t n, m;		/* TURN: between rows; the square's side is type.lanes */
	kern_type type;		/* TURN */
	int32_t array;		/* ARRAY */
	const char *text;	/* NOTE: letters, digits, '_', '.' and ", " */
	int32_t line, column;	/* of the text that it was read from; 0: none */
};

/* ---- kernels ---- */

typedef enum kern_space {
	KERN_PARAM,   /* tensor in memory: p0, p1 .. */
	KERN_SCRATCH, /* of the launch: q0 .. */
	KERN_LOCAL,   /* of the worker: b0 .. */
	KERN_STACK    /* of a block: t0 .. */
} kern_space;

typedef struct kern_array {
	kern_space space;
	int32_t number; /* of its name */
	tn_dtype dtype;
	int64_t elems;
	int64_t offset; /* SCRATCH, LOCAL: in bytes; they may overlap */
	/* PARAM */
	bool out;     /* it is written */
	bool streams; /* stores past the caches; set by kern_store */
	/* 1 + the param in whose memory it is, element for element; 0: none */
	int32_t in;
	int32_t tensor; /* of the system */
} kern_array;

typedef struct kern_phase {
	int64_t n_chunks;
	kern_val chunk; /* 0 <= chunk < n_chunks */
	/* 1 + the param that it copies into scratch, and does no more; 0 */
	int32_t copies;
	kern_block body;
} kern_phase;

typedef struct kern_check { /* accepted: lo <= v < hi */
	int32_t tensor;	  /* of the system */
	const char *name; /* its name */
	int64_t lo, hi;
} kern_check;

typedef struct kern_kernel {
	arena *a;
	const char *name;
	VEC(kern_value) value; /* [0] is none */
	VEC(kern_array) array; /* params first, in the order of their numbers */
	int32_t n_params, n_outputs; /* outputs first */
	bool shared; /* params may lie in one memory: no `restrict` */
	VEC(kern_check) check;
	int32_t n_phases;
	kern_phase phase[KERN_MAX_PHASES];
	size_t scratch_bytes, local_bytes;
	int64_t bytes, flops; /* moved and done, by the equations: for reports */
	int64_t serial_elems; /* less work is done by the calling thread */
	map *forms, *consts; /* interned */
	/* the text that it was read from; NULL */
	const char *file, *text;
	size_t n_text;
} kern_kernel;

static inline const kern_value *kern_at(const kern_kernel *k, kern_val v)
{
	return &k->value.at[v];
}

/* ---- build.c ---- */

kern_kernel *kern_new(arena *a, const char *name);

/* Params are added before all other arrays. Returns the array's number. */
int32_t kern_add_param(
	kern_kernel *k, tn_dtype t, int64_t elems, bool out, int32_t tensor);
int32_t kern_add_array(kern_kernel *k, kern_space space, tn_dtype t,
	int64_t elems, int64_t offset);
/* Its number, from 1. */
int32_t kern_add_check(kern_kernel *k, int32_t tensor, const char *name,
	int64_t lo, int64_t hi);

struct kern_known {
	kern_val v;
	int32_t bucket, before; /* the one known before it there; -1: none */
};

/* Where statements go: a stack of blocks. */
typedef struct kern_builder {
	kern_kernel *k;
	VEC(kern_block *) block;
	/* values that are known in the blocks that are open, where each block's
	 * begin, and the last one of each hash */
	VEC(struct kern_known) known;
	VEC(int32_t) mark;
	int32_t *bucket;
	bool number; /* kern_let numbers all pure values, not only integers */
} kern_builder;

kern_builder kern_build(kern_kernel *k);
/* Opens the next phase; kern_close ends it. */
void kern_open_phase(kern_builder *b, int64_t n_chunks, int32_t copies);
/* Opens the block of a loop, a condition ... */
void kern_open(kern_builder *b, kern_block *block);
void kern_close(kern_builder *b);
kern_stmt *kern_add(kern_builder *b, kern_kind kind); /* an empty statement */

/* forms */
const kern_form *kern_form_const(kern_kernel *k, int64_t c);
const kern_form *kern_form_of(kern_kernel *k, kern_val v);
const kern_form *kern_form_add(
	kern_kernel *k, const kern_form *a, const kern_form *b);
const kern_form *kern_form_sub(
	kern_kernel *k, const kern_form *a, const kern_form *b);
const kern_form *kern_form_scale(kern_kernel *k, const kern_form *a, int64_t c);
const kern_form *kern_form_addc(kern_kernel *k, const kern_form *a, int64_t c);
bool kern_form_is_const(const kern_form *f, int64_t *c);

/* constants: of one lane; a float's f is rounded to it */
kern_val kern_const_f(kern_kernel *k, tn_dtype t, double f);
kern_val kern_const_i(kern_kernel *k, tn_dtype t, int64_t i); /* bool, too */

/*
 * Values without a statement, for `x` and kern_let. call: the type of the
 * result is that of scalar.def; masks get the widest bytes of the arguments.
 */
kern_val kern_ins(kern_kernel *k, const kern_value *v); /* a copy of it */
kern_val kern_call(kern_kernel *k, int32_t fn, kern_type t, const kern_val *arg);
kern_val kern_unary(kern_kernel *k, kern_op op, kern_type t, kern_val x);
kern_val kern_mad(kern_kernel *k, kern_val x, kern_val y, kern_val z);
kern_val kern_lane(kern_kernel *k, kern_val x, const kern_form *lane);
kern_val kern_shuffle(
	kern_kernel *k, kern_val x, kern_val y, const int64_t *list);
kern_val kern_lanes(kern_kernel *k, kern_type t, const int64_t *list);
kern_val kern_load(kern_kernel *k, kern_type t, const kern_access *at);
/* A scalar, or lanes that adjoin. */
kern_access kern_element(int32_t array, const kern_form *at);

/* Names the value: a `let`, or an equal value that is known here. */
kern_val kern_let(kern_builder *b, kern_val v);

/* Integers: folded where they are constant, named once in the blocks around. */
const kern_form *kern_div(kern_builder *b, const kern_form *f, int64_t m);
const kern_form *kern_floor(kern_builder *b, const kern_form *f, int64_t m);
const kern_form *kern_mod(kern_builder *b, const kern_form *f, int64_t m);
const kern_form *kern_min(
	kern_builder *b, const kern_form *f, const kern_form *g);
const kern_form *kern_max(
	kern_builder *b, const kern_form *f, const kern_form *g);
const kern_form *kern_clamp(
	kern_builder *b, const kern_form *f, int64_t lo, int64_t hi);
const kern_form *kern_pick(kern_builder *b, kern_val c, const kern_form *f,
	const kern_form *g);
/* The value of a form: i64 or i32. A value that is the form already is itself. */
kern_val kern_index(kern_builder *b, const kern_form *f, tn_dtype t);
/* lo <= f < hi; INT64_MIN, INT64_MAX: no bound */
kern_val kern_inside(
	kern_builder *b, const kern_form *f, int64_t lo, int64_t hi);
/* raw, an index read from data: as i64, within the check's bounds */
kern_val kern_checked(kern_builder *b, kern_val raw, int32_t check);

/* statements */
kern_val kern_var(kern_builder *b, kern_type t, kern_val x);
void kern_set(kern_builder *b, kern_val v, kern_val x);
void kern_set_lane(
	kern_builder *b, kern_val v, const kern_form *lane, kern_val x);
void kern_store(kern_builder *b, const kern_access *at, kern_val x, bool stream);
/* Opens the loop: its variable. type: i64 or i32. */
kern_val kern_for(kern_builder *b, const kern_form *lo, const kern_form *hi,
	int64_t step, tn_dtype t);
/* The same with what `s` says besides: lo, hi, step, down, whole. *after: NULL, or the
 * value behind the loop, a value once the loop is closed. */
kern_val kern_for_as(kern_builder *b, const kern_stmt *s, kern_val *after);
kern_stmt *kern_if(kern_builder *b, kern_val c, bool rarely); /* opens it */
void kern_else(kern_builder *b, kern_stmt *s); /* closes it, opens its other */
void kern_scope(kern_builder *b); /* opens a block of its own */
int32_t kern_stack(kern_builder *b, tn_dtype t, int64_t elems, bool zero);
void kern_prefetch(kern_builder *b, int32_t array, const kern_form *at, bool far);
void kern_fence(kern_builder *b);
void kern_note(kern_builder *b, const char *text);
void kern_turn(kern_builder *b, const kern_access *to, int64_t n,
	const kern_access *from, int64_t m, kern_type square);

/*
 * Values in order of their definitions, those that nobody uses dropped: ids
 * and the order of sums then depend on the statements alone. To be called when
 * a kernel is built, before it is printed in any language.
 */
void kern_tidy(kern_kernel *k);

/* Without the values, registers and loops that nothing depends on; what is named
 * for the next statement alone stands there. */
void kern_sweep(kern_kernel *k);

/* ---- from a scheduled tree ---- */

struct loop_kernel;
kern_kernel *kern_lower(arena *a, struct loop_kernel *k);

/* ---- text ---- */

/* The kernel as `number` of its program; parse(print(k)) prints the same. */
void kern_print(str *out, const kern_kernel *k, int32_t number);
void kern_array_name(str *out, const kern_kernel *k, int32_t array);

/*
 * The text that a file of the level "kern" has for this kernel of the program,
 * read and verified; NULL: none. like: what was made of the program: its params
 * and checks are those of the text.
 */
kern_kernel *kern_text_apply(
	kernel_texts *f, const kern_kernel *like, int32_t number);
/* One kernel on its own, not verified; tensors of its params are -1. */
kern_kernel *kern_parse(
	arena *a, const char *text, size_t n, const char *file);

/* ---- verify.c ---- */

/* Throws the rule that is broken, with its line if there is one. */
void kern_verify(kern_kernel *k);

/* ---- run.c ---- */

/*
 * Runs the kernel: param[i] is the data of param i. Chunks run in an order drawn
 * from the seed. Returns the number of a check that failed, 0: none. Throws
 * kern.run (TN_EINTERNAL) where memory is left, read before it is written, or
 * shared by chunks.
 */
int64_t kern_run(arena *a, kern_kernel *k, void *const *param, uint64_t seed);

#endif
