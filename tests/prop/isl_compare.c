/*
 * isl_compare: verdicts of ix_equal against isl, on random view operations.
 *
 *     isl_compare --seed S [--first I] --count N [--isl-every K]
 *
 * Pairs of paths from one tensor to one shape (paths.h). ix composes their
 * address forms from the tensor outwards; isl gets linear constraints from the
 * last view inwards, made from the operations and not from forms: is there a
 * point where the addresses differ? Small boxes are walked with plain integers besides.
 *
 *   wrong     EQUAL where isl or the walk says different, or the reverse
 *   unknown   ix found no proof: at most 1 in 1,000 (and 2)
 *   gave up   isl used up its operations: the walk alone counts
 *
 * isl takes a hundred times longer than ix and the walk together. With K > 1
 * it is asked about every K-th pair, and all that are too large to walk.
 *
 * Ends with status 1 when anything is wrong or too much is unknown.
 */
#include "paths.h"

#include <isl/ctx.h>
#include <isl/mat.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include <stdio.h>
#include <stdlib.h>

enum { WALKED = 20000, ISL_OPERATIONS = 40000 };

static struct {
	int64_t pairs, verdict[3], pointer, gave_up, walked, wrong, unsettled;
	int64_t guarded, asked;
} tally;

/* ---- isl ---- */

/*
 * Linear constraints only: the variables are the coordinates of the last view,
 * and new ones for each reshape (coordinates with the same flat number) and
 * each edge (one of three cases).
 */
enum { VARS = PATH_RANK * (2 * PATH_OPS + 1) };

typedef struct linear { /* c[0] + sum c[1 + i] * variable i */
	int64_t c[1 + VARS];
} linear;

typedef VEC(linear) rows;

struct model {
	arena *a;
	isl_space *space;
	int32_t n, used; /* variables */
	rows zero, least; /* what is = 0, what is >= 0 */
	isl_set *cases;	  /* of edges; NULL: none */
};

/*
 * A reshape in parts: the fewest axes, of both shapes, that have equally many
 * elements. (6, 4, 5) to (3, 2, 20): 6 to 3 x 2, and 4 x 5 to 20. One flat
 * number for each is the same as one for all, and isl takes a tenth of the time.
 */
struct part {
	int32_t in, n_in, out, n_out; /* the first axis, and how many */
};

static struct part next_part(const path_op *op, struct part p)
{
	int64_t in = 1, out = 1;

	p = (struct part){p.in + p.n_in, 0, p.out + p.n_out, 0};
	while (p.n_in + p.n_out == 0 || in != out) {
		bool more = p.in + p.n_in < op->in.rank;

		if (more && (in <= out || p.out + p.n_out == op->out.rank))
			in *= op->in.at[p.in + p.n_in++];
		else if (p.out + p.n_out < op->out.rank)
			out *= op->out.at[p.out + p.n_out++];
		else
			break;
	}
	return p;
}

static bool is_part(const struct part *p)
{
	return p->n_in + p->n_out > 0;
}

static int32_t variables(const path *p)
{
	int32_t n = 0;

	for (int32_t i = 0; i < p->n; i++) {
		struct part r = {0};

		n += p->op[i].kind == PATH_EDGE;
		if (p->op[i].kind != PATH_RESHAPE)
			continue;
		while (r = next_part(&p->op[i], r), is_part(&r))
			n += r.n_in > 1 ? r.n_in : 0;
	}
	return n;
}

/* k*a + c0 */
static linear scaled(linear a, int64_t k, int64_t c0)
{
	for (int32_t i = 0; i < 1 + VARS; i++)
		a.c[i] *= k;
	a.c[0] += c0;
	return a;
}

/* a + k*b */
static linear plus(linear a, int64_t k, linear b)
{
	for (int32_t i = 0; i < 1 + VARS; i++)
		a.c[i] += k * b.c[i];
	return a;
}

static isl_mat *matrix(const struct model *m, const rows *r)
{
	isl_ctx *ctx = isl_space_get_ctx(m->space);
	isl_mat *mat = isl_mat_alloc(ctx, (unsigned)r->n,
		(unsigned)(1 + m->n));

	for (int32_t i = 0; i < r->n; i++)
		for (int32_t k = 0; k <= m->n; k++)
			mat = isl_mat_set_element_val(mat, i, k,
				isl_val_int_from_si(ctx, (long)r->at[i].c[k]));
	return mat;
}

static isl_set *set_of(const struct model *m, const rows *zero,
	const rows *least)
{
	return isl_set_from_basic_set(isl_basic_set_from_constraint_matrices(
		isl_space_copy(m->space), matrix(m, zero), matrix(m, least),
		isl_dim_cst, isl_dim_param, isl_dim_set, isl_dim_div));
}

/* 0 <= a < n */
static void within(struct model *m, rows *r, linear a, int64_t n)
{
	*vec_push(m->a, r) = a;
	*vec_push(m->a, r) = scaled(a, -1, n - 1);
}

static linear fresh(struct model *m, int64_t extent)
{
	linear v = {{0}};

	v.c[1 + m->used++] = 1;
	within(m, &m->least, v, extent);
	return v;
}

/* The number of an element, of n axes from the first. */
static linear flat(const int64_t *extent, const linear *at, int32_t n)
{
	linear f = {{0}};

	for (int32_t i = 0; i < n; i++)
		f = plus(scaled(f, extent[i], 0), 1, at[i]);
	return f;
}

static void reshape(struct model *m, const path_op *op, linear *at)
{
	linear to[PATH_RANK] = {{{0}}};
	struct part r = {0};

	while (r = next_part(op, r), is_part(&r)) {
		linear f = flat(op->out.at + r.out, at + r.out, r.n_out);

		if (r.n_in == 1) /* between its ends as the others are */
			to[r.in] = f;
		if (r.n_in == 1)
			continue;
		for (int32_t i = r.in; i < r.in + r.n_in; i++)
			to[i] = fresh(m, op->in.at[i]);
		*vec_push(m->a, &m->zero) = plus(f, -1,
			flat(op->in.at + r.in, to + r.in, r.n_in));
	}
	memcpy(at, to, (size_t)op->in.rank * sizeof *at);
}

/* c is v held in 0 .. n-1: below, inside, above. */
static linear edge(struct model *m, linear v, int64_t n)
{
	linear c = fresh(m, n);
	isl_set *any = NULL;

	for (int k = 0; k < 3; k++) {
		rows zero = {0}, least = {0};
		isl_set *s;

		*vec_push(m->a, &zero) = k == 0 ? c :
			k == 1 ? plus(c, -1, v) : scaled(c, 1, 1 - n);
		if (k == 1)
			within(m, &least, v, n);
		else
			*vec_push(m->a, &least) = k == 0 ?
				scaled(v, -1, -1) : scaled(v, 1, -n);
		s = set_of(m, &zero, &least);
		any = any == NULL ? s : isl_set_union(any, s);
	}
	m->cases = m->cases == NULL ? any : isl_set_intersect(m->cases, any);
	return c;
}

static void transpose(const path_op *op, linear *at)
{
	linear to[PATH_RANK];

	for (int32_t i = 0; i < op->in.rank; i++)
		to[op->perm[i]] = at[i];
	memcpy(at, to, (size_t)op->in.rank * sizeof *at);
}

/* Coordinates of the view behind op, from those in front of it. */
static void through(struct model *m, const path_op *op, linear *at)
{
	const int32_t a = op->axis;
	const int64_t n = op->in.at[a];

	switch (op->kind) {
	case PATH_TRANSPOSE:
		transpose(op, at);
		break;
	case PATH_RESHAPE:
		reshape(m, op, at);
		break;
	case PATH_SLICE:
		at[a] = scaled(at[a], op->step, op->start);
		break;
	case PATH_FLIP:
		at[a] = scaled(at[a], -1, n - 1);
		break;
	case PATH_PAD:
		at[a] = scaled(at[a], 1, -op->start);
		within(m, &m->least, at[a], n);
		break;
	case PATH_EDGE:
		at[a] = edge(m, scaled(at[a], 1, -op->start), n);
		break;
	case PATH_WINDOW:
		at[a] = plus(scaled(at[a], op->step, 0), op->dilation,
			at[a + 1]);
		for (int32_t i = a + 1; i < op->in.rank; i++)
			at[i] = at[i + 1];
		break;
	case PATH_KINDS:
		break;
	}
}

static linear address(struct model *m, const path *p)
{
	linear at[PATH_RANK + 1] = {{{0}}};

	for (int32_t i = 0; i < path_out(p)->rank; i++)
		at[i].c[1 + i] = 1;
	for (int32_t i = p->n - 1; i >= 0; i--)
		through(m, &p->op[i], at);
	return flat(p->base.at, at, p->base.rank);
}

/* Is there a point with a < b? */
static isl_bool never_less(struct model *m, linear a, linear b)
{
	isl_set *s;
	isl_bool none;

	*vec_push(m->a, &m->least) = scaled(plus(b, -1, a), 1, -1);
	s = set_of(m, &m->zero, &m->least);
	m->least.n--;
	if (m->cases != NULL)
		s = isl_set_intersect(s, isl_set_copy(m->cases));
	none = isl_set_is_empty(s);
	isl_set_free(s);
	return none;
}

/* UNKNOWN: isl gave up. */
static ix_verdict ask_isl(arena *a, isl_ctx *ctx, const path *p,
	const path *q)
{
	const path_shape *s = path_out(p);
	struct model m = {.a = a};
	linear fp, fq;
	isl_bool none;

	isl_ctx_reset_operations(ctx);
	isl_ctx_reset_error(ctx);
	m.n = s->rank + variables(p) + variables(q);
	m.space = isl_space_set_alloc(ctx, 0, (unsigned)m.n);
	for (int32_t i = 0; i < s->rank; i++)
		(void)fresh(&m, s->at[i]);
	fp = address(&m, p);
	fq = address(&m, q);
	none = never_less(&m, fp, fq);
	if (none == isl_bool_true)
		none = never_less(&m, fq, fp);
	isl_set_free(m.cases);
	isl_space_free(m.space);
	return none == isl_bool_error ? IX_UNKNOWN :
		none == isl_bool_true ? IX_EQUAL : IX_DIFFERENT;
}

/* ---- plain integers ---- */

static ix_verdict walk(const path *a, const path *b)
{
	const path_shape *s = path_out(a);
	int64_t n = path_numel(s);

	if (n > WALKED)
		return IX_UNKNOWN;
	for (int64_t k = 0; k < n; k++) {
		int64_t at[PATH_RANK] = {0}, left = k, va, vb;

		for (int32_t i = s->rank - 1; i >= 0; i--) {
			at[i] = left % s->at[i];
			left /= s->at[i];
		}
		if (path_element(a, at, &va) && path_element(b, at, &vb) &&
			va != vb)
			return IX_DIFFERENT;
	}
	return IX_EQUAL;
}

/* ---- one pair ---- */

static const char *const word[] = {"equal", "different", "unknown"};

static void report(arena *a, uint64_t seed, const path *p, const path *q,
	const ix_dom *d, const ix_form *f, const ix_form *g)
{
	str s = str_new(a);

	path_print(&s, p);
	str_add(&s, "\n  ");
	path_print(&s, q);
	str_add(&s, "\n  ");
	ix_print(&s, f, &d->box, NULL, NULL, NULL);
	str_add(&s, "\n  ");
	ix_print(&s, g, &d->box, NULL, NULL, NULL);
	for (int32_t i = 0; i < d->n_facts; i++) {
		str_printf(&s, "\n  %lld <= ", (long long)d->facts[i].lo);
		ix_print(&s, d->facts[i].f, &d->box, NULL, NULL, NULL);
		str_printf(&s, " < %lld", (long long)d->facts[i].hi);
	}
	fprintf(stderr, "seed %llu:\n  %s\n", (unsigned long long)seed, s.at);
}

struct job {
	env *e;
	isl_ctx *ctx;
	uint64_t seed, isl_every;
};

static void compare(void *arg)
{
	struct job *j = arg;
	arena *a = arena_new(j->e);
	ix *x = ix_new(a);
	path *p = arena_array(a, path, 2), *q = p + 1;
	ix_fact *facts = arena_array(a, ix_fact, 2 * PATH_FACTS);
	draw d = {j->seed, 0};
	const ix_form *f, *g;
	ix_verdict v, isl, walked;
	int32_t n = 0;
	bool ask;
	ix_dom dom;

	path_pair(&d, p, q);
	f = path_form(x, p, facts, &n);
	g = path_form(x, q, facts, &n);
	dom = (ix_dom){{path_out(p)->rank, path_out(p)->at}, n, facts};
	v = ix_equal(x, &dom, f, g);
	walked = walk(p, q);
	ask = walked == IX_UNKNOWN || j->seed % j->isl_every == 0;
	isl = ask ? ask_isl(a, j->ctx, p, q) : IX_UNKNOWN;
	tally.pairs++;
	tally.verdict[v]++;
	tally.pointer += v == IX_EQUAL && f == g;
	tally.guarded += n > 0;
	tally.asked += ask;
	tally.gave_up += ask && isl == IX_UNKNOWN;
	tally.walked += walked != IX_UNKNOWN;
	tally.unsettled += isl == IX_UNKNOWN && walked == IX_UNKNOWN;
	if ((v != IX_UNKNOWN && isl != IX_UNKNOWN && v != isl) ||
		(v != IX_UNKNOWN && walked != IX_UNKNOWN && v != walked) ||
		(isl != walked && isl != IX_UNKNOWN && walked != IX_UNKNOWN)) {
		tally.wrong++;
		fprintf(stderr, "WRONG: ix %s, isl %s, walked %s\n", word[v],
			word[isl], word[walked]);
		report(a, j->seed, p, q, &dom, f, g);
	} else if (v == IX_UNKNOWN && getenv("SHOW_UNKNOWN") != NULL) {
		fprintf(stderr, "unknown: isl %s, walked %s\n", word[isl],
			word[walked]);
		report(a, j->seed, p, q, &dom, f, g);
	}
	arena_free(a);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, first = 0, count = 2000, every = 1;
	isl_ctx *ctx = isl_ctx_alloc();
	env *e = env_new();
	bool bad = false;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--first") == 0)
			first = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--count") == 0)
			count = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--isl-every") == 0)
			every = strtoull(argv[i + 1], NULL, 10);
	}
	every = every == 0 ? 1 : every;
	seed += first;
	isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
	isl_ctx_set_max_operations(ctx, ISL_OPERATIONS);
	for (uint64_t i = 0; i < count && e != NULL; i++) {
		struct job j = {e, ctx, seed + i, every};

		if (env_run(e, compare, &j) != TN_OK) {
			fprintf(stderr, "seed %llu: %s\n",
				(unsigned long long)(seed + i),
				env_diag(e)->text);
			bad = true;
		}
	}
	env_free(e);
	isl_ctx_free(ctx);
	printf("%lld pairs (%lld with guards): %lld equal (%lld the same "
	       "pointer), %lld different, %lld unknown\n"
	       "%lld wrong; isl asked about %lld, gave up on %lld; %lld walked, "
	       "%lld by neither\n",
		(long long)tally.pairs, (long long)tally.guarded,
		(long long)tally.verdict[IX_EQUAL], (long long)tally.pointer,
		(long long)tally.verdict[IX_DIFFERENT],
		(long long)tally.verdict[IX_UNKNOWN], (long long)tally.wrong,
		(long long)tally.asked, (long long)tally.gave_up,
		(long long)tally.walked,
		(long long)tally.unsettled);
	return bad || tally.wrong > 0 ||
		tally.verdict[IX_UNKNOWN] > 2 + tally.pairs / 1000;
}
