/*
 * verify_mma.c: products of matrices: their dtypes, their places in memory.
 *
 * Rows of factors are loaded 16 bytes at a time: each must begin at a multiple of
 * that. The value of a loop is where the loop begins, plus a multiple of its step.
 */
#include "kern/verify.h"

#include <inttypes.h>

enum { MOST = 64 };

/* Is f a multiple of m, whatever its values are? */
static bool is_multiple(struct kern_verifier *v, const kern_form *f, int64_t m)
{
	for (int32_t n = 0; n < MOST; n++) {
		const kern_stmt *s = NULL;
		const kern_term *t = NULL;
		int64_t c;

		for (int32_t i = 0; i < f->n; i++)
			if (f->t[i].coef % m != 0)
				t = &f->t[i];
		if (t == NULL)
			return f->c0 % m == 0;
		if (t->v < v->range.n_loop)
			s = v->range.loop[t->v];
		if (s == NULL || s->down ||
			kern_at(v->k, t->v)->op != KERN_WALK ||
			!mul_ok(t->coef, s->step, &c) || c % m != 0)
			return false;
		f = kern_form_sub(v->k, f, kern_form_term(v->k, t->coef, t->v));
		f = kern_form_add(v->k, f, kern_form_scale(v->k, s->lo, t->coef));
	}
	return false;
}

static bool is_byte(tn_dtype t)
{
	return t == TN_I8 || t == TN_U8;
}

/* Turned: its rows are columns, and its columns are rows. */
static void verify_factor(struct kern_verifier *v, const kern_access *at,
	int64_t step, bool turned, int32_t rows, int32_t width)
{
	tn_dtype dt = v->s->type.dt;
	const kern_array *r = &v->k->array.at[at->array];
	int64_t size = (int64_t)dtype_size(dt);
	bool wide = at == &v->s->at && r->dtype == TN_F32 && dt == TN_BF16;

	if (r->dtype != dt && !wide && !(is_byte(dt) && is_byte(r->dtype)))
		kern_refuse(v, "type", "the factors are %s, and %s is not",
			dtype_name(dt), kern_access_text(v, at->array));
	if (!wide &&
		(r->offset % KERN_MMA_BYTES != 0 ||
			step * size % KERN_MMA_BYTES != 0 ||
			!is_multiple(v, at->at, KERN_MMA_BYTES / size)))
		kern_refuse(v, "lanes",
			"rows of %s must begin at multiples of %d bytes",
			kern_access_text(v, at->array), KERN_MMA_BYTES);
	kern_verify_rows(v, at, step, turned ? width : rows,
		turned ? rows : width, false);
}

void kern_verify_matrix(struct kern_verifier *v, const kern_stmt *s)
{
	if (s->n_acc < KERN_MMA_EACH || s->n_acc % KERN_MMA_EACH != 0 ||
		s->n_acc > KERN_MMA_EACH * KERN_MAX_LANES)
		kern_refuse(v, "lanes",
			"%d registers; rows of eight sums need %d", s->n_acc,
			KERN_MMA_EACH);
	if (kern_part_columns(s) > 2 * s->n_acc)
		kern_refuse(v, "lanes",
			"a part of %d columns; these registers have %d",
			kern_part_columns(s), 2 * s->n_acc);
	if (s->kind != KERN_MMA) {
		if (v->k->array.at[s->at.array].dtype != TN_F32 &&
			v->k->array.at[s->at.array].dtype != TN_I32)
			kern_refuse(v, "type", "%s must be f32 or i32, as the sums are",
				kern_access_text(v, s->at.array));
		kern_verify_rows(v, &s->at, s->n, kern_part_rows(s),
			kern_part_columns(s),
			s->kind == KERN_GIVE);
		if (s->kind == KERN_GIVE)
			kern_verify_effect(v);
		return;
	}
	if ((s->type.dt != TN_BF16 && s->type.dt != TN_F16 &&
		    s->type.dt != TN_F32 && s->type.dt != TN_I8) ||
		s->type.lanes != 1)
		kern_refuse(v, "type",
			"factors of type %s; they must be bf16, f16, f32 or i8",
			kern_type_text(v->a, s->type));
	if (s->type.dt == TN_I8 && (s->at_turned || !s->from_turned))
		kern_refuse(v, "lanes",
			"terms of i8 must adjoin: `rows` of the first factor, `columns` of the second one");
	if (s->warps > 0)
		kern_verify_warpgroup(v, s);
	verify_factor(v, &s->at, s->n, s->at_turned, kern_part_rows(s),
		kern_part_terms(s));
	verify_factor(v, &s->from, s->m, s->from_turned, kern_part_terms(s),
		kern_part_columns(s));
}

void kern_verify_tiles(struct kern_verifier *v, const kern_stmt *s)
{
	tn_dtype x = v->k->array.at[s->at.array].dtype;
	tn_dtype y = v->k->array.at[s->from.array].dtype;
	int32_t each = kern_tile_terms(x, y);

	if (v->k->spread)
		kern_refuse(v, "warp", "the warps of this machine have no tile registers");
	if (each == 0)
		kern_refuse(v, "type",
			"factors of %s and %s; tile registers take bf16 and bf16, or i8 and u8",
			dtype_name(x), dtype_name(y));
	if (v->k->array.at[s->to.array].dtype != kern_mma_sum(x))
		kern_refuse(v, "type", "sums of %s are %s, and %s is not",
			dtype_name(x), dtype_name(kern_mma_sum(x)),
			kern_access_text(v, s->to.array));
	if (s->width % KERN_TILE_LANES != 0)
		kern_refuse(v, "lanes", "%d columns; tile registers have %d or %d",
			s->width, KERN_TILE_LANES, KERN_TILE_ACROSS * KERN_TILE_LANES);
	if (s->l < s->width && s->rows > 1)
		kern_refuse(v, "lanes", "rows of %d sums overlap: they are %" PRId64 " apart",
			s->width, s->l);
	if (kern_arrays_overlap(v->k, s->to.array, s->at.array) ||
		kern_arrays_overlap(v->k, s->to.array, s->from.array))
		kern_refuse(v, "order", "sums in the memory of a factor");
	kern_verify_rows(v, &s->at, s->n, s->rows, s->terms, false);
	kern_verify_rows(v, &s->from, s->m, (s->terms - 1) / each + 1,
		s->width * each, false);
	if (s->x == 0)
		kern_verify_rows(v, &s->to, s->l, s->rows, s->width, false);
	kern_verify_rows(v, &s->to, s->l, s->rows, s->width, true);
}
