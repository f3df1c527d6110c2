/*
 * export_part.c: adds initialisers and attributes to the exported model.
 */
#include "onnx/export.h"
#include "onnx/put.h"

_Noreturn void export_refuse(
	const exporter *x, const char *rule, const char *what, const char *name)
{
	env_fail(arena_env(x->a), TN_EINVAL, rule, x->call->at,
		"%.100s: %s%s%.100s", ir_row_name(x->call->row), what,
		name[0] != '\0' ? ": " : "", name);
}

const char *export_name(const exporter *x, int32_t value)
{
	return x->name != NULL ? x->name[value] : x->p->value.at[value].name;
}

/* ---- initialisers ---- */

void export_tensor(exporter *x, const char *name, const ir_type *t,
	const void *data)
{
	str tensor = str_new(x->a);
	onnx_bytes b = onnx_packed(x->a, t, data);

	for (int32_t i = 0; i < t->rank; i++)
		put_int(&tensor, 1, t->shape[i]);
	put_int(&tensor, 2, onnx_dtype_elem(t->dtype));
	put_text(&tensor, 8, name);
	put_head(&tensor, 9, b.n);
	str_addn(&tensor, (const char *)b.at, b.n);
	put_part(&x->graph, 5, &tensor);
}

/* Adds an initialiser; its name has a dot, which names in .tn cannot have. */
const char *export_const(exporter *x, const ir_type *t, const void *data)
{
	const char *name =
		arena_printf(x->a, "const.%d", (int)x->n_made++);

	export_tensor(x, name, t, data);
	return name;
}

/* ---- attributes ---- */

void export_attr_int(exporter *x, const char *name, int64_t v)
{
	str a = str_new(x->a);

	put_text(&a, 1, name);
	put_int(&a, 3, v);
	put_int(&a, 20, 2);
	put_part(&x->node, 5, &a);
}

void export_attr_ints(
	exporter *x, const char *name, int32_t n, const int64_t *v)
{
	str a = str_new(x->a);

	put_text(&a, 1, name);
	for (int32_t i = 0; i < n; i++)
		put_int(&a, 8, v[i]);
	put_int(&a, 20, 7);
	put_part(&x->node, 5, &a);
}

void export_attr_real(exporter *x, const char *name, double v)
{
	str a = str_new(x->a);

	put_text(&a, 1, name);
	put_float(&a, 2, (float)v);
	put_int(&a, 20, 1);
	put_part(&x->node, 5, &a);
}

const ir_attr *export_attr(const exporter *x, const char *name)
{
	for (int32_t i = 0; i < x->call->n_attrs; i++)
		if (!strcmp(x->call->attr[i].name, name))
			return &x->call->attr[i];
	return NULL;
}
