/*
 * writable.c: may what a view shows be written?
 *
 * Consumes a view, or a call of a trace with the views of its operands; throws
 * [write.repeats] where a write would change an element that is seen twice. A
 * trace writes through the caller's view and its own, one on the other:
 *
 *     f(a): a[0].add_(1)        f(x[:, 0:2])   ->   write(x[:, 0:2][0], ..)
 *
 * The program's own check says which axis repeats, in words of the caller's:
 * the type of the view and the name of what it is a view of. Answers are kept
 * by the instances that the views are made of.
 */
#include "value/node.h"

enum { MAX_VIEWS = 64 };

typedef struct checking {
	tensors *t;
	arena *a;
	const char *name; /* of the tensor that is written; NULL: it has none */
	const t_view *view; /* of it */
	const t_trace *f; /* that is called; NULL: it is a write */
	const t_read *arg;
	int32_t operand;
	ir_program *p;
	int32_t n_inputs;
	int32_t depth; /* traces in traces */
} checking;

static int32_t input(checking *k, const ir_type *type)
{
	return ir_program_input(k->p,
		arena_printf(k->a, "x%d", (int)k->n_inputs++), *type,
		t_here(k->t));
}

/* w on top of a value of the program */
static int32_t seen(checking *k, int32_t v, const t_view *w)
{
	const t_view *up[MAX_VIEWS];
	int32_t n = 0;

	for (; w != NULL; w = w->parent) {
		if (n == MAX_VIEWS)
			env_fail(k->t->e, TN_EINVAL, "tensor.view",
				t_here(k->t),
				"a view of more than %d views cannot be "
				"written: use tn_copy", MAX_VIEWS);
		up[n++] = w;
	}
	while (n-- > 0) {
		const ir_inst *inst = up[n]->entry->inst;
		int32_t arg[1 + T_MAX_EXTRA] = {v};

		for (int32_t i = 0, at = 0; i < inst->n_tensors; i++)
			if (inst->tensor[i].operand > 0 && at < T_MAX_EXTRA)
				arg[++at] = input(k, &inst->tensor[i].type);
		v = ir_program_inst(
			k->p, inst, 1 + up[n]->n_extra, arg, NULL, t_here(k->t));
		v = k->p->call.at[v].result[0];
	}
	return v;
}

/* "the view f32[2,4] of bias" */
static const char *text_of(const checking *k, const ir_type *type)
{
	str s = str_new(k->a);

	str_printf(&s, "the view %s", dtype_name(type->dtype));
	str_shape(&s, type->shape, type->rank);
	str_printf(&s, " of %s", k->name != NULL ? k->name : "a tensor");
	if (k->f != NULL)
		str_printf(&s, ", operand %d of %s,", (int)k->operand,
			k->f->name != NULL ? k->f->name : "a function");
	return s.at;
}

static void write_to(checking *k, int32_t root, int32_t view)
{
	int32_t value = input(k, &k->p->value.at[view].type);

	k->p->value.at[root].name = k->name != NULL ? k->name : "its tensor";
	k->p->value.at[view].name = text_of(k, &k->p->value.at[view].type);
	ir_program_write(k->p, view, value, NULL, t_here(k->t));
}

static void add_view(tensors *t, const t_view *w)
{
	for (; w != NULL; w = w->parent)
		t_key_add(t, &w->entry->id, sizeof w->entry->id);
}

static bool is_known(const tensors *t)
{
	return map_get(t->writable, t->key.at, (size_t)t->key.n, 0) == 1;
}

static void write_through(checking *k, const ir_type *type, const t_view *w)
{
	int32_t root;

	k->p = ir_program_new(k->a, k->t->table);
	root = input(k, type);
	write_to(k, root, seen(k, root, w));
}

static void check_view(arena *a, void *arg)
{
	checking *k = arg;

	k->a = a;
	write_through(k, &k->arg->v->type, k->view);
}

void t_check_view(
	tensors *t, const t_value *v, const t_view *w, const char *name)
{
	const t_read of = {.v = (t_value *)(uintptr_t)v};
	checking k = {.t = t, .name = name, .view = w, .arg = &of};

	t->key.n = 0;
	add_view(t, w);
	if (is_known(t))
		return;
	arena_run(t->e, check_view, &k);
	t->key.n = 0;
	add_view(t, w);
	map_set(t->writable, t->key.at, (size_t)t->key.n, 1);
}

/* ---- calls of traces ---- */

static void check_writes(
	checking *k, const t_trace *f, int32_t operand, const t_view *w,
	const ir_type *type);

/* What call q of a trace writes through operand i, which w of the caller's is. */
static void check_call(checking *k, const t_call *q, int32_t i,
	const t_view *w, const ir_type *type)
{
	t_view *both;

	if (q->arg[i].view == NULL && w == NULL)
		return;
	both = t_view_on(k->t, (t_view *)(uintptr_t)w, q->arg[i].view);
	if (q->trace != NULL)
		check_writes(k, q->trace, i, both, type);
	else
		write_through(k, type, both);
	t_view_drop(k->t, both);
}

static void check_writes(
	checking *k, const t_trace *f, int32_t operand, const t_view *w,
	const ir_type *type)
{
	const t_value *v = f->in[operand];

	if (k->depth == MAX_VIEWS)
		return; /* more are refused when it is evaluated */
	k->depth++;
	if (t_is_region(f))
		write_through(k, type, w);
	for (int32_t q = 0; q < f->call.n; q++) {
		const t_call *c = f->call.at[q];

		for (int32_t i = 0; i < c->n_args; i++) {
			int32_t r = t_result_of_write(c, i);

			if (r < 0 || c->arg[i].v != v)
				continue;
			check_call(k, c, i, w, type);
			v = c->result[r];
			break;
		}
	}
	k->depth--;
}

static void key_of(tensors *t, const t_trace *f, int32_t i, const t_view *w)
{
	int32_t z[2] = {-1 - f->id, i};

	t->key.n = 0;
	t_key_add(t, z, sizeof z);
	add_view(t, w);
}

static void check_operand(arena *a, void *arg)
{
	checking *k = arg;
	const t_read *r = &k->arg[k->operand];

	k->a = a;
	check_writes(k, k->f, k->operand, r->view, &r->v->type);
}

void t_check_writes(tensors *t, const t_trace *f, const t_read *arg)
{
	for (int32_t i = 0; i < f->n_in; i++) {
		checking k = {.t = t, .f = f, .arg = arg, .operand = i};

		if (f->next[i] < 0 || arg[i].view == NULL)
			continue;
		key_of(t, f, i, arg[i].view);
		if (is_known(t))
			continue;
		arena_run(t->e, check_operand, &k);
		key_of(t, f, i, arg[i].view);
		map_set(t->writable, t->key.at, (size_t)t->key.n, 1);
	}
}
