/*
 * scales.c: moves a factor of rows away from values of two bytes that are multiplied.
 *
 * Consumes a system. The gradient of attention divides what arrives by the sum of a row's
 * weights, and multiplies the quotients, which are f32, with values and with weights that
 * are bf16. Dots and matrix instructions take factors of two bytes. The factor of a row
 * is the same for all terms of one sum, and stands behind it; or the other factor is a
 * rounded value of this row, which is rounded behind the factor instead:
 *
 *   g[t,e] = cast(d[t,e]) * (1 / z[t])                   r[t] = 1 / z[t]
 *   s[t,u] += g[t,e] * cast(v[u,e])                 ->   h[t,u] += cast(d[t,e]) * cast(v[u,e])
 *                                                        s[t,u] = h[t,u] * r[t]
 *   o[u,e] += g[t,e] * cast(bf16(p[t,u]))           ->   q[t,u] = bf16(p[t,u] * r[t])
 *                                                        o[u,e] += cast(d[t,e]) * cast(q[t,u])
 *
 * Only for bf16, which has the range of f32: no product becomes infinite that was not, but
 * for what overflows in f32. The last bits change; roundings are as many as before.
 */
#include "system/local.h"

/* A value that is a short one times a factor of its row. */
struct scaled {
	const expr *value; /* cast(bf16), over the axes of its equation; NULL: it is none */
	const expr *scale;
	uint32_t axes;	  /* of the equation, that the scale walks */
	int32_t r;	  /* the tensor of the scale; -1: not made yet */
};

struct work {
	ir_system *s;
	struct scaled *of; /* by equation */
	int32_t n;
	sys_eqn *old;
	int32_t *maker; /* by tensor: its equation in old; -1 */
};

/* Is it a bf16 as f32? */
static bool is_short(const expr *e)
{
	return e->kind == EX_CAST && e->dtype == TN_F32 && e->arg[0]->dtype == TN_BF16;
}

/* Does it depend on indices, but for those of reads? */
static bool has_index(const expr *e)
{
	if (e->kind == EX_INDEX || e->kind == EX_INSIDE)
		return true;
	for (int32_t i = 0; i < e->n_args; i++)
		if (has_index(e->arg[i]))
			return true;
	return false;
}

/* ---- scaled values ---- */

static bool is_plain(const struct work *w, const sys_eqn *e)
{
	const sys_tensor *t = &w->s->tensor.at[e->out[0]];

	return e->n_out == 1 && e->opaque == NULL && e->push == NULL &&
	       e->scan_axis < 0 && e->init[0] == NULL && t->storage < 0;
}

/* Splits e into a short value and a scale; false: it is something else. */
static bool split(ir_system *s, const expr *e, const expr **value, const expr **scale)
{
	const expr *arg[IR_MAX_ARGS] = {NULL};

	if (e->kind == EX_SELECT && ex_is_zero(e->arg[2])) {
		if (!split(s, e->arg[1], value, scale))
			return false;
		*scale = ex_select(s, e->arg[0], *scale, e->arg[2]);
		return true;
	}
	if (!ex_is_call(e, "mul"))
		return false;
	for (int32_t i = 0; i < 2; i++) {
		const expr *other = e->arg[1 - i];

		if (is_short(e->arg[i])) {
			*value = e->arg[i];
			*scale = other;
			return true;
		}
		if (split(s, e->arg[i], value, scale)) {
			arg[0] = *scale;
			arg[1] = other;
			*scale = ex_call(s, e->fn, arg);
			return true;
		}
	}
	return false;
}

static void find_scaled(struct work *w, int32_t i)
{
	const sys_eqn *e = &w->s->eqn.at[i];
	struct scaled *o = &w->of[i];
	const expr *value, *scale;

	o->r = -1;
	if (!is_plain(w, e) || e->n_axes > e->n_left || e->body[0]->dtype != TN_F32 ||
		w->s->tensor.at[e->out[0]].dtype != TN_F32 ||
		!split(w->s, e->body[0], &value, &scale) || has_index(scale))
		return;
	o->axes = ex_axes(w->s, scale, e->n_axes);
	if (o->axes == 0 || (o->axes & ~ex_axes(w->s, value, e->n_axes)) != 0 ||
		o->axes == ((uint32_t)1 << e->n_axes) - 1)
		return;
	o->value = value;
	o->scale = scale;
}

/* ---- sums of products with them ---- */

/* A term: a scaled value times a short one, under conditions. */
struct term {
	int32_t of; /* the equation of the scaled value */
	const expr *read, *other;
	int32_t axis[IR_MAX_AXES]; /* of the sum, by left axis of `of` */
	/* if the scale walks what is added up: the value that other rounds, its equation,
	 * and the axes of the sum, by left axis of that */
	const expr *rounded;
	int32_t from;
	int32_t from_axis[IR_MAX_AXES];
};

static bool is_scaled(const struct work *w, const expr *e, struct term *t)
{
	int32_t m = e->kind == EX_READ ? w->maker[e->tensor] : -1;

	if (m < 0 || w->of[m].value == NULL)
		return false;
	t->of = m;
	t->read = e;
	return true;
}

static bool find_term(const struct work *w, const expr *e, struct term *t)
{
	while (e->kind == EX_SELECT && ex_is_zero(e->arg[2]))
		e = e->arg[1];
	if (!ex_is_call(e, "mul"))
		return false;
	for (int32_t i = 0; i < 2; i++)
		if (is_scaled(w, e->arg[i], t) && is_short(e->arg[1 - i])) {
			t->other = e->arg[1 - i];
			return true;
		}
	return false;
}

/* The axes of the sum that the scale walks. */
static uint32_t scale_axes(const struct work *w, const struct term *t)
{
	uint32_t all = 0;

	for (int32_t i = 0; i < w->old[t->of].n_left; i++)
		if ((w->of[t->of].axes >> i & 1) != 0)
			all |= (uint32_t)1 << t->axis[i];
	return all;
}

/* Finds the value that the other factor rounds, if it has all axes of the scale. */
static bool find_rounded(const struct work *w, const sys_eqn *e, struct term *t)
{
	const expr *p = t->other->arg[0];
	uint32_t walked = 0;

	if (p->kind != EX_CAST || p->arg[0]->dtype != TN_F32 || p->arg[0]->kind != EX_READ)
		return false;
	t->rounded = p->arg[0];
	t->from = w->maker[t->rounded->tensor];
	if (t->from < 0 || w->old[t->from].n_out != 1 || w->old[t->from].push != NULL ||
		w->old[t->from].opaque != NULL ||
		!ir_read_axes(w->s, e, t->rounded->form, &w->old[t->from], t->from_axis))
		return false;
	for (int32_t i = 0; i < w->old[t->from].n_left; i++)
		walked |= (uint32_t)1 << t->from_axis[i];
	return (scale_axes(w, t) & ~walked) == 0;
}

/* Is it a sum of such terms whose scale can be moved? */
static bool find_sum(const struct work *w, const sys_eqn *e, struct term *t)
{
	uint32_t left = ((uint32_t)1 << e->n_left) - 1;

	*t = (struct term){.of = -1};
	if (!is_plain(w, e) || e->monoid != IR_SUM || e->n_axes == e->n_left ||
		e->body[0]->dtype != TN_F32 ||
		!find_term(w, e->body[0], t) ||
		!ir_read_axes(w->s, e, t->read->form, &w->old[t->of], t->axis))
		return false;
	return (scale_axes(w, t) & ~left) == 0 || find_rounded(w, e, t);
}

/* ---- what they become ---- */

/* Adds the equation of the scale, over the axes that it walks. */
static int32_t add_scale(struct work *w, int32_t of)
{
	ir_system *s = w->s;
	struct scaled *o = &w->of[of];
	sys_eqn e = w->old[of];
	int64_t extent[IR_MAX_AXES], shape[IR_MAX_AXES];
	const ix_form *with[IR_MAX_AXES];
	ix_box from = ir_eqn_box(s, &e);
	ix_dom d = {.box = {0, extent}};

	if (o->r >= 0)
		return o->r;
	for (int32_t i = 0; i < from.n; i++)
		if ((o->axes >> i & 1) != 0) {
			e.axis[d.box.n] = e.axis[i];
			shape[d.box.n] = extent[d.box.n] = e.axis[i].extent;
			d.box.n++;
		}
	for (int32_t i = 0, k = 0; i < from.n; i++)
		with[i] = (o->axes >> i & 1) != 0 ? ix_axis(s->x, &d, k++)
						  : ix_const(s->x, 0);
	e.n_axes = e.n_left = d.box.n;
	e.monoid = IR_SET;
	e.label = arena_printf(s->a, "%s_scale", e.label);
	e.body[0] = ex_subst(s, &d, o->scale, from.n, from.extent, with, NULL, NULL);
	e.out[0] = o->r = ir_add_tensor(s,
		arena_printf(s->a, "%s.scale", s->tensor.at[e.out[0]].name), TN_F32,
		e.n_left, shape);
	ir_add_eqn(s, &e);
	return o->r;
}

/* The scale's element, where axis[i] of d is left axis i of the scaled value. */
static const expr *scale_at(struct work *w, int32_t of, const ix_dom *d, const int32_t *axis)
{
	const ix_form *at[IR_MAX_AXES];
	int64_t shape[IR_MAX_AXES];
	int32_t n = 0;

	for (int32_t i = 0; i < w->old[of].n_left; i++)
		if ((w->of[of].axes >> i & 1) != 0) {
			shape[n] = w->old[of].axis[i].extent;
			at[n++] = ix_axis(w->s->x, d, axis[i]);
		}
	return ex_read(w->s, w->of[of].r, ix_linearise(w->s->x, d, n, shape, at));
}

static const expr *times(ir_system *s, const expr *x, const expr *y)
{
	const expr *arg[IR_MAX_ARGS] = {x, y};

	return ex_call(s, ir_scalar_find("mul", 3), arg);
}

struct change {
	struct work *w;
	const struct term *t;
	int32_t rounded; /* the tensor that replaces what is rounded; -1 */
};

/* The body with the short value in place of the scaled one. */
static const expr *without_scale(const struct change *c, const expr *e, const ix_dom *d)
{
	const struct work *w = c->w;
	const expr *arg[IR_MAX_ARGS] = {NULL};

	if (e == c->t->read)
		return ir_at_number(
			w->s, &w->old[c->t->of], w->of[c->t->of].value, d, e->form);
	if (e == c->t->other && c->rounded >= 0)
		return ex_cast(w->s, TN_F32, ex_read(w->s, c->rounded, c->t->rounded->form));
	if (e->kind == EX_SELECT)
		return ex_select(w->s, e->arg[0], without_scale(c, e->arg[1], d), e->arg[2]);
	if (!ex_is_call(e, "mul"))
		return e;
	for (int32_t i = 0; i < 2; i++)
		arg[i] = without_scale(c, e->arg[i], d);
	return ex_call(w->s, e->fn, arg);
}

static const expr *short_body(struct work *w, const sys_eqn *e, const struct term *t,
	int32_t rounded)
{
	struct change c = {w, t, rounded};
	ix_dom d = {.box = ir_eqn_box(w->s, e)};

	return without_scale(&c, e->body[0], &d);
}

/* The scale stands behind the sum. */
static void put_behind(struct work *w, const sys_eqn *old, const struct term *t)
{
	ir_system *s = w->s;
	sys_eqn sum = *old, e = *old;
	int64_t shape[IR_MAX_AXES];
	const char *name = s->tensor.at[old->out[0]].name;
	ix_dom d;

	for (int32_t i = 0; i < old->n_left; i++)
		shape[i] = old->axis[i].extent;
	sum.body[0] = short_body(w, old, t, -1);
	sum.label = arena_printf(s->a, "%s_sum", old->label);
	sum.out[0] = ir_add_tensor(
		s, arena_printf(s->a, "%s.short", name), TN_F32, old->n_left, shape);
	ir_add_eqn(s, &sum);
	e.monoid = IR_SET;
	e.n_axes = e.n_left;
	d = (ix_dom){.box = ir_eqn_box(s, &e)};
	e.body[0] = times(s, ex_read(s, sum.out[0], ir_left_number(s, &e)),
		scale_at(w, t->of, &d, t->axis));
	e.body[0] = ex_cast(s, s->tensor.at[e.out[0]].dtype, e.body[0]);
	ir_add_eqn(s, &e);
}

/* What is rounded is multiplied by the scale before. */
static void put_inside(struct work *w, const sys_eqn *old, const struct term *t)
{
	ir_system *s = w->s;
	sys_eqn p = w->old[t->from], e = *old;
	int64_t shape[IR_MAX_AXES];
	int32_t axis[IR_MAX_AXES] = {0}, of[IR_MAX_AXES] = {0};
	ix_dom d;

	for (int32_t i = 0; i < p.n_left; i++) {
		shape[i] = p.axis[i].extent;
		axis[t->from_axis[i]] = i;
	}
	for (int32_t i = 0; i < w->old[t->of].n_left; i++)
		of[i] = axis[t->axis[i]];
	p.monoid = IR_SET;
	p.n_axes = p.n_left;
	p.init[0] = NULL;
	p.is_view = false;
	p.label = arena_printf(s->a, "%s_scaled", p.label);
	d = (ix_dom){.box = ir_eqn_box(s, &p)};
	p.body[0] = ex_cast(s, TN_BF16,
		times(s, ex_read(s, t->rounded->tensor, ir_left_number(s, &p)),
			scale_at(w, t->of, &d, of)));
	p.out[0] = ir_add_tensor(s,
		arena_printf(s->a, "%s.scaled%d", s->tensor.at[t->rounded->tensor].name,
			s->eqn.n),
		TN_BF16, p.n_left, shape);
	ir_add_eqn(s, &p);
	e.body[0] = short_body(w, old, t, p.out[0]);
	ir_add_eqn(s, &e);
}

static void rewrite(struct work *w)
{
	ir_system *s = w->s;

	s->eqn.n = 0;
	for (int32_t i = 0; i < w->n; i++) {
		const sys_eqn *e = &w->old[i];
		struct term t;

		if (!find_sum(w, e, &t)) {
			ir_add_eqn(s, e);
			continue;
		}
		add_scale(w, t.of);
		if (t.rounded != NULL)
			put_inside(w, e, &t);
		else
			put_behind(w, e, &t);
	}
}

ir_system *ir_move_scales(ir_system *s)
{
	struct work w = {.s = s, .n = s->eqn.n};
	bool any = false;

	w.of = arena_array(s->a, struct scaled, w.n + 1);
	w.old = arena_copy(s->a, s->eqn.at, (size_t)w.n * sizeof *w.old);
	w.maker = arena_array(s->a, int32_t, s->tensor.n + 1);
	for (int32_t t = 0; t < s->tensor.n; t++)
		w.maker[t] = s->tensor.at[t].eqn;
	for (int32_t i = 0; i < w.n; i++)
		find_scaled(&w, i);
	for (int32_t i = 0; i < w.n && !any; i++) {
		struct term t;

		any = find_sum(&w, &w.old[i], &t);
	}
	if (!any)
		return s;
	rewrite(&w);
	return ir_prune(s);
}
