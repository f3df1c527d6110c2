/*
 * own.c: finds arrays of a warp in which each lane accesses cells of its own. They
 * are no memory then, but registers of the thread, of which it has a 32nd part.
 *
 *   for i < 1024 step 128 { store b0[i] step 4 = %1 .. store b0[i + 3] step 4 = %4 }
 *
 * Lane l has cells i + 4 l to i + 4 l + 3, whatever the loop that accesses them, if
 * all accesses of b0 are of this kind: of all 32 lanes, n cells apart, from a
 * multiple of 32 n on, or less than n behind one. Cell c is then number c / 32 of the
 * thread, or up to n - 1 behind it. C compilers keep short arrays in registers where
 * loops have few iterations; else the thread's memory is near.
 */
#include "target/cuda/local.h"

/* of all such arrays of a kernel: a thread has 255 registers at most, and with many
 * of them few warps are there at a time */
enum { MOST_CELLS = 64 };

enum { ANY = 0, SHARED = -1 }; /* strides of arrays: not known yet; of no use */

struct own {
	const kern_kernel *k;
	const kern_stmt **loop; /* by value: its loop, or NULL */
	int64_t *stride;	/* by array */
};

static bool is_multiple(const struct own *w, const kern_form *f, int64_t by,
	int64_t coef, int64_t c0);

/* Is coef v a multiple of `by`, whatever the iteration? */
static bool term_is_multiple(
	const struct own *w, kern_val v, int64_t coef, int64_t by)
{
	const kern_stmt *l = w->loop[v];

	if (coef % by == 0)
		return true;
	return l != NULL && l->step <= INT32_MAX && coef * l->step % by == 0 &&
	       is_multiple(w, l->lo, by, coef, l->lo->c0);
}

/* Is coef f a multiple, with c0 for its constant? */
static bool is_multiple(const struct own *w, const kern_form *f, int64_t by,
	int64_t coef, int64_t c0)
{
	int64_t t;

	if (coef > INT32_MAX || coef < -INT32_MAX || c0 % by * coef % by != 0)
		return false;
	for (int32_t i = 0; i < f->n; i++)
		if (__builtin_mul_overflow(coef, f->t[i].coef, &t) ||
			t > INT32_MAX || t < -INT32_MAX ||
			!term_is_multiple(w, f->t[i].v, t, by))
			return false;
	return true;
}

static void see(struct own *w, const kern_access *at, int32_t lanes, bool plain)
{
	int64_t *s = &w->stride[at->array], row = CUDA_WARP * at->stride, c0;

	if (w->k->array.at[at->array].space != KERN_LOCAL)
		return;
	c0 = row > 0 ? floor_mod(at->at->c0, row) : 0;
	if (plain && lanes == CUDA_WARP && at->stride > 0 &&
		at->stride <= KERN_MAX_TOGETHER && c0 < at->stride &&
		(*s == ANY || *s == at->stride) &&
		is_multiple(w, at->at, row, 1, at->at->c0 - c0))
		*s = at->stride;
	else
		*s = SHARED;
}

static void see_load(struct own *w, kern_val v, bool plain)
{
	const kern_value *x = kern_at(w->k, v);

	if (v != 0 && x->op == KERN_LOAD)
		see(w, &x->at, x->type.lanes, plain);
}

/* plain: no loop by lane, no block of warps around */
static void walk(struct own *w, const kern_block *b, bool plain)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_accessed t[KERN_MOST_ACCESSED];

		if (s->kind == KERN_LET)
			see_load(w, s->v, plain);
		if (s->kind == KERN_FOR)
			w->loop[s->v] = s;
		see_load(w, s->x, plain);
		if (s->kind == KERN_STORE)
			see(w, &s->at, kern_at(w->k, s->x)->type.lanes, plain);
		for (int32_t j = kern_accesses(s, t) - 1; j >= 0 && s->kind != KERN_STORE; j--)
			see(w, t[j].at, 0, false);
		walk(w, &s->body, plain && !s->by_lane);
		walk(w, &s->other, plain && !s->by_lane);
	}
}

void spread_find_own_arrays(arena *a, spread *s)
{
	const kern_kernel *k = s->wide;
	struct own w = {.k = k};
	int64_t all = 0;

	w.loop = arena_array(a, const kern_stmt *, k->value.n + 1);
	w.stride = arena_array(a, int64_t, k->array.n + 1);
	for (int32_t i = 0; i < k->n_phases; i++)
		walk(&w, &k->phase[i].body, k->phase[i].warps == 1);
	s->cells = arena_array(a, int32_t, k->array.n + 1);
	for (int32_t i = 0; i < k->array.n; i++) {
		int64_t row = CUDA_WARP * w.stride[i], n;

		if (row <= 0)
			continue;
		n = (k->array.at[i].elems + row - 1) / row * w.stride[i];
		if (all + n > MOST_CELLS)
			continue;
		all += n;
		s->cells[i] = (int32_t)n;
	}
}

const char *spread_own_cell(printer *p, const spread *s, const kern_access *at)
{
	int64_t u = floor_mod(at->at->c0, CUDA_WARP * at->stride), c;
	const kern_form *f = kern_form_addc(s->narrow, at->at, -u);
	int32_t n = p->k->array.at[at->array].number;

	if (kern_form_is_const(f, &c))
		return arena_printf(p->a, "b%d[%d]", n, (int)(c / CUDA_WARP + u));
	return arena_printf(p->a, "b%d[(%s) / %d + %d]", n, c_form(p, f),
		(int)CUDA_WARP, (int)u);
}
