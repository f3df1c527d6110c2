/*
 * ops_python.c: every row of the table of operations, for the Python package.
 *
 *     ops_python --table    what python/src/row.c looks up
 *     ops_python --stubs    tenon/ops.pyi
 */
#include "notation/notation.h"

#include <stdio.h>

static bool is_kind(const ir_param *p, const char *kind)
{
	size_t n = strlen(kind);

	return strncmp(p->kind, kind, n) == 0 &&
	       (p->kind[n] == '\0' || p->kind[n] == '@');
}

/* The letter by which row.c knows how an argument is read. */
static char letter(const ir_row *r, const ir_param *p)
{
	static const struct {
		const char *kind;
		char letter;
	} rows[] = {{"ints", 'l'}, {"axes", 'l'}, {"mask", 'l'}, {"perm", 'l'},
		{"real", 'f'}, {"flag", 'b'}, {"dtype", 'd'}, {"string", 's'}};

	if (p->is_operand)
		return ir_row_is_variadic(r) ? 'V' : 'T';
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (is_kind(p, rows[i].kind))
			return rows[i].letter;
	return 'i';
}

/* Text inside a C or a Python literal. */
static void quoted(const char *text)
{
	for (const char *p = text; *p != '\0'; p++)
		if (*p == '\n')
			printf("\\n");
		else if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p == '\t')
			printf("    ");
		else
			putchar(*p);
}

/* Words that a Python argument cannot have for a name get a `_`. */
static bool is_reserved(const char *name)
{
	static const char *const words[] = {"and", "or", "not", "lambda", "in",
		"is", "if", "else", "for", "from", "with", "as", "del"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i], name) == 0)
			return true;
	return false;
}

static const char *type_of(char kind)
{
	switch (kind) {
	case 'T': return "TensorLike";
	case 'V': return "Sequence[TensorLike]";
	case 'l': return "int | Sequence[int]";
	case 'f': return "float";
	case 'b': return "bool";
	case 'd': return "DTypeLike";
	case 's': return "str";
	default: return "int";
	}
}

static const char *result_type(const ir_row *r)
{
	return ir_row_n_results(r) == 1 ? "Tensor" : "tuple[Tensor, ...]";
}

/* An argument of the Python function: one list holds all variadic operands. */
static bool is_argument(const ir_row *r, int32_t i)
{
	return !ir_row_param(r, i)->is_operand || !ir_row_is_variadic(r) ||
	       i == 0;
}

static const char *name_of(const ir_row *r, const ir_param *p)
{
	return letter(r, p) == 'V' ? "x" : p->name;
}

static void signature(const ir_row *r, bool typed)
{
	const char *comma = "";

	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *p = ir_row_param(r, i);

		if (!is_argument(r, i))
			continue;
		printf("%s%s%s", comma, name_of(r, p),
			is_reserved(p->name) ? "_" : "");
		if (typed)
			printf(": %s", type_of(letter(r, p)));
		if (!p->is_operand && p->default_text != NULL)
			printf(typed ? " = ..." : "=...");
		comma = ", ";
	}
}

static void stub(const ir_row *r)
{
	printf("def %s%s(", ir_row_name(r),
		is_reserved(ir_row_name(r)) ? "_" : "");
	signature(r, true);
	printf(") -> %s:\n    \"\"\"", result_type(r));
	quoted(ir_row_doc(r));
	printf("\"\"\"\n");
}

static void table_row(const ir_row *r)
{
	int32_t n = 0;

	printf("static const row_param params_%s[] = {", ir_row_name(r));
	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *p = ir_row_param(r, i);

		if (!is_argument(r, i))
			continue;
		printf("{\"%s\", '%c', %d}, ", name_of(r, p), letter(r, p),
			p->is_operand || p->default_text == NULL);
		n++;
	}
	printf("{0}};\n#define N_%s %d\n", ir_row_name(r), n);
}

static void table_entry(const ir_row *r)
{
	printf("\t{\"%s\", params_%s, N_%s, %d, \"%s", ir_row_name(r),
		ir_row_name(r), ir_row_name(r), ir_row_n_results(r),
		ir_row_name(r));
	printf("(");
	signature(r, false);
	printf(")\\n--\\n\\n");
	quoted(ir_row_doc(r));
	printf("\\n\\n");
	quoted(ir_row_text(r));
	printf("\"},\n");
}

static void all(arena *a, void *arg)
{
	bool stubs = *(const bool *)arg;
	ir_table *t = ir_table_new(a);

	if (stubs)
		printf("\"\"\"Every row of the table of operations, as a function.\"\"\"\n"
		       "from typing import Sequence\n"
		       "from ._tenon import Tensor\n"
		       "from . import DTypeLike, TensorLike\n\n");
	else
		printf("/* Made by tools/ops_python.c from the table of operations. */\n");
	for (int32_t i = 0; i < ir_table_n(t); i++)
		(stubs ? stub : table_row)(ir_table_at(t, i));
	if (stubs)
		return;
	printf("static const row_entry row_entries[] = {\n");
	for (int32_t i = 0; i < ir_table_n(t); i++)
		table_entry(ir_table_at(t, i));
	printf("};\n");
}

struct job {
	env *e;
	bool stubs;
};

static void run(void *arg)
{
	struct job *j = arg;

	arena_run(j->e, all, &j->stubs);
}

int main(int argc, char **argv)
{
	struct job j = {env_new(), argc > 1 && !strcmp(argv[1], "--stubs")};
	int code = j.e == NULL || env_run(j.e, run, &j) < 0;

	if (code)
		fprintf(stderr, "ops_python: %s\n",
			j.e != NULL ? env_diag(j.e)->text : "no memory");
	env_free(j.e);
	return code;
}
