/*
 * local.h: private to tensor/: what its files share.
 *
 *   memory.c  nodes and buffers: counted, reused
 *   record.c  instances, calls, views, handles, scopes
 *   handle.c  numbers of handles: what callers hold
 *   flush.c   what is needed as a program, and its run
 *   tape.c    what of a tracked call is held for its adjoint
 *   keep.c    what of that is kept, and what is made again
 *   chain.c   versions of a storage in a compiled function
 *   same.c    values in one that have the same elements
 *   second.c  traces with gradients, for gradients of gradients
 *   backward.c  cotangents, from values to what they are made of
 *   place.c     values on several processes
 *   writable.c  may what a view shows be written?
 *   journal.c   an evaluation of several programs that may have to go back
 *   undo.c      storages go back when an evaluation has failed
 *   region.h    conditions and loops: calls that are no single program
 */
#ifndef TENSOR_LOCAL_H
#define TENSOR_LOCAL_H

#include "grad/grad.h"
#include "tensor/tensor.h"

enum { T_MAX_EXTRA = 2 }; /* rows with more are no views here */

typedef struct t_buffer t_buffer;
typedef struct t_value t_value;
typedef struct t_view t_view;
typedef struct t_call t_call;
typedef struct t_trace t_trace;
typedef struct t_chunk t_chunk;

typedef VEC(t_call *) t_calls;
typedef VEC(t_value *) t_values;

/* Memory of one value, or waiting for one. */
struct t_buffer {
	arena *own; /* NULL: imported */
	void *data;
	size_t bytes;
	int32_t refs;
	bool is_external; /* others look at this memory: it stays in place */
	bool is_lent;	  /* others may write to it */
	void (*release)(void *arg);
	void *release_arg;
	t_buffer *next; /* in the list of free ones */
};

/* A row on given types and attributes; one for each such call. */
typedef struct t_entry {
	int32_t id;
	const ir_inst *inst;
	bool is_view; /* each result is one, of the first operand */
	struct t_entry **part; /* of a view: by result; NULL: not asked for */
	/* a view that is a stretch of its operand, in its order, from here on */
	enum { T_UNKNOWN, T_STRETCH, T_SCATTERED } shape;
	int64_t from;
	int64_t work; /* to compute it; 0: not known yet */
	VEC(struct t_rule *) rule; /* adjoints derived so far */
} t_entry;

/* The adjoint of an entry for some operands and results. */
typedef struct t_rule {
	uint64_t wanted, seeded;
	const grad_rule *g; /* NULL: nothing has a gradient */
	t_entry *entry;	    /* of its instance */
	uint64_t reads_operand, reads_result; /* elements, by number */
} t_rule;

/* Where the gradient of a leaf is collected. */
typedef struct t_slot {
	int32_t refs;
	t_value *grad; /* NULL: none yet */
	t_value *acc;  /* of the walk at hand */
	struct t_slot *next;
} t_slot;

/* A value seen through a view; view NULL: as it is. */
typedef struct t_read {
	t_value *v;
	t_view *view;
	bool no_data; /* knows of v, but does not want its elements any more */
	int32_t window; /* of the flush at hand: 1 + the input that is just this; 0 */
} t_read;

/* One movement row on top of others. */
struct t_view {
	int32_t refs;
	t_entry *entry;
	t_view *parent; /* nearer to the storage; NULL: the first */
	int32_t n_extra;
	t_read extra[T_MAX_EXTRA]; /* operands that are not moved: offsets */
	t_view *next;  /* in the list of free ones */
};

struct t_value {
	int32_t refs;  /* whoever knows of it */
	int32_t data;  /* of these, who wants its elements */
	int64_t id;    /* rises: what it is made from has a smaller one */
	ir_type type;
	t_buffer *buf; /* NULL: not computed, or not needed any more */
	t_call *call;  /* that makes it; NULL: none is left */
	t_call *writer; /* a write of it that has not run; weak */
	int32_t result;
	int32_t number; /* of the flush at hand */
	int64_t stamp;
	int32_t inside; /* reads in it that end with it */
	int32_t base;	/* input in whose memory a write ends; -1 none */
	bool tracked;	/* has a gradient: a leaf, or made from one */
	bool is_freed;	/* was tracked, until a walk freed what made it */
	bool holds_self; /* its call's adjoint reads it, and knows of it */
	bool is_part; /* a leaf where it was written, and there alone */
	bool is_last; /* a gradient of a region, or made from one: has none */
	bool again;   /* was not stored: a gradient makes it again */
	bool is_kept; /* counted as stored for gradients */
	int32_t adds_to; /* a gradient: 1 + operand that was the one before; 0 */
	t_value *remade;   /* that, in the walk remade_in */
	int64_t remade_in;
	t_slot *slot;	/* leaf: where its gradient goes */
	t_value *acc;	/* cotangent in the walk at hand */
	int64_t walk;	/* the last walk that met it */
	t_value *next;
	int64_t journal; /* the last evaluation that held or made it */
	int32_t held;	 /* 1 + place in what it holds; 0: it does not */
	t_buffer *place; /* memory that waits for it; NULL: any will do */
	int32_t where;	 /* buf: place of the backend, 0 all of it */
	int32_t want;	 /* not computed yet: 1 + place; 0: anywhere */
};

struct t_call {
	int32_t refs; /* results that somebody else knows of */
	int64_t id;
	t_entry *entry; /* NULL: of a trace, or */
	t_trace *trace; /* NULL: a write, arg[1] to where arg[0] looks */
	int32_t n_args, cap;
	t_read *arg;
	int32_t n_results;
	t_slot **slot;	   /* of a trace, by operand; NULL: none */
	int32_t slot_room, room; /* room: for results */
	t_value **result;  /* weak, but middles; NULL: dropped */
	int64_t stamp;
	bool tracked; /* stays for its adjoint when it has run */
	bool done;    /* has run */
	bool again;   /* stays to make a result again */
	bool no_grad; /* a write that is a leaf where it writes */
	int64_t step; /* it was recorded in; 0: in none */
	int64_t adjoint_of; /* id of the call whose gradient it is of; 0 */
	int64_t judged; /* undo.c: what is_bad is an answer to */
	bool is_bad;
	int64_t walk;
	t_call *next;
};

typedef struct t_storage {
	int32_t refs;
	t_value *cur;
	bool is_external;
	bool requires_grad;
	t_slot *slot; /* NULL: no gradient was ever asked for */
	int64_t bound; /* the capture that made it, or knows it */
	const char *name;
	struct t_storage *next;
	struct t_storage *older, *newer; /* of those that are alive */
	bool is_lost; /* what it is at has failed, and nothing was before */
	int32_t placed; /* 1 + place that the user gave it; 0: none */
	bool parts;	/* of a sum */
	/* what a lens saw last: a copy of version lens_of; NULL: nothing */
	t_value *lens_copy;
	t_view *lens_at;
	int64_t lens_of;
	int32_t lens_place;
	bool lens_no_grad;
} t_storage;

struct tensor {
	uint64_t mark; /* LIVE while it is one */
	uintptr_t slot; /* of its number: handle.c */
	tensors *of;
	t_storage *storage;
	t_view *view;
	ir_type type;
	/* 1 + place in which it is seen, of what is seen at lens_at; 0: where it
	 * lies. rel: its view of that */
	int32_t lens;
	t_view *lens_at, *rel;
	int32_t scope;	      /* depth */
	tensor *before, *after; /* of the same scope */
};
#define TENSOR_LIVE UINT64_C(0x74656e6f6e2d7421)
#define TENSOR_INVALID UINT64_C(0x74656e6f6e2d2121)
#define TENSOR_DONATED UINT64_C(0x74656e6f6e2d3f21) /* has no storage */

static inline bool t_is_write(const t_call *c)
{
	return c->entry == NULL && c->trace == NULL;
}

/*
 * Recorded calls as one: what a compiled function does. The values in it are
 * never computed; they stand for those of each call of it.
 */
struct t_trace {
	int32_t id;
	VEC(t_call *) call; /* in order; kept */
	int32_t n_in;
	t_value **in;  /* stand for operands */
	int32_t *next; /* by operand: the result that is its next version, -1 none */
	int32_t n_out;
	t_value **out;
	int32_t n_known; /* results that the caller sees; behind them: middles */
	/* what its backward reads of a call: all masks together */
	bool *holds_in, *holds_out;
	/* by operand: where leaves collect that the body makes of it; NULL none */
	t_slot **slot;
	loc *at; /* by call: where the user made it */
	int32_t n_again; /* of a backward: calls of the forward, in front */
	t_trace *tracked; /* the same with middles; NULL: not asked for yet */
	VEC(struct t_back *) back;
	const char *name;
	struct t_region *region; /* NULL: its calls are part of one program */
	VEC(struct t_live *) live; /* the same with gradients: second.c */
	bool is_last; /* a backward of which a read has elements, but no history */
};

/* Does it have a gradient through what made it? A leaf that was made has none. */
static inline bool t_is_made(const t_value *v)
{
	while (v->tracked && v->call != NULL && v->call->tracked &&
		v->call->trace != NULL)
		v = v->call->trace->out[v->result];
	return v->tracked && (v->call == NULL || v->call->tracked);
}

/* The same outside of a trace: a leaf that a call wrote has no history. */
static inline bool t_has_history(const t_value *v)
{
	const t_call *c = v->call;

	return v->tracked && c != NULL && c->tracked &&
		(c->trace == NULL || t_is_made(c->trace->out[v->result]));
}

/* What the backward was to read, and where it finds that in the end. */
typedef struct t_moved {
	const t_value *from, *to;
	bool is_stored; /* it was written there */
} t_moved;

/* The backward of a trace, for some of its results. */
typedef struct t_back {
	const bool *seeded; /* by result, middles too */
	t_trace *trace;	    /* NULL: nothing has a gradient */
	t_trace **live;	    /* the same with gradients; *live NULL: not made */
	/* operand k of it: operand from_in[k] of the trace, or result from_out[k],
	 * or the cotangent of result from_seed[k]; -1 else */
	int32_t *from_in, *from_out, *from_seed;
	/* result k: cotangent of operand of_in[k], or of leaves made of it */
	int32_t *of_in;
	enum { BACK_OPERAND, BACK_LEAF, BACK_OLD_LEAF } *kind;
	VEC(t_moved) moved;
} t_back;

/* A trace again, on operands of which these have a gradient. */
typedef struct t_live {
	const bool *tracked;
	t_trace *f;
} t_live;

/* What is recorded in a function while it is compiled. */
typedef struct t_capture t_capture;

/* Elements `from` ... of a value, as a tensor of a type. */
typedef struct t_stretch {
	int64_t from;
	const ir_type *type;
} t_stretch;

/* Call `call` of a program is of t->todo.at[todo]. */
typedef struct t_made_of {
	int32_t call, todo;
} t_made_of;

/* What the evaluation at hand has run, of several programs: journal.c */
typedef struct t_journal {
	bool is_open;
	int64_t number; /* of the evaluation */
	VEC(t_read) held;
	t_calls call;
} t_journal;

typedef struct t_plan {
	void *compiled;
	const t_made_of *made_of;
	int32_t n_made_of;
	const int32_t *where; /* by output; NULL: whole */
} t_plan;

struct tensors {
	arena *a;
	env *e;
	tensor_backend b;
	ir_table *table;
	map *entry_of; /* row, attributes, types -> number */
	VEC(t_entry *) entry;
	map *writable; /* views that are known to be */
	map *plan_of; /* structure -> number */
	VEC(t_plan) plan;
	int64_t memory_limit; /* of what is kept for gradients; -1: none */
	map *choice_of; /* structure -> number */
	VEC(const char *) choice; /* of what is kept: see keep.c */
	VEC(char) key; /* scratch of a lookup */
	const char *file;
	int32_t line;
	VEC(const char *) files; /* of recordings */
	int64_t next_id, stamp;
	tensor invalid, stale; /* what a failed call gives; what is no more */
	t_chunk *chunks; /* of numbers of handles */
	VEC(tensor *) scope; /* the newest handle of each open scope */
	t_call *dying; /* calls to be freed */
	bool is_dying;
	bool poison; /* memory that is let go is overwritten: for tests */
	enum tensor_rule dropped; /* the same; 0: none */
	int32_t no_grad; /* depth */
	int64_t walk, n_walks;
	t_calls path;  /* of the walk at hand */
	t_values met;
	t_slot *slots;
	/* nodes to be used again */
	t_value *values;
	t_call *calls;
	t_view *views;
	t_storage *storages;
	t_storage *live; /* the newest storage that is alive */
	tensor *handles;
	t_buffer *spare; /* structs without memory */

	VEC(t_buffer *) free;
	int32_t n_owned; /* buffers with memory of ours, waiting or not */
	/* the flush at hand: kept for the next one */
	VEC(t_value *) asked;
	VEC(t_call *) todo;
	VEC(t_value *) stack;
	VEC(t_value *) input;
	VEC(t_stretch) stretch; /* by input: which part of its value */
	VEC(t_value *) base; /* by input: the newest value in its memory */
	VEC(t_value *) output;
	VEC(t_buffer *) made;
	VEC(int32_t) code, count;
	VEC(const void *) in;
	VEC(int64_t) version;
	VEC(void *) out;
	bool placed;	/* something lies at another place than 0, or may */
	bool strict;	/* lenses are errors */
	VEC(char) whole; /* what was read last of a value in parts */
	VEC(int32_t) in_place, want;
	VEC(t_value *) retired; /* copies that another one has replaced */
	VEC(bool) seeded; /* of the call at hand in a walk */
	VEC(t_read) operand;
	t_capture *capture; /* NULL: calls are recorded to be computed */
	int64_t n_captures, capture_id; /* of the one at hand; 0: none */
	int32_t n_traces;
	struct t_regions *regions; /* NULL until there is one */
	int32_t running; /* depth of regions: calls of bodies have no gradient */
	/* of an evaluation that fails: undo.c */
	const t_plan *ran; /* what was running; NULL: nothing yet */
	t_call *region;	   /* the same */
	t_journal journal;
	VEC(int64_t) blamed, bad_step; /* ids of calls; steps */
	VEC(int64_t) whole_step; /* steps of which something is written */
	t_calls judge;
	int64_t judging;
	bool is_undoing;
	int64_t evaluated; /* ids up to here are of an evaluation that ran */
	int64_t walking; /* id of the call that a walk is at; 0 */
	int32_t steps;	 /* depth of tensor_step */
	int64_t step, n_steps;
	VEC(t_made_of) made_of; /* of the program that was made last */
	tensor_stats stats;
};

/* memory.c */
t_buffer *t_buffer_new(tensors *t, size_t bytes);
/* of what v is, which a write ends though it is asked for */
t_buffer *t_buffer_copy(tensors *t, const t_value *v);
/* v is kept for somebody who asks for it: not for what may still fail */
void t_count_copy(tensors *t, const t_value *v);
t_buffer *t_buffer_import(tensors *t, void *data, size_t bytes);
void t_buffer_drop(tensors *t, t_buffer *b);
t_value *t_value_new(tensors *t, const ir_type *type);
void t_value_keep(t_value *v); /* knows of it and wants its elements */
void t_value_drop(tensors *t, t_value *v);
void t_data_drop(tensors *t, t_value *v); /* elements alone */
void t_elements_drop(tensors *t, t_value *v); /* it is not computed any more */
void t_read_end_data(tensors *t, t_read *r);
void t_read_begin_data(t_read *r); /* it wants them again */
/* How many want its elements, beside the evaluation that holds it. */
static inline int32_t t_data(const t_value *v)
{
	return v->data - (v->held > 0);
}
/* its call knows of it, without keeping itself by that; and not any more */
void t_self_hold(t_value *v);
void t_self_release(tensors *t, t_value *v);
t_call *t_call_new(tensors *t, int32_t n_args, int32_t n_results);
void t_call_drop(tensors *t, t_call *c);
t_view *t_view_new(tensors *t);
void t_view_keep(t_view *v);
void t_view_drop(tensors *t, t_view *v);
t_read t_read_of(t_value *v, t_view *view); /* keeps both */
void t_read_drop(tensors *t, t_read *r);
t_storage *t_storage_new(tensors *t, t_value *cur); /* takes cur over */
void t_storage_drop(tensors *t, t_storage *s);
tensor *t_handle_new(
	tensors *t, t_storage *s, t_view *view, const ir_type *type);
static inline size_t t_bytes(const ir_type *type)
{
	return (size_t)shape_numel(type->shape, type->rank) *
	       dtype_size(type->dtype);
}

/* handle.c */
void t_handles_new(tensors *t); /* they end with the arena of t */
void t_handle_room(tensors *t, tensor *x); /* new memory gets a number */
void t_handle_begin(tensor *x); /* a number that no other handle has had */
void t_handle_end(const tensor *x);

/* record.c */
tensor *t_check(const tensors *t, const tensor *x);
/* A parameter whose history was let go begins anew: its value is a leaf. */
void t_renew(tensors *t, t_storage *s);
t_read t_read_handle(tensor *x);

void t_key_add(tensors *t, const void *data, size_t n); /* to t->key */
t_entry *t_entry_of(tensors *t, const ir_inst *inst); /* one that is new */
t_entry *t_entry_named(tensors *t, const char *row, int32_t n,
	const ir_type *const *type, int32_t n_attrs, const ir_attr *attr);
/* A call on values; its results have no handle yet: refs 0. */
t_call *t_record(tensors *t, t_entry *e, int32_t n, const t_read *arg);
/* A write's call; its result is the next version of to.v. */
t_value *t_record_write(tensors *t, t_read to, t_read value);

/* tape.c */
const t_rule *t_rule_of(
	tensors *t, t_entry *e, uint64_t wanted, uint64_t seeded);
void t_track(tensors *t, t_call *c); /* is it tracked, are its results? */
bool t_tape_reads(tensors *t, const t_call *c, int32_t arg);
/* it has run: holds what is kept of its operands, lets go of the others */
void t_tape_hold(tensors *t, t_call *c);

/* what is worth keeping: bytes that may be spent on a unit of work, roughly
 * what memory moves while a core computes */
#define T_BYTES_PER_WORK 0.5
int64_t t_call_work(const t_call *c); /* to make its results */
/* again.c: what back reads of f, and makes again instead */
void t_make_again(
	tensors *t, const t_trace *f, t_trace *back, t_value *const *seed);
/* keep.c: of the calls of a flush, numbered: is something not stored? */
bool t_keep_choose(tensors *t);
/* Are the elements of an operand held when the call has run? */
bool t_keep_holds(tensors *t, const t_call *c, int32_t arg);

/* v is a leaf: its gradient is that of the storage */
void t_leaf(tensors *t, t_storage *s, t_value *v);
t_slot *t_slot_of(tensors *t, t_storage *s);
void t_slot_drop(tensors *t, t_slot *s);

/* A call of a trace; its results have no handle yet. */
t_call *t_record_trace(tensors *t, t_trace *f, const t_read *arg);

/* capture.c */
/* The newest version of s, as the recording at hand sees it. */
t_value *t_cur(tensors *t, t_storage *s);
void t_captured(tensors *t, t_call *c); /* it was just recorded */

/*
 * backward.c: a walk over the calls of a trace from cotangents of its results
 * (seed[], NULL: none) to those of its operands (grad[]), of the newest leaf
 * of each operand (leaf[]) and of all its others that it makes (old[]).
 * No slot is filled.
 */
void t_walk_trace(tensors *t, const t_trace *f, t_value *const *seed,
	t_value **grad, t_value **leaf, t_value **old);

void t_slot_add(tensors *t, t_slot *s, t_value *g);

/* trace.c */
/* With a backward for all its results: NULL when nothing of it is tracked. */
t_trace *t_trace_tracked(tensors *t, t_trace *f);
/* seeded: by result, middles too: those have cotangents in second gradients */
const t_back *t_back_of(tensors *t, t_trace *f, const bool *seeded);

/* second.c: f recorded again, on operands that have a gradient or not */
t_trace *t_trace_live(tensors *t, t_trace *f, const bool *tracked);
/* The backward b of f as a trace that has one itself; NULL: that cannot be. */
t_trace *t_back_live(tensors *t, const t_trace *f, const t_back *b);

/* chain.c: a value seen through a view; NULL: as it is */
typedef struct t_seen {
	const t_value *v;
	const t_view *view;
} t_seen;

/* "[2*i + 1, j]": where in v element (i, j) of the view lies */
void t_print_place(tensors *t, str *s, const t_seen *x);
/* May two views of values of one type meet in an element? */
bool t_overlap(tensors *t, const t_seen *x, const t_seen *y);

/* The version behind v: by which call, and where it writes. */
typedef struct t_version {
	t_value *next;
	const t_view *view;
	int32_t call;
} t_version;
bool t_next_version(const t_trace *f, const t_value *v, t_version *out);
/* same.c: where else in f the elements of v are, which is kept rather than v;
 * v itself if nowhere. reads: what is kept in any case. */
t_read t_same_of(tensors *t, const t_trace *f, int32_t n_reads,
	t_value *const *reads, t_value *v);
/* Do gradients of `to` reach what those of v reach? It is from t_same_of. */
bool t_same_history(
	tensors *t, const t_trace *f, const t_value *v, const t_value *to);
/* A new view: w on top of `below`; kept once. */
t_view *t_view_on(tensors *t, t_view *below, const t_view *w);
/* Reads of b that results have go there: b->moved. */
void t_find_kept(tensors *t, const t_trace *f, t_back *b, t_value *const *seed);

/* place.c */
/* bytes of this process's part of v there */
size_t t_room(const tensors *t, const t_value *v, int32_t where);
void t_move(tensors *t, t_value *v, int32_t to);
/* all elements of v, which is computed; valid until the next one */
const void *t_whole(tensors *t, const t_value *v);
/* what is read of x, whatever lens it has; refs are not counted */
t_read t_read_through(tensors *t, const tensor *x);
void t_write_through(tensors *t, const tensor *x); /* before a write to x */
void t_lens_drop(tensors *t, t_storage *s);
void t_lens_retire(tensors *t); /* copies that were kept for the last call */

/*
 * program.c: t->todo as a program; if something is placed, with outputs behind
 * those of the flush for what is wanted somewhere: t->want, by output.
 */
ir_program *t_program(tensors *t, arena *a);

/* A trace and its backward as one program, for people. */
typedef struct t_halves {
	ir_program *p;
	const t_trace *f;
	const t_back *b; /* NULL: nothing has a gradient */
	/* number of the first value of each part */
	int32_t forward, seed, again, backward;
	int32_t *in, *out;    /* values: by operand and result of f */
	int32_t *read, *grad; /* by operand and result of the backward */
} t_halves;
/* h->f and h->b are set. name: of f's operands; seed: of cotangents, by operand
 * of the backward; each a name that nobody else has. */
void t_program_halves(tensors *t, arena *a, t_halves *h,
	const char *const *name, const char *const *seed);
/* value seen through view, by calls at the end of h->p */
int32_t t_halves_seen(tensors *t, t_halves *h, int32_t value,
	const t_view *view);

/* flush.c: does the program at hand find it as the last one left it? */
bool t_is_steady(const tensors *t, int32_t input);
/* flush.c: is the view a stretch of what it is a view of, in its order? */
bool t_is_stretch(tensors *t, t_entry *e);
/* flush.c: its results stand alone, the call is gone */
void t_finish(tensors *t, t_call *c);
/* flush.c: it has run: it stays for gradients, or goes */
void t_end_call(tensors *t, t_call *c);
/* writable.c: throws where a write through the view would be refused; the same
 * for all that a call of f writes through the views of its operands */
void t_check_view(
	tensors *t, const t_value *v, const t_view *w, const char *name);
void t_check_writes(tensors *t, const t_trace *f, const t_read *arg);

/*
 * journal.c: between begin and end, or undo, an evaluation of several programs.
 * Of the program at hand, numbered, and of a region: its inputs are there until
 * the end, if it is not the last. A call of one that is not has run.
 */
void t_journal_begin(tensors *t);
void t_journal_inputs(tensors *t, bool is_last);
void t_journal_operands(tensors *t, const t_call *c, bool is_last);
void t_journal_add(tensors *t, t_call *c);
void t_journal_end(tensors *t);
void t_journal_undo(tensors *t); /* nothing of it has run */

/* undo.c: v[] were to be evaluated and are not, because of what was thrown */
void t_undo(tensors *t, t_value *const *v, int32_t n);
bool t_changes_any(const t_call *c); /* is a result the next version of one? */
/* The version of its storage that a call is still to write over; NULL: none. */
t_value *t_version_before(const t_value *v);
/* flush.c: the calls that are to run for v[], in order: in t->todo */
void t_find_calls(tensors *t, t_value *const *v, int32_t n);
/* flush.c: after it each of v[] has its elements */
void t_flush(tensors *t, t_value *const *v, int32_t n);

#endif
