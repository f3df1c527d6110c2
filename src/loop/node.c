/* node.c: creates and copies nodes of loop trees. */
#include "loop/tree.h"

loop_node *loop_node_new(arena *a, loop_kind kind)
{
	loop_node *n = arena_make(a, loop_node);

	n->kind = kind;
	n->var = n->row_var = n->number = -1;
	n->eqn = -1;
	return n;
}

void loop_node_adopt(arena *a, loop_node *n, loop_node *child)
{
	loop_node **list = arena_array(a, loop_node *, n->n_child + 1);

	if (n->n_child > 0)
		memcpy(list, n->child, (size_t)n->n_child * sizeof *list);
	list[n->n_child++] = child;
	n->child = list;
}

void loop_node_take_var(loop_node *n, const loop_node *from)
{
	n->var = from->var;
	n->n_needs = from->n_needs;
	n->need = from->need;
	n->near = from->near;
	n->fills = from->fills;
	n->backward = from->backward;
}

loop_node *loop_node_for(arena *a, int32_t var, loop_node *child)
{
	loop_node *n = loop_node_new(a, LOOP_FOR);

	n->var = var;
	if (child != NULL)
		loop_node_adopt(a, n, child);
	return n;
}

loop_node *loop_node_copy(arena *a, const loop_node *n)
{
	loop_node *c = arena_make(a, loop_node);
	int32_t i;

	*c = *n;
	c->child = arena_array(a, loop_node *, n->n_child + 1);
	for (i = 0; i < n->n_child; i++)
		c->child[i] = loop_node_copy(a, n->child[i]);
	return c;
}

bool loop_is_loop(const loop_node *n)
{
	return n->kind == LOOP_FOR || n->kind == LOOP_BLOCK ||
	       n->kind == LOOP_SPAN;
}

void loop_set_twins(loop_node *n, const loop_node *first)
{
	n->twin = loop_first(first);
	for (int32_t i = 0; i < n->n_child; i++)
		loop_set_twins(n->child[i], first->child[i]);
}

/* Are they the same, but for intervals? What is kept in b's blocks has room for a's. */
static bool is_same(const loop_node *a, const loop_node *b)
{
	if (a->kind != b->kind || a->var != b->var || a->eqn != b->eqn ||
		a->n_child != b->n_child ||
		(a->kind == LOOP_BLOCK && a->size > b->size))
		return false;
	for (int32_t i = 0; i < a->n_child; i++)
		if (!is_same(a->child[i], b->child[i]))
			return false;
	return true;
}

/* Notes the first of several spans of one loop as the twin of the others. Spans
 * inside the others have the first span inside the first one as their twin. */
static void find_twins(loop_node *const *list, int32_t n)
{
	const loop_node *first = NULL;

	for (int32_t i = 0; i < n; i++) {
		if (list[i]->kind == LOOP_SPAN && first != NULL &&
			list[i]->var == first->var &&
			is_same(list[i], first)) {
			loop_set_twins(list[i], first);
			continue;
		}
		first = list[i]->kind == LOOP_SPAN ? list[i] : NULL;
		list[i]->twin = NULL;
		find_twins(list[i]->child, list[i]->n_child);
	}
}

void loop_find_twins(loop_kernel *k)
{
	for (int32_t i = 0; i < k->n_phases; i++)
		find_twins(k->phase[i].root, k->phase[i].n_roots);
}

const loop_node *loop_block_around(const loop_node *n, int32_t var)
{
	for (n = n->up; n != NULL; n = n->up)
		if (n->kind == LOOP_BLOCK && n->var == var)
			return n;
	return NULL;
}

loop_set loop_node_open(const loop_node *n)
{
	loop_set s = 0;

	for (; n != NULL; n = n->up)
		if (n->kind == LOOP_FOR)
			s |= BIT(n->var);
	return s;
}
