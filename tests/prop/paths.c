/* paths.c: see paths.h. */
#include "paths.h"

#include "base/random.h"

static const int64_t LARGEST = INT64_C(1) << 40;

int64_t draw_below(draw *d, int64_t n)
{
	uint64_t r = base_mix64(d->seed * UINT64_C(0x2545f4914f6cdd1d) +
		++d->n * UINT64_C(0x9e3779b97f4a7c15));

	return (int64_t)(r % (uint64_t)n);
}

bool draw_chance(draw *d, int64_t percent)
{
	return draw_below(d, 100) < percent;
}

int64_t path_numel(const path_shape *s)
{
	int64_t n = 1;

	for (int32_t i = 0; i < s->rank; i++)
		n *= s->at[i];
	return n;
}

const path_shape *path_out(const path *p)
{
	return p->n == 0 ? &p->base : &p->op[p->n - 1].out;
}

/* ---- operations ---- */

static path_op *push(path *p, enum path_kind kind)
{
	path_shape in = *path_out(p);
	path_op *op = &p->op[p->n++];

	*op = (path_op){.kind = kind, .in = in, .out = in, .step = 1,
		.dilation = 1};
	return op;
}

static void push_transpose(path *p, const int32_t *perm)
{
	path_op *op = push(p, PATH_TRANSPOSE);

	for (int32_t i = 0; i < op->in.rank; i++) {
		op->perm[i] = perm[i];
		op->out.at[i] = op->in.at[perm[i]];
	}
}

static void random_perm(draw *d, int32_t n, int32_t *perm)
{
	for (int32_t i = 0; i < n; i++) {
		int32_t k = (int32_t)draw_below(d, i + 1);

		perm[i] = perm[k];
		perm[k] = i;
	}
}

/* The prime factors of n, dealt out. */
static void random_shape(draw *d, int64_t n, path_shape *s)
{
	s->rank = 1 + (int32_t)draw_below(d, PATH_RANK);
	for (int32_t i = 0; i < s->rank; i++)
		s->at[i] = 1;
	for (int64_t q = 2; n > 1; q++) {
		if (q * q > n)
			q = n;
		while (n % q == 0) {
			s->at[draw_below(d, s->rank)] *= q;
			n /= q;
		}
	}
}

static void push_reshape(path *p, const path_shape *to)
{
	path_op *op = push(p, PATH_RESHAPE);

	op->out = *to;
}

static void push_slice(path *p, int32_t axis, int64_t start, int64_t step,
	int64_t n)
{
	path_op *op = push(p, PATH_SLICE);

	op->axis = axis;
	op->start = start;
	op->step = step;
	op->out.at[axis] = n;
}

static bool push_window(draw *d, path *p, int32_t axis)
{
	int64_t n = path_out(p)->at[axis], k = 1 + draw_below(d, 3);
	int64_t dilation = 1 + draw_below(d, 2), step = 1 + draw_below(d, 3);
	path_op *op;

	if (path_out(p)->rank == PATH_RANK || (k - 1) * dilation >= n)
		return false;
	op = push(p, PATH_WINDOW);
	op->axis = axis;
	op->step = step;
	op->dilation = dilation;
	op->out.rank++;
	for (int32_t i = op->in.rank; i > axis + 1; i--)
		op->out.at[i] = op->in.at[i - 1];
	op->out.at[axis] = (n - 1 - (k - 1) * dilation) / step + 1;
	op->out.at[axis + 1] = k;
	return true;
}

static void push_pad(draw *d, path *p, int32_t axis, enum path_kind kind)
{
	path_op *op = push(p, kind);

	op->axis = axis;
	op->start = draw_below(d, 3);
	op->out.at[axis] += op->start + draw_below(d, 3);
}

static void push_random(draw *d, path *p, bool bijective)
{
	static const enum path_kind pick[] = {PATH_TRANSPOSE, PATH_RESHAPE,
		PATH_RESHAPE, PATH_FLIP, PATH_TRANSPOSE, PATH_RESHAPE,
		PATH_SLICE, PATH_PAD, PATH_WINDOW, PATH_EDGE};
	enum path_kind kind = pick[draw_below(d, bijective ? 6 : 10)];
	const path_shape *s = path_out(p);
	int32_t axis, perm[PATH_RANK];
	int64_t n, start, step;
	path_shape to;

	if (s->rank == 0 || path_numel(s) > LARGEST / 16)
		return;
	axis = (int32_t)draw_below(d, s->rank);
	n = s->at[axis];
	switch (kind) {
	case PATH_TRANSPOSE:
		random_perm(d, s->rank, perm);
		push_transpose(p, perm);
		break;
	case PATH_RESHAPE:
		random_shape(d, path_numel(s), &to);
		push_reshape(p, &to);
		break;
	case PATH_SLICE:
		start = draw_below(d, n < 4 ? n : 4);
		step = 1 + draw_below(d, 3);
		n = (n - start + step - 1) / step;
		push_slice(p, axis, start, step,
			draw_chance(d, 50) ? n : 1 + draw_below(d, n));
		break;
	case PATH_FLIP:
		push(p, PATH_FLIP)->axis = axis;
		break;
	case PATH_PAD:
	case PATH_EDGE:
		push_pad(d, p, axis, kind);
		break;
	case PATH_WINDOW:
		(void)push_window(d, p, axis);
		break;
	case PATH_KINDS:
		break;
	}
}

/* ---- pairs ---- */

static void random_base(draw *d, path_shape *s)
{
	static const int64_t large[] = {16, 24, 32, 60, 64, 100, 128, 1000,
		1024, 4096, 50000, INT64_C(1) << 20};
	int64_t most = draw_chance(d, 20) ? LARGEST >> 8 : 20000;

	s->rank = (int32_t)draw_below(d, PATH_RANK + 1);
	for (int32_t i = 0; i < s->rank; i++) {
		s->at[i] = 1 + draw_below(d, 9);
		if (draw_chance(d, 8))
			s->at[i] = large[draw_below(d, 12)];
		if (s->at[i] > most)
			s->at[i] = 1;
		most /= s->at[i];
	}
}

/* Operations that together change nothing. */
static void push_nothing(draw *d, path *p)
{
	const path_shape s = *path_out(p);
	int32_t perm[PATH_RANK], back[PATH_RANK], axis;
	path_shape to;

	if (s.rank == 0 || p->n + 2 > PATH_OPS)
		return;
	axis = (int32_t)draw_below(d, s.rank);
	switch (draw_below(d, 4)) {
	case 0:
		random_perm(d, s.rank, perm);
		for (int32_t i = 0; i < s.rank; i++)
			back[perm[i]] = i;
		push_transpose(p, perm);
		push_transpose(p, back);
		break;
	case 1:
		push(p, PATH_FLIP)->axis = axis;
		push(p, PATH_FLIP)->axis = axis;
		break;
	default:
		random_shape(d, path_numel(&s), &to);
		push_reshape(p, &to);
		push_reshape(p, &s);
		break;
	}
}

/* One operation becomes another with the same shapes. */
static void mutate(draw *d, path_op *op)
{
	int32_t axis = op->in.rank > 0 ?
		(int32_t)draw_below(d, op->in.rank) : 0;

	switch (op->kind) {
	case PATH_TRANSPOSE:
		for (int32_t i = 1; i < op->in.rank; i++) {
			int32_t *q = op->perm, t = q[i];

			if (op->out.at[i] != op->out.at[i - 1] ||
				op->out.at[i] == 1)
				continue;
			q[i] = q[i - 1];
			q[i - 1] = t;
			return;
		}
		break;
	case PATH_FLIP:
		op->axis = axis;
		break;
	case PATH_SLICE:
		if (op->start + 1 + (op->out.at[op->axis] - 1) * op->step <
			op->in.at[op->axis])
			op->start++;
		else if (op->start > 0)
			op->start--;
		break;
	case PATH_PAD:
	case PATH_EDGE:
		if (op->start > 0)
			op->start--;
		break;
	case PATH_WINDOW:
		if (op->step > 1)
			op->step--;
		else if (op->dilation > 1)
			op->dilation--;
		break;
	case PATH_RESHAPE:
	case PATH_KINDS:
		break;
	}
}

void path_pair(draw *d, path *a, path *b)
{
	int64_t how = draw_below(d, 100), n = 1 + draw_below(d, 5);
	int64_t most = 3;

	memset(a, 0, sizeof *a);
	random_base(d, &a->base);
	for (int64_t i = 0; i < n; i++)
		push_random(d, a, how >= 75);
	memset(b, 0, sizeof *b);
	b->base = a->base;
	if (how >= 75) { /* unrelated on the way */
		for (int64_t i = 0; i < n; i++)
			push_random(d, b, true);
		push_reshape(b, path_out(a));
		return;
	}
	for (int32_t i = 0; i <= a->n; i++) {
		if (most > 0 && b->n + 2 + a->n - i <= PATH_OPS &&
			draw_chance(d, 60)) {
			push_nothing(d, b);
			most--;
		}
		if (i < a->n)
			b->op[b->n++] = a->op[i];
	}
	if (how >= 45 && b->n > 0)
		mutate(d, &b->op[draw_below(d, b->n)]);
}

/* ---- meaning, as forms ---- */

static void op_forms(ix *x, const ix_dom *d, const path_op *op,
	const ix_form **with, ix_fact *facts, int32_t *n)
{
	const ix_form *at[PATH_RANK];
	const int32_t a = op->axis;

	for (int32_t i = 0; i < op->out.rank; i++)
		at[i] = ix_axis(x, d, i);
	for (int32_t i = 0; i < op->in.rank && i < op->out.rank; i++)
		with[i] = at[i];
	switch (op->kind) {
	case PATH_TRANSPOSE:
		for (int32_t i = 0; i < op->in.rank; i++)
			with[op->perm[i]] = at[i];
		break;
	case PATH_RESHAPE:
		ix_delinearise(x, d, ix_linearise(x, d, op->out.rank,
			op->out.at, at), op->in.rank, op->in.at, with);
		break;
	case PATH_SLICE:
		with[a] = ix_addc(x, ix_scale(x, at[a], op->step), op->start);
		break;
	case PATH_FLIP:
		with[a] = ix_addc(x, ix_scale(x, at[a], -1),
			op->in.at[a] - 1);
		break;
	case PATH_PAD:
		with[a] = ix_addc(x, at[a], -op->start);
		facts[(*n)++] = (ix_fact){with[a], 0, op->in.at[a]};
		break;
	case PATH_EDGE:
		with[a] = ix_clamp(x, d, ix_addc(x, at[a], -op->start), 0,
			op->in.at[a] - 1);
		break;
	case PATH_WINDOW:
		with[a] = ix_add(x, d, ix_scale(x, at[a], op->step),
			ix_scale(x, at[a + 1], op->dilation));
		for (int32_t i = a + 1; i < op->in.rank; i++)
			with[i] = at[i + 1];
		break;
	case PATH_KINDS:
		break;
	}
}

/*
 * From the tensor outwards. What is composed under a guard is simplified
 * under it.
 */
const ix_form *path_form(ix *x, const path *p, ix_fact *facts, int32_t *n)
{
	const ix_form *f, *with[PATH_RANK] = {NULL};
	ix_dom d = {{p->base.rank, p->base.at}, 0, facts};
	int32_t first = *n;

	for (int32_t i = 0; i < p->base.rank; i++)
		with[i] = ix_axis(x, &d, i);
	f = ix_linearise(x, &d, p->base.rank, p->base.at, with);
	for (int32_t i = 0; i < p->n; i++) {
		const path_op *op = &p->op[i];
		ix_dom free = {{op->out.rank, op->out.at}, 0, NULL};
		int32_t old = *n;

		op_forms(x, &free, op, with, facts, n);
		for (int32_t k = first; k < old; k++)
			facts[k].f = ix_subst(x, &free, facts[k].f,
				op->in.rank, op->in.at, with);
		d = free;
		d.n_facts = *n - first;
		d.facts = facts + first;
		f = ix_subst(x, &d, f, op->in.rank, op->in.at, with);
	}
	return f;
}

/* ---- meaning, as integers ---- */

static bool op_point(const path_op *op, const int64_t *from, int64_t *to)
{
	const int32_t a = op->axis;
	int64_t flat = 0, n = op->in.at[a];

	for (int32_t i = 0; i < op->in.rank; i++)
		to[i] = i < op->out.rank ? from[i] : 0;
	switch (op->kind) {
	case PATH_TRANSPOSE:
		for (int32_t i = 0; i < op->in.rank; i++)
			to[op->perm[i]] = from[i];
		break;
	case PATH_RESHAPE:
		for (int32_t i = 0; i < op->out.rank; i++)
			flat = flat * op->out.at[i] + from[i];
		for (int32_t i = op->in.rank - 1; i >= 0; i--) {
			to[i] = flat % op->in.at[i];
			flat /= op->in.at[i];
		}
		break;
	case PATH_SLICE:
		to[a] = op->start + op->step * from[a];
		break;
	case PATH_FLIP:
		to[a] = n - 1 - from[a];
		break;
	case PATH_PAD:
		to[a] = from[a] - op->start;
		return to[a] >= 0 && to[a] < n;
	case PATH_EDGE:
		to[a] = from[a] - op->start;
		to[a] = to[a] < 0 ? 0 : to[a] >= n ? n - 1 : to[a];
		break;
	case PATH_WINDOW:
		to[a] = from[a] * op->step + from[a + 1] * op->dilation;
		for (int32_t i = a + 1; i < op->in.rank; i++)
			to[i] = from[i + 1];
		break;
	case PATH_KINDS:
		break;
	}
	return true;
}

bool path_element(const path *p, const int64_t *point, int64_t *out)
{
	int64_t at[PATH_RANK] = {0}, to[PATH_RANK] = {0};

	for (int32_t i = 0; i < path_out(p)->rank; i++)
		at[i] = point[i];
	for (int32_t i = p->n - 1; i >= 0; i--) {
		if (!op_point(&p->op[i], at, to))
			return false;
		memcpy(at, to, sizeof at);
	}
	*out = 0;
	for (int32_t i = 0; i < p->base.rank; i++)
		*out = *out * p->base.at[i] + at[i];
	return true;
}

/* ---- text ---- */

void path_print(str *s, const path *p)
{
	static const char *const name[PATH_KINDS] = {"transpose", "reshape",
		"slice", "flip", "pad", "edge", "window"};

	str_shape(s, p->base.at, p->base.rank);
	for (int32_t i = 0; i < p->n; i++) {
		const path_op *op = &p->op[i];

		str_printf(s, " %s(", name[op->kind]);
		if (op->kind == PATH_TRANSPOSE)
			for (int32_t k = 0; k < op->in.rank; k++)
				str_printf(s, "%s%d", k > 0 ? "," : "",
					op->perm[k]);
		else if (op->kind != PATH_RESHAPE)
			str_printf(s, "%d: %lld,%lld,%lld", op->axis,
				(long long)op->start, (long long)op->step,
				(long long)op->dilation);
		str_add(s, ") ");
		str_shape(s, op->out.at, op->out.rank);
	}
}
