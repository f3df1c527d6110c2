/*
 * access.c: how the statements below a loop access memory when one variable
 * advances: the same element (stride 0), its neighbour (1), or a jump. Values in
 * private buffers do not count: the layout of buffers follows from the lanes.
 */
#include "schedule/local.h"

struct gather {
	loop_kernel *k;
	const loop_node *leaf;
	loop_access_visit *fn;
	void *arg;
};

static bool is_memory(const loop_kernel *k, int32_t tensor)
{
	int32_t eqn, comp;

	return loop_param(k, tensor) >= 0 ||
	       (loop_maker(k, tensor, &eqn, &comp) && k->eqn[eqn].part);
}

static void on_read(void *arg, const expr *e)
{
	struct gather *g = arg;
	struct loop_access a = {e->tensor, e->form, false, g->leaf};

	if (e->kind == EX_READ && is_memory(g->k, e->tensor))
		g->fn(g->arg, &a);
}

void loop_each_access(
	loop_kernel *k, const loop_node *n, loop_access_visit *fn, void *arg)
{
	struct gather g = {k, n, fn, arg};
	int32_t i;

	for (i = 0; i < n->n_child; i++)
		loop_each_access(k, n->child[i], fn, arg);
	if (n->kind == LOOP_STMT || n->kind == LOOP_INIT) {
		const loop_eqn *e = &k->eqn[n->eqn];

		for (i = 0; i < e->e->n_out; i++) {
			const expr *x = n->kind == LOOP_STMT ? e->body[i]
							     : e->init[i];
			struct loop_access a = {e->e->out[i], e->at, true, n};

			if (x != NULL)
				loop_walk(k->a, x, on_read, &g);
			if (n->kind == LOOP_STMT &&
				loop_param(k, e->e->out[i]) >= 0)
				fn(arg, &a);
		}
	}
}

struct cost {
	loop_kernel *k;
	int32_t var;
	double jumps;
	bool unit, near, far; /* reads of neighbours, of every second one, of others */
};

static void add_cost(void *arg, const struct loop_access *a)
{
	struct cost *c = arg;
	const machine_schedule *m = &c->k->machine->schedule;
	int64_t n = c->k->var[c->var].extent, s = 0;
	const loop_node *u;
	double w = 1;

	if (!ix_stride(a->at, c->var, n, &s))
		s = INT64_MAX;
	if (s == 1)
		c->unit = true;
	if (s == 0)
		return;
	c->near |= !a->write && s <= m->near_lanes;
	c->far |= !a->write && s > m->near_lanes;
	if (s == 1)
		return;
	/* lanes with stride 2 are two vectors and a shuffle, not single elements */
	if (a->write)
		w = m->write_jump;
	else if (s == m->near_lanes)
		w = m->near_jump;
	for (u = a->leaf->up; u != NULL; u = u->up)
		if (u->kind == LOOP_FOR)
			w *= (double)c->k->var[u->var].extent;
	c->jumps += w;
}

double loop_jumps(loop_kernel *k, const loop_node *n, int32_t var, bool *unit)
{
	struct cost c = {.k = k, .var = var};

	loop_each_access(k, n, add_cost, &c);
	*unit = c.unit;
	return c.jumps;
}

bool loop_is_far(loop_kernel *k, const loop_node *n, int32_t var)
{
	struct cost c = {.k = k, .var = var};

	loop_each_access(k, n, add_cost, &c);
	return c.far && !c.near;
}

static void widest_visit(void *arg, const expr *e)
{
	struct loop_widest *w = arg;
	int32_t bytes = (int32_t)dtype_size(dtype_wide(e->dtype));

	if (e->kind == EX_CONST || e->kind == EX_PARAM)
		return;
	if (e->kind == EX_INDEX && (loop_form_vars(e->form) & BIT(w->var)) == 0)
		return;
	if (e->kind == EX_INSIDE) {
		int64_t min, max;

		if ((loop_form_vars(e->form) & BIT(w->var)) == 0)
			return;
		ix_range(&w->k->dom, e->form, &min, &max);
		bytes = min < INT32_MIN || max > INT32_MAX ? 8 : 4;
	}
	if (bytes > w->bytes)
		w->bytes = bytes;
}

/* The bytes of the widest value that depends on var. */
void loop_widest(struct loop_widest *w, const loop_node *n)
{
	int32_t i;

	for (i = 0; i < n->n_child; i++)
		loop_widest(w, n->child[i]);
	if (loop_is_loop(n) || n->kind == LOOP_STAGE)
		return;
	for (i = 0; i < w->k->eqn[n->eqn].e->n_out; i++) {
		const loop_eqn *e = &w->k->eqn[n->eqn];
		bool in_lanes = n->kind == LOOP_STMT &&
				(e->reduced & BIT(w->var)) != 0;
		tn_dtype acc = in_lanes ? loop_lane_acc(w->k, e, i) : e->acc[i];
		int32_t bytes = (int32_t)dtype_size(dtype_wide(acc));

		if (bytes > w->bytes)
			w->bytes = bytes;
		if (n->kind == LOOP_STMT && acc == e->acc[i])
			loop_walk(w->k->a, e->body[i], widest_visit, w);
		else if (n->kind == LOOP_INIT && e->init[i] != NULL)
			loop_walk(w->k->a, e->init[i], widest_visit, w);
	}
}

/* ---- sums that nobody reads before they are complete ---- */

struct reads {
	int32_t tensor;
	bool hit;
};

static bool form_reads(const ix_form *f, int32_t tensor)
{
	int32_t i;

	for (i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN && t->fun == tensor)
			return true;
		if (t->kind != IX_DIGIT && form_reads(t->f, tensor))
			return true;
	}
	return false;
}

static void on_own_read(void *arg, const expr *e)
{
	struct reads *r = arg;

	if ((e->kind == EX_READ && e->tensor == r->tensor) ||
		form_reads(e->form, r->tensor))
		r->hit = true;
}

/* Is it read in the loops that are split? (The tail reads final values.) */
static bool is_read_here(loop_kernel *k, int32_t eqn)
{
	int32_t i, j, c;

	for (c = 0; c < k->eqn[eqn].e->n_out; c++) {
		struct reads r = {k->eqn[eqn].e->out[c], false};

		for (i = 0; i < k->n_eqns; i++)
			for (j = 0; j < k->eqn[i].e->n_out &&
				    !k->eqn[i].tail;
				j++) {
				loop_walk(k->a, k->eqn[i].body[j], on_own_read, &r);
				if (k->eqn[i].init[j] != NULL)
					loop_walk(k->a, k->eqn[i].init[j],
						on_own_read, &r);
			}
		if (r.hit)
			return true;
	}
	return false;
}

/* Finds the equations below n that reduce var; false: one cannot be split. */
bool loop_reducers(
	loop_kernel *k, const loop_node *n, int32_t var, loop_set *out)
{
	int32_t i;

	if (n->kind == LOOP_STMT) {
		const loop_eqn *e = &k->eqn[n->eqn];

		if (e->push || e->scan_var == var)
			return false;
		if ((e->reduced & BIT(var)) != 0) {
			if (n->eqn >= 64 || is_read_here(k, n->eqn))
				return false;
			*out |= BIT(n->eqn);
		}
	}
	for (i = 0; i < n->n_child; i++)
		if (!loop_reducers(k, n->child[i], var, out))
			return false;
	return true;
}
