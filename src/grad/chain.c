/*
 * chain.c: down the tree of one body.
 *
 * Consumes a body's node and the cotangent of its value; adds to the
 * cotangent of each tensor that is read in value position. A scalar function
 * multiplies by its derivative (scalar.def, as text); a choice becomes a
 * guard, never a factor, so that what is not taken is not evaluated either.
 *
 *     c * d(x * y)   ->   x gets c * y, y gets c * x
 *     c * d(x where g else 0)   ->   x gets (c where g else 0)
 */
#include "grad/local.h"

bool chain_reaches(const adjoint *g, const in_node *n)
{
	if (n == NULL || n->kind == IN_STOP || n->kind == IN_INSIDE ||
		!dtype_is_float(n->dtype))
		return false;
	if (n->kind == IN_READ)
		return g->has_grad[n->tensor];
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if (chain_reaches(g, n->arg[i]))
			return true;
	return false;
}

/* ---- derivatives of scalar functions ---- */

/* Is the call what the equation's result is, or what it is where guards hold, as they do
 * where the derivative is needed? */
static bool is_result(const in_eqn *q, const in_node *call)
{
	const in_node *b = q->body[0];

	while (b != call && b->kind == IN_WHERE)
		b = b->arg[1];
	return b == call && q->monoid == IR_SET && !q->is_update;
}

/* The text's tree with x, y, z, o replaced: by the arguments, the call. */
static const in_node *filled(adjoint *g, const in_eqn *q, const in_node *call,
	const in_node *n)
{
	in_node *r;

	if (n == NULL)
		return NULL;
	if (n->kind == IN_READ && n->tensor < IR_MAX_ARGS)
		return nd_again(g, q, call->arg[n->tensor]);
	if (n->kind == IN_READ && is_result(q, call)) {
		const in_node **at = arena_array(
			g->a, const in_node *, q->n_left + 1);

		/* the result is there: neither computed again nor its
		 * argument kept */
		for (int32_t i = 0; i < q->n_left; i++)
			at[i] = nd_again(g, q, q->left[i]);
		return nd_read(g, adj_value(g, q->out[0]), q->n_left, at);
	}
	if (n->kind == IN_READ)
		return nd_again(g, q, call);
	r = arena_copy(g->a, n, sizeof *n);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		r->arg[i] = filled(g, q, call, n->arg[i]);
	return r;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= '0' && c <= '9') || c == '.';
}

/* The text with x, y, z, o as reads of rank 0: x[]. */
static void add_reads(str *s, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		bool alone = (p == text || !is_word(p[-1])) && !is_word(p[1]);

		str_addc(s, *p);
		if (alone && strchr("xyzo", *p) != NULL)
			str_add(s, "[]");
	}
}

static const in_node *derivative(adjoint *g, const in_eqn *q,
	const in_node *call, int32_t k)
{
	static const char *const names = "xyzo";
	const ir_scalar *f = ir_scalar_at(call->fn);
	ir_type type[IR_MAX_ARGS + 1];
	const ir_inst *inst;
	str s = str_new(g->a);

	str_add(&s, "derivative(");
	for (int32_t i = 0; i <= IR_MAX_ARGS; i++) {
		str_printf(&s, "%s%c[]:float", i > 0 ? ", " : "", names[i]);
		type[i] = (ir_type){.dtype = call->dtype};
	}
	str_add(&s, ") -> r { r[] = ");
	add_reads(&s, f->d[k]);
	str_add(&s, " }");
	inst = ir_instantiate(g->a, g->table,
		ir_row_make(g->a, s.at, s.n, (loc){0}), IR_MAX_ARGS + 1, type,
		NULL, 0, NULL, (loc){0});
	return filled(g, q, call, inst->eqn[0].body[0]);
}

static bool is_zero(const in_node *n)
{
	return (n->kind == IN_REAL && n->f == 0) ||
	       (n->kind == IN_INT && n->i == 0);
}

/* ---- guards ---- */

static void hold(adjoint *g, guards *w, const in_node *c)
{
	if (w->n == (int32_t)(sizeof w->at / sizeof w->at[0]))
		env_fail(g->e, TN_EINVAL, "grad.depth", (loc){0},
			"%s: conditions are nested more than %d deep",
			ir_row_name(g->fwd->row), w->n);
	w->at[w->n++] = c;
}

/* Every read below n that an `else` around it asks about. */
static const in_node *all_inside(adjoint *g, const in_eqn *q,
	const in_node *n, const in_node *so_far)
{
	if (n == NULL || n->kind == IN_ELSE || n->kind == IN_INSIDE)
		return so_far;
	for (int32_t i = 0; i < n->n_index; i++)
		so_far = all_inside(g, q, n->index[i], so_far);
	if (n->kind == IN_READ) {
		const in_node *c = nd_inside(g, nd_again(g, q, n));

		return so_far == NULL
			? c
			: nd_call(g, "and", TN_BOOL, so_far, c, NULL);
	}
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		so_far = all_inside(g, q, n->arg[i], so_far);
	return so_far;
}

/* ---- going down ---- */

/* The dtype that a factor is stored in, if it has two bytes, and is multiplied as another
 * float; else that of the factor. */
static tn_dtype stored_as(const in_node *n)
{
	tn_dtype t = n->kind == IN_CAST ? n->arg[0]->dtype : n->dtype;

	return n->kind == IN_CAST && n->arg[0]->kind == IN_READ &&
			       dtype_is_float(t) && dtype_size(t) == 2
		       ? t
		       : n->dtype;
}

/*
 * The cotangent of a term of a sum of products. If both factors are stored in two bytes,
 * so is it, as if the sum were: gradients are sums of products of such factors, too.
 */
static const in_node *of_term(adjoint *g, const in_eqn *q, const in_node *n,
	const in_node *c)
{
	const ir_scalar *f = ir_scalar_at(n->fn);
	tn_dtype t;

	/* of a product, each factor is the derivative by the other */
	if (q->monoid != IR_SUM || f->n_args != 2 || strcmp(f->d[0], "y") != 0 ||
		strcmp(f->d[1], "x") != 0)
		return c;
	t = stored_as(n->arg[0]);
	return stored_as(n->arg[1]) == t ? nd_cast(g, n->dtype, nd_cast(g, t, c)) : c;
}

static void down_call(adjoint *g, const in_eqn *q, const in_node *n,
	const in_node *c, const guards *w)
{
	const ir_scalar *f = ir_scalar_at(n->fn);
	bool is_choice = strcmp(f->sig, "B,T,T>T") == 0;

	c = of_term(g, q, n, c);
	for (int32_t k = 0; k < f->n_args; k++) {
		const in_node *d;

		if (!chain_reaches(g, n->arg[k]))
			continue;
		if (is_choice) {
			const in_node *take = nd_again(g, q, n->arg[0]);
			guards v = *w;

			hold(g, &v, k == 1 ? take : nd_not(g, take));
			chain_down(g, q, n->arg[k], c, v);
			continue;
		}
		if (f->d[k][0] == '\0')
			continue;
		d = derivative(g, q, n, k);
		if (!is_zero(d))
			chain_down(g, q, n->arg[k], nd_mul(g, c, d), *w);
	}
}

static void down_read(adjoint *g, const in_eqn *q, const in_node *n,
	const in_node *c, const guards *w)
{
	const ir_type *t = &g->fwd->tensor[n->tensor].type;
	const in_node **left =
		arena_array(g->a, const in_node *, t->rank + 1);
	const in_node *flat;
	int64_t stride = 1;

	if (!g->has_grad[n->tensor])
		return;
	flat = n->flat ? nd_again(g, q, n->index[0]) : NULL;
	for (int32_t i = t->rank - 1; i >= 0; i--) {
		if (!n->flat) {
			left[i] = nd_again(g, q, n->index[i]);
			continue;
		}
		left[i] = nd_index(g, IN_DIV, flat, nd_int(g, stride));
		if (i > 0)
			left[i] = nd_index(g, IN_MOD, left[i],
				nd_int(g, t->shape[i] > 0 ? t->shape[i] : 1));
		stride *= t->shape[i] > 0 ? t->shape[i] : 1;
	}
	c = nd_cast(g, t->dtype, c);
	if (q->is_scan && n->tensor == q->out[0]) {
		if (g->scan.on)
			adj_self(g, q, n->index, nd_guarded(g, w, c));
	} else {
		adj_add(g, q, n->tensor, left, w->n > 0,
			nd_guarded(g, w, ir_term(c, t->dtype)));
	}
}

/* The inner cast, if n is one back to the dtype of what it rounds: adjoints are not rounded
 * then, and sums of products stay such. Else n. */
static const in_node *rounded(const in_node *n)
{
	const in_node *in = n->arg[0];

	return in->kind == IN_CAST && dtype_is_float(n->dtype) && dtype_is_float(in->dtype) &&
			       in->arg[0]->dtype == n->dtype
		       ? in
		       : n;
}

void chain_down(adjoint *g, const in_eqn *q, const in_node *n,
	const in_node *c, guards w)
{
	const in_node *cond;
	guards other = w;

	if (!chain_reaches(g, n))
		return;
	switch (n->kind) {
	case IN_READ:
		down_read(g, q, n, c, &w);
		break;
	case IN_CALL:
		down_call(g, q, n, c, &w);
		break;
	case IN_WHERE:
		cond = nd_again(g, q, n->arg[0]);
		hold(g, &w, cond);
		chain_down(g, q, n->arg[1], c, w);
		hold(g, &other, nd_not(g, cond));
		chain_down(g, q, n->arg[2], c, other);
		break;
	case IN_ELSE:
		cond = all_inside(g, q, n->arg[0], NULL);
		if (cond == NULL) {
			chain_down(g, q, n->arg[0], c, w);
			break;
		}
		hold(g, &w, cond);
		chain_down(g, q, n->arg[0], c, w);
		hold(g, &other, nd_not(g, cond));
		chain_down(g, q, n->arg[1], c, other);
		break;
	case IN_CAST:
		n = rounded(n);
		chain_down(g, q, n->arg[0],
			nd_cast(g, n->arg[0]->dtype, c), w);
		break;
	case IN_INT:
	case IN_REAL:
	case IN_LETTER:
	case IN_ADD:
	case IN_SUB:
	case IN_MUL:
	case IN_DIV:
	case IN_MOD:
	case IN_CLAMP:
	case IN_POS:
	case IN_INSIDE:
	case IN_STOP:
		break; /* nothing that has a gradient */
	}
}
