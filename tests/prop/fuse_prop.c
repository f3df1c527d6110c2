/*
 * fuse_prop: random systems, partitioned; each kernel's loop tree is executed
 * and compared with the naive meaning of the system.
 *
 *     fuse_prop --seed S --count N [--mutate K] [--settle K] [--writes] [--print]
 *
 * K: the rule of docs/fusion.md (--mutate) or docs/aliasing.md (--settle) that
 * is dropped: then some program must fail, and exit status 0 means that one
 * did. --writes: a third of the operations are writes through views. A failure without K prints its seed
 * and the smallest number of operations that fails.
 */
#include "fuse_prop.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct job {
	env *e;
	arena *a;
	uint64_t seed;
	int32_t n_ops;
	uint32_t mutate, settle;
	bool alone, writes, print;
	int64_t *kernels, *eqns;
} job;

static void run(void *arg)
{
	job *j = arg;
	prop_random r = {.state = j->seed * 7919 + 17};
	fuse_options o = {.no_fusion = j->alone, .mutate = j->mutate};
	machine t = *machine_at(0);
	int32_t n_ops = 2 + prop_below(&r, prop_chance(&r, 15) ? 24 : 10);
	ir_system *s;
	prop_data want;
	fuse_plan *p;

	o.settle.mutate = j->settle;
	if (prop_chance(&r, 60))
		o.settle.shuffle = prop_next(&r) | 1;
	o.settle.eager = prop_chance(&r, 70);
	j->a = arena_new(j->e);
	if (j->n_ops > 0)
		n_ops = j->n_ops;
	j->n_ops = n_ops;
	/* machines on which other merges pay */
	if (prop_chance(&r, 50))
		t.launch_s = 1e-3;
	if (prop_chance(&r, 60))
		t.fusion.serial_volume = prop_chance(&r, 70) ? 0 : 100;
	if (prop_chance(&r, 30))
		t.memory[MACHINE_L2].bytes = 256;
	if (prop_chance(&r, 30))
		t.threads = 1;
	if (prop_chance(&r, 15))
		t.fusion.max_eqns = 2 + prop_below(&r, 3);
	s = prop_system(j->a, &r, n_ops, j->writes);
	if (j->print) {
		str text = str_new(j->a);

		ir_system_print(&text, s);
		printf("%s", text.at);
	}
	ir_system_verify(s);
	want = prop_naive(j->a, s);
	p = fuse_partition(j->a, s, &t, &o);
	if (j->print) {
		str text = str_new(j->a);

		fuse_print(&text, p, false);
		printf("%s", text.at);
	}
	*j->kernels += p->kernel.n;
	for (int32_t i = 0; i < p->kernel.n; i++)
		*j->eqns += p->kernel.at[i]->n_eqns;
	prop_run(j->a, p, &r, &want);
	if ((j->mutate == 0 || j->mutate == 1) && j->settle == 0)
		fuse_verify(p);
}

static bool passes(job *j, tn_diag *d)
{
	env *e = env_new();
	tn_status status;

	if (e == NULL)
		return false;
	j->e = e;
	j->a = NULL;
	status = env_run(e, run, j);
	*d = *env_diag(e);
	arena_free(j->a);
	env_free(e);
	return status == TN_OK;
}

static void report(job j, const tn_diag *d)
{
	tn_diag small = *d, other;
	int32_t n = j.n_ops;

	for (int32_t k = 1; k < j.n_ops; k++) {
		job t = j;

		t.n_ops = k;
		if (!passes(&t, &other)) {
			n = k;
			small = other;
			break;
		}
	}
	printf("seed %llu: %d operations: [%s] %s\n",
		(unsigned long long)j.seed, n, small.rule, small.text);
	j.n_ops = n;
	j.print = true;
	(void)passes(&j, &other);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, first = 0, count = 2000;
	int64_t kernels = 0, eqns = 0;
	job j = {.kernels = &kernels, .eqns = &eqns};
	bool verbose = false;

	for (int32_t i = 1; i < argc; i++) {
		const char *v = i + 1 < argc ? argv[i + 1] : "0";

		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(v, NULL, 10), i++;
		else if (strcmp(argv[i], "--first") == 0)
			first = strtoull(v, NULL, 10), i++;
		else if (strcmp(argv[i], "--count") == 0)
			count = strtoull(v, NULL, 10), i++;
		else if (strcmp(argv[i], "--mutate") == 0)
			j.mutate = (uint32_t)strtoul(v, NULL, 10), i++;
		else if (strcmp(argv[i], "--settle") == 0)
			j.settle = (uint32_t)strtoul(v, NULL, 10), i++;
		else if (strcmp(argv[i], "--writes") == 0)
			j.writes = true;
		else if (strcmp(argv[i], "--alone") == 0)
			j.alone = true;
		else if (strcmp(argv[i], "--print") == 0)
			verbose = true;
		else
			return 2;
	}
	for (uint64_t i = 0; i < count; i++) {
		tn_diag d;

		j.seed = seed + first + i;
		j.n_ops = 0;
		j.print = verbose;
		if (passes(&j, &d))
			continue;
		if (j.mutate == 0 && j.settle == 0)
			report(j, &d);
		else
			printf("seed %llu: rule %u is needed: [%s] %s\n",
				(unsigned long long)j.seed,
				j.mutate + j.settle, d.rule, d.text);
		return j.mutate == 0 && j.settle == 0;
	}
	printf("%llu programs, %lld equations, %lld kernels\n",
		(unsigned long long)count, (long long)eqns, (long long)kernels);
	return j.mutate != 0 || j.settle != 0; /* nothing failed without the rule */
}
