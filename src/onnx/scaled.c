/*
 * scaled.c: scales leave sums of products, so that these are sums of integers.
 *
 * Consumes calls of rows on values that are integers times a scale, as
 * DequantizeLinear makes them. If the equation of a row is a sum of products of
 * such values, and no scale depends on a letter that is summed, the row is called on
 * the integers, and its result is scaled once:
 *
 *     x[i,k] = a[i,k] * s    w[k,j] = b[k,j] * t[j]    o[i,j] += x[i,k] * w[k,j]
 *
 *     n[i,j] += a[i,k] * b[k,j]    o[i,j] = n[i,j] * (s * t[j])
 *
 * Guarantees that the sum is exact: from the types of the integers and the number
 * of terms it is proved that none is beyond i32. So o has three roundings, and no
 * product of scales over- or underflows. Nothing here knows a name of a row: what
 * a letter is summed over, and where a scale stands in the result, is read from
 * the equations.
 */
#include "onnx/scaled.h"

#include <float.h>
#include <math.h>

#define MAX_SCALES ((int64_t)1 << 20)

/* ---- values ---- */

static const ir_type *type_of(const onnx_import *x, int32_t v)
{
	return &x->p->value.at[v].type;
}

void onnx_scaled_note(onnx_import *x, int32_t v, int32_t ints, int64_t most,
	int32_t scale, int32_t axis)
{
	const ir_type *t = type_of(x, scale);
	int64_t n = shape_numel(t->shape, t->rank);
	scaled *s = arena_array(x->a, scaled, 1);
	const float *data;

	if (t->dtype != TN_F32 || type_of(x, v)->dtype != TN_F32 || n < 1 ||
		n > MAX_SCALES || most >= INT32_MAX ||
		!onnx_fact(x, scale)->is_const || onnx_fact(x, scale)->level > 0)
		return;
	*s = (scaled){.ints = ints, .most = most, .scale = scale,
		.axis = n == 1 ? -1 : axis, .least = (double)INFINITY};
	data = onnx_host(x, scale);
	for (int64_t i = 0; i < n; i++) {
		double by = fabs((double)data[i]);

		if (!(by >= FLT_MIN && by <= FLT_MAX))
			return;
		s->least = by < s->least ? by : s->least;
		s->greatest = by > s->greatest ? by : s->greatest;
	}
	onnx_fact(x, v)->scaled = s;
}

/* ---- index expressions ---- */

static bool occurs(const in_node *n, int64_t letter)
{
	if (n->kind == IN_LETTER)
		return n->i == letter;
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if (n->arg[i] != NULL && occurs(n->arg[i], letter))
			return true;
	for (int32_t i = 0; i < n->n_index; i++)
		if (occurs(n->index[i], letter))
			return true;
	return false;
}

/* By how much n changes with the letter; 0: not at all, or not evenly. */
static int64_t slope(const in_node *n, int64_t letter)
{
	bool left, right;
	int64_t a, b, r;

	if (n->kind == IN_LETTER)
		return n->i == letter;
	if (n->kind != IN_ADD && n->kind != IN_SUB && n->kind != IN_MUL)
		return 0;
	left = occurs(n->arg[0], letter);
	right = occurs(n->arg[1], letter);
	if (left == right) /* in both: they may cancel out */
		return 0;
	a = slope(n->arg[left ? 0 : 1], letter);
	if (n->kind == IN_ADD)
		return a;
	if (n->kind == IN_SUB)
		return left ? a : -a;
	b = n->arg[left ? 1 : 0]->kind == IN_INT ? n->arg[left ? 1 : 0]->i : 0;
	return mul_ok(a, b, &r) && r != INT64_MIN ? r : 0;
}

/*
 * The letter that index number k of the result determines: the longest in which
 * it is linear and that no index before it contains; -1: none.
 */
static int32_t determined(const ir_inst *inst, const in_eqn *q, int32_t k)
{
	int32_t best = -1;

	for (int32_t i = 0; i < q->n_letters; i++) {
		int32_t letter = q->letters[i];
		bool before = false;

		for (int32_t j = 0; j < k && !before; j++)
			before = occurs(q->left[j], letter);
		if (!before && slope(q->left[k], letter) != 0 &&
			(best < 0 || inst->letter[letter].extent >
				inst->letter[best].extent))
			best = letter;
	}
	return best;
}

/*
 * A number of terms that no element of the result exceeds; -1: none is known.
 * Given an element and all letters that no index of it determines, those that
 * its indices determine follow one after another. So it is the product of the
 * extents of the others.
 */
static int64_t n_terms(const ir_inst *inst, const in_eqn *q)
{
	uint64_t known = 0;
	int64_t n = 1;

	for (int32_t k = 0; k < q->n_left; k++) {
		int32_t letter = determined(inst, q, k);

		for (int32_t i = 0; i < q->n_letters && letter >= 0; i++)
			if (q->letters[i] == letter)
				known |= (uint64_t)1 << i;
	}
	for (int32_t i = 0; i < q->n_letters; i++)
		if ((known >> i & 1) == 0 &&
			!mul_ok(n, inst->letter[q->letters[i]].extent, &n))
			return -1;
	return n;
}

/* ---- equations ---- */

static bool is_zero(const in_node *n)
{
	while (n->kind == IN_CAST)
		n = n->arg[0];
	return (n->kind == IN_INT && n->i == 0) ||
		(n->kind == IN_REAL && n->f == 0);
}

/* The body of an equation; of one that is 0 outside of its operands: inside. */
static const in_node *inside(const in_eqn *q)
{
	const in_node *n = q->body[0];

	return n->kind == IN_ELSE && is_zero(n->arg[1]) ? n->arg[0] : n;
}

/* Adds the reads whose product n is to read[]. false: it is no such product. */
static bool factors(const in_node *n, const in_node **read, int32_t *n_read)
{
	if (n->kind == IN_READ) {
		if (*n_read >= IR_MAX_ARGS)
			return false;
		read[(*n_read)++] = n;
		return true;
	}
	if (n->kind != IN_CALL || strcmp(ir_scalar_at(n->fn)->laws, "x y") != 0)
		return false; /* it is not linear in each of two */
	return factors(n->arg[0], read, n_read) &&
		factors(n->arg[1], read, n_read);
}

/* A row whose result is scaled if its operands are. */
typedef struct linear {
	onnx_import *x;
	const ir_inst *inst;
	const int32_t *arg; /* operands of the call */
	int32_t n_args, result;
	const in_eqn *sum; /* the equation that is no fill with 0 */
	const in_node *read[IR_MAX_ARGS];
	int32_t n_read;
} linear;

static const scaled *operand(const linear *l, int32_t i)
{
	return onnx_fact(l->x, l->arg[i])->scaled;
}

static int32_t operand_of(const linear *l, const in_node *read)
{
	return l->inst->tensor[read->tensor].operand;
}

/* Finds the reads; false: the row is no sum of products of scaled operands. */
static bool find_reads(linear *l)
{
	for (int32_t i = 0; i < l->inst->n_eqns; i++) {
		const in_eqn *q = &l->inst->eqn[i];

		if (q->n_out != 1 || q->is_scan)
			return false;
		if (q->monoid == IR_SET && is_zero(q->body[0]))
			continue;
		if (l->sum != NULL ||
			(q->monoid != IR_SUM && q->monoid != IR_SET))
			return false;
		l->sum = q;
	}
	if (l->sum == NULL ||
		!factors(inside(l->sum), l->read, &l->n_read) ||
		l->n_read != l->n_args)
		return false;
	for (int32_t i = 0; i < l->n_read; i++)
		if (operand_of(l, l->read[i]) < 0)
			return false;
	return true;
}

/* Could the row be called on integers: does no operand have to be a float? */
static bool takes_ints(const ir_row *r)
{
	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *p = ir_row_param(r, i);

		if (p->is_operand && !strcmp(p->dtype_class, "float"))
			return false;
	}
	return true;
}

/*
 * The axis of the result along which the scale of an operand lies: the index by
 * which the row reads the operand there is an index of the result. -1: the scale
 * is one number. false: there is none.
 */
static bool scale_axis(const linear *l, const in_node *read, int32_t *axis)
{
	const scaled *s = operand(l, operand_of(l, read));
	const ir_type *t = type_of(l->x, l->result);

	*axis = -1;
	if (s->axis < 0)
		return true;
	if (read->flat)
		return false;
	for (int32_t k = 0; k < l->sum->n_left; k++)
		if (ir_same(l->sum->left[k], read->index[s->axis]) &&
			t->shape[k] == type_of(l->x, s->scale)->shape[0]) {
			*axis = k;
			return true;
		}
	return false;
}

/* ---- what is computed instead ---- */

/* The row on the integers of its operands. */
static int32_t on_ints_of(const linear *l, const char *name, int32_t call)
{
	int32_t ints[IR_MAX_ARGS];

	for (int32_t i = 0; i < l->n_args; i++)
		ints[i] = operand(l, i)->ints;
	return onnx_call(l->x, name, l->n_args, ints,
		l->x->p->call.at[call].n_attrs, l->x->p->call.at[call].attr);
}

/* A scale of an operand, along this axis of the result. */
static int32_t scale_along(const linear *l, int32_t scale, int32_t axis)
{
	int64_t shape[TN_MAX_RANK], n = type_of(l->x, scale)->shape[0];
	int32_t r = axis < 0 ? 0 : type_of(l->x, l->result)->rank - axis;
	ir_attr attr = {
		.name = "shape", .kind = ATTR_INTS, .n = r, .ints = shape};
	int64_t *own = arena_array(l->x->a, int64_t, TN_MAX_RANK);

	for (int32_t i = 0; i < r; i++)
		own[i] = i == 0 ? n : 1;
	attr.ints = own;
	return onnx_call(l->x, "reshape", 1, &scale, 1, &attr);
}

static int32_t times(const linear *l, int32_t v, int32_t w)
{
	const int32_t arg[] = {v, w};

	return v < 0 ? w : onnx_call(l->x, "mul", 2, arg, 0, NULL);
}

/* Is the sum exact in i32, and are all products of scales normal numbers? */
static bool is_exact(const linear *l)
{
	int64_t most = n_terms(l->inst, l->sum);
	double least = 1, greatest = 1;

	if (most < 0)
		return false;
	for (int32_t i = 0; i < l->n_args; i++) {
		const scaled *s = operand(l, i);

		if (!mul_ok(most, s->most, &most) || most > INT32_MAX)
			return false;
		least *= s->least;
		greatest *= s->greatest;
	}
	return least >= FLT_MIN * 2.0 &&
		greatest * (double)(most > 0 ? most : 1) <= FLT_MAX / 2.0;
}

/* The sum of products of integers, scaled; or what the call made. */
static int32_t scaled_sum(const linear *l, const char *name, int32_t call)
{
	const ir_attr to = {
		.name = "to", .kind = ATTR_DTYPE, .dtype = TN_F32};
	int32_t axis[IR_MAX_ARGS], by = -1, o;

	for (int32_t i = 0; i < l->n_read; i++)
		if (!scale_axis(l, l->read[i], &axis[i]))
			return l->result;
	if (!is_exact(l))
		return l->result;
	for (int32_t i = 0; i < l->n_read; i++)
		by = times(l, by, scale_along(l,
			operand(l, operand_of(l, l->read[i]))->scale, axis[i]));
	o = on_ints_of(l, name, call);
	return times(l, onnx_call(l->x, "cast", 1, &o, 1, &to), by);
}

/* Notes that a result to which a scaled operand is moved is scaled, too. */
static void moved(const linear *l, const char *name, int32_t call)
{
	const scaled *s;
	scaled *own;
	int32_t axis;

	if (l->n_read != 1 || !scale_axis(l, l->read[0], &axis))
		return;
	s = operand(l, 0);
	own = arena_array(l->x->a, scaled, 1);
	*own = *s;
	own->axis = axis;
	own->ints = on_ints_of(l, name, call);
	onnx_fact(l->x, l->result)->scaled = own;
}

int32_t onnx_scaled_call(onnx_import *x, const char *name, int32_t v)
{
	int32_t call = x->p->value.at[v].call;
	const ir_call *c = &x->p->call.at[call];
	linear l = {.x = x, .inst = c->inst, .arg = c->arg,
		.n_args = c->n_args, .result = c->result[0]};

	if (c->n_results != 1 || c->n_args < 1 || c->n_args > IR_MAX_ARGS)
		return l.result;
	for (int32_t i = 0; i < l.n_args; i++)
		if (operand(&l, i) == NULL)
			return l.result;
	if (!takes_ints(c->row) || !find_reads(&l) ||
		type_of(x, l.result)->dtype != TN_F32)
		return l.result;
	if (l.sum->monoid == IR_SUM)
		return scaled_sum(&l, name, call);
	moved(&l, name, call);
	return l.result;
}
