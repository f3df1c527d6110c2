/*
 * export.h: interface of export/: a plan as files of C.
 *
 * Consumes a plan whose kernels were printed by c_apart, and the elements of the
 * inputs that are constant; produces the texts of the files, and one block of
 * constants, in which copies that kernels make of constant inputs are made already.
 * The C is that of the plan: its kernels, its launches in its order, its buffers
 * in one arena. It allocates nothing.
 *
 *     plan, weights  ->  net.c net.h net.weights net_test.c Makefile ..
 *
 *   place.c    where each tensor, cell of scratch and constant is
 *   pack.c     the constants
 *   calls.c    launches as C
 *   unit.c     NAME.c            header.c   NAME.h
 *   isa.c      kernels for several processors in one file
 *   state.c    what is kept from step to step
 *   test.c     NAME_test.c       build.c    files for make, CMake, pkg-config
 *   rows.c     functions of rows without equations
 *   words.c    types, names, templates
 *   json.c     NAME.json
 */
#ifndef EXPORT_H
#define EXPORT_H

#include "plan/plan.h"
#include "program/program.h"

typedef enum export_weights {
	EXPORT_ARRAY,  /* a C array in NAME_weights.c */
	EXPORT_FILE,   /* NAME.weights, which the program reads */
	EXPORT_INCBIN  /* NAME.weights, which an assembler includes */
} export_weights;

typedef enum export_threads {
	EXPORT_ALONE,
	EXPORT_CALLBACK, /* the host's job system */
	EXPORT_PTHREAD	 /* the same, with a pool in NAME_threads.c */
} export_threads;

/* Compiles a C text for this machine and finds its functions. */
typedef struct export_jit {
	void (*compile)(void *arg, const char *text);
	void (*find)(void *arg, const char *name, void *fn);
	void *arg;
} export_jit;

/* Inputs of a test and what comes of them; NULL: there is no test. */
typedef struct export_test {
	const void *const *in;	   /* by input that is not constant, before a run */
	const void *const *want;   /* by output with an array of its own */
	const void *const *after;  /* by input: params after the run, else NULL */
	const char *by;		   /* what computed them: "interpreter" */
	int32_t n_steps;	   /* with a state: runs, one after the other */
	/* the same from compiled kernels, by variant, whose bits are to be met */
	const struct export_bits {
		const void *const *out, *const *after;
		/* with a state: inputs after n_many runs */
		const void *const *later;
	} *bits;
	int32_t n_many; /* 0: there are none */
	int32_t fused; /* did they fuse a*b + c? -1: there are no such bits */
} export_test;

/* A plan, and the bodies of its loops. */
typedef struct export_plan {
	const plan *p;
	const struct export_plan *const *body; /* by launch; NULL: no loop */
} export_plan;

/* Instructions that kernels can be made for, so that one file has them for several
 * processors (isa.c). */
typedef struct export_isa {
	const char *name;    /* "avx2" */
	const char *machine; /* "c/avx2" */
	bool fused;
	const char *target; /* for compilers: "avx2,fma"; NULL: every processor */
	const char *const *has, *const *macros; /* what that means; NULL at the end */
} export_isa;
/* In rising order; NULL behind the last. */
const export_isa *export_isa_at(int32_t i);

typedef struct export_variant {
	const export_plan *plan;
	const char *machine;
	const export_isa *isa; /* NULL: there is one variant */
} export_variant;

/* Memory and work; memory_limit is told, and means nothing here. */
typedef struct export_size {
	int64_t memory_limit, arena_bytes, state_bytes, weights_bytes, flops, bytes;
} export_size;

/* A string of a model; a byte 0 follows it. */
typedef struct export_string {
	const char *at;
	size_t n_bytes;
} export_string;

typedef struct export_job {
	const char *name; /* letters, digits and _ */
	int32_t n_variants;
	const export_variant *variant; /* the first runs everywhere */
	const void *const *data; /* by input: its elements if they are constant */
	const bool *pinned;	 /* by input: one of the caller, which must be data */
	/* by input: data is what it begins with, and each run goes on from where
	 * the last one ended; NULL: there are none */
	const bool *state;
	export_weights weights;
	export_threads threads;
	int32_t vector_bytes; /* the greatest of the variants */
	bool fused; /* a*b + c, where the machine can */
	int64_t memory_limit; /* for NAME.json, with the sizes of other exports */
	int32_t n_others;
	const export_size *others;
	bool plain; /* C99 without extensions; kernels are of one lane */
	int32_t n_strings; /* 0: no tensor has strings; else they are numbers of these */
	const export_string *string;
	const bool *in_strings, *out_strings; /* by input, output: are its elements? */
	export_jit jit;
} export_job;

/* Constants may be gigabytes: they are written from where they are. */
typedef struct export_piece {
	const void *data;
	size_t n_bytes;
} export_piece;

typedef struct export_file {
	const char *name;
	int32_t n_pieces;
	const export_piece *piece; /* one after the other */
} export_file;

typedef struct export_files {
	int32_t n;
	export_file *at;
} export_files;

/*
 * Places everything, and makes the constants. Throws TN_EINVAL [export.written] for
 * a constant that the program writes.
 */
typedef struct export_net export_net;
export_net *export_new(arena *a, const export_job *job);
export_size export_size_of(const export_net *x);
/* All files; t may be NULL. */
export_files export_write(export_net *x, const export_test *t);

#endif
