/*
 * build.c: builds the list of launches.
 *
 * Consumes kernels in topological order with their C; produces launches, one
 * function for all kernels with the same text, steps of launches that run at the
 * same time, and C texts that take a compiler about equally long.
 *
 * A function accesses tensors only through its parameters, so equal kernels can
 * use the same function.
 */
#include "plan/private.h"

#include <stdlib.h>

/*
 * Functions with the same name have the same text; this is checked. A text can
 * serve several sizes: the launch has the number of chunks.
 */
static bool same(const c_kernel *x, const c_kernel *y)
{
	return x->n_phases == y->n_phases && x->n_params == y->n_params &&
	       x->n_outputs == y->n_outputs && !strcmp(x->c, y->c);
}

/* The number of the function, which is added if it is new. */
static int32_t function_of(plan *p, map *seen, const c_kernel *code)
{
	const char *name = code->phase[0].fn;
	int64_t at = map_get_str(seen, name, -1);

	if (at < 0) {
		at = p->kernel.n;
		map_set_str(seen, name, at);
		*vec_push(p->a, &p->kernel) = (plan_kernel){.code = code};
	} else if (!same(p->kernel.at[at].code, code)) {
		env_bug(arena_env(p->a), "plan.build",
			"two different kernels are called %s", name);
	}
	p->kernel.at[at].n_uses++;
	return (int32_t)at;
}

static int32_t root_of(const plan *p, int32_t tensor)
{
	return p->root[tensor];
}

/* Follows aliases to the tensor that a kernel computes or the caller passes. */
static void find_roots(plan *p, const fuse_plan *g)
{
	int32_t *root = arena_array(p->a, int32_t, p->s->tensor.n);

	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		int32_t at = t, hops = 0;

		while (at < g->n_alias && g->alias[at] >= 0) {
			at = g->alias[at];
			if (++hops > p->s->tensor.n)
				env_bug(arena_env(p->a), "plan.alias",
					"the aliases of tensor %d form a cycle",
					(int)t);
		}
		root[t] = at;
	}
	p->root = root;
}

static void launch_opaque(plan *p, plan_launch *l, const fuse_kernel *k)
{
	const sys_eqn *e = &k->eqn[0].e;
	int32_t *tensor = arena_array(
		p->a, int32_t, e->n_out + e->n_opaque_in);

	l->kernel = -1;
	l->eqn = e;
	l->serial = true;
	l->n_params = e->n_out + e->n_opaque_in;
	for (int32_t i = 0; i < e->n_out; i++)
		tensor[i] = root_of(p, e->out[i]);
	for (int32_t i = 0; i < e->n_opaque_in; i++)
		tensor[e->n_out + i] = root_of(p, e->opaque_in[i]);
	l->tensor = tensor;
}

static void launch_kernel(plan *p, plan_launch *l, const c_kernel *code)
{
	int32_t *tensor = arena_array(p->a, int32_t, code->n_params);

	l->code = code;
	l->n_params = code->n_params;
	for (int32_t i = 0; i < code->n_params; i++)
		tensor[i] = root_of(p, code->param[i]);
	l->tensor = tensor;
	l->n_checks = code->n_checks;
	l->check = code->check;
	l->serial = code->serial;
}

static int by_work(const void *a, const void *b)
{
	const plan_kernel *const *x = a, *const *y = b;
	int64_t i = (*x)->code->work, j = (*y)->code->work;

	if (i != j)
		return i > j ? -1 : 1;
	return *x < *y ? -1 : *x > *y; /* by first use */
}

/*
 * Makes texts that take a compiler about equally long: each kernel, the longest one
 * first, joins the text that has the least work. A small program gets one text: below
 * UNIT_WORK a compiler takes little longer than its start.
 */
static void split_units(plan *p, const plan_options *o)
{
	enum { UNIT_WORK = 24000 };
	int64_t total = 0, *work;
	int32_t n = o->max_units > 0 ? o->max_units : 1;
	plan_kernel **k = arena_array(p->a, plan_kernel *, p->kernel.n + 1);

	for (int32_t i = 0; i < p->kernel.n; i++) {
		p->kernel.at[i].unit = i;
		total += p->kernel.at[i].code->work;
		k[i] = &p->kernel.at[i];
	}
	if (o->single)
		return;
	if (n > total / UNIT_WORK)
		n = (int32_t)(total / UNIT_WORK);
	if (n > p->kernel.n)
		n = p->kernel.n;
	if (n < 1)
		n = 1;
	work = arena_array(p->a, int64_t, n);
	qsort(k, (size_t)p->kernel.n, sizeof(plan_kernel *), by_work);
	for (int32_t i = 0; i < p->kernel.n; i++) {
		int32_t least = 0;

		for (int32_t u = 1; u < n; u++)
			if (work[u] < work[least])
				least = u;
		work[least] += k[i]->code->work;
		k[i]->unit = least;
	}
}

/* The kernels of each unit, by first use. */
static void write_units(plan *p)
{
	int32_t n = p->kernel.n, n_units = 0;
	const c_kernel **k = arena_array(p->a, const c_kernel *, n + 1);
	int32_t *end; /* by unit: in k, behind those that are listed so far */

	for (int32_t i = 0; i < n; i++)
		if (p->kernel.at[i].unit >= n_units)
			n_units = p->kernel.at[i].unit + 1;
	end = arena_array(p->a, int32_t, n_units + 2);
	for (int32_t i = 0; i < n; i++)
		end[p->kernel.at[i].unit + 2]++;
	for (int32_t u = 2; u < n_units + 2; u++)
		end[u] += end[u - 1];
	for (int32_t i = 0; i < n; i++)
		k[end[p->kernel.at[i].unit + 1]++] = p->kernel.at[i].code;
	for (int32_t u = 0; u < n_units; u++) {
		str c = str_new(p->a);

		p->target->unit(&c, k + end[u], end[u + 1] - end[u]);
		*vec_push(p->a, &p->unit) =
			(plan_unit){end[u + 1] - end[u], c.at};
	}
}

static void make_launches(
	plan *p, const fuse_plan *g, const c_kernel *const *code)
{
	arena *keys = arena_child(p->a);
	map *seen = map_new(keys);
	int32_t batch = -1;

	for (int32_t i = 0; i < g->kernel.n; i++) {
		const fuse_kernel *k = g->kernel.at[i];
		plan_launch *l = vec_push(p->a, &p->launch);
		int32_t next = k->batch;

		*l = (plan_launch){.source = k, .kernel = -1};
		if (k->opaque) {
			launch_opaque(p, l, k);
		} else {
			launch_kernel(p, l, code[i]);
			l->kernel = function_of(p, seen, code[i]);
		}
		if (l->n_checks > 0 || k->opaque) /* alone in its step, for its diagnosis */
			next = -1;
		if (batch >= 0 && next == batch)
			p->step.at[p->step.n - 1].n++;
		else
			*vec_push(p->a, &p->step) = (plan_step){i, 1};
		batch = next;
	}
	arena_free(keys);
}

plan *plan_build(arena *a, fuse_plan *groups, const c_kernel *const *code,
	const plan_options *o)
{
	plan *p = arena_make(a, plan);

	p->a = a;
	p->s = groups->s;
	p->target = o->target != NULL ? o->target : &c_gnu;
	find_roots(p, groups);
	make_launches(p, groups, code);
	split_units(p, o);
	write_units(p);
	plan_locate(p, o);
	return p;
}
