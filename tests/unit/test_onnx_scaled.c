/*
 * onnx/scaled.c: sums of products of quantised values are sums of integers. Each
 * case is imported twice: with scales that are known, and with scales that are
 * inputs, where nothing is changed. Both give the same values but for rounding.
 */
#include "onnx_run.h"

#include <float.h>
#include <unistd.h>

/* a = DequantizeLinear(x, sx, zx), b the same of w; y is made of them. */
typedef struct scaled_case {
	const char *x, *sx, *zx, *of_x; /* of_x: attributes */
	const char *w, *sw, *zw, *of_w;
	const char *nodes;
	bool is_changed; /* the sum is one of integers */
} scaled_case;

#define ONE "float [] 0.02"
#define U8 "uint8 [] 117"
#define I8 "int8 [] 0"
#define X "uint8 [3,16]", ONE, U8, ""
#define W "int8 [16,4]", ONE, I8, ""
#define FOUR "float [4] 0.5 -0.25 0.013 3"
#define ROWS "float [16] 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8"
#define PRODUCT "node MatMul a b > y;"
#define IMAGE "uint8 [2,4,5,5]", ONE, U8, ""

static const scaled_case cases[] = {
	{X, W, PRODUCT, true},
	{"uint8 [2,3,16]", ONE, U8, "", "int8 [2,16,4]", ONE, I8, "", PRODUCT,
		true},
	/* one scale for each column of w, each row of x; for what is summed */
	{X, "int8 [16,4]", FOUR, "int8 [4] 1 0 -2 0", " : axis=1", PRODUCT, true},
	{"uint8 [3,16]", "float [3] 1 2 3", "uint8 [3] 0 9 255", " : axis=0", W,
		PRODUCT, true},
	{X, "int8 [16,4]", ROWS, "", " : axis=0", PRODUCT, false},
	{X, "int8 [16,4]", "float [4,4] 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2", "",
		" : axis=0 block_size=4", PRODUCT, false},
	/* behind what only moves */
	{X, "int8 [4,16]", FOUR, "int8 [4] 1 0 -2 0", " : axis=0",
		"init c float [4] 1 2 3 4;"
		"node Gemm a b c > y : transB=1 alpha=0.5 beta=2.5;", true},
	{X, "int8 [4,16]", FOUR, "", " : axis=0",
		"node Transpose b > t; node MatMul a t > y;", true},
	{X, "int8 [64]", ONE, I8, "",
		"init n int64 [2] 16 4; node Reshape b n > t;"
		"node MatMul a t > y;", true},
	{X, "int8 [14,4]", ONE, "int8 [] 7", "",
		"init p int64 [4] 1 0 1 0; node Pad b p > t;"
		"node MatMul a t > y;", true},
	{X, "int8 [14,4]", ONE, "int8 [] 7", "",
		"init p int64 [4] 1 0 1 0; init v float [] 1;"
		"node Pad b p v > t; node MatMul a t > y;", false},
	{X, W, "node Neg b > t; node MatMul a t > y;", false},
	/* sliding windows */
	{IMAGE, "int8 [4,4,3,3]", FOUR, "int8 [4] 1 0 -2 0", " : axis=0",
		"init c float [4] 1 2 3 4;"
		"node Conv a b c > y : pads=[1,1,1,1];", true},
	{IMAGE, "int8 [4,2,3,3]", FOUR, "", " : axis=0",
		"node Conv a b > y : group=2 strides=[2,2] dilations=[2,1];",
		true},
	{IMAGE, "int8 [4,1,3,3]", FOUR, "", " : axis=0",
		"node Conv a b > y : group=4 pads=[1,1,1,1];", true},
	{IMAGE, "int8 [4,4,3,3]", FOUR, "", " : axis=1", "node Conv a b > y;",
		false},
	{IMAGE, "int8 [4,2,3,3]", ONE, I8, "",
		"node ConvTranspose a b > y : strides=[2,2];", true},
	/* any sum of products */
	{X, "int8 [4,16]", ONE, I8, "",
		"node Einsum a b > y : equation=\"ik,jk->ji\";", true},
	{X, W, "init r int64 [1] 1; node ReduceSum a r > y;", true},
	{X, W, "init r int64 [1] 1; node ReduceMax a r > y;", false},
	/* other integers: those whose sums i32 does not hold */
	{"int8 [3,16]", ONE, I8, "", "int4 [16,4]", FOUR, "", " : axis=1",
		PRODUCT, true},
	{"uint16 [3,16]", ONE, "uint16 [] 32768", "", W, PRODUCT, true},
	{"uint16 [3,600]", ONE, "uint16 [] 32768", "", "int8 [600,2]", ONE, I8,
		"", PRODUCT, false},
	{"int16 [3,16]", ONE, "", "", "int16 [16,4]", ONE, "", "", PRODUCT,
		false},
	/* scales that are no normal numbers, or whose products are none */
	{"uint8 [3,16]", "float [] 1e-40", U8, "", W, PRODUCT, false},
	{"uint8 [3,16]", "float [] 0", U8, "", W, PRODUCT, false},
	{"uint8 [3,16]", "float [] 1e-20", U8, "", "int8 [16,4]",
		"float [] 1e-20", I8, "", PRODUCT, false},
	{"uint8 [3,16]", "float [] 1e20", U8, "", "int8 [16,4]",
		"float [] 1e15", I8, "", PRODUCT, false},
	/* rounded to f16 before the product */
	{"uint8 [3,16]", "float16 [] 0.5", U8, "", "int8 [16,4]",
		"float16 [] 0.25", I8, "", PRODUCT, false},
};

/* "uint8 [3,16]" and an element for each, drawn from the type's numbers */
static const char *drawn(arena *a, const char *type, uint32_t seed)
{
	str s = str_new(a);
	int64_t n = 1, span, least;
	char *at = strchr(type, '[') + 1;

	while (*at != ']') {
		n *= strtoll(at, &at, 10);
		at += *at == ',';
	}
	span = strstr(type, "int16") != NULL ? 65536
	       : strstr(type, "int4") != NULL ? 16 : 256;
	least = type[0] == 'u' ? 0 : -span / 2;
	str_add(&s, type);
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		str_printf(&s, " %lld", (long long)(least +
			(int64_t)(seed >> 8) % span));
	}
	return s.at;
}

/* The type of a text "float [4] 1 2 3 4": "float [4]". */
static int type_length(const char *text)
{
	return (int)(strchr(text, ']') - text) + 1;
}

static void add_operand(arena *a, str *s, const char *name,
	const char *const *part, char out, bool known)
{
	str_printf(s, "init %s %s;", name, drawn(a, part[0], (uint32_t)*name));
	if (known)
		str_printf(s, "init s%s %s;", name, part[1]);
	else
		str_printf(s, "in s%s %.*s;", name, type_length(part[1]),
			part[1]);
	if (part[2][0] != '\0')
		str_printf(s, "init z%s %s;", name, part[2]);
	str_printf(s, "node DequantizeLinear %s s%s %s%s > %c%s;", name, name,
		part[2][0] != '\0' ? "z" : "", part[2][0] != '\0' ? name : "",
		out, part[3]);
}

static onnx_import *import_of(arena *a, const scaled_case *c, bool known)
{
	const char *const x[] = {c->x, c->sx, c->zx, c->of_x};
	const char *const w[] = {c->w, c->sw, c->zw, c->of_w};
	str s = str_new(a);
	pb bytes;

	str_add(&s, "opset 21; out y;");
	add_operand(a, &s, "x", x, 'a', known);
	add_operand(a, &s, "w", w, 'b', known);
	str_add(&s, c->nodes);
	bytes = onnx_write(a, s.at);
	return onnx_import_new(a, parse_model(a, &bytes, NULL));
}

/* Is there a sum of integers in the program? */
static bool sums_integers(const ir_program *p)
{
	for (int32_t i = 0; i < p->call.n; i++) {
		const ir_call *c = &p->call.at[i];

		for (int32_t k = 0; k < c->inst->n_eqns; k++)
			if (c->inst->eqn[k].monoid == IR_SUM &&
				p->value.at[c->result[0]].type.dtype == TN_I32)
				return true;
	}
	return false;
}

static void check_case(arena *a, void *arg)
{
	const scaled_case *c = arg;
	onnx_array in[2] = {parse_value(a, NULL, c->sx),
		parse_value(a, NULL, c->sw)};
	onnx_import *x = import_of(a, c, true);
	onnx_array got, want;
	double most = 0;

	if (sums_integers(onnx_import_run(x).ir) != c->is_changed) {
		print_error("%s of %s and %s\n", c->nodes, c->x, c->w);
		fail();
	}
	got = run_import(a, import_of(a, c, true), NULL);
	want = run_import(a, import_of(a, c, false), in);
	assert_true(ir_type_same(&got.type, &want.type));
	for (int64_t i = 0; i < shape_numel(want.type.shape, want.type.rank); i++)
		most = fmax(most, fabs(dtype_load_f64(
					  want.type.dtype, want.data, i)));
	for (int64_t i = 0; i < shape_numel(want.type.shape, want.type.rank); i++) {
		double v = dtype_load_f64(got.type.dtype, got.data, i);
		double w = dtype_load_f64(want.type.dtype, want.data, i);

		/* of some hundred terms, each rounded twice */
		if (v != w && !(isnan(v) && isnan(w)) && !(fabs(v - w) <= 200 * (double)FLT_EPSILON * most)) {
			print_error("%s: element %lld is %g, not %g\n",
				c->nodes, (long long)i, v, w);
			fail();
		}
	}
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		scaled_case c = cases[i];
		tn_diag d = {0};

		if (unit_run(check_case, &c, 0, &d) != TN_OK) {
			print_error("case %zu: %s: %s\n", i, d.rule, d.text);
			fail();
		}
	}
}

/* ---- exact ---- */

/*
 * 1024 products 255 * 127, then 1024 products 1 * 1: a sum in f32 loses the ones,
 * since the numbers behind 33162240 are 2 apart, and 1 is half of that.
 */
static void check_exact(arena *a, void *arg)
{
	str s = str_new(a);
	onnx_array y;

	(void)arg;
	str_add(&s, "opset 21; out y; init s float [] 0.5; init x uint8 [1,2048]");
	for (int32_t i = 0; i < 2048; i++)
		str_add(&s, i < 1024 ? " 255" : " 1");
	str_add(&s, "; init w int8 [2048,1]");
	for (int32_t i = 0; i < 2048; i++)
		str_add(&s, i < 1024 ? " 127" : " 1");
	str_add(&s, "; node DequantizeLinear x s > a; node DequantizeLinear w s > b;"
		    "node MatMul a b > y;");
	y = run_given(a, s.at, NULL);
	assert_true(dtype_load_f64(y.type.dtype, y.data, 0) ==
		(1024 * 255 * 127 + 1024) / 4.0);
}

static void test_exact(void **state)
{
	tn_diag d = {0};

	(void)state;
	assert_int_equal(unit_run(check_exact, NULL, 0, &d), TN_OK);
}

/* The greatest sum that i32 holds, and one term more. */
static void check_border(arena *a, void *arg)
{
	static const int32_t terms[] = {
		INT32_MAX / (255 * 255), INT32_MAX / (255 * 255) + 1};

	(void)arg;
	for (int32_t i = 0; i < 2; i++) {
		int32_t n = terms[i];
		str s = str_new(a);
		onnx_program p;
		pb bytes;

		str_printf(&s, "opset 21; in x uint8 [1,%d]; in w uint8 [%d,1];"
			"init s float [] 1; node DequantizeLinear x s > a;"
			"node DequantizeLinear w s > b; node MatMul a b > y;"
			"out y;", (int)n, (int)n);
		bytes = onnx_write(a, s.at);
		p = onnx_import_run(
			onnx_import_new(a, parse_model(a, &bytes, NULL)));
		assert_int_equal(sums_integers(p.ir), i == 0);
	}
}

static void test_border(void **state)
{
	tn_diag d = {0};

	(void)state;
	assert_int_equal(unit_run(check_border, NULL, 0, &d), TN_OK);
}

/* ---- exported ---- */

/* ONNX has no convolution of i32: it is one of f64, between casts. */
static void test_export(void **state)
{
	static const char text[] = "opset 21; in x uint8 [1,1,3]; out y;"
		"init s float [] 0.5; init w int8 [1,1,2] 1 -127;"
		"node DequantizeLinear x s > a; node DequantizeLinear w s > b;"
		"node Conv a b > y;";
	static const unsigned char x[3] = {255, 3, 200};
	char path[] = "/tmp/tenon_onnx_XXXXXX", *info;
	tn_options o = TN_OPTIONS_INIT;
	const void *in = x;
	float y[2];
	void *out = y;
	env *e = env_new();
	arena *a = arena_new(e);
	pb bytes = onnx_write(a, text);
	int fd = mkstemp(path);
	tn_context *c;
	tn_program *p;
	tn_onnx *m;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.s.at, bytes.s.n), bytes.s.n);
	close(fd);
	o.interp = true;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	for (int k = 0; k < 2; k++) { /* as written, as exported */
		assert_int_equal(tn_onnx_load(&p, c, path), TN_OK);
		assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
		assert_true(y[0] == (255 - 127 * 3) / 4.0F &&
			y[1] == (3 - 127 * 200) / 4.0F);
		assert_int_equal(tn_onnx_export(p, path), TN_OK);
		tn_program_free(p);
	}
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	assert_int_equal(tn_onnx_info(&info, m, false), TN_OK);
	assert_non_null(strstr(info, "Conv"));
	assert_null(strstr(info, "cannot run"));
	tn_text_free(info);
	tn_onnx_free(m);
	tn_context_free(c);
	unlink(path);
	arena_free(a);
	env_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_border),
		cmocka_unit_test(test_export),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
