/*
 * guard.c: removes guards from the interior of loops.
 *
 * A guard below a vector loop that depends on its variable is true or false on
 * intervals. The loop is cut there, at whole vectors, so that in each piece the
 * guard is constant and its select disappears:
 *
 *   for j < 4096 by 16 { o = inside(j - 1, 0, 4094) ? x[j - 1] : 0 }   ->
 *   span j 0..16 { .. }  span j 16..4080 { o = x[j - 1] }  span j 4080..4096 { .. }
 *
 * The pieces of a copy move outside loops that contain nothing else, so that these
 * walk one piece after another.
 */
#include "schedule/local.h"

#define MAX_CUTS 6

struct guards {
	loop_kernel *k;
	int32_t var;
	loop_set inside; /* variables of loops below */
	int32_t n;
	int64_t at[MAX_CUTS];
	bool full;
};

static void cut(struct guards *g, int64_t q)
{
	int32_t i, j;

	if (q <= 0 || q >= g->k->var[g->var].extent)
		return;
	for (i = 0; i < g->n && g->at[i] < q; i++)
		;
	if (i < g->n && g->at[i] == q)
		return;
	if (g->n == MAX_CUTS) {
		g->full = true;
		return;
	}
	for (j = g->n++; j > i; j--)
		g->at[j] = g->at[j - 1];
	g->at[i] = q;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return -floor_div(-a, b);
}

/* lo <= s * v + r < hi for every, or for no, r in min .. max */
static void guard_visit(void *arg, const expr *e)
{
	struct guards *g = arg;
	ix *x = g->k->s->x;
	int64_t near = g->k->machine->schedule.near_guard;
	int64_t ext = g->k->var[g->var].extent, s, min, max;
	const ix_form *rest;

	if (e->kind != EX_INSIDE || !ix_stride(e->form, g->var, ext, &s) ||
		s == 0)
		return;
	rest = ix_sub(x, &g->k->dom, e->form,
		ix_scale(x, ix_axis(x, &g->k->dom, g->var), s));
	if (ix_has_fun(rest))
		return;
	/* the variable of a short loop around (a sliding window) may be inside, too */
	ix_range(&g->k->dom, rest, &min, &max);
	if ((loop_form_vars(rest) & ~g->inside) != 0 &&
		(min < -near || max - min > near))
		return;
	if (s > 0) {
		cut(g, ceil_div(e->lo - max, s));
		cut(g, ceil_div(e->lo - min, s));
		cut(g, ceil_div(e->hi - max, s));
		cut(g, ceil_div(e->hi - min, s));
	} else {
		cut(g, floor_div(e->hi - 1 - max, s) + 1);
		cut(g, floor_div(e->hi - 1 - min, s) + 1);
		cut(g, floor_div(e->lo - 1 - max, s));
		cut(g, floor_div(e->lo - 1 - min, s));
	}
}

static void gather(struct guards *g, const loop_node *n)
{
	int32_t i, j;

	if (n->kind == LOOP_FOR)
		g->inside |= BIT(n->var);
	for (i = 0; i < n->n_child; i++)
		gather(g, n->child[i]);
	if (n->kind == LOOP_STMT)
		for (j = 0; j < g->k->eqn[n->eqn].e->n_out; j++)
			loop_walk(g->k->a, g->k->eqn[n->eqn].body[j],
				guard_visit, g);
}

/* Cuts n at whole vectors into pieces, in order. */
static int32_t pieces(loop_kernel *k, loop_node *n, loop_node **out)
{
	struct guards g = {.k = k, .var = n->var};
	int64_t ext = k->var[n->var].extent, from = 0;
	int32_t i, m = 0;

	for (i = 0; i < n->n_child; i++)
		gather(&g, n->child[i]);
	gather(&g, n); /* again, now with all loops below */
	if (g.full)
		loop_decide(k, DECIDE_GUARDS_MANY, n->var, -1, 0, MAX_CUTS);
	if (g.n == 0 || g.full)
		return 0;
	for (i = 0; i <= g.n; i++) {
		int64_t to = i < g.n ? g.at[i] : ext;
		loop_node *s;

		if (i < g.n)
			to = to * 2 < ext
				     ? (to + n->lanes - 1) / n->lanes * n->lanes
				     : to / n->lanes * n->lanes;
		if (to <= from)
			continue;
		s = loop_node_new(k->a, LOOP_SPAN);
		s->var = n->var;
		s->lo = from;
		s->hi = to;
		loop_node_adopt(k->a, s, loop_node_copy(k->a, n));
		if (m > 0)
			loop_set_twins(s, out[0]);
		out[m++] = s;
		from = to;
	}
	if (m > 1)
		loop_decide(k, DECIDE_GUARDS_TAKEN, n->var, -1, m, 0);
	return m > 1 ? m : 0;
}

/* Does a loop below n give chunks, or is n in a chunk that has a part of a sum? Then
 * n is one loop: neither is cut. */
static bool gives_chunks(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (n->child[i]->parallel || n->child[i]->kind == LOOP_PART ||
			gives_chunks(n->child[i]))
			return true;
	return false;
}

/* Does n walk a scan, whose last element goes from vector to vector? */
static bool scans(const loop_kernel *k, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (!loop_is_loop(n->child[i]) &&
			k->eqn[n->child[i]->eqn].scan_var == n->var)
			return true;
	return false;
}

/* Can the iterations of all statements below n run in any order? */
static bool only_copies(const loop_kernel *k, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (!only_copies(k, n->child[i]))
			return false;
	return loop_is_loop(n)
		       ? !n->backward && n->n_clip == 0 && n->n_needs == 0
		       : n->kind == LOOP_STMT && k->eqn[n->eqn].pack &&
				 !k->eqn[n->eqn].part &&
				 k->eqn[n->eqn].e->monoid == IR_SET;
}

/* for c { span .. span .. } -> span { for c .. } span { for c .. }; 0: no change */
static int32_t turned(loop_kernel *k, const loop_node *c, loop_node **out)
{
	if (c->kind != LOOP_FOR || c->lanes > 1 || c->parallel ||
		c->n_child < 2 || !only_copies(k, c))
		return 0;
	for (int32_t i = 0; i < c->n_child; i++)
		if (c->child[i]->kind != LOOP_SPAN ||
			c->child[i]->var == c->var)
			return 0;
	for (int32_t i = 0; i < c->n_child; i++) {
		const loop_node *s = c->child[i];
		loop_node *f = arena_copy(k->a, c, sizeof *c);

		f->child = s->child;
		f->n_child = s->n_child;
		out[i] = arena_copy(k->a, s, sizeof *s);
		out[i]->n_child = 0;
		loop_node_adopt(k->a, out[i], f);
		if (i > 0)
			loop_set_twins(out[i], out[0]);
	}
	return c->n_child;
}

static void in_list(loop_kernel *k, loop_node ***list, int32_t *n)
{
	loop_node **out = arena_array(
		k->a, loop_node *, *n * (MAX_CUTS + 1) + 1);
	int32_t i, m = 0;

	for (i = 0; i < *n; i++) {
		loop_node *c = (*list)[i];
		int32_t p = 0;

		if (c->kind == LOOP_FOR && c->n_clip > 0)
			; /* constant for the rest */
		else if (c->kind == LOOP_FOR && c->lanes > 1)
			p = gives_chunks(c) || scans(k, c)
				    ? 0
				    : pieces(k, c, out + m);
		else {
			in_list(k, &c->child, &c->n_child);
			p = turned(k, c, out + m);
		}
		if (p == 0)
			out[m++] = c;
		m += p;
	}
	*list = out;
	*n = m;
}

void loop_split_guards(loop_kernel *k)
{
	int32_t p;

	for (p = 0; p < k->n_phases; p++)
		if (!k->phase[p].tiles)
			in_list(k, &k->phase[p].root, &k->phase[p].n_roots);
	loop_link(k);
}
