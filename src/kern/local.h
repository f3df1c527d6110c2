/*
 * local.h: private to kern/.
 *
 *   value.c       values and forms
 *   build_stmt.c  statements              build.c       names of values
 *   tidy.c        numbers values in order
 *   print.c parse.c texts.c               text
 *   range.c       the range of a form, from the loops and conditions around
 *   fact.c        what is known of forms  assume.c      what conditions imply for them
 *   range_each.c  the values of a form one by one, where they are few
 *   inside.c      whether a form lies between two bounds
 *   verify.c      names, types (verify_type.c), statements
 *   verify_memory.c verify_chunks.c verify_elements.c
 *                                         bounds, races
 *   barrier.c verify_warps.c              blocks of warps
 *   lanes.c                               loops by lane
 *   narrow.c      whether indices fit 32 bits
 *   wide.c        accesses of several elements of a lane
 *   verify_order.c order_value.c order_memory.c
 *                 elements are written before they are read
 */
#ifndef KERN_LOCAL_H
#define KERN_LOCAL_H

#include "kern/kern.h"

/* ---- spaces: one row each, by kern_space ---- */

typedef struct kern_space_row {
	const char *name;
	char letter; /* of its arrays' names */
} kern_space_row;
const kern_space_row *kern_space_at(kern_space s);

enum { KERN_BUCKETS = 1024 }; /* of kern_builder */

/* The library has made a kernel that breaks a rule: TN_EINTERNAL. */
_Noreturn void kern_bug(const kern_kernel *k, const char *what);
/* f / m if all coefficients are divisible, or NULL */
const kern_form *kern_exact(kern_kernel *k, const kern_form *f, int64_t m);
/* coef * v, for any v */
const kern_form *kern_form_term(kern_kernel *k, int64_t coef, kern_val v);

#endif
