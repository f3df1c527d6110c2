/*
 * train_report.c: the report and the trace of a training run.
 *
 * Consumes the results of the steps and the profile of the context; produces a
 * page (report.c) and a file for chrome://tracing or Perfetto.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/train_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_cards(FILE *f, const run *r)
{
	tn_stats s;

	tn_context_stats(r->c, &s);
	fprintf(f,
		"[[\"tokens a second\", \"%.0f\"], "
		"[\"parameters\", \"%.0f\"], "
		"[\"memory of tensors, at most\", \"%.1f MB\"], "
		"[\"memory inside programs\", \"%.1f MB\"], "
		"[\"programs, kernels\", \"%" PRId64 ", %" PRId64 "\"], "
		"[\"passes and C compiler\", \"%.1f s\"]]",
		train_rate(r), train_config_params(&r->k),
		1e-6 * (double)s.bytes_peak, 1e-6 * (double)s.bytes_plans,
		s.n_programs, s.n_kernels,
		1e-3 * (s.lower_ms + s.fuse_ms + s.schedule_ms + s.emit_ms +
			       s.compile_ms));
}

static void add_steps(FILE *f, const run *r)
{
	fputc('[', f);
	for (size_t i = 0; i < r->n_told; i++) {
		const struct told *t = &r->told[i];

		fprintf(f, "%s[%" PRId64 ",", i > 0 ? "," : "", t->step);
		cli_json_number(f, t->loss);
		fputc(',', f);
		cli_json_number(f, t->valid);
		fprintf(f, ",%.1f]", t->rate);
	}
	fputc(']', f);
}

static void add_samples(FILE *f, const run *r)
{
	fputs(", \"samples\": [", f);
	for (int i = 0; i < r->n_early; i++) {
		fprintf(f, "%s[%" PRId64 ",", i > 0 ? "," : "",
			r->early[i].step);
		cli_json_text(f, r->early[i].text);
		fputc(']', f);
	}
	fputc(']', f);
	if (r->wrote != NULL) {
		fputs(", \"sample\": ", f);
		cli_json_text(f, r->wrote);
	}
}

static void add_train(FILE *f, const run *r)
{
	fputc('{', f);
	cli_report_about(f);
	fprintf(f,
		"\"train\": {\"title\": \"A GPT learns a text\", \"text\": "
		"\"%" PRId64 " layers of width %" PRId64 ", %" PRId64
		" heads, context %" PRId64 ", %" PRId64 " x %" PRId64
		" sequences a step, rate %g, seed %" PRId64
		"; %zu bytes of text in %" PRId64 " files\", \"cards\": ",
		r->k.layers, r->k.width, r->k.heads, r->k.context,
		r->k.accumulate, r->k.batch, r->k.lr, r->k.seed,
		r->text.train.n + r->text.valid.n, r->text.n_files);
	add_cards(f, r);
	fputs(", \"steps\": ", f);
	add_steps(f, r);
	add_samples(f, r);
	fputs("}, \"profile\": ", f);
}

static int write_page(run *r)
{
	char *profile = NULL, *json = NULL;
	size_t n = 0;
	FILE *f;
	int code = CLI_FAILED;

	if (tn_profile_text(&profile, r->c, false) < 0)
		return CLI_FAILED;
	f = open_memstream(&json, &n);
	if (f != NULL) {
		add_train(f, r);
		fputs(profile, f);
		fputc('}', f);
		if (fclose(f) == 0 && cli_report_write(r->report, json))
			code = CLI_OK;
	}
	free(json);
	tn_text_free(profile);
	return code;
}

static int write_trace(run *r)
{
	char *text = NULL;
	FILE *f;
	bool ok;

	if (tn_profile_text(&text, r->c, true) < 0)
		return CLI_FAILED;
	f = fopen(r->trace, "w");
	ok = f != NULL && fputs(text, f) >= 0;
	if (f != NULL)
		ok = fclose(f) == 0 && ok;
	tn_text_free(text);
	return ok ? CLI_OK
		  : cli_error(r->trace, "report.write",
			    "cannot be written: %s", strerror(errno));
}

int train_report(run *r)
{
	int code = CLI_OK;

	if (r->report != NULL)
		code = write_page(r);
	if (code == CLI_OK && r->trace != NULL)
		code = write_trace(r);
	return code;
}
