/*
 * inputs.c: arrays for the inputs and outputs of a program. Inputs are read
 * from the given .npy files; others are random, from a seed.
 *
 *     --input x=x.npy     x comes from the file, checked for dtype and shape;
 *                         all others are random, and standard error says so
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static int32_t find_input(const tn_program *p, const char *name, size_t n)
{
	for (int32_t i = 0; i < tn_program_n_inputs(p); i++) {
		const char *s = tn_program_input(p, i)->name;

		if (strlen(s) == n && !memcmp(s, name, n))
			return i;
	}
	return -1;
}

/*
 * Allocates whole pages, like the reference loops of bench, so vectors never
 * cross cache lines.
 */
static void *array_alloc(size_t n_bytes)
{
	enum { ALIGN = 4096 };
	size_t n = (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
	void *m = NULL;

	if (posix_memalign(&m, ALIGN, n > 0 ? n : ALIGN) != 0) {
		cli_error(NULL, "run.memory", "no memory for an array of %zu "
			"bytes", n_bytes);
		return NULL;
	}
	memset(m, 0, n);
	return m;
}

static bool same_type(const tn_value *v, const tn_array *a)
{
	return v->dtype == a->dtype && v->rank == a->rank &&
	       !memcmp(v->shape, a->shape, (size_t)v->rank * sizeof *v->shape);
}

static void no_such_input(const tn_program *p, const char *name, int n)
{
	char names[200];
	size_t at = 0;
	int32_t k = 0;

	names[0] = '\0';
	for (; k < tn_program_n_inputs(p) && at < 120; k++)
		at += (size_t)snprintf(names + at, sizeof names - at,
			"%s%.60s", k ? ", " : "", tn_program_input(p, k)->name);
	cli_error(NULL, "run.input", "the program has no input %.*s; %s%s%s", n,
		name, k > 0 ? "its inputs are " : "it has none", names,
		k < tn_program_n_inputs(p) ? ", ..." : "");
}

/* Reads "x=x.npy"; true: the input is set. */
static bool from_file(
	cli_arrays *a, tn_context *c, const tn_program *p, const char *text)
{
	const char *eq = strchr(text, '=');
	char want[160], got[160];
	const tn_value *v;
	int32_t i;

	if (eq == NULL) {
		cli_error(NULL, "run.input", "--input %s: give NAME=FILE.npy",
			text);
		return false;
	}
	i = find_input(p, text, (size_t)(eq - text));
	if (i < 0) {
		no_such_input(p, text, (int)(eq - text));
		return false;
	}
	v = tn_program_input(p, i);
	if (a->file[i] != NULL) {
		cli_error(NULL, "run.input", "input %s is given twice", v->name);
		return false;
	}
	if (tn_npy_read(&a->file[i], c, eq + 1) < 0) {
		cli_diag(tn_context_diag(c));
		return false;
	}
	if (!same_type(v, a->file[i])) {
		cli_type_text(want, sizeof want, v->dtype, v->rank, v->shape);
		cli_type_text(got, sizeof got, a->file[i]->dtype,
			a->file[i]->rank, a->file[i]->shape);
		cli_error(eq + 1, "run.input",
			"the file holds %s, but input %s needs %s",
			got, v->name, want);
		return false;
	}
	a->in[i] = a->file[i]->data;
	return true;
}

/*
 * Fills an input with random numbers. Integers that are indices are in their
 * valid range; others are small, so that sums and products of a few of them fit
 * any integer dtype.
 */
static bool make_random(
	cli_arrays *a, const tn_value *v, int32_t i, uint64_t seed, bool say)
{
	char type[160];
	int64_t lo = v->lo, hi = v->hi;

	a->own[i] = array_alloc(v->n_bytes);
	if (a->own[i] == NULL)
		return false;
	if (lo >= hi) {
		lo = 0;
		hi = 8;
	}
	tn_fill_random(v->dtype, a->own[i], v->n_elems,
		seed + (uint64_t)i * 0x9e3779b97f4a7c15u, lo, hi);
	a->in[i] = a->own[i];
	cli_type_text(type, sizeof type, v->dtype, v->rank, v->shape);
	if (say)
		cli_note("input %s: %s is random, seed %llu", v->name, type,
			(unsigned long long)seed);
	return true;
}

/* Takes the values that an ONNX model was given before it was built. */
static bool take_given(cli_arrays *a, const cli_model *m)
{
	for (int k = 0; k < m->n_given; k++) {
		const cli_given *g = &m->given[k];
		int32_t i = find_input(m->program, g->name, strlen(g->name));
		const tn_value *v = tn_program_input(m->program, i);
		char want[160], got[160];

		if (v == NULL)
			continue;
		if (!tn_program_is_staged(m->program) &&
			!same_type(v, g->array)) {
			cli_type_text(want, sizeof want, v->dtype, v->rank,
				v->shape);
			cli_type_text(got, sizeof got, g->array->dtype,
				g->array->rank, g->array->shape);
			cli_error(NULL, "run.input",
				"the value is %s, but input %s needs %s", got,
				v->name, want);
			return false;
		}
		a->in[i] = g->array->data;
		a->given[i] = g->array;
	}
	return true;
}

/* Does the input have a known shape? If shapes depend on data, it may not. */
static bool has_shape(const tn_value *v)
{
	for (int32_t k = 0; k < v->rank; k++)
		if (v->shape[k] < 0)
			return false;
	return v->rank >= 0;
}

static bool find_shape(tn_value *v)
{
	if (v->n_elems >= 0)
		return true;
	if (!has_shape(v)) {
		cli_error(NULL, "run.input", "input %s must be given, because "
			"the model does not declare its shape", v->name);
		return false;
	}
	v->n_elems = 1;
	for (int32_t k = 0; k < v->rank; k++)
		v->n_elems *= v->shape[k];
	v->n_bytes = (size_t)v->n_elems * tn_dtype_bytes(v->dtype);
	return true;
}

cli_arrays *cli_arrays_new(tn_context *c, const cli_model *m,
	const cli_list *named, uint64_t seed, bool say)
{
	cli_arrays *a = cli_alloc(1, sizeof *a);
	const tn_program *p = m->program;

	if (a == NULL)
		return NULL;
	a->n_in = tn_program_n_inputs(p);
	a->n_out = tn_program_n_outputs(p);
	a->in = cli_alloc((size_t)a->n_in, sizeof *a->in);
	a->own = cli_alloc((size_t)a->n_in, sizeof *a->own);
	a->file = cli_alloc((size_t)a->n_in, sizeof *a->file);
	a->given = cli_alloc((size_t)a->n_in, sizeof *a->given);
	a->type = cli_alloc((size_t)a->n_in, sizeof *a->type);
	a->out = cli_alloc((size_t)a->n_out, sizeof *a->out);
	a->value = cli_alloc((size_t)a->n_out, sizeof *a->value);
	a->made = cli_alloc((size_t)a->n_out, sizeof *a->made);
	if (a->in == NULL || a->own == NULL || a->file == NULL ||
		a->given == NULL || a->type == NULL || a->out == NULL ||
		a->value == NULL || a->made == NULL || !take_given(a, m))
		goto fail;
	for (int k = 0; m->onnx == NULL && named != NULL && k < named->n; k++)
		if (!from_file(a, c, p, named->at[k]))
			goto fail;
	for (int32_t i = 0; i < a->n_in; i++) {
		a->type[i] = *tn_program_input(p, i);
		if (a->in[i] == NULL && a->given[i] == NULL &&
			(!find_shape(&a->type[i]) ||
				!make_random(a, &a->type[i], i, seed, say)))
			goto fail;
	}
	for (int32_t i = 0; i < a->n_out; i++) {
		a->value[i] = *tn_program_output(p, i);
		if (tn_program_is_staged(p))
			continue;
		a->out[i] = array_alloc(a->value[i].n_bytes);
		if (a->out[i] == NULL)
			goto fail;
	}
	return a;
fail:
	cli_arrays_free(a);
	return NULL;
}

void cli_arrays_free(cli_arrays *a)
{
	if (a == NULL)
		return;
	for (int32_t i = 0; a->own != NULL && i < a->n_in; i++)
		free(a->own[i]);
	for (int32_t i = 0; a->file != NULL && i < a->n_in; i++)
		tn_array_free(a->file[i]);
	for (int32_t i = 0; a->made != NULL && i < a->n_out; i++) {
		if (a->made[i] == NULL && a->out != NULL)
			free(a->out[i]);
		tn_array_free(a->made[i]);
	}
	free(a->made);
	free(a->value);
	free(a->given);
	free(a->type);
	free(a->in);
	free(a->own);
	free(a->file);
	free(a->out);
	free(a);
}

static tn_array array_of(const cli_arrays *a, int32_t i)
{
	const tn_value *v = &a->type[i];
	tn_array out = {.dtype = v->dtype, .rank = v->rank,
		.n_elems = v->n_elems, .n_bytes = v->n_bytes,
		.data = a->own[i]};

	if (a->given[i] != NULL)
		return *a->given[i];
	memcpy(out.shape, v->shape, sizeof out.shape);
	return out;
}

/* Takes the outputs of a run, with their shapes. */
static void take_made(cli_arrays *a)
{
	for (int32_t i = 0; i < a->n_out; i++) {
		const tn_array *y = a->made[i];
		tn_value *v = &a->value[i];

		a->out[i] = y->data;
		v->dtype = y->dtype;
		v->rank = y->rank;
		memcpy(v->shape, y->shape, sizeof v->shape);
		v->n_elems = y->n_elems;
		v->n_bytes = y->n_bytes;
	}
}

bool cli_arrays_run(cli_arrays *a, tn_context *c, const cli_model *m)
{
	tn_array *in = NULL;
	tn_status s;

	if (!tn_program_is_staged(m->program)) {
		s = tn_program_run(m->program, a->in, a->out);
	} else {
		in = cli_alloc((size_t)a->n_in + 1, sizeof *in);
		if (in == NULL)
			return false;
		for (int32_t i = 0; i < a->n_in; i++)
			in[i] = array_of(a, i);
		for (int32_t i = 0; i < a->n_out; i++) {
			/* an output of the previous run */
			tn_array_free(a->made[i]);
			a->out[i] = NULL;
		}
		s = tn_program_run_arrays(m->program, in, a->made);
		free(in);
		if (s == TN_OK)
			take_made(a);
	}
	if (s < 0)
		cli_diag(tn_context_diag(c));
	return s == TN_OK;
}
