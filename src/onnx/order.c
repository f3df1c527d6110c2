/*
 * order.c: sorts the nodes of a graph, so that each is after the nodes whose
 * results it reads.
 *
 *     Neg b > y; Abs x > b        ->    Abs x > b; Neg b > y
 *
 * ONNX requires this order, but tools that insert nodes often append them at
 * the end. If the nodes are sorted already, nothing changes. A node also reads
 * what its bodies and branches read from outside. A cycle is refused:
 * [onnx.cycle]. There is no recursion over nodes; graphs inside graphs are at
 * most ONNX_MAX_DEPTH deep.
 */
#include "onnx/model.h"

enum { SHOWN = 6 };

typedef enum state { WAITS, ENTERED, DONE } state;

typedef struct sorter {
	arena *a; /* memory of this sort */
	const char *file;
	const onnx_node *at;
	int32_t n;
	map *maker; /* name -> node of the graph */
	uint8_t *state;
	/* stack of nodes to visit; the entered ones among them form a path */
	VEC(int32_t) path;
	VEC(int32_t) order;
	VEC(int32_t) reads; /* nodes whose results the current node reads */
} sorter;

/* Names that graphs inside a node define; they hide names outside. */
typedef struct inner {
	map *name;
	const struct inner *up;
} inner;

static void reads_name(sorter *s, const inner *in, const char *name)
{
	int64_t maker;

	for (; in != NULL; in = in->up)
		if (map_get_str(in->name, name, 0) != 0)
			return;
	maker = map_get_str(s->maker, name, -1);
	if (maker >= 0)
		*vec_push(s->a, &s->reads) = (int32_t)maker;
}

static void reads_graph(sorter *s, const inner *up, const onnx_graph *g);

static void reads_node(sorter *s, const inner *in, const onnx_node *n)
{
	for (int32_t i = 0; i < n->in.n; i++)
		reads_name(s, in, n->in.at[i]);
	for (int32_t i = 0; i < n->attr.n; i++)
		if (n->attr.at[i].g != NULL)
			reads_graph(s, in, n->attr.at[i].g);
}

static void reads_graph(sorter *s, const inner *up, const onnx_graph *g)
{
	inner in = {map_new(s->a), up};

	for (int32_t i = 0; i < g->in.n; i++)
		map_set_str(in.name, g->in.at[i].name, 1);
	for (int32_t i = 0; i < g->init.n; i++)
		map_set_str(in.name, g->init.at[i].name, 1);
	for (int32_t i = 0; i < g->node.n; i++)
		for (int32_t k = 0; k < g->node.at[i].out.n; k++)
			map_set_str(in.name, g->node.at[i].out.at[k], 1);
	for (int32_t i = 0; i < g->node.n; i++)
		reads_node(s, &in, &g->node.at[i]);
	for (int32_t i = 0; i < g->out.n; i++)
		reads_name(s, &in, g->out.at[i].name);
}

/*
 * Adds the node as text, such as Neg "n3", with '?' for unprintable characters.
 */
static void add_node(str *to, const onnx_node *n)
{
	const char *name = n->name[0] != '\0' ? n->name
		: n->out.n > 0		      ? n->out.at[0]
					      : "";
	size_t from = to->n;

	str_printf(to, "%.40s \"%.60s\"", n->op, name);
	for (size_t i = from; i < to->n; i++)
		if ((unsigned char)to->at[i] < 0x20 || to->at[i] == 0x7f)
			to->at[i] = '?';
}

/*
 * Fails and lists the cycle: from the node on the path that is read again to
 * its reader.
 */
static _Noreturn void refuse(sorter *s, int32_t again)
{
	str text = str_new(s->a);
	int32_t n = 0, i = 0;

	while (s->path.at[i] != again || s->state[again] != ENTERED)
		i++;
	for (; i < s->path.n; i++) {
		if (s->state[s->path.at[i]] != ENTERED)
			continue;
		if (n < SHOWN) {
			str_add(&text, n > 0 ? ", read by " : "");
			add_node(&text, &s->at[s->path.at[i]]);
		}
		n++;
	}
	if (n > SHOWN)
		str_printf(&text, " and %d more", (int)(n - SHOWN));
	env_fail(arena_env(s->a), TN_EINVAL, "onnx.cycle",
		(loc){.file = s->file},
		"nodes depend on each other in a cycle, so none can be the "
		"first: %s%s",
		text.at, n == 1 ? ", which reads what it makes" : "");
}

/*
 * Visits depth-first: first the nodes whose results a node reads, then the
 * node.
 */
static void put_in_order(sorter *s, int32_t first)
{
	*vec_push(s->a, &s->path) = first;
	while (s->path.n > 0) {
		int32_t i = s->path.at[s->path.n - 1];

		if (s->state[i] != WAITS) {
			if (s->state[i] == ENTERED)
				*vec_push(s->a, &s->order) = i;
			s->state[i] = DONE;
			s->path.n--;
			continue;
		}
		s->state[i] = ENTERED;
		s->reads.n = 0;
		reads_node(s, NULL, &s->at[i]);
		for (int32_t k = s->reads.n - 1; k >= 0; k--) {
			int32_t m = s->reads.at[k];

			if (s->state[m] == ENTERED)
				refuse(s, m);
			if (s->state[m] == WAITS)
				*vec_push(s->a, &s->path) = m;
		}
	}
}

struct order {
	const char *file;
	const map *given;
	int32_t n;
	onnx_node *at;
};

static void run(arena *a, void *arg)
{
	const struct order *o = arg;
	sorter s = {.a = a, .file = o->file, .at = o->at, .n = o->n};
	const onnx_node *old;

	s.maker = map_new(a);
	s.state = arena_array(a, uint8_t, o->n + 1);
	for (int32_t i = 0; i < o->n; i++)
		for (int32_t k = 0; k < o->at[i].out.n; k++) {
			const char *name = o->at[i].out.at[k];

			/* a name that is defined twice is refused later */
			if (name[0] != '\0' &&
				map_get_str(o->given, name, 0) == 0 &&
				map_get_str(s.maker, name, -1) < 0)
				map_set_str(s.maker, name, i);
		}
	for (int32_t i = 0; i < o->n; i++)
		put_in_order(&s, i);
	old = arena_copy(a, o->at, (size_t)o->n * sizeof *o->at);
	for (int32_t i = 0; i < o->n; i++)
		o->at[i] = old[s.order.at[i]];
}

void onnx_order(arena *a, const char *file, const map *given, int32_t n,
	onnx_node *at)
{
	struct order o = {file, given, n, at};

	if (n > 0)
		arena_run(arena_env(a), run, &o);
}
