/*
 * verify_address.h: private to kern/: addresses as sums of digits of the chunk's
 * number and of what lies in known intervals.
 */
#ifndef KERN_VERIFY_ADDRESS_H
#define KERN_VERIFY_ADDRESS_H

#include "kern/verify.h"

enum { KERN_MOST_TERMS = 64 };

/* factor * (lo .. hi); digit: of the chunk's number, 0: anything */
struct kern_part {
	int64_t factor, lo, hi;
	kern_val digit;
	/* the form that it is; NULL: lanes; of a digit of both: of the other, too */
	const kern_form *part, *other;
	int32_t side; /* of which address; -1: a digit of both */
};

/* What an address is a sum of. */
enum kern_parts {
	KERN_EACH,  /* its terms; a minimum or maximum is near its first value */
	KERN_WHOLE, /* what has no digits is one interval */
	KERN_OTHER  /* a minimum or maximum is near its second value */
};

struct kern_address {
	struct kern_verifier *v;
	const struct kern_touch *touch;
	int32_t n;
	struct kern_part t[KERN_MOST_TERMS];
	int64_t c0;
	bool ok;
	bool never; /* nothing is accessed: no value is possible */
	enum kern_parts parts;
};

/* Is it a digit of the chunk's number: made of it alone? */
bool kern_is_digit(const kern_kernel *k, kern_val v);
/* Is it the same in all iterations of the loop by warp? */
bool kern_is_common(const struct kern_verifier *v, kern_val x);
/* The address of an access. */
struct kern_address *kern_address_of(
	struct kern_verifier *v, const struct kern_touch *t, enum kern_parts parts);
/*
 * A condition lo <= f - digits < hi, where the address has f times a number, as
 * chunks that look for their elements of a scatter have it: these digits, and one
 * interval. NULL: there is none.
 */
struct kern_address *kern_address_within(
	struct kern_verifier *v, const struct kern_touch *t);

#endif
