/*
 * kern/: kernels are built, printed, read back, verified and run.
 */
#include "unit.h"

#include "kern/kern.h"
#include "kern_texts.h"

static int32_t scalar(const char *name)
{
	return ir_scalar_find(name, strlen(name));
}

/* ---- building ---- */

static void numbers(arena *a, void *arg)
{
	kern_kernel *k = kern_new(a, "k");
	kern_builder b = kern_build(k);
	int32_t p = kern_add_param(k, TN_F32, 100, true, -1);
	const kern_form *c, *f, *g;
	kern_val i, x;
	int64_t n;

	(void)arg;
	kern_open_phase(&b, 4, 0);
	c = kern_form_of(k, k->phase[0].chunk);
	f = kern_form_addc(k, kern_form_scale(k, c, 12), 5);
	/* forms are equal where their pointers are */
	g = kern_form_add(k, kern_form_scale(k, c, 5),
		kern_form_add(k, kern_form_scale(k, c, 7),
			kern_form_const(k, 5)));
	assert_ptr_equal(f, g);
	assert_true(kern_form_is_const(kern_form_sub(k, f, g), &n));
	assert_int_equal(n, 0);
	/* constants are folded, and integers known in the blocks around */
	assert_ptr_equal(kern_mod(&b, kern_form_const(k, -3), 4),
		kern_form_const(k, 1));
	assert_ptr_equal(kern_min(&b, f, kern_form_addc(k, f, 1)), f);
	g = kern_div(&b, c, 3);
	i = kern_for(&b, kern_form_const(k, 0), f, 1, TN_I64);
	assert_ptr_equal(kern_div(&b, c, 3), g);
	f = kern_div(&b, kern_form_of(k, i), 3);
	assert_ptr_not_equal(f, g);
	assert_int_equal(k->phase[0].body.list.n, 2);
	kern_close(&b);
	/* .. not of a block that is closed */
	kern_for(&b, kern_form_const(k, 0), g, 1, TN_I64);
	assert_ptr_not_equal(kern_div(&b, kern_form_of(k, i), 3), f);
	kern_close(&b);
	/* loads are not numbered, pure values on request */
	x = kern_load(k, kern_num(TN_F32, 1), &(kern_access){p, c, 1, 0, 0, 0});
	assert_int_equal(kern_let(&b, x), x);
	b.number = true;
	i = kern_let(&b, kern_call(k, scalar("exp"), kern_num(TN_F32, 1), &x));
	assert_int_equal(kern_let(&b, kern_call(k, scalar("exp"),
					     kern_num(TN_F32, 1), &x)),
		i);
	x = kern_load(k, kern_num(TN_F32, 1), &(kern_access){p, c, 1, 0, 0, 0});
	assert_int_equal(kern_let(&b, x), x);
	assert_int_equal(kern_const_f(k, TN_F32, 0.5),
		kern_const_f(k, TN_F32, 0.5));
	assert_int_not_equal(kern_const_f(k, TN_F32, 0.0),
		kern_const_f(k, TN_F32, -0.0));
	kern_close(&b);
	assert_int_equal(b.block.n, 0);
}

static tn_status run(void (*fn)(arena *a, void *arg), void *arg, tn_diag *d)
{
	return unit_run(fn, arg, 0, d);
}

static void builds(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (run(numbers, NULL, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

/* ---- text ---- */

static const char *const texts[] = {
	relu, tile, stencil, split, gather, scan, turn, step};

static void again(arena *a, void *arg)
{
	const char *text = *(const char **)arg;
	kern_kernel *k = kern_parse(a, text, strlen(text), "text");
	str s = str_new(a);
	int number;

	assert_int_equal(sscanf(text, "kernel %d", &number), 1);
	kern_print(&s, k, number);
	assert_string_equal(s.at, text);
}

static void reads_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const char *text = texts[i];
		tn_diag d = {0};

		if (run(again, &text, &d) != TN_OK)
			fail_msg("%s: %s:%d %s\n%s", d.rule, d.file, d.line,
				d.text, d.extra);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds),
		cmocka_unit_test(reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
