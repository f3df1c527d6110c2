/*
 * text.c: prints the results of passes.
 */
#include "engine/text.h"
#include "schedule/decision.h"

void compile_print_program(str *out, compilation *c)
{
	ir_program_print(out, c->program);
}

void compile_print_system(str *out, compilation *c)
{
	ir_system_print(out, c->system);
}

void compile_print_local(str *out, compilation *c)
{
	shard_explain(out, c->local, false);
}

void compile_print_settled(str *out, compilation *c)
{
	fuse_print_settled(out, c->settled);
}

void compile_print_groups(str *out, compilation *c)
{
	fuse_print(out, c->groups, false);
}

void compile_print_code(str *out, compilation *c)
{
	for (int32_t i = 0; i < c->groups->kernel.n; i++)
		if (c->code[i] != NULL)
			str_printf(out, "%s\n", c->code[i]->c);
}

void compile_print_plan(str *out, compilation *c)
{
	plan_print(out, c->plan, false);
}

void compile_print_loops(str *out, compilation *c)
{
	for (int32_t i = 0; i < c->groups->kernel.n; i++)
		if (c->loops[i] != NULL)
			loop_print(out, c->loops[i], true);
}

static void print_schedule(str *out, compilation *c, bool decisions)
{
	str_printf(out, "schedule %s\n", c->o.machine->name);
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		str_addc(out, '\n');
		if (c->loops[i] == NULL)
			str_printf(out, "kernel %d %s opaque\n", i,
				c->groups->kernel.at[i]->name);
		else {
			if (decisions)
				loop_text_decisions(out, c->loops[i]);
			loop_text(out, c->loops[i], i);
		}
	}
}

void compile_print_schedule(str *out, compilation *c)
{
	print_schedule(out, c, false);
}

void compile_print_decisions(str *out, compilation *c)
{
	print_schedule(out, c, true);
}

void compile_print_kern(str *out, compilation *c)
{
	str_printf(out, "kern %s\n", c->o.machine->name);
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		str_addc(out, '\n');
		if (c->kernels[i] == NULL)
			str_printf(out, "kernel %d %s opaque\n", i,
				c->groups->kernel.at[i]->name);
		else
			kern_print(out, c->kernels[i], i);
	}
}
