/* opaque_argsort.h: argsort([3, NaN, 1, 3]) = [2, 0, 3, 1] */
static size_t room_argsort(const row_call *j)
{
	return row_lines_room(j);
}

static void run_argsort(const row_call *j)
{
	row_sort_lines(j, j->attr[1] != 0, j->in_type[0].shape[j->attr[0]],
		NULL, (int64_t *)j->out[0]);
}
