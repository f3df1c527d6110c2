/* api.h: the objects behind tenon.h; private to api/. */
#ifndef API_H
#define API_H

#include "engine/engine.h"
#include "run/run.h"
#include "tensor/tensor.h"

struct tn_context {
	env *e;
	arena *a;
	tn_options o;
	run_jit *jit;	/* NULL until a program needs them */
	run_pool *pool;
	tn_stats stats;
	tn_diag none;	/* what diag says before anything failed */
	bool failed;
	tensors *t;	/* NULL until the first tensor */
	tn_diag first;	/* sticky: of the first call on tensors that failed */
	VEC(tensor *) room; /* of the call at hand: what handles stand for */
	loc here; /* of the next call: tn_here */
	uint64_t seed, n_keys; /* of random keys */
	settle_options settle; /* for tests */
	bool poison;	       /* the same */
	enum tensor_rule dropped; /* the same */
	struct api_profile *profile; /* NULL: not asked for */
	struct api_shard *shard;     /* NULL: it is a process of its own */
	bool is_inside;	       /* in api_call, and in no function of the host */
	fp_env host;	       /* the environment that api_call left */
	struct host *hosts;    /* functions in C that were called */
	compile_dump dump;     /* TENON_DUMP */
};

struct tn_program {
	tn_context *c;
	arena *a;
	ir_program *ir;
	compilation *made; /* NULL until asked for */
	plan_exec *exec;   /* NULL until compiled */
	tn_value *in, *out;
	bool ready;
	int32_t n_free; /* inputs that are the caller's; behind them bound ones */
	const void **bound; /* (inputs) NULL: none is bound or pinned */
	const bool *pinned;	  /* (inputs) the caller's array must equal it */
	int64_t *version; /* (inputs) see plan_exec_run; NULL: not known */
	const void **all;	  /* (inputs) scratch of a run */
	int32_t n_out;
	/* shapes follow from data at each run: ir is empty. NULL: they do not */
	struct onnx_staged *staged;
	compile_text schedule, kern; /* pinned */
};

/* Throws [onnx.staged] for a program whose shapes follow from data. */
void api_want_shapes(const tn_program *p);
/* tn_program_run of its parts: checked, compiled, run. */
void api_run(tn_program *p, const void *const *in, void *const *out);

/* tn_apply on inputs in f64, where the program has other floats: calls that
 * name the dtype of a float get f64, too. */
tn_status api_apply_wide(tn_program *p, int32_t n_in, tn_tensor *const *in,
	int32_t n_out, tn_tensor **out);

/* plan_exec_run, counted. */
void api_exec_run(tn_context *c, plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out);

/* What callers see of the values of a program. */
tn_value *api_values(arena *a, const ir_program *ir, const int32_t *at,
	int32_t n);

/* Calls fn in the context's environment; remembers that a diagnosis is there. */
tn_status api_call(tn_context *c, void (*fn)(void *arg), void *arg);

/* Around a function of the host's that is called from inside: it finds its own
 * floating-point environment. */
void api_out(tn_context *c);
void api_back(tn_context *c);

/* The same, and the first failure stays, with the user's place. */
tn_status api_sticky(tn_context *c, const char *file, int32_t line,
	void (*fn)(void *arg), void *arg);
/* The context's tensors, made when first asked for. */
tensors *api_tensors(tn_context *c);

/* The context that this thread used last, for a call whose operands name none;
 * NULL when another thread has freed one since. */
tn_context *api_context_recent(void);
void api_context_used(tn_context *c);
void api_context_ends(const tn_context *c); /* it is about to be freed */

/*
 * TN_EINVAL [api.null]: an argument that a call needs is NULL, and no context
 * is known; the diagnosis is that of tn_context_diag(NULL).
 */
tn_status api_null(const char *what);
/* The same for another failure that no context can keep. */
tn_status api_fail_alone(
	tn_status status, const char *rule, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void api_clear_nobodys(void);
void api_say_nobodys(const tn_diag *d);

/* Throws TN_EINVAL [api.count], [tn.attr], [api.null] for lists that cannot be. */
void api_check_lists(tn_context *c, loc at, int32_t n, tn_tensor *const *in,
	int32_t n_attrs, const ir_attr *attr, int32_t n_out);
enum { API_MAX_ATTRS = 32 };
#define API_UNKNOWN_KIND ((attr_kind)(ATTR_STRING + 1))

/* Throws TN_EINVAL [api.null] unless the pointer is there. */
void api_want(tn_context *c, const void *p, const char *what);

/* compile options as the context's say, without those of the target */
compile_options api_compile_options(const tn_context *c);
run_jit *api_jit(tn_context *c);
run_pool *api_pool(tn_context *c);
/* The passes up to a level; only schedules ask what the C compiler makes. */
void api_compile_to(tn_context *c, compilation *m, tn_level level);
/* Everything behind the program: passes, C compiler, memory, in arena a. */
plan_exec *api_compile(tn_context *c, arena *a, compilation *m);

/* The passes of a program up to a level. */
compilation *api_made(tn_program *p, tn_level level);
/* Is to be in the profile, if there is one; the arena is that of both. */
void api_profile_add(tn_context *c, compilation *m, plan_exec *x);

/* A copy of an array as one that is the caller's. */
struct file_array;
tn_array *api_array_new(tn_context *c, const struct file_array *f);

/* What handles of the caller's stand for, and the other way round. */
tensor *api_inner(const tn_tensor *x);
tn_tensor *api_outer(const tensor *x);
void api_inner_all(int32_t n, tn_tensor *const *x, tensor **out);
void api_outer_all(int32_t n, tensor *const *x, tn_tensor **out);
tn_tensor *api_invalid(tn_context *c); /* what a failed call gives */
/* A body of the caller's, on handles. */
tn_status api_body(tn_context *c, tn_body *fn, void *user, int32_t n_in,
	tensor *const *in, int32_t n_out, tensor **out);

/* Text in memory of its own, as tn_text_free wants it. */
char *api_text(tn_context *c, const str *s);

#endif
