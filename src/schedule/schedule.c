/*
 * schedule.c: from the MapExpr to phases that run fast; docs/schedule.md.
 *
 * Consumes a verified MapExpr and a machine; produces the phases with their
 * trees, chunks, lanes, buffers. Every number that decides is a size or comes
 * from the machine: the number of threads never does, so results do not either.
 * The passes stand in one table, in their order; each changes the trees by
 * functions that check what they need (local.h), and says what it decided and
 * why (decision.h).
 */
#include "schedule/contract/contract.h"

/* The scan variables run from the end where an equation says so. */
static void set_backward(loop_kernel *k, loop_node *n)
{
	int32_t i;

	for (i = 0; i < k->n_eqns && n->kind == LOOP_FOR; i++)
		if (k->eqn[i].scan_var == n->var && k->eqn[i].reversed)
			n->backward = true;
	for (i = 0; i < n->n_child; i++)
		set_backward(k, n->child[i]);
}

static bool is_tail(const loop_kernel *k, const loop_node *n)
{
	while (loop_is_loop(n))
		n = n->child[0];
	return k->eqn[n->eqn].tail;
}

/* The roots of the tail, taken from the only phase there is. */
static int32_t take_tail(loop_kernel *k, loop_node **out)
{
	loop_phase *ph = &k->phase[0];
	int32_t n = 0, m = 0;

	for (int32_t i = 0; i < ph->n_roots; i++)
		if (is_tail(k, ph->root[i]))
			out[n++] = ph->root[i];
		else
			ph->root[m++] = ph->root[i];
	ph->n_roots = m;
	return n;
}

/* Behind everything: in the phase that joins partial results, or its own. */
static void put_tail(loop_kernel *k, int32_t n, loop_node *const *root)
{
	loop_phase *ph = &k->phase[k->n_phases - 1], *own;
	loop_node **all;

	if (n == 0)
		return;
	own = k->n_phases > 1 && ph->n_chunks == 1 ? ph
						   : &k->phase[k->n_phases++];
	if (own != ph)
		*own = (loop_phase){.n_chunks = 1};
	all = arena_array(k->a, loop_node *, own->n_roots + n);
	for (int32_t i = 0; i < own->n_roots; i++)
		all[i] = own->root[i];
	for (int32_t i = 0; i < n; i++)
		all[own->n_roots++] = root[i];
	own->root = all;
}

static int32_t first_leaf(const loop_node *n)
{
	while (loop_is_loop(n))
		n = n->child[0];
	return n->eqn;
}

/* The innermost loops below n have no lanes. */
static void say_serial(loop_kernel *k, const loop_node *n, decide_kind why)
{
	if (loop_is_loop(n))
		loop_decide(k, why, n->var, first_leaf(n), 0, 0);
	for (int32_t i = 0; i < n->n_child; i++)
		say_serial(k, n->child[i], why);
}

/* ---- the recipe ---- */

struct recipe {
	loop_kernel *k;
	loop_node **tail;
	int32_t n_tail;
	bool scatters; /* its phases are there already */
	bool tiled;    /* products took the kernel */
};

static void take_scatter(struct recipe *r)
{
	if (!loop_push_owners(r->k))
		loop_push_phases(r->k);
	r->scatters = r->k->n_phases > 1;
}

static void take_products(struct recipe *r)
{
	if (!r->scatters && r->n_tail == 0)
		r->tiled = loop_contract(r->k);
	else if (r->n_tail > 0)
		contract_decline(r->k, DECIDE_TILE_TAIL, first_leaf(r->tail[0]),
			0, 0);
	contract_decline_rest(r->k);
}

static void take_rows(struct recipe *r)
{
	if (!r->scatters)
		loop_columns_to_rows(r->k);
}

static void take_parts(struct recipe *r)
{
	if (!r->scatters)
		loop_split_reductions(r->k);
}

static void take_apart(struct recipe *r)
{
	loop_distribute(r->k);
	loop_take_scalars_out(r->k);
}

static void take_lanes(struct recipe *r)
{
	loop_vectorise(r->k);
	if (!r->scatters && !r->tiled)
		contract_put_rows_inside(r->k);
}

static void take_chunks(struct recipe *r)
{
	loop_parallel(r->k);
}

static void take_abreast(struct recipe *r)
{
	loop_rows_abreast(r->k);
	loop_windows_abreast(r->k, true);
}

static void take_clips(struct recipe *r)
{
	loop_clip_all(r->k);
}

static void take_guards(struct recipe *r)
{
	loop_split_guards(r->k);
}

static void take_ahead(struct recipe *r)
{
	loop_read_ahead(r->k);
}

static void take_fetch(struct recipe *r)
{
	loop_fetch_tiles(r->k); /* also where only a cut sum has tiles */
}

static void take_wide(struct recipe *r)
{
	loop_widen_accesses(r->k);
}

static void take_blocks(struct recipe *r)
{
	loop_rows_to_warps(r->k);
}

static void give_tail(struct recipe *r)
{
	for (int32_t i = 0; i < r->n_tail; i++)
		say_serial(r->k, r->tail[i], DECIDE_LANES_TAIL);
	put_tail(r->k, r->n_tail, r->tail);
}

/* Are there tiles for blocks of warps, those of pieces of a sum among them? */
static bool has_blocks(const struct recipe *r)
{
	const loop_kernel *k = r->k;
	bool tiles = r->tiled;

	for (int32_t p = 0; p < k->n_phases; p++)
		tiles |= k->phase[p].tiles;
	return tiles && k->machine->block.warps > 1;
}

static void take_sums(struct recipe *r)
{
	if (has_blocks(r))
		loop_hold_sums(r->k);
	else if (r->tiled)
		loop_hold_near(r->k);
	loop_fetch_results(r->k);
}

static void take_stages(struct recipe *r)
{
	if (r->tiled || has_blocks(r))
		loop_copy_ahead(r->k);
}

static void take_warpgroups(struct recipe *r)
{
	if (r->tiled || has_blocks(r))
		loop_use_warpgroups(r->k);
}

static void take_locations(struct recipe *r)
{
	loop_locate(r->k);
}

static void take_streams(struct recipe *r)
{
	loop_choose_streams(r->k);
}

static void take_warps(struct recipe *r)
{
	if (r->tiled || has_blocks(r))
		loop_deal_to_warps(r->k);
}

static void take_bulk(struct recipe *r)
{
	if (r->tiled || has_blocks(r))
		loop_copy_in_bulk(r->k);
}

/* When a pass runs: only where loops are free; .. where no product took them; */
enum { FREE = 1, NO_TILES = 2 };

static const struct pass {
	const char *name;
	uint32_t when;
	void (*run)(struct recipe *r);
} passes[] = {
	{"scatter", 0, take_scatter},
	{"products", FREE, take_products},
	{"rows", FREE | NO_TILES, take_rows},
	{"parts", FREE | NO_TILES, take_parts},
	{"apart", FREE | NO_TILES, take_apart},
	{"lanes", FREE | NO_TILES, take_lanes},
	{"chunks", FREE | NO_TILES, take_chunks},
	{"abreast", FREE | NO_TILES, take_abreast},
	{"clips", FREE | NO_TILES, take_clips},
	{"guards", FREE | NO_TILES, take_guards},
	{"ahead", FREE | NO_TILES, take_ahead},
	{"fetch", FREE, take_fetch},
	{"wide", FREE | NO_TILES, take_wide},
	{"blocks", FREE | NO_TILES, take_blocks},
	{"tail", NO_TILES, give_tail},
	{"sums", FREE, take_sums},
	{"stages", FREE, take_stages},
	{"warpgroups", FREE, take_warpgroups},
	{"locations", 0, take_locations},
	{"streams", NO_TILES, take_streams},
	{"warps", FREE, take_warps},
	{"bulk", FREE, take_bulk},
};

const char *loop_pass_name(int32_t i)
{
	return i >= 0 && i < (int32_t)(sizeof passes / sizeof *passes)
		       ? passes[i].name
		       : NULL;
}

static void begin(struct recipe *r)
{
	loop_kernel *k = r->k;
	loop_phase *ph = &k->phase[0];

	k->n_phases = 1;
	ph->n_roots = k->n_roots;
	ph->n_chunks = 1;
	ph->root = arena_array(k->a, loop_node *, k->n_roots + 1);
	for (int32_t i = 0; i < k->n_roots; i++) {
		ph->root[i] = loop_node_copy(k->a, k->root[i]);
		set_backward(k, ph->root[i]);
	}
	k->stream = arena_array(k->a, bool, k->n_params + 1);
	r->tail = arena_array(k->a, loop_node *, k->n_roots + 1);
	r->n_tail = take_tail(k, r->tail);
}

/* A machine without schedules: every loop is as it was. */
static void say_plain(loop_kernel *k)
{
	contract_decline(k, DECIDE_TILE_PLAIN, -1, 0, 0);
	for (int32_t p = 0; p < k->n_phases; p++) {
		loop_decide(k, DECIDE_CHUNKS_PLAIN, p, -1, 0, 0);
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			say_serial(k, k->phase[p].root[i], DECIDE_LANES_PLAIN);
	}
}

void loop_schedule_by(
	loop_kernel *k, const machine *m, const loop_recipe *by)
{
	struct recipe r = {.k = k};

	k->machine = m;
	k->copies = by->copies;
	k->halved = 0;
	k->cuts = m->block.warps == 1;
	k->no_rows = false;
	begin(&r);
	for (int32_t i = 0; loop_pass_name(i) != NULL; i++) {
		const struct pass *p = &passes[i];

		if (((p->when & FREE) != 0 && m->unscheduled) ||
			((p->when & NO_TILES) != 0 && r.tiled) ||
			(by->without >> i & 1) != 0)
			continue;
		p->run(&r);
		if (by->after != NULL)
			by->after(by->arg, k, i);
	}
	if (m->unscheduled)
		say_plain(k);
}

void loop_schedule(loop_kernel *k, const machine *m)
{
	const loop_recipe all = {0};

	loop_schedule_by(k, m, &all);
}
