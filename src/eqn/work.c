/*
 * work.c: counts the flops of one iteration of an equation.
 *
 * Each node counts once, even if it is used twice. Guards on indices cost nothing:
 * loops are split where they change, and only one side of a guard is computed.
 *
 *     y = exp(x); y * y + 1                  14
 *     inside(i, 1, 9) ? exp(x) : 0           12
 */
#include "eqn/local.h"

enum { MAX_DEPTH = 500 };

typedef struct work {
	eqn_graph *g;
	map *seen;
} work;

/* Does it depend on indices alone? */
static bool is_guard(const expr *e, int32_t depth)
{
	if (depth > MAX_DEPTH)
		return false;
	switch (e->kind) {
	case EX_CONST:
	case EX_INDEX:
	case EX_INSIDE:
		return true;
	case EX_READ:
	case EX_PARAM:
		return false;
	case EX_CALL:
	case EX_SELECT:
	case EX_CAST:
		break;
	}
	for (int32_t i = 0; i < e->n_args; i++)
		if (!is_guard(e->arg[i], depth + 1))
			return false;
	return e->dtype == TN_BOOL;
}

static int64_t flops(work *w, const expr *e, int32_t depth)
{
	int64_t n = 0, a, b;

	if (e->n_args == 0 || depth > MAX_DEPTH ||
		map_get(w->seen, &e->id, sizeof e->id, 0) != 0 ||
		is_guard(e, depth))
		return 0;
	map_set(w->seen, &e->id, sizeof e->id, 1);
	if (e->kind == EX_SELECT) {
		n = flops(w, e->arg[0], depth + 1);
		a = flops(w, e->arg[1], depth + 1);
		b = flops(w, e->arg[2], depth + 1);
		if (!is_guard(e->arg[0], depth))
			return n + a + b + 1;
		return a > b ? a : b;
	}
	for (int32_t i = 0; i < e->n_args; i++)
		n += flops(w, e->arg[i], depth + 1);
	if (e->kind == EX_CALL)
		n += ir_scalar_at(e->fn)->flops;
	return n;
}

int64_t eqn_flops(eqn_graph *g, const sys_eqn *e)
{
	work w = {.g = g, .seen = map_new(g->scratch)};
	int64_t n = e->monoid == IR_SET ? 0 : e->n_out;

	for (int32_t k = 0; k < e->n_out; k++)
		if (e->body[k] != NULL)
			n += flops(&w, e->body[k], 0);
	return n;
}
