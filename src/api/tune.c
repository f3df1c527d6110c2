/*
 * tune.c: tn_program_tune: searches faster schedules by measuring.
 *
 * Kernels that share a C function are tuned together, those with the longest
 * estimated time first. Each variant of a kernel (schedule/directive.h) is
 * verified like a text of a user, compiled, and run on the same inputs; its
 * results are compared with those of Tenon's own schedules; it is timed in
 * pairs with the best variant so far. A variant that is faster by more than the
 * noise is kept, and its neighbours are tried next. A variant that fails in any
 * step is dropped.
 *
 *     candidate -> text of a schedule -> passes -> C compiler -> run, run, ..
 */
#include "api/api.h"

#include "schedule/directive.h"

#include <math.h>
#include <stdlib.h>

enum {
	MOST_PAIRS = 31,
	LEAST_PAIRS = 5,
	FEW_PAIRS = 3, /* enough pairs to see that a variant is far slower */
	MOST_AT_ONCE = 8,
	ALIGN = 64
};
#define FASTER 0.97	    /* a smaller gain is noise */
#define HOPELESS 1.2	    /* given up after a few pairs above this part */
#define PAIR_SECONDS 0.05   /* seconds of pairs to measure per variant */
#define SECONDS 10.0	    /* default of the time limit */

/* Kernels that share a C function. */
struct group {
	int32_t n;
	int32_t *kernel; /* numbers of kernels */
	double expected; /* estimated seconds of all of them */
	loop_variant best;
	bool found;
	double before, after; /* measured seconds: at the start, now */
};

/* A compiled program with given schedules. */
struct made {
	arena *a;
	compilation *m;
	plan_exec *x;
	const plan_times *t;
	bool failed;
};

struct tune {
	tn_program *p;
	tn_context *c;
	arena *a;
	const void *const *given;
	tn_tune_options o;
	char **out;
	double end; /* time at which the search ends */
	const void **in;
	void **own; /* (inputs) memory of params, which runs may change */
	/* outputs of Tenon's own schedules, and of a variant */
	void **ref, **got;
	void **kept; /* (inputs) params after a run of Tenon's own schedules */
	struct made base; /* the best so far */
	compilation *groups; /* the groups, which all variants share */
	compile_options options;
	int32_t n_groups;
	struct group *group;
	tn_tune_state state;
	bool stopped;
};

static double now(void)
{
	return 1e-3 * compile_clock_ms();
}

/* ---- arrays ---- */

static void *aligned(arena *a, size_t n)
{
	char *at = arena_array(a, char, n + 2 * ALIGN);

	return at + (ALIGN - (uintptr_t)at % ALIGN) % ALIGN;
}

static void take_arrays(struct tune *t)
{
	const tn_program *p = t->p;
	int32_t n = p->ir->input.n;

	t->in = arena_array(t->a, const void *, n + 1);
	t->own = arena_array(t->a, void *, n + 1);
	t->kept = arena_array(t->a, void *, n + 1);
	t->ref = arena_array(t->a, void *, p->ir->output.n + 1);
	t->got = arena_array(t->a, void *, p->ir->output.n + 1);
	for (int32_t i = 0; i < n; i++) {
		t->in[i] = i < p->n_free ? t->given[i] : p->bound[i];
		if (p->in[i].n_elems > 0 && t->in[i] == NULL)
			env_fail(t->c->e, TN_EINVAL, "api.null", (loc){0},
				"the array of input %s is NULL", p->in[i].name);
		if (!p->in[i].is_param)
			continue;
		t->own[i] = aligned(t->a, p->in[i].n_bytes);
		t->kept[i] = aligned(t->a, p->in[i].n_bytes);
		memcpy(t->own[i], t->in[i], p->in[i].n_bytes);
	}
	for (int32_t i = 0; i < p->ir->output.n; i++) {
		t->ref[i] = aligned(t->a, p->out[i].n_bytes);
		t->got[i] = aligned(t->a, p->out[i].n_bytes);
	}
}

/* Runs the program once on the original inputs. */
static void run_once(struct tune *t, const struct made *m, void **out)
{
	const tn_program *p = t->p;
	const void **in = arena_array(m->a, const void *, p->ir->input.n + 1);

	for (int32_t i = 0; i < p->ir->input.n; i++) {
		in[i] = t->own[i] != NULL ? t->own[i] : t->in[i];
		if (t->own[i] != NULL && p->in[i].n_bytes > 0)
			memcpy(t->own[i], t->in[i], p->in[i].n_bytes);
	}
	plan_exec_run_host(m->x, in, p->version, out);
}

/*
 * The largest allowed difference of elements, relative to the largest element;
 * 0: none.
 */
static double tolerance(tn_dtype t)
{
	if (!dtype_is_float(t))
		return 0;
	return t == TN_F64 ? 1e-12 : t == TN_F32 ? 2e-5 : 2e-2;
}

static bool alike(const tn_value *v, const void *a, const void *b)
{
	double most = 0, apart = 0, tol = tolerance(v->dtype);

	if (memcmp(a, b, v->n_bytes) == 0)
		return true;
	for (int64_t i = 0; i < v->n_elems && tol > 0; i++) {
		double x = tn_get_f64(v->dtype, a, i);
		double y = tn_get_f64(v->dtype, b, i);

		if (x == y || (isnan(x) && isnan(y)))
			continue;
		if (!isfinite(x) || !isfinite(y))
			return false;
		apart = fmax(apart, fabs(x - y));
		most = fmax(most, fabs(x));
	}
	return tol > 0 && apart <= tol * most;
}

static bool same_enough(const loop_variant *v, const tn_value *of, const void *a,
	const void *b)
{
	return v->keeps_bits ? memcmp(a, b, of->n_bytes) == 0 : alike(of, a, b);
}

/*
 * Do the results agree with those of Tenon's own schedules, within the
 * tolerance of the variant?
 */
static bool agrees(const struct tune *t, const loop_variant *v)
{
	const tn_program *p = t->p;

	for (int32_t i = 0; i < p->ir->output.n; i++)
		if (!same_enough(v, &p->out[i], t->ref[i], t->got[i]))
			return false;
	for (int32_t i = 0; i < p->ir->input.n; i++)
		if (t->own[i] != NULL &&
			!same_enough(v, &p->in[i], t->kept[i], t->own[i]))
			return false;
	return true;
}

/* ---- schedules as texts ---- */

/*
 * Adds the text of kernel i with a variant; false: a directive does not apply.
 */
static bool put_kernel(struct tune *t, arena *a, int32_t i,
	const loop_variant *v, str *out)
{
	ir_system *s = t->groups->system;
	loop_kernel *k = loop_build(a, s, t->groups->groups->kernel.at[i], false);
	bool fits = loop_vary(k, t->options.machine, v);

	k->n_bufs = 0; /* locations follow from the tree */
	if (fits)
		loop_text(out, k, i);
	return fits;
}

static bool put_group(struct tune *t, arena *a, const struct group *g,
	const loop_variant *v, str *out)
{
	for (int32_t i = 0; i < g->n; i++)
		if (!put_kernel(t, a, g->kernel[i], v, out))
			return false;
	return true;
}

/*
 * Adds all kept schedules and variant v of group `of`; of -1: only the kept
 * ones.
 */
static bool put_all(struct tune *t, arena *a, int32_t of,
	const loop_variant *v, str *out)
{
	ir_trial trial = ir_trial_begin(t->groups->system, a);
	bool ok = true;

	str_printf(out, "schedule %s\n", t->options.machine->name);
	for (int32_t i = 0; i < t->n_groups && ok; i++) {
		const struct group *g = &t->group[i];

		if (i == of)
			ok = put_group(t, a, g, v, out);
		else if (g->found)
			ok = put_group(t, a, g, &g->best, out);
	}
	ir_trial_end(t->groups->system, &trial);
	return ok;
}

/* ---- one variant ---- */

struct attempt {
	struct tune *t;
	struct made made;
	str text;
	loop_variant v;
	int32_t of; /* index of the group */
};

/* Runs the passes down to C. */
static void build(void *arg)
{
	struct attempt *q = arg;
	struct tune *t = q->t;
	compile_options o = t->options;
	ir_trial trial;

	q->text = str_new(q->made.a);
	if (!put_all(t, q->made.a, q->of, &q->v, &q->text))
		env_fail(t->c->e, TN_EINVAL, "tune.fit", (loc){0},
			"an edit does not fit all kernels of a group");
	o.schedule = (compile_text){q->text.at, "tune", q->text.n, NULL};
	q->made.m = compile_again(q->made.a, t->groups, &o);
	trial = ir_trial_begin(t->groups->system, q->made.a);
	compile_to(q->made.m, TN_LEVEL_C);
	ir_trial_end(t->groups->system, &trial);
}

static void load(void *arg)
{
	struct attempt *q = arg;
	struct tune *t = q->t;

	q->made.x = api_compile(t->c, q->made.a, q->made.m);
	q->made.t = plan_exec_time(q->made.x);
	run_once(t, &q->made, t->got);
}

/* Runs a step of a variant. Only a lack of memory ends the search. */
static bool attempt(struct attempt *q, void (*fn)(void *arg))
{
	struct tune *t = q->t;
	ir_trial before = ir_trial_begin(t->groups->system, t->a);
	tn_status s = env_run(t->c->e, fn, q);

	ir_trial_end(t->groups->system, &before);
	if (s == TN_ENOMEM)
		env_rethrow(t->c->e);
	return s == TN_OK;
}

/* Seconds of the group's kernels in all runs so far. */
static double seconds_of(const struct tune *t, const struct made *m,
	const struct group *g)
{
	const plan *p = m->m->plan;
	double sum = 0;

	for (int32_t l = 0; l < p->launch.n; l++)
		for (int32_t i = 0; i < g->n; i++)
			if (p->launch.at[l].source ==
				t->groups->groups->kernel.at[g->kernel[i]])
				sum += m->t->total[l];
	return sum;
}

static double timed(struct tune *t, const struct made *m, const struct group *g)
{
	double before = seconds_of(t, m, g);

	run_once(t, m, t->got);
	return seconds_of(t, m, g) - before;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v, int32_t n)
{
	qsort(v, (size_t)n, sizeof *v, by_size);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

/*
 * Measures pairs in turn: is the variant faster than the best by more than
 * noise? Sets times to the medians of the best and of the variant.
 */
static bool is_faster(struct tune *t, const struct group *g,
	const struct made *m, double *times)
{
	double old[MOST_PAIRS], new[MOST_PAIRS], a[MOST_PAIRS], b[MOST_PAIRS];
	double begin = now();
	int32_t n = 0, wins = 0;

	while (n < MOST_PAIRS && (n < LEAST_PAIRS || now() - begin < PAIR_SECONDS)) {
		bool first = n % 2 == 0;

		if (first)
			old[n] = timed(t, &t->base, g);
		new[n] = timed(t, m, g);
		if (!first)
			old[n] = timed(t, &t->base, g);
		wins += new[n] < old[n];
		n++;
		memcpy(a, old, (size_t)n * sizeof *a);
		memcpy(b, new, (size_t)n * sizeof *b);
		if (n == FEW_PAIRS && median(b, n) > HOPELESS * median(a, n))
			return false;
	}
	times[0] = median(a, n);
	times[1] = median(b, n);
	return times[1] < FASTER * times[0] && 4 * wins >= 3 * n;
}

/* ---- the search ---- */

static bool goes_on(struct tune *t, double until)
{
	t->state.seconds = now() - (t->end - t->o.seconds);
	if (!t->stopped && t->o.progress != NULL) {
		api_out(t->c);
		t->stopped = !t->o.progress(t->o.arg, &t->state);
		api_back(t->c);
	}
	return !t->stopped && now() < until;
}

static void drop(struct made *m)
{
	if (m->a != NULL)
		arena_free(m->a);
	*m = (struct made){0};
}

/* Has it the same C as the best? Then there is nothing to measure. */
static bool is_same(const struct tune *t, const struct made *m)
{
	const plan *a = t->base.m->plan, *b = m->m->plan;

	for (int32_t i = 0; i < b->unit.n; i++)
		if (i >= a->unit.n ||
			strcmp(a->unit.at[i].c, b->unit.at[i].c) != 0)
			return false;
	return a->unit.n == b->unit.n;
}

/* Runs a variant, and times it if its results are right. */
static bool try_one(struct tune *t, struct attempt *q)
{
	struct group *g = &t->group[q->of];
	double times[2];

	if (is_same(t, &q->made))
		return false;
	t->state.n_tried++;
	if (!attempt(q, load) || !agrees(t, &q->v)) {
		t->state.n_refused++;
		return false;
	}
	if (!is_faster(t, g, &q->made, times))
		return false;
	if (!g->found)
		g->before = times[0];
	g->after = times[1];
	g->best = q->v;
	g->found = true;
	t->state.n_kept++;
	drop(&t->base);
	t->base = q->made;
	q->made = (struct made){0};
	return true;
}

/* Compiles the C texts of variants in parallel, after all passes. */
static void compile_all(struct tune *t, struct attempt *q, int32_t n)
{
	arena *a = arena_child(t->a);
	VEC(const char *) text = {0};
	run_lib **lib;

	for (int32_t i = 0; i < n; i++)
		for (int32_t u = 0; !q[i].made.failed &&
				    u < q[i].made.m->plan->unit.n &&
				    !is_same(t, &q[i].made);
			u++)
			*vec_push(a, &text) = q[i].made.m->plan->unit.at[u].c;
	lib = arena_array(a, run_lib *, text.n + 1);
	run_compile(api_jit(t->c), text.at, text.n, lib);
	arena_free(a);
}

struct batch {
	struct tune *t;
	struct attempt *q;
	int32_t n;
};

static void compile_batch(void *arg)
{
	struct batch *b = arg;

	compile_all(b->t, b->q, b->n);
}

/*
 * Tries variants of a group in order; returns the index of the last kept one,
 * or -1 if none was faster.
 */
static int32_t try_some(struct tune *t, int32_t of, const loop_variant *v,
	int32_t n, double until)
{
	struct attempt q[MOST_AT_ONCE] = {0};
	struct batch b = {t, q, n};
	int32_t kept = -1;

	for (int32_t i = 0; i < n; i++) {
		q[i] = (struct attempt){.t = t, .of = of, .v = v[i]};
		q[i].made.a = arena_child(t->a);
		q[i].made.failed = !attempt(&q[i], build);
		if (q[i].made.failed) {
			t->state.n_tried++;
			t->state.n_refused++;
		}
	}
	/* if one cannot be compiled, each is compiled alone later */
	if (env_run(t->c->e, compile_batch, &b) == TN_ENOMEM)
		env_rethrow(t->c->e);
	for (int32_t i = 0; i < n && goes_on(t, until); i++)
		if (!q[i].made.failed && kept < 0 && try_one(t, &q[i]))
			kept = i;
	for (int32_t i = 0; i < n; i++)
		drop(&q[i].made);
	return kept;
}

/*
 * The schedule of the group's first kernel as text, after which names of copies
 * are free again.
 */
static const char *text_of(
	struct tune *t, const struct group *g, const loop_variant *v)
{
	ir_trial trial = ir_trial_begin(t->groups->system, t->a);
	str s = str_new(t->a);

	(void)put_kernel(t, t->a, g->kernel[0], v, &s);
	ir_trial_end(t->groups->system, &trial);
	return s.at;
}

/* Collects recipes that give another tree than Tenon's own. */
static int32_t other_recipes(
	struct tune *t, const struct group *g, loop_variant *out)
{
	const loop_variant own = {.keeps_bits = true};
	const char *text = text_of(t, g, &own);
	loop_variant v;
	int32_t n = 0;

	for (int32_t i = 0; loop_variant_at(i, &v); i++)
		if ((v.keeps_bits || !t->o.same_bits) &&
			strcmp(text, text_of(t, g, &v)) != 0)
			out[n++] = v;
	return n;
}

/* Rotates the list so that its element i is first. */
static void rotate(arena *a, loop_variant *v, int32_t n, int32_t i)
{
	loop_variant *old = arena_copy(a, v, (size_t)n * sizeof *v);

	for (int32_t j = 0; j < n; j++)
		v[j] = old[(i + j) % n];
}

/*
 * Collects all variants one step away from v; those after `from` first, because
 * earlier ones were tried already.
 */
static int32_t steps_from(struct tune *t, const struct group *g,
	const loop_variant *v, int32_t from, loop_variant **out)
{
	ir_system *s = t->groups->system;
	ir_trial trial = ir_trial_begin(s, t->a);
	loop_kernel *k = loop_build(
		t->a, s, t->groups->groups->kernel.at[g->kernel[0]], false);
	directives list = {0};
	int32_t n = 0;
	loop_variant other;

	if (loop_vary(k, t->options.machine, v) && v->n_edits < LOOP_MAX_EDITS)
		loop_neighbours(t->a, k, &list);
	*out = arena_array(t->a, loop_variant, list.n + LOOP_MAX_VARIANTS);
	if (v->n_edits == 0 && v->without == 0 &&
		v->copies == LOOP_COPIES_CHOSEN)
		n = other_recipes(t, g, *out);
	for (int32_t i = 0; i < list.n; i++) {
		bool keeps = loop_keeps_bits(k, &list.at[i]);

		if (!keeps && t->o.same_bits)
			continue;
		other = *v;
		other.keeps_bits = v->keeps_bits && keeps;
		other.edit[other.n_edits++] = list.at[i];
		(*out)[n++] = other;
	}
	ir_trial_end(s, &trial);
	if (n > 0)
		rotate(t->a, *out, n, from % n);
	return n;
}

static void tune_group(struct tune *t, int32_t of, double until)
{
	struct group *g = &t->group[of];
	loop_variant at = {.keeps_bits = true}, *v;
	int32_t at_once = run_cores(), n, from = 0;
	bool again = true;

	at_once = at_once < 2 ? 2 : at_once;
	at_once = at_once > MOST_AT_ONCE ? MOST_AT_ONCE : at_once;
	t->state.kernel = t->groups->groups->kernel.at[g->kernel[0]]->name;
	while (again && goes_on(t, until)) {
		n = steps_from(t, g, &at, from, &v);
		again = false;
		for (int32_t i = 0; i < n && !again && goes_on(t, until);
			i += at_once) {
			int32_t kept = try_some(t, of, v + i,
				n - i < at_once ? n - i : at_once, until);

			again = kept >= 0;
			from += again ? i + kept : 0;
		}
		if (again)
			at = g->best;
	}
}

/* ---- groups ---- */

static int by_expected(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return (x->expected < y->expected) - (x->expected > y->expected);
}

static void find_groups(struct tune *t)
{
	const plan *p = t->base.m->plan;
	int32_t n = t->groups->groups->kernel.n;

	t->group = arena_array(t->a, struct group, p->kernel.n + 1);
	t->n_groups = p->kernel.n;
	for (int32_t i = 0; i < p->kernel.n; i++)
		t->group[i].kernel = arena_array(t->a, int32_t, n + 1);
	for (int32_t l = 0; l < p->launch.n; l++)
		for (int32_t i = 0; i < n && p->launch.at[l].kernel >= 0; i++) {
			struct group *g = &t->group[p->launch.at[l].kernel];

			if (p->launch.at[l].source !=
				t->groups->groups->kernel.at[i])
				continue;
			g->kernel[g->n++] = i;
			g->expected += compile_predicted(t->base.m, i, 0);
		}
	qsort(t->group, (size_t)t->n_groups, sizeof *t->group, by_expected);
}

/*
 * Compiles and measures Tenon's own schedules, with which variants are
 * compared.
 */
static void begin(struct tune *t)
{
	compile_options o = api_compile_options(t->c);
	const run_target *target;
	ir_trial trial;

	if (o.machine == NULL) {
		target = run_jit_target(api_jit(t->c));
		o.machine = api_machine(target);
	}
	o.plan.single = true;
	o.dump = (compile_dump){0};
	o.log = NULL;
	o.schedule = (compile_text){0};
	o.n_pinned = NULL;
	t->options = o;
	take_arrays(t);
	t->groups = compile_new(t->a, t->p->ir, &o);
	compile_to(t->groups, TN_LEVEL_GROUPS);
	t->base.a = arena_child(t->a);
	t->base.m = compile_again(t->base.a, t->groups, &o);
	trial = ir_trial_begin(t->groups->system, t->base.a);
	compile_to(t->base.m, TN_LEVEL_C);
	find_groups(t);
	ir_trial_end(t->groups->system, &trial);
	t->base.x = api_compile(t->c, t->base.a, t->base.m);
	t->base.t = plan_exec_time(t->base.x);
	run_once(t, &t->base, t->ref);
	for (int32_t i = 0; i < t->p->ir->input.n; i++)
		if (t->own[i] != NULL)
			memcpy(t->kept[i], t->own[i], t->p->in[i].n_bytes);
}

/* Writes comments for readers, and the kernels with faster schedules. */
static void finish(struct tune *t)
{
	arena *a = arena_child(t->a);
	ir_trial trial = ir_trial_begin(t->groups->system, a);
	str s = str_new(a);

	str_printf(&s, "schedule %s\n", t->options.machine->name);
	for (int32_t i = 0; i < t->n_groups; i++) {
		const struct group *g = &t->group[i];

		if (!g->found)
			continue;
		str_printf(&s, "\n// %.1f us, and %.1f us before: ",
			1e6 * g->after, 1e6 * g->before);
		loop_variant_text(&s, &g->best);
		str_addc(&s, '\n');
		(void)put_group(t, a, g, &g->best, &s);
	}
	ir_trial_end(t->groups->system, &trial);
	*t->out = api_text(t->c, &s);
	arena_free(a);
}

static void tune(void *arg)
{
	struct tune *t = arg;
	double rest = 0;
	tn_stats stats;

	t->c = t->p->c;
	stats = t->c->stats;
	api_want_shapes(t->p);
	if (t->c->o.interp)
		env_fail(t->c->e, TN_EINVAL, "tune.interp", (loc){0},
			"the interpreter has no kernels whose schedules could "
			"be measured: make a context without interp");
	if (t->p->n_free > 0)
		api_want(t->c, t->given, "inputs");
	t->o.seconds = t->o.seconds > 0 ? t->o.seconds : SECONDS;
	t->a = arena_child(t->p->a);
	t->end = now() + t->o.seconds;
	begin(t);
	for (int32_t i = 0; i < t->n_groups; i++)
		rest += t->group[i].expected;
	t->state.n_kernels = t->n_groups;
	for (int32_t i = 0; i < t->n_groups && goes_on(t, t->end); i++) {
		double share = rest > 0 ? t->group[i].expected / rest : 1;
		double left = t->end - now();

		t->state.number = i;
		/* unused time of a group goes to the later ones */
		tune_group(t, i, now() + left * (share < 0.1 ? 0.1 : share));
		rest -= t->group[i].expected;
	}
	finish(t);
	t->c->stats = stats; /* do not count the programs of the search */
}

tn_status tn_program_tune(char **out, tn_program *p, const void *const *inputs,
	const tn_tune_options *o)
{
	tn_status s;

	*out = NULL;
	if (p == NULL)
		return api_null("the program");

	struct tune t = {.p = p, .given = inputs, .out = out};

	if (o != NULL)
		t.o = *o;
	s = api_call(p->c, tune, &t);
	arena_free(t.a);
	return s;
}
