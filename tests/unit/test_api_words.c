/*
 * test_api_words.c: what diagnoses say of arguments that are wrong.
 */
#include "api_context.h"
#include "unit.h"

static void said(tn_context *c, const char *rule, const char *text)
{
	const tn_diag *d = tn_context_diag(c);
	float data[6];

	if (strcmp(d->rule, rule) != 0 || strstr(d->text, text) == NULL)
		fail_msg("[%s] %s, not [%s] %s", d->rule, d->text, rule, text);
	tn_context_clear(c);
	if (c != NULL) /* and all is well again */
		assert_int_equal(tn_read(tn_relu(new_tensor(c)), data, sizeof data),
			TN_OK);
}

/* Lists and texts of attributes: of a function of a row, and by name. */
static void attributes(void **state)
{
	static const int64_t axes[] = {0};
	tn_context *c = new_context();
	tn_tensor *x = new_tensor(c), *y;
	tn_attr a = {.name = "axes", .kind = TN_ATTR_INTS, .ints = axes};

	(void)state;
	for (int32_t n = -1; n > -3; n--) {
		assert_false(tn_is_valid(tn_reduce_sum(x, axes, n, false)));
		said(c, "tn.attr", "less than 0");
		a.n_ints = n;
		assert_int_equal(tn_call(c, "reduce_sum", 1, &x, 1, &a, 1, &y),
			TN_EINVAL);
		said(c, "tn.attr", "attribute axes is a list of less than 0");
		assert_int_equal(tn_call(c, "reduce_sum", 1, &x, n, &a, 1, &y),
			TN_EINVAL);
		said(c, "api.count", "");
		assert_int_equal(tn_call(c, "reduce_sum", n, &x, 0, &a, 1, &y),
			TN_EINVAL);
		said(c, "api.count", "");
	}
	a = (tn_attr){.name = "axes", .kind = TN_ATTR_INTS, .n_ints = 1};
	assert_int_equal(
		tn_call(c, "reduce_sum", 1, &x, 1, &a, 1, &y), TN_EINVAL);
	said(c, "tn.attr", "is a list that is NULL");
	a = (tn_attr){.name = "equation", .kind = TN_ATTR_STRING};
	assert_int_equal(tn_call(c, "einsum", 1, &x, 1, &a, 1, &y), TN_EINVAL);
	said(c, "tn.attr", "is a string that is NULL");
	assert_false(tn_is_valid(tn_einsum(&x, 1, NULL)));
	said(c, "tn.attr", "is a string that is NULL");
	memset(&a.kind, 77, sizeof a.kind);
	assert_int_equal(tn_call(c, "einsum", 1, &x, 1, &a, 1, &y), TN_EINVAL);
	said(c, "tn.attr", "is of an unknown kind");
	a = (tn_attr){.name = "to", .kind = TN_ATTR_DTYPE,
		.dtype = (tn_dtype)55};
	assert_int_equal(tn_call(c, "cast", 1, &x, 1, &a, 1, &y), TN_EINVAL);
	said(c, "tn.attr", "is not a dtype");
	tn_context_free(c);
}

static void choices(void **state)
{
	tn_options zeros = {0};
	tn_optimizer_options none = {0};
	tn_context *c = new_context(), *no = c;
	tn_optimizer *o;

	(void)state;
	assert_int_equal(tn_optimizer_new(&o, c, "Adam", NULL), TN_EINVAL);
	said(c, "optimizer.name", "there is no optimiser Adam; accepted are sgd");
	assert_int_equal(tn_optimizer_new(&o, c, NULL, NULL), TN_EINVAL);
	said(c, "optimizer.name", "NULL");
	assert_int_equal(tn_optimizer_new(&o, c, "adam", &none), TN_EINVAL);
	said(c, "optimizer.options", "TN_OPTIMIZER_OPTIONS_INIT");
	assert_int_equal(tn_context_new(&no, &zeros), TN_EINVAL);
	assert_null(no);
	said(NULL, "context.options", "TN_OPTIONS_INIT");
	assert_int_equal(tn_program_run(NULL, NULL, NULL), TN_EINVAL);
	said(NULL, "api.null", "the program is NULL");
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes),
		cmocka_unit_test(choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
