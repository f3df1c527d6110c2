/*
 * refuse.c: what the verifier says of a kernel that it refuses.
 *
 * A text from a file is the user's; one that Tenon printed to check its own kernel
 * is not: what is wrong in it is an internal error, with the line.
 */
#include "kern/verify.h"

/* Line `line` of the text, from 1 on, without its indentation; *n bytes. */
static const char *line_of(const kern_kernel *k, int32_t line, int *n)
{
	const char *at = k->text, *end = k->text + k->n_text, *next;

	for (; line > 1; line--) {
		next = memchr(at, '\n', (size_t)(end - at));
		if (next == NULL)
			break;
		at = next + 1;
	}
	while (at < end && *at == ' ')
		at++;
	next = memchr(at, '\n', (size_t)(end - at));
	*n = (int)((next != NULL ? next : end) - at);
	return at;
}

void kern_refuse(
	struct kern_verifier *v, const char *rule, const char *fmt, ...)
{
	const kern_kernel *k = v->k;
	env *e = arena_env(k->a);
	loc at = {.file = k->file};
	char full[64], text[512];
	const char *line = "";
	int n = 0;
	va_list ap;

	va_start(ap, fmt);
	text_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	text_print(full, sizeof full, "kern.%s", rule);
	if (v->s != NULL) {
		at.line = v->s->line;
		at.column = v->s->column;
	}
	if (k->text != NULL && at.line > 0)
		line = line_of(k, at.line, &n);
	if (k->own || k->text == NULL)
		env_fail(e, TN_EINTERNAL, full, (loc){0}, "%s: %s%s%.*s",
			k->name, text, n > 0 ? ": " : "", n, line);
	if (at.line < 1)
		env_fail(e, TN_EINVAL, full, at, "%s: %s", k->name, text);
	env_fail_source(e, full, at, k->text, k->n_text, "%s", text);
}

const char *kern_access_text(struct kern_verifier *v, int32_t array)
{
	const kern_array *r = &v->k->array.at[array];
	str s = str_new(v->a);

	kern_array_name(&s, v->k, array);
	str_printf(&s, " (%s[%lld])", dtype_name(r->dtype),
		(long long)r->elems);
	return s.at;
}
