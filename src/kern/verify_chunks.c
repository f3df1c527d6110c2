/*
 * verify_chunks.c: no chunk of a phase writes what another one reads or writes.
 *
 * Each address is a sum of digits of the chunk's number and of what lies in known
 * intervals (verify_address.c). Two chunks meet in an element where the difference
 * of two addresses is 0. Terms are sorted by their factors; where what the small ones add up to is
 * less than what all larger factors are multiples of, both sums are 0. A digit
 * that is alone in its sum is then the same in both chunks. If all digits are,
 * the chunks are. The iterations of a loop by warp are compared in the same way:
 * there the digit is the number of the iteration, and what is defined in front of
 * the loop is one value for all warps.
 */
#include "kern/verify_address.h"

/* The bounds of f where t stands: asked for once. */
static struct kern_bounds bounds_of(struct kern_verifier *v,
	const struct kern_touch *t, const kern_form *f)
{
	const void *key[2] = {f, t->facts};
	int64_t at = map_get(v->known, key, sizeof key, -1);
	struct kern_bounds *b;

	if (at >= 0)
		return v->bounds.at[at];
	kern_put_facts(v, t);
	at = v->bounds.n;
	b = vec_push(v->a, &v->bounds);
	b->least = kern_least(&v->range, f, INT64_MAX);
	b->most = kern_most(&v->range, f, INT64_MIN);
	v->range.fact.n = 0;
	map_set(v->known, key, sizeof key, at);
	return *b;
}

/* ---- the difference of two addresses, which is 0 ---- */

/* Digits that are known to be the same. */
struct same {
	int32_t n;
	kern_val at[4 * KERN_MOST_TERMS];
};

struct difference {
	const struct kern_address *of[2];
	int32_t n;
	struct kern_part t[2 * KERN_MOST_TERMS]; /* by factor, which is positive */
	int64_t c0;
	struct same same; /* digits that are found to be the same */
};

static void insert(struct difference *d, struct kern_part t)
{
	int32_t i = d->n++;
	int64_t lo = t.lo;

	if (t.factor < 0) {
		t.factor = -t.factor;
		t.lo = -t.hi;
		t.hi = -lo;
	}
	for (; i > 0 && d->t[i - 1].factor > t.factor; i--)
		d->t[i] = d->t[i - 1];
	d->t[i] = t;
}

/* What one address has and the other one has not. */
static bool insert_rest(struct difference *d, struct kern_part t, int32_t side)
{
	int64_t c;

	if (t.lo == t.hi) {
		bool ok = mul_ok(t.factor, side == 0 ? t.lo : -t.lo, &c) &&
			  add_ok(d->c0, c, &d->c0);

		return ok;
	}
	t.digit = 0;
	t.side = side;
	if (side == 1)
		t.factor = -t.factor;
	insert(d, t);
	return true;
}

/* A digit of both: how far they differ. */
static bool insert_digit(
	struct difference *d, const struct kern_part *a, const struct kern_part *b)
{
	struct kern_part t = *a;
	int64_t c;

	if (kern_is_common(d->of[0]->v, t.digit))
		return true;
	t.lo = a->lo - b->hi;
	t.hi = a->hi - b->lo;
	t.side = -1;
	t.other = b->part;
	if (t.lo != t.hi) {
		insert(d, t);
		return true;
	}
	if (t.lo == 0)
		d->same.at[d->same.n++] = t.digit;
	return mul_ok(t.factor, t.lo, &c) && add_ok(d->c0, c, &d->c0);
}

/* Digits with the same factor in both are one term. */
static bool subtract(struct difference *d, const struct kern_address *a,
	const struct kern_address *b)
{
	bool used[KERN_MOST_TERMS] = {false}, ok = true;

	d->of[0] = a;
	d->of[1] = b;
	d->n = d->same.n = 0;
	d->c0 = a->c0 - b->c0;
	for (int32_t i = 0; i < a->n && ok; i++) {
		int32_t j = 0;

		while (j < b->n && (a->t[i].digit == 0 || used[j] ||
					   b->t[j].digit != a->t[i].digit ||
					   b->t[j].factor != a->t[i].factor))
			j++;
		if (j < b->n)
			used[j] = true;
		ok = j < b->n ? insert_digit(d, &a->t[i], &b->t[j])
			      : insert_rest(d, a->t[i], 0);
	}
	for (int32_t j = 0; j < b->n && ok; j++)
		ok = used[j] || insert_rest(d, b->t[j], 1);
	return ok;
}

/* Terms from .. to - 1 and a constant: what they add up to. */
struct group {
	int32_t from, to;
	int64_t c0, lo, hi;
};

static bool add_up(const struct difference *d, struct group *g)
{
	bool ok = true;

	g->lo = g->hi = g->c0;
	for (int32_t i = g->from; i < g->to && ok; i++) {
		int64_t a, b;

		ok = mul_ok(d->t[i].factor, d->t[i].lo, &a) &&
		     mul_ok(d->t[i].factor, d->t[i].hi, &b) &&
		     add_ok(g->lo, a, &g->lo) && add_ok(g->hi, b, &g->hi);
	}
	return ok;
}

/* What one address has of the terms, as a form; lanes go to lo and hi. */
static const kern_form *sum_of(const struct difference *d,
	const struct group *g, int32_t side, int64_t *lo, int64_t *hi)
{
	kern_kernel *k = d->of[0]->v->k;
	const kern_form *sum = kern_form_const(k, 0);

	for (int32_t i = g->from; i < g->to; i++) {
		const struct kern_part *t = &d->t[i];

		if (t->part != NULL && (t->side == side || t->side < 0))
			sum = kern_form_add(k, sum,
				t->side < 0 && side == 1 ? t->other : t->part);
		if (t->part == NULL && side == 0) {
			*lo += t->factor * t->lo;
			*hi += t->factor * t->hi;
		}
	}
	return sum;
}

/*
 * Terms of one loop and of the one around it say more together: their forms
 * are added up, and the sum is asked for.
 */
static void together(const struct difference *d, struct group *g)
{
	int64_t lo = g->c0, hi = g->c0;
	struct kern_verifier *v = d->of[0]->v;

	for (int32_t side = 0; side < 2; side++) {
		const kern_form *f = sum_of(d, g, side, &lo, &hi);
		struct kern_bounds b =
			bounds_of(v, d->of[side]->touch, f);

		if (b.least == INT64_MIN || b.most == INT64_MAX)
			return;
		lo += side == 0 ? b.least : -b.most;
		hi += side == 0 ? b.most : -b.least;
	}
	g->lo = lo > g->lo ? lo : g->lo;
	g->hi = hi < g->hi ? hi : g->hi;
}

/* Does it lie within -m + 1 .. m - 1, less t * m? */
static bool is_below(
	const struct difference *d, struct group *g, int64_t m, int64_t *t)
{
	for (int32_t i = 0; i < 2; i++) {
		*t = floor_div(g->hi, m);
		if (g->lo - *t * m > -m)
			return true;
		if (i == 0)
			together(d, g);
	}
	return false;
}

/*
 * true: the terms and the constant are never 0 together. Else: the digits that
 * are the same where they are. What is less than all larger factors are
 * multiples of is 0 by itself.
 */
static bool never(struct difference *d, struct group g)
{
	int64_t m = 0, t;

	if (!add_up(d, &g))
		return false;
	if (g.lo <= 0 && g.hi >= 0 && g.to > g.from)
		together(d, &g);
	if (g.lo > 0 || g.hi < 0)
		return true;
	if (g.to - g.from == 1 && d->t[g.from].digit != 0) {
		if (g.c0 == 0)
			d->same.at[d->same.n++] = d->t[g.from].digit;
		return g.c0 % d->t[g.from].factor != 0;
	}
	for (int32_t i = g.to - 1; i > g.from; i--) {
		struct group low = {g.from, i, g.c0, 0, 0}, high = g;

		m = gcd_i64(m, d->t[i].factor);
		if (!add_up(d, &low) || !is_below(d, &low, m, &t))
			continue;
		low.c0 -= t * m;
		high.from = i;
		high.c0 = t * m;
		return never(d, low) || never(d, high);
	}
	return false;
}

/* floor(chunk / den) mod m; m 0: of any size */
struct digit {
	int64_t den, m;
};

/* v as such a digit; false: it is none */
static bool digit_of(const kern_kernel *k, kern_val v, struct digit *d)
{
	const kern_value *x = kern_at(k, v);
	int64_t n = x->num[0];

	if (x->op == KERN_CHUNK) {
		*d = (struct digit){1, 0};
		return true;
	}
	if (!kern_is_digit(k, v) || x->form[0]->c0 != 0 ||
		!digit_of(k, x->form[0]->t[0].v, d) || d->m % n != 0)
		return false;
	if (x->op == KERN_MOD)
		d->m = n;
	else
		d->m /= n;
	return x->op == KERN_MOD || mul_ok(d->den, n, &d->den);
}

/*
 * Digits that are the same give what the chunk's number is the same in: from
 * chunk mod 5 and (chunk / 5) mod 4 follows chunk mod 20, and so on.
 */
static bool gives_chunk(struct kern_verifier *v, const struct same *s)
{
	int64_t n = v->range.n_chunks, known = 1, next;
	bool more = true;

	for (int32_t i = 0; v->by_warp != NULL && i < s->n; i++)
		if (s->at[i] == v->by_warp->v)
			return true;
	if (v->by_warp != NULL)
		return false;
	while (more && known < n) {
		more = false;
		for (int32_t i = 0; i < s->n && known < n; i++) {
			struct digit d;

			if (!digit_of(v->k, s->at[i], &d) || known % d.den != 0)
				continue;
			if (d.m == 0 || !mul_ok(d.den, d.m, &next))
				next = n;
			more |= next > known;
			known = next > known ? next : known;
		}
	}
	return known >= n;
}

/* Digits that are in no address may be what conditions say, in both chunks. */
static void find_given(struct kern_verifier *v, struct difference *d)
{
	for (kern_val i = 1; i < v->k->value.n; i++) {
		const kern_form *f = kern_form_term(v->k, 1, i);
		struct kern_bounds a, b;

		if (!kern_is_digit(v->k, i) || d->same.n >= 4 * KERN_MOST_TERMS)
			continue;
		a = bounds_of(v, d->of[0]->touch, f);
		b = bounds_of(v, d->of[1]->touch, f);
		if (a.least == a.most && b.least == b.most &&
			a.least == b.least)
			d->same.at[d->same.n++] = i;
	}
}

/* Do they never meet, or are they of the same chunk where they do? */
static bool are_apart(struct kern_verifier *v, const struct kern_address *a,
	const struct kern_address *b)
{
	struct difference *d = arena_make(v->a, struct difference);

	if (a->never || b->never)
		return true;
	if (!a->ok || !b->ok || !subtract(d, a, b))
		return false;
	if (never(d, (struct group){0, d->n, d->c0, 0, 0}) ||
		gives_chunk(v, &d->same))
		return true;
	find_given(v, d);
	return gives_chunk(v, &d->same);
}

/* The same, by what conditions say of whole addresses. */
static bool within_are_apart(struct kern_verifier *v,
	const struct kern_touch *w, const struct kern_touch *o,
	const struct kern_address *a, const struct kern_address *b)
{
	const struct kern_address *x = kern_address_within(v, w), *y = kern_address_within(v, o);

	return (x != NULL || y != NULL) &&
	       are_apart(v, x != NULL ? x : a, y != NULL ? y : b);
}

/*
 * Lane l alone, where its mask has it; others may be loaded, but nobody looks
 * at them.
 */
static struct kern_address *lane_of(
	struct kern_verifier *v, const struct kern_touch *t, int32_t l)
{
	struct kern_touch *one = arena_make(v->a, struct kern_touch);

	*one = *t;
	one->n[0] = 1;
	one->at = kern_form_addc(v->k, t->at, l * t->step[0]);
	if (t->mask != 0) {
		kern_put_facts(v, t);
		kern_assume(&v->range, t->mask, kern_form_const(v->k, l), true);
		one->n_facts = v->range.fact.n;
		one->facts = kern_verify_facts(v);
	}
	return kern_is_never(&v->range) ? NULL : kern_address_of(v, one, KERN_EACH);
}

/* The same, lane by lane, if a mask says which there are. */
static bool lanes_are_apart(struct kern_verifier *v,
	const struct kern_touch *w, const struct kern_touch *o)
{
	const struct kern_address *b[KERN_MAX_LANES];

	if ((w->mask == 0 && o->mask == 0) || w->n[1] > 1 || o->n[1] > 1)
		return false;
	for (int32_t i = 0; i < o->n[0]; i++)
		b[i] = lane_of(v, o, i);
	for (int32_t i = 0; i < w->n[0]; i++) {
		const struct kern_address *a = lane_of(v, w, i);

		for (int32_t j = 0; j < o->n[0] && a != NULL; j++)
			if (b[j] != NULL && !are_apart(v, a, b[j]))
				return false;
	}
	return true;
}

static void meet(struct kern_verifier *v, const struct kern_touch *w,
	const struct kern_touch *o, const struct kern_address *a,
	const struct kern_address *b)
{
	if (are_apart(v, a, b) || within_are_apart(v, w, o, a, b) ||
		lanes_are_apart(v, w, o) || kern_elements_are_apart(v, w, o) ||
		are_apart(v, kern_address_of(v, w, KERN_WHOLE),
			kern_address_of(v, o, KERN_WHOLE)) ||
		are_apart(v, kern_address_of(v, w, KERN_OTHER),
			kern_address_of(v, o, KERN_OTHER)))
		return;
	v->s = w->s;
	if (v->by_warp != NULL)
		kern_refuse(v, "race",
			o->write ? "two warps may write the same element of %s here and in line %d"
				 : "a warp may write an element of %s that another one reads in line %d",
			kern_access_text(v, w->array), o->s->line);
	kern_refuse(v, "race",
		o->write ? "two chunks may write the same element of %s here and in line %d"
			 : "a chunk may write an element of %s that another one reads in line %d",
		kern_access_text(v, w->array), o->s->line);
}

/* Forgets accesses that differ from an earlier one in nothing but where they are. */
static void drop_equal(struct kern_verifier *v)
{
	map *seen = map_new(v->a);
	int32_t n = 0;

	for (int32_t i = 0; i < v->touch.n; i++) {
		const struct kern_touch *t = &v->touch.at[i];
		int64_t key[] = {t->array, t->write, (intptr_t)t->at, t->step[0],
			t->step[1], t->n[0], t->n[1], t->mask,
			(intptr_t)t->facts};

		if (map_get(seen, key, sizeof key, -1) >= 0)
			continue;
		map_set(seen, key, sizeof key, i);
		v->touch.at[n++] = *t;
	}
	v->touch.n = n;
}

/* Is memory of this space common to chunks, or to the warps of a block? */
static bool is_common_space(const struct kern_verifier *v, kern_space is)
{
	return is != KERN_STACK && (is != KERN_LOCAL || v->by_warp != NULL);
}

/* Compares each access that writes with all others, from the first one on. */
static void compare(struct kern_verifier *v, int32_t first)
{
	int32_t n = v->touch.n;
	struct kern_address **d = arena_array(v->a, struct kern_address *, n + 1);

	for (int32_t i = first; i < n; i++) {
		const struct kern_touch *w = &v->touch.at[i];
		kern_space is = v->k->array.at[w->array].space;

		if (!w->write || !is_common_space(v, is))
			continue;
		for (int32_t j = first; j < n; j++) {
			const struct kern_touch *o = &v->touch.at[j];

			if (!kern_arrays_overlap(v->k, w->array, o->array) ||
				(o->write && j < i))
				continue;
			if (d[i] == NULL)
				d[i] = kern_address_of(v, w, KERN_EACH);
			if (d[j] == NULL)
				d[j] = kern_address_of(v, o, KERN_EACH);
			meet(v, w, o, d[i], d[j]);
		}
	}
}

void kern_verify_chunks(struct kern_verifier *v)
{
	drop_equal(v);
	compare(v, 0);
}

/* The conditions that hold behind the loop are in force again at the end. */
void kern_verify_iterations(struct kern_verifier *v, int32_t first)
{
	const kern_stmt *s = v->s;
	int32_t n = v->range.fact.n;
	struct kern_fact *facts = arena_copy(
		v->a, v->range.fact.at, (size_t)n * sizeof *facts);

	compare(v, first);
	v->range.fact.n = 0;
	for (int32_t i = 0; i < n; i++)
		*vec_push(v->k->a, &v->range.fact) = facts[i];
	v->s = s;
}
