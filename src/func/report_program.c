/*
 * report_program.c: a compiled function with its backward as one program: what
 * is run when gradients are asked for, in the order in which it runs.
 *
 *     program {
 *       x: f32[4]
 *       // forward
 *       v0 = exp(x)
 *       // kept for the backward, 0 bytes besides inputs and outputs:
 *       //   v0: f32[4], an output
 *       // cotangents of what it gives
 *       d_out0: f32[4]
 *       // backward
 *       d_x = exp_grad(v0, d_out0)
 *       return v0, d_x
 *     }
 *
 * It parses, so that it can be run, checked and explained like any other.
 */
#include "func/report.h"

typedef struct writer {
	tensors *t;
	const tensor_function *f;
	const variant *v;
	arena *a;
	map *taken; /* names */
	t_halves h;
} writer;

/* ---- names ---- */

static const char *fresh(writer *w, const char *from)
{
	return report_fresh(w->a, w->taken, from);
}

static const char *const *names_of_inputs(writer *w, naming *m)
{
	const t_trace *f = w->h.f;
	const char **name = arena_array(w->a, const char *, f->n_in + 1);

	for (int32_t i = 0; i < f->n_in; i++)
		name[i] = fresh(w, report_name(m, f->in[i]));
	return name;
}

/*
 * Of the cotangent of a result: by the number of the output, or by the name of
 * the operand whose next version it is. Results have no names themselves.
 */
static const char *name_of_seed(
	writer *w, const char *const *operand, int32_t result)
{
	const t_trace *f = w->h.f;

	for (int32_t i = 0; i < w->f->n_out; i++)
		if (w->v->out[i].from.kind == FROM_BODY &&
			w->v->out[i].out == result)
			return arena_printf(w->a, "d_out%d", (int)i);
	for (int32_t i = 0; i < f->n_in; i++)
		if (f->next[i] == result)
			return arena_printf(w->a, "d_new_%s", operand[i]);
	return "d_middle";
}

static const char *const *names_of_seeds(
	writer *w, const char *const *operand)
{
	const t_trace *g = w->h.b != NULL ? w->h.b->trace : NULL;
	const char **name;

	if (g == NULL)
		return NULL;
	name = arena_array(w->a, const char *, g->n_in + 1);
	for (int32_t k = 0; k < g->n_in; k++)
		if (w->h.b->from_seed[k] >= 0)
			name[k] = fresh(w, name_of_seed(w, operand,
						   w->h.b->from_seed[k]));
	return name;
}

/* ---- the program ---- */

static void refuse_regions(const writer *w, const t_trace *f)
{
	if (f->kind != REGION_NONE)
		env_fail(w->t->e, TN_EINVAL, "compile.program", (loc){0},
			"%s has a condition, a loop or a function in C, "
			"which no single program can say", w->f->name);
	for (int32_t k = 0; k < f->call.n; k++)
		if (f->call.at[k]->trace != NULL)
			refuse_regions(w, f->call.at[k]->trace);
}

static void add_returns(writer *w)
{
	const t_back *b = w->h.b;

	for (int32_t i = 0; i < w->f->n_out; i++)
		ir_program_output(
			w->h.p, report_output(w->f, w->v, &w->h, i));
	for (int32_t i = 0; b != NULL && i < b->trace->n_out; i++) {
		const char *of = w->h.p->value.at[w->h.in[b->of_in[i]]].name;
		int32_t value = w->h.grad[i];

		if (value >= w->h.backward)
			ir_program_rename(w->h.p, value,
				fresh(w, arena_printf(w->a, "d_%s", of)));
		ir_program_output(w->h.p, value);
	}
}

/* ---- comments ---- */

static const char *place_of(const middle *x)
{
	switch (x->fate) {
	case FATE_SLOT:
		return "as an input has it";
	case FATE_FRESH:
		return "an output";
	case FATE_SAVED:
		return "a version that is written over later";
	case FATE_OWN:
		break;
	}
	return "for the backward alone";
}

static void note_kept(const writer *w, str *out)
{
	const t_back *b = w->h.b;
	str list = str_new(w->a);
	size_t bytes = 0;
	middle x;

	for (int32_t k = 0; k < b->trace->n_in; k++) {
		const ir_value *v = &w->h.p->value.at[w->h.read[k]];

		if (!report_middle(w->v, k, &x))
			continue;
		bytes += x.bytes;
		str_printf(&list, "  //   %s: %s", v->name,
			dtype_name(v->type.dtype));
		str_shape(&list, v->type.shape, v->type.rank);
		str_printf(&list, ", %zu bytes: %s\n", x.bytes, place_of(&x));
	}
	str_printf(out, "  // kept for the backward, %zu bytes%s\n", bytes,
		list.n > 0 ? ":" : "");
	if (list.n > 0)
		str_add(out, list.at);
}

static void note(void *arg, str *out, int32_t value)
{
	const writer *w = arg;
	const t_halves *h = &w->h;

	if (value == h->forward && h->seed > h->forward)
		str_add(out, "  // forward\n");
	if (h->b == NULL)
		return;
	if (value == h->seed)
		note_kept(w, out);
	if (value == h->seed && h->again > h->seed)
		str_add(out, "  // cotangents of what it gives\n");
	if (value == h->again && h->backward > h->again)
		str_add(out, "  // made again, as keeping it would cost more\n");
	if (value == h->backward)
		str_add(out, "  // backward\n");
}

static void print(arena *a, const tensor_function *f, str *out)
{
	const variant *v = f->variant.at[f->variant.n - 1];
	writer w = {.t = f->t, .f = f, .v = v, .a = a, .taken = map_new(a)};
	naming *m = report_names(a, f->t, v);
	const char *const *seeds;
	const char *const *names;

	w.h.b = report_back(v);
	w.h.f = w.h.b != NULL ? v->trace->tracked : v->trace;
	refuse_regions(&w, w.h.f);
	names = names_of_inputs(&w, m);
	seeds = names_of_seeds(&w, names);
	t_program_halves(f->t, a, &w.h, names, seeds);
	add_returns(&w);
	if (w.h.b == NULL)
		str_add(out, "// nothing in it has a gradient\n");
	ir_program_print_notes(out, w.h.p, note, &w);
}

void tensor_function_program(str *out, const tensor_function *f)
{
	arena *a;

	if (f->variant.n == 0)
		env_fail(f->t->e, TN_EINVAL, "compile.program", (loc){0},
			"%s was not called yet: it is recorded by its first "
			"call", f->name);
	a = arena_child(f->t->a);
	print(a, f, out);
	arena_free(a);
}
