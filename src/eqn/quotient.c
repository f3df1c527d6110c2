/*
 * quotient.c: divides a sum instead of its terms.
 *
 * Consumes a system. A softmax divides its weights by their sum, and a product with
 * values follows. Such a row has to stay whole, because the divisor is known behind its
 * last key; where the sum is divided, rows can be processed block by block (rescale.c),
 * and there are fewer divisions:
 *
 *   p[t, u] = e[t, u] / z[t]                  w[t, c] += e[t, u] * v[u, c]
 *   o[t, c] += p[t, u] * v[u, c]        ->    o[t, c] = w[t, c] / z[t]
 *
 * Only weights of a row's maximum are treated so: none is more than 1, so sums cannot
 * overflow where they did not before. The last bits may change, so it is done for rows
 * that are long.
 */
#include "eqn/eqn.h"

#include <string.h>

enum { MOST_STMTS = 5 };

typedef struct quotient {
	ir_system *s;
	const sys_eqn *p;
	const expr *weight, *divisor; /* read by p */
	/* while a sum is rewritten: */
	const expr *by; /* the divisor over its axes */
	bool several;	/* it reads p more than once, or by other divisors */
} quotient;

static const sys_eqn *maker(const ir_system *s, int32_t tensor)
{
	int32_t e = s->tensor.at[tensor].eqn;

	return e < 0 ? NULL : &s->eqn.at[e];
}

static bool is_plain(const sys_eqn *e, int32_t monoid)
{
	return e != NULL && e->monoid == monoid && e->n_out == 1 &&
	       e->opaque == NULL && e->push == NULL && e->scan_axis < 0 &&
	       e->init[0] == NULL;
}

/* Is the equation a quotient of two reads, in the dtype of sums? */
static bool is_quotient(ir_system *s, const sys_eqn *e, quotient *out)
{
	const sys_tensor *t = &s->tensor.at[e->out[0]];
	const expr *body = e->body[0];

	if (!is_plain(e, IR_SET) || !ex_is_call(body, "div") ||
		body->arg[0]->kind != EX_READ || body->arg[1]->kind != EX_READ ||
		t->is_output || t->storage >= 0 || dtype_acc(t->dtype) != t->dtype)
		return false;
	*out = (quotient){.s = s, .p = e, .weight = body->arg[0],
		.divisor = body->arg[1]};
	return true;
}

/* ---- a sum of quotients ---- */

static const expr *on_read(void *arg, const expr *read, const ix_dom *d)
{
	quotient *q = arg;

	if (read->tensor != q->p->out[0])
		return NULL;
	q->several |= q->by != NULL;
	q->by = ir_at_number(q->s, q->p, q->divisor, d, read->form);
	return ir_at_number(q->s, q->p, q->weight, d, read->form);
}

/* The sum with weights in place of quotients, without a result; false: impossible. */
static bool sum_of(quotient *q, const sys_eqn *o, sys_eqn *out)
{
	ir_system *s = q->s;
	ix_dom d = {.box = ir_eqn_box(s, o)};
	const ix_form *same[IR_MAX_AXES];

	if (!is_plain(o, IR_SUM) || s->tensor.at[o->out[0]].storage >= 0)
		return false;
	for (int32_t i = 0; i < o->n_axes; i++)
		same[i] = ix_axis(s->x, &d, i);
	q->by = NULL;
	q->several = false;
	*out = *o;
	out->body[0] = ex_subst(s, &d, o->body[0], o->n_axes, d.box.extent, same,
		on_read, q);
	if (q->by == NULL || q->several || q->by->kind != EX_READ)
		return false;
	for (int32_t i = o->n_left; i < o->n_axes; i++)
		if (ix_uses_axis(q->by->form, i))
			return false;
	return true;
}

/* ---- the row ---- */

static eqn_stmt stmt_of(ir_system *s, const sys_eqn *e)
{
	eqn_stmt t = {.monoid = e->monoid, .out = e->out[0], .body = e->body[0],
		.dom = {.box = ir_eqn_box(s, e)}, .at = ir_left_number(s, e)};

	for (int32_t i = e->n_left; i < e->n_axes; i++)
		t.reduced |= (uint64_t)1 << i;
	return t;
}

/* What a weight subtracts: the maximum, behind a value made of it, if there is one. */
static int32_t add_row(ir_system *s, const sys_eqn *weight, eqn_stmt *out)
{
	ex_reads all = ex_list_reads(s, weight->body[0]);

	for (int32_t i = 0; i < all.n; i++) {
		const sys_eqn *given = maker(s, all.at[i].tensor), *max = given;
		ex_reads more;

		if (is_plain(given, IR_SET)) {
			more = ex_list_reads(s, given->body[0]);
			max = more.n == 1 ? maker(s, more.at[0].tensor) : NULL;
		}
		if (!is_plain(max, IR_MAX))
			continue;
		out[0] = stmt_of(s, max);
		out[1] = stmt_of(s, given);
		return 1 + (given != max);
	}
	return 0;
}

/* Are the weights such of a row of at least so many keys, and is the sum linear in
 * them? */
static bool is_row(const quotient *q, const sys_eqn *sum, int64_t least)
{
	ir_system *s = q->s;
	const sys_eqn *e = maker(s, q->weight->tensor);
	const sys_eqn *z = maker(s, q->divisor->tensor);
	eqn_stmt all[MOST_STMTS];
	eqn_rows rows;
	int32_t n;

	if (!is_plain(e, IR_SET) || !is_plain(z, IR_SUM))
		return false;
	n = add_row(s, e, all);
	if (n == 0)
		return false;
	all[n++] = stmt_of(s, e);
	all[n++] = stmt_of(s, z);
	all[n++] = stmt_of(s, sum);
	return eqn_find_rows(s->a, s, n, all, &rows) && rows.n_keys >= least &&
	       rows.kind[n - 3] == EQN_ROW_WEIGHT &&
	       rows.kind[n - 2] == EQN_ROW_SUM && rows.kind[n - 1] == EQN_ROW_SUM;
}

/* ---- the pass ---- */

static bool reads(ir_system *s, const expr *e, int32_t tensor)
{
	ex_reads all;

	if (e == NULL)
		return false;
	all = ex_list_reads(s, e);
	for (int32_t i = 0; i < all.n; i++)
		if (all.at[i].tensor == tensor)
			return true;
	return false;
}

static bool uses(ir_system *s, const sys_eqn *e, int32_t tensor)
{
	for (int32_t i = 0; i < e->n_opaque_in; i++)
		if (e->opaque_in[i] == tensor)
			return true;
	for (int32_t i = 0; i < e->n_out && e->opaque == NULL; i++)
		if (reads(s, e->body[i], tensor) || reads(s, e->init[i], tensor))
			return true;
	return e->push != NULL && reads(s, ex_index(s, e->push), tensor);
}

/* Can all sums that read p be divided instead? Marks them. */
static bool find_sums(quotient *q, int64_t least, int32_t *of, int32_t number)
{
	ir_system *s = q->s;
	bool any = false;

	for (int32_t pass = 0; pass < 2; pass++)
		for (int32_t i = 0; i < s->eqn.n; i++) {
			const sys_eqn *e = &s->eqn.at[i];
			sys_eqn sum;

			if (e == q->p || !uses(s, e, q->p->out[0]))
				continue;
			if (pass == 1)
				of[i] = number;
			else if (of[i] >= 0 || !sum_of(q, e, &sum) ||
				 !is_row(q, &sum, least))
				return false;
			any = true;
		}
	return any;
}

/* Adds the sum of weights, and its quotient. */
static void add_both(quotient *q, const sys_eqn *o)
{
	ir_system *s = q->s;
	sys_eqn w, e = *o;
	int64_t shape[IR_MAX_AXES];
	tn_dtype t = s->tensor.at[o->out[0]].dtype, acc = dtype_acc(t);
	const expr *arg[IR_MAX_ARGS] = {NULL};

	(void)sum_of(q, o, &w);
	for (int32_t i = 0; i < o->n_left; i++)
		shape[i] = o->axis[i].extent;
	w.label = arena_printf(s->a, "%s_sum", o->label);
	w.out[0] = ir_add_tensor(s,
		arena_printf(s->a, "%s.sum", s->tensor.at[o->out[0]].name), acc,
		o->n_left, shape);
	ir_add_eqn(s, &w);
	e.monoid = IR_SET;
	e.n_axes = e.n_left;
	arg[0] = ex_read(s, w.out[0], ir_left_number(s, &e));
	arg[1] = q->by->dtype == acc ? q->by : ex_cast(s, acc, q->by);
	e.body[0] = ex_call(s, ir_scalar_find("div", 3), arg);
	if (t != acc)
		e.body[0] = ex_cast(s, t, e.body[0]);
	ir_add_eqn(s, &e);
}

ir_system *eqn_divide_sums(ir_system *s, int64_t least)
{
	int32_t n = s->eqn.n;
	sys_eqn *old;
	quotient *q = arena_array(s->a, quotient, n + 1);
	int32_t *of = arena_array(s->a, int32_t, n + 1); /* by equation; -1 */
	bool any = false;

	for (int32_t i = 0; i < n; i++)
		of[i] = -1;
	for (int32_t i = 0; i < n; i++)
		any |= is_quotient(s, &s->eqn.at[i], &q[i]) &&
		       find_sums(&q[i], least, of, i);
	if (!any)
		return s;
	old = arena_copy(s->a, s->eqn.at, (size_t)n * sizeof *old);
	s->eqn.n = 0;
	for (int32_t i = 0; i < n; i++) {
		q[i].p = &old[i];
		if (of[i] >= 0)
			add_both(&q[of[i]], &old[i]);
		else
			ir_add_eqn(s, &old[i]);
	}
	return ir_prune(s);
}
