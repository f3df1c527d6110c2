/*
 * recompute.c: computes squares again where they are read, instead of storing them.
 *
 * Consumes a system. A square has an element for each row and each key, made by a short
 * product and what follows on each element; sums of products read it, some along the
 * keys, some along the rows, and some need results of others. No kernel can have all of
 * these sums, so large squares would go through memory. Instead each group of sums gets
 * equations of its own for the squares that it reads:
 *
 *   s[t,u] += q[t,d] * k[u,d]   p[t,u] = f(s[t,u])                            ->
 *   w[t,e] += p[t,u] * v[u,e]               (group 0: along u, has the first ones)
 *   gv[u,e] += p1[t,u] * g[t,e]             (group 1: along t;  s1, p1 as s, p)
 *   gq[t,d] += p2[t,u] * w[t,e] * ..        (group 2: along u, needs w; s2, p2)
 *
 * (Dao et al. 2022 compute the scores of attention again in its gradient.) What a square
 * reads and is another value of one result, as of a row's maximum, is computed by each
 * group as well. Squares without readers are left out.
 */
#include "system/local.h"

enum { MOST_GROUPS = SYS_MOST_GROUPS, MOST_SUMS = 24 };

/* A sum of products that reads squares. */
struct sum {
	int32_t eqn, group;
	uint32_t along; /* axes of the square that it reduces */
};

/* Squares that depend on each other, and the sums that read them. */
struct family {
	bool bad;
	int32_t number; /* of those that are computed again, from 0 */
	double item; /* elements of a square for one set of rows and keys; 0: unknown */
	int32_t n_sums, n_groups;
	struct sum sum[MOST_SUMS];
};

typedef VEC(const struct ex_read_item *) reads;

struct work {
	ir_system *s;
	const sys_recompute *limit;
	int32_t n;   /* equations */
	reads **of;  /* by equation: what it reads, as far as asked; NULL */
	int32_t *family; /* by equation: the number of its first square; -1: it is none */
	struct family **at; /* by that number */
	uint32_t *groups; /* by equation: those that need it; see `claimed` */
	int32_t *claimed; /* by equation: the family whose groups these are; -1 */
	int32_t **copy;	  /* by group and tensor: its copy; -1 */
	/* while copies are made: the group, and the equations as they were */
	int32_t group;
	sys_eqn *old;
};

/* ---- reads ---- */

static void add_reads(ir_system *s, const expr *e, reads *out)
{
	ex_reads all;

	if (e == NULL)
		return;
	all = ex_list_reads(s, e);
	for (int32_t i = 0; i < all.n; i++)
		*vec_push(s->a, out) = &all.at[i];
}

static const reads *reads_of(const struct work *w, int32_t eqn)
{
	const sys_eqn *e = &w->s->eqn.at[eqn];

	if (w->of[eqn] != NULL)
		return w->of[eqn];
	w->of[eqn] = arena_make(w->s->a, reads);
	for (int32_t k = 0; k < e->n_out && e->opaque == NULL; k++) {
		add_reads(w->s, e->body[k], w->of[eqn]);
		add_reads(w->s, e->init[k], w->of[eqn]);
	}
	return w->of[eqn];
}

static int32_t maker(const struct work *w, int32_t tensor)
{
	return w->s->tensor.at[tensor].eqn;
}

/* ---- squares ---- */

static bool is_plain(const struct work *w, const sys_eqn *e)
{
	const sys_tensor *t = &w->s->tensor.at[e->out[0]];

	return e->n_out == 1 && e->opaque == NULL && e->push == NULL &&
	       e->scan_axis < 0 && !t->is_output && t->storage < 0 && e->again == 0 &&
	       dtype_is_float(t->dtype);
}

/* Is it a sum of products: do two reads share a reduced axis, and has each an axis of
 * its own? own: the left axes that one of them does not walk. */
static bool is_product(const struct work *w, const sys_eqn *e, uint32_t *own)
{
	ex_reads all;

	*own = 0;
	if (e->monoid != IR_SUM || e->n_axes == e->n_left || e->opaque != NULL ||
		e->push != NULL || e->n_out != 1)
		return false;
	all = ex_list_reads(w->s, e->body[0]);
	for (int32_t i = 0; i < all.n; i++)
		for (int32_t k = 0; k < i; k++) {
			bool shared = false;
			uint32_t x = 0, y = 0;

			for (int32_t a = 0; a < e->n_axes; a++) {
				bool in_x = ix_uses_axis(all.at[i].at, a);
				bool in_y = ix_uses_axis(all.at[k].at, a);

				shared |= a >= e->n_left && in_x && in_y;
				if (a < e->n_left && in_x != in_y)
					*(in_x ? &x : &y) |= (uint32_t)1 << a;
			}
			if (shared && x != 0 && y != 0)
				*own |= x | y;
		}
	return *own != 0;
}

static double volume(const sys_eqn *e, int32_t from, int32_t to)
{
	double n = 1;

	for (int32_t i = from; i < to; i++)
		n *= (double)e->axis[i].extent;
	return n;
}

static bool same_axes(const sys_eqn *a, const sys_eqn *b)
{
	if (a->n_left != b->n_left)
		return false;
	for (int32_t i = 0; i < a->n_left; i++)
		if (a->axis[i].extent != b->axis[i].extent)
			return false;
	return true;
}

static int32_t root(const struct work *w, int32_t e)
{
	while (w->family[e] != e)
		e = w->family[e];
	return e;
}

/* Does e read, of the square m, the element of its own number? */
static bool is_same_element(
	const struct work *w, const sys_eqn *e, int32_t m, const ix_form *at)
{
	return same_axes(e, &w->s->eqn.at[m]) && at == ir_left_number(w->s, e);
}

static void join_families(struct work *w, int32_t a, int32_t b)
{
	struct family *x, *y;

	a = root(w, a);
	b = root(w, b);
	if (a == b)
		return;
	x = w->at[a < b ? a : b];
	y = w->at[a < b ? b : a];
	x->bad |= y->bad;
	if (x->item < y->item)
		x->item = y->item;
	w->family[a < b ? b : a] = a < b ? a : b;
}

/* Is it a short product that makes a square? Begins its family. */
static bool begins(struct work *w, int32_t i)
{
	const sys_eqn *e = &w->s->eqn.at[i];
	uint32_t own;
	double item = 1;

	if (e->init[0] != NULL || !is_product(w, e, &own) ||
		volume(e, e->n_left, e->n_axes) > (double)w->limit->terms)
		return false;
	for (int32_t a = 0; a < e->n_left; a++)
		if ((own >> a & 1) != 0)
			item *= (double)e->axis[a].extent;
	if (item * (double)dtype_size(TN_F32) <= w->limit->bytes)
		return false;
	w->family[i] = i;
	w->at[i] = arena_make(w->s->a, struct family);
	w->at[i]->item = item;
	return true;
}

/* Does it compute each element from the same element of squares? Then it is one. */
static void find_square(struct work *w, int32_t i)
{
	const sys_eqn *e = &w->s->eqn.at[i];
	const reads *all = reads_of(w, i);

	if (!is_plain(w, e) || begins(w, i) || e->n_axes > e->n_left)
		return;
	for (int32_t k = 0; k < all->n; k++) {
		int32_t m = maker(w, all->at[k]->tensor);

		if (m < 0 || w->family[m] < 0)
			continue;
		if (all->at[k]->is_index || !is_same_element(w, e, m, all->at[k]->at)) {
			w->family[i] = -1;
			return;
		}
		w->family[i] = w->family[i] < 0 ? root(w, m) : w->family[i];
	}
	for (int32_t k = 0; k < all->n && w->family[i] >= 0; k++) {
		int32_t m = maker(w, all->at[k]->tensor);

		if (m >= 0 && w->family[m] >= 0)
			join_families(w, i, m);
	}
}

/* ---- sums ---- */

/* The axes of the square m that e reduces; false: its axes are not those of e. */
static bool axes_along(const struct work *w, const sys_eqn *e, int32_t m,
	const ix_form *at, uint32_t *along)
{
	const sys_eqn *q = &w->s->eqn.at[m];
	int32_t axis[IR_MAX_AXES];

	*along = 0;
	if (!ir_read_axes(w->s, e, at, q, axis))
		return false;
	for (int32_t i = 0; i < q->n_left; i++)
		*along |= axis[i] >= e->n_left ? (uint32_t)1 << i : 0;
	return true;
}

/* Adds equation i to the sums of the family whose squares it reads. */
static void find_sum(struct work *w, int32_t i)
{
	const sys_eqn *e = &w->s->eqn.at[i];
	struct family *f = NULL;
	const reads *all = reads_of(w, i);
	uint32_t own, along = 0, all_along = 0;

	if (w->family[i] >= 0 || !is_product(w, e, &own))
		return;
	for (int32_t k = 0; k < all->n; k++) {
		int32_t m = maker(w, all->at[k]->tensor);

		if (m < 0 || w->family[m] < 0)
			continue;
		if (f != NULL && f != w->at[root(w, m)])
			f->bad = true;
		f = w->at[root(w, m)];
		if (all->at[k]->is_index || !axes_along(w, e, m, all->at[k]->at, &along) ||
			(all_along != 0 && along != all_along))
			f->bad = true;
		all_along = along;
	}
	if (f == NULL || all_along == 0)
		return;
	if (f->n_sums == MOST_SUMS)
		f->bad = true;
	else
		f->sum[f->n_sums++] = (struct sum){.eqn = i, .along = all_along};
}

/* ---- groups ---- */

/* By equation: the sums of the family on whose results it depends. */
static uint32_t *depends(const struct work *w, const struct family *f)
{
	uint32_t *on = arena_array(w->s->a, uint32_t, w->n + 1);
	int32_t first = f->sum[0].eqn, last = f->sum[f->n_sums - 1].eqn;

	for (int32_t i = first; i <= last; i++) {
		const sys_eqn *e = &w->s->eqn.at[i];
		const reads *all = reads_of(w, i);

		for (int32_t k = 0; k < e->n_opaque_in; k++)
			if (maker(w, e->opaque_in[k]) >= first)
				on[i] |= on[maker(w, e->opaque_in[k])];
		for (int32_t k = 0; k < all->n; k++)
			if (maker(w, all->at[k]->tensor) >= first)
				on[i] |= on[maker(w, all->at[k]->tensor)];
		for (int32_t k = 0; k < f->n_sums; k++)
			if (f->sum[k].eqn == i)
				on[i] |= (uint32_t)1 << k;
	}
	return on;
}

/* Sums along the same axes share squares, unless one needs another one's result. */
static void make_groups(struct work *w, struct family *f)
{
	const uint32_t *on = depends(w, f);

	for (int32_t i = 0; i < f->n_sums; i++) {
		struct sum *s = &f->sum[i];
		int32_t g = f->n_groups - 1;

		for (; g >= 0; g--) {
			uint32_t members = 0, along = 0;

			for (int32_t k = 0; k < i; k++)
				if (f->sum[k].group == g) {
					members |= (uint32_t)1 << k;
					along = f->sum[k].along;
				}
			if (along == s->along && (on[s->eqn] & members) == 0)
				break;
		}
		s->group = g < 0 ? f->n_groups++ : g;
		f->bad |= f->n_groups > MOST_GROUPS;
	}
}

/* Is it another value of one result of a reduction? Then the reduction has no readers
 * elsewhere, if each group computes it. */
static bool is_of_result(const struct work *w, int32_t i)
{
	const sys_eqn *e = &w->s->eqn.at[i], *of;
	const reads *r = reads_of(w, i);
	int32_t m = r->n == 1 ? maker(w, r->at[0]->tensor) : -1;

	if (m < 0 || r->at[0]->is_index || !is_plain(w, e) || e->n_axes > e->n_left)
		return false;
	of = &w->s->eqn.at[m];
	return of->n_axes > of->n_left && w->family[m] < 0 &&
	       w->s->tensor.at[of->out[0]].numel == w->s->tensor.at[e->out[0]].numel;
}

/* Is m computed again for those that read squares of the family? */
static bool may_need(const struct work *w, int32_t m, int32_t family)
{
	if (w->family[m] >= 0)
		return root(w, m) == family;
	return (w->claimed[m] < 0 || w->claimed[m] == family) &&
	       is_of_result(w, m);
}

/* Marks what a group needs of a family, of what one equation reads. */
static void need(struct work *w, int32_t eqn, int32_t family, int32_t group)
{
	const reads *all = reads_of(w, eqn);

	for (int32_t k = 0; k < all->n; k++) {
		int32_t m = maker(w, all->at[k]->tensor);

		if (m < 0 || !may_need(w, m, family))
			continue;
		w->claimed[m] = family;
		w->groups[m] |= (uint32_t)1 << group;
	}
}

/* Finds the groups of a family, and what each needs. */
static bool divide(struct work *w, int32_t family)
{
	struct family *f = w->at[family];

	if (f->bad || f->n_sums < 2)
		return false;
	make_groups(w, f);
	if (f->bad || f->n_groups < 2)
		return false;
	for (int32_t i = 0; i < f->n_sums; i++)
		need(w, f->sum[i].eqn, family, f->sum[i].group);
	/* what a square reads stands in front of it */
	for (int32_t i = f->sum[f->n_sums - 1].eqn; i >= family; i--)
		for (int32_t g = 0; g < f->n_groups; g++)
			if (w->family[i] >= 0 && root(w, i) == family &&
				(w->groups[i] >> g & 1) != 0)
				need(w, i, family, g);
	return true;
}

/* ---- copies ---- */

static const expr *on_read(void *arg, const expr *read, const ix_dom *d)
{
	const struct work *w = arg;
	int32_t to = w->copy[w->group][read->tensor];

	(void)d;
	return to < 0 ? NULL : ex_read(w->s, to, read->form);
}

static const expr *in_group(struct work *w, const sys_eqn *e, int32_t n, const expr *x)
{
	ir_system *s = w->s;
	ix_dom d = {.box = ir_eqn_box(s, e)};
	const ix_form *same[IR_MAX_AXES];

	if (x == NULL)
		return NULL;
	for (int32_t i = 0; i < e->n_axes; i++)
		same[i] = ix_axis(s->x, &d, i);
	return ex_subst(s, &d, x, n, d.box.extent, same, on_read, w);
}

/* The equation with the reads of a group, and the same result. */
static sys_eqn of_group(struct work *w, const sys_eqn *e, int32_t group)
{
	sys_eqn to = *e;

	w->group = group;
	for (int32_t k = 0; k < e->n_out && e->opaque == NULL; k++) {
		to.body[k] = in_group(w, e, e->n_axes, e->body[k]);
		to.init[k] = in_group(w, e, e->n_left, e->init[k]);
	}
	return to;
}

static void add_copy(struct work *w, const sys_eqn *e, int32_t group)
{
	ir_system *s = w->s;
	sys_tensor t = s->tensor.at[e->out[0]];
	sys_eqn to = of_group(w, e, group);

	to.label = arena_printf(s->a, "%s_%d", e->label, group);
	to.out[0] = ir_add_tensor(s, arena_printf(s->a, "%s.%d", t.name, group), t.dtype,
		t.rank, t.shape);
	w->copy[group][e->out[0]] = to.out[0];
	if (e->square > 0)
		to.square = e->square + group;
	ir_add_eqn(s, &to);
}

/* The group whose squares equation i reads: its own, or, if it is no sum of products,
 * the first one that has them. */
static int32_t group_of(const struct work *w, const struct family *const *sums, int32_t i)
{
	const reads *all = reads_of(w, i);
	uint32_t has = UINT32_MAX;
	int32_t g = 0;

	for (int32_t k = 0; sums[i] != NULL && k < sums[i]->n_sums; k++)
		if (sums[i]->sum[k].eqn == i)
			return sums[i]->sum[k].group;
	if (w->family[i] >= 0 || w->groups[i] != 0)
		return 0; /* the copies are equations of their own */
	for (int32_t k = 0; k < all->n; k++) {
		int32_t m = maker(w, all->at[k]->tensor);

		if (m >= 0 && w->family[m] >= 0 && w->groups[m] != 0)
			has &= w->groups[m];
	}
	if (has == 0 || has == UINT32_MAX)
		return 0;
	while ((has >> g & 1) == 0)
		g++;
	return g;
}

/* Keeps what equations were before they change. */
static void keep_old(struct work *w)
{
	ir_system *s = w->s;

	w->old = arena_copy(s->a, s->eqn.at, (size_t)w->n * sizeof *w->old);
	for (int32_t g = 0; g < MOST_GROUPS; g++) {
		w->copy[g] = arena_array(s->a, int32_t, s->tensor.n + 1);
		for (int32_t t = 0; t < s->tensor.n; t++)
			w->copy[g][t] = -1;
	}
}

static ir_system *rewrite(struct work *w, const struct family *const *sums)
{
	ir_system *s = w->s;
	int32_t *group = arena_array(s->a, int32_t, w->n + 1);

	for (int32_t i = 0; i < w->n; i++)
		group[i] = group_of(w, sums, i);
	keep_old(w);
	s->eqn.n = 0;
	for (int32_t i = 0; i < w->n; i++) {
		sys_eqn *old = &w->old[i], e;

		if (w->family[i] >= 0 && w->groups[i] != 0)
			old->square = 1 + MOST_GROUPS * w->at[root(w, i)]->number;
		e = group[i] > 0 ? of_group(w, old, group[i]) : *old;
		ir_add_eqn(s, &e);
		for (int32_t g = 1; g < MOST_GROUPS; g++)
			if ((w->groups[i] >> g & 1) != 0)
				add_copy(w, old, g);
	}
	return ir_prune(s);
}

ir_system *ir_recompute(ir_system *s, const sys_recompute *limit)
{
	int32_t n = s->eqn.n;
	struct work w = {.s = s, .limit = limit, .n = n,
		.family = arena_array(s->a, int32_t, n + 1),
		.at = arena_array(s->a, struct family *, n + 1),
		.groups = arena_array(s->a, uint32_t, n + 1),
		.claimed = arena_array(s->a, int32_t, n + 1),
		.of = arena_array(s->a, reads *, n + 1),
		.copy = arena_array(s->a, int32_t *, MOST_GROUPS)};
	const struct family **sums = arena_array(s->a, const struct family *, n + 1);
	int32_t number = 0;

	for (int32_t i = 0; i < n; i++) {
		w.family[i] = w.claimed[i] = -1;
		find_square(&w, i);
	}
	for (int32_t i = 0; i < n; i++)
		find_sum(&w, i);
	for (int32_t i = 0; i < n; i++) {
		if (w.family[i] != i || !divide(&w, i))
			continue;
		w.at[i]->number = number++;
		for (int32_t k = 0; k < w.at[i]->n_sums; k++)
			sums[w.at[i]->sum[k].eqn] = w.at[i];
	}
	return number > 0 ? rewrite(&w, sums) : s;
}
