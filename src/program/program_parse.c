/*
 * program_parse.c: .tn text into a program.
 *
 *     op double(x[i..]:num) -> o { o[i..] = x[i..] + x[i..] }
 *     program {
 *       x: f32[2,3]                        // an input
 *       t = add(x, 0.5)                    # a literal is a fill of rank 0
 *       a, b = split(t, axis=1, sizes=[1,2])
 *       y = relu_(x)                      # in place: y is the new version of x
 *       return a, b
 *     }
 *
 * Consumes untrusted text. Every error has a rule (tn.*, or one of the notation
 * or of the rows), the line, the column, and the text of the line with a caret.
 * The parser does not recurse.
 */
#include "program/local.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

typedef enum token_kind {
	T_END,
	T_NAME,
	T_INT,
	T_REAL,
	T_STRING,
	T_SYMBOL /* one character */
} token_kind;

typedef struct token {
	token_kind kind;
	const char *at;
	size_t n;
	loc where;
	int64_t i;
	double f;
} token;

typedef struct parser {
	arena *a;
	env *e;
	const char *file, *text, *end;
	const char *p; /* after `next` */
	int32_t line;
	const char *line_start;
	token next;
	ir_program *prog;
} parser;

enum { MAX_NAME = 200, MAX_NUMBER = 400, MAX_LIST = 1 << 20 };

/* ---- errors ---- */

static _Noreturn void fail(parser *s, loc at, const char *rule,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static _Noreturn void fail(parser *s, loc at, const char *rule,
	const char *fmt, ...)
{
	str text = str_new(s->a);
	va_list ap;

	va_start(ap, fmt);
	str_vprintf(&text, fmt, ap);
	va_end(ap);
	env_fail_source(s->e, rule, at, s->text, (size_t)(s->end - s->text),
		"%s", text.at);
}

static _Noreturn void unexpected(parser *s, const char *wanted)
{
	const token *t = &s->next;

	if (t->kind == T_END)
		fail(s, t->where, "tn.syntax",
			"expected %s, found the end of the text", wanted);
	fail(s, t->where, "tn.syntax", "expected %s, found '%.*s'", wanted,
		t->n > 40 ? 40 : (int)t->n, t->at);
}

/*
 * Calls fn; adds line and caret to errors of rows and instances, which do not
 * know them.
 */
static void with_source(parser *s, void (*fn)(void *), void *arg, loc at)
{
	tn_status status = env_run(s->e, fn, arg);
	const tn_diag *d = env_diag(s->e);

	if (status == TN_OK)
		return;
	if (status != TN_EINVAL)
		env_rethrow(s->e);
	if (d->line > 0) {
		at.line = d->line;
		at.column = d->column;
	}
	fail(s, at, d->rule, "%s", d->text);
}

/* ---- tokens ---- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static loc here(const parser *s, const char *p)
{
	ptrdiff_t column = p - s->line_start + 1;

	return (loc){s->file, s->line,
		column > INT32_MAX ? INT32_MAX : (int32_t)column};
}

static void new_line(parser *s, const char *start)
{
	s->line++;
	s->line_start = start;
}

static void skip_blank(parser *s)
{
	while (s->p < s->end) {
		char c = *s->p;
		bool comment = c == '#' ||
			(c == '/' && s->end - s->p > 1 && s->p[1] == '/');

		if (c == '\n')
			new_line(s, s->p + 1);
		if (comment)
			while (s->p + 1 < s->end && s->p[1] != '\n')
				s->p++;
		else if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			return;
		s->p++;
	}
}

static const char *number_end(const parser *s, bool *is_real)
{
	const char *p = s->p + (*s->p == '-');

	*is_real = false;
	for (; p < s->end && (is_digit(*p) || *p == '.'); p++)
		*is_real = *is_real || *p == '.';
	if (p < s->end && (*p == 'e' || *p == 'E')) {
		*is_real = true;
		p++;
		if (p < s->end && (*p == '+' || *p == '-'))
			p++;
		while (p < s->end && is_digit(*p))
			p++;
	}
	return p;
}

static void number(parser *s, token *t)
{
	char digits[MAX_NUMBER], *stop;
	bool is_real;
	const char *end = number_end(s, &is_real);

	t->n = (size_t)(end - s->p);
	if (t->n >= sizeof digits)
		fail(s, t->where, "tn.number", "a number of %zu digits",
			t->n);
	memcpy(digits, t->at, t->n);
	digits[t->n] = '\0';
	t->kind = is_real ? T_REAL : T_INT;
	t->f = text_f64(digits, &stop);
	errno = 0;
	if (!is_real)
		t->i = strtoll(digits, &stop, 10);
	if (errno == ERANGE)
		fail(s, t->where, "tn.number", "%s does not fit 64 bits",
			digits);
	if (*stop != '\0' || (end < s->end && is_letter(*end)))
		fail(s, t->where, "tn.number", "%s is not a number", digits);
	s->p = end;
}

static void string(parser *s, token *t)
{
	const char *p = s->p + 1;

	while (p < s->end && *p != '"' && *p != '\n')
		p++;
	if (p == s->end || *p != '"')
		fail(s, t->where, "tn.syntax",
			"the string does not end in this line");
	t->kind = T_STRING;
	t->at = s->p + 1;
	t->n = (size_t)(p - t->at);
	s->p = p + 1;
}

static bool starts_number(const parser *s)
{
	char after = s->end - s->p > 1 ? s->p[1] : ' ';

	return is_digit(*s->p) || (*s->p == '.' && is_digit(after)) ||
		(*s->p == '-' && (is_digit(after) || after == '.'));
}

/* Reads the next token into s->next. */
static void advance(parser *s)
{
	token t = {0};

	skip_blank(s);
	t.at = s->p;
	t.where = here(s, s->p);
	if (s->p == s->end) {
		t.kind = T_END;
	} else if (is_letter(*s->p)) {
		while (s->p < s->end && (is_letter(*s->p) || is_digit(*s->p)))
			s->p++;
		t.kind = T_NAME;
		t.n = (size_t)(s->p - t.at);
		if (t.n > MAX_NAME)
			fail(s, t.where, "tn.syntax",
				"a name has at most %d characters", MAX_NAME);
	} else if (starts_number(s)) {
		number(s, &t);
	} else if (*s->p == '"') {
		string(s, &t);
	} else {
		t.kind = T_SYMBOL;
		t.n = 1;
		s->p++;
	}
	s->next = t;
}

static bool is_word(const token *t, const char *word)
{
	return t->kind == T_NAME && t->n == strlen(word) &&
		memcmp(t->at, word, t->n) == 0;
}

static bool is_symbol(const parser *s, char c)
{
	return s->next.kind == T_SYMBOL && *s->next.at == c;
}

static bool eat(parser *s, char c)
{
	if (!is_symbol(s, c))
		return false;
	advance(s);
	return true;
}

static void need(parser *s, char c)
{
	char wanted[4] = {'\'', c, '\'', '\0'};

	if (!eat(s, c))
		unexpected(s, wanted);
}

static bool is_reserved(const token *t)
{
	static const char *const words[] = {"return", "program", "op", "inf",
		"nan", "true", "false"};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (is_word(t, words[i]))
			return true;
	return false;
}

static char *name(parser *s, const char *wanted)
{
	char *text;

	if (s->next.kind != T_NAME || is_reserved(&s->next))
		unexpected(s, wanted);
	text = arena_strndup(s->a, s->next.at, s->next.n);
	advance(s);
	return text;
}

/* inf, nan, true, false and numbers; is_int: an integer or a truth value */
static bool literal(parser *s, bool *is_int, int64_t *i, double *f)
{
	bool minus = is_symbol(s, '-');
	token t;

	if (minus) {
		advance(s);
		if (!is_word(&s->next, "inf"))
			unexpected(s, "a number or inf");
	}
	t = s->next;
	*is_int = t.kind == T_INT;
	*i = t.i;
	*f = t.f;
	if (is_word(&t, "true") || is_word(&t, "false")) {
		*is_int = true;
		*i = is_word(&t, "true");
		*f = (double)*i;
	} else if (is_word(&t, "inf")) {
		*f = minus ? -HUGE_VAL : HUGE_VAL;
	} else if (is_word(&t, "nan")) {
		*f = (double)NAN;
	} else if (t.kind != T_INT && t.kind != T_REAL) {
		return false;
	}
	advance(s);
	return true;
}

/* ---- types ---- */

static int64_t extent(parser *s)
{
	int64_t n = s->next.i;

	if (s->next.kind != T_INT)
		unexpected(s, "an extent");
	if (n < 0)
		fail(s, s->next.where, "tn.extent", "an extent must not be "
			"negative");
	advance(s);
	return n;
}

static tn_dtype dtype(parser *s)
{
	tn_dtype t;

	if (s->next.kind != T_NAME)
		unexpected(s, "a dtype");
	if (!dtype_parse(s->next.at, s->next.n, &t)) {
		str all = str_new(s->a);

		for (int32_t i = 0; i < TN_N_DTYPES; i++)
			str_printf(&all, "%s%s", i > 0 ? ", " : "",
				dtype_name((tn_dtype)i));
		fail(s, s->next.where, "tn.dtype",
			"%.*s is not a dtype; accepted are %s",
			s->next.n > 40 ? 40 : (int)s->next.n, s->next.at,
			all.at);
	}
	advance(s);
	return t;
}

/* "f32[2,3]"; "f32" and "f32[]" have rank 0 */
static ir_type type(parser *s)
{
	ir_type t = {.dtype = dtype(s)};

	if (!eat(s, '[') || eat(s, ']'))
		return t;
	do {
		if (t.rank == TN_MAX_RANK)
			fail(s, s->next.where, "tn.rank",
				"a tensor can have at most %d axes",
				TN_MAX_RANK);
		t.shape[t.rank++] = extent(s);
	} while (eat(s, ','));
	need(s, ']');
	return t;
}

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
	while (!is_symbol(s, ']')) {
		if (list.n > 0)
			need(s, ',');
		if (s->next.kind != T_INT)
			unexpected(s, "an integer");
		if (list.n == MAX_LIST)
			fail(s, s->next.where, "tn.size",
				"a list can have at most %d entries", MAX_LIST);
		*vec_push(s->a, &list) = s->next.i;
		advance(s);
	}
	need(s, ']');
	a->ints = list.at;
	a->n = list.n;
}

static void attribute(parser *s, call *c, char *attr_name, loc at)
{
	ir_attr a = {.name = attr_name, .at = at};
	bool is_int;

	if (eat(s, '[')) {
		integers(s, &a);
	} else if (s->next.kind == T_STRING) {
		a.kind = ATTR_STRING;
		a.string = arena_strndup(s->a, s->next.at, s->next.n);
		advance(s);
	} else if (literal(s, &is_int, &a.i, &a.f)) {
		a.kind = is_int ? ATTR_INT : ATTR_REAL;
	} else if (s->next.kind == T_NAME) {
		a.kind = ATTR_DTYPE;
		a.dtype = dtype(s);
	} else {
		unexpected(s, "the value of an attribute");
	}
	*vec_push(s->a, &c->attr) = a;
}

static void argument(parser *s, call *c)
{
	operand o = {.value = -1, .at = s->next.where};
	int64_t i;
	char *text;

	if (literal(s, &o.is_int, &i, &o.f)) {
		if (o.is_int && (i > INT64_C(1) << 53 || -i > INT64_C(1) << 53))
			fail(s, o.at, "tn.number",
				"an integer operand must be within 2^53; pass "
				"larger ones as an input");
		if (o.is_int)
			o.f = (double)i;
		*vec_push(s->a, &c->operand) = o;
		return;
	}
	text = name(s, "a value, a number or an attribute");
	if (eat(s, '=')) {
		attribute(s, c, text, o.at);
		return;
	}
	o.value = prog_find_value(s->prog, text);
	if (o.value < 0)
		fail(s, o.at, "tn.undefined",
			"%s is not defined above this line", text);
	if (c->attr.n > 0)
		fail(s, o.at, "tn.syntax",
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

/* after the names: "= op(operands, attributes)" */
static void call_statement(parser *s, call *c)
{
	adding d = {s, c};

	need(s, '=');
	c->at = s->next.where;
	if (s->next.kind != T_NAME)
		unexpected(s, "an operation");
	with_source(s, find_row, &d, c->at);
	advance(s);
	need(s, '(');
	while (!is_symbol(s, ')')) {
		if (c->operand.n + c->attr.n > 0)
			need(s, ',');
		argument(s, c);
	}
	advance(s);
	with_source(s, add_call, &d, c->at);
}

typedef struct declaration {
	parser *s;
	const char *name;
	ir_type type;
	bool is_param;
	loc at;
} declaration;

static void add_input(void *arg)
{
	declaration *d = arg;

	if (d->is_param)
		ir_program_param(d->s->prog, d->name, d->type, d->at);
	else
		ir_program_input(d->s->prog, d->name, d->type, d->at);
}

static void statement(parser *s)
{
	call c = {0};
	loc at = s->next.where;
	char *first = name(s, "a name, return or '}'");
	bool is_param = strcmp(first, "param") == 0 && s->next.kind == T_NAME;

	if (is_param)
		first = name(s, "the name of a param");
	if (eat(s, ':')) {
		declaration d = {s, first, type(s), is_param, at};

		with_source(s, add_input, &d, at);
		return;
	}
	if (is_param)
		unexpected(s, "':' and the type of the param");
	*vec_push(s->a, &c.result) = first;
	while (eat(s, ','))
		*vec_push(s->a, &c.result) = name(s, "the name of a result");
	for (int32_t i = 0; i < c.result.n; i++)
		if (prog_find_value(s->prog, c.result.at[i]) >= 0)
			fail(s, at, "tn.duplicate",
				"%s is already defined in line %d; every value "
				"needs a name of its own",
				c.result.at[i],
				s->prog->value
					.at[prog_find_value(s->prog,
						c.result.at[i])]
					.at.line);
	call_statement(s, &c);
}

static void returned(parser *s)
{
	do {
		loc at = s->next.where;
		char *text = name(s, "a value");
		int32_t value = prog_find_value(s->prog, text);

		if (value < 0)
			fail(s, at, "tn.undefined",
				"%s is not defined above this line", text);
		ir_program_output(s->prog, value);
	} while (eat(s, ','));
}

static void body(parser *s)
{
	need(s, '{');
	for (;;) {
		while (eat(s, ';'))
			;
		if (is_word(&s->next, "return"))
			break;
		statement(s);
	}
	advance(s);
	returned(s);
	while (eat(s, ';'))
		;
	if (!is_symbol(s, '}'))
		unexpected(s, "'}' after the values that are returned");
	advance(s);
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
			new_line(s, p + 1);
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
		fail(s, d.at, "tn.syntax", "the op has no closing '}'");
	s->p = p + 1;
	d.n = (size_t)(s->p - d.text);
	with_source(s, define, &d, d.at);
	advance(s);
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
		char *text = name(s, "a type or an attribute");

		need(s, '=');
		attribute(s, c, text, at);
		return;
	}
	*vec_push(s->a, &c->operand) = (operand){
		ir_program_input(s->prog, NULL, type(s), at), false, 0, at};
}

const ir_inst *ir_call_parse(arena *a, ir_table *t, const char *text, size_t n,
	const ir_row **row)
{
	parser s = parser_new(a, text, n, NULL);
	call c = {0};
	adding d = {&s, &c};

	s.prog = ir_program_new(a, t);
	advance(&s);
	c.at = s.next.where;
	if (s.next.kind != T_NAME)
		unexpected(&s, "an operation");
	with_source(&s, find_row, &d, c.at);
	*row = c.row;
	advance(&s);
	if (s.next.kind == T_END)
		return NULL;
	need(&s, '(');
	while (!eat(&s, ')')) {
		if (c.operand.n + c.attr.n > 0)
			need(&s, ',');
		type_or_attribute(&s, &c);
	}
	if (s.next.kind != T_END)
		unexpected(&s, "the end of the call");
	with_source(&s, add_call, &d, c.at);
	return s.prog->call.at[s.prog->call.n - 1].inst;
}

ir_program *ir_program_parse(
	arena *a, const char *text, size_t n, const char *file)
{
	parser s = parser_new(a, text, n, file);

	s.prog = ir_program_new(a, ir_table_new(a));
	advance(&s);
	while (is_word(&s.next, "op")) {
		/* the text of the row starts after the word */
		skip_blank(&s);
		s.next = (token){.kind = T_NAME, .at = s.p};
		s.next.where = here(&s, s.p);
		op_row(&s);
	}
	if (!is_word(&s.next, "program"))
		unexpected(&s, "op or program");
	advance(&s);
	body(&s);
	if (s.next.kind != T_END)
		unexpected(&s, "the end of the text");
	for (int32_t i = 0; i < s.prog->value.n; i++)
		if (s.prog->value.at[i].name == NULL)
			prog_name_value(s.prog, i);
	return s.prog;
}
