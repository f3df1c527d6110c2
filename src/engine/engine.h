/*
 * engine.h: the door of engine/: the way of a program through all passes.
 *
 * A compilation holds one program at every level reached so far. What belongs
 * to it lives in its arena.
 *
 *     compilation *c = compile_new(a, program, &options);
 *     compile_to(c, TN_LEVEL_C);         c->plan is there now
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "fuse/fuse.h"
#include "kern/kern.h"
#include "plan/plan.h"
#include "program/program.h"
#include "schedule/schedule.h"
#include "target/c/c.h"

/* What TENON_DUMP wants to be printed while programs are compiled. */
typedef struct compile_dump {
	uint32_t passes; /* bit i: of compile_dump_name(i) */
	const char *dir; /* a file for each text; NULL: standard error */
} compile_dump;

/* A text that takes the place of what a pass would make; at NULL: none. */
typedef struct compile_text {
	const char *at, *file;
	size_t n;
} compile_text;

typedef struct compile_options {
	bool no_fusion, verify;
	const machine *machine; /* NULL: not known yet: groups only */
	const machine *pricing; /* of groups; NULL: machine->priced_as */
	plan_options plan;
	settle_options settle; /* for tests */
	compile_text schedule, kern; /* that are pinned */
	void (*log)(void *arg, const char *line); /* a line per pass, or NULL */
	void *log_arg;
	compile_dump dump;
} compile_options;

enum { COMPILE_N_PASSES = 6 };

typedef struct compilation {
	arena *a;
	compile_options o;
	int32_t n_done; /* passes */
	int64_t number; /* of it in dumps; 0: none yet */
	ix *x;
	ir_program *program;
	ir_system *system;
	fuse_plan *groups;
	loop_kernel **loops;	     /* by kernel of the groups; NULL: opaque */
	kern_kernel **kernels;	     /* the same */
	const c_kernel **code;	     /* the same */
	plan *plan;
	double ms[COMPILE_N_PASSES]; /* time of each pass */
} compilation;

/* machine NULL: o.machine is still to be set before schedules are made. */
compile_options compile_options_default(const machine *m);

compilation *compile_new(
	arena *a, ir_program *program, const compile_options *o);

/* The same for equations that are there already, in s's arena or above. */
compilation *compile_new_system(
	arena *a, ir_system *s, const compile_options *o);

/* Runs the passes that are missing for a level; what is there is kept. */
void compile_to(compilation *c, tn_level level);

/* The level up to which passes have to run to explain a level. */
tn_level compile_level_needed(tn_level level);

/* What kernel k was expected to take on so many threads; 0: opaque. Needs the
 * schedules. */
double compile_predicted(const compilation *c, int32_t k, int32_t threads);

/* One level as text; runs passes as needed. flags: TN_EXPLAIN_... */
void compile_explain(
	str *out, compilation *c, tn_level level, uint32_t flags);

/*
 * What indices accept: for every tensor of the system lo[t] <= v < hi[t], the
 * bounds that all reads by its values share; 0, 0 when nothing is read so.
 */
void compile_index_ranges(ir_system *s, int64_t *lo, int64_t *hi);

/* ---- dumps (dump.c) ---- */

/* From the environment. Throws [context.dump]: a name that no pass has, a
 * folder that cannot be made. */
compile_dump compile_dump_read(arena *a);
/* "program", then the passes in their order; NULL behind the last. */
const char *compile_dump_name(int32_t i);
/* Prints what there is behind pass i, if that was asked for. */
void compile_dump_text(compilation *c, int32_t i,
	void (*print)(str *out, compilation *c));
/* The schedules of all kernels, for explain and dumps. */
void compile_print_schedule(str *out, compilation *c);
/* All kernels in kern, the same. */
void compile_print_kern(str *out, compilation *c);

/* The table of operations as text (ops_text.c). */
void compile_ops_text(str *out, ir_table *t, bool markdown);

/* milliseconds on a clock that only goes forward */
double compile_clock_ms(void);

#endif
