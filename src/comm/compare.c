/*
 * compare.c: compares values of all processes.
 *
 * Every process sends a hash and a few words; all get the same verdict, which names
 * the processes and their words:
 *
 *     --lr is not the same on all processes: 0.01 on 0, 1 and 3; 0.1 on 2
 *
 * Also: if one process has failed, all throw its diagnosis.
 */
#include "comm/comm.h"

#include <stdio.h>

enum { WORDS = 56, TEXT = 700, MOST_GROUPS = 8 };

typedef struct claim {
	uint64_t hash;
	char words[WORDS];
} claim;

typedef struct verdict {
	int32_t differ;
	char text[TEXT];
} verdict;

static bool same(const claim *a, const claim *b)
{
	return a->hash == b->hash && memcmp(a->words, b->words, WORDS) == 0;
}

/* The processes with the same claim as process `first`. */
static void add_group(str *s, const claim *of, int64_t n, int64_t first)
{
	int64_t left = 0;
	const char *sep = "";

	for (int64_t p = first; p < n; p++)
		left += same(&of[p], &of[first]);
	str_printf(s, "%s on ", of[first].words);
	for (int64_t p = first; p < n; p++) {
		if (!same(&of[p], &of[first]))
			continue;
		str_printf(s, "%s%lld", sep, (long long)p);
		sep = --left == 1 ? " and " : ", ";
	}
}

static void judge(arena *a, const claim *of, int64_t n, const char *what,
	verdict *v)
{
	str s = str_new(a);
	int32_t groups = 0;

	str_printf(&s, "%s is not the same on all processes: ", what);
	for (int64_t p = 0; p < n; p++) {
		bool again = false;

		for (int64_t q = 0; q < p; q++)
			again |= same(&of[p], &of[q]);
		if (again)
			continue;
		str_add(&s, groups++ > 0 ? "; " : "");
		if (groups > MOST_GROUPS) {
			str_add(&s, "and others");
			break;
		}
		add_group(&s, of, n, p);
	}
	v->differ = groups > 1;
	snprintf(v->text, sizeof v->text, "%s", s.at);
}

void shard_compare(
	arena *a, shard_link *l, const char *what, uint64_t hash, const char *words)
{
	arena *scratch = arena_child(a);
	env *e = arena_env(a);
	int64_t n = l->size(l), rank = l->rank(l);
	claim *of = arena_array(scratch, claim, n), own = {.hash = hash};
	verdict v = {0};

	/* the rest of the words is 0, because all bytes are compared */
	for (size_t i = 0; i < WORDS - 1 && words[i] != '\0'; i++)
		own.words[i] = words[i];
	of[0] = own;
	for (int64_t p = 1; p < n && rank == 0; p++)
		l->receive(l, e, p, &of[p], sizeof own, what);
	if (rank != 0)
		l->send(l, e, 0, &own, sizeof own, what);
	l->wait(l, e, what);
	if (rank == 0)
		judge(scratch, of, n, what, &v);
	l->broadcast(l, e, 0, &v, sizeof v, what);
	arena_free(scratch);
	if (v.differ != 0)
		env_fail(e, TN_EINVAL, "shard.differ", (loc){0}, "%s", v.text);
}

/* ---- failures ---- */

typedef struct failure {
	int32_t status;
	char rule[64], text[1024];
} failure;

void shard_fail_together(
	env *e, shard_link *l, int32_t when, const tn_diag *d, const char *what)
{
	int64_t n = l->size(l), rank = l->rank(l), first = -1;
	int32_t least = when, other = -1;
	failure f = {0};

	if (rank != 0)
		l->send(l, e, 0, &when, sizeof when, what);
	else
		first = when >= 0 ? 0 : -1;
	for (int64_t p = 1; p < n && rank == 0; p++) {
		l->receive(l, e, p, &other, sizeof other, what);
		l->wait(l, e, what);
		if (other >= 0 && (least < 0 || other < least)) {
			least = other;
			first = p;
		}
	}
	l->broadcast(l, e, 0, &first, sizeof first, what);
	if (first < 0)
		return;
	if (rank == first) {
		f.status = d->status;
		snprintf(f.rule, sizeof f.rule, "%s", d->rule);
		snprintf(f.text, sizeof f.text, "%s", d->text);
	}
	l->broadcast(l, e, first, &f, sizeof f, what);
	env_fail(e, (tn_status)f.status, f.rule, (loc){0}, "%s", f.text);
}
