/*
 * load.c: finds the driver, the run-time compiler and NCCL, and what is in them.
 */
#define _GNU_SOURCE /* dladdr */
#include "run/cuda/local.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

/* Drivers before LEAST_COND never ended a loop with an empty body. */
enum {
	LEAST_DRIVER = 12000,
	LEAST_COND = 12080,
	LEAST_NVRTC = 12000,
	LEAST_NCCL = 21800
};

struct symbol {
	const char *name;
	size_t offset;
};

/* Looks up all symbols; the name of the first that is missing, or NULL. */
static const char *bind(
	void *handle, void *to, const struct symbol *symbol, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *p = dlsym(handle, symbol[i].name);

		if (p == NULL)
			return symbol[i].name;
		memcpy((char *)to + symbol[i].offset, &p, sizeof p);
	}
	return NULL;
}

static const char *reason(void)
{
	const char *text = dlerror();

	return text != NULL ? text : "the loader does not say why";
}

/* The value of a variable of the environment; NULL if it is empty. */
static const char *setting(const char *name)
{
	const char *v = getenv(name);

	return v != NULL && v[0] != '\0' ? v : NULL;
}

/* 12040 as "12.4" */
static const char *dotted(arena *a, int version)
{
	return arena_printf(
		a, "%d.%d", version / 1000, version % 1000 / 10);
}

const char *cuda_error(const cu_library *l, arena *a, cu_result r)
{
	const char *name = NULL, *text = NULL;

	if (l->error_name(r, &name) != CU_OK || name == NULL)
		return arena_printf(a, "CUDA error %d", r);
	if (l->error_text(r, &text) != CU_OK || text == NULL)
		return name;
	return arena_printf(a, "%s: %s", name, text);
}

/* ---- the driver -------------------------------------------------------- */

static void open_driver(cu_library *l, arena *a)
{
	const char *named = setting("TENON_CUDA_DRIVER");

	l->path = arena_strdup(a, named != NULL ? named : "libcuda.so.1");
	l->handle = dlopen(l->path, RTLD_NOW | RTLD_LOCAL);
	if (l->handle == NULL)
		env_fail(arena_env(a), TN_EINVAL, "cuda.driver", (loc){0},
			"the driver of NVIDIA GPUs is not found: %s cannot be "
			"loaded (%.300s); install NVIDIA's driver, of CUDA "
			"12.0 or later, or name its libcuda.so.1 in "
			"TENON_CUDA_DRIVER",
			l->path, reason());
}

void cuda_load_driver(cu_library *l, arena *a)
{
	static const struct symbol symbols[] = {
#define CU(name, symbol, params) {symbol, offsetof(cu_library, name)},
#include "run/cuda/driver.def"
#undef CU
	};
	static const struct symbol more[] = {
#define CU(name, symbol, params) {symbol, offsetof(cu_library, name)},
#include "run/cuda/driver_more.def"
#undef CU
	};
	const char *missing;
	cu_result r;

	open_driver(l, a);
	missing = bind(
		l->handle, l, symbols, sizeof symbols / sizeof *symbols);
	if (missing != NULL)
		env_fail(arena_env(a), TN_EINVAL, "cuda.driver", (loc){0},
			"%s has no function %s: it is not a driver of NVIDIA "
			"GPUs of CUDA 12.0 or later",
			l->path, missing);
	l->lacks = bind(l->handle, l, more, sizeof more / sizeof *more);
	r = l->version(&l->version_number);
	if (r != CU_OK)
		env_fail(arena_env(a), TN_EINVAL, "cuda.driver", (loc){0},
			"%s does not tell its version: %s", l->path,
			cuda_error(l, a, r));
	if (l->version_number < LEAST_DRIVER)
		env_fail(arena_env(a), TN_EINVAL, "cuda.version", (loc){0},
			"the driver %s is of CUDA %s: accepted is 12.0 or "
			"later",
			l->path, dotted(a, l->version_number));
	r = l->init(0);
	if (r != CU_OK && r != CU_NO_DEVICE)
		env_fail(arena_env(a), TN_EINVAL, "cuda.driver", (loc){0},
			"the driver %s cannot be used: %s", l->path,
			cuda_error(l, a, r));
}

/* ---- libraries of the toolkit ------------------------------------------ */

struct search {
	arena *a;
	void **handle;
	const char **path;
	void *library; /* that `take` fills in */
	int driver_version;
	str looked; /* for the message: what was tried, and why it was not taken */
	/* why the library that was loaded cannot be taken; NULL: it is */
	const char *(*take)(struct search *q);
};

static bool try_file(struct search *q, const char *path)
{
	const char *why;

	*q->path = arena_strdup(q->a, path);
	*q->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	why = *q->handle == NULL ? "not there" : q->take(q);
	if (why == NULL)
		return true;
	str_printf(&q->looked, "%s%s (%.160s)", q->looked.n > 0 ? ", " : "",
		path, why);
	if (*q->handle != NULL)
		dlclose(*q->handle);
	*q->handle = NULL;
	return false;
}

/* A named file, or these names, where the loader looks and in the toolkit. */
static bool search(struct search *q, const char *variable,
	const char *const *name, int32_t n)
{
	static const char *const folders[] = {
		"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
	const char *named = setting(variable);

	if (named != NULL)
		return try_file(q, named);
	for (int32_t i = 0; i < 3; i++)
		for (int32_t k = 0; k < n; k++)
			if (try_file(q, arena_printf(q->a, "%s%s", folders[i],
						name[k])))
				return true;
	return false;
}

/* ---- the compiler ------------------------------------------------------ */

/* Machine code of a later major version than the driver's cannot be loaded. */
static const char *take_nvrtc(struct search *q)
{
	static const struct symbol symbols[] = {
#define RTC(name, symbol, params) {symbol, offsetof(rtc_library, name)},
#include "run/cuda/nvrtc.def"
#undef RTC
	};
	rtc_library *l = q->library;
	int major = 0, minor = 0;
	const char *missing = bind(
		l->handle, l, symbols, sizeof symbols / sizeof *symbols);

	if (missing != NULL)
		return arena_printf(q->a, "has no %s", missing);
	if (l->version(&major, &minor) != 0)
		return "does not tell its version";
	l->version_number = 1000 * major + 10 * minor;
	if (l->version_number < LEAST_NVRTC)
		return arena_printf(q->a, "version %s is too old",
			dotted(q->a, l->version_number));
	if (major > q->driver_version / 1000)
		return arena_printf(q->a,
			"version %s makes code that the driver, of CUDA %s, "
			"cannot load",
			dotted(q->a, l->version_number),
			dotted(q->a, q->driver_version));
	return NULL;
}

void cuda_load_nvrtc(rtc_library *l, arena *a, int driver_version)
{
	static const char *const names[] = {
		"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
	struct search q = {.a = a,
		.handle = &l->handle,
		.path = &l->path,
		.library = l,
		.driver_version = driver_version,
		.looked = str_new(a),
		.take = take_nvrtc};

	if (!search(&q, "TENON_NVRTC", names, 3))
		env_fail(arena_env(a), TN_ECOMPILE, "cuda.nvrtc", (loc){0},
			"NVIDIA's run-time compiler is not found; looked for: "
			"%.700s; install NVRTC 12.0 or later, not of a later "
			"major version than the driver (CUDA %s), or name its "
			"libnvrtc.so in TENON_NVRTC",
			q.looked.at, dotted(a, driver_version));
}

/* ---- conditions that the device reads ---------------------------------- */

/* The folder of the compiler's file, with a slash at its end; or "". */
static const char *folder_of(const rtc_library *rtc, arena *a)
{
	Dl_info found;
	const char *end;
	void *p;

	memcpy(&p, &rtc->version, sizeof p);
	if (p == NULL || dladdr(p, &found) == 0 || found.dli_fname == NULL)
		return "";
	end = strrchr(found.dli_fname, '/');
	return end == NULL ? ""
			   : arena_printf(a, "%.*s",
				     (int)(end + 1 - found.dli_fname),
				     found.dli_fname);
}

const char *cuda_find_devrt(const cu_library *l, const rtc_library *rtc, arena *a,
	const char **why)
{
	const char *named = setting("TENON_CUDADEVRT");
	const char *const folder[] = {folder_of(rtc, a),
		"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};

	*why = NULL;
	if (l->version_number < LEAST_COND)
		*why = arena_printf(a,
			"the driver is of CUDA %s, and accepted is 12.8 or "
			"later", dotted(a, l->version_number));
	else if (l->lacks != NULL)
		*why = arena_printf(
			a, "%s has no function %s", l->path, l->lacks);
	for (int32_t i = 0; *why == NULL && named == NULL && i < 3; i++) {
		const char *path =
			arena_printf(a, "%slibcudadevrt.a", folder[i]);

		if (folder[i][0] != '\0' && access(path, R_OK) == 0)
			return path;
	}
	if (*why == NULL && named != NULL && access(named, R_OK) == 0)
		return arena_strdup(a, named);
	if (*why == NULL)
		*why = arena_printf(a,
			"%s is not there: install it beside NVRTC or in "
			"/usr/local/cuda, or name it in TENON_CUDADEVRT",
			named != NULL ? named : "libcudadevrt.a");
	return "";
}

/* ---- between processes ------------------------------------------------- */

const char *cuda_nccl_version(arena *a, int version)
{
	return arena_printf(a, "%d.%d.%d", version / 10000,
		version / 100 % 100, version % 100);
}

static const char *take_nccl(struct search *q)
{
	static const struct symbol symbols[] = {
#define NCCL(result, name, symbol, params)                                     \
	{symbol, offsetof(nccl_library, name)},
#include "run/cuda/nccl.def"
#undef NCCL
	};
	nccl_library *l = q->library;
	const char *missing = bind(
		l->handle, l, symbols, sizeof symbols / sizeof *symbols);

	if (missing != NULL)
		return arena_printf(q->a, "has no %s", missing);
	if (l->version(&l->version_number) != NCCL_OK)
		return "does not tell its version";
	return l->version_number >= LEAST_NCCL
		? NULL
		: arena_printf(q->a, "version %s is too old",
			  cuda_nccl_version(q->a, l->version_number));
}

void cuda_load_nccl(nccl_library *l, arena *a)
{
	static const char *const names[] = {"libnccl.so.2", "libnccl.so"};
	struct search q = {.a = a,
		.handle = &l->handle,
		.path = &l->path,
		.library = l,
		.looked = str_new(a),
		.take = take_nccl};

	if (!search(&q, "TENON_NCCL", names, 2))
		env_fail(arena_env(a), TN_EINVAL, "cuda.nccl", (loc){0},
			"NCCL is not found; looked for: %.700s; install NCCL "
			"2.18 or later, or name its libnccl.so.2 in TENON_NCCL",
			q.looked.at);
}
