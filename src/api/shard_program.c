/*
 * shard_program.c: compiles and runs programs on distributed tensors, and moves
 * values from one placement to another.
 *
 *   program + placements -> plan -> the program of this process -> kernels, moves
 */
#include "api/shard.h"
#include "system/eval.h"

/* Combines partial results, n elements at a time. */
typedef struct api_joiner {
	int32_t monoid, n_comp;
	tn_dtype acc[IR_MAX_COMP];
	plan_exec *exec;
	void *buf[3 * IR_MAX_COMP]; /* for the remainder */
	tn_context *c;
	struct api_joiner *next;
} joiner;

enum { JOIN_AT_ONCE = 4096 };

/* ---- joining parts ---- */

/* Makes a joiner like arg in arena a, which is freed if this fails. */
static void make_joiner(arena *a, void *arg)
{
	const joiner *like = arg;
	tn_context *c = like->c;
	api_shard *s = api_shard_of(c);
	compile_options o = api_compile_options(c);
	joiner *j = arena_copy(a, like, sizeof *like);
	compilation *m = compile_new_system(a,
		shard_joiner(a, j->monoid, j->n_comp, j->acc, JOIN_AT_ONCE, 2),
		&o);

	j->exec = api_compile(c, a, m);
	for (int32_t i = 0; i < 3 * j->n_comp; i++)
		j->buf[i] = run_slab(a,
			JOIN_AT_ONCE * dtype_size(j->acc[i % j->n_comp]));
	j->next = s->joiners;
	s->joiners = j;
}

static joiner *joiner_of(tn_context *c, int32_t monoid, int32_t n,
	const tn_dtype *acc)
{
	api_shard *s = api_shard_of(c);
	joiner *j, like = {.monoid = monoid, .n_comp = n, .c = c};

	for (j = s->joiners; j != NULL; j = j->next)
		if (j->monoid == monoid && j->n_comp == n &&
			memcmp(j->acc, acc, (size_t)n * sizeof *acc) == 0)
			return j;
	memcpy(like.acc, acc, (size_t)n * sizeof *acc);
	(void)arena_keep(c->a, make_joiner, &like);
	return s->joiners;
}

static void join_some(tn_context *c, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, void *const *far, void *const *next)
{
	const void *in[2 * IR_MAX_COMP];
	joiner *j;

	if (c->o.interp || !c->device->is_host) {
		eval_join(c->a, monoid, n_comp, acc, n, far, next);
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
		plan_exec_run(j->exec, in, NULL, j->buf + 2 * n_comp);
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

struct move_call {
	tn_context *c;
	const ir_type *type;
	int32_t from, to;
	const void *data;
	void *out;
};

static void move(arena *a, void *arg)
{
	const struct move_call *k = arg;
	tn_context *c = k->c;
	const ir_type *type = k->type;
	api_shard *s = api_shard_of(c);
	const api_placement *p = &s->placement.at[k->from];
	const api_placement *q = &s->placement.at[k->to];
	struct value_move m = {c, p->monoid, type->dtype};
	shard_elems e = {.size = dtype_size(type->dtype),
		.combine = join_values,
		.arg = &m,
		.what = "a tensor"};
	shard_transfer *t = api_value_transfer(c, a, type, k->from, k->to);

	shard_transfer_run(t, a, s->link, &e, k->data, k->out);
	if (q->parts != 0)
		(void)api_empty_parts(c, q, type->dtype, k->out);
	s->n_moves += shard_transfer_sent(t) > 0;
	s->bytes_sent += shard_transfer_sent(t) * (int64_t)e.size;
	if (!c->device->is_host)
		s->bytes_by_host += shard_transfer_sent(t) * (int64_t)e.size;
}

void api_shard_move(void *arg, const ir_type *type, int32_t from,
	const void *data, int32_t to, void *out)
{
	tn_context *c = arg;
	struct move_call k = {c, type, from, to, data, out};

	arena_run(c->e, move, &k);
}

/* ---- programs ---- */

struct api_parted {
	tn_context *c;
	arena *a;
	shard_program *p;
	shard_exec *exec;
	plan_exec **phase; /* compiled; NULL for an empty phase */
	uint64_t hash;
	int32_t n_moves;
	bool moves; /* on any process */
	bool began; /* the current run, and not only what it needs */
};

/* The mesh of a program; NULL: nothing in it has a placement. */
static const tn_mesh *mesh_of(tn_context *c, const tensor_placing *w, int32_t n)
{
	const api_shard *s = api_shard_of(c);
	const tn_mesh *mesh = NULL;

	for (int32_t i = 0; i < n + w->n_want; i++) {
		int32_t at = i < n ? w->in[i] : w->want[i - n] - 1;

		if (at <= 0)
			continue;
		if (mesh != NULL && mesh != s->placement.at[at].mesh)
			env_fail(c->e, TN_EINVAL, "shard.mesh", (loc){0},
				"one computation uses tensors of two meshes: "
				"use tn_full of those of one mesh");
		mesh = s->placement.at[at].mesh;
	}
	return mesh;
}

struct annotate_call {
	tn_context *c;
	const tensor_placing *w;
};

static void annotate(void *arg, shard_plan *p)
{
	const struct annotate_call *k = arg;
	const tensor_placing *w = k->w;
	const api_shard *s = api_shard_of(k->c);
	ir_system *sys = p->s;

	for (int32_t i = 0; i < sys->input.n; i++) {
		int32_t t = sys->input.at[i];
		const api_placement *q = &s->placement.at[w->in[i]];
		shard_layout l = shard_replicated(sys->tensor.at[t].numel);

		shard_annotate(p, t, w->in[i] != 0 ? &q->l : &l, true);
		p->tensor[t].parts = q->parts;
		p->tensor[t].parts_monoid = q->monoid;
	}
	/* versions have the placement of their storage */
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
				want > 1 ? &s->placement.at[want - 1].l : &l, true);
	}
}

static void compile_phases(api_parted *q, const compilation *m)
{
	q->phase = arena_array(q->a, plan_exec *, q->p->phase.n + 1);
	for (int32_t i = 0; i < q->p->phase.n && !q->c->o.interp; i++)
		if (m->phase[i]->system->eqn.n > 0)
			q->phase[i] = api_compile(q->c, q->a, m->phase[i]);
}

/* A hash of the structure, of the names of rows, and of placements. */
static uint64_t hash_of(arena *a, const ir_program *p, const tensor_placing *w)
{
	str s = str_new(a);

	ir_program_print(&s, p);
	for (int32_t i = 0; i < p->input.n; i++)
		str_printf(&s, " %d", w->in[i]);
	for (int32_t i = 0; i < w->n_want; i++)
		str_printf(&s, " %d", w->want[i]);
	return hash_bytes(s.at, s.n, w->hash);
}

/* All processes compile the same program, or none does. */
static void compare(tn_context *c, arena *a, const ir_program *p, uint64_t hash)
{
	shard_link *l = api_link(c);

	if (l != NULL && l->size(l) > 1)
		shard_compare(a, l, "a program that is compiled", hash,
			arena_printf(a, "%d calls (%016llx)", p->call.n,
				(unsigned long long)hash));
}

/* Of the program's outputs and, behind those, of its storages. */
static bool *kept_outputs(arena *a, const ir_program *p, const tensor_placing *w)
{
	int32_t n = p->output.n + p->input.n;
	bool *keep = arena_array(a, bool, n + 1);

	for (int32_t i = 0; i < n; i++)
		keep[i] = i < w->n_out || i >= w->n_want;
	return keep;
}

static void count_moves(api_parted *q)
{
	for (int32_t i = 0; i < q->p->phase.n; i++) {
		const shard_phase *p = &q->p->phase.at[i];

		for (int32_t k = 0; k < p->job.n; k++) {
			const shard_transfer *t = p->job.at[k].transfer;

			q->n_moves += shard_transfer_sent(t) > 0;
			q->moves |= shard_transfer_is_sent(t);
		}
	}
}

api_parted *api_shard_compile(
	tn_context *c, arena *a, compilation *m, tensor_placing *w)
{
	ir_program *p = m->program;
	const tn_mesh *mesh = mesh_of(c, w, p->input.n);
	struct annotate_call known = {c, w};
	compile_layout l;
	api_parted *q;

	for (int32_t i = 0; i < w->n_want; i++)
		w->out[i] = 0;
	if (mesh == NULL) {
		p->output.n = w->n_out; /* the placements of other outputs are not needed */
		return NULL;
	}
	q = arena_make(a, api_parted);
	*q = (api_parted){.c = c, .a = a, .hash = hash_of(a, p, w)};
	l = (compile_layout){.mesh = &mesh->m,
		.rank = api_shard_rank(c),
		.keep = kept_outputs(a, p, w),
		.place = annotate,
		.arg = &known};
	m->o.layout = &l;
	compare(c, a, p, q->hash);
	compile_to(m, TN_LEVEL_SYSTEM);
	m->o.layout = NULL;
	q->p = m->local;
	q->exec = shard_exec_new(a, q->p);
	count_moves(q);
	for (int32_t i = 0; i < w->n_out; i++) {
		api_placement out = {.mesh = mesh, .monoid = IR_SUM};

		out.l = q->p->array.at[q->p->output[i]].layout;
		w->out[i] = api_placement_number(c, &out);
	}
	compile_phases(q, m);
	return q;
}

static void run_phase(void *arg, int32_t phase, const void *const *in,
	void *const *out)
{
	api_parted *q = arg;

	if (q->c->o.interp)
		eval_arrays(q->a, q->p->phase.at[phase].s, in, out);
	else
		plan_exec_run(q->phase[phase], in, NULL, out);
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

static void get(void *arg, void *host, const void *from, size_t n)
{
	run_device *d = ((const api_parted *)arg)->c->device;

	d->get(d, host, from, n);
}

static void put(void *arg, void *to, const void *host, size_t n)
{
	run_device *d = ((const api_parted *)arg)->c->device;

	d->put(d, to, host, n);
}

static void copy(void *arg, void *to, const void *from, size_t n)
{
	run_device *d = ((const api_parted *)arg)->c->device;

	d->copy(d, to, from, n);
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
	api_shard *s = api_shard_of(q->c);
	run_device *d = q->c->device;
	shard_runner r = {.arg = q, .run = run_phase, .join = join_parts};

	if (!d->is_host) {
		r.get = get;
		r.put = put;
		r.copy = copy;
	}
	if (q->moves)
		r.device = api_shard_device(q->c);
	if (s->debug && s->link != NULL)
		s->link->agree(s->link, q->c->e, q->hash, "a program");
	if (s->slab_bytes < shard_exec_bytes(q->exec)) {
		arena_free(s->slab_of);
		s->slab_of = NULL;
		s->slab_bytes = 0;
		s->slab_of = arena_child(q->c->a);
		s->slab = d->is_host
			? run_slab(s->slab_of, shard_exec_bytes(q->exec))
			: d->alloc(d, s->slab_of, shard_exec_bytes(q->exec));
		s->slab_bytes = shard_exec_bytes(q->exec);
	}
	q->began = true;
	shard_exec_run(q->exec, s->link, &r, k->in, k->out, s->slab);
	s->n_moves += q->n_moves;
	s->bytes_sent += shard_exec_sent(q->exec);
	if (!d->is_host && r.device == NULL)
		s->bytes_by_host += shard_exec_sent(q->exec);
}

void api_shard_run(tn_context *c, api_parted *q, const void *const *in,
	void *const *out)
{
	struct run_call k = {q, in, out};
	api_shard *s = api_shard_of(c);

	q->began = false;
	if (env_run(c->e, run, &k) >= 0)
		return;
	/* the others would wait for ever, unless all have failed */
	if (s->link != NULL && !(q->began && shard_exec_failed(q->exec)))
		s->link->stop(s->link, env_diag(c->e)->text);
	env_rethrow(c->e);
}
