/*
 * decision.h: what the passes of a schedule decided, and why.
 *
 * A pass that declines says so here, with the figure that decided; one that
 * changes the tree does, too. decision.def has all reasons. Of two decisions of
 * one pass about the same subject the later one counts: some passes try several
 * ways.
 *
 *     loop_decide(k, DECIDE_TILE_ROWS, eqn, -1, 3, 4);
 *     tile of matmul#0: declined: 3 rows, fewer than 4
 */
#ifndef SCHEDULE_DECISION_H
#define SCHEDULE_DECISION_H

#include "loop/loop.h"

typedef enum decide_pass {
#define PASS(id, word, subject, both) DECIDE_PASS_##id,
#include "schedule/decision.def"
	DECIDE_N_PASSES
} decide_pass;

typedef enum decide_kind {
#define DECISION(id, pass, taken, sentence) DECIDE_##id,
#include "schedule/decision.def"
	DECIDE_N_KINDS
} decide_kind;

void loop_decide(loop_kernel *k, decide_kind kind, int32_t of, int32_t with,
	int64_t a, int64_t b);

/* The last decision of a pass about `of` (any: -1); NULL: none. */
const loop_decision *loop_decided(
	const loop_kernel *k, decide_pass pass, int32_t of);

const char *decide_name(int32_t kind); /* "TILE_ROWS" */
decide_pass decide_pass_of(int32_t kind);
/* What it is about, and why: "of matmul#0", "3 rows, fewer than 4". */
void decide_subject(str *out, loop_kernel *k, const loop_decision *d);
void decide_sentence(str *out, loop_kernel *k, const loop_decision *d);

/* All of them: comments of the text of a schedule; or a JSON list. */
void loop_text_decisions(str *out, loop_kernel *k);
void loop_json_decisions(str *out, loop_kernel *k);

#endif
