/*
 * reason_prop: the reasons of plans, derived again by other means.
 *
 *     reason_prop [--seed S] [--count N] [--writes] [--lie] [FILE.tn]...
 *
 * Of random programs on random machines, of the known cases of fusion, and of
 * the programs named (what stands behind "# >>>" in them is left out, and those
 * that are to fail). --lie: each reason is made false first, and must be refuted.
 */
#include "reason_check.h"
#include "program/program.h"
#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *name, *text, *want;
} cases[] = {
#define X "x: f32[1024,1024]\n"
#include "../unit/fuse_cases.h"
#undef X
};

typedef struct job {
	env *e;
	arena *a;
	uint64_t seed;
	bool writes, print, lie;
	const char *name, *text; /* NULL: a random program */
	reason_count *n;
	fuse_plan *plan;
	arena *tmp;
} job;

static machine draw_machine(prop_random *r)
{
	machine t = *machine_at(0);

	if (prop_chance(r, 50))
		t.launch_s = 1e-3;
	if (prop_chance(r, 70))
		t.fusion.serial_volume = prop_chance(r, 70) ? 0 : 100;
	if (prop_chance(r, 30))
		t.memory[MACHINE_L2].bytes = 256;
	if (prop_chance(r, 30))
		t.threads = 1;
	if (prop_chance(r, 5))
		t.fusion.max_eqns = 2 + prop_below(r, 3);
	return t;
}

static void run(void *arg)
{
	job *j = arg;
	prop_random r = {.state = j->seed * 7919 + 17};
	machine t = *machine_at(0);
	fuse_plan *p;
	ir_system *s;

	j->a = arena_new(j->e);
	if (j->text == NULL) {
		t = draw_machine(&r);
		s = prop_system(j->a, &r,
			2 + prop_below(&r, prop_chance(&r, 15) ? 24 : 10),
			j->writes);
	} else {
		s = ir_lower(j->a, ix_new(j->a),
			ir_program_parse(
				j->a, j->text, strlen(j->text), j->name, interp_loop));
	}
	p = fuse_partition(j->a, s, &t, NULL);
	fuse_explain(p);
	if (j->print) {
		str text = str_new(j->a);

		ir_system_print(&text, s);
		fuse_print(&text, p, false);
		printf("%s", text.at);
	}
	if (!j->lie)
		reason_check(j->a, p, &r, j->n);
	j->plan = p;
}

typedef struct question {
	job *j;
	fuse_reason *why;
} question;

static void ask(void *arg)
{
	question *q = arg;
	prop_random r = {.state = 77};
	arena *a = arena_new(q->j->e);

	q->j->tmp = a;
	reason_check_one(a, q->j->plan, &r, q->why, q->j->n);
}

/* Every lie must be noticed. */
static bool refutes(job *j)
{
	bool good = true;

	for (int32_t i = 0; i < j->plan->reason.n; i++) {
		question q = {.j = j, .why = &j->plan->reason.at[i]};
		fuse_why was = q.why->why;

		if (!reason_lie(j->a, q.why))
			continue;
		j->n->lies++;
		if (env_run(j->e, ask, &q) == TN_OK) {
			printf("not refuted: (%s) %s\n", fuse_why_name(was),
				q.why->text);
			good = false;
		}
		arena_free(j->tmp);
	}
	return good;
}

static bool passes(job *j)
{
	env *e = env_new();
	tn_status status;

	if (e == NULL)
		return false;
	j->e = e;
	j->a = NULL;
	status = env_run(e, run, j);
	if (status != TN_OK)
		printf("%s, seed %llu: [%s] %s\n",
			j->name == NULL ? "random" : j->name,
			(unsigned long long)j->seed, env_diag(e)->rule,
			env_diag(e)->text);
	if (status == TN_OK && j->lie && !refutes(j))
		status = TN_EINVAL;
	arena_free(j->a);
	env_free(e);
	return status == TN_OK;
}

static char *read_program(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t room = 1 << 20, n;
	char *text = calloc(room, 1), *end;

	n = f == NULL || text == NULL ? 0 : fread(text, 1, room - 1, f);
	if (f != NULL)
		(void)fclose(f);
	if (n == 0) {
		printf("%s: cannot be read\n", path);
		exit(1);
	}
	if (strstr(text, "\n# exit:") != NULL)
		text[0] = 0;
	end = strstr(text, "# >>>");
	if (end != NULL)
		*end = 0;
	/* the command in the first line is no comment of the language */
	for (char *c = text; *c == '#';) {
		while (*c != 0 && *c != '\n')
			*c++ = ' ';
		c += *c == '\n';
	}
	return text;
}

static void print_counts(const reason_count *n)
{
	for (int i = 0; i <= FUSE_WHY_REQUEST; i++)
		printf("%s%lld %s", i > 0 ? ", " : "",
			(long long)n->by_why[i], fuse_why_name((fuse_why)i));
	printf("; %lld sets without a loop, %lld not proved\n",
		(long long)n->sets, (long long)n->unproved);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 0;
	reason_count n = {{0}, 0, 0, 0};
	job j = {.n = &n};
	int32_t failed = 0, files = 0;

	for (int i = 1; i < argc; i++) {
		const char *v = i + 1 < argc ? argv[i + 1] : "0";

		if (strcmp(argv[i], "--seed") == 0) {
			seed = strtoull(v, NULL, 10), i++;
		} else if (strcmp(argv[i], "--count") == 0) {
			count = strtoull(v, NULL, 10), i++;
		} else if (strcmp(argv[i], "--writes") == 0) {
			j.writes = true;
		} else if (strcmp(argv[i], "--lie") == 0) {
			j.lie = true;
		} else if (strcmp(argv[i], "--print") == 0) {
			j.print = true;
		} else {
			char *text = read_program(argv[i]);

			j.name = argv[i];
			j.text = text;
			j.seed = seed;
			if (text[0] != 0) {
				failed += !passes(&j);
				files++;
			}
			free(text);
		}
	}
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[20000];

		snprintf(text, sizeof text, "program {\n%s}\n", cases[i].text);
		j.name = cases[i].name;
		j.text = text;
		j.seed = seed;
		failed += !passes(&j);
	}
	j.name = j.text = NULL;
	for (uint64_t i = 0; i < count; i++) {
		j.seed = seed + i;
		failed += !passes(&j);
	}
	printf("%d files, %llu random programs, %d failed\n", files,
		(unsigned long long)count, failed);
	print_counts(&n);
	if (j.lie)
		printf("%lld lies\n", (long long)n.lies);
	return j.lie && n.lies < 50 ? 1 : failed != 0;
}
