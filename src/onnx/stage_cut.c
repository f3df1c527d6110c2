/*
 * stage_cut.c: chooses the values that a stage computes besides the value that
 * determines a shape.
 *
 *     h = backbone(x); n = count(h > 0); ... later nodes read h
 *     cheap n: only n;  else: n and h, so that no later stage computes h again
 *
 * The candidates are the named values of the current scope that later nodes
 * read. A later stage computes other values again, so the choice affects only
 * speed.
 */
#include "onnx/stage.h"

/* ---- cost ---- */

typedef struct walk {
	onnx_import *x;
	bool *seen; /* (calls) */
	VEC(int32_t) todo;
	int64_t left; /* points */
} walk;

static bool is_there(onnx_import *x, int32_t v)
{
	const fact *f = onnx_fact(x, v);

	return f->is_free || f->is_carried || f->is_folded ||
	       x->p->value.at[v].call < 0;
}

static void visit(walk *w, arena *a, int32_t v)
{
	int32_t c = w->x->p->value.at[v].call;

	if (is_there(w->x, v) || w->seen[c])
		return;
	w->seen[c] = true;
	*vec_push(a, &w->todo) = c;
}

static int64_t points_of(const ir_inst *inst)
{
	const int64_t most = INT64_MAX / 4;
	int64_t sum = ir_inst_points(inst, most);

	for (int32_t i = 0; i < inst->n_tensors; i++)
		sum += shape_numel(inst->tensor[i].type.shape,
			inst->tensor[i].type.rank);
	return sum < most ? sum : most;
}

struct cheap {
	walk w;
	int32_t v;
	bool is;
};

static void count(arena *a, void *arg)
{
	struct cheap *k = arg;
	walk *w = &k->w;

	w->seen = arena_array(a, bool, w->x->p->call.n + 1);
	visit(w, a, k->v);
	while (w->todo.n > 0 && w->left >= 0) {
		const ir_call *c = &w->x->p->call.at[vec_pop(&w->todo)];

		w->left -= points_of(c->inst);
		for (int32_t i = 0; i < c->n_args; i++)
			visit(w, a, c->arg[i]);
	}
	k->is = w->left >= 0;
}

bool onnx_is_cheap(onnx_import *x, int32_t v, int64_t points)
{
	struct cheap k = {.w = {.x = x, .left = points}, .v = v};

	arena_run(x->e, count, &k);
	return k.is;
}

/* ---- what is read later ---- */

static void add_names(map *used, const onnx_graph *g, int32_t from);

static void add_node(map *used, const onnx_node *n)
{
	for (int32_t i = 0; i < n->in.n; i++)
		map_set_str(used, n->in.at[i], 1);
	for (int32_t i = 0; i < n->attr.n; i++)
		if (n->attr.at[i].g != NULL)
			add_names(used, n->attr.at[i].g, 0);
}

/* Graphs within graphs are at most ONNX_MAX_DEPTH deep. */
static void add_names(map *used, const onnx_graph *g, int32_t from)
{
	for (int32_t i = from; i < g->node.n; i++)
		add_node(used, &g->node.at[i]);
	for (int32_t i = 0; i < g->out.n; i++)
		map_set_str(used, g->out.at[i].name, 1);
}

struct cut {
	onnx_import *x;
	map *taken;
	values out;
};

static void take(struct cut *k, int32_t v)
{
	if (map_get(k->taken, &v, sizeof v, -1) >= 0)
		return;
	map_set(k->taken, &v, sizeof v, 1);
	*vec_push(k->x->a, &k->out.v) = v;
}

static void take_val(struct cut *k, const val *v)
{
	if (v->kind == VAL_TENSOR && !onnx_fact(k->x, v->v)->is_const &&
		!is_there(k->x, v->v))
		take(k, v->v);
	for (int32_t i = 0; v->kind == VAL_SEQUENCE && i < v->n; i++)
		if (v->at[i].kind == VAL_TENSOR)
			take_val(k, &v->at[i]);
}

values onnx_cut(onnx_import *x, int32_t v)
{
	struct cut k = {.x = x, .taken = map_new(x->a)};
	const ir_call *c = &x->p->call.at[x->p->value.at[v].call];
	map *used = map_new(x->a);

	take(&k, v);
	for (int32_t i = 0; i < c->n_results; i++)
		take(&k, c->result[i]);
	add_names(used, &x->m->graph, x->top_node);
	for (int32_t i = 0; i < map_n(x->top->name); i++) {
		size_t n;
		const void *name = map_key(x->top->name, i, &n);

		if (map_get(used, name, n, -1) >= 0)
			take_val(&k, &x->top->value.at[map_value(
						 x->top->name, i)]);
	}
	return k.out;
}
