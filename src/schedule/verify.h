/* verify.h: private to verify*.c of schedule/. */
#ifndef LOOP_SCHEDULE_VERIFY_H
#define LOOP_SCHEDULE_VERIFY_H

#include "schedule/local.h"

struct sv_leaf {
	const loop_node *n;
	int32_t phase;
};

struct sv {
	loop_kernel *k;
	const ix_form **same; /* each variable as a form: itself, or its slide */
	VEC(struct sv_leaf) leaf; /* in order */
	bool online; /* sums are scaled when the maximum of the keys so far grows */
	loop_set keys; /* if online: the variable of the keys */
	int32_t was, max; /* if online: equations; `was` reads the maximum before this step */
};

/* verify_tree.c: questions about the trees. */

/* Throws schedule.RULE at the line of n. */
_Noreturn void verify_fail(struct sv *v, const loop_node *n, const char *rule,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
const char *verify_var(const struct sv *v, int32_t var);
const char *verify_eqn(const struct sv *v, int32_t eqn); /* "matmul#0" */
/* Variables that a leaf walks without a loop around it. */
loop_set verify_walked_by(const loop_node *leaf);
/* The variables that a leaf and the loops around it walk. */
loop_set verify_walked(const loop_node *leaf);
/* The innermost loop around both, or NULL. */
const loop_node *verify_common(const loop_node *a, const loop_node *b);
/* The variable of a loop in different spans of which a and b are; -1: of none. */
int32_t verify_span_var(const loop_node *a, const loop_node *b);
/* The first statement of a kind for eqn in a phase, or NULL. */
const loop_node *verify_first(const struct sv *v, loop_kind kind, int32_t eqn,
	int32_t phase);

/* verify_read.c: what a statement reads is there when it reads it, and is not
 * overwritten before. */
void verify_reads(struct sv *v, const struct sv_leaf *l);

/* verify_leaf.c: tiles, turned squares, parts, scaled sums; lanes, unrolling and
 * directions of the loops of a tree */
void verify_lanes(struct sv *v, const loop_node *root);
void verify_leaf(struct sv *v, const struct sv_leaf *l);
void verify_guards(struct sv *v);
void verify_copies(struct sv *v);
void verify_online(struct sv *v);

/* verify_warps.c: after loop_locate: what the warps of a block run */
void verify_warps(struct sv *v);

#endif
