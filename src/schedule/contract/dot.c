/*
 * dot.c: chooses the products whose tiles add up neighbours: a vector of 32-bit
 * sums, and two bf16 or i16, or four u8 and i8 for each of them.
 *
 * Consumes a product whose factors are widened before they are multiplied; finds the
 * narrow values by what an expression can be, and replaces the factors by them.
 *
 *   s[i, j] += f32(x[i, k]) * f32(y[k, j])          x, y in pairs, as they are
 *   s[i, j] += (i32(x[i, k]) - 9) * i32(y[k, j])    u8: x is 9 more than the factor
 *     = sum of x * y - 9 * sum of y                 the tile adds up y, too
 *
 * A sum of integers wraps to the same bits in any order, so it is exact. A sum of
 * products of bf16 has the same terms as in f32, the two of a pair in the other
 * order; products of bf16 are exact in f32. What the instruction treats as 0 are
 * subnormal factors and sums: docs/contractions.md.
 */
#include "schedule/contract/contract.h"

static const tn_dtype WIDE = TN_I32; /* sums, and what factors are computed with */

/* ---- what an integer can be ---- */

typedef struct between {
	int64_t lo, hi;
} between;

/* Of integers of up to 16 bits. */
static bool limits(tn_dtype t, between *out)
{
	int64_t n;

	if (!dtype_is_int(t) || dtype_size(dtype_wide(t)) > dtype_size(TN_I16))
		return false;
	n = dtype_size(dtype_wide(t)) == 1 ? INT8_MAX : INT16_MAX;
	*out = dtype_is_unsigned(t) ? (between){0, 2 * n + 1}
				    : (between){-n - 1, n};
	return true;
}

static bool is_within(between a, between b)
{
	return a.lo >= b.lo && a.hi <= b.hi;
}

/* If all values fit the dtype; else it wraps to any of its own. */
static bool fitted(tn_dtype t, between is, between *out)
{
	between all;

	*out = is;
	if (limits(t, &all))
		*out = is_within(is, all) ? is : all;
	else
		return !dtype_is_unsigned(t) && is.lo >= INT32_MIN / 2 &&
		       is.hi <= INT32_MAX / 2;
	return true;
}

/* false: it may have more than 16 bits, as far as is known. */
static bool values_of(const expr *e, between *out)
{
	between a, b;

	switch (e->kind) {
	case EX_CONST:
		*out = (between){e->c.i, e->c.i};
		return dtype_is_int(e->dtype) && fitted(e->dtype, *out, out);
	case EX_CAST:
		return dtype_is_int(e->dtype) && dtype_is_int(e->arg[0]->dtype) &&
		       values_of(e->arg[0], &a) && fitted(e->dtype, a, out);
	case EX_SELECT:
		if (!values_of(e->arg[1], &a) || !values_of(e->arg[2], &b))
			return false;
		*out = (between){a.lo < b.lo ? a.lo : b.lo,
			a.hi > b.hi ? a.hi : b.hi};
		return true;
	case EX_CALL:
		if ((!ex_is_call(e, "add") && !ex_is_call(e, "sub")) ||
			!values_of(e->arg[0], &a) || !values_of(e->arg[1], &b))
			return false;
		if (ex_is_call(e, "sub"))
			b = (between){-b.hi, -b.lo};
		return fitted(e->dtype,
			(between){a.lo + b.lo, a.hi + b.hi}, out);
	case EX_READ:
		return limits(e->dtype, out);
	case EX_PARAM:
	case EX_INDEX:
	case EX_INSIDE:
		break;
	}
	return false;
}

/* ---- narrow factors ---- */

/* Is the f32 always a bf16? */
static bool is_bf16(const expr *e)
{
	if (e->kind == EX_SELECT)
		return is_bf16(e->arg[1]) && is_bf16(e->arg[2]);
	return (e->kind == EX_CAST && e->arg[0]->dtype == TN_BF16) ||
	       (e->kind == EX_CONST && e->c.f == 0);
}

const expr *contract_before_rounding(loop_kernel *k, const expr *e, tn_dtype t)
{
	if (e->kind == EX_SELECT)
		return ex_select(k->s, e->arg[0],
			contract_before_rounding(k, e->arg[1], t),
			contract_before_rounding(k, e->arg[2], t));
	return e->kind == EX_CAST && e->arg[0]->dtype == t &&
			       e->arg[0]->kind == EX_CAST &&
			       e->arg[0]->arg[0]->dtype == e->dtype
		       ? e->arg[0]->arg[0]
		       : e;
}

/* .. NULL: it is not */
static const expr *as_bf16(loop_kernel *k, const expr *e)
{
	if (e->dtype != TN_F32 || !is_bf16(e))
		return NULL;
	return e->kind == EX_CAST ? e->arg[0]
				  : ex_cast(k->s, TN_BF16,
					    contract_before_rounding(k, e, TN_BF16));
}

/*
 * The integer in the bits that t has. Sums, and other bits of what is added, are the
 * same whenever the rest is dropped.
 */
static const expr *wrapped(loop_kernel *k, const expr *e, tn_dtype t)
{
	const expr *arg[IR_MAX_ARGS] = {NULL};

	if (e->dtype == t)
		return e;
	if (e->kind == EX_CONST)
		return ex_const_i(k->s, t, e->c.i);
	if (e->kind == EX_CAST && dtype_is_int(e->arg[0]->dtype) &&
		dtype_size(dtype_wide(e->arg[0]->dtype)) <= dtype_size(e->dtype) &&
		dtype_size(t) <= dtype_size(dtype_wide(e->arg[0]->dtype)))
		return wrapped(k, e->arg[0], t);
	if (e->kind == EX_SELECT)
		return ex_select(k->s, e->arg[0], wrapped(k, e->arg[1], t),
			wrapped(k, e->arg[2], t));
	if (!ex_is_call(e, "add") && !ex_is_call(e, "sub"))
		return ex_cast(k->s, t, e);
	for (int32_t i = 0; i < 2; i++)
		arg[i] = wrapped(k, e->arg[i], t);
	return ex_call(k->s, e->fn, arg);
}

/* e - offset, where what was subtracted before may be all of it. */
static const expr *less(loop_kernel *k, const expr *e, int64_t offset)
{
	const expr *arg[IR_MAX_ARGS] = {NULL};
	tn_dtype t = e->dtype;

	while ((ex_is_call(e, "add") || ex_is_call(e, "sub")) &&
		e->arg[1]->kind == EX_CONST) {
		offset += ex_is_call(e, "sub") ? e->arg[1]->c.i : -e->arg[1]->c.i;
		e = e->arg[0];
	}
	if (ir_wrap(t, offset) == 0)
		return e;
	arg[0] = e;
	arg[1] = ex_const_i(k->s, t, offset);
	return ex_call(k->s, ir_scalar_find("sub", 3), arg);
}

const expr *contract_narrow(
	loop_kernel *k, const expr *e, tn_dtype t, int64_t offset)
{
	between is, all;

	if (t == TN_BF16)
		return offset == 0 ? as_bf16(k, e) : NULL;
	if (!dtype_is_int(e->dtype) || !limits(t, &all) || !values_of(e, &is) ||
		!is_within((between){is.lo - offset, is.hi - offset}, all))
		return NULL;
	return less(k, wrapped(k, e, t), offset);
}

/* By how much the factor must be less to fit the dtype; false: it cannot. */
static bool offset_of(const expr *e, tn_dtype t, int64_t *offset)
{
	between is, all;

	*offset = 0;
	if (!dtype_is_int(t))
		return true;
	if (!limits(t, &all) || !values_of(e, &is))
		return false;
	if (!is_within(is, all))
		*offset = is.lo - all.lo;
	return is.hi - *offset <= all.hi;
}

/* ---- the choice ---- */

/* A way to multiply the factors, and how many instructions it has for a tile, for
 * so many terms. */
struct way {
	int32_t terms;
	tn_dtype t[2];
	int64_t offset[2], cost;
};

static void consider(const contract *c, const contract_product *p,
	const machine_dot *d, bool turned, struct way *best)
{
	const expr *f[2] = {p->x, p->y};
	struct way w = {.terms = d->terms, .t = {d->x, d->y}};
	int64_t vectors = 2, rows = contract_extent(c, p->i);
	int64_t most = (c->k->machine->vector_registers - 4) / vectors;

	if (turned)
		w.t[0] = d->y, w.t[1] = d->x;
	if (dtype_is_float(f[0]->dtype) != dtype_is_float(d->x))
		return;
	for (int32_t i = 0; i < 2; i++)
		if (!offset_of(f[i], w.t[i], &w.offset[i]))
			return;
	/* what x is more is multiplied by the sums of columns, which each tile adds
	 * up, too; sums of rows take one instruction for many terms */
	rows = rows < most ? rows : most;
	w.cost = rows * vectors + (w.offset[0] != 0 ? vectors : 0);
	if (best->terms == 0 || w.cost * best->terms < best->cost * w.terms)
		*best = w;
}

bool contract_guards_tiles(int32_t n, const ix_fact *need, loop_set sums)
{
	for (int32_t i = 0; i < n; i++)
		if ((loop_form_vars(need[i].f) & sums) != 0)
			return false;
	return true;
}

bool contract_adds_blocks(const contract *c, const contract_product *p)
{
	loop_set of = c->k->eqn[p->eqn].reduced & c->chain;
	int64_t whole = dtype_is_float(c->k->eqn[p->eqn].acc[0]) ? 2 : 4;

	if (c->k->machine->tiles.rows > 0)
		whole *= c->k->machine->tiles.rows;
	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((of & BIT(v)) != 0 && c->block[v] % whole != 0)
			return false;
	return of != 0 && (of & ~c->mixed) == 0;
}

/*
 * Do blocks of the sum begin at whole groups, and is all of it in each tile, or all of a
 * block of keys? Terms that a guard leaves out are multiplied by 0: in a block of the
 * sum, of which most are left out as a whole or not at all, they are few.
 */
static bool has_shape(const contract *c, const contract_product *p)
{
	loop_set sums = c->k->eqn[p->eqn].reduced;

	return c->number < 0 && !p->turned &&
	       (contract_adds_blocks(c, p) ||
		       ((sums & c->chain) == 0 && sums == BIT(p->s)) ||
		       ((sums & c->chain) == 0 &&
			       contract_guards_tiles(p->n_needs, p->need, sums)));
}

/* What tile registers take as it is: bytes with a sign, or without; NULL: neither. */
static const expr *as_bytes(loop_kernel *k, const expr *e, int32_t terms)
{
	const expr *x = NULL;

	if (terms == 4)
		x = contract_narrow(k, e, TN_I8, 0);
	return x == NULL && terms == 4 ? contract_narrow(k, e, TN_U8, 0) : x;
}

void contract_use_tiles(contract_product *p, bool tiled)
{
	bool bytes = tiled && p->by[1][0] != NULL && p->by[1][1] != NULL;

	p->tiled = tiled;
	p->x = p->by[bytes][0];
	p->y = p->by[bytes][1];
	for (int32_t i = 0; i < 2; i++)
		p->offset[i] = bytes ? 0 : p->less[i];
}

void contract_choose_dot(const contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	const machine *m = k->machine;
	struct way best = {0};
	const expr *x, *y;

	if (p->dot > 0 || m->dot[0].terms == 0 ||
		dtype_size(k->eqn[p->eqn].acc[0]) != dtype_size(WIDE))
		return;
	if (!has_shape(c, p)) {
		loop_decide(k, DECIDE_DOT_SHAPE, p->eqn, -1, 0, 0);
		return;
	}
	for (size_t i = 0; i < sizeof m->dot / sizeof *m->dot; i++)
		for (int32_t t = 0; t < 2 && m->dot[i].terms > 0; t++)
			consider(c, p, &m->dot[i], t != 0,
				&best);
	x = best.terms == 0 ? NULL
			    : contract_narrow(k, p->x, best.t[0], best.offset[0]);
	y = x == NULL ? NULL
		      : contract_narrow(k, p->y, best.t[1], best.offset[1]);
	if (y == NULL) {
		loop_decide(k, DECIDE_DOT_DTYPE, p->eqn, -1, 0, 0);
		return;
	}
	p->dot = best.terms;
	memcpy(p->less, best.offset, sizeof p->less);
	p->by[1][0] = as_bytes(k, p->x, p->dot);
	p->by[1][1] = as_bytes(k, p->y, p->dot);
	p->by[0][0] = x;
	p->by[0][1] = y;
	contract_use_tiles(p, false);
	loop_decide(k, DECIDE_DOT_TAKEN, p->eqn, -1, p->dot,
		(int64_t)dtype_size(x->dtype));
}

int32_t contract_dot_rows(const contract *c, const contract_product *p)
{
	int32_t left = c->k->machine->vector_registers - 4;

	if (p->tiled)
		return 2 * c->k->machine->tiles.rows;
	/* sums of columns are in vectors of their own */
	return (left - (p->offset[0] != 0 ? p->vectors : 0)) / p->vectors;
}
