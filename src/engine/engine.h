/*
 * engine.h: interface of engine/: runs the passes on a program.
 *
 * A compilation holds one program at every level that it has reached; all of
 * that is in its arena.
 *
 *     compilation *c = compile_new(a, program, &options);
 *     compile_to(c, TN_LEVEL_C);         sets c->plan
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "fuse/fuse.h"
#include "kern/kern.h"
#include "layout/layout.h"
#include "plan/plan.h"
#include "program/program.h"
#include "schedule/schedule.h"
#include "target/c/c.h"

/* What TENON_DUMP says to print while programs are compiled. */
typedef struct compile_dump {
	uint64_t passes; /* bit i: of compile_pass_name(i) */
	const char *dir; /* a file for each text; NULL: standard error */
} compile_dump;

/* A text that is used instead of the result of a pass; at NULL: none. */
typedef struct compile_text {
	const char *at, *file;
	size_t n;
	const char *body; /* of which loop, "s" or "s/h" in it; NULL: of none */
} compile_text;

/* Names of two tensors that no kernel may compute both. */
typedef struct compile_pair {
	const char *first, *then;
} compile_pair;

/* Placements of the tensors of a program that several processes run. */
typedef struct compile_layout {
	const shard_mesh *mesh;
	int64_t rank; /* of this process */
	const bool *keep; /* by output of the system; NULL: all */
	void (*place)(void *arg, shard_plan *p); /* fixes the given placements */
	void *arg;
} compile_layout;

struct compilation;
typedef struct compile_options {
	bool no_fusion, verify;
	bool verify_kern; /* kernels, too */
	bool tf32; /* factors in f32 may be rounded: system/tf32.c */
	const machine *machine; /* NULL: none; only groups can be made */
	const c_target *target; /* NULL: c_gnu */
	const machine *pricing; /* for costs of groups; NULL: machine->priced_as */
	bool in_loop; /* the program is the body of a loop */
	plan_options plan;
	settle_options settle; /* for tests */
	compile_text schedule, kern; /* pinned by the user */
	/* The schedule is for one of several programs: a program without its
	 * kernels is compiled as usual, and the one with them is counted here.
	 * NULL: it is for this program. */
	int64_t *n_pinned;
	int32_t n_apart; /* at most FUSE_MAX_PAIRS */
	const compile_pair *apart;
	void (*log)(void *arg, const char *line); /* a line per pass, or NULL */
	void *log_arg;
	compile_dump dump;
	const compile_layout *layout; /* NULL: a single process */
	/* For tests: bit i leaves the step loop_pass_name(i) of schedules out. */
	uint32_t without;
	/* For tests: called behind each pass, before it is verified, with k NULL;
	 * behind step i of k's schedule with COMPILE_N_PASSES + i. NULL: not. */
	void (*after)(void *arg, struct compilation *c, int32_t pass,
		loop_kernel *k);
	void *after_arg;
} compile_options;

enum { COMPILE_N_PASSES = 16 };
/* The bits of all passes: what TENON_DUMP=all prints. Behind them are those of
 * the steps of a schedule (loop_pass_name). */
#define COMPILE_DUMP_ALL ((UINT64_C(1) << COMPILE_N_PASSES) - 1)

typedef struct compilation {
	arena *a;
	compile_options o;
	int32_t n_done; /* number of passes that ran */
	int64_t number; /* in names of dumps; 0: not given yet */
	ix *x;
	ir_program *program;
	ir_system *system;
	shard_program *local; /* with a layout: the last result */
	struct compilation **phase; /* by phase of local */
	fuse_settled *settled;
	fuse_plan *groups;
	loop_kernel **loops;	     /* by kernel of groups; NULL for opaque ones */
	kern_kernel **kernels;	     /* by kernel, likewise */
	arena *loop_arena;	     /* of the loops, schedules included */
	arena *kern_arena;	     /* of the kernels */
	const c_kernel **code;	     /* by kernel, likewise */
	plan *plan;
	/* bodies of loops that were asked for, by loop */
	VEC(const ir_loop *) loop;
	VEC(struct compilation *) body;
	str *after; /* by pass of schedules: all kernels behind it, for dumps */
	double ms[COMPILE_N_PASSES]; /* time of each pass */
} compilation;

/* If machine is NULL, set o.machine before schedules are made. */
compile_options compile_options_default(const machine *m);

compilation *compile_new(
	arena *a, ir_program *program, const compile_options *o);

/* The same for equations; a is the arena of s, or a child of it. */
compilation *compile_new_system(
	arena *a, ir_system *s, const compile_options *o);

/* The same groups once more, with other schedules: c is grouped already. Both
 * share the system, to which schedules add tensors: see ir_trial. */
compilation *compile_again(
	arena *a, const compilation *c, const compile_options *o);

/* The body of a loop of the program, compiled separately, with its parts of the
 * pinned texts of c: see engine/text.c. */
compilation *compile_body(compilation *c, const ir_loop *l);

/* Frees kernels and their loops, most of the memory, after the plan is made: it runs
 * as before, but has no levels schedule and kern to print any more. */
void compile_drop_kernels(compilation *c);

/* Runs the passes that a level needs and that have not run yet. A compilation
 * with a layout ends at TN_LEVEL_SYSTEM: the later levels belong to its phases. */
void compile_to(compilation *c, tn_level level);

/* The name of pass i; NULL after the last. */
const char *compile_pass_name(int32_t i);
/* Time of the passes that this level needs and no level before it does. */
double compile_level_ms(const compilation *c, tn_level level);

/* The level that compile_to must reach before `level` can be explained. */
tn_level compile_level_needed(tn_level level);

/* Estimated seconds of kernel k on so many threads; threads 0: as many as its machine
 * has. The result is 0 for an opaque kernel. Needs the schedules. */
double compile_predicted(const compilation *c, int32_t k, int32_t threads);
/* .. and the largest part of it, such as "products in tiles". */
const char *compile_term(const compilation *c, int32_t k);

/* One level as text; runs passes as needed. flags: TN_EXPLAIN_... */
void compile_explain(
	str *out, compilation *c, tn_level level, uint32_t flags);

/*
 * For each tensor t whose values are used as indices: the values that all these
 * reads accept, lo[t] <= v < hi[t]. Both are 0 for other tensors.
 */
void compile_index_ranges(ir_system *s, int64_t *lo, int64_t *hi);

/* ---- dumps (dump.c) ---- */

/* Reads the environment. Throws [context.dump] if a pass has an unknown name or
 * the folder cannot be made. */
compile_dump compile_dump_read(arena *a);

/* The table of operations as text (ops_text.c). */
void compile_ops_text(str *out, ir_table *t, bool markdown);

/* milliseconds on a monotonic clock */
double compile_clock_ms(void);

#endif
