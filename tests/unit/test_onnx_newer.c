/*
 * onnx/: operators of the newer opsets, on values that are computed by hand, and
 * their gradients against differences.
 */
#define _POSIX_C_SOURCE 200809L
#include "onnx_run.h"

#include <tenon.h>
#include <tenon_onnx.h>

#include <stdlib.h>
#include <unistd.h>

#define LINEAR(rule, more)                                                     \
	"opset 27; in q float [1,2,1]; in k float [1,2,1]; in v float [1,2,1];" \
	"in g float [1,2,1]; in b float [1,2,1]; out y;"                       \
	"node LinearAttention q k v " more " > y : q_num_heads=1 "             \
	"kv_num_heads=1 scale=1.0 update_rule=\"" rule "\";"
#define LINEAR_IN                                                              \
	{"float [1,2,1] 1 3", "float [1,2,1] 2 1", "float [1,2,1] 4 3",        \
		"float [1,2,1] 0 -0.69314718", "float [1,2,1] 1 0.5"}
#define CAUSAL                                                                 \
	"opset 27; in x float [1,1,3]; in w float [1,1,2]; in b float [1];"    \
	"in p float [1,1,1]; out y; node CausalConvWithState x w "
#define CAUSAL_IN                                                              \
	{"float [1,1,3] 1 2 3", "float [1,1,2] 10 1", "float [1] 100",         \
		"float [1,1,1] 5"}
#define FLEX                                                                   \
	"opset 27; opset 1 ai.onnx.preview; in q float [1,1,1,1];"            \
	"in k float [1,1,2,1]; in v float [1,1,2,1]; out y;"                  \
	"node ai.onnx.preview/FlexAttention q k v > y "
#define FLEX_IN                                                                \
	{"float [1,1,1,1] 1", "float [1,1,2,1] 0 0", "float [1,1,2,1] 2 4"}

#define RESIZE(shape, more)                                                    \
	"opset 18; in x float " shape "; in r float [N]; in s float [M];"      \
	"in n int64 [K]; out y; node Resize x " more ";"
#define ROW4 "float [1,4] 1 2 3 4"
#define GRID "opset 20; in x float [1,1,2,1,2]; in g float [1,1,1,N,3]; out y;" \
	"node GridSample x g > y : "
#define DEFORM                                                                 \
	"opset 19; in x float [1,1,2,2]; in w float [1,1,1,1];"                \
	"in o float [1,2,2,2]; in b float [1]; in m float [1,1,2,2]; out y;"   \
	"node DeformConv x w "
#define DEFORM_IN                                                              \
	{"float [1,1,2,2] 1 2 3 4", "float [1,1,1,1] 10",                      \
		"float [1,2,2,2] 0.5 0 0 0 0 0.5 0 1", "float [1] 1",          \
		"float [1,1,2,2] 1 1 2 1"}

static const run_case runs[] = {
	/* "P6 2 1 5\n", (5,0,1), (0,5,2): of 5 */
#define PICTURE "opset 20; in x uint8 [15]; out y;"
#define FILE_PNM {"uint8 [15] 80 54 32 50 32 49 32 53 10 5 0 1 0 5 2"}
	{PICTURE "node ImageDecoder x > y", FILE_PNM,
		"uint8 [1,2,3] 255 0 51 0 255 102"},
	{PICTURE "node ImageDecoder x > y : pixel_format=\"BGR\"", FILE_PNM,
		"uint8 [1,2,3] 51 0 255 102 255 0"},
	{PICTURE "node ImageDecoder x > y : pixel_format=\"Grayscale\"",
		FILE_PNM, "uint8 [1,2,1] 82 161"},
	{PICTURE "node ImageDecoder x > y : pixel_format=\"HSV\"", FILE_PNM,
		"!onnx.attr"},
	{"opset 20; in x uint8 [3]; out y; node ImageDecoder x > y",
		{"uint8 [3] 1 2 3"}, "uint8 [0,0,3]"},
	{"opset 20; in x uint8 [0]; out y; node ImageDecoder x > y : "
	 "pixel_format=\"Grayscale\"", {"uint8 [0]"}, "uint8 [0,0,1]"},
	{"opset 20; in x int8 [3]; out y; node ImageDecoder x > y",
		{"int8 [3] 1 2 3"}, "!onnx.type"},
	{"opset 20; in x uint8 [3,1]; out y; node ImageDecoder x > y",
		{"uint8 [3,1] 1 2 3"}, "!onnx.type"},
	{LINEAR("linear", ""), LINEAR_IN, "float [1,2,1] 8 33"},
	{LINEAR("gated", "_ g"), LINEAR_IN, "float [1,2,1] 8 21"},
	{LINEAR("delta", "_ _ b"), LINEAR_IN, "float [1,2,1] 8 16.5"},
	{LINEAR("gated_delta", "_ g b"), LINEAR_IN, "float [1,2,1] 8 10.5"},
	{LINEAR("gated_delta", "_ g"), LINEAR_IN, "!onnx.input"},
	{LINEAR("linear", "_ g"), LINEAR_IN, "!onnx.input"},
	{LINEAR("gated_", "_ g"), LINEAR_IN, "!onnx.attr"},
	{LINEAR("linear", "g"), LINEAR_IN, "!onnx.shape"},
	/* two heads of the query for one of the key */
	{"opset 27; in q float [1,1,2]; in k float [1,1,1]; in v float [1,1,1];"
	 "out y; node LinearAttention q k v > y : q_num_heads=2 kv_num_heads=1 "
	 "update_rule=\"linear\";", {"float [1,1,2] 1 2", "float [1,1,1] 3",
		"float [1,1,1] 5"}, "float [1,1,2] 15 30"},
	{"opset 27; in q float [1,1,2]; in k float [1,1,1]; in v float [1,1,1];"
	 "out y; node LinearAttention q k v > y : q_num_heads=2 kv_num_heads=3 "
	 "update_rule=\"linear\";", {"float [1,1,2] 1 2", "float [1,1,1] 3",
		"float [1,1,1] 5"}, "!onnx.attr"},
	/* a decay for each number of the key, and a state before */
	{"opset 27; in q float [1,1,2]; in v float [1,1,1];"
	 "in p float [1,1,2,1]; in g float [1,1,2]; out s;"
	 "node LinearAttention q q v p g > y s : q_num_heads=1 kv_num_heads=1 "
	 "update_rule=\"gated\";", {"float [1,1,2] 1 2", "float [1,1,1] 3",
		"float [1,1,2,1] 10 20", "float [1,1,2] 0 -0.69314718"},
		"float [1,1,2,1] 13 16"},
	{"opset 27; in q float [1,0,2]; in p float [1,1,2,2]; out y;"
	 "node LinearAttention q q q p > y : q_num_heads=1 kv_num_heads=1 "
	 "update_rule=\"linear\";", {"float [1,0,2]", "float [1,1,2,2] 1 2 3 4"},
		"float [1,0,2]"},
	{CAUSAL " > y;", CAUSAL_IN, "float [1,1,3] 1 12 23"},
	{CAUSAL "b p > y;", CAUSAL_IN, "float [1,1,3] 151 112 123"},
	{CAUSAL "_ p > z y;", CAUSAL_IN, "float [1,1,1] 3"},
	{CAUSAL "_ x > y;", CAUSAL_IN, "!onnx.shape"},
	/* no heads to share those of keys and values */
	{"opset 27; opset 1 ai.onnx.preview; in q float [1,0,1,1];"
	 "in k float [1,2,2,1]; in v float [1,2,2,1]; out y;"
	 "node ai.onnx.preview/FlexAttention q k v > y;",
		{"float [1,0,1,1]", "float [1,2,2,1] 0 0 0 0",
			"float [1,2,2,1] 2 4 2 4"}, "!onnx.shape"},
	{CAUSAL " > y : activation=\"relu\";", CAUSAL_IN, "!onnx.attr"},
	{"opset 27; in x float [1,1,2]; in w float [1,1,1]; out y;"
	 "node CausalConvWithState x w > y : activation=\"silu\";",
		{"float [1,1,2] 0 1", "float [1,1,1] 1"},
		"float [1,1,2] 0 0.731058579"},
	{"opset 27; in x float [1,1,2]; in w float [1,1,1]; out y;"
	 "node CausalConvWithState x w > z y;",
		{"float [1,1,2] 0 1", "float [1,1,1] 1"}, "float [1,1,0]"},
	/* an input shorter than the state */
	{"opset 27; in x float [1,1,1]; in w float [1,1,4]; out y;"
	 "node CausalConvWithState x w > z y;",
		{"float [1,1,1] 7", "float [1,1,4] 1 2 3 4"},
		"float [1,1,3] 0 0 7"},
	{FLEX ";", FLEX_IN, "float [1,1,1,1] 3"},
	{FLEX ": score_mod={ in s float [1,1,1,2];"
	      "init m float [1,1,1,2] 0 -1e9; node Add s m > o; out o; };",
		FLEX_IN, "float [1,1,1,1] 2"},
	{FLEX ": prob_mod={ in s float [1,1,1,2]; init m float [] 2;"
	      "node Mul s m > o; out o; };",
		FLEX_IN, "float [1,1,1,1] 6"},
	{FLEX ": prob_mod={ in s float [1,1,1,2]; node Shape s > o; out o; };",
		FLEX_IN, "!onnx.graph"},
	{FLEX ": score_mod={ in s float [1,1,1,2]; in t float [1];"
	      "node Add s t > o; out o; };", FLEX_IN, "!onnx.graph"},
	{FLEX ": softmax_precision=7;", FLEX_IN, "!onnx.attr"},
	/* the kernel is as wide as the axis shrinks */
	{RESIZE("[1,4]", "_ s > y : mode=\"linear\" antialias=1"),
		{ROW4, "float [0]", "float [2] 1 0.5", "int64 [0]"},
		"float [1,2] 1.625 3.375"},
	{RESIZE("[1,4]", "_ s > y : mode=\"linear\" antialias=1 "
		"exclude_outside=1"),
		{ROW4, "float [0]", "float [2] 1 0.5", "int64 [0]"},
		"float [1,2] 1.71428571 3.28571429"},
	{RESIZE("[1,4]", "_ s > y : mode=\"linear\" antialias=1"),
		{"float [1,2] 1 3", "float [0]", "float [2] 1 2", "int64 [0]"},
		"float [1,4] 1 1.5 2.5 3"},
	{RESIZE("[1,2]", "_ _ n > y : keep_aspect_ratio_policy=\"not_larger\""),
		{"float [1,2] 1 2", "float [0]", "float [0]", "int64 [2] 3 4"},
		"float [2,4] 1 1 2 2 1 1 2 2"},
	{RESIZE("[1,2]", "_ _ n > y : keep_aspect_ratio_policy=\"not_smaller\""),
		{"float [1,2] 1 2", "float [0]", "float [0]", "int64 [2] 1 4"},
		"float [2,4] 1 1 2 2 1 1 2 2"},
	{RESIZE("[1,2]", "_ _ n > y : keep_aspect_ratio_policy=\"fit\""),
		{"float [1,2] 1 2", "float [0]", "float [0]", "int64 [2] 1 4"},
		"!onnx.attr"},
	{RESIZE("[1,3]", "r _ n > y : mode=\"linear\" axes=[1] "
		"coordinate_transformation_mode=\"tf_crop_and_resize\""),
		{"float [1,3] 1 2 3", "float [2] 0.5 1", "float [0]",
			"int64 [1] 2"}, "float [1,2] 2 3"},
	{RESIZE("[1,3]", "r _ n > y : mode=\"linear\" axes=[1] "
		"coordinate_transformation_mode=\"tf_crop_and_resize\""),
		{"float [1,3] 1 2 3", "float [4] 0.5 1 1 1", "float [0]",
			"int64 [1] 2"}, "!onnx.shape"},
	{RESIZE("[1,4]", "_ s > y : antialias=1"),
		{ROW4, "float [0]", "float [2] 1 0.5", "int64 [0]"},
		"!onnx.attr"},
	{RESIZE("[1,4]", "_ s > y : mode=\"lanczos\""),
		{ROW4, "float [0]", "float [2] 1 0.5", "int64 [0]"},
		"!onnx.attr"},
	{RESIZE("[1,4]", "_ s > y : coordinate_transformation_mode=\"half\""),
		{ROW4, "float [0]", "float [2] 1 0.5", "int64 [0]"},
		"!onnx.attr"},
	{GRID "align_corners=1;", {"float [1,1,2,1,2] 1 2 3 4",
		"float [1,1,1,3,3] -1 0 1 0 0 0 1 0 -1"},
		"float [1,1,1,1,3] 3 2.5 2"},
	{GRID "mode=\"nearest\";", {"float [1,1,2,1,2] 1 2 3 4",
		"float [1,1,1,4,3] .5 2 .5 .5 0 .5 .5 -2 .5 .5 0 9"},
		"float [1,1,1,1,4] 0 4 0 0"},
	{GRID "mode=\"nearest\" padding_mode=\"border\";",
		{"float [1,1,2,1,2] 1 2 3 4",
			"float [1,1,1,4,3] .5 2 .5 .5 0 .5 .5 -2 .5 .5 0 -9"},
		"float [1,1,1,1,4] 4 4 4 2"},
	{GRID "padding_mode=\"wrap\";", {"float [1,1,2,1,2] 1 2 3 4",
		"float [1,1,1,1,3] 0 0 0"}, "!onnx.attr"},
	{"opset 20; in x float [1,1,2,1,2]; in g float [1,1,1,2]; out y;"
	 "node GridSample x g > y;", {"float [1,1,2,1,2] 1 2 3 4",
		"float [1,1,1,2] 0 0"}, "!onnx.shape"},
	{DEFORM "o > y;", DEFORM_IN, "float [1,1,2,2] 20 10 30 0"},
	{DEFORM "o b m > y;", DEFORM_IN, "float [1,1,2,2] 21 11 61 1"},
	{DEFORM "x > y;", DEFORM_IN, "!onnx.shape"},
	{DEFORM "o > y : group=2;", DEFORM_IN, "!onnx.shape"},
	{DEFORM "o > y : strides=[0,1];", DEFORM_IN, "!onnx.attr"},
	{DEFORM "o > y : kernel_shape=[2,2];", DEFORM_IN, "!onnx.attr"},
};

static void test_values(void **state)
{
	(void)state;
	check_runs(runs, sizeof runs / sizeof *runs);
}

/* ---- gradients ---- */

static const char *const smooth[] = {
	"opset 27; in q float [2,3,4]; in k float [2,3,2]; in v float [2,3,3];"
	"in p float [2,1,2,3]; in g float [2,3,2]; in b float [2,3,1]; out y;"
	"out s; node LinearAttention q k v p g b > y s : q_num_heads=2 "
	"kv_num_heads=1;",
	"opset 27; in x float [2,3,4]; in w float [3,1,3]; in b float [3];"
	"in p float [2,3,2]; out y; out s; node CausalConvWithState x w b p > "
	"y s : activation=\"silu\";",
	"opset 27; opset 1 ai.onnx.preview; in q float [1,4,3,2];"
	"in k float [1,2,4,2]; in v float [1,2,4,3]; out y;"
	"node ai.onnx.preview/FlexAttention q k v > y : score_mod={"
	"in s float [1,4,3,4]; node Tanh s > o; out o; };",
	"opset 18; in x float [2,7]; init s float [2] 1 0.4; out y;"
	"node Resize x _ s > y : mode=\"cubic\" antialias=1;",
	"opset 20; in x float [2,2,3,3,2]; in g float [2,1,2,2,3]; out y;"
	"node GridSample x g > y;",
	"opset 19; in x float [1,4,4,3]; in w float [2,2,2,2];"
	"in o float [1,16,3,2]; in b float [2]; in m float [1,8,3,2]; out y;"
	"node DeformConv x w o b m > y : group=2 offset_group=2;",
	"opset 19; in x float [2,1,5,4]; in w float [2,1,2,2];"
	"in o float [2,8,2,2]; out y; node DeformConv x w o > y : "
	"dilations=[2,1] strides=[2,3] pads=[0,1,1,1];",
};

static void write_model(arena *a, const char *path, const char *text)
{
	pb bytes = onnx_write(a, text);
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes.s.at, 1, bytes.s.n, f), bytes.s.n);
	assert_int_equal(fclose(f), 0);
}

static void check_gradient(tn_context *c, const char *path, const char *text)
{
	tn_gradcheck_options o = TN_GRADCHECK_OPTIONS_INIT;
	tn_gradcheck_result r = {0};
	tn_program *p = NULL;
	const void *in[8];
	void *own[8];
	int32_t n;

	assert_int_equal(tn_onnx_load(&p, c, path), TN_OK);
	n = tn_program_n_inputs(p);
	assert_in_range(n, 1, 8);
	for (int32_t i = 0; i < n; i++) {
		const tn_value *v = tn_program_input(p, i);

		in[i] = own[i] = calloc(v->n_bytes + 8, 1);
		assert_non_null(own[i]);
		tn_fill_random(v->dtype, own[i], v->n_elems, 7 + (uint64_t)i, 0,
			2);
	}
	if (tn_program_gradcheck(p, in, &o, &r) != TN_OK)
		fail_msg("%s\n%s", tn_context_diag(c)->text, text);
	assert_true(r.n_checked > 0);
	for (int32_t i = 0; i < n; i++)
		free(own[i]);
	tn_program_free(p);
}

static void test_gradients(void **state)
{
	char path[] = "/tmp/tenon-onnx-XXXXXX";
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	env *e = env_new();
	arena *a = arena_new(e);
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	o.cache_dir = "";
	o.threads = 1;
	o.interp = true;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	for (size_t i = 0; i < sizeof smooth / sizeof *smooth; i++) {
		write_model(a, path, smooth[i]);
		check_gradient(c, path, smooth[i]);
	}
	tn_context_free(c);
	unlink(path);
	arena_free(a);
	env_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_gradients)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
