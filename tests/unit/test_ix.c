/* ix/: normal form, division in context, questions; see ix_text.h. */
#include "unit.h"

#include "ix_text.h"

/* ---- what comes out ---- */

static const struct {
	const char *box, *facts, *in, *out;
} forms[] = {
	/* cuts nest: joined, split, gone */
	{"i:12 j:3", NULL, "4*(i/4) + i%4", "i"},
	{"i:12", NULL, "i%4 + 8*(i/4)", "8*(i/4) + i%4"},
	{"i:12", NULL, "i - 4*(i/4)", "i%4"},
	{"i:12", NULL, "i/2%3", "(i/2)%3"},
	{"i:12", NULL, "i%6/2", "(i/2)%3"},
	{"i:12", NULL, "i/2/3", "i/6"},
	{"i:12", NULL, "i%12 + i/12", "i"},
	{"i:1 j:2", NULL, "5*i + j + i/3", "j"},
	{"i:10", NULL, "i/4*4 + i%4", "i"}, /* 4 does not divide 10 */
	/* cuts do not nest: side by side, and closed again */
	{"i:24", NULL, "i%4 + i%6", "i%6 + i%4"},
	{"i:24", NULL, "i%4 + i%6 - i%4", "i%6"},
	{"i:24", NULL, "5*(i%4) + 3*(i%6) - 3*i", "-18*(i/6) + 5*(i%4)"},
	/* division: multiples, cut, range, gcd, small terms */
	{"i:8 j:4", NULL, "(4*i + j)/4", "i"},
	{"i:8 j:4", NULL, "(4*i + j)%4", "j"},
	{"i:8 j:4", NULL, "(4*i + j)/8", "i/2"},
	{"i:8 j:4", NULL, "(4*i + j)%8", "4*(i%2) + j"},
	{"i:24", NULL, "(23 - i)/6", "-(i/6) + 3"},
	{"i:24", NULL, "(23 - i)%6", "-(i%6) + 5"},
	{"i:6 j:4", NULL, "(4*i + j)/6", "(4*i + j)/6"},
	{"i:6 j:4", NULL, "(8*i + 2*j)/12", "(4*i + j)/6"},
	{"i:6 j:4", NULL, "(8*i + 2*j + 1)/12", "(4*i + j)/6"},
	{"i:9", NULL, "(i%3*4 + 3)/8", "(i%3)/2"},
	{"i:16 j:16", NULL, "(i + j)/4 - i/4", "-(i/4) + (i + j)/4"},
	{"i:16 j:16", NULL, "(i%4 + j%4)/4", "-(i/4) - j/4 + (i + j)/4"},
	/* floors in floors, signs, residues */
	{"i:9 j:9", NULL, "(i + j)/3/2", "(i + j)/6"},
	{"i:9 j:9", NULL, "((i + j)/3 + i)/2", "(4*i + j)/6"},
	{"i:9 j:9", NULL, "(-i - j)/4", "-((i + j + 3)/4)"},
	{"i:9 j:9", NULL, "(5*i + j)/4", "i + (i + j)/4"},
	{"i:9 j:9", NULL, "(3*i + j)/4", "(3*i + j)/4"},
	/* facts: the uncut form, a multiple of it, an axis, another's scale */
	{"i:4 j:8", "0 <= j - 1 < 6", "(6*i + j - 1)/6", "i"},
	{"i:4 j:8", "0 <= j - 1 < 6", "(6*i + j - 1)%6", "j - 1"},
	{"i:4 j:8", NULL, "(6*i + j - 1)/6", "i + (j + 5)/6 - 1"},
	{"i:9", "4 <= i < 8", "i/4", "1"},
	{"i:9", "4 <= i < 8", "i%4", "i - 4"},
	{"i:9 j:9", "2 <= 2*i + 2*j < 8", "(i + j - 1)/3", "0"},
	{"i:9 j:9", "1 <= i + j < 4", "(2*i + 2*j - 2)/6", "0"},
	{"i:9 j:9", "1 <= i + j < 4", "(i + j + 4*(i%2) - 1)/7", "0"},
	{"i:9", "0 <= f[i] < 2", "f[i]/2 + f[i]/5", "0"},
	/* clamp */
	{"i:9", NULL, "clamp(i - 1, 0, 20)", "clamp(i, 1, 8) - 1"},
	{"i:9", NULL, "clamp(i, 0, 8)", "i"},
	{"i:9", NULL, "clamp(i + 9, 0, 9)", "9"},
	{"i:9", NULL, "clamp(i - 20, 0, 9)", "0"},
	{"i:9", NULL, "clamp(3 - i, 0, 3)", "-clamp(i, 0, 3) + 3"},
	{"i:9", NULL, "clamp(clamp(i, 1, 5), 2, 7)", "clamp(i, 2, 5)"},
	{"i:9", "2 <= i < 5", "clamp(i, 2, 4)", "i"},
	/* functions */
	{"i:9 j:3", NULL, "f[3*i + j] + f[j + 3*i]", "2*f[3*i + j]"},
	{"i:9 j:3", NULL, "f[i] - g[i]", "f[i] - g[i]"},
	{"i:9", NULL, "(5*i + f[i])/5", "i"},
	{"i:9", NULL, "(5*i + f[i])%5", "f[i]"},
	/* text */
	{"i:9", NULL, "-i", "-i"},
	{"i:9", NULL, "0*i", "0"},
	{"i:9", NULL, "0 - 7", "-7"},
	{"i:9 j:2", NULL, "-3*(i/2) - j - 1", "-3*(i/2) - j - 1"},
};

static void check_forms(arena *a, void *arg)
{
	ix_text t;

	(void)arg;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		const ix_form *f;

		ix_text_init(&t, a, forms[i].box, forms[i].facts);
		f = ix_text_form(&t, forms[i].in);
		assert_string_equal(ix_text_print(&t, f), forms[i].out);
		/* once simplified is simplified */
		assert_ptr_equal(ix_simplify(t.x, &t.d, f), f);
	}
}

/* ---- bounds ---- */

static const struct {
	const char *box, *facts, *in;
	int64_t min, max;
} ranges[] = {
	{"i:4 j:3", NULL, "3*i + j", 0, 11},
	{"i:4 j:3", NULL, "2*j - i + 5", 2, 9},
	{"i:10", NULL, "i%4 - 4*(i/4)", -8, 3},
	{"i:10", NULL, "i/4 + 10*(i%4)", 0, 31}, /* 7, not 3 with 2 above */
	{"i:10", NULL, "i%4 + i%6", 0, 6}, /* each alone: 8 */
	{"i:1000 j:9", NULL, "(i + 7*j)%6", 0, 5},
	{"i:1000 j:9", NULL, "(i + 7*j)%6*2 + 1", 1, 11},
	{"i:1000 j:9", NULL, "(i + 7*j)/6", 0, 175},
	{"i:9 j:9", "2 <= i + j < 5", "2*i + 2*j + 1", 5, 9},
	{"i:9 j:9", "2 <= 2*i + 2*j < 9", "i + j", 1, 4},
	{"i:4 j:6 k:3 l:3", "0 <= i + k - 1 < 4, 0 <= j + l - 1 < 6",
		"6*i + 6*k + j + l - 7", 0, 23}, /* one fact, then another */
	/* a part of a fact, and with more than the fact has */
	{"i:4 j:4 k:3", "0 <= 3*i + 12*j + k < 30", "i + 4*j", 0, 9},
	{"i:4 j:4 k:3", "5 <= 3*i + 12*j + k < 30", "2 - i - 4*j", -7, 1},
	{"i:4 j:4 k:3", "0 <= k - 3*i - 12*j + 30 < 30", "i + 4*j", 1, 10},
	{"i:252 k:3", "0 <= 3*i + k < 300", "i/10 + 10*(i%10)", 0, 99},
	{"i:91 j:4 k:498", "16 <= j + 4*k - 1940 < 32, 0 <= j + 4*k - 16 < 1976",
		"4*i + k - 489", 0, 363},
	{"i:137 k:3", "0 <= 3*i + k < 300", "i", 0, 99},
	{"i:4 j:4 k:3 l:5", "0 <= 3*i + 12*j + k < 30", "10*l + i + 4*j",
		0, 49},
	{"i:9", "3 <= i < 5", "7 - i", 3, 4},
	{"i:9", "3 <= i < 5", "i%4", 0, 3},
	{"i:9", NULL, "clamp(2*i, 3, 9)", 3, 9},
	{"i:9", NULL, "3*f[i] - 1", -1, 11},
	{"i:1099511627776 j:1024", NULL, "1024*i + j", 0, 1125899906842623},
};

static void check_ranges(arena *a, void *arg)
{
	ix_text t;

	(void)arg;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		int64_t min, max;

		ix_text_init(&t, a, ranges[i].box, ranges[i].facts);
		ix_range(&t.d, ix_text_form(&t, ranges[i].in), &min, &max);
		assert_int_equal(min, ranges[i].min);
		assert_int_equal(max, ranges[i].max);
	}
}

/* ---- verdicts ---- */

static const struct {
	const char *box, *facts, *a, *b;
	ix_verdict verdict;
} equals[] = {
	{"i:9", NULL, "i", "i", IX_EQUAL},
	{"i:9", NULL, "i", "i + 1", IX_DIFFERENT},
	{"i:9", NULL, "i/3", "i/4", IX_DIFFERENT},
	/* [2,6] -> [3,4] read transposed, two ways to the same floor */
	{"i:6 j:4", NULL, "(4*i + j)/6", "2*(i/3) + (4*(i%3) + j)/6",
		IX_EQUAL},
	{"i:6 j:4", NULL, "(4*i + j)%6", "(4*i + j + 1)%6", IX_DIFFERENT},
	{"i:6 j:4", NULL, "(4*i + j)/6*6 + (4*i + j)%6", "4*i + j", IX_EQUAL},
	{"i:1099511627776 j:7", NULL, "(i + j)/3", "(i + j + 3)/3 - 1",
		IX_EQUAL},
	{"i:1099511627776 j:7", NULL, "(i + j)/3*3 + (i + j)%3", "i + j + 1",
		IX_DIFFERENT},
	/* facts: equal where they hold, and only there */
	{"i:9", "0 <= i < 4", "i%4", "i", IX_EQUAL},
	{"i:9", "0 <= i < 5", "i%4", "i", IX_DIFFERENT},
	{"i:9 j:9", "0 <= i - j < 1", "i", "j", IX_EQUAL},
	{"i:9 j:9", "0 <= i - j < 2", "i", "j", IX_DIFFERENT},
	{"i:9 j:9", "20 <= i + j < 30", "i", "j", IX_EQUAL}, /* nowhere */
	{"i:1000000 j:9", "4 <= i < 8", "(i + 5*j)/5", "j + i/5", IX_EQUAL},
	/* functions are any functions */
	{"i:9", NULL, "f[i]", "f[i]", IX_EQUAL},
	{"i:9", NULL, "f[i]", "g[i]", IX_DIFFERENT},
	{"i:9", NULL, "f[i]", "f[i + 1]", IX_DIFFERENT},
	{"i:6 j:4", NULL, "f[(4*i + j)/6]", "f[2*(i/3) + (4*(i%3) + j)/6]",
		IX_EQUAL},
	{"i:9 j:9", "0 <= i - j < 1", "f[i/2]", "f[i/2] + i - j", IX_EQUAL},
	{"i:9 j:9", "0 <= i - j < 1", "f[i]", "f[j]", IX_EQUAL},
	{"i:9 j:9", "0 <= i - j < 2", "f[i]", "f[j]", IX_DIFFERENT},
	/* equal, but two elements are taken for independent of each other */
	{"i:9", "4 <= i < 5, 0 <= g[i] < 3", "f[i]", "f[8 - i]", IX_UNKNOWN},
	/* clamp on a long axis: three cases */
	{"i:1000000 j:1000", NULL, "clamp(i, 5, 9) + clamp(j, 3, 900)",
		"clamp(clamp(i, 5, 9) + clamp(j, 3, 900), 8, 909)", IX_EQUAL},
};

static void check_equals(arena *a, void *arg)
{
	ix_text t;

	(void)arg;
	for (size_t i = 0; i < sizeof equals / sizeof *equals; i++) {
		const ix_form *f, *g;

		ix_text_init(&t, a, equals[i].box, equals[i].facts);
		f = ix_text_form(&t, equals[i].a);
		g = ix_text_form(&t, equals[i].b);
		assert_int_equal(ix_equal(t.x, &t.d, f, g), equals[i].verdict);
		assert_int_equal(ix_equal(t.x, &t.d, g, f), equals[i].verdict);
	}
}

static const struct {
	const char *box, *facts, *in;
	ix_verdict verdict;
} injectives[] = {
	{"i:4 j:3", NULL, "3*i + j", IX_EQUAL},
	{"i:4 j:3", NULL, "-3*i + j", IX_EQUAL},
	{"i:4 j:3", NULL, "i + j", IX_DIFFERENT},
	{"i:4 j:3", NULL, "i", IX_DIFFERENT},
	{"i:4 j:3 k:2", NULL, "100*k + i + j", IX_DIFFERENT},
	/* cuts at 2 and 5: what one leaves open the other closes */
	{"i:30", NULL, "(i/5)%3 - 60*(i/2) - 21*(i%2)", IX_EQUAL},
	{"i:4 j:1", NULL, "i", IX_EQUAL},
	{"i:8", NULL, "i%4", IX_DIFFERENT},
	{"i:8", NULL, "i%4 + 100*(i/4)", IX_EQUAL},
	{"i:9 j:2", NULL, "2*i + 3*j", IX_EQUAL}, /* 3*1 is no 2*s */
	{"i:9 j:3", NULL, "2*i + 3*j", IX_DIFFERENT},
	/* the second block has two places only: 3 is not in it */
	{"i:6", NULL, "i%4 + 3*(i/4)", IX_DIFFERENT},
	{"i:6", NULL, "i%4 - 2*(i/4)", IX_EQUAL},
	{"i:1048576 j:1048576", NULL, "1048576*j + i", IX_EQUAL},
	{"i:1048576 j:1048576", NULL, "1048575*j + i", IX_DIFFERENT},
	{"i:9 j:9", "0 <= i - j < 1", "i", IX_EQUAL},
	{"i:6 j:4", NULL, "24 - (4*i + j)/6*6 - (4*i + j)%6", IX_EQUAL},
	{"i:9", NULL, "f[i]", IX_DIFFERENT}, /* nine points, five values */
	{"i:5", NULL, "f[i]", IX_UNKNOWN},
};

static void check_injectives(arena *a, void *arg)
{
	ix_text t;

	(void)arg;
	for (size_t i = 0; i < sizeof injectives / sizeof *injectives; i++) {
		ix_text_init(&t, a, injectives[i].box, injectives[i].facts);
		assert_int_equal(ix_injective(t.x, &t.d,
			ix_text_form(&t, injectives[i].in)),
			injectives[i].verdict);
	}
}

/* ---- composition, coordinates, sizes ---- */

static void check_views(arena *a, void *arg)
{
	static const int64_t shape[] = {2, 1, 6}, none[] = {3, 0};
	ix_text t;
	const ix_form *flat, *at[3], *with[2], *f;
	const ix_atom *digit;

	(void)arg;
	ix_text_init(&t, a, "i:3 j:4", NULL);
	flat = ix_text_form(&t, "4*i + j");
	ix_delinearise(t.x, &t.d, flat, 3, shape, at);
	assert_string_equal(ix_text_print(&t, at[0]), "(4*i + j)/6");
	assert_string_equal(ix_text_print(&t, at[1]), "0");
	assert_string_equal(ix_text_print(&t, at[2]),
		"4*i + j - 6*((4*i + j)/6)");
	assert_ptr_equal(ix_linearise(t.x, &t.d, 3, shape, at), flat);
	ix_delinearise(t.x, &t.d, flat, 2, none, at);
	assert_string_equal(ix_text_print(&t, at[0]), "0");

	/* the transpose of the transpose; with a top digit in range */
	with[0] = ix_text_form(&t, "j%3");
	with[1] = ix_text_form(&t, "i + j/3");
	f = ix_subst(t.x, &t.d, ix_text_form(&t, "j/2 + 7*(i%2)"), 2, t.extent,
		with);
	assert_int_equal(ix_eval(f, (int64_t[]){2, 3}, NULL, NULL), 1);
	assert_true(ix_is_digit(ix_text_form(&t, "j/2"), &digit));
	assert_int_equal(digit->lo, 2);
	assert_int_equal(digit->hi, 4);
	assert_false(ix_is_digit(ix_text_form(&t, "j/2 + 1"), NULL));
	assert_false(ix_is_digit(ix_text_form(&t, "2*j"), NULL));
	assert_true(ix_uses_axis(ix_text_form(&t, "f[(i + j)/2]"), 1));
	assert_false(ix_uses_axis(ix_text_form(&t, "f[i]"), 1));
	assert_true(ix_has_fun(ix_text_form(&t, "(f[i] + j)/2")));
	assert_false(ix_has_fun(flat));
}

static void overflow(arena *a, void *arg)
{
	const char *const *text = arg;
	ix_text t;

	ix_text_init(&t, a, "i:1099511627776 j:9", NULL);
	(void)ix_text_form(&t, *text);
}

static void nested(arena *a, void *arg)
{
	const ix_form *f;
	ix_text t;

	ix_text_init(&t, a, "i:9", NULL);
	f = ix_text_form(&t, "i");
	for (int i = 0; i < *(const int *)arg; i++)
		f = ix_fun(t.x, 0, f, 0, 5);
}

static void test_limits(void **state)
{
	const char *large = "1000000000000*i", *beyond =
		"4000000000*(4000000000*i)", *sum =
		"9223372036854775807*i + 9223372036854775807*i",
		*constant = "9223372036854775807 + i + 1";
	int deep = 300, deeper = 1000;
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(overflow, &large, 0, &d), TN_OK);
	assert_int_equal(unit_run(overflow, &beyond, 0, &d), TN_ENOMEM);
	assert_string_equal(d.rule, "ix.overflow");
	assert_int_equal(unit_run(overflow, &sum, 0, &d), TN_ENOMEM);
	assert_string_equal(d.rule, "ix.overflow");
	assert_int_equal(unit_run(overflow, &constant, 0, &d), TN_ENOMEM);
	assert_string_equal(d.rule, "ix.overflow");
	assert_int_equal(unit_run(nested, &deep, 0, &d), TN_OK);
	assert_int_equal(unit_run(nested, &deeper, 0, &d), TN_ENOMEM);
	assert_string_equal(d.rule, "ix.depth");
}

/* ---- main ---- */

static void run(void (*fn)(arena *a, void *arg))
{
	tn_diag d;

	if (unit_run(fn, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

#define CHECK(name)                                                            \
	static void test_##name(void **state)                                  \
	{                                                                      \
		(void)state;                                                   \
		run(check_##name);                                             \
	}
CHECK(forms)
CHECK(ranges)
CHECK(equals)
CHECK(injectives)
CHECK(views)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_equals),
		cmocka_unit_test(test_injectives),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
