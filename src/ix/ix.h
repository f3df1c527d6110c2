/*
 * ix.h: interface of ix/: index expressions. Pure mathematics, without tensors.
 *
 * A form is  c0 + sum coef * atom  over the axes of a box. Atoms are
 *
 *   digit(axis, lo, hi) = (axis div lo) mod (hi / lo)   lo | hi; hi = extent: the mod does nothing
 *   floor(f, m)         = f div m, if that is not a sum of digits
 *   clamp(f, lo, hi)    = max(lo, min(f, hi))           hi inclusive
 *   fun(id, f, lo, hi)  = an uninterpreted function of a form with values in
 *                         lo <= v < hi: "element f of integer tensor id"
 *
 * Division is floor division, `mod` is x - m * (x div m): there is no mod atom.
 * Forms are immutable and interned in an ix: equal pointers mean equal forms;
 * forms with different pointers may be equal: see ix_equal.
 * A form does not contain its box; the caller keeps the box beside it.
 * ix_axis drops axes of extent 1; extents are at least 1. Arithmetic that
 * overflows throws "ix.overflow".
 */
#ifndef IX_H
#define IX_H

#include "base/base.h"

#define IX_MAX_AXES 64

typedef struct ix ix; /* intern tables; one per compilation */
typedef struct ix_form ix_form;
typedef struct ix_atom ix_atom;

enum ix_kind { IX_DIGIT, IX_FLOOR, IX_CLAMP, IX_FUN };

struct ix_atom {
	enum ix_kind kind;
	int32_t id;	  /* dense, in order of creation */
	int32_t axis;	  /* DIGIT */
	int64_t lo, hi;	  /* DIGIT: cuts; CLAMP: bounds inclusive; FUN: lo <= v < hi */
	int64_t den;	  /* FLOOR: m > 0 */
	int64_t fun;	  /* FUN: id given by the caller */
	const ix_form *f; /* FLOOR, CLAMP, FUN: the argument */
};

typedef struct ix_term {
	int64_t coef; /* never 0 */
	const ix_atom *atom;
} ix_term;

struct ix_form {
	int32_t id; /* dense, in order of creation */
	int32_t n;
	int64_t c0;
	ix_term t[]; /* digits by axis, lo and hi descending; other atoms by id */
};

typedef struct ix_box {
	int32_t n;
	const int64_t *extent; /* each >= 1 */
} ix_box;

/* A guard that holds: lo <= f < hi. */
typedef struct ix_fact {
	const ix_form *f;
	int64_t lo, hi;
} ix_fact;

/* The domain of a form: its box and the guards that hold. */
typedef struct ix_dom {
	ix_box box;
	int32_t n_facts;
	const ix_fact *facts;
} ix_dom;

ix *ix_new(arena *a);
arena *ix_arena(const ix *x);

/* ---- constructors: results are in normal form over the domain ---- */

const ix_form *ix_const(ix *x, int64_t c);
const ix_form *ix_axis(ix *x, const ix_dom *d, int32_t axis); /* extent 1: 0 */
const ix_form *ix_digit(ix *x, const ix_dom *d, int32_t axis, int64_t lo,
	int64_t hi); /* hi = extent, or hi % lo == 0 */
const ix_form *ix_add(ix *x, const ix_dom *d, const ix_form *a,
	const ix_form *b);
const ix_form *ix_sub(ix *x, const ix_dom *d, const ix_form *a,
	const ix_form *b);
const ix_form *ix_addc(ix *x, const ix_form *a, int64_t c);
const ix_form *ix_scale(ix *x, const ix_form *a, int64_t k);
const ix_form *ix_div(ix *x, const ix_dom *d, const ix_form *a, int64_t m);
const ix_form *ix_mod(ix *x, const ix_dom *d, const ix_form *a, int64_t m);
const ix_form *ix_clamp(ix *x, const ix_dom *d, const ix_form *a, int64_t lo,
	int64_t hi);
const ix_form *ix_fun(ix *x, int64_t fun, const ix_form *arg, int64_t lo,
	int64_t hi); /* not folded if hi - lo == 1: the value is checked at run time */

/* Simplifies again, under more facts. */
const ix_form *ix_simplify(ix *x, const ix_dom *d, const ix_form *f);

/*
 * f with every axis i of its old box replaced by with[i], a form over d.
 * n is the number of axes of the old box, old_extent their extents.
 */
const ix_form *ix_subst(ix *x, const ix_dom *d, const ix_form *f, int32_t n,
	const int64_t *old_extent, const ix_form *const *with);

/* The sum of at[i] * stride(i), row-major in shape; and the inverse, for
 * 0 <= f < numel. */
const ix_form *ix_linearise(ix *x, const ix_dom *d, int32_t rank,
	const int64_t *shape, const ix_form *const *at);
void ix_delinearise(ix *x, const ix_dom *d, const ix_form *f, int32_t rank,
	const int64_t *shape, const ix_form **out);

/* ---- queries ---- */

/*
 * Bounds over the domain, inclusive; they are exact for sums of digits with
 * nested cuts and no facts, and may be wider otherwise. INT64_MIN, INT64_MAX:
 * unbounded.
 */
void ix_range(const ix_dom *d, const ix_form *f, int64_t *min, int64_t *max);
#define IX_MOST_DATA ((int64_t)1 << 62) /* larger indices from data are errors */
/* f with the range of its only data in which 0 <= f < n; NULL: it has none or several,
 * or no value of it is inside. */
const ix_form *ix_bound_data(
	ix *x, const ix_dom *d, const ix_form *f, int64_t n);

typedef enum ix_verdict { IX_EQUAL, IX_DIFFERENT, IX_UNKNOWN } ix_verdict;
/*
 * Compares forms on all points of the box where the facts hold, for all
 * functions. EQUAL: proved equal everywhere; DIFFERENT: proved to differ
 * somewhere; UNKNOWN: no proof was found, so treat them as unequal (equal.c).
 */
ix_verdict ix_equal(ix *x, const ix_dom *d, const ix_form *a, const ix_form *b);

/* Nesting depth of floors, clamps and functions; 0: only digits. Each level
 * multiplies the cost of queries. */
int32_t ix_form_depth(const ix_form *f);

/* Is f exactly one digit: coefficient 1, no constant, nothing else? */
bool ix_is_digit(const ix_form *f, const ix_atom **out);
/* Does f depend on this axis? Does it contain fun atoms? */
bool ix_uses_axis(const ix_form *f, int32_t axis);
bool ix_has_fun(const ix_form *f);
/* The coefficient of the axis, of this extent, in f; false: f depends on it in another
 * way. */
bool ix_stride(const ix_form *f, int32_t axis, int64_t extent, int64_t *stride);

/*
 * Is f injective on the box? EQUAL: yes; DIFFERENT: no; UNKNOWN: undecided.
 * (A view is writable iff its address form is injective.)
 */
ix_verdict ix_injective(ix *x, const ix_dom *d, const ix_form *f);

/* The value at a point; fun(arg, id, value) evaluates the functions. */
typedef int64_t ix_fun_eval(void *arg, int64_t fun, int64_t at);
int64_t ix_eval(const ix_form *f, const int64_t *point, ix_fun_eval *fun,
	void *arg);

/* "4*i + (j/2)%3 + 1"; names[axis] NULL: a_<axis>. fun_name may be NULL. */
typedef const char *ix_fun_name(void *arg, int64_t fun);
void ix_print(str *s, const ix_form *f, const ix_box *box,
	const char *const *names, ix_fun_name *fun_name, void *arg);

#endif
