/*
 * schedule.h: the door of schedule/: the tree of a kernel made fast, as text,
 * read back, verified.
 *
 *   loop_schedule         chooses loop order, blocks, lanes, phases
 *   loop_text             the scheduled tree as text; loop_text_apply: read back
 *   loop_schedule_verify  what no schedule may break, whoever made it
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
 * The text of a scheduled kernel, as `number` of its program: what was changed
 * of the equations, the tree of each phase, the place of each buffer.
 * loop_text_apply reads it into a kernel that loop_build made from the same
 * equations, in the place of loop_schedule; throws schedule.* with a caret.
 */
void loop_text(str *out, loop_kernel *k, int32_t number);
/* Has a file of the level "schedule" a text for this kernel? Then the kernel is
 * scheduled by it. */
bool loop_text_apply(
	kernel_texts *f, loop_kernel *k, int32_t number, const machine *m);
/* Checks the trees and the places of a scheduled kernel, if it is not pinned:
 * then that was done where it was read. Throws TN_EINTERNAL. */
void loop_verify_schedule(loop_kernel *k);

#endif
