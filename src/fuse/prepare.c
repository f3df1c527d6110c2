/*
 * prepare.c: a system made ready for partition.
 *
 * Consumes a system; produces a unit for every equation that is computed:
 *
 *   1  movements and constants put into their readers; an output that has
 *      the elements of another tensor in the same order is an alias
 *   2  equations that nobody needs any more left out
 *   3  writes of overwritten storages put behind the readers of what they
 *      destroy; where that is impossible the value goes to a tensor of its
 *      own and a copy stores it at the end
 *
 *     y = transpose(x); o = y + 1; return o, y   ->   o[i,j] = x[j,i] + 1; y[i,j] = x[j,i]
 */
#include "fuse/inner.h"

typedef struct prepare {
	fuse_state *f;
	VEC(sys_eqn *) e; /* by source: with movements put in */
} prepare;

/* ---- constants ---- */

/*
 * The sum of a whole number over axes that nothing depends on is a product,
 * exact while it is small: the divisor of an average.
 */
static void fold_count(fuse_state *f, sys_eqn *e)
{
	const expr *b = e->body[0];
	int64_t n = 1, v;

	if (e->monoid != IR_SUM || e->push != NULL || e->init[0] != NULL ||
		b->kind != EX_CONST)
		return;
	for (int32_t i = e->n_left; i < e->n_axes; i++)
		if (!mul_ok(n, e->axis[i].extent, &n))
			return;
	if (dtype_is_float(b->dtype)) {
		v = b->c.f > -1024 && b->c.f < 1024 ? (int64_t)b->c.f : 0;
		if ((double)v != b->c.f || !mul_ok(v, n, &v) || v > 1 << 24 ||
			v < -(1 << 24))
			return;
		b = ex_const_f(f->s, b->dtype, (double)v);
	} else {
		if (!mul_ok(b->c.i, n, &v))
			return;
		b = ex_const_i(f->s, b->dtype, v);
	}
	if (b->dtype != f->s->tensor.at[e->out[0]].dtype)
		b = ex_cast(f->s, f->s->tensor.at[e->out[0]].dtype, b);
	e->monoid = IR_SET;
	e->n_axes = e->n_left;
	e->body[0] = b;
}

/* ---- movements ---- */

/* Element number of the result at a point of the left axes. */
static const ix_form *position(fuse_state *f, const sys_eqn *e, ix_dom *d)
{
	ix *x = f->s->x;
	int64_t *extent = arena_array(f->a, int64_t, e->n_axes + 1);
	const ix_form *at[IR_MAX_AXES];

	for (int32_t i = 0; i < e->n_left; i++)
		extent[i] = e->axis[i].extent;
	d->box = (ix_box){.n = e->n_left, .extent = extent};
	for (int32_t i = 0; i < e->n_left; i++)
		at[i] = ix_axis(x, d, i);
	return ix_linearise(x, d, e->n_left, extent, at);
}

/* The tensor that a movement has all elements of, in order; -1 none. */
static int32_t same_as(fuse_state *f, const sys_eqn *e)
{
	const expr *b = e->body[0];
	ix_dom d = {0};
	const ix_form *own;

	if (!eqn_is_movement(e) || b->kind != EX_READ)
		return -1;
	if (f->s->tensor.at[b->tensor].numel !=
			f->s->tensor.at[e->out[0]].numel ||
		f->s->tensor.at[b->tensor].dtype !=
			f->s->tensor.at[e->out[0]].dtype)
		return -1;
	own = position(f, e, &d);
	if (ix_equal(f->s->x, &d, own, b->form) != IX_EQUAL)
		return -1;
	return b->tensor;
}

static bool same_shape(const fuse_state *f, int32_t x, int32_t y)
{
	const sys_tensor *s = &f->s->tensor.at[x], *t = &f->s->tensor.at[y];

	return s->rank == t->rank &&
		memcmp(s->shape, t->shape,
			(size_t)t->rank * sizeof *t->shape) == 0;
}

static void put_in(prepare *w)
{
	fuse_state *f = w->f;

	for (int32_t i = 0; i < f->s->eqn.n; i++) {
		sys_eqn *e = arena_make(f->a, sys_eqn);
		int32_t *in;

		*e = eqn_inline(f->g, &f->s->eqn.at[i]);
		*vec_push(f->a, &w->e) = e;
		if (e->opaque == NULL)
			fold_count(f, e);
		if (e->opaque == NULL) {
			if (eqn_is_movement(e))
				eqn_replace(f->g, e);
			continue;
		}
		in = arena_copy(f->a, e->opaque_in,
			(size_t)e->n_opaque_in * sizeof *in);
		for (int32_t k = 0; k < e->n_opaque_in; k++) {
			int32_t maker = fuse_maker(f, in[k]);
			int32_t from = maker < 0 ? -1
						 : same_as(f, w->e.at[maker]);

			if (from >= 0 && same_shape(f, from, in[k]))
				in[k] = from;
		}
		e->opaque_in = in;
	}
	for (int32_t i = 0; i < w->e.n; i++)
		if (w->e.at[i]->opaque == NULL)
			eqn_keep(f->g, w->e.at[i]);
}

/* ---- storages ---- */

bool fuse_is_destroyed(const fuse_state *f, int32_t tensor)
{
	int32_t v = f->version[tensor];

	return v >= 0 &&
	       v + 1 < f->storage[f->s->tensor.at[tensor].storage].tensor.n;
}

static void find_storages(fuse_state *f)
{
	ir_system *s = f->s;

	for (int32_t i = 0; i < s->tensor.n; i++)
		if (s->tensor.at[i].storage >= f->n_storages)
			f->n_storages = s->tensor.at[i].storage + 1;
	f->storage = arena_array(f->a, fuse_storage, f->n_storages + 1);
	f->version = arena_array(f->a, int32_t, 2 * s->tensor.n + 1);
	for (int32_t i = 0; i < 2 * s->tensor.n + 1; i++)
		f->version[i] = -1;
	for (int32_t i = 0; i < s->tensor.n; i++) {
		fuse_storage *o;

		if (s->tensor.at[i].storage < 0)
			continue;
		o = &f->storage[s->tensor.at[i].storage];
		f->version[i] = o->tensor.n;
		*vec_push(f->a, &o->tensor) = i;
	}
}

/* Tensor t goes to memory of its own. */
static void detach(fuse_state *f, int32_t t)
{
	fuse_storage *o = &f->storage[f->s->tensor.at[t].storage];
	int32_t n = 0;

	for (int32_t i = 0; i < o->tensor.n; i++) {
		if (o->tensor.at[i] == t)
			continue;
		o->tensor.at[n] = o->tensor.at[i];
		f->version[o->tensor.at[n]] = n;
		n++;
	}
	o->tensor.n = n;
	f->version[t] = -1;
	f->s->tensor.at[t].storage = -1;
}

/* A last equation that stores t where it belongs. */
static int32_t add_copy(
	prepare *w, int32_t t, int32_t storage, const char *why)
{
	fuse_state *f = w->f;
	ir_system *s = f->s;
	fuse_storage *o = &f->storage[storage];
	sys_eqn e = {.label = "store",
		.op = "store",
		.why = why,
		.call = s->eqn.at[s->tensor.at[t].eqn].call,
		.monoid = IR_SET,
		.n_out = 1,
		.scan_axis = -1};
	ix_dom d = {0};
	int32_t to, id;

	to = ir_add_tensor(s,
		arena_printf(f->a, "%s_stored", s->tensor.at[t].name),
		s->tensor.at[t].dtype, s->tensor.at[t].rank,
		s->tensor.at[t].shape);
	s->tensor.at[to].storage = storage;
	s->tensor.at[to].is_output = s->tensor.at[t].is_output;
	e.out[0] = to;
	if (s->tensor.at[t].numel > 1) {
		e.n_axes = e.n_left = 1;
		e.axis[0] = (sys_axis){.extent = s->tensor.at[t].numel,
			.kind = AXIS_P,
			.name = "i"};
	}
	e.body[0] = ex_read(s, t, position(f, &e, &d));
	id = ir_add_eqn(s, &e);
	*vec_push(f->a, &w->e) = arena_copy(
		f->a, &s->eqn.at[id], sizeof s->eqn.at[id]);
	f->version[to] = o->tensor.n;
	*vec_push(f->a, &o->tensor) = to;
	for (int32_t i = 0; i < s->output.n; i++)
		if (s->output.at[i] == t)
			s->output.at[i] = to;
	s->tensor.at[t].is_output = false;
	f->kept[t] = false;
	for (int32_t i = 0; i < s->tensor.n; i++)
		f->kept[t] |= f->alias[i] == t;
	return to;
}

/* ---- what is needed ---- */

static void need(prepare *w, int32_t tensor, bool *live)
{
	int32_t i = fuse_maker(w->f, tensor);

	if (i >= 0)
		live[i] = true;
}

static void make_unit(prepare *w, int32_t i, bool *live)
{
	fuse_state *f = w->f;
	eqn_unit *u;

	if (!live[i])
		return;
	u = eqn_unit_new(f->g, w->e.at[i], i);
	f->unit[i] = u;
	for (int32_t k = 0; k < u->n_reads; k++)
		need(w, u->read[k].tensor, live);
	fuse_scratch_trim(f);
}

static void find_aliases(prepare *w)
{
	fuse_state *f = w->f;
	ir_system *s = f->s;

	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t t = s->output.at[i], maker = fuse_maker(f, t), from;

		if (f->alias[t] >= 0) /* is two outputs */
			continue;
		f->kept[t] = true;
		if (maker < 0 || f->version[t] >= 0)
			continue;
		from = same_as(f, w->e.at[maker]);
		if (from < 0 || fuse_is_destroyed(f, from))
			continue;
		f->alias[t] = from;
		f->kept[t] = false;
		f->kept[from] = true;
	}
}

/* An opaque row may want the copy all the same: then it is the output. */
static void drop_made_aliases(prepare *w)
{
	fuse_state *f = w->f;

	for (int32_t i = 0; i < f->s->output.n; i++) {
		int32_t t = f->s->output.at[i], maker = fuse_maker(f, t);

		if (f->alias[t] >= 0 && f->unit[maker] != NULL) {
			f->alias[t] = -1;
			f->kept[t] = true;
		}
	}
}

static void make_units(prepare *w)
{
	fuse_state *f = w->f;
	bool *live = arena_array(f->a, bool, f->s->eqn.n + 1);

	for (int32_t i = 0; i < f->s->tensor.n; i++) {
		if (f->version[i] > 0 && !fuse_is_destroyed(f, i))
			f->kept[i] = true; /* what the storage ends with */
		if (f->kept[i])
			need(w, i, live);
	}
	for (int32_t i = f->s->eqn.n - 1; i >= 0; i--)
		make_unit(w, i, live);
	drop_made_aliases(w);
}

/* ---- order of writes ---- */

/* A write may read what it destroys only where it writes. */
static bool reads_own_place(fuse_state *f, const eqn_unit *u, int32_t tensor)
{
	int32_t storage = f->s->tensor.at[tensor].storage;
	const ix_form *own;
	ix_dom d = {0};

	own = u->e.push == NULL ? position(f, &u->e, &d) : NULL;
	for (int32_t i = 0; i < u->n_reads; i++) {
		const eqn_read *r = &u->read[i];

		if (f->s->tensor.at[r->tensor].storage != storage ||
			f->version[r->tensor] >= f->version[tensor])
			continue;
		if (!r->in_init && (u->e.n_axes > u->e.n_left ||
					   u->e.push != NULL || u->e.n_out > 1))
			return false;
		if (u->e.opaque != NULL || r->is_index)
			return false;
		if (u->e.push != NULL) /* over the flat result */
			own = ix_axis(f->s->x, &r->dom, 0);
		if (ix_equal(f->s->x, &r->dom, own, r->at) != IX_EQUAL)
			return false;
	}
	return true;
}

/* Write t keeps apart: true when a copy was added. */
static void set_apart(prepare *w, int32_t t, const char *why)
{
	fuse_state *f = w->f;
	int32_t storage = f->s->tensor.at[t].storage;
	bool last = !fuse_is_destroyed(f, t);

	detach(f, t);
	if (!last)
		return;
	t = add_copy(w, t, storage, why);
	f->kept[t] = true;
	f->unit[fuse_maker(f, t)] = eqn_unit_new(
		f->g, w->e.at[fuse_maker(f, t)], fuse_maker(f, t));
}

typedef struct wait {
	int32_t n_before; /* sources that must come first and have not */
	VEC(int32_t) then;
} wait;

static void before(fuse_state *f, wait *w, int32_t first, int32_t second)
{
	if (first < 0 || first == second || f->unit[first] == NULL)
		return;
	*vec_push(f->a, &w[first].then) = second;
	w[second].n_before++;
}

static void waits(fuse_state *f, wait *w)
{
	for (int32_t i = 0; i < f->s->eqn.n; i++) {
		const eqn_unit *u = f->unit[i];

		for (int32_t k = 0; u != NULL && k < u->n_reads; k++) {
			int32_t t = u->read[k].tensor, v = f->version[t];
			const fuse_storage *o;

			before(f, w, fuse_maker(f, t), i);
			if (v < 0)
				continue;
			o = &f->storage[f->s->tensor.at[t].storage];
			for (int32_t j = v + 1; j < o->tensor.n; j++) {
				int32_t q = fuse_maker(f, o->tensor.at[j]);

				if (q >= 0 && f->unit[q] != NULL)
					before(f, w, i, q);
			}
		}
	}
}

/* A heap of sources: the smallest first, so that the order is one. */
typedef struct heap {
	int32_t n, *at;
} heap;

static void heap_put(heap *h, int32_t v)
{
	int32_t i = h->n++;

	for (; i > 0 && h->at[(i - 1) / 2] > v; i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = v;
}

static int32_t heap_take(heap *h)
{
	int32_t top = h->at[0], v = h->at[--h->n], i = 0;

	for (;;) {
		int32_t k = 2 * i + 1;

		if (k + 1 < h->n && h->at[k + 1] < h->at[k])
			k++;
		if (k >= h->n || h->at[k] >= v)
			break;
		h->at[i] = h->at[k];
		i = k;
	}
	h->at[i] = v;
	return top;
}

/* Fills f->order; -1, or a write that stands in a cycle. */
static int32_t sort(fuse_state *f)
{
	int32_t n = f->s->eqn.n, live = 0;
	wait *w = arena_array(f->a, wait, n + 1);
	heap h = {.at = arena_array(f->a, int32_t, n + 1)};

	f->order = arena_array(f->a, int32_t, n + 1);
	f->n_order = 0;
	waits(f, w);
	for (int32_t i = 0; i < n; i++) {
		live += f->unit[i] != NULL;
		if (f->unit[i] != NULL && w[i].n_before == 0)
			heap_put(&h, i);
	}
	while (h.n > 0) {
		int32_t i = heap_take(&h);

		f->order[f->n_order++] = i;
		for (int32_t k = 0; k < w[i].then.n; k++)
			if (--w[w[i].then.at[k]].n_before == 0)
				heap_put(&h, w[i].then.at[k]);
	}
	if (f->n_order == live)
		return -1;
	for (int32_t i = 0; i < n; i++) {
		if (f->unit[i] == NULL || w[i].n_before == 0)
			continue;
		for (int32_t k = 0; k < f->unit[i]->e.n_out; k++)
			if (f->version[f->unit[i]->e.out[k]] >= 0)
				return f->unit[i]->e.out[k];
	}
	env_bug(f->env, "fuse.prepare", "equations in a circle");
}

static void order_writes(prepare *w)
{
	fuse_state *f = w->f;
	int32_t n = f->s->eqn.n, t;

	for (int32_t i = 0; i < n; i++) {
		const eqn_unit *u = f->unit[i];

		for (int32_t k = 0; u != NULL && k < u->e.n_out; k++)
			if (f->version[u->e.out[k]] > 0 &&
				!reads_own_place(f, u, u->e.out[k]))
				set_apart(w, u->e.out[k],
					"it reads what it overwrites, "
					"elsewhere");
	}
	while ((t = sort(f)) >= 0)
		set_apart(w, t, "what it overwrites is read later");
}

void fuse_prepare(fuse_state *f)
{
	prepare w = {.f = f};
	int32_t room = f->s->tensor.n + f->s->eqn.n + 1;

	f->g = eqn_graph_new(f->a, f->s);
	(void)fuse_scratch(f);
	find_storages(f);
	f->unit = arena_array(f->a, eqn_unit *, f->s->eqn.n + room);
	f->where = arena_array(f->a, int32_t, f->s->eqn.n + room);
	f->copied = arena_array(f->a, bool, f->s->eqn.n + room);
	f->kept = arena_array(f->a, bool, f->s->tensor.n + room);
	f->alias = arena_array(f->a, int32_t, f->s->tensor.n + room);
	for (int32_t i = 0; i < f->s->tensor.n + room; i++)
		f->alias[i] = -1;
	for (int32_t i = 0; i < f->s->eqn.n + room; i++)
		f->where[i] = -1;
	/* an output is no version that a later one overwrites */
	for (int32_t i = 0; i < f->s->output.n; i++) {
		int32_t t = f->s->output.at[i];

		if (fuse_is_destroyed(f, t) && f->version[t] > 0)
			detach(f, t);
	}
	put_in(&w);
	find_aliases(&w);
	make_units(&w);
	order_writes(&w);
	f->n_sources = f->s->eqn.n;
}
