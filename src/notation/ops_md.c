/*
 * ops_md.c: prints the table as a document, docs/ops.md: for each row its
 * documentation, text, attributes with defaults, and shapes of results.
 * Everything is derived from the rows; chapters are the GROUPs of ops.def.
 *
 *     ### take
 *     elements ids of one axis
 *         take(x[a..(axis), n, b..], ids[j..]:int, axis: axis = 0) -> o {
 *           o[a.., j.., b..] = x[a.., ids[j..], b..] }
 *     Attributes: `axis` axis = 0. Result: `o[a.., j.., b..]`.
 */
#include "notation/notation.h"

/* ops.def in order; an entry is a chapter (title) or a row (text) */
static const struct {
	const char *title, *text;
} table[] = {
#define GROUP(title) {title, NULL},
#define ROW(doc, text) {NULL, text},
#include "notation/ops.def"
#undef ROW
};

enum { N_ENTRIES = (int)(sizeof table / sizeof table[0]) };

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		(c >= '0' && c <= '9') || c == '\'';
}

static const char *skip_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(text, word, n) != 0 || is_name_char(text[n]))
		return text;
	for (text += n; *text == ' '; text++)
		;
	return text;
}

/* Is this the text of the row called name? */
static bool is_text_of(const char *text, const char *name)
{
	size_t n = strlen(name);

	text = skip_word(text, "opaque");
	return strncmp(text, name, n) == 0 && !is_name_char(text[n]);
}

/* ---- the text of a row, one statement per line ---- */

static void print_text(str *out, const char *text)
{
	int32_t depth = 0, braces = 0;

	str_add(out, "    ");
	for (const char *p = text; *p != '\0'; p++) {
		depth += *p == '(' || *p == '[';
		depth -= *p == ')' || *p == ']';
		braces += *p == '{';
		braces -= *p == '}';
		if (*p == '\n' || *p == '\t' || (*p == ' ' && p[1] == ' '))
			continue;
		str_addc(out, *p);
		if (depth > 0 || (*p != ';' && *p != '{'))
			continue;
		while (p[1] == ' ' || p[1] == '\n' || p[1] == '\t')
			p++;
		if (p[1] == '}')
			continue;
		str_add(out, "\n    ");
		for (int32_t i = 0; i < braces; i++)
			str_add(out, "  ");
	}
	str_add(out, "\n\n");
}

/* ---- shapes of results ---- */

/* The first c outside of brackets, or the end. */
static const char *find(const char *p, const char *end, char c)
{
	int32_t depth = 0;

	for (; p < end; p++) {
		if (depth == 0 && *p == c)
			return p;
		depth += *p == '(' || *p == '[' || *p == '{';
		depth -= *p == ')' || *p == ']' || *p == '}';
	}
	return end;
}

/* The word "for" of a statement, outside of brackets, or the end. */
static const char *find_for(const char *p, const char *end)
{
	int32_t depth = 0;

	for (const char *q = p; q < end; q++) {
		depth += *q == '(' || *q == '[';
		depth -= *q == ')' || *q == ']';
		if (depth == 0 && end - q > 4 && memcmp(q, " for ", 5) == 0)
			return q + 5;
	}
	return end;
}

/*
 * Finds the next statement of "{ a; b grad { .. } }" from *p on; false: the
 * end.
 */
static bool next_statement(const char **p, const char *end, const char **stop)
{
	while (*p < end && (**p == ' ' || **p == '\n' || **p == ';'))
		++*p;
	if (*p >= end || skip_word(*p, "grad") != *p)
		return false;
	*stop = find(*p, end, ';');
	return true;
}

/* The start and the end of the body in braces. */
static const char *body_of(const char *text, const char **end)
{
	const char *open = strchr(text, '{'), *close = strrchr(text, '}');

	*end = close != NULL ? close : text + strlen(text);
	return open != NULL ? open + 1 : *end;
}

/*
 * The index, with brackets, of this tensor on the left side of the statement.
 */
static const char *left_index(const char *p, const char *end,
	const char *name, size_t n, const char **stop)
{
	const char *open = p;
	bool found = false;

	if (*p == '(')
		p++, open = find(p, end, ')') + 1;
	while (p < end && (is_name_char(*p) || *p == ' ' || *p == ',')) {
		const char *q = p;

		while (is_name_char(*q))
			q++;
		found = found ||
			((size_t)(q - p) == n && memcmp(p, name, n) == 0);
		if (q > p && *open != '[')
			open = q;
		p = q > p ? q : p + 1;
	}
	if (!found || open >= end || *open != '[')
		return NULL;
	*stop = find(open + 1, end, ']') + 1;
	return open;
}

static void print_result(str *out, const char *text, const char *name, size_t n)
{
	const char *end, *stop, *p = body_of(text, &end);

	for (; next_statement(&p, end, &stop); p = stop) {
		const char *last, *at = left_index(p, stop, name, n, &last);

		if (at == NULL)
			continue;
		str_printf(out, "`%.*s%.*s`", (int)n, name, (int)(last - at),
			at);
		return;
	}
	str_printf(out, "`%.*s`", (int)n, name);
}

static void print_extents(str *out, const char *text)
{
	const char *end, *stop, *p = body_of(text, &end);
	int32_t n = 0;

	for (; next_statement(&p, end, &stop); p = stop) {
		const char *from = find_for(p, stop);

		if (from == stop)
			continue;
		while (stop > from && (stop[-1] == ' ' || stop[-1] == '}'))
			stop--;
		str_printf(out, "%s`%.*s`", n++ == 0 ? " with " : ", ",
			(int)(stop - from), from);
		stop = find(p, end, ';');
	}
}

/*
 * Prints the results, which are "-> o, k" or "-> o[a.., n], k[a..]: i64" before
 * the body.
 */
static void print_results(str *out, const char *text)
{
	const char *p = strstr(text, "->"), *end = strchr(text, '{');

	if (p == NULL || end == NULL)
		return;
	str_add(out, "Results: ");
	for (p += 2; p < end;) {
		const char *stop = find(p, end, ','), *name, *last = stop;

		while (*p == ' ')
			p++;
		for (name = p; is_name_char(*p); p++)
			;
		while (last > p && last[-1] == ' ')
			last--;
		if (last > p)
			str_printf(out, "`%.*s`", (int)(last - name), name);
		else
			print_result(out, text, name, (size_t)(p - name));
		if (stop < end)
			str_add(out, ", ");
		p = stop + 1;
	}
	print_extents(out, text);
	str_add(out, ".\n\n");
}

/* ---- rows and chapters ---- */

static void print_attributes(str *out, const ir_row *r)
{
	int32_t n = 0;

	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *q = ir_row_param(r, i);

		if (q->is_operand)
			continue;
		str_printf(out, "%s`%s` %s", n++ == 0 ? "Attributes: " : ", ",
			q->name, q->kind);
		if (q->default_text != NULL)
			str_printf(out, " = %s", q->default_text);
	}
	if (n > 0)
		str_add(out, ".\n\n");
}

static void print_row(str *out, const ir_row *r)
{
	const char *text = ir_row_text(r);

	str_printf(out, "### %s\n\n%s\n\n", ir_row_name(r), ir_row_doc(r));
	if (text != NULL)
		print_text(out, text);
	print_attributes(out, r);
	if (text != NULL)
		print_results(out, text);
}

static bool is_in_def(const ir_row *r)
{
	for (int32_t i = 0; i < N_ENTRIES; i++)
		if (table[i].text != NULL &&
			is_text_of(table[i].text, ir_row_name(r)))
			return true;
	return false;
}

static const ir_row *row_of(const ir_table *t, const char *text)
{
	for (int32_t i = 0; i < ir_table_n(t); i++)
		if (is_text_of(text, ir_row_name(ir_table_at(t, i))))
			return ir_table_at(t, i);
	return NULL;
}

/*
 * Prints rows that are not in ops.def; which: scalar functions, built rows or
 * the user's rows.
 */
static void print_others(str *out, const ir_table *t, int which,
	const char *title)
{
	bool first = true;

	for (int32_t i = 0; i < ir_table_n(t); i++) {
		const ir_row *r = ir_table_at(t, i);
		const char *name = ir_row_name(r);
		int kind = ir_table_is_user(t, i)	       ? 2 :
			ir_scalar_find(name, strlen(name)) < 0 ? 1 :
								 0;

		if (is_in_def(r) || kind != which)
			continue;
		if (first)
			str_printf(out, "## %s\n\n", title);
		first = false;
		print_row(out, r);
	}
}

void ir_ops_md(str *out, const ir_table *t)
{
	str_add(out, "# Operations\n\n"
		     "Written by `tenon ops --md` from the table itself "
		     "(`src/notation/ops.def`, `src/notation/scalar.def`); the notation\n"
		     "is described in `docs/notation.md`. ");
	str_printf(out, "There are %d rows.\n\n", ir_table_n(t));
	print_others(out, t, 0, "Scalar functions, elementwise");
	for (int32_t i = 0; i < N_ENTRIES; i++) {
		const ir_row *r;

		if (table[i].title != NULL) {
			str_printf(out, "## %s\n\n", table[i].title);
			continue;
		}
		r = row_of(t, table[i].text);
		if (r != NULL)
			print_row(out, r);
	}
	print_others(out, t, 1, "Built from their operands and attributes");
	print_others(out, t, 2, "Defined here");
}
