/*
 * parse_value.c: parses names, types, forms and instructions.
 */
#include "kern/parse.h"

#include <math.h>

/* Statements are parsed in order, so lines are counted once. */
void kern_parse_place(struct kern_parser *p, const lex_token *t, int32_t *line,
	int32_t *column)
{
	for (; p->at < t->at; p->at++) {
		p->column++;
		if (*p->at == '\n') {
			p->line++;
			p->column = 1;
		}
	}
	*line = p->line;
	*column = p->column;
}

int64_t kern_parse_int(
	struct kern_parser *p, int64_t lo, int64_t hi, const char *what)
{
	const lex_token *t = lex_peek(p->l);
	int64_t v = lex_int(p->l, what);

	if (v < lo || v > hi)
		lex_fail(p->l, t, "number", "%s must be %lld to %lld", what,
			(long long)lo, (long long)hi);
	return v;
}

/* ---- types ---- */

tn_dtype kern_parse_dtype(struct kern_parser *p)
{
	const lex_token *t = lex_take(p->l);
	tn_dtype dt;

	if (t->kind != LEX_NAME || !dtype_parse(t->at, (size_t)t->n, &dt))
		lex_fail(p->l, t, "syntax",
			"a dtype must be here, such as f32 or i64");
	return dt;
}

static bool is_lanes(int64_t n)
{
	return n >= 1 && n <= KERN_MAX_LANES && (n & (n - 1)) == 0;
}

static bool digits(const char *s, int32_t n, int64_t *out)
{
	*out = 0;
	for (int32_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9' || i > 3)
			return false;
		*out = 10 * *out + (s[i] - '0');
	}
	return n > 0;
}

/* "f32", "f32x16", "m4x16" */
static bool as_type(const lex_token *t, kern_type *out)
{
	const char *x;
	int64_t lanes = 1, bytes = 0;
	int32_t n = t->n;
	tn_dtype dt = TN_BOOL;

	if (t->kind != LEX_NAME)
		return false;
	x = memchr(t->at, 'x', (size_t)t->n);
	if (x != NULL) {
		n = (int32_t)(x - t->at);
		if (!digits(x + 1, t->n - n - 1, &lanes) || !is_lanes(lanes) ||
			lanes == 1)
			return false;
	}
	if (x != NULL && t->at[0] == 'm') {
		if (!digits(t->at + 1, n - 1, &bytes) || bytes > 8 ||
			!is_lanes(bytes))
			return false;
		*out = kern_mask((int32_t)bytes, (int32_t)lanes);
		return true;
	}
	if (!dtype_parse(t->at, (size_t)n, &dt) ||
		(dt == TN_BOOL && lanes > 1))
		return false;
	*out = kern_num(dt, (int32_t)lanes);
	return true;
}

kern_type kern_parse_type(struct kern_parser *p)
{
	const lex_token *t = lex_peek(p->l);
	kern_type r;

	if (!as_type(t, &r))
		lex_fail(p->l, t, "syntax",
			"a type must be here: a dtype such as f32, one with lanes (up to %d) such as f32x16, or a mask such as m4x16",
			KERN_MAX_LANES);
	lex_take(p->l);
	return r;
}

/* ---- values ---- */

const lex_token *kern_parse_name(struct kern_parser *p)
{
	const lex_token *t;

	lex_need(p->l, "%");
	t = lex_take(p->l);
	if (t->kind != LEX_NAME && t->kind != LEX_INT)
		lex_fail(p->l, t, "syntax",
			"the name of a value must follow '%%'");
	if (map_get(p->value, t->at, (size_t)t->n, 0) != 0)
		lex_fail(p->l, t, "name", "%%%.*s is defined twice", t->n,
			t->at);
	return t;
}

void kern_parse_know(struct kern_parser *p, const lex_token *name, kern_val v)
{
	map_set(p->value, name->at, (size_t)name->n, v);
	while (p->scope.n <= v)
		*vec_push(p->l->a, &p->scope) = -1;
	p->scope.at[v] = p->blocks.at[p->blocks.n - 1];
}

static kern_val known(struct kern_parser *p)
{
	const lex_token *t;
	kern_val v;

	lex_need(p->l, "%");
	t = lex_take(p->l);
	v = (kern_val)map_get(p->value, t->at, (size_t)t->n, 0);
	if (v == 0)
		lex_fail(p->l, t, "name",
			"%%%.*s is not defined yet: a value must be defined before it is used",
			t->n, t->at);
	if (!p->open.at[p->scope.at[v]])
		lex_fail(p->l, t, "name",
			"%%%.*s belongs to a block that has ended", t->n,
			t->at);
	return v;
}

/* dtype(number) */
static kern_val constant(struct kern_parser *p)
{
	tn_dtype dt = kern_parse_dtype(p);
	const lex_token *t;
	bool minus;
	kern_val v;

	lex_need(p->l, "(");
	if (!dtype_is_float(dt)) {
		v = kern_const_i(p->k, dt, lex_int_of(p->l, dt));
	} else {
		double f;

		minus = lex_eat(p->l, "-");
		t = lex_take(p->l);
		f = lex_same(t, "inf")	 ? HUGE_VAL
		    : lex_same(t, "nan") ? (double)NAN
					 : t->f;
		if (t->kind != LEX_REAL && t->kind != LEX_INT && f == 0)
			lex_fail(p->l, t, "syntax", "a number must be here");
		v = kern_const_f(p->k, dt, minus ? -f : f);
	}
	lex_need(p->l, ")");
	return v;
}

static bool is_constant(const struct kern_parser *p)
{
	kern_type t;

	return as_type(lex_peek(p->l), &t) && t.lanes == 1 &&
	       lex_is2(p->l, 1, "(");
}

static bool is_value(const struct kern_parser *p)
{
	return lex_is(p->l, "%") || lex_is(p->l, "chunk") || is_constant(p);
}

kern_val kern_parse_value(struct kern_parser *p)
{
	if (lex_eat(p->l, "chunk"))
		return p->k->phase[p->k->n_phases - 1].chunk;
	if (is_constant(p))
		return constant(p);
	if (!lex_is(p->l, "%"))
		lex_unexpected(p->l,
			"a value (%NAME, chunk, or a constant such as f32(1))");
	return known(p);
}

/* ---- forms ---- */

static const kern_form *term(struct kern_parser *p)
{
	const lex_token *t = lex_peek(p->l);
	const kern_value *x;
	int64_t c = 1;
	kern_val v;

	if (t->kind == LEX_INT) {
		c = lex_int(p->l, "an integer");
		if (!lex_eat(p->l, "*"))
			return kern_form_const(p->k, c);
	}
	t = lex_peek(p->l);
	if (!lex_is(p->l, "%") && !lex_is(p->l, "chunk"))
		lex_unexpected(p->l,
			"a term of a sum (an integer, %NAME, or 2*%NAME)");
	v = kern_parse_value(p);
	x = kern_at(p->k, v);
	if (x->op == KERN_REG || x->type.lanes != 1 ||
		(x->type.dt != TN_I64 && x->type.dt != TN_I32))
		lex_fail(p->l, t, "form",
			"addresses and bounds must be sums of i64 or i32 values that are not registers; this is %s%s",
			x->op == KERN_REG ? "a register of " : "",
			kern_type_text(p->k->a, x->type));
	return kern_form_term(p->k, c, v);
}

const kern_form *kern_parse_form(struct kern_parser *p)
{
	const kern_form *f = kern_form_const(p->k, 0), *t;
	bool minus = lex_eat(p->l, "-");

	for (;;) {
		t = term(p);
		f = minus ? kern_form_sub(p->k, f, t) : kern_form_add(p->k, f, t);
		minus = lex_is(p->l, "-");
		if (!minus && !lex_is(p->l, "+"))
			return f;
		lex_take(p->l);
	}
}

/* ---- arrays ---- */

int32_t kern_parse_array(struct kern_parser *p)
{
	const lex_token *t = lex_take(p->l);
	int64_t i = map_get(p->array, t->at, (size_t)t->n, -1);

	if (t->kind != LEX_NAME || i < 0)
		lex_fail(p->l, t, "name", "%s has no array %.*s", p->k->name,
			t->n, t->at);
	return (int32_t)i;
}

kern_access kern_parse_access(struct kern_parser *p, bool all)
{
	kern_access at = {.array = kern_parse_array(p), .stride = 1};

	lex_need(p->l, "[");
	at.at = kern_parse_form(p);
	lex_need(p->l, "]");
	if (all && lex_eat(p->l, "by"))
		at.by = kern_parse_value(p);
	if (all && lex_eat(p->l, "step"))
		at.stride = lex_int(p->l, "the distance of two lanes");
	if (all && lex_eat(p->l, "part"))
		at.part = (int32_t)kern_parse_int(
			p, 1, KERN_MAX_LANES, "the number of lanes");
	if (all && lex_eat(p->l, "mask"))
		at.mask = kern_parse_value(p);
	if (all && lex_eat(p->l, "whole"))
		at.whole = kern_parse_value(p);
	return at;
}

/* ---- instructions ---- */

static void parse_list(struct kern_parser *p, kern_value *v)
{
	int64_t *l = arena_array(p->k->a, int64_t, v->type.lanes);

	lex_need(p->l, "[");
	for (int32_t i = 0; i < v->type.lanes; i++) {
		if (i > 0)
			lex_need(p->l, ",");
		l[i] = lex_int(p->l, "an integer for each lane");
	}
	lex_need(p->l, "]");
	v->list = l;
}

static void operand(
	struct kern_parser *p, kern_value *v, char kind, int32_t *n)
{
	switch (kind) {
	case 'v':
		v->arg[n[0]++] = kern_parse_value(p);
		break;
	case 'F':
		v->form[n[1]++] = kern_parse_form(p);
		break;
	case '%':
		v->num[n[2]] = lex_eat(p->l, "*")
				       ? (n[2] == 0 ? INT64_MIN : INT64_MAX)
				       : lex_int(p->l, "an integer or '*'");
		n[2]++;
		break;
	case '#':
		v->num[n[2]++] = lex_int(p->l, "an integer");
		break;
	case 'D':
		v->dt = kern_parse_dtype(p);
		break;
	case 'L':
		parse_list(p, v);
		break;
	default:
		v->at = kern_parse_access(p, true);
	}
}

static kern_op find_op(const lex_token *t)
{
	for (int32_t i = 0; i < KERN_N_OPS; i++) {
		const kern_op_row *r = kern_op_at((kern_op)i);

		if (strchr(r->flags, 'd') == NULL && i != KERN_CALL &&
			lex_same(t, r->name))
			return (kern_op)i;
	}
	return KERN_CALL;
}

kern_val kern_parse_ins(struct kern_parser *p, kern_type type)
{
	const lex_token *t = lex_peek(p->l);
	kern_value v = {.op = find_op(t), .type = type};
	int32_t n[3] = {0};

	if (t->kind != LEX_NAME)
		lex_unexpected(p->l, "an instruction");
	lex_take(p->l);
	if (v.op == KERN_CALL) {
		v.fn = ir_scalar_find(t->at, (size_t)t->n);
		if (v.fn < 0)
			lex_fail(p->l, t, "name", "there is no instruction %.*s",
				t->n, t->at);
		for (int32_t i = 0; i < ir_scalar_at(v.fn)->n_args; i++) {
			if (i > 0)
				lex_need(p->l, ",");
			v.arg[i] = kern_parse_value(p);
		}
		return kern_ins(p->k, &v);
	}
	for (const char *o = kern_op_at(v.op)->operands; *o != '\0'; o++) {
		if (n[0] + n[1] + n[2] > 0)
			lex_need(p->l, ",");
		operand(p, &v, *o, n);
	}
	return kern_ins(p->k, &v);
}

kern_val kern_parse_right(struct kern_parser *p, const kern_type *t)
{
	if (is_value(p))
		return kern_parse_value(p);
	return kern_parse_ins(p, t != NULL ? *t : kern_parse_type(p));
}
