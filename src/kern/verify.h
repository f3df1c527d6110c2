/*
 * verify.h: private to kern/: the state of the verifier.
 */
#ifndef KERN_VERIFY_H
#define KERN_VERIFY_H

#include "kern/range.h"

/* An access, for the check of races. */
struct kern_touch {
	const kern_stmt *s;
	int32_t array;
	bool write;
	const kern_form *at;
	int64_t step[2], n[2]; /* at + step[i] * (0 .. n[i] - 1) */
	kern_val mask; /* of lanes, that says which of them; 0: all */
	int32_t n_facts;
	const struct kern_fact *facts;
};

struct kern_bounds {
	int64_t least, most; /* INT64_MIN, INT64_MAX: not known */
};

/* Of a value or an array: not defined yet; defined; in a block that has ended;
 * computed in the statement that uses it. */
enum { UNKNOWN, DEFINED, CLOSED, INLINED };

struct kern_verifier {
	kern_kernel *k;
	arena *a;
	kern_range range;
	uint8_t *state; /* by value */
	uint64_t *size; /* by value: its absolute value is at most that */
	uint8_t *array; /* the same for arrays of blocks */
	VEC(kern_val) live;
	VEC(int32_t) arrays; /* the live ones */
	const kern_stmt *s;  /* the current one */
	const kern_block *block;
	const kern_block **home; /* by register: the block that declares it */
	int32_t *sets;		 /* by register: number of statements that set it */
	int32_t phase, depth;
	VEC(struct kern_touch) touch; /* of the phase */
	VEC(const struct kern_fact *) set; /* their conditions, each once */
	map *same; /* bytes -> number in set */
	VEC(struct kern_bounds) bounds;	   /* of forms under such conditions */
	map *known;			   /* form, conditions -> number in bounds */
	uint8_t *written; /* by array: 1 in this phase, 2 in an earlier one */
	int32_t loops, guards; /* number of open ones */
	const kern_stmt *by_warp; /* the open loop by warp; NULL: none */
	int32_t first_touch;	  /* in it */
	bool *of_warp; /* by register: declared in a loop by warp */
	bool *each_warp; /* by register: each warp has one of its own */
	kern_val value;	       /* that is verified now; 0: none */
	uint64_t *shuffled;    /* by value: its lanes that are looked at */
	kern_val interest;     /* mask of lanes that are looked at; 0: all */
	bool *selected;	       /* by value: only `sel` uses it, as a choice */
	/* guarded reads of elements that a later statement of the same loops may
	 * have written */
	VEC(struct kern_touch) early;
};

/* refuse.c */
/* Throws kern.RULE at the current statement; if that is NULL, at the kernel. */
_Noreturn void kern_refuse(struct kern_verifier *v, const char *rule,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *kern_access_text(struct kern_verifier *v, int32_t array);

/* verify_uses.c: fills in sets, shuffled, selected, range.checked, range.once */
void kern_find_uses(struct kern_verifier *v);

/* verify_type.c */
void kern_verify_type(struct kern_verifier *v, const kern_value *x);

/* verify_size.c */
/* Checks that f fits 64 bits, whatever its values are. */
void kern_verify_size(struct kern_verifier *v, const kern_form *f);
/* Sets the size of an instruction, and of a loop's values: operands have theirs. */
void kern_size_value(struct kern_verifier *v, kern_val i);
void kern_size_loop(struct kern_verifier *v, const kern_stmt *s);

/* verify_memory.c */
void kern_verify_access(struct kern_verifier *v, const kern_access *at,
	int32_t lanes, bool write);
/* So many elements in each of so many rows, `step` apart. */
void kern_verify_rows(struct kern_verifier *v, const kern_access *at,
	int64_t step, int32_t rows, int32_t width, bool write);
void kern_verify_form(struct kern_verifier *v, const char *rule,
	const kern_form *f, int64_t lo, int64_t hi, const char *what);

/* The conditions that hold here: equal ones are one array, in all of the phase. */
const struct kern_fact *kern_verify_facts(struct kern_verifier *v);
/* After the outermost loop: checks that the elements of early reads are written. */
void kern_verify_early(struct kern_verifier *v);
bool kern_arrays_overlap(const kern_kernel *k, int32_t i, int32_t j);

/* verify_elements.c */
/* Facts are those of the place of t. */
void kern_put_facts(struct kern_verifier *v, const struct kern_touch *t);
/* Does a chunk alone have each element of what w writes and o accesses? */
bool kern_elements_are_apart(struct kern_verifier *v,
	const struct kern_touch *w, const struct kern_touch *o);

/* verify_chunks.c: checks that the chunks of a phase are independent */
void kern_verify_chunks(struct kern_verifier *v);

/* Checks the accesses from the first one on: iterations of the loop by warp are
 * independent. */
void kern_verify_iterations(struct kern_verifier *v, int32_t first);

/* barrier.c: checks that a barrier stands wherever memory changes hands */
void kern_verify_barriers(struct kern_verifier *v);
/* Has the loop one iteration at most? */
bool kern_is_once(kern_kernel *k, const kern_stmt *s);

/* wide.c: checks the accesses that statement `at` says are done together */
void kern_verify_together(
	struct kern_verifier *v, const kern_block *b, int32_t at);

/* narrow.c: checks what `indices i32` says */
void kern_verify_narrow(struct kern_verifier *v);

/* verify_mma.c: its operands are defined */
void kern_verify_matrix(struct kern_verifier *v, const kern_stmt *s);
void kern_verify_tiles(struct kern_verifier *v, const kern_stmt *s);

/* verify_warpgroup.c: arrays whose rows are swizzled, and what takes them */
void kern_verify_swizzled(struct kern_verifier *v, int32_t array);
/* Refuses an access of such an array that is not a copy of whole rows. */
void kern_verify_plain(struct kern_verifier *v, const kern_access *at);
void kern_verify_warpgroup(struct kern_verifier *v, const kern_stmt *s);

/* async.c: operands of a copy, which are defined; that all accesses wait for it */
void kern_verify_async(struct kern_verifier *v, const kern_stmt *s);
void kern_verify_waits(struct kern_verifier *v);

/* verify_warps.c */
void kern_open_warps(struct kern_verifier *v, const kern_stmt *s);
void kern_close_warps(struct kern_verifier *v);
/* The current statement changes memory: each of the warps may not do that. */
void kern_verify_effect(struct kern_verifier *v);
void kern_verify_set(struct kern_verifier *v, kern_val reg);
/* It declares, or uses, a register that each warp has. */
void kern_verify_each_warp(struct kern_verifier *v);
void kern_verify_own(struct kern_verifier *v);
void kern_verify_barrier(struct kern_verifier *v);

/* lanes.c: the iterations of a loop by lane are independent */
void kern_verify_by_lane(struct kern_verifier *v, const kern_stmt *s);

/* verify_order.c: after all phases: checks that what is read is written before */
void kern_verify_order(struct kern_verifier *v);

#endif
