/*
 * load.c: finds the driver and the run-time compiler, and what is in them.
 */
#include "run/cuda/local.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

enum { LEAST_DRIVER = 12000, LEAST_NVRTC = 12000 };

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

/* ---- the compiler ------------------------------------------------------ */

struct search {
	arena *a;
	rtc_library *l;
	int driver_version;
	str looked; /* for the message: what was tried, and why it was not taken */
};

static bool refuse(struct search *q, const char *why)
{
	str_printf(&q->looked, "%s%s (%.160s)", q->looked.n > 0 ? ", " : "",
		q->l->path, why);
	if (q->l->handle != NULL)
		dlclose(q->l->handle);
	q->l->handle = NULL;
	return false;
}

/* Machine code of a later major version than the driver's cannot be loaded. */
static bool try_nvrtc(struct search *q, const char *path)
{
	static const struct symbol symbols[] = {
#define RTC(name, symbol, params) {symbol, offsetof(rtc_library, name)},
#include "run/cuda/nvrtc.def"
#undef RTC
	};
	rtc_library *l = q->l;
	int major = 0, minor = 0;
	const char *missing;

	l->path = arena_strdup(q->a, path);
	l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (l->handle == NULL)
		return refuse(q, "not there");
	missing = bind(
		l->handle, l, symbols, sizeof symbols / sizeof *symbols);
	if (missing != NULL)
		return refuse(q, arena_printf(q->a, "has no %s", missing));
	if (l->version(&major, &minor) != 0)
		return refuse(q, "does not tell its version");
	l->version_number = 1000 * major + 10 * minor;
	if (l->version_number < LEAST_NVRTC)
		return refuse(q, arena_printf(q->a, "version %s is too old",
					 dotted(q->a, l->version_number)));
	if (major > q->driver_version / 1000)
		return refuse(q,
			arena_printf(q->a,
				"version %s makes code that the driver, of "
				"CUDA %s, cannot load",
				dotted(q->a, l->version_number),
				dotted(q->a, q->driver_version)));
	return true;
}

static bool search_nvrtc(struct search *q)
{
	static const char *const names[] = {
		"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
	static const char *const folders[] = {
		"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
	const char *named = setting("TENON_NVRTC");

	if (named != NULL)
		return try_nvrtc(q, named);
	for (int32_t i = 0; i < 3; i++)
		for (int32_t k = 0; k < 3; k++)
			if (try_nvrtc(q, arena_printf(q->a, "%s%s", folders[i],
						 names[k])))
				return true;
	return false;
}

void cuda_load_nvrtc(rtc_library *l, arena *a, int driver_version)
{
	struct search q = {a, l, driver_version, str_new(a)};

	if (!search_nvrtc(&q))
		env_fail(arena_env(a), TN_ECOMPILE, "cuda.nvrtc", (loc){0},
			"NVIDIA's run-time compiler is not found; looked for: "
			"%.700s; install NVRTC 12.0 or later, not of a later "
			"major version than the driver (CUDA %s), or name its "
			"libnvrtc.so in TENON_NVRTC",
			q.looked.at, dotted(a, driver_version));
}
