/*
 * info.c: describes a model without building it.
 *
 *     producer pytorch, IR version 7, opset 13
 *     input   x: tensor(float)[N,3,224,224]
 *     operator "Conv": 53
 *     operator "Foo": 1, not supported
 *     cannot run: node "f": operator "Foo" of domain "", opset 13: there is none
 *
 * Nodes of bodies and functions are counted once.
 */
#include "onnx/import.h"

#define MAX_PARAMS (INT64_C(1) << 56) /* more elements than any model has */

typedef struct count {
	const char *op, *domain;
	int64_t n;
	bool is_known;
} count;

typedef struct tally {
	onnx_model *m;
	map *number;
	VEC(count) count;
	int64_t n_nodes, n_params, param_bytes;
} tally;

int64_t onnx_opset_of(const onnx_model *m, const char *domain)
{
	for (int32_t i = 0; i < m->opset.n; i++)
		if (!strcmp(m->opset.at[i].domain, domain))
			return m->opset.at[i].version;
	return 0;
}

static void add_graph(tally *t, const onnx_graph *g);

static void add_node(tally *t, const onnx_node *n)
{
	arena *a = t->m->a;
	const char *key = arena_printf(a, "%s:%s", n->domain, n->op);
	int64_t i = map_get_str(t->number, key, -1);

	t->n_nodes++;
	if (i < 0) {
		i = t->count.n;
		*vec_push(a, &t->count) = (count){n->op, n->domain, 0,
			onnx_is_function(t->m, n) ||
				onnx_op_find(n->domain, n->op,
					onnx_opset_of(t->m, n->domain)) != NULL};
		map_set_str(t->number, key, i);
	}
	t->count.at[i].n++;
	for (int32_t k = 0; k < n->attr.n; k++)
		if (n->attr.at[k].g != NULL)
			add_graph(t, n->attr.at[k].g);
}

static void add_graph(tally *t, const onnx_graph *g)
{
	for (int32_t i = 0; i < g->init.n; i++) {
		const onnx_tensor *x = &g->init.at[i];
		int64_t n = shape_numel(x->shape, x->rank);
		tn_dtype held;

		/*
		 * declared sizes are not trusted: sums are checked for overflow
		 */
		if (!add_ok(t->n_params, n, &t->n_params) ||
			t->n_params > MAX_PARAMS)
			t->n_params = MAX_PARAMS;
		if (onnx_elem_dtype(x->elem, &held) &&
			t->param_bytes < MAX_PARAMS)
			t->param_bytes += n * (int64_t)dtype_size(held);
	}
	for (int32_t i = 0; i < g->node.n; i++)
		add_node(t, &g->node.at[i]);
}

static void print_ports(
	str *out, const char *what, const onnx_port *p, int32_t n, bool json)
{
	if (json)
		str_printf(out, ",\"%ss\":[", what);
	for (int32_t i = 0; i < n; i++) {
		str type = str_new(out->a);

		onnx_type_print(&type, &p[i].type);
		if (!json) {
			str_printf(out, "%-8s", what);
			str_json(out, p[i].name);
			str_printf(out, ": %s\n", type.at);
			continue;
		}
		str_add(out, i > 0 ? ",{\"name\":" : "{\"name\":");
		str_json(out, p[i].name);
		str_add(out, ",\"type\":");
		str_json(out, type.at);
		str_add(out, "}");
	}
	if (json)
		str_addc(out, ']');
}

static void print_counts(str *out, const tally *t, bool json)
{
	for (int32_t i = 0; i < t->count.n; i++) {
		const count *c = &t->count.at[i];

		if (json) {
			str_add(out, i > 0 ? ",{\"name\":" : "{\"name\":");
			str_json(out, c->op);
			str_add(out, ",\"domain\":");
			str_json(out, c->domain);
			str_printf(out, ",\"nodes\":%lld,\"supported\":%s}",
				(long long)c->n, c->is_known ? "true" : "false");
			continue;
		}
		str_add(out, "operator ");
		str_json(out, c->op);
		if (c->domain[0] != '\0') {
			str_add(out, " of ");
			str_json(out, c->domain);
		}
		str_printf(out, ": %lld%s\n", (long long)c->n,
			c->is_known ? "" : ", not supported");
	}
}

/* What cannot run, each in a line. */
static void print_refused(
	str *out, const onnx_model *m, onnx_import *x, bool json)
{
	onnx_refusals all = onnx_refused(x->a, m);

	onnx_import_try(x);
	for (int32_t i = 0, n = all.n; i < x->unasked.n; i++)
		if (n == 0 || x->unasked.at[i].kind != REFUSED_BUILD)
			*vec_push(x->a, &all) = x->unasked.at[i];
	for (int32_t i = 0; i < all.n; i++) {
		if (json) {
			str_add(out, i > 0 ? "," : "");
			onnx_refusal_json(out, &all.at[i]);
			continue;
		}
		str_add(out, "cannot run: ");
		onnx_refusal_print(out, &all.at[i]);
		str_addc(out, '\n');
	}
}

void onnx_info(str *out, onnx_model *m, onnx_import *x, bool json)
{
	tally t = {.m = m, .number = map_new(m->a)};
	long long opset = onnx_opset_of(m, "");

	add_graph(&t, &m->graph);
	for (int32_t i = 0; i < m->function.n; i++)
		for (int32_t k = 0; k < m->function.at[i].node.n; k++)
			add_node(&t, &m->function.at[i].node.at[k]);
	str_add(out, json ? "{\"producer\":" : "producer ");
	str_json(out, m->producer);
	str_printf(out, json ? ",\"ir_version\":%lld,\"opset\":%lld"
			     : ", IR version %lld, opset %lld\n",
		(long long)m->ir_version, opset);
	print_ports(out, "input", m->input.at, m->input.n, json);
	print_ports(out, "output", m->graph.out.at, m->graph.out.n, json);
	str_printf(out, json ? ",\"nodes\":%lld,\"parameters\":%lld,"
			       "\"parameter_bytes\":%lld,\"operators\":["
			     : "%lld nodes, %lld parameters in %lld bytes\n",
		(long long)t.n_nodes, (long long)t.n_params,
		(long long)t.param_bytes);
	print_counts(out, &t, json);
	str_add(out, json ? "],\"refused\":[" : "");
	print_refused(out, m, x, json);
	str_add(out, json ? "]}\n" : "");
}
