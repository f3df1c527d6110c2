/*
 * wait.c: finds which writes wait for which readers.
 *
 * A read of a version is correct iff no later write that changes the elements has
 * run. The writes of one memory run in order, so a reader that runs before the
 * first later write that overlaps it runs before all of them.
 *
 * First, all readers must run before the writes. If that closes a cycle, the pairs
 * are added one by one, oldest write first: a reader to which a path leads from
 * the write is late, and will read a copy.
 *
 * Source: docs/aliasing.md, "What happens in memory".
 */
#include "settle/local.h"

#include <stdlib.h>

typedef struct graph {
	VEC(int32_t) *then; /* by source */
	int32_t *n_before;
	uint32_t *seen, stamp; /* the last search that visited a source */
	VEC(int32_t) todo;
} graph;

typedef struct waiting {
	settled *w;
	VEC(conflict) found;
	VEC(conflict) late;
} waiting;

/* ---- conflicts ---- */

static const eqn_writes *writes_of(settled *w, int32_t source)
{
	if (w->writes[source] == NULL) {
		eqn_writes *q = arena_make(w->a, eqn_writes);

		(void)eqn_find_writes(w->a, w->s, &w->unit[source]->e, q);
		w->writes[source] = q;
	}
	return w->writes[source];
}

/* Does the writer change elements of the tensor that u reads? */
static bool changes(settled *w, int32_t writer, const eqn_unit *u,
	const eqn_read *r)
{
	if (rule_dropped(w, SETTLE_RULE_OVERLAP) &&
		writes_of(w, writer)->old >= 0 && writer != u->source)
		return false;
	if (eqn_disjoint(w->s, writes_of(w, writer), r))
		return false;
	return writer != u->source || !settle_in_place(w, u, r);
}

/*
 * The version of the first write, from version v on, that changes elements of the
 * tensor that u reads; or -1.
 */
static int32_t next_writer(
	settled *w, const eqn_unit *u, int32_t tensor, int32_t v)
{
	const settle_storage *o =
		&w->storage[w->s->tensor.at[tensor].storage];

	for (; v < o->tensor.n; v++) {
		int32_t q = maker_of(w, o->tensor.at[v]);

		if (q < 0 || w->unit[q] == NULL)
			continue;
		if (rule_dropped(w, SETTLE_RULE_ALL) &&
			v > w->version[tensor] + 1)
			return -1;
		for (int32_t i = 0; i < u->n_reads; i++)
			if (u->read[i].tensor == tensor &&
				changes(w, q, u, &u->read[i]))
				return v;
	}
	return -1;
}

static int32_t writer_of(const settled *w, int32_t tensor, int32_t version)
{
	int32_t storage = w->s->tensor.at[tensor].storage;

	return maker_of(w, w->storage[storage].tensor.at[version]);
}

static bool is_dropped(settled *w, const eqn_unit *u)
{
	return rule_dropped(w, SETTLE_RULE_WAIT) ||
		(rule_dropped(w, SETTLE_RULE_KEEP_FIRST) &&
			strcmp(u->e.label, "keep") == 0);
}

static int by_writer(const void *l, const void *r)
{
	const conflict *a = l, *b = r;

	if (a->writer != b->writer)
		return a->writer < b->writer ? -1 : 1;
	if (a->reader != b->reader)
		return a->reader < b->reader ? -1 : 1;
	return (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

static void find_conflicts(waiting *v)
{
	settled *w = v->w;

	v->found.n = 0;
	for (int32_t i = 0; i < w->s->eqn.n; i++) {
		const eqn_unit *u = w->unit[i];

		if (u == NULL || is_dropped(w, u))
			continue;
		for (int32_t k = 0; k < u->n_reads; k++) {
			int32_t t = u->read[k].tensor, q;
			bool again = false;

			for (int32_t j = 0; j < k; j++)
				again |= u->read[j].tensor == t;
			if (again || !settle_is_destroyed(w, t))
				continue;
			q = next_writer(w, u, t, w->version[t] + 1);
			if (q >= 0)
				*vec_push(w->a, &v->found) = (conflict){
					i, t, writer_of(w, t, q)};
		}
	}
	if (v->found.n > 1)
		qsort(v->found.at, (size_t)v->found.n, sizeof *v->found.at,
			by_writer);
}

/* ---- versions without readers ---- */

static bool is_read(const settled *w, const sys_eqn *e, const bool *read)
{
	for (int32_t k = 0; k < e->n_out; k++) {
		int32_t t = e->out[k];

		if (read[t] || w->kept[t])
			return true;
	}
	return false;
}

/*
 * Drops versions that are not read: then every write but the last of a memory has
 * a reader, which orders the next write after it.
 */
static void drop_unread(settled *w)
{
	bool *read = arena_array(w->a, bool, w->s->tensor.n + 1), again = true;

	while (again) {
		again = false;
		memset(read, 0, (size_t)w->s->tensor.n * sizeof *read);
		for (int32_t i = 0; i < w->s->eqn.n; i++) {
			const eqn_unit *u = w->unit[i];

			for (int32_t k = 0; u != NULL && k < u->n_reads; k++)
				read[u->read[k].tensor] |= true;
		}
		for (int32_t i = 0; i < w->s->eqn.n; i++)
			if (w->unit[i] != NULL &&
				!is_read(w, &w->unit[i]->e, read)) {
				w->unit[i] = NULL;
				again = true;
			}
	}
}

/* ---- paths ---- */

static void add(settled *w, graph *g, int32_t first, int32_t second)
{
	if (first < 0 || first == second || w->unit[first] == NULL)
		return;
	*vec_push(w->a, &g->then[first]) = second;
	g->n_before[second]++;
}

/* Producers are before readers, and writes of one memory in order. */
static graph new_graph(settled *w)
{
	int32_t n = w->s->eqn.n;
	graph g = {.then = arena_alloc(w->a, (size_t)n + 1, sizeof *g.then),
		.n_before = arena_array(w->a, int32_t, n + 1),
		.seen = arena_array(w->a, uint32_t, n + 1)};

	for (int32_t i = 0; i < n; i++) {
		const eqn_unit *u = w->unit[i];

		for (int32_t k = 0; u != NULL && k < u->n_reads; k++)
			add(w, &g, maker_of(w, u->read[k].tensor), i);
	}
	for (int32_t i = 0; i < w->n_storages; i++) {
		int32_t last = -1;

		for (int32_t j = 0; j < w->storage[i].tensor.n; j++) {
			int32_t q = maker_of(w, w->storage[i].tensor.at[j]);

			if (q < 0 || w->unit[q] == NULL)
				continue;
			add(w, &g, last, q);
			last = q;
		}
	}
	return g;
}

static bool leads_to(settled *w, graph *g, int32_t from, int32_t to)
{
	g->stamp++;
	g->todo.n = 0;
	*vec_push(w->a, &g->todo) = from;
	while (g->todo.n > 0) {
		int32_t i = vec_pop(&g->todo);

		if (i == to)
			return true;
		if (g->seen[i] == g->stamp)
			continue;
		g->seen[i] = g->stamp;
		for (int32_t k = 0; k < g->then[i].n; k++)
			*vec_push(w->a, &g->todo) = g->then[i].at[k];
	}
	return false;
}

static void one_by_one(waiting *v)
{
	graph g = new_graph(v->w);

	v->late.n = 0;
	for (int32_t i = 0; i < v->found.n; i++) {
		const conflict *c = &v->found.at[i];

		if (c->reader == c->writer ||
			leads_to(v->w, &g, c->writer, c->reader))
			*vec_push(v->w->a, &v->late) = *c;
		else
			add(v->w, &g, c->reader, c->writer);
	}
}

/* ---- the order ---- */

/* The sources that can be next: the smallest first or, for tests, in any order. */
typedef struct heap {
	int32_t n, *at;
	uint64_t random;
} heap;

static void heap_put(heap *h, int32_t v)
{
	int32_t i = h->n++;

	for (; i > 0 && h->at[(i - 1) / 2] > v; i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = v;
}

static int32_t heap_any(heap *h)
{
	int32_t i, v;

	h->random ^= h->random << 13;
	h->random ^= h->random >> 7;
	h->random ^= h->random << 17;
	i = (int32_t)(h->random % (uint64_t)h->n);
	v = h->at[i];
	h->at[i] = h->at[--h->n];
	return v;
}

static int32_t heap_take(heap *h)
{
	int32_t top = h->at[0], v, i = 0;

	if (h->random != 0)
		return heap_any(h);
	v = h->at[--h->n];
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

/* Fills w->order; false: the pairs close a cycle. */
static bool sort(waiting *v)
{
	settled *w = v->w;
	int32_t n = w->s->eqn.n, live = 0;
	graph g = new_graph(w);
	heap h = {.at = arena_array(w->a, int32_t, n + 1),
		.random = w->o.shuffle};

	for (int32_t i = 0; i < v->found.n; i++)
		add(w, &g, v->found.at[i].reader, v->found.at[i].writer);
	w->order = arena_array(w->a, int32_t, n + 1);
	w->n_order = 0;
	for (int32_t i = 0; i < n; i++) {
		live += w->unit[i] != NULL;
		if (w->unit[i] != NULL && g.n_before[i] == 0)
			heap_put(&h, i);
	}
	while (h.n > 0) {
		int32_t i = heap_take(&h);

		w->order[w->n_order++] = i;
		for (int32_t k = 0; k < g.then[i].n; k++)
			if (--g.n_before[g.then[i].at[k]] == 0)
				heap_put(&h, g.then[i].at[k]);
	}
	return w->n_order == live;
}

/* ---- together ---- */

/* Adds one copy for all late readers of a version. */
static void keep_late(waiting *v)
{
	settled *w = v->w;
	int32_t *reader = arena_array(w->a, int32_t, v->late.n + 1);

	for (int32_t i = 0; i < v->late.n; i++) {
		int32_t t = v->late.at[i].tensor, n = 0;
		bool own = true;

		for (int32_t k = 0; k < v->late.n; k++) {
			if (v->late.at[k].tensor != t)
				continue;
			if (k < i)
				break;
			own &= v->late.at[k].reader == v->late.at[k].writer;
			reader[n++] = v->late.at[k].reader;
		}
		if (n > 0)
			settle_keep(w, t, n, reader,
				own ? "the write reads, at another index, "
				      "what it overwrites"
				    : "it is read after it is overwritten");
	}
}

static bool has_own(const waiting *v)
{
	for (int32_t i = 0; i < v->found.n; i++)
		if (v->found.at[i].reader == v->found.at[i].writer)
			return true;
	return false;
}

/* Test build: treats late readers as if they were not late. */
static void forget_late(waiting *v)
{
	int32_t n = 0;

	for (int32_t i = 0; i < v->found.n; i++) {
		bool late = false;

		for (int32_t k = 0; k < v->late.n; k++)
			late |= memcmp(&v->late.at[k], &v->found.at[i],
					sizeof v->late.at[k]) == 0;
		if (!late)
			v->found.at[n++] = v->found.at[i];
	}
	v->found.n = n;
}

static void index_waits(settled *w)
{
	int32_t n = w->s->eqn.n;

	w->waits_of = arena_alloc(w->a, (size_t)n + 1, sizeof *w->waits_of);
	w->readers_of = arena_alloc(w->a, (size_t)n + 1, sizeof *w->readers_of);
	for (int32_t i = 0; i < w->wait.n; i++) {
		*vec_push(w->a, &w->waits_of[w->wait.at[i].reader]) = i;
		*vec_push(w->a, &w->readers_of[w->wait.at[i].writer]) = i;
	}
}

/*
 * For the order, the first write is enough. Fusion needs all pairs, because the
 * reads that order the writes can disappear when equations are substituted.
 */
static void add_pairs(settled *w, const conflict *c)
{
	const eqn_unit *u = w->unit[c->reader];
	int32_t v = w->version[c->tensor] + 1;

	while ((v = next_writer(w, u, c->tensor, v)) >= 0) {
		*vec_push(w->a, &w->wait) = (settle_wait){c->reader, c->tensor,
			writer_of(w, c->tensor, v)};
		v++;
	}
}

/* Finds pairs and the order, and adds copies for late readers. */
static void find_waits(settled *w)
{
	waiting v = {.w = w};

	/* at most twice: a reader of a copy is not late, and neither are copies */
	for (int32_t round = 0;; round++) {
		drop_unread(w);
		find_conflicts(&v);
		if (!has_own(&v) && sort(&v))
			break;
		if (round > 2)
			env_bug(w->env, "settle", "writes wait for each other "
				"in a cycle");
		one_by_one(&v);
		if (rule_dropped(w, SETTLE_RULE_KEEP)) {
			forget_late(&v);
			(void)sort(&v);
			break;
		}
		keep_late(&v);
	}
	for (int32_t i = 0; i < v.found.n; i++)
		add_pairs(w, &v.found.at[i]);
	index_waits(w);
}

void settle_run(settled *w)
{
	w->writes = arena_array(
		w->a, const eqn_writes *, w->s->eqn.n + w->s->tensor.n + 1);
	settle_own_storages(w);
	find_waits(w);
}
