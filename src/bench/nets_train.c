/*
 * nets_train.c: `tenon bench nets --train MODEL.onnx...`: measures steps of
 * `tenon train` on whole networks: forward, gradients, SGD with momentum.
 *
 *   first   the first step, compiled with an empty cache
 *   step    the median of the later steps
 *   memory  the peak memory of the process
 *
 * Runs the command itself, in a child process, on random examples.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* wait4 */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_STEPS = 1001 };

/* Writes x.npy and y.npy: a batch of random inputs, all of class 0. */
static bool write_data(const char *file, int64_t batch, const char *dir)
{
	int64_t shape[TN_MAX_RANK], n = 1;
	const tn_onnx_port *p;
	tn_context *c = NULL;
	tn_onnx *m = NULL;
	char path[300];
	void *x = NULL;
	int64_t *y = cli_alloc((size_t)batch, sizeof *y);
	bool ok = false;

	if (y == NULL || cli_context_new(&c, NULL) < 0 ||
		tn_onnx_open(&m, c, file) < 0 || tn_onnx_n_inputs(m) != 1)
		goto out;
	p = tn_onnx_input(m, 0);
	for (int32_t i = 0; i < p->rank; i++) {
		shape[i] = i == 0 ? batch : p->shape[i];
		n *= shape[i] > 0 && shape[i] < 1 << 16 ? shape[i] : 0;
	}
	if (p->rank < 2 || p->dtype != TN_F32 || n <= 0 || n > 1 << 28)
		goto out;
	x = cli_alloc((size_t)n, sizeof(float));
	if (x == NULL)
		goto out;
	tn_fill_random(TN_F32, x, n, 0, -1, 1);
	snprintf(path, sizeof path, "%s/x.npy", dir);
	ok = tn_npy_write(c, path, TN_F32, p->rank, shape, x) == TN_OK;
	snprintf(path, sizeof path, "%s/y.npy", dir);
	ok = ok && tn_npy_write(c, path, TN_I64, 1, &batch, y) == TN_OK;
out:
	if (!ok)
		cli_error(file, "bench.model", "the model must have one f32 "
			"input of rank 2 or more, with fixed extents after the "
			"first");
	free(x);
	free(y);
	tn_onnx_free(m);
	cli_context_free(c);
	return ok;
}

/* In the child: runs the command, with its output to the pipe. */
static int train(const char *file, int64_t batch, int repeat, char *dir, int to)
{
	char out[300], size[32], steps[32], name[300];
	char *argv[] = {name, "--data", dir, "--batch", size, "--steps", steps,
		"--optimizer", "sgd_momentum", "--lr", "0.001", "--fresh",
		"--json", "--out", out, NULL};

	snprintf(name, sizeof name, "%s", file);
	snprintf(out, sizeof out, "%s/out.onnx", dir);
	snprintf(size, sizeof size, "%lld", (long long)batch);
	snprintf(steps, sizeof steps, "%d", repeat + 1);
	if (setenv("XDG_CACHE_HOME", dir, 1) < 0 || dup2(to, STDOUT_FILENO) < 0)
		return CLI_FAILED;
	return cli_train_onnx.run(
		&cli_train_onnx, (int)(sizeof argv / sizeof *argv) - 1, argv);
}

/* Reads the time of each step, converted to seconds; returns their number. */
static int read_times(int from, double *v, int most)
{
	FILE *f = fdopen(from, "r");
	char line[400];
	int n = 0;

	if (f == NULL) {
		close(from);
		return 0;
	}
	while (fgets(line, sizeof line, f) != NULL) {
		const char *ms = strstr(line, "\"ms\":");

		if (ms != NULL && n < most)
			v[n++] = 1e-3 * strtod(ms + 5, NULL);
	}
	fclose(f);
	return n;
}

static void say(const char *file, int64_t batch, double first, double step,
	double mb, bool json)
{
	const char *slash = strrchr(file, '/');

	file = slash != NULL ? slash + 1 : file;
	if (!json) {
		printf("%-28s %3lld %9.1f %9.2f %9.0f\n", file,
			(long long)batch, 1e3 * first, 1e3 * step, mb);
	} else {
		printf("{\"bench\":\"nets_train\",\"name\":");
		cli_json_text(stdout, file);
		printf(",\"batch\":%lld,\"first_ms\":%.3f,\"step_ms\":%.4f,"
		       "\"memory_mb\":%.1f}\n", (long long)batch, 1e3 * first,
			1e3 * step, mb);
	}
	fflush(stdout);
}

static bool one(const char *file, int64_t batch, int repeat, bool json)
{
	char dir[] = "/tmp/tenon-nets-XXXXXX", cache[64];
	static double v[MAX_STEPS]; /* static: used by one call at a time */
	struct rusage use = {0};
	int pipe_[2], status = 0, n;
	pid_t child;

	if (mkdtemp(dir) == NULL || pipe(pipe_) < 0) {
		cli_error(dir, "bench.process", "a temporary folder or a pipe "
			"cannot be made");
		return false;
	}
	if (!write_data(file, batch, dir)) {
		bench_remove(dir);
		return false;
	}
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(train(file, batch, repeat, dir, pipe_[1]));
	close(pipe_[1]);
	n = read_times(pipe_[0], v, MAX_STEPS);
	if (child > 0)
		wait4(child, &status, 0, &use);
	snprintf(cache, sizeof cache, "%s/tenon", dir);
	bench_remove(cache);
	bench_remove(dir);
	if (child < 0 || status != 0 || n < 2) {
		cli_error(file, "bench.process", "the process that trains "
			"failed");
		return false;
	}
	say(file, batch, v[0], bench_median(v + 1, n - 1),
		(double)use.ru_maxrss / 1024, json);
	return true;
}

int bench_nets_train(
	const char *const *files, int repeat, int64_t batch, bool json)
{
	bool ok = true;

	if (!json)
		printf("%-28s %3s %9s %9s %9s\n", "net, a training step", "n",
			"first ms", "step ms", "memory MB");
	for (int i = 0; files[i] != NULL; i++)
		ok = one(files[i], batch > 0 ? batch : 4, repeat, json) && ok;
	return ok ? CLI_OK : CLI_FAILED;
}
