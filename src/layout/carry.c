/*
 * carry.c: moves between devices, whose memory the host does not see.
 *
 * Consumes a transfer, which knows what this process sends and receives, and arrays
 * on its device; makes the same elements as a move through the memory of the hosts,
 * bit by bit. A contiguous part is sent from the array, and received in it; others
 * are packed first, as rows that the device copies, and unpacked:
 *
 *     axis 1 of [4,6] on [2], from process 1:  rows of 3 elements, every 6
 *
 * For partial results the processes exchange parts, and the device adds up, in the
 * order of the processes, those elements that this process adds up; then the sums
 * are moved like other elements. Each of these two exchanges has at most one message
 * for each component and process in each direction.
 *
 * What an exchange needs is allocated and compiled where all processes learn of a
 * failure (shard_carry): until then no array of the caller has changed, because
 * elements are received after it.
 */
#include "layout/local.h"

enum { MOST_PARTS = 16 }; /* that a kernel adds up */

/* Received elements that are not contiguous in their array. */
typedef struct landing {
	const shard_parcel *parcel;
	int32_t k; /* component */
	const void *at;
} landing;

typedef struct carrying {
	const shard_transfer *t;
	arena *a;
	const shard_device *d;
	const shard_cargo *c;
	VEC(shard_load) load;
	VEC(landing) landing;
	/* parts: by member, then by component; and what is made of them */
	VEC(void *) part;
	VEC(void *) made;
	const void *sum[IR_MAX_COMP];
	const shard_parcel *in_place; /* where the sums are made, or NULL */
} carrying;

/* ---- elements ---------------------------------------------------------- */

static size_t size_of(const carrying *w, int32_t k)
{
	return dtype_size(w->c->dtype[k]);
}

static void *room(const carrying *w, int64_t n, int32_t k)
{
	return w->d->room(w->d->arg, w->a, (size_t)n * size_of(w, k));
}

static char *element(const void *base, int64_t i, size_t size)
{
	return (char *)(uintptr_t)base + (size_t)i * size;
}

/* Packs the elements of a parcel, or unpacks them. */
static void copy(const carrying *w, const shard_parcel *p, int32_t k,
	const void *array, const void *packed, bool unpacks)
{
	size_t size = size_of(w, k);
	int64_t at = 0;

	for (int32_t i = 0; i < p->n_rows; i++) {
		const struct shard_rows *r = &p->rows[i];
		char *there = element(array, r->from, size);
		char *here = element(packed, at, size);
		size_t n = (size_t)r->n * size, step = (size_t)r->step * size;

		w->d->rows(w->d->arg, unpacks ? there : here,
			unpacks ? step : n, unpacks ? here : there,
			unpacks ? n : step, n, (size_t)r->count);
		at += r->n * r->count;
	}
}

/* The elements of a parcel, one after the other. */
static void *packed(
	const carrying *w, const shard_parcel *p, int32_t k, const void *array)
{
	void *out;

	if (p->n == 1)
		return element(array, p->run[0].from, size_of(w, k));
	out = room(w, p->elems, k);
	copy(w, p, k, array, out, false);
	return out;
}

static void add_load(
	carrying *w, int64_t peer, bool comes, void *at, int64_t n, int32_t k)
{
	*vec_push(w->a, &w->load) = (shard_load){
		peer, comes, at, (size_t)n * size_of(w, k)};
}

static void exchange(carrying *w)
{
	const shard_carrier *c = w->d->carrier;

	if (w->load.n > 0)
		c->exchange(c->arg, w->load.n, w->load.at);
	w->load.n = 0;
}

/* ---- sums -------------------------------------------------------------- */

static shard_sum sum_of(const carrying *w, int32_t n_parts)
{
	const shard_cargo *c = w->c;
	shard_sum s = {.monoid = c->monoid,
		.n_comp = c->n,
		.n_parts = n_parts,
		.n = w->t->n_adds};

	memcpy(s.acc, c->dtype, sizeof s.acc);
	return s;
}

/* So many of n parts, or of a sum and parts, are added up next. */
static int32_t next_parts(int32_t n)
{
	return n < MOST_PARTS ? n : MOST_PARTS;
}

/* Where a sum is made. */
static void make_sums(carrying *w, bool is_last)
{
	for (int32_t k = 0; k < w->c->n; k++)
		*vec_push(w->a, &w->made) =
			is_last && w->in_place != NULL
				? element(w->c->to[k], w->in_place->run[0].from,
					  size_of(w, k))
				: room(w, w->t->n_adds, k);
}

/* What adds up will need. */
static void make_ready(carrying *w)
{
	int32_t n = w->part.n / w->c->n;

	if (n == 1)
		w->in_place = NULL;
	while (n > 1) {
		int32_t some = next_parts(n);
		shard_sum s = sum_of(w, some);

		w->d->ready(w->d->arg, &s);
		make_sums(w, some == n);
		n -= some - 1;
	}
}

/* The parts of one process: those that it has of this one's elements. */
static void add_parts(carrying *w, int64_t p)
{
	const shard_transfer *t = w->t;
	const shard_parcel *give = &t->give[p];

	for (int32_t k = 0; k < w->c->n; k++) {
		if (t->n_adds > 0)
			*vec_push(w->a, &w->part) =
				p == t->rank ? packed(w, give, k, w->c->from[k])
					     : room(w, t->n_adds, k);
		if (p != t->rank && t->n_adds > 0)
			add_load(w, p, true, w->part.at[w->part.n - 1],
				t->n_adds, k);
		if (p != t->rank && give->elems > 0)
			add_load(w, p, false, packed(w, give, k, w->c->from[k]),
				give->elems, k);
	}
}

static void exchange_parts(void *arg)
{
	carrying *w = arg;

	for (int64_t p = 0; p < w->t->size; p++)
		if (w->t->member[p])
			add_parts(w, p);
	make_ready(w);
	exchange(w);
}

/* The first parts become their sum, until it is the only one. */
static void add_up(carrying *w)
{
	int32_t n_comp = w->c->n, n = w->part.n / n_comp, first = 0;
	void *const *made = w->made.at;

	while (n > 1) {
		int32_t some = next_parts(n);
		shard_sum s = sum_of(w, some);

		w->d->sum(w->d->arg, &s, w->part.at + first * n_comp, made);
		first += some - 1;
		n -= some - 1;
		memcpy(w->part.at + first * n_comp, made,
			(size_t)n_comp * sizeof *made);
		made += n_comp;
	}
	for (int32_t k = 0; k < n_comp; k++)
		w->sum[k] = w->part.at[first * n_comp + k];
}

/* ---- elements that another process has --------------------------------- */

static const shard_parcel *own_of(const shard_transfer *t, bool sent)
{
	int32_t n = sent ? t->v.n_send : t->v.n_receive;
	const shard_parcel *p = sent ? t->v.send : t->v.receive;

	for (int32_t i = 0; i < n; i++)
		if (p[i].peer == t->rank)
			return &p[i];
	return NULL;
}

/* Elements that this process has, and keeps. */
static void copy_own(const carrying *w)
{
	const shard_parcel *from = own_of(w->t, true);
	const shard_parcel *to = own_of(w->t, false);

	for (int32_t k = 0; k < w->c->n && from != NULL && to != NULL; k++)
		copy(w, to, k, w->c->to[k], packed(w, from, k, w->sum[k]),
			true);
}

static void add_moves(carrying *w, int32_t k)
{
	const shard_move *v = &w->t->v;

	for (int32_t i = 0; i < v->n_send; i++)
		if (v->send[i].peer != w->t->rank)
			add_load(w, v->send[i].peer, false,
				packed(w, &v->send[i], k, w->sum[k]),
				v->send[i].elems, k);
	for (int32_t i = 0; i < v->n_receive; i++) {
		const shard_parcel *p = &v->receive[i];
		void *at;

		if (p->peer == w->t->rank)
			continue;
		if (p->n == 1) {
			at = element(
				w->c->to[k], p->run[0].from, size_of(w, k));
		} else {
			at = room(w, p->elems, k);
			*vec_push(w->a, &w->landing) = (landing){p, k, at};
		}
		add_load(w, p->peer, true, at, p->elems, k);
	}
}

static void exchange_elements(void *arg)
{
	carrying *w = arg;

	for (int32_t k = 0; k < w->c->n; k++)
		w->sum[k] = w->c->from[k];
	if (w->part.n > 0)
		add_up(w);
	for (int32_t k = 0; k < w->c->n; k++)
		add_moves(w, k);
	exchange(w);
	if (w->in_place == NULL)
		copy_own(w);
	for (int32_t i = 0; i < w->landing.n; i++) {
		const landing *l = &w->landing.at[i];

		copy(w, l->parcel, l->k, w->c->to[l->k], l->at, true);
	}
}

void shard_transfer_carry(const shard_transfer *t, arena *scratch,
	shard_link *l, const shard_device *d, const shard_cargo *c)
{
	env *e = arena_env(scratch);
	carrying *w = arena_make(scratch, carrying);

	*w = (carrying){.t = t, .a = scratch, .d = d, .c = c};
	if (t->sums && t->n_adds > 0)
		w->in_place = transfer_sums_in_place(t);
	if (t->sums && t->sends_parts)
		shard_carry(e, l, d->carrier, exchange_parts, w, t->what);
	else if (t->sums)
		exchange_parts(w);
	if (t->sends)
		shard_carry(e, l, d->carrier, exchange_elements, w, t->what);
	else
		exchange_elements(w);
}
