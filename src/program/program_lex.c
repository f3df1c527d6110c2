/*
 * program_lex.c: .tn text into tokens and types, and errors with a caret.
 */
#include "program/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- errors ---- */

_Noreturn void parse_fail(parser *s, loc at, const char *rule,
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

_Noreturn void parse_unexpected(parser *s, const char *wanted)
{
	const token *t = &s->next;

	if (t->kind == T_END)
		parse_fail(s, t->where, "tn.syntax",
			"expected %s, found the end of the text", wanted);
	parse_fail(s, t->where, "tn.syntax", "expected %s, found '%.*s'", wanted,
		t->n > 40 ? 40 : (int)t->n, t->at);
}

/*
 * Calls fn; adds line and caret to errors of rows and instances, which do not
 * know them.
 */
void parse_with_source(parser *s, void (*fn)(void *), void *arg, loc at)
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
	parse_fail(s, at, d->rule, "%s", d->text);
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

loc parse_here(const parser *s, const char *p)
{
	ptrdiff_t column = p - s->line_start + 1;

	return (loc){s->file, s->line,
		column > INT32_MAX ? INT32_MAX : (int32_t)column};
}

void parse_new_line(parser *s, const char *start)
{
	s->line++;
	s->line_start = start;
}

void parse_skip_blank(parser *s)
{
	while (s->p < s->end) {
		char c = *s->p;
		bool comment = c == '#' ||
			(c == '/' && s->end - s->p > 1 && s->p[1] == '/');

		if (c == '\n')
			parse_new_line(s, s->p + 1);
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
		parse_fail(s, t->where, "tn.number", "a number of %zu digits",
			t->n);
	memcpy(digits, t->at, t->n);
	digits[t->n] = '\0';
	t->kind = is_real ? T_REAL : T_INT;
	t->f = text_f64(digits, &stop);
	errno = 0;
	if (!is_real)
		t->i = strtoll(digits, &stop, 10);
	if (errno == ERANGE)
		parse_fail(s, t->where, "tn.number", "%s does not fit 64 bits",
			digits);
	if (*stop != '\0' || (end < s->end && is_letter(*end)))
		parse_fail(s, t->where, "tn.number", "%s is not a number", digits);
	s->p = end;
}

static void string(parser *s, token *t)
{
	const char *p = s->p + 1;

	while (p < s->end && *p != '"' && *p != '\n')
		p++;
	if (p == s->end || *p != '"')
		parse_fail(s, t->where, "tn.syntax",
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
void parse_advance(parser *s)
{
	token t = {0};

	parse_skip_blank(s);
	t.at = s->p;
	t.where = parse_here(s, s->p);
	if (s->p == s->end) {
		t.kind = T_END;
	} else if (is_letter(*s->p)) {
		while (s->p < s->end && (is_letter(*s->p) || is_digit(*s->p)))
			s->p++;
		t.kind = T_NAME;
		t.n = (size_t)(s->p - t.at);
		if (t.n > MAX_NAME)
			parse_fail(s, t.where, "tn.syntax",
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

bool token_is(const token *t, const char *word)
{
	return t->kind == T_NAME && t->n == strlen(word) &&
		memcmp(t->at, word, t->n) == 0;
}

bool parse_at(const parser *s, char c)
{
	return s->next.kind == T_SYMBOL && *s->next.at == c;
}

bool parse_eat(parser *s, char c)
{
	if (!parse_at(s, c))
		return false;
	parse_advance(s);
	return true;
}

void parse_need(parser *s, char c)
{
	char wanted[4] = {'\'', c, '\'', '\0'};

	if (!parse_eat(s, c))
		parse_unexpected(s, wanted);
}

static bool is_reserved(const token *t)
{
	static const char *const words[] = {"return", "program", "op", "inf",
		"nan", "true", "false"};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (token_is(t, words[i]))
			return true;
	return false;
}

char *parse_name(parser *s, const char *wanted)
{
	char *text;

	if (s->next.kind != T_NAME || is_reserved(&s->next))
		parse_unexpected(s, wanted);
	text = arena_strndup(s->a, s->next.at, s->next.n);
	parse_advance(s);
	return text;
}

/* inf, nan, true, false and numbers; is_int: an integer or a truth value */
bool parse_literal(parser *s, bool *is_int, int64_t *i, double *f)
{
	bool minus = parse_at(s, '-');
	token t;

	if (minus) {
		parse_advance(s);
		if (!token_is(&s->next, "inf"))
			parse_unexpected(s, "a number or inf");
	}
	t = s->next;
	*is_int = t.kind == T_INT;
	*i = t.i;
	*f = t.f;
	if (token_is(&t, "true") || token_is(&t, "false")) {
		*is_int = true;
		*i = token_is(&t, "true");
		*f = (double)*i;
	} else if (token_is(&t, "inf")) {
		*f = minus ? -HUGE_VAL : HUGE_VAL;
	} else if (token_is(&t, "nan")) {
		*f = (double)NAN;
	} else if (t.kind != T_INT && t.kind != T_REAL) {
		return false;
	}
	parse_advance(s);
	return true;
}

/* ---- types ---- */

static int64_t extent(parser *s)
{
	int64_t n = s->next.i;

	if (s->next.kind != T_INT)
		parse_unexpected(s, "an extent");
	if (n < 0)
		parse_fail(s, s->next.where, "tn.extent", "an extent must not be "
			"negative");
	parse_advance(s);
	return n;
}

tn_dtype parse_dtype(parser *s)
{
	tn_dtype t;

	if (s->next.kind != T_NAME)
		parse_unexpected(s, "a dtype");
	if (!dtype_parse(s->next.at, s->next.n, &t)) {
		str all = str_new(s->a);

		for (int32_t i = 0; i < TN_N_DTYPES; i++)
			str_printf(&all, "%s%s", i > 0 ? ", " : "",
				dtype_name((tn_dtype)i));
		parse_fail(s, s->next.where, "tn.dtype",
			"%.*s is not a dtype; accepted are %s",
			s->next.n > 40 ? 40 : (int)s->next.n, s->next.at,
			all.at);
	}
	parse_advance(s);
	return t;
}

/* "f32[2,3]"; "f32" and "f32[]" have rank 0 */
ir_type parse_type(parser *s)
{
	ir_type t = {.dtype = parse_dtype(s)};

	if (!parse_eat(s, '[') || parse_eat(s, ']'))
		return t;
	do {
		if (t.rank == TN_MAX_RANK)
			parse_fail(s, s->next.where, "tn.rank",
				"a tensor can have at most %d axes",
				TN_MAX_RANK);
		t.shape[t.rank++] = extent(s);
	} while (parse_eat(s, ','));
	parse_need(s, ']');
	return t;
}
