/*
 * opaque_order.h: elements in order, for opaque rows; also embedded in exported C.
 *
 * NaN is greater than every number and equal to itself; -0 equals 0; of equal
 * elements the one with the lower index is first, in ascending and in descending
 * order.
 */

/* An element to compare. The type determines which member is used. */
typedef union row_key {
	double f;
	int64_t i;
} row_key;

static int row_is_less(row_dtype t, row_key x, row_key y)
{
	if (row_is_u64(t))
		return (uint64_t)x.i < (uint64_t)y.i;
	if (!row_is_float(t))
		return x.i < y.i;
	return x.f < y.f || (x.f == x.f && y.f != y.f);
}

static row_key row_load(row_dtype t, const void *data, int64_t i)
{
	row_key k;

	if (row_is_float(t))
		k.f = row_load_f64(t, data, i);
	else
		k.i = row_load_i64(t, data, i);
	return k;
}

static void row_copy(row_dtype t, void *to, int64_t i, const void *from,
	int64_t j)
{
	size_t n = row_size(t);

	memcpy((char *)to + (size_t)i * n, (const char *)from + (size_t)j * n,
		n);
}

typedef struct row_order {
	row_dtype dtype;
	int desc;
	int64_t n;
	row_key *at;	     /* (n) */
	int64_t *perm, *tmp; /* (n) */
} row_order;

static size_t row_order_room(int64_t n)
{
	return (size_t)n * (sizeof(row_key) + 2 * sizeof(int64_t));
}

/* In a room of that size. */
static row_order row_order_new(char *room, row_dtype t, int desc, int64_t n)
{
	row_order o;

	o.dtype = t;
	o.desc = desc;
	o.n = n;
	o.at = (row_key *)(void *)room;
	o.perm = (int64_t *)(void *)(o.at + n);
	o.tmp = o.perm + n;
	return o;
}

static int row_is_before(const row_order *o, int64_t x, int64_t y)
{
	return o->desc ? row_is_less(o->dtype, o->at[y], o->at[x])
		       : row_is_less(o->dtype, o->at[x], o->at[y]);
}

/* Sets perm to the stable order of at[], by a bottom-up merge sort. */
static void row_order_sort(row_order *o)
{
	for (int64_t i = 0; i < o->n; i++)
		o->perm[i] = i;
	for (int64_t run = 1; run < o->n; run *= 2) {
		int64_t *was = o->perm;

		for (int64_t lo = 0; lo < o->n; lo += 2 * run) {
			int64_t mid = lo + run < o->n ? lo + run : o->n;
			int64_t hi = mid + run < o->n ? mid + run : o->n;
			int64_t i = lo, j = mid;

			for (int64_t k = lo; k < hi; k++) {
				int right = i == mid ||
					(j < hi && row_is_before(o, o->perm[j],
							   o->perm[i]));
				o->tmp[k] = o->perm[right ? j++ : i++];
			}
		}
		o->perm = o->tmp;
		o->tmp = was;
	}
}
