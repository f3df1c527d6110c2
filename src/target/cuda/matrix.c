/*
 * matrix.c: prints products of matrices, as CUDA C.
 *
 * All threads of a warp load what each of them gives the instruction; functions of the
 * prelude say which elements these are. Columns of several warps stay in memory.
 */
#include "target/cuda/local.h"

#include <inttypes.h>

/* 16 bytes at a time where it is shared memory; of a part, those that are not in
 * memory are zeros. */
static const char *loader(const printer *p, const kern_access *at,
	const char *what, bool turned, bool part)
{
	bool shared = p->phase->warps > 1 && !part &&
		      p->k->array.at[at->array].space == KERN_LOCAL;

	return arena_printf(p->a, "%s%s%s%s", what, turned ? "_turned" : "",
		part ? "_part" : "", shared ? "_shared" : "");
}

/* Are factors of one byte, whose terms adjoin? */
static bool is_bytes(const kern_stmt *s)
{
	return dtype_is_int(s->type.dt);
}

/* Are rows f32, of which parts are multiplied? */
static bool is_split(const printer *p, const kern_stmt *s)
{
	return s->type.dt != TN_F32 && p->k->array.at[s->at.array].dtype == TN_F32;
}

/* How the factors of these elements are loaded: what, behind "mma_". */
static const char *factors(const printer *p, const kern_stmt *s, const char *what)
{
	return arena_printf(p->a, "mma_%s%s",
		is_bytes(s)	       ? "byte_"
		: s->type.dt == TN_F32 ? "word_"
				       : "",
		what);
}

static void rows_of(printer *p, const kern_stmt *s)
{
	int32_t rows = kern_part_rows(s), terms = kern_part_terms(s);
	bool part = rows < KERN_MMA_ROWS || terms < kern_mma_terms(s->type.dt);

	c_line(p, "%s(rows, &%s, %" PRId64 "%s);",
		is_split(p, s) ? arena_printf(p->a, "mma_split%s%s",
					 s->at_turned ? "_turned" : "",
					 part ? "_part" : "")
			       : loader(p, &s->at, factors(p, s, "rows"),
					 s->at_turned, part),
		c_element(p, &s->at), s->n,
		part ? arena_printf(p->a, ", %d, %d", rows, terms) : "");
}

static void columns_of(printer *p, const kern_stmt *s, int32_t first)
{
	int32_t n = kern_part_columns(s) - first, terms = kern_part_terms(s);
	int64_t at = s->from_turned ? s->m * first : first;
	bool part = n < KERN_MMA_COLUMNS || terms < kern_mma_terms(s->type.dt);

	if (n > KERN_MMA_COLUMNS)
		n = KERN_MMA_COLUMNS;
	c_line(p, "%s(columns, &%s + %" PRId64 ", %" PRId64 "%s);",
		loader(p, &s->from, factors(p, s, "columns"),
			s->from_turned && !is_bytes(s), part),
		c_element(p, &s->from), at, s->m,
		part ? arena_printf(p->a, ", %d, %d", terms, n) : "");
}

/* What multiplies: by the dtypes of both factors, where they may differ. */
static const char *product_of(printer *p, const kern_stmt *s)
{
	const char *x = dtype_name(p->k->array.at[s->at.array].dtype);
	const char *y = dtype_name(p->k->array.at[s->from.array].dtype);

	if (is_bytes(s))
		return arena_printf(p->a, "mma_%s_%s", x, y);
	return arena_printf(p->a, "mma_%s%s", is_split(p, s) ? "parts_" : "",
		dtype_name(s->type.dt));
}

static void multiply(printer *p, const kern_stmt *s)
{
	const char *fn = product_of(p, s);

	c_line(p, "{");
	p->depth++;
	c_line(p, "unsigned rows[%d], columns[2];", is_split(p, s) ? 12 : 4);
	rows_of(p, s);
	for (int32_t i = 0; 2 * i < kern_part_columns(s); i += 4) {
		columns_of(p, s, 2 * i);
		c_line(p, "%s(&%s, &%s, &%s, &%s, rows, columns);", fn,
			c_name(p, s->acc[i]), c_name(p, s->acc[i + 1]),
			c_name(p, s->acc[i + 2]), c_name(p, s->acc[i + 3]));
	}
	p->depth--;
	c_line(p, "}");
}

/* ---- by several warps ---- */

const char *cuda_swizzled(printer *p, const kern_access *at)
{
	const kern_array *r = &p->k->array.at[at->array];

	return arena_printf(p->a, "b%d, %s, %" PRId64 ", %d", r->number,
		c_form(p, at->at), r->elems, r->swizzled);
}

/* Rows of each warp, in registers or in memory, by columns that all of them have. */
static void by_warps(printer *p, const kern_stmt *s)
{
	const char *fn = loader(p, &s->at, "mma_rows", s->at_turned, false);
	int32_t each = kern_mma_terms(s->type.dt);
	str acc = str_new(p->a);

	for (int32_t i = 0; i < s->n_acc; i++)
		str_printf(&acc, ", &%s", c_name(p, s->acc[i]));
	if (p->k->array.at[s->at.array].swizzled > 0) {
		c_line(p, "MMA_IN_MEMORY(%s, %d, %d, %s, %s%s);", dtype_name(s->type.dt),
			s->terms, s->from_turned, cuda_swizzled(p, &s->at),
			cuda_swizzled(p, &s->from), acc.at);
		return;
	}
	c_line(p, "{");
	p->depth++;
	c_line(p, "unsigned rows[%d];", s->terms / each * 4);
	for (int32_t i = 0; i < s->terms / each; i++)
		c_line(p, "%s(rows + %d, &%s + %" PRId64 ", %" PRId64 ");", fn, 4 * i,
			c_element(p, &s->at), each * i * (s->at_turned ? s->n : 1),
			s->n);
	c_line(p, "MMA_BY_WARPS(%s, %d, %d, rows, %s%s);", dtype_name(s->type.dt),
		s->terms, s->from_turned, cuda_swizzled(p, &s->from), acc.at);
	p->depth--;
	c_line(p, "}");
}

/* ---- all of them ---- */

void cuda_matrix(printer *p, const kern_stmt *s)
{
	const char *l = cuda_lane(p, CUDA_WARP);

	/* `before` has met for what it reads */
	if (spread_has_sync(p->more, s, SYNC_WRITE))
		c_line(p, "SYNC();");
	if (s->kind == KERN_MMA) {
		if (s->warps > 0)
			by_warps(p, s);
		else
			multiply(p, s);
		return;
	}
	for (int32_t i = 0; i < s->n_acc; i++) {
		const char *r = c_name(p, s->acc[i]);
		const char *e = arena_printf(p->a,
			"(&%s)[%" PRId64 " * (%s / 4 + %d) + 2 * (%s %% 4) + %d]",
			c_element(p, &s->at), s->n, l, 8 * (i / 2 % 2), l,
			i / 4 * 8 + i % 2);

		if (s->rows > 0)
			c_line(p, "if (%s / 4 < %d && 2 * (%s %% 4) < %d)", l,
				s->rows - 8 * (i / 2 % 2), l,
				s->width - (i / 4 * 8 + i % 2));
		if (s->kind == KERN_TAKE)
			c_line(p, "%s = LD(%s);", r, e);
		else
			c_line(p, "ST(%s, %s);", e, r);
	}
}
