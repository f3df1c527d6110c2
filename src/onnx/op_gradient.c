/*
 * op_gradient.c: the operator Gradient of ai.onnx.preview.training: derivatives
 * of a value of the graph with respect to others, computed by calls of adjoints
 * (grad/).
 *
 *     c = a + b; Gradient(a, b : xs=[a,b] y=c)     ones, ones
 *
 * Walks the calls backwards from y; each value that depends on an x adds up the
 * cotangents from all its readers.
 */
#include "onnx/ops.h"

#include "grad/grad.h"

typedef struct back {
	node *d;
	int32_t n;	 /* number of values before the walk */
	bool *leads;	 /* (n) does the value depend on an x? */
	int32_t *cot;	 /* (n) cotangent so far, or -1 */
} back;

static void collect(back *b, int32_t v, int32_t g)
{
	node *d = b->d;

	b->cot[v] = b->cot[v] < 0 ? g : row(d, "add", A(b->cot[v], g));
}

/* The operands of the adjoint of call number `i`, in order. */
static const int32_t *operands(
	back *b, int32_t i, const grad_rule *r)
{
	int32_t *arg = arena_array(b->d->x->a, int32_t, r->n_operands + 1);

	for (int32_t k = 0; k < r->n_operands; k++) {
		const struct grad_operand *o = &r->operand[k];
		const ir_call *c = &b->d->x->p->call.at[i];

		if (o->from == GRAD_OPERAND)
			arg[k] = c->arg[o->i];
		else if (o->from == GRAD_RESULT)
			arg[k] = c->result[o->i];
		else
			arg[k] = b->cot[c->result[o->i]];
	}
	return arg;
}

static void step(back *b, int32_t i)
{
	onnx_import *x = b->d->x;
	const ir_call *c = &x->p->call.at[i];
	uint64_t wanted = 0, seeded = 0;
	const grad_rule *r;
	int32_t number;

	for (int32_t k = 0; k < c->n_args; k++)
		if (b->leads[c->arg[k]] && dtype_is_float(on_dt(b->d, c->arg[k])))
			wanted |= UINT64_C(1) << k;
	for (int32_t k = 0; k < c->n_results; k++)
		if (b->cot[c->result[k]] >= 0)
			seeded |= UINT64_C(1) << k;
	if (wanted == 0 || seeded == 0)
		return;
	r = grad_adjoint(x->a, x->p->table, c->inst, wanted, seeded);
	if (r == NULL)
		return;
	number = ir_program_inst(x->p, r->inst, r->n_operands,
		operands(b, i, r), NULL, (loc){.file = x->where});
	for (int32_t k = 0; k < r->n_results; k++)
		collect(b, x->p->call.at[i].arg[r->of_operand[k]],
			x->p->call.at[number].result[k]);
}

static int32_t named(node *d, const char *name)
{
	val v = on_named(d, name);

	if (v.kind != VAL_TENSOR)
		on_fail(d, "onnx.type", "\"%.100s\" is not a tensor", name);
	return v.v;
}

void onnx_gradient(node *d)
{
	int32_t n = on_n_texts(d, "xs"), y = named(d, on_text(d, "y", ""));
	int32_t n_calls = d->x->p->call.n;
	back b = {.d = d, .n = d->x->p->value.n};

	b.leads = arena_array(d->x->a, bool, b.n + 1);
	b.cot = arena_array(d->x->a, int32_t, b.n + 1);
	for (int32_t i = 0; i < b.n; i++)
		b.cot[i] = -1;
	for (int32_t i = 0; i < n; i++) {
		int32_t v = named(d, on_text_at(d, "xs", i));

		if (v != on_in(d, i))
			on_fail(d, "onnx.input", "derivatives at other values "
				"than the graph's own are not supported");
		b.leads[v] = true;
	}
	for (int32_t i = 0; i < n_calls; i++) {
		const ir_call *c = &d->x->p->call.at[i];
		bool leads = false;

		for (int32_t k = 0; k < c->n_args; k++)
			leads = leads || b.leads[c->arg[k]];
		for (int32_t k = 0; k < c->n_results && leads; k++)
			b.leads[c->result[k]] = true;
	}
	b.cot[y] = on_filled(d, on_dt(d, y), on_shape_of(d, y), 1);
	for (int32_t i = n_calls - 1; i >= 0; i--)
		step(&b, i);
	for (int32_t i = 0; i < n; i++) {
		int32_t v = on_in(d, i), g = b.cot[v];

		on_set(d, i, g >= 0 ? g
				    : on_filled(d, on_dt(d, v),
					      on_shape_of(d, v), 0));
	}
}
