/*
 * shard_prop.c: random programs and their gradients on random meshes, cut in
 * random places: N processes make what one makes.
 *
 *     shard_prop [--seed S] [--count N] [--verbose]
 *
 * A fifth of them are single calls that shift or window an axis - slices, pads,
 * concats, whatever the table has - of which that axis of one input is all that
 * is cut, in uneven blocks: what is moved has a bound there (shard_moved.c).
 *
 * In the others any tensor may be annotated, with cuts of any axes in any blocks, so that
 * shards are uneven and processes own nothing. Each process has only the
 * elements that its layout gives it, and a read of another one fails
 * (shard_sim.h). Then threads are the processes, each with the local program
 * that the plan gives it (shard_ranks.h). Values may differ as far as rounding
 * in another order may take them (shadow.c).
 */
#include "prop.h"
#include "shard_ranks.h"
#include "shard_sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_COST = 6000, MAX_POINTS = 100000 };

typedef struct tally {
	int64_t passed, skipped, cut, partial, masked, moved, sent;
	int64_t windows, wanted; /* elements */
	int64_t shifts, shifted, texts, parts_of_axes, elements;
	int64_t exact, bounded, any;
} tally;

typedef struct trial {
	uint64_t seed, index;
	bool verbose;
	tally *n;
	env *e;
	arena *a;
	rng r;
	ir_program *p;
	ir_system *s;
	shard_mesh mesh;
	shard_plan *plan;
	const void *const *in;
	void **whole, **parts;
	VEC(ranks_note) note;
	shadow_run *bound; /* of the output that was asked for last; NULL */
	int32_t bounded;   /* that output */
	/* of a call that shifts an axis: the input and the axis; -1: none */
	int32_t shifted, axis;
} trial;

static const char *const names[] = {"m", "m/2", "data"};

static shard_mesh draw_mesh(rng *r)
{
	shard_mesh m = {.n = (int32_t)rng_range(r, 1, 3)};
	int64_t left = 8;

	for (int32_t i = 0; i < m.n; i++) {
		m.name[i] = names[i];
		m.extent[i] = rng_range(r, 1, i == 0 ? left : left < 4 ? left : 4);
		left /= m.extent[i];
	}
	return m;
}

/* Cuts of one tensor: each axis of the mesh may cut any axis in any blocks. */
static void draw_cuts(trial *x, int32_t tensor)
{
	const sys_tensor *t = &x->s->tensor.at[tensor];
	shard_layout l = shard_replicated(t->numel);

	for (int32_t m = 0; m < x->mesh.n && t->rank > 0; m++) {
		int32_t k = (int32_t)rng_below(&x->r, t->rank);
		int64_t p = x->mesh.extent[m], n = t->shape[k], block = 0;

		if (rng_percent(&x->r, 35) || n < 2 || p < 2)
			continue;
		/* the first cut of an axis: any blocks that are enough */
		if (l.n == 0 && rng_percent(&x->r, 40))
			block = rng_range(&x->r, (n + p - 1) / p, n);
		shard_cut(x->e, &l, &x->mesh, t->rank, t->shape, k, m, block);
	}
	*vec_push(x->a, &x->note) =
		(ranks_note){tensor, l, rng_percent(&x->r, 30)};
	shard_annotate(x->plan, tensor, &l, x->note.at[x->note.n - 1].fixed);
}

/* Data of the inputs: indices lie inside what they index. */
static void fill(trial *x, prop_case *c)
{
	ir_system *s = ir_lower(x->a, ix_new(x->a), c->p);
	int64_t *lo = arena_array(x->a, int64_t, s->tensor.n + 1);
	int64_t *hi = arena_array(x->a, int64_t, s->tensor.n + 1);
	int64_t *l = arena_array(x->a, int64_t, s->input.n + 1);
	int64_t *h = arena_array(x->a, int64_t, s->input.n + 1);

	compile_index_ranges(s, lo, hi);
	for (int32_t i = 0; i < s->input.n; i++) {
		l[i] = lo[s->input.at[i]];
		h[i] = hi[s->input.at[i]];
	}
	fill_inputs(x->a, c, l, h);
}

/* All results of the first call are outputs. */
static void return_results(ir_program *p)
{
	for (int32_t i = 0; i < p->call.at[0].n_results; i++)
		ir_program_output(p, p->call.at[0].result[i]);
}

/* Finds an axis of an input that an equation shifts. */
static void find_shift(void *arg)
{
	static const shard_mesh one = {.n = 1, .extent = {1}};
	trial *x = arg;
	ir_system *s = ir_lower(x->a, ix_new(x->a), x->p);
	shard_plan *q = shard_plan_new(x->a, s, &one);
	int64_t most;

	for (int32_t i = 0; i < s->eqn.n * s->input.n; i++) {
		int32_t t = s->input.at[i % s->input.n];
		int32_t eqn = i / s->input.n;
		bool reads = false;

		for (int32_t r = 0; r < q->eqn[eqn].unit->n_reads; r++)
			reads |= q->eqn[eqn].unit->read[r].tensor == t;
		for (int32_t k = 0; reads && k < s->tensor.at[t].rank; k++)
			if (s->tensor.at[t].shape[k] > 2 &&
				moved_shifts(q, eqn, t, k, &most)) {
				x->shifted = t;
				x->axis = k;
				return;
			}
	}
}

/* A call of any row that shifts an axis of an operand; NULL: none was drawn. */
static prop_case *draw_shift(trial *x, ir_table *t)
{
	for (uint64_t tries = 0; tries < 200; tries++) {
		int32_t row = draw_row(&x->r, t);
		prop_case *c = draw_one_call(
			x->a, t, row, x->seed + tries, x->index);

		if (c == NULL || c->cost > MAX_COST)
			continue;
		return_results(c->p);
		x->p = c->p;
		if (env_run(x->e, find_shift, x) == TN_OK && x->shifted >= 0)
			return c;
	}
	return NULL;
}

/* The points of all equations: a gradient that is solved for its result may
 * have far more of them than its row has. */
static int64_t system_cost(const ir_system *s)
{
	int64_t cost = 0;

	for (int32_t i = 0; i < s->eqn.n; i++) {
		int64_t n = 1;

		for (int32_t k = 0; k < s->eqn.at[i].n_axes; k++)
			if (!mul_ok(n, s->eqn.at[i].axis[k].extent, &n))
				return INT64_MAX;
		if (!add_ok(cost, n, &cost))
			return INT64_MAX;
	}
	return cost;
}

static void prepare(void *arg)
{
	trial *x = arg;
	ir_table *t = ir_table_new(x->a);
	int32_t row = draw_row(&x->r, t);
	bool back = rng_percent(&x->r, 35), lone = rng_percent(&x->r, 20);
	prop_case *c = lone ? draw_shift(x, t)
		: back ? draw_one_call(x->a, t, row, x->seed, x->index)
		       : draw_case(x->a, t, x->seed, x->index, NULL);

	back &= !lone;
	if (c == NULL || c->out_of_range || c->cost > MAX_COST)
		env_fail(x->e, TN_EINVAL, "prop.skip", (loc){0}, "skipped");
	if (back)
		return_results(c->p);
	fill(x, c);
	x->p = c->p;
	x->in = (const void *const *)c->in;
	if (back) {
		void **in;

		x->p = sim_gradient(x->a, c->p);
		in = arena_array(x->a, void *, x->p->input.n + 1);
		for (int32_t i = 0; i < x->p->input.n; i++) {
			const ir_type *q =
				&x->p->value.at[x->p->input.at[i]].type;

			in[i] = i < c->p->input.n
				? c->in[i]
				: arena_alloc(x->a, type_bytes(q) + 1, 1);
			for (int64_t k = 0; i >= c->p->input.n &&
				k < type_numel(q);
				k++)
				dtype_store_f64(q->dtype, in[i], k,
					(double)rng_range(&x->r, -4, 4) / 2);
		}
		x->in = (const void *const *)in;
	}
	x->s = ir_lower(x->a, ix_new(x->a), x->p);
	if (system_cost(x->s) > MAX_POINTS)
		env_fail(x->e, TN_EINVAL, "prop.skip", (loc){0},
			"too many points");
	x->whole = sim_whole(x->a, x->s, x->in);
}

/* Processes get no more than the intervals of what they read. */
static void check_moved(trial *x, const sim_result *r)
{
	for (int32_t i = 0; i < r->moved.n; i++) {
		const sim_moved *m = &r->moved.at[i];

		x->n->windows += m->moved;
		x->n->wanted += m->wanted;
		if (m->moved > m->most)
			env_fail(x->e, TN_EINTERNAL, "shard.moved", (loc){0},
				"process %lld gets %lld elements of %s for %s, "
				"and reads %lld of them: at most %lld do",
				(long long)m->process, (long long)m->moved,
				x->s->tensor.at[m->tensor].name,
				x->plan->eqn[m->eqn].unit->e.label,
				(long long)m->wanted, (long long)m->most);
	}
}

/* All together get no more than is read once, by each equation that shifts it. */
static void check_shifted(trial *x, const sim_result *r)
{
	for (int32_t e = 0; e < x->s->eqn.n; e++) {
		int64_t got = 0, most;
		bool any = false;

		for (int32_t i = 0; i < r->moved.n; i++)
			if (r->moved.at[i].eqn == e &&
				r->moved.at[i].tensor == x->shifted) {
				got += r->moved.at[i].moved;
				any = true;
			}
		if (!any || !moved_shifts(x->plan, e, x->shifted, x->axis, &most))
			continue;
		x->n->shifts++;
		x->n->shifted += got;
		if (got > most)
			env_fail(x->e, TN_EINTERNAL, "shard.moved", (loc){0},
				"all get %lld elements of %s for %s, and %lld do",
				(long long)got,
				x->s->tensor.at[x->shifted].name,
				x->plan->eqn[e].unit->e.label,
				(long long)most);
	}
}

/* The shifted axis alone, in blocks that need not be alike. */
static void cut_shifted(trial *x)
{
	const sys_tensor *t = &x->s->tensor.at[x->shifted];
	int64_t n = t->shape[x->axis], p = rng_range(&x->r, 3, 8);
	shard_layout l = shard_replicated(t->numel);

	x->mesh = (shard_mesh){.n = 1, .extent = {p}, .name = {names[0]}};
	x->plan = shard_plan_new(x->a, x->s, &x->mesh);
	shard_cut(x->e, &l, &x->mesh, t->rank, t->shape, x->axis, 0,
		rng_range(&x->r, (n + p - 1) / p,
			((n + p - 1) / p + n) / 2));
	*vec_push(x->a, &x->note) = (ranks_note){x->shifted, l, true};
	shard_annotate(x->plan, x->shifted, &l, true);
}

/* Where each tensor lies, as text, is a place that is the same one. */
static void check_texts(trial *x)
{
	int64_t n = shard_mesh_size(x->e, &x->mesh);

	for (int32_t t = 0; t < x->s->tensor.n; t++) {
		const sys_tensor *y = &x->s->tensor.at[t];
		shard_plan *q = shard_plan_new(x->a, x->s, &x->mesh);
		const shard_layout *l = &x->plan->tensor[t].have;
		str text = str_new(x->a);

		str_printf(&text, "%s=", y->name);
		shard_placement_print(&text, l, 0, 0, &x->mesh, y->rank, y->shape);
		shard_placement_parse(q, text.at);
		x->n->texts++;
		x->n->parts_of_axes += strstr(text.at, "%") != NULL;
		x->n->elements += strstr(text.at, "elements") != NULL;
		for (int64_t b = 0; b < n; b++)
			for (int64_t e = 0; e < y->numel; e++)
				if (shard_owns(l, &x->mesh, b, e) !=
					shard_owns(&q->tensor[t].have,
						&x->mesh, b, e))
					env_fail(x->e, TN_EINTERNAL,
						"shard.text", (loc){0},
						"\"%s\": process %lld, "
						"element %lld", text.at,
						(long long)b, (long long)e);
	}
}

static void cut_any(trial *x)
{
	x->mesh = draw_mesh(&x->r);
	x->plan = shard_plan_new(x->a, x->s, &x->mesh);
	for (int32_t i = 0; i < x->s->tensor.n; i++) {
		bool is_input = x->s->tensor.at[i].is_input;

		if (rng_percent(&x->r, is_input ? 70 : 25))
			draw_cuts(x, i);
	}
}

static void shard(void *arg)
{
	trial *x = arg;
	sim_result r = {0};

	if (x->shifted >= 0)
		cut_shifted(x);
	else
		cut_any(x);
	shard_propagate(x->plan);
	x->parts = sim_run(x->a, x->plan, x->in, &r);
	x->n->moved += r.moved_bytes;
	check_texts(x);
	check_moved(x, &r);
	if (x->shifted >= 0)
		check_shifted(x, &r);
}

static double number_at(tn_dtype t, const void *data, int64_t i)
{
	return dtype_is_float(t) ? dtype_load_f64(t, data, i)
				 : (double)dtype_load_i64(t, data, i);
}

/* Of one output: others may need terms that the system has not, as those of an empty axis,
 * which cannot be evaluated. */
static void make_bound(void *arg)
{
	trial *x = arg;
	ir_program p = *x->p;

	p.output.at = &x->p->output.at[x->bounded];
	p.output.n = 1;
	x->bound = arena_make(x->a, shadow_run);
	shadow_program(x->a, &p, x->in, x->bound);
}

/* An element that differs: may rounding in another order explain it? */
static bool explained(trial *x, int32_t output, int64_t i, double d)
{
	const shadow *s;

	if (x->bound == NULL || x->bounded != output) {
		x->bounded = output;
		if (env_run(x->e, make_bound, x) != TN_OK) {
			x->bound = NULL;
			return false;
		}
	}
	s = &x->bound->value[x->p->output.at[output]][i];
	if (isinf(s->e))
		x->n->any++;
	else if (fabs(d) <= 2 * s->e)
		x->n->bounded++;
	else
		return false;
	return true;
}

static bool compare(trial *x, void *const *parts, bool by_output)
{
	for (int32_t o = 0; o < x->p->output.n; o++) {
		int32_t tensor = x->s->output.at[o];
		const sys_tensor *t = &x->s->tensor.at[tensor];

		for (int64_t i = 0; i < t->numel; i++) {
			double v = number_at(t->dtype, x->whole[tensor], i);
			double w = number_at(t->dtype,
				parts[by_output ? o : tensor], i);

			if (v == w || (isnan(v) && isnan(w))) {
				x->n->exact++;
			} else if (!explained(x, o, i, v - w)) {
				printf("%s[%lld] is %.17g by one process, "
				       "%.17g by all\n",
					t->name, (long long)i, v, w);
				return false;
			}
		}
	}
	return true;
}

static bool run_ranks(trial *x)
{
	ranks_case c = {.p = x->p,
		.mesh = &x->mesh,
		.in = x->in,
		.n_notes = x->note.n,
		.note = x->note.at};
	void **out = ranks_run(x->a, &c, &x->n->sent);

	return out != NULL && compare(x, out, true);
}

static void show(trial *x)
{
	str s = str_new(x->a);

	ir_system_print(&s, x->s);
	for (int32_t i = 0; i < x->s->tensor.n; i++) {
		str_printf(&s, "%s: ", x->s->tensor.at[i].name);
		shard_layout_print(&s, &x->plan->tensor[i].have, &x->mesh);
		str_add(&s, x->plan->tensor[i].fixed ? " fixed\n" : "\n");
	}
	for (int32_t i = 0; i < x->plan->why.n; i++)
		str_printf(&s, "%s\n", x->plan->why.at[i].text);
	str_add(&s, "mesh");
	for (int32_t i = 0; i < x->mesh.n; i++)
		str_printf(&s, " %lld", (long long)x->mesh.extent[i]);
	printf("%s\n", s.at);
}

static void count(trial *x)
{
	bool cut = false, partial = false, masked = false;

	for (int32_t i = 0; i < x->s->eqn.n; i++)
		for (int32_t m = 0; m < x->mesh.n; m++) {
			const shard_eqn *q = &x->plan->eqn[i];

			for (int32_t k = 0; k < q->unit->e.n_axes; k++)
				cut |= q->axis[k].n > 0;
			partial |= shard_is_partial(x->plan, i, m);
			masked |= q->masks >> m & 1;
		}
	x->n->passed++;
	x->n->cut += cut;
	x->n->partial += partial;
	x->n->masked += masked;
}

/* false: it failed */
static bool try_one(uint64_t seed, uint64_t index, bool verbose, tally *n)
{
	trial x = {.seed = seed,
		.index = index,
		.verbose = verbose,
		.n = n,
		.shifted = -1};
	bool ok = true;

	x.e = env_new();
	if (x.e == NULL)
		return false;
	x.a = arena_new(x.e);
	x.r = rng_new(seed ^ 77, index);
	if (env_run(x.e, prepare, &x) != TN_OK) {
		if (verbose)
			printf("%llu skipped: %s: %s\n",
				(unsigned long long)index,
				env_diag(x.e)->rule, env_diag(x.e)->text);
		n->skipped++;
	} else if (env_run(x.e, shard, &x) != TN_OK) {
		printf("%s: %s\n", env_diag(x.e)->rule, env_diag(x.e)->text);
		ok = false;
	} else {
		ok = compare(&x, x.parts, false);
		if (ok && !run_ranks(&x)) {
			/* cut in the same way, it was right as a whole */
			printf("first level that differs: localise\n");
			ok = false;
		}
	}
	if (!ok) {
		printf("program %llu of seed %llu fails\n",
			(unsigned long long)index, (unsigned long long)seed);
		show(&x);
	} else if (x.parts != NULL) {
		count(&x);
	}
	arena_free(x.a);
	env_free(x.e);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	int64_t n = 300, first = 0, failed = 0;
	bool verbose = false;
	tally t = {0};

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--verbose") == 0)
			verbose = true;
		else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--count") == 0)
			n = strtoll(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
			first = strtoll(argv[++i], NULL, 10);
	}
	for (int64_t i = first; i < first + n && failed < 3; i++)
		failed += !try_one(seed, (uint64_t)i, verbose, &t);
	printf("%lld of them cut, %lld with partial results, %lld with reads "
	       "of what each owns; elements: %lld equal, %lld within the "
	       "bounds, %lld without a bound; %lld bytes moved, %lld sent; windows got "
	       "%lld elements, of which %lld are read; %lld equations shift "
	       "the one axis that is cut, and get %lld; %lld placements read "
	       "back, %lld with parts of a mesh axis, %lld of elements\n",
		(long long)t.cut, (long long)t.partial, (long long)t.masked,
		(long long)t.exact, (long long)t.bounded, (long long)t.any,
		(long long)t.moved, (long long)t.sent, (long long)t.windows,
		(long long)t.wanted, (long long)t.shifts,
		(long long)t.shifted, (long long)t.texts,
		(long long)t.parts_of_axes, (long long)t.elements);
	printf("%lld passed, %lld failed, %lld skipped\n", (long long)t.passed,
		(long long)failed, (long long)t.skipped);
	return failed > 0 || t.cut * 3 < t.passed;
}
