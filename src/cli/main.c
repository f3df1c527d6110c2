/*
 * main.c: the command `tenon`: finds the sub-command and hands over.
 *
 *     tenon run examples/add_reduce.tn        tenon explain --level=c FILE.tn
 */
#include "cli.h"

#include <string.h>

static const cli_command *const commands[] = {
	&cli_train,
	&cli_generate,
	&cli_run,
	&cli_explain,
	&cli_check,
	&cli_info,
	&cli_ops,
	&cli_train_onnx,
	&cli_export,
	&cli_plan_shards,
	&cli_bench,
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void help(FILE *f)
{
	fputs("usage: tenon COMMAND [ARGUMENT]...\n"
	      "\n"
	      "A tensor compiler: programs in the .tn language become fused C\n"
	      "kernels.\n"
	      "\n",
		f);
	for (int i = 0; i < N_COMMANDS; i++)
		fprintf(f, "  %-13s%s\n", commands[i]->name,
			commands[i]->summary);
	fputs("\n"
	      "  --help    this text; `tenon COMMAND --help` says more\n"
	      "  --version the version\n"
	      "\n"
	      "Exit code 0: done; 1: it failed, and standard error says why;\n"
	      "2: the command line makes no sense.\n",
		f);
}

static bool names_onnx(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		size_t n = strlen(argv[i]);

		if (argv[i][0] != '-' && n > 5 &&
			!strcmp(argv[i] + n - 5, ".onnx"))
			return true;
	}
	return false;
}

/* Two commands may be "train": one is for models of the ONNX format. */
static const cli_command *find(int argc, char **argv)
{
	const cli_command *found = NULL;

	for (int i = 0; i < N_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i]->name) &&
			(found == NULL || (commands[i] == &cli_train_onnx) ==
						  names_onnx(argc, argv)))
			found = commands[i];
	return found;
}

int main(int argc, char **argv)
{
	const cli_command *c;

	/* lines of several processes do not mix */
	setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
	if (argc < 2) {
		help(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
		!strcmp(argv[1], "help")) {
		help(stdout);
		return cli_flush() ? CLI_OK : CLI_FAILED;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("tenon %s\n", tn_version());
		return cli_flush() ? CLI_OK : CLI_FAILED;
	}
	c = find(argc, argv);
	if (c != NULL) {
		int code = c->run(c, argc - 2, argv + 2);

		return cli_flush() ? code : CLI_FAILED;
	}
	fprintf(stderr, "tenon: no command \"%s\"; there are", argv[1]);
	for (int i = 0; i < N_COMMANDS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", commands[i]->name);
	fputs("\n", stderr);
	return CLI_USAGE;
}
