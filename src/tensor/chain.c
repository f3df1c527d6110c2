/*
 * chain.c: versions of one storage inside a trace, and what the backward reads
 * of them.
 *
 * A value that the backward reads and that is not there any more when the call
 * has run would be kept as a result of its own. It is not, if a result has the
 * same elements: what a later version of the storage left alone, or what was
 * written somewhere and stands there still.
 *
 *     m1 = 0.9*m + 0.1*x;  m' = write(m, m1)    reads of m1: reads of m'
 *     v' = write(v[4:8], y)                     reads of v[0:4]: of v'
 *
 * Consumes the recorded backward, changes its reads in place.
 * Source: docs/compile.md.
 */
#include "tensor/local.h"

static const ir_type *seen_type(const t_seen *x)
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

	for (int32_t i = 0; i < seen_type(x)->rank; i++)
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
	const ir_type *kind[2] = {seen_type(x), seen_type(y)};
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
	const ir_type *y = seen_type(x);
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

bool t_next_version(const t_trace *f, const t_value *v, t_version *out)
{
	for (int32_t k = 0; k < f->call.n; k++) {
		const t_call *c = f->call.at[k];

		for (int32_t i = 0; i < c->n_args; i++) {
			int32_t r = t_is_write(c) && i == 0 ? 0
				: c->trace != NULL ? c->trace->next[i]
						   : -1;

			if (r < 0 || c->arg[i].v != v)
				continue;
			*out = (t_version){c->result[r], c->arg[i].view, k};
			return true;
		}
	}
	return false;
}

/* ---- reads of the backward ---- */

typedef struct moving {
	tensors *t;
	const t_trace *f;
	t_back *b;
	const t_value *v;
	t_value *to;
	t_view *through; /* NULL: as it was */
	const t_call *store; /* that wrote v where it is */
} moving;

static bool is_result(const t_trace *f, const t_value *v)
{
	for (int32_t i = 0; i < f->n_known; i++)
		if (f->out[i] == v)
			return true;
	return false;
}

/* Is it an operand of a view, or a result? Those are not moved. */
static bool is_bound(const t_trace *back, const t_value *v)
{
	for (int32_t i = 0; i < back->n_out; i++)
		if (back->out[i] == v)
			return true;
	for (int32_t k = 0; k < back->call.n; k++)
		for (int32_t i = 0; i < back->call.at[k]->n_args; i++)
			for (const t_view *w = back->call.at[k]->arg[i].view;
				w != NULL; w = w->parent)
				for (int32_t j = 0; j < w->n_extra; j++)
					if (w->extra[j].v == v)
						return true;
	return false;
}

/* Does the backward read nothing of v that this write makes new? */
static bool leaves_reads(const moving *m, const t_version *write)
{
	const t_trace *back = m->b->trace;
	t_seen where = {m->v, write->view};

	for (int32_t k = 0; k < back->call.n; k++)
		for (int32_t i = 0; i < back->call.at[k]->n_args; i++) {
			const t_read *r = &back->call.at[k]->arg[i];
			t_seen what = {m->v, r->view};

			if (r->v == m->v && t_overlap(m->t, &what, &where))
				return false;
		}
	return true;
}

/* A later version, a result, that has what is read of v. */
static bool find_later(moving *m)
{
	const t_value *v = m->v;
	t_version next;

	m->through = NULL;
	m->to = NULL;
	while (t_next_version(m->f, v, &next) &&
		(m->t->dropped == TENSOR_RULE_VERSION ||
			leaves_reads(m, &next)))
		v = m->to = next.next;
	return m->to != NULL && is_result(m->f, m->to);
}

/* A result that has v written in it. */
static bool find_stored(moving *m)
{
	for (int32_t k = 0; k < m->f->call.n; k++) {
		const t_call *c = m->f->call.at[k];
		t_seen where = {NULL, NULL};
		t_version next;
		bool stands = true;

		if (!t_is_write(c) || c->arg[1].v != m->v ||
			c->arg[1].view != NULL)
			continue;
		where = (t_seen){c->arg[0].v, c->arg[0].view};
		for (const t_view *w = where.view; w != NULL; w = w->parent)
			stands = stands && w->n_extra == 0;
		if (!stands || !ir_type_same(seen_type(&where), &m->v->type))
			continue;
		m->to = c->result[0];
		m->store = c;
		m->through = c->arg[0].view;
		while (stands && t_next_version(m->f, m->to, &next)) {
			t_seen other = {m->to, next.view};

			stands = m->t->dropped == TENSOR_RULE_STORED ||
				!t_overlap(m->t, &where, &other);
			m->to = next.next;
		}
		if (stands && is_result(m->f, m->to))
			return true;
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

static void move_reads(const moving *m)
{
	const t_trace *back = m->b->trace;

	for (int32_t k = 0; k < back->call.n; k++)
		for (int32_t i = 0; i < back->call.at[k]->n_args; i++) {
			t_read *r = &back->call.at[k]->arg[i], old = *r;
			t_view *w;

			if (r->v != m->v)
				continue;
			w = t_view_on(m->t, m->through, r->view);
			*r = t_read_of(m->to, w);
			t_view_drop(m->t, w);
			t_read_drop(m->t, &old);
		}
}

static bool is_in(int32_t n, t_value *const *list, const t_value *v)
{
	for (int32_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

/* Reads of operand i of the backward go to a place that is kept anyway. */
static void find_place_of(const moving *about, int32_t i, t_value *const *seed)
{
	t_trace *back = about->b->trace;
	moving m = *about;
	bool stored;

	m.v = back->in[i];
	if (is_in(m.f->n_out, seed, m.v) || is_result(m.f, m.v) ||
		is_bound(back, m.v))
		return;
	stored = !find_later(&m);
	if (stored && !find_stored(&m))
		return;
	if (stored) /* written without a gradient: elements alone */
		m.b->trace->is_last |= m.v->tracked
			? !m.store->tracked || m.store->no_grad
			: m.to->tracked;
	move_reads(&m);
	*vec_push(m.t->a, &m.b->moved) =
		(t_moved){back->in[i], m.to, stored};
	t_value_keep(m.to); /* the list of operands has it now */
	back->in[i] = m.to;
}

/* What would be kept as two values of the same elements is kept as one. */
static void find_same(const moving *about, int32_t i, t_value *const *seed)
{
	t_trace *back = about->b->trace;
	moving m = *about;
	t_read r;

	m.v = back->in[i];
	if (is_in(m.f->n_out, seed, m.v) || is_result(m.f, m.v) ||
		is_in(m.f->n_in, m.f->in, m.v) || is_bound(back, m.v))
		return;
	r = t_same_of(m.t, m.f, back->n_in, back->in, back->in[i]);
	if (r.v == m.v)
		return;
	m.b->trace->is_last |= !t_same_history(m.t, m.f, m.v, r.v);
	m.to = r.v;
	m.through = r.view;
	move_reads(&m);
	t_value_keep(m.to);
	back->in[i] = m.to;
}

static void forget_twice(t_trace *back)
{
	int32_t left = 0;

	for (int32_t i = 0; i < back->n_in; i++)
		if (!is_in(left, back->in, back->in[i]))
			back->in[left++] = back->in[i];
	back->n_in = left;
}

void t_find_kept(
	tensors *t, const t_trace *f, t_back *b, t_value *const *seed)
{
	const moving m = {.t = t, .f = f, .b = b};
	t_trace *back = b->trace;

	for (int32_t i = 0; i < back->n_in; i++)
		find_place_of(&m, i, seed);
	for (int32_t i = 0; i < back->n_in; i++)
		find_same(&m, i, seed);
	forget_twice(back);
	for (int32_t i = 0; i < back->n_in; i++)
		find_place_of(&m, i, seed);
	forget_twice(back);
}
