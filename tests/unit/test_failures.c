/*
 * Evaluations that fail: every tensor is then as it was before the step, can be
 * read and written, and the next step gives the same bits as if the bad one had
 * not been. Kinds of steps x who is looked at first, compiled and interpreted.
 */
#include "failing.h"

/* The state can be written in every way, and is put back. */
static void write_all(net *t, const snapshot *s, const char *name)
{
	for (int32_t i = 0; i < t->n_state; i++) {
		tn_tensor *x = t->state[i];
		size_t n = (size_t)tn_tensor_n_elems(x) * sizeof(float);
		float got[WORDS * WIDTH];
		tn_status r = TN_OK;

		tn_scope_enter(t->c);
		tn_no_grad_enter(t->c);
		r = tn_fill_(x, 3);
		r = r < 0 ? r : tn_copy_(x, tn_mul(x, f32(t->c, 2)));
		r = r < 0 ? r : tn_read(x, got, n);
		if (r < 0 || got[0] != 6)
			fail_msg("%s: state %d cannot be written", name,
				(int)i);
		tn_no_grad_leave(t->c);
		tn_scope_leave(t->c);
		assert_int_equal(tn_set_data(x, s->at[i], n), TN_OK);
	}
}

/* ---- sequences ---- */

enum look { LOOK_LOSS, LOOK_ALL, LOOK_ONE, LOOK_LATER, N_LOOKS };

static tn_status look(net *t, int kind, enum look how)
{
	float got[WORDS * WIDTH];
	bool writes_w = strstr(steps[kind].name, "collecting") == NULL;

	switch (how) {
	case LOOK_LOSS:
		return tn_read(t->loss, got, sizeof *got);
	case LOOK_ALL:
		return tn_eval(t->state, t->n_state);
	case LOOK_ONE:
		return writes_w ? tn_read(t->w, got, sizeof got)
				: tn_eval(&t->seen, 1);
	case LOOK_LATER:
	case N_LOOKS:
		break;
	}
	return TN_ERANGE;
}

static void fails(net *t, tn_status s, const char *name)
{
	if (s != TN_ERANGE)
		fail_msg("%s: a bad index gives status %d", name, s);
	if (tn_context_status(t->c) < 0 &&
		strcmp(tn_context_diag(t->c)->rule, "index.range") != 0)
		fail_msg("%s: [%s] %s", name, tn_context_diag(t->c)->rule,
			tn_context_diag(t->c)->text);
	tn_context_clear(t->c);
}

/* What the bad step made fails each time, and only that. */
static void loss_fails(net *t, const char *name)
{
	float got;

	for (int i = 0; i < 2; i++)
		fails(t, tn_read(t->loss, &got, sizeof got), name);
}

static void sequence(int kind, enum look how, bool interp, bool plain)
{
	const char *name = steps[kind].name;
	tn_options o = TN_OPTIONS_INIT;
	snapshot want, before, now;
	tn_context *c;
	net t;

	o.interp = interp;
	for (int k = 0; k < 2; k++) {
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		t = net_new(c, kind, plain);
		record(&t, kind, good[0]);
		if (how != LOOK_LATER)
			take(&t, &before);
		tn_drop(t.loss);
		if (k == 1) {
			record(&t, kind, bad);
			fails(&t, look(&t, kind, how), name);
			loss_fails(&t, name);
			take(&t, &now);
			if (how != LOOK_LATER) {
				same(&now, &before, name, "after a bad step");
				write_all(&t, &before, name);
			}
			loss_fails(&t, name);
			if (how != LOOK_ONE)
				tn_drop(t.loss);
		}
		record(&t, kind, good[1]);
		if (k == 0)
			take(&t, &want);
		else
			take(&t, &now);
		net_free(&t);
		tn_context_free(c);
	}
	same(&now, &want, name, "good, bad, good");
}

static void sequences(bool interp, bool plain)
{
	for (int k = 0; k < N_STEPS; k++)
		for (int how = 0; how < N_LOOKS; how++)
			sequence(k, (enum look)how, interp, plain);
}

static void interpreted(void **state)
{
	(void)state;
	sequences(true, false);
	sequences(true, true);
}

static void compiled(void **state)
{
	(void)state;
	sequences(false, false);
}

static void compiled_plain(void **state)
{
	(void)state;
	sequences(false, true);
}

/* ---- what has nothing to go back to ---- */

static void never_good(void **state)
{
	tn_context *c = context(true);
	tn_tensor *x = tn_tensor_new(c, TN_F32, 1, &(int64_t){3}, start), *y, *z;
	tn_tensor *id = tn_scalar(c, TN_I64, 9), *view;
	float got[3];

	(void)state;
	y = tn_take(x, id, 0);
	z = tn_add(x, y); /* no version of it is good */
	tn_add_(z, x);
	view = tn_narrow(z, 0, 1, 2);
	tn_copy_(x, z);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tn_read(z, got, sizeof got), TN_ERANGE);
		assert_int_equal(tn_read(view, got, 8), TN_ERANGE);
		tn_context_clear(c);
	}
	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	assert_memory_equal(got, start, sizeof got);
	/* until all of it is written */
	tn_fill_(view, 5);
	assert_int_equal(tn_read(z, got, sizeof got), TN_ERANGE);
	tn_context_clear(c);
	assert_int_equal(tn_fill_(z, 1), TN_OK);
	tn_fill_(view, 5);
	assert_int_equal(tn_read(z, got, sizeof got), TN_OK);
	assert_true(got[0] == 1 && got[1] == 5 && got[2] == 5);
	assert_int_equal(tn_set_data(z, start, sizeof got), TN_OK);
	assert_int_equal(tn_read(z, got, sizeof got), TN_OK);
	assert_memory_equal(got, start, sizeof got);
	assert_int_equal(tn_read(y, got, 4), TN_ERANGE);
	tn_context_free(c);
}

/* ---- writes to what repeats elements ---- */

static tn_status add_one(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *x = user != NULL ? tn_narrow(in[0], 0, 0, 1) : in[0];

	tn_add_(x, f32(c, 1));
	out[0] = sum(in[0]);
	return TN_OK;
}

static tn_status outer(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *x = tn_transpose(in[0], ((int64_t[]){1, 0}), 2);

	(void)c;
	return tn_function_call(user, &x, out);
}

static void repeated(void **state)
{
	const int64_t shape[] = {2, 3};

	(void)state;
	for (int interp = 0; interp < 2; interp++) {
		tn_context *c = context(interp);
		tn_tensor *x = tn_tensor_new(c, TN_F32, 1, &shape[1], start);
		tn_tensor *all = tn_broadcast_to(x, shape, 2), *out;
		tn_tensor *whole = tn_tensor_new(c, TN_F32, 2, shape, start);
		tn_function *f[4];
		float got[3];

		assert_true(tn_compile(&f[0], c, add_one, NULL, 1, 1, "f") >= 0);
		assert_true(tn_compile(&f[1], c, outer, f[0], 1, 1, "g") >= 0);
		assert_true(tn_compile(&f[2], c, add_one, c, 1, 1, "h") >= 0);
		for (int k = 0; k < 2; k++)
			for (int i = 0; i < 2; i++) {
				assert_int_equal(tn_function_call(f[k], &all,
							 &out), TN_EINVAL);
				assert_string_equal(
					tn_context_diag(c)->rule,
					"write.repeats");
				tn_context_clear(c);
				assert_int_equal(tn_function_call(f[k], &whole,
							 &out), TN_OK);
			}
		assert_int_equal(tn_add_(all, f32(c, 1)), TN_EINVAL);
		tn_context_clear(c);
		assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
		assert_memory_equal(got, start, sizeof got);
		/* one of the rows alone is no repetition */
		assert_int_equal(tn_function_call(f[2], &all, &out), TN_OK);
		assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
		assert_true(got[0] == start[0] + 1);
		for (int k = 0; k < 3; k++)
			tn_function_free(f[k]);
		tn_context_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreted),
		cmocka_unit_test(compiled),
		cmocka_unit_test(compiled_plain),
		cmocka_unit_test(never_good),
		cmocka_unit_test(repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
