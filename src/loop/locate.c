/*
 * locate.c: the locations of values that are not, or not yet, in memory.
 *
 * Consumes the trees of all phases. For every value that one statement computes
 * and another reads, and for accumulators, it finds the scope (the innermost
 * loop around all these statements) and the subscripts: the variables of the
 * value that are not walked at or above the scope, each with the extent of its
 * innermost block. A value without subscripts is in a register, and one whose
 * subscripts are all walked by unrolled loops, in lanes, is in several. Buffers
 * follow from the tree, so every legal change of the tree is legal for them.
 *
 *   for i { init s; for j { t; acc s } for j { o } }
 *     t, read for o: scope i, subscript j;   s: scope i, register
 *
 * Sums that a tile holds are in registers of the warps, whatever reads them.
 *
 * Values in memory that are reduced: if the accumulator is a register, or has
 * another dtype, a DONE node after the reduction stores it; else the memory is
 * the accumulator.
 */
#include "loop/tree.h"

enum { LINE = 64 }; /* buffers begin at multiples of so many bytes */

struct place {
	loop_kernel *k;
	int32_t eqn, comp; /* the value */
	int32_t tensor;
	int32_t phase, n_phases; /* of the leaves that were found so far */
	bool any;
	const loop_node *scope;
	bool reads; /* scratch of read_visit */
	bool skip_readers;
	const uint64_t *filter; /* by equation: filter_of */
	/* 1 + the tile whose registers all loops around these leaves walk; 0: some do not */
	int32_t held;
	loop_set rolled; /* variables that a loop walks which is not unrolled */
};

/* A bit for each tensor, shared by many. */
static uint64_t bit_of(int32_t tensor)
{
	return (uint64_t)1 << ((uint32_t)tensor % 64);
}

static void filter_form(uint64_t *bits, const ix_form *f)
{
	for (int32_t i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN)
			*bits |= bit_of((int32_t)t->fun);
		if (t->kind != IX_DIGIT)
			filter_form(bits, t->f);
	}
}

static void filter_visit(void *arg, const expr *e)
{
	uint64_t *bits = arg;

	if (e->kind == EX_READ)
		*bits |= bit_of(e->tensor);
	filter_form(bits, e->form);
}

/* The bits of all tensors that initial values and statements of e read. */
static uint64_t filter_of(loop_kernel *k, const loop_eqn *e)
{
	uint64_t bits = 0;

	for (int32_t i = 0; i < e->e->n_out; i++) {
		if (e->init[i] != NULL)
			loop_walk(k->a, e->init[i], filter_visit, &bits);
		if (e->body[i] != NULL)
			loop_walk(k->a, e->body[i], filter_visit, &bits);
	}
	if (e->push)
		filter_form(&bits, e->at);
	return bits;
}

static void read_visit(void *arg, const expr *e)
{
	struct place *p = arg;

	if (e->kind == EX_READ && e->tensor == p->tensor)
		p->reads = true;
}

/* data indices: tensors inside forms */
static void form_reads(struct place *p, const ix_form *f)
{
	int32_t i;

	for (i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN && t->fun == p->tensor)
			p->reads = true;
		if (t->kind != IX_DIGIT)
			form_reads(p, t->f);
	}
}

static void any_visit(void *arg, const expr *e)
{
	read_visit(arg, e);
	form_reads(arg, e->form);
}

static bool touches(struct place *p, const loop_node *n)
{
	const loop_eqn *e = &p->k->eqn[n->eqn];
	int32_t i;

	if (n->kind == LOOP_JOIN)
		return false;
	if (n->eqn == p->eqn)
		return true;
	if (e->tail && !p->k->eqn[p->eqn].tail) /* the tail reads memory */
		return false;
	if (n->kind == LOOP_DONE || n->kind == LOOP_PART || p->skip_readers)
		return false;
	p->reads = false;
	if (n->kind == LOOP_TILE) {
		loop_walk(p->k->a, n->factor[0], any_visit, p);
		loop_walk(p->k->a, n->factor[1], any_visit, p);
		if (n->finish != NULL)
			loop_walk(p->k->a, n->finish, any_visit, p);
		if (n->checked) /* terms that are added again are read from the originals */
			loop_walk(p->k->a, e->body[0], any_visit, p);
		return p->reads;
	}
	if (n->kind == LOOP_SCALE) {
		loop_walk(p->k->a, n->finish, any_visit, p);
		return p->reads;
	}
	if ((p->filter[n->eqn] & bit_of(p->tensor)) == 0)
		return false;
	for (i = 0; i < e->e->n_out && !p->reads; i++) {
		const expr *x = n->kind == LOOP_INIT ? e->init[i] : e->body[i];

		if (x != NULL)
			loop_walk(p->k->a, x, any_visit, p);
	}
	if (e->push)
		form_reads(p, e->at);
	return p->reads;
}

struct leaf_reads {
	int32_t tensor;
	const ix_form *at; /* NULL: any element */
	/* or: elements that are `step` apart along var, which has so many; -1 */
	int32_t var;
	int64_t extent, step;
	bool reads, elsewhere;
};

static bool is_elsewhere(const struct leaf_reads *r, const ix_form *f)
{
	int64_t s;

	if (r->var < 0)
		return f != r->at;
	return !ix_stride(f, r->var, r->extent, &s) || s != r->step;
}

static void on_leaf_read(void *arg, const expr *e)
{
	struct leaf_reads *r = arg;
	struct place p = {.tensor = r->tensor};

	form_reads(&p, e->form);
	if (e->kind == EX_READ && e->tensor == r->tensor) {
		p.reads = true;
		r->elsewhere |= is_elsewhere(r, e->form);
	} else {
		r->elsewhere |= p.reads;
	}
	r->reads |= p.reads;
}

static void walk_leaf(loop_kernel *k, const loop_node *n, struct leaf_reads *r)
{
	const loop_eqn *e = &k->eqn[n->eqn];
	bool tile = n->kind == LOOP_TILE;
	struct place p = {.tensor = r->tensor};

	for (int32_t i = 0; i < 2 && tile; i++)
		loop_walk(k->a, n->factor[i], on_leaf_read, r);
	if (n->finish != NULL)
		loop_walk(k->a, n->finish, on_leaf_read, r);
	for (int32_t i = 0; i < e->e->n_out; i++) {
		const expr *x = n->kind == LOOP_INIT ? e->init[i] : e->body[i];

		if (x != NULL && (n->kind == LOOP_INIT || n->kind == LOOP_STMT ||
					 n->kind == LOOP_STAGE ||
					 (tile && n->checked)))
			loop_walk(k->a, x, on_leaf_read, r);
	}
	if (e->push && n->kind == LOOP_STMT)
		form_reads(&p, e->at);
	r->reads |= p.reads;
	r->elsewhere |= p.reads;
}

bool loop_leaf_reads(loop_kernel *k, const loop_node *n, int32_t tensor)
{
	struct leaf_reads r = {.tensor = tensor, .var = -1};

	walk_leaf(k, n, &r);
	return r.reads;
}

bool loop_leaf_reads_at(
	loop_kernel *k, const loop_node *n, int32_t tensor, const ix_form *at)
{
	struct leaf_reads r = {.tensor = tensor, .at = at, .var = -1};

	walk_leaf(k, n, &r);
	return !r.elsewhere;
}

bool loop_leaf_reads_along(loop_kernel *k, const loop_node *n, int32_t tensor,
	int32_t var, int64_t step)
{
	struct leaf_reads r = {.tensor = tensor,
		.var = var,
		.extent = k->var[var].extent,
		.step = step};

	walk_leaf(k, n, &r);
	return !r.elsewhere;
}

static int32_t depth(const loop_node *n)
{
	int32_t d = 0;

	for (; n != NULL; n = n->up)
		d++;
	return d;
}

static const loop_node *common(const loop_node *a, const loop_node *b)
{
	int32_t i = depth(a), j = depth(b);

	while (a != b) {
		if (i >= j)
			a = a->up, i--;
		else
			b = b->up, j--;
	}
	return a;
}

/* Do two loops walk registers of warps that have the same elements? */
static bool walks_alike(const loop_kernel *k, int32_t a, int32_t b)
{
	const loop_node *s, *t;

	if (a == b || a == 0 || b == 0)
		return a == b;
	s = loop_tile_of(k, a - 1);
	t = loop_tile_of(k, b - 1);
	return s != NULL && t != NULL && loop_same_sums(s, t);
}

static void gather(struct place *p, const loop_node *n, int32_t phase)
{
	int32_t i;

	if (!loop_is_loop(n) && touches(p, n)) {
		if (!p->any || p->phase != phase)
			p->n_phases++;
		p->scope = !p->any ? loop_first(n->up)
			   : p->phase == phase
				   ? common(p->scope, loop_first(n->up))
				   : NULL;
		int32_t held = n->up != NULL ? n->up->held : 0;

		p->held = !p->any || walks_alike(p->k, p->held, held) ? held : 0;
		for (const loop_node *u = n->up; u != NULL; u = u->up)
			if (u->kind == LOOP_TILE || u->kind == LOOP_FOR)
				p->rolled |= loop_is_written_out(p->k, u) ? 0 : BIT(u->var);
		p->phase = phase;
		p->any = true;
	}
	for (i = 0; i < n->n_child; i++)
		gather(p, n->child[i], phase);
}

/* The state of a scan is needed after an iteration of its loop. */
static const loop_node *outside_scan(const loop_node *scope, int32_t var)
{
	const loop_node *n, *out = scope;

	for (n = scope; n != NULL; n = n->up)
		if (n->var == var)
			out = n->up;
	return out;
}

/* An array in loops that are dealt to warps is that of the block. */
static const loop_node *outside_warps(const loop_node *scope)
{
	const loop_node *out = scope;

	for (const loop_node *n = scope; n != NULL; n = n->up)
		if (n->kind == LOOP_BLOCK && n->by_warp)
			out = n->up;
	return out;
}

/* The loop in which a tile of squares is copied, or NULL. */
static const loop_node *around_squares(const loop_node *n, int32_t eqn)
{
	const loop_node *found = NULL;

	if (n->kind == LOOP_STAGE && n->eqn == eqn)
		return loop_first(n->up);
	for (int32_t i = 0; i < n->n_child && found == NULL; i++)
		found = around_squares(n->child[i], eqn);
	return found;
}

/* Other statements may read the same input, but not from a tile of squares. */
static void only_tile(struct place *p)
{
	for (int32_t i = 0; i < p->k->n_phases; i++)
		for (int32_t j = 0; j < p->k->phase[i].n_roots; j++) {
			const loop_node *up = around_squares(
				p->k->phase[i].root[j], p->eqn);

			if (up != NULL) {
				p->scope = up;
				p->phase = i;
				p->n_phases = 1;
				return;
			}
		}
}

static struct place find(loop_kernel *k, int32_t eqn, int32_t comp,
	bool skip_readers, const uint64_t *filter)
{
	struct place p = {.k = k,
		.eqn = eqn,
		.comp = comp,
		.tensor = k->eqn[eqn].e->out[comp],
		.skip_readers = skip_readers,
		.filter = filter};
	int32_t i, j;

	for (i = 0; i < k->n_phases; i++)
		for (j = 0; j < k->phase[i].n_roots; j++)
			gather(&p, k->phase[i].root[j], i);
	if (k->eqn[eqn].stage)
		only_tile(&p);
	if (k->eqn[eqn].scan_var >= 0)
		p.scope = outside_scan(p.scope, k->eqn[eqn].scan_var);
	return p;
}

static bool leaf_is(const loop_node *n, loop_kind kind, int32_t eqn)
{
	int32_t i;

	if (n->kind == kind && n->eqn == eqn)
		return true;
	for (i = 0; i < n->n_child; i++)
		if (leaf_is(n->child[i], kind, eqn))
			return true;
	return false;
}

static void insert(
	arena *a, loop_node ***list, int32_t *n, int32_t at, loop_node *what)
{
	loop_node **out = arena_array(a, loop_node *, *n + 1);

	memcpy(out, *list, (size_t)at * sizeof *out);
	out[at] = what;
	memcpy(out + at + 1, *list + at, (size_t)(*n - at) * sizeof *out);
	*list = out;
	(*n)++;
}

/* How often the loop over var is unrolled in which a statement below n stands. */
static int32_t unroll_of(const loop_node *n, int32_t var)
{
	int32_t most = n->kind == LOOP_FOR && n->var == var && n->lanes <= 1 ? n->unroll : 0;

	for (int32_t i = 0; i < n->n_child && most == 0; i++)
		most = unroll_of(n->child[i], var);
	return most;
}

/*
 * Adds a DONE after the last STMT of eqn, in the innermost list of nodes that has
 * both INIT and STMT, inside loops over the variables that are not walked there. In
 * lanes they are written out as those of the STMT are.
 */
static bool add_done(loop_kernel *k, loop_node ***list, int32_t *n,
	loop_set open, bool lanes, int32_t eqn)
{
	loop_node *done, *top;
	int32_t i, last = -1, first = -1;
	loop_set todo;

	for (i = 0; i < *n; i++) {
		loop_node *c = (*list)[i];
		bool init = leaf_is(c, LOOP_INIT, eqn);
		bool stmt = leaf_is(c, LOOP_STMT, eqn);

		if (init && stmt && loop_is_loop(c)) {
			if (add_done(k, &c->child, &c->n_child,
				    c->kind == LOOP_FOR ? open | BIT(c->var)
							: open,
				    lanes || c->lanes > 1, eqn))
				first = last = -2; /* it was added below */
			continue;
		}
		if (init && first == -1)
			first = i;
		if (stmt && last != -2)
			last = i;
	}
	if (last == -2)
		return true;
	if (first < 0 || last < 0)
		return false;
	done = top = loop_node_new(k->a, LOOP_DONE);
	done->eqn = eqn;
	todo = loop_form_vars(k->eqn[eqn].start_at) & ~open;
	for (i = k->n_vars - 1; i >= 0; i--)
		if ((todo & BIT(i)) != 0) {
			top = loop_node_for(k->a, i, top);
			top->unroll = lanes ? unroll_of((*list)[last], i) : 0;
		}
	insert(k->a, list, n, last + 1, top);
	return true;
}

static int32_t lanes_at(const loop_node *n)
{
	for (; n != NULL; n = n->up)
		if (n->kind == LOOP_FOR && n->lanes > 1)
			return n->lanes;
	return 1;
}

/* In how many stages is a copy made? */
static int32_t stages_of(const loop_kernel *k, const loop_buf *b)
{
	const expr *x = k->eqn[b->eqn].body[0];
	int32_t by, comp;

	if (x->kind != EX_READ || loop_maker(k, x->tensor, &by, &comp))
		return 1; /* only what lies in memory before is copied ahead */
	for (const loop_node *n = b->scope; n != NULL; n = n->up)
		if (n->kind == LOOP_BLOCK && n->stages > 1)
			return k->eqn[b->eqn].pack ? n->stages : 1;
	return 1;
}

static void give_room(loop_kernel *k, loop_buf *b)
{
	int32_t lanes = lanes_at(b->scope);
	size_t bytes, *total, slack = 0, line = b->swizzled > 0 ? LOOP_SWIZZLED : LINE;

	b->lanes = lanes > 1;
	/* room for vectors that start in its last row */
	if ((k->eqn[b->eqn].stage || k->eqn[b->eqn].pack) && b->swizzled == 0)
		slack = (size_t)loop_slack(k->machine);
	if (b->where == LOOP_REGISTER || b->where == LOOP_HELD)
		return;
	total = b->where == LOOP_LOCAL ? &k->local_bytes : &k->scratch_bytes;
	bytes = (size_t)b->elems * (size_t)lanes * dtype_size(b->dtype);
	*total = (*total + line - 1) & ~(line - 1);
	b->offset = (int64_t)*total;
	b->stages = stages_of(k, b);
	b->stage_bytes = (int64_t)((bytes + slack + line - 1) & ~(line - 1));
	*total += bytes + slack +
		  (size_t)(b->stages - 1) * (size_t)b->stage_bytes;
}

static bool is_held(const loop_kernel *k, int32_t eqn)
{
	const loop_node *t = loop_tile_of(k, eqn);

	return t != NULL && t->held != 0;
}

/* Is it a value that only loops over registers of warps set and read? Of these each has
 * one tile; a core has many, one after the other. */
static bool is_beside(const loop_kernel *k, const struct place *p)
{
	const loop_eqn *e = &k->eqn[p->eqn];

	return p->held > 0 && p->k->machine->block.warps > 1 && e->e->monoid == IR_SET && e->scan_var < 0 && !e->push &&
	       !e->pack && !e->stage && e->e->n_out == 1;
}

/* Does a leaf below n read an element that is not of its own iteration? */
static bool reads_elsewhere(const struct place *p, const loop_node *n)
{
	if (!loop_is_loop(n))
		return n->eqn != p->eqn && !loop_leaf_reads_at(p->k, n, p->tensor,
						   p->k->eqn[p->eqn].at);
	for (int32_t i = 0; i < n->n_child; i++)
		if (reads_elsewhere(p, n->child[i]))
			return true;
	return false;
}

/* Are its elements registers: is each walked by loops that are written out, inside a
 * loop in lanes? */
static bool in_rows(const loop_kernel *k, const struct place *p, const loop_buf *b)
{
	const loop_eqn *e = &k->eqn[p->eqn];

	if (k->machine->lanes > 0 || lanes_at(p->scope) == 1 || p->n_phases > 1 ||
		e->push || e->pack || e->stage || e->scan_var >= 0 || e->n_parts > 0 ||
		b->elems > k->machine->vector_registers)
		return false;
	for (int32_t i = 0; i < b->n_vars; i++)
		if ((p->rolled & BIT(b->var[i])) != 0)
			return false;
	for (int32_t i = 0; i < k->phase[p->phase].n_roots; i++)
		if (reads_elsewhere(p, k->phase[p->phase].root[i]))
			return false;
	return true;
}

static loop_buf *add_buf(loop_kernel *k, const struct place *p)
{
	const loop_eqn *e = &k->eqn[p->eqn];
	loop_buf *b = &k->buf[k->n_bufs];
	tn_dtype t = e->acc[p->comp];

	b->eqn = p->eqn;
	b->comp = p->comp;
	/* a copy is what it copies; values are kept as they are computed with */
	b->dtype = e->group > 0 || (e->pack && !e->part)
			   ? t
			   : dtype_wide(t);
	b->scope = p->scope;
	b->phase = p->phase;
	loop_subscripts(k, b);
	b->held = is_held(k, p->eqn) ? 1 + p->eqn
		  : is_beside(k, p)  ? p->held
				     : 0;
	b->where = p->n_phases > 1				? LOOP_SCRATCH
		   : is_held(k, p->eqn)				? LOOP_HELD
		   : b->elems == 1 && !e->push			? LOOP_REGISTER
		   : b->held > 0				? LOOP_HELD
		   : in_rows(k, p, b)				? LOOP_REGISTER
								: LOOP_LOCAL;
	if (b->where == LOOP_LOCAL && outside_warps(b->scope) != b->scope) {
		b->scope = outside_warps(b->scope);
		b->n_vars = 0;
		loop_subscripts(k, b);
	}
	return b;
}

/* DONE nodes are added first: they are part of scopes. */
static void add_dones(loop_kernel *k)
{
	int32_t i, j, p;

	for (i = 0; i < k->n_eqns; i++) {
		bool apart = false;

		for (j = 0; j < k->eqn[i].e->n_out; j++)
			apart |= k->buf_of[i][j] == 0;
		apart = apart && k->eqn[i].n_parts == 0;
		for (p = 0; apart && p < k->n_phases; p++)
			add_done(k, &k->phase[p].root, &k->phase[p].n_roots, 0,
				false, i);
	}
	loop_link(k);
}

void loop_locate(loop_kernel *k)
{
	uint64_t *filter = arena_array(k->a, uint64_t, k->n_eqns + 1);
	int32_t i, j;

	for (i = 0; i < k->n_eqns; i++)
		filter[i] = filter_of(k, &k->eqn[i]);
	k->buf = arena_array(k->a, loop_buf, k->n_eqns * IR_MAX_COMP + 1);
	k->buf_of = arena_alloc(k->a, (size_t)k->n_eqns + 1, sizeof *k->buf_of);
	loop_link(k);
	loop_find_twins(k); /* passes have copied nodes */
	/* -1: memory; 0: accumulators, then memory; 1: private */
	for (i = 0; i < k->n_eqns; i++)
		for (j = 0; j < k->eqn[i].e->n_out; j++) {
			loop_eqn *e = &k->eqn[i];
			int32_t t = e->e->out[j];
			struct place p = find(k, i, j, true, filter);
			loop_buf b = {.eqn = i,
				.comp = j,
				.dtype = e->acc[j],
				.scope = p.scope,
				.phase = p.phase};

			loop_subscripts(k, &b);
			k->buf_of[i][j] =
				loop_param(k, t) < 0 || e->stage ? 1
				: e->e->monoid == IR_SET	 ? -1
				: e->n_parts > 0		 ? 0
				: e->apart ||
						e->acc[j] != k->s->tensor.at[t].dtype ||
						(b.elems == 1 && !e->push) ||
						in_rows(k, &p, &b)
					? 0
					: -1;
		}
	if (!k->pinned) { /* else the text contains them */
		add_dones(k);
		loop_find_twins(k); /* the added nodes have copies, too */
	}
	for (i = 0; i < k->n_eqns; i++)
		for (j = 0; j < k->eqn[i].e->n_out; j++) {
			struct place p;
			loop_buf *b;

			if (k->buf_of[i][j] < 0)
				continue;
			p = find(k, i, j, false, filter);
			b = add_buf(k, &p);
			give_room(k, b);
			k->buf_of[i][j] = k->n_bufs++;
		}
}
