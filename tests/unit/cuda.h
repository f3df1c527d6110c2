/*
 * cuda.h: contexts on a CUDA device, by the driver and the compiler of tests/fake.
 */
#ifndef TEST_CUDA_H
#define TEST_CUDA_H

#include "unit.h"

#include "fake_cuda.h"
#include "tenon.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fake_cuda_state *fake;

/* Variables that a test sets are unset before the next one. */
static const char *const variables[] = {"TENON_CUDA_DRIVER", "TENON_NVRTC",
	"TENON_NCCL", "TENON_CUDADEVRT", "FAKE_NCCL_VERSION", "FAKE_NCCL_FAIL",
	"FAKE_CUDA_VERSION", "FAKE_CUDA_DEVICES", "FAKE_CUDA_COMPUTE",
	"FAKE_NVRTC_VERSION", "FAKE_NVRTC_FAIL", "TENON_DEVICE", "TENON_MACHINE",
	"FAKE_CUDA_EARLY", "FAKE_CUDA_ONE_ROUND"};

static inline int begin(void **state)
{
	void *lib = dlopen(FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
	fake_cuda_state *(*get)(void);
	void *sym = lib != NULL ? dlsym(lib, "fake_cuda") : NULL;

	(void)state;
	if (sym == NULL)
		return -1;
	memcpy(&get, &sym, sizeof get);
	fake = get();
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
	setenv("TENON_CUDA_DRIVER", FAKE_DRIVER, 1);
	setenv("TENON_NVRTC", FAKE_NVRTC, 1);
	setenv("TENON_NCCL", FAKE_NCCL, 1);
	setenv("TENON_CUDADEVRT", FAKE_DEVRT, 1);
	*fake = (fake_cuda_state){.bytes = (size_t)1 << 32};
	return 0;
}

/* All that was taken from the driver has been returned. */
static inline int end(void **state)
{
	(void)state;
	return fake->n_memory == 0 && fake->n_pinned == 0 &&
			fake->n_streams == 0 && fake->n_events == 0 &&
			fake->n_loaded == 0 && fake->n_contexts == 0 &&
			fake->n_graphs == 0 && fake->n_links == 0
		? 0
		: -1;
}

static inline tn_context *context_on(const char *device)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;

	o.device = device;
	if (tn_context_new(&c, &o) < 0)
		fail_msg("%s: %s", device, tn_context_diag(NULL)->text);
	return c;
}

static inline tn_program *parse_on(tn_context *c, const char *text)
{
	tn_program *p;

	if (tn_program_parse(&p, c, text, strlen(text), "t.tn") < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	return p;
}

/* A context on which a loop has run: what is done before the first one has been done. */
static inline tn_context *context_of_loops(void)
{
	static const char text[] =
		"program {\n  n: i64\n  s: f32[4]\n  one: i64\n"
		"  k, h = loop(n, s, one, rounds=4, while=0) {\n"
		"    carried k: i64\n    carried h: f32[4]\n    one: i64\n"
		"    a = neg(h)\n    d = sub(k, one)\n    return d, a\n  }\n"
		"  return k, h\n}\n";
	int64_t n = 2, one = 1, k;
	float s[4] = {1, 2, 3, 4}, h[4];
	const void *in[3] = {&n, s, &one};
	void *out[2] = {&k, h};
	tn_context *c = context_on("cuda");
	tn_program *p = parse_on(c, text);

	if (tn_program_run(p, in, out) < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	tn_program_free(p);
	assert_true(k == 0 && h[3] == 4);
	fake->n_rounds = fake->n_get = 0;
	return c;
}

#endif
