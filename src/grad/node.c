/*
 * node.c: nodes of an adjoint.
 *
 * Small constructors; products with 1 and casts to the same dtype vanish.
 */
#include "grad/local.h"

const in_node *nd_int(adjoint *g, int64_t v)
{
	in_node *n = arena_make(g->a, in_node);

	*n = (in_node){.kind = IN_INT, .dtype = TN_I64, .i = v};
	return n;
}

const in_node *nd_real(adjoint *g, tn_dtype t, double v)
{
	in_node *n = arena_make(g->a, in_node);

	*n = (in_node){.kind = IN_REAL, .dtype = t, .f = v};
	return n;
}

const in_node *nd_index(
	adjoint *g, in_kind kind, const in_node *x, const in_node *y)
{
	in_node *n = arena_make(g->a, in_node);

	*n = (in_node){.kind = kind, .dtype = TN_I64, .arg = {x, y}};
	return n;
}

const in_node *nd_call(adjoint *g, const char *fn, tn_dtype t,
	const in_node *x, const in_node *y, const in_node *z)
{
	in_node *n = arena_make(g->a, in_node);

	*n = (in_node){.kind = IN_CALL,
		.dtype = t,
		.fn = ir_scalar_find(fn, strlen(fn)),
		.arg = {x, y, z}};
	return n;
}

static bool is_real(const in_node *n, double v)
{
	return (n->kind == IN_REAL && n->f == v) ||
	       (n->kind == IN_INT && (double)n->i == v);
}

const in_node *nd_mul(adjoint *g, const in_node *x, const in_node *y)
{
	if (is_real(y, 1))
		return x;
	if (is_real(x, 1) && y->dtype == x->dtype)
		return y;
	if (is_real(y, -1))
		return nd_call(g, "neg", x->dtype, x, NULL, NULL);
	return nd_call(g, "mul", x->dtype, x, y, NULL);
}

const in_node *nd_cast(adjoint *g, tn_dtype t, const in_node *x)
{
	in_node *n;

	if (x->dtype == t)
		return x;
	n = arena_make(g->a, in_node);
	*n = (in_node){.kind = IN_CAST, .dtype = t, .arg = {x}};
	return n;
}

const in_node *nd_where(adjoint *g, const in_node *c, const in_node *x,
	const in_node *y)
{
	in_node *n = arena_make(g->a, in_node);

	*n = (in_node){
		.kind = IN_WHERE, .dtype = x->dtype, .arg = {c, x, y}};
	return n;
}

const in_node *nd_read(adjoint *g, int32_t tensor, int32_t n_index,
	const in_node *const *at)
{
	in_node *n = arena_make(g->a, in_node);

	*n = (in_node){.kind = IN_READ,
		.dtype = g->tensor.at[tensor].type.dtype,
		.tensor = tensor,
		.n_index = n_index,
		.index = at};
	return n;
}

const in_node *nd_inside(adjoint *g, const in_node *read)
{
	in_node *n = arena_make(g->a, in_node);

	*n = (in_node){.kind = IN_INSIDE, .dtype = TN_BOOL, .arg = {read}};
	return n;
}

const in_node *nd_not(adjoint *g, const in_node *c)
{
	return nd_call(g, "not", TN_BOOL, c, NULL, NULL);
}

const in_node *nd_guarded(adjoint *g, const guards *w, const in_node *v)
{
	for (int32_t i = w->n - 1; i >= 0; i--)
		v = nd_where(g, w->at[i], v, nd_real(g, v->dtype, 0));
	return v;
}

const in_node *nd_shifted(
	adjoint *g, const in_node *n, int32_t letter, int64_t k)
{
	in_node *r;

	if (n == NULL)
		return NULL;
	if (n->kind == IN_LETTER && n->i == letter)
		return nd_index(g, IN_ADD, n, nd_int(g, k));
	r = arena_copy(g->a, n, sizeof *n);
	if (n->n_index > 0) {
		const in_node **at = arena_array(
			g->a, const in_node *, n->n_index);

		for (int32_t i = 0; i < n->n_index; i++)
			at[i] = nd_shifted(g, n->index[i], letter, k);
		r->index = at;
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		r->arg[i] = nd_shifted(g, n->arg[i], letter, k);
	return r;
}
