/*
 * Models whose shapes follow from data: every run gives what the data of that
 * run means, in the interpreter and compiled, and shapes that came before are
 * not imported again.
 */
#include "unit.h"

#include "api/api.h"
#include "onnx/onnx.h"
#include "onnx_writer.h"

#include <unistd.h>

static char *write_file(const char *text, char *path)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb bytes = onnx_write(a, text);
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.s.at, bytes.s.n), bytes.s.n);
	close(fd);
	arena_free(a);
	env_free(e);
	return path;
}

struct model {
	char path[32];
	tn_context *c;
	tn_program *p;
};

static struct model limited(const char *text, bool interp, size_t most)
{
	struct model m = {.path = "/tmp/tenon_onnx_XXXXXX"};
	tn_options o = TN_OPTIONS_INIT;

	o.interp = interp;
	write_file(text, m.path);
	assert_int_equal(tn_context_new(&m.c, &o), TN_OK);
	m.c->program_bytes = most;
	assert_int_equal(tn_onnx_load(&m.p, m.c, m.path), TN_OK);
	return m;
}

static struct model model_of(const char *text, bool interp)
{
	return limited(text, interp, (size_t)1 << 30);
}

static void end(struct model *m)
{
	tn_program_free(m->p);
	tn_context_free(m->c);
	unlink(m->path);
}

static tn_array f32s(int64_t n, float *x)
{
	return (tn_array){.dtype = TN_F32, .rank = 1, .shape = {n},
		.n_elems = n, .n_bytes = (size_t)n * 4, .data = x};
}

static tn_array i64s(int64_t n, int64_t *x)
{
	return (tn_array){.dtype = TN_I64, .rank = 1, .shape = {n},
		.n_elems = n, .n_bytes = (size_t)n * 8, .data = x};
}

/* A run whose only output is 1-d floats. */
static void expect(struct model *m, const tn_array *in, int64_t n,
	const float *want)
{
	tn_array *y;

	assert_int_equal(tn_program_run_arrays(m->p, in, &y), TN_OK);
	assert_int_equal(y->rank, 1);
	assert_int_equal(y->shape[0], n);
	assert_int_equal((uintptr_t)y->data % 64, 0);
	for (int64_t i = 0; i < n; i++)
		assert_true(((float *)y->data)[i] == want[i]);
	tn_array_free(y);
}

static int64_t imports(const struct model *m)
{
	return onnx_staged_imports(m->p->staged);
}

#define MODES                                                                  \
	for (int mode = 0; mode < 2; mode++)

/* Two counts come by turns: each is imported once. */
static void test_nonzero(void **state)
{
	(void)state;
	MODES {
		struct model m = model_of("opset 13; in x float [N]; out y;"
			"node NonZero x > k; init z int64 [1] 0;"
			"node Squeeze k z > j; node Gather x j > g : axis=0;"
			"node Add g g > y;", mode == 0);
		float a[4] = {1, 0, 2, 3}, b[4] = {0, 0, 5, 0};
		float c[4] = {4, 5, 0, 6}, zero[4] = {0};
		tn_array in;

		assert_true(tn_program_is_staged(m.p));
		assert_int_equal(tn_program_input(m.p, 0)->shape[0], -1);
		in = f32s(4, a);
		expect(&m, &in, 3, (float[]){2, 4, 6});
		in = f32s(4, b);
		expect(&m, &in, 1, (float[]){10});
		assert_int_equal(imports(&m), 2);
		in = f32s(4, c);
		expect(&m, &in, 3, (float[]){8, 10, 12});
		assert_int_equal(imports(&m), 2);
		in = f32s(4, zero);
		expect(&m, &in, 0, NULL);
		in = f32s(3, c);
		expect(&m, &in, 2, (float[]){8, 10});
		assert_int_equal(imports(&m), 4);
		end(&m);
	}
}

static void test_topk(void **state)
{
	(void)state;
	MODES {
		struct model m = model_of("opset 13; in x float [5];"
			"in k int64 [1]; out v; out i; node TopK x k > v i;",
			mode == 0);
		float x[5] = {3, 9, 1, 7, 5}, x2[5] = {1, 2, 3, 4, 5};
		int64_t k = 2;
		tn_array in[2] = {f32s(5, x), i64s(1, &k)}, *out[2];

		for (int round = 0; round < 4; round++) {
			const float *v;

			k = round % 2 == 0 ? 2 : 4;
			in[0] = f32s(5, round < 2 ? x : x2);
			assert_int_equal(tn_program_run_arrays(m.p, in, out),
				TN_OK);
			assert_int_equal(out[0]->shape[0], k);
			assert_int_equal(out[1]->shape[0], k);
			v = out[0]->data;
			assert_true(v[0] == (round < 2 ? 9 : 5));
			assert_true(v[k - 1] == (round == 0 ? 7
						: round == 1 ? 3
						: round == 2 ? 4 : 2));
			assert_int_equal(((int64_t *)out[1]->data)[0],
				round < 2 ? 1 : 4);
			tn_array_free(out[0]);
			tn_array_free(out[1]);
		}
		assert_int_equal(imports(&m), 2);
		end(&m);
	}
}

/* The shape is computed from an input and from another's shape. */
static void test_reshape(void **state)
{
	(void)state;
	MODES {
		struct model m = model_of("opset 13; in x float [N];"
			"in r int64 [1]; out y; node Shape x > n;"
			"node Div n r > c; node Concat r c > s : axis=0;"
			"node Reshape x s > m; init one int64 [1] 1;"
			"node ReduceSum m one > y : keepdims=0;", mode == 0);
		float x[6] = {1, 2, 3, 4, 5, 6};
		int64_t r = 2;
		tn_array in[2] = {f32s(6, x), i64s(1, &r)};

		expect(&m, in, 2, (float[]){6, 15});
		r = 3;
		expect(&m, in, 3, (float[]){3, 7, 11});
		r = 2;
		x[0] = 10;
		expect(&m, in, 2, (float[]){15, 15});
		assert_int_equal(imports(&m), 2);
		in[0] = f32s(4, x);
		expect(&m, in, 2, (float[]){12, 7});
		end(&m);
	}
}

/* One answer leads to another question, of another shape each time. */
static void test_stages_in_a_row(void **state)
{
	(void)state;
	MODES {
		struct model m = model_of("opset 13; in x float [6]; out y;"
			"init z int64 [1] 0; init two float [1] 2;"
			"node NonZero x > k; node Squeeze k z > j;"
			"node Gather x j > g : axis=0;"
			"node Greater g two > b; node Compress g b > h : axis=0;"
			"node Mul h h > y;", mode == 0);
		float a[6] = {1, 0, 3, 0, 4, 2}, b[6] = {0, 0, 0, 5, 0, 1};
		float c[6] = {3, 4, 5, 6, 0, 0};
		tn_array in = f32s(6, a);

		expect(&m, &in, 2, (float[]){9, 16});
		in = f32s(6, b);
		expect(&m, &in, 1, (float[]){25});
		in = f32s(6, c);
		expect(&m, &in, 4, (float[]){9, 16, 25, 36});
		assert_int_equal(imports(&m), 3);
		in = f32s(6, a);
		expect(&m, &in, 2, (float[]){9, 16});
		assert_int_equal(imports(&m), 3);
		end(&m);
	}
}

static void test_branches(void **state)
{
	(void)state;
	MODES {
		struct model m = model_of("opset 13; in x float [N]; out y;"
			"init z float [1] 0; node ReduceSum x > s : keepdims=0;"
			"node Greater s z > b; node If b > y :"
			"then_branch={ node Neg x > e; node Neg e > q; out q; }"
			"else_branch={ node Concat x x > q : axis=0; out q; };",
			mode == 0);
		float a[2] = {-1, -2}, b[2] = {0, 0};
		tn_array in = f32s(2, a);

		expect(&m, &in, 4, (float[]){-1, -2, -1, -2});
		in = f32s(2, b);
		expect(&m, &in, 4, (float[]){0, 0, 0, 0});
		assert_int_equal(imports(&m), 1);
		b[0] = 1;
		in = f32s(1, b);
		expect(&m, &in, 1, (float[]){1});
		end(&m);
	}
}

/*
 * More steps than the interpreter should do: the stage is compiled, and what
 * it made is handed on, to several readers and as an output.
 */
static void test_large_stage(void **state)
{
	enum { N = 96 };
	static float x[N * N];

	(void)state;
	MODES {
		struct model m = model_of("opset 13; in x float [96,96];"
			"out y; out h; node MatMul x x > h; init z float [1] 0;"
			"node Greater h z > b; node NonZero b > k;"
			"node Transpose k > t; node GatherND h t > v;"
			"node Neg v > y;", mode == 0);
		tn_array in = {.dtype = TN_F32, .rank = 2, .shape = {N, N},
			.n_elems = N * N, .n_bytes = sizeof x, .data = x};
		tn_array *out[2];

		for (int64_t round = 1; round < 5; round++) {
			int64_t n = round % 2 == 1 ? 3 : 5;

			memset(x, 0, sizeof x);
			for (int64_t i = 0; i < n; i++)
				x[i * N + i] = (float)(i + round);
			assert_int_equal(tn_program_run_arrays(m.p, &in, out),
				TN_OK);
			assert_int_equal(out[0]->shape[0], n);
			for (int64_t i = 0; i < n; i++) {
				float w = (float)(i + round) * (float)(i + round);

				assert_true(((float *)out[0]->data)[i] == -w);
				assert_true(((float *)out[1]->data)[i * N + i] ==
					w);
			}
			tn_array_free(out[0]);
			tn_array_free(out[1]);
		}
		assert_int_equal(imports(&m), 2);
		end(&m);
	}
}

/* Trip counts, Unique, and what only one of them needs. */
static void test_loop_and_unique(void **state)
{
	(void)state;
	MODES {
		struct model m = model_of("opset 13; in n int64 [];"
			"in x float [4]; init t bool [] 1; out y;"
			"node Unique x > u; node Loop n t u > y : body={"
			"in i int64 []; in c bool []; in s float []; out c2;"
			"node Identity c > c2; node Add s s > r; out r; };",
			mode == 0);
		float x[4] = {2, 1, 2, 1};
		int64_t n = 3;
		tn_array in[2] = {{.dtype = TN_I64, .n_elems = 1, .n_bytes = 8,
				.data = &n}, f32s(4, x)};

		expect(&m, in, 2, (float[]){8, 16});
		n = 0;
		x[3] = 3;
		expect(&m, in, 3, (float[]){1, 2, 3});
		end(&m);
	}
}

static const float negative[8] = {0, -1, -2, -3, -4, -5, -6, -7};

static void run_neg(struct model *m, int64_t n)
{
	float x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	tn_array in = f32s(n, x);

	expect(m, &in, n, negative);
}

#define NEG "opset 13; in x float [N]; out y; node Neg x > y;"

/* What was not used for the longest time goes first; answers stay right. */
static void test_limit(void **state)
{
	(void)state;
	MODES {
		struct model m = limited(NEG, mode == 0, SIZE_MAX);
		size_t one, two;

		run_neg(&m, 3);
		one = arena_bytes(m.p->a);
		run_neg(&m, 4);
		two = arena_bytes(m.p->a) - one;
		run_neg(&m, 3);
		assert_int_equal(imports(&m), 2);
		end(&m);

		m = limited(NEG, mode == 0, two * 5 / 2);
		run_neg(&m, 3);
		run_neg(&m, 4);
		run_neg(&m, 3);
		run_neg(&m, 5); /* too many: that of 4 goes with the next run */
		run_neg(&m, 3);
		run_neg(&m, 5);
		assert_int_equal(imports(&m), 3);
		run_neg(&m, 4);
		assert_int_equal(imports(&m), 4);
		end(&m);

		m = limited(NEG, mode == 0, 0); /* the last one is always kept */
		run_neg(&m, 3);
		run_neg(&m, 3);
		assert_int_equal(imports(&m), 1);
		run_neg(&m, 4);
		run_neg(&m, 3);
		assert_int_equal(imports(&m), 3);
		end(&m);
	}
}

/* Stages of one import that another one goes on from outlive it. */
static void test_limit_of_stages(void **state)
{
	struct model m = limited("opset 13; in x float [N]; out y;"
		"node NonZero x > k; init z int64 [1] 0;"
		"node Squeeze k z > j; node Gather x j > g : axis=0;"
		"node Add g g > y;", true, 0);
	float x[3] = {1, 0, 2}, one[3] = {0, 3, 0};
	tn_array in = f32s(3, x), in1 = f32s(3, one);

	(void)state;
	for (int k = 0; k < 3; k++) {
		expect(&m, &in, 2, (float[]){2, 4});
		expect(&m, &in, 2, (float[]){2, 4});
		expect(&m, &in1, 1, (float[]){6});
		expect(&m, &in1, 1, (float[]){6});
	}
	end(&m);
}

/* Elements that are not in the file as they are in memory are there once, however
 * many programs read them. */
static void test_shared_weights(void **state)
{
	enum { N = 1 << 20 };
	env *e = env_new();
	arena *a = arena_new(e);
	str text = str_new(a);
	size_t one, more;
	struct model m;

	(void)state;
	str_printf(&text, "opset 13; in x float [N]; out y; init w bool [%d]",
		(int)N);
	for (int i = 0; i < N; i++)
		str_add(&text, i % 2 == 0 ? " 0" : " 1");
	str_add(&text, "; init at int64 [1] 1; node Gather w at > b;"
		"node Cast b > f : to=1; node Sub x f > z; node Add z f > u;"
		"node Neg u > y;");
	m = model_of(text.at, true);
	run_neg(&m, 2);
	one = arena_bytes(m.p->a);
	assert_true(one > N);
	run_neg(&m, 3);
	assert_int_equal(imports(&m), 2);
	more = arena_bytes(m.p->a) - one;
	assert_true(more < N);
	end(&m);
	arena_free(a);
	env_free(e);
}

static void fails(struct model *m, const tn_array *in, const char *rule)
{
	tn_array *y;

	assert_int_equal(tn_program_run_arrays(m->p, in, &y), TN_EINVAL);
	assert_null(y);
	assert_string_equal(tn_context_diag(m->c)->rule, rule);
}

static void test_errors(void **state)
{
	struct model m = model_of("opset 13; in x float [N]; in s int64 [1];"
		"out y; node Reshape x s > y;", true);
	float x[6] = {1, 2, 3, 4, 5, 6};
	int64_t s = 4;
	tn_array in[2] = {f32s(6, x), i64s(1, &s)};
	const void *from[2] = {x, &s};
	void *to = x;
	char *text;

	(void)state;
	fails(&m, in, "reshape.size");
	s = 6;
	expect(&m, in, 6, x);
	in[0].rank = 2;
	fails(&m, in, "program.input");
	in[0] = f32s(6, NULL);
	fails(&m, in, "api.null");
	assert_int_equal(tn_program_run(m.p, from, &to), TN_EINVAL);
	assert_string_equal(tn_context_diag(m.c)->rule, "onnx.staged");
	assert_int_equal(tn_program_explain(&text, m.p, TN_LEVEL_C, 0),
		TN_EINVAL);
	assert_int_equal(tn_onnx_export(m.p, "/tmp/tenon_no"), TN_EINVAL);
	assert_string_equal(tn_context_diag(m.c)->rule, "onnx.staged");
	assert_int_equal(tn_program_n_params(m.p), 0);
	end(&m);
	m = model_of("opset 13; in x float [2]; out y; node Neg x > y;", true);
	assert_false(tn_program_is_staged(m.p));
	in[0] = f32s(2, x);
	expect(&m, in, 2, (float[]){-1, -2});
	in[0] = f32s(3, x);
	fails(&m, in, "program.input");
	end(&m);
}

static tn_array i64_0(int64_t *x)
{
	return (tn_array){.dtype = TN_I64, .n_elems = 1, .n_bytes = 8,
		.data = x};
}

/* The run is refused by one of the rules; the next good one goes as ever. */
static void refuses(struct model *m, const tn_array *in, const char *rules)
{
	tn_array *y;
	const char *rule;
	tn_status s = tn_program_run_arrays(m->p, in, &y);

	rule = tn_context_diag(m->c)->rule;
	if (s >= 0 || strstr(rules, rule) == NULL)
		print_error("%s expected, %s: %s\n", rules, rule,
			tn_context_diag(m->c)->text);
	assert_true(s < 0 && rule[0] != '\0');
	assert_non_null(strstr(rules, rule));
	assert_null(y);
}

/* Data that asks for more than there is, then data as it should be. */
static void test_hostile_data(void **state)
{
	(void)state;
	MODES {
		struct model m = model_of("opset 13; in n int64 []; out y;"
			"init u int64 [1] 1; node Reshape n u > s;"
			"init w float [] 3; node Expand w s > y;", mode == 0);
		int64_t n = INT64_C(1) << 62;
		tn_array in = i64_0(&n);

		refuses(&m, &in, "broadcast_to.size");
		n = -7;
		refuses(&m, &in, "onnx.shape broadcast_to.size");
		n = INT64_MIN;
		refuses(&m, &in, "onnx.shape broadcast_to.size");
		n = INT64_C(1) << 47; /* a shape, but no memory has it */
		refuses(&m, &in, "memory plan.size array.size run.memory");
		n = 2;
		expect(&m, &in, 2, (float[]){3, 3});
		end(&m);
		/* a trip count */
		m = model_of("opset 13; in n int64 []; in x float [1]; out y;"
			"init t bool [] 1; node Loop n t x > y : body={"
			"in i int64 []; in c bool []; in v float [1]; out c2;"
			"node Identity c > c2; node Neg v > r; out r; };",
			mode == 0);
		{
			float x = 5;
			tn_array two[2] = {i64_0(&n), f32s(1, &x)};

			n = INT64_MAX;
			refuses(&m, two, "onnx.size");
			n = -3;
			expect(&m, two, 1, (float[]){5});
			n = 3;
			expect(&m, two, 1, (float[]){-5});
		}
		end(&m);
		/* a condition that never fails, from data at each round */
		m = model_of("opset 13; in x float [1]; out y; init t bool [] 1;"
			"node Loop _ t x > y : body={ in i int64 [];"
			"in c bool []; in v float [1]; out c2; init z float [] 0;"
			"node Add v v > r; node ReduceSum r > s : keepdims=0;"
			"node Greater s z > c2; out r; };", mode == 0);
		{
			float x = 1;
			tn_array one = f32s(1, &x);

			refuses(&m, &one, "onnx.size");
			x = -1;
			expect(&m, &one, 1, (float[]){-2});
		}
		end(&m);
		/* indices beyond the end, and k of TopK beyond the axis */
		m = model_of("opset 13; in x float [3]; in k int64 [1]; out v;"
			"node TopK x k > v i;", mode == 0);
		{
			float x[3] = {1, 3, 2};
			tn_array two[2] = {f32s(3, x), i64s(1, &n)};

			n = 4;
			refuses(&m, two, "onnx.attr topk.k onnx.axis");
			n = -1;
			refuses(&m, two, "onnx.attr topk.k onnx.axis");
			n = 1;
			expect(&m, two, 1, (float[]){3});
		}
		end(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nonzero),
		cmocka_unit_test(test_topk),
		cmocka_unit_test(test_reshape),
		cmocka_unit_test(test_stages_in_a_row),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_large_stage),
		cmocka_unit_test(test_loop_and_unique),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_of_stages),
		cmocka_unit_test(test_shared_weights),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_hostile_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
