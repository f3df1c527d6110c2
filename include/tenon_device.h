/*
 * tenon_device.h: devices that run kernels; part of tenon.h, which includes it.
 *
 *     tn_options o = TN_OPTIONS_INIT;
 *     o.device = "cuda:0";        // or TENON_DEVICE=cuda:0 in the environment
 *
 * "cpu"; "simt": warps of a GPU, emulated on the CPU, slowly; "cuda:0",
 * "cuda:1" ..: NVIDIA GPUs ("cuda" is the first one). What a device needs is in
 * docs/gpu.md. A device that is not there is an error, of tn_context_new: no
 * other one takes its place.
 */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

/* ---- devices ----------------------------------------------------------- */

/**
 * The devices of this machine as text, a terminated string in *out, or as one
 * JSON object: for each GPU its name, compute capability, multiprocessors and
 * memory; the driver, NVIDIA's run-time compiler (NVRTC) and NCCL, or what is
 * missing of them, what was looked for, and what would be accepted. It does not
 * fail because something is missing.
 *
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_devices_text(
	char **out, tn_context *c, bool json);

/**
 * The device that has x's elements: "cpu", "simt", "cuda:0"; NULL: x is not valid.
 * owner   borrowed from the context
 * since   0.1
 */
TN_API const char *tn_device_of(const tn_tensor *x);

/**
 * A tensor of c, on c's device, with x's elements, which are computed first: for
 * what is prepared on one device and used on another. It is a copy, also if x
 * is of c, and is not tracked: no gradient goes from it to x. Of a distributed
 * tensor every process of its mesh calls, and has all elements.
 *
 * shape   that of x; its dtype, too
 * errors  [tensor.handle] x is not valid; and those of tn_read, which both
 *         contexts have then; [device.memory] c's device is full
 * since   0.1
 */
#define tn_to(...) tn_at_to(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_to(
	const char *file, int32_t line, tn_context *c, tn_tensor *x);

/** What a context has done on its device so far. */
typedef struct tn_device_stats {
	const char *name; /* "cpu", "simt", "cuda:0"; borrowed from the context */
	/* of a device with memory of its own: in use, and taken from the driver */
	size_t bytes_used, bytes_reserved;
	int64_t n_launches; /* of kernels, those in graphs included */
	int64_t n_graphs;   /* launched lists of kernels */
	/* operations without kernels, which the host computed on copies, and the
	 * name of the last one, or "" */
	int64_t n_host;
	const char *host;
	/* on a mesh: bytes that this process has sent from its device to those of
	 * others, and those that went through the memory of the hosts; and what
	 * connects the devices ("NCCL 2.28.9"), or why nothing does; "": no tensor
	 * was moved yet; borrowed from the context */
	int64_t bytes_to_peers, bytes_by_host;
	const char *peers;
	/* loops and branches whose test the host read on the way, because the device
	 * could not; and why, of the last one, or "" */
	int64_t n_asked;
	const char *asked;
} tn_device_stats;

TN_API void tn_context_device_stats(
	const tn_context *c, tn_device_stats *out);

/**
 * Waits until the device has done all that was called before: for a program
 * that shares its memory, by DLPack, or measures. Calls that read elements wait
 * by themselves; the CPU has always finished.
 *
 * errors  [device.lost] the device stopped   [device.launch]
 * since   0.1
 */
TN_API tn_status tn_device_wait(tn_context *c);

/**
 * The stream on which c's device works, a CUstream of CUDA's driver: for other
 * libraries that share memory with c (the `stream` of Python's __dlpack__). NULL
 * if the device is the CPU, or if it cannot be started.
 *
 * owner   borrowed from the context
 * errors  [device.start] [device.lost]
 * since   0.1
 */
TN_API void *tn_device_stream(tn_context *c);

/**
 * What is called of c from now on waits, on the device, for what `stream` has to
 * do so far: for memory that another library fills, before or after
 * tn_dlpack_import. NULL is CUDA's default stream. The host does not wait. On the
 * CPU nothing happens.
 *
 * errors  [device.launch] the driver refuses it: the stream is of another device,
 *         say   [device.lost]
 * since   0.1
 */
TN_API tn_status tn_device_follow(tn_context *c, void *stream);

/**
 * The other way: what `stream` is given from now on waits for what was called of c
 * so far; tensors that the other library shall read must have been computed by
 * tn_eval, or exported.
 *
 * errors  as tn_device_follow
 * since   0.1
 */
TN_API tn_status tn_device_lead(tn_context *c, void *stream);

#endif
