/*
 * sync.c: finds where the lanes of a warp must meet, because a cell of memory
 * changes hands: one lane wrote it, another one reads or writes it next; or one
 * lane read it, another one writes it next.
 *
 * Walks a phase in the order of execution with the accesses since the last
 * meeting. Two accesses of one memory conflict if one writes, with two exceptions:
 * vectors of the whole warp with the same address and stride, where each lane
 * accesses its own cell; and addresses whose constants keep them apart.
 *
 * Bodies of loops of several iterations are walked twice: the second time the
 * accesses of the first are those of an earlier iteration. If the address depends
 * on the loop, it is then another one, and the two conflict unless the steps of the
 * loops are so long that different iterations have no cell in common.
 */
#include "target/cuda/local.h"

typedef struct touch {
	int32_t memory;
	const kern_form *at;
	int64_t stride;
	int32_t lanes; /* 0: any cells */
	bool write;
	bool stale; /* of an earlier iteration of a loop that `at` depends on */
} touch;

typedef VEC(touch) touches;

struct finder {
	arena *a;
	const kern_kernel *k;
	const int32_t *cells; /* spread's */
	map *sync;
	int32_t *memory; /* [array] arrays that share bytes have one number */
	touches open;	 /* since the last meeting */
	touches own;	 /* of this statement, so far */
	bool *made;	 /* [value] defined in the loop that `age` looks at */
	bool *in_loops;	 /* [value] defined in the outermost open loop */
	VEC(const kern_stmt *) loop; /* that are open */
};

/* ---- memories ---- */

static bool share(const kern_kernel *k, int32_t i, int32_t j)
{
	const kern_array *x = &k->array.at[i], *y = &k->array.at[j];
	int64_t nx = x->elems * (int64_t)dtype_size(kern_stored(x->dtype));
	int64_t ny = y->elems * (int64_t)dtype_size(kern_stored(y->dtype));

	if (x->space != y->space || x->space == KERN_STACK)
		return false;
	if (x->space == KERN_PARAM)
		return k->shared || x->in == j + 1 || y->in == i + 1;
	return x->offset < y->offset + ny && y->offset < x->offset + nx;
}

static void find_memories(struct finder *f)
{
	f->memory = arena_array(f->a, int32_t, f->k->array.n + 1);
	for (int32_t i = 0; i < f->k->array.n; i++)
		f->memory[i] = i;
	for (int32_t i = 0; i < f->k->array.n; i++)
		for (int32_t j = 0; j < i; j++) {
			int32_t old = f->memory[i], to = f->memory[j];

			if (old == to || !share(f->k, i, j))
				continue;
			for (int32_t l = 0; l <= i; l++)
				if (f->memory[l] == old)
					f->memory[l] = to;
		}
}

/* ---- conflicts ---- */

static int64_t magnitude(int64_t n)
{
	return n < 0 ? -n : n;
}

/* One digit of an address: what an iteration of a loop adds to it, and how many
 * iterations there are; n < 0: that is not known. */
typedef struct digit {
	int64_t step, n;
} digit;

typedef VEC(digit) digits;
typedef VEC(kern_term) terms;

/* Adds times * coef of v. False: these numbers are too large. */
static bool add_term(
	struct finder *f, terms *to, kern_val v, int64_t times, int64_t coef)
{
	if (magnitude(times) > INT32_MAX || magnitude(coef) > INT32_MAX)
		return false;
	for (int32_t i = 0; i < to->n; i++)
		if (to->at[i].v == v)
			return !__builtin_add_overflow(to->at[i].coef,
				times * coef, &to->at[i].coef);
	*vec_push(f->a, to) = (kern_term){.v = v, .coef = times * coef};
	return true;
}

/* Takes the term of v out: its factor, or 0. */
static int64_t take_term(terms *from, kern_val v)
{
	for (int32_t i = 0; i < from->n; i++)
		if (from->at[i].v == v) {
			kern_term t = from->at[i];

			from->at[i] = from->at[--from->n];
			return t.coef;
		}
	return 0;
}

/*
 * The digits of an address: each open loop, from the innermost one out, counts
 * from where it begins, and where it begins is part of the address. So of
 *
 *   for i = 8 c .. 8 c + 8 { for j = i .. i + 64 step 32 { x[j - i + 72 i - 576 c] } }
 *
 * the digits are j (2 iterations by 32) and i (8 by 72). False: something else
 * changes in the loops, or numbers are too large.
 */
static bool digits_of(struct finder *f, const kern_form *at, digits *out)
{
	terms rest = {0};

	for (int32_t i = 0; i < at->n; i++)
		if (!add_term(f, &rest, at->t[i].v, 1, at->t[i].coef))
			return false;
	for (int32_t i = f->loop.n - 1; i >= 0; i--) {
		const kern_stmt *l = f->loop.at[i];
		int64_t coef = take_term(&rest, l->v), n = -1;

		if (coef == 0)
			continue;
		if (magnitude(coef) > INT32_MAX || l->step > INT32_MAX)
			return false;
		for (int32_t j = 0; j < l->lo->n; j++)
			if (!add_term(f, &rest, l->lo->t[j].v, coef,
				    l->lo->t[j].coef))
				return false;
		if (kern_form_apart(l->lo, l->hi, &n) && n <= INT32_MAX)
			n = n > 0 ? (n - 1) / l->step + 1 : 0;
		else
			n = -1;
		*vec_push(f->a, out) = (digit){magnitude(coef) * l->step, n};
	}
	for (int32_t i = 0; i < rest.n; i++)
		if (rest.at[i].coef != 0 && f->in_loops[rest.at[i].v])
			return false;
	return true;
}

/*
 * Do cells from an address of this form to `reach` behind it, in different
 * iterations of the open loops, have none in common? If all that changes are
 * digits of a number: the step of each is longer than all that smaller ones reach.
 */
static bool are_apart(struct finder *f, const touch *t, int64_t reach)
{
	digits d = {0};

	if (!digits_of(f, t->at, &d))
		return false;
	while (d.n > 0) {
		int32_t first = 0;

		for (int32_t i = 1; i < d.n; i++)
			if (d.at[i].step < d.at[first].step)
				first = i;
		if (d.at[first].step <= reach)
			return false;
		if (d.n == 1)
			return true;
		if (d.at[first].n < 0 || d.at[first].step > INT32_MAX)
			return false;
		if (d.at[first].n > 0)
			reach += d.at[first].step * (d.at[first].n - 1);
		d.at[first] = d.at[--d.n];
	}
	return true;
}

/* Are both forms the same sum, plus a constant? *by: that of y less that of x. */
static bool same_sum(const kern_form *x, const kern_form *y, int64_t *by)
{
	if (x->n != y->n || __builtin_sub_overflow(y->c0, x->c0, by))
		return false;
	for (int32_t i = 0; i < x->n; i++)
		if (x->t[i].v != y->t[i].v || x->t[i].coef != y->t[i].coef)
			return false;
	return *by <= INT32_MAX && *by >= -INT32_MAX;
}

static bool conflict(struct finder *f, const touch *x, const touch *y)
{
	bool few = x->lanes < CUDA_WARP || y->lanes < CUDA_WARP;
	int64_t by, wx, wy;

	if (x->memory != y->memory || (!x->write && !y->write))
		return false;
	if (x->at == NULL || y->at == NULL || x->stride < 0 || y->stride < 0 ||
		x->stride > INT32_MAX || y->stride > INT32_MAX ||
		!same_sum(x->at, y->at, &by))
		return true;
	wx = (x->lanes - 1) * x->stride;
	wy = (y->lanes - 1) * y->stride;
	if (by > wx || by < -wy) /* no cell in common, in one iteration */
		return x->stale &&
		       !are_apart(f, x, by > 0 ? by + wy : wx - by);
	/* each lane has neighbours of its own, which begin at multiples of the stride */
	if (x->stride == y->stride && x->stride > 0 && by % x->stride != 0)
		return x->stale &&
		       !are_apart(f, x, by > 0 ? by + wy : wx - by);
	if (by != 0 || x->stride != y->stride || x->lanes != y->lanes)
		return true;
	/* one thread writes what has few lanes, but more than one reads it */
	if (few && !(x->write && y->write))
		return true;
	return x->stale && x->lanes > 1 && !are_apart(f, x, wx);
}

/* ---- the walk ---- */

static void meet(struct finder *f, const kern_stmt *s, spread_sync when)
{
	map_set(f->sync, &s, sizeof s,
		map_get(f->sync, &s, sizeof s, 0) | when);
	f->open.n = 0;
}

static bool same(const touch *x, const touch *y)
{
	return x->memory == y->memory && x->at == y->at &&
	       x->stride == y->stride && x->lanes == y->lanes &&
	       x->write == y->write && x->stale == y->stale;
}

static void put(struct finder *f, const touch *t)
{
	for (int32_t i = 0; i < f->open.n; i++)
		if (same(&f->open.at[i], t))
			return;
	*vec_push(f->a, &f->open) = *t;
}

/* Adds the access of statement s, behind a meeting if it needs one. What a
 * statement reads, it reads before it writes, and behind a meeting for any of it. */
static void add(struct finder *f, const kern_stmt *s, const touch *t)
{
	for (int32_t i = 0; i < f->open.n; i++)
		if (conflict(f, &f->open.at[i], t)) {
			meet(f, s, t->write ? SYNC_WRITE : SYNC_READ);
			for (int32_t j = 0; j < f->own.n && !t->write; j++)
				put(f, &f->own.at[j]);
			break;
		}
	put(f, t);
	*vec_push(f->a, &f->own) = *t;
}

static void access_of(struct finder *f, const kern_stmt *s,
	const kern_access *at, int32_t lanes, bool write)
{
	touch t = {.memory = f->memory[at->array],
		.at = at->at,
		.stride = lanes > 1 ? at->stride : 0,
		.lanes = lanes,
		.write = write};

	if (f->cells[at->array] == 0)
		add(f, s, &t);
}

static void any_cells(
	struct finder *f, const kern_stmt *s, int32_t array, bool write)
{
	touch t = {.memory = f->memory[array], .write = write};

	add(f, s, &t);
}

static void loads_of(struct finder *f, const kern_stmt *s, kern_val v)
{
	const kern_value *x = kern_at(f->k, v);

	if (v != 0 && x->op == KERN_LOAD)
		access_of(f, s, &x->at, x->type.lanes, false);
}

static void walk(struct finder *f, const kern_block *b, bool again);

/* Notes the values that the statement defines. */
static void mark(bool *made, const kern_stmt *s, bool yes)
{
	if (s->v != 0)
		made[s->v] = yes;
	if (s->after != 0)
		made[s->after] = yes;
	for (int32_t i = 0; i < s->body.list.n; i++)
		mark(made, s->body.list.at[i], yes);
	for (int32_t i = 0; i < s->other.list.n; i++)
		mark(made, s->other.list.at[i], yes);
}

/* The accesses whose addresses the loop changes are of an earlier iteration. */
static void age(struct finder *f, const kern_stmt *loop)
{
	mark(f->made, loop, true);
	for (int32_t i = 0; i < f->open.n; i++) {
		touch *t = &f->open.at[i];

		for (int32_t j = 0; t->at != NULL && j < t->at->n; j++)
			t->stale |= f->made[t->at->t[j].v];
	}
	mark(f->made, loop, false);
}

static touches copy(struct finder *f, const touches *from)
{
	touches to = {0};

	for (int32_t i = 0; i < from->n; i++)
		*vec_push(f->a, &to) = from->at[i];
	return to;
}

static void join(struct finder *f, const touches *other)
{
	for (int32_t i = 0; i < other->n; i++)
		put(f, &other->at[i]);
}

static bool is_once(const kern_stmt *loop)
{
	int64_t n;

	return kern_form_apart(loop->lo, loop->hi, &n) && n <= loop->step;
}

static void loop(struct finder *f, const kern_stmt *s, bool again)
{
	touches before = copy(f, &f->open);

	if (f->loop.n == 0)
		mark(f->in_loops, s, true);
	*vec_push(f->a, &f->loop) = s;
	walk(f, &s->body, again);
	if (!again && !is_once(s)) {
		age(f, s);
		walk(f, &s->body, true);
	}
	age(f, s);
	f->loop.n--;
	if (f->loop.n == 0)
		mark(f->in_loops, s, false);
	join(f, &before); /* the loop may have no iteration */
}

/* f without its term of v, whose factor becomes *by */
static const kern_form *without(
	struct finder *f, const kern_form *at, kern_val v, int64_t *by)
{
	kern_form *g = arena_copy(f->a, at,
		sizeof *at + (size_t)at->n * sizeof *at->t);

	*by = 0;
	g->n = 0;
	for (int32_t i = 0; i < at->n; i++)
		if (at->t[i].v == v)
			*by = at->t[i].coef;
		else
			g->t[g->n++] = at->t[i];
	return g;
}

/* What lanes access in a loop by lane: each has cells of its own, or reads. */
static void access_by_lane(struct finder *f, const kern_stmt *loop,
	const kern_access *at, bool write, touches *out)
{
	touch t = {.memory = f->memory[at->array], .write = write};

	t.at = without(f, at->at, loop->v, &t.stride);
	t.lanes = t.stride != 0 ? (int32_t)loop->hi->c0 : 1;
	for (int32_t i = 0; i < at->at->n && t.at != NULL; i++)
		if (at->at->t[i].v > loop->v) { /* by a digit of the lane */
			t.at = NULL;
			t.lanes = 0;
		}
	*vec_push(f->a, out) = t;
}

static void accesses_by_lane(struct finder *f, const kern_stmt *loop,
	const kern_block *b, touches *out)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		const kern_value *v = kern_at(f->k, s->v);
		const kern_value *x = kern_at(f->k, s->x);

		if (s->kind == KERN_LET && v->op == KERN_LOAD)
			access_by_lane(f, loop, &v->at, false, out);
		if (s->x != 0 && x->op == KERN_LOAD)
			access_by_lane(f, loop, &x->at, false, out);
		if (s->kind == KERN_STORE)
			access_by_lane(f, loop, &s->at, true, out);
		accesses_by_lane(f, loop, &s->body, out);
		accesses_by_lane(f, loop, &s->other, out);
	}
}

/* Lanes meet in front of the loop, if they must: in it, none waits for another. */
static void loop_by_lane(struct finder *f, const kern_stmt *s)
{
	touches all = {0};
	bool wait = false;

	accesses_by_lane(f, s, &s->body, &all);
	for (int32_t i = 0; i < all.n; i++)
		for (int32_t j = 0; j < f->open.n; j++)
			wait |= conflict(f, &f->open.at[j], &all.at[i]);
	if (wait)
		meet(f, s, SYNC_READ);
	join(f, &all);
}

static void condition(struct finder *f, const kern_stmt *s, bool again)
{
	touches before = copy(f, &f->open), then;

	walk(f, &s->body, again);
	then = copy(f, &f->open);
	f->open.n = 0;
	join(f, &before);
	walk(f, &s->other, again);
	join(f, &then);
}

static void walk(struct finder *f, const kern_block *b, bool again)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		f->own.n = 0;
		if (s->kind == KERN_LET)
			loads_of(f, s, s->v);
		loads_of(f, s, s->x);
		if (s->kind == KERN_STORE) {
			access_of(f, s, &s->at,
				kern_at(f->k, s->x)->type.lanes, true);
		} else if (s->kind == KERN_TURN) {
			any_cells(f, s, s->from.array, false);
			any_cells(f, s, s->at.array, true);
		} else if (s->kind == KERN_ARRAY && s->stream) {
			any_cells(f, s, s->array, true);
		} else if (s->n_acc > 0) {
			any_cells(f, s, s->at.array, s->kind == KERN_GIVE);
			if (kern_multiplies(s))
				any_cells(f, s, s->from.array, false);
		} else if (s->kind == KERN_BARRIER) {
			f->open.n = 0;
		} else if (s->by_lane) {
			loop_by_lane(f, s);
		} else if (s->kind == KERN_FOR) {
			loop(f, s, again);
		} else if (s->kind == KERN_IF) {
			condition(f, s, again);
		} else if (s->kind == KERN_BLOCK) {
			walk(f, &s->body, again);
		}
	}
}

void spread_find_syncs(arena *a, spread *s)
{
	struct finder f = {.a = a,
		.k = s->wide,
		.cells = s->cells,
		.sync = map_new(a)};

	find_memories(&f);
	f.made = arena_array(a, bool, s->wide->value.n + 1);
	f.in_loops = arena_array(a, bool, s->wide->value.n + 1);
	for (int32_t i = 0; i < s->wide->n_phases; i++) {
		f.open.n = 0;
		walk(&f, &s->wide->phase[i].body, false);
	}
	s->sync = f.sync;
}

bool spread_has_sync(const spread *s, const kern_stmt *st, spread_sync when)
{
	return (map_get(s->sync, &st, sizeof st, 0) & when) != 0;
}
