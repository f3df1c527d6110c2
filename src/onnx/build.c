/*
 * build.c: functions that the builders of operators share: inputs, attributes,
 * calls.
 *
 * An attribute of a node in the body of a function may refer to an attribute of
 * the caller (ref_attr_name), or to the function's default.
 */
#include "onnx/scaled.h"

void on_fail(const node *d, const char *rule, const char *fmt, ...)
{
	str s = str_new(d->x->a);
	va_list ap;

	va_start(ap, fmt);
	str_vprintf(&s, fmt, ap);
	va_end(ap);
	env_fail(d->x->e, TN_EINVAL, rule, (loc){.file = d->x->where}, "%s",
		s.at);
}

/* ---- names ---- */

val onnx_find(const onnx_import *x, const scope *s, const char *name)
{
	for (; s != NULL; s = s->outer) {
		int64_t i = map_get_str(s->name, name, -1);

		if (i >= 0)
			return s->value.at[i];
	}
	env_fail(x->e, TN_EINVAL, "onnx.undefined", (loc){.file = x->where},
		"\"%.200s\" is missing: it is not an input or an initialiser, "
		"and no node makes it",
		name);
}

val on_named(const node *d, const char *name)
{
	return onnx_find(d->x, d->scope, name);
}

/* ---- lists ---- */

list on_list_new(node *d, int32_t n, int64_t value)
{
	list l = {n, arena_array(d->x->a, int64_t, n + 1)};

	for (int32_t i = 0; i < n; i++)
		l.at[i] = value;
	return l;
}

list on_list_from(node *d, int32_t n, const int64_t *at)
{
	list l = on_list_new(d, n, 0);

	for (int32_t i = 0; i < n; i++)
		l.at[i] = at[i];
	return l;
}

list on_list_iota(node *d, int32_t n)
{
	list l = on_list_new(d, n, 0);

	for (int32_t i = 0; i < n; i++)
		l.at[i] = i;
	return l;
}

/* ---- inputs and outputs ---- */

bool on_has(const node *d, int32_t i)
{
	if (i < d->n_in)
		d->asked_in[i] = true;
	return i < d->n_in && d->in[i].kind != VAL_NONE;
}

const val *on_val(const node *d, int32_t i)
{
	static const val none;

	return on_has(d, i) ? &d->in[i] : &none;
}

const val *on_vals(const node *d)
{
	for (int32_t i = 0; i < d->n_in; i++)
		d->asked_in[i] = true;
	return d->in;
}

int32_t on_in(node *d, int32_t i)
{
	if (!on_has(d, i))
		on_fail(d, "onnx.input", "input %d is missing", (int)i);
	if (d->in[i].kind != VAL_TENSOR)
		on_fail(d, "onnx.type", "input %d is not a tensor", (int)i);
	return d->in[i].v;
}

int32_t on_elem(node *d, int32_t i)
{
	on_in(d, i);
	return d->in[i].elem;
}

bool on_wants(const node *d, int32_t i)
{
	return i < d->n_out && d->n->out.at[i][0] != '\0';
}

void on_set_val(node *d, int32_t i, val v)
{
	if (i < d->n_out)
		d->out[i] = v;
}

void on_set_elem(node *d, int32_t i, int32_t v, int32_t elem)
{
	on_set_val(d, i, (val){.kind = VAL_TENSOR, .v = v, .elem = elem});
}

void on_set(node *d, int32_t i, int32_t v)
{
	on_set_elem(d, i, v, onnx_dtype_elem(on_dt(d, v)));
}

/* ---- attributes ---- */

static const onnx_attr *own_attr(const onnx_node *n, const char *name)
{
	for (int32_t i = 0; n != NULL && i < n->attr.n; i++)
		if (!strcmp(n->attr.at[i].name, name))
			return &n->attr.at[i];
	return NULL;
}

static const onnx_attr *find_attr(
	const node *d, const char *name, onnx_attr_type type)
{
	const onnx_attr *x = own_attr(d->n, name);

	if (x != NULL)
		d->asked_attr[x - d->n->attr.at] = true;
	if (x != NULL && x->ref != NULL) {
		const char *ref = x->ref;

		x = own_attr(d->caller, ref);
		for (int32_t i = 0; x == NULL && d->callee != NULL &&
			i < d->callee->attr.n; i++)
			if (!strcmp(d->callee->attr.at[i].name, ref))
				x = &d->callee->attr.at[i];
	}
	if (x != NULL && type != ONNX_ATTR_NONE && x->type != type)
		on_fail(d, "onnx.attr", "attribute %s has the wrong type",
			name);
	return x;
}

void on_ignore(const node *d, const char *name)
{
	(void)find_attr(d, name, ONNX_ATTR_NONE);
}

bool on_has_attr(const node *d, const char *name)
{
	return find_attr(d, name, ONNX_ATTR_NONE) != NULL;
}

int64_t on_int(const node *d, const char *name, int64_t otherwise)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_INT);

	return x != NULL ? x->i : otherwise;
}

double on_real(const node *d, const char *name, double otherwise)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_FLOAT);

	return x != NULL ? (double)x->f : otherwise;
}

const char *on_text(const node *d, const char *name, const char *otherwise)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_STRING);

	return x != NULL ? x->s : otherwise;
}

bool on_list(node *d, const char *name, list *out)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_INTS);

	if (x == NULL)
		return false;
	*out = on_list_from(d, x->ints.v.n, x->ints.v.at);
	return true;
}

const wire_floats *on_reals(const node *d, const char *name)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_FLOATS);

	return x != NULL ? &x->floats : NULL;
}

const onnx_tensor *on_tensor(const node *d, const char *name)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_TENSOR);

	return x != NULL ? x->t : NULL;
}

const onnx_graph *on_graph(const node *d, const char *name)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_GRAPH);

	if (x == NULL)
		on_fail(d, "onnx.attr", "attribute %s is missing", name);
	return x->g;
}

int32_t on_n_texts(const node *d, const char *name)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_STRINGS);

	return x != NULL ? x->strings.n : 0;
}

const char *on_text_at(const node *d, const char *name, int32_t i)
{
	const onnx_attr *x = find_attr(d, name, ONNX_ATTR_STRINGS);

	return x->strings.at[i];
}

int32_t on_string(const node *d, const char *text)
{
	return onnx_string(d->x->m->strings, d->x->where,
		(onnx_bytes){(const uint8_t *)text, strlen(text)});
}

list on_strings(node *d, const char *name)
{
	list l = on_list_new(d, on_n_texts(d, name), 0);

	for (int32_t i = 0; i < l.n; i++)
		l.at[i] = on_string(d, on_text_at(d, name, i));
	return l;
}

int32_t on_axis(const node *d, int64_t axis, int32_t rank)
{
	if (axis < -rank || axis >= rank)
		on_fail(d, "onnx.axis", "there is no axis %lld: the tensor "
			"has %d axes",
			(long long)axis, (int)rank);
	return (int32_t)(axis < 0 ? axis + rank : axis);
}

int64_t on_bound(const node *d, const char *what, int64_t v, int64_t lo,
	int64_t hi)
{
	if (v < lo || v > hi)
		on_fail(d, "onnx.attr", "%s is %lld; accepted are %lld to %lld",
			what, (long long)v, (long long)lo, (long long)hi);
	return v;
}

void on_check_parts(const node *d, list sizes, int64_t n)
{
	int64_t sum = 0;

	for (int32_t i = 0; i < sizes.n; i++)
		sum += on_bound(d, "the size of a part", sizes.at[i], 0, n - sum);
	if (sum != n)
		on_fail(d, "onnx.shape", "the parts have %lld elements along "
			"the axis, which has %lld", (long long)sum,
			(long long)n);
}

/* ---- types ---- */

const ir_type *on_ty(const node *d, int32_t v)
{
	return &d->x->p->value.at[v].type;
}

int32_t on_rank_of(const node *d, int32_t v)
{
	return on_ty(d, v)->rank;
}

int64_t on_extent(const node *d, int32_t v, int32_t axis)
{
	if (axis < 0 || axis >= on_rank_of(d, v))
		on_fail(d, "onnx.shape", "a value has %d axes, fewer than the "
			"operator needs", (int)on_rank_of(d, v));
	return on_ty(d, v)->shape[axis];
}

int64_t on_numel(const node *d, int32_t v)
{
	return shape_numel(on_ty(d, v)->shape, on_ty(d, v)->rank);
}

tn_dtype on_dt(const node *d, int32_t v)
{
	return on_ty(d, v)->dtype;
}

list on_shape_of(node *d, int32_t v)
{
	return on_list_from(d, on_ty(d, v)->rank, on_ty(d, v)->shape);
}

/* ---- known elements ---- */

list on_host_ints(node *d, int32_t v)
{
	const void *data = onnx_host(d->x, v);
	int64_t n = on_numel(d, v);
	list l;

	if (dtype_is_float(on_dt(d, v)))
		on_fail(d, "onnx.type", "integers are needed here, but the "
			"elements are %s",
			dtype_name(on_dt(d, v)));
	if (n > 1 << 20)
		on_fail(d, "onnx.size", "a list of %lld numbers is too long",
			(long long)n);
	l = on_list_new(d, (int32_t)n, 0);
	for (int32_t i = 0; i < l.n; i++)
		l.at[i] = dtype_load_i64(on_dt(d, v), data, i);
	return l;
}

list on_ints(node *d, int32_t i)
{
	return on_host_ints(d, on_in(d, i));
}

int64_t on_host_int(node *d, int32_t i)
{
	list l = on_ints(d, i);

	if (l.n != 1)
		on_fail(d, "onnx.input", "input %d is not a single number",
			(int)i);
	return l.at[0];
}

double on_host_real(node *d, int32_t i)
{
	int32_t v = on_in(d, i);

	if (on_numel(d, v) != 1)
		on_fail(d, "onnx.input", "input %d is not a single number",
			(int)i);
	return dtype_load_f64(on_dt(d, v), onnx_host(d->x, v), 0);
}

/* without any input given */
static bool is_known(const node *d, int32_t v)
{
	return onnx_fact(d->x, v)->is_const;
}

/* ---- calls ---- */

int32_t on_row(node *d, const char *name, int32_t n, const int32_t *arg,
	int32_t n_attrs, const ir_attr *attr)
{
	int32_t v = onnx_call(d->x, name, n, arg, n_attrs, attr);

	return v < 0 ? v : onnx_scaled_call(d->x, name, v);
}

int32_t on_result(node *d, int32_t v, int32_t k)
{
	const ir_value *x = &d->x->p->value.at[v];

	return d->x->p->call.at[x->call].result[k];
}

int32_t on_filled(node *d, tn_dtype t, list shape, double v)
{
	return rowa(d, "fill", NO_ARGS, INTS("shape", shape), REAL("value", v),
		DTYPE("dtype", t));
}

int32_t on_scalar(node *d, tn_dtype t, double v)
{
	return on_filled(d, t, on_list_new(d, 0, 0), v);
}

int32_t on_constant(node *d, tn_dtype t, list shape, const void *data)
{
	ir_type type = {.dtype = t, .rank = shape.n};

	if (shape.n > TN_MAX_RANK)
		on_fail(d, "onnx.rank", "a tensor has %d axes; at most 8 are "
			"possible", (int)shape.n);
	for (int32_t i = 0; i < shape.n; i++)
		type.shape[i] = shape.at[i];
	return onnx_const(d->x, &type, data);
}

int32_t on_const_ints(node *d, list v)
{
	return on_constant(d, TN_I64, LIST(d, v.n), v.at);
}

int32_t on_const_real(node *d, tn_dtype t, list shape, const double *v)
{
	int64_t n = shape_numel(shape.at, shape.n);
	void *data;

	if (n < 0)
		on_fail(d, "onnx.size", "a table has too many elements");
	data = arena_alloc(d->x->a, (size_t)n + 1, dtype_size(t));
	for (int64_t i = 0; i < n; i++)
		dtype_store_f64(t, data, i, v[i]);
	return on_constant(d, t, shape, data);
}

int32_t on_cast_to(node *d, int32_t v, tn_dtype t)
{
	return on_dt(d, v) == t ? v : rowa(d, "cast", A(v), DTYPE("to", t));
}

int32_t on_reshape(node *d, int32_t v, list shape)
{
	const ir_type *t = on_ty(d, v);
	bool same = t->rank == shape.n;

	for (int32_t i = 0; i < shape.n && same; i++)
		same = t->shape[i] == shape.at[i];
	return same ? v : rowa(d, "reshape", A(v), INTS("shape", shape));
}

int32_t on_along(node *d, int32_t v, int32_t axis, int32_t r)
{
	list s = on_list_new(d, r, 1);
	const ir_type *t = on_ty(d, v);

	if (axis + t->rank > r)
		on_fail(d, "onnx.shape", "a tensor with %d axes does not fit "
			"axis %d of %d axes",
			(int)t->rank, (int)axis, (int)r);
	for (int32_t i = 0; i < t->rank; i++)
		s.at[axis + i] = t->shape[i];
	return on_reshape(d, v, s);
}

int32_t on_unsqueeze(node *d, int32_t v, int32_t axis)
{
	return rowa(d, "unsqueeze", A(v), INT("axis", axis));
}

int32_t on_drop_axis(node *d, int32_t v, int32_t axis)
{
	return rowa(d, "squeeze", A(v), INTS("axes", LIST(d, axis)));
}

int32_t on_transpose(node *d, int32_t v, list perm)
{
	return rowa(d, "transpose", A(v), INTS("perm", perm));
}

int32_t on_move_axis(node *d, int32_t v, int32_t from, int32_t to)
{
	list perm = on_list_new(d, on_rank_of(d, v), 0);
	int32_t k = 0;

	if (from == to)
		return v;
	for (int32_t i = 0; i < perm.n; i++) {
		if (i == to) {
			perm.at[i] = from;
			continue;
		}
		k += k == from;
		perm.at[i] = k++;
	}
	return on_transpose(d, v, perm);
}

int32_t on_narrow(node *d, int32_t v, int32_t axis, int64_t start, int64_t count)
{
	if (start == 0 && count == on_extent(d, v, axis))
		return v;
	return rowa(d, "narrow", A(v), INT("axis", axis), INT("start", start),
		INT("count", count));
}

/* Concatenates any number of operands, although a row takes at most 64. */
int32_t on_concat(node *d, int32_t n, const int32_t *v, int32_t axis)
{
	enum { PART = 32 };
	int32_t *part = arena_array(d->x->a, int32_t, n + 1);

	if (n == 1)
		return v[0];
	memcpy(part, v, (size_t)n * sizeof *v);
	while (n > 1) {
		int32_t m = 0;

		for (int32_t i = 0; i < n; i += PART) {
			int32_t k = n - i < PART ? n - i : PART;

			part[m++] = k == 1 ? part[i]
					   : rowa(d, "concat",
						     VALUES(k, part + i),
						     INT("axis", axis));
		}
		n = m;
	}
	return part[0];
}

int32_t on_stack(node *d, int32_t n, const int32_t *v, int32_t axis)
{
	int32_t *part = arena_array(d->x->a, int32_t, n + 1);

	for (int32_t i = 0; i < n; i++)
		part[i] = on_unsqueeze(d, v[i], axis);
	return on_concat(d, n, part, axis);
}

int32_t on_flip(node *d, int32_t v, int32_t axis)
{
	return rowa(d, "flip", A(v), INTS("axes", LIST(d, axis)));
}

int32_t on_wrap_index(node *d, int32_t ids, int64_t n)
{
	int32_t zero, size;

	if (is_known(d, ids)) {
		const void *data = onnx_host(d->x, ids);
		bool negative = false;

		for (int64_t i = 0; i < on_numel(d, ids); i++)
			negative = negative ||
				dtype_load_i64(on_dt(d, ids), data, i) < 0;
		if (!negative)
			return ids;
	}
	zero = on_scalar(d, on_dt(d, ids), 0);
	size = on_scalar(d, on_dt(d, ids), (double)n);
	return row(d, "where", A(row(d, "lt", A(ids, zero)),
				       row(d, "add", A(ids, size)), ids));
}

tn_dtype on_elem_dtype(node *d, int64_t elem)
{
	tn_dtype t;

	if (elem < 0 || elem > 100 || elem == ONNX_STRING || !onnx_elem_dtype((int32_t)elem, &t))
		on_fail(d, "onnx.elem", "elements of type %lld (%s) are not "
			"supported",
			(long long)elem,
			onnx_elem_name(elem < 0 || elem > 100 ? 0
							      : (int32_t)elem));
	return t;
}
