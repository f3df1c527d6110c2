/*
 * onnx/: what is no model, or a hostile one, is refused with its rule; functions
 * of a model, and data outside of its file.
 */
#include "onnx_model.h"

#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is refused ---- */

static const struct refusal {
	const char *rule, *model;
} refusals[] = {
	{"onnx.undefined", "opset 13; in x float [1]; out y; node Neg z > y;"},
	{"onnx.cycle", "opset 13; in x float [1]; out y; node Neg y > y;"},
	{"onnx.cycle", "opset 13; in x float [1]; out y; node Add x b > a;"
			   "node Neg a > b; node Neg b > y;"},
	{"onnx.undefined", "opset 13; in x float [1]; out q; node Neg x > y;"},
	{"onnx.cycle", "opset 13; in x float [1]; init c bool [] 1; out y;"
		       "node Neg b > y; node If c > a : then_branch={ out b; }"
		       "else_branch={ out x; }; node Abs a > b;"},
	{"onnx.shape", "opset 21; in x int8 [1,5]; init s float [1,2] 1 2; out y;"
		       "node DequantizeLinear x s > y : axis=1 block_size=2;"},
	{"onnx.duplicate", "opset 13; in x float [1]; out y; node Neg x > x;"},
	{"onnx.duplicate", "opset 13; in x float [1]; out y; node Neg x > y;"
			   "node Abs x > y;"},
	{"onnx.operator", "opset 13; in x float [1]; out y; node Nag x > y;"},
	{"onnx.operator", "opset 13; in x float [1]; out y; node a.b/Neg x > y;"},
	{"onnx.operator", "opset 8; in x float [1]; out y; node Sinh x > y;"},
	{"onnx.dim", "opset 13; in x float [N]; out y; node Neg x > y;"},
	{"onnx.dim", "opset 13; in x float; out y; node Neg x > y;"},
	{"onnx.elem", "opset 13; in x string [1]; out y; node Neg x > y;"},
	{"onnx.elem", "opset 13; in x float [1]; out y; node Cast x > y : to=14;"},
	{"onnx.elem", "opset 13; init x complex64 [0]; out y; node Neg x > y;"},
	{"onnx.attr", "opset 13; in x float [1]; out y; node Cast x > y;"},
	{"onnx.attr", "opset 13; in x float [1]; out y; node Selu x > y : alpha=1;"},
	{"onnx.attr", "opset 13; in x float [1]; out y; node Relu x > y : k=1;"},
	{"tn.arity", "opset 13; in x float [1]; out y; node Neg x x > y;"},
	{"onnx.input", "opset 17; in x float [1,4,1]; init a int64 [] 1; out y;"
		       "node DFT x _ a > y;"},
	{"onnx.axis", "opset 13; in x float [1]; out y; node Softmax x > y : axis=1;"},
	{"onnx.input", "opset 13; in x float [1]; out y; node Add x > y;"},
	{"onnx.size", "opset 13; init x float [3] 1 2; out y; node Neg x > y;"},
	{"onnx.size", "opset 13; typed x float [3] 1 2; out y; node Neg x > y;"},
	{"onnx.size", "opset 13; init x float [-1] 1; out y; node Neg x > y;"},
	{"onnx.size", "opset 13; init x float [1000000000,1000000000,1000000000]"
		      "1; out y; node Neg x > y;"},
	{"onnx.size", "opset 13; init x float [9000000000000] 1; out y;"
		      "node Neg x > y;"},
	{"onnx.range", "opset 13; typed x int8 [1] 300; out y; node Neg x > y;"},
	{"onnx.rank", "opset 13; init x float [1,1,1,1,1,1,1,1,1] 1; out y;"
		      "node Neg x > y;"},
	{"onnx.shape", "opset 13; in x float [2]; init s int64 [1] -5; out y;"
		       "node Reshape x s > y;"},
	{"onnx.value", "opset 13; in x float [2]; in s int64 [1]; out y;"
		       "node Reshape x s > y;"},
	{"onnx.value", "opset 13; in x seq(float) [2]; out y;"
		       "node SequenceLength x > y;"},
	{"add.i", "opset 13; in x float [2]; in z float [3]; out y;"
		  "node Add x z > y;"},
	{"onnx.size", "opset 13; in x float [1]; init n int64 [] 99999999;"
		      "out y; node Loop n _ x > y : body={ in i int64 [];"
		      "in c bool []; in v float [1]; out c; out v; };"},
	{"onnx.size", "opset 13; in x float [1]; init n int64 [] 99999999;"
		      "out y; node Loop n _ x > y : body={ in i int64 [];"
		      "in c bool []; in v float [1]; out c; out o;"
		      "node Add v v > o; };"},
	{"onnx.size", "opset 13; in x float [1]; init n int64 [] 9999; out y;"
		      "node SequenceEmpty > e; node Loop n _ e > s : body={"
		      "in i int64 []; in c bool []; in q seq(float) [1];"
		      "out c; out r; node SequenceInsert q x > r; };"
		      "node ConcatFromSequence s > y : axis=0;"},
	{"onnx.type", "opset 13; in x float [1]; out y;"
		      "node SequenceConstruct x x > s;"
		      "node SequenceConstruct s s > t;"
		      "node SequenceLength t > y;"},
	{"onnx.size", "opset 13; in x float [1]; out y; init n int64 [4]"
		      "60000 60000 30000 1; node ConstantOfShape n > t;"
		      "node ReduceSum t > s; node Cast s > k : to=7;"
		      "node Reshape x k > y;"},
	{"onnx.graph", "opset 13; init c bool [] 1; in x float [1]; out y;"
		       "node If c > y : then_branch={ in a float [1]; out a; }"
		       "else_branch={ out x; };"},
};

static void builds(arena *a, void *arg)
{
	pb bytes = onnx_write(a, arg);

	(void)onnx_import_run(
		onnx_import_new(a, parse_model(a, &bytes, NULL)));
}

static void test_bad_models_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		const struct refusal *r = &refusals[i];
		tn_diag d = {0};
		tn_status s = unit_run(builds, (void *)(uintptr_t)r->model, 0,
			&d);

		if (s == TN_OK || strcmp(d.rule, r->rule) != 0)
			print_error("%s\n%s: %s: %s\n", r->model, r->rule,
				d.rule, d.text);
		assert_true(s < 0);
		assert_string_equal(d.rule, r->rule);
		assert_true(d.text[0] != '\0');
		assert_memory_equal(d.file, "m.onnx", 6);
	}
}

/* An attribute with another value than those that are accepted: they are named. */
static void test_accepted_values_are_named(void **state)
{
	static const struct {
		const char *text, *model;
	} t[] = {
		{"direction is \"UP\"; accepted are LEFT and RIGHT",
			"opset 13; in x uint8 [1]; out y; node BitShift x x > y :"
			"direction=\"UP\";"},
		{"delta is 0; accepted are other numbers",
			"opset 13; init a int64 [] 0; init b int64 [] 3;"
			"init d int64 [] 0; out y; node Range a b d > y;"},
		{"accepted are constant, edge, reflect and wrap",
			"opset 13; in x float [2]; init p int64 [2] 1 1; out y;"
			"node Pad x p > y : mode=\"mirror\";"},
		{"accepted are none, add, mul, max and min",
			"opset 18; in x float [2]; init i int64 [1,1] 0;"
			"in u float [1]; out y; node ScatterND x i u > y :"
			"reduction=\"sub\";"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		tn_diag d = {0};

		assert_true(unit_run(builds, (void *)(uintptr_t)t[i].model, 0,
				    &d) < 0);
		assert_string_equal(d.rule, "onnx.attr");
		if (strstr(d.text, t[i].text) == NULL)
			print_error("%s: %s\n", t[i].text, d.text);
		assert_non_null(strstr(d.text, t[i].text));
	}
}

/* ---- damaged files ---- */

static const char whole[] =
	"opset 13; in x float [2,N]; init w float [2] 1 2; typed v int64 [1] -1;"
	"out y; node Reshape x v > t; node Add t w > u;"
	"node If c > y : then_branch={ node Neg u > z; out z; }"
	"else_branch={ out u; }; init c bool [] 1; node Elu u > q : alpha=0.5"
	"axes=[1,2] r=[1.5,2.5] s=\"text\";";

struct damage {
	pb bytes; /* of the whole model */
	size_t n; /* so many of them are there */
};

static void parses(arena *a, void *arg)
{
	struct damage *d = arg;
	pb part = pb_new(a);

	str_addn(&part.s, d->bytes.s.at, d->n);
	(void)parse_model(a, &part, NULL);
}

static void test_every_prefix_is_refused_or_read(void **state)
{
	env *e = env_new();
	arena *a;
	struct damage d;
	int32_t n_refused = 0;

	(void)state;
	assert_non_null(e);
	a = arena_new(e);
	d.bytes = onnx_write(a, whole);
	for (d.n = 0; d.n < d.bytes.s.n; d.n++) {
		tn_diag diag = {0};

		if (unit_run(parses, &d, 0, &diag) == TN_OK)
			continue;
		n_refused++;
		assert_memory_equal(diag.rule, "onnx.", 5);
	}
	/* the graph is one part: whatever is cut off of it is missed */
	assert_int_equal(n_refused, (int32_t)d.bytes.s.n);
	assert_int_equal(unit_run(parses, &d, 0, NULL), TN_OK);
	arena_free(a);
	env_free(e);
}

struct raw {
	const char *bytes;
	size_t n;
};

static void parses_raw(arena *a, void *arg)
{
	const struct raw *r = arg;
	pb part = pb_new(a);

	str_addn(&part.s, r->bytes, r->n);
	(void)parse_model(a, &part, NULL);
}

static void test_bytes_that_are_no_fields(void **state)
{
	static const struct {
		const char *rule;
		struct raw r;
	} cases[] = {
		{"onnx.model", {"", 0}},
		{"onnx.wire", {"\x00", 1}},		  /* number 0 */
		{"onnx.wire", {"\x3b", 1}},		  /* a group */
		{"onnx.wire", {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}},
		{"onnx.wire", {"\x3a\x05\x0a", 3}},	  /* beyond the end */
		{"onnx.wire", {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}},
		{"onnx.wire", {"\x38\x01", 2}},		  /* graph as a number */
		{"onnx.text", {"\x3a\x05\x12\x03" "a\0b", 7}}, /* 0 in a name */
		{"onnx.sparse", {"\x3a\x02\x7a\x00", 4}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct raw r = cases[i].r;
		tn_diag d = {0};

		assert_int_equal(unit_run(parses_raw, &r, 0, &d), TN_EINVAL);
		assert_string_equal(d.rule, cases[i].rule);
	}
}

/* 10,000 graphs, each an attribute of the node in the one around it. */
static void parses_deep(arena *a, void *arg)
{
	pb inner = pb_new(a), model = pb_new(a);

	(void)arg;
	for (int32_t i = 0; i < 10000; i++) {
		pb attr = pb_new(a), n = pb_new(a), g = pb_new(a);

		pb_part(&attr, 6, &inner);
		pb_part(&n, 5, &attr);
		pb_part(&g, 1, &n);
		inner = g;
	}
	pb_part(&model, 7, &inner);
	(void)parse_model(a, &model, NULL);
}

static void test_depth_is_bounded(void **state)
{
	tn_diag d = {0};

	(void)state;
	assert_int_equal(unit_run(parses_deep, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "onnx.depth");
}

/* A function whose body calls it. */
static void runs_recursive_function(arena *a, void *arg)
{
	pb model = onnx_write(a, "opset 13; in x float [1]; out y;"
				 "node my/F x > y;");
	mk m = {a, "my/F a > b;", 0};
	pb f = pb_new(a), n = mk_node(&m), opset = pb_new(a);

	(void)arg;
	pb_text(&f, 1, "F");
	pb_text(&f, 10, "my");
	pb_text(&f, 4, "a");
	pb_text(&f, 5, "b");
	pb_part(&f, 7, &n);
	pb_text(&opset, 1, "my");
	pb_part(&f, 9, &opset);
	pb_part(&model, 25, &f);
	(void)onnx_import_run(
		onnx_import_new(a, parse_model(a, &model, NULL)));
}

static void test_recursion_of_functions_is_bounded(void **state)
{
	tn_diag d = {0};

	(void)state;
	assert_int_equal(
		unit_run(runs_recursive_function, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "onnx.depth");
}

/* Names are anything, and none of it reaches the program's names. */
static void runs_names(arena *a, void *arg)
{
	pb model = onnx_write(a, "opset 13; in a\\n*/x float [1]; out int;"
				 "node Neg a\\n*/x > int;");
	onnx_program p = onnx_import_run(
		onnx_import_new(a, parse_model(a, &model, NULL)));
	str s = str_new(a);

	(void)arg;
	assert_string_equal(p.input[0].name, "a\\n*/x");
	ir_program_print(&s, p.ir);
	assert_null(strstr(s.at, "*/"));
	(void)ir_program_parse(a, s.at, s.n, "printed", interp_loop);
}

static void test_names_are_cleaned(void **state)
{
	(void)state;
	assert_int_equal(unit_run(runs_names, NULL, 0, NULL), TN_OK);
}

/* ---- functions, external data ---- */

/* y = F(x), F(a) = elu(a, alpha = the caller's, or 2) */
static void runs_function(arena *a, void *arg)
{
	const bool *given = arg;
	pb model = onnx_write(a, *given
			? "opset 13; in x float [1]; out y;"
			  "node my/F x > y : k=0.5;"
			: "opset 13; in x float [1]; out y; node my/F x > y;");
	mk m = {a, "LeakyRelu a > b;", 0}, md = {a, "2.0", 0};
	pb f = pb_new(a), n = mk_node(&m), ref = pb_new(a), def = pb_new(a);
	pb opset = pb_new(a);
	onnx_import *x;
	onnx_program p;
	const float in = -4;
	float out;
	const void *from = &in;
	void *to = &out;

	pb_text(&ref, 1, "alpha");
	pb_text(&ref, 21, "k");
	pb_int(&ref, 20, 1);
	pb_part(&n, 5, &ref);
	pb_text(&def, 1, "k");
	mk_attr_value(&md, &def);
	pb_text(&f, 1, "F");
	pb_text(&f, 10, "my");
	pb_text(&f, 4, "a");
	pb_text(&f, 5, "b");
	pb_part(&f, 7, &n);
	pb_int(&opset, 2, 13);
	pb_part(&f, 9, &opset);
	pb_part(&f, 11, &def);
	pb_part(&model, 25, &f);
	x = onnx_import_new(a, parse_model(a, &model, NULL));
	p = onnx_import_run(x);
	interp_run(arena_env(a), p.ir, &from, &to);
	assert_true(out == (*given ? -2.0f : -8.0f));
}

static void test_functions_are_inlined(void **state)
{
	bool given = true;

	(void)state;
	assert_int_equal(unit_run(runs_function, &given, 0, NULL), TN_OK);
	given = false;
	assert_int_equal(unit_run(runs_function, &given, 0, NULL), TN_OK);
}

struct outside {
	const char *location, *offset;
	char folder[64];
};

static pb external_model(arena *a, const struct outside *o)
{
	pb model = pb_new(a), t = pb_new(a), key = pb_new(a), g = pb_new(a);
	pb out = pb_new(a), off = pb_new(a);

	pb_text(&t, 8, "w");
	pb_int(&t, 2, 1);
	pb_int(&t, 1, 2);
	pb_int(&t, 14, 1);
	pb_text(&key, 1, "location");
	pb_text(&key, 2, o->location);
	pb_part(&t, 13, &key);
	pb_text(&off, 1, "offset");
	pb_text(&off, 2, o->offset);
	pb_part(&t, 13, &off);
	pb_part(&g, 5, &t);
	pb_text(&out, 1, "w");
	pb_part(&g, 12, &out);
	pb_part(&model, 7, &g);
	return model;
}

static void reads_external(arena *a, void *arg)
{
	const struct outside *o = arg;
	pb model = external_model(a, o);
	onnx_program p = onnx_import_run(
		onnx_import_new(a, parse_model(a, &model, o->folder)));
	float out[2];
	void *to = out;

	interp_run(arena_env(a), p.ir, p.bound, &to);
	assert_true(out[0] == 2 && out[1] == 3);
}

static void test_external_data_stays_in_the_folder(void **state)
{
	static const float data[3] = {1, 2, 3};
	struct outside o = {"w.bin", "4", "/tmp/tenon_onnx_XXXXXX"};
	static const struct {
		const char *location, *offset, *rule;
	} cases[] = {{"w.bin", "4", NULL}, {"./w.bin", "4", NULL},
		{"w.bin", "8", "onnx.external"}, {"w.bin", "x", "onnx.external"},
		{"w.bin", "99999999999999999999", "onnx.external"},
		{"/etc/passwd", "0", "onnx.external"},
		{"../w.bin", "0", "onnx.external"},
		{"a/../../w.bin", "0", "onnx.external"},
		{"", "0", "onnx.external"}, {"link", "0", "onnx.external"},
		{"none.bin", "0", "onnx.open"}};
	char path[128], link[128];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(o.folder));
	snprintf(path, sizeof path, "%s/w.bin", o.folder);
	snprintf(link, sizeof link, "%s/link", o.folder);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, sizeof data, 1, f), 1);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tn_diag d = {0};
		tn_status s;

		o.location = cases[i].location;
		o.offset = cases[i].offset;
		s = unit_run(reads_external, &o, 0, &d);
		if (cases[i].rule == NULL)
			assert_int_equal(s, TN_OK);
		else
			assert_string_equal(d.rule, cases[i].rule);
	}
	unlink(link);
	unlink(path);
	rmdir(o.folder);
}

/* A fuzzer writes any number where integers stand: cut to what fits. */
static void write_far(arena *a, void *arg)
{
	static const char most[] = "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		least[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
	pb m = onnx_write(a, "opset 13; out w;"
			     "typed w int64 [4] 1e300 -1e300 nan 1e19;");
	int32_t n_most = 0, n_least = 0;

	(void)arg;
	for (size_t i = 0; i + 9 <= m.s.n; i++) {
		n_most += memcmp(m.s.at + i, most, 9) == 0;
		n_least += i + 10 <= m.s.n &&
			memcmp(m.s.at + i, least, 10) == 0;
	}
	assert_int_equal(n_most, 2);
	assert_int_equal(n_least, 1);
}

static void test_writer_cuts_numbers(void **state)
{
	(void)state;
	assert_int_equal(unit_run(write_far, NULL, 0, NULL), TN_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writer_cuts_numbers),
		cmocka_unit_test(test_bad_models_are_refused),
		cmocka_unit_test(test_accepted_values_are_named),
		cmocka_unit_test(test_every_prefix_is_refused_or_read),
		cmocka_unit_test(test_bytes_that_are_no_fields),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_recursion_of_functions_is_bounded),
		cmocka_unit_test(test_names_are_cleaned),
		cmocka_unit_test(test_functions_are_inlined),
		cmocka_unit_test(test_external_data_stays_in_the_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
