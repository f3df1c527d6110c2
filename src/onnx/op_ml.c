/*
 * op_ml.c: operators of ai.onnx.ml that work on numbers: scaling, missing
 * values, labels, linear models. Trees are in op_tree.c.
 *
 *     Scaler(x)         (x - offset) * scale
 *     LabelEncoder(x)   values[the last k where keys[k] == x], else the default
 */
#include "onnx/ops.h"
#include "onnx/ml.h"

/* ---- attributes ---- */

static reals tensor_reals(node *d, const onnx_tensor *t)
{
	onnx_array x = onnx_tensor_array(d->x->a, d->x->m, d->x->where, t);
	int64_t n = on_bound(d, "the number of elements of an attribute",
		shape_numel(x.type.shape, x.type.rank), 0, 1 << 28);
	double *at = arena_array(d->x->a, double, n + 1);

	for (int64_t i = 0; i < n; i++)
		at[i] = dtype_load_f64(x.type.dtype, x.data, i);
	return (reals){(int32_t)n, at};
}

reals ml_tensor(node *d, const char *name)
{
	const onnx_tensor *t = on_tensor(d, name);

	if (t == NULL)
		on_fail(d, "onnx.attr", "attribute %s is missing", name);
	return tensor_reals(d, t);
}

reals ml_reals(node *d, const char *name)
{
	const char *tensor = arena_printf(d->x->a, "%s_as_tensor", name);
	const wire_floats *f = on_reals(d, name);
	const onnx_tensor *t = on_tensor(d, tensor);
	double *at;

	if (t != NULL)
		return tensor_reals(d, t);
	if (f == NULL)
		return (reals){0, NULL};
	at = arena_array(d->x->a, double, f->v.n + 1);
	for (int32_t i = 0; i < f->v.n; i++)
		at[i] = (double)f->v.at[i];
	return (reals){f->v.n, at};
}

/* Numbers, one or one for each element of the last axis of x; n is not 0. */
static int32_t per_feature(node *d, const char *name, reals v, int32_t x)
{
	int32_t r = on_rank_of(d, x);
	int64_t features = r > 0 ? on_extent(d, x, r - 1) : 1;

	if (v.n != 1 && v.n != features)
		on_fail(d, "onnx.attr", "%s has %d numbers; it must have 1, or "
			"one for each of %lld features", name, (int)v.n,
			(long long)features);
	return on_const_real(d, on_dt(d, x),
		v.n == 1 ? on_list_new(d, 0, 0) : LIST(d, v.n), v.at);
}

static int32_t as_float(node *d, int32_t x)
{
	return dtype_is_float(on_dt(d, x)) ? x : on_cast_to(d, x, TN_F32);
}

int32_t ml_rows(node *d, int32_t i)
{
	int32_t x = as_float(d, on_in(d, i));

	if (on_rank_of(d, x) == 1)
		x = on_unsqueeze(d, x, 0);
	if (on_rank_of(d, x) != 2)
		on_fail(d, "onnx.shape", "input %d must have 2 axes (rows, "
			"features) or 1, and has %d", (int)i,
			(int)on_rank_of(d, x));
	return x;
}

/* ---- scores ---- */

static int32_t by(node *d, const char *name, int32_t x, double y)
{
	return on_two(d, name, x, on_scalar(d, on_dt(d, x), y));
}

/* The rows' softmax, where numbers near 0 stay what they are, scaled. */
static int32_t softmax_zero(node *d, int32_t x)
{
	int32_t most = rowa(d, "reduce_max", A(x), INTS("axes", LIST(d, 1)),
		INT("keep", 1));
	int32_t e = row(d, "exp", A(on_two(d, "sub", x, most))), sum, small;

	small = by(d, "le", row(d, "abs", A(x)), 1e-7);
	most = row(d, "exp", A(row(d, "neg", A(most))));
	e = row(d, "where", A(small, on_two(d, "mul", x, most), e));
	sum = rowa(d, "reduce_sum", A(e), INTS("axes", LIST(d, 1)),
		INT("keep", 1));
	e = on_two(d, "div", e, sum);
	return row(d, "where", A(by(d, "eq", sum, 0),
				on_scalar(d, on_dt(d, x), 0.5), e));
}

/* The inverse of the normal distribution, by Winitzki's approximation of the
 * inverse of erf with a = 0.147 */
static int32_t probit(node *d, int32_t p)
{
	int32_t x = by(d, "sub", by(d, "mul", p, 2), 1), u, v, w;
	int32_t one = on_scalar(d, on_dt(d, x), 1);

	u = on_two(d, "mul", on_two(d, "sub", one, x), on_two(d, "add", x, one));
	u = row(d, "log", A(u));
	v = by(d, "add", by(d, "mul", u, 0.5), 4.330746750799873);
	w = on_two(d, "sub", on_two(d, "mul", v, v), by(d, "div", u, 0.147));
	w = row(d, "sqrt", A(on_two(d, "sub", row(d, "sqrt", A(w)), v)));
	w = on_two(d, "mul", w, row(d, "sign", A(x)));
	return by(d, "mul", w, 1.41421356);
}

int32_t ml_transform(node *d, int32_t scores, const char *name)
{
	if (!strcmp(name, "NONE"))
		return scores;
	if (!strcmp(name, "SOFTMAX"))
		return rowa(d, "softmax", A(scores), INT("axis", 1));
	if (!strcmp(name, "LOGISTIC"))
		return row(d, "sigmoid", A(scores));
	if (!strcmp(name, "SOFTMAX_ZERO"))
		return softmax_zero(d, scores);
	if (!strcmp(name, "PROBIT"))
		return probit(d, scores);
	on_fail(d, "onnx.attr", "post_transform is \"%.50s\"; accepted are NONE, "
		"SOFTMAX, LOGISTIC, SOFTMAX_ZERO and PROBIT", name);
}

/* ---- features ---- */

void onnx_scaler(node *d)
{
	reals offset = ml_reals(d, "offset"), scale = ml_reals(d, "scale");
	int32_t x = as_float(d, on_in(d, 0));

	if (offset.n > 0)
		x = on_two(d, "sub", x, per_feature(d, "offset", offset, x));
	if (scale.n > 0)
		x = on_two(d, "mul", x, per_feature(d, "scale", scale, x));
	on_set(d, 0, on_cast_to(d, x, TN_F32));
}

void onnx_binarizer(node *d)
{
	int32_t x = on_in(d, 0), y = as_float(d, x);

	y = by(d, "gt", y, on_real(d, "threshold", 0));
	on_set(d, 0, on_cast_to(d, y, on_dt(d, x)));
}

void onnx_array_features(node *d)
{
	int32_t x = on_in(d, 0), ids = on_in(d, 1), r = on_rank_of(d, x);

	if (r == 0)
		on_fail(d, "onnx.shape", "the input must have an axis of features");
	ids = on_reshape(d, ids, LIST(d, on_numel(d, ids)));
	x = rowa(d, "take", A(x, ids), INT("axis", r - 1));
	on_set(d, 0, r == 1 ? on_unsqueeze(d, x, 0) : x);
}

/* Replaces a value, which may be NaN, by others. */
void onnx_imputer(node *d)
{
	int32_t x = on_in(d, 0), old, to, is, r = on_rank_of(d, x);
	bool real = dtype_is_float(on_dt(d, x));
	reals v = ml_reals(d, "imputed_value_floats");
	list ints = on_list_new(d, 0, 0);
	double from = on_real(d, "replaced_value_float", 0);
	int64_t from_int = on_int(d, "replaced_value_int64", 0);

	(void)on_list(d, "imputed_value_int64s", &ints);
	if ((real ? v.n : ints.n) == 0)
		on_fail(d, "onnx.attr", "attribute imputed_value_%s is missing",
			real ? "floats" : "int64s");
	if (real) {
		old = on_scalar(d, on_dt(d, x), from);
		to = per_feature(d, "imputed_value_floats", v, x);
	} else {
		if (ints.n != 1 && (r == 0 || ints.n != on_extent(d, x, r - 1)))
			on_fail(d, "onnx.attr", "imputed_value_int64s has %d "
				"numbers; it must have 1, or one for each "
				"feature", (int)ints.n);
		old = on_cast_to(d, on_const_ints(d, LIST(d, from_int)),
			on_dt(d, x));
		to = on_cast_to(d, on_const_ints(d, ints), on_dt(d, x));
	}
	if (r == 0 && !real) {
		old = on_reshape(d, old, on_list_new(d, 0, 0));
		to = on_reshape(d, to, on_list_new(d, 0, 0));
	}
	is = real && from != from ? row(d, "isnan", A(x))
				  : on_two(d, "eq", x, old);
	on_set(d, 0, row(d, "where", A(is, to, x)));
}

void onnx_normalizer(node *d)
{
	const char *norm = on_text(d, "norm", "MAX");
	int32_t x = on_cast_to(d, ml_rows(d, 0), TN_F32), by_what;
	bool max = !strcmp(norm, "MAX"), l1 = !strcmp(norm, "L1");

	if (!max && !l1 && strcmp(norm, "L2") != 0)
		on_fail(d, "onnx.attr", "norm is \"%.50s\"; accepted are MAX, "
			"L1 and L2", norm);
	by_what = max || l1 ? row(d, "abs", A(x)) : on_two(d, "mul", x, x);
	by_what = rowa(d, max ? "reduce_max" : "reduce_sum", A(by_what),
		INTS("axes", LIST(d, 1)), INT("keep", 1));
	if (!max && !l1)
		by_what = row(d, "sqrt", A(by_what));
	x = row(d, "where", A(by(d, "eq", by_what, 0), x,
				on_two(d, "div", x, by_what)));
	on_set(d, 0, on_reshape(d, x, on_shape_of(d, on_in(d, 0))));
}

void onnx_feature_vectorizer(node *d)
{
	int32_t *part = arena_array(d->x->a, int32_t, d->n_in + 1);
	list sizes = on_list_new(d, 0, 0);
	bool given = on_list(d, "inputdimensions", &sizes);

	if (d->n_in < 1 || (given && sizes.n != d->n_in))
		on_fail(d, "onnx.attr", "inputdimensions has %d numbers for %d "
			"inputs", (int)sizes.n, (int)d->n_in);
	for (int32_t i = 0; i < d->n_in; i++) {
		part[i] = on_cast_to(d, ml_rows(d, i), TN_F32);
		if (given && sizes.at[i] != on_extent(d, part[i], 1))
			on_fail(d, "onnx.attr", "inputdimensions says %lld "
				"features for input %d, which has %lld",
				(long long)sizes.at[i], (int)i,
				(long long)on_extent(d, part[i], 1));
	}
	on_set(d, 0, on_concat(d, d->n_in, part, 1));
}

/* ---- labels ---- */

/* A list: attribute NAME_floats, NAME_int64s, NAME_strings or NAME_tensor. */
static int32_t labels(node *d, const char *name, int32_t *elem)
{
	const char *at = arena_printf(d->x->a, "%s_tensor", name);
	const char *strings = arena_printf(d->x->a, "%s_strings", name);
	const onnx_tensor *t = on_tensor(d, at);
	reals v;
	list l;
	int32_t o = -1;

	if (t != NULL) {
		onnx_array x = onnx_model_array(d->x->m, d->x->where, t);

		o = onnx_const(d->x, &x.type, x.data);
	} else if (on_n_texts(d, strings) > 0) {
		o = on_cast_to(d, on_const_ints(d, on_strings(d, strings)),
			TN_I32);
	} else if (on_list(d, arena_printf(d->x->a, "%s_int64s", name), &l)) {
		o = on_const_ints(d, l);
	} else {
		v = ml_reals(d, arena_printf(d->x->a, "%s_floats", name));
		o = on_const_real(d, TN_F32, LIST(d, v.n), v.at);
	}
	if (on_rank_of(d, o) != 1 || on_numel(d, o) == 0)
		on_fail(d, "onnx.attr", "a list of %s is needed", name);
	*elem = t != NULL ? t->elem : onnx_dtype_elem(on_dt(d, o));
	if (t == NULL && on_n_texts(d, strings) > 0)
		*elem = ONNX_STRING;
	return o;
}

/* What is said of elements that no key equals, like the values. */
static int32_t otherwise(node *d, int32_t values, int32_t elem)
{
	const onnx_tensor *t = on_tensor(d, "default_tensor");
	tn_dtype type = on_dt(d, values);
	double real = on_real(d, "default_float", -0.0);
	const char *text = on_text(d, "default_string", "_Unused");
	int64_t whole = on_int(d, "default_int64", -1);
	list none = on_list_new(d, 0, 0);

	if (t != NULL) {
		onnx_array x = onnx_model_array(d->x->m, d->x->where, t);

		if (shape_numel(x.type.shape, x.type.rank) != 1 ||
			t->elem != elem)
			on_fail(d, "onnx.attr", "default_tensor must be one "
				"%s", onnx_elem_name(elem));
		return on_reshape(d, onnx_const(d->x, &x.type, x.data), none);
	}
	if (dtype_is_float(type))
		return on_scalar(d, type, real);
	if (elem == ONNX_STRING)
		whole = on_string(d, text);
	return on_cast_to(d, on_constant(d, TN_I64, none, &whole), type);
}

/* Strings are looked for among strings only. */
static void want_like(const node *d, int32_t elem, int32_t of_input)
{
	if ((elem == ONNX_STRING) != (of_input == ONNX_STRING))
		on_fail(d, "onnx.type", "what is looked for is %s, but the "
			"input %s", onnx_elem_name(elem),
			onnx_elem_name(of_input));
}

void onnx_label_encoder(node *d)
{
	int32_t key_elem, elem;
	int32_t x = on_in(d, 0), keys = labels(d, "keys", &key_elem);
	int32_t values = labels(d, "values", &elem);
	int32_t other = otherwise(d, values, elem);
	int32_t r = on_rank_of(d, x), is, at, zero = on_scalar(d, TN_I64, 0);
	list n = on_shape_of(d, keys);

	if (n.at[0] != on_numel(d, values))
		on_fail(d, "onnx.attr", "there are %lld keys, but %lld values",
			(long long)n.at[0], (long long)on_numel(d, values));
	want_like(d, key_elem, on_elem(d, 0));
	if (on_dt(d, keys) != on_dt(d, x))
		on_fail(d, "onnx.type", "the keys are %s, but the input %s",
			dtype_name(on_dt(d, keys)), dtype_name(on_dt(d, x)));
	x = on_unsqueeze(d, x, r);
	is = on_two(d, "eq", x, keys);
	if (dtype_is_float(on_dt(d, x))) /* NaN is a key like others */
		is = on_two(d, "or", is, on_two(d, "and", row(d, "isnan", A(x)),
						row(d, "isnan", A(keys))));
	at = rowa(d, "iota", NO_ARGS, INTS("shape", n), INT("axis", 0),
		DTYPE("dtype", TN_I64));
	at = row(d, "where", A(is, by(d, "add", at, 1), zero));
	at = rowa(d, "reduce_max", A(at), INTS("axes", LIST(d, r)));
	is = on_two(d, "gt", at, zero);
	at = on_two(d, "max", by(d, "sub", at, 1), zero);
	values = rowa(d, "take", A(values, at), INT("axis", 0));
	values = row(d, "where", A(is, values, other));
	on_set_elem(d, 0, values, elem);
}

/* A category that is not listed gives zeros. */
void onnx_one_hot_encoder(node *d)
{
	int32_t x = on_in(d, 0), is;
	list cats = on_list_new(d, 0, 0);
	bool text = on_n_texts(d, "cats_strings") > 0;

	on_ignore(d, "zeros");
	if (text)
		cats = on_strings(d, "cats_strings");
	else if (!on_list(d, "cats_int64s", &cats) || cats.n == 0)
		on_fail(d, "onnx.attr", "cats_int64s and cats_strings are "
			"missing");
	want_like(d, text ? ONNX_STRING : 0, on_elem(d, 0));
	x = on_unsqueeze(d, on_cast_to(d, x, TN_I64), on_rank_of(d, x));
	is = on_two(d, "eq", x, on_const_ints(d, cats));
	on_set_elem(d, 0, on_cast_to(d, is, TN_F32), onnx_dtype_elem(TN_F32));
}

/* ---- linear models ---- */

/* x [n, f] times coefficients [results, f], plus the intercepts */
static int32_t linear(node *d, int32_t x, int64_t results)
{
	reals w = ml_reals(d, "coefficients"), b = ml_reals(d, "intercepts");
	int64_t f = on_extent(d, x, 1);

	if (results < 1 || f < 1 || w.n % f != 0 || w.n / f != results)
		on_fail(d, "onnx.attr", "coefficients has %d numbers; %lld results "
			"of %lld features need another number",
			(int)w.n, (long long)results, (long long)f);
	x = on_two(d, "matmul", x, on_transpose(d, on_const_real(d, on_dt(d, x),
					LIST(d, results, f), w.at),
				 LIST(d, 1, 0)));
	if (b.n == 0)
		return x;
	return on_two(d, "add", x, per_feature(d, "intercepts", b, x));
}

void onnx_linear_regressor(node *d)
{
	int32_t x = ml_rows(d, 0);

	x = linear(d, x, on_int(d, "targets", 1));
	x = ml_transform(d, x, on_text(d, "post_transform", "NONE"));
	on_set(d, 0, on_cast_to(d, x, TN_F32));
}

int32_t ml_label(node *d, int32_t scores, list labels)
{
	int32_t k = rowa(d, "argmax", A(scores), INT("axis", 1));

	return rowa(d, "take", A(on_const_ints(d, labels), k), INT("axis", 0));
}

void ml_set_label(node *d, int32_t v, const char *strings)
{
	if (on_n_texts(d, strings) > 0)
		on_set_elem(d, 0, on_cast_to(d, v, TN_I32), ONNX_STRING);
	else
		on_set_elem(d, 0, v, onnx_dtype_elem(TN_I64));
}

list ml_labels(node *d, const char *ints, const char *strings)
{
	list l = on_list_new(d, 0, 0);

	if (on_n_texts(d, strings) > 0)
		l = on_strings(d, strings);
	else
		on_list(d, ints, &l);
	if (l.n < 2)
		on_fail(d, "onnx.attr", "%s must have at least 2 labels", ints);
	return l;
}

void onnx_linear_classifier(node *d)
{
	int32_t x = ml_rows(d, 0), part[2];
	list l = ml_labels(d, "classlabels_ints", "classlabels_strings");
	reals w = ml_reals(d, "coefficients");
	bool one = l.n == 2 && w.n == on_extent(d, x, 1);

	on_ignore(d, "multi_class");
	x = linear(d, x, one ? 1 : l.n);
	if (one) { /* the score of the second; the first has its negative */
		part[0] = row(d, "neg", A(x));
		part[1] = x;
		x = on_concat(d, 2, part, 1);
	}
	ml_set_label(d, ml_label(d, x, l), "classlabels_strings");
	x = ml_transform(d, x, on_text(d, "post_transform", "NONE"));
	on_set_elem(d, 1, on_cast_to(d, x, TN_F32), onnx_dtype_elem(TN_F32));
}
