/*
 * refuse.c: what of a model cannot run: all of it, before anything is built.
 *
 *     node "c1": operator Foo of domain "my.ops", opset 2: there is none
 *     node "s": operator Sinh of domain "", opset 8: there is one from opset 9 on
 *     tensor "w": elements of type complex64
 *
 * What stands in a branch that is not taken, or makes a value that nobody needs,
 * is listed, too.
 */
#include "onnx/import.h"

typedef struct search {
	arena *a;
	const onnx_model *m;
	onnx_refusals found;
} search;

static int64_t version_of(const onnx_opsets *o, const char *domain)
{
	for (int32_t i = 0; i < o->n; i++)
		if (!strcmp(o->at[i].domain, domain))
			return o->at[i].version;
	return 0;
}

bool onnx_is_function(const onnx_model *m, const onnx_node *n)
{
	for (int32_t i = 0; i < m->function.n; i++)
		if (!strcmp(m->function.at[i].name, n->op) &&
			!strcmp(m->function.at[i].domain, n->domain))
			return true;
	return false;
}

static void look_at_elem(search *s, const char *name, int32_t elem)
{
	tn_dtype held;

	if (!onnx_elem_dtype(elem, &held))
		*vec_push(s->a, &s->found) = (onnx_refusal){
			.name = name, .elem = onnx_elem_name(elem)};
}

static void look_at_graph(
	search *s, const onnx_opsets *o, const onnx_graph *g);

static void look_at_node(search *s, const onnx_opsets *o, const onnx_node *n)
{
	int64_t opset = version_of(o, n->domain);
	const char *name = n->name;

	if (name[0] == '\0' && n->out.n > 0)
		name = n->out.at[0];
	if (!onnx_is_function(s->m, n) &&
		onnx_op_find(n->domain, n->op, opset) == NULL)
		*vec_push(s->a, &s->found) = (onnx_refusal){name, n->op,
			n->domain, opset, onnx_op_since(n->domain, n->op),
			NULL};
	for (int32_t i = 0; i < n->attr.n; i++) {
		if (n->attr.at[i].g != NULL)
			look_at_graph(s, o, n->attr.at[i].g);
		if (n->attr.at[i].t != NULL)
			look_at_elem(s, name, n->attr.at[i].t->elem);
	}
}

/* As deep as graphs are nested, which the reader limits. */
static void look_at_graph(
	search *s, const onnx_opsets *o, const onnx_graph *g)
{
	for (int32_t i = 0; i < g->init.n; i++)
		look_at_elem(s, g->init.at[i].name, g->init.at[i].elem);
	for (int32_t i = 0; i < g->node.n; i++)
		look_at_node(s, o, &g->node.at[i]);
}

onnx_refusals onnx_refused(arena *a, const onnx_model *m)
{
	search s = {.a = a, .m = m};
	onnx_opsets opsets = {m->opset.n, m->opset.at};

	for (int32_t i = 0; i < m->input.n; i++)
		if (m->input.at[i].type.kind == ONNX_TENSOR)
			look_at_elem(&s, m->input.at[i].name,
				m->input.at[i].type.elem);
	look_at_graph(&s, &opsets, &m->graph);
	for (int32_t i = 0; i < m->function.n; i++) {
		const onnx_function *f = &m->function.at[i];
		onnx_opsets own = {f->opset.n, f->opset.at};

		for (int32_t k = 0; k < f->node.n; k++)
			look_at_node(&s, &own, &f->node.at[k]);
	}
	return s.found;
}

void onnx_refusal_print(str *out, const onnx_refusal *r)
{
	str_add(out, r->elem != NULL ? "tensor " : "node ");
	str_json(out, r->name);
	if (r->elem != NULL) {
		str_printf(out, ": elements of type %s", r->elem);
		return;
	}
	str_add(out, ": operator ");
	str_json(out, r->op);
	str_add(out, " of domain ");
	str_json(out, r->domain);
	str_printf(out, ", opset %lld: ", (long long)r->opset);
	if (r->since < 0)
		str_add(out, "there is none of this name");
	else
		str_printf(out, "there is one from opset %d on", (int)r->since);
}

void onnx_refusal_json(str *out, const onnx_refusal *r)
{
	str_add(out, "{\"name\":");
	str_json(out, r->name);
	if (r->elem != NULL) {
		str_printf(out, ",\"code\":\"onnx.elem\",\"elem\":\"%s\"}",
			r->elem);
		return;
	}
	str_add(out, ",\"code\":\"onnx.operator\",\"operator\":");
	str_json(out, r->op);
	str_add(out, ",\"domain\":");
	str_json(out, r->domain);
	str_printf(out, ",\"opset\":%lld,\"since\":", (long long)r->opset);
	if (r->since < 0)
		str_add(out, "null}");
	else
		str_printf(out, "%d}", (int)r->since);
}
