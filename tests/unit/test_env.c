/* env.c: what is thrown arrives, nests, and shows the right place. */
#include "unit.h"

struct work {
	env *e;
	int32_t step;
	tn_status inner;
};

static void throws(void *arg)
{
	struct work *w = arg;

	w->step = 1;
	env_fail(w->e, TN_EIO, "file.read",
		(loc){.file = "x.npy", .line = 3, .column = 4}, "no %s %d",
		"bytes", 7);
}

static void returns(void *arg)
{
	struct work *w = arg;

	w->step = 2;
}

static void nests(void *arg)
{
	struct work *w = arg;

	w->inner = env_run(w->e, throws, arg);
	/* the arguments are the diagnosis that is being replaced */
	env_fail(w->e, TN_EINVAL, env_diag(w->e)->rule, (loc){0}, "again: %s",
		env_diag(w->e)->text);
}

static void test_run(void **state)
{
	struct work w = {.e = env_new()};
	const tn_diag *d = env_diag(w.e);

	(void)state;
	assert_int_equal(env_run(w.e, returns, &w), TN_OK);
	assert_int_equal(w.step, 2);
	assert_int_equal(env_run(w.e, throws, &w), TN_EIO);
	assert_int_equal(d->status, TN_EIO);
	assert_string_equal(d->rule, "file.read");
	assert_string_equal(d->file, "x.npy");
	assert_int_equal(d->line, 3);
	assert_int_equal(d->column, 4);
	assert_string_equal(d->text, "no bytes 7");
	assert_string_equal(d->extra, "");
	assert_int_equal(env_run(w.e, nests, &w), TN_EINVAL);
	assert_int_equal(w.inner, TN_EIO);
	assert_string_equal(d->text, "again: no bytes 7");
	assert_string_equal(d->rule, "file.read");
	assert_string_equal(d->file, "");
	assert_int_equal(env_run(w.e, returns, &w), TN_OK);
	env_free(w.e);
}

struct shown {
	env *e;
	const char *source;
	int32_t line, column;
};

static void throws_source(void *arg)
{
	struct shown *s = arg;

	env_fail_source(s->e, "tn.name", (loc){"a.tn", s->line, s->column},
		s->source, strlen(s->source), "wrong");
}

static void test_source(void **state)
{
	static const struct {
		const char *source;
		int32_t line, column;
		const char *extra;
	} cases[] = {
		{"ab cd", 1, 4, "ab cd\n   ^"},
		{"one\ntwo\nthree\n", 2, 1, "two\n^"},
		{"one\r\ntwo\r\n", 1, 4, "one\n   ^"},
		{"one\n", 2, 1, "\n^"},
		{"\tx = y", 1, 6, "\tx = y\n\t    ^"},
		{"a\033b", 1, 3, "a?b\n  ^"},
		{"\xc3\xa4 = b", 1, 6, "\xc3\xa4 = b\n    ^"},
		{"ab", 1, 99, "ab\n  ^"},
		{"", 1, 1, "\n^"},
		{"ab", 3, 1, ""},
		{"ab", 0, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct shown s = {env_new(), cases[i].source, cases[i].line,
			cases[i].column};

		assert_int_equal(env_run(s.e, throws_source, &s), TN_EINVAL);
		assert_string_equal(env_diag(s.e)->extra, cases[i].extra);
		assert_string_equal(env_diag(s.e)->text, "wrong");
		env_free(s.e);
	}
}

/* Every column of a long line of two-byte characters shows whole ones. */
static void test_long_line(void **state)
{
	char source[5001];
	struct shown s = {env_new(), source, 1, 0};

	(void)state;
	for (size_t i = 0; i < 5000; i += 2)
		memcpy(source + i, i == 3000 ? "->" : "\xc3\xa4", 2);
	source[5000] = '\0';
	for (s.column = 1; s.column <= 5001; s.column += 7) {
		const char *extra = env_diag(s.e)->extra, *end;

		assert_int_equal(env_run(s.e, throws_source, &s), TN_EINVAL);
		end = strchr(extra, '\n');
		assert_non_null(end);
		assert_true(end - extra <= 162);
		assert_true(((unsigned char)extra[0] & 0xc0) != 0x80);
		assert_true(end == extra || (unsigned char)end[-1] != 0xc3);
	}
	s.column = 3001;
	assert_int_equal(env_run(s.e, throws_source, &s), TN_EINVAL);
	{
		const char *extra = env_diag(s.e)->extra;
		const char *end = strchr(extra, '\n');
		const char *arrow = strstr(extra, "->");
		size_t shown = 0;

		assert_non_null(arrow);
		for (const char *c = extra; c < arrow; c++)
			shown += ((unsigned char)*c & 0xc0) != 0x80;
		assert_int_equal(strlen(end + 1), shown + 1);
	}
	env_free(s.e);
}

static void throws_long(void *arg)
{
	struct work *w = arg;
	char name[3000];

	for (size_t i = 0; i < sizeof name - 1; i += 3)
		memcpy(name + i, "\xe2\x82\xac", 3); /* the euro sign */
	name[sizeof name - 3] = '\0';
	env_fail(w->e, TN_EINVAL, name, (loc){.file = name}, "%s", name);
}

static void throws_control(void *arg)
{
	struct work *w = arg;

	env_bug(w->e, "w", "a\nb\033[2J%c", 0x7f);
}

static void test_text(void **state)
{
	struct work w = {.e = env_new()};
	const tn_diag *d = env_diag(w.e);

	(void)state;
	assert_int_equal(env_run(w.e, throws_long, &w), TN_EINVAL);
	assert_int_equal(strlen(d->text), 1023 / 3 * 3);
	assert_int_equal(strlen(d->rule), 63 / 3 * 3);
	assert_int_equal(strlen(d->file), 255 / 3 * 3);
	assert_int_equal(env_run(w.e, throws_control, &w), TN_EINTERNAL);
	assert_string_equal(d->text, "a?b?[2J?");
	env_free(w.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_source),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
