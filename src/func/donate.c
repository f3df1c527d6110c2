/*
 * donate.c: arguments that are given away to a call of a compiled function.
 *
 * The call may do with the memory of a donated argument what it likes: nobody
 * looks at it any more. That is checked before the call: no other argument, no
 * tensor that is alive and nothing that the function knows may overlap it.
 * Afterwards the handle is dead, and says so.
 *
 * Source: docs/compile.md.
 */
#include "func/function.h"

static _Noreturn void refuse(
	const tensor_function *f, int32_t i, const char *text)
{
	env_fail(f->t->e, TN_EINVAL, "compile.donate",
		t_here(f->t),
		"%s: donated argument %d %s", f->name, (int)i, text);
}

static bool meet(tensors *t, const tensor *x, const tensor *y)
{
	t_seen a = {x->storage->cur, x->view}, b = {y->storage->cur, y->view};

	return x->storage == y->storage && t_overlap(t, &a, &b);
}

static void check_handles(const tensor_function *f, tensor *const *in,
	int32_t i)
{
	const tensors *t = f->t;

	for (int32_t k = 0; k < t->scope.n; k++)
		for (tensor *y = t->scope.at[k]; y != NULL; y = y->before)
			if (y != in[i] && y->mark == TENSOR_LIVE &&
				meet(f->t, in[i], y))
				refuse(f, i, "shares its memory with another "
					"tensor that is alive: drop that one "
					"first");
}

void tensor_function_check_donated(
	tensor_function *f, tensor *const *in, const bool *donated)
{
	for (int32_t i = 0; i < f->n_in; i++) {
		if (!donated[i])
			continue;
		t_check(f->t, in[i]);
		for (int32_t k = 0; k < f->n_in; k++)
			if (k != i && meet(f->t, in[i], t_check(f->t, in[k])))
				refuse(f, i, arena_printf(f->a,
					"overlaps argument %d", (int)k));
		for (int32_t k = 0; k < f->known.n; k++)
			if (f->known.at[k] == in[i]->storage)
				refuse(f, i, "is also a tensor that the "
					"function uses directly");
		check_handles(f, in, i);
	}
}

void tensor_function_take_donated(
	tensor_function *f, tensor *const *in, const bool *donated)
{
	for (int32_t i = 0; i < f->n_in; i++)
		if (donated[i])
			tensor_give_away(f->t, in[i]);
}
