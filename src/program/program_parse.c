/*
 * program_parse.c: .tn text into a program.
 *
 *     op double(x[i..]:num) -> o { o[i..] = x[i..] + x[i..] }
 *     program {
 *       x: f32[2,3]                        // an input
 *       t = add(x, 0.5)                    # a literal is a fill of rank 0
 *       a, b = split(t, axis=1, sizes=[1,2])
 *       y = relu_(x)                      # in place: y is the new version of x
 *       h, hs = loop(a, b, rounds=2) {    // loop.c
 *         carried c: f32[2,1]
 *         row r: f32[2]
 *         d = add(c, r)
 *         return d, r
 *       }
 *       return h, hs
 *     }
 *
 * Consumes untrusted text. Every error has a rule (tn.*, or one of the notation
 * or of the rows), the line, the column, and the text of the line with a caret.
 * The parser recurses for loops in loops only, to MAX_DEPTH.
 */
#include "program/parse.h"

/* ---- arguments ---- */

typedef struct operand {
	int32_t value; /* -1: a literal */
	bool is_int;
	double f;
	loc at;
} operand;

typedef struct call {
	VEC(operand) operand;
	VEC(ir_attr) attr;
	VEC(const char *) result;
	const ir_row *row;
	bool is_in_place; /* "row_" */
	loc at;
} call;

static void integers(parser *s, ir_attr *a)
{
	VEC(int64_t) list = {0};

	a->kind = ATTR_INTS;
	while (!parse_at(s, ']')) {
		if (list.n > 0)
			parse_need(s, ',');
		if (s->next.kind != T_INT)
			parse_unexpected(s, "an integer");
		if (list.n == MAX_LIST)
			parse_fail(s, s->next.where, "tn.size",
				"a list can have at most %d entries", MAX_LIST);
		*vec_push(s->a, &list) = s->next.i;
		parse_advance(s);
	}
	parse_need(s, ']');
	a->ints = list.at;
	a->n = list.n;
}

static void attribute(parser *s, call *c, char *attr_name, loc at)
{
	ir_attr a = {.name = attr_name, .at = at};
	bool is_int;

	if (parse_eat(s, '[')) {
		integers(s, &a);
	} else if (s->next.kind == T_STRING) {
		a.kind = ATTR_STRING;
		a.string = arena_strndup(s->a, s->next.at, s->next.n);
		parse_advance(s);
	} else if (parse_literal(s, &is_int, &a.i, &a.f)) {
		a.kind = is_int ? ATTR_INT : ATTR_REAL;
	} else if (s->next.kind == T_NAME) {
		a.kind = ATTR_DTYPE;
		a.dtype = parse_dtype(s);
	} else {
		parse_unexpected(s, "the value of an attribute");
	}
	*vec_push(s->a, &c->attr) = a;
}

static _Noreturn void undefined(parser *s, loc at, const char *value)
{
	parse_fail(s, at, "tn.undefined", "%s is not defined above this line%s",
		value, s->loop == NULL ? "" :
		"; the body of a loop reads its own inputs only");
}

static void argument(parser *s, call *c)
{
	operand o = {.value = -1, .at = s->next.where};
	int64_t i;
	char *text;

	if (parse_literal(s, &o.is_int, &i, &o.f)) {
		if (o.is_int && (i > INT64_C(1) << 53 || -i > INT64_C(1) << 53))
			parse_fail(s, o.at, "tn.number",
				"an integer operand must be within 2^53; pass "
				"larger ones as an input");
		if (o.is_int)
			o.f = (double)i;
		*vec_push(s->a, &c->operand) = o;
		return;
	}
	text = parse_name(s, "a value, a number or an attribute");
	if (parse_eat(s, '=')) {
		attribute(s, c, text, o.at);
		return;
	}
	o.value = prog_find_value(s->prog, text);
	if (o.value < 0)
		undefined(s, o.at, text);
	if (c->attr.n > 0)
		parse_fail(s, o.at, "tn.syntax",
			"operands must be before attributes");
	*vec_push(s->a, &c->operand) = o;
}

/* ---- literals as operands: rank 0, made by fill ---- */

static bool is_number_class(const char *dtype_class)
{
	return strcmp(dtype_class, "num") == 0 ||
		strcmp(dtype_class, "float") == 0;
}

/*
 * The dtype of a literal: that of the first operand that must have the same (all
 * num and float operands do); else the default of its class.
 */
static tn_dtype literal_dtype(const parser *s, const call *c, int32_t k)
{
	const ir_param *mine = prog_operand(c->row, k);
	const char *class = mine != NULL ? mine->dtype_class : "num";

	if (strcmp(class, "int") == 0)
		return TN_I64;
	if (strcmp(class, "bool") == 0)
		return TN_BOOL;
	for (int32_t i = 0; i < c->operand.n; i++) {
		const ir_param *q = prog_operand(c->row, i);
		const char *other = q != NULL ? q->dtype_class : "num";

		if (c->operand.at[i].value >= 0 &&
			is_number_class(other) == is_number_class(class) &&
			(is_number_class(class) || strcmp(other, class) == 0))
			return s->prog->value.at[c->operand.at[i].value]
				.type.dtype;
	}
	return TN_F32;
}

static int32_t make_literal(parser *s, const call *c, int32_t k)
{
	const operand *o = &c->operand.at[k];
	ir_attr attr[] = {
		{.name = "shape", .kind = ATTR_INTS, .at = o->at},
		{.name = "value", .kind = ATTR_REAL, .f = o->f, .at = o->at},
		{.name = "dtype",
			.kind = ATTR_DTYPE,
			.dtype = literal_dtype(s, c, k),
			.at = o->at},
	};
	prog_call fill = {.row = prog_find_row(s->prog, "fill", o->at),
		.n_attrs = 3,
		.attr = attr,
		.n_names = -1,
		.at = o->at};
	int32_t number = prog_add_call(s->prog, &fill);

	return s->prog->call.at[number].result[0];
}

/* ---- statements ---- */

typedef struct adding {
	parser *s;
	call *c;
	const ir_loop *loop;
} adding;

static void add_call(void *arg)
{
	adding *d = arg;
	call *c = d->c;
	int32_t *value = arena_array(d->s->a, int32_t, c->operand.n);
	prog_call made = {.row = c->row,
		.n_args = c->operand.n,
		.arg = value,
		.n_attrs = c->attr.n,
		.attr = c->attr.at,
		.n_names = c->result.n > 0 ? c->result.n : -1,
		.name = c->result.at,
		.at = c->at};

	for (int32_t i = 0; i < c->operand.n; i++)
		value[i] = c->operand.at[i].value >= 0 ?
			c->operand.at[i].value :
			make_literal(d->s, c, i);
	if (c->is_in_place)
		prog_add_in_place(d->s->prog, &made);
	else
		prog_add_call(d->s->prog, &made);
}

/* "relu_" is relu in place, unless there is a row of that name. */
static void find_row(void *arg)
{
	adding *d = arg;
	size_t n = d->s->next.n;
	char *text = arena_strndup(d->s->a, d->s->next.at, n);

	const ir_row *stem = NULL;

	if (n > 1 && text[n - 1] == '_' &&
		ir_table_find(d->s->prog->table, text) == NULL)
		stem = ir_table_find(d->s->prog->table,
			arena_strndup(d->s->a, text, n - 1));
	d->c->is_in_place = stem != NULL && !prog_is_write(stem);
	d->c->row = d->c->is_in_place
		? stem
		: prog_find_row(d->s->prog, text, d->c->at);
}

/* "op(operands, attributes)" */
static void arguments(parser *s, call *c)
{
	parse_advance(s);
	parse_need(s, '(');
	while (!parse_at(s, ')')) {
		if (c->operand.n + c->attr.n > 0)
			parse_need(s, ',');
		argument(s, c);
	}
	parse_advance(s);
}

/* ---- loops ---- */

static void body(parser *s);

static void add_loop(void *arg)
{
	adding *d = arg;
	call *c = d->c;
	int32_t *value = arena_array(d->s->a, int32_t, c->operand.n);

	for (int32_t i = 0; i < c->operand.n; i++)
		value[i] = c->operand.at[i].value;
	ir_program_loop(d->s->prog, d->loop, d->s->run, c->operand.n, value,
		c->result.at, c->at);
}

static bool is_int(const ir_attr *a, const char *name)
{
	return a->kind == ATTR_INT && strcmp(a->name, name) == 0;
}

/* The operands, the number of rounds, and the test. */
static void loop_arguments(parser *s, call *c, ir_loop *l)
{
	arguments(s, c);
	if (c->attr.n < 1 || c->attr.n > 2 ||
		!is_int(&c->attr.at[0], "rounds") ||
		(c->attr.n == 2 && !is_int(&c->attr.at[1], "while")))
		parse_fail(s, c->at, "tn.attr",
			"a loop has the attribute rounds=N, their number, and "
			"behind it perhaps while=K, the carried value that "
			"says whether there is another round");
	for (int32_t i = 0; i < c->operand.n; i++)
		if (c->operand.at[i].value < 0)
			parse_fail(s, c->operand.at[i].at, "tn.loop",
				"the operands of a loop are values; make the "
				"number with fill, or write it in the body");
	l->n = c->attr.at[0].i;
	if (c->attr.n == 2)
		l->test = c->attr.at[1].i >= 0 && c->attr.at[1].i < INT32_MAX
			? (int32_t)c->attr.at[1].i + 1
			: -1;
}

/* "loop(operands, rounds=N, while=K) { inputs, calls, return }" */
static void loop_call(parser *s, call *c)
{
	ir_program *outer = s->prog;
	ir_loop *outer_loop = s->loop, *l = arena_make(s->a, ir_loop);
	adding d = {s, c, l};

	if (s->depth == MAX_DEPTH)
		parse_fail(s, c->at, "tn.loop",
			"loops may stand in each other %d deep", MAX_DEPTH);
	loop_arguments(s, c, l);
	l->body = s->prog = ir_program_new(s->a, outer->table);
	s->loop = l;
	s->depth++;
	body(s);
	s->depth--;
	s->loop = outer_loop;
	s->prog = outer;
	l->n_out = l->body->output.n - l->n_carried;
	if (l->body->output.n != c->result.n)
		parse_fail(s, c->at, "tn.arity",
			"the body returns %d values, but %d results are named",
			(int)l->body->output.n, (int)c->result.n);
	parse_with_source(s, add_loop, &d, c->at);
}

/* ---- calls ---- */

/* after the names: "= op(operands, attributes)" */
static void call_statement(parser *s, call *c)
{
	adding d = {s, c, NULL};

	parse_need(s, '=');
	c->at = s->next.where;
	if (s->next.kind != T_NAME)
		parse_unexpected(s, "an operation");
	if (token_is(&s->next, "loop") &&
		ir_table_find(s->prog->table, "loop") == NULL) {
		loop_call(s, c);
		return;
	}
	parse_with_source(s, find_row, &d, c->at);
	if (s->loop != NULL && (c->is_in_place || prog_is_write(c->row)))
		parse_fail(s, c->at, "tn.loop", "the body of a loop writes "
			"nothing: return the new value");
	arguments(s, c);
	parse_with_source(s, add_call, &d, c->at);
}

/* What an input is; in a loop they stand in the order of its operands. */
typedef enum input_kind {
	IN_PLAIN, /* of a loop: the same in every round */
	IN_PARAM,
	IN_CARRIED,
	IN_ROW
} input_kind;

typedef struct declaration {
	parser *s;
	const char *name;
	ir_type type;
	input_kind kind;
	loc at;
} declaration;

static void add_input(void *arg)
{
	declaration *d = arg;
	ir_loop *l = d->s->loop;

	if (d->kind == IN_PARAM)
		ir_program_param(d->s->prog, d->name, d->type, d->at);
	else
		ir_program_input(d->s->prog, d->name, d->type, d->at);
	if (l != NULL) {
		l->n_carried += d->kind == IN_CARRIED;
		l->n_rows += d->kind == IN_ROW;
		l->n_same += d->kind == IN_PLAIN;
	}
}

static void input(declaration *d)
{
	parser *s = d->s;
	const ir_loop *l = s->loop;

	d->type = parse_type(s);
	if (l != NULL && ((d->kind == IN_CARRIED && l->n_rows + l->n_same > 0) ||
		(d->kind == IN_ROW && l->n_same > 0)))
		parse_fail(s, d->at, "tn.loop", "what is carried stands first, "
			"then rows, then what is the same in every round");
	parse_with_source(s, add_input, d, d->at);
}

/* A word and a name: what kind of input the name is; IN_PLAIN: only a name. */
static input_kind word_of(parser *s, const char *word, loc at)
{
	static const char *const words[] = {"", "param", "carried", "row"};

	for (int32_t i = 1; s->next.kind == T_NAME && i < 4; i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		if ((i == IN_PARAM) != (s->loop == NULL))
			parse_fail(s, at, "tn.loop", i == IN_PARAM
				? "the body of a loop has no params"
				: "only inputs of a loop's body are carried, "
				  "or rows");
		return (input_kind)i;
	}
	return IN_PLAIN;
}

static void new_names(parser *s, const call *c, loc at)
{
	for (int32_t i = 0; i < c->result.n; i++) {
		int32_t old = prog_find_value(s->prog, c->result.at[i]);

		if (old >= 0)
			parse_fail(s, at, "tn.duplicate",
				"%s is already defined in line %d; every value "
				"needs a name of its own",
				c->result.at[i],
				s->prog->value.at[old].at.line);
	}
}

static void statement(parser *s)
{
	call c = {0};
	loc at = s->next.where;
	char *first = parse_name(s, "a name, return or '}'");
	declaration d = {.s = s, .kind = word_of(s, first, at), .at = at};

	if (d.kind != IN_PLAIN)
		first = parse_name(s, "the name of an input");
	if (parse_eat(s, ':')) {
		d.name = first;
		input(&d);
		return;
	}
	if (d.kind != IN_PLAIN)
		parse_unexpected(s, "':' and the type of the input");
	*vec_push(s->a, &c.result) = first;
	while (parse_eat(s, ','))
		*vec_push(s->a, &c.result) = parse_name(s, "the name of a result");
	new_names(s, &c, at);
	call_statement(s, &c);
}

static void returned(parser *s)
{
	do {
		loc at = s->next.where;
		char *text = parse_name(s, "a value");
		int32_t value = prog_find_value(s->prog, text);

		if (value < 0)
			undefined(s, at, text);
		ir_program_output(s->prog, value);
	} while (parse_eat(s, ','));
}

static void body(parser *s)
{
	parse_need(s, '{');
	for (;;) {
		while (parse_eat(s, ';'))
			;
		if (token_is(&s->next, "return"))
			break;
		statement(s);
	}
	parse_advance(s);
	returned(s);
	while (parse_eat(s, ';'))
		;
	if (!parse_at(s, '}'))
		parse_unexpected(s, "'}' after the values that are returned");
	parse_advance(s);
	for (int32_t i = 0; i < s->prog->value.n; i++)
		if (s->prog->value.at[i].name == NULL)
			prog_name_value(s->prog, i);
}

/* ---- op rows ---- */

typedef struct defining {
	ir_table *table;
	const char *text;
	size_t n;
	loc at;
} defining;

static void define(void *arg)
{
	defining *d = arg;

	ir_table_define(d->table, d->text, d->n, d->at);
}

/* From s->next to the brace that closes its first one; # is not a comment here. */
static void op_row(parser *s)
{
	defining d = {s->prog->table, s->next.at, 0, s->next.where};
	const char *p = s->next.at;
	int64_t depth = 0;

	for (; p < s->end; p++) {
		if (*p == '\n')
			parse_new_line(s, p + 1);
		if (*p == '/' && s->end - p > 1 && p[1] == '/') {
			while (p + 1 < s->end && p[1] != '\n')
				p++;
			continue;
		}
		depth += *p == '{';
		if (*p == '}' && --depth <= 0)
			break;
	}
	if (p == s->end)
		parse_fail(s, d.at, "tn.syntax", "the op has no closing '}'");
	s->p = p + 1;
	d.n = (size_t)(s->p - d.text);
	parse_with_source(s, define, &d, d.at);
	parse_advance(s);
}

/* ---- the whole ---- */

static parser parser_new(arena *a, const char *text, size_t n, const char *file)
{
	return (parser){.a = a, .e = arena_env(a), .file = file, .text = text,
		.end = text + n, .p = text, .line = 1, .line_start = text};
}

/* "f32[2,3]" or "axis=1" */
static void type_or_attribute(parser *s, call *c)
{
	loc at = s->next.where;
	tn_dtype t;

	if (s->next.kind == T_NAME &&
		!dtype_parse(s->next.at, s->next.n, &t)) {
		char *text = parse_name(s, "a type or an attribute");

		parse_need(s, '=');
		attribute(s, c, text, at);
		return;
	}
	*vec_push(s->a, &c->operand) = (operand){
		ir_program_input(s->prog, NULL, parse_type(s), at), false, 0, at};
}

const ir_inst *ir_call_parse(arena *a, ir_table *t, const char *text, size_t n,
	const ir_row **row)
{
	parser s = parser_new(a, text, n, NULL);
	call c = {0};
	adding d = {&s, &c, NULL};

	s.prog = ir_program_new(a, t);
	parse_advance(&s);
	c.at = s.next.where;
	if (s.next.kind != T_NAME)
		parse_unexpected(&s, "an operation");
	parse_with_source(&s, find_row, &d, c.at);
	*row = c.row;
	parse_advance(&s);
	if (s.next.kind == T_END)
		return NULL;
	parse_need(&s, '(');
	while (!parse_eat(&s, ')')) {
		if (c.operand.n + c.attr.n > 0)
			parse_need(&s, ',');
		type_or_attribute(&s, &c);
	}
	if (s.next.kind != T_END)
		parse_unexpected(&s, "the end of the call");
	parse_with_source(&s, add_call, &d, c.at);
	return s.prog->call.at[s.prog->call.n - 1].inst;
}

ir_program *ir_program_parse(arena *a, const char *text, size_t n,
	const char *file, ir_loop_run *run)
{
	parser s = parser_new(a, text, n, file);

	s.run = run;
	s.prog = ir_program_new(a, ir_table_new(a));
	parse_advance(&s);
	while (token_is(&s.next, "op")) {
		/* the text of the row starts after the word */
		parse_skip_blank(&s);
		s.next = (token){.kind = T_NAME, .at = s.p};
		s.next.where = parse_here(&s, s.p);
		op_row(&s);
	}
	if (!token_is(&s.next, "program"))
		parse_unexpected(&s, "op or program");
	parse_advance(&s);
	body(&s);
	if (s.next.kind != T_END)
		parse_unexpected(&s, "the end of the text");
	return s.prog;
}
