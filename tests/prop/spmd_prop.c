/*
 * spmd_prop.c: random programs on the public interface, by N processes and by
 * one: views, writes through them and through other placements, sums, products
 * of matrices, gathers, random numbers, gradients at the end. Every process
 * must read everything as one process computes it.
 *
 *     spmd_prop [--seed S] [--first I] [--count N] [--compile EVERY] [--mpi]
 *
 * Meshes have 1 to 3 axes and 1 to 8 processes, which are threads; with --mpi
 * they are the four that mpirun started, which compile all programs or none. Every
 * process draws the same program from the same seed. Placements are drawn too:
 * several axes of the mesh on one axis, uneven blocks, processes that own nothing,
 * parts of sums. What is computed is f64, so that sums in another order differ by
 * less than the tolerance; new tensors come from one of any element type, which
 * moves between processes.
 */
#include "../unit/ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ELEMS = 64, ITEMS = 28, STEPS = 12, PARAMS = 3, MAX_OUT = 8192 };

typedef struct item {
	tn_tensor *x;
	int32_t rank, n;
	int64_t shape[4];
	bool repeats, parts; /* not written to */
} item;

/* What a run has read, in order. */
typedef struct result {
	int32_t n;
	double v[MAX_OUT];
	int64_t sent, write_backs;
} result;

typedef struct run {
	uint64_t state; /* of the program: equal on all processes */
	tn_context *c;
	tn_mesh *mesh; /* NULL: one process, nothing is placed */
	int32_t n_axes;
	int64_t extent[3];
	item it[ITEMS];
	int32_t n;
	item param[PARAMS];
	int32_t n_params;
	result *out;
} run;

static int64_t below(run *w, int64_t n)
{
	uint64_t z = w->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (int64_t)((z ^ z >> 31) % (uint64_t)n);
}

/* ---- placements: drawn by all, used where there is a mesh ---- */

static void draw_placement(run *w, const item *x, bool parts, tn_placement *p)
{
	bool cut[4] = {false};

	for (int32_t m = 0; m < w->n_axes; m++) {
		int64_t kind = below(w, 10), axis = below(w, 4);
		int64_t extra = below(w, 3), e = w->extent[m];

		p[m] = (tn_placement)TN_REPLICATED;
		if (kind < 2 || x->rank == 0)
			continue;
		if (kind == 2 && parts) {
			p[m] = (tn_placement)TN_PARTS("sum");
			continue;
		}
		axis %= x->rank;
		p[m] = (tn_placement)TN_SHARDED((int32_t)axis);
		/* larger blocks than needed: some own nothing */
		if (!cut[axis] && x->shape[axis] > 0)
			p[m].block = (x->shape[axis] + e - 1) / e + extra;
		cut[axis] = true;
	}
}

static void place(run *w, item *x, bool parts)
{
	tn_placement p[3];

	draw_placement(w, x, parts, p);
	for (int32_t m = 0; m < w->n_axes; m++)
		x->parts |= p[m].kind == TN_PLACE_PARTS;
	if (w->mesh != NULL)
		tn_shard(x->x, w->mesh, p);
}

static tn_tensor *seen(run *w, const item *x, tn_tensor *t)
{
	tn_placement p[3];

	draw_placement(w, x, false, p);
	return w->mesh != NULL ? tn_reshard(t, w->mesh, p) : t;
}

/* ---- items ---- */

static item *fresh(run *w, const item *like)
{
	item *v = &w->it[w->n++];

	*v = *like;
	v->repeats = v->parts = false;
	v->x = NULL;
	return v;
}

static void count(item *v)
{
	v->n = 1;
	for (int32_t i = 0; i < v->rank; i++)
		v->n *= (int32_t)v->shape[i];
}

/* x through a tensor of any type, placed twice. */
static void convert(run *w, item *x)
{
	tn_dtype t = (tn_dtype)below(w, TN_N_DTYPES);
	tn_tensor *y = tn_cast(x->x, t);

	if (t == TN_F64) /* x itself: its views have no placement */
		return;
	y = seen(w, x, y);
	if (x->rank > 0 && below(w, 2) == 0)
		y = tn_flip(y, (const int64_t[]){0}, 1);
	y = seen(w, x, y);
	x->x = tn_cast(y, TN_F64);
}

static void new_tensor(run *w, bool is_param)
{
	static const char *const name[] = {"a", "b", "c"};
	double data[ELEMS];
	item *v = fresh(w, &(item){0});

	v->rank = 1 + (int32_t)below(w, 3);
	do {
		for (int32_t i = 0; i < v->rank; i++)
			v->shape[i] = 1 + below(w, 7);
		count(v);
	} while (v->n > ELEMS);
	for (int32_t i = 0; i < v->n; i++)
		data[i] = (double)below(w, 17) / 8 - 1;
	if (is_param) {
		v->x = tn_parameter(w->c, name[w->n_params], TN_F64, v->rank,
			v->shape, data);
		place(w, v, false);
		w->param[w->n_params++] = *v;
		return;
	}
	v->x = tn_tensor_new(w->c, TN_F64, v->rank, v->shape, data);
	if (below(w, 3) == 0)
		convert(w, v);
	if (below(w, 3) > 0)
		place(w, v, true);
}

/* ---- views ---- */

static void view(run *w, const item *x)
{
	int64_t list[3][4] = {{0}};
	int32_t kind = (int32_t)below(w, 5);
	item *v;

	if (x->rank == 0)
		return;
	v = fresh(w, x);
	v->repeats = x->repeats;
	v->parts = x->parts;
	switch (kind) {
	case 0:
		for (int32_t d = 0; d < x->rank; d++) {
			list[0][d] = below(w, x->shape[d]);
			list[2][d] = 1 + below(w, 2);
			list[1][d] = 1 + below(w, (x->shape[d] - 1 -
							list[0][d]) /
						list[2][d] +
					1);
			v->shape[d] = list[1][d];
		}
		v->x = tn_slice(x->x, NULL, 0, list[0], x->rank, list[1],
			x->rank, list[2], x->rank);
		break;
	case 1:
		for (int32_t d = 0; d < x->rank; d++) {
			list[0][d] = (d + 1) % x->rank;
			v->shape[d] = x->shape[list[0][d]];
		}
		v->x = tn_transpose(x->x, list[0], x->rank);
		break;
	case 2:
		v->rank = 2;
		v->shape[0] = 1 + below(w, x->n);
		while (x->n % v->shape[0] != 0)
			v->shape[0]--;
		v->shape[1] = x->n / v->shape[0];
		v->x = tn_reshape(x->x, v->shape, v->rank);
		break;
	case 3:
		v->x = tn_flip(x->x, list[0], 1);
		break;
	default: /* the same storage in another placement */
		v->x = seen(w, x, x->x);
		break;
	}
	count(v);
}

/* ---- values ---- */

static const item *same_shape(run *w, const item *x)
{
	const item *y = x;

	for (int32_t k = 0; k < 12; k++) {
		const item *o = &w->it[below(w, w->n)];

		if (o->rank == x->rank &&
			memcmp(o->shape, x->shape,
				sizeof *x->shape * (size_t)x->rank) == 0)
			y = o;
	}
	return y;
}

static void reduced(item *v, int32_t axis)
{
	v->rank--;
	for (int32_t d = axis; d < v->rank; d++)
		v->shape[d] = v->shape[d + 1];
	count(v);
}

/* An operation along an axis. */
static void along(run *w, const item *x)
{
	int64_t axis = below(w, 4), kind = below(w, 6);
	item *v;

	if (x->rank == 0)
		return;
	axis %= x->rank;
	v = fresh(w, x);
	switch (kind) {
	case 0:
		v->x = tn_softmax(x->x, axis);
		break;
	case 1:
		v->x = tn_cumsum(x->x, axis);
		break;
	case 2: { /* rows by number */
		int64_t ids[5], n = 1 + below(w, 5);
		tn_tensor *t;

		for (int32_t i = 0; i < n; i++)
			ids[i] = below(w, x->shape[axis]);
		if (x->n / x->shape[axis] * n > ELEMS)
			n = 1;
		t = tn_tensor_new(w->c, TN_I64, 1, &n, ids);
		v->x = tn_take(x->x, t, axis);
		v->shape[axis] = n;
		count(v);
		break;
	}
	case 3:
		v->x = tn_reduce_max(x->x, &axis, 1, false);
		reduced(v, (int32_t)axis);
		break;
	default:
		v->x = tn_reduce_sum(x->x, &axis, 1, false);
		reduced(v, (int32_t)axis);
		break;
	}
}

static void multiply(run *w, const item *x)
{
	const item *y = NULL;
	item *v;

	for (int32_t k = 0; k < 12 && x->rank == 2; k++) {
		const item *o = &w->it[below(w, w->n)];

		if (o->rank == 2 && o->shape[0] == x->shape[1] &&
			x->shape[0] * o->shape[1] <= ELEMS)
			y = o;
	}
	if (y == NULL)
		return;
	v = fresh(w, x);
	v->x = tn_matmul(x->x, y->x);
	v->shape[1] = y->shape[1];
	count(v);
}

static void compute(run *w, const item *x)
{
	const item *y = same_shape(w, x);
	int32_t kind = (int32_t)below(w, 6);
	item *v = fresh(w, x);

	switch (kind) {
	case 0:
		v->x = tn_mul(x->x, y->x);
		break;
	case 1:
		v->x = tn_sin(x->x);
		break;
	case 2: /* numbers of their own elements, wherever they are made */
		v->x = tn_add(x->x,
			tn_uniform(tn_random_key(w->c), x->shape, x->rank, -1,
				1, TN_F64));
		break;
	case 3:
		v->x = tn_dropout(x->x, tn_random_key(w->c), 0.25);
		break;
	default:
		v->x = tn_add(x->x, y->x);
		break;
	}
	if (below(w, 4) == 0)
		place(w, v, true);
}

static void write_to(run *w, item *x)
{
	const item *y = same_shape(w, x);
	int64_t kind = below(w, 4);
	bool no_grad = below(w, 2) == 0, far = below(w, 3) == 0;
	tn_tensor *to = x->x;

	if (x->repeats || x->parts)
		return;
	if (far)
		to = seen(w, x, to);
	if (no_grad)
		tn_no_grad_enter(w->c);
	if (kind == 0)
		tn_copy_(to, y->x);
	else if (kind == 1)
		tn_mul_(to, y->x);
	else if (kind == 2)
		tn_add_(to, tn_sin(y->x));
	else
		tn_fill_(to, 0.375);
	if (no_grad)
		tn_no_grad_leave(w->c);
}

static void look(run *w, tn_tensor *x, int32_t n)
{
	double got[ELEMS];

	if (x == NULL || w->out->n + n > MAX_OUT)
		return;
	if (tn_read(x, got, (size_t)n * sizeof *got) < 0)
		return;
	memcpy(w->out->v + w->out->n, got, (size_t)n * sizeof *got);
	w->out->n += n;
}

/* ---- a program ---- */

static void finish(run *w)
{
	tn_tensor *loss = NULL;

	for (int32_t i = 0; i < w->n; i++) {
		int64_t axes[4] = {0, 1, 2, 3};
		tn_tensor *s;

		if (below(w, 2) == 0)
			look(w, w->it[i].x, w->it[i].n);
		s = tn_reduce_sum(tn_sin(w->it[i].x), axes, w->it[i].rank,
			false);
		loss = loss == NULL ? s : tn_add(loss, s);
	}
	tn_backward(loss, NULL);
	for (int32_t i = 0; i < w->n_params; i++) {
		look(w, tn_gradient(w->param[i].x), w->param[i].n);
		look(w, w->param[i].x, w->param[i].n);
	}
	look(w, loss, 1);
	for (int32_t i = 0; i < w->n; i++)
		look(w, w->it[i].x, w->it[i].n);
}

static void program(run *w)
{
	int32_t steps = 4 + (int32_t)below(w, STEPS - 3);

	new_tensor(w, true);
	for (int32_t i = 0; i < steps && w->n < ITEMS - 2; i++) {
		item *x = &w->it[below(w, w->n)];

		switch (below(w, 9)) {
		case 0:
			new_tensor(w, w->n_params < PARAMS && below(w, 2));
			break;
		case 1:
		case 2:
			view(w, x);
			break;
		case 3:
			along(w, x);
			break;
		case 4:
			multiply(w, x);
			break;
		case 5:
		case 6:
			compute(w, x);
			break;
		default:
			write_to(w, x);
			break;
		}
		if (below(w, 6) == 0)
			look(w, w->it[w->n - 1].x, w->it[w->n - 1].n);
	}
	finish(w);
}

typedef struct job {
	uint64_t state; /* where drawing begins */
	int32_t n_axes;
	int64_t extent[3];
	bool alone;
	result *out; /* by process */
} job;

static void body(tn_context *c, int32_t process, void *arg)
{
	const job *j = arg;
	run *w = calloc(1, sizeof *w);
	tn_shard_stats s, before;

	if (w == NULL)
		abort();
	tn_context_shard_stats(c, &before);
	w->c = c;
	w->state = j->state;
	w->n_axes = j->n_axes;
	memcpy(w->extent, j->extent, sizeof w->extent);
	w->out = &j->out[process];
	w->out->n = 0;
	tn_set_seed(c, j->state);
	if (!j->alone)
		w->mesh = tn_mesh_new(c, j->n_axes, NULL, j->extent);
	tn_scope_enter(c);
	program(w);
	tn_scope_leave(c);
	for (int32_t i = 0; i < w->n_params; i++)
		tn_drop(w->param[i].x);
	tn_context_shard_stats(c, &s);
	w->out->sent = s.bytes_sent - before.bytes_sent;
	w->out->write_backs = s.n_write_backs - before.n_write_backs;
	free(w);
}

static bool near(double a, double b)
{
	if (a == b || (isnan(a) && isnan(b)))
		return true;
	return fabs(a - b) <= 1e-9 * (1 + fabs(a));
}

static bool compare(const result *one, const result *other, int32_t process)
{
	if (one->n != other->n) {
		printf("process %d reads %d elements, one process %d\n",
			(int)process, (int)other->n, (int)one->n);
		return false;
	}
	for (int32_t i = 0; i < one->n; i++)
		if (!near(one->v[i], other->v[i])) {
			printf("number %d is %.17g by one process, %.17g by "
			       "process %d\n",
				(int)i, one->v[i], other->v[i], (int)process);
			return false;
		}
	return true;
}

typedef struct tally {
	int64_t passed, sent, write_backs, numbers, rejected;
} tally;

static void draw_mesh(job *j, uint64_t index, bool four)
{
	run r = {.state = j->state ^ index};
	int64_t left = four ? 4 : 8;

	j->n_axes = 1 + (int32_t)below(&r, 3);
	for (int32_t m = 0; m < j->n_axes; m++) {
		bool last = m == j->n_axes - 1;

		if (four)
			j->extent[m] = last ? left : (int64_t)1
					<< below(&r, left == 4	 ? 3
						    : left == 2 ? 2
								: 1);
		else
			j->extent[m] = 1 + below(&r, left);
		left /= j->extent[m];
	}
}

/* ---- by threads ---- */

static bool by_threads(job *j, bool interp, tally *n)
{
	ranks_thread t[8];
	int64_t size = 1;
	bool ok = true;
	result *one = calloc(9, sizeof *one);
	job alone = *j;

	if (one == NULL)
		abort();
	for (int32_t m = 0; m < j->n_axes; m++)
		size *= j->extent[m];
	alone.out = one;
	alone.alone = true;
	ranks_run(t, 1, interp, body, &alone);
	if (t[0].status < 0) { /* a mistake of the program, for all the same */
		n->rejected++;
		printf("rejected: %s: %s\n", t[0].rule, t[0].text);
		free(one);
		return true;
	}
	j->out = one + 1;
	ranks_run(t, (int32_t)size, interp, body, j);
	for (int32_t i = 0; i < size; i++) {
		if (t[i].status < 0) {
			printf("process %d: %s: %s\n", (int)i, t[i].rule,
				t[i].text);
			ok = false;
		} else {
			ok = compare(one, &j->out[i], i) && ok;
		}
		n->sent += j->out[i].sent;
		n->write_backs += j->out[i].write_backs;
	}
	n->numbers += one->n;
	free(one);
	return ok;
}

/* ---- by mpirun ---- */

static bool by_mpi(tn_context *c, job *j, tally *n)
{
	tn_options o = TN_OPTIONS_INIT;
	result *r = calloc(2, sizeof *r);
	job alone = *j;
	tn_context *own;
	bool ok;

	if (r == NULL)
		abort();
	o.interp = true;
	if (tn_context_new(&own, &o) < 0)
		abort();
	alone.out = r;
	alone.alone = true;
	body(own, 0, &alone);
	tn_context_free(own);
	j->out = r + 1;
	body(c, 0, j);
	ok = tn_context_status(c) >= 0;
	if (!ok)
		printf("process %d: %s: %s\n", (int)tn_process(c),
			tn_context_diag(c)->rule, tn_context_diag(c)->text);
	ok = ok && compare(r, r + 1, tn_process(c));
	n->sent += r[1].sent;
	n->write_backs += r[1].write_backs;
	n->numbers += r[0].n;
	free(r);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	int64_t n = 100, first = 0, failed = 0, compile = 0;
	bool mpi = false;
	tally t = {0};
	tn_context *c = NULL;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--mpi") == 0)
			mpi = true;
		else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--count") == 0)
			n = strtoll(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
			first = strtoll(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--compile") == 0)
			compile = strtoll(argv[++i], NULL, 10);
	}
	if (mpi) {
		tn_options o = TN_OPTIONS_INIT;

		o.interp = compile == 0;
		if (tn_context_new(&c, &o) < 0 || tn_join_mpi(c) < 0 ||
			tn_n_processes(c) != 4) {
			printf("there are not four processes: %s\n",
				c != NULL ? tn_context_diag(c)->text : "");
			return 1;
		}
	}
	for (int64_t i = first; i < first + n && failed < 3; i++) {
		job j = {.state = seed * 1000003 + (uint64_t)i * 7919};
		bool ok;

		draw_mesh(&j, (uint64_t)i, mpi);
		ok = mpi ? by_mpi(c, &j, &t)
			 : by_threads(&j, compile == 0 || i % compile != 0, &t);
		t.passed += ok;
		failed += !ok;
		if (!ok)
			printf("program %" PRId64 " of seed %" PRIu64 " fails\n",
				i, seed);
		if (!ok && mpi)
			break;
	}
	if (!mpi || tn_process(c) == 0)
		printf("%" PRId64 " passed, %" PRId64 " failed, %" PRId64
		       " rejected; %" PRId64 " numbers, %" PRId64
		       " bytes sent, %" PRId64 " writes from elsewhere\n",
			t.passed, failed, t.rejected, t.numbers, t.sent,
			t.write_backs);
	tn_context_free(c);
	return failed > 0 || t.rejected * 20 > n || (n >= 50 && t.sent == 0);
}
