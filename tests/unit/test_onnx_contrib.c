/*
 * onnx/: operators of com.microsoft on values that ONNX Runtime has computed:
 * tests/conform/contrib.txt, which bench/peers/contrib.py writes. A case there:
 *
 *     # NAME
 *     node com.microsoft/BiasGelu i0 i1 > o0;
 *     i0 float [2] 1 2
 *     ...
 *     o0 float [2] ...
 *
 * And what quantisation refuses.
 */
#define _POSIX_C_SOURCE 200809L
#include "onnx_run.h"

#include <stdlib.h>

/* of a number, and absolutely: sums in another order */
enum { PARTS = 10000, MOST_CASES = 1000 };

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text;
	long n;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	n = ftell(f);
	rewind(f);
	text = calloc((size_t)n + 1, 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)n, f), n);
	fclose(f);
	return text;
}

static void same(const char *name, const onnx_array *got, const onnx_array *want)
{
	int64_t n = shape_numel(want->type.shape, want->type.rank);

	if (got->elem != want->elem || got->type.rank != want->type.rank)
		print_error("%s: another type\n", name);
	assert_int_equal(got->elem, want->elem);
	assert_int_equal(got->type.rank, want->type.rank);
	for (int32_t i = 0; i < want->type.rank; i++)
		assert_int_equal(got->type.shape[i], want->type.shape[i]);
	for (int64_t i = 0; i < n; i++) {
		double x = dtype_load_f64(got->type.dtype, got->data, i);
		double y = dtype_load_f64(want->type.dtype, want->data, i);
		double may = dtype_is_float(want->type.dtype)
			? (1 + fabs(y)) / PARTS : 0;

		if (x != y && !(fabs(x - y) <= may)) {
			print_error("%s: element %lld is %g, not %g\n", name,
				(long long)i, x, y);
			fail();
		}
	}
}

/* One block of the file: its inputs become initialisers. */
static void run_block(arena *a, void *arg)
{
	char *block = arg, *rest = NULL, *line;
	const char *name = strtok_r(block, "\n", &rest) + 2;
	const char *node = strtok_r(NULL, "\n", &rest);
	str s = str_new(a);

	str_add(&s, "opset 17; opset 1 com.microsoft;");
	while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
		onnx_array got, want;
		const char *model, *value = strchr(line, ' ') + 1;

		if (line[0] == 'i') {
			str_printf(&s, "init %s;", line);
			continue;
		}
		model = arena_printf(a, "%sout %.*s;%s", s.at,
			(int)(value - line - 1), line, node);
		got = run_given(a, model, NULL);
		want = parse_value(a, NULL, value);
		same(name, &got, &want);
	}
}

static void test_cases(void **state)
{
	const char *root = getenv("TN_SOURCE_ROOT");
	char path[4096], *text, *at;
	int32_t n = 0;

	(void)state;
	assert_non_null(root);
	snprintf(path, sizeof path, "%s/tests/conform/contrib.txt", root);
	text = at = slurp(path);
	for (char *end; (end = strstr(at, "\n\n")) != NULL; at = end + 2, n++) {
		tn_diag d = {0};
		char name[64];

		*end = '\0';
		snprintf(name, sizeof name, "%.50s", at);
		if (unit_run(run_block, at, 0, &d) != TN_OK) {
			print_error("%s: %s: %s\n", name, d.rule, d.text);
			fail();
		}
	}
	free(text);
	assert_in_range(n, 50, MOST_CASES);
}

/* ---- what is refused ---- */

#define DQ(x, s, z, more)                                                      \
	"opset 21; init x " x "; init s " s "; init z " z "; out y;"           \
	"node DequantizeLinear x s z > y" more ";"
#define MS "opset 17; opset 1 com.microsoft; out y;"
#define BITS(w, s, more)                                                       \
	MS "init x float [1,16] 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1; init w " w   \
	   "; init s " s "; node com.microsoft/MatMulNBits x w s > y : K=16 " more \
	   ";"
#define EIGHT "uint8 [1,1,8] 1 2 3 4 5 6 7 8"

#define GQA(last, total, more)                                                 \
	MS "init q float [1,2,1] 0 0; init k float [1,2,1] 3 4; init l " last  \
	   "; init t " total "; node com.microsoft/GroupQueryAttention q k k _ " \
	   "_ l t > y : num_heads=1 kv_num_heads=1" more ";"
#define MHA(more, inits)                                                       \
	MS "init q float [1,2,1] 0 0; init k float [1,2,1] 3 4;" inits         \
	   "node com.microsoft/MultiHeadAttention q k k " more                 \
	   " > y : num_heads=1;"
#define LSTM(s, z)                                                             \
	"opset 17; opset 1 com.microsoft; out h; init x float [1,1,1] 0;"      \
	"init w int8 [1,1,4] 1 2 3 4; init s " s "; init z " z                 \
	"; node com.microsoft/DynamicQuantizeLSTM x w w _ _ _ _ _ s z s z > " \
	"y h : hidden_size=1;"

static const run_case refused[] = {
	/* a scale per index, and as many zero points */
	{DQ("int8 [2] 3 5", "float [2] 1 2", "int8 [2] 1 1", " : axis=0"),
		{NULL}, "float [2] 2 8"},
	{DQ("int8 [2] 3 5", "float [3] 1 2 3", "int8 [3] 1 1 1", " : axis=0"),
		{NULL}, "!onnx.shape"},
	{DQ("int8 [2] 3 5", "float [2] 1 2", "int8 [1] 1", " : axis=0"),
		{NULL}, "!onnx.shape"},
	{DQ("int8 [2] 3 5", "float [1,2] 1 2", "int8 [1,2] 1 1", " : axis=0"),
		{NULL}, "!onnx.shape"},
	{DQ("int8 [2] 3 5", "float [2] 1 2", "int8 [2] 1 1", " : axis=1"),
		{NULL}, "!onnx.axis"},
	{DQ("int8 [2] 3 5", "float [] 1", "uint8 [] 1", ""), {NULL},
		"!onnx.elem"},
	{DQ("int8 [2] 3 5", "int32 [] 1", "int8 [] 1", ""), {NULL},
		"!onnx.elem"},
	{"opset 21; init x float [2] 1 2; init s float [] 1; init z int8 [] 0;"
	 "out y; node QuantizeLinear x s z > y : output_dtype=2;", {NULL},
		"!onnx.elem"},
	{"opset 21; init x int8 [2,2] 1 2 3 4; init z int8 [3,1] 0 0 0; out y;"
	 "node MatMulInteger x x z > y;", {NULL}, "!onnx.shape"},
	{"opset 21; init x int8 [2,2] 1 2 3 4; init z int8 [2] 0 1; out y;"
	 "node MatMulInteger x x _ z > y;", {NULL}, "int32 [2,2] 7 7 15 15"},
	{"opset 21; init x int8 [2,2] 1 2 3 4; init z int8 [3] 0 0 0; out y;"
	 "node MatMulInteger x x _ z > y;", {NULL}, "!onnx.shape"},
	{"opset 21; init x int8 [2,2] 1 2 3 4; init z uint8 [] 0; out y;"
	 "node MatMulInteger x x z > y;", {NULL}, "!onnx.elem"},
	{MS "init x uint8 [2] 1 2; init s float [2] 1 1; init z uint8 [] 0;"
	    "node com.microsoft/QLinearSigmoid x s z s z > y;", {NULL},
		"!onnx.shape"},
	{MS "init x uint8 [2] 1 2; init s float [] 1; init z int8 [] 0;"
	    "node com.microsoft/QLinearSigmoid x s _ s z > y;", {NULL},
		"!onnx.elem"},
	{MS "init x uint8 [2] 1 2; init s float [] 1; init z uint8 [] 0;"
	    "node com.microsoft/QLinearConcat s z x s > y : axis=0;", {NULL},
		"!onnx.input"},
	{MS "init x float [2] 1 2; init w float [1,2] 1 1;"
	    "node com.microsoft/FusedGemm w w _ > y : transB=1 "
	    "activation=\"Wave\";", {NULL}, "!onnx.attr"},
	{BITS(EIGHT, "float [1,1] 1", "N=1 block_size=16"), {NULL},
		"float [1,1] -92"},
	{BITS(EIGHT, "float [1,1] 1", "N=1 block_size=16 bits=3"), {NULL},
		"!onnx.attr"},
	{BITS(EIGHT, "float [1,1] 1", "N=1 block_size=8"), {NULL},
		"!onnx.attr"},
	{BITS(EIGHT, "float [2,1] 1 1", "N=1 block_size=16"), {NULL},
		"!onnx.shape"},
	{BITS("int8 [1,1,8] 1 2 3 4 5 6 7 8", "float [1,1] 1",
		 "N=1 block_size=16"), {NULL}, "!onnx.elem"},
	{BITS(EIGHT, "float [1,1] 1", "N=1 block_size=16 weight_prepacked=1"),
		{NULL}, "!onnx.attr"},
	{MS "init x float [2,3] 1 2 3 4 5 6; init g float [2] 1 1;"
	    "node com.microsoft/SkipLayerNormalization x x g > y;", {NULL},
		"!onnx.shape"},
	{GQA("int32 [1] 1", "int32 [] 2", ""), {NULL}, "float [1,2,1] 3 3.5"},
	{GQA("int32 [1] 1", "int32 [] 1", ""), {NULL}, "!onnx.attr"},
	{GQA("int32 [2] 1 1", "int32 [] 2", ""), {NULL}, "!onnx.shape"},
	{GQA("int32 [1] 1", "int32 [] 2", " k_quant_type=\"PER_TENSOR\""),
		{NULL}, "!onnx.attr"},
	{GQA("int32 [1] 1", "int32 [] 2", " qk_output=1"), {NULL},
		"!onnx.attr"},
	{MS "init q float [1,1,4] 1 2 3 4; init l int32 [1] 0; init t int32 [] 1;"
	    "node com.microsoft/GroupQueryAttention q _ _ _ _ l t > y : "
	    "num_heads=1 kv_num_heads=1;", {NULL}, "!onnx.shape"},
	/* a query that may see no key has weights, nevertheless */
	{MHA("_ m", "init m int32 [1] 0;"), {NULL}, "float [1,2,1] 3.5 3.5"},
	{MHA("_ m", "init m int32 [1,2] 0 1;"), {NULL}, "float [1,2,1] 4 4"},
	{MHA("_ m", "init m int32 [3] 0 1 1;"), {NULL}, "!onnx.shape"},
	{MHA("m", "init m float [2] 0 1;"), {NULL}, "!onnx.shape"},
	{MHA("_ _ _ q", ""), {NULL}, "!onnx.input"},
	{MS "init x float [1,2,1] 1 2; init i int64 [] 0;"
	    "init c float [2,1] 1 1;"
	    "node com.microsoft/RotaryEmbedding x i c c > y;", {NULL},
		"!onnx.shape"},
	{MS "init x float [1,2,2] 1 2 3 4; init i int64 [1] 0;"
	    "init c float [2,1] 1 1;"
	    "node com.microsoft/RotaryEmbedding x i c c > y;", {NULL},
		"float [1,2,2] -1 3 -1 7"},
	{MS "init x float [1,2,2] 1 2 3 4; init i int64 [1] 0;"
	    "init c float [2,1] 1 1;"
	    "node com.microsoft/RotaryEmbedding x i c c > y : scale=2.0;",
		{NULL}, "!onnx.attr"},
	{LSTM("float [1] 1", "int8 [1] 0"), {NULL}, "float [1,1,1] 0"},
	{LSTM("float [1] 1", "uint8 [1] 0"), {NULL}, "!onnx.elem"},
	{LSTM("int8 [1] 1", "int8 [1] 0"), {NULL}, "!onnx.elem"},
	{LSTM("float [1,3] 1 1 1", "int8 [1,3] 0 0 0"), {NULL},
		"!onnx.shape"},
	/* what optimisers put into ai.onnx */
	{"opset 17; init x float [1,2] 3 4; init g float [2] 1 2; out y;"
	 "node SimplifiedLayerNormalization x g > y : epsilon=0.0;", {NULL},
		"float [1,2] 0.848528137 2.26274170"},
	/* of zeros the scale is 1 */
	{"opset 21; init x float [2] 0 0; out s;"
	 "node DynamicQuantizeLinear x > y s z;", {NULL}, "float [] 1"},
};

static void test_refused(void **state)
{
	(void)state;
	check_runs(refused, sizeof refused / sizeof *refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
