/*
 * shard_ranks.c: a plan run by threads that are the processes of a mesh. See
 * shard_ranks.h. Every thread lowers and plans for itself: nothing is shared
 * but the program and the link.
 */
#include "shard_ranks.h"
#include "broken.h"
#include "system/eval.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct world {
	const ranks_case *c;
	shard_world *w;
	int64_t n;
} world;

typedef struct rank {
	const world *w;
	int64_t number;
	env *e;
	arena *a;
	shard_link *link;
	shard_program *p;
	void **out; /* by output: its elements */
	tn_status status;
	int64_t sent;
} rank;

static void print_array(str *s, const shard_program *p, int32_t array)
{
	const shard_array *y = &p->array.at[array];

	str_printf(s, "%s [", p->p->s->tensor.at[y->tensor].name);
	shard_layout_print(s, &y->layout, p->p->mesh);
	str_printf(s, "]%s", y->is_parts ? " in parts" : "");
}

static void print_program(str *out, const shard_program *p)
{
	for (int32_t i = 0; i < p->phase.n; i++) {
		const shard_phase *q = &p->phase.at[i];

		str_printf(out, "phase %d\n", (int)i);
		for (int32_t k = 0; k < q->job.n; k++) {
			const shard_job *j = &q->job.at[k];

			str_printf(out, "  %s: ", j->name);
			print_array(out, p, j->from[0]);
			str_add(out, " -> ");
			print_array(out, p, j->to[0]);
			str_printf(out, ", for %s\n", j->reader < 0
					? "its layout"
					: p->p->eqn[j->reader].unit->e.label);
		}
		for (int32_t k = 0; k < q->s->eqn.n; k++) {
			str_add(out, "  ");
			ir_eqn_print(out, q->s, &q->s->eqn.at[k]);
			str_add(out, "\n");
		}
	}
}

static void run_phase(void *arg, int32_t phase, const void *const *in,
	void *const *out)
{
	rank *r = arg;

	eval_arrays(r->a, r->p->phase.at[phase].s, in, out);
}

static void join_parts(void *arg, const shard_job *j, int64_t n,
	void *const *far, void *const *next)
{
	rank *r = arg;
	tn_dtype acc[IR_MAX_COMP];

	for (int32_t k = 0; k < j->n; k++)
		acc[k] = r->p->array.at[j->from[k]].dtype;
	eval_join(r->a, j->monoid, j->n, acc, n, far, next);
}

/* the elements of a process, of the whole or back */
static void pick(arena *a, const shard_layout *l, const shard_mesh *m,
	int64_t process, size_t size, char *mine, char *whole, bool back)
{
	shard_runs r = shard_owned(a, l, m, process);

	for (int32_t i = 0; i < r.n; i++) {
		size_t n = (size_t)r.at[i].n * size;
		char *w = whole + (size_t)r.at[i].from * size;

		memcpy(back ? w : mine, back ? mine : w, n);
		mine += n;
	}
}

/* PROPTEST_BREAK=localise: what the equations of each phase compute, less 1. */
static void break_localised(shard_program *p)
{
	const char *broken = getenv("PROPTEST_BREAK");

	if (broken == NULL || strcmp(broken, "localise") != 0)
		return;
	for (int32_t i = 0; i < p->phase.n; i++)
		for (int32_t j = 0; j < p->phase.at[i].s->eqn.n; j++)
			broken_equation(p->phase.at[i].s,
				&p->phase.at[i].s->eqn.at[j]);
}

static void work(void *arg)
{
	rank *r = arg;
	const ranks_case *c = r->w->c;
	ir_system *s = ir_lower(r->a, ix_new(r->a), c->p);
	shard_plan *plan = shard_plan_new(r->a, s, c->mesh);
	shard_runner run = {.arg = r, .run = run_phase, .join = join_parts};
	const void **in = arena_array(r->a, const void *, s->input.n + 1);
	shard_exec *x;

	for (int32_t i = 0; i < c->n_notes; i++)
		shard_annotate(plan, c->note[i].tensor, &c->note[i].layout,
			c->note[i].fixed);
	shard_propagate(plan);
	shard_scatter_sums(plan);
	r->p = shard_localise(r->a, plan, r->number, NULL);
	break_localised(r->p);
	for (int32_t i = 0; i < s->input.n; i++) {
		const shard_array *y = &r->p->array.at[r->p->input[i]];
		size_t size = dtype_size(y->dtype);
		char *mine = arena_alloc(r->a, (size_t)y->elems + 1, size);

		pick(r->a, &y->layout, c->mesh, r->number, size, mine,
			(char *)(uintptr_t)c->in[i], false);
		in[i] = mine;
	}
	r->out = arena_array(r->a, void *, s->output.n + 1);
	for (int32_t i = 0; i < s->output.n; i++) {
		const shard_array *y = &r->p->array.at[r->p->output[i]];
		bool stored = i < s->store.n && s->store.at[i] >= 0;

		r->out[i] = stored ? (void *)(uintptr_t)in[s->store.at[i]]
				   : arena_alloc(r->a, (size_t)y->elems + 1,
					     dtype_size(y->dtype));
	}
	x = shard_exec_new(r->a, r->p);
	shard_exec_run(x, r->link, &run, in, r->out,
		arena_alloc(r->a, shard_exec_bytes(x) + 1, 1));
	r->sent = shard_exec_sent(x);
}

static void *thread(void *arg)
{
	rank *r = arg;

	r->status = env_run(r->e, work, r);
	if (r->status != TN_OK)
		r->link->stop(r->link, env_diag(r->e)->text);
	r->link->close(r->link);
	return NULL;
}

void **ranks_run(arena *a, const ranks_case *c, int64_t *sent)
{
	world w = {.c = c, .n = shard_mesh_size(arena_env(a), c->mesh)};
	rank *r = arena_array(a, rank, w.n);
	pthread_t *t = arena_array(a, pthread_t, w.n);
	const ir_system *s;
	void **out = NULL;

	w.w = shard_world_new(w.n);
	for (int64_t i = 0; i < w.n; i++) {
		r[i] = (rank){.w = &w, .number = i, .e = env_new()};
		r[i].a = arena_new(r[i].e);
		r[i].link = shard_world_link(w.w, i);
		pthread_create(&t[i], NULL, thread, &r[i]);
	}
	for (int64_t i = 0; i < w.n; i++)
		pthread_join(t[i], NULL);
	shard_world_free(w.w);
	for (int64_t i = 0; i < w.n; i++)
		if (r[i].status != TN_OK) {
			str text = str_new(r[i].a);

			if (r[i].p != NULL)
				print_program(&text, r[i].p);
			printf("%sprocess %d: %s: %s\n", text.at, (int)i,
				env_diag(r[i].e)->rule, env_diag(r[i].e)->text);
		}
		else
			*sent += r[i].sent;
	for (int64_t i = 0; i < w.n; i++)
		if (r[i].status != TN_OK)
			goto end;
	s = r[0].p->p->s;
	out = arena_array(a, void *, s->output.n + 1);
	for (int32_t o = 0; o < s->output.n; o++) {
		const shard_array *y = &r[0].p->array.at[r[0].p->output[o]];
		size_t size = dtype_size(y->dtype);

		out[o] = arena_alloc(a, (size_t)y->layout.numel + 1, size);
		for (int64_t i = w.n - 1; i >= 0; i--)
			pick(a, &y->layout, c->mesh, i, size, r[i].out[o],
				out[o], true);
	}
end:
	for (int64_t i = 0; i < w.n; i++) {
		arena_free(r[i].a);
		env_free(r[i].e);
	}
	return out;
}
