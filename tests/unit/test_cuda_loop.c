/*
 * Loops on CUDA devices, on a driver that needs no GPU (tests/fake): the rounds run
 * on the device, and the host does not wait between them; what fails leaves
 * everything as it was, and what runs after that is right.
 */
#include "cuda.h"

enum { IN = 4, OUT = 2, ROOM = 512 };

/* A recurrence with a weight that is the same in all rounds, and rows. */
static const char recurrence[] =
	"program {\n  s0: f32[2,24]\n  xs: f32[9,2,24]\n  w: f32[24,24]\n"
	"  s, ys = loop(s0, xs, w, rounds=9) {\n"
	"    carried h: f32[2,24]\n    row x: f32[2,24]\n    w: f32[24,24]\n"
	"    t = matmul(h, w)\n    a = add(t, x)\n    h1 = tanh(a)\n"
	"    return h1, t\n  }\n"
	"  r = reduce_sum(s, axes=[1])\n  return r, ys\n}\n";
/* A loop in a loop; indices from data, in rounds of the inner one. */
static const char nested[] =
	"program {\n  s0: f32[3]\n  ids: i64[2,3]\n  table: f32[8,3]\n"
	"  s, ys = loop(s0, ids, table, rounds=2) {\n"
	"    carried h: f32[3]\n    row i: i64[3]\n    table: f32[8,3]\n"
	"    q = loop(h, i, table, rounds=3) {\n"
	"      carried g: f32[3]\n      row k: i64\n      table: f32[8,3]\n"
	"      e = embedding(k, table)\n      m = mul(g, e)\n"
	"      b = add(m, e)\n      return b\n    }\n"
	"    return q, q\n  }\n"
	"  r = exp(s)\n  return r, ys\n}\n";
/* A row of the host in each round. */
static const char sorts[] =
	"program {\n  s0: f32[12]\n"
	"  s = loop(s0, rounds=5) {\n    carried h: f32[12]\n"
	"    v, i = sort(h, axis=0)\n    f = cos(v)\n    return f\n  }\n"
	"  return s\n}\n";
/* More rounds than are launched at once. */
static const char many[] =
	"program {\n  s0: f32[3]\n"
	"  s = loop(s0, rounds=2100) {\n    carried h: f32[3]\n"
	"    f = cos(h)\n    return f\n  }\n"
	"  return s\n}\n";

typedef struct arrays {
	float f[IN][ROOM];
	int64_t ids[6];
	float out[OUT][ROOM];
	const void *in[IN];
	void *to[OUT];
} arrays;

static void fill(arrays *x, bool has_ids)
{
	static const int64_t ids[6] = {3, 0, 7, 7, 1, 5};

	for (int32_t i = 0; i < IN * ROOM; i++)
		x->f[i / ROOM][i % ROOM] = (float)((i * 37 + 11) % 101) / 100 - 0.5f;
	memcpy(x->ids, ids, sizeof ids);
	for (int32_t i = 0; i < IN; i++)
		x->in[i] = x->f[i];
	if (has_ids)
		x->in[1] = x->ids;
	for (int32_t i = 0; i < OUT; i++)
		x->to[i] = x->out[i];
	memset(x->out, 0, sizeof x->out);
}

static tn_status run(tn_program *p, arrays *x)
{
	memset(x->out, 0, sizeof x->out);
	return tn_program_run(p, x->in, x->to);
}

static void run_good(tn_context *c, tn_program *p, arrays *x)
{
	if (run(p, x) < 0)
		fail_msg("%s", tn_context_diag(c)->text);
}

static void run_on_simt(const char *text, arrays *x, bool has_ids)
{
	tn_context *c = context_on("simt");
	tn_program *p = parse_on(c, text);

	fill(x, has_ids);
	run_good(c, p, x);
	tn_program_free(p);
	tn_context_free(c);
}

/* The same bits as on emulated warps; n_host operations by the host in each run. */
static void check(const char *text, bool has_ids, int64_t n_host)
{
	static arrays simt, cuda;

	run_on_simt(text, &simt, has_ids);
	for (int32_t early = 0; early < 2; early++) {
		tn_context *c = context_on("cuda");
		tn_program *p = parse_on(c, text);
		tn_device_stats s;
		int64_t n_get = 0, n_captured = 0;

		fake->early = early;
		fill(&cuda, has_ids);
		for (int32_t i = 0; i < 3; i++) {
			n_get = fake->n_get;
			n_captured = fake->n_captured;
			run_good(c, p, &cuda);
			n_captured = fake->n_captured - n_captured;
			n_get = fake->n_get - n_get;
			assert_memory_equal(simt.out, cuda.out, sizeof simt.out);
			tn_context_device_stats(c, &s);
			assert_int_equal(s.n_host, (i + 1) * n_host);
		}
		if (n_host == 0) {
			/* its graphs are there; for inputs, outputs, checks */
			assert_int_equal(n_captured, 0);
			assert_in_range(n_get, 1, 8);
		} else {
			assert_string_equal(s.host, "sort");
		}
		tn_program_free(p);
		tn_context_free(c);
	}
}

static void test_values(void **state)
{
	(void)state;
	check(recurrence, false, 0);
	check(nested, true, 0);
	check(sorts, false, 5);
}

static void test_many(void **state)
{
	static arrays simt, cuda;
	tn_context *c = context_on("cuda");
	tn_program *p = parse_on(c, many);

	(void)state;
	run_on_simt(many, &simt, false);
	fill(&cuda, false);
	run_good(c, p, &cuda);
	assert_memory_equal(simt.out, cuda.out, sizeof simt.out);
	assert_int_equal(fake->n_graph_launches, 2);
	tn_program_free(p);
	tn_context_free(c);
}

/* ---- what fails -------------------------------------------------------- */

static void test_index(void **state)
{
	static arrays simt, cuda;
	tn_context *c = context_on("cuda");
	tn_program *p = parse_on(c, nested);

	(void)state;
	run_on_simt(nested, &simt, true);
	fill(&cuda, true);
	for (int32_t i = 0; i < 6; i++) {
		cuda.ids[i] += 8;
		assert_int_equal(run(p, &cuda), TN_ERANGE);
		assert_string_equal(tn_context_diag(c)->rule, "index.range");
		tn_context_clear(c);
		cuda.ids[i] -= 8;
		run_good(c, p, &cuda);
		assert_memory_equal(simt.out, cuda.out, sizeof simt.out);
	}
	tn_program_free(p);
	tn_context_free(c);
}

/*
 * Each launch is refused once. Copies that the failed run would have made and
 * kept are made by the next one.
 */
static void refuse_each(const char *text, bool has_ids)
{
	static arrays simt, cuda;
	int32_t failed = 0;

	run_on_simt(text, &simt, has_ids);
	for (int32_t i = 1; i < 100; i++) {
		tn_context *c = context_on("cuda");
		tn_program *p = parse_on(c, text);
		tn_status s;

		fill(&cuda, has_ids);
		fake->fail_launch = i;
		s = run(p, &cuda);
		fake->fail_launch = 0;
		if (s < 0) {
			failed++;
			assert_int_equal(s, TN_EIO);
			assert_string_equal(
				tn_context_diag(c)->rule, "device.launch");
			tn_context_clear(c);
			run_good(c, p, &cuda);
		}
		assert_memory_equal(simt.out, cuda.out, sizeof simt.out);
		tn_program_free(p);
		tn_context_free(c);
		if (s == TN_OK)
			break;
	}
	assert_in_range(failed, 3, 98);
}

static void test_launch(void **state)
{
	(void)state;
	refuse_each(recurrence, false);
	refuse_each(nested, true);
	refuse_each(sorts, false);
}

/* What a program writes before a step that can fail stays as it was, whichever
 * launch is refused. */
static void test_written(void **state)
{
	enum { N = 40 };
	const int64_t n = N;
	float before[N], after[N];
	tn_context *c = context_on("cuda");
	tn_tensor *w;
	int32_t failed = 0;

	(void)state;
	for (int32_t i = 0; i < N; i++)
		before[i] = (float)(i * 7 % 40);
	w = tn_tensor_new(c, TN_F32, 1, &n, before);
	for (int32_t i = 1; i < 30; i++) {
		tn_tensor *all[3], *sorted[2];

		tn_scope_enter(c);
		fake->fail_launch = i;
		tn_add_(w, w);
		assert_int_equal(tn_sort(w, 0, false, sorted), TN_OK);
		all[0] = w;
		all[1] = tn_exp(sorted[0]);
		all[2] = tn_reduce_sum(all[1], NULL, 0, false);
		if (tn_eval(all, 3) == TN_OK) {
			fake->fail_launch = 0;
			i = 30;
		} else {
			fake->fail_launch = 0;
			failed++;
			assert_string_equal(
				tn_context_diag(c)->rule, "device.launch");
			tn_context_clear(c);
		}
		tn_scope_leave(c);
		if (i == 30)
			break;
		assert_int_equal(tn_read(w, after, sizeof after), TN_OK);
		assert_memory_equal(before, after, sizeof after);
	}
	assert_in_range(failed, 2, 28);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, begin, end),
		cmocka_unit_test_setup_teardown(test_many, begin, end),
		cmocka_unit_test_setup_teardown(test_index, begin, end),
		cmocka_unit_test_setup_teardown(test_launch, begin, end),
		cmocka_unit_test_setup_teardown(test_written, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
