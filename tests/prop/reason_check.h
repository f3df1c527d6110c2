/*
 * reason_check.h: the reasons of a plan derived again, from the equations alone:
 * iterations are drawn, what they read is looked up, and no loops of the
 * equations of a reason may agree on all of it.
 */
#ifndef REASON_CHECK_H
#define REASON_CHECK_H

#include "fuse_prop.h"

typedef struct reason_count {
	int64_t by_why[16];
	int64_t sets;	  /* whose loops were all refuted */
	int64_t unproved; /* those that say so */
	int64_t lies;
} reason_count;

/* Makes the reason false, for a test of this test; false: it is of no such kind. */
bool reason_lie(arena *a, fuse_reason *r);
/* .. and one reason alone; throws as below. */
void reason_check_one(arena *a, fuse_plan *p, prop_random *r,
	const fuse_reason *why, reason_count *n);

/* Throws "prop.reason" where one is false. */
void reason_check(arena *a, fuse_plan *p, prop_random *r, reason_count *n);

#endif
