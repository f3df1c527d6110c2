/*
 * case.c: one program: both texts, the interpreter, compiled code, and what
 * they must agree on.
 *
 *   parse(print(p)) = p           for the program and for its equations
 *   compiled = interpreted        within the bounds of shadow.c
 *   the same bits                 from one thread and from two
 *   index.range                   from both or from none
 *   bytes around every array, and between those of the slab, stay as they were
 */
#include "prop.h"
#include "system_parse.h"
#include "plan/exec.h"
#include "system/eval.h"
#include "interp/interp.h"

#include <math.h>
#include <stdlib.h>

enum { GUARD = 64, MARK = 0xA5 };

struct job {
	arena *a;
	const prop_options *o;
	prop_case *c;
	compilation *made;
	tn_status want; /* what the interpreter said */
	bool refused; /* and lowering said the same at once */
	void **expect;	/* by output */
	shadow_run *bound; /* NULL until asked for */
	/* while a step runs under env_run */
	ir_table *t;
	const char *text[11];
	const char *kernel; /* that is read back; NULL: all are */
	batch *b;
	kern_level *kern;
	bool by_kern; /* kernels are interpreted */
	int32_t threads;
	void **out;
};

compilation *job_compilation(const job *j)
{
	return j->made;
}

static const ir_type *input_type(const ir_program *p, int32_t i)
{
	return &p->value.at[p->input.at[i]].type;
}

static const ir_type *output_type(const ir_program *p, int32_t i)
{
	return &p->value.at[p->output.at[i]].type;
}

/* ---- the front end ---- */

static void read_back_program(void *arg)
{
	job *j = arg;
	str x = str_new(j->a), y = str_new(j->a);
	ir_program *p;

	ir_program_print(&x, j->c->p);
	j->text[0] = j->text[1] = x.at;
	p = ir_program_parse(j->a, x.at, x.n, "case.tn", interp_loop);
	ir_program_verify(p);
	ir_program_print(&y, p);
	j->text[1] = y.at;
}

static void lower(void *arg)
{
	job *j = arg;
	compile_options o = draw_options(j->a, j->c, j->o);
	str x = str_new(j->a), y = str_new(j->a);
	ir_system *s;

	o.plan.guard_bytes = GUARD;
	/* as parameters that stay: what is copied of them is kept */
	for (int32_t i = 0; i < j->c->p->input.n; i++)
		j->c->p->value.at[j->c->p->input.at[i]].steady = true;
	j->made = compile_new(j->a, j->c->p, &o);
	compile_to(j->made, TN_LEVEL_SYSTEM);
	ir_system_print(&x, j->made->system);
	j->text[2] = j->text[3] = x.at;
	s = ir_system_parse(j->a, ix_new(j->a), x.at, x.n, "case.system");
	ir_system_verify(s);
	ir_system_print(&y, s);
	j->text[3] = y.at;
}

static void fill(void *arg)
{
	job *j = arg;
	ir_system *s = j->made->system;
	int32_t n = j->c->p->input.n;
	int64_t *lo = arena_array(j->a, int64_t, s->tensor.n + 1);
	int64_t *hi = arena_array(j->a, int64_t, s->tensor.n + 1);
	int64_t *in_lo = arena_array(j->a, int64_t, n + 1);
	int64_t *in_hi = arena_array(j->a, int64_t, n + 1);

	compile_index_ranges(s, lo, hi);
	for (int32_t i = 0; i < n; i++) {
		in_lo[i] = lo[s->input.at[i]];
		in_hi[i] = hi[s->input.at[i]];
	}
	fill_inputs(j->a, j->c, in_lo, in_hi);
}

/* Copies of the inputs: a program writes its params where they lie. */
static const void *const *fresh_inputs(job *j)
{
	const ir_program *p = j->c->p;
	const void **in = arena_array(j->a, const void *, p->input.n + 1);

	for (int32_t i = 0; i < p->input.n; i++) {
		size_t n = type_bytes(input_type(p, i));
		void *copy = arena_alloc(j->a, n + 1, 1);

		memcpy(copy, j->c->in[i], n);
		in[i] = copy;
	}
	return in;
}

static void interpret(void *arg)
{
	job *j = arg;
	ir_program *p = j->c->p;

	j->expect = arena_array(j->a, void *, p->output.n + 1);
	for (int32_t i = 0; i < p->output.n; i++)
		j->expect[i] = arena_alloc(
			j->a, type_bytes(output_type(p, i)) + 1, 1);
	interp_run(arena_env(j->a), p, fresh_inputs(j), j->expect);
}

static const char *schedule_of(job *j, compilation *c)
{
	str s = str_new(j->a);

	compile_explain(&s, c, TN_LEVEL_SCHEDULE, 0);
	return s.at;
}

static const char *code_of(job *j, compilation *c)
{
	str s = str_new(j->a);

	compile_explain(&s, c, TN_LEVEL_C, 0);
	return s.at;
}

static const char *kern_of(job *j, compilation *c)
{
	str s = str_new(j->a);

	compile_explain(&s, c, TN_LEVEL_KERN, 0);
	return s.at;
}

/* Its kernels, printed and pinned, give the same C. */
static void pin_kern(void *arg)
{
	job *j = arg;
	compile_options o = j->made->o;
	const char *text = kern_of(j, j->made);
	compilation *c;

	o.kern = (compile_text){text, "case.kern", strlen(text), NULL};
	c = compile_new(j->a, j->c->p, &o);
	compile_to(c, TN_LEVEL_C);
	j->text[10] = code_of(j, c);
}

/* Its schedules, printed and pinned, give the same schedules and the same C. */
static void pin(void *arg)
{
	job *j = arg;
	compile_options o = j->made->o;
	compilation *c;

	j->text[4] = schedule_of(j, j->made);
	j->text[6] = code_of(j, j->made);
	o.schedule = (compile_text){
		j->text[4], "case.schedule", strlen(j->text[4]), NULL};
	c = compile_new(j->a, j->c->p, &o);
	compile_to(c, TN_LEVEL_C);
	j->text[5] = schedule_of(j, c);
	j->text[7] = code_of(j, c);
}

/*
 * Its kernels, printed, are read back as the same, and the verifier accepts
 * them: as they are read, so that a refusal has its line.
 */
static void read_kernels(void *arg)
{
	job *j = arg;
	str x = str_new(j->a), y = str_new(j->a);

	compile_to(j->made, TN_LEVEL_KERN);
	for (int32_t i = 0; i < j->made->groups->kernel.n; i++) {
		str one = str_new(j->a);
		kern_kernel *k;

		if (j->made->kernels[i] == NULL)
			continue;
		kern_print(&one, j->made->kernels[i], i);
		str_add(&x, one.at);
		j->kernel = one.at;
		k = kern_parse(j->a, one.at, one.n, "case.kern");
		kern_print(&y, k, i);
		kern_verify(k);
	}
	j->kernel = NULL;
	j->text[8] = x.n > 0 ? x.at : "";
	j->text[9] = y.n > 0 ? y.at : "";
}

static void texts(void *arg)
{
	job *j = arg;

	j->kern = kern_level_new(j->a, j->made);
	j->kern->seed = j->c->index;
	compile_to(j->made, TN_LEVEL_C);
	levels_break_plan(j->made);
}

/* false: it threw; *message says what */
static bool step(job *j, const char *name, void (*fn)(void *arg),
	const char **message)
{
	env *e = arena_env(j->a);
	const tn_diag *d;

	if (env_run(e, fn, j) == TN_OK)
		return true;
	d = env_diag(e);
	*message = arena_printf(j->a, "%s: [%s] %s:%d %s\n%s\n%s", name,
		d->rule, d->file, d->line, d->text, d->extra,
		j->kernel != NULL ? j->kernel : "");
	return false;
}

static bool differ(job *j, const char *what, const char *x, const char *y,
	const char **message)
{
	if (strcmp(x, y) == 0)
		return false;
	*message = arena_printf(j->a,
		"print(parse(print(%s))) differs:\n%s---- second\n%s", what, x,
		y);
	return true;
}

static void fill_blindly(job *j)
{
	int64_t *none = arena_array(j->a, int64_t, j->c->p->input.n + 1);

	fill_inputs(j->a, j->c, none, none);
}

/* false: the interpreter fails in a way that no program may */
static bool interpret_status(job *j, const char **message)
{
	const tn_diag *d = env_diag(arena_env(j->a));

	j->want = env_run(arena_env(j->a), interpret, j);
	if (j->want != TN_OK && j->want != TN_ERANGE) {
		*message = arena_printf(j->a, "interpreter: [%s] %s", d->rule,
			d->text);
		return false;
	}
	return true;
}

job *job_new(arena *a, ir_table *t, const prop_options *o, prop_case *c,
	const char **message)
{
	job *j = arena_make(a, job);

	j->a = a;
	j->o = o;
	j->c = c;
	j->t = t;
	if (!step(j, "program text", read_back_program, message) ||
		differ(j, "program", j->text[0], j->text[1], message))
		return NULL;
	if (!step(j, "lowering", lower, message)) {
		/* an index that is known to be outside is refused at once */
		j->refused = true;
		if (c->in == NULL)
			fill_blindly(j);
		return interpret_status(j, message) &&
				j->want == TN_ERANGE
			? j
			: NULL;
	}
	if (differ(j, "system", j->text[2], j->text[3], message))
		return NULL;
	if (c->in == NULL && !step(j, "index ranges", fill, message))
		return NULL;
	if (!interpret_status(j, message) ||
		!step(j, "kernels", read_kernels, message) ||
		differ(j, "kernels", j->text[8], j->text[9], message) ||
		!step(j, "compilation", texts, message))
		return NULL;
	/* a text that is pinned makes the broken pass not run */
	if (levels_are_broken())
		return j;
	if (!step(j, "schedules read back", pin, message) ||
		differ(j, "schedule", j->text[4], j->text[5], message) ||
		differ(j, "C of schedule", j->text[6], j->text[7], message) ||
		!step(j, "kernels pinned", pin_kern, message) ||
		differ(j, "C of kern", j->text[6], j->text[10], message))
		return NULL;
	return j;
}

static void add(void *arg)
{
	job *j = arg;

	batch_add(j->b, j->made->plan);
}

bool job_add(job *j, batch *b, const char **message)
{
	j->b = b;
	return j->refused || step(j, "batch", add, message);
}

/* ---- running ---- */

static void free_buffer(void *p)
{
	free(p);
}

/* An array with marked bytes around it, at an address of no merit. */
static unsigned char *buffer(job *j, const ir_type *t, int32_t number)
{
	size_t n = type_bytes(t), size = dtype_size(t->dtype);
	size_t off = size * (size_t)(number % 5);
	size_t all = GUARD + off + n + (j->o->asan ? 0 : GUARD);
	unsigned char *p = malloc(all);

	if (p == NULL)
		env_fail(arena_env(j->a), TN_ENOMEM, "memory", (loc){0},
			"no memory for a buffer");
	arena_defer(j->a, free_buffer, p);
	memset(p, MARK, all);
	if (j->o->asan)
		asan_poison(p, (GUARD + off) / 8 * 8, true);
	return p + GUARD + off;
}

static bool marked(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != MARK)
			return false;
	return true;
}

/* Bytes of the slab that belong to no tensor: calls fn on each run of them. */
typedef bool gap_fn(unsigned char *p, size_t n);

static bool mark_gap(unsigned char *p, size_t n)
{
	memset(p, MARK, n);
	asan_poison(p, n, true);
	return true;
}

static bool check_gap(unsigned char *p, size_t n)
{
	asan_poison(p, n, false);
	return marked(p, n);
}

static bool each_gap(const job *j, unsigned char *slab, gap_fn *fn)
{
	const plan *p = j->made->plan;
	size_t at = 0;
	bool ok = true;

	while (at < p->tensor_bytes) {
		size_t end = at, next = p->tensor_bytes;

		for (int32_t i = 0; i < p->s->tensor.n; i++) {
			const plan_location *q = &p->location[i];

			if (q->where != PLAN_SLAB || q->bytes == 0)
				continue;
			if (q->offset <= at && q->offset + q->bytes > end)
				end = q->offset + q->bytes;
			if (q->offset > at && q->offset < next)
				next = q->offset;
		}
		if (end > at) {
			at = end;
		} else {
			ok = fn(slab + at, next - at) && ok;
			at = next;
		}
	}
	return ok;
}

static void execute(void *arg)
{
	job *j = arg;
	ir_program *p = j->c->p;
	arena *a = arena_child(j->a);
	run_pool *pool = run_pool_new(a, j->threads);
	plan_exec *x = plan_exec_new(a, j->made->plan, pool,
		j->by_kern ? kern_level_find : batch_find,
		j->by_kern ? (void *)j->kern : (void *)j->b);
	void **in = arena_array(a, void *, p->input.n + 1);
	unsigned char *slab = (unsigned char *)x->slab;
	int64_t *version = arena_array(a, int64_t, p->input.n + 1);
	bool ok;

	for (int32_t i = 0; i < p->input.n; i++) {
		in[i] = buffer(j, input_type(p, i), i);
		memcpy(in[i], j->c->in[i], type_bytes(input_type(p, i)));
		version[i] = i + 1;
	}
	j->out = arena_array(j->a, void *, p->output.n + 1);
	for (int32_t i = 0; i < p->output.n; i++)
		j->out[i] = buffer(j, output_type(p, i), i + 1);
	each_gap(j, slab, mark_gap);
	plan_exec_run(x, (const void *const *)in, version, j->out);
	for (int32_t i = 0; i < p->input.n; i++) /* params may be written */
		if (p->value.at[p->input.at[i]].is_param)
			memcpy(in[i], j->c->in[i],
				type_bytes(input_type(p, i)));
	if (plan_exec_n_copied(x) > 0) /* and found there the next time */
		plan_exec_run(x, (const void *const *)in, version, j->out);
	ok = each_gap(j, slab, check_gap);
	if (!ok)
		env_bug(arena_env(a), "guard",
			"bytes of the slab that belong to no tensor are written");
	for (int32_t i = 0; i < p->input.n; i++) {
		size_t n = type_bytes(input_type(p, i));

		if (!p->value.at[p->input.at[i]].is_param &&
			memcmp(in[i], j->c->in[i], n) != 0)
			env_bug(arena_env(a), "guard", "input %d is written", i);
	}
	for (int32_t i = 0; !j->o->asan && i < p->output.n; i++) {
		unsigned char *q = j->out[i];

		if (!marked(q - GUARD, GUARD) ||
			!marked(q + type_bytes(output_type(p, i)), GUARD))
			env_bug(arena_env(a), "guard",
				"bytes around output %d are written", i);
	}
	arena_free(a);
}

/* ---- comparing ---- */

static void make_bound(void *arg)
{
	job *j = arg;
	shadow_run *made = arena_make(j->a, shadow_run);

	shadow_program(j->a, j->c->p, fresh_inputs(j), made);
	j->bound = made; /* none, if that failed */
}

static double value_at(tn_dtype t, const void *data, int64_t i)
{
	return dtype_is_float(t) ? dtype_load_f64(t, data, i)
				 : (double)dtype_load_i64(t, data, i);
}

static bool same_at(tn_dtype t, const void *x, const void *y, int64_t i)
{
	double v, w;

	if (!dtype_is_float(t))
		return dtype_load_i64(t, x, i) == dtype_load_i64(t, y, i);
	v = dtype_load_f64(t, x, i);
	w = dtype_load_f64(t, y, i);
	return v == w || (isnan(v) && isnan(w));
}

/* "o[1,2]" */
static const char *element(job *j, int32_t output, int64_t i)
{
	const ir_value *v = &j->c->p->value.at[j->c->p->output.at[output]];
	int64_t at[TN_MAX_RANK];
	str s = str_new(j->a);

	for (int32_t k = v->type.rank - 1; k >= 0; k--) {
		at[k] = i % v->type.shape[k];
		i /= v->type.shape[k];
	}
	str_add(&s, v->name);
	str_shape(&s, at, v->type.rank);
	return s.at;
}

/* An element whose bits differ: is that explained? */
static bool explained(job *j, int32_t output, int64_t i, const char **message,
	prop_result *r)
{
	tn_dtype t = output_type(j->c->p, output)->dtype;
	double want = value_at(t, j->expect[output], i);
	double have = value_at(t, j->out[output], i);
	const shadow *s;
	double v;

	if (j->bound == NULL && !step(j, "bounds", make_bound, message))
		return false;
	s = &j->bound->value[j->c->p->output.at[output]][i];
	if (isinf(s->e)) {
		r->free++;
		return true;
	}
	v = dtype_is_float(t) ? s->v.f : (double)s->v.i;
	if (v != want && !(isnan(v) && isnan(want))) {
		*message = arena_printf(j->a,
			"the interpreters differ: %s is %.17g, then %.17g",
			element(j, output, i), want, v);
		return false;
	}
	if (fabs(have - want) <= s->e) {
		r->bounded++;
		return true;
	}
	*message = arena_printf(j->a,
		"%s (%s) is %.17g, but %.17g by the interpreter, within %.3g",
		element(j, output, i), dtype_name(t), have, want, s->e);
	return false;
}

static bool compare(job *j, const char **message, prop_result *r)
{
	for (int32_t o = 0; o < j->c->p->output.n; o++) {
		const ir_type *t = output_type(j->c->p, o);

		for (int64_t i = 0; i < type_numel(t); i++)
			if (same_at(t->dtype, j->expect[o], j->out[o], i))
				r->exact++;
			else if (!explained(j, o, i, message, r))
				return false;
	}
	return true;
}

static bool same_bits(job *j, void *const *x, void *const *y,
	const char **message)
{
	for (int32_t o = 0; o < j->c->p->output.n; o++) {
		size_t n = type_bytes(output_type(j->c->p, o));

		if (memcmp(x[o], y[o], n) != 0) {
			*message = arena_printf(j->a,
				"output %d: other bits by 3 threads than by 1",
				o);
			return false;
		}
	}
	return true;
}

static bool has_nothing(const ir_program *p)
{
	for (int32_t i = 0; i < p->value.n; i++)
		if (type_numel(&p->value.at[i].type) == 0)
			return true;
	return false;
}

/* index.range came from one side only. */
static bool explain_range(job *j, tn_status have, const char **message)
{
	if (j->want == TN_ERANGE) {
		/* what no output needs need not be read */
		if (!j->c->all_outputs || has_nothing(j->c->p))
			return true;
		*message = "index.range by the interpreter, none compiled";
		return false;
	}
	if (j->bound == NULL && !step(j, "bounds", make_bound, message))
		return false;
	if (j->bound->unsure)
		return true;
	*message = arena_printf(j->a, "compiled: status %d [%s] %s", have,
		env_diag(arena_env(j->a))->rule,
		env_diag(arena_env(j->a))->text);
	return false;
}

enum { MAX_KERN_COST = 100000 };

/* The kernels interpreted: are they as the program says? Steps too long: yes. */
static bool kern_agrees(job *j, const char **message, prop_result *r)
{
	env *e = arena_env(j->a);
	tn_status have;
	bool same;

	if (!kern_level_fits(j->made) || j->c->cost > MAX_KERN_COST)
		return true;
	j->threads = 1;
	j->by_kern = true;
	have = env_run(e, execute, j);
	j->by_kern = false;
	if (have != TN_OK) {
		*message = arena_printf(j->a, "[%s] %s", env_diag(e)->rule,
			env_diag(e)->text);
		return false;
	}
	same = compare(j, message, r);
	return same;
}

/* ---- levels ---- */

struct systems {
	job *j;
	compilation *c;
};

static void eval_system(void *arg)
{
	const struct systems *y = arg;
	job *j = y->j;
	const ir_program *p = j->c->p;
	const ir_system *s = y->c->system;
	const void *const *in = fresh_inputs(j);

	j->out = arena_array(j->a, void *, p->output.n + 1);
	for (int32_t i = 0; i < p->output.n; i++)
		j->out[i] = arena_alloc(
			j->a, type_bytes(output_type(p, i)) + 1, 1);
	for (int32_t i = 0; i < s->store.n && i < p->output.n; i++)
		if (s->store.at[i] >= 0 && s->store.at[i] < p->input.n)
			j->out[i] = (void *)(uintptr_t)in[s->store.at[i]];
	eval_arrays(j->a, y->c->system, in, j->out);
}

static bool system_is_right(void *arg, compilation *c)
{
	struct systems y = {arg, c};
	const char *message;
	prop_result r = {0};

	return env_run(arena_env(y.j->a), eval_system, &y) == TN_OK &&
	       compare(y.j, &message, &r);
}

static bool kernels_are_right(void *arg, compilation *c)
{
	job *j = arg;
	compilation *made = j->made;
	kern_level *kern = j->kern;
	const char *message;
	prop_result r = {0};
	bool same;

	j->kern = kern_level_new(j->a, c);
	j->kern->seed = j->c->index;
	compile_to(c, TN_LEVEL_C);
	levels_break_plan(c);
	j->made = c;
	same = kern_agrees(j, &message, &r);
	j->made = made;
	j->kern = kern;
	return same;
}

struct search {
	job *j;
	const char *first;
};

static void search(void *arg)
{
	struct search *s = arg;
	const levels l = {s->j->a, s->j->c->p, s->j->made->o, system_is_right,
		kernels_are_right, s->j};

	s->first = levels_first(&l);
}

/* Compiled code is not as it should be: what is the first level that is not? */
static bool name_level(job *j, const char **message)
{
	struct search s = {j, "none of the passes alone"};
	const char *c = *message;

	if (env_run(arena_env(j->a), search, &s) != TN_OK)
		s.first = arena_printf(j->a, "not known: [%s] %s",
			env_diag(arena_env(j->a))->rule,
			env_diag(arena_env(j->a))->text);
	*message = arena_printf(
		j->a, "first level that differs: %s\n%s", s.first, c);
	return false;
}

bool job_run(job *j, batch *b, const char **message, prop_result *r)
{
	env *e = arena_env(j->a);
	tn_status have;
	void **first;

	j->b = b;
	if (j->refused) {
		r->ranges++;
		return true;
	}
	j->threads = 1;
	have = env_run(e, execute, j);
	if (have != TN_OK && have != TN_ERANGE) {
		*message = arena_printf(j->a, "compiled: [%s] %s",
			env_diag(e)->rule, env_diag(e)->text);
		return false;
	}
	r->kernels += j->made->plan->kernel.n;
	if (have != j->want)
		return explain_range(j, have, message);
	if (have == TN_ERANGE) {
		r->ranges++;
		return true;
	}
	if (!compare(j, message, r))
		return name_level(j, message);
	first = j->out;
	j->threads = 3;
	if (env_run(e, execute, j) != TN_OK) {
		*message = arena_printf(j->a, "by 3 threads: [%s] %s",
			env_diag(e)->rule, env_diag(e)->text);
		return false;
	}
	if (!same_bits(j, first, j->out, message))
		return false;
	if (kern_agrees(j, message, r))
		return true;
	*message = arena_printf(j->a,
		"first level that differs: kern, as it is interpreted; its C is as it should be\n%s",
		*message);
	return false;
}

const char *try_case(arena *a, ir_table *t, const prop_options *o,
	prop_case *c, prop_result *r)
{
	const char *message = NULL;
	job *j = job_new(a, t, o, c, &message);
	batch *b;

	if (j == NULL || o->front)
		return message;
	b = batch_new(a, o);
	if (!job_add(j, b, &message))
		return message;
	if (!batch_compile(b, &message))
		return arena_printf(a, "C compiler: %s", message);
	if (!job_run(j, b, &message, r))
		return message;
	return NULL;
}
