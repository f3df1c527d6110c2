/*
 * shrink.c: a smaller program that still fails.
 *
 * Calls are taken away one by one - what they made becomes an input with the
 * data that the interpreter found for it - and so are outputs. Each smaller
 * program is tried in a process of its own, because it may crash. Any failure
 * counts, so the last one may be another than the first.
 */
#include "prop.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TRIES = 80 };

typedef struct shrinking {
	arena *a;
	ir_table *t;
	const prop_options *o;
	int32_t tries;
	const char *message;
} shrinking;

/* All values by the interpreter; false when it throws. */
struct values {
	arena *a;
	const prop_case *c;
	void **at;
};

static void all_values(void *arg)
{
	struct values *k = arg;
	const ir_program *p = k->c->p;
	ir_program q = *p;

	q.output.n = q.output.cap = 0;
	q.output.at = NULL;
	k->at = arena_array(k->a, void *, p->value.n + 1);
	for (int32_t i = 0; i < p->value.n; i++) {
		ir_program_output(&q, i);
		k->at[i] = arena_alloc(
			k->a, type_bytes(&p->value.at[i].type) + 1, 1);
	}
	interp_run(arena_env(k->a), &q, (const void *const *)k->c->in, k->at);
}

/* The program with some calls and outputs only. */
struct part {
	shrinking *s;
	const prop_case *c;
	void *const *data;
	const bool *keep_call, *keep_output;
	prop_case *to;
};

static int32_t call_again(ir_program *p, const ir_call *k, const int32_t *now,
	const char *const *name)
{
	int32_t arg[IR_MAX_OPERANDS], n = k->n_args;

	for (int32_t i = 0; i < n; i++)
		arg[i] = now[k->arg[i]];
	if (k->view >= 0) { /* it finds the others again */
		arg[0] = now[k->view];
		n = 2;
	}
	return ir_program_call(p, ir_row_name(k->row), n, arg, k->n_attrs,
		k->attr, name, (loc){0});
}

static void rebuild_part(void *arg)
{
	struct part *b = arg;
	shrinking *s = b->s;
	const bool *keep_call = b->keep_call, *keep_output = b->keep_output;
	const ir_program *p = b->c->p;
	prop_case *to = arena_make(s->a, prop_case);
	bool *need = arena_array(s->a, bool, p->value.n + 1);
	int32_t *now = arena_array(s->a, int32_t, p->value.n + 1);

	*to = *b->c;
	to->p = ir_program_new(s->a, s->t);
	to->in = arena_array(s->a, void *, p->value.n + 1);
	for (int32_t i = 0; i < p->output.n; i++)
		if (keep_output[i])
			need[p->output.at[i]] = true;
	for (int32_t i = p->call.n - 1; i >= 0; i--) {
		const ir_call *k = &p->call.at[i];
		bool live = false;

		for (int32_t j = 0; j < k->n_results; j++)
			live = live || need[k->result[j]];
		for (int32_t j = 0; live && keep_call[i] && j < k->n_args; j++)
			need[k->arg[j]] = true;
		if (live && keep_call[i] && k->view >= 0)
			need[k->view] = true;
	}
	for (int32_t i = 0; i < p->value.n; i++) {
		const ir_value *v = &p->value.at[i];
		const ir_call *k = v->call >= 0 ? &p->call.at[v->call] : NULL;
		const char *name[IR_MAX_OPERANDS];
		int32_t made;
		bool live = false;

		if (k == NULL || !keep_call[v->call]) {
			if (!need[i])
				continue;
			now[i] = ir_program_input(to->p, v->name, v->type,
				(loc){0});
			to->in[to->p->input.n - 1] = b->data[i];
			continue;
		}
		for (int32_t j = 0; j < k->n_results; j++) {
			live = live || need[k->result[j]];
			name[j] = p->value.at[k->result[j]].name;
		}
		if (!live || v->result > 0)
			continue;
		made = call_again(to->p, k, now, name);
		for (int32_t j = 0; j < k->n_results; j++)
			now[k->result[j]] = to->p->call.at[made].result[j];
	}
	for (int32_t i = 0; i < p->output.n; i++)
		if (keep_output[i])
			ir_program_output(to->p, now[p->output.at[i]]);
	b->to = to;
}

/* NULL: there is none (a write whose view is an input now is another). */
static prop_case *rebuild(shrinking *s, const prop_case *c, void *const *data,
	const bool *keep_call, const bool *keep_output)
{
	struct part b = {s, c, data, keep_call, keep_output, NULL};

	return env_run(arena_env(s->a), rebuild_part, &b) == TN_OK ? b.to : NULL;
}

/* The message of its failure, found in another process; NULL: it passes. */
static const char *fails(shrinking *s, prop_case *c)
{
	int fd[2], status = 0;
	str text = str_new(s->a);
	char part[1024];
	ssize_t n;
	pid_t pid;

	if (s->tries++ >= MAX_TRIES || pipe(fd) != 0)
		return NULL;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prop_result r = {0};
		const char *m = try_case(s->a, s->t, s->o, c, &r);
		ssize_t done = m != NULL ? write(fd[1], m, strlen(m)) : 0;

		_exit(m != NULL && done >= 0 ? 1 : 0);
	}
	close(fd[1]);
	while ((n = read(fd[0], part, sizeof part)) > 0)
		str_addn(&text, part, (size_t)n);
	close(fd[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status == 0)
		return NULL;
	if (WIFSIGNALED(status) || text.n == 0)
		str_printf(&text, "the process ends with status %d", status);
	return text.at;
}

static bool accept(shrinking *s, prop_case **c, prop_case *smaller)
{
	const char *m = smaller != NULL ? fails(s, smaller) : NULL;

	if (m == NULL)
		return false;
	s->message = m;
	*c = smaller;
	return true;
}

static bool all_but(bool *keep, int32_t n, int32_t out)
{
	for (int32_t i = 0; i < n; i++)
		keep[i] = i != out;
	return n > 1 || out < 0;
}

/* One round; false when nothing can go any more. */
static bool shrink_once(shrinking *s, prop_case **c)
{
	struct values k = {s->a, *c, NULL};
	int32_t n_calls = (*c)->p->call.n, n_outputs = (*c)->p->output.n;
	bool *call = arena_array(s->a, bool, n_calls + 1);
	bool *output = arena_array(s->a, bool, n_outputs + 1);

	if (env_run(arena_env(s->a), all_values, &k) != TN_OK)
		return false;
	all_but(call, n_calls, -1);
	for (int32_t i = 0; n_outputs > 1 && i < n_outputs; i++) {
		for (int32_t j = 0; j < n_outputs; j++)
			output[j] = j == i;
		if (accept(s, c, rebuild(s, *c, k.at, call, output)))
			return true;
	}
	all_but(output, n_outputs, -1);
	for (int32_t i = 0; i < n_calls; i++)
		if (all_but(call, n_calls, i) &&
			accept(s, c, rebuild(s, *c, k.at, call, output)))
			return true;
	for (int32_t i = 0; n_outputs > 1 && i < n_outputs; i++) {
		all_but(call, n_calls, -1);
		all_but(output, n_outputs, i);
		if (accept(s, c, rebuild(s, *c, k.at, call, output)))
			return true;
	}
	return false;
}

prop_case *shrink_case(arena *a, ir_table *t, const prop_options *o,
	prop_case *c, const char **message)
{
	shrinking s = {a, t, o, 0, *message};

	if (c->in == NULL)
		return c;
	while (s.tries < MAX_TRIES && shrink_once(&s, &c))
		;
	*message = s.message;
	return c;
}
