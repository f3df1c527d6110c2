/*
 * common.c: what the files of contract/ ask of products, and how they build the
 * body of a block.
 */
#include "schedule/contract/contract.h"

int64_t contract_ceil(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

int64_t contract_filled(int64_t n, int64_t lanes)
{
	return 100 * n / (contract_ceil(n, lanes) * lanes);
}

bool contract_is_steady(
	const loop_kernel *k, const contract_product *p, const expr *f)
{
	return f->kind == EX_READ && !ix_has_fun(f->form) &&
	       f->dtype == k->eqn[p->eqn].acc[0] &&
	       loop_param(k, f->tensor) >= 0 &&
	       k->s->tensor.at[f->tensor].steady;
}

/* Does the factor have neighbours side by side along one of these variables? */
static bool adjoins_any(const loop_kernel *k, const expr *e, loop_set s)
{
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((s & BIT(v)) != 0 && contract_adjoins(k, e->form, v))
			return true;
	return false;
}

bool contract_is_kept(const loop_kernel *k, const expr *e, loop_set left)
{
	const sys_tensor *t;

	if (k->machine->block.warps > 1 || e->kind != EX_READ ||
		loop_param(k, e->tensor) < 0 || ix_has_fun(e->form) ||
		(!k->s->in_rounds && !adjoins_any(k, e, left)))
		return false;
	t = &k->s->tensor.at[e->tensor];
	return t->steady && e->dtype == t->dtype &&
	       t->numel <= k->machine->memory[MACHINE_L3].bytes /
				   (int64_t)dtype_size(t->dtype);
}

bool contract_is_long(const loop_kernel *k, const expr *e, loop_set left)
{
	const sys_tensor *t;

	if (k->machine->block.warps > 1 || e->kind != EX_READ ||
		loop_param(k, e->tensor) < 0 || ix_has_fun(e->form) ||
		!adjoins_any(k, e, left))
		return false;
	t = &k->s->tensor.at[e->tensor];
	return e->dtype == t->dtype &&
	       t->numel >= k->machine->memory[MACHINE_L3].bytes / 2 /
				   (int64_t)dtype_size(t->dtype);
}

int64_t contract_extent(const contract *c, int32_t var)
{
	int64_t n = c->k->var[var].extent, b = c->block[var];

	if (var == c->cut_sum)
		n = c->cut_size;
	return b > 0 && b < n ? b : n;
}

loop_node *contract_block(
	contract *c, int32_t var, int64_t size, loop_node *child)
{
	loop_node *b = loop_node_new(c->k->a, LOOP_BLOCK);

	b->var = var;
	b->size = size;
	if (child != NULL)
		loop_node_adopt(c->k->a, b, child);
	return b;
}

int32_t contract_product_of(const contract *c, int32_t eqn)
{
	for (int32_t i = 0; i < c->product.n; i++)
		if (c->product.at[i].eqn == eqn)
			return i;
	return -1;
}

void contract_put(contract *c, loop_node *body, loop_node *nest)
{
	loop_node_adopt(c->k->a, body, nest);
	*vec_push(c->k->a, &c->plain) = nest;
}

struct reads {
	const loop_kernel *k;
	/* something is computed in this kernel, or its index is data */
	bool inside;
};

static void on_read(void *arg, const expr *e)
{
	struct reads *r = arg;
	int32_t eqn, comp;

	r->inside |= e->form != NULL && ix_has_fun(e->form);
	if (e->kind == EX_READ)
		r->inside |= loop_param(r->k, e->tensor) < 0 ||
			     loop_maker(r->k, e->tensor, &eqn, &comp);
}

bool contract_reads_memory(loop_kernel *k, const expr *e)
{
	struct reads r = {k, false};

	loop_walk(k->a, e, on_read, &r);
	return !r.inside;
}

bool contract_adjoins(const loop_kernel *k, const ix_form *f, int32_t v)
{
	int64_t s;

	return ix_stride(f, v, k->var[v].extent, &s) && s == 1;
}

loop_node *contract_leaf(contract *c, loop_kind kind, int32_t eqn)
{
	loop_node *n = loop_node_new(c->k->a, kind);

	n->eqn = eqn;
	return n;
}

int32_t contract_tensor_of(const expr *f)
{
	return f->kind == EX_READ ? f->tensor : -1;
}

bool contract_lies_apart(const contract *c, const contract_product *p)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];
	int32_t t = e->e->out[0];

	return loop_param(c->k, t) >= 0 &&
	       (p->turned || p->apart || e->apart ||
		       c->k->s->tensor.at[t].dtype != e->acc[0]);
}

/* Registers: accumulators, a row of the panel, an element of the other factor. */
int64_t contract_most_rows(const loop_kernel *k)
{
	return (k->machine->vector_registers - 4) / 2;
}

bool contract_is_bare(const expr *e, tn_dtype acc)
{
	return e->kind == EX_READ && e->dtype == acc && !ix_has_fun(e->form);
}

int64_t contract_factor_bytes(const contract *c, const contract_product *p)
{
	return (int64_t)dtype_size(
		p->dot > 0 ? p->x->dtype : c->k->eqn[p->eqn].acc[0]);
}

int64_t contract_equal(int64_t n, int64_t most)
{
	for (int64_t d = most; d > 0 && d >= most / 2; d--)
		if (n % d == 0)
			return d;
	return contract_ceil(n, contract_ceil(n, most));
}

/* The bytes of y. */
int64_t contract_bytes_of_y(const contract *c, const contract_product *p)
{
	int64_t bytes = contract_factor_bytes(c, p);

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if (((p->columns | p->sums) & BIT(v)) != 0 &&
			!mul_ok(bytes, c->k->var[v].extent, &bytes))
			return INT64_MAX;
	return bytes;
}

bool contract_weights_fit(const contract *c, const contract_product *p)
{
	return contract_bytes_of_y(c, p) <= c->k->machine->memory[MACHINE_L2].bytes / 2;
}

bool contract_is_far(const contract *c, const contract_product *p)
{
	return contract_bytes_of_y(c, p) > 2 * c->k->machine->memory[MACHINE_L2].bytes;
}

int64_t contract_elements(const loop_kernel *k, loop_set s)
{
	int64_t n = 1;

	for (int32_t v = 0; v < k->n_vars; v++)
		if ((s & BIT(v)) != 0 && !mul_ok(n, k->var[v].extent, &n))
			return INT64_MAX;
	return n;
}

bool contract_walks_rows(loop_kernel *k, const contract_product *p, int32_t v)
{
	return (loop_expr_vars(k, p->x) & BIT(v)) != 0 &&
	       (loop_expr_vars(k, p->y) & BIT(v)) == 0 &&
	       (k->eqn[p->eqn].left & BIT(v)) != 0;
}

bool contract_is_above(const contract *c, const contract_product *p, int32_t v)
{
	loop_kernel *k = c->k;
	int64_t s;

	return (c->chain & BIT(v)) != 0 && v != p->i && v != p->j &&
	       contract_walks_rows(k, p, v) &&
	       ix_stride(k->eqn[p->eqn].at, v, k->var[v].extent, &s) &&
	       s == k->var[p->i].extent;
}

bool contract_meets_tiles(const contract *c, const contract_product *p)
{
	const loop_kernel *k = c->k;
	int64_t rows = k->var[p->i].extent;

	if (!p->turned || p->dot > 0 ||
		contract_elements(k, p->sums) == k->var[p->s].extent)
		return false;
	for (int32_t v = 0; v < k->n_vars; v++)
		if (contract_is_above(c, p, v) && !mul_ok(rows, k->var[v].extent, &rows))
			return true;
	return rows >= p->tile * k->machine->product.window_tiles;
}
