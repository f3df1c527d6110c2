/*
 * lower.h: an instance's equations into a system.
 *
 *   lower.c       the program: calls in order, versions, merging, copies
 *   lower_expr.c  nodes of an equation to expressions and forms
 *   lower_left.c  left sides solved for their letters: pull form, push form
 *   compact.c     what no output needs goes away
 */
#ifndef SYSTEM_LOWER_H
#define SYSTEM_LOWER_H

#include "system/local.h"

typedef struct lower {
	ir_system *s;
	ix *x;
	arena *a;
	env *e;
	const struct ir_program *p; /* for program/lower.c */
	map *merged;	   /* structure of an equation -> its number */
	int32_t *of_value; /* program value -> tensor */
	int32_t n_storages;
} lower;

/* One equation on its way. */
typedef struct leq {
	lower *w;
	const ir_inst *p;
	const in_eqn *q;
	const in_eqn *eqn; /* q, or that of which q is one component */
	int32_t number; /* of the call */
	loc at;
	int32_t *tensor; /* of the instance -> of the system: current versions */
	/* the box of the letters, in the order of axis[] */
	int32_t *axis_of; /* letter -> axis; -1: extent 1, its value is 0 */
	int32_t n_axes;
	sys_axis axis[IR_MAX_AXES];
	int64_t *extent;
	ix_dom dom;
	int64_t shape[TN_MAX_RANK]; /* of the result */
	int32_t rank;
	const ix_form *left[TN_MAX_RANK]; /* positions over that box */
	const ix_form *pos; /* row-major number of the left side; NULL: has data */
	tn_dtype want[IR_MAX_COMP]; /* dtypes of the bodies */
	int32_t n_guards; /* conditions around the node at hand */
} leq;

_Noreturn void lower_fail(const leq *c, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* lower_expr.c; guards are those of d */
const ix_form *lower_form(leq *c, const ix_dom *d, const in_node *n);
const expr *lower_expr(leq *c, const ix_dom *d, const in_node *n);
/* f with its data bounded so that 0 <= f < n; throws where that cannot be */
const ix_form *lower_inside(leq *c, const ix_dom *d, const ix_form *f,
	int64_t n, const char *tensor, int32_t axis);
bool lower_is_inside(leq *c, const ix_dom *d, const ix_form *f, int64_t n);
const expr *lower_and(leq *c, const expr *a, const expr *b);

/*
 * lower_left.c: left sides that are no bare letters. e has its axes in the
 * order of the letters and its bodies over them; becomes pull or push form.
 */
bool left_is_plain(leq *c);
void left_solve(leq *c, sys_eqn *e);

/* compact.c: f with the tensors of its data renumbered */
typedef const ix_form *form_map(void *arg, const ix_form *f);
const expr *ex_map(ir_system *s, const expr *e, form_map *map, void *arg,
	const int32_t *tensor); /* tensor: new numbers, or NULL */
ir_system *sys_compact(ir_system *s);

#endif
