/*
 * grad_prop.c: adjoints of randomly drawn calls against central differences.
 *
 *     grad_prop [--seed S] [--first F] [--count N] [--row NAME] [--order 2]
 *               [--verbose] [--each N] [--compile K] [--simt]
 *
 * --each N: instead of random programs, every row of the table on N different
 * shapes at least; a row with a gradient that finds fewer fails. --compile K:
 * of every K-th adjoint that is compared, compiled code is held against the
 * interpreter; --simt: it runs on emulated warps of a GPU.
 *
 * Every call of a random program is taken alone, with its floats as f64, and
 * differentiated with respect to all operands. For a random weighting of its
 * results the derived gradient must be the difference quotient; where the
 * function is not smooth (two step sizes disagree) nothing is compared.
 */
#include "grad/grad.h"
#include "prop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_COST = 3000, PROBES = 5, ROWS = 12 };

typedef struct tally {
	int64_t calls, probes, rough, poles, none, failed, compiled;
} tally;

typedef struct checking {
	arena *a;
	ir_table *t;
	uint64_t seed, index;
	const char *row; /* only this one */
	int32_t order;
	bool verbose;
	tally *sum;
	bool *seen, *compared; /* by row */
	bool *second;	       /* by row: its adjoint's adjoint was compared */
	int32_t *n_shapes;     /* by row, with --each */
	int32_t each, compile; /* 0: no */
	map *shapes, *drawn; /* of the row at hand: compared; all */
	struct pending *pending; /* to be compiled together */
} checking;

/* Starting the C compiler takes longer than a dozen of these programs. */
typedef struct pending {
	batch *b;
	VEC(job *) job;
	VEC(prop_case *) one;
} pending;

static prop_options options = {.seed = 1};

/* A call on its own, and data. */
typedef struct trial {
	arena *a;
	env *e;
	const ir_inst *inst;
	void **data; /* by tensor of the instance */
	double **weight; /* by result; NULL: no float */
} trial;

static void evaluate(void *arg)
{
	trial *x = arg;

	interp_inst(x->e, x->inst, x->data);
}

/* The weighted sum of all float results; NaN: it could not be computed. */
static double loss(trial *x)
{
	double sum = 0;

	if (env_run(x->e, evaluate, x) < 0)
		return (double)NAN;
	for (int32_t i = 0; i < x->inst->n_results; i++) {
		const ir_type *t = &x->inst->tensor[x->inst->result[i]].type;
		int64_t n = type_numel(t);

		for (int64_t k = 0; x->weight[i] != NULL && k < n; k++)
			sum += x->weight[i][k] *
				dtype_load_f64(t->dtype,
					x->data[x->inst->result[i]], k);
	}
	return sum;
}

static void *room(arena *a, const ir_type *t)
{
	size_t n = type_bytes(t);

	return arena_alloc(a, n > 0 ? n : 8, 1);
}

static bool only_versions(const ir_inst *p)
{
	for (int32_t i = 0; i < p->n_results; i++)
		if (p->tensor[p->result[i]].next_of < 0)
			return false;
	return true;
}

static trial *trial_new(arena *a, const ir_inst *inst, rng *r)
{
	trial *x = arena_make(a, trial);

	x->a = a;
	x->e = arena_env(a);
	x->inst = inst;
	x->data = arena_array(a, void *, inst->n_tensors + 1);
	x->weight = arena_array(a, double *, inst->n_results + 1);
	for (int32_t i = 0; i < inst->n_tensors; i++)
		x->data[i] = room(a, &inst->tensor[i].type);
	for (int32_t i = 0; i < inst->n_results; i++) {
		const ir_type *t = &inst->tensor[inst->result[i]].type;

		/* running statistics stand behind a stop; of what makes
		 * nothing but next versions they are what counts */
		if (t->dtype != TN_F64 ||
			(inst->tensor[inst->result[i]].next_of >= 0 &&
				!only_versions(inst)))
			continue;
		x->weight[i] = arena_array(a, double, type_numel(t) + 1);
		for (int64_t k = 0; k < type_numel(t); k++)
			x->weight[i][k] = (double)rng_range(r, -8, 8) / 4;
	}
	return x;
}

/* The adjoint's results, by the data of the forward trial. */
static trial *adjoint_of(trial *x, const grad_rule *g, rng *r)
{
	trial *y = trial_new(x->a, g->inst, r);

	for (int32_t k = 0; k < g->n_operands; k++) {
		const struct grad_operand *o = &g->operand[k];
		const void *from;
		size_t n;
		int32_t t = o->i;

		if (o->from == GRAD_OPERAND)
			for (t = 0; x->inst->tensor[t].operand != o->i;)
				t++;
		else
			t = x->inst->result[o->i];
		n = type_bytes(&x->inst->tensor[t].type);
		if (o->is_shape) { /* then it does not matter what is there */
			memset(y->data[k], 0xff, n);
			continue;
		}
		from = o->from == GRAD_SEED ? (const void *)x->weight[o->i]
					    : x->data[t];
		if (n > 0 && from != NULL)
			memcpy(y->data[k], from, n);
	}
	return y;
}

static bool near(double x, double y, double scale)
{
	return fabs(x - y) <= 2e-5 * (fabs(x) + fabs(y)) + 1e-6 * scale;
}

static double quotient(trial *x, double *at, double h)
{
	double old = *at, up, down;

	*at = old + h;
	up = loss(x);
	*at = old - h;
	down = loss(x);
	*at = old;
	return (up - down) / (2 * h);
}

static bool is_step(const in_node *n)
{
	bool step = n->kind == IN_CALL && ir_scalar_at(n->fn)->laws[0] == '~';

	for (int32_t i = 0; i < IR_MAX_ARGS && n->arg[i] != NULL; i++)
		step |= is_step(n->arg[i]);
	return step;
}

/* Does it round, where the derivative is that of what is rounded? It is 0 or a pole by
 * differences. */
static bool rounds(const ir_inst *p)
{
	bool any = false;

	for (int32_t i = 0; i < p->n_eqns; i++)
		for (int32_t k = 0; k < p->eqn[i].n_out; k++)
			any |= p->eqn[i].body[k] != NULL && is_step(p->eqn[i].body[k]);
	return any;
}

/* Elements of operand tensor t against the derived ones in g. */
static bool compare(checking *c, trial *x, int32_t t, const double *g, rng *r)
{
	int64_t n = rounds(x->inst) ? 0 : type_numel(&x->inst->tensor[t].type);
	double *data = x->data[t];

	for (int32_t k = 0; k < PROBES && n > 0; k++) {
		int64_t i = n <= PROBES ? k : rng_below(r, n);
		double h, q, q2, q3, base;

		if (i >= n)
			break;
		h = 1e-5 * (1 + fabs(data[i]));
		base = fabs(loss(x));
		q = quotient(x, &data[i], h);
		q2 = quotient(x, &data[i], h / 3);
		q3 = quotient(x, &data[i], -h * 0.71);
		c->sum->probes++;
		if (!isfinite(q) || !isfinite(q2) || !isfinite(base) ||
			!near(q, q2, 1 + base) || !near(q, q3, 1 + base)) {
			c->sum->rough++;
			continue;
		}
		/* the error of q falls with h^2: what it is about is known */
		if (near(q2 + (q2 - q) / 8, g[i], 10 + 10 * base) ||
			fabs(g[i] - q2) <= fabs(q - q2))
			continue;
		if (!isfinite(g[i])) { /* a pole that h steps over */
			c->sum->poles++;
			continue;
		}
		printf("%s: operand %s element %lld: derived %.9g, quotient "
		       "%.9g (%.9g)\n",
			ir_row_name(x->inst->row), x->inst->tensor[t].name,
			(long long)i, g[i], q, q2);
		return false;
	}
	return true;
}

/* ---- the adjoint as text ---- */

static bool same_bits(const ir_type *t, const void *x, const void *y)
{
	for (int64_t i = 0; i < type_numel(t); i++) {
		double v = dtype_load_f64(t->dtype, x, i);
		double w = dtype_load_f64(t->dtype, y, i);

		if (v != w && !(isnan(v) && isnan(w)))
			return false;
	}
	return true;
}

/* Printed as a row, parsed and instantiated, it computes the same. */
static bool same_as_text(checking *c, trial *x, rng *r)
{
	const ir_inst *p = x->inst;
	str s = str_new(c->a);
	ir_type *type = arena_array(c->a, ir_type, p->n_tensors + 1);
	int32_t *from = arena_array(c->a, int32_t, p->n_tensors + 1), n = 0;
	const ir_inst *again;
	trial *y;

	for (int32_t i = 0; i < p->n_tensors; i++) {
		if (p->tensor[i].operand < 0)
			continue;
		from[n] = i;
		type[n++] = p->tensor[i].type;
	}
	ir_inst_print(&s, p, "again");
	again = ir_instantiate(c->a, c->t,
		ir_row_make(c->a, s.at, s.n, (loc){0}), n, type, NULL, 0, NULL,
		(loc){0});
	y = trial_new(c->a, again, r);
	for (int32_t i = 0; i < n; i++)
		if (type_bytes(&type[i]) > 0)
			memcpy(y->data[i], x->data[from[i]],
				type_bytes(&type[i]));
	if (env_run(y->e, evaluate, y) < 0) {
		printf("%s\n[%s] %s\n", s.at, env_diag(y->e)->rule,
			env_diag(y->e)->text);
		return false;
	}
	for (int32_t k = 0; k < p->n_results; k++)
		if (!same_bits(&p->tensor[p->result[k]].type,
			    x->data[p->result[k]],
			    y->data[again->result[k]])) {
			printf("result %d is another one from the text\n%s\n",
				(int)k, s.at);
			return false;
		}
	return true;
}

/* ---- the adjoint compiled ---- */

static bool say_compiled(const checking *c, const prop_case *one,
	const char *message)
{
	str s = str_new(c->a);

	if (message == NULL)
		return true;
	ir_program_print(&s, one->p);
	printf("%s compiled: %s\n%s\n", ir_row_name(one->p->call.at[0].row),
		message, s.at);
	return false;
}

/*
 * x's instance as a program of its own, by the way of all random programs;
 * compared when the others of the batch are: finish_compiled.
 */
static bool begin_compiled(checking *c, const trial *x)
{
	prop_case *one = arena_make(c->a, prop_case);
	const ir_inst *p = x->inst;
	int32_t *arg = arena_array(c->a, int32_t, p->n_tensors + 1), n = 0;
	const char *message = NULL;
	int32_t call;
	job *j;

	*one = (prop_case){.seed = c->seed,
		.index = c->index,
		.style = STYLE_GENERAL,
		.p = ir_program_new(c->a, c->t)};
	for (int32_t i = 0; i < p->n_tensors; i++)
		if (p->tensor[i].operand >= 0)
			arg[n] = ir_program_input(one->p,
				arena_printf(c->a, "x%d", (int)n),
				p->tensor[i].type, (loc){0}),
			n++;
	call = ir_program_inst(one->p, p, n, arg, NULL, (loc){0});
	for (int32_t i = 0; i < p->n_results; i++)
		ir_program_output(one->p, one->p->call.at[call].result[i]);
	c->sum->compiled++;
	j = job_new(c->a, c->t, &options, one, &message);
	if (j == NULL || !job_add(j, c->pending->b, &message))
		return say_compiled(c, one, message);
	*vec_push(c->a, &c->pending->job) = j;
	*vec_push(c->a, &c->pending->one) = one;
	return true;
}

static bool finish_compiled(checking *c)
{
	pending *k = c->pending;
	prop_result sum = {0};
	const char *message = NULL, *all;
	bool good = true;

	if (k->job.n == 0)
		return true;
	if (batch_compile(k->b, &all)) {
		for (int32_t i = 0; i < k->job.n; i++) {
			bool same = job_run(
				k->job.at[i], k->b, &message, &sum);

			good = say_compiled(c, k->one.at[i],
				       same ? NULL : message) && good;
		}
		return good;
	}
	for (int32_t i = 0; i < k->job.n; i++) /* whose fault is it? */
		good = say_compiled(c, k->one.at[i],
			       try_case(c->a, c->t, &options, k->one.at[i],
				       &sum)) && good;
	if (good)
		printf("together they do not compile: %s\n", all);
	return false;
}

/* Is this one to be compiled? An index into nothing has no data. */
static bool is_turn(const checking *c, const trial *x)
{
	for (int32_t i = 0; i < x->inst->n_tensors; i++)
		if (type_numel(&x->inst->tensor[i].type) == 0)
			return false;
	return c->compile > 0 && c->sum->calls % c->compile == 0;
}

static uint64_t all_bits(void)
{
	return ~UINT64_C(0);
}

static bool any_weight(const trial *x)
{
	for (int32_t i = 0; i < x->inst->n_results; i++)
		if (x->weight[i] != NULL)
			return true;
	return false;
}

/* *differs: how many orders were compared */
static bool check_inst(
	checking *c, trial *x, int32_t order, rng *r, int32_t *differs)
{
	const ir_inst *inst = x->inst;
	const grad_rule *g;
	trial *y;
	bool good = true;

	*differs = 0;
	if (!isfinite(loss(x)) || !any_weight(x))
		return true;
	g = grad_adjoint(c->a, c->t, inst, all_bits(), all_bits());
	if (g == NULL) {
		c->sum->none++;
		return true;
	}
	*differs = 1;
	y = adjoint_of(x, g, r);
	if (env_run(y->e, evaluate, y) < 0) {
		printf("%s: [%s] %s\n", ir_row_name(inst->row),
			env_diag(y->e)->rule, env_diag(y->e)->text);
		return false;
	}
	good = same_as_text(c, y, r) &&
	       (!is_turn(c, y) || begin_compiled(c, y));
	for (int32_t k = 0; k < g->n_results && good; k++) {
		int32_t t = 0;

		while (inst->tensor[t].operand != g->of_operand[k])
			t++;
		good = compare(c, x, t, y->data[g->inst->result[k]], r);
	}
	if (good && order > 1) {
		int32_t more;

		good = check_inst(c, y, order - 1, r, &more);
		*differs += more;
	}
	return good;
}

/* The call alone, floats as f64; NULL: not differentiable as it stands. */
static prop_case *alone(checking *c, const ir_program *p, const ir_call *call)
{
	prop_case *one = arena_make(c->a, prop_case);
	ir_program *q = ir_program_new(c->a, c->t);
	int32_t *arg = arena_array(c->a, int32_t, call->n_args + 1), made;
	bool any = false;
	ir_attr *attr = arena_copy(c->a, call->attr,
		(size_t)call->n_attrs * sizeof *attr);

	for (int32_t i = 0; i < call->n_args; i++) {
		ir_type t = p->value.at[call->arg[i]].type;

		if (dtype_is_float(t.dtype)) {
			t.dtype = TN_F64;
			any = true;
		}
		arg[i] = ir_program_input(q,
			arena_printf(c->a, "x%d", (int)i), t, (loc){0});
	}
	for (int32_t i = 0; i < call->n_attrs; i++)
		if (attr[i].kind == ATTR_DTYPE &&
			dtype_is_float(attr[i].dtype))
			attr[i].dtype = TN_F64;
	if (!any)
		return NULL;
	made = ir_program_call(q, ir_row_name(call->row), call->n_args, arg,
		call->n_attrs, attr, NULL, (loc){0});
	if (inst_cost(q->call.at[made].inst) > MAX_COST)
		return NULL;
	for (int32_t i = 0; i < q->call.at[made].n_results; i++)
		ir_program_output(q, q->call.at[made].result[i]);
	*one = (prop_case){.seed = c->seed,
		.index = c->index,
		.p = q,
		.style = STYLE_GENERAL,
		.all_outputs = true};
	return one;
}

struct filling {
	checking *c;
	prop_case *one;
	const ir_program *p;
	const ir_call *call;
};

static void fill(checking *c, prop_case *one)
{
	ir_system *s = ir_lower(c->a, ix_new(c->a), one->p);
	int64_t *lo = arena_array(c->a, int64_t, s->tensor.n + 1);
	int64_t *hi = arena_array(c->a, int64_t, s->tensor.n + 1);
	int32_t n = one->p->input.n;
	int64_t *l = arena_array(c->a, int64_t, n + 1);
	int64_t *h = arena_array(c->a, int64_t, n + 1);

	compile_index_ranges(s, lo, hi);
	for (int32_t i = 0; i < n; i++) {
		l[i] = lo[s->input.at[i]];
		h[i] = hi[s->input.at[i]];
	}
	fill_inputs(c->a, one, l, h);
}

/* A write wants what no program of one call has; an index into nothing has no
 * data that fits. */
static void prepare(void *arg)
{
	struct filling *f = arg;

	f->one = alone(f->c, f->p, f->call);
	if (f->one != NULL)
		fill(f->c, f->one);
}

/* "f64[2,3] i64[2]": what an instance is on. */
static const char *shape_text(const checking *c, const ir_inst *p)
{
	str s = str_new(c->a);

	for (int32_t i = 0; i < p->n_tensors; i++) {
		if (p->tensor[i].operand < 0)
			continue;
		str_add(&s, dtype_name(p->tensor[i].type.dtype));
		str_shape(&s, p->tensor[i].type.shape, p->tensor[i].type.rank);
	}
	return s.at;
}

static bool check_call(checking *c, const ir_program *p, const ir_call *call)
{
	struct filling f = {c, NULL, p, call};
	prop_case *one;
	rng r = rng_new(c->seed, c->index);
	const ir_inst *inst;
	trial *x;
	bool good;
	int32_t number = 0, differs;

	while (ir_table_at(c->t, number) != call->row)
		number++;
	c->seen[number] = true;
	if (env_run(arena_env(c->a), prepare, &f) < 0 || f.one == NULL)
		return true;
	one = f.one;
	inst = one->p->call.at[0].inst;
	x = trial_new(c->a, inst, &r);
	for (int32_t i = 0; i < inst->n_tensors; i++)
		if (inst->tensor[i].operand >= 0)
			memcpy(x->data[i], one->in[inst->tensor[i].operand],
				type_bytes(&inst->tensor[i].type));
	c->sum->calls++;
	good = check_inst(c, x, c->order, &r, &differs);
	if (c->shapes != NULL)
		map_set_str(c->drawn, shape_text(c, inst), 1);
	if (differs > 0 && good && c->shapes != NULL)
		map_set_str(c->shapes, shape_text(c, inst), 1);
	c->compared[number] = c->compared[number] || differs > 0;
	c->second[number] = c->second[number] || differs > 1;
	if (!good) {
		str s = str_new(c->a);

		ir_program_print(&s, one->p);
		printf("--seed %llu, program %llu\n%s\n",
			(unsigned long long)c->seed,
			(unsigned long long)c->index, s.at);
	}
	return good;
}

static void check_program(arena *a, void *arg)
{
	checking c = *(checking *)arg;
	pending k = {0};
	prop_case *all;

	c.a = a;
	c.pending = &k;
	k.b = batch_new(a, &options);
	all = draw_case(a, c.t, c.seed, c.index, NULL);
	for (int32_t i = 0; i < all->p->call.n; i++) {
		const ir_call *call = &all->p->call.at[i];

		if (c.row != NULL && strcmp(c.row, ir_row_name(call->row)) != 0)
			continue;
		if (!check_call(&c, all->p, call))
			c.sum->failed++;
	}
	if (!finish_compiled(&c))
		c.sum->failed++;
}

/* One row on shapes as they are drawn. */
static void try_shapes(checking *x)
{
	enum { MOST = 200 };
	checking c = *x;
	int32_t row = (int32_t)c.index;
	arena *a = c.a;

	for (int32_t i = 0; i < MOST && map_n(c.shapes) < c.each; i++) {
		prop_case *one;

		c.index = (uint64_t)i;
		one = draw_one_call(a, c.t, row, c.seed, c.index);
		if (one != NULL &&
			!check_call(&c, one->p, &one->p->call.at[0])) {
			c.sum->failed++;
			return;
		}
		if (i > MOST / 4 && map_n(c.shapes) == 0)
			return; /* no gradient */
	}
	c.n_shapes[row] = map_n(c.shapes);
	/* a row of scalars has one shape */
	if (map_n(c.shapes) < c.each && map_n(c.shapes) < map_n(c.drawn)) {
		printf("%s: compared on %d shapes only\n",
			ir_row_name(ir_table_at(c.t, row)),
			(int)map_n(c.shapes));
		c.sum->failed++;
	}
}

/* ROWS of them, from c->index, whose programs are compiled together */
static void check_rows(arena *a, void *arg)
{
	checking c = *(checking *)arg;
	pending k = {.b = batch_new(a, &options)};
	uint64_t end = c.index + ROWS;

	c.a = a;
	c.pending = &k;
	for (; c.index < end && c.index < (uint64_t)ir_table_n(c.t);
		c.index++) {
		c.shapes = map_new(a);
		c.drawn = map_new(a);
		try_shapes(&c);
	}
	if (!finish_compiled(&c))
		c.sum->failed++;
}

struct entering {
	env *e;
	checking *c;
	arena *keep; /* of the table */
};

static void enter(void *arg)
{
	struct entering *x = arg;

	arena_run(x->e, x->c->each > 0 ? check_rows : check_program, x->c);
}

/* One table for all programs: each row is parsed once. */
static void make_table(void *arg)
{
	struct entering *x = arg;

	x->keep = arena_new(x->e);
	x->c->t = ir_table_new(x->keep);
}

static void say_shapes(const checking *c, ir_table *t)
{
	int32_t all = 0, second = 0;

	for (int32_t i = 0; i < ir_table_n(t); i++) {
		second += c->second[i];
		all += c->compared[i] && c->n_shapes[i] >= c->each;
		if (c->compared[i] && c->n_shapes[i] < c->each)
			printf("%s has no more than %d shapes\n",
				ir_row_name(ir_table_at(t, i)),
				(int)c->n_shapes[i]);
	}
	printf("%d rows against central differences on %d shapes or more; %d "
	       "rows to second order\n",
		(int)all, (int)c->each, (int)second);
}

static void list_rows(arena *a, void *arg)
{
	const checking *c = arg;
	ir_table *t = c->t;
	int32_t n = 0;

	(void)a;
	printf("no gradient:");
	for (int32_t i = 0; i < ir_table_n(t); i++)
		if (!c->compared[i]) {
			printf(" %s%s", ir_row_name(ir_table_at(t, i)),
				c->seen[i] ? "" : "(not drawn)");
			n++;
		}
	printf("\n%d rows, %d of them with a gradient\n", ir_table_n(t),
		ir_table_n(t) - n);
	if (c->each > 0)
		say_shapes(c, t);
}

int main(int argc, char **argv)
{
	tally sum = {0};
	checking c = {.seed = 1, .order = 1, .sum = &sum};
	long first = 0, count = 500;
	env *e = env_new();
	struct entering x = {e, &c, NULL};
	int32_t n = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--verbose") == 0)
			c.verbose = true;
		else if (strcmp(argv[i], "--simt") == 0)
			options.simt = true;
		else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			c.seed = strtoull(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
			first = strtol(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--count") == 0)
			count = strtol(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--each") == 0)
			c.each = (int32_t)strtol(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--compile") == 0)
			c.compile = (int32_t)strtol(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--row") == 0)
			c.row = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--order") == 0)
			c.order = (int32_t)strtol(argv[++i], NULL, 10);
	}
	if (e == NULL || env_run(e, make_table, &x) < 0)
		return 1;
	n = ir_table_n(c.t);
	c.seen = calloc((size_t)n + 1, 1);
	c.compared = calloc((size_t)n + 1, 1);
	c.second = calloc((size_t)n + 1, 1);
	c.n_shapes = calloc((size_t)n + 1, sizeof *c.n_shapes);
	if (!c.seen || !c.compared || !c.second || !c.n_shapes)
		return 1;
	if (c.each > 0)
		count = n;
	for (long i = first; i < first + count && sum.failed < 10;
		i += c.each > 0 ? ROWS : 1) {
		c.index = (uint64_t)i;
		if (env_run(e, enter, &x) < 0) {
			printf("program %ld: [%s] %s\n", i, env_diag(e)->rule,
				env_diag(e)->text);
			sum.failed++;
		}
	}
	if (c.verbose || c.each > 0)
		arena_run(e, list_rows, &c);
	printf("%lld calls, %lld elements compared, %lld not smooth, %lld poles, %lld calls "
	       "without a gradient, %lld compiled, %lld failed\n",
		(long long)sum.calls, (long long)(sum.probes - sum.rough),
		(long long)sum.rough, (long long)sum.poles,
		(long long)sum.none, (long long)sum.compiled,
		(long long)sum.failed);
	free(c.seen);
	free(c.compared);
	free(c.second);
	free(c.n_shapes);
	arena_free(x.keep);
	env_free(e);
	return sum.failed > 0 || sum.poles > sum.probes / 100;
}
