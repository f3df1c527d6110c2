/*
 * private.h: private to run/: what its files share.
 *
 *   spawn.c    starts a program without a shell, with its output in a file
 *   folder.c   finds the cache directory, and checks that it can be used
 *   store.c    the compiled objects in the cache
 *   probe.c    finds the compiler and the flags that it accepts
 *   jit.c      run.h: compiles texts and loads the objects
 */
#ifndef RUN_PRIVATE_H
#define RUN_PRIVATE_H

#include "base/sha256.h"
#include "run/store.h"

/* ---- spawn ----------------------------------------------------------- */

typedef struct spawned {
	int64_t pid; /* 0: could not be started, error says why */
	int error;
} spawned;

/* argv[0] is a path; stdout and stderr go to new files, or nowhere if NULL */
spawned spawn_start(char *const argv[], char *const envp[], const char *out,
	const char *err);
/* exit status; 128 + signal; -1 if the system lost it */
int spawn_wait(spawned s);
/* our environment with LC_ALL=C, so that messages can be read by all */
char **spawn_env(arena *a);
/* words of a command, split on spaces; NULL at the end */
char **spawn_words(arena *a, const char *command, int32_t *n);
/* path of a program as execvp would find it; NULL: there is none */
const char *spawn_find(arena *a, const char *name);

/* ---- probe ----------------------------------------------------------- */

typedef struct compiler {
	char **argv; /* path, then words of the user's */
	int32_t n_argv;
	const char *shown; /* as the user would name it */
	char **flag;	   /* those that it accepts */
	int32_t n_flags;
	const char *identity; /* hash of compiler, flags, machine */
	bool may_tile; /* the system lets this process use tile registers */
	run_target target;
} compiler;

/* Throws TN_ECOMPILE [run.cc]. */
void probe_compiler(compiler *c, arena *a, store *s, const char *target);

#endif
