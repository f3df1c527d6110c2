/*
 * kern_level.c: the kernels of a program, interpreted in the place of their C.
 *
 * plan_exec calls functions by chunk; the interpreter runs a kernel as a whole.
 * So of the calls of a launch that of the last phase's chunk 0 runs it, and the
 * others do nothing. Functions have no closure: there are some, each of which
 * knows its number.
 */
#include "prop.h"
#include "kern_run.h"

#include <stdlib.h>

enum { MAX_FNS = 64 };

static struct {
	kern_level *l;
	int32_t n;
	kern_kernel *kernel[MAX_FNS]; /* NULL: does nothing */
} now;

static void run_kernel(
	int32_t i, void *const *p, int64_t chunk, int64_t *err)
{
	kern_level *l = now.l;
	arena *a;
	int64_t bad;

	if (now.kernel[i] == NULL || chunk != 0)
		return;
	a = arena_child(l->a);
	bad = kern_run(a, now.kernel[i], p, l->seed + (uint64_t)i);
	if (bad != 0)
		*err = bad;
	arena_free(a);
}

#define FN(n)                                                                  \
	static void fn_##n(void *const *p, void *scratch, void *local,         \
		int64_t chunk, int64_t *err)                                   \
	{                                                                      \
		(void)scratch, (void)local;                                    \
		run_kernel(0##n, p, chunk, err);                               \
	}
#define FNS(n) FN(n##0) FN(n##1) FN(n##2) FN(n##3) FN(n##4) FN(n##5) FN(n##6) FN(n##7)
FNS(0) FNS(1) FNS(2) FNS(3) FNS(4) FNS(5) FNS(6) FNS(7)
#undef FNS
#undef FN
#define FNS(n) fn_##n##0, fn_##n##1, fn_##n##2, fn_##n##3, fn_##n##4, fn_##n##5, fn_##n##6, fn_##n##7
typedef void kernel_fn(void *const *, void *, void *, int64_t, int64_t *);
static kernel_fn *const fns[MAX_FNS] = {
	FNS(0), FNS(1), FNS(2), FNS(3), FNS(4), FNS(5), FNS(6), FNS(7)};
#undef FNS

/* plan_find: arg is a kern_level */
void kern_level_find(void *arg, int32_t unit, const char *name, void *fn)
{
	kern_level *l = arg;
	const compilation *c = l->made;

	(void)unit;
	if (now.l != l) {
		now.l = l;
		now.n = 0;
	}
	if (now.n == MAX_FNS)
		env_bug(arena_env(l->a), "kern_level", "too many functions");
	now.kernel[now.n] = NULL;
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		const c_kernel *k = c->code[i];

		if (k != NULL &&
			strcmp(k->phase[k->n_phases - 1].fn, name) == 0)
			now.kernel[now.n] = l->kernel[i];
	}
	memcpy(fn, &fns[now.n++], sizeof(void *));
}

bool kern_level_fits(const compilation *c)
{
	int32_t n = 0;

	for (int32_t i = 0; i < c->plan->kernel.n; i++)
		n += c->plan->kernel.at[i].code->n_phases;
	return n <= MAX_FNS;
}

/* ---- a kernel that is broken on purpose ---- */

static bool swap_add(kern_kernel *k)
{
	int32_t add = ir_scalar_find("add", 3), sub = ir_scalar_find("sub", 3);

	for (int32_t i = 1; i < k->value.n; i++) {
		kern_value *x = &k->value.at[i];

		if (x->op == KERN_CALL && x->fn == add) {
			x->fn = sub;
			return true;
		}
	}
	return false;
}

static bool breaks(const char *level)
{
	const char *s = getenv("PROPTEST_BREAK");

	return s != NULL && strcmp(s, level) == 0;
}

static kern_kernel *copy(arena *a, const kern_kernel *k)
{
	str s = str_new(a);

	kern_print(&s, k, 0);
	return kern_parse(a, s.at, s.n, "case.kern");
}

/*
 * The kernels that the interpreter runs: those of which C will be printed.
 * PROPTEST_BREAK=c makes an addition in what is printed alone a subtraction;
 * other levels are broken in levels.c.
 */
kern_level *kern_level_new(arena *a, compilation *c)
{
	kern_level *l = arena_make(a, kern_level);
	int32_t n = c->groups->kernel.n;

	l->a = a;
	l->made = c;
	l->kernel = arena_array(a, kern_kernel *, n + 1);
	for (int32_t i = 0; i < n; i++) {
		if (c->kernels[i] == NULL)
			continue;
		l->kernel[i] = copy(a, c->kernels[i]);
		if (breaks("c"))
			(void)swap_add(c->kernels[i]);
	}
	return l;
}
