/*
 * schedule.h: interface of schedule/: optimises the tree of a kernel; prints,
 * parses and verifies the result.
 *
 *   loop_schedule         chooses loop order, blocks, lanes, phases
 *   loop_text             prints the scheduled tree; loop_text_apply parses it
 *   loop_schedule_verify  checks a schedule, made here or parsed
 *   contract/             tiles of products
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "loop/loop.h"
#include "notation/kernel_texts.h"

void loop_schedule(loop_kernel *k, const machine *m);

/* The recipe with other choices than its own; all 0: its own. */
typedef struct loop_recipe {
	uint32_t without; /* bit i: the pass loop_pass_name(i) does not run */
	loop_copies copies;
	/* called behind each pass: the trees are then what it made of them */
	void (*after)(void *arg, loop_kernel *k, int32_t pass);
	void *arg;
} loop_recipe;
void loop_schedule_by(
	loop_kernel *k, const machine *m, const loop_recipe *by);
/* The passes in their order, "scatter", ..; NULL: there are no more. */
const char *loop_pass_name(int32_t i);

/*
 * Prints a scheduled kernel, which is `number` of its program: the changes of
 * its equations, the tree of each phase, the location of each buffer.
 */
void loop_text(str *out, loop_kernel *k, int32_t number);
/* If a file of the level "schedule" has a text for this kernel, which loop_build
 * made from the same equations, schedules the kernel by it, instead of
 * loop_schedule, and returns true. Throws schedule.* with a caret. */
bool loop_text_apply(
	kernel_texts *f, loop_kernel *k, int32_t number, const machine *m);
/* Checks the trees and the locations of a scheduled kernel, unless it is pinned:
 * then they were checked when it was parsed. Throws TN_EINTERNAL. */
void loop_verify_schedule(loop_kernel *k);

#endif
