/*
 * expr_parse.c: parses forms and expressions, in a scope of tensors and axes.
 * Consumes untrusted text; errors have a caret.
 *
 * A literal without a dtype takes that of the other operand, else f32.
 */
#include "notation/lex.h"
#include "system/local.h"

#include <math.h>

/* A value; `bare`: a literal that takes the dtype of the other operand. */
struct value {
	const expr *e;
	bool bare;
};

void sys_fail_if(sys_parser *p, bool bad, const lex_token *at,
	const char *rule, const char *what)
{
	if (bad)
		lex_fail(p->l, at, rule, "%s", what);
}

int32_t sys_find_tensor(sys_parser *p, const lex_token *t)
{
	int64_t i = -1;

	if (t->kind == LEX_NAME && p->in.tensor != NULL)
		i = map_get(p->in.tensor, t->at, (size_t)t->n, -1);
	if (i < 0)
		lex_fail(p->l, t, "name", "there is no tensor %.*s", t->n,
			t->at);
	return (int32_t)i;
}

/* ---- forms ---- */

static int32_t find_axis(sys_parser *p, const lex_token *t)
{
	for (int32_t i = 0; i < p->in.n_names; i++)
		if (lex_same(t, p->in.names[i]))
			return i;
	lex_fail(p->l, t, "name", "there is no axis %.*s", t->n, t->at);
}

static int64_t positive(sys_parser *p)
{
	const lex_token *t = lex_peek(p->l);
	int64_t v = lex_int(p->l, "a number");

	sys_fail_if(p, v < 1, t, "number", "a divisor must be positive");
	return v;
}

/* i, i/4, i%4, i/4%3: one digit */
static const ix_form *parse_digit(sys_parser *p)
{
	int32_t axis = find_axis(p, lex_take(p->l));
	int64_t extent = p->in.dom.box.extent[axis], lo = 1, hi = extent;
	const lex_token *at = lex_peek(p->l);

	if (lex_eat(p->l, "/"))
		lo = positive(p);
	if (lex_eat(p->l, "%")) {
		sys_fail_if(p, !mul_ok(lo, positive(p), &hi), at, "number",
			"a cut does not fit 64 bits");
		if (hi > extent)
			hi = extent;
	}
	sys_fail_if(p, lo > extent || (hi != extent && hi % lo != 0), at,
		"number", "the bounds are not those of a digit of this axis");
	if (extent == 1)
		return ix_const(p->s->x, 0);
	return ix_digit(p->s->x, &p->in.dom, axis, lo, hi);
}

static const ix_form *parse_clamp(sys_parser *p)
{
	const ix_form *f;
	int64_t lo, hi;

	lex_need(p->l, "(");
	f = sys_parse_form(p);
	lex_need(p->l, ",");
	lo = lex_int(p->l, "a number");
	lex_need(p->l, ",");
	hi = lex_int(p->l, "a number");
	sys_fail_if(p, hi < lo, lex_peek(p->l), "number", "an empty range");
	lex_need(p->l, ")");
	return ix_clamp(p->s->x, &p->in.dom, f, lo, hi);
}

static const ix_form *parse_data(sys_parser *p)
{
	int32_t tensor = sys_find_tensor(p, lex_take(p->l));
	const ix_form *f;
	int64_t lo, hi;

	lex_need(p->l, "[");
	f = sys_parse_form(p);
	lex_need(p->l, "in");
	lo = lex_int(p->l, "a number");
	lex_need(p->l, "..");
	hi = lex_int(p->l, "a number");
	sys_fail_if(p, hi <= lo, lex_peek(p->l), "number", "an empty range");
	lex_need(p->l, "]");
	return ix_fun(p->s->x, tensor, f, lo, hi);
}

static const ix_form *parse_form_atom(sys_parser *p)
{
	const ix_form *f;

	if (lex_peek(p->l)->kind == LEX_INT)
		return ix_const(p->s->x, lex_take(p->l)->i);
	if (lex_is(p->l, "clamp") && lex_is2(p->l, 1, "(")) {
		lex_take(p->l);
		return parse_clamp(p);
	}
	if (lex_eat(p->l, "(")) {
		lex_enter(p->l);
		f = sys_parse_form(p);
		lex_leave(p->l);
		lex_need(p->l, ")");
		if (lex_eat(p->l, "/"))
			f = ix_div(p->s->x, &p->in.dom, f, positive(p));
		return f;
	}
	if (lex_is2(p->l, 1, "[")) {
		lex_enter(p->l);
		f = parse_data(p);
		lex_leave(p->l);
		return f;
	}
	return parse_digit(p);
}

static const ix_form *parse_term(sys_parser *p)
{
	if (lex_peek(p->l)->kind == LEX_INT && lex_is2(p->l, 1, "*")) {
		int64_t k = lex_take(p->l)->i;

		lex_need(p->l, "*");
		return ix_scale(p->s->x, parse_form_atom(p), k);
	}
	return parse_form_atom(p);
}

const ix_form *sys_parse_form(sys_parser *p)
{
	ix *x = p->s->x;
	bool minus = lex_eat(p->l, "-");
	const ix_form *f = parse_term(p);

	if (minus)
		f = ix_scale(x, f, -1);
	for (;;) {
		if (lex_eat(p->l, "+"))
			f = ix_add(x, &p->in.dom, f, parse_term(p));
		else if (lex_eat(p->l, "-"))
			f = ix_sub(x, &p->in.dom, f, parse_term(p));
		else
			return f;
	}
}

/* ---- expressions ---- */

static struct value parse_value(sys_parser *p, int32_t level);

const expr *sys_parse_expr(sys_parser *p)
{
	return parse_value(p, LEX_OR).e;
}

static const expr *literal(ir_system *s, tn_dtype t, double f, int64_t i)
{
	return dtype_is_float(t) ? ex_const_f(s, t, f) : ex_const_i(s, t, i);
}

/* Converts the literal v to t; integers must be integers. */
static void adapt(sys_parser *p, struct value *v, tn_dtype t,
	const lex_token *at)
{
	double f;

	if (!v->bare || v->e->dtype == t)
		return;
	f = v->e->c.f;
	sys_fail_if(p, !dtype_is_float(t) && (f != floor(f) || fabs(f) > 0x1p53),
		at, "dtype", "this literal is not an integer");
	v->e = literal(p->s, t, f, dtype_is_float(t) ? 0 : (int64_t)f);
}

/* A bare one of a, b takes the dtype of the other. */
static void join(
	sys_parser *p, struct value *a, struct value *b, const lex_token *at)
{
	if (a->bare && !b->bare)
		adapt(p, a, b->e->dtype, at);
	else if (b->bare && !a->bare)
		adapt(p, b, a->e->dtype, at);
}

static struct value call(sys_parser *p, int32_t fn, struct value *v,
	const lex_token *at)
{
	const ir_scalar *row = ir_scalar_at(fn);
	const expr *arg[IR_MAX_ARGS];
	tn_dtype dtype[IR_MAX_ARGS];
	struct value r = {0};

	/* operands with the same letter in the signature have one dtype */
	for (int32_t i = 0; i < row->n_args; i++)
		for (int32_t k = 0; k < i; k++)
			if (row->sig[2 * i] == row->sig[2 * k])
				join(p, &v[i], &v[k], at);
	r.bare = true;
	for (int32_t i = 0; i < row->n_args; i++) {
		arg[i] = v[i].e;
		dtype[i] = arg[i]->dtype;
		if (dtype_is_narrow(dtype[i]))
			lex_fail(p->l, at, "dtype",
				"%s is computed in %s: use a cast",
				dtype_name(dtype[i]),
				dtype_name(dtype_wide(dtype[i])));
		r.bare = r.bare && v[i].bare;
	}
	if (ir_scalar_dtype(fn, dtype, row->n_args) < 0)
		lex_fail(p->l, at, "dtype", "%s (%s) does not take %s",
			row->name, row->sig, dtype_name(dtype[0]));
	r.e = ex_call(p->s, fn, arg);
	r.bare = r.bare && r.e->kind == EX_CONST && r.e->dtype == TN_F32;
	return r;
}

static const expr *parse_read(sys_parser *p)
{
	int32_t tensor = sys_find_tensor(p, lex_take(p->l));
	const ix_form *f;

	lex_need(p->l, "[");
	f = sys_parse_form(p);
	lex_need(p->l, "]");
	return ex_read(p->s, tensor, f);
}

tn_dtype sys_parse_dtype(sys_parser *p)
{
	const lex_token *t = lex_take(p->l);
	tn_dtype r = TN_F32;

	sys_fail_if(p, t->kind != LEX_NAME ||
			!dtype_parse(t->at, (size_t)t->n, &r),
		t, "dtype", "this is not a dtype");
	return r;
}

/* i64(-3), f64(0.5) */
static const expr *parse_literal(sys_parser *p)
{
	tn_dtype t = sys_parse_dtype(p);
	const lex_token *v;
	const expr *e;
	bool minus;

	lex_need(p->l, "(");
	minus = lex_eat(p->l, "-");
	v = lex_take(p->l);
	if (v->u != 0 && t == TN_U64 && !minus) {
		e = ex_const_i(p->s, t, (int64_t)v->u);
	} else if (v->kind == LEX_INT) {
		e = literal(p->s, t, minus ? -(double)v->i : (double)v->i,
			minus ? lex_minus(v->i) : v->i);
	} else if (v->kind == LEX_REAL && dtype_is_float(t)) {
		e = ex_const_f(p->s, t, minus ? -v->f : v->f);
	} else if (lex_same(v, "inf") && dtype_is_float(t)) {
		e = ex_const_f(p->s, t, minus ? -HUGE_VAL : HUGE_VAL);
	} else if (lex_same(v, "nan") && dtype_is_float(t)) {
		e = ex_const_f(p->s, t, (double)NAN);
	} else {
		lex_fail(p->l, v, "number", "there is no literal of dtype %s",
			dtype_name(t));
	}
	lex_need(p->l, ")");
	return e;
}

static const expr *parse_index(sys_parser *p, bool is_inside)
{
	const ix_form *f;
	int64_t lo, hi;

	lex_take(p->l);
	lex_need(p->l, "(");
	f = sys_parse_form(p);
	if (!is_inside) {
		lex_need(p->l, ")");
		return ex_index(p->s, f);
	}
	lex_need(p->l, ",");
	lo = lex_int(p->l, "a number");
	lex_need(p->l, ",");
	hi = lex_int(p->l, "a number");
	lex_need(p->l, ")");
	return ex_inside(p->s, f, lo, hi);
}

static const expr *parse_cast(sys_parser *p)
{
	const expr *e;
	tn_dtype t;

	lex_take(p->l);
	lex_need(p->l, "(");
	e = sys_parse_expr(p);
	lex_need(p->l, ",");
	t = sys_parse_dtype(p);
	lex_need(p->l, ")");
	return ex_cast(p->s, t, e);
}

static struct value parse_call(sys_parser *p)
{
	const lex_token *at = lex_take(p->l);
	int32_t fn = ir_scalar_find(at->at, (size_t)at->n), n;
	struct value v[IR_MAX_ARGS] = {0};

	if (fn < 0)
		lex_fail(p->l, at, "name", "there is no function %.*s", at->n,
			at->at);
	n = ir_scalar_at(fn)->n_args;
	lex_need(p->l, "(");
	for (int32_t i = 0; i < n; i++) {
		if (i > 0)
			lex_need(p->l, ",");
		v[i] = parse_value(p, LEX_OR);
	}
	lex_need(p->l, ")");
	return call(p, fn, v, at);
}

static bool is_param(const sys_parser *p, const lex_token *t)
{
	return p->in.param != NULL && t->n == 2 && !lex_is2(p->l, 1, "[") &&
		(t->at[0] == 'x' || t->at[0] == 'y') && t->at[1] >= '0' &&
		t->at[1] < '0' + p->in.n_params;
}

static struct value parse_named(sys_parser *p)
{
	const lex_token *t = lex_peek(p->l);
	tn_dtype dtype;
	struct value v = {0};

	if (is_param(p, t)) {
		int32_t k = t->at[1] - '0';

		lex_take(p->l);
		v.e = ex_param(p->s, p->in.param[k],
			t->at[0] == 'x' ? k : k + IR_MAX_COMP);
	} else if (lex_is2(p->l, 1, "[")) {
		v.e = parse_read(p);
	} else if (lex_eat(p->l, "true")) {
		v.e = ex_const_i(p->s, TN_BOOL, 1);
	} else if (lex_eat(p->l, "false")) {
		v.e = ex_const_i(p->s, TN_BOOL, 0);
	} else if (lex_eat(p->l, "inf")) {
		v = (struct value){ex_const_f(p->s, TN_F32, HUGE_VAL), true};
	} else if (lex_eat(p->l, "nan")) {
		v = (struct value){ex_const_f(p->s, TN_F32, (double)NAN), true};
	} else if (lex_is(p->l, "index")) {
		v.e = parse_index(p, false);
	} else if (lex_is(p->l, "inside")) {
		v.e = parse_index(p, true);
	} else if (lex_is(p->l, "cast")) {
		v.e = parse_cast(p);
	} else if (dtype_parse(t->at, (size_t)t->n, &dtype)) {
		v.e = parse_literal(p);
	} else {
		v = parse_call(p);
	}
	return v;
}

static struct value parse_unary(sys_parser *p)
{
	const lex_token *t = lex_peek(p->l);
	struct value v = {0};

	if (t->kind == LEX_NAME)
		return parse_named(p);
	if (t->kind == LEX_INT || t->kind == LEX_REAL) {
		lex_take(p->l);
		v.bare = true;
		v.e = ex_const_f(p->s, TN_F32, t->f);
		return v;
	}
	if (lex_eat(p->l, "-")) {
		v = parse_value(p, LEX_UNARY);
		if (v.bare && v.e->kind == EX_CONST)
			v.e = ex_const_f(p->s, TN_F32, -v.e->c.f);
		else
			v = call(p, ir_scalar_find("neg", 3), &v, t);
		return v;
	}
	lex_need(p->l, "(");
	v = parse_value(p, LEX_OR);
	lex_need(p->l, ")");
	return v;
}

static struct value parse_value(sys_parser *p, int32_t level)
{
	struct value v[IR_MAX_ARGS] = {0};
	const lex_operator *op;

	lex_enter(p->l);
	v[0] = parse_unary(p);
	while ((op = lex_operator_next(p->l)) != NULL && op->level >= level) {
		const lex_token *at = lex_take(p->l);

		v[1] = parse_value(p, op->level + 1);
		v[0] = call(p, ir_scalar_find(op->fn, strlen(op->fn)), v, at);
	}
	lex_leave(p->l);
	return v[0];
}

const ix_form *ir_form_parse(lex *l, ir_system *s, const ir_scope *in)
{
	sys_parser p = {l, s, *in};

	return sys_parse_form(&p);
}

const expr *ir_expr_parse(lex *l, ir_system *s, const ir_scope *in)
{
	sys_parser p = {l, s, *in};

	return sys_parse_expr(&p);
}

const expr *sys_parse_params(ir_system *s, const char *text, size_t n,
	int32_t n_comp, const tn_dtype *acc)
{
	sys_parser p = {.s = s, .in = {.n_params = n_comp, .param = acc}};
	const expr *e;

	p.l = lex_new(s->a, "monoid", text, n, (loc){0}, false);
	e = sys_parse_expr(&p);
	if (lex_peek(p.l)->kind != LEX_END)
		lex_unexpected(p.l, "the end");
	return e;
}
