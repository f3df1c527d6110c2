/*
 * test_export.c: compiled functions as C (tn_function_export_c): what is refused,
 * what the export leaves alone, what is a state. That the C has the bits of the
 * library is tested by tests/train/export_steps.c.
 */
#include "unit.h"

#include <tenon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t n4[1] = {4}, n2[1] = {2};

struct world {
	tn_context *c;
	tn_tensor *w, *x;
	tn_optimizer *opt;
	char dir[64];
};

static const float ones[4] = {1, 1, 1, 1}, first[4] = {1, 2, 3, 4};

static int begin(void **state)
{
	struct world *k = calloc(1, sizeof *k);

	assert_non_null(k);
	assert_int_equal(tn_context_new(&k->c, NULL), TN_OK);
	k->w = tn_parameter(k->c, "w", TN_F32, 1, n4, first);
	k->x = tn_tensor_new(k->c, TN_F32, 1, n4, ones);
	assert_int_equal(tn_optimizer_new(&k->opt, k->c, "sgd", NULL), TN_OK);
	assert_int_equal(tn_optimizer_add(k->opt, k->w), TN_OK);
	snprintf(k->dir, sizeof k->dir, "/tmp/test_export.%d", (int)getpid());
	*state = k;
	return 0;
}

static int end(void **state)
{
	struct world *k = *state;
	char command[100];

	tn_optimizer_free(k->opt);
	tn_context_free(k->c);
	snprintf(command, sizeof command, "rm -rf %s", k->dir);
	assert_int_equal(system(command), 0);
	free(k);
	return 0;
}

/* ---- bodies ---- */

static tn_tensor *loss(const struct world *k, tn_tensor *x)
{
	tn_tensor *d = tn_sub(k->w, x);

	return tn_reduce_sum(tn_mul(d, d), NULL, 0, false);
}

static tn_status step(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct world *k = user;

	out[0] = loss(k, in[0]);
	tn_backward(out[0], NULL);
	tn_optimizer_step(k->opt);
	return tn_context_status(c);
}

static tn_status leaves(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	out[0] = loss(user, in[0]);
	tn_backward(out[0], NULL);
	return tn_context_status(c);
}

static tn_status same(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_neg(in[0]);
	return tn_context_status(c);
}

static tn_status choose(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *sum = tn_reduce_sum(in[0], NULL, 0, false);

	tn_cond(c, tn_gt(sum, tn_scalar(c, TN_F32, 0)), same, same, user, 1,
		in, 1, out);
	return tn_context_status(c);
}

static tn_status outside(void *user, int32_t n_in, const tn_array *in,
	int32_t n_out, const tn_array *out)
{
	(void)user;
	(void)n_in;
	(void)n_out;
	memcpy(out[0].data, in[0].data, 16);
	return TN_OK;
}

static tn_status calls_c(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	const tn_array type = {.dtype = TN_F32, .rank = 1, .shape = {4}};

	tn_host_call(c, outside, NULL, user, 1, in, 1, &type, out);
	return tn_context_status(c);
}

static tn_status below(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_lt(tn_reduce_sum(in[0], NULL, 0, false),
		tn_scalar(c, TN_F32, 100));
	return tn_context_status(c);
}

/* A loop with a test has a gradient. */
static tn_status learns(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct world *k = user;
	tn_tensor *x = tn_mul(k->w, in[0]);

	tn_while(c, below, same, user, 5, 1, &x, &x);
	out[0] = tn_reduce_sum(x, NULL, 0, false);
	tn_backward(out[0], NULL);
	tn_optimizer_step(k->opt);
	return tn_context_status(c);
}

static tn_status writes(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	tn_copy_(in[0], tn_mul(in[1], in[1]));
	out[0] = tn_neg(in[1]);
	return tn_context_status(c);
}

/* ---- tests ---- */

static tn_function *compiled(struct world *k, tn_body *body, int32_t n_in)
{
	tn_function *f;

	assert_int_equal(tn_compile(&f, k->c, body, k, n_in, 1, "f"), TN_OK);
	return f;
}

static void refused(struct world *k, tn_body *body, int32_t n,
	tn_tensor *const *in, const char *rule)
{
	tn_function *f = compiled(k, body, n);

	assert_int_equal(tn_function_export_c(f, in, k->dir, NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(k->c)->rule, rule);
	assert_int_not_equal(access(k->dir, F_OK), 0);
	tn_function_free(f);
}

static void test_refusals(void **state)
{
	struct world *k = *state;
	tn_tensor *views[2], *mine, *dropped;
	tn_export_options o = TN_EXPORT_INIT;
	tn_function *f = compiled(k, step, 1);

	assert_int_equal(tn_function_export_c(NULL, &k->x, k->dir, NULL),
		TN_EINVAL);
	refused(k, calls_c, 1, &k->x, "export.region");
	refused(k, learns, 1, &k->x, "export.region");
	refused(k, leaves, 1, &k->x, "export.gradient");
	mine = tn_tensor_new(k->c, TN_F32, 1, n4, ones);
	views[0] = tn_narrow(mine, 0, 0, 2);
	views[1] = tn_narrow(mine, 0, 1, 2);
	refused(k, writes, 2, views, "export.overlap");
	dropped = tn_tensor_new(k->c, TN_F32, 1, n2, ones);
	tn_drop(dropped);
	refused(k, step, 1, &dropped, "tensor.handle");
	o.n_kept = 1;
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_EINVAL);
	assert_string_equal(tn_context_diag(k->c)->rule, "export.options");
	o.kept = &dropped;
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_EINVAL);
	assert_string_equal(tn_context_diag(k->c)->rule, "tensor.handle");
	tn_function_free(f);
}

static void test_shards(void **state)
{
	static const char *const axis[] = {"data"};
	static const tn_placement rows[1] = {TN_SHARDED(0)};
	static const int64_t one[1] = {1};
	struct world *k = *state;
	tn_mesh *m = tn_mesh_new(k->c, 1, axis, one);

	assert_non_null(m);
	assert_int_equal(tn_shard(k->w, m, rows), TN_OK);
	refused(k, step, 1, &k->x, "export.shard");
}

static void expect_w(const struct world *k, const float *want)
{
	float w[4];

	assert_int_equal(tn_read(k->w, w, sizeof w), TN_OK);
	assert_memory_equal(w, want, sizeof w);
}

static char *text_of(const struct world *k, const char *name)
{
	static char text[1 << 16];
	char path[100];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", k->dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	return text;
}

/* The step is not made; one that was recorded before is. */
static void test_nothing_changes(void **state)
{
	struct world *k = *state;
	tn_export_options o = TN_EXPORT_INIT;
	tn_function *f = compiled(k, step, 1);
	tn_tensor *y = NULL;
	float moved[4], read[4];

	o.weights = TN_EXPORT_FILE;
	o.by = TN_EXPORT_BY_NOTHING;
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_OK);
	expect_w(k, first);
	assert_int_equal(tn_optimizer_steps(k->opt), 0);
	tn_function_call(f, &k->x, &y);
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_OK);
	assert_int_equal(tn_function_n_recorded(f), 1);
	memcpy(read, text_of(k, "net.weights") + 64, sizeof read);
	assert_int_equal(tn_read(k->w, moved, sizeof moved), TN_OK);
	assert_memory_equal(read, moved, sizeof read);
	assert_true(moved[3] < first[3]);
	assert_int_equal(tn_optimizer_steps(k->opt), 1);
	tn_function_free(f);
}

/* What is written is a state; what is only read is one if it is asked for. */
static void test_state(void **state)
{
	struct world *k = *state;
	tn_tensor *rate = tn_optimizer_rate(k->opt);
	tn_export_options o = TN_EXPORT_INIT;
	tn_function *f = compiled(k, step, 1);

	assert_null(tn_optimizer_rate(NULL));
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_OK);
	assert_non_null(strstr(text_of(k, "net.h"), "NET_STATE_W(n)"));
	assert_null(strstr(text_of(k, "net.h"), "NET_STATE_LR(n)"));
	o.kept = &rate;
	o.n_kept = 1;
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_OK);
	assert_non_null(strstr(text_of(k, "net.h"), "NET_STATE_LR(n)"));
	tn_function_free(f);
	f = compiled(k, same, 1);
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_OK);
	assert_non_null(strstr(text_of(k, "net.h"), "int net_run("));
	assert_null(strstr(text_of(k, "net.h"), "net_save"));
	tn_function_free(f);
}

/* A condition is an `if` in C. */
static void test_condition(void **state)
{
	struct world *k = *state;
	tn_export_options o = TN_EXPORT_INIT;
	tn_function *f = compiled(k, choose, 1);

	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_OK);
	assert_non_null(strstr(text_of(k, "net.c"), "if (*(const uint8_t *)"));
	tn_function_free(f);
}

/* Options that exclude each other, sizes without files. */
static void test_options(void **state)
{
	struct world *k = *state;
	tn_export_options o = TN_EXPORT_INIT;
	tn_export_size size = {0};
	tn_function *f = compiled(k, step, 1);

	o.size = &size;
	assert_int_equal(tn_function_export_c(f, &k->x, NULL, &o), TN_OK);
	assert_true(size.arena_bytes >= size.state_bytes && size.flops > 0);
	assert_int_equal(size.memory_limit, -1);
	assert_int_not_equal(access(k->dir, F_OK), 0);
	o.size = NULL;
	o.int_size = 16;
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_EINVAL);
	assert_string_equal(tn_context_diag(k->c)->rule, "export.options");
	o.int_size = 32;
	o.isas = "avx2,sse";
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_EINVAL);
	o.isas = "sse,avx2";
	o.small = true;
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_EINVAL);
	assert_string_equal(tn_context_diag(k->c)->rule, "export.options");
	o.small = false;
	assert_int_equal(tn_function_export_c(f, &k->x, k->dir, &o), TN_OK);
	assert_non_null(strstr(text_of(k, "net.h"), "net_set_isa("));
	tn_function_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refusals, begin, end),
		cmocka_unit_test_setup_teardown(test_shards, begin, end),
		cmocka_unit_test_setup_teardown(
			test_nothing_changes, begin, end),
		cmocka_unit_test_setup_teardown(test_state, begin, end),
		cmocka_unit_test_setup_teardown(test_condition, begin, end),
		cmocka_unit_test_setup_teardown(test_options, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
