/*
 * lower.h: private to the lowering of a scheduled tree to kern.
 *
 *   lower.c         kernels, phases, arrays of the header
 *   lower_out.c     statements and values of kern, numbered in their blocks
 *   lower_form.c    index forms as kern forms
 *   lower_value.c   values: one, or one per lane; conversions between their kinds
 *   lower_expr.c    expressions, each computed once in its block
 *   lower_path.c    conditions of the sides of selects
 *   lower_digit.c   an index in each lane, for all lanes at once
 *   lower_index.c   indices as values, and indices that are read from data
 *   lower_place.c   where elements lie: loads and stores
 *   lower_race.c    what other chunks may be writing
 *   lower_once.c    stores of what all warps of a block have alike
 *   lower_leaf.c    statements: stores and accumulators
 *   lower_acc.c     accumulators in lanes; parts of split sums
 *   lower_turn.c    transposed tiles
 *   lower_hold.c    accumulators in registers
 *   lower_window.c  vectors that overlap
 *   lower_tile.c    products of tiles, accumulated in registers (lower_sums.c)
 *   lower_dot.c     .. by sums of neighbours
 *   lower_matrix.c  .. by matrix instructions
 *   lower_stages.c  copies that go on while earlier pieces are computed with
 *   lower_finish.c  what is done to the finished sums of a tile
 *   lower_need.c    what of a loop is nothing
 *   lower_front.c   masks of lanes, in front of the loops that ask for them
 *   lower_held.c    sums in registers of the warps, and the loops that walk them
 *   lower_rows.c    reductions along rows of such registers
 *   lower_fused.c   products that are added to sums abreast in registers
 *   lower_nest.c    loops, blocks, vector loops
 */
#ifndef KERN_LOWER_H
#define KERN_LOWER_H

#include "kern/kern.h"
#include "loop/loop.h"

/*
 * A value. f16 and bf16 in memory are values of these dtypes, bools in memory
 * are u8; they are computed in f32 and as bools. A single bool is 0 or 1; one
 * per lane is a mask of 0 and -1 in whole numbers of `mask` bytes.
 */
typedef struct val {
	kern_val id;
	tn_dtype dt;
	int32_t lanes; /* 1 or lw->lanes */
	int32_t mask;  /* lanes > 1 and bool: bytes of a mask's lane */
} val;

typedef const kern_form *form;

struct memo {
	const expr *e;
	val v;
};
struct memo_fun { /* data indices that are loaded */
	const ix_atom *atom;
	form at;       /* one for all lanes */
	int32_t array; /* else an element for each */
};
struct memo_digit { /* digits of the lanes' variable, a vector */
	const ix_atom *atom;
	tn_dtype dt;
	val v;
};
struct def { /* elements stored in this block */
	int32_t tensor;
	const ix_form *at; /* NULL: a register, known by its tensor alone */
	val v;
};
struct carry { /* the last element of a scan, in a register */
	int32_t eqn, comp;
	const ix_form *before; /* the element, seen from the next one */
	val reg, last;	       /* last: of this iteration */
};
struct window { /* a vector that is loaded, by its address */
	int32_t param;
	form base;	     /* in the loop, without the constant */
	const ix_form *line; /* the same, by variables */
	int64_t at;	     /* the constant */
	bool inside;	     /* always within the tensor */
	val v;
};
struct path { /* conditions under which something is evaluated */
	val c;
	bool negated;
};
struct span { /* interval of a variable; ends known or not */
	form lo, hi;
	int64_t clo, chi, len; /* -1: not known */
	int64_t mult;	       /* lo is a multiple of it; 0: of anything */
	int64_t whole; /* its length is a multiple of it; 0: not known */
	int64_t most, rest; /* .. is one of these two; most 0: not known */
	int64_t end; /* hi is a multiple of mult, or this; 0: not known */
};
struct block { /* a BLOCK that is open: where its piece begins */
	int32_t var, level;
	form from;
};
/* A value that is reduced over the lanes of the loop around. */
struct lane_acc {
	int32_t eqn;
	int32_t n; /* accumulators of each component, for each row */
	int32_t turn;
	/* variables of the result that unrolled loops inside walk: rows abreast */
	int32_t n_vars, rows;
	struct {
		int32_t var, rows;
	} walk[LOOP_MAX_WALKS];
	tn_dtype acc[IR_MAX_COMP];
	val *v[IR_MAX_COMP]; /* [component][turn * rows + row] */
};
struct row_acc { /* a reduction along rows of registers of warps: lower_rows.c */
	int32_t eqn;
	val v[2]; /* of the two rows of a lane */
};
struct hold { /* an accumulator in a register, see lower_hold.c */
	int32_t eqn;
	val v[IR_MAX_COMP];
};

/* What of a tree is lowered: everything, copies of factors only, or what else. */
enum { LW_ALL, LW_COPIES, LW_OTHERS };

typedef struct lowering {
	arena *a;
	loop_kernel *k;
	ir_system *s;
	kern_builder *b;
	form *var;	    /* value of each variable .. */
	int64_t *plus;	    /* .. and what is added to it */
	struct span *span;  /* their intervals */
	ix_dom *dom;	    /* box and guards of the loops around */
	VEC(ix_fact) facts; /* those guards */
	int32_t vvar;	    /* variable that the lanes walk; -1 */
	int32_t lanes;	    /* 1 outside vector loops */
	int32_t each;	    /* elements from a lane to the next; 1, but in wide loops */
	int32_t dead; /* number of the last lanes that are outside memory and unused */
	VEC(struct memo) memo;
	VEC(struct memo_fun) fun;
	VEC(struct memo_digit) digit;
	VEC(struct def) def;
	VEC(struct path) path;
	ix_dom path_dom; /* dom and what the conditions of the path say */
	int32_t n_short; /* places found that are right on their path only */
	VEC(kern_val) loaded; /* registers that are 0 in lanes off their path */
	VEC(struct window) window;
	VEC(struct lane_acc) acc;
	VEC(struct hold) hold;
	VEC(struct row_acc) rows;
	int32_t number; /* in loops over registers of warps: which of them .. */
	form of_lane;	/* .. and its lane; NULL: a whole register */
	VEC(struct carry) carry;
	VEC(struct block) block;
	val param[2 * IR_MAX_COMP];
	/* by buf * LOOP_MAX_STAGES + stage: number in the header; -1: not yet */
	int32_t *array_of_buf;
	int32_t *array_of_part; /* the same by eqn * IR_MAX_COMP + comp */
	val **reg; /* [buf] registers that are declared, one for each element; id 0: not here */
	val **sums; /* [buf] registers of sums that warps hold; NULL: not here */
	bool *named; /* [buf] register that is a variable of its scope */
	bool *here;  /* [eqn] some of it is done in one of this phase's chunks */
	map *unsafe; /* expr id -> 1 no, 2 yes */
	map *data; /* eqn -> 2: an address of it depends on data, 1: none */
	int32_t phase;
	int32_t only;  /* LW_ALL .. */
	int32_t stage; /* of buffers that have several */
	int32_t dealt; /* loops by warp around; 0: all warps do the same */
	form chunk;
	struct {
		int32_t add, sub, mul, div, sqrt, and, or, not, sel, ge, lt, eq, ne;
	} fn; /* of scalar.def */
	bool streams; /* something was stored past the caches */
} lowering;

static inline int32_t lw_live(const lowering *lw)
{
	return lw->lanes - lw->dead;
}

_Noreturn void lw_bug(lowering *lw, const char *what, const char *name);

/* forms */
static inline form lw_num(lowering *lw, int64_t c)
{
	return kern_form_const(lw->b->k, c);
}
static inline form lw_form_of(lowering *lw, kern_val v)
{
	return kern_form_of(lw->b->k, v);
}
static inline form lw_add(lowering *lw, form f, form g)
{
	return kern_form_add(lw->b->k, f, g);
}
static inline form lw_sub(lowering *lw, form f, form g)
{
	return kern_form_sub(lw->b->k, f, g);
}
static inline form lw_scale(lowering *lw, form f, int64_t c)
{
	return kern_form_scale(lw->b->k, f, c);
}
static inline form lw_addc(lowering *lw, form f, int64_t c)
{
	return kern_form_addc(lw->b->k, f, c);
}

/* lower_form.c: lane 0: the first lane, else the number of a lane */
form lw_form(lowering *lw, const ix_form *f, kern_val lane);
form lw_var(lowering *lw, int32_t var); /* its value now */
form lw_digits(lowering *lw, const loop_buf *b, const ix_form *const *digit,
	kern_val lane);
bool lw_form_varies(const lowering *lw, const ix_form *f); /* between lanes */
/* Does each lane have elements of its own of a tensor that this kernel computes? */
bool lw_is_per_lane(const lowering *lw, int32_t tensor);
/* Does the form differ between lanes because it is made of such data? */
bool lw_data_varies(const lowering *lw, const ix_form *f);
/* Where the piece of this variable's block of that level begins. */
form lw_block_at(lowering *lw, int32_t var, int32_t level);
/* The first index of a sum, or of the current piece of a cut sum. */
form lw_start_of(lowering *lw, const loop_node *n, int32_t sum);
int32_t lw_block_level(const loop_node *n);
bool lw_is_unrolled(const lowering *lw, const loop_node *n); /* completely */

/* lower_scan.c: opens registers for the last elements of the scans of a loop; in an
 * iteration they are what was made before, then what it made */
void lw_open_scans(lowering *lw, const loop_node *n);
void lw_enter_scans(lowering *lw, const loop_node *n);
void lw_leave_scans(lowering *lw, const loop_node *n);
void lw_made(lowering *lw, int32_t eqn, int32_t comp, val v);
/* .. the elements of a vector, which its lanes combine */
bool lw_scans_in_lanes(const lowering *lw, const loop_eqn *e);
val lw_scan_lanes(lowering *lw, int32_t eqn);

/* lower_out.c: values; `type`: a value of the type, its id is not looked at */
val lw_const(lowering *lw, tn_dtype dt, double f, int64_t i);
val lw_bool(lowering *lw, bool on);
bool lw_is_const(lowering *lw, val c, bool *on);
val lw_call(lowering *lw, int32_t fn, val type, int32_t n, const val *x);
val lw_call2(lowering *lw, int32_t fn, val type, val x, val y);
val lw_op1(lowering *lw, kern_op op, val type, val x);
val lw_op3(lowering *lw, kern_op op, val type, val x, val y, val z); /* id 0: none */
val lw_mad(lowering *lw, val x, val y, val z);
/* Is each value that memory of the dtype has rounded to itself? Floats of a byte
 * saturate: infinity becomes their largest number. */
bool lw_keeps(tn_dtype t);
val lw_round(lowering *lw, val v, tn_dtype to);
val lw_shuffle(lowering *lw, val x, val y, const int64_t *lane);
val lw_lane_of(lowering *lw, val v, form lane);
val lw_first_lanes(lowering *lw, int32_t bytes, int32_t n); /* a mask */
val lw_load_at(lowering *lw, const kern_access *at, val type);
int32_t lw_as_part(const lowering *lw, int32_t live); /* 0: all lanes */
val lw_load_from(lowering *lw, int32_t array, form at, val type, int32_t live);
void lw_store_to(lowering *lw, int32_t array, form at, val v, int32_t live);
val lw_and(lowering *lw, val x, val y); /* bools or masks */
val lw_not(lowering *lw, val x);
/* whole numbers of forms; folded where they are known */
val lw_index_val(lowering *lw, form f, tn_dtype dt);
val lw_lanes_of_form(lowering *lw, tn_dtype dt, form f, int64_t stride);
/* lo <= f < hi; INT64_MIN, INT64_MAX: no bound */
val lw_inside(lowering *lw, form f, int64_t lo, int64_t hi);
val lw_less(lowering *lw, form f, form g);
val lw_equal(lowering *lw, form f, form g);

/* lower_out.c: statements */
val lw_register(lowering *lw, val type, kern_val start); /* 0: zero */
void lw_set(lowering *lw, val reg, val v);
void lw_set_lane(lowering *lw, val reg, kern_val lane, val v);
kern_val lw_for(lowering *lw, form lo, form hi); /* opens it; its variable */
kern_val lw_for_lanes(lowering *lw, int64_t n);  /* 0 .. n - 1 */
void lw_if(lowering *lw, val c);
void lw_close(lowering *lw); /* the loop, or the condition */

/* lower_value.c */
val lw_type(const lowering *lw, tn_dtype dt, int32_t lanes);
val lw_to_lanes(lowering *lw, val v);
val lw_to_mask(lowering *lw, val v, int32_t bytes);
val lw_cast(lowering *lw, val v, tn_dtype to);
val lw_widen(lowering *lw, val v, tn_dtype stored);  /* as computed with */
val lw_narrow(lowering *lw, val v, tn_dtype stored); /* as stored */
tn_dtype lw_computed(tn_dtype t); /* of f16 f32, of i4 i8 .. */
tn_dtype lw_stored(tn_dtype t);	  /* bool: u8 */
int32_t lw_mask_bytes(const lowering *lw); /* of masks kept in registers */

/* lower_index.c */
val lw_index(lowering *lw, const ix_form *f, tn_dtype dt);
void lw_load_funs(lowering *lw, const ix_form *f);
void lw_hoist_funs(lowering *lw, const loop_node *n); /* before it is opened */

/* lower_digit.c */
/* Can it be computed for all lanes at once, and need not be lane by lane? Then its
 * value in each lane; f differs by lane. */
bool lw_index_in_vectors(lowering *lw, const ix_form *f);
val lw_index_lanes(lowering *lw, const ix_form *f, tn_dtype dt);
tn_dtype lw_index_dtype(lowering *lw, const ix_form *f); /* of lanes */
void lw_lane_digits(lowering *lw, const ix_form *f); /* made here, once */

/* lower_owner.c */
/* Does the update of the leaf, a scatter, change an element of the blocks around?
 * id 0: no block divides its elements. */
val lw_owned(lowering *lw, const loop_node *leaf, kern_val lane);
/* The scatter whose updates the loop n walks, of which lanes find those of the
 * chunk; NULL: none. */
const loop_node *lw_searched(lowering *lw, const loop_node *n);
/* Which updates from the loop's value on are the chunk's: a mask */
val lw_search(lowering *lw, const loop_node *n, const loop_node *leaf);

/* lower_path.c */
/* the conditions of the path, at a lane or of those that are one for all */
val lw_path(lowering *lw, kern_val lane);
val lw_path_of_all(lowering *lw); /* of those that are one; id 0: none */
val lw_path_mask(lowering *lw, int32_t bytes); /* of the others, the same */
bool lw_path_mixed(const lowering *lw); /* do lanes differ in it? */

/* lower_expr.c */
val lw_ex(lowering *lw, const expr *e);
bool lw_is_unsafe(lowering *lw, const expr *e);
/* The expression where c holds (id 0: in all lanes), and with it all of `all`; NULL: that
 * says nothing. */
val lw_side(lowering *lw, const expr *e, val c, const expr *all);
void lw_forget(lowering *lw, int32_t tensor); /* memos of what it held */
/* What is known at the start of a block; at its end the rest is forgotten. */
struct marks {
	int32_t memo, fun, def, facts, digit;
};
struct marks lw_mark(const lowering *lw);
void lw_release(lowering *lw, struct marks m);

/* lower_place.c: where an element of a tensor is, as seen by this kernel */
struct place_of {
	const loop_buf *buf; /* NULL: memory */
	int32_t n_buf, param;
	int32_t array;	/* of the kernel; -1: a register */
	bool varies;	/* its address, between lanes */
	bool affine;	/* the address walks by stride */
	bool guarded;	/* right where the conditions of the path hold */
	int64_t stride; /* in elements */
	const ix_form *at;
	const ix_form *digit[IX_MAX_AXES];
	tn_dtype dtype; /* of its storage */
	form plus;	/* partial results: where those of this part begin */
};
void lw_address(lowering *lw, struct place_of *p); /* varies, affine, stride */
struct place_of lw_place_tensor(
	lowering *lw, int32_t tensor, const ix_form *at, bool in_memory);
/* .. where what reads it finds it: in a copy, if there is one of this tile */
struct place_of lw_place_read(lowering *lw, int32_t tensor, const ix_form *at);
struct place_of lw_place_buf(lowering *lw, int32_t n_buf, const ix_form *at);
/* Is it one of several registers, of loops that are written out? */
bool lw_is_abreast(const struct place_of *p);
form lw_element(lowering *lw, const struct place_of *p, kern_val lane);
/* as stored; guard: read where it holds, else 0; live: lanes, 0: all */
val lw_load_scalar(lowering *lw, const struct place_of *p, kern_val lane,
	const val *guard);
/* what this block stored in a tensor at an index (registers have none); NULL: it
 * is not known */
const val *lw_stored_at(lowering *lw, int32_t tensor, const ix_form *at);
/* as computed with */
val lw_load(lowering *lw, const struct place_of *p, bool guarded);
/* by each warp that comes here */
void lw_put(lowering *lw, const struct place_of *p, val v);

/* lower_fused.c: adds the product of n, a statement, to the sum in registers, by one
 * instruction; false: it is not a product, or not a sum */
bool lw_adds_product(lowering *lw, const loop_node *n, const struct place_of *at);

/* lower_once.c: the same by one warp of a block, where all of them come */
void lw_store(lowering *lw, const struct place_of *p, val v);

/* lower_race.c: may another chunk write elements of the tensor while this one reads
 * it? but: the index of the only element that is read, if its own iteration may
 * write that; else NULL. */
bool lw_may_race(const lowering *lw, int32_t tensor, const ix_form *but);

/* lower_leaf.c */
void lw_leaf(lowering *lw, const loop_node *n);
void lw_init(lowering *lw, const loop_node *n, bool holds);
void lw_comment(lowering *lw, const loop_node *n);

/* lower_acc.c */
/* in what, and how, values are combined */
struct how {
	const loop_eqn *e;
	const tn_dtype *acc;
	bool next; /* y is one element, behind all in x */
};
val lw_combine(lowering *lw, struct how h, int32_t comp, const val *x,
	const val *y);
struct place_of lw_target(lowering *lw, int32_t eqn, int32_t comp);
void lw_open_lane_accs(lowering *lw, const loop_node *loop, int32_t unroll);
void lw_close_lane_accs(lowering *lw, int32_t first);
struct lane_acc *lw_find_acc(lowering *lw, int32_t eqn);
int32_t lw_acc_now(const lowering *lw, const struct lane_acc *l);
val lw_as_acc(lowering *lw, val v);
void lw_part(lowering *lw, const loop_node *n);
void lw_join(lowering *lw, const loop_node *n);

/* lower_turn.c */
void lw_transpose(lowering *lw, const loop_node *n);

/* lower_hold.c: list[at] starts what nodes up to the result's add to, in a
 * register; -1: it stays in its place */
int32_t lw_hold_until(
	lowering *lw, loop_node *const *list, int32_t n, int32_t at);
void lw_hold(lowering *lw, int32_t eqn, const val *start);
const val *lw_held(const lowering *lw, int32_t eqn); /* NULL: it is not */
void lw_let_go(lowering *lw, int32_t eqn); /* stored */
/* .. what the statements of an unrolled loop add up alone; the number held before */
int32_t lw_hold_sums(lowering *lw, const loop_node *n);
void lw_let_go_of(lowering *lw, int32_t first); /* those from this number on */

/* lower_window.c: in front of the vector loop n; in it, at its start and end */
void lw_open_windows(lowering *lw, const loop_node *n);
void lw_enter_windows(lowering *lw);
void lw_move_windows(lowering *lw);
bool lw_window(lowering *lw, const struct place_of *p, val *out);

/* lower_tile.c */
void lw_tile(lowering *lw, const loop_node *n);
struct tile {
	lowering *lw;
	const loop_node *n;
	const loop_eqn *e;
	int32_t rows, vectors, valid; /* valid: columns in the last vector */
	val *acc;		      /* [row * vectors + vector] */
	val finite, last; /* sums of whole vectors, and of elements */
	val again; /* a register: are the sums not finite? id 0: asked at once */
	bool has_last;
	bool all_first; /* the sums begin everywhere */
	val first;	/* else: where they begin */
	/* id not 0: they are checked only where this holds, in their last block */
	val at_last;
	int32_t array;	/* all accumulators, once they are done; 0: it is not made */
	/* if tile registers add up the sums: */
	bool in_memory; /* they are nowhere else; false: in `acc`, but while they are added up */
	bool sure;	/* all terms of this tile count: it is not checked */
	kern_access sums;  /* the first of them in memory */
	int64_t sums_step; /* between rows of them */
	val begins; /* id not 0: if it holds, they are 0 before, whatever is in memory */
};
/* lower_sums.c */
typedef void of_each(struct tile *t, int32_t row, int32_t vector);
void lw_each(struct tile *t, of_each *fn);
val lw_acc(const struct tile *t, int32_t row, int32_t vector);
/* Sets the row and column variables to those of one accumulator. */
void lw_move_to(struct tile *t, int32_t row, int32_t vector);
void lw_declare_acc(struct tile *t, int32_t row, int32_t vector);
void lw_load_acc(struct tile *t, int32_t row, int32_t vector);
/* Loads all of them, unless this is the first block of the sums. */
void lw_load_accs(struct tile *t);
void lw_store_acc(struct tile *t, int32_t row, int32_t vector);
void lw_open_sums(struct tile *t);
void lw_close_loops(lowering *lw, int32_t n);
/* Calls fn for all numbers of rows and columns that the blocks around n can have,
 * under the condition that they are these. row_var -1: one row. */
typedef void of_size(void *arg, int64_t rows, int64_t columns);
void lw_each_size(lowering *lw, const loop_node *n, int32_t row_var, int32_t var,
	of_size *fn, void *arg);
/* Does it call fn more than once? */
bool lw_has_sizes(const lowering *lw, const loop_node *n, int32_t row_var,
	int32_t var);
/* Calls fn for pieces of so many elements of var's interval, whose variable is then
 * the first of a piece: in a loop, and once more for the last, if that is shorter.
 * The length of the interval, or of the two that it may have, must be known. */
typedef void lw_piece(void *arg, int32_t elems);
void lw_pieces(
	lowering *lw, int32_t var, int32_t each, lw_piece *fn, void *arg);
/* lower_dot.c: adds all terms of a tile by sums of neighbours; copies a factor so
 * that they adjoin */
void lw_dots(struct tile *t);
void lw_group(lowering *lw, const loop_node *n);
/* lower_tiles.c: are its sums in memory before and behind it? Then they begin there */
bool lw_tiles_in_memory(struct tile *t);
/* else accumulators are moved there and back; the terms of the innermost sum between */
void lw_begin_tiles(struct tile *t);
void lw_add_tiles(struct tile *t, int32_t terms);
void lw_end_tiles(struct tile *t);
/* lower_matrix.c */
void lw_matrix(struct tile *t);
/* How far the element of a tensor is from x when var is so much more. */
int64_t lw_step_of(lowering *lw, int32_t tensor, const ix_form *at, int32_t var,
	int64_t by, const kern_form *x);
/* The element of a tensor for the current variables, and how far that of the next
 * row is from it; elements along `along` adjoin. */
kern_access lw_rows(lowering *lw, int32_t tensor, const ix_form *at,
	int32_t row, int32_t along, int64_t *step);

/* lower_held.c: registers of sums that warps hold: declared; as the accumulators of
 * a tile; the loops that walk them */
void lw_declare_held(lowering *lw, int32_t buf);
void lw_take_held(struct tile *t);
void lw_take_matrix(struct tile *t, kern_val *acc);
/* Calls fn for each lane of each register of sums of matrix instructions, in a loop
 * by lane, with the row and the column that it is the sum of. */
typedef void of_lane(void *arg, int32_t number, form lane);
void lw_each_lane(lowering *lw, const loop_node *tile, int32_t vectors,
	of_lane *fn, void *arg);
/* Stores such sums, finished, in addition to those of earlier pieces. */
void lw_store_finished(struct tile *t, const kern_val *acc);
typedef void of_held(lowering *lw, const loop_node *rows); /* for one element */
void lw_walk_held(lowering *lw, const loop_node *n, of_held *body);

/* lower_rows.c: what statements of these columns add up along rows; is n such a
 * statement, and was it lowered for the current element? the end of all from `first` */
void lw_open_rows(lowering *lw, const loop_node *columns);
bool lw_adds_row(lowering *lw, const loop_node *n);
void lw_close_rows(lowering *lw, const loop_node *tile, int32_t first);
/* Opens a condition that the variable is inside of its interval, unless it is so for
 * the first `most` values; returns how many were opened. */
int32_t lw_open_inside(lowering *lw, int32_t var, int64_t most);

/* lower_stages.c: is node n done with, where only copies are lowered, or all but
 * them? */
bool lw_copies(lowering *lw, const loop_node *n);
/* lower_finish.c */
void lw_finish(struct tile *t, int64_t columns);
/* Sets t->at_last, if it is enough to look at the sums there. */
void lw_find_last(struct tile *t);
/* Computes the tile term by term if t->again says so, whatever its size is. */
void lw_again(struct tile *t);
void lw_store_checked(struct tile *t, int64_t columns);

/* lower_need.c: spans of n's variables become what n needs of them */
void lw_narrow_to_need(lowering *lw, const loop_node *n);
/* Opens the condition that all that n needs can hold for some values in the current
 * intervals, unless that is certain; *open: how many were opened. False: it never can. */
bool lw_open_need(lowering *lw, const loop_node *n, int32_t *open);
/* Does a condition hold for all values in them? false: it may not. */
val lw_always(lowering *lw, const loop_node *n, const expr *c);

/* lower_front.c */
void lw_masks_in_front(lowering *lw, const loop_node *n, bool digits);
/* .. and what the rows of n, which are summed abreast, read alike */
void lw_rows_in_front(lowering *lw, const loop_node *n);

/* lower_nest.c */
void lw_nest(lowering *lw, loop_node *const *list, int32_t n);
void lw_declare_registers(lowering *lw, const loop_node *scope);

#endif
