/*
 * generate.c: `tenon generate`: continues a text with a model of tenon train,
 * and prints each token as it is chosen.
 *
 *     tenon generate --model model --prompt "static int " --tokens 200
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"
#include "apps/gpt/train.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

typedef struct job {
	tn_context *c;
	train_gpt *g;
	tn_optimizer *opt; /* loads the states of a complete checkpoint */
	tn_params *all;
	train_choice how;
	int64_t n;
	const char *prompt;
	train_bpe *bpe;
	train_utf8 utf8;
	bool is_terminal, tell;
	int64_t n_said; /* number of tokens so far; half of them: */
	tn_stats half;
	double half_at;
} job;

/*
 * Is it a control character? A terminal must not execute what a model writes.
 */
static bool is_control(const char *out, size_t n)
{
	const uint8_t *b = (const uint8_t *)out;

	if (n == 2 && b[0] == 0xc2)
		return b[1] < 0xa0;
	return n == 1 && ((b[0] < 0x20 && b[0] != '\n' && b[0] != '\t') ||
				 b[0] == 0x7f);
}

/*
 * Prints complete characters to a terminal, and the bytes unchanged to a file.
 */
static void show(job *j, uint8_t byte)
{
	char out[8];
	size_t n = train_utf8_push(
		&j->utf8, byte, j->is_terminal ? "?" : NULL, out);

	if (j->is_terminal && is_control(out, n))
		out[0] = '?', n = 1;
	fwrite(out, 1, n, stdout);
}

static void say(void *arg, train_token token)
{
	job *j = arg;
	const uint8_t *b;
	size_t n;

	b = train_bpe_bytes(j->bpe, token, &n);
	for (size_t i = 0; i < n; i++)
		show(j, b[i]);
	fflush(stdout);
	if (++j->n_said == (j->n + 1) / 2) {
		tn_context_stats(j->c, &j->half);
		j->half_at = cli_now();
	}
}

/* Prints the time of the second half of the tokens. */
static void say_stats(const job *j)
{
	double seconds = cli_now() - j->half_at;
	int64_t n = j->n_said - (j->n + 1) / 2;
	tn_stats s;
	int64_t taken;

	tn_context_stats(j->c, &s);
	taken = s.bytes_peak - j->half.bytes_peak + s.bytes_live -
		j->half.bytes_live + s.bytes_plans - j->half.bytes_plans;
	taken = taken > 0 ? taken : 0; /* memory may have been freed */
	if (n > 0)
		cli_note("%.1f tokens/s; in the second half, %" PRId64
			 " tokens, %" PRId64 " programs were compiled, %" PRId64
			 " bytes taken, %" PRId64 " copied",
			(double)n / seconds, n,
			s.n_plan_misses - j->half.n_plan_misses +
				s.n_programs - j->half.n_programs,
			taken,
			s.copied_bytes - j->half.copied_bytes +
				s.inner_copied_bytes -
				j->half.inner_copied_bytes);
}

static tn_status load(job *j, const char *path)
{
	train_config k = train_config_new();
	train_state s;
	bool whole;

	if (train_checkpoint_read(j->c, path, &k, &s, &whole) < 0 ||
		train_checkpoint_vocab(&j->bpe, j->c, path, &k, &s) < 0 ||
		train_gpt_new(&j->g, j->c, &k) < 0)
		return tn_context_status(j->c);
	if (!whole)
		return tn_params_load(train_gpt_params(j->g), path, true);
	if (tn_optimizer_new(&j->opt, j->c, "adamw", NULL) < 0 ||
		tn_optimizer_add_all(j->opt, train_gpt_params(j->g)) < 0 ||
		train_all_params(&j->all, j->g, j->opt) < 0)
		return TN_ENOMEM;
	return tn_params_load(j->all, path, true);
}

static int generate(job *j)
{
	size_t n_prompt = strlen(j->prompt), n;
	const char *prompt = n_prompt > 0 ? j->prompt : "\n";
	train_token *text = cli_alloc(
		strlen(prompt) + (size_t)j->n + 1, sizeof *text);
	char out[8];
	tn_status s;

	if (text == NULL)
		return CLI_FAILED;
	n = train_bpe_encode(
		j->bpe, (const uint8_t *)prompt, strlen(prompt), text);
	for (size_t i = 0; i < n_prompt; i++)
		show(j, (uint8_t)prompt[i]);
	fflush(stdout);
	s = train_gpt_write(j->g, &j->how, text, n, (size_t)j->n, say, j);
	fwrite(out, 1,
		train_utf8_end(&j->utf8, j->is_terminal ? "?" : NULL, out),
		stdout);
	putchar('\n');
	fflush(stdout);
	if (s >= 0 && j->tell)
		say_stats(j);
	free(text);
	return s < 0 ? CLI_FAILED : CLI_OK;
}

static int real(const cli_command *self, const char *name, const char *text,
	double lo, double hi, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end != text && *end == '\0' && *out >= lo && *out <= hi)
		return -1;
	return cli_usage(self, "--%s: \"%s\" is not a number from %g to %g",
		name,
		text, lo, hi);
}

static int whole(const cli_command *self, const char *name, const char *text,
	double hi, int64_t *out)
{
	double v;
	int code = real(self, name, text, 0, hi, &v);

	if (code < 0 && v != floor(v))
		return cli_usage(self, "--%s: \"%s\" is not an integer", name,
			text);
	*out = code < 0 ? (int64_t)v : 0;
	return code;
}

static int run(const cli_command *self, int argc, char **argv)
{
	const char *model = "tenon-model", *tokens = "400", *temperature = "0.8";
	const char *top_k = "0", *top_p = "1", *seed = "0", *threads = "0";
	tn_options o = TN_OPTIONS_INIT;
	job j = {.prompt = "", .is_terminal = isatty(STDOUT_FILENO)};
	const cli_option options[] = {{"model", .value = &model},
		{"prompt", .value = &j.prompt}, {"tokens", .value = &tokens},
		{"temperature", .value = &temperature},
		{"top-k", .value = &top_k}, {"top-p", .value = &top_p},
		{"seed", .value = &seed}, {"threads", .value = &threads},
		{"device", .value = &o.device},
		{"interp", .flag = &o.interp}, {"stats", .flag = &j.tell},
		{"uncached", .flag = &j.how.uncached}, {0}};
	char path[PATH_ROOM];
	int64_t n_threads = 0, from = 0;
	struct stat st;
	int code = cli_args(self, argc, argv, options, NULL, 0);

	if (code < 0)
		code = whole(self, "tokens", tokens, 1e8, &j.n);
	if (code < 0)
		code = real(self, "temperature", temperature, 0, 100,
			&j.how.temperature);
	if (code < 0)
		code = whole(self, "top-k", top_k, 65536, &j.how.top_k);
	if (code < 0)
		code = real(self, "top-p", top_p, 0, 1, &j.how.top_p);
	if (code < 0)
		code = whole(self, "seed", seed, 9e15, &from);
	if (code < 0)
		code = whole(self, "threads", threads, 4096, &n_threads);
	if (code >= 0)
		return code;
	/* the seed of the first token; each token has the next one */
	j.how.seed = (uint64_t)from << 20;
	o.threads = (int32_t)n_threads;
	if (tn_context_new(&j.c, &o) < 0)
		return cli_no_context();
	snprintf(path, sizeof path, "%s", model);
	if (stat(model, &st) == 0 && S_ISDIR(st.st_mode))
		snprintf(path, sizeof path, "%s/best.safetensors", model);
	code = load(&j, path) < 0 ? CLI_FAILED : generate(&j);
	if (code == CLI_FAILED && tn_context_status(j.c) != TN_OK)
		cli_diag(tn_context_diag(j.c));
	tn_params_free(j.all);
	tn_optimizer_free(j.opt);
	train_gpt_free(j.g);
	train_bpe_free(j.bpe);
	cli_close(j.c);
	return code;
}

const cli_command cli_generate = {
	"generate",
	"continue a text with a trained GPT",
	"usage: tenon generate [OPTION]...\n"
	"\n"
	"Continues a text with a model that tenon train has trained: the best\n"
	"parameters in a folder, or the parameters of a checkpoint.\n"
	"\n"
	"  --model DIR|FILE folder of tenon train, or a checkpoint (tenon-model)\n"
	"  --prompt TEXT    the text to continue (a newline)\n"
	"  --tokens N       number of tokens to write (400)\n"
	"  --temperature X  0: always take the likeliest token; a higher number\n"
	"                   makes unlikely tokens more frequent (0.8)\n"
	"  --top-k K        choose among the K likeliest tokens, 0: all (0)\n"
	"  --top-p P        choose among the likeliest tokens whose probabilities\n"
	"                   add up to P (1)\n"
	"  --seed N         seed for the choice of tokens (0)\n"
	"  --threads N      number of threads, 0: one per CPU (0)\n"
	"  --device DEVICE  what runs the kernels: cpu, simt, cuda:0 .. (TENON_DEVICE,\n"
	"                   or cpu)\n"
	"  --interp         use the slow interpreter\n"
	"  --uncached       compute the whole context for each token, which is slow\n"
	"  --stats          print tokens per second, and what was compiled and\n"
	"                   allocated\n"
	"  --help           print this text\n",
	run,
};
