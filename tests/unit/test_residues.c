/*
 * residues.c: gradients of strided convolutions by their inputs become an equation for
 * each residue and one that puts them together, with the same values; what has no
 * residues stays as it is.
 */
#include "unit.h"

#include "eval_system.h"


#include <math.h>

/* A convolution along two axes, and how many equations its gradient has. */
struct conv {
	int n, c, h, w, f, k, stride, border, dilation;
	int n_eqns;
};

static const struct conv convs[] = {
	{2, 3, 8, 8, 4, 3, 2, 1, 1, 5},	 /* four residues */
	{1, 3, 8, 12, 2, 3, 2, 0, 1, 5},
	{1, 2, 9, 12, 3, 3, 3, 1, 1, 10},
	{2, 3, 8, 8, 4, 1, 2, 0, 1, 2},	 /* one residue has terms */
	{1, 3, 8, 8, 2, 2, 2, 0, 1, 1},	 /* residues are axes of the window */
	{1, 3, 16, 20, 2, 7, 2, 3, 1, 5},
	{1, 3, 12, 8, 2, 7, 2, 3, 1, 1}, /* a small image: the sum walks its pixels */
	{1, 2, 32, 32, 3, 5, 4, 2, 1, 17},
	{1, 2, 8, 8, 3, 3, 2, 2, 2, 2},	 /* taps are even */
	{1, 3, 7, 8, 2, 3, 2, 1, 1, 3},	 /* 7 rows are not divided */
	{2, 3, 8, 8, 4, 3, 1, 1, 1, 1},	 /* no stride */
};

/* The gradient by the input: y and z walk the result, k and l the window. */
static const char *text_of(arena *a, const struct conv *v)
{
	int reach = v->dilation * (v->k - 1) + 1;
	int y = (v->h + 2 * v->border - reach) / v->stride + 1;
	int z = (v->w + 2 * v->border - reach) / v->stride + 1;

	return arena_printf(a,
		"op g(d[n,f,y,z], w[f,c,k,l]) -> o {\n"
		" o[n,c,i,j] = cast(0, d) for i < %d, j < %d;\n"
		" o[n, c, %d*y + %d*k - %d, %d*z + %d*l - %d] += "
		"(d[n,f,y,z] * w[f,c,k,l] else cast(0, d)) else skip }\n"
		"program { d: f32[%d,%d,%d,%d] w: f32[%d,%d,%d,%d] "
		"o = g(d, w) return o }",
		v->h, v->w, v->stride, v->dilation, v->border, v->stride,
		v->dilation, v->border, v->n, v->f, y, z, v->f, v->c, v->k,
		v->k);
}

struct job {
	const char *text;
	const struct conv *conv; /* makes the text, unless that is given */
	int n_eqns;
	double least; /* products */
};

static void agrees(arena *a, void *arg)
{
	const struct job *j = arg;
	const char *text = j->conv != NULL ? text_of(a, j->conv) : j->text;
	ir_program *p;
	ir_system *s = eval_lowered(a, text, &p), *t = eval_lowered(a, text, &p);
	const void **input = eval_random(a, p, 1);
	int32_t o = s->output.at[0];
	const float *x, *y;

	ir_residues(t, 4, j->least);
	ir_system_verify(t);
	if (t->eqn.n != j->n_eqns)
		fail_msg("%d equations, not %d, of\n%s", (int)t->eqn.n, j->n_eqns,
			text);
	x = eval_system(a, s, input)[o];
	y = eval_system(a, t, input)[t->output.at[0]];
	for (int64_t i = 0; i < s->tensor.at[o].numel; i++)
		if (fabsf(x[i] - y[i]) > 1e-5f)
			fail_msg("element %d: %g and %g, of\n%s", (int)i,
				(double)x[i], (double)y[i], text);
}

static void check(const struct job *j)
{
	struct job own = *j;
	tn_diag d = {0};

	if (unit_run(agrees, &own, 0, &d) != TN_OK)
		fail_msg("%s %s", d.rule, d.text);
}

static void test_convolutions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
		check(&(struct job){.conv = &convs[i],
			.n_eqns = convs[i].n_eqns});
}

static void test_small(void **state)
{
	/* 2 * 3 * 8 * 8 * 4 * 2 * 2 products: of each term, also those that are 0 */
	(void)state;
	check(&(struct job){.conv = &convs[0], .n_eqns = 5, .least = 6144});
	check(&(struct job){.conv = &convs[0], .n_eqns = 1, .least = 6145});
}

static void test_others(void **state)
{
	static const char *const texts[] = {
		/* a factor is repeated: nothing is walked by quotients */
		"op f(x[h,i,k], y[g,k,j]) -> o { o[h,i,j] += x[h,i,k] * y[h%2,k,j] }\n"
		"program { x: f32[4,3,5] y: f32[2,5,3] o = f(x, y) return o }",
		/* .. each element in turn: no factor is walked by residues */
		"op f(x[h,i,k], y[g,k,j]) -> o { o[h,i,j] += x[h,i,k] * y[h/2,k,j] }\n"
		"program { x: f32[4,3,5] y: f32[2,5,3] o = f(x, y) return o }",
		/* forward */
		"program { x: f32[1,3,8,8] w: f32[2,3,3,3]\n"
		" o = conv(x, w, stride=[2,2], lo=[1,1], hi=[1,1]) return o }",
		/* a sum that is no product; one with a value before */
		"op f(d[i,j]) -> o { o[i, m] = cast(0, d) for m < 8; o[i, 2*j + k - 1] += "
		"d[i,j] else skip for k < 3 }\n"
		"program { d: f32[3,4] o = f(d) return o }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		check(&(struct job){.text = texts[i], .n_eqns = 1});
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_convolutions),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
