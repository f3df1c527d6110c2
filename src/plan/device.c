/*
 * device.c: what differs in a run on a device with memory of its own.
 *
 * Launches of a step run one after another, in the order of the calls; the host
 * does not wait for them. A launch with checks has a cell in the device's memory
 * for the least number of a check that failed. The cells are read
 *
 *   before a step that writes a param of the caller,
 *   before an opaque row, which the host runs, and at the end,
 *
 * if a launch with checks has run since. The rounds of a loop are launched like the
 * rest, without a look between them; those of a loop with a test end after a check
 * that failed. So after it, nothing has been written that is not private to the run;
 * the indices themselves are clamped in kernels. A run without checks does not wait
 * at all.
 */
#include "plan/exec.h"

#include <inttypes.h>

struct checks {
	int32_t *cell; /* by launch: the number of its cell; -1: no checks */
	bool *writes;  /* by step: it writes a param of the caller */
	int32_t n_cells;
	void *at; /* the cells, on the device; before them one for all others */
	int64_t *seen; /* room for them on the host */
	bool any; /* launches with checks have run since the last look, here or in
		   * the body of a loop */
	int64_t n_host; /* opaque rows that the host has run */
	const char *row; /* the last one */
	int64_t n_asked; /* loops whose tests the host has read */
	const char *asks; /* why the last one */
	VEC(run_map) map; /* of the launch */
};

/* ---- opening ----------------------------------------------------------- */

/* *least: the warps that one chunk needs. */
static int64_t most_warps(const c_kernel *k, int64_t *least)
{
	int64_t n = 1, warps;

	*least = 1;
	for (int32_t i = 0; i < k->n_phases; i++) {
		const c_phase *p = &k->phase[i];

		if (p->warps > *least)
			*least = p->warps;
		if (!mul_ok(p->n_chunks, p->warps, &warps))
			warps = INT64_MAX;
		n = warps > n ? warps : n;
	}
	return n;
}

/* So many warps run a launch at the same time: each has local memory. */
static int32_t workers_of(const plan_exec *x, const c_kernel *k)
{
	int64_t least, n = most_warps(k, &least), fit = INT32_MAX;

	if (k->local_bytes > 0)
		fit = (int64_t)(x->d->local_bytes / k->local_bytes);
	n = n < x->d->n_workers ? n : x->d->n_workers;
	n = n < fit ? n : fit;
	return n < least ? (int32_t)least : (int32_t)n;
}

static void find_writes(plan_exec *x, struct checks *c)
{
	const plan *p = x->p;

	for (int32_t t = 0; t < p->s->tensor.n; t++)
		if (plan_param_of(p, t) >= 0 && p->location[t].first < p->step.n)
			c->writes[p->location[t].first] = true;
}

void plan_device_open(plan_exec *x)
{
	const plan *p = x->p;
	struct checks *c = arena_make(x->a, struct checks);
	size_t room = 0;

	c->cell = arena_array(x->a, int32_t, p->launch.n + 1);
	c->writes = arena_array(x->a, bool, p->step.n + 1);
	for (int32_t i = 0; i < p->launch.n; i++) {
		const c_kernel *k = x->bound[i].code;
		size_t n;

		c->cell[i] = p->launch.at[i].n_checks > 0 ? c->n_cells++ : -1;
		if (k == NULL)
			continue;
		x->bound[i].n_workers = workers_of(x, k);
		n = (size_t)x->bound[i].n_workers * k->local_bytes;
		room = n > room ? n : room;
	}
	find_writes(x, c);
	c->seen = arena_array(x->a, int64_t, c->n_cells + 1);
	c->at = x->d->alloc(x->d, x->a,
		(size_t)(c->n_cells + 1) * sizeof *c->seen);
	x->local = x->d->alloc(x->d, x->a, room);
	x->checks = c;
}

/* ---- a run ------------------------------------------------------------- */

/* No check has failed; as deep as loops are. */
static void clear_cells(plan_exec *x)
{
	struct checks *c = x->checks;

	c->any = false;
	x->d->fill(x->d, c->at, RUN_NO_ERROR & 0xff,
		(size_t)(c->n_cells + 1) * sizeof *c->seen);
	for (int32_t i = 0; i < x->p->launch.n; i++)
		if (x->bound[i].body != NULL)
			clear_cells(x->bound[i].body);
}

void plan_device_begin(plan_exec *x)
{
	x->d->begin(x->d, x->a, &x->lists);
	clear_cells(x);
}

/* Have these indices not been overwritten since, by a tensor in their place? */
static bool is_kept(const plan_exec *x, const struct bound *b, int64_t n,
	int32_t step)
{
	const plan_location *at =
		&x->p->location[x->p->root[b->l->check[n].tensor]];

	return at->where == PLAN_INPUT || at->last >= step - 1;
}

static void look(plan_exec *x, int32_t s)
{
	struct checks *c = x->checks;

	x->d->get(x->d, c->seen, c->at,
		(size_t)(c->n_cells + 1) * sizeof *c->seen);
	for (int32_t i = 0; i < x->p->launch.n; i++) {
		int64_t found = c->cell[i] < 0 ? RUN_NO_ERROR
					       : c->seen[1 + c->cell[i]];
		const struct bound *b = &x->bound[i];

		if (found == RUN_NO_ERROR)
			continue;
		if (found < 1 || found > b->l->n_checks)
			env_bug(arena_env(x->a), "plan.device",
				"%s has left the result %" PRId64
				" of its checks", b->code->phase[0].fn, found);
		plan_bad_index(x, b, found - 1, is_kept(x, b, found - 1, s));
	}
}

/* .. and into the bodies of its loops */
static void look_all(plan_exec *x, int32_t s)
{
	x->checks->any = false;
	if (x->checks->n_cells > 0)
		look(x, s);
	for (int32_t i = 0; i < x->p->launch.n; i++) {
		plan_exec *body = x->bound[i].body;

		if (body != NULL && body->checks->any)
			look_all(body, body->p->step.n);
	}
}

/* Does the host run it, or a part of it? */
static bool is_of_host(const struct bound *b)
{
	const plan_exec *body = b->body;
	bool any = (b->code == NULL && body == NULL) || b->asks != NULL;

	for (int32_t i = 0; body != NULL && i < body->p->launch.n && !any; i++)
		any = is_of_host(&body->bound[i]);
	return any;
}

void plan_device_before(plan_exec *x, int32_t s)
{
	const struct checks *c = x->checks;

	if (!c->any)
		return;
	if (s < x->p->step.n && !c->writes[s] &&
		!is_of_host(&x->bound[x->p->step.at[s].first]))
		return;
	look_all(x, s);
}

void plan_device_look(plan_exec *x)
{
	if (x->checks->any)
		look_all(x, x->p->step.n);
}

static void run_rounds(plan_exec *x, struct bound *b)
{
	const plan_exec *body = b->body;

	b->run(b->rounds);
	x->checks->any = x->checks->any || body->checks->any;
	if (b->asks == NULL)
		return;
	x->checks->n_asked++;
	x->checks->asks = b->asks;
}

/* What a phase is told of its params, where they are now. */
static void describe(plan_exec *x, const struct bound *b, const c_phase *p)
{
	struct checks *c = x->checks;

	c->map.n = 0;
	for (int32_t i = 0; i < p->n_maps; i++)
		*vec_push(x->a, &c->map) = (run_map){.at = b->p[p->map[i].param],
			.columns = p->map[i].columns,
			.rows = p->map[i].rows,
			.box = p->map[i].box};
}

static void launch_phase(plan_exec *x, struct bound *b, int32_t k)
{
	struct checks *c = x->checks;
	int32_t warps = b->code->phase[k].warps;
	run_launch call = {.fn = b->fn[k].device,
		.name = b->code->phase[k].fn,
		.p = b->p,
		.n_params = b->l->n_params,
		.scratch = b->scratch,
		.locals = x->local,
		.n_chunks = plan_chunks_of(x, b, k),
		.n_workers = b->n_workers,
		.warps = warps,
		.shared_bytes = warps > 1 ? b->code->shared_bytes : 0,
		.err = (int64_t *)c->at + 1 + c->cell[b - x->bound]};

	describe(x, b, &b->code->phase[k]);
	call.map = c->map.at;
	call.n_maps = c->map.n;
	if (call.n_chunks > 0)
		x->d->launch(x->d, &call);
	plan_note_copy(x, b, k);
}

void plan_device_watch(plan_exec *x, int64_t *state)
{
	const struct checks *c = x->checks;

	if (c->n_cells > 0)
		x->d->watch(x->d, (int64_t *)c->at + 1, c->n_cells, state);
	for (int32_t i = 0; i < x->p->launch.n; i++)
		if (x->bound[i].body != NULL)
			plan_device_watch(x->bound[i].body, state);
}

void plan_device_step(plan_exec *x, const plan_step *step)
{
	struct checks *c = x->checks;

	for (int32_t i = step->first; i < step->first + step->n; i++) {
		struct bound *b = &x->bound[i];

		if (b->rounds != NULL) {
			run_rounds(x, b);
			continue;
		}
		if (b->code == NULL) {
			plan_device_opaque(x, b);
			continue;
		}
		c->any = c->any || c->cell[i] >= 0;
		for (int32_t k = 0; k < b->code->n_phases; k++)
			launch_phase(x, b, k);
	}
}

/* The host runs the row on copies. */
void plan_device_opaque(plan_exec *x, struct bound *b)
{
	const sys_eqn *e = b->l->eqn;
	int32_t n = b->l->n_params, n_out = e->n_out;
	arena *a = arena_child(x->a);
	void **p = arena_array(a, void *, n + 1);
	size_t *bytes = arena_array(a, size_t, n + 1);

	for (int32_t i = 0; i < n; i++) {
		bytes[i] = ir_type_bytes(&b->type[i]);
		p[i] = arena_alloc(a, bytes[i] > 0 ? bytes[i] : 1, 1);
		if (i >= n_out)
			x->d->get(x->d, p[i], b->p[i], bytes[i]);
	}
	e->opaque->run(arena_env(x->a), e->opaque, b->type + n_out,
		(const void *const *)(p + n_out), b->type, p, e->opaque_attr);
	for (int32_t i = 0; i < n_out; i++)
		x->d->put(x->d, b->p[i], p[i], bytes[i]);
	arena_free(a);
	x->checks->n_host++;
	x->checks->row = e->opaque->name;
}

/* The copies of steady inputs were noted, and may not have been made. */
static void forget_copies(plan_exec *x)
{
	for (int32_t i = 0; i < x->p->launch.n; i++) {
		struct bound *b = &x->bound[i];

		memset(b->version, 0, sizeof b->version);
		if (b->body != NULL)
			forget_copies(b->body);
	}
}

static void clear_rooms(plan_exec *x)
{
	if (x->room != NULL)
		arena_clear(x->room);
	for (int32_t i = 0; i < x->p->launch.n; i++)
		if (x->bound[i].body != NULL)
			clear_rooms(x->bound[i].body);
}

void plan_device_end(plan_exec *x, bool failed)
{
	x->d->cancel(x->d);
	clear_rooms(x);
	if (failed)
		forget_copies(x);
}

/* Of x, and of bodies in it. */
struct by_host {
	int64_t n_rows, n_asked;
	const char *row, *asks;
};

static void count_by_host(const plan_exec *x, struct by_host *n)
{
	const struct checks *c = x->checks;

	if (c == NULL)
		return;
	n->n_rows += c->n_host;
	n->n_asked += c->n_asked;
	n->row = n->row != NULL ? n->row : c->row;
	n->asks = n->asks != NULL ? n->asks : c->asks;
	for (int32_t i = 0; i < x->p->launch.n; i++)
		if (x->bound[i].body != NULL)
			count_by_host(x->bound[i].body, n);
}

int64_t plan_exec_n_host(const plan_exec *x, const char **row)
{
	struct by_host n = {0};

	count_by_host(x, &n);
	*row = n.row;
	return n.n_rows;
}

int64_t plan_exec_n_asked(const plan_exec *x, const char **why)
{
	struct by_host n = {0};

	count_by_host(x, &n);
	*why = n.asks;
	return n.n_asked;
}
