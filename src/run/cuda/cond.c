/*
 * cond.c: makes a graph of notes in which something happens as long as a condition
 * holds: loops and branches that the device decides without the host.
 *
 *     launch f                  f -> set -> WHILE [ g -> set ] -> h
 *     repeat, test at t
 *       launch g                set: a kernel that reads t, and sets the value that
 *     repeated                  the node has its name (handle) for
 *     launch h
 *
 * A repeat of at most one time is an IF, whose body does not set it again. The nodes
 * of a graph are one after another, as they were called.
 */
#include "run/cuda/local.h"

int32_t cuda_note_words(const uint64_t *w)
{
	switch (w[0]) {
	case CUDA_LAUNCH:
		return CUDA_LAUNCH_WORDS + (int32_t)w[5] + CU_MAP_WORDS * (int32_t)w[6];
	case CUDA_REPEAT:
		return CUDA_REPEAT_WORDS;
	case CUDA_REPEATED:
		return 1;
	}
	return CUDA_COPY_WORDS;
}

void cuda_launch_args(cuda_device *d, const uint64_t *w)
{
	int32_t n = (int32_t)w[5], maps = (int32_t)w[6];

	for (int32_t i = 0; i < n + maps; i++) {
		int32_t more = i > n ? (CU_MAP_WORDS - 1) * (i - n) : 0;

		d->args.at[i] = (void *)(uintptr_t)&w[CUDA_LAUNCH_WORDS + i + more];
	}
}

typedef struct level {
	cu_graph g; /* of the whole, or of a body */
	cu_node last;
	const uint64_t *repeat; /* the note whose body it is */
	uint64_t handle;
} level;

typedef struct builder {
	cuda_device *d;
	level at[RUN_REPEAT_DEPTH + 1];
	int32_t depth;
} builder;

static cu_result add(builder *b, cu_node_params *p)
{
	level *l = &b->at[b->depth];
	cu_node node = NULL;
	cu_result r = b->d->l.node_add(
		&node, l->g, &l->last, l->last != NULL, p);

	if (r == CU_OK)
		l->last = node;
	return r;
}

static cu_result add_launch(builder *b, const uint64_t *w)
{
	cuda_device *d = b->d;
	cu_node_params p = {.type = CU_NODE_LAUNCH};

	cuda_launch_args(d, w);
	p.u.launch = (cu_node_launch){.fn = (cu_function)(uintptr_t)w[1],
		.blocks = {(unsigned)w[2], 1, 1},
		.threads = {(unsigned)w[3], 1, 1},
		.shared_bytes = (unsigned)w[4],
		.param = d->args.at};
	return add(b, &p);
}

static cu_result add_copy(builder *b, const uint64_t *w)
{
	cu_node_params p = {.type = CU_NODE_COPY};

	p.u.copy.context = b->d->context;
	p.u.copy.to.type = p.u.copy.from.type = CU_OF_DEVICE;
	p.u.copy.to.at = w[1];
	p.u.copy.from.at = w[2];
	p.u.copy.n = w[3];
	p.u.copy.rows = p.u.copy.planes = 1;
	return add(b, &p);
}

static cu_result add_fill(builder *b, const uint64_t *w)
{
	cu_node_params p = {.type = CU_NODE_FILL};

	p.u.fill = (cu_node_fill){.at = w[1],
		.value = (unsigned char)w[2],
		.size = 1,
		.n = w[3],
		.rows = 1,
		.context = b->d->context};
	return add(b, &p);
}

/* The kernel that reads the condition of a repeat. */
static cu_result add_set(builder *b, const uint64_t *repeat, uint64_t handle)
{
	uint64_t value[5] = {
		handle, repeat[1], repeat[2], repeat[3], repeat[4]};
	void *param[5];
	cu_node_params p = {.type = CU_NODE_LAUNCH};

	for (int32_t i = 0; i < 5; i++)
		param[i] = &value[i];
	p.u.launch = (cu_node_launch){.fn = b->d->again->set,
		.blocks = {1, 1, 1},
		.threads = {32, 1, 1},
		.param = param};
	return add(b, &p);
}

static bool is_loop(const uint64_t *repeat)
{
	return repeat[4] != 1;
}

static cu_result begin_body(builder *b, const uint64_t *w)
{
	cuda_device *d = b->d;
	cu_node_params p = {.type = CU_NODE_COND};
	uint64_t handle = 0;
	cu_result r;

	if (b->depth == RUN_REPEAT_DEPTH)
		return CU_INVALID;
	r = d->l.handle_new(
		&handle, b->at[b->depth].g, d->context, 0, CU_AT_LAUNCH);
	if (r == CU_OK)
		r = add_set(b, w, handle);
	p.u.cond = (cu_node_cond){.handle = handle,
		.type = is_loop(w) ? CU_WHILE : CU_IF,
		.n = 1,
		.context = d->context};
	if (r == CU_OK)
		r = add(b, &p);
	if (r == CU_OK)
		b->at[++b->depth] = (level){p.u.cond.body[0], NULL, w, handle};
	return r;
}

static cu_result end_body(builder *b)
{
	const level *l = &b->at[b->depth];
	cu_result r = is_loop(l->repeat) ? add_set(b, l->repeat, l->handle)
					 : CU_OK;

	b->depth--;
	return r;
}

static cu_result add_note(builder *b, const uint64_t *w)
{
	switch (w[0]) {
	case CUDA_LAUNCH:
		return add_launch(b, w);
	case CUDA_COPY:
		return add_copy(b, w);
	case CUDA_FILL:
		return add_fill(b, w);
	case CUDA_REPEAT:
		return begin_body(b, w);
	}
	return end_body(b);
}

cu_result cuda_build(cuda_device *d, const uint64_t *word, int32_t n, cu_graph *g)
{
	builder b = {.d = d};
	cu_result r = d->l.graph_new(&b.at[0].g, 0);

	*g = NULL;
	if (r != CU_OK)
		return r;
	for (int32_t i = 0; r == CU_OK && i < n; i += cuda_note_words(&word[i]))
		r = add_note(&b, &word[i]);
	if (r != CU_OK)
		d->l.graph_free(b.at[0].g);
	else
		*g = b.at[0].g;
	return r;
}
