/*
 * inst_grad.c: the grad block of a row on given shapes.
 *
 * Consumes an instance whose row has one; produces an instance of its
 * equations. They see operands x, results o and cotangents go by name, and
 * make cotangents gx of operands, which have the shapes of the operands.
 *
 *     sort: gx[a.., k[a.., n, b..], b..] += go[a.., n, b..]
 */
#include "ir/inst.h"

static void add_named(inst *u, const char *name, const ir_type *t,
	int32_t operand, int32_t result)
{
	map_set_str(u->by_name, name, u->tensor.n);
	*vec_push(u->a, &u->tensor) = (in_tensor){.name = name,
		.type = *t,
		.operand = operand,
		.result = result,
		.next_of = -1};
}

static void add_results(inst *u, const ir_inst *fwd)
{
	int32_t n = u->n_operands;

	for (int32_t pass = 0; pass < 2; pass++)
		for (int32_t i = 0; i < fwd->n_results; i++) {
			const in_tensor *t = &fwd->tensor[fwd->result[i]];
			const char *name = pass == 0
				? t->name
				: arena_printf(u->a, "g%s", t->name);

			add_named(u, name, &t->type,
				n + pass * fwd->n_results + i, -1);
		}
}

/* gx for every operand that the block makes one for. */
static int32_t add_gradients(
	inst *u, const ir_inst *fwd, int32_t *of_operand, int32_t *result)
{
	int32_t n = 0;

	for (int32_t i = 0; i < u->n_operands; i++) {
		const char *name = arena_printf(
			u->a, "g%s", u->tensor.at[i].name);
		bool made = false;

		for (int32_t k = 0; k < u->r->n_grads; k++)
			made |= u->r->grad[k].kind == STMT_EQN &&
				strcmp(u->r->grad[k].out[0], name) == 0;
		if (!made)
			continue;
		of_operand[n] = i;
		result[n] = u->tensor.n;
		add_named(u, name, &fwd->tensor[i].type, -1, n);
		n++;
	}
	return n;
}

/* A tensor that was declared first: its first equation begins it. */
static void begin_gradients(inst *u)
{
	for (int32_t i = 0; i < u->eqn.n; i++) {
		bool first = true;

		for (int32_t k = 0; k < i; k++)
			first = first &&
				u->eqn.at[k].out[0] != u->eqn.at[i].out[0];
		if (first)
			u->eqn.at[i].is_update = false;
	}
}

ir_inst *ir_instantiate_grad(
	arena *a, const ir_table *t, const ir_inst *fwd, int32_t **of_operand)
{
	const ir_row *r = fwd->row;
	inst *u = arena_make(a, inst);
	ir_inst *out = arena_make(a, ir_inst);
	ir_type *type = arena_array(a, ir_type, fwd->n_tensors + 1);
	int32_t *result = arena_array(a, int32_t, fwd->n_tensors + 1);
	int32_t before;

	(void)t;
	if (!r->has_grad)
		return NULL;
	*u = (inst){.a = a,
		.e = arena_env(a),
		.r = r,
		.operand = type,
		.word = map_new(a),
		.by_name = map_new(a),
		.left_name = ""};
	for (int32_t i = 0; i < fwd->n_tensors; i++)
		if (fwd->tensor[i].operand >= 0) {
			type[fwd->tensor[i].operand] = fwd->tensor[i].type;
			u->n_operands++;
		}
	inst_add_operands(u);
	inst_attrs(u, fwd->n_attrs, fwd->attr);
	inst_unify_operands(u);
	inst_prepare(u, r->n_stmts, r->stmt);
	before = u->tensor.n;
	if (r->is_opaque)
		inst_unify_results(u); /* binds the letters of their patterns */
	u->tensor.n = before;
	add_results(u, fwd);
	inst_prepare(u, r->n_grads, r->grad);
	*of_operand = arena_array(a, int32_t, fwd->n_tensors + 1);
	out->n_results = add_gradients(u, fwd, *of_operand, result);
	for (int32_t i = 0; i < r->n_grads; i++)
		if (r->grad[i].kind == STMT_EQN)
			inst_run_eqn(u, &r->grad[i]);
	begin_gradients(u);
	out->row = ir_row_named(a, arena_printf(a, "%s_grad", r->name));
	out->n_letters = u->letter.n;
	out->letter = u->letter.at;
	out->n_tensors = u->tensor.n;
	out->tensor = u->tensor.at;
	out->result = result;
	out->n_eqns = u->eqn.n;
	out->eqn = u->eqn.at;
	return out;
}
