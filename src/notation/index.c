/*
 * index.c: evaluates index expressions: integers and letters, entry by entry.
 *
 * Consumes row expressions of indices and attributes; produces nodes without
 * packs. A pack is a list of its letters, and an attribute a list of numbers;
 * lists are combined entry by entry, and a single value with every entry.
 *
 *     y.. * stride + k..   with two axes, stride = [2, 1]
 *     ->  [y_0 * 2 + k_0, y_1 + k_1]
 *
 * A default of an attribute is evaluated when it is first asked for, because it
 * may use extents (#d..) that operands bind. An index may read a tensor, whose
 * indices are such expressions again; a read broadcasts:
 *
 *     x[~i..] on [3] beside y on [2,3]      x[i..]  ->  x[i_1]
 *     x[~i..] on [2,1] beside y on [2,3]    x[i..]  ->  x[i_0, 0]
 */
#include "notation/inst.h"

/* ---- attributes ---- */

/* Converts a single value to a list: axes=1 means axes=[1]. */
static many as_list(many v)
{
	v.is_list = true;
	return v;
}

/*
 * Expands a list that is parallel to another attribute to one entry per axis.
 */
static many along(inst *u, const symbol *s, const many *given)
{
	const symbol *axis = inst_attr(u, inst_symbol(u, s->param->along));
	int32_t rank = inst_rank0(u);
	many by = {0};
	int64_t v[TN_MAX_RANK] = {0};

	if (given != NULL && given->is_list && given->n != axis->value.n)
		inst_fail(u, s->name, "%s has %d entries, but %s has %d",
			s->name, given->n, axis->name, axis->value.n);
	if (s->param->by_default != NULL)
		by = inst_many(u, s->param->by_default);
	else if (given == NULL || axis->value.n < rank)
		inst_fail(u, s->name, "attribute %s is missing for some axes",
			s->name);
	if (by.is_list && by.n != rank)
		inst_fail(u, s->name, "the default of %s has %d entries, "
			"which is not the rank",
			s->name, by.n);
	for (int32_t i = 0; i < rank && by.n > 0; i++)
		v[i] = inst_entry(u, by, by.is_list ? i : 0);
	for (int32_t i = 0; given != NULL && i < axis->value.n; i++)
		v[inst_entry(u, axis->value, i)] =
			inst_entry(u, *given, given->is_list ? i : 0);
	return inst_ints(u, rank, v);
}

static many by_default(inst *u, const symbol *s)
{
	const row_node *d = s->param->by_default;

	if (d == NULL)
		inst_fail(u, s->name, "attribute %s (%s) is missing", s->name,
			s->param->info.kind);
	if (d->kind == RN_NAME && strcmp(d->name, "all") == 0)
		return inst_all_axes(u, false);
	if (d->kind == RN_NAME && strcmp(d->name, "reverse") == 0)
		return inst_all_axes(u, true);
	return inst_many(u, d);
}

const symbol *inst_attr(inst *u, symbol *s)
{
	int32_t self = (int32_t)(s - u->symbol.at);
	const char *kind = s->param->info.kind;
	many v;

	if (s->is_bound)
		return s;
	if (s->is_busy)
		inst_fail(u, s->name, "attribute %s is used in its own default",
			s->name);
	s->is_busy = true;
	if (strcmp(kind, "dtype") == 0) {
		inst_dtype(u, s);
	} else if (s->param->along != NULL) {
		v = s->given != NULL ? inst_given(u, s) : (many){0};
		v = along(u, s, s->given != NULL ? &v : NULL);
		u->symbol.at[self].value = v;
	} else {
		v = s->given != NULL ? inst_given(u, s) : by_default(u, s);
		if (strcmp(kind, "axes") == 0 || strcmp(kind, "mask") == 0 ||
			strcmp(kind, "perm") == 0)
			v = as_list(v);
		v = inst_normal(u, s, v);
		u->symbol.at[self].value = v;
	}
	s = &u->symbol.at[self];
	s->is_bound = true;
	return s;
}

/* ---- entry by entry ---- */

static _Noreturn void bad_length(const inst *u, int32_t n, int32_t other)
{
	inst_fail(u, "length", "the packs have different lengths, %d and %d%s",
		n, other,
		inst_operands(u));
}

static many zip(inst *u, const lex_operator *op, many a, many b)
{
	int32_t n = a.is_list ? a.n : b.n;
	const in_node **v;

	if (a.is_list && b.is_list && a.n != b.n)
		bad_length(u, a.n, b.n);
	v = arena_array(u->a, const in_node *, n + 1);
	for (int32_t i = 0; i < n; i++)
		v[i] = inst_binary(u, op, a.v[a.is_list ? i : 0],
			b.v[b.is_list ? i : 0]);
	return (many){.is_list = a.is_list || b.is_list, .n = n, .v = v};
}

static many letters(inst *u, const symbol *s)
{
	const in_node **v = arena_array(u->a, const in_node *, s->n + 1);

	for (int32_t i = 0; i < s->n; i++)
		v[i] = inst_letter(u, s->first + i);
	return (many){.is_list = s->kind == SYM_PACK, .n = s->n, .v = v};
}

static many name(inst *u, const row_node *e)
{
	symbol *s;

	if (map_get_str(u->word, e->name, -1) < 0 &&
		strcmp(e->name, "pos") == 0) {
		return inst_one_of(u, inst_node(u, IN_POS, TN_I64));
	}
	s = inst_symbol(u, e->name);
	if (s->kind == SYM_ATTR) {
		const symbol *v = inst_attr(u, s);

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
	many m = inst_many(u, e->arg[0]);
	const in_node **v = arena_array(u->a, const in_node *, m.n + 1);

	for (int32_t i = 0; i < m.n; i++) {
		if (m.v[i]->kind != IN_LETTER)
			inst_fail(u, "size", "# needs a letter or a pack");
		v[i] = inst_int(u, u->letter.at[m.v[i]->i].extent);
	}
	return (many){.is_list = m.is_list, .n = m.n, .v = v};
}

static int64_t pick_at(inst *u, many which, int32_t i, int32_t n)
{
	int64_t at = inst_entry(u, which, i);

	if (at < 0 || at >= n)
		inst_fail(u, "axis", "%lld is not a position in a pack of %d "
			"axes",
			(long long)at, n);
	return at;
}

static many pick(inst *u, const row_node *e)
{
	many pack = inst_many(u, e->arg[0]), which = inst_many(u, e->arg[1]);
	const in_node **v = arena_array(u->a, const in_node *, which.n + 1);

	for (int32_t i = 0; i < which.n; i++)
		v[i] = pack.v[pick_at(u, which, i, pack.n)];
	return (many){.is_list = which.is_list, .n = which.n, .v = v};
}

static many drop(inst *u, const row_node *e)
{
	many pack = inst_many(u, e->arg[0]), which = inst_many(u, e->arg[1]);
	bool keep = e->n == 3 && inst_const(u, e->arg[2]) != 0;
	const in_node **v = arena_array(u->a, const in_node *, pack.n + 1);
	bool dropped[TN_MAX_RANK] = {false};
	int32_t n = 0;

	for (int32_t i = 0; i < which.n; i++)
		dropped[pick_at(u, which, i, pack.n)] = true;
	for (int32_t i = 0; i < pack.n; i++) {
		if (!dropped[i])
			v[n++] = pack.v[i];
		else if (keep)
			v[n++] = inst_int(u, 0);
	}
	return inst_list(u, n, v);
}

/* (a, b, c): ((a*#b)+b)*#c + c */
static const in_node *composite(inst *u, int32_t n, const in_node *const *v)
{
	const lex_operator *mul = lex_operator_of("mul");
	const lex_operator *add = lex_operator_of("add");
	const in_node *r = v[0];

	for (int32_t i = 1; i < n; i++) {
		int64_t extent = inst_extent(u, v[i]);

		/*
		 * if a digit has no values, use stride 1, so that the other
		 * digits keep their strides
		 */
		r = inst_binary(u, mul, r, inst_int(u, extent > 0 ? extent : 1));
		r = inst_binary(u, add, r, v[i]);
	}
	/* letters of empty digits are kept: see inst_extent */
	return r;
}

static many tuple(inst *u, const row_node *e)
{
	VEC(const in_node *) v = {0};

	for (int32_t i = 0; i < e->n; i++) {
		many m = inst_many(u, e->arg[i]);

		for (int32_t k = 0; k < m.n; k++)
			*vec_push(u->a, &v) = m.v[k];
	}
	if (v.n == 0)
		return inst_one_of(u, inst_int(u, 0));
	return inst_one_of(u, composite(u, v.n, v.at));
}

static many list(inst *u, const row_node *e)
{
	VEC(const in_node *) v = {0};

	for (int32_t i = 0; i < e->n; i++) {
		many m = inst_many(u, e->arg[i]);

		for (int32_t k = 0; k < m.n; k++)
			*vec_push(u->a, &v) = m.v[k];
	}
	return inst_list(u, v.n, v.at);
}

/* c ? a : b, entry by entry if c is a list */
static many choose(inst *u, const row_node *e)
{
	many c = inst_many(u, e->arg[0]), side[2];
	const in_node **v = arena_array(u->a, const in_node *, c.n + 1);

	if (!c.is_list)
		return inst_many(u, e->arg[inst_entry(u, c, 0) != 0 ? 1 : 2]);
	for (int32_t k = 0; k < 2; k++) {
		side[k] = inst_many(u, e->arg[k + 1]);
		if (side[k].is_list && side[k].n != c.n)
			bad_length(u, c.n, side[k].n);
	}
	for (int32_t i = 0; i < c.n; i++) {
		const many *m = &side[inst_entry(u, c, i) != 0 ? 0 : 1];

		v[i] = m->v[m->is_list ? i : 0];
	}
	return inst_list(u, c.n, v);
}

/* ---- functions of indices ---- */

static many clamp_each(inst *u, const row_node *e)
{
	many a = inst_many(u, e->arg[0]), n = inst_many(u, e->arg[1]);
	int32_t m = a.is_list ? a.n : n.n;
	const in_node **v = arena_array(u->a, const in_node *, m + 1);

	if (a.is_list && n.is_list && a.n != n.n)
		bad_length(u, a.n, n.n);
	for (int32_t i = 0; i < m; i++) {
		int64_t count = inst_entry(u, n, n.is_list ? i : 0);
		const in_node *x = a.v[a.is_list ? i : 0];
		in_node *made;

		if (x->kind == IN_INT) {
			int64_t c = x->i >= count ? count - 1 : x->i;

			v[i] = inst_int(u, c < 0 ? 0 : c);
			continue;
		}
		if (!inst_is_index(x))
			inst_fail(u, "index", "clamp needs integers");
		made = inst_node(u, IN_CLAMP, TN_I64);
		made->arg[0] = x;
		made->i = count;
		v[i] = made;
	}
	return (many){.is_list = a.is_list || n.is_list, .n = m, .v = v};
}

/* Replaces the letter in n by a number. */
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
	many t = inst_many(u, e->arg[0]);
	const in_node *n = inst_single(u, e->arg[1]);
	const in_node **v;
	int64_t extent;

	if (t.is_list || t.v[0]->kind != IN_LETTER)
		inst_fail(u, "each", "each needs a letter");
	extent = u->letter.at[t.v[0]->i].extent;
	if (extent > TN_MAX_RANK)
		inst_fail(u, "each", "each would make %lld indices, which is "
			"too many",
			(long long)extent);
	v = arena_array(u->a, const in_node *, extent + 1);
	for (int64_t i = 0; i < extent; i++)
		v[i] = replace(u, n, t.v[0]->i, inst_int(u, i));
	return inst_list(u, (int32_t)extent, v);
}

static many size_of(inst *u, const row_node *e)
{
	many m = inst_many(u, e->arg[0]);
	const in_node *r = inst_int(u, 1);

	for (int32_t i = 0; i < m.n; i++)
		r = inst_binary(u, lex_operator_of("mul"), r, m.v[i]);
	return inst_one_of(u, r);
}

static many len_of(inst *u, const row_node *e)
{
	return inst_one_of(u, inst_int(u, inst_many(u, e->arg[0]).n));
}

/* Functions of constants, such as min, max and abs, by the scalar table. */
static many scalar_of(inst *u, const row_node *e)
{
	int32_t fn = ir_scalar_find(e->name, strlen(e->name)), n = 1;
	const ir_scalar *s = ir_scalar_at(fn);
	many arg[IR_MAX_ARGS];
	const in_node **v;
	bool is_list = false;

	for (int32_t k = 0; k < e->n; k++) {
		arg[k] = inst_many(u, e->arg[k]);
		if (!arg[k].is_list)
			continue;
		if (is_list && arg[k].n != n)
			bad_length(u, n, arg[k].n);
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

			if (!inst_is_const(a) || s->g != NULL)
				inst_fail(u, "index",
					"%s of a letter is not an index",
					s->name);
			real = real || a->kind == IN_REAL;
			f[k] = inst_f64(a);
			x[k] = a->kind == IN_INT ? a->i : 0;
		}
		v[i] = real ? inst_real(u, s->f(f[0], f[1], f[2]))
			    : inst_int(u, s->i(x[0], x[1], x[2]));
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
		inst_fail(u, "index", "%s is not a function of indices",
			e->name);
	return scalar_of(u, e);
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

/*
 * Finds the ~pack of an operand, its first axis in the tensor, and its length.
 */
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

/*
 * The indices of a read. Leading axes of a ~pack that x does not have are
 * dropped.
 */
static int32_t read_indices(
	inst *u, const row_node *e, const in_tensor *t, const in_node **v)
{
	int32_t first = 0, own = 0, n = 0;
	const symbol *join = join_of(u, t, &first, &own);

	for (int32_t i = 0; i < e->n; i++) {
		many m = inst_many(u, e->arg[i]);
		int32_t from = 0;
		bool joined = join != NULL && m.is_list && m.n == join->n &&
			n == first && mentions(e->arg[i], join->name);

		if (joined)
			from = m.n - own;
		for (int32_t k = from; k < m.n; k++) {
			if (n >= TN_MAX_RANK)
				inst_fail(u, t->name,
					"%s is read by more than %d indices",
					inst_tensor(u, t), TN_MAX_RANK);
			/* an axis of extent 1 broadcasts */
			v[n] = joined && t->type.shape[n] == 1
				? inst_int(u, 0)
				: m.v[k];
			n++;
		}
	}
	return n;
}

const in_node *inst_read(inst *u, const row_node *e)
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
				"%s has %lld elements, but %s has %lld",
				inst_tensor(u, t), (long long)numel,
				u->left_name, (long long)u->left_numel);
		r->flat = true;
		v[0] = inst_node(u, IN_POS, TN_I64);
		n = 1;
	} else {
		n = read_indices(u, e, t, v);
		if (n != t->type.rank)
			inst_fail(u, t->name,
				"%s has rank %d, but %d indices read it",
				inst_tensor(u, t), t->type.rank, n);
	}
	for (int32_t i = 0; i < n; i++)
		if (!inst_is_index(v[i]))
			inst_fail(u, t->name,
				"an index of %s is not an integer", t->name);
	r->n_index = n;
	r->index = v;
	return r;
}

/* ---- all ---- */

many inst_many(inst *u, const row_node *e)
{
	switch (e->kind) {
	case RN_INT:
		return inst_one_of(u, inst_int(u, e->i));
	case RN_REAL:
		return inst_one_of(u, inst_real(u, e->f));
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
			inst_one_of(u, inst_int(u, 0)), inst_many(u, e->arg[0]));
	case RN_BINARY:
		return zip(u, e->op, inst_many(u, e->arg[0]),
			inst_many(u, e->arg[1]));
	case RN_COND:
		return choose(u, e);
	case RN_CALL:
		return call(u, e);
	case RN_READ:
		return inst_one_of(u, inst_read(u, e));
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
	inst_fail(u, "index", "this is not an index: %.*s",
		e->at->n, e->at->at);
}

const in_node *inst_single(inst *u, const row_node *e)
{
	many m = inst_many(u, e);

	if (m.n != 1)
		inst_fail(u, "length", "one value is needed, not %d%s", m.n,
			inst_operands(u));
	return m.v[0];
}

int64_t inst_const(inst *u, const row_node *e)
{
	return inst_entry(u, inst_many(u, e), 0);
}
