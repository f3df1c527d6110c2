/*
 * text.c: prints the results of passes, and finds the parts of pinned texts.
 *
 *     schedule c/avx2
 *     kernel 0 ..
 *
 *     body of s          of the loop whose first result is s; "s/h": of the
 *     schedule c/avx2    loop that makes h in the body of s
 *     kernel 0 ..
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

/* ---- parts of texts ---- */

static const char begins[] = "body of ";

/* The next line at or behind `from` that begins a body, or the end. */
static size_t next_body(const compile_text *t, size_t from)
{
	while (from < t->n) {
		const char *end = memchr(t->at + from, '\n', t->n - from);

		if (t->n - from >= sizeof begins - 1 &&
			memcmp(t->at + from, begins, sizeof begins - 1) == 0)
			return from;
		if (end == NULL)
			return t->n;
		from = (size_t)(end - t->at) + 1;
	}
	return t->n;
}

/* The name in the line that begins at `from`. */
static const char *body_name(arena *a, const compile_text *t, size_t from)
{
	const char *at = t->at + from + sizeof begins - 1;
	size_t n = 0, most = (size_t)(t->at + t->n - at);

	while (n < most && at[n] != ' ' && at[n] != '\n' && at[n] != '\r')
		n++;
	return arena_strndup(a, at, n);
}

bool compile_text_part(arena *a, const compile_text *t, compile_text *part)
{
	size_t from = 0, to = next_body(t, 0);
	char *text;

	while (t->body != NULL) {
		if (to == t->n)
			return false;
		from = to;
		to = next_body(t, from + 1);
		if (strcmp(body_name(a, t, from), t->body) == 0)
			break;
	}
	text = arena_strndup(a, t->at, t->n);
	if (t->body != NULL) /* without its first line */
		while (from < to && text[from] != '\n')
			from++;
	for (size_t i = 0; i < t->n; i++)
		if ((i < from || i >= to) && text[i] != '\n')
			text[i] = ' ';
	*part = *t;
	part->at = text;
	return true;
}

const char *compile_loop_name(const compilation *c, const ir_loop *l)
{
	const ir_system *s = c->system;

	for (int32_t i = 0; i < s->eqn.n; i++)
		if (s->eqn.at[i].opaque != NULL &&
			s->eqn.at[i].opaque->loop == l)
			return s->tensor.at[s->eqn.at[i].out[0]].name;
	return "";
}

/* Does a loop of the program make a value of this name? */
static bool has_loop(const compilation *c, const char *name, size_t n, str *all)
{
	for (int32_t i = 0; i < c->system->eqn.n; i++) {
		const sys_eqn *e = &c->system->eqn.at[i];
		const char *made;

		if (e->opaque == NULL || e->opaque->loop == NULL)
			continue;
		made = c->system->tensor.at[e->out[0]].name;
		if (strlen(made) == n && memcmp(made, name, n) == 0)
			return true;
		str_printf(all, "%s%s", all->n > 0 ? ", " : "", made);
	}
	return false;
}

void compile_check_bodies(
	compilation *c, const char *level, const compile_text *t)
{
	size_t skip = t->body != NULL ? strlen(t->body) + 1 : 0;

	for (size_t i = next_body(t, 0); i < t->n; i = next_body(t, i + 1)) {
		const char *name = body_name(c->a, t, i);
		str all = str_new(c->a);
		loc at = {t->file, 1, 1};

		if (skip > 0 && (strncmp(name, t->body, skip - 1) != 0 ||
					name[skip - 1] != '/'))
			continue;
		name += skip;
		if (has_loop(c, name, strcspn(name, "/"), &all))
			continue;
		for (size_t k = 0; k < i; k++)
			at.line += t->at[k] == '\n';
		env_fail_source(arena_env(c->a),
			arena_printf(c->a, "%s.body", level), at, t->at, t->n,
			"no loop makes %.*s; %s%s", (int)strcspn(name, "/"),
			name, all.n > 0 ? "loops make " : "there are no loops",
			all.at);
	}
}
