/*
 * step.c: one call of a compiled function as a program that runs by itself: a
 * step of training, above all.
 *
 *     f(x, y), which updates w   ->   program {
 *                                       x: f32[8,4]
 *                                       param w: f32[4,3]
 *                                       y: i64[8]
 *                                       ..
 *                                       return loss
 *                                     }
 *
 * It has the calls that an evaluation of the call has (value/program.c), on inputs
 * in the same order, and so the same plan; conditions and loops are loops of the
 * program (step_region.c). Tensors from outside are inputs, with
 * the elements that they have now.
 */
#include "func/report.h"

/* The inputs are numbers of this program: what would be one more is refused. */
static void refuse(const tensor_function *f, const variant *v)
{
	if (f->t->placed)
		t_refuse(f, "export.shard",
			"tensors of this context are on several processes, and "
			"a program by itself has no other processes: export "
			"from a context without a mesh");
	for (int32_t i = 0; i < v->trace->n_in; i++) {
		if (v->from[i].kind == FROM_STORAGE_OF)
			t_refuse(f, "export.overlap",
				"arguments share memory that is written: give "
				"it tensors of their own");
		if (v->from[i].kind == FROM_GRADIENT)
			t_refuse(f, "export.gradient",
				"it adds to gradients that were collected "
				"before the call: call tn_zero_grad or "
				"tn_optimizer_step before it");
	}
	for (int32_t i = 0; i < v->grad.n; i++)
		if (v->grad.at[i].out >= 0)
			t_refuse(f, "export.gradient",
				"it collects gradients and leaves them: use "
				"them in the function, with "
				"tn_optimizer_step");
}

static bool is_kept(const t_storage *s, int32_t n, tensor *const *kept)
{
	for (int32_t i = 0; i < n; i++)
		if (kept[i]->storage == s)
			return true;
	return false;
}

/* The present elements of operand i of the trace; NULL: the caller passes them. */
static t_value *present(const variant *v, int32_t i)
{
	if (v->from[i].kind == FROM_KNOWN)
		return v->from[i].s->cur;
	return v->from[i].kind == FROM_VALUE ? v->from[i].v : NULL;
}

/* The function may have been called: what it writes is evaluated first. */
static void read_inputs(arena *a, tensor_function *f, const variant *v,
	const tensor_kept *kept, tensor_step_input *in)
{
	tensors *t = f->t;

	for (int32_t i = 0; i < v->trace->n_in; i++) {
		const source *s = &v->from[i];
		t_value *now = present(v, i);
		void *copy;

		in[i].arg = s->kind == FROM_ARG ? s->arg : -1;
		in[i].is_key = s->kind == FROM_KEY;
		if (now == NULL)
			continue;
		t_flush(t, &now, 1);
		now = present(v, i);
		copy = arena_alloc(a, ir_type_bytes(&now->type) + 1, 1);
		t_fetch(t, now, copy);
		in[i].data = copy;
		in[i].is_kept = v->trace->next[i] >= 0 ||
			(s->kind == FROM_KNOWN &&
				is_kept(s->s, kept->n, kept->at));
		in[i].is_steady = now->buf->is_external &&
			!now->buf->is_lent && v->trace->next[i] < 0;
	}
}

static const char *const *names_of(arena *a, const variant *v, map *taken,
	const char *const *arg)
{
	const char **name =
		arena_array(a, const char *, v->trace->n_in + 1);

	for (int32_t i = 0; i < v->trace->n_in; i++) {
		const source *s = &v->from[i];

		name[i] = report_fresh(a, taken,
			s->kind == FROM_KEY ? "key"
			: s->kind == FROM_ARG && arg != NULL
				? arg[s->arg]
				: report_slot_name(a, v, i));
	}
	return name;
}

static void add_outputs(arena *a, const tensor_function *f, const variant *v,
	t_halves *h, map *taken, const char *const *name)
{
	for (int32_t i = 0; i < f->n_out; i++) {
		int32_t value = report_output(f, v, h, i);

		if (value >= h->forward)
			ir_program_rename(h->p, value,
				report_fresh(a, taken,
					name != NULL ? name[i]
						     : arena_printf(a, "y%d",
							       (int)i)));
		ir_program_output(h->p, value);
	}
}

void tensor_function_step(arena *a, tensor_function *f, tensor *const *in,
	const tensor_kept *kept, const tensor_step_names *names,
	ir_loop_run *run, tensor_step_program *out)
{
	const variant *v = variant_find(f, in);
	map *taken = map_new(a);
	t_halves h = {.f = v->trace, .put = step_put_region, .put_arg = &run};

	refuse(f, v);
	out->in = arena_array(a, tensor_step_input, v->trace->n_in + 1);
	read_inputs(a, f, v, kept, out->in);
	t_program_halves(f->t, a, &h, names_of(a, v, taken, names->in), NULL);
	add_outputs(a, f, v, &h, taken, names->out);
	for (int32_t i = 0; i < v->trace->n_in; i++)
		h.p->value.at[h.in[i]].steady = out->in[i].is_steady;
	out->p = h.p;
}
