/*
 * Loops and branches whose condition the device reads (tests/fake): a program is one
 * launch, and its values are those of the host's loop, of emulated warps and, without
 * sums of floats, of the interpreter. What is missing for it, or does not fit, leaves
 * the loop to the host; what fails leaves everything as it was.
 */
#include "cuda.h"

#include <pthread.h>

enum { IN = 4, OUT = 3, ROOM = 600 };

/* Sums of floats, and a weight that is the same in all rounds. */
static const char product[] =
	"program {\n  n: i64\n  s: f32[2,24]\n  w: f32[24,24]\n  one: i64\n"
	"  k, h = loop(n, s, w, one, rounds=50, while=0) {\n"
	"    carried k: i64\n    carried h: f32[2,24]\n    w: f32[24,24]\n"
	"    one: i64\n    t = matmul(h, w)\n    a = tanh(t)\n"
	"    d = sub(k, one)\n    return d, a\n  }\n"
	"  r = reduce_sum(h, axes=[1])\n  return r, h, k\n}\n";
/* Integers, in place of floats: equal to the interpreter, too. */
static const char integers[] =
	"program {\n  n: i64\n  s: i32[3,7]\n  w: i32[3,7]\n  one: i64\n"
	"  k, h = loop(n, s, w, one, rounds=9, while=0) {\n"
	"    carried k: i64\n    carried h: i32[3,7]\n    w: i32[3,7]\n"
	"    one: i64\n    t = mul(h, w)\n    a = add(t, h)\n"
	"    d = sub(k, one)\n    return d, a\n  }\n"
	"  r = reduce_sum(h, axes=[1])\n  return r, h, k\n}\n";
static const char branch[] =
	"program {\n  n: i64\n  s: i32[3,7]\n  w: i32[3,7]\n  one: i64\n"
	"  k, h = loop(n, s, w, rounds=1, while=0) {\n"
	"    carried k: i64\n    carried h: i32[3,7]\n    w: i32[3,7]\n"
	"    t = mul(h, w)\n    a = add(t, t)\n    return k, a\n  }\n"
	"  r = reduce_sum(h, axes=[1])\n  return r, h, k\n}\n";
/* A loop in a loop, with a branch in it and one around neither. */
static const char nested[] =
	"program {\n  n: i64\n  s: i32[3,7]\n  w: i32[3,7]\n  one: i64\n"
	"  k, h = loop(n, s, w, one, rounds=9, while=0) {\n"
	"    carried k: i64\n    carried h: i32[3,7]\n    w: i32[3,7]\n"
	"    one: i64\n"
	"    z, g = loop(k, h, w, one, rounds=4, while=0) {\n"
	"      carried j: i64\n      carried g: i32[3,7]\n"
	"      w: i32[3,7]\n      one: i64\n"
	"      y, m = loop(j, g, w, rounds=1, while=0) {\n"
	"        carried j: i64\n        carried g: i32[3,7]\n"
	"        w: i32[3,7]\n        a = add(g, w)\n"
	"        return j, a\n      }\n"
	"      u = add(m, g)\n      d = sub(j, one)\n      return d, u\n    }\n"
	"    d = sub(k, one)\n    return d, g\n  }\n"
	"  r = reduce_sum(h, axes=[1])\n  return r, h, k\n}\n";
/* An index from data in each round: ids[n] */
static const char indices[] =
	"program {\n  n: i64\n  ids: i64[12]\n  table: f32[8,3]\n  one: i64\n"
	"  s = narrow(table, start=0, count=1)\n"
	"  k, h = loop(n, s, ids, table, one, rounds=11, while=0) {\n"
	"    carried k: i64\n    carried h: f32[1,3]\n    ids: i64[12]\n"
	"    table: f32[8,3]\n    one: i64\n"
	"    q = reshape(k, shape=[1])\n    i = embedding(q, ids)\n"
	"    e = embedding(i, table)\n    a = add(h, e)\n"
	"    d = sub(k, one)\n    return d, a\n  }\n"
	"  return h, k\n}\n";
/* .. in rounds that go on for ever if a failed check does not end them */
static const char endless[] =
	"program {\n  n: i64\n  ids: i64[12]\n  table: f32[8,3]\n  one: i64\n"
	"  s = narrow(table, start=0, count=1)\n"
	"  k, h = loop(n, s, ids, table, one, rounds=4000000000000000000, "
	"while=0) {\n"
	"    carried k: i64\n    carried h: f32[1,3]\n    ids: i64[12]\n"
	"    table: f32[8,3]\n    one: i64\n"
	"    e = embedding(ids, table)\n"
	"    x = reduce_sum(e, axes=[0])\n    a = add(h, x)\n"
	"    d = add(k, one)\n    return d, a\n  }\n"
	"  return h, k\n}\n";
/* The host runs a part of each round. */
static const char sorts[] =
	"program {\n  n: i64\n  s: f32[12]\n  w: f32[12]\n  one: i64\n"
	"  k, h = loop(n, s, one, rounds=5, while=0) {\n"
	"    carried k: i64\n    carried h: f32[12]\n    one: i64\n"
	"    v, i = sort(h, axis=0)\n    f = cos(v)\n"
	"    d = sub(k, one)\n    return d, f\n  }\n"
	"  return h, k\n}\n";
/* Each round has a row of its own. */
static const char rows[] =
	"program {\n  n: i64\n  s: i32[7]\n  w: i32[5,7]\n  one: i64\n"
	"  k, h = loop(n, s, w, one, rounds=5, while=0) {\n"
	"    carried k: i64\n    carried h: i32[7]\n    row w: i32[7]\n"
	"    one: i64\n    a = add(h, w)\n    d = sub(k, one)\n"
	"    return d, a\n  }\n"
	"  return h, k\n}\n";

/* Of another loop in each round, so many kernels; carries so many elements. */
static const char many[] =
	"program {\n  n: i64\n  s: i32[7]\n  w: i32[7]\n  one: i64\n"
	"  k, h = loop(n, s, w, one, rounds=5, while=0) {\n"
	"    carried k: i64\n    carried h: i32[7]\n    w: i32[7]\n"
	"    one: i64\n"
	"    q = loop(h, w, rounds=4200) {\n      carried h: i32[7]\n"
	"      w: i32[7]\n      a = add(h, w)\n      return a\n    }\n"
	"    d = sub(k, one)\n    return d, q\n  }\n"
	"  return h, k\n}\n";
/* A branch in each of more rounds than are launched at once. */
static const char lists[] =
	"program {\n  n: i64\n  s: i32[7]\n  w: i32[7]\n  one: i64\n"
	"  h = loop(s, n, w, rounds=4200) {\n    carried h: i32[7]\n"
	"    n: i64\n    w: i32[7]\n"
	"    k, q = loop(n, h, w, rounds=1, while=0) {\n"
	"      carried k: i64\n      carried q: i32[7]\n      w: i32[7]\n"
	"      m = mul(q, w)\n      a = add(m, w)\n      return k, a\n    }\n"
	"    return q\n  }\n"
	"  r = neg(h)\n  return r\n}\n";
static const char wide[] =
	"program {\n  n: i64\n  s: i32[7]\n  w: i32[7]\n  one: i64\n"
	"  f = fill(shape=[2200000], value=2.0, dtype=f32)\n"
	"  k, h = loop(n, f, one, rounds=5, while=0) {\n"
	"    carried k: i64\n    carried h: f32[2200000]\n    one: i64\n"
	"    a = add(h, h)\n    d = sub(k, one)\n    return d, a\n  }\n"
	"  r = reduce_max(h, axes=[0])\n  return r, k\n}\n";
/* More loops within each other than the driver is given. */
static const char deep[] =
	"program {\n  n: i64\n  s: i32[7]\n  w: i32[7]\n  one: i64\n"
	"  k, h = loop(n, s, w, rounds=1, while=0) {\n"
	"    carried a: i64\n    carried b: i32[7]\n    w: i32[7]\n"
	"    k, h = loop(a, b, w, rounds=1, while=0) {\n"
	"      carried a: i64\n      carried b: i32[7]\n      w: i32[7]\n"
	"      k, h = loop(a, b, w, rounds=1, while=0) {\n"
	"        carried a: i64\n        carried b: i32[7]\n"
	"        w: i32[7]\n"
	"        k, h = loop(a, b, w, rounds=1, while=0) {\n"
	"          carried a: i64\n          carried b: i32[7]\n"
	"          w: i32[7]\n"
	"          k, h = loop(a, b, w, rounds=1, while=0) {\n"
	"            carried a: i64\n            carried b: i32[7]\n"
	"            w: i32[7]\n"
	"            c = add(b, w)\n            return a, c\n          }\n"
	"          return k, h\n        }\n"
	"        return k, h\n      }\n"
	"      return k, h\n    }\n"
	"    return k, h\n  }\n"
	"  return h, k\n}\n";

typedef struct arrays {
	int64_t n, one, ids[12];
	union {
		float f[ROOM];
		int32_t i[ROOM];
	} a, b;
	float out[OUT][ROOM];
	const void *in[IN];
	void *to[OUT];
} arrays;

static void fill(arrays *x, const char *text, int64_t n)
{
	static const int64_t ids[12] = {3, 0, 7, 7, 1, 5, 2, 2, 6, 4, 0, 1};
	bool is_float = strstr(text, "s: f32") != NULL || strstr(text, "table");

	memset(x, 0, sizeof *x);
	for (int32_t i = 0; i < ROOM; i++) {
		int32_t v = (i * 37 + 11) % 101, w = (i * 53 + 7) % 91;

		if (is_float) {
			x->a.f[i] = (float)v / 100 - 0.5f;
			x->b.f[i] = (float)w / 100 - 0.4f;
		} else {
			x->a.i[i] = v - 50;
			x->b.i[i] = w - 40;
		}
	}
	memcpy(x->ids, ids, sizeof ids);
	x->n = n;
	x->one = 1;
	x->in[0] = &x->n;
	x->in[1] = strstr(text, "ids") != NULL ? (void *)x->ids : (void *)&x->a;
	x->in[2] = &x->b;
	x->in[3] = &x->one;
	for (int32_t i = 0; i < OUT; i++)
		x->to[i] = x->out[i];
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

/* device "interp": the interpreter */
static void run_on(const char *device, const char *text, int64_t n, arrays *x)
{
	bool interp = strcmp(device, "interp") == 0;
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p;

	o.device = interp ? "cpu" : device;
	o.interp = interp;
	if (tn_context_new(&c, &o) < 0)
		fail_msg("%s", tn_context_diag(NULL)->text);
	p = parse_on(c, text);
	fill(x, text, n);
	run_good(c, p, x);
	tn_program_free(p);
	tn_context_free(c);
}

static void expect_same(const arrays *x, const arrays *y)
{
	assert_memory_equal(x->out, y->out, sizeof x->out);
}

/* ---- values ------------------------------------------------------------ */

/*
 * In one launch of a graph, without a copy to the host before the results, of which
 * there are n_out, and the look at checks; again and again with other values.
 */
static void check(const char *text, int64_t most, int32_t n_get)
{
	static arrays simt, cuda;

	for (int32_t early = 0; early < 2; early++) {
		tn_context *c = context_of_loops();
		tn_program *p = parse_on(c, text);
		tn_device_stats s;

		fake->early = early;
		fill(&cuda, text, 0);
		for (int64_t n = most; n >= 0; n--) {
			int64_t graphs, get;

			run_on("simt", text, n, &simt);
			cuda.n = n;
			graphs = fake->n_graph_launches;
			get = fake->n_get;
			run_good(c, p, &cuda);
			expect_same(&simt, &cuda);
			assert_int_equal(fake->n_graph_launches - graphs, 1);
			assert_int_equal(fake->n_get - get, n_get);
		}
		tn_context_device_stats(c, &s);
		assert_int_equal(s.n_asked, 0);
		assert_string_equal(s.asked, "");
		assert_true(fake->n_rounds > 0);
		tn_program_free(p);
		tn_context_free(c);
	}
}

static void test_values(void **state)
{
	(void)state;
	check(product, 5, 3);
	check(integers, 12, 3); /* more than there may be */
	check(branch, 2, 3);
	check(nested, 5, 3);
	check(indices, 11, 3);
}

static void test_interp(void **state)
{
	static const char *const text[] = {integers, branch, nested};
	static arrays x, y;

	(void)state;
	for (int32_t i = 0; i < 3; i++)
		for (int64_t n = 0; n < 5; n++) {
			run_on("interp", text[i], n, &x);
			run_on("cuda", text[i], n, &y);
			expect_same(&x, &y);
		}
}

/* So many bodies run as there are rounds; in a loop that ends by its limit, too. */
static void test_rounds(void **state)
{
	static const struct {
		int64_t n, rounds;
	} cases[] = {{0, 0}, {1, 1}, {7, 7}, {9, 9}, {100, 9}};
	static arrays x;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fake->n_rounds = 0;
		run_on("cuda", integers, cases[i].n, &x);
		assert_int_equal(fake->n_rounds, cases[i].rounds);
	}
	fake->n_rounds = 0;
	run_on("cuda", branch, 5, &x);
	assert_int_equal(fake->n_rounds, 1);
}

/* ---- graphs ----------------------------------------------------------- */

/* The same addresses: the graph is there. */
static void test_kept(void **state)
{
	static arrays x, first;
	tn_context *c = context_of_loops();
	tn_program *p = parse_on(c, nested);
	int64_t nodes = 0;

	(void)state;
	fill(&x, nested, 3);
	for (int32_t i = 0; i < 4; i++) {
		run_good(c, p, &x);
		if (i == 0) {
			first = x;
			nodes = fake->n_nodes;
		}
		expect_same(&first, &x);
		assert_int_equal(fake->n_nodes, nodes);
	}
	tn_program_free(p);
	assert_int_equal(fake->n_graphs, 0);
	tn_context_free(c);
}

/* Several lists of launches, each a graph with many conditions. */
static void test_lists(void **state)
{
	static arrays simt, cuda;
	tn_context *c = context_of_loops();
	tn_program *p = parse_on(c, lists);

	(void)state;
	fill(&cuda, lists, 1);
	for (int64_t n = 0; n < 2; n++) {
		int64_t graphs = fake->n_graph_launches;

		run_on("simt", lists, n, &simt);
		cuda.n = n;
		fake->n_rounds = 0;
		run_good(c, p, &cuda);
		expect_same(&simt, &cuda);
		assert_int_equal(fake->n_rounds, 4200 * n);
		assert_int_equal(fake->n_graph_launches - graphs, 3);
	}
	tn_program_free(p);
	tn_context_free(c);
}

/* ---- what fails -------------------------------------------------------- */

static void expect_index(tn_context *c, tn_program *p, arrays *x)
{
	assert_int_equal(run(p, x), TN_ERANGE);
	assert_string_equal(tn_context_diag(c)->rule, "index.range");
	tn_context_clear(c);
}

/* An index out of range, in each round; and afterwards all is right. */
static void test_index(void **state)
{
	static arrays simt, cuda;
	tn_context *c = context_of_loops();
	tn_program *p = parse_on(c, indices);

	(void)state;
	run_on("simt", indices, 11, &simt);
	fill(&cuda, indices, 11);
	for (int32_t i = 1; i < 12; i++) {
		cuda.ids[i] += 8;
		fake->n_rounds = 0;
		expect_index(c, p, &cuda);
		assert_int_equal(
			fake->n_rounds, 12 - i); /* the last one fails */
		cuda.ids[i] -= 8;
		run_good(c, p, &cuda);
		expect_same(&simt, &cuda);
	}
	tn_program_free(p);
	tn_context_free(c);
}

/* A failed check ends a loop that nothing else ends, in its first round. */
static void test_endless(void **state)
{
	static arrays x;
	tn_context *c = context_of_loops();
	tn_program *p = parse_on(c, endless);

	(void)state;
	fill(&x, endless, 1);
	x.ids[5] = -1;
	expect_index(c, p, &x);
	assert_int_equal(fake->n_rounds, 1);
	tn_program_free(p);
	tn_context_free(c);
}

/* Each launch is refused once; the next run is right. */
static void refuse_each(const char *text)
{
	static arrays simt, cuda;
	int32_t failed = 0;

	run_on("simt", text, 3, &simt);
	for (int32_t i = 1; i < 100; i++) {
		tn_context *c = context_of_loops();
		tn_program *p = parse_on(c, text);
		int64_t rounds = fake->n_rounds;
		tn_status s;

		fill(&cuda, text, 3);
		fake->fail_launch = i;
		s = run(p, &cuda);
		fake->fail_launch = 0;
		if (s < 0) {
			failed++;
			assert_int_equal(s, TN_EIO);
			assert_string_equal(
				tn_context_diag(c)->rule, "device.launch");
			assert_int_equal(fake->n_rounds, rounds);
			tn_context_clear(c);
			run_good(c, p, &cuda);
		}
		expect_same(&simt, &cuda);
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
	refuse_each(product);
	refuse_each(nested);
	refuse_each(branch);
}

/* ---- the host reads the condition -------------------------------------- */

static void by_host(const char *text, int64_t n, const char *why)
{
	static arrays simt, cuda;
	tn_context *c = context_on("cuda");
	tn_program *p = parse_on(c, text);
	tn_device_stats s;

	run_on("simt", text, n, &simt);
	fill(&cuda, text, n);
	for (int32_t i = 0; i < 2; i++) {
		run_good(c, p, &cuda);
		expect_same(&simt, &cuda);
	}
	tn_program_free(p);
	tn_context_device_stats(c, &s); /* the reason outlives the program */
	assert_true(s.n_asked >= 2);
	if (strstr(s.asked, why) == NULL)
		fail_msg("\"%s\" has no \"%s\"", s.asked, why);
	assert_int_equal(fake->n_rounds, 0);
	tn_context_free(c);
}

static const struct lacking {
	const char *variable, *value, *why;
} lacking[] = {
	{"FAKE_CUDA_VERSION", "12070",
		"the driver is of CUDA 12.7, and accepted is 12.8 or later"},
	{"TENON_CUDA_DRIVER", FAKE_DRIVER_OLD,
		"has no function cuGraphConditionalHandleCreate"},
	{"TENON_CUDADEVRT", "/nowhere/libcudadevrt.a",
		"/nowhere/libcudadevrt.a is not there"},
	{"TENON_CUDADEVRT", FAKE_DRIVER, "not a library"},
	{"FAKE_CUDA_ONE_ROUND", "1", "the device began 2 rounds of 3 that were tried"},
};

/* The same values, and the reason. */
static void test_lacking(void **state)
{
	for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
		for (int64_t n = 0; n < 4; n++) {
			const struct lacking *l = &lacking[i];

			assert_int_equal(begin(state), 0);
			setenv(l->variable, l->value, 1);
			by_host(product, n, l->why);
			by_host(nested, n, l->why);
			by_host(branch, n, l->why);
			assert_int_equal(end(state), 0);
		}
}

static void test_unfit(void **state)
{
	(void)state;
	by_host(sorts, 4, "the host runs sort in each round");
	by_host(rows, 3, "each round reads a row of its own");
	by_host(many, 2, "a round consists of too many kernels");
	by_host(wide, 2, "it carries more than 8 MB");
}

/* The innermost four are of the device, those around them of the host. */
static void test_deep(void **state)
{
	static arrays simt, cuda;
	tn_context *c = context_of_loops();
	tn_program *p = parse_on(c, deep);
	tn_device_stats s;

	(void)state;
	run_on("simt", deep, 1, &simt);
	fill(&cuda, deep, 1);
	run_good(c, p, &cuda);
	expect_same(&simt, &cuda);
	assert_int_equal(fake->n_rounds, 4);
	tn_context_device_stats(c, &s);
	assert_int_equal(s.n_asked, 1);
	assert_string_equal(
		s.asked, "too many loops with a test are within each other");
	tn_program_free(p);
	tn_context_free(c);
}

/* .. and an index out of range is found in its round. */
static void test_index_by_host(void **state)
{
	static arrays x;
	tn_context *c;
	tn_program *p;

	(void)state;
	setenv("TENON_CUDADEVRT", "/nowhere", 1);
	c = context_on("cuda");
	p = parse_on(c, endless);
	fill(&x, endless, 1);
	x.ids[5] = 8;
	expect_index(c, p, &x);
	tn_program_free(p);
	tn_context_free(c);
}

/* Where the list of devices says it. */
static void test_list(void **state)
{
	tn_context *c = context_on("cpu");
	char *text;

	(void)state;
	assert_int_equal(tn_devices_text(&text, c, false), TN_OK);
	assert_non_null(strstr(text, "loops    "));
	assert_non_null(strstr(text, FAKE_DEVRT));
	tn_text_free(text);
	setenv("TENON_CUDADEVRT", "/nowhere/x.a", 1);
	assert_int_equal(tn_devices_text(&text, c, false), TN_OK);
	assert_non_null(strstr(text, "the host reads their tests: /nowhere/x.a "
				     "is not there"));
	tn_text_free(text);
	assert_int_equal(tn_devices_text(&text, c, true), TN_OK);
	assert_non_null(strstr(text, "\"cudadevrt\":\"\",\"cudadevrt_missing\":"
				     "\"/nowhere/x.a is not there"));
	tn_text_free(text);
	tn_context_free(c);
}

/* ---- threads ----------------------------------------------------------- */

static void *run_thread(void *arg)
{
	arrays *x = arg;
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p = NULL;
	bool ok;

	o.device = "cuda";
	ok = tn_context_new(&c, &o) >= 0 &&
	     tn_program_parse(&p, c, nested, strlen(nested), "t.tn") >= 0;
	for (int32_t i = 0; ok && i < 4; i++)
		ok = run(p, x) >= 0;
	tn_program_free(p);
	tn_context_free(c);
	return ok ? x : NULL;
}

/* Each has a context, and conditions of its own. */
static void test_threads(void **state)
{
	enum { N = 3 };
	static arrays x[N], simt;
	pthread_t id[N];

	(void)state;
	for (int32_t i = 0; i < N; i++) {
		fill(&x[i], nested, i + 1);
		assert_int_equal(
			pthread_create(&id[i], NULL, run_thread, &x[i]), 0);
	}
	for (int32_t i = 0; i < N; i++) {
		void *ok;

		assert_int_equal(pthread_join(id[i], &ok), 0);
		assert_non_null(ok);
		run_on("simt", nested, i + 1, &simt);
		expect_same(&simt, &x[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, begin, end),
		cmocka_unit_test_setup_teardown(test_interp, begin, end),
		cmocka_unit_test_setup_teardown(test_rounds, begin, end),
		cmocka_unit_test_setup_teardown(test_kept, begin, end),
		cmocka_unit_test_setup_teardown(test_lists, begin, end),
		cmocka_unit_test_setup_teardown(test_index, begin, end),
		cmocka_unit_test_setup_teardown(test_endless, begin, end),
		cmocka_unit_test_setup_teardown(test_launch, begin, end),
		cmocka_unit_test_setup_teardown(test_lacking, begin, end),
		cmocka_unit_test_setup_teardown(test_unfit, begin, end),
		cmocka_unit_test_setup_teardown(test_deep, begin, end),
		cmocka_unit_test_setup_teardown(test_index_by_host, begin, end),
		cmocka_unit_test_setup_teardown(test_list, begin, end),
		cmocka_unit_test_setup_teardown(test_threads, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
