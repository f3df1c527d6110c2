/*
 * inner.h: private to fuse/: what its files share.
 *
 *   scratch.c    memory for single steps
 *   prepare.c    substitutes views, makes units, settles writes
 *   analyse.c    cuts digits until those of readers and producers agree
 *   classes.c    joins digits to classes; P(G)
 *   divide.c     divides a set into loop nests
 *   tree.c       builds the loop tree of a set
 *   buffer.c     decides which tensors stay in the kernel, and in which scope
 *   cost.c       a bound of the seconds of a set
 *   ask.c        the estimate of the kernel that the set would become
 *   tail.c       finds the units that can run once, after the loops of a set
 *   verdict.c    may a set be one kernel, and the bound of its cost
 *   partition.c  chooses the sets, greedily
 *   split.c      splits groups whose two parts are faster
 *   order.c      maintains the order of kernels while they grow
 *   reason.c     finds why an edge was not fused
 *   conflict.c   finds equations that share no loop, and where each loop ends
 *   conflict_text.c  .. as sentences
 *   apart.c      finds what each kernel computes, and keeps pairs apart
 *   early.c      finds groups after which memory is free
 *   finish.c     turns sets into kernels; batches
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
	FUSE_RULE_OUTER,     /* inner levels keep the digits that outer loops fixed */
	FUSE_RULE_STATE	     /* the state of a scan is outside its loop */
};
#ifdef FUSE_MUTATE
#define rule_dropped(f, n) ((f)->mutate == (uint32_t)(n))
#else
#define rule_dropped(f, n) ((void)(f), false)
#endif

enum {
	FUSE_MAX_NEST = 200,	   /* loops and groups around a statement */
	FUSE_MAX_VARS = IX_MAX_AXES, /* loop variables of a kernel */
	FUSE_MAX_FLOORS = 6, /* nested floors in what is substituted into a reader */
	FUSE_FEW_VARS = 40 /* a set with at most this number of unshared digits has
			    * few enough loops: they are not counted */
};

/* A digit of a member; var: the loop that walks it, or -1. */
typedef struct part_digit {
	eqn_digit d;
	int32_t var;
} part_digit;

typedef VEC(part_digit) part_digits;

typedef struct part_member {
	const eqn_unit *u; /* NULL: an outside tensor, as one axis */
	int32_t number;	   /* of the equation in its kernel */
	part_digits digit; /* by axis, then lo descending */
	int32_t first;	   /* number of digit 0 in the union-find */
	int32_t version;   /* changes whenever the digits change */
} part_member;

/* Member c reads what p computes; is_write: p overwrites what c reads. */
typedef struct part_edge {
	int32_t p, c;
	eqn_edge *e;
	bool is_write;
	/* versions of p and c that it cannot cut further (done_shift: p, for
	 * shifts); 0: none */
	int32_t done_p, done_c, done_shift;
} part_edge;

/* One loop that all members share: a digit of each. */
typedef struct part_class {
	int64_t extent;
	axis_kind kind;
	int32_t step;	/* of the scans in it; 0 without scans */
	int32_t *digit; /* by member */
} part_class;

typedef struct part_set {
	arena *a;
	int32_t n; /* members; after them, m has outside tensors */
	VEC(part_member) m;
	VEC(part_edge) edge;
	VEC(part_edge) soft; /* p >= n */
	VEC(part_class) class;
	part_digits *uncut; /* by member: digits before soft cuts; or NULL */
	bool parts;	/* rows of several parts are walked by one loop */
	bool no_policy; /* contractions may share the axes that they reduce */
} part_set;

typedef struct fuse_state {
	arena *a; /* of the plan */
	env *env;
	ir_system *s;
	const machine *t;
	const fuse_pricing *price; /* or NULL */
	uint32_t mutate;
	eqn_graph *g;
	int32_t n_sources;  /* equations of the system */
	eqn_unit **unit;    /* by source: its unit; NULL: it is not computed */
	int32_t n_order;
	int32_t *order;	    /* live sources in topological order, with writes */
	int32_t *alias;	    /* by tensor: see fuse_plan */
	bool *kept;	    /* by tensor: is always in memory */
	settled *w;	    /* storages, and which equations wait for which */
	bool *copied;	    /* by source: substituted into a reader, and computed as well */
	struct fuse_apart *apart; /* see apart.c */
	int32_t *where;	    /* by source: member of the current set, or -1 */
	struct fuse_memo *memo; /* shared by copies of the state; or NULL */
	fuse_work *work; /* of the plan */
	arena **scratch;    /* shared by copies of the state */
} fuse_state;

/* ---- scratch.c: memory; fuse_scratch_reset empties it ---- */
arena *fuse_scratch(fuse_state *f);
void fuse_scratch_reset(fuse_state *f);
void fuse_scratch_trim(fuse_state *f); /* empties it if it is large */

/* Answers of divide.c to questions that the trees of similar sets ask again. */
typedef struct fuse_memo {
	arena *a; /* emptied when it is large */
	map *member; /* a unit and its digits -> its number */
	map *shared; /* numbers of members -> iterations of the loops they share */
} fuse_memo;

/* ---- prepare.c ---- */
void fuse_prepare(fuse_state *f, const settle_options *o);
/* The source that computes a tensor; -1: an input. */
static inline int32_t fuse_maker(const fuse_state *f, int32_t tensor)
{
	return f->s->tensor.at[tensor].eqn;
}

/* ---- analyse.c ---- */

/* A set of units, in topological order, without fixed digits. */
part_set *part_new(
	fuse_state *f, arena *a, int32_t n, eqn_unit *const *unit);
/* The set of some members of s, with their digits. */
part_set *part_sub(fuse_state *f, arena *a, const part_set *s, int32_t n,
	const int32_t *which);
/* Cuts digits until readers and producers agree. */
void part_refine(part_set *s);

/* ---- classes.c ---- */

/* The digit of c that runs in step with digit i of p at this edge, or -1. */
int32_t part_related(
	fuse_state *f, part_set *s, const part_edge *e, int32_t i);
/* Does digit i of p run in step with digit k of c at this edge? */
bool part_agrees(fuse_state *f, part_set *s, const part_edge *e, int32_t i,
	int32_t k);
/* The shared loop that walks this digit of member m; -1: none. */
int32_t part_class_of(const part_set *s, int32_t m, int32_t digit);
/* Does the value of f depend on the digit? */
bool part_form_uses(const ix_form *f, const eqn_digit *d);
/* The digit of an element number along which elements are nearest; NULL: none. */
const ix_term *part_fastest(const ix_form *at);
/* Fills s->class: P without the classes that a loop walks already. */
void part_classes(fuse_state *f, part_set *s);
/* Orders the loops, and joins neighbours that are one axis in all members. */
void part_join(part_set *s);
static inline bool part_is_left(const eqn_unit *u, const eqn_digit *d)
{
	return d->axis < u->e.n_left && u->stride[d->axis] > 0;
}

/* ---- divide.c ---- */

/* Members that share loops. */
typedef struct part_group {
	VEC(int32_t) member;
	bool gone; /* merged into another */
} part_group;
typedef struct part_groups {
	part_group *at;
	int32_t n, cap;
} part_groups;
/* Divides s, which has no further classes, in the order of execution; n_vars:
 * more than each part_digit.var. */
part_groups part_divide(fuse_state *f, arena *a, part_set *s, int32_t n_vars);

/* ---- tree.c: roots, vars, forms; finish.c adds buffers and names ---- */
/* A kernel of more than FUSE_MAX_VARS variables has no forms: use n_vars only. */
fuse_kernel *fuse_tree(fuse_state *f, int32_t n, eqn_unit *const *unit);
/* The number of variables that its loops would have; FUSE_MAX_VARS are allowed. */
int32_t fuse_n_vars(fuse_state *f, int32_t n, eqn_unit *const *unit);

/* ---- buffer.c ---- */

/* Is the tensor needed outside the kernel? */
typedef bool fuse_sees(void *arg, int32_t tensor);
void fuse_buffers(fuse_state *f, fuse_kernel *k, fuse_sees *visible, void *arg);

/* ---- cost.c: for a refined set with its classes ---- */
double fuse_seconds(fuse_state *f, part_set *s, fuse_sees *sees, void *arg);

/* ---- tail.c ---- */

/* Marks the members that may run once, after the others. Returns the number of
 * the others; 0: there is no tail. */
int32_t fuse_tail(
	fuse_state *f, int32_t n, eqn_unit *const *unit, bool *is_tail);
/* Marks the longest possible tail. */
void fuse_tail_longest(
	fuse_state *f, int32_t n, eqn_unit *const *unit, bool *is_tail);
/* The members of the tail, or the others, as a refined set with its classes. */
part_set *fuse_part_of(fuse_state *f, int32_t n, eqn_unit *const *unit,
	const bool *is_tail, bool tail);

/* ---- partition.c ---- */

typedef struct fuse_group {
	VEC(int32_t) source; /* topological order */
	double seconds;
	double best; /* seconds, by schedules, of the best way that is known to
		      * compute it, in one kernel or several; 0: not known */
	int32_t batch;
	int32_t place;	/* index in the order of groups; -1: merged into another */
	uint32_t stamp; /* of the last search that visited it */
} fuse_group;
typedef struct fuse_groups {
	VEC(fuse_group *) at;
} fuse_groups;

/* What a set would be as one kernel. */
typedef struct choice_verdict {
	double seconds; /* INFINITY: it cannot be one kernel */
	int64_t shared; /* iterations of the loops around the whole kernel */
	/* Its loops may have too many variables. Counting them takes the loop
	 * tree, so choice_n_vars does it for sets that are about to be chosen. */
	bool is_many;
} choice_verdict;

/* How a set is split; first 0: it is not. */
typedef struct choice_cut {
	uint64_t first; /* the units before the cut, by number */
	double apart;	/* seconds of the two kernels */
	double alone;	/* .. on one thread */
} choice_cut;

/* What is known of the kernel that a set would become. */
typedef struct choice_kernel {
	fuse_price price; /* seconds 0: not known */
	double buffered;  /* choice_buffered; -1: not known */
} choice_kernel;

/* State of the choice; units may still be substituted into readers. */
typedef struct choice {
	fuse_state *f;
	VEC(fuse_group *) order; /* topological; NULL for groups that were merged */
	fuse_group **of;	 /* by source; NULL: in no group yet */
	int32_t *position;	 /* by source, in f->order */
	VEC(int32_t) *readers;	 /* by tensor: sources */
	bool *inside;		 /* by source: is in the current set */
	uint32_t stamp;
	map *known;		 /* description of a set -> number of its verdict */
	VEC(choice_verdict) verdict;
	map *cuts; /* description of a set -> number of its cut */
	VEC(choice_cut) cut;
	int32_t n_cut;	/* of these, sets that are split */
	map *asked; /* description of a set -> number of its kernel */
	VEC(choice_kernel) kernel;
	map *counted;	/* description of a set -> number of its variables */
	arena *asking;	/* memory of one question for a price */
	int32_t *local; /* by tensor: number in the current set */
	int32_t n_local;
} choice;

fuse_groups *fuse_choose(fuse_state *f, bool no_fusion, fuse_plan *p);
choice_verdict choice_judge(choice *c, int32_t n, eqn_unit *const *unit);
/* Where memory is limited: would a kernel of these units hold more results than the
 * machine allows (most_held)? */
bool choice_holds_much(choice *c, int32_t n, eqn_unit *const *unit);
/* Lists the units of these groups, and e if not NULL, in order; returns their
 * number. */
int32_t choice_members(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, eqn_unit **out);

/* Describes a set, as a key for memos: its shapes, and which reads have the same
 * tensor. Its members are marked in c->inside. */
void choice_describe(choice *c, int32_t n, eqn_unit *const *unit, arena *a,
	int32_t **out, int32_t *n_out);
/* Is the tensor needed outside the current set? arg: the choice */
bool choice_sees(void *arg, int32_t tensor);

/* ---- ask.c ---- */

/* The number of variables of the loops of a set if it is more than
 * FUSE_MAX_VARS, else 0. */
int32_t choice_n_vars(choice *c, int32_t n, eqn_unit *const *unit);

typedef struct fuse_quote {
	fuse_price fused; /* seconds INFINITY: it has too many variables */
	double apart; /* seconds of the separate kernels, at best */
	double alone; /* .. on one thread */
	double best;  /* of what was found: fuse_group; 0: nothing was asked */
} fuse_quote;
/* The number of the cut of a set, and the key by which it is known; -1: it was
 * not looked for. */
int64_t choice_cut_at(choice *c, int32_t n, eqn_unit *const *unit,
	int32_t **key, size_t *n_bytes);
fuse_price choice_ask(
	choice *c, int32_t n, eqn_unit *const *unit, fuse_sees *sees);
/* Elements of the tensors that the kernel of the set would keep in buffers. */
double choice_buffered(choice *c, int32_t n, eqn_unit *const *unit);
/* Can these groups (and e if not NULL), whose union has verdict v, be one
 * kernel that is as fast, scheduled, as separate ones? Fills out if not; if
 * so, out->best. */
bool choice_pays(choice *c, int32_t n, fuse_group *const *g, const eqn_unit *e,
	const choice_verdict *v, fuse_quote *out);
/* near.c: groups that e may join, each once; g is added to a list. */
enum { FUSE_MAX_TRIED = 8 }; /* groups with a common input */
typedef VEC(fuse_group *) near_groups;
void near_add(choice *c, near_groups *all, fuse_group *g);
near_groups near_producers(choice *c, const eqn_unit *e);
near_groups near_siblings(choice *c, const eqn_unit *e);
near_groups near_overwritten(choice *c, const eqn_unit *e);
/* .. of these, those with a maximum, and the groups that they read for it. */
near_groups near_scores(choice *c, const near_groups *p);
/* All groups of the squares that e makes or reads, of what reads them, and of what is
 * between these: none of two such groups may gain alone (recompute.c). */
near_groups near_squares(choice *c, const eqn_unit *e);
/* Does one sum at most stand inside of the loops that all units share, and do the
 * operations of an iteration not wait for each other? */
bool choice_is_one_nest(
	const machine *m, int32_t n, eqn_unit *const *unit, int64_t shared);
/* Seconds of e with n groups as one kernel, and of those of all that are not
 * among these, each alone. */
double choice_ask_all(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, int32_t n_all, fuse_group *const *all);

/* ---- split.c ---- */

/* Splits groups whose two parts are faster; false: there are none. */
bool choice_split(choice *c);

/* ---- order.c ---- */

/*
 * Can these groups (and unit e if not NULL) be merged? If a path leaves them
 * and comes back, they cannot, and *through is a group on it.
 */
bool choice_may_merge(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, fuse_group **through);
/* Merges them into a new group at the right index, whose members are not set yet. */
fuse_group *choice_merge(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e);

/* ---- conflict.c: for units that cannot be one kernel: fills witness and text of r ---- */
void fuse_conflict(choice *c, int32_t n, eqn_unit *const *unit, fuse_reason *r);

/*
 * ---- apart.c: which equations of the system a unit computes: its own, and
 * those that were put into it ----
 */
void fuse_apart_new(fuse_state *f, const fuse_options *o);
/* Would a kernel of these units compute both equations of a pair that is to
 * stay apart? */
bool fuse_apart_both(const fuse_state *f, int32_t n, eqn_unit *const *unit);
/* Is one of what n units compute made again, and another before it? */
bool fuse_apart_again(const fuse_state *f, int32_t n, eqn_unit *const *unit);
/* Do they compute squares of which groups of readers have one each? */
bool fuse_apart_groups(const fuse_state *f, int32_t n, eqn_unit *const *unit);
/* The first equation that is made again to save memory; INT32_MAX: none is. */
int32_t fuse_first_again(const fuse_state *f);
/* n producers are put into unit e: for good, or, until fuse_apart_out, to see
 * what it would cost. */
void fuse_apart_in(fuse_state *f, const eqn_unit *e, int32_t n,
	eqn_unit *const *p);
void fuse_apart_out(fuse_state *f, const eqn_unit *e, int32_t n,
	eqn_unit *const *p);
/* The merges of a kernel that is made of these units. */
void fuse_merges(fuse_state *f, fuse_plan *p, const fuse_kernel *k);

/* ---- early.c: for groups that are being sorted; those with one leader are one ---- */
typedef struct fuse_early fuse_early;
fuse_early *fuse_early_new(
	fuse_state *f, const fuse_groups *g, const int32_t *leader);
/* All that it depends on has run; it has run. */
void fuse_early_ready(fuse_early *x, int32_t it);
void fuse_early_ran(fuse_early *x, int32_t it);
/* One that is ready and should run now, whatever its number is; or -1. */
int32_t fuse_early_next(fuse_early *x, const bool *ready);

/* ---- finish.c ---- */
void fuse_finish(fuse_state *f, fuse_groups *g, fuse_plan *p, bool batch);

#endif
