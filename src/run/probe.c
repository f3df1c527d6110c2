/*
 * probe.c: finds the C compiler, the flags that it accepts, and its target.
 *
 * One run of `cc FLAGS -dM -E` shows whether the flags are accepted and, by the
 * macros that it defines, the version and the vector registers. The answer is stored
 * under a hash of everything that it depends on: the words of the command, the
 * program file, the target and this machine. So a process that finds all its objects
 * in the cache starts no other program.
 *
 * The flags. No -ffast-math and no -fno-signed-zeros: NaN, infinities and -0
 * are kept. -ffp-contract=off: if the compiler chose which a*b+c to fuse, the
 * same equation computed in two kernels, or by a vector loop and its tail,
 * could differ in the last bit, and `x == max(x)` would then find no element;
 * fused operations are explicit (target/c/math.h, mad). -fwrapv: integers wrap.
 */
#define _GNU_SOURCE /* st_mtim */
#include "run/private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#include <sys/utsname.h>
#endif

#define FORMAT "5" /* version of stored objects; those of others are not found */

static const char *const base_flags[] = {"-std=gnu11", "-O2", "-fPIC",
	"-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv",
	"-fno-strict-aliasing", "-fopenmp-simd", "-fno-stack-protector",
	"-fno-asynchronous-unwind-tables",
	/* gcc 12 gets x == -1 ? -x : x / y wrong for two lanes of 32 bits, and
	 * with -O3 sums of rows of three read backwards (proptest --seed 300001
	 * --first 7); the texts have their vectors already */
	"-fno-tree-slp-vectorize", "-fno-tree-loop-vectorize",
	/* gcc 12 loses the first rows of a copy that it takes out of a nest as
	 * memcpy (function_prop --seed 1 --first 1450); and what is fused here
	 * is not to be distributed again */
	"-fno-tree-loop-distribution", "-fno-tree-loop-distribute-patterns"};
#define N_BASE ((int32_t)(sizeof base_flags / sizeof *base_flags))

/* ---- the machine ----------------------------------------------------- */

static void add_machine(sha256 *h)
{
#if defined(__x86_64__) || defined(__i386__)
	static const unsigned leaf[][2] = {
		{0, 0}, {1, 0}, {7, 0}, {7, 1}, {0xd, 1}, {0x80000001u, 0}};
	size_t i;

	for (i = 0; i < sizeof leaf / sizeof *leaf; i++) {
		unsigned r[4] = {0};

		__get_cpuid_count(
			leaf[i][0], leaf[i][1], &r[0], &r[1], &r[2], &r[3]);
		if (leaf[i][0] == 1)
			r[1] &= 0x00ffffffu; /* number of the core: not a fact */
		if (leaf[i][0] == 1)
			r[2] &= ~(1u << 27); /* follows the system */
		sha256_add(h, r, sizeof r);
	}
#else
	unsigned long caps[2] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
	struct utsname u;

	sha256_add(h, caps, sizeof caps);
	if (uname(&u) == 0)
		sha256_add_str(h, u.machine);
#endif
}

/*
 * May this process use tile registers? Linux must be asked, once for all threads,
 * because they make what it keeps of a thread 8 KB larger.
 */
static bool may_use_tiles(void)
{
#if defined(SYS_arch_prctl)
	enum { ASK = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA */

	return syscall(SYS_arch_prctl, ASK, TILES) == 0;
#else
	return false;
#endif
}

/* ---- finding it ------------------------------------------------------ */

static bool take(compiler *c, arena *a, const char *command)
{
	const char *path;

	c->argv = spawn_words(a, command, &c->n_argv);
	if (c->n_argv == 0)
		return false;
	path = spawn_find(a, c->argv[0]);
	c->shown = command;
	if (path)
		c->argv[0] = arena_strdup(a, path);
	return path != NULL;
}

static void find(compiler *c, arena *a)
{
	static const char *const vars[] = {"TENON_CC", "CC"};
	static const char *const names[] = {"cc", "gcc", "clang"};
	size_t i;

	for (i = 0; i < 2; i++) {
		const char *v = getenv(vars[i]);

		if (!v || !v[strspn(v, " \t\n")])
			continue;
		if (!take(c, a, v))
			env_fail(arena_env(a), TN_ECOMPILE, "run.cc", (loc){0},
				"the C compiler \"%s\" that %s names is not an "
				"executable program, by itself or on PATH; "
				"name gcc (12 or later) or clang (14 or later)",
				v, vars[i]);
		return;
	}
	for (i = 0; i < 3; i++)
		if (take(c, a, names[i]))
			return;
	env_fail(arena_env(a), TN_ECOMPILE, "run.cc", (loc){0},
		"no C compiler: TENON_CC and CC are not set, and none of cc, "
		"gcc, clang is on PATH; install gcc (12 or later; apt-get "
		"install gcc) or clang (14 or later)");
}

/* ---- asking it ------------------------------------------------------- */

typedef struct ask {
	compiler *c;
	arena *a;
	const char *dir;
	int exit;
	const char *macros, *errors;
} ask;

/* cc FLAGS -dM -E, over an empty text */
static bool run_once(ask *q, char *const *flag, int32_t n_flags)
{
	static const char *const tail[] = {"-dM", "-E", "-x", "c", "/dev/null"};
	const char *out = arena_printf(q->a, "%s/macros", q->dir);
	const char *err = arena_printf(q->a, "%s/errors", q->dir);
	char **argv = arena_array(q->a, char *, q->c->n_argv + n_flags + 6);
	int32_t n = 0, i;
	spawned p;
	size_t len;

	for (i = 0; i < q->c->n_argv; i++)
		argv[n++] = q->c->argv[i];
	for (i = 0; i < n_flags; i++)
		argv[n++] = flag[i];
	for (i = 0; i < 5; i++)
		argv[n++] = arena_strdup(q->a, tail[i]);
	p = spawn_start(argv, spawn_env(q->a), out, err);
	if (p.error) {
		q->exit = 127;
		q->errors = strerror(p.error);
		q->macros = "";
		return false;
	}
	q->exit = spawn_wait(p);
	q->macros = read_file(q->a, out, 1 << 20, &len);
	q->errors = read_file(q->a, err, 4096, &len);
	q->macros = q->macros ? q->macros : "";
	q->errors = q->errors ? q->errors : "";
	/* judge by the output: if SIGCHLD is ignored, the status is lost */
	return q->exit <= 0 && strstr(q->macros, "#define __VERSION__ ");
}

/* Tries all flags at once; if that fails, one by one. */
static void choose_flags(ask *q, const char *target)
{
	compiler *c = q->c;
	char **all = arena_array(q->a, char *, N_BASE + 2);
	int32_t n = 0, i;

	for (i = 0; i < N_BASE; i++)
		all[n++] = arena_strdup(q->a, base_flags[i]);
	all[n++] = arena_printf(q->a, "-march=%s", target ? target : "native");
	all[n++] = arena_strdup(q->a, "-mprefer-vector-width=512");
	c->flag = arena_array(q->a, char *, n + 3);
	if (run_once(q, all, n)) {
		memcpy(c->flag, all, (size_t)n * sizeof *all);
		c->n_flags = n;
		return;
	}
	for (i = 0; i < n; i++) {
		c->flag[c->n_flags] = all[i];
		if (run_once(q, c->flag, c->n_flags + 1))
			c->n_flags++;
		else if (target && i == N_BASE)
			env_fail(arena_env(q->a), TN_EINVAL, "run.env",
				(loc){0},
				"TENON_TARGET is \"%s\", and %s does not know "
				"it: %.200s",
				target, c->shown, q->errors);
	}
	if (!run_once(q, c->flag, c->n_flags))
		env_fail(arena_env(q->a), TN_ECOMPILE, "run.cc", (loc){0},
			"\"%s\" (%s) cannot compile an empty text (exit status "
			"%d): %.300s; gcc (12 or later) or clang (14 or later) "
			"is needed: set TENON_CC",
			c->shown, c->argv[0], q->exit, q->errors);
}

static bool has(const char *macros, const char *name)
{
	const char *p = macros;
	size_t n = strlen(name);

	while ((p = strstr(p, name))) {
		if (p[n] == ' ' && p > macros && p[-1] == ' ')
			return true;
		p += n;
	}
	return false;
}

/* Adds flags, if the compiler takes them. */
static void try_flags(ask *q, const char *const *flag, int32_t n)
{
	compiler *c = q->c;

	for (int32_t i = 0; i < n; i++)
		c->flag[c->n_flags + i] = arena_strdup(q->a, flag[i]);
	if (run_once(q, c->flag, c->n_flags + n))
		c->n_flags += n;
	else
		(void)run_once(q, c->flag, c->n_flags);
}

/*
 * For AMD's processors gcc 12 takes a load of a vector to be as fast as a register:
 * a tile of four rows loads each vector of columns four times, and takes 1.6 times as
 * long. What it does for processors in general keeps the vector. With the 32 registers
 * of AVX-512 this was not measured, and stays.
 *
 * With the masks of AVX-512 it makes a shift of a vector chosen by the sign of an
 * integer, which it then does not compile (`decided` in target/c/math_base.def).
 */
static void choose_for_gcc(ask *q)
{
	static const char *const tuned[] = {"-mtune=generic"};
	static const char *const chosen[] = {
		"-fno-if-conversion", "-DNO_IF_CONVERSION"};

	if (strstr(q->macros, "#define __clang__ ") != NULL)
		return;
	if (has(q->macros, "__AVX512F__"))
		try_flags(q, chosen, 2);
	else if (strstr(q->macros, "#define __tune_znver") != NULL)
		try_flags(q, tuned, 1);
}

/* A refusal of the system: no text of this process has instructions for tiles. */
static void leave_out_tiles(ask *q, const char *target)
{
	static const char *const without[] = {"-mno-amx-tile"};

	if (!target && !q->c->may_tile && has(q->macros, "__AMX_TILE__"))
		try_flags(q, without, 1);
}

static void read_target(run_target *t, const char *macros)
{
	const char *v = strstr(macros, "#define __VERSION__ \"");
	size_t n, at = 0;

	t->vector_bytes = has(macros, "__AVX512F__") ? 64
			  : has(macros, "__AVX2__")  ? 32
			  : has(macros, "__SSE2__") ||
					  has(macros, "__ARM_NEON") ||
					  has(macros, "__VSX__")
				  ? 16
				  : 8;
	t->n_vector_registers = t->vector_bytes == 64 ||
						has(macros, "__aarch64__") ||
						has(macros, "__VSX__")
					? 32
					: 16;
	t->fma = has(macros, "__FMA__") || has(macros, "__AVX512F__") ||
		 has(macros, "__FP_FAST_FMAF") || has(macros, "__aarch64__");
	t->f16 = has(macros, "__F16C__") || has(macros, "__aarch64__");
	t->dot_int = has(macros, "__AVX512VNNI__");
	t->dot_bf16 = has(macros, "__AVX512BF16__");
	t->tiles = has(macros, "__AMX_TILE__") && has(macros, "__AMX_BF16__") &&
		   has(macros, "__AMX_INT8__");
	if (!has(macros, "__clang__")) {
		memcpy(t->compiler, "gcc ", 5);
		at = 4;
	}
	v = v ? v + strlen("#define __VERSION__ \"") : "";
	n = strcspn(v, "\"\n");
	if (n > sizeof t->compiler - 1 - at)
		n = sizeof t->compiler - 1 - at;
	memcpy(t->compiler + at, v, n);
	t->compiler[at + n] = 0;
}

/* ---- keeping the answer ---------------------------------------------- */

/* the lines: identity, compiler, seven numbers, then a flag a line */
static const char *write_answer(arena *a, const compiler *c)
{
	str s = str_new(a);
	int32_t i;

	str_printf(&s, "%s\n%s\n%d %d %d %d %d %d %d\n", c->identity, c->target.compiler,
		c->target.vector_bytes, c->target.n_vector_registers,
		c->target.fma, c->target.f16, c->target.dot_int,
		c->target.dot_bf16, c->target.tiles);
	for (i = 0; i < c->n_flags; i++)
		str_printf(&s, "%s\n", c->flag[i]);
	return s.at;
}

static char *line(char **p)
{
	char *at = *p, *end = strchr(at, '\n');

	if (!end)
		return NULL;
	*end = 0;
	*p = end + 1;
	return at;
}

static bool read_answer(arena *a, compiler *c, char *text)
{
	char *identity = line(&text);
	char *name = identity ? line(&text) : NULL;
	char *numbers = name ? line(&text) : NULL, *flag;
	VEC(char *) v = {0};
	long n[7];
	int i;

	if (!numbers || strlen(name) >= sizeof c->target.compiler)
		return false;
	for (i = 0; i < 7; i++)
		n[i] = strtol(numbers, &numbers, 10);
	c->identity = identity;
	memcpy(c->target.compiler, name, strlen(name) + 1);
	c->target.vector_bytes = (int32_t)n[0];
	c->target.n_vector_registers = (int32_t)n[1];
	c->target.fma = n[2] != 0;
	c->target.f16 = n[3] != 0;
	c->target.dot_int = n[4] != 0;
	c->target.dot_bf16 = n[5] != 0;
	c->target.tiles = n[6] != 0;
	while ((flag = line(&text)))
		*vec_push(a, &v) = flag;
	c->flag = v.at;
	c->n_flags = v.n;
	return true;
}

/* Hashes everything that the answer depends on. */
static void add_question(sha256 *h, const compiler *c, const char *target)
{
	struct stat st;
	int32_t i;

	sha256_start(h);
	sha256_add_str(h, FORMAT);
	for (i = 0; i < c->n_argv; i++)
		sha256_add_str(h, c->argv[i]);
	if (stat(c->argv[0], &st) == 0) {
		int64_t facts[5] = {(int64_t)st.st_size, (int64_t)st.st_ino,
			(int64_t)st.st_dev, (int64_t)st.st_mtim.tv_sec,
			(int64_t)st.st_mtim.tv_nsec};

		sha256_add(h, facts, sizeof facts);
	}
	for (i = 0; i < N_BASE; i++)
		sha256_add_str(h, base_flags[i]);
	sha256_add_str(h, target ? target : "");
	if (target) /* code does not depend on this machine */
		return;
	add_machine(h);
	sha256_add(h, &c->may_tile, sizeof c->may_tile);
}

static void ask_compiler(compiler *c, arena *a, store *s, const char *target)
{
	ask q = {.c = c, .a = a, .dir = store_workdir(s)};
	sha256 h;
	int32_t i;

	choose_flags(&q, target);
	choose_for_gcc(&q);
	leave_out_tiles(&q, target);
	read_target(&c->target, q.macros);
	add_question(&h, c, target);
	for (i = 0; i < c->n_flags; i++)
		sha256_add_str(&h, c->flag[i]);
	sha256_add_str(&h, q.macros);
	c->identity = sha256_hex(a, &h);
	remove_tree(q.dir);
}

static void keep_answer(compiler *c, arena *a, store *s, const char *name)
{
	const char *dir = store_workdir(s), *text = write_answer(a, c);
	const char *file = arena_printf(a, "%s/answer", dir);

	if (write_file(file, text, strlen(text)))
		store_put(s, file, name);
	remove_tree(dir);
}

void probe_compiler(compiler *c, arena *a, store *s, const char *target)
{
	const char *name;
	char *kept;
	size_t n;
	sha256 h;

	memset(c, 0, sizeof *c);
	find(c, a);
	c->may_tile = target == NULL && may_use_tiles();
	add_question(&h, c, target);
	name = arena_printf(a, "probe-%s", sha256_hex(a, &h));
	kept = store_read(s, s->a, name, 1 << 20, &n);
	if (!kept || !read_answer(a, c, kept)) {
		ask_compiler(c, a, s, target);
		if (s->keep)
			keep_answer(c, a, s, name);
	}
	if (target && c->target.tiles) /* refused: as on a processor without them */
		(void)may_use_tiles();
}
