/*
 * table.c: the table of onnx_ops.def, with lookup by name and opset.
 *
 *     ("", "Clip", 12)  ->  the row OP("Clip", 11, ...)
 */
#include "onnx/import.h"

#include "onnx/ops.h"

/* A row without a name begins a domain; its text is the domain's name. */
#define OP(name, since, builder, text)                                         \
	{name, since, onnx_##builder, text, STRINGS_REFUSED, 0},
#define MOVES(name, since, builder, text, of)                                   \
	{name, since, onnx_##builder, text, STRINGS_MOVED, of},
#define READS(name, since, builder, text)                                       \
	{name, since, onnx_##builder, text, STRINGS_READ, ALL},
#define DOMAIN(name) {NULL, 0, NULL, name, STRINGS_REFUSED, 0},
#define ALL UINT64_MAX
static const onnx_op table[] = {
#include "onnx/onnx_ops.def"
};
#undef OP
#undef MOVES
#undef READS
#undef DOMAIN
#undef ALL
enum { N_TABLE = (int)(sizeof table / sizeof table[0]) };

const onnx_op *onnx_op_find(
	const char *domain, const char *name, int64_t version)
{
	const onnx_op *best = NULL;
	bool here = false;

	for (int32_t i = 0; i < N_TABLE; i++) {
		const onnx_op *op = &table[i];

		if (op->name == NULL)
			here = !strcmp(op->text, domain);
		else if (here && op->since <= version &&
			!strcmp(op->name, name) &&
			(best == NULL || op->since > best->since))
			best = op;
	}
	return best;
}

int32_t onnx_op_since(const char *domain, const char *name)
{
	int32_t since = -1;
	bool here = false;

	for (int32_t i = 0; i < N_TABLE; i++) {
		const onnx_op *op = &table[i];

		if (op->name == NULL)
			here = !strcmp(op->text, domain);
		else if (here && !strcmp(op->name, name) &&
			(since < 0 || op->since < since))
			since = op->since;
	}
	return since;
}

void onnx_ops_md(str *out)
{
	const char *domain = "";

	str_add(out, "| operator | domain | opsets from | row |\n");
	str_add(out, "|---|---|---|---|\n");
	for (int32_t i = 0; i < N_TABLE; i++) {
		const onnx_op *op = &table[i];
		size_t n;

		if (op->name == NULL) {
			domain = op->text;
			continue;
		}
		/* the name of the row, if the operator is a single row */
		n = op->build == onnx_direct ? strcspn(op->text, " ") : 0;
		str_printf(out, "| %s | %s | %d | %.*s |\n", op->name,
			*domain != '\0' ? domain : "ai.onnx", (int)op->since,
			(int)n, op->text);
	}
}
