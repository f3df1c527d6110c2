/*
 * row_call.h: calls of rows as text, for tests:
 *
 *     row_call(a, t, "reduce_sum", "f32[2,3]", "axes=[0], keep=1")
 *
 * Attributes: name=3, name=0.5, name=[1,2], name=f32, name="text".
 */
#ifndef ROW_CALL_H
#define ROW_CALL_H

#include "unit.h"

#include "notation/notation.h"

#include <stdlib.h>

static inline const char *call_blank(const char *p)
{
	while (*p == ' ' || *p == ',')
		p++;
	return p;
}

/* "f32[2,3] i64[]" */
static inline int32_t call_types(const char *p, ir_type *out)
{
	int32_t n = 0;

	for (p = call_blank(p); *p != '\0'; p = call_blank(p)) {
		const char *open = strchr(p, '[');
		char *end;

		assert_non_null(open);
		out[n] = (ir_type){0};
		assert_true(dtype_parse(p, (size_t)(open - p), &out[n].dtype));
		for (p = call_blank(open + 1); *p != ']'; p = call_blank(end))
			out[n].shape[out[n].rank++] = strtoll(p, &end, 10);
		p++;
		n++;
	}
	return n;
}

static inline const char *call_number(arena *a, const char *p, ir_attr *out)
{
	VEC(int64_t) v = {0};
	char *end, *real;

	if (*p == '[') {
		out->kind = ATTR_INTS;
		for (p = call_blank(p + 1); *p != ']'; p = call_blank(end))
			*vec_push(a, &v) = strtoll(p, &end, 10);
		out->n = v.n;
		out->ints = v.at;
		return p + 1;
	}
	out->i = strtoll(p, &end, 10);
	out->f = strtod(p, &real);
	out->kind = real > end ? ATTR_REAL : ATTR_INT;
	assert_true(real > p);
	return real;
}

static inline int32_t call_attrs(arena *a, const char *p, ir_attr *out)
{
	int32_t n = 0;

	for (p = call_blank(p); *p != '\0'; p = call_blank(p)) {
		const char *eq = strchr(p, '=');
		const char *v = eq + 1, *end;

		assert_non_null(eq);
		out[n] = (ir_attr){
			.name = arena_strndup(a, p, (size_t)(eq - p))};
		if (*v == '"') {
			end = strchr(v + 1, '"');
			out[n].kind = ATTR_STRING;
			out[n].string = arena_strndup(
				a, v + 1, (size_t)(end - v - 1));
			p = end + 1;
		} else if ((*v >= 'a' && *v <= 'z') && *v != 'i') {
			end = v + strcspn(v, ", ");
			out[n].kind = ATTR_DTYPE;
			assert_true(dtype_parse(
				v, (size_t)(end - v), &out[n].dtype));
			p = end;
		} else if (*v == 'i' && v[1] != 'n') {
			end = v + strcspn(v, ", ");
			out[n].kind = ATTR_DTYPE;
			assert_true(dtype_parse(
				v, (size_t)(end - v), &out[n].dtype));
			p = end;
		} else {
			p = call_number(a, v, &out[n]);
		}
		n++;
	}
	return n;
}

static inline ir_inst *row_call(arena *a, ir_table *t, const char *row,
	const char *types, const char *attrs)
{
	ir_type *type = arena_array(a, ir_type, IR_MAX_OPERANDS);
	ir_attr *attr = arena_array(a, ir_attr, 16);
	const ir_row *r = ir_table_find(t, row);
	int32_t n = call_types(types, type), m = call_attrs(a, attrs, attr);

	if (r == NULL)
		fail_msg("there is no row %s", row);
	return ir_instantiate(a, t, r, n, type, NULL, m, attr, (loc){0});
}

/* types of the results: "f32[2] i64[2]" */
static inline const char *call_results(arena *a, const ir_inst *p)
{
	str s = str_new(a);

	for (int32_t i = 0; i < p->n_results; i++) {
		const ir_type *t = &p->tensor[p->result[i]].type;

		str_printf(&s, "%s%s", i > 0 ? " " : "", dtype_name(t->dtype));
		str_shape(&s, t->shape, t->rank);
	}
	return s.at;
}

#endif
