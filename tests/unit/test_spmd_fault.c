/*
 * test_spmd_fault.c: processes of a mesh that differ, and what each of them is
 * told; an index outside of its tensor on one of them: all have one error, and
 * go on. Processes are threads.
 */
#include "ranks.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

enum { N = 3 };

static const tn_placement rows[1] = {TN_SHARDED(0)};

static tn_tensor *ramp(tn_context *c, tn_mesh *m)
{
	double v[12];
	tn_tensor *x;

	for (int32_t i = 0; i < 12; i++)
		v[i] = i;
	x = tn_tensor_new(c, TN_F64, 2, SHAPE(6, 2), v);
	tn_shard(x, m, rows);
	return x;
}

static tn_mesh *mesh(tn_context *c)
{
	return tn_mesh_new(c, 1, NULL, SHAPE(N));
}

/* ---- what is compared ---- */

static void words(tn_context *c, int32_t process, void *arg)
{
	(void)arg;
	if (tn_agree(c, "the seed", "5") < 0)
		return;
	tn_agree(c, "the rate", process == 1 ? "0.1" : "0.01");
}

static const char long_word[] =
	"sixty letters and more, which are the same in the beginning ";

static void long_words(tn_context *c, int32_t process, void *arg)
{
	char text[80];

	(void)arg;
	snprintf(text, sizeof text, "%s%d", long_word, (int)process);
	tn_agree(c, "the name", text);
}

static void meshes(tn_context *c, int32_t process, void *arg)
{
	const char *name[] = {process == 2 ? "model" : "data"};

	(void)arg;
	(void)tn_mesh_new(c, 1, name, SHAPE(N));
}

/* One multiplies by another number: another program. */
static void programs(tn_context *c, int32_t process, void *arg)
{
	tn_mesh *m = mesh(c);
	tn_tensor *x = ramp(c, m);
	double v[12];

	(void)arg;
	x = process == 0 ? tn_exp(x) : tn_sin(x);
	(void)!tn_read(x, v, sizeof v);
}

/* One places what it computes elsewhere. */
static void places(tn_context *c, int32_t process, void *arg)
{
	const tn_placement wide[1] = {TN_SHARDED_BY(0, 4)};
	tn_mesh *m = mesh(c);
	tn_tensor *x = tn_exp(ramp(c, m));
	double v[12];

	(void)arg;
	tn_shard(x, m, process == 1 ? wide : rows);
	(void)!tn_read(x, v, sizeof v);
}

static const struct {
	ranks_body *body;
	const char *text;
} differs[] = {
	{words, "the rate is not the same on all processes: 0.01 on 0 and 2; "
		"0.1 on 1"},
	{long_words, "the name is not the same on all processes: "},
	{meshes, "the mesh is not the same on all processes: data=3 on 0 and 1; "
		 "model=3 on 2"},
	{programs, "a program that is compiled is not the same on all "
		   "processes: 1 calls"},
	{places, "a program that is compiled is not the same on all "
		 "processes: 1 calls"},
};

static void test_differ(void **state)
{
	ranks_thread t[N];

	(void)state;
	for (size_t i = 0; i < sizeof differs / sizeof *differs; i++) {
		ranks_run(t, N, true, differs[i].body, NULL);
		for (int32_t p = 0; p < N; p++) {
			assert_int_equal(t[p].status, TN_EINVAL);
			assert_string_equal(t[p].rule, "shard.differ");
			assert_string_equal(t[p].text, t[0].text);
			assert_non_null(strstr(t[p].text, differs[i].text));
		}
	}
}

/* ---- an index outside on one process ---- */

enum { MOST = 64 };

typedef struct step_case {
	int32_t kind;
	bool bad;  /* one bad step between the good ones */
	bool whole; /* without a mesh */
	int32_t n[N];
	double v[N][MOST];
	char text[N][1200];
} step_case;

static void look(step_case *k, tn_tensor *x, int32_t process)
{
	int64_t n = tn_tensor_n_elems(x);

	if (k->n[process] + n > MOST)
		abort();
	if (tn_read(x, k->v[process] + k->n[process],
		    (size_t)n * sizeof(double)) >= 0)
		k->n[process] += (int32_t)n;
}

/* Another of these is bad, on one process: ids are cut, and it is in a block. */
static tn_tensor *indices(tn_context *c, tn_mesh *m, int32_t step, bool bad)
{
	int64_t v[6];
	tn_tensor *x;

	for (int32_t i = 0; i < 6; i++)
		v[i] = (i * 5 + step) % 7;
	if (bad)
		v[3] = 700;
	x = tn_tensor_new(c, TN_I64, 1, SHAPE(6), v);
	if (m != NULL)
		tn_shard(x, m, rows);
	return x;
}

/* The weights, and a count, change in place in each step. */
static void one_step(step_case *k, tn_context *c, tn_mesh *m, tn_tensor *w,
	tn_tensor *sum, int32_t step, bool bad)
{
	tn_tensor *ids = indices(c, m, step, bad), *y, *g;

	tn_step_enter(c);
	y = tn_take(w, ids, 0);
	if (k->kind == 2) /* written before the index is looked at */
		tn_add_(sum, tn_scalar(c, TN_F64, 1));
	tn_backward(tn_reduce_sum(tn_mul(y, tn_sin(y)), SHAPE(0, 1), 2, false),
		NULL);
	g = tn_gradient(w);
	tn_no_grad_enter(c);
	tn_copy_(w, tn_sub(w, tn_mul(g, tn_scalar(c, TN_F64, 0.1))));
	if (k->kind == 3) /* rows that data name: all writes look at it */
		tn_copy_(sum, tn_scatter_add(sum, ids, tn_exp(y)));
	tn_no_grad_leave(c);
	tn_zero_grad(w);
	tn_step_leave(c);
}

static void steps(tn_context *c, int32_t process, void *arg)
{
	step_case *k = arg;
	tn_mesh *m = k->whole ? NULL : mesh(c);
	double v[14];
	tn_tensor *w, *sum, *all[2];

	for (int32_t i = 0; i < 14; i++)
		v[i] = 0.1 * i - 0.5;
	w = tn_parameter(c, "w", TN_F64, 2, SHAPE(7, 2), v);
	sum = tn_parameter(c, "sum", TN_F64, 2, SHAPE(7, 2), v);
	if (m != NULL && k->kind == 1)
		tn_shard(w, m, rows); /* each reads what it owns */
	if (m != NULL && k->kind >= 2)
		tn_shard(sum, m, rows);
	for (int32_t i = 0; i < 2; i++) {
		one_step(k, c, m, w, sum, i, false);
		look(k, w, process);
		if (i > 0 || !k->bad)
			continue;
		one_step(k, c, m, w, sum, 9, true);
		all[0] = w;
		all[1] = sum;
		(void)!tn_eval(all, 2);
		snprintf(k->text[process], sizeof k->text[process],
			"%d: %s: %s", (int)tn_context_status(c),
			tn_context_diag(c)->rule, tn_context_diag(c)->text);
		tn_context_clear(c);
	}
	look(k, sum, process);
}

static void test_bad_index(void **state)
{
	static step_case one, good, bad;
	ranks_thread t[N];

	(void)state;
	for (int32_t i = 0; i < 8; i++) {
		bool interp = i % 2 == 0;

		one = (step_case){.kind = i / 2, .whole = true};
		good = (step_case){.kind = i / 2};
		bad = (step_case){.kind = i / 2, .bad = true};
		ranks_run(t, 1, interp, steps, &one);
		assert_string_equal(t[0].text, "");
		ranks_run(t, N, interp, steps, &good);
		for (int32_t p = 0; p < N; p++)
			assert_string_equal(t[p].text, "");
		ranks_run(t, N, interp, steps, &bad);
		for (int32_t p = 0; p < N; p++) {
			assert_string_equal(t[p].text, "");
			assert_string_equal(bad.text[p], bad.text[0]);
			assert_non_null(strstr(bad.text[p], "-5: index.range: "));
			assert_int_equal(bad.n[p], one.n[0]);
			assert_true(one.n[0] == 42);
			/* as if the bad step had not been */
			assert_memory_equal(bad.v[p], good.v[p],
				42 * sizeof(double));
			for (int32_t e = 0; e < 42; e++)
				assert_true(fabs(bad.v[p][e] - one.v[0][e]) <
					1e-9);
		}
	}
}

/* ---- what is said of views ---- */

typedef struct said {
	char text[N][6][80];
} said;

static void say(tn_context *c, int32_t process, void *arg)
{
	said *k = arg;
	tn_mesh *m = mesh(c);
	double v[20] = {0};
	tn_tensor *x = tn_tensor_new(c, TN_F64, 2, SHAPE(10, 2), v), *of[6];

	tn_shard(x, m, rows);
	of[0] = x;
	of[1] = tn_narrow(x, 0, 1, 8); /* rows 3, 4, 1 of the processes */
	of[2] = tn_transpose(x, SHAPE(1, 0), 2);
	of[3] = tn_reshape(x, SHAPE(5, 4), 2);
	of[4] = tn_reshape(x, SHAPE(4, 5), 2);
	of[5] = tn_reshape(x, SHAPE(5, 2, 2), 3);
	for (int32_t i = 0; i < 6; i++) {
		char *text;

		if (tn_placement_text(of[i], &text) < 0)
			return;
		snprintf(k->text[process][i], 80, "%s", text);
		tn_text_free(text);
	}
}

static void test_said(void **state)
{
	static const char *const want[] = {"mesh_0: axis 0 by 4 of 10",
		"view of mesh_0: axis 0 by 4 of 10",
		"view of mesh_0: axis 0 by 4 of 10",
		"mesh_0: axis 0 by 2 of 5",
		"elements: mesh_0 on 2:20 by 4",
		"mesh_0: axis 0 by 2 of 5"};
	static const char *const shape[] = {
		"10,2", "10,2", "10,2", "5,4", "4,5", "5,2,2"};
	tn_context *c;
	ranks_thread t[N];
	static said k;

	(void)state;
	ranks_run(t, N, true, say, &k);
	for (int32_t p = 0; p < N; p++)
		for (int32_t i = 0; i < 6; i++)
			assert_string_equal(k.text[p][i], want[i]);
	/* each can be asked for, of a view that of its storage */
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	for (int32_t i = 0; i < 6; i++) {
		char source[80], place[100], *out = NULL;
		const char *at = k.text[0][i];
		tn_program *p = NULL;

		at += strncmp(at, "view of ", 8) == 0 ? 8 : 0;
		snprintf(source, sizeof source,
			"program { x: f64[%s]\n  y = neg(x)\n  return y }",
			shape[i]);
		snprintf(place, sizeof place, "x=%s", at);
		assert_int_equal(tn_program_parse(&p, c, source, strlen(source),
					 "said"), TN_OK);
		assert_int_equal(tn_program_explain_shard(&out, p, "mesh_0=3",
					 (const char *const[]){place}, 1, false),
			TN_OK);
		/* and is what it says of x then */
		assert_non_null(strstr(out, at));
		tn_text_free(out);
		tn_program_free(p);
	}
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differ),
		cmocka_unit_test(test_bad_index),
		cmocka_unit_test(test_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
