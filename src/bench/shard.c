/*
 * shard.c: `tenon bench shard`: measures moves between processes.
 *
 *     mpirun -n 2 tenon bench shard        processes, beside the MPI library
 *     tenon bench shard                    two threads, without it
 *
 * Bytes sent are compared with the least number that is possible; times with
 * those of the equivalent MPI call, in turn. gpt: a step of a GPT by all
 * processes, each on one thread with its part of the batch, compared with the
 * same step by one process on one thread while the others wait, and with the
 * prediction of `tenon plan-shards` for the measured rates.
 */
#define _DEFAULT_SOURCE
#include "bench/bench.h"
#include "apps/gpt/train.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, GPT_BATCH = 4, GPT_CONTEXT = 256, MOST_STEPS = 30 };

typedef enum lies { WHOLE, ROWS, COLUMNS, PARTS } lies;

typedef struct move_case {
	const char *name;
	lies from, to;
	int64_t rows, columns;
	int processes; /* the least number of processes */
	bool is_square; /* on a square mesh of two axes, along the first one */
	double target; /* target of the ratio of times; 0: none */
} move_case;

static const move_case moves[] = {
	{"all-gather 4 KB", ROWS, WHOLE, 32, 32, 2, false, 0.9},
	{"all-gather 64 KB", ROWS, WHOLE, 128, 128, 2, false, 0.9},
	{"all-gather 1 MB", ROWS, WHOLE, 512, 512, 2, false, 0.9},
	{"all-gather 16 MB", ROWS, WHOLE, 2048, 2048, 2, false, 0.9},
	{"all-gather 64 MB", ROWS, WHOLE, 4096, 4096, 2, false, 2.5},
	{"all-reduce 4 KB", PARTS, WHOLE, 32, 32, 2, false, 0.9},
	{"all-reduce 64 KB", PARTS, WHOLE, 128, 128, 2, false, 0.9},
	{"all-reduce 1 MB", PARTS, WHOLE, 512, 512, 2, false, 0.9},
	{"all-reduce 16 MB", PARTS, WHOLE, 2048, 2048, 2, false, 0.9},
	{"all-reduce 64 MB", PARTS, WHOLE, 4096, 4096, 2, false, 2.5},
	{"reduce-scatter 1 MB", PARTS, ROWS, 512, 512, 2, false, 0},
	{"reduce-scatter 16 MB", PARTS, ROWS, 2048, 2048, 2, false, 0},
	{"all-to-all 1 MB", ROWS, COLUMNS, 512, 512, 2, false, 0},
	{"all-to-all 16 MB", ROWS, COLUMNS, 2048, 2048, 2, false, 0},
	{"slice 1 MB", WHOLE, COLUMNS, 512, 512, 2, false, 0},
	{"uneven all-gather", ROWS, WHOLE, 1023, 257, 2, false, 0},
	{"uneven columns", COLUMNS, WHOLE, 257, 1023, 2, false, 0},
	{"uneven all-reduce", PARTS, WHOLE, 1023, 257, 2, false, 0},
	{"uneven reduce-scatter", PARTS, ROWS, 1023, 257, 2, false, 0},
	{"uneven all-to-all", ROWS, COLUMNS, 1023, 257, 2, false, 0},
	{"sub-mesh all-gather", ROWS, WHOLE, 512, 512, 4, true, 0},
	{"sub-mesh all-reduce", PARTS, WHOLE, 512, 512, 4, true, 0},
	{"sub-mesh all-to-all", ROWS, COLUMNS, 512, 512, 4, true, 0},
};
enum { N_MOVES = sizeof moves / sizeof *moves };

typedef struct bench {
	const char *only;
	int repeat;
	bool json, failed;
	tn_world *world; /* NULL: mpirun started the processes */
	int n;
} bench;

static tn_placement placement(lies where)
{
	tn_placement p = TN_REPLICATED;

	if (where == ROWS || where == COLUMNS) {
		p.kind = TN_PLACE_SHARD;
		p.axis = where == COLUMNS;
	} else if (where == PARTS) {
		p.kind = TN_PLACE_PARTS;
		p.op = "sum";
	}
	return p;
}

static bool is_wanted(const bench *b, const char *name)
{
	return b->only == NULL || strstr(name, b->only) != NULL;
}

/* The context of a process; NULL: failed, and reported. */
static tn_context *context(const bench *b, int32_t process)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;

	o.threads = 1;
	if (cli_context_new(&c, &o) < 0)
		return NULL;
	if ((b->world != NULL ? tn_join(c, b->world, process)
			      : tn_join_mpi(c)) < 0) {
		cli_diag(tn_context_diag(c));
		cli_context_free(c);
		return NULL;
	}
	return c;
}

/* ---- moves ---- */

static void say_move(const bench *b, const move_case *k, const tn_move_time *t)
{
	double ratio = t->mpi_seconds / t->seconds;
	bool timed = t->mpi_seconds > 0;

	if (b->json) {
		printf("{\"bench\":\"shard\",\"case\":\"%s\",\"move\":\"%s\","
		       "\"processes\":%d,\"bytes_sent\":%" PRId64
		       ",\"bytes_least\":%" PRId64 ",\"seconds\":%.4g",
			k->name, t->name, b->n, t->bytes_sent, t->bytes_least,
			t->seconds);
		if (timed)
			printf(",\"mpi_seconds\":%.4g,\"ratio\":%.4g,"
			       "\"target\":%g",
				t->mpi_seconds, ratio, k->target);
		printf("}\n");
	} else {
		printf("%-22s %-15s %11" PRId64 " %11" PRId64 " %10.4f",
			k->name, t->name, t->bytes_sent, t->bytes_least,
			1e3 * t->seconds);
		if (timed)
			printf(" %10.4f %6.2f %6.2f%s", 1e3 * t->mpi_seconds,
				ratio, k->target,
				ratio < k->target ? "  missed" : "");
		printf("%s\n", t->bytes_sent > t->bytes_least
				? "  more bytes than needed"
				: "");
	}
	fflush(stdout);
}

static bool measure_moves(const bench *b, tn_context *c, bool is_square)
{
	static const char *const axes[] = {"a", "b"};
	int64_t line[] = {b->n}, square[] = {2, b->n / 2};
	tn_mesh *m = NULL;

	for (int i = 0; i < N_MOVES; i++) {
		const move_case *k = &moves[i];
		tn_placement from[2] = {placement(k->from), TN_REPLICATED};
		tn_placement to[2] = {placement(k->to), TN_REPLICATED};
		tn_move_time t;

		if (k->is_square != is_square || !is_wanted(b, k->name) ||
			b->n < k->processes ||
			(is_square && b->n % 2 != 0))
			continue;
		if (m == NULL)
			m = is_square ? tn_mesh_new(c, 2, axes, square)
				      : tn_mesh_new(c, 1, axes, line);
		if (tn_mesh_measure(m, k->rows, k->columns, from, to,
			    b->repeat, &t) < 0)
			return false;
		if (tn_process(c) == 0)
			say_move(b, k, &t);
	}
	return true;
}

/* ---- a step of a GPT ---- */

typedef struct learner {
	tn_context *c;
	tn_mesh *m; /* NULL: one process */
	train_config k;
	train_gpt *g;
	tn_optimizer *o;
	int64_t *text;
} learner;

static bool learner_new(learner *r, tn_context *c, tn_mesh *m)
{
	tn_optimizer_options oo = TN_OPTIMIZER_OPTIONS_INIT;
	int64_t n = GPT_BATCH * GPT_CONTEXT + 1;

	*r = (learner){.c = c, .m = m, .k = train_config_new()};
	r->k.layers = r->k.heads = 6;
	r->k.width = 384;
	r->k.vocab = 256;
	r->k.context = GPT_CONTEXT;
	r->k.batch = GPT_BATCH;
	oo.clip_norm = 1;
	r->text = cli_alloc((size_t)n, sizeof *r->text);
	if (r->text == NULL)
		return false;
	tn_fill_random(TN_I64, r->text, n, 1, 0, r->k.vocab);
	return train_gpt_new(&r->g, c, &r->k) >= 0 &&
		tn_optimizer_new(&r->o, c, "adamw", &oo) >= 0 &&
		tn_optimizer_add_all(r->o, train_gpt_params(r->g)) >= 0;
}

static void learner_free(learner *r)
{
	tn_optimizer_free(r->o);
	train_gpt_free(r->g);
	free(r->text);
}

static double learn(learner *r)
{
	const tn_placement rows[] = {TN_SHARDED(0)};
	int64_t xs[] = {GPT_BATCH, GPT_CONTEXT};
	int64_t ys[] = {GPT_BATCH * GPT_CONTEXT};
	double began = cli_now();
	tn_tensor *x, *y, *loss;

	tn_scope_enter(r->c);
	x = tn_tensor_new(r->c, TN_I64, 2, xs, r->text);
	y = tn_tensor_new(r->c, TN_I64, 1, ys, r->text + 1);
	if (r->m != NULL) {
		tn_shard(x, r->m, rows);
		tn_shard(y, r->m, rows);
	}
	loss = train_gpt_loss(r->g, x, y);
	tn_backward(loss, NULL);
	tn_optimizer_step(r->o);
	(void)tn_item(loss);
	tn_scope_leave(r->c);
	tn_params_eval(train_gpt_params(r->g));
	return cli_now() - began;
}

/* Waits for all processes, by reading a number that is distributed over all. */
static void meet(tn_context *c, tn_mesh *m)
{
	const tn_placement rows[] = {TN_SHARDED(0)};
	const float v[64] = {0};
	tn_tensor *x;

	tn_scope_enter(c);
	x = tn_tensor_new(c, TN_F32, 1, ((int64_t[]){64}), v);
	tn_shard(x, m, rows);
	(void)tn_item(tn_reduce_sum(x, NULL, 0, false));
	tn_scope_leave(c);
}

static void say_step(
	const bench *b, double all, double one, double predicted)
{
	const double target = b->n == 2 ? 1.6 : 0;

	if (b->json)
		printf("{\"bench\":\"shard\",\"case\":\"gpt step\","
		       "\"processes\":%d,\"seconds\":%.4g,"
		       "\"one_process_seconds\":%.4g,\"ratio\":%.4g,"
		       "\"target\":%g,\"predicted_seconds\":%.4g,"
		       "\"predicted_ratio\":%.4g}\n",
			b->n, all, one, one / all, target, predicted,
			predicted / all);
	else
		printf("%-22s %-15s %11s %11s %10.3f %10.3f %6.2f %6.2f%s\n",
			"gpt step", "data parallel", "", "", 1e3 * all,
			1e3 * one, one / all, target,
			one / all < target ? "  missed" : "");
	if (!b->json)
		printf("%-22s %-15s %11s %11s %10.3f %10.3f %6.2f\n",
			"", "plan-shards", "", "", 1e3 * predicted, 1e3 * all,
			predicted / all);
	fflush(stdout);
}

/* Predicts the seconds of a step on a mesh, from these rates; 0: failed. */
static double predict(tn_context *c, const train_config *k, int n,
	const tn_shard_wishes *rates)
{
	char mesh[32], *text = cli_gpt_text(k), *said = NULL;
	tn_shard_wishes w = *rates;
	tn_program *p = NULL;
	double seconds = 0;

	snprintf(mesh, sizeof mesh, "data=%d", n);
	w.mesh = mesh;
	if (text != NULL &&
		tn_program_parse(&p, c, text, strlen(text), "gpt") >= 0 &&
		tn_program_plan_shards(&said, &seconds, p, &w) < 0)
		seconds = 0;
	tn_text_free(said);
	tn_program_free(p);
	free(text);
	return seconds;
}

/*
 * On all processes: measures the rate of a large all-reduce and the time of a
 * small one.
 */
static bool measure_link(tn_mesh *m, int n, tn_shard_wishes *w)
{
	const tn_placement from[] = {TN_PARTS("sum")}, to[] = {TN_REPLICATED};
	tn_move_time large, small;

	if (tn_mesh_measure(m, 2048, 2048, from, to, 5, &large) < 0 ||
		tn_mesh_measure(m, 8, 8, from, to, 5, &small) < 0)
		return false;
	w->latency = small.seconds;
	w->link = (double)large.bytes_sent / n / large.seconds;
	return true;
}

static bool measure_step(const bench *b, tn_context *c)
{
	static const char *const axes[] = {"a"};
	int steps = b->repeat < MOST_STEPS ? b->repeat : MOST_STEPS;
	tn_mesh *m = tn_mesh_new(c, 1, axes, (int64_t[]){b->n});
	double all[MOST_STEPS], one[MOST_STEPS];
	bool is_first = tn_process(c) == 0, good;
	tn_options o = TN_OPTIONS_INIT;
	learner shared = {0}, alone = {0};
	tn_context *own = NULL;
	tn_shard_wishes w = {.memory = 1e15, .flops = 1, .train = true};

	o.threads = 1;
	good = m != NULL && learner_new(&shared, c, m) &&
		(!is_first || (cli_context_new(&own, &o) >= 0 &&
				      learner_new(&alone, own, NULL)));
	for (int i = -2; i < steps && good; i++) {
		double t = learn(&shared);

		if (i >= 0)
			all[i] = t;
		meet(c, m);
		t = is_first ? learn(&alone) : 0;
		if (i >= 0)
			one[i] = t;
		meet(c, m);
		good = tn_context_status(c) == TN_OK &&
			(own == NULL || tn_context_status(own) == TN_OK);
	}
	good = good && measure_link(m, b->n, &w);
	if (good && is_first) {
		double alone_seconds = bench_median(one, steps);

		/* at 1 flop per second, seconds are the flops of one process */
		w.flops = predict(own, &alone.k, 1, &w) / alone_seconds;
		say_step(b, bench_median(all, steps), alone_seconds,
			predict(own, &alone.k, b->n, &w));
	}
	if (own != NULL && tn_context_status(own) != TN_OK)
		cli_diag(tn_context_diag(own));
	learner_free(&shared);
	learner_free(&alone);
	cli_context_free(own);
	return good;
}

/* ---- processes ---- */

typedef struct process {
	bench *b;
	int32_t number;
	pthread_t thread;
	bool failed;
} process;

static void heading(const bench *b, const tn_context *c)
{
	if (b->json || tn_process(c) != 0)
		return;
	printf("%d %s\n\n%-22s %-15s %11s %11s %10s %10s %6s %6s\n", b->n,
		b->world != NULL ? "threads" : "processes", "case", "move",
		"bytes", "least", "ms", "other ms", "ratio", "target");
}

static void *body(void *arg)
{
	process *p = arg;
	bench *b = p->b;
	tn_context *c = context(b, p->number);

	p->failed = c == NULL;
	if (c == NULL)
		return NULL;
	if (b->world == NULL)
		b->n = tn_n_processes(c);
	heading(b, c);
	p->failed = !measure_moves(b, c, false) || !measure_moves(b, c, true) ||
		(is_wanted(b, "gpt step") && !measure_step(b, c));
	if (p->failed)
		cli_diag(tn_context_diag(c));
	cli_context_free(c);
	return NULL;
}

int bench_shard(const char *only, int repeat, bool json)
{
	bool many = getenv("OMPI_COMM_WORLD_SIZE") != NULL ||
		getenv("PMI_SIZE") != NULL;
	bench b = {.only = only, .repeat = repeat, .json = json};
	process p[THREADS] = {{.b = &b}};
	int32_t n = 0;

	if (many) {
		body(&p[0]);
		return p[0].failed ? CLI_FAILED : CLI_OK;
	}
	b.n = THREADS;
	b.world = tn_world_new(THREADS);
	for (; n < THREADS && b.world != NULL; n++) {
		p[n] = (process){.b = &b, .number = n};
		if (pthread_create(&p[n].thread, NULL, body, &p[n]) != 0)
			break;
	}
	b.failed = n < THREADS;
	for (int32_t i = 0; i < n; i++) {
		pthread_join(p[i].thread, NULL);
		b.failed |= p[i].failed;
	}
	tn_world_free(b.world);
	return b.failed ? CLI_FAILED : CLI_OK;
}
