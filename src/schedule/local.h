/* local.h: private to schedule/: its passes, in their order. */
#ifndef SCHEDULE_LOCAL_H
#define SCHEDULE_LOCAL_H

#include "loop/tree.h"
#include "schedule/decision.h"
#include "schedule/schedule.h"

/* changes of equations, recorded: change.c */
loop_change *loop_changed(loop_kernel *k, loop_change_kind kind);
/* Room for one more equation behind the others; its number. */
int32_t loop_add_eqn(loop_kernel *k);
/* A copy of `from` whose subscripts are var, slowest first: of n variables. */
int32_t loop_add_copy(
	loop_kernel *k, const expr *from, int32_t n, const int32_t *var);
/* An equation of one value for each element of that of `like`. */
int32_t loop_add_row(
	loop_kernel *k, const char *label, int32_t like, const expr *body);
/* The changes themselves; false: they may not be done. */
bool loop_change_split(loop_kernel *k, int32_t var, int64_t by);
bool loop_change_join(loop_kernel *k, int32_t y, int32_t x);
bool loop_change_keys(loop_kernel *k, loop_set keys, int32_t to);
bool loop_change_cut(loop_kernel *k, int32_t eqn, int32_t var, int64_t by);

/* text.c */
const char **loop_var_names(const loop_kernel *k);
void loop_text_places(str *out, loop_kernel *k); /* the lines of the buffers */

/* access.c */
struct loop_access {
	int32_t tensor;
	const ix_form *at;
	bool write;
	const loop_node *leaf;
};
typedef void loop_access_visit(void *arg, const struct loop_access *a);
/* memory accesses of the statements at and below n */
void loop_each_access(
	loop_kernel *k, const loop_node *n, loop_access_visit *fn, void *arg);
/* accesses below n that jump when var runs, each as often as it is done;
 * unit: some access walks adjoining elements */
double loop_jumps(loop_kernel *k, const loop_node *n, int32_t var, bool *unit);
struct loop_widest {
	loop_kernel *k;
	int32_t var, bytes;
};
void loop_widest(struct loop_widest *w, const loop_node *n);

/* the passes, in the order in which loop_schedule calls them */
/* contract/: does the kernel run as tiles of a product? */
bool loop_contract(loop_kernel *k);
/* vector.c: lanes for an innermost loop, where they are allowed */
void loop_take_lanes(loop_kernel *k, loop_node *n);
/* stage.c: number of an equation that copies tensor into a buffer;
 * covers: does `at` number all its elements, each once, row-major? */
int32_t loop_add_stage(loop_kernel *k, int32_t tensor, const ix_form *at);
bool loop_covers(
	const loop_kernel *k, int32_t tensor, const ix_form *at, loop_set vars);
void loop_push_phases(loop_kernel *k);
void loop_columns_to_rows(loop_kernel *k);
/* equations below n that reduce var; false if one of them may not be split */
bool loop_reducers(
	loop_kernel *k, const loop_node *n, int32_t var, loop_set *out);
void loop_split_reductions(loop_kernel *k);
/* scratch for the partial results of equations with n_parts */
void loop_room_for_parts(loop_kernel *k);
/* verify.c: trees, before and after loop_place */
void loop_schedule_verify(loop_kernel *k);
void loop_schedule_verify_places(loop_kernel *k);
/* distribute.c: may the sums in n's body have loops of their own, so
 * that n can take lanes? */
bool loop_may_distribute(loop_kernel *k, const loop_node *n);
void loop_distribute(loop_kernel *k);
/* vector.c: would n's lanes jump less than those of the loops in it?
 * Do these have few iterations? */
bool loop_wants_lanes(loop_kernel *k, const loop_node *n);
bool loop_is_small(const loop_kernel *k, const loop_node *n);
/* are all iterations of var independent below n? */
bool loop_parallel_below(const loop_kernel *k, const loop_node *n, int32_t var);
bool loop_lanes_allowed(const loop_kernel *k, const loop_node *n, int32_t var);
bool loop_is_below(const loop_node *n, const loop_node *top);
/* need.c: outside of *out statements below n do nothing, or set
 * constants; false: there is no such guard */
bool loop_need_of(
	loop_kernel *k, const loop_node *n, ix_fact *out, bool *fills);
/* window.c: outside of the clip the statement below n changes nothing */
bool loop_may_clip(loop_kernel *k, const loop_node *n, const loop_clip *clip);
/* does e leave element `at` of the storage that it writes as it is? */
bool loop_leaves(
	loop_kernel *k, const loop_eqn *e, const ix_form *at, const ix_dom *d);
void loop_vectorise(loop_kernel *k);
void loop_vectorise_nest(loop_kernel *k, loop_node *n);
void loop_parallel(loop_kernel *k);
/* chain of loops n .. m: tiles, where an input is read across; or nothing */
bool loop_stage_transpose(loop_kernel *k, loop_node *n, loop_node *m);
int64_t loop_stage_bytes(loop_kernel *k, const loop_node *block);
void loop_stage_columns(loop_kernel *k, loop_node *block);
void loop_clip_windows(loop_kernel *k);
void loop_split_guards(loop_kernel *k);
/* below n, in a linked tree */
void loop_find_needs(loop_kernel *k, loop_node *n);
void loop_read_ahead(loop_kernel *k);
void loop_choose_streams(loop_kernel *k);
int64_t loop_flops(loop_kernel *k, const loop_node *n);
int64_t loop_work(const loop_kernel *k, const loop_node *n);

#endif
