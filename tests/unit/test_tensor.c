/* Tensors of tenon.h: recording, views, writes in place, errors, counters. */
#include "unit.h"

#include <math.h>
#include <string.h>

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static tn_tensor *matrix(tn_context *c, int64_t n, int64_t m, const float *d)
{
	int64_t shape[] = {n, m};

	return tn_tensor_new(c, TN_F32, 2, shape, d);
}

static const float six[] = {1, 2, 3, 4, 5, 6};
static const int64_t swap[] = {1, 0};

/* A view sees what is written, and a write through it reaches the base. */
static void views_are_views(bool interp)
{
	tn_context *c = context(interp);
	tn_tensor *x = matrix(c, 2, 3, six);
	tn_tensor *t = tn_transpose(x, swap, 2), *row = tn_select(t, 0, 1);
	tn_tensor *y = tn_mul(row, row);
	float got[6];

	tn_add_(row, tn_scalar(c, TN_F32, 10));
	assert_int_equal(tn_read(t, got, sizeof got), TN_OK);
	assert_true(got[0] == 1 && got[1] == 4 && got[2] == 12 && got[3] == 15);
	/* y was recorded before the write */
	assert_int_equal(tn_read(y, got, 2 * sizeof *got), TN_OK);
	assert_true(got[0] == 4 && got[1] == 25);
	tn_fill_(tn_diagonal(x, 0), 0);
	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	assert_true(got[0] == 0 && got[1] == 12 && got[4] == 0 && got[5] == 6);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_free(c);
}

static void views(void **state)
{
	(void)state;
	views_are_views(false);
	views_are_views(true);
}

/* Results that only move elements are views, however many there are. */
static void pieces_are_views(bool interp)
{
	static const int64_t sizes[] = {1, 2};
	static const float dozen[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	tn_context *c = context(interp);
	tn_tensor *x = matrix(c, 2, 3, six), *p[2], *row[2], *one[12], *y;
	float got[12];

	tn_requires_grad(x);
	tn_split(x, 1, sizes, 2, 0, p); /* {1, 4}, {2, 3, 5, 6} */
	tn_unbind(p[1], 0, row);	/* {2, 3}, {5, 6} */
	y = tn_mul(row[0], row[1]);
	tn_no_grad_enter(c);
	tn_fill_(row[0], 7);
	tn_copy_(p[0], tn_slice(p[1], (int64_t[]){1}, 1, (int64_t[]){0}, 1,
		(int64_t[]){1}, 1, NULL, 0));
	tn_no_grad_leave(c);
	assert_int_equal(tn_read(x, got, 6 * sizeof *got), TN_OK);
	assert_true(got[0] == 7 && got[1] == 7 && got[2] == 7);
	assert_true(got[3] == 5 && got[4] == 5 && got[5] == 6);
	assert_int_equal(tn_read(y, got, 2 * sizeof *got), TN_OK);
	assert_true(got[0] == 10 && got[1] == 18);
	tn_backward(tn_reduce_sum(y, NULL, 0, false), NULL);
	assert_int_equal(
		tn_read(tn_gradient(x), got, 6 * sizeof *got), TN_OK);
	assert_true(got[0] == 0 && got[1] == 5 && got[2] == 6);
	assert_true(got[3] == 0 && got[4] == 2 && got[5] == 3);
	y = tn_tensor_new(c, TN_F32, 1, (int64_t[]){12}, dozen);
	tn_unbind(y, 0, one);
	for (int32_t i = 0; i < 12; i += 2)
		tn_copy_(one[i], one[i + 1]);
	assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
	for (int32_t i = 0; i < 12; i++)
		assert_true(got[i] == (i | 1) + 1);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_free(c);
}

static void pieces(void **state)
{
	(void)state;
	pieces_are_views(false);
	pieces_are_views(true);
}

/* Results of a call that failed are all there to be handed on. */
static void failed_pieces(void **state)
{
	tn_context *c = context(true);
	tn_tensor *x = matrix(c, 2, 3, six), *p[3] = {NULL, NULL, NULL};

	(void)state;
	assert_int_equal(tn_split(x, 5, NULL, 0, 3, p), TN_EINVAL);
	for (int32_t i = 0; i < 3; i++)
		assert_false(p[i] == NULL || tn_is_valid(p[i]));
	assert_string_equal(tn_context_diag(c)->rule, "split.axis");
	tn_context_clear(c);
	assert_null(tn_gradient(x));
	assert_int_equal(tn_split(x, 1, NULL, 0, 3, p), TN_OK);
	assert_true(tn_is_valid(p[2]));
	/* no operand says which context it is: the one that was used last */
	assert_false(tn_is_valid(tn_concat(NULL, 0, 0)));
	assert_int_equal(tn_context_status(c), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "tn.arity");
	assert_non_null(strstr(tn_context_diag(c)->text, "concat"));
	tn_context_clear(c);
	tn_context_free(context(true));
	assert_false(tn_is_valid(tn_stack(NULL, 0, 0)));
	assert_string_equal(tn_context_diag(c)->rule, "tn.arity");
	tn_context_free(c);
	assert_null(tn_concat(NULL, 0, 0));
}

/* The right side is read as it was, also where both sides overlap. */
static void overlapping(void **state)
{
	tn_context *c = context(false);
	tn_tensor *x = matrix(c, 1, 6, six);
	const int64_t mask[] = {0, 1};
	float got[6];

	(void)state;
	tn_copy_(tn_flip(x, mask, 2), x);
	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	for (int i = 0; i < 6; i++)
		assert_true(got[i] == six[5 - i]);
	tn_context_free(c);
}

/* A loop records the same again: compiled once, memory stays flat. */
static void loop(void **state)
{
	tn_context *c = context(false);
	int64_t n = 3;
	tn_tensor *w = tn_parameter(c, "w", TN_F32, 1, &n, six);
	tn_stats first, last;
	float got[3];

	(void)state;
	tn_no_grad_enter(c);
	for (int i = 0; i < 300; i++) {
		tn_scope_enter(c);
		tn_sub_(w, tn_mul(w, tn_scalar(c, TN_F32, 0.01)));
		tn_scope_leave(c);
		assert_int_equal(tn_read(w, got, sizeof got), TN_OK);
		if (i == 1)
			tn_context_stats(c, &first);
	}
	tn_context_stats(c, &last);
	assert_true(fabs((double)got[2] - 3 * pow(0.99, 300)) < 1e-4);
	assert_int_equal(last.n_plan_misses, 1);
	assert_int_equal(last.n_copies, 0);
	assert_int_equal(last.bytes_live, first.bytes_live);
	assert_int_equal(last.bytes_peak, first.bytes_peak);
	assert_int_equal(last.n_tensors, 1);
	assert_string_equal(tn_tensor_name(w), "w");
	tn_context_free(c);
}

/* Evaluating one of two results writes the other, too, where it goes. */
static void written_along(void **state)
{
	tn_context *c = context(false);
	int64_t n = 3;
	tn_tensor *p = tn_parameter(c, "p", TN_F32, 1, &n, six);
	tn_tensor *m = tn_parameter(c, "m", TN_F32, 1, &n, six), *old;
	tn_stats s, later;
	float got[3];

	(void)state;
	tn_no_grad_enter(c);
	tn_op_define(c, "both(x[i]:float, y[i]) -> o, q { o[i] = x[i] + y[i]; "
			"q[i] = x[i] * y[i] }");
	tn_context_stats(c, &s);
	for (int i = 0; i < 2; i++) {
		tn_tensor *in[] = {p, m}, *out[2];

		old = i == 1 ? tn_exp(m) : NULL; /* wants m as it is now */
		tn_scope_enter(c);
		assert_int_equal(tn_call(c, "both", 2, in, 0, NULL, 2, out),
			TN_OK);
		tn_copy_(p, out[0]);
		tn_copy_(m, out[1]);
		tn_scope_leave(c);
		assert_int_equal(tn_read(p, got, sizeof got), TN_OK);
		tn_context_stats(c, &later);
		/* then m waits: it would have to be copied */
		assert_int_equal(later.bytes_live - s.bytes_live, i * 64);
		assert_int_equal(later.n_copies, 0);
	}
	assert_true(got[0] == 3 && got[2] == 15);
	assert_int_equal(tn_read(old, got, sizeof got), TN_OK);
	assert_true(fabs((double)got[1] - exp(4)) < 1e-4);
	assert_int_equal(tn_read(m, got, sizeof got), TN_OK);
	assert_true(got[0] == 2 && got[1] == 16 && got[2] == 54);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_free(c);
}

/* A value that somebody still wants is kept when its memory is written. */
static void old_values(void **state)
{
	tn_context *c = context(false);
	int64_t n = 3;
	tn_tensor *w = tn_parameter(c, "w", TN_F32, 1, &n, six), *y;
	tn_stats s;
	float got[3];

	(void)state;
	y = tn_exp(w); /* not computed before the write */
	tn_mul_(w, tn_scalar(c, TN_F32, 2));
	assert_int_equal(tn_read(w, got, sizeof got), TN_OK);
	assert_true(got[0] == 2 && got[2] == 6);
	assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
	assert_true(fabs((double)got[0] - exp(1)) < 1e-5);
	tn_context_stats(c, &s);
	assert_int_equal(s.n_copies, 1);
	tn_context_free(c);
}

/* A place that is known only when it runs: one plan for all places. */
static void offsets(void **state)
{
	tn_context *c = context(false);
	int64_t n = 8;
	tn_tensor *w = tn_parameter(c, "cache", TN_F32, 1, &n, NULL);
	tn_stats s;
	float got[8];

	(void)state;
	for (int i = 0; i < 8; i++) {
		tn_tensor *at, *v;
		int64_t one = 1;
		float x = (float)(i * i);

		tn_scope_enter(c);
		v = tn_tensor_new(c, TN_F32, 1, &one, &x);
		at = tn_dynamic_narrow(w, tn_scalar(c, TN_I64, i), 0, 1);
		tn_copy_(at, v);
		tn_scope_leave(c);
		assert_int_equal(tn_read(w, got, sizeof got), TN_OK);
	}
	for (int i = 0; i < 8; i++)
		assert_true(got[i] == (float)(i * i));
	tn_context_stats(c, &s);
	assert_int_equal(s.n_plan_misses, 1);
	tn_context_free(c);
}

/* Of which tensor and in which shape: what does not fit what it is written to. */
static void write_errors(tn_context *c)
{
	const int64_t two[] = {2, 3}, one[] = {4};
	tn_tensor *w = tn_parameter(c, "w", TN_F32, 2, two, NULL);
	tn_tensor *b = tn_parameter(c, "bias", TN_F32, 1, one, NULL);
	tn_tensor *i = tn_tensor_new(c, TN_I64, 2, two, NULL);
	const struct {
		tn_tensor *x, *v;
		const char *text;
	} all[] = {
		{w, b, "operand v: bias f32[4] does not fit operand x: w "
			"f32[2,3]: accepted is the same shape"},
		{tn_narrow(w, 0, 1, 1), w, "operand v: w f32[2,3] does not "
			"fit operand x: view f32[1,3] of w"},
		{w, i, "operand v: i64[2,3] does not fit operand x: w "
			"f32[2,3]: accepted is the same dtype; tn_cast"},
		{tn_broadcast_to(b, ((int64_t[]){2, 4}), 2),
			tn_broadcast_to(b, ((int64_t[]){2, 4}), 2),
			"the view f32[2,4] of bias is not writable: axis 0 "
			"repeats elements"},
	};

	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		assert_int_equal(tn_copy_(all[k].x, all[k].v), TN_EINVAL);
		if (strstr(tn_context_diag(c)->text, all[k].text) == NULL)
			fail_msg("%s", tn_context_diag(c)->text);
		tn_context_clear(c);
	}
}

static void refusals(void **state)
{
	tn_context *c = context(false), *d = context(false);
	tn_tensor *x = matrix(c, 2, 3, six), *y, *z = matrix(d, 2, 3, six);
	const int64_t shape[] = {2, 2, 3};
	float got[6];

	(void)state;
	y = tn_relu(tn_matmul(x, x));
	assert_false(tn_is_valid(y));
	assert_int_equal(tn_context_status(c), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "matmul.k");
	assert_string_equal(tn_context_diag(c)->text,
		"matmul: k is 3 in operand x: f32[2,3] but 2 in operand y: "
		"f32[2,3]");
	assert_non_null(strstr(tn_context_diag(c)->file, "test_tensor.c"));
	assert_int_equal(tn_read(y, got, sizeof got), TN_EINVAL);
	tn_context_clear(c);
	assert_int_equal(tn_call(c, "rleu", 1, &x, 0, NULL, 1, &y), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "tn.unknown_op");
	assert_non_null(strstr(tn_context_diag(c)->text, "near: relu"));
	tn_context_clear(c);
	tn_add_(tn_broadcast_to(x, shape, 3), x);
	assert_string_equal(tn_context_diag(c)->rule, "write.repeats");
	assert_non_null(strstr(tn_context_diag(c)->text,
		"axis 0 repeats elements (expanded from 1 to 2)"));
	tn_context_clear(c);
	tn_copy_(x, tn_scalar(c, TN_F32, 1));
	assert_string_equal(tn_context_diag(c)->rule, "tensor.write");
	tn_context_clear(c);
	write_errors(c);
	assert_false(tn_is_valid(tn_add(x, z)));
	assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
	tn_context_clear(c);
	tn_drop(x);
	assert_false(tn_is_valid(x));
	assert_false(tn_is_valid(tn_exp(x)));
	assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
	tn_context_clear(c);
	assert_int_equal(tn_scope_leave(c), TN_EINVAL);
	tn_context_clear(c);
	assert_false(tn_is_valid(tn_exp(NULL)));
	assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
	tn_context_free(c);
	tn_context_free(d);
}

/* A row of the user's own, called by name. */
static void own_row(void **state)
{
	tn_context *c = context(false);
	tn_tensor *x = matrix(c, 2, 3, six), *y;
	float got[6];

	(void)state;
	assert_int_equal(tn_op_define(c,
		"twice_plus(x[i..]:num, k: int = 0) -> o {"
		" o[i..] = 2 * x[i..] + k }"), TN_OK);
	assert_int_equal(tn_call(c, "twice_plus", 1, &x, 1,
		(&(tn_attr){.name = "k", .kind = TN_ATTR_INT, .i = 5}), 1, &y),
		TN_OK);
	assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
	assert_true(got[0] == 7 && got[5] == 17);
	tn_context_free(c);
}

static int n_deleted;

static void deleted(tn_dl_managed *m)
{
	(void)m;
	n_deleted++;
}

/* Memory of others that still has tensors is given back with the context, and
 * so is memory that the context itself lent. */
static void dlpack_ends(void **state)
{
	tn_context *c = context(false);
	float data[6];
	int64_t shape[] = {2, 3};
	tn_dl_managed in = {.tensor = {.data = data,
				    .device = {1, 0},
				    .n_axes = 2,
				    .dtype = {2, 32, 1},
				    .shape = shape},
		.deleter = deleted};
	tn_dl_managed second = in, *own;
	tn_tensor *x, *y;

	(void)state;
	memcpy(data, six, sizeof data);
	n_deleted = 0;
	x = tn_dlpack_import(c, &in);
	y = tn_neg(tn_dlpack_import(c, &second));
	assert_int_equal(tn_dlpack_export(x, &own), TN_OK);
	x = tn_add(tn_dlpack_import(c, own), y);
	assert_int_equal(tn_eval(&x, 1), TN_OK);
	assert_int_equal(n_deleted, 0);
	tn_context_free(c);
	assert_int_equal(n_deleted, 2);
}

/* Dense memory that no vector may read in place is copied. */
static void dlpack_copied(void **state)
{
	tn_context *c = context(false);
	float data[5] = {0}, got[4];
	const float want[4] = {1, 2, 3, 4};
	int64_t shape[] = {2, 2};
	tn_dl_managed in = {.tensor = {.data = data,
				    .byte_offset = 1,
				    .device = {1, 0},
				    .n_axes = 2,
				    .dtype = {2, 32, 1},
				    .shape = shape},
		.deleter = deleted};

	(void)state;
	memcpy((char *)data + 1, want, sizeof want);
	n_deleted = 0;
	assert_int_equal(
		tn_read(tn_dlpack_import(c, &in), got, sizeof got), TN_OK);
	assert_memory_equal(got, want, sizeof want);
	assert_int_equal(n_deleted, 1);
	tn_context_free(c);
}

/* DLPack packs elements of fewer bits than a byte. */
static void dlpack_packed(void **state)
{
	tn_context *c = context(false);
	const int64_t shape[] = {3};
	const int8_t data[] = {1, -2, 7};
	tn_tensor *x = tn_tensor_new(c, TN_I4, 1, shape, data);
	tn_dl_managed *out, in = {.tensor = {.data = (void *)(uintptr_t)data,
					  .device = {1, 0}, .n_axes = 1,
					  .shape = (int64_t *)(uintptr_t)shape,
					  .dtype = {0, 4, 1}}};
	float got[3];

	(void)state;
	assert_int_equal(tn_dlpack_export(x, &out), TN_EINVAL);
	assert_null(out);
	assert_string_equal(tn_context_diag(c)->rule, "dlpack.dtype");
	tn_context_clear(c);
	assert_null(tn_dlpack_import(c, &in));
	assert_string_equal(tn_context_diag(c)->rule, "dlpack.dtype");
	tn_context_clear(c);
	/* what there is goes on */
	x = tn_cast(tn_add(x, x), TN_F32);
	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	assert_true(got[0] == 2 && got[1] == -4 && got[2] == -2);
	tn_context_free(c);
}

/* Memory of others is written where it lies; ours is given without a copy. */
static void dlpack(void **state)
{
	tn_context *c = context(false);
	float data[6], got[6];
	int64_t shape[] = {2, 3}, columns[] = {1, 2};
	tn_dl_managed in = {.tensor = {.data = data,
				    .device = {1, 0},
				    .n_axes = 2,
				    .dtype = {2, 32, 1},
				    .shape = shape},
		.deleter = deleted};
	tn_dl_managed *out;
	tn_tensor *x;

	(void)state;
	memcpy(data, six, sizeof data);
	n_deleted = 0;
	x = tn_dlpack_import(c, &in);
	tn_add_(x, tn_scalar(c, TN_F32, 1));
	assert_int_equal(tn_eval(&x, 1), TN_OK);
	assert_true(data[0] == 2 && data[5] == 7);
	assert_int_equal(tn_dlpack_export(x, &out), TN_OK);
	assert_ptr_equal(out->tensor.data, data);
	tn_drop(x);
	assert_int_equal(n_deleted, 0);
	out->deleter(out);
	assert_int_equal(n_deleted, 1);
	/* a column-major one is copied */
	in.tensor.strides = columns;
	memcpy(data, six, sizeof data);
	x = tn_dlpack_import(c, &in);
	assert_int_equal(n_deleted, 2);
	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	assert_true(got[0] == 1 && got[1] == 3 && got[3] == 2);
	in.tensor.device.type = 2;
	assert_null(tn_dlpack_import(c, &in));
	assert_string_equal(tn_context_diag(c)->rule, "dlpack.device");
	tn_context_free(c);
}

static void text(void **state)
{
	tn_context *c = context(true);
	char *s;

	(void)state;
	assert_int_equal(tn_text(tn_transpose(matrix(c, 2, 3, six), swap, 2),
				 &s), TN_OK);
	assert_string_equal(s, "f32[3,2] [[1, 4],\n [2, 5],\n [3, 6]]");
	tn_text_free(s);
	tn_context_free(c);
}

/* The same seed gives the same numbers; one key after the other differs. */
static void random_keys(void **state)
{
	tn_context *c = context(true);
	const int64_t n = 2;
	double got[3][2];

	(void)state;
	for (int i = 0; i < 3; i++) {
		if (i != 1)
			tn_set_seed(c, 7);
		assert_int_equal(tn_read(tn_uniform(tn_random_key(c), &n, 1, 0,
						 1, TN_F64),
					 got[i], sizeof got[i]), TN_OK);
	}
	assert_true(got[0][0] == got[2][0] && got[0][1] == got[2][1]);
	assert_true(got[0][0] != got[1][0]);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views),
		cmocka_unit_test(pieces),
		cmocka_unit_test(failed_pieces),
		cmocka_unit_test(overlapping),
		cmocka_unit_test(loop),
		cmocka_unit_test(written_along),
		cmocka_unit_test(old_values),
		cmocka_unit_test(offsets),
		cmocka_unit_test(refusals),
		cmocka_unit_test(own_row),
		cmocka_unit_test(dlpack),
		cmocka_unit_test(dlpack_copied),
		cmocka_unit_test(dlpack_packed),
		cmocka_unit_test(dlpack_ends),
		cmocka_unit_test(text),
		cmocka_unit_test(random_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
