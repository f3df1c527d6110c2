/*
 * matrix.c: chooses the products that matrix instructions of the machine compute.
 *
 * Consumes a product whose sizes for a block of warps are chosen; sets its tile to
 * the rows and columns of instructions. Its factors must be reads of two bytes an
 * element: then their copies hold what an instruction takes.
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

static bool has_dtypes(loop_kernel *k, const contract_product *p)
{
	tn_dtype t = read_dtype(k, p->x);

	return (t == TN_BF16 || t == TN_F16) && t == read_dtype(k, p->y) &&
	       k->eqn[p->eqn].acc[0] == TN_F32;
}

static bool has_shape(const contract *c, const contract_product *p)
{
	return p->sums == BIT(p->s) && c->number < 0 && c->product.n == 1 &&
	       !p->inexact && !p->begun;
}

/*
 * So many of a variable, at most: what divides its blocks if they are multiples of
 * m, so that all are alike; else the last instructions take a part.
 */
static int64_t pieces_of(const contract *c, int32_t var, int64_t m, int64_t most)
{
	int64_t n = common(c, var), all = contract_extent(c, var);

	if (n % m == 0)
		return dividing(n, m, most);
	all = (all + m - 1) / m * m;
	return all < most ? all : most / m * m;
}

void contract_choose_matrix(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	const machine_matrix *m = &k->machine->matrix;

	p->matrix = false;
	if (m->rows == 0)
		return;
	if (!has_dtypes(k, p)) {
		loop_decide(k, DECIDE_MATRIX_DTYPE, p->eqn, -1, 0, 0);
		return;
	}
	if (!has_shape(c, p)) {
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

static bool adjoins(const loop_kernel *k, const ix_form *f, int32_t v)
{
	int64_t s;

	return loop_stride(f, v, k->var[v].extent, &s) && s == 1;
}

int32_t contract_last_of(const contract *c, const contract_product *p,
	const expr *f, int32_t usual, int32_t other)
{
	const ix_form *at = p->matrix ? f->arg[0]->form : NULL;

	return at != NULL && !adjoins(c->k, at, usual) &&
			       adjoins(c->k, at, other)
		       ? other
		       : usual;
}
