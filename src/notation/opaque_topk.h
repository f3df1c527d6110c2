/* opaque_topk.h: topk([3, 1, 2], count=2, desc=1) = [3, 2], [0, 2] */
static size_t room_topk(const row_call *j)
{
	return row_lines_room(j);
}

static void run_topk(const row_call *j)
{
	row_sort_lines(j, j->attr[2] != 0, j->attr[1], j->out[0],
		(int64_t *)j->out[1]);
}
