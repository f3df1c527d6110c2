/*
 * dump.c: TENON_DUMP: prints the result of a pass as soon as it has run.
 *
 *     $ TENON_DUMP=fuse,plan tenon run FILE.tn
 *     == fuse, program 1 ==
 *     kernel 0 ...
 *
 * Nothing else in the library prints. This is for programs that cannot be changed or
 * built again, or that fail before they could request a text; it prints only if the
 * variable is set. Lines go to standard error, or into files of TENON_DUMP_DIR. A
 * text is printed before its verifier runs, so that a wrong one can be seen.
 */
#include "engine/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef const char *pass_name(int32_t i);

/* The bit of a name of n bytes; 0: no pass has it. */
static uint64_t find(pass_name *name_of, const char *name, size_t n)
{
	const char *one;

	for (int32_t i = 0; (one = name_of(i)) != NULL; i++)
		if (strlen(one) == n && memcmp(one, name, n) == 0)
			return UINT64_C(1) << i;
	return 0;
}

static _Noreturn void no_pass(
	arena *a, pass_name *name_of, const char *name, size_t n)
{
	str all = str_new(a);
	const char *one;

	for (int32_t i = 0; (one = name_of(i)) != NULL; i++)
		str_printf(&all, ", %s", one);
	env_fail(arena_env(a), TN_EINVAL, "context.dump", (loc){0},
		"TENON_DUMP: there is no pass \"%.*s\"; a list of these is "
		"accepted, with commas: all%s", (int)(n < 60 ? n : 60), name,
		all.at);
}

static uint64_t read_passes(arena *a, pass_name *name_of, const char *list)
{
	uint64_t bits = 0;

	for (const char *at = list; *at != '\0';) {
		size_t n = strcspn(at, ",");
		bool all = n == 3 && memcmp(at, "all", 3) == 0;
		uint64_t one = all ? COMPILE_DUMP_ALL : find(name_of, at, n);

		if (one == 0)
			no_pass(a, name_of, at, n);
		bits |= one;
		at += n + (at[n] == ',');
	}
	return bits;
}

static void make_folder(arena *a, const char *path)
{
	struct stat st;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		env_fail(arena_env(a), TN_EIO, "context.dump",
			(loc){.file = path},
			"TENON_DUMP_DIR is \"%s\", a folder that cannot be "
			"made: %s", path, strerror(errno));
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		env_fail(arena_env(a), TN_EIO, "context.dump",
			(loc){.file = path},
			"TENON_DUMP_DIR is \"%s\", which is not a folder",
			path);
}

compile_dump compile_dump_of(arena *a, pass_name *name_of)
{
	const char *list = getenv("TENON_DUMP"), *dir;
	compile_dump d = {0};

	if (list == NULL)
		return d;
	d.passes = read_passes(a, name_of, list);
	dir = getenv("TENON_DUMP_DIR");
	if (d.passes == 0 || dir == NULL || dir[0] == '\0')
		return d;
	make_folder(a, dir);
	d.dir = dir;
	return d;
}

static void close_file(void *f)
{
	fclose(f);
}

/* Writes all at once, so that lines of threads do not mix. Errors of writing are
 * ignored: a program must not fail because of a dump. */
static void put_standard(const str *text)
{
	const char *at = text->at, *end = at + text->n;

	while (at < end) {
		ssize_t n = write(STDERR_FILENO, at, (size_t)(end - at));

		if (n <= 0 && errno != EINTR)
			return;
		at += n > 0 ? n : 0;
	}
}

static void put_file(arena *a, const char *path, const str *text)
{
	FILE *f = fopen(path, "w");

	if (f != NULL)
		arena_defer(a, close_file, f);
	if (f == NULL || fwrite(text->at, 1, text->n, f) != text->n ||
		fflush(f) != 0)
		env_fail(arena_env(a), TN_EIO, "dump.write",
			(loc){.file = path}, "TENON_DUMP_DIR: the text of a "
			"pass cannot be written to %s: %s", path,
			strerror(errno));
}

void compile_dump_text(
	compilation *c, int32_t i, const char *name, compile_print *print)
{
	static _Atomic int64_t n_programs;
	const compile_dump *d = &c->o.dump;
	arena *a;
	str s;

	if ((d->passes >> i & 1) == 0)
		return;
	if (c->number == 0)
		c->number = ++n_programs;
	a = arena_child(c->a);
	s = str_new(a);
	if (d->dir == NULL)
		str_printf(&s, "== %s, program %lld ==\n",
			name, (long long)c->number);
	print(&s, c);
	if (s.n > 0 && s.at[s.n - 1] != '\n')
		str_addc(&s, '\n');
	if (d->dir == NULL)
		put_standard(&s);
	else
		put_file(a, arena_printf(a, "%s/%ld-%04lld-%s.txt", d->dir,
				    (long)getpid(), (long long)c->number,
				    name),
			&s);
	arena_free(a);
}
