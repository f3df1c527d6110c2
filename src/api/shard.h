/* shard.h: contexts that are processes of a mesh; private to api/. */
#ifndef API_SHARD_H
#define API_SHARD_H

#include "api/api.h"
#include "layout/layout.h"

struct tn_mesh {
	tn_context *c;
	shard_mesh m;
};

/* The placement of a tensor. */
typedef struct api_placement {
	const tn_mesh *mesh;
	shard_layout l;
	uint32_t parts; /* axes of the mesh along which it holds partial results */
	int32_t monoid;
	int64_t elems; /* of this process */
} api_placement;

typedef struct api_shard {
	shard_link *link; /* NULL: this process is alone */
	VEC(tn_mesh *) mesh;
	VEC(api_placement) placement; /* 0: whole */
	struct api_joiner *joiners;
	arena *slab_of;
	void *slab;
	size_t slab_bytes;
	bool debug;
	int64_t patience; /* milliseconds; 0: that of the environment */
	int64_t n_moves, bytes_sent;
	/* between devices (shard_carry.c) */
	bool asked, has_devices; /* all processes: their memory may be moved */
	const char *lacks; /* why not, or NULL */
	struct api_carrier *carrier; /* NULL: not used yet */
	int64_t bytes_carried, bytes_by_host;
} api_shard;

api_shard *api_shard_of(tn_context *c);
int64_t api_shard_rank(const tn_context *c);
/* The number of a placement; equal ones have the same. */
int32_t api_placement_number(tn_context *c, const api_placement *p);

/* A program with placements, for this process. */
typedef struct api_parted api_parted;
/* In arena a; m has only its program. NULL: nothing is distributed, and every process
 * runs the whole program. */
api_parted *api_shard_compile(
	tn_context *c, arena *a, compilation *m, tensor_placing *w);
void api_shard_run(tn_context *c, api_parted *q, const void *const *in,
	void *const *out);
size_t api_shard_bytes(void *arg, int32_t place, const ir_type *type);
void api_shard_move(void *arg, const ir_type *type, int32_t from,
	const void *data, int32_t to, void *out);
/* The same between devices; false: there is no way. */
bool api_shard_carry(void *arg, const ir_type *type, int32_t from,
	const void *data, int32_t to, void *out);

/* ---- shard_carry.c: from device to device ---- */

/* All processes call it, before they move elements, wherever these lie; NULL: they go
 * through the memory of the hosts. */
const shard_device *api_shard_device(tn_context *c);
/* "NCCL 2.28.9", or why there is none; "": not known yet */
const char *api_peers(const tn_context *c);
void api_carrier_close(tn_context *c); /* before its link */
/* The transfer of a value. */
shard_transfer *api_value_transfer(tn_context *c, arena *a, const ir_type *type,
	int32_t from, int32_t to);

/* Sets the neutral element on all but the first process along the axes of parts; is
 * this one of those? */
bool api_empty_parts(
	tn_context *c, const api_placement *p, tn_dtype t, void *out);

/* The processes of a mesh, and its context. */
const shard_mesh *api_mesh(const tn_mesh *m, tn_context **c);
shard_link *api_link(const tn_context *c); /* NULL: alone */
/*
 * Calls fn(arg) on process 0, while the others wait; without a mesh, on this one. If
 * it throws, all processes throw the same.
 */
void api_shard_first(
	tn_context *c, void (*fn)(void *arg), void *arg, const char *what);
/* Closes the link of a context that ends. */
void api_shard_close(tn_context *c);

#endif
