/*
 * system_parse.c: the text of system_print.c into a system.
 *
 * Consumes untrusted text; throws system.* with a caret. Whatever is read is
 * checked where it is read; the verifier is called at the end.
 * Guarantees that what is parsed prints as the text it was printed from.
 * A literal without a dtype has that of its neighbour, else f32.
 */
#include "notation/lex.h"
#include "system/local.h"

#include <math.h>

struct parser {
	lex *l;
	ir_system *s;
	map *tensor; /* name -> number */
	ix_dom dom;
	int32_t n_names;
	const char *const *names; /* of the axes in dom */
	int32_t n_comp;		  /* x0, y0 ..: parameters */
	const tn_dtype *acc;
};

/* A value; `bare`: a literal that takes the dtype of its neighbour. */
struct value {
	const expr *e;
	bool bare;
};

static void fail_if(struct parser *p, bool bad, const lex_token *at,
	const char *rule, const char *what)
{
	if (bad)
		lex_fail(p->l, at, rule, "%s", what);
}

static int32_t find_tensor(struct parser *p, const lex_token *t)
{
	int64_t i = -1;

	if (t->kind == LEX_NAME && p->tensor != NULL)
		i = map_get(p->tensor, t->at, (size_t)t->n, -1);
	if (i < 0)
		lex_fail(p->l, t, "name", "there is no tensor %.*s", t->n,
			t->at);
	return (int32_t)i;
}

/* ---- forms ---- */

static const ix_form *parse_form(struct parser *p);

static int32_t find_axis(struct parser *p, const lex_token *t)
{
	for (int32_t i = 0; i < p->n_names; i++)
		if (lex_same(t, p->names[i]))
			return i;
	lex_fail(p->l, t, "name", "there is no axis %.*s", t->n, t->at);
}

static int64_t positive(struct parser *p)
{
	const lex_token *t = lex_peek(p->l);
	int64_t v = lex_int(p->l, "a number");

	fail_if(p, v < 1, t, "number", "a divisor must be positive");
	return v;
}

/* i, i/4, i%4, i/4%3: one digit */
static const ix_form *parse_digit(struct parser *p)
{
	int32_t axis = find_axis(p, lex_take(p->l));
	int64_t extent = p->dom.box.extent[axis], lo = 1, hi = extent;
	const lex_token *at = lex_peek(p->l);

	if (lex_eat(p->l, "/"))
		lo = positive(p);
	if (lex_eat(p->l, "%")) {
		fail_if(p, !mul_ok(lo, positive(p), &hi), at, "number",
			"a cut does not fit 64 bits");
		if (hi > extent)
			hi = extent;
	}
	fail_if(p, lo > extent || (hi != extent && hi % lo != 0), at,
		"number", "this is not a digit of that axis");
	if (extent == 1)
		return ix_const(p->s->x, 0);
	return ix_digit(p->s->x, &p->dom, axis, lo, hi);
}

static const ix_form *parse_clamp(struct parser *p)
{
	const ix_form *f;
	int64_t lo, hi;

	lex_need(p->l, "(");
	f = parse_form(p);
	lex_need(p->l, ",");
	lo = lex_int(p->l, "a number");
	lex_need(p->l, ",");
	hi = lex_int(p->l, "a number");
	fail_if(p, hi < lo, lex_peek(p->l), "number", "an empty range");
	lex_need(p->l, ")");
	return ix_clamp(p->s->x, &p->dom, f, lo, hi);
}

static const ix_form *parse_data(struct parser *p)
{
	int32_t tensor = find_tensor(p, lex_take(p->l));
	const ix_form *f;
	int64_t lo, hi;

	lex_need(p->l, "[");
	f = parse_form(p);
	lex_need(p->l, "in");
	lo = lex_int(p->l, "a number");
	lex_need(p->l, "..");
	hi = lex_int(p->l, "a number");
	fail_if(p, hi <= lo, lex_peek(p->l), "number", "an empty range");
	lex_need(p->l, "]");
	return ix_fun(p->s->x, tensor, f, lo, hi);
}

static const ix_form *parse_form_atom(struct parser *p)
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
		f = parse_form(p);
		lex_leave(p->l);
		lex_need(p->l, ")");
		if (lex_eat(p->l, "/"))
			f = ix_div(p->s->x, &p->dom, f, positive(p));
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

static const ix_form *parse_term(struct parser *p)
{
	if (lex_peek(p->l)->kind == LEX_INT && lex_is2(p->l, 1, "*")) {
		int64_t k = lex_take(p->l)->i;

		lex_need(p->l, "*");
		return ix_scale(p->s->x, parse_form_atom(p), k);
	}
	return parse_form_atom(p);
}

static const ix_form *parse_form(struct parser *p)
{
	ix *x = p->s->x;
	bool minus = lex_eat(p->l, "-");
	const ix_form *f = parse_term(p);

	if (minus)
		f = ix_scale(x, f, -1);
	for (;;) {
		if (lex_eat(p->l, "+"))
			f = ix_add(x, &p->dom, f, parse_term(p));
		else if (lex_eat(p->l, "-"))
			f = ix_sub(x, &p->dom, f, parse_term(p));
		else
			return f;
	}
}

/* ---- expressions ---- */

static struct value parse_value(struct parser *p, int32_t level);

static const expr *parse_expr(struct parser *p)
{
	return parse_value(p, LEX_OR).e;
}

static const expr *literal(ir_system *s, tn_dtype t, double f, int64_t i)
{
	return dtype_is_float(t) ? ex_const_f(s, t, f) : ex_const_i(s, t, i);
}

/* The literal v as t: whole numbers become integers. */
static void adapt(struct parser *p, struct value *v, tn_dtype t,
	const lex_token *at)
{
	double f;

	if (!v->bare || v->e->dtype == t)
		return;
	f = v->e->c.f;
	fail_if(p, !dtype_is_float(t) && (f != floor(f) || fabs(f) > 0x1p53),
		at, "dtype", "this literal is not an integer");
	v->e = literal(p->s, t, f, dtype_is_float(t) ? 0 : (int64_t)f);
}

/* Bare ones of a, b take the dtype of the other. */
static void join(
	struct parser *p, struct value *a, struct value *b, const lex_token *at)
{
	if (a->bare && !b->bare)
		adapt(p, a, b->e->dtype, at);
	else if (b->bare && !a->bare)
		adapt(p, b, a->e->dtype, at);
}

static struct value call(struct parser *p, int32_t fn, struct value *v,
	const lex_token *at)
{
	const ir_scalar *row = ir_scalar_at(fn);
	const expr *arg[IR_MAX_ARGS];
	tn_dtype dtype[IR_MAX_ARGS];
	struct value r = {0};

	/* equal signature letters: one dtype */
	for (int32_t i = 0; i < row->n_args; i++)
		for (int32_t k = 0; k < i; k++)
			if (row->sig[2 * i] == row->sig[2 * k])
				join(p, &v[i], &v[k], at);
	r.bare = true;
	for (int32_t i = 0; i < row->n_args; i++) {
		arg[i] = v[i].e;
		dtype[i] = arg[i]->dtype;
		fail_if(p, dtype[i] == TN_F16 || dtype[i] == TN_BF16, at,
			"dtype", "f16 and bf16 are computed in f32: use a cast");
		r.bare = r.bare && v[i].bare;
	}
	if (ir_scalar_dtype(fn, dtype, row->n_args) < 0)
		lex_fail(p->l, at, "dtype", "%s (%s) does not take %s",
			row->name, row->sig, dtype_name(dtype[0]));
	r.e = ex_call(p->s, fn, arg);
	r.bare = r.bare && r.e->kind == EX_CONST && r.e->dtype == TN_F32;
	return r;
}

static const expr *parse_read(struct parser *p)
{
	int32_t tensor = find_tensor(p, lex_take(p->l));
	const ix_form *f;

	lex_need(p->l, "[");
	f = parse_form(p);
	lex_need(p->l, "]");
	return ex_read(p->s, tensor, f);
}

static tn_dtype parse_dtype(struct parser *p)
{
	const lex_token *t = lex_take(p->l);
	tn_dtype r = TN_F32;

	fail_if(p, t->kind != LEX_NAME ||
			!dtype_parse(t->at, (size_t)t->n, &r),
		t, "dtype", "this is not a dtype");
	return r;
}

/* i64(-3), f64(0.5) */
static const expr *parse_literal(struct parser *p)
{
	tn_dtype t = parse_dtype(p);
	const lex_token *v;
	const expr *e;
	bool minus;

	lex_need(p->l, "(");
	minus = lex_eat(p->l, "-");
	v = lex_take(p->l);
	if (v->kind == LEX_INT) {
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

static const expr *parse_index(struct parser *p, bool is_inside)
{
	const ix_form *f;
	int64_t lo, hi;

	lex_take(p->l);
	lex_need(p->l, "(");
	f = parse_form(p);
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

static const expr *parse_cast(struct parser *p)
{
	const expr *e;
	tn_dtype t;

	lex_take(p->l);
	lex_need(p->l, "(");
	e = parse_expr(p);
	lex_need(p->l, ",");
	t = parse_dtype(p);
	lex_need(p->l, ")");
	return ex_cast(p->s, t, e);
}

static struct value parse_call(struct parser *p)
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

static bool is_param(const struct parser *p, const lex_token *t)
{
	return p->acc != NULL && t->n == 2 && !lex_is2(p->l, 1, "[") &&
		(t->at[0] == 'x' || t->at[0] == 'y') && t->at[1] >= '0' &&
		t->at[1] < '0' + p->n_comp;
}

static struct value parse_named(struct parser *p)
{
	const lex_token *t = lex_peek(p->l);
	tn_dtype dtype;
	struct value v = {0};

	if (is_param(p, t)) {
		int32_t k = t->at[1] - '0';

		lex_take(p->l);
		v.e = ex_param(p->s, p->acc[k],
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

static struct value parse_unary(struct parser *p)
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

static struct value parse_value(struct parser *p, int32_t level)
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

static struct parser in_scope(lex *l, ir_system *s, const ir_scope *in)
{
	return (struct parser){.l = l,
		.s = s,
		.tensor = in->tensor,
		.dom = in->dom,
		.n_names = in->n_names,
		.names = in->names,
		.n_comp = in->n_params,
		.acc = in->param};
}

const ix_form *ir_form_parse(lex *l, ir_system *s, const ir_scope *in)
{
	struct parser p = in_scope(l, s, in);

	return parse_form(&p);
}

const expr *ir_expr_parse(lex *l, ir_system *s, const ir_scope *in)
{
	struct parser p = in_scope(l, s, in);

	return parse_expr(&p);
}

const expr *sys_parse_params(ir_system *s, const char *text, size_t n,
	int32_t n_comp, const tn_dtype *acc)
{
	struct parser p = {.s = s, .n_comp = n_comp, .acc = acc};
	const expr *e;

	p.l = lex_new(s->a, "monoid", text, n, (loc){0}, false);
	e = parse_expr(&p);
	if (lex_peek(p.l)->kind != LEX_END)
		lex_unexpected(p.l, "the end");
	return e;
}

/* ---- equations ---- */

/* i:4, t:5 up, ... up to the closing token, which stays */
static void parse_axes(struct parser *p, sys_eqn *e, const char **names,
	int64_t *extent, axis_kind kind)
{
	do {
		const lex_token *at = lex_peek(p->l);
		sys_axis *axis = &e->axis[e->n_axes];

		fail_if(p, e->n_axes >= IR_MAX_AXES, at, "axes",
			"an equation has more axes than are accepted");
		axis->name = lex_name(p->l, "an axis");
		axis->kind = kind;
		lex_need(p->l, ":");
		axis->extent = lex_int(p->l, "an extent");
		fail_if(p, axis->extent < 1, at, "axes",
			"an axis must have at least one element");
		for (int32_t i = 0; i < e->n_axes; i++)
			fail_if(p, strcmp(names[i], axis->name) == 0, at,
				"axes", "two axes have one name");
		if (kind == AXIS_P && (lex_is(p->l, "up") || lex_is(p->l, "down"))) {
			fail_if(p, e->scan_axis >= 0, at, "axes",
				"an equation can have one scan axis");
			axis->kind = AXIS_S;
			e->scan_axis = e->n_axes;
			e->scan_step = lex_eat(p->l, "up") ? 1 : -1;
			if (e->scan_step < 0)
				lex_need(p->l, "down");
		}
		names[e->n_axes] = axis->name;
		extent[e->n_axes] = axis->extent;
		e->n_axes++;
	} while (lex_eat(p->l, ","));
}

static void parse_results(struct parser *p, sys_eqn *e)
{
	bool tuple = lex_eat(p->l, "(");

	do {
		const lex_token *at = lex_peek(p->l);

		fail_if(p, e->n_out >= IR_MAX_OUT, at, "syntax",
			"too many results");
		e->out[e->n_out++] = find_tensor(p, lex_take(p->l));
		fail_if(p, p->s->tensor.at[e->out[e->n_out - 1]].eqn >= 0 ||
				p->s->tensor.at[e->out[e->n_out - 1]].is_input,
			at, "name", "this tensor has an equation already");
		for (int32_t k = 0; k + 1 < e->n_out; k++)
			fail_if(p, e->out[k] == e->out[e->n_out - 1], at,
				"name", "a tensor occurs twice");
	} while (tuple && lex_eat(p->l, ","));
	if (tuple)
		lex_need(p->l, ")");
}

/* The batch, one axis of each operand and each result: "(0, 0), (2, 2)". */
static void parse_batch(struct parser *p, sys_eqn *e)
{
	VEC(int32_t) v = {0};
	int32_t n = e->n_opaque_in + e->n_out;

	do {
		lex_need(p->l, "(");
		for (int32_t t = 0; t < n; t++) {
			const lex_token *at;
			int32_t tensor = t < e->n_opaque_in
				? e->opaque_in[t]
				: e->out[t - e->n_opaque_in];
			int64_t axis;

			if (t > 0)
				lex_need(p->l, ",");
			at = lex_peek(p->l);
			axis = lex_int(p->l, "an axis");
			fail_if(p, axis < 0 ||
					axis >= p->s->tensor.at[tensor].rank,
				at, "axes", "the tensor has no such axis");
			*vec_push(p->s->a, &v) = (int32_t)axis;
		}
		lex_need(p->l, ")");
	} while (lex_eat(p->l, ","));
	e->n_batch = v.n / n;
	e->batch = v.at;
}

static void parse_opaque(struct parser *p, sys_eqn *e)
{
	VEC(int32_t) in = {0};
	VEC(int64_t) attr = {0};
	const lex_token *at = lex_peek(p->l);
	const char *name = lex_name(p->l, "an opaque operation");

	e->opaque = ir_opaque_find(name);
	fail_if(p, e->opaque == NULL, at, "name", "there is no such opaque "
		"operation");
	lex_need(p->l, "(");
	while (!lex_is(p->l, ")") && !lex_is(p->l, ";")) {
		*vec_push(p->s->a, &in) = find_tensor(p, lex_take(p->l));
		if (!lex_eat(p->l, ","))
			break;
	}
	e->n_opaque_in = in.n;
	e->opaque_in = in.at;
	while (lex_eat(p->l, ";")) {
		if (lex_eat(p->l, "each")) {
			parse_batch(p, e);
			break;
		}
		do
			*vec_push(p->s->a, &attr) =
				lex_int(p->l, "an attribute");
		while (lex_eat(p->l, ","));
	}
	lex_need(p->l, ")");
	e->n_opaque_attr = attr.n;
	e->opaque_attr = attr.at;
}

static void parse_tuple(struct parser *p, int32_t n, const expr **out)
{
	if (n > 1)
		lex_need(p->l, "(");
	for (int32_t k = 0; k < n; k++) {
		if (k > 0)
			lex_need(p->l, ",");
		out[k] = parse_expr(p);
	}
	if (n > 1)
		lex_need(p->l, ")");
}

static int32_t parse_monoid(struct parser *p, int32_t n_out)
{
	const lex_token *at = lex_peek(p->l);

	if (lex_eat(p->l, "="))
		return IR_SET;
	for (int32_t m = 0; m < ir_monoid_n(); m++) {
		const ir_monoid *row = ir_monoid_at(m);

		if (lex_eat(p->l, row->token) ||
			(lex_is(p->l, row->name) && lex_is2(p->l, 1, "=") &&
				lex_take(p->l) && lex_eat(p->l, "="))) {
			fail_if(p, row->n_comp != n_out, at, "syntax",
				"the number of results differs from the "
				"number of components");
			return m;
		}
	}
	lex_unexpected(p->l, "'=' or a monoid");
}

/*
 * The axes that are reduced stand behind the body, which needs them: they are
 * looked for first.
 */
static int32_t skip_body(struct parser *p)
{
	int32_t here = p->l->next, depth = 0, found;

	while (lex_peek(p->l)->kind != LEX_END) {
		if (lex_is(p->l, "(") || lex_is(p->l, "["))
			depth++;
		else if (lex_is(p->l, ")") || lex_is(p->l, "]"))
			depth--;
		else if (depth == 0 &&
			(lex_is(p->l, "for") || lex_is(p->l, "from") ||
				lex_is(p->l, "return") || lex_is(p->l, "}") ||
				lex_is2(p->l, 2, "#")))
			break;
		lex_take(p->l);
	}
	found = p->l->next;
	p->l->next = here;
	return found;
}

static void parse_init(struct parser *p, sys_eqn *e)
{
	static const char *const at[] = {"at"};

	if (e->push != NULL) {
		int64_t *numel = arena_array(p->s->a, int64_t, 1);

		*numel = p->s->tensor.at[e->out[0]].numel;
		p->dom.box = (ix_box){.n = 1, .extent = numel};
		p->n_names = 1;
		p->names = at;
	} else {
		p->dom.box.n = e->n_left;
		p->n_names = e->n_left;
	}
	parse_tuple(p, e->n_out, e->init);
}

static void parse_pull(struct parser *p, sys_eqn *e)
{
	const char **names = arena_array(p->s->a, const char *, IR_MAX_AXES);
	int64_t *extent = arena_array(p->s->a, int64_t, IR_MAX_AXES);
	int32_t push = -1, body, end;

	if (lex_eat(p->l, "{")) {
		push = p->l->next;
		while (!lex_is(p->l, "}") && lex_peek(p->l)->kind != LEX_END)
			lex_take(p->l);
		lex_need(p->l, "}");
	}
	fail_if(p, e->n_out > IR_MAX_COMP, lex_peek(p->l), "syntax",
		"an equation can make at most three tensors");
	lex_need(p->l, "[");
	if (!lex_is(p->l, "]"))
		parse_axes(p, e, names, extent, AXIS_P);
	lex_need(p->l, "]");
	e->n_left = e->n_axes;
	e->monoid = parse_monoid(p, e->n_out);
	body = p->l->next;
	p->l->next = skip_body(p);
	if (lex_eat(p->l, "for"))
		parse_axes(p, e, names, extent, AXIS_R);
	end = p->l->next;
	p->dom.box = (ix_box){.n = e->n_axes, .extent = extent};
	p->n_names = e->n_axes;
	p->names = names;
	if (push >= 0) {
		p->l->next = push;
		e->push = parse_form(p);
		if (!lex_is(p->l, "}"))
			lex_unexpected(p->l, "'}'");
	}
	p->l->next = body;
	parse_tuple(p, e->n_out, e->body);
	if (p->l->next < end && !lex_is(p->l, "for"))
		lex_unexpected(p->l, "'for' or 'from'");
	p->l->next = end;
	if (lex_eat(p->l, "from"))
		parse_init(p, e);
}

static const char *parse_label(struct parser *p)
{
	const char *name = lex_name(p->l, "a label");

	return strcmp(name, "_") == 0 ? NULL : name;
}

static void parse_eqn(struct parser *p)
{
	sys_eqn e = {.monoid = IR_SET, .scan_axis = -1};
	const lex_token *at = lex_peek(p->l);

	e.label = parse_label(p);
	e.op = parse_label(p);
	lex_need(p->l, "#");
	e.call = (int32_t)lex_int(p->l, "the number of a call");
	lex_need(p->l, ":");
	parse_results(p, &e);
	if (lex_is(p->l, "=") && lex_is2(p->l, 1, "opaque") &&
		lex_is2(p->l, 3, "(")) {
		lex_need(p->l, "=");
		lex_need(p->l, "opaque");
		parse_opaque(p, &e);
	} else {
		parse_pull(p, &e);
	}
	fail_if(p, p->s->eqn.n >= 1 << 24, at, "size", "too many equations");
	ir_add_eqn(p->s, &e);
}

/* ---- tensors ---- */

static void parse_shape(struct parser *p, int32_t *rank, int64_t *shape)
{
	*rank = 0;
	lex_need(p->l, "[");
	while (!lex_is(p->l, "]")) {
		const lex_token *at = lex_peek(p->l);

		fail_if(p, *rank >= TN_MAX_RANK, at, "shape",
			"the rank is more than 8");
		shape[*rank] = lex_int(p->l, "an extent");
		fail_if(p, shape[(*rank)++] < 0, at, "shape",
			"an extent is negative");
		if (!lex_eat(p->l, ","))
			break;
	}
	lex_need(p->l, "]");
}

static void parse_tensor(struct parser *p)
{
	const lex_token *at = lex_peek(p->l);
	const char *name = lex_name(p->l, "a tensor");
	int64_t shape[TN_MAX_RANK] = {0};
	int32_t rank, number;
	tn_dtype t;

	fail_if(p, map_get_str(p->tensor, name, -1) >= 0, at, "name",
		"two tensors have one name");
	lex_need(p->l, ":");
	t = parse_dtype(p);
	parse_shape(p, &rank, shape);
	fail_if(p, shape_numel(shape, rank) < 0, at, "shape",
		"the tensor has more than 2^48 elements");
	number = ir_add_tensor(p->s, name, t, rank, shape);
	map_set_str(p->tensor, name, number);
	if (lex_eat(p->l, "input")) {
		const lex_token *place = lex_peek(p->l);
		int64_t k = lex_int(p->l, "the number of an input");

		fail_if(p, k < 0 || k > 1 << 20, place, "number",
			"this is not the number of an input");
		while (p->s->input.n <= k)
			*vec_push(p->s->a, &p->s->input) = -1;
		fail_if(p, p->s->input.at[k] >= 0, place, "number",
			"two tensors are this input");
		p->s->input.at[k] = number;
		p->s->tensor.at[number].is_input = true;
	}
	if (lex_eat(p->l, "storage"))
		p->s->tensor.at[number].storage =
			(int32_t)lex_int(p->l, "the number of a storage");
}

ir_system *ir_system_parse(
	arena *a, ix *x, const char *text, size_t n, const char *file)
{
	struct parser p = {.tensor = map_new(a)};

	p.l = lex_new(a, "system", text, n, (loc){.file = file}, true);
	p.s = ir_system_new(a, x);
	lex_need(p.l, "system");
	lex_need(p.l, "{");
	while (lex_is2(p.l, 1, ":"))
		parse_tensor(&p);
	for (int32_t i = 0; i < p.s->input.n; i++)
		fail_if(&p, p.s->input.at[i] < 0, lex_peek(p.l), "number",
			"an input is missing");
	while (!lex_is(p.l, "return"))
		parse_eqn(&p);
	lex_need(p.l, "return");
	while (!lex_is(p.l, "}")) {
		int32_t t = find_tensor(&p, lex_take(p.l));

		*vec_push(a, &p.s->output) = t;
		p.s->tensor.at[t].is_output = true;
		if (!lex_eat(p.l, ","))
			break;
	}
	lex_need(p.l, "}");
	sys_check(p.s, TN_EINVAL);
	return p.s;
}
