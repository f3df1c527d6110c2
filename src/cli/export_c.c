/*
 * export_c.c: `tenon export --c DIR PROGRAM`: writes a program as C.
 *
 *     tenon export --c mlp mlp.onnx     mlp/mlp.c mlp/mlp.h mlp/mlp_test.c ..
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* The number of a word in a list that ends with NULL; -1: it is not there. */
static int word_of(const char *const *list, const char *word)
{
	for (int i = 0; list[i] != NULL; i++)
		if (!strcmp(list[i], word))
			return i;
	return -1;
}

/* "models/mnist-12.onnx" becomes mnist_12. */
static const char *name_of(const char *file)
{
	static char name[48];
	const char *slash = strrchr(file, '/');
	const char *from = slash != NULL ? slash + 1 : file;
	size_t n = 0;

	if (*from >= '0' && *from <= '9')
		name[n++] = '_';
	for (; *from != '\0' && *from != '.' && n + 1 < sizeof name; from++) {
		bool word = (*from >= 'a' && *from <= 'z') ||
			(*from >= 'A' && *from <= 'Z') ||
			(*from >= '0' && *from <= '9');

		name[n++] = word ? *from : '_';
	}
	name[n] = '\0';
	return n > 0 ? name : "net";
}

int cli_export_c_read(const cli_command *self, cli_export_c *e, const char *file)
{
	static const char *const weights[] = {"array", "file", "incbin", NULL};
	static const char *const threads[] = {
		"none", "callback", "pthread", NULL};
	static const char *const tests[] = {"interp", "kernels", "none", NULL};
	static const char *const lanes[] = {"1", "4", "8", "16", NULL};
	static const char *const machine[] = {
		"c/scalar", "c/sse", "c/avx2", "c/avx512"};
	static const char *const dialects[] = {"gnu", "c99", NULL};
	static const char *const sizes[] = {"64", "32", NULL};
	int w = 0, t = 0, by = 0, l = 0, d = 0, bits = 0;

	e->o = (tn_export_options)TN_EXPORT_INIT;
	e->memory_limit = -1;
	if (!cli_whole(e->limit_text, 0, &e->memory_limit))
		return cli_usage(self, "--memory-limit must be a number of "
			"bytes from 0 to 2^30");
	e->o.name = e->name != NULL ? e->name : name_of(file);
	if (e->weights != NULL)
		w = word_of(weights, e->weights);
	if (e->threads != NULL)
		t = word_of(threads, e->threads);
	if (e->test != NULL)
		by = word_of(tests, e->test);
	if (e->lanes != NULL)
		l = word_of(lanes, e->lanes);
	if (e->dialect != NULL)
		d = word_of(dialects, e->dialect);
	if (e->int_size != NULL)
		bits = word_of(sizes, e->int_size);
	if (bits < 0)
		return cli_usage(self, "--int-size %s: there are 64 and 32",
			e->int_size);
	if (e->isa != NULL && (e->lanes != NULL || d > 0 || e->small))
		return cli_usage(self, "--isa says which vectors there are: "
			"leave --lanes, --dialect c99 and --small out");
	e->o.int_size = bits > 0 ? 32 : 64;
	e->o.isas = e->isa;
	if (d < 0)
		return cli_usage(self, "--dialect %s: there are gnu and c99",
			e->dialect);
	if (l > 0 && (d > 0 || e->small))
		return cli_usage(self, "--dialect c99 and --small have one "
			"lane: leave --lanes out");
	e->o.dialect = (tn_export_dialect)d;
	e->o.small = e->small;
	if (l < 0)
		return cli_usage(self, "--lanes %s: there are 1, 4, 8 and 16",
			e->lanes);
	if (w < 0)
		return cli_usage(self, "--weights %s: there are array, file "
			"and incbin", e->weights);
	if (t < 0)
		return cli_usage(self, "--threads %s: there are none, callback "
			"and pthread", e->threads);
	if (by < 0)
		return cli_usage(self, "--test %s: there are interp, kernels "
			"and none", e->test);
	if (e->weights != NULL)
		e->o.weights = (tn_export_weights)w;
	if (e->lanes != NULL)
		e->target = machine[l];
	e->o.no_fma = e->no_fma;
	e->o.threads = (tn_export_threads)t;
	if (e->test != NULL)
		e->o.by = by < 2 ? (tn_export_by)by
				 : TN_EXPORT_BY_NOTHING;
	return cli_seed(self, e->seed, &e->first) ? -1 : CLI_USAGE;
}

tn_status cli_export_c_context(const cli_export_c *e, tn_context **out)
{
	tn_options o = TN_OPTIONS_INIT;

	if (e != NULL) {
		o.target = e->target;
		o.memory_limit = e->memory_limit;
	}
	return tn_context_new(out, &o);
}

bool cli_export_c_write(
	const cli_export_c *e, tn_context *c, const cli_model *m)
{
	tn_export_options o = e->o;
	cli_arrays *a = NULL;
	bool ok;

	if (tn_program_is_staged(m->program)) {
		cli_error(NULL, "onnx.staged", "shapes of this model depend on "
			"its data: give inputs that decide them with --input");
		return false;
	}
	if (e->test == NULL || strcmp(e->test, "none") != 0) {
		a = cli_arrays_new(c, m, &e->input, e->first, false);
		if (a == NULL)
			return false;
		for (int32_t i = 0; i < a->n_in; i++)
			if (a->given[i] != NULL)
				a->in[i] = a->given[i]->data;
		o.inputs = a->in;
	}
	ok = tn_program_export_c(m->program, e->dir, &o) >= 0;
	if (!ok)
		cli_diag(tn_context_diag(c));
	cli_arrays_free(a);
	return ok;
}
