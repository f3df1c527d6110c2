/*
 * tree.h: for schedule/: creates, copies and examines nodes of a tree.
 */
#ifndef LOOP_TREE_H
#define LOOP_TREE_H

#include "loop/loop.h"

#define BIT(v) ((loop_set)1 << (v))

/* nodes */
loop_node *loop_node_new(arena *a, loop_kind kind);
/* Gives n the variable of `from`, with its guards and clips. */
void loop_node_take_var(loop_node *n, const loop_node *from);
loop_node *loop_node_for(arena *a, int32_t var, loop_node *child);
void loop_node_adopt(arena *a, loop_node *n, loop_node *child); /* at the end */
loop_node *loop_node_copy(arena *a, const loop_node *n);	/* whole tree */
/* Notes that n is a copy of first, for another span of a loop. */
void loop_set_twins(loop_node *n, const loop_node *first);
/* Finds the copies that spans made, in all trees. */
void loop_find_twins(loop_kernel *k);
loop_set loop_node_open(
	const loop_node *n); /* vars walked by FOR at and above */
/* The innermost block of var around n, or NULL; after loop_link. */
const loop_node *loop_block_around(const loop_node *n, int32_t var);

/* locate.c: DONE nodes, buffers, their scopes and offsets */
void loop_locate(loop_kernel *k);
/* subscripts.c: of a buffer with its scope */
void loop_subscripts(loop_kernel *k, loop_buf *b);

/* locate.c: does a leaf read the tensor? Does it read only this element? */
bool loop_leaf_reads(loop_kernel *k, const loop_node *n, int32_t tensor);
bool loop_leaf_reads_at(
	loop_kernel *k, const loop_node *n, int32_t tensor, const ix_form *at);
/* .. and no others than those that are so far apart for each step of var? */
bool loop_leaf_reads_along(loop_kernel *k, const loop_node *n, int32_t tensor,
	int32_t var, int64_t step);

#endif
