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
 * memory; the driver and NVIDIA's run-time compiler (NVRTC), or what is missing
 * of them, what was looked for, and what would be accepted. It does not
 * fail because something is missing.
 *
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_devices_text(
	char **out, tn_context *c, bool json);

#endif
