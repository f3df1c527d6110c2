/*
 * fuse_draft.h: a random system in the making: its tensors, and one equation.
 */
#ifndef FUSE_DRAFT_H
#define FUSE_DRAFT_H

#include "fuse_prop.h"

enum { MAX_ELEMS = 200, MAX_INSTANCES = 2000 };

typedef struct gen {
	arena *a;
	ir_system *s;
	ix *x;
	prop_random *r;
	int32_t n_base;	     /* inputs at the start */
	VEC(int32_t) pool;   /* tensors of values */
	VEC(int32_t) index;  /* tensors of indexes below 4 */
	VEC(int32_t) latest; /* by storage: its newest tensor */
	int32_t n_names;
	bool writes; /* a third of the operations */
} gen;

static inline int32_t below(gen *g, int32_t n)
{
	return prop_below(g->r, n);
}

static inline bool chance(gen *g, int32_t percent)
{
	return prop_chance(g->r, percent);
}

static inline const sys_tensor *tensor(gen *g, int32_t t)
{
	return &g->s->tensor.at[t];
}

static inline int64_t extent(gen *g)
{
	static const int64_t some[] = {1, 2, 2, 3, 3, 4, 4, 6, 5, 8};

	return some[below(g, 10)];
}

static inline int32_t new_tensor(
	gen *g, const char *kind, int32_t rank, const int64_t *shape)
{
	char name[48];
	int32_t n = g->n_names++, i = 0;

	for (; kind[i] != 0 && i < 20; i++)
		name[i] = kind[i];
	name[i++] = '_';
	if (n >= 100)
		name[i++] = (char)('0' + n / 100 % 10);
	if (n >= 10)
		name[i++] = (char)('0' + n / 10 % 10);
	name[i++] = (char)('0' + n % 10);
	name[i] = 0;
	return ir_add_tensor(g->s, name, TN_I64, rank, shape);
}

static inline int32_t input(
	gen *g, const char *kind, int32_t rank, const int64_t *shape)
{
	int32_t t = new_tensor(g, kind, rank, shape);

	g->s->tensor.at[t].is_input = true;
	*vec_push(g->a, &g->s->input) = t;
	return t;
}

static inline int32_t random_input(gen *g, int32_t rank)
{
	int64_t shape[4], numel = 1;

	for (int32_t i = 0; i < rank; i++) {
		shape[i] = extent(g);
		while (numel * shape[i] > MAX_ELEMS)
			shape[i] = 1;
		numel *= shape[i];
	}
	return input(g, "x", rank, shape);
}

/* a tensor: mostly one of the last */
static inline int32_t pick(gen *g)
{
	int32_t n = g->pool.n, near = n < 4 ? n : 4;

	return chance(g, 65) ? g->pool.at[n - 1 - below(g, near)]
			     : g->pool.at[below(g, n)];
}

/* ---- building equations ---- */

/* An equation under construction: letters are axes, extent 1 has none. */
typedef struct draft {
	gen *g;
	sys_eqn e;
	ix_dom d;
	int64_t box[IR_MAX_AXES];
	int32_t n_letters;
	int32_t axis_of[16];
	int64_t letter[16];
} draft;

static inline void start(draft *w, gen *g, const char *label)
{
	memset(w, 0, sizeof *w);
	w->g = g;
	w->e.label = label;
	w->e.op = label;
	w->e.call = g->s->eqn.n;
	w->e.monoid = IR_SET;
	w->e.n_out = 1;
	w->e.scan_axis = -1;
	w->d.box.extent = w->box;
}

/* A letter: its number. Left ones first. */
static inline int32_t letter(draft *w, int64_t n, axis_kind kind)
{
	int32_t l = w->n_letters++;

	w->letter[l] = n;
	w->axis_of[l] = -1;
	if (n > 1) {
		int32_t a = w->e.n_axes++;

		w->axis_of[l] = a;
		w->e.axis[a] = (sys_axis){.extent = n, .kind = kind};
		w->box[a] = n;
		w->d.box.n = w->e.n_axes;
		w->e.n_left += kind != AXIS_R;
	}
	return l;
}

static inline const ix_form *at(draft *w, int32_t l)
{
	return w->axis_of[l] < 0 ? ix_const(w->g->x, 0)
				 : ix_axis(w->g->x, &w->d, w->axis_of[l]);
}

static inline const expr *read_in(
	draft *w, const ix_dom *d, int32_t t, const ix_form *const *where)
{
	const sys_tensor *st = tensor(w->g, t);

	return ex_read(w->g->s, t,
		ix_linearise(w->g->x, d, st->rank, st->shape, where));
}

static inline const expr *read(draft *w, int32_t t, const ix_form *const *where)
{
	return read_in(w, &w->d, t, where);
}

static inline const expr *call(gen *g, const char *name, const expr *p, const expr *q)
{
	const expr *arg[IR_MAX_ARGS] = {p, q};

	return ex_call(g->s, ir_scalar_find(name, strlen(name)), arg);
}

static inline const expr *number(gen *g, int64_t v)
{
	return ex_const_i(g->s, TN_I64, v);
}

static inline const expr *unary(gen *g, const expr *p)
{
	switch (below(g, 5)) {
	case 0:
		return call(g, "add", p, number(g, 1 + below(g, 5)));
	case 1:
		return call(g, "mul", p, number(g, 2 + below(g, 2)));
	case 2:
		return call(g, "max", p, number(g, 0));
	case 3:
		return call(g, "neg", p, NULL);
	}
	return call(g, "abs", p, NULL);
}

static inline const expr *binary(gen *g, const expr *p, const expr *q)
{
	static const char *const name[] = {"add", "sub", "max", "min", "mul"};

	return call(g, name[below(g, chance(g, 20) ? 5 : 4)], p, q);
}

static inline int32_t end(draft *w, const char *kind, int32_t rank,
	const int64_t *shape, const expr *body)
{
	int32_t t = new_tensor(w->g, kind, rank, shape);

	w->e.out[0] = t;
	w->e.body[0] = body;
	ir_add_eqn(w->g->s, &w->e);
	*vec_push(w->g->a, &w->g->pool) = t;
	return t;
}

/* letters for the shape of t, kind P */
static inline void letters(
	draft *w, int32_t rank, const int64_t *shape, const ix_form **where)
{
	for (int32_t i = 0; i < rank; i++)
		letter(w, shape[i], AXIS_P);
	for (int32_t i = 0; i < rank; i++)
		where[i] = at(w, i);
}

/* ---- operations ---- */

/* Can b be broadcast to the shape of t, from the right? */
static inline bool fits(gen *g, int32_t t, int32_t b)
{
	const sys_tensor *p = tensor(g, t), *q = tensor(g, b);

	if (q->rank > p->rank)
		return false;
	for (int32_t i = 0; i < q->rank; i++) {
		int64_t n = q->shape[q->rank - 1 - i];

		if (n != 1 && n != p->shape[p->rank - 1 - i])
			return false;
	}
	return true;
}

/* ---- fuse_gen_writes.c ---- */

void fuse_write(gen *g);
void fuse_write_part(gen *g);
void fuse_part(gen *g, int32_t t);
int32_t fuse_alike(gen *g, int32_t old);

#endif
