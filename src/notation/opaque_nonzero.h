/* opaque_nonzero.h: nonzero([0, 5]) = [[1], [-1]], 1 */
static size_t room_nonzero(const row_call *j)
{
	(void)j;
	return 0;
}

static void run_nonzero(const row_call *j)
{
	const row_type *t = &j->in_type[0];
	int64_t n = row_count(t, 0, t->rank), found = 0;
	int64_t *places = (int64_t *)j->out[0]; /* (n, rank) */

	for (int64_t i = 0; i < n; i++) {
		row_key k = row_load(t->dtype, j->in[0], i);
		int64_t rest = i;

		if (row_is_float(t->dtype) ? k.f == 0 : k.i == 0)
			continue;
		for (int32_t d = t->rank - 1; d >= 0; d--) {
			places[found * t->rank + d] = rest % t->shape[d];
			rest /= t->shape[d];
		}
		found++;
	}
	for (int64_t i = found * t->rank; i < n * t->rank; i++)
		places[i] = -1;
	*(int64_t *)j->out[1] = found;
}
