/*
 * directive.c: directives on scheduled trees, and the neighbours of a tree.
 */
#include "schedule/directive.h"
#include "schedule/local.h"

/* ---- nodes ---- */

static loop_node *find_below(loop_node *n, int32_t order)
{
	loop_node *m = n->order == order ? n : NULL;

	for (int32_t i = 0; i < n->n_child && m == NULL; i++)
		m = find_below(n->child[i], order);
	return m;
}

static loop_node *node_of(loop_kernel *k, int32_t order)
{
	loop_node *m = NULL;

	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots && m == NULL; i++)
			m = find_below(k->phase[p].root[i], order);
	return m;
}

static bool has_kind(const loop_node *n, loop_kind kind)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_kind(n->child[i], kind))
			return true;
	return n->kind == kind;
}

static bool kernel_has(const loop_kernel *k, loop_kind kind)
{
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			if (has_kind(k->phase[p].root[i], kind))
				return true;
	return false;
}

static bool reduces(const loop_kernel *k, const loop_node *n, int32_t var)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (reduces(k, n->child[i], var))
			return true;
	return n->kind == LOOP_STMT && (k->eqn[n->eqn].reduced & BIT(var)) != 0;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Chunks are the iterations of the parallel loops from the root down. */
static void count_chunks(loop_kernel *k)
{
	for (int32_t p = 0; p < k->n_phases; p++) {
		loop_phase *ph = &k->phase[p];
		int64_t chunks = 1;

		for (const loop_node *n = ph->root[0];
			ph->n_roots == 1 && loop_is_loop(n) && n->parallel;
			n = n->child[0]) {
			int64_t ext = k->var[n->var].extent;

			chunks *= n->kind == LOOP_BLOCK ? ceil_div(ext, n->size)
							: ext;
			if (n->n_child != 1)
				break;
		}
		ph->n_chunks = chunks;
	}
}

/* ---- tiles ---- */

/* The registers that a tile takes: sums, a row of the panel, one element. */
static bool fits(const loop_kernel *k, int64_t rows, int64_t vectors)
{
	return rows >= 1 && vectors >= 1 &&
	       rows * vectors + vectors + 1 <= k->machine->vector_registers;
}

static loop_node *row_block(const loop_node *tile)
{
	loop_node *b = tile->up;

	return tile->kind == LOOP_TILE && tile->row_var >= 0 && b != NULL &&
			       b->kind == LOOP_BLOCK &&
			       b->var == tile->row_var && b->n_child == 1 &&
			       b->size == tile->size
		       ? b
		       : NULL;
}

static loop_node *panel_block(const loop_node *tile)
{
	loop_node *b = tile->up;

	while (b != NULL && (b->kind != LOOP_BLOCK || b->var != tile->var))
		b = b->up;
	return tile->kind == LOOP_TILE && b != NULL &&
			       b->size == (int64_t)tile->lanes * tile->unroll
		       ? b
		       : NULL;
}

static bool may_TILE_ROWS(loop_kernel *k, const loop_node *n, int64_t value)
{
	return row_block(n) != NULL && value != n->size &&
	       value <= k->var[n->row_var].extent && fits(k, value, n->unroll);
}

static void do_TILE_ROWS(loop_kernel *k, loop_node *n, int64_t value)
{
	(void)k;
	row_block(n)->size = value;
	n->size = value;
}

/* A copy of the other factor in panels of its own would not fit any more. */
static bool is_in_panels(const loop_kernel *k, const loop_node *tile)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t f = 0; f < 2; f++)
			if (k->eqn[i].panel > 0 &&
				tile->factor[f]->kind == EX_READ &&
				tile->factor[f]->tensor == k->eqn[i].e->out[0])
				return true;
	return false;
}

static bool may_TILE_VECTORS(loop_kernel *k, const loop_node *n, int64_t value)
{
	return panel_block(n) != NULL && value != n->unroll &&
	       !is_in_panels(k, n) && fits(k, n->size, value);
}

static void do_TILE_VECTORS(loop_kernel *k, loop_node *n, int64_t value)
{
	(void)k;
	panel_block(n)->size = n->lanes * value;
	n->unroll = (int32_t)value;
}

/* ---- blocks and chunks ---- */

/* Is it the block of a tile's rows or panel, which TILE_.. change? */
static bool belongs_to_tile(const loop_node *b, const loop_node *n)
{
	if (n->kind == LOOP_TILE && (row_block(n) == b || panel_block(n) == b))
		return true;
	for (int32_t i = 0; i < n->n_child; i++)
		if (belongs_to_tile(b, n->child[i]))
			return true;
	return false;
}

static bool may_BLOCK(loop_kernel *k, const loop_node *n, int64_t value)
{
	return n->kind == LOOP_BLOCK && n->number < 0 && value != n->size &&
	       value >= 1 && value <= k->var[n->var].extent &&
	       !belongs_to_tile(n, n);
}

static void do_BLOCK(loop_kernel *k, loop_node *n, int64_t value)
{
	n->size = value;
	count_chunks(k);
}

/* The phase's loops are parallel down to some loop: that one goes or comes. */
static bool may_PARALLEL(loop_kernel *k, const loop_node *n, int64_t value)
{
	const loop_node *in = n->n_child == 1 ? n->child[0] : NULL;

	if (n->kind != LOOP_FOR && n->kind != LOOP_BLOCK)
		return false;
	if (value == 0)
		return n->parallel && !has_kind(n, LOOP_PART) &&
		       (in == NULL || !in->parallel);
	return !n->parallel && n->up != NULL && n->up->parallel &&
	       n->up->n_child == 1 && n->lanes <= 1 &&
	       k->var[n->var].kind == AXIS_P;
}

static void do_PARALLEL(loop_kernel *k, loop_node *n, int64_t value)
{
	n->parallel = value != 0;
	count_chunks(k);
}

/* ---- loops ---- */

static bool may_LANES(loop_kernel *k, const loop_node *n, int64_t value)
{
	return n->kind == LOOP_FOR && n->lanes > 1 && value != n->lanes &&
	       value >= 1 && value <= machine_lanes(k->machine, 1) &&
	       (value & (value - 1)) == 0;
}

static void do_LANES(loop_kernel *k, loop_node *n, int64_t value)
{
	(void)k;
	n->lanes = value > 1 ? (int32_t)value : 0;
	n->unroll = value > 1 ? n->unroll : 0;
	n->wide = false;
	n->n_ahead = value > 1 ? n->n_ahead : 0;
}

static bool may_UNROLL(loop_kernel *k, const loop_node *n, int64_t value)
{
	return n->kind == LOOP_FOR && n->lanes > 1 && value != n->unroll &&
	       value >= 1 && value <= 8 && reduces(k, n, n->var);
}

static void do_UNROLL(loop_kernel *k, loop_node *n, int64_t value)
{
	(void)k;
	n->unroll = (int32_t)value;
	n->wide = false;
}

static bool may_SWAP(loop_kernel *k, const loop_node *n, int64_t value)
{
	return value == 1 && loop_may_swap(k, n);
}

static void do_SWAP(loop_kernel *k, loop_node *n, int64_t value)
{
	(void)k;
	(void)value;
	loop_swap(n);
}

static bool may_AHEAD(loop_kernel *k, const loop_node *n, int64_t value)
{
	(void)k;
	return value == 0 && (n->n_ahead > 0 || n->lines > 0);
}

static void do_AHEAD(loop_kernel *k, loop_node *n, int64_t value)
{
	(void)k;
	n->n_ahead = (int32_t)value;
	n->lines = 0;
}

static bool may_STAGES(loop_kernel *k, const loop_node *n, int64_t value)
{
	return n->kind == LOOP_BLOCK && n->stages > 0 && value != n->stages &&
	       k->machine->block.stages > 1 && value != 1 && value >= 0 &&
	       value <= LOOP_MAX_STAGES;
}

static void do_STAGES(loop_kernel *k, loop_node *n, int64_t value)
{
	(void)k;
	n->stages = (int32_t)value;
}

/* ---- results ---- */

static bool may_stream(const loop_kernel *k, const directive *d)
{
	int32_t e, c;

	return d->node >= 0 && d->node < k->n_outputs &&
	       (d->value == 0 || d->value == 1) &&
	       k->stream[d->node] != (d->value == 1) &&
	       loop_maker(k, k->param[d->node], &e, &c) && !k->eqn[e].push &&
	       !ir_in_place(k->s, k->param[d->node]);
}

/* ---- all of them ---- */

static const struct {
	const char *word;
	bool (*may)(loop_kernel *k, const loop_node *n, int64_t value);
	void (*change)(loop_kernel *k, loop_node *n, int64_t value);
} table[] = {
#define DIRECTIVE(id, word, sentence) \
	[DIRECT_##id] = {word, may_##id, do_##id},
#define may_STREAM NULL /* it is about no node: may_stream */
#define do_STREAM NULL
#include "schedule/directive.def"
};

const char *directive_word(directive_kind k)
{
	return table[k].word;
}

bool loop_may_direct(loop_kernel *k, const directive *d)
{
	const loop_node *n;

	if (d->kind == DIRECT_STREAM)
		return may_stream(k, d);
	n = node_of(k, d->node);
	return n != NULL && table[d->kind].may(k, n, d->value);
}

bool loop_direct(loop_kernel *k, const directive *d)
{
	if (!loop_may_direct(k, d))
		return false;
	if (d->kind == DIRECT_STREAM)
		k->stream[d->node] = d->value == 1;
	else
		table[d->kind].change(k, node_of(k, d->node), d->value);
	return true;
}

/* Blocks decide about bits where sums are scaled, or added up in pieces. */
static bool block_keeps(const loop_kernel *k, const loop_node *n)
{
	return !has_kind(n, LOOP_PART) && !has_kind(n, LOOP_SCALE) &&
	       !kernel_has(k, LOOP_SCALE);
}

bool loop_keeps_bits(loop_kernel *k, const directive *d)
{
	const loop_node *n = d->kind == DIRECT_STREAM ? NULL
						      : node_of(k, d->node);

	if (n == NULL)
		return d->kind == DIRECT_STREAM;
	if (d->kind == DIRECT_UNROLL)
		return false;
	if (d->kind == DIRECT_LANES)
		return !reduces(k, n, n->var);
	return d->kind != DIRECT_BLOCK || block_keeps(k, n);
}

/* ---- neighbours ---- */

static void offer(arena *a, loop_kernel *k, directives *out,
	directive_kind kind, int32_t node, int64_t value)
{
	const directive d = {kind, node, value};

	for (int32_t i = 0; i < out->n; i++)
		if (out->at[i].kind == kind && out->at[i].node == node &&
			out->at[i].value == value)
			return;
	if (loop_may_direct(k, &d))
		*vec_push(a, out) = d;
}

static void around(arena *a, loop_kernel *k, directives *out, loop_node *n)
{
	int64_t step = 1;

	switch (n->kind) {
	case LOOP_TILE:
		for (int32_t v = 1; v <= 4; v++)
			offer(a, k, out, DIRECT_TILE_VECTORS, n->order, v);
		for (int64_t r = n->size + 2; r >= n->size - 2 && r > 0; r--)
			offer(a, k, out, DIRECT_TILE_ROWS, n->order, r);
		offer(a, k, out, DIRECT_TILE_ROWS, n->order, n->size / 2);
		break;
	case LOOP_BLOCK:
		offer(a, k, out, DIRECT_BLOCK, n->order, n->size * 2);
		offer(a, k, out, DIRECT_BLOCK, n->order, ceil_div(n->size, 2));
		for (int32_t s = 0; s <= LOOP_MAX_STAGES; s++)
			offer(a, k, out, DIRECT_STAGES, n->order, s);
		step = machine_lanes(k->machine, 4);
		if (n->size > step)
			offer(a, k, out, DIRECT_BLOCK, n->order,
				ceil_div(ceil_div(n->size, 4), step) * step);
		offer(a, k, out, DIRECT_BLOCK, n->order,
			k->var[n->var].extent);
		break;
	case LOOP_FOR:
		offer(a, k, out, DIRECT_LANES, n->order, n->lanes * 2);
		offer(a, k, out, DIRECT_LANES, n->order, n->lanes / 2);
		offer(a, k, out, DIRECT_LANES, n->order, 1);
		for (int64_t u = 1; u <= 8; u *= 2)
			offer(a, k, out, DIRECT_UNROLL, n->order, u);
		offer(a, k, out, DIRECT_SWAP, n->order, 1);
		break;
	case LOOP_SPAN:
	case LOOP_INIT:
	case LOOP_STMT:
	case LOOP_DONE:
	case LOOP_PART:
	case LOOP_JOIN:
	case LOOP_STAGE:
	case LOOP_SCALE:
		break;
	}
	offer(a, k, out, DIRECT_PARALLEL, n->order, n->parallel ? 0 : 1);
	offer(a, k, out, DIRECT_AHEAD, n->order, 0);
	for (int32_t i = 0; i < n->n_child; i++)
		around(a, k, out, n->child[i]);
}

void loop_neighbours(arena *a, loop_kernel *k, directives *out)
{
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			around(a, k, out, k->phase[p].root[i]);
	for (int32_t i = 0; i < k->n_outputs; i++)
		offer(a, k, out, DIRECT_STREAM, i, k->stream[i] ? 0 : 1);
}

/* ---- variants ---- */

static const struct {
	const char *pass;
	loop_copies copies;
	bool keeps_bits;
} others[] = {
	{NULL, LOOP_COPIES_ROWS, true},
	{NULL, LOOP_COPIES_NO_ROWS, true},
	{NULL, LOOP_COPIES_BLOCKS, true},
	{NULL, LOOP_COPIES_COLUMNS, true},
	{"guards", LOOP_COPIES_CHOSEN, true},
	{"ahead", LOOP_COPIES_CHOSEN, true},
	{"streams", LOOP_COPIES_CHOSEN, true},
	{"apart", LOOP_COPIES_CHOSEN, false},
	{"rows", LOOP_COPIES_CHOSEN, false},
	{"parts", LOOP_COPIES_CHOSEN, false},
	{"products", LOOP_COPIES_CHOSEN, false},
};

_Static_assert(sizeof others / sizeof *others <= LOOP_MAX_VARIANTS,
	"variants of the recipe");

bool loop_variant_at(int32_t i, loop_variant *out)
{
	*out = (loop_variant){.keeps_bits = true};
	if (i < 0 || i >= (int32_t)(sizeof others / sizeof *others))
		return false;
	out->copies = others[i].copies;
	out->keeps_bits = others[i].keeps_bits;
	for (int32_t p = 0; others[i].pass != NULL && loop_pass_name(p) != NULL;
		p++)
		if (strcmp(others[i].pass, loop_pass_name(p)) == 0)
			out->without = UINT32_C(1) << p;
	return true;
}

bool loop_vary(loop_kernel *k, const machine *m, const loop_variant *v)
{
	const loop_recipe r = {.without = v->without, .copies = v->copies};

	loop_schedule_by(k, m, &r);
	for (int32_t i = 0; i < v->n_edits; i++) {
		loop_link(k);
		if (!loop_direct(k, &v->edit[i]))
			return false;
	}
	loop_link(k);
	return true;
}

void loop_variant_text(str *out, const loop_variant *v)
{
	static const char *const copied[] = {[LOOP_COPIES_ROWS] =
			"rows of products copied",
		[LOOP_COPIES_NO_ROWS] = "rows of products in place",
		[LOOP_COPIES_BLOCKS] = "no factor copied as a whole",
		[LOOP_COPIES_COLUMNS] = "columns of products copied"};
	const char *sep = "";

	if (v->copies != LOOP_COPIES_CHOSEN) {
		str_add(out, copied[v->copies]);
		sep = "; ";
	}
	for (int32_t p = 0; loop_pass_name(p) != NULL; p++)
		if ((v->without >> p & 1) != 0) {
			str_printf(out, "%swithout %s", sep, loop_pass_name(p));
			sep = "; ";
		}
	for (int32_t i = 0; i < v->n_edits; i++) {
		const directive *d = &v->edit[i];

		str_printf(out, "%s%s %lld at %d", sep, directive_word(d->kind),
			(long long)d->value, d->node);
		sep = "; ";
	}
}
