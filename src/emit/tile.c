/*
 * tile.c: a tile of a sum of products, accumulated in registers.
 *
 * Consumes a TILE node inside blocks of its three variables; produces C that
 * loads a tile of accumulators, walks the block of the sum once, and stores
 * the tile. The body is written once for each row and vector; what rows and
 * columns share the C compiler finds itself.
 *
 *   f32x16 a0 = load(o), a1 = ..;
 *   for (i64 k ..) { a0 = mad(splat(x[k]), load(y + 32 * k), a0); .. }
 *   store(o, a0); ..
 *
 * Blocks begin at whole tiles, so there are two heights and two widths at
 * most, all known here: a tile at an edge is code of its own and as fast. Of
 * its last vector only the columns that exist are loaded and stored.
 */
#include "emit/local.h"

#include <inttypes.h>

struct tile {
	emitter *em;
	const loop_node *n;
	const loop_eqn *e;
	int32_t rows, vectors, valid; /* valid: columns in the last vector */
	const char *acc;
};

static const char *acc_name(const struct tile *t, int32_t row, int32_t vector)
{
	return arena_printf(t->em->a, "%s_%d", t->acc,
		row * t->vectors + vector);
}

/* Rows and columns from here on are those of one accumulator. */
static struct place_of at(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;

	em->plus[t->n->row_var] = row;
	em->plus[t->n->var] = (int64_t)vector * em->lanes;
	return em_place_tensor(em, t->e->e->out[0], t->e->at, false);
}

static bool is_part(const struct tile *t, int32_t vector)
{
	return vector == t->vectors - 1 && t->valid < t->em->lanes;
}

static void load(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;
	struct place_of p = at(t, row, vector);
	const char *type = em_type(em, t->e->acc[0], em->lanes);
	const char *a = acc_name(t, row, vector), *part;

	if (!is_part(t, vector)) {
		em_line(em, "%s %s = %s;", type, a,
			em_load(em, &p, false).t);
		return;
	}
	part = em_fresh(em, "t");
	em_line(em, "%s %s = { 0 };", type, part);
	em_line(em, "for (int l = 0; l < %d; l++)", t->valid);
	em_line(em, "	%s[l] = %s;", part, em_element(em, &p, "l"));
	em_line(em, "%s %s = %s;", type, a, part);
}

static void store(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;
	struct place_of p = at(t, row, vector);
	const char *a = acc_name(t, row, vector), *part;

	if (!is_part(t, vector)) {
		em_store(em, &p, (val){a, t->e->acc[0], em->lanes, 0});
		return;
	}
	part = em_fresh(em, "t"); /* the accumulator stays in a register */
	em_line(em, "const %s %s = %s;",
		em_type(em, t->e->acc[0], em->lanes), part, a);
	em_line(em, "for (int l = 0; l < %d; l++)", t->valid);
	em_line(em, "	%s = %s[l];", em_element(em, &p, "l"), part);
}

static void product(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;
	const expr *b = t->e->body[0];
	struct marks m = em_mark(em);
	const char *a = acc_name(t, row, vector);
	val x, y;

	at(t, row, vector);
	x = em_to_lanes(em, em_ex(em, b->arg[0]));
	y = em_to_lanes(em, em_ex(em, b->arg[1]));
	em_line(em, "%s = %s(%s, %s, %s);", a,
		em_use(em, "mad", t->e->acc[0], em->lanes), x.t, y.t, a);
	em_release(em, m);
}

typedef void of_each(struct tile *t, int32_t row, int32_t vector);

static void each(struct tile *t, of_each *fn)
{
	for (int32_t r = 0; r < t->rows; r++)
		for (int32_t v = 0; v < t->vectors; v++)
			fn(t, r, v);
	t->em->plus[t->n->row_var] = 0;
	t->em->plus[t->n->var] = 0;
}

/* A tile of so many rows and columns. */
static void variant(emitter *em, const loop_node *n, int64_t rows,
	int64_t columns)
{
	struct tile t = {em, n, &em->k->eqn[n->eqn], (int32_t)rows,
		(int32_t)((columns + n->lanes - 1) / n->lanes),
		(int32_t)((columns - 1) % n->lanes) + 1, em_fresh(em, "a")};
	const char *k = em->var[n->sum_var];
	const char *i = em->var[n->row_var], *j = em->var[n->var];
	struct marks m = em_mark(em);

	em_line(em, "{");
	em->depth++;
	em_line(em, "const i64 %s = %s, %s = %s;", i, em->span[n->row_var].lo,
		j, em->span[n->var].lo);
	em->vvar = n->var;
	em->lanes = n->lanes;
	each(&t, load);
	em_line(em, "for (i64 %s = %s; %s < %s; %s++) {", k,
		em->span[n->sum_var].lo, k, em->span[n->sum_var].hi, k);
	em->depth++;
	each(&t, product);
	em->depth--;
	em_line(em, "}");
	each(&t, store);
	em->lanes = 1;
	em->vvar = -1;
	em_release(em, m);
	em->depth--;
	em_line(em, "}");
}

/* Extents of a tile along var: whole ones of `size`, and what is left. */
static int32_t extents(
	const emitter *em, int32_t var, int64_t size, int64_t *out)
{
	int64_t n = em->k->var[var].extent;
	int32_t m = 0;

	if (n >= size)
		out[m++] = size;
	if (n % size != 0)
		out[m++] = n % size;
	return m;
}

void em_tile(emitter *em, const loop_node *n)
{
	int64_t rows[2], columns[2];
	int32_t n_rows = extents(em, n->row_var, n->size, rows), r, c;
	int32_t n_columns = extents(em, n->var,
		(int64_t)n->unroll * n->lanes, columns);
	const struct span *i = &em->span[n->row_var], *j = &em->span[n->var];

	if (n_rows * n_columns == 1) /* nobody asks where it ends */
		em_line(em, "(void)%s, (void)%s;", i->hi, j->hi);
	for (r = 0; r < n_rows; r++)
		for (c = 0; c < n_columns; c++) {
			if (n_rows * n_columns > 1)
				em_line(em,
					"if (%s - %s == %" PRId64
					" && %s - %s == %" PRId64 ")",
					i->hi, i->lo, rows[r], j->hi, j->lo,
					columns[c]);
			variant(em, n, rows[r], columns[c]);
		}
}
