/*
 * ahead.c: prefetches elements that are read soon.
 *
 * Rows. A loop whose body reads a row several times loads it in the first pass and
 * computes in the others, while memory is idle. The pass that computes most
 * prefetches the row of the next iteration:
 *
 *   for i { for j { m max= x[i,j] } for k { s += exp(x[i,k] - m) } }   ->
 *   for i { for j { .. } for k { ahead x[i+1,k]; .. } }
 *
 * Streams. Hardware prefetches a stream, but not beyond the end of a page; in a
 * loop with much arithmetic between two loads, that wait counts:
 *
 *   for i { o[i] = erf(x[i]) }   ->   for i { ahead x[i+512]; .. }
 *
 * Tiles. While a tile is transposed, the next one is prefetched, and the short
 * lines that a tile is combined with.
 *
 * A prefetch outside the array has no effect.
 */
#include "schedule/local.h"

#define MAX_TENSORS 16

struct first { /* the first read of a tensor */
	int32_t tensor;
	const ix_form *at;
	const loop_node *in; /* innermost loop around it */
	loop_node *loop;     /* the vector loop along its lines */
};

struct ahead {
	loop_kernel *k;
	int32_t n;
	struct first first[MAX_TENSORS];
};

/* Is it too large for the near caches? */
static bool is_large(const loop_kernel *k, const sys_tensor *t)
{
	return t->numel * (int64_t)dtype_size(t->dtype) >=
	       2 * k->machine->memory[MACHINE_L2].bytes;
}

static void on_access(void *arg, const struct loop_access *a)
{
	struct ahead *h = arg;
	const sys_tensor *t = &h->k->s->tensor.at[a->tensor];
	loop_node *v = a->leaf->up;
	int64_t s;
	int32_t i, e, c;

	if (a->write || a->leaf->kind != LOOP_STMT || v == NULL ||
		!is_large(h->k, t))
		return;
	while (v != NULL && (v->kind != LOOP_FOR || v->lanes <= 1))
		v = v->up;
	for (i = 0; i < h->n; i++) /* a read in any copy of the loop counts as the first */
		if (h->first[i].tensor == a->tensor &&
			(h->first[i].loop == v ||
				loop_first(h->first[i].loop) != loop_first(v)))
			return;
	if (h->n == MAX_TENSORS || v == NULL || ix_has_fun(a->at) ||
		(loop_maker(h->k, a->tensor, &e, &c) &&
			!h->k->eqn[e].stage) ||
		!ix_stride(a->at, v->var, h->k->var[v->var].extent, &s) ||
		s != 1)
		return;
	h->first[h->n++] =
		(struct first){a->tensor, a->at, a->leaf->up, v};
}

/* Elements of v that one iteration of top walks, by the outermost block. */
static int64_t walked(const loop_kernel *k, const loop_node *n, int32_t v,
	const loop_node *top)
{
	int64_t ext = k->var[v].extent;

	for (; n != NULL; n = n->up) {
		if (n->kind == LOOP_BLOCK && n->var == v)
			ext = n->size;
		if (n == top)
			break;
	}
	return ext;
}

/* `at` with the variables that `from` walks below top replaced by those of `to`. */
static const ix_form *moved(loop_kernel *k, const ix_form *at,
	const loop_node *from, const loop_node *to, const loop_node *top)
{
	loop_set here = loop_node_open(from) & ~loop_node_open(top);
	loop_set there = loop_node_open(to) & ~loop_node_open(top);
	const ix_form **with = arena_array(
		k->a, const ix_form *, k->n_vars + 1);
	loop_set vars = loop_form_vars(at) & here;
	int32_t i, j;

	for (i = 0; i < k->n_vars; i++) {
		with[i] = ix_axis(k->s->x, &k->dom, i);
		if ((vars & there & BIT(i)) != 0)
			there &= ~BIT(i);
	}
	for (i = 0; i < k->n_vars; i++) {
		if ((vars & BIT(i)) == 0 || (loop_node_open(to) & BIT(i)) != 0)
			continue;
		for (j = 0; j < k->n_vars; j++)
			if ((there & BIT(j)) != 0 &&
				walked(k, from, i, top) ==
					walked(k, to, j, top) &&
				k->var[i].extent == k->var[j].extent)
				break;
		if (j == k->n_vars)
			return NULL;
		there &= ~BIT(j);
		with[i] = ix_axis(k->s->x, &k->dom, j);
	}
	return ix_subst(k->s->x, &k->dom, at, k->n_vars,
		k->dom.box.extent, with);
}

struct pass {
	loop_node *loop;
	const ix_form *at;
	int64_t flops;
	int32_t n; /* number of passes */
};

/* Of the vector loops below n that walk the same elements, the one with most
 * arithmetic. */
static void best_pass(loop_kernel *k, const struct first *f, loop_node *n,
	const loop_node *top, struct pass *best)
{
	const ix_form *at;
	int64_t flops, s;
	int32_t i;

	for (i = 0; i < n->n_child; i++)
		best_pass(k, f, n->child[i], top, best);
	if (n->kind != LOOP_FOR || n->lanes <= 1 || n->lanes < f->loop->lanes)
		return;
	at = moved(k, f->at, f->in, n, top);
	if (at == NULL ||
		!ix_stride(at, n->var, k->var[n->var].extent, &s) || s != 1)
		return;
	flops = loop_flops(k, n);
	best->n++;
	if (flops < best->flops)
		return;
	best->loop = n;
	best->at = at;
	best->flops = flops;
}

void loop_add_ahead(loop_kernel *k, loop_node *n, loop_ahead one)
{
	loop_ahead *l = arena_array(k->a, loop_ahead, n->n_ahead + 1);

	if (n->n_ahead > 0)
		memcpy(l, n->ahead, (size_t)n->n_ahead * sizeof *l);
	l[n->n_ahead++] = one;
	n->ahead = l;
}

static void add(loop_kernel *k, loop_node *n, int32_t tensor,
	const ix_form *at, int64_t distance, bool far)
{
	loop_add_ahead(k, n,
		(loop_ahead){tensor, ix_addc(k->s->x, at, distance), far, 0, 0});
}

/* Bytes that one iteration of top reads. */
static int64_t row_bytes(
	const loop_kernel *k, const struct first *f, const loop_node *top)
{
	loop_set vars = loop_form_vars(f->at) & loop_node_open(f->in);
	int64_t n = (int64_t)dtype_size(k->s->tensor.at[f->tensor].dtype);
	int32_t v;

	for (v = 0; v < k->n_vars; v++)
		if ((vars & BIT(v)) != 0 &&
			(loop_node_open(top) & BIT(v)) == 0 &&
			!mul_ok(n, walked(k, f->in, v, top), &n))
			return INT64_MAX;
	return n;
}

/* Operations of one iteration of n, with the loops inside. */
static int64_t work(loop_kernel *k, const loop_node *n)
{
	int64_t sum = 0, w;
	int32_t i;

	for (i = 0; i < n->n_child; i++) {
		const loop_node *c = n->child[i];

		if (!loop_is_loop(c))
			sum += loop_flops(k, c);
		else if (c->kind != LOOP_FOR)
			sum += work(k, c);
		else if (mul_ok(work(k, c), k->var[c->var].extent, &w))
			sum += w < INT32_MAX ? w : INT32_MAX;
	}
	return sum;
}

/*
 * Does a loop inside the vector loop belong to a block outside, as rows that are
 * added up together? These are several streams already.
 */
static bool is_cut(const struct first *f)
{
	for (const loop_node *n = f->in; n != f->loop; n = n->up)
		for (const loop_node *b = f->loop; b != NULL; b = b->up)
			if (b->kind == LOOP_BLOCK && b->var == n->var)
				return true;
	return false;
}

/* The last element that one iteration of the vector loop reads. */
static const ix_form *last_read(loop_kernel *k, const struct first *f)
{
	const ix_form **with = arena_array(
		k->a, const ix_form *, k->n_vars + 1);
	loop_set inside = loop_node_open(f->in) & ~loop_node_open(f->loop);
	int64_t s;
	int32_t i;

	for (i = 0; i < k->n_vars; i++) {
		with[i] = ix_axis(k->s->x, &k->dom, i);
		if ((inside & BIT(i)) == 0)
			continue;
		if (!ix_stride(f->at, i, k->var[i].extent, &s))
			return NULL;
		with[i] = ix_const(
			k->s->x, s > 0 ? k->var[i].extent - 1 : 0);
	}
	return ix_subst(k->s->x, &k->dom, f->at, k->n_vars,
		k->dom.box.extent, with);
}

static bool ask_row(loop_kernel *k, const struct first *f)
{
	const loop_node *u;

	for (u = f->loop->up; u != NULL; u = u->up) {
		struct pass best = {NULL, NULL, 0, 0};
		int64_t s, step = u->kind == LOOP_BLOCK ? u->size : 1;
		int32_t i;

		if (row_bytes(k, f, u) > k->machine->memory[MACHINE_L2].bytes)
			return false;
		if (u->kind != LOOP_FOR && u->kind != LOOP_BLOCK)
			continue;
		for (i = 0; i < u->n_child; i++)
			best_pass(k, f, u->child[i], u, &best);
		if (best.n < 2)
			continue;
		if (best.loop == f->loop ||
			!ix_stride(f->at, u->var, k->var[u->var].extent,
				&s) ||
			s == 0 || u->backward)
			return false;
		add(k, best.loop, f->tensor, best.at, s * step, true);
		return true;
	}
	return false;
}

/* Lines of a tile are short: prefetches those of the next tile. */
static bool ask_lines(
	loop_kernel *k, const struct first *f, const ix_form *at)
{
	const loop_node *n = f->loop;
	int64_t size = (int64_t)dtype_size(k->s->tensor.at[f->tensor].dtype);

	while (n != NULL && (n->kind != LOOP_BLOCK || n->var != f->loop->var))
		n = n->up;
	if (n == NULL || n->parallel ||
		n->size * size > k->machine->schedule.ahead_bytes)
		return false;
	add(k, f->loop, f->tensor, at, n->size, true);
	return true;
}

static void ask(loop_kernel *k, loop_node *root)
{
	struct ahead h = {.k = k};
	int32_t i;

	loop_each_access(k, root, on_access, &h);
	for (i = 0; i < h.n; i++) {
		const struct first *f = &h.first[i];
		tn_dtype t = k->s->tensor.at[f->tensor].dtype;
		const ix_form *at;

		if (ask_row(k, f) || is_cut(f) ||
			(at = last_read(k, f)) == NULL)
			continue;
		if (!ask_lines(k, f, at) &&
			work(k, f->loop) >= k->machine->schedule.ahead_ops)
			add(k, f->loop, f->tensor, at,
				k->machine->schedule.ahead_bytes /
					(int64_t)dtype_size(t),
				false);
	}
}

/* n is in the block over the tiles. */
static void ask_tile(loop_kernel *k, loop_node *n)
{
	const loop_eqn *e = &k->eqn[n->eqn];
	const sys_tensor *t = &k->s->tensor.at[e->e->out[0]];
	int64_t s;

	if (n->up->kind == LOOP_BLOCK && is_large(k, t) &&
		ix_stride(e->at, n->up->var, k->var[n->up->var].extent, &s))
		add(k, n, e->e->out[0], e->at, s * n->up->size, true);
}

static void ask_tiles(loop_kernel *k, loop_node *n)
{
	int32_t i;

	if (n->kind == LOOP_STAGE)
		ask_tile(k, n);
	for (i = 0; i < n->n_child; i++)
		ask_tiles(k, n->child[i]);
}

void loop_read_ahead(loop_kernel *k)
{
	int32_t p, i;

	loop_link(k);
	for (p = 0; p < k->n_phases; p++)
		for (i = 0; i < k->phase[p].n_roots &&
			    !k->phase[p].tiles;
			i++) {
			ask(k, k->phase[p].root[i]);
			ask_tiles(k, k->phase[p].root[i]);
		}
}
