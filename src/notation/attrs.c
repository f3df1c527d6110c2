/*
 * attrs.c: the attributes of a call: checked, normalised, by default.
 *
 * Consumes what the caller gave and the row's declarations; produces for each
 * attribute a list of entries that index.c computes with:
 *
 *     axis   -1 on rank 3                  2
 *     axes   [-1, 0]                       [2, 0]
 *     mask   [1] on rank 3                 [0, 1, 0]
 *     ints@axes, axes [2], [5]             [default, default, 5]
 *
 * Defaults are evaluated when they are first asked for, because they may
 * speak of extents (#d..) that operands bind.
 */
#include "notation/inst.h"


#include <math.h>

static int32_t rank0(const inst *u)
{
	return u->n_operands > 0 ? u->operand[0].rank : 0;
}

/* operand 0 in a message */
static const char *first(const inst *u)
{
	return u->tensor.n > 0 ? inst_tensor(u, &u->tensor.at[0]) : "it";
}

static many ints(inst *u, int32_t n, const int64_t *v)
{
	const in_node **nodes = arena_array(u->a, const in_node *, n + 1);

	for (int32_t i = 0; i < n; i++)
		nodes[i] = inst_int(u, v[i]);
	return inst_list(u, n, nodes);
}

/* -rank .. rank-1 to 0 .. rank-1 */
static int64_t one_axis(inst *u, const symbol *s, int64_t v)
{
	int32_t rank = rank0(u);

	if (rank == 0)
		inst_fail(u, s->name, "%s has rank 0, so it has no axis %lld",
			first(u), (long long)v);
	if (v < -rank || v >= rank)
		inst_fail(u, s->name,
			"%s is %lld, but %s has rank %d: accepted are -%d .. "
			"%d", s->name,
			(long long)v, first(u), rank, rank, rank - 1);
	return v < 0 ? v + rank : v;
}

static many axes(inst *u, const symbol *s, many given)
{
	int64_t v[TN_MAX_RANK];

	if (given.n > TN_MAX_RANK)
		inst_fail(u, s->name, "the list has %d axes, more than a "
			"tensor can have",
			given.n);
	for (int32_t i = 0; i < given.n; i++) {
		v[i] = one_axis(u, s, inst_entry(u, given, i));
		for (int32_t k = 0; k < i; k++)
			if (v[k] == v[i])
				inst_fail(u, s->name,
					"axis %lld occurs in %s twice",
					(long long)v[i], s->name);
	}
	return ints(u, given.n, v);
}

static many all_axes(inst *u, bool reverse)
{
	int64_t v[TN_MAX_RANK] = {0};
	int32_t rank = rank0(u);

	for (int32_t i = 0; i < rank; i++)
		v[i] = reverse ? rank - 1 - i : i;
	return ints(u, rank, v);
}

static many mask(inst *u, const symbol *s, many given)
{
	many list = axes(u, s, given);
	int64_t v[TN_MAX_RANK] = {0};

	for (int32_t i = 0; i < list.n; i++)
		v[inst_entry(u, list, i)] = 1;
	return ints(u, rank0(u), v);
}

static many perm(inst *u, const symbol *s, many given)
{
	if (given.n != rank0(u))
		inst_fail(u, s->name,
			"%s has %d entries, but %s has rank %d", s->name,
			given.n, first(u), rank0(u));
	return axes(u, s, given);
}

/* A list parallel to another attribute, spread to the rank. */
static many along(inst *u, const symbol *s, const many *given)
{
	const symbol *axis = inst_attr(u, inst_symbol(u, s->param->along));
	int32_t rank = rank0(u);
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
	return ints(u, rank, v);
}

static many whole(inst *u, const symbol *s, many v)
{
	if (v.is_list || v.v[0]->kind != IN_INT)
		inst_fail(u, s->name, "attribute %s must be one integer",
			s->name);
	return v;
}

static many flag(inst *u, const symbol *s, many v)
{
	int64_t i = inst_entry(u, whole(u, s, v), 0);

	if (i != 0 && i != 1)
		inst_fail(u, s->name, "attribute %s must be 0 or 1, not %lld",
			s->name, (long long)i);
	return v;
}

static many real(inst *u, const symbol *s, many v)
{
	if (v.is_list || !inst_is_const(v.v[0]))
		inst_fail(u, s->name, "attribute %s must be one number",
			s->name);
	/* 2 is 2.0: 1 / p is no integer division */
	return inst_one_of(u, inst_real(u, inst_f64(v.v[0])));
}

static many plain_axis(inst *u, const symbol *s, many v)
{
	int64_t i = one_axis(u, s, inst_entry(u, whole(u, s, v), 0));

	return inst_one_of(u, inst_int(u, i));
}

static many plain_ints(inst *u, const symbol *s, many v)
{
	(void)u, (void)s;
	return v;
}

/* What each kind makes of its entries. */
static const struct {
	const char *name;
	many (*normal)(inst *u, const symbol *s, many v);
} kinds[] = {{"int", whole}, {"real", real}, {"flag", flag},
	{"ints", plain_ints}, {"axis", plain_axis}, {"axes", axes},
	{"mask", mask}, {"perm", perm}};

static many normal(inst *u, const symbol *s, many v)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].name, s->param->info.kind) == 0)
			return kinds[i].normal(u, s, v);
	inst_fail(u, s->name, "attribute %s cannot be used in index arithmetic",
		s->name);
}

static many given_value(inst *u, const symbol *s)
{
	const ir_attr *g = s->given;
	many v = {0};

	switch (g->kind) {
	case ATTR_INT:
		return inst_one_of(u, inst_int(u, g->i));
	case ATTR_REAL:
		return inst_one_of(u, inst_real(u, g->f));
	case ATTR_INTS:
		v = ints(u, g->n, g->ints);
		return v;
	case ATTR_DTYPE:
	case ATTR_STRING:
		break;
	}
	inst_fail(u, s->name, "attribute %s must be of kind %s", s->name,
		s->param->info.kind);
}

/* a list where one is wanted: axes=1 means axes=[1] */
static many as_list(many v)
{
	v.is_list = true;
	return v;
}

static void dtype_attr(inst *u, symbol *s)
{
	const row_node *d = s->param->by_default;

	s->is_dtype = true;
	if (s->given != NULL) {
		if (s->given->kind != ATTR_DTYPE)
			inst_fail(u, s->name, "attribute %s must be a dtype",
				s->name);
		s->dtype = s->given->dtype;
	} else if (d == NULL || d->kind != RN_NAME ||
		!dtype_parse(d->name, strlen(d->name), &s->dtype)) {
		inst_fail(u, s->name, "attribute %s is missing", s->name);
	}
}

static many by_default(inst *u, const symbol *s)
{
	const row_node *d = s->param->by_default;

	if (d == NULL)
		inst_fail(u, s->name, "attribute %s (%s) is missing", s->name,
			s->param->info.kind);
	if (d->kind == RN_NAME && strcmp(d->name, "all") == 0)
		return all_axes(u, false);
	if (d->kind == RN_NAME && strcmp(d->name, "reverse") == 0)
		return all_axes(u, true);
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
		dtype_attr(u, s);
	} else if (s->param->along != NULL) {
		v = s->given != NULL ? given_value(u, s) : (many){0};
		v = along(u, s, s->given != NULL ? &v : NULL);
		u->symbol.at[self].value = v;
	} else {
		v = s->given != NULL ? given_value(u, s) : by_default(u, s);
		if (strcmp(kind, "axes") == 0 || strcmp(kind, "mask") == 0 ||
			strcmp(kind, "perm") == 0)
			v = as_list(v);
		v = normal(u, s, v);
		u->symbol.at[self].value = v;
	}
	s = &u->symbol.at[self];
	s->is_bound = true;
	return s;
}

static const row_param *find_param(const ir_row *r, const char *name)
{
	for (int32_t i = 0; i < r->n_params; i++)
		if (!r->param[i].info.is_operand &&
			strcmp(r->param[i].info.name, name) == 0)
			return &r->param[i];
	return NULL;
}

static const char *attr_names(const inst *u)
{
	str s = str_new(u->a);

	for (int32_t i = 0; i < u->r->n_params; i++)
		if (!u->r->param[i].info.is_operand)
			str_printf(&s, "%s%s", s.n > 0 ? ", " : "",
				u->r->param[i].info.name);
	return s.n > 0 ? s.at : "none";
}

void inst_attrs(inst *u, int32_t n, const ir_attr *attr)
{
	for (int32_t i = 0; i < u->r->n_params; i++) {
		const row_param *p = &u->r->param[i];
		symbol s = {.name = p->info.name, .kind = SYM_ATTR, .param = p};

		if (p->info.is_operand)
			continue;
		for (int32_t k = 0; k < n; k++)
			if (strcmp(attr[k].name, s.name) == 0) {
				if (s.given != NULL)
					inst_fail(u, s.name,
						"attribute %s is given twice",
						s.name);
				s.given = &attr[k];
			}
		map_set_str(u->word, s.name, u->symbol.n);
		*vec_push(u->a, &u->symbol) = s;
	}
	for (int32_t k = 0; k < n; k++)
		if (find_param(u->r, attr[k].name) == NULL)
			inst_fail(u, attr[k].name,
				"there is no attribute %s; its attributes: %s",
				attr[k].name, attr_names(u));
}

/* Attributes are the caller's: whoever keeps them keeps copies. */
ir_attr *row_copy_attrs(arena *a, const ir_attr *attr, int32_t n)
{
	ir_attr *to = arena_array(a, ir_attr, n);

	for (int32_t i = 0; i < n; i++) {
		to[i] = attr[i];
		to[i].name = arena_strdup(a, attr[i].name);
		if (attr[i].kind == ATTR_INTS)
			to[i].ints = arena_copy(a, attr[i].ints,
				(size_t)attr[i].n * sizeof(int64_t));
		if (attr[i].kind == ATTR_STRING)
			to[i].string = arena_strdup(a, attr[i].string);
	}
	return to;
}
