/*
 * batch.c: the kernels of many programs, compiled together and loaded.
 *
 * One C compiler run costs more than a kernel: the functions of some fifty
 * programs go into two translation units. They get the flags of the library,
 * but warnings are on and are errors; and what is asked are values, so -Og does,
 * in half the time. Every third batch has one unit at -O3, where what the texts
 * leave to the compiler shows; and in a process that was started for it
 * everything is under ASan and UBSan.
 */
#include "prop.h"
#include "run/private.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNITS = 2, MAX_FLAGS = 64 };

extern char **environ;

struct batch {
	arena *a;
	const prop_options *o;
	int32_t n_plans;
	map *seen; /* name of a function -> number in all */
	VEC(const c_kernel *) all;
	VEC(const c_kernel *) kernel[UNITS];
	const char *text[UNITS];
	void *lib[UNITS];
	const char *dir;
};

static void unload(void *p)
{
	batch *b = p;

	for (int32_t i = 0; i < UNITS; i++)
		if (b->lib[i] != NULL)
			dlclose(b->lib[i]);
}

batch *batch_new(arena *a, const prop_options *o)
{
	batch *b = arena_make(a, batch);

	b->a = a;
	b->o = o;
	b->seen = map_new(a);
	arena_defer(a, unload, b);
	return b;
}

static size_t word_at(const char *p)
{
	size_t n = 0;

	while ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= 'A' && p[n] <= 'Z') ||
		(p[n] >= '0' && p[n] <= '9') || p[n] == '_')
		n++;
	return n;
}

/* "i32", "f32x16", "u8x64": a type's name; variables are i0, i1 .., i8_ */
static bool is_type(const char *s)
{
	static const char *const bits[] = {"8", "16", "32", "64"};

	for (size_t i = 0; i < 4 && strchr("fiu", s[0]) != NULL; i++) {
		size_t n = strlen(bits[i]);

		if (strncmp(s + 1, bits[i], n) == 0 &&
			(s[1 + n] == '\0' || s[1 + n] == 'x'))
			return true;
	}
	return false;
}

static bool is_one_of(const char *w, const char *const *words)
{
	while (*words != NULL && strcmp(*words, w) != 0)
		words++;
	return *words != NULL || strncmp(w, "__", 2) == 0;
}

/*
 * A type or function that the text uses in front of its declaration; NULL:
 * there is none. Declared are: typedef TYPE NAME, TYPE NAME(.
 */
static const char *not_declared(arena *a, const char *p)
{
	static const char *const types[] = {
		"void", "int", "float", "double", NULL};
	static const char *const no_calls[] = {"sizeof", "defined",
		"vector_size", "aligned", "always_inline", NULL};
	const char *before[2] = {"", ""}; /* the two words in front */
	map *known = map_new(a);

	while (*p != '\0') {
		size_t n = word_at(p);
		const char *w = arena_strndup(a, p, n);
		bool call = n > 0 && p[n] == '(' && !is_one_of(w, no_calls);
		bool typed = map_get_str(known, before[0], 0) != 0 ||
			     is_one_of(before[0], types);

		if (n == 0) {
			if (strchr(" \t\n", *p) == NULL)
				before[0] = before[1] = "";
			p = strncmp(p, "/*", 2) == 0 ? strstr(p, "*/") + 2
						     : p + 1;
			continue;
		}
		if (strcmp(before[1], "typedef") == 0 || (call && typed))
			map_set_str(known, w, 1);
		else if ((is_type(w) || call) && map_get_str(known, w, 0) == 0)
			return w;
		before[1] = before[0];
		before[0] = w;
		p += n;
	}
	return NULL;
}

typedef void unit_fn(str *out, const c_kernel *const *k, int32_t n);

static unit_fn *unit_of(const prop_options *o)
{
	return o->simt ? simt_warps.unit : c_gnu.unit;
}

/* In a unit of its own, where no other kernel of the batch brings by chance
 * what this one has forgotten to ask for. */
static void check_alone(batch *b, const c_kernel *k)
{
	str s = str_new(b->a);
	const char *name;

	unit_of(b->o)(&s, &k, 1);
	name = not_declared(b->a, s.at);
	if (name != NULL)
		env_bug(arena_env(b->a), "batch", "%s is not declared: %.60s",
			name, k->c);
}

/* Equal kernels have equal names, and no others. */
void batch_add(batch *b, const plan *p)
{
	int32_t u = b->n_plans++ % UNITS;

	for (int32_t i = 0; i < p->kernel.n; i++) {
		const c_kernel *k = p->kernel.at[i].code;
		int64_t old = map_get_str(b->seen, k->phase[0].fn, -1);

		if (old >= 0) {
			if (strcmp(b->all.at[old]->c, k->c) != 0)
				env_bug(arena_env(b->a), "batch",
					"two functions are called %s",
					k->phase[0].fn);
			continue;
		}
		if (!b->o->simt)
			check_alone(b, k);
		map_set_str(b->seen, k->phase[0].fn, b->all.n);
		*vec_push(b->a, &b->all) = k;
		*vec_push(b->a, &b->kernel[u]) = k;
	}
}

const char *batch_text(const batch *b, int32_t unit)
{
	return b->text[unit];
}

static bool write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok;

	if (f == NULL)
		return false;
	ok = fputs(text, f) >= 0;
	return fclose(f) == 0 && ok;
}

static const char *read_text(arena *a, const char *path)
{
	str s = str_new(a);
	FILE *f = fopen(path, "r");
	char part[4096];
	size_t n;

	if (f == NULL)
		return "";
	while (s.n < 3000 && (n = fread(part, 1, sizeof part, f)) > 0)
		str_addn(&s, part, n);
	fclose(f);
	return s.at;
}

/* The library's flags, less those for optimisation and silence. */
static int32_t add_flags(batch *b, int32_t unit, char **argv)
{
	/* the arena closes the store, and flags may be part of the compiler */
	store *s = arena_make(b->a, store);
	compiler *c = arena_make(b->a, compiler);
	bool fast = b->o->opt3 && unit == 0 && !b->o->asan;
	int32_t n = 0;
	const char *cc = getenv("TENON_CC"), *more = getenv("PROPTEST_CFLAG");

	store_open(s, b->a, NULL);
	probe_compiler(c, b->a, s, NULL);
	argv[n++] = arena_strdup(b->a, cc != NULL ? cc : "cc");
	for (int32_t i = 0; i < c->n_flags && n < 40; i++)
		if (strcmp(c->flag[i], "-w") != 0 &&
			strncmp(c->flag[i], "-O", 2) != 0)
			argv[n++] = c->flag[i];
	argv[n++] = arena_strdup(b->a, fast ? "-O3" : "-Og");
	argv[n++] = arena_strdup(b->a, "-Wall");
	argv[n++] = arena_strdup(b->a, "-Wextra");
	argv[n++] = arena_strdup(b->a, "-Werror");
	/* vectors wider than this machine's: whatever takes them is inlined */
	argv[n++] = arena_strdup(b->a, "-Wno-psabi");
	/* gcc 12 reports a remainder loop on a way that cannot be gone, behind a
	 * loop that ended at or past its end (--contract --seed 2 --first 640).
	 * That accesses are inside is checked by the interpreter of kern. */
	argv[n++] = arena_strdup(b->a, "-Wno-unknown-warning-option"); /* clang */
	argv[n++] = arena_strdup(b->a, "-Wno-aggressive-loop-optimizations");
	if (b->o->asan) {
		argv[n++] = arena_strdup(
			b->a, "-fsanitize=address,undefined");
		argv[n++] = arena_strdup(b->a, "-fno-sanitize-recover=all");
		argv[n++] = arena_strdup(b->a, "-g1");
	}
	argv[n++] = arena_strdup(b->a, "-shared");
	if (!b->o->asan) { /* as the library does: linking takes less */
		argv[n++] = arena_strdup(b->a, "-nostdlib");
		argv[n++] = arena_strdup(b->a, "-Wl,--as-needed");
	}
	if (more != NULL) /* while a warning is hunted: -Wno-... */
		argv[n++] = arena_strdup(b->a, more);
	return n;
}

/*
 * The unit of emulated warps, with a fault that the emulator must find, at every
 * place where lanes or warps wait for each other: PROPTEST_BREAK=race: they do
 * not; barrier: every other one does not; fence, warpgroup: those of instructions that
 * several warps execute.
 */
static const char *planted(batch *b, const char *text)
{
	static const struct {
		const char *how, *at, *to;
	} faults[] = {{"race", "\tSYNC();", "\t;"},
		{"barrier", "\tSYNC();", "\tif (lane32 % 2 == 0)\n\tSYNC();"},
		{"block_race", "\tBLOCK_SYNC();", "\t;"},
		{"block_barrier", "\tBLOCK_SYNC();",
			"\tif (threadIdx.x < 32)\n\tBLOCK_SYNC();"},
		{"fence", "\tPROXY_FENCE();", "\t;"},
		{"bulk_wait", "\tBULK_WAIT(", "\t(void)("},
		{"bulk_end", "\tBULK_COMMIT();", "\t;"},
		{"warpgroup", "\tMMA_", "\tif (threadIdx.x % 128 < 96)\n\tMMA_"}};
	enum { N = sizeof faults / sizeof *faults };
	const char *how = getenv("PROPTEST_BREAK"), *at = text, *next;
	size_t i = 0;
	str s;

	while (i < N && (how == NULL || strcmp(how, faults[i].how) != 0))
		i++;
	if (!b->o->simt || i == N)
		return text;
	s = str_new(b->a);
	while ((next = strstr(at, faults[i].at)) != NULL) {
		str_addn(&s, at, (size_t)(next - at));
		str_add(&s, faults[i].to);
		at = next + strlen(faults[i].at);
	}
	str_add(&s, at);
	return s.at;
}

static bool spawn_cc(batch *b, int32_t u, pid_t *pid)
{
	char *argv[MAX_FLAGS];
	const char *source = arena_printf(b->a, "%s/u%d.c", b->dir, u);
	posix_spawn_file_actions_t act;
	int32_t n = add_flags(b, u, argv);
	str s = str_new(b->a);
	bool ok;

	unit_of(b->o)(&s, b->kernel[u].at, b->kernel[u].n);
	b->text[u] = planted(b, s.at);
	if (!write_text(source, b->text[u]))
		return false;
	argv[n++] = arena_strdup(b->a, "-o");
	argv[n++] = arena_printf(b->a, "%s/u%d.so", b->dir, u);
	argv[n++] = arena_strdup(b->a, source);
	argv[n++] = arena_strdup(b->a, "-lm");
	argv[n] = NULL;
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_addopen(&act, 2,
		arena_printf(b->a, "%s/u%d.err", b->dir, u),
		O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ok = posix_spawnp(pid, argv[0], &act, NULL, argv, environ) == 0;
	posix_spawn_file_actions_destroy(&act);
	return ok;
}

static void clean(batch *b)
{
	static const char *const ends[] = {"c", "so", "err"};

	for (int32_t u = 0; u < UNITS; u++)
		for (int32_t i = 0; i < 3; i++)
			unlink(arena_printf(
				b->a, "%s/u%d.%s", b->dir, u, ends[i]));
	rmdir(b->dir);
}

static bool load(batch *b, int32_t u, const char **message)
{
	b->lib[u] = dlopen(arena_printf(b->a, "%s/u%d.so", b->dir, u),
		RTLD_NOW | RTLD_LOCAL);
	if (b->lib[u] == NULL)
		*message = arena_strdup(b->a, dlerror());
	return b->lib[u] != NULL;
}

bool batch_compile(batch *b, const char **message)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = arena_printf(b->a, "%s/proptest.XXXXXX",
		tmp != NULL ? tmp : "/tmp");
	pid_t pid[UNITS] = {0};
	bool ok = true;

	if (mkdtemp(dir) == NULL) {
		*message = "no temporary folder";
		return false;
	}
	b->dir = dir;
	for (int32_t u = 0; u < UNITS; u++)
		if (b->kernel[u].n > 0 && !spawn_cc(b, u, &pid[u])) {
			*message = "the C compiler does not start";
			ok = false;
		}
	for (int32_t u = 0; u < UNITS; u++) {
		int status = 0;

		if (pid[u] <= 0)
			continue;
		while (waitpid(pid[u], &status, 0) < 0 && errno == EINTR)
			;
		if (status != 0) {
			*message = read_text(b->a, arena_printf(b->a,
				"%s/u%d.err", b->dir, u));
			ok = false;
		} else if (ok) {
			ok = load(b, u, message);
		}
	}
	clean(b);
	return ok;
}

void batch_find(void *arg, int32_t unit, const char *name, void *fn)
{
	const batch *b = arg;
	void *f = NULL;

	(void)unit; /* of the plan: here programs share units */
	for (int32_t u = 0; u < UNITS && f == NULL; u++)
		if (b->lib[u] != NULL)
			f = dlsym(b->lib[u], name);
	if (f == NULL)
		env_bug(arena_env(b->a), "batch_find", "no function %s", name);
	memcpy(fn, &f, sizeof f);
}

void asan_poison(const void *p, size_t n, bool poison)
{
	const char *name = poison ? "__asan_poison_memory_region"
				  : "__asan_unpoison_memory_region";
	void (*fn)(const volatile void *, size_t) = NULL;
	void *f = dlsym(RTLD_DEFAULT, name);

	memcpy(&fn, &f, sizeof f);
	if (fn != NULL)
		fn(p, n);
}
