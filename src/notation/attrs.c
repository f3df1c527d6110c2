/*
 * attrs.c: checks and normalises the attributes of a call.
 *
 * Consumes what the caller gave and the row's declarations; produces for each
 * attribute a list of entries that index.c computes with:
 *
 *     axis   -1 on rank 3                  2
 *     axes   [-1, 0]                       [2, 0]
 *     mask   [1] on rank 3                 [0, 1, 0]
 *     ints@axes, axes [2], [5]             [default, default, 5]
 *
 * index.c evaluates defaults.
 */
#include "notation/inst.h"

#include <math.h>

/* Operand 0, as messages name it. */
static const char *first(const inst *u)
{
	return u->tensor.n > 0 ? inst_tensor(u, &u->tensor.at[0]) : "it";
}

many inst_ints(inst *u, int32_t n, const int64_t *v)
{
	const in_node **nodes = arena_array(u->a, const in_node *, n + 1);

	for (int32_t i = 0; i < n; i++)
		nodes[i] = inst_int(u, v[i]);
	return inst_list(u, n, nodes);
}

/* Converts -rank .. rank-1 to 0 .. rank-1. */
static int64_t one_axis(inst *u, const symbol *s, int64_t v)
{
	int32_t rank = inst_rank0(u);

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
	return inst_ints(u, given.n, v);
}

many inst_all_axes(inst *u, bool reverse)
{
	int64_t v[TN_MAX_RANK] = {0};
	int32_t rank = inst_rank0(u);

	for (int32_t i = 0; i < rank; i++)
		v[i] = reverse ? rank - 1 - i : i;
	return inst_ints(u, rank, v);
}

static many mask(inst *u, const symbol *s, many given)
{
	many list = axes(u, s, given);
	int64_t v[TN_MAX_RANK] = {0};

	for (int32_t i = 0; i < list.n; i++)
		v[inst_entry(u, list, i)] = 1;
	return inst_ints(u, inst_rank0(u), v);
}

static many perm(inst *u, const symbol *s, many given)
{
	if (given.n != inst_rank0(u))
		inst_fail(u, s->name,
			"%s has %d entries, but %s has rank %d", s->name,
			given.n, first(u), inst_rank0(u));
	return axes(u, s, given);
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
	/* 2 becomes 2.0, so that 1 / p is not an integer division */
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

/* The function that normalises the entries of each kind. */
static const struct {
	const char *name;
	many (*normal)(inst *u, const symbol *s, many v);
} kinds[] = {{"int", whole}, {"real", real}, {"flag", flag},
	{"ints", plain_ints}, {"axis", plain_axis}, {"axes", axes},
	{"mask", mask}, {"perm", perm}};

many inst_normal(inst *u, const symbol *s, many v)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].name, s->param->info.kind) == 0)
			return kinds[i].normal(u, s, v);
	inst_fail(u, s->name, "attribute %s cannot be used in index arithmetic",
		s->name);
}

many inst_given(inst *u, const symbol *s)
{
	const ir_attr *g = s->given;
	many v = {0};

	switch (g->kind) {
	case ATTR_INT:
		return inst_one_of(u, inst_int(u, g->i));
	case ATTR_REAL:
		return inst_one_of(u, inst_real(u, g->f));
	case ATTR_INTS:
		v = inst_ints(u, g->n, g->ints);
		return v;
	case ATTR_DTYPE:
	case ATTR_STRING:
		break;
	}
	inst_fail(u, s->name, "attribute %s must be of kind %s", s->name,
		s->param->info.kind);
}

void inst_dtype(inst *u, symbol *s)
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

/* Copies attributes of the caller, for use after the call. */
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
