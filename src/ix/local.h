/*
 * local.h: private to ix/: what its files share.
 *
 *   intern.c   tables: one pointer per form and atom, with cached properties
 *   normal.c   parts, sums, normal form; add, scale
 *   div.c      division, clamp, functions
 *   subst.c    simplification in context, composition, linear addresses
 *   range.c    bounds
 *   equal.c    is a form zero on its domain?   (reduce.c: changes of its axes)
 *   inject.c   is a form injective?
 *   print.c    value at a point, text
 *
 * Computations use parts, which are terms that are not interned, because many
 * digits are only intermediate: cut, then joined again.
 */
#ifndef IX_LOCAL_H
#define IX_LOCAL_H

#include "ix/ix.h"

__extension__ typedef __int128 wide;

typedef struct part {
	int64_t coef;
	const ix_atom *atom; /* NULL: the digit (axis, lo, hi) */
	int32_t axis;
	int64_t lo, hi;
} part;

/* A sum under construction. Do not copy it: `at` may point into it. */
enum { SUM_FEW = 24 };
typedef struct sum {
	ix *x;
	int64_t c0;
	int32_t n, cap;
	part *at;
	part few[SUM_FEW];
} sum;

/* bounds, inclusive; saturated at +-WIDE_MAX */
#define WIDE_MAX ((wide)1 << 96)
typedef struct span {
	wide min, max;
} span;

/* Largest nesting depth of floor, clamp and fun; more throws ix.depth. */
enum { IX_DEPTH = 400 };

/* ---- intern.c ---- */

_Noreturn void ix_overflow(const ix *x);
int64_t ix_mul(const ix *x, int64_t a, int64_t b);
int64_t ix_plus(const ix *x, int64_t a, int64_t b);
int64_t ix_fit(const ix *x, wide v);

const ix_atom *ix_atom_of(ix *x, const ix_atom *key); /* sets the id */
const ix_form *ix_form_of(ix *x, int64_t c0, const ix_term *t, int32_t n);

/* What an atom or form contains, at any depth. Bit i of axes: axis i. */
enum { HAS_FLOOR = 1, HAS_CLAMP = 2, HAS_FUN = 4 };
uint64_t ix_atom_axes(const ix_atom *a);
uint64_t ix_form_axes(const ix_form *f);
int ix_form_has(const ix_form *f);
int ix_atom_has(const ix_atom *a);

/* Results of the current substitution, by atom id. */
void ix_memo_begin(ix *x);
void ix_memo_end(ix *x);
const ix_form *ix_memo_get(const ix *x, const ix_atom *a);
void ix_memo_set(ix *x, const ix_atom *a, const ix_form *f);

/* ---- normal.c ---- */

static inline bool part_is_digit(const part *p)
{
	return p->atom == NULL;
}
bool part_same(const part *a, const part *b); /* ignores coefficients */
part part_of(const ix_term *t);
part part_digit(int64_t coef, int32_t axis, int64_t lo, int64_t hi);

/* w * (axis div p) */
struct weight {
	int64_t p;
	wide w;
};

/*
 * Normal form of n parts; out and w have room for 2 n. Returns the number of
 * parts, or -1 if a coefficient overflows.
 */
int32_t ix_normal(const ix_box *box, const part *in, int32_t n, part *out,
	struct weight *w);

void sum_init(sum *s, ix *x, int64_t c0);
void sum_part(sum *s, const part *p, int64_t coef);
void sum_digit(sum *s, int64_t coef, int32_t axis, int64_t lo, int64_t hi);
void sum_atom(sum *s, int64_t coef, const ix_atom *a);
void sum_form(sum *s, int64_t k, const ix_form *f);
const ix_form *sum_done(sum *s, const ix_box *box);

/* ---- range.c ---- */

span ix_span(const ix_dom *d, const ix_form *f);
span ix_span_parts(const ix_dom *d, wide c0, const part *p, int32_t n);
/* The values of one axis that the facts allow; min > max: none. */
span ix_span_axis(const ix_dom *d, int32_t axis);

/* ---- reduce.c ---- */

/* An uninterpreted function, its values, and the form that it is applied to. */
typedef struct fun_class {
	int64_t fun, lo, hi;
	const ix_form *at;
	int32_t axis;
} fun_class;

/* A query about a form; its box and facts may be transformed. */
typedef struct problem {
	ix *x;
	arena *a; /* for this query */
	const ix_form *f;
	ix_dom dom;
	bool empty; /* no point satisfies the facts */
	bool twins; /* a function of two different forms became two axes */
	VEC(fun_class) fun;
} problem;

void problem_init(problem *p, ix *x, arena *a, const ix_dom *d,
	const ix_form *f);
void problem_windows(problem *p);   /* facts that bound an axis restrict its box */
void problem_split(problem *p);	    /* splits axes at their cuts */
bool problem_fuse(problem *p);	    /* joins one run of axes; false: none is left */
void problem_assume(problem *p, const ix_form *f, int64_t lo, int64_t hi);

/* L > 0 such that f(x + L*e) - f(x) = *drift for all x, e the unit of the axis;
 * 0: none was found. */
int64_t ix_period(const ix_box *box, const ix_form *f, int32_t axis,
	wide *drift);

/* For qsort, of int64_t. */
static inline int ascending(const void *l, const void *r)
{
	const int64_t *a = l, *b = r;

	return (*a > *b) - (*a < *b);
}

#endif
