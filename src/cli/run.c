/*
 * run.c: `tenon run FILE.tn`: compiles and runs a program, and prints its
 * results.
 *
 *     $ tenon run examples/add_reduce.tn
 *     tenon: input x: f32[2,1024,1024] is random, seed 0
 *     out: f32[1024,1024]
 *     [[ 0.51 ...
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JSON_ELEMS = 1000, OUTPUT_NAME = 252 };

struct choice {
	const char *file, *output, *seed, *repeat, *trace, *schedule;
	const char *kern, *device;
	bool interp, json, profile;
	cli_list input, dim, apart;
	int64_t n; /* number of runs */
	uint64_t first; /* seed */
};

/* Times of the runs, in seconds. */
struct timing {
	double least, median, most;
};

/*
 * Before the first run: checks that each output can have its own file, and
 * makes the folder.
 */
static int check_outputs(const tn_program *p, const char *dir)
{
	char name[OUTPUT_NAME];

	for (int32_t i = 0; i < tn_program_n_outputs(p); i++) {
		const char *own = tn_program_output(p, i)->name;

		if (!cli_file_name(name, sizeof name, own))
			return cli_error(dir, "run.output", "the name of "
				"output \"%.60s\" is empty, or too long for "
				"a file", own);
		for (int32_t k = 0; k < i; k++)
			if (!strcmp(own, tn_program_output(p, k)->name))
				return cli_error(dir, "run.output", "outputs "
					"%d and %d are both \"%.100s\": they "
					"would be one file", (int)k + 1,
					(int)i + 1, own);
	}
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return cli_error(dir, "file.write", "%s", strerror(errno));
	if (access(dir, W_OK | X_OK) != 0)
		return cli_error(dir, "file.write", "cannot be written: %s",
			strerror(errno));
	return CLI_OK;
}

/* Writes DIR/NAME.npy for every output, after all runs. */
static int write_outputs(tn_context *c, const cli_arrays *a, const char *dir)
{
	for (int32_t i = 0; i < a->n_out; i++) {
		const tn_value *v = &a->value[i];
		size_t n = strlen(dir) + 8;
		char *path, name[OUTPUT_NAME];
		tn_status s;

		/* checked before */
		(void)cli_file_name(name, sizeof name, v->name);
		path = cli_alloc(n + strlen(name), 1);
		if (path == NULL)
			return CLI_FAILED;
		n += strlen(name);
		snprintf(path, n, "%s/%s.npy", dir, name);
		s = tn_npy_write(c, path, v->dtype, v->rank, v->shape, a->out[i]);
		free(path);
		if (s < 0) {
			cli_diag(tn_context_diag(c));
			return CLI_FAILED;
		}
	}
	return CLI_OK;
}

static void print_outputs(const cli_arrays *a)
{
	char type[160], name[200];

	for (int32_t i = 0; i < a->n_out; i++) {
		const tn_value *v = &a->value[i];

		cli_type_text(type, sizeof type, v->dtype, v->rank, v->shape);
		cli_clean_name(name, sizeof name, v->name);
		printf("%s: %s\n", name, type);
		cli_print_array(stdout, v->dtype, v->rank, v->shape, a->out[i]);
	}
}

/*
 * Prints an output as JSON: statistics of its finite elements, and its data if
 * it is small.
 */
static void json_output(const tn_value *v, const void *data)
{
	double sum = 0, least = INFINITY, most = -INFINITY;
	int64_t finite = 0;

	for (int64_t i = 0; i < v->n_elems; i++) {
		double x = tn_get_f64(v->dtype, data, i);

		if (!isfinite(x))
			continue;
		finite++;
		sum += x;
		least = x < least ? x : least;
		most = x > most ? x : most;
	}
	printf("{\"name\":");
	cli_json_text(stdout, v->name);
	printf(",\"dtype\":\"%s\",\"shape\":[", tn_dtype_name(v->dtype));
	for (int32_t k = 0; k < v->rank; k++)
		printf("%s%lld", k ? "," : "", (long long)v->shape[k]);
	printf("],\"finite\":%lld,\"sum\":", (long long)finite);
	cli_json_number(stdout, sum);
	printf(",\"min\":");
	cli_json_number(stdout, finite > 0 ? least : NAN);
	printf(",\"max\":");
	cli_json_number(stdout, finite > 0 ? most : NAN);
	if (v->n_elems <= JSON_ELEMS) {
		printf(",\"data\":");
		cli_json_array(stdout, v->dtype, data, v->n_elems);
	}
	printf("}");
}

static bool json_outputs(tn_context *c, const cli_arrays *a,
	const struct choice *o, const struct timing *t)
{
	char *profile = NULL;
	tn_stats s;

	if (o->profile && tn_profile_text(&profile, c, false) < 0) {
		cli_diag(tn_context_diag(c));
		return false;
	}

	tn_context_stats(c, &s);
	printf("{\"outputs\":[");
	for (int32_t i = 0; i < a->n_out; i++) {
		fputs(i ? "," : "", stdout);
		json_output(&a->value[i], a->out[i]);
	}
	printf("],\"kernels\":%lld,\"files_compiled\":%lld,"
	       "\"cache_hits\":%lld,\"compile_ms\":%.3f,\"run_ms\":%.3f",
		(long long)s.n_kernels, (long long)s.n_compiled,
		(long long)s.n_disk_hits + (long long)s.n_memory_hits, s.compile_ms,
		1e3 * t->median);
	if (o->repeat != NULL)
		printf(",\"runs\":%lld,\"run_least_ms\":%.3f,"
		       "\"run_most_ms\":%.3f", (long long)o->n, 1e3 * t->least,
			1e3 * t->most);
	if (profile != NULL)
		printf(",\"profile\":%s", profile);
	printf("}\n");
	tn_text_free(profile);
	return true;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Runs the program n times. The program is compiled before, so the first run is
 * timed like the others.
 */
static bool run_all(cli_arrays *a, tn_context *c, const cli_model *m,
	int64_t n, struct timing *t)
{
	double *v = cli_alloc((size_t)n, sizeof *v);
	bool ok = v != NULL;

	for (int64_t i = 0; ok && i < n; i++) {
		v[i] = cli_now();
		ok = cli_arrays_run(a, c, m);
		v[i] = cli_now() - v[i];
	}
	if (ok) {
		qsort(v, (size_t)n, sizeof *v, by_size);
		*t = (struct timing){v[0],
			(v[(n - 1) / 2] + v[n / 2]) / 2, v[n - 1]};
	}
	free(v);
	return ok;
}

static int write_trace(tn_context *c, const char *path)
{
	char *text = NULL;
	FILE *f;
	bool ok;

	if (tn_profile_text(&text, c, true) < 0) {
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	f = fopen(path, "w");
	ok = f != NULL && fputs(text, f) >= 0;
	if (f != NULL)
		ok = fclose(f) == 0 && ok;
	tn_text_free(text);
	return ok ? CLI_OK : cli_error(path, "file.write", "%s",
				     strerror(errno));
}

/* What a device has left to the host. */
static void say_host(tn_context *c)
{
	tn_device_stats s;

	tn_context_device_stats(c, &s);
	if (s.n_host > 0)
		cli_note("%lld operations of %s were computed by the host, on "
			"copies; the last is %s",
			(long long)s.n_host, s.name, s.host);
	if (s.n_asked > 0)
		cli_note("the host read %lld tests of loops and branches of %s, "
			"and waited for them; the last one because %s",
			(long long)s.n_asked, s.name, s.asked);
}

/*
 * Prints times on standard error, so that standard output has only the outputs.
 */
static bool say_times(tn_context *c, const struct choice *o,
	const struct timing *t)
{
	char *text = NULL;

	if (o->repeat != NULL)
		cli_note("%lld runs: median %.3f ms, least %.3f, most %.3f",
			(long long)o->n, 1e3 * t->median, 1e3 * t->least,
			1e3 * t->most);
	if (!o->profile)
		return true;
	if (tn_profile_table(&text, c) < 0) {
		cli_diag(tn_context_diag(c));
		return false;
	}
	fputs(text, stderr);
	tn_text_free(text);
	say_host(c);
	return true;
}

static int run_program(tn_context *c, const cli_model *m,
	const struct choice *o)
{
	tn_program *p = m->program;
	struct timing t;
	cli_arrays *a;
	int code = CLI_FAILED;

	if (o->output != NULL && check_outputs(p, o->output) != CLI_OK)
		return CLI_FAILED;
	if (o->trace != NULL && !cli_can_write(o->trace, "file.write"))
		return CLI_FAILED;
	if (!cli_set_apart(c, p, &o->apart))
		return CLI_FAILED;
	if (o->schedule != NULL &&
		tn_program_load_schedule(p, o->schedule) < 0) {
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	if (o->kern != NULL && tn_program_load_kern(p, o->kern) < 0) {
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	cli_progress("compiling %s", o->file);
	if (tn_program_compile(p) < 0) {
		cli_progress("%s", "");
		cli_diag(tn_context_diag(c));
		return CLI_FAILED;
	}
	cli_progress("%s", "");
	a = cli_arrays_new(c, m, &o->input, o->first, true);
	if (a == NULL)
		return CLI_FAILED;
	if (!run_all(a, c, m, o->n, &t))
		goto out;
	code = CLI_OK;
	if (o->output != NULL)
		code = write_outputs(c, a, o->output);
	if (code == CLI_OK && o->trace != NULL)
		code = write_trace(c, o->trace);
	if (code == CLI_OK && o->json) {
		code = json_outputs(c, a, o, &t) ? CLI_OK : CLI_FAILED;
	} else if (code == CLI_OK) {
		if (o->output == NULL)
			print_outputs(a);
		code = say_times(c, o, &t) ? CLI_OK : CLI_FAILED;
	}
out:
	cli_arrays_free(a);
	return code;
}

static bool read_repeat(const cli_command *self, struct choice *o)
{
	char *end = NULL;

	o->n = o->repeat != NULL ? strtoll(o->repeat, &end, 10) : 1;
	if (o->n >= 1 && o->n <= 1000000 && (end == NULL || *end == '\0'))
		return true;
	cli_usage(self, "--repeat must be 1 to 1000000");
	return false;
}

/* Can the options be used, and together? If not, says why. */
static bool is_usable(const cli_command *self, struct choice *o)
{
	const char *how = getenv("TENON_RUN");
	bool interp = o->interp || (how != NULL && !strcmp(how, "interp"));

	if (o->file == NULL) {
		cli_usage(self, "no FILE.tn or MODEL.onnx given");
		return false;
	}
	if (!cli_seed(self, o->seed, &o->first) || !read_repeat(self, o))
		return false;
	if (!interp || (!o->profile && o->trace == NULL))
		return true;
	cli_usage(self, "the interpreter has no kernels: --profile and --trace "
		"cannot be used with %s",
		o->interp ? "--interp" : "TENON_RUN=interp");
	return false;
}

static int open_and_run(const struct choice *o)
{
	tn_options t = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	cli_model m = {0};
	int code = CLI_FAILED;

	t.interp = o->interp;
	t.device = o->device;
	if (tn_context_new(&c, &t) < 0)
		return cli_no_context();
	if ((o->profile || o->trace != NULL) && tn_profile_start(c) < 0)
		cli_diag(tn_context_diag(c));
	else if (cli_model_open(&m, c, o->file, &o->dim, &o->input, true))
		code = run_program(c, &m, o);
	cli_model_close(&m);
	cli_close(c);
	return code;
}

static int run(const cli_command *self, int argc, char **argv)
{
	struct choice o = {0};
	const cli_option options[] = {
		{"input", .list = &o.input},
		{"dim", .list = &o.dim},
		{"output", .value = &o.output},
		{"seed", .value = &o.seed},
		{"repeat", .value = &o.repeat},
		{"schedule", .value = &o.schedule},
		{"kern", .value = &o.kern},
		{"apart", .list = &o.apart},
		{"device", .value = &o.device},
		{"profile", .flag = &o.profile},
		{"trace", .value = &o.trace},
		{"interp", .flag = &o.interp},
		{"json", .flag = &o.json},
		{0},
	};
	int code = CLI_FAILED;

	o.input.at = cli_alloc((size_t)argc, sizeof *o.input.at);
	o.dim.at = cli_alloc((size_t)argc, sizeof *o.dim.at);
	o.apart.at = cli_alloc((size_t)argc, sizeof *o.apart.at);
	if (o.input.at != NULL && o.dim.at != NULL && o.apart.at != NULL)
		code = cli_args(self, argc, argv, options, &o.file, 1);
	if (code < 0)
		code = is_usable(self, &o) ? open_and_run(&o) : CLI_USAGE;
	free(o.apart.at);
	free(o.dim.at);
	free(o.input.at);
	return code;
}

const cli_command cli_run = {
	"run",
	"compile and run a program",
	"usage: tenon run FILE.tn|MODEL.onnx [OPTION]...\n"
	"\n"
	"Compiles a program, runs it, and prints its outputs. If FILE.tn is \"-\",\n"
	"the program is read from standard input.\n"
	"\n"
	"  --input NAME=FILE.npy  data of an input; may be given several times. An\n"
	"                         ONNX model also takes FILE.pb. Inputs that are not\n"
	"                         given are random: floats in [-1, 1), and indices\n"
	"                         in their range. If shapes depend on the data, they\n"
	"                         are computed first\n"
	"  --dim NAME=SIZE        size of a named dimension of an ONNX model\n"
	"  --output DIR           write DIR/NAME.npy for each output instead of\n"
	"                         printing it; bytes of NAME other than letters,\n"
	"                         digits, _ - and . become %XX\n"
	"  --seed N               seed of the random inputs (0)\n"
	"  --repeat N             run it N times, and print the times of the runs\n"
	"  --schedule FILE        use the schedules in FILE, as tenon explain\n"
	"                         --level=schedule prints them, instead of Tenon's\n"
	"                         own (\"-\": standard input)\n"
	"  --kern FILE            use the kernels in FILE, as tenon explain\n"
	"                         --level=kern prints them, instead of Tenon's\n"
	"                         own (\"-\": standard input)\n"
	"  --apart A,B            let no kernel compute both of these tensors, which\n"
	"                         are named as tenon explain --level=system does\n"
	"  --device DEVICE        what runs the kernels: cpu; simt: warps of a GPU,\n"
	"                         emulated; cuda, cuda:1 ..: an NVIDIA GPU\n"
	"                         (TENON_DEVICE, or cpu); tenon info --devices\n"
	"  --profile              print the time of each kernel on standard error;\n"
	"                         with --json, print the whole profile\n"
	"  --trace FILE           write a trace of the last run and the compilation,\n"
	"                         for Perfetto or chrome://tracing\n"
	"  --interp               use the slow interpreter, not compiled code\n"
	"  --json                 print one JSON object instead of arrays\n"
	"  --help                 print this text\n"
	"\n"
	"TENON_RUN=interp in the environment is --interp for any program;\n"
	"TENON_DUMP=fuse,plan prints what these passes make: tenon explain --help\n",
	run,
};
