/*
 * test_region.c: conditions, loops and functions in C: values, writes in place,
 * gradients, in compiled functions and out of them, and what is refused.
 */
#include "tenon.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

static const int64_t n3[1] = {3}, n43[2] = {4, 3};
static const double w234[3] = {2, 3, 4};

/* ---- contexts that count what they allocate ---- */

static void *resize(void *arg, void *old, size_t n)
{
	int64_t *count = arg;

	if (n == 0) {
		free(old);
		return NULL;
	}
#ifndef __SANITIZE_ADDRESS__ /* there each object of an arena is one */
	(*count)++;
#else
	(void)count;
#endif
	return realloc(old, n);
}

static int64_t n_allocs;

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	o.threads = 1;
	o.memory.resize = resize;
	o.memory.arg = &n_allocs;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static void good(tn_context *c)
{
	if (tn_context_status(c) < 0)
		print_error("[%s] %s\n", tn_context_diag(c)->rule,
			tn_context_diag(c)->text);
	assert_int_equal(tn_context_status(c), TN_OK);
}

static void near(double x, double y)
{
	assert_true(fabs(x - y) <= 1e-9 * (1 + fabs(y)));
}

static void expect(tn_tensor *x, int32_t n, const double *want)
{
	double v[64];

	assert_true(tn_is_valid(x));
	assert_int_equal(tn_read(x, v, (size_t)n * sizeof *v), TN_OK);
	for (int32_t i = 0; i < n; i++)
		near(v[i], want[i]);
}

static tn_tensor *vector(tn_context *c, double x, double y, double z)
{
	double v[3] = {x, y, z};

	return tn_tensor_new(c, TN_F64, 1, n3, v);
}

static tn_tensor *truth(tn_context *c, bool b)
{
	return tn_tensor_new(c, TN_BOOL, 0, NULL, &b);
}

static tn_stats stats(tn_context *c)
{
	tn_stats s;

	tn_context_stats(c, &s);
	return s;
}

/* ---- conditions: case 20 ---- */

struct model {
	tn_tensor *w, *mean, *limit;
	int32_t *count;
	int32_t how;
};

static tn_status twice(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_add(in[0], in[0]);
	return TN_OK;
}

/* It writes the mean, as normalisation does. */
static tn_status update(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct model *m = user;

	(void)c;
	(void)tn_copy_(m->mean, tn_add(m->mean, in[0]));
	out[0] = tn_mul(in[0], m->w);
	return TN_OK;
}

static void run_cond(bool interp)
{
	tn_context *c = context(interp);
	struct model m = {0};
	double mean[3] = {0};
	tn_stats a = {0}, b;
	int64_t allocs = 0;

	tn_no_grad_enter(c);
	m.mean = tn_parameter(c, "mean", TN_F64, 1, n3, NULL);
	m.w = tn_parameter(c, "w", TN_F64, 1, n3, w234);
	for (int32_t k = 0; k < 8; k++) {
		bool yes = k % 3 != 1;
		tn_tensor *x, *y;

		tn_scope_enter(c);
		x = vector(c, 1, k, 2);
		tn_cond(c, truth(c, yes), update, twice, &m, 1, &x, 1, &y);
		good(c);
		for (int32_t i = 0; yes && i < 3; i++)
			mean[i] += i == 0 ? 1 : i == 1 ? k : 2;
		if (yes)
			expect(y, 3, (double[3]){2, 3 * k, 8});
		else
			expect(y, 3, (double[3]){2, 2 * k, 4});
		expect(m.mean, 3, mean);
		tn_scope_leave(c);
		if (k == 4) {
			a = stats(c);
			allocs = n_allocs;
		}
	}
	b = stats(c);
	assert_int_equal(b.n_copies, 0);
	assert_int_equal(b.n_programs, a.n_programs);
	if (!interp)
		assert_int_equal(n_allocs, allocs);
	good(c);
	tn_context_free(c);
}

static tn_status asks(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	return tn_cond(c, in[0], update, twice, user, 1, &in[1], 1, out);
}

/* The chain goes through the branch: the buffer is a slot of the function. */
static void test_slots(void **state)
{
	tn_context *c = context(true);
	struct model m = {0};
	tn_tensor *in[2], *y;
	tn_function *f;
	char *text;

	(void)state;
	tn_no_grad_enter(c);
	m.mean = tn_parameter(c, "mean", TN_F64, 1, n3, NULL);
	m.w = tn_parameter(c, "w", TN_F64, 1, n3, w234);
	tn_no_grad_leave(c);
	assert_int_equal(tn_compile(&f, c, asks, &m, 2, 1, "f"), TN_OK);
	for (int32_t k = 0; k < 4; k++) {
		in[0] = truth(c, k != 1);
		in[1] = vector(c, 1, 1, 1);
		assert_int_equal(tn_function_call(f, in, &y), TN_OK);
		good(c);
	}
	expect(m.mean, 3, (double[3]){3, 3, 3});
	assert_int_equal(tn_function_text(&text, f, false), TN_OK);
	if (strstr(text, "param mean             f64[3]          "
			 "version 0 -> 1") == NULL)
		fail_msg("%s", text);
	tn_text_free(text);
	assert_int_equal(stats(c).n_copies, 0);
	tn_function_free(f);
	tn_context_free(c);
}

static void test_cond(void **state)
{
	(void)state;
	run_cond(true);
	run_cond(false);
}

/* An output that is a storage in both branches is that; else it is a copy. */
static tn_status give_w(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct model *m = user;

	(void)c;
	out[0] = out[1] = m->w;
	out[2] = in[0];
	out[3] = out[4] = tn_add(in[0], in[0]);
	return TN_OK;
}

static tn_status give_other(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct model *m = user;

	(void)c;
	out[0] = m->w;
	out[1] = tn_mul(in[0], m->w);
	out[2] = tn_copy(in[0]);
	out[3] = out[4] = tn_mul(in[0], in[0]);
	return TN_OK;
}

static void test_aliases(void **state)
{
	tn_context *c = context(true);
	struct model m = {0};
	tn_tensor *x, *y[5];

	(void)state;
	m.w = tn_parameter(c, "w", TN_F64, 1, n3, w234);
	tn_no_grad_enter(c);
	for (int32_t k = 0; k < 2; k++) {
		tn_scope_enter(c);
		x = vector(c, 1, 2, 3);
		tn_cond(c, truth(c, k == 0), give_w, give_other, &m, 1, &x, 5,
			y);
		good(c);
		(void)tn_fill_(y[0], 7); /* the parameter */
		expect(m.w, 3, (double[3]){7, 7, 7});
		if (k == 0)
			expect(y[1], 3, (double[3]){2, 3, 4}); /* a copy */
		else
			expect(y[1], 3, (double[3]){2, 6, 12});
		(void)tn_fill_(y[2], 5);
		expect(x, 3, (double[3]){1, 2, 3});
		(void)tn_fill_(y[3], 6); /* one storage in both branches */
		expect(y[4], 3, (double[3]){6, 6, 6});
		tn_set_data(m.w, w234, sizeof w234);
		tn_scope_leave(c);
	}
	good(c);
	tn_context_free(c);
}

/* ---- loops ---- */

static tn_status below_limit(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct model *m = user;

	(void)c;
	out[0] = tn_lt(in[0], m->limit);
	return TN_OK;
}

/* (a, b) = (b, a + b), while a < limit */
static tn_status fibonacci(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = in[1];
	out[1] = tn_add(in[0], in[1]);
	return TN_OK;
}

static void run_while(bool interp)
{
	static const double want[6][3] = {{0, 0, 1}, {3, 3, 5}, {50, 55, 89},
		{8, 8, 13}, {1000, 1597, 2584}, {100, 144, 233}};
	tn_context *c = context(interp);
	struct model m = {0};
	tn_stats a = {0};
	int64_t allocs = 0;

	for (int32_t k = 0; k < 6; k++) {
		tn_tensor *in[2], *out[2];

		tn_scope_enter(c);
		m.limit = tn_scalar(c, TN_F64, want[k][0]);
		in[0] = tn_scalar(c, TN_F64, 0);
		in[1] = tn_scalar(c, TN_F64, 1);
		tn_while(c, below_limit, fibonacci, &m, 0, 2, in, out);
		good(c);
		near(tn_item(out[0]), want[k][1]);
		near(tn_item(out[1]), want[k][2]);
		near(tn_item(in[0]), 0);
		tn_scope_leave(c);
		if (k == 3) {
			a = stats(c);
			allocs = n_allocs;
		}
	}
	assert_int_equal(stats(c).n_programs, a.n_programs);
	assert_int_equal(stats(c).n_copies, 0);
	if (!interp)
		assert_int_equal(n_allocs, allocs);
	tn_context_free(c);
}

static void test_while(void **state)
{
	(void)state;
	run_while(true);
	run_while(false);
}

/* ---- a cache that grows: case 18 ---- */

enum { STEPS = 64, WIDTH = 8 };
static const int64_t cache_shape[2] = {STEPS, WIDTH}, row_shape[2] = {1, WIDTH};

struct decoder {
	tn_tensor *cache, *w, *steps;
};

static tn_status more(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct decoder *m = user;

	(void)c;
	out[0] = tn_lt(in[0], m->steps);
	return TN_OK;
}

/* k = x w; cache[t] = k; x = tanh(mean of the cache + k); t = t + 1 */
static tn_status decode(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	static const int64_t axis[1] = {0};
	struct decoder *m = user;
	tn_tensor *k = tn_matmul(in[1], m->w);

	(void)tn_copy_(tn_dynamic_narrow(m->cache, in[0], 0, 1), k);
	out[0] = tn_add(in[0], tn_scalar(c, TN_I64, 1));
	out[1] = tn_tanh(tn_add(tn_reduce_sum(m->cache, axis, 1, true), k));
	return TN_OK;
}

static tn_status decode_carried(tn_context *c, void *user,
	tn_tensor *const *in, tn_tensor **out)
{
	struct decoder m = *(struct decoder *)user;

	m.cache = in[2];
	out[2] = in[2];
	return decode(c, &m, in, out);
}

static tn_status decode_once(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *x[2] = {tn_scalar(c, TN_I64, 0), in[0]}, *y[2];

	(void)tn_while(c, more, decode, user, 0, 2, x, y);
	out[0] = y[1];
	return TN_OK;
}

static void decode_plain(const double *w, const double *x0, double *cache,
	double *x)
{
	double k[WIDTH];

	memcpy(x, x0, WIDTH * sizeof *x);
	for (int32_t t = 0; t < STEPS; t++) {
		for (int32_t i = 0; i < WIDTH; i++) {
			k[i] = 0;
			for (int32_t j = 0; j < WIDTH; j++)
				k[i] += x[j] * w[j * WIDTH + i];
			cache[t * WIDTH + i] = k[i];
		}
		for (int32_t i = 0; i < WIDTH; i++) {
			double sum = 0;

			for (int32_t s = 0; s < STEPS; s++)
				sum += cache[s * WIDTH + i];
			x[i] = tanh(sum + k[i]);
		}
	}
}

enum { KNOWN, CARRIED, COMPILED };

static void run_decode(int32_t how)
{
	static const int64_t square[2] = {WIDTH, WIDTH};
	tn_context *c = context(false);
	struct decoder m;
	double w[WIDTH * WIDTH], x0[WIDTH], x[WIDTH];
	double cache[STEPS * WIDTH] = {0}, v[STEPS * WIDTH];
	tn_function *f;
	tn_stats a = {0}, b;
	int64_t allocs = 0, steps = STEPS;

	for (int32_t i = 0; i < WIDTH * WIDTH; i++)
		w[i] = 0.1 * ((i * 7) % 11 - 5);
	tn_no_grad_enter(c);
	m.cache = tn_parameter(c, "cache", TN_F64, 2, cache_shape, NULL);
	m.w = tn_parameter(c, "w", TN_F64, 2, square, w);
	m.steps = tn_parameter(c, "steps", TN_I64, 0, NULL, &steps);
	assert_int_equal(tn_compile(&f, c, decode_once, &m, 1, 1, "decode"),
		TN_OK);
	for (int32_t k = 0; k < 8; k++) {
		tn_tensor *in[3], *out[3];

		tn_scope_enter(c);
		for (int32_t i = 0; i < WIDTH; i++)
			x0[i] = 0.1 * (i - k);
		decode_plain(w, x0, cache, x);
		in[0] = tn_scalar(c, TN_I64, 0);
		in[1] = tn_tensor_new(c, TN_F64, 2, row_shape, x0);
		in[2] = m.cache;
		if (how == COMPILED)
			tn_function_call(f, in + 1, out + 1);
		else if (how == KNOWN)
			tn_while(c, more, decode, &m, 0, 2, in, out);
		else
			tn_while(c, more, decode_carried, &m, 0, 3, in, out);
		good(c);
		expect(out[1], WIDTH, x);
		tn_read(m.cache, v, sizeof v);
		for (int32_t i = 0; i < STEPS * WIDTH; i++)
			near(v[i], cache[i]);
		tn_scope_leave(c);
		if (k == 1)
			a = stats(c);
		if (k == 5) /* nodes have found their sizes */
			allocs = n_allocs;
	}
	b = stats(c);
	assert_int_equal(b.n_copies, 0); /* of the cache */
	assert_int_equal(b.n_inner_copies, 0);
	assert_int_equal(b.n_programs, a.n_programs);
	assert_int_equal(n_allocs, allocs);
	tn_function_free(f);
	tn_context_free(c);
}

static void test_decode(void **state)
{
	(void)state;
	run_decode(KNOWN);
	run_decode(CARRIED);
	run_decode(COMPILED);
}

/* ---- gradients ---- */

/* h = tanh(h w + x), y = h h; statistics are written without a gradient */
static tn_status cell(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct model *m = user;

	out[0] = tn_tanh(tn_add(tn_mul(in[0], m->w), in[1]));
	out[1] = tn_mul(out[0], tn_mul(in[0], m->mean));
	tn_no_grad_enter(c);
	(void)tn_copy_(m->mean, tn_add(m->mean, tn_mul(in[1], out[0])));
	tn_no_grad_leave(c);
	return TN_OK;
}

enum { PLAIN, REGION, INSIDE };

static tn_status rounds(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct model *m = user;

	if (m->how != PLAIN)
		return tn_scan(c, cell, m, 4, 1, 1, in, 1, out);
	out[0] = in[0];
	out[1] = tn_tensor_new(c, TN_F64, 2, n43, NULL);
	for (int64_t i = 0; i < 4; i++) {
		tn_tensor *x[2] = {out[0], tn_select(in[1], 0, i)}, *y[2];

		if (cell(c, m, x, y) < 0)
			return TN_EINVAL;
		out[0] = y[0];
		(void)tn_copy_(tn_select(out[1], 0, i), y[1]);
	}
	return TN_OK;
}

static void note(double *at, int32_t *n, tn_tensor *x, int32_t size)
{
	if (x == NULL)
		memset(at + *n, 0, (size_t)size * sizeof *at);
	else
		assert_int_equal(tn_read(x, at + *n,
					 (size_t)size * sizeof *at),
			TN_OK);
	*n += size;
}

/* Returns what the last steps allocate. */
static int64_t train(
	int32_t how, bool interp, double *figure, tn_body *body)
{
	static const double rows[12] = {1, -1, 0.5, 0.25, 2, -0.5, 1, 1, -1,
		0.125, 0.75, -2};
	tn_context *c = context(interp);
	struct model m = {.how = how};
	tn_function *f;
	tn_stats a = {0};
	int64_t allocs = 0;
	int32_t n = 0;

	m.w = tn_parameter(c, "w", TN_F64, 1, n3, w234);
	m.mean = tn_parameter(c, "mean", TN_F64, 1, n3, w234);
	assert_int_equal(tn_compile(&f, c, body, &m, 2, 2, "f"), TN_OK);
	for (int32_t k = 0; k < 10; k++) {
		tn_tensor *in[2], *out[2], *loss;

		tn_scope_enter(c);
		in[0] = vector(c, 0.5, 0.25 * k, -1);
		in[1] = tn_tensor_new(c, TN_F64, 2, n43, rows);
		tn_requires_grad(in[0]);
		tn_requires_grad(in[1]);
		if (how == INSIDE)
			tn_function_call(f, in, out);
		else
			assert_int_equal(body(c, &m, in, out), TN_OK);
		good(c);
		loss = tn_add(tn_reduce_sum(tn_mul(out[0], m.mean), NULL, 0,
				      false),
			tn_reduce_sum(tn_mul(out[1], out[1]), NULL, 0, false));
		tn_backward(loss, NULL);
		good(c);
		note(figure, &n, loss, 1);
		note(figure, &n, out[0], 3);
		note(figure, &n, out[1], 12);
		note(figure, &n, m.mean, 3);
		note(figure, &n, tn_gradient(in[0]), 3);
		note(figure, &n, tn_gradient(in[1]), 12);
		note(figure, &n, tn_gradient(m.w), 3);
		note(figure, &n, tn_gradient(m.mean), 3);
		tn_zero_grad(m.mean);
		good(c);
		tn_scope_leave(c);
		tn_no_grad_enter(c);
		(void)tn_copy_(m.mean, tn_tanh(m.mean));
		tn_no_grad_leave(c);
		if (k == 6) {
			a = stats(c);
			allocs = n_allocs;
		}
	}
	assert_int_equal(stats(c).n_programs, a.n_programs);
	tn_function_free(f);
	tn_context_free(c);
	return n_allocs - allocs;
}

enum { FIGURES = 10 * 40 };

static void compare(tn_body *body)
{
	double plain[FIGURES], with[FIGURES];

	for (int32_t interp = 0; interp < 2; interp++) {
		int64_t n = train(PLAIN, interp, plain, body);

		for (int32_t how = REGION; how <= INSIDE; how++) {
			int64_t more = train(how, interp, with, body);

			/* nothing for each round or step */
			assert_true(interp || more <= n + 2);
			for (int32_t k = 0; k < FIGURES; k++)
				near(with[k], plain[k]);
		}
	}
}

static void test_scan(void **state)
{
	(void)state;
	compare(rounds);
}

/* ---- functions in C ---- */

static tn_status norm(void *user, int32_t n_in, const tn_array *in,
	int32_t n_out, const tn_array *out)
{
	double sum = 0;

	assert_int_equal(n_in, 1);
	assert_int_equal(n_out, 1);
	assert_int_equal(in[0].n_elems, 3);
	assert_int_equal(out[0].n_bytes, sizeof sum);
	for (int64_t i = 0; i < in[0].n_elems; i++) {
		double v = tn_get_f64(in[0].dtype, in[0].data, i);

		sum += v * v;
	}
	tn_set_f64(out[0].dtype, out[0].data, 0, sqrt(sum));
	return --*(int32_t *)user < 0 ? TN_EIO : TN_OK;
}

static tn_status grow(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_array scalar = {.dtype = TN_F64};
	struct model *m = user;
	tn_tensor *y;

	(void)tn_host_call(c, norm, NULL, m->count, 1, in, 1, &scalar, &y);
	(void)tn_copy_(m->w, tn_add(m->w, in[0]));
	out[0] = tn_add(in[0], y);
	return TN_OK;
}

/* A function in C runs once, when it is needed, and its failure is passed on. */
static void test_host(void **state)
{
	tn_context *c = context(false);
	int32_t count = 5;
	struct model m = {.count = &count};
	tn_array scalar = {.dtype = TN_F64};
	tn_tensor *x, *y, *z;

	(void)state;
	tn_no_grad_enter(c);
	m.w = tn_parameter(c, "w", TN_F64, 1, n3, w234);
	x = vector(c, 3, 4, 12);
	tn_host_call(c, norm, NULL, &count, 1, &x, 1, &scalar, &y);
	tn_host_call(c, norm, NULL, &count, 1, &x, 1, &scalar, &z);
	near(tn_item(tn_add(y, y)), 26);
	near(tn_item(tn_mul(y, y)), 169);
	assert_int_equal(count, 4); /* z was never asked for */
	tn_scan(c, grow, &m, 2, 1, 0, &x, 0, &y);
	expect(y, 3, (double[3]){3 + 13 + sqrt(16 * 16 + 17 * 17 + 25 * 25),
			     4 + 13 + sqrt(16 * 16 + 17 * 17 + 25 * 25),
			     25 + sqrt(16 * 16 + 17 * 17 + 25 * 25)});
	expect(m.w, 3, (double[3]){2 + 3 + 16, 3 + 4 + 17, 4 + 12 + 25});
	assert_int_equal(count, 2);
	/* it fails in the third round: what is written has its memory still */
	tn_scan(c, grow, &m, 5, 1, 0, &x, 0, &y);
	good(c);
	assert_true(isnan(tn_item(tn_reduce_sum(y, NULL, 0, false))));
	assert_string_equal(tn_context_diag(c)->rule, "host.failed");
	assert_int_equal(tn_context_diag(c)->status, TN_EIO);
	tn_context_clear(c);
	count = 100;
	(void)tn_copy_(m.w, x);
	expect(m.w, 3, (double[3]){3, 4, 12});
	good(c);
	tn_context_free(c);
}

/* ---- what is refused ---- */

static tn_status shorter(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_narrow(in[0], 0, 0, 2);
	return TN_OK;
}

/* It writes, and hands on something else. */
static tn_status overwrite(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	(void)tn_copy_(in[0], tn_add(in[0], in[0]));
	out[0] = tn_mul(in[0], in[0]);
	return TN_OK;
}

static tn_status look(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	(void)tn_item(tn_reduce_sum(in[0], NULL, 0, false));
	out[0] = in[0];
	return TN_OK;
}

static tn_status all_of(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_lt(in[0], in[0]);
	return TN_OK;
}

static tn_status fails(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = in[0];
	return TN_EIO;
}

static void test_refused(void **state)
{
	static const char *const rules[] = {"cond.output", "cond.test",
		"compile.read", "loop.carried", "loop.carried", "while.test",
		"scan.rows", "scan.rows", "compile.body"};
	tn_context *c = context(true);
	tn_tensor *x[2], *y[2];

	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		x[0] = x[1] = vector(c, 1, 2, 3);
		if (i == 0)
			tn_cond(c, truth(c, true), twice, shorter, NULL, 1, x,
				1, y);
		if (i == 1)
			tn_cond(c, x[0], twice, twice, NULL, 1, x, 1, y);
		if (i == 2)
			tn_cond(c, truth(c, true), twice, look, NULL, 1, x, 1,
				y);
		if (i == 3)
			tn_while(c, all_of, shorter, NULL, 0, 1, x, y);
		if (i == 4)
			tn_scan(c, overwrite, NULL, 2, 1, 0, x, 0, y);
		if (i == 5)
			tn_while(c, all_of, twice, NULL, 0, 1, x, y);
		if (i == 6)
			tn_scan(c, twice, NULL, 2, 0, 1, x, 1, y);
		if (i == 7)
			tn_scan(c, overwrite, NULL, 3, 0, 1, x, 1, y);
		if (i == 8)
			tn_scan(c, fails, NULL, 3, 0, 1, x, 1, y);
		assert_false(tn_is_valid(y[0]));
		assert_string_equal(tn_context_diag(c)->rule, rules[i]);
		tn_context_clear(c);
		/* nothing is left of it */
		tn_cond(c, truth(c, true), twice, twice, NULL, 1, x, 1, y);
		expect(y[0], 3, (double[3]){2, 4, 6});
		expect(x[0], 3, (double[3]){1, 2, 3});
	}
	good(c);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cond),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_while),
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
