/*
 * strings.c: strings in the exported C: a tensor has their numbers, and a table
 * tells which string has which.
 *
 *     "b", "a"   ->   string_bytes[] = { 98, 0, 97, 0 }
 *                     string_begin[] = { 0, 2, 4 }, string_sorted[] = { 1, 0 }
 */
#include "export/templates.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PER_LINE = 16 };

bool export_is_string(const export_net *x, const struct io *io)
{
	const export_job *job = x->job;

	return job->n_strings > 0 &&
	       (io->input >= 0 ? job->in_strings[io->input]
			       : job->out_strings[io->output]);
}

void export_strings_sizes(str *out, const export_net *x, const char *upper)
{
	if (x->job->n_strings > 0)
		str_printf(out, "#define %s_N_STRINGS %d\n", upper,
			(int)x->job->n_strings);
}

void export_strings_functions(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;

	if (x->job->n_strings == 0)
		return;
	str_printf(out,
		"/* A tensor of strings has their numbers; equal strings have "
		"equal ones. The number\n"
		" * of a string of n_bytes bytes of UTF-8, below %s_N_STRINGS; "
		"-1: the program does\n"
		" * not know it. If two of its tensors are compared, give such "
		"strings numbers from\n"
		" * %s_N_STRINGS on, equal for equal strings. */\n"
		"int32_t %s_string_number(const char *text, size_t n_bytes);\n"
		"/* The string of a number, with a byte 0 behind it; NULL: none "
		"has it. */\n"
		"const char *%s_string_text(int32_t number, size_t *n_bytes);\n",
		upper, upper, name, name);
}

/* ---- the table ---- */

static int in_order(const void *a, const void *b)
{
	const export_string *x = *(const export_string *const *)a;
	const export_string *y = *(const export_string *const *)b;
	size_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
	int c = n > 0 ? memcmp(x->at, y->at, n) : 0;

	return c != 0 ? c : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

static void put_number(str *out, int64_t i, int64_t value)
{
	str_printf(out, "%s%" PRId64 ",", i % PER_LINE == 0 ? "\n	" : " ",
		value);
}

static void put_bytes(str *out, const export_job *job)
{
	int64_t n = 0;

	str_add(out, "\nstatic const unsigned char string_bytes[] = {");
	for (int32_t i = 0; i < job->n_strings; i++)
		for (size_t k = 0; k <= job->string[i].n_bytes; k++)
			put_number(out, n++,
				k < job->string[i].n_bytes
					? (uint8_t)job->string[i].at[k]
					: 0);
	str_add(out, "\n};\n");
}

static void put_begins(str *out, const export_job *job)
{
	int64_t at = 0;

	str_add(out, "static const int32_t string_begin[] = {");
	for (int32_t i = 0; i <= job->n_strings; i++) {
		put_number(out, i, at);
		if (i < job->n_strings)
			at += (int64_t)job->string[i].n_bytes + 1;
	}
	str_add(out, "\n};\n");
}

static void put_sorted(str *out, const export_job *job)
{
	const export_string **at = arena_array(
		out->a, const export_string *, job->n_strings + 1);

	for (int32_t i = 0; i < job->n_strings; i++)
		at[i] = &job->string[i];
	qsort(at, (size_t)job->n_strings, sizeof *at, in_order);
	str_add(out, "static const int32_t string_sorted[] = {");
	for (int32_t i = 0; i < job->n_strings; i++)
		put_number(out, i, at[i] - job->string);
	str_add(out, "\n};\n");
}

void export_strings_code(str *out, const export_net *x)
{
	if (x->job->n_strings == 0)
		return;
	put_bytes(out, x->job);
	put_begins(out, x->job);
	put_sorted(out, x->job);
	export_fill(out, x, export_strings_c);
}

void export_strings_json(str *out, const export_net *x)
{
	if (x->job->n_strings > 0)
		str_printf(out, " \"strings\":%d,\n", (int)x->job->n_strings);
}

/* Each string has its number, and none is beside them. */
void export_strings_test(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;

	str_add(out, "\nstatic void see_strings(void)\n{\n");
	if (x->job->n_strings > 0)
		str_printf(out,
			"	size_t n;\n"
			"	int32_t i;\n"
			"\n"
			"	for (i = 0; i < %s_N_STRINGS; i++) {\n"
			"		const char *text = %s_string_text(i, &n);\n"
			"\n"
			"		if (text == NULL || text[n] != 0 ||\n"
			"			%s_string_number(text, n) != i)\n"
			"			say(\"a string without its number\", "
			"\"\");\n"
			"	}\n"
			"	if (%s_string_text(%s_N_STRINGS, &n) != NULL || n != "
			"0 ||\n"
			"		%s_string_text(-1, &n) != NULL)\n"
			"		say(\"a number without a string\", \"\");\n",
			upper, name, name, name, upper, name);
	str_add(out, "}\n");
}
