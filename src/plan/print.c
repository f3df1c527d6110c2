/*
 * print.c: prints a plan as text or JSON.
 *
 *     step 0: fn_add_0_reduce_sum_1  out <- x, y   1 phase, 128 chunks
 *     slab 4096 bytes (without sharing 12288): t @0 64 bytes, steps 0-1
 */
#include "plan/private.h"

static void add_names(str *out, const plan *p, const int32_t *t, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		str_printf(out, "%s%s", i ? ", " : "",
			p->s->tensor.at[t[i]].name);
}

static void print_launch(str *out, const plan *p, const plan_launch *l)
{
	int32_t n = plan_n_outputs(l);

	str_add(out, "  ");
	add_names(out, p, l->tensor, n);
	str_printf(out, " <- %s(", l->source->name);
	add_names(out, p, l->tensor + n, l->n_params - n);
	str_add(out, ")");
	if (l->kernel < 0) {
		str_printf(out, "  opaque: %s\n", l->eqn->opaque->name);
		return;
	}
	{
		const c_kernel *k = l->code;

		str_printf(out, "  function %d%s, chunks", (int)l->kernel,
			l->serial ? ", serial" : "");
		for (int32_t i = 0; i < k->n_phases; i++)
			str_printf(out, " %lld",
				(long long)k->phase[i].n_chunks);
		str_printf(out, ", %lld bytes, %lld flops\n",
			(long long)k->bytes, (long long)k->flops);
	}
}

/* Prints the copies that writes in place need. */
static void print_kept(str *out, const plan *p)
{
	for (int32_t i = 0; i < p->launch.n; i++) {
		const fuse_kernel *k = p->launch.at[i].source;

		for (int32_t j = 0; j < k->n_eqns; j++) {
			const sys_eqn *e = &k->eqn[j].e;
			const sys_tensor *t;

			if (e->why == NULL)
				continue;
			t = &p->s->tensor.at[e->out[0]];
			str_printf(out, "copied: %s, %lld bytes: %s\n",
				t->name,
				(long long)t->numel *
					(long long)dtype_size(t->dtype),
				e->why);
		}
	}
}

static void print_text(str *out, const plan *p)
{
	str_printf(out, "%d launches in %d steps, %d functions in %d files\n",
		(int)p->launch.n, (int)p->step.n, (int)p->kernel.n,
		(int)p->unit.n);
	for (int32_t s = 0; s < p->step.n; s++) {
		const plan_step *step = &p->step.at[s];

		str_printf(out, "step %d:%s\n", (int)s,
			step->n > 1 ? " at the same time" : "");
		for (int32_t i = 0; i < step->n; i++)
			print_launch(out, p, &p->launch.at[step->first + i]);
	}
	print_kept(out, p);
	for (int32_t i = 0; i < p->copy.n; i++)
		str_printf(out, "copy %s to output %s\n",
			p->s->tensor.at[p->copy.at[i].tensor].name,
			p->s->tensor
				.at[p->s->output.at[p->copy.at[i].number]]
				.name);
	str_printf(out,
		"slab: %zu bytes of tensors (%zu without sharing), %zu of "
		"scratch, %zu for each thread\n",
		p->tensor_bytes, p->sum_bytes, p->scratch_bytes,
		p->local_bytes);
	if (p->kept_bytes > 0)
		str_printf(out,
			"kept from run to run: %zu bytes of copies\n",
			p->kept_bytes);
	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		const plan_location *at = &p->location[t];

		if (at->where == PLAN_SLAB)
			str_printf(out, "  %s @ %zu, %zu bytes, steps %d-%d\n",
				p->s->tensor.at[t].name, at->offset, at->bytes,
				(int)at->first, (int)at->last);
	}
}

static void json_names(str *out, const plan *p, const int32_t *t, int32_t n)
{
	str_addc(out, '[');
	for (int32_t i = 0; i < n; i++) {
		str_add(out, i ? "," : "");
		str_json(out, p->s->tensor.at[t[i]].name);
	}
	str_addc(out, ']');
}

static void json_launch(str *out, const plan *p, int32_t step, int32_t i)
{
	const plan_launch *l = &p->launch.at[i];
	int32_t n = plan_n_outputs(l);

	str_printf(out, "{\"step\":%d,\"kernel\":", (int)step);
	str_json(out, l->source->name);
	str_printf(out, ",\"function\":%d,\"outputs\":", (int)l->kernel);
	json_names(out, p, l->tensor, n);
	str_add(out, ",\"inputs\":");
	json_names(out, p, l->tensor + n, l->n_params - n);
	str_printf(out, ",\"serial\":%s,\"chunks\":[",
		l->serial ? "true" : "false");
	if (l->kernel >= 0) {
		const c_kernel *k = l->code;

		for (int32_t f = 0; f < k->n_phases; f++)
			str_printf(out, "%s%lld", f ? "," : "",
				(long long)k->phase[f].n_chunks);
		str_printf(out, "],\"bytes\":%lld,\"flops\":%lld}",
			(long long)k->bytes, (long long)k->flops);
	} else {
		str_add(out, "]}");
	}
}

static void print_json(str *out, const plan *p)
{
	bool first = true;

	str_add(out, "{\"launches\":[");
	for (int32_t s = 0; s < p->step.n; s++)
		for (int32_t i = 0; i < p->step.at[s].n; i++) {
			str_add(out, s || i ? "," : "");
			json_launch(out, p, s, p->step.at[s].first + i);
		}
	str_printf(out,
		"],\"functions\":%d,\"files\":%d,\"slab_bytes\":%zu,"
		"\"unshared_bytes\":%zu,\"scratch_bytes\":%zu,"
		"\"local_bytes\":%zu,\"kept_bytes\":%zu,\"buffers\":[",
		(int)p->kernel.n, (int)p->unit.n, p->tensor_bytes,
		p->sum_bytes, p->scratch_bytes, p->local_bytes, p->kept_bytes);
	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		const plan_location *at = &p->location[t];

		if (at->where != PLAN_SLAB)
			continue;
		str_add(out, first ? "{\"name\":" : ",{\"name\":");
		str_json(out, p->s->tensor.at[t].name);
		str_printf(out,
			",\"offset\":%zu,\"bytes\":%zu,\"first\":%d,"
			"\"last\":%d}",
			at->offset, at->bytes, (int)at->first, (int)at->last);
		first = false;
	}
	str_add(out, "]}\n");
}

void plan_print(str *out, const plan *p, bool json)
{
	if (json)
		print_json(out, p);
	else
		print_text(out, p);
}
