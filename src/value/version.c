/*
 * version.c: versions of one storage, and where in them a view looks.
 */
#include "value/node.h"

const ir_type *t_seen_type(const t_seen *x)
{
	const ir_inst *w;

	if (x->view == NULL)
		return &x->v->type;
	w = x->view->entry->inst;
	return &w->tensor[w->result[0]].type;
}

/* Places in the storage of what is seen, by its axes from `first` on. */
static bool find_place(ix *f, const ix_dom *d, const t_seen *x, int32_t first,
	const ix_form **at)
{
	const ix_form *below[TN_MAX_RANK + 1];

	for (int32_t i = 0; i < t_seen_type(x)->rank; i++)
		at[i] = ix_axis(f, d, first + i);
	for (const t_view *w = x->view; w != NULL; w = w->parent) {
		if (w->n_extra > 0)
			return false; /* wherever the data says */
		ir_view_place(f, d, w->entry->inst, 0, NULL, at, below);
		memcpy(at, below, TN_MAX_RANK * sizeof *at);
	}
	return true;
}

/* Is f nowhere 0: by its bounds, or by what divides all but its constant? */
static bool is_nonzero(const ix_dom *d, const ix_form *f)
{
	int64_t lo, hi, common = 0;

	ix_range(d, f, &lo, &hi);
	if (lo > 0 || hi < 0)
		return true;
	for (int32_t i = 0; i < f->n; i++)
		for (int64_t b = f->t[i].coef; b != 0;) {
			int64_t r = common % b;

			common = b;
			b = r;
		}
	return common != 0 && f->c0 % common != 0;
}

static bool are_apart(arena *a, const t_seen *x, const t_seen *y)
{
	const ir_type *kind[2] = {t_seen_type(x), t_seen_type(y)};
	const ir_type *root = &x->v->type;
	int64_t extent[2 * TN_MAX_RANK + 1];
	const ix_form *at[2][TN_MAX_RANK + 1];
	ix *f = ix_new(a);
	ix_dom d = {.box = {.extent = extent}};

	for (int32_t k = 0; k < 2; k++)
		for (int32_t i = 0; i < kind[k]->rank; i++) {
			if (kind[k]->shape[i] == 0)
				return true;
			extent[d.box.n++] = kind[k]->shape[i];
		}
	if (!find_place(f, &d, x, 0, at[0]) ||
		!find_place(f, &d, y, kind[0]->rank, at[1]))
		return false;
	for (int32_t i = 0; i < root->rank; i++)
		if (is_nonzero(&d, ix_sub(f, &d, at[0][i], at[1][i])))
			return true;
	return is_nonzero(&d,
		ix_sub(f, &d, ix_linearise(f, &d, root->rank, root->shape, at[0]),
			ix_linearise(f, &d, root->rank, root->shape, at[1])));
}

bool t_overlap(tensors *t, const t_seen *x, const t_seen *y)
{
	arena *a = arena_child(t->a);
	bool apart = are_apart(a, x, y);

	arena_free(a);
	return !apart;
}

void t_print_place(tensors *t, str *s, const t_seen *x)
{
	static const char *const names[] = {"i", "j", "k", "l", "m", "n", "o",
		"p"};
	const ir_type *y = t_seen_type(x);
	const ix_form *at[TN_MAX_RANK + 1];
	const char *name[TN_MAX_RANK + 1];
	arena *a;
	ix_dom d = {.box = {y->rank, y->shape}};

	if (x->view == NULL)
		return;
	if (shape_numel(y->shape, y->rank) == 0) {
		str_add(s, "[nothing]");
		return;
	}
	a = arena_child(t->a);
	for (int32_t i = 0; i < y->rank; i++)
		name[i] = i < 8 ? names[i] : NULL;
	if (find_place(ix_new(a), &d, x, 0, at)) {
		for (int32_t i = 0; i < x->v->type.rank; i++) {
			str_add(s, i == 0 ? "[" : ", ");
			ix_print(s, at[i], &d.box, name, NULL, NULL);
		}
		str_add(s, x->v->type.rank == 0 ? "[]" : "]");
	} else {
		str_add(s, "[where data says]");
	}
	arena_free(a);
}

/* ---- versions ---- */

int32_t t_result_of_write(const t_call *c, int32_t i)
{
	if (t_is_write(c))
		return i == 0 ? 0 : -1;
	return c->trace != NULL ? c->trace->next[i] : -1;
}

bool t_next_version(const t_trace *f, const t_value *v, t_version *out)
{
	for (int32_t k = 0; k < f->call.n; k++) {
		const t_call *c = f->call.at[k];

		for (int32_t i = 0; i < c->n_args; i++) {
			int32_t r = t_result_of_write(c, i);

			if (r < 0 || c->arg[i].v != v)
				continue;
			*out = (t_version){c->result[r], c->arg[i].view, k};
			return true;
		}
	}
	return false;
}

t_view *t_view_on(tensors *t, t_view *below, const t_view *w)
{
	t_view *v;

	if (w == NULL) {
		t_view_keep(below);
		return below;
	}
	v = t_view_new(t);
	v->entry = w->entry;
	v->n_extra = w->n_extra;
	for (int32_t i = 0; i < w->n_extra; i++)
		v->extra[i] = t_read_of(w->extra[i].v, w->extra[i].view);
	v->parent = t_view_on(t, below, w->parent);
	return v;
}

bool t_changes_any(const t_call *c)
{
	bool any = t_is_write(c);

	for (int32_t i = 0; c->trace != NULL && i < c->n_args; i++)
		any = any || c->trace->next[i] >= 0;
	return any;
}

t_value *t_version_before(const t_value *v)
{
	const t_call *c = t_maker(v);

	if (c == NULL)
		return NULL;
	if (t_is_write(c))
		return c->arg[0].v;
	for (int32_t i = 0; c->trace != NULL && i < c->n_args; i++)
		if (c->trace->next[i] == v->result)
			return c->arg[i].v;
	return NULL;
}
