/*
 * lower.h: lowers the equations of an instance into a system.
 *
 *   lower.c       the program: calls in order, versions, merging, copies
 *   lower_expr.c  nodes of an equation to expressions and forms
 *   lower_left.c  solves left sides for their letters: pull form, push form
 *   prune.c       removes what no output needs
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
	int32_t n_runs; /* of calls that are made again */
} lower;

/* One equation while it is lowered. */
typedef struct leq {
	lower *w;
	const ir_inst *p;
	const in_eqn *q;
	const in_eqn *eqn; /* q, or the equation that q is a component of */
	int32_t number; /* number of the call */
	loc at;
	int32_t *tensor; /* tensor of the instance -> its current version in the system */
	/* the box of the letters, in the order of axis[] */
	int32_t *axis_of; /* letter -> axis; -1: extent 1, so its value is 0 */
	int32_t n_axes;
	sys_axis axis[IR_MAX_AXES];
	int64_t *extent;
	ix_dom dom;
	int64_t shape[TN_MAX_RANK]; /* of the result */
	int32_t rank;
	const ix_form *left[TN_MAX_RANK]; /* index of the left side, over the box */
	const ix_form *pos; /* element number of the left side; NULL if it has data */
	tn_dtype want[IR_MAX_COMP]; /* required dtypes of the bodies */
	int32_t n_guards; /* number of conditions around the current node */
} leq;

_Noreturn void lower_fail(const leq *c, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* lower_expr.c; the guards are the facts of d */
const ix_form *lower_form(leq *c, const ix_dom *d, const in_node *n);
const expr *lower_expr(leq *c, const ix_dom *d, const in_node *n);
/* f with its data clamped so that 0 <= f < n; throws if that is impossible */
const ix_form *lower_inside(leq *c, const ix_dom *d, const ix_form *f,
	int64_t n, const char *tensor, int32_t axis);
bool lower_is_inside(leq *c, const ix_dom *d, const ix_form *f, int64_t n);
const expr *lower_and(leq *c, const expr *a, const expr *b);

/*
 * lower_left.c: left sides that are not bare letters. On entry, the axes of e
 * are the letters; on return, e is in pull or push form.
 */
/* How many times as many points as it needs an equation may visit: more, and it
 * gets the element from the data or the letters, and does not look for it. */
enum { LEFT_MOST_MASKED = 8 };
bool left_is_plain(leq *c);
void left_solve(leq *c, sys_eqn *e);

/* prune.c: returns f with the tensors of its data renumbered */
typedef const ix_form *form_map(void *arg, const ix_form *f);
const expr *ex_map(ir_system *s, const expr *e, form_map *map, void *arg,
	const int32_t *tensor); /* tensor: new numbers, or NULL */

#endif
