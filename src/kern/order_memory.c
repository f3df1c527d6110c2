/*
 * order_memory.c: which bytes of a kernel's memory have been written.
 *
 * Arrays of scratch and of the worker may share bytes, so there is a bit for each
 * byte. Changes are recorded, and can be taken back.
 */
#include "kern/order.h"

enum { MOST_BYTES = 1 << 28, WORD = 64, A_STEP = 1024 };

static struct kern_bits make(struct kern_order *o, int64_t n)
{
	struct kern_bits b = {NULL, n};

	if (n > MOST_BYTES)
		o->left = -1;
	else
		b.at = arena_array(o->a, uint64_t, n / WORD + 1);
	return b;
}

void kern_order_room(struct kern_order *o)
{
	const kern_kernel *k = o->k;

	o->own = arena_array(o->a, struct kern_bits, k->array.n + 1);
	o->scratch = make(o, (int64_t)k->scratch_bytes);
	o->local = make(o, (int64_t)k->local_bytes);
	for (int32_t i = 0; i < k->array.n && o->left >= 0; i++) {
		const kern_array *r = &k->array.at[i];

		if (o->tracked[i] && (r->space == KERN_PARAM ||
					     r->space == KERN_STACK))
			o->own[i] = r->elems > MOST_BYTES / (int64_t)sizeof(double)
					    ? make(o, INT64_MAX)
					    : make(o, r->elems *
							      (int64_t)dtype_size(
								      r->dtype));
	}
}

/* Its bits; those of elements at.lo .. at.hi that it has are from .. to - 1. */
static const struct kern_bits *bits_of(const struct kern_order *o,
	int32_t array, struct kern_span at, int64_t *from, int64_t *to)
{
	const kern_array *r = &o->k->array.at[array];
	int64_t size = (int64_t)dtype_size(r->dtype);
	const struct kern_bits *b = r->space == KERN_SCRATCH ? &o->scratch
				    : r->space == KERN_LOCAL ? &o->local
							     : &o->own[array];

	at.lo = at.lo < 0 ? 0 : at.lo;
	at.hi = at.hi >= r->elems ? r->elems - 1 : at.hi;
	/* of nothing, also behind the array: no bits, where it begins */
	*from = r->offset + (at.hi < at.lo ? 0 : at.lo * size);
	*to = r->offset + (at.hi < at.lo ? 0 : (at.hi + 1) * size);
	return b;
}

/* Of word i: the bits that are in from .. to - 1. */
static uint64_t part(int64_t i, int64_t from, int64_t to)
{
	uint64_t m = UINT64_MAX;

	if (from > WORD * i)
		m &= UINT64_MAX << (from - WORD * i);
	if (to < WORD * (i + 1))
		m &= UINT64_MAX >> (WORD * (i + 1) - to);
	return m;
}

bool kern_order_is_set(
	const struct kern_order *o, int32_t array, struct kern_span at)
{
	int64_t from, to;
	const struct kern_bits *b;

	b = bits_of(o, array, at, &from, &to);
	for (int64_t i = from / WORD; WORD * i < to; i++)
		if ((~b->at[i] & part(i, from, to)) != 0)
			return false;
	return true;
}

static void change(struct kern_order *o, const struct kern_bits *b,
	int64_t from, int64_t to, bool set)
{
	o->left -= (to - from) / A_STEP;
	for (int64_t i = from / WORD; WORD * i < to; i++) {
		uint64_t m = part(i, from, to);
		uint64_t now = set ? b->at[i] | m : b->at[i] & ~m;

		if (now == b->at[i])
			continue;
		*vec_push(o->a, &o->undo) =
			(struct kern_undo){&b->at[i], b->at[i]};
		b->at[i] = now;
	}
}

void kern_order_put(struct kern_order *o, int32_t array, struct kern_span at,
	bool sure, const struct kern_early *bad)
{
	int64_t from, to;
	const struct kern_bits *b;

	if (bad != NULL && o->k->array.at[array].space == KERN_PARAM) {
		o->fault = bad;
		return;
	}
	if (!o->tracked[array])
		return;
	o->writes++;
	if (bad != NULL || !sure || !kern_span_is_one(at) ||
		o->open.n > o->base)
		o->lost++;
	if (bad == NULL && (!sure || !kern_span_is_one(at)))
		return;
	b = bits_of(o, array, at, &from, &to);
	change(o, b, from, to, bad == NULL);
	if (bad != NULL)
		o->done.n = 0;
}

static int32_t open_of(const struct kern_order *o, kern_val v)
{
	for (int32_t i = o->base; i < o->open.n; i++)
		if (o->open.at[i].v == v)
			return i;
	return -1;
}

/* A store whose address follows from loops that are walked as one. */
static bool repeats(struct kern_order *o, const kern_access *at, int32_t n)
{
	struct kern_later w = {.array = at->array, .n = n, .stride = at->stride,
		.at = at->at->c0, .outer = INT32_MAX};
	bool ok = true;

	for (int32_t i = 0; i < at->at->n && ok; i++) {
		const kern_term *t = &at->at->t[i];
		int32_t in = open_of(o, t->v);
		const struct kern_open *l = in >= 0 ? &o->open.at[in] : NULL;
		struct kern_span s = o->cell[o->first[t->v]];
		int64_t p;

		ok = (l != NULL || kern_span_is_one(s)) &&
		     w.depth < KERN_MOST_OPEN &&
		     mul_ok(t->coef, l != NULL ? l->lo : s.lo, &p) &&
		     add_ok(w.at, p, &w.at);
		if (!ok || l == NULL)
			continue;
		w.outer = in < w.outer ? in : w.outer;
		ok = mul_ok(t->coef, l->step, &w.step[w.depth]);
		w.trips[w.depth++] = l->trips;
	}
	if (ok)
		*vec_push(o->a, &o->later) = w;
	return ok;
}

static void write_later(struct kern_order *o, const struct kern_later *w,
	int32_t depth, int64_t at)
{
	struct kern_span one = {at, at};
	const struct kern_bits *b;
	int64_t from, to;

	for (int64_t i = 0; depth < w->depth && i < w->trips[depth]; i++)
		if (o->left >= 0)
			write_later(o, w, depth + 1, at + i * w->step[depth]);
	if (depth < w->depth)
		return;
	o->left--;
	for (int64_t l = 0; l < (w->stride == 1 ? 1 : w->n); l++) {
		b = bits_of(o, w->array,
			kern_span_plus(one, l * w->stride,
				w->stride == 1 ? w->n - 1 : l * w->stride),
			&from, &to);
		change(o, b, from, to, true);
	}
}

void kern_order_write_later(struct kern_order *o, int32_t from)
{
	for (int32_t i = from; i < o->later.n; i++)
		if (o->later.at[i].outer >= o->open.n)
			write_later(o, &o->later.at[i], 0, o->later.at[i].at);
	if (o->open.n == o->base)
		o->later.n = from;
}

void kern_order_write(struct kern_order *o, const kern_access *at,
	struct kern_span base, int32_t n)
{
	int64_t from, to;
	const struct kern_bits *b;
	struct kern_span all = kern_span_plus(base, 0, n - 1);

	if (!o->tracked[at->array])
		return;
	*vec_push(o->a, &o->done) =
		(struct kern_done){at->array, n, at->at, at->stride};
	o->writes++;
	if (!kern_span_is_one(base) || o->open.n > o->base)
		o->lost += !repeats(o, at, n);
	if (!kern_span_is_one(base))
		return;
	if (at->stride == 1) {
		b = bits_of(o, at->array, all, &from, &to);
		change(o, b, from, to, true);
		return;
	}
	for (int64_t l = 0; l < n; l++)
		kern_order_put(o, at->array,
			kern_span_plus(base, l * at->stride, l * at->stride),
			true, NULL);
}

void kern_order_fill(struct kern_order *o, int32_t array, bool set)
{
	int64_t from, to;
	const struct kern_bits *b = bits_of(o, array,
		(struct kern_span){0, INT64_MAX}, &from, &to);

	if (o->tracked[array])
		change(o, b, from, to, set);
}

void kern_order_forget_local(struct kern_order *o)
{
	const uint64_t *at = o->local.at;

	for (int32_t i = 0; i < o->undo.n; i++)
		if (o->undo.at[i].at >= at &&
			o->undo.at[i].at <= at + o->local.n / WORD)
			*o->undo.at[i].at = 0;
	o->undo.n = 0;
}

void kern_order_undo(struct kern_order *o, int32_t n, bool keep_lost)
{
	for (int32_t i = o->undo.n - 1; i >= n; i--) {
		struct kern_undo u = o->undo.at[i];

		*u.at = keep_lost ? *u.at & u.was : u.was;
	}
	/* what a loop around takes back is still recorded */
	o->undo.n = keep_lost ? o->undo.n : n;
}
