/*
 * clip.c: restricts the loops of a write in place to the elements it changes, and
 * those of a sum to the terms that count.
 *
 * The next version of a tensor is an equation over all elements, even if it
 * differs from the version before only in a box. If both versions use the same
 * memory, nothing is done outside the box: the loops around the statement are
 * clipped to it, each by a guard that depends on its variable:
 *
 *   for i < 128 { for j { w'[i,j] = inside(i - t, 0, 1) ? v[j] : w[i,j] } }
 *     ->  for t <= i < t + 1 { for j { w'[i,j] = v[j] } }
 *
 * Terms of a sliding window outside of an image are 0: the loop of its rows walks
 * those inside, where no lane asks for the row.
 *
 *   for j lanes { for a < 3 { s += inside(i + a - 1, 0, 7) ? x[i + a - 1, j] : 0 } }
 *     ->  for j lanes { for 1 - i <= a < 8 - i { s += x[i + a - 1, j] } }
 */
#include "schedule/local.h"

enum { MOST_COUNTED = 1 << 14 };

struct window {
	loop_kernel *k;
	int32_t eqn;
	loop_node *stmt;
	int32_t n_stmts;
};

/* The guard of the changed elements; NULL: it is not a write in place. */
static const expr *window_of(loop_kernel *k, const loop_eqn *e)
{
	const ir_system *s = k->s;
	int32_t t = e->e->out[0], maker, comp;
	tn_dtype dt = s->tensor.at[t].dtype;
	const expr *b, *old;
	ix_dom left;

	if (e->e->monoid != IR_SET || e->push || e->stage || e->scan_var >= 0 ||
		loop_param(k, t) < 0 || !ir_in_place(s, t))
		return NULL;
	b = ex_uncast(e->body[0], dt);
	if (b->kind != EX_SELECT)
		return NULL;
	old = ex_uncast(b->arg[2], dt);
	if (old->kind != EX_READ || s->tensor.at[old->tensor].dtype != dt ||
		s->tensor.at[old->tensor].storage != s->tensor.at[t].storage)
		return NULL;
	left = ir_dom_when(k->s, &k->dom, b->arg[0], false);
	if (ix_equal(s->x, &left, e->at, old->form) != IX_EQUAL)
		return NULL;
	/* computed here and not stored: no elements can be kept */
	if (loop_maker(k, old->tensor, &maker, &comp))
		return NULL;
	return b->arg[0];
}

/* The guard outside which a sum, or a maximum, takes nothing in; NULL: it has none. */
static const expr *counts_inside(loop_kernel *k, const loop_eqn *e)
{
	const expr *b = e->body[0];

	if (e->e->n_out != 1 || e->push || e->stage || e->scan_var >= 0 ||
		(e->e->monoid != IR_SUM && e->e->monoid != IR_MAX &&
			e->e->monoid != IR_MIN) ||
		b->kind != EX_SELECT ||
		b->arg[2] != ir_identity(k->s, e->e->monoid, 0, b->dtype) ||
		k->machine->block.warps > 1)
		return NULL;
	return b->arg[0];
}

static const expr *clipped_by(loop_kernel *k, const loop_eqn *e)
{
	const expr *c = counts_inside(k, e);

	return c != NULL ? c : window_of(k, e);
}

static void find(struct window *w, loop_node *n)
{
	if (n->kind == LOOP_STMT && n->eqn == w->eqn) {
		w->stmt = n;
		w->n_stmts++;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		find(w, n->child[i]);
}

/* May n be clipped at `rest`: is that known there, and the same in all lanes? */
static bool is_known(const loop_node *n, const ix_form *rest)
{
	loop_set vars = loop_form_vars(rest);

	if ((vars & ~loop_node_open(n->up)) != 0)
		return false;
	for (n = n->up; n != NULL; n = n->up)
		if (n->kind == LOOP_FOR && n->lanes > 1 && (vars & BIT(n->var)) != 0)
			return false;
	return true;
}

/* A sum in lanes keeps its order, and rows that stand abreast, in its lanes or written
 * out, keep their accumulators. */
static bool is_whole(const loop_kernel *k, const loop_node *n, int32_t eqn)
{
	const loop_eqn *e = &k->eqn[eqn];

	if (e->e->monoid == IR_SET)
		return false;
	if (n->unroll > 0 && (e->reduced & BIT(n->var)) == 0)
		return true;
	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->kind == LOOP_FOR && u->lanes > 1 &&
			(e->reduced & BIT(u->var)) != 0 &&
			(e->reduced & BIT(n->var)) == 0)
			return true;
	return n->lanes > 1;
}

/*
 * How many iterations of n, of whose variable the guard has s times, are outside for
 * some values of the others? If it is one, a guard costs less than a loop that is not
 * written out.
 */
static int64_t n_outside(loop_kernel *k, const loop_node *n, const ix_form *rest,
	int64_t s, int64_t lo, int64_t hi)
{
	int64_t ext = k->var[n->var].extent, sum = 0, min, max;
	double below, above; /* outside before the first, and behind the last */

	ix_range(&k->dom, rest, &min, &max);
	below = s > 0 ? (double)lo - (double)min : (double)max - (double)hi + 1;
	above = s > 0 ? (double)ext - (double)hi + (double)max
		      : (double)ext - 1 - (double)min + (double)lo;
	if (below > 0)
		sum += below < (double)ext ? (int64_t)below : ext;
	if (above > 0)
		sum += above < (double)ext ? (int64_t)above : ext;
	return sum < ext ? sum : ext;
}

/* Is it worth clipping a sum in n? */
static bool is_worth(struct window *w, const loop_node *n, const ix_form *rest,
	int64_t s, int64_t lo, int64_t hi)
{
	int64_t ext = w->k->var[n->var].extent;
	int64_t out = n_outside(w->k, n, rest, s, lo, hi);
	decide_kind why = !is_known(n, rest) ? DECIDE_CLIPS_LANES
			  : out <= 1	     ? DECIDE_CLIPS_ONE
					     : DECIDE_CLIPS_TAKEN;

	if (why == DECIDE_CLIPS_TAKEN || n->n_clip == 0)
		loop_decide(w->k, why, n->var, w->eqn, out, ext);
	return why == DECIDE_CLIPS_TAKEN;
}

/* Clips the innermost loop on which lo <= f < hi depends, if possible. */
static void clip(struct window *w, const ix_form *f, int64_t lo, int64_t hi)
{
	loop_kernel *k = w->k;
	ix *x = k->s->x;

	for (loop_node *n = w->stmt->up; n != NULL && n->n_child == 1;
		n = n->up) {
		const ix_form *rest;
		loop_clip *list;
		int64_t s;

		if (n->kind != LOOP_FOR ||
			(loop_form_vars(f) & BIT(n->var)) == 0)
			continue;
		if (!ix_stride(f, n->var, k->var[n->var].extent, &s) ||
			(s != 1 && s != -1) || n->backward ||
			is_whole(k, n, w->eqn))
			return;
		rest = ix_sub(x, &k->dom, f,
			ix_scale(x, ix_axis(x, &k->dom, n->var), s));
		if (k->eqn[w->eqn].e->monoid == IR_SET
				? !is_known(n, rest)
				: !is_worth(w, n, rest, s, lo, hi))
			return;
		list = arena_array(k->a, loop_clip, n->n_clip + 1);
		if (n->n_clip > 0)
			memcpy(list, n->clip,
				(size_t)n->n_clip * sizeof *list);
		list[n->n_clip++] = (loop_clip){f, lo, hi, rest, s};
		n->clip = list;
		n->unroll = 0;
		return;
	}
}

static void clip_all(struct window *w, const expr *c, int32_t depth)
{
	if (c->kind == EX_INSIDE)
		clip(w, c->form, c->lo, c->hi);
	else if (c->kind == EX_CALL && depth < 50 &&
		strcmp(ir_scalar_at(c->fn)->name, "and") == 0) {
		clip_all(w, c->arg[0], depth + 1);
		clip_all(w, c->arg[1], depth + 1);
	}
}

/* Is the guard of the write false for the elements that `with` describes? */
static bool never(loop_kernel *k, const ix_dom *d, const expr *c,
	const ix_form **with, int32_t depth)
{
	int64_t min, max;

	if (c->kind == EX_INSIDE) {
		ix_range(d,
			ix_subst(k->s->x, d, c->form, k->n_vars,
				k->dom.box.extent, with),
			&min, &max);
		return max < c->lo || min >= c->hi;
	}
	return c->kind == EX_CALL && depth < 50 &&
	       strcmp(ir_scalar_at(c->fn)->name, "and") == 0 &&
	       (never(k, d, c->arg[0], with, depth + 1) ||
		       never(k, d, c->arg[1], with, depth + 1));
}

bool loop_leaves(
	loop_kernel *k, const loop_eqn *e, const ix_form *at, const ix_dom *d)
{
	ix *x = k->s->x;
	int32_t t = e->e->out[0];
	tn_dtype dt = k->s->tensor.at[t].dtype;
	const ix_form **with = arena_array(
		k->a, const ix_form *, k->n_vars + 1);
	const expr *b = ex_uncast(e->body[0], dt);
	ix_dom outside = k->dom;
	int64_t s;

	for (int32_t v = 0; v < k->n_vars; v++) {
		int64_t n = k->var[v].extent;

		with[v] = ix_axis(x, d, v);
		if (n > 1 && (e->left & BIT(v)) != 0) {
			if (!ix_stride(e->at, v, n, &s) || s < 1)
				return false;
			with[v] = ix_mod(x, d, ix_div(x, d, at, s), n);
		}
	}
	for (; b->kind == EX_SELECT; b = ex_uncast(b->arg[2], dt)) {
		if (!never(k, d, b->arg[0], with, 0))
			return false;
		outside = ir_dom_when(k->s, &outside, b->arg[0], false);
	}
	return e->e->monoid == IR_SET && b->kind == EX_READ &&
	       k->s->tensor.at[b->tensor].storage ==
		       k->s->tensor.at[t].storage &&
	       ix_equal(x, &outside, e->at, b->form) == IX_EQUAL;
}

/* How many values of the form, from variable v on, are in the clip; x: of those before. */
static double n_inside(
	loop_kernel *k, const loop_clip *clip, int32_t v, int64_t x)
{
	loop_set vars = loop_form_vars(clip->f);
	double n = 0;
	int64_t s = 0;

	while (v < k->n_vars && (vars & BIT(v)) == 0)
		v++;
	if (v == k->n_vars)
		return x >= clip->lo && x < clip->hi;
	ix_stride(clip->f, v, k->var[v].extent, &s);
	for (int64_t i = 0; i < k->var[v].extent; i++)
		n += n_inside(k, clip, v + 1, x + s * i);
	return n;
}

double loop_clip_part(loop_kernel *k, const loop_clip *clip)
{
	loop_set vars = loop_form_vars(clip->f);
	double all = 1;

	for (int32_t v = 0; v < k->n_vars; v++)
		if ((vars & BIT(v)) != 0)
			all *= (double)k->var[v].extent;
	return all > MOST_COUNTED ? 1 : n_inside(k, clip, 0, clip->f->c0) / all;
}

static bool has_clip(const expr *c, const loop_clip *clip, int32_t depth)
{
	if (c->kind == EX_INSIDE)
		return c->form == clip->f && c->lo == clip->lo &&
		       c->hi == clip->hi;
	return c->kind == EX_CALL && depth < 50 &&
	       strcmp(ir_scalar_at(c->fn)->name, "and") == 0 &&
	       (has_clip(c->arg[0], clip, depth + 1) ||
		       has_clip(c->arg[1], clip, depth + 1));
}

bool loop_may_clip(loop_kernel *k, const loop_node *n, const loop_clip *clip)
{
	const loop_node *leaf = n;
	const expr *c;

	while (loop_is_loop(leaf) && leaf->n_child == 1)
		leaf = leaf->child[0];
	if (leaf->kind != LOOP_STMT || n->kind != LOOP_FOR || n->backward ||
		is_whole(k, n, leaf->eqn) || !is_known(n, clip->rest))
		return false;
	c = clipped_by(k, &k->eqn[leaf->eqn]);
	return c != NULL && has_clip(c, clip, 0);
}

void loop_clip_all(loop_kernel *k)
{
	loop_link(k);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const expr *c = clipped_by(k, &k->eqn[i]);
		struct window w = {.k = k, .eqn = i};

		if (c == NULL)
			continue;
		for (int32_t p = 0; p < k->n_phases; p++)
			for (int32_t j = 0; j < k->phase[p].n_roots &&
					    !k->phase[p].tiles;
				j++)
				find(&w, k->phase[p].root[j]);
		if (w.n_stmts == 1)
			clip_all(&w, c, 0);
	}
}
