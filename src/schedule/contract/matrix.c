/*
 * matrix.c: chooses the products that matrix instructions of the machine compute.
 *
 * Consumes a product whose sizes for a block of warps are chosen; sets its tile to
 * the rows and columns of instructions. The factor of its columns must be a read of
 * two bytes an element, and so must that of its rows, or it is any expression in f32
 * beside bf16: an f32 is the sum of three bf16, so three instructions have its
 * products. As 0 times infinity would be among them, such a tile is checked.
 */
#include "schedule/contract/contract.h"

/* The dtype of what the factor reads in memory; TN_BOOL: it does something else. */
static tn_dtype read_dtype(loop_kernel *k, const expr *e)
{
	if (e->kind == EX_CAST && e->arg[0]->kind == EX_READ &&
		contract_reads_memory(k, e->arg[0]))
		return e->arg[0]->dtype;
	return TN_BOOL;
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

static bool has_dtypes(loop_kernel *k, contract_product *p)
{
	tn_dtype t = read_dtype(k, p->y);

	p->wide_x = t == TN_BF16 && read_dtype(k, p->x) != t;
	return (t == TN_F16 || t == TN_BF16) &&
	       (p->wide_x || t == read_dtype(k, p->x)) &&
	       k->eqn[p->eqn].acc[0] == TN_F32;
}

static bool has_shape(const contract *c, const contract_product *p)
{
	return p->sums == BIT(p->s) && c->number < 0 && c->product.n == 1 &&
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

void contract_choose_matrix(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	const machine_matrix *m = &k->machine->matrix;

	p->matrix = p->wide_x = false;
	if (m->rows == 0)
		return;
	if (!has_dtypes(k, p)) {
		p->wide_x = false;
		loop_decide(k, DECIDE_MATRIX_DTYPE, p->eqn, -1, 0, 0);
		return;
	}
	if (!has_shape(c, p)) {
		p->wide_x = false;
		loop_decide(k, DECIDE_MATRIX_SHAPE, p->eqn, -1, 0, 0);
		return;
	}
	p->matrix = true;
	p->tile = m->rows;
	p->lanes = m->columns;
	p->vectors = (int32_t)(pieces_of(c, p->j, m->columns,
				       k->machine->block.matrix_columns) /
			       m->columns);
	p->sum_block = pieces_of(
		c, p->s, m->terms, k->machine->block.matrix_terms);
	loop_decide(k, DECIDE_MATRIX_TAKEN, p->eqn, -1, m->rows, m->terms);
}

struct along {
	const loop_kernel *k;
	int32_t v;
	bool any, all; /* reads that walk v; do their elements adjoin along it? */
};

static void on_read(void *arg, const expr *e)
{
	struct along *a = arg;
	int64_t s;

	if (e->kind != EX_READ || (loop_form_vars(e->form) & BIT(a->v)) == 0)
		return;
	a->any = true;
	a->all &= loop_stride(e->form, a->v, a->k->var[a->v].extent, &s) && s == 1;
}

static bool adjoins(const loop_kernel *k, const expr *f, int32_t v)
{
	struct along a = {k, v, false, true};

	loop_walk(k->a, f, on_read, &a);
	return a.any && a.all;
}

int32_t contract_last_of(const contract *c, const contract_product *p,
	const expr *f, int32_t usual, int32_t other)
{
	return p->matrix && !adjoins(c->k, f, usual) && adjoins(c->k, f, other)
		       ? other
		       : usual;
}
