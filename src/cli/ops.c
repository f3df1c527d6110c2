/*
 * ops.c: `tenon ops`: the table of operations; --md makes docs/ops.md.
 */
#include "cli.h"

static int run(const cli_command *self, int argc, char **argv)
{
	bool md = false;
	const cli_option options[] = {{"md", .flag = &md}, {0}};
	tn_context *c = NULL;
	char *text = NULL;
	int code = cli_args(self, argc, argv, options, NULL, 0);

	if (code >= 0)
		return code;
	if (tn_context_new(&c, NULL) < 0)
		return cli_error(NULL, "run.memory", "no memory for a context");
	code = CLI_OK;
	if (tn_ops_text(&text, c, md) < 0) {
		cli_diag(tn_context_diag(c));
		code = CLI_FAILED;
	} else {
		fputs(text, stdout);
	}
	tn_text_free(text);
	cli_close(c);
	return code;
}

const cli_command cli_ops = {
	"ops",
	"list the operations",
	"usage: tenon ops [--md]\n"
	"\n"
	"  --md    as Markdown, with the equations of every operation\n"
	"  --help  this text\n",
	run,
};
