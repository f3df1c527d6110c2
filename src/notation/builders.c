/*
 * builders.c: makes the text of variadic rows, which depends on the call.
 *
 * Consumes the operands' types and the attributes; produces row text, which is
 * parsed like that of other rows. Later passes do not know these rows.
 *
 *     concat of two, axis = 1
 *     concat(x0[a..(axis), n0, b..], x1[a..(axis), n1, b..], axis: axis = 1)
 *       -> o { let s1 = #n0; o[a.., t, b..] = x0[a.., t, b..]
 *       else x1[a.., t - s1, b..] else 0 for t < #n0 + #n1 }
 */
#include "notation/row.h"


struct call {
	str *out;
	const char *name, *first; /* first: operand 0 in the text */
	int32_t n;
	const ir_type *operand;
	const char *const *shown;
	int32_t n_attrs;
	const ir_attr *attr;
	loc at;
};

static _Noreturn void fail(const struct call *c, const char *what,
	const char *message)
{
	arena *a = c->out->a;

	env_fail(arena_env(a), TN_EINVAL,
		arena_printf(a, "%s.%s", c->name, what), c->at, "%s: %s",
		c->name, message);
}

/* Operand 0, as messages name it. */
static const char *first_text(const struct call *c)
{
	return row_operand_text(c->out->a, c->shown != NULL ? c->shown[0] : NULL,
		c->first, &c->operand[0]);
}

/* Refuses attributes that are not in the list. */
static void check_attrs(
	const struct call *c, const char *const *names, int32_t n)
{
	for (int32_t i = 0; i < c->n_attrs; i++) {
		bool known = false;

		for (int32_t k = 0; k < n; k++)
			known = known ||
				strcmp(names[k], c->attr[i].name) == 0;
		if (!known)
			fail(c, c->attr[i].name,
				arena_printf(c->out->a,
					"there is no attribute %s",
					c->attr[i].name));
	}
}

static const ir_attr *find(const struct call *c, const char *name)
{
	for (int32_t i = 0; i < c->n_attrs; i++)
		if (strcmp(c->attr[i].name, name) == 0)
			return &c->attr[i];
	return NULL;
}

static int64_t integer(const struct call *c, const char *name, int64_t missing)
{
	const ir_attr *a = find(c, name);

	if (a == NULL)
		return missing;
	if (a->kind != ATTR_INT)
		fail(c, name, arena_printf(c->out->a,
				      "attribute %s must be one integer",
				      name));
	return a->i;
}

/*
 * The attribute axis: of operand 0, or of a result that has `more` axes than
 * it. Checked here, because the text depends on it.
 */
static int64_t axis_of(const struct call *c, int32_t more)
{
	int64_t v = integer(c, "axis", 0);
	int64_t rank = c->operand[0].rank + more;

	if (v < -rank || v >= rank)
		fail(c, "axis",
			arena_printf(c->out->a,
				"axis is %lld, but %s allows %lld .. %lld",
				(long long)v, first_text(c), (long long)-rank,
				(long long)rank - 1));
	return v < 0 ? v + rank : v;
}

static void need_operands(const struct call *c, bool one)
{
	if (c->n < 1 || (one && c->n != 1))
		fail(c, "operands", one ? "one operand is needed"
					: "at least one operand is needed");
	if (c->n > IR_MAX_OPERANDS)
		fail(c, "operands",
			arena_printf(c->out->a, "%d operands are given, but "
				"at most %d are possible",
				c->n, IR_MAX_OPERANDS));
}

#define CALL(x)                                                                \
	{                                                                      \
		.out = out, .name = name, .first = x, .n = n,                  \
		.operand = operand,                                            \
		.shown = shown, .n_attrs = n_attrs, .attr = attr, .at = at     \
	}

static void build_concat(str *out, const char *name, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at)
{
	static const char *const names[] = {"axis"};
	struct call c = CALL("x0");

	need_operands(&c, false);
	check_attrs(&c, names, 1);
	str_add(out, "concat(");
	for (int32_t i = 0; i < n; i++)
		str_printf(out, "x%d[a..(axis), n%d, b..], ", i, i);
	str_printf(out, "axis: axis = %lld) -> o {", (long long)axis_of(&c, 0));
	for (int32_t i = 1; i < n; i++) {
		str_printf(out, " let s%d = ", i);
		if (i > 1)
			str_printf(out, "s%d + ", i - 1);
		str_printf(out, "#n%d;", i - 1);
	}
	str_add(out, " o[a.., t, b..] = x0[a.., t, b..]");
	for (int32_t i = 1; i < n; i++)
		str_printf(out, " else x%d[a.., t - s%d, b..]", i, i);
	str_add(out, " else 0 for t < ");
	if (n > 1)
		str_printf(out, "s%d + ", n - 1);
	str_printf(out, "#n%d }", n - 1);
}

static void build_stack(str *out, const char *name, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at)
{
	static const char *const names[] = {"axis"};
	struct call c = CALL("x0");

	need_operands(&c, false);
	check_attrs(&c, names, 1);
	str_add(out, "stack(");
	for (int32_t i = 0; i < n; i++)
		str_printf(out, "x%d[a..(axis), b..], ", i);
	str_printf(out, "axis: int = %lld) -> o { o[a.., t, b..] = ",
		(long long)axis_of(&c, 1));
	for (int32_t i = 0; i + 1 < n; i++)
		str_printf(out, "x%d[a.., b..] where t == %d else ", i, i);
	str_printf(out, "x%d[a.., b..] for t < %d }", n - 1, n);
}

/*
 * The extent of piece i: given, or one of `parts` equal pieces; the last may be
 * shorter.
 */
static int64_t piece(const struct call *c, int64_t extent, int32_t i)
{
	const ir_attr *sizes = find(c, "sizes");
	int64_t parts = integer(c, "parts", 0), each, from;

	if (sizes != NULL)
		return sizes->ints[i];
	each = extent / parts + (extent % parts != 0);
	from = each * i < extent ? each * i : extent;
	return each * (i + 1) < extent ? each : extent - from;
}

static int32_t n_pieces(const struct call *c)
{
	const ir_attr *sizes = find(c, "sizes");
	int64_t parts = integer(c, "parts", 0); /* 0: not given */

	if ((sizes == NULL) == (parts == 0))
		fail(c, "sizes", "give either sizes or parts");
	if (sizes != NULL && sizes->kind != ATTR_INTS)
		fail(c, "sizes", "sizes must be a list of integers");
	if (sizes != NULL)
		parts = sizes->n;
	if (parts < 1 || parts > IR_MAX_PIECES)
		fail(c, "parts",
			arena_printf(c->out->a, "the number of pieces must be "
				     "1 to %d, not %lld",
				     IR_MAX_PIECES, (long long)parts));
	return (int32_t)parts;
}

static int64_t count_split(const ir_type *operand, int32_t n_attrs,
	const ir_attr *attr)
{
	int64_t n = 0;

	(void)operand;
	for (int32_t i = 0; i < n_attrs; i++)
		if (strcmp(attr[i].name, "sizes") == 0)
			n = attr[i].n;
		else if (strcmp(attr[i].name, "parts") == 0 && n == 0)
			n = attr[i].i;
	return n;
}

static void build_split(str *out, const char *name, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at)
{
	static const char *const names[] = {"axis", "sizes", "parts"};
	struct call c = CALL("x");
	int64_t axis, extent, from = 0, total = 0;
	int32_t pieces;

	need_operands(&c, true);
	check_attrs(&c, names, 3);
	axis = axis_of(&c, 0);
	extent = operand[0].shape[axis];
	pieces = n_pieces(&c);
	for (int32_t i = 0; i < pieces; i++)
		if (piece(&c, extent, i) < 0 ||
			!add_ok(total, piece(&c, extent, i), &total))
			fail(&c, "sizes", "a size is negative or too large");
	if (total != extent)
		fail(&c, "sizes",
			arena_printf(out->a,
				"the sizes add up to %lld, but axis %lld of %s "
				"has extent %lld",
				(long long)total, (long long)axis,
				first_text(&c), (long long)extent));
	str_printf(out, "split(x[a..(axis), n, b..], axis: axis = %lld) ->",
		(long long)axis);
	for (int32_t i = 0; i < pieces; i++)
		str_printf(out, "%s o%d", i > 0 ? "," : "", i);
	str_add(out, " {");
	for (int32_t i = 0; i < pieces; i++) {
		str_printf(out,
			" o%d[a.., t%d, b..] = x[a.., t%d + %lld, b..] for "
			"t%d < %lld;",
			i, i, i, (long long)from, i,
			(long long)piece(&c, extent, i));
		from += piece(&c, extent, i);
	}
	str_add(out, " }");
}

static void build_unbind(str *out, const char *name, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at)
{
	static const char *const names[] = {"axis"};
	struct call c = CALL("x");
	int64_t axis, extent;

	need_operands(&c, true);
	check_attrs(&c, names, 1);
	axis = axis_of(&c, 0);
	extent = operand[0].shape[axis];
	if (extent < 1 || extent > IR_MAX_PIECES)
		fail(&c, "size",
			arena_printf(out->a,
				"1 to %d pieces are possible, but axis %lld "
				"of %s has extent %lld",
				IR_MAX_PIECES, (long long)axis,
				first_text(&c), (long long)extent));
	str_printf(out, "unbind(x[a..(axis), n, b..], axis: axis = %lld) ->",
		(long long)axis);
	for (int64_t i = 0; i < extent; i++)
		str_printf(out, "%s o%d", i > 0 ? "," : "", (int)i);
	str_add(out, " {");
	for (int64_t i = 0; i < extent; i++)
		str_printf(out, " o%d[a.., b..] = x[a.., %d, b..];", (int)i,
			(int)i);
	str_add(out, " }");
}

static int64_t count_unbind(const ir_type *operand, int32_t n_attrs,
	const ir_attr *attr)
{
	int64_t axis = 0;

	for (int32_t i = 0; i < n_attrs; i++)
		if (strcmp(attr[i].name, "axis") == 0)
			axis = attr[i].i;
	if (operand == NULL || axis < -operand->rank || axis >= operand->rank)
		return 0;
	return operand->shape[axis < 0 ? axis + operand->rank : axis];
}

static const row_builder builders[] = {
	{"concat", "operands joined along an axis",
		"concat(x0[a..(axis), n0, b..], x1[a..(axis), n1, b..], "
		"axis: axis = 0) -> o { o[a.., t, b..] = x0[a.., t, b..] else "
		"x1[a.., t - #n0, b..] else 0 for t < #n0 + #n1 }",
		true, 1, "concat", build_concat, NULL},
	{"stack", "operands of one shape joined along a new axis",
		"stack(x0[a..(axis), b..], x1[a..(axis), b..], axis: int = 0) "
		"-> o { o[a.., t, b..] = x0[a.., b..] where t == 0 else "
		"x1[a.., b..] for t < 2 }",
		true, 1, "concat", build_stack, NULL},
	{"split", "pieces of an axis: their sizes, or how many parts",
		"split(x[a..(axis), n, b..], axis: axis = 0, sizes: ints = [], "
		"parts: int = 0) -> o0 { o0[a.., t, b..] = x[a.., t + 0, b..] "
		"for t < #n }",
		false, -1, NULL, build_split, count_split},
	{"unbind", "the slices of an axis, each without it",
		"unbind(x[a..(axis), n, b..], axis: axis = 0) -> o0 { "
		"o0[a.., b..] = x[a.., 0, b..] }",
		false, -1, NULL, build_unbind, count_unbind},
	{"einsum", "sum of products by letters: einsum(x, y, "
		   "equation=\"ij,jk->ik\")",
		"einsum(x0[i, j]:num, x1[j, k]:num, equation: string) -> o { "
		"o[i, k] += x0[i, j] * x1[j, k] }",
		true, 1, NULL, build_einsum, NULL},
};

const row_builder *row_builder_at(int32_t i)
{
	return i < (int32_t)(sizeof builders / sizeof builders[0])
		? &builders[i]
		: NULL;
}
