/*
 * opaque_unique.h: unique([2, 1, 2]) = [1, 2, 0], where they are first [1, 0, -1],
 * which one each is [1, 0, 1], how often they are there [1, 2, 0], 2
 */
static size_t room_unique(const row_call *j)
{
	return row_order_room(
		row_count(&j->in_type[0], 0, j->in_type[0].rank));
}

static void run_unique(const row_call *j)
{
	const row_type *t = &j->in_type[0];
	int64_t n = row_count(t, 0, t->rank), found = 0;
	int64_t *first = (int64_t *)j->out[1], *inverse = (int64_t *)j->out[2];
	int64_t *counts = (int64_t *)j->out[3];
	row_order o = row_order_new(j->room, t->dtype, 0, n);

	for (int64_t i = 0; i < n; i++)
		o.at[i] = row_load(t->dtype, j->in[0], i);
	row_order_sort(&o);
	for (int64_t i = 0; i < n; i++) {
		int64_t place = o.perm[i];

		if (i == 0 || row_is_before(&o, o.perm[i - 1], place)) {
			row_copy(t->dtype, j->out[0], found, j->in[0], place);
			first[found] = place;
			counts[found++] = 0;
		}
		inverse[place] = found - 1;
		counts[found - 1]++;
	}
	if (found < n)
		memset((char *)j->out[0] + (size_t)found * row_size(t->dtype),
			0, (size_t)(n - found) * row_size(t->dtype));
	for (int64_t i = found; i < n; i++) {
		first[i] = -1;
		counts[i] = 0;
	}
	*(int64_t *)j->out[4] = found;
}
