/*
 * again.c: the kernels that decide on the device whether something happens again.
 *
 * Only a kernel can set the value of a condition, by a function of a library of
 * NVIDIA's (libcudadevrt.a). So a small text is compiled by NVRTC and linked to that
 * library by the driver, when a loop first needs it. Then a loop of three rounds is
 * tried. Where a part of this is missing, or the rounds are not three, the host reads
 * conditions; nothing fails.
 */
#include "run/cuda/local.h"

#include <stddef.h>

/* One thread does it. A failed check has left something else than -1. */
static const char text[] =
	"typedef unsigned long long word;\n"
	"extern \"C\" __device__ void cudaGraphSetConditional(\n"
	"	word handle, unsigned value);\n"
	"extern \"C\" __global__ void tenon_set(word handle,\n"
	"	const unsigned char *test, word n, word *state, word most)\n"
	"{\n"
	"	unsigned holds = 0;\n"
	"	if (threadIdx.x != 0)\n"
	"		return;\n"
	"	for (word i = 0; i < n; i++)\n"
	"		holds |= test[i];\n"
	"	holds = holds != 0 && state[1] == 0 && state[0] < most;\n"
	"	state[0] += holds;\n"
	"	cudaGraphSetConditional(handle, holds);\n"
	"}\n"
	"extern \"C\" __global__ void tenon_watch(\n"
	"	const long long *err, word n, word *state)\n"
	"{\n"
	"	if (threadIdx.x != 0)\n"
	"		return;\n"
	"	for (word i = 0; i < n; i++)\n"
	"		if (err[i] != -1)\n"
	"			state[1] = 1;\n"
	"}\n";

enum { LOG_BYTES = 1024, TRIED_ROUNDS = 3 };

typedef struct linking {
	cuda_device *d;
	cuda_again *k;
	const char *library;
	const char *arch;
	bool is_ptx;
	char *code; /* of NVRTC */
	size_t n;
	char log[LOG_BYTES];
} linking;

static const char *compile_program(linking *j, rtc_program p)
{
	const rtc_library *l = &j->d->rtc;
	const char *const option[] = {j->arch, "--std=c++17", "--fmad=false",
		"--relocatable-device-code=true"};
	rtc_result r = l->compile(p, sizeof option / sizeof *option, option);

	if (r == 0)
		r = j->is_ptx ? l->ptx_size(p, &j->n) : l->cubin_size(p, &j->n);
	if (r == 0 && j->n > 0) {
		j->code = arena_alloc(j->d->s.tmp, j->n, 1);
		r = j->is_ptx ? l->ptx(p, j->code) : l->cubin(p, j->code);
	}
	return r == 0 && j->n > 0 ? NULL
				  : arena_printf(j->d->a,
					    "%s cannot compile what reads it "
					    "(error %d)",
					    l->path, (int)r);
}

static const char *compile(linking *j)
{
	rtc_program p = NULL;
	const char *why;

	if (j->d->rtc.program_new(&p, text, "again.cu", 0, NULL, NULL) != 0)
		return "NVRTC makes no program";
	why = compile_program(j, p);
	j->d->rtc.program_free(&p);
	return why;
}

/* Between enter and leave. */
static cu_result link_code(linking *j)
{
	const cu_library *l = &j->d->l;
	int option[] = {CU_LINK_LOG, CU_LINK_LOG_BYTES};
	void *value[] = {j->log, (void *)(uintptr_t)(LOG_BYTES - 1)};
	void *code = NULL;
	size_t n = 0;
	cu_link link = NULL;
	cu_result r = l->link_new(2, option, value, &link);

	if (r != CU_OK)
		return r;
	r = l->link_data(link, j->is_ptx ? CU_LINK_PTX : CU_LINK_CUBIN, j->code,
		j->n, "again.cu", 0, NULL, NULL);
	if (r == CU_OK)
		r = l->link_file(
			link, CU_LINK_LIBRARY, j->library, 0, NULL, NULL);
	if (r == CU_OK)
		r = l->link_end(link, &code, &n);
	if (r == CU_OK)
		r = l->module_load(&j->k->module, code);
	if (r == CU_OK)
		r = l->function(&j->k->set, j->k->module, "tenon_set");
	if (r == CU_OK)
		r = l->function(&j->k->watch, j->k->module, "tenon_watch");
	l->link_free(link);
	return r;
}

/* Memory of the loop that is tried: rounds that began, and whether a check failed; its
 * test, which stays 1; what a round writes. */
typedef struct trial {
	uint64_t state[2], test, written;
} trial;

static cu_result run_trial(cuda_device *d, cu_address at, trial *t)
{
	const uint64_t word[] = {CUDA_REPEAT, at + offsetof(trial, test), 1, at,
		TRIED_ROUNDS, CUDA_FILL, at + offsetof(trial, written), 1, 1,
		CUDA_REPEATED};
	cu_exec exec = NULL;
	cu_graph g;
	cu_result r = cuda_build(d, word, sizeof word / sizeof *word, &g);

	if (r == CU_OK)
		r = d->l.instantiate(&exec, g, 0);
	if (r == CU_OK)
		r = d->l.put(at, t, sizeof *t, d->stream);
	if (r == CU_OK)
		r = d->l.graph_launch(exec, d->stream);
	if (r == CU_OK)
		r = d->l.get(t, at, sizeof *t, d->stream);
	if (r == CU_OK)
		r = d->l.stream_wait(d->stream);
	if (exec != NULL)
		d->l.exec_free(exec);
	if (g != NULL)
		d->l.graph_free(g);
	return r;
}

/* Between enter and leave. */
static const char *try_rounds(cuda_device *d)
{
	trial t = {.test = 1};
	cu_address at = 0;
	cu_result r = d->l.alloc(&at, sizeof t);

	if (r == CU_OK) {
		r = run_trial(d, at, &t);
		(void)d->l.free(at);
	}
	if (r != CU_OK)
		return arena_printf(d->a, "the device cannot repeat: %s",
			cuda_error(&d->l, d->s.tmp, r));
	if (t.state[0] != TRIED_ROUNDS || t.written != 1)
		return arena_printf(d->a,
			"the device began %llu rounds of %d that were tried",
			(unsigned long long)t.state[0], TRIED_ROUNDS);
	return NULL;
}

static const char *make(linking *j)
{
	cuda_device *d = j->d;
	const char *why = NULL;
	cu_result r;

	j->library = cuda_find_devrt(&d->l, &d->rtc, d->a, &why);
	if (why != NULL)
		return why;
	j->arch = cuda_arch(d, false, &j->is_ptx); /* as the library is */
	why = compile(j);
	if (why != NULL)
		return why;
	cuda_enter(d);
	r = link_code(j);
	if (r == CU_OK)
		why = try_rounds(d);
	cuda_leave(d);
	return r == CU_OK ? why
			  : arena_printf(d->a,
				    "the driver cannot link %s: %s%s%.300s",
				    j->library, cuda_error(&d->l, d->s.tmp, r),
				    j->log[0] != '\0' ? ": " : "", j->log);
}

const char *cuda_no_repeat(run_device *base)
{
	cuda_device *d = (cuda_device *)base;
	linking j = {.d = d};

	if (d->again == NULL) {
		d->again = j.k = arena_make(d->a, cuda_again);
		j.k->why = "it was not found out"; /* if that is broken off */
		j.k->why = make(&j);
	}
	return d->again->why;
}

void cuda_watch(run_device *base, const void *err, int32_t n, int64_t *state)
{
	cuda_device *d = (cuda_device *)base;
	uint64_t value[3] = {(uint64_t)(uintptr_t)err, (uint64_t)n,
		(uint64_t)(uintptr_t)state};
	void *param[3] = {&value[0], &value[1], &value[2]};
	const cuda_grid g = {.fn = d->again->watch,
		.blocks = 1,
		.threads = 32,
		.n_params = 3,
		.param = param};

	cuda_note_launch(d, &g);
}

void cuda_again_end(cuda_device *d)
{
	if (d->again != NULL && d->again->module != NULL)
		d->l.module_free(d->again->module);
	d->again = NULL;
}
