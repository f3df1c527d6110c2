/*
 * explain.c: `tenon explain FILE.tn`: prints any level of a program as text.
 *
 *     $ tenon explain --level=groups FILE.tn
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

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
	{"schedule", TN_LEVEL_SCHEDULE},
	{"kern", TN_LEVEL_KERN},
	{"plan", TN_LEVEL_PLAN},
	{"c", TN_LEVEL_C},
	{"text", TN_LEVEL_C}, /* the same, where it is not C */
};
enum { N_LEVELS = sizeof levels / sizeof levels[0] - 1 };

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

enum { PAGE_RUNS = 5 };

/*
 * Runs the program on random inputs, so that the page shows times. If there is
 * no C compiler, or the program fails on these inputs, the page has no times.
 */
static void time_kernels(tn_context *c, const cli_model *m)
{
	const cli_list none = {0};
	cli_arrays *a;
	bool ok = true;

	if (tn_profile_start(c) < 0 || tn_program_compile(m->program) < 0) {
		cli_note("the page has no times: %s", tn_context_diag(c)->text);
		return;
	}
	a = cli_arrays_new(c, m, &none, 0, false);
	for (int i = 0; a != NULL && ok && i < PAGE_RUNS; i++)
		ok = cli_arrays_run(a, c, m);
	if (a == NULL || !ok)
		cli_note("the page has no times, or not all of them");
	cli_arrays_free(a);
}

/* Writes a page that shows the program, for a browser. */
static int explain_page(tn_context *c, const cli_model *m, const char *file,
	const char *path)
{
	char *profile = NULL, *json = NULL;
	size_t n = 0;
	FILE *f;
	int code = CLI_FAILED;

	time_kernels(c, m);
	if (tn_program_profile(&profile, m->program) < 0) {
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	f = open_memstream(&json, &n);
	if (f != NULL) {
		fputc('{', f);
		cli_report_about(f);
		fputs("\"title\": ", f);
		cli_json_text(f, file);
		fprintf(f, ", \"profile\": %s}", profile);
		if (fclose(f) == 0 && cli_report_write(path, json))
			code = CLI_OK;
	}
	free(json);
	tn_text_free(profile);
	return code;
}

/* Without --level: prints all levels, each under its name. */
static int explain_all(tn_context *c, tn_program *p, uint32_t flags)
{
	int code = CLI_OK;

	for (int i = 0; i < N_LEVELS && code == CLI_OK; i++) {
		printf("%s== %s ==\n", i ? "\n" : "", levels[i].name);
		code = explain_level(c, p, levels[i].level, flags);
	}
	return code;
}

/* --level=shard: the program on a mesh, with placements. */
static int explain_shard(const cli_command *self, tn_context *c,
	tn_program *p, const char *mesh, const cli_list *place, bool json)
{
	char *text = NULL;

	if (mesh == NULL)
		return cli_usage(self, "--level=shard needs a --mesh");
	if (tn_program_explain_shard(
		    &text, p, mesh, place->at, place->n, json) < 0) {
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	fputs(text, stdout);
	tn_text_free(text);
	return CLI_OK;
}

static int find_level(const char *name)
{
	for (int i = 0; i <= N_LEVELS; i++)
		if (!strcmp(levels[i].name, name))
			return i;
	return -1;
}

typedef struct asked {
	const char *file, *level, *html, *mesh, *schedule, *kern, *target;
	cli_list dims, inputs, no_grad, place, apart;
	bool indexes, decisions, json, no_fusion, dot;
	int at; /* index of the level; -1: a level that is not in the table */
} asked;

static bool is_level(const asked *k, const char *name)
{
	return k->level != NULL && strcmp(k->level, name) == 0;
}

/*
 * Checks that the options can be combined; returns -1, or an exit code after a
 * message.
 */
static int check(const cli_command *self, asked *k)
{
	bool split = is_level(k, "split"), shard = is_level(k, "shard");
	bool grad = is_level(k, "grad");

	k->at = k->level != NULL ? find_level(k->level) : -1;
	if (k->file == NULL)
		return cli_usage(self, "no FILE.tn or MODEL.onnx given");
	if (!split && !grad && !shard && k->level != NULL && k->at < 0)
		return cli_usage(self, "no level %s", k->level);
	if (k->json && k->level == NULL)
		return cli_usage(self, "--json needs a --level");
	if (k->decisions && !is_level(k, "schedule"))
		return cli_usage(self, "--decisions needs --level=schedule");
	if (k->dot && !split)
		return cli_usage(self, "--dot needs --level=split");
	if (k->no_grad.n > 0 && !split && !grad)
		return cli_usage(self,
			"--no-grad needs --level=split or --level=grad");
	if ((k->mesh != NULL || k->place.n > 0) && !shard)
		return cli_usage(self, "--%s needs --level=shard",
			k->mesh != NULL ? "mesh" : "place");
	return -1;
}

static int explain(const cli_command *self, const asked *k)
{
	uint32_t flags = (k->indexes ? TN_EXPLAIN_INDEXES : 0u) |
		(k->decisions ? TN_EXPLAIN_DECISIONS : 0u) |
		(k->json ? TN_EXPLAIN_JSON : 0u);
	tn_options t = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	cli_model m = {0};
	int code = CLI_FAILED;

	t.no_fusion = k->no_fusion;
	t.target = k->target;
	if (tn_context_new(&c, &t) < 0)
		cli_no_context();
	else if (!cli_model_open(&m, c, k->file, &k->dims, &k->inputs, false) ||
		!cli_set_apart(c, m.program, &k->apart))
		;
	else if ((k->schedule != NULL &&
			 tn_program_load_schedule(m.program, k->schedule) < 0) ||
		(k->kern != NULL &&
			tn_program_load_kern(m.program, k->kern) < 0))
		cli_diag(tn_context_diag(c));
	else if (is_level(k, "split"))
		code = cli_split(self, c, m.program, &k->no_grad,
			k->dot ? CLI_SPLIT_DOT : CLI_SPLIT_TEXT, k->json);
	else if (is_level(k, "grad"))
		code = cli_split(self, c, m.program, &k->no_grad,
			CLI_SPLIT_PROGRAM, k->json);
	else if (is_level(k, "shard"))
		code = explain_shard(
			self, c, m.program, k->mesh, &k->place, k->json);
	else if (k->at >= 0)
		code = explain_level(c, m.program, levels[k->at].level, flags);
	else if (k->html != NULL)
		code = explain_page(c, &m, k->file, k->html);
	else
		code = explain_all(c, m.program, flags);
	cli_model_close(&m);
	cli_close(c);
	return code;
}

static int run(const cli_command *self, int argc, char **argv)
{
	asked k = {0};
	const cli_option options[] = {
		{"level", .value = &k.level},
		{"dim", .list = &k.dims},
		{"input", .list = &k.inputs},
		{"indexes", .flag = &k.indexes},
		{"decisions", .flag = &k.decisions},
		{"schedule", .value = &k.schedule},
		{"kern", .value = &k.kern},
		{"target", .value = &k.target},
		{"apart", .list = &k.apart},
		{"html", .value = &k.html},
		{"json", .flag = &k.json},
		{"no-fusion", .flag = &k.no_fusion},
		{"no-grad", .list = &k.no_grad},
		{"dot", .flag = &k.dot},
		{"mesh", .value = &k.mesh},
		{"place", .list = &k.place},
		{0},
	};
	cli_list *lists[] = {
		&k.dims, &k.inputs, &k.no_grad, &k.place, &k.apart};
	enum { N_LISTS = sizeof lists / sizeof *lists };
	bool room = true;
	int code = CLI_FAILED;

	for (int i = 0; i < N_LISTS; i++) {
		lists[i]->at = cli_alloc((size_t)argc, sizeof *lists[i]->at);
		room &= lists[i]->at != NULL;
	}
	if (room)
		code = cli_args(self, argc, argv, options, &k.file, 1);
	if (room && code < 0)
		code = check(self, &k);
	if (room && code < 0)
		code = explain(self, &k);
	for (int i = 0; i < N_LISTS; i++)
		free(lists[i]->at);
	return code;
}

const cli_command cli_explain = {
	"explain",
	"show what a program becomes, level by level",
	"usage: tenon explain FILE.tn|MODEL.onnx [OPTION]...\n"
	"\n"
	"Prints what a program becomes, one level after another. Levels up to\n"
	"loops need no C compiler.\n"
	"\n"
	"  --level=program   the program, as the parser understood it\n"
	"  --level=system    index equations\n"
	"  --level=groups    kernels, and the reason for every edge not fused\n"
	"  --level=loops     MapExpr: the loop tree of every kernel\n"
	"  --level=schedule  the loop trees that are compiled; tenon run --schedule\n"
	"                    reads them\n"
	"  --level=kern      each kernel after all decisions; tenon run --kern\n"
	"                    reads it\n"
	"  --level=plan      launches, buffers and their addresses\n"
	"  --level=c         the generated C (text is another name: it may be CUDA C)\n"
	"                    without --level: all levels above\n"
	"  --level=split     forward and backward of a compiled function: slots,\n"
	"                    versions, and the memory of each value that is kept\n"
	"  --level=grad      the differentiated program: forward, kept values,\n"
	"                    backward, as a program that can be run\n"
	"  --no-grad NAME    split, grad: this input has no gradient\n"
	"  --dot             split: print a Graphviz picture\n"
	"  --level=shard     on a mesh of processes: the placement of each tensor,\n"
	"                    each move with its bytes, and the reasons\n"
	"  --mesh NAME=N,..  shard: the mesh, such as data=2,model=2\n"
	"  --place P         shard: the placement of a tensor: x=shard(0)@data, ...\n"
	"  --schedule FILE   use the schedules in FILE instead of Tenon's own\n"
	"  --kern FILE       use the kernels in FILE instead of Tenon's own\n"
	"  --target MACHINE  what kernels are made for: c/avx2, cuda/sm_90, ..\n"
	"  --apart A,B       let no kernel compute both of these tensors\n"
	"  --decisions       schedule: print what each pass decided, and why, as\n"
	"                    comments; with --json as a list for each kernel\n"
	"  --indexes         loops: print the solved index of every argument\n"
	"  --json            print the level as JSON\n"
	"  --html OUT        write a page for a browser instead of a level: kernels\n"
	"                    with measured times, loops, C, and reasons\n"
	"  --no-fusion       make every equation a kernel of its own\n"
	"  --dim NAME=SIZE   size of a named dimension of an ONNX model\n"
	"  --input NAME=FILE value of an input that decides shapes\n"
	"  --help            print this text\n"
	"\n"
	"TENON_DUMP=PASS,PASS in the environment of any program prints what passes\n"
	"make, on standard error or into files of the folder TENON_DUMP_DIR. They\n"
	"are: program (what is compiled), lower, prune, localise (on several\n"
	"processes), residues, quotients, scales, recompute, tf32 (on GPUs, where\n"
	"TENON_TF32=1), settle, fuse, loops, schedule, kern, emit, plan, all (of\n"
	"these); scatter, products, rows, parts, apart, lanes, chunks, abreast,\n"
	"clips, guards, ahead, fetch, wide, blocks, tail, sums, stages, warpgroups,\n"
	"locations, streams, warps, bulk (the steps of schedule).\n",
	run,
};
