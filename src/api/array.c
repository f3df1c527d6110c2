/*
 * array.c: arrays in memory and in NumPy files.
 */
#include "api/api.h"

#include "base/random.h"
#include "file/file.h"

#include <math.h>

/* A tn_array is the first member, so that tn_array_free needs no context. */
struct held {
	tn_array array;
	arena *a;
};

struct read_call {
	tn_context *c;
	const char *path;
	tn_array **out;
	arena *a;
};

static void fill_in(tn_array *out, const file_array *f)
{
	out->dtype = f->dtype;
	out->rank = f->rank;
	memcpy(out->shape, f->shape, sizeof f->shape);
	out->n_elems = shape_numel(f->shape, f->rank);
	out->n_bytes = (size_t)out->n_elems * dtype_size(f->dtype);
	out->data = f->data;
}

static void read_npy(void *arg)
{
	struct read_call *r = arg;
	struct held *h;
	file_array f;

	api_want(r->c, r->path, "path");
	r->a = arena_child(r->c->a);
	h = arena_make(r->a, struct held);
	file_npy_read(r->a, r->path, &f);
	h->a = r->a;
	fill_in(&h->array, &f);
	*r->out = &h->array;
}

tn_status tn_npy_read(tn_array **out, tn_context *c, const char *path)
{
	struct read_call r = {c, path, out, NULL};
	tn_status s;

	*out = NULL;
	s = api_call(c, read_npy, &r);
	if (s < 0)
		arena_free(r.a);
	return s;
}

tn_array *api_array_new(tn_context *c, const file_array *f)
{
	arena *a = arena_child(c->a);
	struct held *h = arena_make(a, struct held);
	size_t n = (size_t)shape_numel(f->shape, f->rank) *
		dtype_size(f->dtype);
	char *data = arena_alloc(a, n + 64, 1);

	h->a = a;
	fill_in(&h->array, f);
	h->array.data = data + (64 - (uintptr_t)data % 64) % 64;
	memcpy(h->array.data, f->data, n);
	return &h->array;
}

void tn_array_free(tn_array *a)
{
	if (a != NULL)
		arena_free(((struct held *)(void *)a)->a);
}

/* ---- archives ---- */

struct tn_npz {
	arena *a;
	file_named named;
	tn_array *array;
};

struct npz_call {
	tn_context *c;
	const char *path;
	arena *a;
	tn_npz *out;
};

static void read_npz(void *arg)
{
	struct npz_call *r = arg;
	tn_npz *z;

	api_want(r->c, r->path, "path");
	r->a = arena_child(r->c->a);
	z = arena_make(r->a, tn_npz);
	z->a = r->a;
	file_npz_read(r->a, r->path, &z->named);
	z->array = arena_array(r->a, tn_array, z->named.n + 1);
	for (int32_t i = 0; i < z->named.n; i++)
		fill_in(&z->array[i], &z->named.array[i]);
	r->out = z;
}

tn_status tn_npz_read(tn_npz **out, tn_context *c, const char *path)
{
	struct npz_call r = {.c = c, .path = path};
	tn_status s = api_call(c, read_npz, &r);

	*out = s < 0 ? NULL : r.out;
	if (s < 0)
		arena_free(r.a);
	return s;
}

void tn_npz_free(tn_npz *z)
{
	if (z != NULL)
		arena_free(z->a);
}

int32_t tn_npz_n(const tn_npz *z)
{
	if (z == NULL)
		return 0;
	return z->named.n;
}

const char *tn_npz_name(const tn_npz *z, int32_t i)
{
	if (z == NULL)
		return NULL;
	return i >= 0 && i < z->named.n ? z->named.name[i] : NULL;
}

const tn_array *tn_npz_array(const tn_npz *z, int32_t i)
{
	if (z == NULL)
		return NULL;
	return i >= 0 && i < z->named.n ? &z->array[i] : NULL;
}

/* ---- writing ---- */

struct write_call {
	tn_context *c;
	const char *path;
	file_array array;
	const int64_t *shape;
	const void *data;
	arena *a;
};

static void write_npy(void *arg)
{
	struct write_call *w = arg;

	api_want(w->c, w->path, "path");
	if (tn_dtype_name(w->array.dtype) == NULL || w->array.rank < 0 ||
		w->array.rank > TN_MAX_RANK ||
		(w->array.rank > 0 && w->shape == NULL))
		env_fail(w->c->e, TN_EINVAL, "npy.array", (loc){0},
			"this is not an array: it needs a dtype and 0 to %d "
			"extents",
			TN_MAX_RANK);
	for (int32_t i = 0; i < w->array.rank; i++)
		w->array.shape[i] = w->shape[i];
	w->a = arena_child(w->c->a);
	w->array.data = (void *)(uintptr_t)w->data; /* only read */
	file_npy_write(w->a, w->path, &w->array);
}

tn_status tn_npy_write(tn_context *c, const char *path, tn_dtype dtype,
	int32_t rank, const int64_t *shape, const void *data)
{
	struct write_call w = {.c = c, .path = path, .shape = shape,
		.data = data};
	tn_status s;

	w.array.dtype = dtype;
	w.array.rank = rank;
	s = api_call(c, write_npy, &w);
	arena_free(w.a);
	return s;
}

/* ---- elements ---- */

/* What has no dtype has no elements. */
static bool is_array(tn_dtype t, const void *data)
{
	return (unsigned)t < TN_N_DTYPES && data != NULL;
}

double tn_get_f64(tn_dtype t, const void *data, int64_t i)
{
	if (!is_array(t, data))
		return (double)NAN;
	return dtype_load_f64(t, data, i);
}

int64_t tn_get_i64(tn_dtype t, const void *data, int64_t i)
{
	if (!is_array(t, data))
		return 0;
	return dtype_load_i64(t, data, i);
}

void tn_set_f64(tn_dtype t, void *data, int64_t i, double v)
{
	if (is_array(t, data))
		dtype_store_f64(t, data, i, v);
}

void tn_set_i64(tn_dtype t, void *data, int64_t i, int64_t v)
{
	if (is_array(t, data))
		dtype_store_i64(t, data, i, v);
}

static void fill_random(tn_dtype t, void *data, int64_t n_elems,
	uint64_t seed, int64_t lo, int64_t hi)
{
	uint64_t span = hi > lo ? (uint64_t)hi - (uint64_t)lo : 1;

	if (t == TN_F64) { /* the same as below, but faster */
		double *v = data;

		for (int64_t i = 0; i < n_elems; i++)
			v[i] = 2.0 * (double)base_u01((int64_t)seed, i) - 1.0;
		return;
	}
	for (int64_t i = 0; i < n_elems; i++) {
		float u = base_u01((int64_t)seed, i);
		uint64_t bits = base_mix64(
			base_mix64(seed + 1) + (uint64_t)i * 2 + 1);

		if (dtype_is_float(t))
			dtype_store_f64(t, data, i, 2.0 * (double)u - 1.0);
		else if (t == TN_BOOL)
			dtype_store_i64(t, data, i, u < 0.5f);
		else
			dtype_store_i64(t, data, i,
				(int64_t)((uint64_t)lo + bits % span));
	}
}

void tn_fill_random(tn_dtype t, void *data, int64_t n_elems, uint64_t seed,
	int64_t lo, int64_t hi)
{
	fp_env host = fp_enter();

	if (is_array(t, data))
		fill_random(t, data, n_elems, seed, lo, hi);
	fp_leave(&host);
}
