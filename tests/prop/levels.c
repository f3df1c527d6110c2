/*
 * levels.c: the first level at which a program computes something else.
 *
 * The passes run once more, up to one after the other, and what stands behind them
 * is interpreted: the equations of the system point by point (system/eval.h), trees
 * by lowering them to kernels, which kern_run interprets. So a tree that is wrong
 * and a wrong lowering of it are named together.
 *
 *   lower, prune, settle, fuse   the system
 *   loops                        trees to which no step of a schedule was applied
 *   scatter .. streams           .. to which the steps up to this one were
 *   kern                         the kernels, run by a plan that is right
 *   plan                         the kernels, run by the plan
 *   c                            the C that is printed: all else is right
 *
 * To see that each is found, PROPTEST_BREAK=PASS makes what stands behind the pass
 * wrong: compile_options.after subtracts 1 from what its equations compute, makes
 * the additions of its kernels subtractions; levels_break_plan drops the last step.
 * localise, which runs for several processes alone, is broken in shard_prop.
 */
#include "broken.h"
#include "fuse/inner.h"
#include "prop.h"

#include <stdlib.h>

enum { FIRST_STEP = COMPILE_N_PASSES, MOST_STEPS = 32 };

static int32_t pass_of(const char *name)
{
	for (int32_t i = 0; compile_pass_name(i) != NULL; i++)
		if (strcmp(compile_pass_name(i), name) == 0)
			return i;
	for (int32_t i = 0; loop_pass_name(i) != NULL; i++)
		if (strcmp(loop_pass_name(i), name) == 0)
			return FIRST_STEP + i;
	return -1;
}

static const char *name_of(int32_t pass)
{
	return pass < FIRST_STEP ? compile_pass_name(pass)
				 : loop_pass_name(pass - FIRST_STEP);
}

/* Steps of schedules are run by the pass `schedule`. */
static int32_t order_of(int32_t pass)
{
	return pass >= FIRST_STEP
		       ? pass_of("schedule") * MOST_STEPS + pass - FIRST_STEP
		       : (pass + (pass > pass_of("schedule"))) * MOST_STEPS;
}

/* ---- a pass that is broken on purpose ---- */

/* The equations as the last of the passes lower .. fuse has them. */
static void each_equation(
	compilation *c, void (*fn)(ir_system *s, sys_eqn *e))
{
	for (int32_t i = 0; c->groups != NULL && i < c->groups->kernel.n; i++)
		for (int32_t j = 0; j < c->groups->kernel.at[i]->n_eqns; j++)
			fn(c->system, &c->groups->kernel.at[i]->eqn[j].e);
	for (int32_t i = 0;
		c->groups == NULL && c->settled != NULL && i < c->settled->n_sources;
		i++)
		if (c->settled->unit[i] != NULL)
			fn(c->system, &c->settled->unit[i]->e);
	for (int32_t i = 0; c->settled == NULL && i < c->system->eqn.n; i++)
		fn(c->system, &c->system->eqn.at[i]);
}

/* The system computes it as this equation does. */
static void put_equation(ir_system *s, sys_eqn *e)
{
	for (int32_t i = 0; i < s->eqn.n; i++)
		if (s->eqn.at[i].out[0] == e->out[0])
			s->eqn.at[i] = *e;
}

static void change_tree(loop_kernel *k)
{
	for (int32_t i = 0; i < k->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		if (e->e->monoid == IR_SET && !e->stage && !e->pack &&
			!e->part && !e->e->is_view)
			broken_value(k->s, &e->body[0]);
	}
}

static void change_kernel(kern_kernel *k)
{
	int32_t add = ir_scalar_find("add", 3), sub = ir_scalar_find("sub", 3);

	for (int32_t i = 1; i < k->value.n; i++) {
		kern_value *x = &k->value.at[i];

		if (x->op == KERN_CALL && x->fn == add &&
			dtype_is_float(x->type.dt))
			x->fn = sub;
	}
}

/* compile_options.after; arg: the last pass that is as it is, broken or not */
static void break_pass(
	void *arg, compilation *c, int32_t pass, loop_kernel *k)
{
	const int32_t *last = arg;
	const char *name = getenv("PROPTEST_BREAK");

	if (name == NULL || pass != pass_of(name) ||
		order_of(pass) > order_of(*last))
		return;
	if (k != NULL) {
		change_tree(k);
		return;
	}
	if (c->loops == NULL)
		each_equation(c, broken_equation);
	for (int32_t i = 0; c->loops != NULL && i < c->groups->kernel.n; i++)
		if (c->kernels != NULL && c->kernels[i] != NULL)
			change_kernel(c->kernels[i]);
		else if (c->kernels == NULL && c->loops[i] != NULL)
			change_tree(c->loops[i]);
}

/* Its verifier has run: it would find that. */
void levels_break_plan(compilation *c)
{
	const int32_t *last = c->o.after_arg;
	const char *name = getenv("PROPTEST_BREAK");

	if (name != NULL && strcmp(name, "plan") == 0 && last != NULL &&
		*last == pass_of("plan") && c->plan->step.n > 0)
		c->plan->step.n--;
}

bool levels_are_broken(void)
{
	return getenv("PROPTEST_BREAK") != NULL;
}

void levels_break(compile_options *o)
{
	static int32_t all = COMPILE_N_PASSES - 1;

	o->after = break_pass;
	o->after_arg = &all;
}

/* ---- the search ---- */

/* These run always: trees are whole behind them only. (parts makes a loop parallel,
 * and chunks counts its iterations.) */
static bool always_runs(const char *step)
{
	return strcmp(step, "chunks") == 0 || strcmp(step, "tail") == 0 ||
	       strcmp(step, "locations") == 0;
}

/* Behind this pass; later ones are not broken, later steps of schedules not run. */
static bool is_right_after(const levels *l, int32_t pass, bool fused)
{
	bool trees = pass >= FIRST_STEP || pass >= pass_of("loops");
	compile_options o = l->o;
	compilation *c;

	o.after = break_pass;
	o.after_arg = &pass;
	o.no_fusion |= !fused;
	for (int32_t i = 0; loop_pass_name(i) != NULL; i++)
		if (!always_runs(loop_pass_name(i)) &&
			order_of(FIRST_STEP + i) > order_of(pass))
			o.without |= UINT32_C(1) << i;
	c = compile_new(l->a, l->program, &o);
	compile_to(c, trees ? TN_LEVEL_KERN : TN_LEVEL_GROUPS);
	if (trees)
		return l->kernels_are_right(l->arg, c);
	each_equation(c, put_equation);
	return l->system_is_right(l->arg, c);
}

const char *levels_first(const levels *l)
{
	static const char *const passes[] = {
		"lower", "prune", "settle", "fuse", "loops"};

	for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
		if (is_right_after(l, pass_of(passes[i]), true))
			continue;
		return strcmp(passes[i], "loops") == 0 &&
				       is_right_after(
					       l, pass_of(passes[i]), false)
			       ? "fuse"
			       : passes[i];
	}
	for (int32_t i = 0; loop_pass_name(i) != NULL; i++)
		if (!is_right_after(l, FIRST_STEP + i, true))
			return name_of(FIRST_STEP + i);
	if (!is_right_after(l, pass_of("kern"), true))
		return "kern";
	return is_right_after(l, pass_of("plan"), true) ? "c" : "plan";
}
