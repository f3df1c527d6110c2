/*
 * system/recompute.c: each group of sums that reads a large square computes one of its
 * own, with the same values; squares that are small, long sums, wanted, or read by one
 * group alone, or in another order, stay as they are. system/scales.c: factors of rows
 * move away from bf16, and the sums change by roundings alone.
 */
#include "unit.h"

#include "eval_system.h"

#include <math.h>

struct job {
	const char *text;
	int32_t copies; /* tensors more than before that have `square` elements */
	int64_t square, terms;
	double bytes;
};

static int32_t count(const ir_system *s, int64_t numel)
{
	int32_t n = 0;

	for (int32_t i = 0; i < s->eqn.n; i++)
		n += s->tensor.at[s->eqn.at[i].out[0]].numel == numel;
	return n;
}

static void same_values(arena *a, ir_system *s, ir_system *t, const void **input,
	float rounding, const char *text)
{
	void **u = eval_system(a, s, input), **v = eval_system(a, t, input);

	for (int32_t i = 0; i < s->output.n; i++) {
		const sys_tensor *o = &s->tensor.at[s->output.at[i]];
		const float *x = u[s->output.at[i]], *y = v[t->output.at[i]];
		float most = 0;

		assert_int_equal(o->dtype, TN_F32);
		for (int64_t k = 0; k < o->numel; k++)
			most = fabsf(x[k]) > most ? fabsf(x[k]) : most;
		for (int64_t k = 0; k < o->numel; k++)
			if (!(fabsf(x[k] - y[k]) <= rounding * most))
				fail_msg("element %d: %g and %g, of\n%s", (int)k,
					(double)x[k], (double)y[k], text);
	}
}

/* No kernel may have squares of two groups: each sum reads those of one. */
static void one_group_each(ir_system *t)
{
	for (int32_t i = 0; i < t->eqn.n; i++) {
		const sys_eqn *e = &t->eqn.at[i];
		ex_reads all = ex_list_reads(t, e->body[0]);
		int32_t first = e->square;

		for (int32_t k = 0; k < all.n; k++) {
			int32_t m = t->tensor.at[all.at[k].tensor].eqn;
			int32_t of = m < 0 ? 0 : t->eqn.at[m].square;

			assert_false(sys_other_group(first, of));
			first = first > 0 ? first : of;
		}
	}
}

static void agrees(arena *a, void *arg)
{
	const struct job *j = arg;
	sys_recompute limit = {j->terms, j->bytes};
	ir_program *p;
	ir_system *s = eval_lowered(a, j->text, &p), *t = eval_lowered(a, j->text, &p);
	int32_t before = count(s, j->square);

	t = ir_recompute(t, &limit);
	ir_system_verify(t);
	if (count(t, j->square) != before + j->copies)
		fail_msg("%d squares, %d before, of\n%s", count(t, j->square), before,
			j->text);
	one_group_each(t);
	same_values(a, s, t, eval_random(a, p, 1), 0, j->text);
}

static void check(const struct job *j)
{
	struct job own = *j;
	tn_diag d = {0};

	if (unit_run(agrees, &own, 0, &d) != TN_OK)
		fail_msg("%s %s", d.rule, d.text);
}

#define INPUTS \
	"program { q: f32[2,11,3] k: f32[2,13,3] v: f32[2,13,5] g: f32[2,11,5]\n"
#define S "s[b, t, u] += q[b, t, d] * k[b, u, d]; p[b, t, u] = tanh(s[b, t, u]);"
#define O "o[b, t, e] += p[b, t, u] * v[b, u, e];"
#define V "w[b, u, e] += p[b, t, u] * g[b, t, e]"
#define OP(results, body) "op f(q[b, t, d], k[b, u, d], v[b, u, e], g[b, t, e]) -> " \
	results " {" body " }\n" INPUTS
#define BOTH(body) OP("o, w", body) " o, w = f(q, k, v, g)\n return o, w }"
#define SQUARE (2 * 11 * 13)
#define ITEM (11 * 13 * 4)

static void test_groups(void **state)
{
	static const struct job jobs[] = {
		/* along keys and along rows: s and p twice */
		{BOTH(S O V), 2, SQUARE, 3, ITEM - 1},
		/* the second one needs the first one's result, both along keys */
		{OP("o, w", S O "z[b, t] += o[b, t, e]; r[b, t, u] = p[b, t, u] * z[b, t];"
			"w[b, t, e] += r[b, t, u] * v[b, u, e]")
			" o, w = f(q, k, v, g)\n return o, w }", 2, SQUARE, 3, ITEM - 1},
		/* a row's maximum and what is computed from it stay with the first */
		{BOTH(S "m[b, t] max= s[b, t, u]; c[b, t] = 2 * m[b, t];"
		      "x[b, t, u] = exp(p[b, t, u] - c[b, t]);"
		      "o[b, t, e] += x[b, t, u] * v[b, u, e];"
		      "w[b, u, e] += x[b, t, u] * g[b, t, e]"), 3, SQUARE, 3, ITEM - 1},
		/* two short products in one square */
		{BOTH(S O "h[b, t, u] += g[b, t, e] * v[b, u, e];"
		      "r[b, t, u] = h[b, t, u] * p[b, t, u];"
		      "w[b, u, d] += r[b, t, u] * q[b, t, d]"), 2, SQUARE, 5, ITEM - 1},
		/* a sum without a factor reads a square of those that have one */
		{OP("o, w, y", S O "r[b, t, u] = p[b, t, u] * p[b, t, u];"
			"w[b, u, e] += r[b, t, u] * g[b, t, e]; y[t, u] += r[b, t, u]")
			" o, w, y = f(q, k, v, g)\n return o, w, y }", 2, SQUARE, 3,
			ITEM - 1},
		/* conditions, and casts */
		{BOTH("s[b, t, u] += q[b, t, d] * k[b, u, d] where u <= t else 0;"
		      "p[b, t, u] = cast(s[b, t, u], bf16) where u <= t else 0;"
		      "o[b, t, e] += cast(p[b, t, u], f32) * v[b, u, e] where u <= t else 0;"
		      "w[b, u, e] += cast(p[b, t, u], f32) * g[b, t, e] where u <= t else 0"),
			2, SQUARE, 3, ITEM - 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		struct job other = jobs[i];

		check(&jobs[i]);
		other.copies = 0;
		other.bytes = ITEM; /* it is small enough */
		check(&other);
		other = jobs[i];
		other.copies = 0;
		other.terms = 2; /* its sums are too long */
		check(&other);
	}
}

static void test_others(void **state)
{
	static const char *const texts[] = {
		/* one group */
		BOTH(S O "w[b, t, e] += p[b, t, u] * v[b, u, e] * v[b, u, e]"),
		/* the square is wanted, and what reads it makes none */
		OP("o, w, p", S O V) " o, w, p = f(q, k, v, g)\n return o, w, p }",
		/* its elements go to other places */
		OP("o, w", S "r[b, t, u] = p[b, t, 12 - u];"
			"o[b, t, e] += r[b, t, u] * v[b, u, e];"
			"w[b, u, e] += r[b, t, u] * g[b, t, e]")
			" o, w = f(q, k, v, g)\n return o, w }",
		BOTH(S "o[b, t, e] += p[b, t, 12 - u] * v[b, u, e];" V),
		/* a sum along both axes at once is none of products */
		BOTH(S O "w[b, e] += p[b, t, u] * g[b, t, e] * v[b, u, e]"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct job j = {texts[i], 0, SQUARE, 3, ITEM - 1};

		check(&j);
	}
}

/* ---- scales ---- */

struct scales {
	const char *text;
	int32_t sums; /* sums of two bf16 afterwards */
};

static bool is_short(const expr *e)
{
	return e->kind == EX_CAST && e->arg[0]->dtype == TN_BF16;
}

static int32_t short_sums(const ir_system *s)
{
	int32_t n = 0;

	for (int32_t i = 0; i < s->eqn.n; i++) {
		const sys_eqn *e = &s->eqn.at[i];
		const expr *b = e->body[0];

		while (b->kind == EX_SELECT)
			b = b->arg[1];
		n += e->n_axes > e->n_left && b->kind == EX_CALL && b->n_args == 2 &&
		     is_short(b->arg[0]) && is_short(b->arg[1]);
	}
	return n;
}

static void moves(arena *a, void *arg)
{
	const struct scales *j = arg;
	ir_program *p;
	ir_system *s = eval_lowered(a, j->text, &p), *t = eval_lowered(a, j->text, &p);

	t = ir_move_scales(t);
	ir_system_verify(t);
	if (short_sums(t) != j->sums)
		fail_msg("%d sums of two bf16, of\n%s", short_sums(t), j->text);
	same_values(a, s, t, eval_random(a, p, 1), j->sums > 0 ? 0x1p-7f : 0, j->text);
}

#define SHORT "x[b, t, e] = cast(g[b, t, e], bf16); y[b, u, e] = cast(v[b, u, e], bf16);" \
	"z[b, t] += exp(q[b, t, d]);"
#define SCALED SHORT "h[b, t, e] = cast(x[b, t, e], f32) * (1 / z[b, t])" \
	" where z[b, t] > 0 else 0;"
#define WEIGHT "s[b, t, u] += q[b, t, d] * k[b, u, d]; p[b, t, u] = tanh(s[b, t, u]);"
#define BF(e) "cast(cast(" e ", bf16), f32)"

static void test_scales(void **state)
{
	static const struct scales jobs[] = {
		/* the row is not summed: behind the sum */
		{OP("o", SCALED "o[b, t, u] += h[b, t, e] * cast(y[b, u, e], f32)")
			" o = f(q, k, v, g)\n return o }", 1},
		{OP("o", SCALED "o[b, t, u] += cast(y[b, u, e], f32) * h[b, t, e]"
			" where u <= t else 0")
			" o = f(q, k, v, g)\n return o }", 1},
		/* it is: into what is rounded */
		{OP("o", SCALED WEIGHT "o[b, u, e] += h[b, t, e] * " BF("p[b, t, u]"))
			" o = f(q, k, v, g)\n return o }", 1},
		/* both, and another reader, which keeps the value */
		{OP("o, w, r", SCALED WEIGHT
			"o[b, u, e] += h[b, t, e] * " BF("p[b, t, u]") " where u <= t else 0;"
			"w[b, t, u] += h[b, t, e] * cast(y[b, u, e], f32);"
			"r[b, t, e] = h[b, t, e]")
			" o, w, r = f(q, k, v, g)\n return o, w, r }", 2},
		/* the other factor is f32, or has not the axes of the scale */
		{OP("o", SCALED WEIGHT "o[b, u, e] += h[b, t, e] * p[b, t, u]")
			" o = f(q, k, v, g)\n return o }", 0},
		{OP("o", SCALED "o[b, u, e] += h[b, t, e] * " BF("v[b, u, e]"))
			" o = f(q, k, v, g)\n return o }", 0},
		/* the scale is none of a row, or the value is f16 */
		{OP("o", SHORT "h[b, t, e] = cast(x[b, t, e], f32) * g[b, t, e];"
			"o[b, t, u] += h[b, t, e] * cast(y[b, u, e], f32)")
			" o = f(q, k, v, g)\n return o }", 0},
		{OP("o", "z[b, t] += exp(q[b, t, d]);"
			"h[b, t, e] = cast(cast(g[b, t, e], f16), f32) * (1 / z[b, t]);"
			"o[b, t, u] += h[b, t, e] * cast(cast(v[b, u, e], f16), f32)")
			" o = f(q, k, v, g)\n return o }", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		struct scales own = jobs[i];
		tn_diag d = {0};

		if (unit_run(moves, &own, 0, &d) != TN_OK)
			fail_msg("%s %s", d.rule, d.text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_scales),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
