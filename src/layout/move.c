/*
 * move.c: moves tensors from one layout to another.
 *
 * Consumes two layouts; every process computes what it sends and receives, and the
 * positions in its arrays, so that only elements are sent. A process that lacks an
 * element receives it once, from a process with the same coordinates on the mesh
 * axes that do not cut the source, so that copies share the work.
 *
 *     axis 0 on [4] -> replicated   all-gather: each gets three quarters
 *     replicated -> axis 1 on [4]   slice: nothing is sent
 *     axis 0 on [4] -> axis 1       all-to-all: a sixteenth to each
 *
 * Partial sums over axes of the mesh: in a group of processes with parts of the
 * same elements, one that needs an element adds it up (reduce-scatter); if all need
 * it, each adds up an equal share and sends it to the others (all-reduce). Terms
 * are added in the order of the processes, so that results are reproducible.
 */
#include "layout/local.h"

/* ---- runs ---- */

typedef VEC(shard_run) run_list;

static void add_run(arena *a, run_list *r, int64_t from, int64_t n)
{
	if (n <= 0)
		return;
	if (r->n > 0 && r->at[r->n - 1].from + r->at[r->n - 1].n == from)
		r->at[r->n - 1].n += n;
	else
		*vec_push(a, r) = (shard_run){from, n};
}

static shard_runs finish(const run_list *r)
{
	shard_runs s = {.n = r->n, .at = r->at};

	for (int32_t i = 0; i < r->n; i++)
		s.elems += r->at[i].n;
	return s;
}

/* The elements in both; or, if `without`, in x and not in y. */
static shard_runs overlap(
	arena *a, const shard_runs *x, const shard_runs *y, bool without)
{
	run_list out = {0};
	int32_t k = 0;

	for (int32_t i = 0; i < x->n; i++) {
		int64_t at = x->at[i].from, end = at + x->at[i].n;

		while (k > 0 && y->at[k - 1].from + y->at[k - 1].n > at)
			k--;
		for (; k < y->n && y->at[k].from < end; k++) {
			int64_t lo = y->at[k].from, hi = lo + y->at[k].n;

			lo = lo > at ? lo : at;
			hi = hi < end ? hi : end;
			if (hi <= lo)
				continue;
			if (without)
				add_run(a, &out, at, lo - at);
			else
				add_run(a, &out, lo, hi - lo);
			at = hi;
		}
		if (without)
			add_run(a, &out, at, end - at);
	}
	return finish(&out);
}

shard_runs shard_without(arena *a, const shard_runs *x, const shard_runs *y)
{
	return overlap(a, x, y, true);
}

/* Runs of the same length at the same distance are rows. */
static void find_rows(arena *a, shard_parcel *w)
{
	VEC(struct shard_rows) rows = {0};

	for (int32_t i = 0; i < w->n; i++) {
		const shard_run *r = &w->run[i];
		struct shard_rows *last = rows.n > 0 ? &rows.at[rows.n - 1] : NULL;
		int64_t step = last != NULL ? r->from - w->run[i - 1].from : 0;

		if (last != NULL && last->n == r->n &&
			(last->count == 1 || last->step == step)) {
			last->step = step;
			last->count++;
			continue;
		}
		*vec_push(a, &rows) =
			(struct shard_rows){r->from, r->n, r->n, 1};
	}
	w->n_rows = rows.n;
	w->rows = rows.at;
}

/* The positions of these elements in an array of the elements `in`. */
static shard_parcel parcel(arena *a, int64_t peer, const shard_runs *what,
	const shard_runs *in)
{
	run_list out = {0};
	shard_parcel w;
	int64_t before = 0;
	int32_t k = 0;

	for (int32_t i = 0; i < what->n; i++) {
		while (in->at[k].from + in->at[k].n <= what->at[i].from)
			before += in->at[k++].n;
		add_run(a, &out, before + what->at[i].from - in->at[k].from,
			what->at[i].n);
	}
	w = (shard_parcel){.peer = peer,
		.n = out.n,
		.run = out.at,
		.elems = what->elems};
	find_rows(a, &w);
	return w;
}

/* ---- who sends what to whom ---- */

/* Has p the coordinates of q on all mesh axes that do not cut the source? */
static bool is_near(const shard_mesh *m, const shard_layout *from, int64_t p,
	int64_t q)
{
	for (int32_t k = 0; k < m->n; k++) {
		bool cuts = false;

		for (int32_t i = 0; i < from->n; i++)
			cuts |= from->tag[i].mesh == k;
		if (!cuts && shard_mesh_at(m, p, k) != shard_mesh_at(m, q, k))
			return false;
	}
	return true;
}

typedef void on_parcel(void *arg, int64_t from, const shard_runs *what);

/* The sources of q's elements: q itself, then near processes, then others. */
static void each_source(arena *a, const shard_mesh *m, int64_t size,
	const shard_layout *from, const shard_runs *have, int64_t q,
	const shard_runs *need, on_parcel *fn, void *arg)
{
	shard_runs rest = *need;

	for (int32_t pass = 0; pass < 3 && rest.elems > 0; pass++) {
		for (int64_t p = 0; p < size && rest.elems > 0; p++) {
			shard_runs some;

			if (pass == 0 ? p != q
			    : p == q || is_near(m, from, p, q) != (pass == 1))
				continue;
			some = overlap(a, &rest, &have[p], false);
			if (some.elems == 0)
				continue;
			fn(arg, p, &some);
			rest = overlap(a, &rest, &some, true);
		}
	}
	if (rest.elems > 0)
		env_bug(arena_env(a), "shard.move",
			"no process has element %lld",
			(long long)rest.at[0].from);
}

typedef struct building {
	arena *a;
	int64_t rank, q;
	const shard_runs *have, *need;
	shard_move *v;
	bool sends; /* any process to another one */
	VEC(shard_parcel) send, receive;
} building;

static void note_parcel(void *arg, int64_t from, const shard_runs *what)
{
	building *b = arg;

	b->sends |= from != b->q;
	if (from == b->rank) {
		*vec_push(b->a, &b->send) =
			parcel(b->a, b->q, what, &b->have[from]);
		b->v->sent += b->q != b->rank ? what->elems : 0;
	}
	if (b->q == b->rank)
		*vec_push(b->a, &b->receive) =
			parcel(b->a, from, what, &b->need[b->q]);
}

static int64_t mesh_size(const shard_mesh *m)
{
	int64_t n = 1;

	for (int32_t i = 0; i < m->n; i++)
		n *= m->extent[i];
	return n;
}

/* The move of process `rank`; have, need: by process. */
static shard_move move_new(arena *a, const shard_mesh *m, int64_t rank,
	const shard_layout *from, const shard_runs *have,
	const shard_runs *need, bool *sends)
{
	int64_t size = mesh_size(m);
	shard_move v = {.to_elems = need[rank].elems};
	building b = {.a = a,
		.rank = rank,
		.have = have,
		.need = need,
		.v = &v};

	for (b.q = 0; b.q < size; b.q++)
		each_source(a, m, size, from, have, b.q, &need[b.q],
			note_parcel, &b);
	*sends = b.sends;
	v.n_send = b.send.n;
	v.send = b.send.at;
	v.n_receive = b.receive.n;
	v.receive = b.receive.at;
	return v;
}

/* ---- moving ---- */

static char *pack(arena *a, const shard_parcel *w, size_t size, const void *from)
{
	char *out = arena_alloc(a, (size_t)w->elems + 1, size), *at = out;

	for (int32_t i = 0; i < w->n; i++) {
		size_t n = (size_t)w->run[i].n * size;

		memcpy(at, (const char *)from + (size_t)w->run[i].from * size,
			n);
		at += n;
	}
	return out;
}

static void unpack(const shard_parcel *w, size_t size, const char *in, void *to)
{
	for (int32_t i = 0; i < w->n; i++) {
		size_t n = (size_t)w->run[i].n * size;

		memcpy((char *)to + (size_t)w->run[i].from * size, in, n);
		in += n;
	}
}

/* size: bytes of an element */
static void move_run(arena *a, shard_link *l, const shard_move *v, size_t size,
	const void *from, void *to, const char *what)
{
	int64_t rank = l->rank(l);
	char **in = arena_array(a, char *, v->n_receive + 1);
	env *e = arena_env(a);

	for (int32_t i = 0; i < v->n_receive; i++) {
		const shard_parcel *w = &v->receive[i];

		in[i] = arena_alloc(a, (size_t)w->elems + 1, size);
		if (w->peer != rank)
			l->receive(l, e, w->peer, in[i],
				(size_t)w->elems * size, what);
	}
	for (int32_t i = 0; i < v->n_send; i++) {
		const shard_parcel *w = &v->send[i];
		char *out = pack(a, w, size, from);

		if (w->peer != rank)
			l->send(l, e, w->peer, out, (size_t)w->elems * size,
				what);
		for (int32_t k = 0; w->peer == rank && k < v->n_receive; k++)
			if (v->receive[k].peer == rank)
				memcpy(in[k], out, (size_t)w->elems * size);
	}
	l->wait(l, e, what);
	for (int32_t i = 0; i < v->n_receive; i++)
		unpack(&v->receive[i], size, in[i], to);
}

/* ---- sums ---- */

static bool same_group(const shard_mesh *m, int64_t p, int64_t q, uint32_t mask)
{
	for (int32_t k = 0; k < m->n; k++)
		if (!(mask >> k & 1) &&
			shard_mesh_at(m, p, k) != shard_mesh_at(m, q, k))
			return false;
	return true;
}

typedef struct summing {
	arena *a;
	const shard_mesh *m;
	int64_t size;
	uint32_t mask;
	const shard_runs *have, *need;
	run_list *by; /* by process: the elements that it adds up */
} summing;

/* Divides elements that the same members need into equal shares. */
static void share(summing *s, int64_t from, int64_t n, const bool *wants,
	const int64_t *member, int64_t n_members)
{
	int64_t n_wants = 0, k = 0;

	for (int64_t i = 0; i < n_members; i++)
		n_wants += wants[i];
	for (int64_t i = 0; i < n_members; i++) {
		int64_t all = n_wants > 0 ? n_wants : n_members;
		int64_t lo, hi;

		if (n_wants > 0 && !wants[i])
			continue;
		lo = n / all * k + (n % all < k ? n % all : k);
		k++;
		hi = n / all * k + (n % all < k ? n % all : k);
		add_run(s->a, &s->by[member[i]], from + lo, hi - lo);
	}
}

static bool inside(const shard_runs *r, int64_t e, int64_t *next)
{
	for (int32_t i = 0; i < r->n; i++) {
		int64_t end = r->at[i].from + r->at[i].n;

		if (e < r->at[i].from) {
			if (r->at[i].from < *next)
				*next = r->at[i].from;
			return false;
		}
		if (e < end) {
			if (end < *next)
				*next = end;
			return true;
		}
	}
	return false;
}

/* The shares of a group, whose members have parts of the same elements. */
static void share_group(summing *s, int64_t first)
{
	int64_t *member = arena_array(s->a, int64_t, s->size), n = 0;
	bool *wants = arena_array(s->a, bool, s->size);
	const shard_runs *have = &s->have[first];

	for (int64_t p = first; p < s->size; p++)
		if (same_group(s->m, first, p, s->mask))
			member[n++] = p;
	for (int32_t i = 0; i < have->n; i++) {
		int64_t at = have->at[i].from, end = at + have->at[i].n, next;

		for (; at < end; at = next) {
			next = end;
			for (int64_t k = 0; k < n; k++)
				wants[k] = inside(
					&s->need[member[k]], at, &next);
			share(s, at, next - at, wants, member, n);
		}
	}
}

static shard_runs *who_adds(summing *s)
{
	shard_runs *out = arena_array(s->a, shard_runs, s->size);

	s->by = arena_array(s->a, run_list, s->size);
	for (int64_t p = 0; p < s->size; p++) {
		bool first = true;

		for (int64_t q = 0; q < p; q++)
			first &= !same_group(s->m, p, q, s->mask);
		if (first)
			share_group(s, p);
	}
	for (int64_t p = 0; p < s->size; p++)
		out[p] = finish(&s->by[p]);
	return out;
}

/* ---- the whole ---- */

/* Plans the sums: which process sends which parts to which. */
static shard_runs *plan_sums(arena *a, arena *scratch, shard_transfer *t,
	const shard_mesh *m, uint32_t mask, const shard_runs *have,
	const shard_runs *need)
{
	summing s = {.a = scratch,
		.m = m,
		.size = t->size,
		.mask = mask,
		.have = have,
		.need = need};
	shard_runs *adds = who_adds(&s);

	t->sums = true;
	for (int64_t p = 0; p < t->size; p++)
		for (int64_t q = 0; q < p; q++)
			t->sends_parts |= adds[p].elems + adds[q].elems > 0 &&
				same_group(m, p, q, mask);
	t->n_adds = adds[t->rank].elems;
	t->member = arena_array(a, bool, t->size);
	t->give = arena_array(a, shard_parcel, t->size);
	for (int64_t p = 0; p < t->size; p++) {
		t->member[p] = same_group(m, t->rank, p, mask);
		if (!t->member[p] || adds[p].elems == 0)
			continue;
		t->give[p] = parcel(a, p, &adds[p], &have[t->rank]);
		t->sent += p != t->rank ? adds[p].elems : 0;
	}
	return adds;
}

shard_transfer *shard_transfer_new(arena *a, const shard_mesh *m, int64_t rank,
	const shard_layout *from, uint32_t mask, const shard_layout *to,
	const char *what)
{
	arena *scratch = arena_child(a);
	shard_transfer *t = arena_make(a, shard_transfer);
	int64_t n = shard_mesh_size(arena_env(a), m);
	shard_runs *have = arena_array(scratch, shard_runs, n);
	shard_runs *need = arena_array(scratch, shard_runs, n);
	shard_layout cut = *from; /* the layout that distinguishes holders of an element */

	if (from->numel != to->numel)
		env_fail(arena_env(a), TN_EINVAL, "shard.layout", (loc){0},
			"%s: the layout is for %lld elements, but the tensor "
			"has %lld", what,
			(long long)to->numel, (long long)from->numel);
	t->rank = rank;
	t->size = n;
	t->what = arena_strdup(a, what);
	for (int64_t p = 0; p < n; p++) {
		have[p] = shard_owned(scratch, from, m, p);
		need[p] = shard_owned(scratch, to, m, p);
	}
	if (mask != 0) {
		have = plan_sums(a, scratch, t, m, mask, have, need);
		for (int32_t k = 0; k < m->n && cut.n < SHARD_MAX_TAGS; k++)
			if (mask >> k & 1)
				cut.tag[cut.n++].mesh = k;
	}
	t->v = move_new(a, m, rank, &cut, have, need, &t->sends);
	t->sent += t->v.sent;
	t->flow = arena_array(
		a, ring_flow, n + t->v.n_send + t->v.n_receive + 1);
	t->order = arena_array(a, int64_t, n);
	t->address = arena_array(a, uint64_t, n);
	arena_free(scratch);
	return t;
}

int64_t shard_transfer_sent(const shard_transfer *t)
{
	return t->sent;
}

const char *shard_transfer_what(const shard_transfer *t)
{
	return t->what;
}

bool shard_transfer_is_sent(const shard_transfer *t)
{
	return t->sends_parts || t->sends;
}

int64_t shard_transfer_elems(const shard_transfer *t)
{
	return t->v.to_elems;
}

/* Exchanges partial results, and adds up those of this process. */
static void *add_up(const shard_transfer *t, arena *a, shard_link *l,
	const shard_elems *of, const void *data)
{
	env *e = arena_env(a);
	size_t size = of->size;
	int64_t n = t->n_adds;
	char **part = arena_array(a, char *, t->size), *sum = NULL;

	for (int64_t p = 0; p < t->size; p++) {
		const shard_parcel *w = &t->give[p];

		if (!t->member[p])
			continue;
		part[p] = arena_alloc(a, (size_t)n + 1, size);
		if (p != t->rank && n > 0)
			l->receive(l, e, p, part[p], (size_t)n * size, of->what);
		if (p == t->rank)
			part[p] = pack(a, w, size, data);
		else if (w->elems > 0)
			l->send(l, e, p, pack(a, w, size, data),
				(size_t)w->elems * size, of->what);
	}
	l->wait(l, e, of->what);
	for (int64_t p = 0; p < t->size; p++) {
		if (part[p] == NULL)
			continue;
		if (sum == NULL)
			sum = part[p];
		else if (n > 0)
			of->combine(of->arg, n, sum, part[p]);
	}
	return sum;
}

/* ---- the same, through shared memory ---- */

static ring_strip strip(const shard_parcel *w, void *base)
{
	return (ring_strip){.base = base, .n = w->n, .run = w->run};
}

/* Can this process add up its elements in the result array? */
const shard_parcel *transfer_sums_in_place(const shard_transfer *t)
{
	for (int32_t i = 0; i < t->v.n_receive; i++) {
		const shard_parcel *w = &t->v.receive[i];

		if (w->peer == t->rank && w->n == 1 && w->elems == t->n_adds)
			return w;
	}
	return NULL;
}

typedef struct flows {
	int32_t n;
	ring_flow *at;
	int64_t *member;
} flows;

static ring_flow *add_flow(flows *f, int32_t kind, int32_t lane,
	const shard_parcel *w)
{
	ring_flow *r = &f->at[f->n++];

	*r = (ring_flow){.lane = lane, .peer = w->peer, .n = w->elems};
	r->kind = kind;
	return r;
}

/* The flows of the sums that this process adds up. */
static ring_flow *sum_flows(flows *f, const shard_transfer *t, void *data,
	void *sum)
{
	const shard_parcel *own = &t->give[t->rank];
	int64_t n = 0;
	ring_flow *r;

	for (int64_t p = 0; p < t->size; p++) {
		const shard_parcel *w = &t->give[p];

		if (t->member[p])
			f->member[n++] = p;
		if (p != t->rank && t->member[p] && w->elems > 0)
			add_flow(f, RING_SEND, 0, w)->from = strip(w, data);
	}
	r = add_flow(f, RING_SUM, 0, own);
	r->n = t->n_adds;
	r->from = strip(own, data);
	r->to.base = sum;
	r->member = f->member;
	r->address = t->address;
	memset(t->address, 0, (size_t)t->size * sizeof *t->address);
	r->n_members = n;
	return r;
}

static const shard_parcel *own_receive(const shard_move *v, int64_t rank)
{
	for (int32_t i = 0; i < v->n_receive; i++)
		if (v->receive[i].peer == rank)
			return &v->receive[i];
	return NULL;
}

/* A parcel that is sent and also copied here: it is read once; or -1. */
static int32_t sent_and_kept(const shard_transfer *t, size_t size)
{
	const shard_move *v = &t->v;
	const shard_parcel *kept = own_receive(v, t->rank), *own = NULL;

	for (int32_t i = 0; i < v->n_send; i++)
		if (v->send[i].peer == t->rank)
			own = &v->send[i];
	if (t->sums || own == NULL || kept == NULL || own->n != 1 ||
		kept->n != 1 || !shard_ring_streams(v->to_elems, size))
		return -1;
	for (int32_t i = 0; i < v->n_send; i++) {
		const shard_parcel *w = &v->send[i];

		if (w != own && w->n == 1 &&
			w->run[0].from == own->run[0].from &&
			w->run[0].n == own->run[0].n)
			return i;
	}
	return -1;
}

static void run_by_ring(const shard_transfer *t, arena *a, shard_link *l,
	const shard_elems *e, void *data, void *out)
{
	const shard_move *v = &t->v;
	const shard_parcel *direct = t->sums ? transfer_sums_in_place(t) : NULL;
	int32_t both = l->ring->direct ? -1 : sent_and_kept(t, e->size);
	ring_flow *sums = NULL;
	flows f = {.at = t->flow, .member = t->order};

	if (t->sums) {
		void *sum = direct != NULL
			? (char *)out + (size_t)direct->run[0].from * e->size
			: arena_alloc(a, (size_t)t->n_adds + 1, e->size);

		sums = sum_flows(&f, t, data, sum);
		data = sum;
	}
	for (int32_t i = 0; i < v->n_send; i++) {
		const shard_parcel *w = &v->send[i];
		ring_flow *r;

		if (w->peer == t->rank && (direct != NULL || both >= 0))
			continue;
		r = add_flow(&f, w->peer == t->rank ? RING_COPY : RING_SEND, 1,
			w);
		r->from = strip(w, data);
		r->behind = sums;
		if (w->peer == t->rank || i == both)
			r->to = strip(own_receive(v, t->rank), out);
	}
	for (int32_t i = 0; i < v->n_receive; i++)
		if (v->receive[i].peer != t->rank)
			add_flow(&f, RING_TAKE, 1, &v->receive[i])->to =
				strip(&v->receive[i], out);
	shard_ring_run(l->ring, a, l, e, v->to_elems, f.n, f.at);
}

/* On a mesh of one process, which may have no link. */
static void run_alone(const shard_transfer *t, arena *a, const shard_elems *e,
	const void *data, void *out)
{
	const shard_move *v = &t->v;

	if (t->sums)
		data = pack(a, &t->give[t->rank], e->size, data);
	for (int32_t i = 0; i < v->n_receive; i++)
		unpack(&v->receive[i], e->size,
			pack(a, &v->send[i], e->size, data), out);
}

void shard_transfer_run(const shard_transfer *t, arena *a, shard_link *l,
	const shard_elems *e, const void *data, void *out)
{
	if (t->size == 1) {
		run_alone(t, a, e, data, out);
		return;
	}
	if (l->ring != NULL) {
		run_by_ring(t, a, l, e, (void *)(uintptr_t)data, out);
		return;
	}
	if (t->sums)
		data = add_up(t, a, l, e, data);
	move_run(a, l, &t->v, e->size, data, out, e->what);
}

const char *shard_move_name(const shard_mesh *m, const shard_layout *from,
	uint32_t mask, const shard_layout *to)
{
	bool more = false, less = false;

	for (int32_t k = 0; k < m->n; k++) {
		bool was = false, is = false;

		for (int32_t i = 0; i < from->n; i++)
			was |= from->tag[i].mesh == k;
		for (int32_t i = 0; i < to->n; i++)
			is |= to->tag[i].mesh == k;
		more |= mask >> k & 1 && is;
		less |= was && !is;
	}
	if (mask != 0)
		return more ? "reduce-scatter" : "all-reduce";
	if (shard_same(from, to))
		return "nothing";
	for (int32_t k = 0; k < to->n; k++)
		if (to->tag[k].count == 1 && layout_is_wide(&to->tag[k]))
			return "all-gather";
	for (int32_t i = 0; i < from->n; i++)
		for (int32_t k = 0; k < to->n; k++)
			if (from->tag[i].mesh == to->tag[k].mesh &&
				layout_is_wide(&to->tag[k]) &&
				from->tag[i].lo == to->tag[k].lo &&
				from->tag[i].hi == to->tag[k].hi)
				return "halo exchange";
	for (int32_t i = 0; i < from->n; i++)
		for (int32_t k = 0; k < to->n; k++)
			if (from->tag[i].mesh == to->tag[k].mesh &&
				(from->tag[i].lo != to->tag[k].lo ||
					from->tag[i].hi != to->tag[k].hi ||
					from->tag[i].block !=
						to->tag[k].block))
				return "all-to-all";
	return less ? to->n >= from->n ? "all-to-all" : "all-gather" : "slice";
}
