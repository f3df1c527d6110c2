/*
 * narrow.c: whether all index arithmetic of a kernel fits 32 bits.
 *
 * Walks a kernel once, in the order of its text. Each integer has a reach, which its
 * absolute value does not exceed; that of a form is the sum of |factor| * reach of
 * its values, so that no order of its additions exceeds it. Lanes count, and the
 * steps that take a loop's variable beyond its end. Conditions around are not
 * looked at: the text of a printer computes what they cut, too.
 *
 * The pass sets `narrow` where nothing goes beyond 32 bits; the verifier refuses
 * the statement that does. An index from data counts as the check that clamps it.
 */
#include "kern/verify.h"

struct walk {
	kern_kernel *k;
	kern_range range; /* reach */
	struct kern_verifier *v; /* NULL: nothing is refused */
	uint64_t *stored; /* by array of a block: what the indices in it reach */
	uint64_t worst;
	int32_t warps;
};

static uint64_t size_of(int64_t x)
{
	return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

static uint64_t larger(uint64_t x, uint64_t y)
{
	return x > y ? x : y;
}

static uint64_t plus(uint64_t x, uint64_t y)
{
	return x >= KERN_BEYOND - y ? KERN_BEYOND : x + y;
}

static uint64_t times(uint64_t x, uint64_t y)
{
	return y != 0 && x >= KERN_BEYOND / y ? KERN_BEYOND : x * y;
}

static void reaches(struct walk *w, uint64_t n)
{
	w->worst = larger(w->worst, n);
	if (w->v != NULL && n > INT32_MAX)
		kern_refuse(w->v, "number",
			"an integer of this statement may exceed 32 bits, but the kernel says `indices i32`");
}

/* f + what is added to it, at most */
static uint64_t form(struct walk *w, const kern_form *f, uint64_t more)
{
	uint64_t n = 0;

	if (f == NULL)
		return 0;
	n = plus(kern_reach(&w->range, f), more);
	reaches(w, n);
	return n;
}

static uint64_t lanes_of(kern_type t, int64_t stride)
{
	return times(size_of(stride), (uint64_t)t.lanes - 1);
}

/* So many rows of an array, `step` apart, and `more` elements of each. */
static void rows(struct walk *w, const kern_access *at, int64_t step,
	int32_t n, int32_t more)
{
	form(w, at->at, plus(times(size_of(step), (uint64_t)n), (uint64_t)more));
}

/* ---- values ---- */

static uint64_t of_check(const kern_kernel *k, int64_t check)
{
	const kern_check *c = &k->check.at[check - 1];

	return check < 1 || check > k->check.n
		       ? KERN_BEYOND
		       : larger(size_of(c->lo), size_of(c->hi));
}

/* The numbers behind its forms, which are computed with. */
static uint64_t numbers(struct walk *w, const kern_value *x)
{
	uint64_t n = size_of(x->num[0]);

	if (x->op == KERN_CLAMP)
		n = larger(n, size_of(x->num[1]));
	reaches(w, n);
	return n;
}

/* Is it an integer made of forms? */
static bool is_of_forms(const kern_op_row *r)
{
	return strchr(r->operands, 'F') != NULL &&
	       strchr("IJ", r->types[strlen(r->types) - 1]) != NULL;
}

/* What is at most n, by a number, rounded down: below 0 away from it. */
static uint64_t divided(uint64_t n, uint64_t by)
{
	return n < KERN_BEYOND && by > 1 ? n / by + 1 : n;
}

static void value(struct walk *w, kern_val v)
{
	const kern_value *x = kern_at(w->k, v);
	uint64_t more = lanes_of(x->type, 1), n;

	if (v == 0)
		return;
	n = larger(form(w, x->form[0], more), form(w, x->form[1], more));
	if (x->op == KERN_DIV || x->op == KERN_FLOOR)
		n = divided(n, numbers(w, x));
	else if (x->op == KERN_MOD || x->op == KERN_CLAMP)
		n = numbers(w, x);
	else if (x->op == KERN_CHECK)
		n = of_check(w->k, x->num[0]);
	else if (x->op == KERN_LOAD &&
		w->k->array.at[x->at.array].space == KERN_STACK)
		n = w->stored[x->at.array];
	else if (!is_of_forms(kern_op_at(x->op)))
		n = KERN_BEYOND; /* data */
	if (x->op == KERN_LOAD)
		form(w, x->at.at, lanes_of(x->type, x->at.stride));
	w->range.reach[v] = n;
}

/* ---- statements ---- */

static void block(struct walk *w, const kern_block *b);

static void loop(struct walk *w, const kern_stmt *s)
{
	uint64_t step = times((uint64_t)s->step,
		(uint64_t)(s->by_warp ? w->warps : 1));
	uint64_t lo = form(w, s->lo, step), hi = form(w, s->hi, step);

	w->range.reach[s->v] = larger(lo, hi) >= KERN_BEYOND
				       ? KERN_BEYOND
				       : larger(lo, hi) - step;
	if (s->after != 0)
		w->range.reach[s->after] = larger(lo, hi);
	block(w, &s->body);
}

static void statement(struct walk *w, const kern_stmt *s)
{
	if (w->v != NULL)
		w->v->s = s;
	if (s->kind == KERN_FOR) {
		loop(w, s);
		return;
	}
	if (s->kind == KERN_LET)
		value(w, s->v);
	if (w->range.reach[s->x] == 0)
		value(w, s->x);
	form(w, s->lo, 0);
	if (s->kind == KERN_STORE)
		form(w, s->at.at,
			lanes_of(kern_at(w->k, s->x)->type, s->at.stride));
	else if (s->kind == KERN_TURN) {
		rows(w, &s->at, s->n, s->type.lanes,
			s->type.lanes * kern_turn_unit(s));
		rows(w, &s->from, s->m, s->type.lanes,
			s->type.lanes * kern_turn_unit(s));
	} else if (s->kind == KERN_ASYNC) {
		rows(w, &s->at, s->n, s->rows, s->width);
		rows(w, &s->from, s->m, s->rows, s->width);
	} else if (s->kind == KERN_TILES) {
		rows(w, &s->to, s->l, s->rows, s->width);
		rows(w, &s->at, s->n, s->rows, s->terms);
		rows(w, &s->from, s->m, s->terms, KERN_TILE_ACROSS * KERN_TILE_BYTES);
	} else if (s->n_acc > 0) {
		int32_t width = KERN_MMA_EACH * s->n_acc;
		int32_t terms = s->warps > 0 ? KERN_SWIZZLED
					     : kern_mma_terms(s->type.dt);

		rows(w, &s->at, s->n, KERN_MMA_ROWS, width);
		if (s->warps > 0) /* of its rows, which are more terms */
			rows(w, &s->at, s->n, s->at_turned ? terms : KERN_MMA_ROWS,
				terms);
		if (s->kind == KERN_MMA && s->from_turned)
			rows(w, &s->from, s->m, width, terms);
		else if (s->kind == KERN_MMA)
			rows(w, &s->from, s->m, terms, width);
	}
	block(w, &s->body);
	block(w, &s->other);
}

static void block(struct walk *w, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++)
		statement(w, b->list.at[i]);
}

/* What arrays of blocks hold: indices, if all that is stored was checked. */
static void find_stored(struct walk *w, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		const kern_value *x = kern_at(w->k, s->x);
		uint64_t *n = &w->stored[s->at.array];
		kern_accessed t[KERN_MOST_ACCESSED];

		if (s->kind == KERN_STORE)
			*n = larger(*n, x->op == KERN_CHECK
						? of_check(w->k, x->num[0])
						: KERN_BEYOND);
		for (int32_t j = kern_accesses(s, t) - 1; j >= 0; j--)
			if (t[j].writes && s->kind != KERN_STORE)
				w->stored[t[j].at->array] = KERN_BEYOND;
		find_stored(w, &s->body);
		find_stored(w, &s->other);
	}
}

static uint64_t walk(kern_kernel *k, struct kern_verifier *v)
{
	arena *a = v != NULL ? v->a : arena_child(k->a);
	struct walk w = {.k = k, .range = kern_range_new(k, a), .v = v};

	w.range.reach = arena_array(a, uint64_t, k->value.n + 1);
	w.stored = arena_array(a, uint64_t, k->array.n + 1);
	for (int32_t i = 0; i < k->n_phases; i++)
		find_stored(&w, &k->phase[i].body);
	for (int32_t i = 0; i < k->n_phases; i++) {
		w.warps = k->phase[i].warps;
		w.range.reach[k->phase[i].chunk] =
			(uint64_t)k->phase[i].n_chunks;
		block(&w, &k->phase[i].body);
	}
	if (v == NULL)
		arena_free(a);
	return w.worst;
}

int64_t kern_narrow(kern_kernel *k)
{
	uint64_t worst = walk(k, NULL);

	k->narrow = worst <= INT32_MAX;
	return worst < KERN_BEYOND ? (int64_t)worst : INT64_MAX;
}

void kern_verify_narrow(struct kern_verifier *v)
{
	if (v->k->narrow)
		walk(v->k, v);
}
