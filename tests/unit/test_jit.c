/* jit: compiles, finds again, survives damage, says what is wrong. */
#include "unit.h"

#include "run/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/tenon-test-XXXXXX";

/* a cache of its own for each test */
static int setup(void **state)
{
	static int n;
	char dir[64];

	(void)state;
	snprintf(dir, sizeof dir, "%s/%d", root, n++);
	mkdir(dir, 0700);
	setenv("XDG_CACHE_HOME", dir, 1);
	unsetenv("TENON_CC");
	unsetenv("CC");
	unsetenv("TENON_CACHE");
	unsetenv("TENON_CACHE_MB");
	unsetenv("TENON_TARGET");
	return 0;
}

/* path of the first entry of the cache whose name ends so; false: none */
static bool entry(const char *end, char path[512])
{
	char dir[256];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(dir, sizeof dir, "%s/tenon", getenv("XDG_CACHE_HOME"));
	d = opendir(dir);
	while (d && !found && (e = readdir(d))) {
		size_t n = strlen(e->d_name), m = strlen(end);

		if (n > m && strcmp(e->d_name + n - m, end) == 0) {
			snprintf(path, 512, "%.200s/%.255s", dir, e->d_name);
			found = true;
		}
	}
	if (d)
		closedir(d);
	return found;
}

/* has the cache a file whose name begins so? */
static bool begins(const char *start)
{
	char dir[256];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(dir, sizeof dir, "%s/tenon", getenv("XDG_CACHE_HOME"));
	d = opendir(dir);
	while (d && (e = readdir(d)))
		found = found || !strncmp(e->d_name, start, strlen(start));
	if (d)
		closedir(d);
	return found;
}

struct call {
	const char *text[4];
	int32_t n;
	run_stats stats;
	double answer[4];
};

/* every text defines double f(double); answer[i] = f(3) */
static void compile(arena *a, void *arg)
{
	struct call *c = arg;
	run_jit *j = run_jit_new(a, NULL);
	run_lib *lib[4];
	int32_t i;

	run_compile(j, c->text, c->n, lib);
	for (i = 0; i < c->n; i++) {
		double (*f)(double);

		run_symbol(j, lib[i], "f", &f);
		c->answer[i] = f(3);
	}
	c->stats = *run_jit_stats(j);
}

#define TWICE "double f(double x) { return x + x; }\n"
#define SQUARE "double f(double x) { return x * x; }\n"
#define SINE "extern double sin(double); double f(double x) { return sin(x); }\n"

static void test_compiles(void **state)
{
	struct call c = {{TWICE, SQUARE, SINE, TWICE}, 4, {0}, {0}};
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_true(c.answer[0] == 6 && c.answer[1] == 9);
	assert_true(c.answer[2] > 0.1411 && c.answer[2] < 0.1412);
	assert_true(c.answer[3] == 6);
	assert_int_equal(c.stats.n_compiled, 3);
	assert_int_equal(c.stats.n_disk_hits, 0);
	assert_true(c.stats.compile_ms > 0);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_compiled, 0);
	assert_int_equal(c.stats.n_disk_hits, 3);
	assert_true(c.answer[0] == 6 && c.answer[1] == 9);
}

static void compile_twice(arena *a, void *arg)
{
	struct call *c = arg;
	run_jit *j = run_jit_new(a, NULL);
	run_lib *one, *two;

	run_compile(j, c->text, 1, &one);
	run_compile(j, c->text, 1, &two);
	assert_ptr_equal(one, two);
	assert_int_equal(run_jit_stats(j)->n_memory_hits, 1);
	assert_true(run_jit_target(j)->vector_bytes >= 8);
}

static void test_memory(void **state)
{
	struct call c = {{TWICE}, 1, {0}, {0}};
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(compile_twice, &c, 0, &d), TN_OK);
}

/* one byte of the stored object flipped at `at`, or cut there */
static void damage(off_t at, bool cut)
{
	char path[512], b;
	struct stat st;
	int fd;

	assert_true(entry(".so", path));
	fd = open(path, O_RDWR);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	at = at < 0 ? st.st_size + at : at;
	if (cut) {
		assert_int_equal(ftruncate(fd, at), 0);
	} else {
		assert_int_equal(pread(fd, &b, 1, at), 1);
		b = (char)(b ^ 1);
		assert_int_equal(pwrite(fd, &b, 1, at), 1);
	}
	close(fd);
}

static void test_damage(void **state)
{
	static const struct {
		off_t at;
		bool cut;
	} cases[] = {{0, true}, {40, true}, {-1, true}, {-49, true},
		{-4000, true}, {100, false}, {-60, false}, {-1, false},
		{-41, false}};
	struct call c = {{TWICE}, 1, {0}, {0}};
	tn_diag d;
	size_t i;

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		damage(cases[i].at, cases[i].cut);
		c.answer[0] = 0;
		assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
		assert_int_equal(c.stats.n_corrupt, 1);
		assert_int_equal(c.stats.n_compiled, 1);
		assert_true(c.answer[0] == 6);
	}
}

/* a damaged answer of the compiler is asked for again */
static void test_damaged_probe(void **state)
{
	struct call c = {{TWICE}, 1, {0}, {0}};
	char path[512], name[512];
	struct dirent *e;
	DIR *dir;
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	snprintf(name, sizeof name, "%s/tenon", getenv("XDG_CACHE_HOME"));
	dir = opendir(name);
	path[0] = 0;
	while ((e = readdir(dir)))
		if (strncmp(e->d_name, "probe-", 6) == 0)
			snprintf(path, sizeof path, "%.200s/%.255s", name,
				e->d_name);
	closedir(dir);
	assert_int_equal(truncate(path, 30), 0);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_corrupt, 1);
	assert_int_equal(c.stats.n_disk_hits, 1);
}

static void test_rejected(void **state)
{
	struct call c = {
		{TWICE, "double f(double x) { return y; }\n"}, 2, {0}, {0}};
	char path[512];
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_ECOMPILE);
	assert_string_equal(d.rule, "run.compile");
	assert_non_null(strstr(d.text, "error: "));
	assert_non_null(strstr(d.text, "undeclared"));
	assert_true(entry(".c", path));
	assert_string_equal(d.file, path);
	assert_non_null(strstr(d.text, path));
	/* what was good is there */
	c.n = 1;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_disk_hits, 1);
}

static void test_no_compiler(void **state)
{
	static const struct {
		const char *var, *value, *says;
	} cases[] = {{"CC", "false", "cannot compile an empty text"},
		{"CC", "true", "cannot compile an empty text"},
		{"CC", "echo -n", "cannot compile an empty text"},
		{"CC", "/nonexistent", "\"/nonexistent\" that CC names"},
		{"TENON_CC", "no-such-cc -x", "that TENON_CC names"},
		{"CC", "/etc", "is not an executable program"},
		{"PATH", "/nonexistent", "install gcc"}};
	char *path = strdup(getenv("PATH"));
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = {{TWICE}, 1, {0}, {0}};
		tn_diag d;

		unsetenv("CC");
		unsetenv("TENON_CC");
		setenv(cases[i].var, cases[i].value, 1);
		assert_int_equal(unit_run(compile, &c, 0, &d), TN_ECOMPILE);
		setenv("PATH", path, 1);
		assert_string_equal(d.rule, "run.cc");
		if (!strstr(d.text, cases[i].says))
			fail_msg("%s=%s says: %s", cases[i].var, cases[i].value,
				d.text);
	}
	free(path);
}

static void test_bad_env(void **state)
{
	static const struct {
		const char *var, *value;
	} cases[] = {{"TENON_CACHE", "maybe"}, {"TENON_CACHE_MB", "1x"},
		{"TENON_CACHE_MB", "-1"}, {"TENON_TARGET", "a b"},
		{"TENON_TARGET", "no-such-cpu"}};
	size_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call c = {{TWICE}, 1, {0}, {0}};
		tn_diag d;

		setup(state);
		setenv(cases[i].var, cases[i].value, 1);
		assert_int_equal(unit_run(compile, &c, 0, &d), TN_EINVAL);
		assert_string_equal(d.rule, "run.env");
		assert_non_null(strstr(d.text, cases[i].value));
		assert_non_null(strstr(d.text, cases[i].var));
	}
}

static void test_cache_off(void **state)
{
	struct call c = {{TWICE}, 1, {0}, {0}};
	char path[512];
	tn_diag d;
	int i;

	(void)state;
	setenv("TENON_CACHE", "off", 1);
	for (i = 0; i < 2; i++) {
		assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
		assert_int_equal(c.stats.n_compiled, 1);
		assert_true(c.answer[0] == 6);
	}
	assert_false(entry(".so", path));
}

/* a cache that others may write is not trusted; the work is done all the same */
static void test_open_cache(void **state)
{
	struct call c = {{TWICE}, 1, {0}, {0}};
	char dir[256], path[512];
	tn_diag d;

	(void)state;
	snprintf(dir, sizeof dir, "%s/tenon", getenv("XDG_CACHE_HOME"));
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_true(c.answer[0] == 6);
	assert_false(entry(".so", path));
	/* neither is a link to somewhere else */
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(symlink("/tmp", dir), 0);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_compiled, 1);
	setenv("XDG_CACHE_HOME", "/proc/nonexistent", 1);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_compiled, 1);
}

static void test_eviction(void **state)
{
	struct call c = {{TWICE}, 1, {0}, {0}};
	struct call other = {{SQUARE}, 1, {0}, {0}};
	char path[512];
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	setenv("TENON_CACHE_MB", "0", 1);
	assert_int_equal(unit_run(compile, &other, 0, &d), TN_OK);
	assert_true(other.answer[0] == 9);
	assert_true(other.stats.n_evicted >= 2);
	assert_false(entry(".so", path));
	setenv("TENON_CACHE_MB", "100", 1);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_evicted, 0);
	assert_true(entry(".so", path));
}

/* bytes of all entries */
static int64_t cache_bytes(void)
{
	char dir[256];
	struct dirent *e;
	struct stat st;
	int64_t n = 0;
	DIR *d;

	snprintf(dir, sizeof dir, "%s/tenon", getenv("XDG_CACHE_HOME"));
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
			S_ISREG(st.st_mode))
			n += st.st_size;
	if (d)
		closedir(d);
	return n;
}

/* by many processes (each unit_run is as one), never more than the limit */
static void test_limit(void **state)
{
	struct call c = {{NULL}, 1, {0}, {0}};
	int64_t evicted = 0, most = 0;
	char text[128];
	tn_diag d;
	int i;

	(void)state;
	setenv("TENON_CACHE_MB", "1", 1);
	for (i = 0; i < 40; i++) {
		snprintf(text, sizeof text,
			"double f(double x) { return %d * x; }\n"
			"const char filler[%d] = {1};\n",
			i, i % 2 == 0 ? 30000 : 150000);
		c.text[0] = text;
		assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
		assert_true(c.answer[0] == 3 * i);
		evicted += c.stats.n_evicted;
		most = cache_bytes() > most ? cache_bytes() : most;
	}
	assert_true(evicted > 10);
	assert_true(most <= 1 << 20);
	assert_true(most > 3 << 18);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	assert_int_equal(c.stats.n_disk_hits, 1); /* the oldest went */
}

/* processes that want the same texts at the same time all get them, and each
 * text is compiled once */
static void test_race(void **state)
{
	int i, n = 6, good = 0, compiled = 0;

	(void)state;
	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct call c = {{i % 2 ? TWICE : SQUARE,
						 i % 2 ? SQUARE : TWICE},
				2, {0}, {0}};
			tn_status s = unit_run(compile, &c, 0, NULL);

			_exit(s == TN_OK && c.answer[0] + c.answer[1] == 15
					? (int)c.stats.n_compiled
					: 100);
		}
	}
	for (i = 0; i < n; i++) {
		int status = 1;

		assert_true(wait(&status) > 0);
		good += WIFEXITED(status) && WEXITSTATUS(status) < 100;
		compiled += WEXITSTATUS(status);
	}
	assert_int_equal(good, n);
	assert_int_equal(compiled, 2);
	assert_false(begins("claim-"));
}

/* no file may stay open, no directory behind */
static void test_clean(void **state)
{
	struct call c = {{TWICE, "bad"}, 2, {0}, {0}};
	char path[512];
	tn_diag d;
	int before, after;

	(void)state;
	before = dup(0);
	close(before);
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_ECOMPILE);
	c.n = 1;
	assert_int_equal(unit_run(compile, &c, 0, &d), TN_OK);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
	assert_false(entry("/..", path));
	snprintf(path, sizeof path,
		"test -z \"$(ls -d %s/tenon/tenon-work-* 2>/dev/null)\"",
		getenv("XDG_CACHE_HOME"));
	assert_int_equal(system(path), 0);
}

/* memory that ends anywhere: compiled anew, and loaded from the cache */
static void test_no_memory(void **state)
{
	struct call c = {{TWICE, SINE}, 2, {0}, {0}};
	char command[512];

	(void)state;
	assert_int_equal(unit_run(compile, &c, 0, NULL), TN_OK);
	unit_each_alloc_fails(compile, &c);
	assert_int_equal(c.stats.n_compiled, 0);
	setenv("TENON_CACHE", "off", 1);
	setenv("TMPDIR", getenv("XDG_CACHE_HOME"), 1);
	c.n = 1;
	unit_each_alloc_fails(compile, &c);
	unsetenv("TMPDIR");
	snprintf(command, sizeof command,
		"test -z \"$(ls -d %s/tenon-* 2>/dev/null)\"",
		getenv("XDG_CACHE_HOME"));
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_compiles, setup),
		cmocka_unit_test_setup(test_memory, setup),
		cmocka_unit_test_setup(test_damage, setup),
		cmocka_unit_test_setup(test_damaged_probe, setup),
		cmocka_unit_test_setup(test_rejected, setup),
		cmocka_unit_test_setup(test_no_compiler, setup),
		cmocka_unit_test_setup(test_bad_env, setup),
		cmocka_unit_test_setup(test_cache_off, setup),
		cmocka_unit_test_setup(test_open_cache, setup),
		cmocka_unit_test_setup(test_eviction, setup),
		cmocka_unit_test_setup(test_limit, setup),
		cmocka_unit_test_setup(test_race, setup),
		cmocka_unit_test_setup(test_clean, setup),
		cmocka_unit_test_setup(test_no_memory, setup),
	};
	char command[64];
	int r;

	if (!mkdtemp(root))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command) != 0 || r;
}
