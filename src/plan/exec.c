/*
 * exec.c: runs a plan: steps in order, phases of a step in order, chunks of a
 * phase on the threads of the pool.
 *
 * Function addresses, parameter tables and the slab are bound once. A run sets
 * the entries that are arrays of the caller, and starts. Launches of one step
 * share parallel regions: chunk c of a region belongs to the launch whose
 * interval of chunks contains c.
 *
 * The number of a thread selects its local buffers and its error cell.
 */
#include "plan/exec.h"

#include <time.h>

/* A parallel region: one phase of all launches of a step. */
struct region {
	struct plan_exec *x;
	struct bound *b;
	int32_t n, phase;
	const int64_t *first; /* [n + 1]: first chunk of each launch */
};

enum { POISON = 0xa5 };

static void bind_types(plan_exec *x, struct bound *b)
{
	const plan_launch *l = b->l;
	const sys_eqn *e = l->eqn;

	b->type = arena_array(x->a, ir_type, l->n_params);
	for (int32_t i = 0; i < l->n_params; i++) {
		/* the tensor whose memory it uses may have another shape */
		int32_t n = i < e->n_out ? e->out[i]
					 : e->opaque_in[i - e->n_out];
		const sys_tensor *t = &x->p->s->tensor.at[n];

		b->type[i].dtype = t->dtype;
		b->type[i].rank = t->rank;
		memcpy(b->type[i].shape, t->shape, sizeof t->shape);
	}
}

static void bind_params(plan_exec *x, struct bound *b)
{
	const plan *p = x->p;
	int32_t n = b->l->n_params, cells = b->l->cell != NULL ? b->l->code->n_cells : 0;

	b->p = arena_array(x->a, void *, n + cells + 1);
	for (int32_t c = 0; c < cells; c++)
		b->p[n + c] = x->slab + p->tensor_bytes + b->l->cell[c];
	for (int32_t i = 0; i < b->l->n_params; i++) {
		const plan_location *at = &p->location[b->l->tensor[i]];

		switch (at->where) {
		case PLAN_NOWHERE:
			break; /* no elements */
		case PLAN_SLAB:
			b->p[i] = x->slab + at->offset;
			break;
		case PLAN_INPUT:
		case PLAN_OUTPUT:
			*vec_push(x->a, &x->patch) = (struct patch){&b->p[i],
				at->number, at->where == PLAN_OUTPUT};
			break;
		}
	}
}

static void bind_copies(const plan *p, struct bound *b)
{
	for (int32_t i = 0; i < b->code->n_phases; i++) {
		int32_t t = b->l->keeps ? plan_copied(b->l, i) : -1;

		b->copies[i] = t >= 0 && p->location[t].where == PLAN_INPUT
			? p->location[t].number
			: -1;
	}
}

static void find_functions(plan_exec *x)
{
	const plan *p = x->p;

	for (int32_t i = 0; i < p->launch.n; i++) {
		struct bound *b = &x->bound[i];

		for (int32_t k = 0; b->code != NULL && k < b->code->n_phases;
			k++)
			x->find(x->arg, p->kernel.at[b->l->kernel].unit,
				b->code->phase[k].fn, &b->fn[k]);
	}
}

/* Tensors and scratch; behind them, on the CPU, what each thread has. */
static void make_slab(plan_exec *x)
{
	const plan *p = x->p;
	size_t n_workers = x->pool == NULL ? 0 : (size_t)x->n_workers;
	size_t at_local = p->tensor_bytes + p->scratch_bytes + p->kept_bytes;
	size_t n_bytes;

	if (__builtin_mul_overflow(n_workers, p->local_bytes, &n_bytes) ||
		__builtin_add_overflow(n_bytes, at_local, &n_bytes))
		env_fail(arena_env(x->a), TN_ENOMEM, "run.memory", (loc){0},
			"local buffers of %zu bytes for %zu threads do not fit",
			p->local_bytes, n_workers);
	x->slab = x->d->alloc(x->d, x->a, n_bytes > 0 ? n_bytes : PLAN_ALIGN);
	if (x->pool == NULL)
		return;
	x->local = x->slab + at_local;
	x->cell = run_slab(x->a, n_workers * sizeof *x->cell);
}

plan_exec *plan_exec_new(arena *a, const plan *p, run_pool *pool,
	plan_find *find, void *arg)
{
	return plan_exec_on(a, p, &run_cpu, pool, find, arg);
}

plan_exec *plan_exec_on(arena *a, const plan *p, run_device *d, run_pool *pool,
	plan_find *find, void *arg)
{
	plan_exec *x = arena_make(a, plan_exec);
	int32_t widest = 1;

	x->a = a;
	x->p = p;
	x->d = d;
	x->pool = d->is_host ? pool : NULL;
	x->n_workers = d->is_host ? run_pool_threads(pool) : d->n_workers;
	make_slab(x);
	x->bound = arena_array(a, struct bound, p->launch.n + 1);
	for (int32_t i = 0; i < p->launch.n; i++) {
		struct bound *b = &x->bound[i];

		b->l = &p->launch.at[i];
		bind_params(x, b);
		if (b->l->kernel < 0) {
			bind_types(x, b);
			continue;
		}
		b->code = b->l->code;
		b->scratch = x->slab + p->tensor_bytes + b->l->scratch_offset;
		bind_copies(p, b);
	}
	x->find = find;
	x->arg = arg;
	find_functions(x);
	for (int32_t s = 0; s < p->step.n; s++)
		if (p->step.at[s].n > widest)
			widest = p->step.at[s].n;
	x->first = arena_array(a, int64_t, widest + 1);
	x->out = arena_array(a, void *, p->s->output.n + 1);
	x->undo = plan_undo_new(a, p, d);
	if (!d->is_host)
		plan_device_open(x);
	return x;
}

const plan_times *plan_exec_time(plan_exec *x)
{
	plan_times *t = x->times;
	int32_t n = x->p->launch.n;

	if (t != NULL)
		return t;
	t = arena_make(x->a, plan_times);
	t->n_launches = n;
	t->total = arena_array(x->a, double, n + 1);
	t->begin = arena_array(x->a, double, n + 1);
	t->end = arena_array(x->a, double, n + 1);
	x->times = t;
	return t;
}

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

static void run_chunk(void *arg, int64_t chunk, int32_t worker)
{
	const struct region *r = arg;
	plan_exec *x = r->x;
	int32_t lo = 0, hi = r->n;
	struct bound *b;

	while (hi - lo > 1) { /* first[lo] <= chunk < first[hi] */
		int32_t mid = (lo + hi) / 2;

		if (r->first[mid] <= chunk)
			lo = mid;
		else
			hi = mid;
	}
	b = &r->b[lo];
	b->fn[r->phase].c(b->p, b->scratch,
		x->local + (size_t)worker * x->p->local_bytes,
		chunk - r->first[lo], &x->cell[worker].err);
}

static void run_opaque(plan_exec *x, struct bound *b)
{
	const sys_eqn *e = b->l->eqn;
	int32_t n_out = e->n_out;

	if (b->rounds != NULL) {
		b->run(b->rounds);
		return;
	}
	e->opaque->run(arena_env(x->a), e->opaque, b->type + n_out,
		(const void *const *)(b->p + n_out), b->type, b->p,
		e->opaque_attr);
}

/* The text of a kernel breaks a rule of its target. */
static _Noreturn void broken(
	plan_exec *x, const plan_step *step, int64_t err)
{
	int64_t line = 0;
	const char *what = x->p->target->failure(err, &line);

	env_bug(arena_env(x->a), "plan.target", "%s: line %lld of the text: %s",
		x->bound[step->first].code->phase[0].fn, (long long)line, what);
}

static void check_errors(plan_exec *x, const plan_step *step)
{
	for (int32_t w = 0; w < x->n_workers; w++) {
		int64_t err = x->cell[w].err;

		if (err == 0)
			continue;
		if (err < 0)
			broken(x, step, err);
		/* launches with checks are alone in their step */
		plan_bad_index(x, &x->bound[step->first], err - 1, true);
	}
}

static void run_step(plan_exec *x, const plan_step *step)
{
	struct region r = {x, &x->bound[step->first], step->n, 0, x->first};
	/* texts of a target that finds faults in them can all fail */
	bool serial = true, checks = x->p->target->failure != NULL;
	int32_t n_phases = 0;

	if (x->pool == NULL) {
		plan_device_step(x, step);
		return;
	}
	if (r.b->code == NULL) {
		run_opaque(x, r.b);
		return;
	}
	for (int32_t i = 0; i < r.n; i++) {
		serial = serial && r.b[i].l->serial;
		checks = checks || r.b[i].l->n_checks > 0;
		if (r.b[i].code->n_phases > n_phases)
			n_phases = r.b[i].code->n_phases;
	}
	for (int32_t w = 0; checks && w < x->n_workers; w++)
		x->cell[w].err = 0;
	for (; r.phase < n_phases; r.phase++) {
		x->first[0] = 0;
		for (int32_t i = 0; i < r.n; i++)
			x->first[i + 1] = x->first[i] +
				plan_chunks_of(x, &r.b[i], r.phase);
		if (!serial && x->first[r.n] > 0)
			run_parallel(x->pool, x->first[r.n], run_chunk, &r);
		for (int64_t c = 0; serial && c < x->first[r.n]; c++)
			run_chunk(&r, c, 0);
		for (int32_t i = 0; i < r.n; i++)
			plan_note_copy(x, &r.b[i], r.phase);
	}
	if (checks)
		check_errors(x, step);
}

/* ---- copies of outputs that are other tensors ---- */

struct copy_job {
	const char *from;
	char *to;
	size_t bytes;
};
enum { COPY_BYTES = 1 << 20 };

static void copy_chunk(void *arg, int64_t chunk, int32_t worker)
{
	const struct copy_job *j = arg;
	size_t at = (size_t)chunk * COPY_BYTES;

	(void)worker;
	memcpy(j->to + at, j->from + at,
		j->bytes - at < COPY_BYTES ? j->bytes - at : COPY_BYTES);
}

static void run_copies(plan_exec *x)
{
	for (int32_t i = 0; i < x->p->copy.n; i++) {
		const plan_copy *c = &x->p->copy.at[i];
		struct copy_job j = {plan_data_of(x, c->tensor),
			x->out[c->number],
			x->p->location[c->tensor].bytes};
		int64_t n = (int64_t)((j.bytes + COPY_BYTES - 1) / COPY_BYTES);

		if (j.from == j.to)
			continue;
		if (x->pool == NULL)
			x->d->copy(x->d, j.to, j.from, j.bytes);
		else if (n > 1)
			run_parallel(x->pool, n, copy_chunk, &j);
		else if (n == 1)
			copy_chunk(&j, 0, 0);
	}
}

/* Overwrites tensors that are not read after step s. */
static void poison(plan_exec *x, int32_t s)
{
	for (int32_t t = 0; t < x->p->s->tensor.n; t++) {
		const plan_location *at = &x->p->location[t];

		if (at->where == PLAN_SLAB && at->last == s &&
			(at->version_of < 0 || at->version_of == t))
			x->d->fill(x->d, x->slab + at->offset, POISON,
				at->bytes);
	}
}

int64_t plan_exec_n_copied(const plan_exec *x)
{
	return x->n_copied;
}

/*
 * Runs and times the launches of a step one after another. They are independent,
 * so the results are the same.
 */
static void time_step(plan_exec *x, const plan_step *step)
{
	plan_times *t = x->times;
	clockid_t clock = x->pool != NULL && x->n_workers == 1
		? CLOCK_THREAD_CPUTIME_ID
		: CLOCK_MONOTONIC;

	for (int32_t i = step->first; i < step->first + step->n; i++) {
		const plan_step one = {i, 1};
		double start;

		x->d->sync(x->d);
		t->begin[i] = now();
		start = seconds_of(clock);
		run_step(x, &one);
		x->d->sync(x->d);
		t->total[i] += seconds_of(clock) - start;
		t->end[i] = now();
	}
}

void plan_exec_code(plan_exec *x, const plan_code *code)
{
	x->code = *code;
}

static const void *data_in(void *arg, int32_t tensor)
{
	return plan_host_data(arg, tensor);
}

static void run_steps(void *arg)
{
	plan_exec *x = arg;
	const plan_data d = {data_in, x, x->in};

	for (int32_t s = 0; s < x->p->step.n; s++) {
		if (x->pool == NULL)
			plan_device_before(x, s);
		plan_undo_step(x->undo, s, &d);
		if (x->times != NULL)
			time_step(x, &x->p->step.at[s]);
		else
			run_step(x, &x->p->step.at[s]);
		/* copies to outputs read tensors after the last step */
		if (x->p->poison && s + 1 < x->p->step.n)
			poison(x, s);
	}
	if (x->pool == NULL && !x->inner)
		plan_device_before(x, x->p->step.n);
	run_copies(x);
	if (x->pool == NULL && !x->inner)
		x->d->finish(x->d);
	if (x->times != NULL)
		x->times->n_runs++;
}

static void run_plan(plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out)
{
	tn_status s;

	x->in = in;
	x->version = version;
	for (int32_t i = 0; i < x->p->s->output.n; i++) {
		int32_t store = plan_store(x->p->s, i);

		/* a param is written in the caller's memory */
		x->out[i] = store < 0 ? out[i]
				      : (void *)(uintptr_t)in[store];
	}
	for (int32_t i = 0; i < x->patch.n; i++) {
		const struct patch *at = &x->patch.at[i];

		/* a kernel takes inputs as const, and only reads them */
		*at->slot = at->is_output ? x->out[at->number]
					  : (void *)(uintptr_t)in[at->number];
	}
	plan_undo_begin(x->undo);
	if (x->pool == NULL && !x->inner)
		plan_device_begin(x);
	if (x->p->poison)
		x->d->fill(x->d, x->slab, POISON, x->p->tensor_bytes);
	if (x->inner || (!plan_undo_is_needed(x->undo) && x->pool != NULL)) {
		run_steps(x);
		return;
	}
	s = env_run(arena_env(x->a), run_steps, x);
	if (x->pool == NULL)
		plan_device_end(x, s < 0);
	plan_undo_end(x->undo, s < 0, in);
	if (s < 0)
		env_rethrow(arena_env(x->a));
}

int32_t plan_exec_failed(const plan_exec *x, const int32_t **call)
{
	return plan_undo_calls(x->undo, call);
}

struct run_args {
	plan_exec *x;
	const plan_runs *r;
};

static void run_all(plan_exec *x, const plan_runs *r)
{
	for (int64_t i = 0; i < r->n; i++) {
		if (r->before != NULL && !r->before(r->arg, i))
			break;
		run_plan(x, r->in, r->version, r->out);
	}
}

static void run_held(void *arg)
{
	const struct run_args *k = arg;

	run_all(k->x, k->r);
}

void plan_exec_runs(plan_exec *x, const plan_runs *r)
{
	struct run_args k = {x, r};
	env *e = arena_env(x->a);
	tn_status status;
	int64_t age;

	if (x->code.hold == NULL) {
		run_all(x, r);
		return;
	}
	age = x->code.hold(x->code.arg);
	if (age != x->age)
		find_functions(x);
	x->age = age;
	status = env_run(e, run_held, &k);
	x->code.release(x->code.arg);
	if (status < 0)
		env_rethrow(e);
}

void plan_exec_run(plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out)
{
	const plan_runs r = {1, NULL, NULL, in, version, out};

	plan_exec_runs(x, &r);
}
