/*
 * prop.h: what the files of the property test share.
 *
 *   pattern.c  shapes that fit the pattern of an operand
 *   attrs.c    attributes by their kind
 *   draw.c     random programs, drawn from the op table
 *   draw_contract.c  random programs around sums of products
 *   draw_cast.c      random programs of casts between all types
 *   draw_options.c   machines and options
 *   fill.c     data of inputs
 *   shadow.c   the interpreter again, with a bound for what rounding may do
 *   reduce.c   the same for reductions
 *   kern_level.c     kernels interpreted
 *   levels.c   which level is the first that differs
 *   case.c     one program: both texts, the interpreter, compiled code
 *   batch.c    the kernels of many programs, compiled together
 *   shrink.c   a smaller program that still fails
 *   proptest.c arguments and processes
 *
 * Everything about program number i follows from (seed, i).
 */
#ifndef PROP_H
#define PROP_H

#include "engine/engine.h"
#include "interp/interp.h"
#include "program/program.h"
#include "run/run.h"
#include "target/simt/simt.h"

/* ---- random numbers ---------------------------------------------------- */

typedef struct rng {
	uint64_t s;
} rng;

static inline uint64_t rng_next(rng *r)
{
	uint64_t z = r->s += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}
static inline rng rng_new(uint64_t seed, uint64_t index)
{
	rng r = {seed * UINT64_C(0xd1342543de82ef95) + index};

	rng_next(&r);
	return r;
}
/* 0 .. n - 1; n >= 1 */
static inline int64_t rng_below(rng *r, int64_t n)
{
	return (int64_t)(rng_next(r) % (uint64_t)n);
}
static inline int64_t rng_range(rng *r, int64_t lo, int64_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}
static inline bool rng_percent(rng *r, int32_t p)
{
	return rng_below(r, 100) < p;
}

/* ---- patterns ---------------------------------------------------------- */

/* What the letters and attributes of one call stand for, so far. */
enum { MAX_BOUND = 40 };
typedef struct {
	const char *name;
	bool is_pack;
	int32_t n; /* extents of a pack; of an attribute that is a list: -1 */
	int64_t e[TN_MAX_RANK]; /* a letter's extent, an attribute's value */
} bound;
typedef struct bindings {
	arena *a;
	rng *r;
	int64_t large; /* one extent of this size may still be drawn; 0: none */
	int32_t n;
	bound at[MAX_BOUND]; /* letters "i", packs "i..", attributes "=axis" */
} bindings;

bound *bindings_find(bindings *b, const char *name);
bound *bindings_add(bindings *b, const char *name);
int64_t draw_extent(bindings *b);

typedef struct pattern pattern;
/* NULL: not understood */
const pattern *pattern_parse(arena *a, const char *text);
/* Does a tensor of this shape fit? If so, binds what it fixes. */
bool pattern_fit(const pattern *p, bindings *b, const ir_type *t);
/* A shape that fits, drawn; binds. */
bool pattern_draw(const pattern *p, bindings *b, ir_type *t);

/* ---- programs ---------------------------------------------------------- */

typedef struct row_count {
	int64_t tried, made;
} row_count;

typedef enum prop_style {
	STYLE_EXACT,   /* multiples of 1/4: sums and products without rounding */
	STYLE_GENERAL, /* floats of moderate size */
	STYLE_SPECIAL  /* exact, with infinities, NaN, -0, ties */
} prop_style;

typedef struct prop_case {
	uint64_t seed, index;
	ir_program *p;
	prop_style style;
	bool all_outputs; /* every value is an output */
	bool out_of_range; /* an index may be outside */
	bool far; /* a matrix is read from afar: most of its machines have small caches */
	int64_t cost;	  /* instances of all equations */
	void **in;	  /* data by input, dense */
} prop_case;

/* Program number `index`; counts[row] by number in the table, or NULL. */
prop_case *draw_case(arena *a, ir_table *t, uint64_t seed, uint64_t index,
	row_count *counts);
/* The same around sums of products (draw_contract.c). */
prop_case *draw_contract(arena *a, uint64_t seed, uint64_t index);
/* Products of f16 and bf16 with rows for four warps, and their columns. */
prop_case *draw_warpgroups(arena *a, uint64_t seed, uint64_t index);
/* The same of casts between all types (draw_cast.c). */
prop_case *draw_cast(arena *a, ir_table *t, uint64_t seed, uint64_t index);
/* What it is compiled for. */
typedef struct prop_options prop_options;
compile_options draw_options(
	arena *a, const prop_case *c, const prop_options *po);
/* The number of a row of the table, each as likely. */
int32_t draw_row(rng *r, const ir_table *t);
/* A program of one call of row number `row`; NULL: the row took none of what
 * was drawn. */
prop_case *draw_one_call(
	arena *a, ir_table *t, int32_t row, uint64_t seed, uint64_t index);
void draw_attrs(arena *a, bindings *b, const ir_row *r, int32_t n_operands,
	const ir_type *operand, int32_t *n_attrs, ir_attr *attr);
int64_t inst_cost(const ir_inst *inst);
/* data of all inputs; lo, hi: bounds of indices by input */
void fill_inputs(arena *a, prop_case *c, const int64_t *lo, const int64_t *hi);
size_t type_bytes(const ir_type *t);
int64_t type_numel(const ir_type *t);

/* ---- values with bounds ------------------------------------------------ */

/*
 * A value, and how far compiled code may be from it: INFINITY means that it
 * may be anything. Values that are exact in every order have e = 0.
 */
typedef struct shadow {
	ir_number v;
	double e;
	bool weight; /* of a row, at most 1: it may be rounded before it is scaled, or after */
} shadow;

typedef struct shadow_run {
	bool unsure; /* an index is not known exactly: reads may be outside */
	shadow **value; /* by value of the program; NULL: no output needs it */
} shadow_run;

/* Evaluates what outputs need; interpreting that gave no error before. */
void shadow_program(arena *a, const ir_program *p, const void *const *in,
	shadow_run *out);

/* one instance while it is evaluated */
typedef struct walk {
	arena *a;
	env *e;
	const ir_inst *inst;
	const in_eqn *eqn;
	int64_t *letter;
	int64_t pos;
	shadow **tensor;
	int32_t maybe; /* depth of branches that may not be taken */
	bool *unsure;
} walk;
shadow shadow_eval(walk *w, const in_node *n);
/* element number of a place: 0 inside, 1 outside, -1 not known */
int32_t shadow_place(walk *w, const ir_type *t, const in_node *const *index,
	int64_t *place);
shadow shadow_cast(tn_dtype to, tn_dtype from, shadow x);
shadow shadow_call(int32_t fn, tn_dtype arg, tn_dtype result, bool rounds,
	const shadow *x);
shadow shadow_hull(tn_dtype t, shadow x, shadow y);
shadow shadow_wild(shadow x);
double dtype_ulp(tn_dtype t, double v);
void shadow_reduce(walk *w);
bool walk_first(walk *w);
bool walk_next(walk *w);

/* ---- running ----------------------------------------------------------- */

struct prop_options {
	uint64_t seed;
	int64_t count, first;
	int32_t jobs, asan_share, batch;
	bool verbose, asan, child, opt3, contract, casts, front, simt, warpgroups;
	const char *keep, *self;
};

typedef struct prop_result {
	int64_t passed, failed, skipped;
	int64_t exact, bounded, free; /* elements: equal bits, within, anything */
	int64_t ranges; /* programs that failed with index.range */
	int64_t kernels;
} prop_result;

typedef struct batch batch; /* batch.c */
batch *batch_new(arena *a, const prop_options *o);
/* Adds the functions of a plan; they are found once the batch is compiled. */
void batch_add(batch *b, const plan *p);
/* false: the compiler rejects it, its message is in *message */
bool batch_compile(batch *b, const char **message);
void batch_find(void *arg, int32_t unit, const char *name, void *fn);
const char *batch_text(const batch *b, int32_t unit);
void asan_poison(const void *p, size_t n, bool poison);

typedef struct job job; /* case.c: one program on its way */
/* Front end and texts; NULL and a message when something is wrong. */
job *job_new(arena *a, ir_table *t, const prop_options *o, prop_case *c,
	const char **message);
bool job_add(job *j, batch *b, const char **message);
/* Runs and compares; false and a message when something is wrong. */
bool job_run(job *j, batch *b, const char **message, prop_result *r);
compilation *job_compilation(const job *j);

/* Draws, compiles alone, runs: NULL when all is well, else the message. */
const char *try_case(arena *a, ir_table *t, const prop_options *o,
	prop_case *c, prop_result *r);
/* A smaller case that fails too; the message of its failure in *message. */
prop_case *shrink_case(arena *a, ir_table *t, const prop_options *o,
	prop_case *c, const char **message);

/* ---- kern_level.c ---- */

typedef struct kern_level {
	arena *a;
	const compilation *made;
	kern_kernel **kernel; /* by kernel of the groups */
	uint64_t seed;
} kern_level;
kern_level *kern_level_new(arena *a, compilation *c); /* which has its kernels */
bool kern_level_fits(const compilation *c);
void kern_level_find(void *arg, int32_t unit, const char *name, void *fn);

/* ---- levels.c ---- */

typedef struct levels {
	arena *a;
	ir_program *program;
	compile_options o; /* as it was compiled */
	bool (*system_is_right)(void *arg, compilation *c);
	bool (*kernels_are_right)(void *arg, compilation *c);
	void *arg;
} levels;
/* The pass behind which the program first computes something else; "c": none of
 * those whose results are interpreted. */
const char *levels_first(const levels *l);
bool levels_are_broken(void); /* on purpose, by PROPTEST_BREAK */
void levels_break(compile_options *o);
void levels_break_plan(compilation *c); /* once it is compiled */

#endif
