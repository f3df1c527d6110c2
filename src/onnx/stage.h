/*
 * stage.h: private to onnx/: a model whose shapes follow from data at each run.
 *
 *     x -> NonZero -> Gather -> y
 *
 * While a model is imported, builders ask for values that decide shapes. Each
 * such question is a *stage*: a program that answers it, made once, and a
 * branch for every answer that came. Behind the last answer stands the program
 * that makes the outputs.
 *
 *     [3,4]f32: stage 0 (how many are not 0?)  5 -> program
 *                                              7 -> program
 */
#ifndef ONNX_STAGE_H
#define ONNX_STAGE_H

#include "onnx/import.h"

/* ---- stage_cut.c: what a stage computes ---- */

/* Equations of v, back to what is known, have no more points than that. */
bool onnx_is_cheap(onnx_import *x, int32_t v, int64_t points);

typedef struct values {
	VEC(int32_t) v;
} values;
/*
 * v first, then what else is there and is read from here on: named values that
 * the node being built or a later one reads, and the other results of v's call.
 */
values onnx_cut(onnx_import *x, int32_t v);

#endif
