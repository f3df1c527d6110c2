/* The cache: leaves what is not its own, unloads, falls back, takes over. */
#define _GNU_SOURCE /* unshare */
#include "unit.h"

#include "run/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[] = "/tmp/tenon-test-XXXXXX";
static char dir[256]; /* of the test in progress: its cache */

static int setup(void **state)
{
	static int n;

	(void)state;
	snprintf(dir, sizeof dir, "%s/%d", root, n++);
	assert_int_equal(mkdir(dir, 0700), 0);
	unsetenv("TENON_CC");
	unsetenv("CC");
	unsetenv("TENON_CACHE");
	unsetenv("TENON_CACHE_MB");
	unsetenv("TENON_LOADED");
	unsetenv("XDG_CACHE_HOME");
	return 0;
}

static const char *in_dir(const char *name)
{
	static char path[4][512];
	static int i;
	char *p = path[i++ % 4];

	snprintf(p, 512, "%s/%s", dir, name);
	return p;
}

static void put(const char *name, const char *text, bool old)
{
	struct timespec t[2] = {{1000000000, 0}, {1000000000, 0}};
	FILE *f = fopen(in_dir(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	if (old)
		assert_int_equal(
			utimensat(AT_FDCWD, in_dir(name), t, 0), 0);
}

static bool has(const char *name, const char *text)
{
	char have[64] = "";
	FILE *f = fopen(in_dir(name), "r");
	size_t n;

	if (!f)
		return false;
	n = fread(have, 1, sizeof have - 1, f);
	fclose(f);
	return n == strlen(text) && !strcmp(have, text);
}

/* The name of the only object that is kept. */
static bool kept(char name[256])
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		size_t n = strlen(e->d_name);

		found = n == 67 && !strcmp(e->d_name + 64, ".so");
		if (found)
			memcpy(name, e->d_name, n + 1);
	}
	if (d)
		closedir(d);
	return found;
}

/* ---- files of others ---- */

struct call {
	int first, n;
	bool by_user; /* not named: the user's, by XDG_CACHE_HOME */
	run_stats stats;
	char note[1024], used[512];
	double sum;
};

static void text_of(char *out, size_t n, int i)
{
	snprintf(out, n, "double f(double x) { return x + %d; }\n", i);
}

/* n texts, one call each; sum of f(1) over them */
static void compile(arena *a, void *arg)
{
	struct call *c = arg;
	run_jit *j = run_jit_new(a, c->by_user ? NULL : dir);

	c->sum = 0;
	for (int i = 0; i < c->n; i++) {
		char text[128];
		const char *one = text;
		double (*f)(double);
		run_lib *lib;

		text_of(text, sizeof text, c->first + i);
		run_compile(j, &one, 1, &lib);
		run_symbol(j, lib, "f", &f);
		c->sum += f(1);
	}
	c->stats = *run_jit_stats(j);
	snprintf(c->note, sizeof c->note, "%s",
		c->stats.note ? c->stats.note : "");
	snprintf(c->used, sizeof c->used, "%s", c->stats.dir);
}

static void test_foreign_files(void **state)
{
	static const char *const name[] = {"thesis.tex", "added", "libx.so",
		"tenon.so", "claim-to-fame", "probe-results", "failed-exam.c",
		"work-1", "0123456789abcdef0123456789abcdef0123456789abcdef"
			  "0123456789abcde.so",
		"0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef.so.bak",
		"work-photos/9.c", "tenon-work-abcdef/9.c", "tenon-work-abcdef/cat.jpg",
		"tenon-work-abcdefg/1.c"};
	struct call c = {.n = 6};
	char so[256];
	tn_diag d;

	(void)state;
	mkdir(in_dir("work-photos"), 0700);
	mkdir(in_dir("tenon-work-abcdef"), 0700);
	mkdir(in_dir("tenon-work-abcdefg"), 0700);
	mkdir(in_dir("tenon-work-zyxwvu"), 0700);
	put("tenon-work-zyxwvu/0.c", "int x;", true); /* a dead process's */
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		put(name[i], "mine", true);
	for (int i = 0; i < 4; i++) {
		static const char *const old[] = {"work-photos", "tenon-work-abcdef",
			"tenon-work-abcdefg", "tenon-work-zyxwvu"};
		struct timespec t[2] = {{1000000000, 0}, {1000000000, 0}};

		assert_int_equal(utimensat(AT_FDCWD, in_dir(old[i]), t, 0), 0);
	}
	setenv("TENON_CACHE_MB", "0", 1);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_true(c.sum == 6 + 15);
	assert_true(c.stats.n_evicted >= 5);
	assert_false(kept(so));
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (!has(name[i], "mine"))
			fail_msg("the cache removed or changed %s", name[i]);
	assert_true(access(in_dir("tenon-work-zyxwvu"), F_OK) != 0);
}

/* what others keep there does not count: our own is not evicted for it */
static void test_foreign_bytes(void **state)
{
	struct call c = {.n = 2};
	tn_diag d;
	int fd;

	(void)state;
	fd = open(in_dir("big.bin"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 64 << 20), 0);
	close(fd);
	setenv("TENON_CACHE_MB", "1", 1);
	for (int i = 0; i < 10; i++) {
		c.first = 2 * i;
		assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	}
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_disk_hits, 2);
	assert_int_equal(access(in_dir("big.bin"), F_OK), 0);
}

/* ---- unloading ---- */

enum { MANY = 24, MOST = 8 };

static int n_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];
	int n = 0;

	while (fgets(line, sizeof line, f))
		n += strstr(line, dir) != NULL;
	fclose(f);
	return n;
}

static void hold_and_load(arena *a, void *arg)
{
	run_jit *j = run_jit_new(a, dir);
	char text[MANY][128];
	const char *one[MANY];
	run_lib *lib[MANY];
	double (*f)(double), (*first)(double);
	int64_t age[MANY];

	(void)arg;
	for (int i = 0; i < MANY; i++) {
		text_of(text[i], sizeof text[i], i);
		one[i] = text[i];
		run_compile(j, &one[i], 1, &lib[i]);
		age[i] = run_hold(j, &one[i], 1, &lib[i]);
		if (i == 0)
			run_symbol(j, lib[0], "f", &first);
		else
			run_release(1, &lib[i]);
		assert_true(run_jit_stats(j)->n_loaded <= MOST);
		assert_true(n_mapped() <= 6 * MOST);
	}
	assert_true(run_jit_stats(j)->n_unloaded >= MANY - MOST);
	assert_true(first(1) == 1); /* it was held */
	assert_true(run_hold(j, &one[0], 1, &lib[0]) == age[0]);
	run_release(1, &lib[0]);
	run_release(1, &lib[0]);
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < MANY; i++) {
			int64_t n = run_hold(j, &one[i], 1, &lib[i]);

			assert_true(n > age[i] || i == 0);
			run_symbol(j, lib[i], "f", &f);
			assert_true(f(1) == 1 + i);
			run_release(1, &lib[i]);
		}
	assert_int_equal(run_jit_stats(j)->n_compiled, MANY);
	assert_true(n_mapped() <= 6 * MOST);
}

static void test_unload(void **state)
{
	tn_diag d;

	(void)state;
	setenv("TENON_LOADED", "8", 1);
	assert_int_equal(unit_run(hold_and_load, NULL, 0, &d), TN_OK);
	setenv("TENON_LOADED", "none", 1);
	assert_int_equal(unit_run(hold_and_load, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "run.env");
}

/* programs of the interface, more than may be loaded, run in turns */
static void test_unload_programs(void **state)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_program *p[MANY];
	tn_context *c;
	tn_stats s;

	(void)state;
	setenv("TENON_LOADED", "8", 1);
	o.cache_dir = dir;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	for (int i = 0; i < MANY; i++) {
		char text[128];

		snprintf(text, sizeof text,
			"program {\nx: f32[4]\ny = add(x, %d)\nreturn y\n}\n",
			i);
		assert_int_equal(tn_program_parse(&p[i], c, text, strlen(text),
					 NULL), TN_OK);
	}
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < MANY; i++) {
			const float x[4] = {1, 2, 3, 4};
			const void *in[1] = {x};
			float y[4] = {0};
			void *out[1] = {y};

			assert_int_equal(tn_program_run(p[i], in, out), TN_OK);
			assert_true(y[3] == (float)(4 + i));
			assert_true(n_mapped() <= 6 * MOST);
		}
	tn_context_stats(c, &s);
	assert_int_equal(s.n_compiled, MANY);
	for (int i = 0; i < MANY; i++)
		tn_program_free(p[i]);
	tn_context_free(c);
}

/* ---- no mappings left ---- */

enum { MAX_MAPPINGS = 1 << 18 };

struct pages {
	char **at;
	int32_t n;
	size_t size;
};

static void give_back(void *what)
{
	struct pages *p = what;

	while (p->n > 0)
		munmap(p->at[--p->n], p->size);
}

/* All but two; false: there is no end of them. */
static bool use_up(struct pages *p)
{
	while (p->n < MAX_MAPPINGS) {
		/* neighbours of other rights are not joined into one */
		char *at = mmap(NULL, p->size, p->n % 2 ? PROT_READ : PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			break;
		p->at[p->n++] = at;
	}
	if (p->n == MAX_MAPPINGS)
		return false;
	munmap(p->at[--p->n], p->size);
	munmap(p->at[--p->n], p->size);
	return true;
}

static bool cannot_use_up(void)
{
	const char *preload = getenv("LD_PRELOAD");
	bool no = preload && strstr(preload, "vgpreload");

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	no = true;
#endif
	if (no)
		print_message("skipped: the tool that watches this test needs "
			      "mappings itself\n");
	return no;
}

/* loads c->n texts, then one more with no mapping to be had */
static void load_without_room(arena *a, void *arg)
{
	struct call *c = arg;
	run_jit *j = run_jit_new(a, dir);
	struct pages *p = arena_make(a, struct pages);
	char text[MANY][128];
	double (*f)(double);
	run_lib *lib;

	p->at = arena_array(a, char *, MAX_MAPPINGS);
	p->size = (size_t)sysconf(_SC_PAGESIZE);
	arena_defer(a, give_back, p);
	for (int i = 0; i <= c->n; i++) {
		const char *one = text[i];

		text_of(text[i], sizeof text[i], i);
		if (i == c->n && !use_up(p)) {
			c->first = -1;
			return;
		}
		run_compile(j, &one, 1, &lib);
	}
	run_symbol(j, lib, "f", &f);
	c->sum = f(1);
	c->stats = *run_jit_stats(j);
}

static void test_no_mappings(void **state)
{
	struct call make = {.n = 11}, c = {.n = 0};
	tn_diag d;

	(void)state;
	if (cannot_use_up())
		skip();
	assert_int_equal(unit_run(compile, &make, 0, &d), TN_OK);
	assert_int_equal(unit_run(load_without_room, &c, 0, &d),
		c.first < 0 ? TN_OK : TN_ENOMEM);
	if (c.first < 0) {
		print_message("skipped: mappings have no end here\n");
		skip();
	}
	assert_string_equal(d.rule, "run.load");
	if (!strstr(d.text, "vm.max_map_count"))
		fail_msg("it says: %s", d.text);
	/* the entry is good and stays */
	c.n = 1;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_disk_hits, 1);
	assert_int_equal(c.stats.n_compiled, 0);
	assert_int_equal(c.stats.n_corrupt, 0);
	/* others give way, if there are */
	c.n = 10;
	assert_int_equal(unit_run(load_without_room, &c, 0, &d), TN_OK);
	assert_true(c.sum == 11);
	assert_true(c.stats.n_unloaded >= 5);
}

/* ---- folders that cannot be used as asked ---- */

/* In a process whose mounts are its own: dir is a file system of its own. */
static int in_namespace(const char *options, unsigned long flags,
	int (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		char rows[64];
		unsigned uid = geteuid();
		int fd;

		if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) != 0)
			_exit(77);
		snprintf(rows, sizeof rows, "%u %u 1", uid, uid);
		fd = uid ? open("/proc/self/uid_map", O_WRONLY) : -1;
		if (fd >= 0 && write(fd, rows, strlen(rows)) < 0)
			_exit(77);
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
			mount("none", dir, "tmpfs", flags, options) != 0 ||
			(!(flags & MS_RDONLY) && chmod(dir, 0700) != 0))
			_exit(77);
		_exit(fn());
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("skipped: no file system can be mounted here\n");
		skip();
	}
	return WEXITSTATUS(status);
}

static int fill_and_compile(void)
{
	struct call c = {.n = 2};
	char name[256];
	tn_diag d;
	FILE *f = fopen(in_dir("filler"), "w");

	if (!f)
		return 1;
	for (int i = 0; i < 1 << 16; i++)
		putc('x', f);
	(void)fclose(f); /* it is full */
	if (unit_run(compile, &c, 0, &d) != TN_OK) {
		print_message("%s\n", d.text);
		return 2;
	}
	if (!strstr(c.note, dir) || !strstr(c.note, "No space left") ||
		c.sum != 3 || kept(name)) {
		print_message("note: %s\n", c.note);
		return 3;
	}
	return 0;
}

static void test_full(void **state)
{
	(void)state;
	assert_int_equal(in_namespace("size=32k,mode=700", 0,
				 fill_and_compile), 0);
	assert_int_equal(in_namespace("nr_inodes=2,mode=700", 0,
				 fill_and_compile), 0);
}

static int compile_without_exec(void)
{
	struct call c = {.n = 2};
	char name[256];
	tn_diag d;

	for (int i = 0; i < 2; i++) {
		if (unit_run(compile, &c, 0, &d) != TN_OK) {
			print_message("%s\n", d.text);
			return 2;
		}
		if (!strstr(c.note, dir) || !strstr(c.note, "noexec") ||
			c.sum != 3 || !kept(name) ||
			c.stats.n_disk_hits != 2 * i) {
			print_message("note: %s\n", c.note);
			return 3;
		}
	}
	return 0;
}

static void test_noexec(void **state)
{
	(void)state;
	assert_int_equal(in_namespace("mode=700", MS_NOEXEC,
				 compile_without_exec), 0);
}

static int compile_read_only(void)
{
	struct call c = {.n = 1, .by_user = true};
	tn_diag d;

	setenv("XDG_CACHE_HOME", dir, 1);
	if (unit_run(compile, &c, 0, &d) != TN_OK) {
		print_message("%s\n", d.text);
		return 2;
	}
	return !strstr(c.note, "Read-only") || c.sum != 1;
}

static void test_read_only(void **state)
{
	(void)state;
	assert_int_equal(in_namespace("mode=700", MS_RDONLY,
				 compile_read_only), 0);
}

/* who else could write there, or put something in its place */
static void test_owners(void **state)
{
	struct call c = {.n = 1, .by_user = true};
	static const char *const parts[] = {"", "/up", "/up/tenon"};
	static const struct {
		int part;
		mode_t mode;
		int uid;
		const char *says; /* NULL: it may be used */
	} cases[] = {{2, 0700, -1, NULL}, {1, 0755, -1, NULL},
		{1, 01777, -1, NULL}, {1, 0777, -1, "every user can write"},
		{0, 0777, -1, "every user can write"},
		{2, 0770, -1, "other users"}, {2, 0755, -1, "other users"},
		{2, 0700, 4321, "another user"},
		{1, 0755, 4321, "another user"}};
	char path[512], name[512];
	tn_diag d;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (cases[i].uid >= 0 && geteuid() != 0)
			continue;
		setup(state);
		for (int k = 1; k < 3; k++) {
			snprintf(path, sizeof path, "%s%s", dir, parts[k]);
			assert_int_equal(mkdir(path, 0700), 0);
		}
		snprintf(path, sizeof path, "%s/up", dir);
		setenv("XDG_CACHE_HOME", path, 1);
		snprintf(path, sizeof path, "%s%s", dir, parts[cases[i].part]);
		assert_int_equal(chmod(path, cases[i].mode), 0);
		if (cases[i].uid >= 0)
			assert_int_equal(chown(path, (uid_t)cases[i].uid,
						 (gid_t)-1), 0);
		assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
		snprintf(name, sizeof name, "%s/up/tenon", dir);
		if (!cases[i].says && (c.note[0] || strcmp(c.used, name) != 0))
			fail_msg("case %zu: %s, %s", i, c.used, c.note);
		if (cases[i].says && (!strcmp(c.used, name) ||
					    !strstr(c.note, cases[i].says)))
			fail_msg("case %zu: %s, %s", i, c.used, c.note);
		/* named by the program it is refused */
		snprintf(dir, sizeof dir, "%.255s", name);
		c.by_user = false;
		assert_int_equal(unit_run(compile, &c, 0, &d),
			cases[i].says ? TN_EIO : TN_OK);
		if (cases[i].says)
			assert_non_null(strstr(d.text, cases[i].says));
		c.by_user = true;
	}
}

static void open_it_meanwhile(arena *a, void *arg)
{
	struct call *c = arg;
	run_jit *j = run_jit_new(a, dir);
	char text[128];
	const char *one = text;
	run_lib *lib;

	text_of(text, sizeof text, 0);
	assert_int_equal(chmod(dir, 0777), 0);
	run_compile(j, &one, 1, &lib);
	c->stats = *run_jit_stats(j);
	snprintf(c->note, sizeof c->note, "%s",
		c->stats.note ? c->stats.note : "");
}

/* what others can write since it was opened is not loaded */
static void test_opened_meanwhile(void **state)
{
	struct call c = {.n = 1};
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(unit_run(open_it_meanwhile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_disk_hits, 0);
	assert_int_equal(c.stats.n_compiled, 1);
	assert_non_null(strstr(c.note, "not used any more"));
}

/* ---- another working directory ---- */

static void run_one(tn_context *c, const char *text)
{
	const float x[4] = {1, 2, 3, 4};
	const void *in[1] = {x};
	float y[4] = {0};
	void *out[1] = {y};
	tn_program *p;

	assert_int_equal(
		tn_program_parse(&p, c, text, strlen(text), NULL), TN_OK);
	assert_int_equal(tn_program_run(p, in, out), TN_OK);
	assert_true(y[3] == 5);
	tn_program_free(p);
}

static void test_relative(void **state)
{
	tn_options o = TN_OPTIONS_INIT;
	char name[256], was[512];
	tn_context *c;
	tn_stats s;

	(void)state;
	assert_non_null(getcwd(was, sizeof was));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chdir(dir), 0);
		o.cache_dir = "deep/cache";
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		assert_int_equal(chdir("/"), 0);
		run_one(c, "program {\nx: f32[4]\ny = add(x, 1)\nreturn y\n}\n");
		assert_int_equal(chdir("/proc"), 0);
		run_one(c, "program {\nx: f32[4]\nt = add(x, 2)\n"
			   "y = sub(t, 1)\nreturn y\n}\n");
		tn_context_stats(c, &s);
		assert_int_equal(s.n_disk_hits, 2 * i);
		assert_string_equal(tn_context_note(c), "");
		tn_context_free(c);
	}
	assert_int_equal(chdir(was), 0);
	strcat(dir, "/deep/cache");
	assert_true(kept(name));
}

static void test_note(void **state)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	(void)state;
	assert_int_equal(chmod(dir, 0755), 0);
	setenv("XDG_CACHE_HOME", dir, 1);
	assert_int_equal(mkdir(in_dir("tenon"), 0755), 0);
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	assert_string_equal(tn_context_note(c), "");
	run_one(c, "program {\nx: f32[4]\ny = add(x, 1)\nreturn y\n}\n");
	assert_non_null(strstr(tn_context_note(c), in_dir("tenon")));
	tn_context_free(c);
}

/* ---- a stopped compiler ---- */

static void claim_and_stop(const char *name)
{
	int fd = open(in_dir(name), O_RDWR | O_CREAT, 0600);
	char text[32];

	snprintf(text, sizeof text, "%ld\n", (long)getpid());
	if (fd < 0 || flock(fd, LOCK_EX) != 0 ||
		write(fd, text, strlen(text)) < 0)
		_exit(1);
	raise(SIGSTOP);
	unlink(in_dir(name));
	_exit(0);
}

static void test_stopped(void **state)
{
	struct call c = {.n = 1};
	char so[256], claim[256];
	struct timespec t0, t1;
	int status;
	pid_t pid;
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_true(kept(so));
	assert_int_equal(unlink(in_dir(so)), 0);
	snprintf(claim, sizeof claim, "claim-%.64s", so);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		claim_and_stop(claim);
	assert_true(waitpid(pid, &status, WUNTRACED) == pid);
	assert_true(WIFSTOPPED(status));
	clock_gettime(CLOCK_MONOTONIC, &t0);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	assert_int_equal(c.stats.n_compiled, 1);
	assert_true(t1.tv_sec - t0.tv_sec < 20);
	assert_true(kept(so));
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_disk_hits, 1);
	assert_true(access(in_dir(claim), F_OK) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_foreign_files, setup),
		cmocka_unit_test_setup(test_foreign_bytes, setup),
		cmocka_unit_test_setup(test_unload, setup),
		cmocka_unit_test_setup(test_unload_programs, setup),
		cmocka_unit_test_setup(test_no_mappings, setup),
		cmocka_unit_test_setup(test_full, setup),
		cmocka_unit_test_setup(test_noexec, setup),
		cmocka_unit_test_setup(test_read_only, setup),
		cmocka_unit_test_setup(test_owners, setup),
		cmocka_unit_test_setup(test_opened_meanwhile, setup),
		cmocka_unit_test_setup(test_relative, setup),
		cmocka_unit_test_setup(test_note, setup),
		cmocka_unit_test_setup(test_stopped, setup),
	};
	char command[64];
	int r;

	if (!mkdtemp(root))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command) != 0 || r;
}
