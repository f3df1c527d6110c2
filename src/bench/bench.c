/*
 * bench.c: `tenon bench`: speed as ratios to what the machine can do, each
 * pair measured side by side in one run.
 *
 *     tenon bench fused --json | jq .ratio
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, ascending);
	return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

void bench_heading(bool json)
{
	if (!json)
		printf("%-24s %10s %9s  %-16s %6s %7s\n", "case", "ms", "GB/s",
			"reference", "ratio", "target");
}

void bench_say(const bench_result *r, bool json)
{
	if (!json && r->skipped != NULL) {
		printf("%-24s skipped: %s\n", r->name, r->skipped);
	} else if (!json) {
		printf(r->seconds < 1e-5 ? "%-24s %10.6f " : "%-24s %10.3f ",
			r->name, r->seconds * 1e3);
		if (r->rate > 0)
			printf("%9.2f", r->rate * 1e-9);
		else
			printf("%9s", "-");
		printf("  %-16s %6.2f %7.2f%s\n", r->reference, r->ratio,
			r->target, r->ratio < r->target ? "  missed" : "");
	} else {
		printf("{\"bench\":");
		cli_json_text(stdout, r->bench);
		printf(",\"case\":");
		cli_json_text(stdout, r->name);
		if (r->skipped != NULL) {
			printf(",\"skipped\":");
			cli_json_text(stdout, r->skipped);
		} else {
			printf(",\"seconds\":");
			cli_json_number(stdout, r->seconds);
			printf(",\"reference\":");
			cli_json_text(stdout, r->reference);
			printf(",\"ratio\":");
			cli_json_number(stdout, r->ratio);
			printf(",\"target\":");
			cli_json_number(stdout, r->target);
		}
		printf("}\n");
	}
	fflush(stdout);
}

/* 1 .. 1000, or 0 */
static int count(const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	return *text != '\0' && *end == '\0' && v >= 1 && v <= 1000 ? (int)v
								     : 0;
}

struct choice {
	const char *const *what; /* to a NULL */
	const char *only, *repeat, *batch;
	bool json, train;
};

static int start(const cli_command *self, const struct choice *o)
{
	const char *what = o->what[0];
	int repeat = o->repeat != NULL ? count(o->repeat) : 15;
	int batch = o->batch != NULL ? count(o->batch) : 0;
	tn_context *c = NULL;
	int code;

	if (what == NULL)
		return cli_usage(self,
			"what? fused, compile, api, step, contract, train, "
			"shard or nets");
	if (repeat == 0 || (batch == 0 && o->batch != NULL))
		return cli_usage(self, "--repeat and --batch take 1 to 1000");
	if (!strcmp(what, "nets") && o->train && o->what[1] != NULL)
		return bench_nets_train(o->what + 1, repeat, batch, o->json);
	if (!strcmp(what, "nets"))
		return o->what[1] != NULL
			? bench_nets(o->what + 1, repeat, batch, o->json)
			: cli_usage(self, "nets: which? MODEL.onnx ...");
	if (o->what[1] != NULL)
		return cli_usage(self, "\"%s\" is too much", o->what[1]);
	if (!strcmp(what, "compile"))
		return bench_compile(repeat, o->json);
	if (!strcmp(what, "step"))
		return bench_step(o->only, repeat, o->json);
	if (!strcmp(what, "train"))
		return bench_train(o->only, repeat, o->json);
	if (!strcmp(what, "shard"))
		return bench_shard(o->only, repeat, o->json);
	if (!strcmp(what, "contract"))
		return bench_contract(o->only, repeat, o->json);
	if (strcmp(what, "fused") != 0 && strcmp(what, "api") != 0)
		return cli_usage(self, "no bench \"%s\"", what);
	if (tn_context_new(&c, NULL) < 0)
		return cli_no_context();
	code = strcmp(what, "api") == 0
		? bench_api(c, repeat, o->json)
		: bench_fused(c, o->only, repeat, o->json);
	tn_context_free(c);
	return code;
}

/* Else it has been said why not. */
static bool can_have_context(void)
{
	tn_context *c = NULL;
	bool can = tn_context_new(&c, NULL) >= 0;

	if (!can)
		(void)cli_no_context();
	tn_context_free(c);
	return can;
}

static int run(const cli_command *self, int argc, char **argv)
{
	struct choice o = {0};
	const cli_option options[] = {
		{"json", .flag = &o.json},
		{"case", .value = &o.only},
		{"repeat", .value = &o.repeat},
		{"batch", .value = &o.batch},
		{"train", .flag = &o.train},
		{0},
	};
	const char **what = cli_alloc((size_t)argc + 2, sizeof *what);
	int code = CLI_FAILED;

	if (what == NULL)
		return code;
	o.what = what;
	code = cli_args(self, argc, argv, options, what, argc);
	if (code < 0)
		code = can_have_context() ? start(self, &o) : CLI_FAILED;
	free(what);
	return code;
}

const cli_command cli_bench = {
	"bench",
	"measure speed against hand-written loops",
	"usage: tenon bench fused|compile|api|step|contract|train|shard\n"
	"                   [--case NAME] [--repeat N] [--json]\n"
	"       tenon bench nets MODEL.onnx... [--train] [--batch N] [--repeat N]\n"
	"                   [--json]\n"
	"\n"
	"  fused        kernels of 16M elements, each against the best\n"
	"               hand-written loop of the same memory traffic, measured\n"
	"               in turn with it; ratio = our bytes per second over its\n"
	"  compile      a program of 50 operations compiled from scratch and\n"
	"               from the cache; the passes at 100, 1,000, 10,000\n"
	"               operations; ratio = allowed time over our time\n"
	"  step         a training step as one compiled function, against the\n"
	"               same calls; its overhead; its memory\n"
	"  api          recording: one call, the lookup of its program, a\n"
	"               training step of a network of three layers, its memory\n"
	"  contract     matrix products, each in turn with OpenBLAS, oneDNN and\n"
	"               BLIS where they are installed; convolutions, attention\n"
	"  train        steps of GPTs of 1 and 10 million parameters, with\n"
	"               --case 124m of GPT-2 small; time to the first step with\n"
	"               an empty cache and a full one; memory; ratio = our\n"
	"               flops per second over those of the best library\n"
	"  shard        moves between processes, under mpirun or by two\n"
	"               threads: bytes beside the least that must be sent, time\n"
	"               beside the MPI call in turn with it; a step of a GPT by\n"
	"               all beside one process\n"
	"  nets         models: reading, compiling with an empty cache and from\n"
	"               it, one inference, memory; batches of 1 and 4, or N;\n"
	"               --train: a training step instead, at batch 4, or N\n"
	"  --case NAME  only the cases whose name contains NAME\n"
	"  --repeat N   measurements per case (15), of which the median counts\n"
	"  --json       one JSON object a line\n"
	"  --help       this text\n",
	run,
};
