/*
 * shape.c: finds equations that differ only in their tensors.
 *
 * A unit is written as a list of numbers, with tensors numbered in the order in
 * which they first occur; equal lists get equal shapes. A decision for one set of
 * units holds for every set of the same shapes with the same pattern of tensors:
 * the twelfth layer costs one look-up.
 */
#include "eqn/local.h"

typedef struct writer {
	eqn_graph *g;
	VEC(int64_t) text;
	VEC(int32_t) name;
	map *seen;  /* expression -> its number */
	bool loose; /* ignore extents */
} writer;

static void put(writer *w, int64_t v)
{
	*vec_push(w->g->scratch, &w->text) = v;
}

static void put_tensor(writer *w, int32_t tensor)
{
	const sys_tensor *t = &w->g->s->tensor.at[tensor];

	for (int32_t i = 0; i < w->name.n; i++) {
		if (w->name.at[i] == tensor) {
			put(w, i);
			return;
		}
	}
	put(w, w->name.n);
	put(w, t->dtype);
	put(w, w->loose ? 0 : t->numel);
	put(w, t->storage >= 0);
	*vec_push(w->g->scratch, &w->name) = tensor;
}

static void put_form(writer *w, const ix_form *f, int32_t depth)
{
	if (f == NULL || !w->loose || depth > 100) {
		put(w, f == NULL ? -1 : f->id);
		return;
	}
	put(w, f->n);
	put(w, f->c0);
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		put(w, f->t[i].coef);
		put(w, t->kind);
		put(w, t->kind == IX_DIGIT ? t->axis : -1);
		put(w, t->kind == IX_DIGIT ? t->lo : t->den);
		if (t->kind != IX_DIGIT)
			put_form(w, t->f, depth + 1);
	}
}

static void put_expr(writer *w, const expr *e, int32_t depth)
{
	int64_t found;
	int64_t bits;

	if (e == NULL) {
		put(w, -1);
		return;
	}
	found = map_get(w->seen, &e->id, sizeof e->id, -1);
	if (found >= 0) {
		put(w, -2);
		put(w, found);
		return;
	}
	if (depth > 1000)
		env_bug(arena_env(w->g->a), "eqn.shape", "too deep");
	map_set(w->seen, &e->id, sizeof e->id, map_n(w->seen));
	put(w, e->kind);
	put(w, e->dtype);
	put_form(w, e->form, 0);
	if (e->kind == EX_READ)
		put_tensor(w, e->tensor);
	if (e->kind == EX_CALL)
		put(w, e->fn);
	if (e->kind == EX_INSIDE) {
		put(w, e->lo);
		put(w, e->hi);
	}
	if (e->kind == EX_CONST && dtype_is_float(e->dtype)) {
		memcpy(&bits, &e->c.f, sizeof bits);
		put(w, bits);
	} else {
		put(w, e->c.i);
	}
	for (int32_t i = 0; i < e->n_args; i++)
		put_expr(w, e->arg[i], depth + 1);
}

static void put_unit(writer *w, const eqn_unit *u)
{
	const sys_eqn *e = &u->e;

	put(w, e->n_axes);
	put(w, e->n_left);
	put(w, e->monoid);
	put(w, e->scan_axis);
	put(w, e->scan_step);
	put_form(w, e->push, 0);
	put(w, e->opaque != NULL ? u->id : -1);
	for (int32_t i = 0; i < e->n_axes; i++) {
		put(w, w->loose ? 0 : e->axis[i].extent);
		put(w, e->axis[i].kind);
	}
	put(w, e->n_out);
	for (int32_t k = 0; k < e->n_out; k++)
		put_tensor(w, e->out[k]);
	for (int32_t k = 0; k < e->n_out; k++) {
		put_expr(w, e->body[k], 0);
		put_expr(w, e->init[k], 0);
	}
	/* reads inside forms have their numbers in the form already */
	for (int32_t i = 0; i < u->n_reads; i++)
		put_tensor(w, u->read[i].tensor);
}

static int32_t number(map *of, const writer *w)
{
	size_t n_bytes = (size_t)w->text.n * sizeof *w->text.at;
	int64_t found = map_get(of, w->text.at, n_bytes, -1);

	if (found < 0) {
		found = map_n(of);
		map_set(of, w->text.at, n_bytes, found);
	}
	return (int32_t)found;
}

void eqn_name_shape(eqn_graph *g, eqn_unit *u)
{
	writer w = {.g = g, .seen = map_new(g->scratch)};
	writer loose = {.g = g, .seen = map_new(g->scratch), .loose = true};

	put_unit(&w, u);
	put_unit(&loose, u);
	u->shape = number(g->shape_of, &w);
	u->kin = number(g->kin_of, &loose);
	u->n_names = w.name.n;
	u->name = arena_copy(
		g->a, w.name.at, (size_t)w.name.n * sizeof *w.name.at);
}
