/*
 * main.c: the command `tenon`: finds and runs a subcommand.
 *
 *     tenon run examples/add_reduce.tn        tenon explain --level=c FILE.tn
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {
	&cli_train,
	&cli_generate,
	&cli_run,
	&cli_explain,
	&cli_check,
	&cli_gradcheck,
	&cli_tune,
	&cli_info,
	&cli_ops,
	&cli_train_onnx,
	&cli_export,
	&cli_plan_shards,
	&cli_bench,
	&cli_completion,
	&cli_version,
	NULL,
};

static int version(const cli_command *self, int argc, char **argv)
{
	const cli_option options[] = {{0}};
	int code = cli_args(self, argc, argv, options, NULL, 0);

	if (code < 0)
		printf("tenon %s\n", tn_version());
	return code < 0 ? CLI_OK : code;
}

const cli_command cli_version = {
	"version",
	"print the version",
	"usage: tenon version\n"
	"\n"
	"  --help  print this text\n",
	version,
};

static int completion(const cli_command *self, int argc, char **argv)
{
	return cli_complete(self, commands, argc, argv);
}

const cli_command cli_completion = {
	"completion",
	"print a script that completes commands in a shell",
	"usage: tenon completion bash|zsh|fish\n"
	"\n"
	"Prints a script that completes commands and their options in a shell.\n"
	"\n"
	"  bash    . <(tenon completion bash)\n"
	"  zsh     . <(tenon completion zsh)\n"
	"  fish    tenon completion fish | source\n"
	"  --help  print this text\n",
	completion,
};

static void help(FILE *f)
{
	fputs("usage: tenon COMMAND [ARGUMENT]...\n"
	      "\n"
	      "A tensor compiler: it compiles programs in the .tn language to fused\n"
	      "C kernels, and trains and runs models.\n"
	      "\n",
		f);
	for (int i = 0; commands[i] != NULL; i++)
		if (commands[i] != &cli_train_onnx)
			fprintf(f, "  %-13s%s\n", commands[i]->name,
				commands[i]->summary);
	fputs("\n"
	      "  --help    print this text; `tenon COMMAND --help` describes COMMAND\n"
	      "  --version print the version\n"
	      "\n"
	      "The exit code is 0 for success, 1 for a failure that standard error\n"
	      "explains, and 2 for a wrong command line.\n",
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

/*
 * Finds the command. Two commands are called "train"; one of them trains ONNX
 * models.
 */
static const cli_command *find(int argc, char **argv)
{
	const cli_command *found = NULL;

	for (int i = 0; commands[i] != NULL; i++)
		if (!strcmp(argv[1], commands[i]->name) &&
			(found == NULL || (commands[i] == &cli_train_onnx) ==
						  names_onnx(argc, argv)))
			found = commands[i];
	return found;
}

static int no_command(const char *word)
{
	cli_nearest n = {.wanted = word};

	for (int i = 0; commands[i] != NULL; i++)
		cli_near(&n, commands[i]->name);
	fprintf(stderr, "tenon: no command \"%s\"; ", word);
	if (n.found != NULL)
		fprintf(stderr, "did you mean %s? ", n.found);
	fputs(n.found != NULL ? "The commands are" : "the commands are", stderr);
	for (int i = 0; commands[i] != NULL; i++)
		if (commands[i] != &cli_train_onnx)
			fprintf(stderr, "%s %s", i ? "," : "",
				commands[i]->name);
	fputs("\n", stderr);
	return CLI_USAGE;
}

/*
 * Models and code are mapped: of what another program cuts off, or the disk cannot
 * give, the processor tells by a signal.
 */
static void lost(int signal)
{
	static const char why[] =
		"tenon: error[file.changed]: a part of a file is not there any "
		"more: another program made it shorter while it was in use, or "
		"the disk cannot be read\n";

	(void)signal;
	if (write(STDERR_FILENO, why, sizeof why - 1) < 0)
		_exit(CLI_FAILED);
	_exit(CLI_FAILED);
}

static void set_signals(void)
{
	struct sigaction act = {.sa_handler = lost};

	sigemptyset(&act.sa_mask);
	sigaction(SIGBUS, &act, NULL);
	/* a file that reaches its limit must fail the write */
	act.sa_handler = SIG_IGN;
	sigaction(SIGXFSZ, &act, NULL);
}

int main(int argc, char **argv)
{
	const cli_command *c;

	set_signals();
	/* write whole lines, because several processes may share it */
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
	return no_command(argv[1]);
}
