/*
 * locate.c: the location of every tensor that is not private to a kernel.
 *
 * Inputs and outputs are in the caller's arrays. The other tensors share a slab:
 * step by step, a tensor takes the smallest free hole that fits at the step that
 * writes it, and frees it after the step that reads it last, so that tensors
 * used in one step never overlap. Copies to outputs read tensors at the end. If the
 * slab is smaller with the largest tensors first, they are there (fit.c).
 *
 *   a: steps 0-1, b: steps 1-2, c: steps 2-3   ->   a and c at offset 0
 *
 * Source: best fit with coalescing; Wilson, Johnstone, Neely, Boles, "Dynamic
 * storage allocation: a survey", 1995, section 3.
 */
#include "plan/private.h"

/* Free bytes, sorted by offset; neighbours are joined. */
struct hole {
	size_t offset, bytes;
};
typedef VEC(struct hole) holes;

static _Noreturn void too_large(const plan *p)
{
	env_fail(arena_env(p->a), TN_ENOMEM, "run.memory", (loc){0},
		"the buffers of this program do not fit into memory: at most "
		"2^46 bytes are accepted");
}

static size_t plus(const plan *p, size_t a, size_t b)
{
	size_t sum;

	if (__builtin_add_overflow(a, b, &sum) || sum > (size_t)1 << 46)
		too_large(p);
	return sum;
}

static void remove_hole(holes *h, int32_t i)
{
	memmove(&h->at[i], &h->at[i + 1],
		(size_t)(h->n - i - 1) * sizeof *h->at);
	h->n--;
}

/* Takes the smallest hole that is large enough; if there is none, the slab grows. */
static size_t take(plan *p, arena *a, holes *h, size_t bytes)
{
	int32_t best = -1;
	size_t offset;

	(void)a;
	for (int32_t i = 0; i < h->n; i++)
		if (h->at[i].bytes >= bytes &&
			(best < 0 || h->at[i].bytes < h->at[best].bytes))
			best = i;
	if (best >= 0) {
		offset = h->at[best].offset;
		h->at[best].offset += bytes;
		h->at[best].bytes -= bytes;
		if (h->at[best].bytes == 0)
			remove_hole(h, best);
		return offset;
	}
	if (h->n > 0 && h->at[h->n - 1].offset + h->at[h->n - 1].bytes ==
				p->tensor_bytes) { /* grow the last hole */
		offset = h->at[--h->n].offset;
	} else {
		offset = p->tensor_bytes;
	}
	p->tensor_bytes = plus(p, offset, bytes);
	return offset;
}

static void give(arena *a, holes *h, size_t offset, size_t bytes)
{
	int32_t i = h->n;

	(void)vec_push(a, h);
	while (i > 0 && h->at[i - 1].offset > offset) {
		h->at[i] = h->at[i - 1];
		i--;
	}
	h->at[i] = (struct hole){offset, bytes};
	if (i + 1 < h->n && offset + bytes == h->at[i + 1].offset) {
		h->at[i].bytes += h->at[i + 1].bytes;
		remove_hole(h, i + 1);
	}
	if (i > 0 && h->at[i - 1].offset + h->at[i - 1].bytes == offset) {
		h->at[i - 1].bytes += h->at[i].bytes;
		remove_hole(h, i);
	}
}

/* Finds the first and last step of every tensor that a launch uses. */
static void find_lifetimes(plan *p)
{
	for (int32_t s = 0; s < p->step.n; s++) {
		const plan_step *step = &p->step.at[s];

		for (int32_t i = step->first; i < step->first + step->n; i++) {
			const plan_launch *l = &p->launch.at[i];

			for (int32_t k = 0; k < l->n_params; k++) {
				plan_location *at = &p->location[l->tensor[k]];

				if (at->first < 0)
					at->first = s;
				at->last = s;
			}
		}
	}
}

static void place_output(plan *p, int32_t i)
{
	const ir_system *s = p->s;
	int32_t root = p->root[s->output.at[i]], store = plan_store(s, i);
	plan_location *at = &p->location[root];

	if (s->tensor.at[root].numel == 0)
		return;
	if (at->where != PLAN_NOWHERE ||
		(store >= 0 && ir_place_of_storage(s, root) != store)) {
		*vec_push(p->a, &p->copy) = (plan_copy){root, i};
		if (at->first >= 0) /* after the last step */
			at->last = p->step.n - 1;
		return;
	}
	at->where = PLAN_OUTPUT;
	at->number = i;
}

/* Intermediate versions use the memory of the param, too. */
static void place_versions(plan *p)
{
	const ir_system *s = p->s;

	for (int32_t t = 0; t < s->tensor.n; t++) {
		plan_location *at = &p->location[t];
		int32_t in = ir_place_of_storage(s, t);

		for (int32_t i = 0; in >= 0 && i < s->output.n; i++) {
			if (at->where != PLAN_NOWHERE || at->first < 0 ||
				plan_store(s, i) != in)
				continue;
			at->where = PLAN_OUTPUT;
			at->number = i;
		}
	}
}

/* Places tensors in the caller's arrays; an output equal to another one is copied. */
static void place_callers(plan *p)
{
	const ir_system *s = p->s;

	for (int32_t i = 0; i < s->input.n; i++) {
		plan_location *at = &p->location[s->input.at[i]];

		at->where = PLAN_INPUT;
		at->number = i;
	}
	for (int32_t i = s->output.n - 1; i >= 0; i--) /* params are last */
		place_output(p, i);
	place_versions(p);
}

/*
 * The versions of an internal storage use one buffer, that of the first version,
 * from the first step that uses one of them to the last; or an output's array.
 */
static void join_versions(plan *p, int32_t *leader)
{
	const ir_system *s = p->s;

	for (int32_t t = 0; t < s->tensor.n; t++) {
		plan_location *at = &p->location[t], *first;
		int32_t own = s->tensor.at[t].storage - s->n_caller_storages;

		if (s->n_caller_storages < 0 || own < 0 || at->first < 0)
			continue;
		if (leader[own] < 0)
			leader[own] = t;
		first = &p->location[leader[own]];
		if (at->first < first->first)
			first->first = at->first;
		if (at->last > first->last)
			first->last = at->last;
		if (at->where == PLAN_OUTPUT) {
			first->where = PLAN_OUTPUT;
			first->number = at->number;
		}
	}
}

static bool follows(const plan *p, const int32_t *leader, int32_t t)
{
	int32_t own = p->s->tensor.at[t].storage - p->s->n_caller_storages;

	return p->s->n_caller_storages >= 0 && own >= 0 && leader[own] != t;
}

static void follow_leaders(plan *p, const int32_t *leader)
{
	const ir_system *s = p->s;

	for (int32_t t = 0; t < s->tensor.n; t++) {
		plan_location *at = &p->location[t];
		const plan_location *first;
		int32_t own = s->tensor.at[t].storage - s->n_caller_storages;

		if (s->n_caller_storages < 0 || own < 0 || at->first < 0)
			continue;
		first = &p->location[leader[own]];
		at->where = first->where;
		at->number = first->number;
		at->offset = first->offset;
		at->version_of = leader[own];
	}
}

/* Lists the tensors by their first or last step. */
static int32_t *by_step(const plan *p, arena *a, bool last, int32_t *head)
{
	int32_t *next = arena_array(a, int32_t, p->s->tensor.n + 1);

	for (int32_t s = 0; s < p->step.n; s++)
		head[s] = -1;
	for (int32_t t = p->s->tensor.n - 1; t >= 0; t--) {
		const plan_location *at = &p->location[t];
		int32_t s = last ? at->last : at->first;

		if (at->where != PLAN_SLAB)
			continue;
		next[t] = head[s];
		head[s] = t;
	}
	return next;
}

static void place_slab(plan *p, arena *a, const plan_options *o)
{
	int32_t *begin = arena_array(a, int32_t, p->step.n + 1);
	int32_t *end = arena_array(a, int32_t, p->step.n + 1);
	int32_t *begins = by_step(p, a, false, begin);
	int32_t *ends = by_step(p, a, true, end);
	holes h = {0};

	for (int32_t s = 0; s < p->step.n; s++) {
		for (int32_t t = begin[s]; t >= 0; t = begins[t]) {
			plan_location *at = &p->location[t];
			size_t n = plan_round_up(
				plus(p, at->bytes, o->guard_bytes));

			at->offset = take(p, a, &h, n);
			p->sum_bytes = plus(p, p->sum_bytes, n);
		}
		for (int32_t t = end[s]; t >= 0 && !o->apart; t = ends[t])
			give(a, &h, p->location[t].offset,
				plan_round_up(p->location[t].bytes +
					      o->guard_bytes));
	}
}

uint32_t plan_keeping(const plan *p, const plan_launch *l)
{
	uint32_t phases = 0;

	for (int32_t i = 0; i < l->code->n_phases; i++) {
		int32_t t = plan_copied(l, i);

		if (t >= 0 && p->location[t].where == PLAN_INPUT &&
			p->s->tensor.at[t].steady)
			phases |= UINT32_C(1) << i;
	}
	return phases;
}

/* The place of a piece of scratch: that is kept, or of this step, which has used so
 * much. */
static size_t place_piece(plan *p, size_t bytes, bool keep, size_t *used)
{
	size_t *end = keep ? &p->kept_bytes : used, at = *end;

	*end = plus(p, at, plan_round_up(bytes));
	return at;
}

/* What phases keep is apart from what this step has: the memory of that is used by
 * the next one, and is in the caches. */
static void place_cells(plan *p, plan_launch *l, uint32_t keep, size_t *used)
{
	const c_kernel *k = l->code;
	size_t *at = arena_array(p->a, size_t, k->n_cells + 1);

	for (int32_t c = 0; c < k->n_cells; c++)
		at[c] = place_piece(p, k->cell[c].bytes,
			(k->cell[c].written & keep) != 0, used);
	l->cell = at;
}

/* Kept scratch is behind that of all steps. */
static void move_kept(plan *p, plan_launch *l)
{
	uint32_t keep = plan_keeping(p, l);
	size_t *at = arena_array(p->a, size_t, l->code->n_cells + 1);

	if (l->cell == NULL) {
		l->scratch_offset = plus(p, l->scratch_offset, p->scratch_bytes);
		return;
	}
	for (int32_t c = 0; c < l->code->n_cells; c++)
		at[c] = (l->code->cell[c].written & keep) == 0
				? l->cell[c]
				: plus(p, l->cell[c], p->scratch_bytes);
	l->cell = at;
}

/*
 * Launches of one step run at the same time, so each has separate scratch.
 * Scratch that a launch keeps is never used by another launch.
 */
static void place_scratch(plan *p)
{
	for (int32_t s = 0; s < p->step.n; s++) {
		const plan_step *step = &p->step.at[s];
		size_t used = 0;

		for (int32_t i = step->first; i < step->first + step->n; i++) {
			plan_launch *l = &p->launch.at[i];
			const c_kernel *k = l->code;
			uint32_t keep;

			if (l->kernel < 0)
				continue;
			if (plan_round_up(k->local_bytes) > p->local_bytes)
				p->local_bytes = plan_round_up(k->local_bytes);
			keep = plan_keeping(p, l);
			l->keeps = keep != 0;
			if (k->in_cells)
				place_cells(p, l, keep, &used);
			else
				l->scratch_offset = place_piece(
					p, k->scratch_bytes, l->keeps, &used);
		}
		if (used > p->scratch_bytes)
			p->scratch_bytes = used;
	}
	for (int32_t i = 0; i < p->launch.n; i++)
		if (p->launch.at[i].keeps)
			move_kept(p, &p->launch.at[i]);
}

void plan_locate(plan *p, const plan_options *o)
{
	arena *a = arena_child(p->a);
	int32_t *leader = arena_array(a, int32_t, p->s->tensor.n + 1);

	p->poison = o->poison;
	p->location = arena_array(p->a, plan_location, p->s->tensor.n + 1);
	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		const sys_tensor *st = &p->s->tensor.at[t];

		leader[t] = p->location[t].version_of = -1;
		p->location[t].first = p->location[t].last = -1;
		p->location[t].bytes = (size_t)st->numel * dtype_size(st->dtype);
	}
	find_lifetimes(p);
	place_callers(p);
	join_versions(p, leader);
	for (int32_t t = 0; t < p->s->tensor.n; t++)
		if (p->location[t].where == PLAN_NOWHERE &&
			p->location[t].first >= 0 && !follows(p, leader, t))
			p->location[t].where = PLAN_SLAB;
	place_slab(p, a, o);
	if (!o->apart)
		plan_fit(p, a, o->guard_bytes);
	follow_leaders(p, leader);
	place_scratch(p);
	arena_free(a);
}
