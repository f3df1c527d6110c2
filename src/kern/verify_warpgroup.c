/*
 * verify_warpgroup.c: matrix instructions that several warps execute together, and the
 * arrays from which they take columns.
 *
 * All warps of a warpgroup must come to the instruction equally often, so it stands in a
 * loop by warp whose iterations are as many for each of them, under no condition and in
 * no loop of another length for each warp; and what they share must be the same for all.
 * Rows of a swizzled array are copied as a whole, or taken by such an instruction:
 * nobody else knows where an element of it is.
 */
#include "kern/verify.h"

enum { ALIGN = 1024, TERMS = 16 };

void kern_verify_swizzled(struct kern_verifier *v, int32_t array)
{
	const kern_array *r = &v->k->array.at[array];
	int32_t row = r->swizzled;

	if (row == 0)
		return;
	if (r->space != KERN_LOCAL || dtype_size(r->dtype) != 2 ||
		(row != KERN_SWIZZLED && row != 2 * KERN_SWIZZLED) ||
		r->elems % (row * KERN_SWIZZLED_ROWS) != 0 || r->offset % ALIGN != 0)
		kern_refuse(v, "swizzled",
			"%s: a swizzled array must be local, of two bytes an element, with rows of %d or %d elements, in multiples of %d, and begin at a multiple of %d bytes",
			kern_access_text(v, array), KERN_SWIZZLED,
			2 * KERN_SWIZZLED, KERN_SWIZZLED_ROWS, ALIGN);
	for (int32_t i = 0; i < v->k->array.n; i++)
		if (i != array && kern_arrays_overlap(v->k, i, array))
			kern_refuse(v, "swizzled",
				"%s is swizzled, and has memory in common with another array",
				kern_access_text(v, array));
}

void kern_verify_plain(struct kern_verifier *v, const kern_access *at)
{
	const kern_stmt *s = v->s;
	int32_t row = v->k->array.at[at->array].swizzled;

	if (row == 0 || (s->kind == KERN_MMA && s->warps > 0))
		return;
	if (s->kind != KERN_ASYNC || at != &s->at || s->width != row || s->n != row ||
		!kern_is_multiple(&v->range, at->at, row))
		kern_refuse(v, "swizzled",
			"%s is swizzled: it takes copies (`async`) of whole rows of %d elements, and instructions of several warps",
			kern_access_text(v, at->array), row);
}

/* Is x, or what it is computed from, the value of a loop by warp, or defined in it? */
static bool differs(struct kern_verifier *v, const kern_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		kern_val x = f->t[i].v;
		const kern_stmt *loop =
			x < v->range.n_loop ? v->range.loop[x] : NULL;

		if (x < v->by_warp->v)
			continue;
		if (loop == NULL || loop == v->by_warp || differs(v, loop->lo))
			return true;
	}
	return false;
}

/* Does the statement stand below b in no condition, and in loops alone that are equally
 * long for all warps? */
static bool is_for_all(
	struct kern_verifier *v, const kern_block *b, const kern_stmt *s)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *in = b->list.at[i];

		if (in == s)
			return true;
		if (in->kind != KERN_BLOCK &&
			(in->kind != KERN_FOR || in->by_lane || differs(v, in->lo) ||
				differs(v, in->hi)))
			continue;
		if (is_for_all(v, &in->body, s))
			return true;
	}
	return false;
}

/* Has each warp equally many iterations of the loop by warp? */
static bool has_all(struct kern_verifier *v)
{
	const kern_stmt *w = v->by_warp;
	int32_t warps = v->k->phase[v->phase].warps;
	int64_t n;

	return w != NULL && warps % KERN_MMA_WARPS == 0 &&
	       kern_form_is_const(kern_form_sub(v->k, w->hi, w->lo), &n) && n > 0 &&
	       n % w->step == 0 && n / w->step % warps == 0;
}

/* Rows in memory: the 16 rows of each warp of a warpgroup behind those of the last one. */
static void verify_rows(struct kern_verifier *v, const kern_stmt *s)
{
	int64_t each = (int64_t)KERN_MMA_ROWS * KERN_SWIZZLED, coef = 0;
	const kern_form *at = s->at.at, *rest;

	for (int32_t i = 0; i < at->n; i++)
		if (at->t[i].v == v->by_warp->v)
			coef = at->t[i].coef;
	rest = kern_form_sub(v->k, at,
		kern_form_scale(v->k, kern_form_of(v->k, v->by_warp->v), coef));
	if (v->k->array.at[s->at.array].swizzled != KERN_SWIZZLED || s->at_turned ||
		s->n != KERN_SWIZZLED || differs(v, rest) ||
		coef * v->by_warp->step != each ||
		!kern_is_multiple(&v->range, at, each))
		kern_refuse(v, "swizzled",
			"rows that an instruction of several warps takes from memory must be rows of %d elements of a swizzled array, %d for each warp, one after the other, in multiples of that",
			KERN_SWIZZLED, KERN_MMA_ROWS);
}

void kern_verify_warpgroup(struct kern_verifier *v, const kern_stmt *s)
{
	const kern_array *y = &v->k->array.at[s->from.array];
	int32_t columns = 2 * s->n_acc, row = y->swizzled, rows = KERN_SWIZZLED_ROWS;

	if (!has_all(v) || !is_for_all(v, &v->by_warp->body, s))
		kern_refuse(v, "warp",
			"all warps must come to an instruction of %d of them: in a loop `by warp` with as many iterations for each, under no condition",
			KERN_MMA_WARPS);
	if (differs(v, s->from.at))
		kern_refuse(v, "warp",
			"the columns of an instruction of several warps must be the same for all: %s may not depend on the loop `by warp`",
			kern_access_text(v, s->from.array));
	if ((s->type.dt != TN_BF16 && s->type.dt != TN_F16) ||
		v->k->array.at[s->at.array].dtype != s->type.dt)
		kern_refuse(v, "type",
			"both factors of an instruction of several warps must be bf16, or both f16");
	if (row == 0 || s->m != row || s->terms % TERMS != 0 ||
		(columns != KERN_SWIZZLED && columns != 2 * KERN_SWIZZLED) ||
		(s->from_turned ? row : columns) != (s->from_turned ? s->terms : row) ||
		!kern_is_multiple(&v->range, s->from.at, (int64_t)row * rows))
		kern_refuse(v, "swizzled",
			"an instruction of several warps takes %d or %d columns and up to %d terms, in multiples of %d, from whole rows of a swizzled array, in multiples of %d",
			KERN_SWIZZLED, 2 * KERN_SWIZZLED, KERN_SWIZZLED, TERMS, rows);
	if (v->k->array.at[s->at.array].swizzled > 0)
		verify_rows(v, s);
}
