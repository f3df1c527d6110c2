/*
 * verify.c: what a text, or a pass, may get wrong in a kernel.
 *
 * Consumes a kernel whose values are in order (kern_tidy). Walks it once:
 * names, types and statements are checked here and in verify_type.c, addresses
 * in verify_memory.c, and behind each phase what chunks do to each other, in
 * verify_chunks.c. Throws the rule that is broken:
 *
 *   kern.defined   a value, register or array before its definition, or outside
 *                  of its block; a value that is computed twice where it is used
 *   kern.type      an operand of another type than the instruction takes
 *   kern.lanes     a lane, part or shuffle of lanes that are not there
 *   kern.set       what is set is no register
 *   kern.loop      a step or direction that no loop has
 *   kern.number    an integer that may not fit its 32 bits, a division by 0, a
 *                  quotient of what may be negative
 *   kern.bounds    an element that may lie outside of its array
 *   kern.check     an index from data that is not checked; an unknown check
 *   kern.write     a store into what is only read
 *   kern.order     an element that is read before it is written
 *   kern.race      chunks that write, or write and read, the same element
 *   kern.warp      a statement that the warps of a block cannot all run
 *   kern.barrier   memory that changes hands between warps without a barrier
 *   kern.swizzled  an array whose rows are in another order, accessed as if they were not
 *   kern.bulk      a copy in bulk that is not a box of whole rows
 *   kern.wait      memory that is copied, without a wait and a barrier behind it
 *   kern.room      arrays beyond the bytes that there are, or misplaced
 *   kern.fence     stores past the caches without a fence behind them
 *   kern.copies    a phase that does more than it says
 *   kern.param     params that cannot lie where they are said to
 */
#include "kern/verify.h"

enum { MAX_NEST = 8 };

/* ---- names ---- */

static void define(struct kern_verifier *v, kern_val x)
{
	if (v->state[x] != UNKNOWN)
		kern_refuse(v, "defined", "a value is defined twice");
	v->state[x] = DEFINED;
	*vec_push(v->a, &v->live) = x;
}

static void need(struct kern_verifier *v, kern_val x)
{
	const kern_value *y = kern_at(v->k, x);

	if (x == 0 || y->op == KERN_CONST)
		return;
	if (v->state[x] != DEFINED)
		kern_refuse(v, "defined",
			v->state[x] == CLOSED
				? "this value belongs to a block that has ended"
				: "this value is not defined yet: a value must be defined before it is used");
	if (v->each_warp[x])
		kern_verify_own(v);
}

static void need_form(struct kern_verifier *v, const kern_form *f)
{
	for (int32_t i = 0; f != NULL && i < f->n; i++) {
		const kern_value *x = kern_at(v->k, f->t[i].v);

		need(v, f->t[i].v);
		if (x->op == KERN_REG || x->type.lanes != 1 ||
			(x->type.dt != TN_I64 && x->type.dt != TN_I32))
			kern_refuse(v, "type",
				"addresses and bounds must be sums of i64 or i32 values that are not registers");
	}
}

static void need_array(struct kern_verifier *v, int32_t array)
{
	if (v->k->array.at[array].space == KERN_STACK &&
		v->array[array] != DEFINED)
		kern_refuse(v, "defined",
			"this array of a block is used outside the block, or before its declaration");
}

static void need_access(struct kern_verifier *v, const kern_access *at)
{
	if (at->at == NULL)
		return;
	need_array(v, at->array);
	kern_verify_plain(v, at);
	need_form(v, at->at);
	need(v, at->mask);
	need(v, at->whole);
	need(v, at->by);
}

static void need_operands(struct kern_verifier *v, const kern_value *x)
{
	int32_t n = 0;

	for (const char *o = kern_op_at(x->op)->operands; *o != '\0'; o++)
		n += *o == 'v';
	if (x->op == KERN_CALL)
		n = ir_scalar_at(x->fn)->n_args;
	for (int32_t i = 0; i < n; i++)
		if (x->arg[i] == 0)
			kern_refuse(v, "defined", "this instruction lacks an operand");
	for (int32_t i = 0; i < KERN_MAX_ARGS; i++)
		need(v, x->arg[i]);
	for (int32_t i = 0; i < 2; i++) {
		need_form(v, x->form[i]);
		if (x->op != KERN_INSIDE)
			kern_verify_size(v, x->form[i]);
	}
	need_access(v, &x->at);
}

/* ---- instructions ---- */

static void verify_list(struct kern_verifier *v, const kern_value *x)
{
	for (int32_t i = 0; x->op == KERN_SHUFFLE && i < x->type.lanes; i++)
		if (x->list[i] < 0 || x->list[i] >= 2 * x->type.lanes)
			kern_refuse(v, "lanes",
				"lane %lld in a shuffle of %d lanes; it must be 0 to %d",
				(long long)x->list[i], x->type.lanes,
				2 * x->type.lanes - 1);
	for (int32_t i = 0; x->op == KERN_LANES && i < x->type.lanes; i++)
		if (x->type.dt == TN_BOOL
				? x->list[i] != 0 && x->list[i] != 1
				: ir_wrap(x->type.dt, x->list[i]) != x->list[i])
			kern_refuse(v, "number", "%lld does not fit a lane of %s",
				(long long)x->list[i],
				kern_type_text(v->a, x->type));
}

/* Its integers: quotients, checks, 32 bits. */
static void verify_integers(struct kern_verifier *v, const kern_value *x)
{
	bool divides = x->op == KERN_DIV || x->op == KERN_FLOOR ||
		       x->op == KERN_MOD;
	int64_t more = x->type.lanes - 1;

	if (divides && x->num[0] < 1)
		kern_refuse(v, "number", "%s by %lld; the divisor must be 1 or more",
			kern_op_at(x->op)->name, (long long)x->num[0]);
	if (x->op == KERN_DIV || x->op == KERN_MOD)
		kern_verify_form(v, "number", x->form[0], 0, INT64_MAX,
			"this form may be negative, which only ifloor accepts");
	if (x->op == KERN_CLAMP && x->num[0] > x->num[1])
		kern_refuse(v, "number", 
			"iclamp from %lld to %lld; the first must not be larger",
			(long long)x->num[0], (long long)x->num[1]);
	if (x->op == KERN_INDEX && x->type.dt == TN_I32)
		kern_verify_form(v, "number", x->form[0], INT32_MIN,
			(int64_t)INT32_MAX + 1 - more,
			"this form may exceed 32 bits");
	if (x->op == KERN_CHECK &&
		(x->num[0] < 1 || x->num[0] > v->k->check.n))
		kern_refuse(v, "check", "check %lld; this kernel has checks 1 to %d",
			(long long)x->num[0], v->k->check.n);
	if (x->op == KERN_LANE)
		kern_verify_form(v, "lanes", x->form[0], 0,
			kern_at(v->k, x->arg[0])->type.lanes,
			"this lane may be outside the vector");
}

static void verify_value(struct kern_verifier *v, kern_val i)
{
	const kern_value *x = kern_at(v->k, i);

	need_operands(v, x);
	kern_verify_type(v, x);
	verify_list(v, x);
	verify_integers(v, x);
	v->value = i;
	if (x->op == KERN_LOAD)
		kern_verify_access(v, &x->at, x->type.lanes, false);
	v->value = 0;
	kern_size_value(v, i);
}

/* The right side of '=': a name or an instruction. */
static void right(struct kern_verifier *v, kern_val x)
{
	if (x == 0)
		kern_refuse(v, "defined", "this statement lacks its value");
	if (v->state[x] != UNKNOWN ||
		strchr(kern_op_at(kern_at(v->k, x)->op)->flags, 'd') != NULL) {
		need(v, x);
		return;
	}
	verify_value(v, x);
	v->state[x] = INLINED;
}

static void same_type(struct kern_verifier *v, kern_type is, kern_type want)
{
	if (!kern_same_type(is, want))
		kern_refuse(v, "type", "this value has type %s; it must be %s",
			kern_type_text(v->a, is), kern_type_text(v->a, want));
}

static kern_type type_of(const struct kern_verifier *v, kern_val x)
{
	return kern_at(v->k, x)->type;
}

/* ---- statements ---- */

static void block(struct kern_verifier *v, const kern_block *b);

static void verify_let(struct kern_verifier *v, const kern_stmt *s)
{
	if (strchr(kern_op_at(kern_at(v->k, s->v)->op)->flags, 'd') != NULL)
		kern_refuse(v, "defined", "an instruction must follow '='");
	verify_value(v, s->v);
	define(v, s->v);
}

static void verify_var(struct kern_verifier *v, const kern_stmt *s)
{
	if (s->x != 0) {
		right(v, s->x);
		same_type(v, type_of(v, s->x), type_of(v, s->v));
	}
	if (s->by_warp)
		kern_verify_each_warp(v);
	v->home[s->v] = v->block;
	v->of_warp[s->v] = v->by_warp != NULL;
	v->each_warp[s->v] = s->by_warp;
	v->range.lanes[s->v] = NULL;
	define(v, s->v);
}

static void verify_set(struct kern_verifier *v, const kern_stmt *s)
{
	kern_type t = type_of(v, s->v);

	need(v, s->v);
	if (kern_at(v->k, s->v)->op != KERN_REG)
		kern_refuse(v, "set", "only a register (\"var\") can be set");
	kern_verify_set(v, s->v);
	right(v, s->x);
	if (s->kind == KERN_SET_LANE) {
		need_form(v, s->lo);
		kern_verify_form(v, "lanes", s->lo, 0, t.lanes,
			"this lane may be outside the vector");
		t = kern_num(t.dt, 1);
	}
	same_type(v, type_of(v, s->x), t);
}

static void verify_store(struct kern_verifier *v, const kern_stmt *s)
{
	const kern_array *r = &v->k->array.at[s->at.array];
	kern_type t;

	need_access(v, &s->at);
	right(v, s->x);
	t = type_of(v, s->x);
	same_type(v, t, kern_num(kern_stored(r->dtype), t.lanes));
	if (s->at.whole != 0)
		kern_refuse(v, "type", "`whole` is for loads, not for stores");
	if (s->at.mask != 0)
		kern_refuse(v, "type", "`mask` is for loads, not for stores: "
			"store in an `if`, or store a `sel`");
	kern_verify_access(v, &s->at, t.lanes, true);
	kern_verify_effect(v);
}

/* A loop that sets each lane of a register: from here on they are known. */
static void find_lanes(struct kern_verifier *v, const kern_stmt *s)
{
	int64_t lo, hi;

	if (!kern_form_is_const(s->lo, &lo) || !kern_form_is_const(s->hi, &hi) ||
		lo != 0 || s->step != 1 || s->down)
		return;
	for (int32_t i = 0; i < s->body.list.n; i++) {
		const kern_stmt *t = s->body.list.at[i];

		if (t->kind == KERN_SET_LANE &&
			t->lo == kern_form_term(v->k, 1, s->v) &&
			hi == type_of(v, t->v).lanes && v->sets[t->v] == 1 &&
			v->home[t->v] == v->block)
			v->range.lanes[t->v] = t;
	}
}

static void verify_for(struct kern_verifier *v, const kern_stmt *s)
{
	bool narrow = s->type.dt == TN_I32;
	int64_t most = (int64_t)INT32_MAX - s->step + 1;
	int32_t n = v->range.fact.n;

	need_form(v, s->lo);
	need_form(v, s->hi);
	kern_verify_size(v, s->lo);
	kern_verify_size(v, s->hi);
	if (s->type.lanes != 1 || (!narrow && s->type.dt != TN_I64))
		kern_refuse(v, "type", 
			"the variable of a loop must be i64 or i32");
	if (s->step < 1 || (s->down && (s->step != 1 || s->whole || s->after)))
		kern_refuse(v, "loop",
			"a step must be 1 or more; in a loop that runs down it must be 1, without `whole` and `after`");
	if (s->unroll && !kern_may_unroll(s))
		kern_refuse(v, "loop",
			"a loop that is unrolled must have constant bounds, step 1 and 1 to %d iterations, and none by warp or by lane",
			KERN_MAX_LANES);
	if (narrow) {
		kern_verify_form(v, "number", s->lo, INT32_MIN, most,
			"this bound may exceed 32 bits");
		kern_verify_form(v, "number", s->hi, INT32_MIN, most,
			"this bound may exceed 32 bits");
	}
	kern_range_loop(&v->range, s);
	define(v, s->v);
	kern_size_loop(v, s);
	kern_assume_loop(&v->range, s);
	if (s->by_lane)
		kern_verify_by_lane(v, s);
	if (s->by_warp)
		kern_open_warps(v, s);
	v->loops++;
	block(v, &s->body);
	v->loops--;
	if (s->by_warp)
		kern_close_warps(v);
	v->range.fact.n = n;
	kern_verify_early(v);
	find_lanes(v, s);
	v->state[s->v] = CLOSED;
	if (s->after != 0)
		define(v, s->after);
}

static const kern_stmt *only(const kern_block *b, kern_kind kind)
{
	return b->list.n == 1 && b->list.at[0]->kind == kind ? b->list.at[0]
							     : NULL;
}

/* The last statement, behind nothing but values. */
static const kern_stmt *behind_lets(const kern_block *b, kern_kind kind)
{
	int32_t n = b->list.n;

	for (int32_t i = 0; i + 1 < n; i++)
		if (b->list.at[i]->kind != KERN_LET)
			return NULL;
	return n > 0 && b->list.at[n - 1]->kind == kind ? b->list.at[n - 1]
							: NULL;
}

static kern_val splat(struct kern_verifier *v, kern_val c, kern_type mask)
{
	return kern_ins(v->k, &(kern_value){.op = KERN_SPLAT, .type = mask,
				      .arg = {c}});
}

/* A condition on the lane that a loop is at, as a mask; 0: it is none. What was
 * known before the loop is so in all lanes. */
static kern_val as_mask(
	struct kern_verifier *v, kern_val c, const kern_form *lane, int nest)
{
	kern_value x = *kern_at(v->k, c);
	int32_t n = x.op == KERN_CALL ? ir_scalar_at(x.fn)->n_args : 0;
	kern_type mask = {0};
	kern_val arg[KERN_MAX_ARGS];

	if (x.op == KERN_LANE && x.form[0] == lane)
		return x.arg[0];
	for (int32_t i = 0; i < n && nest <= MAX_NEST; i++) {
		arg[i] = as_mask(v, x.arg[i], lane, nest + 1);
		if (arg[i] != 0)
			mask = kern_at(v->k, arg[i])->type;
	}
	if (mask.lanes == 0)
		return 0;
	for (int32_t i = 0; i < n; i++) {
		if (arg[i] == 0 && x.arg[i] > lane->t[0].v)
			return 0;
		x.arg[i] = arg[i] != 0 ? arg[i] : splat(v, x.arg[i], mask);
	}
	x.type = mask;
	return kern_ins(v->k, &x);
}

/*
 * A register that is loaded at once, or lane by lane where a condition has the
 * lane: nobody looks at other lanes. The lanes as a mask; 0: it is no such
 * condition.
 */
static kern_val lanes_of_interest(struct kern_verifier *v, const kern_stmt *s)
{
	const kern_stmt *all = only(&s->body, KERN_SET);
	const kern_stmt *loop = only(&s->other, KERN_FOR), *one, *set;
	kern_val mask;

	one = loop == NULL ? NULL : behind_lets(&loop->body, KERN_IF);
	set = one == NULL || one->other.list.n > 0
		      ? NULL
		      : only(&one->body, KERN_SET_LANE);
	if (all == NULL || set == NULL || set->v != all->v ||
		set->lo != kern_form_term(v->k, 1, loop->v))
		return 0;
	mask = as_mask(v, one->x, set->lo, 0);
	return mask != 0 && type_of(v, mask).lanes == type_of(v, all->v).lanes
		       ? mask
		       : 0;
}

static void verify_if(struct kern_verifier *v, const kern_stmt *s)
{
	int32_t n = v->range.fact.n;

	right(v, s->x);
	same_type(v, type_of(v, s->x), kern_bool());
	v->guards++;
	kern_assume(&v->range, s->x, NULL, true);
	v->interest = lanes_of_interest(v, s);
	block(v, &s->body);
	v->interest = 0;
	v->range.fact.n = n;
	kern_assume(&v->range, s->x, NULL, false);
	block(v, &s->other);
	v->range.fact.n = n;
	v->guards--;
}

static void verify_array(struct kern_verifier *v, const kern_stmt *s)
{
	const kern_array *r = &v->k->array.at[s->array];

	if (r->space != KERN_STACK || v->array[s->array] != UNKNOWN)
		kern_refuse(v, "defined", 
			"this array is declared already, or is not of a block");
	if (r->elems < 1 || r->elems > 1 << 20)
		kern_refuse(v, "room",
			"%lld elements; an array of a block must have 1 to 1048576",
			(long long)r->elems);
	kern_verify_effect(v);
	v->array[s->array] = DEFINED;
	*vec_push(v->a, &v->arrays) = s->array;
	if (s->stream)
		v->written[s->array] |= 1;
}

static void verify_turn(struct kern_verifier *v, const kern_stmt *s)
{
	const kern_kernel *k = v->k;
	int32_t unit = kern_turn_unit(s);
	int64_t bytes = unit * (int64_t)dtype_size(s->type.dt);

	need_access(v, &s->at);
	need_access(v, &s->from);
	if (s->type.lanes < 2 ||
		kern_stored(k->array.at[s->at.array].dtype) != s->type.dt ||
		kern_stored(k->array.at[s->from.array].dtype) != s->type.dt)
		kern_refuse(v, "type",
			"the rows of a turn must have two or more lanes, and the dtype of both arrays");
	if (s->width != 0 && (s->width < 2 || s->n % s->width != 0 ||
				     s->m % s->width != 0 || (bytes != 4 && bytes != 8)))
		kern_refuse(v, "lanes",
			"%d neighbours that stay together must be 4 or 8 bytes, and the distances of rows multiples of them",
			s->width);
	kern_verify_rows(
		v, &s->from, s->m, s->type.lanes, s->type.lanes * unit, false);
	kern_verify_rows(
		v, &s->at, s->n, s->type.lanes, s->type.lanes * unit, true);
	kern_verify_effect(v);
}

static void verify_matrix(struct kern_verifier *v, const kern_stmt *s)
{
	tn_dtype sum = TN_F32;

	need_access(v, &s->at);
	if (s->kind == KERN_MMA)
		sum = kern_mma_sum(s->type.dt);
	else if (v->k->array.at[s->at.array].dtype == TN_I32)
		sum = TN_I32;
	if (kern_multiplies(s))
		need_access(v, &s->from);
	for (int32_t i = 0; i < s->n_acc; i++) {
		need(v, s->acc[i]);
		if (kern_at(v->k, s->acc[i])->op != KERN_REG)
			kern_refuse(v, "set", "sums of a matrix must be in registers (\"var\")");
		same_type(v, type_of(v, s->acc[i]), kern_num(sum, KERN_MMA_LANES));
		if (s->kind != KERN_GIVE)
			kern_verify_set(v, s->acc[i]);
	}
	kern_verify_matrix(v, s);
}

static void verify_tiles(struct kern_verifier *v, const kern_stmt *s)
{
	need_access(v, &s->at);
	need_access(v, &s->from);
	need_access(v, &s->to);
	if (s->x != 0) {
		need(v, s->x);
		same_type(v, type_of(v, s->x), kern_num(TN_BOOL, 1));
	}
	kern_verify_tiles(v, s);
	kern_verify_effect(v);
}

static void verify_async(struct kern_verifier *v, const kern_stmt *s)
{
	need_access(v, &s->at);
	need_access(v, &s->from);
	kern_verify_async(v, s);
}

static void statement(struct kern_verifier *v, const kern_stmt *s)
{
	v->s = s;
	switch (s->kind) {
	case KERN_LET:
		verify_let(v, s);
		break;
	case KERN_VAR:
		verify_var(v, s);
		break;
	case KERN_SET:
	case KERN_SET_LANE:
		verify_set(v, s);
		break;
	case KERN_STORE:
		verify_store(v, s);
		break;
	case KERN_FOR:
		verify_for(v, s);
		break;
	case KERN_IF:
		verify_if(v, s);
		break;
	case KERN_BLOCK:
		block(v, &s->body);
		break;
	case KERN_ARRAY:
		verify_array(v, s);
		break;
	case KERN_PREFETCH:
		need_access(v, &s->at);
		break;
	case KERN_TURN:
		verify_turn(v, s);
		break;
	case KERN_TILES:
		verify_tiles(v, s);
		break;
	case KERN_MMA:
	case KERN_TAKE:
	case KERN_GIVE:
		verify_matrix(v, s);
		break;
	case KERN_ASYNC:
		verify_async(v, s);
		break;
	case KERN_BARRIER:
	case KERN_COMMIT:
	case KERN_WAIT:
		kern_verify_barrier(v);
		break;
	case KERN_FENCE:
	case KERN_RELOAD:
	case KERN_NOTE:
		break;
	}
}

static void block(struct kern_verifier *v, const kern_block *b)
{
	int32_t n = v->live.n, m = v->arrays.n;
	const kern_block *around = v->block;

	v->block = b;
	if (++v->depth > KERN_MAX_DEPTH)
		kern_refuse(v, "depth", "blocks are nested more than %d deep",
			KERN_MAX_DEPTH);
	for (int32_t i = 0; i < b->list.n; i++) {
		v->s = b->list.at[i];
		if (b->list.at[i]->together != 0)
			kern_verify_together(v, b, i);
		statement(v, b->list.at[i]);
	}
	while (v->live.n > n)
		v->state[vec_pop(&v->live)] = CLOSED;
	while (v->arrays.n > m)
		v->array[vec_pop(&v->arrays)] = CLOSED;
	v->block = around;
	v->depth--;
}

/* ---- phases ---- */

static bool streams(const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if ((s->kind == KERN_STORE && s->stream) || streams(&s->body) ||
			streams(&s->other))
			return true;
	}
	return false;
}

static void verify_fence(struct kern_verifier *v, const kern_phase *p)
{
	const kern_stmt *last = NULL;

	for (int32_t i = 0; i < p->body.list.n; i++)
		if (p->body.list.at[i]->kind != KERN_NOTE)
			last = p->body.list.at[i];
	if (last == NULL || !streams(&p->body) || last->kind == KERN_FENCE)
		return;
	v->s = last;
	kern_refuse(v, "fence",
		"this phase stores past the caches: it must end with a fence");
}

static void verify_copies(struct kern_verifier *v, const kern_phase *p)
{
	if (p->copies == 0)
		return;
	if (p->copies < 0 || p->copies > v->k->n_params)
		kern_refuse(v, "copies", 
			"this phase must copy one of params 0 to %d",
			v->k->n_params - 1);
	for (int32_t i = 0; i < v->touch.n; i++) {
		const struct kern_touch *t = &v->touch.at[i];
		kern_space is = v->k->array.at[t->array].space;

		v->s = t->s;
		if (t->write ? is == KERN_PARAM
			     : is == KERN_SCRATCH ||
				       (is == KERN_PARAM &&
					       t->array != p->copies - 1))
			kern_refuse(v, "copies",
				"this phase copies p%d into scratch: it must not read or write other memory",
				p->copies - 1);
	}
}

static void verify_phase(struct kern_verifier *v, const kern_phase *p)
{
	v->s = NULL;
	if (p->n_chunks < 1)
		kern_refuse(v, "loop", "a phase must have one chunk or more");
	v->range.n_chunks = p->n_chunks;
	v->touch.n = v->set.n = v->bounds.n = 0;
	v->same = map_new(v->a);
	v->known = map_new(v->a);
	define(v, p->chunk);
	v->size[p->chunk] = v->range.reach[p->chunk] = (uint64_t)p->n_chunks;
	block(v, &p->body);
	v->state[p->chunk] = CLOSED;
	if (p->warps > 1)
		kern_verify_barriers(v), kern_verify_waits(v);
	verify_fence(v, p);
	verify_copies(v, p);
	if (p->n_chunks > 1)
		kern_verify_chunks(v);
	for (int32_t i = 0; i < v->k->array.n; i++)
		v->written[i] = v->written[i] != 0 ? 2 : 0;
	v->phase++;
}

/* ---- the header ---- */

static void verify_room(struct kern_verifier *v, int32_t i)
{
	const kern_array *r = &v->k->array.at[i];
	size_t room = r->space == KERN_SCRATCH ? v->k->scratch_bytes
					       : v->k->local_bytes;
	int64_t size = (int64_t)dtype_size(r->dtype), bytes, end;

	if (!mul_ok(r->elems, size, &bytes) || !add_ok(r->offset, bytes, &end) ||
		r->offset < 0 || r->elems < 0 || (size_t)end > room)
		kern_refuse(v, "room",
			"%s extends beyond the %zu bytes of its memory",
			kern_access_text(v, i), room);
	if (r->offset % size != 0)
		kern_refuse(v, "room",
			"%s starts at byte %lld, which must be a multiple of its elements' %lld bytes",
			kern_access_text(v, i), (long long)r->offset,
			(long long)size);
}

static void verify_param(struct kern_verifier *v, int32_t i)
{
	const kern_array *r = &v->k->array.at[i], *of;

	if (r->in == 0)
		return;
	of = &v->k->array.at[r->in - 1];
	if (r->in > v->k->n_params || r->in - 1 == i || of->in != 0 ||
		of->dtype != r->dtype || of->elems != r->elems ||
		!v->k->shared)
		kern_refuse(v, "param",
			"%s must be in another param of the same dtype and number of elements, and the kernel must be `shared`",
			kern_access_text(v, i));
}

void kern_verify(kern_kernel *k)
{
	arena *a = k->a;
	struct kern_verifier v = {.k = k, .a = a,
		.range = kern_range_new(k, a)};

	k->verified = true;
	v.state = arena_array(a, uint8_t, k->value.n + 1);
	v.size = arena_array(a, uint64_t, k->value.n + 1);
	v.array = arena_array(a, uint8_t, k->array.n + 1);
	v.written = arena_array(a, uint8_t, k->array.n + 1);
	for (int32_t i = 0; i < k->array.n; i++) {
		kern_space s = k->array.at[i].space;

		if (s == KERN_PARAM)
			verify_param(&v, i);
		else if (s != KERN_STACK)
			verify_room(&v, i);
		kern_verify_swizzled(&v, i);
	}
	v.range.reach = arena_array(a, uint64_t, k->value.n + 1);
	v.range.lanes = arena_array(a, const kern_stmt *, k->value.n + 1);
	v.of_warp = arena_array(a, bool, k->value.n + 1);
	v.each_warp = arena_array(a, bool, k->value.n + 1);
	v.home = arena_array(a, const kern_block *, k->value.n + 1);
	kern_find_uses(&v);
	for (int32_t i = 0; i < k->n_phases; i++)
		verify_phase(&v, &k->phase[i]);
	kern_verify_narrow(&v);
	kern_verify_order(&v);
	k->verified = false;
}
