/*
 * onnx/: Attention and RotaryEmbedding against loops over their definitions, and
 * other operators of the newer opsets.
 */
#include "onnx_run.h"

#include <math.h>

/* ---- attention ---- */

enum { MASK_NONE, MASK_BOOL, MASK_FLOAT, MASK_SHORT };
typedef struct variant {
	int32_t batch, heads, kv, t, u, past, d, e;
	bool flat, causal;
	int32_t mask;
	double softcap, scale; /* scale 0: the default */
	int32_t left, right;   /* 0: none; else the window + 1 */
	int32_t counted;       /* keys that count, of the first of the batch; 0: all */
	int32_t mode;	       /* of the products that are an output; -1: none */
	const char *type;
} variant;

static const variant variants[] = {
	{1, 1, 1, 2, 3, 0, 4, 2, .mode = -1, .type = "float"},
	{2, 3, 3, 4, 6, 0, 8, 5, .causal = true, .mode = -1, .type = "float"},
	{2, 6, 2, 3, 3, 0, 4, 4, .causal = true, .mode = -1, .type = "float"},
	{2, 4, 2, 2, 3, 5, 4, 4, .causal = true, .mode = -1, .type = "float"},
	{2, 4, 2, 3, 4, 0, 4, 3, .flat = true, .mode = -1, .type = "float"},
	{1, 4, 2, 3, 4, 2, 4, 4, .flat = true, .mask = MASK_BOOL, .mode = 2,
		.type = "float"},
	{2, 2, 2, 3, 5, 0, 4, 4, .mask = MASK_FLOAT, .softcap = 2, .mode = 1,
		.type = "float"},
	{2, 2, 1, 3, 5, 0, 4, 4, .mask = MASK_SHORT, .causal = true, .mode = 3,
		.type = "float"},
	{2, 2, 2, 3, 6, 0, 4, 4, .counted = 4, .causal = true, .mode = 0,
		.type = "float"},
	{1, 2, 2, 5, 5, 0, 4, 4, .left = 2, .right = 1, .mode = -1,
		.type = "float"},
	{1, 2, 1, 2, 2, 4, 4, 4, .left = 3, .causal = true, .scale = 0.25,
		.mode = -1, .type = "double"},
	/* more queries than keys that count: the first ones see nothing */
	{2, 2, 2, 4, 6, 0, 4, 4, .counted = 2, .causal = true, .mode = 3,
		.type = "float"},
};

static double drawn(int64_t i)
{
	return (double)((i * 7919 + 13) % 97) / 48 - 1;
}

/* A value "type [shape] .." of drawn elements; bools: most of them are true. */
static const char *values(
	arena *a, const char *type, const int32_t *shape, int32_t n, int32_t seed)
{
	bool is_bool = !strcmp(type, "bool");
	str s = str_new(a);
	int64_t numel = 1;

	str_printf(&s, "%s [", type);
	for (int32_t i = 0; i < n; i++) {
		str_printf(&s, i > 0 ? ",%d" : "%d", shape[i]);
		numel *= shape[i];
	}
	str_add(&s, "]");
	for (int64_t i = 0; i < numel; i++)
		if (is_bool)
			str_printf(&s, " %d", (i + seed) % 3 != 0);
		else
			str_printf(&s, " %.9g", drawn(i + 1000 * seed));
	return s.at;
}

/* Element [b, h, i, k] of a value with `heads`, flat or not. */
static double at(const variant *c, int32_t seed, int32_t heads, int32_t n,
	int32_t size, int32_t b, int32_t h, int32_t i, int32_t k)
{
	int64_t p = c->flat ? (((int64_t)b * n + i) * heads + h) * size + k
			    : (((int64_t)b * heads + h) * n + i) * size + k;

	return (double)(float)drawn(p + 1000 * seed);
}

/* A key (seed 2) or value (seed 3) of head h, from the past on. */
static double kept(const variant *c, int32_t seed, int32_t b, int32_t h,
	int32_t j, int32_t k)
{
	int32_t size = seed == 2 ? c->d : c->e;

	if (j >= c->past)
		return at(c, seed, c->kv, c->u, size, b, h, j - c->past, k);
	return (double)(float)drawn((((int64_t)b * c->kv + h) * c->past + j) *
			size + k + 1000 * (seed + 2));
}

/* What the mask adds, or -inf; a bool or short mask has rows [t, keys]. */
static double masked(const variant *c, int32_t b, int32_t i, int32_t j)
{
	int32_t n = c->past + c->u, width = n - (c->mask == MASK_SHORT);

	if (c->mask == MASK_NONE)
		return 0;
	if (c->mask == MASK_FLOAT)
		return (double)(float)drawn(((int64_t)b * c->t + i) * n + j +
			4000);
	return j < width && (i * width + j + 4) % 3 != 0 ? 0 : -INFINITY;
}

static int32_t counted(const variant *c, int32_t b)
{
	return c->counted == 0 ? c->past + c->u : c->counted + b;
}

static bool allowed(const variant *c, int32_t b, int32_t i, int32_t j)
{
	int32_t p = i + (c->counted == 0 ? c->past : counted(c, b) - c->t);

	return j < counted(c, b) && (!c->causal || j <= p) &&
	       (c->left == 0 || p - j <= c->left - 1) &&
	       (c->right == 0 || j - p <= c->right - 1);
}

/* Row i of the products, at all steps: [mode][key]. */
static void products(const variant *c, int32_t b, int32_t h, int32_t i,
	double step[4][32])
{
	int32_t n = c->past + c->u, kv = h / (c->heads / c->kv);
	double scale = c->scale != 0 ? c->scale : 1 / sqrt(c->d);
	double most = -INFINITY, sum = 0;

	for (int32_t j = 0; j < n; j++) {
		double s = 0;

		for (int32_t k = 0; k < c->d; k++)
			s += at(c, 1, c->heads, c->t, c->d, b, h, i, k) *
			     kept(c, 2, b, kv, j, k);
		step[0][j] = s *= scale;
		step[1][j] = s = c->softcap > 0
			? c->softcap * tanh(s / c->softcap) : s;
		step[2][j] = allowed(c, b, i, j) ? s + masked(c, b, i, j)
						 : -INFINITY;
		most = fmax(most, step[2][j]);
	}
	for (int32_t j = 0; j < n; j++) {
		step[3][j] = most == -INFINITY ? 0 : exp(step[2][j] - most);
		sum += step[3][j];
	}
	for (int32_t j = 0; j < n; j++)
		step[3][j] /= sum > 0 ? sum : 1;
}

static const char *model_of(arena *a, const variant *c, bool shown)
{
	str s = str_new(a);

	str_printf(&s, "opset 25; in q %s %s; in k %s %s; in v %s %s;", c->type,
		c->flat ? "[B,T,Q]" : "[B,H,T,D]", c->type,
		c->flat ? "[B,U,K]" : "[B,G,U,D]", c->type,
		c->flat ? "[B,U,V]" : "[B,G,U,E]");
	str_printf(&s, "in m %s %s; in pk %s [B,G,P,D]; in pv %s [B,G,P,E];"
		"in n int64 [B];", c->mask == MASK_FLOAT ? c->type : "bool",
		c->mask == MASK_FLOAT ? "[B,1,T,S]" : "[T,S]", c->type, c->type);
	str_printf(&s, "out %s; node Attention q k v %s %s %s %s > %s :",
		shown ? "w" : "y", c->mask != MASK_NONE ? "m" : "_",
		c->past > 0 ? "pk" : "_", c->past > 0 ? "pv" : "_",
		c->counted > 0 ? "n" : "_", shown ? "y _ _ w" : "y");
	str_printf(&s, " is_causal=%d", c->causal);
	if (c->flat)
		str_printf(&s, " q_num_heads=%d kv_num_heads=%d", c->heads,
			c->kv);
	if (c->softcap > 0)
		str_printf(&s, " softcap=%.1f", c->softcap);
	if (c->scale > 0)
		str_printf(&s, " scale=%.2f", c->scale);
	if (c->left > 0)
		str_printf(&s, " left_window_size=%d", c->left - 1);
	if (c->right > 0)
		str_printf(&s, " right_window_size=%d", c->right - 1);
	if (shown)
		str_printf(&s, " qk_matmul_output_mode=%d", c->mode);
	str_add(&s, ";");
	return s.at;
}

static void give(arena *a, const variant *c, run_case *r)
{
	int32_t n = c->past + c->u, width = n - (c->mask == MASK_SHORT);
	int32_t q[4] = {c->batch, c->heads, c->t, c->d};
	int32_t k[4] = {c->batch, c->kv, c->u, c->d};
	int32_t v[4] = {c->batch, c->kv, c->u, c->e};
	int32_t flat[3][3] = {{c->batch, c->t, c->heads * c->d},
		{c->batch, c->u, c->kv * c->d}, {c->batch, c->u, c->kv * c->e}};
	int32_t past[4] = {c->batch, c->kv, c->past, c->d};
	int32_t old[4] = {c->batch, c->kv, c->past, c->e};
	bool number = c->mask == MASK_FLOAT;

	r->in[0] = values(a, c->type, c->flat ? flat[0] : q, 4 - c->flat, 1);
	r->in[1] = values(a, c->type, c->flat ? flat[1] : k, 4 - c->flat, 2);
	r->in[2] = values(a, c->type, c->flat ? flat[2] : v, 4 - c->flat, 3);
	r->in[3] = number ? values(a, c->type,
				    (int32_t[]){c->batch, 1, c->t, n}, 4, 4)
			  : values(a, "bool", (int32_t[]){c->t, width}, 2, 4);
	r->in[4] = values(a, c->type, past, 4, 4);
	r->in[5] = values(a, c->type, old, 4, 5);
	r->in[6] = c->batch == 1
		? arena_printf(a, "int64 [1] %d", counted(c, 0))
		: arena_printf(a, "int64 [2] %d %d", counted(c, 0),
			counted(c, 1));
}

static void attends(arena *a, void *arg)
{
	const variant *c = arg;
	run_case r = {0}, w = {0};
	onnx_array y, shown = {0};
	int32_t n = c->past + c->u;

	r.model = model_of(a, c, false);
	give(a, c, &r);
	y = run_model(a, &r, true);
	if (c->mode >= 0) {
		w = r;
		w.model = model_of(a, c, true);
		shown = run_model(a, &w, true);
	}
	for (int32_t b = 0; b < c->batch; b++)
		for (int32_t h = 0; h < c->heads; h++)
			for (int32_t i = 0; i < c->t; i++) {
				double step[4][32];
				int64_t at_y = c->flat
					? (((int64_t)b * c->t + i) * c->heads +
						  h) * c->e
					: (((int64_t)b * c->heads + h) * c->t +
						  i) * c->e;

				products(c, b, h, i, step);
				for (int32_t k = 0; k < c->e; k++) {
					double o = 0;

					for (int32_t j = 0; j < n; j++)
						if (step[3][j] != 0)
							o += step[3][j] * kept(
								c, 3, b,
								h / (c->heads /
									c->kv),
								j, k);
					near(&y, at_y + k, o);
				}
				for (int32_t j = 0; c->mode >= 0 && j < n; j++)
					near(&shown, (((int64_t)b * c->heads +
							      h) * c->t + i) *
							n + j,
						step[c->mode][j]);
			}
}

static void test_attention(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		variant c = variants[i];
		tn_diag d;

		if (unit_run(attends, &c, 0, &d) != TN_OK) {
			print_error("variant %d, %s: %s\n", (int)i, d.rule,
				d.text);
			fail();
		}
	}
}

/* ---- others ---- */

#define ROTARY "opset 23; in x float [1,1,2,4]; in c float [P,H];"             \
	"in s float [P,H]; init i int64 [1,2] 1 0; out y;"                     \
	"node RotaryEmbedding x c s i > y"

static const run_case runs[] = {
	{ROTARY ";", {"float [1,1,2,4] 1 2 3 4 5 6 7 8", "float [2,2] 1 0 3 5",
			     "float [2,2] 0 1 2 1"},
		"float [1,1,2,4] -3 6 11 22 5 -8 7 6"},
	{ROTARY " : interleaved=1;",
		{"float [1,1,2,4] 1 2 3 4 5 6 7 8", "float [2,2] 1 0 3 5",
			"float [2,2] 0 1 2 1"},
		"float [1,1,2,4] -1 8 11 23 5 6 -8 7"},
	{ROTARY " : rotary_embedding_dim=2;",
		{"float [1,1,2,4] 1 2 3 4 5 6 7 8", "float [2,1] 1 3",
			"float [2,1] 0 2"},
		"float [1,1,2,4] -1 8 3 4 5 6 7 8"},
	{ROTARY ";", {"float [1,1,2,4] 1 2 3 4 5 6 7 8", "float [2,1] 1 3",
			     "float [2,1] 0 2"}, "!onnx.shape"},
	{"opset 23; in x float [2,2]; in g float [2]; out y;"
	 "node RMSNormalization x g > y : epsilon=0.0;",
		{"float [2,2] 3 4 0 2", "float [2] 5 1"},
		"float [2,2] 4.24264069 1.13137085 0 1.41421356"},
	{"opset 23; in x float [1,2,2]; in g float [2,2]; out y;"
	 "node RMSNormalization x g > y : axis=1 epsilon=0.0;",
		{"float [1,2,2] 1 1 1 1", "float [2,2] 1 2 3 4"},
		"float [1,2,2] 1 2 3 4"},
	{"opset 24; in x float [2]; out y; node Swish x > y : alpha=2.0;",
		{"float [2] 0 1"}, "float [2] 0 0.880797078"},
	{"opset 28; in x float [2]; in z float [2]; out y;"
	 "node SwiGLU x z > y;", {"float [2] 0 1", "float [2] 3 2"},
		"float [2] 0 1.46211716"},
	{"opset 26; in x float [3]; init a int64 [] 0; out y;"
	 "node CumProd x a > y;", {"float [3] 2 3 4"}, "float [3] 2 6 24"},
	{"opset 26; in x float [3]; init a int64 [] 0; out y;"
	 "node CumProd x a > y : exclusive=1 reverse=1;", {"float [3] 2 3 4"},
		"float [3] 12 4 1"},
	{"opset 24; in x float [2,3,1]; in u float [2,2,1]; in i int64 [2];"
	 "out y; node TensorScatter x u i > y;",
		{"float [2,3,1] 0 0 0 0 0 0", "float [2,2,1] 1 2 3 4",
			"int64 [2] 1 0"}, "float [2,3,1] 0 1 2 3 4 0"},
	{"opset 24; in x float [2,3,1]; in u float [2,2,1]; in i int64 [2];"
	 "out y; node TensorScatter x u i > y : mode=\"circular\";",
		{"float [2,3,1] 0 0 0 0 0 0", "float [2,2,1] 1 2 3 4",
			"int64 [2] 2 3"}, "float [2,3,1] 2 0 1 3 4 0"},
	{"opset 18; in x float [4]; init s int64 [1] 2; out y;"
	 "node CenterCropPad x s > y;", {"float [4] 1 2 3 4"}, "float [2] 2 3"},
	{"opset 18; in x float [1,2]; init s int64 [1] 5; out y;"
	 "node CenterCropPad x s > y : axes=[1];", {"float [1,2] 1 2"},
		"float [1,5] 0 1 2 0 0"},
	{"opset 18; in x float [1,2,2]; init i int64 [2] 1 3;"
	 "init b int64 [2] 1 2; out y; node Col2Im x i b > y;",
		{"float [1,2,2] 1 2 3 4"}, "float [1,1,1,3] 1 5 4"},
	{"opset 20; in t float [1,2,3]; init s int64 [4] 1 1 1 2; out y;"
	 "node AffineGrid t s > y;", {"float [1,2,3] 1 0 0 0 1 3"},
		"float [1,1,2,2] -0.5 3 0.5 3"},
	{"opset 20; in t float [1,2,3]; init s int64 [4] 1 1 1 2; out y;"
	 "node AffineGrid t s > y : align_corners=1;",
		{"float [1,2,3] 1 0 0 0 1 0"}, "float [1,1,2,2] -1 -1 1 -1"},
	{"opset 19; in x float [1,1,5]; out y; node AveragePool x > y : "
	 "kernel_shape=[2] dilations=[3];", {"float [1,1,5] 1 2 3 4 5"},
		"float [1,1,2] 2.5 3.5"},
	{"opset 22; in x float [1,1,5]; out y; node LpPool x > y : "
	 "kernel_shape=[2] dilations=[3] p=1;", {"float [1,1,5] 1 2 3 4 5"},
		"float [1,1,2] 5 7"},
	/* what ceil_mode adds behind the padding does not count */
	{"opset 19; in x float [1,1,4]; out y; node AveragePool x > y : "
	 "kernel_shape=[3] strides=[2] pads=[1,0] ceil_mode=1 "
	 "count_include_pad=1;", {"float [1,1,4] 3 6 9 12"},
		"float [1,1,2] 3 9"},
	{"opset 19; in x float [1,1,4]; out y; node AveragePool x > y : "
	 "kernel_shape=[3] strides=[2] pads=[1,1] ceil_mode=1 "
	 "count_include_pad=1;", {"float [1,1,4] 3 6 9 12"},
		"float [1,1,3] 3 9 6"},
	{"opset 23; in q float [1,1,2,3]; in p float [2]; out y;"
	 "node Attention q q q _ p p > y;",
		{"float [1,1,2,3] 1 2 3 4 5 6", "float [2] 1 2"}, "!onnx.shape"},
	{"opset 23; in q float [1,1,2,3]; in p float [1,1,1,3]; out y;"
	 "node Attention q q q _ p > y;",
		{"float [1,1,2,3] 1 2 3 4 5 6", "float [1,1,1,3] 1 2 3"},
		"!onnx.input"},
	{"opset 18; in x float [1,2,2]; init i int64 [2] 1 1;"
	 "init b int64 [2] 1 2; out y; node Col2Im x i b > y;",
		{"float [1,2,2] 1 2 3 4"}, "!onnx.attr"},
	{"opset 23; in q float [1,2,3]; in k float [1,2,3]; in v float [1,2,3];"
	 "out y; node Attention q k v > y : q_num_heads=2 kv_num_heads=1;",
		{"float [1,2,3] 1 2 3 4 5 6", "float [1,2,3] 1 2 3 4 5 6",
			"float [1,2,3] 1 2 3 4 5 6"}, "!onnx.shape"},
};

static void test_operators(void **state)
{
	(void)state;
	check_runs(runs, sizeof runs / sizeof *runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_operators)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
