/*
 * loop.c: runs a loop: the compiled body, once for each round.
 *
 *     round     reads of h      writes of h      writes of the rows of y
 *     0         the operand     buffer 0         y[0]
 *     1         buffer 0        buffer 1         y[1]
 *     n - 1     buffer ..       the result       y[n - 1]
 *
 * With a test, it is not known which round is the last one: the results are copied
 * at the end.
 *
 * Rows are read and written where they are, and a round allocates nothing. What
 * is the same in every round is a steady input of the body: its copies in another
 * order are made once, in the first round. On a device with memory of its own all
 * of that lies there, and the host launches the rounds without waiting.
 *
 * A test that a device can read (repeat) is not waited for either: the host launches
 *
 *     y = h;  again as long as y says so { room = round of y;  y = room }
 *
 * and a branch, which is a loop of at most one round, writes y itself. Else the host
 * reads the test before each round.
 */
#include "plan/exec.h"

#include "program/program.h"

/*
 * A copy at an aligned address. Arrays of the caller may be anywhere, such as
 * weights in a file: reads across cache lines cost as much again, in each round.
 */
struct moved {
	char *at;
	const void *from; /* what it is a copy of, and its version */
	int64_t version;
};

/* On a device, so many launches are noted before they begin. */
enum { MOST_NOTED = 4096 };

struct plan_rounds {
	plan_exec *x, *body;
	struct bound *b; /* of the loop's launch */
	const ir_loop *l;
	const void **in;
	int64_t *version; /* by input of the body */
	void **out;
	size_t *in_bytes, *out_bytes; /* of a row, or of all that is carried */
	char **room[2]; /* by carried value */
	struct moved *moved; /* by input of the body */
	int64_t n_runs; /* of this loop, so far */
	int64_t together; /* rounds, on a device */
	int64_t n_done; /* with a test: rounds so far */
	int64_t *state; /* of what the device repeats; NULL: the host runs rounds */
};

const ir_loop *plan_loop_of(const plan *p, int32_t i)
{
	const plan_launch *l = &p->launch.at[i];

	return l->kernel < 0 ? l->eqn->opaque->loop : NULL;
}

static size_t row_bytes(const ir_type *t)
{
	return ir_type_bytes(t) / (size_t)t->shape[0];
}

/* What is carried, before and after a round. */
static void set_carried(struct plan_rounds *r, int64_t i)
{
	int32_t n_out = r->l->body->output.n;

	for (int32_t k = 0; k < r->l->n_carried; k++) {
		r->in[k] = i == 0 ? r->b->p[n_out + k] : r->room[(i - 1) & 1][k];
		r->out[k] = i == r->l->n - 1 && r->l->test == 0
			? r->b->p[k]
			: (void *)r->room[i & 1][k];
	}
}

/* Is there round i, whose operands are set? On a device with memory of its own the
 * host waits for the answer, and for checks of the round before. */
static bool goes_on(const struct plan_rounds *r)
{
	run_device *d = r->x->d;
	int32_t k = r->l->test - 1;
	int64_t copy = 0;
	const void *at = r->in[k < 0 ? 0 : k];

	if (k < 0)
		return true;
	if (!d->is_host) {
		plan_device_look(r->body);
		d->get(d, &copy, at, r->out_bytes[k]);
		at = &copy;
	}
	return dtype_load_i64(r->b->type[k].dtype, at, 0) != 0;
}

static bool before_round(void *arg, int64_t i)
{
	struct plan_rounds *r = arg;
	int32_t n_out = r->l->body->output.n, n = r->l->n_carried;

	if (!r->x->d->is_host && r->l->test == 0 && i > 0 &&
		i % r->together == 0)
		r->x->d->start(r->x->d);
	set_carried(r, i);
	if (!goes_on(r))
		return false;
	r->n_done = i + 1;
	for (int32_t k = n; k < n + r->l->n_rows; k++)
		r->in[k] = (char *)r->b->p[n_out + k] +
			(size_t)i * r->in_bytes[k];
	for (int32_t k = n; k < n_out; k++)
		r->out[k] = (char *)r->b->p[k] + (size_t)i * r->out_bytes[k];
	return true;
}

/* Results of a loop with a test whose rounds the host has run. */
static void copy_results(const struct plan_rounds *r)
{
	int32_t n_out = r->l->body->output.n;

	for (int32_t k = 0; k < r->l->n_carried; k++)
		if (r->out_bytes[k] > 0)
			r->x->d->copy(r->x->d, r->b->p[k],
				r->n_done == 0 ? r->b->p[n_out + k]
					       : r->room[(r->n_done - 1) & 1][k],
				r->out_bytes[k]);
}

static const void *aligned(struct plan_rounds *r, int32_t k)
{
	int32_t n_out = r->l->body->output.n;
	const void *from = r->b->p[n_out + k];
	size_t n = ir_type_bytes(&r->b->type[n_out + k]);
	struct moved *m = &r->moved[k];

	if ((uintptr_t)from % PLAN_ALIGN == 0 || !r->x->d->is_host)
		return from;
	if (m->from == from && m->version == r->version[k])
		return m->at;
	if (m->at == NULL)
		m->at = r->x->d->alloc(r->x->d, r->x->a, n);
	memcpy(m->at, from, n);
	m->from = from;
	m->version = r->version[k];
	return m->at;
}

/* What is the same in every round has the version of an input, or of this run. */
static void set_same(struct plan_rounds *r)
{
	const plan_exec *x = r->x;
	int32_t n_out = r->l->body->output.n;

	r->n_runs++;
	for (int32_t k = r->l->n_carried + r->l->n_rows;
		k < r->l->body->input.n; k++) {
		const plan_location *at =
			&x->p->location[r->b->l->tensor[n_out + k]];
		bool is_input = at->where == PLAN_INPUT && x->version != NULL;

		r->version[k] = is_input ? x->version[at->number] : 0;
		if (r->version[k] == 0)
			r->version[k] = -r->n_runs;
		r->in[k] = aligned(r, k);
	}
}

/* ---- on a device that reads the test itself ---- */

/* What is noted for a run, up to MOST_NOTED + 1; as deep as loops are. */
static int64_t n_noted(const plan_exec *x)
{
	int64_t n = 0, inner;

	for (int32_t i = 0; i < x->p->launch.n && n <= MOST_NOTED; i++) {
		const ir_loop *l = plan_loop_of(x->p, i);

		if (l == NULL)
			n += x->bound[i].code->n_phases;
		else if (mul_ok(n_noted(x->bound[i].body),
				 l->test > 0 ? 1 : l->n, &inner))
			n += l->n_carried + (inner > MOST_NOTED ? MOST_NOTED + 1
								: inner);
		else
			n = MOST_NOTED + 1;
	}
	return n > MOST_NOTED ? MOST_NOTED + 1 : n;
}

/* So many loops with a test are within each other, if the device runs them. */
static int32_t depth_of(const plan_exec *x)
{
	int32_t most = 0;

	for (int32_t i = 0; i < x->p->launch.n; i++) {
		const ir_loop *l = plan_loop_of(x->p, i);
		int32_t n = l == NULL ? 0
			: depth_of(x->bound[i].body) + (l->test > 0);

		most = n > most ? n : most;
	}
	return most;
}

const char *plan_exec_host_row(const plan_exec *x)
{
	const char *row = NULL;

	for (int32_t i = 0; i < x->p->launch.n && row == NULL; i++) {
		const struct bound *b = &x->bound[i];

		if (b->body != NULL)
			row = plan_exec_host_row(b->body);
		else if (b->code == NULL)
			row = b->l->eqn->opaque->name;
	}
	return row;
}

/* Why the host reads a test in it; NULL: it does not. */
static const char *inner_asks(const plan_exec *x)
{
	const char *asks = NULL;

	for (int32_t i = 0; i < x->p->launch.n && asks == NULL; i++) {
		asks = x->bound[i].asks;
		if (asks == NULL && x->bound[i].body != NULL)
			asks = inner_asks(x->bound[i].body);
	}
	return asks;
}

/* That it carries. */
static size_t bytes_of(const struct plan_rounds *r)
{
	size_t n = 0;

	for (int32_t k = 0; k < r->l->n_carried; k++)
		n += r->out_bytes[k];
	return n;
}

/* Why the host has to read the test; NULL: the device does. */
static const char *why_host(const struct plan_rounds *r)
{
	const plan_exec *body = r->body;
	run_device *d = r->x->d;
	const char *row = plan_exec_host_row(body), *asks = inner_asks(body);

	if (row != NULL)
		return arena_printf(
			r->x->a, "the host runs %s in each round", row);
	if (asks != NULL)
		return asks;
	if (body->times != NULL)
		return "rounds are timed one by one";
	if (r->l->n > 1 && r->l->n_rows > 0)
		return "each round reads a row of its own";
	if (r->l->n > 1 && bytes_of(r) > RUN_REPEAT_COPIES)
		return "it carries more than 8 MB, which takes longer to copy";
	if (depth_of(body) >= RUN_REPEAT_DEPTH)
		return "too many loops with a test are within each other";
	if (n_noted(body) > MOST_NOTED)
		return "a round consists of too many kernels";
	return d->no_repeat(d);
}

static void copy_carried(
	const struct plan_rounds *r, void *const *to, void *const *from)
{
	for (int32_t k = 0; k < r->l->n_carried; k++)
		r->x->d->copy(r->x->d, to[k], from[k], r->out_bytes[k]);
}

/* A round is noted once, and happens often or not at all: it must not rely on copies
 * of steady inputs that another has made, so their versions are unknown. */
static void forget_versions(struct plan_rounds *r)
{
	for (int32_t k = 0; k < r->l->body->input.n; k++)
		r->version[k] = 0;
}

static void run_repeated(struct plan_rounds *r)
{
	run_device *d = r->x->d;
	void *const *result = r->b->p, *const *operand = result + r->l->body->output.n;
	bool is_branch = r->l->n == 1;
	const run_repeat repeat = {result[r->l->test - 1],
		r->out_bytes[r->l->test - 1], r->state, r->l->n};
	const plan_runs one = {1, NULL, NULL, r->in, r->version, r->out};

	for (int32_t k = 0; k < r->l->n_carried + r->l->n_rows; k++)
		r->in[k] = is_branch || k >= r->l->n_carried ? operand[k]
							     : result[k];
	for (int32_t k = 0; k < r->l->n_carried; k++)
		r->out[k] = is_branch ? result[k] : (void *)r->room[0][k];
	copy_carried(r, result, operand);
	d->fill(d, r->state, 0, RUN_REPEAT_BYTES);
	plan_device_watch(r->x, r->state);
	forget_versions(r);
	d->repeat(d, &repeat);
	plan_exec_runs(r->body, &one);
	if (!is_branch) {
		copy_carried(r, result, (void *const *)r->room[0]);
		plan_device_watch(r->body, r->state);
	}
	d->repeated(d);
}

/* ---- the whole ---- */

static void run_rounds(struct plan_rounds *r)
{
	const plan_runs runs = {r->l->n, before_round, r, r->in, r->version,
		r->out};

	set_same(r);
	if (r->state != NULL) {
		run_repeated(r);
		return;
	}
	r->n_done = 0;
	plan_exec_runs(r->body, &runs);
	if (r->l->test > 0)
		copy_results(r);
}

/* Who reads the test on a device with memory of its own. */
static void choose_reader(struct plan_rounds *r)
{
	plan_exec *x = r->x;

	r->b->asks = why_host(r);
	if (r->b->asks == NULL)
		r->state = x->d->alloc(x->d, x->a, RUN_REPEAT_BYTES);
}

void plan_exec_body(plan_exec *x, int32_t i, plan_exec *body)
{
	struct plan_rounds *r = arena_make(x->a, struct plan_rounds);
	const ir_loop *l = plan_loop_of(x->p, i);
	int32_t n_in = l->body->input.n, n_out = l->body->output.n;

	r->x = x;
	r->body = body;
	r->together = 1 + MOST_NOTED / (body->p->launch.n + 1);
	body->inner = !x->d->is_host;
	r->b = &x->bound[i];
	r->l = l;
	r->in = arena_array(x->a, const void *, n_in + 1);
	r->version = arena_array(x->a, int64_t, n_in + 1);
	r->in_bytes = arena_array(x->a, size_t, n_in + 1);
	r->out = arena_array(x->a, void *, n_out + 1);
	r->out_bytes = arena_array(x->a, size_t, n_out + 1);
	for (int32_t k = 0; k < n_in; k++)
		r->in_bytes[k] = k < l->n_carried || k >= l->n_carried + l->n_rows
			? 0 : row_bytes(&r->b->type[n_out + k]);
	for (int32_t k = 0; k < n_out; k++)
		r->out_bytes[k] = k < l->n_carried
			? ir_type_bytes(&r->b->type[k])
			: row_bytes(&r->b->type[k]);
	r->moved = arena_array(x->a, struct moved, n_in + 1);
	for (int32_t k = 0; k < 2; k++) {
		r->room[k] = arena_array(x->a, char *, l->n_carried + 1);
		for (int32_t j = 0; j < l->n_carried; j++)
			r->room[k][j] = x->d->alloc(x->d, x->a,
				r->out_bytes[j] > 0 ? r->out_bytes[j] : 1);
	}
	r->b->rounds = r;
	r->b->body = body;
	r->b->run = run_rounds;
	if (l->test > 0 && !x->d->is_host)
		choose_reader(r);
}
