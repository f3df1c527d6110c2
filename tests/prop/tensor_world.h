/*
 * tensor_world.h: the model of tensor_prop.c: storages as arrays, and handles as
 * lists of positions in them.
 */
#ifndef TENSOR_WORLD_H
#define TENSOR_WORLD_H

#include "tenon.h"

#include <string.h>

enum { ELEMS = 32, ITEMS = 40, STEPS = 22, FROZEN = 192, BAD = 4,
	ROW_STARTS = 6, ROW_SIZES = 3 };

typedef struct item { /* a handle: a storage seen through positions */
	int32_t storage, rank, n;
	int64_t shape[4];
	int32_t at[ELEMS];
	bool repeats, dropped;
	tn_tensor *x;
} item;

typedef struct world {
	uint64_t state;
	tn_context *c; /* NULL: the model alone */
	item it[ITEMS];
	int32_t n, n_storages, n_params;
	double data[ITEMS][ELEMS];
	int32_t size[ITEMS];
	tn_dtype type[ITEMS]; /* of a storage */
	uint32_t types; /* drawn: a bit for each */
	int32_t next_type;
	/* values of writes without gradient, as the first run had them */
	double frozen[FROZEN];
	int32_t n_frozen;
	bool replays;
	int32_t moved_storage, moved_elem;
	double by;
	bool good;
	int64_t n_views, n_writes, n_through; /* of these, through a view */
	int64_t n_no_grad, n_pieces; /* of the views: by split, unbind */
	tn_tensor *bad[BAD]; /* values that cannot be computed */
	int32_t n_bad;
	int64_t n_failed, n_stale, n_rows, n_bad_rows;
	bool defined[ROW_STARTS][ROW_SIZES];
	/* losses of backwards in the middle; what they were when a parameter's
	 * gradient was forgotten */
	double collected, forgotten[3];
	bool ends; /* each of these backwards ends the history */
	int64_t n_collected, n_forgotten, n_moving, n_set, n_detached;
	tn_tensor *start; /* of views whose offset is data: i64 */
	int64_t starts_at;
} world;

static inline int64_t below(world *w, int64_t n)
{
	uint64_t z = w->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (int64_t)((z ^ z >> 31) % (uint64_t)n);
}

static inline int32_t numel(const item *v)
{
	int64_t n = 1;

	for (int32_t i = 0; i < v->rank; i++)
		n *= v->shape[i];
	return (int32_t)n;
}

static inline item *fresh(world *w)
{
	item *v = &w->it[w->n++];

	memset(v, 0, sizeof *v);
	return v;
}

static inline double elem(const world *w, const item *v, int32_t k)
{
	return w->data[v->storage][v->at[k]];
}

static inline bool is_f64(const world *w, const item *x)
{
	return w->type[x->storage] == TN_F64;
}

/* A storage of f64 of the shape of `like`. */
static inline item *own(world *w, const item *like)
{
	item *v = fresh(w);

	v->rank = like->rank;
	memcpy(v->shape, like->shape, sizeof v->shape);
	v->n = like->n;
	v->storage = w->n_storages++;
	w->size[v->storage] = v->n;
	w->type[v->storage] = TN_F64;
	for (int32_t k = 0; k < v->n; k++)
		v->at[k] = k;
	return v;
}

/* A value that does not follow parameters: that of the first run. */
static inline void freeze(world *w, double *to)
{
	if (w->replays)
		*to = w->frozen[w->n_frozen];
	else
		w->frozen[w->n_frozen] = *to;
	w->n_frozen++;
}

/* Adds a view of x, or several; or none where x has no such view. */
void make_view(world *w, const item *x);
/* Something between the calls: a backward, a step of the parameters, ... */
void make_event(world *w, item *x);
/* Says what has failed, if something has: the context is clear again. */
bool said(world *w, const char *what, const char *allowed);

#endif
