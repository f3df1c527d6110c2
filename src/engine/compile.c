/*
 * compile.c: the pipeline from a program to C texts and launches. The table below has
 * a line for each pass; after a pass come its text for TENON_DUMP (dump.c), its
 * verifier, and a line for the log.
 *
 *   program --lower, prune--> system --localise--> a system for each phase
 *           --residues, quotients, scales, recompute, tf32--> system --settle--> system, order
 *           --fuse--> groups
 *           --loops, schedule--> MapExpr --kern--> kernels --emit--> C functions
 *           --plan--> launches, buffers, C texts
 *
 * There is no pass for gradients: tape/ records the calls of adjoints, so a
 * program is differentiated before it is compiled.
 */
#include "engine/text.h"
#include "schedule/estimate.h"

#include <time.h>

static void check_program(compilation *c)
{
	ir_program_verify(c->program);
}

static void lower(compilation *c)
{
	c->system = ir_lower_all(c->a, c->x, c->program);
}

static void prune(compilation *c)
{
	c->system = ir_prune(c->system);
	c->system->in_rounds = c->o.in_loop || c->program->in_rounds;
}

static void check_system(compilation *c)
{
	ir_system_verify(c->system);
}

/* ---- parts of several processes ---- */

static bool is_placed(const compilation *c)
{
	return c->o.layout != NULL;
}

/* Finds the equations of this process, between moves. */
static void localise(compilation *c)
{
	const compile_layout *l = c->o.layout;
	shard_plan *p = shard_plan_new(c->a, c->system, l->mesh);
	compile_options o = c->o;

	l->place(l->arg, p);
	shard_propagate(p);
	shard_scatter_sums(p);
	c->local = shard_localise(c->a, p, l->rank, l->keep);
	o.layout = NULL;
	c->phase = arena_array(c->a, compilation *, c->local->phase.n + 1);
	for (int32_t i = 0; i < c->local->phase.n; i++)
		c->phase[i] = compile_new_system(
			c->a, c->local->phase.at[i].s, &o);
}

/* Its equations are those of one process. */
static bool is_whole(const compilation *c)
{
	return !is_placed(c);
}

/* ---- kernels ---- */

/* Finds the memory of each write, and the readers that it waits for. */
static void settle(compilation *c)
{
	fuse_options o = {.settle = c->o.settle};

	c->settled = fuse_settle(c->a, c->system, &o);
}

/* The machine whose costs determine the partition. */
static const machine *pricing(const compilation *c)
{
	const machine *m = c->o.machine;

	if (c->o.pricing != NULL)
		return c->o.pricing;
	return m != NULL ? machine_find(m->priced_as) : machine_at(0);
}

/* Gives each residue of a strided axis an equation of its own. */
static void residues(compilation *c)
{
	const machine_product *m = &pricing(c)->product;

	ir_residues(c->system, m->most_residues, (double)m->residue_work);
}

/* Divides sums of long rows instead of their terms: scores, masked scores and weights
 * of a row are what the schedule would keep. */
static void quotients(compilation *c)
{
	double keys = machine_long_row(pricing(c)) / (3 * sizeof(float));

	c->system = eqn_divide_sums(c->system, (int64_t)keys + 1);
}

/* Moves factors of rows away from values of two bytes that are multiplied. */
static void scales(compilation *c)
{
	c->system = ir_move_scales(c->system);
}

/* Rounds factors as matrix instructions take them. */
static void tf32(compilation *c)
{
	ir_round_factors(c->system);
}

/* Did the user ask for it, and does the machine gain by it? */
static bool is_rounded(const compilation *c)
{
	const machine *m = c->o.machine;

	return c->o.tf32 && m != NULL && m->matrix.rows > 0 && is_whole(c);
}

/* Computes large squares again where they are read: those that would not be in a
 * thread's part of the last cache. */
static void recompute(compilation *c)
{
	const machine *m = pricing(c);
	sys_recompute limit = {.terms = m->product.again_terms,
		.bytes = (double)m->memory[MACHINE_L3].bytes / m->threads};

	c->system = ir_recompute(c->system, &limit);
}

/* The estimated time of a kernel that fusion considers, with its schedule. */
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
		loop_term_name(loop_estimate_term(&e)),
		loop_estimate_seconds(&e, 1)};
}

/* The equation that computes the tensor of this name. */
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

static const fuse_pair *pairs_of(compilation *c, int32_t *n)
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
	*n = c->o.n_apart;
	return p;
}

static void fuse(compilation *c)
{
	fuse_pricing *p = arena_make(c->a, fuse_pricing); /* fuse_explain asks it */
	fuse_options o = {.no_fusion = c->o.no_fusion, .price = p};

	o.apart = pairs_of(c, &o.n_apart);
	*p = (fuse_pricing){price, c};
	c->groups = fuse_partition_settled(c->settled, pricing(c), &o);
}

static void check_groups(compilation *c)
{
	fuse_verify(c->groups);
}

/* The pinned texts of a level, or NULL. */
static kernel_texts *pinned_of(
	compilation *c, const char *level, const compile_text *t)
{
	compile_text part;

	bool found = t->at != NULL && compile_text_part(c->a, t, &part);

	if (!found && t->at != NULL && c->o.n_pinned != NULL) {
		compile_text whole = *t; /* of a program that is this body */

		whole.body = NULL;
		found = compile_text_part(c->a, &whole, &part);
	}
	if (!found)
		return NULL;
	return kernel_texts_new(c->a, level, part.at, part.n, part.file,
		c->o.machine->name);
}

/* ---- schedules, pass by pass ---- */

enum { FIRST_OF_SCHEDULE = COMPILE_N_PASSES, MOST_PASSES = 20 };

struct watch {
	compilation *c;
	int32_t kernel;
};

/* The tree of a kernel behind a pass, for tests and for TENON_DUMP. */
static void keep_text(void *arg, loop_kernel *k, int32_t pass)
{
	const struct watch *w = arg;
	const compile_options *o = &w->c->o;

	if (o->after != NULL)
		o->after(o->after_arg, w->c, FIRST_OF_SCHEDULE + pass, k);
	if ((w->c->o.dump.passes >> (FIRST_OF_SCHEDULE + pass) & 1) != 0)
		loop_text(&w->c->after[pass], k, w->kernel);
}

static void schedule_one(compilation *c, int32_t i)
{
	struct watch w = {c, i};
	const loop_recipe r = {
		.without = c->o.without, .after = keep_text, .arg = &w};

	if (c->after == NULL && c->o.after == NULL && c->o.without == 0)
		loop_schedule(c->loops[i], c->o.machine);
	else
		loop_schedule_by(c->loops[i], c->o.machine, &r);
}

static void begin_texts(compilation *c)
{
	if (c->o.dump.passes >> FIRST_OF_SCHEDULE == 0)
		return;
	c->after = arena_array(c->a, str, MOST_PASSES);
	for (int32_t i = 0; i < MOST_PASSES; i++)
		c->after[i] = str_new(c->a);
}

/* The text that c->after points to. */
static void print_first(str *out, compilation *c)
{
	str_addn(out, c->after->at, c->after->n);
}

static void dump_texts(compilation *c)
{
	str *all = c->after;

	for (int32_t i = 0; all != NULL && loop_pass_name(i) != NULL; i++) {
		c->after = &all[i];
		compile_dump_text(c, FIRST_OF_SCHEDULE + i, loop_pass_name(i),
			print_first);
	}
	c->after = NULL;
}

static void loops(compilation *c)
{
	int32_t n = c->groups->kernel.n;

	c->loop_arena = arena_child(c->a);
	c->loops = arena_array(c->a, loop_kernel *, n + 1);
	for (int32_t i = 0; i < n; i++)
		if (!c->groups->kernel.at[i]->opaque)
			c->loops[i] = loop_build(c->loop_arena, c->system,
				c->groups->kernel.at[i], false);
}

/* The pinned schedules, or NULL: see compile_options.n_pinned. */
static kernel_texts *pinned_schedule(compilation *c)
{
	int32_t n = c->groups->kernel.n;
	kernel_texts *pinned = pinned_of(c, "schedule", &c->o.schedule);
	const char **name;

	if (c->o.schedule.at != NULL && c->o.n_pinned == NULL)
		compile_check_bodies(c, "schedule", &c->o.schedule);
	if (pinned == NULL || c->o.n_pinned == NULL)
		return pinned;
	name = arena_array(c->a, const char *, n + 1);
	for (int32_t i = 0; i < n; i++)
		name[i] = c->loops[i] != NULL ? c->loops[i]->name : NULL;
	if (!kernel_texts_fit(pinned, n, name))
		return NULL;
	++*c->o.n_pinned;
	return pinned;
}

static void schedule(compilation *c)
{
	int32_t n = c->groups->kernel.n;
	kernel_texts *pinned = pinned_schedule(c);

	begin_texts(c);
	for (int32_t i = 0; i < n; i++)
		if (c->loops[i] != NULL &&
			(pinned == NULL || !loop_text_apply(pinned, c->loops[i],
						   i, c->o.machine)))
			schedule_one(c, i);
	dump_texts(c);
	if (pinned != NULL)
		kernel_texts_end(pinned, n);
}

static void check_loops(compilation *c)
{
	for (int32_t i = 0; i < c->groups->kernel.n; i++)
		if (c->loops[i] != NULL)
			loop_verify(c->loops[i]);
}

static void check_schedule(compilation *c)
{
	check_loops(c);
	for (int32_t i = 0; i < c->groups->kernel.n; i++)
		if (c->loops[i] != NULL)
			loop_verify_schedule(c->loops[i]);
}

static void kern(compilation *c)
{
	int32_t n = c->groups->kernel.n;
	kernel_texts *pinned = pinned_of(c, "kern", &c->o.kern);

	c->kern_arena = arena_child(c->a);
	if (c->o.kern.at != NULL)
		compile_check_bodies(c, "kern", &c->o.kern);
	c->kernels = arena_array(c->a, kern_kernel *, n + 1);
	for (int32_t i = 0; i < n; i++) {
		kern_kernel *k;

		if (c->loops[i] == NULL)
			continue;
		c->kernels[i] = kern_lower(c->kern_arena, c->loops[i]);
		k = pinned == NULL
			    ? NULL
			    : kern_text_apply(pinned, c->kernels[i], i);
		if (k != NULL)
			c->kernels[i] = k;
	}
	if (pinned != NULL)
		kernel_texts_end(pinned, n);
}

/* Proofs of bounds and races take longer than what they check: on request. */
static void check_kern(compilation *c)
{
	for (int32_t i = 0; c->o.verify_kern && i < c->groups->kernel.n; i++)
		if (c->kernels[i] != NULL)
			kern_verify_text(c->kernels[i], i);
}

static void emit(compilation *c)
{
	const c_target *t = c->o.target != NULL ? c->o.target : &c_gnu;
	int32_t n = c->groups->kernel.n;

	c->code = arena_array(c->a, const c_kernel *, n + 1);
	for (int32_t i = 0; i < n; i++)
		if (c->kernels[i] != NULL)
			c->code[i] = t->print(c->a, c->kernels[i]);
}

static void make_plan(compilation *c)
{
	c->o.plan.target = c->o.target;
	c->plan = plan_build(c->a, c->groups, c->code, &c->o.plan);
}

static void check_plan(compilation *c)
{
	plan_verify(c->plan);
}

void compile_drop_kernels(compilation *c)
{
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		c->kernels[i] = NULL;
		c->loops[i] = NULL;
	}
	arena_free(c->kern_arena);
	arena_free(c->loop_arena);
	c->kern_arena = c->loop_arena = NULL;
	for (int32_t i = 0; i < c->body.n; i++)
		compile_drop_kernels(c->body.at[i]);
}

/* ---- the passes ---- */

static const struct pass {
	const char *name;
	tn_level needed_for; /* this level and all later ones */
	void (*run)(compilation *c); /* NULL: it is there from the start */
	compile_print *print;
	void (*verify)(compilation *c);
	bool (*is_wanted)(const compilation *c); /* NULL: always */
} passes[COMPILE_N_PASSES] = {
	{"program", TN_LEVEL_PROGRAM, NULL,
		compile_print_program, check_program, NULL},
	{"lower", TN_LEVEL_SYSTEM, lower,
		compile_print_system, check_system, NULL},
	{"prune", TN_LEVEL_SYSTEM, prune,
		compile_print_system, check_system, NULL},
	{"localise", TN_LEVEL_SYSTEM, localise,
		compile_print_local, NULL, is_placed},
	{"residues", TN_LEVEL_SYSTEM, residues,
		compile_print_system, check_system, is_whole},
	{"quotients", TN_LEVEL_SYSTEM, quotients,
		compile_print_system, check_system, is_whole},
	{"scales", TN_LEVEL_SYSTEM, scales,
		compile_print_system, check_system, is_whole},
	{"recompute", TN_LEVEL_SYSTEM, recompute,
		compile_print_system, check_system, is_whole},
	{"tf32", TN_LEVEL_SYSTEM, tf32,
		compile_print_system, check_system, is_rounded},
	{"settle", TN_LEVEL_GROUPS, settle,
		compile_print_settled, NULL, NULL},
	{"fuse", TN_LEVEL_GROUPS, fuse,
		compile_print_groups, check_groups, NULL},
	{"loops", TN_LEVEL_SCHEDULE, loops,
		compile_print_loops, check_loops, NULL},
	{"schedule", TN_LEVEL_SCHEDULE, schedule,
		compile_print_schedule, check_schedule, NULL},
	{"kern", TN_LEVEL_KERN, kern,
		compile_print_kern, check_kern, NULL},
	{"emit", TN_LEVEL_PLAN, emit,
		compile_print_code, NULL, NULL},
	{"plan", TN_LEVEL_PLAN, make_plan,
		compile_print_plan, check_plan, NULL},
};
/* Of a system that is there: residues; of groups: loops. */
enum { FIRST_OF_SYSTEM = 4, FIRST_OF_LOOPS = 11 };

const char *compile_pass_name(int32_t i)
{
	return i < COMPILE_N_PASSES ? passes[i].name : NULL;
}

/* The passes, then the steps of schedules. */
static const char *dump_name(int32_t i)
{
	return i < COMPILE_N_PASSES ? passes[i].name
				    : loop_pass_name(i - COMPILE_N_PASSES);
}

compile_dump compile_dump_read(arena *a)
{
	return compile_dump_of(a, dump_name);
}

double compile_level_ms(const compilation *c, tn_level level)
{
	double ms = 0;

	for (int32_t i = 0; i < COMPILE_N_PASSES; i++)
		ms += passes[i].needed_for == level ? c->ms[i] : 0;
	return ms;
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
	c->n_done = FIRST_OF_SYSTEM;
	return c;
}

compilation *compile_again(
	arena *a, const compilation *c, const compile_options *o)
{
	compilation *b = compile_new(a, c->program, o);

	b->x = c->x;
	b->system = c->system;
	b->groups = c->groups;
	b->n_done = FIRST_OF_LOOPS;
	b->number = c->number;
	return b;
}

/* The name of a body in it, for pinned texts. */
static const char *name_in(compilation *c, const char *outer, const ir_loop *l)
{
	const char *name = compile_loop_name(c, l);

	return outer == NULL ? name : arena_printf(c->a, "%s/%s", outer, name);
}

/* Copies of what is the same in all rounds are kept from round to round. */
static void set_steady(const ir_loop *l)
{
	for (int32_t i = l->n_carried + l->n_rows; i < l->body->input.n && l->n > 1; i++)
		l->body->value.at[l->body->input.at[i]].steady = true;
}

compilation *compile_body(compilation *c, const ir_loop *l)
{
	compile_options o = c->o;

	for (int32_t i = 0; i < c->loop.n; i++)
		if (c->loop.at[i] == l)
			return c->body.at[i];
	o.kern.body = o.schedule.body = name_in(c, c->o.kern.body, l);
	o.n_apart = 0;
	o.in_loop = true;
	o.layout = NULL;
	set_steady(l);
	*vec_push(c->a, &c->loop) = l;
	return *vec_push(c->a, &c->body) = compile_new(c->a, l->body, &o);
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
	else if (c->system != NULL)
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

static void run_pass(compilation *c, int32_t i)
{
	const struct pass *p = &passes[i];
	double start = compile_clock_ms();

	if (p->run != NULL)
		p->run(c);
	c->ms[i] = compile_clock_ms() - start;
	if (p->run != NULL && c->o.after != NULL)
		c->o.after(c->o.after_arg, c, i, NULL);
	compile_dump_text(c, i, p->name, p->print);
	if (c->o.verify && p->verify != NULL)
		p->verify(c);
	if (p->run != NULL)
		log_pass(c, i);
}

void compile_to(compilation *c, tn_level level)
{
	while (c->n_done < COMPILE_N_PASSES &&
		passes[c->n_done].needed_for <= level) {
		const struct pass *p = &passes[c->n_done];

		if (p->is_wanted == NULL || p->is_wanted(c))
			run_pass(c, c->n_done);
		c->n_done++;
	}
}
