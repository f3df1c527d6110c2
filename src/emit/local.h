/*
 * local.h: private to emit/: the state of writing one kernel.
 *
 *   form.c   index forms as C
 *   value.c  values: one, or one per lane; conversions between their kinds
 *   expr.c   expressions, straight-line, each computed once in its block
 *   leaf.c   statements: stores and accumulators
 *   window.c vectors that overlap
 *   tile.c   products of tiles, accumulated in registers
 *   need.c   what of a loop is nothing
 *   nest.c   loops, blocks, vector loops
 *   emit.c   functions, names, translation units
 */
#ifndef EMIT_LOCAL_H
#define EMIT_LOCAL_H

#include "emit/emit.h"
#include "emit/math.h"
#include "loop/loop.h"

/* A value in C. Scalars of dtype bool are int, 0 or 1. f16 and bf16 are f32. */
typedef struct val {
	const char *t; /* C text without side effects: a name or a literal */
	tn_dtype dt;   /* what it is computed in */
	int32_t lanes; /* 1 or em->lanes */
	int32_t mask;  /* lanes > 1 and bool: bytes of a mask's lane */
} val;

struct memo {
	const expr *e;
	val v;
};
struct memo_fun { /* data indices that are loaded */
	const ix_atom *atom;
	const char *t; /* scalar, or array of lanes */
	bool lanes;
};
struct memo_digit { /* digits of the lanes' variable, a vector */
	const ix_atom *atom;
	tn_dtype dt;
	const char *t;
};
struct def { /* elements stored in this block */
	int32_t tensor;
	const ix_form *at;
	val v;
	bool used; /* or stored: C knows no value that nobody uses */
};
struct window { /* a vector that is loaded, by its address */
	int32_t param;
	const char *base;
	int64_t at;
	const char *name, *load;
};
struct path { /* conditions under which something is evaluated */
	val c;
	bool negated;
};
struct span { /* interval of a variable, as C; ends known or not */
	const char *lo, *hi;
	int64_t clo, chi, len; /* -1: not known */
	int64_t mult;	       /* lo is a multiple of it; 0: of anything */
	int64_t whole; /* its length is a multiple of it; 0: not known */
	int64_t most, rest; /* .. is one of these two; most 0: not known */
};
struct need {
	const char *name; /* NULL: type, "@..": own helper, "#": unsigned */
	tn_dtype t;
	int32_t lanes;
};
struct needs {
	int32_t n;
	const struct need *at;
};
/* A value that is reduced over the lanes of the loop around. */
struct lane_acc {
	int32_t eqn;
	int32_t n; /* accumulators of each component */
	int32_t turn;
	tn_dtype acc[IR_MAX_COMP];
	const char *name[IR_MAX_COMP];
};

/* An accumulator in a variable, see hold.c. */
struct hold {
	int32_t eqn;
	val v[IR_MAX_COMP];
};

typedef struct emitter {
	arena *a;
	loop_kernel *k;
	ir_system *s;
	emit_math *m;
	VEC(struct need) needs;
	str *out;
	int32_t depth;
	int32_t n_names;
	const char **var;   /* C names of the variables; "": none, .. */
	int64_t *plus;	    /* .. and what is added to it */
	struct span *span;  /* their intervals */
	ix_dom *dom;	    /* box and guards of the loops around */
	VEC(ix_fact) facts; /* those guards */
	int32_t vvar;	    /* variable that the lanes walk; -1 */
	int32_t lanes;	    /* 1 outside vector loops */
	int32_t dead; /* the last so many: not in memory, nobody looks at them */
	VEC(struct memo) memo;
	VEC(struct memo_fun) fun;
	VEC(struct memo_digit) digit;
	VEC(struct def) def;
	VEC(struct path) path;
	ix_dom path_dom; /* dom and what the conditions of the path say */
	int32_t n_short; /* places found that are right on their path only */
	VEC(struct window) window;
	VEC(struct lane_acc) acc;
	VEC(struct hold) hold;
	val param[2 * IR_MAX_COMP];
	VEC(emit_check) check;
	bool *used_param, *used_buf;
	bool *named; /* [buf] register that is a variable of its scope */
	map *unsafe; /* expr id -> 1 no, 2 yes */
	int32_t phase;
	bool *used_stream;
	bool streams; /* something was stored past the caches */
} emitter;

static inline int32_t em_live(const emitter *em)
{
	return em->lanes - em->dead;
}

/* text */
void em_line(emitter *em, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *em_fresh(emitter *em, const char *prefix);
const char *em_use(emitter *em, const char *name, tn_dtype t, int32_t lanes);
const char *em_own(emitter *em, const char *name); /* helpers of emit.c */
const char *em_unsigned_type(emitter *em, tn_dtype t, int32_t lanes);
const char *em_type(emitter *em, tn_dtype t, int32_t lanes); /* numbers */
const char *em_mask_type(emitter *em, int32_t bytes);
_Noreturn void emit_bug(emitter *em, const char *what, const char *name);

/* form.c: lane NULL: the first lane, else name of a lane's number */
const char *em_form_text(emitter *em, const ix_form *f, const char *lane);
/* of the first lane, without the constant that is added; "": only that */
const char *em_form_split(emitter *em, const ix_form *f, int64_t *plus);
const char *em_digits_text(emitter *em, const loop_buf *b,
	const ix_form *const *digit, const char *lane);
bool em_form_varies(emitter *em, const ix_form *f);	/* between lanes */
tn_dtype em_index_dtype(emitter *em, const ix_form *f); /* of lanes */
void em_load_funs(emitter *em, const ix_form *f);
/* what this block stored there; NULL: not known */
const val *em_stored(emitter *em, int32_t tensor, const ix_form *at);
const char *em_path_text(emitter *em, const char *lane); /* "" : always */

/* value.c */
val em_val_of(const char *t, tn_dtype dt);
val em_literal(emitter *em, tn_dtype dt, double f, int64_t i);
val em_name_val(emitter *em, val v); /* in a variable of its own */
val em_to_lanes(emitter *em, val v);
val em_to_mask(emitter *em, val v, int32_t bytes);
val em_cast(emitter *em, val v, tn_dtype to);
const char *em_val_type(emitter *em, val v);
tn_dtype em_computed(tn_dtype t); /* f16, bf16: f32 */
tn_dtype em_int_of(int32_t bytes);
int32_t em_mask_bytes(const emitter *em); /* of masks kept in variables */

/* expr.c */
val em_ex(emitter *em, const expr *e);
val em_index(emitter *em, const ix_form *f, tn_dtype dt);
void em_lane_digits(emitter *em, const ix_form *f); /* made here, once */
/* A vector at an element's address: all of it, or the lanes that live. */
const char *em_load_text(emitter *em, tn_dtype t, const char *element);
bool em_is_unsafe(emitter *em, const expr *e);
void em_forget(emitter *em, int32_t tensor); /* memos of what it held */
/* where an element of a tensor is, as seen by this kernel */
struct place_of {
	const loop_buf *buf; /* NULL: memory */
	int32_t n_buf, param;
	bool varies;	/* its address, between lanes */
	bool affine;	/* the address walks by stride */
	bool guarded;	/* right where the conditions of the path hold */
	int64_t stride; /* in elements */
	const ix_form *at;
	const ix_form *digit[IX_MAX_AXES];
	tn_dtype dtype;	  /* of its storage */
	const char *base; /* partial results: "q1[96 * c + ", else NULL */
};
void em_address(emitter *em, struct place_of *p); /* varies, affine, stride */
struct place_of em_place_tensor(
	emitter *em, int32_t tensor, const ix_form *at, bool safe);
struct place_of em_place_buf(emitter *em, int32_t n_buf, const ix_form *at);
const char *em_element(emitter *em, const struct place_of *p, const char *lane);
val em_load(emitter *em, const struct place_of *p, bool guarded);
void em_store(emitter *em, const struct place_of *p, val v);

/* leaf.c */
void em_leaf(emitter *em, const loop_node *n);
void em_open_lane_accs(emitter *em, const loop_node *loop, int32_t unroll);
void em_close_lane_accs(emitter *em, int32_t first);
void em_init(emitter *em, const loop_node *n, bool holds);

/* hold.c: list[at] starts what nodes up to the result's add to, in a variable;
 * -1: it stays in its place */
int32_t em_hold_until(
	emitter *em, loop_node *const *list, int32_t n, int32_t at);
void em_hold(emitter *em, int32_t eqn, const val *start);
const val *em_held(const emitter *em, int32_t eqn); /* NULL: it is not */
void em_let_go(emitter *em, int32_t eqn); /* stored */

/* window.c */
void em_open_windows(emitter *em, const loop_node *n);
void em_move_windows(emitter *em, bool start);
bool em_window(emitter *em, const struct place_of *p, val *out);

/* tile.c */
void em_tile(emitter *em, const loop_node *n);

/* need.c: spans of n's variables become what n needs of them */
void em_narrow(emitter *em, const loop_node *n);

/* nest.c */
void em_nest(emitter *em, loop_node *const *list, int32_t n);
bool em_is_unrolled(const emitter *em, const loop_node *n);
void em_declare_registers(emitter *em, const loop_node *scope);
struct marks {
	int32_t memo, fun, def, facts, digit;
};
struct marks em_mark(const emitter *em);
void em_release(emitter *em, struct marks m);

#endif
