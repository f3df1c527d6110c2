/*
 * text.h: prints a kernel statement by statement, in C or in a dialect of it.
 *
 * print.c prints what all dialects share: values, loops, conditions; a dialect
 * prints the rest. c_print uses the dialect of GNU vectors; target/cuda has one
 * of its own, in which each thread computes one lane.
 */
#ifndef TARGET_C_TEXT_H
#define TARGET_C_TEXT_H

#include "target/c/c.h"
#include "target/c/math.h"

/* A helper or a type that the text names. */
typedef enum need_kind {
	NEED_TYPE,     /* lanes of a dtype */
	NEED_UNSIGNED, /* the same, unsigned */
	NEED_MATH,     /* helper of math.c, by name */
	NEED_INT,      /* helper for integers, by name: see unit.c */
	NEED_FROM,     /* `of` from floats of t, in lanes */
	NEED_TURN,     /* square of t, lanes by lanes */
	NEED_DOT,      /* lanes of t from factors of `of` and, name, of i8 or u8 */
	NEED_TILES,    /* lanes vectors of columns, rows of `of` by columns of t; lanes 0:
			* the number of rows of tile registers */
	NEED_REPEAT,   /* t in `lanes` from `other` lanes */
	NEED_ZIP,      /* t in `lanes` from two of half as many */
	NEED_TEXT      /* the function `name`, whose text is `text` */
} need_kind;

struct need {
	need_kind kind;
	const char *name;
	tn_dtype t, of;
	int32_t lanes, other;
	const char *text;
};
struct needs {
	int32_t n;
	const struct need *at;
};

typedef struct printer {
	arena *a;
	const kern_kernel *k;
	c_math *m;
	map *known; /* needs that are listed */
	VEC(struct need) needs;
	str *out;
	int32_t depth;
	int32_t n_loops; /* printed so far */
	bool *is_let;	/* [value] named by a statement before */
	kern_val *name; /* [value] whose name it has */
	const kern_phase *phase; /* the current one */
	const kern_stmt *by_warp; /* the open loop by warp, where one thread runs it */
	bool *each_warp; /* [value] a register that each warp has: an array then */
	bool *mentioned; /* [value] c_name was asked for it; NULL: that is not kept */
	bool *used;	/* [array] in this phase */
	bool tiled;	/* it uses tile registers */
	int32_t *streams; /* bytes of vectors that go past the caches; 0: none */
	const struct dialect *d;
	const void *more; /* of the dialect */
} printer;

/* Prints the statements of a block. */
typedef void c_print_block(printer *p, const kern_block *b);

/* How a dialect prints what it does not share with the others. */
typedef struct dialect {
	c_language words;
	/* the name of a value that the dialect has added, or NULL; the member
	 * may be NULL */
	const char *(*name)(printer *p, kern_val v);
	/* the expression of an instruction */
	const char *(*value)(printer *p, kern_val v);
	/* prints the statements of an instruction that no expression computes;
	 * false: v is not such a one */
	bool (*let)(printer *p, kern_val v);
	/* what is printed before a statement */
	void (*before)(printer *p, const kern_stmt *s);
	void (*store)(printer *p, const kern_stmt *s);
	/* the accesses that list[0] says are done together; the member may be
	 * NULL: they are printed one by one */
	void (*together)(printer *p, kern_stmt *const *list);
	void (*set_lane)(printer *p, const kern_stmt *s);
	void (*array)(printer *p, const kern_stmt *s);
	void (*prefetch)(printer *p, const kern_stmt *s);
	void (*fence)(printer *p);
	void (*barrier)(printer *p);
	/* the number of this warp in its block, by which loops begin; the member
	 * may be NULL: one thread runs the iterations of all warps */
	const char *(*warp)(printer *p);
	/* opens a loop by lane, for the one iteration of this lane; the member may be
	 * NULL: one thread runs those of all lanes */
	void (*by_lane)(printer *p, const kern_stmt *s);
	void (*turn)(printer *p, const kern_stmt *s);
	void (*matrix)(printer *p, const kern_stmt *s); /* MMA, TAKE, GIVE */
	void (*async)(printer *p, const kern_stmt *s); /* ASYNC, COMMIT, WAIT */
	/* prints a call of a function of its own for what is done rarely; false: the block
	 * stays where it is. The member may be NULL: all of them do */
	bool (*rarely)(printer *p, const kern_block *b, c_print_block *print);
	/* the first and the last lines of a function's body */
	void (*open)(printer *p);
	void (*close)(printer *p);
	/* the function's head */
	void (*head)(printer *p, str *out, const char *name);
} dialect;

/* Where a kernel's scratch is; no such places: all of it is at `scratch`. */
struct c_places {
	const c_kernel *cells; /* cell i is at p[n_params + i] */
	bool exported;	       /* functions begin with KERNEL */
};
/* cells.c: lists the cells of k, with their offsets and sizes */
void c_find_cells(arena *a, const kern_kernel *k, c_kernel *out);
/* .. sets used[i] for the arrays i that the block names */
void c_find_used(const printer *p, const kern_block *b, bool *used);

/* print.c */
c_kernel *c_print_as(arena *a, const kern_kernel *k, const dialect *d,
	const void *more);
c_kernel *c_print_apart(arena *a, const kern_kernel *k); /* of c_apart */
c_kernel *c_print_plain(arena *a, const kern_kernel *k); /* of c_apart_plain */
/* The word in the dialect's language. */
const char *c_word_of(const printer *p, c_word w);
void c_checked(printer *p, kern_val v, const char *failed);

/* rarely.c: dialect.rarely */
bool c_rarely(printer *p, const kern_block *b, c_print_block *print);

/* line.c */
void c_line(printer *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* value.c: what C calls and computes */
const char *c_type(printer *p, kern_type t);
const char *c_stored_type(printer *p, tn_dtype t);
const char *c_index_type(printer *p); /* of indices */
const char *c_type_of(printer *p, kern_val v); /* of the variable that holds it */
const char *c_name(printer *p, kern_val v); /* or a literal */
const char *c_form(printer *p, const kern_form *f);
const char *c_array_name(const printer *p, int32_t array); /* "p1" */
const char *c_element(printer *p, const kern_access *at); /* "p1[4 * x3]" */
const char *c_value(printer *p, kern_val v); /* of the instruction */
/* Does a name stand for the value in the text so far? */
bool c_is_named(const printer *p, kern_val v);
/* The operand of a statement: its name, or the expression that computes it. */
const char *c_taken(printer *p, kern_val v);
const char *c_use(printer *p, const char *helper, tn_dtype t, int32_t lanes);
const char *c_int_helper(printer *p, const char *name);
const char *c_turn(printer *p, tn_dtype t, int32_t lanes);
void c_need(printer *p, struct need n);
/* Is this the first time that `known` is asked for it? */
bool c_first(arena *a, map *known, const struct need *n);

/* lanes.c */
/* Lanes of a form are computed by statements, not by an expression. */
bool c_is_by_lane(const kern_value *x);
void c_by_lane(printer *p, kern_val v);
/* Are its lanes no neighbours in memory? */
bool c_is_far(const kern_access *at, kern_type t);
void c_load_far(printer *p, kern_val v);
void c_store_far(printer *p, const kern_stmt *s, const char *x);

/* tiles.c: TILES; the first and last lines of a function that has it; the helpers */
void c_tiles(printer *p, const kern_stmt *s);
void c_open_tiles(printer *p);
void c_close_tiles(printer *p);
void c_tiles_text(str *out, c_math *m, const struct need *d);

/* dot.c: prints the helper that a need of these kinds asks for */
void c_dot_text(str *out, c_math *m, const struct need *d);

#endif
