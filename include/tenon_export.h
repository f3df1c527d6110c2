/*
 * tenon_export.h: programs as plain C; part of tenon.h, which includes it.
 *
 *     tn_export_options o = TN_EXPORT_INIT;
 *     o.name = "mlp";
 *     tn_program_export_c(program, "mlp", &o);      // mlp/mlp.c, mlp/mlp.h ..
 */
#ifndef TENON_EXPORT_H
#define TENON_EXPORT_H

/* ---- export ------------------------------------------------------------ */

/** Where the constants of an exported program are. */
typedef enum tn_export_weights {
	TN_EXPORT_ARRAY,  /* a C array, in NAME_weights.c */
	TN_EXPORT_FILE,	  /* NAME.weights, which the caller reads */
	TN_EXPORT_INCBIN, /* NAME.weights, which the assembler includes */
	TN_EXPORT_AUTO	  /* an array up to 1 MB, else a file */
} tn_export_weights;

/** On which threads it can run. */
typedef enum tn_export_threads {
	TN_EXPORT_ALONE,    /* that of the caller */
	TN_EXPORT_CALLBACK, /* those of the caller's job system */
	TN_EXPORT_PTHREAD   /* the same, with a pool of POSIX threads beside it */
} tn_export_threads;

/** What computes the results that a test expects. */
typedef enum tn_export_by {
	TN_EXPORT_BY_INTERP,  /* the interpreter, which is slow */
	TN_EXPORT_BY_KERNELS, /* compiled kernels */
	TN_EXPORT_BY_WORK,    /* the interpreter up to 10^8 operations */
	TN_EXPORT_BY_NOTHING  /* there is no test */
} tn_export_by;

/** The C that it is. */
typedef enum tn_export_dialect {
	TN_EXPORT_GNU, /* with vectors and attributes of gcc and clang */
	TN_EXPORT_C99  /* without extensions: one lane, no_fma */
} tn_export_dialect;

/** What an export takes, without the code of its functions. */
typedef struct tn_export_size {
	int64_t memory_limit; /* that it was made with, as in tn_options */
	int64_t arena_bytes, state_bytes, weights_bytes;
	int64_t flops, bytes; /* done and moved by its kernels in one run */
} tn_export_size;

/** Choices for an export; start from TN_EXPORT_INIT. */
typedef struct tn_export_options {
	size_t n_bytes;	  /* sizeof(tn_export_options) of the caller */
	const char *name; /* of files and functions; NULL: "net" */
	tn_export_weights weights;
	tn_export_threads threads;
	/* arrays for all inputs of the program, of which a test is made; NULL:
	 * no test */
	const void *const *inputs;
	tn_export_by by;
	bool no_fma; /* a*b + c is rounded twice on every machine: the same bits
		      * on all that have the vectors, in hardware or not */
	tn_export_dialect dialect;
	bool small; /* plain loops of one lane: little code, slower */
	/* of tn_function_export_c: names of arguments and outputs, NULL: a0, a1 ..,
	 * y0, y1 ..; tensors from outside that are kept though the function only
	 * reads them, such as tn_optimizer_rate */
	const char *const *in_names, *const *out_names;
	int32_t n_kept;
	tn_tensor *const *kept;
	/* bits of integers that address elements: 64, or 32, which is refused where
	 * they do not suffice */
	int32_t int_size;
	/* NULL: kernels for the machine of the context; "sse,avx2,avx512": kernels
	 * for each of these, of which NAME_init chooses the last that there is */
	const char *isas;
	/* NAME.json tells what other exports of the same take */
	int32_t n_others;
	const tn_export_size *others;
	tn_export_size *size; /* set if it is not NULL */
} tn_export_options;

#define TN_EXPORT_INIT                                                         \
	{                                                                      \
		sizeof(tn_export_options), NULL, TN_EXPORT_AUTO,               \
			TN_EXPORT_ALONE, NULL, TN_EXPORT_BY_WORK, false,       \
			TN_EXPORT_GNU, false, NULL, NULL, 0, NULL, 64, NULL,   \
			0, NULL, NULL                                          \
	}

/**
 * Write a program as C, which needs no library: NAME.c with its kernels and their
 * calls, NAME.h, its constants, NAME_test.c, NAME.json with memory and work of each
 * kernel, and files for make, CMake and pkg-config. It is made for the machine of
 * the context, computes the same bits there, allocates nothing, and runs in one
 * arena whose size is a macro.
 *
 * dir: a folder, which is made if it is not there; NULL: nothing is written, for
 * options.size. options NULL: TN_EXPORT_INIT.
 * errors  [export.options] options of another version, a name that is not one
 *         of C, or choices that exclude each other   [export.indices] int_size 32
 *         for tensors that need 64
 *         [export.written] a constant that the program writes
 *         [export.device] the context's device is not the CPU
 *         [onnx.staged] shapes depend on data   [export.write] a file cannot be
 *         written
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_export_c(
	tn_program *p, const char *dir, const tn_export_options *options);

/**
 * The same for one call of a compiled function with arguments like in[]: a step of
 * training, above all. The call is not made. What the function writes, parameters,
 * moments, counts, is a state that the C keeps from NAME_step to NAME_step, with
 * NAME_save and NAME_load; it begins with the present elements. Other tensors
 * from outside are constants. It is the program that an evaluation of the call
 * makes, and has its bits.
 *
 * in: arguments; their elements are those of the test. options.inputs is not used.
 * errors  those of tn_program_export_c, and [export.region] a function in C, or a
 *         loop that cannot be one   [export.gradient] it leaves gradients, or adds to
 *         some   [export.overlap] arguments share memory that is written
 *         [export.shard] tensors on several processes   [tensor.handle]
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_function_export_c(tn_function *f,
	tn_tensor *const *in, const char *dir,
	const tn_export_options *options);

#endif
