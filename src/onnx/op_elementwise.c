/*
 * op_elementwise.c: elementwise operators.
 *
 *     Add(x, y)      add(x, y)               Clip(x, lo, hi)  min(max(x, lo), hi)
 *     Sum(a, b, c)   add(add(a, b), c)
 */
#include "onnx/ops.h"

/* The next word of a builder's text; NULL: the end. */
static const char *word(node *d, const char **text)
{
	size_t n;
	const char *w;

	while (**text == ' ')
		++*text;
	n = strcspn(*text, " ");
	if (n == 0)
		return NULL;
	w = arena_strndup(d->x->a, *text, n);
	*text += n;
	return w;
}

/* Copies an attribute of the node, under the name that the row uses. */
static bool copy_attr(node *d, const char *spec, ir_attr *out)
{
	const char *to = strchr(spec, '>');
	const char *from = spec;
	list l;

	if (to != NULL)
		from = arena_strndup(d->x->a, spec, (size_t)(to - spec));
	*out = (ir_attr){.name = to != NULL ? to + 1 : spec};
	if (!on_has_attr(d, from))
		return false;
	for (int32_t i = 0; i < d->n->attr.n; i++) {
		const onnx_attr *x = &d->n->attr.at[i];

		if (strcmp(x->name, from) != 0)
			continue;
		if (x->type == ONNX_ATTR_INTS && on_list(d, from, &l)) {
			out->kind = ATTR_INTS;
			out->n = l.n;
			out->ints = l.at;
		} else if (x->type == ONNX_ATTR_INT) {
			out->kind = ATTR_INT;
			out->i = on_int(d, from, 0);
		} else {
			out->kind = ATTR_REAL;
			out->f = on_real(d, from, 0);
		}
	}
	return true;
}

/*
 * Calls the row of the text on all inputs, with the attributes that the text
 * lists.
 */
void onnx_direct(node *d)
{
	const char *text = d->op->text, *name = word(d, &text), *spec;
	int32_t *arg = arena_array(d->x->a, int32_t, d->n_in + 1);
	ir_attr attr[8];
	int32_t n_attrs = 0, n = 0;

	on_ignore(d, "consumed_inputs");
	for (int32_t i = 0; i < d->n_in; i++)
		if (on_has(d, i))
			arg[n++] = on_in(d, i);
	while ((spec = word(d, &text)) != NULL && n_attrs < 8)
		if (copy_attr(d, spec, &attr[n_attrs]))
			n_attrs++;
	on_set(d, 0, on_row(d, name, n, arg, n_attrs, attr));
}

void onnx_identity(node *d)
{
	if (on_val(d, 0)->kind == VAL_TENSOR)
		on_set(d, 0, row(d, "identity", A(on_in(d, 0))));
	else
		on_set_val(d, 0, *on_val(d, 0));
}

/*
 * Before opset 7 the second operand is broadcast only if the node has
 * `broadcast`: its axes are then those of the first from `axis` on.
 */
static int32_t second(node *d, int32_t x, int32_t y)
{
	int32_t r = on_rank_of(d, x);
	int64_t axis;

	on_ignore(d, "consumed_inputs");
	if (d->opset >= 7)
		return y;
	axis = on_int(d, "axis", r - on_rank_of(d, y));
	if (on_int(d, "broadcast", 0) == 0)
		return y;
	if (r == 0 || on_rank_of(d, y) == 0)
		return y;
	return on_along(d, y, on_axis(d, axis, r), r);
}

void onnx_arith(node *d)
{
	int32_t x = on_in(d, 0), y = second(d, x, on_in(d, 1));

	on_set(d, 0, row(d, d->op->text, A(x, y)));
}

void onnx_bit_shift(node *d)
{
	const char *direction = on_text(d, "direction", "");
	int32_t x = on_in(d, 0), y = on_in(d, 1);

	if (!strcmp(direction, "LEFT"))
		x = row(d, "shl", A(x, y));
	else if (!strcmp(direction, "RIGHT"))
		x = row(d, "shr", A(x, y));
	else
		on_fail(d, "onnx.attr", "direction is \"%.50s\"; "
			"accepted are LEFT and RIGHT", direction);
	on_set(d, 0, x);
}

/* Max, Min, Sum, Mean of any number of operands. */
void onnx_fold(node *d)
{
	const char *text = d->op->text, *name = word(d, &text);
	int32_t v = on_in(d, 0);

	on_ignore(d, "consumed_inputs");
	for (int32_t i = 1; i < d->n_in; i++)
		v = row(d, name, A(v, on_in(d, i)));
	if (word(d, &text) != NULL)
		v = row(d, "div", A(v, on_scalar(d, on_dt(d, v), d->n_in)));
	on_set(d, 0, v);
}

void onnx_clip_attrs(node *d)
{
	int32_t x = on_in(d, 0);

	on_ignore(d, "consumed_inputs");
	if (on_has_attr(d, "min"))
		x = row(d, "max", A(x, on_scalar(d, on_dt(d, x),
					       on_real(d, "min", 0))));
	if (on_has_attr(d, "max"))
		x = row(d, "min", A(x, on_scalar(d, on_dt(d, x),
					       on_real(d, "max", 0))));
	on_set(d, 0, x);
}

void onnx_clip(node *d)
{
	int32_t x = on_in(d, 0);

	if (on_has(d, 1))
		x = row(d, "max", A(x, on_in(d, 1)));
	if (on_has(d, 2))
		x = row(d, "min", A(x, on_in(d, 2)));
	on_set(d, 0, x);
}

void onnx_gelu(node *d)
{
	bool tanh = !strcmp(on_text(d, "approximate", "none"), "tanh");

	on_set(d, 0, row(d, tanh ? "gelu_tanh" : "gelu", A(on_in(d, 0))));
}

void onnx_is_inf(node *d)
{
	int32_t x = on_in(d, 0), zero = on_scalar(d, on_dt(d, x), 0);
	int32_t is = row(d, "isinf", A(x));

	if (on_int(d, "detect_negative", 1) == 0)
		is = row(d, "and", A(is, row(d, "gt", A(x, zero))));
	if (on_int(d, "detect_positive", 1) == 0)
		is = row(d, "and", A(is, row(d, "lt", A(x, zero))));
	on_set(d, 0, is);
}

/* a * sigmoid(alpha * a), times b if there is one */
void onnx_swish(node *d)
{
	int32_t a = on_in(d, 0), s = a;
	double alpha = on_real(d, "alpha", 1);

	if (alpha != 1)
		s = row(d, "mul", A(a, on_scalar(d, on_dt(d, a), alpha)));
	s = row(d, "mul", A(a, row(d, "sigmoid", A(s))));
	if (d->op->text[0] != '\0')
		s = row(d, "mul", A(s, on_in(d, 1)));
	on_set(d, 0, s);
}

void onnx_mod(node *d)
{
	bool fmod = on_int(d, "fmod", 0) != 0;

	on_set(d, 0, row(d, fmod ? "fmod" : "mod",
			     A(on_in(d, 0), on_in(d, 1))));
}

/*
 * The slope is broadcast to the last axes of x; before opset 7 to the channels.
 */
void onnx_prelu(node *d)
{
	int32_t x = on_in(d, 0), slope = on_in(d, 1);

	on_ignore(d, "consumed_inputs");
	if (d->opset < 7 && on_rank_of(d, slope) == 1 && on_rank_of(d, x) > 1 &&
		on_numel(d, slope) > 1)
		slope = on_along(d, slope, 1, on_rank_of(d, x));
	on_set(d, 0, row(d, "prelu", A(x, slope)));
}

/*
 * The result has the type of the base. An integer base with a float exponent is
 * computed in f64.
 */
void onnx_pow(node *d)
{
	int32_t x = on_in(d, 0), y = second(d, x, on_in(d, 1));
	tn_dtype t = on_dt(d, x), u = on_dt(d, y);

	if (dtype_is_float(u) && !dtype_is_float(t))
		x = on_cast_to(d, x, TN_F64);
	y = on_cast_to(d, y, on_dt(d, x));
	on_set(d, 0, on_cast_to(d, row(d, "pow", A(x, y)), t));
}

/* gamma * (x above 0, else alpha * (exp(x) - 1)) */
void onnx_selu(node *d)
{
	int32_t x = on_in(d, 0);
	double alpha = on_real(d, "alpha", 1.67326319217681884765625);
	double gamma = on_real(d, "gamma", 1.05070102214813232421875);

	on_ignore(d, "consumed_inputs");
	x = rowa(d, "elu", A(x), REAL("alpha", alpha));
	on_set(d, 0, row(d, "mul", A(x, on_scalar(d, on_dt(d, x), gamma))));
}
