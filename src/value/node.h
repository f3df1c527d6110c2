/*
 * node.h: private to value/, tape/ and func/: the nodes that recorded calls are.
 *
 * In this order: no file calls one of a later line, as tools/house.py checks.
 *
 *   memory.c  nodes and buffers: counts and reuses them
 *   handle.c  numbers of handles, which callers hold
 *   entry.c   rows on given types and attributes
 *   version.c versions of a storage, and where in them a view looks
 *   writable.c  can a tensor be written through a view?
 *   track.c   what a tracked call keeps for its adjoint
 *   capture.c what a function reads from outside, and what it leaves
 *   call.c    calls as nodes
 *   lens.c    what a tensor shows where it is read
 *   record.c  calls on handles, views, writes, scopes
 *   keep.c    chooses what is kept, and what is recomputed
 *   program.c what is to run as a program
 *   journal.c an evaluation of several programs that can be undone
 *   find.c    the calls that are needed
 *   undo.c    restores storages when an evaluation has failed
 *   flush.c   makes a program of the calls that are needed, and runs it
 *   place.c   values on several processes
 */
#ifndef VALUE_NODE_H
#define VALUE_NODE_H

#include "grad/grad.h"
#include "value/value.h"

enum { T_MAX_EXTRA = 2 }; /* rows with more are not views here */

typedef struct t_buffer t_buffer;
typedef struct t_value t_value;
typedef struct t_view t_view;
typedef struct t_call t_call;
typedef struct t_trace t_trace;
typedef struct t_chunk t_chunk;

typedef VEC(t_call *) t_calls;
typedef VEC(t_value *) t_values;

/* Memory of a value, or free memory. */
struct t_buffer {
	arena *own; /* NULL: imported */
	void *data;
	size_t bytes;
	int32_t refs;
	bool is_external; /* the caller has its address, which must not change */
	bool is_lent;	  /* the caller may write to it */
	void (*release)(void *arg);
	void *release_arg;
	bool is_ended;	  /* imported, and given back with the context */
	t_buffer *next;	  /* in the list of free ones, or of imported ones */
	t_buffer *before; /* among the imported ones */
};

/* A row with given types and attributes; interned. */
typedef struct t_entry {
	int32_t id;
	const ir_inst *inst;
	bool is_view; /* each result is a view of the first operand */
	struct t_entry **part; /* of a view: by result; NULL: not made yet */
	/* T_STRETCH: the view is consecutive elements of its operand, from `from` on */
	enum { T_UNKNOWN, T_STRETCH, T_SCATTERED } shape;
	int64_t from;
	int64_t work; /* to compute it; 0: unknown */
	VEC(struct t_rule *) rule; /* adjoints derived so far */
} t_entry;

/* The adjoint of an entry for some operands and results. */
typedef struct t_rule {
	uint64_t wanted, seeded;
	const grad_rule *g; /* NULL: no operand has a gradient */
	t_entry *entry;	    /* of its instance */
	uint64_t reads_operand, reads_result; /* operands, results whose elements it reads */
} t_rule;

/* Where the gradient of a leaf is collected. */
typedef struct t_slot {
	int32_t refs;
	t_value *grad; /* NULL: none yet */
	t_value *acc;  /* in the current walk */
	struct t_slot *next;
} t_slot;

/* A value through a view, or the value (view NULL). */
typedef struct t_read {
	t_value *v;
	t_view *view;
	bool no_data; /* keeps v, but no longer needs its elements */
	int32_t window; /* in the current flush: 1 + the input that is this read; or 0 */
} t_read;

/* A movement row applied to another view. */
struct t_view {
	int32_t refs;
	t_entry *entry;
	t_view *parent; /* the view that it is applied to; NULL: the storage */
	int32_t n_extra;
	t_read extra[T_MAX_EXTRA]; /* operands that are not moved: offsets */
	t_view *next;  /* in the list of free ones */
};

struct t_value {
	int32_t refs;  /* references */
	int32_t data;  /* references that need its elements */
	int64_t id;    /* larger than those of the values it depends on */
	ir_type type;
	t_buffer *buf; /* NULL: not computed, or no longer needed */
	t_call *call;  /* that computes it; NULL: it was dropped */
	t_call *writer; /* a write of it that has not run; weak */
	int32_t result;
	int32_t number; /* in the current flush */
	int64_t stamp;
	int32_t inside; /* reads in the flush that end with it */
	int32_t base;	/* input whose memory a write uses; or -1 */
	bool tracked;	/* has a gradient: it is a leaf, or depends on one */
	bool is_freed;	/* was tracked, until a walk freed its call */
	bool holds_self; /* the adjoint of its call reads it, and refers to it */
	bool is_part; /* a leaf only in the elements that were written */
	bool is_last; /* a gradient of a region, or depends on one: not differentiable */
	bool again;   /* not stored: gradients recompute it */
	bool is_kept; /* counted as stored for gradients */
	bool is_shared; /* in the current walk: the cotangent of more than one value */
	int32_t adds_to; /* a gradient: 1 + the operand that is the sum so far; or 0 */
	t_value *remade;   /* the recomputed value, in walk remade_in */
	int64_t remade_in;
	t_slot *slot;	/* of a leaf: collects its gradient */
	t_value *acc;	/* cotangent in the current walk */
	int64_t walk;	/* the last walk that visited it */
	t_value *next;
	int64_t journal; /* the last evaluation that held or computed it */
	int32_t held;	 /* 1 + index in the held reads of the journal; or 0 */
	t_buffer *place; /* memory that it must use; NULL: any */
	int32_t where;	 /* placement of buf; 0: whole */
	int32_t want;	 /* not computed yet: 1 + placement; 0: any */
};

struct t_call {
	int32_t refs; /* results that are referenced elsewhere */
	int64_t id;
	t_entry *entry; /* NULL: a call of a trace, or a write */
	t_trace *trace; /* NULL, and entry NULL: writes arg[1] through the view of arg[0] */
	int32_t n_args, cap;
	t_read *arg;
	int32_t n_results;
	t_slot **slot;	   /* of a trace, by operand; NULL: none */
	int32_t slot_room, room; /* room: for results */
	t_value **result;  /* weak, except middles; NULL: dropped */
	int64_t stamp;
	bool tracked; /* kept for its adjoint after it has run */
	bool done;    /* it has run */
	bool again;   /* kept to recompute a result */
	bool no_grad; /* a write whose elements become a leaf */
	int64_t step; /* the step in which it was recorded, or 0 */
	int64_t adjoint_of; /* id of the call whose adjoint it belongs to, or 0 */
	int64_t judged; /* undo.c: the evaluation that is_bad refers to */
	bool is_bad;
	int64_t walk;
	t_call *next;
};

typedef struct t_storage {
	int32_t refs;
	t_value *cur;
	bool is_external;
	t_slot *slot; /* NULL: no gradient was requested yet */
	int64_t bound; /* the capture that created or bound it */
	const char *name;
	struct t_storage *next;
	struct t_storage *older, *newer; /* in the list of live ones */
	bool is_lost; /* its value has failed, and there is no version before */
	int32_t placed; /* 1 + placement that the user set; or 0 */
	bool parts;	/* it holds partial sums */
	/* the last copy that a lens made, of version lens_of; or NULL */
	t_value *lens_copy;
	t_view *lens_at;
	int64_t lens_of;
	int32_t lens_place;
	bool lens_no_grad;
} t_storage;

struct tensor {
	uint64_t mark; /* LIVE while it is valid */
	uintptr_t slot; /* of its number: handle.c */
	tensors *of;
	t_storage *storage;
	t_view *view;
	ir_type type;
	/* a lens: 1 + its placement, of the storage through lens_at; rel: its view
	 * of that. 0: not a lens */
	int32_t lens;
	t_view *lens_at, *rel;
	int32_t scope;	      /* depth */
	tensor *before, *after; /* in the same scope */
};
#define TENSOR_LIVE UINT64_C(0x74656e6f6e2d7421)
#define TENSOR_INVALID UINT64_C(0x74656e6f6e2d2121)
#define TENSOR_DONATED UINT64_C(0x74656e6f6e2d3f21) /* has no storage */

static inline bool t_is_write(const t_call *c)
{
	return c->entry == NULL && c->trace == NULL;
}

/* The call that must still compute v; NULL: v is computed. */
static inline t_call *t_maker(const t_value *v)
{
	return v->buf == NULL && v->call != NULL && !v->call->done ? v->call
								   : NULL;
}

/* What the calls of a trace are. */
typedef enum region_kind {
	REGION_NONE,   /* part of one program */
	REGION_BLOCKS, /* its own calls, some of them regions */
	/* no calls: bodies, which are traces, compute its results */
	REGION_COND, /* operand 0 selects one of two bodies */
	REGION_LOOP, /* repeats a body */
	REGION_HOST  /* a function in C on arrays */
} region_kind;

/*
 * Recorded calls that are called as one: the body of a compiled function. Its
 * values are never computed; they represent the values in each call of it.
 */
struct t_trace {
	int32_t id;
	VEC(t_call *) call; /* in order; kept */
	int32_t n_in;
	t_value **in;  /* the operands */
	int32_t *next; /* by operand: the result that is its next version, or -1 */
	int32_t n_out;
	t_value **out;
	int32_t n_known; /* results for the caller; middles follow */
	/* operands and results that its backward reads, for any seeds */
	bool *holds_in, *holds_out;
	/* by operand: collects gradients of leaves that the body makes of it; or NULL */
	t_slot **slot;
	loc *at; /* by call: the user's file and line */
	int32_t n_again; /* of a backward: number of recomputed calls, at the front */
	t_trace *tracked; /* the same with middles; NULL: not made yet */
	VEC(struct t_back *) back;
	const char *name;
	region_kind kind;
	struct t_region *region; /* func/region.h: how it is evaluated */
	VEC(struct t_live *) live; /* the same with gradients: second.c */
	bool is_last; /* a backward with a read that has elements, but no history */
};

static inline bool t_is_region(const t_trace *f)
{
	return f->kind > REGION_BLOCKS;
}

/* Does c overwrite all of operand i, so that its elements are not needed? */
bool t_overwrites(const t_call *c, int32_t i);

/* Does it have a gradient through its call? A leaf that was computed has none. */
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

/* A value that the adjoint reads, and the value that holds its elements at the end. */
typedef struct t_moved {
	const t_value *from, *to;
	bool is_stored; /* it was copied there */
} t_moved;

/* The backward of a trace, for some of its results. */
typedef struct t_back {
	const bool *seeded; /* by result, with middles */
	t_trace *trace;	    /* NULL: no operand has a gradient */
	t_trace **live;	    /* the same with gradients; *live NULL: not made */
	/* operand k of it: operand from_in[k] of the trace, or result from_out[k],
	 * or the cotangent of result from_seed[k]; -1 else */
	int32_t *from_in, *from_out, *from_seed;
	/* result k: cotangent of operand of_in[k], or of leaves made of it */
	int32_t *of_in;
	enum { BACK_OPERAND, BACK_LEAF, BACK_OLD_LEAF } *kind;
	bool *shared; /* result k may have the memory of another one or of an operand */
	VEC(t_moved) moved;
} t_back;

/* The recording of a function: capture.h. */
typedef struct t_capture t_capture;

/* Elements `from` ... of a value, as a tensor of a type. */
typedef struct t_stretch {
	int64_t from;
	const ir_type *type;
} t_stretch;

/* Call `call` of a program was made of t->todo.at[todo]. */
typedef struct t_made_of {
	int32_t call, todo;
} t_made_of;

/* What the current evaluation has run, in several programs: journal.c */
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

/*
 * What compiled functions and regions do for the values that they are made of.
 * Nothing of value/ or tape/ calls them by name: func/tensors.c fills it in.
 */
typedef struct t_functions {
	void (*run_region)(tensors *t, t_call *c);
	t_trace *(*region_tracked)(tensors *t, t_trace *f);
	const t_back *(*region_back)(tensors *t, const t_trace *f);
	const t_back *(*back_of)(tensors *t, t_trace *f, const bool *seeded);
	t_trace *(*back_live)(tensors *t, const t_trace *f, const t_back *b);
} t_functions;

/* A loop whose rounds are computed: what is the same in all of them. */
typedef struct t_rounds {
	const t_value **same;
	int32_t n;
	int64_t id; /* of this run of it */
} t_rounds;

struct tensors {
	arena *a;
	env *e;
	tensor_backend b;
	const t_functions *functions;
	ir_table *table;
	map *entry_of; /* row, attributes, types -> number */
	VEC(t_entry *) entry;
	map *writable; /* views that were proved to be writable */
	map *plan_of; /* structure -> number */
	VEC(t_plan) plan;
	int64_t memory_limit; /* of bytes kept for gradients; -1: none */
	map *choice_of; /* structure -> number */
	VEC(const char *) choice; /* what is kept: see keep.c */
	VEC(char) key; /* scratch of a lookup */
	const char *file;
	int32_t line;
	VEC(const char *) files; /* of recordings */
	int64_t next_id, stamp;
	tensor invalid, stale; /* the result of a failed call; a dropped tensor */
	t_chunk *chunks; /* of numbers of handles */
	VEC(tensor *) scope; /* the newest handle of each open scope */
	t_call *dying; /* calls to be freed */
	bool is_dying;
	bool poison; /* freed memory is overwritten: for tests */
	enum tensor_rule dropped; /* for tests; 0: none */
	int32_t no_grad; /* depth */
	int64_t walk, n_walks;
	t_calls path;  /* of the current walk */
	t_values met;
	t_slot *slots;
	/* free nodes */
	t_value *values;
	t_call *calls;
	t_view *views;
	t_storage *storages;
	t_storage *live; /* the newest live storage */
	tensor *handles;
	t_buffer *spare; /* structs without memory */
	t_buffer *imported; /* memory of others: the newest */

	VEC(t_buffer *) free;
	int32_t n_owned; /* number of buffers with internal memory */
	/* of the current flush; the memory is reused by the next one */
	VEC(t_value *) asked;
	VEC(t_call *) todo;
	VEC(t_value *) stack;
	VEC(t_value *) input;
	VEC(t_stretch) stretch; /* by input: the part of its value */
	VEC(t_value *) base; /* by input: the newest value in its memory */
	VEC(t_value *) output;
	VEC(t_buffer *) made;
	VEC(int32_t) code, count;
	VEC(const void *) in;
	VEC(int64_t) version;
	VEC(void *) out;
	bool placed;	/* a tensor has, or may have, a placement */
	bool strict;	/* lenses are errors */
	VEC(char) whole; /* the last distributed value that was read */
	VEC(int32_t) in_place, want;
	VEC(t_value *) retired; /* copies of lenses that were replaced */
	VEC(bool) seeded; /* of the current call in a walk */
	VEC(t_read) operand;
	t_capture *capture; /* the current recording of a function, or NULL */
	int64_t n_captures, capture_id; /* its id, or 0 */
	int32_t n_traces;
	struct t_regions *regions; /* NULL until one is used */
	int32_t running; /* depth of running regions: calls of bodies have no gradient */
	const t_rounds *rounds; /* of the innermost loop that runs, or NULL */
	int64_t n_loops;	/* that have run */
	/* of an evaluation that fails: undo.c */
	const t_plan *ran; /* the program that was running, or NULL */
	t_call *region;	   /* the region that was running, or NULL */
	t_journal journal;
	VEC(int64_t) blamed, bad_step; /* ids of calls; steps */
	VEC(int64_t) whole_step; /* steps of which a write has run */
	t_calls judge;
	int64_t judging;
	bool is_undoing;
	int64_t evaluated; /* calls up to this id are of an evaluation that ran */
	int64_t walking; /* id of the current call of a walk, or 0 */
	int32_t steps;	 /* depth of tensor_step */
	int64_t step, n_steps;
	bool step_fails; /* a call in the step has failed */
	VEC(t_made_of) made_of; /* of the last program */
	tensor_stats stats;
};

/* The place in the host's code of the current call. */
static inline loc t_here(const tensors *t)
{
	return (loc){.file = t->file, .line = t->line};
}

/* Adds to the code by which programs are told apart. */
static inline void t_code(tensors *t, int32_t x)
{
	*vec_push(t->a, &t->code) = x;
}

/* memory.c */
t_buffer *t_buffer_new(tensors *t, size_t bytes);
/* A copy of the elements of v, which a write will replace. */
/* Elements on the device: copied there, from the host, or set to zero. */
void t_copy(tensors *t, void *to, const void *from, size_t n);
void t_put(tensors *t, void *to, const void *host, size_t n);
void t_zero(tensors *t, void *to, size_t n);
int64_t t_load_i64(tensors *t, const t_value *v); /* its first element */
t_buffer *t_buffer_copy(tensors *t, const t_value *v);
/* Counts a copy of v that a reference needs (not one for undoing). */
void t_count_copy(tensors *t, const t_value *v);
t_buffer *t_buffer_import(tensors *t, void *data, size_t bytes);
void t_buffer_drop(tensors *t, t_buffer *b);
t_value *t_value_new(tensors *t, const ir_type *type);
void t_value_keep(t_value *v); /* adds a reference that needs its elements */
void t_value_drop(tensors *t, t_value *v);
/* After a failure: gives v its memory back. */
void t_give_back(tensors *t, t_value *v, t_value *taken);
void t_data_drop(tensors *t, t_value *v); /* the reference no longer needs elements */
void t_elements_drop(tensors *t, t_value *v); /* v becomes a value not computed */
void t_read_end_data(tensors *t, t_read *r);
void t_read_begin_data(t_read *r); /* it needs elements again */
/* The references that need its elements, besides the journal. */
static inline int32_t t_data(const t_value *v)
{
	return v->data - (v->held > 0);
}
/* Its call refers to it, without keeping the call alive; ends that. */
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

/* handle.c */
void t_handles_new(tensors *t); /* they end with the arena of t */
void t_handle_room(tensors *t, tensor *x); /* new memory gets a number */
void t_handle_begin(tensor *x); /* a number that no other handle has had */
void t_handle_end(const tensor *x);

/* record.c */
tensor *t_check(const tensors *t, const tensor *x);
/* If the history of a parameter was freed, its value becomes a leaf again. */
void t_renew(tensors *t, t_storage *s);

void t_key_add(tensors *t, const void *data, size_t n); /* to t->key */
t_entry *t_entry_of(tensors *t, const ir_inst *inst); /* a new one */
t_entry *t_entry_find(tensors *t, const ir_row *row, int32_t n,
	const ir_type *const *type, int32_t n_attrs, const ir_attr *attr);
/* The entry of result r of a view alone. */
t_entry *t_entry_part(tensors *t, t_entry *e, int32_t r);
t_entry *t_entry_named(tensors *t, const char *row, int32_t n,
	const ir_type *const *type, int32_t n_attrs, const ir_attr *attr);
/* A call on values; its results have no handle yet: refs 0. */
t_call *t_record(tensors *t, t_entry *e, int32_t n, const t_read *arg);
/* Records a write; its result is the next version of to.v. */
t_value *t_record_write(tensors *t, t_read to, t_read value);
/* An elementwise copy of v through view w, as a value. */
t_value *t_copy_of(tensors *t, t_value *v, t_view *w, const ir_type *type);

/* track.c */
const t_rule *t_rule_of(
	tensors *t, t_entry *e, uint64_t wanted, uint64_t seeded);
void t_track(tensors *t, t_call *c); /* sets `tracked` of it and its results */
bool t_tape_reads(tensors *t, const t_call *c, int32_t arg);
/* After it has run: keeps operands that the adjoint needs, drops the others. */
void t_tape_hold(tensors *t, t_call *c);

/* a value is kept if it has at most this number of bytes per unit of the work to
 * recompute it: roughly the bytes that memory moves meanwhile */
#define T_BYTES_PER_WORK 0.5
int64_t t_call_work(const t_call *c); /* to compute its results */
/* keep.c: chooses what the calls of a flush keep; true: something is not stored. */
bool t_keep_choose(tensors *t);
/* Are the elements of an operand kept after the call has run? */
bool t_keep_holds(tensors *t, const t_call *c, int32_t arg);

/* Makes v a leaf, whose gradient is that of the storage. */
void t_leaf(tensors *t, t_storage *s, t_value *v);
t_slot *t_slot_of(tensors *t, t_storage *s);
void t_slot_drop(tensors *t, t_slot *s);

/* A call of a trace; its results have no handle yet. */
t_call *t_record_trace(tensors *t, t_trace *f, const t_read *arg);

/* capture.c */
/* The newest version of s in the current recording. */
t_value *t_cur(tensors *t, t_storage *s);
void t_captured(tensors *t, t_call *c); /* call it when c was recorded */

/* version.c: a value through a view, or the value (view NULL) */
typedef struct t_seen {
	const t_value *v;
	const t_view *view;
} t_seen;
const ir_type *t_seen_type(const t_seen *x);

/* "[2*i + 1, j]": the index in v of element (i, j) of the view */
void t_print_place(tensors *t, str *s, const t_seen *x);
/* Can two views of values of one type have a common element? */
bool t_overlap(tensors *t, const t_seen *x, const t_seen *y);

/* The next version after v: the call that writes it, and through which view. */
typedef struct t_version {
	t_value *next;
	const t_view *view;
	int32_t call;
} t_version;
/* The result of c that is the next version of operand i; -1: c does not write it. */
int32_t t_result_of_write(const t_call *c, int32_t i);
bool t_next_version(const t_trace *f, const t_value *v, t_version *out);
/* A new view, with one reference: w applied to `below`. */
t_view *t_view_on(tensors *t, t_view *below, const t_view *w);

/* record.c: is v what the gradient of the storage is of? */
bool t_is_leaf(const t_storage *s, const t_value *v);

/* place.c */
/* Bytes of this process's part of v with placement `where`. */
size_t t_room(const tensors *t, const t_value *v, int32_t where);
void t_move(tensors *t, t_value *v, int32_t to);
/* Elements that go to another placement: addresses of the device, or the host's. */
typedef struct t_exchange {
	tensors *t;
	const ir_type *type;
	int32_t from;
	const void *in;
	bool in_is_host;
	int32_t to;
	void *out;
	bool out_is_host;
} t_exchange;
void t_exchange_run(const t_exchange *x);
/* All elements of v, which is computed; valid until the next call. */
const void *t_whole(tensors *t, const t_value *v);
/* Copies all elements to the host's memory. */
void t_fetch(tensors *t, const t_value *v, void *to);
/* The read of x, through its lens if it has one; adds no references. */
t_read t_read_through(tensors *t, const tensor *x);
void t_write_through(tensors *t, const tensor *x); /* before a write to x */
void t_lens_retire(tensors *t); /* drops copies that were kept for the last call */

/*
 * program.c: makes a program of t->todo. With placements, more outputs follow those
 * of the flush, for values with a required placement: t->want, by output.
 */
ir_program *t_program(tensors *t, arena *a);

/*
 * Adds the calls that a region consists of. operand, result: values of p, by
 * operand and result of f; a result that is the next version of an operand is a
 * value of its own, and the caller writes it.
 */
typedef void t_put_region(struct tensors *t, ir_program *p, const t_trace *f,
	const int32_t *operand, int32_t *result, void *arg);

/* A trace and its backward as one program, to print or to export. */
typedef struct t_halves {
	ir_program *p;
	t_put_region *put; /* NULL: there are no regions */
	void *put_arg;
	const t_trace *f;
	const t_back *b; /* NULL: no operand has a gradient */
	/* number of the first value of each part */
	int32_t forward, seed, again, backward;
	int32_t *in, *out;    /* values: by operand and result of f */
	int32_t *read, *grad; /* by operand and result of the backward */
} t_halves;
/* The caller sets h->f and h->b. name: of f's operands; seed: of cotangents, by
 * operand of the backward; all names are distinct. */
void t_program_halves(tensors *t, arena *a, t_halves *h,
	const char *const *name, const char *const *seed);
/* Adds the calls of f to p. in, out: values of p, by operand and result of f. */
void t_program_body(tensors *t, ir_program *p, const t_trace *f,
	const int32_t *in, int32_t *out, t_put_region *put, void *put_arg);
/* Adds calls to h->p that apply a view to a value. */
int32_t t_halves_seen(tensors *t, t_halves *h, int32_t value,
	const t_view *view);

/* program.c: does the input mostly keep its elements from run to run? In rounds of
 * a loop: in all rounds. */
bool t_is_steady(const tensors *t, int32_t input);
/* Differs if other elements were at its address before; 0: it is not known. */
int64_t t_version_of(const tensors *t, int32_t input);
/* flush.c: is the view consecutive elements of its operand, in order? */
bool t_is_stretch(tensors *t, t_entry *e);
/* flush.c: detaches the results and drops the call. */
void t_finish(tensors *t, t_call *c);
/* flush.c: after it has run: keeps it for gradients, or drops it. */
void t_end_call(tensors *t, t_call *c);
/* writable.c: throws if a write through the view is not allowed; t_check_writes:
 * for all writes of a call of f through the views of its operands. */
void t_check_view(
	tensors *t, const t_value *v, const t_view *w, const char *name);
void t_check_writes(tensors *t, const t_trace *f, const t_read *arg);

/*
 * journal.c: an evaluation of several programs, between begin and end or undo. The
 * inputs of a program or region that is not the last are kept until the end.
 * t_journal_add: a call of such a program has run.
 */
void t_journal_begin(tensors *t);
void t_journal_inputs(tensors *t, bool is_last);
void t_journal_operands(tensors *t, const t_call *c, bool is_last);
void t_journal_add(tensors *t, t_call *c);
void t_journal_end(tensors *t);
void t_journal_undo(tensors *t); /* as if none of it had run */

/* undo.c: restores storages after the evaluation of v[] has failed. */
void t_undo(tensors *t, t_value *const *v, int32_t n);
bool t_changes_any(const t_call *c); /* is a result the next version of an operand? */
/* The version that a call, which has not run, will overwrite with v; or NULL. */
t_value *t_version_before(const t_value *v);
/* flush.c: finds the calls that must run for v[], in order: t->todo. */
void t_find_calls(tensors *t, t_value *const *v, int32_t n);
/* find.c: numbers v among the inputs, once for each t->stamp. */
void t_meet(tensors *t, t_value *v);
/* flush.c: evaluates v[]. */
void t_flush(tensors *t, t_value *const *v, int32_t n);

#endif
