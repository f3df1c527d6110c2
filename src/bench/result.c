/*
 * result.c: one result of `tenon bench`: the median of measurements, and a line of
 * the table.
 */
#include "bench/bench.h"

#include <stdlib.h>

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
		else if (r->flops > 0)
			printf("%8.2fT", r->flops * 1e-12);
		else
			printf("%9s", "-");
		if (r->reference == NULL)
			printf("  %-16s %6s %7.2f\n", "-", "-", r->target);
		else
			printf("  %-16s %6.2f %7.2f%s\n", r->reference, r->ratio,
				r->target,
				r->ratio < r->target ? "  missed" : "");
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
			if (r->rate > 0) {
				printf(",\"bytes_per_s\":");
				cli_json_number(stdout, r->rate);
			}
			if (r->flops > 0) {
				printf(",\"flops_per_s\":");
				cli_json_number(stdout, r->flops);
			}
			if (r->reference != NULL) {
				printf(",\"reference\":");
				cli_json_text(stdout, r->reference);
				printf(",\"ratio\":");
				cli_json_number(stdout, r->ratio);
			}
			printf(",\"target\":");
			cli_json_number(stdout, r->target);
		}
		printf("}\n");
	}
	fflush(stdout);
}
