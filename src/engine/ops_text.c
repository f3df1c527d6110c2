/*
 * ops_text.c: the table of operations as text: what `tenon ops` prints.
 *
 *     add(x[~i..]:num, y[~i..]:num) -> o
 *         x + y
 */
#include "engine/engine.h"

/* The signature: the text in front of the equations. */
static size_t head_length(const char *text)
{
	const char *end = strchr(text, '{');
	size_t n = end != NULL ? (size_t)(end - text) : strlen(text);

	while (n > 0 && text[n - 1] == ' ')
		n--;
	return n;
}

static void add_line(str *out, const ir_row *r)
{
	const char *text = ir_row_text(r), *doc = ir_row_doc(r);

	str_addn(out, text, head_length(text));
	str_printf(out, "\n    %s\n", doc != NULL ? doc : "");
}

void compile_ops_text(str *out, ir_table *t, bool markdown)
{
	if (markdown) {
		ir_ops_md(out, t);
		return;
	}
	for (int32_t i = 0; i < ir_table_n(t); i++)
		add_line(out, ir_table_at(t, i));
}
