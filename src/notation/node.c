/*
 * node.c: nodes of an instance: construction, bounds, arithmetic.
 *
 * Constants are folded; `/` and `%` are floor division and modulus by positive
 * constants; all arithmetic is checked for overflow. Expressions with letters
 * remain nodes. Bounds use interval arithmetic: they are sound, and exact if
 * each letter occurs once.
 */
#include "notation/inst.h"

in_node *inst_node(inst *u, in_kind kind, tn_dtype t)
{
	in_node *n = arena_make(u->a, in_node);

	n->kind = kind;
	n->dtype = t;
	return n;
}

const in_node *inst_int(inst *u, int64_t v)
{
	in_node *n = inst_node(u, IN_INT, TN_I64);

	n->i = v;
	return n;
}

const in_node *inst_real(inst *u, double v)
{
	in_node *n = inst_node(u, IN_REAL, TN_F64);

	n->f = v;
	return n;
}

const in_node *inst_letter(inst *u, int32_t letter)
{
	in_node *n = inst_node(u, IN_LETTER, TN_I64);

	n->i = letter;
	return n;
}

bool inst_is_const(const in_node *n)
{
	return n->kind == IN_INT || n->kind == IN_REAL;
}

double inst_f64(const in_node *n)
{
	return n->kind == IN_REAL ? n->f : (double)n->i;
}

many inst_one_of(inst *u, const in_node *n)
{
	const in_node **v = arena_array(u->a, const in_node *, 1);

	v[0] = n;
	return (many){.n = 1, .v = v};
}

many inst_list(inst *u, int32_t n, const in_node *const *v)
{
	(void)u;
	return (many){.is_list = true, .n = n, .v = v};
}

int64_t inst_entry(inst *u, many m, int32_t i)
{
	if (i >= m.n || m.v[i]->kind != IN_INT)
		inst_fail(u, "value", "an integer is needed here that is "
			"known when the row is instantiated");
	return m.v[i]->i;
}

bool ir_same(const in_node *a, const in_node *b)
{
	if (a == b)
		return true;
	if (a->kind != b->kind || a->i != b->i || a->f != b->f ||
		a->dtype != b->dtype || a->tensor != b->tensor ||
		a->fn != b->fn || a->n_index != b->n_index || a->lo != b->lo ||
		a->hi != b->hi)
		return false;
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if ((a->arg[i] == NULL) != (b->arg[i] == NULL) ||
			(a->arg[i] != NULL && !ir_same(a->arg[i], b->arg[i])))
			return false;
	for (int32_t i = 0; i < a->n_index; i++)
		if (!ir_same(a->index[i], b->index[i]))
			return false;
	return true;
}

/* ---- bounds ---- */

static int64_t clip_mul(int64_t a, int64_t b)
{
	int64_t r;

	return mul_ok(a, b, &r) ? r : (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t clip_add(int64_t a, int64_t b)
{
	int64_t r;

	return add_ok(a, b, &r) ? r : a < 0 ? INT64_MIN : INT64_MAX;
}

static void span_mul(
	int64_t *min, int64_t *max, const int64_t *lo, const int64_t *hi)
{
	int64_t at[4] = {clip_mul(lo[0], lo[1]), clip_mul(lo[0], hi[1]),
		clip_mul(hi[0], lo[1]), clip_mul(hi[0], hi[1])};

	*min = *max = at[0];
	for (int i = 1; i < 4; i++) {
		*min = at[i] < *min ? at[i] : *min;
		*max = at[i] > *max ? at[i] : *max;
	}
}

static void span_of(inst *u, const in_node *n, int64_t *min, int64_t *max)
{
	int64_t lo[2] = {0}, hi[2] = {0};

	for (int i = 0; i < 2; i++)
		if (n->arg[i] != NULL && n->kind >= IN_ADD &&
			n->kind <= IN_CLAMP)
			span_of(u, n->arg[i], &lo[i], &hi[i]);
	*min = INT64_MIN;
	*max = INT64_MAX;
	switch (n->kind) {
	case IN_INT:
		*min = *max = n->i;
		break;
	case IN_LETTER:
		*min = 0;
		*max = u->letter.at[n->i].extent - 1;
		*max = *max < 0 ? 0 : *max;
		break;
	case IN_ADD:
		*min = clip_add(lo[0], lo[1]);
		*max = clip_add(hi[0], hi[1]);
		break;
	case IN_SUB:
		*min = clip_add(lo[0], clip_mul(hi[1], -1));
		*max = clip_add(hi[0], clip_mul(lo[1], -1));
		break;
	case IN_MUL:
		span_mul(min, max, lo, hi);
		break;
	case IN_DIV:
		*min = floor_div(lo[0], lo[1]);
		*max = floor_div(hi[0], lo[1]);
		break;
	case IN_MOD:
		*min = 0;
		*max = lo[1] - 1;
		break;
	case IN_CLAMP:
		*min = 0;
		*max = n->i - 1;
		break;
	case IN_POS:
		*min = 0;
		*max = u->left_numel - 1;
		break;
	case IN_REAL:
	case IN_READ:
	case IN_CALL:
	case IN_WHERE:
	case IN_ELSE:
	case IN_INSIDE:
	case IN_CAST:
	case IN_STOP:
		break;
	}
}

static bool has_empty_letter(const inst *u, const in_node *n)
{
	if (n->kind == IN_LETTER)
		return u->letter.at[n->i].extent == 0;
	for (int i = 0; i < IR_MAX_ARGS; i++)
		if (n->arg[i] != NULL && has_empty_letter(u, n->arg[i]))
			return true;
	return false;
}

int64_t inst_extent(inst *u, const in_node *n)
{
	int64_t min, max;

	if (has_empty_letter(u, n))
		return 0;
	span_of(u, n, &min, &max);
	if (max == INT64_MAX)
		inst_fail(u, u->left_name,
			"the index of %s has no known bounds, and no earlier "
			"equation gives its extent",
			u->left_name);
	/*
	 * in an adjoint the range may be empty, such as after a shift of one
	 * element
	 */
	if (max < 0 && u->left_name == NULL)
		return 0;
	if (max < 0)
		inst_fail(u, u->left_name,
			"an index of %s is %lld .. %lld, but it must be at "
			"least 0",
			u->left_name, (long long)min, (long long)max);
	return max + 1;
}

/* ---- arithmetic ---- */

static bool is_op(const lex_operator *op, const char *sign)
{
	return strcmp(op->symbol, sign) == 0;
}

static _Noreturn void overflow(const inst *u)
{
	inst_fail(u, "overflow", "integer arithmetic overflows 64 bits");
}

static const in_node *fold_ints(
	inst *u, const lex_operator *op, int64_t a, int64_t b)
{
	int32_t fn = ir_scalar_find(op->fn, strlen(op->fn));
	int64_t r = 0;
	bool fits = true;

	if (is_op(op, "+")) {
		fits = add_ok(a, b, &r);
	} else if (is_op(op, "-")) {
		fits = !__builtin_sub_overflow(a, b, &r);
	} else if (is_op(op, "*")) {
		fits = mul_ok(a, b, &r);
	} else if (is_op(op, "/") || is_op(op, "%")) {
		if (b == 0)
			inst_fail(u, "division", "division by 0");
		if (b == -1 && a == INT64_MIN)
			overflow(u);
		r = a / b - (a % b != 0 && (a < 0) != (b < 0));
		if (is_op(op, "%"))
			r = a - b * r;
	} else { /* comparisons, `and`, `or`: 0 or 1 */
		r = ir_scalar_at(fn)->i(a, b, 0);
	}
	if (!fits)
		overflow(u);
	return inst_int(u, r);
}

static const in_node *fold_reals(
	inst *u, const lex_operator *op, double a, double b)
{
	const ir_scalar *s =
		ir_scalar_at(ir_scalar_find(op->fn, strlen(op->fn)));
	double r = s->f(a, b, 0);

	if (op->level < LEX_SUM)
		return inst_int(u, r != 0);
	return inst_real(u, r);
}

static const in_node *arith(
	inst *u, in_kind kind, const in_node *a, const in_node *b)
{
	in_node *n = inst_node(u, kind, TN_I64);

	n->arg[0] = a;
	n->arg[1] = b;
	return n;
}

static bool is_value(const in_node *n, int64_t v)
{
	return n->kind == IN_INT && n->i == v;
}

bool inst_is_index(const in_node *n)
{
	if (n->kind == IN_READ)
		return dtype_is_int(n->dtype);
	return n->kind != IN_REAL && n->kind != IN_CALL;
}

/* Makes a node for operands that are not both constant. */
static const in_node *index_binary(inst *u, const lex_operator *op,
	const in_node *a, const in_node *b)
{
	if (a->kind == IN_REAL || b->kind == IN_REAL)
		inst_fail(u, "index", "a letter and a real number cannot be "
			"combined: cast the letter");
	if (!inst_is_index(a) || !inst_is_index(b))
		inst_fail(u, "index", "index arithmetic needs integers, not "
			"truth values or floats");
	if (is_op(op, "+"))
		return is_value(a, 0) ? b : is_value(b, 0) ? a
						: arith(u, IN_ADD, a, b);
	if (is_op(op, "-"))
		return is_value(b, 0) ? a : arith(u, IN_SUB, a, b);
	if (is_op(op, "*")) {
		if (is_value(a, 1) || is_value(b, 0))
			return b;
		if (is_value(b, 1) || is_value(a, 0))
			return a;
		if (a->kind != IN_INT && b->kind != IN_INT)
			inst_fail(u, "index",
				"a product of two letters is not an index");
		return arith(u, IN_MUL, a, b);
	}
	if (b->kind != IN_INT || b->i <= 0)
		inst_fail(u, "division",
			"an index can be divided only by a positive constant");
	if (is_op(op, "/"))
		return b->i == 1 ? a : arith(u, IN_DIV, a, b);
	return b->i == 1 ? inst_int(u, 0) : arith(u, IN_MOD, a, b);
}

const in_node *inst_binary(inst *u, const lex_operator *op, const in_node *a,
	const in_node *b)
{
	in_node *n;

	if (a->kind == IN_INT && b->kind == IN_INT)
		return fold_ints(u, op, a->i, b->i);
	if (inst_is_const(a) && inst_is_const(b))
		return fold_reals(u, op, inst_f64(a), inst_f64(b));
	if (op->level >= LEX_SUM)
		return index_binary(u, op, a, b);
	if (op->level != LEX_COMPARE || a->kind == IN_REAL ||
		b->kind == IN_REAL)
		inst_fail(u, "index", "letters are integers, not truth values "
			"or real numbers");
	n = inst_node(u, IN_CALL, TN_BOOL);
	n->fn = ir_scalar_find(op->fn, strlen(op->fn));
	n->arg[0] = a;
	n->arg[1] = b;
	return n;
}

symbol *inst_symbol(inst *u, const char *name)
{
	int64_t i = map_get_str(u->word, name, -1);

	if (i < 0)
		inst_fail(u, name, "%s has no extent yet", name);
	return &u->symbol.at[i];
}
