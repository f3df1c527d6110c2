/*
 * async.c: copies that go on while a kernel computes, and what waits for them.
 *
 * A warp begins to copy rows (`async`), and ends the group of what it has begun
 * (`commit`). `wait n` waits for the warp's own copies of all groups but the last n;
 * what other warps have copied is there behind the next barrier. So memory that is
 * copied may be accessed where a wait, and a barrier behind it, stand in between:
 *
 *   for .. by warp { async b0[..] = p1[..] }     b0 is under way, in an open group
 *   commit                                       .. in the last group
 *   for .. by warp { mma .. of b1[..] }          computes meanwhile
 *   wait 0                                       has arrived, for this warp
 *   barrier                                      may be accessed
 *
 * The verifier walks a phase in the order of execution with the state of each
 * array, as a whole; where two ways meet, the later state counts. Loops are walked
 * until nothing changes: a state only gets later by that. A copy into an array that
 * is under way is refused: of two, either might end last. Only the iterations of one
 * loop by warp may copy into one array; that they have no cell in common is shown in
 * verify_chunks.c, and that nobody reads what a copy is about to write in barrier.c.
 *
 * A copy in bulk stands in no loop by warp: it is one for all warps of the block.
 */
#include "kern/verify.h"

/* Copied and waited for; under way in the group that is still open. Between them:
 * the group was ended, and others behind it. */
enum { READY = 0, ARRIVED = 1, OPEN = KERN_MAX_GROUPS + 3 };

struct walk {
	struct kern_verifier *v;
	kern_kernel *k;
	/* by array; [n]: groups that were ended, and some warp may not have waited for
	 * yet; [n + 1]: .. that none has */
	uint8_t *state;
	bool bulk; /* some copies are in bulk */
};

static void refuse(struct walk *w, const kern_stmt *s, int32_t array)
{
	w->v->s = s;
	kern_refuse(w->v, "wait",
		"rows of %s may still be copied: a `wait` for their group, and a `barrier` behind it, must stand in front of this",
		kern_access_text(w->v, array));
}

/* The latest state of what shares memory with the array. */
static uint8_t state_of(const struct walk *w, int32_t array)
{
	uint8_t last = READY;

	for (int32_t i = 0; i < w->k->array.n; i++)
		if (w->state[i] > last && kern_arrays_overlap(w->k, i, array))
			last = w->state[i];
	return last;
}

static void access(struct walk *w, const kern_stmt *s, int32_t array)
{
	if (state_of(w, array) != READY)
		refuse(w, s, array);
}

static void loaded(struct walk *w, const kern_stmt *s, kern_val v)
{
	if (v != 0 && kern_at(w->k, v)->op == KERN_LOAD)
		access(w, s, kern_at(w->k, v)->at.array);
}

static void begin(struct walk *w, const kern_stmt *s)
{
	access(w, s, s->at.array);
	access(w, s, s->from.array);
	w->state[s->at.array] = OPEN;
	w->bulk |= s->bulk;
}

/* A group is ended: those before it are one further away. */
static void commit(struct walk *w, const kern_stmt *s)
{
	uint8_t *groups = &w->state[w->k->array.n];

	for (int32_t i = 0; i < 2; i++)
		groups[i] = (uint8_t)(groups[i] + (groups[i] <= KERN_MAX_GROUPS));
	if (w->bulk && groups[0] > KERN_MAX_GROUPS) {
		w->v->s = s;
		kern_refuse(w->v, "wait",
			"more than %d groups of copies may be under way, some of them in bulk: a `wait`, and a `barrier` behind it, must stand in front of this",
			KERN_MAX_GROUPS);
	}
	for (int32_t i = 0; i < w->k->array.n; i++)
		if (w->state[i] > ARRIVED + 1)
			w->state[i]--;
}

/* OPEN - 1: the last group */
static void await(struct walk *w, int32_t groups)
{
	uint8_t *left = &w->state[w->k->array.n + 1];

	*left = *left < groups ? *left : (uint8_t)groups;
	for (int32_t i = 0; i < w->k->array.n; i++)
		if (w->state[i] < OPEN - groups && w->state[i] > ARRIVED)
			w->state[i] = ARRIVED;
}

static void meet(struct walk *w)
{
	uint8_t *groups = &w->state[w->k->array.n];

	groups[0] = groups[1];
	for (int32_t i = 0; i < w->k->array.n; i++)
		if (w->state[i] == ARRIVED)
			w->state[i] = READY;
}

static uint8_t *copy(struct walk *w)
{
	return arena_copy(w->v->a, w->state, (size_t)w->k->array.n + 2);
}

/* The later of both states of each array; returns whether one is not `other`. */
static bool join(struct walk *w, const uint8_t *other)
{
	bool more = false;

	for (int32_t i = 0; i < w->k->array.n + 2; i++) {
		more |= w->state[i] > other[i];
		if (other[i] > w->state[i])
			w->state[i] = other[i];
	}
	return more;
}

static void walk(struct walk *w, const kern_block *b);

static void loop(struct walk *w, const kern_stmt *s)
{
	const uint8_t *before;

	do {
		before = copy(w);
		walk(w, &s->body);
	} while (!s->by_warp && !kern_is_once(w->k, s) && join(w, before));
	(void)join(w, before);
}

static void condition(struct walk *w, const kern_stmt *s)
{
	uint8_t *before = copy(w), *then;

	walk(w, &s->body);
	then = w->state;
	w->state = before;
	walk(w, &s->other);
	(void)join(w, then);
}

static void statement(struct walk *w, const kern_stmt *s)
{
	kern_accessed t[KERN_MOST_ACCESSED];

	if (s->kind == KERN_LET)
		loaded(w, s, s->v);
	loaded(w, s, s->x);
	if (s->kind == KERN_ASYNC)
		begin(w, s);
	else if (s->kind == KERN_COMMIT)
		commit(w, s);
	else if (s->kind == KERN_WAIT)
		await(w, s->groups);
	else if (s->kind == KERN_BARRIER)
		meet(w);
	else
		for (int32_t i = kern_accesses(s, t) - 1; i >= 0; i--)
			if (t[i].reads || t[i].writes)
				access(w, s, t[i].at->array);
	if (s->kind == KERN_FOR)
		loop(w, s);
	else if (s->kind == KERN_IF)
		condition(w, s);
	else
		walk(w, &s->body);
}

static void walk(struct walk *w, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++)
		statement(w, b->list.at[i]);
}

static const kern_stmt *last_of(const kern_block *b)
{
	return b->list.n > 0 ? b->list.at[b->list.n - 1] : NULL;
}

void kern_verify_waits(struct kern_verifier *v)
{
	const kern_phase *p = &v->k->phase[v->phase];
	struct walk w = {.v = v, .k = v->k};

	w.state = arena_array(v->a, uint8_t, v->k->array.n + 2);
	walk(&w, &p->body);
	v->s = last_of(&p->body);
	for (int32_t i = 0; i < v->k->array.n; i++)
		if (w.state[i] > ARRIVED)
			kern_refuse(v, "wait",
				"copies into %s may be under way at the end of the phase: a `wait 0` must stand behind them",
				kern_access_text(v, i));
}

/* ---- one copy ---- */

static void verify_rows(struct kern_verifier *v, const kern_access *at,
	const kern_stmt *s, int64_t step, bool write)
{
	const kern_array *r = &v->k->array.at[at->array];
	int64_t size = (int64_t)dtype_size(r->dtype);
	int64_t each = KERN_ASYNC_BYTES / size;

	if (s->width % each != 0 || step % each != 0 ||
		r->offset % KERN_ASYNC_BYTES != 0 ||
		!kern_is_multiple(&v->range, at->at, each))
		kern_refuse(v, "lanes",
			"rows that are copied must have a multiple of %d bytes, and begin at multiples of that in %s",
			KERN_ASYNC_BYTES, kern_access_text(v, at->array));
	kern_verify_rows(v, at, step, s->rows, s->width, write);
}

/* Whole rows, which are a box in a matrix of rows of m elements. */
static void verify_bulk(struct kern_verifier *v, const kern_stmt *s)
{
	const kern_array *to = &v->k->array.at[s->at.array];
	const kern_array *from = &v->k->array.at[s->from.array];
	int64_t each = KERN_ASYNC_BYTES / (int64_t)dtype_size(from->dtype);
	const kern_form *row, *column;

	kern_verify_barrier(v);
	if (to->swizzled == 0 || s->rows % KERN_SWIZZLED_ROWS != 0 ||
		s->rows > KERN_BULK_ROWS ||
		!kern_is_multiple(&v->range, s->at.at,
			(int64_t)to->swizzled * KERN_SWIZZLED_ROWS))
		kern_refuse(v, "bulk",
			"a copy in bulk goes to a swizzled array, and has whole rows of it, in multiples of %d, %d at most",
			KERN_SWIZZLED_ROWS, KERN_BULK_ROWS);
	if (s->m < s->width || s->m % each != 0 || from->elems % s->m != 0 ||
		s->m > INT32_MAX || from->elems / s->m > INT32_MAX)
		kern_refuse(v, "bulk",
			"a copy in bulk comes from a matrix: %s must be rows of %lld elements, which are a multiple of %d bytes and no less than %d elements",
			kern_access_text(v, s->from.array), (long long)s->m,
			KERN_ASYNC_BYTES, s->width);
	kern_row_and_column(v->k, s->from.at, s->m, &row, &column);
	if (!kern_is_inside(&v->range, column, 0, s->m - s->width + 1))
		kern_refuse(v, "bulk",
			"a row of this copy in bulk may reach into the next row of %s, after %lld elements",
			kern_access_text(v, s->from.array), (long long)s->m);
}

static bool is_written(const kern_kernel *k, int32_t array)
{
	for (int32_t i = 0; i < k->n_outputs; i++)
		if (kern_arrays_overlap(k, i, array))
			return true;
	return false;
}

void kern_verify_async(struct kern_verifier *v, const kern_stmt *s)
{
	const kern_array *to = &v->k->array.at[s->at.array];
	const kern_array *from = &v->k->array.at[s->from.array];

	if (!s->bulk)
		kern_verify_effect(v);
	if (!s->bulk && v->by_warp == NULL)
		kern_refuse(v, "warp",
			"a copy that is waited for must stand in a loop `by warp`");
	if (to->space != KERN_LOCAL || from->space != KERN_PARAM ||
		from->out || is_written(v->k, s->from.array))
		kern_refuse(v, "write",
			"such a copy must go from a param that the kernel does not write to a local array");
	if (to->dtype != from->dtype)
		kern_refuse(v, "type", "%s is %s, and %s is %s: a copy converts nothing",
			kern_access_text(v, s->at.array), dtype_name(to->dtype),
			kern_access_text(v, s->from.array),
			dtype_name(from->dtype));
	if (s->rows > 1 && s->n < s->width)
		kern_refuse(v, "lanes",
			"rows of %d elements, %lld apart, have elements in common",
			s->width, (long long)s->n);
	verify_rows(v, &s->from, s, s->m, false);
	verify_rows(v, &s->at, s, s->n, true);
	if (s->bulk)
		verify_bulk(v, s);
}
