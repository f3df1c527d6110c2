/*
 * notation.c: parses and prints meshes and placements.
 *
 *     mesh       "data=2,model=4"
 *     placement  "x=shard(0)@data,shard(1,3)@model"    axis 1 in blocks of 3
 *                "x=parts(sum)@data"                   partial sums
 *                "x=replicate"
 *                "x=data: axis 0 by 4 of 10, model: replicated"    as printed
 *
 * After a reshape of a cut tensor, the blocks may be on several axes, each with a
 * digit of the coordinate on the mesh, or on no axis:
 *
 *     "m/2%3: axis 0 by 1"   by (coordinate div 2) mod 3 on m
 *     "m: axis 1/4%3 by 2"   by (index div 4) mod 3 of the axis
 *     "elements: m on 1:6 by 2"   (e div 1) mod (6 / 1) of element number e
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

bool shard_is_axis_name(const char *text)
{
	size_t n = 0;

	while (is_name(text[n]))
		n++;
	return n > 0 && text[n] == '\0';
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

/* Can a name end here? "/2%3" ends it, though names may contain "/". */
static bool ends_name(const char *at)
{
	return *at == '/' || (!is_name(*at) && *at != '%');
}

/* an axis of the mesh: the longest name that matches */
static int32_t mesh_name(reader *r, const shard_mesh *m)
{
	const char *at = r->at;
	int32_t found = -1;
	size_t most = 0, n;

	for (int32_t i = 0; i < m->n; i++) {
		n = strlen(m->name[i]);
		if (n > most && strncmp(at, m->name[i], n) == 0 &&
			ends_name(at + n)) {
			most = n;
			found = i;
		}
	}
	if (found < 0) {
		n = name(r, &at);
		env_fail(r->e, TN_EINVAL, "shard.axis", (loc){0},
			"\"%s\": the mesh has no axis %.*s", r->all, (int)n, at);
	}
	r->at += most;
	return found;
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
	shard_tag tag; /* hi: number of indices of the axis; within: not set yet */
	int32_t axis;  /* -1: the run is one of element numbers */
	bool is_plain; /* as shard(axis, block) cuts it */
	bool inner;    /* it cuts each block of another, */
	int32_t outer; /* of this axis of the mesh; -1: not given */
} printed_cut;

typedef struct printed {
	const sys_tensor *t;
	int32_t n;
	printed_cut cut[SHARD_MAX_TAGS];
	bool is_plain; /* all cuts are plain */
} printed;

static int64_t positive(reader *r)
{
	int64_t v = number(r);

	if (v < 1)
		wrong(r);
	return v;
}

/* " of each block", " of each block of NAME" */
static void read_outer(reader *r, const shard_mesh *m, printed_cut *c)
{
	c->outer = -1;
	c->inner = words(r, " of each block");
	if (c->inner && words(r, " of ")) {
		c->outer = mesh_name(r, m);
		c->is_plain = false;
	}
}

/* "axis 0 by 4 of 10", "axis 1/4%3 by 2", after "axis " */
static void read_axis(reader *r, const shard_mesh *m, const sys_tensor *t,
	printed_cut *c)
{
	int64_t axis = number(r), n;

	if (axis < 0 || axis >= t->rank)
		wrong(r);
	c->axis = (int32_t)axis;
	c->tag.lo = 1;
	n = t->shape[axis];
	if (taken(r, '/')) {
		c->tag.lo = positive(r);
		n /= c->tag.lo;
		c->is_plain = false;
	}
	if (taken(r, '%')) {
		n = positive(r);
		c->is_plain = false;
	}
	if (!words(r, " by "))
		wrong(r);
	c->tag.block = positive(r);
	read_outer(r, m, c);
	if (!c->inner && words(r, " of ") && number(r) != n)
		wrong(r);
	c->tag.hi = n;
}

/* "on 1:6 by 2", after "on " */
static void read_run(reader *r, const shard_mesh *m, printed_cut *c)
{
	c->axis = -1;
	c->is_plain = false;
	c->tag.lo = positive(r);
	want(r, ':');
	c->tag.hi = positive(r);
	if (!words(r, " by "))
		wrong(r);
	c->tag.block = positive(r);
	read_outer(r, m, c);
}

static printed_cut *next_cut(reader *r, printed *x)
{
	if (x->n == SHARD_MAX_TAGS)
		wrong(r);
	return &x->cut[x->n++];
}

/* The item of one axis of the mesh, or of a digit of it. */
static void read_item(
	reader *r, const shard_mesh *m, printed *x, shard_state *h, bool elements)
{
	int32_t mesh = mesh_name(r, m);
	printed_cut c = {.is_plain = true,
		.tag = {.mesh = mesh, .mult = 1, .count = m->extent[mesh]}};

	c.tag.within = -1;
	if (taken(r, '/')) {
		c.tag.mult = positive(r);
		want(r, '%');
		c.tag.count = positive(r);
		c.is_plain = false;
	}
	if (elements && words(r, " on ")) {
		read_run(r, m, &c);
		*next_cut(r, x) = c;
	} else {
		if (!words(r, ": "))
			wrong(r);
		if (!elements && words(r, "axis ")) {
			read_axis(r, m, x->t, &c);
			*next_cut(r, x) = c;
		} else if (c.is_plain && x->t->is_input &&
			words(r, "parts of a ")) {
			take_op(r, h);
			take_parts(m, h, mesh);
		} else if (!c.is_plain || !words(r, "replicated")) {
			wrong(r);
		}
	}
	x->is_plain &= c.is_plain;
}

/* Cuts of whole axes: a cut of blocks comes after the cut that makes them. */
static void plain_cuts(reader *r, const shard_mesh *m, const printed *x,
	shard_layout *l)
{
	for (int32_t inner = 0; inner < 2; inner++)
		for (int32_t i = 0; i < x->n; i++)
			if (x->cut[i].inner == (inner != 0))
				shard_cut(r->e, l, m, x->t->rank, x->t->shape,
					x->cut[i].axis, x->cut[i].tag.mesh,
					x->cut[i].tag.block);
}

static _Noreturn void no_cut(const reader *r, const shard_mesh *m,
	const shard_tag *t, const char *why)
{
	env_fail(r->e, TN_EINVAL, "shard.block", (loc){0},
		"\"%s\": the cut by %s %s", r->all, m->name[t->mesh], why);
}

/* Converts a run of an axis to one of element numbers. */
static void to_elements(const reader *r, const shard_mesh *m,
	const sys_tensor *t, printed_cut *c)
{
	int64_t in = 1, n = c->tag.hi;
	bool fits = true;

	if (c->axis < 0) {
		fits = c->tag.hi % c->tag.lo == 0 &&
			(c->inner || t->numel % c->tag.hi == 0);
	} else {
		for (int32_t k = t->rank - 1; k > c->axis; k--)
			in *= t->shape[k];
		fits = n > 0 && c->tag.lo <= t->shape[c->axis] / n &&
			t->shape[c->axis] % (c->tag.lo * n) == 0;
		c->tag.lo *= fits ? in : 1;
		c->tag.hi = fits ? c->tag.lo * n : 1;
	}
	if (!fits)
		no_cut(r, m, &c->tag, "does not fit the shape");
}

/* The tag, among those made, in whose blocks cut c starts again; -1: it is not
 * made yet. */
static int32_t outer_of(const printed *x, const printed_cut *c,
	const int32_t *made)
{
	for (int32_t i = 0; i < x->n; i++) {
		const printed_cut *o = &x->cut[i];

		if (made[i] >= 0 && o != c && o->axis == c->axis &&
			o->tag.lo == c->tag.lo &&
			(c->outer < 0 ? !o->inner : o->tag.mesh == c->outer))
			return made[i];
	}
	return -1;
}

/* The number of values that a cut divides. */
static int64_t n_values(const shard_layout *l, const shard_tag *t)
{
	return t->within < 0 ? t->hi / t->lo : l->tag[t->within].block;
}

/* Checks that every block has a process: different digits of one axis of the mesh
 * must not overlap. */
static void check_owners(const reader *r, const shard_mesh *m,
	const shard_layout *l)
{
	for (int32_t i = 0; i < l->n; i++) {
		const shard_tag *t = &l->tag[i];
		int64_t last = (n_values(l, t) - 1) / t->block, end;

		if (last >= t->count || !mul_ok(last, t->mult, &end) ||
			end >= m->extent[t->mesh])
			no_cut(r, m, t, "has more blocks than processes");
		for (int32_t k = 0; k < l->n; k++) {
			const shard_tag *u = &l->tag[k];

			if (k == i || u->mesh != t->mesh || u->mult < t->mult)
				continue;
			if (u->mult % t->mult != 0 ||
				u->mult / t->mult % t->count != 0 ||
				(u->mult == t->mult && k > i))
				no_cut(r, m, t,
					"and another one have no processes for "
					"some of their blocks");
		}
	}
}

/* Adds a cut to a layout; false: another one cuts a part of its run. A run of one
 * block is not cut: some processes have all of it. */
static bool add_cut(shard_layout *l, const shard_tag *t)
{
	shard_layout others = {.numel = l->numel};
	bool cuts = t->block < n_values(l, t);

	if (l->n == SHARD_MAX_TAGS)
		return false;
	for (int32_t i = 0; i < l->n; i++) {
		const shard_tag *u = &l->tag[i];

		if (!cuts || u->block >= n_values(l, u))
			continue;
		if (t->within >= 0 && u->within == t->within)
			return false;
		if (u->within < 0)
			others.tag[others.n++] = *u;
	}
	if (cuts && t->within < 0 && !layout_add(&others, *t))
		return false;
	l->tag[l->n++] = *t;
	return true;
}

static void any_cuts(reader *r, const shard_mesh *m, printed *x,
	shard_layout *l)
{
	int32_t made[SHARD_MAX_TAGS];
	bool more = true;

	for (int32_t i = 0; i < x->n; i++) {
		made[i] = -1;
		to_elements(r, m, x->t, &x->cut[i]);
	}
	while (more) {
		more = false;
		for (int32_t i = 0; i < x->n; i++) {
			printed_cut *c = &x->cut[i];
			int32_t outer = c->inner ? outer_of(x, c, made) : -1;

			if (made[i] >= 0 || (c->inner && outer < 0))
				continue;
			if (c->inner)
				c->tag.hi = c->tag.lo * l->tag[outer].block;
			c->tag.within = outer;
			made[i] = l->n;
			if (!add_cut(l, &c->tag))
				no_cut(r, m, &c->tag, "meets another one");
			more = true;
		}
	}
	for (int32_t i = 0; i < x->n; i++)
		if (made[i] < 0)
			no_cut(r, m, &x->cut[i].tag,
				"is one of blocks that nothing makes");
	check_owners(r, m, l);
}

static void read_printed(reader *r, const shard_mesh *m, const sys_tensor *t,
	shard_state *h, shard_layout *l)
{
	const char *from = r->at;
	bool elements = words(r, "elements: ");
	printed x = {.t = t, .is_plain = true};

	/* an axis of the mesh may have that name */
	if (elements && (words(r, "axis ") || words(r, "replicated") ||
				words(r, "parts of a "))) {
		r->at = from;
		elements = false;
	}

	do
		read_item(r, m, &x, h, elements);
	while (words(r, ", "));
	if (x.is_plain)
		plain_cuts(r, m, &x, l);
	else
		any_cuts(r, m, &x, l);
}

/* "NAME: .." or "NAME/2%3: .." */
static bool is_printed(const reader *r)
{
	size_t n = 0;

	while (is_name(r->at[n]) || r->at[n] == '%')
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

void shard_placement_parse(shard_plan *p, const char *text)
{
	reader r = {arena_env(p->a), text, text, "shard.place",
		"NAME=shard(AXIS)@MESH,.., parts(sum)@MESH, replicate, or a "
		"placement as it is printed"};
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

/* " of each block", with a name where there are blocks of several cuts */
static void add_outer(str *s, const shard_layout *l, const shard_mesh *m,
	const shard_tag *t)
{
	const shard_tag *outer = &l->tag[t->within];
	int32_t n = 0;

	for (int32_t i = 0; i < l->n; i++)
		n += l->tag[i].within < 0;
	str_add(s, " of each block");
	if (outer->within >= 0 || n > 1)
		str_printf(s, " of %s", m->name[outer->mesh]);
}

/* extent: of axis `axis` of the tensor */
static void add_tag(str *s, const shard_layout *l, const shard_mesh *m,
	int32_t axis, int64_t extent, const shard_tag *t)
{
	int64_t n = t->hi / t->lo;

	if (t->mult != 1 || t->count != m->extent[t->mesh])
		str_printf(s, "/%lld%%%lld", (long long)t->mult,
			(long long)t->count);
	str_printf(s, ": axis %d", (int)axis);
	if (t->lo > 1)
		str_printf(s, "/%lld", (long long)t->lo);
	if (t->within < 0 && n != extent / t->lo)
		str_printf(s, "%%%lld", (long long)n);
	str_printf(s, " by %lld", (long long)t->block);
	if (t->within >= 0)
		add_outer(s, l, m, t);
	else if (n != t->block * t->count)
		str_printf(s, " of %lld", (long long)n);
}

static void add_more(str *s, int64_t n, const char *where)
{
	if (n != 0)
		str_printf(s, ", %lld %s %s", (long long)(n < 0 ? -n : n),
			n < 0 ? "fewer" : "more", where);
}

/* What a window reads, as positions on an axis; false: its run is no axis. */
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

static void add_parts(str *s, int32_t monoid)
{
	str_printf(s, "parts of a %s", ir_monoid_at(monoid)->name);
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
				add_tag(s, &axis[k], m, k, shape[k],
					&axis[k].tag[j]);
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
			add_parts(s, monoid);
		else
			str_add(s, "replicated");
	}
	return true;
}

void shard_placement_print(str *s, const shard_layout *l, uint32_t parts,
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
		for (int32_t i = 0; i < m->n; i++)
			if (parts >> i & 1) {
				str_printf(s, ", %s: ", m->name[i]);
				add_parts(s, monoid);
			}
	}
	arena_free(a);
}
