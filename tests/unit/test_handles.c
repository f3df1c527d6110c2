/*
 * Handles that are no more: of what was dropped, of a scope that was left, of
 * a context that has ended. Whatever was made since, no call takes them for it.
 */
#include "unit.h"

#include <math.h>

static tn_context *context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = true;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static const int64_t two = 2;

static tn_tensor *pair(tn_context *c, float a, float b)
{
	const float x[] = {a, b};

	return tn_tensor_new(c, TN_F32, 1, &two, x);
}

static void assert_pair(tn_tensor *x, float a, float b)
{
	float got[2];

	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	assert_true(got[0] == a && got[1] == b);
}

static void dropped(void **state)
{
	tn_context *c = context();
	tn_tensor *x = pair(c, 1, 2), *y, *in[100];
	float got[2];

	(void)state;
	tn_drop(x);
	y = pair(c, 3, 4); /* in the memory of x */
	assert_false(tn_is_valid(x));
	assert_true(tn_is_valid(y));
	assert_ptr_not_equal(x, y);
	assert_int_equal(tn_read(x, got, sizeof got), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
	tn_context_clear(c);
	tn_drop(x); /* once more */
	assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
	tn_context_clear(c);
	assert_pair(y, 3, 4);
	tn_scope_enter(c);
	for (int i = 0; i < 100; i++)
		in[i] = pair(c, (float)i, 0);
	in[7] = tn_keep(in[7]);
	tn_scope_leave(c);
	for (int i = 0; i < 100; i++)
		(void)pair(c, -1, -1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(tn_is_valid(in[i]), i == 7);
	assert_pair(in[7], 7, 0);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_free(c);
}

/* The number of x does not come back, however often its memory is used. */
static void reused(void **state)
{
	tn_context *c = context();
	tn_tensor *x = pair(c, 1, 2);

	(void)state;
	tn_drop(x);
	for (int32_t i = 0; i < 300000; i++) {
		tn_tensor *y = tn_tensor_new(c, TN_F32, 0, NULL, NULL);

		assert_ptr_not_equal(x, y);
		tn_drop(y);
	}
	assert_false(tn_is_valid(x));
	tn_context_free(c);
}

/* More handles than one chunk of numbers, and chunks that change owner. */
static void contexts(void **state)
{
	enum { N = 3000 };
	static tn_tensor *old[N];
	tn_context *c = context(), *d;

	(void)state;
	for (int i = 0; i < N; i++)
		old[i] = tn_scalar(c, TN_F32, i);
	assert_true(tn_item(old[N - 1]) == N - 1);
	tn_context_free(c);
	d = context();
	for (int i = 0; i < N; i++) {
		tn_tensor *y = tn_scalar(d, TN_F32, -1);

		assert_true(tn_is_valid(y));
		assert_false(tn_is_valid(old[i]));
		assert_null(tn_tensor_context(old[i]));
	}
	for (int i = 0; i < N; i++) {
		assert_false(tn_is_valid(old[i]));
		assert_true(isnan(tn_item(old[i])));
		tn_drop(old[i]);
	}
	/* of nobody: the context that was used last says so */
	assert_string_equal(tn_context_diag(d)->rule, "tensor.handle");
	tn_context_free(d);
}

/* ---- every call ---- */

static tn_tensor *gone; /* what bodies return */

static tn_status identity(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	out[0] = user != NULL ? gone : in[0];
	return TN_OK;
}

static tn_status host(void *user, int32_t n_in, const tn_array *in,
	int32_t n_out, const tn_array *out)
{
	(void)user;
	for (int32_t i = 0; i < n_in && i < n_out; i++)
		memcpy(out[i].data, in[i].data, in[i].n_bytes);
	return TN_OK;
}

static tn_status read_it(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	float got[2];

	(void)c, (void)y;
	return tn_read(x, got, sizeof got);
}

static tn_status item(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)y;
	(void)tn_item(x); /* no tensor of one element: nothing is looked at */
	return tn_context_status(c) < 0 ? TN_EINVAL : tn_eval(&x, 1);
}

static tn_status eval(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *const both[] = {y, x};

	(void)c;
	return tn_eval(both, 2);
}

static tn_status row(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	return tn_is_valid(tn_add(y, x)) ? TN_OK : tn_context_status(c);
}

static tn_status view(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)y;
	return tn_is_valid(tn_select(x, 0, 0)) ? TN_OK : tn_context_status(c);
}

static tn_status named(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *const in[] = {y, x};
	tn_tensor *out;

	return tn_call(c, "add", 2, in, 0, NULL, 1, &out);
}

static tn_status in_place(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)c;
	return tn_add_(x, y);
}

static tn_status copy(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)c;
	return tn_copy_(x, y);
}

static tn_status copied(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)c;
	return tn_copy_(y, x);
}

static tn_status fill(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)c, (void)y;
	return tn_fill_(x, 1);
}

static tn_status set_data(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	const float d[2] = {0};

	(void)c, (void)y;
	return tn_set_data(x, d, sizeof d);
}

static tn_status keep(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)y;
	(void)tn_keep(x);
	return tn_context_status(c);
}

static tn_status detach(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)y;
	(void)tn_detach(x);
	return tn_context_status(c);
}

static tn_status requires_grad(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)c, (void)y;
	return tn_requires_grad(x);
}

static tn_status backward(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)c;
	return tn_backward(x, y);
}

static tn_status seed(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)c;
	tn_requires_grad(y);
	return tn_backward(tn_mul(y, y), x);
}

static tn_status grad(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *const out[] = {y}, *const in[] = {x};
	tn_tensor *g[1];

	(void)c;
	tn_requires_grad(y);
	return tn_grad(1, out, out, 1, in, g);
}

static tn_status gradient(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)y;
	assert_null(tn_gradient(x));
	return tn_context_status(c);
}

static tn_status zero_grad(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)y;
	tn_zero_grad(x);
	return tn_context_status(c);
}

static tn_status call_function(tn_context *c, tn_tensor *x, bool returned)
{
	tn_function *f;
	tn_tensor *out;
	tn_status s;

	assert_int_equal(tn_compile(&f, c, identity, returned ? c : NULL, 1, 1,
				 "f"), TN_OK);
	s = tn_function_call(f, &x, &out);
	tn_function_free(f);
	return s;
}

static tn_status function(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	(void)y;
	return call_function(c, x, false);
}

static tn_status returned(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	gone = x;
	return call_function(c, y, true);
}

static tn_status donate(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	const bool yes = true;
	tn_function *f;
	tn_tensor *out;
	tn_status s;

	(void)y;
	assert_int_equal(tn_compile(&f, c, identity, NULL, 1, 1, "f"), TN_OK);
	s = tn_function_donate(f, &x, &yes, &out);
	tn_function_free(f);
	return s;
}

static tn_status cond(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *out;

	return tn_cond(c, x, identity, identity, NULL, 1, &y, 1, &out);
}

static tn_status cond_operand(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *out;

	(void)y;
	return tn_cond(c, tn_scalar(c, TN_BOOL, 1), identity, identity, NULL,
		1, &x, 1, &out);
}

static tn_status scan(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *out;

	(void)y;
	return tn_scan(c, identity, NULL, 2, 1, 0, &x, 0, &out);
}

static tn_status scan_output(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_tensor *out;

	gone = x;
	return tn_scan(c, identity, c, 2, 1, 0, &y, 0, &out);
}

static tn_status in_c(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	const tn_array type = {.dtype = TN_F32, .rank = 1, .shape = {2}};
	tn_tensor *out;

	(void)y;
	return tn_host_call(c, host, NULL, NULL, 1, &x, 1, &type, &out);
}

static tn_status apply(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	static const char text[] = "program { x: f32[2] y = neg(x) return y }";
	tn_program *p;
	tn_tensor *out;
	tn_status s;

	(void)y;
	assert_int_equal(tn_program_parse(&p, c, text, strlen(text), "t"),
		TN_OK);
	s = tn_apply(p, 1, &x, 1, &out);
	tn_program_free(p);
	return s;
}

static tn_status text(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	char *s;

	(void)c, (void)y;
	return tn_text(x, &s);
}

static tn_status dlpack(tn_context *c, tn_tensor *x, tn_tensor *y)
{
	tn_dl_managed *m;

	(void)c, (void)y;
	return tn_dlpack_export(x, &m);
}

static const struct {
	const char *name;
	tn_status (*fn)(tn_context *c, tn_tensor *x, tn_tensor *y);
} calls[] = {
#define CALL(fn) {#fn, fn}
	CALL(read_it), CALL(item), CALL(eval), CALL(row), CALL(view),
	CALL(named), CALL(in_place), CALL(copy), CALL(copied), CALL(fill),
	CALL(set_data), CALL(keep), CALL(detach), CALL(requires_grad),
	CALL(backward), CALL(seed), CALL(grad), CALL(gradient),
	CALL(zero_grad), CALL(function), CALL(returned), CALL(donate),
	CALL(cond), CALL(cond_operand), CALL(scan), CALL(scan_output),
	CALL(in_c), CALL(apply), CALL(text), CALL(dlpack),
};

/* Is refused, by name of a rule, and touches nobody. */
static void refuse(int i, tn_context *c, tn_tensor *x, const char *how)
{
	tn_tensor *y = pair(c, 3, 4), *z = pair(c, 5, 6);
	const tn_diag *d;

	gone = NULL;
	if (calls[i].fn(c, x, y) >= 0)
		fail_msg("%s takes a tensor %s", calls[i].name, how);
	d = tn_context_diag(c);
	if (strcmp(d->rule, "tensor.handle") != 0 &&
		strcmp(d->rule, "compile.output") != 0 &&
		strcmp(d->rule, "loop.output") != 0)
		fail_msg("%s, of a tensor %s: [%s] %s", calls[i].name, how,
			d->rule, d->text);
	tn_context_clear(c);
	assert_pair(y, 3, 4);
	assert_pair(z, 5, 6);
	tn_drop(y);
	tn_drop(z);
	assert_int_equal(tn_context_status(c), TN_OK);
}

static void every_call(void **state)
{
	tn_context *c = context();

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		tn_tensor *x = pair(c, 1, 2), *w;

		tn_drop(x);
		refuse((int)i, c, x, "that was dropped");
		tn_scope_enter(c);
		x = pair(c, 1, 2);
		tn_scope_leave(c);
		w = pair(c, 7, 8);
		refuse((int)i, c, x, "whose scope was left");
		assert_pair(w, 7, 8);
	}
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped),
		cmocka_unit_test(reused),
		cmocka_unit_test(contexts),
		cmocka_unit_test(every_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
