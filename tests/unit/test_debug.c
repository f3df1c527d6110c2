/*
 * The environment variables for people who debug: TENON_RUN=interp runs
 * everything on the interpreter, TENON_DUMP prints what passes make. And names
 * of kernels, by which profilers and debuggers show them.
 */
#define _POSIX_C_SOURCE 200809L
#include "unit.h"

#include <tenon.h>

#include <dirent.h>
#include <math.h>
#include <unistd.h>

static char root[] = "/tmp/tenon-test-XXXXXX";

/* Without variables, and without files of the tests before. */
static int setup(void **state)
{
	DIR *d = opendir(root);
	struct dirent *e;
	char path[600];

	(void)state;
	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", root, e->d_name);
		if (e->d_name[0] != '.')
			(void)unlink(path);
	}
	if (d != NULL)
		closedir(d);
	unsetenv("TENON_RUN");
	unsetenv("TENON_DUMP");
	unsetenv("TENON_DUMP_DIR");
	unsetenv("TENON_CC");
	return 0;
}

static tn_context *context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;

	o.cache_dir = "";
	o.threads = 1;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

/* ---- TENON_RUN ---- */

static const char program[] = "program {\n"
			      "  x: f32[3,4]\n"
			      "  y = silu(x)\n"
			      "  s = reduce_mean(y, axes=[1])\n"
			      "  return s\n"
			      "}\n";

/* A program, two training steps of a line, and what they needed. */
typedef struct result {
	float run[3], w[4];
	double loss;
	int64_t n_programs, n_compiled;
} result;

static result work(void)
{
	tn_context *c = context();
	const int64_t shape[] = {4, 2}, two[] = {2, 1}, four[] = {4, 1};
	const float x[] = {1, 2, -1, 0.5f, 3, 1, 0, -2}, y[] = {1, 0, 2, -1};
	float in[12];
	const void *ins[] = {in};
	result r = {.loss = 0};
	void *outs[] = {r.run};
	tn_program *p = NULL;
	tn_optimizer *o = NULL;
	tn_params *all = NULL;
	tn_tensor *w, *loss = NULL;
	tn_stats s;

	for (int i = 0; i < 12; i++)
		in[i] = 0.3f * (float)i - 1;
	assert_int_equal(tn_program_parse(&p, c, program, sizeof program - 1,
				 NULL), TN_OK);
	assert_int_equal(tn_program_run(p, ins, outs), TN_OK);
	tn_program_free(p);
	assert_int_equal(tn_params_new(&all, c), TN_OK);
	w = tn_parameter(c, "w", TN_F32, 2, two, (float[]){0.5f, -0.25f});
	assert_int_equal(tn_params_add(all, "w", w, true), TN_OK);
	assert_int_equal(tn_optimizer_new(&o, c, "adamw", NULL), TN_OK);
	assert_int_equal(tn_optimizer_add_all(o, all), TN_OK);
	for (int i = 0; i < 2; i++) {
		tn_scope_enter(c);
		loss = tn_mse(
			tn_matmul(tn_tensor_new(c, TN_F32, 2, shape, x), w),
			tn_tensor_new(c, TN_F32, 2, four, y));
		assert_int_equal(tn_backward(loss, NULL), TN_OK);
		assert_int_equal(tn_optimizer_step(o), TN_OK);
		r.loss = tn_item(loss);
		tn_scope_leave(c);
	}
	assert_int_equal(tn_read(w, r.w, 8), TN_OK);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_stats(c, &s);
	r.n_programs = s.n_programs;
	r.n_compiled = s.n_compiled;
	tn_optimizer_free(o);
	tn_params_free(all);
	tn_context_free(c);
	return r;
}

static void runs_both_ways(void **state)
{
	result compiled = work(), slow;

	(void)state;
	assert_true(compiled.n_programs > 0);
	/* whatever would start a compiler would fail */
	setenv("TENON_RUN", "interp", 1);
	setenv("TENON_CC", "/nowhere/cc", 1);
	slow = work();
	assert_int_equal(slow.n_programs, 0);
	assert_int_equal(slow.n_compiled, 0);
	assert_true(compiled.loss > 0);
	assert_true(fabs(slow.loss - compiled.loss) < 1e-5);
	for (int i = 0; i < 3; i++)
		assert_true(fabsf(slow.run[i] - compiled.run[i]) < 1e-5f);
	for (int i = 0; i < 2; i++)
		assert_true(fabsf(slow.w[i] - compiled.w[i]) < 1e-5f);
}

static void refused(const char *name, const char *value, const char *rule,
	const char *text)
{
	tn_context *c = (tn_context *)&c;
	const tn_diag *d;

	setenv(name, value, 1);
	assert_int_not_equal(tn_context_new(&c, NULL), TN_OK);
	assert_null(c);
	d = tn_context_diag(NULL);
	assert_string_equal(d->rule, rule);
	if (strstr(d->text, text) == NULL)
		fail_msg("\"%s\" is not in: %s", text, d->text);
	unsetenv(name);
	tn_context_free(context()); /* and then again */
}

static void says_what_is_accepted(void **state)
{
	(void)state;
	refused("TENON_RUN", "compiled", "context.run", "interp is accepted");
	refused("TENON_RUN", "interp ", "context.run", "\"interp \"");
	refused("TENON_VERIFY", "yes", "context.verify", "1 is accepted");
	refused("TENON_PROGRAMS_MB", "all", "context.programs", "megabytes");
	refused("TENON_PROGRAMS_MB", "-1", "context.programs", "\"-1\"");
	refused("TENON_DUMP", "fuse,,plan", "context.dump", "no pass \"\"");
	refused("TENON_DUMP", "fuze", "context.dump",
		"all, program, lower, prune, localise, residues, quotients, scales, recompute, tf32, settle, fuse");
	refused("TENON_DUMP", "allx", "context.dump", "no pass \"allx\"");
	setenv("TENON_DUMP", "fuse", 1);
	refused("TENON_DUMP_DIR", "/dev/null", "context.dump", "/dev/null");
	refused("TENON_DUMP_DIR", "/nowhere/at/all", "context.dump",
		"/nowhere/at/all");
	unsetenv("TENON_DUMP");
	setenv("TENON_RUN", "", 1);
	tn_context_free(context());
}

/* ---- TENON_DUMP ---- */

/* The files in root whose names end so; the text of the last. */
static int n_files(const char *end, char text[4096])
{
	DIR *d = opendir(root);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		size_t k = strlen(e->d_name), m = strlen(end);
		char path[600];
		FILE *f;

		if (k < m || strcmp(e->d_name + k - m, end) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", root, e->d_name);
		f = fopen(path, "r");
		assert_non_null(f);
		text[fread(text, 1, 4095, f)] = '\0';
		fclose(f);
		n++;
	}
	closedir(d);
	return n;
}

static void prints_what_tensors_record(void **state)
{
	char text[4096] = "";
	tn_context *c;
	tn_tensor *x;

	(void)state;
	setenv("TENON_DUMP", "program,fuse", 1);
	setenv("TENON_DUMP_DIR", root, 1);
	c = context();
	x = tn_normal(tn_random_key(c), (int64_t[]){2, 3}, 2, TN_F32);
	(void)tn_item(tn_reduce_sum(tn_exp(x), NULL, 0, false));
	assert_int_equal(tn_context_status(c), TN_OK);
	assert_int_equal(n_files("-program.txt", text), 1);
	assert_non_null(strstr(text, "exp("));
	assert_non_null(strstr(text, "return"));
	assert_int_equal(n_files("-fuse.txt", text), 1);
	assert_non_null(strstr(text, "kernel 0 "));
	assert_int_equal(n_files("-lower.txt", text), 0);
	/* the same program again: nothing is compiled, nothing printed */
	(void)tn_item(tn_reduce_sum(tn_exp(x), NULL, 0, false));
	(void)tn_item(tn_reduce_sum(tn_exp(x), NULL, 0, false));
	assert_true(n_files("-fuse.txt", text) <= 2);
	tn_context_free(c);
}

/* Every pass in its order, each with a text; of one process none is local. */
static void prints_every_pass(void **state)
{
	static const struct {
		const char *end, *has;
	} cases[] = {{"-program.txt", "program {"},
		{"-lower.txt", "system {"},
		{"-prune.txt", "system {"},
		{"-settle.txt", "#0: "},
		{"-fuse.txt", "kernel 0 "},
		{"-loops.txt", "MapStmt("},
		{"-schedule.txt", "schedule "},
		{"-kern.txt", "kern "},
		{"-emit.txt", "void "},
		{"-plan.txt", ""}};
	char text[4096] = "", *local = NULL;
	tn_context *c;
	tn_program *p = NULL;

	(void)state;
	setenv("TENON_DUMP", "all", 1);
	setenv("TENON_DUMP_DIR", root, 1);
	c = context();
	assert_int_equal(tn_program_parse(&p, c, program, sizeof program - 1,
				 NULL), TN_OK);
	assert_int_equal(tn_program_compile(p), TN_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(n_files(cases[i].end, text), 1);
		if (strstr(text, cases[i].has) == NULL)
			fail_msg("%s: %s", cases[i].end, text);
	}
	assert_int_equal(n_files("-localise.txt", text), 0);
	assert_int_equal(tn_program_explain_shard(&local, p, "m=2",
				 (const char *[]){"x=shard(1)@m"}, 1, false),
		TN_OK);
	assert_int_equal(n_files("-localise.txt", text), 1);
	assert_string_equal(text, local);
	tn_text_free(local);
	tn_program_free(p);
	tn_context_free(c);
}

/* A write waits for whoever reads what it changes: the order says so. */
static void prints_who_waits(void **state)
{
	static const char old[] = "program {\n"
				  "  param x: f32[4]\n"
				  "  d = mul(x, 2.0)\n"
				  "  x1 = write(x, d)\n"
				  "  s = reduce_sum(x1, axes=[0])\n"
				  "  o = mul(x, s)\n"
				  "  return o\n"
				  "}\n";
	char text[4096] = "";
	tn_context *c;
	tn_program *p = NULL;

	(void)state;
	setenv("TENON_DUMP", "settle", 1);
	setenv("TENON_DUMP_DIR", root, 1);
	c = context();
	if (tn_program_parse(&p, c, old, sizeof old - 1, NULL) < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	assert_int_equal(tn_program_compile(p), TN_OK);
	assert_int_equal(n_files("-settle.txt", text), 1);
	if (strstr(text, "x1\n  waits for mul #1: d, which reads x\n") == NULL)
		fail_msg("%s", text);
	tn_program_free(p);
	tn_context_free(c);
}

static void says_what_cannot_be_written(void **state)
{
	char dir[300];
	tn_context *c;
	tn_program *p = NULL;

	(void)state;
	snprintf(dir, sizeof dir, "%s/gone", root);
	setenv("TENON_DUMP", "lower", 1);
	setenv("TENON_DUMP_DIR", dir, 1);
	c = context();
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(tn_program_parse(&p, c, program, sizeof program - 1,
				 NULL), TN_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tn_program_compile(p), TN_EIO);
		assert_string_equal(tn_context_diag(c)->rule, "dump.write");
		assert_non_null(strstr(tn_context_diag(c)->text, dir));
	}
	tn_program_free(p);
	tn_context_free(c);
}

/* ---- names of kernels ---- */

/* The C of a program: its first kernel's function, into name. */
static void first_kernel(const char *text, char name[200])
{
	tn_context *c = context();
	tn_program *p = NULL;
	char *made = NULL;
	const char *at;

	if (tn_program_parse(&p, c, text, strlen(text), NULL) < 0 ||
		tn_program_explain(&made, p, TN_LEVEL_C, 0) < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	at = strstr(made, "\nvoid k_");
	assert_non_null(at);
	at += strlen("\nvoid ");
	snprintf(name, 200, "%.*s", (int)strcspn(at, "("), at);
	tn_text_free(made);
	tn_program_free(p);
	tn_context_free(c);
}

static void kernels_are_named_by_what_they_do(void **state)
{
	static const struct {
		const char *text, *stem;
	} cases[] = {
		{"program { x: f32[64,8]\n y: f32[64,8]\n t = add(x, y)\n"
		 " r = relu(t)\n s = reduce_sum(r, axes=[1])\n return s }",
			"k_add_relu_reduce_sum_"},
		{"program { x: f32[64,8]\n y = softmax(x)\n return y }",
			"k_softmax_"},
		{"program { x: f32[64,32]\n w: f32[32,16]\n"
		 " y = matmul(x, w)\n z = gelu(y)\n return z }",
			"k_matmul_gelu_"},
		{"op my_own_row(x[i..]:float) -> o { o[i..] = x[i..] * 3 }\n"
		 "program { x: f32[64]\n y = my_own_row(x)\n return y }",
			"k_my_own_row_"},
		/* a bound: no name grows with its kernel */
		{"program { x: f32[64]\n a = softplus(x)\n b = hard_swish(a)\n"
		 " c = leaky_relu(b)\n d = hard_sigmoid(c)\n"
		 " e = gelu_sigmoid(d)\n f = selu(e)\n return f }",
			"k_softplus_hard_swish_leaky_relu_hard_sigmoid_and_"
			"more_"},
	};
	char name[200], again[200];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		first_kernel(cases[i].text, name);
		if (strncmp(name, cases[i].stem, strlen(cases[i].stem)) != 0)
			fail_msg("%s does not begin with %s", name,
				cases[i].stem);
		/* then 16 digits of the text, and the phase */
		assert_int_equal(strlen(name), strlen(cases[i].stem) + 18);
		first_kernel(cases[i].text, again);
		assert_string_equal(name, again);
	}
}

/* Names of tensors are in no name: what was shared is shared. */
static void equal_kernels_are_one(void **state)
{
	static const char layers[] =
		"program { x: f32[64,64]\n v: f32[64,64]\n w: f32[64,64]\n"
		" a = matmul(x, v)\n b = relu(a)\n"
		" c = matmul(b, w)\n d = relu(c)\n return d }";
	tn_options options = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p = NULL;
	tn_stats s;
	char one[200], other[200];

	(void)state;
	options.no_fusion = true;
	options.cache_dir = "";
	assert_int_equal(tn_context_new(&c, &options), TN_OK);
	assert_int_equal(tn_program_parse(&p, c, layers, sizeof layers - 1,
				 NULL), TN_OK);
	assert_int_equal(tn_program_compile(p), TN_OK);
	tn_context_stats(c, &s);
	assert_int_equal(s.n_kernels, 4);
	assert_int_equal(s.n_shared, 2);
	tn_program_free(p);
	tn_context_free(c);
	first_kernel("program { x: f32[9]\n y = exp(x)\n return y }", one);
	first_kernel("program { in: f32[9]\n z = exp(in)\n return z }", other);
	assert_string_equal(one, other);
	first_kernel("program { x: f32[8]\n y = exp(x)\n return y }", other);
	assert_string_not_equal(one, other);
}

/* ---- the differentiated program ---- */

static const int64_t square[] = {3, 3};

static tn_status layer(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	tn_tensor *w = user;

	(void)c;
	out[0] = tn_silu(tn_matmul(in[0], w));
	out[1] = tn_reduce_sum(tn_mul(out[0], in[0]), NULL, 0, false);
	return TN_OK;
}

/* The program's outputs and gradients, from the arrays of its inputs. */
static void run_text(const char *text, const float *x, const float *w,
	const float *dy, const float *ds, float *const out[4])
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p = NULL;
	const void *in[4];

	o.interp = true;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	if (tn_program_parse(&p, c, text, strlen(text), NULL) < 0)
		fail_msg("%s\n%s", tn_context_diag(c)->text, text);
	assert_int_equal(tn_program_n_inputs(p), 4);
	assert_int_equal(tn_program_n_outputs(p), 4);
	for (int32_t i = 0; i < 4; i++) {
		const char *name = tn_program_input(p, i)->name;

		in[i] = !strcmp(name, "x")	  ? x
			: !strcmp(name, "w")	  ? w
			: !strcmp(name, "d_out0") ? dy
			: !strcmp(name, "d_out1") ? ds
						  : NULL;
		if (in[i] == NULL)
			fail_msg("an input is called %s", name);
	}
	assert_string_equal(tn_program_output(p, 2)->name, "d_x");
	assert_string_equal(tn_program_output(p, 3)->name, "d_w");
	assert_int_equal(tn_program_run(p, in, (void *const *)out), TN_OK);
	tn_program_free(p);
	tn_context_free(c);
}

static void close_to(const float *x, tn_tensor *y, int32_t n)
{
	float want[9];

	assert_int_equal(tn_read(y, want, (size_t)n * 4), TN_OK);
	for (int32_t i = 0; i < n; i++)
		if (!(fabsf(x[i] - want[i]) < 1e-4f))
			fail_msg("element %d is %g, not %g", (int)i,
				(double)x[i], (double)want[i]);
}

static void differentiated_program_computes_gradients(void **state)
{
	float x[9], w[9], dy[9], ds[1] = {0.5f};
	float y[9], s[1], dx[9], dw[9];
	float *const out[4] = {y, s, dx, dw};
	tn_context *c = context();
	tn_function *f = NULL;
	tn_tensor *tx, *tw, *ty[2], *g[2];
	char *text = NULL;

	(void)state;
	tn_fill_random(TN_F32, x, 9, 1, 0, 0);
	tn_fill_random(TN_F32, w, 9, 2, 0, 0);
	tn_fill_random(TN_F32, dy, 9, 3, 0, 0);
	tx = tn_parameter(c, "x", TN_F32, 2, square, x);
	tw = tn_parameter(c, "w", TN_F32, 2, square, w);
	assert_int_equal(tn_compile(&f, c, layer, tw, 1, 2, "layer"), TN_OK);
	assert_int_equal(tn_function_program_text(&text, f), TN_EINVAL);
	assert_null(text);
	assert_string_equal(tn_context_diag(c)->rule, "compile.program");
	assert_int_equal(tn_function_call(f, &tx, ty), TN_OK);
	assert_int_equal(tn_function_program_text(&text, f), TN_OK);
	assert_non_null(strstr(text, "  // forward\n"));
	assert_non_null(strstr(text, "  // kept for the backward, "));
	assert_non_null(strstr(text, "  // backward\n"));
	run_text(text, x, w, dy, ds, out);
	tn_text_free(text);
	close_to(y, ty[0], 9);
	close_to(s, ty[1], 1);
	assert_int_equal(tn_grad(2, ty,
		(tn_tensor *[]){tn_tensor_new(c, TN_F32, 2, square, dy),
			tn_tensor_new(c, TN_F32, 0, NULL, ds)},
		2, (tn_tensor *[]){tx, tw}, g), TN_OK);
	close_to(dx, g[0], 9);
	close_to(dw, g[1], 9);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_context_free(c);
}

static tn_status half(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_mul(in[0], tn_scalar(c, TN_F32, 0.5));
	return TN_OK;
}

static tn_status branch(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	tn_tensor *big = tn_gt(tn_reduce_sum(in[0], NULL, 0, false),
		tn_scalar(c, TN_F32, 0));

	return tn_cond(c, big, half, half, user, 1, in, 1, out);
}

static void differentiated_program_has_no_conditions(void **state)
{
	tn_context *c = context();
	tn_function *f = NULL;
	tn_tensor *x = tn_parameter(c, "x", TN_F32, 2, square, NULL), *y;
	char *text = NULL;

	(void)state;
	assert_int_equal(tn_compile(&f, c, branch, NULL, 1, 1, "branch"),
		TN_OK);
	assert_int_equal(tn_function_call(f, &x, &y), TN_OK);
	assert_int_equal(tn_function_program_text(&text, f), TN_EINVAL);
	assert_null(text);
	assert_string_equal(tn_context_diag(c)->rule, "compile.program");
	assert_non_null(strstr(tn_context_diag(c)->text, "branch has a cond"));
	assert_int_equal(tn_read(y, (float[9]){0}, 36), TN_OK);
	tn_function_free(f);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(runs_both_ways, setup),
		cmocka_unit_test_setup(says_what_is_accepted, setup),
		cmocka_unit_test_setup(prints_what_tensors_record, setup),
		cmocka_unit_test_setup(prints_every_pass, setup),
		cmocka_unit_test_setup(prints_who_waits, setup),
		cmocka_unit_test_setup(says_what_cannot_be_written, setup),
		cmocka_unit_test_setup(
			kernels_are_named_by_what_they_do, setup),
		cmocka_unit_test_setup(equal_kernels_are_one, setup),
		cmocka_unit_test_setup(
			differentiated_program_computes_gradients, setup),
		cmocka_unit_test_setup(
			differentiated_program_has_no_conditions, setup),
	};
	char command[64];
	int failed;

	if (mkdtemp(root) == NULL)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command) != 0 || failed;
}
