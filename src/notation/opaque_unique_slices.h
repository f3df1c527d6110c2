/* opaque_unique_slices.h: which slices along an axis are equal, as in `unique`. */
typedef struct row_slices {
	const row_call *j;
	int64_t n, outer, inner; /* (outer, n, inner) */
} row_slices;

static row_key row_slice_element(const row_slices *s, int64_t slice, int64_t i)
{
	int64_t row = i / s->inner, col = i % s->inner;

	return row_load(s->j->in_type[0].dtype, s->j->in[0],
		(row * s->n + slice) * s->inner + col);
}

/* Compares slices x and y element by element: -1, 0 or 1. */
static int row_compare_slices(const row_slices *s, int64_t x, int64_t y)
{
	row_dtype t = s->j->in_type[0].dtype;

	for (int64_t i = 0; i < s->outer * s->inner; i++) {
		row_key p = row_slice_element(s, x, i);
		row_key q = row_slice_element(s, y, i);

		if (row_is_less(t, p, q))
			return -1;
		if (row_is_less(t, q, p))
			return 1;
	}
	return 0;
}

static size_t room_unique_slices(const row_call *j)
{
	return (size_t)j->in_type[0].shape[j->attr[0]] * sizeof(int64_t);
}

/* Inserts each slice into the sorted list of those before it. */
static void run_unique_slices(const row_call *j)
{
	const row_type *t = &j->in_type[0];
	int32_t axis = (int32_t)j->attr[0];
	int64_t *first = (int64_t *)j->out[0], *inverse = (int64_t *)j->out[1];
	int64_t *counts = (int64_t *)j->out[2], found = 0;
	int64_t *rank = (int64_t *)(void *)j->room;
	row_slices s;

	s.j = j;
	s.n = t->shape[axis];
	s.outer = row_count(t, 0, axis);
	s.inner = row_count(t, axis + 1, t->rank);
	for (int64_t i = 0; i < s.n; i++) {
		int64_t lo = 0, hi = found;

		while (lo < hi) {
			int64_t mid = (lo + hi) / 2;

			if (row_compare_slices(&s, first[mid], i) < 0)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo == found || row_compare_slices(&s, first[lo], i) != 0) {
			for (int64_t k = found++; k > lo; k--) {
				first[k] = first[k - 1];
				counts[k] = counts[k - 1];
			}
			first[lo] = i;
			counts[lo] = 0;
		}
		counts[lo]++;
		rank[i] = first[lo];
	}
	for (int64_t i = 0; i < s.n; i++)
		for (int64_t k = 0; k < found; k++)
			if (first[k] == rank[i])
				inverse[i] = k;
	for (int64_t i = found; i < s.n; i++) {
		first[i] = -1;
		counts[i] = 0;
	}
	*(int64_t *)j->out[3] = found;
}
