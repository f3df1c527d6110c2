/* api_shard.h: contexts that are processes of a mesh; private to api files. */
#ifndef API_SHARD_H
#define API_SHARD_H

#include "api.h"
#include "shard/shard.h"

typedef struct api_shard api_shard;

/* A program with placings, as this process runs it, in arena a. */
typedef struct api_parted api_parted;
/* NULL: all of it is whole, and every process runs the whole program */
api_parted *api_shard_compile(
	tn_context *c, arena *a, ir_program *p, tensor_placing *w);
void api_shard_run(tn_context *c, api_parted *q, const void *const *in,
	void *const *out);
size_t api_shard_bytes(void *arg, int32_t place, const ir_type *type);
void api_shard_move(void *arg, const ir_type *type, int32_t from,
	const void *data, int32_t to, void *out);
/* Ends the link of a context that ends. */
void api_shard_close(tn_context *c);

#endif
