/*
 * fake_cuda.h: a driver of GPUs and a run-time compiler that need neither: shared
 * libraries with the functions of libcuda.so and libnvrtc.so that Tenon calls.
 * The compiler makes C of CUDA C, as target/simt does; the driver runs it on
 * emulated warps. Tests load them by TENON_CUDA_DRIVER and TENON_NVRTC.
 *
 * The device's memory cannot be read or written by the host, only by what is
 * launched and copied; before its first use it contains 0xcb in each byte. What is
 * asynchronous happens when the host waits for it (late), or at once (early).
 * Whoever copies from memory that is not the device's, or calls without a current
 * context, ends the process with a message.
 *
 *   FAKE_CUDA_VERSION   of the driver: 12080        FAKE_NVRTC_VERSION   12.4
 *   FAKE_CUDA_DEVICES   their number: 1             FAKE_NVRTC_FAIL      rejects all
 *   FAKE_CUDA_COMPUTE   90                          FAKE_CUDA_EARLY      early
 *   FAKE_CUDA_BYTES     memory of a device
 *
 * A third library has the functions of libnccl.so (TENON_NCCL): processes, and threads
 * of one, send each other files in a folder. It is strict: who expects
 * another number of bytes than is sent ends the process with a message.
 *
 *   FAKE_NCCL_VERSION   22809
 *   FAKE_NCCL_FOLDER    where the folder is: /tmp
 *   FAKE_NCCL_FAIL      a word of fake_nccl_state and a number: "send 3"
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a test sets and counts: dlsym(driver, "fake_cuda"). */
typedef struct fake_cuda {
	bool early;
	size_t bytes;	     /* of memory, in all */
	bool refuses_rows;   /* copies of rows are invalid */
	int64_t fail_launch; /* this launch from now on is refused; 0: none */
	int64_t fail_describe; /* this description of a matrix; 0: none */
	int64_t fault;	     /* this launch from now on ends the context; 0: none */
	bool is_broken;	     /* it has; a test that goes on clears it */
	/* counted */
	size_t in_use;
	int64_t n_launches, n_blocks, n_waits, n_put, n_get, n_modules;
	/* what the user has not returned */
	int64_t n_memory, n_pinned, n_streams, n_events, n_loaded, n_contexts;
	int64_t n_graphs, n_graph_launches, n_captured;
	int64_t n_described;	   /* matrices */
	int64_t n_links;	   /* not returned */
	int64_t n_nodes, n_rounds; /* nodes added to graphs; bodies with kernels that ran */
} fake_cuda_state;

/* What a compiled unit has for each kernel: one block of a launch. Returns 0, or
 * what simt_failure explains. And the memory that a block needs. */
typedef int64_t fake_block(unsigned grid, unsigned warps, unsigned at,
	unsigned shared, void **params, char *memory);
typedef unsigned long fake_memory(unsigned long warps, unsigned long shared);
/*
 * For other libraries: is called in the order of the stream, again and again until it
 * returns true; the memory of the device can be accessed then, after fake_cuda_open.
 * fake_cuda_call(stream, call, arg) queues it.
 */
typedef bool fake_call(void *arg);
/* Copies memory of the device, for a test: dlsym(driver, "fake_cuda_read"). */
typedef void fake_read(void *to, const void *from, size_t n);
/* "FAKECODE", size, a shared object */
#define FAKE_MAGIC "FAKECODE"
/* .. that is not linked yet */
#define FAKE_PART "FAKEPART"

/* Of the library between processes: dlsym(library, "fake_nccl"). */
typedef struct fake_nccl {
	/* this call from now on fails; 0: none */
	int64_t fail_send, fail_receive, fail_group, fail_join, fail_id;
	int64_t lose; /* when this group of calls begins, its peers are gone */
	int64_t hold; /* this group of calls never ends */
	/* counted */
	int64_t n_sends, n_receives, n_bytes, n_groups, most_in_group, n_joins,
		n_aborts;
	int64_t n_comms; /* that the user has not returned */
} fake_nccl_state;

#endif
