/*
 * generate.c: `tenon bench generate`: reads prompts and writes tokens with GPTs
 * of drawn weights, as tenon generate does.
 *
 *     gpt_85m_f32    prefill 128, prefill 512: tokens of a prompt a second;
 *                    decode: tokens written a second, behind a prompt of 128
 *
 * bound: the tokens a second that the weights of the products allow, if they are
 * read once for each token at the rate of the fastest loop that reads memory
 * (decode), or if a prompt's products run at the best rate of a library's product
 * of f32 (prefill). Times are medians; what is compiled is compiled before.
 */
#include "bench/bench.h"
#include "apps/gpt/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 1024, MOST = 512, CUBE = 1024, MAX_TIMES = 1000 };
enum { READ_FLOATS = 64 << 20, BEST_OF = 5, PRODUCT_RUNS = 20 };

typedef struct size {
	const char *name;
	int64_t layers, heads, width, vocab;
} size;

static const size sizes[] = {
	{"85m", 12, 12, 768, 256},
	{"124m", 12, 12, 768, 50257}, /* GPT-2 small */
};
static const int64_t types[] = {0, 2}; /* of train_dtypes: f32, bf16 */

/* What of a text is measured: tokens of its prompt, and tokens behind it. */
static const struct work {
	const char *name;
	int n_prompt, n_written;
} works[] = {{"prefill 128", 128, 0}, {"prefill 512", 512, 0},
	{"decode", 128, 64}};
enum { N_WORKS = sizeof works / sizeof *works };

typedef struct rates {
	double read;  /* bytes a second; 0: not measured */
	double flops; /* a second, of a library; 0: none is installed */
} rates;

/* ---- bounds ---- */

static double library_flops(void)
{
	int best = -1;
	double seconds = bench_gemm_best(CUBE, PRODUCT_RUNS, &best);

	return best >= 0 ? 2.0 * CUBE * CUBE * CUBE / seconds : 0;
}

static double read_rate(void)
{
	bench_ref *r = bench_ref_new(READ_FLOATS, 0);
	double best = 0;

	if (r == NULL)
		return 0;
	(void)bench_ref_choose(r, BENCH_READ);
	for (int i = 0; i < BEST_OF; i++) {
		double v = bench_ref_bytes(r, BENCH_READ) /
			   bench_ref_run(r, BENCH_READ);

		best = v > best ? v : best;
	}
	bench_ref_free(r);
	return best;
}

/* The weights of all products, of which each token reads each one once. */
static double weights(const train_config *k)
{
	double w = (double)k->width;

	return (double)k->layers * 12 * w * w + (double)k->vocab * w;
}

static double bound(const train_config *k, const struct work *w, const rates *r)
{
	double bytes = train_config_dtype(k) == TN_BF16 ? 2 : 4;
	double head = (double)k->vocab * (double)k->width;
	/* only the last token of a prompt has scores */
	double flops = 2 * (weights(k) - head + head / w->n_prompt);

	return w->n_written > 0 ? r->read / (bytes * weights(k))
				: r->flops / flops;
}

/* ---- one case ---- */

typedef struct job {
	tn_context *c;
	train_gpt *g;
	train_decode *d;
	train_token text[MOST + MAX_TIMES];
	float *score; /* (vocab) */
} job;

static void close_job(job *j)
{
	train_decode_free(j->d);
	train_gpt_free(j->g);
	free(j->score);
	if (j->c != NULL && tn_context_status(j->c) != TN_OK)
		cli_diag(tn_context_diag(j->c));
	cli_context_free(j->c);
}

static bool open_job(job *j, const train_config *k)
{
	j->score = cli_alloc((size_t)k->vocab, sizeof *j->score);
	if (j->score == NULL || cli_context_new(&j->c, NULL) < 0)
		return false;
	for (int i = 0; i < MOST + MAX_TIMES; i++)
		j->text[i] = (train_token)((i * 7919 + i / 7) % 251);
	if (train_config_check(k, j->c) < 0 ||
		train_gpt_new(&j->g, j->c, k) < 0)
		return false;
	tn_params_set_training(train_gpt_params(j->g), false);
	return train_decode_new(&j->d, j->g) >= 0;
}

/* Seconds of a token of a text that was not read before; less than 0: failed. */
static double once(job *j, const struct work *w)
{
	double at = cli_now();
	size_t n = (size_t)w->n_prompt;
	tn_status s;

	train_decode_forget(j->d);
	s = train_decode_scores(j->d, j->text, n, j->score);
	if (w->n_written > 0)
		at = cli_now();
	for (int i = 1; i <= w->n_written && s >= 0; i++)
		s = train_decode_scores(j->d, j->text, n + (size_t)i, j->score);
	if (s < 0)
		return -1;
	return (cli_now() - at) /
	       (w->n_written > 0 ? w->n_written : w->n_prompt);
}

static void say(const char *name, const struct work *w, double seconds,
	double most, bool json)
{
	if (!json) {
		printf("%-14s %-12s %10.1f", name, w->name, 1 / seconds);
		if (most > 0)
			printf(" %10.1f %6.2f\n", most, 1 / seconds / most);
		else
			printf(" %10s %6s\n", "-", "-");
		fflush(stdout);
		return;
	}
	printf("{\"bench\":\"generate\",\"name\":\"%s\",\"work\":\"%s\","
	       "\"tokens_per_second\":%.6g,\"bound\":",
		name, w->name, 1 / seconds);
	cli_json_number(stdout, most > 0 ? most : NAN);
	printf(",\"ratio\":");
	cli_json_number(stdout, most > 0 ? 1 / seconds / most : NAN);
	printf("}\n");
	fflush(stdout);
}

static bool one(const char *name, const train_config *k, const rates *r,
	int repeat, bool json)
{
	job *j = cli_alloc(1, sizeof *j);
	double v[MAX_TIMES];
	bool ok = j != NULL && open_job(j, k);

	for (int i = 0; i < N_WORKS && ok; i++) {
		const struct work *w = &works[i];

		cli_progress("bench generate: %s, %s", name, w->name);
		ok = once(j, w) >= 0; /* compiles */
		for (int n = 0; n < repeat && ok; n++) {
			v[n] = once(j, w);
			ok = v[n] >= 0;
		}
		cli_progress("%s", "");
		if (ok)
			say(name, w, bench_median(v, repeat), bound(k, w, r),
				json);
	}
	if (j != NULL)
		close_job(j);
	free(j);
	return ok;
}

int bench_generate(const char *only, int repeat, bool json)
{
	rates r = {read_rate(), library_flops()};
	int n = 0;

	if (!json)
		printf("memory: %.1f GB/s; products of a library: %.0f "
		       "GFLOP/s (0: none is installed)\n\n"
		       "%-14s %-12s %10s %10s %6s\n", 1e-9 * r.read,
			1e-9 * r.flops, "case", "work", "tokens/s", "bound",
			"ratio");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
			train_config k = train_config_new();
			char name[32];

			snprintf(name, sizeof name, "gpt_%s_%s", sizes[i].name,
				train_dtypes[types[t]]);
			if (only != NULL && strstr(name, only) == NULL)
				continue;
			n++;
			k.layers = sizes[i].layers;
			k.heads = sizes[i].heads;
			k.width = sizes[i].width;
			k.vocab = sizes[i].vocab;
			k.context = CONTEXT;
			k.batch = 1;
			k.dtype = types[t];
			if (!one(name, &k, &r, repeat, json))
				return CLI_FAILED;
		}
	return n > 0 ? CLI_OK
		     : cli_error(NULL, "bench.case", "no case \"%s\"", only);
}
