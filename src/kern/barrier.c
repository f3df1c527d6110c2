/*
 * barrier.c: where the warps of a block must meet.
 *
 * Consumes phases whose chunks are run by blocks of warps. Loops "by warp" deal
 * their iterations to the warps; between two of them, a cell may change hands: two
 * warps access it, one after the other, and one of the two writes.
 * Walks a phase in the order of execution with the arrays that have been accessed
 * since the last barrier. A loop is walked twice: the second time what is open
 * comes from an earlier iteration.
 *
 * The pass puts a barrier in front of the statement that accesses such an array;
 * the verifier refuses the statement. Both look at whole arrays. That iterations
 * of one loop by warp have no cell in common is shown in verify_chunks.c.
 */
#include "kern/verify.h"

struct use {
	int32_t array;
	bool write;
};

typedef VEC(struct use) uses;

struct walk {
	arena *a;
	kern_kernel *k;
	struct kern_verifier *v; /* NULL: barriers are placed */
	uses open;		 /* since the last barrier */
};

static void add(struct walk *w, uses *u, int32_t array, bool write)
{
	if (w->k->array.at[array].space == KERN_STACK)
		return;
	for (int32_t i = 0; i < u->n; i++)
		if (u->at[i].array == array && u->at[i].write == write)
			return;
	*vec_push(w->a, u) = (struct use){array, write};
}

static void add_all(struct walk *w, uses *to, const uses *from)
{
	for (int32_t i = 0; i < from->n; i++)
		add(w, to, from->at[i].array, from->at[i].write);
}

static void add_load(struct walk *w, uses *u, kern_val v)
{
	const kern_value *x = kern_at(w->k, v);

	if (v != 0 && x->op == KERN_LOAD)
		add(w, u, x->at.array, false);
}

/* What the statement accesses itself. */
static void add_own(struct walk *w, uses *u, const kern_stmt *s)
{
	kern_accessed t[KERN_MOST_ACCESSED];

	if (s->kind == KERN_LET)
		add_load(w, u, s->v);
	add_load(w, u, s->x);
	for (int32_t i = kern_accesses(s, t) - 1; i >= 0; i--) {
		if (t[i].writes)
			add(w, u, t[i].at->array, true);
		if (t[i].reads)
			add(w, u, t[i].at->array, false);
	}
}

/* .. and what the statements in it access. */
static void add_below(struct walk *w, uses *u, const kern_stmt *s)
{
	add_own(w, u, s);
	for (int32_t i = 0; i < s->body.list.n; i++)
		add_below(w, u, s->body.list.at[i]);
	for (int32_t i = 0; i < s->other.list.n; i++)
		add_below(w, u, s->other.list.at[i]);
}

/* The array that changes hands; -1: none. */
static int32_t conflict(const struct walk *w, const uses *u)
{
	for (int32_t i = 0; i < u->n; i++)
		for (int32_t j = 0; j < w->open.n; j++)
			if ((u->at[i].write || w->open.at[j].write) &&
				kern_arrays_overlap(w->k, u->at[i].array,
					w->open.at[j].array))
				return u->at[i].array;
	return -1;
}

static void put_barrier(struct walk *w, kern_block *b, int32_t at)
{
	kern_stmt *s = arena_make(w->a, kern_stmt);

	s->kind = KERN_BARRIER;
	vec_push(w->a, &b->list);
	for (int32_t i = b->list.n - 1; i > at; i--)
		b->list.at[i] = b->list.at[i - 1];
	b->list.at[at] = s;
}

/* Accesses these; returns whether a barrier was put in front of statement i. */
static bool access(struct walk *w, const uses *u, kern_block *b, int32_t i)
{
	int32_t array = conflict(w, u);

	if (array >= 0 && w->v != NULL) {
		w->v->s = b->list.at[i];
		kern_refuse(w->v, "barrier",
			"%s may have been accessed by other warps since the last barrier: a `barrier` must stand in front of this",
			kern_access_text(w->v, array));
	}
	if (array >= 0) {
		put_barrier(w, b, i);
		w->open.n = 0;
	}
	add_all(w, &w->open, u);
	return array >= 0;
}

static uses copy(struct walk *w, const uses *from)
{
	uses to = {0};

	add_all(w, &to, from);
	return to;
}

static void walk(struct walk *w, kern_block *b);

bool kern_is_once(kern_kernel *k, const kern_stmt *s)
{
	int64_t n;

	return kern_form_is_const(kern_form_sub(k, s->hi, s->lo), &n) &&
	       n <= s->step;
}

static void loop(struct walk *w, kern_stmt *s)
{
	uses before = copy(w, &w->open);

	walk(w, &s->body);
	if (!kern_is_once(w->k, s))
		walk(w, &s->body);
	add_all(w, &w->open, &before); /* it may have no iteration */
}

static void condition(struct walk *w, kern_stmt *s)
{
	uses before = copy(w, &w->open), then;

	walk(w, &s->body);
	then = copy(w, &w->open);
	w->open.n = 0;
	add_all(w, &w->open, &before);
	walk(w, &s->other);
	add_all(w, &w->open, &then);
}

/* Does it have a loop by warp, or a copy that all warps begin together? */
static bool deals(const kern_stmt *s)
{
	for (int32_t i = 0; i < s->body.list.n; i++)
		if (deals(s->body.list.at[i]))
			return true;
	for (int32_t i = 0; i < s->other.list.n; i++)
		if (deals(s->other.list.at[i]))
			return true;
	return (s->kind == KERN_FOR && s->by_warp) || (s->kind == KERN_ASYNC && s->bulk);
}

/* A loop that all warps walk alike only reads: one barrier in front of it is enough. */
static bool is_alike(const struct walk *w, const kern_stmt *s)
{
	return w->v == NULL && s->kind == KERN_FOR && !deals(s);
}

static void walk(struct walk *w, kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		kern_stmt *s = b->list.at[i];
		bool warps = s->kind == KERN_FOR && s->by_warp;
		uses u = {0};

		if (s->kind == KERN_BARRIER)
			w->open.n = 0;
		if (warps || is_alike(w, s))
			add_below(w, &u, s);
		else
			add_own(w, &u, s);
		if (u.n > 0 && access(w, &u, b, i))
			i++;
		if (warps)
			continue;
		if (s->kind == KERN_FOR)
			loop(w, s);
		else if (s->kind == KERN_IF)
			condition(w, s);
		else
			walk(w, &s->body);
	}
}

void kern_place_barriers(kern_kernel *k)
{
	struct walk w = {.a = k->a, .k = k};

	for (int32_t i = 0; i < k->n_phases; i++) {
		w.open.n = 0;
		if (k->phase[i].warps > 1)
			walk(&w, &k->phase[i].body);
	}
}

void kern_verify_barriers(struct kern_verifier *v)
{
	struct walk w = {.a = v->a, .k = v->k, .v = v};

	walk(&w, &v->k->phase[v->phase].body);
}
