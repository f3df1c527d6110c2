/*
 * subject.c: the programs whose kernels `tenon bench merges` and `tenon bench
 * estimate` measure: those of the other benches, then files.
 *
 * All of them run on one thread. The time of a kernel is the CPU time of this
 * thread, so other processes do not count, except for their effect on the
 * caches.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

bool bench_subject_program(const bench_subject *s, tn_program **p)
{
	bool good;

	*p = NULL;
	if (s->model.onnx != NULL)
		good = tn_onnx_build(p, s->model.onnx) >= 0;
	else if (s->file != NULL)
		good = tn_program_load(p, s->c, s->file) >= 0;
	else
		good = tn_program_parse(p, s->c, s->text, strlen(s->text),
			       s->name) >= 0;
	if (!good)
		cli_diag(tn_context_diag(s->c));
	return good;
}

/* Does a run change the array? */
static bool is_written(const bench_subject *s, int32_t i)
{
	return tn_program_input(s->p, i)->is_param && s->model.onnx == NULL;
}

/* Copies the arrays that a run changes, before the first run. */
static bool keep_params(bench_subject *s)
{
	int32_t n = tn_program_n_inputs(s->p);

	s->n_kept = n;
	s->kept = cli_alloc((size_t)n + 1, sizeof *s->kept);
	for (int32_t i = 0; s->kept != NULL && i < n; i++) {
		size_t bytes = tn_program_input(s->p, i)->n_bytes;

		if (!is_written(s, i))
			continue;
		s->kept[i] = cli_alloc(bytes + 1, 1);
		if (s->kept[i] == NULL)
			return false;
		memcpy(s->kept[i], s->a->in[i], bytes);
	}
	return s->kept != NULL;
}

/* Compiles the program, with a file for each kernel, and makes its arrays. */
static bool subject_open(bench_subject *s)
{
	static const cli_list none;
	tn_options o = TN_OPTIONS_INIT;

	o.threads = 1;
	o.verify = false;
	o.cache_dir = s->cache;
	if (cli_context_new(&s->c, &o) < 0) {
		cli_no_context();
		return false;
	}
	if (s->file != NULL) {
		if (!cli_model_open(&s->model, s->c, s->file, &none, &none,
			    false))
			return false;
	} else if (!bench_subject_program(s, &s->model.program)) {
		return false;
	}
	s->p = s->model.program;
	if (tn_profile_start(s->c) < 0 ||
		tn_program_set_apart(s->p, NULL, NULL) < 0 ||
		(s->schedule != NULL &&
			tn_program_set_schedule(s->p, s->schedule,
				strlen(s->schedule), NULL) < 0) ||
		tn_program_compile(s->p) < 0) {
		cli_diag(tn_context_diag(s->c));
		return false;
	}
	s->a = cli_arrays_new(s->c, &s->model, &none, 1, false);
	return s->a != NULL && keep_params(s);
}

static void subject_close(bench_subject *s)
{
	for (int32_t i = 0; s->kept != NULL && i < s->n_kept; i++)
		free(s->kept[i]);
	free(s->kept);
	s->kept = NULL;
	cli_arrays_free(s->a);
	cli_model_close(&s->model);
	cli_context_free(s->c);
	s->a = NULL;
	s->c = NULL;
	s->p = NULL;
}

/*
 * Runs the program, always from the same parameters: several steps of training
 * on random numbers would lead to subnormal numbers or NaN, which are slower.
 */
static bool run_subject(const bench_subject *s, tn_program *p)
{
	for (int32_t i = 0; i < s->n_kept; i++)
		if (s->kept[i] != NULL)
			memcpy(s->a->own[i], s->kept[i],
				tn_program_input(s->p, i)->n_bytes);
	if (tn_program_run(p, s->a->in, s->a->out) >= 0)
		return true;
	cli_diag(tn_context_diag(s->c));
	return false;
}

typedef struct tour {
	const char *only, *cache;
	bench_visit *visit;
	void *arg;
	int n; /* number of subjects so far */
	bool good;
} tour;

static void go(tour *t, const char *name, const char *text, const char *file)
{
	bench_subject s = {.text = text, .file = file, .cache = t->cache};

	if (t->only != NULL && strstr(name, t->only) == NULL)
		return;
	t->n++;
	snprintf(s.name, sizeof s.name, "%s", name);
	cli_progress("bench: %s", name);
	t->good = subject_open(&s) && t->visit(t->arg, &s) && t->good;
	cli_progress("%s", "");
	subject_close(&s);
}

static void go_steps(tour *t)
{
	for (int i = 0; i < 2; i++) {
		char *text, full[32];

		snprintf(full, sizeof full, "step_%s", bench_step_name(i));
		if (t->only != NULL && strstr(full, t->only) == NULL)
			continue;
		text = bench_step_text(i);
		if (text == NULL)
			t->good = false;
		else
			go(t, full, text, NULL);
		free(text);
	}
}

bool bench_each_subject(const char *const *files, const char *only,
	bench_visit *visit, void *arg)
{
	char dir[] = "/tmp/tenon-bench-XXXXXX";
	char contract[BENCH_CONTRACT_TEXT], own[64];
	tour t = {only, dir, visit, arg, 0, true};
	const char *name, *text;

	if (mkdtemp(dir) == NULL) {
		cli_error(dir, "bench.process",
			"a temporary folder cannot be made");
		return false;
	}
	for (int i = 0; files[0] == NULL && bench_fused_text(i, &name, &text);
		i++)
		go(&t, name, text, NULL);
	for (int i = 0; files[0] == NULL &&
		bench_contract_text(i, own, sizeof own, contract);
		i++)
		go(&t, own, contract, NULL);
	if (files[0] == NULL)
		go_steps(&t);
	for (int i = 0; files[i] != NULL; i++) {
		const char *slash = strrchr(files[i], '/');

		go(&t, slash != NULL ? slash + 1 : files[i], NULL, files[i]);
	}
	bench_remove(dir);
	if (t.n == 0)
		cli_error(NULL, "bench.case", "no case contains \"%s\"", only);
	return t.good && t.n > 0;
}

bool bench_one_text(const char *name, const char *text, const char *schedule,
	bench_visit *visit, void *arg)
{
	char dir[] = "/tmp/tenon-bench-XXXXXX";
	bench_subject s = {.text = text, .schedule = schedule, .cache = dir};
	bool good;

	if (mkdtemp(dir) == NULL) {
		cli_error(dir, "bench.process",
			"a temporary folder cannot be made");
		return false;
	}
	snprintf(s.name, sizeof s.name, "%s", name);
	good = subject_open(&s) && visit(arg, &s);
	subject_close(&s);
	bench_remove(dir);
	return good;
}

/* ---- samples of kernels ---- */

bool bench_kernels_new(bench_kernels *k, tn_program *p, int repeat)
{
	*k = (bench_kernels){.p = p, .n = tn_program_n_kernels(p),
		.repeat = repeat};
	k->at = cli_alloc((size_t)k->n + 1, sizeof *k->at);
	k->before = cli_alloc((size_t)k->n + 1, sizeof *k->before);
	k->sample = cli_alloc(((size_t)k->n + 1) * (size_t)repeat,
		sizeof *k->sample);
	return k->at != NULL && k->before != NULL && k->sample != NULL;
}

void bench_kernels_free(bench_kernels *k)
{
	free(k->at);
	free(k->before);
	free(k->sample);
	*k = (bench_kernels){0};
}

/*
 * Runs the program; stores the times of kernels as sample i; negative: not
 * stored.
 */
bool bench_kernels_run(bench_kernels *k, const bench_subject *s, int i)
{
	if (!run_subject(s, k->p))
		return false;
	for (int32_t n = 0; n < k->n; n++) {
		if (tn_program_kernel(&k->at[n], k->p, n) < 0) {
			cli_diag(tn_context_diag(s->c));
			return false;
		}
		if (i >= 0)
			k->sample[n * k->repeat + i] =
				k->at[n].seconds - k->before[n];
		k->before[n] = k->at[n].seconds;
	}
	return true;
}

/* Other work on the machine only adds to the time of a run, so the least says
 * best what a kernel takes. */
double bench_kernels_least(const bench_kernels *k, int32_t i)
{
	const double *v = &k->sample[(int64_t)i * k->repeat];
	double least = v[0];

	for (int r = 1; r < k->repeat; r++)
		least = v[r] < least ? v[r] : least;
	return least;
}
