/*
 * verify_leaf.c: checks single statements and loops of a schedule.
 *
 *   tile    the factors are those of the equation, read from memory or from
 *           complete copies; the blocks around it are its rows and columns
 *   turn    it transposes a copy of a tensor whose elements are neighbours
 *           along the variable of the turn
 *   part    each chunk stores one partial result; a later phase combines them
 *   guard   statements change nothing in the iterations that a guard skips
 *   copies  a phase that runs only when a parameter changed copies it, and
 *           does nothing else
 *   scale   when a maximum grows, every sum of its weights is scaled
 */
#include "schedule/contract/contract.h"
#include "schedule/verify.h"

/* ---- tiles ---- */

/* The variables of the read that walk the copy, by those of the copy: the same, or but one
 * of the same extent; false: there are none. */
static bool find_walk(struct sv *v, const loop_eqn *copy, const ix_form *at,
	const ix_dom *d, const ix_form **with)
{
	const loop_kernel *k = v->k;

	for (int32_t a = -1; a < k->n_vars; a++)
		for (int32_t b = 0; b < (a < 0 ? 1 : k->n_vars); b++) {
			if (a >= 0 && ((copy->left & BIT(a)) == 0 ||
					      (copy->left & BIT(b)) != 0 ||
					      k->var[a].extent != k->var[b].extent))
				continue;
			memcpy(with, v->same, (size_t)k->n_vars * sizeof *with);
			if (a >= 0)
				with[a] = v->same[b];
			if (at == ix_subst(k->s->x, d, copy->at, k->n_vars,
					  k->dom.box.extent, with))
				return true;
		}
	return false;
}

/* Replaces a read of a copy by a read of the original. */
static const expr *as_copied(void *arg, const expr *read, const ix_dom *d)
{
	struct sv *v = arg;
	loop_kernel *k = v->k;
	const ix_form **with = arena_array(k->a, const ix_form *, k->n_vars + 1);
	int32_t eqn, comp;

	if (!loop_maker(k, read->tensor, &eqn, &comp) || !k->eqn[eqn].pack ||
		k->eqn[eqn].part || !find_walk(v, &k->eqn[eqn], read->form, d, with))
		return NULL;
	return ex_subst(k->s, d, k->eqn[eqn].body[0], k->n_vars,
		k->dom.box.extent, with, NULL, NULL);
}

static bool is_factor(struct sv *v, const loop_node *n, const expr *e,
	const expr *of)
{
	loop_kernel *k = v->k;
	tn_dtype acc = k->eqn[n->eqn].acc[0];
	contract_image m;
	const expr *x;

	x = ex_subst(k->s, &k->dom, e, k->n_vars, k->dom.box.extent, v->same,
		as_copied, v);
	of = ex_subst(k->s, &k->dom, of, k->n_vars, k->dom.box.extent, v->same,
		NULL, NULL);
	if (n->dot > 0)
		return x == contract_narrow(k, of, e->dtype,
				    n->offset[e == n->factor[1]]);
	if (n->matrix && (e->dtype != acc || n->factor[1]->dtype == TN_F32))
		return x == contract_as_short(k, of, e->dtype);
	if (e == n->factor[0] && n->n_clip > 0 && contract_find_image(of, &m) &&
		contract_all_clipped(n, &m))
		of = m.read;
	return e->dtype == acc &&
	       (x == of || (of->dtype != acc && x == ex_cast(k->s, acc, of)));
}

/* Each clip leaves out nothing but terms whose first factor, which is `of` in the
 * equation, is 0. */
static void check_clipped(struct sv *v, const loop_node *n, const expr *of)
{
	contract_image m;

	(void)contract_find_image(of, &m);
	for (int32_t i = 0; i < n->n_clip; i++)
		if (m.other || !contract_may_clip(v->k, n, &m, &n->clip[i]))
			verify_fail(v, n, "tile",
				"a clip of a tile must be a condition outside of which its first factor is 0, over one sum, with factor 1 or -1, and either loops around the tile or its rows, which it then has all of");
}

static void check_factors(struct sv *v, const loop_node *n)
{
	loop_kernel *k = v->k;
	const loop_eqn *e = &k->eqn[n->eqn];
	contract_terms t;
	bool same, first;

	if (!contract_is_product(k, e) || !contract_factors(k, e, &t))
		verify_fail(v, n, "tile", "a tile needs a sum of products, which %s is not",
			verify_eqn(v, n->eqn));
	first = is_factor(v, n, n->factor[0], t.f[0]) &&
		is_factor(v, n, n->factor[1], t.f[1]);
	same = first || (is_factor(v, n, n->factor[0], t.f[1]) &&
				is_factor(v, n, n->factor[1], t.f[0]));
	if (!same || n->finish != t.finish)
		verify_fail(v, n, "tile", "the factors of this tile differ from those of %s",
			verify_eqn(v, n->eqn));
	check_clipped(v, n, t.f[first ? 0 : 1]);
	if (n->within != NULL &&
		(n->within != t.within ||
			(!(n->matrix && n->held > 0 && !loop_has_parts(n)) &&
				!(n->tiled && n->checked))))
		verify_fail(v, n, "tile",
			"\"within\" is the condition under which terms of %s count, for a tile of matrix instructions whose sums are held, or one in tile registers that is checked",
			verify_eqn(v, n->eqn));
	if (n->checked != ((t.inexact || loop_has_parts(n)) &&
				  (n->within == NULL || n->tiled) &&
				  dtype_is_float(e->acc[0])))
		verify_fail(v, n, "tile", "%s",
			n->checked ? "this tile must not be \"checked\": it "
				     "treats infinities and NaN as its "
				     "equation does"
				   : "this tile must be \"checked\": infinities "
				     "and NaN could change its result");
	if (n->matrix && n->finish != NULL && t.inexact)
		verify_fail(v, n, "tile",
			"matrix instructions cannot compute these sums: they are scaled, and may have to be computed again");
	same = n->n_needs == t.n_needs;
	for (int32_t i = 0; same && i < t.n_needs; i++)
		same = n->need[i].f == t.need[i].f &&
		       n->need[i].lo == t.need[i].lo &&
		       n->need[i].hi == t.need[i].hi;
	if (!same)
		verify_fail(v, n, "guard",
			"the guards of this tile must be those of %s",
			verify_eqn(v, n->eqn));
}

static void check_block(struct sv *v, const loop_node *n, int32_t var,
	int64_t size, const char *what)
{
	const loop_node *b = loop_block_around(n, var);

	if (b == NULL || b->size != size)
		verify_fail(v, n, "tile",
			"the innermost block of %s around this tile must have the "
			"length of its %s, %lld",
			verify_var(v, var), what, (long long)size);
}

static bool adjoins(const loop_kernel *k, const ix_form *f, int32_t var)
{
	int64_t s;

	return ix_stride(f, var, k->var[var].extent, &s) && s == 1;
}

static void check_columns(struct sv *v, const loop_node *n)
{
	loop_kernel *k = v->k;
	const expr *y = n->factor[1], *x = n->factor[0];
	int64_t ext = k->var[n->var].extent;
	int32_t eqn, comp;

	if (y->kind != EX_READ || ix_has_fun(y->form) ||
		!(adjoins(k, y->form, n->var) ||
			(n->matrix && adjoins(k, y->form, n->sum[0]))))
		verify_fail(v, n, "tile",
			
			"the second factor must be a read whose elements are "
			"neighbours along the columns, %s (or, for matrix "
			"instructions, the sum)",
			verify_var(v, n->var));
	if (x->kind != EX_READ || ix_has_fun(x->form))
		verify_fail(v, n, "tile", 
			"the first factor must be a read at an index without data");
	if ((loop_form_vars(x->form) & BIT(n->var)) != 0 ||
		(n->row_var >= 0 &&
			(loop_form_vars(y->form) & BIT(n->row_var)) != 0))
		verify_fail(v, n, "tile",
			"the first factor must not depend on the columns, nor the "
			"second on the rows");
	if (!loop_maker(k, y->tensor, &eqn, &comp) && ext % n->lanes != 0)
		verify_fail(v, n, "tile",
			"%s has %lld elements in memory, which must be a multiple of the "
			"%d lanes",
			verify_var(v, n->var), (long long)ext, n->lanes);
}

/* Are all blocks of the loop around the tile multiples of m, or all of it? */
static void check_multiple(struct sv *v, const loop_node *n, int32_t var, int64_t m)
{
	int64_t ext = v->k->var[var].extent;
	bool ok = true;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		ok &= u->kind != LOOP_BLOCK || u->var != var || u->size % m == 0 ||
		      u->size >= ext;
	if (!ok)
		verify_fail(v, n, "tile",
			"blocks of %s must be multiples of %lld for the instructions of this tile",
			verify_var(v, var), (long long)m);
}

static bool has_matrix_factors(const loop_kernel *k, const loop_node *n)
{
	const expr *x = n->factor[0], *y = n->factor[1];
	tn_dtype acc = k->eqn[n->eqn].acc[0];
	bool terms = adjoins(k, x->form, n->sum[0]);

	if (acc == TN_I32)
		return dtype_size(x->dtype) == 1 && dtype_size(y->dtype) == 1 &&
		       terms && adjoins(k, y->form, n->sum[0]);
	return acc == TN_F32 && (!loop_has_parts(n) || y->dtype == TN_BF16) &&
	       (y->dtype != TN_F32 || x->dtype == TN_F32) &&
	       (terms || adjoins(k, x->form, n->row_var));
}

static void check_matrix(struct sv *v, const loop_node *n)
{
	const machine_matrix *m = &v->k->machine->matrix;

	if (m->rows == 0 || n->row_var < 0 || n->size != m->rows ||
		n->n_sums != 1 || !has_matrix_factors(v->k, n))
		verify_fail(v, n, "tile",
			"a tile of matrix instructions must have %d rows, neighbours along them or along its one sum in f32, and columns of bf16 or f16, or both factors in f32; or neighbours along its sum in i32, all of i8 or u8",
			m->rows);
	check_multiple(v, n, n->row_var, m->rows);
	check_multiple(v, n, n->var, (int64_t)n->lanes * n->unroll);
	check_multiple(v, n, n->sum[0],
		contract_terms_at_once(v->k, n->factor[1]->dtype));
}

/* Are all blocks of var one inside the other, and their number one at most? */
static bool is_cut_once(const struct sv *v, const loop_node *n, int32_t var)
{
	int32_t cuts = 0;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		cuts += u->kind != LOOP_FOR && u->var == var &&
			(u->kind == LOOP_SPAN ||
				u->size < v->k->var[var].extent);
	return cuts <= 1;
}

/* Neighbours that tile registers take of these factors; 0: they do not. */
static int32_t tiled_terms(const loop_node *n)
{
	tn_dtype x = n->factor[0]->dtype, y = n->factor[1]->dtype;

	if (x == TN_BF16 && y == TN_BF16)
		return 2;
	return dtype_is_int(x) && dtype_size(x) == 1 && dtype_is_int(y) &&
			       dtype_size(y) == 1 &&
			       (x != y || (n->offset[0] == 0 && n->offset[1] == 0))
		       ? 4
		       : 0;
}

static void check_tiled(struct sv *v, const loop_node *n)
{
	const machine_tiles *t = &v->k->machine->tiles;

	if (t->rows == 0 || tiled_terms(n) == 0 || n->size > 2 * t->rows || n->unroll > 2)
		verify_fail(v, n, "tile",
			"tile registers of %s have %d rows of sums, of bf16 or bytes, in two vectors; where there are none, a tile is not \"tiled\"",
			v->k->machine->name, 2 * t->rows);
}

/* The second factor is a copy in groups of the instruction's terms, along the sum;
 * those of the first adjoin. */
static void check_dot(struct sv *v, const loop_node *n)
{
	const loop_kernel *k = v->k;
	const expr *x = n->factor[0], *y = n->factor[1];
	int32_t eqn, comp, terms = 0, s = n->sum[0];
	int64_t step;

	for (size_t i = 0; i < sizeof k->machine->dot / sizeof *k->machine->dot;
		i++) {
		const machine_dot *d = &k->machine->dot[i];

		if ((d->x == x->dtype && d->y == y->dtype) ||
			(d->y == x->dtype && d->x == y->dtype))
			terms = d->terms;
	}
	if (n->tiled && terms == 0)
		terms = tiled_terms(n);
	if (n->dot != terms || n->matrix || n->row_var < 0 ||
		!is_cut_once(v, n, s))
		verify_fail(v, n, "tile",
			"on %s a tile of %s and %s adds up %d neighbours; it has rows, and its sum is cut once at most",
			k->machine->name, dtype_name(x->dtype),
			dtype_name(y->dtype), terms);
	if (n->tiled)
		check_tiled(v, n);
	if (!loop_maker(k, y->tensor, &eqn, &comp) ||
		k->eqn[eqn].group != n->dot || k->eqn[eqn].group_var != s)
		verify_fail(v, n, "tile",
			"the second factor must be a copy in groups of %d of %s",
			n->dot, verify_var(v, s));
	if (!ix_stride(x->form, s, k->var[s].extent, &step) || step != 1 ||
		(loop_maker(k, x->tensor, &eqn, &comp) &&
			(k->eqn[eqn].group != 1 || k->eqn[eqn].group_var != s)))
		verify_fail(v, n, "tile",
			"the first factor must be in memory or copied, and its elements neighbours along %s",
			verify_var(v, s));
	/* where instructions begin again, the bits of a sum of bf16 may change */
	check_multiple(v, n, s,
		n->tiled ? (int64_t)n->dot * v->k->machine->tiles.rows : n->dot);
}

/* A copy for dots is read by such tiles, and by nothing else. */
static void check_groups(struct sv *v, const loop_node *n)
{
	for (int32_t i = 0; i < v->k->n_eqns; i++) {
		const loop_eqn *e = &v->k->eqn[i];

		if (e->group > 0 && n->eqn != i &&
			(n->kind != LOOP_TILE || n->dot == 0 ||
				n->factor[e->group > 1]->kind != EX_READ ||
				n->factor[e->group > 1]->tensor !=
					e->e->out[0]) &&
			loop_leaf_reads(v->k, n, e->e->out[0]))
			verify_fail(v, n, "tile",
				"%s is in groups, which only a tile of %d neighbours reads",
				verify_eqn(v, i), e->group);
	}
}

/* Columns that lie in a register, or in tile registers, at a time are of one panel. */
static void check_panels(struct sv *v, const loop_node *n)
{
	for (int32_t i = 0; i < 2; i++) {
		int64_t width = (int64_t)n->lanes * (i == 1 && n->tiled ? n->unroll : 1);
		int32_t eqn, comp;

		if (n->factor[i]->kind == EX_READ &&
			loop_maker(v->k, n->factor[i]->tensor, &eqn, &comp) &&
			v->k->eqn[eqn].panel % width != 0)
			verify_fail(v, n, "tile",
				"%s has panels of %lld, of which this tile takes %lld at a time: it must be a multiple of that",
				verify_eqn(v, eqn), (long long)v->k->eqn[eqn].panel,
				(long long)width);
	}
}

static void check_tile(struct sv *v, const loop_node *n)
{
	loop_kernel *k = v->k;
	const loop_eqn *e = &k->eqn[n->eqn];
	loop_set sums = 0;
	int32_t lanes, most; /* vectors in registers */

	check_factors(v, n);
	for (int32_t i = 0; i < n->n_sums; i++) {
		if ((sums & BIT(n->sum[i])) != 0)
			verify_fail(v, n, "tile", "the tile names the sum over %s twice",
				verify_var(v, n->sum[i]));
		sums |= BIT(n->sum[i]);
	}
	if (sums != (e->reduced & ~(e->left & e->reduced)))
		verify_fail(v, n, "tile",
			"the sums of this tile must be those of %s",
			verify_eqn(v, n->eqn));
	lanes = machine_lanes(k->machine, (int32_t)dtype_size(e->acc[0]));
	most = 2 * k->machine->vector_registers;
	if (n->matrix) {
		check_matrix(v, n);
		most *= lanes / k->machine->matrix.columns;
		lanes = k->machine->matrix.columns;
	}
	if (n->lanes < 2 || n->lanes != lanes)
		verify_fail(v, n, "lanes",
			"%d lanes; on %s this tile must have %d", n->lanes,
			k->machine->name, lanes);
	if (n->size * n->unroll > most)
		verify_fail(v, n, "tile",
			"%lld rows of %d vectors; a tile may have %d vectors in all, "
			"as %s has %d registers",
			(long long)n->size, n->unroll, most, k->machine->name,
			k->machine->vector_registers);
	check_columns(v, n);
	check_panels(v, n);
	if (n->dot > 0)
		check_dot(v, n);
	else if (n->tiled)
		verify_fail(v, n, "tile", "only a tile of neighbours (\"dot\") is \"tiled\"");
	check_block(v, n, n->var, (int64_t)n->lanes * n->unroll, "columns");
	if (n->row_var >= 0)
		check_block(v, n, n->row_var, n->size, "rows");
}

/* ---- turns ---- */

/* A copy in groups: whole vectors of columns, in blocks that are cut once. */
static void check_group(struct sv *v, const loop_node *n)
{
	loop_kernel *k = v->k;
	const loop_eqn *e = &k->eqn[n->eqn];
	int64_t s;

	if (!e->pack || n->var != e->group_var ||
		n->row_var < 0 || n->row_var == n->var ||
		!ix_stride(e->at, n->row_var, k->var[n->row_var].extent, &s) ||
		s != 1 || !is_cut_once(v, n, n->var))
		verify_fail(v, n, "turn",
			"a copy in groups is turned along the variable of the groups, against its last subscript");
	if (n->lanes != machine_lanes(k->machine,
				(int32_t)dtype_size(e->acc[0]) * e->group))
		verify_fail(v, n, "lanes",
			"%d lanes of groups of %d; on %s they must have %d", n->lanes,
			e->group, k->machine->name,
			machine_lanes(k->machine,
				(int32_t)dtype_size(e->acc[0]) * e->group));
	check_multiple(v, n, n->var, e->group);
	check_multiple(v, n, n->row_var, n->lanes);
}

static void check_turn(struct sv *v, const loop_node *n)
{
	loop_kernel *k = v->k;
	const loop_eqn *e = &k->eqn[n->eqn];
	const expr *x = e->body[0];
	int64_t size = (int64_t)dtype_size(e->acc[0]), s;

	if (e->group > 1) {
		check_group(v, n);
		return;
	}
	if ((!e->stage && !e->pack) || x->kind != EX_READ ||
		ix_has_fun(x->form) ||
		(loop_param(k, x->tensor) < 0 && loop_kept(k, x->tensor) != n->eqn))
		verify_fail(v, n, "turn", 
			"only a copy of a tensor in memory, or of a sum, can be turned");
	if (loop_param(k, x->tensor) >= 0 &&
		(!ix_stride(x->form, n->var, k->var[n->var].extent, &s) || s != 1))
		verify_fail(v, n, "turn", 
			"the elements of %s must be neighbours in memory along %s",
			k->s->tensor.at[x->tensor].name, verify_var(v, n->var));
	if (n->row_var < 0 && (n->up == NULL || !loop_is_loop(n->up) ||
				      n->up->kind != LOOP_BLOCK ||
				      n->up->var == n->var))
		verify_fail(v, n, "turn",
			"the loop around this turn must be a block of the "
			"variable that it turns against");
	if ((size != 4 && size != 8) ||
		n->lanes != machine_lanes(k->machine, (int32_t)size))
		verify_fail(v, n, "lanes",
			"%d lanes of %d bytes; on %s a turn must have %d lanes, of 4 "
			"or 8 bytes",
			n->lanes, (int)size, k->machine->name,
			machine_lanes(k->machine, (int32_t)size));
}

/* ---- partial sums ---- */

static int32_t count(const struct sv *v, loop_kind kind, int32_t eqn)
{
	int32_t n = 0;

	for (int32_t i = 0; i < v->leaf.n; i++)
		n += v->leaf.at[i].n->kind == kind && v->leaf.at[i].n->eqn == eqn;
	return n;
}

static const struct sv_leaf *leaf_of(
	const struct sv *v, loop_kind kind, int32_t eqn)
{
	for (int32_t i = 0; i < v->leaf.n; i++)
		if (v->leaf.at[i].n->kind == kind && v->leaf.at[i].n->eqn == eqn)
			return &v->leaf.at[i];
	return NULL;
}

static void check_part(struct sv *v, const struct sv_leaf *l)
{
	const loop_eqn *e = &v->k->eqn[l->n->eqn];
	const struct sv_leaf *sum = leaf_of(v, LOOP_STMT, l->n->eqn);
	int32_t cut = 0;

	if (count(v, LOOP_PART, l->n->eqn) != 1 ||
		count(v, LOOP_JOIN, l->n->eqn) != 1 ||
		leaf_of(v, LOOP_JOIN, l->n->eqn)->phase <= l->phase)
		verify_fail(v, l->n, "part",
			"%s needs one \"part\" and, in a later phase, one \"combine\"",
			verify_eqn(v, l->n->eqn));
	for (const loop_node *u = l->n->up; u != NULL; u = u->up)
		if ((e->reduced & BIT(u->var)) != 0) {
			cut++;
			if (u->kind != LOOP_BLOCK || !u->parallel ||
				sum == NULL || sum->phase != l->phase ||
				sum->n->order > l->n->order ||
				verify_common(sum->n, l->n) == NULL)
				cut = 2;
		}
	if (cut != 1)
		verify_fail(v, l->n, "part",
			"a \"part\" must be after the sum %s, inside exactly one "
			"parallel block of that sum",
			verify_eqn(v, l->n->eqn));
}

static bool makes_memory(const loop_kernel *k, const loop_eqn *e)
{
	for (int32_t i = 0; i < e->e->n_out; i++)
		if (loop_param(k, e->e->out[i]) >= 0)
			return true;
	return false;
}

void verify_leaf(struct sv *v, const struct sv_leaf *l)
{
	int32_t other = l->n->kind == LOOP_JOIN ? LOOP_PART : LOOP_JOIN;

	check_groups(v, l->n);
	switch (l->n->kind) {
	case LOOP_TILE:
		check_tile(v, l->n);
		break;
	case LOOP_STAGE:
		check_turn(v, l->n);
		break;
	case LOOP_PART:
		check_part(v, l);
		break;
	case LOOP_JOIN:
		if (count(v, (loop_kind)other, l->n->eqn) != 1)
			verify_fail(v, l->n, "part",
				"a \"combine\" of %s needs one \"part\" of it before",
				verify_eqn(v, l->n->eqn));
		break;
	case LOOP_DONE:
		if (v->k->eqn[l->n->eqn].e->monoid == IR_SET ||
			!makes_memory(v->k, &v->k->eqn[l->n->eqn]))
			verify_fail(v, l->n, "done",
				"%s has no accumulator that \"done\" could store",
				verify_eqn(v, l->n->eqn));
		break;
	case LOOP_INIT:
		if (v->k->eqn[l->n->eqn].e->monoid == IR_SET &&
			!v->k->eqn[l->n->eqn].push)
			verify_fail(v, l->n, "start", 
				"%s is not a sum: it needs no init",
				verify_eqn(v, l->n->eqn));
		break;
	case LOOP_STMT:
	case LOOP_SCALE:
	case LOOP_FOR:
	case LOOP_BLOCK:
	case LOOP_SPAN:
		break;
	}
}

/* ---- guards ---- */

static bool is_fact(const ix_fact *a, const ix_fact *b)
{
	return a->f == b->f && a->lo == b->lo && a->hi == b->hi;
}

/* Do all tiles that read the copies below n have the guard f? */
static bool guards_copies(struct sv *v, const loop_node *n, const ix_fact *f)
{
	if (n->kind == LOOP_STMT || n->kind == LOOP_STAGE) {
		int32_t made = v->k->eqn[n->eqn].e->out[0];
		bool read = false;

		if (!v->k->eqn[n->eqn].pack || v->k->eqn[n->eqn].part)
			return false;
		for (int32_t i = 0; i < v->leaf.n; i++) {
			const loop_node *t = v->leaf.at[i].n;
			bool has = false;

			if (!loop_leaf_reads(v->k, t, made))
				continue;
			read = true;
			for (int32_t j = 0; t->kind == LOOP_TILE && j < t->n_needs;
				j++)
				has |= is_fact(&t->need[j], f);
			if (!has)
				return false;
		}
		return read;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		if (!guards_copies(v, n->child[i], f))
			return false;
	return n->n_child > 0;
}

static void check_clips(struct sv *v, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_clip && n->kind != LOOP_TILE; i++)
		if (!loop_may_clip(v->k, n, &n->clip[i]))
			verify_fail(v, n, "guard",
				"statements in this loop change elements outside "
				"this clip of %s",
				verify_var(v, n->var));
}

static void check_needs(struct sv *v, const loop_node *n)
{
	ix_fact f;
	bool fills = false;

	check_clips(v, n);
	if (n->kind == LOOP_BLOCK && n->n_needs > 0) {
		if (n->n_needs != 1 || n->near || n->fills ||
			!loop_rows_need(v->k, n, &f) || !is_fact(&f, n->need))
			verify_fail(v, n, "guard",
				"statements in this block change elements outside this guard, or have none in common");
	} else if (n->kind != LOOP_TILE && n->near) {
		if (n->n_needs != 1 || !loop_need_of(v->k, n, &f, &fills) ||
			!is_fact(&f, n->need) || fills != n->fills)
			verify_fail(v, n, "guard",
				"statements in this loop change elements outside "
				"this guard");
	} else if (n->kind != LOOP_TILE) {
		if (n->fills)
			verify_fail(v, n, "guard", 
				"\"fills\" is allowed after \"near\" only");
		for (int32_t i = 0; i < n->n_needs; i++)
			if (!guards_copies(v, n, &n->need[i]))
				verify_fail(v, n, "guard",
					"elements outside this guard are not copied, but are read");
	}
	for (int32_t i = 0; i < n->n_child; i++)
		check_needs(v, n->child[i]);
}

void verify_guards(struct sv *v)
{
	for (int32_t p = 0; p < v->k->n_phases; p++)
		for (int32_t i = 0; i < v->k->phase[p].n_roots; i++)
			check_needs(v, v->k->phase[p].root[i]);
}

/* ---- copies and stages ---- */

static void check_copies(struct sv *v, int32_t phase)
{
	loop_kernel *k = v->k;
	int32_t of = k->param[k->phase[phase].copies - 1];

	for (int32_t i = 0; i < v->leaf.n; i++) {
		const loop_node *n = v->leaf.at[i].n;
		const loop_eqn *e = &k->eqn[n->eqn];

		if (v->leaf.at[i].phase != phase)
			continue;
		if ((n->kind != LOOP_STMT && n->kind != LOOP_STAGE) || !e->pack || e->part ||
			e->body[0]->kind != EX_READ || e->body[0]->tensor != of ||
			ix_has_fun(e->body[0]->form))
			verify_fail(v, n, "copies",
				"a phase that copies %s must do nothing else",
				k->s->tensor.at[of].name);
	}
}

/* Is r in another span than the copies of l, from which it reads nothing: its own
 * element is copied before it in its own span? */
static bool reads_own_span(
	const struct sv *v, const struct sv_leaf *l, const struct sv_leaf *r)
{
	loop_kernel *k = v->k;
	const loop_eqn *e = &k->eqn[l->n->eqn];
	int32_t var = verify_span_var(l->n, r->n);
	bool own = false;

	if (var < 0 || !loop_leaf_reads_at(k, r->n, e->e->out[0], e->at))
		return false;
	for (int32_t i = 0; i < v->leaf.n; i++)
		own |= v->leaf.at[i].n->eqn == l->n->eqn &&
			v->leaf.at[i].n->order < r->n->order &&
			verify_span_var(v->leaf.at[i].n, r->n) < 0;
	return own;
}

/* Readers of a stage: after it, in its block, and at the same element. */
static void check_keep(struct sv *v, const struct sv_leaf *l)
{
	loop_kernel *k = v->k;
	const loop_eqn *e = &k->eqn[l->n->eqn];
	const loop_node *block = l->n->up;
	bool sum = loop_kept(k, e->e->out[0]) == l->n->eqn;

	if (sum && l->n->kind != LOOP_STAGE)
		verify_fail(v, l->n, "turn", "a copy of a value that is in no memory must be turned");
	while (block != NULL && (block->kind != LOOP_BLOCK ||
					(e->left & BIT(block->var)) == 0))
		block = block->up;
	for (int32_t i = 0; i < v->leaf.n; i++) {
		const struct sv_leaf *r = &v->leaf.at[i];
		const loop_node *both = verify_common(l->n, r->n);
		bool late;

		if (r->n->eqn == l->n->eqn ||
			!loop_leaf_reads(k, r->n, e->e->out[0]) ||
			reads_own_span(v, l, r))
			continue;
		late = both != NULL && r->n->order < l->n->order;
		/* there is no memory to read it from */
		if (sum)
			late |= block == NULL || !loop_is_below(r->n, block);
		if (l->n->kind == LOOP_STMT)
			late |= block == NULL || !loop_is_below(r->n, block) ||
				(both != block &&
					!loop_leaf_reads_at(k, r->n,
						e->e->out[0], e->at));
		if (late)
			verify_fail(v, l->n, "order",
				"%s reads %s outside the block that copies it, or before",
				verify_eqn(v, r->n->eqn),
				k->s->tensor.at[e->e->out[0]].name);
	}
}

void verify_copies(struct sv *v)
{
	for (int32_t p = 0; p < v->k->n_phases; p++)
		if (v->k->phase[p].copies > 0)
			check_copies(v, p);
	for (int32_t i = 0; i < v->leaf.n; i++)
		if (v->k->eqn[v->leaf.at[i].n->eqn].stage)
			check_keep(v, &v->leaf.at[i]);
}

/* ---- scaled sums ---- */

static int32_t row_called(const loop_kernel *k, const char *label)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].pack && !k->eqn[i].part &&
			strcmp(loop_label(&k->eqn[i]), label) == 0)
			return i;
	return -1;
}

/* Are all terms of the sum added behind its scale? */
static bool adds_behind(const struct sv *v, const loop_node *scale)
{
	for (int32_t i = 0; i < v->leaf.n; i++) {
		const loop_node *n = v->leaf.at[i].n;

		if (n->eqn == scale->eqn && n->order < scale->order &&
			(n->kind == LOOP_STMT || n->kind == LOOP_TILE))
			return false;
	}
	return true;
}

void verify_online(struct sv *v)
{
	loop_kernel *k = v->k;
	contract c = {.k = k, .cut_sum = -1, .number = -1};
	int32_t was = row_called(k, "was"), by = row_called(k, "rescale");

	if (!contract_online_find(&c) || was < 0 || by < 0 ||
		k->eqn[was].body[0] != contract_online_was(&c) ||
		k->eqn[by].body[0] != contract_online_factor(&c, was))
		verify_fail(v, NULL, "scale",
			"\"was\" must be the maximum before this step, and "
			"\"rescale\" exp(was - maximum)");
	v->keys = BIT(c.keys);
	v->was = was;
	v->max = c.rows.max;
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const struct sv_leaf *max = leaf_of(v, LOOP_STMT, c.rows.max);
		const struct sv_leaf *s = leaf_of(v, LOOP_SCALE, i);
		const struct sv_leaf *first = leaf_of(v, LOOP_STMT, was);
		bool sum = i < was && c.rows.kind[i] == EQN_ROW_SUM;

		if (sum != (s != NULL) || (sum && count(v, LOOP_SCALE, i) != 1))
			verify_fail(v, s == NULL ? NULL : s->n, "scale",
				"each sum of the row, and nothing else, is scaled once: %s",
				verify_eqn(v, i));
		if (!sum)
			continue;
		if (s->n->finish != contract_online_scaled(&c, was, by, i))
			verify_fail(v, s->n, "scale",
				"%s must be scaled by \"rescale\"",
				verify_eqn(v, i));
		if (max == NULL || first == NULL ||
			first->n->order > max->n->order ||
			max->n->order > s->n->order || !adds_behind(v, s->n))
			verify_fail(v, s->n, "scale",
				"the order must be: was, the maximum, scale, terms of the sum");
	}
}
