/*
 * split.c: splits reductions that have too few independent pieces.
 *
 * The loops from the root that all statements share give independent pieces. If
 * these are few, and the next loop is reduced, by equations that no statement of
 * the kernel reads, the blocks of that loop become chunks: each stores partial
 * results in scratch, and a second phase combines them in order.
 *
 *   init s; for i < 16M { acc s }     ->
 *   phase 0: block i 65536 { init s; for i { acc s }; part s }
 *   phase 1: join s                      s = init (+) part 0 (+) part 1 ..
 *
 * The number of blocks depends only on sizes, and so do the bits of the result.
 */
#include "schedule/local.h"

struct reads {
	int32_t tensor;
	bool hit;
};

static bool form_reads(const ix_form *f, int32_t tensor)
{
	int32_t i;

	for (i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN && t->fun == tensor)
			return true;
		if (t->kind != IX_DIGIT && form_reads(t->f, tensor))
			return true;
	}
	return false;
}

static void on_read(void *arg, const expr *e)
{
	struct reads *r = arg;

	if ((e->kind == EX_READ && e->tensor == r->tensor) ||
		form_reads(e->form, r->tensor))
		r->hit = true;
}

/* Is it read in the loops that are split? (The tail reads final values.) */
static bool is_read_here(loop_kernel *k, int32_t eqn)
{
	int32_t i, j, c;

	for (c = 0; c < k->eqn[eqn].e->n_out; c++) {
		struct reads r = {k->eqn[eqn].e->out[c], false};

		for (i = 0; i < k->n_eqns; i++)
			for (j = 0; j < k->eqn[i].e->n_out &&
				    !k->eqn[i].tail;
				j++) {
				loop_walk(k->a, k->eqn[i].body[j], on_read, &r);
				if (k->eqn[i].init[j] != NULL)
					loop_walk(k->a, k->eqn[i].init[j],
						on_read, &r);
			}
		if (r.hit)
			return true;
	}
	return false;
}

/* The only loop of the list that is not a nest of INITs; -1: there are several. */
static int32_t the_loop(loop_node *const *list, int32_t n)
{
	int32_t i, at = -1;

	for (i = 0; i < n; i++) {
		const loop_node *c = list[i];

		while (loop_is_loop(c) && c->n_child == 1)
			c = c->child[0];
		if (c->kind == LOOP_INIT)
			continue;
		if (at >= 0 || !loop_is_loop(list[i]))
			return -1;
		at = i;
	}
	return at;
}

/* Finds the equations below n that reduce var; false: one cannot be split. */
bool loop_reducers(
	loop_kernel *k, const loop_node *n, int32_t var, loop_set *out)
{
	int32_t i;

	if (n->kind == LOOP_STMT) {
		const loop_eqn *e = &k->eqn[n->eqn];

		if (e->push || e->scan_var == var)
			return false;
		if ((e->reduced & BIT(var)) != 0) {
			if (n->eqn >= 64 || is_read_here(k, n->eqn))
				return false;
			*out |= BIT(n->eqn);
		}
	}
	for (i = 0; i < n->n_child; i++)
		if (!loop_reducers(k, n->child[i], var, out))
			return false;
	return true;
}

static loop_node *leaf_node(
	loop_kernel *k, loop_kind kind, int32_t eqn, loop_set todo)
{
	loop_node *top = loop_node_new(k->a, kind);
	int32_t i;

	top->eqn = eqn;
	for (i = k->n_vars - 1; i >= 0; i--)
		if ((todo & BIT(i)) != 0)
			top = loop_node_for(k->a, i, top);
	return top;
}

static int64_t partial_bytes(const loop_kernel *k, loop_set eqns)
{
	int64_t sum = 0;
	int32_t i, j;

	for (i = 0; i < k->n_eqns; i++)
		for (j = 0; i < 64 && (eqns & BIT(i)) != 0 &&
			    j < k->eqn[i].e->n_out;
			j++)
			sum += k->s->tensor.at[k->eqn[i].e->out[j]].numel *
			       (int64_t)dtype_size(k->eqn[i].acc[j]);
	return sum;
}

void loop_room_for_parts(loop_kernel *k)
{
	for (int32_t i = 0; i < k->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		for (int32_t j = 0; j < e->e->n_out && e->n_parts > 0; j++) {
			int64_t numel = k->s->tensor.at[e->e->out[j]].numel;

			k->scratch_bytes = (k->scratch_bytes + 63) &
					   ~(size_t)63;
			e->part_at[j] = (int64_t)k->scratch_bytes;
			k->scratch_bytes += (size_t)e->n_parts *
					    dtype_size(e->acc[j]) *
					    (size_t)numel;
		}
	}
}

/* Adds the phase that combines the partial results. */
static void second_phase(loop_kernel *k, loop_set eqns, int64_t n_parts)
{
	loop_phase *ph = &k->phase[k->n_phases++];
	int32_t i;

	*ph = (loop_phase){.n_chunks = 1,
		.root = arena_array(k->a, loop_node *, k->n_eqns + 1)};
	for (i = 0; i < k->n_eqns && i < 64; i++) {
		loop_eqn *e = &k->eqn[i];

		if ((eqns & BIT(i)) == 0)
			continue;
		e->n_parts = n_parts;
		ph->root[ph->n_roots++] = leaf_node(k, LOOP_JOIN, i, e->left);
	}
	loop_room_for_parts(k);
}

/* Splits list[at], a loop over a reduced variable. */
static void split(loop_kernel *k, loop_phase *ph, loop_node *parent, int32_t at,
	loop_set eqns, int64_t size)
{
	loop_node **list = parent == NULL ? ph->root : parent->child;
	int32_t n = parent == NULL ? ph->n_roots : parent->n_child, i;
	loop_node *b = loop_node_new(k->a, LOOP_BLOCK);
	int64_t ext = k->var[list[at]->var].extent;
	loop_set open = loop_node_open(parent);

	b->var = list[at]->var;
	b->size = size;
	b->parallel = true;
	b->child = arena_array(k->a, loop_node *, n + 65);
	for (i = 0; i < n; i++)
		b->child[b->n_child++] = list[i];
	for (i = 0; i < k->n_eqns && i < 64; i++)
		if ((eqns & BIT(i)) != 0)
			b->child[b->n_child++] = leaf_node(
				k, LOOP_PART, i, k->eqn[i].left & ~open);
	list[0] = b;
	if (parent == NULL)
		ph->n_roots = 1;
	else
		parent->n_child = 1;
	second_phase(k, eqns, (ext + size - 1) / size);
}

/* Sums are there, and nothing that blocks of them could share. */
static void say_little(loop_kernel *k, int64_t all)
{
	for (int32_t v = 0; v < k->n_vars; v++)
		for (int32_t i = 0; i < k->n_eqns; i++)
			if ((k->eqn[i].reduced & BIT(v)) != 0)
				loop_decide(k, DECIDE_PARTS_LITTLE, v, -1, all,
					2 * k->machine->schedule.chunk_elems);
}

/* Of the loops that are reduced below n. */
static void say_enough(loop_kernel *k, const loop_node *n, int64_t pieces)
{
	if (n->kind == LOOP_FOR && k->var[n->var].kind == AXIS_R)
		loop_decide(k, DECIDE_PARTS_PIECES, n->var, -1, pieces,
			k->machine->schedule.min_chunks);
	for (int32_t i = 0; i < n->n_child; i++)
		say_enough(k, n->child[i], pieces);
}

void loop_split_reductions(loop_kernel *k)
{
	loop_phase *ph = &k->phase[k->n_phases - 1];
	loop_node *parent = NULL;
	int64_t pieces = 1, all = 0;
	int32_t i;

	loop_link(k);
	for (i = 0; i < ph->n_roots; i++)
		all += loop_work(k, ph->root[i]);
	if (k->n_phases + 1 > LOOP_MAX_PHASES)
		return;
	if (all < 2 * k->machine->schedule.chunk_elems) {
		say_little(k, all);
		return;
	}
	for (;;) {
		loop_node **list = parent == NULL ? ph->root : parent->child;
		int32_t n = parent == NULL ? ph->n_roots : parent->n_child;
		int32_t at = the_loop(list, n);
		loop_set eqns = 0;
		int64_t ext, blocks, bytes, least;

		if (at < 0 || list[at]->kind != LOOP_FOR)
			return;
		ext = k->var[list[at]->var].extent;
		if (k->var[list[at]->var].kind == AXIS_P && n == 1) {
			pieces *= ext;
			parent = list[at];
			if (pieces < k->machine->schedule.min_chunks)
				continue;
			say_enough(k, list[at], pieces);
			return;
		}
		if (!loop_reducers(k, list[at], list[at]->var, &eqns) ||
			eqns == 0 || k->var[list[at]->var].kind == AXIS_S) {
			if (k->var[list[at]->var].kind == AXIS_R)
				loop_decide(k, DECIDE_PARTS_READ,
					list[at]->var, -1, 0, 0);
			return;
		}
		blocks = all / k->machine->schedule.chunk_elems / pieces;
		bytes = partial_bytes(k, eqns);
		if (blocks > LOOP_MAX_CHUNKS)
			blocks = LOOP_MAX_CHUNKS;
		/* partial results must be a small part of the bytes that are read */
		least = k->machine->schedule.least_part * bytes;
		if (least > 0 && blocks > all / least)
			blocks = all / least;
		if (blocks > ext)
			blocks = ext;
		if (blocks < 2) {
			loop_decide(k, DECIDE_PARTS_FEW, list[at]->var, -1,
				all, pieces);
			return;
		}
		loop_decide(k, DECIDE_PARTS_TAKEN, list[at]->var, -1,
			(ext + (ext + blocks - 1) / blocks - 1) /
				((ext + blocks - 1) / blocks),
			0);
		split(k, ph, parent, at, eqns, (ext + blocks - 1) / blocks);
		return;
	}
}
