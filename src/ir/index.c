/*
 * index.c: index arithmetic: integers over letters, entry by entry.
 *
 * Consumes row expressions in index and attribute position; produces plain
 * nodes without packs: a pack is a list of its letters, an attribute a list of
 * numbers; lists combine entry by entry, a single value with every entry.
 *
 *     y.. * stride + k..   with two axes, stride = [2, 1]
 *     ->  [y_0 * 2 + k_0, y_1 + k_1]
 *
 * Constants fold; `/` and `%` are floor division and modulus by positive
 * constants. All arithmetic is overflow-checked.
 */
#include "ir/inst.h"

#include "ir/local.h"

#include <math.h>

in_node *inst_node(inst *u, in_kind kind, tn_dtype t)
{
	in_node *n = arena_make(u->a, in_node);

	n->kind = kind;
	n->dtype = t;
	return n;
}

const in_node *node_int(inst *u, int64_t v)
{
	in_node *n = inst_node(u, IN_INT, TN_I64);

	n->i = v;
	return n;
}

const in_node *node_real(inst *u, double v)
{
	in_node *n = inst_node(u, IN_REAL, TN_F64);

	n->f = v;
	return n;
}

const in_node *node_letter(inst *u, int32_t letter)
{
	in_node *n;

	/* one value only: so is the node, which the unifier's users rely on
	 * for `=`; an empty one stays a letter */
	n = inst_node(u, IN_LETTER, TN_I64);
	n->i = letter;
	return n;
}

bool node_is_const(const in_node *n)
{
	return n->kind == IN_INT || n->kind == IN_REAL;
}

double node_f64(const in_node *n)
{
	return n->kind == IN_REAL ? n->f : (double)n->i;
}

many many_of(inst *u, const in_node *n)
{
	const in_node **v = arena_array(u->a, const in_node *, 1);

	v[0] = n;
	return (many){.n = 1, .v = v};
}

many many_list(inst *u, int32_t n, const in_node *const *v)
{
	(void)u;
	return (many){.is_list = true, .n = n, .v = v};
}

int64_t many_int(inst *u, many m, int32_t i)
{
	if (i >= m.n || m.v[i]->kind != IN_INT)
		inst_fail(u, "value", "an integer is wanted that is known "
			"when the row is instantiated");
	return m.v[i]->i;
}

bool node_same(const in_node *a, const in_node *b)
{
	if (a == b)
		return true;
	if (a->kind != b->kind || a->i != b->i || a->f != b->f ||
		a->dtype != b->dtype || a->tensor != b->tensor ||
		a->fn != b->fn || a->n_index != b->n_index)
		return false;
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if ((a->arg[i] == NULL) != (b->arg[i] == NULL) ||
			(a->arg[i] != NULL && !node_same(a->arg[i], b->arg[i])))
			return false;
	for (int32_t i = 0; i < a->n_index; i++)
		if (!node_same(a->index[i], b->index[i]))
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

static void span_mul(const in_node *n, int64_t *min, int64_t *max,
	const int64_t *lo, const int64_t *hi)
{
	int64_t at[4] = {clip_mul(lo[0], lo[1]), clip_mul(lo[0], hi[1]),
		clip_mul(hi[0], lo[1]), clip_mul(hi[0], hi[1])};

	(void)n;
	*min = *max = at[0];
	for (int i = 1; i < 4; i++) {
		*min = at[i] < *min ? at[i] : *min;
		*max = at[i] > *max ? at[i] : *max;
	}
}

void node_span(inst *u, const in_node *n, int64_t *min, int64_t *max)
{
	int64_t lo[2] = {0}, hi[2] = {0};

	for (int i = 0; i < 2; i++)
		if (n->arg[i] != NULL && n->kind >= IN_ADD &&
			n->kind <= IN_CLAMP)
			node_span(u, n->arg[i], &lo[i], &hi[i]);
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
		span_mul(n, min, max, lo, hi);
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

int64_t node_extent(inst *u, const in_node *n)
{
	int64_t min, max;

	if (has_empty_letter(u, n))
		return 0;
	node_span(u, n, &min, &max);
	if (max == INT64_MAX)
		inst_fail(u, u->left_name,
			"an index of %s has no bounds: it is made by an "
			"earlier equation, or its range is known",
			u->left_name);
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
	} else { /* comparisons, and, or: 0 or 1 */
		r = ir_scalar_at(fn)->i(a, b, 0);
	}
	if (!fits)
		overflow(u);
	return node_int(u, r);
}

static const in_node *fold_reals(
	inst *u, const lex_operator *op, double a, double b)
{
	const ir_scalar *s =
		ir_scalar_at(ir_scalar_find(op->fn, strlen(op->fn)));
	double r = s->f(a, b, 0);

	if (op->level < LEX_SUM)
		return node_int(u, r != 0);
	return node_real(u, r);
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

/* not both constants */
static const in_node *index_binary(inst *u, const lex_operator *op,
	const in_node *a, const in_node *b)
{
	if (a->kind == IN_REAL || b->kind == IN_REAL)
		inst_fail(u, "index", "an axis value and a real number: "
			"cast the axis value");
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
				"a product of two axis values is no index");
		return arith(u, IN_MUL, a, b);
	}
	if (b->kind != IN_INT || b->i <= 0)
		inst_fail(u, "division",
			"an index is divided by a positive constant only");
	if (is_op(op, "/"))
		return b->i == 1 ? a : arith(u, IN_DIV, a, b);
	return b->i == 1 ? node_int(u, 0) : arith(u, IN_MOD, a, b);
}

const in_node *node_binary(inst *u, const lex_operator *op, const in_node *a,
	const in_node *b)
{
	in_node *n;

	if (a->kind == IN_INT && b->kind == IN_INT)
		return fold_ints(u, op, a->i, b->i);
	if (node_is_const(a) && node_is_const(b))
		return fold_reals(u, op, node_f64(a), node_f64(b));
	if (op->level >= LEX_SUM)
		return index_binary(u, op, a, b);
	if (op->level != LEX_COMPARE || a->kind == IN_REAL ||
		b->kind == IN_REAL)
		inst_fail(u, "index", "axis values are integers, not truth "
			"values or real numbers");
	n = inst_node(u, IN_CALL, TN_BOOL);
	n->fn = ir_scalar_find(op->fn, strlen(op->fn));
	n->arg[0] = a;
	n->arg[1] = b;
	return n;
}

/* ---- entry by entry ---- */

static many zip(inst *u, const lex_operator *op, many a, many b)
{
	int32_t n = a.is_list ? a.n : b.n;
	const in_node **v;

	if (a.is_list && b.is_list && a.n != b.n)
		inst_fail(u, "length", "packs of different length %d and %d",
			a.n, b.n);
	v = arena_array(u->a, const in_node *, n + 1);
	for (int32_t i = 0; i < n; i++)
		v[i] = node_binary(u, op, a.v[a.is_list ? i : 0],
			b.v[b.is_list ? i : 0]);
	return (many){.is_list = a.is_list || b.is_list, .n = n, .v = v};
}

static many letters(inst *u, const symbol *s)
{
	const in_node **v = arena_array(u->a, const in_node *, s->n + 1);

	for (int32_t i = 0; i < s->n; i++)
		v[i] = node_letter(u, s->first + i);
	return (many){.is_list = s->kind == SYM_PACK, .n = s->n, .v = v};
}

static many name(inst *u, const row_node *e)
{
	symbol *s;

	if (map_get_str(u->word, e->name, -1) < 0 &&
		strcmp(e->name, "pos") == 0) {
		u->pos_used++;
		return many_of(u, inst_node(u, IN_POS, TN_I64));
	}
	s = inst_symbol(u, e->name);
	if (s->kind == SYM_ATTR) {
		const symbol *v = attr_value(u, s);

		if (v->is_dtype)
			inst_fail(u, e->name, "%s is a dtype, not a number",
				e->name);
		return v->value;
	}
	if (s->kind == SYM_LET)
		return s->value;
	if (!s->is_bound)
		inst_fail(u, e->name, "%s has no extent yet", e->name);
	return letters(u, s);
}

/* #i, #i.., #i..@axes */
static many extents(inst *u, const row_node *e)
{
	many m = index_many(u, e->arg[0]);
	const in_node **v = arena_array(u->a, const in_node *, m.n + 1);

	for (int32_t i = 0; i < m.n; i++) {
		if (m.v[i]->kind != IN_LETTER)
			inst_fail(u, "size", "# wants letters");
		v[i] = node_int(u, u->letter.at[m.v[i]->i].extent);
	}
	return (many){.is_list = m.is_list, .n = m.n, .v = v};
}

static int64_t pick_at(inst *u, many which, int32_t i, int32_t n)
{
	int64_t at = many_int(u, which, i);

	if (at < 0 || at >= n)
		inst_fail(u, "axis", "%lld is no position in a pack of %d axes",
			(long long)at, n);
	return at;
}

static many pick(inst *u, const row_node *e)
{
	many pack = index_many(u, e->arg[0]), which = index_many(u, e->arg[1]);
	const in_node **v = arena_array(u->a, const in_node *, which.n + 1);

	for (int32_t i = 0; i < which.n; i++)
		v[i] = pack.v[pick_at(u, which, i, pack.n)];
	return (many){.is_list = which.is_list, .n = which.n, .v = v};
}

static many drop(inst *u, const row_node *e)
{
	many pack = index_many(u, e->arg[0]), which = index_many(u, e->arg[1]);
	bool keep = e->n == 3 && const_int(u, e->arg[2]) != 0;
	const in_node **v = arena_array(u->a, const in_node *, pack.n + 1);
	bool dropped[TN_MAX_RANK] = {false};
	int32_t n = 0;

	for (int32_t i = 0; i < which.n; i++)
		dropped[pick_at(u, which, i, pack.n)] = true;
	for (int32_t i = 0; i < pack.n; i++) {
		if (!dropped[i])
			v[n++] = pack.v[i];
		else if (keep)
			v[n++] = node_int(u, 0);
	}
	return many_list(u, n, v);
}

const in_node *composite(inst *u, int32_t n, const in_node *const *v)
{
	const lex_operator *mul = lex_operator_of("mul");
	const lex_operator *add = lex_operator_of("add");
	const in_node *r = v[0];

	for (int32_t i = 1; i < n; i++) {
		int64_t extent = node_extent(u, v[i]);

		/* an empty digit must not hide the others: stride 1 */
		r = node_binary(u, mul, r, node_int(u, extent > 0 ? extent : 1));
		r = node_binary(u, add, r, v[i]);
	}
	/* the letters of empty digits stay visible: see node_extent */
	return r;
}

static many tuple(inst *u, const row_node *e)
{
	VEC(const in_node *) v = {0};

	for (int32_t i = 0; i < e->n; i++) {
		many m = index_many(u, e->arg[i]);

		for (int32_t k = 0; k < m.n; k++)
			*vec_push(u->a, &v) = m.v[k];
	}
	if (v.n == 0)
		return many_of(u, node_int(u, 0));
	return many_of(u, composite(u, v.n, v.at));
}

static many list(inst *u, const row_node *e)
{
	VEC(const in_node *) v = {0};

	for (int32_t i = 0; i < e->n; i++) {
		many m = index_many(u, e->arg[i]);

		for (int32_t k = 0; k < m.n; k++)
			*vec_push(u->a, &v) = m.v[k];
	}
	return many_list(u, v.n, v.at);
}

/* c ? a : b, entry by entry when c is a list */
static many choose(inst *u, const row_node *e)
{
	many c = index_many(u, e->arg[0]), side[2];
	const in_node **v = arena_array(u->a, const in_node *, c.n + 1);

	if (!c.is_list)
		return index_many(u, e->arg[many_int(u, c, 0) != 0 ? 1 : 2]);
	for (int32_t k = 0; k < 2; k++) {
		side[k] = index_many(u, e->arg[k + 1]);
		if (side[k].is_list && side[k].n != c.n)
			inst_fail(u, "length",
				"packs of different length %d and %d", c.n,
				side[k].n);
	}
	for (int32_t i = 0; i < c.n; i++) {
		const many *m = &side[many_int(u, c, i) != 0 ? 0 : 1];

		v[i] = m->v[m->is_list ? i : 0];
	}
	return many_list(u, c.n, v);
}

/* ---- functions of indices ---- */

static many clamp_each(inst *u, const row_node *e)
{
	many a = index_many(u, e->arg[0]), n = index_many(u, e->arg[1]);
	int32_t m = a.is_list ? a.n : n.n;
	const in_node **v = arena_array(u->a, const in_node *, m + 1);

	if (a.is_list && n.is_list && a.n != n.n)
		inst_fail(u, "length", "packs of different length %d and %d",
			a.n, n.n);
	for (int32_t i = 0; i < m; i++) {
		int64_t count = many_int(u, n, n.is_list ? i : 0);
		const in_node *x = a.v[a.is_list ? i : 0];
		in_node *made;

		if (x->kind == IN_INT) {
			int64_t c = x->i >= count ? count - 1 : x->i;

			v[i] = node_int(u, c < 0 ? 0 : c);
			continue;
		}
		made = inst_node(u, IN_CLAMP, TN_I64);
		made->arg[0] = x;
		made->i = count;
		v[i] = made;
	}
	return (many){.is_list = a.is_list || n.is_list, .n = m, .v = v};
}

/* n with the letter replaced by a number */
static const in_node *replace(
	inst *u, const in_node *n, int64_t letter, const in_node *by)
{
	in_node *r;

	if (n->kind == IN_LETTER)
		return n->i == letter ? by : n;
	r = arena_copy(u->a, n, sizeof *n);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if (n->arg[i] != NULL)
			r->arg[i] = replace(u, n->arg[i], letter, by);
	if (n->n_index > 0) {
		const in_node **v =
			arena_array(u->a, const in_node *, n->n_index);

		for (int32_t i = 0; i < n->n_index; i++)
			v[i] = replace(u, n->index[i], letter, by);
		r->index = v;
	}
	return r;
}

/* each(t, ix): ix at t = 0 .. #t - 1 */
static many each(inst *u, const row_node *e)
{
	many t = index_many(u, e->arg[0]);
	const in_node *n = index_one(u, e->arg[1]);
	const in_node **v;
	int64_t extent;

	if (t.is_list || t.v[0]->kind != IN_LETTER)
		inst_fail(u, "each", "each wants a letter");
	extent = u->letter.at[t.v[0]->i].extent;
	if (extent > TN_MAX_RANK)
		inst_fail(u, "each", "each makes %lld indices",
			(long long)extent);
	v = arena_array(u->a, const in_node *, extent + 1);
	for (int64_t i = 0; i < extent; i++)
		v[i] = replace(u, n, t.v[0]->i, node_int(u, i));
	return many_list(u, (int32_t)extent, v);
}

static many size_of(inst *u, const row_node *e)
{
	many m = index_many(u, e->arg[0]);
	const in_node *r = node_int(u, 1);

	for (int32_t i = 0; i < m.n; i++)
		r = node_binary(u, lex_operator_of("mul"), r, m.v[i]);
	return many_of(u, r);
}

static many len_of(inst *u, const row_node *e)
{
	return many_of(u, node_int(u, index_many(u, e->arg[0]).n));
}

/* min, max, abs .. of constants: the scalar table */
static many scalar_of(inst *u, const row_node *e)
{
	int32_t fn = ir_scalar_find(e->name, strlen(e->name)), n = 1;
	const ir_scalar *s = ir_scalar_at(fn);
	many arg[IR_MAX_ARGS];
	const in_node **v;
	bool is_list = false;

	for (int32_t k = 0; k < e->n; k++) {
		arg[k] = index_many(u, e->arg[k]);
		if (!arg[k].is_list)
			continue;
		if (is_list && arg[k].n != n)
			inst_fail(u, "length",
				"packs of different length %d and %d", n,
				arg[k].n);
		is_list = true;
		n = arg[k].n;
	}
	v = arena_array(u->a, const in_node *, n + 1);
	for (int32_t i = 0; i < n; i++) {
		double f[IR_MAX_ARGS] = {0};
		int64_t x[IR_MAX_ARGS] = {0};
		bool real = s->sig[0] == 'F';

		for (int32_t k = 0; k < e->n; k++) {
			const in_node *a = arg[k].v[arg[k].is_list ? i : 0];

			if (!node_is_const(a) || s->g != NULL)
				inst_fail(u, "index",
					"%s of an axis value is no index",
					s->name);
			real = real || a->kind == IN_REAL;
			f[k] = node_f64(a);
			x[k] = a->kind == IN_INT ? a->i : 0;
		}
		v[i] = real ? node_real(u, s->f(f[0], f[1], f[2]))
			    : node_int(u, s->i(x[0], x[1], x[2]));
	}
	return (many){.is_list = is_list, .n = n, .v = v};
}

static many call(inst *u, const row_node *e)
{
	static const struct {
		const char *name;
		many (*fn)(inst *u, const row_node *e);
	} own[] = {{"clamp", clamp_each}, {"each", each}, {"size", size_of},
		{"len", len_of}};

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strcmp(own[i].name, e->name) == 0)
			return own[i].fn(u, e);
	if (ir_scalar_find(e->name, strlen(e->name)) < 0)
		inst_fail(u, "index", "%s is no function of indices", e->name);
	return scalar_of(u, e);
}

many index_many(inst *u, const row_node *e)
{
	switch (e->kind) {
	case RN_INT:
		return many_of(u, node_int(u, e->i));
	case RN_REAL:
		return many_of(u, node_real(u, e->f));
	case RN_NAME:
	case RN_PACK:
		return name(u, e);
	case RN_SIZE:
		return extents(u, e);
	case RN_PICK:
		return pick(u, e);
	case RN_DROP:
		return drop(u, e);
	case RN_NEG:
		return zip(u, lex_operator_of("sub"),
			many_of(u, node_int(u, 0)), index_many(u, e->arg[0]));
	case RN_BINARY:
		return zip(u, e->op, index_many(u, e->arg[0]),
			index_many(u, e->arg[1]));
	case RN_COND:
		return choose(u, e);
	case RN_CALL:
		return call(u, e);
	case RN_READ:
		return many_of(u, read_node(u, e));
	case RN_TUPLE:
		return tuple(u, e);
	case RN_LIST:
		return list(u, e);
	case RN_STAR:
	case RN_WHERE:
	case RN_ELSE:
	case RN_SKIP:
		break;
	}
	inst_fail(u, "index", "this is no index: %.*s", e->at->n, e->at->at);
}

const in_node *index_one(inst *u, const row_node *e)
{
	many m = index_many(u, e);

	if (m.n != 1)
		inst_fail(u, "length", "one value is wanted, not %d", m.n);
	return m.v[0];
}

int64_t const_int(inst *u, const row_node *e)
{
	return many_int(u, index_many(u, e), 0);
}

/* ---- reads ---- */

static const row_param *pattern_of(const inst *u, int32_t operand)
{
	int32_t k = 0;

	if (operand < 0)
		return NULL;
	for (int32_t i = 0; i < u->r->n_params; i++)
		if (u->r->param[i].info.is_operand && k++ == operand)
			return &u->r->param[i];
	return NULL;
}

/* the ~pack of an operand: its place in the tensor, its own length */
static const symbol *join_of(
	inst *u, const in_tensor *t, int32_t *first, int32_t *n)
{
	const row_param *p = pattern_of(u, t->operand);
	int32_t others = 0, axis = 0;
	const symbol *found = NULL, *s;

	for (int32_t i = 0; p != NULL && i < p->n_pats; i++) {
		if (p->pat[i].kind == PAT_JOIN) {
			found = inst_symbol(u, p->pat[i].name);
			*first = axis;
			continue;
		}
		s = p->pat[i].kind == PAT_PACK
			? inst_symbol(u, p->pat[i].name)
			: NULL;
		others += s != NULL ? s->n : 1;
		axis += s != NULL ? s->n : 1;
	}
	*n = t->type.rank - others;
	return found;
}

static bool mentions(const row_node *e, const char *pack)
{
	if (e->kind == RN_PACK && strcmp(e->name, pack) == 0)
		return true;
	for (int32_t i = 0; i < e->n; i++)
		if (mentions(e->arg[i], pack))
			return true;
	return false;
}

/* Indices of a read: the leading axes of a ~pack that x lacks are dropped. */
static int32_t read_indices(
	inst *u, const row_node *e, const in_tensor *t, const in_node **v)
{
	int32_t first = 0, own = 0, n = 0;
	const symbol *join = join_of(u, t, &first, &own);

	for (int32_t i = 0; i < e->n; i++) {
		many m = index_many(u, e->arg[i]);
		int32_t from = 0;
		bool joined = join != NULL && m.is_list && m.n == join->n &&
			n == first && mentions(e->arg[i], join->name);

		if (joined)
			from = m.n - own;
		for (int32_t k = from; k < m.n; k++) {
			if (n >= TN_MAX_RANK)
				inst_fail(u, t->name,
					"%s is read by more than %d indices",
					t->name, TN_MAX_RANK);
			/* extent 1 broadcasts */
			v[n] = joined && t->type.shape[n] == 1
				? node_int(u, 0)
				: m.v[k];
			n++;
		}
	}
	return n;
}

const in_node *read_node(inst *u, const row_node *e)
{
	int32_t number = (int32_t)map_get_str(u->by_name, e->name, -1), n;
	const in_node **v = arena_array(u->a, const in_node *, TN_MAX_RANK);
	const in_tensor *t = &u->tensor.at[number];
	in_node *r = inst_node(u, IN_READ, t->type.dtype);
	bool flat = e->n == 1 && e->arg[0]->kind == RN_STAR;

	r->tensor = number;
	if (flat) {
		int64_t numel = shape_numel(t->type.shape, t->type.rank);

		if (numel != u->left_numel)
			inst_fail(u, "size",
				"%s has %lld elements, but %s %lld", t->name,
				(long long)numel, u->left_name,
				(long long)u->left_numel);
		r->flat = true;
		u->pos_used++;
		v[0] = inst_node(u, IN_POS, TN_I64);
		n = 1;
	} else {
		n = read_indices(u, e, t, v);
		if (n != t->type.rank)
			inst_fail(u, t->name,
				"%s has rank %d, but is read by %d indices",
				t->name, t->type.rank, n);
	}
	for (int32_t i = 0; i < n; i++)
		if (v[i]->kind == IN_REAL ||
			(v[i]->kind == IN_READ && !dtype_is_int(v[i]->dtype)))
			inst_fail(u, t->name,
				"an index of %s is no integer", t->name);
	r->n_index = n;
	r->index = v;
	return r;
}
