/*
 * jit.c: compiles C texts and loads the shared objects.
 *
 * Each text has a key: SHA-256 of the text, the compiler, its flags and the machine.
 * It is looked up in this jit, then in the store; the remaining texts are compiled,
 * one process for each core, in a separate directory, and renamed into the store
 * one by one. If several processes need the same text, the first claims it; the
 * others compile the remaining ones, and then wait. (mpirun -n 8: compiled once, not
 * eight times.)
 *
 *     text -> KEY.so: cc FLAGS -shared -nostdlib -o ... KEY.c [-lm]
 *
 * The number of memory mappings of a process is limited (vm.max_map_count), and an
 * object needs four. So the number of loaded objects is limited, too; beyond it, the
 * least recently used ones are unloaded, except held ones, which may run. They are
 * loaded again when they are needed.
 *
 * -nostdlib omits start files and libc (a third of the link time). libm (a tenth of
 * the time of a small text) is linked for texts with extern declarations, and is
 * recorded in the object, so that it is found even if Tenon was loaded with
 * RTLD_LOCAL.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "run/private.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_MAPS "/proc/sys/vm/max_map_count"

struct run_lib {
	const char *name; /* KEY.so */
	void *handle;	  /* NULL: not loaded */
	int32_t n_holds;
	int64_t n_loads; /* number of loads: each has new addresses */
	int64_t used;	 /* time of the last use, by the jit's clock */
};

struct run_jit {
	arena *a;
	store s;
	compiler *c; /* NULL until it is needed */
	const char *target;
	map *libs; /* key -> index */
	VEC(run_lib *) lib;
	int64_t clock, from; /* from: start of the current call */
	int32_t n_loaded, most_loaded;
	run_stats stats;
};

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- interface ------------------------------------------------------- */

static const char *target_of_env(arena *a)
{
	const char *v = getenv("TENON_TARGET"), *p;

	if (!v || !*v)
		return NULL;
	for (p = v; *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
			    "XYZ0123456789_.+-",
			    *p))
			env_fail(arena_env(a), TN_EINVAL, "run.env", (loc){0},
				"TENON_TARGET is \"%s\": accepted is a name "
				"that -march= takes, such as haswell",
				v);
	return arena_strdup(a, v);
}

/* The limit of loaded objects, which leaves most mappings free; or TENON_LOADED. */
static int32_t most_of_env(arena *a)
{
	const char *v = getenv("TENON_LOADED");
	char *end, text[32] = "";
	long n;
	int fd;

	if (v && *v) {
		errno = 0;
		n = strtol(v, &end, 10);
		if (*end || errno || n < 1 || n > 1 << 20)
			env_fail(arena_env(a), TN_EINVAL, "run.env", (loc){0},
				"TENON_LOADED is \"%s\": accepted is the "
				"number of compiled files that may be loaded "
				"at a time, 1 to 2^20",
				v);
		return (int32_t)n;
	}
	fd = open(MAX_MAPS, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, text, sizeof text - 1) < 0)
			text[0] = 0;
		close(fd);
	}
	n = strtol(text, NULL, 10) / 16;
	return n < 1 ? 2048 : n > 4096 ? 4096 : (int32_t)n;
}

run_jit *run_jit_new(arena *a, const char *cache_dir)
{
	run_jit *j = arena_make(a, run_jit);

	j->a = a;
	j->target = target_of_env(a);
	j->most_loaded = most_of_env(a);
	j->libs = map_new(a);
	store_open(&j->s, a, cache_dir);
	j->stats.dir = j->s.dir;
	return j;
}

static void find_compiler(arena *a, void *arg)
{
	run_jit *j = arg;
	compiler *c = arena_make(a, compiler);

	probe_compiler(c, a, &j->s, j->target);
	j->c = c;
}

/* If there is no compiler, each call looks for it again. */
static compiler *need_compiler(run_jit *j)
{
	if (!j->c)
		(void)arena_keep(j->a, find_compiler, j);
	return j->c;
}

const run_target *run_jit_target(run_jit *j)
{
	return &need_compiler(j)->target;
}

const run_stats *run_jit_stats(run_jit *j)
{
	j->stats.n_corrupt = j->s.n_corrupt;
	j->stats.n_evicted = j->s.n_evicted;
	j->stats.n_loaded = j->n_loaded;
	j->stats.note = j->s.note[0] ? j->s.note : NULL;
	return &j->stats;
}

void run_symbol(run_jit *j, run_lib *lib, const char *name, void *fn)
{
	void *p = lib->handle ? dlsym(lib->handle, name) : NULL;

	if (!p)
		env_fail(arena_env(j->a), TN_EINTERNAL, "run.symbol", (loc){0},
			"the object %s has no function %s", lib->name, name);
	memcpy(fn, &p, sizeof p);
}

/* ---- unloading ------------------------------------------------------- */

static void unload(run_jit *j, run_lib *lib)
{
	dlclose(lib->handle);
	lib->handle = NULL;
	j->n_loaded--;
	j->stats.n_unloaded++;
}

static int less_used(const void *p, const void *q)
{
	const run_lib *const *a = p, *const *b = q;

	return (*a)->used < (*b)->used ? -1 : (*a)->used > (*b)->used;
}

/*
 * Unloads the least recently used objects that are neither held nor used by the
 * current call, until `most` are left. False: there were none.
 */
static bool unload_to(run_jit *j, int32_t most)
{
	VEC(run_lib *) idle = {0};
	int32_t before = j->n_loaded, i;

	for (i = 0; i < j->lib.n; i++) {
		run_lib *lib = j->lib.at[i];

		if (lib->handle && lib->n_holds == 0 && lib->used <= j->from)
			*vec_push(j->s.tmp, &idle) = lib;
	}
	if (idle.n > 0)
		qsort(idle.at, (size_t)idle.n, sizeof *idle.at, less_used);
	for (i = 0; i < idle.n && j->n_loaded > most; i++)
		unload(j, idle.at[i]);
	return j->n_loaded < before;
}

static void load_all(
	run_jit *j, const char *const *text, int32_t n, run_lib **lib);

int64_t run_hold(
	run_jit *j, const char *const *text, int32_t n, run_lib *const *lib)
{
	bool gone = false;
	int64_t age = 0;
	int32_t i;

	for (i = 0; i < n; i++)
		gone = gone || !lib[i]->handle;
	if (gone)
		load_all(j, text, n, NULL);
	for (i = 0; i < n; i++) {
		lib[i]->n_holds++;
		lib[i]->used = ++j->clock;
		age += lib[i]->n_loads;
	}
	return age;
}

void run_release(int32_t n, run_lib *const *lib)
{
	int32_t i;

	for (i = 0; i < n; i++)
		lib[i]->n_holds--;
}

/* ---- loading --------------------------------------------------------- */

static void close_lib(void *what)
{
	run_lib *lib = what;

	if (lib->handle)
		dlclose(lib->handle);
}

static const char *key_of(run_jit *j, const char *text)
{
	sha256 h;

	sha256_start(&h);
	sha256_add_str(&h, need_compiler(j)->identity);
	sha256_add_str(&h, text);
	return sha256_hex(j->s.tmp, &h);
}

/* A library that was loaded before, and may be unloaded now; or NULL. */
static run_lib *known(run_jit *j, const char *key)
{
	int64_t i = map_get_str(j->libs, key, -1);

	return i < 0 ? NULL : j->lib.at[i];
}

static run_lib *new_lib(run_jit *j, const char *key)
{
	run_lib *lib = arena_make(j->a, run_lib);

	lib->name = arena_printf(j->a, "%s.so", key);
	arena_defer(j->a, close_lib, lib);
	*vec_push(j->a, &j->lib) = lib;
	map_set_str(j->libs, key, j->lib.n - 1);
	return lib;
}

/* NULL: failed; why is the reason */
static void *try_open(const char *path, char *why, size_t n)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *text = handle ? NULL : dlerror();

	if (!handle)
		snprintf(why, n, "%s", text ? text : "it does not say why");
	return handle;
}

/* If the directory forbids code (noexec), loads a copy in memory. */
static void *try_in_memory(run_jit *j, const char *path)
{
	char why[700];
	int fd;
	const char *copy = store_in_memory(&j->s, path, &fd);
	void *handle = copy ? try_open(copy, why, sizeof why) : NULL;

	if (fd >= 0)
		close(fd);
	return handle;
}

static int64_t n_mappings(void)
{
	char buf[16384];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int64_t n = 0;
	ssize_t r = 0;

	while (fd >= 0 && (r = read(fd, buf, sizeof buf)) > 0)
		for (ssize_t i = 0; i < r; i++)
			n += buf[i] == '\n';
	if (fd >= 0)
		close(fd);
	return n;
}

/* The file is valid and stays: the failure is of this process, or of the system. */
static _Noreturn void cannot_load(run_jit *j, const char *path, const char *why)
{
	int64_t n = n_mappings();
	size_t len;
	char *most = read_file(j->s.tmp, MAX_MAPS, 31, &len);

	if (most && n + 64 >= strtoll(most, NULL, 10))
		env_fail(arena_env(j->a), TN_ENOMEM, "run.load",
			(loc){.file = path},
			"cannot load %s: this process has %lld memory "
			"mappings, and vm.max_map_count allows %lld: %.400s",
			path, (long long)n, strtoll(most, NULL, 10), why);
	env_fail(arena_env(j->a), TN_ECOMPILE, "run.load", (loc){.file = path},
		"cannot load %s: %.600s", path, why);
}

static void *open_object(run_jit *j, const char *path)
{
	char why[700] = "files in its directory cannot be executed (noexec)";
	void *handle = NULL;

	if (!j->s.noexec)
		handle = try_open(path, why, sizeof why);
	if (!handle)
		handle = try_in_memory(j, path);
	if (handle && j->s.noexec)
		store_note(&j->s, "the cache %s does not allow code to run "
				  "(noexec): compiled kernels are loaded "
				  "through memory",
			j->s.dir);
	/* there may be too many mappings */
	if (!handle && unload_to(j, j->n_loaded / 2)) {
		if (!j->s.noexec)
			handle = try_open(path, why, sizeof why);
		if (!handle)
			handle = try_in_memory(j, path);
	}
	if (!handle)
		cannot_load(j, path, why);
	return handle;
}

static run_lib *load(run_jit *j, const char *key, const char *path)
{
	double start = now_ms();
	run_lib *lib = known(j, key);

	if (!lib)
		lib = new_lib(j, key);
	lib->handle = open_object(j, path);
	lib->used = ++j->clock;
	lib->n_loads++;
	j->n_loaded++;
	j->stats.load_ms += now_ms() - start;
	return lib;
}

static run_lib *load_stored(run_jit *j, const char *key)
{
	const char *name = arena_printf(j->s.tmp, "%s.so", key);
	double start = now_ms();
	run_lib *lib;

	if (!store_has(&j->s, name))
		return NULL;
	j->stats.load_ms += now_ms() - start;
	lib = load(j, key, store_path(&j->s, name));
	j->stats.n_disk_hits++;
	return lib;
}

/* ---- compiling ------------------------------------------------------- */

typedef struct job {
	const char *key, *text;
	const char *source, *object, *errors; /* paths */
	spawned process;
	int exit;
	bool made;
} job;

typedef struct batch {
	run_jit *j;
	const char *dir;
	char **envp;
	VEC(job) job, later; /* later: claimed by others */
} batch;

static void write_source(batch *b, job *k, int32_t i)
{
	arena *a = b->j->s.tmp;

	k->source = arena_printf(a, "%s/%d.c", b->dir, i);
	k->object = arena_printf(a, "%s/%d.so", b->dir, i);
	k->errors = arena_printf(a, "%s/%d.err", b->dir, i);
	if (!write_file(k->source, k->text, strlen(k->text)))
		env_fail(arena_env(a), TN_EIO, "run.cache",
			(loc){.file = k->source}, "cannot write %s: %s",
			k->source, strerror(errno));
}

static char **command(batch *b, const job *k)
{
	const compiler *c = b->j->c;
	const char *tail[] = {"-shared", "-nostdlib", "-Wl,--as-needed", "-o",
		k->object, k->source, "-lm"};
	int32_t n_tail = (int32_t)(sizeof tail / sizeof *tail), n = 0, i;
	char **argv = arena_array(
		b->j->s.tmp, char *, c->n_argv + c->n_flags + n_tail + 1);

	if (!strstr(k->text, "extern ")) /* no function of libm */
		n_tail--;

	for (i = 0; i < c->n_argv; i++)
		argv[n++] = c->argv[i];
	for (i = 0; i < c->n_flags; i++)
		argv[n++] = c->flag[i];
	for (i = 0; i < n_tail; i++)
		argv[n++] = arena_strdup(b->j->s.tmp, tail[i]);
	return argv;
}

static void finish(job *k)
{
	if (k->process.error) {
		k->exit = 127;
		return;
	}
	k->exit = spawn_wait(k->process);
	k->process.pid = 0;
	k->made = k->exit <= 0 && access(k->object, R_OK) == 0;
}

int32_t run_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return CPU_COUNT(&set);
	return 1;
}

/* Nothing throws here between the start of a process and its wait. */
static void run_jobs(batch *b)
{
	int32_t width = run_cores(), next = 0, done = 0, i;
	char ***argv = arena_array(b->j->s.tmp, char **, b->job.n);

	for (i = 0; i < b->job.n; i++)
		argv[i] = command(b, &b->job.at[i]);
	while (done < b->job.n) {
		if (next < b->job.n && next - done < width) {
			job *k = &b->job.at[next];

			k->process = spawn_start(
				argv[next], b->envp, k->errors, k->errors);
			next++;
		} else {
			finish(&b->job.at[done++]);
		}
	}
}

/* ---- rejected -------------------------------------------------------- */

/* Three lines, from the first with an error on, joined to one. */
static const char *first_lines(batch *b, const job *k, const char *kept)
{
	arena *a = b->j->s.tmp;
	str s = str_new(a);
	size_t n, len = strlen(k->source);
	char *text = read_file(a, k->errors, 65536, &n), *p, *from;
	int32_t lines = 0;

	if (!text)
		return "it printed nothing";
	p = strstr(text, "error");
	for (from = p ? p : text; from > text && from[-1] != '\n'; from--)
		;
	for (p = from; *p && lines < 3 && s.n < 500; p++) {
		if (strncmp(p, k->source, len) == 0) {
			str_add(&s, kept);
			p += len - 1;
		} else if (*p == '\n') {
			lines++;
			str_add(&s, p[1] && lines < 3 ? " / " : "");
		} else {
			str_addc(&s, *p);
		}
	}
	return s.n ? s.at : "it printed nothing";
}

static _Noreturn void reject(batch *b, const job *k)
{
	run_jit *j = b->j;
	const char *name = arena_printf(j->s.tmp, "failed-%.16s.c", k->key);
	const char *path = store_path(&j->s, name), *lines;

	if (k->process.error)
		env_fail(arena_env(j->a), TN_ECOMPILE, "run.cc", (loc){0},
			"cannot start the C compiler %s: %s", j->c->argv[0],
			strerror(k->process.error));
	lines = first_lines(b, k, name);
	if (j->s.spare)
		path = arena_printf(j->s.tmp, "%s/%s", j->s.spare, name);
	if (rename(k->source, path) == 0)
		j->s.has_failure = true;
	remove_tree(b->dir);
	env_fail(arena_env(j->a), TN_ECOMPILE, "run.compile",
		(loc){.file = path},
		"%s rejects generated code (exit status %d): %s; the text is "
		"kept in %s",
		j->c->shown, k->exit, lines, path);
}

static void accept(batch *b, const job *k)
{
	run_jit *j = b->j;
	const char *name = arena_printf(j->s.tmp, "%s.so", k->key);
	bool stored = store_put(&j->s, k->object, name);
	const char *path = stored ? store_path(&j->s, name) : k->object;

	j->stats.n_compiled++;
	load(j, k->key, path);
	if (!j->s.keep)
		unlink(path);
}

static void run_batch(batch *b)
{
	run_jit *j = b->j;
	int32_t i;

	b->dir = store_workdir(&j->s);
	b->envp = spawn_env(j->s.tmp);
	for (i = 0; i < b->job.n; i++)
		write_source(b, &b->job.at[i], i);
	run_jobs(b);
}

/* Loads the objects that were compiled; the other jobs remain. */
static void take_made(batch *b)
{
	int32_t i, n = 0;

	for (i = 0; i < b->job.n; i++) {
		if (b->job.at[i].made)
			accept(b, &b->job.at[i]);
		else
			b->job.at[n++] = b->job.at[i];
	}
	b->job.n = n;
}

static void compile_batch(batch *b)
{
	run_jit *j = b->j;
	double start = now_ms();

	run_batch(b);
	take_made(b);
	/* if the disk is full, try again in another directory */
	if (b->job.n > 0 && folder_is_full(&j->s)) {
		remove_tree(b->dir);
		run_batch(b);
		take_made(b);
	}
	if (b->job.n > 0)
		reject(b, &b->job.at[0]);
	remove_tree(b->dir);
	j->stats.compile_ms += now_ms() - start;
	store_trim(&j->s);
}

/* a: the arena of the claims, which end when this ends, also by an error */
static void make_unclaimed(arena *a, void *arg)
{
	batch *b = arg;
	int32_t n = 0, i;

	for (i = 0; i < b->job.n; i++) {
		job k = b->job.at[i];

		if (!store_claim(&b->j->s, a, k.key, false))
			*vec_push(b->j->s.tmp, &b->later) = k;
		else if (!load_stored(b->j, k.key)) /* compiled by another process since */
			b->job.at[n++] = k;
	}
	b->job.n = n;
	if (n > 0)
		compile_batch(b);
}

static void make_later(arena *a, void *arg)
{
	batch *b = arg;

	store_claim(&b->j->s, a, b->job.at[0].key, true);
	if (!load_stored(b->j, b->job.at[0].key))
		compile_batch(b);
}

/* One claim at a time, so that two processes do not wait for each other. */
static void make_all(batch *b)
{
	env *e = arena_env(b->j->a);
	int32_t i;

	arena_run(e, make_unclaimed, b);
	for (i = 0; i < b->later.n; i++) {
		batch one = {.j = b->j};

		*vec_push(b->j->s.tmp, &one.job) = b->later.at[i];
		arena_run(e, make_later, &one);
	}
}

/* Notes the use of a library, if it is loaded. */
static run_lib *loaded(run_jit *j, const char *key)
{
	run_lib *lib = known(j, key);

	if (!lib || !lib->handle)
		return NULL;
	lib->used = ++j->clock;
	return lib;
}

static void collect(batch *b, const char *const *text, const char **key,
	int32_t n)
{
	run_jit *j = b->j;
	map *asked = map_new(j->s.tmp);
	int32_t i;

	for (i = 0; i < n; i++) {
		key[i] = key_of(j, text[i]);
		if (loaded(j, key[i])) {
			j->stats.n_memory_hits++;
		} else if (!map_get_str(asked, key[i], 0) &&
			   !load_stored(j, key[i])) {
			map_set_str(asked, key[i], 1);
			*vec_push(j->s.tmp, &b->job) = (job){
				.key = key[i], .text = text[i]};
		}
	}
}

static void load_all(
	run_jit *j, const char *const *text, int32_t n, run_lib **lib)
{
	batch b = {.j = j};
	const char **key;
	int32_t i;

	arena_clear(j->s.tmp);
	j->from = j->clock;
	key = arena_array(j->s.tmp, const char *, n);
	collect(&b, text, key, n);
	if (b.job.n > 0)
		make_all(&b);
	for (i = 0; lib && i < n; i++)
		lib[i] = known(j, key[i]);
	if (j->n_loaded > j->most_loaded)
		unload_to(j, j->most_loaded - j->most_loaded / 8);
}

void run_compile(run_jit *j, const char *const *text, int32_t n, run_lib **lib)
{
	load_all(j, text, n, lib);
}
