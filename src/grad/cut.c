/*
 * cut.c: chooses kept and recomputed values by a minimum cut.
 *
 * Consumes the values of a forward (cut.h). Two decisions for each value v: is it
 * needed in the backward (n), and is it recomputed (a)? A value that is read is
 * needed; a recomputed value needs its sources. A value that is needed and not
 * recomputed costs its bytes, a recomputed one its work:
 *
 *     S -> n(v)      infinite       v is read
 *     n(v) -> a(v)   bytes          needed, not recomputed: kept
 *     a(v) -> n(v)   infinite       recomputed implies needed
 *     a(v) -> n(u)   infinite       u a source of v
 *     a(v) -> T      price * work
 *
 * True is the side of S. Of equal cuts the one nearest to S is taken, which keeps
 * values. Flow by Dinic's method, without recursion.
 */
#include "grad/cut.h"

typedef struct edge {
	int32_t to, back; /* back: the edge the other way */
	int64_t room;
} edge;

typedef struct net {
	arena *a;
	int32_t n;
	int32_t *head; /* edges of a node, as lists */
	VEC(edge) edge;
	VEC(int32_t) next;
	int32_t *level, *at, *queue, *path;
} net;

static const int64_t FOR_EVER = INT64_MAX / 4;

static void join(net *g, int32_t from, int32_t to, int64_t room)
{
	int32_t e = g->edge.n;

	*vec_push(g->a, &g->edge) = (edge){to, e + 1, room};
	*vec_push(g->a, &g->next) = g->head[from];
	g->head[from] = e;
	*vec_push(g->a, &g->edge) = (edge){from, e, 0};
	*vec_push(g->a, &g->next) = g->head[to];
	g->head[to] = e + 1;
}

/* Distances from S along free edges; true: T is reachable. */
static bool reach(net *g, int32_t s, int32_t t)
{
	int32_t first = 0, last = 0;

	for (int32_t i = 0; i < g->n; i++)
		g->level[i] = -1;
	g->level[s] = 0;
	g->queue[last++] = s;
	while (first < last) {
		int32_t v = g->queue[first++];

		for (int32_t e = g->head[v]; e >= 0; e = g->next.at[e]) {
			int32_t w = g->edge.at[e].to;

			if (g->edge.at[e].room == 0 || g->level[w] >= 0)
				continue;
			g->level[w] = g->level[v] + 1;
			g->queue[last++] = w;
		}
	}
	return g->level[t] >= 0;
}

/* Takes what the path has room for; returns how much of it is still open. */
static int32_t push(net *g, int32_t n)
{
	int64_t most = INT64_MAX;
	int32_t open = 0;

	for (int32_t i = 0; i < n; i++)
		if (g->edge.at[g->path[i]].room < most)
			most = g->edge.at[g->path[i]].room;
	for (int32_t i = n - 1; i >= 0; i--) {
		edge *e = &g->edge.at[g->path[i]];

		e->room -= most;
		g->edge.at[e->back].room += most;
		if (e->room == 0)
			open = i;
	}
	return open;
}

/* Pushes along all shortest paths. */
static void block(net *g, int32_t s, int32_t t)
{
	int32_t n = 0, v = s;

	for (int32_t i = 0; i < g->n; i++)
		g->at[i] = g->head[i];
	for (;;) {
		int32_t e;

		if (v == t) {
			n = push(g, n);
			v = g->edge.at[g->edge.at[g->path[n]].back].to;
			continue;
		}
		for (e = g->at[v]; e >= 0; e = g->next.at[e])
			if (g->edge.at[e].room > 0 &&
				g->level[g->edge.at[e].to] == g->level[v] + 1)
				break;
		g->at[v] = e;
		if (e >= 0) {
			g->path[n++] = e;
			v = g->edge.at[e].to;
		} else if (n > 0) { /* a dead end: it is not visited again */
			g->level[v] = -1;
			v = g->edge.at[g->edge.at[g->path[--n]].back].to;
		} else {
			return;
		}
	}
}

/*
 * Equal layers would all be kept at one price, and none below it. So under a limit
 * their prices are spread over 1 .. 2, with distant values for neighbours, so that
 * every second or third layer is kept.
 */
static double spread(int32_t v, int64_t limit)
{
	double x = (double)v * 0.6180339887498949;

	return limit < 0 ? 1 : 1 + (x - (double)(int64_t)x);
}

static int64_t cost_of(int64_t work, double price)
{
	double c = (double)work * price;

	return c >= (double)(FOR_EVER / 4) ? FOR_EVER / 4 : (int64_t)c;
}

static net *build(
	arena *a, int32_t n, const cut_value *value, double price,
	int64_t limit)
{
	net *g = arena_make(a, net);
	int32_t s = 2 * n, t = 2 * n + 1;

	g->a = a;
	g->n = 2 * n + 2;
	g->head = arena_array(a, int32_t, g->n);
	g->level = arena_array(a, int32_t, g->n);
	g->at = arena_array(a, int32_t, g->n);
	g->queue = arena_array(a, int32_t, g->n);
	g->path = arena_array(a, int32_t, g->n);
	for (int32_t i = 0; i < g->n; i++)
		g->head[i] = -1;
	for (int32_t v = 0; v < n; v++) {
		const cut_value *x = &value[v];

		if (x->is_read)
			join(g, s, 2 * v, FOR_EVER);
		join(g, 2 * v, 2 * v + 1, x->is_there ? 0 : x->bytes);
		join(g, 2 * v + 1, 2 * v, FOR_EVER);
		for (int32_t k = 0; k < x->n_sources; k++)
			join(g, 2 * v + 1, 2 * x->source[k], FOR_EVER);
		join(g, 2 * v + 1, t,
			x->is_fixed ? FOR_EVER
				    : cost_of(x->work,
					      price * spread(v, limit)));
	}
	return g;
}

static cut_result at_price(
	arena *a, int32_t n, const cut_value *value, double price,
	int64_t limit)
{
	net *g = build(a, n, value, price, limit);
	cut_result r = {.keep = arena_array(a, bool, n + 1),
		.again = arena_array(a, bool, n + 1),
		.fits = true};

	while (reach(g, 2 * n, 2 * n + 1))
		block(g, 2 * n, 2 * n + 1);
	for (int32_t v = 0; v < n; v++) {
		bool needed = g->level[2 * v] >= 0;

		if (needed && g->level[2 * v + 1] >= 0) {
			r.again[v] = true;
			r.work += value[v].work;
		} else if (needed && !value[v].is_there) {
			r.keep[v] = true;
			r.bytes += value[v].bytes;
		}
	}
	return r;
}

cut_result cut_choose(
	arena *a, int32_t n, const cut_value *value, const cut_options *o)
{
	cut_result best = at_price(a, n, value, o->bytes_per_work, -1);
	cut_result least;
	double low = 0, high = o->bytes_per_work;

	if (o->limit < 0 || best.bytes <= o->limit)
		return best;
	least = at_price(a, n, value, 0, o->limit);
	least.fits = least.bytes <= o->limit;
	if (!least.fits)
		return least;
	/* bytes do not decrease when work costs more */
	for (int32_t i = 0; i < 24; i++) {
		double middle = (low + high) / 2;

		best = at_price(a, n, value, middle, o->limit);
		if (best.bytes <= o->limit) {
			low = middle;
			least = best;
		} else {
			high = middle;
		}
	}
	return least;
}
