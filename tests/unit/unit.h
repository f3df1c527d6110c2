/*
 * unit.h: cmocka with what it wants included first, and the harness of every
 * test that throws: run_status(fn, arg) gives each call an env and an arena of
 * its own, and fails the allocations one after the other on request.
 */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* In a host that speaks another language: tools/locale.sh. */
static void __attribute__((constructor)) unit_locale(void)
{
	const char *name = getenv("TN_LOCALE");

	if (name != NULL && setlocale(LC_ALL, name) == NULL) {
		fprintf(stderr, "there is no locale %s\n", name);
		exit(1);
	}
	setlocale(LC_MESSAGES, "C"); /* tests read what strerror says */
}

/* Ends a test that cannot run here; tools/check.sh prints the reason. */
#define unit_skip(reason)                                                      \
	do {                                                                   \
		print_message("skipped: %s\n", reason);                        \
		skip();                                                        \
	} while (0)

struct unit_call {
	void (*fn)(arena *a, void *arg);
	void *arg;
	env *e;
	arena *a;
};

static inline void unit_enter(void *p)
{
	struct unit_call *c = p;

	c->a = arena_new(c->e);
	c->fn(c->a, c->arg);
}

/* Status of fn(a, arg) with allocation fail_at failing (0: none). */
static inline tn_status unit_run(void (*fn)(arena *a, void *arg), void *arg,
	int64_t fail_at, tn_diag *diag)
{
	struct unit_call c = {.fn = fn, .arg = arg, .e = env_new()};
	tn_status status;

	assert_non_null(c.e);
	env_test_fail_alloc(c.e, fail_at);
	status = env_run(c.e, unit_enter, &c);
	if (diag != NULL)
		*diag = *env_diag(c.e);
	arena_free(c.a);
	env_free(c.e);
	return status;
}

/* fn must succeed, and fail cleanly with each allocation of it failing. */
static inline void unit_each_alloc_fails(
	void (*fn)(arena *a, void *arg), void *arg)
{
	tn_status status = TN_ENOMEM;
	int64_t n;

	for (n = 1; n < 100000 && status != TN_OK; n++) {
		tn_diag d;

		status = unit_run(fn, arg, n, &d);
		if (status != TN_OK) {
			assert_int_equal(status, TN_ENOMEM);
			assert_string_equal(d.rule, "memory");
		}
	}
	assert_int_equal(status, TN_OK);
	assert_true(n > 2); /* it did allocate */
}

#endif
