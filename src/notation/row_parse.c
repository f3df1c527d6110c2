/*
 * row_parse.c: parses a row of the notation into a tree.
 *
 * Consumes untrusted text; throws notation.* with a caret. The grammar is that
 * of docs/notation.md, with one function per rule. At the end row_check.c
 * checks names.
 *
 *     relu(x[i..]:num) -> o { o[i..] = max(x[i..], 0) }
 */
#include "notation/row.h"


#include <math.h>

typedef VEC(const row_node *) node_list;

static const row_node *parse_expr(lex *l);
static const row_node *parse_level(lex *l, int32_t level);

static row_node *make(lex *l, rn_kind kind, const lex_token *at, int32_t n,
	const row_node *const *arg)
{
	row_node *e = arena_make(l->a, row_node);

	e->kind = kind;
	e->at = at;
	e->n = n;
	e->arg = n > 0 ? arena_copy(l->a, arg, (size_t)n * sizeof *arg) : NULL;
	return e;
}

static row_node *make1(
	lex *l, rn_kind kind, const lex_token *at, const row_node *a)
{
	return make(l, kind, at, 1, &a);
}

static row_node *make2(lex *l, rn_kind kind, const lex_token *at,
	const row_node *a, const row_node *b)
{
	return make(l, kind, at, 2, (const row_node *[]){a, b});
}

static row_node *make3(lex *l, rn_kind kind, const lex_token *at,
	const row_node *a, const row_node *b, const row_node *c)
{
	return make(l, kind, at, 3, (const row_node *[]){a, b, c});
}

/* ---- expressions ---- */

/* Parses expr {"," expr} and the closing symbol. */
static void parse_list(lex *l, const char *close, node_list *out)
{
	if (lex_eat(l, close))
		return;
	do
		*vec_push(l->a, out) = parse_expr(l);
	while (lex_eat(l, ","));
	lex_need(l, close);
}

static const row_node *parse_number(lex *l)
{
	const lex_token *t = lex_take(l);
	row_node *e = make(
		l, t->kind == LEX_INT ? RN_INT : RN_REAL, t, 0, NULL);

	if (t->kind == LEX_INT && t->i == INT64_MIN)
		lex_fail(l, t, "number", "2^63 does not fit 64 bits");
	e->i = t->i;
	e->f = t->f;
	return e;
}

/*
 * Parses the operand of @ or \: a name, a number, a list, or an expression in
 * parentheses.
 */
static const row_node *parse_which(lex *l)
{
	const lex_token *t = lex_peek(l);
	node_list v = {0};
	row_node *e;

	if (t->kind == LEX_INT)
		return parse_number(l);
	if (lex_is(l, "-") && lex_peek2(l, 1)->kind == LEX_INT) {
		lex_take(l);
		return make1(l, RN_NEG, t, parse_number(l));
	}
	if (t->kind == LEX_NAME) {
		e = make(l, RN_NAME, t, 0, NULL);
		e->name = lex_name(l, "a name");
		return e;
	}
	if (lex_eat(l, "[")) {
		parse_list(l, "]", &v);
		return make(l, RN_LIST, t, v.n, v.at);
	}
	lex_need(l, "(");
	e = arena_copy(l->a, parse_expr(l), sizeof *e);
	lex_need(l, ")");
	return e;
}

/* NAME, NAME.., NAME..@list, NAME..\list:keep */
static const row_node *parse_axis(lex *l)
{
	const lex_token *t = lex_peek(l);
	row_node *e = make(l, RN_NAME, t, 0, NULL);
	const row_node *list, *keep = NULL;

	e->name = lex_name(l, "a letter");
	if (!lex_eat(l, ".."))
		return e;
	e->kind = RN_PACK;
	if (lex_eat(l, "@"))
		return make2(l, RN_PICK, t, e, parse_which(l));
	if (!lex_eat(l, "\\"))
		return e;
	list = parse_which(l);
	if (lex_eat(l, ":"))
		keep = parse_which(l);
	return keep == NULL ? make2(l, RN_DROP, t, e, list)
			    : make3(l, RN_DROP, t, e, list, keep);
}

static const row_node *parse_read(lex *l)
{
	const lex_token *t = lex_peek(l);
	const char *name = lex_name(l, "a tensor");
	node_list v = {0};
	row_node *e;

	lex_need(l, "[");
	if (lex_is(l, "*") && lex_is2(l, 1, "]")) {
		const lex_token *star = lex_take(l);

		*vec_push(l->a, &v) = make(l, RN_STAR, star, 0, NULL);
		lex_need(l, "]");
	} else {
		parse_list(l, "]", &v);
	}
	e = make(l, RN_READ, t, v.n, v.at);
	e->name = name;
	return e;
}

static const row_node *parse_call(lex *l)
{
	const lex_token *t = lex_peek(l);
	const char *name = lex_name(l, "a function");
	node_list v = {0};
	row_node *e;

	lex_need(l, "(");
	parse_list(l, ")", &v);
	e = make(l, RN_CALL, t, v.n, v.at);
	e->name = name;
	return e;
}

static const row_node *parse_paren(lex *l)
{
	const lex_token *t = lex_peek(l);
	node_list v = {0};

	lex_need(l, "(");
	parse_list(l, ")", &v);
	if (v.n == 0)
		lex_fail(l, t, "syntax", "the parentheses are empty");
	return v.n == 1 ? v.at[0] : make(l, RN_TUPLE, t, v.n, v.at);
}

static const row_node *parse_word(lex *l)
{
	const lex_token *t = lex_peek(l);
	row_node *e;

	if (lex_is2(l, 1, "["))
		return parse_read(l);
	if (lex_is2(l, 1, "("))
		return parse_call(l);
	if (lex_is(l, "inf") || lex_is(l, "nan")) {
		e = make(l, RN_REAL, t, 0, NULL);
		e->f = lex_is(l, "inf") ? HUGE_VAL : (double)NAN;
		lex_take(l);
		return e;
	}
	return parse_axis(l);
}

static const row_node *parse_unary(lex *l)
{
	const lex_token *t = lex_peek(l);
	node_list v = {0};

	if (t->kind == LEX_INT || t->kind == LEX_REAL)
		return parse_number(l);
	if (lex_eat(l, "-"))
		return make1(l, RN_NEG, t, parse_level(l, LEX_UNARY));
	if (lex_eat(l, "#"))
		return make1(l, RN_SIZE, t, parse_axis(l));
	if (lex_is(l, "("))
		return parse_paren(l);
	if (lex_eat(l, "[")) {
		parse_list(l, "]", &v);
		return make(l, RN_LIST, t, v.n, v.at);
	}
	if (t->kind == LEX_NAME)
		return parse_word(l);
	lex_unexpected(l, "an expression");
}

static const row_node *binary(lex *l, const lex_operator *op,
	const lex_token *at, const row_node *a, const row_node *b)
{
	row_node *e = make2(l, RN_BINARY, at, a, b);

	e->op = op;
	return e;
}

/*
 * Parses operators that bind at least as strongly as `level`; a < b < c means a
 * < b and b < c.
 */
static const row_node *parse_level(lex *l, int32_t level)
{
	const row_node *e, *last, *right, *one;
	const lex_operator *op;
	bool chained = false;

	lex_enter(l);
	e = last = parse_unary(l);
	while ((op = lex_operator_next(l)) != NULL && op->level >= level) {
		const lex_token *at = lex_take(l);

		right = parse_level(l, op->level + 1);
		if (op->level == LEX_COMPARE && chained) {
			one = binary(l, op, at, last, right);
			e = binary(l, lex_operator_of("and"), at, e, one);
		} else {
			e = binary(l, op, at, e, right);
		}
		chained = op->level == LEX_COMPARE;
		last = right;
	}
	lex_leave(l);
	return e;
}

static const row_node *parse_else(lex *l)
{
	const lex_token *t = lex_peek(l);

	if (lex_eat(l, "skip"))
		return make(l, RN_SKIP, t, 0, NULL);
	return parse_expr(l);
}

static const row_node *parse_expr(lex *l)
{
	const row_node *e, *c, *other;
	const lex_token *t;

	lex_enter(l);
	e = parse_level(l, LEX_OR);
	t = lex_peek(l);
	if (lex_eat(l, "?")) {
		c = e;
		e = parse_expr(l);
		lex_need(l, ":");
		e = make3(l, RN_COND, t, c, e, parse_expr(l));
	} else if (lex_eat(l, "where")) {
		c = parse_level(l, LEX_OR);
		lex_need(l, "else");
		other = parse_else(l);
		e = make3(l, RN_WHERE, t, c, e, other);
	} else if (lex_eat(l, "else")) {
		e = make2(l, RN_ELSE, t, e, parse_else(l));
	}
	lex_leave(l);
	return e;
}

/* ---- patterns and parameters ---- */

typedef VEC(row_pat) pat_list;

static void parse_pats(lex *l, const char *close, pat_list *out);

static row_pat parse_pat(lex *l)
{
	const lex_token *t = lex_peek(l);
	row_pat p = {.at = t};
	pat_list sub = {0};

	if (t->kind == LEX_INT) {
		p.kind = PAT_INT;
		p.i = lex_int(l, "an extent");
		return p;
	}
	if (lex_eat(l, "(")) {
		lex_enter(l);
		parse_pats(l, ")", &sub);
		lex_leave(l);
		p.kind = PAT_COMP;
		p.n = sub.n;
		p.sub = sub.at;
		return p;
	}
	if (lex_eat(l, "~")) {
		p.kind = PAT_JOIN;
		p.name = lex_name(l, "a letter");
		lex_need(l, "..");
		return p;
	}
	p.name = lex_name(l, "a letter, a number or '('");
	if (lex_eat(l, "..")) {
		p.kind = PAT_PACK;
		if (lex_eat(l, "(")) {
			p.extent = parse_expr(l);
			lex_need(l, ")");
		}
	} else if (lex_eat(l, "=")) {
		p.extent = parse_level(l, LEX_SUM);
	}
	return p;
}

static void parse_pats(lex *l, const char *close, pat_list *out)
{
	if (lex_eat(l, close))
		return;
	do
		*vec_push(l->a, out) = parse_pat(l);
	while (lex_eat(l, ","));
	lex_need(l, close);
}

static const char *text_between(
	lex *l, const lex_token *from, const lex_token *to)
{
	const char *end = to->at;

	while (end > from->at &&
		(end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\t'))
		end--;
	return arena_strndup(l->a, from->at, (size_t)(end - from->at));
}

static bool one_of(const char *s, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strcmp(s, *list) == 0)
			return true;
	return false;
}

static void parse_operand(lex *l, row_param *p)
{
	static const char *const classes[] = {
		"num", "float", "int", "bool", NULL};
	const lex_token *from = lex_peek(l), *t;
	pat_list pats = {0};

	p->info.is_operand = true;
	p->info.dtype_class = "";
	parse_pats(l, "]", &pats);
	p->info.pattern = text_between(l, from, lex_peek2(l, -1));
	p->n_pats = pats.n;
	p->pat = pats.at;
	if (!lex_eat(l, ":"))
		return;
	t = lex_peek(l);
	p->info.dtype_class = lex_name(l, "a class of dtypes");
	if (!one_of(p->info.dtype_class, classes))
		lex_fail(l, t, "class",
			"%s is not a class of dtypes; accepted are num, "
			"float, int and bool",
			p->info.dtype_class);
}

static void parse_attribute(lex *l, row_param *p)
{
	static const char *const kinds[] = {"int", "real", "flag", "ints",
		"axis", "axes", "mask", "perm", "dtype", "string", NULL};
	const lex_token *t = lex_peek(l), *from;

	p->info.kind = lex_name(l, "a kind of attribute");
	if (!one_of(p->info.kind, kinds))
		lex_fail(l, t, "kind",
			"%s is not a kind of attribute; accepted are int, "
			"real, flag, ints, axis, axes, mask, perm and dtype",
			p->info.kind);
	if (lex_eat(l, "@")) {
		if (strcmp(p->info.kind, "ints") != 0)
			lex_fail(l, t, "kind",
				"only an attribute of kind ints can be "
				"parallel to another attribute");
		p->along = lex_name(l, "an attribute");
	}
	if (!lex_eat(l, "="))
		return;
	from = lex_peek(l);
	p->by_default = parse_level(l, LEX_SUM);
	p->info.default_text = text_between(l, from, lex_peek(l));
}

static row_param parse_param(lex *l)
{
	row_param p = {.at = lex_peek(l)};

	p.info.name = lex_name(l, "an operand or an attribute");
	if (lex_eat(l, "["))
		parse_operand(l, &p);
	else if (lex_eat(l, ":"))
		parse_attribute(l, &p);
	else
		lex_unexpected(l, "'[' of an operand or ':' of an attribute");
	return p;
}

/*
 * Parses a result; that of an opaque row has a pattern: k[a.., n]: i64. Behind
 * the colon is a dtype, or an attribute that is one.
 */
static row_param parse_result(lex *l, bool is_opaque)
{
	row_param p = {.at = lex_peek(l)};
	pat_list pats = {0};

	p.info.name = lex_name(l, "a result");
	if (!is_opaque)
		return p;
	lex_need(l, "[");
	parse_pats(l, "]", &pats);
	p.n_pats = pats.n;
	p.pat = pats.at;
	if (lex_eat(l, ":")) {
		const lex_token *t = lex_take(l);

		if (t->kind != LEX_NAME)
			lex_fail(l, t, "dtype", "this is not a dtype");
		p.has_dtype = dtype_parse(t->at, (size_t)t->n, &p.dtype);
		if (!p.has_dtype)
			p.dtype_of = arena_strndup(l->a, t->at, (size_t)t->n);
	}
	return p;
}

/* ---- statements ---- */

static int32_t parse_monoid(lex *l)
{
	for (int32_t m = 0; m < ir_monoid_n(); m++) {
		const ir_monoid *row = ir_monoid_at(m);

		if (lex_eat(l, row->token))
			return m;
		if (lex_is(l, row->name) && lex_is2(l, 1, "=")) {
			lex_take(l);
			lex_take(l);
			return m;
		}
	}
	if (!lex_eat(l, "="))
		lex_unexpected(l, "'=', '+=' or another monoid");
	return IR_SET;
}

static void parse_fors(lex *l, row_stmt *s)
{
	VEC(row_for) v = {0};

	do {
		row_for f = {.at = lex_peek(l)};

		f.name = lex_name(l, "a letter");
		f.is_pack = lex_eat(l, "..");
		lex_need(l, "<");
		f.extent = parse_level(l, LEX_SUM);
		*vec_push(l->a, &v) = f;
	} while (lex_eat(l, ","));
	s->n_fors = v.n;
	s->fors = v.at;
}

static void parse_left(lex *l, row_stmt *s)
{
	bool tuple = lex_eat(l, "(");
	node_list v = {0};

	do {
		const lex_token *t = lex_peek(l);

		if (s->n_out >= IR_MAX_COMP)
			lex_fail(l, t, "syntax",
				"an equation can have at most %d results",
				IR_MAX_COMP);
		s->out[s->n_out++] = lex_name(l, "a tensor");
	} while (tuple && lex_eat(l, ","));
	if (tuple)
		lex_need(l, ")");
	lex_need(l, "[");
	parse_list(l, "]", &v);
	s->n_left = v.n;
	s->left = v.at;
}

static row_stmt parse_stmt(lex *l)
{
	row_stmt s = {.at = lex_peek(l), .monoid = IR_SET};
	int32_t n_comp;

	if (lex_is(l, "let") && lex_peek2(l, 1)->kind == LEX_NAME) {
		lex_take(l);
		s.kind = STMT_LET;
		s.name = lex_name(l, "a name");
		lex_need(l, "=");
		s.expr = parse_expr(l);
		return s;
	}
	if (lex_is(l, "check") && !lex_is2(l, 1, "[")) {
		lex_take(l);
		s.kind = STMT_CHECK;
		s.expr = parse_expr(l);
		return s;
	}
	s.kind = STMT_EQN;
	parse_left(l, &s);
	s.at = lex_peek(l);
	s.monoid = parse_monoid(l);
	n_comp = s.monoid == IR_SET ? 1 : ir_monoid_at(s.monoid)->n_comp;
	if (n_comp != s.n_out)
		lex_fail(l, s.at, "arity",
			"%s has %d results, but %d are on the left",
			s.monoid == IR_SET ? "=" : ir_monoid_at(s.monoid)->token,
			n_comp, s.n_out);
	s.expr = parse_expr(l);
	if (n_comp > 1 && (s.expr->kind != RN_TUPLE || s.expr->n != n_comp))
		lex_fail(l, s.expr->at, "arity",
			"%s needs an element of %d components",
			ir_monoid_at(s.monoid)->token, n_comp);
	if (lex_eat(l, "for"))
		parse_fors(l, &s);
	return s;
}

static bool at_grad(const lex *l)
{
	return lex_is(l, "grad") && lex_is2(l, 1, "{");
}

/* Parses statements up to "}" or the grad block, which it does not consume. */
static void parse_stmts(lex *l, int32_t *n, const row_stmt **out)
{
	VEC(row_stmt) v = {0};

	while (!lex_is(l, "}") && !at_grad(l)) {
		row_stmt s = parse_stmt(l);

		s.end = lex_peek2(l, -1);
		*vec_push(l->a, &v) = s;
		if (!lex_eat(l, ";"))
			break;
	}
	*n = v.n;
	*out = v.at;
}

static void parse_head(lex *l, ir_row *r)
{
	VEC(row_param) params = {0}, results = {0};

	r->is_opaque = lex_is(l, "opaque") && lex_peek2(l, 1)->kind == LEX_NAME;
	if (r->is_opaque)
		lex_take(l);
	r->name = lex_name(l, "the name of the operation");
	lex_need(l, "(");
	while (!lex_is(l, ")")) {
		*vec_push(l->a, &params) = parse_param(l);
		r->n_operands += params.at[params.n - 1].info.is_operand;
		if (!lex_eat(l, ","))
			break;
	}
	lex_need(l, ")");
	lex_need(l, "->");
	do
		*vec_push(l->a, &results) = parse_result(l, r->is_opaque);
	while (lex_eat(l, ","));
	r->n_params = params.n;
	r->param = params.at;
	r->n_results = results.n;
	r->result = results.at;
}

ir_row *row_parse(arena *a, const char *text, size_t n, loc at)
{
	const char *own = arena_strndup(a, text, n);
	lex *l = lex_new(a, "notation", own, n, at, false);
	ir_row *r = arena_make(a, ir_row);

	r->l = l;
	r->doc = "";
	parse_head(l, r);
	lex_need(l, "{");
	parse_stmts(l, &r->n_stmts, &r->stmt);
	if (at_grad(l)) {
		r->has_grad = true;
		lex_take(l);
		lex_need(l, "{");
		parse_stmts(l, &r->n_grads, &r->grad);
		lex_need(l, "}");
		lex_eat(l, ";");
	}
	lex_need(l, "}");
	if (lex_peek(l)->kind != LEX_END)
		lex_unexpected(l, "the end of the row");
	r->text = own;
	row_check(r);
	return r;
}
