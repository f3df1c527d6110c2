/*
 * verify_tree.c: what the checks of a schedule ask of its trees, and how they
 * fail: at the line of the text where the trees come from one.
 */
#include "schedule/verify.h"

#include <stdarg.h>

_Noreturn void verify_fail(
	struct sv *v, const loop_node *n, const char *rule, const char *fmt, ...)
{
	char text[400], full[40];
	loc at = {.file = v->k->file, .line = n == NULL ? 0 : n->line};
	va_list ap;

	va_start(ap, fmt);
	text_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	text_print(full, sizeof full, "schedule.%s", rule);
	env_fail(arena_env(v->k->a), v->k->pinned ? TN_EINVAL : TN_EINTERNAL,
		full, at, "%s: %s", v->k->name, text);
}

const char *verify_var(const struct sv *v, int32_t var)
{
	return v->k->var[var].name;
}

const char *verify_eqn(const struct sv *v, int32_t eqn)
{
	return arena_printf(v->k->a, "%s#%d", loop_label(&v->k->eqn[eqn]), eqn);
}

loop_set verify_walked_by(const loop_node *n)
{
	loop_set s = 0;

	if (n->kind != LOOP_TILE && n->kind != LOOP_STAGE)
		return 0;
	s |= BIT(n->var);
	if (n->row_var >= 0)
		s |= BIT(n->row_var);
	else if (n->kind == LOOP_STAGE && n->up != NULL)
		s |= BIT(n->up->var); /* what the loop around walks */
	for (int32_t i = 0; i < n->n_sums; i++)
		s |= BIT(n->sum[i]);
	return s;
}

loop_set verify_walked(const loop_node *leaf)
{
	loop_set s = verify_walked_by(leaf) | loop_node_open(leaf->up);

	for (const loop_node *u = leaf->up; u != NULL; u = u->up)
		if (u->number >= 0)
			s |= BIT(u->number);
	return s;
}

const loop_node *verify_common(const loop_node *a, const loop_node *b)
{
	for (const loop_node *u = a; u != NULL; u = u->up)
		for (const loop_node *w = b; w != NULL; w = w->up)
			if (u == w)
				return u;
	return NULL;
}

const loop_node *verify_first(const struct sv *v, loop_kind kind,
	int32_t eqn, int32_t phase)
{
	for (int32_t i = 0; i < v->leaf.n; i++)
		if (v->leaf.at[i].n->kind == kind &&
			v->leaf.at[i].n->eqn == eqn &&
			v->leaf.at[i].phase == phase)
			return v->leaf.at[i].n;
	return NULL;
}

int32_t verify_span_var(const loop_node *a, const loop_node *b)
{
	const loop_node *both = verify_common(a, b), *x = a, *y = b;

	if (both == a || both == b)
		return -1;
	while (x->up != both)
		x = x->up;
	while (y->up != both)
		y = y->up;
	return x->kind == LOOP_SPAN && y->kind == LOOP_SPAN && x->var == y->var
		? x->var
		: -1;
}
