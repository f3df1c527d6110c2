/*
 * profile_text.c: prints a profile: programs with their kernels, the time of each,
 * their loops and C, and the reasons of edges between them.
 *
 *     {"programs":[{"runs":9,"seconds":0.1,"kernels":[{"name":"fn_add_0",
 *       "seconds":0.02,"equations":["add_0"], ..
 */
#include "api/profile.h"

#include <stdlib.h>
#include <string.h>

/* ---- one program ---- */

/* Names of the equations and kernels of a program, and which computes which. */
typedef struct namer {
	const compilation *m;
	int32_t threads;
	const char **eqn; /* (equations of the system) "linear_16.o" */
	int32_t *kernel;  /* (equations) launch that computes it; -1: none */
	int32_t *first;	  /* (functions in C) the first launch of it */
} namer;

/* The label with the number of its call, as in names of kernels. */
static const char *eqn_name(arena *a, const sys_eqn *e)
{
	const char *label = e->label != NULL ? e->label : "";
	size_t n = strcspn(label, ".");

	return arena_printf(a, "%.*s_%d%s", (int)n, label, (int)e->call,
		label + n);
}

static namer names_of(arena *a, const compilation *m)
{
	const plan *p = m->plan;
	int32_t n = m->system->eqn.n;
	namer w = {.m = m, .eqn = arena_array(a, const char *, n + 1),
		.kernel = arena_array(a, int32_t, n + 1),
		.first = arena_array(a, int32_t, p->kernel.n + 1)};

	for (int32_t i = 0; i < n; i++) {
		w.eqn[i] = eqn_name(a, &m->system->eqn.at[i]);
		w.kernel[i] = -1;
	}
	for (int32_t i = p->launch.n - 1; i >= 0; i--) {
		const fuse_kernel *k = p->launch.at[i].source;

		for (int32_t j = 0; j < k->n_eqns; j++)
			if (!k->eqn[j].recomputed ||
				w.kernel[k->eqn[j].source] < 0)
				w.kernel[k->eqn[j].source] = i;
		if (p->launch.at[i].kernel >= 0)
			w.first[p->launch.at[i].kernel] = i;
	}
	return w;
}

static void json_loops(str *s, const compilation *m, const fuse_kernel *k)
{
	arena *tmp = arena_child(m->a);
	str loops = str_new(tmp);

	loop_print(&loops, loop_build(tmp, m->system, k, true), false);
	str_add(s, ",\"loops\":");
	str_json(s, loops.at);
	arena_free(tmp);
}

static void json_kernel(str *s, const namer *w, const plan_times *t,
	int32_t step, int32_t i)
{
	const plan_launch *l = &w->m->plan->launch.at[i];
	const fuse_kernel *k = l->source;

	str_printf(s, "%s{\"step\":%d,\"function\":%d,\"name\":",
		i > 0 ? ",\n" : "\n", (int)step, (int)l->kernel);
	str_json(s, k->name);
	if (t != NULL)
		str_printf(s, ",\"seconds\":%.9g", t->total[i]);
	str_printf(s, ",\"predicted\":%.9g",
		compile_predicted(w->m, k->id, w->threads));
	if (l->code != NULL)
		str_printf(s, ",\"bytes\":%lld,\"flops\":%lld",
			(long long)l->code->bytes, (long long)l->code->flops);
	str_add(s, ",\"equations\":[");
	for (int32_t j = 0; j < k->n_eqns; j++) {
		str_add(s, j > 0 ? "," : "");
		str_json(s, w->eqn[k->eqn[j].source]);
	}
	str_addc(s, ']');
	if (k->opaque)
		str_add(s, ",\"loops\":\"opaque: a function of the library\"");
	else if (w->first[l->kernel] == i)
		json_loops(s, w->m, k);
	str_addc(s, '}');
}

static void json_kernels(str *s, const namer *w, const plan_times *t)
{
	const plan *p = w->m->plan;

	str_add(s, "\"kernels\":[");
	for (int32_t i = 0; i < p->step.n; i++) {
		const plan_step *step = &p->step.at[i];

		for (int32_t k = step->first; k < step->first + step->n; k++)
			json_kernel(s, w, t, i, k);
	}
	str_add(s, "],\"functions\":[");
	for (int32_t i = 0; i < p->kernel.n; i++) {
		const plan_kernel *k = &p->kernel.at[i];

		str_printf(s, "%s{\"uses\":%d,\"name\":\"%s\",\"c\":",
			i > 0 ? ",\n" : "\n", (int)k->n_uses,
			k->code->phase[0].fn);
		str_json(s, k->code->c);
		str_addc(s, '}');
	}
	str_addc(s, ']');
}

/* An end of a reason: the equation, and the kernel that computes it. */
static void json_end(str *s, const namer *w, const char *key, int32_t eqn)
{
	bool known = eqn >= 0 && eqn < w->m->system->eqn.n;

	str_printf(s, ",\"%s\":", key);
	str_json(s, known ? w->eqn[eqn] : "");
	str_printf(s, ",\"%s_kernel\":%d", key,
		known ? (int)w->kernel[eqn] : -1);
}

static void json_reasons(str *s, const namer *w)
{
	const compilation *m = w->m;

	fuse_explain(m->groups);
	str_add(s, ",\"reasons\":[");
	for (int32_t i = 0; i < m->groups->reason.n; i++) {
		const fuse_reason *r = &m->groups->reason.at[i];

		str_printf(s, "%s{\"why\":\"%s\",\"tensor\":",
			i > 0 ? ",\n" : "\n", fuse_why_name(r->why));
		str_json(s, m->system->tensor.at[r->tensor].name);
		json_end(s, w, "producer", r->producer);
		json_end(s, w, "consumer", r->consumer);
		str_add(s, ",\"text\":");
		str_json(s, r->text);
		str_addc(s, '}');
	}
	str_addc(s, ']');
}

static double all_runs(const plan_times *t)
{
	double sum = 0;

	for (int32_t i = 0; t != NULL && i < t->n_launches; i++)
		sum += t->total[i];
	return sum;
}

static void json_program(
	str *s, tn_context *c, const compilation *m, const plan_times *t)
{
	arena *a = arena_child(m->a);
	namer w = names_of(a, m);

	w.threads = api_threads(c);
	str_printf(s,
		"{\"runs\":%lld,\"seconds\":%.9g,\"slab_bytes\":%zu,"
		"\"passes\":[",
		t != NULL ? (long long)t->n_runs : 0LL, all_runs(t),
		m->plan->tensor_bytes + m->plan->scratch_bytes +
			m->plan->kept_bytes);
	for (int32_t i = 0; i < COMPILE_N_PASSES; i++)
		str_printf(s, "%s{\"name\":\"%s\",\"ms\":%.3f}",
			i > 0 ? "," : "", compile_pass_name(i), m->ms[i]);
	str_add(s, "],");
	json_kernels(s, &w, t);
	json_reasons(s, &w);
	str_addc(s, '}');
	arena_free(a);
}

/* ---- traces ---- */

static void trace_event(str *s, const char *name, const char *what,
	int32_t lane, double at, double seconds)
{
	str_add(s, ",\n{\"ph\":\"X\",\"pid\":1,\"name\":");
	str_json(s, name);
	str_printf(s, ",\"cat\":\"%s\",\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
		what, (int)lane, 1e6 * at, 1e6 * seconds);
}

static void trace_program(str *s, const profile_entry *e)
{
	const plan *p = e->m->plan;
	double at = e->compiled - e->of->began;

	for (int32_t i = 0; i < COMPILE_N_PASSES; i++)
		at -= 1e-3 * e->m->ms[i];
	for (int32_t i = 0; i < COMPILE_N_PASSES; i++) {
		trace_event(s, compile_pass_name(i), "compile", 2, at,
			1e-3 * e->m->ms[i]);
		at += 1e-3 * e->m->ms[i];
	}
	for (int32_t i = 0; e->t->n_runs > 0 && i < e->t->n_launches; i++)
		trace_event(s, p->launch.at[i].source->name, "kernel", 1,
			e->t->begin[i] - e->of->began,
			e->t->end[i] - e->t->begin[i]);
	if (e->t->n_runs > 0 && e->t->n_launches > 0)
		str_printf(s,
			",\n{\"ph\":\"C\",\"pid\":1,\"name\":\"slab bytes\","
			"\"ts\":%.3f,\"args\":{\"bytes\":%zu}}",
			1e6 * (e->t->begin[0] - e->of->began),
			p->tensor_bytes + p->scratch_bytes + p->kept_bytes);
}

/* ---- the whole ---- */

struct text_call {
	tn_context *c;
	tn_program *p; /* or NULL: all */
	bool trace;
	char **out;
};

static void text(void *arg)
{
	const struct text_call *k = arg;
	arena *a = arena_child(k->c->a);
	str s = str_new(a);

	if (k->p == NULL && k->c->profile == NULL)
		env_fail(k->c->e, TN_EINVAL, "profile.start", (loc){0},
			"tn_profile_start was not called");
	str_add(&s, k->trace ? "{\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,"
			       "\"name\":\"process_name\",\"args\":"
			       "{\"name\":\"tenon\"}}"
			     : "{\"programs\":[\n");
	if (k->p != NULL)
		json_program(
			&s, k->c, api_made(k->p, TN_LEVEL_C), api_profile_times(k->p));
	else
		for (const profile_entry *e = k->c->profile->first; e != NULL;
			e = e->next) {
			if (k->trace) {
				trace_program(&s, e);
				continue;
			}
			json_program(&s, k->c, e->m, e->t);
			str_add(&s, e->next != NULL ? ",\n" : "");
		}
	str_add(&s, "]}\n");
	*k->out = api_text(k->c, &s);
	arena_free(a);
}

tn_status tn_profile_text(char **out, tn_context *c, bool trace)
{
	struct text_call k = {c, NULL, trace, out};

	*out = NULL;
	return api_call(c, text, &k);
}

/* ---- a table ---- */

enum { MAX_ROWS = 40 };

/* A kernel of a program, where it is launched. */
typedef struct table_row {
	const plan_launch *l;
	double seconds, predicted; /* of a run */
	int64_t bytes, flops;
} table_row;

static int by_time(const void *a, const void *b)
{
	const table_row *x = a, *y = b;

	return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static table_row row_of(tn_context *c, const profile_entry *e, int32_t i)
{
	const plan_launch *l = &e->m->plan->launch.at[i];

	return (table_row){.l = l,
		.seconds = e->t->total[i] / (double)e->t->n_runs,
		.predicted = compile_predicted(
			e->m, l->source->id, api_threads(c)),
		.bytes = l->code != NULL ? l->code->bytes : 0,
		.flops = l->code != NULL ? l->code->flops : 0};
}

static void print_row(str *s, const table_row *r, double all)
{
	str_printf(s, "%9.4f %9.4f %6.1f%% %8.2f %8.2f  %.60s\n",
		1e3 * r->seconds, 1e3 * r->predicted,
		all > 0 ? 100 * r->seconds / all : 0,
		r->seconds > 0 ? 1e-9 * (double)r->bytes / r->seconds : 0,
		r->seconds > 0 ? 1e-9 * (double)r->flops / r->seconds : 0,
		r->l->source->name);
}

static void table(void *arg)
{
	const struct text_call *k = arg;
	arena *a = arena_child(k->c->a);
	str s = str_new(a);
	VEC(table_row) rows = {0};
	double all = 0;

	if (k->c->profile == NULL)
		env_fail(k->c->e, TN_EINVAL, "profile.start", (loc){0},
			"tn_profile_start was not called");
	for (const profile_entry *e = k->c->profile->first; e != NULL; e = e->next)
		for (int32_t i = 0; e->t != NULL && e->t->n_runs > 0 &&
			i < e->t->n_launches; i++) {
			*vec_push(a, &rows) = row_of(k->c, e, i);
			all += rows.at[rows.n - 1].seconds;
		}
	if (rows.n > 1)
		qsort(rows.at, (size_t)rows.n, sizeof *rows.at, by_time);
	str_printf(&s,
		"   ms/run predicted   share     GB/s  GFLOP/s  kernels: %.4f "
		"ms\n",
		1e3 * all);
	for (int32_t i = 0; i < rows.n && i < MAX_ROWS; i++)
		print_row(&s, &rows.at[i], all);
	if (rows.n > MAX_ROWS)
		str_printf(&s, "and %d more\n", (int)(rows.n - MAX_ROWS));
	*k->out = api_text(k->c, &s);
	arena_free(a);
}

tn_status tn_profile_table(char **out, tn_context *c)
{
	struct text_call k = {.c = c, .out = out};

	*out = NULL;
	return api_call(c, table, &k);
}

tn_status tn_program_profile(char **out, tn_program *p)
{
	if (p == NULL) {
		*out = NULL;
		return api_null("the program");
	}

	struct text_call k = {p->c, p, false, out};

	*out = NULL;
	return api_call(p->c, text, &k);
}
