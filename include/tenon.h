/*
 * tenon.h: the entire public interface of Tenon, a tensor compiler and runtime.
 *
 * Ownership, once for all: nothing consumes its arguments; what came from
 * *_new or through **out you free with the matching *_free; every other
 * pointer is borrowed and lives as long as argument 0.
 * Texts have 1.5 for 1.5, and numbers are rounded to nearest, with subnormals,
 * whatever locale and floating-point environment the host has chosen: it finds
 * them as they were, in its own functions that are called from here, too.
 * Nothing here exits, aborts or prints, unless TENON_DUMP asks for the texts of
 * passes (docs/debugging.md). A context and what belongs to it are
 * used by one thread at a time.
 */
#ifndef TENON_H
#define TENON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TN_API
#else
#define TN_API __attribute__((visibility("default")))
#endif
#define TN_MUST_USE __attribute__((warn_unused_result))
#define TN_PRINTF(text, first) __attribute__((format(printf, text, first)))

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/** Largest number of axes of a tensor. */
#define TN_MAX_RANK 8

/** Result of every call that can fail: 0, or one of the negative values. */
typedef enum tn_status {
	TN_OK = 0,
	TN_EINVAL = -1,	  /* what was handed in is wrong: text, shape, dtype */
	TN_ENOMEM = -2,	  /* memory, or a size beyond what is accepted */
	TN_EIO = -3,	  /* a file cannot be read or written */
	TN_ECOMPILE = -4, /* no C compiler, or it failed */
	TN_ERANGE = -5,	  /* an index read from data is outside its tensor */
	TN_EINTERNAL = -6, /* a verifier of the library failed: report it */
	TN_EPEER = -7	   /* another process of the mesh ended, failed, or did
			    * something else */
} tn_status;

typedef enum tn_dtype {
	TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8, TN_I16, TN_I32, TN_I64,
	TN_U8, TN_BOOL, TN_U16, TN_U32, TN_U64,
	/* computed in f32, i8, u8; of fewer than 8 bits: a byte in memory */
	TN_F8E4M3FN, TN_F8E4M3FNUZ, TN_F8E5M2, TN_F8E5M2FNUZ, TN_F8E8M0,
	TN_F4E2M1, TN_I4, TN_U4, TN_I2, TN_U2
} tn_dtype;
#define TN_N_DTYPES 23

/**
 * What went wrong, where, and what would be accepted. Fixed size: it can be
 * copied, and needs no freeing. Empty strings and 0 mean "not known".
 */
typedef struct tn_diag {
	tn_status status;
	char rule[64];	 /* stable id, such as matmul.k or tn.syntax */
	char file[256];	 /* where the user must look */
	int32_t line;	 /* 1 is the first */
	int32_t column;	 /* 1 is the first */
	char text[1024]; /* one sentence, no newline at its end */
	char extra[1024]; /* source line with a caret, or empty */
} tn_diag;

/** "0.1.0": the version of the library that is linked. */
TN_API const char *tn_version(void);

/** Name of a dtype, such as "f32"; NULL if t is not a dtype. */
TN_API const char *tn_dtype_name(tn_dtype t);

/** Bytes of one element; 0 if t is not a dtype. */
TN_API size_t tn_dtype_bytes(tn_dtype t);

/** Are the elements floating-point numbers, integers? A bool is neither. */
TN_API bool tn_dtype_is_float(tn_dtype t);
TN_API bool tn_dtype_is_int(tn_dtype t);

/* ---- contexts ---------------------------------------------------------- */

/** Everything that a thread works with: compiler, cache, threads, errors. */
typedef struct tn_context tn_context;

/** The function that gives memory. size = 0 frees; a NULL result is out of memory. */
typedef struct tn_allocator {
	void *(*resize)(void *arg, void *old, size_t n_bytes);
	void *arg;
} tn_allocator;

/** Choices for a context; start from TN_OPTIONS_INIT. */
typedef struct tn_options {
	size_t n_bytes;	 /* sizeof(tn_options) of the caller */
	int32_t threads; /* 0: TENON_THREADS, or the CPUs one may use */
	bool interp;	 /* run the slow interpreter: no C compiler needed */
	bool no_fusion;	 /* every equation a kernel of its own */
	bool verify;	 /* check every level after the pass that made it */
	bool tf32; /* on GPUs give factors of products in f32 10 bits of fraction */
	/* where compiled kernels are kept: NULL: $XDG_CACHE_HOME/tenon; "":
	 * nowhere; a relative path is taken from where the process is now */
	const char *cache_dir;
	/* called with one line of text per pass, or NULL */
	void (*log)(void *arg, const char *line);
	void *log_arg;
	tn_allocator memory; /* resize NULL: the C library's */
	/* bytes that may be kept for gradients, where computing values again
	 * can do without; 0: as few as possible; -1: as is fastest */
	int64_t memory_limit;
	/* NULL: TENON_DEVICE, or "cpu"; "simt", "cuda:0": tenon_device.h. target:
	 * what kernels are made for, "cuda/sm_90"; NULL: TENON_MACHINE, or the device's */
	const char *device, *target;
} tn_options;

#define TN_OPTIONS_INIT                                                        \
	{                                                                      \
		sizeof(tn_options), 0, false, false, true, false, NULL, NULL, NULL,   \
			{NULL, NULL}, -1, NULL, NULL                           \
	}

/**
 * A new context in *out.
 *
 * options NULL means TN_OPTIONS_INIT. Starts no thread and no compiler: both wait for
 * the first program that needs them. In the environment TENON_RUN=interp, TENON_TF32=1
 * and TENON_VERIFY=1 do what the options of these names do, and the last checks
 * kernels before C is made of them: no access out of an array, no race; TENON_DUMP=PASS,PASS
 * prints what passes make on standard error, or into files of TENON_DUMP_DIR;
 * TENON_PROGRAMS_MB limits the programs of an ONNX model.
 * errors  [memory]; [context.options] options of another version; [context.run]
 *         [context.dump] [context.verify] [context.tf32] [context.programs] another value
 *         there: tn_context_diag(NULL); TN_EIO cache_dir is relative to what is gone
 * owner   *out is the caller's: tn_context_free, after its programs
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_context_new(
	tn_context **out, const tn_options *options);
TN_API void tn_context_free(tn_context *c);

/**
 * What the last call that failed had to say; borrowed, never NULL. Every call
 * that fails has a rule and a sentence here. c NULL: what a call of this thread
 * had to say that knew no context, such as one on a program that is NULL.
 */
TN_API const tn_diag *tn_context_diag(const tn_context *c);

/**
 * What is done in another way than was asked for, though nothing failed: why
 * the cache is not where it should be. One sentence; "" when there is none.
 *
 * owner   borrowed from the context, until its next call
 * since   0.1
 */
TN_API const char *tn_context_note(const tn_context *c);

/** What a context has done so far. */
typedef struct tn_stats {
	int64_t n_programs, n_pinned; /* compiled; by tn_context_set_schedule */
	int64_t n_kernels;	 /* in their plans */
	int64_t n_shared;	 /* of these, the same function as an earlier one */
	int64_t n_compiled;	 /* files handed to the C compiler */
	int64_t n_disk_hits;	 /* files found in the cache directory */
	int64_t n_memory_hits;	 /* files compiled before in this context */
	double parse_ms, lower_ms, fuse_ms, schedule_ms, emit_ms; /* passes */
	double compile_ms;	 /* wall time around C compilers */
	double load_ms;		 /* reading and loading what they made */
	/* tensors */
	int64_t n_calls;	 /* recorded */
	int64_t n_flushes;	 /* programs run for them */
	double run_ms;		 /* wall time in these programs */
	int64_t n_plan_hits, n_plan_misses; /* of the same structure or not */
	int64_t n_copies, copied_bytes; /* values kept that a write ended */
	int64_t n_inner_copies, inner_copied_bytes; /* the same in programs that
				  * have run: of parts read too late */
	int64_t bytes_live, bytes_peak, bytes_cached; /* memory of values */
	int64_t bytes_plans;	 /* what their programs work in beside it */
	int64_t bytes_kept;	 /* of values, for gradients alone */
	int64_t n_again;	 /* calls made again for gradients */
	int64_t n_tensors;	 /* alive */
	int64_t n_kept_copies;	 /* of constants and parameters, in the layout
				  * that products need, made so far ... */
	int64_t bytes_kept_copies; /* ... and kept from run to run */
} tn_stats;
TN_API void tn_context_stats(const tn_context *c, tn_stats *out);

/* ---- programs ---------------------------------------------------------- */

/** A program: text, then equations, then kernels, as far as was asked for. */
typedef struct tn_program tn_program;

/**
 * Read a program in the .tn language.
 *
 * text need not be terminated. file is its name in diagnoses; may be NULL.
 * errors  [tn.*] syntax and names   [notation.*] rows defined in the text
 *         [ROW.LETTER] operands that do not fit, such as matmul.k
 * owner   *out is the caller's: tn_program_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_parse(tn_program **out, tn_context *c,
	const char *text, size_t n_bytes, const char *file);

/** The same from a file; "-" is standard input. [file.read] */
TN_API TN_MUST_USE tn_status tn_program_load(
	tn_program **out, tn_context *c, const char *path);

TN_API void tn_program_free(tn_program *p);

/** An input or output: borrowed from its program. */
typedef struct tn_value {
	const char *name;
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
	int64_t n_elems;
	size_t n_bytes; /* of a dense, row-major array */
	/*
	 * Integers that are used as indices: lo <= v < hi is what every read
	 * accepts; lo = hi = 0 when nothing is known.
	 */
	int64_t lo, hi;
	bool is_param; /* an input that is declared as a param */
} tn_value;

TN_API int32_t tn_program_n_inputs(const tn_program *p);
TN_API int32_t tn_program_n_outputs(const tn_program *p);
/** NULL when i is not a number of an input. */
TN_API const tn_value *tn_program_input(const tn_program *p, int32_t i);
TN_API const tn_value *tn_program_output(const tn_program *p, int32_t i);

/**
 * Make it ready to run: all passes, the C compiler, memory.
 *
 * Done by the first tn_program_run too. A context with interp set has nothing
 * to do here.
 * errors  [run.cc] no C compiler   [run.compile] it failed: the text is kept
 *         [run.memory] buffers too large
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_compile(tn_program *p);

/**
 * Pin schedules: the text of TN_LEVEL_SCHEDULE, perhaps edited, is used instead
 * of the schedules that Tenon would choose. Kernels without a text keep theirs.
 * What is computed stays what the program says: a text that would change
 * it is refused when the program is compiled. file: for messages; or NULL.
 *
 * Comes before the first call that compiles or explains the program.
 * errors  [schedule.late] it is compiled already
 *         then, by tn_program_compile: [schedule.machine] made for another
 *         machine   [schedule.*] the rule that is broken, with the line
 * owner   text is copied
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_set_schedule(
	tn_program *p, const char *text, size_t n_bytes, const char *file);
/** The same from a file; "-": standard input. errors also [file.read] */
TN_API TN_MUST_USE tn_status tn_program_load_schedule(
	tn_program *p, const char *path);

/**
 * Pin kernels: the text of TN_LEVEL_KERN, perhaps edited, is compiled instead
 * of what Tenon would make of the schedules. Kernels without a text
 * keep theirs. A text is verified: it cannot leave its arrays, nor let two
 * chunks race; what it computes is its own. file: for messages; or NULL.
 *
 * Comes before the first call that compiles or explains the program.
 * errors  [kern.late] it is compiled already
 *         then, by tn_program_compile: [kern.machine] made for another
 *         machine   [kern.*] the rule that is broken, with the line
 * owner   text is copied
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_set_kern(
	tn_program *p, const char *text, size_t n_bytes, const char *file);
/** The same from a file; "-": standard input. errors also [file.read] */
TN_API TN_MUST_USE tn_status tn_program_load_kern(
	tn_program *p, const char *path);

/** How far tn_program_tune is. */
typedef struct tn_tune_state {
	const char *kernel; /* its name, valid during the call */
	int32_t number, n_kernels; /* of the kernel being tuned; of all */
	int32_t n_tried, n_refused, n_kept; /* schedules so far */
	double seconds; /* since the beginning */
} tn_tune_state;

/** All zero: ten seconds, no progress. */
typedef struct tn_tune_options {
	double seconds; /* after which it ends; 0: 10 */
	bool same_bits; /* only schedules that keep all bits of the results */
	/* called again and again; false: end now, with what is found. NULL */
	bool (*progress)(void *arg, const tn_tune_state *s);
	void *arg;
} tn_tune_options;

/**
 * Search faster schedules, by measurement on these inputs.
 *
 * Starts from Tenon's own schedules. Each schedule that is tried is verified,
 * and its results are compared with those of Tenon's own: they must be the same
 * bits, or, where terms of a sum are added in another order, agree within
 * rounding. *out is a text for tn_program_set_schedule of another program from
 * the same text, with those kernels that got faster. The program itself stays
 * as it is. Inputs are as for tn_program_run; params are not written to.
 * errors  [tune.interp] the context is an interpreter   those of
 *         tn_program_compile and tn_program_run
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_tune(char **out, tn_program *p,
	const void *const *inputs, const tn_tune_options *o);

/**
 * Keep two equations in different kernels, to see what fusing them is worth.
 * first and then are names of tensors as TN_LEVEL_SYSTEM shows them: no kernel
 * will compute both, nor one inside the other. All else is fused as it
 * would be, and the reason between the two is "kept apart by request". Each
 * call adds a pair. Both NULL adds none.
 *
 * A program for which this was called has a C file for each kernel. So programs
 * that differ in a few kernels find the others in the cache.
 * Comes before the first call that compiles or explains the program.
 * errors  [groups.late] it is compiled already   [groups.pairs] more than 32
 *         then, by tn_program_compile: [groups.name] no equation makes it
 *         [groups.pair] one equation makes both
 * owner   names are copied
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_set_apart(
	tn_program *p, const char *first, const char *then);

/**
 * Run it: inputs[i] and outputs[i] are dense, row-major arrays of the sizes
 * that tn_program_input and tn_program_output tell.
 *
 * Every array is aligned to its element. After the first run nothing is
 * allocated. The same bits for any number of threads.
 * errors  [program.overlap] an output overlaps another array; nothing is written
 *         [index.range] an index read from data is outside its tensor; the
 *         outputs are then not to be used
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_run(
	tn_program *p, const void *const *inputs, void *const *outputs);

/** The levels between text and machine code. */
typedef enum tn_level {
	TN_LEVEL_PROGRAM, /* named operations; can be parsed back */
	TN_LEVEL_SYSTEM,  /* index equations; can be parsed back */
	TN_LEVEL_GROUPS,  /* which equations share a kernel, and why not */
	TN_LEVEL_LOOPS,	  /* MapExpr: a tree of loops and statements */
	TN_LEVEL_SCHEDULE, /* the same made fast; can be pinned */
	TN_LEVEL_KERN,	  /* kernels after all decisions; can be pinned */
	TN_LEVEL_PLAN,	  /* calls and the places of buffers */
	TN_LEVEL_C	  /* what the C compiler gets */
} tn_level;

enum {
	TN_EXPLAIN_INDEXES = 1, /* loops: the solved index of every argument */
	TN_EXPLAIN_JSON = 2,	/* groups, plan; others as one JSON string */
	/* schedule: comments that say what each pass decided, and why; with
	 * TN_EXPLAIN_JSON a list of them for each kernel instead of the text */
	TN_EXPLAIN_DECISIONS = 4
};

/**
 * One level of a program as text, a terminated string in *out.
 *
 * Needs no C compiler.
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_explain(
	char **out, tn_program *p, tn_level level, uint32_t flags);

/** The table of operations: one line each, or as Markdown. See above. */
TN_API TN_MUST_USE tn_status tn_ops_text(
	char **out, tn_context *c, bool markdown);

/**
 * The gradient of an operation: for each operand the row in the notation that
 * leads from cotangents of the results to its own, or the reason why it has
 * none. The rows can stand in .tn programs.
 *
 * call    "softmax(f32[2,3], axis=1)": on these types; "softmax": on those of
 *         the first call in rows, else on small ones that fit
 * rows    a program whose `op` rows are meant, too; NULL: the built-in ones and
 *         those of tn_op_define
 * json    {"op", "gradient", "operands": [{"name", "type", "row" or "why"}],
 *         "results"}
 * errors  [tn.*] the call   [ROW.LETTER] types that do not fit
 *         [adjoint.shapes] none were given and none were found
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_ops_adjoint(char **out, tn_context *c,
	const char *call, const tn_program *rows, bool json);

/** NULL is fine. */
TN_API void tn_text_free(char *text);

/* ---- arrays ------------------------------------------------------------ */

/** A dense, row-major array in memory. */
typedef struct tn_array {
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
	int64_t n_elems;
	size_t n_bytes;
	void *data; /* aligned to 64 */
} tn_array;

/**
 * Read a NumPy file.
 *
 * errors  [npy.*] unreadable, truncated, or a dtype that Tenon lacks
 * owner   *out is the caller's: tn_array_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_npy_read(
	tn_array **out, tn_context *c, const char *path);
TN_API void tn_array_free(tn_array *a);

/** Write one; the file appears whole or not at all. [npy.write] */
TN_API TN_MUST_USE tn_status tn_npy_write(tn_context *c, const char *path,
	tn_dtype dtype, int32_t rank, const int64_t *shape, const void *data);

/** The arrays of a .npz file. */
typedef struct tn_npz tn_npz;

/**
 * Read NumPy's archive of arrays, compressed or not.
 *
 * errors  [npz.*] unreadable or damaged   [npy.*] an array in it
 *         [npz.overlap] arrays that share bytes of the file   [npz.size] the
 *         compressed ones make more than 4 GiB, and than 64 times the file
 * owner   *out is the caller's: tn_npz_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_npz_read(
	tn_npz **out, tn_context *c, const char *path);
TN_API void tn_npz_free(tn_npz *z);
TN_API int32_t tn_npz_n(const tn_npz *z);
/** NULL when i is not a number of one. Borrowed. */
TN_API const char *tn_npz_name(const tn_npz *z, int32_t i);
TN_API const tn_array *tn_npz_array(const tn_npz *z, int32_t i);

/**
 * Run a program with arrays that say their shapes: in one for each input, out
 * one for each output. A program of tn_onnx_stage takes any shapes that its
 * model takes; others take their own.
 *
 * errors  [program.input] an array does not fit   [onnx.*] what the model has
 *         against these shapes; and those of tn_program_run
 * owner   out[i] are the caller's: tn_array_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_run_arrays(
	tn_program *p, const tn_array *in, tn_array **out);

#include "tenon_onnx.h"

/* ---- tensors ----------------------------------------------------------- */

/**
 * A handle on data: a storage, seen through a view. Calls on tensors record
 * and return at once; a value is computed when somebody looks at it.
 *
 * Errors are sticky: an operand that is invalid, or a call that fails, gives
 * an invalid tensor; the context keeps the first diagnosis, with the file and
 * line of the call, until tn_context_clear. So one tn_context_status at the
 * end is enough. A call whose operands name no context, since there are none or
 * all are NULL, fails in the one that its thread used last.
 *
 * owner   a tensor belongs to the scope that was innermost when it was made,
 *         and ends with it; outside of scopes, with its context
 */
typedef struct tn_tensor tn_tensor;

/** TN_OK, or what the first call failed with since the last clear. */
TN_API tn_status tn_context_status(const tn_context *c);
/** Forgets what failed. */
TN_API void tn_context_clear(tn_context *c);
/**
 * For what is built on Tenon: fails as a call on tensors does. Returns status,
 * which is negative; rule is a stable id, the rest one sentence for printf.
 */
#define tn_fail(...) tn_at_fail(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_fail(const char *file, int32_t line, tn_context *c,
	tn_status status, const char *rule, const char *format, ...)
	TN_PRINTF(6, 7);

/** Tensors made from here on end with the tn_scope_leave that belongs to it. */
TN_API tn_status tn_scope_enter(tn_context *c);
/** [tensor.scope] when none is open. */
TN_API tn_status tn_scope_leave(tn_context *c);
/** Moves x to the scope around the innermost one, not out of a body; returns x. */
TN_API tn_tensor *tn_keep(tn_tensor *x);
/** Ends x now. NULL and invalid tensors are fine. */
TN_API void tn_drop(tn_tensor *x);

/**
 * What is written from here to tn_step_leave belongs together: when a value that one
 * of these writes depends on cannot be computed, or a call in between fails and is not
 * cleared, all that have not run are undone: tensors are what they were before. Without
 * it only writes that depend on the value are undone. May be nested: the outermost one
 * counts. tn_optimizer_step is one by itself, and so is each call of a compiled
 * function (docs/tensors.md, "After an error").
 */
TN_API tn_status tn_step_enter(tn_context *c);
/** [step.scope] when none is open. */
TN_API tn_status tn_step_leave(tn_context *c);

/**
 * A tensor with the elements of a dense, row-major array; NULL: zeros.
 *
 * shape   rank extents, each >= 0; rank 0 is a scalar
 * errors  [tensor.shape] rank or extents beyond what is possible
 * since   0.1
 */
#define tn_tensor_new(...) tn_at_tensor_new(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tensor_new(const char *file, int32_t line,
	tn_context *c, tn_dtype dtype, int32_t rank, const int64_t *shape,
	const void *data);

/** A tensor of rank 0. */
#define tn_scalar(...) tn_at_scalar(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scalar(const char *file, int32_t line, tn_context *c,
	tn_dtype dtype, double value);

/**
 * The same as tn_tensor_new, outside of all scopes and with a name: what is
 * trained. Its memory stays in one place however often it is written.
 */
#define tn_parameter(...) tn_at_parameter(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_parameter(const char *file, int32_t line,
	tn_context *c, const char *name, tn_dtype dtype, int32_t rank,
	const int64_t *shape, const void *data);

/**
 * False for NULL, what was dropped, whose scope was left or whose context has
 * ended, whatever was made since, and what a failed call returned.
 */
TN_API bool tn_is_valid(const tn_tensor *x);
TN_API tn_dtype tn_tensor_dtype(const tn_tensor *x);
TN_API int32_t tn_tensor_rank(const tn_tensor *x);
/** Extents: valid as long as x is. NULL when x is invalid. */
TN_API const int64_t *tn_tensor_shape(const tn_tensor *x);
TN_API int64_t tn_tensor_n_elems(const tn_tensor *x);
/** NULL for NULL. */
TN_API tn_context *tn_tensor_context(const tn_tensor *x);
/** NULL when it has none. */
TN_API const char *tn_tensor_name(const tn_tensor *x);

/**
 * Computes x and copies its elements, dense and row-major.
 *
 * n_bytes must be the size of all elements [tensor.size].
 */
#define tn_read(...) tn_at_read(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_read(const char *file, int32_t line, tn_tensor *x,
	void *data, size_t n_bytes);

/** The only element of x as a double; NaN when something failed. */
#define tn_item(...) tn_at_item(__FILE__, __LINE__, __VA_ARGS__)
TN_API double tn_at_item(const char *file, int32_t line, tn_tensor *x);

/** Computes n tensors in one go. */
#define tn_eval(...) tn_at_eval(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_eval(
	const char *file, int32_t line, tn_tensor *const *x, int32_t n);

/**
 * Writes v to the elements of x: every view of the same storage shows them.
 * Values that were read from x before do not change.
 *
 * errors  [tensor.write] another shape or dtype   [write.repeats] a view in
 *         which one element stands for several places
 */
#define tn_copy_(...) tn_at_copy_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_copy_(
	const char *file, int32_t line, tn_tensor *x, tn_tensor *v);

/** Every element of x becomes value, in x's dtype. */
#define tn_fill_(...) tn_at_fill_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_fill_(
	const char *file, int32_t line, tn_tensor *x, double value);

/**
 * Every element of x from a dense, row-major array: the opposite of tn_read,
 * without a gradient. Memory that nobody else asks for is filled at once, and
 * nothing is compiled for it; anything else becomes a write.
 *
 * n_bytes must be the size of all elements [tensor.size].
 */
#define tn_set_data(...) tn_at_set_data(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_set_data(const char *file, int32_t line, tn_tensor *x,
	const void *data, size_t n_bytes);

/** x as text, such as "f32[2] [1, 2]"; the middle of large ones is left out. */
#define tn_text(...) tn_at_text(__FILE__, __LINE__, __VA_ARGS__)
TN_API TN_MUST_USE tn_status tn_at_text(
	const char *file, int32_t line, tn_tensor *x, char **out);

/** Keys of random rows follow from the seed (0) and their number. */
TN_API void tn_set_seed(tn_context *c, uint64_t seed);
/** The next key: i64, rank 0, for tn_uniform, tn_normal, tn_dropout ... */
#define tn_random_key(...) tn_at_random_key(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_random_key(
	const char *file, int32_t line, tn_context *c);

/**
 * Records a program as calls on tensors, like code that calls them, so it has
 * gradients. in: the program's inputs, then its parameters; out: its outputs.
 *
 *     tn_program *p;
 *     tn_program_load(&p, c, "net.tn");
 *     tn_apply(p, 2, (tn_tensor *[]){x, w}, 1, &y);
 *     tn_backward(tn_cross_entropy(y, labels), NULL);
 *
 * errors  [apply.count] [apply.input] other numbers, another type
 *         [apply.row] a row of its own has the name of another in the
 *         context
 * since   0.1
 */
#define tn_apply(...) tn_at_apply(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_apply(const char *file, int32_t line, tn_program *p,
	int32_t n_in, tn_tensor *const *in, int32_t n_out, tn_tensor **out);

/* Structures of the memory layout that DLPack defines, under our names. */
typedef struct tn_dl_device {
	int32_t type; /* 1: CPU */
	int32_t id;
} tn_dl_device;
typedef struct tn_dl_dtype {
	uint8_t code, bits;
	uint16_t lanes;
} tn_dl_dtype;
typedef struct tn_dl_tensor {
	void *data;
	tn_dl_device device;
	int32_t n_axes;
	tn_dl_dtype dtype;
	int64_t *shape;
	int64_t *strides; /* in elements; NULL: dense, row-major */
	uint64_t byte_offset;
} tn_dl_tensor;
typedef struct tn_dl_managed { /* DLManagedTensor */
	tn_dl_tensor tensor;
	void *manager;
	void (*deleter)(struct tn_dl_managed *self);
} tn_dl_managed;

/**
 * A tensor on memory of another library: a DLManagedTensor. Dense, row-major
 * memory is taken without a copy and written in place; what has other strides
 * is copied. from's deleter is called when it is not needed any more or c is
 * freed, and not when this fails.
 * errors  [dlpack.device] not the CPU's, nor c's   [dlpack.dtype] [dlpack.shape]
 */
#define tn_dlpack_import(...)                                                  \
	tn_at_dlpack_import(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_dlpack_import(
	const char *file, int32_t line, tn_context *c, tn_dl_managed *from);

/**
 * x, computed, for another library: its own memory when x is a whole storage,
 * else a copy. Writes to x go to the same memory from then on. [dlpack.dtype] x
 * has elements of fewer than 8 bits, which DLPack packs.
 * owner   *out is the receiver's: its deleter, before the context is freed
 */
#define tn_dlpack_export(...)                                                  \
	tn_at_dlpack_export(__FILE__, __LINE__, __VA_ARGS__)
TN_API TN_MUST_USE tn_status tn_at_dlpack_export(const char *file, int32_t line,
	tn_tensor *x, tn_dl_managed **out);

/* ---- gradients --------------------------------------------------------- */

/**
 * Gradients with respect to x are collected from now on. A new float parameter
 * has this property, unless it is made after tn_no_grad_enter.
 * [grad.dtype] x is not of a float dtype.
 */
#define tn_requires_grad(...)                                                  \
	tn_at_requires_grad(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_requires_grad(
	const char *file, int32_t line, tn_tensor *x);

/**
 * Adds the gradient of x to the gradient of every tensor that requires one and
 * that x was computed from. It only records: nothing is computed until it is read.
 *
 * seed    cotangent of x, of its shape; NULL: 1, when x is a single number
 * tn_backward frees the values that were held for it; tn_backward_keep does not,
 * and another backward may follow it through the same values
 * errors  [grad.seed] none given, or of another shape   [grad.untracked] x
 *         depends on nothing that asks   [grad.freed] an earlier tn_backward
 *         has let go
 */
#define tn_backward(...) tn_at_backward(__FILE__, __LINE__, __VA_ARGS__, false)
#define tn_backward_keep(...)                                                  \
	tn_at_backward(__FILE__, __LINE__, __VA_ARGS__, true)
TN_API tn_status tn_at_backward(const char *file, int32_t line, tn_tensor *x,
	tn_tensor *seed, bool keep);

/**
 * Gradients of the sum of out[i] * seeds[i] with respect to in[k], in grads[k];
 * zeros where nothing leads there. They have gradients themselves. seeds NULL:
 * every out is a single number.
 * errors  as tn_backward; and [grad.second], here and there, for the gradient
 *         of a gradient through a condition, a loop or a function in C
 */
#define tn_grad(...) tn_at_grad(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_grad(const char *file, int32_t line, int32_t n_out,
	tn_tensor *const *out, tn_tensor *const *seeds, int32_t n_in,
	tn_tensor *const *in, tn_tensor **grads);

/** What backward has collected for x, seen as x is; NULL: nothing yet. */
TN_API tn_tensor *tn_gradient(tn_tensor *x);
/** Forgets it. */
TN_API void tn_zero_grad(tn_tensor *x);

/** The elements of x as they are, without its history: its own from then on. */
#define tn_detach(...) tn_at_detach(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_detach(const char *file, int32_t line, tn_tensor *x);

/** Until the leave that belongs to it, calls have no gradient. */
TN_API tn_status tn_no_grad_enter(tn_context *c);
TN_API tn_status tn_no_grad_leave(tn_context *c);

#include "tenon_train.h"
#include "tenon_function.h"

/* ---- operations -------------------------------------------------------- */

/**
 * Defines an operation by its row in the notation, docs/notation.md. It is
 * called by tn_call.
 */
#define tn_op_define(...) tn_at_op_define(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_op_define(
	const char *file, int32_t line, tn_context *c, const char *row);

/** An attribute of a call by name. */
typedef struct tn_attr {
	const char *name;
	enum { TN_ATTR_INT, TN_ATTR_REAL, TN_ATTR_INTS, TN_ATTR_DTYPE,
		TN_ATTR_STRING } kind;
	int64_t i;
	double f;
	const int64_t *ints;
	int32_t n_ints;
	tn_dtype dtype;
	const char *string;
} tn_attr;

/**
 * A call of any operation by name; out[] gets its n_out results.
 *
 * errors  as the row's own function; [tensor.results] n_out is too small
 */
#define tn_call(...) tn_at_call(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_call(const char *file, int32_t line, tn_context *c,
	const char *op, int32_t n_in, tn_tensor *const *in, int32_t n_attrs,
	const tn_attr *attrs, int32_t n_out, tn_tensor **out);

#include "tenon_ops.h"
#include "tenon_nn.h"
#include "tenon_shard.h"
#include "tenon_device.h"
#include "tenon_export.h"

/* ---- elements ---------------------------------------------------------- */
/** Element i of an array, and back; integers and bool by the second pair. */
TN_API double tn_get_f64(tn_dtype t, const void *data, int64_t i);
TN_API int64_t tn_get_i64(tn_dtype t, const void *data, int64_t i);
TN_API void tn_set_f64(tn_dtype t, void *data, int64_t i, double v);
TN_API void tn_set_i64(tn_dtype t, void *data, int64_t i, int64_t v);

/**
 * Fill an array with random values, the same for the same seed anywhere:
 * floats in [-1, 1), integers in lo <= v < hi, bools of both kinds.
 */
TN_API void tn_fill_random(tn_dtype t, void *data, int64_t n_elems,
	uint64_t seed, int64_t lo, int64_t hi);

#ifdef __cplusplus
}
#endif
#endif
