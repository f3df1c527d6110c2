/*
 * finish.c: turns the chosen sets into kernels.
 *
 * Consumes groups of equations; produces kernels in topological order with
 * names, trees, buffers, inputs and outputs, and puts small independent kernels
 * that are alike into one batch.
 */
#include "fuse/inner.h"

enum {
	NAMED_CALLS = 5, /* number of calls that are in the name of a kernel */
	BATCH_SIZE = 64
};

typedef struct finish {
	fuse_state *f;
	fuse_groups *g;
	int32_t *group_of;	/* by source */
	VEC(int32_t) * readers; /* by tensor: groups */
	int32_t group;		/* the current one */
	const fuse_kernel *k;	/* its kernel */
	map *names;
} finish;

/* ---- readers ---- */

static void note_reader(finish *w, int32_t tensor, int32_t group)
{
	for (int32_t i = 0; i < w->readers[tensor].n; i++)
		if (w->readers[tensor].at[i] == group)
			return;
	*vec_push(w->f->a, &w->readers[tensor]) = group;
}

static void find_readers(finish *w)
{
	fuse_state *f = w->f;

	w->group_of = arena_array(f->a, int32_t, f->n_sources + 1);
	w->readers = arena_alloc(
		f->a, (size_t)f->s->tensor.n + 1, sizeof *w->readers);
	for (int32_t i = 0; i < f->n_sources; i++)
		w->group_of[i] = -1;
	for (int32_t g = 0; g < w->g->at.n; g++) {
		const fuse_group *o = w->g->at.at[g];

		for (int32_t i = 0; i < o->source.n; i++) {
			const eqn_unit *u = f->unit[o->source.at[i]];

			w->group_of[u->source] = g;
			for (int32_t k = 0; k < u->n_reads; k++)
				note_reader(w, u->read[k].tensor, g);
		}
	}
}

static bool reads(const eqn_unit *u, int32_t tensor)
{
	for (int32_t i = 0; i < u->n_reads; i++)
		if (u->read[i].tensor == tensor)
			return true;
	return false;
}

/* The tail reads from memory what the loops before it computed. */
static bool is_for_tail(const finish *w, int32_t tensor)
{
	const fuse_kernel *k = w->k;
	bool made = false, read = false;

	for (int32_t i = 0; k->has_tail && i < k->n_eqns; i++) {
		const fuse_eqn *e = &k->eqn[i];

		for (int32_t c = 0; c < e->e.n_out && !e->tail; c++)
			made |= e->e.out[c] == tensor;
		read |= e->tail && reads(w->f->unit[e->source], tensor);
	}
	return made && read;
}

static bool visible(void *arg, int32_t tensor)
{
	const finish *w = arg;

	if (w->f->kept[tensor] || is_for_tail(w, tensor))
		return true;
	for (int32_t i = 0; i < w->readers[tensor].n; i++)
		if (w->readers[tensor].at[i] != w->group)
			return true;
	return false;
}

/* ---- order ---- */

typedef struct place {
	int32_t n_before;
	VEC(int32_t) then;
} place;

static void before(finish *w, place *p, int32_t first, int32_t second)
{
	if (first < 0 || first == second)
		return;
	*vec_push(w->f->a, &p[first].then) = second;
	p[second].n_before++;
}

/* Adds the groups that must run before this one: producers of what it reads, and
 * readers of what it overwrites. */
static void add_places(finish *w, place *p, int32_t g)
{
	fuse_state *f = w->f;
	const fuse_group *o = w->g->at.at[g];

	for (int32_t i = 0; i < o->source.n; i++) {
		const eqn_unit *u = f->unit[o->source.at[i]];

		for (int32_t k = 0; k < u->n_reads; k++) {
			int32_t m = fuse_maker(f, u->read[k].tensor);

			if (m >= 0)
				before(w, p, w->group_of[m], g);
		}
		for (int32_t k = 0; k < f->w->readers_of[u->source].n; k++)
			before(w, p,
				w->group_of[f->w->wait.at[f->w->readers_of
					[u->source].at[k]].reader], g);
	}
}

/* The next group: one after which memory is free, or the smallest number. */
static int32_t next_of(fuse_early *e, const bool *ready, int32_t *from, int32_t n)
{
	int32_t g = fuse_early_next(e, ready);

	if (g >= 0)
		return g;
	while (*from < n && !ready[*from])
		++*from;
	return *from;
}

/* Groups with this leader. */
static int32_t add_sorted(finish *w, const int32_t *leader, int32_t g,
	fuse_groups *sorted)
{
	int32_t before = sorted->at.n;

	for (int32_t i = g; i < w->g->at.n; i++) {
		if (leader[i] != g)
			continue;
		*vec_push(w->f->a, &sorted->at) = w->g->at.at[i];
		if (leader[i] == i && w->g->at.at[i]->batch < 0)
			break;
	}
	return sorted->at.n - before;
}

/*
 * Topological order of the groups, the smallest number first, but for what makes
 * memory free (early.c); groups with one leader count as one and stay together.
 * leader[g] <= g.
 */
static void sort(finish *w, const int32_t *leader)
{
	int32_t n = w->g->at.n, done = 0, from = 0;
	place *all = arena_array(w->f->a, place, n + 1);
	place *p = arena_array(w->f->a, place, n + 1);
	bool *ready = arena_array(w->f->a, bool, n + 1);
	fuse_early *early = fuse_early_new(w->f, w->g, leader);
	fuse_groups sorted = {0};
	int32_t g;

	for (g = 0; g < n; g++)
		add_places(w, all, g);
	for (g = 0; g < n; g++)
		for (int32_t i = 0; i < all[g].then.n; i++)
			before(w, p, leader[g], leader[all[g].then.at[i]]);
	for (g = 0; g < n; g++)
		ready[g] = leader[g] == g && p[g].n_before == 0;
	while ((g = next_of(early, ready, &from, n)) < n) {
		ready[g] = false;
		done += add_sorted(w, leader, g, &sorted);
		fuse_early_ran(early, g);
		for (int32_t i = 0; i < p[g].then.n; i++) {
			int32_t k = p[g].then.at[i];

			if (--p[k].n_before > 0)
				continue;
			ready[k] = true;
			fuse_early_ready(early, k);
			if (k < from)
				from = k;
		}
	}
	if (done != n)
		env_bug(w->f->env, "fuse.order", "kernels depend on each other in a cycle");
	*w->g = sorted;
	find_readers(w);
}

/* ---- names ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_';
}

static void add_word(str *s, const char *text)
{
	for (int32_t i = 0; text != NULL && text[i] != 0 && i < 40; i++)
		str_addc(s, is_word(text[i]) ? text[i] : '_');
}

/* fn_add_0_reduce_sum_1: the calls, by row and number in the program */
static const char *kernel_name(finish *w, const fuse_kernel *k)
{
	str s = str_new(w->f->a);
	int32_t n = 0, more = 0;
	int64_t used;

	str_add(&s, "fn");
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const sys_eqn *e = &k->eqn[i].e;
		bool again = false;

		for (int32_t j = 0; j < i; j++)
			again |= k->eqn[j].e.call == e->call;
		if (again)
			continue;
		if (++n > NAMED_CALLS) {
			more++;
			continue;
		}
		str_addc(&s, '_');
		add_word(&s, e->op != NULL ? e->op : "eqn");
		str_printf(&s, "_%d", e->call < 0 ? e->id : e->call);
	}
	if (more > 0)
		str_printf(&s, "_and_%d", more);
	used = map_get_str(w->names, s.at, 0) + 1;
	map_set_str(w->names, s.at, used);
	if (used > 1)
		str_printf(&s, "_part_%d", (int)used);
	return s.at;
}

/* ---- inputs and outputs ---- */

static bool has(int32_t n, const int32_t *at, int32_t v)
{
	for (int32_t i = 0; i < n; i++)
		if (at[i] == v)
			return true;
	return false;
}

static void find_ports(finish *w, fuse_kernel *k, eqn_unit *const *unit)
{
	fuse_state *f = w->f;
	VEC(int32_t) in = {0}, out = {0};

	for (int32_t i = 0; i < k->n_eqns; i++) {
		const eqn_unit *u = unit[i];

		for (int32_t r = 0; r < u->n_reads; r++) {
			int32_t t = u->read[r].tensor, m = fuse_maker(f, t);

			if (m >= 0 && w->group_of[m] == w->group)
				continue;
			if (!has(in.n, in.at, t))
				*vec_push(f->a, &in) = t;
		}
		for (int32_t c = 0; c < u->e.n_out; c++)
			if (visible(w, u->e.out[c]))
				*vec_push(f->a, &out) = u->e.out[c];
	}
	k->n_inputs = in.n;
	k->input = in.at;
	k->n_outputs = out.n;
	k->output = out.at;
}

/* ---- batches ---- */

/* Longest chain of groups before each; groups are in order. */
static int32_t *depths(finish *w)
{
	int32_t n = w->g->at.n;
	int32_t *depth = arena_array(w->f->a, int32_t, n + 1);
	place *p = arena_array(w->f->a, place, n + 1);

	for (int32_t i = 0; i < n; i++)
		add_places(w, p, i);
	for (int32_t i = 0; i < n; i++)
		for (int32_t k = 0; k < p[i].then.n; k++)
			if (depth[p[i].then.at[k]] <= depth[i])
				depth[p[i].then.at[k]] = depth[i] + 1;
	return depth;
}

/* A key that the groups of one batch have in common; false: not a small kernel. */
static bool batch_key(
	finish *w, const fuse_group *o, arena *a, int32_t *n, int32_t **out)
{
	VEC(int32_t) key = {0};
	int64_t volume = 0;

	for (int32_t i = 0; i < o->source.n; i++) {
		const eqn_unit *u = w->f->unit[o->source.at[i]];

		if (u->e.opaque != NULL)
			return false;
		if (u->volume > volume)
			volume = u->volume;
		*vec_push(a, &key) = u->kin;
	}
	*n = key.n;
	*out = key.at;
	return volume <= w->f->t->fusion.batch_volume;
}

static bool touches(const finish *w, const fuse_group *g, int32_t storage)
{
	const ir_system *s = w->f->s;

	for (int32_t i = 0; i < g->source.n; i++) {
		const eqn_unit *u = w->f->unit[g->source.at[i]];

		for (int32_t k = 0; k < u->n_reads; k++)
			if (s->tensor.at[u->read[k].tensor].storage == storage)
				return true;
		for (int32_t k = 0; k < u->e.n_out; k++)
			if (s->tensor.at[u->e.out[k]].storage == storage)
				return true;
	}
	return false;
}

/* Does b access a storage that a writes? Then they cannot run together. */
static bool writes_near(
	const finish *w, const fuse_group *a, const fuse_group *b)
{
	for (int32_t i = 0; i < a->source.n; i++) {
		const eqn_unit *u = w->f->unit[a->source.at[i]];

		for (int32_t k = 0; k < u->e.n_out; k++) {
			int32_t storage =
				w->f->s->tensor.at[u->e.out[k]].storage;

			if (storage >= 0 && touches(w, b, storage))
				return true;
		}
	}
	return false;
}

/* Can the group join the batch that this one leads? */
static bool stands_apart(
	const finish *w, const int32_t *leader, int32_t first, int32_t i)
{
	for (int32_t k = first; k < i; k++)
		if ((k == first || leader[k] == first) &&
			(writes_near(w, w->g->at.at[k], w->g->at.at[i]) ||
				writes_near(w, w->g->at.at[i],
					w->g->at.at[k])))
			return false;
	return true;
}

/*
 * Finds batches: small groups that are alike, with equally long chains before
 * them, so that none depends on another (as the updates of an optimiser).
 */
static void find_batches(finish *w)
{
	fuse_state *f = w->f;
	int32_t n = w->g->at.n, n_batches = 0;
	int32_t *depth = depths(w), *leader = arena_array(f->a, int32_t, n + 1);
	int32_t *count = arena_array(f->a, int32_t, n + 1);
	map *of = map_new(f->a);

	for (int32_t i = 0; i < n; i++) {
		fuse_group *o = w->g->at.at[i], *first;
		int32_t n_key, *key, *full;
		size_t n_bytes;
		int64_t at;

		leader[i] = i;
		o->batch = -1;
		if (!batch_key(w, o, f->a, &n_key, &key))
			continue;
		full = arena_array(f->a, int32_t, n_key + 1);
		memcpy(full, key, (size_t)n_key * sizeof *key);
		full[n_key] = depth[i];
		n_bytes = ((size_t)n_key + 1) * sizeof *full;
		at = map_get(of, full, n_bytes, -1);
		if (at < 0 || count[at] == BATCH_SIZE ||
			!stands_apart(w, leader, (int32_t)at, i)) {
			map_set(of, full, n_bytes, i);
			count[i] = 1;
			continue;
		}
		first = w->g->at.at[at];
		if (first->batch < 0)
			first->batch = n_batches++;
		o->batch = first->batch;
		leader[i] = (int32_t)at;
		count[at]++;
	}
	if (n_batches > 0)
		sort(w, leader);
}

/* ---- all ---- */

static fuse_kernel *make_kernel(finish *w, const fuse_group *o)
{
	fuse_state *f = w->f;
	int32_t n = o->source.n;
	eqn_unit **unit = arena_array(f->a, eqn_unit *, n);
	fuse_kernel *k;

	for (int32_t i = 0; i < n; i++)
		unit[i] = f->unit[o->source.at[i]];
	k = fuse_tree(f, n, unit);
	w->k = k;
	k->seconds = o->seconds;
	k->name = kernel_name(w, k);
	fuse_buffers(f, k, visible, w);
	find_ports(w, k, unit);
	for (int32_t i = 0; i < n; i++)
		k->eqn[i].recomputed = f->copied[unit[i]->source];
	fuse_scratch_reset(f);
	return k;
}

void fuse_finish(fuse_state *f, fuse_groups *g, fuse_plan *p, bool batch)
{
	finish w = {.f = f, .g = g, .names = map_new(f->a)};
	int32_t *alone = arena_array(f->a, int32_t, g->at.n + 1);

	for (int32_t i = 0; i < g->at.n; i++) {
		alone[i] = i;
		g->at.at[i]->batch = -1;
	}
	find_readers(&w);
	sort(&w, alone);
	if (batch && fuse_first_again(f) == INT32_MAX)
		find_batches(&w);
	for (int32_t i = 0; i < g->at.n; i++) {
		fuse_kernel *k;

		w.group = i;
		k = make_kernel(&w, g->at.at[i]);
		k->id = i;
		k->batch = g->at.at[i]->batch;
		*vec_push(f->a, &p->kernel) = k;
		fuse_merges(f, p, k);
	}
}
