/*
 * check.c: `tenon check DIR...`: runs ONNX's backend tests by the interpreter
 * and by compiled code.
 *
 *     DIR/model.onnx, DIR/test_data_set_0/input_0.pb ..., output_0.pb ...
 *
 * A folder without model.onnx is searched for test folders below it. A test
 * passes if each output of each data set has the expected type and values: |x -
 * y| <= atol + rtol * |y|. It is an error if there are no tests.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 6, MAX_REASON = 700, MAX_CODE = 48, MAX_VALUES = 256 };

enum verdict { PASSED, FAILED, SKIPPED };

typedef struct test {
	char *dir;
	enum verdict verdict;
	char code[MAX_CODE]; /* of the reason: a rule; passed: empty */
	char reason[MAX_REASON];
} test;

typedef struct suite {
	test *at;
	size_t n, room;
	double rtol, atol, fold;
	int64_t from, to; /* opsets of the models; to 0: all */
	bool interp, compiled;
	const char *known; /* text of the file of known failures; NULL: none */
	pthread_mutex_t lock;
	size_t next; /* the first test that no worker has taken */
	tn_diag diag; /* the reason if a context could not be made */
} suite;

/* ---- the list of tests ---- */

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir) + strlen(name) + 2;
	char *path = cli_alloc(n, 1);

	if (path != NULL)
		snprintf(path, n, "%s/%s", dir, name);
	return path;
}

static bool exists(const char *dir, const char *name, bool is_dir)
{
	char *path = join(dir, name);
	struct stat st;
	bool found = path != NULL && stat(path, &st) == 0 &&
		     (is_dir ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));

	free(path);
	return found;
}

static bool add_test(suite *s, const char *dir)
{
	if (s->n == s->room) {
		size_t room = s->room > 0 ? 2 * s->room : 256;
		test *at = realloc(s->at, room * sizeof *at);

		if (at == NULL)
			return false;
		s->at = at;
		s->room = room;
	}
	memset(&s->at[s->n], 0, sizeof s->at[s->n]);
	s->at[s->n].dir = strdup(dir);
	return s->at[s->n++].dir != NULL;
}

static int is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static bool find_tests(suite *s, const char *dir, int depth)
{
	struct dirent **name;
	bool ok = true;
	int n;

	if (exists(dir, "model.onnx", false))
		return add_test(s, dir);
	if (depth == MAX_DEPTH)
		return true;
	n = scandir(dir, &name, is_visible, alphasort);
	for (int i = 0; i < n; i++) {
		char *path = join(dir, name[i]->d_name);
		struct stat st;

		if (ok && path != NULL && stat(path, &st) == 0 &&
			S_ISDIR(st.st_mode))
			ok = find_tests(s, path, depth + 1);
		free(path);
		free(name[i]);
	}
	if (n >= 0)
		free(name);
	return ok;
}

/* Opsets "18" or "19-24". */
static bool read_opsets(suite *s, const char *text)
{
	char *end = NULL;

	if (text == NULL)
		return true;
	s->from = s->to = strtol(text, &end, 10);
	if (end != text && *end == '-') {
		text = end + 1;
		s->to = strtol(text, &end, 10);
	}
	return end != text && *end == '\0' && s->from > 0 &&
	       s->from <= s->to && s->to <= INT32_MAX;
}

/* ---- one data set ---- */

typedef struct work {
	const suite *s;
	test *t;
	tn_context *c;
	tn_onnx *m;
	tn_program *p;
	const char *mode; /* named in the reason of a failure */
	const void *in[MAX_VALUES];
	void *out[MAX_VALUES];
	const tn_array *want[MAX_VALUES];
	int32_t n_in, n_out;
} work;

__attribute__((format(printf, 3, 4))) static bool bad(
	work *w, const char *code, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	snprintf(w->t->reason, MAX_REASON, "%s: ", w->mode);
	n = strlen(w->t->reason);
	va_start(ap, fmt);
	vsnprintf(w->t->reason + n, MAX_REASON - n, fmt, ap);
	va_end(ap);
	snprintf(w->t->code, MAX_CODE, "%s", code);
	w->t->verdict = FAILED;
	return false;
}

/* Is the model's opset one of those that are asked for? */
static bool is_asked(work *w)
{
	long long opset = (long long)tn_onnx_opset(w->m, "");

	if (w->s->to == 0 || (opset >= w->s->from && opset <= w->s->to))
		return true;
	bad(w, "check.opset", "its model has opset %lld", opset);
	w->t->verdict = SKIPPED;
	return false;
}

static bool bad_call(work *w)
{
	const tn_diag *d = tn_context_diag(w->c);

	return bad(w, d->rule, "[%s] %s", d->rule, d->text);
}

/* The arrays of an input or output of the test. */
static bool read_port(work *w, const char *set, bool is_output, int32_t i,
	int32_t *n, const tn_array **a)
{
	const char *what = is_output ? "output" : "input";
	char name[32], *path;
	bool ok;

	snprintf(name, sizeof name, "%s_%d.pb", what, (int)i);
	path = join(set, name);
	ok = path != NULL &&
	     tn_onnx_read(w->m, is_output, i, path, n, a) == TN_OK &&
	     (is_output || tn_onnx_give(w->m, i, *n, *a) == TN_OK);
	free(path);
	if (!ok)
		return bad_call(w);
	if ((is_output ? w->n_out : w->n_in) + *n > MAX_VALUES)
		return bad(w, "check.count", "more than %d %ss", MAX_VALUES,
			what);
	return true;
}

static bool read_inputs(work *w, const char *set)
{
	for (int32_t i = 0; i < tn_onnx_n_inputs(w->m); i++) {
		const tn_array *a;
		int32_t n;

		if (!read_port(w, set, false, i, &n, &a))
			return false;
		for (int32_t k = 0; k < n; k++)
			w->in[w->n_in++] = a[k].data;
	}
	return true;
}

static bool read_outputs(work *w, const char *set)
{
	for (int32_t i = 0; i < tn_onnx_n_outputs(w->m); i++) {
		const tn_array *a;
		int32_t n;

		if (!read_port(w, set, true, i, &n, &a))
			return false;
		for (int32_t k = 0; k < n; k++)
			w->want[w->n_out++] = &a[k];
	}
	return true;
}

static bool is_near(const work *w, double x, double y)
{
	if (isnan(x) || isnan(y))
		return isnan(x) && isnan(y);
	if (isinf(x) || isinf(y))
		return x == y;
	return fabs(x - y) <= w->s->atol + w->s->rtol * fabs(y);
}

static bool compare(work *w, int32_t i)
{
	const tn_value *v = tn_program_output(w->p, i);
	const tn_array *y = w->want[i];
	int64_t n_wrong = 0, first = 0;

	if (v->dtype != y->dtype || v->rank != y->rank ||
		(v->rank > 0 && memcmp(v->shape, y->shape,
			(size_t)v->rank * sizeof *v->shape) != 0)) {
		char got[160], want[160];

		cli_type_text(got, sizeof got, v->dtype, v->rank, v->shape);
		cli_type_text(want, sizeof want, y->dtype, y->rank, y->shape);
		return bad(w, "check.type", "output %s is %s, but the test "
			"expects %s", v->name, got, want);
	}
	for (int64_t k = 0; k < v->n_elems; k++) {
		if (is_near(w, tn_get_f64(v->dtype, w->out[i], k),
			    tn_get_f64(y->dtype, y->data, k)))
			continue;
		if (n_wrong++ == 0)
			first = k;
	}
	if (n_wrong == 0)
		return true;
	return bad(w, "check.values", "output %s: %lld of %lld elements differ; the first is "
		"number %lld: it is %g, and must be %g",
		v->name, (long long)n_wrong,
		(long long)v->n_elems, (long long)first,
		tn_get_f64(v->dtype, w->out[i], first),
		tn_get_f64(y->dtype, y->data, first));
}

static bool run_program(work *w)
{
	int32_t n = tn_program_n_outputs(w->p);

	if (tn_program_n_inputs(w->p) != w->n_in)
		return bad(w, "check.count", "there are %d arrays, but the model has %d inputs",
			(int)w->n_in,
			(int)tn_program_n_inputs(w->p));
	if (n != w->n_out)
		return bad(w, "check.count", "the model has %d outputs, but the test expects "
			"%d", (int)n,
			(int)w->n_out);
	for (int32_t i = 0; i < n; i++) {
		w->out[i] = cli_alloc(1, tn_program_output(w->p, i)->n_bytes);
		if (w->out[i] == NULL)
			return bad(w, "check.memory", "no memory");
	}
	if (tn_program_run(w->p, w->in, w->out) < 0)
		return bad_call(w);
	for (int32_t i = 0; i < n; i++)
		if (!compare(w, i))
			return false;
	return true;
}

static bool check_set(const suite *s, test *t, tn_context *c, const char *mode,
	const char *set)
{
	work *w = cli_alloc(1, sizeof *w);
	char *model = join(t->dir, "model.onnx");
	bool ok = false;

	if (w == NULL || model == NULL)
		goto out;
	w->s = s;
	w->t = t;
	w->c = c;
	w->mode = mode;
	if (tn_onnx_open(&w->m, c, model) < 0)
		bad_call(w);
	else if (is_asked(w) && read_inputs(w, set) && read_outputs(w, set)) {
		tn_onnx_fold(w->m, (int64_t)s->fold);
		ok = tn_onnx_build(&w->p, w->m) < 0 ? bad_call(w)
						    : run_program(w);
	}
	tn_program_free(w->p);
	tn_onnx_free(w->m);
	for (int32_t i = 0; i < MAX_VALUES; i++)
		free(w->out[i]);
out:
	free(model);
	free(w);
	return ok;
}

/* ---- one test ---- */

/* Runs all data sets in one mode; returns their number, or -1 if one failed. */
static int check_sets(
	const suite *s, test *t, tn_context *c, const char *mode)
{
	for (int i = 0;; i++) {
		char name[40], *set;
		bool ok;

		snprintf(name, sizeof name, "test_data_set_%d", i);
		if (!exists(t->dir, name, true))
			return i;
		set = join(t->dir, name);
		ok = set != NULL && check_set(s, t, c, mode, set);
		free(set);
		if (!ok)
			return -1;
	}
}

static const char *base_name(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash != NULL ? slash + 1 : dir;
}

/* The reason in the line "NAME REASON" of the known failures, or NULL. */
static const char *known_reason(const suite *s, const char *name, size_t *n)
{
	size_t len = strlen(name);

	for (const char *l = s->known; l != NULL && *l != '\0';) {
		const char *end = strchr(l, '\n');

		if (!strncmp(l, name, len) && l[len] == ' ') {
			l += len + 1;
			*n = end != NULL ? (size_t)(end - l) : strlen(l);
			return l;
		}
		l = end != NULL ? end + 1 : NULL;
	}
	return NULL;
}

static void judge_known(const suite *s, test *t)
{
	size_t n = 0;
	const char *why = known_reason(s, base_name(t->dir), &n);

	if (why == NULL)
		return;
	if (t->verdict == PASSED) {
		t->verdict = FAILED;
		snprintf(t->code, MAX_CODE, "check.known");
		snprintf(t->reason, MAX_REASON,
			"it passes, but is listed as known to fail: %.*s",
			(int)n, why);
	} else if (t->verdict == FAILED) {
		t->verdict = SKIPPED;
		snprintf(t->reason, MAX_REASON, "known to fail: %.*s", (int)n,
			why);
	}
}

static void check_test(
	const suite *s, test *t, tn_context *interp, tn_context *compiled)
{
	int n = 0;

	t->verdict = PASSED;
	if (interp != NULL)
		n = check_sets(s, t, interp, "interp");
	if (n >= 0 && compiled != NULL)
		n = check_sets(s, t, compiled, "compiled");
	if (n == 0) {
		t->verdict = SKIPPED;
		snprintf(t->code, MAX_CODE, "check.data");
		snprintf(t->reason, MAX_REASON, "it has no test_data_set_0");
	}
	judge_known(s, t);
}

/* ---- all of them ---- */

static void *worker(void *arg)
{
	suite *s = arg;
	tn_options o = TN_OPTIONS_INIT;
	tn_context *interp = NULL, *compiled = NULL;

	bool ok;

	o.threads = 1;
	ok = !s->compiled || tn_context_new(&compiled, &o) >= 0;
	o.interp = true;
	ok = ok && (!s->interp || tn_context_new(&interp, &o) >= 0);
	if (!ok) {
		pthread_mutex_lock(&s->lock);
		s->diag = *tn_context_diag(NULL);
		pthread_mutex_unlock(&s->lock);
	}
	while (ok) {
		size_t i;

		pthread_mutex_lock(&s->lock);
		i = s->next++;
		pthread_mutex_unlock(&s->lock);
		if (i >= s->n)
			break;
		check_test(s, &s->at[i], interp, compiled);
		cli_progress("%zu of %zu", i + 1, s->n);
	}
	cli_close(interp);
	cli_close(compiled);
	/* NULL: the worker has no contexts, see s->diag */
	return ok ? s : NULL;
}

static bool run_all(suite *s, int jobs)
{
	pthread_t thread[64];
	bool ok;
	int n = 0;

	pthread_mutex_init(&s->lock, NULL);
	while (n < jobs - 1 &&
		pthread_create(&thread[n], NULL, worker, s) == 0)
		n++;
	ok = worker(s) != NULL;
	for (int i = 0; i < n; i++) {
		void *done = NULL;

		pthread_join(thread[i], &done);
		ok = ok && done != NULL;
	}
	pthread_mutex_destroy(&s->lock);
	cli_progress("%s", "");
	if (!ok)
		cli_diag(&s->diag);
	return ok;
}

static const char *const words[] = {"passed", "failed", "skipped"};

static int by_code(const void *x, const void *y)
{
	const test *const *a = x, *const *b = y;

	return strcmp((*a)->code, (*b)->code);
}

/* Prints how many tests failed for each code. */
static bool report_codes(const suite *s)
{
	const test **failed = cli_alloc(s->n + 1, sizeof *failed);
	size_t n = 0;

	if (failed == NULL)
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].verdict == FAILED)
			failed[n++] = &s->at[i];
	qsort(failed, n, sizeof *failed, by_code);
	for (size_t i = 0, from = 0; i < n; i++) {
		if (i + 1 < n && by_code(&failed[i], &failed[i + 1]) == 0)
			continue;
		printf("%s: %zu failed\n", failed[i]->code, i + 1 - from);
		from = i + 1;
	}
	free(failed);
	return true;
}

static int report(const suite *s, bool json, bool summary)
{
	size_t count[3] = {0};

	for (size_t i = 0; i < s->n; i++)
		count[s->at[i].verdict]++;
	if (json)
		printf("{\"passed\":%zu,\"failed\":%zu,\"skipped\":%zu,"
		       "\"tests\":[", count[PASSED], count[FAILED],
			count[SKIPPED]);
	for (size_t i = 0; i < s->n; i++) {
		const test *t = &s->at[i];

		if (json) {
			printf("%s{\"name\":", i > 0 ? "," : "");
			cli_json_text(stdout, base_name(t->dir));
			printf(",\"result\":\"%s\",\"code\":",
				words[t->verdict]);
			cli_json_text(stdout, t->code);
			printf(",\"reason\":");
			cli_json_text(stdout, t->reason);
			printf("}");
		} else if (t->verdict != PASSED) {
			printf("%s: %s: %s\n", base_name(t->dir),
				words[t->verdict], t->reason);
		}
	}
	if (!json && summary && !report_codes(s))
		return CLI_FAILED;
	if (json)
		printf("]}\n");
	else
		printf("%zu passed, %zu failed, %zu skipped\n", count[PASSED],
			count[FAILED], count[SKIPPED]);
	return count[FAILED] == 0 ? CLI_OK : CLI_FAILED;
}

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	long n = -1;

	if (f != NULL && fseek(f, 0, SEEK_END) == 0)
		n = ftell(f);
	if (n >= 0 && n < (1 << 24) && fseek(f, 0, SEEK_SET) == 0)
		text = cli_alloc((size_t)n + 1, 1);
	if (text != NULL && fread(text, 1, (size_t)n, f) != (size_t)n) {
		free(text);
		text = NULL;
	}
	if (f != NULL)
		fclose(f);
	if (text == NULL)
		cli_error(path, "file.read", "it cannot be read");
	return text;
}

static bool number(const char *text, double otherwise, double *out)
{
	char *end = NULL;

	*out = otherwise;
	if (text == NULL)
		return true;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && *out >= 0;
}

static int run(const cli_command *self, int argc, char **argv)
{
	const char *mode = "both", *known = NULL, *jobs = NULL, *rtol = NULL;
	const char *atol = NULL, *fold = NULL, *opset = NULL;
	bool json = false, summary = false;
	const cli_option options[] = {
		{"mode", .value = &mode},
		{"known", .value = &known},
		{"jobs", .value = &jobs},
		{"rtol", .value = &rtol},
		{"atol", .value = &atol},
		{"fold", .value = &fold},
		{"opset", .value = &opset},
		{"json", .flag = &json},
		{"summary", .flag = &summary},
		{0},
	};
	const char **dir = cli_alloc((size_t)argc + 1, sizeof *dir);
	suite s = {0};
	double n_jobs = 1;
	char *text = NULL;
	int code = CLI_FAILED;

	if (dir == NULL)
		return CLI_FAILED;
	code = cli_args(self, argc, argv, options, dir, argc);
	if (code >= 0)
		goto out;
	s.interp = !strcmp(mode, "both") || !strcmp(mode, "interp");
	s.compiled = !strcmp(mode, "both") || !strcmp(mode, "compiled");
	if (dir[0] == NULL)
		code = cli_usage(self, "no DIR given");
	else if (!s.interp && !s.compiled)
		code = cli_usage(self, "--mode must be both, interp or "
			"compiled");
	else if (!number(rtol, 1e-3, &s.rtol) || !number(atol, 1e-7, &s.atol))
		code = cli_usage(self, "--rtol and --atol must be numbers of "
			"at least 0");
	else if (!number(fold, 0, &s.fold) || s.fold > 1e15)
		code = cli_usage(self, "--fold must be a number of elements");
	else if (!read_opsets(&s, opset))
		code = cli_usage(self, "--opset must be a number, or two as "
			"19-24");
	else if (!number(jobs, 1, &n_jobs) || n_jobs < 1 || n_jobs > 64)
		code = cli_usage(self, "--jobs must be a number from 1 to 64");
	if (code >= 0)
		goto out;
	code = CLI_FAILED;
	if (known != NULL && (s.known = text = read_text(known)) == NULL)
		goto out;
	for (int i = 0; dir[i] != NULL; i++)
		if (!find_tests(&s, dir[i], 0)) {
			cli_error(dir[i], "run.memory", "no memory");
			goto out;
		}
	if (s.n == 0)
		cli_error(dir[0], "check.none",
			"no folder there contains a model.onnx");
	else if (run_all(&s, (int)n_jobs))
		code = report(&s, json, summary);
out:
	for (size_t i = 0; i < s.n; i++)
		free(s.at[i].dir);
	free(s.at);
	free(text);
	free(dir);
	return code;
}

const cli_command cli_check = {
	"check",
	"run the tests of ONNX models",
	"usage: tenon check DIR... [OPTION]...\n"
	"\n"
	"Runs ONNX backend tests. A test is a folder that contains model.onnx and\n"
	"test_data_set_*/input_*.pb and output_*.pb. DIR is such a folder, or\n"
	"contains such folders at any depth.\n"
	"\n"
	"  --mode=both       use the interpreter, then compiled code\n"
	"  --mode=interp     use only the slow interpreter\n"
	"  --mode=compiled   use only compiled code\n"
	"  --rtol X --atol Y accept |x - y| <= Y + X * |y| (1e-3, 1e-7)\n"
	"  --known FILE      tests that are known to fail, in lines NAME REASON; they\n"
	"                    count as skipped, and it is a failure if one passes\n"
	"  --fold N          compute constants of at least N elements when the model\n"
	"                    is built; they become parameters\n"
	"  --opset N, N-M    run only models of these opsets of ai.onnx; the others\n"
	"                    count as skipped\n"
	"  --jobs N          run N tests at the same time (1)\n"
	"  --summary         also print how many tests failed for each code\n"
	"  --json            print one JSON object\n"
	"  --help            print this text\n"
	"\n"
	"Each failure is printed with its reason. Its code, which --json has, too, is\n"
	"the rule of the error, or check.type (an output of another type or shape),\n"
	"check.values (elements differ), check.count (other numbers of inputs or\n"
	"outputs), check.known (a test passes that is known to fail), check.data (no\n"
	"data: skipped), check.opset (another opset: skipped), check.memory. The exit\n"
	"code is 0 if no test failed. It is a failure if no test is found.\n",
	run,
};
