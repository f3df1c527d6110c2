/* tn_gradcheck: gradients against differences, and wrong ones that it finds. */
#include "unit.h"

#include "notation/notation.h"

#include <tenon.h>

#include <math.h>

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;

	o.cache_dir = "";
	o.threads = 1;
	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

/* ---- programs ---- */

/* The check of a program on drawn inputs. */
static tn_status check_text(tn_context *c, const char *text,
	const tn_gradcheck_options *o, tn_gradcheck_result *r)
{
	tn_program *p = NULL;
	const void *in[8];
	void *own[8];
	tn_status s;
	int32_t n;

	if (tn_program_parse(&p, c, text, strlen(text), NULL) < 0)
		fail_msg("%s\n%s", tn_context_diag(c)->text, text);
	n = tn_program_n_inputs(p);
	for (int32_t i = 0; i < n; i++) {
		const tn_value *v = tn_program_input(p, i);

		in[i] = own[i] = malloc(v->n_bytes + 8);
		assert_non_null(own[i]);
		tn_fill_random(v->dtype, own[i], v->n_elems, 7 + (uint64_t)i, 0,
			2);
	}
	s = tn_program_gradcheck(p, in, o, r);
	for (int32_t i = 0; i < n; i++)
		free(own[i]);
	tn_program_free(p);
	return s;
}

/* Rows of every chapter, f32 as they are mostly written. */
static const char *const rows[] = {
	"program { x: f32[3,4]\n y: f32[4]\n o = mul(x, y)\n return o }",
	"program { x: f32[2,3]\n o = gelu(x)\n return o }",
	"program { x: f32[2,3]\n o = silu(x)\n return o }",
	"program { x: f32[5]\n o = relu(x)\n return o }",
	"program { x: f32[2,5]\n o = softmax(x)\n return o }",
	"program { x: f32[2,5]\n o = logsumexp(x, axes=[1])\n return o }",
	"program { x: f32[4,3]\n o = reduce_max(x, axes=[0])\n return o }",
	"program { x: f32[4,3]\n o = reduce_prod(x, axes=[1])\n return o }",
	"program { x: f32[2,6]\n g: f32[6]\n b: f32[6]\n"
	" o = layer_norm(x, g, b)\n return o }",
	"program { x: f32[2,3]\n y: f32[3,4]\n o = matmul(x, y)\n return o }",
	"program { x: f32[1,2,5,5]\n w: f32[3,2,3,3]\n"
	" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }",
	"program { x: f32[1,2,4,4]\n o = max_pool(x, kernel=[2,2],"
	" stride=[2,2])\n return o }",
	"program { q: f32[2,3]\n k: f32[4,3]\n v: f32[4,2]\n"
	" o = attention(q, k, v, scale=0.5)\n return o }",
	"program { x: f32[4,3]\n o = cumsum(x)\n return o }",
	"program { x: f32[6]\n o, k = sort(x)\n return o }",
	"program { i: i64[3]\n w: f32[2,3]\n o = embedding(i, w)\n return o }",
	"program { x: f32[2,3]\n t: i64[2]\n o = cross_entropy(x, t)\n"
	" return o }",
	"program { x: f16[3]\n o = exp(x)\n return o }",
	/* in place, two outputs, one of them an index */
	"program { param x: f32[4]\n y = tanh_(x)\n k = argmax(y)\n"
	" z = mul(y, y)\n return z, k }",
	/* dtypes that calls name are f64 in the check, too */
	"program { x: f32[4]\n h = cast(x, to=f16)\n y = mul(h, h)\n"
	" z = cast(y, to=f32)\n return z }",
	/* random numbers are the same each time */
	"program { x: f32[8]\n k: i64[]\n y = dropout(x, k, p=0.5)\n"
	" z = mul(y, y)\n return z }",
};

static void sample_of_rows(void **state)
{
	tn_context *c = context(true);
	tn_gradcheck_options o = TN_GRADCHECK_OPTIONS_INIT;
	tn_gradcheck_result r;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int32_t order = 1; order <= 2; order++) {
			o.order = order;
			o.n_elems = 8;
			if (check_text(c, rows[i], &o, &r) < 0)
				fail_msg("%s\n%s", rows[i],
					tn_context_diag(c)->text);
			assert_true(r.n_checked > 0);
			assert_int_equal(r.dtype, TN_F64);
		}
	tn_context_free(c);
}

static const char wrong[] =
	"op cube(x[i..]:float) -> o { o[i..] = x[i..] * x[i..] * x[i..]\n"
	"  grad { gx[i..] += 2 * x[i..] * x[i..] * go[i..] } }\n"
	"program {\n"
	"  a: f32[2,3]\n"
	"  b: f32[2,3]\n"
	"  t = add(a, b)\n"
	"  y = cube(b)\n"
	"  z = mul(t, y)\n"
	"  return z\n"
	"}\n";

/* A row whose gradient says 2x^2 where it is 3x^2. */
static void finds_a_wrong_gradient(void **state)
{
	static const bool only_a[] = {false, true};
	tn_gradcheck_options o = TN_GRADCHECK_OPTIONS_INIT;
	tn_gradcheck_result r;
	const tn_diag *d;

	(void)state;
	for (int interp = 0; interp < 2; interp++) {
		tn_context *c = context(interp);

		o.skip = NULL;
		assert_int_equal(check_text(c, wrong, &o, &r), TN_EINVAL);
		d = tn_context_diag(c);
		assert_string_equal(d->rule, "gradcheck.differs");
		assert_non_null(strstr(d->text, "with respect to b is wrong"));
		assert_non_null(strstr(d->text, "at element ["));
		assert_int_equal(r.input, 1);
		assert_true(r.index >= 0 && r.index < 6);
		assert_true(fabs(r.gradient - r.difference) > 1e-3);
		assert_int_equal(r.n_checked, 12);
		/* the context can be used on, and a is right */
		assert_int_equal(tn_context_status(c), TN_OK);
		o.skip = only_a;
		assert_int_equal(check_text(c, wrong, &o, &r), TN_OK);
		assert_int_equal(r.n_checked, 6);
		tn_context_free(c);
	}
}

/*
 * The gradient of x^2/2 is x, to 44 binary places; but it is made of floor,
 * whose own gradient is 0 instead of 1.
 */
static void finds_a_wrong_second_order(void **state)
{
	static const char text[] =
		"op slope(x[i..]:float) -> o { o[i..] = x[i..] * x[i..] / 2\n"
		"  grad { gx[i..] += floor(x[i..] * 17592186044416)\n"
		"    / 17592186044416 * go[i..] } }\n"
		"program { x: f64[3]\n y = slope(x)\n return y }";
	tn_context *c = context(true);
	tn_gradcheck_options o = TN_GRADCHECK_OPTIONS_INIT;
	tn_gradcheck_result r;

	(void)state;
	o.order = 1;
	assert_int_equal(check_text(c, text, &o, &r), TN_OK);
	o.order = 2;
	assert_int_equal(check_text(c, text, &o, &r), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "gradcheck.differs");
	assert_int_equal(r.order, 2);
	tn_context_free(c);
}

static void kinks_are_passed_over(void **state)
{
	static const char text[] =
		"program { x: f32[4]\n y = relu(x)\n return y }";
	tn_context *c = context(true);
	tn_program *p = NULL;
	float x[] = {0, 1, -1, 0};
	const void *in[] = {x};
	tn_gradcheck_result r;

	(void)state;
	assert_int_equal(tn_program_parse(&p, c, text, sizeof text - 1, NULL),
		TN_OK);
	assert_int_equal(tn_program_gradcheck(p, in, NULL, &r), TN_OK);
	assert_int_equal(r.n_checked, 2);
	assert_int_equal(r.n_skipped, 2);
	/* a kink within the step, and not at the element */
	x[0] = 1e-6f;
	assert_int_equal(tn_program_gradcheck(p, in, NULL, &r), TN_OK);
	assert_int_equal(r.n_checked, 2);
	assert_int_equal(r.n_skipped, 2);
	/* nothing but kinks is no proof */
	memset(x, 0, sizeof x);
	assert_int_equal(tn_program_gradcheck(p, in, NULL, &r), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "gradcheck.none");
	tn_program_free(p);
	tn_context_free(c);
}

/* ---- functions ---- */

static tn_status layer(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_tanh(tn_matmul(in[0], in[1]));
	return TN_OK;
}

/* Its constant is f32: so are its inputs. */
static tn_status single(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)user;
	out[0] = tn_mul(tn_exp(in[0]), tn_scalar(c, TN_F32, 0.5));
	return TN_OK;
}

static tn_status detached(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_mul(in[0], tn_detach(in[0]));
	return TN_OK;
}

static tn_status unmoved(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)user;
	(void)in;
	out[0] = tn_scalar(c, TN_F32, 3);
	return TN_OK;
}

static tn_status drops(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)user;
	out[0] = tn_dropout(in[0], tn_random_key(c), 0.5);
	return TN_OK;
}

static tn_status writes(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	tn_copy_(in[0], tn_sin(in[0]));
	out[0] = tn_mul(in[0], in[0]);
	return TN_OK;
}

static tn_status fails(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)user;
	out[0] = in[0];
	return tn_fail(c, TN_EINVAL, "mine.rule", "it is %s", "mine");
}

static void functions(void **state)
{
	static const struct {
		tn_body *body;
		const char *rule; /* NULL: it is right */
		tn_dtype dtype;
	} cases[] = {
		{layer, NULL, TN_F64},
		{single, NULL, TN_F32},
		{detached, "gradcheck.differs", TN_F64},
		{unmoved, NULL, TN_F64},
		{drops, NULL, TN_F64},
		{writes, NULL, TN_F64},
		{fails, "mine.rule", TN_F64},
		{layer, NULL, TN_F64},
	};
	const int64_t shape[] = {3, 3};
	tn_context *c = context(false);
	tn_tensor *in[2], *key[2];
	float x[9], after[9];

	(void)state;
	tn_fill_random(TN_F32, x, 9, 5, 0, 0);
	in[0] = tn_tensor_new(c, TN_F32, 2, shape, x);
	in[1] = tn_parameter(c, "w", TN_F32, 2, shape, x);
	key[0] = tn_random_key(c);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tn_gradcheck_result r;
		tn_status s = tn_gradcheck(c, cases[i].body, NULL, 2, in, 1,
			NULL, &r);

		if ((s < 0) != (cases[i].rule != NULL))
			fail_msg("function %zu: %s", i,
				tn_context_diag(c)->text);
		if (s < 0)
			assert_string_equal(tn_context_diag(c)->rule,
				cases[i].rule);
		else
			assert_int_equal(r.dtype, cases[i].dtype);
		assert_int_equal(tn_context_status(c), TN_OK);
	}
	/* nothing was changed, and no random number was used up */
	assert_int_equal(tn_read(in[0], after, sizeof after), TN_OK);
	assert_memory_equal(x, after, sizeof x);
	assert_null(tn_gradient(in[1]));
	key[1] = tn_random_key(c);
	assert_true(tn_item(key[0]) != tn_item(key[1]));
	tn_context_free(c);
}

static void refuses(void **state)
{
	const int64_t shape[] = {2};
	tn_context *c = context(true);
	tn_gradcheck_options o = TN_GRADCHECK_OPTIONS_INIT;
	tn_tensor *x = tn_tensor_new(c, TN_F32, 1, shape, NULL);
	tn_tensor *n = tn_tensor_new(c, TN_I64, 1, shape, NULL), *none = NULL;

	(void)state;
	assert_int_equal(tn_gradcheck(NULL, layer, NULL, 1, &x, 1, NULL, NULL),
		TN_EINVAL);
	assert_int_equal(tn_gradcheck(c, NULL, NULL, 1, &x, 1, NULL, NULL),
		TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "api.null");
	assert_int_equal(tn_gradcheck(c, unmoved, NULL, 1, &none, 1, NULL,
				 NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
	assert_int_equal(tn_gradcheck(c, unmoved, NULL, 1, &x, 1000, NULL,
				 NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "gradcheck.count");
	assert_int_equal(tn_gradcheck(c, unmoved, NULL, 1, &n, 1, NULL, NULL),
		TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "gradcheck.none");
	o.order = 3;
	assert_int_equal(tn_gradcheck(c, single, NULL, 1, &x, 1, &o, NULL),
		TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "gradcheck.options");
	o.order = 1;
	o.eps = -1;
	assert_int_equal(tn_gradcheck(c, single, NULL, 1, &x, 1, &o, NULL),
		TN_EINVAL);
	o.eps = 0;
	o.n_bytes = 3;
	assert_int_equal(tn_gradcheck(c, single, NULL, 1, &x, 1, &o, NULL),
		TN_EINVAL);
	assert_int_equal(tn_program_gradcheck(NULL, NULL, NULL, NULL),
		TN_EINVAL);
	assert_int_equal(tn_gradcheck(c, single, NULL, 1, &x, 1, NULL, NULL),
		TN_OK);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_of_rows),
		cmocka_unit_test(finds_a_wrong_gradient),
		cmocka_unit_test(finds_a_wrong_second_order),
		cmocka_unit_test(kinks_are_passed_over),
		cmocka_unit_test(functions),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
