/* local.h: what the files of export/ share. */
#ifndef EXPORT_LOCAL_H
#define EXPORT_LOCAL_H

#include "export/export.h"

enum { EXPORT_ALIGN = 64, EXPORT_HEADER = 64, EXPORT_VERSION = 2 };

typedef enum place_kind {
	AT_NOWHERE, /* no part uses it */
	AT_ARENA,   /* at byte `at` of the arena */
	AT_WEIGHTS, /* of the constants */
	AT_IO	    /* array number `at` of the caller, or of the loop */
} place_kind;

typedef struct place {
	place_kind kind;
	size_t at;
} place;

/* What runs, one part after the other; chunks of a part in any order. */
typedef enum part_kind {
	PART_PHASE,  /* of a launch */
	PART_ROUNDS, /* of a loop: a chunk is a round, in their order */
	PART_ENDED,  /* of a loop with a test: its results from its last round */
	PART_ROW,    /* of a launch of a row without equations */
	PART_SAVE,   /* keeps a param, which is restored if a later part fails */
	PART_COPY    /* copies a tensor to an output */
} part_kind;

typedef struct part {
	part_kind kind;
	int32_t step, launch, phase;
	int64_t n_chunks;
	bool serial; /* the calling thread runs all chunks, in their order */
	bool once;   /* of the body of a loop: in the first round only */
	bool fails;  /* it may find an index out of range */
	place from, to; /* SAVE, COPY */
	size_t bytes;
} part;

typedef enum cell_kind {
	CELL_PACKED = 1, /* a copy of a constant */
	CELL_KEPT = 2	 /* of what is the same in all rounds */
} cell_kind;

/* A launch: where its cells are, and which phases do not run each time. */
typedef struct xlaunch {
	place *cell;
	uint32_t packed, once; /* bits of phases */
	struct xplan *body;
	size_t *room[2]; /* by carried value of a loop: two places in the arena */
	size_t count; /* with a test: where the arena has the number of rounds */
	size_t row_room; /* of a row without equations: its place in the arena */
} xlaunch;

typedef struct xplan {
	const export_plan *e;
	const plan *p;
	int32_t variant; /* whose program it is, or a loop in it */
	int32_t number; /* among all plans */
	const void *const *data; /* by input */
	const bool *pinned;
	const bool *state; /* by input: kept from run to run, in the arena */
	const bool *same; /* by input: equal in all rounds; NULL: not a loop */
	place *input; /* where it is */
	int32_t *out_io; /* by output: its number among the arrays */
	xlaunch *launch;
	size_t base; /* of its tensors in the arena */
	VEC(part) part;
} xplan;

typedef struct constant {
	const void *data; /* NULL: made by a phase */
	void *made;	  /* then where that wrote it */
	size_t at, bytes;
} constant;

struct export_net {
	arena *a;
	const export_job *job;
	xplan *main; /* of the first variant */
	xplan **variant;
	VEC(xplan *) plan; /* the programs, and bodies of loops */
	VEC(constant) constant;
	size_t fixed_bytes; /* of the arena, without what each thread has */
	size_t local_bytes; /* of each thread */
	size_t weights_bytes; /* with the header; 0: there are none */
	VEC(export_piece) weights; /* each of a multiple of 64 bytes */
	uint64_t id; /* of the constants, and of what they were made for */
	const char *code; /* helpers and kernels */
	const char **libm; /* functions that these need, then NULL */
	/* arrays of the caller: inputs, then outputs */
	int32_t n_io, n_in;
	struct io {
		const char *ident; /* "in_x", "out_y", "io_w" */
		const sys_tensor *t;
		int32_t input, output; /* -1 */
		bool written;
	} *io;
	/* what is kept from run to run, at the front of the arena */
	int32_t n_state;
	struct state {
		const char *ident; /* "state_w" */
		const sys_tensor *t;
		int32_t input;
		size_t at, bytes;
		size_t first; /* byte of the constants where it begins; 0: zeros */
	} *state;
	size_t state_bytes;
	const export_test *test;
};

/* Of the arena and the constants. */
static inline int32_t export_align(const export_net *x)
{
	return x->job->plain ? 8 : EXPORT_ALIGN;
}

static inline size_t export_up(size_t n)
{
	return (n + EXPORT_ALIGN - 1) / EXPORT_ALIGN * EXPORT_ALIGN;
}

/* isa.c: what stands around the code of a variant, whose names end with that of its
 * instructions; which of them the processor has */
void export_isa_begin(str *out, const export_net *x, int32_t v, const char *code);
/* Functions of libm are declared once, for all variants: adds them to libm, and returns
 * the other lines. */
const char *export_isa_split(str *libm, const char *code);
void export_isa_end(str *out, const export_net *x, int32_t v, const char *code);
void export_isa_choice(str *out, const export_net *x);
void export_isa_sizes(str *out, const export_net *x);
void export_isa_functions(str *out, const export_net *x);
void export_isa_test(str *out, const export_net *x);
const char *export_machines(const export_net *x); /* "c/sse, c/avx2" */
/* "" or "_avx2": behind names of a variant */
const char *export_suffix(const export_net *x, int32_t v);

void export_place(export_net *x);
void export_pack(export_net *x);
place export_place_of(const xplan *n, int32_t tensor);
const char *export_addr(arena *a, place p);
/* The C of all parts of a variant: functions of loops, then run_part. */
void export_calls(str *out, const export_net *x, int32_t v);
/* rows.c: functions of rows without equations, the types of a call, and the bytes that
 * it works in */
void export_rows(str *out, export_net *x);
void export_row_types(const xplan *n, const plan_launch *l, ir_type *in,
	ir_type *out);
size_t export_row_room(arena *a, const xplan *n, const plan_launch *l);
const char *export_c_type(tn_dtype t);
const char *export_upper(arena *a, const char *s);
void export_header(str *out, const export_net *x);
void export_unit(str *out, export_net *x);
void export_test_text(str *out, const export_net *x);
/* words.c */
uint64_t export_hash(const void *data, size_t n);
const char *export_verb(const export_net *x); /* NAME_run or NAME_step */
/* state.c */
void export_state_sizes(str *out, const export_net *x, const char *upper);
void export_state_functions(str *out, const export_net *x);
void export_state_begin(str *out, const export_net *x);
void export_state_json(str *out, const export_net *x);
void export_state_test(str *out, const export_net *x);
void export_json(str *out, const export_net *x);
/* strings.c; nothing where there are none */
bool export_is_string(const export_net *x, const struct io *io);
void export_strings_sizes(str *out, const export_net *x, const char *upper);
void export_strings_functions(str *out, const export_net *x, const char *upper);
void export_strings_code(str *out, const export_net *x);
void export_strings_json(str *out, const export_net *x);
void export_strings_test(str *out, const export_net *x, const char *upper);
/* Calls add for each file of build systems. */
typedef void export_add(void *arg, const char *name, const str *text);
void export_build(const export_net *x, export_add *add, void *arg);
void export_threads_text(str *out, const export_net *x);

#endif
