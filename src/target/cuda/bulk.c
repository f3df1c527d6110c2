/*
 * bulk.c: prints copies in bulk, as CUDA C.
 *
 * One thread begins such a copy, of a box of a matrix that the host has described: a
 * param of the phase, `map_p1_4096_512_64`, for boxes of 64 rows of p1 as 4096 rows of
 * 512 elements. They are counted in groups, as other copies are, each of which has a
 * barrier in the memory of the block, behind all arrays.
 */
#include "target/cuda/local.h"

#include <inttypes.h>

static c_map map_of(const kern_kernel *k, const kern_stmt *s)
{
	return (c_map){.param = k->array.at[s->from.array].number,
		.columns = s->m,
		.rows = k->array.at[s->from.array].elems / s->m,
		.box = s->rows};
}

static bool same(const c_map *x, const c_map *y)
{
	return x->param == y->param && x->columns == y->columns &&
	       x->rows == y->rows && x->box == y->box;
}

typedef VEC(c_map) maps;

static void find(arena *a, const kern_kernel *k, const kern_block *b, maps *out)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		int32_t j = 0;

		if (s->kind == KERN_ASYNC && s->bulk) {
			c_map m = map_of(k, s);

			while (j < out->n && !same(&out->at[j], &m))
				j++;
			if (j == out->n)
				*vec_push(a, out) = m;
		}
		find(a, k, &s->body, out);
		find(a, k, &s->other, out);
	}
}

bool cuda_has_maps(const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if ((s->kind == KERN_ASYNC && s->bulk) || cuda_has_maps(&s->body) ||
			cuda_has_maps(&s->other))
			return true;
	}
	return false;
}

int32_t cuda_maps(arena *a, const kern_kernel *k, const kern_phase *p, const c_map **out)
{
	maps m = {0};

	find(a, k, &p->body, &m);
	*out = m.at;
	return m.n;
}

const char *cuda_map_name(arena *a, const c_map *m)
{
	return arena_printf(a, "map_p%d_%" PRId64 "_%" PRId64 "_%d", m->param, m->rows,
		m->columns, m->box);
}

size_t cuda_bulk_offset(const kern_kernel *k)
{
	return (k->local_bytes + CUDA_BULK_ALIGN - 1) / CUDA_BULK_ALIGN * CUDA_BULK_ALIGN;
}

void cuda_bulk(printer *p, const kern_stmt *s)
{
	c_map m = map_of(p->k, s);
	const kern_form *row, *column;

	kern_row_and_column(((const spread *)p->more)->narrow, s->from.at, s->m, &row, &column);
	c_line(p, "COPY_BULK(wide_p%d, %s, %s, %s, %s, &%s, %" PRId64 ", %d);", m.param,
		cuda_map_name(p->a, &m), cuda_swizzled(p, &s->at), c_form(p, column),
		c_form(p, row), c_element(p, &s->from), s->m, s->rows);
}
