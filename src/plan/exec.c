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
#include "plan/private.h"

#include <time.h>

typedef void kernel_fn(void *const *p, void *scratch, void *local,
	int64_t chunk, int64_t *err);

struct bound {
	const plan_launch *l;
	const c_kernel *code; /* NULL: opaque */
	kernel_fn *fn[KERN_MAX_PHASES];
	void **p; /* params */
	char *scratch;
	ir_type *type; /* opaque: of out[], then in[] */
	/* by phase: the input that it copies; -1: none, or the copy is not kept */
	int32_t copies[KERN_MAX_PHASES];
	/* by phase: the array that the copy in scratch was made of, or NULL */
	const void *copied[KERN_MAX_PHASES];
	int64_t version[KERN_MAX_PHASES];
};

/* An entry of a parameter table that is an array of the caller. */
struct patch {
	void **slot;
	int32_t number;
	bool is_output;
};

/* A parallel region: one phase of all launches of a step. */
struct region {
	struct plan_exec *x;
	struct bound *b;
	int32_t n, phase;
	const int64_t *first; /* [n + 1]: first chunk of each launch */
};

enum { POISON = 0xa5 };

struct cell { /* of one thread, on a separate cache line */
	int64_t err;
	char pad[56];
};

struct plan_exec {
	arena *a;
	const plan *p;
	run_pool *pool;
	int32_t n_workers;
	char *slab;
	char *local; /* local_bytes for each thread */
	struct cell *cell;
	struct bound *bound;
	VEC(struct patch) patch;
	int64_t *first; /* room for the intervals of the widest step */
	const void *const *in; /* of the current run */
	const int64_t *version; /* of the current run */
	int64_t n_copied;
	void **out; /* by output, params included */
	plan_times *times; /* NULL: runs are not timed */
	plan_find *find;
	void *arg;
	plan_code code;
	int64_t age; /* the last result of code.hold */
	plan_undo *undo;
};

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

	b->p = arena_array(x->a, void *, b->l->n_params + 1);
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

plan_exec *plan_exec_new(arena *a, const plan *p, run_pool *pool,
	plan_find *find, void *arg)
{
	plan_exec *x = arena_make(a, plan_exec);
	size_t n_workers = (size_t)run_pool_threads(pool);
	size_t at_local = p->tensor_bytes + p->scratch_bytes + p->kept_bytes;
	size_t n_bytes;
	int32_t widest = 1;

	x->a = a;
	x->p = p;
	x->pool = pool;
	x->n_workers = (int32_t)n_workers;
	if (__builtin_mul_overflow(n_workers, p->local_bytes, &n_bytes) ||
		__builtin_add_overflow(n_bytes, at_local, &n_bytes))
		env_fail(arena_env(a), TN_ENOMEM, "run.memory", (loc){0},
			"local buffers of %zu bytes for %zu threads do not fit",
			p->local_bytes, n_workers);
	x->slab = run_slab(a, n_bytes > 0 ? n_bytes : PLAN_ALIGN);
	x->local = x->slab + at_local;
	x->cell = run_slab(a, n_workers * sizeof *x->cell);
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
	x->undo = plan_undo_new(a, p);
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

void *plan_exec_slab(const plan_exec *x)
{
	return x->slab;
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
	b->fn[r->phase](b->p, b->scratch,
		x->local + (size_t)worker * x->p->local_bytes,
		chunk - r->first[lo], &x->cell[worker].err);
}

static void run_opaque(plan_exec *x, struct bound *b)
{
	const sys_eqn *e = b->l->eqn;
	int32_t n_out = e->n_out;

	e->opaque->run(arena_env(x->a), b->type + n_out,
		(const void *const *)(b->p + n_out), b->type, b->p,
		e->opaque_attr);
}

/* "ids[2,0]": element i of tensor t by its index. */
static void add_position(str *s, const sys_tensor *t, int64_t i)
{
	int64_t at[TN_MAX_RANK];

	for (int32_t k = t->rank - 1; k >= 0; k--) {
		at[k] = i % t->shape[k];
		i /= t->shape[k];
	}
	str_add(s, t->name);
	if (t->rank > 0)
		str_shape(s, at, t->rank);
}

/* The data of a tensor; NULL if it is never in memory. */
static const void *data_of(const plan_exec *x, int32_t tensor)
{
	const plan_location *at = &x->p->location[tensor];

	switch (at->where) {
	case PLAN_NOWHERE:
		return NULL;
	case PLAN_INPUT:
		return x->in[at->number];
	case PLAN_OUTPUT:
		return x->out[at->number];
	case PLAN_SLAB:
		return x->slab + at->offset;
	}
	return NULL;
}

static _Noreturn void bad_index(plan_exec *x, const struct bound *b, int64_t n)
{
	const c_check *c = &b->l->check[n];
	int32_t root = x->p->root[c->tensor];
	const sys_tensor *t = &x->p->s->tensor.at[root];
	const void *data = data_of(x, root);
	arena *tmp = arena_child(x->a);
	str s = str_new(tmp);
	char text[256];

	plan_undo_blame(x->undo, c);
	for (int64_t i = 0; data != NULL && i < t->numel; i++) {
		int64_t v = dtype_load_i64(t->dtype, data, i);

		if (v >= c->lo && v < c->hi)
			continue;
		add_position(&s, t, i);
		str_printf(&s, " is %lld", (long long)v);
		break;
	}
	if (s.n == 0)
		str_printf(&s, "an index read from %s is out of range", t->name);
	memcpy(text, s.at, s.n < sizeof text ? s.n + 1 : sizeof text);
	text[sizeof text - 1] = '\0';
	arena_free(tmp);
	env_fail(arena_env(x->a), TN_ERANGE, "index.range", (loc){0},
		"%s; %s is used as an index here, and accepted are %lld <= v "
		"< %lld",
		text, t->name, (long long)c->lo, (long long)c->hi);
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
		bad_index(x, &x->bound[step->first], err - 1);
	}
}

/* Is the copy that the phase would make there already, of equal elements? */
static bool has_copy(const plan_exec *x, const struct bound *b, int32_t phase)
{
	int32_t in = b->copies[phase];

	return in >= 0 && x->version != NULL && x->version[in] != 0 &&
	       b->version[phase] == x->version[in] &&
	       b->copied[phase] == x->in[in];
}

static int64_t chunks_of(const plan_exec *x, const struct bound *b, int32_t phase)
{
	if (phase >= b->code->n_phases || has_copy(x, b, phase))
		return 0;
	return b->code->phase[phase].n_chunks;
}

/* Notes the copy after the phase has run. */
static void note_copy(plan_exec *x, struct bound *b, int32_t phase)
{
	int32_t in = phase < b->code->n_phases ? b->copies[phase] : -1;

	if (in < 0 || has_copy(x, b, phase))
		return;
	/* without a version, the copy is not used again */
	b->version[phase] = x->version != NULL ? x->version[in] : 0;
	b->copied[phase] = x->in[in];
	x->n_copied++;
}

static void run_step(plan_exec *x, const plan_step *step)
{
	struct region r = {x, &x->bound[step->first], step->n, 0, x->first};
	bool serial = true, checks = false;
	int32_t n_phases = 0;

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
				chunks_of(x, &r.b[i], r.phase);
		if (!serial && x->first[r.n] > 0)
			run_parallel(x->pool, x->first[r.n], run_chunk, &r);
		for (int64_t c = 0; serial && c < x->first[r.n]; c++)
			run_chunk(&r, c, 0);
		for (int32_t i = 0; i < r.n; i++)
			note_copy(x, &r.b[i], r.phase);
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
		struct copy_job j = {data_of(x, c->tensor), x->out[c->number],
			x->p->location[c->tensor].bytes};
		int64_t n = (int64_t)((j.bytes + COPY_BYTES - 1) / COPY_BYTES);

		if (j.from == j.to)
			continue;
		if (n > 1)
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
			memset(x->slab + at->offset, POISON, at->bytes);
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
	clockid_t clock = x->n_workers == 1 ? CLOCK_THREAD_CPUTIME_ID
					    : CLOCK_MONOTONIC;

	for (int32_t i = step->first; i < step->first + step->n; i++) {
		const plan_step one = {i, 1};
		double start;

		t->begin[i] = now();
		start = seconds_of(clock);
		run_step(x, &one);
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
	return data_of(arg, tensor);
}

static void run_steps(void *arg)
{
	plan_exec *x = arg;
	const plan_data d = {data_in, x, x->in};

	for (int32_t s = 0; s < x->p->step.n; s++) {
		plan_undo_step(x->undo, s, &d);
		if (x->times != NULL)
			time_step(x, &x->p->step.at[s]);
		else
			run_step(x, &x->p->step.at[s]);
		/* copies to outputs read tensors after the last step */
		if (x->p->poison && s + 1 < x->p->step.n)
			poison(x, s);
	}
	run_copies(x);
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
	if (x->p->poison)
		memset(x->slab, POISON, x->p->tensor_bytes);
	plan_undo_begin(x->undo);
	if (!plan_undo_is_needed(x->undo)) {
		run_steps(x);
		return;
	}
	s = env_run(arena_env(x->a), run_steps, x);
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
	const void *const *in;
	const int64_t *version;
	void *const *out;
};

static void run_held(void *arg)
{
	const struct run_args *r = arg;

	run_plan(r->x, r->in, r->version, r->out);
}

void plan_exec_run(plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out)
{
	struct run_args r = {x, in, version, out};
	env *e = arena_env(x->a);
	tn_status status;
	int64_t age;

	if (x->code.hold == NULL) {
		run_plan(x, in, version, out);
		return;
	}
	age = x->code.hold(x->code.arg);
	if (age != x->age)
		find_functions(x);
	x->age = age;
	status = env_run(e, run_held, &r);
	x->code.release(x->code.arg);
	if (status < 0)
		env_rethrow(e);
}
