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
	const char *finite, *last; /* sums of whole vectors, and of elements */
	const char *first; /* where the sums begin; "": everywhere */
	const char *array;	   /* all accumulators, once they are done */
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

	em->dead = is_part(t, vector) ? em->lanes - t->valid : 0;
	em_line(em, "%s = %s;", acc_name(t, row, vector),
		em_load(em, &p, false).t);
	em->dead = 0;
}

static void store(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;
	struct place_of p = at(t, row, vector);

	em->dead = is_part(t, vector) ? em->lanes - t->valid : 0;
	em_store(em, &p,
		(val){acc_name(t, row, vector), t->e->acc[0], em->lanes, 0});
	em->dead = 0;
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

/* The first of what is added up of a sum: of all, or of a piece by itself. */
static const char *start_of(emitter *em, const loop_node *n, int32_t sum)
{
	for (n = n->up; n != NULL; n = n->up)
		if (n->kind == LOOP_BLOCK && n->var == sum && n->number >= 0)
			return arena_printf(em->a, "b%d_0", sum);
	return "0";
}

/* Where all sums begin: their blocks are the first ones. "": everywhere. */
static const char *is_first(emitter *em, const loop_node *n)
{
	str s = str_new(em->a);

	for (int32_t i = 0; i < n->n_sums; i++) {
		const char *lo = em->span[n->sum[i]].lo;
		const char *from = start_of(em, n, n->sum[i]);

		if (em->span[n->sum[i]].clo != 0 && strcmp(lo, from) != 0)
			str_printf(&s, "%s%s == %s", s.n > 0 ? " && " : "",
				lo, from);
	}
	return s.at;
}

/* Accumulators from where the sums stand, if they do not begin here. */
static void load_all(struct tile *t)
{
	emitter *em = t->em;

	if (t->n->start && t->first[0] == '\0')
		return;
	if (t->n->start) {
		em_line(em, "if (!(%s)) {", t->first);
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

/* The same tile term by term, as the equation says. */
static void one_by_one(struct tile *t, int64_t columns)
{
	emitter *em = t->em;
	int32_t var[2] = {t->n->row_var, t->n->var};
	int64_t n[2] = {t->rows, columns};
	const char *first = t->first, *a = em_fresh(em, "a");
	const char *type = em_type(em, t->e->acc[0], 1), *old = "0";
	struct marks m;
	struct place_of p;

	em_line(em, "if (__builtin_expect(%s, 0)) {", t->finite);
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

/* ---- what is done to finished sums, in loops: it may be much to write ---- */

static void put_in_array(struct tile *t, int32_t row, int32_t vector)
{
	emitter *em = t->em;

	em_line(em, "%s(&%s[%d], %s);",
		em_use(em, "store", t->e->acc[0], em->lanes), t->array,
		(row * t->vectors + vector) * em->lanes,
		acc_name(t, row, vector));
}

static val taken(struct tile *t, const char *at)
{
	emitter *em = t->em;
	const char *v;

	if (em->lanes == 1)
		return (val){at, t->e->acc[0], 1, 0};
	v = em_fresh(em, "t");
	em_line(em, "const %s %s = %s(&%s);",
		em_type(em, t->e->acc[0], em->lanes), v,
		em_use(em, "load", t->e->acc[0], em->lanes), at);
	return (val){v, t->e->acc[0], em->lanes, 0};
}

static void put(struct tile *t, const char *at, val v)
{
	emitter *em = t->em;

	if (em->lanes == 1)
		em_line(em, "%s = %s;", at, v.t);
	else
		em_line(em, "%s(&%s, %s);",
			em_use(em, "store", t->e->acc[0], em->lanes), at,
			em_to_lanes(em, v).t);
}

/* at: in the array, the first of a vector, or an element of the last one */
typedef void of_place(struct tile *t, const char *at);

static void columns_of(struct tile *t, of_place *fn, const char *row,
	int64_t from, int64_t n, bool whole)
{
	emitter *em = t->em;
	const char *j = em->var[t->n->var], *lo = em->span[t->n->var].lo;
	const char *c = em_fresh(em, "w");
	int32_t lanes = t->n->lanes;
	struct marks m;

	if (n == 0)
		return;
	em_line(em, "for (int %s = %" PRId64 "; %s < %" PRId64 "; %s += %d) {",
		c, from, c, from + n, c, whole ? lanes : 1);
	em->depth++;
	em_line(em, "const i64 %s = %s + %s;", j, lo, c);
	em_line(em, "(void)%s;", j);
	m = em_mark(em);
	em->lanes = whole ? lanes : 1;
	em->vvar = whole ? t->n->var : -1;
	fn(t, arena_printf(em->a, "%s[%s%s]", t->array, row, c));
	em_release(em, m);
	em->lanes = lanes;
	em->vvar = t->n->var;
	close_loops(em, 1);
}

/* Counters of known ends: a compiler sees that all is inside of the array. */
static void each_place(struct tile *t, of_place *fn)
{
	emitter *em = t->em;
	const char *r = em_fresh(em, "w"), *row = "";
	int64_t lanes = t->n->lanes;
	int32_t whole = t->vectors - (t->valid < lanes), i = t->n->row_var;

	if (i >= 0) {
		em_line(em, "for (int %s = 0; %s < %d; %s++) {", r, r, t->rows,
			r);
		em_line(em, "	const i64 %s = %s + %s;", em->var[i],
			em->span[i].lo, r);
		em_line(em, "	(void)%s;", em->var[i]);
		row = arena_printf(em->a, "%d * %s + ",
			t->vectors * t->n->lanes, r);
	} else {
		em_line(em, "{");
	}
	em->depth++;
	columns_of(t, fn, row, 0, whole * lanes, true);
	if (whole < t->vectors)
		columns_of(t, fn, row, whole * lanes, t->valid, false);
	close_loops(em, 1);
}

/* What stands there becomes what it is in the end; finite: all added up. */
static void finish_place(struct tile *t, const char *at)
{
	emitter *em = t->em;
	const expr *f = t->n->finish;
	val v = taken(t, at);

	em->param[0] = v;
	if (f != NULL) {
		v = em_to_lanes(em, em_ex(em, f));
		put(t, at, v);
	}
	if (t->n->checked)
		em_line(em, "%s += %s;",
			em->lanes > 1 ? t->finite : t->last, v.t);
}

static void add_place(struct tile *t, const char *at)
{
	emitter *em = t->em;
	struct place_of p = em_place_tensor(
		em, t->e->e->out[0], t->e->at, false);
	val v = taken(t, at);

	v.t = arena_printf(em->a, "%s + %s", v.t, em_load(em, &p, false).t);
	put(t, at, v);
}

static void store_place(struct tile *t, const char *at)
{
	struct place_of p = em_place_tensor(
		t->em, t->e->e->out[0], t->e->at, false);

	em_store(t->em, &p, taken(t, at));
}

/*
 * A term that is nothing was 0 times something: is that nothing, too? Then the
 * sum of all is a number. last: of elements, besides; NULL: there are none.
 */
static void check(struct tile *t)
{
	emitter *em = t->em;
	const char *bad = em_fresh(em, "t"), *v = t->finite;

	em_line(em, "%s -= %s;", v, v);
	for (int32_t half = em->lanes / 2; half > 0; half /= 2) {
		str s = str_new(em->a);

		for (int32_t i = 0; i < em->lanes; i++)
			str_printf(&s, ", %d", (i + half) % em->lanes);
		em_line(em, "%s += __builtin_shufflevector(%s, %s%s);", v, v,
			v, s.at);
	}
	if (t->last != NULL)
		em_line(em, "const int %s = %s[0] != 0 || !(%s - %s == 0);",
			bad, v, t->last, t->last);
	else
		em_line(em, "const int %s = %s[0] != 0;", bad, v);
	t->finite = bad;
}

/* Lanes of an accumulator that are columns; the others are anything. */
static const char *columns_only(struct tile *t, int32_t vector, const char *a)
{
	emitter *em = t->em;
	int32_t bytes = (int32_t)dtype_size(t->e->acc[0]);
	str s = str_new(em->a);

	if (!is_part(t, vector))
		return a;
	for (int32_t l = 0; l < em->lanes; l++)
		str_printf(&s, "%s%d", l > 0 ? ", " : "", -(l < t->valid));
	return arena_printf(em->a, "%s((%s){%s}, %s, %s(0))",
		em_use(em, "sel", t->e->acc[0], em->lanes),
		em_mask_type(em, bytes), s.at, a,
		em_use(em, "splat", t->e->acc[0], em->lanes));
}

/* The tile from its registers, if what it adds up are numbers. */
static void store_checked(struct tile *t, int64_t columns)
{
	emitter *em = t->em;
	const char *type = em_type(em, t->e->acc[0], em->lanes);
	const char **sum = arena_array(em->a, const char *, t->vectors);

	for (int32_t v = 0; v < t->vectors; v++) {
		sum[v] = em_fresh(em, "t");
		em_line(em, "%s %s = { 0 };", type, sum[v]);
		for (int32_t r = 0; r < t->rows; r++)
			em_line(em, "%s += %s;", sum[v],
				columns_only(t, v, acc_name(t, r, v)));
		if (v > 0)
			em_line(em, "%s += %s;", sum[0], sum[v]);
	}
	t->finite = sum[0];
	t->last = NULL;
	check(t);
	one_by_one(t, columns);
	each(t, store);
	close_loops(em, 1);
}

/* What becomes of the sums in the end is added to what there is of them. */
static void finish(struct tile *t, int64_t columns)
{
	emitter *em = t->em;
	const char *type = em_type(em, t->e->acc[0], em->lanes);

	t->array = em_fresh(em, "t");
	em_line(em, "%s %s[%d];", em_type(em, t->e->acc[0], 1), t->array,
		t->rows * t->vectors * em->lanes);
	each(t, put_in_array);
	if (t->n->checked) {
		t->finite = em_fresh(em, "t");
		t->last = em_fresh(em, "t");
		em_line(em, "%s %s = { 0 };", type, t->finite);
		em_line(em, "%s %s = 0;", em_type(em, t->e->acc[0], 1),
			t->last);
	}
	each_place(t, finish_place);
	if (t->n->checked) {
		check(t);
		one_by_one(t, columns);
	}
	if (t->first[0] != '\0')
		em_line(em, "if (!(%s)) {", t->first);
	else
		em_line(em, "{");
	em->depth++;
	if (!t->n->start || t->first[0] != '\0')
		each_place(t, add_place);
	close_loops(em, 1);
	each_place(t, store_place);
	close_loops(em, t->n->checked);
}

/* A tile of so many rows and columns. */
static void variant(emitter *em, const loop_node *n, int64_t rows,
	int64_t columns)
{
	struct tile t = {em, n, &em->k->eqn[n->eqn], (int32_t)rows,
		(int32_t)((columns + n->lanes - 1) / n->lanes),
		(int32_t)((columns - 1) % n->lanes) + 1, em_fresh(em, "a"),
		"", "", is_first(em, n), ""};
	struct marks m = em_mark(em);
	bool skips;
	struct span *old = arena_copy(em->a, em->span,
		(size_t)em->k->n_vars * sizeof *old);

	em_line(em, "{");
	em->depth++;
	em_line(em, "const i64 %s = %s;", em->var[n->var],
		em->span[n->var].lo);
	if (n->row_var >= 0)
		em_line(em, "const i64 %s = %s;", em->var[n->row_var],
			em->span[n->row_var].lo);
	em->vvar = n->var;
	em->lanes = n->lanes;
	em_narrow(em, n);
	skips = n->n_needs > 0 && t.first[0] != '\0';
	if (skips) { /* nothing to add */
		em_line(em, "if (%s < %s || (%s)) {", em->span[n->sum[0]].lo,
			em->span[n->sum[0]].hi, t.first);
		em->depth++;
	}
	each(&t, declare);
	if (n->finish == NULL)
		load_all(&t);
	open_sums(&t);
	if (n->n_ahead > 0)
		each(&t, ahead);
	products(&t);
	close_loops(em, n->n_sums);
	if (n->finish != NULL)
		finish(&t, columns);
	else if (n->checked)
		store_checked(&t, columns);
	else
		each(&t, store);
	close_loops(em, skips);
	em->lanes = 1;
	em->vvar = -1;
	em_release(em, m);
	memcpy(em->span, old, (size_t)em->k->n_vars * sizeof *old);
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
