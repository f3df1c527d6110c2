/*
 * notation.c: meshes and placements as text, and back.
 *
 *     mesh    "data=2,model=4"
 *     place   "x=shard(0)@data,shard(1,3)@model"    axis 1 in blocks of 3
 *             "x=parts(sum)@data"                   parts of a sum
 *             "x=replicate"
 *             "x=data: axis 0 by 4 of 10, model: replicated"    as printed
 *
 * Cuts are made in the order of the text: a second one of an axis cuts the
 * blocks of the first. Axes count from the end if they are negative.
 */
#include "layout/local.h"

/* ---- reading ---- */

typedef struct reader {
	env *e;
	const char *all, *at;
	const char *rule, *form;
} reader;

static _Noreturn void wrong(const reader *r)
{
	env_fail(r->e, TN_EINVAL, r->rule, (loc){0},
		"\"%s\": at \"%s\": the form is %s", r->all, r->at, r->form);
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
}

static size_t name(reader *r, const char **out)
{
	size_t n = 0;

	while (is_name(r->at[n]))
		n++;
	if (n == 0)
		wrong(r);
	*out = r->at;
	r->at += n;
	return n;
}

static bool taken(reader *r, char c)
{
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static void want(reader *r, char c)
{
	if (!taken(r, c))
		wrong(r);
}

static int64_t number(reader *r)
{
	bool minus = taken(r, '-');
	int64_t v = 0;

	if (*r->at < '0' || *r->at > '9')
		wrong(r);
	for (; *r->at >= '0' && *r->at <= '9'; r->at++)
		if (!mul_ok(v, 10, &v) || !add_ok(v, *r->at - '0', &v))
			wrong(r);
	return minus ? -v : v;
}

static bool same(const char *a, size_t n, const char *b)
{
	return strlen(b) == n && memcmp(a, b, n) == 0;
}

shard_mesh shard_mesh_parse(arena *a, const char *text)
{
	reader r = {arena_env(a), text, text, "shard.mesh", "NAME=N,.."};
	shard_mesh m = {0};

	do {
		const char *at;
		size_t n = name(&r, &at);

		if (m.n == SHARD_MAX_AXES)
			env_fail(r.e, TN_EINVAL, r.rule, (loc){0},
				"\"%s\": a mesh has at most %d axes", text,
				SHARD_MAX_AXES);
		for (int32_t i = 0; i < m.n; i++)
			if (same(at, n, m.name[i]))
				env_fail(r.e, TN_EINVAL, r.rule, (loc){0},
					"\"%s\": two axes are named %s", text,
					m.name[i]);
		want(&r, '=');
		m.name[m.n] = arena_printf(a, "%.*s", (int)n, at);
		m.extent[m.n++] = number(&r);
	} while (taken(&r, ','));
	if (*r.at != '\0')
		wrong(&r);
	shard_mesh_size(r.e, &m);
	return m;
}

/* an axis of the mesh */
static int32_t mesh_name(reader *r, const shard_mesh *m)
{
	const char *at;
	size_t n = name(r, &at);

	for (int32_t i = 0; i < m->n; i++)
		if (same(at, n, m->name[i]))
			return i;
	env_fail(r->e, TN_EINVAL, "shard.axis", (loc){0},
		"\"%s\": the mesh has no axis %.*s", r->all, (int)n, at);
}

/* "@NAME" */
static int32_t mesh_axis(reader *r, const shard_mesh *m)
{
	want(r, '@');
	return mesh_name(r, m);
}

static void one_cut(reader *r, const shard_mesh *m, const sys_tensor *t,
	shard_layout *l)
{
	int64_t axis, block = 0;

	want(r, '(');
	axis = number(r);
	if (taken(r, ',') && (block = number(r)) < 1)
		wrong(r);
	want(r, ')');
	if (axis < -t->rank || axis >= t->rank)
		env_fail(r->e, TN_EINVAL, "shard.axis", (loc){0},
			"\"%s\": %s has no axis %lld, because its rank is %d",
			r->all,
			t->name, (long long)axis, (int)t->rank);
	shard_cut(r->e, l, m, t->rank, t->shape,
		(int32_t)(axis < 0 ? axis + t->rank : axis), mesh_axis(r, m),
		block);
}

/* a name of a monoid */
static void take_op(reader *r, shard_state *h)
{
	const char *at;
	size_t n = name(r, &at);
	int32_t op = ir_monoid_find(at, n);

	if (op < 0 || ir_monoid_at(op)->n_comp != 1 ||
		(h->parts != 0 && op != h->parts_monoid))
		env_fail(r->e, TN_EINVAL, "shard.op", (loc){0},
			"\"%s\": parts must be of sum, prod, max or min, not "
			"%.*s",
			r->all, (int)n, at);
	h->parts_monoid = op;
}

static void take_parts(const shard_mesh *m, shard_state *h, int32_t axis)
{
	if (m->extent[axis] > 1)
		h->parts |= 1u << axis;
}

static void one_sum(reader *r, const shard_mesh *m, shard_state *h)
{
	want(r, '(');
	take_op(r, h);
	want(r, ')');
	take_parts(m, h, mesh_axis(r, m));
}

/* ---- what was printed ---- */

static bool words(reader *r, const char *text)
{
	size_t n = strlen(text);

	if (strncmp(r->at, text, n) != 0)
		return false;
	r->at += n;
	return true;
}

typedef struct printed_cut {
	int32_t mesh, axis;
	int64_t block;
	bool inner; /* it cuts each block of another */
} printed_cut;

/* "axis 0 by 4 of 10" */
static printed_cut read_cut(reader *r, const sys_tensor *t, int32_t mesh)
{
	printed_cut c = {.mesh = mesh};
	int64_t axis = number(r);

	if (axis < 0 || axis >= t->rank || !words(r, " by "))
		wrong(r);
	c.axis = (int32_t)axis;
	c.block = number(r);
	c.inner = words(r, " of each block");
	if (c.block < 1 || (!c.inner && words(r, " of ") &&
				   number(r) != t->shape[axis]))
		wrong(r);
	return c;
}

/* All axes of the mesh, in its order: what cuts blocks comes behind them. */
static void read_printed(reader *r, const shard_mesh *m, const sys_tensor *t,
	shard_state *h, shard_layout *l)
{
	printed_cut cut[SHARD_MAX_AXES];
	int32_t n = 0;

	do {
		int32_t mesh = mesh_name(r, m);

		if (!words(r, ": "))
			wrong(r);
		if (words(r, "axis ")) {
			if (n == SHARD_MAX_AXES)
				wrong(r);
			cut[n++] = read_cut(r, t, mesh);
		} else if (t->is_input && words(r, "parts of a ")) {
			take_op(r, h);
			take_parts(m, h, mesh);
		} else if (!words(r, "replicated")) {
			wrong(r);
		}
	} while (words(r, ", "));
	for (int32_t inner = 0; inner < 2; inner++)
		for (int32_t i = 0; i < n; i++)
			if (cut[i].inner == (inner != 0))
				shard_cut(r->e, l, m, t->rank, t->shape,
					cut[i].axis, cut[i].mesh,
					cut[i].block);
}

static bool is_printed(const reader *r)
{
	size_t n = 0;

	while (is_name(r->at[n]))
		n++;
	return r->at[n] == ':';
}

static int32_t find(reader *r, const ir_system *s, const char *at, size_t n)
{
	for (int32_t i = 0; i < s->input.n; i++)
		if (same(at, n, s->tensor.at[s->input.at[i]].name))
			return s->input.at[i];
	for (int32_t t = 0; t < s->tensor.n; t++)
		if (same(at, n, s->tensor.at[t].name))
			return t;
	env_fail(r->e, TN_EINVAL, "shard.place", (loc){0},
		"\"%s\": there is no tensor %.*s", r->all, (int)n, at);
}

void shard_place_parse(shard_plan *p, const char *text)
{
	reader r = {arena_env(p->a), text, text, "shard.place",
		"NAME=shard(AXIS)@MESH,.. or parts(sum)@MESH or replicate"};
	const char *at;
	size_t n = name(&r, &at);
	int32_t tensor = find(&r, p->s, at, n);
	const sys_tensor *t = &p->s->tensor.at[tensor];
	shard_state *h = &p->tensor[tensor];
	shard_layout l = shard_replicated(t->numel);

	if (h->fixed)
		env_fail(r.e, TN_EINVAL, "shard.conflict", (loc){0},
			"\"%s\": %s has a placement already", text, t->name);
	want(&r, '=');
	if (is_printed(&r))
		read_printed(&r, p->mesh, t, h, &l);
	else do {
		n = name(&r, &at);
		if (same(at, n, "shard"))
			one_cut(&r, p->mesh, t, &l);
		else if (same(at, n, "parts") && t->is_input)
			one_sum(&r, p->mesh, h);
		else if (!same(at, n, "replicate") &&
			!same(at, n, "replicated"))
			wrong(&r);
	} while (taken(&r, ','));
	if (*r.at != '\0')
		wrong(&r);
	shard_annotate(p, tensor, &l, true);
}

/* ---- writing ---- */

static void add_tag(str *s, const shard_mesh *m, int32_t axis,
	const shard_tag *t)
{
	int64_t n = t->hi / t->lo;

	if (t->mult != 1 || t->count != m->extent[t->mesh])
		str_printf(s, "/%lld%%%lld", (long long)t->mult,
			(long long)t->count);
	str_printf(s, ": axis %d", (int)axis);
	if (t->lo > 1)
		str_printf(s, "/%lld", (long long)t->lo);
	str_printf(s, " by %lld", (long long)t->block);
	if (t->within >= 0)
		str_add(s, " of each block");
	else if (n != t->block * t->count)
		str_printf(s, " of %lld", (long long)n);
}

static void add_more(str *s, int64_t n, const char *where)
{
	if (n != 0)
		str_printf(s, ", %lld %s %s", (long long)(n < 0 ? -n : n),
			n < 0 ? "fewer" : "more", where);
}

/* What a window reads, as places on an axis; false: its run is no axis. */
static bool add_seen(str *s, const shard_mesh *m, int32_t rank,
	const int64_t *shape, const shard_tag *t)
{
	int64_t in = 1;
	int32_t k = rank - 1;

	for (; k >= 0 && (t->lo != in || t->hi != in * shape[k]); k--)
		in *= shape[k];
	if (k < 0)
		return false;
	if (t->count == 1) {
		shard_run r = layout_wide_block(t, 0);

		str_printf(s, "%s: %lld to %lld on axis %d", m->name[t->mesh],
			(long long)r.from, (long long)(r.from + r.n - 1),
			(int)k);
		return true;
	}
	str_printf(s, "%s: axis %d by %lld", m->name[t->mesh], (int)k,
		(long long)t->block);
	add_more(s, t->before, "in front");
	add_more(s, t->after, "behind");
	return true;
}

/* One axis of the mesh at a time; false: some run is no axis of the shape. */
static bool by_axis(str *s, const shard_layout *l, uint32_t parts,
	int32_t monoid, const shard_mesh *m, int32_t rank,
	const int64_t *shape)
{
	shard_layout axis[TN_MAX_RANK], plain = shard_replicated(l->numel);
	const char *sep = "";

	for (int32_t i = 0; i < l->n; i++)
		if (!layout_is_wide(&l->tag[i]))
			plain.tag[plain.n++] = l->tag[i];
	if (plain.n > 0 && plain.n < l->n)
		for (int32_t i = 0; i < l->n; i++)
			if (l->tag[i].within >= 0)
				return false;
	if (plain.n > 0 && !shard_by_axis(&plain, rank, shape, axis))
		return false;
	for (int32_t i = 0; i < m->n; i++) {
		bool found = false;

		for (int32_t k = 0; plain.n > 0 && k < rank; k++)
			for (int32_t j = 0; j < axis[k].n; j++) {
				if (axis[k].tag[j].mesh != i)
					continue;
				str_printf(s, "%s%s", sep, m->name[i]);
				add_tag(s, m, k, &axis[k].tag[j]);
				found = true;
				sep = ", ";
			}
		for (int32_t k = 0; k < l->n; k++) {
			const shard_tag *t = &l->tag[k];

			if (t->mesh != i || !layout_is_wide(t))
				continue;
			str_add(s, sep);
			if (!add_seen(s, m, rank, shape, t))
				return false;
			found = true;
			sep = ", ";
		}
		if (found)
			continue;
		str_printf(s, "%s%s: ", sep, m->name[i]);
		sep = ", ";
		if (parts >> i & 1)
			str_printf(s, "parts of a %s",
				ir_monoid_at(monoid)->name);
		else
			str_add(s, "replicated");
	}
	return true;
}

void shard_place_print(str *s, const shard_layout *l, uint32_t parts,
	int32_t monoid, const shard_mesh *m, int32_t rank,
	const int64_t *shape)
{
	arena *a = arena_child(s->a);
	str one = str_new(a);

	if (l->n == 0 && parts == 0) {
		str_add(s, "replicated");
	} else if (by_axis(&one, l, parts, monoid, m, rank, shape)) {
		str_add(s, one.at);
	} else {
		str_add(s, "elements: ");
		shard_layout_print(s, l, m);
	}
	arena_free(a);
}
