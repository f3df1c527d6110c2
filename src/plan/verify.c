/*
 * verify.c: checks a plan.
 *
 *   every launch is in exactly one step, and the steps are in order;
 *   what a launch reads is an input, or was computed in an earlier step;
 *   no launch writes what another launch of its step reads or writes;
 *   tensors of the slab that are live at the same time share no byte;
 *   scratch that is kept from run to run belongs to one launch;
 *   every output with elements is computed.
 */
#include "plan/private.h"

int32_t plan_n_outputs(const plan_launch *l)
{
	return l->code == NULL ? l->eqn->n_out : l->code->n_outputs;
}

static _Noreturn void bug(const plan *p, const char *what, int32_t tensor)
{
	env_bug(arena_env(p->a), "plan.verify", "%s: %s", what,
		tensor >= 0 ? p->s->tensor.at[tensor].name : "");
}

/* made[t]: the step that writes t; -1: t is an input; -2: nothing writes it */
static void verify_order(const plan *p, int32_t *made)
{
	int32_t next = 0;

	for (int32_t t = 0; t < p->s->tensor.n; t++)
		made[t] = p->location[t].where == PLAN_INPUT ? -1 : -2;
	for (int32_t s = 0; s < p->step.n; s++) {
		const plan_step *step = &p->step.at[s];

		if (step->first != next || step->n < 1)
			bug(p, "a step is empty, or does not follow the step before", -1);
		next += step->n;
		for (int32_t i = step->first; i < next; i++) {
			const plan_launch *l = &p->launch.at[i];
			int32_t n = plan_n_outputs(l);

			for (int32_t k = n; k < l->n_params; k++) {
				int32_t t = l->tensor[k];

				if (p->s->tensor.at[t].numel > 0 &&
					(made[t] == -2 || made[t] == s))
					bug(p, "a launch reads a tensor before it is computed", t);
			}
			for (int32_t k = 0; k < n; k++) {
				int32_t t = l->tensor[k];

				if (made[t] != -2)
					bug(p, "two launches compute one tensor", t);
				made[t] = s;
			}
			if (step->n > 1 && (l->n_checks > 0 || l->kernel < 0))
				bug(p, "a launch with checks, or of a C function, must be alone in its step", l->tensor[0]);
		}
	}
	if (next != p->launch.n)
		bug(p, "a launch is not in a step", -1);
}

struct range {
	size_t lo, hi;
	int32_t tensor;
};

static void sift(struct range *r, int32_t n, int32_t i)
{
	for (;;) {
		int32_t k = 2 * i + 1;
		struct range t = r[i];

		if (k >= n)
			return;
		if (k + 1 < n && r[k + 1].lo > r[k].lo)
			k++;
		if (r[k].lo <= t.lo)
			return;
		r[i] = r[k];
		r[k] = t;
		i = k;
	}
}

static void sort_ranges(struct range *r, int32_t n)
{
	for (int32_t i = n / 2 - 1; i >= 0; i--)
		sift(r, n, i);
	for (int32_t m = n - 1; m > 0; m--) {
		struct range t = r[0];

		r[0] = r[m];
		r[m] = t;
		sift(r, m, 0);
	}
}

/*
 * Compares each tensor, in order of offset, with those that start before it ends.
 * Nearly linear, because few tensors use the same bytes.
 */
static void verify_slab(const plan *p, arena *a)
{
	struct range *r = arena_array(a, struct range, p->s->tensor.n + 1);
	int32_t n = 0;

	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		const plan_location *at = &p->location[t];

		if (at->where != PLAN_SLAB || at->bytes == 0 ||
			(at->version_of >= 0 && at->version_of != t))
			continue;
		if (at->offset % PLAN_ALIGN != 0 ||
			at->offset + at->bytes > p->tensor_bytes)
			bug(p, "a buffer is outside the slab, or not aligned", t);
		r[n++] = (struct range){
			at->offset, at->offset + at->bytes, t};
	}
	sort_ranges(r, n);
	for (int32_t i = 0; i < n; i++)
		for (int32_t k = i + 1; k < n && r[k].lo < r[i].hi; k++) {
			const plan_location *u = &p->location[r[i].tensor];
			const plan_location *v = &p->location[r[k].tensor];

			if (u->first <= v->last && v->first <= u->last)
				bug(p, "two live buffers share bytes",
					r[i].tensor);
		}
}

/* The scratch of some launches: each piece is there once. */
struct pieces {
	const plan *p;
	struct range *at;
	int32_t n;
};

/* keep: a copy in it stays from run to run. */
static void add_piece(struct pieces *w, const plan_launch *l, size_t at, size_t bytes,
	bool keep, bool kept)
{
	const plan *p = w->p;
	size_t first = keep ? p->scratch_bytes : 0;
	size_t end = keep ? p->scratch_bytes + p->kept_bytes : p->scratch_bytes;

	if (bytes == 0)
		return;
	if (at < first || at + bytes > end)
		bug(p, "the scratch of a launch is outside its memory", l->tensor[0]);
	if (keep == kept)
		w->at[w->n++] = (struct range){at, at + bytes, l->tensor[0]};
}

/* kept: only what is kept from run to run; else only the rest. */
static void add_pieces(struct pieces *w, const plan_launch *l, bool kept)
{
	uint32_t keep;

	if (l->kernel < 0)
		return;
	keep = plan_keeping(w->p, l);
	for (int32_t c = 0; l->cell != NULL && c < l->code->n_cells; c++)
		add_piece(w, l, l->cell[c], l->code->cell[c].bytes,
			(l->code->cell[c].written & keep) != 0, kept);
	if (l->cell == NULL)
		add_piece(w, l, l->scratch_offset, l->code->scratch_bytes,
			keep != 0, kept);
}

static void verify_pieces(struct pieces *w, const char *what)
{
	sort_ranges(w->at, w->n);
	for (int32_t i = 1; i < w->n; i++)
		if (w->at[i].lo < w->at[i - 1].hi)
			bug(w->p, what, w->at[i].tensor);
	w->n = 0;
}

/* Kept scratch is behind all other scratch, and belongs to one launch; what is not
 * kept, to one launch of its step. */
static void verify_scratch(const plan *p, arena *a)
{
	struct pieces w = {.p = p};
	int32_t n = 0;

	for (int32_t i = 0; i < p->launch.n; i++)
		if (p->launch.at[i].kernel >= 0)
			n += p->launch.at[i].code->n_cells + 1;
	w.at = arena_array(a, struct range, n + 1);
	for (int32_t i = 0; i < p->launch.n; i++)
		add_pieces(&w, &p->launch.at[i], true);
	verify_pieces(&w, "two launches keep the same scratch");
	for (int32_t s = 0; s < p->step.n; s++) {
		const plan_step *step = &p->step.at[s];

		for (int32_t i = step->first; i < step->first + step->n; i++)
			add_pieces(&w, &p->launch.at[i], false);
		verify_pieces(&w, "two pieces of the scratch of a step share bytes");
	}
}

static void verify_outputs(const plan *p, const int32_t *made)
{
	for (int32_t i = 0; i < p->s->output.n; i++) {
		int32_t t = p->root[p->s->output.at[i]];

		if (p->s->tensor.at[t].numel > 0 && made[t] == -2)
			bug(p, "no launch computes an output", t);
	}
	for (int32_t i = 0; i < p->copy.n; i++) {
		const plan_location *at = &p->location[p->copy.at[i].tensor];
		int32_t t = at->version_of >= 0 ? at->version_of
						: p->copy.at[i].tensor;

		if (at->where == PLAN_SLAB &&
			p->location[t].last != p->step.n - 1)
			bug(p, "an output is copied after the liveness of its buffer has ended", t);
	}
}

void plan_verify(const plan *p)
{
	arena *a = arena_child(p->a);
	int32_t *made = arena_array(a, int32_t, p->s->tensor.n + 1);
	verify_order(p, made);
	verify_slab(p, a);
	verify_scratch(p, a);
	verify_outputs(p, made);
	arena_free(a);
}
