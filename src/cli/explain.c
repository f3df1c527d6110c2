/*
 * explain.c: `tenon explain FILE.tn`: any level of a program as text.
 *
 *     $ tenon explain --level=groups FILE.tn
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	tn_level level;
} levels[] = {
	{"program", TN_LEVEL_PROGRAM},
	{"system", TN_LEVEL_SYSTEM},
	{"groups", TN_LEVEL_GROUPS},
	{"loops", TN_LEVEL_LOOPS},
	{"plan", TN_LEVEL_PLAN},
	{"c", TN_LEVEL_C},
};
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static int explain_level(
	tn_context *c, tn_program *p, tn_level level, uint32_t flags)
{
	char *text = NULL;

	if (tn_program_explain(&text, p, level, flags) < 0) {
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	fputs(text, stdout);
	if (*text != '\0' && text[strlen(text) - 1] != '\n')
		fputc('\n', stdout);
	tn_text_free(text);
	return CLI_OK;
}

/* The program part of a report, for a browser. */
static int explain_page(tn_context *c, tn_program *p, const char *file,
	const char *path)
{
	char *profile = NULL, *json = NULL;
	size_t n = 0;
	FILE *f;
	int code = CLI_FAILED;

	if (tn_program_profile(&profile, p) < 0) {
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	f = open_memstream(&json, &n);
	if (f != NULL) {
		fputs("{\"title\": ", f);
		cli_json_text(f, file);
		fprintf(f, ", \"profile\": %s}", profile);
		if (fclose(f) == 0 && cli_report_write(path, json))
			code = CLI_OK;
	}
	free(json);
	tn_text_free(profile);
	return code;
}

/* Without --level: all of them, each under its name. */
static int explain_all(tn_context *c, tn_program *p, uint32_t flags)
{
	int code = CLI_OK;

	for (int i = 0; i < N_LEVELS && code == CLI_OK; i++) {
		printf("%s== %s ==\n", i ? "\n" : "", levels[i].name);
		code = explain_level(c, p, levels[i].level, flags);
	}
	return code;
}

static int find_level(const char *name)
{
	for (int i = 0; i < N_LEVELS; i++)
		if (!strcmp(levels[i].name, name))
			return i;
	return -1;
}

static int run(const cli_command *self, int argc, char **argv)
{
	const char *file = NULL, *level = NULL, *html = NULL;
	cli_list dims = {0}, inputs = {0}, no_grad = {0};
	bool indexes = false, json = false, no_fusion = false, dot = false;
	bool split;
	const cli_option options[] = {
		{"level", .value = &level},
		{"dim", .list = &dims},
		{"input", .list = &inputs},
		{"indexes", .flag = &indexes},
		{"html", .value = &html},
		{"json", .flag = &json},
		{"no-fusion", .flag = &no_fusion},
		{"no-grad", .list = &no_grad},
		{"dot", .flag = &dot},
		{0},
	};
	tn_options t = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	cli_model m = {0};
	uint32_t flags;
	int at = -1, code = CLI_FAILED;

	dims.at = cli_alloc((size_t)argc, sizeof *dims.at);
	inputs.at = cli_alloc((size_t)argc, sizeof *inputs.at);
	no_grad.at = cli_alloc((size_t)argc, sizeof *no_grad.at);
	if (dims.at == NULL || inputs.at == NULL || no_grad.at == NULL)
		goto out;
	code = cli_args(self, argc, argv, options, &file, 1);
	if (code >= 0)
		goto out;
	if (file == NULL)
		code = cli_usage(self, "no FILE.tn or MODEL.onnx given");
	split = level != NULL && !strcmp(level, "split");
	if (code >= 0)
		;
	else if (!split && level != NULL && (at = find_level(level)) < 0)
		code = cli_usage(self, "no level %s", level);
	else if (json && level == NULL)
		code = cli_usage(self, "--json wants a --level");
	else if ((dot || no_grad.n > 0) && !split)
		code = cli_usage(self, "--%s is for --level=split",
			dot ? "dot" : "no-grad");
	if (code >= 0)
		goto out;
	code = CLI_FAILED;
	flags = (indexes ? TN_EXPLAIN_INDEXES : 0u) |
		(json ? TN_EXPLAIN_JSON : 0u);
	t.no_fusion = no_fusion;
	if (tn_context_new(&c, &t) < 0)
		cli_error(NULL, "run.memory", "no memory for a context");
	else if (!cli_model_open(&m, c, file, &dims, &inputs,
			 false))
		;
	else if (split)
		code = cli_split(self, c, m.program, &no_grad, dot, json);
	else if (at >= 0)
		code = explain_level(c, m.program, levels[at].level, flags);
	else if (html != NULL)
		code = explain_page(c, m.program, file, html);
	else
		code = explain_all(c, m.program, flags);
out:
	cli_model_close(&m);
	tn_context_free(c);
	free(dims.at);
	free(inputs.at);
	free(no_grad.at);
	return code;
}

const cli_command cli_explain = {
	"explain",
	"show what a program becomes, level by level",
	"usage: tenon explain FILE.tn|MODEL.onnx [OPTION]...\n"
	"\n"
	"  --level=program   the program, as the parser understood it\n"
	"  --level=system    index equations\n"
	"  --level=groups    kernels, and a reason for every edge not fused\n"
	"  --level=loops     MapExpr: the loop tree of every kernel\n"
	"  --level=plan      calls, buffers and their places\n"
	"  --level=c         the generated C\n"
	"                    without --level: all of these\n"
	"  --level=split     forward and backward of a compiled function: slots,\n"
	"                    versions, and what each value kept costs\n"
	"  --no-grad NAME    split: this input has no gradient\n"
	"  --dot             split: as a Graphviz picture\n"
	"  --indexes         loops: the solved index of every argument\n"
	"  --json            the level as JSON\n"
	"  --html OUT        instead of a level: a page for a browser with\n"
	"                    kernels, loops, C, and reasons\n"
	"  --no-fusion       every equation a kernel of its own\n"
	"  --dim NAME=SIZE   size of a named dimension of an ONNX model\n"
	"  --input NAME=FILE value of an input that its shapes depend on\n"
	"  --help            this text\n"
	"\n"
	"Levels up to loops need no C compiler.\n",
	run,
};
