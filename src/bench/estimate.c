/*
 * estimate.c: `tenon bench estimate [MODEL...]`: compares the estimated time of
 * schedules with the measured one.
 *
 * Each distinct kernel of the programs of the suite, or of the files, counts
 * once: equal kernels have equal C. The ratio is predicted over measured.
 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { WORST = 20, WARM_UP = 1, MAX_GROUPS = 16 };

typedef struct row {
	char subject[64], name[64];
	const char *term; /* static text of the library */
	double predicted, measured;
	uint64_t code; /* hash of its C */
} row;

typedef struct rows {
	row *at;
	int n, room, repeat;
	bool json;
} rows;

/* FNV-1a */
uint64_t bench_hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

static bool is_known(const rows *r, uint64_t code)
{
	for (int i = 0; i < r->n; i++)
		if (r->at[i].code == code)
			return true;
	return false;
}

static row *add_row(rows *r)
{
	if (r->n == r->room) {
		int room = r->room > 0 ? 2 * r->room : 256;
		row *at = realloc(r->at, (size_t)room * sizeof *at);

		if (at == NULL)
			return NULL;
		r->at = at;
		r->room = room;
	}
	return &r->at[r->n++];
}

/*
 * Adds a kernel. Its kind is the largest term of its estimate, such as
 * "products in tiles".
 */
static bool add(rows *r, const bench_subject *s, bench_kernels *k, int32_t i)
{
	row *w;

	w = add_row(r);
	if (w == NULL)
		return false;
	*w = (row){.term = k->at[i].term,
		.predicted = k->at[i].predicted,
		.measured = bench_kernels_least(k, i),
		.code = bench_hash(k->at[i].code)};
	snprintf(w->subject, sizeof w->subject, "%s", s->name);
	snprintf(w->name, sizeof w->name, "%s", k->at[i].name);
	if (!r->json)
		return true;
	printf("{\"bench\":\"estimate\",\"program\":");
	cli_json_text(stdout, s->name);
	printf(",\"kernel\":");
	cli_json_text(stdout, k->at[i].name);
	printf(",\"kind\":");
	cli_json_text(stdout, w->term);
	printf(",\"predicted\":");
	cli_json_number(stdout, w->predicted);
	printf(",\"measured\":");
	cli_json_number(stdout, w->measured);
	printf("}\n");
	return true;
}

static bool visit(void *arg, bench_subject *s)
{
	rows *r = arg;
	bench_kernels k;
	bool good = bench_kernels_new(&k, s->p, r->repeat);

	for (int i = -WARM_UP; good && i < r->repeat; i++)
		good = bench_kernels_run(&k, s, i);
	for (int32_t i = 0; good && i < k.n; i++)
		if (k.at[i].code != NULL &&
			!is_known(r, bench_hash(k.at[i].code)))
			good = add(r, s, &k, i);
	bench_kernels_free(&k);
	return good;
}

/* ---- the distribution ---- */

static double ratio_of(const row *r)
{
	return r->predicted / (r->measured > 0 ? r->measured : 1e-9);
}

static double off_by(const row *r)
{
	double x = ratio_of(r);

	return x < 1 ? 1 / x : x;
}

static int by_error(const void *a, const void *b)
{
	double x = off_by(a), y = off_by(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

static void say_group(const rows *r, const char *term)
{
	double *v = cli_alloc((size_t)r->n + 1, sizeof *v);
	int n = 0, near = 0, below = 0;

	for (int i = 0; v != NULL && i < r->n; i++) {
		if (term != NULL && strcmp(r->at[i].term, term) != 0)
			continue;
		v[n++] = ratio_of(&r->at[i]);
		near += off_by(&r->at[i]) <= 2;
		below += ratio_of(&r->at[i]) < 0.5;
	}
	if (n > 0)
		printf("%-28s %6d %9.0f%% %9.0f%% %9.0f%% %9.2f\n",
			term != NULL ? term : "all", n, 100.0 * near / n,
			100.0 * below / n, 100.0 * (n - near - below) / n,
			bench_median(v, n));
	free(v);
}

static void say_groups(const rows *r)
{
	const char *terms[MAX_GROUPS];
	int n = 0;

	printf("\n%-28s %6s %10s %10s %10s %9s\n", "mostly", "n", "within 2x",
		"too low", "too high", "median");
	for (int i = 0; i < r->n; i++) {
		bool again = n == MAX_GROUPS;

		for (int k = 0; k < n; k++)
			again |= strcmp(terms[k], r->at[i].term) == 0;
		if (!again)
			terms[n++] = r->at[i].term;
	}
	for (int k = 0; k < n; k++)
		say_group(r, terms[k]);
	say_group(r, NULL);
}

/* The median of the ratios, which is what this machine is slower or faster than the
 * machine's row says; near: kernels within a factor of two of it. */
static double median_of(const rows *r, int *near)
{
	double *v = cli_alloc((size_t)r->n + 1, sizeof *v), m;

	*near = 0;
	if (v == NULL || r->n == 0) {
		free(v);
		return 1;
	}
	for (int i = 0; i < r->n; i++)
		v[i] = ratio_of(&r->at[i]);
	m = bench_median(v, r->n);
	for (int i = 0; i < r->n; i++)
		*near += v[i] >= m / 2 && v[i] <= 2 * m;
	free(v);
	return m;
}

static double part(const rows *r, int n)
{
	return r->n > 0 ? (double)n / r->n : 1;
}

static void say(rows *r)
{
	int near = 0, alike;
	double median = median_of(r, &alike);

	qsort(r->at, (size_t)r->n, sizeof *r->at, by_error);
	for (int i = 0; i < r->n; i++)
		near += off_by(&r->at[i]) <= 2;
	if (r->json) {
		printf("{\"bench\":\"estimate\",\"kernels\":%d,"
		       "\"within_2x\":%.4f,\"median\":%.4f,"
		       "\"within_2x_of_median\":%.4f}\n",
			r->n, part(r, near), median, part(r, alike));
		return;
	}
	printf("%12s %12s %9s  %-24s %-22s %s\n", "predicted us",
		"measured us", "ratio", "mostly", "program", "kernel");
	for (int i = 0; i < r->n && i < WORST; i++) {
		const row *w = &r->at[i];

		printf("%12.1f %12.1f %9.2f  %-24s %-22s %s\n",
			1e6 * w->predicted, 1e6 * w->measured, ratio_of(w),
			w->term, w->subject, w->name);
	}
	say_groups(r);
	printf("\n%d distinct kernels, one thread, its own time, least of %d "
	       "runs; %.1f %% within 2x of the measured time, %.1f %% of %.2f "
	       "times it, the median\n",
		r->n, r->repeat, 100 * part(r, near), 100 * part(r, alike),
		median);
}

int bench_estimate(
	const char *const *files, const char *only, int repeat, bool json)
{
	rows r = {.repeat = repeat, .json = json};
	bool good = bench_each_subject(files, only, visit, &r);

	if (good || r.n > 0) /* else the error says it all */
		say(&r);
	free(r.at);
	return good ? CLI_OK : CLI_FAILED;
}
