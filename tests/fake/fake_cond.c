/*
 * fake_cond.c: graphs with conditions, and linking, of the driver without a GPU.
 *
 * It is strict: the nodes of a graph are one after another, a handle is of the graph
 * that its node is in, and a body is not empty.
 */
#include "fake_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- handles ----------------------------------------------------------- */

typedef struct handle {
	const graph *of;
	void *context;
	unsigned value, first;
	bool is_assigned, is_used;
} handle;
static handle *handles;
static uint64_t n_handles; /* handle i has the number i + 1 */

static handle *known(uint64_t number)
{
	if (number == 0 || number > n_handles)
		fake_stop("no handle has this number");
	return &handles[number - 1];
}

void fake_set_condition(unsigned long long number, unsigned value)
{
	known(number)->value = value;
}

#ifndef FAKE_LACKS_CONDITIONS
EXPORT result cuGraphConditionalHandleCreate(uint64_t *number, graph *g,
	void *context, unsigned first, unsigned flags)
{
	result r = fake_enter();

	if (r != OK || flags > 1)
		return fake_leave(r != OK ? r : INVALID);
	handles = realloc(handles, (n_handles + 1) * sizeof *handles);
	if (handles == NULL)
		fake_stop("realloc");
	/* without a first value it is what it happens to be */
	handles[n_handles++] = (handle){
		g, context, 7, first, flags == 1, false};
	*number = n_handles;
	return fake_leave(OK);
}
#endif

result fake_assign(stream *s, const graph *g)
{
	result r = OK;

	for (const op *o = g->first; r == OK && o != NULL; o = o->next) {
		if (o->body == NULL)
			continue;
		if (known(o->handle)->is_assigned)
			r = fake_queue(s,
				&(op){.kind = ASSIGN,
					.handle = o->handle,
					.byte = (int)known(o->handle)->first});
		if (r == OK)
			r = fake_assign(s, o->body);
	}
	return r;
}

/* Does a body launch more than the kernel that sets the condition of a loop? */
static bool has_kernels(const op *o)
{
	int launches = 0;

	for (const op *b = o->body->first; b != NULL; b = b->next)
		launches += b->kind == LAUNCH || b->body != NULL;
	return launches > (o->kind == WHILE);
}

void fake_run_condition(const op *o)
{
	/* a driver whose loops have one round */
	bool once = getenv("FAKE_CUDA_ONE_ROUND") != NULL;

	while (known(o->handle)->value != 0 && !fake_state.is_broken) {
		fake_state.n_rounds += has_kernels(o);
		for (op *b = o->body->first; b != NULL; b = b->next)
			fake_run_op(b);
		if (o->kind == IF || once)
			break;
	}
}

void fake_check_bodies(const graph *g)
{
	for (const op *o = g->first; o != NULL; o = o->next) {
		if (o->body == NULL)
			continue;
		if (o->body->first == NULL)
			fake_stop("the body of a condition is empty");
		fake_check_bodies(o->body);
	}
}

/* ---- nodes ------------------------------------------------------------- */

/* What the driver calls CUgraphNodeParams. */
struct end {
	size_t x, y, z, lod;
	int type;
	void *host;
	address at;
	void *array, *unused;
	size_t step, height;
};
struct params {
	int type, unused[3];
	union {
		struct {
			const function *fn;
			unsigned grid[3], block[3], shared;
			void **params, **extra, *kernel, *context;
		} launch;
		struct {
			int flags, unused;
			void *context;
			struct end from, to;
			size_t n, rows, planes;
		} copy;
		struct {
			address at;
			size_t step;
			unsigned value, size;
			size_t n, rows;
			void *context;
		} fill;
		struct {
			uint64_t handle;
			int type;
			unsigned n;
			graph **body;
			void *context;
		} cond;
		long long words[29];
	} u;
	long long unused_too;
};
_Static_assert(sizeof(struct params) == 256, "the size of all nodes");

static result copy_node(op *o, const struct params *p)
{
	if (p->u.copy.context == NULL || p->u.copy.rows != 1 ||
		p->u.copy.planes != 1 || p->u.copy.from.type != 2 ||
		p->u.copy.to.type != 2)
		return INVALID;
	*o = (op){.kind = COPY,
		.to = (char *)(uintptr_t)p->u.copy.to.at,
		.from = (const char *)(uintptr_t)p->u.copy.from.at,
		.n = p->u.copy.n};
	if (!fake_has(o->to, o->n) || !fake_has(o->from, o->n))
		fake_stop("a node copies what is not memory of the device");
	return OK;
}

static result fill_node(op *o, const struct params *p)
{
	if (p->u.fill.context == NULL || p->u.fill.size != 1 ||
		p->u.fill.rows != 1)
		return INVALID;
	*o = (op){.kind = FILL,
		.to = (char *)(uintptr_t)p->u.fill.at,
		.byte = (int)p->u.fill.value,
		.n = p->u.fill.n};
	if (!fake_has(o->to, o->n))
		fake_stop("a node fills what is not memory of the device");
	return OK;
}

static result cond_node(op *o, const struct params *p, const graph *g)
{
	handle *h = known(p->u.cond.handle);

	if (p->u.cond.n != 1 || p->u.cond.type < 0 || p->u.cond.type > 1 ||
		p->u.cond.context != h->context)
		return INVALID;
	if (h->of != g || h->is_used)
		fake_stop("the handle of a condition is of another node");
	h->is_used = true;
	*o = (op){.kind = p->u.cond.type == 0 ? IF : WHILE,
		.body = fake_new_graph(),
		.handle = p->u.cond.handle};
	return OK;
}

static result make_node(op *o, struct params *p, const graph *g)
{
	switch (p->type) {
	case 0:
		if (p->u.launch.extra != NULL || p->u.launch.fn == NULL)
			return INVALID;
		return fake_launch(o, p->u.launch.fn, p->u.launch.grid,
			p->u.launch.block, p->u.launch.shared,
			p->u.launch.params);
	case 1:
		return copy_node(o, p);
	case 2:
		return fill_node(o, p);
	case 13:
		return cond_node(o, p, g);
	}
	return INVALID;
}

EXPORT result cuGraphCreate(graph **g, unsigned flags)
{
	result r = fake_enter();

	if (r != OK || flags != 0)
		return fake_leave(r != OK ? r : INVALID);
	*g = fake_new_graph();
	fake_state.n_graphs++;
	return fake_leave(OK);
}

EXPORT result cuGraphAddNode(
	op **node, graph *g, op *const *after, size_t n, struct params *p)
{
	result r = fake_enter();
	op o = {0};

	if (r == OK)
		r = make_node(&o, p, g);
	if (r != OK)
		return fake_leave(r);
	if (n != (g->tail != NULL) || (n == 1 && after[0] != g->tail))
		fake_stop("a node does not follow the one before it");
	*node = malloc(sizeof o);
	**node = o;
	fake_append(g, *node);
	g->tail = *node;
	if (o.body != NULL)
		p->u.cond.body = &g->tail->body;
	fake_state.n_nodes++;
	return fake_leave(OK);
}

/* ---- linking ----------------------------------------------------------- */

typedef struct linking {
	char *code; /* "FAKEPART", size, a shared object */
	size_t n;
	bool has_library;
	char *log;
	size_t room;
} linking;

static result complain(linking *l, const char *what, result r)
{
	if (l->log != NULL)
		snprintf(l->log, l->room, "%s", what);
	return fake_leave(r);
}

EXPORT result cuLinkCreate_v2(
	unsigned n, const int *option, void **value, linking **l)
{
	result r = fake_enter();

	*l = calloc(1, sizeof **l);
	for (unsigned i = 0; i < n; i++)
		if (option[i] == 5)
			(*l)->log = value[i];
		else if (option[i] == 6)
			(*l)->room = (size_t)(uintptr_t)value[i];
	fake_state.n_links++;
	return fake_leave(r);
}

EXPORT result cuLinkAddData_v2(linking *l, int type, void *data, size_t n,
	const char *name, unsigned n_options, int *option, void **value)
{
	result r = fake_enter();

	(void)name, (void)option, (void)value;
	if (r != OK || type > 1 || n < 16 || n_options != 0 ||
		memcmp(data, FAKE_PART, 8) != 0)
		return r != OK ? fake_leave(r)
			       : complain(l, "not relocatable", BAD_IMAGE);
	l->code = malloc(n);
	memcpy(l->code, data, n);
	l->n = n;
	return fake_leave(OK);
}

EXPORT result cuLinkAddFile_v2(linking *l, int type, const char *path,
	unsigned n_options, int *option, void **value)
{
	result r = fake_enter();
	FILE *f = r == OK ? fopen(path, "rb") : NULL;
	char head[2] = {0};

	(void)option, (void)value;
	if (f == NULL)
		return fake_leave(r != OK ? r : BAD_FILE);
	if (fread(head, 1, 2, f) == 2)
		l->has_library = type == 4 && n_options == 0 &&
				 memcmp(head, "!<", 2) == 0;
	fclose(f);
	return l->has_library ? fake_leave(OK)
			      : complain(l, "not a library", BAD_IMAGE);
}

EXPORT result cuLinkComplete(linking *l, void **code, size_t *n)
{
	result r = fake_enter();

	if (r != OK || l->code == NULL || !l->has_library)
		return r != OK ? fake_leave(r)
			       : complain(l, "undefined reference", BAD_IMAGE);
	memcpy(l->code, FAKE_MAGIC, 8);
	*code = l->code;
	*n = l->n;
	return fake_leave(OK);
}

EXPORT result cuLinkDestroy(linking *l)
{
	result r = fake_enter();

	free(l->code);
	free(l);
	fake_state.n_links--;
	return fake_leave(r);
}
