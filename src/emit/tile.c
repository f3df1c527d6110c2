/*
 * tile.c: a tile of a sum of products, accumulated in registers.
 *
 * Consumes a TILE node inside blocks of its variables; produces C that starts
 * or loads a tile of accumulators, walks the block of the sums once, and stores
 * the tile. The body is written once for each row and vector; what rows and
 * columns share the C compiler finds itself.
 *
 *   f32x16 a0 = load(o), a1 = ..;
 *   for (i64 k ..) { a0 = mad(splat(x[k]), load(y + 32 * k), a0); .. }
 *   store(o, a0); ..
 *
 * Blocks begin at whole tiles, so there are few heights and widths, all known
 * here: a tile at an edge is code of its own and as fast. Of its last vector
 * only the columns that exist are loaded and stored.
 */
#include "emit/local.h"

#include <inttypes.h>

enum { MAX_EXTENTS = 8 };

struct tile {
	emitter *em;
	const loop_node *n;
	const loop_eqn *e;
	int32_t rows, vectors, valid; /* valid: columns in the last vector */
	const char *acc;
	const char *finite, *last; /* of whole vectors, and of the last one */
	const char *array;	   /* all accumulators, while they are scaled */
	bool adds;		   /* load: to what is there */
};

static const char *acc_name(const struct tile *t, int32_t row, int32_t vector)
{
	return arena_printf(t->em->a, "%s_%d", t->acc,
		row * t->vectors + vector);
}

/* Rows and columns from here on are those of one accumulator. */
static void move_to(struct tile *t, int32_t row, int32_t vector)
{
	if (t->n->row_var >= 0)
		t->em->plus[t->n->row_var] = row;
	t->em->plus[t->n->var] = (int64_t)vector * t->em->lanes;
}

static struct place_of at(struct tile *t, int32_t row, int32_t vector)
{
	move_to(t, row, vector);
	return em_place_tensor(t->em, t->e->e->out[0], t->e->at, false);
}

static bool is_part(const struct tile *t, int32_t vector)
{
	return vector == t->vectors - 1 && t->valid < t->em->lanes;
}

static void declare(struct tile *t, int32_t row, int32_t vector)
{
	em_line(t->em, "%s %s = { 0 };",
		em_type(t->em, t->e->acc[0], t->em->lanes),
		acc_name(t, row, vector));
}

static void load(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;
	struct place_of p = at(t, row, vector);
	const char *type = em_type(em, t->e->acc[0], em->lanes);
	const char *a = acc_name(t, row, vector), *part;
	const char *set = t->adds ? "+=" : "=";

	if (!is_part(t, vector)) {
		em_line(em, "%s %s %s;", a, set, em_load(em, &p, false).t);
		return;
	}
	part = em_fresh(em, "t");
	em_line(em, "%s %s = { 0 };", type, part);
	em_line(em, "for (int l = 0; l < %d; l++)", t->valid);
	em_line(em, "	%s[l] = %s;", part, em_element(em, &p, "l"));
	em_line(em, "%s %s %s;", a, set, part);
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

/* a += x * y */
static void product(struct tile *t, const char *a, val x, val y)
{
	emitter *em = t->em;
	tn_dtype acc = t->e->acc[0];

	if (dtype_is_int(acc)) { /* wraps */
		const char *u = em_unsigned_type(em, acc, em->lanes);

		em_line(em, "%s = (%s)((%s)%s + (%s)%s * (%s)%s);", a,
			em_type(em, acc, em->lanes), u, a, u, x.t, u, y.t);
	} else {
		em_line(em, "%s = %s(%s, %s, %s);", a,
			em_use(em, "mad", acc, em->lanes), x.t, y.t, a);
	}
}

/* Each vector of y and each element of x once: C compilers take their time. */
static void products(struct tile *t)
{
	emitter *em = t->em;
	struct marks m = em_mark(em);
	val *y = arena_array(em->a, val, t->vectors);

	for (int32_t v = 0; v < t->vectors; v++) {
		move_to(t, 0, v);
		y[v] = em_to_lanes(em, em_ex(em, t->n->factor[1]));
		em_release(em, m);
	}
	for (int32_t r = 0; r < t->rows; r++) {
		val x;

		move_to(t, r, 0);
		x = em_to_lanes(em, em_ex(em, t->n->factor[0]));
		for (int32_t v = 0; v < t->vectors; v++)
			product(t, acc_name(t, r, v), x, y[v]);
		em_release(em, m);
	}
	move_to(t, 0, 0);
}

typedef void of_each(struct tile *t, int32_t row, int32_t vector);

static void each(struct tile *t, of_each *fn)
{
	for (int32_t r = 0; r < t->rows; r++)
		for (int32_t v = 0; v < t->vectors; v++)
			fn(t, r, v);
	move_to(t, 0, 0);
}

/* Lines of the other factor that the next block of the sum reads. */
static void ahead(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;
	const expr *y = t->n->factor[1];
	struct place_of p;

	if (row > 0)
		return;
	em->plus[t->n->sum[0]] = t->n->n_ahead;
	move_to(t, row, vector);
	p = em_place_tensor(em, y->tensor, y->form, false);
	em_line(em, "__builtin_prefetch(&%s, 0, 3);", em_element(em, &p, NULL));
	em->plus[t->n->sum[0]] = 0;
}

/* Where all sums begin: their blocks are the first ones. "": everywhere. */
static const char *is_first(emitter *em, const loop_node *n)
{
	str s = str_new(em->a);

	for (int32_t i = 0; i < n->n_sums; i++)
		if (em->span[n->sum[i]].clo != 0)
			str_printf(&s, "%s%s == 0", s.n > 0 ? " && " : "",
				em->span[n->sum[i]].lo);
	return s.at;
}

/* Accumulators from where the sums stand, if they do not begin here. */
static void load_all(struct tile *t)
{
	emitter *em = t->em;
	const char *first = is_first(em, t->n);

	if (t->n->start && first[0] == '\0')
		return;
	if (t->n->start) {
		em_line(em, "if (!(%s)) {", first);
		em->depth++;
	}
	each(t, load);
	if (t->n->start) {
		em->depth--;
		em_line(em, "}");
	}
}

/* for (i64 k = lo; k < hi; k++) for each sum */
static void open_sums(struct tile *t)
{
	emitter *em = t->em;

	for (int32_t i = 0; i < t->n->n_sums; i++) {
		const struct span *s = &em->span[t->n->sum[i]];
		const char *k = em->var[t->n->sum[i]];

		em_line(em, "for (i64 %s = %s; %s < %s; %s++) {", k, s->lo, k,
			s->hi, k);
		em->depth++;
	}
}

static void close_loops(emitter *em, int32_t n)
{
	for (; n > 0; n--) {
		em->depth--;
		em_line(em, "}");
	}
}

/* The accumulators less themselves, added up: 0 if all are finite. */
static void difference(struct tile *t, int32_t row, int32_t vector)
{
	const char *a = acc_name(t, row, vector);

	em_line(t->em, "%s += %s - %s;",
		is_part(t, vector) ? t->last : t->finite, a, a);
}

/* A term that is nothing was 0 times something: is that nothing, too? */
static void check(struct tile *t)
{
	emitter *em = t->em;
	const char *type = em_type(em, t->e->acc[0], em->lanes);
	const char *bad = em_fresh(em, "t");

	t->finite = em_fresh(em, "t");
	t->last = em_fresh(em, "t");
	em_line(em, "%s %s = { 0 }, %s = { 0 };", type, t->finite, t->last);
	each(t, difference);
	em_line(em, "int %s = 0;", bad);
	em_line(em, "for (int l = 0; l < %d; l++)", em->lanes);
	em_line(em, "	%s |= %s[l] != 0;", bad, t->finite);
	em_line(em, "for (int l = 0; l < %d; l++)", t->valid);
	em_line(em, "	%s |= %s[l] != 0;", bad, t->last);
	t->finite = bad;
}

/* The same tile term by term, as the equation says. */
static void one_by_one(struct tile *t, int64_t columns)
{
	emitter *em = t->em;
	int32_t var[2] = {t->n->row_var, t->n->var};
	int64_t n[2] = {t->rows, columns};
	const char *first = is_first(em, t->n), *a = em_fresh(em, "a");
	const char *type = em_type(em, t->e->acc[0], 1), *old = "0";
	struct marks m;
	struct place_of p;

	em_line(em, "if (%s) {", t->finite);
	em->depth++;
	em->lanes = 1;
	em->vvar = -1;
	for (int32_t i = 0; i < 2; i++) {
		if (var[i] < 0)
			continue;
		em_line(em,
			"for (i64 %s = %s; %s < %s + %" PRId64 "; %s++) {",
			em->var[var[i]], em->span[var[i]].lo, em->var[var[i]],
			em->span[var[i]].lo, n[i], em->var[var[i]]);
		em->depth++;
	}
	m = em_mark(em);
	p = em_place_tensor(em, t->e->e->out[0], t->e->at, false);
	if (!t->n->start || first[0] != '\0')
		old = em_element(em, &p, NULL);
	if (t->n->start && first[0] != '\0')
		em_line(em, "%s %s = %s ? 0 : %s;", type, a, first, old);
	else
		em_line(em, "%s %s = %s;", type, a, old);
	open_sums(t);
	em_line(em, "%s += %s;", a, em_ex(em, t->e->body[0]).t);
	em_release(em, m);
	close_loops(em, t->n->n_sums);
	em_store(em, &p, (val){a, t->e->acc[0], 1, 0});
	close_loops(em, (var[0] >= 0) + 1);
	em->lanes = t->n->lanes;
	em->vvar = t->n->var;
	em->depth--;
	em_line(em, "} else {");
	em->depth++;
}

/* at[n] *= scale, of whole vectors (columns of them), or of single columns */
static void scale_loop(struct tile *t, const char *at, int64_t from,
	int64_t columns, bool whole)
{
	emitter *em = t->em;
	const char *j = em->var[t->n->var], *lo = em->span[t->n->var].lo;
	int32_t step = whole ? t->n->lanes : 1;
	struct marks m;

	if (columns == 0)
		return;
	em_line(em,
		"for (i64 %s = %s + %" PRId64 "; %s < %s + %" PRId64
		"; %s += %d) {",
		j, lo, from, j, lo, from + columns, j, step);
	em->depth++;
	m = em_mark(em);
	em->lanes = step;
	em->vvar = whole ? t->n->var : -1;
	if (whole)
		em_line(em, "%s[(%s - %s) / %d] *= %s;", at, j, lo, step,
			em_to_lanes(em, em_ex(em, t->n->scale)).t);
	else
		em_line(em, "%s[%d][(%s - %s) %% %d] *= %s;", at,
			t->vectors - 1, j, lo, t->n->lanes,
			em_ex(em, t->n->scale).t);
	em_release(em, m);
	em->lanes = t->n->lanes;
	em->vvar = t->n->var;
	close_loops(em, 1);
}

static void put_in_array(struct tile *t, int32_t row, int32_t vector)
{
	em_line(t->em, "%s[%d] = %s;", t->array, row * t->vectors + vector,
		acc_name(t, row, vector));
}

static void take_from_array(struct tile *t, int32_t row, int32_t vector)
{
	em_line(t->em, "%s = %s[%d];", acc_name(t, row, vector), t->array,
		row * t->vectors + vector);
}

/*
 * All accumulators by their scale, row by row: it may be much to write. What
 * is there of a vector at an edge may be all there is to read.
 */
static void scale(struct tile *t)
{
	emitter *em = t->em;
	const char *row = em_fresh(em, "t");
	int64_t lanes = t->n->lanes;
	int32_t whole = t->vectors - (t->valid < lanes), i = t->n->row_var;

	t->array = em_fresh(em, "t");
	em_line(em, "%s %s[%d];", em_type(em, t->e->acc[0], em->lanes),
		t->array, t->rows * t->vectors);
	each(t, put_in_array);
	em_line(em, "%s *%s = %s;", em_type(em, t->e->acc[0], em->lanes), row,
		t->array);
	if (i >= 0)
		em_line(em,
			"for (i64 %s = %s; %s < %s + %d; %s++, %s += %d) {",
			em->var[i], em->span[i].lo, em->var[i], em->span[i].lo,
			t->rows, em->var[i], row, t->vectors);
	else
		em_line(em, "{");
	em->depth++;
	scale_loop(t, row, 0, whole * lanes, true);
	if (whole < t->vectors)
		scale_loop(t, row, whole * lanes, t->valid, false);
	close_loops(em, 1);
	each(t, take_from_array);
}

/* A tile of so many rows and columns. */
static void variant(emitter *em, const loop_node *n, int64_t rows,
	int64_t columns)
{
	struct tile t = {em, n, &em->k->eqn[n->eqn], (int32_t)rows,
		(int32_t)((columns + n->lanes - 1) / n->lanes),
		(int32_t)((columns - 1) % n->lanes) + 1, em_fresh(em, "a"),
		"", "", "", false};
	struct marks m = em_mark(em);

	em_line(em, "{");
	em->depth++;
	em_line(em, "const i64 %s = %s;", em->var[n->var],
		em->span[n->var].lo);
	if (n->row_var >= 0)
		em_line(em, "const i64 %s = %s;", em->var[n->row_var],
			em->span[n->row_var].lo);
	em->vvar = n->var;
	em->lanes = n->lanes;
	each(&t, declare);
	if (n->scale == NULL)
		load_all(&t);
	open_sums(&t);
	if (n->n_ahead > 0)
		each(&t, ahead);
	products(&t);
	close_loops(em, n->n_sums);
	if (n->scale != NULL) {
		scale(&t);
		t.adds = true;
		load_all(&t);
	}
	if (n->checked) {
		check(&t);
		one_by_one(&t, columns);
	}
	each(&t, store);
	close_loops(em, n->checked);
	em->lanes = 1;
	em->vvar = -1;
	em_release(em, m);
	em->depth--;
	em_line(em, "}");
}

/* The extents that pieces of `size` cut from pieces of these extents have. */
static int32_t cut(int32_t n, int64_t *ext, int64_t size)
{
	int64_t out[MAX_EXTENTS];
	int32_t m = 0;

	for (int32_t i = 0; i < 2 * n; i++) {
		int64_t e = i < n ? (ext[i] >= size ? size : 0)
				  : ext[i - n] % size;
		bool known = e == 0;

		for (int32_t j = 0; j < m; j++)
			known |= out[j] == e;
		if (!known && m < MAX_EXTENTS)
			out[m++] = e;
	}
	memcpy(ext, out, (size_t)m * sizeof *ext);
	return m;
}

/* Extents of a tile along var, by the blocks around it. */
static int32_t extents(
	const emitter *em, const loop_node *n, int32_t var, int64_t *out)
{
	const loop_node *block[MAX_EXTENTS];
	int32_t n_blocks = 0, m = 1;

	out[0] = var < 0 ? 1 : em->k->var[var].extent;
	for (; n != NULL && var >= 0; n = n->up)
		if (n->kind == LOOP_BLOCK && n->var == var &&
			n_blocks < MAX_EXTENTS)
			block[n_blocks++] = n;
	while (n_blocks > 0)
		m = cut(m, out, block[--n_blocks]->size);
	return m;
}

static const char *extent_is(emitter *em, int32_t var, int64_t n)
{
	return arena_printf(em->a, "%s - %s == %" PRId64, em->span[var].hi,
		em->span[var].lo, n);
}

void em_tile(emitter *em, const loop_node *n)
{
	int64_t rows[MAX_EXTENTS], columns[MAX_EXTENTS];
	int32_t n_rows = extents(em, n, n->row_var, rows);
	int32_t n_columns = extents(em, n, n->var, columns);

	if (n_rows == 1 && n->row_var >= 0) /* nobody asks where it ends */
		em_line(em, "(void)%s;", em->span[n->row_var].hi);
	if (n_columns == 1)
		em_line(em, "(void)%s;", em->span[n->var].hi);
	for (int32_t r = 0; r < n_rows; r++)
		for (int32_t c = 0; c < n_columns; c++) {
			if (n_rows * n_columns > 1)
				em_line(em, "if (%s%s%s)",
					n_rows > 1 ? extent_is(em, n->row_var,
							     rows[r])
						   : "",
					n_rows > 1 && n_columns > 1 ? " && "
								    : "",
					n_columns > 1 ? extent_is(em, n->var,
								columns[c])
						      : "");
			variant(em, n, rows[r], columns[c]);
		}
}
