/*
 * Long programs: no table of fixed size reaches the user. Chains of many
 * kinds go through all passes with every verifier; one text of each length.
 */
#include "unit.h"

#include "engine/engine.h"
#include "interp/interp.h"

#include <stdio.h>

/*
 * %i: number of the step, %p: of the one before; %w and %h turn through
 * extents whose product is 30. Step 0 is the input. ins: of each step.
 */
static const struct chain {
	const char *input, *each_input, *step;
	int32_t n;
	bool all; /* every step is an output, not only the last */
} chains[] = {
	{"f32[4,8]", "  w%i: f32[8,8]\n",
		"  m%i = matmul(v%p, w%i)\n  v%i = relu(m%i)\n", 31, false},
	{"f32[4,8]", "  w%i: f32[8,8]\n",
		"  m%i = matmul(v%p, w%i)\n  v%i = relu(m%i)\n", 33, false},
	{"f32[4,8]", "  w%i: f32[8,8]\n",
		"  m%i = matmul(v%p, w%i)\n  v%i = relu(m%i)\n", 100, false},
	{"f32[4,8]", "  w%i: f32[8,8]\n",
		"  m%i = matmul(v%p, w%i)\n  a%i = add(m%i, v%p)\n"
		"  v%i = softmax(a%i)\n", 24, false},
	{"f32[40]", "", "  v%i = tanh(v%p)\n", 200, false},
	{"f32[40]", "", "  v%i = mul(v0, %i.5)\n", 300, true},
	{"f32[40]", "", "  m%i = mul(v0, %i.5)\n  v%i = reduce_sum(m%i)\n", 100,
		true},
	{"f32[5,7]", "", "  s%i = reduce_sum(v%p, axes=[1], keep=true)\n"
		"  v%i = sub(v%p, s%i)\n", 100, false},
	{"f32[5,5]", "", "  s%i = reduce_sum(v%p, axes=[1])\n"
		"  v%i = sub(v%p, s%i)\n", 100, false},
	{"f32[5,7]", "", "  k%i = argmax(v%p, axis=1, keep=true)\n"
		"  f%i = cast(k%i, to=f32)\n  v%i = sub(v%p, f%i)\n", 60, false},
	{"f32[1,2,6,6]", "  w%i: f32[2,2,3,3]\n",
		"  c%i = conv(v%p, w%i, lo=[1,1], hi=[1,1])\n"
		"  v%i = relu(c%i)\n", 34, false},
	{"f32[6]", "", "  v%i = cumsum(v%p)\n", 100, false},
	{"f32[3]", "  x%i: f32[3]\n", "  v%i = concat(v%p, x%i)\n", 100, false},
	{"f32[3]", "", "  v%i = pad(v%p, lo=[1], hi=[1], value=%i)\n", 110,
		false},
	{"f32[4,5]", "", "  f%i = flip(v%p, axes=[1, 0])\n"
		"  v%i = add(v%p, f%i)\n", 100, false},
	/* addresses with floors in floors */
	{"f32[30]", "", "  a%i = reshape(v%p, shape=[%w,%h])\n"
		"  b%i = roll(a%i, axes=[0], shift=[1])\n"
		"  v%i = reshape(b%i, shape=[30])\n", 14, false},
	{"f32[30]", "", "  a%i = reshape(v%p, shape=[%w,%h])\n"
		"  b%i = roll(a%i, axes=[1], shift=[1])\n"
		"  c%i = reshape(b%i, shape=[30])\n  v%i = relu(c%i)\n", 14,
		false},
};

static void put(str *s, const char *text, int32_t i)
{
	static const int w[] = {6, 5, 10, 3, 15, 2};

	for (; *text != '\0'; text++) {
		if (*text != '%') {
			str_addc(s, *text);
			continue;
		}
		text++;
		str_printf(s, "%d", *text == 'i' ? (int)i :
			*text == 'p'		 ? (int)i - 1 :
			*text == 'w'		 ? w[i % 6] : 30 / w[i % 6]);
	}
}

static void compile(arena *a, void *arg)
{
	const struct chain *c = arg;
	compile_options o = compile_options_default(machine_find("c/sse"));
	compilation *made;
	str s = str_new(a);

	str_printf(&s, "program {\n  v0: %s\n", c->input);
	for (int32_t i = 1; i <= c->n; i++)
		put(&s, c->each_input, i);
	for (int32_t i = 1; i <= c->n; i++)
		put(&s, c->step, i);
	str_add(&s, "  return ");
	for (int32_t i = c->all ? 1 : c->n; i <= c->n; i++)
		str_printf(&s, "%sv%d", c->all && i > 1 ? ", " : "", (int)i);
	str_add(&s, "\n}\n");
	made = compile_new(a, ir_program_parse(a, s.at, s.n, "chain", interp_loop), &o);
	assert_true(made->o.verify);
	compile_to(made, TN_LEVEL_C);
	for (int32_t i = 0; i < made->groups->kernel.n; i++)
		assert_true(made->groups->kernel.at[i]->n_vars <= 64);
}

static void long_chains(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
		struct chain c = chains[i];
		tn_diag d;

		if (unit_run(compile, &c, 0, &d) != TN_OK)
			fail_msg("%d times %s: [%s] %s", (int)c.n, c.step,
				d.rule, d.text);
	}
}

/* What has no room in a kernel is not put there, and the listing says why. */
static void full_kernel(arena *a, void *arg)
{
	compile_options o = compile_options_default(machine_find("c/sse"));
	str s = str_new(a), text = str_new(a);
	compilation *made;

	(void)arg;
	str_add(&s, "program {\n  v0: f32[4,8]\n");
	for (int32_t i = 1; i <= 40; i++)
		put(&s, chains[0].each_input, i);
	for (int32_t i = 1; i <= 40; i++)
		put(&s, "  v%i = matmul(v%p, w%i)\n", i);
	str_add(&s, "  return v40\n}\n");
	made = compile_new(a, ir_program_parse(a, s.at, s.n, "chain", interp_loop), &o);
	compile_explain(&text, made, TN_LEVEL_GROUPS, 0);
	assert_true(made->groups->kernel.n >= 2);
	assert_non_null(strstr(text.at, "the loops of the merged kernel would have "));
}

static void says_why(void **state)
{
	(void)state;
	assert_int_equal(unit_run(full_kernel, NULL, 0, NULL), TN_OK);
}

/* ---- many operands ---- */

enum { MANY = 300 };

static void joined(bool stacked, bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_tensor *x[MANY], *y, *bad;
	tn_context *c;
	tn_stats before, after;
	static float got[MANY * 2];
	int64_t two[] = {2}, three[] = {1, 2};

	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	for (int i = 0; i < MANY; i++) {
		float v[2] = {(float)i, (float)-i};

		x[i] = tn_tensor_new(c, TN_F32, 1, two, v);
	}
	y = stacked ? tn_stack(x, MANY, -1) : tn_concat(x, MANY, 0);
	assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
	for (int i = 0; i < MANY; i++) {
		assert_true(got[stacked ? i : 2 * i] == (float)i);
		assert_true(got[stacked ? MANY + i : 2 * i + 1] == (float)-i);
	}
	/* one of the last does not fit: nothing is left of those before it */
	bad = tn_tensor_new(c, TN_F32, 2, three, got);
	x[MANY - 2] = bad;
	tn_context_stats(c, &before);
	y = stacked ? tn_stack(x, MANY, 0) : tn_concat(x, MANY, 0);
	assert_false(tn_is_valid(y));
	tn_context_stats(c, &after);
	assert_int_equal(after.n_tensors, before.n_tensors);
	assert_true(tn_context_status(c) < 0);
	tn_context_free(c);
}

static void many_operands(void **state)
{
	(void)state;
	joined(false, false);
	joined(true, false);
	joined(false, true);
	joined(true, true);
}

static void in_text(arena *a, void *arg)
{
	str s = str_new(a), again = str_new(a), first = str_new(a);
	ir_program *p;

	(void)arg;
	str_add(&s, "program {\n");
	for (int i = 0; i < MANY; i++)
		str_printf(&s, "  v%d: f32[2]\n", i);
	str_add(&s, "  o = concat(");
	for (int i = 0; i < MANY; i++)
		str_printf(&s, "%sv%d", i > 0 ? ", " : "", i);
	str_add(&s, ")\n  return o\n}\n");
	p = ir_program_parse(a, s.at, s.n, "concat", interp_loop);
	ir_program_verify(p);
	assert_int_equal(p->value.at[p->output.at[0]].type.shape[0], 2 * MANY);
	ir_program_print(&first, p);
	p = ir_program_parse(a, first.at, first.n, "again", interp_loop);
	ir_program_print(&again, p);
	assert_string_equal(first.at, again.at);
}

static void many_operands_in_text(void **state)
{
	(void)state;
	assert_int_equal(unit_run(in_text, NULL, 0, NULL), TN_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_chains),
		cmocka_unit_test(says_why),
		cmocka_unit_test(many_operands),
		cmocka_unit_test(many_operands_in_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
