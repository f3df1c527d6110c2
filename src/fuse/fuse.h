/*
 * fuse.h: interface of fuse/: decides which equations share a kernel, and builds
 * its loop tree.
 *
 * Consumes a system in pull form; produces kernels in topological order, each
 * a set of equations with a loop tree, and a reason for every edge that was
 * not fused. docs/fusion.md describes the algorithm and why it is sound.
 *
 *   t = exp(x); s = sum(t, 1); o = t / s     ->   one kernel
 *   for i { init s; for j { t; acc s }; for j { o } }
 */
#ifndef FUSE_H
#define FUSE_H

#include "settle/settle.h"
#include "target/machine.h"

typedef enum fuse_node_kind { FUSE_LOOP, FUSE_INIT, FUSE_STMT } fuse_node_kind;

typedef struct fuse_node fuse_node;
struct fuse_node {
	fuse_node_kind kind;
	int32_t var; /* LOOP; several loops may walk the same var */
	int32_t eqn; /* INIT, STMT: number in the kernel */
	int32_t n_child;
	fuse_node **child;
};

/* A loop variable: one class of digits. */
typedef struct fuse_var {
	int64_t extent;
	axis_kind kind; /* P: parallel in all equations below; R: reduced in some; S: scan */
} fuse_var;

typedef struct fuse_eqn {
	sys_eqn e;	/* after substitution and coalescing; its id is that in the system */
	int32_t source; /* the equation of the system that it came from */
	/* each axis of e as a form over the kernel's vars: the sum of var * lo */
	const ix_form *const *axis_at;
	/*
	 * The element of its results that INIT clears, over the vars. In pull
	 * form STMT computes the same element. In push form INIT walks the whole
	 * result with separate vars, and STMT adds to element e.push.
	 */
	const ix_form *out_at;
	bool recomputed; /* its value is also computed elsewhere */
	bool tail; /* runs once, after all equations outside the tail are complete */
} fuse_eqn;

/* A tensor that never leaves the kernel. */
typedef struct fuse_buf {
	int32_t tensor;
	const fuse_node *scope; /* each iteration of this loop has its own; NULL: one for the kernel */
	int32_t n_vars;		/* subscripts: the vars of its producer inside scope, slowest first */
	const int32_t *var;
	int64_t elems; /* product of their extents; 1: a register */
} fuse_buf;

typedef struct fuse_kernel {
	int32_t id;
	const char *name;  /* fn_add_0_reduce_sum_1 */
	int32_t n_eqns;
	fuse_eqn *eqn;	   /* topological order */
	int32_t n_vars;
	fuse_var *var;
	int64_t *var_extent; /* extents of var[], for an ix_box */
	int32_t n_roots;
	fuse_node **root;  /* the outermost nodes, in order */
	int32_t n_shared;  /* vars 0 .. n_shared-1 are P(G): loops around the whole kernel */
	int32_t n_bufs;
	fuse_buf *buf;
	int32_t n_inputs, *input;   /* tensors read from memory, order of first use */
	int32_t n_outputs, *output; /* tensors written to memory */
	int32_t anchor;	   /* equation with the largest box; its index determines all others */
	bool opaque;	   /* one opaque equation, no tree */
	bool serial;	   /* P(G) is empty: small loop nests one after another */
	bool has_tail;	   /* P(G) is empty only because of a small tail: see fuse_eqn */
	int32_t batch;	   /* kernels with the same batch >= 0 are independent: one launch */
	double seconds;	   /* by the cost model */
} fuse_kernel;

typedef enum fuse_why {
	FUSE_WHY_SEVERAL,    /* two reads need different iterations */
	FUSE_WHY_COMPLETION, /* the reader needs the final value */
	FUSE_WHY_FREE,	     /* all iterations read the same element */
	FUSE_WHY_SHIFT,
	FUSE_WHY_REVERSED,
	FUSE_WHY_MISALIGNED, /* no loops of the two run in step */
	FUSE_WHY_OPAQUE,     /* index read from data, or an opaque row */
	FUSE_WHY_CYCLE,
	FUSE_WHY_OVERWRITE,
	FUSE_WHY_COST,
	FUSE_WHY_POLICY,
	FUSE_WHY_APART,	     /* no read or overwrite connects their loops */
	FUSE_WHY_REQUEST     /* the caller requests separate kernels */
} fuse_why;
const char *fuse_why_name(fuse_why why);

/* Equation `reader` reads element `at`, over its axes, of a tensor that equation
 * `writer` computes or overwrites. Equations are those of the system. */
typedef struct fuse_site {
	int32_t writer, reader, tensor;
	const ix_form *at;
	bool is_write; /* writer overwrites it */
	bool in_init;  /* the read is in the reader's initial value */
} fuse_site;

/* The read at which a loop (a digit of an equation) cannot be shared further. */
typedef struct fuse_end {
	fuse_why why;
	fuse_site read, other; /* other: for SEVERAL; its reader is -1 if unused */
	int32_t eqn; /* the equation whose digit ends there: writer or reader */
	int32_t axis;
	int64_t lo, hi;
	/* the other equation has such a loop, but it is cut by other members */
	bool is_cut;
	bool is_unproved; /* rounded quotients: a digit may exist, but none was found */
} fuse_end;

typedef struct fuse_reason {
	/* equations of the system: consumer reads what producer computes, or
	 * overwrites what producer reads */
	int32_t producer, consumer;
	int32_t tensor;
	bool is_write; /* consumer overwrites the tensor */
	fuse_why why;
	const char *text; /* one sentence with the witness or the figures */
	/*
	 * The witness, except for cost, cycle, a full kernel and an opaque row:
	 * equations of the two kernels, connected by reads and overwrites, that
	 * share no loop; each digit of set[0] has an end. APART: two equations
	 * that no read or overwrite connects.
	 */
	int32_t n_set, *set;
	int32_t n_ends;
	fuse_end *end;
	/* CYCLE: path[2k + 1] needs path[2k]; path[2k + 2] is in its kernel */
	int32_t n_path, *path;
	double fused, apart; /* COST: seconds */
} fuse_reason;

/* Two equations of the system that one kernel computes, and of which one reads
 * what the other makes, or overwrites what it reads; or both read a tensor. */
typedef struct fuse_merge {
	int32_t kernel;	      /* id */
	int32_t first, then;  /* equations of the system */
	int32_t at[2];	      /* their numbers among all that the kernel computes */
} fuse_merge;

/* How often the partition analysed something that no memo knew: for tests. */
typedef struct fuse_work {
	int64_t n_judged; /* sets: their bound */
	int64_t n_priced; /* kernels: their schedule */
	int64_t n_shared; /* members of a set: the loops that they share */
} fuse_work;

typedef struct fuse_plan {
	ir_system *s;
	const machine *machine;
	VEC(fuse_kernel *) kernel; /* topological order */
	/* one per edge that crosses kernels, once fuse_explain was called */
	VEC(fuse_reason) reason;
	struct choice *unexplained; /* what fuse_explain asks; NULL: it has run */
	fuse_work work;
	VEC(fuse_merge) merge;	   /* one per edge inside of a kernel */
	/* alias[t]: for an output that no kernel computes, the tensor with the
	 * same elements in the same order; else -1. Schedules add tensors behind
	 * these n_alias */
	int32_t *alias, n_alias;
	/* equations that must run before a write, besides those that it reads */
	VEC(settle_wait) wait;
} fuse_plan;

/* The cost of a scheduled kernel, and the largest part of that cost. */
typedef struct fuse_price {
	double seconds;
	const char *term;
	double alone; /* seconds on one thread */
} fuse_price;
/* A function that schedules kernel k, which a set would become, and prices it:
 * at no less than a launch of the machine. */
typedef struct fuse_pricing {
	fuse_price (*fn)(void *arg, arena *a, const fuse_kernel *k);
	void *arg;
} fuse_pricing;

/* Equations of the system that no kernel may compute both. */
typedef struct fuse_pair {
	int32_t first, then;
} fuse_pair;
enum { FUSE_MAX_PAIRS = 32 };

typedef struct fuse_options {
	const fuse_pricing *price; /* NULL: only the bound of cost.c decides */
	bool no_fusion; /* every equation its own kernel: for tests and comparisons */
	uint32_t mutate; /* test build only: drops rule number n of docs/fusion.md; 0: none */
	settle_options settle; /* for tests */
	int32_t n_apart; /* at most FUSE_MAX_PAIRS */
	const fuse_pair *apart;
} fuse_options;

/*
 * Prepares a system for the partition: puts movements into their readers, drops
 * equations that nobody reads any more, settles writes in place (settle.h).
 * Reads o->mutate and o->settle.
 */
typedef struct fuse_state fuse_settled;
fuse_settled *fuse_settle(arena *a, ir_system *s, const fuse_options *o);
/* The equations in order, and for each write the readers that it waits for. */
void fuse_print_settled(str *out, const fuse_settled *f);

/* Call it once for each f; the plan is in the arena of f. m NULL: the first machine of
 * the table. */
fuse_plan *fuse_partition_settled(
	fuse_settled *f, const machine *m, const fuse_options *o);
/* Prepares and partitions. */
fuse_plan *fuse_partition(
	arena *a, ir_system *s, const machine *m, const fuse_options *o);
void fuse_verify(fuse_plan *p); /* throws TN_EINTERNAL */
/* Finds the reasons of a plan, once: most plans are never printed, and the proof
 * that a merge was impossible may take as long as all choices. */
void fuse_explain(fuse_plan *p);
/* Prints kernels, loop trees, buffers, then reasons, as text or JSON. */
void fuse_print(str *out, fuse_plan *p, bool json);

#endif
