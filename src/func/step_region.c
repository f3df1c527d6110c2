/*
 * step_region.c: regions of a step as loops of its program.
 *
 * Consumes a trace that is a region, and the values of its operands; adds calls that
 * compute its results. A loop is a loop; a condition is two of at most one round:
 *
 *     y = cond(p, {x * 2}, {x})      y0 = fill()
 *                                    _, y1 = loop(p, y0, x, rounds=1, while=0) {
 *                                      carried .. return no, mul(x, 2) }
 *                                    q = eq(p, 0)
 *                                    _, y = loop(q, y1, x, rounds=1, while=0) { .. }
 *
 * A loop with a test ends when what it carries for it is 0. What is written is a
 * value like others, which program.c writes to the operand.
 */
#include "func/region.h"
#include "func/report.h"

typedef struct putting {
	tensors *t;
	ir_program *p; /* the program around */
	arena *a;
	const t_trace *f;
	const t_region *g;
	const int32_t *operand; /* values of p */
	int32_t *result;
	t_put_region *put;
	void *arg;
} putting;

/* The body of one loop, while it is made. */
typedef struct body {
	putting *k;
	ir_loop *l;
	VEC(int32_t) arg; /* values around: what is carried, rows, the same */
	int32_t *given;	  /* by operand of the trace: the value in the body */
	int32_t *made;	  /* by result of the trace */
	int32_t test;	  /* the carried value in the body; -1 */
	int32_t count;
} body;

static int32_t called(ir_program *p, const char *row, int32_t n_args,
	const int32_t *arg, int32_t n_attrs, const ir_attr *attr)
{
	int32_t c = ir_program_call(
		p, row, n_args, arg, n_attrs, attr, NULL, (loc){0});

	return p->call.at[c].result[0];
}

/* A value of this type, all of it v. */
static int32_t filled(ir_program *p, const ir_type *y, double v)
{
	const ir_attr attr[] = {
		{.name = "shape", .kind = ATTR_INTS, .n = y->rank,
			.ints = arena_copy(p->a, y->shape,
				((size_t)y->rank + 1) * sizeof *y->shape)},
		{.name = "value", .kind = ATTR_REAL, .f = v},
		{.name = "dtype", .kind = ATTR_DTYPE, .dtype = y->dtype}};

	return called(p, "fill", 0, NULL, 3, attr);
}

static const ir_type *type_of(const ir_program *p, int32_t value)
{
	return &p->value.at[value].type;
}

static _Noreturn void refuse(const putting *k, const char *what)
{
	env_fail(k->t->e, TN_EINVAL, "export.region", (loc){0},
		"%s in the function cannot be one program: %s", k->f->name,
		what);
}

/* ---- bodies ---- */

static void begin_body(body *b, putting *k, const t_trace *f, int64_t n)
{
	*b = (body){.k = k, .test = -1, .count = -1};
	b->l = arena_make(k->a, ir_loop);
	b->l->n = n;
	b->l->body = ir_program_new(k->a, k->p->table);
	b->given = arena_array(k->a, int32_t, f->n_in + 1);
	b->made = arena_array(k->a, int32_t, f->n_out + 1);
}

/* One more input of the body, whose operand is a value around. */
static int32_t add_input(
	body *b, const char *kind, int32_t number, int32_t arg, bool is_row)
{
	ir_type y = *type_of(b->k->p, arg);

	if (is_row) {
		y.rank--;
		memmove(y.shape, y.shape + 1,
			(size_t)y.rank * sizeof y.shape[0]);
	}
	*vec_push(b->k->a, &b->arg) = arg;
	return ir_program_input(b->l->body,
		arena_printf(b->k->a, "%s%d", kind, (int)number), y, (loc){0});
}

static int32_t add_carried(body *b, const char *kind, int32_t number, int32_t arg)
{
	int32_t v = add_input(b, kind, number, arg, false);

	b->l->n_carried++;
	return v;
}

static void add_trace(body *b, const t_trace *f)
{
	t_program_body(b->k->t, b->l->body, f, b->given, b->made, b->k->put,
		b->k->arg);
}

/* Adds the call; its first result is numbered so. */
static const int32_t *end_body(body *b)
{
	ir_program *p = b->k->p;
	ir_loop_run *const *run = b->k->arg;
	int32_t call;

	b->l->n_out = b->l->body->output.n - b->l->n_carried;
	b->l->n_same = b->arg.n - b->l->n_carried - b->l->n_rows;
	call = ir_program_loop(
		p, b->l, *run, b->arg.n, b->arg.at, NULL, (loc){0});
	return p->call.at[call].result;
}

/* ---- conditions ---- */

/* Does this branch make result r? */
static bool makes(const t_region *g, int32_t k, int32_t r)
{
	return g->yield[r].at[k] >= 0;
}

/* Branch k, if `go` says so; sets results that it makes. */
static void put_branch(putting *k, int32_t which, int32_t go)
{
	const t_region *g = k->g;
	const t_trace *f = g->body[which];
	int32_t n = 1;
	const int32_t *out;
	body b;

	begin_body(&b, k, f, 1);
	b.l->test = 1;
	b.test = add_carried(&b, "go", 0, go);
	for (int32_t r = 0; r < k->f->n_out; r++)
		if (makes(g, which, r))
			(void)add_carried(&b, "y", r, k->result[r]);
	if (b.l->n_carried == 1)
		return;
	for (int32_t i = 0; i < f->n_in; i++)
		b.given[i] = add_input(
			&b, "x", i, k->operand[g->feed[which][i].at], false);
	add_trace(&b, f);
	ir_program_output(b.l->body,
		filled(b.l->body, type_of(b.l->body, b.test), 0));
	for (int32_t r = 0; r < k->f->n_out; r++)
		if (makes(g, which, r))
			ir_program_output(
				b.l->body, b.made[g->yield[r].at[which]]);
	out = end_body(&b);
	for (int32_t r = 0; r < k->f->n_out; r++)
		if (makes(g, which, r))
			k->result[r] = out[n++];
}

/* A branch that does not write leaves the operand as it is. */
static void put_cond(putting *k)
{
	int32_t go = k->operand[0], test[2];

	for (int32_t r = 0; r < k->f->n_out; r++) {
		const t_yield *y = &k->g->yield[r];
		int32_t at = y->at[0] <= -2 ? y->at[0] : y->at[1];

		k->result[r] = at <= -2
			? k->operand[-2 - at]
			: filled(k->p, &k->f->out[r]->type, 0);
	}
	test[0] = go;
	test[1] = filled(k->p, type_of(k->p, go), 0);
	put_branch(k, 0, go);
	put_branch(k, 1, called(k->p, "eq", 2, test, 0, NULL));
}

/* ---- loops ---- */

static const ir_type one_count = {.dtype = TN_I64};

static void check_loop(const putting *k)
{
	const t_region *g = k->g;
	bool rows = false;

	for (int32_t r = 0; r < k->f->n_out; r++)
		rows |= g->yield[r].kind == YIELD_ROWS ||
			g->yield[r].kind == YIELD_EACH;
	for (int32_t i = 0; i < g->body[0]->n_in; i++) {
		rows |= g->feed[0][i].kind == FEED_ROW;
		if (g->feed[0][i].kind == FEED_KEY)
			refuse(k, "each round draws random numbers of its own; "
				  "draw them before it, and take a row of "
				  "them in each round");
	}
	if (g->count >= 0 || (g->test >= 0 && rows))
		refuse(k, "it has a gradient, and as many rounds as a test "
			  "says; give it a fixed number of rounds "
			  "(tn_scan)");
}

/* Rows `row` .. of an operand, in the order of the rounds. */
static int32_t rows_of(const putting *k, const t_feed *x)
{
	static const int64_t first[] = {0};
	int32_t v = k->operand[x->at];
	const ir_attr window[] = {
		{.name = "start", .kind = ATTR_INT, .i = x->row},
		{.name = "count", .kind = ATTR_INT, .i = k->g->n}};
	const ir_attr axes = {
		.name = "axes", .kind = ATTR_INTS, .n = 1, .ints = first};

	if (x->row != 0 || type_of(k->p, v)->shape[0] != k->g->n)
		v = called(k->p, "narrow", 1, &v, 2, window);
	return k->g->reverse ? called(k->p, "flip", 1, &v, 1, &axes) : v;
}

/* What carry k begins with. */
static int32_t first_of(const putting *k, int32_t at)
{
	const t_carry *c = &k->g->carry[at];

	return c->from >= 0
		? k->operand[c->from]
		: filled(k->p, &k->g->body[0]->out[c->next]->type, 0);
}

/* The test before the first round. */
static int32_t first_test(putting *k)
{
	const t_region *g = k->g;
	const t_trace *f = g->body[1];
	int32_t *in, out;

	if (f == NULL)
		return filled(k->p, &g->body[0]->out[g->test]->type, 1);
	in = arena_array(k->a, int32_t, f->n_in + 1);
	for (int32_t i = 0; i < f->n_in; i++)
		in[i] = g->feed[1][i].kind == FEED_CARRY
			? first_of(k, g->feed[1][i].at)
			: k->operand[g->feed[1][i].at];
	t_program_body(k->t, k->p, f, in, &out, k->put, k->arg);
	return out;
}

static void add_inputs(body *b, int32_t *carried)
{
	putting *k = b->k;
	const t_region *g = k->g;
	const t_trace *f = g->body[0];

	if (g->test >= 0) {
		b->test = add_carried(b, "go", 0, first_test(k));
		b->l->test = 1;
		b->count = add_carried(
			b, "count", 0, filled(k->p, &one_count, 0));
	}
	for (int32_t i = 0; i < g->n_carries; i++)
		carried[i] = add_carried(b, "c", i, first_of(k, i));
	for (int32_t i = 0; i < f->n_in; i++)
		if (g->feed[0][i].kind == FEED_ROW) {
			b->given[i] = add_input(b, "row", i,
				rows_of(k, &g->feed[0][i]), true);
			b->l->n_rows++;
		}
	for (int32_t i = 0; i < f->n_in; i++) {
		const t_feed *x = &g->feed[0][i];

		if (x->kind == FEED_CARRY)
			b->given[i] = carried[x->at];
		else if (x->kind == FEED_OPERAND)
			b->given[i] = add_input(
				b, "x", i, k->operand[x->at], false);
	}
}

/* Returned values are calls of the body, each its own. */
static void give_back(body *b, int32_t value)
{
	ir_program_output(b->l->body,
		called(b->l->body, "copy", 1, &value, 0, NULL));
}

static void add_outputs(body *b, const int32_t *carried)
{
	const t_region *g = b->k->g;
	ir_program *p = b->l->body;

	if (g->test >= 0) {
		int32_t sum[2] = {b->count, filled(p, &one_count, 1)};

		give_back(b, b->made[g->test]);
		ir_program_output(p, called(p, "add", 2, sum, 0, NULL));
	}
	for (int32_t i = 0; i < g->n_carries; i++)
		give_back(b, g->carry[i].pass >= 0
				? carried[g->carry[i].pass]
				: b->made[g->carry[i].next]);
	for (int32_t r = 0; r < b->k->f->n_out; r++) {
		const t_yield *y = &g->yield[r];

		if (y->kind == YIELD_ROWS)
			give_back(b, b->made[y->at[0]]);
		else if (y->kind == YIELD_EACH)
			give_back(b, carried[y->at[0]]);
	}
}

/* The values before each round, and the one at the end. */
static int32_t with_last(const putting *k, int32_t rows, int32_t last)
{
	ir_type y = *type_of(k->p, last);
	int32_t both[2] = {rows, last};
	ir_attr shape = {.name = "shape", .kind = ATTR_INTS, .n = y.rank + 1};
	int64_t *to = arena_array(k->p->a, int64_t, y.rank + 1);

	to[0] = 1;
	memcpy(to + 1, y.shape, (size_t)y.rank * sizeof *to);
	shape.ints = to;
	both[1] = called(k->p, "reshape", 1, &last, 1, &shape);
	return called(k->p, "concat", 2, both, 0, NULL);
}

static void take_results(putting *k, const body *b, const int32_t *out)
{
	static const int64_t first[] = {0};
	const ir_attr axes = {
		.name = "axes", .kind = ATTR_INTS, .n = 1, .ints = first};
	const t_region *g = k->g;
	int32_t begin = g->test >= 0 ? 2 : 0, rows = b->l->n_carried;

	for (int32_t r = 0; r < k->f->n_out; r++) {
		const t_yield *y = &g->yield[r];
		int32_t *to = &k->result[r];

		switch (y->kind) {
		case YIELD_BODY:
			break;
		case YIELD_LAST:
			*to = out[begin + y->at[0]];
			break;
		case YIELD_ROWS:
			*to = out[rows++];
			if (g->reverse)
				*to = called(k->p, "flip", 1, to, 1, &axes);
			break;
		case YIELD_EACH:
			*to = with_last(
				k, out[rows++], out[begin + y->at[0]]);
			break;
		case YIELD_COUNT:
			*to = g->test >= 0
				? out[1]
				: filled(k->p, &one_count, (double)g->n);
			break;
		}
	}
}

static void put_loop(putting *k)
{
	const t_region *g = k->g;
	int32_t *carried = arena_array(k->a, int32_t, g->n_carries + 1);
	body b;

	check_loop(k);
	begin_body(&b, k, g->body[0], g->n > 0 ? g->n : INT64_MAX);
	add_inputs(&b, carried);
	add_trace(&b, g->body[0]);
	add_outputs(&b, carried);
	take_results(k, &b, end_body(&b));
}

/* arg: an ir_loop_run *. */
void step_put_region(tensors *t, ir_program *p, const t_trace *f,
	const int32_t *operand, int32_t *result, void *arg)
{
	putting k = {t, p, p->a, f, f->region, operand, result,
		step_put_region, arg};

	if (f->kind == REGION_COND)
		put_cond(&k);
	else if (f->kind == REGION_LOOP)
		put_loop(&k);
	else
		refuse(&k, "it is a function in C of your own; export the "
			   "functions around it, and call it between them");
}
