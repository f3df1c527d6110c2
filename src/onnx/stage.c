/*
 * stage.c: runs a model with data of any shape (stage.h).
 *
 *     run 1, x = [1,0,2]   import; a program counts nonzeros: 2; the rest
 *     run 2, x = [3,0,4]   the first program gives 2; the second computes y
 *     run 3, x = [0,0,4]   it gives 1: import again with this answer;
 *                          the rest is compiled for 1
 *
 * An import needs the same values in the same order as long as the answers are
 * the same, and it numbers values in the same way. So a branch of the tree of
 * answers is valid for every later run. The interpreter computes an answer that
 * takes few steps; otherwise the stage is compiled, and passes all values on
 * that later stages need.
 *
 * What an import makes is freed together. A run that passes a stage uses the import
 * that made it, so an import is used last at least as late as those whose stages
 * are behind its own. If programs take more bytes than they may, the import that
 * was used first goes, and of several the newest: nothing stands behind it.
 */
#include "onnx/stage.h"

#include "interp/interp.h"

/*
 * each stage may start from the inputs again, so the total cost grows with the
 * square of the number of stages
 */
enum { CHEAP = 1 << 14, MAX_STAGES = 256, MAX_ROOTS = 1 << 16 };

typedef struct branch branch;

/* What one import made. */
typedef struct made {
	arena *a;
	int64_t used; /* the last run that used it */
	VEC(branch *) branch; /* whose stages are its own */
} made;

/*
 * A stage computes a value that determines shapes or, at the end of a branch,
 * the outputs.
 */
typedef struct stage {
	onnx_program p; /* p.ir is NULL if the value is known already */
	made *by;
	void *program;	/* compiled; NULL: the interpreter runs it */
	int32_t n_out, *out; /* values that it computes, the answer first */
	size_t n_bytes;
	void *answer; /* of the current run */
	branch *branches;
	bool is_end;
} stage;

struct branch {
	branch *next;
	const void *answer; /* the answer of its stage */
	stage *to; /* NULL: not built yet */
};

struct onnx_staged {
	arena *a, *kept; /* kept: memory that is freed as a whole */
	onnx_model *m;
	onnx_runner runner;
	int64_t fold;
	map *root; /* types of all inputs -> number */
	VEC(branch *) roots;
	VEC(made *) made; /* oldest first */
	int64_t n_imports, n_runs;
	bool has_grown; /* since the limit was checked */
};

/* The current run. */
typedef struct onnx_path {
	onnx_staged *s;
	arena *a; /* memory of its values */
	const onnx_array *in;
	map *at; /* value -> number */
	VEC(void *) data;
	branch *here;
	made *by; /* the import under way, or NULL */
	int32_t n_asked;
} path;

onnx_staged *onnx_staged_new(
	arena *a, onnx_model *m, int64_t fold, onnx_runner runner)
{
	onnx_staged *s = arena_make(a, onnx_staged);

	s->a = a;
	s->m = m;
	s->fold = fold;
	s->runner = runner;
	for (int32_t i = 0; i < m->input.n; i++)
		if (m->input.at[i].type.kind != ONNX_TENSOR)
			env_fail(arena_env(a), TN_EINVAL, "onnx.type",
				(loc){.file = m->file},
				"input \"%.200s\" is not a tensor: its value "
				"must be given before the model becomes a "
				"program",
				m->input.at[i].name);
	return s;
}

int64_t onnx_staged_imports(const onnx_staged *s)
{
	return s->n_imports;
}

/* ---- running a stage ---- */

static const ir_type *output_type(const stage *s, int32_t i)
{
	return &s->p.ir->value.at[s->p.ir->output.at[i]].type;
}

static const void *data_of(const path *q, int32_t v)
{
	int64_t i = map_get(q->at, &v, sizeof v, -1);

	return i < 0 ? NULL : q->data.at[i];
}

static void set_data(path *q, int32_t v, void *data)
{
	map_set(q->at, &v, sizeof v, q->data.n);
	*vec_push(q->a, &q->data) = data;
}

static void run_program(path *q, const stage *s, void *const *out)
{
	const onnx_program *p = &s->p;
	const void **in = arena_array(q->a, const void *, p->ir->input.n + 1);

	/* all inputs of the model come first */
	for (int32_t i = 0; i < p->ir->input.n; i++)
		if (i < q->s->m->input.n)
			in[i] = q->in[i].data;
		else
			in[i] = i < p->n_free ? data_of(q, p->of[i])
					      : p->bound[i];
	if (s->program == NULL)
		interp_run(arena_env(q->a), p->ir, in, out);
	else
		q->s->runner.run(q->s->runner.arg, s->program, in, out);
}

static void run_stage(path *q, stage *s)
{
	void **out = arena_array(q->a, void *, s->n_out + 1);

	s->by->used = q->s->n_runs;
	if (s->p.ir == NULL) {
		const void *data = s->out[0] < q->s->m->input.n
			? q->in[s->out[0]].data
			: data_of(q, s->out[0]);

		memcpy(s->answer, data, s->n_bytes);
		return;
	}
	out[0] = s->answer;
	for (int32_t i = 1; i < s->n_out; i++)
		out[i] = arena_alloc(q->a, ir_type_bytes(output_type(s, i)) + 1, 1);
	run_program(q, s, out);
	for (int32_t i = 1; i < s->n_out; i++)
		set_data(q, s->out[i], out[i]);
}

/* The branch of the answer; a new one if there is none. */
static branch *follow(stage *s)
{
	arena *a = s->by->a;
	branch *b = s->branches;

	while (b != NULL && memcmp(b->answer, s->answer, s->n_bytes) != 0)
		b = b->next;
	if (b == NULL) {
		b = arena_make(a, branch);
		b->answer = arena_copy(a, s->answer, s->n_bytes);
		b->next = s->branches;
		s->branches = b;
	}
	return b;
}

/* ---- making one ---- */

/* The stage at the end of the path. */
static void add_stage(path *q, stage *g)
{
	*vec_push(q->by->a, &q->by->branch) = q->here;
	q->here->to = g;
}

static stage *new_stage(onnx_import *x, int32_t v)
{
	const onnx_staged *s = x->path->s;
	const fact *f = onnx_fact(x, v);
	stage *g = arena_make(x->a, stage);
	values out = {0};

	g->by = x->path->by;
	g->n_bytes = ir_type_bytes(&x->p->value.at[v].type);
	g->answer = arena_alloc(x->a, g->n_bytes + 1, 1);
	if (f->is_free || f->is_carried) {
		*vec_push(x->a, &out.v) = v;
	} else {
		bool cheap = onnx_is_cheap(x, v, CHEAP);

		if (cheap)
			*vec_push(x->a, &out.v) = v;
		else
			out = onnx_cut(x, v);
		g->p = onnx_prune(x, out.v.n, out.v.at, NULL);
		if (!cheap)
			g->program = s->runner.make(
				s->runner.arg, x->a, &g->p);
	}
	g->n_out = out.v.n;
	g->out = out.v.at;
	return g;
}

static const void *decide(onnx_import *x, int32_t v)
{
	path *q = x->path;
	stage *g = q->here->to;
	fact *f;

	if (++q->n_asked > MAX_STAGES)
		env_fail(x->e, TN_EINVAL, "onnx.size", (loc){.file = x->where},
			"more than %d values that are computed from data "
			"decide shapes, one after the other", MAX_STAGES);
	if (g == NULL) {
		g = new_stage(x, v);
		run_stage(q, g);
		add_stage(q, g);
	}
	if (g->is_end || g->out[0] != v)
		env_bug(x->e, "onnx_stage", "the import needs another "
			"value than before");
	for (int32_t i = 1; i < g->n_out; i++)
		onnx_fact(x, g->out[i])->is_carried = true;
	q->here = follow(g);
	/* it is a constant in later stages */
	f = onnx_fact(x, v);
	f->data = q->here->answer;
	f->is_const = true;
	f->is_folded = !f->is_free;
	return f->data;
}

/* ---- a run ---- */

static void import(path *q)
{
	onnx_staged *s = q->s;
	arena *a = arena_child(s->kept);
	onnx_import *x = onnx_import_new(a, s->m);
	stage *g = arena_make(a, stage);

	q->by = arena_make(a, made);
	q->by->a = a;
	q->by->used = s->n_runs;
	*vec_push(s->kept, &s->made) = q->by;
	s->has_grown = true;
	s->n_imports++;
	x->path = q;
	x->decide = decide;
	onnx_fold_from(x, s->fold);
	for (int32_t i = 0; i < s->m->input.n; i++)
		onnx_give(x, i, 1, &q->in[i]);
	g->p = onnx_import_run(x);
	g->is_end = true;
	g->by = q->by;
	if (q->here->to != NULL)
		env_bug(x->e, "onnx_staged_run", "the import needs fewer "
			"values than before");
	g->n_out = g->p.ir->output.n;
	for (int32_t i = 0; i < s->m->graph.out.n; i++)
		if (g->n_out != s->m->graph.out.n ||
			strcmp(g->p.output[i].name,
				s->m->graph.out.at[i].name) != 0)
			env_fail(x->e, TN_EINVAL, "onnx.type",
				(loc){.file = s->m->file},
				"output \"%.200s\" is not a tensor",
				s->m->graph.out.at[i].name);
	g->program = s->runner.make(s->runner.arg, a, &g->p);
	add_stage(q, g);
}

/* ---- what is kept ---- */

static int32_t least_recent(const onnx_staged *s)
{
	int32_t k = 0;

	for (int32_t i = 1; i < s->made.n; i++)
		if (s->made.at[i]->used <= s->made.at[k]->used)
			k = i;
	return k;
}

static void drop(onnx_staged *s, int32_t k)
{
	made *g = s->made.at[k];

	for (int32_t i = 0; i < g->branch.n; i++)
		g->branch.at[i]->to = NULL;
	s->made.n--;
	for (int32_t i = k; i < s->made.n; i++)
		s->made.at[i] = s->made.at[i + 1];
	arena_free(g->a);
}

/* Frees what is beyond the limit, but never the program that ran last. */
static void limit(onnx_staged *s)
{
	size_t n = 0;

	if (!s->has_grown)
		return;
	for (int32_t i = 0; i < s->made.n; i++)
		n += arena_bytes(s->made.at[i]->a);
	while (s->made.n > 1 && n > s->runner.most_bytes) {
		int32_t k = least_recent(s);

		n -= arena_bytes(s->made.at[k]->a);
		drop(s, k);
	}
	s->has_grown = false;
}

static void start(onnx_staged *s)
{
	s->n_runs++;
	if (s->kept != NULL && s->roots.n < MAX_ROOTS) {
		limit(s);
		return;
	}
	arena_free(s->kept);
	s->kept = NULL;
	s->made.at = NULL;
	s->made.n = s->made.cap = 0;
	s->kept = arena_child(s->a);
	s->root = map_new(s->kept);
	s->roots.at = NULL;
	s->roots.n = s->roots.cap = 0;
}

static branch *root_of(onnx_staged *s, arena *a, const onnx_array *in)
{
	str key = str_new(a);
	int64_t i;

	for (i = 0; i < s->m->input.n; i++) {
		const ir_type *t = &in[i].type;

		str_printf(&key, "%d:", (int)t->dtype);
		for (int32_t k = 0; k < t->rank; k++)
			str_printf(&key, "%lld,", (long long)t->shape[k]);
	}
	i = map_get(s->root, key.at, key.n, -1);
	if (i < 0) {
		i = s->roots.n;
		*vec_push(s->kept, &s->roots) = arena_make(s->kept, branch);
		map_set(s->root, key.at, key.n, i);
	}
	return s->roots.at[i];
}

struct run_job {
	onnx_staged *s;
	arena *to;
	const onnx_array *in;
	onnx_array *out;
};

static void run(arena *scratch, void *arg)
{
	struct run_job *k = arg;
	onnx_staged *s = k->s;
	path q = {.s = s, .a = scratch, .in = k->in, .at = map_new(scratch)};
	const stage *end;
	void **out;

	q.here = root_of(s, scratch, k->in);
	while (q.here->to != NULL && !q.here->to->is_end) {
		run_stage(&q, q.here->to);
		q.here = follow(q.here->to);
	}
	if (q.here->to == NULL) {
		q.here = root_of(s, scratch, k->in);
		import(&q);
	}
	end = q.here->to;
	end->by->used = s->n_runs;
	out = arena_array(scratch, void *, end->n_out + 1);
	for (int32_t i = 0; i < end->n_out; i++) {
		k->out[i].type = *output_type(end, i);
		k->out[i].elem = end->p.output[i].elem;
		out[i] = arena_alloc(
			k->to, ir_type_bytes(&k->out[i].type) + 64, 1);
		out[i] = (char *)out[i] + (64 - (uintptr_t)out[i] % 64) % 64;
		k->out[i].data = out[i];
	}
	run_program(&q, end, out);
}

void onnx_staged_run(onnx_staged *s, arena *to, const onnx_array *in,
	onnx_array *out)
{
	struct run_job k = {s, to, in, out};

	start(s);
	arena_run(arena_env(s->a), run, &k);
}
