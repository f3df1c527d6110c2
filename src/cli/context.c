/*
 * context.c: contexts of commands, with --schedule of those that compile several
 * programs: the file is for each that has its kernels.
 */
#include "cli/cli.h"

#include <string.h>

static const char *schedule; /* NULL: none */
static int64_t n_pinned;     /* programs in contexts that are freed */

int cli_pin(const cli_command *self, const char *file)
{
	tn_context *c = NULL;
	int code = -1;

	schedule = file;
	if (file == NULL)
		return -1;
	if (!strcmp(file, "-")) /* it is read more than once */
		return cli_usage(self, "--schedule takes a file here");
	if (tn_context_new(&c, NULL) < 0)
		return cli_no_context();
	if (tn_context_load_schedule(c, file) < 0) {
		cli_diag(tn_context_diag(c));
		code = CLI_FAILED;
	}
	tn_context_free(c);
	return code;
}

tn_status cli_context_new(tn_context **out, const tn_options *o)
{
	tn_status s = tn_context_new(out, o);

	return s < 0 || schedule == NULL
		? s
		: tn_context_load_schedule(*out, schedule);
}

void cli_context_free(tn_context *c)
{
	tn_stats s;

	if (c != NULL && schedule != NULL) {
		tn_context_stats(c, &s);
		n_pinned += s.n_pinned;
	}
	tn_context_free(c);
}

void cli_close(tn_context *c)
{
	if (c != NULL && tn_process(c) == 0 && tn_context_note(c)[0] != '\0')
		cli_note("note: %s", tn_context_note(c));
	cli_context_free(c);
}

int cli_pin_end(int code)
{
	if (code != CLI_OK || schedule == NULL || n_pinned > 0)
		return code;
	return cli_error(schedule, "schedule.kernel", "no program here has "
		"kernels of these numbers and names: TENON_DUMP=schedule prints "
		"those of all programs");
}
