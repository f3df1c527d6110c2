/*
 * ops.c: `tenon ops`: the table of operations; --md makes docs/ops.md;
 * `tenon ops NAME`: its part of that page.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* The part of the page below the heading of that name; NULL: there is none. */
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

static int run(const cli_command *self, int argc, char **argv)
{
	bool md = false;
	const cli_option options[] = {{"md", .flag = &md}, {0}};
	tn_context *c = NULL;
	const char *name = NULL;
	char *text = NULL;
	int code = cli_args(self, argc, argv, options, &name, 1);

	if (code >= 0)
		return code;
	if (tn_context_new(&c, NULL) < 0)
		return cli_no_context();
	code = CLI_OK;
	if (tn_ops_text(&text, c, md || name != NULL) < 0) {
		cli_diag(tn_context_diag(c));
		code = CLI_FAILED;
	} else if (name != NULL) {
		code = print_one(text, name);
	} else {
		fputs(text, stdout);
	}
	tn_text_free(text);
	cli_close(c);
	return code;
}

const cli_command cli_ops = {
	"ops",
	"list the operations, or show one",
	"usage: tenon ops [NAME] [--md]\n"
	"\n"
	"All operations, a signature and a line for each; or all that is said\n"
	"of operation NAME: its equations and its results.\n"
	"\n"
	"  --md    as Markdown, with the equations of every operation\n"
	"  --help  this text\n",
	run,
};
