/*
 * exec.c: runs the program of one process.
 *
 * Consumes a shard_program, a link, and functions that run the equations of a
 * phase and combine partial results (kernels, or eval.c); produces the outputs of
 * this process. Arrays that several phases use are in a slab of the caller; outputs
 * that share no memory are computed in the caller's arrays.
 *
 *     phase 0 -> moves -> phase 1 -> copies to outputs
 *
 * If a phase fails on one process, the others do not wait for ever: that process
 * still makes the remaining moves, with arbitrary elements, until all processes
 * compare whether one has failed. Most programs write in place after that; tensors
 * that are written before are copied first.
 *
 * Arrays may be in memory that is not the host's. Then moves go from device to device,
 * if these are connected (carry.c), else through copies, because processes exchange
 * memory of the host.
 */
#include "layout/layout.h"
#include "system/eval.h"

enum { ALIGN = 64 };

typedef struct spot {
	enum { SPOT_NONE, SPOT_SLAB, SPOT_INPUT, SPOT_OUTPUT } where;
	int32_t number;
	size_t offset;
} spot;

struct shard_exec {
	arena *a;
	const shard_program *p;
	spot *at; /* by array */
	size_t bytes;
	void **data; /* by array, in the current run */
	const void ***in; /* by phase */
	void ***out;
	int64_t sent; /* bytes that leave this process in a run */
	/* in the current run */
	int32_t failed; /* the phase that failed, or -1 */
	tn_diag diag;	/* of that failure */
	bool together;
	arena *kept_of; /* copies of inputs */
};

/* A phase, for env_run. */
typedef struct phase_call {
	shard_exec *x;
	const shard_runner *r;
	int32_t i;
} phase_call;

static size_t bytes_of(const shard_array *y)
{
	return (size_t)y->elems * dtype_size(y->dtype);
}

static size_t part_bytes(const shard_program *p, const shard_job *j)
{
	size_t n = 0;

	for (int32_t k = 0; k < j->n; k++)
		n += dtype_size(p->array.at[j->from[k]].dtype);
	return n;
}

static void locate_arrays(shard_exec *x)
{
	const shard_program *p = x->p;
	const ir_system *s = p->p->s;

	for (int32_t i = 0; i < p->array.n; i++)
		if (p->array.at[i].input >= 0)
			x->at[i] = (spot){SPOT_INPUT, p->array.at[i].input, 0};
	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t y = p->output[i];

		if (y >= 0 && (i >= s->store.n || s->store.at[i] < 0) &&
			x->at[y].where == SPOT_NONE &&
			p->array.at[y].memory < 0)
			x->at[y] = (spot){SPOT_OUTPUT, i, 0};
	}
	for (int32_t i = 0; i < p->array.n; i++) {
		const shard_array *y = &p->array.at[i];

		if (!y->crosses || x->at[i].where != SPOT_NONE)
			continue;
		if (y->memory >= 0) {
			x->at[i] = x->at[y->memory];
			continue;
		}
		x->at[i] = (spot){SPOT_SLAB, 0, x->bytes};
		x->bytes += (bytes_of(y) + ALIGN) / ALIGN * ALIGN;
	}
}

shard_exec *shard_exec_new(arena *a, const shard_program *p)
{
	shard_exec *x = arena_make(a, shard_exec);

	x->a = a;
	x->p = p;
	x->at = arena_array(a, spot, p->array.n + 1);
	x->data = arena_array(a, void *, p->array.n + 1);
	x->in = arena_array(a, const void **, p->phase.n + 1);
	x->out = arena_array(a, void **, p->phase.n + 1);
	locate_arrays(x);
	for (int32_t i = 0; i < p->phase.n; i++) {
		const shard_phase *q = &p->phase.at[i];

		x->in[i] = arena_array(a, const void *, q->in.n + 1);
		x->out[i] = arena_array(a, void *, q->out.n + 1);
		for (int32_t k = 0; k < q->job.n; k++)
			x->sent += shard_transfer_sent(q->job.at[k].transfer) *
				(int64_t)part_bytes(p, &q->job.at[k]);
	}
	return x;
}

size_t shard_exec_bytes(const shard_exec *x)
{
	return x->bytes;
}

int64_t shard_exec_sent(const shard_exec *x)
{
	return x->sent;
}

/* ---- moves ---- */

/* Interleaves the elements of several components. */
static void weave(const shard_program *p, const int32_t *array, int32_t n,
	size_t size, int64_t elems, void *const *part, char *all, bool apart)
{
	size_t at = 0;

	for (int32_t k = 0; k < n; k++) {
		size_t one = dtype_size(p->array.at[array[k]].dtype);

		for (int64_t i = 0; i < elems; i++) {
			char *w = all + (size_t)i * size + at;
			char *q = (char *)part[k] + (size_t)i * one;

			memcpy(apart ? q : w, apart ? w : q, one);
		}
		at += one;
	}
}

typedef struct joining {
	shard_exec *x;
	const shard_job *j;
	const shard_runner *r;
	arena *scratch;
	size_t size;
} joining;

static void join(void *arg, int64_t n, void *far, const void *next)
{
	joining *w = arg;
	void *a[IR_MAX_COMP] = {far}, *b[IR_MAX_COMP];
	const shard_program *p = w->x->p;
	const shard_job *j = w->j;
	char *copy;
	shard_combine *fold =
		shard_fold(j->monoid, p->array.at[j->from[0]].dtype);

	b[0] = (void *)(uintptr_t)next;
	if (j->n == 1 && fold != NULL) {
		fold(NULL, n, far, next);
		return;
	}
	if (j->n == 1) {
		w->r->join(w->r->arg, j, n, a, b);
		return;
	}
	for (int32_t k = 0; k < j->n; k++) {
		size_t one = dtype_size(p->array.at[j->from[k]].dtype);

		a[k] = arena_alloc(w->scratch, (size_t)n, one);
		b[k] = arena_alloc(w->scratch, (size_t)n, one);
	}
	copy = arena_copy(w->scratch, next, (size_t)n * w->size);
	weave(p, j->from, j->n, w->size, n, a, far, true);
	weave(p, j->from, j->n, w->size, n, b, copy, true);
	w->r->join(w->r->arg, j, n, a, b);
	weave(p, j->from, j->n, w->size, n, a, far, false);
}

/* Makes room for arrays of the host; filled: with their elements. */
static void stage(shard_exec *x, arena *scratch, const shard_runner *r,
	const int32_t *array, int32_t n, bool filled, void **data)
{
	for (int32_t k = 0; k < n && r->get != NULL; k++) {
		const shard_array *y = &x->p->array.at[array[k]];
		void *host = arena_alloc(scratch, bytes_of(y) + 1, 1);

		if (filled && bytes_of(y) > 0)
			r->get(r->arg, host, data[k], bytes_of(y));
		data[k] = host;
	}
}

static void exchange(shard_exec *x, arena *scratch, shard_link *l,
	const shard_runner *r, const shard_job *j, void *const *a,
	void *const *b)
{
	const shard_program *p = x->p;
	const shard_array *from = &p->array.at[j->from[0]];
	const shard_array *to = &p->array.at[j->to[0]];
	joining w = {x, j, r, scratch, part_bytes(p, j)};
	shard_elems e = {.size = w.size,
		.combine = join,
		.arg = &w,
		.what = shard_transfer_what(j->transfer)};
	char *in, *out;

	if (j->n == 1) {
		shard_transfer_run(j->transfer, scratch, l, &e, a[0], b[0]);
		return;
	}
	in = arena_alloc(scratch, (size_t)from->elems + 1, w.size);
	out = arena_alloc(scratch, (size_t)to->elems + 1, w.size);
	weave(p, j->from, j->n, w.size, from->elems, a, in, false);
	shard_transfer_run(j->transfer, scratch, l, &e, in, out);
	weave(p, j->to, j->n, w.size, to->elems, b, out, true);
}

typedef struct carry_call {
	shard_exec *x;
	arena *scratch;
	shard_link *l;
	const shard_runner *r;
	const shard_job *j;
} carry_call;

/* From device to device. */
static void carry_job(void *arg)
{
	const carry_call *k = arg;
	const shard_job *j = k->j;
	shard_cargo c = {.n = j->n, .monoid = j->monoid};

	for (int32_t i = 0; i < j->n; i++) {
		c.dtype[i] = k->x->p->array.at[j->from[i]].dtype;
		c.from[i] = k->x->data[j->from[i]];
		c.to[i] = k->x->data[j->to[i]];
	}
	shard_transfer_carry(j->transfer, k->scratch, k->l, k->r->device, &c);
}

/* Has an input been written before phase i? */
static bool has_written(const shard_exec *x, int32_t i)
{
	const shard_program *p = x->p;
	const ir_system *s = p->p->s;

	for (int32_t k = 0; k < s->output.n && k < s->store.n; k++) {
		int32_t y = p->output[k];

		if (y < 0 || s->store.at[k] < 0 ||
			bytes_of(&p->array.at[y]) == 0)
			continue;
		if (p->array.at[y].memory >= 0 ? p->array.at[y].phase < i
					       : x->at[y].where == SPOT_INPUT)
			return true;
	}
	return false;
}

/* If all processes fail alike before anything was written, they can go on. */
static void carry(shard_exec *x, arena *scratch, shard_link *l,
	const shard_runner *r, const shard_job *j, int32_t phase)
{
	carry_call k = {x, scratch, l, r, j};
	env *e = arena_env(x->a);

	if (env_run(e, carry_job, &k) >= 0)
		return;
	arena_free(scratch); /* memory of the device */
	x->together = r->device->carrier->together && !has_written(x, phase);
	env_rethrow(e);
}

static void run_job(shard_exec *x, arena *scratch, shard_link *l,
	const shard_runner *r, const shard_job *j)
{
	void *a[IR_MAX_COMP], *b[IR_MAX_COMP];

	for (int32_t k = 0; k < j->n; k++) {
		a[k] = x->data[j->from[k]];
		b[k] = x->data[j->to[k]];
	}
	stage(x, scratch, r, j->from, j->n, true, a);
	stage(x, scratch, r, j->to, j->n, false, b);
	exchange(x, scratch, l, r, j, a, b);
	for (int32_t k = 0; k < j->n && r->put != NULL; k++) {
		size_t n = bytes_of(&x->p->array.at[j->to[k]]);

		if (n > 0)
			r->put(r->arg, x->data[j->to[k]], b[k], n);
	}
}

/* ---- the whole ---- */

static void bind(shard_exec *x, const void *const *in, void *const *out,
	char *slab)
{
	for (int32_t i = 0; i < x->p->array.n; i++) {
		const spot *s = &x->at[i];

		x->data[i] = NULL;
		if (s->where == SPOT_SLAB)
			x->data[i] = slab + s->offset;
		else if (s->where == SPOT_INPUT)
			x->data[i] = (void *)(uintptr_t)in[s->number];
		else if (s->where == SPOT_OUTPUT)
			x->data[i] = out[s->number];
	}
}

/* early: outputs that are inputs, before their memory is written */
static void copy_outputs(shard_exec *x, const shard_runner *r,
	const void *const *in, void *const *out, bool early)
{
	const shard_program *p = x->p;
	const ir_system *s = p->p->s;

	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t y = p->output[i];
		bool stored = i < s->store.n && s->store.at[i] >= 0;
		void *to;

		if (y < 0 || (x->at[y].where == SPOT_INPUT &&
				     p->array.at[y].memory < 0) != early)
			continue;
		to = stored ? (void *)(uintptr_t)in[s->store.at[i]] : out[i];
		if (to == x->data[y] || bytes_of(&p->array.at[y]) == 0)
			continue;
		if (r->copy != NULL)
			r->copy(r->arg, to, x->data[y],
				bytes_of(&p->array.at[y]));
		else
			memcpy(to, x->data[y], bytes_of(&p->array.at[y]));
	}
}

static void run_phase(void *arg)
{
	const phase_call *c = arg;

	c->r->run(c->r->arg, c->i, c->x->in[c->i], c->x->out[c->i]);
}

static void enter_phase(shard_exec *x, shard_link *l, const shard_runner *r,
	int32_t i)
{
	const shard_phase *q = &x->p->phase.at[i];
	phase_call c = {x, r, i};
	env *e = arena_env(x->a);

	for (int32_t k = 0; k < q->job.n; k++) {
		arena *scratch = arena_child(x->a);

		if (r->device != NULL)
			carry(x, scratch, l, r, &q->job.at[k], i);
		else
			run_job(x, scratch, l, r, &q->job.at[k]);
		arena_free(scratch);
	}
	for (int32_t k = 0; k < q->in.n; k++)
		x->in[i][k] = x->data[q->in.at[k]];
	for (int32_t k = 0; k < q->out.n; k++)
		x->out[i][k] = x->data[q->out.at[k]];
	if (q->s->eqn.n == 0 || x->failed >= 0)
		return;
	if (i > x->p->last_check) {
		run_phase(&c);
	} else if (env_run(e, run_phase, &c) < 0) {
		x->failed = i;
		x->diag = *env_diag(e);
	}
}

/* Is this output stored into an input before all processes have compared? */
static bool is_early(const shard_exec *x, int32_t output)
{
	const shard_program *p = x->p;
	int32_t y = p->output[output];

	if (y < 0 || output >= p->p->s->store.n ||
		p->p->s->store.at[output] < 0 ||
		bytes_of(&p->array.at[y]) == 0)
		return false;
	return p->array.at[y].memory >= 0
		? p->array.at[y].phase <= p->last_check
		: x->at[y].where == SPOT_INPUT;
}

/* Copies the inputs that are written early; or restores them. */
static void keep(shard_exec *x, const shard_runner *r, void *const *in,
	void **kept, arena *a, bool back)
{
	const shard_program *p = x->p;

	for (int32_t i = 0; i < p->p->s->output.n; i++) {
		size_t n;
		void *at;

		if (!is_early(x, i))
			continue;
		n = bytes_of(&p->array.at[p->output[i]]);
		at = in[p->p->s->store.at[i]];
		if (back && r->put != NULL)
			r->put(r->arg, at, kept[i], n);
		else if (back)
			memcpy(at, kept[i], n);
		else if (r->get == NULL)
			kept[i] = arena_copy(a, at, n);
		else
			r->get(r->arg, kept[i] = arena_alloc(a, n, 1), at, n);
	}
}

typedef struct ask_call {
	shard_exec *x;
	shard_link *l;
} ask_call;

static void ask(void *arg)
{
	const ask_call *c = arg;
	const tn_diag *d = &c->x->diag;
	env *e = arena_env(c->x->a);

	if (c->l != NULL)
		shard_fail_together(e, c->l, c->x->failed, d,
			"the end of what may fail");
	else if (c->x->failed >= 0)
		env_fail(e, d->status, d->rule, (loc){0}, "%s", d->text);
}

static void drop_kept(shard_exec *x)
{
	arena_free(x->kept_of);
	x->kept_of = NULL;
}

static void run_checked(shard_exec *x, shard_link *l, const shard_runner *r,
	const void *const *in, void *const *out)
{
	arena *a = x->kept_of = arena_child(x->a);
	void **kept = arena_array(a, void *, x->p->p->s->output.n + 1);
	void *const *memory = (void *const *)(uintptr_t)in;
	ask_call c = {x, l};

	keep(x, r, memory, kept, a, false);
	copy_outputs(x, r, in, out, true);
	for (int32_t i = 0; i <= x->p->last_check; i++)
		enter_phase(x, l, r, i);
	if (env_run(arena_env(a), ask, &c) < 0) {
		x->together = env_diag(arena_env(a))->status != TN_EPEER;
		keep(x, r, memory, kept, a, true);
		drop_kept(x);
		env_rethrow(arena_env(x->a));
	}
	drop_kept(x);
}

bool shard_exec_failed(const shard_exec *x)
{
	return x->together;
}

void shard_exec_run(shard_exec *x, shard_link *l, const shard_runner *r,
	const void *const *in, void *const *out, void *slab)
{
	int32_t i = 0;

	x->failed = -1;
	x->together = false;
	drop_kept(x); /* of a run that was broken off */
	bind(x, in, out, slab);
	if (x->p->last_check >= 0) {
		run_checked(x, l, r, in, out);
		i = x->p->last_check + 1;
	} else {
		copy_outputs(x, r, in, out, true);
	}
	for (; i < x->p->phase.n; i++)
		enter_phase(x, l, r, i);
	copy_outputs(x, r, in, out, false);
}

/* ---- by eval.c ---- */

void eval_arrays(arena *a, ir_system *s, const void *const *in,
	void *const *out)
{
	arena *scratch = arena_child(a);
	void **data = arena_array(scratch, void *, s->tensor.n + 1);

	for (int32_t i = 0; i < s->tensor.n; i++)
		if (!s->tensor.at[i].is_input)
			data[i] = arena_alloc(scratch,
				(size_t)s->tensor.at[i].numel + 1,
				dtype_size(s->tensor.at[i].dtype));
	for (int32_t i = 0; i < s->input.n; i++)
		data[s->input.at[i]] = (void *)(uintptr_t)in[i];
	eval_equations(scratch, s, data);
	for (int32_t i = 0; i < s->output.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->output.at[i]];
		bool stored = i < s->store.n && s->store.at[i] >= 0;
		void *to = stored ? (void *)(uintptr_t)in[s->store.at[i]]
				  : out[i];

		if (t->numel > 0)
			memcpy(to, data[s->output.at[i]],
				(size_t)t->numel * dtype_size(t->dtype));
	}
	arena_free(scratch);
}

void eval_join(arena *a, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, void *const *far, void *const *next)
{
	arena *scratch = arena_child(a);
	ir_system *s = shard_joiner(scratch, monoid, n_comp, acc, n, 2);
	const void *in[2 * IR_MAX_COMP];

	for (int32_t k = 0; k < n_comp; k++) {
		in[k] = far[k];
		in[n_comp + k] = next[k];
	}
	/* element by element, so the result may use the memory of an operand */
	eval_arrays(scratch, s, in, far);
	arena_free(scratch);
}
