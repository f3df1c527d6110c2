/* attention.h: private to onnx/: what operators of attention share. */
#ifndef ONNX_ATTENTION_H
#define ONNX_ATTENTION_H

#include "onnx/import.h"

struct attention {
	node *d;
	tn_dtype t; /* computed in */
	bool flat;  /* the inputs have their heads in the last axis */
	int32_t q, k, v; /* [batch, heads, positions, size], in their dtypes */
	int64_t batch, heads, groups; /* groups: heads of q for one of k and v */
	int64_t n_q, n_k, past; /* positions; n_k with those of the past */
	double scale, softcap;
	bool causal;
	int64_t left, right; /* the window; -1: no end */
	int32_t allowed; /* bool, broadcast to [batch, heads, n_q, n_k]; -1: all */
	int32_t bias;	 /* numbers, likewise; -1: none */
	/* a further key of each head, [1, heads, 1, 1], without a value: its
	 * product; -1: none */
	int32_t sink;
};

/* ---- op_attention.c ---- */

/* [batch, positions, heads * size] as [batch, heads, positions, size] */
int32_t attention_heads(node *d, int32_t x, int64_t heads);
/* Sets the sizes by q, k and v: [onnx.shape] */
void attention_check(struct attention *a);
/* Only keys for which c holds; it broadcasts to [batch, heads, n_q, n_k]. */
void attention_allow(struct attention *a, int32_t c);
/* The positions of queries, [n, 1], and of keys, [n]. */
int32_t attention_positions(node *d, int64_t n, bool down);
/* Restricts the keys of each query by its position, which is `offset` behind. */
void attention_near(struct attention *a, int32_t offset);
/* [batch, heads, n_q, size], in one row; without mask, bias, window and sink */
int32_t attention_at_once(struct attention *a);
/* .. step by step; products, as ONNX's mode says: before softcap, behind it,
 * behind the mask, or the weights */
int32_t attention_steps(struct attention *a, int64_t mode, int32_t *products);
/* [batch, heads, n_q, size] as [batch, n_q, heads * size] */
int32_t attention_flat(struct attention *a, int32_t o);

/* ---- op_rotary.c ---- */

/*
 * x [.., .., .., size], of which the first 2 n elements are turned in pairs: by
 * cosines c and sines s of n elements, which broadcast otherwise. A pair is
 * elements i and n + i, or with `pairs` 2 i and 2 i + 1.
 */
int32_t rotary_turn(node *d, int32_t x, int32_t c, int32_t s, bool pairs);
/* Rows of input i, a table [positions, n], at places [batch, positions]. */
int32_t rotary_rows(node *d, int32_t i, int32_t at);

#endif
