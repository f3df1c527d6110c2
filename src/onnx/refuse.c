/*
 * refuse.c: what of a model cannot run: all of it, before anything is built.
 *
 *     node "c1": operator Foo of domain "my.ops", opset 2: there is none
 *     node "s": operator Sinh of domain "", opset 8: there is one from opset 9 on
 *     tensor "w": elements of type complex64
 *     node "r": attribute "alpha" of operator "Relu" of domain "", opset 14: it is
 *     not supported
 *
 * Attributes and inputs are found by the import, since only builders know them.
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
		*vec_push(s->a, &s->found) = (onnx_refusal){REFUSED_ELEM,
			.name = name, .what = onnx_elem_name(elem)};
}

const char *onnx_node_name(const onnx_node *n)
{
	return n->name[0] == '\0' && n->out.n > 0 ? n->out.at[0] : n->name;
}

static void look_at_graph(
	search *s, const onnx_opsets *o, const onnx_graph *g);

static void look_at_node(search *s, const onnx_opsets *o, const onnx_node *n)
{
	int64_t opset = version_of(o, n->domain);
	const char *name = onnx_node_name(n);

	if (!onnx_is_function(s->m, n) &&
		onnx_op_find(n->domain, n->op, opset) == NULL)
		*vec_push(s->a, &s->found) = (onnx_refusal){REFUSED_OPERATOR,
			.name = name, .node = n, .domain = n->domain,
			.opset = opset,
			.since = onnx_op_since(n->domain, n->op)};
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

static void print_operator(str *out, const onnx_refusal *r)
{
	str_add(out, r->kind == REFUSED_OPERATOR ? "operator " : "of operator ");
	str_json(out, r->node->op);
	str_add(out, " of domain ");
	str_json(out, r->domain);
	str_printf(out, ", opset %lld: ", (long long)r->opset);
	if (r->kind != REFUSED_OPERATOR)
		str_add(out, "it is not supported");
	else if (r->since < 0)
		str_add(out, "there is none of this name");
	else
		str_printf(out, "there is one from opset %d on", (int)r->since);
}

void onnx_refusal_print(str *out, const onnx_refusal *r)
{
	if (r->kind == REFUSED_BUILD) {
		str_printf(out, "%s: %s", r->name, r->what);
		return;
	}
	str_add(out, r->kind == REFUSED_ELEM ? "tensor " : "node ");
	str_json(out, r->name);
	str_add(out, ": ");
	if (r->kind == REFUSED_ELEM) {
		str_printf(out, "elements of type %s", r->what);
		return;
	}
	if (r->kind == REFUSED_ATTR) {
		str_add(out, "attribute ");
		str_json(out, r->what);
		str_addc(out, ' ');
	} else if (r->kind == REFUSED_INPUT) {
		str_printf(out, "input %d ", (int)r->input);
	}
	print_operator(out, r);
}

const char *onnx_refusal_rule(const onnx_refusal *r)
{
	static const char *const rule[] = {[REFUSED_OPERATOR] = "onnx.operator",
		[REFUSED_ELEM] = "onnx.elem", [REFUSED_ATTR] = "onnx.attr",
		[REFUSED_INPUT] = "onnx.input"};

	return r->kind == REFUSED_BUILD ? r->rule : rule[r->kind];
}

void onnx_refusals_list(str *out, const onnx_refusals *all)
{
	enum { MOST = 600 };
	int32_t n = 0;

	if (all->n < 2)
		return;
	for (; n < all->n && out->n < MOST; n++) {
		str_add(out, n > 0 ? "; " : "; of the model cannot run: ");
		onnx_refusal_print(out, &all->at[n]);
	}
	if (n < all->n)
		str_printf(out, "; and %d more", (int)(all->n - n));
}

static void add_text(str *out, const char *key, const char *text)
{
	str_printf(out, ",\"%s\":", key);
	str_json(out, text);
}

void onnx_refusal_json(str *out, const onnx_refusal *r)
{
	str_add(out, "{\"name\":");
	str_json(out, r->name);
	add_text(out, "code", onnx_refusal_rule(r));
	if (r->kind == REFUSED_ELEM)
		add_text(out, "elem", r->what);
	if (r->kind == REFUSED_BUILD)
		add_text(out, "text", r->what);
	if (r->node != NULL) {
		add_text(out, "operator", r->node->op);
		add_text(out, "domain", r->domain);
		str_printf(out, ",\"opset\":%lld", (long long)r->opset);
	}
	if (r->kind == REFUSED_OPERATOR && r->since < 0)
		str_add(out, ",\"since\":null");
	else if (r->kind == REFUSED_OPERATOR)
		str_printf(out, ",\"since\":%d", (int)r->since);
	if (r->kind == REFUSED_ATTR)
		add_text(out, "attribute", r->what);
	if (r->kind == REFUSED_INPUT)
		str_printf(out, ",\"input\":%d", (int)r->input);
	str_addc(out, '}');
}
