/*
 * ops.c: `tenon ops`: prints the table of operations; --md prints docs/ops.md;
 * `tenon ops NAME` prints the section of one operation; --adjoint prints its
 * gradient.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* The section of the page with this heading; NULL: there is none. */
static const char *part(const char *page, const char *name, size_t *n)
{
	size_t n_name = strlen(name);
	const char *at = page, *end;

	while ((at = strstr(at, "\n### ")) != NULL) {
		at += strlen("\n### ");
		if (strncmp(at, name, n_name) != 0 || at[n_name] != '\n')
			continue;
		end = strstr(at, "\n##");
		*n = end != NULL ? (size_t)(end - at) : strlen(at);
		return at;
	}
	return NULL;
}

static int no_operation(char *page, const char *name)
{
	cli_nearest n = {.wanted = name};

	for (char *at = page, *end; (at = strstr(at, "\n### ")) != NULL;) {
		at += strlen("\n### ");
		end = strchr(at, '\n');
		if (end == NULL)
			break;
		*end = '\0';
		cli_near(&n, at);
		*end = '\n';
		at = end;
	}
	if (n.found == NULL)
		return cli_error(NULL, "tn.unknown_op",
			"there is no operation %s; tenon ops lists all "
			"operations",
			name);
	return cli_error(NULL, "tn.unknown_op",
		"there is no operation %s; did you mean %.*s?", name,
		(int)strcspn(n.found, "\n"), n.found);
}

static int print_one(char *page, const char *name)
{
	size_t n;
	const char *at = part(page, name, &n);

	if (at == NULL)
		return no_operation(page, name);
	while (n > 0 && at[n - 1] == '\n')
		n--;
	printf("%.*s\n", (int)n, at);
	return CLI_OK;
}

typedef struct asked {
	const char *name, *file;
	bool md, adjoint, json;
} asked;

static int print_adjoint(tn_context *c, const asked *k)
{
	tn_program *rows = NULL;
	char *text = NULL;
	int code = CLI_FAILED;

	if ((k->file == NULL || tn_program_load(&rows, c, k->file) >= 0) &&
		tn_ops_adjoint(&text, c, k->name, rows, k->json) >= 0) {
		fputs(text, stdout);
		code = CLI_OK;
	} else {
		cli_diag(tn_context_diag(c));
	}
	tn_text_free(text);
	tn_program_free(rows);
	return code;
}

static int print_table(tn_context *c, const asked *k)
{
	char *text = NULL;
	int code = CLI_OK;

	if (tn_ops_text(&text, c, k->md || k->name != NULL) < 0) {
		cli_diag(tn_context_diag(c));
		code = CLI_FAILED;
	} else if (k->name != NULL) {
		code = print_one(text, k->name);
	} else {
		fputs(text, stdout);
	}
	tn_text_free(text);
	return code;
}

/*
 * Checks that the options can be combined; returns -1, or an exit code after a
 * message.
 */
static int check(const cli_command *self, const asked *k)
{
	if (k->adjoint && k->name == NULL)
		return cli_usage(self, "--adjoint needs an operation, such as "
			"matmul or \"matmul(f32[2,3], f32[3,4])\"");
	if (k->adjoint && k->md)
		return cli_usage(self, "--md and --adjoint cannot be combined");
	if (!k->adjoint && (k->json || k->file != NULL))
		return cli_usage(self, "--%s is for --adjoint",
			k->json ? "json" : "file");
	return -1;
}

static int run(const cli_command *self, int argc, char **argv)
{
	asked k = {0};
	const cli_option options[] = {
		{"md", .flag = &k.md},
		{"adjoint", .flag = &k.adjoint},
		{"file", .value = &k.file},
		{"json", .flag = &k.json},
		{0},
	};
	tn_context *c = NULL;
	int code = cli_args(self, argc, argv, options, &k.name, 1);

	if (code < 0)
		code = check(self, &k);
	if (code >= 0)
		return code;
	if (tn_context_new(&c, NULL) < 0)
		return cli_no_context();
	code = k.adjoint ? print_adjoint(c, &k) : print_table(c, &k);
	cli_close(c);
	return code;
}

const cli_command cli_ops = {
	"ops",
	"list the operations, or describe one",
	"usage: tenon ops [NAME] [--md]\n"
	"       tenon ops CALL --adjoint [--file FILE.tn] [--json]\n"
	"\n"
	"Lists all operations, with the signature and one line for each. With\n"
	"NAME, prints everything about one operation: its equations and results.\n"
	"\n"
	"  --md         print Markdown, with the equations of every operation\n"
	"  --adjoint    print the gradient with respect to each operand, as a row,\n"
	"               or the reason why there is none. CALL is a name (then small\n"
	"               shapes that fit are used), or a call such as\n"
	"               \"softmax(f32[2,3], axis=1)\"\n"
	"  --file FILE  adjoint: use the rows of this program, and the shapes of its\n"
	"               first call of NAME\n"
	"  --json       adjoint: print a JSON object\n"
	"  --help       print this text\n",
	run,
};
