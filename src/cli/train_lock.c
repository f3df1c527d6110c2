/*
 * train_lock.c: allows one run per folder: the process holds a lock on
 * DIR/.lock until it ends, in whatever way. The file contains its process id.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include "cli/train_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The process id in the file, or 0. */
static long holder(int fd)
{
	char text[32] = "";
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	long pid = 0;

	for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		pid = 10 * pid + (text[i] - '0');
	return pid;
}

int train_lock(run *r)
{
	char path[PATH_ROOM], text[32];
	int fd, n;

	snprintf(path, sizeof path, "%s/.lock", r->out);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return cli_error(path, "train.folder", "cannot be opened: %s",
			strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
		if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) < n)
			cli_note("%s cannot be written: %s", path,
				strerror(errno));
		r->lock = fd;
		return CLI_OK;
	}
	n = errno;
	if (n == EWOULDBLOCK)
		cli_error(r->out, "train.locked",
			"process %ld is training in this folder", holder(fd));
	else
		cli_note("%s cannot be locked: %s", path, strerror(n));
	close(fd);
	return n == EWOULDBLOCK ? CLI_FAILED : CLI_OK;
}
