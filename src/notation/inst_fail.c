/*
 * inst_fail.c: the names of operands in messages.
 *
 * Consumes the caller's names of values, if there are any, and their types;
 * produces the text for messages. This is only used after a call has failed:
 *
 *     foo: f32[2,3]            the value is called foo in the program
 *     operand x: f32[2,3]      the value has no name; x is the row's operand
 */
#include "notation/inst.h"

#include <stdio.h>

enum { LIST_MAX = 4, NAME_MAX_BYTES = 60 };

void inst_fail(const inst *u, const char *what, const char *fmt, ...)
{
	char rule[64], text[900];
	va_list ap;

	va_start(ap, fmt);
	text_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	snprintf(rule, sizeof rule, "%s.%s", u->r->name, what);
	env_fail(u->e, TN_EINVAL, rule, u->at, "%s: %s", u->r->name, text);
}

/*
 * Adds a name. Names of models may contain any bytes: only printable characters
 * are shown.
 */
static void add_name(str *s, const char *name)
{
	size_t n = strlen(name), most = n;

	if (n > NAME_MAX_BYTES) {
		most = NAME_MAX_BYTES;
		/* do not cut inside a UTF-8 character */
		while (most > 0 && ((unsigned char)name[most] & 0xc0) == 0x80)
			most--;
	}
	for (size_t i = 0; i < most; i++) {
		unsigned char c = (unsigned char)name[i];

		str_addc(s, c < 0x20 || c == 0x7f ? '?' : name[i]);
	}
	if (most < n)
		str_add(s, "...");
}

static void add_type(str *s, const ir_type *t)
{
	str_add(s, dtype_name(t->dtype));
	/*
	 * the type may have been refused for its rank: limit the number of axes
	 */
	str_shape(s, t->shape, t->rank < 0 ? 0
			: t->rank > TN_MAX_RANK ? TN_MAX_RANK
						: t->rank);
}

const char *row_type_text(arena *a, const ir_type *t)
{
	str s = str_new(a);

	add_type(&s, t);
	return s.at;
}

const char *row_operand_text(
	arena *a, const char *shown, const char *param, const ir_type *t)
{
	str s = str_new(a);

	if (shown == NULL)
		str_add(&s, "operand ");
	add_name(&s, shown != NULL ? shown : param);
	str_add(&s, ": ");
	add_type(&s, t);
	return s.at;
}

static const char *shown_of(const inst *u, int32_t k)
{
	return u->shown != NULL ? u->shown[k] : NULL;
}

/* Is one value given for several operands? Then its name is ambiguous. */
static bool is_twice(const inst *u, int32_t k)
{
	for (int32_t i = 0; i < u->n_operands; i++)
		if (i != k && shown_of(u, i) != NULL && shown_of(u, k) != NULL &&
			strcmp(shown_of(u, i), shown_of(u, k)) == 0)
			return true;
	return false;
}

const char *inst_operand(const inst *u, const char *param)
{
	int32_t k = 0;

	for (int32_t i = 0; i < u->r->n_params && k < u->n_operands; i++) {
		const ir_param *p = &u->r->param[i].info;
		const char *text;

		if (!p->is_operand)
			continue;
		if (strcmp(p->name, param) != 0) {
			k++;
			continue;
		}
		text = row_operand_text(
			u->a, shown_of(u, k), p->name, &u->operand[k]);
		return is_twice(u, k) ? arena_printf(u->a, "%s (operand %s)",
						text, p->name)
				      : text;
	}
	return param;
}

const char *inst_tensor(const inst *u, const in_tensor *t)
{
	return t->operand >= 0 ? inst_operand(u, t->name) : t->name;
}

const char *inst_operands(const inst *u)
{
	str s = str_new(u->a);
	int32_t k = 0;

	for (int32_t i = 0; i < u->r->n_params && k < u->n_operands; i++) {
		const ir_param *p = &u->r->param[i].info;

		if (!p->is_operand)
			continue;
		str_add(&s, k == 0 ? " (" : ", ");
		if (k == LIST_MAX) {
			str_printf(&s, "and %d more", u->n_operands - k);
			break;
		}
		str_add(&s, row_operand_text(u->a, shown_of(u, k), p->name,
				    &u->operand[k]));
		k++;
	}
	if (k > 0)
		str_addc(&s, ')');
	return s.n > 0 ? s.at : "";
}
