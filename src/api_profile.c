/*
 * api_profile.c: what has run, and how long it took: programs with their
 * kernels as loops and as C, the reasons between them, times of steps.
 *
 *     {"programs":[{"runs":9,"seconds":0.1,"kernels":[{"name":"fn_add_0", ..
 *
 * Programs live in arenas of their own and may end before the context does:
 * each takes itself out of the list.
 */
#include "api.h"

#include <stdlib.h>

typedef struct entry {
	struct entry *next;
	struct api_profile *of; /* NULL: it is in no list */
	compilation *m;
	const plan_times *t; /* NULL: it never ran */
	double compiled;     /* when, in seconds */
} entry;

struct api_profile {
	entry *first, **last;
	double began;
};

static void start(void *arg)
{
	tn_context *c = arg;
	struct api_profile *p;

	if (c->profile != NULL)
		return;
	p = arena_make(c->a, struct api_profile);
	p->last = &p->first;
	p->began = 1e-3 * compile_clock_ms();
	c->profile = p;
}

tn_status tn_profile_start(tn_context *c)
{
	return api_call(c, start, c);
}

static void leave(void *arg)
{
	entry *e = arg;
	entry **at = &e->of->first;

	while (*at != NULL && *at != e)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	*at = e->next;
	if (e->of->last == &e->next)
		e->of->last = at;
}

void api_profile_add(tn_context *c, compilation *m, plan_exec *x)
{
	entry *e;

	if (c->profile == NULL)
		return;
	e = arena_make(m->a, entry);
	e->of = c->profile;
	e->m = m;
	e->t = plan_exec_time(x);
	e->compiled = 1e-3 * compile_clock_ms();
	*e->of->last = e;
	e->of->last = &e->next;
	arena_defer(m->a, leave, e);
}

/* ---- one program ---- */

static void json_kernel(str *s, const compilation *m, int32_t step, int32_t i)
{
	const plan_launch *l = &m->plan->launch.at[i];
	const fuse_kernel *k = l->source;

	str_printf(s, "%s{\"step\":%d,\"function\":%d,\"name\":",
		i > 0 ? ",\n" : "\n", (int)step, (int)l->kernel);
	str_json(s, k->name);
	if (l->code != NULL)
		str_printf(s, ",\"bytes\":%lld,\"flops\":%lld",
			(long long)l->code->bytes, (long long)l->code->flops);
	str_add(s, ",\"equations\":[");
	for (int32_t j = 0; j < k->n_eqns; j++) {
		str_add(s, j > 0 ? "," : "");
		str_json(s, k->eqn[j].e.label);
	}
	str_add(s, "],\"loops\":");
	if (k->opaque) {
		str_json(s, "opaque: a function of the library");
	} else {
		arena *tmp = arena_child(m->a);
		str loops = str_new(tmp);

		loop_print(&loops, loop_build(tmp, m->system, k, true), false);
		str_json(s, loops.at);
		arena_free(tmp);
	}
	str_addc(s, '}');
}

static void json_kernels(str *s, const compilation *m)
{
	str_add(s, "\"kernels\":[");
	for (int32_t t = 0; t < m->plan->step.n; t++) {
		const plan_step *step = &m->plan->step.at[t];

		for (int32_t i = step->first; i < step->first + step->n; i++)
			json_kernel(s, m, t, i);
	}
	str_add(s, "],\"functions\":[");
	for (int32_t i = 0; i < m->plan->kernel.n; i++) {
		const plan_kernel *k = &m->plan->kernel.at[i];

		str_printf(s, "%s{\"uses\":%d,\"name\":\"%s\",\"c\":",
			i > 0 ? ",\n" : "\n", (int)k->n_uses,
			k->code->phase[0].fn);
		str_json(s, k->code->c);
		str_addc(s, '}');
	}
	str_addc(s, ']');
}

static const char *label_of(const compilation *m, int32_t eqn)
{
	return eqn >= 0 && eqn < m->system->eqn.n ? m->system->eqn.at[eqn].label
						  : "";
}

static void json_reasons(str *s, const compilation *m)
{
	str_add(s, ",\"reasons\":[");
	for (int32_t i = 0; i < m->groups->reason.n; i++) {
		const fuse_reason *r = &m->groups->reason.at[i];

		str_add(s, i > 0 ? ",\n{\"tensor\":" : "\n{\"tensor\":");
		str_json(s, m->system->tensor.at[r->tensor].name);
		str_add(s, ",\"producer\":");
		str_json(s, label_of(m, r->producer));
		str_add(s, ",\"consumer\":");
		str_json(s, label_of(m, r->consumer));
		str_add(s, ",\"text\":");
		str_json(s, r->text);
		str_addc(s, '}');
	}
	str_addc(s, ']');
}

static double all_runs(const plan_times *t)
{
	double sum = 0;

	for (int32_t i = 0; t != NULL && i < t->n_steps; i++)
		sum += t->total[i];
	return sum;
}

static void json_program(str *s, const compilation *m, const plan_times *t)
{
	str_printf(s,
		"{\"runs\":%lld,\"seconds\":%.9g,\"slab_bytes\":%zu,"
		"\"passes_ms\":[",
		t != NULL ? (long long)t->n_runs : 0LL, all_runs(t),
		m->plan->tensor_bytes + m->plan->scratch_bytes +
			m->plan->kept_bytes);
	for (int32_t i = 0; i < COMPILE_N_PASSES; i++)
		str_printf(s, "%s%.3f", i > 0 ? "," : "", m->ms[i]);
	str_add(s, "],\"steps\":[");
	for (int32_t i = 0; t != NULL && i < t->n_steps; i++)
		str_printf(s, "%s%.9g", i > 0 ? "," : "", t->total[i]);
	str_add(s, "],");
	json_kernels(s, m);
	json_reasons(s, m);
	str_addc(s, '}');
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

static void trace_program(str *s, const entry *e)
{
	static const char *const pass[COMPILE_N_PASSES] = {
		"lower", "fuse", "loops", "emit", "plan"};
	const plan *p = e->m->plan;
	double at = e->compiled - e->of->began;

	for (int32_t i = 0; i < COMPILE_N_PASSES; i++)
		at -= 1e-3 * e->m->ms[i];
	for (int32_t i = 0; i < COMPILE_N_PASSES; i++) {
		trace_event(s, pass[i], "compile", 2, at, 1e-3 * e->m->ms[i]);
		at += 1e-3 * e->m->ms[i];
	}
	for (int32_t i = 0; e->t->n_runs > 0 && i < e->t->n_steps; i++)
		trace_event(s, p->launch.at[p->step.at[i].first].source->name,
			"kernel", 1, e->t->begin[i] - e->of->began,
			e->t->end[i] - e->t->begin[i]);
	if (e->t->n_runs > 0 && e->t->n_steps > 0)
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
		json_program(&s, api_made(k->p, TN_LEVEL_C), NULL);
	else
		for (const entry *e = k->c->profile->first; e != NULL;
			e = e->next) {
			if (k->trace) {
				trace_program(&s, e);
				continue;
			}
			json_program(&s, e->m, e->t);
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

/* A step of a program: the kernels that it launches together. */
typedef struct table_row {
	const plan *p;
	const plan_step *step;
	double seconds; /* of a run */
	int64_t bytes, flops;
} table_row;

static int by_time(const void *a, const void *b)
{
	const table_row *x = a, *y = b;

	return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static table_row row_of(const entry *e, int32_t i)
{
	const plan *p = e->m->plan;
	table_row r = {.p = p, .step = &p->step.at[i],
		.seconds = e->t->total[i] / (double)e->t->n_runs};

	for (int32_t k = r.step->first; k < r.step->first + r.step->n; k++)
		if (p->launch.at[k].code != NULL) {
			r.bytes += p->launch.at[k].code->bytes;
			r.flops += p->launch.at[k].code->flops;
		}
	return r;
}

static void print_row(str *s, const table_row *r, double all)
{
	const plan_launch *l = r->p->launch.at;

	str_printf(s, "%9.4f %6.1f%% %8.2f %8.2f  ", 1e3 * r->seconds,
		all > 0 ? 100 * r->seconds / all : 0,
		r->seconds > 0 ? 1e-9 * (double)r->bytes / r->seconds : 0,
		r->seconds > 0 ? 1e-9 * (double)r->flops / r->seconds : 0);
	for (int32_t k = r->step->first; k < r->step->first + r->step->n; k++)
		str_printf(s, "%s%.60s", k > r->step->first ? ", " : "",
			l[k].source->name);
	str_addc(s, '\n');
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
	for (const entry *e = k->c->profile->first; e != NULL; e = e->next)
		for (int32_t i = 0; e->t != NULL && e->t->n_runs > 0 &&
			i < e->t->n_steps; i++) {
			*vec_push(a, &rows) = row_of(e, i);
			all += rows.at[rows.n - 1].seconds;
		}
	if (rows.n > 1)
		qsort(rows.at, (size_t)rows.n, sizeof *rows.at, by_time);
	str_printf(&s, "   ms/run   share     GB/s  GFLOP/s  kernels: %.4f ms\n",
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
	struct text_call k = {p->c, p, false, out};

	*out = NULL;
	return api_call(p->c, text, &k);
}
