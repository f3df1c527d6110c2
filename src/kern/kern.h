/*
 * kern.h: interface of kern/: the language of one kernel after all decisions.
 *
 * A kernel consists of phases, which contain blocks of statements, loops and
 * conditions. It states everything that the printer of a target needs, so that
 * a printer decides nothing.
 *
 *     kernel 0 fn_relu_0 {
 *       param p0: f32[1000] out
 *       param p1: f32[1000] in
 *       phase of 4 chunks {
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
 * Types: dtype x lanes. A bool of one lane is a condition; a bool of several
 * lanes is a mask, whose lanes have `mask` bytes, as the values that it selects
 * (m4x16). The narrow types of base/dtype.def, and u8 of bool arrays, are types of
 * memory: `widen` converts them for computing, to f32, i8, u8 and conditions,
 * `narrow` converts back.
 *
 * Values: each has one definition: a `let`, a loop, or the phase (the number of
 * the chunk); constants need none. A register (`var`) is a value that `set`
 * changes; an instruction reads its current value. Values are numbered from 1
 * in order of creation in the kernel; 0 means none.
 *
 * Forms: addresses and loop bounds are sums c0 + coef * value of i64 or i32
 * values that are not registers. They are interned: pointers are equal iff forms
 * are. The results of other integer operations (div, min ..) are values.
 *
 *   kern_new, kern_form_*, kern_ins, kern_let .. build.c    build a kernel
 *   kern_print, kern_parse     print and parse its text
 *   kern_verify                checks it
 */
#ifndef KERN_H
#define KERN_H

#include "notation/kernel_texts.h"
#include "system/system.h"

enum {
	KERN_MAX_PHASES = 8,
	KERN_MAX_ARGS = 3,
	KERN_MAX_LANES = 64,
	KERN_MAX_WARPS = 32, /* of a block */
	KERN_MMA_ROWS = 16,  /* of a matrix instruction */
	KERN_MMA_ROW_BYTES = 32, /* of the terms that it takes of a row */
	KERN_MMA_COLUMNS = 8,
	KERN_MMA_EACH = 4, /* registers for each eight columns */
	KERN_MMA_LANES = 32, /* of these registers, and of a warp that has them */
	KERN_MMA_BYTES = 16, /* of a row that are loaded at a time */
	KERN_MMA_WARPS = 4, /* that multiply by the same columns, if they do together */
	KERN_SWIZZLED = 64, /* elements of a row of such columns that adjoin, and the most
			     * terms */
	KERN_SWIZZLED_ROWS = 8, /* whose pieces of 16 bytes are exchanged */
	KERN_TILE_ROWS = 16, /* of a tile register, and groups that an instruction takes */
	KERN_TILE_BYTES = 64, /* of a row of it */
	KERN_TILE_LANES = 16, /* the sums of such a row */
	KERN_TILE_ACROSS = 2, /* registers of sums of a `tiles`, and below each other */
	KERN_WIDE_BYTES = 16, /* that a lane accesses at once, at most */
	KERN_ASYNC_BYTES = 16, /* that a lane copies at once */
	KERN_BULK_ROWS = 256, /* that are copied in bulk, at most */
	KERN_MAX_GROUPS = 7,   /* of copies that a `wait` leaves under way */
	KERN_MAX_TOGETHER = 8, /* elements of them */
	KERN_MAX_DEPTH = 200 /* of nested blocks */
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
/* The dtype of values in an array of dt: u8 for bool. */
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
	/* p pure: its value depends on its operands alone; m reads memory;
	 * e sets *err; d defined otherwise: not an instruction */
	const char *flags;
	const char *doc;
} kern_op_row;
const kern_op_row *kern_op_at(kern_op op);

/*
 * The neighbours of factors x and y that a `dot` multiplies for each lane of its
 * result, f32 of floats and i32 of integers: 2 of bf16 or i16, 4 of u8 and i8, in
 * either order. 0: there is no such instruction.
 */
int32_t kern_dot_terms(tn_dtype x, tn_dtype y);
/* .. that tile registers take: 2 of bf16, 4 of u8 or i8, whichever each factor has. */
int32_t kern_tile_terms(tn_dtype x, tn_dtype y);

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

/* Elements of an array; lane l accesses element at + stride * l. */
typedef struct kern_access {
	int32_t array;
	const kern_form *at;
	int64_t stride; /* 1: lanes are neighbours */
	/* the number of lanes that are accessed; the others load 0. 0: all */
	int32_t part;
	/* a mask: only its lanes are accessed, the others load any value. A
	 * condition: if false, no lane is accessed, and all load 0. 0: none */
	kern_val mask;
	/* a condition under which all lanes are inside the array, so that the
	 * mask can be ignored */
	kern_val whole;
	/* i32 in lanes: lane l loads element at + by[l], of f32 that the kernel
	 * does not write. 0: none */
	kern_val by;
} kern_access;

typedef struct kern_value {
	kern_op op;
	kern_type type;
	int32_t fn; /* CALL: scalar function */
	kern_val arg[KERN_MAX_ARGS];
	const kern_form *form[2];
	int64_t num[2]; /* integers, in order; if absent, INT64_MIN, INT64_MAX */
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
	KERN_LET,      /* evaluates the instruction v */
	KERN_VAR,      /* declares the register v with initial value x; x 0: zero;
			* by_warp: each warp of the block has one of its own */
	KERN_SET,      /* v = x */
	KERN_SET_LANE, /* lane `lo` of v = x; x has one lane */
	KERN_STORE,    /* at = x; stream: past the caches, if the array is aligned */
	KERN_FOR,
	KERN_IF,
	KERN_BLOCK,    /* a scope for names */
	KERN_ARRAY,    /* declares `array`, for the rest of this block */
	KERN_PREFETCH, /* prefetches `at`, a result to be written; no effect if it is outside the array */
	KERN_FENCE,    /* orders stores past the caches before later stores */
	KERN_RELOAD,   /* what is loaded behind it is loaded again, though it was before: no
			* register keeps it */
	KERN_BARRIER,  /* all warps of the block come here before one goes on */
	KERN_TURN,     /* transposes a square: element at + i*n + j = element from + j*m + i; see below */
	KERN_MMA,      /* acc += at times from: see below */
	KERN_TILES,    /* to += at times from, in tile registers: see below */
	KERN_TAKE,     /* acc = at */
	KERN_GIVE,     /* at = acc */
	KERN_ASYNC,    /* begins to copy rows: at = from: see below */
	KERN_COMMIT,   /* ends a group of such copies */
	KERN_WAIT,     /* until the copies of all groups but the last `groups` have ended */
	KERN_NOTE      /* text */
} kern_kind;

typedef struct kern_stmt kern_stmt;
typedef struct kern_block {
	VEC(kern_stmt *) list;
} kern_block;

/*
 * If x has no `let`, it is computed in this statement, and used only here.
 *
 * FOR: v = lo, lo + step .. while v < hi; whole: while v + step <= hi. after
 * (or 0): a value that is defined after the loop: the first that v did not
 * take. down: v = hi - 1, hi - 2 .. lo, with step 1. by_warp: iteration n is run
 * by warp n mod `warps` of the block; any other statement by all of its warps.
 * by_lane: iteration l is run by lane l of the warp, at the same time as all others.
 * unroll: all iterations of a short loop of constant length are to stand one after the other.
 * A register that each warp has is used in loops by warp only which have one iteration
 * for a warp at most: so iteration n has the n-th of these registers in all of them.
 *
 * TURN: of width w (0: 1) each w neighbours stay together, and are moved as one:
 * element at + i n + w j + c = element from + j m + w i + c, c < w.
 *
 * MMA, TAKE, GIVE: acc holds 16 rows of 2 n_acc sums, as the matrix instructions
 * of a warp have them: in eight columns from 8 v on, row i and column 8 v + j are in
 * lane 4 (i mod 8) + j div 2 of register 4 v + 2 (i div 8) + j mod 2. In memory
 * row i begins at element at + n i. MMA: `at` has 16 terms in each row, `from` has
 * 16 rows from + m k of columns, and the terms k are added in their order; `at` may
 * be f32 beside bf16. Turned: row i, term k is at + n k + i; term k, column j is from + m j + k. Of a
 * part, only so many rows, columns (`width`) and terms are in memory: others of MMA
 * are zeros, other sums of TAKE and GIVE stay as they are.
 *
 * MMA by several warps: all warps of a group, of so many that follow each other, are here,
 * each with its own `at` and acc, and with the same `from`, which is in a swizzled
 * array: whole rows of it, of 64 or 128 columns; turned: all of 64 terms of as many
 * rows. `terms` are a multiple of those of one instruction, at most 64. `at` may be in a
 * swizzled array of 64 terms in a row, too: there the rows of a warp follow those of the
 * warp before it.
 *
 * TILES: `to` has `rows` rows, at most 32, of `width` sums that adjoin, 16 or 32, l apart.
 * If x holds, they are 0 before, whatever is in memory. `at` has `terms` terms in each row,
 * n apart; `from` has groups of neighbouring terms, m apart, in each one group for each
 * column; behind the last term is what is not used. Integers wrap. bf16: of the groups 16
 * at a time, the first terms are added to a sum of f32, in their order, and the second ones
 * to another; then both are added, and that to the sum in `to`. Each multiplication with
 * its addition, and each other addition, is rounded once, and subnormal numbers are 0.
 *
 * ASYNC: `rows` rows of `width` elements, whose beginnings are n apart in `at`, an
 * array that the warps of a block share, and m apart in `from`, a param. A warp
 * copies them at some time until its wait. COMMIT and WAIT are of all warps: what
 * other warps have copied is there behind the next barrier. In bulk: it is one copy for
 * all warps, of whole rows of a swizzled array, in multiples of eight; `from` is a matrix
 * of rows of m elements, in which no row of the copy reaches into the next one.
 */
struct kern_stmt {
	kern_kind kind;
	kern_val v, x;
	const kern_form *lo, *hi;
	int64_t step;
	bool down, whole, by_warp, by_lane; /* by_warp: VAR, too */
	bool unroll; /* FOR */
	bool bulk; /* ASYNC */
	kern_val after;
	bool rarely; /* IF */
	bool stream; /* STORE: past the caches; ARRAY: zeroed */
	/* LET of a load, STORE: the first of so many, each of the next element: a lane
	 * accesses all of them at once, if the array is aligned. 0: alone */
	int32_t together;
	bool far;    /* PREFETCH: into the second level of cache */
	kern_block body, other; /* FOR, IF, BLOCK; other: else */
	kern_access at, from;	/* STORE, PREFETCH, TURN */
	kern_access to;		/* TILES */
	int64_t n, m;		/* TURN: distances of rows; the square has type.lanes rows */
	int64_t l;		/* TILES: of rows of `to` */
	bool at_turned, from_turned; /* MMA: n, m are distances of columns */
	kern_type type;		/* TURN; MMA: of the factors */
	int32_t rows, width;	/* ASYNC, TILES; width: TURN; MMA, TAKE, GIVE: of a part; 0: all */
	int32_t terms;		/* MMA: of a part, of several warps; 0: all; TILES */
	int32_t warps;		/* MMA: that execute it together; 0: each executes it alone */
	int32_t groups;		/* WAIT */
	const kern_val *acc;	/* MMA, TAKE, GIVE: registers f32x32, or i32x32 */
	int32_t n_acc;		/* a multiple of 4 */
	int32_t array;		/* ARRAY */
	const char *text;	/* NOTE: letters, digits, '_', '.' and ", " */
	int32_t line, column;	/* in the text that it was read from, or 0 */
};

/* TURN: neighbours that stay together. */
static inline int32_t kern_turn_unit(const kern_stmt *s)
{
	return s->width > 0 ? s->width : 1;
}

/* Does it multiply `at` and `from`? */
static inline bool kern_multiplies(const kern_stmt *s)
{
	return s->kind == KERN_MMA || s->kind == KERN_TILES;
}

/* What a statement accesses itself; an instruction in it that loads is another thing. */
typedef struct kern_accessed {
	const kern_access *at;
	bool reads, writes; /* PREFETCH: neither */
} kern_accessed;
enum { KERN_MOST_ACCESSED = 3 };
/* Their number. */
int32_t kern_accesses(const kern_stmt *s, kern_accessed out[KERN_MOST_ACCESSED]);

/* What of a matrix is in memory: MMA, TAKE, GIVE. */
static inline int32_t kern_part_rows(const kern_stmt *s)
{
	return s->rows > 0 ? s->rows : KERN_MMA_ROWS;
}
static inline int32_t kern_part_columns(const kern_stmt *s)
{
	return s->width > 0 ? s->width : 2 * s->n_acc;
}
/* The terms of an instruction: as many as it takes bytes of a row. */
static inline int32_t kern_mma_terms(tn_dtype factors)
{
	return KERN_MMA_ROW_BYTES / (int32_t)dtype_size(factors);
}
static inline int32_t kern_part_terms(const kern_stmt *s)
{
	return s->terms > 0 ? s->terms : kern_mma_terms(s->type.dt);
}
/* The dtype of its sums. */
static inline tn_dtype kern_mma_sum(tn_dtype factors)
{
	return dtype_is_int(factors) ? TN_I32 : TN_F32;
}

/* ---- kernels ---- */

typedef enum kern_space {
	KERN_PARAM,   /* tensor in memory: p0, p1 .. */
	KERN_SCRATCH, /* shared by the launch: q0 .. */
	KERN_LOCAL,   /* of the thread: b0 .. */
	KERN_STACK    /* of a block: t0 .. */
} kern_space;

/*
 * A swizzled array has elements of two bytes, in rows of 64 or 128; their number is a
 * multiple of eight. The numbers of its elements are as usual, but memory has them in the
 * order that matrix instructions of several warps take: the first 64 elements of all rows,
 * then the last 64 of all rows; and in these 64 elements of row r, the eight elements
 * number 8 p to 8 p + 7 stand where those of p xor (r mod 8) would.
 */
typedef struct kern_array {
	kern_space space;
	int32_t number; /* of its name */
	tn_dtype dtype;
	int64_t elems;
	int64_t offset; /* SCRATCH, LOCAL: in bytes; they may overlap */
	int32_t swizzled; /* LOCAL: elements of a row, if it is swizzled: see above; or 0 */
	/* PARAM */
	bool out;     /* the kernel writes it */
	bool streams; /* it is stored past the caches; set by kern_store */
	/* 1 + the param whose memory it uses, element for element; or 0 */
	int32_t in;
	int32_t tensor; /* of the system */
} kern_array;

typedef struct kern_phase {
	int64_t n_chunks;
	kern_val chunk; /* 0 <= chunk < n_chunks */
	/* of the block that runs a chunk: they share its local arrays. 1: a
	 * chunk is run by one thread, or warp */
	int32_t warps;
	/* 1 + the param that this phase copies into scratch, if it does nothing
	 * else; else 0 */
	int32_t copies;
	kern_block body;
} kern_phase;

typedef struct kern_check { /* requires lo <= v < hi of an index v */
	int32_t tensor;	  /* of the system */
	const char *name; /* its name */
	int64_t lo, hi;
} kern_check;

typedef struct kern_kernel {
	arena *a;
	const char *name;
	VEC(kern_value) value; /* [0] is unused */
	VEC(kern_array) array; /* params first, in the order of their numbers */
	int32_t n_params, n_outputs; /* outputs first */
	bool shared; /* params may overlap: no `restrict` */
	VEC(kern_check) check;
	int32_t n_phases;
	kern_phase phase[KERN_MAX_PHASES];
	size_t scratch_bytes, local_bytes;
	int64_t bytes, flops; /* that the equations move and need: for reports */
	bool serial; /* so little work that only the calling thread runs it */
	/* no form exceeds 32 bits, nor does a sum of some of its terms: printers
	 * compute indices in i32. Set by kern_narrow, or by the text */
	bool narrow;
	/* for a machine whose lanes are threads: it has no tile registers */
	bool spread;
	map *forms, *consts; /* interned */
	/* while the kernel is verified: what is beyond 64 bits is a number that
	 * has no bounds, not an error */
	bool verified;
	/* the text that it was read from, or NULL */
	const char *file, *text;
	size_t n_text;
	bool own; /* Tenon printed that text: what is wrong in it is its fault */
} kern_kernel;

static inline const kern_value *kern_at(const kern_kernel *k, kern_val v)
{
	return &k->value.at[v];
}

/* ---- build.c ---- */

kern_kernel *kern_new(arena *a, const char *name);

/* Add params before all other arrays. Returns the number of the array. */
int32_t kern_add_param(
	kern_kernel *k, tn_dtype t, int64_t elems, bool out, int32_t tensor);
int32_t kern_add_array(kern_kernel *k, kern_space space, tn_dtype t,
	int64_t elems, int64_t offset);
/* Returns its number, from 1. */
int32_t kern_add_check(kern_kernel *k, int32_t tensor, const char *name,
	int64_t lo, int64_t hi);

struct kern_known {
	kern_val v;
	int32_t bucket, before; /* the entry before it in the bucket, or -1 */
};

/* Adds statements to the innermost of a stack of open blocks. */
typedef struct kern_builder {
	kern_kernel *k;
	VEC(kern_block *) block;
	/* the values that the open blocks have defined, the first of each block,
	 * and the last of each hash */
	VEC(struct kern_known) known;
	VEC(int32_t) mark;
	int32_t *bucket;
	bool number; /* kern_let reuses all equal pure values, not only integers */
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
/*
 * The row and the column of an element, in rows of m: at = m * row + column. Whether the
 * column is in that row, it does not say.
 */
void kern_row_and_column(kern_kernel *k, const kern_form *at, int64_t m,
	const kern_form **row, const kern_form **column);
/* *n: how much more hi is than lo, whatever the values; false: that is not constant. */
bool kern_form_apart(const kern_form *lo, const kern_form *hi, int64_t *n);

/* constants of one lane; f is rounded to the dtype */
kern_val kern_const_f(kern_kernel *k, tn_dtype t, double f);
kern_val kern_const_i(kern_kernel *k, tn_dtype t, int64_t i); /* bool, too */

/*
 * Values without a statement, for `x` and kern_let. kern_call: the result has
 * the type of scalar.def; a mask has the bytes of the widest argument.
 */
kern_val kern_ins(kern_kernel *k, const kern_value *v); /* a copy of it */
kern_val kern_call(kern_kernel *k, int32_t fn, kern_type t, const kern_val *arg);
kern_val kern_unary(kern_kernel *k, kern_op op, kern_type t, kern_val x);
kern_val kern_lane(kern_kernel *k, kern_val x, const kern_form *lane);
kern_val kern_shuffle(
	kern_kernel *k, kern_val x, kern_val y, const int64_t *list);
kern_val kern_lanes(kern_kernel *k, kern_type t, const int64_t *list);
kern_val kern_load(kern_kernel *k, kern_type t, const kern_access *at);
/* A scalar, or lanes that are neighbours. */
kern_access kern_element(int32_t array, const kern_form *at);

/* Adds a `let` of the value, or returns an equal value that is visible here. */
kern_val kern_let(kern_builder *b, kern_val v);

/* Integers: constants are folded; equal ones share one `let`. */
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
/* The value of a form, i64 or i32; if the form is a value, that value. */
kern_val kern_index(kern_builder *b, const kern_form *f, tn_dtype t);
/* lo <= f < hi; INT64_MIN, INT64_MAX: no bound */
kern_val kern_inside(
	kern_builder *b, const kern_form *f, int64_t lo, int64_t hi);
/* The check of raw, an index read from data: an i64 within its bounds. */
kern_val kern_checked(kern_builder *b, kern_val raw, int32_t check);

/* statements */
kern_val kern_var(kern_builder *b, kern_type t, kern_val x);
kern_val kern_var_by_warp(kern_builder *b, kern_type t); /* of zeros */
void kern_set(kern_builder *b, kern_val v, kern_val x);
void kern_set_lane(
	kern_builder *b, kern_val v, const kern_form *lane, kern_val x);
void kern_store(kern_builder *b, const kern_access *at, kern_val x, bool stream);
/* Opens a loop; returns its variable, of type i64 or i32. */
kern_val kern_for(kern_builder *b, const kern_form *lo, const kern_form *hi,
	int64_t step, tn_dtype t);
/* The same with lo, hi, step, down and whole of s. after, if not NULL, gets the
 * value `after`, which is defined once the loop is closed. */
kern_val kern_for_as(kern_builder *b, const kern_stmt *s, kern_val *after);
kern_stmt *kern_if(kern_builder *b, kern_val c, bool rarely); /* opens its body */
void kern_else(kern_builder *b, kern_stmt *s); /* closes the body, opens `other` */
void kern_scope(kern_builder *b); /* opens a KERN_BLOCK */
int32_t kern_stack(kern_builder *b, tn_dtype t, int64_t elems, bool zero);
void kern_prefetch(kern_builder *b, int32_t array, const kern_form *at, bool far);
void kern_fence(kern_builder *b);
void kern_reload(kern_builder *b);
void kern_note(kern_builder *b, const char *text);
void kern_turn(kern_builder *b, const kern_access *to, int64_t n,
	const kern_access *from, int64_t m, kern_type square, int32_t unit);

/* acc += at times from, by one of two kinds, acc = at, at = acc: see kern_stmt. */
void kern_matrix(kern_builder *b, kern_kind kind, const kern_stmt *like);

/* at = from, rows of elements, and what waits for them: see kern_stmt. */
void kern_async(kern_builder *b, const kern_stmt *like);
void kern_commit(kern_builder *b);
void kern_wait(kern_builder *b, int32_t groups);
void kern_barrier(kern_builder *b);

/*
 * Numbers the values in order of their definitions and drops unused ones, so
 * that ids and the order of sums depend on the statements alone. Call it when a
 * kernel is built, before it is printed in any language.
 */
void kern_tidy(kern_kernel *k);

/* Removes values, registers and loops that nothing depends on; moves a value
 * that only the next statement uses into that statement. */
void kern_sweep(kern_kernel *k);

/*
 * barrier.c: puts a barrier wherever a cell that one warp wrote may be read or
 * written next by another one, or one that it read is written next.
 */
void kern_place_barriers(kern_kernel *k);

/* wide.c: joins accesses of lanes that are n elements apart, n at a time. */
void kern_join_accesses(kern_kernel *k);

/* lanes.c: gives independent iterations of loops to so many lanes. The values of
 * the kernel are in order. */
void kern_deal_to_lanes(kern_kernel *k, int32_t lanes);

/* unroll.c: unrolls short loops that number lanes, of fewer statements, unless many
 * stand side by side. */
void kern_unroll(kern_kernel *k, int32_t fewer, int32_t many);
bool kern_may_unroll(const kern_stmt *s); /* a loop: is it short, of constant length? */

/*
 * narrow.c: sets k->narrow if all indices, with the steps of loops and the lanes of
 * vectors, fit 32 bits. Returns the largest absolute value that they may have;
 * INT64_MAX: it is not known.
 */
int64_t kern_narrow(kern_kernel *k);

/* ---- from a scheduled tree ---- */

struct loop_kernel;
kern_kernel *kern_lower(arena *a, struct loop_kernel *k);

/* ---- text ---- */

/* Prints the kernel as `number` of its program; parse(print(k)) prints the same. */
void kern_print(str *out, const kern_kernel *k, int32_t number);
void kern_array_name(str *out, const kern_kernel *k, int32_t array);

/*
 * Parses and verifies the text that a file of the level "kern" has for this
 * kernel of the program; NULL: it has none. The params and checks of the text
 * must be those of like, the kernel that was made of the program.
 */
kern_kernel *kern_text_apply(
	kernel_texts *f, const kern_kernel *like, int32_t number);
/* Parses one kernel, without verifying it; the tensors of its params are -1. */
kern_kernel *kern_parse(
	arena *a, const char *text, size_t n, const char *file);

/* ---- verify.c ---- */

/* Throws the rule that the kernel breaks, with the line if it has a text. */
void kern_verify(kern_kernel *k);
/* The same for the text of kernel `number`: so the rule comes with its line. */
void kern_verify_text(const kern_kernel *k, int32_t number);

#endif
