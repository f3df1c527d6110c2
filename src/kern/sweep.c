/*
 * sweep.c: removes dead code and unneeded names. A statement is kept if it stores,
 * sets the error, or defines a value that a kept statement uses. A register is kept
 * if an instruction reads it; the statements that set other registers are removed.
 *
 * Uses are counted. Removing a statement decreases the counts of its operands, so
 * that values that only it used are removed, too: in a walk from the last
 * statement to the first, which is repeated while loops read what they set.
 *
 * A value that only the next statement uses is computed there.
 */
#include "kern/local.h"

struct sweep {
	kern_kernel *k;
	int32_t *uses; /* of values */
	int32_t *reads; /* of arrays, where they are on the stack */
	bool changed;
};

static bool has_flag(const kern_kernel *k, kern_val v, char flag)
{
	return strchr(kern_op_at(kern_at(k, v)->op)->flags, flag) != NULL;
}

static void count_form(struct sweep *w, const kern_form *f, int32_t by)
{
	for (int32_t i = 0; f != NULL && i < f->n; i++)
		w->uses[f->t[i].v] += by;
}

static void count_value(struct sweep *w, kern_val v, int32_t by);

static void count_access(struct sweep *w, const kern_access *at, int32_t by)
{
	count_form(w, at->at, by);
	count_value(w, at->mask, by);
	count_value(w, at->whole, by);
	count_value(w, at->by, by);
}

/* Counts the operands of the instruction. */
static void count_operands(struct sweep *w, kern_val v, int32_t by)
{
	const kern_value *x = kern_at(w->k, v);

	for (int32_t i = 0; i < KERN_MAX_ARGS; i++)
		count_value(w, x->arg[i], by);
	for (int32_t i = 0; i < 2; i++)
		count_form(w, x->form[i], by);
	if (x->op == KERN_LOAD) {
		count_access(w, &x->at, by);
		w->reads[x->at.array] += by;
	}
}

static void count_value(struct sweep *w, kern_val v, int32_t by)
{
	if (v != 0)
		w->uses[v] += by;
}

static void count_stmt(struct sweep *w, const kern_stmt *s, int32_t by)
{
	kern_accessed t[KERN_MOST_ACCESSED];

	count_form(w, s->lo, by);
	count_form(w, s->hi, by);
	count_value(w, s->x, by);
	if (s->kind == KERN_LET)
		count_operands(w, s->v, by);
	for (int32_t i = 0; i < s->n_acc; i++)
		count_value(w, s->acc[i], by);
	for (int32_t i = kern_accesses(s, t) - 1; i >= 0; i--) {
		count_access(w, t[i].at, by);
		if (t[i].reads)
			w->reads[t[i].at->array] += by;
	}
}

static void count_block(struct sweep *w, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		count_stmt(w, s, 1);
		count_block(w, &s->body);
		count_block(w, &s->other);
	}
}

static bool has_effect(const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++)
		if (b->list.at[i]->kind != KERN_NOTE)
			return true;
	return false;
}

static bool is_dead(const struct sweep *w, const kern_stmt *s)
{
	const kern_array *r;

	switch (s->kind) {
	case KERN_LET:
		return w->uses[s->v] == 0 && !has_flag(w->k, s->v, 'e');
	case KERN_VAR:
	case KERN_SET:
	case KERN_SET_LANE:
		return w->uses[s->v] == 0;
	case KERN_STORE:
		r = &w->k->array.at[s->at.array];
		return r->space == KERN_STACK && w->reads[s->at.array] == 0;
	case KERN_ARRAY:
		return w->reads[s->array] == 0;
	case KERN_FOR:
		return !has_effect(&s->body) && w->uses[s->after] == 0;
	case KERN_IF:
		return !has_effect(&s->body) && !has_effect(&s->other);
	case KERN_BLOCK:
		return !has_effect(&s->body);
	case KERN_PREFETCH:
	case KERN_FENCE:
	case KERN_RELOAD:
	case KERN_BARRIER:
	case KERN_TURN:
	case KERN_MMA:
	case KERN_TILES:
	case KERN_TAKE:
	case KERN_GIVE:
	case KERN_ASYNC:
	case KERN_COMMIT:
	case KERN_WAIT:
	case KERN_NOTE:
		return false;
	}
	return false;
}

/* Walks from the last statement to the first, and closes the gaps. */
static void sweep_block(struct sweep *w, kern_block *b)
{
	int32_t n = b->list.n, at = n;

	for (int32_t i = n - 1; i >= 0; i--) {
		kern_stmt *s = b->list.at[i];

		sweep_block(w, &s->other);
		sweep_block(w, &s->body);
		if (is_dead(w, s)) {
			count_stmt(w, s, -1);
			w->changed = true;
		} else {
			b->list.at[--at] = s;
		}
	}
	for (int32_t i = at; i < n; i++)
		b->list.at[i - at] = b->list.at[i];
	b->list.n = n - at;
}

/* Is `let` used only by the x of this statement? */
static bool is_for(const struct sweep *w, const kern_stmt *let,
	const kern_stmt *next)
{
	return let->kind == KERN_LET && next->x == let->v &&
	       w->uses[let->v] == 1 && !has_flag(w->k, let->v, 'e');
}

static void inline_block(struct sweep *w, kern_block *b)
{
	int32_t at = 0;

	for (int32_t i = 0; i < b->list.n; i++) {
		kern_stmt *s = b->list.at[i];

		inline_block(w, &s->body);
		inline_block(w, &s->other);
		if (i + 1 < b->list.n && is_for(w, s, b->list.at[i + 1]))
			continue;
		b->list.at[at++] = s;
	}
	b->list.n = at;
}

void kern_sweep(kern_kernel *k)
{
	struct sweep w = {.k = k,
		.uses = arena_array(k->a, int32_t, k->value.n + 1),
		.reads = arena_array(k->a, int32_t, k->array.n + 1)};

	w.uses[0] = 0;
	for (int32_t i = 0; i < k->n_phases; i++)
		count_block(&w, &k->phase[i].body);
	do {
		w.changed = false;
		for (int32_t i = k->n_phases - 1; i >= 0; i--)
			sweep_block(&w, &k->phase[i].body);
	} while (w.changed);
	for (int32_t i = 0; i < k->n_phases; i++)
		inline_block(&w, &k->phase[i].body);
}
