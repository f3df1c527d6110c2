/*
 * compile.c: the pipeline, from a program to C texts and a call list. One line
 * per pass; after each its text for TENON_DUMP (dump.c), its verifier, and a
 * line for whoever listens.
 *
 *   program --lower--> system --fuse--> groups --loops--> MapExpr
 *           --kern--> kernels --emit--> C functions
 *           --plan--> call list, buffers, C texts
 */
#include "engine/engine.h"
#include "schedule/estimate.h"

#include <time.h>

static void lower(compilation *c)
{
	c->system = ir_lower(c->a, c->x, c->program);
}

static void check_system(compilation *c)
{
	ir_system_verify(c->system);
}

/* The machine by whose costs programs are partitioned. */
static const machine *pricing(const compilation *c)
{
	const machine *m = c->o.machine;

	if (c->o.pricing != NULL)
		return c->o.pricing;
	return m != NULL ? machine_find(m->priced_as) : machine_at(0);
}

/* What a kernel that fusion thinks of would take, scheduled. */
static fuse_price price(void *arg, arena *a, const fuse_kernel *k)
{
	compilation *c = arg;
	ir_trial trial = ir_trial_begin(c->system, a);
	loop_kernel *l = loop_build(a, c->system, k, false);
	loop_estimate e;

	loop_schedule(l, pricing(c));
	loop_estimate_of(l, &e);
	ir_trial_end(c->system, &trial);
	return (fuse_price){loop_estimate_seconds(&e, 0),
		loop_term_name(loop_estimate_term(&e))};
}

/* The equation that makes the tensor of this name. */
static int32_t maker_of(const compilation *c, const char *name)
{
	const ir_system *s = c->system;

	for (int32_t i = 0; i < s->tensor.n; i++)
		if (s->tensor.at[i].eqn >= 0 &&
			strcmp(s->tensor.at[i].name, name) == 0)
			return s->tensor.at[i].eqn;
	env_fail(arena_env(c->a), TN_EINVAL, "groups.name", (loc){0},
		"no equation makes a tensor %.100s; `tenon explain "
		"--level=system` has the names of all",
		name);
}

static const fuse_pair *pairs_of(compilation *c)
{
	fuse_pair *p = arena_array(c->a, fuse_pair, c->o.n_apart + 1);

	for (int32_t i = 0; i < c->o.n_apart; i++) {
		const compile_pair *o = &c->o.apart[i];

		p[i] = (fuse_pair){maker_of(c, o->first), maker_of(c, o->then)};
		if (p[i].first == p[i].then)
			env_fail(arena_env(c->a), TN_EINVAL, "groups.pair",
				(loc){0},
				"one equation makes %.100s and %.100s: it "
				"cannot be kept apart from itself",
				o->first, o->then);
	}
	return p;
}

static void fuse(compilation *c)
{
	fuse_pricing p = {price, c};
	fuse_options o = {.no_fusion = c->o.no_fusion,
		.settle = c->o.settle,
		.price = &p,
		.n_apart = c->o.n_apart,
		.apart = pairs_of(c)};

	c->groups = fuse_partition(c->a, c->system, pricing(c), &o);
}

static void check_groups(compilation *c)
{
	fuse_verify(c->groups);
}

/* What is pinned of a level; NULL: nothing. */
static kernel_texts *pinned_of(
	compilation *c, const char *level, const compile_text *t)
{
	return t->at == NULL ? NULL
			     : kernel_texts_new(c->a, level, t->at, t->n,
				       t->file, c->o.machine->name);
}

static void loops(compilation *c)
{
	int32_t n = c->groups->kernel.n;
	kernel_texts *pinned = pinned_of(c, "schedule", &c->o.schedule);

	c->loops = arena_array(c->a, loop_kernel *, n + 1);
	for (int32_t i = 0; i < n; i++) {
		const fuse_kernel *k = c->groups->kernel.at[i];

		if (k->opaque)
			continue;
		c->loops[i] = loop_build(c->a, c->system, k, false);
		if (pinned == NULL ||
			!loop_text_apply(pinned, c->loops[i], i, c->o.machine))
			loop_schedule(c->loops[i], c->o.machine);
	}
	if (pinned != NULL)
		kernel_texts_end(pinned, n);
}

static void check_loops(compilation *c)
{
	for (int32_t i = 0; i < c->groups->kernel.n; i++)
		if (c->loops[i] != NULL) {
			loop_verify(c->loops[i]);
			loop_verify_schedule(c->loops[i]);
		}
}

static void kern(compilation *c)
{
	int32_t n = c->groups->kernel.n;
	kernel_texts *pinned = pinned_of(c, "kern", &c->o.kern);

	c->kernels = arena_array(c->a, kern_kernel *, n + 1);
	for (int32_t i = 0; i < n; i++) {
		kern_kernel *k;

		if (c->loops[i] == NULL)
			continue;
		c->kernels[i] = kern_lower(c->a, c->loops[i]);
		k = pinned == NULL
			    ? NULL
			    : kern_text_apply(pinned, c->kernels[i], i);
		if (k != NULL)
			c->kernels[i] = k;
	}
	if (pinned != NULL)
		kernel_texts_end(pinned, n);
}

static void emit(compilation *c)
{
	int32_t n = c->groups->kernel.n;

	c->code = arena_array(c->a, const c_kernel *, n + 1);
	for (int32_t i = 0; i < n; i++)
		if (c->kernels[i] != NULL)
			c->code[i] = c_print(c->a, c->kernels[i]);
}

static void make_plan(compilation *c)
{
	c->plan = plan_build(c->a, c->groups, c->code, &c->o.plan);
}

static void check_plan(compilation *c)
{
	plan_verify(c->plan);
}

/* ---- what passes have made, as text ---- */

static void print_program(str *out, compilation *c)
{
	ir_program_print(out, c->program);
}

static void print_system(str *out, compilation *c)
{
	ir_system_print(out, c->system);
}

static void print_groups(str *out, compilation *c)
{
	fuse_print(out, c->groups, false);
}

static void print_code(str *out, compilation *c)
{
	for (int32_t i = 0; i < c->groups->kernel.n; i++)
		if (c->code[i] != NULL)
			str_printf(out, "%s\n", c->code[i]->c);
}

static void print_plan(str *out, compilation *c)
{
	plan_print(out, c->plan, false);
}

/* ---- the passes ---- */

static const struct pass {
	const char *name;
	tn_level needed_for; /* this level and all behind it */
	void (*run)(compilation *c);
	void (*print)(str *out, compilation *c);
	void (*verify)(compilation *c);
} passes[COMPILE_N_PASSES] = {
	{"lower", TN_LEVEL_SYSTEM, lower, print_system, check_system},
	{"fuse", TN_LEVEL_GROUPS, fuse, print_groups, check_groups},
	{"loops", TN_LEVEL_SCHEDULE, loops, compile_print_schedule,
		check_loops},
	{"kern", TN_LEVEL_KERN, kern, compile_print_kern, NULL},
	{"emit", TN_LEVEL_PLAN, emit, print_code, NULL},
	{"plan", TN_LEVEL_PLAN, make_plan, print_plan, check_plan},
};

/* What is compiled, before any pass, is number 0. */
const char *compile_dump_name(int32_t i)
{
	if (i == 0)
		return "program";
	return i <= COMPILE_N_PASSES ? passes[i - 1].name : NULL;
}

double compile_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

compile_options compile_options_default(const machine *m)
{
	compile_options o = {.verify = true, .machine = m};

	o.plan.max_units = 1;
	return o;
}

compilation *compile_new(
	arena *a, ir_program *program, const compile_options *o)
{
	compilation *c = arena_make(a, compilation);

	c->a = a;
	c->o = *o;
	c->program = program;
	c->x = ix_new(a);
	return c;
}

compilation *compile_new_system(
	arena *a, ir_system *s, const compile_options *o)
{
	compilation *c = compile_new(a, NULL, o);

	c->x = s->x;
	c->system = s;
	c->n_done = 1; /* lowered */
	return c;
}

static void log_pass(const compilation *c, int32_t i)
{
	str s;

	if (c->o.log == NULL)
		return;
	s = str_new(c->a);
	str_printf(&s, "%s: %.3f ms", passes[i].name, c->ms[i]);
	if (c->groups != NULL)
		str_printf(&s, ", %d kernels", (int)c->groups->kernel.n);
	else
		str_printf(&s, ", %d equations", (int)c->system->eqn.n);
	c->o.log(c->o.log_arg, s.at);
}

double compile_predicted(const compilation *c, int32_t k, int32_t threads)
{
	loop_estimate e;

	if (c->loops[k] == NULL)
		return 0;
	loop_estimate_of(c->loops[k], &e);
	return loop_estimate_seconds(&e, threads);
}

const char *compile_term(const compilation *c, int32_t k)
{
	loop_estimate e;

	if (c->loops[k] == NULL)
		return "a function of the library";
	loop_estimate_of(c->loops[k], &e);
	return loop_term_name(loop_estimate_term(&e));
}

void compile_to(compilation *c, tn_level level)
{
	if (c->n_done == 0 && c->number == 0 && level > TN_LEVEL_PROGRAM)
		compile_dump_text(c, 0, print_program);
	while (c->n_done < COMPILE_N_PASSES &&
		passes[c->n_done].needed_for <= level) {
		int32_t i = c->n_done;
		double start = compile_clock_ms();

		passes[i].run(c);
		c->ms[i] = compile_clock_ms() - start;
		compile_dump_text(c, i + 1, passes[i].print);
		if (c->o.verify && passes[i].verify != NULL)
			passes[i].verify(c);
		log_pass(c, i);
		c->n_done++;
	}
}
