/*
 * fuse.c: runs the passes of fusion.
 *
 * Consumes a system in pull form; produces a plan: kernels in topological
 * order, each with its loop tree, and a reason for every edge not fused.
 */
#include "fuse/inner.h"

fuse_settled *fuse_settle(arena *a, ir_system *s, const fuse_options *o)
{
	fuse_state *f = arena_make(a, fuse_state);

	f->a = a;
	f->env = arena_env(a);
	f->s = s;
	f->scratch = arena_make(a, arena *);
	f->mutate = o == NULL ? 0 : o->mutate;
	fuse_prepare(f, o == NULL ? NULL : &o->settle);
	return f;
}

static void print_source(str *out, const fuse_settled *f, int32_t source)
{
	const sys_eqn *e = &f->s->eqn.at[source];

	str_printf(out, "%s #%d:", e->label != NULL ? e->label : "_",
		(int)e->call);
	for (int32_t k = 0; k < e->n_out; k++)
		str_printf(out, "%s %s", k > 0 ? "," : "",
			f->s->tensor.at[e->out[k]].name);
}

void fuse_print_settled(str *out, const fuse_settled *f)
{
	for (int32_t i = 0; i < f->n_order; i++) {
		print_source(out, f, f->order[i]);
		str_addc(out, '\n');
		for (int32_t k = 0; k < f->w->wait.n; k++) {
			const settle_wait *q = &f->w->wait.at[k];

			if (q->writer != f->order[i])
				continue;
			str_add(out, "  waits for ");
			print_source(out, f, q->reader);
			str_printf(out, ", which reads %s\n",
				f->s->tensor.at[q->tensor].name);
		}
	}
	for (int32_t t = 0; t < f->s->tensor.n; t++)
		if (f->alias[t] >= 0)
			str_printf(out, "%s has the elements of %s\n",
				f->s->tensor.at[t].name,
				f->s->tensor.at[f->alias[t]].name);
}

fuse_plan *fuse_partition_settled(
	fuse_settled *f, const machine *m, const fuse_options *o)
{
	fuse_plan *p = arena_make(f->a, fuse_plan);
	ir_system *s = f->s;
	bool alone = o != NULL && o->no_fusion;
	fuse_groups *g;

	f->t = m != NULL ? m : machine_at(0);
	f->price = o == NULL ? NULL : o->price;
	p->s = s;
	p->machine = f->t;
	fuse_apart_new(f, o);
	f->memo = arena_make(f->a, fuse_memo);
	f->memo->a = arena_child(f->a);
	f->work = &p->work;
	for (int32_t i = 0; i < f->w->wait.n; i++)
		*vec_push(f->a, &p->wait) = f->w->wait.at[i];
	g = fuse_choose(f, alone, p);
	fuse_finish(f, g, p, !alone);
	p->n_alias = s->tensor.n;
	p->alias = arena_array(f->a, int32_t, s->tensor.n + 1);
	for (int32_t i = 0; i < s->tensor.n; i++)
		p->alias[i] = f->alias[i];
	arena_free(f->memo->a);
	f->memo = NULL;
	arena_free(*f->scratch);
	*f->scratch = NULL;
	return p;
}

fuse_plan *fuse_partition(
	arena *a, ir_system *s, const machine *m, const fuse_options *o)
{
	return fuse_partition_settled(fuse_settle(a, s, o), m, o);
}
