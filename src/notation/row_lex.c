/*
 * row_lex.c: divides text into tokens, for the notation and for the texts of
 * levels.
 *
 * Consumes untrusted text. Every token is checked here: numbers are in range,
 * and symbols exist.
 *
 *     o[i.., k] += 2 * x[i.., k]     name [ name .. , name ] += int * ...
 */
#include "notation/lex.h"
#include "notation/notation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Longest first. */
static const char *const symbols[] = {"->", "..", "+=", "*=", "<=", ">=", "==",
	"!=", "(", ")", "[", "]", "{", "}", ",", ";", ":", "?", "=", "<", ">",
	"+", "-", "*", "/", "%", "#", "@", "\\", "~", "!"};

static const lex_operator operators[] = {{"or", "or", LEX_OR},
	{"and", "and", LEX_AND}, {"<", "lt", LEX_COMPARE},
	{"<=", "le", LEX_COMPARE}, {">", "gt", LEX_COMPARE},
	{">=", "ge", LEX_COMPARE}, {"==", "eq", LEX_COMPARE},
	{"!=", "ne", LEX_COMPARE}, {"+", "add", LEX_SUM}, {"-", "sub", LEX_SUM},
	{"*", "mul", LEX_PRODUCT}, {"/", "div", LEX_PRODUCT},
	{"%", "mod", LEX_PRODUCT}};

enum { N_OPERATORS = (int)(sizeof operators / sizeof operators[0]) };

const lex_operator *lex_operator_next(const lex *l)
{
	/* `or or#1:` begins an equation of a system */
	if (lex_peek2(l, 1)->kind == LEX_NAME && lex_is2(l, 2, "#"))
		return NULL;
	for (int32_t i = 0; i < N_OPERATORS; i++)
		if (lex_is(l, operators[i].symbol))
			return &operators[i];
	return NULL;
}

const lex_operator *lex_operator_of(const char *fn)
{
	for (int32_t i = 0; i < N_OPERATORS; i++)
		if (strcmp(operators[i].fn, fn) == 0)
			return &operators[i];
	return NULL;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

loc lex_loc(const lex *l, const lex_token *t)
{
	loc at = l->base;

	if (at.line < 1)
		at.line = 1;
	if (at.column < 1)
		at.column = 1;
	for (const char *p = l->text; p < t->at; p++) {
		at.column++;
		if (*p == '\n') {
			at.line++;
			at.column = 1;
		}
	}
	return at;
}

/*
 * The text at its position in its file, so that lines and columns are right.
 * The unknown text before it is replaced by blanks.
 */
static const char *placed(const lex *l, size_t *n)
{
	str s = str_new(l->a);

	for (int32_t i = 1; i < l->base.line && i < 100000; i++)
		str_addc(&s, '\n');
	for (int32_t i = 1; i < l->base.column && i < 1000; i++)
		str_addc(&s, ' ');
	str_addn(&s, l->text, l->n_text);
	*n = s.n;
	return s.at;
}

void lex_fail(const lex *l, const lex_token *at, const char *rule,
	const char *fmt, ...)
{
	char full[64], text[512];
	const char *source;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	text_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	snprintf(full, sizeof full, "%s.%s", l->family, rule);
	source = placed(l, &n);
	env_fail_source(arena_env(l->a), full, lex_loc(l, at), source, n, "%s",
		text);
}

void lex_unexpected(const lex *l, const char *wanted)
{
	const lex_token *t = lex_peek(l);

	if (t->kind == LEX_END)
		lex_fail(l, t, "syntax", "expected %s, found the end of the text",
			wanted);
	lex_fail(l, t, "syntax", "expected %s, found '%.*s'", wanted,
		t->n > 40 ? 40 : t->n, t->at);
}

/* ---- making tokens ---- */

static const char *skip_blank(const char *p, const char *end)
{
	for (;;) {
		while (p < end &&
			(*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
			p++;
		if (end - p < 2 || p[0] != '/' || p[1] != '/')
			return p;
		while (p < end && *p != '\n')
			p++;
	}
}

static const char *name_end(const char *p, const char *end, bool dotted)
{
	while (p < end &&
		(is_letter(*p) || is_digit(*p) ||
			(dotted && *p == '.' && end - p > 1 &&
				(is_letter(p[1]) || is_digit(p[1])))))
		p++;
	while (p < end && *p == '\'')
		p++;
	return p;
}

/* The end of a number: "12", "1.5", "2e-3"; the dots of "1.." are a symbol. */
static const char *number_end(const char *p, const char *end, bool *is_real)
{
	*is_real = false;
	while (p < end && is_digit(*p))
		p++;
	if (p < end && *p == '.' && !(end - p > 1 && p[1] == '.')) {
		*is_real = true;
		for (p++; p < end && is_digit(*p);)
			p++;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		const char *q = p + 1;

		if (q < end && (*q == '+' || *q == '-'))
			q++;
		if (q < end && is_digit(*q)) {
			*is_real = true;
			for (p = q; p < end && is_digit(*p);)
				p++;
		}
	}
	return p;
}

static void read_u64(const lex *l, lex_token *t, const char *digits)
{
	t->kind = LEX_REAL;
	errno = 0;
	t->u = strtoull(digits, NULL, 10);
	if (errno == ERANGE)
		lex_fail(l, t, "number", "%s does not fit 64 bits", digits);
}

static void read_number(const lex *l, lex_token *t, bool is_real)
{
	char digits[400];

	if ((size_t)t->n >= sizeof digits)
		lex_fail(l, t, "number", "a number of %d digits is too long",
			t->n);
	memcpy(digits, t->at, (size_t)t->n);
	digits[t->n] = '\0';
	t->f = text_f64(digits, NULL);
	t->kind = LEX_REAL;
	if (is_real)
		return;
	errno = 0;
	t->i = strtoll(digits, NULL, 10);
	t->kind = LEX_INT;
	if (strcmp(digits, "9223372036854775808") == 0)
		t->i = INT64_MIN; /* valid only after a minus: lex_int */
	else if (errno == ERANGE)
		read_u64(l, t, digits);
}

static int32_t symbol_at(const char *p, const char *end)
{
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		size_t n = *p == symbols[i][0] ? strlen(symbols[i]) : 0;

		if (n > 0 && (size_t)(end - p) >= n && memcmp(p, symbols[i], n) == 0)
			return (int32_t)n;
	}
	return 0;
}

static void make(lex *l, lex_token *t, const char *end, bool dotted)
{
	const char *p = t->at, *stop;
	bool is_real;

	if (p == end) {
		t->kind = LEX_END;
		return;
	}
	if (is_letter(*p)) {
		t->kind = LEX_NAME;
		t->n = (int32_t)(name_end(p, end, dotted) - p);
		if (t->n > 200)
			lex_fail(l, t, "name", "a name of %d bytes is too long",
				t->n);
		return;
	}
	if (is_digit(*p) || (*p == '.' && end - p > 1 && is_digit(p[1]))) {
		stop = number_end(p, end, &is_real);
		t->n = (int32_t)(stop - p);
		read_number(l, t, is_real);
		if (stop < end && is_letter(*stop))
			lex_fail(l, t, "number",
				"a letter follows the number %.*s",
				t->n > 40 ? 40 : t->n, p);
		return;
	}
	t->kind = LEX_SYMBOL;
	t->n = symbol_at(p, end);
	if (t->n == 0)
		lex_fail(l, t, "character", "this character has no meaning "
			"here");
}

lex *lex_new(arena *a, const char *family, const char *text, size_t n, loc base,
	bool dotted)
{
	lex *l = arena_make(a, lex);
	VEC(lex_token) v = {0};
	const char *p = text, *end = text + n;

	*l = (lex){.a = a,
		.family = family,
		.text = text,
		.n_text = n,
		.base = base};
	do {
		lex_token t = {.at = skip_blank(p, end)};

		make(l, &t, end, dotted);
		p = t.at + t.n;
		*vec_push(a, &v) = t;
	} while (v.at[v.n - 1].kind != LEX_END);
	l->token = v.at;
	l->n = v.n;
	return l;
}

/* ---- reading tokens ---- */

bool lex_same(const lex_token *t, const char *s)
{
	return (t->kind == LEX_SYMBOL || t->kind == LEX_NAME) &&
		t->at[0] == s[0] && /* avoids most calls */
		strlen(s) == (size_t)t->n &&
		memcmp(t->at, s, (size_t)t->n) == 0;
}

const lex_token *lex_peek2(const lex *l, int32_t ahead)
{
	int32_t i = l->next + ahead;

	return &l->token[i < l->n ? i : l->n - 1];
}

bool lex_is(const lex *l, const char *symbol)
{
	return lex_same(lex_peek(l), symbol);
}

bool lex_is2(const lex *l, int32_t ahead, const char *symbol)
{
	return lex_same(lex_peek2(l, ahead), symbol);
}

const lex_token *lex_take(lex *l)
{
	const lex_token *t = lex_peek(l);

	if (t->kind != LEX_END)
		l->next++;
	return t;
}

bool lex_eat(lex *l, const char *symbol)
{
	if (!lex_is(l, symbol))
		return false;
	l->next++;
	return true;
}

void lex_need(lex *l, const char *symbol)
{
	char wanted[40];

	if (lex_eat(l, symbol))
		return;
	snprintf(wanted, sizeof wanted, "'%s'", symbol);
	lex_unexpected(l, wanted);
}

const char *lex_name(lex *l, const char *what)
{
	const lex_token *t = lex_peek(l);

	if (t->kind != LEX_NAME)
		lex_unexpected(l, what);
	l->next++;
	return arena_strndup(l->a, t->at, (size_t)t->n);
}

int64_t lex_int(lex *l, const char *what)
{
	bool minus = lex_eat(l, "-");
	const lex_token *t = lex_peek(l);

	if (t->kind != LEX_INT)
		lex_unexpected(l, what);
	l->next++;
	if (t->i == INT64_MIN && !minus)
		lex_fail(l, t, "number", "2^63 does not fit 64 bits");
	return minus ? lex_minus(t->i) : t->i;
}

int64_t lex_int_of(lex *l, tn_dtype t)
{
	const lex_token *at = lex_peek(l);
	int64_t i;

	if (t == TN_U64 && (at->u != 0 || (at->kind == LEX_INT &&
					at->i == INT64_MIN))) {
		l->next++;
		return at->u != 0 ? (int64_t)at->u : at->i;
	}
	i = lex_int(l, "an integer");
	if (!ir_int_holds(t, i))
		lex_fail(l, at, "number", "%lld does not fit %s", (long long)i,
			dtype_name(t));
	return i;
}

void lex_enter(lex *l)
{
	if (++l->depth > IR_MAX_DEPTH)
		lex_fail(l, lex_peek(l), "depth",
			"the text is nested more than %d deep", IR_MAX_DEPTH);
}
