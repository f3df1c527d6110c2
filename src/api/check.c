/*
 * check.c: checks the lists, texts and attributes that callers pass to functions of
 * rows and to tn_call, before anything reads them.
 */
#include "api/api.h"

/* Refuses an attribute of the caller. */
static _Noreturn void refuse_attr(
	tn_context *c, loc at, const ir_attr *a, const char *text)
{
	env_fail(c->e, TN_EINVAL, "tn.attr", at,
		"attribute %.60s %s", a->name != NULL ? a->name : "NULL", text);
}

static void check_attr(tn_context *c, loc at, const ir_attr *a)
{
	if (a->name == NULL)
		refuse_attr(c, at, a, "has no name");
	if (a->kind == ATTR_INTS && (a->n < 0 || (a->n > 0 && a->ints == NULL)))
		refuse_attr(c, at, a, a->n < 0 ? "is a list of less than 0 numbers"
					   : "is a list that is NULL");
	if (a->kind == ATTR_STRING && a->string == NULL)
		refuse_attr(c, at, a, "is a string that is NULL");
	if (a->kind == ATTR_DTYPE && (unsigned)a->dtype >= TN_N_DTYPES)
		refuse_attr(c, at, a, "is not a dtype");
	if ((unsigned)a->kind > ATTR_STRING)
		refuse_attr(c, at, a, "is of an unknown kind: use one of "
			"TN_ATTR_INT .. TN_ATTR_STRING");
}

void api_check_lists(tn_context *c, loc at, int32_t n, tn_tensor *const *in,
	int32_t n_attrs, const ir_attr *attr, int32_t n_out)
{
	if (n < 0 || n_attrs < 0 || n_out < 0)
		env_fail(c->e, TN_EINVAL, "api.count", at,
			"%d operands, %d attributes, %d results: none can be "
			"less than 0",
			(int)n, (int)n_attrs, (int)n_out);
	if (n_attrs > API_MAX_ATTRS)
		env_fail(c->e, TN_EINVAL, "api.count", at,
			"%d attributes: no operation has more than %d",
			(int)n_attrs, API_MAX_ATTRS);
	if (n > 0)
		api_want(c, in, "the list of operands");
	if (n_attrs > 0)
		api_want(c, attr, "the list of attributes");
	for (int32_t i = 0; i < n_attrs; i++)
		check_attr(c, at, &attr[i]);
}
