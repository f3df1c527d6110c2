/*
 * model.c: makes programs from .tn files or ONNX models.
 *
 *     tenon run net.onnx --dim N=4 --input x=x.npy
 *
 * Given values are passed to the model before it is built, because its shapes
 * may depend on them.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool cli_ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !strcmp(s + n - k, end);
}

bool cli_onnx_dim(tn_onnx *m, tn_context *c, const char *text)
{
	const char *eq = strchr(text, '=');
	char name[256], *end = NULL;
	long long size;

	if (eq == NULL || eq == text || (size_t)(eq - text) >= sizeof name) {
		cli_error(NULL, "onnx.dim", "--dim %s: give NAME=SIZE",
			text);
		return false;
	}
	memcpy(name, text, (size_t)(eq - text));
	name[eq - text] = '\0';
	errno = 0;
	size = strtoll(eq + 1, &end, 10);
	if (end == eq + 1 || *end != '\0' || errno != 0) {
		cli_error(NULL, "onnx.dim", "--dim %s: the size is not an "
			"integer",
			text);
		return false;
	}
	if (tn_onnx_bind_dim(m, name, size) < 0) {
		cli_diag(tn_context_diag(c));
		return false;
	}
	return true;
}

static int32_t find_input(const tn_onnx *m, const char *name, size_t n)
{
	for (int32_t i = 0; i < tn_onnx_n_inputs(m); i++) {
		const char *s = tn_onnx_input(m, i)->name;

		if (strlen(s) == n && !memcmp(s, name, n))
			return i;
	}
	return -1;
}

/* Keeps the arrays of input i under the names that they have in the program. */
static bool keep(cli_model *m, int32_t i, int32_t n, const tn_array *arrays)
{
	const tn_onnx_port *p = tn_onnx_input(m->onnx, i);
	cli_given *at = realloc(
		m->given, (size_t)(m->n_given + n + 1) * sizeof *at);

	if (at == NULL)
		return false;
	m->given = at;
	for (int32_t k = 0; k < n; k++) {
		cli_given *g = &at[m->n_given];
		size_t room = strlen(p->name) + 16;

		g->array = &arrays[k];
		g->name = cli_alloc(room, 1);
		if (g->name == NULL)
			return false;
		snprintf(g->name, room, "%s", p->name);
		if (!strncmp(p->type, "seq", 3))
			snprintf(g->name, room, "%s[%d]", p->name, (int)k);
		m->n_given++;
	}
	return true;
}

/*
 * Sets the extents of an input from an array; for an input that is not a
 * tensor, or whose declared rank differs, gives the value itself.
 */
static tn_status take_shape(
	cli_model *m, int32_t i, int32_t n, const tn_array *arrays)
{
	const tn_onnx_port *p = tn_onnx_input(m->onnx, i);
	size_t room = strlen(p->name) + 16;
	tn_status s = TN_OK;
	char *dim;

	if (!p->is_tensor || n != 1 || p->rank != arrays->rank)
		return tn_onnx_give(m->onnx, i, n, arrays);
	dim = cli_alloc(room, 1);
	if (dim == NULL)
		return TN_ENOMEM;
	for (int32_t k = 0; s == TN_OK && k < p->rank; k++) {
		snprintf(dim, room, "%s[%d]", p->name, (int)k);
		s = tn_onnx_bind_dim(m->onnx, dim, arrays->shape[k]);
	}
	free(dim);
	return s;
}

static bool wants_data(tn_context *c)
{
	const char *rule = tn_context_diag(c)->rule;

	return !strcmp(rule, "onnx.value") || !strcmp(rule, "onnx.dim");
}

static bool all_tensors(const tn_onnx *m)
{
	for (int32_t i = 0; i < tn_onnx_n_inputs(m); i++)
		if (!tn_onnx_input(m, i)->is_tensor)
			return false;
	return true;
}

/*
 * Builds the program. If shapes depend on values: in stages, or for the given
 * values only.
 */
static tn_status build(cli_model *m, tn_context *c, bool stage)
{
	tn_status s = tn_onnx_build(&m->program, m->onnx);
	int k = 0;

	if (s == TN_OK || !wants_data(c))
		return s;
	if (stage && all_tensors(m->onnx))
		return tn_onnx_stage(&m->program, m->onnx);
	for (; k < m->n_given; k++) {
		const cli_given *g = &m->given[k];
		int32_t i = find_input(m->onnx, g->name, strlen(g->name));

		if (i >= 0 && tn_onnx_give(m->onnx, i, 1, g->array) < 0)
			return TN_EINVAL;
	}
	return k > 0 ? tn_onnx_build(&m->program, m->onnx) : s;
}

/* Gives the input of that name its value: "x=x.npy" or "x=x.pb". */
static bool give(cli_model *m, tn_context *c, const char *text)
{
	const char *eq = strchr(text, '=');
	const tn_array *arrays = NULL;
	int32_t n = 1, i;

	if (eq == NULL) {
		cli_error(NULL, "run.input", "--input %s: give NAME=FILE.npy "
			"or NAME=FILE.pb", text);
		return false;
	}
	i = find_input(m->onnx, text, (size_t)(eq - text));
	if (i < 0) {
		cli_error(NULL, "run.input", "the model has no input %.*s; "
			"tenon info says which it has", (int)(eq - text), text);
		return false;
	}
	if (cli_ends_with(eq + 1, ".pb")) {
		if (tn_onnx_read(m->onnx, false, i, eq + 1, &n, &arrays) < 0)
			goto fail;
	} else {
		tn_array *a = NULL;

		if (tn_npy_read(&a, c, eq + 1) < 0)
			goto fail;
		m->array[m->n_arrays++] = a;
		arrays = a;
	}
	if (take_shape(m, i, n, arrays) == TN_OK)
		return keep(m, i, n, arrays);
fail:
	cli_diag(tn_context_diag(c));
	return false;
}

static bool open_onnx(cli_model *m, tn_context *c, const char *file,
	const cli_list *dims, const cli_list *inputs, bool stage)
{
	int n = inputs != NULL ? inputs->n : 0;

	m->array = cli_alloc((size_t)n, sizeof *m->array);
	if (m->array == NULL)
		return false;
	if (tn_onnx_open(&m->onnx, c, file) < 0) {
		cli_diag(tn_context_diag(c));
		return false;
	}
	/* compute weights that nodes produce once, not in each run */
	tn_onnx_fold(m->onnx, 2);
	for (int i = 0; dims != NULL && i < dims->n; i++)
		if (!cli_onnx_dim(m->onnx, c, dims->at[i]))
			return false;
	for (int i = 0; i < n; i++)
		if (!give(m, c, inputs->at[i]))
			return false;
	if (build(m, c, stage) == TN_OK)
		return true;
	cli_diag(tn_context_diag(c));
	return false;
}

bool cli_model_open(cli_model *m, tn_context *c, const char *file,
	const cli_list *dims, const cli_list *inputs, bool stage)
{
	*m = (cli_model){0};
	if (cli_ends_with(file, ".onnx")) {
		if (open_onnx(m, c, file, dims, inputs, stage))
			return true;
	} else if (dims != NULL && dims->n > 0) {
		cli_error(file, "onnx.dim", "--dim is for ONNX models");
	} else if (tn_program_load(&m->program, c, file) == TN_OK) {
		return true;
	} else {
		cli_diag(tn_context_diag(c));
	}
	cli_model_close(m);
	return false;
}

void cli_model_close(cli_model *m)
{
	tn_program_free(m->program);
	tn_onnx_free(m->onnx);
	for (int i = 0; i < m->n_arrays; i++)
		tn_array_free(m->array[i]);
	free(m->array);
	for (int i = 0; i < m->n_given; i++)
		free(m->given[i].name);
	free(m->given);
	*m = (cli_model){0};
}

bool cli_set_apart(tn_context *c, tn_program *p, const cli_list *pairs)
{
	for (int i = 0; i < pairs->n; i++) {
		const char *text = pairs->at[i], *comma = strchr(text, ',');
		char first[512];
		bool good;

		if (comma == NULL || comma == text || comma[1] == '\0' ||
			(size_t)(comma - text) >= sizeof first) {
			cli_error(NULL, "groups.pair", "--apart %s: give the "
				"names of two tensors, A,B", text);
			return false;
		}
		memcpy(first, text, (size_t)(comma - text));
		first[comma - text] = '\0';
		good = tn_program_set_apart(p, first, comma + 1) >= 0;
		if (!good) {
			cli_diag(tn_context_diag(c));
			return false;
		}
	}
	return true;
}

bool cli_file_name(char *out, size_t n, const char *name)
{
	size_t k = 0;

	for (const char *s = name; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;
		bool is_word = (c >= 'a' && c <= 'z') ||
			(c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '_' || c == '-' || (c == '.' && s > name);

		if (k + 4 > n)
			return false;
		if (is_word)
			out[k++] = (char)c;
		else
			k += (size_t)snprintf(out + k, n - k, "%%%02X", c);
	}
	out[k] = '\0';
	return k > 0;
}

void cli_clean_name(char *out, size_t n, const char *name)
{
	size_t k = 0;

	for (; *name != '\0' && k + 1 < n; name++) {
		unsigned char c = (unsigned char)*name;
		bool is_word = (c >= 'a' && c <= 'z') ||
			(c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			c == '_' || c == '-' || (c == '.' && k > 0);

		out[k++] = is_word ? (char)c : '_';
	}
	out[k] = '\0';
}
