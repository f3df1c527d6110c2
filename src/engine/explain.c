/*
 * explain.c: prints any level of a compilation as text or JSON; finds the ranges of
 * indices that are read from data.
 */
#include "engine/text.h"
#include "schedule/decision.h"

static void explain_loops(str *out, compilation *c, uint32_t flags)
{
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		const fuse_kernel *k = c->groups->kernel.at[i];
		arena *tmp;

		if (i > 0)
			str_addc(out, '\n');
		if (k->opaque) {
			str_printf(out, "%s: opaque, calls %s\n", k->name,
				k->eqn[0].e.opaque->name);
			continue;
		}
		tmp = arena_child(c->a);
		loop_print(out, loop_build(tmp, c->system, k, true),
			(flags & TN_EXPLAIN_INDEXES) != 0);
		arena_free(tmp);
	}
}

/* A list for each kernel; empty for a schedule from a text. */
static void json_decisions(str *out, compilation *c)
{
	str_add(out, "{\"machine\":");
	str_json(out, c->o.machine->name);
	str_add(out, ",\"kernels\":[");
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		str_add(out, i > 0 ? ",\n" : "\n");
		str_printf(out, "{\"kernel\":%d,\"name\":", i);
		str_json(out, c->groups->kernel.at[i]->name);
		str_add(out, ",\"decisions\":");
		if (c->loops[i] == NULL)
			str_add(out, "[]");
		else
			loop_json_decisions(out, c->loops[i]);
		str_addc(out, '}');
	}
	str_add(out, "]}\n");
}

/*
 * Prints the kernels of each function: equal kernels are one function.
 */
static void explain_functions(str *out, const plan *p)
{
	for (int32_t k = 0; k < p->kernel.n; k++) {
		const char *sep = " ";

		str_printf(out, "/* %s:", p->kernel.at[k].code->phase[0].fn);
		for (int32_t i = 0; i < p->launch.n; i++) {
			if (p->launch.at[i].kernel != k)
				continue;
			str_printf(out, "%s%s", sep,
				p->launch.at[i].source->name);
			sep = ", ";
		}
		str_add(out, " */\n");
	}
	if (p->kernel.n > 0)
		str_addc(out, '\n');
}

static void explain_c(str *out, const compilation *c)
{
	explain_functions(out, c->plan);
	for (int32_t i = 0; i < c->plan->unit.n; i++) {
		if (c->plan->unit.n > 1)
			str_printf(out, "%s/* file %d of %d */\n",
				i ? "\n" : "", (int)i + 1,
				(int)c->plan->unit.n);
		str_add(out, c->plan->unit.at[i].c);
	}
}

static void explain_text(
	str *out, compilation *c, tn_level level, uint32_t flags)
{
	switch (level) {
	case TN_LEVEL_PROGRAM:
		compile_print_program(out, c);
		break;
	case TN_LEVEL_SYSTEM:
		compile_print_system(out, c);
		break;
	case TN_LEVEL_GROUPS:
		compile_print_groups(out, c);
		break;
	case TN_LEVEL_LOOPS:
		explain_loops(out, c, flags);
		break;
	case TN_LEVEL_SCHEDULE:
		if ((flags & TN_EXPLAIN_DECISIONS) != 0)
			compile_print_decisions(out, c);
		else
			compile_print_schedule(out, c);
		break;
	case TN_LEVEL_KERN:
		compile_print_kern(out, c);
		break;
	case TN_LEVEL_PLAN:
		compile_print_plan(out, c);
		break;
	case TN_LEVEL_C:
		explain_c(out, c);
		break;
	}
}

/* The bodies of loops, behind the program that runs them; as deep as loops are. */
static void explain_bodies(
	str *out, compilation *c, tn_level level, uint32_t flags)
{
	if (level == TN_LEVEL_PROGRAM) /* its text contains them */
		return;
	for (int32_t i = 0; i < c->system->eqn.n; i++) {
		const sys_eqn *e = &c->system->eqn.at[i];
		compilation *body;

		if (e->opaque == NULL || e->opaque->loop == NULL)
			continue;
		body = compile_body(c, e->opaque->loop);
		body->o.machine = c->o.machine;
		compile_to(body, compile_level_needed(level));
		if (level == TN_LEVEL_SCHEDULE || level == TN_LEVEL_KERN)
			str_printf(out, "\nbody of %s\n", body->o.kern.body);
		else
			str_printf(out, "\n// the body of the loop that makes "
				"%s, %lld rounds\n",
				compile_loop_name(c, e->opaque->loop),
				(long long)e->opaque->loop->n);
		explain_text(out, body, level, flags);
		explain_bodies(out, body, level, flags);
	}
}

tn_level compile_level_needed(tn_level level)
{
	/* the loop tree is printed as fusion made it, before schedules */
	return level == TN_LEVEL_LOOPS ? TN_LEVEL_GROUPS : level;
}

void compile_explain(
	str *out, compilation *c, tn_level level, uint32_t flags)
{
	arena *tmp;
	str text;

	compile_to(c, compile_level_needed(level));
	if (level == TN_LEVEL_SCHEDULE && (flags & TN_EXPLAIN_DECISIONS) != 0)
		compile_to(c, TN_LEVEL_KERN); /* where the last ones are taken */
	if ((flags & TN_EXPLAIN_JSON) == 0) {
		explain_text(out, c, level, flags);
		explain_bodies(out, c, level, flags);
		return;
	}
	if (level == TN_LEVEL_GROUPS) {
		fuse_print(out, c->groups, true);
		return;
	}
	if (level == TN_LEVEL_PLAN) {
		plan_print(out, c->plan, true);
		return;
	}
	if (level == TN_LEVEL_SCHEDULE && (flags & TN_EXPLAIN_DECISIONS) != 0) {
		json_decisions(out, c);
		return;
	}
	tmp = arena_child(c->a);
	text = str_new(tmp);
	explain_text(&text, c, level, flags);
	explain_bodies(&text, c, level, flags);
	str_json(out, text.at);
	str_addc(out, '\n');
	arena_free(tmp);
}

/* ---- ranges of indices ---- */

struct ranges {
	ir_system *s;
	int64_t *lo, *hi;
	map *seen; /* forms */
};

static void visit_form(struct ranges *r, const ix_form *f);

static void visit_atom(struct ranges *r, const ix_atom *atom)
{
	int64_t t = atom->fun;

	switch (atom->kind) {
	case IX_DIGIT:
		return;
	case IX_FUN:
		if (t >= 0 && t < r->s->tensor.n) {
			if (r->lo[t] >= r->hi[t] || atom->lo > r->lo[t])
				r->lo[t] = atom->lo;
			if (r->hi[t] == 0 || atom->hi < r->hi[t])
				r->hi[t] = atom->hi;
		}
		break;
	case IX_FLOOR:
	case IX_CLAMP:
		break;
	}
	visit_form(r, atom->f);
}

/* The recursion is as deep as nested reads in indices: a few levels. */
static void visit_form(struct ranges *r, const ix_form *f)
{
	if (f == NULL || map_get(r->seen, &f->id, sizeof f->id, 0))
		return;
	map_set(r->seen, &f->id, sizeof f->id, 1);
	for (int32_t i = 0; i < f->n; i++)
		visit_atom(r, f->t[i].atom);
}

void compile_index_ranges(ir_system *s, int64_t *lo, int64_t *hi)
{
	/* wider than any axis: the full range of a dtype, which is not a bound */
	const int64_t wide = (int64_t)1 << 30;
	arena *tmp = arena_child(s->a);
	struct ranges r = {s, lo, hi, map_new(tmp)};

	for (int32_t t = 0; t < s->tensor.n; t++)
		lo[t] = hi[t] = 0;
	for (int32_t i = 0; i < s->eqn.n; i++) {
		const sys_eqn *e = &s->eqn.at[i];

		visit_form(&r, e->push);
		for (int32_t k = 0; k < e->n_out; k++) {
			const expr *both[2] = {e->body[k], e->init[k]};

			for (int32_t b = 0; b < 2; b++) {
				ex_reads reads;

				if (both[b] == NULL)
					continue;
				reads = ex_list_reads(s, both[b]);
				for (int32_t j = 0; j < reads.n; j++)
					visit_form(&r, reads.at[j].at);
			}
		}
	}
	for (int32_t t = 0; t < s->tensor.n; t++)
		if (lo[t] >= hi[t] ||
			(uint64_t)hi[t] - (uint64_t)lo[t] > (uint64_t)wide)
			lo[t] = hi[t] = 0;
	arena_free(tmp);
}
