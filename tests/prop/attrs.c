/*
 * attrs.c: attributes of a call, drawn by their kind.
 *
 * Consumes what the patterns bound (axis = length of a.., groups = a digit)
 * and the shapes of the operands; produces attributes that have a fair chance
 * to be accepted. The row decides: what it refuses is drawn again. So a kind
 * needs no more here than several ways to guess:
 *
 *   ints   of length rank, of a pack's length, of 1 ...; small numbers, a
 *          shape, a factorisation of the number of elements, parts of an axis
 */
#include "prop.h"

enum { MAX_INTS = TN_MAX_RANK };

typedef struct drawing {
	bindings *b;
	rng *r;
	const ir_type *first; /* the first operand; or NULL */
	int32_t n_operands;
	const ir_type *operand;
	int32_t n_axes; /* of the last list of axes drawn; -1 none */
} drawing;

static int32_t rank_of(const drawing *d)
{
	return d->first != NULL ? d->first->rank : 0;
}

/* some extent of an operand, one off now and then */
static int64_t near_extent(const drawing *d)
{
	const ir_type *t;
	int64_t off = rng_percent(d->r, 40) ? rng_range(d->r, -1, 1) : 0;

	if (d->n_operands == 0)
		return rng_range(d->r, 0, 9);
	t = &d->operand[rng_below(d->r, d->n_operands)];
	if (t->rank == 0)
		return rng_range(d->r, 0, 3);
	return t->shape[rng_below(d->r, t->rank)] + off;
}

static int64_t small_int(const drawing *d)
{
	int64_t p = rng_below(d->r, 100);

	if (p < 50)
		return rng_range(d->r, 0, 4);
	if (p < 70)
		return rng_range(d->r, -2, 6);
	return near_extent(d);
}

static double some_real(const drawing *d)
{
	static const double list[] = {0.5, 1, 2, 0.25, 0, -1, 1.5, 3, 0.125,
		1e-3, 0.7, -0.5};

	return list[rng_below(d->r, (int64_t)(sizeof list / sizeof *list))];
}

/* ---- lists ---- */

static int32_t some_length(const drawing *d)
{
	int64_t p = rng_below(d->r, 100);

	if (d->n_axes >= 0 && p < 50)
		return d->n_axes;
	if (p < 60)
		return rank_of(d);
	for (int32_t i = 0; p < 85 && d->b->n > 0 && i < 5; i++) {
		const bound *x = &d->b->at[rng_below(d->r, d->b->n)];

		if (x->is_pack)
			return x->n;
	}
	return (int32_t)rng_range(d->r, 0, 4);
}

/* The number of elements of the first operand as a product of extents. */
static int32_t factors(const drawing *d, int64_t *v)
{
	int64_t rest = d->first != NULL ? type_numel(d->first) : 1;
	int32_t n = (int32_t)rng_range(d->r, rest == 1 ? 0 : 1, 4);

	for (int32_t i = 0; i < n; i++) {
		int64_t f = rest;

		if (i < n - 1 && rest > 0)
			for (f = rng_range(d->r, 1, rest < 12 ? rest : 12);
				rest % f != 0;)
				f--;
		v[i] = f;
		rest = f > 0 ? rest / f : 1;
	}
	return n;
}

/* The first operand's shape, with axes of extent 1 widened, more in front. */
static int32_t wider(const drawing *d, int64_t *v)
{
	int32_t more = (int32_t)rng_range(d->r, 0, 1), n = 0;

	if (rank_of(d) + more > MAX_INTS)
		more = 0;
	for (int32_t i = 0; i < more; i++)
		v[n++] = rng_range(d->r, 0, 4);
	for (int32_t i = 0; i < rank_of(d); i++, n++) {
		v[n] = d->first->shape[i];
		if (v[n] == 1 && rng_percent(d->r, 50))
			v[n] = rng_range(d->r, 1, 5);
	}
	return n;
}

/* Parts of one axis. */
static int32_t parts(const drawing *d, int64_t *v)
{
	int64_t rest;
	int32_t n = 0;

	if (rank_of(d) == 0)
		return 0;
	rest = d->first->shape[rng_below(d->r, rank_of(d))];
	while (n < 3 && rest > 0) {
		v[n] = rng_range(d->r, 0, rest);
		rest -= v[n++];
	}
	v[n++] = rest;
	return n;
}

static int32_t numbers(const drawing *d, int64_t *v)
{
	static const struct {
		int64_t lo, hi;
	} spans[] = {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {-1, 2}, {0, 0}, {1, 1}};
	int32_t n = some_length(d);
	int64_t s = rng_below(d->r, (int64_t)(sizeof spans / sizeof *spans));

	for (int32_t i = 0; i < n; i++)
		v[i] = rng_range(d->r, spans[s].lo, spans[s].hi);
	return n;
}

/* As many as there are axes, each within its axis. */
static int32_t within(const drawing *d, int64_t *v)
{
	int32_t n = some_length(d);

	for (int32_t i = 0; i < n; i++)
		v[i] = i < rank_of(d) ? rng_range(d->r, 0, d->first->shape[i])
				      : 0;
	return n;
}

static int32_t shape(const drawing *d, int64_t *v)
{
	int32_t n = (int32_t)rng_range(d->r, 0, 3);

	for (int32_t i = 0; i < n; i++)
		v[i] = draw_extent(d->b);
	return n;
}

static void draw_ints(arena *a, const drawing *d, ir_attr *t, int32_t length)
{
	static int32_t (*const ways[])(const drawing *, int64_t *) = {numbers,
		numbers, numbers, within, factors, wider, parts, shape};
	int64_t *v = arena_array(a, int64_t, MAX_INTS);

	t->kind = ATTR_INTS;
	t->ints = v;
	if (length >= 0) {
		t->n = length < MAX_INTS ? length : MAX_INTS;
		for (int32_t i = 0; i < t->n; i++)
			v[i] = rng_range(d->r, 0, 6);
		return;
	}
	t->n = ways[rng_below(d->r, (int64_t)(sizeof ways / sizeof *ways))](
		d, v);
}

static void draw_subset(arena *a, drawing *d, ir_attr *t)
{
	int64_t *v = arena_array(a, int64_t, MAX_INTS);
	int32_t percent = (int32_t)rng_range(d->r, 10, 90);

	t->kind = ATTR_INTS;
	t->ints = v;
	for (int32_t i = 0; i < rank_of(d); i++)
		if (rng_percent(d->r, percent))
			v[t->n++] = rng_percent(d->r, 20) ? i - rank_of(d) : i;
	d->n_axes = t->n;
}

static void draw_perm(arena *a, const drawing *d, ir_attr *t)
{
	int64_t *v = arena_array(a, int64_t, MAX_INTS);

	t->kind = ATTR_INTS;
	t->ints = v;
	t->n = rank_of(d);
	for (int32_t i = 0; i < t->n; i++) {
		int32_t k = (int32_t)rng_range(d->r, 0, i);

		v[i] = v[k];
		v[k] = i;
	}
}

/* An equation over letters, for operands of these ranks: "ab,bc->ac". */
static const char *draw_string(arena *a, const drawing *d)
{
	str s = str_new(a);
	int64_t extent[26];
	int32_t n = 0;

	for (int32_t k = 0; k < d->n_operands; k++) {
		if (k > 0)
			str_addc(&s, ',');
		for (int32_t i = 0; i < d->operand[k].rank; i++) {
			int64_t e = d->operand[k].shape[i];
			int32_t l = n;

			for (int32_t tries = 0; n > 0 && tries < 3; tries++) {
				int32_t c = (int32_t)rng_below(d->r, n);

				if (extent[c] == e)
					l = c;
			}
			if (l == n && n < 25)
				extent[n++] = e;
			str_addc(&s, (char)('a' + l));
		}
	}
	str_add(&s, "->");
	for (int32_t i = 0, at = (int32_t)rng_below(d->r, 26); i < 26; i++)
		if ((at + i) % 26 < n && rng_percent(d->r, 60))
			str_addc(&s, (char)('a' + (at + i) % 26));
	return s.at;
}

/* ---- attributes ---- */

static void draw_attr(arena *a, drawing *d, const ir_param *q,
	const bound *x, ir_attr *t)
{
	const char *kind = q->kind;

	if (strncmp(kind, "ints", 4) == 0) {
		draw_ints(a, d, t, x != NULL ? (int32_t)x->e[0] : -1);
		return;
	}
	t->kind = ATTR_INT;
	if (x != NULL)
		t->i = x->e[0];
	if (strcmp(kind, "axis") == 0) {
		if (x == NULL && rank_of(d) > 0)
			t->i = rng_below(d->r, rank_of(d));
		if (rng_percent(d->r, 25))
			t->i -= rank_of(d);
	} else if (x != NULL) {
		return;
	} else if (strcmp(kind, "int") == 0) {
		t->i = small_int(d);
	} else if (strcmp(kind, "flag") == 0) {
		t->i = rng_below(d->r, 2);
	} else if (strcmp(kind, "real") == 0) {
		t->kind = ATTR_REAL;
		t->f = some_real(d);
	} else if (strcmp(kind, "perm") == 0) {
		draw_perm(a, d, t);
	} else if (strcmp(kind, "dtype") == 0) {
		t->kind = ATTR_DTYPE;
		t->dtype = (tn_dtype)rng_below(d->r, TN_N_DTYPES);
	} else if (strcmp(kind, "string") == 0) {
		t->kind = ATTR_STRING;
		t->string = draw_string(a, d);
	} else {
		draw_subset(a, d, t);
	}
}

void draw_attrs(arena *a, bindings *b, const ir_row *r, int32_t n_operands,
	const ir_type *operand, int32_t *n_attrs, ir_attr *attr)
{
	drawing d = {.b = b,
		.r = b->r,
		.first = n_operands > 0 ? &operand[0] : NULL,
		.n_operands = n_operands,
		.operand = operand,
		.n_axes = -1};

	*n_attrs = 0;
	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *q = ir_row_param(r, i);
		const bound *x;

		if (q->is_operand)
			continue;
		x = bindings_find(b, arena_printf(a, "=%s", q->name));
		if (x == NULL && q->default_text != NULL &&
			rng_percent(b->r, 55))
			continue;
		attr[*n_attrs] = (ir_attr){.name = q->name};
		draw_attr(a, &d, q, x, &attr[(*n_attrs)++]);
	}
}
