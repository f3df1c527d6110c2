/*
 * window.c: vectors that overlap. An unrolled loop inside a vector loop reads
 * one line at several shifts. Of every line one aligned vector is loaded in an
 * iteration, those before it are kept from the last one, and the shifted ones
 * are put together from two of them:
 *
 *   for (..) {                      w0 = x[j - 16 ..]; w1 = x[j ..];
 *     x[j - 1] x[j] x[j + 1]   ->   for (..) {
 *   }                                 w2 = x[j + 16 ..];
 *                                     w0 w1 from 15; w1; w1 w2 from 1
 *                                     w0 = w1; w1 = w2; }
 *
 * The loads stand in front of the iteration, without the guards of the reads:
 * it is proved that under its guard a read's two vectors lie in the tensor;
 * where the guard may fail the address is clamped, and nobody looks at what
 * was loaded.
 */
#include "emit/local.h"

#include <inttypes.h>

#define MAX_READS 64
#define LEAST 3 /* shifts */

struct seen {
	int32_t param;
	const char *base;
	int64_t at;
	bool inside; /* whether its guard holds or not */
};

struct scan {
	emitter *em;
	const ix_form **with;
	bool unrolled, full;
	int32_t n;
	struct seen at[MAX_READS];
};

static int64_t aligned(const emitter *em, int64_t at)
{
	return floor_div(at, em->lanes) * em->lanes;
}

static void see(struct scan *w, const ix_dom *d, const expr *e)
{
	emitter *em = w->em;
	const sys_tensor *t = &em->s->tensor.at[e->tensor];
	struct seen s = {loop_param(em->k, e->tensor), NULL, 0, true};
	int64_t stride, min, max, low;
	int32_t q, c, i;

	if (s.param < 0 || loop_maker(em->k, e->tensor, &q, &c) ||
		ix_has_fun(e->form) ||
		(int32_t)dtype_size(t->dtype) * em->lanes !=
			em->k->machine->vector_bytes ||
		t->dtype == TN_BOOL || em_computed(t->dtype) != t->dtype ||
		!loop_stride(e->form, em->vvar, em->k->var[em->vvar].extent,
			&stride) ||
		stride != 1)
		return;
	s.base = em_form_split(em, e->form, &s.at);
	low = s.at - aligned(em, s.at); /* elements in front of the read */
	ix_range(d, e->form, &min, &max);
	if (min < low || (low > 0 && max + em->lanes - low >= t->numel))
		return;
	ix_range(em->dom, e->form, &min, &max);
	s.inside = min >= low && max + em->lanes - low < t->numel;
	for (i = 0; i < w->n; i++)
		if (w->at[i].param == s.param && w->at[i].at == s.at &&
			strcmp(w->at[i].base, s.base) == 0)
			return;
	if (w->n == MAX_READS)
		w->full = true;
	else
		w->at[w->n++] = s;
}

static void walk(struct scan *w, const ix_dom *d, const expr *e)
{
	ix_dom in = *d;
	int32_t i;

	if (e->kind == EX_READ)
		see(w, d, e);
	for (i = 0; i < e->n_args; i++) {
		if (e->kind == EX_SELECT && i > 0)
			in = ir_dom_when(w->em->s, d, e->arg[0], i == 1);
		walk(w, &in, e->arg[i]);
	}
}

static void scan(struct scan *w, const loop_node *n)
{
	emitter *em = w->em;
	int32_t i, j;

	for (i = 0; i < n->n_child; i++) {
		const loop_node *c = n->child[i];
		bool was = w->unrolled;
		const ix_form *f;

		if (c->kind == LOOP_STMT && w->unrolled) {
			const loop_eqn *e = &em->k->eqn[c->eqn];

			for (j = 0; j < e->e->n_out; j++)
				walk(w, em->dom,
					ex_subst(em->s, em->dom, e->body[j],
						em->k->n_vars,
						em->dom->box.extent, w->with,
						NULL, NULL));
			continue;
		}
		if (c->kind != LOOP_FOR || !em_is_unrolled(em, c))
			continue;
		w->unrolled = true;
		f = w->with[c->var];
		for (j = 0; j < c->unroll; j++) {
			w->with[c->var] = ix_const(em->s->x, j);
			scan(w, c);
		}
		w->with[c->var] = f;
		w->unrolled = was;
	}
}

static const struct window *find(
	const emitter *em, int32_t param, const char *base, int64_t at)
{
	int32_t i;

	for (i = 0; i < em->window.n; i++)
		if (em->window.at[i].param == param &&
			em->window.at[i].at == at &&
			strcmp(em->window.at[i].base, base) == 0)
			return &em->window.at[i];
	return NULL;
}

static void add(emitter *em, const struct seen *s, int64_t at)
{
	int32_t tensor = em->k->param[s->param];
	tn_dtype t = em->s->tensor.at[tensor].dtype;
	struct window w = {s->param, s->base, at, em_fresh(em, "w"), NULL};
	const char *where = at == 0 ? s->base
				    : arena_printf(em->a, "%s %c %" PRIu64,
					      s->base, at < 0 ? '-' : '+',
					      at < 0 ? -(uint64_t)at
						     : (uint64_t)at);

	if (!s->inside)
		where = arena_printf(em->a, "%s(%s, 0, %" PRId64 ")",
			em_own(em, "clamp_i64"), where,
			em->s->tensor.at[tensor].numel - em->lanes);
	em->used_param[s->param] = true;
	w.load = arena_printf(em->a, "%s(&p%d[%s])",
		em_use(em, "load", t, em->lanes), s->param, where);
	em_line(em, "%s %s = { 0 };", em_type(em, t, em->lanes), w.name);
	em_line(em, "(void)%s;", w.name); /* guards may decide otherwise */
	*vec_push(em->a, &em->window) = w;
}

/* Shifts of the same line, a vector apart at most. */
static int32_t neighbours(const struct scan *w, const struct seen *s)
{
	int32_t i, n = 0;

	for (i = 0; i < w->n; i++)
		n += w->at[i].param == s->param &&
		     w->at[i].at - s->at < w->em->lanes &&
		     s->at - w->at[i].at < w->em->lanes &&
		     strcmp(w->at[i].base, s->base) == 0;
	return n;
}

/* In front of the vector loop n, which has iterations. */
void em_open_windows(emitter *em, const loop_node *n)
{
	struct scan w = {.em = em};
	int32_t i;

	em->window.n = 0;
	if (loop_writes_input(em->k))
		return;
	w.with = arena_array(em->a, const ix_form *, em->k->n_vars + 1);
	for (i = 0; i < em->k->n_vars; i++)
		w.with[i] = ix_axis(em->s->x, em->dom, i);
	scan(&w, n);
	for (i = 0; i < w.n && !w.full; i++) {
		const struct seen *s = &w.at[i];
		int64_t at = aligned(em, s->at);

		if (neighbours(&w, s) < LEAST)
			continue;
		if (find(em, s->param, s->base, at) == NULL)
			add(em, s, at);
		if (s->at != at &&
			find(em, s->param, s->base, at + em->lanes) == NULL)
			add(em, s, at + em->lanes);
	}
	for (i = 0; i < em->window.n; i++) {
		const struct window *v = &em->window.at[i];

		if (find(em, v->param, v->base, v->at + em->lanes) != NULL)
			em_line(em, "%s = %s;", v->name, v->load);
	}
}

/* At the start of an iteration: what is new; at its end: on by one vector. */
void em_move_windows(emitter *em, bool start)
{
	int32_t i, j, k;

	for (i = 0; i < em->window.n; i++) {
		const struct window *v = &em->window.at[i], *next;

		next = find(em, v->param, v->base, v->at + em->lanes);
		if (start && next == NULL)
			em_line(em, "%s = %s;", v->name, v->load);
		if (start || find(em, v->param, v->base,
				     v->at - em->lanes) != NULL)
			continue;
		/* the first of a row of vectors */
		for (j = i, k = 0; next != NULL && k < MAX_READS; k++) {
			em_line(em, "%s = %s;", em->window.at[j].name,
				next->name);
			j = (int32_t)(next - em->window.at);
			next = find(em, next->param, next->base,
				next->at + em->lanes);
		}
	}
}

bool em_window(emitter *em, const struct place_of *p, val *out)
{
	const struct window *a, *b;
	const char *base;
	int64_t c, at;
	int32_t i;
	str s;

	if (em->window.n == 0 || em->lanes == 1 || p->buf != NULL ||
		p->base != NULL || !p->affine || p->stride != 1)
		return false;
	base = em_form_split(em, p->at, &c);
	at = aligned(em, c);
	a = find(em, p->param, base, at);
	b = c == at ? a : find(em, p->param, base, at + em->lanes);
	if (a == NULL || b == NULL)
		return false;
	*out = (val){a->name, p->dtype, em->lanes, 0};
	if (c == at)
		return true;
	s = str_new(em->a);
	str_printf(&s, "__builtin_shufflevector(%s, %s", a->name, b->name);
	for (i = 0; i < em->lanes; i++)
		str_printf(&s, ", %d", (int32_t)(c - at) + i);
	str_add(&s, ")");
	out->t = s.at;
	*out = em_name_val(em, *out);
	return true;
}
