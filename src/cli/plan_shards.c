/*
 * plan_shards.c: `tenon plan-shards`: finds the best placements of the inputs
 * of a program on a mesh. The mesh need not exist.
 *
 *     tenon plan-shards --layers 12 --mesh data=8,model=4 --memory 2e9
 */
#include "cli/cli.h"
#include "apps/gpt/train.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 1 << 20 };

typedef struct asked {
	const char *file, *mesh, *memory, *link, *flops;
	cli_list dims;
	bool train, json;
	train_config gpt;
} asked;

/* ---- the model of tenon train, as text ---- */

typedef struct text {
	char *at;
	size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void put(
	text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at + t->n, MOST_TEXT - t->n, fmt, args);
	va_end(args);
	if (n > 0)
		t->n += (size_t)n;
	if (t->n >= MOST_TEXT)
		t->n = MOST_TEXT - 1;
}

static void put_inputs(text *t, const train_config *k)
{
	static const char *const square[] = {"q", "k", "v", "out"};
	int w = (int)k->width;

	put(t, "program {\n  text: i64[%d,%d]\n  next: i64[%d]\n",
		(int)k->batch, (int)k->context, (int)(k->batch * k->context));
	put(t, "  token: f32[%d,%d]\n  place: f32[%d,%d]\n", (int)k->vocab, w,
		(int)k->context, w);
	put(t, "  norm_g: f32[%d]\n  norm_c: f32[%d]\n", w, w);
	for (int i = 0; i < (int)k->layers; i++) {
		for (int j = 1; j < 3; j++)
			put(t, "  b%d_norm%d_g: f32[%d]\n"
			       "  b%d_norm%d_c: f32[%d]\n", i, j, w, i, j, w);
		for (int j = 0; j < 4; j++)
			put(t, "  b%d_%s_w: f32[%d,%d]\n  b%d_%s_b: f32[%d]\n",
				i, square[j], w, w, i, square[j], w);
		put(t, "  b%d_up_w: f32[%d,%d]\n  b%d_up_b: f32[%d]\n"
		       "  b%d_down_w: f32[%d,%d]\n  b%d_down_b: f32[%d]\n",
			i, 4 * w, w, i, 4 * w, i, w, 4 * w, i, w);
	}
}

static void put_head(text *t, const train_config *k, int i, const char *name)
{
	put(t, "  l%d%s = linear(n%d, b%d_%s_w, b%d_%s_b)\n"
	       "  r%d%s = reshape(l%d%s, shape=[%d,%d,%d,%d])\n"
	       "  h%d%s = transpose(r%d%s, perm=[0,2,1,3])\n",
		i, name, i, i, name, i, name, i, name, i, name, (int)k->batch,
		(int)k->context, (int)k->heads, (int)(k->width / k->heads), i,
		name, i, name);
}

static void put_block(text *t, const train_config *k, int i)
{
	put(t, "  n%d = layer_norm(x%d, b%d_norm1_g, b%d_norm1_c)\n", i, i, i,
		i);
	put_head(t, k, i, "q");
	put_head(t, k, i, "k");
	put_head(t, k, i, "v");
	put(t, "  a%d = attention(h%dq, h%dk, h%dv, causal=true, scale=0.125)\n"
	       "  s%d = transpose(a%d, perm=[0,2,1,3])\n"
	       "  j%d = reshape(s%d, shape=[%d,%d,%d])\n"
	       "  o%d = linear(j%d, b%d_out_w, b%d_out_b)\n"
	       "  y%d = add(x%d, o%d)\n",
		i, i, i, i, i, i, i, i, (int)k->batch, (int)k->context,
		(int)k->width, i, i, i, i, i, i, i);
	put(t, "  m%d = layer_norm(y%d, b%d_norm2_g, b%d_norm2_c)\n"
	       "  u%d = linear(m%d, b%d_up_w, b%d_up_b)\n"
	       "  g%d = gelu_tanh(u%d)\n"
	       "  d%d = linear(g%d, b%d_down_w, b%d_down_b)\n"
	       "  x%d = add(y%d, d%d)\n",
		i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i, i);
}

char *cli_gpt_text(const void *config)
{
	const train_config *k = config;
	text t = {.at = cli_alloc(MOST_TEXT, 1)};
	int n = (int)k->layers;

	if (t.at == NULL)
		return NULL;
	put_inputs(&t, k);
	put(&t, "  e = embedding(text, token)\n  x0 = add(e, place)\n");
	for (int i = 0; i < n; i++)
		put_block(&t, k, i);
	put(&t, "  f = layer_norm(x%d, norm_g, norm_c)\n"
		"  p = linear_nobias(f, token)\n"
		"  z = reshape(p, shape=[%d,%d])\n"
		"  loss = cross_entropy(z, next)\n  return loss\n}\n",
		n, (int)(k->batch * k->context), (int)k->vocab);
	return t.at;
}

/* ---- numbers ---- */

/* Reads a positive number; 0: invalid. */
static double positive(const char *s, char **end)
{
	double v = strtod(s, end);

	return *end != s && v > 0 && v < 1e30 ? v : 0;
}

/* Reads "GB/s,SECONDS". */
static bool read_link(const char *s, tn_shard_wishes *w)
{
	char *end;

	w->link = 1e9 * positive(s, &end);
	if (w->link > 0 && *end == ',') {
		w->latency = strtod(end + 1, &end);
		return *end == '\0' && w->latency >= 0 && w->latency < 1e3;
	}
	return w->link > 0 && *end == '\0';
}

static int plan(const asked *k, const tn_shard_wishes *w)
{
	tn_context *c = NULL;
	cli_model m = {0};
	char *own = NULL, *out = NULL;
	bool good = tn_context_new(&c, NULL) >= 0;

	if (!good)
		cli_no_context();
	if (good && k->file != NULL) {
		good = cli_model_open(&m, c, k->file, &k->dims, NULL, false);
	} else if (good) {
		own = cli_gpt_text(&k->gpt);
		good = own != NULL;
		if (good && tn_program_parse(&m.program, c, own, strlen(own),
				    "gpt") < 0) {
			good = false;
			cli_diag(tn_context_diag(c));
		}
	}
	if (good && tn_program_plan_shards(&out, NULL, m.program, w) < 0) {
		good = false;
		cli_diag(tn_context_diag(c));
	}
	if (good)
		fputs(out, stdout);
	tn_text_free(out);
	free(own);
	cli_model_close(&m);
	cli_close(c);
	return good ? CLI_OK : CLI_FAILED;
}

static int check(const cli_command *self, asked *k)
{
	tn_shard_wishes w = {.link = 10e9, .latency = 5e-6, .flops = 100e9};
	char *end = NULL;

	if (k->mesh == NULL || k->memory == NULL)
		return cli_usage(self, "give --mesh and --memory");
	w.mesh = k->mesh;
	w.json = k->json;
	w.train = k->train || k->file == NULL;
	w.memory = positive(k->memory, &end);
	if (w.memory <= 0 || *end != '\0')
		return cli_usage(self, "--memory %s: bytes, above 0",
			k->memory);
	if (k->link != NULL && !read_link(k->link, &w))
		return cli_usage(self, "--link %s: GB/s[,SECONDS]", k->link);
	if (k->flops != NULL) {
		w.flops = 1e9 * positive(k->flops, &end);
		if (w.flops <= 0 || *end != '\0')
			return cli_usage(self, "--flops %s: GFLOP/s, above 0",
				k->flops);
	}
	if (k->gpt.width % k->gpt.heads != 0)
		return cli_usage(self, "--heads must divide --width");
	return plan(k, &w);
}

enum { N_FIELDS = 6 };
static const char *const fields[N_FIELDS] = {
	"layers", "heads", "width", "context", "batch", "vocab"};

static int run(const cli_command *self, int argc, char **argv)
{
	asked k = {.gpt = train_config_new()};
	const char *given[N_FIELDS] = {NULL};
	cli_option options[7 + N_FIELDS + 1] = {
		{"mesh", .value = &k.mesh}, {"memory", .value = &k.memory},
		{"link", .value = &k.link}, {"flops", .value = &k.flops},
		{"dim", .list = &k.dims}, {"train", .flag = &k.train},
		{"json", .flag = &k.json}};
	int code;

	for (int i = 0; i < N_FIELDS; i++)
		options[7 + i] = (cli_option){fields[i], .value = &given[i]};
	k.gpt.vocab = 256;
	k.dims.at = cli_alloc((size_t)argc + 1, sizeof *k.dims.at);
	if (k.dims.at == NULL)
		return CLI_FAILED;
	code = cli_args(self, argc, argv, options, &k.file, 1);
	for (int i = 0; i < N_FIELDS && code < 0; i++) {
		int64_t *at[N_FIELDS] = {&k.gpt.layers, &k.gpt.heads,
			&k.gpt.width, &k.gpt.context, &k.gpt.batch,
			&k.gpt.vocab};
		char *end;
		long v;

		if (given[i] == NULL)
			continue;
		v = strtol(given[i], &end, 10);
		if (*end != '\0' || v < 1 || v > 1000000)
			code = cli_usage(self, "--%s must be 1 to 1000000",
				fields[i]);
		*at[i] = v;
	}
	if (code < 0)
		code = check(self, &k);
	free((void *)k.dims.at);
	return code;
}

const cli_command cli_plan_shards = {
	"plan-shards",
	"propose placements of tensors on a mesh of processes",
	"usage: tenon plan-shards [FILE.tn|MODEL.onnx] --mesh AXIS=N,...\n"
	"                         --memory BYTES [--link GB/s[,SECONDS]]\n"
	"                         [--flops GFLOP/s] [--train] [--json]\n"
	"                         [--dim NAME=SIZE]...\n"
	"       tenon plan-shards [--layers N] [--heads N] [--width N]\n"
	"                         [--context N] [--batch N] [--vocab N] --mesh ..\n"
	"\n"
	"Proposes placements on a mesh for the inputs of a program. It starts no\n"
	"process, so the mesh may have thousands. Without a file it plans a\n"
	"training step of the GPT of `tenon train` with the given sizes.\n"
	"\n"
	"  --mesh       axes and their extents, such as data=8,model=4\n"
	"  --memory     memory of a process; it is an error if nothing fits\n"
	"  --link       rate at which a process receives, and the time of one\n"
	"               message (10,5e-6)\n"
	"  --flops      rate at which a process computes (100)\n"
	"  --train      count the gradients of all floats, and AdamW's states\n"
	"  --dim        size of a named dimension of an ONNX model\n"
	"  --json       print JSON\n"
	"  --help       print this text\n",
	run,
};
