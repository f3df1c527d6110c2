/*
 * contract.c: `tenon bench contract`: measures contractions.
 *
 * Matrix products in f32 by one thread and by two, in turn with each installed
 * library (gemm.c): ratio = Tenon's rate over that of the best library.
 * Convolutions are compared with oneDNN's in its best layout (dnnl.c); a
 * product with an epilogue, and attention, with a library's products and a
 * fused kernel of Tenon for the rest. Other dtypes have no comparison: only
 * rates.
 */
#include "bench/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	MAX_LIBRARIES = 8,
	TEXT = BENCH_CONTRACT_TEXT,
	MAX_RUNS = 1000,
	PAUSE_NS = 40000000
};

#define ROW_SECONDS 0.02

/* ---- measuring ---- */

typedef struct contest {
	const char *name;
	double flops;
	int threads, repeat;
	bool json;
	/*
	 * the libraries' work: a product, optionally followed by a kernel of
	 * Tenon and by a second product; or a convolution
	 */
	const bench_product *product, *second; /* NULL: none */
	const char *pass_text;
	tn_program *pass;
	cli_arrays *pass_a;
	bench_conv *conv; /* for library 2 */
	tn_program *p;
	cli_arrays *a;
	float *out; /* results of libraries */
	double *seconds[1 + MAX_LIBRARIES]; /* [0]: Tenon */
} contest;

/* Runs Tenon's kernel (i = 0), or library i - 1 if it is installed. */
static bool go(contest *c, int i)
{
	bench_gemm *g = i > 0 ? bench_gemm_at(i - 1) : NULL;
	float *made = c->out;

	if (i == 0)
		return tn_program_run(c->p, c->a->in, c->a->out) >= 0;
	if (c->conv != NULL) {
		bench_conv_run(c->conv);
		return true;
	}
	if (c->pass != NULL)
		made = c->pass_a->own[0];
	bench_gemm_run(g, c->product, c->a->in[0], c->a->in[1], made);
	if (c->pass != NULL &&
		tn_program_run(c->pass, c->pass_a->in, c->pass_a->out) < 0)
		return false;
	if (c->second != NULL)
		bench_gemm_run(g, c->second, c->pass_a->out[0], c->a->in[2],
			c->out);
	return true;
}

/*
 * Measures seconds per run: waits until the threads of the previous contestant
 * sleep, wakes the own threads by one run, and times several runs in a row.
 */
static bool measure(contest *c, int i, double *seconds)
{
	const struct timespec pause = {0, PAUSE_NS};
	double start, all = 0;
	int n = 0;

	nanosleep(&pause, NULL);
	if (!go(c, i))
		return false;
	start = cli_now();
	while (n < 1 || (all < ROW_SECONDS && n < MAX_RUNS)) {
		if (!go(c, i))
			return false;
		n++;
		all = cli_now() - start;
	}
	*seconds = all / n;
	return true;
}

static bool takes_part(const contest *c, int i)
{
	bench_gemm *g = i > 0 ? bench_gemm_at(i - 1) : NULL;

	if (c->conv != NULL)
		return i == 0 || (g != NULL && bench_gemm_open(g) &&
					 strcmp(bench_gemm_name(g), "onednn") == 0);
	return i == 0 || (c->product != NULL && g != NULL &&
				 bench_gemm_open(g));
}

static void say(contest *c)
{
	double ours = bench_median(c->seconds[0], c->repeat), best = 0;
	const char *name = NULL;

	if (c->json) {
		printf("{\"bench\":\"contract\",\"case\":");
		cli_json_text(stdout, c->name);
		printf(",\"threads\":%d,\"seconds\":", c->threads);
		cli_json_number(stdout, ours);
		printf(",\"gflops\":");
		cli_json_number(stdout, c->flops / ours * 1e-9);
	} else {
		printf("%-22s %2d %10.3f %9.1f", c->name, c->threads,
			ours * 1e3, c->flops / ours * 1e-9);
	}
	for (int i = 1; i <= MAX_LIBRARIES; i++) {
		double rate;

		if (!takes_part(c, i))
			continue;
		rate = c->flops / bench_median(c->seconds[i], c->repeat);
		if (c->json)
			printf(",\"%s_gflops\":%.2f",
				bench_gemm_name(bench_gemm_at(i - 1)),
				rate * 1e-9);
		else
			printf("  %s %.1f",
				bench_gemm_name(bench_gemm_at(i - 1)),
				rate * 1e-9);
		if (rate > best) {
			best = rate;
			name = bench_gemm_name(bench_gemm_at(i - 1));
		}
	}
	if (c->json && name != NULL)
		printf(",\"reference\":\"%s\",\"ratio\":%.3f", name,
			c->flops / ours / best);
	else if (name != NULL)
		printf("  ratio %.2f", c->flops / ours / best);
	printf(c->json ? "}\n" : "\n");
	fflush(stdout);
}

/* Measures Tenon, then each library, several times in turn. */
static bool compete(contest *c)
{
	bool good = true;

	for (int i = 1; i <= MAX_LIBRARIES; i++)
		if (takes_part(c, i))
			bench_gemm_threads(bench_gemm_at(i - 1), c->threads);
	for (int r = -1; r < c->repeat && good; r++)
		for (int i = 0; i <= MAX_LIBRARIES && good; i++) {
			double s = 0;

			if (!takes_part(c, i))
				continue;
			good = measure(c, i, &s);
			if (r >= 0)
				c->seconds[i][r] = s;
		}
	if (good)
		say(c);
	return good;
}

static bool compile(tn_context *x, const char *name, const char *text,
	tn_program **p, cli_arrays **a)
{
	static const cli_list none;

	*a = NULL;
	if (tn_program_parse(p, x, text, strlen(text), name) < 0)
		return false;
	if (tn_program_compile(*p) >= 0)
		*a = cli_arrays_new(x, &(cli_model){.program = *p}, &none, 1,
			false);
	if (*a == NULL)
		tn_program_free(*p);
	return *a != NULL;
}

static bool compile_and_compete(
	tn_context *x, contest *c, const char *text)
{
	bool good;

	if (!compile(x, c->name, text, &c->p, &c->a))
		return false;
	c->out = cli_alloc(tn_program_output(c->p, 0)->n_bytes, 1);
	good = c->out != NULL &&
	       (c->pass_text == NULL || compile(x, c->name, c->pass_text,
						&c->pass, &c->pass_a)) &&
	       compete(c);
	if (c->pass != NULL && c->pass_a != NULL) {
		cli_arrays_free(c->pass_a);
		tn_program_free(c->pass);
	}
	free(c->out);
	cli_arrays_free(c->a);
	tn_program_free(c->p);
	return good;
}

/* ---- cases ---- */

static const bench_product products[] = {
	{1, 64, 64, 64, false, false},
	{1, 128, 128, 128, false, false},
	{1, 256, 256, 256, false, false},
	{1, 512, 512, 512, false, false},
	{1, 1024, 1024, 1024, false, false},
	{1, 2048, 2048, 2048, false, false},
	{1, 128, 3072, 768, false, false},
	{1, 128, 768, 3072, false, false},
	{1, 197, 768, 768, false, false},
	{1, 1, 4096, 4096, false, false},
	{1, 2, 4096, 4096, false, false},
	{1, 4, 4096, 4096, false, false},
	{1, 8, 4096, 4096, false, false},
	{1, 16, 4096, 4096, false, false},
	{64, 64, 64, 64, false, false},
	{1, 1024, 1024, 1024, false, true},
	{1, 1024, 1024, 1024, true, false},
	{1, 64, 64, 65536, false, false},
	{1, 64, 64, 65536, true, false},
	{1, 8, 64, 65536, false, false},
};

static const bench_conv_shape convs[] = {
	{3, 224, 64, 7, 2, 3, 1},
	{64, 56, 64, 3, 1, 1, 1},
	{128, 28, 128, 3, 1, 1, 1},
	{128, 56, 128, 3, 2, 1, 1},
	{256, 14, 256, 3, 1, 1, 1},
	{512, 7, 512, 3, 1, 1, 1},
	{64, 56, 64, 1, 1, 0, 1},
	{64, 56, 256, 1, 1, 0, 1},
	{1024, 14, 256, 1, 1, 0, 1},
	{512, 28, 1024, 1, 2, 0, 1},
	{96, 112, 96, 3, 1, 1, 96},
	{384, 14, 384, 3, 1, 1, 384},
	{144, 56, 144, 3, 2, 1, 144},
};

typedef struct other {
	const char *name;
	double flops;
	const char *text;
	bench_product product, second; /* k is 0: none */
	const char *pass;
} other;

static const other others[] = {
	{"bias_gelu_residual", 2.0 * 1024 * 1024 * 1024,
		"program {\n x: f32[1024,1024]\n y: f32[1024,1024]\n"
		" b: f32[1024]\n r: f32[1024,1024]\n o = matmul(x, y)\n"
		" p = add(o, b)\n q = gelu(p)\n z = add(q, r)\n return z\n}\n",
		{1, 1024, 1024, 1024, false, false}, {0},
		"program {\n o: f32[1024,1024]\n b: f32[1024]\n"
		" r: f32[1024,1024]\n p = add(o, b)\n q = gelu(p)\n"
		" z = add(q, r)\n return z\n}\n"},
	{"f64_1024", 2.0 * 1024 * 1024 * 1024,
		"program {\n x: f64[1024,1024]\n y: f64[1024,1024]\n"
		" o = matmul(x, y)\n return o\n}\n", {0}, {0}, NULL},
	{"bf16_1024", 2.0 * 1024 * 1024 * 1024,
		"program {\n x: bf16[1024,1024]\n y: bf16[1024,1024]\n"
		" o = matmul(x, y)\n return o\n}\n", {0}, {0}, NULL},
	{"i8_i32_1024", 2.0 * 1024 * 1024 * 1024,
		"op mm(x[m, k]:int, y[k, n]:int) -> o { o[m, n] += "
		"cast(x[m, k], i32) * cast(y[k, n], i32) }\n"
		"program {\n x: i8[1024,1024]\n y: i8[1024,1024]\n"
		" o = mm(x, y)\n return o\n}\n", {0}, {0}, NULL},
	{"attention", 4.0 * 12 * 1024 * 1024 * 64,
		"program {\n q: f32[1,12,1024,64]\n k: f32[1,12,1024,64]\n"
		" v: f32[1,12,1024,64]\n o = attention(q, k, v, scale=0.125)\n"
		" return o\n}\n",
		{12, 1024, 1024, 64, false, true}, {12, 1024, 64, 1024, false, false},
		"program {\n s: f32[12,1024,1024]\n a = mul(s, 0.125)\n"
		" o = softmax(a)\n return o\n}\n"},
	{"attention_causal", 4.0 * 12 * 1024 * 1024 * 64,
		"program {\n q: f32[1,12,1024,64]\n k: f32[1,12,1024,64]\n"
		" v: f32[1,12,1024,64]\n o = attention(q, k, v, scale=0.125,"
		" causal=true)\n return o\n}\n",
		{12, 1024, 1024, 64, false, true}, {12, 1024, 64, 1024, false, false},
		"op mask(s[b, t, u]) -> o { o[b, t, u] = s[b, t, u] * 0.125"
		" where u <= t else -inf }\n"
		"program {\n s: f32[12,1024,1024]\n a = mask(s)\n"
		" o = softmax(a)\n return o\n}\n"},
	/* keys that do not fit any cache */
	{"attention_32k", 4.0 * 2048 * 32768 * 64,
		"program {\n q: f32[1,1,2048,64]\n k: f32[1,1,32768,64]\n"
		" v: f32[1,1,32768,64]\n o = attention(q, k, v, scale=0.125)\n"
		" return o\n}\n",
		{0}, {0}, NULL},
	{"decode_4096", 4.0 * 32 * 4096 * 128, /* one query, a cache of keys */
		"program {\n q: f32[1,32,1,128]\n k: f32[1,32,4096,128]\n"
		" v: f32[1,32,4096,128]\n o = attention(q, k, v, scale=0.09)\n"
		" return o\n}\n",
		{32, 1, 4096, 128, false, true}, {32, 1, 128, 4096, false, false},
		"program {\n s: f32[32,1,4096]\n a = mul(s, 0.09)\n"
		" o = softmax(a)\n return o\n}\n"},
};

typedef struct setting {
	tn_context *x;
	const char *only;
	int repeat;
	bool json;
	double *seconds[1 + MAX_LIBRARIES];
} setting;

static bool one(setting *s, contest *c, const char *text)
{
	if (s->only != NULL && strstr(c->name, s->only) == NULL)
		return true;
	memcpy(c->seconds, s->seconds, sizeof c->seconds);
	c->repeat = s->repeat;
	c->json = s->json;
	return compile_and_compete(s->x, c, text);
}

static void product_text(
	const bench_product *p, char *name, size_t n_name, char *text)
{
	char batch[32] = "", b[8] = "";

	if (p->batch > 1) {
		snprintf(batch, sizeof batch, "%" PRId64 ",", p->batch);
		snprintf(b, sizeof b, "b");
	}
	snprintf(name, n_name, "%s%s%s%" PRId64 "x%" PRId64 "x%" PRId64,
		p->batch > 1 ? "batch_" : "", p->x_turned ? "xt_" : "",
		p->y_turned ? "yt_" : "", p->m, p->n, p->k);
	snprintf(text, TEXT,
		"program {\n x: f32[%s%" PRId64 ",%" PRId64 "]\n y: f32[%s%"
		PRId64 ",%" PRId64 "]\n o = einsum(x, y, "
		"equation=\"%s%s,%s%s->%sij\")\n return o\n}\n",
		batch, p->x_turned ? p->k : p->m, p->x_turned ? p->m : p->k,
		batch, p->y_turned ? p->n : p->k, p->y_turned ? p->k : p->n, b,
		p->x_turned ? "ki" : "ik", b, p->y_turned ? "jk" : "kj", b);
}

static bool product(setting *s, int threads, const bench_product *p)
{
	char text[TEXT], name[64];

	product_text(p, name, sizeof name, text);
	return one(s,
		&(contest){.name = name,
			.flops = 2.0 *
				 (double)(p->batch * p->m * p->n * p->k),
			.threads = threads,
			.product = p},
		text);
}

static void conv_text(
	const bench_conv_shape *v, char *name, size_t n_name, char *text)
{
	snprintf(name, n_name, "%s%dx%d_s%d_%d_%d_at_%d",
		v->groups > 1 ? "dw" : "conv", v->k, v->k, v->stride, v->c,
		v->f, v->size);
	snprintf(text, TEXT,
		"program {\n x: f32[1,%d,%d,%d]\n w: f32[%d,%d,%d,%d]\n"
		" o = conv(x, w, groups=%d, stride=%d, lo=%d, hi=%d)\n"
		" return o\n}\n",
		v->c, v->size, v->size, v->f, v->c / v->groups, v->k, v->k,
		v->groups, v->stride, v->lo, v->lo);
}

static bool convolution(setting *s, int threads, const bench_conv_shape *v)
{
	int out = (v->size + 2 * v->lo - v->k) / v->stride + 1;
	char text[TEXT], name[64];
	contest c = {.name = name, .threads = threads,
		.flops = 2.0 * v->f * out * out * (v->c / v->groups) * v->k *
			 v->k};
	bool good;

	conv_text(v, name, sizeof name, text);
	/* oneDNN reads this when it is initialised */
	for (int i = 0; i < MAX_LIBRARIES; i++)
		if (bench_gemm_at(i) != NULL && bench_gemm_open(bench_gemm_at(i)))
			bench_gemm_threads(bench_gemm_at(i), threads);
	c.conv = bench_conv_new(v);
	good = one(s, &c, text);
	bench_conv_free(c.conv);
	return good;
}

enum {
	N_PRODUCTS = sizeof products / sizeof *products,
	N_CONVS = sizeof convs / sizeof *convs,
	N_OTHERS = sizeof others / sizeof *others
};

bool bench_contract_text(int i, char *name, size_t n_name, char *text)
{
	if (i < N_PRODUCTS) {
		product_text(&products[i], name, n_name, text);
	} else if (i - N_PRODUCTS < N_CONVS) {
		conv_text(&convs[i - N_PRODUCTS], name, n_name, text);
	} else if (i - N_PRODUCTS - N_CONVS < N_OTHERS) {
		const other *o = &others[i - N_PRODUCTS - N_CONVS];

		snprintf(name, n_name, "%s", o->name);
		snprintf(text, TEXT, "%s", o->text);
	} else {
		return false;
	}
	return true;
}

static bool another(setting *s, int threads, const other *o)
{
	return one(s,
		&(contest){.name = o->name,
			.flops = o->flops,
			.threads = threads,
			.product = o->product.k > 0 ? &o->product : NULL,
			.second = o->second.k > 0 ? &o->second : NULL,
			.pass_text = o->pass},
		o->text);
}

static bool all(setting *s, int threads)
{
	bool good = true;

	for (int i = 0; good && i < N_PRODUCTS; i++)
		good = product(s, threads, &products[i]);
	for (int i = 0; good && i < N_CONVS; i++)
		good = convolution(s, threads, &convs[i]);
	for (int i = 0; good && i < N_OTHERS; i++)
		good = another(s, threads, &others[i]);
	return good;
}

static void say_missing(bool json)
{
	for (int i = 0; i < MAX_LIBRARIES; i++) {
		bench_gemm *g = bench_gemm_at(i);

		if (g == NULL || bench_gemm_open(g))
			continue;
		if (json)
			printf("{\"bench\":\"contract\",\"case\":\"%s\","
			       "\"skipped\":\"not installed\"}\n",
				bench_gemm_name(g));
		else
			printf("%s: skipped, because it is not installed\n",
				bench_gemm_name(g));
	}
}

int bench_contract(const char *only, int repeat, bool json)
{
	setting s = {.only = only, .repeat = repeat, .json = json};
	bool good = true;

	say_missing(json);
	if (!json)
		printf("%-22s %2s %10s %9s  libraries: GFLOP/s; ratio to the "
		       "best\n",
			"case", "th", "ms", "GFLOP/s");
	for (int i = 0; i <= MAX_LIBRARIES && good; i++) {
		s.seconds[i] = cli_alloc((size_t)repeat, sizeof(double));
		good = s.seconds[i] != NULL;
	}
	for (int threads = 1; threads <= 2 && good; threads++) {
		tn_options o = TN_OPTIONS_INIT;

		o.threads = threads;
		if (cli_context_new(&s.x, &o) < 0) {
			good = false;
			break;
		}
		good = all(&s, threads);
		if (!good)
			cli_diag(tn_context_diag(s.x));
		cli_context_free(s.x);
	}
	for (int i = 0; i <= MAX_LIBRARIES; i++)
		free(s.seconds[i]);
	return good ? CLI_OK : CLI_FAILED;
}
