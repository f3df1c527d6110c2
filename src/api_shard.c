/*
 * api_shard.c: contexts that are processes of a mesh: who they are, where their
 * tensors lie, and programs over parts of tensors.
 *
 *   tn_join -> link      tn_mesh_new -> mesh      tn_shard -> a place: a number
 *   for layouts that are equal
 *
 *   program + places -> plan -> the program of this process -> kernels, moves
 */
#include "api_shard.h"

#include <stdlib.h>

struct tn_mesh {
	tn_context *c;
	shard_mesh m;
};

struct tn_world {
	shard_world *w;
	int32_t n;
};

typedef struct place {
	const tn_mesh *mesh;
	shard_layout l;
	uint32_t parts; /* axes of the mesh along which it is in parts */
	int32_t monoid;
	int64_t elems; /* of this process */
} place;

/* Joins parts: n at a time, whatever there is. */
typedef struct joiner {
	int32_t monoid, n_comp;
	tn_dtype acc[IR_MAX_COMP];
	plan_exec *exec;
	void *buf[3 * IR_MAX_COMP]; /* of the rest */
	struct joiner *next;
} joiner;

enum { JOIN_AT_ONCE = 4096 };

struct api_shard {
	shard_link *link; /* NULL: this process is alone */
	VEC(tn_mesh *) mesh;
	VEC(place) place; /* 0: whole */
	joiner *joiners;
	arena *slab_of;
	void *slab;
	size_t slab_bytes;
	bool debug;
	int64_t n_moves, bytes_sent;
};

static api_shard *shard_of(tn_context *c)
{
	if (c->shard == NULL) {
		c->shard = arena_make(c->a, api_shard);
		*vec_push(c->a, &c->shard->place) = (place){.monoid = IR_SUM};
	}
	return c->shard;
}

static int64_t rank_of(const tn_context *c)
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

static void join(void *arg)
{
	const struct join_call *k = arg;
	api_shard *s = shard_of(k->c);

	if (s->link != NULL || s->mesh.n > 0)
		env_fail(k->c->e, TN_EINVAL, "shard.process", (loc){0},
			"the context is a process already");
	if (k->w == NULL) {
		s->link = shard_mpi_link(k->c->a);
		return;
	}
	if (k->process < 0 || k->process >= k->w->n)
		env_fail(k->c->e, TN_EINVAL, "shard.process", (loc){0},
			"there is no process %d: the world has %d",
			(int)k->process, (int)k->w->n);
	s->link = shard_world_link(k->w->w, k->process);
}

tn_status tn_join(tn_context *c, tn_world *w, int32_t process)
{
	struct join_call k = {c, w, process};

	return w == NULL ? TN_EINVAL : api_sticky(c, NULL, 0, join, &k);
}

tn_status tn_join_mpi(tn_context *c)
{
	struct join_call k = {c, NULL, 0};

	return api_sticky(c, NULL, 0, join, &k);
}

int32_t tn_process(const tn_context *c)
{
	return (int32_t)rank_of(c);
}

int32_t tn_n_processes(const tn_context *c)
{
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

static void make_mesh(void *arg)
{
	struct mesh_call *k = arg;
	tn_context *c = k->c;
	api_shard *s = shard_of(c);
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
		m.name[i] = k->name == NULL || k->name[i] == NULL
			? arena_printf(c->a, "mesh_%d", (int)i)
			: arena_strdup(c->a, k->name[i]);
	}
	size = shard_mesh_size(c->e, &m);
	if (size != size_of(c))
		env_fail(c->e, TN_EINVAL, "shard.mesh", k->at,
			"the mesh has %lld processes, there are %lld",
			(long long)size, (long long)size_of(c));
	for (int32_t i = 0; i < s->mesh.n && k->out == NULL; i++)
		if (same_mesh(&s->mesh.at[i]->m, &m))
			k->out = s->mesh.at[i];
	if (k->out != NULL)
		return;
	k->out = arena_make(c->a, tn_mesh);
	*k->out = (tn_mesh){.c = c, .m = m};
	*vec_push(c->a, &s->mesh) = k->out;
}

tn_mesh *tn_at_mesh_new(const char *file, int32_t line, tn_context *c,
	int32_t n_axes, const char *const *names, const int64_t *extents)
{
	struct mesh_call k = {c, here(file, line), n_axes, names, extents,
		NULL};

	if (c == NULL || extents == NULL)
		return NULL;
	return api_sticky(c, file, line, make_mesh, &k) < 0 ? NULL : k.out;
}

/* ---- places ---- */

static int32_t place_number(tn_context *c, const place *p)
{
	api_shard *s = shard_of(c);
	place *q;

	if (p->l.n == 0 && p->parts == 0)
		return 0;
	for (int32_t i = 1; i < s->place.n; i++) {
		q = &s->place.at[i];
		if (q->mesh == p->mesh && q->parts == p->parts &&
			q->monoid == p->monoid && shard_same(&q->l, &p->l))
			return i;
	}
	q = vec_push(c->a, &s->place);
	*q = *p;
	q->elems = shard_window_of(c->a, &p->l, &p->mesh->m, rank_of(c)).elems;
	return s->place.n - 1;
}

static place place_of(tn_context *c, loc at, const ir_type *y,
	const tn_mesh *mesh, const tn_placement *p)
{
	int64_t n = shape_numel(y->shape, y->rank);
	place r = {.mesh = mesh, .l = shard_replicated(n), .monoid = IR_SUM};

	if (mesh == NULL || p == NULL || mesh->c != c)
		env_fail(c->e, TN_EINVAL, "shard.mesh", at,
			"the mesh is NULL or of another context, or there are "
			"no placements");
	for (int32_t m = 0; m < mesh->m.n; m++) {
		int32_t axis = p[m].axis < 0 ? p[m].axis + y->rank : p[m].axis;
		int32_t op;

		if (p[m].kind == TN_PLACE_WHOLE)
			continue;
		if (p[m].kind == TN_PLACE_SHARD) {
			shard_cut(c->e, &r.l, &mesh->m, y->rank, y->shape, axis,
				m, p[m].block);
			continue;
		}
		op = p[m].op == NULL
			? -1
			: ir_monoid_find(p[m].op, strlen(p[m].op));
		if (op < 0 || ir_monoid_at(op)->n_comp != 1 ||
			(r.parts != 0 && op != r.monoid) ||
			dtype_size(y->dtype) < 4)
			env_fail(c->e, TN_EINVAL, "shard.op", at,
				"parts are of one of sum, prod, max, min, and "
				"of 4 bytes or more, not %s of %s",
				p[m].op != NULL ? p[m].op : "NULL",
				dtype_name(y->dtype));
		r.monoid = op;
		/* along an axis of one process a part is the whole */
		if (mesh->m.extent[m] > 1)
			r.parts |= 1u << m;
	}
	return r;
}

size_t api_shard_bytes(void *arg, int32_t number, const ir_type *type)
{
	tn_context *c = arg;

	return (size_t)shard_of(c)->place.at[number].elems *
		dtype_size(type->dtype);
}

/* ---- joining parts ---- */

static joiner *joiner_of(tn_context *c, int32_t monoid, int32_t n,
	const tn_dtype *acc)
{
	api_shard *s = shard_of(c);
	compile_options o = api_compile_options(c);
	compilation *m;
	joiner *j;

	for (j = s->joiners; j != NULL; j = j->next)
		if (j->monoid == monoid && j->n_comp == n &&
			memcmp(j->acc, acc, (size_t)n * sizeof *acc) == 0)
			return j;
	j = arena_make(c->a, joiner);
	j->monoid = monoid;
	j->n_comp = n;
	memcpy(j->acc, acc, (size_t)n * sizeof *acc);
	m = compile_new_system(c->a,
		shard_joiner(c->a, monoid, n, acc, JOIN_AT_ONCE), &o);
	j->exec = api_compile(c, c->a, m);
	for (int32_t i = 0; i < 3 * n; i++)
		j->buf[i] = run_slab(
			c->a, JOIN_AT_ONCE * dtype_size(acc[i % n]));
	j->next = s->joiners;
	s->joiners = j;
	return j;
}

static void join_some(tn_context *c, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, void *const *far, void *const *next)
{
	const void *in[2 * IR_MAX_COMP];
	joiner *j;

	if (c->o.interp) {
		shard_eval_join(c->a, monoid, n_comp, acc, n, far, next);
		return;
	}
	j = joiner_of(c, monoid, n_comp, acc);
	for (int64_t at = 0; at < n; at += JOIN_AT_ONCE) {
		int64_t some = n - at < JOIN_AT_ONCE ? n - at : JOIN_AT_ONCE;

		for (int32_t k = 0; k < n_comp; k++) {
			size_t size = dtype_size(acc[k]);
			size_t from = (size_t)at * size;

			in[k] = (char *)far[k] + from;
			in[n_comp + k] = (char *)next[k] + from;
			if (some == JOIN_AT_ONCE)
				continue;
			memcpy(j->buf[k], in[k], (size_t)some * size);
			memcpy(j->buf[n_comp + k], in[n_comp + k],
				(size_t)some * size);
			in[k] = j->buf[k];
			in[n_comp + k] = j->buf[n_comp + k];
		}
		plan_exec_run(j->exec, in, j->buf + 2 * n_comp);
		for (int32_t k = 0; k < n_comp; k++)
			memcpy((char *)far[k] +
					(size_t)at * dtype_size(acc[k]),
				j->buf[2 * n_comp + k],
				(size_t)some * dtype_size(acc[k]));
	}
}

/* ---- moving a value ---- */

struct value_move {
	tn_context *c;
	int32_t monoid;
	tn_dtype dtype;
};

static void join_values(void *arg, int64_t n, void *far, const void *next)
{
	const struct value_move *m = arg;
	void *b = (void *)(uintptr_t)next;

	join_some(m->c, m->monoid, 1, &m->dtype, n, &far, &b);
}

/* All but the first process along its axes have what changes no sum. */
static void empty_parts(tn_context *c, const place *p, tn_dtype t, void *out)
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
			first &= shard_mesh_at(&p->mesh->m, rank_of(c), m) == 0;
	for (int64_t i = 0; !first && i < p->elems; i++)
		shard_store_number(t, out, i, v);
	arena_free(a);
}

void api_shard_move(void *arg, const ir_type *type, int32_t from,
	const void *data, int32_t to, void *out)
{
	tn_context *c = arg;
	api_shard *s = shard_of(c);
	arena *a = arena_child(c->a);
	const place *p = &s->place.at[from], *q = &s->place.at[to];
	const tn_mesh *mesh = from != 0 ? p->mesh : q->mesh;
	int64_t n = shape_numel(type->shape, type->rank);
	shard_layout whole = shard_replicated(n);
	struct value_move m = {c, p->monoid, type->dtype};
	shard_elems e = {.size = dtype_size(type->dtype),
		.combine = join_values,
		.arg = &m,
		.what = "a tensor"};
	shard_transfer *t;

	if (from != 0 && to != 0 && p->mesh != q->mesh)
		env_fail(c->e, TN_EINVAL, "shard.mesh", (loc){0},
			"a tensor goes from one mesh to another: tn_full");
	t = shard_transfer_new(a, &mesh->m, rank_of(c),
		from != 0 ? &p->l : &whole, p->parts, to != 0 ? &q->l : &whole,
		"a tensor");
	if (s->link != NULL)
		shard_transfer_run(t, a, s->link, &e, data, out);
	else if (n > 0)
		memcpy(out, data, (size_t)n * e.size);
	if (q->parts != 0)
		empty_parts(c, q, type->dtype, out);
	s->n_moves += shard_transfer_sent(t) > 0;
	s->bytes_sent += shard_transfer_sent(t) * (int64_t)e.size;
	arena_free(a);
}

/* ---- programs ---- */

struct api_parted {
	tn_context *c;
	arena *a;
	shard_program *p;
	shard_exec *exec;
	plan_exec **phase; /* compiled; NULL where there is nothing */
	uint64_t hash;
	int32_t n_moves;
};

/* The mesh of a program; NULL: nothing in it lies anywhere. */
static const tn_mesh *mesh_of(tn_context *c, const tensor_placing *w, int32_t n)
{
	const api_shard *s = shard_of(c);
	const tn_mesh *mesh = NULL;

	for (int32_t i = 0; i < n + w->n_want; i++) {
		int32_t at = i < n ? w->in[i] : w->want[i - n] - 1;

		if (at <= 0)
			continue;
		if (mesh != NULL && mesh != s->place.at[at].mesh)
			env_fail(c->e, TN_EINVAL, "shard.mesh", (loc){0},
				"tensors of two meshes are in one computation");
		mesh = s->place.at[at].mesh;
	}
	return mesh;
}

static void annotate(tn_context *c, shard_plan *p, const tensor_placing *w)
{
	const api_shard *s = shard_of(c);
	ir_system *sys = p->s;

	for (int32_t i = 0; i < sys->input.n; i++) {
		int32_t t = sys->input.at[i];
		const place *q = &s->place.at[w->in[i]];
		shard_layout l = shard_replicated(sys->tensor.at[t].numel);

		shard_annotate(p, t, w->in[i] != 0 ? &q->l : &l, true);
		p->tensor[t].parts = q->parts;
		p->tensor[t].parts_monoid = q->monoid;
	}
	/* versions lie where their storage does */
	for (int32_t t = 0; t < sys->tensor.n; t++) {
		int32_t in = ir_place_of_storage(sys, t);

		if (in >= 0)
			shard_annotate(p, t,
				&p->tensor[sys->input.at[in]].have, true);
	}
	for (int32_t i = 0; i < sys->output.n; i++) {
		int32_t t = sys->output.at[i];
		bool stored = i < sys->store.n && sys->store.at[i] >= 0;
		shard_layout l = shard_replicated(sys->tensor.at[t].numel);
		int32_t want = i < w->n_want ? w->want[i] : 0;

		if (stored && !sys->tensor.at[t].is_input)
			shard_annotate(p, t,
				&p->tensor[sys->input.at[sys->store.at[i]]]
					 .have,
				true);
		else if (want > 0 && !p->tensor[t].fixed)
			shard_annotate(p, t,
				want > 1 ? &s->place.at[want - 1].l : &l, true);
	}
}

static void compile_phases(api_parted *q)
{
	tn_context *c = q->c;
	compile_options o = api_compile_options(c);

	q->phase = arena_array(q->a, plan_exec *, q->p->phase.n + 1);
	for (int32_t i = 0; i < q->p->phase.n && !c->o.interp; i++)
		if (q->p->phase.at[i].s->eqn.n > 0)
			q->phase[i] = api_compile(c, q->a,
				compile_new_system(
					q->a, q->p->phase.at[i].s, &o));
}

/* Of the structure, which knows rows by number, and of their names. */
static uint64_t hash_of(arena *a, const ir_program *p, uint64_t structure)
{
	str s = str_new(a);

	ir_program_print(&s, p);
	return hash_bytes(s.at, s.n, structure);
}

api_parted *api_shard_compile(
	tn_context *c, arena *a, ir_program *p, tensor_placing *w)
{
	const tn_mesh *mesh = mesh_of(c, w, p->input.n);
	api_parted *q;
	shard_plan *made;
	ir_system *s;
	bool *keep;

	for (int32_t i = 0; i < w->n_want; i++)
		w->out[i] = 0;
	if (mesh == NULL) {
		p->output.n = w->n_out; /* nobody asks where others lie */
		return NULL;
	}
	s = ir_lower(a, ix_new(a), p);
	ir_system_verify(s);
	made = shard_plan_new(a, s, &mesh->m);
	annotate(c, made, w);
	shard_propagate(made);
	shard_scatter_sums(made);
	keep = arena_array(a, bool, s->output.n + 1);
	for (int32_t i = 0; i < s->output.n; i++)
		keep[i] = i < w->n_out || i >= w->n_want;
	q = arena_make(a, api_parted);
	*q = (api_parted){.c = c, .a = a, .hash = hash_of(a, p, w->hash)};
	q->p = shard_localise(a, made, rank_of(c), keep);
	q->exec = shard_exec_new(a, q->p);
	for (int32_t i = 0; i < q->p->phase.n; i++)
		for (int32_t k = 0; k < q->p->phase.at[i].job.n; k++)
			q->n_moves += shard_transfer_sent(
				q->p->phase.at[i].job.at[k].transfer) > 0;
	for (int32_t i = 0; i < w->n_out; i++) {
		place out = {.mesh = mesh, .monoid = IR_SUM};

		out.l = q->p->array.at[q->p->output[i]].layout;
		w->out[i] = place_number(c, &out);
	}
	compile_phases(q);
	return q;
}

static void run_phase(void *arg, int32_t phase, const void *const *in,
	void *const *out)
{
	api_parted *q = arg;

	if (q->c->o.interp)
		shard_eval_system(q->a, q->p->phase.at[phase].s, in, out);
	else
		plan_exec_run(q->phase[phase], in, out);
}

static void join_parts(void *arg, const shard_job *j, int64_t n,
	void *const *far, void *const *next)
{
	api_parted *q = arg;
	tn_dtype acc[IR_MAX_COMP];

	for (int32_t k = 0; k < j->n; k++)
		acc[k] = q->p->array.at[j->from[k]].dtype;
	join_some(q->c, j->monoid, j->n, acc, n, far, next);
}

struct run_call {
	api_parted *q;
	const void *const *in;
	void *const *out;
};

static void run(void *arg)
{
	const struct run_call *k = arg;
	api_parted *q = k->q;
	api_shard *s = shard_of(q->c);
	shard_runner r = {q, run_phase, join_parts};

	if (s->debug && s->link != NULL)
		s->link->agree(s->link, q->c->e, q->hash, "a program");
	if (s->slab_bytes < shard_exec_bytes(q->exec)) {
		arena_free(s->slab_of);
		s->slab_of = NULL;
		s->slab_bytes = 0;
		s->slab_of = arena_child(q->c->a);
		s->slab = run_slab(s->slab_of, shard_exec_bytes(q->exec));
		s->slab_bytes = shard_exec_bytes(q->exec);
	}
	shard_exec_run(q->exec, s->link, &r, k->in, k->out, s->slab);
	s->n_moves += q->n_moves;
	s->bytes_sent += shard_exec_sent(q->exec);
}

void api_shard_run(tn_context *c, api_parted *q, const void *const *in,
	void *const *out)
{
	struct run_call k = {q, in, out};
	api_shard *s = shard_of(c);

	if (env_run(c->e, run, &k) >= 0)
		return;
	/* the others wait for what will not come */
	if (s->link != NULL)
		s->link->stop(s->link, env_diag(c->e)->text);
	env_rethrow(c->e);
}

/* ---- calls on tensors ---- */

struct tensor_call {
	tn_context *c;
	loc at;
	tn_tensor *x, *y;
	const tn_mesh *mesh;
	const tn_placement *p;
	tn_window *window;
	char **text;
	bool on;
};

static tensor *inner(const tn_tensor *x)
{
	return (tensor *)(uintptr_t)x;
}

/* The context of a tensor; NULL: it is none, or of a call that failed. */
static tn_context *context_of(const tn_tensor *x)
{
	return x == NULL || tensor_is_invalid(inner(x)) ? NULL
							: tensor_owner(inner(x));
}

static void shard_it(void *arg)
{
	const struct tensor_call *k = arg;
	place p;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	if (!tensor_is_valid(inner(k->x)))
		tensor_place(k->c->t, inner(k->x), 0, false);
	p = place_of(k->c, k->at, tensor_type_of(inner(k->x)), k->mesh, k->p);
	tensor_place(k->c->t, inner(k->x), place_number(k->c, &p),
		p.parts != 0);
}

tn_status tn_at_shard(const char *file, int32_t line, tn_tensor *x,
	const tn_mesh *mesh, const tn_placement *p)
{
	struct tensor_call k = {.c = context_of(x), .at = here(file, line),
		.x = x, .mesh = mesh, .p = p};

	return k.c == NULL ? TN_EINVAL
			   : api_sticky(k.c, file, line, shard_it, &k);
}

static void reshard(void *arg)
{
	struct tensor_call *k = arg;
	place p;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	if (!tensor_is_valid(inner(k->x)))
		(void)tensor_lens(k->c->t, inner(k->x), 0);
	p = place_of(k->c, k->at, tensor_type_of(inner(k->x)), k->mesh, k->p);
	if (p.parts != 0)
		env_fail(k->c->e, TN_EINVAL, "shard.op", k->at,
			"parts of a sum are no placement of a view");
	k->y = (tn_tensor *)(void *)tensor_lens(
		k->c->t, inner(k->x), place_number(k->c, &p));
}

tn_tensor *tn_at_reshard(const char *file, int32_t line, tn_tensor *x,
	const tn_mesh *mesh, const tn_placement *p)
{
	struct tensor_call k = {.c = context_of(x), .at = here(file, line),
		.x = x, .mesh = mesh, .p = p};

	if (k.c == NULL)
		return x;
	if (api_sticky(k.c, file, line, reshard, &k) < 0)
		return (tn_tensor *)(void *)tensor_invalid(api_tensors(k.c));
	return k.y;
}

static void full(void *arg)
{
	struct tensor_call *k = arg;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	k->y = (tn_tensor *)(void *)tensor_whole(k->c->t, inner(k->x));
}

tn_tensor *tn_at_full(const char *file, int32_t line, tn_tensor *x)
{
	struct tensor_call k = {
		.c = context_of(x), .at = here(file, line), .x = x};

	if (k.c == NULL)
		return x;
	if (api_sticky(k.c, file, line, full, &k) < 0)
		return (tn_tensor *)(void *)tensor_invalid(api_tensors(k.c));
	return k.y;
}

static void window(void *arg)
{
	const struct tensor_call *k = arg;
	tn_window *w = k->window;
	const ir_type *y;
	const place *p;
	shard_layout axis[TN_MAX_RANK];

	api_want(k->c, w, "the window");
	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	w->data = tensor_local(k->c->t, inner(k->x));
	p = &shard_of(k->c)->place.at[tensor_where(k->c->t, inner(k->x))];
	y = tensor_type_of(inner(k->x));
	w->n_elems = p->mesh != NULL ? p->elems
				     : shape_numel(y->shape, y->rank);
	w->n_bytes = (size_t)w->n_elems * dtype_size(y->dtype);
	w->rank = y->rank;
	w->is_box = true;
	for (int32_t i = 0; i < y->rank; i++) {
		w->shape[i] = y->shape[i];
		w->from[i] = 0;
	}
	if (p->mesh == NULL)
		return;
	w->is_box = shard_by_axis(&p->l, y->rank, y->shape, axis);
	for (int32_t i = 0; i < y->rank && w->is_box; i++) {
		arena *a = arena_child(k->c->a);
		shard_runs r = shard_owned(
			a, &axis[i], &p->mesh->m, rank_of(k->c));

		w->is_box = r.n <= 1;
		w->from[i] = r.n > 0 ? r.at[0].from : 0;
		w->shape[i] = r.elems;
		arena_free(a);
	}
}

tn_status tn_at_local(
	const char *file, int32_t line, tn_tensor *x, tn_window *out)
{
	struct tensor_call k = {.c = context_of(x), .at = here(file, line),
		.x = x, .window = out};

	return k.c == NULL ? TN_EINVAL
			   : api_sticky(k.c, file, line, window, &k);
}

static void text(void *arg)
{
	const struct tensor_call *k = arg;
	str s = str_new(arena_child(k->c->a));
	const place *p;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	p = &shard_of(k->c)->place.at[tensor_where(k->c->t, inner(k->x))];
	if (p->mesh == NULL)
		str_add(&s, "replicated");
	else
		shard_layout_print(&s, &p->l, &p->mesh->m);
	for (int32_t m = 0; p->mesh != NULL && m < p->mesh->m.n; m++)
		if (p->parts >> m & 1)
			str_printf(&s, ", parts of a %s over %s",
				ir_monoid_at(p->monoid)->name,
				p->mesh->m.name[m]);
	*k->text = api_text(k->c, &s);
	arena_free(s.a);
}

tn_status tn_at_placement_text(
	const char *file, int32_t line, tn_tensor *x, char **out)
{
	struct tensor_call k = {.c = context_of(x), .at = here(file, line),
		.x = x, .text = out};

	*out = NULL;
	return k.c == NULL ? TN_EINVAL : api_sticky(k.c, file, line, text, &k);
}

static void set_strict(void *arg)
{
	const struct tensor_call *k = arg;

	tensors_strict(api_tensors(k->c), k->on);
}

tn_status tn_shard_strict(tn_context *c, bool strict)
{
	struct tensor_call k = {.c = c, .on = strict};

	return api_sticky(c, NULL, 0, set_strict, &k);
}

static void set_debug(void *arg)
{
	const struct tensor_call *k = arg;

	shard_of(k->c)->debug = k->on;
}

tn_status tn_shard_debug(tn_context *c, bool debug)
{
	struct tensor_call k = {.c = c, .on = debug};

	return api_sticky(c, NULL, 0, set_debug, &k);
}

void tn_context_shard_stats(const tn_context *c, tn_shard_stats *out)
{
	*out = (tn_shard_stats){0};
	if (c->shard != NULL) {
		out->n_moves = c->shard->n_moves;
		out->bytes_sent = c->shard->bytes_sent;
	}
	if (c->t != NULL) {
		tensor_stats s = tensor_get_stats(c->t);

		out->n_reads = s.n_lens_reads;
		out->read_bytes = s.lens_read_bytes;
		out->n_write_backs = s.n_write_backs;
		out->write_back_bytes = s.write_back_bytes;
	}
}
