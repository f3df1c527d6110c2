/*
 * bench.c: `tenon bench`: speed as ratios to what the machine can do, each
 * pair measured side by side in one run.
 *
 *     tenon bench fused --json | jq .ratio
 */
#include "bench.h"

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

static int run(const cli_command *self, int argc, char **argv)
{
	bool json = false;
	const char *only = NULL, *repeat_text = NULL, *what[2] = {NULL, NULL};
	const cli_option options[] = {
		{"json", .flag = &json},
		{"case", .value = &only},
		{"repeat", .value = &repeat_text},
		{0},
	};
	tn_context *c = NULL;
	int repeat = 15;
	int code = cli_args(self, argc, argv, options, what, 1);

	if (code >= 0)
		return code;
	if (what[0] == NULL)
		return cli_usage(self, "what? fused, compile, api or contract");
	if (repeat_text != NULL && (repeat = count(repeat_text)) == 0)
		return cli_usage(self, "--repeat takes 1 to 1000, not %s",
			repeat_text);
	if (!strcmp(what[0], "compile"))
		return bench_compile(repeat, json);
	if (!strcmp(what[0], "contract"))
		return bench_contract(only, repeat, json);
	if (strcmp(what[0], "fused") != 0 && strcmp(what[0], "api") != 0)
		return cli_usage(self, "no bench \"%s\"", what[0]);
	if (tn_context_new(&c, NULL) < 0)
		return cli_error(NULL, "run.memory", "no memory for a context");
	code = strcmp(what[0], "api") == 0
		? bench_api(c, repeat, json)
		: bench_fused(c, only, repeat, json);
	tn_context_free(c);
	return code;
}

const cli_command cli_bench = {
	"bench",
	"measure speed against hand-written loops",
	"usage: tenon bench fused|compile|api|contract [--case NAME] [--repeat N]\n"
	"                   [--json]\n"
	"\n"
	"  fused        kernels of 16M elements, each against the best\n"
	"               hand-written loop of the same memory traffic, measured\n"
	"               in turn with it; ratio = our bytes per second over its\n"
	"  compile      a program of 50 operations compiled from scratch and\n"
	"               from the cache; the passes at 100, 1,000, 10,000\n"
	"               operations; ratio = allowed time over our time\n"
	"  api          recording: one call, the lookup of its program, a\n"
	"               training step of a network of three layers, its memory\n"
	"  contract     matrix products, each in turn with OpenBLAS, oneDNN and\n"
	"               BLIS where they are installed; convolutions, attention\n"
	"  --case NAME  only the cases whose name contains NAME\n"
	"  --repeat N   measurements per case (15), of which the median counts\n"
	"  --json       one JSON object a line\n"
	"  --help       this text\n",
	run,
};
