/*
 * slide.c: convolutions whose pixels are rows of tiles, and whose filters are columns.
 *
 * Consumes a product of steady weights and of a sliding window of an image, which
 * stands alone in its loops. The weights are copied once for all runs, filters
 * side by side; the image is copied once for all chunks, with its border, and not
 * each window of it: a tile reads one element for each of its pixels, wherever it
 * lies, so a stride or a border costs nothing. Where a tile leaves out what is outside
 * of the image (border.c), it is not copied. Sums leave in a buffer, because
 * filters do not adjoin in the result.
 *
 *   o[f, y, x] += sel(inside .. , image[c, 2 y + h - 1, 2 x + w - 1], 0) * w[f, c, h, w]
 *     ->
 *   slide 2 y + h as u;  slide 2 x + w as v
 *   pad[c, u, v] = sel(inside .. , image[c, u - 1, v - 1], 0);  w'[c, h, w, f] = w[..]
 *   tiles of 14 x by 32 f:  t[x, f] += pad[c, 2 y + h, 2 x + w] * w'[c, h, w, f]
 */
#include "schedule/contract/contract.h"

/* ---- what it is ---- */

/* Does it sum over more than channels? */
static bool has_window(const loop_kernel *k, const contract_product *p)
{
	return contract_elements(k, p->sums) > k->var[p->s].extent;
}

/* Does a sum walk along a row of pixels? */
static bool slides_along(const loop_kernel *k, const contract_product *p)
{
	contract_image m;
	int64_t row, step;

	if (!contract_find_image(p->x, &m) ||
		!ix_stride(m.read->form, p->i, k->var[p->i].extent, &row) ||
		!mul_ok(row < 0 ? -row : row, k->var[p->i].extent, &row))
		return false;
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((p->sums & BIT(v)) != 0 &&
			ix_stride(m.read->form, v, k->var[v].extent, &step) &&
			(step < 0 ? -step : step) < row)
			return true;
	return false;
}

/* Are the pixels of a row apart? */
static bool is_strided(const loop_kernel *k, const contract_product *p)
{
	return p->x->kind == EX_READ && !contract_adjoins(k, p->x->form, p->i);
}

/* ---- the copy of the image ---- */

/* By how much the address advances for each 1 of the border's form; 0: there is no
 * such distance. */
static int64_t distance(
	const loop_kernel *k, const contract_image *m, const ix_form *border)
{
	int64_t by = 0;

	for (int32_t i = 0; i < border->n; i++) {
		const ix_atom *t = border->t[i].atom;
		int64_t s, n = t->kind == IX_DIGIT ? k->var[t->axis].extent : 0;

		if (t->kind != IX_DIGIT || t->lo != 1 || t->hi < n ||
			!ix_stride(m->read->form, t->axis, n, &s) ||
			s % border->t[i].coef != 0 ||
			(i > 0 && s / border->t[i].coef != by))
			return 0;
		by = s / border->t[i].coef;
	}
	return by;
}

/* Can each border get one variable for what its form walks? *rest: the address
 * without the borders' variables. */
static bool has_slides(
	loop_kernel *k, const contract_image *m, const ix_form **rest)
{
	loop_set seen = 0;
	int64_t numel = k->s->tensor.at[m->read->tensor].numel, n = 1;

	*rest = m->read->form;
	for (int32_t i = 0; i < m->n; i++) {
		const ix_form *f = m->border[i]->form;
		int64_t by = distance(k, m, f), min, max;

		if (by == 0 || (loop_form_vars(f) & seen) != 0)
			return false;
		seen |= loop_form_vars(f);
		f = ix_addc(k->s->x, f, -f->c0);
		ix_range(&k->dom, f, &min, &max);
		if (!mul_ok(n, max - min + 1, &n))
			return false;
		*rest = ix_sub(k->s->x, &k->dom, *rest, ix_scale(k->s->x, f, by));
	}
	if ((loop_form_vars(*rest) & seen) != 0)
		return false;
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((loop_form_vars(*rest) & BIT(v)) != 0 &&
			!mul_ok(n, k->var[v].extent, &n))
			return false;
	return m->n == 0 || (n <= k->machine->product.turn_copy &&
				    n / k->machine->product.slide_copies <= numel);
}

/* The part of the border's form that depends on variables, from 0 on: the slide. */
static const ix_form *slide_of(
	loop_kernel *k, const contract_image *m, int32_t i, int64_t *min)
{
	const ix_form *f = m->border[i]->form;
	int64_t max;

	f = ix_addc(k->s->x, f, -f->c0);
	ix_range(&k->dom, f, min, &max);
	return ix_addc(k->s->x, f, -*min);
}

/* Variables of the copy, slowest first: as their elements lie in the image. */
static int32_t in_order(const loop_kernel *k, loop_set vars, const ix_form *at,
	int32_t *var)
{
	int64_t s[IX_MAX_AXES];
	int32_t n = 0;

	for (int32_t v = 0; v < k->n_vars; v++) {
		int32_t i = n;

		if ((vars & BIT(v)) == 0)
			continue;
		ix_stride(at, v, k->var[v].extent, &s[v]);
		for (; i > 0 && s[var[i - 1]] < s[v]; i--)
			var[i] = var[i - 1];
		var[i] = v;
		n++;
	}
	return n;
}

/* The image at variables `first` on, which slide over its borders, as the copy is to
 * have it. *vars: those that it walks. */
static const expr *image_at(loop_kernel *k, const contract_image *m, int32_t first,
	const ix_form *rest, loop_set *vars, const ix_form **at)
{
	const expr *inside = NULL;

	*at = rest;
	*vars = loop_form_vars(rest);
	for (int32_t i = 0; i < m->n; i++) {
		const expr *b = m->border[i], *arg[IR_MAX_ARGS] = {inside};
		const ix_form *u = ix_axis(k->s->x, &k->dom, first + i);
		int64_t min;

		slide_of(k, m, i, &min);
		u = ix_addc(k->s->x, u, min);
		*vars |= BIT(first + i);
		*at = ix_add(k->s->x, &k->dom, *at,
			ix_scale(k->s->x, u, distance(k, m, b->form)));
		arg[1] = ex_inside(k->s, ix_addc(k->s->x, u, b->form->c0), b->lo,
			b->hi);
		inside = inside == NULL ? arg[1]
					: ex_call(k->s, ir_scalar_find("and", 3), arg);
	}
	return ex_select(k->s, inside, ex_read(k->s, m->read->tensor, *at),
		ex_const_f(k->s, m->read->dtype, 0));
}

/* A read of the copy where the window reads the image. */
static const expr *read_of(loop_kernel *k, int32_t copy)
{
	const ix_form **with = arena_array(k->a, const ix_form *, k->n_vars + 1);

	for (int32_t v = 0; v < k->n_vars; v++)
		with[v] = k->var[v].slide != NULL ? k->var[v].slide
						  : ix_axis(k->s->x, &k->dom, v);
	return ex_read(k->s, k->eqn[copy].e->out[0],
		ix_subst(k->s->x, &k->dom, k->eqn[copy].at, k->n_vars,
			k->dom.box.extent, with));
}

/* The variable of a copy whose blocks are chunks: the slowest, unless it has fewer
 * elements than there are to be chunks, and another one has more. */
static int32_t in_chunks(const loop_kernel *k, int32_t n, const int32_t *var)
{
	int32_t v = var[0];

	for (int32_t i = 1; i < n - 1; i++)
		if (k->var[v].extent < k->machine->product.copy_chunks &&
			k->var[var[i]].extent > k->var[v].extent)
			v = var[i];
	return v;
}

/* Copies the image with its border. */
static void pack_border(contract *c, contract_product *p, const contract_image *m)
{
	loop_kernel *k = c->k;
	const ix_form *at, *rest;
	const expr *body;
	loop_set vars;
	int32_t *var, n, v, eqn, first = k->n_vars;
	int64_t min;
	loop_node *copy, *top;

	(void)has_slides(k, m, &rest);
	for (int32_t i = 0; i < m->n; i++)
		if (!loop_change_slide(k, slide_of(k, m, i, &min)))
			env_bug(arena_env(k->a), "loop.slide",
				"%s: a border has no slide", k->name);
	body = image_at(k, m, first, rest, &vars, &at);
	var = arena_array(k->a, int32_t, k->n_vars + 1);
	n = in_order(k, vars, at, var);
	eqn = loop_add_copy(k, body, n, var);
	p->x = read_of(k, eqn);
	copy = contract_leaf(c, LOOP_STMT, eqn);
	for (int32_t i = n - 1; i >= 0; i--) {
		copy = loop_node_for(k->a, var[i], copy);
		if (i == n - 1)
			loop_take_lanes(k, copy);
	}
	v = in_chunks(k, n, var);
	top = contract_block(c, v,
		contract_ceil(k->var[v].extent, k->machine->product.copy_chunks), copy);
	top->parallel = true;
	loop_decide(k, DECIDE_COPY_WHOLE, p->eqn, m->read->tensor, 0, 0);
	*vec_push(k->a, &c->before) = top;
	*vec_push(k->a, &c->before_of) = -1;
}

void contract_pack_image(contract *c, contract_product *p)
{
	contract_image m;

	if (!contract_find_image(p->x, &m))
		return;
	contract_clip_image(c->k, p, &m);
	if (m.n > 0 && !contract_clips_all(c->k, p, &m)) {
		pack_border(c, p, &m);
		return;
	}
	p->x = m.read; /* where it lies, unless most of that is not used */
	if (m.n == 0 && !has_window(c->k, p) && is_strided(c->k, p))
		contract_pack_whole(c, p, &p->x, p->i);
}

/* ---- roles ---- */

/* The longest of these variables; -1: there is none. */
static int32_t longest(const loop_kernel *k, loop_set s)
{
	int32_t best = -1;

	for (int32_t v = 0; v < k->n_vars; v++)
		if ((s & BIT(v)) != 0 &&
			(best < 0 || k->var[v].extent > k->var[best].extent))
			best = v;
	return best;
}

/* The pixels of a row of the image, which adjoin in the result. */
static int32_t pixels(const loop_kernel *k, const loop_eqn *e, loop_set rows)
{
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((rows & BIT(v)) != 0 && contract_adjoins(k, e->at, v))
			return v;
	return -1;
}

/* Is f the steady weights, and the other factor a window of an image? */
static bool find_roles(loop_kernel *k, const loop_eqn *e, const contract_terms *t,
	int32_t f, contract_product *p)
{
	contract_image m;
	const ix_form *rest;
	loop_set v[2];

	p->y = t->f[f];
	p->x = t->f[1 - f];
	v[0] = loop_expr_vars(k, p->x);
	v[1] = loop_expr_vars(k, p->y);
	p->rows = e->left & v[0] & ~v[1];
	p->columns = e->left & v[1] & ~v[0];
	p->others = e->left & ~p->rows & ~p->columns;
	p->sums = e->reduced;
	p->i = pixels(k, e, p->rows);
	p->j = longest(k, p->columns);
	p->s = longest(k, p->sums & v[0] & v[1]);
	return p->i >= 0 && p->j >= 0 && p->s >= 0 &&
	       contract_is_steady(k, p, p->y) && contract_find_image(p->x, &m) &&
	       (contract_clips_all(k, p, &m) || has_slides(k, &m, &rest)) &&
	       contract_reads_memory(k, p->x);
}

/*
 * Are there enough pixels, filters and terms? Without a window or a stride pixels are
 * good columns, too, unless there are few, and weights that the second cache does not
 * hold: then chunks are panels of filters. A copy of the image serves all taps of a window,
 * which pays for short sums. Where registers hold few rows, sums leave more often.
 */
static bool is_worth(loop_kernel *k, const loop_eqn *e, const contract_product *p)
{
	const machine_product *m = &k->machine->product;
	int64_t lanes = machine_lanes(k->machine, (int32_t)dtype_size(e->acc[0]));
	int64_t filters = k->var[p->j].extent, terms = contract_elements(k, p->sums);
	bool tall = contract_most_rows(k) >= m->slide_pixels;
	bool along = slides_along(k, p);
	int64_t weights = contract_elements(k, loop_expr_vars(k, p->y));
	bool large = weights > k->machine->memory[MACHINE_L2].bytes / 2 /
				       (int64_t)dtype_size(e->acc[0]);

	return (has_window(k, p) || is_strided(k, p) ||
		       (tall && large && contract_elements(k, p->rows) <= m->slide_near)) &&
	       lanes > 1 && k->var[p->i].extent >= m->slide_pixels &&
	       filters >= 2 * lanes &&
	       contract_filled(filters, lanes) >= m->full_lanes &&
	       terms >= m->slide_sum * (!tall ? 4 : along ? 1 : 2) &&
	       (has_window(k, p) ||
		       contract_elements(k, loop_expr_vars(k, p->x)) <= m->turn_copy) &&
	       weights <= m->turn_copy;
}

/* Are all loops around the product its own, and inside of them nothing but its sums
 * and what follows from each element? */
static bool stands_alone(const loop_kernel *k, int32_t eqn)
{
	const loop_node *n = k->phase[0].root[0];
	loop_set around = 0;

	for (; n->kind == LOOP_FOR && !n->backward &&
		k->var[n->var].kind == AXIS_P;
		n = n->child[0]) {
		around |= BIT(n->var);
		if (n->n_child != 1)
			break;
	}
	return around == k->eqn[eqn].left;
}

static bool may_slide(loop_kernel *k, int32_t eqn, contract_product *p)
{
	const loop_eqn *e = &k->eqn[eqn];
	contract_terms t;

	*p = (contract_product){.eqn = eqn};
	if (!contract_factors(k, e, &t) || t.n_needs > 0 || t.finish != NULL ||
		e->init[0] != NULL || !dtype_is_float(e->acc[0]))
		return false;
	p->inexact = t.inexact;
	return find_roles(k, e, &t, 0, p) || find_roles(k, e, &t, 1, p);
}

int32_t contract_slide(loop_kernel *k)
{
	contract_product p;
	int32_t found = -1;

	if (k->machine->block.warps > 1 || k->machine->unscheduled ||
		k->copies == LOOP_COPIES_BLOCKS || k->n_roots != 1 ||
		k->phase[0].n_roots != 1 || k->n_phases + 2 > LOOP_MAX_PHASES)
		return -1;
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (contract_is_product(k, &k->eqn[i])) {
			if (found >= 0)
				return -1;
			found = i;
		}
	if (found < 0 || !stands_alone(k, found) || !may_slide(k, found, &p) ||
		!is_worth(k, &k->eqn[found], &p))
		return -1;
	loop_decide(k, DECIDE_TURN_SLIDE, found, -1, k->var[p.i].extent,
		k->var[p.j].extent);
	return found;
}

bool contract_slide_roles(contract *c, contract_product *p)
{
	contract_product q;
	loop_set around = 0;

	if (!may_slide(c->k, p->eqn, &q))
		return false;
	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((c->chain & BIT(v)) != 0 && c->block[v] == 0)
			around |= BIT(v);
	q.rows &= ~around;
	q.columns &= ~around;
	q.others &= ~around;
	q.stage = p->stage;
	q.behind = p->behind;
	q.turned = q.slides = true;
	*p = q;
	return true;
}
