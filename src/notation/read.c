/*
 * read.c: reads of tensors: their indices, with broadcasting.
 *
 *     x[~i..] on [3] beside y on [2,3]      x[i..]  ->  x[i_1]
 *     x[~i..] on [2,1] beside y on [2,3]    x[i..]  ->  x[i_0, 0]
 */
#include "notation/inst.h"

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
			/* extent 1 broadcasts */
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
