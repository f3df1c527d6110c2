/* local.h: private to schedule/: its passes, in their order. */
#ifndef SCHEDULE_LOCAL_H
#define SCHEDULE_LOCAL_H

#include "loop/tree.h"
#include "schedule/decision.h"
#include "schedule/schedule.h"

/* change.c: changes of equations, which are recorded */
loop_change *loop_changed(loop_kernel *k, loop_change_kind kind);
/* Adds an empty equation at the end; returns its number. */
int32_t loop_add_eqn(loop_kernel *k);
/* Adds a copy of `from` whose subscripts are the n variables var, slowest first. */
int32_t loop_add_copy(
	loop_kernel *k, const expr *from, int32_t n, const int32_t *var);
/* Adds an equation with one value for each element of equation `like`. */
int32_t loop_add_row(
	loop_kernel *k, const char *label, int32_t like, const expr *body);
/* Apply a change; false: the equations do not allow it. */
bool loop_change_split(loop_kernel *k, int32_t var, int64_t by);
bool loop_change_join(loop_kernel *k, int32_t y, int32_t x);
bool loop_change_keys(loop_kernel *k, loop_set keys, int32_t to);
bool loop_change_slide(loop_kernel *k, const ix_form *f); /* the last variable */
bool loop_change_cut(loop_kernel *k, int32_t eqn, int32_t var, int64_t by);

/* A copy of the kernel, for the price of what passes would make of it. Passes that
 * add tensors must not run on it: these would stay in the program. */
loop_kernel *loop_trial(const loop_kernel *k);

/* text.c */
const char **loop_var_names(const loop_kernel *k);
void loop_text_locations(str *out, loop_kernel *k); /* the lines of the buffers */

/* access.c */
struct loop_access {
	int32_t tensor;
	const ix_form *at;
	bool write;
	const loop_node *leaf;
};
typedef void loop_access_visit(void *arg, const struct loop_access *a);
/* Visits the memory accesses of the statements at and below n. */
void loop_each_access(
	loop_kernel *k, const loop_node *n, loop_access_visit *fn, void *arg);
/* The number of times that accesses below n, when var advances, go to an element
 * that is not a neighbour. *unit: some access goes to neighbours. */
double loop_jumps(loop_kernel *k, const loop_node *n, int32_t var, bool *unit);
/* Are there reads in n that differ by var, and none of neighbours? */
bool loop_is_far(loop_kernel *k, const loop_node *n, int32_t var);
struct loop_widest {
	loop_kernel *k;
	int32_t var, bytes;
};
void loop_widest(struct loop_widest *w, const loop_node *n);

/* the passes, in the order in which loop_schedule calls them */
/* contract/: schedules the kernel as tiles of a product; false: it is not one. */
bool loop_contract(loop_kernel *k);
/* vector.c: gives an innermost loop lanes, if they are allowed */
void loop_take_lanes(loop_kernel *k, loop_node *n);
/* stage.c: adds an equation that copies the tensor into a buffer; its number.
 * loop_covers: does `at` reach each element of the tensor once, row-major? */
int32_t loop_add_stage(loop_kernel *k, int32_t tensor, const ix_form *at);
bool loop_covers(
	const loop_kernel *k, int32_t tensor, const ix_form *at, loop_set vars);
bool loop_push_owners(loop_kernel *k); /* true: chunks divide its elements */
void loop_push_phases(loop_kernel *k);
void loop_columns_to_rows(loop_kernel *k);
/* Finds the equations below n that reduce var; false: one cannot be split. */
bool loop_reducers(
	loop_kernel *k, const loop_node *n, int32_t var, loop_set *out);
void loop_split_reductions(loop_kernel *k);
/* Allots scratch for the partial results of equations with n_parts. */
void loop_room_for_parts(loop_kernel *k);
/* verify.c: checks trees, before and after loop_locate */
void loop_schedule_verify(loop_kernel *k);
void loop_schedule_verify_locations(loop_kernel *k);
void loop_distribute(loop_kernel *k);
/* scalars.c: statements beside loops get loops of their own, with lanes */
void loop_take_scalars_out(loop_kernel *k);
/* lanes.c: are the iterations of var independent of each other below n? */
bool loop_parallel_below(const loop_kernel *k, const loop_node *n, int32_t var);
/* May n, a loop over one other loop, and that one change places? .. and does it. */
bool loop_may_swap(const loop_kernel *k, const loop_node *n);
void loop_swap(loop_node *n);
/* Can var have lanes: is there no scan over it, and no scatter? */
bool loop_lanes_allowed(const loop_kernel *k, const loop_node *n, int32_t var);
bool loop_is_below(const loop_node *n, const loop_node *top);
/* need.c: finds a guard *out outside which the statements below n do nothing,
 * or (*fills) store constants; false: there is none */
bool loop_need_of(
	loop_kernel *k, const loop_node *n, ix_fact *out, bool *fills);
/* clip.c: does the statement below n change nothing outside the clip? */
bool loop_may_clip(loop_kernel *k, const loop_node *n, const loop_clip *clip);
/* Does e leave element `at` of the storage that it writes unchanged? */
bool loop_leaves(
	loop_kernel *k, const loop_eqn *e, const ix_form *at, const ix_dom *d);
void loop_vectorise(loop_kernel *k);
void loop_vectorise_nest(loop_kernel *k, loop_node *n);
void loop_parallel(loop_kernel *k);
/* abreast.c: several rows of a sum in lanes are read at a time */
void loop_rows_abreast(loop_kernel *k);
/* abreast_window.c: rows of sliding windows are summed at a time; may_fit: chunks may
 * have other numbers of rows then */
void loop_windows_abreast(loop_kernel *k, bool may_fit);
/* Does memory beyond all caches have the tensor in each run? */
bool loop_comes_from_afar(const loop_kernel *k, int32_t tensor);
/* How many of n's rows would be, in blocks of any size; 1: it has no such rows. */
int32_t loop_rows_at_once(loop_kernel *k, loop_node *n);
/* Tiles the chain of loops n .. m if an input is read across its lines. */
bool loop_stage_transpose(loop_kernel *k, loop_node *n, loop_node *m);
int64_t loop_stage_bytes(loop_kernel *k, const loop_node *block);
void loop_stage_columns(loop_kernel *k, loop_node *block);
void loop_clip_all(loop_kernel *k);
/* The part of its terms that a clip of a tile has: 1 if there are very many. */
double loop_clip_part(loop_kernel *k, const loop_clip *clip);
void loop_split_guards(loop_kernel *k);
/* Finds guards of the loops below n, in a linked tree. */
void loop_find_needs(loop_kernel *k, loop_node *n);
void loop_read_ahead(loop_kernel *k);
void loop_add_ahead(loop_kernel *k, loop_node *n, loop_ahead one);
void loop_fetch_tiles(loop_kernel *k); /* fetch.c */
void loop_fetch_results(loop_kernel *k); /* of tiles whose sums are held */
void loop_choose_streams(loop_kernel *k);
/* wide.c: lanes take neighbours, as many as the machine accesses at once */
void loop_widen_accesses(loop_kernel *k);
/* May lanes of n take as many neighbours as it has vectors at a time? */
bool loop_may_be_wide(const loop_kernel *k, const loop_node *n);
/* row_warps.c: cuts long rows into pieces for the warps of a block */
void loop_rows_to_warps(loop_kernel *k);
/* warps.c: deals loops of tiles to the warps of a block, if the machine has any */
void loop_deal_to_warps(loop_kernel *k);
/* The number of iterations of a loop or block, at most. */
int64_t loop_pieces(const loop_kernel *k, const loop_node *n);
/* The length of the interval that n cuts or walks, at most. */
int64_t loop_length(const loop_kernel *k, const loop_node *n);
/* hold.c: sums of tiles stay in registers of the warps, if the machine has blocks */
void loop_hold_sums(loop_kernel *k);
/* hold_near.c: .. until what follows is computed, if it has not */
void loop_hold_near(loop_kernel *k);
/* May registers hold the sums of tile t, by the loops around it? */
bool loop_may_hold_near(const loop_kernel *k, const loop_node *t);
bool loop_may_hold(const loop_kernel *k, const loop_node *t);
/* The guard outside which a block, of rows by warp or of keys, changes nothing that is read
 * behind it: its maxima and sums have no terms there. False: there is none. */
bool loop_rows_need(loop_kernel *k, const loop_node *block, ix_fact *out);
/* The block of rows of a tile that may hold its sums. */
const loop_node *loop_rows_around(const loop_kernel *k, const loop_node *t);
/* May a loop over rows, and the one in it, walk the sums as the warps have them? */
bool loop_may_walk(const loop_kernel *k, const loop_node *rows, const loop_node *t);
/* Does something below n have to do with the sums of t, outside of loops that walk
 * them so, or read other ones in such loops? */
bool loop_is_held_aside(loop_kernel *k, const loop_node *n, const loop_node *t);
/* stages.c: copies that go on while earlier pieces are computed with */
enum { LOOP_ASYNC_BYTES = 16 }; /* that a lane copies at once */
void loop_copy_ahead(loop_kernel *k);
/* May the pieces of block n be copied so, in a located kernel? */
bool loop_may_stage(const loop_kernel *k, const loop_node *n);
/* Is the leaf, in two loops of its own, a copy of rows as they lie in memory? */
bool loop_copies_rows(const loop_kernel *k, const loop_node *leaf);
/* bulk.c: .. by one instruction for all rows of a piece */
void loop_copy_in_bulk(loop_kernel *k);
/* May the loop over rows be one such copy, in a located kernel? */
bool loop_may_copy_in_bulk(const loop_kernel *k, const loop_node *n);
/* The length of every piece of a variable that a loop around n walks or cuts; 0:
 * they have several. */
int64_t loop_piece_of(const loop_kernel *k, const loop_node *n, int32_t var);
/* A copy of the kernel whose trees may be changed, and its node of this order. */
loop_kernel *loop_copy_to_try(const loop_kernel *k, int32_t order, loop_node **node);
/* Locates it, deals its loops to warps, and returns the estimated seconds. */
double loop_try(loop_kernel *t);
/* warpgroup.c: matrix instructions of several warps */
void loop_use_warpgroups(loop_kernel *k);
enum { LOOP_ROWS_TOGETHER = 64 }; /* of the warps of one such instruction */
/* May they take its rows from memory, too, in a located kernel? */
bool loop_may_take_rows(loop_kernel *k, const loop_node *t);
/* May warps execute those of tile t together, in a located kernel? */
bool loop_may_use_warpgroup(
	loop_kernel *k, int32_t phase, const loop_node *t);
/* May the iterations of n be run by different warps? */
bool loop_may_deal(const loop_kernel *k, const loop_node *n);
/* May all warps run the statement alike, outside of the loops that are dealt? */
bool loop_may_be_alike(const loop_kernel *k, const loop_node *n);
/* A value that warps would set to different values in a register of all; NULL:
 * none. */
const loop_buf *loop_kept_by_all(const loop_kernel *k, int32_t phase);
int64_t loop_flops(loop_kernel *k, const loop_node *n);
int64_t loop_work(const loop_kernel *k, const loop_node *n);

#endif
