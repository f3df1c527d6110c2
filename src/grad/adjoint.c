/*
 * adjoint.c: the equations of an instance, backwards.
 *
 * Consumes an instance; walks its equations from the last to the first, and
 * for each says what its operator passes on (docs/gradients.md): sums pass the
 * cotangent, maxima share it among ties, products leave one factor out, scans
 * run the other way.
 *
 * Derived twice: the first time says which operands, results and cotangents
 * are read at all.
 */
#include "grad/local.h"

/* ---- cotangents ---- */

/* Cotangent of what q makes, at its left side; NULL: nothing comes. */
static const in_node *arriving(adjoint *g, const in_eqn *q, int32_t comp)
{
	int32_t t = q->out[comp];
	int32_t from = g->cotangent[t] >= 0 ? g->cotangent[t] : g->seed[t];
	const in_node **at = arena_array(
		g->a, const in_node *, q->n_left + 1);

	if (from < 0)
		return NULL;
	if (from == g->seed[t])
		g->used[from] = true;
	for (int32_t i = 0; i < q->n_left; i++)
		at[i] = nd_again(g, q, q->left[i]);
	return nd_read(g, from, q->n_left, at);
}

static _Noreturn void none(const adjoint *g, const char *why)
{
	env_fail(g->e, TN_EINVAL, "grad.none", (loc){0},
		"%s has no gradient: %s", ir_row_name(g->fwd->row), why);
}

/* ---- what operators pass on ---- */

/* Its own place in the sum over q's letters: same letters, same left side. */
static int32_t helper(adjoint *g, const in_eqn *q, const char *prefix,
	tn_dtype dtype, int32_t monoid, const in_node *body)
{
	const in_tensor *y = &g->fwd->tensor[q->out[0]];
	int32_t out = adj_tensor(
		g, adj_named(g, prefix, q->out[0]), &y->type, dtype);
	const in_node **at = arena_array(
		g->a, const in_node *, q->n_left + 1);
	in_eqn r;

	for (int32_t i = 0; i < q->n_left; i++)
		at[i] = nd_again(g, q, q->left[i]);
	r = adj_new_eqn(out, monoid, q->n_left, at, body);
	r.skip = q->skip;
	adj_set_letters(g, q, &r);
	adj_eqn(g, &r);
	return out;
}

/* Is b the constant that a maximum (minimum) begins with? */
static bool is_identity(const in_eqn *q, const in_node *b)
{
	while (b->kind == IN_CAST)
		b = b->arg[0];
	return b->kind == IN_REAL &&
		b->f == text_f64(ir_monoid_at(q->monoid)->identity[0], NULL);
}

/* count for each element that b adds to the reduction: for none where a
 * condition gives the identity */
static const in_node *counted(adjoint *g, const in_eqn *q, const in_node *b,
	const in_node *count)
{
	while (b->kind == IN_CAST)
		b = b->arg[0];
	if (b->kind != IN_WHERE || !is_identity(q, b->arg[2]))
		return count;
	return nd_where(g, nd_again(g, q, b->arg[0]),
		counted(g, q, b->arg[1], count),
		nd_real(g, g->fwd->tensor[q->out[0]].type.dtype, 0));
}

static void through_extreme(
	adjoint *g, const in_eqn *q, const in_node *c, guards w)
{
	tn_dtype t = g->fwd->tensor[q->out[0]].type.dtype;
	const in_node *b = nd_again(g, q, q->body[0]);
	const in_node *hit = nd_call(g, "eq", TN_BOOL, nd_cast(g, t, b),
		adj_at_left(g, q, adj_value(g, q->out[0])), NULL);
	int32_t ties = helper(g, q, "ties_", t, IR_SUM,
		counted(g, q, q->body[0],
			nd_where(g, hit, nd_real(g, t, 1), nd_real(g, t, 0))));

	w.at[w.n++] = hit;
	chain_down(g, q, q->body[0],
		nd_call(g, "div", t, c, adj_at_left(g, q, ties), NULL), w);
}

static void through_product(
	adjoint *g, const in_eqn *q, const in_node *c, guards w)
{
	tn_dtype t = g->fwd->tensor[q->out[0]].type.dtype;
	const in_node *zero = nd_real(g, t, 0), *one = nd_real(g, t, 1);
	const in_node *b = nd_cast(g, t, nd_again(g, q, q->body[0]));
	const in_node *is_zero = nd_call(g, "eq", TN_BOOL, b, zero, NULL);
	int32_t zeros = helper(g, q, "zeros_", t, IR_SUM,
		nd_where(g, is_zero, one, zero));
	int32_t rest = helper(g, q, "rest_", t, IR_PROD,
		nd_where(g, is_zero, one, b));
	const in_node *n = adj_at_left(g, q, zeros);
	const in_node *p = adj_at_left(g, q, rest);
	const in_node *alone = nd_call(g, "and", TN_BOOL, is_zero,
		nd_call(g, "eq", TN_BOOL, n, one, NULL), NULL);
	const in_node *factor = nd_where(g,
		nd_call(g, "eq", TN_BOOL, n, zero, NULL),
		nd_call(g, "div", t, p, b, NULL),
		nd_where(g, alone, p, zero));

	chain_down(g, q, q->body[0], nd_mul(g, c, factor), w);
}

static void through_arg(
	adjoint *g, const in_eqn *q, const in_node *c, guards w)
{
	w.at[w.n++] = nd_call(g, "eq", TN_BOOL,
		nd_cast(g, TN_I64, nd_again(g, q, q->body[1])),
		adj_at_left(g, q, adj_value(g, q->out[1])), NULL);
	chain_down(g, q, q->body[0], c, w);
}

/* mean and sum of squares about it: d mu = 1 / n, d m2 = 2 (x - mu) */
static void through_welford(adjoint *g, const in_eqn *q, guards w)
{
	const in_node *cm = arriving(g, q, 1), *cs = arriving(g, q, 2), *c;
	tn_dtype t = g->fwd->tensor[q->out[1]].type.dtype;

	if (cm != NULL) {
		c = nd_call(g, "div", t, cm,
			adj_at_left(g, q, adj_value(g, q->out[0])), NULL);
		chain_down(g, q, q->body[1], c, w);
	}
	if (cs != NULL) {
		c = nd_call(g, "sub", t,
			nd_cast(g, t, nd_again(g, q, q->body[1])),
			adj_at_left(g, q, adj_value(g, q->out[1])), NULL);
		c = nd_mul(g, nd_call(g, "mul", t, nd_real(g, t, 2), c, NULL),
			cs);
		chain_down(g, q, q->body[1], c, w);
	}
}

/*
 * m = max a, l = sum exp(a - m) b, w = sum exp(a - m) v: a gets what l and w
 * pass on, and m, on which both depend, -(gl l + gw w) beside its own.
 */
static void through_online(adjoint *g, const in_eqn *q, guards w)
{
	tn_dtype t = g->fwd->tensor[q->out[0]].type.dtype;
	const in_node *a = nd_cast(g, t, nd_again(g, q, q->body[0]));
	const in_node *m = adj_at_left(g, q, adj_value(g, q->out[0]));
	const in_node *e = nd_call(g, "exp", t,
		nd_call(g, "sub", t, a, m, NULL), NULL, NULL);
	const in_node *cm = arriving(g, q, 0), *ca = NULL;

	for (int32_t k = 1; k < q->n_out; k++) {
		const in_node *c = arriving(g, q, k), *term;

		if (c == NULL)
			continue;
		chain_down(g, q, q->body[k], nd_mul(g, c, e), w);
		term = nd_call(g, "mul", t, c,
			adj_at_left(g, q, adj_value(g, q->out[k])), NULL);
		cm = cm == NULL ? nd_call(g, "neg", t, term, NULL, NULL)
				: nd_call(g, "sub", t, cm, term, NULL);
		term = nd_mul(g, c, nd_cast(g, t, nd_again(g, q, q->body[k])));
		ca = ca == NULL ? term : nd_call(g, "add", t, ca, term, NULL);
	}
	if (ca != NULL)
		chain_down(g, q, q->body[0], nd_mul(g, ca, e), w);
	if (cm != NULL)
		through_extreme(g, q, cm, w);
}

/* ---- scans ---- */

/*
 * o[t] = f(o[t+k], ..): the cotangent is a scan the other way,
 * h[t] = go[t] + (h[t-k] * df/do at t-k where that is inside); then f's other
 * operands get theirs from h as from any equation.
 */
static void self_terms(adjoint *g, const in_eqn *q, const in_node *n,
	const in_node *c, guards w);

static void through_scan(adjoint *g, const in_eqn *q, const in_node *c)
{
	const in_tensor *y = &g->fwd->tensor[q->out[0]];
	guards w = {0};
	in_eqn r;
	int32_t h = adj_tensor(
		g, adj_named(g, "h_", q->out[0]), &y->type, y->type.dtype);
	const in_node *at = adj_at_left(g, q, h);

	/* the terms of the body, found by sending h down to the self-reads */
	g->scan = (struct scan_of){.q = q, .h = h, .sum = c};
	g->scan.on = true;
	self_terms(g, q, q->body[0], at, w);
	g->scan.on = false;
	r = adj_new_eqn(h, IR_SET, q->n_left, at->index, g->scan.sum);
	r.is_scan = true;
	r.scan_axis = q->scan_axis;
	r.scan_letter = q->scan_letter;
	r.scan_step = -q->scan_step;
	adj_set_letters(g, q, &r);
	adj_eqn(g, &r);
	chain_down(g, q, q->body[0], adj_at_left(g, q, h), w);
}

static void self_terms(adjoint *g, const in_eqn *q, const in_node *n,
	const in_node *c, guards w)
{
	bool *own = &g->has_grad[q->out[0]], before = *own;
	bool *all = arena_array(g->a, bool, g->fwd->n_tensors + 1);

	/* nothing but the scan's own reads */
	for (int32_t i = 0; i < g->fwd->n_tensors; i++) {
		all[i] = g->has_grad[i];
		g->has_grad[i] = false;
	}
	*own = before;
	chain_down(g, q, n, c, w);
	for (int32_t i = 0; i < g->fwd->n_tensors; i++)
		g->has_grad[i] = all[i];
}

/* ---- one equation ---- */

static bool reaches_wanted(adjoint *g, const in_eqn *q)
{
	for (int32_t k = 0; k < ir_n_bodies(q); k++)
		if (chain_reaches(g, q->body[k]))
			return true;
	return false;
}

/* Does what q updates come from something that is wanted? */
static bool older_reaches(adjoint *g, const in_eqn *q)
{
	for (const in_eqn *e = g->fwd->eqn; e < q; e++)
		for (int32_t k = 0; k < e->n_out; k++)
			for (int32_t i = 0; i < q->n_out; i++)
				if (e->out[k] == q->out[i] &&
					reaches_wanted(g, e))
					return true;
	return false;
}

static void backward(adjoint *g, const in_eqn *q)
{
	const in_node *c = arriving(g, q, 0);
	guards w = {0};
	bool reaches = reaches_wanted(g, q);

	if (q->is_update && q->monoid != IR_SUM &&
		(reaches || (c != NULL && older_reaches(g, q))))
		none(g, "an update other than += is not inverted");
	if (!reaches)
		return;
	if (q->skip && c != NULL)
		w.at[w.n++] = nd_inside(g, c);
	if (q->monoid == IR_WELFORD) {
		through_welford(g, q, w);
		return;
	}
	if (q->monoid == IR_SOFTMAX) {
		through_online(g, q, w);
		return;
	}
	if (c == NULL)
		return;
	if (q->is_scan) {
		through_scan(g, q, c);
		return;
	}
	switch (q->monoid) {
	case IR_SET:
	case IR_SUM:
		chain_down(g, q, q->body[0], nd_cast(g, q->body[0]->dtype, c), w);
		return;
	case IR_MAX:
	case IR_MIN:
		through_extreme(g, q, c, w);
		return;
	case IR_PROD:
		through_product(g, q, c, w);
		return;
	case IR_ARGMAX:
	case IR_ARGMIN:
		through_arg(g, q, c, w);
		return;
	}
	none(g, "of its reduction no derivative is known");
}

/* ---- the whole ---- */

/* What may be read: operands, results, cotangents; used NULL: all of it. */
static void begin(adjoint *g, const bool *used)
{
	const ir_inst *p = g->fwd;
	int32_t number = 0;

	for (int32_t i = 0; i < p->n_tensors; i++) {
		g->value[i] = g->cotangent[i] = g->seed[i] = -1;
		g->has_grad[i] = false;
	}
	for (int32_t pass = 0; pass < 3; pass++)
		for (int32_t i = 0; i < p->n_tensors; i++) {
			const in_tensor *t = &p->tensor[i];
			int32_t k = pass == 0 ? t->operand : t->result;
			int32_t here;

			if (k < 0 || (pass == 2 && (k >= 64 ||
					     (g->seeded >> k & 1) == 0 ||
					     !dtype_is_float(t->type.dtype))))
				continue;
			if (used != NULL && !used[number++])
				continue;
			here = adj_tensor(g,
				pass == 2 ? adj_named(g, "d_", i) : t->name,
				&t->type, t->type.dtype);
			g->tensor.at[here].operand = g->operand.n;
			*vec_push(g->a, &g->operand) = (struct grad_operand){
				pass == 0   ? GRAD_OPERAND
				: pass == 1 ? GRAD_RESULT
					    : GRAD_SEED,
				k, false};
			if (pass == 2)
				g->seed[i] = here;
			else
				g->value[i] = here;
		}
	g->used = arena_array(g->a, bool, g->tensor.n + 1);
	g->is_made = arena_array(g->a, bool, p->n_eqns + 1);
	for (int32_t i = 0; i < p->n_letters; i++)
		*vec_push(g->a, &g->letter) = p->letter[i];
}

/* Which tensors depend on an operand that is wanted? */
static void find_dependent(adjoint *g)
{
	const ir_inst *p = g->fwd;

	for (int32_t i = 0; i < p->n_tensors; i++) {
		int32_t k = p->tensor[i].operand;

		g->has_grad[i] = k >= 0 && k < 64 &&
				 (g->wanted >> k & 1) != 0 &&
				 dtype_is_float(p->tensor[i].type.dtype);
	}
	for (int32_t i = 0; i < p->n_eqns; i++) {
		const in_eqn *q = &p->eqn[i];
		bool reaches = false;

		for (int32_t k = 0; k < ir_n_bodies(q); k++)
			reaches = reaches || chain_reaches(g, q->body[k]);
		for (int32_t k = 0; k < q->n_out && reaches; k++)
			g->has_grad[q->out[k]] = dtype_is_float(
				p->tensor[q->out[k]].type.dtype);
	}
}

static adjoint *derive(arena *a, ir_table *t, const ir_inst *fwd,
	uint64_t wanted, uint64_t seeded, const bool *used)
{
	adjoint *g = arena_make(a, adjoint);

	*g = (adjoint){.a = a,
		.e = arena_env(a),
		.table = t,
		.fwd = fwd,
		.wanted = wanted,
		.seeded = seeded};
	g->value = arena_array(a, int32_t, fwd->n_tensors + 1);
	g->cotangent = arena_array(a, int32_t, fwd->n_tensors + 1);
	g->seed = arena_array(a, int32_t, fwd->n_tensors + 1);
	g->has_grad = arena_array(a, bool, fwd->n_tensors + 1);
	begin(g, used);
	find_dependent(g);
	for (int32_t i = fwd->n_eqns - 1; i >= 0; i--)
		backward(g, &fwd->eqn[i]);
	return g;
}

/* Wanted operands whose cotangent some equation makes become results. */
static void find_results(adjoint *g, grad_rule *r, ir_inst *inst)
{
	const ir_inst *p = g->fwd;
	int32_t *result = arena_array(g->a, int32_t, p->n_tensors + 1);

	r->of_operand = arena_array(g->a, int32_t, p->n_tensors + 1);
	for (int32_t i = 0; i < p->n_tensors; i++) {
		int32_t k = p->tensor[i].operand, here = g->cotangent[i];

		if (k < 0 || here < 0)
			continue;
		g->tensor.at[here].result = r->n_results;
		r->of_operand[r->n_results] = k;
		result[r->n_results++] = here;
	}
	inst->n_results = r->n_results;
	inst->result = result;
}

static grad_rule *derived_rule(arena *a, ir_table *t, const ir_inst *fwd,
	uint64_t wanted, uint64_t seeded)
{
	adjoint *g;
	grad_rule *r;
	ir_inst *inst;
	in_eqn *eqn;

	if (fwd->opaque != NULL)
		return NULL;
	g = derive(a, t, fwd, wanted, seeded, NULL);
	g = derive(a, t, fwd, wanted, seeded, g->used);
	r = arena_make(a, grad_rule);
	inst = arena_make(a, ir_inst);
	find_results(g, r, inst);
	if (r->n_results == 0)
		return NULL;
	eqn = arena_array(a, in_eqn, g->again.n + g->eqn.n);
	for (int32_t i = 0; i < g->again.n; i++)
		eqn[i] = g->again.at[i];
	for (int32_t i = 0; i < g->eqn.n; i++)
		eqn[g->again.n + i] = g->eqn.at[i];
	inst->row = ir_row_named(a,
		arena_printf(a, "%s_grad", ir_row_name(fwd->row)));
	inst->n_letters = g->letter.n;
	inst->letter = g->letter.at;
	inst->n_tensors = g->tensor.n;
	inst->tensor = g->tensor.at;
	inst->n_eqns = g->again.n + g->eqn.n;
	inst->eqn = eqn;
	r->inst = inst;
	r->n_operands = g->operand.n;
	r->operand = g->operand.at;
	return r;
}

const grad_rule *grad_adjoint(arena *a, ir_table *t, const ir_inst *fwd,
	uint64_t wanted, uint64_t seeded)
{
	bool there;
	grad_rule *r = block_rule(a, fwd, wanted, seeded, &there);

	if (!there)
		r = derived_rule(a, t, fwd, wanted, seeded);
	if (r != NULL)
		reads_find(a, r);
	return r;
}
