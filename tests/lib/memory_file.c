/*
 * memory_file.c: files that are in no folder, for readers of files.
 */
#define _GNU_SOURCE /* memfd_create */
#include "memory_file.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static void close_file(void *what)
{
	close((int)(intptr_t)what);
}

const char *memory_file(arena *a, const void *bytes, size_t n_bytes)
{
	const unsigned char *p = bytes;
	int fd = memfd_create("memory_file", MFD_CLOEXEC);

	if (fd < 0)
		env_bug(arena_env(a), "memory_file", "no file");
	arena_defer(a, close_file, (void *)(intptr_t)fd);
	for (size_t at = 0; at < n_bytes;) {
		ssize_t n = write(fd, p + at, n_bytes - at);

		if (n <= 0)
			env_bug(arena_env(a), "memory_file", "not written");
		at += (size_t)n;
	}
	return arena_printf(a, "/proc/self/fd/%d", fd);
}
