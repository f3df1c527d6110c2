/*
 * op_norm.c: normalisation, softmax, dropout, losses.
 *
 *     Softmax-1(x, axis=1)   reshape to a matrix, softmax(axis=1), and back
 *     NegativeLogLikelihoodLoss(x, t, w)
 *         -sum(w[t] * x[t]) / sum(w[t]), without rows whose t is ignored
 */
#include "onnx/ops.h"

static int32_t as_like(node *d, int32_t v, int32_t x)
{
	return on_cast_to(d, v, on_dt(d, x));
}

/* In training: sets the next value of a running statistic. */
static void becomes(node *d, int32_t old, int32_t new)
{
	*vec_push(d->x->a, &d->x->update) =
		(update){old, on_cast_to(d, new, on_dt(d, old))};
}

void onnx_batch_norm(node *d)
{
	int32_t x = on_in(d, 0), v[5], o;
	double eps = on_real(d, "epsilon", 1e-5);
	double momentum = on_real(d, "momentum", 0.9);
	bool train = d->opset >= 14 ? on_int(d, "training_mode", 0) != 0
				    : d->n_out > 1;

	on_ignore(d, "consumed_inputs");
	if (d->opset < 7 && on_int(d, "is_test", 0) != 0)
		train = false;
	if (d->opset < 9 && on_int(d, "spatial", 1) == 0)
		on_fail(d, "onnx.attr", "spatial = 0 is not supported; "
			"accepted is 1");
	v[0] = x;
	for (int32_t i = 1; i < 5; i++)
		v[i] = as_like(d, on_in(d, i), x);
	if (!train && !d->x->training) {
		on_set(d, 0, rowa(d, "batch_norm_infer", VALUES(5, v),
				     REAL("eps", eps)));
		return;
	}
	o = rowa(d, "batch_norm", VALUES(5, v), REAL("eps", eps),
		REAL("momentum", 1 - momentum));
	on_set(d, 0, o);
	if (!train) {
		becomes(d, on_in(d, 3), on_result(d, o, 1));
		becomes(d, on_in(d, 4), on_result(d, o, 2));
		return;
	}
	on_set(d, 1, on_cast_to(d, on_result(d, o, 1), on_dt(d, on_in(d, 3))));
	on_set(d, 2, on_cast_to(d, on_result(d, o, 2), on_dt(d, on_in(d, 4))));
}

void onnx_layer_norm(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x), g, c, var;
	int32_t axis = on_axis(d, on_int(d, "axis", -1), r);
	bool exact = on_int(d, "stash_type", 1) == 1;
	tn_dtype t = on_dt(d, x);
	double eps = on_real(d, "epsilon", 1e-5);
	list shape = on_list_from(d, r - axis, on_ty(d, x)->shape + axis), axes;

	/*
	 * f16 and bf16 are computed in f32, so mean and deviation are f32, too
	 */
	if (exact && dtype_acc(t) == TN_F32)
		x = on_cast_to(d, x, TN_F32);
	g = rowa(d, "broadcast_to", A(as_like(d, on_in(d, 1), x)),
		INTS("shape", shape));
	c = on_has(d, 2) ? rowa(d, "broadcast_to",
				   A(as_like(d, on_in(d, 2), x)),
				   INTS("shape", shape))
			 : on_filled(d, on_dt(d, x), shape, 0);
	on_set(d, 0, on_cast_to(d, rowa(d, "layer_norm", A(x, g, c),
					   INT("k", r - axis),
					   REAL("eps", eps)), t));
	axes = on_list_iota(d, r - axis);
	for (int32_t i = 0; i < axes.n; i++)
		axes.at[i] += axis;
	on_set(d, 1, rowa(d, "reduce_mean", A(x), INTS("axes", axes),
			     INT("keep", 1)));
	var = rowa(d, "reduce_var", A(x), INTS("axes", axes), INT("keep", 1));
	on_set(d, 2, row(d, "rsqrt", A(row(d, "add", A(var,
					 on_scalar(d, on_dt(d, x), eps))))));
}

/* Over the last axes, as one. */
void onnx_rms_norm(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x), g;
	int32_t axis = on_axis(d, on_int(d, "axis", -1), r);
	tn_dtype t = on_dt(d, x);
	list shape = on_shape_of(d, x), last, all;
	int64_t n = 1;

	on_ignore(d, "stash_type"); /* f16 and bf16 are summed in f32 */
	last = on_list_from(d, r - axis, shape.at + axis);
	all = on_list_from(d, axis + 1, shape.at);
	for (int32_t i = 0; i < last.n; i++)
		n *= last.at[i];
	all.at[axis] = n;
	g = rowa(d, "broadcast_to", A(as_like(d, on_in(d, 1), x)),
		INTS("shape", last));
	x = rowa(d, "rms_norm", A(on_reshape(d, x, all),
				   on_reshape(d, g, LIST(d, n))),
		REAL("eps", on_real(d, "epsilon", 1e-5)));
	on_set(d, 0, on_cast_to(d, on_reshape(d, x, shape), t));
}

/* In opset 18 scale and bias are per group, from opset 21 on per channel. */
void onnx_group_norm(node *d)
{
	int32_t x = on_in(d, 0), g = on_in(d, 1), c = on_in(d, 2);
	int64_t groups = on_int(d, "num_groups", 1);

	if (on_rank_of(d, x) < 2)
		on_fail(d, "onnx.shape", "the input has no channels");
	on_ignore(d, "stash_type");
	on_bound(d, "num_groups", groups, 1, INT64_C(1) << 32);
	if (d->op->text[0] != '\0') {
		int64_t reps = on_extent(d, x, 1) / groups;

		g = rowa(d, "repeat", A(g), INT("axis", 0), INT("reps", reps));
		c = rowa(d, "repeat", A(c), INT("axis", 0), INT("reps", reps));
	}
	on_set(d, 0, rowa(d, "group_norm", A(x, as_like(d, g, x),
						   as_like(d, c, x)),
			     INT("groups", groups),
			     REAL("eps", on_real(d, "epsilon", 1e-5))));
}

void onnx_lp_norm(node *d)
{
	int32_t x = on_in(d, 0), norm, zero;
	int64_t p = on_bound(d, "p", on_int(d, "p", 2), 1, 2);
	int32_t axis = on_axis(d, on_int(d, "axis", -1), on_rank_of(d, x));

	norm = rowa(d, p == 1 ? "reduce_l1" : "reduce_l2", A(x),
		INTS("axes", LIST(d, axis)), INT("keep", 1));
	/* a zero vector stays zero */
	zero = row(d, "eq", A(norm, on_scalar(d, on_dt(d, x), 0)));
	norm = row(d, "where", A(zero, on_scalar(d, on_dt(d, x), 1), norm));
	on_set(d, 0, row(d, "div", A(x, norm)));
}

void onnx_mvn(node *d)
{
	int32_t x = on_in(d, 0), mean, var;
	list axes;

	if (!on_list(d, "axes", &axes))
		axes = LIST(d, 0, 2, 3);
	mean = rowa(d, "reduce_mean", A(x), INTS("axes", axes), INT("keep", 1));
	var = rowa(d, "reduce_var", A(x), INTS("axes", axes), INT("keep", 1));
	var = row(d, "add", A(row(d, "sqrt", A(var)),
				    on_scalar(d, on_dt(d, x), 1e-9)));
	on_set(d, 0, row(d, "div", A(row(d, "sub", A(x, mean)), var)));
}

/* ---- softmax ---- */

/*
 * Reshapes x to a matrix: the axes before `axis`, and the rest, as opsets
 * before 13 define.
 */
static int32_t as_matrix(node *d, int32_t x, int32_t axis)
{
	int64_t n = shape_numel(on_ty(d, x)->shape, axis);

	return on_reshape(d, x, LIST(d, n, n > 0 ? on_numel(d, x) / n : 0));
}

static bool is_flat(const node *d)
{
	const char *space = strrchr(d->op->text, ' ');

	return !strcmp(space != NULL ? space + 1 : d->op->text, "flat");
}

/* Does the node make an output of the model? */
static bool makes_output(const node *d)
{
	const onnx_graph *g = &d->x->m->graph;

	for (int32_t i = 0; i < g->out.n && d->x->depth == 0; i++)
		if (!strcmp(g->out.at[i].name, d->n->out.at[0]))
			return true;
	return false;
}

void onnx_softmax(node *d)
{
	int32_t x = on_in(d, 0);
	bool flat = is_flat(d);
	int32_t axis = on_axis(d, on_int(d, "axis", flat ? 1 : -1),
		on_rank_of(d, x));
	const char *name = arena_strndup(
		d->x->a, d->op->text, strcspn(d->op->text, " "));
	list shape = on_shape_of(d, x);

	if (d->x->logits && !strcmp(name, "softmax") && makes_output(d)) {
		on_set(d, 0, row(d, "identity", A(x)));
		return;
	}
	if (flat && axis != on_rank_of(d, x) - 1) {
		x = as_matrix(d, x, axis);
		axis = 1;
	}
	x = rowa(d, name, A(x), INT("axis", axis));
	on_set(d, 0, on_reshape(d, x, shape));
}

/* 1 at the first maximum, else 0 */
void onnx_hardmax(node *d)
{
	int32_t x = on_in(d, 0), at, most;
	bool flat = is_flat(d);
	int32_t axis = on_axis(d, on_int(d, "axis", flat ? 1 : -1),
		on_rank_of(d, x));
	list shape = on_shape_of(d, x);
	tn_dtype t = on_dt(d, x);

	if (flat) {
		x = as_matrix(d, x, axis);
		axis = 1;
	}
	most = rowa(d, "argmax", A(x), INT("axis", axis), INT("keep", 1));
	at = rowa(d, "iota", NO_ARGS, INTS("shape", on_shape_of(d, x)),
		INT("axis", axis), DTYPE("dtype", TN_I64));
	at = on_cast_to(d, row(d, "eq", A(at, most)), t);
	on_set(d, 0, on_reshape(d, at, shape));
}

/* ---- dropout ---- */

static void no_dropout(node *d, tn_dtype mask)
{
	int32_t x = on_in(d, 0);

	on_set(d, 0, row(d, "identity", A(x)));
	on_set_elem(d, 1, on_filled(d, mask, on_shape_of(d, x), 1),
		onnx_dtype_elem(mask));
}

static void drop(node *d, int32_t key, double ratio, tn_dtype mask_type)
{
	int32_t x = on_in(d, 0), u, mask;

	if (!(ratio > 0 && ratio < 1))
		on_fail(d, "onnx.attr", "ratio is %g; in training it "
			"must be at least 0 and less than 1", ratio);
	u = rowa(d, "uniform", A(key), INTS("shape", on_shape_of(d, x)));
	mask = row(d, "ge", A(u, on_scalar(d, TN_F32, ratio)));
	x = row(d, "div", A(x, on_scalar(d, on_dt(d, x), 1 - ratio)));
	on_set(d, 0, row(d, "where", A(mask, x, on_scalar(d, on_dt(d, x), 0))));
	on_set_elem(d, 1, on_cast_to(d, mask, mask_type),
		onnx_dtype_elem(mask_type));
}

void onnx_dropout_attrs(node *d)
{
	double ratio = on_real(d, "ratio", 0.5);
	tn_dtype mask = d->opset >= 10 ? TN_BOOL : on_dt(d, on_in(d, 0));

	on_ignore(d, "seed");
	on_ignore(d, "is_test");
	on_ignore(d, "consumed_inputs");
	if (d->x->training && ratio != 0)
		drop(d, onnx_train_key(d->x), ratio, mask);
	else
		no_dropout(d, mask);
}

void onnx_dropout(node *d)
{
	double ratio = on_has(d, 1) ? on_host_real(d, 1) : 0.5;
	bool train = on_has(d, 2) && on_host_int(d, 2) != 0;
	int64_t *key = on_list_new(d, 1, on_int(d, "seed", 0)).at;

	if (ratio == 0 || (!train && !d->x->training))
		no_dropout(d, TN_BOOL);
	else if (d->x->training)
		drop(d, onnx_train_key(d->x), ratio, TN_BOOL);
	else
		drop(d, on_constant(d, TN_I64, on_list_new(d, 0, 0), key),
			ratio, TN_BOOL);
}

/* ---- losses ---- */

/* x (n, c, d..) log probabilities, t (n, d..) classes, w (c) or -1 */
static int32_t nll(node *d, int32_t x, int32_t t, int32_t w)
{
	const char *how = on_text(d, "reduction", "mean");
	bool ignores = on_has_attr(d, "ignore_index");
	tn_dtype type = on_dt(d, x);
	int32_t valid = -1, loss, weight = -1;

	t = on_cast_to(d, t, TN_I64);
	if (ignores) {
		double ignore = (double)on_int(d, "ignore_index", 0);

		valid = row(d, "ne", A(t, on_scalar(d, TN_I64, ignore)));
		t = row(d, "where", A(valid, t, on_scalar(d, TN_I64, 0)));
	}
	loss = rowa(d, "take_along", A(x, on_unsqueeze(d, t, 1)), INT("axis", 1));
	loss = row(d, "neg", A(on_drop_axis(d, loss, 1)));
	if (w >= 0)
		weight = rowa(d, "take", A(w, t), INT("axis", 0));
	if (ignores && w < 0)
		weight = on_cast_to(d, valid, type);
	else if (ignores)
		weight = row(d, "where", A(valid, weight, on_scalar(d, type, 0)));
	if (weight >= 0)
		loss = row(d, "mul", A(loss, weight));
	if (!strcmp(how, "none"))
		return loss;
	if (!strcmp(how, "mean") && weight < 0)
		return row(d, "reduce_mean", A(loss));
	loss = row(d, "reduce_sum", A(loss));
	if (!strcmp(how, "mean"))
		loss = row(d, "div", A(loss, row(d, "reduce_sum", A(weight))));
	else if (strcmp(how, "sum") != 0)
		on_fail(d, "onnx.attr", "reduction \"%.50s\" is not "
			"supported; accepted are none, mean and sum", how);
	return loss;
}

void onnx_nll_loss(node *d)
{
	on_set(d, 0, nll(d, on_in(d, 0), on_in(d, 1),
			     on_has(d, 2) ? on_in(d, 2) : -1));
}

void onnx_softmax_loss(node *d)
{
	int32_t x = rowa(d, "log_softmax", A(on_in(d, 0)), INT("axis", 1));

	on_set(d, 0, nll(d, x, on_in(d, 1), on_has(d, 2) ? on_in(d, 2) : -1));
	on_set(d, 1, x);
}
