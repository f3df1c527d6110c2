/*
 * trace.c: recorded calls as one call, and its backward.
 *
 * Consumes a capture; produces a trace and, from a trace with tracked values, its
 * backward: the walk of backward.c over the calls inside, recorded as a second
 * trace. The values of the first that it reads are operands, results, or middles,
 * which are further results that the call keeps for it. Constants are recomputed.
 */
#include "tape/walk.h"
#include "value/capture.h"

/* ---- the walk over a trace ---- */

typedef struct deriving {
	tensors *t;
	t_trace *f;
	t_value **seed; /* by result */
	t_value **grad, **leaf, **old; /* by operand; NULL: none */
} deriving;

static void derive(void *arg)
{
	deriving *d = arg;

	t_walk_trace(d->t, d->f, d->seed, d->grad, d->leaf, d->old);
}

/* The index of v in a list, or -1. */
static int32_t find(int32_t n, t_value *const *list, const t_value *v)
{
	for (int32_t i = 0; i < n; i++)
		if (list[i] == v)
			return i;
	return -1;
}

static void place_reads(tensors *t, const t_trace *f, t_back *b,
	const deriving *d)
{
	int32_t n = b->trace->n_in;

	b->from_in = arena_array(t->a, int32_t, n + 1);
	b->from_out = arena_array(t->a, int32_t, n + 1);
	b->from_seed = arena_array(t->a, int32_t, n + 1);
	for (int32_t k = 0; k < n; k++) {
		const t_value *v = b->trace->in[k];

		b->from_in[k] = b->from_out[k] = -1;
		b->from_seed[k] = find(f->n_out, d->seed, v);
		if (b->from_seed[k] >= 0)
			continue;
		b->from_in[k] = find(f->n_in, f->in, v);
		if (b->from_in[k] < 0)
			b->from_out[k] = find(f->n_out, f->out, v);
	}
}

static t_back *new_back(tensors *t, t_trace *f, const bool *seeded)
{
	t_back *b = arena_make(t->a, t_back);
	deriving d = {.t = t, .f = f};
	t_value **out = arena_array(t->a, t_value *, 3 * f->n_in + 1);
	/* it may be called during another walk */
	struct {
		int64_t walk;
		t_calls path;
		t_values met;
	} outside = {t->walk, t->path, t->met};
	t_capture c;
	tn_status s;
	int32_t n = 0;

	b->live = arena_make(t->a, t_trace *);
	b->seeded = arena_copy(t->a, seeded, (size_t)f->n_out);
	d.seed = arena_array(t->a, t_value *, f->n_out + 1);
	d.grad = arena_array(t->a, t_value *, f->n_in + 1);
	d.leaf = arena_array(t->a, t_value *, f->n_in + 1);
	d.old = arena_array(t->a, t_value *, f->n_in + 1);
	for (int32_t i = 0; i < f->n_out; i++)
		if (seeded[i] && t_is_made(f->out[i])) {
			d.seed[i] = t_value_new(t, &f->out[i]->type);
			t_value_keep(d.seed[i]);
		}
	capture_begin(t, &c, true);
	t->path = (t_calls){0};
	t->met = (t_values){0};
	t->no_grad++;
	s = env_run(t->e, derive, &d);
	t->no_grad--;
	t->walk = outside.walk;
	t->path = outside.path;
	t->met = outside.met;
	capture_end(t, &c);
	if (s < 0) {
		capture_drop(t, &c);
		env_rethrow(t->e);
	}
	b->of_in = arena_array(t->a, int32_t, 3 * f->n_in + 1);
	b->kind = arena_alloc(t->a, 3 * (size_t)f->n_in + 1, sizeof *b->kind);
	b->shared = arena_array(t->a, bool, 3 * f->n_in + 1);
	for (int32_t k = 0; k < 3; k++)
		for (int32_t i = 0; i < f->n_in; i++) {
			t_value *g = k == BACK_OPERAND ? d.grad[i]
				: k == BACK_LEAF	? d.leaf[i]
							: d.old[i];

			if (g == NULL)
				continue;
			b->of_in[n] = i;
			b->kind[n] = k;
			b->shared[n] = g->is_shared;
			out[n++] = g;
		}
	if (n == 0)
		return b;
	b->trace = trace_new(t, &c, 0, NULL, n, out,
		arena_printf(t->a, "%s backward", f->name));
	t_find_kept(t, f, b, d.seed);
	t_make_again(t, f, b->trace, d.seed);
	place_reads(t, f, b, &d);
	return b;
}

static void make_holds(tensors *t, t_trace *f, const t_back *b)
{
	f->holds_in = arena_array(t->a, bool, f->n_in + 1);
	f->holds_out = arena_array(t->a, bool, f->n_out + 1);
	for (int32_t k = 0; b->trace != NULL && k < b->trace->n_in; k++) {
		if (b->from_in[k] >= 0)
			f->holds_in[b->from_in[k]] = true;
		if (b->from_out[k] >= 0)
			f->holds_out[b->from_out[k]] = true;
	}
}

t_trace *t_trace_tracked(tensors *t, t_trace *f)
{
	bool *all = arena_array(t->a, bool, f->n_known + 1);
	t_trace *g;
	t_back *b;
	bool *seeded;
	int32_t n = f->n_out;

	if (f->tracked != NULL || f->holds_in != NULL)
		return f->tracked != NULL ? f->tracked : f;
	if (t_is_region(f))
		return t->functions->region_tracked(t, f);
	for (int32_t i = 0; i < f->n_known; i++)
		all[i] = true;
	g = arena_copy(t->a, f, sizeof *f);
	g->id = t->n_traces++;
	g->region = NULL;
	b = new_back(t, f, all);
	g->out = arena_array(t->a, t_value *,
		f->n_out + (b->trace != NULL ? b->trace->n_in : 0) + 1);
	memcpy(g->out, f->out, (size_t)f->n_out * sizeof *f->out);
	for (int32_t k = 0; b->trace != NULL && k < b->trace->n_in; k++)
		if (b->from_seed[k] < 0 && b->from_in[k] < 0 &&
			b->from_out[k] < 0) {
			b->from_out[k] = n;
			g->out[n++] = b->trace->in[k];
			t_value_keep(b->trace->in[k]);
		}
	g->n_out = n;
	seeded = arena_array(t->a, bool, n + 1);
	memcpy(seeded, all, (size_t)f->n_known);
	b->seeded = seeded;
	g->back.n = g->back.cap = 0;
	g->back.at = NULL;
	g->live.n = g->live.cap = 0;
	g->live.at = NULL;
	*vec_push(t->a, &g->back) = b;
	make_holds(t, g, b);
	f->tracked = g;
	return g;
}

/* Does it read only values that the call keeps? */
static bool is_served(const t_trace *f, const t_back *b)
{
	for (int32_t k = 0; b->trace != NULL && k < b->trace->n_in; k++)
		if (b->from_seed[k] < 0 &&
			(b->from_in[k] < 0 || !f->holds_in[b->from_in[k]]) &&
			(b->from_out[k] < 0 || !f->holds_out[b->from_out[k]]))
			return false;
	return true;
}

const t_back *t_back_of(tensors *t, t_trace *f, const bool *seeded)
{
	t_back *b;

	if (t_is_region(f))
		return t->functions->region_back(t, f);
	for (int32_t i = 0; i < f->back.n; i++)
		if (memcmp(f->back.at[i]->seeded, seeded, (size_t)f->n_out) ==
			0)
			return f->back.at[i];
	b = new_back(t, f, seeded);
	if (is_served(f, b)) {
		*vec_push(t->a, &f->back) = b;
		return b;
	}
	for (int32_t r = f->n_known; r < f->n_out; r++)
		if (seeded[r])
			env_fail(t->e, TN_EINVAL, "grad.second",
				t_here(t),
				"the gradient of a gradient of %s reads a value "
				"that the first gradient does not, and that was "
				"not kept: take it in plain calls",
				f->name);
	return f->back.at[0]; /* the backward for all results, with zeros as seeds */
}
