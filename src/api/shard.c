/*
 * shard.c: contexts that are processes of a mesh, and the placements of their
 * tensors. shard_program.c compiles programs on them.
 *
 *   tn_join -> link      tn_mesh_new -> mesh      tn_shard -> a placement: equal
 *   layouts have the same number
 */
#include "api/shard.h"
#include "system/eval.h"

#include <stdlib.h>

struct tn_world {
	shard_world *w;
	int32_t n;
};

api_shard *api_shard_of(tn_context *c)
{
	if (c->shard == NULL) {
		c->shard = arena_make(c->a, api_shard);
		*vec_push(c->a, &c->shard->placement) =
			(api_placement){.monoid = IR_SUM};
	}
	return c->shard;
}

int64_t api_shard_rank(const tn_context *c)
{
	const api_shard *s = c->shard;

	return s == NULL || s->link == NULL ? 0 : s->link->rank(s->link);
}

static int64_t size_of(const tn_context *c)
{
	const api_shard *s = c->shard;

	return s == NULL || s->link == NULL ? 1 : s->link->size(s->link);
}

static loc here(const char *file, int32_t line)
{
	return (loc){.file = file, .line = line};
}

/* ---- joining ---- */

tn_world *tn_world_new(int32_t n)
{
	tn_world *w = n < 1 ? NULL : calloc(1, sizeof *w);

	if (w == NULL)
		return NULL;
	w->n = n;
	w->w = shard_world_new(n);
	if (w->w == NULL) {
		free(w);
		return NULL;
	}
	return w;
}

void tn_world_free(tn_world *w)
{
	if (w == NULL)
		return;

	shard_world_free(w->w);
	free(w);
}

struct join_call {
	tn_context *c;
	tn_world *w;
	int32_t process;
};

enum { MOST_SECONDS = 366 * 24 * 3600 };

static bool is_patience(double seconds)
{
	return seconds >= 0 && seconds <= MOST_SECONDS;
}

/* The patience of the context, or of the environment; 0: not set. */
static int64_t patience_of(tn_context *c)
{
	const char *text = getenv("TENON_PEER_SECONDS");
	char *end;
	long seconds;

	if (api_shard_of(c)->patience > 0 || text == NULL || *text == '\0')
		return api_shard_of(c)->patience;
	seconds = strtol(text, &end, 10);
	if (*end != '\0' || !is_patience((double)seconds))
		env_fail(c->e, TN_EINVAL, "shard.patience", (loc){0},
			"TENON_PEER_SECONDS is \"%s\": accepted are whole "
			"seconds from 0 to %d",
			text, MOST_SECONDS);
	return seconds * 1000;
}

struct patience_call {
	tn_context *c;
	double seconds;
};

static void set_patience(void *arg)
{
	const struct patience_call *k = arg;
	api_shard *s = api_shard_of(k->c);

	if (!is_patience(k->seconds))
		env_fail(k->c->e, TN_EINVAL, "shard.patience", (loc){0},
			"%f seconds are not accepted: use 0 to %d", k->seconds,
			MOST_SECONDS);
	s->patience = (int64_t)(k->seconds * 1000);
	if (k->seconds > 0 && s->patience == 0)
		s->patience = 1;
	if (s->link != NULL)
		s->link->patience(s->link, patience_of(k->c));
}

tn_status tn_shard_patience(tn_context *c, double seconds)
{
	struct patience_call k = {c, seconds};

	return api_sticky(c, NULL, 0, set_patience, &k);
}

static void join(void *arg)
{
	const struct join_call *k = arg;
	api_shard *s = api_shard_of(k->c);
	int64_t patience = patience_of(k->c);

	if (s->link != NULL || s->mesh.n > 0)
		env_fail(k->c->e, TN_EINVAL, "shard.process", (loc){0},
			"the context has joined a world already");
	if (k->w == NULL) {
		s->link = shard_mpi_link(k->c->a, patience);
		return;
	}
	if (k->process < 0 || k->process >= k->w->n)
		env_fail(k->c->e, TN_EINVAL, "shard.process", (loc){0},
			"there is no process %d: the world has %d",
			(int)k->process, (int)k->w->n);
	s->link = shard_world_link(k->w->w, k->process);
	shard_world_enter(s->link);
	if (patience > 0)
		s->link->patience(s->link, patience);
}

tn_status tn_join(tn_context *c, tn_world *w, int32_t process)
{
	struct join_call k = {c, w, process};

	return w == NULL ? api_null("the world") : api_sticky(c, NULL, 0, join, &k);
}

tn_status tn_join_mpi(tn_context *c)
{
	struct join_call k = {c, NULL, 0};

	return api_sticky(c, NULL, 0, join, &k);
}

int32_t tn_process(const tn_context *c)
{
	if (c == NULL)
		return 0;
	return (int32_t)api_shard_rank(c);
}

int32_t tn_n_processes(const tn_context *c)
{
	if (c == NULL)
		return 0;
	return (int32_t)size_of(c);
}

void api_shard_close(tn_context *c)
{
	if (c->shard == NULL || c->shard->link == NULL)
		return;
	c->shard->link->close(c->shard->link);
	c->shard->link = NULL;
}

/* Did a launcher start this process as one of many? */
static bool is_launched(void)
{
	return getenv("OMPI_COMM_WORLD_SIZE") != NULL ||
		getenv("PMI_SIZE") != NULL;
}

/* ---- what one process does for all ---- */

struct broadcast_call {
	tn_context *c;
	void *data;
	size_t n;
};

static void broadcast(void *arg)
{
	const struct broadcast_call *k = arg;
	shard_link *l = api_shard_of(k->c)->link;

	api_want(k->c, k->data, "data");
	if (l == NULL)
		return;
	shard_compare(k->c->a, l, "the size of a broadcast", k->n,
		arena_printf(k->c->a, "%zu", k->n));
	l->broadcast(l, k->c->e, 0, k->data, k->n, "a broadcast");
}

tn_status tn_broadcast(tn_context *c, void *data, size_t n_bytes)
{
	struct broadcast_call k = {c, data, n_bytes};

	return api_sticky(c, NULL, 0, broadcast, &k);
}

struct agree_call {
	tn_context *c;
	const char *what, *text;
};

static void agree(void *arg)
{
	const struct agree_call *k = arg;
	shard_link *l = api_shard_of(k->c)->link;

	api_want(k->c, k->what, "what is compared");
	api_want(k->c, k->text, "the text");
	if (l != NULL)
		shard_compare(k->c->a, l, k->what,
			hash_bytes(k->text, strlen(k->text), 0), k->text);
}

tn_status tn_agree(tn_context *c, const char *what, const char *text)
{
	struct agree_call k = {c, what, text};

	return api_sticky(c, NULL, 0, agree, &k);
}

void api_shard_first(
	tn_context *c, void (*fn)(void *arg), void *arg, const char *what)
{
	shard_link *l = c->shard != NULL ? c->shard->link : NULL;
	int32_t s = 0;

	if (l == NULL) {
		fn(arg);
		return;
	}
	l->barrier(l, c->e, what);
	if (l->rank(l) == 0)
		s = env_run(c->e, fn, arg);
	l->broadcast(l, c->e, 0, &s, sizeof s, what);
	if (s < 0 && l->rank(l) == 0)
		env_rethrow(c->e);
	if (s < 0)
		env_fail(c->e, s, "shard.first", (loc){0},
			"%s: process 0 could not", what);
}

/* ---- meshes ---- */

struct mesh_call {
	tn_context *c;
	loc at;
	int32_t n;
	const char *const *name;
	const int64_t *extent;
	tn_mesh *out;
};

static bool same_mesh(const shard_mesh *a, const shard_mesh *b)
{
	if (a->n != b->n)
		return false;
	for (int32_t i = 0; i < a->n; i++)
		if (a->extent[i] != b->extent[i] ||
			strcmp(a->name[i], b->name[i]) != 0)
			return false;
	return true;
}

static void compare_mesh(tn_context *c, const shard_mesh *m)
{
	arena *a = arena_child(c->a);
	str s = str_new(a);

	for (int32_t i = 0; i < m->n; i++)
		str_printf(&s, "%s%s=%lld", i > 0 ? "," : "", m->name[i],
			(long long)m->extent[i]);
	shard_compare(a, c->shard->link, "the mesh", hash_bytes(s.at, s.n, 0),
		s.at);
	arena_free(a);
}

/* The name of axis i: what was given, or "mesh_2". */
static const char *axis_name(const struct mesh_call *k, int32_t i)
{
	const char *name = k->name != NULL ? k->name[i] : NULL;

	if (name == NULL)
		return arena_printf(k->c->a, "mesh_%d", (int)i);
	if (!shard_is_axis_name(name))
		env_fail(k->c->e, TN_EINVAL, "shard.mesh", k->at,
			"\"%.60s\" cannot name axis %d of a mesh, because no "
			"placement could be written with it: use letters, "
			"digits, '_', '.' and '/'", name, (int)i);
	for (int32_t j = 0; j < i; j++)
		if (k->name[j] != NULL && strcmp(k->name[j], name) == 0)
			env_fail(k->c->e, TN_EINVAL, "shard.mesh", k->at,
				"axes %d and %d of a mesh are both named "
				"%.60s: give each a name of its own", (int)j,
				(int)i, name);
	return arena_strdup(k->c->a, name);
}

/* An extent of -1 becomes what the others leave of all processes. */
static void fill_extent(const struct mesh_call *k, shard_mesh *m)
{
	int64_t all = size_of(k->c), rest;
	int32_t i = 0;

	while (i < m->n && m->extent[i] != -1)
		i++;
	if (i == m->n)
		return;
	m->extent[i] = 1;
	rest = shard_mesh_size(k->c->e, m);
	if (all % rest != 0)
		env_fail(k->c->e, TN_EINVAL, "shard.mesh", k->at,
			"axis %d of the mesh cannot be filled: the others have "
			"%lld processes, and %lld are running, which is not "
			"a multiple",
			(int)i, (long long)rest, (long long)all);
	m->extent[i] = all / rest;
}

static void make_mesh(void *arg)
{
	struct mesh_call *k = arg;
	tn_context *c = k->c;
	api_shard *s = api_shard_of(c);
	shard_mesh m = {.n = k->n};
	struct join_call j = {c, NULL, 0};
	int64_t size;

	if (s->link == NULL && s->mesh.n == 0 && is_launched())
		join(&j);
	if (k->n < 1 || k->n > SHARD_MAX_AXES)
		env_fail(c->e, TN_EINVAL, "shard.mesh", k->at,
			"a mesh has 1 to %d axes, not %d", SHARD_MAX_AXES,
			(int)k->n);
	for (int32_t i = 0; i < k->n; i++) {
		m.extent[i] = k->extent[i];
		m.name[i] = axis_name(k, i);
	}
	fill_extent(k, &m);
	size = shard_mesh_size(c->e, &m);
	if (size != size_of(c))
		env_fail(c->e, TN_EINVAL, "shard.mesh", k->at,
			"the mesh has %lld processes, but %lld are running: "
			"start with mpirun -n %lld",
			(long long)size, (long long)size_of(c),
			(long long)size);
	for (int32_t i = 0; i < s->mesh.n && k->out == NULL; i++)
		if (same_mesh(&s->mesh.at[i]->m, &m))
			k->out = s->mesh.at[i];
	if (k->out != NULL)
		return;
	if (s->link != NULL)
		compare_mesh(c, &m);
	k->out = arena_make(c->a, tn_mesh);
	*k->out = (tn_mesh){.c = c, .m = m};
	*vec_push(c->a, &s->mesh) = k->out;
}

tn_mesh *tn_at_mesh_new(const char *file, int32_t line, tn_context *c,
	int32_t n_axes, const char *const *names, const int64_t *extents)
{
	struct mesh_call k = {c, here(file, line), n_axes, names, extents,
		NULL};

	if (c == NULL || extents == NULL) {
		(void)tn_at_fail(file, line, c, TN_EINVAL, "shard.mesh",
			"%s is NULL", c == NULL ? "the context"
						: "the list of extents");
		return NULL;
	}
	return api_sticky(c, file, line, make_mesh, &k) < 0 ? NULL : k.out;
}

const shard_mesh *api_mesh(const tn_mesh *m, tn_context **c)
{
	*c = m->c;
	return &m->m;
}

shard_link *api_link(const tn_context *c)
{
	return c->shard != NULL ? c->shard->link : NULL;
}

/* ---- places ---- */

int32_t api_placement_number(tn_context *c, const api_placement *p)
{
	api_shard *s = api_shard_of(c);
	api_placement *q;

	/* one process has all of what it cuts */
	if ((p->l.n == 0 && p->parts == 0) || size_of(c) == 1)
		return 0;
	for (int32_t i = 1; i < s->placement.n; i++) {
		q = &s->placement.at[i];
		if (q->mesh == p->mesh && q->parts == p->parts &&
			q->monoid == p->monoid && shard_same(&q->l, &p->l))
			return i;
	}
	q = vec_push(c->a, &s->placement);
	*q = *p;
	q->elems = shard_piece_of(c->a, &p->l, &p->mesh->m, api_shard_rank(c)).elems;
	return s->placement.n - 1;
}

size_t api_shard_bytes(void *arg, int32_t number, const ir_type *type)
{
	tn_context *c = arg;

	return (size_t)api_shard_of(c)->placement.at[number].elems *
		dtype_size(type->dtype);
}

bool api_empty_parts(
	tn_context *c, const api_placement *p, tn_dtype t, void *out)
{
	arena *a = arena_child(c->a);
	ir_system *s = ir_system_new(a, ix_new(a));
	const expr *e = ir_identity(s, p->monoid, 0, t);
	ir_number v = {0};
	bool first = true;

	if (dtype_is_float(t))
		v.f = e->c.f;
	else
		v.i = e->c.i;
	for (int32_t m = 0; m < p->mesh->m.n; m++)
		if (p->parts >> m & 1)
			first &= shard_mesh_at(&p->mesh->m, api_shard_rank(c), m) == 0;
	for (int64_t i = 0; !first && i < p->elems; i++)
		eval_store(t, out, i, v);
	arena_free(a);
	return !first;
}

shard_transfer *api_value_transfer(tn_context *c, arena *a, const ir_type *type,
	int32_t from, int32_t to)
{
	const api_shard *s = api_shard_of(c);
	const api_placement *p = &s->placement.at[from];
	const api_placement *q = &s->placement.at[to];
	const tn_mesh *mesh = from != 0 ? p->mesh : q->mesh;
	shard_layout whole =
		shard_replicated(shape_numel(type->shape, type->rank));

	if (from != 0 && to != 0 && p->mesh != q->mesh)
		env_fail(c->e, TN_EINVAL, "shard.mesh", (loc){0},
			"a tensor is used on another mesh than its own: use "
			"tn_full of it");
	return shard_transfer_new(a, &mesh->m, api_shard_rank(c),
		from != 0 ? &p->l : &whole, p->parts, to != 0 ? &q->l : &whole,
		"a tensor");
}
