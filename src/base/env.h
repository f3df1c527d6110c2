/* env.h: functions of an env for arena.c; private to base/. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include "base/base.h"

/* n_bytes of zeroed memory, or NULL. Counts towards env_test_fail_alloc. */
void *env_calloc(env *e, size_t n_bytes);
void env_release(env *e, void *p); /* what env_calloc gave; NULL is fine */

#endif
