/*
 * Models made to do harm, one test for each kind: every one is refused with its
 * rule, or is a net like others; nothing crashes, hangs, takes all memory, is
 * executed, or is read from where it should not be.
 */
#define _POSIX_C_SOURCE 200809L
#include "unit.h"

#include "onnx_writer.h"

#include "onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- harness ---- */

static void builds(arena *a, void *arg)
{
	const pb *bytes = arg;
	unsigned char *copy = malloc(bytes->s.n + 1);

	assert_non_null(copy);
	arena_defer(a, free, copy);
	memcpy(copy, bytes->s.at, bytes->s.n);
	(void)onnx_import_run(onnx_import_new(
		a, onnx_parse(a, "m.onnx", NULL, copy, bytes->s.n)));
}

static void refused_bytes(const pb *bytes, const char *rule, const char *what)
{
	tn_diag d = {0};
	tn_status s = unit_run(builds, (void *)(uintptr_t)bytes, 0, &d);

	if (s == TN_OK || strcmp(d.rule, rule) != 0)
		print_error("%s\n%s expected, %s: %s\n", what, rule, d.rule,
			d.text);
	assert_true(s < 0);
	assert_string_equal(d.rule, rule);
	assert_true(d.text[0] != '\0');
}

struct text {
	const char *rule, *model;
};

static void refused(const struct text *at, size_t n)
{
	env *e = env_new();
	arena *a = arena_new(e);

	for (size_t i = 0; i < n; i++) {
		pb bytes = onnx_write(a, at[i].model);

		refused_bytes(&bytes, at[i].rule, at[i].model);
	}
	arena_free(a);
	env_free(e);
}
#define REFUSED(t) refused(t, sizeof(t) / sizeof((t)[0]))

/* A function of domain "my": name(a) = b, by nodes in the writer's text. */
static void add_function(
	arena *a, pb *model, const char *name, int32_t n, const char *const *node)
{
	pb f = pb_new(a), opset = pb_new(a), own = pb_new(a);

	pb_text(&f, 1, name);
	pb_text(&f, 10, "my");
	pb_text(&f, 4, "a");
	pb_text(&f, 5, "b");
	for (int32_t i = 0; i < n; i++) {
		mk m = {a, node[i], 0};
		pb part = mk_node(&m);

		pb_part(&f, 7, &part);
	}
	pb_int(&opset, 2, 13);
	pb_part(&f, 9, &opset);
	pb_text(&own, 1, "my");
	pb_int(&own, 2, 1);
	pb_part(&f, 9, &own);
	pb_part(model, 25, &f);
}

/* ---- one after the other ---- */

static void test_truncated(void **state)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb bytes = onnx_write(a, "opset 13; in x float [2]; out y;"
		"init w float [2] 1 2; node Add x w > y;");
	size_t n = bytes.s.n;

	(void)state;
	assert_int_equal(unit_run(builds, &bytes, 0, NULL), TN_OK);
	for (size_t i = 0; i < n; i++) {
		tn_diag d = {0};

		bytes.s.n = i;
		assert_int_equal(unit_run(builds, &bytes, 0, &d), TN_EINVAL);
		assert_memory_equal(d.rule, "onnx.", 5);
	}
	arena_free(a);
	env_free(e);
}

static void test_cyclic(void **state)
{
	static const struct text t[] = {
		{"onnx.cycle", "opset 13; in x float [1]; out y;"
				   "node Add x y > y;"},
		{"onnx.cycle", "opset 13; in x float [1]; out y;"
				   "node Add x c > a; node Neg a > b;"
				   "node Neg b > c; node Neg c > y;"},
		/* through a sequence, and through a branch */
		{"onnx.cycle", "opset 13; in x float [1]; out y;"
				   "node SequenceInsert s x > s; node "
				   "ConcatFromSequence s > y : axis=0;"},
		{"onnx.cycle", "opset 13; in x float [1]; out y;"
				   "init c bool [] 1; node If c > y :"
				   "then_branch={ node Neg y > t; out t; }"
				   "else_branch={ node Abs x > t; out t; };"},
	};

	(void)state;
	REFUSED(t);
}

static void test_functions_that_call_themselves(void **state)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb m = onnx_write(a, "opset 13; opset 1 my; in x float [1]; out y;"
			     "node my/F x > y;");
	pb two = m, branch = m;

	(void)state;
	two.s = str_new(a);
	str_addn(&two.s, m.s.at, m.s.n);
	branch.s = str_new(a);
	str_addn(&branch.s, m.s.at, m.s.n);
	add_function(a, &m, "F", 1, (const char *const[]){"my/F a > b;"});
	refused_bytes(&m, "onnx.depth", "F calls F");
	add_function(a, &two, "F", 1, (const char *const[]){"my/G a > b;"});
	add_function(a, &two, "G", 1, (const char *const[]){"my/F a > b;"});
	refused_bytes(&two, "onnx.depth", "F calls G calls F");
	add_function(a, &branch, "F", 1, (const char *const[]){
		"If c > b : then_branch={ node my/F a > t; out t; }"
		"else_branch={ node my/F a > t; out t; init c bool [] 1; };"});
	refused_bytes(&branch, "onnx.undefined", "F in a branch, no condition");
	add_function(a, &branch, "F", 1, (const char *const[]){
		"Neg a > b;"});
	refused_bytes(&branch, "onnx.duplicate", "F twice");
	arena_free(a);
	env_free(e);
}

/* Thirty functions, each calls the next twice: 2^30 nodes in a kilobyte. */
static void test_functions_that_double(void **state)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb m = onnx_write(a, "opset 13; opset 1 my; in x float [1]; out y;"
			     "node my/F0 x > y;");

	(void)state;
	for (int i = 0; i < 30; i++)
		add_function(a, &m, arena_printf(a, "F%d", i), 2,
			(const char *const[]){
				arena_printf(a, i < 29 ? "my/F%d a > c;"
						       : "Neg a > c;", i + 1),
				arena_printf(a, i < 29 ? "my/F%d c > b;"
						       : "Neg c > b;", i + 1)});
	refused_bytes(&m, "onnx.size", "functions that double");
	arena_free(a);
	env_free(e);
}

static void test_huge_dimensions(void **state)
{
	static const struct text t[] = {
		{"tn.extent", "opset 13; in x float [4294967296,4294967296];"
			      "out y; node Neg x > y;"},
		{"tn.extent", "opset 13; in x float [9223372036854775807];"
			      "out y; node Neg x > y;"},
		{"onnx.size", "opset 13; init x float [281474976710656,2] 1;"
			      "out y; node Neg x > y;"},
		{"onnx.size", "opset 13; typed x int64 [281474976710656] 1;"
			      "out y; node Neg x > y;"},
		{"fill.size", "opset 13; init s int64 [2] 4294967296 4294967296;"
			      "out y; node ConstantOfShape s > y;"},
		{"onnx.shape", "opset 13; in x float [1]; init s int64 [1] "
			       "-9223372036854775807; out y;"
			       "node Expand x s > y;"},
		{"broadcast_to.size", "opset 13; in x float [1]; init s int64 [2] "
			      "4611686018427387904 4; out y;"
			      "node Expand x s > y;"},
		{"tile.overflow", "opset 13; in x float [2]; init r int64 [1] "
			      "9223372036854775807; out y;"
			      "node Tile x r > y;"},
		{"pad.overflow", "opset 13; in x float [2]; init p int64 [2] "
			      "9223372036854775807 9223372036854775807; out y;"
			      "node Pad x p > y;"},
		{"onnx.size", "opset 13; init a int64 [] 0; init d int64 [] 1;"
			      "init b int64 [] 9223372036854775807; out y;"
			      "node Range a b d > y;"},
		{"onnx.attr", "opset 13; in x int64 [4]; init n int64 [] "
			      "4611686018427387904; init v float [2] 0 1; out y;"
			      "node OneHot x n v > y;"},
		{"onnx.attr", "opset 13; in x float [1,1,2]; init w float "
			      "[1,1,2] 1 1; out y; node ConvTranspose x w > y :"
			      "strides=[4611686018427387904];"},
		{"onnx.attr", "opset 13; in x float [1,1,2]; out y;"
			      "node MaxPool x > y : kernel_shape=[2]"
			      "pads=[4611686018427387904,4611686018427387904];"},
	};

	(void)state;
	REFUSED(t);
}

static void test_wrong_types(void **state)
{
	static const struct text t[] = {
		{"add.dtype", "opset 13; in x float [1]; in z int64 [1]; out y;"
			      "node Add x z > y;"},
		{"onnx.type", "opset 13; in x float [1]; out y;"
			      "node SequenceConstruct x > s; node Neg s > y;"},
		{"onnx.elem", "opset 13; in x nonsense [1]; out y;"
			      "node Neg x > y;"},
		{"onnx.attr", "opset 13; in x float [1]; out y;"
			      "node Softmax x > y : axis=0.5;"},
		{"onnx.attr", "opset 13; in x float [1]; out y;"
			      "node Cast x > y : to=\"float\";"},
		{"onnx.elem", "opset 13; in x float [1]; out y;"
			      "node Cast x > y : to=77;"},
		{"onnx.type", "opset 13; in x float [1]; out y; init c float [] "
			      "1; node If c > y : then_branch={ node Neg x > t;"
			      "out t; } else_branch={ node Abs x > t; out t; };"},
		{"onnx.type", "opset 13; in x float [2]; init s float [1] 2;"
			      "out y; node Reshape x s > y;"},
		{"take.dtype", "opset 13; in x float [2]; init i float [1] 0;"
			      "out y; node Gather x i > y;"},
		{"onnx.type", "opset 13; in x float [1]; init n float [] 3;"
			      "out y; node Loop n _ x > y : body={"
			      "in i int64 []; in c bool []; in v float [1];"
			      "out c; out v; };"},
	};

	(void)state;
	REFUSED(t);
}

/* What does not fit is called as the model calls it, not by numbers. */
static void test_messages_name_values(void **state)
{
	static const struct text cases[] = {
		{"add: foo: f32[2] and z: f32[3] do not broadcast",
			"opset 13; in foo float [2]; in z float [3]; out y;"
			"node Add foo z > y;"},
		{"add: foo: f32[2] and w: f32[3] do not broadcast",
			"opset 13; in foo float [2]; init w float [3] 1 2 3;"
			"out y; node Add foo w > y;"},
		{"matmul: k is 3 in t: f32[2,3] but 4 in bar: f32[4,5]",
			"opset 13; in foo float [2,3]; in bar float [4,5];"
			"out y; node Neg foo > t; node MatMul t bar > y;"},
		{"add: foo: f32[2] and n: i64[2] differ in dtype",
			"opset 13; in foo float [2]; in n int64 [2]; out y;"
			"node Add foo n > y;"},
	};

	env *e = env_new();
	arena *a = arena_new(e);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		pb bytes = onnx_write(a, cases[i].model);
		tn_diag d = {0};

		assert_int_equal(unit_run(builds, &bytes, 0, &d), TN_EINVAL);
		if (strstr(d.text, cases[i].rule) == NULL)
			fail_msg("%s\n%s\n%s", cases[i].model, d.text,
				cases[i].rule);
	}
	arena_free(a);
	env_free(e);
}

static void test_missing_initialiser(void **state)
{
	static const struct text t[] = {
		{"onnx.undefined", "opset 13; in x float [1,2]; out y;"
				   "node Gemm x w b > y;"},
		{"onnx.input", "opset 13; in x float [1,2]; out y;"
			       "node Gemm x _ > y;"},
		{"onnx.size", "opset 13; in x float [2]; init w float [2] ;"
			      "out y; node Add x w > y;"},
		{"onnx.undefined", "opset 13; in x float [1]; out y;"
				   "init c bool [] 1; node If c > y :"
				   "then_branch={ node Add x w > t; out t; }"
				   "else_branch={ init w float [1] 1;"
				   "node Add x w > t; out t; };"},
	};

	(void)state;
	REFUSED(t);
}

/* ---- depth ---- */

enum { DEEP = 10000 };

/* part as field `field` of a message, DEEP times within each other */
static pb nest(arena *a, const uint32_t *field, int n_fields)
{
	/* written from the inside: each head goes before what is there */
	size_t room = (size_t)DEEP * 24, at = room;
	char *bytes = arena_alloc(a, room, 1);
	pb out = pb_new(a);

	for (int i = 0; i < DEEP; i++)
		for (int k = 0; k < n_fields; k++) {
			pb head = {str_new(a)};

			pb_varint(&head, field[k] << 3 | 2);
			pb_varint(&head, room - at);
			at -= head.s.n;
			memcpy(bytes + at, head.s.at, head.s.n);
		}
	str_addn(&out.s, bytes + at, room - at);
	return out;
}

static void reads_value(arena *a, void *arg)
{
	const pb *bytes = arg;
	onnx_type type[2] = {{.kind = ONNX_SEQUENCE}, {.kind = ONNX_SEQUENCE}};
	int32_t n;

	type[0].of = type[1].of = type; /* a sequence of itself */
	(void)onnx_parse_value(a, NULL, "v.pb", bytes->s.at, bytes->s.n, type, &n);
}

static void test_deep_nesting(void **state)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb g, m = pb_new(a), port = pb_new(a), graph = pb_new(a);
	tn_diag d = {0};

	(void)state;
	/* node, attribute, graph: from the inside */
	g = nest(a, (const uint32_t[]){6, 5, 1}, 3);
	pb_part(&m, 7, &g);
	refused_bytes(&m, "onnx.depth", "graphs");
	/* seq(seq(seq(...))): elem_type of Sequence, sequence of Type */
	g = nest(a, (const uint32_t[]){1, 4}, 2);
	pb_text(&port, 1, "x");
	pb_part(&port, 2, &g);
	pb_part(&graph, 11, &port);
	m = pb_new(a);
	pb_part(&m, 7, &graph);
	refused_bytes(&m, "onnx.depth", "types");
	/* sequences of sequences as a value */
	g = nest(a, (const uint32_t[]){5}, 1);
	assert_int_equal(unit_run(reads_value, &g, 0, &d), TN_EINVAL);
	assert_memory_equal(d.rule, "onnx.", 5);
	/* function 0 calls 1 calls 2 ... */
	m = onnx_write(a, "opset 13; opset 1 my; in x float [1]; out y;"
			  "node my/F0 x > y;");
	for (int i = 0; i < DEEP; i++)
		add_function(a, &m, arena_printf(a, "F%d", i), 1,
			(const char *const[]){arena_printf(a,
				i < DEEP - 1 ? "my/F%d a > b;" : "Neg a > b;",
				i + 1)});
	refused_bytes(&m, "onnx.depth", "functions");
	arena_free(a);
	env_free(e);
}

/* ---- names ---- */

#define EVIL "\");}\nint main(void){system(\"touch pwned\");} /* */ // \\\n"  \
	     "#include \"/etc/passwd\"\n%n%s%d $(touch pwned) `id` ../../x \033[2J'"

static void add_port(arena *a, pb *g, uint32_t field, const char *name)
{
	pb port = pb_new(a), type = pb_new(a), of = pb_new(a), shape = pb_new(a);
	pb dim = pb_new(a);

	pb_int(&of, 1, 1);
	pb_text(&dim, 2, EVIL "dim");
	pb_part(&shape, 1, &dim);
	pb_part(&of, 2, &shape);
	pb_part(&type, 1, &of);
	pb_text(&port, 1, name);
	pb_part(&port, 2, &type);
	pb_part(g, field, &port);
}

static void write_evil(const char *path, const char *op)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb model = pb_new(a), g = pb_new(a), n = pb_new(a), opset = pb_new(a);
	mk m = {a, "w float [2] 3 5;", 0};
	pb w = mk_tensor(&m, "init"), own = pb_new(a);
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	pb_int(&model, 1, 8);
	pb_text(&model, 2, EVIL "producer");
	pb_text(&n, 1, EVIL "x");
	pb_text(&n, 1, EVIL "w");
	pb_text(&n, 2, EVIL "y");
	pb_text(&n, 3, EVIL "node");
	pb_text(&n, 4, op);
	pb_text(&n, 7, op[0] == 'F' ? EVIL "domain" : "");
	pb_part(&g, 1, &n);
	pb_text(&g, 2, EVIL "graph");
	pb_text(&w, 8, EVIL "w");
	pb_part(&g, 5, &w);
	add_port(a, &g, 11, EVIL "x");
	add_port(a, &g, 12, EVIL "y");
	pb_part(&model, 7, &g);
	pb_int(&opset, 2, 13);
	pb_part(&model, 8, &opset);
	pb_text(&own, 1, EVIL "domain");
	pb_int(&own, 2, 1);
	pb_part(&model, 8, &own);
	assert_int_equal(fwrite(model.s.at, 1, model.s.n, f), model.s.n);
	assert_int_equal(fclose(f), 0);
	arena_free(a);
	env_free(e);
}

static void runs_evil(tn_context *c, const char *path)
{
	float x[2] = {2, 4}, y[2] = {0};
	const void *in = x;
	void *out = y;
	tn_program *p;
	tn_onnx *m;
	char *text;

	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(tn_onnx_bind_dim(m, EVIL "dim", 2), TN_OK);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_string_equal(tn_program_input(p, 0)->name, EVIL "x");
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	assert_true(y[0] == 6 && y[1] == 20);
	for (int level = 0; level <= TN_LEVEL_C; level++) {
		assert_int_equal(tn_program_explain(&text, p,
					 (tn_level)level, 0), TN_OK);
		assert_null(strstr(text, "touch pwned"));
		tn_text_free(text);
	}
	assert_int_equal(tn_onnx_info(&text, m, true), TN_OK);
	assert_null(strchr(text, '\033'));
	tn_text_free(text);
	tn_program_free(p);
	tn_onnx_free(m);
}

static void test_names_that_are_code(void **state)
{
	char folder[] = "/tmp/tenon_hostile_XXXXXX", path[100], old[500];
	tn_context *c;
	tn_program *p;
	tn_onnx *m;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_non_null(getcwd(old, sizeof old));
	assert_int_equal(chdir(folder), 0);
	snprintf(path, sizeof path, "%s/m.onnx", folder);
	write_evil(path, "Mul");
	for (int interp = 0; interp < 2; interp++) {
		tn_options o = TN_OPTIONS_INIT;

		o.interp = interp;
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		runs_evil(c, path);
		tn_context_free(c);
	}
	/* an operator that there is not, in words for a terminal */
	write_evil(path, "F" EVIL);
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(tn_onnx_bind_dim(m, EVIL "dim", 2), TN_OK);
	assert_int_equal(tn_onnx_build(&p, m), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.operator");
	tn_onnx_free(m);
	tn_context_free(c);
	assert_int_equal(access("pwned", F_OK), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(chdir(old), 0);
	assert_int_equal(rmdir(folder), 0); /* nothing else was made */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_cyclic),
		cmocka_unit_test(test_functions_that_call_themselves),
		cmocka_unit_test(test_functions_that_double),
		cmocka_unit_test(test_huge_dimensions),
		cmocka_unit_test(test_wrong_types),
		cmocka_unit_test(test_messages_name_values),
		cmocka_unit_test(test_missing_initialiser),
		cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_names_that_are_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
