/*
 * run_kernels.h: a system through fuse, loop, emit, the C compiler, and run;
 * for tests. Compiles with -Wall -Wextra -Werror, on request with sanitizers.
 *
 *     void **data = run_kernels(a, s, plan, input, &opt);   as eval_system
 */
#ifndef RUN_KERNELS_H
#define RUN_KERNELS_H

#include "eval_system.h"

#include "fuse/fuse.h"
#include "schedule/schedule.h"
#include "system/eval.h"
#include "target/c/c.h"
#include "target/simt/simt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct run_options {
	const machine *machine;
	const char *cc;	       /* NULL: cc */
	bool show;	       /* print the C */
	bool simt;	       /* emulated warps */
	bool backwards;	       /* chunks from the last to the first */
	int64_t error;	       /* out: *err of the last kernel that set it */
	int32_t failed_tensor; /* out: the index tensor of it */
	str *text;	       /* out, when not NULL: the C */
};

/* Vectors of another machine than this one have another ABI, which matters to no
 * one: all functions that take them are inlined. */
#define RUN_FLAGS                                                   \
	"-std=gnu11 -O1 -march=native -fPIC -shared -Wall -Wextra " \
	"-Werror -Wno-psabi -fno-math-errno -fno-trapping-math -ffp-contract=off"

typedef void run_fn(void *const *p, void *scratch, void *local, int64_t chunk,
	int64_t *err);

static inline void *run_load(const char *text, const char *cc)
{
	char dir[] = "/tmp/tenon-test-XXXXXX", c[128], so[128], cmd[512];
	FILE *f;
	void *lib;

	assert_non_null(mkdtemp(dir));
	snprintf(c, sizeof c, "%s/k.c", dir);
	snprintf(so, sizeof so, "%s/k.so", dir);
	f = fopen(c, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	snprintf(cmd, sizeof cmd, "%s %s -o %s %s -lm", cc != NULL ? cc : "cc",
		RUN_FLAGS, so, c);
	if (system(cmd) != 0)
		fail_msg("%s: %s", cmd, text);
	lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		fail_msg("%s", dlerror());
	unlink(c);
	unlink(so);
	rmdir(dir);
	return lib;
}

/* Memory of its own, at a multiple of 64: a sanitizer sees where it ends. */
static inline void *run_array(arena *a, size_t n)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, 64, n > 0 ? n : 1), 0);
	arena_defer(a, free, p);
	memset(p, 0xa5, n);
	return p;
}

static inline void run_one(arena *a, void *lib, const c_kernel *k,
	void **data, struct run_options *o)
{
	void **p = arena_array(a, void *, k->n_params + k->n_cells + 1);
	char *scratch = run_array(a, k->scratch_bytes);
	char *local = run_array(a, k->local_bytes);
	int64_t err = 0;

	for (int32_t i = 0; i < k->n_params; i++)
		p[i] = data[k->param[i]];
	for (int32_t i = 0; i < k->n_cells; i++)
		p[k->n_params + i] = scratch + k->cell[i].offset;
	for (int32_t i = 0; i < k->n_phases; i++) {
		void *sym = dlsym(lib, k->phase[i].fn);
		run_fn *fn;

		assert_non_null(sym);
		memcpy(&fn, &sym, sizeof fn);
		for (int64_t c = 0; c < k->phase[i].n_chunks; c++) {
			int64_t at = o->backwards ? k->phase[i].n_chunks - 1 - c
						  : c;

			/* what a worker leaves behind must not matter */
			memset(local, 0xa5, k->local_bytes);
			fn(p, scratch, local, at, &err);
		}
	}
	if (err < 0) {
		int64_t at;
		const char *what = simt_failure(err, &at);

		fail_msg("line %lld of the unit: %s\n%s", (long long)at, what,
			k->c);
	}
	if (err != 0) {
		o->error = err;
		o->failed_tensor = k->check[err - 1].tensor;
	}
}

static inline void **run_kernels(arena *a, ir_system *s, fuse_plan *plan,
	const void *const *input, struct run_options *o)
{
	void **data = arena_array(a, void *, s->tensor.n + 1);
	const c_kernel **k = arena_array(
		a, const c_kernel *, plan->kernel.n + 1);
	int32_t n = s->tensor.n; /* schedules add others */
	str text = str_new(a);
	void *lib;

	for (int32_t i = 0; i < n; i++)
		data[i] = run_array(a, (size_t)s->tensor.at[i].numel *
				dtype_size(s->tensor.at[i].dtype));
	for (int32_t i = 0; i < s->input.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->input.at[i]];

		memcpy(data[s->input.at[i]], input[i],
			(size_t)t->numel * dtype_size(t->dtype));
	}
	for (int32_t i = 0; i < plan->kernel.n; i++) {
		loop_kernel *l;
		kern_kernel *kern;

		if (plan->kernel.at[i]->opaque) {
			k[i] = arena_make(a, c_kernel);
			continue;
		}
		l = loop_build(a, s, plan->kernel.at[i], false);
		loop_verify(l);
		loop_schedule(l, o->machine);
		loop_verify(l);
		loop_verify_schedule(l);
		kern = kern_lower(a, l);
		kern_verify(kern);
		k[i] = (o->simt ? simt_print : c_print)(a, kern);
	}
	(o->simt ? simt_unit : c_unit)(&text, k, plan->kernel.n);
	if (o->show)
		printf("%s\n", text.at);
	if (o->text != NULL)
		str_add(o->text, text.at);
	lib = run_load(text.at, o->cc);
	for (int32_t i = 0; i < plan->kernel.n; i++) {
		const fuse_kernel *f = plan->kernel.at[i];

		if (f->opaque)
			eval_equation(a, s, &f->eqn[0].e, data);
		else
			run_one(a, lib, k[i], data, o);
	}
	dlclose(lib);
	for (int32_t i = 0; i < n; i++)
		if (plan->alias != NULL && plan->alias[i] >= 0)
			memcpy(data[i], data[plan->alias[i]],
				(size_t)s->tensor.at[i].numel *
					dtype_size(s->tensor.at[i].dtype));
	return data;
}

#endif
