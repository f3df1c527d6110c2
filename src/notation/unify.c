/*
 * unify.c: shape inference: finds the extents of letters.
 *
 * Consumes the patterns of a row and the shapes of the operands, in order,
 * without a search. The first pattern or `for` with a letter binds it, and all
 * later ones must agree. A failure has the name of the letter, and shows the
 * operands that differ:
 *
 *     matmul(x[~b.., m, k], y[~b.., k, n])  on foo: f32[2,16], bar: f32[32,4]
 *     error[matmul.k]: matmul: k is 16 in foo: f32[2,16] but 32 in bar: f32[32,4]
 */
#include "notation/inst.h"


static int32_t new_letter(inst *u, const char *name, int64_t extent)
{
	if (u->letter.n >= INST_MAX_LETTERS)
		inst_fail(u, "letters", "more than %d axes", INST_MAX_LETTERS);
	*vec_push(u->a, &u->letter) =
		(struct in_letter){.name = name, .extent = extent};
	return u->letter.n - 1;
}

static symbol *letter_symbol(inst *u, const char *name, sym_kind kind)
{
	int64_t i = map_get_str(u->word, name, -1);

	if (i < 0) {
		i = u->symbol.n;
		map_set_str(u->word, name, i);
		*vec_push(u->a, &u->symbol) =
			(symbol){.name = name, .kind = kind};
	}
	return &u->symbol.at[i];
}

static void check_extent(const inst *u, const char *name, int64_t extent)
{
	if (extent < 0)
		inst_fail(u, name, "%s would have extent %lld%s", name,
			(long long)extent, inst_operands(u));
}

/*
 * Fails because operand `by` gives a letter another value than operand `at`;
 * NULL: not given by an operand. `have`: "k is 16", "b.. has 2 axes".
 */
static _Noreturn void differ(const inst *u, const char *name, const char *have,
	const char *by, int64_t other, const char *at)
{
	if (by != NULL && at != NULL && strcmp(by, at) == 0)
		inst_fail(u, name, "%s but also %lld in %s", have,
			(long long)other, inst_operand(u, at));
	inst_fail(u, name, at != NULL ? "%s%s%s but %lld in %s"
				      : "%s%s%s but %lld is needed%s",
		have, by != NULL ? " in " : "",
		by != NULL ? inst_operand(u, by) : "", (long long)other,
		at != NULL ? inst_operand(u, at) : "");
}

static void bind_letter(
	inst *u, const char *name, int64_t extent, const char *at)
{
	symbol *s = letter_symbol(u, name, SYM_LETTER);

	check_extent(u, name, extent);
	if (!s->is_bound) {
		s->is_bound = true;
		s->by = at;
		s->n = 1;
		s->first = new_letter(u, name, extent);
		return;
	}
	if (u->letter.at[s->first].extent == extent)
		return;
	differ(u, name,
		arena_printf(u->a, "%s is %lld", name,
			(long long)u->letter.at[s->first].extent),
		s->by, extent, at);
}

static void bind_pack(inst *u, const char *name, int32_t n,
	const int64_t *extent, const char *at)
{
	symbol *s = letter_symbol(u, name, SYM_PACK);

	if (n > TN_MAX_RANK)
		inst_fail(u, name, "%s.. would have %d axes%s", name, n,
			inst_operands(u));
	for (int32_t i = 0; i < n; i++)
		check_extent(u, name, extent[i]);
	if (!s->is_bound) {
		s->is_bound = true;
		s->by = at;
		s->n = n;
		s->first = u->letter.n;
		for (int32_t i = 0; i < n; i++)
			new_letter(u,
				arena_printf(u->a, "%s_%d", name, i),
				extent[i]);
		return;
	}
	if (s->n != n)
		differ(u, name,
			arena_printf(u->a, "%s.. has %d %s", name, s->n,
				s->n == 1 ? "axis" : "axes"),
			s->by, n, at);
	for (int32_t i = 0; i < n; i++) {
		int64_t have = u->letter.at[s->first + i].extent;

		if (have != extent[i])
			differ(u, name,
				arena_printf(u->a, "%s..[%d] is %lld", name, i,
					(long long)have),
				s->by, extent[i], at);
	}
}

/* ---- broadcasting ---- */

static void split_rank(
	inst *u, const row_param *p, const ir_type *t, int32_t *n_of);

/*
 * The operand before `at` that has this extent in the ~pack, `end` axes before
 * the pack's end; NULL: the extent is not from an operand.
 */
static const char *join_by(inst *u, const char *name, int32_t end,
	int64_t extent, const char *at)
{
	int32_t k = 0;

	for (int32_t i = 0; i < u->r->n_params; i++) {
		const row_param *p = &u->r->param[i];
		const ir_type *t = &u->operand[k];
		int32_t *n_of, axis = 0;

		if (!p->info.is_operand)
			continue;
		if (at != NULL && strcmp(p->info.name, at) == 0)
			break;
		n_of = arena_array(u->a, int32_t, p->n_pats + 1);
		split_rank(u, p, t, n_of);
		for (int32_t j = 0; j < p->n_pats; axis += n_of[j++])
			if (p->pat[j].kind == PAT_JOIN && n_of[j] >= end &&
				strcmp(p->pat[j].name, name) == 0 &&
				t->shape[axis + n_of[j] - end] == extent)
				return p->info.name;
		k++;
	}
	return NULL;
}

/*
 * Fails because entry i of a ~pack of n axes is `have`, but `other` in `at`
 * (NULL: a `for`).
 */
static _Noreturn void no_join(inst *u, const char *name, int32_t i, int32_t n,
	int64_t have, int64_t other, const char *at)
{
	const char *by = join_by(u, name, n - i, have, at);

	if (by != NULL && at != NULL)
		inst_fail(u, name,
			"%s and %s do not broadcast: %s..[%d] is %lld in the "
			"one, %lld in the other; accepted are equal extents, "
			"or 1",
			inst_operand(u, by), inst_operand(u, at), name, i,
			(long long)have, (long long)other);
	inst_fail(u, name,
		"extents %lld and %lld of %s..[%d] do not broadcast%s; "
		"accepted are equal extents, or 1",
		(long long)have, (long long)other, name, i, inst_operands(u));
}

/* Joins the known extents of a ~pack with further ones. */
static void join_pack(inst *u, const char *name, int32_t n,
	const int64_t *extent, const char *at)
{
	symbol *s = letter_symbol(u, name, SYM_PACK);
	int64_t joined[TN_MAX_RANK], old[TN_MAX_RANK];
	int32_t n_old = s->is_bound ? s->n : 0, m;

	m = n > n_old ? n : n_old;
	if (m > TN_MAX_RANK)
		inst_fail(u, name, "%s.. would have %d axes%s", name, m,
			inst_operands(u));
	for (int32_t i = 0; i < n_old; i++)
		old[i] = u->letter.at[s->first + i].extent;
	for (int32_t i = 0; i < m; i++) {
		int64_t x = i < m - n_old ? 1 : old[i - (m - n_old)];
		int64_t y = i < m - n ? 1 : extent[i - (m - n)];

		check_extent(u, name, y);
		if (x != y && x != 1 && y != 1)
			no_join(u, name, i, m, x, y, at);
		joined[i] = x == 1 ? y : x;
	}
	if (!s->is_bound || m > n_old) {
		s->is_bound = false;
		bind_pack(u, name, m, joined, at);
	}
	s = letter_symbol(u, name, SYM_PACK);
	s->is_join = true;
	/* if several operands determine it, none is named */
	s->by = n_old == 0 ? at : NULL;
	for (int32_t i = 0; i < m; i++)
		u->letter.at[s->first + i].extent = joined[i];
}

/* ---- patterns ---- */

/* Number of axes that an item of a pattern matches; -1: not known yet. */
static int32_t item_axes(inst *u, const row_pat *p)
{
	int64_t n;

	switch (p->kind) {
	case PAT_LETTER:
	case PAT_COMP:
	case PAT_INT:
		return 1;
	case PAT_JOIN:
		return -1;
	case PAT_PACK:
		break;
	}
	if (p->extent != NULL) {
		n = inst_const(u, p->extent);
		if (n < 0 || n > TN_MAX_RANK)
			inst_fail(u, p->name, "%s.. would have %lld axes",
				p->name, (long long)n);
		return (int32_t)n;
	}
	if (map_get_str(u->word, p->name, -1) >= 0) {
		const symbol *s = letter_symbol(u, p->name, SYM_PACK);

		if (s->is_bound)
			return s->n;
	}
	return -1;
}

/*
 * The product of the known digits, and the unknown digit if there is one. Binds
 * digits whose extents are given.
 */
static int64_t known_digits(inst *u, const row_pat *p, const char *at,
	const row_pat **unknown)
{
	int64_t product = 1;

	*unknown = NULL;
	for (int32_t i = 0; i < p->n; i++) {
		const row_pat *d = &p->sub[i];
		int64_t extent = d->i;
		const symbol *s;

		if (d->kind != PAT_LETTER && d->kind != PAT_INT)
			inst_fail(u, "pattern",
				"the digits of a composite axis must be "
				"letters");
		if (d->kind == PAT_LETTER && d->extent != NULL) {
			extent = inst_const(u, d->extent);
			if (extent < 1)
				inst_fail(u, d->name,
					"%s is %lld, but a digit must have at "
					"least one value",
					d->name, (long long)extent);
			bind_letter(u, d->name, extent, at);
		} else if (d->kind == PAT_LETTER) {
			s = letter_symbol(u, d->name, SYM_LETTER);
			if (!s->is_bound) {
				if (*unknown != NULL)
					inst_fail(u, d->name,
						"%s and %s of one axis are "
						"both unknown",
						(*unknown)->name, d->name);
				*unknown = d;
				continue;
			}
			extent = u->letter.at[s->first].extent;
		}
		if (!mul_ok(product, extent, &product))
			inst_fail(u, "size", "extents overflow");
	}
	return product;
}

static void match_digits(
	inst *u, const row_pat *p, int64_t extent, const char *at)
{
	const row_pat *unknown;
	int64_t product = known_digits(u, p, at, &unknown);

	if (unknown == NULL) {
		if (product != extent)
			inst_fail(u, p->n > 0 && p->sub[0].name != NULL
					? p->sub[0].name
					: "shape",
				"extent %lld of %s is not %lld",
				(long long)extent, inst_operand(u, at),
				(long long)product);
		return;
	}
	if (product == 0 ? extent != 0 : extent % product != 0)
		inst_fail(u, unknown->name,
			"extent %lld of %s is not divisible by %lld",
			(long long)extent, inst_operand(u, at),
			(long long)product);
	bind_letter(u, unknown->name, product == 0 ? 0 : extent / product, at);
}

static void match_item(
	inst *u, const row_pat *p, int32_t n, const int64_t *shape, const char *at)
{
	switch (p->kind) {
	case PAT_LETTER:
		if (p->extent != NULL && inst_const(u, p->extent) != shape[0])
			inst_fail(u, p->name, "%s is %lld in %s but %lld is "
				"needed",
				p->name, (long long)shape[0],
				inst_operand(u, at),
				(long long)inst_const(u, p->extent));
		bind_letter(u, p->name, shape[0], at);
		break;
	case PAT_PACK:
		bind_pack(u, p->name, n, shape, at);
		break;
	case PAT_JOIN:
		break; /* was joined before */
	case PAT_COMP:
		match_digits(u, p, shape[0], at);
		break;
	case PAT_INT:
		if (shape[0] != p->i)
			inst_fail(u, at, "an extent of %s is %lld, but %lld is "
				"needed",
				inst_operand(u, at), (long long)shape[0],
				(long long)p->i);
		break;
	}
}

/*
 * Handles each item with its axes. The rank gives the number of axes of the one
 * item whose length is unknown.
 */
static void split_rank(
	inst *u, const row_param *p, const ir_type *t, int32_t *n_of)
{
	int32_t known = 0, unknown = -1;
	const char *at = p->info.name;

	for (int32_t i = 0; i < p->n_pats; i++) {
		n_of[i] = item_axes(u, &p->pat[i]);
		if (n_of[i] >= 0) {
			known += n_of[i];
			continue;
		}
		if (unknown >= 0)
			inst_fail(u, p->pat[i].name,
				"%s.. and %s.. of %s both have unknown length",
				p->pat[unknown].name, p->pat[i].name,
				inst_operand(u, at));
		unknown = i;
	}
	if (unknown < 0 && known != t->rank)
		inst_fail(u, at, "%s has rank %d, but rank %d is needed",
			inst_operand(u, at), t->rank, known);
	if (unknown < 0)
		return;
	if (known > t->rank)
		inst_fail(u, at,
			"%s has rank %d, but at least rank %d is needed",
			inst_operand(u, at), t->rank, known);
	n_of[unknown] = t->rank - known;
}

static bool has_join(const row_param *p)
{
	for (int32_t i = 0; i < p->n_pats; i++)
		if (p->pat[i].kind == PAT_JOIN)
			return true;
	return false;
}

static void match(inst *u, const row_param *p, const ir_type *t, bool joins)
{
	int32_t *n_of = arena_array(u->a, int32_t, p->n_pats + 1), axis = 0;

	if (joins && !has_join(p))
		return;
	split_rank(u, p, t, n_of);
	for (int32_t i = 0; i < p->n_pats; axis += n_of[i++]) {
		if (!joins)
			match_item(u, &p->pat[i], n_of[i], t->shape + axis,
				p->info.name);
		else if (p->pat[i].kind == PAT_JOIN)
			join_pack(u, p->pat[i].name, n_of[i], t->shape + axis,
				p->info.name);
	}
}

void inst_unify_operands(inst *u)
{
	for (int32_t pass = 0; pass < 2; pass++) {
		int32_t k = 0;

		for (int32_t i = 0; i < u->r->n_params; i++)
			if (u->r->param[i].info.is_operand)
				match(u, &u->r->param[i], &u->operand[k++],
					pass == 0);
	}
}

void inst_unify_for(inst *u, const row_for *f)
{
	many m = inst_many(u, f->extent);
	int64_t extent[TN_MAX_RANK];
	symbol *s;

	if (!f->is_pack) {
		if (m.is_list && m.n != 1)
			inst_fail(u, f->name, "%s needs one extent, not %d",
				f->name, m.n);
		bind_letter(u, f->name, inst_entry(u, m, 0), NULL);
		return;
	}
	if (m.n > TN_MAX_RANK)
		inst_fail(u, f->name, "%s.. would have %d axes%s", f->name,
			m.n, inst_operands(u));
	s = letter_symbol(u, f->name, SYM_PACK);
	if (s->is_bound && !m.is_list) {
		/* a known pack has one extent for each axis */
		for (int32_t i = 0; i < s->n; i++)
			extent[i] = inst_entry(u, m, 0);
		m.n = s->n;
	} else {
		for (int32_t i = 0; i < m.n; i++)
			extent[i] = inst_entry(u, m, i);
	}
	if (s->is_bound && s->is_join)
		join_pack(u, f->name, m.n, extent, NULL);
	else
		bind_pack(u, f->name, m.n, extent, NULL);
}

/* ---- results of opaque rows: shapes from patterns ---- */

static void build_item(inst *u, const row_pat *p, ir_type *t)
{
	const symbol *s;
	int64_t extent = p->i;
	int32_t n = 1;

	if (p->kind == PAT_LETTER && p->extent != NULL)
		bind_letter(u, p->name, inst_const(u, p->extent), NULL);
	if (p->kind == PAT_LETTER || p->kind == PAT_PACK) {
		s = inst_symbol(u, p->name);
		n = s->n;
		for (int32_t i = 0; i < n && t->rank < TN_MAX_RANK; i++)
			t->shape[t->rank++] =
				u->letter.at[s->first + i].extent;
		if (t->rank == TN_MAX_RANK && n > TN_MAX_RANK)
			inst_fail(u, p->name, "the rank is more than %d%s",
				TN_MAX_RANK, inst_operands(u));
		return;
	}
	if (p->kind != PAT_INT || t->rank >= TN_MAX_RANK)
		inst_fail(u, "pattern", "this is not a pattern of a result");
	t->shape[t->rank++] = extent;
}

static tn_dtype opaque_dtype(inst *u, const row_param *p)
{
	symbol *s;

	if (p->has_dtype)
		return p->dtype;
	if (p->dtype_of == NULL)
		return u->n_operands > 0 ? u->operand[0].dtype : TN_F32;
	s = inst_symbol(u, p->dtype_of);
	inst_attr(u, s);
	return inst_symbol(u, p->dtype_of)->dtype;
}

void inst_unify_results(inst *u)
{
	for (int32_t i = 0; i < u->r->n_results; i++) {
		const row_param *p = &u->r->result[i];
		in_tensor *t = vec_push(u->a, &u->tensor);

		*t = (in_tensor){.name = p->info.name,
			.operand = -1,
			.result = i,
			.next_of = -1};
		t->type.dtype = opaque_dtype(u, p);
		for (int32_t k = 0; k < p->n_pats; k++)
			build_item(u, &p->pat[k],
				&u->tensor.at[u->tensor.n - 1].type);
		t = &u->tensor.at[u->tensor.n - 1];
		if (shape_numel(t->type.shape, t->type.rank) < 0)
			inst_fail(u, "size", "%s would have more than 2^48 "
				"elements%s", t->name, inst_operands(u));
	}
}

/* ---- the batch of an opaque row ---- */

/* The first axis of a pack in a pattern; -1: the pattern does not have it. */
static int32_t pack_at(inst *u, const row_param *p, const char *name)
{
	int32_t axis = 0;

	for (int32_t i = 0; i < p->n_pats; i++) {
		int32_t n = item_axes(u, &p->pat[i]);

		if (n < 0)
			return -1;
		if (p->pat[i].kind == PAT_PACK &&
			strcmp(p->pat[i].name, name) == 0)
			return axis;
		axis += n;
	}
	return -1;
}

/*
 * Finds the first axis of the pack in each operand and each result; false: one
 * of them does not have it.
 */
static bool stands_in_all(inst *u, const char *name, int32_t *at)
{
	for (int32_t i = 0; i < u->r->n_params; i++) {
		const row_param *p = &u->r->param[i];

		if (p->info.is_operand && (*at++ = pack_at(u, p, name)) < 0)
			return false;
	}
	for (int32_t i = 0; i < u->r->n_results; i++)
		if ((*at++ = pack_at(u, &u->r->result[i], name)) < 0)
			return false;
	return true;
}

void inst_batch(inst *u, ir_inst *out)
{
	int32_t n = u->n_operands + u->r->n_results;
	int32_t *at = arena_array(u->a, int32_t, n + 1);
	VEC(int32_t) v = {0};

	for (int32_t i = 0; i < u->symbol.n; i++) {
		const symbol *s = &u->symbol.at[i];

		if (s->kind != SYM_PACK || s->n == 0 ||
			!stands_in_all(u, s->name, at))
			continue;
		for (int32_t k = 0; k < u->symbol.at[i].n; k++)
			for (int32_t t = 0; t < n; t++)
				*vec_push(u->a, &v) = at[t] + k;
	}
	out->n_batch = v.n / n;
	out->batch = v.at;
}
