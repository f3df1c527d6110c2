/*
 * dnnl.c: convolutions of oneDNN 2, if it is installed. It chooses the layouts,
 * and data stays in them, as inside a network.
 *
 * The library is loaded when it is needed. Its structures are only passed
 * between its functions, so this file only needs to know that they fit their
 * buffers (dnnl_types.h of 2.6: 696 and 5976 bytes).
 */
#include "bench/bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum {
	ANY = 1,	/* dnnl_format_tag_any */
	F32 = 3,	/* dnnl_f32 */
	CPU = 1,	/* dnnl_cpu */
	INFERENCE = 96, /* dnnl_forward_inference */
	DIRECT = 1,	/* dnnl_convolution_direct: of any kind */
	IN_ORDER = 1,	/* dnnl_stream_in_order */
	ROOM = 2048	/* size of a buffer for a structure, in doubles */
};

/* queries of memory descriptors of a primitive, and the matching arguments */
static const int queries[3] = {129, 131, 133}, args[3] = {1, 33, 17};

typedef struct room {
	double at[ROOM];
} room;

typedef struct dnnl_arg {
	int arg;
	void *memory;
} dnnl_arg;

struct bench_conv {
	void *lib, *engine, *stream, *desc, *primitive;
	dnnl_arg arg[3];
	float *data[3];
	int (*execute)(void *p, void *stream, int n, const dnnl_arg *arg);
	int (*wait)(void *stream);
	int (*drop_primitive)(void *p);
	int (*drop_desc)(void *p);
	int (*drop_memory)(void *p);
	int (*drop_stream)(void *p);
	int (*drop_engine)(void *p);
};

#define FIND(to, lib, name)                                                    \
	((*(void **)&(to) = dlsym((lib), (name))) != NULL)

static bool find(bench_conv *c)
{
	return FIND(c->execute, c->lib, "dnnl_primitive_execute") &&
	       FIND(c->wait, c->lib, "dnnl_stream_wait") &&
	       FIND(c->drop_primitive, c->lib, "dnnl_primitive_destroy") &&
	       FIND(c->drop_desc, c->lib, "dnnl_primitive_desc_destroy") &&
	       FIND(c->drop_memory, c->lib, "dnnl_memory_destroy") &&
	       FIND(c->drop_stream, c->lib, "dnnl_stream_destroy") &&
	       FIND(c->drop_engine, c->lib, "dnnl_engine_destroy");
}

static bool start(bench_conv *c)
{
	int (*engine)(void **e, int kind, size_t index);
	int (*stream)(void **s, void *e, unsigned flags);

	return FIND(engine, c->lib, "dnnl_engine_create") &&
	       FIND(stream, c->lib, "dnnl_stream_create") &&
	       engine(&c->engine, CPU, 0) == 0 &&
	       stream(&c->stream, c->engine, IN_ORDER) == 0;
}

static bool describe(bench_conv *c, const bench_conv_shape *s)
{
	int (*tag)(room *md, int rank, const int64_t *dims, int dtype, int t);
	int (*conv)(room *d, int prop, int alg, const room *src, const room *w,
		const room *bias, const room *dst, const int64_t *stride,
		const int64_t *lo, const int64_t *hi);
	int (*create)(void **d, const room *op, void *attr, void *engine,
		void *hint);
	int64_t n = 1, in[4] = {n, s->c, s->size, s->size};
	int64_t out = (s->size + 2 * s->lo - s->k) / s->stride + 1;
	int64_t to[4] = {n, s->f, out, out};
	int64_t w[4] = {s->f, s->c, s->k, s->k};
	int64_t wg[5] = {s->groups, s->f / s->groups, s->c / s->groups, s->k,
		s->k};
	int64_t stride[2] = {s->stride, s->stride}, lo[2] = {s->lo, s->lo};
	room *r = calloc(4, sizeof *r);
	bool good = r != NULL &&
		    FIND(tag, c->lib, "dnnl_memory_desc_init_by_tag") &&
		    FIND(conv, c->lib, "dnnl_convolution_forward_desc_init") &&
		    FIND(create, c->lib, "dnnl_primitive_desc_create") &&
		    tag(&r[0], 4, in, F32, ANY) == 0 &&
		    tag(&r[1], s->groups > 1 ? 5 : 4, s->groups > 1 ? wg : w,
			    F32, ANY) == 0 &&
		    tag(&r[2], 4, to, F32, ANY) == 0 &&
		    conv(&r[3], INFERENCE, DIRECT, &r[0], &r[1], NULL, &r[2],
			    stride, lo, lo) == 0 &&
		    create(&c->desc, &r[3], NULL, c->engine, NULL) == 0;

	free(r);
	return good;
}

static bool make(bench_conv *c)
{
	const void *(*ask)(const void *d, int what, int index);
	size_t (*size)(const void *md);
	int (*memory)(void **m, const void *md, void *engine, void *data);
	int (*create)(void **p, const void *d);

	if (!FIND(ask, c->lib, "dnnl_primitive_desc_query_md") ||
		!FIND(size, c->lib, "dnnl_memory_desc_get_size") ||
		!FIND(memory, c->lib, "dnnl_memory_create") ||
		!FIND(create, c->lib, "dnnl_primitive_create") ||
		create(&c->primitive, c->desc) != 0)
		return false;
	for (int i = 0; i < 3; i++) {
		const void *md = ask(c->desc, queries[i], 0);
		size_t n = md == NULL ? 0 : (size(md) + 63) / 64 * 64;

		c->data[i] = n == 0 ? NULL : aligned_alloc(64, n);
		if (c->data[i] == NULL)
			return false;
		tn_fill_random(TN_F32, c->data[i],
			(int64_t)(n / sizeof(float)), (uint64_t)i + 1, 0, 0);
		c->arg[i].arg = args[i];
		if (memory(&c->arg[i].memory, md, c->engine, c->data[i]) != 0)
			return false;
	}
	return true;
}

void bench_conv_free(bench_conv *c)
{
	if (c == NULL)
		return;
	for (int i = 0; i < 3; i++) {
		if (c->arg[i].memory != NULL)
			c->drop_memory(c->arg[i].memory);
		free(c->data[i]);
	}
	if (c->primitive != NULL)
		c->drop_primitive(c->primitive);
	if (c->desc != NULL)
		c->drop_desc(c->desc);
	if (c->stream != NULL)
		c->drop_stream(c->stream);
	if (c->engine != NULL)
		c->drop_engine(c->engine);
	free(c);
}

bench_conv *bench_conv_new(const bench_conv_shape *s)
{
	bench_conv *c = calloc(1, sizeof *c);

	if (c == NULL)
		return NULL;
	c->lib = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (c->lib == NULL || !find(c)) {
		free(c);
		return NULL;
	}
	if (!start(c) || !describe(c, s) || !make(c)) {
		bench_conv_free(c);
		return NULL;
	}
	return c;
}

void bench_conv_run(bench_conv *c)
{
	if (c->execute(c->primitive, c->stream, 3, c->arg) == 0)
		(void)c->wait(c->stream);
}
