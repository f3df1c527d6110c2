/*
 * verdict.c: may a set be one kernel, and the bound of its seconds.
 *
 * Consumes a set of units; produces a verdict: its seconds by cost.c, INFINITY
 * if no loop is shared, and the iterations that are. Sets with the same
 * description have the same verdict, which is computed once.
 *
 *     {t, s} of t = exp(x); s = sum(t, 1)   ->   64 shared iterations, 3 us
 */
#include "fuse/inner.h"

#include <math.h>

/* Does anything outside the set at hand see the tensor? */
bool choice_sees(void *arg, int32_t tensor)
{
	const choice *c = arg;

	if (c->f->kept[tensor])
		return true;
	for (int32_t i = 0; i < c->readers[tensor].n; i++)
		if (!c->inside[c->readers[tensor].at[i]])
			return true;
	return false;
}

/* ---- seconds ---- */

/* What a set looks like: its shapes, and which names are one tensor. */
void choice_describe(choice *c, int32_t n, eqn_unit *const *unit, arena *a,
	int32_t **out, int32_t *n_out)
{
	VEC(int32_t) key = {0};
	VEC(int32_t) used = {0};
	int32_t n_names = 0;

	for (int32_t i = 0; i < n; i++)
		n_names += unit[i]->n_names;
	vec_reserve(a, &key, n + 2 * n_names);
	vec_reserve(a, &used, n_names);
	for (int32_t i = 0; i < n; i++) {
		const eqn_unit *u = unit[i];

		*vec_push(a, &key) = u->shape;
		/* a new tensor has its flags behind its number */
		for (int32_t k = 0; k < u->n_names; k++) {
			int32_t t = u->name[k], maker = fuse_maker(c->f, t);
			int32_t flags = 0;

			*vec_push(a, &key) = c->local[t] < 0 ? used.n
							     : c->local[t];
			if (c->local[t] < 0) {
				c->local[t] = used.n;
				*vec_push(a, &used) = t;
				if (maker >= 0 && c->inside[maker])
					flags = choice_sees(c, t) ? 2 : 1;
				else if (c->f->s->tensor.at[t].is_input)
					flags = 4; /* farther than others */
				if (c->f->w->version[t] >= 0) {
					*vec_push(a, &key) = -1;
					*vec_push(a, &key) =
						c->f->s->tensor.at[t].storage;
					*vec_push(
						a, &key) = c->f->w->version[t];
				}
				*vec_push(a, &key) = flags;
			}
		}
	}
	for (int32_t i = 0; i < used.n; i++)
		c->local[used.at[i]] = -1;
	*out = key.at;
	*n_out = key.n;
}

/*
 * May the set have more loop variables than one kernel has? A loop that is not
 * shared walks one digit of one member.
 */
static bool is_many(const part_set *s)
{
	int32_t n = s->class.n;

	for (int32_t i = 0; i < s->n; i++) {
		n += s->m.at[i].digit.n - s->class.n;
		if (s->m.at[i].u->e.push != NULL) /* its INIT has its own */
			n += s->m.at[i].digit.n + 1;
	}
	return s->n > 1 && n > FUSE_FEW_VARS;
}

/* The seconds of the set as one kernel with a tail; *shared: the iterations that
 * the others share. INFINITY: that is impossible. */
static double tail_seconds(choice *c, int32_t n, eqn_unit *const *unit,
	int64_t *shared)
{
	fuse_state *f = c->f;
	bool *is_tail = arena_array(fuse_scratch(f), bool, n);
	part_set *main;

	if (fuse_tail(f, n, unit, is_tail) == 0)
		return INFINITY;
	main = fuse_part_of(f, n, unit, is_tail, false);
	for (int32_t i = 0; i < main->class.n; i++)
		*shared *= main->class.at[i].extent;
	return fuse_seconds(f, main, choice_sees, c) -
	       machine_launch(f->t, f->s->in_rounds) +
	       fuse_seconds(f, fuse_part_of(f, n, unit, is_tail, true),
		       choice_sees, c);
}

/* The rows of the squares that each group of readers computes again: blocks of keys go by
 * where the kernel has a loop over the rows around everything. 0: there are none. */
static int64_t rows_of_squares(const fuse_state *f, int32_t n, eqn_unit *const *unit)
{
	int64_t rows = 0;

	for (int32_t i = 0; i < n; i++) {
		const eqn_unit *u = unit[i];
		int64_t keys = 1, of;

		if (f->s->eqn.at[u->source].square == 0 || !u->contraction)
			continue;
		for (int32_t a = 0; a < u->e.n_left; a++)
			keys = u->box.extent[a] > keys ? u->box.extent[a] : keys;
		of = u->out_elems / keys;
		rows = of > rows ? of : rows;
	}
	return rows;
}

static choice_verdict compute(choice *c, int32_t n, eqn_unit *const *unit)
{
	choice_verdict v = {.seconds = INFINITY, .shared = 1};
	fuse_state *f = c->f;
	int64_t volume = 0;
	part_set *s;

	for (int32_t i = 0; i < n; i++) {
		if (n > 1 && unit[i]->e.opaque != NULL)
			return v;
		volume += unit[i]->volume;
	}
	if (unit[0]->e.opaque != NULL) {
		v.seconds = machine_launch(f->t, f->s->in_rounds);
		return v;
	}
	s = part_new(f, fuse_scratch(f), n, unit);
	part_refine(s);
	part_classes(f, s);
	for (int32_t i = 0; i < s->class.n; i++)
		v.shared *= s->class.at[i].extent;
	v.is_many = is_many(s);
	if (v.shared < rows_of_squares(f, n, unit))
		return v;
	if (s->class.n > 0 || n == 1 || volume <= f->t->fusion.serial_volume ||
		rule_dropped(f, FUSE_RULE_SHARE))
		v.seconds = fuse_seconds(f, s, choice_sees, c);
	else
		v.seconds = tail_seconds(c, n, unit, &v.shared);
	return v;
}

/* Is it behind what is made again? Then its results wait for their readers in
 * memory that was freed for others. */
static bool is_late(const choice *c, int32_t n, eqn_unit *const *unit)
{
	int32_t first = fuse_first_again(c->f);

	for (int32_t i = 0; i < n; i++)
		if (unit[i]->source >= first)
			return true;
	return false;
}

bool choice_holds_much(choice *c, int32_t n, eqn_unit *const *unit)
{
	double largest = 0, sum = 0;

	if (n < 2 || !is_late(c, n, unit))
		return false;
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = true;
	for (int32_t i = 0; i < n; i++)
		for (int32_t k = 0; k < unit[i]->e.n_out; k++) {
			int32_t t = unit[i]->e.out[k];
			const sys_tensor *s = &c->f->s->tensor.at[t];
			double bytes = (double)s->numel *
				(double)tn_dtype_bytes(s->dtype);

			if (c->f->kept[t] || !choice_sees(c, t))
				continue;
			sum += bytes;
			largest = bytes > largest ? bytes : largest;
		}
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = false;
	return sum > c->f->t->fusion.most_held * largest;
}

choice_verdict choice_judge(choice *c, int32_t n, eqn_unit *const *unit)
{
	choice_verdict v = {.seconds = n == 0 ? 0 : INFINITY, .shared = 1};
	int32_t *key, n_key;
	size_t n_bytes;
	int64_t found;

	if (n == 0 || n > c->f->t->fusion.max_eqns ||
		fuse_apart_both(c->f, n, unit) ||
		fuse_apart_again(c->f, n, unit) ||
		fuse_apart_groups(c->f, n, unit) ||
		choice_holds_much(c, n, unit))
		return v;
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = true;
	choice_describe(c, n, unit, fuse_scratch(c->f), &key, &n_key);
	n_bytes = (size_t)n_key * sizeof *key;
	found = map_get(c->known, key, n_bytes, -1);
	if (found >= 0) {
		v = c->verdict.at[found];
	} else {
		v = compute(c, n, unit);
		c->f->work->n_judged++;
		map_set(c->known, key, n_bytes, c->verdict.n);
		*vec_push(c->f->a, &c->verdict) = v;
	}
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = false;
	return v;
}

/* Live sources of the groups and e, in order. */
int32_t choice_members(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, eqn_unit **out)
{
	fuse_state *f = c->f;
	int32_t *at = arena_array(fuse_scratch(f), int32_t, n + 1), m = 0;

	for (;;) {
		int32_t best = -1;

		for (int32_t i = 0; i < n; i++) {
			while (at[i] < g[i]->source.n &&
				f->unit[g[i]->source.at[at[i]]] == NULL)
				at[i]++;
			if (at[i] == g[i]->source.n)
				continue;
			if (best < 0 ||
				c->position[g[i]->source.at[at[i]]] <
					c->position[g[best]->source
							    .at[at[best]]])
				best = i;
		}
		if (best < 0)
			break;
		out[m++] = f->unit[g[best]->source.at[at[best]++]];
	}
	if (e != NULL)
		out[m++] = f->unit[e->source];
	return m;
}
