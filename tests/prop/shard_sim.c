/*
 * shard_sim.c: the meaning of a plan, one point at a time. See shard_sim.h.
 *
 * An equation, for all processes: bring what it reads into the layout that it
 * needs; each works out its part; parts of sums are combined over the axes of
 * the mesh along which it is partial; the result is brought into the layout
 * in which its tensor stays.
 */
#include "shard_sim.h"

#include "grad/grad.h"
#include "system/eval.h"

typedef struct piece { /* a tensor at one process */
	void *data;
	bool *here;
} piece;

typedef struct sim {
	arena *a;
	env *e;
	ir_system *s;
	shard_plan *p;
	int64_t n_processes;
	piece **at; /* [process][tensor] */
	sim_result *r;
	/* the point at hand */
	piece *mine;
	eval_machine m;
	int32_t masked; /* tensor whose missing elements are zero; -1 */
	ir_number *raw; /* sums under way, not yet rounded; NULL: they are whole */
} sim;

static const sys_tensor *tensor_of(const sim *v, int32_t t)
{
	return &v->s->tensor.at[t];
}

static ir_number read_element(void *arg, int32_t tensor, int64_t at)
{
	sim *v = arg;
	const sys_tensor *t = tensor_of(v, tensor);
	ir_number zero = {0};

	if (at < 0 || at >= t->numel)
		env_fail(v->e, TN_EINTERNAL, "shard.sim", (loc){0},
			"%s reads element %lld of %s", v->m.label,
			(long long)at, t->name);
	v->r->local_reads++;
	if (v->mine[tensor].here[at])
		return eval_load(
			t->dtype, v->mine[tensor].data, at);
	if (v->masked != tensor)
		env_fail(v->e, TN_EINTERNAL, "shard.sim", (loc){0},
			"%s reads element %lld of %s, which is elsewhere",
			v->m.label, (long long)at, t->name);
	if (dtype_is_float(t->dtype))
		zero.f = -0.0; /* what a sum leaves as it is, -0 too */
	return zero;
}

static int64_t form_value(sim *v, const ix_form *f)
{
	return eval_form(&v->m, f);
}

static ir_number value(sim *v, const expr *e)
{
	return eval_value(&v->m, e);
}

static void acc_of(const sim *v, const sys_eqn *e, tn_dtype *acc)
{
	tn_dtype t = tensor_of(v, e->out[0])->dtype;

	for (int32_t k = 0; k < e->n_out; k++)
		acc[k] = e->monoid == IR_SET ? t
					     : ir_monoid_acc(e->monoid, k, t);
}

static void combine(sim *v, int32_t monoid, int32_t n, const tn_dtype *acc,
	ir_number *far, const ir_number *next)
{
	eval_combine(&v->m, monoid, n, acc, far, next);
}

/* ---- the part of one process ---- */

typedef struct part {
	const shard_eqn *q; /* NULL: the whole */
	const sys_eqn *e;
	const shard_mesh *mesh;
	int64_t process;
	bool starts; /* it brings in the initial value */
} part;

static bool is_mine(const part *w, int32_t axis, int64_t x)
{
	return w->q == NULL ||
		shard_owns(&w->q->axis[axis], w->mesh, w->process, x);
}

/* to the next point of axes from .. to - 1 that is this process's */
static bool next_point(const part *w, int64_t *point, int32_t from, int32_t to)
{
	for (int32_t i = to - 1; i >= from; i--) {
		while (++point[i] < w->e->axis[i].extent)
			if (is_mine(w, i, point[i]))
				return true;
		for (point[i] = 0; !is_mine(w, i, point[i]);)
			point[i]++;
	}
	return false;
}

static bool first_point(const part *w, int64_t *point, int32_t from, int32_t to)
{
	for (int32_t i = from; i < to; i++) {
		point[i] = 0;
		while (point[i] < w->e->axis[i].extent &&
			!is_mine(w, i, point[i]))
			point[i]++;
		if (point[i] == w->e->axis[i].extent)
			return false;
	}
	return true;
}

static void start(sim *v, const part *w, const tn_dtype *acc, ir_number *r)
{
	const sys_eqn *e = w->e;

	for (int32_t k = 0; k < e->n_out; k++)
		r[k] = value(v, e->init[k] != NULL && w->starts
				? e->init[k]
				: ir_identity(v->s, e->monoid, k, acc[k]));
}

static void finish(sim *v, const sys_eqn *e, const tn_dtype *acc, int64_t at,
	const ir_number *r)
{
	for (int32_t k = 0; k < e->n_out; k++) {
		const sys_tensor *t = tensor_of(v, e->out[k]);

		eval_store(t->dtype, v->mine[e->out[k]].data, at,
			ir_cast(t->dtype, acc[k], r[k]));
		v->mine[e->out[k]].here[at] = true;
		if (v->raw != NULL)
			v->raw[at * e->n_out + k] = r[k];
	}
}

static void pull(sim *v, const part *w, int64_t *point, int64_t at)
{
	const sys_eqn *e = w->e;
	ir_number r[IR_MAX_COMP], next[IR_MAX_COMP];
	tn_dtype acc[IR_MAX_COMP];

	acc_of(v, e, acc);
	if (e->monoid == IR_SET) {
		r[0] = value(v, e->body[0]);
		finish(v, e, acc, at, r);
		return;
	}
	for (int32_t i = e->n_left; i < e->n_axes; i++)
		point[i] = 0;
	start(v, w, acc, r);
	if (first_point(w, point, e->n_left, e->n_axes))
		do {
			for (int32_t k = 0; k < e->n_out; k++)
				next[k] = value(v, e->body[k]);
			combine(v, e->monoid, e->n_out, acc, r, next);
		} while (next_point(w, point, e->n_left, e->n_axes));
	finish(v, e, acc, at, r);
}

static void push(sim *v, const part *w, int64_t *point,
	const shard_layout *makes)
{
	const sys_eqn *e = w->e;
	int64_t numel = tensor_of(v, e->out[0])->numel;
	ir_number *sum = arena_array(v->a, ir_number, numel * e->n_out);
	ir_number next[IR_MAX_COMP];
	tn_dtype acc[IR_MAX_COMP];

	acc_of(v, e, acc);
	for (int64_t at = 0; at < numel; at++) {
		point[0] = at;
		if (makes == NULL ||
			shard_owns(makes, w->mesh, w->process, at))
			start(v, w, acc, sum + at * e->n_out);
	}
	if (first_point(w, point, 0, e->n_axes))
		do {
			int64_t at = form_value(v, e->push);

			for (int32_t k = 0; k < e->n_out; k++)
				next[k] = value(v, e->body[k]);
			if (at < 0 || at >= numel)
				env_fail(v->e, TN_ERANGE, "index.range",
					(loc){0}, "%s writes element %lld",
					v->m.label, (long long)at);
			/* what each process makes, and one keeps */
			if (w->q != NULL && !shard_owns(&w->q->own, w->mesh,
						    w->process, at))
				continue;
			if (makes != NULL &&
				!shard_owns(makes, w->mesh, w->process, at))
				env_fail(v->e, TN_EINTERNAL, "shard.sim",
					(loc){0}, "%s writes element %lld, "
					"which is elsewhere",
					v->m.label, (long long)at);
			combine(v, e->monoid, e->n_out, acc,
				sum + at * e->n_out, next);
		} while (next_point(w, point, 0, e->n_axes));
	for (int64_t at = 0; at < numel; at++)
		if (makes == NULL ||
			shard_owns(makes, w->mesh, w->process, at))
			finish(v, e, acc, at, sum + at * e->n_out);
}

/* Is element x of tensor number i at a place of the batch that is this process's? */
static bool in_batch(const part *w, const sys_tensor *t, int32_t i, int64_t x)
{
	const sys_eqn *e = w->e;
	int32_t n = e->n_opaque_in + e->n_out;

	for (int32_t b = 0; w->q != NULL && b < e->n_axes; b++) {
		int32_t k = e->batch[b * n + i];
		int64_t in = shape_numel(t->shape + k + 1, t->rank - k - 1);

		if (!is_mine(w, b, x / in % t->shape[k]))
			return false;
	}
	return true;
}

/* The type of what the process has of tensor number i. */
static ir_type type_of(const sim *v, const part *w, int32_t i, int32_t tensor)
{
	const sys_tensor *t = tensor_of(v, tensor);
	const sys_eqn *e = w->e;
	int32_t n = e->n_opaque_in + e->n_out;
	ir_type r = {.dtype = t->dtype, .rank = t->rank};

	memcpy(r.shape, t->shape, sizeof r.shape);
	for (int32_t b = 0; w->q != NULL && b < e->n_axes; b++) {
		int64_t *extent = &r.shape[e->batch[b * n + i]];

		*extent = 0;
		for (int64_t x = 0; x < e->axis[b].extent; x++)
			*extent += is_mine(w, b, x);
	}
	return r;
}

/* What it has, densely, to the function or back from it. */
static void copy_batch(sim *v, const part *w, int32_t i, int32_t tensor,
	char *dense, bool back)
{
	const sys_tensor *t = tensor_of(v, tensor);
	size_t size = dtype_size(t->dtype), n = 0;

	for (int64_t x = 0; x < t->numel; x++) {
		char *at = (char *)v->mine[tensor].data + (size_t)x * size;

		if (!in_batch(w, t, i, x))
			continue;
		if (!back && !v->mine[tensor].here[x])
			env_fail(v->e, TN_EINTERNAL, "shard.sim", (loc){0},
				"%s needs element %lld of %s, which is "
				"elsewhere",
				v->m.label, (long long)x, t->name);
		memcpy(back ? at : dense + n, back ? dense + n : at, size);
		v->mine[tensor].here[x] = true;
		n += size;
	}
}

static void opaque(sim *v, const part *w)
{
	const sys_eqn *e = w->e;
	ir_type type[IR_MAX_OPERANDS + IR_MAX_OUT];
	const void *in[IR_MAX_OPERANDS];
	void *out[IR_MAX_OUT];
	int32_t n_in = e->n_opaque_in;

	for (int32_t i = 0; i < n_in + e->n_out; i++) {
		int32_t t = i < n_in ? e->opaque_in[i] : e->out[i - n_in];
		char *dense = arena_alloc(v->a,
			(size_t)tensor_of(v, t)->numel + 1,
			dtype_size(tensor_of(v, t)->dtype));

		type[i] = type_of(v, w, i, t);
		if (w->q != NULL && e->n_axes > 0 &&
			shape_numel(type[i].shape, type[i].rank) == 0)
			return;
		if (i < n_in)
			copy_batch(v, w, i, t, dense, false);
		if (i < n_in)
			in[i] = dense;
		else
			out[i - n_in] = dense;
	}
	e->opaque->run(v->e, e->opaque, type, in, type + n_in, out,
		e->opaque_attr);
	for (int32_t k = 0; k < e->n_out; k++)
		copy_batch(v, w, n_in + k, e->out[k], out[k], true);
}

static void run_part(sim *v, const part *w, const shard_layout *makes)
{
	const sys_eqn *e = w->e;
	int64_t point[IR_MAX_AXES] = {0}, n = 1;

	v->m.arg = v;
	v->m.point = point;
	v->m.label = e->label;
	if (e->opaque != NULL) {
		opaque(v, w);
		return;
	}
	if (e->push != NULL) {
		push(v, w, point, makes);
		return;
	}
	for (int32_t i = 0; i < e->n_left; i++)
		n *= e->axis[i].extent;
	for (int64_t k = 0; k < n; k++) {
		int64_t at = e->scan_step < 0 ? n - 1 - k : k, rest = at;
		bool mine = true;

		for (int32_t i = e->n_left - 1; i >= 0; i--) {
			point[i] = rest % e->axis[i].extent;
			rest /= e->axis[i].extent;
			mine &= is_mine(w, i, point[i]);
		}
		if (mine)
			pull(v, w, point, at);
	}
}

/* ---- between processes ---- */

static piece piece_new(arena *a, const sys_tensor *t)
{
	piece q = {.data = arena_alloc(a, (size_t)t->numel + 1,
			   dtype_size(t->dtype)),
		.here = arena_array(a, bool, t->numel + 1)};

	/* nobody may use what is not there */
	memset(q.data, 0xa5, (size_t)t->numel * dtype_size(t->dtype));
	return q;
}

/* Everybody gets what `to` gives him, from himself or the first who has it. */
static void bring(sim *v, int32_t tensor, piece *const *from,
	const shard_layout *to, piece *const *out)
{
	const sys_tensor *t = tensor_of(v, tensor);
	size_t size = dtype_size(t->dtype);

	if (t->numel > 0 && from[0][tensor].here == NULL)
		env_fail(v->e, TN_EINTERNAL, "shard.sim", (loc){0},
			"%s is read before it is made", t->name);
	for (int64_t q = 0; q < v->n_processes; q++) {
		piece dst = piece_new(v->a, t);

		for (int64_t e = 0; e < t->numel; e++) {
			int64_t src = q;

			if (!shard_owns(to, v->p->mesh, q, e))
				continue;
			if (!from[q][tensor].here[e])
				for (src = 0; src < v->n_processes; src++)
					if (from[src][tensor].here[e])
						break;
			if (src == v->n_processes)
				env_fail(v->e, TN_EINTERNAL, "shard.sim",
					(loc){0}, "nobody has element %lld of %s",
					(long long)e, t->name);
			v->r->moved_bytes += src == q ? 0 : (int64_t)size;
			memcpy((char *)dst.data + (size_t)e * size,
				(char *)from[src][tensor].data +
					(size_t)e * size,
				size);
			dst.here[e] = true;
		}
		out[q][tensor] = dst;
	}
}

/* Is process b process a but for the axes in the mask? */
static bool same_but(const sim *v, int64_t a, int64_t b, uint32_t mask)
{
	for (int32_t m = 0; m < v->p->mesh->n; m++)
		if (!(mask >> m & 1) &&
			shard_mesh_at(v->p->mesh, a, m) !=
				shard_mesh_at(v->p->mesh, b, m))
			return false;
	return true;
}

/* Parts of sums over the axes of the mesh in the mask become the sum. */
static void add_up(sim *v, const sys_eqn *e, uint32_t mask, int32_t monoid,
	piece *const *at, ir_number *const *raw)
{
	tn_dtype acc[IR_MAX_COMP];
	int64_t numel = tensor_of(v, e->out[0])->numel;

	if (monoid == IR_SET)
		env_fail(v->e, TN_EINTERNAL, "shard.sim", (loc){0},
			"%s is no sum, but in parts", e->label);
	for (int32_t k = 0; k < e->n_out; k++)
		acc[k] = ir_monoid_acc(
			monoid, k, tensor_of(v, e->out[0])->dtype);
	for (int64_t q = 0; q < v->n_processes; q++) {
		bool first = true;

		/* whoever is the first of his group does it for all */
		for (int64_t b = 0; b < q; b++)
			first &= !same_but(v, q, b, mask);
		for (int64_t x = 0; first && x < numel; x++) {
			ir_number r[IR_MAX_COMP], next[IR_MAX_COMP];

			if (!at[q][e->out[0]].here[x])
				continue;
			for (int64_t b = q; b < v->n_processes; b++) {
				if (!same_but(v, q, b, mask))
					continue;
				for (int32_t k = 0; k < e->n_out; k++)
					next[k] = raw[b][x * e->n_out + k];
				if (b == q)
					memcpy(r, next, sizeof r);
				else
					combine(v, monoid, e->n_out, acc, r,
						next);
			}
			for (int64_t b = q; b < v->n_processes; b++)
				for (int32_t k = 0; k < e->n_out &&
					same_but(v, q, b, mask);
					k++) {
					const sys_tensor *t =
						tensor_of(v, e->out[k]);

					eval_store(t->dtype, at[b][e->out[k]].data, x,
						ir_cast(t->dtype, acc[k],
							r[k]));
					v->r->moved_bytes += b == q ? 0
						: 2 * (int64_t)dtype_size(
							      t->dtype);
				}
		}
	}
}

/* What process b got of each tensor that the equation reads and does not make. */
static void count_moved(sim *v, int32_t number, int64_t b)
{
	const eqn_unit *u = v->p->eqn[number].unit;

	for (int32_t r = 0; r < u->n_reads; r++) {
		int32_t t = u->read[r].tensor, before = 0;
		sim_moved m = {.eqn = number, .tensor = t, .process = b};
		bool makes = false;

		while (u->read[before].tensor != t)
			before++;
		for (int32_t k = 0; k < u->e.n_out; k++)
			makes |= u->e.out[k] == t;
		if (before == r && !makes &&
			moved_count(v->p, v->at[b][t].here, v->mine[t].here,
				&m))
			*vec_push(v->a, &v->r->moved) = m;
	}
}

static void run_eqn(sim *v, int32_t number)
{
	const shard_eqn *q = &v->p->eqn[number];
	const sys_eqn *e = &q->unit->e;
	piece **work = arena_array(v->a, piece *, v->n_processes);
	ir_number **raw = arena_array(v->a, ir_number *, v->n_processes);
	uint32_t mask = 0;
	shard_layout makes = shard_makes(v->p, number, 0);

	for (int64_t b = 0; b < v->n_processes; b++)
		work[b] = arena_array(v->a, piece, v->s->tensor.n + 1);
	for (int32_t m = 0; m < v->p->mesh->n; m++)
		if (shard_is_partial(v->p, number, m))
			mask |= 1u << m;
	for (int32_t r = 0; r < q->unit->n_reads; r++) {
		int32_t t = q->unit->read[r].tensor;
		shard_layout needs = shard_needs(v->p, number, t);

		/* a scan reads what it makes */
		if (work[0][t].data == NULL && t != e->out[0])
			bring(v, t, v->at, &needs, work);
	}
	v->masked = q->masked;
	for (int64_t b = 0; b < v->n_processes; b++) {
		part w = {.q = q,
			.e = e,
			.mesh = v->p->mesh,
			.process = b,
			.starts = true};

		for (int32_t m = 0; m < v->p->mesh->n; m++)
			if (mask >> m & 1)
				w.starts &= shard_mesh_at(w.mesh, b, m) == 0;
		for (int32_t k = 0; k < e->n_out; k++)
			work[b][e->out[k]] =
				piece_new(v->a, tensor_of(v, e->out[k]));
		v->mine = work[b];
		if (mask != 0)
			v->raw = raw[b] = arena_array(v->a, ir_number,
				q->unit->out_elems * e->n_out);
		run_part(v, &w, &makes);
		count_moved(v, number, b);
	}
	v->masked = -1;
	v->raw = NULL;
	if (mask != 0)
		add_up(v, e, mask, q->masks != 0 ? IR_SUM : e->monoid, work,
			raw);
	for (int32_t k = 0; k < e->n_out; k++)
		bring(v, e->out[k], work, &v->p->tensor[e->out[k]].have,
			v->at);
}

/* ---- the whole ---- */

static void load_inputs(sim *v, const void *const *input)
{
	for (int32_t i = 0; i < v->s->input.n; i++) {
		int32_t t = v->s->input.at[i];
		size_t size = dtype_size(tensor_of(v, t)->dtype);

		for (int64_t q = 0; q < v->n_processes; q++) {
			piece w = piece_new(v->a, tensor_of(v, t));

			for (int64_t e = 0; e < tensor_of(v, t)->numel; e++) {
				w.here[e] = v->p == NULL ||
					shard_owns(&v->p->tensor[t].have,
						v->p->mesh, q, e);
				if (w.here[e])
					memcpy((char *)w.data +
							(size_t)e * size,
						(const char *)input[i] +
							(size_t)e * size,
						size);
			}
			v->at[q][t] = w;
		}
	}
}

static void *gather(sim *v, int32_t tensor)
{
	const sys_tensor *t = tensor_of(v, tensor);
	size_t size = dtype_size(t->dtype);
	char *whole = arena_alloc(v->a, (size_t)t->numel + 1, size);

	for (int64_t e = 0; e < t->numel; e++) {
		const char *first = NULL;

		for (int64_t q = 0; q < v->n_processes; q++) {
			const char *one = (char *)v->at[q][tensor].data +
				(size_t)e * size;

			if (!v->at[q][tensor].here[e])
				continue;
			if (first != NULL && memcmp(first, one, size) != 0)
				env_fail(v->e, TN_EINTERNAL, "shard.sim",
					(loc){0}, "copies of element %lld of "
					"%s differ",
					(long long)e, t->name);
			first = one;
		}
		if (first == NULL)
			env_fail(v->e, TN_EINTERNAL, "shard.sim", (loc){0},
				"nobody has element %lld of %s", (long long)e,
				t->name);
		memcpy(whole + (size_t)e * size, first, size);
	}
	return whole;
}

static sim sim_new(arena *a, ir_system *s, int64_t n, sim_result *r)
{
	sim v = {.a = a,
		.e = arena_env(a),
		.s = s,
		.n_processes = n,
		.r = r,
		.masked = -1};

	v.m = (eval_machine){.e = v.e, .s = s, .load = read_element};
	v.at = arena_array(a, piece *, n);
	for (int64_t q = 0; q < n; q++)
		v.at[q] = arena_array(a, piece, s->tensor.n + 1);
	return v;
}

void **sim_run(
	arena *a, shard_plan *p, const void *const *input, sim_result *r)
{
	sim v = sim_new(a, p->s, shard_mesh_size(arena_env(a), p->mesh), r);
	void **whole = arena_array(a, void *, p->s->tensor.n + 1);

	v.p = p;
	load_inputs(&v, input);
	for (int32_t i = 0; i < p->s->eqn.n; i++)
		if (!p->eqn[i].dead)
			run_eqn(&v, i);
	for (int32_t i = 0; i < p->s->tensor.n; i++)
		if (p->s->tensor.at[i].eqn < 0 ||
			!p->eqn[p->s->tensor.at[i].eqn].dead)
			whole[i] = gather(&v, i);
	return whole;
}

void **sim_whole(arena *a, ir_system *s, const void *const *input)
{
	sim_result r = {0};
	sim v = sim_new(a, s, 1, &r);
	void **whole = arena_array(a, void *, s->tensor.n + 1);

	load_inputs(&v, input);
	for (int32_t i = 0; i < s->eqn.n; i++) {
		const sys_eqn *e = &s->eqn.at[i];
		part w = {.e = e, .starts = true};

		for (int32_t k = 0; k < e->n_out; k++)
			v.at[0][e->out[k]] =
				piece_new(a, tensor_of(&v, e->out[k]));
		v.mine = v.at[0];
		run_part(&v, &w, NULL);
	}
	for (int32_t i = 0; i < s->tensor.n; i++)
		whole[i] = v.at[0][i].data;
	return whole;
}

/* ---- gradients ---- */

ir_program *sim_gradient(arena *a, const ir_program *f)
{
	const ir_call *c = &f->call.at[0];
	ir_program *g = ir_program_new(a, f->table);
	int32_t arg[IR_MAX_OPERANDS], n = c->n_args, fwd = -1;
	const grad_rule *r = grad_adjoint(a, f->table, c->inst,
		((uint64_t)1 << n) - 1, 1);

	if (r == NULL)
		env_fail(arena_env(a), TN_EINVAL, "shard.gradient", (loc){0},
			"nothing has a gradient");
	for (int32_t i = 0; i <= n; i++)
		ir_program_input(g, arena_printf(a, "i%d", i),
			f->value.at[i < n ? c->arg[i] : c->result[0]].type,
			(loc){0});
	for (int32_t i = 0; i < n; i++)
		arg[i] = i;
	for (int32_t i = 0; i < r->n_operands; i++)
		if (r->operand[i].from == GRAD_RESULT && fwd < 0)
			fwd = ir_program_inst(
				g, c->inst, n, arg, NULL, (loc){0});
	for (int32_t i = 0; i < r->n_operands; i++)
		arg[i] = r->operand[i].from == GRAD_OPERAND ? r->operand[i].i
			: r->operand[i].from == GRAD_SEED   ? n
				: g->call.at[fwd].result[r->operand[i].i];
	fwd = ir_program_inst(g, r->inst, r->n_operands, arg, NULL, (loc){0});
	for (int32_t i = 0; i < r->n_results; i++)
		ir_program_output(g, g->call.at[fwd].result[i]);
	return g;
}
