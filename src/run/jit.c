/*
 * jit.c: C texts to loaded shared objects.
 *
 * Each text has a key: SHA-256 of the text and of what the compiler, its flags
 * and the machine are. Looked up in this jit, then in the store; the rest is
 * compiled, as many processes at once as there are cores, in a directory of
 * their own, and renamed into the store one by one. Processes that race for
 * the same text do not all make it: the first claims it, the others make what
 * is left, and then wait. (mpirun -n 8: compiled once, not eight times.)
 *
 *     text -> KEY.so: cc FLAGS -shared -nostdlib -o ... KEY.c -lm
 *
 * -nostdlib leaves out start files and libc (a third of the link time); libm
 * stays for what texts declare of it, and is recorded in the object, so that
 * it is found even where Tenon itself was loaded with RTLD_LOCAL.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "run/private.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct run_lib {
	const char *name; /* KEY.so */
	void *handle;
};

struct run_jit {
	arena *a;
	store s;
	compiler *c; /* NULL until it is needed */
	const char *target;
	map *libs; /* key -> index */
	VEC(run_lib *) lib;
	run_stats stats;
};

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- door ------------------------------------------------------------ */

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
				"TENON_TARGET is \"%s\": a name that -march= "
				"takes is accepted, such as haswell",
				v);
	return arena_strdup(a, v);
}

run_jit *run_jit_new(arena *a)
{
	return run_jit_new_in(a, NULL);
}

run_jit *run_jit_new_in(arena *a, const char *cache_dir)
{
	run_jit *j = arena_make(a, run_jit);

	j->a = a;
	j->target = target_of_env(a);
	j->libs = map_new(a);
	store_open(&j->s, a, cache_dir);
	j->stats.dir = j->s.dir;
	return j;
}

static compiler *need_compiler(run_jit *j)
{
	if (!j->c) {
		compiler *c = arena_make(j->a, compiler);

		probe_compiler(c, j->a, &j->s, j->target);
		j->c = c;
	}
	return j->c;
}

const run_target *run_jit_target(run_jit *j)
{
	return &need_compiler(j)->target;
}

const char *run_jit_flags(run_jit *j)
{
	return need_compiler(j)->flags;
}

const run_stats *run_jit_stats(run_jit *j)
{
	j->stats.n_corrupt = j->s.n_corrupt;
	j->stats.n_evicted = j->s.n_evicted;
	return &j->stats;
}

void run_symbol(run_jit *j, run_lib *lib, const char *name, void *fn)
{
	void *p = dlsym(lib->handle, name);

	if (!p)
		env_fail(arena_env(j->a), TN_EINTERNAL, "run.symbol", (loc){0},
			"the object %s has no function %s", lib->name, name);
	memcpy(fn, &p, sizeof p);
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
	return sha256_hex(j->a, &h);
}

static run_lib *known(run_jit *j, const char *key)
{
	int64_t i = map_get_str(j->libs, key, -1);

	return i < 0 ? NULL : j->lib.at[i];
}

/* NULL: the loader refuses it, and dlerror() says why */
static run_lib *load(run_jit *j, const char *key, const char *path)
{
	double start = now_ms();
	run_lib *lib = arena_make(j->a, run_lib);

	lib->name = arena_printf(j->a, "%s.so", key);
	arena_defer(j->a, close_lib, lib);
	lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle)
		return NULL;
	*vec_push(j->a, &j->lib) = lib;
	map_set_str(j->libs, key, j->lib.n - 1);
	j->stats.load_ms += now_ms() - start;
	return lib;
}

static run_lib *load_stored(run_jit *j, const char *key)
{
	const char *name = arena_printf(j->a, "%s.so", key);
	double start = now_ms();
	run_lib *lib = NULL;

	if (!store_has(&j->s, name))
		return NULL;
	j->stats.load_ms += now_ms() - start;
	lib = load(j, key, store_path(&j->s, name));
	if (lib) {
		j->stats.n_disk_hits++;
	} else {
		unlink(store_path(&j->s, name));
		j->s.n_corrupt++;
	}
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
	VEC(job) job, later; /* later: somebody else is at it */
} batch;

static void write_source(batch *b, job *k, int32_t i)
{
	arena *a = b->j->a;

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
		b->j->a, char *, c->n_argv + c->n_flags + n_tail + 1);

	for (i = 0; i < c->n_argv; i++)
		argv[n++] = c->argv[i];
	for (i = 0; i < c->n_flags; i++)
		argv[n++] = c->flag[i];
	for (i = 0; i < n_tail; i++)
		argv[n++] = arena_strdup(b->j->a, tail[i]);
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

/* Nothing in here throws between a start and its wait. */
static void run_jobs(batch *b)
{
	int32_t width = run_cores(), next = 0, done = 0, i;
	char ***argv = arena_array(b->j->a, char **, b->job.n);

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

/* three lines from the first that speaks of an error, on one line */
static const char *first_lines(batch *b, const job *k, const char *kept)
{
	arena *a = b->j->a;
	str s = str_new(a);
	size_t n, len = strlen(k->source);
	char *text = read_file(a, k->errors, 65536, &n), *p, *from;
	int32_t lines = 0;

	if (!text)
		return "it said nothing";
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
	return s.n ? s.at : "it said nothing";
}

static _Noreturn void reject(batch *b, const job *k)
{
	run_jit *j = b->j;
	const char *name = arena_printf(j->a, "failed-%.16s.c", k->key);
	const char *path = store_path(&j->s, name), *lines;

	if (k->process.error)
		env_fail(arena_env(j->a), TN_ECOMPILE, "run.cc", (loc){0},
			"cannot start the C compiler %s: %s", j->c->argv[0],
			strerror(k->process.error));
	lines = first_lines(b, k, name);
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
	const char *name = arena_printf(j->a, "%s.so", k->key);
	bool stored = store_put(&j->s, k->object, name);
	const char *path = stored ? store_path(&j->s, name) : k->object;

	j->stats.n_compiled++;
	if (!load(j, k->key, path))
		env_fail(arena_env(j->a), TN_ECOMPILE, "run.load",
			(loc){.file = path}, "cannot load %s: %.600s", path,
			dlerror());
	if (!j->s.keep)
		unlink(path);
}

static void compile_batch(batch *b)
{
	run_jit *j = b->j;
	double start = now_ms();
	int32_t i;

	b->dir = store_workdir(&j->s);
	b->envp = spawn_env(j->a);
	for (i = 0; i < b->job.n; i++)
		write_source(b, &b->job.at[i], i);
	run_jobs(b);
	for (i = 0; i < b->job.n; i++)
		if (b->job.at[i].made)
			accept(b, &b->job.at[i]);
	for (i = 0; i < b->job.n; i++)
		if (!b->job.at[i].made)
			reject(b, &b->job.at[i]);
	remove_tree(b->dir);
	j->stats.compile_ms += now_ms() - start;
	store_trim(&j->s);
}

/* a: of the claims, which end where this ends, by an error too */
static void make_unclaimed(arena *a, void *arg)
{
	batch *b = arg;
	int32_t n = 0, i;

	for (i = 0; i < b->job.n; i++) {
		job k = b->job.at[i];

		if (!store_claim(&b->j->s, a, k.key, false))
			*vec_push(b->j->a, &b->later) = k;
		else if (!load_stored(b->j, k.key)) /* made since */
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

/* One claim at a time: two that wait for each other would wait for long. */
static void make_all(batch *b)
{
	env *e = arena_env(b->j->a);
	int32_t i;

	arena_run(e, make_unclaimed, b);
	for (i = 0; i < b->later.n; i++) {
		batch one = {.j = b->j};

		*vec_push(b->j->a, &one.job) = b->later.at[i];
		arena_run(e, make_later, &one);
	}
}

void run_compile(run_jit *j, const char *const *text, int32_t n, run_lib **lib)
{
	batch b = {.j = j};
	const char **key = arena_array(j->a, const char *, n);
	map *asked = map_new(j->a);
	int32_t i;

	for (i = 0; i < n; i++) {
		key[i] = key_of(j, text[i]);
		if (known(j, key[i])) {
			j->stats.n_memory_hits++;
		} else if (!map_get_str(asked, key[i], 0) &&
			   !load_stored(j, key[i])) {
			map_set_str(asked, key[i], 1);
			*vec_push(j->a, &b.job) = (job){
				.key = key[i], .text = text[i]};
		}
	}
	if (b.job.n > 0)
		make_all(&b);
	for (i = 0; i < n; i++)
		lib[i] = known(j, key[i]);
}
