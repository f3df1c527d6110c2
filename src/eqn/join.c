/*
 * join.c: makes units of equations, and edges between them.
 *
 * Consumes equations of a system; produces units with their reads and the guards
 * of those, and for a reader and a producer the coordinates of the element read:
 *
 *     t[i,j] (5 x 6), read in o[k] at 7k + 3   ->   X = ((7k + 3) div 6, (7k + 3) mod 6)
 *
 * Guards are used: if 0 <= k < 4, then (k - 6) div 6 is a constant.
 */
#include "eqn/local.h"

enum { MAX_DEPTH = 500 };

typedef struct walk {
	eqn_graph *g;
	bool in_init;
	int32_t n_contexts;
	map *seen; /* (context, expression) already walked */
	VEC(eqn_read) read;
} walk;

typedef struct context {
	ix_dom dom;
	int32_t id;
	int32_t depth;
} context;

eqn_graph *eqn_graph_new(arena *a, ir_system *s)
{
	eqn_graph *g = arena_make(a, eqn_graph);

	g->a = a;
	g->scratch = a;
	g->s = s;
	g->edge_of = map_new(a);
	g->shape_of = map_new(a);
	g->kin_of = map_new(a);
	/* a pass adds at most as many tensors as there are tensors and equations */
	g->replace = arena_array(
		a, const sys_eqn *, 2 * s->tensor.n + s->eqn.n + 2);
	return g;
}

static void add_read(walk *w, const context *c, int32_t tensor,
	const ix_form *at, bool is_index)
{
	/* guards may leave one value of an axis, and so one element */
	if (c->dom.n_facts > 0)
		at = ix_simplify(w->g->s->x, &c->dom, at);
	for (int32_t i = 0; i < w->read.n; i++) {
		const eqn_read *r = &w->read.at[i];

		if (r->tensor == tensor && r->at == at &&
			r->dom.facts == c->dom.facts &&
			r->dom.n_facts == c->dom.n_facts &&
			r->in_init == w->in_init && r->is_index == is_index)
			return;
	}
	*vec_push(w->g->scratch, &w->read) = (eqn_read){.tensor = tensor,
		.at = at,
		.dom = c->dom,
		.is_index = is_index,
		.in_init = w->in_init};
}

/* Tensors that the form reads as data. */
static void visit_form(
	walk *w, const context *c, const ix_form *f, int32_t depth)
{
	if (depth > MAX_DEPTH)
		env_bug(arena_env(w->g->a), "eqn.join", "form too deep");
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_DIGIT)
			continue;
		if (t->kind == IX_FUN)
			add_read(w, c, (int32_t)t->fun, t->f, true);
		visit_form(w, c, t->f, depth + 1);
	}
}

static void visit(walk *w, const context *c, const expr *e)
{
	int32_t key[2] = {c->id, e->id};
	context inner = *c;

	if (map_get(w->seen, key, sizeof key, 0) != 0)
		return;
	map_set(w->seen, key, sizeof key, 1);
	if (++inner.depth > MAX_DEPTH)
		env_bug(arena_env(w->g->a), "eqn.join", "expression too deep");
	if (e->kind == EX_READ)
		add_read(w, c, e->tensor, e->form, false);
	if (e->form != NULL)
		visit_form(w, c, e->form, 0);
	if (e->kind != EX_SELECT) {
		for (int32_t i = 0; i < e->n_args; i++)
			visit(w, &inner, e->arg[i]);
		return;
	}
	visit(w, &inner, e->arg[0]);
	for (int32_t i = 1; i < 3; i++) {
		inner.dom = ir_dom_when(w->g->s, &c->dom, e->arg[0], i == 1);
		inner.id = inner.dom.facts == c->dom.facts ? c->id
							   : ++w->n_contexts;
		visit(w, &inner, e->arg[i]);
	}
}

static void list_reads(eqn_graph *g, eqn_unit *u)
{
	walk w = {.g = g, .seen = map_new(g->scratch)};
	context c = {.dom = {.box = u->box}};

	for (int32_t k = 0; k < u->e.n_out; k++)
		if (u->e.body[k] != NULL)
			visit(&w, &c, u->e.body[k]);
	if (u->e.push != NULL)
		visit_form(&w, &c, u->e.push, 0);
	w.in_init = true;
	c.id = ++w.n_contexts;
	c.dom.box = eqn_init_box(g, &u->e);
	for (int32_t k = 0; k < u->e.n_out; k++)
		if (u->e.init[k] != NULL)
			visit(&w, &c, u->e.init[k]);
	for (int32_t k = 0; k < u->e.n_opaque_in; k++)
		*vec_push(g->scratch, &w.read) = (eqn_read){
			.tensor = u->e.opaque_in[k],
			.at = ix_const(g->s->x, 0)};
	u->n_reads = w.read.n;
	u->read = arena_copy(
		g->a, w.read.at, (size_t)w.read.n * sizeof *w.read.at);
	u->edge = arena_array(g->a, eqn_edge *, w.read.n + 1);
}

/* The stride of axis a in the address of a scatter, if it is a digit of that. */
static int64_t push_stride(eqn_graph *g, const eqn_unit *u, int32_t axis)
{
	ix *x = g->s->x;
	ix_dom d = {.box = u->box};
	int64_t extent = u->box.extent[axis], numel = u->out_elems, k = 0;
	const ix_atom *atom;
	const ix_form *q;

	for (int32_t i = 0; i < u->e.push->n; i++) {
		const ix_atom *t = u->e.push->t[i].atom;

		if (t->kind == IX_DIGIT && t->axis == axis && t->lo == 1 &&
			t->hi == extent)
			k = u->e.push->t[i].coef;
	}
	if (k <= 0 || numel % (k * extent) != 0)
		return 0;
	q = ix_mod(x, &d, ix_div(x, &d, u->e.push, k), extent);
	if (!ix_is_digit(q, &atom) || atom->axis != axis || atom->lo != 1 ||
		atom->hi != extent)
		return 0;
	return k;
}

/* Keeps strides of a scatter that nest like digits of one number. */
static void keep_nested(int64_t *stride, const eqn_unit *u)
{
	for (int32_t i = 0; i < u->e.n_left; i++) {
		for (int32_t k = 0; k < u->e.n_left; k++) {
			int64_t lo = stride[i], next = stride[k];

			if (i == k || lo == 0 || next < lo)
				continue;
			if (next % (lo * u->box.extent[i]) != 0)
				stride[i] = 0;
		}
	}
}

static void find_strides(eqn_graph *g, eqn_unit *u)
{
	int64_t *stride = arena_array(g->a, int64_t, u->e.n_left + 1), k = 1;

	u->stride = stride;
	if (u->e.opaque != NULL)
		return;
	for (int32_t i = u->e.n_left - 1; i >= 0; i--) {
		stride[i] = u->e.push == NULL ? k : push_stride(g, u, i);
		k *= u->box.extent[i];
	}
	if (u->e.push != NULL)
		keep_nested(stride, u);
}

static bool read_uses(const eqn_read *r, int32_t axis)
{
	return ix_uses_axis(r->at, axis);
}

/* Do two reads share a reduced axis, and has each a left axis that the other lacks? */
static bool is_contraction(const eqn_unit *u)
{
	if (u->e.monoid != IR_SUM || u->e.push != NULL)
		return false;
	for (int32_t i = 0; i < u->n_reads; i++) {
		for (int32_t k = 0; k < i; k++) {
			const eqn_read *p = &u->read[i], *q = &u->read[k];
			bool shared = false, own_p = false, own_q = false;

			if (p->in_init || q->in_init || p->is_index ||
				q->is_index)
				continue;
			for (int32_t a = 0; a < u->e.n_axes; a++) {
				bool in_p = read_uses(p, a);
				bool in_q = read_uses(q, a);

				shared |= a >= u->e.n_left && in_p && in_q;
				own_p |= a < u->e.n_left && in_p && !in_q;
				own_q |= a < u->e.n_left && !in_p && in_q;
			}
			if (shared && own_p && own_q)
				return true;
		}
	}
	return false;
}

eqn_unit *eqn_unit_new(eqn_graph *g, const sys_eqn *e, int32_t source)
{
	eqn_unit *u = arena_make(g->a, eqn_unit);
	const sys_tensor *out = &g->s->tensor.at[e->out[0]];

	u->id = g->unit.n;
	u->source = source;
	u->e = eqn_coalesce(g, e);
	u->box = eqn_box(g->a, &u->e);
	u->out_elems = out->numel;
	u->volume = 1;
	for (int32_t i = 0; i < u->e.n_axes; i++) {
		if (!mul_ok(u->volume, u->box.extent[i], &u->volume))
			env_fail(arena_env(g->a), TN_EINVAL, "ix.overflow",
				(loc){0}, "%s has more than 2^63 instances",
				e->label);
		u->has_scan |= u->e.axis[i].kind == AXIS_S;
	}
	u->flops = eqn_flops(g, &u->e);
	list_reads(g, u);
	find_strides(g, u);
	u->contraction = is_contraction(u);
	eqn_name_shape(g, u);
	*vec_push(g->a, &g->unit) = u;
	return u;
}

eqn_edge *eqn_join(
	eqn_graph *g, const eqn_unit *p, const eqn_unit *c, int32_t read)
{
	int32_t key[3] = {p == NULL ? -1 : p->id, c->id, read};
	const eqn_read *r = &c->read[read];
	ix *x = g->s->x;
	eqn_edge *e = c->edge[read];
	int64_t found;

	if (e != NULL && e->p == p)
		return e;
	found = map_get(g->edge_of, key, sizeof key, -1);
	if (found >= 0)
		return c->edge[read] = g->edge.at[found];
	e = arena_make(g->a, eqn_edge);
	e->p = p;
	e->c = c;
	e->read = r;
	e->n_x = p == NULL ? 1 : p->e.n_left;
	e->x = arena_array(g->a, const ix_form *, e->n_x + 1);
	if (p == NULL) {
		e->x[0] = r->at;
	} else if (p->e.push == NULL) {
		if (p->e.opaque == NULL && c->e.opaque == NULL)
			ix_delinearise(
				x, &r->dom, r->at, e->n_x, p->box.extent, e->x);
	} else {
		for (int32_t i = 0; i < e->n_x; i++)
			if (p->stride[i] > 0)
				e->x[i] = ix_mod(x, &r->dom,
					ix_div(x, &r->dom, r->at, p->stride[i]),
					p->box.extent[i]);
	}
	map_set(g->edge_of, key, sizeof key, g->edge.n);
	*vec_push(g->a, &g->edge) = e;
	c->edge[read] = e;
	return e;
}
