/*
 * ix_random: random index expressions against what they say.
 *
 *     ix_random --seed S --count N
 *
 * Each system is a box, facts, and a stack of expressions grown by random
 * steps. Every expression is kept twice: as a form, and as the values that the
 * steps give at a set of points - the whole box if it is small, else points
 * drawn from it - computed with plain integers. Where all facts hold, form and
 * values agree; bounds hold and are attained where they promise to be;
 * verdicts on equality and injectivity agree with the values.
 * Functions get hashed values. A failure prints the seed and the
 * system, and ends with status 1.
 */
#include "base/random.h"
#include "ix/local.h"

#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 700, STACK = 40, RANK = 6, FACTS = 2 };

struct exp {
	const ix_form *f;
	int64_t v[POINTS];
};

struct system {
	arena *a;
	ix *x;
	uint64_t seed, draws;
	int64_t extent[RANK];
	ix_fact fact[FACTS];
	ix_dom d, free; /* with and without facts */
	bool whole;	/* the points are the whole box */
	bool functions;
	int32_t n_points, n, n_steps;
	int64_t at[POINTS][RANK];
	bool in[POINTS]; /* the facts hold */
	struct exp e[STACK];
};

static struct {
	int64_t systems, overflows, forms, equal[3], injective[3], permutations;
	int64_t exact, periods;
} tally;

/* ---- draws ---- */

static int64_t below(struct system *s, int64_t n)
{
	return (int64_t)(base_mix64(s->seed + ++s->draws *
		UINT64_C(0x9e3779b97f4a7c15)) % (uint64_t)n);
}

static bool chance(struct system *s, int64_t percent)
{
	return below(s, 100) < percent;
}

static int64_t one_of(struct system *s, const int64_t *v, int64_t n)
{
	return v[below(s, n)];
}

static int64_t value_of(void *arg, int64_t fun, int64_t at)
{
	(void)arg;
	return (int64_t)(base_mix64((uint64_t)at * 31 + (uint64_t)fun) % 5) - 1;
}

/* ---- failure ---- */

static void show(struct system *s, const char *name, const ix_form *f)
{
	str t = str_new(s->a);

	ix_print(&t, f, &s->d.box, NULL, NULL, NULL);
	fprintf(stderr, "  %s = %s\n", name, t.at);
}

static _Noreturn void failed(struct system *s, const char *what,
	const ix_form *f, const ix_form *g, int32_t point)
{
	fprintf(stderr, "seed %llu: %s\n  box", (unsigned long long)s->seed,
		what);
	for (int32_t i = 0; i < s->d.box.n; i++)
		fprintf(stderr, " %lld", (long long)s->extent[i]);
	fprintf(stderr, "\n");
	for (int32_t i = 0; i < s->d.n_facts; i++) {
		fprintf(stderr, "  fact %lld <= . < %lld",
			(long long)s->fact[i].lo, (long long)s->fact[i].hi);
		show(s, "", s->fact[i].f);
	}
	show(s, "f", f);
	if (g != NULL)
		show(s, "g", g);
	if (point >= 0)
		for (int32_t i = 0; i < s->d.box.n; i++)
			fprintf(stderr, "  a_%d=%lld", i,
				(long long)s->at[point][i]);
	fprintf(stderr, "\n");
	exit(1);
}

/* ---- points ---- */

static void make_box(struct system *s)
{
	static const int64_t large[] = {12, 16, 24, 30, 36, 60, 64, 1000, 4096,
		INT64_C(1) << 20, INT64_C(1) << 40};
	int64_t n = 1;
	int32_t rank = (int32_t)below(s, RANK + 1);

	for (int32_t i = 0; i < rank; i++) {
		s->extent[i] = 1 + below(s, chance(s, 30) ? 9 : 4);
		if (chance(s, 12))
			s->extent[i] = one_of(s, large, 11);
		n = n > POINTS ? n : n * s->extent[i];
	}
	s->d.box = (ix_box){rank, s->extent};
	s->free = s->d;
	s->whole = n <= POINTS;
	s->n_points = s->whole ? (int32_t)n : POINTS;
	for (int32_t k = 0; k < s->n_points; k++) {
		int64_t left = k;

		for (int32_t i = rank - 1; i >= 0; i--) {
			int64_t e = s->extent[i];

			s->at[k][i] = s->whole ? left % e :
				chance(s, 20) ? (chance(s, 50) ? 0 : e - 1) :
						below(s, e);
			left /= e;
		}
		s->in[k] = true;
	}
}

/* ---- steps ---- */

static int64_t some_number(struct system *s, const struct exp *e)
{
	static const int64_t round[] = {1, 2, 3, 4, 6, 8, 9, 12, 16, 24};
	const ix_form *f = e->f;

	if (chance(s, 30) && f->n > 0) {
		int64_t c = f->t[below(s, f->n)].coef;
		int64_t k = below(s, 4) + 1;

		if (c > -100000 && c < 100000)
			return (c < 0 ? -c : c) * k;
	}
	if (chance(s, 20) && s->d.box.n > 0)
		return s->extent[below(s, s->d.box.n)];
	return one_of(s, round, 10);
}

static struct exp *push(struct system *s)
{
	if (s->n == STACK)
		s->n--;
	return &s->e[s->n++];
}

static void push_leaf(struct system *s)
{
	struct exp *e = push(s);

	if (s->d.box.n == 0 || chance(s, 10)) {
		int64_t c = below(s, 20) - 10;

		e->f = ix_const(s->x, c);
		for (int32_t k = 0; k < s->n_points; k++)
			e->v[k] = c;
	} else if (chance(s, 60)) {
		int32_t i = (int32_t)below(s, s->d.box.n);

		e->f = ix_axis(s->x, &s->d, i);
		for (int32_t k = 0; k < s->n_points; k++)
			e->v[k] = s->at[k][i];
	} else { /* a digit; its cuts need not divide the extent */
		int32_t i = (int32_t)below(s, s->d.box.n);
		int64_t lo = below(s, 5) + 1, m = below(s, 4) + 2;

		e->f = ix_digit(s->x, &s->d, i, lo, lo * m);
		for (int32_t k = 0; k < s->n_points; k++)
			e->v[k] = s->at[k][i] / lo % m;
	}
}

/* Far enough from 64 bits, all over the box. */
static bool small(const struct system *s, const struct exp *e, int64_t by)
{
	int64_t min, max, most = (INT64_C(1) << 50) / by;

	ix_range(&s->free, e->f, &min, &max);
	return min > -most && max < most && e->f->n < 20;
}

static void push_sum(struct system *s, const struct exp *a, const struct exp *b)
{
	struct exp *e = push(s), r;
	bool plus = chance(s, 70);
	int64_t k = chance(s, 60) ? 1 : some_number(s, a);

	if (!small(s, a, 1) || !small(s, b, k))
		k = 0;
	r.f = ix_scale(s->x, b->f, k);
	r.f = plus ? ix_add(s->x, &s->d, a->f, r.f) :
		     ix_sub(s->x, &s->d, a->f, r.f);
	for (int32_t i = 0; i < s->n_points; i++)
		r.v[i] = a->v[i] + (plus ? k : -k) * b->v[i];
	*e = r;
}

static void push_quotient(struct system *s, const struct exp *a)
{
	int64_t m = some_number(s, a);
	bool mod = chance(s, 40);
	struct exp r, *e;

	r.f = mod ? ix_mod(s->x, &s->d, a->f, m) : ix_div(s->x, &s->d, a->f, m);
	for (int32_t k = 0; k < s->n_points; k++)
		r.v[k] = mod ? floor_mod(a->v[k], m) : floor_div(a->v[k], m);
	e = push(s);
	*e = r;
}

static void push_other(struct system *s, const struct exp *a)
{
	struct exp r, *e;

	if (s->functions && chance(s, 50)) {
		int64_t id = below(s, 2);

		r.f = ix_fun(s->x, id, a->f, -1, 4);
		for (int32_t k = 0; k < s->n_points; k++)
			r.v[k] = value_of(NULL, id, a->v[k]);
	} else if (chance(s, 40)) {
		r.f = ix_simplify(s->x, &s->d, a->f);
		memcpy(r.v, a->v, sizeof r.v);
	} else {
		int64_t lo = below(s, 16) - 8, hi = lo + below(s, 12);

		r.f = ix_clamp(s->x, &s->d, a->f, lo, hi);
		for (int32_t k = 0; k < s->n_points; k++)
			r.v[k] = a->v[k] < lo ? lo : a->v[k] > hi ? hi :
				a->v[k];
	}
	e = push(s);
	*e = r;
}

static void step(struct system *s)
{
	struct exp *a, *b;
	int64_t k;

	if (s->n < 2 || chance(s, 25)) {
		push_leaf(s);
		return;
	}
	a = &s->e[s->n - 1 - (chance(s, 60) ? 0 : below(s, s->n))];
	b = &s->e[below(s, s->n)];
	k = below(s, 100);
	if (k < 50)
		push_sum(s, a, b);
	else if (k < 85)
		push_quotient(s, a);
	else
		push_other(s, a);
}

/* From here on only points where an expression is in an interval count. */
static void push_fact(struct system *s)
{
	const struct exp *e = &s->e[s->n - 1];
	int32_t point = -1, n = 0;
	int64_t lo, hi;

	for (int32_t k = 0; k < s->n_points; k++)
		if (s->in[k] && below(s, ++n) == 0)
			point = k;
	if (point < 0 || e->f->n == 0)
		return;
	lo = e->v[point] - below(s, chance(s, 50) ? 4 : 100);
	hi = e->v[point] + 1 + below(s, chance(s, 50) ? 4 : 100);
	s->fact[s->d.n_facts++] = (ix_fact){e->f, lo, hi};
	s->d.facts = s->fact;
	for (int32_t k = 0; k < s->n_points; k++)
		if (e->v[k] < lo || e->v[k] >= hi)
			s->in[k] = false;
}

/* ---- checks ---- */

static void check_form(struct system *s, const struct exp *e)
{
	int64_t min = INT64_MAX, max = INT64_MIN, lo, hi;

	for (int32_t k = 0; k < s->n_points; k++) {
		int64_t v;

		if (!s->in[k])
			continue;
		v = ix_eval(e->f, s->at[k], value_of, NULL);
		if (v != e->v[k])
			failed(s, "form and values differ", e->f, NULL, k);
		min = v < min ? v : min;
		max = v > max ? v : max;
	}
	ix_range(&s->d, e->f, &lo, &hi);
	if (min < lo || max > hi)
		failed(s, "a value out of bounds", e->f, NULL, -1);
	tally.forms++;
	for (int32_t i = 0; i < e->f->n; i++)
		if (e->f->t[i].atom->kind != IX_DIGIT)
			return;
	for (int32_t i = 0; i < s->d.box.n; i++) { /* do all cuts nest? */
		int64_t above = s->extent[i];

		for (int32_t k = 0; k < e->f->n; k++) {
			const ix_atom *a = e->f->t[k].atom;

			if (a->axis == i && above % a->hi != 0 &&
				above < s->extent[i])
				return;
			if (a->axis == i)
				above = a->lo;
		}
	}
	if (!s->whole || s->d.n_facts > 0)
		return;
	if (min != lo || max != hi)
		failed(s, "bounds of digits are not exact", e->f, NULL, -1);
	tally.exact++;
}

/* One period on, the value is one drift on: what equality relies on. */
static void check_period(struct system *s, const struct exp *e)
{
	if (ix_has_fun(e->f))
		return;
	for (int32_t i = 0; i < s->d.box.n; i++) {
		wide drift;
		int64_t l = ix_period(&s->d.box, e->f, i, &drift);

		for (int32_t k = 0; l > 0 && k < s->n_points && k < 60; k++) {
			int64_t at[RANK];

			memcpy(at, s->at[k], sizeof at);
			at[i] += l;
			if (l >= s->extent[i] || at[i] >= s->extent[i])
				continue;
			if (ix_eval(e->f, at, NULL, NULL) - drift !=
				ix_eval(e->f, s->at[k], NULL, NULL))
				failed(s, "a wrong period", e->f, NULL, k);
			tally.periods++;
		}
	}
}

static void check_equal(struct system *s, const struct exp *a,
	const struct exp *b)
{
	ix_verdict v = ix_equal(s->x, &s->d, a->f, b->f);
	int32_t differ = -1;

	tally.equal[v]++;
	if (v != ix_equal(s->x, &s->d, b->f, a->f))
		failed(s, "equality is not symmetric", a->f, b->f, -1);
	for (int32_t k = 0; k < s->n_points; k++)
		if (s->in[k] && a->v[k] != b->v[k])
			differ = k;
	if (v == IX_EQUAL && differ >= 0)
		failed(s, "equal, says ix", a->f, b->f, differ);
	/* functions: different for some function, perhaps not for this one */
	if (v == IX_DIFFERENT && differ < 0 && s->whole && !ix_has_fun(a->f) &&
		!ix_has_fun(b->f) && !s->functions)
		failed(s, "different, says ix", a->f, b->f, -1);
	if (v == IX_UNKNOWN && s->whole && !s->functions)
		failed(s, "unknown on a small box", a->f, b->f, -1);
}

static void check_injective(struct system *s, const struct exp *e)
{
	ix_verdict v = ix_injective(s->x, &s->d, e->f);
	int32_t a = -1, b = -1;

	tally.injective[v]++;
	for (int32_t i = 0; i < s->n_points && a < 0; i++)
		for (int32_t k = 0; k < i && a < 0; k++)
			if (s->in[i] && s->in[k] && e->v[i] == e->v[k] &&
				memcmp(s->at[i], s->at[k], sizeof s->at[i])) {
				a = i;
				b = k;
			}
	if (v == IX_EQUAL && a >= 0) {
		fprintf(stderr, "points %d and %d\n", a, b);
		failed(s, "injective, says ix", e->f, NULL, a);
	}
	if (v == IX_DIFFERENT && a < 0 && s->whole && !s->functions)
		failed(s, "not injective, says ix", e->f, NULL, -1);
	if (v == IX_UNKNOWN && s->whole && !s->functions)
		failed(s, "unknown on a small box", e->f, NULL, -1);
}

/* A random permutation of digits with reversals takes each value once. */
static void check_permutation(struct system *s)
{
	struct { int32_t axis; int64_t lo, hi; } g[128], t;
	const ix_form *f = ix_const(s->x, 0);
	int64_t stride = 1, lo, hi;
	int32_t n = 0;

	for (int32_t i = 0; i < s->d.box.n; i++) {
		for (lo = 1; lo < s->extent[i]; lo = hi) {
			hi = s->extent[i];
			for (int64_t q = 2; q < 9; q++)
				if (n < 20 && hi / lo % q == 0 && chance(s, 40))
					hi = lo * q;
			if (s->extent[i] % hi != 0)
				hi = s->extent[i];
			g[n].axis = i;
			g[n].lo = lo;
			g[n++].hi = hi;
		}
	}
	for (int32_t i = n - 1; i > 0; i--) {
		int32_t k = (int32_t)below(s, i + 1);

		t = g[i];
		g[i] = g[k];
		g[k] = t;
	}
	for (int32_t i = 0; i < n; i++) {
		const ix_form *v = ix_digit(s->x, &s->free, g[i].axis, g[i].lo,
			g[i].hi);
		int64_t e = g[i].hi / g[i].lo;

		if (stride > (INT64_C(1) << 46) / e)
			return;
		if (chance(s, 20))
			v = ix_addc(s->x, ix_scale(s->x, v, -1), e - 1);
		f = ix_add(s->x, &s->free, f, ix_scale(s->x, v, stride));
		stride *= e;
	}
	if (ix_injective(s->x, &s->free, f) != IX_EQUAL)
		failed(s, "a permutation is not injective", f, NULL, -1);
	tally.permutations++;
}

/* f over the box as a composition: axes are digits of one linear axis. */
static void check_subst(struct system *s, const struct exp *e)
{
	const ix_form *at[RANK] = {NULL}, *f, *lin;
	int64_t numel = shape_numel(s->extent, s->d.box.n);
	ix_dom line = {{1, &numel}, 0, NULL};

	if (numel < 0)
		return;
	ix_delinearise(s->x, &line, ix_axis(s->x, &line, 0), s->d.box.n,
		s->extent, at);
	lin = ix_linearise(s->x, &line, s->d.box.n, s->extent, at);
	if (lin != ix_axis(s->x, &line, 0))
		failed(s, "linear address of coordinates", lin, NULL, -1);
	f = ix_subst(s->x, &line, e->f, s->d.box.n, s->extent, at);
	for (int32_t k = 0; k < s->n_points; k++) {
		int64_t p = 0;

		for (int32_t i = 0; i < s->d.box.n; i++)
			p = p * s->extent[i] + s->at[k][i];
		if (s->in[k] && ix_eval(f, &p, value_of, NULL) != e->v[k])
			failed(s, "a composition differs", e->f, f, k);
	}
}

static void run_system(arena *a, uint64_t seed)
{
	struct system *s = arena_make(a, struct system);

	s->a = a;
	s->x = ix_new(a);
	s->seed = seed;
	s->functions = chance(s, 15);
	make_box(s);
	for (int32_t i = 4 + (int32_t)below(s, 20); i > 0; i--)
		step(s);
	if (chance(s, 50)) {
		push_fact(s);
		for (int32_t i = 2 + (int32_t)below(s, 10); i > 0; i--)
			step(s);
		if (chance(s, 40))
			push_fact(s);
		for (int32_t i = 2 + (int32_t)below(s, 6); i > 0; i--)
			step(s);
	}
	for (int32_t i = 0; i < s->n; i++) {
		check_form(s, &s->e[i]);
		check_period(s, &s->e[i]);
	}
	for (int32_t i = 0; i < 4; i++) {
		const struct exp *e = &s->e[below(s, s->n)];
		struct exp other = s->e[s->n - 1];

		check_equal(s, e, &s->e[s->n - 1 - below(s, s->n)]);
		/* the same once more, by another way */
		other.f = ix_add(s->x, &s->d, ix_sub(s->x, &s->d, other.f,
			e->f), e->f);
		check_equal(s, &other, &s->e[s->n - 1]);
	}
	if (s->whole || s->d.n_facts == 0) {
		check_injective(s, &s->e[s->n - 1]);
		check_injective(s, &s->e[below(s, s->n)]);
	}
	if (s->d.n_facts == 0)
		check_subst(s, &s->e[s->n - 1]);
	check_permutation(s);
	tally.systems++;
}

/* ---- main ---- */

struct job {
	env *e;
	uint64_t seed;
	arena *a;
};

static void run_job(void *p)
{
	struct job *j = p;

	j->a = arena_new(j->e);
	run_system(j->a, j->seed);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 2000;
	env *e = env_new();

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--count") == 0)
			count = strtoull(argv[i + 1], NULL, 10);
	}
	for (uint64_t i = 0; i < count && e != NULL; i++) {
		struct job j = {e, seed + i, NULL};

		if (env_run(e, run_job, &j) != TN_OK) {
			/* 2^40 * (i mod 4) of a long i, on its way */
			if (strcmp(env_diag(e)->rule, "ix.overflow") != 0) {
				fprintf(stderr, "seed %llu: %s\n",
					(unsigned long long)(seed + i),
					env_diag(e)->text);
				return 1;
			}
			tally.overflows++;
		}
		arena_free(j.a);
	}
	env_free(e);
	printf("%lld systems, %lld forms, %lld exact bounds, %lld periods, "
	       "%lld permutations\n"
	       "equal/different/unknown: equality %lld/%lld/%lld, "
	       "injective %lld/%lld/%lld\n",
		(long long)tally.systems, (long long)tally.forms,
		(long long)tally.exact, (long long)tally.periods,
		(long long)tally.permutations,
		(long long)tally.equal[0], (long long)tally.equal[1],
		(long long)tally.equal[2], (long long)tally.injective[0],
		(long long)tally.injective[1], (long long)tally.injective[2]);
	if (tally.overflows > 1 + tally.systems / 2000) {
		fprintf(stderr, "%lld overflows\n",
			(long long)tally.overflows);
		return 1;
	}
	return 0;
}
