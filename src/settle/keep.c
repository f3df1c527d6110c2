/*
 * keep.c: copies elements that are read after they were overwritten.
 *
 * Consumes a version and the readers that cannot run before the write; adds an
 * equation that copies the elements that they read, as a box of the tensor's axes,
 * and makes them read the copy:
 *
 *     x: f32[8,8]; x1 = write(x[2:4], v); o = x1[0:2] + x[2:4]
 *     x_kept[i,j] = x[i+2,j], 2 x 8, before the write
 */
#include "settle/local.h"

typedef struct region {
	settled *w;
	int32_t tensor, copy;
	bool whole; /* all elements, with the same element numbers */
	int64_t lo[TN_MAX_RANK], hi[TN_MAX_RANK]; /* inclusive */
	int64_t shape[TN_MAX_RANK];
	const eqn_unit *u; /* the unit whose reads change */
	bool in_init;
} region;

bool settle_in_place(settled *w, const eqn_unit *u, const eqn_read *r)
{
	const ix_form *own;
	ix_dom d = {0};

	if (rule_dropped(w, SETTLE_RULE_OWN))
		return true;
	if (u->e.opaque != NULL || r->is_index)
		return false;
	if (!r->in_init && (u->e.n_axes > u->e.n_left || u->e.push != NULL ||
				   u->e.n_out > 1))
		return false;
	own = u->e.push != NULL ? ix_axis(w->s->x, &r->dom, 0)
				: eqn_position(w->a, w->s, &u->e, &d);
	return ix_equal(w->s->x, &r->dom, own, r->at) == IX_EQUAL;
}

static bool stays(const region *g, const eqn_unit *u, const eqn_read *r)
{
	settled *w = g->w;
	int32_t storage = w->s->tensor.at[g->tensor].storage;

	if (g->whole)
		return false;
	for (int32_t k = 0; k < u->e.n_out; k++)
		if (w->s->tensor.at[u->e.out[k]].storage == storage &&
			w->version[u->e.out[k]] == w->version[g->tensor] + 1)
			return settle_in_place(w, u, r);
	return false;
}

/* ---- which elements ---- */

static void add_read(region *g, const eqn_read *r)
{
	ir_system *s = g->w->s;
	const sys_tensor *t = &s->tensor.at[g->tensor];
	const ix_form *at[TN_MAX_RANK];

	ix_delinearise(s->x, &r->dom, r->at, t->rank, t->shape, at);
	for (int32_t i = 0; i < t->rank; i++) {
		int64_t min, max;

		ix_range(&r->dom, at[i], &min, &max);
		if (min < 0)
			min = 0;
		if (max >= t->shape[i])
			max = t->shape[i] - 1;
		if (min < g->lo[i])
			g->lo[i] = min;
		if (max > g->hi[i])
			g->hi[i] = max;
	}
}

static void find_region(region *g, int32_t n, const int32_t *reader)
{
	settled *w = g->w;
	const sys_tensor *t = &w->s->tensor.at[g->tensor];
	bool first = true;

	for (int32_t i = 0; i < t->rank; i++) {
		g->lo[i] = t->shape[i] - 1;
		g->hi[i] = 0;
	}
	for (int32_t k = 0; k < n; k++) {
		const eqn_unit *u = w->unit[reader[k]];

		g->whole |= u->e.opaque != NULL || t->rank == 0;
		for (int32_t i = 0; i < u->n_reads; i++)
			g->whole |= u->read[i].tensor == g->tensor &&
				u->read[i].is_index;
	}
	for (int32_t k = 0; k < n && !g->whole; k++) {
		const eqn_unit *u = w->unit[reader[k]];

		for (int32_t i = 0; i < u->n_reads; i++) {
			if (u->read[i].tensor != g->tensor ||
				stays(g, u, &u->read[i]))
				continue;
			if (first || !rule_dropped(w, SETTLE_RULE_REGION))
				add_read(g, &u->read[i]);
			first = false;
		}
	}
	for (int32_t i = 0; i < t->rank; i++) {
		if (g->whole || g->lo[i] > g->hi[i]) {
			g->lo[i] = 0;
			g->hi[i] = t->shape[i] - 1;
		}
		g->shape[i] = g->hi[i] - g->lo[i] + 1;
	}
}

/* ---- the copy ---- */

static void add_copy(region *g, int32_t call, const char *why)
{
	settled *w = g->w;
	ir_system *s = w->s;
	const sys_tensor t = s->tensor.at[g->tensor];
	sys_eqn e = {.label = "keep",
		.op = "keep",
		.why = why,
		.call = call,
		.monoid = IR_SET,
		.n_out = 1,
		.scan_axis = -1};
	const ix_form *at[TN_MAX_RANK];
	ix_dom d = {0};
	int32_t axis = 0, id;

	g->copy = e.out[0] = ir_add_tensor(s,
		arena_printf(w->a, "%s_kept", t.name), t.dtype, t.rank,
		g->shape);
	for (int32_t i = 0; i < t.rank; i++)
		if (g->shape[i] > 1)
			e.axis[e.n_axes++] = (sys_axis){
				.extent = g->shape[i],
				.kind = AXIS_P,
				.name = arena_printf(w->a, "i_%d", (int)i)};
	e.n_left = e.n_axes;
	d.box = ir_eqn_box(s, &e);
	for (int32_t i = 0; i < t.rank; i++)
		at[i] = ix_addc(s->x,
			g->shape[i] > 1 ? ix_axis(s->x, &d, axis++)
					: ix_const(s->x, 0),
			g->lo[i]);
	e.body[0] = ex_read(s, g->tensor,
		ix_linearise(s->x, &d, t.rank, t.shape, at));
	id = ir_add_eqn(s, &e);
	if (w->unit != NULL)
		w->unit[id] = eqn_unit_new(w->g, &s->eqn.at[id], id);
}

/* ---- its readers ---- */

static const expr *see_copy(void *arg, const expr *read, const ix_dom *d)
{
	const region *g = arg;
	ir_system *s = g->w->s;
	const sys_tensor *t = &s->tensor.at[g->tensor];
	const ix_form *at[TN_MAX_RANK];
	eqn_read r = {.tensor = read->tensor,
		.at = read->form,
		.dom = *d,
		.in_init = g->in_init};

	if (read->tensor != g->tensor || stays(g, g->u, &r))
		return NULL;
	ix_delinearise(s->x, d, read->form, t->rank, t->shape, at);
	for (int32_t i = 0; i < t->rank; i++)
		at[i] = g->shape[i] == 1 ? ix_const(s->x, 0)
					 : ix_addc(s->x, at[i], -g->lo[i]);
	return ex_read(
		s, g->copy, ix_linearise(s->x, d, t->rank, g->shape, at));
}

static const expr *redirect(region *g, const expr *e, const ix_dom *d)
{
	ir_system *s = g->w->s;
	const ix_form *at[IR_MAX_AXES];

	for (int32_t i = 0; i < d->box.n; i++)
		at[i] = ix_axis(s->x, d, i);
	return ex_subst(s, d, e, d->box.n, d->box.extent, at, see_copy, g);
}

/* Replaces the whole tensor: for data in indices, and opaque rows. */
static void rename_reads(region *g, sys_eqn *e, const ix_dom *body,
	const ix_dom *init)
{
	settled *w = g->w;
	int32_t *number = arena_array(w->a, int32_t, w->s->tensor.n + 1);
	int32_t *in = arena_array(w->a, int32_t, e->n_opaque_in + 1);

	for (int32_t t = 0; t < w->s->tensor.n; t++)
		number[t] = t == g->tensor ? g->copy : t;
	for (int32_t i = 0; i < e->n_opaque_in; i++)
		in[i] = number[e->opaque_in[i]];
	e->opaque_in = in;
	for (int32_t k = 0; k < e->n_out && e->opaque == NULL; k++) {
		e->body[k] = ex_renumber(w->s, body, e->body[k], number);
		if (e->init[k] != NULL)
			e->init[k] = ex_renumber(
				w->s, init, e->init[k], number);
	}
	if (e->push != NULL)
		e->push = ir_renumber(w->s, body, e->push, number);
}

static void make_see(region *g, int32_t source)
{
	settled *w = g->w;
	sys_eqn *e = arena_copy(
		w->a, &w->unit[source]->e, sizeof w->unit[source]->e);
	int64_t *numel = arena_array(w->a, int64_t, 1);
	ix_dom body = {.box = ir_eqn_box(w->s, e)}, init = body;

	g->u = w->unit[source];
	init.box.n = e->n_left;
	if (e->push != NULL) {
		*numel = w->s->tensor.at[e->out[0]].numel;
		init.box = (ix_box){.n = 1, .extent = numel};
	}
	if (g->whole) {
		rename_reads(g, e, &body, &init);
	} else {
		for (int32_t k = 0; k < e->n_out; k++) {
			g->in_init = false;
			e->body[k] = redirect(g, e->body[k], &body);
			g->in_init = true;
			if (e->init[k] != NULL)
				e->init[k] = redirect(g, e->init[k], &init);
		}
	}
	w->unit[source] = eqn_unit_new(w->g, e, source);
	w->writes[source] = NULL;
}

void settle_keep(settled *w, int32_t tensor, int32_t n, const int32_t *reader,
	const char *why)
{
	region g = {.w = w, .tensor = tensor};

	find_region(&g, n, reader);
	add_copy(&g, w->unit[reader[0]]->e.call, why);
	for (int32_t k = 0; k < n; k++)
		make_see(&g, reader[k]);
}

void settle_outputs(settled *w)
{
	ir_system *s = w->s;
	int32_t n = s->tensor.n;
	int32_t *copy = arena_array(w->a, int32_t, n + 1);

	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t t = s->output.at[i];
		region g = {.w = w, .tensor = t, .whole = true};

		if (t >= n || !settle_is_destroyed(w, t) ||
			s->tensor.at[t].numel == 0 ||
			rule_dropped(w, SETTLE_RULE_OUTPUT))
			continue;
		if (copy[t] == 0) {
			find_region(&g, 0, NULL);
			add_copy(&g, s->eqn.n > 0 ? s->eqn.at[s->eqn.n - 1].call : 0,
				"it is returned, and overwritten later");
			copy[t] = g.copy;
		}
		s->output.at[i] = copy[t];
		s->tensor.at[copy[t]].is_output = true;
		s->tensor.at[t].is_output = false;
	}
}
