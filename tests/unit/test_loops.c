/*
 * test_loops.c: training loops as people write them, with state that each step
 * leaves for the next one: in plain calls, with the forward compiled, and with
 * the whole step compiled; with and without memory for gradients; with state in
 * tensors and in parameters. After each of six steps everything has the same
 * bits in all of them.
 */
#include "loops.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#ifndef LOOPS_INTERP
#define LOOPS_INTERP true
#endif

/* rounding: fused kernels sum in other orders */
#ifndef LOOPS_FUSED
#define LOOPS_FUSED false
#endif

/* ---- runs ---- */

typedef struct record {
	double at[MAX_RECORD];
	int32_t n, step[STEPS]; /* where each one ends */
} record;

static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	loop *l = user;

	(void)c;
	out[0] = l->p->forward(l, in);
	if (l->how.how == WHOLE)
		(l->p->update != NULL ? l->p->update : sgd)(l, out[0]);
	return TN_OK;
}

static const char *text_of(setting s)
{
	static const char *const how[] = {
		"plain", "forward compiled", "compiled whole"};
	static char text[64];

	(void)snprintf(text, sizeof text, "%s%s%s", how[s.how],
		s.limited ? ", limited" : "",
		s.parameters ? ", in parameters" : "");
	return text;
}

static void note(record *r, tn_tensor *x)
{
	tn_dtype t = tn_tensor_dtype(x);
	int32_t n = (int32_t)tn_tensor_n_elems(x);
	double data[3 * B * N];

	assert_true(r->n + n <= MAX_RECORD && n <= 3 * B * N);
	(void)tn_read(x, data, (size_t)n * tn_dtype_bytes(t));
	for (int32_t i = 0; i < n; i++)
		r->at[r->n++] = tn_get_f64(t, data, i);
}

static void one_step(loop *l, tn_function *f, record *r)
{
	float x[B * N], y[B * N];
	tn_tensor *in[2], *loss;

	tn_scope_enter(l->c);
	fill(x, B * N, l->step);
	fill(y, B * N, 9 + 2 * l->step);
	in[0] = tn_tensor_new(l->c, TN_F32, 2, bn, x);
	in[1] = tn_tensor_new(l->c, TN_F32, 2, bn, y);
	if (f == NULL)
		(void)body(l->c, l, in, &loss);
	else
		(void)tn_function_call(f, in, &loss);
	if (l->how.how != WHOLE)
		(l->p->update != NULL ? l->p->update : sgd)(l, loss);
	if (tn_context_status(l->c) < 0)
		fail_msg("%s, step %d, %s: [%s] %s", l->p->name,
			(int)l->step + 1, text_of(l->how),
			tn_context_diag(l->c)->rule,
			tn_context_diag(l->c)->text);
	note(r, loss);
	for (int32_t i = 0; i < l->n_w; i++)
		note(r, l->w[i]);
	for (int32_t i = 0; i < l->n_b; i++)
		note(r, l->b[i]);
	assert_int_equal(tn_context_status(l->c), TN_OK);
	tn_scope_leave(l->c);
	r->step[l->step] = r->n;
}

static void run(const pattern *p, setting how, record *r)
{
	loop l = {.p = p, .how = how};
	tn_options o = TN_OPTIONS_INIT;
	tn_function *f = NULL;

	o.interp = LOOPS_INTERP;
	o.no_fusion = !LOOPS_FUSED;
	o.threads = 1;
	o.memory_limit = how.limited ? 0 : -1;
	r->n = 0;
	assert_int_equal(tn_context_new(&l.c, &o), TN_OK);
	p->make(&l);
	if (how.how != PLAIN)
		assert_int_equal(tn_compile(&f, l.c, body, &l, 2, 1, p->name),
			TN_OK);
	for (l.step = 0; l.step < STEPS; l.step++)
		one_step(&l, f, r);
	if (f != NULL)
		assert_true(tn_function_n_recorded(f) <= 3);
	tn_function_free(f);
	tn_context_free(l.c);
}

static bool is_same(double x, double y)
{
	return memcmp(&x, &y, sizeof x) == 0 ||
	       (LOOPS_FUSED && fabs(x - y) <= 1e-4 * (1 + fabs(y)));
}

static void check_same(const pattern *p, setting how, const record *want)
{
	static record got;
	int32_t k = 0;

	run(p, how, &got);
	assert_int_equal(got.n, want->n);
	for (int32_t i = 0; i < got.n; i++) {
		while (i >= got.step[k])
			k++;
		if (!is_same(got.at[i], want->at[i]))
			fail_msg("%s, %s, step %d, element %d: %.9g, %.9g",
				p->name, text_of(how), (int)k + 1,
				(int)(i - (k > 0 ? got.step[k - 1] : 0)),
				got.at[i], want->at[i]);
	}
}

/* Do the steps do anything: is no step's record that of the one before? */
static void check_moves(const pattern *p, const record *r)
{
	for (int32_t k = 1; k < STEPS; k++) {
		int32_t n = r->step[0], at = r->step[k - 1];

		if (memcmp(r->at + at, r->at + at - n,
			    (size_t)n * sizeof *r->at) == 0)
			fail_msg("%s: step %d changes nothing", p->name,
				(int)k + 1);
	}
}

static void loops_agree(void **unused)
{
	static record want;

	(void)unused;
	for (int32_t k = 0; k < loops_n_patterns; k++) {
		const pattern *p = &loops_patterns[k];

		run(p, (setting){PLAIN, false, false}, &want);
		check_moves(p, &want);
		for (int32_t i = 1; i < 12; i++) {
			setting how = {(mode)(i % 3), i / 3 % 2 != 0, i >= 6};

			if (how.how != WHOLE || !p->is_by_c)
				check_same(p, how, &want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
