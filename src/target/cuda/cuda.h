/*
 * cuda.h: interface of target/cuda/: prints kern as CUDA C.
 *
 * A vector of kern is spread over the 32 threads of a warp: thread t has lane
 * t % lanes. A value of one lane is in all threads, a condition holds for all
 * of them, so a warp never diverges except at single loads and stores. A chunk
 * of a phase is run by one warp:
 *
 *   KERNEL(NAME)(T *p0, .., char *scratch, char *locals, i64 first, i64 end,
 *                i64 *err)
 *
 * runs the chunks first .. end - 1. p0 ..: the params; scratch: scratch_bytes
 * shared by all chunks of one launch; locals: local_bytes for each warp of the
 * grid. KERNEL and the functions of a warp (shfl_f32, SYNC ..) are defined by
 * the unit: cuda_unit for NVRTC, simt_unit for the emulator.
 *
 *   spread.c  one lane for each thread    sync.c   where lanes must meet
 *   print.c   functions and statements    unit.c   translation units
 *   matrix.c  products of matrices        bulk.c   copies in bulk
 */
#ifndef TARGET_CUDA_H
#define TARGET_CUDA_H

#include "target/c/c.h"

enum { CUDA_WARP = 32 };

/* The CUDA C of a kernel that was scheduled for a machine of 32 lanes. */
c_kernel *cuda_print(arena *a, const kern_kernel *k);

/* A translation unit for NVRTC: --device-as-default-execution-space. */
void cuda_unit(str *out, const c_kernel *const *k, int32_t n);

extern const c_target cuda_nvrtc; /* cuda_print, cuda_unit */

#endif
