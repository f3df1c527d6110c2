/*
 * tn_onnx_...: models through the public functions: what must be given, what is
 * checked at a run, parameters, saving, and training an imported net.
 */
#include "unit.h"

#include "onnx_writer.h"

#include <stdio.h>
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

static tn_context *interp_context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = true;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static void has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" is not in: %s", part, text);
}

/* An error of the build names everything that it wants, not the first alone. */
static void test_all_at_once(void **state)
{
	static const struct {
		const char *model, *rule, *parts[5];
	} cases[] = {
		{"opset 13; in x float [N,C,4]; in z float [N,-1]; out y;"
		 "node Neg x > y;", "onnx.dim",
			{"N (x[0])", ", C (x[1])", ", z[1]", NULL}},
		{"opset 8; in x float [1]; out y; node Nag x > a;"
		 "node Sinh a > b; node my.ops/Foo b > y;", "onnx.operator",
			{"operator Nag of domain \"\", opset 8",
			 "node \"a\": operator \"Nag\"",
			 "node \"b\": operator \"Sinh\" of domain \"\", opset 8: "
			 "there is one from opset 9 on",
			 "operator \"Foo\" of domain \"my.ops\"", NULL}},
		{"opset 8; in x float [1]; out y; node Sinh x > y;",
			"onnx.operator", {"not supported before opset 9", NULL}},
		{"opset 14; in x float [1]; out y; node Relu x > a : alpha=2;"
		 "node Abs a > b : axis=1; node Cast b x > y : to=1;",
			"onnx.attr",
			{"attribute alpha is not supported; of the model",
			 "node \"a\": attribute \"alpha\" of operator \"Relu\" of "
			 "domain \"\", opset 14: it is not supported; ",
			 "node \"b\": attribute \"axis\" of operator \"Abs\"",
			 "node \"y\": input 1 of operator \"Cast\"", NULL}},
		/* what was not read, not what followed from it */
		{"opset 14; in x float [2]; in z float [3]; out y;"
		 "node Relu x > a : alpha=2; node Add a z > y;", "onnx.attr",
			{"attribute alpha is not supported", NULL}},
		{"opset 14; in x float [1]; out y; node Relu x > a : alpha=2;"
		 "node Nag a > y;", "onnx.operator",
			{"node \"y\": operator \"Nag\"",
			 "node \"a\": attribute \"alpha\"", NULL}},
	};
	tn_context *c = interp_context();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char path[] = "/tmp/tenon_onnx_XXXXXX";
		tn_onnx *m;
		tn_program *p;

		write_file(cases[i].model, path);
		assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
		assert_int_equal(tn_onnx_build(&p, m), TN_EINVAL);
		assert_string_equal(tn_context_diag(c)->rule, cases[i].rule);
		for (int k = 0; cases[i].parts[k] != NULL; k++)
			has(tn_context_diag(c)->text, cases[i].parts[k]);
		tn_onnx_free(m);
		unlink(path);
	}
	tn_context_free(c);
}

/* Nodes of bodies, and tensors: without building anything. */
static void test_info_refused(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX", *text;
	tn_context *c = interp_context();
	tn_onnx *m;

	(void)state;
	write_file("opset 8; opset 3 my.ops; in x complex64 [1]; in b bool [];"
		   "out y; node If b > y : then_branch={ node Sinh x > e; out e; }"
		   "else_branch={ node my.ops/Foo x > e; out e; };", path);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(tn_onnx_opset(m, ""), 8);
	assert_int_equal(tn_onnx_opset(m, "ai.onnx"), 8);
	assert_int_equal(tn_onnx_opset(m, "my.ops"), 3);
	assert_int_equal(tn_onnx_opset(m, "ai.onnx.ml"), 0);
	assert_int_equal(tn_onnx_info(&text, m, false), TN_OK);
	has(text, "cannot run: tensor \"x\": elements of type complex64\n");
	has(text, "cannot run: node \"e\": operator \"Sinh\" of domain \"\", "
		"opset 8: there is one from opset 9 on\n");
	has(text, "cannot run: node \"e\": operator \"Foo\" of domain "
		"\"my.ops\", opset 3: there is none of this name\n");
	tn_text_free(text);
	assert_int_equal(tn_onnx_info(&text, m, true), TN_OK);
	has(text, "\"refused\":[{\"name\":\"x\",\"code\":\"onnx.elem\","
		"\"elem\":\"complex64\"},{\"name\":\"e\",\"code\":"
		"\"onnx.operator\",\"operator\":\"Sinh\",\"domain\":\"\","
		"\"opset\":8,\"since\":9},");
	has(text, "\"opset\":3,\"since\":null}]}");
	tn_text_free(text);
	tn_onnx_free(m);
	unlink(path);
	tn_context_free(c);
}

/* Attributes and inputs, whatever the sizes; errors of shapes, if they are known. */
static void test_info_tries(void **state)
{
	static const struct {
		const char *model, *text, *json; /* NULL: all of it can run */
	} cases[] = {
		{"opset 14; in x float [N,2]; out y; node Abs x > y;", NULL, NULL},
		{"opset 14; in x float [N,2]; in s int64 [2]; out y;"
		 "node Reshape x s > y;", NULL, NULL},
		{"opset 14; in x float [N,2]; out y; node Relu x > a : alpha=2;"
		 "node Cast a x > y : to=1;",
			"cannot run: node \"a\": attribute \"alpha\" of operator "
			"\"Relu\" of domain \"\", opset 14: it is not supported\n"
			"cannot run: node \"y\": input 1 of operator \"Cast\" of "
			"domain \"\", opset 14: it is not supported\n",
			"\"refused\":[{\"name\":\"a\",\"code\":\"onnx.attr\","
			"\"operator\":\"Relu\",\"domain\":\"\",\"opset\":14,"
			"\"attribute\":\"alpha\"},{\"name\":\"y\",\"code\":"
			"\"onnx.input\",\"operator\":\"Cast\",\"domain\":\"\","
			"\"opset\":14,\"input\":1}]"},
		{"opset 14; in x float [3]; out y; init s float [2] 1 1;"
		 "init z int8 [2] 0 0; node DequantizeLinear x s > y;",
			"node 1, DequantizeLinear: ", "\"code\":\"onnx."},
		{"opset 14; in x float [N]; in z float [3]; out y;"
		 "node Add x z > a; node Concat a x > y : axis=1;", NULL, NULL},
	};
	tn_context *c = interp_context();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char path[] = "/tmp/tenon_onnx_XXXXXX", *text, *json;
		tn_onnx *m;

		write_file(cases[i].model, path);
		assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
		assert_int_equal(tn_onnx_info(&text, m, false), TN_OK);
		assert_int_equal(tn_onnx_info(&json, m, true), TN_OK);
		if (cases[i].text == NULL) {
			assert_null(strstr(text, "cannot run"));
			has(json, "\"refused\":[]");
		} else {
			has(text, cases[i].text);
			has(json, cases[i].json);
		}
		tn_text_free(text);
		tn_text_free(json);
		tn_onnx_free(m);
		unlink(path);
	}
	tn_context_free(c);
}

static void test_load(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	tn_context *c = interp_context();
	tn_program *p;
	float x[2] = {1, 2}, y[2];
	const void *in = x;
	void *out = y;

	(void)state;
	write_file("opset 13; in x float [2]; init w float [2] 5 6; out y;"
		   "node Mul x w > y;", path);
	assert_int_equal(tn_onnx_load(&p, c, path), TN_OK);
	assert_int_equal(tn_program_n_inputs(p), 1);
	assert_string_equal(tn_program_input(p, 0)->name, "x");
	assert_null(tn_program_input(p, 1));
	assert_int_equal(tn_program_n_params(p), 1);
	assert_string_equal(tn_program_param(p, 0)->name, "w");
	assert_true(((const float *)tn_program_param_data(p, 0))[1] == 6);
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	assert_true(y[0] == 5 && y[1] == 12);
	tn_program_free(p);
	unlink(path);
	assert_int_equal(tn_onnx_load(&p, c, path), TN_EIO);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.open");
	tn_context_free(c);
}

/* A value that decided a shape must stay what it was. */
static void test_pinned_inputs(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	tn_context *c = interp_context();
	tn_onnx *m;
	tn_program *p;
	static const char *const none[] = {"M", "", "x", "x[1]", "x[-1]", "x[0",
		"x[]", "y[0]"};
	int64_t s[2] = {3, -1};
	float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
	tn_array a = {.dtype = TN_I64, .rank = 1, .shape = {2}, .n_elems = 2,
		.n_bytes = sizeof s, .data = s};
	int64_t other[2] = {2, -1};
	const void *in[2] = {x, s}, *bad[2] = {x, other};
	void *out = y;

	(void)state;
	write_file("opset 13; in x float [N]; in s int64 [2]; out y;"
		   "node Reshape x s > y;", path);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_string_equal(tn_onnx_input(m, 0)->type, "tensor(float)[N]");
	assert_int_equal(tn_onnx_build(&p, m), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.dim");
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		assert_int_equal(tn_onnx_bind_dim(m, none[i], 6), TN_EINVAL);
		assert_string_equal(tn_context_diag(c)->rule, "onnx.dim");
		assert_non_null(strstr(tn_context_diag(c)->text, "it has N"));
	}
	assert_int_equal(tn_onnx_bind_dim(m, "N", -1), TN_EINVAL);
	assert_int_equal(tn_onnx_bind_dim(m, "x[0]", 5), TN_OK);
	assert_int_equal(tn_onnx_bind_dim(m, "x[0]", 6), TN_OK);
	assert_int_equal(tn_onnx_bind_dim(m, "N", 6), TN_OK);
	assert_int_equal(tn_onnx_build(&p, m), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.value");
	assert_int_equal(tn_onnx_give(m, 1, 1, &a), TN_OK);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_output(p, 0)->shape[0], 3);
	assert_int_equal(tn_program_run(p, in, &out), TN_OK);
	assert_true(y[5] == 6);
	assert_int_equal(tn_program_run(p, bad, &out), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.pinned");
	tn_program_free(p);
	tn_onnx_free(m);
	unlink(path);
	tn_context_free(c);
}

/* Too many bytes, too many steps: they stay in the program. */
static void test_fold_large(void **state)
{
	static const char *const nodes[] = {
		"init s int64 [1] 600000000; node ConstantOfShape s > w;",
		"init s int64 [1] 70000000; node ConstantOfShape s > u;"
		"node Exp u > w;"};

	(void)state;
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		char path[] = "/tmp/tenon_onnx_XXXXXX", text[300];
		tn_context *c = interp_context();
		tn_onnx *m;
		tn_program *p;

		snprintf(text, sizeof text, "opset 13; in x float [1]; out y;"
			"%s node Add w x > z; node ReduceMean z > y;", nodes[i]);
		write_file(text, path);
		assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
		tn_onnx_fold(m, 2);
		assert_int_equal(tn_onnx_build(&p, m), TN_OK);
		assert_int_equal(tn_program_n_params(p), 0);
		tn_program_free(p);
		tn_onnx_free(m);
		unlink(path);
		tn_context_free(c);
	}
}

/* Weights that the model computes are parameters when that is asked for. */
static void test_fold(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	tn_context *c = interp_context();
	tn_onnx *m;
	tn_program *p;
	float x[4] = {1, 2, 3, 4}, y[4];
	const void *in = x;
	void *out = y;

	(void)state;
	write_file("opset 13; in x float [4]; init s int64 [1] 4; out y;"
		   "node ConstantOfShape s > w; init t float [2] 5 6;"
		   "node Concat t t > u : axis=0; node Add w u > v;"
		   "node Add x v > z; node Mul z w > q; node Add q z > y;",
		path);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_n_params(p), 1);
	tn_program_free(p);
	tn_onnx_fold(m, 5);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_n_params(p), 1);
	tn_program_free(p);
	tn_onnx_fold(m, 4);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_n_params(p), 2);
	assert_string_equal(tn_program_param(p, 0)->name, "w");
	assert_string_equal(tn_program_param(p, 1)->name, "v");
	assert_true(((const float *)tn_program_param_data(p, 1))[3] == 6);
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	assert_true(y[0] == 6 && y[3] == 10);
	tn_program_free(p);
	tn_onnx_free(m);
	assert_int_equal(tn_onnx_load(&p, c, path), TN_OK);
	assert_int_equal(tn_program_n_params(p), 2);
	tn_program_free(p);
	unlink(path);
	tn_context_free(c);
}

/* y = x * w + v of a file: its only output, on x = 1, 1 */
static void run_pair(tn_context *c, const char *path, float *y)
{
	const float x[2] = {1, 1};
	const void *in = x;
	void *out = y;
	tn_program *p;

	assert_int_equal(tn_onnx_load(&p, c, path), TN_OK);
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	tn_program_free(p);
}

static tn_status save_one(
	tn_onnx *m, const char *path, const char *name, int64_t n)
{
	float data[4] = {7, 8, 9, 9};
	tn_array a = {.dtype = TN_F32, .rank = 1, .shape = {n}, .n_elems = n,
		.n_bytes = 4 * (size_t)n, .data = data};

	return tn_onnx_save(m, path, 1, &name, &a);
}

/* An initialiser, and what a node makes, get other elements. */
static void test_save(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX", new[64];
	tn_context *c = interp_context();
	tn_onnx *m, *again;
	float y[2];

	(void)state;
	write_file("opset 13; in x float [2]; init s int64 [1] 2; out y;"
		   "init w float [2] 2 3; node ConstantOfShape s > v;"
		   "node Mul x w > t; node Add t v > y;"
		   "node Split x > p q : axis=0;", path);
	snprintf(new, sizeof new, "%s.new", path);
	run_pair(c, path, y);
	assert_true(y[0] == 2 && y[1] == 3);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(save_one(m, new, "w", 2), TN_OK);
	run_pair(c, new, y);
	assert_true(y[0] == 7 && y[1] == 8);
	assert_int_equal(save_one(m, new, "v", 2), TN_OK);
	run_pair(c, new, y);
	assert_true(y[0] == 9 && y[1] == 11);
	/* what was saved can be saved again */
	assert_int_equal(tn_onnx_open(&again, c, new), TN_OK);
	assert_int_equal(tn_onnx_n_inputs(again), 1);
	assert_int_equal(save_one(again, new, "w", 2), TN_OK);
	tn_onnx_free(again);
	run_pair(c, new, y);
	assert_true(y[0] == 14 && y[1] == 16);
	assert_int_equal(save_one(m, new, "u", 2), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.undefined");
	assert_int_equal(save_one(m, new, "w", 3), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.shape");
	assert_int_equal(save_one(m, new, "p", 1), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.graph");
	assert_int_equal(save_one(m, "/none/x", "w", 2), TN_EIO);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.write");
	/* a failure leaves the file as it was */
	run_pair(c, new, y);
	assert_true(y[0] == 14 && y[1] == 16);
	tn_onnx_free(m);
	unlink(new);
	unlink(path);
	tn_context_free(c);
}

/* ---- training ---- */

enum { MAX_PARAMS = 8 };

struct net {
	tn_context *c;
	tn_onnx *m;
	tn_program *p;
	tn_tensor *param[MAX_PARAMS];
	int32_t n;
};

static struct net open_net(const char *path)
{
	struct net n = {.c = interp_context()};

	assert_int_equal(tn_onnx_open(&n.m, n.c, path), TN_OK);
	tn_onnx_fold(n.m, 1);
	assert_int_equal(tn_onnx_build(&n.p, n.m), TN_OK);
	n.n = tn_program_n_params(n.p);
	assert_true(n.n <= MAX_PARAMS);
	for (int32_t i = 0; i < n.n; i++) {
		const tn_value *v = tn_program_param(n.p, i);

		n.param[i] = tn_parameter(n.c, v->name, v->dtype, v->rank,
			v->shape, tn_program_param_data(n.p, i));
	}
	return n;
}

static void close_net(struct net *n)
{
	tn_program_free(n->p);
	tn_onnx_free(n->m);
	tn_context_free(n->c);
}

static const float train_x[12] = {1, 0, 2, 0, 1, 1, -1, 2, 0, 2, -1, 1};
static const int64_t train_t[4] = {0, 1, 1, 0};

static tn_tensor *net_output(struct net *n)
{
	const int64_t shape[2] = {4, 3};
	tn_tensor *in[MAX_PARAMS + 1], *y = NULL;

	in[0] = tn_tensor_new(n->c, TN_F32, 2, shape, train_x);
	for (int32_t i = 0; i < n->n; i++)
		in[i + 1] = n->param[i];
	assert_int_equal(tn_apply(n->p, 1 + n->n, in, 1, &y), TN_OK);
	return y;
}

/* An imported net learns; what is saved gives the same outputs as it did. */
static void test_imported_net_learns(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX", new[64];
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	const int64_t four = 4;
	const char *name[MAX_PARAMS];
	tn_array array[MAX_PARAMS];
	float before[8], after[8], data[MAX_PARAMS][64];
	double first = 0, last = 0;
	tn_optimizer *opt;
	struct net n;

	(void)state;
	write_file("opset 13; in x float [4,3]; out y;"
		   "init w float [3,4] .1 .2 -.3 .4 .5 -.6 .7 .8 -.9 .1 .2 .3;"
		   "init s int64 [1] 4; node ConstantOfShape s > b;"
		   "init v float [4,2] .1 -.2 .3 .4 -.5 .6 .7 -.8;"
		   "node Gemm x w b > h; node Relu h > r;"
		   "node Concat r r > q : axis=1; init f int64 [1] 0;"
		   "init t int64 [1] 4; init a int64 [1] 1;"
		   "node Slice q f t a > k; node MatMul k v > y;", path);
	snprintf(new, sizeof new, "%s.new", path);
	n = open_net(path);
	assert_int_equal(n.n, 3);
	o.lr = 0.2;
	assert_int_equal(tn_optimizer_new(&opt, n.c, "sgd", &o), TN_OK);
	for (int32_t i = 0; i < n.n; i++)
		assert_int_equal(tn_optimizer_add(opt, n.param[i]), TN_OK);
	for (int32_t i = 0; i < 30; i++) {
		tn_tensor *loss;

		assert_int_equal(tn_scope_enter(n.c), TN_OK);
		loss = tn_cross_entropy(net_output(&n),
			tn_tensor_new(n.c, TN_I64, 1, &four, train_t));
		assert_int_equal(tn_backward(loss, NULL), TN_OK);
		assert_int_equal(tn_optimizer_step(opt), TN_OK);
		last = tn_item(loss);
		first = i == 0 ? last : first;
		assert_int_equal(tn_scope_leave(n.c), TN_OK);
	}
	assert_int_equal(tn_context_status(n.c), TN_OK);
	assert_true(last < 0.5 * first);
	assert_int_equal(tn_read(net_output(&n), before, sizeof before), TN_OK);
	for (int32_t i = 0; i < n.n; i++) {
		const tn_value *v = tn_program_param(n.p, i);

		assert_int_equal(
			tn_read(n.param[i], data[i], v->n_bytes), TN_OK);
		name[i] = v->name;
		array[i] = (tn_array){.dtype = v->dtype, .rank = v->rank,
			.n_elems = v->n_elems, .n_bytes = v->n_bytes,
			.data = data[i]};
		memcpy(array[i].shape, v->shape, sizeof v->shape);
	}
	assert_int_equal(tn_onnx_save(n.m, new, n.n, name, array), TN_OK);
	tn_optimizer_free(opt);
	close_net(&n);
	n = open_net(new);
	assert_int_equal(n.n, 3);
	assert_int_equal(tn_read(net_output(&n), after, sizeof after), TN_OK);
	assert_memory_equal(before, after, sizeof before);
	close_net(&n);
	unlink(new);
	unlink(path);
}

/*
 * For training: the batch's statistics, what the running ones become, a key
 * for what is dropped, logits.
 */
static void test_training_mode(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	const float x[4] = {1, 10, 3, 30};
	float y[4], mean[2], var[2], again[4];
	int64_t key = 5;
	const void *in[2] = {x, &key};
	void *out[3] = {y, mean, var};
	tn_context *c = interp_context();
	tn_onnx *m;
	tn_program *p;
	int32_t zeros = 0;

	(void)state;
	write_file("opset 11; in x float [2,2]; out y; init s float [2] 1 2;"
		   "init b float [2] 0 1; init m float [2] 4 8;"
		   "init v float [2] 2 3; node BatchNormalization x s b m v > n"
		   ": momentum=0.75; node Softmax n > y;", path);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	tn_onnx_train(m, true, true);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_n_inputs(p), 1);
	assert_int_equal(tn_program_n_outputs(p), 3);
	assert_string_equal(tn_program_output(p, 1)->name, "m");
	assert_string_equal(tn_program_output(p, 2)->name, "v");
	assert_int_equal(tn_program_run(p, in, out), TN_OK);
	assert_true(y[0] < -0.99f && y[3] > 2.99f);
	assert_true(mean[0] == 3.5f && mean[1] == 11);
	assert_true(var[0] == 1.75f && var[1] == 27.25f);
	tn_program_free(p);
	tn_onnx_train(m, false, false);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_n_outputs(p), 1);
	assert_int_equal(tn_program_run(p, in, out), TN_OK);
	assert_true(y[0] + y[1] > 0.99f && y[0] + y[1] < 1.01f);
	tn_program_free(p);
	tn_onnx_free(m);
	unlink(path);

	strcpy(path, "/tmp/tenon_onnx_XXXXXX");
	write_file("opset 11; in x float [64]; out y;"
		   "node Dropout x > y : ratio=0.5;", path);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	tn_onnx_train(m, true, true);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_n_inputs(p), 2);
	assert_int_equal(tn_program_input(p, 1)->dtype, TN_I64);
	for (int32_t k = 0; k < 2; k++) {
		float ones[64], kept[64];

		for (int32_t i = 0; i < 64; i++)
			ones[i] = 1;
		in[0] = ones;
		out[0] = kept;
		key = k;
		assert_int_equal(tn_program_run(p, in, out), TN_OK);
		for (int32_t i = 0; i < 64; i++) {
			assert_true(kept[i] == 0 || kept[i] == 2);
			zeros += kept[i] == 0;
		}
		if (k == 1)
			assert_memory_not_equal(kept, again, sizeof again);
		memcpy(again, kept, sizeof again);
	}
	assert_in_range(zeros, 40, 88);
	tn_program_free(p);
	tn_onnx_free(m);
	unlink(path);
	tn_context_free(c);
}

static void test_apply_is_checked(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	const int64_t two = 2;
	tn_tensor *in[2], *out;
	struct net n;

	(void)state;
	write_file("opset 13; in x float [3]; init w float [3] 1 2 3; out y;"
		   "node Add x w > y;", path);
	n = open_net(path);
	in[0] = tn_tensor_new(n.c, TN_F32, 1, &two, NULL);
	in[1] = n.param[0];
	assert_int_equal(tn_apply(n.p, 2, in, 1, &out), TN_EINVAL);
	assert_string_equal(tn_context_diag(n.c)->rule, "apply.input");
	assert_false(tn_is_valid(out));
	tn_context_clear(n.c);
	assert_int_equal(tn_apply(n.p, 1, in, 1, &out), TN_EINVAL);
	assert_string_equal(tn_context_diag(n.c)->rule, "apply.count");
	close_net(&n);
	unlink(path);
}

static void check_classes(const char *text, const char *weight, int32_t axis,
	int32_t n_params)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX", new[64];
	tn_context *c = interp_context();
	float x[8] = {1, 2, 3, 4, 4, 3, 2, 1}, y[5], again[5], w[40];
	const void *in = x;
	void *out = y;
	const char *names[2];
	tn_array arrays[2];
	const tn_value *v;
	tn_onnx *m;
	tn_program *p;

	snprintf(new, sizeof new, "%s.new", write_file(text, path));
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(tn_onnx_classes(m, 1, 0), TN_EINVAL);
	assert_int_equal(tn_onnx_classes(m, 5, 7), TN_OK);
	assert_int_equal(tn_onnx_output(m, 0)->shape[1], 5);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_output(p, 0)->n_elems, 5);
	assert_int_equal(tn_program_n_params(p), n_params);
	v = tn_program_param(p, n_params - 1);
	for (int32_t i = 0; i < n_params; i++)
		if (strcmp(tn_program_param(p, i)->name, weight) == 0)
			v = tn_program_param(p, i);
	assert_string_equal(v->name, weight);
	assert_int_equal(v->shape[axis], 5);
	for (int64_t i = 0; i < v->n_elems; i++) {
		w[i] = (float)i / 16;
		assert_true(((const float *)tn_program_param_data(p, 0))[0] <=
			1);
	}
	/* what was learnt goes into a file, and comes back */
	for (int32_t i = 0; i < n_params; i++)
		if (tn_program_param(p, i) == v)
			assert_int_equal(
				tn_program_set_param(p, i, w), TN_OK);
	assert_int_equal(tn_program_set_param(p, n_params, w), TN_EINVAL);
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	names[0] = weight;
	arrays[0] = (tn_array){.dtype = TN_F32, .rank = v->rank,
		.n_elems = v->n_elems, .n_bytes = v->n_bytes, .data = w};
	memcpy(arrays[0].shape, v->shape, sizeof v->shape);
	assert_int_equal(tn_onnx_save(m, new, 1, names, arrays), TN_OK);
	tn_program_free(p);
	tn_onnx_free(m);
	assert_int_equal(tn_onnx_load(&p, c, new), TN_OK);
	out = again;
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	assert_memory_equal(y, again, sizeof y);
	tn_program_free(p);
	unlink(new);
	unlink(path);
	tn_context_free(c);
}

/* The last layer for five classes, in each of its forms. */
static void test_classes(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	tn_context *c = interp_context();
	tn_onnx *m;

	(void)state;
	check_classes("opset 13; in x float [1,8]; out y float [1,3];"
		"init w float [3,8] 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6"
		" 7 8; init b float [3] 1 2 3;"
		"node Gemm x w b > h : transB=1; node Softmax h > y;",
		"w", 0, 2);
	check_classes("opset 13; in x float [1,8]; out y float [1,3];"
		"init w float [8,3] 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8 1 2 3 4 5 6"
		" 7 8; init b float [3] 1 2 3;"
		"node MatMul x w > h; node Add b h > y;", "w", 1, 2);
	check_classes("opset 13; in x float [1,2,2,2]; out y float [1,3];"
		"init w float [3,2,1,1] 1 2 3 4 5 6; init s int64 [2] 1 3;"
		"node Conv x w > h; node Relu h > r;"
		"node GlobalAveragePool r > g; node Reshape g s > y;",
		"w", 0, 1);
	write_file("opset 13; in x float [2]; out y; node Relu x > y;", path);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(tn_onnx_classes(m, 5, 0), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.head");
	tn_onnx_free(m);
	unlink(path);
	tn_context_free(c);
}

/* Inputs of a program from text become parameters, under any name. */
static void test_bind(void **state)
{
	static const char text[] =
		"program { x: f32[2] w: f32[2] y = mul(x, w) return y }";
	static const float w[2] = {5, 6}, x[2] = {1, 2};
	const char *name = "layer.weight";
	const void *data = w, *in = x;
	tn_context *c = interp_context();
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	tn_program *p;
	float y[2];
	void *out = y;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(tn_program_parse(&p, c, text, strlen(text), "t.tn"),
		TN_OK);
	assert_int_equal(tn_program_bind(p, 3, &name, &data), TN_EINVAL);
	assert_int_equal(tn_program_bind(p, 1, &name, &data), TN_OK);
	assert_int_equal(tn_program_bind(p, 1, &name, &data), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "api.param");
	assert_int_equal(tn_program_n_inputs(p), 1);
	assert_int_equal(tn_program_n_params(p), 1);
	assert_string_equal(tn_program_param(p, 0)->name, name);
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	assert_true(y[0] == 5 && y[1] == 12);
	assert_int_equal(tn_onnx_export(p, path), TN_OK);
	tn_program_free(p);
	assert_int_equal(tn_onnx_load(&p, c, path), TN_OK);
	assert_string_equal(tn_program_param(p, 0)->name, name);
	tn_program_free(p);
	unlink(path);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_info_refused),
		cmocka_unit_test(test_info_tries),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_pinned_inputs),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_fold_large),
		cmocka_unit_test(test_save),
		cmocka_unit_test(test_imported_net_learns),
		cmocka_unit_test(test_training_mode),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_bind),
		cmocka_unit_test(test_apply_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
