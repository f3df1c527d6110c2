/*
 * test_params.c: parameters by name, their files, and what does not fit;
 * tn_set_data in every situation of the memory it fills.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/tenon_params_XXXXXX";

static tn_context *context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = true;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static void expect(tn_context *c, const char *rule, const char *text)
{
	const tn_diag *d = tn_context_diag(c);

	assert_true(tn_context_status(c) < 0);
	assert_string_equal(d->rule, rule);
	if (strstr(d->text, text) == NULL)
		fail_msg("no %s in: %s", text, d->text);
	tn_context_clear(c);
}

static void reads(tn_tensor *x, int32_t n, const float *want)
{
	float got[32];

	assert_int_equal(tn_read(x, got, (size_t)n * sizeof *got), TN_OK);
	for (int32_t i = 0; i < n; i++)
		assert_true(got[i] == want[i]);
}

/* ---- tn_set_data ---- */

static void test_set_data(void **state)
{
	static const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
	static const float ab[] = {6, 8, 10, 12}, part[] = {9, 10};
	static const float mixed[] = {5, 6, 9, 10};
	tn_context *c = context();
	int64_t n = 4;
	tn_tensor *x = tn_parameter(c, "x", TN_F32, 1, &n, a), *y, *z, *w;
	tn_stats before, after;

	(void)state;
	/* memory nobody else asks for: filled at once */
	tn_context_stats(c, &before);
	assert_int_equal(tn_set_data(x, b, sizeof b), TN_OK);
	tn_context_stats(c, &after);
	assert_int_equal(before.n_calls, after.n_calls);
	reads(x, 4, b);
	/* who has read before keeps what was read */
	y = tn_add(x, x);
	assert_int_equal(tn_set_data(x, a, sizeof a), TN_OK);
	z = tn_add(x, tn_tensor_new(c, TN_F32, 1, &n, b));
	reads(z, 4, ab);
	reads(x, 4, a);
	reads(y, 4, (const float[]){10, 12, 14, 16});
	/* a part: a write through the view */
	assert_int_equal(tn_set_data(x, b, sizeof b), TN_OK);
	w = tn_narrow(x, 0, 2, 2);
	assert_int_equal(tn_set_data(w, part, sizeof part), TN_OK);
	reads(x, 4, mixed);
	/* not computed yet */
	w = tn_mul(x, x);
	assert_int_equal(tn_set_data(w, a, sizeof a), TN_OK);
	reads(w, 4, a);
	/* a parameter stays one that has a gradient */
	assert_int_equal(tn_set_data(x, a, sizeof a), TN_OK);
	tn_backward(tn_reduce_sum(tn_mul(x, x), NULL, 0, false), NULL);
	reads(tn_gradient(x), 4, (const float[]){2, 4, 6, 8});
	/* and what its gradient has read is what it was */
	tn_zero_grad(x);
	y = tn_reduce_sum(tn_mul(x, x), NULL, 0, false);
	assert_true(tn_item(y) == 30);
	assert_int_equal(tn_set_data(x, b, sizeof b), TN_OK);
	tn_backward(y, NULL);
	reads(tn_gradient(x), 4, (const float[]){2, 4, 6, 8});
	assert_int_equal(tn_context_status(c), TN_OK);
	assert_true(tn_set_data(x, a, 15) < 0);
	expect(c, "tensor.size", "16 bytes, but the array has 15");
	assert_true(tn_set_data(x, NULL, 16) < 0);
	expect(c, "api.null", "array");
	tn_context_free(c);
}

/* ---- names ---- */

static void test_names(void **state)
{
	tn_context *c = context();
	tn_params *p;
	int64_t n = 2, bad = -1;
	char longest[300];
	tn_tensor *x, *own;

	(void)state;
	assert_int_equal(tn_params_new(&p, c), TN_OK);
	assert_ptr_equal(tn_params_context(p), c);
	x = tn_params_make(p, "w", TN_F32, 1, &n, true);
	tn_params_enter(p, "block%d", 3);
	assert_non_null(tn_params_make(p, "w", TN_F64, 0, NULL, true));
	tn_params_enter(p, "norm");
	assert_non_null(tn_params_make(p, "count", TN_I64, 0, NULL, false));
	assert_int_equal(tn_params_leave(p), TN_OK);
	own = tn_parameter(c, "mine", TN_F32, 1, &n, NULL);
	assert_int_equal(tn_params_add(p, "own", own, false), TN_OK);
	assert_int_equal(tn_params_leave(p), TN_OK);
	assert_int_equal(tn_params_n(p), 4);
	assert_string_equal(tn_params_name(p, 0), "w");
	assert_string_equal(tn_params_name(p, 1), "block3.w");
	assert_string_equal(tn_params_name(p, 2), "block3.norm.count");
	assert_string_equal(tn_params_name(p, 3), "block3.own");
	assert_null(tn_params_name(p, 4));
	assert_null(tn_params_at(p, -1));
	assert_ptr_equal(tn_params_get(p, "w"), x);
	assert_ptr_equal(tn_params_get(p, "block3.own"), own);
	assert_null(tn_params_get(p, "norm.count"));
	assert_true(tn_params_is_trained(p, 0));
	assert_false(tn_params_is_trained(p, 2));
	assert_string_equal(tn_tensor_name(tn_params_at(p, 2)),
		"block3.norm.count");
	assert_int_equal(tn_context_status(c), TN_OK);

	assert_null(tn_params_make(p, "w", TN_F32, 1, &n, true));
	expect(c, "params.name", "the set has a parameter w already");
	assert_null(tn_params_make(p, "", TN_F32, 1, &n, true));
	expect(c, "params.name", "empty");
	/* what no file can have */
	assert_null(tn_params_make(p, "__metadata__", TN_F32, 1, &n, true));
	expect(c, "params.name", "__metadata__ cannot be saved");
	assert_null(tn_params_make(p, "w\xff", TN_F32, 1, &n, true));
	expect(c, "params.name", "cannot be saved: a name is UTF-8");
	memset(longest, 'x', sizeof longest);
	longest[256] = '\0';
	assert_null(tn_params_make(p, longest, TN_F32, 1, &n, true));
	expect(c, "params.name", "longer than the 255 bytes");
	assert_true(tn_params_enter(p, "%s", longest) < 0);
	expect(c, "params.name", "longer than the 255 bytes");
	longest[255] = '\0';
	assert_non_null(tn_params_make(p, longest, TN_F32, 1, &n, true));
	assert_true(tn_params_leave(p) < 0);
	expect(c, "params.name", "tn_params_leave was called without");
	assert_null(tn_params_make(p, "i", TN_I32, 1, &n, true));
	expect(c, "params.dtype", "i is i32, but only f32, f64, f16 and bf16 can be trained");
	assert_null(tn_params_make(p, "v", TN_F32, 1, &bad, true));
	expect(c, "tensor.shape", "negative");
	assert_true(tn_params_add(p, "z", NULL, true) < 0);
	expect(c, "tensor.handle", "z");
	assert_int_equal(tn_params_n(p), 5);
	tn_params_free(p);
	assert_false(tn_is_valid(x));
	assert_true(tn_is_valid(own)); /* the caller's */
	tn_context_free(c);
}

/* Statistics have no gradient; what has two names is trained once. */
/* A gradient of 1 n times, by a rate of 1/1024: bf16 alone would not move. */
static void downhill(tn_context *c, tn_optimizer *o, tn_tensor *w, int n)
{
	for (int i = 0; i < n; i++) {
		tn_scope_enter(c);
		tn_backward(tn_reduce_sum(w, NULL, 0, false), NULL);
		tn_optimizer_step(o);
		tn_scope_leave(c);
		assert_int_equal(tn_eval(&w, 1), TN_OK);
	}
}

static void test_master(void **state)
{
	static const tn_dtype types[] = {TN_BF16, TN_F16};

	(void)state;
	for (int i = 0; i < 2; i++) {
		tn_context *c = context();
		tn_optimizer_options oo = TN_OPTIMIZER_OPTIONS_INIT;
		tn_optimizer *o;
		tn_tensor *w, *m;

		oo.lr = 1.0 / 1024;
		oo.clip_norm = 100;
		assert_int_equal(tn_optimizer_new(&o, c, "sgd", &oo), TN_OK);
		w = tn_parameter(c, "w", types[i], 0, NULL, NULL);
		assert_int_equal(tn_optimizer_add(o, w), TN_OK);
		m = tn_optimizer_state(o, 0, 0);
		assert_int_equal(tn_tensor_dtype(m), TN_F32);
		tn_init_constant(w, 2);
		downhill(c, o, w, 256);
		assert_true(tn_item(w) == 1.75);
		downhill(c, o, w, 1); /* too little for bf16 */
		assert_true(tn_item(m) == 1.75 - 1.0 / 1024);
		tn_init_constant(w, 4); /* somebody has written it */
		downhill(c, o, w, 1024);
		assert_true(tn_item(w) == 3);
		assert_true(tn_item(m) == 3);
		assert_int_equal(tn_context_status(c), TN_OK);
		tn_optimizer_free(o);
		tn_context_free(c);
	}
}

static void test_trained(void **state)
{
	tn_context *c = context();
	tn_optimizer_options oo = TN_OPTIMIZER_OPTIONS_INIT;
	tn_optimizer *o;
	tn_params *p;
	int64_t n = 2;
	tn_tensor *w, *s;

	(void)state;
	oo.lr = 0.5;
	assert_int_equal(tn_params_new(&p, c), TN_OK);
	assert_int_equal(tn_optimizer_new(&o, c, "sgd_momentum", &oo), TN_OK);
	w = tn_params_make(p, "w", TN_F32, 1, &n, true);
	s = tn_params_make(p, "s", TN_F32, 1, &n, false);
	tn_set_data(s, ((float[]){1, 2}), 8);
	tn_params_add(p, "tied", w, true);
	assert_int_equal(tn_optimizer_add_all(o, p), TN_OK);
	assert_int_equal(tn_optimizer_add_all(o, p), TN_OK);
	assert_non_null(tn_optimizer_state(o, 0, 0));
	assert_null(tn_optimizer_state(o, 1, 0));
	tn_backward(tn_reduce_sum(tn_mul(tn_add(w, s), s), NULL, 0, false),
		NULL);
	assert_null(tn_gradient(s));
	tn_optimizer_step(o);
	assert_int_equal(tn_params_eval(p), TN_OK);
	reads(w, 2, (const float[]){-0.5, -1});
	reads(s, 2, (const float[]){1, 2});
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_optimizer_free(o);
	tn_params_free(p);
	tn_context_free(c);
}

/* ---- files ---- */

static const float w0[] = {1, 2, 3, 4, 5, 6}, b0[] = {7, 8};

/* w f32[2,3], block.count i64[], block.b f32[2] (a view of a matrix) */
static tn_params *model(tn_context *c, bool filled)
{
	static const float both[] = {0, 7, 0, 8};
	int64_t ws[] = {2, 3}, ms[] = {2, 2}, count = 5;
	tn_params *p;
	tn_tensor *w, *m, *n;

	assert_int_equal(tn_params_new(&p, c), TN_OK);
	w = tn_params_make(p, "w", TN_F32, 2, ws, true);
	tn_params_enter(p, "block");
	n = tn_params_make(p, "count", TN_I64, 0, NULL, false);
	m = tn_parameter(c, "m", TN_F32, 2, ms, filled ? both : NULL);
	tn_params_add(p, "b", tn_select(m, 1, 1), true);
	tn_params_leave(p);
	if (filled) {
		tn_set_data(w, w0, sizeof w0);
		tn_set_data(n, &count, sizeof count);
	}
	return p;
}

static void test_round_trip(void **state)
{
	static const tn_pair words[] = {{"format", "tenon"}, {"step", "10"}};
	tn_context *c = context();
	tn_params *p = model(c, true), *q = model(c, false);
	tn_tensor *view = tn_reshape(
		tn_params_get(q, "w"), ((int64_t[]){6}), 1);
	char *text;

	(void)state;
	assert_int_equal(tn_params_save(p, path, words, 2), TN_OK);
	assert_int_equal(tn_params_load(q, path, true), TN_OK);
	reads(view, 6, w0); /* where it stands */
	reads(tn_params_get(q, "block.b"), 2, b0);
	assert_true(tn_item(tn_params_get(q, "block.count")) == 5);
	assert_int_equal(tn_safetensors_metadata(&text, c, path, "step"),
		TN_OK);
	assert_string_equal(text, "10");
	tn_text_free(text);
	assert_int_equal(tn_safetensors_metadata(&text, c, path, "none"),
		TN_OK);
	assert_null(text);
	assert_true(tn_safetensors_metadata(&text, c, "/nonexistent", "a") < 0);
	/* of values that were not computed yet */
	tn_no_grad_enter(c);
	tn_copy_(tn_params_get(q, "w"), tn_neg(tn_params_get(q, "w")));
	tn_no_grad_leave(c);
	assert_int_equal(tn_params_save(q, path, NULL, 0), TN_OK);
	assert_int_equal(tn_params_load(p, path, true), TN_OK);
	reads(tn_params_get(p, "w"), 6, (const float[]){-1, -2, -3, -4, -5, -6});
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_params_free(p);
	tn_params_free(q);
	tn_context_free(c);
}

static void test_mismatches(void **state)
{
	static const float zero[6] = {0};
	tn_context *c = context();
	tn_params *p = model(c, true), *q, *r;
	int64_t ws[] = {3, 2}, one = 1;

	(void)state;
	assert_int_equal(tn_params_save(p, path, NULL, 0), TN_OK);
	q = model(c, false);
	for (int i = 0; i < 7; i++) {
		char name[] = {'x', (char)('0' + i), '\0'};

		tn_params_make(q, name, TN_F32, 1, &one, true);
	}
	assert_true(tn_params_load(q, path, true) < 0);
	expect(c, "params.missing", "x0, x1, x2, x3, x4 and 2 more");
	reads(tn_params_get(q, "w"), 6, zero); /* nothing was written */
	assert_int_equal(tn_params_load(q, path, false), TN_OK);
	reads(tn_params_get(q, "w"), 6, w0);

	assert_int_equal(tn_params_new(&r, c), TN_OK);
	tn_params_make(r, "block.count", TN_I64, 0, NULL, false);
	assert_true(tn_params_load(r, path, true) < 0);
	expect(c, "params.unexpected", ": block.b, w");
	assert_true(tn_item(tn_params_at(r, 0)) == 0);
	assert_int_equal(tn_params_load(r, path, false), TN_OK);
	assert_true(tn_item(tn_params_at(r, 0)) == 5);

	/* not even loosely: another shape, another dtype */
	tn_params_make(r, "w", TN_F32, 2, ws, true);
	assert_true(tn_params_load(r, path, false) < 0);
	expect(c, "params.type", "w is f32[3,2], but in /tmp/tenon_params_");
	assert_true(tn_params_load(r, path, false) < 0);
	expect(c, "params.type", " f32[2,3]");
	tn_params_free(r);
	assert_int_equal(tn_params_new(&r, c), TN_OK);
	tn_params_make(r, "block.count", TN_I32, 0, NULL, false);
	assert_true(tn_params_load(r, path, false) < 0);
	expect(c, "params.type", "block.count is i32[], but");

	assert_int_equal(truncate(path, 40), 0);
	assert_true(tn_params_load(p, path, true) < 0);
	expect(c, "safetensors.truncated", "within its header");
	assert_true(tn_params_load(p, "/nonexistent", true) < 0);
	expect(c, "safetensors.open", "No such file");
	assert_true(tn_params_save(p, "/nonexistent/x", NULL, 0) < 0);
	expect(c, "safetensors.write", "No such file");
	assert_true(tn_params_save(p, NULL, NULL, 0) < 0);
	expect(c, "api.null", "path");
	tn_params_free(p);
	tn_params_free(q);
	tn_params_free(r);
	tn_context_free(c);
}

/* ---- training that goes on ---- */

typedef struct training {
	tn_params *p, *states;
	tn_optimizer *o;
	tn_layer *fc;
} training;

static training start(tn_context *c, uint64_t seed)
{
	training t;

	tn_set_seed(c, seed);
	assert_int_equal(tn_params_new(&t.p, c), TN_OK);
	assert_int_equal(tn_params_new(&t.states, c), TN_OK);
	assert_int_equal(tn_optimizer_new(&t.o, c, "adam", NULL), TN_OK);
	t.fc = tn_nn_linear(t.p, "fc", 2, 3, NULL);
	assert_int_equal(tn_optimizer_add_all(t.o, t.p), TN_OK);
	assert_int_equal(tn_optimizer_add_states(t.o, t.states), TN_OK);
	return t;
}

static void train(tn_context *c, const training *t, int from, int to)
{
	int64_t shape[] = {4, 2};
	float data[8];

	for (int i = from; i < to; i++) {
		tn_tensor *y;

		tn_fill_random(TN_F32, data, 8, (uint64_t)i, 0, 0);
		tn_scope_enter(c);
		y = tn_nn_forward(
			t->fc, tn_tensor_new(c, TN_F32, 2, shape, data));
		tn_backward(tn_reduce_sum(tn_sin(y), NULL, 0, false), NULL);
		tn_optimizer_step(t->o);
		tn_scope_leave(c);
		tn_params_eval(t->p);
	}
}

static void end(const training *t)
{
	tn_params_free(t->states);
	tn_optimizer_free(t->o);
	tn_params_free(t->p);
}

/* Saved after 3 steps and gone on with elsewhere: the same bits after 6. */
static void test_goes_on(void **state)
{
	tn_context *c = context();
	training t = start(c, 1), u;
	char other[sizeof path + 8];
	float want[6];

	(void)state;
	snprintf(other, sizeof other, "%s.opt", path);
	assert_int_equal(tn_params_n(t.states), 4);
	assert_string_equal(tn_params_name(t.states, 0), "fc.weight.state0");
	assert_string_equal(tn_params_name(t.states, 3), "fc.bias.state1");
	train(c, &t, 0, 3);
	assert_int_equal(tn_params_save(t.p, path, NULL, 0), TN_OK);
	assert_int_equal(tn_params_save(t.states, other, NULL, 0), TN_OK);
	train(c, &t, 3, 6);
	tn_read(tn_params_get(t.p, "fc.weight"), want, sizeof want);
	u = start(c, 2);
	assert_int_equal(tn_params_load(u.p, path, true), TN_OK);
	assert_int_equal(tn_params_load(u.states, other, true), TN_OK);
	tn_optimizer_set_steps(u.o, 3);
	train(c, &u, 3, 6);
	assert_int_equal(tn_optimizer_steps(u.o), 6);
	reads(tn_params_get(u.p, "fc.weight"), 6, want);
	assert_int_equal(tn_context_status(c), TN_OK);
	assert_int_equal(unlink(other), 0);
	end(&t);
	end(&u);
	tn_context_free(c);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_data),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_trained),
		cmocka_unit_test(test_master),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_mismatches),
		cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
