/*
 * tune.c: `tenon tune FILE`: searches faster schedules for a program on this
 * machine, and writes them into a file that `tenon run --schedule` reads.
 *
 *     $ tenon tune net.onnx --seconds 60 --out net.schedule
 *     tenon: 3 of 21 kernels are faster; 412 schedules tried, 3 refused
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { CLI_STOPPED = 130 }; /* the exit code that shells use for SIGINT */

struct choice {
	const char *file, *out, *seconds, *seed;
	bool same_bits;
	cli_list input, dim;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

struct view {
	tn_tune_state last;
	double shown; /* time of the last progress line */
};

static bool progress(void *arg, const tn_tune_state *s)
{
	struct view *v = arg;

	v->last = *s;
	if (s->seconds - v->shown > 0.1) {
		v->shown = s->seconds;
		cli_progress("%.0f s: kernel %d of %d, %.60s: %d schedules "
			     "tried, %d kept", s->seconds, (int)s->number + 1,
			(int)s->n_kernels, s->kernel != NULL ? s->kernel : "",
			(int)s->n_tried, (int)s->n_kept);
	}
	return !stopped;
}

static int write_text(const char *path, const char *text)
{
	FILE *f = path != NULL ? fopen(path, "w") : stdout;
	bool ok = f != NULL && fputs(text, f) >= 0;

	if (f != NULL && path != NULL)
		ok = fclose(f) == 0 && ok;
	return ok ? CLI_OK : cli_error(path, "file.write", "%s",
				     strerror(errno));
}

/* Number of kernels in a file of schedules. */
static int count(const char *text)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, "\nkernel ")) != NULL; p++)
		n++;
	return n;
}

static int tune_program(tn_context *c, const cli_model *m,
	const struct choice *o, double seconds, uint64_t seed)
{
	struct view view = {0};
	tn_tune_options t = {.seconds = seconds, .same_bits = o->same_bits,
		.progress = progress, .arg = &view};
	struct sigaction act = {.sa_handler = stop};
	cli_arrays *a;
	char *text = NULL;
	tn_status s;
	int code;

	if (o->out != NULL && !cli_can_write(o->out, "file.write"))
		return CLI_FAILED;
	sigemptyset(&act.sa_mask);
	sigaction(SIGINT, &act, NULL);
	cli_progress("compiling %s", o->file);
	if (tn_program_compile(m->program) < 0) {
		cli_progress("%s", "");
		cli_diag(tn_context_diag(c));
		return stopped ? CLI_STOPPED : CLI_FAILED;
	}
	a = cli_arrays_new(c, m, &o->input, seed, true);
	if (a == NULL)
		return CLI_FAILED;
	s = tn_program_tune(&text, m->program, a->in, &t);
	cli_progress("%s", "");
	cli_arrays_free(a);
	if (s < 0) {
		cli_diag(tn_context_diag(c));
		return stopped ? CLI_STOPPED : CLI_FAILED;
	}
	code = write_text(o->out, text);
	if (code == CLI_OK)
		cli_note("%d of %d kernels are faster; %d schedules tried, %d "
			 "refused", count(text), (int)view.last.n_kernels,
			(int)view.last.n_tried, (int)view.last.n_refused);
	tn_text_free(text);
	return code == CLI_OK && stopped ? CLI_STOPPED : code;
}

/* Reads the numeric options; false: invalid, and reported. */
static bool numbers(const cli_command *self, const struct choice *o,
	double *seconds, uint64_t *seed)
{
	char *end = NULL;

	*seconds = 10;
	*seed = 0;
	if (o->seconds != NULL)
		*seconds = strtod(o->seconds, &end);
	if (!(*seconds > 0 && *seconds <= 1e6) ||
		(o->seconds != NULL && (end == o->seconds || *end != '\0'))) {
		cli_usage(self, "--seconds %s is not a number from 0 to 1000000",
			o->seconds);
		return false;
	}
	return cli_seed(self, o->seed, seed);
}

static int run(const cli_command *self, int argc, char **argv)
{
	struct choice o = {0};
	const cli_option options[] = {
		{"seconds", .value = &o.seconds},
		{"out", .value = &o.out},
		{"same-bits", .flag = &o.same_bits},
		{"input", .list = &o.input},
		{"dim", .list = &o.dim},
		{"seed", .value = &o.seed},
		{0},
	};
	tn_options t = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	cli_model m = {0};
	double seconds;
	uint64_t seed;
	int code = CLI_FAILED;

	o.input.at = cli_alloc((size_t)argc, sizeof *o.input.at);
	o.dim.at = cli_alloc((size_t)argc, sizeof *o.dim.at);
	if (o.input.at != NULL && o.dim.at != NULL)
		code = cli_args(self, argc, argv, options, &o.file, 1);
	if (code < 0 && o.file == NULL)
		code = cli_usage(self, "no FILE.tn or MODEL.onnx given");
	if (code < 0 && !numbers(self, &o, &seconds, &seed))
		code = CLI_USAGE;
	if (code < 0) {
		code = CLI_FAILED;
		if (tn_context_new(&c, &t) < 0)
			cli_no_context();
		else if (cli_model_open(&m, c, o.file, &o.dim, &o.input, false))
			code = tune_program(c, &m, &o, seconds, seed);
	}
	cli_model_close(&m);
	cli_close(c);
	free(o.dim.at);
	free(o.input.at);
	return code;
}

const cli_command cli_tune = {
	"tune",
	"search faster schedules for a program, by measurement",
	"usage: tenon tune FILE.tn|MODEL.onnx [OPTION]...\n"
	"\n"
	"Tries other schedules for the kernels of a program on this machine, and\n"
	"prints those that are faster than Tenon's own, in a file that tenon run\n"
	"--schedule and tenon explain --schedule read. Each one is verified, its\n"
	"results are compared, and it is measured in pairs with the best so far.\n"
	"Kernels without a faster schedule are not in the file: they keep Tenon's\n"
	"own. Ctrl-C ends the search and keeps what is found.\n"
	"\n"
	"  --seconds N            end after N seconds (10)\n"
	"  --out FILE             write the schedules to FILE instead of printing\n"
	"                         them\n"
	"  --same-bits            try only schedules that keep all bits of the\n"
	"                         results. Others may add the terms of a sum in\n"
	"                         another order\n"
	"  --input NAME=FILE.npy  data of an input; others are random\n"
	"  --dim NAME=SIZE        size of a named dimension of an ONNX model\n"
	"  --seed N               seed of the random inputs (0)\n"
	"  --help                 print this text\n",
	run,
};
