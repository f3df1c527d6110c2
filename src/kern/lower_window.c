/*
 * lower_window.c: overlapping vectors in registers. If an unrolled loop inside
 * a vector loop reads one line at several shifts, each iteration loads one
 * aligned vector of the line, earlier vectors are kept from the previous
 * iteration, and each shifted vector is combined from two of them:
 *
 *   for (..) {                      w0 = x[j - 16 ..]; w1 = x[j ..];
 *     x[j - 1] x[j] x[j + 1]   ->   for (..) {
 *   }                                 w2 = x[j + 16 ..];
 *                                     w0 w1 from 15; w1; w1 w2 from 1
 *                                     w0 = w1; w1 = w2; }
 *
 * The loads are at the start of the iteration, without the guards of the reads.
 * It is proved that, under its guard, both vectors of a read are inside of the
 * tensor; where the guard may fail, the address is clamped, and the loaded
 * values are not used.
 */
#include "kern/lower.h"

#define MAX_READS 64
#define LEAST 3 /* the least number of shifts */

struct seen {
	int32_t param;
	const ix_form *line; /* the address without its constant */
	int64_t at;
	bool inside; /* inside of the tensor even if its guard does not hold */
};

struct scan {
	lowering *lw;
	const ix_form **with;
	bool unrolled, full;
	int32_t n;
	struct seen at[MAX_READS];
};

static int64_t aligned(const lowering *lw, int64_t at)
{
	return floor_div(at, lw->lanes) * lw->lanes;
}

static void see(struct scan *w, const ix_dom *d, const expr *e)
{
	lowering *lw = w->lw;
	const sys_tensor *t = &lw->s->tensor.at[e->tensor];
	struct seen s = {loop_param(lw->k, e->tensor), NULL, 0, true};
	int64_t stride, min, max, low;
	int32_t q, c;

	if (s.param < 0 || loop_maker(lw->k, e->tensor, &q, &c) ||
		ix_has_fun(e->form) ||
		lw->lanes != machine_lanes(lw->k->machine,
				    (int32_t)dtype_size(t->dtype)) ||
		t->dtype == TN_BOOL || lw_computed(t->dtype) != t->dtype ||
		!ix_stride(e->form, lw->vvar,
			lw->k->var[lw->vvar].extent, &stride) ||
		stride != 1)
		return;
	s.at = e->form->c0;
	s.line = ix_addc(lw->s->x, e->form, -s.at);
	low = s.at - aligned(lw, s.at); /* elements before the read */
	ix_range(d, e->form, &min, &max);
	if (min < low || (low > 0 && max + lw->lanes - low >= t->numel))
		return;
	ix_range(lw->dom, e->form, &min, &max);
	s.inside = min >= low && max + lw->lanes - low < t->numel;
	for (int32_t i = 0; i < w->n; i++)
		if (w->at[i].param == s.param && w->at[i].at == s.at &&
			w->at[i].line == s.line)
			return;
	if (w->n == MAX_READS)
		w->full = true;
	else
		w->at[w->n++] = s;
}

static void walk(struct scan *w, const ix_dom *d, const expr *e)
{
	ix_dom in = *d;

	if (e->kind == EX_READ)
		see(w, d, e);
	for (int32_t i = 0; i < e->n_args; i++) {
		if (e->kind == EX_SELECT && i > 0)
			in = ir_dom_when(w->lw->s, d, e->arg[0], i == 1);
		walk(w, &in, e->arg[i]);
	}
}

static void scan(struct scan *w, const loop_node *n)
{
	lowering *lw = w->lw;

	for (int32_t i = 0; i < n->n_child; i++) {
		const loop_node *c = n->child[i];
		bool was = w->unrolled;
		const ix_form *f;

		if (c->kind == LOOP_STMT && w->unrolled) {
			const loop_eqn *e = &lw->k->eqn[c->eqn];

			for (int32_t j = 0; j < e->e->n_out; j++)
				walk(w, lw->dom,
					ex_subst(lw->s, lw->dom, e->body[j],
						lw->k->n_vars,
						lw->dom->box.extent, w->with,
						NULL, NULL));
			continue;
		}
		if (c->kind != LOOP_FOR || !lw_is_unrolled(lw, c))
			continue;
		w->unrolled = true;
		f = w->with[c->var];
		for (int32_t j = 0; j < c->unroll; j++) {
			w->with[c->var] = ix_const(lw->s->x, j);
			scan(w, c);
		}
		w->with[c->var] = f;
		w->unrolled = was;
	}
}

/* Finds the kept vectors of this line at `at`. */
static const struct window *find(const lowering *lw, int32_t param,
	const ix_form *line, form base, int64_t at)
{
	for (int32_t i = 0; i < lw->window.n; i++) {
		const struct window *w = &lw->window.at[i];

		if (w->param == param && w->at == at &&
			(base != NULL ? w->base == base : w->line == line))
			return w;
	}
	return NULL;
}

static const struct window *next_of(const lowering *lw, const struct window *w)
{
	return find(lw, w->param, w->line, NULL, w->at + lw->lanes);
}

static tn_dtype dtype_of(const lowering *lw, int32_t param)
{
	return lw->s->tensor.at[lw->k->param[param]].dtype;
}

static void add(lowering *lw, const struct seen *s, int64_t at)
{
	struct window w = {.param = s->param,
		.line = s->line,
		.at = at,
		.inside = s->inside};

	w.v = lw_register(
		lw, lw_type(lw, dtype_of(lw, s->param), lw->lanes), 0);
	*vec_push(lw->a, &lw->window) = w;
}

static void load(lowering *lw, const struct window *w)
{
	int64_t numel = lw->s->tensor.at[lw->k->param[w->param]].numel;
	form at = lw_addc(lw, lw_form(lw, w->line, 0), w->at);

	if (!w->inside)
		at = kern_clamp(lw->b, at, 0, numel - lw->lanes);
	lw_set(lw, w->v, lw_load_from(lw, w->param, at, w->v, 0));
}

/* The number of shifts of the same line, at most a vector apart. */
static int32_t neighbours(const struct scan *w, const struct seen *s)
{
	int32_t n = 0;

	for (int32_t i = 0; i < w->n; i++)
		n += w->at[i].param == s->param &&
		     w->at[i].at - s->at < w->lw->lanes &&
		     s->at - w->at[i].at < w->lw->lanes &&
		     w->at[i].line == s->line;
	return n;
}

/*
 * Called before the vector loop n, which has at least one iteration: loads the
 * first vectors.
 */
void lw_open_windows(lowering *lw, const loop_node *n)
{
	struct scan w = {.lw = lw};

	lw->window.n = 0;
	if (loop_writes_input(lw->k) || loop_has_abreast(lw->k, n))
		return; /* rows abreast need the registers */
	w.with = arena_array(lw->a, const ix_form *, lw->k->n_vars + 1);
	for (int32_t i = 0; i < lw->k->n_vars; i++)
		w.with[i] = ix_axis(lw->s->x, lw->dom, i);
	scan(&w, n);
	for (int32_t i = 0; i < w.n && !w.full; i++) {
		const struct seen *s = &w.at[i];
		int64_t at = aligned(lw, s->at);

		if (neighbours(&w, s) < LEAST)
			continue;
		if (find(lw, s->param, s->line, NULL, at) == NULL)
			add(lw, s, at);
		if (s->at != at && find(lw, s->param, s->line, NULL,
					   at + lw->lanes) == NULL)
			add(lw, s, at + lw->lanes);
	}
	for (int32_t i = 0; i < lw->window.n; i++)
		if (next_of(lw, &lw->window.at[i]) != NULL)
			load(lw, &lw->window.at[i]);
}

/* Called at the start of an iteration: loads the new vectors. */
void lw_enter_windows(lowering *lw)
{
	for (int32_t i = 0; i < lw->window.n; i++) {
		struct window *w = &lw->window.at[i];

		w->base = lw_form(lw, w->line, 0);
		w->base = lw_addc(lw, w->base, -w->base->c0);
		if (next_of(lw, w) == NULL)
			load(lw, w);
	}
}

/* Called at the end of an iteration: shifts the kept vectors by one. */
void lw_move_windows(lowering *lw)
{
	for (int32_t i = 0; i < lw->window.n; i++) {
		const struct window *w = &lw->window.at[i], *next;

		if (find(lw, w->param, w->line, NULL, w->at - lw->lanes) !=
			NULL)
			continue;
		/* only the first read of each line */
		for (int32_t k = 0; k < MAX_READS; k++) {
			next = next_of(lw, w);
			if (next == NULL)
				break;
			lw_set(lw, w->v, next->v);
			w = next;
		}
	}
}

bool lw_window(lowering *lw, const struct place_of *p, val *out)
{
	const struct window *a, *b;
	int64_t list[KERN_MAX_LANES], at;
	form base;

	if (lw->window.n == 0 || lw->lanes == 1 || p->buf != NULL ||
		p->plus != NULL || !p->affine || p->stride != 1)
		return false;
	base = lw_form(lw, p->at, 0);
	at = aligned(lw, base->c0);
	for (int32_t i = 0; i < lw->lanes; i++)
		list[i] = base->c0 - at + i;
	base = lw_addc(lw, base, -base->c0);
	a = find(lw, p->param, NULL, base, at);
	b = list[0] == 0 ? a
			 : find(lw, p->param, NULL, base, at + lw->lanes);
	if (a == NULL || b == NULL)
		return false;
	*out = list[0] == 0 ? a->v : lw_shuffle(lw, a->v, b->v, list);
	return true;
}
