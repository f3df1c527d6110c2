/*
 * spawn.c: starts a program without a shell.
 *
 * The child has an empty signal mask, default SIGCHLD and SIGPIPE, empty input, and
 * writes to files, so that no process waits for a pipe.
 */
#define _GNU_SOURCE /* environ */
#include "run/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int set_up(posix_spawn_file_actions_t *f, posix_spawnattr_t *t,
	const char *out, const char *err)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC;
	sigset_t none, normal;
	int r;

	sigemptyset(&none);
	sigemptyset(&normal);
	sigaddset(&normal, SIGCHLD);
	sigaddset(&normal, SIGPIPE);
	r = posix_spawn_file_actions_addopen(f, 0, "/dev/null", O_RDONLY, 0);
	r = r ? r
	      : posix_spawn_file_actions_addopen(
			f, 1, out ? out : "/dev/null", flags, 0600);
	r = r ? r
	      : posix_spawn_file_actions_addopen(
			f, 2, err ? err : "/dev/null", flags, 0600);
	r = r ? r : posix_spawnattr_setsigmask(t, &none);
	r = r ? r : posix_spawnattr_setsigdefault(t, &normal);
	r = r ? r
	      : posix_spawnattr_setflags(
			t, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return r;
}

spawned spawn_start(char *const argv[], char *const envp[], const char *out,
	const char *err)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	spawned s = {0};
	pid_t pid = 0;

	s.error = posix_spawn_file_actions_init(&files);
	if (s.error)
		return s;
	s.error = posix_spawnattr_init(&attr);
	if (!s.error) {
		s.error = set_up(&files, &attr, out, err);
		if (!s.error)
			s.error = posix_spawn(
				&pid, argv[0], &files, &attr, argv, envp);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	s.pid = s.error ? 0 : pid;
	return s;
}

int spawn_wait(spawned s)
{
	int status;

	while (waitpid((pid_t)s.pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1; /* the host ignores SIGCHLD */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

char **spawn_env(arena *a)
{
	char **e, **out;
	int32_t n = 0;

	for (e = environ; e && *e; e++)
		n++;
	out = arena_array(a, char *, n + 2);
	n = 0;
	for (e = environ; e && *e; e++)
		if (strncmp(*e, "LC_ALL=", 7) != 0)
			out[n++] = *e;
	out[n++] = arena_strdup(a, "LC_ALL=C");
	return out;
}

char **spawn_words(arena *a, const char *command, int32_t *n)
{
	VEC(char *) v = {0};
	const char *p = command;

	for (;;) {
		size_t len;

		p += strspn(p, " \t\n");
		len = strcspn(p, " \t\n");
		if (len == 0)
			break;
		*vec_push(a, &v) = arena_strndup(a, p, len);
		p += len;
	}
	*n = v.n;
	*vec_push(a, &v) = NULL;
	return v.at;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       access(path, X_OK) == 0;
}

const char *spawn_find(arena *a, const char *name)
{
	const char *p = getenv("PATH");

	if (strchr(name, '/'))
		return is_program(name) ? name : NULL;
	if (!p)
		p = "/usr/local/bin:/usr/bin:/bin";
	for (;;) {
		size_t len = strcspn(p, ":");
		const char *path = arena_printf(
			a, "%.*s/%s", len ? (int)len : 1, len ? p : ".", name);

		if (is_program(path))
			return path;
		p += len;
		if (!*p++)
			return NULL;
	}
}
