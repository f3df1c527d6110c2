/*
 * inst_grad.c: instantiates the grad block of a row for a call.
 *
 * Consumes the instance of the call; unifies its row again and evaluates the
 * block's equations, which compute cotangents of operands from operands,
 * results and cotangents of results. The types of the cotangents of operands
 * are known before, so left sides may contain data.
 *
 *     sort ... grad { gx[a.., k[a.., n, b..], b..] += go[a.., n, b..] }
 *     ->  operands x, o, k, go, gk; result gx
 */
#include "notation/inst.h"

static int32_t add(inst *u, const char *name, const ir_type *type,
	int32_t operand, int32_t result)
{
	map_set_str(u->by_name, name, u->tensor.n);
	*vec_push(u->a, &u->tensor) = (in_tensor){.name = name,
		.type = *type,
		.operand = operand,
		.result = result,
		.next_of = -1};
	return u->tensor.n - 1;
}

/* Makes the first equation that adds to gx initialise it. */
static void begin_sums(inst *u, int32_t first)
{
	for (int32_t t = first; t < u->tensor.n; t++)
		for (int32_t i = 0; i < u->eqn.n; i++)
			if (u->eqn.at[i].out[0] == t &&
				u->tensor.at[t].result >= 0) {
				u->eqn.at[i].is_update = false;
				break;
			}
}

/*
 * Does the statement compute gx of an integer operand, which has no gradient?
 */
static bool is_of_integer(const inst *u, int32_t n, const row_stmt *s)
{
	for (int32_t i = 0; s->kind == STMT_EQN && i < n; i++)
		if (!dtype_is_float(u->tensor.at[i].type.dtype) &&
			s->out[0][0] == 'g' &&
			strcmp(s->out[0] + 1, u->tensor.at[i].name) == 0)
			return true;
	return false;
}

ir_inst *ir_instantiate_grad(
	arena *a, const ir_inst *fwd, const int32_t **of)
{
	const ir_row *r = fwd->row;
	ir_type *type = arena_array(a, ir_type, fwd->n_tensors + 1);
	int32_t *operand = arena_array(a, int32_t, r->n_operands + 1);
	int32_t *result = arena_array(a, int32_t, r->n_operands + 1);
	ir_inst *out;
	inst *u;
	int32_t n = 0, m = 0;

	if (!r->has_grad)
		return NULL;
	for (int32_t i = 0; i < fwd->n_tensors; i++)
		if (fwd->tensor[i].operand >= 0)
			type[n++] = fwd->tensor[i].type;
	u = inst_begin(a, r, n, type, NULL, fwd->n_attrs, fwd->attr,
		(loc){0});
	if (r->is_opaque) { /* patterns of results bind letters, too */
		inst_unify_results(u);
		u->tensor.n = n;
	}
	for (int32_t pass = 0; pass < 2; pass++)
		for (int32_t i = 0; i < fwd->n_results; i++) {
			const in_tensor *t = &fwd->tensor[fwd->result[i]];

			add(u, pass == 0 ? t->name
					 : arena_printf(a, "g%s", t->name),
				&t->type, n + pass * fwd->n_results + i, -1);
		}
	for (int32_t i = 0; i < n; i++) {
		if (!dtype_is_float(type[i].dtype))
			continue;
		operand[m] = i;
		result[m] = add(u, arena_printf(a, "g%s", u->tensor.at[i].name),
			&type[i], -1, m);
		m++;
	}
	inst_prepare(u, r->n_grads, r->grad);
	for (int32_t i = 0; i < r->n_grads; i++)
		if (!is_of_integer(u, n, &r->grad[i]))
			inst_eqns(u, 1, &r->grad[i]);
	begin_sums(u, n + 2 * fwd->n_results);
	out = arena_make(a, ir_inst);
	*out = (ir_inst){.row = r,
		.n_letters = u->letter.n,
		.letter = u->letter.at,
		.n_tensors = u->tensor.n,
		.tensor = u->tensor.at,
		.n_results = m,
		.result = result,
		.n_eqns = u->eqn.n,
		.eqn = u->eqn.at};
	*of = operand;
	return out;
}
