/*
 * machine.c: `tenon bench machine`: measures on this machine what the constants
 * of its row of costs say, and prints both.
 *
 * Each measured constant has a function here, by its name. Instructions are
 * timed in loops over arrays that fit the first cache, in vectors of the width
 * of the machine; products, launches and chunks in programs. All times are CPU
 * times of one thread, the least of several. What is a size or a limit, and no
 * cost, is printed with the bench that shows what it is worth.
 *
 *     cycles.fma   0.52   0.55   1.06   cycles   a product of 128 x 128 x 128
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	NEAR = BENCH_NEAR,
	OPS = BENCH_OPS,
	FAR = 32 << 20, /* floats of the largest arrays */
	AGAIN = 200,	/* times that a near array is walked */
};

/* ---- times ---- */

typedef struct bench_machine {
	int repeat;
	const bench_loops *l;
	float *o, *x;
	int32_t lanes;
	double hertz;
	double rate[4]; /* bytes per second, by memory */
	const char *name; /* of the machine */
	bench_subject *s;
	tn_context *c;
	double seconds; /* of the program, or of its kernels alone */
} bench_machine;

static double own_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least seconds of one call. */
static double time_of(
	const bench_machine *m, bench_loop *fn, float *o, const float *x, int64_t n)
{
	int again = n <= 4 * NEAR ? AGAIN : n <= 64 * NEAR ? 20 : 1;
	double best = 1e9;

	fn(o, x, n);
	for (int r = 0; r < m->repeat; r++) {
		double t = own_time();

		for (int i = 0; i < again; i++) {
			fn(o, x, n);
			__asm__ __volatile__("" ::: "memory");
		}
		t = (own_time() - t) / again;
		best = t < best ? t : best;
	}
	return best;
}

static double near_time(const bench_machine *m, bench_loop *fn)
{
	return fn == NULL ? 0 : time_of(m, fn, m->o, m->x, NEAR);
}

/* Cycles a vector of a loop over near arrays. */
static double per_vector(const bench_machine *m, bench_loop *fn)
{
	return near_time(m, fn) * m->hertz * m->lanes / NEAR;
}

static double per_elem(const bench_machine *m, bench_loop *fn)
{
	return near_time(m, fn) * m->hertz / NEAR;
}

/* ---- constants: by name, the value here ---- */

static double hertz(bench_machine *m)
{
	return m->hertz;
}

/* y = 2 x over so many bytes, both arrays together: bytes per second. */
static double rate_of(const bench_machine *m, int64_t bytes, bool in_place)
{
	int64_t n = bytes / 4 / (in_place ? 1 : 2);
	double t = time_of(m, m->l->scale, in_place ? m->x : m->o, m->x, n);

	return 8 * (double)n / t;
}

static double rate(bench_machine *m, int level)
{
	static const int64_t bytes[] = {16 << 10, 1 << 19, 16 << 20, 256 << 20};

	if (m->rate[level] == 0)
		m->rate[level] = rate_of(m, bytes[level], level == 0);
	return m->rate[level];
}

static double rate_l1(bench_machine *m)
{
	return rate(m, 0);
}

static double rate_l2(bench_machine *m)
{
	return rate(m, 1);
}

static double rate_l3(bench_machine *m)
{
	return rate(m, 2);
}

static double rate_main(bench_machine *m)
{
	return rate(m, 3);
}

/* The largest power of two that is nearer to its own rate than to the next. */
static double size_of(bench_machine *m, int level)
{
	double least = (rate(m, level) + rate(m, level + 1)) / 2;
	int64_t bytes = 16 << 10;

	while (bytes < (int64_t)FAR * 4 &&
		rate_of(m, 2 * bytes, level == 0) >= least)
		bytes *= 2;
	return (double)bytes;
}

static double size_l1(bench_machine *m)
{
	return size_of(m, 0);
}

static double size_l2(bench_machine *m)
{
	return size_of(m, 1);
}

static double size_l3(bench_machine *m)
{
	return size_of(m, 2);
}

static double vector_op(bench_machine *m)
{
	return per_vector(m, m->l->poly) / OPS;
}

static double scalar_op(bench_machine *m)
{
	return per_elem(m, m->l->scalar_poly) / OPS;
}

static double scalar_guard(bench_machine *m)
{
	return (per_elem(m, m->l->guarded) -
		       per_elem(m, m->l->window)) / 5;
}

static double load_whole(bench_machine *m)
{
	return per_vector(m, m->l->load);
}

static double load_masked(bench_machine *m)
{
	return per_vector(m, m->l->load_part);
}

static double load_strided(bench_machine *m)
{
	return per_vector(m, m->l->load_two);
}

static double load_gathered(bench_machine *m)
{
	return per_elem(m, m->l->load_far);
}

static double load_scalar(bench_machine *m)
{
	return per_elem(m, m->l->scalar_load);
}

static double store_whole(bench_machine *m)
{
	return per_vector(m, m->l->store);
}

static double store_masked(bench_machine *m)
{
	return per_vector(m, m->l->store_part);
}

static double store_strided(bench_machine *m)
{
	return per_vector(m, m->l->store_two);
}

static double store_gathered(bench_machine *m)
{
	return per_elem(m, m->l->store_far);
}

static double store_scalar(bench_machine *m)
{
	return per_elem(m, m->l->scalar_store);
}

static double crowded(bench_machine *m)
{
	return per_vector(m, m->l->crowd);
}

static double loop(bench_machine *m)
{
	return (near_time(m, m->l->rows) - near_time(m, m->l->scale)) *
	       m->hertz * 16 / NEAR;
}

static double chain(bench_machine *m)
{
	return per_vector(m, m->l->chain);
}

/* What the lesser of two adds to the greater of them. */
static double not_hidden(double a, double b, double both)
{
	double most = a > b ? a : b, least = a > b ? b : a;

	return both > most ? (both - most) / least : 0;
}

static double beside(bench_machine *m)
{
	double loads = (OPS / 2 + 1) * per_vector(m, m->l->load);

	return not_hidden(per_vector(m, m->l->poly), loads,
		per_vector(m, m->l->both));
}

static double hidden(bench_machine *m)
{
	int64_t n = 2 << 20; /* 16 MB, read and written */
	double ops = near_time(m, m->l->poly) * (double)n / NEAR;

	return not_hidden(ops, time_of(m, m->l->scale, m->o, m->x, n),
		time_of(m, m->l->poly, m->o, m->x, n));
}

static double flops(bench_machine *m)
{
	return OPS * (double)NEAR / near_time(m, m->l->poly);
}

/* ---- constants that programs are timed for ---- */

/* The least seconds of all kernels of the program, or, beside them, of a run. */
static bool time_program(void *arg, bench_subject *s)
{
	bench_machine *m = arg;
	bench_kernels k;
	bool good = bench_kernels_new(&k, s->p, 1);
	bool whole = m->seconds < 0; /* what a run takes beside its kernels */
	double best = 1e9;

	for (int i = 0; good && i < 3 + 10 * m->repeat; i++) {
		double t = own_time(), kernels = 0;

		good = bench_kernels_run(&k, s, 0);
		t = own_time() - t;
		for (int32_t n = 0; n < k.n; n++)
			kernels += k.sample[n];
		t = whole ? (t - kernels) / (k.n > 0 ? k.n : 1) : kernels;
		if (i >= 3 && t < best)
			best = t;
	}
	bench_kernels_free(&k);
	m->seconds = best;
	return good;
}

/* Seconds of the kernels of a program; 0: it failed, after a message. */
static double run(bench_machine *m, const char *text, const char *schedule)
{
	m->seconds = 0;
	return bench_one_text("machine", text, schedule, time_program, m)
		? m->seconds
		: 0;
}

/* A product of rows by terms by columns: cycles. */
static double product(bench_machine *m, int rows, int terms, int columns)
{
	char text[256];

	snprintf(text, sizeof text,
		"program { x: f32[%d,%d] y: f32[%d,%d] o = matmul(x, y) "
		"return o }",
		rows, terms, terms, columns);
	return run(m, text, NULL) * m->hertz;
}

static double tile_fma(bench_machine *m)
{
	return product(m, 128, 128, 128) * m->lanes / (128 * 128 * 128);
}

/* .. of bf16 */
static double product_of_pairs(bench_machine *m, int rows, int terms, int columns)
{
	char text[256];

	snprintf(text, sizeof text,
		"program { x: bf16[%d,%d] y: bf16[%d,%d] o = matmul(x, y) "
		"return o }",
		rows, terms, terms, columns);
	return run(m, text, NULL) * m->hertz;
}

/* By pairs of bf16: half as many instructions. */
static double tile_dot(bench_machine *m)
{
	return product_of_pairs(m, 128, 128, 128) * m->lanes / (64 * 128 * 128);
}

/* 256 terms are 8 for each register of 32 x 4, and as many loads. */
static double tiles_load(bench_machine *m)
{
	double all = product_of_pairs(m, 512, 512, 64) -
		     product_of_pairs(m, 512, 256, 64);
	tn_cost cycles = {.value = 0};

	for (int32_t i = 0; i < tn_machine_n_costs(); i++)
		if (tn_machine_cost(&cycles, m->c, i) < 0 ||
			strcmp(cycles.name, "tiles.cycles") == 0)
			break;
	return all / (8 * 32 * 4) - cycles.value;
}

static double tiles_start(bench_machine *m)
{
	return (2 * product_of_pairs(m, 512, 64, 64) -
		       product_of_pairs(m, 512, 128, 64)) /
	       (512 * 64 / 16);
}

/* Two rows: for four vectors of columns, six loads. */
static double tile_load(bench_machine *m)
{
	double more = product(m, 2, 256, 128), few = product(m, 2, 128, 128);

	return (more - few) * m->lanes / (128 * 128) / 1.5;
}

static double tile_start(bench_machine *m)
{
	double more = product(m, 128, 16, 128), few = product(m, 128, 8, 128);

	return (2 * few - more) * m->lanes / (128 * 128);
}

static double turned(bench_machine *m)
{
	return run(m,
		       "program { x: f32[512,512] o = transpose(x, perm=[1,0]) "
		       "return o }",
		       NULL) *
	       m->hertz / (512 * 512);
}

static double contracted(bench_machine *m)
{
	return 2.0 * 512 * 512 * 512 * m->hertz / product(m, 512, 512, 512);
}

/* Scans across each other: no two of them are one kernel. */
static double launch(bench_machine *m)
{
	char text[2048];
	int n = snprintf(text, sizeof text, "program { y0: f32[72,72]");

	for (int i = 0; i < 32; i++)
		n += snprintf(text + n, sizeof text - (size_t)n,
			" y%d = cumsum(y%d, axis=%d)", i + 1, i, i % 2);
	snprintf(text + n, sizeof text - (size_t)n, " return y32 }");
	m->seconds = -1;
	return bench_one_text("machine", text, NULL, time_program, m)
		? m->seconds
		: 0;
}

static double in_chunks(bench_machine *m, int n)
{
	char text[512];

	snprintf(text, sizeof text,
		"schedule %s\n\nkernel 0 fn_add_0 {\n  phase of %d chunks {\n"
		"    block i_0 < 65536 by %d parallel {\n"
		"      for i_0 < 65536 {\n        do add#0\n      }\n"
		"    }\n  }\n}\n",
		m->name, n, 65536 / n);
	return run(m, "program { x: f32[65536] o = add(x, x) return o }", text);
}

static double chunk(bench_machine *m)
{
	return (in_chunks(m, 4096) - in_chunks(m, 16)) / (4096 - 16);
}

/* A sum in two phases, and as many sums in one. */
static double phase(bench_machine *m)
{
	double two = run(m,
		"program { x: f32[1,262144] o = reduce_sum(x, axes=[1]) "
		"return o }",
		NULL);
	double one = run(m,
		"program { x: f32[16,16384] o = reduce_sum(x, axes=[1]) "
		"return o }",
		NULL);

	return two - one;
}

static const struct {
	const char *name;
	double (*fn)(bench_machine *m);
} measured[] = {
	{"hertz", hertz},
	{"memory[MACHINE_L1].bytes", size_l1},
	{"memory[MACHINE_L2].bytes", size_l2},
	{"memory[MACHINE_L3].bytes", size_l3},
	{"memory[MACHINE_L1].bytes_per_s", rate_l1},
	{"memory[MACHINE_L2].bytes_per_s", rate_l2},
	{"memory[MACHINE_L3].bytes_per_s", rate_l3},
	{"memory[MACHINE_MAIN].bytes_per_s", rate_main},
	{"launch_s", launch},
	{"phase_s", phase},
	{"chunk_s", chunk},
	{"hidden", hidden},
	{"cycles.vector_op", vector_op},
	{"cycles.scalar_op", scalar_op},
	{"cycles.scalar_guard", scalar_guard},
	{"cycles.load[MACHINE_WHOLE]", load_whole},
	{"cycles.load[MACHINE_MASKED]", load_masked},
	{"cycles.load[MACHINE_STRIDED]", load_strided},
	{"cycles.load[MACHINE_GATHERED]", load_gathered},
	{"cycles.load[MACHINE_SCALAR]", load_scalar},
	{"cycles.store[MACHINE_WHOLE]", store_whole},
	{"cycles.store[MACHINE_MASKED]", store_masked},
	{"cycles.store[MACHINE_STRIDED]", store_strided},
	{"cycles.store[MACHINE_GATHERED]", store_gathered},
	{"cycles.store[MACHINE_SCALAR]", store_scalar},
	{"cycles.fma", tile_fma},
	{"cycles.dot", tile_dot},
	{"tiles.load", tiles_load},
	{"tiles.start", tiles_start},
	{"cycles.tile_load", tile_load},
	{"cycles.tile_start", tile_start},
	{"cycles.turned", turned},
	{"cycles.crowded", crowded},
	{"cycles.loop", loop},
	{"cycles.chain", chain},
	{"cycles.beside", beside},
	{"fusion.flops_per_s", flops},
	{"fusion.contract_per_s", contracted},
};

/* ---- all ---- */

/* A difference of two times may be less, which says: it is not seen. */
static double at_least_0(double v)
{
	return v > 0 ? v : 0;
}

/* here: negative if nothing measures it. */
static void say(const tn_cost *c, double here, bool json)
{
	if (json) {
		printf("{\"bench\":\"machine\",\"name\":");
		cli_json_text(stdout, c->name);
		printf(",\"value\":");
		cli_json_number(stdout, c->value);
		printf(",\"here\":");
		if (here >= 0)
			cli_json_number(stdout, here);
		else
			printf("null");
		printf(",\"unit\":");
		cli_json_text(stdout, c->unit);
		printf(",\"from\":");
		cli_json_text(stdout, c->from);
		printf("}\n");
	} else if (here >= 0) {
		printf("%-34s %11.4g %11.4g %6.2f %-7s %s\n", c->name, c->value,
			here, here / c->value, c->unit, c->from);
	} else {
		printf("%-34s %11.4g %11s %6s %-7s %s\n", c->name, c->value, "-",
			"-", c->unit, c->from);
	}
	fflush(stdout);
}

static bool prepare(bench_machine *m, tn_context *c)
{
	tn_cost first;

	if (tn_machine_cost(&first, c, 0) < 0) {
		cli_diag(tn_context_diag(c));
		return false;
	}
	m->name = first.machine;
	m->c = c;
	m->l = bench_loops_of(first.vector_bytes);
	m->lanes = m->l->bytes / 4;
	m->o = cli_alloc(FAR, sizeof *m->o);
	m->x = cli_alloc(FAR, sizeof *m->x);
	for (int64_t i = 0; m->o != NULL && m->x != NULL && i < FAR; i++)
		m->x[i] = 0.25f + (float)(i % 64) / 256;
	if (m->o == NULL || m->x == NULL)
		return false;
	m->hertz = 1 / (time_of(m, m->l->clock, m->o, m->x, NEAR) / NEAR / BENCH_CHAIN);
	return true;
}

int bench_machine_costs(
	tn_context *c, const char *only, int repeat, bool json)
{
	bench_machine m = {.repeat = repeat};
	bool good = prepare(&m, c);
	tn_cost cost;

	if (good && !json)
		printf("machine %s, one thread, its own time, the least of %d\n\n"
		       "%-34s %11s %11s %6s %-7s %s\n",
			m.name, repeat, "constant", "value", "here", "ratio",
			"unit", "measured by, or shown by");
	for (int32_t i = 0; good && i < tn_machine_n_costs(); i++) {
		double here = -1;

		good = tn_machine_cost(&cost, c, i) >= 0;
		if (!good)
			break;
		if (only != NULL && strstr(cost.name, only) == NULL)
			continue;
		cli_progress("bench machine: %s", cost.name);
		for (size_t k = 0; k < sizeof measured / sizeof *measured; k++)
			if (strcmp(measured[k].name, cost.name) == 0 &&
				cost.value > 0)
				here = at_least_0(measured[k].fn(&m));
		cli_progress("%s", "");
		say(&cost, here, json);
	}
	free(m.o);
	free(m.x);
	return good ? CLI_OK : CLI_FAILED;
}
