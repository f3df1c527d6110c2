/* api.h: the objects behind tenon.h; private to api/. */
#ifndef API_H
#define API_H

#include "engine/engine.h"
#include "run/device.h"
#include "func/func.h"
#include "target/simt/simt.h"

struct tn_context {
	env *e;
	arena *a;
	tn_options o;
	run_jit *jit;	/* jit, pool: NULL until a program needs them */
	run_pool *pool;
	tn_stats stats;
	tn_diag none;	/* the diagnosis before anything failed */
	bool failed;
	tensors *t;	/* NULL until the first tensor */
	tn_diag first;	/* sticky: of the first failed call on tensors */
	VEC(tensor *) room; /* the tensors of the handles of the current call */
	loc here; /* of the next call: tn_here */
	uint64_t seed, n_keys; /* of random keys */
	settle_options settle; /* for tests */
	bool poison;	       /* for tests */
	enum tensor_rule dropped; /* for tests */
	struct api_profile *profile; /* NULL: profiling is off */
	struct api_shard *shard;     /* NULL: not part of a mesh */
	bool is_inside;	       /* in api_call, and not in a function of the host */
	fp_env host;	       /* the floating-point environment of the host */
	struct host *hosts;    /* functions of the host that were called */
	compile_dump dump;     /* TENON_DUMP */
	bool verify_kern;      /* TENON_VERIFY */
	compile_text schedule; /* pinned, for any program with its kernels */
	const machine *machine; /* of the options; NULL: of the C compiler */
	const c_target *target; /* what prints kernels for it */
	run_device *device;	/* where elements lie; &run_cpu: in the process */
	int64_t n_host;		/* opaque rows that the host ran for it */
	const char *host_row;	/* the last one, or NULL */
	int64_t n_asked;	/* tests of loops and branches that the host read */
	const char *asked;	/* why the last one, or NULL */
	size_t program_bytes;	/* limit of all that are made of one model */
	bool foreign; /* the device cannot run what the target prints */
};

struct tn_program {
	tn_context *c;
	arena *a;
	ir_program *ir;
	compilation *made; /* NULL until it is needed */
	plan_exec *exec;   /* NULL until compiled */
	tn_value *in, *out;
	bool ready;
	int32_t n_free; /* inputs that the caller passes; bound ones follow */
	const void **bound; /* (inputs) NULL: no input is bound or pinned */
	const bool *pinned;	  /* (inputs) the caller's array must equal bound[i] */
	int64_t *version; /* (inputs) see plan_exec_run; NULL: unknown */
	const void **all;	  /* (inputs) scratch of a run */
	int32_t n_out;
	/* if not NULL: shapes follow from data at each run, and ir is empty */
	struct onnx_staged *staged;
	compile_text schedule, kern; /* pinned */
	VEC(compile_pair) apart;     /* no kernel computes both */
	bool single; /* every kernel is compiled as a separate file */
	const char *strings; /* an input or output of an ONNX model that has some */
	const struct onnx_model *model; /* then: it knows their numbers, */
	const bool *in_strings, *out_strings; /* .. of these inputs and outputs */
	bool lean; /* nobody can explain it: it keeps only what runs */
};

struct tn_function {
	tn_context *c;
	tensor_function *f;
	tn_body *body;
	void *user;
	int32_t n_in, n_out;
	int32_t n_calls; /* that have not returned */
	bool ends; /* it is freed when they have */
};

/* Throws [onnx.staged] for a program whose shapes follow from data. */
void api_want_shapes(const tn_program *p);
/* Throws [export.dtype] if what goes in or out has strings. */
void api_want_numbers(const tn_program *p);
/* Checks the arguments, compiles if needed, and runs. */
void api_run(tn_program *p, const void *const *in, void *const *out);

/* tn_apply with inputs in f64 for all other float types of the program; float
 * types in attributes become f64, too. */
tn_status api_apply_wide(tn_program *p, int32_t n_in, tn_tensor *const *in,
	int32_t n_out, tn_tensor **out);

/* Counts, for tn_device_stats, a test of a loop or branch that the host read; c: the
 * context. */
void api_note_asked(void *c, const char *why);
/* plan_exec_run, with statistics. */
void api_exec_run(tn_context *c, plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out);

/* The same with arrays of the host. */
void api_exec_run_host(tn_context *c, plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out);

/* Descriptions of the values at[] of a program, for callers. */
tn_value *api_values(arena *a, const ir_program *ir, const int32_t *at,
	int32_t n);

/* Calls fn in the context's environment, and keeps its diagnosis. */
tn_status api_call(tn_context *c, void (*fn)(void *arg), void *arg);

/* Before and after a function of the host is called from inside: restore the
 * floating-point environment of the host, and ours. */
void api_out(tn_context *c);
void api_back(tn_context *c);

/* Like api_call; the first failure stays, with the user's file and line. */
tn_status api_sticky(tn_context *c, const char *file, int32_t line,
	void (*fn)(void *arg), void *arg);
/* The tensors of the context, created at the first use. */
tensors *api_tensors(tn_context *c);

/* The context that this thread used last, for calls without operands; NULL if
 * another thread has freed a context since. */
tn_context *api_context_recent(void);
void api_context_used(tn_context *c);
void api_context_ends(const tn_context *c); /* call before it is freed */

/*
 * Returns TN_EINVAL [api.null]: a required argument is NULL, and no context is
 * known. The diagnosis is that of tn_context_diag(NULL).
 */
tn_status api_null(const char *what);
/* The same for another failure without a context. */
tn_status api_fail_alone(
	tn_status status, const char *rule, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void api_say_nobodys(const tn_diag *d);

/* Throws TN_EINVAL [api.count], [tn.attr], [api.null] for invalid lists. */
void api_check_lists(tn_context *c, loc at, int32_t n, tn_tensor *const *in,
	int32_t n_attrs, const ir_attr *attr, int32_t n_out);
enum { API_MAX_ATTRS = 32 };
#define API_UNKNOWN_KIND ((attr_kind)(ATTR_STRING + 1))

/* Throws TN_EINVAL [api.null] if p is NULL. */
void api_want(tn_context *c, const void *p, const char *what);

/* The compile options of the context, without those of the target. */
compile_options api_compile_options(tn_context *c);
const machine *api_machine(const run_target *t); /* whose code it is */
/* device.c: reads the options device and target */
void api_device_open(tn_context *c);
const char *api_device_name(const tn_context *c);
run_jit *api_jit(tn_context *c);
run_pool *api_pool(tn_context *c);
int32_t api_threads(tn_context *c); /* for estimates; 0: all that a device has */
/* Runs the passes up to a level; schedules need to know the C compiler. */
void api_compile_to(tn_context *c, compilation *m, tn_level level);
/* Runs all passes and the C compiler and allocates memory, in arena a. */
plan_exec *api_compile(tn_context *c, arena *a, compilation *m);

/* Runs the passes of a program up to a level. */
compilation *api_made(tn_program *p, tn_level level);
/* Adds a program to the profile, if there is one; m and x share an arena. */
void api_profile_add(tn_context *c, compilation *m, plan_exec *x);
/* The times of a program that was compiled since tn_profile_start, or NULL. */
const plan_times *api_profile_times(const tn_program *p);

/* A copy of an array, owned by the caller. */
struct file_array;
tn_array *api_array_new(tn_context *c, const struct file_array *f);

/* The tensor of a handle, and the handle of a tensor. */
tensor *api_inner(const tn_tensor *x);
tn_tensor *api_outer(const tensor *x);
void api_inner_all(int32_t n, tn_tensor *const *x, tensor **out);
void api_outer_all(int32_t n, tensor *const *x, tn_tensor **out);
tn_tensor *api_invalid(tn_context *c); /* the result of a failed call */
/* Calls a body of the caller, with handles. */
tn_status api_body(tn_context *c, tn_body *fn, void *user, int32_t n_in,
	tensor *const *in, int32_t n_out, tensor **out);

/* A copy of a text, for tn_text_free. */
char *api_text(tn_context *c, const str *s);

#endif
