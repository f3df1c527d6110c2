/*
 * simt.h: interface of target/simt/: runs the text of target/cuda/ on the CPU.
 *
 * A unit has the CUDA C of its kernels behind a prelude in which a warp is 32
 * fibers, and for each phase a function as target/c prints them:
 *
 *   void NAME(void *const *p, void *scratch, void *local, i64 chunk, i64 *err);
 *
 * which runs one chunk. Between two meetings the lanes run one after another,
 * in an order that is drawn again each time. If two of them access one cell and
 * one of them writes, or if they do not meet at the same statement, *err gets a
 * negative number: simt_failure says what it means.
 */
#ifndef TARGET_SIMT_H
#define TARGET_SIMT_H

#include "target/cuda/cuda.h"

/* The kernel for the CPU: cuda_print's, with memory for the fibers. */
c_kernel *simt_print(arena *a, const kern_kernel *k);
void simt_unit(str *out, const c_kernel *const *k, int32_t n);

extern const c_target simt_warps; /* simt_print, simt_unit, simt_failure */

/* Bytes that simt_run_block of prelude.c needs behind `local`. */
size_t simt_memory(int32_t warps, size_t shared);

/* What a negative *err means; line: the line of the unit's text. */
const char *simt_failure(int64_t err, int64_t *line);

#endif
