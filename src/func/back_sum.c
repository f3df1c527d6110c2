/*
 * back_sum.c: gradients of what every round of a loop reads, behind the loop.
 *
 *     in each round   gw += d_i * x_i^T       reads and writes all of gw
 *     behind          gw = sum of d[i] * x[i]^T over rows i, once
 *
 * Where the call only moves elements or adds, as a gradient of a part does, the
 * sum is made of what it reads. The rows d are left by the backward of the loop;
 * x is there. The call is the last one of the body's backward with one letter more
 * (ir_inst_sum_rows). It is worth it where its rows are smaller than the gradient,
 * and no more than what the rounds are given and make.
 */
#include "func/back.h"

static int64_t bytes_of(const ir_type *y)
{
	return (int64_t)ir_type_bytes(y);
}

/* The source of a value that the body is given, or NULL. */
static const t_feed *feed_of(const deriving *d, const t_value *v)
{
	for (int32_t i = 0; i < d->in.n; i++)
		if (d->in.at[i] == v)
			return &d->d.feed[d->arm].at[i];
	return NULL;
}

/* Bytes that a round of the loop is given and makes, without its middles. */
static int64_t bytes_of_round(const deriving *d)
{
	const t_trace *body = d->g->body[0];
	int64_t sum = 0;

	for (int32_t i = 0; i < body->n_in; i++)
		if (d->f->region->feed[0][i].kind == FEED_ROW ||
			d->f->region->feed[0][i].kind == FEED_CARRY)
			sum += bytes_of(&body->in[i]->type);
	for (int32_t i = 0; i < body->n_known; i++)
		sum += bytes_of(&body->out[i]->type);
	return sum;
}

static int32_t left_as(const deriving *d, const t_value *v)
{
	for (int32_t i = 0; i < d->left.n; i++)
		if (d->left.at[i].v == v)
			return d->left.at[i].result;
	return -1;
}

/* The result that has the rows of v as a gradient, or -1. */
static int32_t given_as(const deriving *d, const t_value *v)
{
	for (int32_t r = 0; r < d->d.yield.n; r++)
		if (d->d.yield.at[r].kind == YIELD_ROWS &&
			d->made.at[d->d.yield.at[r].at[0]] == v)
			return r;
	return -1;
}

typedef enum operand_kind {
	NEITHER,
	SAME, /* in every round */
	GIVEN_ROW,
	LEFT_ROW
} operand_kind;

static operand_kind kind_of(const deriving *d, const t_read *x)
{
	const t_feed *f = feed_of(d, x->v);

	if (f == NULL || f->kind == FEED_CARRY)
		return LEFT_ROW;
	if (f->kind == FEED_ROW)
		return x->view == NULL ? GIVEN_ROW : LEFT_ROW;
	return x->view == NULL && f->kind == FEED_OPERAND ? SAME : NEITHER;
}

/* Rows of what the loop is given, carries or makes. Not middles: whether they are
 * kept or computed again must make no difference. */
static bool is_there(const deriving *d, const t_read *x)
{
	const seen *from;

	if (kind_of(d, x) == SAME)
		return true;
	if (kind_of(d, x) != GIVEN_ROW)
		return false;
	from = &d->seen.at[feed_of(d, x->v)->at];
	return from->side != OF_OUT || from->i < d->f->n_known ||
	       d->yield.at[from->i].kind == YIELD_EACH;
}

/* Are all operands there, with at most `most` bytes of other rows a round? */
static bool is_worth(deriving *d, const t_call *q, const ir_inst *inst,
	const int32_t *operand, int64_t most)
{
	int64_t sum = 0;

	for (int32_t k = 0; k < inst->n_tensors && inst->tensor[k].operand >= 0;
		k++) {
		const t_read *x = &q->arg[operand[k]];

		if (kind_of(d, x) == NEITHER)
			return false;
		if (!is_there(d, x))
			sum += bytes_of(&q->entry->inst->tensor[operand[k]].type);
	}
	if (sum > most || sum + d->n_left > bytes_of_round(d))
		return false;
	d->n_left += sum;
	return true;
}

/* The result of the backward with the rows of x. */
static int32_t leave(deriving *d, const t_read *x, const ir_type *type)
{
	arena *a = d->t->a;
	t_value *v = x->view == NULL ? x->v
				     : t_copy_of(d->t, x->v, x->view, type);
	int32_t r = left_as(d, v);

	if (r < 0)
		r = given_as(d, v);
	if (r >= 0)
		return r;
	r = d->d.yield.n;
	*vec_push(a, &d->d.yield) =
		(t_yield){YIELD_ROWS, {back_made(d, v), -1}};
	*vec_push(a, &d->d.type) = back_rows_type(d, &v->type, d->g->n);
	*vec_push(a, &d->d.made) = false;
	*vec_push(a, &d->left) = (left_row){v, r};
	return r;
}

static row_from source(deriving *d, const t_read *x, const ir_type *type)
{
	const t_feed *f;

	if (kind_of(d, x) == LEFT_ROW)
		return (row_from){-1, -1, leave(d, x, type), -1};
	f = feed_of(d, x->v);
	return (row_from){f->at, f->kind == FEED_ROW ? f->row : -1, -1, -1};
}

/* Sums, moves and differences of what is read: f(x + y) = f(x) + f(y). */
static bool is_linear(const in_node *n)
{
	const char *fn;

	if (n->kind == IN_ELSE)
		return is_linear(n->arg[0]) && n->arg[1]->kind == IN_REAL &&
		       n->arg[1]->f == 0;
	if (n->kind == IN_READ)
		return true;
	if (n->kind != IN_CALL)
		return false;
	fn = ir_scalar_at(n->fn)->name;
	if (strcmp(fn, "neg") == 0)
		return is_linear(n->arg[0]);
	return (strcmp(fn, "add") == 0 || strcmp(fn, "sub") == 0) &&
	       is_linear(n->arg[0]) && is_linear(n->arg[1]);
}

static bool is_move(const ir_inst *p)
{
	const in_eqn *q = p->eqn;

	return p->opaque == NULL && p->n_eqns == 1 && !q->is_update &&
	       !q->is_scan && (q->monoid == IR_SUM || q->monoid == IR_SET) &&
	       is_linear(q->body[0]);
}

static bool add_sum(deriving *d, const t_value *v);

/* The sum of moved rows is the moved sum. */
static bool add_move(deriving *d, const t_call *q)
{
	row_sum sum = {.entry = q->entry, .n = q->n_args};

	sum.from = arena_array(d->t->a, row_from, q->n_args + 1);
	for (int32_t k = 0; k < q->n_args; k++) {
		if (q->arg[k].view != NULL || feed_of(d, q->arg[k].v) != NULL ||
			!add_sum(d, q->arg[k].v))
			return false;
		sum.from[k] = (row_from){-1, -1, -1, d->sum.n - 1};
	}
	*vec_push(d->t->a, &d->sum) = sum;
	return true;
}

static bool add_rows(deriving *d, const t_call *q, const t_value *v)
{
	arena *a = d->t->a;
	bool *is_row = arena_array(a, bool, q->n_args + 1);
	int32_t *operand = arena_array(a, int32_t, q->n_args + 1);
	row_sum sum = {0};
	ir_inst *inst;

	for (int32_t k = 0; k < q->n_args; k++)
		is_row[k] = kind_of(d, &q->arg[k]) >= GIVEN_ROW;
	inst = ir_inst_sum_rows(a, q->entry->inst, v->result, is_row, d->g->n,
		operand);
	if (inst == NULL ||
		!is_worth(d, q, inst, operand, bytes_of(&v->type)))
		return false;
	sum.from = arena_array(a, row_from, q->n_args + 1);
	for (; inst->tensor[sum.n].operand >= 0; sum.n++)
		sum.from[sum.n] = source(d, &q->arg[operand[sum.n]],
			&q->entry->inst->tensor[operand[sum.n]].type);
	sum.entry = t_entry_of(d->t, inst);
	*vec_push(a, &d->sum) = sum;
	return true;
}

/* The sum of v over the rounds becomes the last of d->sum. */
static bool add_sum(deriving *d, const t_value *v)
{
	const t_call *q = v->call;

	if (q == NULL || q->entry == NULL)
		return false;
	return (is_move(q->entry->inst) && add_move(d, q)) ||
	       add_rows(d, q, v);
}

bool back_sum_rows(deriving *d, int32_t i, const t_value *v)
{
	int32_t n_sums = d->sum.n, n_left = d->left.n, n_made = d->made.n;
	int32_t n_results = d->d.yield.n;
	int64_t bytes = d->n_left;

	if (d->g->test < 0 && add_sum(d, v)) {
		*vec_push(d->t->a, &d->given) =
			(given){i, BACK_OPERAND, -d->sum.n};
		return true;
	}
	d->sum.n = n_sums;
	d->left.n = n_left;
	d->n_left = bytes;
	d->made.n = n_made;
	d->d.yield.n = d->d.type.n = d->d.made.n = n_results;
	return false;
}

/* ---- the calls ---- */

/* Rows `row` to row + n - 1 of v. */
static t_value *rows_of(deriving *d, t_value *v, int32_t row)
{
	tensors *t = d->t;
	const ir_type *type = &v->type;
	int64_t start = row, count = d->g->n;
	ir_attr attr[] = {{.name = "axis", .kind = ATTR_INT, .i = 0},
		{.name = "start", .kind = ATTR_INT, .i = start},
		{.name = "count", .kind = ATTR_INT, .i = count}};
	t_read x = {v, NULL, false, 0};

	if (row == 0 && type->shape[0] == count)
		return v;
	return t_record(t, t_entry_named(t, "narrow", 1, &type, 3, attr), 1, &x)
		->result[0];
}

static t_value *add_call(deriving *d, const row_sum *s, t_value *const *in,
	const t_call *loop, t_value *const *sum)
{
	t_read *arg = arena_array(d->t->a, t_read, s->n + 1);

	for (int32_t k = 0; k < s->n; k++) {
		const row_from *x = &s->from[k];

		arg[k].v = x->sum >= 0	  ? sum[x->sum]
			: x->result >= 0  ? loop->result[x->result]
			: x->row >= 0	  ? rows_of(d, in[x->operand], x->row)
					  : in[x->operand];
	}
	return t_record(d->t, s->entry, s->n, arg)->result[0];
}

t_trace *back_with_sums(deriving *d, t_trace *loop, const char *name)
{
	tensors *t = d->t;
	int32_t n = d->d.op.n, m = d->given.n;
	t_value **in = arena_array(t->a, t_value *, n + 1);
	t_value **out = arena_array(t->a, t_value *, m + 1);
	t_value **sum = arena_array(t->a, t_value *, d->sum.n + 1);
	t_read *arg = arena_array(t->a, t_read, n + 1);
	t_call *q;
	t_trace *f;

	capture_begin(t, &d->c, true);
	for (int32_t k = 0; k < n; k++) {
		in[k] = arg[k].v = t_value_new(t, &d->d.op.at[k]->type);
		t_value_keep(in[k]);
	}
	q = t_record_trace(t, loop, arg);
	for (int32_t k = 0; k < d->sum.n; k++)
		sum[k] = add_call(d, &d->sum.at[k], in, q, sum);
	for (int32_t k = 0; k < m; k++) {
		int32_t r = d->given.at[k].result;

		out[k] = r >= 0 ? q->result[r] : sum[-1 - r];
	}
	capture_end(t, &d->c);
	f = trace_new(t, &d->c, n, in, m, out, name);
	if (f->n_in != n)
		env_bug(t->e, "region.back",
			"what is behind %s reads what it is not given", name);
	f->is_last = true;
	return f;
}
