/*
 * entry.c: rows on given types and attributes.
 *
 * The instance of a call is looked up by row, attributes and operand types; a row
 * is instantiated once for each combination.
 */
#include "value/node.h"

void t_key_add(tensors *t, const void *data, size_t n)
{
	if (n == 0)
		return;
	vec_reserve(t->a, &t->key, (int32_t)n);
	memcpy(t->key.at + t->key.n, data, n);
	t->key.n += (int32_t)n;
}

static void add_attr(tensors *t, const ir_attr *a)
{
	t_key_add(t, a->name, strlen(a->name) + 1);
	t_key_add(t, &a->kind, sizeof a->kind);
	switch (a->kind) {
	case ATTR_INT:
		t_key_add(t, &a->i, sizeof a->i);
		break;
	case ATTR_REAL:
		t_key_add(t, &a->f, sizeof a->f);
		break;
	case ATTR_INTS:
		t_key_add(t, &a->n, sizeof a->n);
		t_key_add(t, a->ints, (size_t)a->n * sizeof *a->ints);
		break;
	case ATTR_DTYPE:
		t_key_add(t, &a->dtype, sizeof a->dtype);
		break;
	case ATTR_STRING:
		t_key_add(t, a->string, strlen(a->string) + 1);
		break;
	}
}

t_entry *t_entry_of(tensors *t, const ir_inst *inst)
{
	t_entry *e = arena_make(t->a, t_entry);

	e->id = t->entry.n;
	e->inst = inst;
	e->is_view = ir_inst_is_view(inst);
	for (int32_t i = 0, n = 0; i < inst->n_tensors; i++)
		if (inst->tensor[i].operand > 0 && ++n > T_MAX_EXTRA)
			e->is_view = false;
	*vec_push(t->a, &t->entry) = e;
	return e;
}

/* A temporary program checks arity and attributes and instantiates the row. */
static const ir_inst *instantiate(tensors *t, const ir_row *row, int32_t n,
	const ir_type *const *type, int32_t n_attrs, const ir_attr *attr)
{
	ir_program *p = ir_program_new(t->a, t->table);
	int32_t *arg = arena_array(t->a, int32_t, n + 1), call;
	loc at = t_here(t);

	for (int32_t i = 0; i < n; i++)
		arg[i] = ir_program_input(p, NULL, *type[i], at);
	call = ir_program_call(
		p, ir_row_name(row), n, arg, n_attrs, attr, NULL, at);
	return p->call.at[call].inst;
}

t_entry *t_entry_find(tensors *t, const ir_row *row, int32_t n,
	const ir_type *const *type, int32_t n_attrs, const ir_attr *attr)
{
	int64_t found;
	t_entry *e;

	t->key.n = 0;
	t_key_add(t, &row, sizeof row);
	for (int32_t i = 0; i < n; i++) {
		const ir_type *y = type[i];

		t_key_add(t, &y->dtype, sizeof y->dtype);
		t_key_add(t, &y->rank, sizeof y->rank);
		t_key_add(t, y->shape, (size_t)y->rank * sizeof y->shape[0]);
	}
	for (int32_t i = 0; i < n_attrs; i++)
		add_attr(t, &attr[i]);
	found = map_get(t->entry_of, t->key.at, (size_t)t->key.n, -1);
	if (found >= 0)
		return t->entry.at[found];
	e = t_entry_of(t, instantiate(t, row, n, type, n_attrs, attr));
	map_set(t->entry_of, t->key.at, (size_t)t->key.n, e->id);
	return e;
}

t_entry *t_entry_named(tensors *t, const char *row, int32_t n,
	const ir_type *const *type, int32_t n_attrs, const ir_attr *attr)
{
	return t_entry_find(
		t, ir_table_find(t->table, row), n, type, n_attrs, attr);
}

/* ---- views ---- */

/* The entry with only result r of a view; e if it has one result. */
t_entry *t_entry_part(tensors *t, t_entry *e, int32_t r)
{
	if (e->inst->n_results == 1)
		return e;
	if (e->part == NULL)
		e->part = arena_array(t->a, t_entry *, e->inst->n_results);
	if (e->part[r] == NULL)
		e->part[r] = t_entry_of(t, ir_view_part(t->a, e->inst, r));
	return e->part[r];
}

/* Is every index of the view inside its operand? */
static bool is_inside(const ix_dom *d, const ir_type *from,
	const ix_form *const *place)
{
	for (int32_t i = 0; i < from->rank; i++) {
		int64_t min, max;

		ix_range(d, place[i], &min, &max);
		if (min < 0 || max >= from->shape[i])
			return false;
	}
	return true;
}

/* Is the view consecutive elements of its operand, in the same order? */
bool t_is_stretch(tensors *t, t_entry *e)
{
	const ir_inst *p = e->inst;
	const ir_type *to = &p->tensor[p->result[0]].type, *from = NULL;
	const ix_form *at[TN_MAX_RANK], *below[TN_MAX_RANK + 1], *f;
	arena *a;
	ix *x;
	ix_dom d = {.box = {.n = to->rank, .extent = to->shape}};

	if (e->shape != T_UNKNOWN)
		return e->shape == T_STRETCH;
	e->shape = T_SCATTERED;
	for (int32_t i = 0; i < p->n_tensors; i++) {
		if (p->tensor[i].operand > 0)
			return false; /* at an offset from data */
		if (p->tensor[i].operand == 0)
			from = &p->tensor[i].type;
	}
	if (from == NULL || shape_numel(to->shape, to->rank) == 0)
		return false;
	a = arena_child(t->a);
	x = ix_new(a);
	for (int32_t i = 0; i < to->rank; i++)
		at[i] = ix_axis(x, &d, i);
	ir_view_place(x, &d, p, 0, NULL, at, below);
	f = ix_sub(x, &d,
		ix_linearise(x, &d, from->rank, from->shape, below),
		ix_linearise(x, &d, to->rank, to->shape, at));
	if (f->n == 0 && is_inside(&d, from, below)) {
		e->shape = T_STRETCH;
		e->from = f->c0;
	}
	arena_free(a);
	return e->shape == T_STRETCH;
}
