/*
 * gradcheck.c: `tenon gradcheck FILE.tn`: compares the gradients of a program
 * with central differences, in f64 if the program allows it.
 *
 *     $ tenon gradcheck examples/softmax.tn
 *     192 elements of 2 inputs agree: f64, steps of 1e-05
 */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct asked {
	const char *file, *seed, *eps, *rtol, *atol, *order, *elements;
	cli_list input, dim, no_grad;
	bool interp, json;
} asked;

/* Reads a number that is not negative; false: invalid. */
static bool number(const char *text, double *out)
{
	char *end = NULL;

	if (text == NULL)
		return true;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*out) && *out >= 0;
}

static bool whole(const char *text, int64_t least, int64_t *out)
{
	char *end = NULL;

	if (text == NULL)
		return true;
	errno = 0;
	*out = strtoll(text, &end, 10);
	return end != text && *end == '\0' && errno == 0 && *out >= least;
}

static int set_options(const cli_command *self, const asked *k,
	tn_gradcheck_options *o)
{
	int64_t seed = 0, order = 1, elements = 0;
	bool all = k->elements != NULL && strcmp(k->elements, "all") == 0;

	if (k->file == NULL)
		return cli_usage(self, "no FILE.tn or MODEL.onnx given");
	if (!number(k->eps, &o->eps) || !number(k->rtol, &o->rtol) ||
		!number(k->atol, &o->atol))
		return cli_usage(self, "--eps, --rtol and --atol take numbers "
			"from 0 on");
	if (!whole(k->order, 1, &order) || order > 2)
		return cli_usage(self, "--order takes 1 or 2");
	if (!all && !whole(k->elements, 1, &elements))
		return cli_usage(self, "--elements takes a number from 1 on, "
			"or all");
	if (!whole(k->seed, 0, &seed))
		return cli_usage(self, "--seed %s is not an integer of 0 or more",
			k->seed);
	o->order = (int32_t)order;
	o->n_elems = all ? -1 : elements;
	o->seed = (uint64_t)seed;
	return -1;
}

/*
 * For each input: does --no-grad name it? NULL: --no-grad has an unknown name.
 */
static bool *skipped(const cli_command *self, const asked *k,
	const tn_program *p)
{
	int32_t n = tn_program_n_inputs(p);
	bool *skip = cli_alloc((size_t)n + 1, sizeof *skip);

	for (int i = 0; skip != NULL && i < k->no_grad.n; i++) {
		int32_t at = 0;

		while (at < n && strcmp(tn_program_input(p, at)->name,
					 k->no_grad.at[i]) != 0)
			at++;
		if (at == n) {
			(void)cli_usage(self, "--no-grad %s: the program has "
					      "no input of that name",
				k->no_grad.at[i]);
			free(skip);
			return NULL;
		}
		skip[at] = true;
	}
	return skip;
}

static void print_json(const tn_program *p, const tn_gradcheck_result *r,
	const tn_diag *d)
{
	printf("{\"ok\": %s", d == NULL ? "true" : "false");
	if (d != NULL) {
		printf(", \"rule\": ");
		cli_json_text(stdout, d->rule);
		printf(", \"text\": ");
		cli_json_text(stdout, d->text);
	}
	printf(", \"checked\": %lld, \"kinks\": %lld",
		(long long)r->n_checked, (long long)r->n_skipped);
	if (r->n_checked > 0) {
		printf(", \"dtype\": ");
		cli_json_text(stdout, tn_dtype_name(r->dtype));
		printf(", \"eps\": ");
		cli_json_number(stdout, r->eps);
		printf(", \"worst\": {\"order\": %d, \"input\": ",
			(int)r->order);
		cli_json_text(stdout, tn_program_input(p, r->input)->name);
		printf(", \"index\": %lld, \"gradient\": ",
			(long long)r->index);
		cli_json_number(stdout, r->gradient);
		printf(", \"difference\": ");
		cli_json_number(stdout, r->difference);
		printf("}");
	}
	printf("}\n");
}

static void print_text(const tn_gradcheck_result *r)
{
	printf("%lld elements agree: %s, steps of %.3g", (long long)r->n_checked,
		tn_dtype_name(r->dtype), r->eps);
	if (r->n_skipped > 0)
		printf("; %lld were skipped, because the slope jumps there",
			(long long)r->n_skipped);
	printf("\n");
}

static int check(const cli_command *self, const asked *k, tn_context *c,
	const cli_model *m, tn_gradcheck_options *o)
{
	bool *skip = skipped(self, k, m->program);
	tn_gradcheck_result r = {0};
	cli_arrays *a = NULL;
	int code = CLI_FAILED;
	tn_status s;

	if (skip == NULL)
		return CLI_USAGE;
	/* ranges of indices are known only after compilation */
	if (tn_program_compile(m->program) < 0)
		cli_diag(tn_context_diag(c));
	else
		a = cli_arrays_new(c, m, &k->input, o->seed, !k->json);
	if (a != NULL) {
		o->skip = skip;
		s = tn_program_gradcheck(m->program, a->in, o, &r);
		code = s < 0 ? CLI_FAILED : CLI_OK;
		if (k->json)
			print_json(m->program, &r,
				s < 0 ? tn_context_diag(c) : NULL);
		else if (s < 0)
			cli_diag(tn_context_diag(c));
		else
			print_text(&r);
	}
	cli_arrays_free(a);
	free(skip);
	return code;
}

static int open_and_check(const cli_command *self, const asked *k,
	tn_gradcheck_options *o)
{
	tn_options t = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	cli_model m = {0};
	int code = CLI_FAILED;

	t.interp = k->interp;
	if (tn_context_new(&c, &t) < 0)
		return cli_no_context();
	if (cli_model_open(&m, c, k->file, &k->dim, &k->input, false))
		code = check(self, k, c, &m, o);
	cli_model_close(&m);
	cli_close(c);
	return code;
}

static int run(const cli_command *self, int argc, char **argv)
{
	tn_gradcheck_options o = TN_GRADCHECK_OPTIONS_INIT;
	asked k = {0};
	const cli_option options[] = {
		{"input", .list = &k.input},
		{"dim", .list = &k.dim},
		{"no-grad", .list = &k.no_grad},
		{"seed", .value = &k.seed},
		{"eps", .value = &k.eps},
		{"rtol", .value = &k.rtol},
		{"atol", .value = &k.atol},
		{"order", .value = &k.order},
		{"elements", .value = &k.elements},
		{"interp", .flag = &k.interp},
		{"json", .flag = &k.json},
		{0},
	};
	cli_list *lists[] = {&k.input, &k.dim, &k.no_grad};
	bool room = true;
	int code = CLI_FAILED;

	for (int i = 0; i < 3; i++) {
		lists[i]->at = cli_alloc((size_t)argc, sizeof *lists[i]->at);
		room &= lists[i]->at != NULL;
	}
	if (room)
		code = cli_args(self, argc, argv, options, &k.file, 1);
	if (room && code < 0)
		code = set_options(self, &k, &o);
	if (room && code < 0)
		code = open_and_check(self, &k, &o);
	for (int i = 0; i < 3; i++)
		free(lists[i]->at);
	return code;
}

const cli_command cli_gradcheck = {
	"gradcheck",
	"compare gradients with finite differences",
	"usage: tenon gradcheck FILE.tn|MODEL.onnx [OPTION]...\n"
	"\n"
	"Computes the gradients of a program, and compares them with finite\n"
	"differences of its results, in f64 if all its operations allow f64.\n"
	"If they differ, it names the element that differs most, and the exit\n"
	"code is 1. Elements where the slope jumps (relu at 0) are skipped.\n"
	"\n"
	"  --order N          2: check the gradients of the gradients, too (1)\n"
	"  --elements N|all   number of random elements to check in each input\n"
	"                     (64)\n"
	"  --no-grad NAME     do not check this input\n"
	"  --eps H            step of the differences (1e-5 in f64, 1e-2 in f32)\n"
	"  --rtol R           accept |gradient - difference| <= A + R * the larger\n"
	"                     of the two (1e-5 in f64, 1e-2 in f32)\n"
	"  --atol A           (a tenth of R)\n"
	"  --seed N           seed of the random inputs, elements, and weights of\n"
	"                     outputs (0)\n"
	"  --input NAME=FILE  data of an input, as in tenon run\n"
	"  --dim NAME=SIZE    size of a named dimension of an ONNX model\n"
	"  --interp           use the slow interpreter, not compiled code\n"
	"  --json             print one JSON object\n"
	"  --help             print this text\n",
	run,
};
