/*
 * ask.c: what a set costs as the kernel that it would become.
 *
 * The model of cost.c is a bound: it counts bytes and operations, and takes
 * for granted that the schedule finds lanes and tiles for them. So before sets
 * are merged, whoever knows schedules is asked (fuse_options.price): for the
 * set, and for its parts. Equal sets are asked about once.
 *
 *     y = conv(x)  s = silu(y)  m = mean(s)        lanes along the pixels?
 */
#include "fuse/inner.h"

/* The set as a kernel, with the tensors that others see. */
static fuse_kernel *kernel_of(
	choice *c, arena *a, int32_t n, eqn_unit *const *unit, fuse_sees *sees)
{
	fuse_state own = *c->f;
	VEC(int32_t) in = {0}, out = {0};
	fuse_kernel *k;

	own.a = a;
	k = fuse_tree(&own, n, unit);
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

fuse_price choice_ask(
	choice *c, int32_t n, eqn_unit *const *unit, fuse_sees *sees)
{
	fuse_state *f = c->f;
	arena *a = arena_child(f->a);
	fuse_price p = {0};
	int64_t found;
	int32_t *key, n_key;
	size_t n_bytes;

	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = true;
	choice_describe(c, n, unit, a, &key, &n_key);
	n_bytes = (size_t)n_key * sizeof *key;
	found = map_get(c->asked, key, n_bytes, -1);
	if (found >= 0) {
		p = c->price.at[found];
	} else {
		p = f->price->fn(
			f->price->arg, a, kernel_of(c, a, n, unit, sees));
		map_set(c->asked, key, n_bytes, c->price.n);
		*vec_push(f->a, &c->price) = p;
	}
	for (int32_t i = 0; i < n; i++)
		c->inside[unit[i]->source] = false;
	arena_free(a);
	return p;
}

/*
 * All loops are shared, but for those of one sum: one nest, with what follows
 * on each element. The bound knows such sets well enough.
 */
bool choice_is_one_nest(int32_t n, eqn_unit *const *unit, int64_t shared)
{
	int32_t sums = 0;

	for (int32_t i = 0; i < n; i++) {
		if (unit[i]->out_elems > shared || unit[i]->e.push != NULL ||
			unit[i]->has_scan)
			return false;
		sums += unit[i]->e.monoid != IR_SET;
	}
	return sums <= 1;
}

bool choice_pays(choice *c, int32_t n, fuse_group *const *g, const eqn_unit *e,
	int64_t shared, fuse_quote *out)
{
	arena *tmp;
	eqn_unit **unit;
	int32_t size = 1, m;

	if (c->f->price == NULL)
		return true;
	for (int32_t i = 0; i < n; i++)
		size += g[i]->source.n;
	tmp = arena_child(c->f->a);
	unit = arena_array(tmp, eqn_unit *, size + 1);
	m = choice_members(c, n, g, e, unit);
	if (choice_is_one_nest(m, unit, shared)) {
		arena_free(tmp);
		return true;
	}
	out->fused = choice_ask(c, m, unit, choice_sees);
	out->apart = 0;
	for (int32_t i = 0; i < n; i++) {
		m = choice_members(c, 1, &g[i], NULL, unit);
		if (m > 0)
			out->apart +=
				choice_ask(c, m, unit, choice_sees).seconds;
	}
	if (e != NULL) {
		unit[0] = c->f->unit[e->source];
		out->apart += choice_ask(c, 1, unit, choice_sees).seconds;
	}
	arena_free(tmp);
	return out->fused.seconds <= c->f->t->fusion.most_lost * out->apart;
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
	arena *tmp = arena_child(c->f->a);
	int32_t size = 1, m;
	eqn_unit **unit;
	double sum;

	for (int32_t i = 0; i < n + n_all; i++)
		size += (i < n ? g[i] : all[i - n])->source.n;
	unit = arena_array(tmp, eqn_unit *, size + 1);
	m = choice_members(c, n, g, e, unit);
	sum = choice_ask(c, m, unit, choice_sees).seconds;
	for (int32_t i = 0; i < n_all; i++) {
		if (is_among(n, g, all[i]))
			continue;
		m = choice_members(c, 1, &all[i], NULL, unit);
		if (m > 0 && unit[0]->e.opaque == NULL)
			sum += choice_ask(c, m, unit, choice_sees).seconds;
	}
	arena_free(tmp);
	return sum;
}
