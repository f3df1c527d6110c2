/*
 * module.c: texts become functions: NVRTC compiles what is new, several texts at
 * the same time, and the code is kept in the cache, beside the objects of the CPU.
 *
 *     KEY = SHA-256 of the version of NVRTC, its options, the text
 *     KEY.gpu: machine code; or PTX for a GPU that this NVRTC does not know yet,
 *     which the driver compiles when it is loaded
 */
#include "run/cuda/local.h"

#include "base/sha256.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* A compilation in NVRTC takes hundreds of MB. */
enum { MOST_THREADS = 8, LOG_LINES = 3 };
#define MOST_CODE ((size_t)256 << 20)

struct cuda_unit {
	const char *key;
	cu_module module;
};

typedef struct job {
	const char *key, *text;
	struct batch *of;
	rtc_program program;
	rtc_result result;
} job;

typedef struct batch {
	cuda_device *d;
	arena *a;
	const char *arch;
	bool is_ptx;
	VEC(job) job, later; /* later: another process compiles them */
	int32_t next;	     /* of the jobs, for the threads */
} batch;

/* ---- what for ---------------------------------------------------------- */

/* The newest that NVRTC knows, up to the device's; 0: it knows none. */
static int known_arch(cuda_device *d)
{
	int n = 0, best = 0, *arch;

	if (d->rtc.n_archs(&n) != 0 || n < 1)
		return 0;
	arch = arena_array(d->s.tmp, int, n);
	if (d->rtc.archs(arch) != 0)
		return 0;
	for (int i = 0; i < n; i++)
		if (arch[i] <= d->compute && arch[i] > best)
			best = arch[i];
	return best;
}

const char *cuda_arch(cuda_device *d, bool own, bool *is_ptx)
{
	int known = known_arch(d);

	if (known == 0)
		env_fail(arena_env(d->a), TN_ECOMPILE, "cuda.nvrtc", (loc){0},
			"%s knows no GPU of compute capability %d.%d or less: "
			"install another version, or name it in TENON_NVRTC",
			d->rtc.path, d->compute / 10, d->compute % 10);
	*is_ptx = known != d->compute;
	return arena_printf(d->s.tmp, "--gpu-architecture=%s_%d%s",
		*is_ptx ? "compute" : "sm", known,
		own && !*is_ptx && known == CUDA_WARPGROUPS ? "a" : "");
}

/* Floats are not contracted, as on the CPU: the text says what is fused. */
static const char *const options[] = {NULL, "--std=c++17", "--fmad=false",
	"--device-as-default-execution-space"};
enum { N_OPTIONS = sizeof options / sizeof *options };

static const char *key_of(const batch *b, const char *text)
{
	sha256 h;

	sha256_start(&h);
	sha256_add_str(&h, arena_printf(b->d->s.tmp, "nvrtc %d",
		b->d->rtc.version_number));
	sha256_add_str(&h, b->arch);
	for (int32_t i = 1; i < N_OPTIONS; i++)
		sha256_add_str(&h, options[i]);
	sha256_add_str(&h, text);
	return sha256_hex(b->d->s.tmp, &h);
}

/* ---- loading ----------------------------------------------------------- */

static struct cuda_unit *known(const cuda_device *d, const char *key)
{
	int64_t i = map_get_str(d->units, key, -1);

	return i < 0 ? NULL : d->unit.at[i];
}

static void load_code(cuda_device *d, const char *key, const char *code)
{
	double start = now_ms();
	struct cuda_unit *u = arena_make(d->a, struct cuda_unit);

	u->key = arena_strdup(d->a, key);
	*vec_push(d->a, &d->unit) = u;
	map_set_str(d->units, u->key, d->unit.n - 1);
	cuda_enter(d);
	cuda_check(d, d->l.module_load(&u->module, code),
		"cannot load a compiled kernel", key);
	cuda_leave(d);
	d->stats.load_ms += now_ms() - start;
}

static const char *file_of(const cuda_device *d, const char *key)
{
	return arena_printf(d->s.tmp, "%s.gpu", key);
}

static bool load_stored(cuda_device *d, const char *key)
{
	size_t n = 0;
	char *code = store_read(
		&d->s, d->s.tmp, file_of(d, key), MOST_CODE, &n);

	if (code == NULL)
		return false;
	load_code(d, key, code);
	d->stats.n_disk_hits++;
	return true;
}

/* ---- compiling --------------------------------------------------------- */

static void end_program(void *what)
{
	job *k = what;

	if (k->program != NULL)
		k->of->d->rtc.program_free(&k->program);
	k->program = NULL;
}

/* On any thread: nothing here throws or takes memory of an arena. */
static void *compile_some(void *arg)
{
	batch *b = arg;
	const rtc_library *l = &b->d->rtc;
	const char *option[N_OPTIONS];
	int32_t i;

	memcpy(option, options, sizeof option);
	option[0] = b->arch;
	while ((i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED)) <
		b->job.n) {
		job *k = &b->job.at[i];

		k->result = l->program_new(
			&k->program, k->text, "kernels.cu", 0, NULL, NULL);
		if (k->result == 0)
			k->result = l->compile(k->program, N_OPTIONS, option);
	}
	return NULL;
}

static void compile_jobs(batch *b)
{
	pthread_t thread[MOST_THREADS];
	int32_t n = run_cores(), made = 0;

	if (n > MOST_THREADS)
		n = MOST_THREADS;
	if (n > b->job.n)
		n = b->job.n;
	b->next = 0;
	/* fewer threads do the same */
	while (made < n - 1 &&
		pthread_create(&thread[made], NULL, compile_some, b) == 0)
		made++;
	compile_some(b);
	while (made > 0)
		pthread_join(thread[--made], NULL);
}

/* The first lines of the log that have an error, joined. */
static const char *first_lines(batch *b, const job *k)
{
	const rtc_library *l = &b->d->rtc;
	char *log, *from;
	str s = str_new(b->a);
	size_t n = 0;
	int32_t lines = 0;

	if (k->program == NULL || l->log_size(k->program, &n) != 0 || n < 2)
		return "it says nothing";
	log = arena_alloc(b->a, n + 1, 1);
	if (l->log(k->program, log) != 0)
		return "it says nothing";
	from = strstr(log, "error");
	from = from != NULL ? from : log;
	while (from > log && from[-1] != '\n')
		from--;
	for (; *from != '\0' && lines < LOG_LINES && s.n < 600; from++)
		if (*from != '\n')
			str_addc(&s, *from);
		else if (++lines < LOG_LINES && from[1] != '\0')
			str_add(&s, " / ");
	return s.n > 0 ? s.at : "it says nothing";
}

static _Noreturn void reject(batch *b, const job *k)
{
	cuda_device *d = b->d;
	const char *name = arena_printf(b->a, "failed-%.16s.cu", k->key);
	const char *path = store_path(&d->s, name);

	(void)unlink(path);
	if (write_file(path, k->text, strlen(k->text)))
		d->s.has_failure = true;
	env_fail(arena_env(d->a), TN_ECOMPILE, "cuda.compile",
		(loc){.file = path},
		"%s (error %d, %s) rejects generated code: %s; the text is "
		"kept in %s",
		d->rtc.path, (int)k->result, b->arch, first_lines(b, k), path);
}

static void keep_code(
	cuda_device *d, const char *dir, const job *k, const char *code, size_t n)
{
	const char *file = arena_printf(d->s.tmp, "%s/0.gpu", dir);

	/* a cache that is full or gone does no harm */
	if (d->s.keep && write_file(file, code, n) &&
		!store_put(&d->s, file, file_of(d, k->key)))
		(void)unlink(file);
}

static void take(batch *b, const char *dir, job *k)
{
	cuda_device *d = b->d;
	const rtc_library *l = &d->rtc;
	size_t n = 0;
	char *code;
	rtc_result r;

	r = b->is_ptx ? l->ptx_size(k->program, &n)
		      : l->cubin_size(k->program, &n);
	code = arena_alloc(b->a, n + 1, 1);
	if (r == 0)
		r = b->is_ptx ? l->ptx(k->program, code)
			      : l->cubin(k->program, code);
	k->result = r == 0 && n == 0 ? -1 : r;
	if (k->result != 0)
		return;
	d->stats.n_compiled++;
	keep_code(d, dir, k, code, n);
	load_code(d, k->key, code);
}

static void compile_batch(batch *b)
{
	cuda_device *d = b->d;
	double start = now_ms();
	const char *dir = d->s.keep ? store_workdir(&d->s) : "";

	for (int32_t i = 0; i < b->job.n; i++) {
		b->job.at[i].of = b;
		arena_defer(b->a, end_program, &b->job.at[i]);
	}
	compile_jobs(b);
	for (int32_t i = 0; i < b->job.n; i++)
		if (b->job.at[i].result == 0)
			take(b, dir, &b->job.at[i]);
	if (d->s.keep)
		remove_tree(dir);
	for (int32_t i = 0; i < b->job.n; i++)
		if (b->job.at[i].result != 0)
			reject(b, &b->job.at[i]);
	d->stats.compile_ms += now_ms() - start;
	store_trim(&d->s);
}

/* What this process claims now; the rest is for later. */
static void make_unclaimed(arena *a, void *arg)
{
	batch *b = arg;
	int32_t n = 0;

	b->a = a;
	for (int32_t i = 0; i < b->job.n; i++) {
		job k = b->job.at[i];

		if (!store_claim(&b->d->s, a, k.key, false))
			*vec_push(b->d->s.tmp, &b->later) = k;
		else if (!load_stored(b->d, k.key))
			b->job.at[n++] = k;
	}
	b->job.n = n;
	if (n > 0)
		compile_batch(b);
}

static void make_later(arena *a, void *arg)
{
	batch *b = arg;

	b->a = a;
	store_claim(&b->d->s, a, b->job.at[0].key, true);
	if (!load_stored(b->d, b->job.at[0].key))
		compile_batch(b);
}

static void make_all(batch *b)
{
	env *e = arena_env(b->d->a);

	arena_run(e, make_unclaimed, b);
	for (int32_t i = 0; i < b->later.n; i++) {
		batch one = {.d = b->d, .arch = b->arch, .is_ptx = b->is_ptx};

		*vec_push(b->d->s.tmp, &one.job) = b->later.at[i];
		arena_run(e, make_later, &one);
	}
}

/* ---- interface --------------------------------------------------------- */

void cuda_load(
	run_device *base, const char *const *text, int32_t n, void **unit)
{
	cuda_device *d = (cuda_device *)base;
	batch b = {.d = d};
	const char **key;
	map *asked;

	arena_clear(d->s.tmp);
	b.arch = cuda_arch(d, true, &b.is_ptx);
	asked = map_new(d->s.tmp);
	key = arena_array(d->s.tmp, const char *, n + 1);
	for (int32_t i = 0; i < n; i++) {
		const struct cuda_unit *u;

		key[i] = key_of(&b, text[i]);
		u = known(d, key[i]);
		if (u != NULL && u->module != NULL) {
			d->stats.n_memory_hits++;
		} else if (map_get_str(asked, key[i], 0) == 0 &&
			   !load_stored(d, key[i])) {
			map_set_str(asked, key[i], 1);
			*vec_push(d->s.tmp, &b.job) =
				(job){.key = key[i], .text = text[i]};
		}
	}
	if (b.job.n > 0)
		make_all(&b);
	for (int32_t i = 0; i < n; i++)
		unit[i] = known(d, key[i]);
}

void *cuda_find(run_device *base, void *unit, const char *name)
{
	cuda_device *d = (cuda_device *)base;
	const struct cuda_unit *u = unit;
	cu_function f = NULL;

	cuda_enter(d);
	cuda_check(d, d->l.function(&f, u->module, name),
		"the compiled code has no function", name);
	cuda_leave(d);
	return f;
}

void cuda_modules_open(cuda_device *d, const char *cache_dir)
{
	store_open(&d->s, d->a, cache_dir);
	d->units = map_new(d->a);
	d->stats.dir = d->s.dir;
}

void cuda_modules_end(cuda_device *d)
{
	for (int32_t i = 0; i < d->unit.n; i++)
		if (d->unit.at[i]->module != NULL)
			d->l.module_free(d->unit.at[i]->module);
	d->unit.n = 0;
}
