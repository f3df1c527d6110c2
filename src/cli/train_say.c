/*
 * train_say.c: prints the progress of a training run: lines or JSON on standard
 * output, a progress bar on a terminal, a sample at the end.
 */
#include "cli/train_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 24, EARLY_TOKENS = 100 };

static double rate_of(const run *r, double steps, double seconds)
{
	double tokens = (double)(r->k.accumulate * r->k.batch * r->k.context);

	return seconds > 0 ? tokens * steps / seconds : 0;
}

double train_rate(const run *r)
{
	return rate_of(r, r->timed, r->busy);
}

void train_bar(const run *r, double loss)
{
	int done = (int)(BAR * r->s.step / r->k.steps);
	int64_t left = r->timed > 0
		? (int64_t)(r->busy / r->timed *
			    (double)(r->k.steps - r->s.step))
		: 0;
	char line[BAR + 1];

	memset(line, '.', BAR);
	memset(line, '#', (size_t)done);
	line[BAR] = '\0';
	cli_progress("[%s] %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tokens/s  "
		     "%" PRId64 ":%02d left",
		line, r->s.step, r->k.steps, loss, train_rate(r), left / 60,
		(int)(left % 60));
}

void train_say_start(const run *r)
{
	if (r->json) {
		printf("{\"event\": \"start\", \"step\": %" PRId64
		       ", \"parameters\": %.0f, \"train_bytes\": %zu, "
		       "\"validation_bytes\": %zu, \"train_tokens\": %zu, "
		       "\"estimated_bytes\": %.0f}\n",
			r->s.step, train_config_params(&r->k),
			r->text.train.n, r->text.valid.n, r->text.train_ids.n,
			train_config_bytes(&r->k));
		return;
	}
	printf("text   %" PRId64 " files, %zu bytes to learn from, %zu to "
	       "validate with\n",
		r->text.n_files, r->text.train.n, r->text.valid.n);
	if (r->bpe != NULL)
		printf("tokens %" PRId64 " different, %.2f bytes each\n",
			r->k.vocab, (double)r->text.train.n /
				(double)r->text.train_ids.n);
	printf("model  %" PRId64 " layers of width %" PRId64 ", %" PRId64
	       " heads, context %" PRId64 ": %.0f parameters\n",
		r->k.layers, r->k.width, r->k.heads, r->k.context,
		train_config_params(&r->k));
	if (r->s.step > 0)
		printf("goes on after step %" PRId64 " from %s\n", r->s.step,
			r->saved);
	fflush(stdout);
}

/* Stores a step for the report; if memory runs out, the report lacks it. */
void train_keep_step(run *r, double loss, double valid)
{
	if (r->told != NULL)
		r->told[r->n_told++] = (struct told){r->s.step, loss, valid,
			rate_of(r, 1, r->last)};
}

void train_say_devices(const run *r)
{
	tn_device_stats s;

	tn_context_device_stats(r->c, &s);
	if (r->is_first && s.bytes_by_host > 0 && s.bytes_to_peers == 0)
		cli_note("the devices of the mesh exchange tensors through the "
			 "memory of the hosts: %s", s.peers);
}

/* valid: NAN if it was not computed */
void train_say_step(const run *r, double loss, double valid)
{
	tn_stats now;

	cli_progress("%s", "");
	if (r->json) {
		printf("{\"event\": \"step\", \"step\": %" PRId64
		       ", \"loss\": ",
			r->s.step);
		cli_json_number(stdout, loss);
		printf(", \"validation\": ");
		cli_json_number(stdout, valid);
		tn_context_stats(r->c, &now);
		printf(", \"tokens_per_second\": %.0f, \"live_bytes\": %" PRId64
		       "}\n",
			train_rate(r), now.bytes_live);
	} else {
		printf("step %" PRId64 " of %" PRId64 "  loss %.4f", r->s.step,
			r->k.steps, loss);
		if (!isnan(valid))
			printf("  validation %.4f", valid);
		if (r->timed > 0)
			printf("  %.0f tokens/s", train_rate(r));
		putchar('\n');
	}
	fflush(stdout);
}

/* The tokens as text; invalid and control characters become question marks. */
static char *show(const run *r, const train_token *token, size_t n)
{
	train_utf8 u = {0};
	size_t room = 8, n_text = 0, m;
	char *text;

	for (size_t i = 0; i < n; i++) {
		train_bpe_bytes(r->bpe, token[i], &m);
		room += m;
	}
	text = cli_alloc(room, 1);
	for (size_t i = 0; i < n && text != NULL; i++) {
		const uint8_t *b = train_bpe_bytes(r->bpe, token[i], &m);

		for (size_t k = 0; k < m; k++) {
			bool is_control = (b[k] < 0x20 && b[k] != '\n' &&
						  b[k] != '\t') || b[k] == 0x7f;

			n_text += train_utf8_push(&u,
				is_control ? '?' : b[k], "?", text + n_text);
		}
	}
	if (text != NULL)
		(void)train_utf8_end(&u, "?", text + n_text);
	return text;
}

/* Generates n tokens after a newline, as text; NULL: failed, and reported. */
static char *sample(run *r, size_t n)
{
	train_choice how = {0.8, 0, 1, (uint64_t)r->k.seed, false};
	train_token *token = cli_alloc(n + 1, sizeof *token);
	char *text = NULL;

	if (token == NULL)
		return NULL;
	token[0] = '\n';
	if (train_gpt_write(r->g, &how, token, 1, n, NULL, NULL) >= 0)
		text = show(r, token, n + 1);
	free(token);
	return text;
}

int train_keep_sample(run *r, int64_t first)
{
	int64_t done = r->s.step - first, all = r->until - first;
	size_t n = r->n_sample < EARLY_TOKENS ? (size_t)r->n_sample
					      : EARLY_TOKENS;
	char *text;

	/* on a mesh, all processes would have to generate together */
	if (r->report == NULL || r->mesh != NULL || n == 0 || done == all ||
		r->n_early == EARLY_SAMPLES ||
		done * (EARLY_SAMPLES + 1) < all * (r->n_early + 1))
		return CLI_OK;
	text = sample(r, n);
	if (text == NULL)
		return CLI_FAILED;
	r->early[r->n_early].step = r->s.step;
	r->early[r->n_early++].text = text;
	return CLI_OK;
}

int train_say_sample(run *r)
{
	r->wrote = sample(r, (size_t)r->n_sample);
	if (r->wrote == NULL)
		return CLI_FAILED;
	if (r->json) {
		fputs("{\"event\": \"sample\", \"text\": ", stdout);
		cli_json_text(stdout, r->wrote + 1);
		fputs("}\n", stdout);
	} else {
		printf("\nWhat it writes:\n%s\n", r->wrote);
	}
	return CLI_OK;
}
