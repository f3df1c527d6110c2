/*
 * layout.c: which process owns which element.
 *
 * Consumes a mesh and cuts; produces layouts, and the elements of a process as
 * runs. Guarantees: without replication every element has one owner, even if
 * blocks do not divide extents; a process may own no elements.
 *
 *     shape (10), mesh [4], block 3:   [0,3) [3,6) [6,9) [9,10)
 *     shape (9),  mesh [8], block 2:   ... [8,9) and three without elements
 */
#include "layout/local.h"

int64_t shard_mesh_size(env *e, const shard_mesh *m)
{
	int64_t size = 1;

	if (m->n < 0 || m->n > SHARD_MAX_AXES)
		env_fail(e, TN_EINVAL, "shard.mesh", (loc){0},
			"a mesh has 0 to %d axes, not %d", SHARD_MAX_AXES,
			m->n);
	for (int32_t i = 0; i < m->n; i++) {
		if (m->extent[i] < 1)
			env_fail(e, TN_EINVAL, "shard.mesh", (loc){0},
				"axis %d of the mesh has extent %lld; it must "
				"be at least 1",
				i, (long long)m->extent[i]);
		if (!mul_ok(size, m->extent[i], &size) || size > INT32_MAX)
			env_fail(e, TN_EINVAL, "shard.mesh", (loc){0},
				"the mesh has more than 2^31 processes");
	}
	return size;
}

int64_t shard_mesh_at(const shard_mesh *m, int64_t process, int32_t axis)
{
	for (int32_t i = m->n - 1; i > axis; i--)
		process /= m->extent[i];
	return process % m->extent[axis];
}

shard_layout shard_replicated(int64_t numel)
{
	return (shard_layout){.numel = numel};
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* The last cut of the same run, whose blocks can be cut; or -1. */
static int32_t cut_before(const shard_layout *l, int64_t lo, int64_t hi)
{
	for (int32_t i = l->n - 1; i >= 0; i--) {
		int32_t top = i;

		while (l->tag[top].within >= 0)
			top = l->tag[top].within;
		if (l->tag[top].lo == lo && l->tag[top].hi == hi)
			return i;
	}
	return -1;
}

void shard_cut(env *e, shard_layout *l, const shard_mesh *m, int32_t rank,
	const int64_t *shape, int32_t axis, int32_t mesh_axis, int64_t block)
{
	int64_t lo = 1, hi, extent, p;
	int32_t before;

	if (axis < 0 || axis >= rank)
		env_fail(e, TN_EINVAL, "shard.axis", (loc){0},
			"axis %d of a tensor of rank %d cannot be sharded",
			axis, rank);
	if (mesh_axis < 0 || mesh_axis >= m->n)
		env_fail(e, TN_EINVAL, "shard.axis", (loc){0},
			"the mesh has %d axes, there is no axis %d", m->n,
			mesh_axis);
	for (int32_t i = 0; i < l->n; i++)
		if (l->tag[i].mesh == mesh_axis)
			env_fail(e, TN_EINVAL, "shard.twice", (loc){0},
				"axis %d of the mesh already cuts this tensor",
				mesh_axis);
	if (l->numel == 0)
		return;
	for (int32_t i = axis + 1; i < rank; i++)
		lo *= shape[i];
	p = m->extent[mesh_axis];
	extent = shape[axis];
	before = cut_before(l, lo, lo * extent);
	if (before >= 0) {
		const shard_tag *t = &l->tag[before];

		extent = t->block < t->hi / lo ? t->block : t->hi / lo;
		/* if one process has all, the run does not start again in blocks */
		if (t->block >= t->hi / lo)
			before = t->within;
	}
	hi = lo * extent;
	if (block == 0)
		block = divide_up(extent, p);
	if (block < 0 || divide_up(extent, block) > p)
		env_fail(e, TN_EINVAL, "shard.block", (loc){0},
			"%lld indices in blocks of %lld need more than the "
			"%lld processes of the axis",
			(long long)extent, (long long)block, (long long)p);
	l->tag[l->n++] = (shard_tag){.mesh = mesh_axis,
		.mult = 1,
		.count = p,
		.lo = lo,
		.hi = hi,
		.block = block,
		.within = before};
}

/* The value of element e on the tag's run; *left: the number of values of the
 * block from there on. */
static int64_t value_of(
	const shard_layout *l, int32_t tag, int64_t e, int64_t *left)
{
	const shard_tag *t = &l->tag[tag];
	int64_t v, end;

	if (t->within < 0) {
		v = e / t->lo % (t->hi / t->lo);
		end = t->hi / t->lo - v;
	} else {
		v = value_of(l, t->within, e, &end) %
			l->tag[t->within].block;
	}
	*left = t->block - v % t->block;
	if (*left > end)
		*left = end;
	return v;
}

bool layout_is_wide(const shard_tag *t)
{
	return t->before != 0 || t->after != 0;
}

shard_run layout_wide_block(const shard_tag *t, int64_t block)
{
	int64_t n = t->hi / t->lo, from = block * t->block - t->before;
	int64_t end = (block + 1) * t->block + t->after;

	from = from < 0 ? 0 : from > n ? n : from;
	end = end < from ? from : end > n ? n : end;
	return (shard_run){from, end - from};
}

/* Is value v of the run in the block? *left: the number of values from there on
 * with the same answer. */
static bool in_block(const shard_tag *t, int64_t v, int64_t block, int64_t *left)
{
	shard_run r;

	if (!layout_is_wide(t))
		return v / t->block == block;
	r = layout_wide_block(t, block);
	*left = (v < r.from ? r.from
		 : v < r.from + r.n ? r.from + r.n : t->hi / t->lo) - v;
	return v >= r.from && v < r.from + r.n;
}

static int64_t wanted_block(
	const shard_layout *l, int32_t tag, const shard_mesh *m, int64_t process)
{
	const shard_tag *t = &l->tag[tag];

	return shard_mesh_at(m, process, t->mesh) / t->mult % t->count;
}

bool shard_owns(const shard_layout *l, const shard_mesh *m, int64_t process,
	int64_t e)
{
	for (int32_t i = 0; i < l->n; i++) {
		int64_t left, v = value_of(l, i, e, &left);

		if (!in_block(&l->tag[i], v, wanted_block(l, i, m, process),
			    &left))
			return false;
	}
	return true;
}

shard_runs shard_owned(arena *a, const shard_layout *l, const shard_mesh *m,
	int64_t process)
{
	VEC(shard_run) run = {0};
	int64_t e = 0, next, want[SHARD_MAX_TAGS], elems = 0;

	for (int32_t i = 0; i < l->n; i++)
		want[i] = wanted_block(l, i, m, process);
	for (; e < l->numel; e = next) {
		bool mine = true;

		next = l->numel;
		for (int32_t i = 0; i < l->n; i++) {
			const shard_tag *t = &l->tag[i];
			int64_t left, end;
			int64_t v = value_of(l, i, e, &left);

			mine &= in_block(t, v, want[i], &left);
			end = (e / t->lo + left) * t->lo;
			if (end < next)
				next = end;
		}
		if (!mine)
			continue;
		elems += next - e;
		if (run.n > 0 &&
			run.at[run.n - 1].from + run.at[run.n - 1].n == e)
			run.at[run.n - 1].n += next - e;
		else
			*vec_push(a, &run) = (shard_run){e, next - e};
	}
	return (shard_runs){.n = run.n, .at = run.at, .elems = elems};
}

bool shard_same(const shard_layout *a, const shard_layout *b)
{
	if (a->n != b->n || a->numel != b->numel)
		return false;
	for (int32_t i = 0; i < a->n; i++) {
		const shard_tag *s = &a->tag[i], *t = &b->tag[i];

		if (s->mesh != t->mesh || s->mult != t->mult ||
			s->count != t->count || s->lo != t->lo ||
			s->hi != t->hi || s->block != t->block ||
			s->within != t->within || s->before != t->before ||
			s->after != t->after)
			return false;
	}
	return true;
}

/* ---- tags ---- */

bool layout_uses(const shard_layout *l, int32_t mesh_axis)
{
	return layout_find(l, mesh_axis) >= 0;
}

int32_t layout_find(const shard_layout *l, int32_t mesh_axis)
{
	for (int32_t i = 0; i < l->n; i++)
		if (l->tag[i].mesh == mesh_axis)
			return i;
	return -1;
}

int32_t layout_top(const shard_layout *l, int32_t i)
{
	while (l->tag[i].within >= 0)
		i = l->tag[i].within;
	return i;
}

bool layout_add(shard_layout *l, shard_tag t)
{
	for (int32_t i = 0; i < l->n && t.within < 0; i++) {
		const shard_tag *u = &l->tag[layout_top(l, i)];

		if (t.lo < u->hi && u->lo < t.hi)
			return false;
		/* digits of one number: the faster ends where the slower may
		 * begin */
		if (t.lo >= u->hi ? t.lo % u->hi != 0 : u->lo % t.hi != 0)
			return false;
	}
	/* blocks of another cut are cut once */
	for (int32_t i = 0; i < l->n && t.within >= 0; i++)
		if (l->tag[i].within == t.within)
			return false;
	if (l->n == SHARD_MAX_TAGS)
		return false;
	l->tag[l->n++] = t;
	return true;
}

bool layout_same_cut(const shard_tag *a, const shard_tag *b)
{
	return a->mesh == b->mesh && a->mult == b->mult &&
		a->count == b->count && a->lo == b->lo && a->hi == b->hi &&
		a->block == b->block && a->before == b->before &&
		a->after == b->after;
}

bool layout_holds(const shard_layout *a, const shard_layout *b)
{
	for (int32_t i = 0; i < a->n; i++) {
		bool found = false;

		for (int32_t k = 0; k < b->n; k++)
			found |= layout_same_cut(&a->tag[i], &b->tag[k]) &&
				(a->tag[i].within < 0) ==
					(b->tag[k].within < 0);
		if (!found)
			return false;
	}
	return true;
}

bool layout_equal(arena *a, const shard_mesh *m, const shard_layout *x,
	const shard_layout *y)
{
	arena *scratch = arena_child(a);
	int64_t n = shard_mesh_size(arena_env(a), m);
	bool equal = x->numel == y->numel;

	for (int64_t p = 0; p < n && equal && !shard_same(x, y); p++) {
		shard_runs r = shard_owned(scratch, x, m, p);
		shard_runs s = shard_owned(scratch, y, m, p);

		equal = r.n == s.n && (r.n == 0 ||
			memcmp(r.at, s.at, (size_t)r.n * sizeof *r.at) == 0);
	}
	arena_free(scratch);
	return equal;
}

static void add_name(str *s, const shard_mesh *m, int32_t axis)
{
	if (m->name[axis] != NULL)
		str_add(s, m->name[axis]);
	else
		str_printf(s, "mesh_%d", axis);
}

void shard_layout_print(str *s, const shard_layout *l, const shard_mesh *m)
{
	if (l->n == 0)
		str_add(s, "replicated");
	for (int32_t i = 0; i < l->n; i++) {
		const shard_tag *t = &l->tag[i];

		str_add(s, i > 0 ? ", " : "");
		add_name(s, m, t->mesh);
		if (t->mult != 1 || t->count != m->extent[t->mesh])
			str_printf(s, "/%lld%%%lld", (long long)t->mult,
				(long long)t->count);
		str_printf(s, " on %lld:%lld by %lld", (long long)t->lo,
			(long long)t->hi, (long long)t->block);
		if (t->within >= 0) {
			str_add(s, " of each block of ");
			add_name(s, m, l->tag[t->within].mesh);
		}
		if (layout_is_wide(t))
			str_printf(s, " and %lld before, %lld behind",
				(long long)t->before, (long long)t->after);
	}
}
