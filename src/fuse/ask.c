/*
 * ask.c: prices a set of equations as the kernel that it would become.
 *
 * The model of cost.c is a lower bound: it counts bytes and operations, and
 * assumes that the schedule finds lanes and tiles. So before sets are merged,
 * the set and its parts are scheduled and estimated by fuse_options.price.
 * Equal sets are priced once.
 *
 *     y = conv(x)  s = silu(y)  m = mean(s)        lanes along the pixels?
 */
#include "fuse/inner.h"

#include <math.h>

/*
 * Makes a kernel of the set, whose outputs are the tensors that others read;
 * NULL: it would have too many variables.
 */
static fuse_kernel *kernel_of(
	choice *c, arena *a, int32_t n, eqn_unit *const *unit, fuse_sees *sees)
{
	fuse_state own = *c->f;
	VEC(int32_t) in = {0}, out = {0};
	fuse_kernel *k;

	own.a = a;
	k = fuse_tree(&own, n, unit);
	if (k->n_vars > FUSE_MAX_VARS)
		return NULL;
	k->name = "fn";
	fuse_buffers(&own, k, sees, c);
	for (int32_t i = 0; i < n; i++) {
		const eqn_unit *u = unit[i];

		for (int32_t r = 0; r < u->n_reads; r++) {
			int32_t t = u->read[r].tensor, m = fuse_maker(&own, t);
			bool again = m >= 0 && c->inside[m];

			for (int32_t j = 0; j < in.n; j++)
				again |= in.at[j] == t;
			if (!again)
				*vec_push(a, &in) = t;
		}
		for (int32_t j = 0; j < u->e.n_out; j++)
			if (sees(c, u->e.out[j]))
				*vec_push(a, &out) = u->e.out[j];
	}
	k->n_inputs = in.n;
	k->input = in.at;
	k->n_outputs = out.n;
	k->output = out.at;
	return k;
}

/* Elements of the tensors that are in buffers of more than one element. */
static double buffered_in(const choice *c, const fuse_kernel *k)
{
	double sum = 0;

	for (int32_t i = 0; i < k->n_bufs; i++)
		if (k->buf[i].elems > 1)
			sum += (double)c->f->s->tensor.at[k->buf[i].tensor]
					.numel;
	return sum;
}

/* What is known of the kernel that the set would become, whose members are
 * marked in c->inside. The next question may move it. */
static choice_kernel *find_kernel(choice *c, int32_t n, eqn_unit *const *unit)
{
	int32_t *key, n_key;
	size_t n_bytes;
	int64_t found;

	choice_describe(c, n, unit, fuse_scratch(c->f), &key, &n_key);
	n_bytes = (size_t)n_key * sizeof *key;
	found = map_get(c->asked, key, n_bytes, -1);
	if (found >= 0)
		return &c->kernel.at[found];
	map_set(c->asked, key, n_bytes, c->kernel.n);
	*vec_push(c->f->a, &c->kernel) = (choice_kernel){.buffered = -1};
	return &c->kernel.at[c->kernel.n - 1];
}

fuse_price choice_ask(
	choice *c, int32_t n, eqn_unit *const *unit, fuse_sees *sees)
{
	const fuse_pricing *price = c->f->price;
	choice_kernel *known;

	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = true;
	known = find_kernel(c, n, unit);
	if (known->price.seconds <= 0) {
		fuse_kernel *k = kernel_of(c, c->asking, n, unit, sees);

		if (k != NULL)
			known->buffered = buffered_in(c, k);
		known->price = k == NULL ? (fuse_price){INFINITY, "", INFINITY}
					 : price->fn(price->arg, c->asking, k);
		c->f->work->n_priced++;
		arena_clear(c->asking);
	}
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = false;
	return known->price;
}

double choice_buffered(choice *c, int32_t n, eqn_unit *const *unit)
{
	fuse_state own = *c->f;
	choice_kernel *known;

	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = true;
	known = find_kernel(c, n, unit);
	if (known->buffered < 0) {
		fuse_kernel *k;

		own.a = fuse_scratch(c->f);
		k = fuse_tree(&own, n, unit);
		fuse_buffers(&own, k, choice_sees, c);
		known->buffered = buffered_in(c, k);
	}
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = false;
	return known->buffered;
}

int64_t choice_cut_at(choice *c, int32_t n, eqn_unit *const *unit,
	int32_t **key, size_t *n_bytes)
{
	int32_t n_key;

	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = true;
	choice_describe(c, n, unit, fuse_scratch(c->f), key, &n_key);
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = false;
	*n_bytes = (size_t)n_key * sizeof **key;
	return map_get(c->cuts, *key, *n_bytes, -1);
}

/* Was such a set split? Then *out has the seconds of its two kernels. */
static bool is_cut(
	choice *c, int32_t n, eqn_unit *const *unit, fuse_quote *out)
{
	int32_t *key;
	size_t n_bytes;
	int64_t found = -1;

	if (c->n_cut > 0)
		found = choice_cut_at(c, n, unit, &key, &n_bytes);
	if (found < 0 || c->cut.at[found].first == 0)
		return false;
	out->apart = c->cut.at[found].apart;
	out->alone = c->cut.at[found].alone;
	return true;
}

int32_t choice_n_vars(choice *c, int32_t n, eqn_unit *const *unit)
{
	int32_t *key, n_key, n_vars;
	size_t n_bytes;
	int64_t found;

	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = true;
	choice_describe(c, n, unit, fuse_scratch(c->f), &key, &n_key);
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = false;
	n_bytes = (size_t)n_key * sizeof *key;
	found = map_get(c->counted, key, n_bytes, -1);
	n_vars = found >= 0 ? (int32_t)found : fuse_n_vars(c->f, n, unit);
	if (found < 0)
		map_set(c->counted, key, n_bytes, n_vars);
	return n_vars > FUSE_MAX_VARS ? n_vars : 0;
}

/*
 * May the operations of one iteration wait for each other so long that two loops
 * are faster? The terms of a short sum do, and the lanes of a long one when its
 * loop has ended.
 */
static bool may_wait(const machine *m, int32_t n, eqn_unit *const *unit)
{
	int64_t ops = 0;

	for (int32_t i = 0; i < n; i++) {
		int64_t terms = unit[i]->volume / unit[i]->out_elems;

		if (terms <= m->schedule.small_inside)
			ops += terms * (unit[i]->flops + (terms > 1));
		else
			for (int32_t l = machine_lanes(m, 4); l > 1; l /= 2)
				ops += 2;
	}
	return n > 1 && (double)ops * m->cycles.chain > m->cycles.window;
}

/*
 * Are neighbours in the result of a product too few for a vector? Then the columns
 * of its tiles may be far apart, as the filters are in the gradient of a convolution
 * by its weights, and what follows walks across its lines.
 */
static bool may_jump(const machine *m, const eqn_unit *u)
{
	int64_t near = 0;

	for (int32_t i = 0; i < u->e.n_left; i++)
		if (u->stride[i] == 1 && u->box.extent[i] > near)
			near = u->box.extent[i];
	return u->contraction && near < machine_lanes(m, 4);
}

/*
 * Do all units share all loops, except those of one sum, in short iterations?
 * Then the kernel is one loop nest with an epilogue, for which the bound is good
 * enough.
 */
bool choice_is_one_nest(
	const machine *m, int32_t n, eqn_unit *const *unit, int64_t shared)
{
	int32_t sums = 0;

	if (may_wait(m, n, unit))
		return false;
	for (int32_t i = 0; i < n; i++) {
		if (unit[i]->out_elems > shared || unit[i]->e.push != NULL ||
			unit[i]->has_scan || (n > 1 && may_jump(m, unit[i])))
			return false;
		sums += unit[i]->e.monoid != IR_SET;
	}
	return sums <= 1;
}

/* Adds what the members of a group, m units, take at best. */
static void add_part(choice *c, const fuse_group *g, int32_t m,
	eqn_unit *const *unit, fuse_quote *out)
{
	fuse_price p = choice_ask(c, m, unit, choice_sees);
	bool better = g != NULL && g->best > 0 && g->best < p.seconds;

	out->apart += better ? g->best : p.seconds;
	out->alone += p.alone;
}

/* Is the kernel not slower than its parts, with all threads and with one? */
static bool is_won(const choice *c, const fuse_quote *q, double apart,
	double alone)
{
	const machine_fusion *t = &c->f->t->fusion;

	return q->fused.seconds <= t->most_lost * apart &&
	       q->fused.alone <= t->alone_lost * alone;
}

/*
 * A merge may take a little longer than its parts by the estimate, which is not
 * exact. But a part that was merged so counts with what it took before: else
 * several merges of one kernel could lose a little each, and much together.
 * Launches weigh more the more threads there are, and nobody knows how many there
 * will be: a merge has to be as good with one.
 */
bool choice_pays(choice *c, int32_t n, fuse_group *const *g, const eqn_unit *e,
	const choice_verdict *v, fuse_quote *out)
{
	eqn_unit **unit;
	int32_t size = 1, m, left;

	out->best = 0;
	if (c->f->price == NULL && !v->is_many)
		return true;
	for (int32_t i = 0; i < n; i++)
		size += g[i]->source.n;
	unit = arena_array(fuse_scratch(c->f), eqn_unit *, size + 1);
	m = choice_members(c, n, g, e, unit);
	if (c->f->price == NULL || choice_is_one_nest(
					   c->f->t, m, unit, v->shared))
		return !v->is_many || choice_n_vars(c, m, unit) == 0;
	out->fused = choice_ask(c, m, unit, choice_sees);
	out->best = out->fused.seconds;
	out->apart = 0;
	out->alone = 0;
	if (out->fused.seconds == INFINITY ||
		is_cut(c, m, unit, out))
		return false;
	/* each part takes at least a launch, which often decides already */
	left = n + (e != NULL);
	for (int32_t i = 0; i < n + (e != NULL); i++) {
		double least = left-- * machine_launch(
						c->f->t, c->f->s->in_rounds);

		if (is_won(c, out, out->apart + least, out->alone + least))
			return true;
		if (i < n)
			m = choice_members(c, 1, &g[i], NULL, unit);
		else
			unit[0] = c->f->unit[e->source], m = 1;
		if (m > 0)
			add_part(c, i < n ? g[i] : NULL, m, unit, out);
	}
	if (out->apart < out->best)
		out->best = out->apart;
	return is_won(c, out, out->apart, out->alone);
}

static bool is_among(int32_t n, fuse_group *const *g, const fuse_group *one)
{
	for (int32_t i = 0; i < n; i++)
		if (g[i] == one)
			return true;
	return false;
}

double choice_ask_all(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, int32_t n_all, fuse_group *const *all)
{
	int32_t size = 1, m;
	eqn_unit **unit;
	double sum;

	for (int32_t i = 0; i < n + n_all; i++)
		size += (i < n ? g[i] : all[i - n])->source.n;
	unit = arena_array(fuse_scratch(c->f), eqn_unit *, size + 1);
	m = choice_members(c, n, g, e, unit);
	sum = choice_ask(c, m, unit, choice_sees).seconds;
	for (int32_t i = 0; i < n_all; i++) {
		if (is_among(n, g, all[i]))
			continue;
		m = choice_members(c, 1, &all[i], NULL, unit);
		if (m > 0 && unit[0]->e.opaque == NULL)
			sum += choice_ask(c, m, unit, choice_sees).seconds;
	}
	return sum;
}
