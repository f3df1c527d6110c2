/* local.h: private to loop/: the passes of the schedule, in their order. */
#ifndef LOOP_LOCAL_H
#define LOOP_LOCAL_H

#include "loop/loop.h"

#define BIT(v) ((loop_set)1 << (v))

/* nodes */
loop_node *loop_node_new(arena *a, loop_kind kind);
/* n walks what `from` walked: its variable, and what is needed of that. */
void loop_node_take_var(loop_node *n, const loop_node *from);
loop_node *loop_node_for(arena *a, int32_t var, loop_node *child);
void loop_node_adopt(arena *a, loop_node *n, loop_node *child); /* at the end */
loop_node *loop_node_copy(arena *a, const loop_node *n);	/* whole tree */
loop_set loop_node_open(
	const loop_node *n); /* vars walked by FOR at and above */

/* place.c: DONE nodes, buffers, their scopes and offsets */
void loop_place(loop_kernel *k);

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

/* schedule_*.c, in the order in which loop_schedule calls them */
/* contract.c: does the kernel run as tiles of a product? */
bool loop_contract(loop_kernel *k);
/* schedule_vector.c: lanes for an innermost loop, where they are allowed */
void loop_take_lanes(loop_kernel *k, loop_node *n);
/* schedule_stage.c: number of an equation that copies tensor into a buffer;
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
