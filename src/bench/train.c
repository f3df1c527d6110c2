/*
 * train.c: `tenon bench train`: measures steps of tenon train, of 4 sequences
 * each.
 *
 *     gpt_10m_256    10 million parameters, context 256
 *
 * first: from the command to the end of the first step, with an empty and with
 * a full cache. tokens/s: the median of the later steps. ratio: flops of a step
 * divided by its time and by the best rate of a library's matrix product of
 * 1024 x 1024 x 1024. Each measurement is a separate process, whose peak memory
 * the system reports.
 */
#define _DEFAULT_SOURCE
#include "bench/bench.h"
#include "apps/gpt/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 4, CUBE = 1024, MAX_STEPS = 100 };

typedef struct size {
	const char *name;
	int64_t layers, heads, width, vocab;
	bool is_large; /* only if it is named */
} size;

static const size sizes[] = {
	{"1m", 4, 4, 128, 256, false},
	{"10m", 6, 6, 384, 256, false},
	{"124m", 12, 12, 768, 50257, true}, /* GPT-2 small */
};
static const int64_t contexts[] = {64, 256};

typedef struct measured {
	double first, step; /* seconds */
	double loss;
	int64_t tensors, programs, process; /* peak bytes */
	bool is_good;
} measured;

typedef struct job {
	train_config k;
	const char *cache;
	int steps; /* number of timed steps */
} job;

/* Calls fn in a child process, which returns its result through a pipe. */
static measured apart(measured (*fn)(const job *j), const job *j)
{
	measured m = {0};
	int ends[2], status = 0;
	pid_t pid;

	fflush(NULL);
	if (pipe(ends) != 0)
		return m;
	pid = fork();
	if (pid == 0) {
		struct rusage u;

		m = fn(j);
		getrusage(RUSAGE_SELF, &u);
		m.process = (int64_t)u.ru_maxrss * 1024;
		fflush(NULL);
		_exit(write(ends[1], &m, sizeof m) != sizeof m);
	}
	close(ends[1]);
	if (pid < 0 || read(ends[0], &m, sizeof m) != sizeof m)
		m.is_good = false;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	m.is_good = m.is_good && status == 0;
	return m;
}

/* ---- steps ---- */

typedef struct trained {
	tn_context *c;
	train_gpt *g;
	tn_optimizer *opt;
	tn_params *all;
	int64_t *x;
} trained;

static double one_step(const trained *t, const train_config *k)
{
	int64_t xs[] = {k->batch, k->context}, ys[] = {k->batch * k->context};
	tn_tensor *loss;
	double v;

	tn_scope_enter(t->c);
	loss = train_gpt_loss(t->g, tn_tensor_new(t->c, TN_I64, 2, xs, t->x),
		tn_tensor_new(t->c, TN_I64, 1, ys, t->x + 1));
	tn_backward(loss, NULL);
	tn_optimizer_set_lr(t->opt, 1e-4);
	tn_optimizer_step(t->opt);
	tn_keep(loss);
	tn_scope_leave(t->c);
	tn_params_eval(t->all);
	v = tn_item(loss);
	tn_drop(loss);
	return v;
}

static bool build(trained *t, const job *j)
{
	tn_optimizer_options oo = TN_OPTIMIZER_OPTIONS_INIT;
	tn_options o = TN_OPTIONS_INIT;
	int64_t n = j->k.batch * j->k.context + 1;

	o.cache_dir = j->cache;
	oo.clip_norm = 1;
	t->x = cli_alloc((size_t)n, sizeof *t->x);
	if (t->x == NULL || cli_context_new(&t->c, &o) < 0)
		return false;
	tn_fill_random(TN_I64, t->x, n, 1, 0, j->k.vocab);
	return train_config_check(&j->k, t->c) >= 0 &&
	       train_gpt_new(&t->g, t->c, &j->k) >= 0 &&
	       tn_optimizer_new(&t->opt, t->c, "adamw", &oo) >= 0 &&
	       tn_optimizer_add_all(t->opt, train_gpt_params(t->g)) >= 0 &&
	       train_all_params(&t->all, t->g, t->opt) >= 0;
}

static measured train(const job *j)
{
	double began = cli_now(), v[MAX_STEPS];
	trained t = {0};
	measured m = {0};
	tn_stats s;

	m.is_good = build(&t, j);
	if (m.is_good)
		m.loss = one_step(&t, &j->k);
	m.first = cli_now() - began;
	for (int i = 0; i < j->steps && m.is_good; i++) {
		double at = cli_now();

		one_step(&t, &j->k);
		v[i] = cli_now() - at;
	}
	if (t.c != NULL && tn_context_status(t.c) != TN_OK) {
		cli_diag(tn_context_diag(t.c));
		m.is_good = false;
	}
	if (m.is_good) {
		tn_context_stats(t.c, &s);
		m.tensors = s.bytes_peak + s.bytes_cached;
		m.programs = s.bytes_plans;
		m.step = j->steps > 0 ? bench_median(v, j->steps) : 0;
	}
	tn_params_free(t.all);
	tn_optimizer_free(t.opt);
	train_gpt_free(t.g);
	cli_context_free(t.c);
	free(t.x);
	return m;
}

/* ---- the rate of a library ---- */

/* Sets step to the least seconds of one product, and loss to the number of the
 * library. */
static measured product(const job *j)
{
	int best = -1;
	double seconds = bench_gemm_best(CUBE, 5 + j->steps, &best);

	return (measured){.step = seconds, .loss = best, .is_good = best >= 0};
}

/* ---- results ---- */

/*
 * The flops of a step: forward 2 for each token and parameter of a product,
 * plus attention scores; backward twice that.
 */
static double flops(const train_config *k)
{
	double w = (double)k->width, layers = (double)k->layers;
	double products = layers * 12 * w * w + (double)k->vocab * w;
	double scores = layers * 2 * (double)k->context * w;

	return 6 * (products + scores) * (double)(k->batch * k->context);
}

static void heading(const measured *lib, bool json)
{
	if (json)
		return;
	if (lib->is_good)
		printf("%s: %.0f GFLOP/s\n\n",
			bench_gemm_name(bench_gemm_at((int)lib->loss)),
			2e-9 * CUBE * CUBE * CUBE / lib->step);
	printf("%-13s %9s %10s %9s %6s %11s %11s %9s %9s\n", "case", "step ms",
		"tokens/s", "GFLOP/s", "ratio", "first cold", "first warm",
		"tensors", "process");
}

static void say(const char *name, const train_config *k, const measured *cold,
	const measured *warm, const measured *lib, bool json)
{
	double rate = flops(k) / warm->step, best = NAN;
	double tokens = (double)(k->batch * k->context) / warm->step;

	if (lib->is_good)
		best = 2.0 * CUBE * CUBE * CUBE / lib->step;
	if (!json) {
		printf("%-13s %9.1f %10.0f %9.1f ", name, 1e3 * warm->step,
			tokens, 1e-9 * rate);
		if (lib->is_good)
			printf("%6.2f", rate / best);
		else
			printf("%6s", "-");
		printf(" %9.2f s %9.2f s %6.0f MB %6.0f MB\n", cold->first,
			warm->first,
			1e-6 * (double)(warm->tensors + warm->programs),
			1e-6 * (double)warm->process);
		fflush(stdout);
		return;
	}
	printf("{\"bench\":\"train\",\"name\":\"%s\",\"parameters\":%.0f,"
	       "\"seconds\":%.6g,\"tokens_per_second\":%.6g,\"flops\":%.6g,"
	       "\"first_cold\":%.4g,\"first_warm\":%.4g,"
	       "\"bytes_tensors\":%" PRId64 ",\"bytes_programs\":%" PRId64
	       ",\"bytes_process\":%" PRId64 ",\"product_flops_per_second\":",
		name, train_config_params(k), warm->step, tokens, flops(k),
		cold->first, warm->first, warm->tensors, warm->programs,
		warm->process);
	cli_json_number(stdout, best);
	printf(",\"ratio\":");
	cli_json_number(stdout, rate / best);
	printf("}\n");
	fflush(stdout);
}

static bool one(const char *name, job *j, const measured *lib, bool json)
{
	char dir[] = "/tmp/tenon-bench-XXXXXX";
	int steps = j->steps;
	measured cold, warm = {0};

	if (mkdtemp(dir) == NULL)
		return false;
	j->cache = dir;
	j->steps = 0;
	cli_progress("bench train: %s, empty cache", name);
	cold = apart(train, j);
	j->steps = steps;
	cli_progress("bench train: %s", name);
	if (cold.is_good)
		warm = apart(train, j);
	cli_progress("%s", "");
	bench_remove(dir);
	j->cache = NULL;
	if (warm.is_good)
		say(name, &j->k, &cold, &warm, lib, json);
	return warm.is_good;
}

int bench_train(const char *only, int repeat, bool json)
{
	job j = {.steps = repeat < MAX_STEPS ? repeat : MAX_STEPS};
	measured lib = apart(product, &j);
	int n = 0;

	heading(&lib, json);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t k = 0; k < 2; k++) {
			const size *s = &sizes[i];
			char name[32];

			snprintf(name, sizeof name, "gpt_%s_%d", s->name,
				(int)contexts[k]);
			if (only != NULL ? strstr(name, only) == NULL
					 : s->is_large)
				continue;
			n++;
			j.k = train_config_new();
			j.k.layers = s->layers;
			j.k.heads = s->heads;
			j.k.width = s->width;
			j.k.vocab = s->vocab;
			j.k.context = contexts[k];
			j.k.batch = BATCH;
			if (!one(name, &j, &lib, json))
				return CLI_FAILED;
		}
	return n > 0 ? CLI_OK
		     : cli_error(NULL, "bench.case", "no case \"%s\"", only);
}
