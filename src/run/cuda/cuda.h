/*
 * cuda.h: interface of run/cuda/: NVIDIA GPUs as devices, of compute capability
 * 8.0 on.
 *
 * The driver and the run-time compiler are shared libraries, which are loaded
 * when a device is asked for. Nothing else of CUDA is needed, here or where
 * Tenon is built.
 *
 *   TENON_CUDA_DRIVER   the file of the driver; else libcuda.so.1
 *   TENON_NVRTC         the file of the compiler; else libnvrtc.so.13, .12 and
 *                       libnvrtc.so, also in /usr/local/cuda
 *   TENON_NCCL          the file of NCCL, between devices of several processes;
 *                       else libnccl.so.2 and libnccl.so, also in /usr/local/cuda
 *
 *   TENON_CUDADEVRT     the file of libcudadevrt.a, for conditions that the device
 *                       reads; else beside NVRTC or in /usr/local/cuda
 *
 *   load.c     finds the libraries         current.c  the driver's context, errors
 *   memory.c   memory, in segments         module.c   texts become functions
 *   device.c   one device: copies, launches; which there are
 *   graph.c    what a program does, as graphs
 *   cond.c     graphs with conditions         again.c    kernels that read them
 *   nccl.c     memory goes to devices of other processes
 */
#ifndef RUN_CUDA_H
#define RUN_CUDA_H

#include "run/device.h"

/*
 * Device `number`. It ends with the arena, and only after all memory of it.
 * Throws TN_EINVAL: [cuda.driver] there is no driver, or it lacks something;
 * [cuda.version] it is too old; [cuda.device] there is no such device;
 * [cuda.compute] the device is too old; TN_ECOMPILE [cuda.nvrtc] no compiler
 * that this driver can use.
 */
run_device *cuda_open(arena *a, int32_t number, const char *cache_dir);
/* 10 * major + minor of its compute capability: 90 */
int32_t cuda_compute(const run_device *d);
enum { CUDA_WARPGROUPS = 90 }; /* of the only GPUs whose warps multiply together */

/* What is there, for people. */
typedef struct cuda_found {
	const char *missing; /* why there is no device; NULL: there are some */
	const char *driver, *nvrtc; /* files; "" if missing */
	int32_t driver_version; /* 12040: CUDA 12.4 */
	int32_t nvrtc_version;
	/* for meshes; "" if there is none, and why */
	const char *nccl, *no_nccl;
	int32_t nccl_version; /* 22809: 2.28.9 */
	/* for loops with a test; "" if the host reads it, and why */
	const char *devrt, *no_devrt;
	int32_t n;
	struct cuda_card {
		char name[96];
		int32_t compute; /* 90 */
		int32_t n_units; /* multiprocessors */
		size_t bytes;
		const char *refused; /* why it cannot be used; NULL: it can */
	} *card;
} cuda_found;
/* Never throws for what is missing. */
void cuda_look(arena *a, cuda_found *out);

#endif
