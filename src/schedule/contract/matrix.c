/*
 * matrix.c: chooses the products that matrix instructions of the machine compute.
 *
 * Consumes a product whose sizes for a block of warps are chosen; sets its tile to
 * the rows and columns of instructions. The factor of its columns must be reads of
 * two bytes an element, or zeros, and so must that of its rows, or it is any
 * expression in f32 beside bf16: an f32 is the sum of three bf16, so three instructions
 * have its products. As 0 times infinity would be among them, such a tile is checked.
 * Factors that are rounded to tf32 are multiplied by instructions that round them.
 * Integers are multiplied as i8 or u8, if these have all of their values (dot.c): the
 * sums in 32 bits are exact.
 */
#include "schedule/contract/contract.h"

/* The dtype from which e, or all of e but zeros, is cast; TN_BOOL: there is none. */
static tn_dtype short_dtype(const expr *e)
{
	tn_dtype t;

	if (e->kind == EX_SELECT && ex_is_zero(e->arg[1]))
		return short_dtype(e->arg[2]);
	if (e->kind == EX_SELECT) {
		t = short_dtype(e->arg[1]);
		return ex_is_zero(e->arg[2]) || short_dtype(e->arg[2]) == t
			       ? t
			       : TN_BOOL;
	}
	return e->kind == EX_CAST ? e->arg[0]->dtype : TN_BOOL;
}

/* The dtype of two bytes that has all values of e; TN_BOOL: none is known. */
static tn_dtype short_of(const expr *e)
{
	tn_dtype t = short_dtype(e);

	return t == TN_BF16 || t == TN_F16 ? t : TN_BOOL;
}

/* The dtype of one byte that has all values of e; TN_BOOL: none has. */
static tn_dtype byte_of(loop_kernel *k, const expr *e)
{
	return contract_narrow(k, e, TN_I8, 0) != NULL	 ? TN_I8
	       : contract_narrow(k, e, TN_U8, 0) != NULL ? TN_U8
							 : TN_BOOL;
}

/* Are all of e but zeros rounded to tf32? */
static bool is_rounded(const expr *e)
{
	if (e->kind == EX_SELECT)
		return (ex_is_zero(e->arg[1]) || is_rounded(e->arg[1])) &&
		       (ex_is_zero(e->arg[2]) || is_rounded(e->arg[2]));
	return ex_is_call(e, "tf32") && e->dtype == TN_F32;
}

/* e, before it was rounded to tf32. */
static const expr *unrounded(loop_kernel *k, const expr *e)
{
	if (e->kind == EX_SELECT)
		return ex_select(k->s, e->arg[0], unrounded(k, e->arg[1]),
			unrounded(k, e->arg[2]));
	return ex_is_zero(e) ? e : e->arg[0];
}

const expr *contract_as_short(loop_kernel *k, const expr *e, tn_dtype t)
{
	if (t == TN_F32)
		return is_rounded(e) ? unrounded(k, e) : NULL;
	if (t == TN_I8 || t == TN_U8)
		return contract_narrow(k, e, t, 0);
	if (t == TN_BOOL || t != short_of(e))
		return NULL;
	return e->kind == EX_CAST
		       ? e->arg[0]
		       : ex_cast(k->s, t, contract_before_rounding(k, e, t));
}

int32_t contract_terms_at_once(const loop_kernel *k, tn_dtype t)
{
	return k->machine->matrix.row_bytes / (int32_t)dtype_size(t);
}

/* The greatest common divisor of the length of var and of its blocks. */
static int64_t common(const contract *c, int32_t var)
{
	int64_t a = c->k->var[var].extent, b = contract_extent(c, var);

	while (b != 0) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The largest multiple of m that divides n and is at most `most`. */
static int64_t dividing(int64_t n, int64_t m, int64_t most)
{
	int64_t d = most / m * m;

	while (d > m && n % d != 0)
		d -= m;
	return d;
}

/* Finds the dtypes that instructions take; false: there are none. */
bool contract_takes_matrix(loop_kernel *k, contract_product *p)
{
	tn_dtype acc = k->eqn[p->eqn].acc[0];

	p->wide_x = false;
	p->rounded |= is_rounded(p->x) && is_rounded(p->y);
	if (p->rounded) {
		p->taken[0] = p->taken[1] = TN_F32;
		return acc == TN_F32;
	}
	if (acc == TN_I32) {
		p->taken[0] = byte_of(k, p->x);
		p->taken[1] = byte_of(k, p->y);
		return p->taken[0] != TN_BOOL && p->taken[1] != TN_BOOL;
	}
	p->taken[0] = short_of(p->x);
	p->taken[1] = short_of(p->y);
	p->wide_x = p->taken[1] == TN_BF16 && p->taken[0] != TN_BF16;
	if (p->wide_x)
		p->taken[0] = acc;
	return acc == TN_F32 && p->taken[1] != TN_BOOL &&
	       (p->wide_x || p->taken[0] == p->taken[1]);
}

/* Do the columns of a result adjoin where instructions give their sums? */
static bool has_rows(const contract *c, const contract_product *p)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];

	return p->finish != NULL ||
	       (loop_param(c->k, e->e->out[0]) < 0 && c->number < 0) ||
	       contract_lies_apart(c, p) || contract_adjoins(c->k, e->at, p->j);
}

/* Is the sum not cut, or into equal pieces of whole instructions? */
static bool has_whole_pieces(const contract *c, const contract_product *p)
{
	int32_t terms = contract_terms_at_once(c->k, p->taken[1]);

	return c->number < 0 ||
	       (c->cut_size > 0 && c->cut_size % terms == 0 &&
		       c->k->var[p->s].extent % c->cut_size == 0);
}

static bool has_shape(const contract *c, const contract_product *p)
{
	return p->sums == BIT(p->s) && has_whole_pieces(c, p) && c->product.n == 1 &&
	       (p->finish == NULL || !p->inexact) && !p->begun;
}

/*
 * So many of a variable, at most: what divides its blocks if they are multiples of
 * m, so that all are alike, and is not much less; else the last instructions take a
 * part.
 */
static int64_t pieces_of(const contract *c, int32_t var, int64_t m, int64_t most)
{
	int64_t n = common(c, var), all = contract_extent(c, var);
	int64_t d = n % m == 0 ? dividing(n, m, most) : 0;

	if (d == all || 2 * d >= most)
		return d;
	all = (all + m - 1) / m * m;
	return all < most ? all : most / m * m;
}

/*
 * The columns of a warp's tile. Many read factors again less often; where so few
 * blocks of warps have some that units of the machine idle, each takes half.
 */
static int64_t most_columns(const loop_kernel *k, const contract_product *p)
{
	const machine *m = k->machine;
	const loop_eqn *e = &k->eqn[p->eqn];
	int64_t n = m->block.matrix_columns;
	double blocks = 1 / (double)(m->matrix.rows * m->block.warps * n);

	for (int32_t v = 0; v < k->n_vars; v++)
		if ((e->left & BIT(v)) != 0)
			blocks *= (double)k->var[v].extent;
	n = (2 * blocks * m->block.warps < m->threads ? n / 2 : n) >> k->halved;
	return n > m->block.least_columns ? n : m->block.least_columns;
}

void contract_use_matrix(loop_kernel *k, contract_product *p)
{
	p->matrix = true;
	if (!p->rounded || !is_rounded(p->x))
		return;
	p->x = unrounded(k, p->x);
	p->y = unrounded(k, p->y);
}

void contract_choose_matrix(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	const machine_matrix *m = &k->machine->matrix;
	int32_t terms;

	p->matrix = p->wide_x = false;
	if (m->rows == 0)
		return;
	if (!contract_takes_matrix(k, p)) {
		p->wide_x = false;
		loop_decide(k, DECIDE_MATRIX_DTYPE, p->eqn, -1, 0, 0);
		return;
	}
	if (!has_shape(c, p)) {
		p->wide_x = false;
		loop_decide(k, DECIDE_MATRIX_SHAPE, p->eqn, -1, 0, 0);
		return;
	}
	if (!has_rows(c, p)) {
		p->wide_x = false;
		loop_decide(k, DECIDE_MATRIX_ROWS, p->eqn, -1, 0, 0);
		return;
	}
	contract_use_matrix(k, p);
	p->tile = m->rows;
	p->lanes = m->columns;
	p->vectors = (int32_t)(pieces_of(c, p->j, m->columns,
				       most_columns(k, p)) /
			       m->columns);
	terms = contract_terms_at_once(k, p->taken[1]);
	p->sum_block = pieces_of(c, p->s, terms,
		k->machine->block.matrix_bytes / (int64_t)dtype_size(p->taken[1]));
	loop_decide(k, DECIDE_MATRIX_TAKEN, p->eqn, -1, m->rows, terms);
}

struct along {
	const loop_kernel *k;
	int32_t v;
	bool any, all; /* reads that walk v; do their elements adjoin along it? */
};

/* Are most of the first elements along v neighbours? Digits of v end some runs. */
static bool mostly_adjoins(const loop_kernel *k, const ix_form *f, int32_t v)
{
	int64_t *at = arena_array(k->a, int64_t, k->n_vars + 1);
	int64_t n = k->var[v].extent, last, steps = 0;

	if (ix_has_fun(f))
		return false;
	n = n < k->machine->lanes ? n : k->machine->lanes;
	for (int64_t i = 0; i < n; i++) {
		int64_t x;

		at[v] = i;
		x = ix_eval(f, at, NULL, NULL);
		steps += i > 0 && x == last + 1;
		last = x;
	}
	/* steps less other steps, at least half */
	return steps - (n - 1 - steps) >= n / 2;
}

static void on_read(void *arg, const expr *e)
{
	struct along *a = arg;

	if (e->kind != EX_READ || (loop_form_vars(e->form) & BIT(a->v)) == 0)
		return;
	a->any = true;
	a->all &= mostly_adjoins(a->k, e->form, a->v);
}

static bool adjoins(const loop_kernel *k, const expr *f, int32_t v)
{
	struct along a = {k, v, false, true};

	loop_walk(k->a, f, on_read, &a);
	return a.any && a.all;
}

static void on_made(void *arg, const expr *e)
{
	struct along *a = arg;

	a->any |= e->kind == EX_READ && loop_param(a->k, e->tensor) < 0;
}

/* Does it read what the kernel makes? */
static bool is_made(const loop_kernel *k, const expr *f)
{
	struct along a = {.k = k};

	loop_walk(k->a, f, on_made, &a);
	return a.any;
}

int32_t contract_lanes_of(const contract *c, const contract_product *p,
	const expr *f, int32_t last, int32_t other)
{
	bool may = p->matrix || c->k->machine->block.warps > 1;

	if (c->by_rows && is_made(c->k, f)) /* it comes from registers, which have rows */
		return last;
	return may && !adjoins(c->k, f, last) && adjoins(c->k, f, other) ? other : last;
}

int32_t contract_last_of(const contract *c, const contract_product *p,
	const expr *f, int32_t usual, int32_t other)
{
	if (p->matrix && dtype_is_int(p->taken[1]))
		return p->s; /* four of them are in a word */
	if (!p->matrix) /* lanes of a tile have columns */
		return usual;
	return contract_lanes_of(c, p, f, usual, other);
}
