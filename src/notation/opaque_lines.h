/* opaque_lines.h: sorts lines along an axis; also embedded in exported C. */

static int64_t row_count(const row_type *t, int32_t from, int32_t to)
{
	int64_t n = 1;

	for (int32_t d = from; d < to; d++)
		n *= t->shape[d];
	return n;
}

static size_t row_lines_room(const row_call *j)
{
	return row_order_room(j->in_type[0].shape[j->attr[0]]);
}

/*
 * Sorts each line along axis attr[0]; stores the first `count` elements in values
 * (may be NULL) and their indices in places.
 */
static void row_sort_lines(const row_call *j, int desc, int64_t count,
	void *values, int64_t *places)
{
	const row_type *t = &j->in_type[0];
	int32_t axis = (int32_t)j->attr[0];
	int64_t n = t->shape[axis], outer = row_count(t, 0, axis);
	int64_t inner = row_count(t, axis + 1, t->rank);
	row_order o = row_order_new(j->room, t->dtype, desc, n);

	for (int64_t line = 0; line < outer * inner; line++) {
		int64_t row = line / inner, col = line % inner;
		int64_t from = row * n * inner + col;

		for (int64_t i = 0; i < n; i++)
			o.at[i] = row_load(t->dtype, j->in[0],
				from + i * inner);
		row_order_sort(&o);
		for (int64_t i = 0; i < count; i++) {
			int64_t to = (row * count + i) * inner + col;

			places[to] = o.perm[i];
			if (values != NULL)
				row_copy(t->dtype, values, to, j->in[0],
					from + o.perm[i] * inner);
		}
	}
}
