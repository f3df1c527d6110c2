/*
 * tensor_prop.c: random calls on tensors - views, writes with and without
 * gradients, reads, drops, gradients in the middle and at the end - against a
 * model that does everything at once on plain arrays.
 *
 *     tensor_prop [--seed S] [--first I] [--count N] [--compile EVERY] [--limit BYTES]
 *
 * --limit: so many bytes are kept for gradients, in all programs. Without it
 * programs take turns: as is fastest, as few as possible, 200.
 *
 * The model keeps storages as arrays and views as lists of positions. Its
 * gradients are central differences in f64, of two widths: the parameter's
 * element is moved where it was born and where it was written without a
 * gradient, and the values written there are those of the first run. That is
 * what the leaf rule says. Programs run in a random topological order, and
 * memory that is let go is overwritten. In the
 * middle, values are recorded that cannot be computed, written to what is there
 * and looked at: all is then as it was. And handles are used that were dropped,
 * and rows of the user whose places may lie outside of their operand. Storages of
 * every element type are made of values, seen through views and written to; no
 * gradient flows through them. That each of these was drawn is checked, too.
 * Where both widths differ too much, nothing is known:
 * such elements are counted, and more than one in twenty is a failure.
 */
#include "api/api.h"
#include "tensor_world.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has been compared, of all programs. */
typedef struct tally {
	int64_t views, pieces, writes, through, no_grad, elems, rough, again;
	int64_t failed, stale, rows, bad_rows;
	int64_t collected, forgotten, moving, set, detached;
	uint32_t types;
} tally;

static const item *same_shape(world *w, const item *x)
{
	const item *y = x;

	for (int32_t k = 0; k < 12; k++) {
		const item *o = &w->it[below(w, w->n)];

		if (!o->dropped && o->rank == x->rank &&
			!memcmp(o->shape, x->shape,
				sizeof *x->shape * (size_t)x->rank))
			y = o;
	}
	return y;
}

/* ---- element types ---- */

/* x in f64, as the model has it. */
static tn_tensor *wide(const world *w, const item *x)
{
	return is_f64(w, x) ? x->x : tn_cast(x->x, TN_F64);
}

/* What a type makes of 2 |sin(v)|, which nearly all types hold some of. */
static double narrow(tn_dtype t, double v)
{
	ir_number n = ir_cast(
		t, TN_F64, (ir_number){.f = fabs(sin(v)) + fabs(sin(v))});

	return dtype_is_float(t) ? n.f : (double)n.i;
}

static tn_tensor *narrowed(const world *w, tn_dtype t, const item *x)
{
	tn_tensor *s = tn_abs(tn_sin(wide(w, x)));

	return tn_cast(tn_add(s, s), t);
}

/* A storage of any type, of the values of x. */
static void convert(world *w, const item *x)
{
	tn_dtype t = (tn_dtype)(w->next_type % TN_N_DTYPES);
	item *v;

	if (w->n_frozen + x->n > FROZEN)
		return;
	w->next_type++;
	v = own(w, x);
	w->type[v->storage] = t;
	w->types |= UINT32_C(1) << t;
	for (int32_t k = 0; k < x->n; k++) {
		w->data[v->storage][k] = narrow(t, elem(w, x, k));
		freeze(w, &w->data[v->storage][k]);
	}
	if (!w->c)
		return;
	tn_no_grad_enter(w->c);
	tn_scope_enter(w->c);
	v->x = tn_keep(narrowed(w, t, x));
	tn_scope_leave(w->c);
	tn_no_grad_leave(w->c);
}

/* ---- values ---- */

static item *compute(world *w, const item *x)
{
	const item *y = same_shape(w, x);
	int32_t kind = (int32_t)below(w, 4);
	item *v = own(w, x);
	tn_tensor *a, *b;

	for (int32_t k = 0; k < x->n; k++) {
		double p = elem(w, x, k), q = elem(w, y, k);

		w->data[v->storage][k] = kind == 0 ? p * q
			: kind == 1		   ? sin(p)
			: kind == 2		   ? p + q
						   : exp(sin(p)) - q;
	}
	if (!w->c)
		return v;
	tn_scope_enter(w->c); /* what is in between ends */
	a = wide(w, x);
	b = wide(w, y);
	v->x = tn_keep(kind == 0 ? tn_mul(a, b)
			: kind == 1 ? tn_sin(a)
			: kind == 2 ? tn_add(a, b)
				    : tn_sub(tn_exp(tn_sin(a)), b));
	tn_scope_leave(w->c);
	return v;
}

static void write_to(world *w, const item *x)
{
	double value[ELEMS];
	int32_t kind = (int32_t)below(w, 3);
	bool no_grad = below(w, 3) == 0 || !is_f64(w, x);
	const item *y = same_shape(w, x);
	tn_dtype t = w->type[x->storage];

	if (no_grad && w->n_frozen + x->n > FROZEN)
		no_grad = false;
	if (!no_grad && !is_f64(w, x))
		return;
	for (int32_t k = 0; k < x->n; k++) {
		double a = elem(w, x, k), b = elem(w, y, k);

		value[k] = !is_f64(w, x) ? narrow(t, b)
			: kind == 0 ? b : kind == 1 ? a * b : a + sin(b);
	}
	w->n_writes++;
	w->n_no_grad += no_grad;
	w->n_through += x->n != w->size[x->storage] || x->at[0] != 0;
	for (int32_t k = 0; k < x->n; k++) {
		double *to = &w->data[x->storage][x->at[k]];

		*to = value[k];
		if (!no_grad)
			continue;
		freeze(w, to);
		if (x->storage == w->moved_storage &&
			x->at[k] == w->moved_elem)
			*to += w->by;
	}
	if (!w->c)
		return;
	if (no_grad)
		tn_no_grad_enter(w->c);
	tn_scope_enter(w->c);
	if (!is_f64(w, x))
		tn_copy_(x->x, narrowed(w, t, y));
	else if (kind == 0)
		tn_copy_(x->x, wide(w, y));
	else if (kind == 1)
		tn_mul_(x->x, wide(w, y));
	else
		tn_add_(x->x, tn_sin(wide(w, y)));
	tn_scope_leave(w->c);
	if (no_grad)
		tn_no_grad_leave(w->c);
}

static void check(world *w, const item *x)
{
	tn_dtype t = w->type[x->storage];
	double bytes[ELEMS]; /* of any type */

	if (!w->c)
		return;
	if (tn_read(x->x, bytes, (size_t)x->n * dtype_size(t)) < 0) {
		printf("[%s] %s\n", tn_context_diag(w->c)->rule,
			tn_context_diag(w->c)->text);
		w->good = false;
		return;
	}
	for (int32_t k = 0; k < x->n; k++) {
		double want = elem(w, x, k), got = dtype_is_float(t)
			? dtype_load_f64(t, bytes, k)
			: (double)dtype_load_i64(t, bytes, k);

		if (fabs(got - want) <= 1e-9 * (1 + fabs(want)) ||
			!(fabs(want) < 1e100))
			continue;
		printf("item %d of %s, element %d is %.12g, the model has "
		       "%.12g\n", (int)(x - w->it), dtype_name(t), k, got, want);
		w->good = false;
	}
}

/* ---- failures ---- */

static void expect(world *w, tn_status got, tn_status want, const char *rule)
{
	const tn_diag *d = tn_context_diag(w->c);

	if (got != want || (tn_context_status(w->c) < 0 &&
				   strcmp(d->rule, rule) != 0)) {
		printf("status %d, [%s] %s; expected is [%s]\n", (int)got,
			d->rule, d->text, rule);
		w->good = false;
	}
	tn_context_clear(w->c);
}

/* x, with what is read at an index outside of it added */
static tn_tensor *spoilt(world *w, const item *x)
{
	const int64_t n = x->n;

	return tn_add(x->x, tn_take(tn_reshape(x->x, &n, 1),
				    tn_scalar(w->c, TN_I64, 99), 0));
}

/*
 * A step that cannot be computed: y is written, then x with what failed. The
 * model does nothing.
 */
static void fail_step(world *w, const item *x)
{
	const item *y = &w->it[below(w, w->n)];
	bool no_grad = below(w, 2) == 0, on_top = below(w, 2) == 0;
	bool keep = below(w, 2) == 0, both = below(w, 2) == 0;
	double got[ELEMS];
	tn_tensor *v;

	if (!w->c)
		return;
	w->n_failed++;
	if (no_grad)
		tn_no_grad_enter(w->c);
	tn_scope_enter(w->c);
	tn_step_enter(w->c);
	if (!y->dropped && !y->repeats && is_f64(w, y))
		tn_mul_(y->x, tn_sin(y->x));
	v = spoilt(w, x);
	tn_copy_(x->x, v);
	if (on_top)
		tn_mul_(x->x, x->x);
	tn_step_leave(w->c);
	if (keep && w->n_bad < BAD)
		w->bad[w->n_bad++] = tn_keep(v);
	if (both && !y->dropped)
		expect(w, tn_eval(((tn_tensor *[]){y->x, x->x}), 2), TN_ERANGE,
			"index.range");
	else
		expect(w, tn_read(x->x, got, (size_t)x->n * sizeof *got),
			TN_ERANGE, "index.range");
	tn_scope_leave(w->c);
	if (no_grad)
		tn_no_grad_leave(w->c);
}

/*
 * A row of the user, a window of the elements in order: a view, or refused
 * since it reaches outside.
 */
static void user_row(world *w, const item *x)
{
	static const int64_t starts[ROW_STARTS] = {0, 1, 2, 4, -1, 1000000000};
	int32_t k = (int32_t)below(w, ROW_STARTS);
	int32_t size = 1 + (int32_t)below(w, ROW_SIZES);
	bool is_inside = starts[k] >= 0 && starts[k] + size <= x->n;
	const int64_t n = x->n;
	char name[40], row[120], rule[44];
	tn_tensor *y = NULL;
	tn_status s;
	item *v;

	w->n_rows += is_inside;
	w->n_bad_rows += !is_inside;
	snprintf(name, sizeof name, "window_%d_%d", (int)k, (int)size);
	snprintf(row, sizeof row,
		"%s(x[i]) -> o { o[j] = x[j + %" PRId64 "] for j < %d }", name,
		starts[k], (int)size);
	if (w->c) {
		if (!w->defined[k][size - 1])
			(void)tn_op_define(w->c, row);
		w->defined[k][size - 1] = true;
		y = tn_reshape(x->x, &n, 1);
		s = tn_call(w->c, name, 1, &y, 0, NULL, 1, &y);
		snprintf(rule, sizeof rule, "%s.x", name);
		expect(w, s, is_inside ? TN_OK : TN_EINVAL, rule);
	}
	if (!is_inside)
		return;
	v = fresh(w);
	v->rank = 1;
	v->shape[0] = v->n = size;
	v->storage = x->storage;
	v->repeats = x->repeats;
	for (int32_t i = 0; i < size; i++)
		v->at[i] = x->at[starts[k] + i];
	v->x = y;
}

/* What failed fails again. */
static void look_at_bad(world *w)
{
	double got[ELEMS];
	int32_t k = (int32_t)below(w, BAD);

	if (!w->c || k >= w->n_bad)
		return;
	expect(w, tn_read(w->bad[k], got,
			  (size_t)tn_tensor_n_elems(w->bad[k]) * sizeof *got),
		TN_ERANGE, "index.range");
}

/* A handle that was dropped, whatever was made since. */
static void use_stale(world *w, const item *x)
{
	int32_t kind = (int32_t)below(w, 5);
	double got[ELEMS] = {0};
	tn_status s = TN_OK;

	if (!w->c)
		return;
	w->n_stale++;
	if (tn_is_valid(x->x)) {
		printf("item %d was dropped, and is valid\n",
			(int)(x - w->it));
		w->good = false;
	}
	if (kind == 0)
		s = tn_read(x->x, got, (size_t)x->n * sizeof *got);
	else if (kind == 1)
		s = tn_fill_(x->x, 1);
	else if (kind == 2)
		s = tn_set_data(x->x, got, (size_t)x->n * sizeof *got);
	else if (kind == 3)
		s = tn_is_valid(tn_sin(x->x)) ? TN_OK : TN_EINVAL;
	else
		s = tn_copy_(w->it[0].x, x->x);
	expect(w, s, TN_EINVAL, "tensor.handle");
}

/* ---- a program ---- */

/* The loss, of all that is there; and its gradient. */
static double finish(world *w)
{
	double loss = w->collected;
	tn_tensor *sum = NULL;

	if (w->c)
		tn_scope_enter(w->c);
	for (int32_t i = 0; i < w->n; i++) {
		const item *x = &w->it[i];
		double f = 1 + 0.25 * (i % 5);

		if (x->dropped)
			continue;
		check(w, x);
		for (int32_t k = 0; k < x->n; k++)
			loss += f * elem(w, x, k) * elem(w, x, k);
		if (w->c) {
			tn_tensor *v = wide(w, x), *t = tn_mul(
				tn_reduce_sum(tn_mul(v, v), NULL, 0, false),
				tn_scalar(w->c, TN_F64, f));

			sum = sum == NULL ? t : tn_add(sum, t);
		}
	}
	if (!w->c)
		return loss;
	tn_keep(sum);
	tn_scope_leave(w->c);
	/* the loss is looked at first, or not at all; many tensors may end */
	if (below(w, 2) == 0)
		w->good = w->good && !isnan(tn_item(sum)) == !isnan(loss);
	if (below(w, 2) == 0)
		for (int32_t i = w->n_params; i < w->n; i++)
			if (!w->it[i].dropped)
				tn_drop(w->it[i].x);
	if (w->good)
		tn_backward(sum, NULL);
	return loss;
}

static void begin(world *w, uint64_t seed)
{
	w->state = seed;
	w->n = w->n_storages = w->n_frozen = 0;
	w->n_views = w->n_writes = w->n_through = w->n_no_grad = 0;
	w->n_pieces = 0;
	w->n_bad = 0;
	w->n_failed = w->n_stale = w->n_rows = w->n_bad_rows = 0;
	w->types = 0;
	w->next_type = (int32_t)(seed % TN_N_DTYPES); /* programs begin in turn */
	memset(w->defined, 0, sizeof w->defined);
	memset(w->forgotten, 0, sizeof w->forgotten);
	w->collected = 0;
	w->n_collected = w->n_forgotten = w->n_moving = w->n_set = 0;
	w->n_detached = w->starts_at = 0;
	w->start = w->c ? tn_tensor_new(w->c, TN_I64, 0, NULL, NULL) : NULL;
	w->ends = below(w, 3) == 0;
	w->good = true;
}

static double play(world *w, uint64_t seed)
{
	int32_t steps;

	begin(w, seed);
	w->n_params = 1 + (int32_t)below(w, 3);
	for (int32_t p = 0; p < w->n_params; p++) {
		item like = {.rank = (int32_t)below(w, 4)}, *v;

		for (int32_t d = 0; d < like.rank; d++)
			like.shape[d] = 1 + below(w, 3);
		like.n = numel(&like);
		v = own(w, &like);
		for (int32_t k = 0; k < v->n; k++)
			w->data[v->storage][k] =
				0.3 + 0.17 * (double)((k * 7 + p * 5) % 11);
		if (w->c)
			v->x = tn_parameter(w->c, "p", TN_F64, v->rank,
				v->shape, w->data[v->storage]);
		if (v->storage == w->moved_storage)
			w->data[v->storage][w->moved_elem] += w->by;
	}
	steps = 3 + (int32_t)below(w, STEPS);
	while (steps-- > 0 && w->n < ITEMS - 3) {
		item *x = &w->it[below(w, w->n)];
		int32_t kind = (int32_t)below(w, 18);

		if (x->dropped) {
			use_stale(w, x);
			continue;
		}
		if (kind > 13)
			make_event(w, x);
		else if (kind == 13)
			convert(w, x);
		else if (kind == 12)
			user_row(w, x);
		else if (kind == 10 && !x->repeats && is_f64(w, x))
			fail_step(w, x);
		else if (kind >= 10)
			look_at_bad(w);
		else if (kind < 3)
			make_view(w, x);
		else if (kind < 6)
			compute(w, x);
		else if (kind < 8 && !x->repeats)
			write_to(w, x);
		else if (kind == 8)
			check(w, x);
		else if (x - w->it >= w->n_params) {
			x->dropped = true;
			if (w->c)
				tn_drop(x->x);
		}
	}
	return finish(w);
}

/* Is g what both central differences, the second of half the width, say? */
static bool agrees(double coarse, double fine, double g, double loss, tally *sum)
{
	double scale = 1 + fabs(fine) + fabs(loss);

	if (fabs(loss) > 1e6 || !isfinite(coarse) || !isfinite(fine) ||
		fabs(coarse - fine) > 1e-3 * scale) {
		sum->rough++;
		return true;
	}
	sum->elems++;
	/* its error falls with h^2: the rest is known */
	return fabs(fine - g) <= fabs(coarse - fine) ||
	       fabs(fine - g) <= 2e-5 * scale;
}

static bool gradients(world *w, uint64_t seed, tally *sum)
{
	static world m;

	for (int32_t p = 0; p < w->n_params && w->good; p++) {
		tn_tensor *g = tn_gradient(w->it[p].x);
		double got[ELEMS] = {0};

		if (g != NULL && tn_read(g, got,
			    (size_t)w->it[p].n * sizeof *got) < 0) {
			printf("gradient: [%s] %s\n",
				tn_context_diag(w->c)->rule,
				tn_context_diag(w->c)->text);
			return false;
		}
		for (int32_t k = 0; k < w->it[p].n; k++) {
			double q[4], h = 2e-5, coarse, fine;

			memcpy(m.frozen, w->frozen, sizeof m.frozen);
			m.replays = true;
			m.moved_storage = p;
			m.moved_elem = k;
			for (int32_t i = 0; i < 4; i++) {
				m.by = i % 2 ? -h : h;
				m.by /= i < 2 ? 1 : 2;
				q[i] = play(&m, seed) - m.forgotten[p];
			}
			coarse = (q[0] - q[1]) / (2 * h);
			fine = (q[2] - q[3]) / h;
			if (agrees(coarse, fine, got[k], q[1], sum))
				continue;
			printf("gradient of parameter %d, element %d: %.10g, "
			       "quotient %.10g, %.10g\n",
				p, k, got[k], coarse, fine);
			return false;
		}
	}
	return w->good;
}

typedef struct choice {
	uint64_t seed;
	long first, count, every, limit;
} choice;

static choice read_choice(int argc, char **argv)
{
	choice o = {.seed = 1, .count = 1000, .every = 50, .limit = -2};

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			o.seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--first") == 0)
			o.first = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--count") == 0)
			o.count = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--compile") == 0)
			o.every = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--limit") == 0)
			o.limit = strtol(argv[i + 1], NULL, 10);
	}
	return o;
}

/* Program number k; false: it is wrong, or there is no context. */
static bool try_program(world *w, const choice *u, long k, tally *sum)
{
	const int64_t limits[] = {-1, 0, 200};
	uint64_t s = (u->seed << 32) + (uint64_t)k;
	tn_options o = TN_OPTIONS_INIT;
	tn_stats stats;
	bool good;

	o.interp = k % u->every != 0;
	o.memory_limit = u->limit < -1 ? limits[k % 3] : u->limit;
	if (tn_context_new(&w->c, &o) < 0)
		return false;
	/* any order that is allowed; dead memory overwritten */
	w->c->poison = true;
	w->c->settle = (settle_options){
		.shuffle = k % 3 == 0 ? 0 : s | 1, .eager = k % 2 == 0};
	w->replays = false;
	w->moved_storage = -1;
	play(w, s);
	good = w->good && tn_context_status(w->c) == TN_OK &&
		gradients(w, s, sum);
	sum->views += w->n_views;
	sum->pieces += w->n_pieces;
	sum->failed += w->n_failed;
	sum->stale += w->n_stale;
	sum->rows += w->n_rows;
	sum->bad_rows += w->n_bad_rows;
	sum->writes += w->n_writes;
	sum->through += w->n_through;
	sum->no_grad += w->n_no_grad;
	sum->types |= w->types;
	sum->collected += w->n_collected;
	sum->forgotten += w->n_forgotten;
	sum->moving += w->n_moving;
	sum->set += w->n_set;
	sum->detached += w->n_detached;
	tn_context_stats(w->c, &stats);
	sum->again += stats.n_again;
	if (!good)
		printf("program %ld of seed %" PRIu64 " (%s): %s\n", k, u->seed,
			o.interp ? "interpreted" : "compiled",
			tn_context_diag(w->c)->text);
	tn_context_free(w->c);
	return good;
}

int main(int argc, char **argv)
{
	static world w;
	tally sum = {0};
	choice o = read_choice(argc, argv);
	long failed = 0;

	for (long k = 0; k < o.count && failed < 5; k++)
		failed += !try_program(&w, &o, o.first + k, &sum);
	printf("%" PRId64 " views (%" PRId64
	       " pieces), %" PRId64 " writes (%" PRId64
	       " to a part, %" PRId64 " without gradient), %" PRId64
	       " calls made again\n"
	       "%" PRId64 " steps that fail, %" PRId64
	       " uses of what was dropped, %" PRId64
	       " rows of the user (%" PRId64 " outside)\n"
	       "%" PRId64 " backwards in the middle, %" PRId64
	       " gradients forgotten, %" PRId64 " views that move, %" PRId64
	       " tensors set, %" PRId64 " without their history\n"
	       "%" PRId64 " elements of gradients against central differences, "
	       "%" PRId64 " more too rough for them\n"
	       "%ld programs, %ld failed\n",
		sum.views, sum.pieces, sum.writes, sum.through, sum.no_grad, sum.again,
		sum.failed, sum.stale, sum.rows + sum.bad_rows, sum.bad_rows,
		sum.collected, sum.forgotten, sum.moving, sum.set, sum.detached,
		sum.elems, sum.rough, o.count, failed);
	if (o.count >= 200 && (sum.pieces == 0 || sum.failed == 0 ||
				    sum.stale == 0 || sum.rows == 0 ||
				    sum.bad_rows == 0 || sum.collected == 0 ||
				    sum.forgotten == 0 || sum.moving == 0 ||
				    sum.set == 0 || sum.detached == 0 ||
				    sum.types + 1 != UINT32_C(1) << TN_N_DTYPES)) {
		printf("something was never drawn\n");
		return 1;
	}
	return failed > 0 || 20 * sum.rough > sum.elems;
}
