/*
 * export_prop.c: programs as ONNX models, and back: the same values.
 *
 *     export_prop SEED EACH COUNT ROWS
 *
 * EACH calls of every row, and COUNT random programs. What export refuses is
 * passed over, but it must say so with a rule of its own; everything else is
 * read again, and both programs run on the same data. At least ROWS rows must
 * have been exported. A failure prints its seed and both programs.
 */
#include "prop.h"

#include "onnx/onnx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_COST = 20000 };

struct trial {
	env *e;
	uint64_t seed, index;
	int32_t row; /* -1: a random program */
	char path[40];
	arena *a;
	ir_program *p, *back;
	bool exported, is_whole, differs; /* whole: the program itself runs */
	str said;
};

static size_t bytes_of(const ir_type *t)
{
	return (size_t)shape_numel(t->shape, t->rank) * dtype_size(t->dtype);
}

static const ir_type *output_type(const ir_program *p, int32_t i)
{
	return &p->value.at[p->output.at[i]].type;
}

static void **run(struct trial *x, const ir_program *p, const void *const *in)
{
	void **out = arena_array(x->a, void *, p->output.n + 1);

	for (int32_t i = 0; i < p->output.n; i++)
		out[i] = arena_alloc(x->a, bytes_of(output_type(p, i)) + 1, 1);
	interp_run(x->e, p, in, out);
	return out;
}

/* Attributes are f32 there, and compositions round in their own order. */
static bool is_near(tn_dtype t, double u, double v)
{
	double eps = dtype_size(t) == 2 ? 4e-2 : 1e-4;

	if (isnan(u) || isnan(v) || isinf(u) || isinf(v))
		return (isnan(u) && isnan(v)) || u == v;
	return fabs(u - v) <= eps * (1 + fabs(v));
}

static void compare(struct trial *x, int32_t i, const void *u, const void *v)
{
	const ir_type *s = output_type(x->p, i), *t = output_type(x->back, i);
	int64_t n = shape_numel(s->shape, s->rank);

	if (s->dtype != t->dtype || s->rank != t->rank ||
		memcmp(s->shape, t->shape, (size_t)s->rank * sizeof *s->shape)) {
		str_printf(&x->said, "output %d has another type\n", (int)i);
		x->differs = true;
		return;
	}
	for (int64_t k = 0; k < n; k++) {
		double a = dtype_load_f64(s->dtype, u, k);
		double b = dtype_load_f64(s->dtype, v, k);

		if (is_near(s->dtype, a, b))
			continue;
		str_printf(&x->said, "output %d, element %lld: %g, then %g\n",
			(int)i, (long long)k, a, b);
		x->differs = true;
		return;
	}
}

static void fill(struct trial *x, prop_case *c)
{
	compile_options o = compile_options_default(NULL);
	compilation *m = compile_new(x->a, c->p, &o);
	int32_t n = c->p->input.n;
	int64_t *lo, *hi, *l = arena_array(x->a, int64_t, n + 1);
	int64_t *h = arena_array(x->a, int64_t, n + 1);

	compile_to(m, TN_LEVEL_SYSTEM);
	lo = arena_array(x->a, int64_t, m->system->tensor.n + 1);
	hi = arena_array(x->a, int64_t, m->system->tensor.n + 1);
	compile_index_ranges(m->system, lo, hi);
	for (int32_t i = 0; i < n; i++) {
		l[i] = lo[m->system->input.at[i]];
		h[i] = hi[m->system->input.at[i]];
	}
	fill_inputs(x->a, c, l, h);
}

/* Exported first: mostly that says at once that there is nothing to compare. */
static void try_one(arena *a, void *arg)
{
	struct trial *x = arg;
	ir_table *t = ir_table_new(a);
	prop_case *c;
	onnx_model *m;
	onnx_import *import;
	onnx_program o;
	const void **in;
	void **u, **v;

	x->a = a;
	c = x->row >= 0 ? draw_one_call(a, t, x->row, x->seed, x->index)
			: draw_case(a, t, x->seed, x->index, NULL);
	if (c == NULL || c->out_of_range || c->cost > MAX_COST)
		return;
	if (c->p->output.n == 0)
		for (int32_t i = 0; i < c->p->call.at[0].n_results; i++)
			ir_program_output(c->p, c->p->call.at[0].result[i]);
	x->p = c->p;
	onnx_export(a, c->p, c->p->input.n, NULL, x->path);
	x->exported = true;
	fill(x, c);
	u = run(x, c->p, (const void *const *)c->in);
	x->is_whole = true;
	m = onnx_open(a, x->path);
	import = onnx_import_new(a, m);
	o = onnx_import_run(import);
	ir_program_verify(o.ir);
	x->back = o.ir;
	if (o.n_free != c->p->input.n || o.ir->output.n != c->p->output.n)
		env_fail(x->e, TN_EINTERNAL, "prop.ports", (loc){0},
			"other numbers of inputs or outputs");
	in = arena_array(a, const void *, o.ir->input.n + 1);
	for (int32_t i = 0; i < o.ir->input.n; i++)
		in[i] = i < o.n_free ? c->in[i] : o.bound[i];
	v = run(x, o.ir, in);
	x->said = str_new(a);
	for (int32_t i = 0; i < c->p->output.n && !x->differs; i++)
		compare(x, i, u[i], v[i]);
	if (!x->differs)
		return;
	str_add(&x->said, "---- the program\n");
	ir_program_print(&x->said, x->p);
	str_add(&x->said, "---- read again\n");
	ir_program_print(&x->said, x->back);
	fprintf(stderr, "seed %llu, index %llu, row %d: %s",
		(unsigned long long)x->seed, (unsigned long long)x->index,
		(int)x->row, x->said.at);
}

static void protected(void *arg)
{
	arena_run(((struct trial *)arg)->e, try_one, arg);
}

/* -1: it failed, 0: nothing was exported, 1: it came back the same */
static int trial(uint64_t seed, uint64_t index, int32_t row, const char *path)
{
	struct trial x = {.e = env_new(), .seed = seed, .index = index,
		.row = row};
	int result = -1;

	snprintf(x.path, sizeof x.path, "%s", path);
	if (x.e == NULL)
		return -1;
	if (env_run(x.e, protected, &x) == TN_OK) {
		result = x.differs ? -1 : x.exported;
	} else {
		const char *rule = env_diag(x.e)->rule;

		if (!strncmp(rule, "export.", 7) ||
			(x.exported && !x.is_whole))
			result = 0;
		else
			fprintf(stderr, "seed %llu, index %llu, row %d: "
				"[%s] %s\n", (unsigned long long)seed,
				(unsigned long long)index, (int)row, rule,
				env_diag(x.e)->text);
	}
	env_free(x.e);
	return result;
}

struct names {
	int32_t n;
	arena *a;
};

static void count_rows(void *arg)
{
	struct names *k = arg;

	k->n = ir_table_n(ir_table_new(k->a));
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/tenon_export_XXXXXX";
	env *e = env_new();
	struct names k = {0};
	int n_rows = 0, n_bad = 0, n_programs = 0;
	uint64_t seed;
	int64_t each, count;

	if (argc != 5 || e == NULL || close(mkstemp(path)) != 0) {
		fprintf(stderr, "usage: export_prop SEED EACH COUNT ROWS\n");
		return 2;
	}
	seed = strtoull(argv[1], NULL, 10);
	each = strtoll(argv[2], NULL, 10);
	count = strtoll(argv[3], NULL, 10);
	k.a = arena_new(e);
	if (env_run(e, count_rows, &k) < 0)
		return 2;
	for (int32_t row = 0; row < k.n; row++) {
		bool made = false;

		for (int64_t i = 0; i < each; i++) {
			int r = trial(seed, (uint64_t)i, row, path);

			made = made || r > 0;
			n_bad += r < 0;
		}
		n_rows += made;
	}
	for (int64_t i = 0; i < count; i++) {
		int r = trial(seed, (uint64_t)i, -1, path);

		n_programs += r > 0;
		n_bad += r < 0;
	}
	printf("%d rows of %d exported; %d of %lld random programs; %d failed\n",
		n_rows, (int)k.n, n_programs, (long long)count, n_bad);
	unlink(path);
	arena_free(k.a);
	env_free(e);
	if (n_rows < (int)strtol(argv[4], NULL, 10))
		printf("fewer than %s rows were exported\n", argv[4]);
	return n_bad > 0 || n_rows < (int)strtol(argv[4], NULL, 10);
}
