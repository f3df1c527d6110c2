/*
 * need.c: restricts loops to the iterations that their guards allow.
 *
 * If all statements of a loop add to sums under one guard that depends on the
 * loop's variable, the loop does nothing outside the guard. The guard moves to
 * the loop ("needs"), whose bounds kern/ then restricts to whole vectors around
 * it. If a statement stores a constant outside the guard, a separate loop does
 * that.
 *
 *   for j < 1024 by 16 { z += inside(j - i, -1023, 1) ? exp(a[j]) : 0 }
 *     ->  the same for j < 16 * ceil((i + 1) / 16)
 */
#include "schedule/local.h"

/* The guard outside which a statement does nothing, or NULL. */
static const expr *idle_outside(loop_kernel *k, const loop_node *n)
{
	const loop_eqn *e = &k->eqn[n->eqn];
	const expr *b = e->body[0];

	if ((n->kind != LOOP_STMT && n->kind != LOOP_TILE) || e->e->n_out != 1 || e->push ||
		(e->e->monoid != IR_SUM && e->e->monoid != IR_MAX &&
			e->e->monoid != IR_MIN) ||
		b->kind != EX_SELECT || b->arg[0]->kind != EX_INSIDE ||
		b->arg[2] != ir_identity(k->s, e->e->monoid, 0, b->dtype))
		return NULL;
	return b->arg[0];
}

/* The guard outside which a statement stores a constant, or NULL. */
static const expr *fills_outside(loop_kernel *k, const loop_node *n)
{
	const loop_eqn *e = &k->eqn[n->eqn];
	const expr *b = e->body[0];

	if (b->kind == EX_CAST)
		b = b->arg[0];
	if (n->kind != LOOP_STMT || e->e->n_out != 1 || e->push || e->stage ||
		e->e->monoid != IR_SET || e->scan_var >= 0 ||
		b->kind != EX_SELECT || b->arg[0]->kind != EX_INSIDE ||
		b->arg[2]->kind != EX_CONST)
		return NULL;
	return b->arg[0];
}

/* The guard that all children of n share, or NULL. */
static const expr *guard_of(loop_kernel *k, const loop_node *n, bool *fills)
{
	const expr *c = NULL;

	for (int32_t i = 0; i < n->n_child; i++) {
		const expr *g = loop_is_loop(n->child[i])
					? NULL
					: idle_outside(k, n->child[i]);

		if (g == NULL && !loop_is_loop(n->child[i])) {
			g = fills_outside(k, n->child[i]);
			*fills |= g != NULL;
		}
		if (g == NULL || (c != NULL && c != g))
			return NULL;
		c = g;
	}
	return c;
}

/* What lies outside of the guard, as a fact; false: it is not one of digits. */
static bool fact_of(loop_kernel *k, const expr *c, ix_fact *out)
{
	int64_t s, min, max;

	for (int32_t i = 0; i < c->form->n; i++)
		if (c->form->t[i].atom->kind != IX_DIGIT ||
			!ix_stride(c->form, c->form->t[i].atom->axis,
				k->var[c->form->t[i].atom->axis].extent, &s))
			return false;
	ix_range(&k->dom, c->form, &min, &max);
	*out = (ix_fact){c->form, min >= c->lo ? INT64_MIN : c->lo,
		max < c->hi ? INT64_MAX : c->hi};
	return out->lo != INT64_MIN || out->hi != INT64_MAX;
}

bool loop_need_of(
	loop_kernel *k, const loop_node *n, ix_fact *out, bool *fills)
{
	const expr *c = guard_of(k, n, fills);
	loop_set open = loop_node_open(n);
	int64_t s;

	if (c == NULL || n->backward || n->n_clip > 0 ||
		(loop_form_vars(c->form) & ~open) != 0 ||
		!ix_stride(c->form, n->var, k->var[n->var].extent, &s) ||
		(s != 1 && s != -1))
		return false;
	return fact_of(k, c, out);
}

/* ---- blocks of rows or keys ---- */

struct idle {
	loop_kernel *k;
	const loop_node *block;
	const expr *guard; /* outside which what was found so far does nothing */
	bool other;	   /* something does, or another guard says when it does not */
};

static bool is_read_outside(struct idle *w, const loop_node *n, int32_t tensor)
{
	if (n == w->block)
		return false;
	for (int32_t i = 0; i < n->n_child; i++)
		if (is_read_outside(w, n->child[i], tensor))
			return true;
	return !loop_is_loop(n) && loop_leaf_reads(w->k, n, tensor);
}

/* Does only the block read what its leaf makes? */
static bool is_inside(struct idle *w, const loop_node *leaf)
{
	const loop_eqn *e = &w->k->eqn[leaf->eqn];

	for (int32_t i = 0; i < e->e->n_out; i++) {
		if (loop_param(w->k, e->e->out[i]) >= 0)
			return false;
		for (int32_t p = 0; p < w->k->n_phases; p++)
			for (int32_t r = 0; r < w->k->phase[p].n_roots; r++)
				if (is_read_outside(w, w->k->phase[p].root[r],
					    e->e->out[i]))
					return false;
	}
	return true;
}

/* Does the block, or a loop around it, walk what the leaf adds up? */
static bool goes_on(const struct idle *w, const loop_node *leaf)
{
	const loop_eqn *e = &w->k->eqn[leaf->eqn];

	for (const loop_node *u = w->block; u != NULL; u = u->up)
		if ((e->reduced & BIT(u->var)) != 0)
			return true;
	return false;
}

static void find_idle(struct idle *w, const loop_node *n)
{
	const expr *c = NULL;

	for (int32_t i = 0; i < n->n_child; i++)
		find_idle(w, n->child[i]);
	/* a maximum that has not changed scales by 1 */
	if (loop_is_loop(n) || n->kind == LOOP_SCALE)
		return;
	w->other |= n->kind != LOOP_STMT && n->kind != LOOP_TILE && n->kind != LOOP_INIT &&
		    n->kind != LOOP_STAGE;
	if (w->k->eqn[n->eqn].e->monoid != IR_SET && goes_on(w, n)) {
		/* registers begin as 0, memory where the first block is */
		w->other |= n->kind == LOOP_TILE && n->start && n->held == 0;
		c = idle_outside(w->k, n);
		w->other |= c == NULL || (w->guard != NULL && c != w->guard);
		w->guard = c;
		return;
	}
	w->other |= !is_inside(w, n);
}

bool loop_rows_need(loop_kernel *k, const loop_node *block, ix_fact *out)
{
	struct idle w = {.k = k, .block = block};

	if (block->kind != LOOP_BLOCK || block->parallel)
		return false;
	find_idle(&w, block);
	return !w.other && w.guard != NULL && fact_of(k, w.guard, out);
}

static void add_need(loop_kernel *k, loop_node *n)
{
	bool fills = false;
	ix_fact f;

	if (n->n_needs > 0 || !loop_need_of(k, n, &f, &fills))
		return;
	n->need = arena_copy(k->a, &f, sizeof f);
	n->n_needs = 1;
	n->near = true;
	n->fills = fills;
}

void loop_find_needs(loop_kernel *k, loop_node *n)
{
	if (n->kind == LOOP_FOR && n->lanes > 1)
		add_need(k, n);
	for (int32_t i = 0; i < n->n_child; i++)
		loop_find_needs(k, n->child[i]);
}
