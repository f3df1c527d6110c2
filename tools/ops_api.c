/*
 * ops_api.c: a C function for every row of the table of operations.
 *
 *     ops_api --header    include/tenon_ops.h
 *     ops_api --source    what the library compiles
 *
 * Operands in the row's order, then attributes in the row's order. A list is
 * a pointer and a number; a NULL list is the default.
 */
#include "notation/notation.h"

#include <stdio.h>

struct text {
	const ir_row *row;
	int32_t number;
	bool is_header;
};

static bool kind_is(const ir_param *p, const char *kind)
{
	size_t n = strlen(kind);

	return !p->is_operand && strncmp(p->kind, kind, n) == 0 &&
	       (p->kind[n] == '\0' || p->kind[n] == '@');
}

static bool is_list(const ir_param *p)
{
	return kind_is(p, "ints") || kind_is(p, "axes") ||
	       kind_is(p, "mask") || kind_is(p, "perm");
}

static bool is_variadic(const ir_row *r, const ir_param *p)
{
	return p->is_operand && ir_row_is_variadic(r);
}

static int32_t n_operands(const ir_row *r)
{
	int32_t n = 0;

	for (int32_t i = 0; i < ir_row_n_params(r); i++)
		n += ir_row_param(r, i)->is_operand;
	return n;
}

/* A row whose results are not one: they go to an array. */
static bool has_out(const ir_row *r)
{
	return ir_row_n_results(r) != 1;
}

static bool wants_context(const ir_row *r)
{
	return n_operands(r) == 0;
}

/* Names of macro parameters or C declarations, comma-separated. */
static void params(const ir_row *r)
{
	const char *comma = "";
	bool any = false;

	if (wants_context(r)) {
		printf("tn_context *c");
		comma = ", ";
	}
	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *p = ir_row_param(r, i);
		const char *n = p->name;

		if (is_variadic(r, p) && any)
			continue; /* one list holds them all */
		if (is_variadic(r, p))
			printf("%stn_tensor *const *x, int32_t n_x", comma);
		else if (p->is_operand)
			printf("%stn_tensor *%s", comma, n);
		else if (is_list(p))
			printf("%sconst int64_t *%s, int32_t n_%s", comma, n,
				n);
		else
			printf("%s%s%s", comma,
				kind_is(p, "real")     ? "double "
				: kind_is(p, "flag")   ? "bool "
				: kind_is(p, "dtype")  ? "tn_dtype "
				: kind_is(p, "string") ? "const char *"
						       : "int64_t ",
				n);
		comma = ", ";
		any = any || is_variadic(r, p);
	}
	if (has_out(r))
		printf("%stn_tensor **out", comma);
}

static void doc(const ir_row *r)
{
	const char *p = ir_row_doc(r);
	bool any = false;

	printf("/** ");
	for (; *p != '\0'; p++)
		printf(*p == '*' && p[1] == '/' ? "* " : "%c", *p);
	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *a = ir_row_param(r, i);

		if (a->is_operand || a->default_text == NULL)
			continue;
		printf("%s%s = %s", any ? ", " : ". Defaults: ", a->name,
			a->default_text);
		any = true;
	}
	if (ir_row_n_results(r) > 1)
		printf(". out has room for %d", ir_row_n_results(r));
	printf(" */\n");
}

static void declaration(const ir_row *r, const char *suffix)
{
	printf("%stn_at_%s%s(const char *file, int32_t line, ",
		has_out(r) || *suffix != '\0' ? "tn_status " : "tn_tensor *",
		ir_row_name(r), suffix);
	params(r);
	printf(")");
}

static void header_row(const ir_row *r, const char *suffix)
{
	/* variadic: an argument may be a compound literal with commas */
	printf("#define tn_%s%s(...) \\\n"
	       "\ttn_at_%s%s(__FILE__, __LINE__, __VA_ARGS__)\nTN_API ",
		ir_row_name(r), suffix, ir_row_name(r), suffix);
	declaration(r, suffix);
	printf(";\n");
}

static void attribute(const ir_param *p)
{
	const char *n = p->name;

	if (is_list(p)) {
		printf("\tif (%s != NULL)\n\t\tattr[n_attrs++] = (ir_attr){"
		       ".name = \"%s\", .kind = ATTR_INTS, .ints = %s, "
		       ".n = n_%s};\n",
			n, n, n, n);
		return;
	}
	printf("\tattr[n_attrs++] = (ir_attr){.name = \"%s\", ", n);
	if (kind_is(p, "real"))
		printf(".kind = ATTR_REAL, .f = %s};\n", n);
	else if (kind_is(p, "dtype"))
		printf(".kind = ATTR_DTYPE, .dtype = %s};\n", n);
	else if (kind_is(p, "string"))
		printf(".kind = ATTR_STRING, .string = %s};\n", n);
	else
		printf(".kind = ATTR_INT, .i = %s};\n", n);
}

static void source_row(const ir_row *r, int32_t number, const char *suffix)
{
	int32_t n = n_operands(r), n_attrs = ir_row_n_params(r) - n;
	const char *list = NULL;

	declaration(r, suffix);
	printf("\n{\n\tir_attr attr[%d];\n\tint32_t n_attrs = 0;\n",
		n_attrs + 1);
	for (int32_t i = 0; i < ir_row_n_params(r); i++)
		if (is_variadic(r, ir_row_param(r, i)))
			list = "x";
	if (n > 0 && list == NULL) {
		const char *comma = "";

		printf("\ttn_tensor *const in[] = {");
		for (int32_t i = 0; i < ir_row_n_params(r); i++)
			if (ir_row_param(r, i)->is_operand) {
				printf("%s%s", comma,
					ir_row_param(r, i)->name);
				comma = ", ";
			}
		printf("};\n");
	}
	printf("\n");
	for (int32_t i = 0; i < ir_row_n_params(r); i++)
		if (!ir_row_param(r, i)->is_operand)
			attribute(ir_row_param(r, i));
	if (n_attrs == 0)
		printf("\tattr[0] = (ir_attr){.name = NULL};\n");
	printf("\treturn %s(file, line, %s, %d, ",
		*suffix != '\0' ? "api_row_in_place"
		: has_out(r)	 ? "api_row_many"
				 : "api_row",
		wants_context(r) ? "c" : "NULL", number);
	if (list != NULL)
		printf("x, n_x, ");
	else
		printf("%s, %d, ", n > 0 ? "in" : "NULL", n);
	printf("attr, n_attrs%s);\n}\n\n",
		has_out(r) ? ", out" : "");
}

/* Scalar functions also write their result where operand 0 stands. */
static bool has_in_place(const ir_row *r)
{
	const char *name = ir_row_name(r);

	int32_t fn = ir_scalar_find(name, strlen(name));

	return fn >= 0 && !has_out(r) && strchr(ir_scalar_at(fn)->sig, 0)[-1] != 'B';
}

static void all(arena *a, void *arg)
{
	const struct text *t = arg;
	ir_table *table = ir_table_new(a);

	printf("/* Made by tools/ops_api.c from the table of operations: "
	       "docs/ops.md has their equations. */\n");
	if (t->is_header)
		printf("#ifndef TENON_OPS_H\n#define TENON_OPS_H\n\n");
	else
		printf("#include \"api/tensor.h\"\n\n");
	for (int32_t i = 0; i < ir_table_n(table); i++) {
		const ir_row *r = ir_table_at(table, i);

		if (t->is_header) {
			doc(r);
			header_row(r, "");
			if (has_in_place(r))
				header_row(r, "_");
			printf("\n");
		} else {
			source_row(r, i, "");
			if (has_in_place(r))
				source_row(r, i, "_");
		}
	}
	if (t->is_header)
		printf("#endif\n");
}

struct job {
	env *e;
	struct text *t;
};

static void run(void *arg)
{
	struct job *j = arg;

	arena_run(j->e, all, j->t);
}

int main(int argc, char **argv)
{
	struct text t = {.is_header = argc > 1 && !strcmp(argv[1], "--header")};
	struct job j = {env_new(), &t};
	int code = j.e == NULL || env_run(j.e, run, &j) < 0;

	if (code)
		fprintf(stderr, "ops_api: %s\n",
			j.e != NULL ? env_diag(j.e)->text : "no memory");
	env_free(j.e);
	return code;
}
