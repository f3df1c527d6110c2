/*
 * opaque_non_max_suppression.h: ONNX NonMaxSuppression: of boxes that overlap, the
 * one with the best score; batch, class and number of each that is kept.
 */
typedef struct row_box {
	double y0, x0, y1, x1; /* y0 <= y1, x0 <= x1 */
} row_box;

/*
 * Loads box i, given as two opposite corners, or as centre and size; returns
 * its corners.
 */
static row_box row_load_box(
	row_dtype t, const void *data, int64_t i, int center)
{
	double v[4];
	row_box b;

	for (int32_t k = 0; k < 4; k++)
		v[k] = row_load_f64(t, data, 4 * i + k);
	if (center) { /* x, y, width, height */
		b.y0 = v[1] - v[3] / 2;
		b.x0 = v[0] - v[2] / 2;
		b.y1 = v[1] + v[3] / 2;
		b.x1 = v[0] + v[2] / 2;
		return b;
	}
	b.y0 = v[0] < v[2] ? v[0] : v[2];
	b.y1 = v[0] < v[2] ? v[2] : v[0];
	b.x0 = v[1] < v[3] ? v[1] : v[3];
	b.x1 = v[1] < v[3] ? v[3] : v[1];
	return b;
}

/* Intersection over union; 0 if one of the boxes is empty. */
static double row_overlap(const row_box *p, const row_box *q)
{
	double h = (p->y1 < q->y1 ? p->y1 : q->y1) -
		(p->y0 > q->y0 ? p->y0 : q->y0);
	double w = (p->x1 < q->x1 ? p->x1 : q->x1) -
		(p->x0 > q->x0 ? p->x0 : q->x0);
	double both = (p->y1 - p->y0) * (p->x1 - p->x0) +
		(q->y1 - q->y0) * (q->x1 - q->x0);

	if (!(h > 0 && w > 0))
		return 0;
	return h * w / (both - h * w);
}

typedef struct row_nms {
	const row_call *j;
	row_order by_score;
	row_box *at, *kept; /* (n) boxes of the batch; the kept ones of a class */
	double iou, least;
	int64_t most, found;
} row_nms;

static void row_suppress(row_nms *s, int64_t batch, int64_t kind)
{
	const row_type *scores = &s->j->in_type[1]; /* (b, c, n) */
	int64_t n = scores->shape[2], n_kept = 0;
	int64_t *out = (int64_t *)s->j->out[0];

	for (int64_t i = 0; i < n; i++)
		s->by_score.at[i].f = row_load_f64(scores->dtype, s->j->in[1],
			(batch * scores->shape[1] + kind) * n + i);
	row_order_sort(&s->by_score);
	for (int64_t i = 0; i < n && n_kept < s->most; i++) {
		int64_t place = s->by_score.perm[i];
		int falls = !(s->by_score.at[place].f > s->least);

		for (int64_t k = 0; k < n_kept && !falls; k++)
			falls = row_overlap(&s->kept[k], &s->at[place]) >
				s->iou;
		if (falls)
			continue;
		s->kept[n_kept++] = s->at[place];
		out[3 * s->found] = batch;
		out[3 * s->found + 1] = kind;
		out[3 * s->found + 2] = place;
		s->found++;
	}
}

static size_t room_non_max_suppression(const row_call *j)
{
	int64_t n = j->in_type[0].shape[1];

	return row_order_room(n) + 2 * (size_t)n * sizeof(row_box);
}

static void run_non_max_suppression(const row_call *j)
{
	const row_type *boxes = &j->in_type[0]; /* (b, n, 4) */
	int64_t n = boxes->shape[1], n_classes = j->in_type[1].shape[1];
	row_nms s;

	s.j = j;
	s.most = j->attr[0];
	s.found = 0;
	s.by_score = row_order_new(j->room, boxes->dtype, 1, n);
	s.at = (row_box *)(void *)(j->room + row_order_room(n));
	s.kept = s.at + n;
	s.iou = row_load_f64(boxes->dtype, j->in[2], 0);
	s.least = row_load_f64(boxes->dtype, j->in[3], 0);
	for (int64_t batch = 0; batch < boxes->shape[0]; batch++) {
		for (int64_t i = 0; i < n; i++)
			s.at[i] = row_load_box(boxes->dtype, j->in[0],
				batch * n + i, j->attr[1] != 0);
		for (int64_t kind = 0; kind < n_classes; kind++)
			row_suppress(&s, batch, kind);
	}
	for (int64_t i = 3 * s.found; i < 3 * j->out_type[0].shape[0]; i++)
		((int64_t *)j->out[0])[i] = -1;
	*(int64_t *)j->out[1] = s.found;
}
