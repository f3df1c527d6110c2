/* Made by tools/ops_api.c from the table of operations: docs/ops.md has their equations. */
#ifndef TENON_OPS_H
#define TENON_OPS_H

/** y where c holds, else z's element: c ? x : y */
#define tn_where(...) \
	tn_at_where(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_where(const char *file, int32_t line, tn_tensor *c, tn_tensor *x, tn_tensor *y);

/** x with value where the mask holds */
#define tn_masked_fill(...) \
	tn_at_masked_fill(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_masked_fill(const char *file, int32_t line, tn_tensor *x, tn_tensor *c, double value);

/** limits x to lo .. hi; the gradient passes at the bounds. Defaults: lo = -inf, hi = inf */
#define tn_clip(...) \
	tn_at_clip(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_clip(const char *file, int32_t line, tn_tensor *x, double lo, double hi);

/** x in another dtype */
#define tn_cast(...) \
	tn_at_cast(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cast(const char *file, int32_t line, tn_tensor *x, tn_dtype to);

/** x itself */
#define tn_identity(...) \
	tn_at_identity(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_identity(const char *file, int32_t line, tn_tensor *x);

/** x in memory of its own: no view, unlike identity */
#define tn_copy(...) \
	tn_at_copy(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_copy(const char *file, int32_t line, tn_tensor *x);

/** v where x stands: the next version of x. In a program x may be a view, and the result is the next version of what it is a view of */
#define tn_write(...) \
	tn_at_write(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_write(const char *file, int32_t line, tn_tensor *x, tn_tensor *v);

/** x, through which no gradient flows */
#define tn_stop_gradient(...) \
	tn_at_stop_gradient(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_stop_gradient(const char *file, int32_t line, tn_tensor *x);

/** x * x */
#define tn_square(...) \
	tn_at_square(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_square(const char *file, int32_t line, tn_tensor *x);

/** (x - y) squared */
#define tn_squared_difference(...) \
	tn_at_squared_difference(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_squared_difference(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** alpha * x + beta. Defaults: alpha = 1, beta = 0 */
#define tn_affine(...) \
	tn_at_affine(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_affine(const char *file, int32_t line, tn_tensor *x, double alpha, double beta);

/** c + value * x * y. Defaults: value = 1 */
#define tn_addcmul(...) \
	tn_at_addcmul(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_addcmul(const char *file, int32_t line, tn_tensor *c, tn_tensor *x, tn_tensor *y, double value);

/** c + value * x / y. Defaults: value = 1 */
#define tn_addcdiv(...) \
	tn_at_addcdiv(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_addcdiv(const char *file, int32_t line, tn_tensor *c, tn_tensor *x, tn_tensor *y, double value);

/** x + w * (y - x) */
#define tn_lerp(...) \
	tn_at_lerp(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_lerp(const char *file, int32_t line, tn_tensor *x, tn_tensor *y, tn_tensor *w);

/** log(exp(x) + exp(y)) without overflow */
#define tn_logaddexp(...) \
	tn_at_logaddexp(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_logaddexp(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x * log(y), 0 where x is 0 */
#define tn_xlogy(...) \
	tn_at_xlogy(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_xlogy(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** log(x / (1 - x)), x limited to eps .. 1 - eps. Defaults: eps = 0 */
#define tn_logit(...) \
	tn_at_logit(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_logit(const char *file, int32_t line, tn_tensor *x, double eps);

/** whether x is neither infinite nor NaN */
#define tn_isfinite(...) \
	tn_at_isfinite(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_isfinite(const char *file, int32_t line, tn_tensor *x);

/** whether abs(x - y) <= atol + rtol * abs(y); equal infinities are close. Defaults: rtol = 1e-5, atol = 1e-8 */
#define tn_isclose(...) \
	tn_at_isclose(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_isclose(const char *file, int32_t line, tn_tensor *x, tn_tensor *y, double rtol, double atol);

/** x with NaN and infinities replaced. Defaults: value = 0, pos = 3.4028234663852886e38, neg = -3.4028234663852886e38 */
#define tn_nan_to_num(...) \
	tn_at_nan_to_num(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_nan_to_num(const char *file, int32_t line, tn_tensor *x, double value, double pos, double neg);

/** the number of edges below x (right: not above x); edges ascend. Defaults: right = 0 */
#define tn_bucketize(...) \
	tn_at_bucketize(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bucketize(const char *file, int32_t line, tn_tensor *x, tn_tensor *edges, bool right);

/** whether x is one of the values v */
#define tn_isin(...) \
	tn_at_isin(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_isin(const char *file, int32_t line, tn_tensor *x, tn_tensor *v);

/** integers by scale and zero point: round(x / scale) + zero, saturated. Defaults: axis = 0, lo = -128, hi = 127 */
#define tn_quantize_linear(...) \
	tn_at_quantize_linear(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_quantize_linear(const char *file, int32_t line, tn_tensor *x, tn_tensor *scale, tn_tensor *zero, int64_t axis, int64_t lo, int64_t hi);

/** (q - zero) * scale. Defaults: axis = 0 */
#define tn_dequantize_linear(...) \
	tn_at_dequantize_linear(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_dequantize_linear(const char *file, int32_t line, tn_tensor *q, tn_tensor *scale, tn_tensor *zero, int64_t axis);

/** x * Phi(x), by erf */
#define tn_gelu(...) \
	tn_at_gelu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_gelu(const char *file, int32_t line, tn_tensor *x);

/** gelu by its tanh approximation */
#define tn_gelu_tanh(...) \
	tn_at_gelu_tanh(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_gelu_tanh(const char *file, int32_t line, tn_tensor *x);

/** x * sigmoid(1.702 x) */
#define tn_gelu_sigmoid(...) \
	tn_at_gelu_sigmoid(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_gelu_sigmoid(const char *file, int32_t line, tn_tensor *x);

/** x * sigmoid(x), also called swish */
#define tn_silu(...) \
	tn_at_silu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_silu(const char *file, int32_t line, tn_tensor *x);

/** x * tanh(softplus(x)) */
#define tn_mish(...) \
	tn_at_mish(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_mish(const char *file, int32_t line, tn_tensor *x);

/** x above 0, else alpha * (exp(x) - 1). Defaults: alpha = 1.0 */
#define tn_elu(...) \
	tn_at_elu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_elu(const char *file, int32_t line, tn_tensor *x, double alpha);

/** elu whose slope is continuous for every alpha. Defaults: alpha = 1.0 */
#define tn_celu(...) \
	tn_at_celu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_celu(const char *file, int32_t line, tn_tensor *x, double alpha);

/** elu with the self-normalising constants */
#define tn_selu(...) \
	tn_at_selu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_selu(const char *file, int32_t line, tn_tensor *x);

/** x above 0, else alpha * x. Defaults: alpha = 0.01 */
#define tn_leaky_relu(...) \
	tn_at_leaky_relu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_leaky_relu(const char *file, int32_t line, tn_tensor *x, double alpha);

/** x above alpha, else 0. Defaults: alpha = 1.0 */
#define tn_thresholded_relu(...) \
	tn_at_thresholded_relu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_thresholded_relu(const char *file, int32_t line, tn_tensor *x, double alpha);

/** alpha * x + beta, limited to 0 .. 1. Defaults: alpha = 0.2, beta = 0.5 */
#define tn_hard_sigmoid(...) \
	tn_at_hard_sigmoid(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_hard_sigmoid(const char *file, int32_t line, tn_tensor *x, double alpha, double beta);

/** x * hard_sigmoid(x) with slope 1/6 */
#define tn_hard_swish(...) \
	tn_at_hard_swish(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_hard_swish(const char *file, int32_t line, tn_tensor *x);

/** x / (1 + abs(x)) */
#define tn_softsign(...) \
	tn_at_softsign(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_softsign(const char *file, int32_t line, tn_tensor *x);

/** x above 0, else a * x with a learned */
#define tn_prelu(...) \
	tn_at_prelu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_prelu(const char *file, int32_t line, tn_tensor *x, tn_tensor *a);

/** 0 within lambd of 0, else x moved by bias towards 0. Defaults: lambd = 0.5, bias = 0.0 */
#define tn_shrink(...) \
	tn_at_shrink(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_shrink(const char *file, int32_t line, tn_tensor *x, double lambd, double bias);

/** x - tanh(x) */
#define tn_tanh_shrink(...) \
	tn_at_tanh_shrink(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tanh_shrink(const char *file, int32_t line, tn_tensor *x);

/** log(sigmoid(x)) without underflow */
#define tn_log_sigmoid(...) \
	tn_at_log_sigmoid(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_log_sigmoid(const char *file, int32_t line, tn_tensor *x);

/** first half of the axis * sigmoid(second half). Defaults: axis = -1 */
#define tn_glu(...) \
	tn_at_glu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_glu(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** silu(first half of the axis) * second half. Defaults: axis = -1 */
#define tn_swiglu(...) \
	tn_at_swiglu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_swiglu(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** sum over axes; of nothing: 0. Defaults: axes = all, keep = 0 */
#define tn_reduce_sum(...) \
	tn_at_reduce_sum(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_sum(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** product over axes; of nothing: 1. Defaults: axes = all, keep = 0 */
#define tn_reduce_prod(...) \
	tn_at_reduce_prod(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_prod(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** maximum over axes, NaN wins; of nothing: -inf, for integers the least. Defaults: axes = all, keep = 0 */
#define tn_reduce_max(...) \
	tn_at_reduce_max(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_max(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** minimum over axes, NaN wins; of nothing: inf, for integers the greatest. Defaults: axes = all, keep = 0 */
#define tn_reduce_min(...) \
	tn_at_reduce_min(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_min(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** mean over axes; of nothing: NaN. Defaults: axes = all, keep = 0 */
#define tn_reduce_mean(...) \
	tn_at_reduce_mean(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_mean(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** whether all hold; of nothing: true. Defaults: axes = all, keep = 0 */
#define tn_reduce_all(...) \
	tn_at_reduce_all(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_all(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** whether any holds; of nothing: false. Defaults: axes = all, keep = 0 */
#define tn_reduce_any(...) \
	tn_at_reduce_any(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_any(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** number of elements that are not 0 (i64). Defaults: axes = all, keep = 0 */
#define tn_count_nonzero(...) \
	tn_at_count_nonzero(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_count_nonzero(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** sum of magnitudes. Defaults: axes = all, keep = 0 */
#define tn_reduce_l1(...) \
	tn_at_reduce_l1(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_l1(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** root of the sum of squares; gradient 0 at 0. Defaults: axes = all, keep = 0 */
#define tn_reduce_l2(...) \
	tn_at_reduce_l2(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_l2(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** p-norm, p > 0: (sum of abs(x)^p)^(1/p). Defaults: axes = all, keep = 0 */
#define tn_reduce_lp(...) \
	tn_at_reduce_lp(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_lp(const char *file, int32_t line, tn_tensor *x, double p, const int64_t *axes, int32_t n_axes, bool keep);

/** sum of squares. Defaults: axes = all, keep = 0 */
#define tn_reduce_sumsq(...) \
	tn_at_reduce_sumsq(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_sumsq(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** log of the sum. Defaults: axes = all, keep = 0 */
#define tn_reduce_logsum(...) \
	tn_at_reduce_logsum(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_logsum(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** log of the sum of exp; all -inf gives -inf, any inf gives inf. Defaults: axes = all, keep = 0 */
#define tn_logsumexp(...) \
	tn_at_logsumexp(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_logsumexp(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** logsumexp in one pass, by the rescaling softmax monoid. Defaults: axes = all, keep = 0 */
#define tn_logsumexp_online(...) \
	tn_at_logsumexp_online(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_logsumexp_online(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep);

/** variance over axes, divided by the count less ddof. Defaults: axes = all, keep = 0, ddof = 0 */
#define tn_reduce_var(...) \
	tn_at_reduce_var(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_var(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep, int64_t ddof);

/** standard deviation over axes, by the count less ddof. Defaults: axes = all, keep = 0, ddof = 0 */
#define tn_reduce_std(...) \
	tn_at_reduce_std(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reduce_std(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep, int64_t ddof);

/** mean and variance in one pass. Defaults: axes = all, keep = 0. out has room for 2 */
#define tn_moments(...) \
	tn_at_moments(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_moments(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, bool keep, tn_tensor **out);

/** index of the maximum (i64); the first of equals, the first NaN. Defaults: axis = 0, keep = 0 */
#define tn_argmax(...) \
	tn_at_argmax(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_argmax(const char *file, int32_t line, tn_tensor *x, int64_t axis, bool keep);

/** index of the minimum (i64); the first of equals, the first NaN. Defaults: axis = 0, keep = 0 */
#define tn_argmin(...) \
	tn_at_argmin(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_argmin(const char *file, int32_t line, tn_tensor *x, int64_t axis, bool keep);

/** maximum and its index. Defaults: axis = 0, keep = 0. out has room for 2 */
#define tn_max_with_index(...) \
	tn_at_max_with_index(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_max_with_index(const char *file, int32_t line, tn_tensor *x, int64_t axis, bool keep, tn_tensor **out);

/** minimum and its index. Defaults: axis = 0, keep = 0. out has room for 2 */
#define tn_min_with_index(...) \
	tn_at_min_with_index(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_min_with_index(const char *file, int32_t line, tn_tensor *x, int64_t axis, bool keep, tn_tensor **out);

/** every element is value. Defaults: dtype = f32 */
#define tn_fill(...) \
	tn_at_fill(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_fill(const char *file, int32_t line, tn_context *c, const int64_t *shape, int32_t n_shape, double value, tn_dtype dtype);

/** value in the shape and dtype of x */
#define tn_fill_like(...) \
	tn_at_fill_like(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_fill_like(const char *file, int32_t line, tn_tensor *x, double value);

/** the position along one axis. Defaults: axis = 0, dtype = i64 */
#define tn_iota(...) \
	tn_at_iota(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_iota(const char *file, int32_t line, tn_context *c, const int64_t *shape, int32_t n_shape, int64_t axis, tn_dtype dtype);

/** start + step * i. Defaults: start = 0, step = 1, dtype = i64 */
#define tn_arange(...) \
	tn_at_arange(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_arange(const char *file, int32_t line, tn_context *c, int64_t n, int64_t start, int64_t step, tn_dtype dtype);

/** n values from start to stop, both included. Defaults: dtype = f32 */
#define tn_linspace(...) \
	tn_at_linspace(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_linspace(const char *file, int32_t line, tn_context *c, double start, double stop, int64_t n, tn_dtype dtype);

/** 1 on diagonal k, else 0. Defaults: k = 0, dtype = f32 */
#define tn_eye(...) \
	tn_at_eye(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_eye(const char *file, int32_t line, tn_context *c, int64_t n, int64_t m, int64_t k, tn_dtype dtype);

/** 1 at the class, else 0; nothing where ids is outside. Defaults: dtype = f32 */
#define tn_one_hot(...) \
	tn_at_one_hot(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_one_hot(const char *file, int32_t line, tn_tensor *ids, int64_t depth, tn_dtype dtype);

/** a vector along one axis of a shape: the pieces of a mesh grid */
#define tn_along_axis(...) \
	tn_at_along_axis(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_along_axis(const char *file, int32_t line, tn_tensor *x, const int64_t *shape, int32_t n_shape, int64_t axis);

/** the same elements in row-major order in another shape */
#define tn_reshape(...) \
	tn_at_reshape(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reshape(const char *file, int32_t line, tn_tensor *x, const int64_t *shape, int32_t n_shape);

/** two axes: those before axis, and the rest. Defaults: axis = 1 */
#define tn_flatten(...) \
	tn_at_flatten(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_flatten(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** axis i of the result is axis perm[i] of x */
#define tn_transpose(...) \
	tn_at_transpose(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_transpose(const char *file, int32_t line, tn_tensor *x, const int64_t *perm, int32_t n_perm);

/** count elements from start by step, along axes. Defaults: axes = all, start = 0, count = #d.., step = 1 */
#define tn_slice(...) \
	tn_at_slice(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_slice(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, const int64_t *start, int32_t n_start, const int64_t *count, int32_t n_count, const int64_t *step, int32_t n_step);

/** count elements from start along one axis. Defaults: axis = 0, start = 0 */
#define tn_narrow(...) \
	tn_at_narrow(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_narrow(const char *file, int32_t line, tn_tensor *x, int64_t axis, int64_t start, int64_t count);

/** narrow from a start that is data: a view whose place is known when run. Defaults: axis = 0 */
#define tn_dynamic_narrow(...) \
	tn_at_dynamic_narrow(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_dynamic_narrow(const char *file, int32_t line, tn_tensor *x, tn_tensor *start, int64_t axis, int64_t count);

/** one element of an axis, which goes away. Defaults: axis = 0 */
#define tn_select(...) \
	tn_at_select(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_select(const char *file, int32_t line, tn_tensor *x, int64_t axis, int64_t index);

/** reversed along axes */
#define tn_flip(...) \
	tn_at_flip(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_flip(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes);

/** rotated by shift along axes. Defaults: axes = all, shift = 0 */
#define tn_roll(...) \
	tn_at_roll(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_roll(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, const int64_t *shift, int32_t n_shift);

/** x in a larger shape by broadcasting */
#define tn_broadcast_to(...) \
	tn_at_broadcast_to(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_broadcast_to(const char *file, int32_t line, tn_tensor *x, const int64_t *shape, int32_t n_shape);

/** without axes of extent 1. Defaults: axes = all */
#define tn_squeeze(...) \
	tn_at_squeeze(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_squeeze(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes);

/** with a new axis of extent 1 in front of axis (0 .. rank). Defaults: axis = 0 */
#define tn_unsqueeze(...) \
	tn_at_unsqueeze(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_unsqueeze(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** with lo and hi elements of value around; negative ones cut off. Defaults: value = 0 */
#define tn_pad(...) \
	tn_at_pad(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_pad(const char *file, int32_t line, tn_tensor *x, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi, double value);

/** padded by repeating the border */
#define tn_pad_edge(...) \
	tn_at_pad_edge(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_pad_edge(const char *file, int32_t line, tn_tensor *x, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** padded by the mirror image without the border */
#define tn_pad_reflect(...) \
	tn_at_pad_reflect(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_pad_reflect(const char *file, int32_t line, tn_tensor *x, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** padded by going round */
#define tn_pad_wrap(...) \
	tn_at_pad_wrap(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_pad_wrap(const char *file, int32_t line, tn_tensor *x, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** the whole repeated reps times along each axis */
#define tn_tile(...) \
	tn_at_tile(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tile(const char *file, int32_t line, tn_tensor *x, const int64_t *reps, int32_t n_reps);

/** each element of an axis repeated reps times. Defaults: axis = 0 */
#define tn_repeat(...) \
	tn_at_repeat(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_repeat(const char *file, int32_t line, tn_tensor *x, int64_t axis, int64_t reps);

/** the lower triangle up to diagonal k, else 0. Defaults: k = 0 */
#define tn_tril(...) \
	tn_at_tril(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tril(const char *file, int32_t line, tn_tensor *x, int64_t k);

/** the upper triangle from diagonal k, else 0. Defaults: k = 0 */
#define tn_triu(...) \
	tn_at_triu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_triu(const char *file, int32_t line, tn_tensor *x, int64_t k);

/** diagonal k of the last two axes. Defaults: k = 0 */
#define tn_diagonal(...) \
	tn_at_diagonal(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_diagonal(const char *file, int32_t line, tn_tensor *x, int64_t k);

/** matrices with x on diagonal k, else 0. Defaults: k = 0 */
#define tn_diag_embed(...) \
	tn_at_diag_embed(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_diag_embed(const char *file, int32_t line, tn_tensor *x, int64_t k);

/** sum of the diagonal of square matrices */
#define tn_trace(...) \
	tn_at_trace(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_trace(const char *file, int32_t line, tn_tensor *x);

/** channels to r x r blocks of pixels, blocks slowest (DCR) */
#define tn_depth_to_space(...) \
	tn_at_depth_to_space(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_depth_to_space(const char *file, int32_t line, tn_tensor *x, int64_t r);

/** r x r blocks of pixels to channels, blocks slowest */
#define tn_space_to_depth(...) \
	tn_at_space_to_depth(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_space_to_depth(const char *file, int32_t line, tn_tensor *x, int64_t r);

/** channels to r x r blocks of pixels, channels slowest (CRD) */
#define tn_pixel_shuffle(...) \
	tn_at_pixel_shuffle(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_pixel_shuffle(const char *file, int32_t line, tn_tensor *x, int64_t r);

/** r x r blocks of pixels to channels, channels slowest */
#define tn_pixel_unshuffle(...) \
	tn_at_pixel_unshuffle(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_pixel_unshuffle(const char *file, int32_t line, tn_tensor *x, int64_t r);

/** channels of g groups interleaved */
#define tn_channel_shuffle(...) \
	tn_at_channel_shuffle(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_channel_shuffle(const char *file, int32_t line, tn_tensor *x, int64_t groups);

/** nearest neighbour, element y from floor(y * old / new) */
#define tn_resize_nearest(...) \
	tn_at_resize_nearest(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_resize_nearest(const char *file, int32_t line, tn_tensor *x, const int64_t *size, int32_t n_size);

/** linear interpolation along one axis; align: the corners stay. Defaults: axis = -1, align = 0 */
#define tn_resize_linear(...) \
	tn_at_resize_linear(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_resize_linear(const char *file, int32_t line, tn_tensor *x, int64_t axis, int64_t size, bool align);

/** bilinear samples of images at points g = (x, y) in -1 .. 1, 0 outside */
#define tn_grid_sample(...) \
	tn_at_grid_sample(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_grid_sample(const char *file, int32_t line, tn_tensor *x, tn_tensor *g);

/** differences of neighbours along an axis. Defaults: axis = -1 */
#define tn_diff(...) \
	tn_at_diff(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_diff(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** elements ids of one axis. Defaults: axis = 0 */
#define tn_take(...) \
	tn_at_take(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_take(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, int64_t axis);

/** one element per place of ids along an axis. Defaults: axis = 0 */
#define tn_take_along(...) \
	tn_at_take_along(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_take_along(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, int64_t axis);

/** the slices whose leading indices are the last axis of ids */
#define tn_gather_nd(...) \
	tn_at_gather_nd(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_gather_nd(const char *file, int32_t line, tn_tensor *ids, tn_tensor *x);

/** rows ids of a table */
#define tn_embedding(...) \
	tn_at_embedding(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_embedding(const char *file, int32_t line, tn_tensor *ids, tn_tensor *w);

/** sums of table rows, over the last axis of ids */
#define tn_embedding_bag(...) \
	tn_at_embedding_bag(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_embedding_bag(const char *file, int32_t line, tn_tensor *ids, tn_tensor *w);

/** x with u added at rows ids; repeated rows add up */
#define tn_scatter_add(...) \
	tn_at_scatter_add(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scatter_add(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u);

/** x and the maximum of u at rows ids */
#define tn_scatter_max(...) \
	tn_at_scatter_max(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scatter_max(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u);

/** x and the minimum of u at rows ids */
#define tn_scatter_min(...) \
	tn_at_scatter_min(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scatter_min(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u);

/** x times the product of u at rows ids */
#define tn_scatter_mul(...) \
	tn_at_scatter_mul(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scatter_mul(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u);

/** x with rows ids replaced by u; the last of equal ids wins */
#define tn_scatter_set(...) \
	tn_at_scatter_set(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scatter_set(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u);

/** x with u added at elements ids of an axis. Defaults: axis = 0 */
#define tn_index_add(...) \
	tn_at_index_add(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_index_add(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u, int64_t axis);

/** x with elements ids of an axis replaced by u; the last wins. Defaults: axis = 0 */
#define tn_index_set(...) \
	tn_at_index_set(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_index_set(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u, int64_t axis);

/** x with u added, one place per element of ids along an axis. Defaults: axis = 0 */
#define tn_add_along(...) \
	tn_at_add_along(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_add_along(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u, int64_t axis);

/** x with u put in, one place per element of ids along an axis; last wins. Defaults: axis = 0 */
#define tn_put_along(...) \
	tn_at_put_along(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_put_along(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *u, int64_t axis);

/** x with u added at the slices that the last axis of ids names */
#define tn_scatter_nd_add(...) \
	tn_at_scatter_nd_add(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scatter_nd_add(const char *file, int32_t line, tn_tensor *ids, tn_tensor *x, tn_tensor *u);

/** x with the slices that the last axis of ids names replaced; the last wins */
#define tn_scatter_nd_set(...) \
	tn_at_scatter_nd_set(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_scatter_nd_set(const char *file, int32_t line, tn_tensor *ids, tn_tensor *x, tn_tensor *u);

/** how often each of 0 .. bins - 1 occurs (i64) */
#define tn_histogram(...) \
	tn_at_histogram(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_histogram(const char *file, int32_t line, tn_tensor *ids, int64_t bins);

/** sums of the rows of each segment */
#define tn_segment_sum(...) \
	tn_at_segment_sum(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_segment_sum(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, int64_t count);

/** maxima of the rows of each segment; of none: -inf */
#define tn_segment_max(...) \
	tn_at_segment_max(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_segment_max(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, int64_t count);

/** means of the rows of each segment; of none: 0 */
#define tn_segment_mean(...) \
	tn_at_segment_mean(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_segment_mean(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, int64_t count);

/** matrix product; leading axes broadcast */
#define tn_matmul(...) \
	tn_at_matmul(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_matmul(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** matrices times a vector */
#define tn_matvec(...) \
	tn_at_matvec(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_matvec(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** scalar product of two vectors */
#define tn_dot(...) \
	tn_at_dot(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_dot(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** scalar products over the last axis */
#define tn_vecdot(...) \
	tn_at_vecdot(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_vecdot(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** every product of two vectors' elements */
#define tn_outer(...) \
	tn_at_outer(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_outer(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x w' + c */
#define tn_linear(...) \
	tn_at_linear(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_linear(const char *file, int32_t line, tn_tensor *x, tn_tensor *w, tn_tensor *c);

/** x w' for weights that have their outputs first */
#define tn_linear_nobias(...) \
	tn_at_linear_nobias(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_linear_nobias(const char *file, int32_t line, tn_tensor *x, tn_tensor *w);

/** beta * c + alpha * x y. Defaults: alpha = 1, beta = 1 */
#define tn_addmm(...) \
	tn_at_addmm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_addmm(const char *file, int32_t line, tn_tensor *c, tn_tensor *x, tn_tensor *y, double alpha, double beta);

/** x w[o] y for every o */
#define tn_bilinear(...) \
	tn_at_bilinear(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bilinear(const char *file, int32_t line, tn_tensor *x, tn_tensor *w, tn_tensor *y);

/** Kronecker product of matrices */
#define tn_kron(...) \
	tn_at_kron(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_kron(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** cross product of 3-vectors on the last axis */
#define tn_cross(...) \
	tn_at_cross(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cross(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** Euclidean distances between the rows of x and those of y */
#define tn_cdist(...) \
	tn_at_cdist(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cdist(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** convolution (correlation) of any rank, grouped, dilated, padded lo and hi. Defaults: groups = 1, stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_conv(...) \
	tn_at_conv(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_conv(const char *file, int32_t line, tn_tensor *x, tn_tensor *w, int64_t groups, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** transposed convolution: the adjoint of conv in x. Defaults: groups = 1, stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_conv_transpose(...) \
	tn_at_conv_transpose(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_conv_transpose(const char *file, int32_t line, tn_tensor *x, tn_tensor *w, int64_t groups, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** windows as columns (im2col). Defaults: stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_unfold(...) \
	tn_at_unfold(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_unfold(const char *file, int32_t line, tn_tensor *x, const int64_t *kernel, int32_t n_kernel, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** overlapping windows added up (col2im), the adjoint of unfold. Defaults: stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_fold(...) \
	tn_at_fold(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_fold(const char *file, int32_t line, tn_tensor *x, const int64_t *size, int32_t n_size, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** maximum of each window; the padding does not count. Defaults: stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_max_pool(...) \
	tn_at_max_pool(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_max_pool(const char *file, int32_t line, tn_tensor *x, const int64_t *kernel, int32_t n_kernel, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** mean of each window, the padding not counted. Defaults: stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_avg_pool(...) \
	tn_at_avg_pool(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_avg_pool(const char *file, int32_t line, tn_tensor *x, const int64_t *kernel, int32_t n_kernel, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** mean of each window, the padding counted as zeros. Defaults: stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_avg_pool_padded(...) \
	tn_at_avg_pool_padded(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_avg_pool_padded(const char *file, int32_t line, tn_tensor *x, const int64_t *kernel, int32_t n_kernel, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** p-norm of each window. Defaults: p = 2, stride = 1, dil = 1, lo = 0, hi = 0 */
#define tn_lp_pool(...) \
	tn_at_lp_pool(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_lp_pool(const char *file, int32_t line, tn_tensor *x, const int64_t *kernel, int32_t n_kernel, double p, const int64_t *stride, int32_t n_stride, const int64_t *dil, int32_t n_dil, const int64_t *lo, int32_t n_lo, const int64_t *hi, int32_t n_hi);

/** mean over all positions */
#define tn_global_avg_pool(...) \
	tn_at_global_avg_pool(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_global_avg_pool(const char *file, int32_t line, tn_tensor *x);

/** maximum over all positions */
#define tn_global_max_pool(...) \
	tn_at_global_max_pool(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_global_max_pool(const char *file, int32_t line, tn_tensor *x);

/** running sum. Defaults: axis = 0 */
#define tn_cumsum(...) \
	tn_at_cumsum(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cumsum(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** running sum from the end. Defaults: axis = 0 */
#define tn_cumsum_reverse(...) \
	tn_at_cumsum_reverse(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cumsum_reverse(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** running sum of what lies before. Defaults: axis = 0 */
#define tn_cumsum_exclusive(...) \
	tn_at_cumsum_exclusive(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cumsum_exclusive(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** running sum of what lies behind. Defaults: axis = 0 */
#define tn_cumsum_reverse_exclusive(...) \
	tn_at_cumsum_reverse_exclusive(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cumsum_reverse_exclusive(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** running product. Defaults: axis = 0 */
#define tn_cumprod(...) \
	tn_at_cumprod(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cumprod(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** running maximum. Defaults: axis = 0 */
#define tn_cummax(...) \
	tn_at_cummax(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cummax(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** running minimum. Defaults: axis = 0 */
#define tn_cummin(...) \
	tn_at_cummin(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cummin(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** h[t] = x[t] + a[t] * h[t-1], along the last axis but one */
#define tn_linear_recurrence(...) \
	tn_at_linear_recurrence(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_linear_recurrence(const char *file, int32_t line, tn_tensor *a, tn_tensor *x);

/** sums of what is to come, each step discounted by gamma. Defaults: axis = 0 */
#define tn_discounted_sum(...) \
	tn_at_discounted_sum(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_discounted_sum(const char *file, int32_t line, tn_tensor *x, int64_t axis, double gamma);

/** exponential moving average: m[t] = m[t-1] + alpha * (x[t] - m[t-1]). Defaults: axis = 0 */
#define tn_moving_average(...) \
	tn_at_moving_average(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_moving_average(const char *file, int32_t line, tn_tensor *x, int64_t axis, double alpha);

/** h[t] = tanh(x[t] + u * h[t-1]) */
#define tn_tanh_rnn(...) \
	tn_at_tanh_rnn(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tanh_rnn(const char *file, int32_t line, tn_tensor *x, tn_tensor *u);

/** uniform in lo .. hi, hi excluded. Defaults: lo = 0.0, hi = 1.0, dtype = f32 */
#define tn_uniform(...) \
	tn_at_uniform(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_uniform(const char *file, int32_t line, tn_tensor *key, const int64_t *shape, int32_t n_shape, double lo, double hi, tn_dtype dtype);

/** standard normal, by Box and Muller. Defaults: dtype = f32 */
#define tn_normal(...) \
	tn_at_normal(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_normal(const char *file, int32_t line, tn_tensor *key, const int64_t *shape, int32_t n_shape, tn_dtype dtype);

/** true with probability p, elementwise */
#define tn_bernoulli(...) \
	tn_at_bernoulli(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bernoulli(const char *file, int32_t line, tn_tensor *key, tn_tensor *p);

/** integers lo .. hi - 1, at most 2^24 of them. Defaults: lo = 0 */
#define tn_randint(...) \
	tn_at_randint(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_randint(const char *file, int32_t line, tn_tensor *key, const int64_t *shape, int32_t n_shape, int64_t lo, int64_t hi);

/** exponentially distributed with the given rate. Defaults: rate = 1, dtype = f32 */
#define tn_exponential(...) \
	tn_at_exponential(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_exponential(const char *file, int32_t line, tn_tensor *key, const int64_t *shape, int32_t n_shape, double rate, tn_dtype dtype);

/** standard Gumbel noise. Defaults: dtype = f32 */
#define tn_gumbel(...) \
	tn_at_gumbel(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_gumbel(const char *file, int32_t line, tn_tensor *key, const int64_t *shape, int32_t n_shape, tn_dtype dtype);

/** one class per row, drawn from softmax(x) (i64) */
#define tn_categorical(...) \
	tn_at_categorical(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_categorical(const char *file, int32_t line, tn_tensor *key, tn_tensor *x);

/** x / (1 - p) with probability 1 - p, else 0. Defaults: p = 0.5 */
#define tn_dropout(...) \
	tn_at_dropout(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_dropout(const char *file, int32_t line, tn_tensor *x, tn_tensor *key, double p);

/** sorted along an axis, stable, and where each came from; NaN is greatest. Defaults: axis = -1, desc = 0. out has room for 2 */
#define tn_sort(...) \
	tn_at_sort(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sort(const char *file, int32_t line, tn_tensor *x, int64_t axis, bool desc, tn_tensor **out);

/** the indices that sort an axis, stable; NaN is greatest. Defaults: axis = -1, desc = 0 */
#define tn_argsort(...) \
	tn_at_argsort(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_argsort(const char *file, int32_t line, tn_tensor *x, int64_t axis, bool desc);

/** the count greatest (or least) of an axis in order, and their indices. Defaults: axis = -1, largest = 1. out has room for 2 */
#define tn_topk(...) \
	tn_at_topk(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_topk(const char *file, int32_t line, tn_tensor *x, int64_t axis, int64_t count, bool largest, tn_tensor **out);

/** indices of what is not 0 in row-major order, padded with -1; their count. out has room for 2 */
#define tn_nonzero(...) \
	tn_at_nonzero(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_nonzero(const char *file, int32_t line, tn_tensor *x, tn_tensor **out);

/** distinct values ascending (padded with 0), first index of each, which one each element is, how often each occurs, and how many there are. out has room for 5 */
#define tn_unique(...) \
	tn_at_unique(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_unique(const char *file, int32_t line, tn_tensor *x, tn_tensor **out);

/** indices (batch, class, box) of the boxes kept, padded with -1, and their count; a box falls when its overlap with a better one exceeds iou. Defaults: center = 0. out has room for 2 */
#define tn_non_max_suppression(...) \
	tn_at_non_max_suppression(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_non_max_suppression(const char *file, int32_t line, tn_tensor *boxes, tn_tensor *scores, tn_tensor *iou, tn_tensor *least, int64_t most, bool center, tn_tensor **out);

/** exp(x) / sum of exp(x) along an axis. Defaults: axis = -1 */
#define tn_softmax(...) \
	tn_at_softmax(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_softmax(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** log of softmax, without underflow. Defaults: axis = -1 */
#define tn_log_softmax(...) \
	tn_at_log_softmax(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_log_softmax(const char *file, int32_t line, tn_tensor *x, int64_t axis);

/** softmax over the places where the mask holds; 0 elsewhere. Defaults: axis = -1 */
#define tn_masked_softmax(...) \
	tn_at_masked_softmax(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_masked_softmax(const char *file, int32_t line, tn_tensor *x, tn_tensor *mask, int64_t axis);

/** normalised over the last k axes, scaled by g, moved by c. Defaults: k = 1, eps = 1e-5 */
#define tn_layer_norm(...) \
	tn_at_layer_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_layer_norm(const char *file, int32_t line, tn_tensor *x, tn_tensor *g, tn_tensor *c, int64_t k, double eps);

/** layer_norm over the last axis that reads x once for its statistics. Defaults: eps = 1e-5 */
#define tn_layer_norm_welford(...) \
	tn_at_layer_norm_welford(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_layer_norm_welford(const char *file, int32_t line, tn_tensor *x, tn_tensor *g, tn_tensor *c, double eps);

/** x over its root mean square along the last axis, scaled by g. Defaults: eps = 1e-5 */
#define tn_rms_norm(...) \
	tn_at_rms_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_rms_norm(const char *file, int32_t line, tn_tensor *x, tn_tensor *g, double eps);

/** normalised per channel over the batch; also the next running statistics. Defaults: eps = 1e-5, momentum = 0.1. out has room for 3 */
#define tn_batch_norm(...) \
	tn_at_batch_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_batch_norm(const char *file, int32_t line, tn_tensor *x, tn_tensor *g, tn_tensor *b, tn_tensor *rm, tn_tensor *rv, double eps, double momentum, tn_tensor **out);

/** normalised per channel by given statistics. Defaults: eps = 1e-5 */
#define tn_batch_norm_infer(...) \
	tn_at_batch_norm_infer(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_batch_norm_infer(const char *file, int32_t line, tn_tensor *x, tn_tensor *g, tn_tensor *b, tn_tensor *rm, tn_tensor *rv, double eps);

/** normalised per sample and group of channels. Defaults: eps = 1e-5 */
#define tn_group_norm(...) \
	tn_at_group_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_group_norm(const char *file, int32_t line, tn_tensor *x, tn_tensor *g, tn_tensor *b, int64_t groups, double eps);

/** normalised per sample and channel. Defaults: eps = 1e-5 */
#define tn_instance_norm(...) \
	tn_at_instance_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_instance_norm(const char *file, int32_t line, tn_tensor *x, tn_tensor *g, tn_tensor *b, double eps);

/** x less its mean, over its standard deviation, along axes. Defaults: axes = all, eps = 1e-5 */
#define tn_standardize(...) \
	tn_at_standardize(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_standardize(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, double eps);

/** x over max(its Euclidean norm, eps) along axes. Defaults: axes = all, eps = 1e-12 */
#define tn_l2_normalize(...) \
	tn_at_l2_normalize(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_l2_normalize(const char *file, int32_t line, tn_tensor *x, const int64_t *axes, int32_t n_axes, double eps);

/** x over a power of the squares of size neighbouring channels. Defaults: alpha = 1e-4, beta = 0.75, bias = 1 */
#define tn_local_response_norm(...) \
	tn_at_local_response_norm(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_local_response_norm(const char *file, int32_t line, tn_tensor *x, int64_t size, double alpha, double beta, double bias);

/** mean of squared differences */
#define tn_mse(...) \
	tn_at_mse(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_mse(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** mean of absolute differences */
#define tn_l1_loss(...) \
	tn_at_l1_loss(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_l1_loss(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** mean of d*d/2 up to delta, linear beyond. Defaults: delta = 1 */
#define tn_huber(...) \
	tn_at_huber(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_huber(const char *file, int32_t line, tn_tensor *x, tn_tensor *y, double delta);

/** mean of max(0, 1 - x * y), y is -1 or 1 */
#define tn_hinge_loss(...) \
	tn_at_hinge_loss(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_hinge_loss(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** mean over rows of -log softmax(x) at the class t */
#define tn_cross_entropy(...) \
	tn_at_cross_entropy(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cross_entropy(const char *file, int32_t line, tn_tensor *x, tn_tensor *t);

/** -log softmax(x) at the class t, for each row */
#define tn_cross_entropy_rows(...) \
	tn_at_cross_entropy_rows(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cross_entropy_rows(const char *file, int32_t line, tn_tensor *x, tn_tensor *t);

/** cross_entropy over the rows whose class is not ignore. Defaults: ignore = -100 */
#define tn_cross_entropy_masked(...) \
	tn_at_cross_entropy_masked(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cross_entropy_masked(const char *file, int32_t line, tn_tensor *x, tn_tensor *t, int64_t ignore);

/** mean over rows of -sum of p * log softmax(x), p being probabilities */
#define tn_cross_entropy_soft(...) \
	tn_at_cross_entropy_soft(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cross_entropy_soft(const char *file, int32_t line, tn_tensor *x, tn_tensor *p);

/** mean over rows of -x at the class t, x being log probabilities */
#define tn_nll_loss(...) \
	tn_at_nll_loss(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_nll_loss(const char *file, int32_t line, tn_tensor *x, tn_tensor *t);

/** mean of -(t log x + (1 - t) log(1 - x)), logs limited to -100 */
#define tn_bce(...) \
	tn_at_bce(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bce(const char *file, int32_t line, tn_tensor *x, tn_tensor *t);

/** bce of sigmoid(x), without overflow */
#define tn_bce_with_logits(...) \
	tn_at_bce_with_logits(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bce_with_logits(const char *file, int32_t line, tn_tensor *x, tn_tensor *t);

/** sum of p (log p - x) over the batch extent, x being log probabilities */
#define tn_kl_div(...) \
	tn_at_kl_div(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_kl_div(const char *file, int32_t line, tn_tensor *x, tn_tensor *p);

/** cosine of the angle between rows. Defaults: eps = 1e-8 */
#define tn_cosine_similarity(...) \
	tn_at_cosine_similarity(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cosine_similarity(const char *file, int32_t line, tn_tensor *x, tn_tensor *y, double eps);

/** softmax(scale * q k') v; causal: t sees u <= t; 0 where it sees none. Defaults: causal = 0 */
#define tn_attention(...) \
	tn_at_attention(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_attention(const char *file, int32_t line, tn_tensor *q, tn_tensor *k, tn_tensor *v, bool causal, double scale);

/** attention with bias added to the scores (-inf forbids); all broadcast */
#define tn_attention_bias(...) \
	tn_at_attention_bias(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_attention_bias(const char *file, int32_t line, tn_tensor *q, tn_tensor *k, tn_tensor *v, tn_tensor *bias, double scale);

/** attention whose heads share keys in groups; shift: t sees u <= t + shift. Defaults: causal = 0, shift = 0 */
#define tn_attention_grouped(...) \
	tn_at_attention_grouped(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_attention_grouped(const char *file, int32_t line, tn_tensor *q, tn_tensor *k, tn_tensor *v, int64_t groups, bool causal, int64_t shift, double scale);

/** attention in one pass over the keys, by the rescaling softmax monoid. Defaults: causal = 0 */
#define tn_attention_online(...) \
	tn_at_attention_online(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_attention_online(const char *file, int32_t line, tn_tensor *q, tn_tensor *k, tn_tensor *v, bool causal, double scale);

/** rotary positions on two halves of the last axis; c, s: cosines, sines */
#define tn_rope(...) \
	tn_at_rope(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_rope(const char *file, int32_t line, tn_tensor *x, tn_tensor *c, tn_tensor *s);

/** rotary positions on neighbouring pairs of the last axis */
#define tn_rope_pairs(...) \
	tn_at_rope_pairs(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_rope_pairs(const char *file, int32_t line, tn_tensor *x, tn_tensor *c, tn_tensor *s);

/** gradient descent with weight decay. Defaults: decay = 0 */
#define tn_sgd(...) \
	tn_at_sgd(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sgd(const char *file, int32_t line, tn_tensor *p, tn_tensor *g, tn_tensor *lr, double decay);

/** gradient descent with momentum; nesterov looks ahead. Defaults: momentum = 0.9, decay = 0, nesterov = 0. out has room for 2 */
#define tn_sgd_momentum(...) \
	tn_at_sgd_momentum(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sgd_momentum(const char *file, int32_t line, tn_tensor *p, tn_tensor *m, tn_tensor *g, tn_tensor *lr, double momentum, double decay, bool nesterov, tn_tensor **out);

/** Adam; decay is added to the gradient. Defaults: beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0. out has room for 3 */
#define tn_adam(...) \
	tn_at_adam(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_adam(const char *file, int32_t line, tn_tensor *p, tn_tensor *m, tn_tensor *v, tn_tensor *g, tn_tensor *lr, tn_tensor *c1, tn_tensor *c2, double beta1, double beta2, double eps, double decay, tn_tensor **out);

/** AdamW: decay acts on the parameter, not on the gradient. Defaults: beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.01. out has room for 3 */
#define tn_adamw(...) \
	tn_at_adamw(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_adamw(const char *file, int32_t line, tn_tensor *p, tn_tensor *m, tn_tensor *v, tn_tensor *g, tn_tensor *lr, tn_tensor *c1, tn_tensor *c2, double beta1, double beta2, double eps, double decay, tn_tensor **out);

/** Adagrad: the sum of squares so far scales the step. Defaults: eps = 1e-10, decay = 0. out has room for 2 */
#define tn_adagrad(...) \
	tn_at_adagrad(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_adagrad(const char *file, int32_t line, tn_tensor *p, tn_tensor *v, tn_tensor *g, tn_tensor *lr, double eps, double decay, tn_tensor **out);

/** RMSprop: a running mean of squares scales the step. Defaults: alpha = 0.99, eps = 1e-8, decay = 0. out has room for 2 */
#define tn_rmsprop(...) \
	tn_at_rmsprop(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_rmsprop(const char *file, int32_t line, tn_tensor *p, tn_tensor *v, tn_tensor *g, tn_tensor *lr, double alpha, double eps, double decay, tn_tensor **out);

/** LAMB: Adam's step scaled to the parameter's norm. Defaults: beta1 = 0.9, beta2 = 0.999, eps = 1e-6, decay = 0.01. out has room for 3 */
#define tn_lamb(...) \
	tn_at_lamb(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_lamb(const char *file, int32_t line, tn_tensor *p, tn_tensor *m, tn_tensor *v, tn_tensor *g, tn_tensor *lr, tn_tensor *c1, tn_tensor *c2, double beta1, double beta2, double eps, double decay, tn_tensor **out);

/** what all gradients are multiplied by so that their norm, whose square is s, is at most limit */
#define tn_clip_factor(...) \
	tn_at_clip_factor(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_clip_factor(const char *file, int32_t line, tn_tensor *s, double limit);

/** each element of an axis from elements ids, by weights w. Defaults: axis = 0 */
#define tn_resample(...) \
	tn_at_resample(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_resample(const char *file, int32_t line, tn_tensor *x, tn_tensor *ids, tn_tensor *w, int64_t axis);

/** pixels of images at places i (rows) and j (columns), 0 outside */
#define tn_sample_pixels(...) \
	tn_at_sample_pixels(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sample_pixels(const char *file, int32_t line, tn_tensor *x, tn_tensor *i, tn_tensor *j);

/** pixels of image b at rows i and columns j of boxes, times u and v */
#define tn_sample_boxes(...) \
	tn_at_sample_boxes(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sample_boxes(const char *file, int32_t line, tn_tensor *x, tn_tensor *b, tn_tensor *i, tn_tensor *j, tn_tensor *u, tn_tensor *v);

/** the largest pixel of image b in each cell of boxes, rows y0 .. y1 - 1 and columns x0 .. x1 - 1; 0 where a cell is empty */
#define tn_max_boxes(...) \
	tn_at_max_boxes(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_max_boxes(const char *file, int32_t line, tn_tensor *x, tn_tensor *b, tn_tensor *y0, tn_tensor *y1, tn_tensor *x0, tn_tensor *x1);

/** the bits of each element as an element of another dtype: the low ones, or zeros above them, if that has fewer or more; of bool: is any bit 1 */
#define tn_bit_cast(...) \
	tn_at_bit_cast(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bit_cast(const char *file, int32_t line, tn_tensor *x, tn_dtype dtype);

/** determinants of square matrices */
#define tn_det(...) \
	tn_at_det(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_det(const char *file, int32_t line, tn_tensor *x);

/** distinct slices of an axis in order: first index of each (padded with -1), which one each slice is, how often each occurs, how many there are. Defaults: axis = 0. out has room for 4 */
#define tn_unique_slices(...) \
	tn_at_unique_slices(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_unique_slices(const char *file, int32_t line, tn_tensor *x, int64_t axis, tn_tensor **out);

/** operands joined along an axis. Defaults: axis = 0 */
#define tn_concat(...) \
	tn_at_concat(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_concat(const char *file, int32_t line, tn_tensor *const *x, int32_t n_x, int64_t axis);

/** operands of one shape joined along a new axis. Defaults: axis = 0 */
#define tn_stack(...) \
	tn_at_stack(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_stack(const char *file, int32_t line, tn_tensor *const *x, int32_t n_x, int64_t axis);

/** pieces of an axis: their sizes, or how many parts. Defaults: axis = 0, sizes = [], parts = 0 */
#define tn_split(...) \
	tn_at_split(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_split(const char *file, int32_t line, tn_tensor *x, int64_t axis, const int64_t *sizes, int32_t n_sizes, int64_t parts, tn_tensor **out);

/** the slices of an axis, each without it. Defaults: axis = 0 */
#define tn_unbind(...) \
	tn_at_unbind(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_unbind(const char *file, int32_t line, tn_tensor *x, int64_t axis, tn_tensor **out);

/** sum of products by letters: einsum(x, y, equation="ij,jk->ik") */
#define tn_einsum(...) \
	tn_at_einsum(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_einsum(const char *file, int32_t line, tn_tensor *const *x, int32_t n_x, const char *equation);

/** e to the power of x */
#define tn_exp(...) \
	tn_at_exp(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_exp(const char *file, int32_t line, tn_tensor *x);
#define tn_exp_(...) \
	tn_at_exp_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_exp_(const char *file, int32_t line, tn_tensor *x);

/** e to the power of x; 0 at -87 and below: the weight of a score beside the greatest one */
#define tn_exp_weight(...) \
	tn_at_exp_weight(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_exp_weight(const char *file, int32_t line, tn_tensor *x);
#define tn_exp_weight_(...) \
	tn_at_exp_weight_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_exp_weight_(const char *file, int32_t line, tn_tensor *x);

/** natural logarithm; NaN below 0 */
#define tn_log(...) \
	tn_at_log(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_log(const char *file, int32_t line, tn_tensor *x);
#define tn_log_(...) \
	tn_at_log_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_log_(const char *file, int32_t line, tn_tensor *x);

/** square root; NaN below 0 */
#define tn_sqrt(...) \
	tn_at_sqrt(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sqrt(const char *file, int32_t line, tn_tensor *x);
#define tn_sqrt_(...) \
	tn_at_sqrt_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sqrt_(const char *file, int32_t line, tn_tensor *x);

/** 1 / sqrt(x) */
#define tn_rsqrt(...) \
	tn_at_rsqrt(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_rsqrt(const char *file, int32_t line, tn_tensor *x);
#define tn_rsqrt_(...) \
	tn_at_rsqrt_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_rsqrt_(const char *file, int32_t line, tn_tensor *x);

/** hyperbolic tangent */
#define tn_tanh(...) \
	tn_at_tanh(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tanh(const char *file, int32_t line, tn_tensor *x);
#define tn_tanh_(...) \
	tn_at_tanh_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_tanh_(const char *file, int32_t line, tn_tensor *x);

/** error function */
#define tn_erf(...) \
	tn_at_erf(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_erf(const char *file, int32_t line, tn_tensor *x);
#define tn_erf_(...) \
	tn_at_erf_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_erf_(const char *file, int32_t line, tn_tensor *x);

/** sine */
#define tn_sin(...) \
	tn_at_sin(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sin(const char *file, int32_t line, tn_tensor *x);
#define tn_sin_(...) \
	tn_at_sin_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sin_(const char *file, int32_t line, tn_tensor *x);

/** cosine */
#define tn_cos(...) \
	tn_at_cos(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cos(const char *file, int32_t line, tn_tensor *x);
#define tn_cos_(...) \
	tn_at_cos_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_cos_(const char *file, int32_t line, tn_tensor *x);

/** tangent */
#define tn_tan(...) \
	tn_at_tan(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tan(const char *file, int32_t line, tn_tensor *x);
#define tn_tan_(...) \
	tn_at_tan_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_tan_(const char *file, int32_t line, tn_tensor *x);

/** inverse sine */
#define tn_asin(...) \
	tn_at_asin(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_asin(const char *file, int32_t line, tn_tensor *x);
#define tn_asin_(...) \
	tn_at_asin_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_asin_(const char *file, int32_t line, tn_tensor *x);

/** inverse cosine */
#define tn_acos(...) \
	tn_at_acos(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_acos(const char *file, int32_t line, tn_tensor *x);
#define tn_acos_(...) \
	tn_at_acos_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_acos_(const char *file, int32_t line, tn_tensor *x);

/** inverse tangent */
#define tn_atan(...) \
	tn_at_atan(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_atan(const char *file, int32_t line, tn_tensor *x);
#define tn_atan_(...) \
	tn_at_atan_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_atan_(const char *file, int32_t line, tn_tensor *x);

/** hyperbolic sine */
#define tn_sinh(...) \
	tn_at_sinh(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sinh(const char *file, int32_t line, tn_tensor *x);
#define tn_sinh_(...) \
	tn_at_sinh_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sinh_(const char *file, int32_t line, tn_tensor *x);

/** hyperbolic cosine */
#define tn_cosh(...) \
	tn_at_cosh(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_cosh(const char *file, int32_t line, tn_tensor *x);
#define tn_cosh_(...) \
	tn_at_cosh_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_cosh_(const char *file, int32_t line, tn_tensor *x);

/** inverse hyperbolic sine */
#define tn_asinh(...) \
	tn_at_asinh(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_asinh(const char *file, int32_t line, tn_tensor *x);
#define tn_asinh_(...) \
	tn_at_asinh_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_asinh_(const char *file, int32_t line, tn_tensor *x);

/** inverse hyperbolic cosine */
#define tn_acosh(...) \
	tn_at_acosh(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_acosh(const char *file, int32_t line, tn_tensor *x);
#define tn_acosh_(...) \
	tn_at_acosh_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_acosh_(const char *file, int32_t line, tn_tensor *x);

/** inverse hyperbolic tangent */
#define tn_atanh(...) \
	tn_at_atanh(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_atanh(const char *file, int32_t line, tn_tensor *x);
#define tn_atanh_(...) \
	tn_at_atanh_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_atanh_(const char *file, int32_t line, tn_tensor *x);

/** 1 / (1 + exp(-x)) */
#define tn_sigmoid(...) \
	tn_at_sigmoid(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sigmoid(const char *file, int32_t line, tn_tensor *x);
#define tn_sigmoid_(...) \
	tn_at_sigmoid_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sigmoid_(const char *file, int32_t line, tn_tensor *x);

/** log(1 + x), exact near 0 */
#define tn_log1p(...) \
	tn_at_log1p(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_log1p(const char *file, int32_t line, tn_tensor *x);
#define tn_log1p_(...) \
	tn_at_log1p_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_log1p_(const char *file, int32_t line, tn_tensor *x);

/** exp(x) - 1, exact near 0 */
#define tn_expm1(...) \
	tn_at_expm1(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_expm1(const char *file, int32_t line, tn_tensor *x);
#define tn_expm1_(...) \
	tn_at_expm1_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_expm1_(const char *file, int32_t line, tn_tensor *x);

/** log(1 + exp(x)) */
#define tn_softplus(...) \
	tn_at_softplus(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_softplus(const char *file, int32_t line, tn_tensor *x);
#define tn_softplus_(...) \
	tn_at_softplus_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_softplus_(const char *file, int32_t line, tn_tensor *x);

/** max(x, 0); NaN stays NaN; derivative 0 at 0 */
#define tn_relu(...) \
	tn_at_relu(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_relu(const char *file, int32_t line, tn_tensor *x);
#define tn_relu_(...) \
	tn_at_relu_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_relu_(const char *file, int32_t line, tn_tensor *x);

/** magnitude; of the least integer: itself */
#define tn_abs(...) \
	tn_at_abs(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_abs(const char *file, int32_t line, tn_tensor *x);
#define tn_abs_(...) \
	tn_at_abs_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_abs_(const char *file, int32_t line, tn_tensor *x);

/** -x */
#define tn_neg(...) \
	tn_at_neg(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_neg(const char *file, int32_t line, tn_tensor *x);
#define tn_neg_(...) \
	tn_at_neg_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_neg_(const char *file, int32_t line, tn_tensor *x);

/** -1, 0 or 1; of NaN: NaN */
#define tn_sign(...) \
	tn_at_sign(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sign(const char *file, int32_t line, tn_tensor *x);
#define tn_sign_(...) \
	tn_at_sign_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sign_(const char *file, int32_t line, tn_tensor *x);

/** 1 / x */
#define tn_recip(...) \
	tn_at_recip(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_recip(const char *file, int32_t line, tn_tensor *x);
#define tn_recip_(...) \
	tn_at_recip_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_recip_(const char *file, int32_t line, tn_tensor *x);

/** round down */
#define tn_floor(...) \
	tn_at_floor(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_floor(const char *file, int32_t line, tn_tensor *x);
#define tn_floor_(...) \
	tn_at_floor_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_floor_(const char *file, int32_t line, tn_tensor *x);

/** round up */
#define tn_ceil(...) \
	tn_at_ceil(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_ceil(const char *file, int32_t line, tn_tensor *x);
#define tn_ceil_(...) \
	tn_at_ceil_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_ceil_(const char *file, int32_t line, tn_tensor *x);

/** round to nearest, halves to even */
#define tn_round(...) \
	tn_at_round(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_round(const char *file, int32_t line, tn_tensor *x);
#define tn_round_(...) \
	tn_at_round_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_round_(const char *file, int32_t line, tn_tensor *x);

/** round towards 0 */
#define tn_trunc(...) \
	tn_at_trunc(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_trunc(const char *file, int32_t line, tn_tensor *x);
#define tn_trunc_(...) \
	tn_at_trunc_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_trunc_(const char *file, int32_t line, tn_tensor *x);

/** x with 10 bits of fraction: the nearest such number, halves away from 0; what matrix instructions of GPUs take of a factor in f32 */
#define tn_tf32(...) \
	tn_at_tf32(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_tf32(const char *file, int32_t line, tn_tensor *x);
#define tn_tf32_(...) \
	tn_at_tf32_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_tf32_(const char *file, int32_t line, tn_tensor *x);

/** is x NaN */
#define tn_isnan(...) \
	tn_at_isnan(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_isnan(const char *file, int32_t line, tn_tensor *x);

/** is x an infinity */
#define tn_isinf(...) \
	tn_at_isinf(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_isinf(const char *file, int32_t line, tn_tensor *x);

/** logical not */
#define tn_not(...) \
	tn_at_not(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_not(const char *file, int32_t line, tn_tensor *x);

/** x + y */
#define tn_add(...) \
	tn_at_add(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_add(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_add_(...) \
	tn_at_add_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_add_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x - y */
#define tn_sub(...) \
	tn_at_sub(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sub(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_sub_(...) \
	tn_at_sub_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sub_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x * y */
#define tn_mul(...) \
	tn_at_mul(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_mul(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_mul_(...) \
	tn_at_mul_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_mul_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x / y; integers truncate, by 0 give 0 */
#define tn_div(...) \
	tn_at_div(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_div(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_div_(...) \
	tn_at_div_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_div_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x to the power of y */
#define tn_pow(...) \
	tn_at_pow(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_pow(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_pow_(...) \
	tn_at_pow_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_pow_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** remainder with the sign of x; of integers by 0: 0 */
#define tn_fmod(...) \
	tn_at_fmod(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_fmod(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_fmod_(...) \
	tn_at_fmod_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_fmod_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** remainder with the sign of y; of integers by 0: 0 */
#define tn_mod(...) \
	tn_at_mod(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_mod(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_mod_(...) \
	tn_at_mod_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_mod_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** the larger; NaN if one is NaN */
#define tn_max(...) \
	tn_at_max(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_max(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_max_(...) \
	tn_at_max_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_max_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** the smaller; NaN if one is NaN */
#define tn_min(...) \
	tn_at_min(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_min(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_min_(...) \
	tn_at_min_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_min_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** angle of the point (y, x) */
#define tn_atan2(...) \
	tn_at_atan2(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_atan2(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_atan2_(...) \
	tn_at_atan2_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_atan2_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x < y */
#define tn_lt(...) \
	tn_at_lt(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_lt(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x <= y */
#define tn_le(...) \
	tn_at_le(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_le(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x > y */
#define tn_gt(...) \
	tn_at_gt(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_gt(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x >= y */
#define tn_ge(...) \
	tn_at_ge(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_ge(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x == y */
#define tn_eq(...) \
	tn_at_eq(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_eq(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x != y */
#define tn_ne(...) \
	tn_at_ne(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_ne(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** logical and */
#define tn_and(...) \
	tn_at_and(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_and(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** logical or */
#define tn_or(...) \
	tn_at_or(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_or(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** exactly one of both */
#define tn_xor(...) \
	tn_at_xor(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_xor(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** x ? y : z */
#define tn_sel(...) \
	tn_at_sel(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_sel(const char *file, int32_t line, tn_tensor *x, tn_tensor *y, tn_tensor *z);
#define tn_sel_(...) \
	tn_at_sel_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_sel_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y, tn_tensor *z);

/** bitwise and */
#define tn_bit_and(...) \
	tn_at_bit_and(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bit_and(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_bit_and_(...) \
	tn_at_bit_and_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_bit_and_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** bitwise or */
#define tn_bit_or(...) \
	tn_at_bit_or(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bit_or(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_bit_or_(...) \
	tn_at_bit_or_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_bit_or_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** bitwise exclusive or */
#define tn_bit_xor(...) \
	tn_at_bit_xor(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bit_xor(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_bit_xor_(...) \
	tn_at_bit_xor_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_bit_xor_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** bitwise complement */
#define tn_bit_not(...) \
	tn_at_bit_not(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_bit_not(const char *file, int32_t line, tn_tensor *x);
#define tn_bit_not_(...) \
	tn_at_bit_not_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_bit_not_(const char *file, int32_t line, tn_tensor *x);

/** shift left; by less than 0 or more than 63: 0 */
#define tn_shl(...) \
	tn_at_shl(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_shl(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_shl_(...) \
	tn_at_shl_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_shl_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** shift right with the sign; by less than 0 or more than 63: -1 if x < 0, else 0 */
#define tn_shr(...) \
	tn_at_shr(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_shr(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_shr_(...) \
	tn_at_shr_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_shr_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

/** random number of (key, counter) in [0, 1), 24 bits */
#define tn_u01(...) \
	tn_at_u01(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_u01(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);
#define tn_u01_(...) \
	tn_at_u01_(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_u01_(const char *file, int32_t line, tn_tensor *x, tn_tensor *y);

#endif
