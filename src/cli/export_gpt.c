/*
 * export_gpt.c: `tenon export CHECKPOINT -o MODEL.onnx`: writes a checkpoint of
 * tenon train as an ONNX model: ids [1, t] -> logits [1, t, vocab].
 *
 *     checkpoint -> program as text, its parameters bound -> tn_onnx_export
 *
 * The sizes are those of the checkpoint; the length is its context, unless an
 * option gives another. Parameters keep their names ("block0.up.weight").
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/train_net.h"
#include "apps/gpt/train.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct gpt_export {
	tn_context *c;
	train_config k;
	train_gpt *g;
	tn_params *p;
	tn_program *program;
	int64_t batch, length;
	const train_net *learn; /* NULL: no step of training */
	tn_optimizer *opt;
	tn_function *forward; /* with a limit of memory, else NULL */
	tn_function *step;
	const char **name;
	void **data;
} gpt_export;

static bool said(const gpt_export *x)
{
	cli_diag(tn_context_diag(x->c));
	return false;
}

/* ---- the program as text ---- */

/* Prints "block0.up.weight" as a name of .tn, which has no dots. */
static void put_name(FILE *f, const char *name)
{
	for (const char *s = name; *s != '\0'; s++)
		fputc(*s == '.' ? '_' : *s, f);
}

static void put_inputs(FILE *f, const gpt_export *x)
{
	fprintf(f, "program {\n  ids: i64[%" PRId64 ",%" PRId64 "]\n", x->batch,
		x->length);
	for (int32_t i = 0; i < tn_params_n(x->p); i++) {
		const tn_tensor *t = tn_params_at(x->p, i);

		fputs("  ", f);
		put_name(f, tn_params_name(x->p, i));
		fprintf(f, ": %s[", tn_dtype_name(tn_tensor_dtype(t)));
		for (int32_t k = 0; k < tn_tensor_rank(t); k++)
			fprintf(f, "%s%" PRId64, k > 0 ? "," : "",
				tn_tensor_shape(t)[k]);
		fputs("]\n", f);
	}
}

/* Splits the last axis into heads: [b, t, w] -> [b, heads, t, d] */
static void put_heads(FILE *f, const gpt_export *x, int64_t i, const char *what)
{
	fprintf(f,
		"  %s_%" PRId64 "l = linear(n1_%" PRId64 ", block%" PRId64
		"_attention_%s_weight, block%" PRId64 "_attention_%s_bias)\n"
		"  %s_%" PRId64 "r = reshape(%s_%" PRId64 "l, shape=[%" PRId64
		",%" PRId64 ",%" PRId64 ",%" PRId64 "])\n"
		"  %s_%" PRId64 " = transpose(%s_%" PRId64 "r, perm=[0,2,1,3])\n",
		what, i, i, i, what, i, what, what, i, what, i, x->batch,
		x->length, x->k.heads, x->k.width / x->k.heads, what, i, what,
		i);
}

static void put_block(FILE *f, const gpt_export *x, int64_t i)
{
#define N "%" PRId64
	fprintf(f, "  n1_" N " = layer_norm(x" N ", block" N "_norm1_weight, "
		   "block" N "_norm1_bias)\n", i, i, i, i);
	put_heads(f, x, i, "query");
	put_heads(f, x, i, "key");
	put_heads(f, x, i, "value");
	fprintf(f, "  a" N " = attention(query_" N ", key_" N ", value_" N ", "
		   "causal=1, scale=%.17g)\n", i, i, i, i,
		1 / sqrt((double)(x->k.width / x->k.heads)));
	fprintf(f, "  at" N " = transpose(a" N ", perm=[0,2,1,3])\n"
		   "  ar" N " = reshape(at" N ", shape=[" N "," N "," N "])\n",
		i, i, i, i, x->batch, x->length, x->k.width);
	fprintf(f, "  h" N " = linear(ar" N ", block" N "_attention_out_weight, "
		   "block" N "_attention_out_bias)\n", i, i, i, i);
	fprintf(f, "  m" N " = add(x" N ", h" N ")\n", i, i, i);
	fprintf(f, "  n2_" N " = layer_norm(m" N ", block" N "_norm2_weight, "
		   "block" N "_norm2_bias)\n", i, i, i, i);
	fprintf(f, "  u" N " = linear(n2_" N ", block" N "_up_weight, block" N
		   "_up_bias)\n", i, i, i, i);
	fprintf(f, "  g" N " = gelu_tanh(u" N ")\n", i, i);
	fprintf(f, "  d" N " = linear(g" N ", block" N "_down_weight, block" N
		   "_down_bias)\n", i, i, i, i);
	fprintf(f, "  x" N " = add(m" N ", d" N ")\n", i + 1, i, i);
#undef N
}

static char *program_text(const gpt_export *x, size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);

	if (f == NULL)
		return NULL;
	put_inputs(f, x);
	fprintf(f, "  words = embedding(ids, token_weight)\n"
		   "  places = narrow(place_weight, axis=0, start=0, count=%"
		   PRId64 ")\n  x0 = add(words, places)\n", x->length);
	for (int64_t i = 0; i < x->k.layers; i++)
		put_block(f, x, i);
	fprintf(f, "  last = layer_norm(x%" PRId64 ", norm_weight, norm_bias)\n"
		   "  logits = linear_nobias(last, token_weight)\n"
		   "  return logits\n}\n", x->k.layers);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- the checkpoint ---- */

static bool load(gpt_export *x, const char *path)
{
	train_state s;
	bool whole;

	x->k = train_config_new();
	if (train_checkpoint_read(x->c, path, &x->k, &s, &whole) < 0 ||
		train_gpt_new(&x->g, x->c, &x->k) < 0)
		return said(x);
	x->p = train_gpt_params(x->g);
	if (whole) {
		cli_error(path, "export.checkpoint", "the file has the whole "
			"state of a run; best.safetensors has only the "
			"parameters");
		return false;
	}
	if (tn_params_load(x->p, path, true) < 0)
		return said(x);
	if (train_config_dtype(&x->k) != TN_F32) {
		cli_error(path, "export.checkpoint", "its parameters are %s, "
			"but only f32 can be exported: train with "
			"--dtype f32",
			tn_dtype_name(train_config_dtype(&x->k)));
		return false;
	}
	return true;
}

/* Reads "batch=2" and "length=8". */
static bool set_dims(gpt_export *x, const cli_list *dims)
{
	x->batch = x->learn != NULL ? x->learn->batch : 1;
	x->length = x->k.context;
	for (int i = 0; i < dims->n; i++) {
		const char *s = dims->at[i], *eq = strchr(s, '=');
		bool is_batch = strncmp(s, "batch=", 6) == 0;
		char *end = NULL;
		long long v = eq != NULL ? strtoll(eq + 1, &end, 10) : 0;

		if ((!is_batch && strncmp(s, "length=", 7) != 0) || *end != '\0' ||
			v < 1 || v > (is_batch ? 65536 : x->k.context)) {
			cli_error(NULL, "export.dim", "--dim %s: for a "
				"checkpoint, give batch=N or length=N, which "
				"can be at most %lld",
				s, (long long)x->k.context);
			return false;
		}
		*(is_batch ? &x->batch : &x->length) = v;
	}
	if (x->learn == NULL || x->length == x->k.context)
		return true;
	cli_error(NULL, "export.dim", "a step of training has the length of the "
		"checkpoint's context, %lld", (long long)x->k.context);
	return false;
}

static bool read_params(gpt_export *x)
{
	int32_t n = tn_params_n(x->p);

	x->name = cli_alloc((size_t)n, sizeof *x->name);
	x->data = cli_alloc((size_t)n, sizeof *x->data);
	if (x->name == NULL || x->data == NULL)
		return false;
	for (int32_t i = 0; i < n; i++) {
		tn_tensor *t = tn_params_at(x->p, i);
		size_t bytes = (size_t)tn_tensor_n_elems(t) * sizeof(float);

		x->name[i] = tn_params_name(x->p, i);
		if (posix_memalign(&x->data[i], 64, bytes + 1) != 0) {
			x->data[i] = NULL;
			cli_error(NULL, "run.memory", "no memory");
			return false;
		}
		if (tn_read(t, x->data[i], bytes) < 0)
			return said(x);
	}
	return true;
}

static bool write_program(gpt_export *x, const char *out, const cli_export_c *to_c)
{
	const cli_model m = {.program = x->program};

	if (to_c != NULL)
		return cli_export_c_write(to_c, x->c, &m);
	return tn_onnx_export(x->program, out) >= 0 || said(x);
}

static bool write_out(gpt_export *x, const char *out, const cli_export_c *to_c)
{
	size_t n = 0;
	char *text = program_text(x, &n);
	bool ok;

	if (text == NULL) {
		cli_error(NULL, "run.memory", "no memory");
		return false;
	}
	ok = (tn_program_parse(&x->program, x->c, text, n, "checkpoint") >= 0 &&
		     tn_program_bind(x->program, 1, x->name,
			     (const void *const *)x->data) >= 0) ||
	     said(x);
	ok = ok && write_program(x, out, to_c);
	free(text);
	return ok;
}

/* ---- a step of training ---- */

/* in: ids (b, t), the next ones (b * t) */
static tn_status record_forward(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	gpt_export *x = user;

	out[0] = train_gpt_loss(x->g, in[0], in[1]);
	return tn_context_status(c);
}

static tn_status record_step(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	gpt_export *x = user;

	if (x->forward != NULL)
		tn_function_call(x->forward, in, out);
	else
		record_forward(c, user, in, out);
	tn_backward(out[0], NULL);
	tn_optimizer_step(x->opt);
	/* gradients of what is frozen; nothing computes them then */
	for (int32_t i = 0; i < tn_params_n(x->p); i++)
		tn_zero_grad(tn_params_at(x->p, i));
	return tn_context_status(c);
}

static bool is_frozen(const gpt_export *x, const char *name)
{
	for (int i = 0; i < x->learn->freeze.n; i++)
		if (fnmatch(x->learn->freeze.at[i], name, 0) == 0)
			return true;
	return false;
}

/* The optimiser of tenon train, but for what the command line says. */
static bool make_step(gpt_export *x, bool limited)
{
	tn_optimizer_options o = x->learn->rule;
	const train_words *w = &x->learn->words;
	int32_t n = tn_params_n(x->p), n_trained = 0;

	o.lr = w->lr != NULL ? o.lr : x->k.lr;
	o.decay = w->decay != NULL ? o.decay : x->k.decay;
	o.clip_norm = w->clip != NULL ? o.clip_norm : x->k.clip;
	if (tn_optimizer_new(&x->opt, x->c, x->learn->optimizer, &o) < 0)
		return said(x);
	for (int32_t i = 0; i < n; i++) {
		tn_tensor *p = tn_params_at(x->p, i);

		if (is_frozen(x, tn_params_name(x->p, i)))
			continue;
		if (tn_optimizer_add(x->opt, p) < 0)
			return said(x);
		n_trained++;
	}
	if (n_trained == 0) {
		cli_error(NULL, "train.frozen", "the model has no parameter "
			"left to train");
		return false;
	}
	if (limited && tn_compile(&x->forward, x->c, record_forward, x, 2, 1,
			       "forward") < 0)
		return said(x);
	return tn_compile(&x->step, x->c, record_step, x, 2, 1, "step") >= 0 ||
		said(x);
}

static bool write_step(gpt_export *x, const cli_export_c *to_c)
{
	static const char *const names[] = {"ids", "next"};
	int64_t shape[] = {x->batch, x->length}, n = x->batch * x->length;
	int64_t *ids = cli_alloc((size_t)n * 2, sizeof *ids);
	tn_tensor *in[2];

	if (ids == NULL || !make_step(x, to_c->memory_limit >= 0)) {
		free(ids);
		return false;
	}
	tn_fill_random(TN_I64, ids, 2 * n, to_c->first, 0, x->k.vocab);
	in[0] = tn_tensor_new(x->c, TN_I64, 2, shape, ids);
	in[1] = tn_tensor_new(x->c, TN_I64, 1, &n, ids + n);
	free(ids);
	return cli_export_c_step(to_c, x->c, x->step, x->opt, in, names);
}

struct gpt_job {
	const char *file, *out;
	const cli_list *dims;
	const train_net *learn;
};

static int once(void *arg, const cli_export_c *to_c)
{
	const struct gpt_job *j = arg;
	gpt_export x = {.learn = j->learn};
	bool ok;

	if (cli_export_c_context(to_c, &x.c) < 0)
		return cli_no_context();
	ok = load(&x, j->file) && set_dims(&x, j->dims) &&
		(j->learn != NULL
				? write_step(&x, to_c)
				: read_params(&x) && write_out(&x, j->out, to_c));
	tn_function_free(x.step);
	tn_function_free(x.forward);
	tn_optimizer_free(x.opt);
	tn_program_free(x.program);
	for (int32_t i = 0; x.data != NULL && i < tn_params_n(x.p); i++)
		free(x.data[i]);
	free(x.data);
	free(x.name);
	train_gpt_free(x.g);
	cli_close(x.c);
	return ok ? CLI_OK : CLI_FAILED;
}

int cli_export_gpt(const char *file, const char *out, const cli_list *dims,
	const cli_export_c *to_c, const train_net *learn)
{
	struct gpt_job j = {file, out, dims, learn};

	return learn != NULL ? cli_export_c_curve(to_c, once, &j)
			     : once(&j, to_c);
}
