/*
 * inner.h: private to fuse/: what its files share.
 *
 *   prepare.c    views substituted, units made, writes settled
 *   analyse.c    digits refined until the cuts of readers and producers agree
 *   classes.c    digits joined to classes; P(G)
 *   tree.c       the loop tree of a set
 *   buffer.c     which tensors stay inside, where they live
 *   cost.c       seconds of a set, as a bound
 *   ask.c        .. as the kernel that it would become
 *   tail.c       what runs once behind the loops of a set
 *   partition.c  which sets: greedy choice
 *   order.c      the order of kernels, kept up while they grow
 *   reason.c     why an edge was not fused
 *   conflict.c   which equations share no loop, and where each loop ends
 *   finish.c     sets as kernels; batches
 */
#ifndef FUSE_INNER_H
#define FUSE_INNER_H

#include "eqn/eqn.h"
#include "fuse/fuse.h"
#include "settle/settle.h"

/* Rules of docs/fusion.md that the test build can drop. */
enum fuse_rule {
	FUSE_RULE_SHARE = 1, /* members share a loop, or are small */
	FUSE_RULE_READS,     /* every read of every edge is checked */
	FUSE_RULE_ORDER,     /* the order of kernels has no cycle */
	FUSE_RULE_WRITES,    /* a write is an edge to the readers of what it destroys */
	FUSE_RULE_OUTER,     /* inner levels keep what outer loops fixed */
	FUSE_RULE_STATE	     /* the state of a scan lives outside its loop */
};
#ifdef FUSE_MUTATE
#define rule_dropped(f, n) ((f)->mutate == (uint32_t)(n))
#else
#define rule_dropped(f, n) ((void)(f), false)
#endif

enum {
	FUSE_MAX_NEST = 200,	   /* loops and groups around a statement */
	FUSE_MAX_VARS = IX_MAX_AXES, /* loop variables of a kernel */
	FUSE_MAX_FLOORS = 6, /* within each other, of what is put into a reader */
	FUSE_FEW_VARS = 40 /* digits that no loop shares, of a set whose loops
			    * need not be counted */
};

/* A digit of a member; var: the loop that walks it, -1 none yet. */
typedef struct part_digit {
	eqn_digit d;
	int32_t var;
} part_digit;

typedef VEC(part_digit) part_digits;

typedef struct part_member {
	const eqn_unit *u; /* NULL: a tensor from outside, as one axis */
	int32_t number;	   /* in the whole set: of the equation in its kernel */
	part_digits digit; /* by axis, then lo descending */
	int32_t first;	   /* number of digit 0 in the union-find */
	int32_t version;   /* another after each change of the digits */
} part_member;

/* Member c reads what p makes; is_write: p destroys what c reads. */
typedef struct part_edge {
	int32_t p, c;
	eqn_edge *e;
	bool is_write;
	/* versions of p and c that it cuts no more, of p for shifts; 0: none */
	int32_t done_p, done_c, done_shift;
} part_edge;

/* One loop that all members share: a digit of each. */
typedef struct part_class {
	int64_t extent;
	axis_kind kind;
	int32_t step;	/* of the scans in it; 0: none */
	int32_t *digit; /* by member */
} part_class;

typedef struct part_set {
	arena *a;
	int32_t n; /* members; behind them in m: tensors from outside */
	VEC(part_member) m;
	VEC(part_edge) edge;
	VEC(part_edge) soft; /* p >= n */
	VEC(part_class) class;
	part_digits *uncut; /* by member, before soft cuts; NULL: not needed */
	bool parts;	/* rows of parts are walked side by side */
	bool no_policy; /* contractions may share what they reduce */
} part_set;

typedef struct fuse_state {
	arena *a; /* of the plan */
	env *env;
	ir_system *s;
	const machine *t;
	const fuse_pricing *price; /* NULL: nobody knows */
	uint32_t mutate;
	eqn_graph *g;
	int32_t n_sources;  /* equations of the system */
	eqn_unit **unit;    /* by source: as it is computed; NULL: not at all */
	int32_t n_order;
	int32_t *order;	    /* live sources, topological, writes included */
	int32_t *alias;	    /* by tensor: see fuse_plan */
	bool *kept;	    /* by tensor: in memory whoever reads it */
	settled *w;	    /* storages, and who waits for which write */
	bool *copied;	    /* by source: put into a reader, and made as well */
	int32_t *where;	    /* by source: member of the set at hand, -1 none */
	arena **scratch;    /* shared by copies of the state */
} fuse_state;

/* ---- fuse.c: memory of one question; emptied by fuse_scratch_reset ---- */
arena *fuse_scratch(fuse_state *f);
void fuse_scratch_reset(fuse_state *f);
void fuse_scratch_trim(fuse_state *f); /* where nothing in it is needed */

/* ---- prepare.c ---- */
void fuse_prepare(fuse_state *f, const settle_options *o);
/* the source that makes a tensor, -1 an input */
static inline int32_t fuse_maker(const fuse_state *f, int32_t tensor)
{
	return f->s->tensor.at[tensor].eqn;
}

/* ---- analyse.c ---- */

/* units in topological order; nothing fixed */
part_set *part_new(
	fuse_state *f, arena *a, int32_t n, eqn_unit *const *unit);
/* some members of s, with their digits as they are */
part_set *part_sub(fuse_state *f, arena *a, const part_set *s, int32_t n,
	const int32_t *which);
/* the same set once more: loops can be opened in one, and not in the other */
part_set *part_copy(arena *a, const part_set *s);
/* cuts where readers and producers ask for them */
void part_refine(part_set *s);

/* ---- classes.c ---- */

/* The digit of c that digit i of p is at this edge, -1 none. */
int32_t part_related(
	fuse_state *f, part_set *s, const part_edge *e, int32_t i);
/* is digit i of p digit k of c there? */
bool part_agrees(fuse_state *f, part_set *s, const part_edge *e, int32_t i,
	int32_t k);
/* P without the classes that a loop walks already: fills s->class */
void part_classes(fuse_state *f, part_set *s);
/* order of loops, and neighbours that are one axis everywhere made one */
void part_join(part_set *s);
static inline bool part_is_left(const eqn_unit *u, const eqn_digit *d)
{
	return d->axis < u->e.n_left && u->stride[d->axis] > 0;
}

/* ---- tree.c: roots, vars, forms; buffers and names are finish.c's ---- */
fuse_kernel *fuse_tree(fuse_state *f, int32_t n, eqn_unit *const *unit);
/* How many variables its loops would have: FUSE_MAX_VARS is what it may.
 * s: of the units, with its classes. */
int32_t fuse_n_vars(fuse_state *f, const part_set *s, eqn_unit *const *unit);

/* ---- buffer.c ---- */

/* does anybody outside the kernel see the tensor? */
typedef bool fuse_sees(void *arg, int32_t tensor);
void fuse_buffers(fuse_state *f, fuse_kernel *k, fuse_sees *visible, void *arg);

/* ---- cost.c: of a refined set with its classes ---- */
double fuse_seconds(fuse_state *f, part_set *s, fuse_sees *sees, void *arg);

/* ---- tail.c ---- */

/* Marks the members that may run once behind the rest; how many are the rest,
 * 0: there is no tail. */
int32_t fuse_tail(
	fuse_state *f, int32_t n, eqn_unit *const *unit, bool *is_tail);
/* the most that may be one */
void fuse_tail_longest(
	fuse_state *f, int32_t n, eqn_unit *const *unit, bool *is_tail);
/* of a set that is one kernel with a tail; INFINITY: it is none */
double fuse_tail_seconds(fuse_state *f, int32_t n, eqn_unit *const *unit,
	fuse_sees *sees, void *arg, int64_t *shared);

/* ---- partition.c ---- */

typedef struct fuse_group {
	VEC(int32_t) source; /* topological order */
	double seconds;
	int32_t batch;
	int32_t place;	/* in the order of groups; -1: merged into another */
	uint32_t stamp; /* of the last search that met it */
} fuse_group;
typedef struct fuse_groups {
	VEC(fuse_group *) at;
} fuse_groups;

/* Of a set as one kernel. */
typedef struct choice_verdict {
	double seconds; /* INFINITY: it may not be one */
	int64_t shared; /* iterations of the loops around everything */
	int32_t n_vars; /* of its loops: more than one kernel has; 0: not */
} choice_verdict;

/* State of the choice: units may still be put into their readers. */
typedef struct choice {
	fuse_state *f;
	VEC(fuse_group *) order; /* topological; NULL where one was merged */
	fuse_group **of;	 /* by source; NULL: not placed yet */
	int32_t *position;	 /* by source, in f->order */
	VEC(int32_t) *readers;	 /* by tensor: sources */
	bool *inside;		 /* by source: in the set at hand */
	uint32_t stamp;
	map *known;		 /* what a set looks like -> number of its verdict */
	VEC(choice_verdict) verdict;
	map *asked; /* the same -> number of its price */
	VEC(fuse_price) price;
	int32_t *local;		 /* by tensor: number in the set at hand */
} choice;

fuse_groups *fuse_choose(fuse_state *f, bool no_fusion, fuse_plan *p);
choice_verdict choice_judge(choice *c, int32_t n, eqn_unit *const *unit);
/* the units of these groups (and e, NULL none) in order: how many */
int32_t choice_members(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, eqn_unit **out);

/* What a set looks like, for memos: its shapes, and which names are one
 * tensor. Its members are marked in c->inside. */
void choice_describe(choice *c, int32_t n, eqn_unit *const *unit, arena *a,
	int32_t **out, int32_t *n_out);
/* Does anything outside the set at hand see the tensor? arg: the choice */
bool choice_sees(void *arg, int32_t tensor);

/* ---- ask.c ---- */

typedef struct fuse_quote {
	fuse_price fused;
	double apart; /* seconds of the parts */
} fuse_quote;
fuse_price choice_ask(
	choice *c, int32_t n, eqn_unit *const *unit, fuse_sees *sees);
/* Is one kernel of these groups (and e, NULL none), which share so many
 * iterations, no slower than they are apart, scheduled? Fills out if not. */
bool choice_pays(choice *c, int32_t n, fuse_group *const *g, const eqn_unit *e,
	int64_t shared, fuse_quote *out);

/* ---- order.c ---- */

/*
 * May these groups (and unit e, NULL none) become one? Where a path leaves
 * them and comes back *through is a group on it.
 */
bool choice_may_merge(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, fuse_group **through);
/* Merges them, in a new group of no members yet that stands at the right place. */
fuse_group *choice_merge(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e);

/* ---- reason.c ---- */
void fuse_reasons(choice *c, fuse_plan *p);

/* ---- conflict.c: of units that cannot be one kernel: the witness and words of r ---- */
void fuse_conflict(choice *c, int32_t n, eqn_unit *const *unit, fuse_reason *r);

/* ---- finish.c ---- */
void fuse_finish(fuse_state *f, fuse_groups *g, fuse_plan *p, bool batch);

#endif
