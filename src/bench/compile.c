/*
 * compile.c: `tenon bench compile`: measures the time until a program can run.
 *
 *   scratch_50        parse to loaded code, nothing cached
 *   cached_50         the same again in a new context, from the cache
 *   front_100 ...     parse to C text, no C compiler
 *
 * The programs are blocks of normalisation, activation and reduction of a
 * matrix. Five successive blocks differ, so that the 50 operations share no
 * kernel; longer programs repeat them, as models do.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/bench.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 10, MAX_REPEAT = 1000 };

/* One block of ten operations on t<i>; its last result is t<i+1>. */
static int block(char *out, size_t n, int i)
{
	static const char *const act[] = {
		"relu", "sigmoid", "abs", "sin", "softplus"};
	static const char *const reduce[] = {"reduce_sum", "reduce_max",
		"reduce_mean", "reduce_min", "reduce_l1"};
	static const char *const join[] = {"max", "add", "min", "sub", "mul"};

	return snprintf(out, n,
		"  a%d = mul(t%d, y)\n"
		"  b%d = add(a%d, x)\n"
		"  c%d = %s(b%d)\n"
		"  d%d = %s(c%d, axes=[1], keep=true)\n"
		"  e%d = sub(c%d, d%d)\n"
		"  f%d = tanh(e%d)\n"
		"  g%d = softmax(f%d, axis=1)\n"
		"  h%d = transpose(g%d, perm=[1,0])\n"
		"  i%d = add(h%d, t%d)\n"
		"  t%d = %s(i%d, x)\n",
		i, i, i, i, i, act[i % 5], i, i, reduce[i % 5], i, i, i, i, i,
		i, i, i, i, i, i, i, i, i + 1, join[i % 5], i);
}

/* A program of n operations (a multiple of ten) on [extent,extent]. */
static char *program(int n, int extent)
{
	size_t room = 256 + (size_t)(n / BLOCK) * 512, used;
	char *text = cli_alloc(room, 1);

	if (text == NULL)
		return NULL;
	used = (size_t)snprintf(text, room,
		"program {\n"
		"  x: f32[%d,%d]\n"
		"  y: f32[%d]\n"
		"  t0: f32[%d,%d]\n",
		extent, extent, extent, extent, extent);
	for (int i = 0; i < n / BLOCK; i++)
		used += (size_t)block(text + used, room - used, i);
	snprintf(text + used, room - used, "  return t%d\n}\n", n / BLOCK);
	return text;
}

/* Seconds from text to loaded code; negative: failed, and reported. */
static double compile(const char *text, const char *cache_dir)
{
	tn_options options = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p = NULL;
	double start = cli_now(), seconds = -1;

	options.cache_dir = cache_dir;
	options.verify = false;
	if (cli_context_new(&c, &options) < 0) {
		cli_no_context();
		return -1;
	}
	if (tn_program_parse(&p, c, text, strlen(text), "bench") < 0 ||
		tn_program_compile(p) < 0)
		cli_diag(tn_context_diag(c));
	else
		seconds = cli_now() - start;
	tn_program_free(p);
	cli_context_free(c);
	return seconds;
}

/* Seconds from text to C text. */
static double front(const char *text)
{
	tn_options options = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p = NULL;
	char *made = NULL;
	double start = cli_now(), seconds = -1;

	options.verify = false;
	if (cli_context_new(&c, &options) < 0) {
		cli_no_context();
		return -1;
	}
	if (tn_program_parse(&p, c, text, strlen(text), "bench") < 0 ||
		tn_program_explain(&made, p, TN_LEVEL_C, 0) < 0)
		cli_diag(tn_context_diag(c));
	else
		seconds = cli_now() - start;
	tn_text_free(made);
	tn_program_free(p);
	cli_context_free(c);
	return seconds;
}

void bench_remove(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char name[4096];

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (snprintf(name, sizeof name, "%s/%s", path, e->d_name) <
			(int)sizeof name)
			unlink(name);
	}
	if (d != NULL)
		closedir(d);
	rmdir(path);
}

static void say(const char *name, double seconds, const char *reference,
	double limit, bool json)
{
	bench_result r = {.bench = "compile", .name = name,
		.seconds = seconds, .reference = reference,
		.ratio = limit / seconds, .target = 1};

	bench_say(&r, json);
}

static bool whole(int repeat, bool json)
{
	char *text = program(50, 64);
	char dir[] = "/tmp/tenon-bench-XXXXXX";
	double scratch[MAX_REPEAT], cached[MAX_REPEAT];
	bool good = text != NULL && mkdtemp(dir) != NULL;

	for (int i = 0; i < repeat && good; i++) {
		cli_progress("bench compile: %d of %d", i + 1, repeat);
		scratch[i] = compile(text, "");
		good = scratch[i] >= 0;
	}
	for (int i = -1; i < repeat && good; i++) {
		double seconds = compile(text, dir);

		good = seconds >= 0;
		if (i >= 0)
			cached[i] = seconds;
	}
	cli_progress("%s", "");
	if (good) {
		say("scratch_50", bench_median(scratch, repeat), "limit_1s",
			1.0, json);
		say("cached_50", bench_median(cached, repeat), "limit_20ms",
			0.02, json);
	}
	if (text != NULL)
		bench_remove(dir);
	free(text);
	return good;
}

int bench_compile(int repeat, bool json)
{
	static const int sizes[] = {100, 1000, 10000};
	double v[MAX_REPEAT];

	if (repeat > 5)
		repeat = 5;
	bench_heading(json);
	if (!whole(repeat, json))
		return CLI_FAILED;
	for (int k = 0; k < 3; k++) {
		char name[32];
		char *text = program(sizes[k], 64);

		for (int i = 0; i < repeat; i++) {
			cli_progress("bench compile: front end, %d operations",
				sizes[k]);
			v[i] = text == NULL ? -1 : front(text);
			if (v[i] < 0) {
				free(text);
				return CLI_FAILED;
			}
		}
		free(text);
		cli_progress("%s", "");
		/*
		 * the limit is 0.5 s for 1,000 operations, with linear growth
		 */
		snprintf(name, sizeof name, "front_%d", sizes[k]);
		say(name, bench_median(v, repeat), "limit_0.5ms_per_op",
			0.0005 * sizes[k], json);
	}
	return CLI_OK;
}
