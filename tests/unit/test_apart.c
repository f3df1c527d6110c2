/*
 * Pairs of equations that are kept apart: no kernel computes both, all other
 * kernels stay what they were, and results keep their bits. (Inputs are small
 * integers, so that sums are exact in any order.)
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <tenon_train.h>

enum { MOST = 64 * 128 };

/* Two programs side by side: what is done to y leaves the kernels of q alone. */
#define BESIDE                                                                 \
	" v = sin(u)\n r = reduce_max(v, axes=[1], keep=true)\n"               \
	" q = sub(v, r)\n return y, q }"

static const struct apart_case {
	const char *name, *text;
	int32_t least; /* merges, those of q among them */
	bool tied; /* in each of them one reads the other */
} cases[] = {
	{"a chain that is put into its end",
		"program { x: f32[64,128]  w: f32[64,128]  u: f32[24,40]\n"
		" a = mul(x, 2.0)\n b = add(a, w)\n y = relu(b)\n" BESIDE,
		5, true},
	{"rows with sums, and a product",
		"program { x: f32[64,128]  w: f32[128,32]  u: f32[24,40]\n"
		" t = abs(x)\n m = reduce_max(t, axes=[1], keep=true)\n"
		" e = sub(t, m)\n s = reduce_sum(e, axes=[1], keep=true)\n"
		" d = mul(e, s)\n o = matmul(d, w)\n y = relu(o)\n" BESIDE,
		10, true},
	{"two results of one tensor",
		"program { x: f32[64,128]  u: f32[24,40]  w: f32[64,128]\n"
		" a = exp(x)\n b = tanh(x)\n y = add(a, b)\n" BESIDE,
		5, true},
	{"rows that only read the same",
		"program { x: f32[64,128]  w: f32[64]  u: f32[24,40]\n"
		" a = reduce_max(x, axes=[1])\n b = reduce_min(x, axes=[1])\n"
		" y = concat(a, b, axis=0)\n" BESIDE,
		3, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct results {
	tn_context *c;
	tn_program *p;
	float x[MOST], w[MOST], u[24 * 40], y[MOST], q[24 * 40];
} results;

static void parse(results *r, const char *text)
{
	tn_options o = TN_OPTIONS_INIT;

	o.threads = 1;
	assert_int_equal(tn_context_new(&r->c, &o), TN_OK);
	assert_int_equal(tn_program_parse(&r->p, r->c, text, strlen(text), "t"),
		TN_OK);
}

static void run(results *r)
{
	const void *in[3];
	void *out[2] = {r->y, r->q};

	for (int32_t i = 0; i < MOST; i++) {
		r->x[i] = (float)(i * 7 % 11 - 5);
		r->w[i] = (float)(i * 5 % 9 - 4);
	}
	for (int32_t i = 0; i < 24 * 40; i++)
		r->u[i] = (float)(i % 13) / 4;
	memset(r->y, 0, sizeof r->y);
	assert_int_equal(tn_program_n_inputs(r->p), 3);
	for (int32_t i = 0; i < 3; i++) {
		const char *name = tn_program_input(r->p, i)->name;

		in[i] = *name == 'x' ? r->x : *name == 'w' ? r->w : r->u;
	}
	assert_int_equal(tn_program_run(r->p, in, out), TN_OK);
}

static void end(results *r)
{
	tn_program_free(r->p);
	tn_context_free(r->c);
}

static tn_kernel kernel_at(tn_program *p, int32_t i)
{
	tn_kernel k;

	assert_int_equal(tn_program_kernel(&k, p, i), TN_OK);
	assert_non_null(k.code);
	assert_true(k.predicted > 0 && *k.term != '\0');
	return k;
}

static tn_merge merge_at(tn_program *p, int32_t i)
{
	tn_merge m;

	assert_int_equal(tn_program_merge(&m, p, i), TN_OK);
	assert_true(m.kernel >= 0 && m.kernel < tn_program_n_kernels(p));
	assert_true(m.at[0] >= 0 && m.at[1] >= 0 && m.at[0] != m.at[1]);
	return m;
}

static bool is_merged(tn_program *p, const tn_merge *m)
{
	for (int32_t i = 0; i < tn_program_n_merges(p); i++) {
		tn_merge o = merge_at(p, i);

		if (!strcmp(o.first, m->first) && !strcmp(o.then, m->then))
			return true;
	}
	return false;
}

static bool has_kernel(tn_program *p, const tn_kernel *k)
{
	for (int32_t i = 0; i < tn_program_n_kernels(p); i++) {
		tn_kernel o = kernel_at(p, i);

		if (!strcmp(o.name, k->name) && !strcmp(o.code, k->code))
			return true;
	}
	return false;
}

/* The reason between the two, where one reads the other. */
static void check_reason(tn_program *p, const tn_merge *m, bool tied)
{
	char *text;

	assert_int_equal(
		tn_program_explain(&text, p, TN_LEVEL_GROUPS, 0), TN_OK);
	if (tied && strstr(text, "(request): kept apart by request") == NULL)
		fail_msg("%s and %s: no reason in\n%s", m->first, m->then, text);
	tn_text_free(text);
}

static void check_merge(results *base, const struct apart_case *k, int32_t i)
{
	static results apart;
	tn_merge m = merge_at(base->p, i);

	parse(&apart, k->text);
	assert_int_equal(
		tn_program_set_apart(apart.p, m.first, m.then), TN_OK);
	run(&apart);
	if (is_merged(apart.p, &m))
		fail_msg("%s: %s and %s are not apart", k->name, m.first,
			m.then);
	for (int32_t n = 0; n < tn_program_n_kernels(base->p); n++) {
		tn_kernel old = kernel_at(base->p, n);

		if (n != m.kernel && !has_kernel(apart.p, &old))
			fail_msg("%s: without %s and %s, %s is gone", k->name,
				m.first, m.then, old.name);
	}
	assert_true(tn_program_n_kernels(apart.p) >
		tn_program_n_kernels(base->p));
	assert_memory_equal(apart.y, base->y, sizeof base->y);
	assert_memory_equal(apart.q, base->q, sizeof base->q);
	check_reason(apart.p, &m, k->tied);
	end(&apart);
}

static void test_every_merge(void **state)
{
	static results base;

	(void)state;
	for (int32_t i = 0; i < N_CASES; i++) {
		parse(&base, cases[i].text);
		assert_int_equal(tn_program_n_kernels(base.p), 0);
		assert_int_equal(tn_program_n_merges(base.p), 0);
		run(&base);
		if (tn_program_n_merges(base.p) < cases[i].least)
			fail_msg("%s: %d merges", cases[i].name,
				(int)tn_program_n_merges(base.p));
		for (int32_t k = 0; k < tn_program_n_merges(base.p); k++)
			check_merge(&base, &cases[i], k);
		end(&base);
	}
}

/* Nothing is kept apart, and each kernel is a file. */
static void test_files(void **state)
{
	static results r;
	tn_stats s;

	(void)state;
	parse(&r, cases[1].text);
	assert_int_equal(tn_program_set_apart(r.p, NULL, NULL), TN_OK);
	run(&r);
	tn_context_stats(r.c, &s);
	assert_true(tn_program_n_kernels(r.p) > 1);
	assert_int_equal(s.n_compiled + s.n_disk_hits + s.n_memory_hits,
		tn_program_n_kernels(r.p));
	end(&r);
}

static void refused(results *r, tn_status s, const char *rule)
{
	assert_int_equal(s, TN_EINVAL);
	assert_string_equal(tn_context_diag(r->c)->rule, rule);
}

static void test_errors(void **state)
{
	static results r;
	tn_kernel k;
	tn_merge m;
	tn_cost cost;

	(void)state;
	parse(&r, cases[0].text);
	refused(&r, tn_program_set_apart(r.p, "a", NULL), "api.null");
	assert_int_equal(tn_program_set_apart(r.p, "a", "nobody"), TN_OK);
	refused(&r, tn_program_compile(r.p), "groups.name");
	end(&r);
	parse(&r, cases[0].text);
	assert_int_equal(tn_program_set_apart(r.p, "x", "y"), TN_OK);
	refused(&r, tn_program_compile(r.p), "groups.name");
	end(&r);
	parse(&r, cases[0].text);
	assert_int_equal(tn_program_set_apart(r.p, "y", "y"), TN_OK);
	refused(&r, tn_program_compile(r.p), "groups.pair");
	end(&r);
	parse(&r, cases[0].text);
	for (int i = 0; i < 32; i++)
		assert_int_equal(tn_program_set_apart(r.p, "a", "b"), TN_OK);
	refused(&r, tn_program_set_apart(r.p, "a", "b"), "groups.pairs");
	refused(&r, tn_program_kernel(&k, r.p, 0), "kernels.number");
	refused(&r, tn_program_merge(&m, r.p, 0), "merges.number");
	run(&r);
	refused(&r, tn_program_set_apart(r.p, "a", "y"), "groups.late");
	refused(&r, tn_program_kernel(&k, r.p, -1), "kernels.number");
	refused(&r, tn_program_kernel(&k, r.p, 99), "kernels.number");
	refused(&r, tn_program_merge(&m, r.p, 99), "merges.number");
	refused(&r, tn_machine_cost(&cost, r.c, -1), "machine.cost");
	refused(&r, tn_machine_cost(&cost, r.c, tn_machine_n_costs()),
		"machine.cost");
	assert_int_equal(tn_machine_cost(&cost, NULL, 0), TN_EINVAL);
	assert_int_equal(tn_machine_cost(&cost, r.c, 0), TN_OK);
	assert_true(cost.value > 0 && cost.vector_bytes > 0 &&
		    strlen(cost.from) > 0);
	end(&r);
}

/* Times of one thread, run by run. */
static void test_times(void **state)
{
	static results r;
	double before = 0;

	(void)state;
	parse(&r, cases[1].text);
	assert_int_equal(tn_profile_start(r.c), TN_OK);
	for (int i = 1; i <= 3; i++) {
		tn_kernel k;

		run(&r);
		k = kernel_at(r.p, 0);
		assert_int_equal(k.runs, i);
		assert_true(k.seconds > before);
		before = k.seconds;
	}
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_merge),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
