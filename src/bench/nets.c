/*
 * nets.c: `tenon bench nets MODEL.onnx...`: measures whole networks, from the
 * file to the result.
 *
 *   load    read and build; includes computing weights that nodes produce
 *   cold    equations to loaded code, with an empty cache
 *   warm    the same in a new context, from the cache
 *   run     one inference, the median of several
 *   memory  the peak memory of the process
 *
 * Each network and batch is measured in its own process. All weights are
 * parameters of the program, also those that the file fills with a constant.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* wait4 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM_UP = 2 };

typedef struct times {
	double load, cold, warm, run;
	int64_t kernels, files;
} times;

typedef struct net {
	tn_context *c;
	tn_onnx *m;
	tn_program *p;
	double load, compile;
} net;

static void net_close(net *n)
{
	tn_program_free(n->p);
	tn_onnx_free(n->m);
	cli_context_free(n->c);
}

/* Sets the batch, which is the first axis of every input. */
static bool set_batch(tn_onnx *m, int64_t batch)
{
	for (int32_t i = 0; i < tn_onnx_n_inputs(m); i++) {
		char dim[300];

		snprintf(dim, sizeof dim, "%.250s[0]",
			tn_onnx_input(m, i)->name);
		if (tn_onnx_bind_dim(m, dim, batch) < 0)
			return false;
	}
	return true;
}

static bool net_open(net *n, const char *file, int64_t batch, const char *cache)
{
	tn_options o = TN_OPTIONS_INIT;
	double start = cli_now();

	o.cache_dir = cache;
	o.verify = false;
	if (cli_context_new(&n->c, &o) < 0) {
		cli_no_context();
		return false;
	}
	if (tn_onnx_open(&n->m, n->c, file) < 0)
		goto fail;
	tn_onnx_fold(n->m, 2);
	if (!set_batch(n->m, batch) || tn_onnx_build(&n->p, n->m) < 0)
		goto fail;
	n->load = cli_now() - start;
	start = cli_now();
	if (tn_program_compile(n->p) < 0)
		goto fail;
	n->compile = cli_now() - start;
	return true;
fail:
	cli_diag(tn_context_diag(n->c));
	return false;
}

static bool infer(net *n, int repeat, double *seconds)
{
	cli_model model = {.program = n->p};
	cli_list none = {0};
	cli_arrays *a = cli_arrays_new(n->c, &model, &none, 0, false);
	double *v = cli_alloc((size_t)repeat, sizeof *v);
	bool ok = a != NULL && v != NULL;

	for (int i = -WARM_UP; ok && i < repeat; i++) {
		double start = cli_now();

		ok = tn_program_run(n->p, a->in, a->out) >= 0;
		if (!ok)
			cli_diag(tn_context_diag(n->c));
		if (i >= 0)
			v[i] = cli_now() - start;
	}
	if (ok)
		*seconds = bench_median(v, repeat);
	free(v);
	if (a != NULL)
		cli_arrays_free(a);
	return ok;
}

static bool measure(const char *file, int64_t batch, int repeat,
	const char *cache, times *out)
{
	net cold = {0}, warm = {0};
	tn_stats s;
	bool ok = net_open(&cold, file, batch, cache);

	if (ok) {
		tn_context_stats(cold.c, &s);
		out->kernels = s.n_kernels;
		out->files = s.n_compiled;
		out->cold = cold.compile;
	}
	net_close(&cold);
	ok = ok && net_open(&warm, file, batch, cache) &&
		infer(&warm, repeat, &out->run);
	out->warm = warm.compile;
	out->load = warm.load;
	net_close(&warm);
	return ok;
}

static void say(const char *file, int64_t batch, const times *t, double mb,
	bool json)
{
	if (!json) {
		printf("%-28s %3lld %8.1f %9.1f %8.1f %9.2f %9.0f\n", file,
			(long long)batch, 1e3 * t->load, 1e3 * t->cold,
			1e3 * t->warm, 1e3 * t->run, mb);
		fflush(stdout);
		return;
	}
	printf("{\"bench\":\"nets\",\"name\":");
	cli_json_text(stdout, file);
	printf(",\"batch\":%lld,\"kernels\":%lld,\"files_compiled\":%lld",
		(long long)batch, (long long)t->kernels, (long long)t->files);
	printf(",\"load_ms\":%.3f,\"cold_ms\":%.3f,\"warm_ms\":%.3f,"
	       "\"run_ms\":%.4f,\"memory_mb\":%.1f}\n", 1e3 * t->load,
		1e3 * t->cold, 1e3 * t->warm, 1e3 * t->run, mb);
	fflush(stdout);
}

/* ".../light_resnet50.onnx" -> "light_resnet50.onnx" */
static const char *base(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash != NULL ? slash + 1 : file;
}

/* Measures in a child process, which writes its times to a pipe. */
static bool one(const char *file, int64_t batch, int repeat, bool json)
{
	char dir[] = "/tmp/tenon-nets-XXXXXX";
	struct rusage use = {0};
	times t = {0};
	int pipe_[2], status = 0;
	ssize_t got;
	pid_t child;

	if (mkdtemp(dir) == NULL || pipe(pipe_) < 0) {
		cli_error(dir, "bench.process", "a temporary folder or a pipe "
			"cannot be made");
		return false;
	}
	cli_progress("bench nets: %s, batch %lld", base(file),
		(long long)batch);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		bool ok = measure(file, batch, repeat, dir, &t) &&
			write(pipe_[1], &t, sizeof t) == (ssize_t)sizeof t;

		_exit(ok ? CLI_OK : CLI_FAILED);
	}
	close(pipe_[1]);
	got = child < 0 ? -1 : read(pipe_[0], &t, sizeof t);
	close(pipe_[0]);
	if (child > 0)
		wait4(child, &status, 0, &use);
	bench_remove(dir);
	cli_progress("%s", "");
	if (got != (ssize_t)sizeof t || status != 0) {
		if (child < 0 || WIFSIGNALED(status))
			cli_error(file, "bench.process", "the process that "
				"measures failed");
		return false;
	}
	say(base(file), batch, &t, (double)use.ru_maxrss / 1024, json);
	return true;
}

int bench_nets(const char *const *files, int repeat, int64_t batch, bool json)
{
	bool ok = true;

	if (!json)
		printf("%-28s %3s %8s %9s %8s %9s %9s\n", "net", "n", "load ms",
			"cold ms", "warm ms", "run ms", "memory MB");
	for (int i = 0; files[i] != NULL; i++) {
		if (batch > 0) {
			ok = one(files[i], batch, repeat, json) && ok;
			continue;
		}
		ok = one(files[i], 1, repeat, json) && ok;
		ok = one(files[i], 4, repeat, json) && ok;
	}
	return ok ? CLI_OK : CLI_FAILED;
}
