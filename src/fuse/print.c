/*
 * print.c: prints a plan as text or JSON.
 *
 *     kernel 0 fn_softmax_0: x -> o
 *       for v0 < 64 {
 *         init m: m[v0]
 *         for v1 < 128, reduced {
 *           m max= x[128*v0 + v1]
 *         }
 *       ...
 *     buffers: m, a register in v0
 *     not fused: ...
 */
#include "fuse/inner.h"

typedef struct printer {
	str *out;
	fuse_plan *p;
	const fuse_kernel *k;
	const char **var_name;
} printer;

const char *fuse_why_name(fuse_why why)
{
	switch (why) {
	case FUSE_WHY_SEVERAL:
		return "several";
	case FUSE_WHY_COMPLETION:
		return "completion";
	case FUSE_WHY_FREE:
		return "free";
	case FUSE_WHY_SHIFT:
		return "shift";
	case FUSE_WHY_REVERSED:
		return "reversed";
	case FUSE_WHY_MISALIGNED:
		return "misaligned";
	case FUSE_WHY_OPAQUE:
		return "opaque";
	case FUSE_WHY_CYCLE:
		return "cycle";
	case FUSE_WHY_OVERWRITE:
		return "overwrite";
	case FUSE_WHY_COST:
		return "cost";
	case FUSE_WHY_POLICY:
		return "policy";
	case FUSE_WHY_APART:
		return "apart";
	case FUSE_WHY_REQUEST:
		return "request";
	}
	return "";
}

static const char *tensor_name(fuse_plan *p, int32_t tensor)
{
	return p->s->tensor.at[tensor].name;
}

static void indent(printer *w, int32_t depth)
{
	for (int32_t i = 0; i < depth; i++)
		str_add(w->out, "  ");
}

static const char *fun_name(void *arg, int64_t fun)
{
	printer *w = arg;

	return tensor_name(w->p, (int32_t)fun);
}

static void form(printer *w, const ix_form *f)
{
	ix_box box = {.n = w->k->n_vars, .extent = w->k->var_extent};

	ix_print(w->out, f, &box, w->var_name, fun_name, w);
}

/* x[4*v0 + v1]; the level "loops" shows coordinates */
static void element(printer *w, int32_t tensor, const ix_form *at)
{
	str_printf(w->out, "%s[", tensor_name(w->p, tensor));
	form(w, at);
	str_addc(w->out, ']');
}

static void reads(printer *w, const fuse_eqn *e, bool init)
{
	ix_dom d = {.box = {.n = w->k->n_vars, .extent = w->k->var_extent}};
	int64_t extent[IR_MAX_AXES];
	bool first = true;
	int32_t n = init ? e->e.n_left : e->e.n_axes;
	const ix_form *const *with = e->axis_at;

	for (int32_t i = 0; i < e->e.n_axes; i++)
		extent[i] = e->e.axis[i].extent;
	if (init && e->e.push != NULL) {
		n = 1;
		extent[0] = w->p->s->tensor.at[e->e.out[0]].numel;
		with = &e->out_at;
	}
	for (int32_t k = 0; k < e->e.n_out; k++) {
		const expr *x = init ? e->e.init[k] : e->e.body[k];
		ex_reads r;

		if (x == NULL)
			continue;
		r = ex_list_reads(w->p->s, x);
		for (int32_t i = 0; i < r.n; i++) {
			str_add(w->out, first ? " <- " : ", ");
			first = false;
			element(w, r.at[i].tensor,
				ix_subst(w->p->s->x, &d, r.at[i].at, n, extent,
					with));
		}
	}
}

static void leaf(printer *w, const fuse_node *n)
{
	const fuse_eqn *e = &w->k->eqn[n->eqn];
	ix_dom d = {.box = {.n = w->k->n_vars, .extent = w->k->var_extent}};
	const ix_form *at = e->out_at;
	int64_t extent[IR_MAX_AXES];

	for (int32_t i = 0; i < e->e.n_axes; i++)
		extent[i] = e->e.axis[i].extent;
	if (n->kind == FUSE_STMT && e->e.push != NULL)
		at = ix_subst(w->p->s->x, &d, e->e.push, e->e.n_axes, extent,
			e->axis_at);
	str_printf(w->out, "%s%s: ", n->kind == FUSE_INIT ? "init " : "",
		e->e.label == NULL ? "eqn" : e->e.label);
	for (int32_t k = 0; k < e->e.n_out; k++) {
		if (k > 0)
			str_add(w->out, ", ");
		element(w, e->e.out[k], at);
	}
	if (n->kind == FUSE_STMT && e->e.monoid != IR_SET)
		str_printf(w->out, " %s", ir_monoid_at(e->e.monoid)->token);
	reads(w, e, n->kind == FUSE_INIT);
	str_addc(w->out, '\n');
}

/* Does a statement below reduce along the variable? */
static bool reduces(printer *w, const fuse_node *n, int32_t var)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (reduces(w, n->child[i], var))
			return true;
	return n->kind == FUSE_STMT &&
	       !ix_uses_axis(w->k->eqn[n->eqn].out_at, var);
}

static void tree(printer *w, const fuse_node *n, int32_t depth)
{
	const fuse_var *v;

	indent(w, depth);
	if (n->kind != FUSE_LOOP) {
		leaf(w, n);
		return;
	}
	v = &w->k->var[n->var];
	str_printf(w->out, "for %s < %lld%s {\n", w->var_name[n->var],
		(long long)v->extent,
		v->kind == AXIS_S			     ? ", in order"
		: v->kind == AXIS_R && reduces(w, n, n->var) ? ", reduced"
							     : "");
	for (int32_t i = 0; i < n->n_child; i++)
		tree(w, n->child[i], depth + 1);
	indent(w, depth);
	str_add(w->out, "}\n");
}

static void names(printer *w, const char *head, int32_t n, const int32_t *at)
{
	str_add(w->out, head);
	for (int32_t i = 0; i < n; i++)
		str_printf(w->out, "%s%s", i > 0 ? ", " : "",
			tensor_name(w->p, at[i]));
}

static void buffers(printer *w)
{
	for (int32_t i = 0; i < w->k->n_bufs; i++) {
		const fuse_buf *b = &w->k->buf[i];

		str_printf(
			w->out, "  private %s: ", tensor_name(w->p, b->tensor));
		if (b->elems == 1) {
			str_add(w->out, "a register");
		} else {
			str_printf(w->out, "%lld elements by [",
				(long long)b->elems);
			for (int32_t k = 0; k < b->n_vars; k++)
				str_printf(w->out, "%s%s", k > 0 ? "," : "",
					w->var_name[b->var[k]]);
			str_addc(w->out, ']');
		}
		if (b->scope == NULL)
			str_add(w->out, ", in the kernel\n");
		else
			str_printf(w->out, ", in %s\n",
				w->var_name[b->scope->var]);
	}
}

static void set_kernel(printer *w, const fuse_kernel *k)
{
	arena *a = w->out->a;

	w->k = k;
	w->var_name = arena_array(a, const char *, k->n_vars + 1);
	for (int32_t i = 0; i < k->n_vars; i++)
		w->var_name[i] = arena_printf(a, "v%d", i);
}

static void kernel(printer *w, const fuse_kernel *k)
{
	set_kernel(w, k);
	str_printf(w->out, "kernel %d %s", k->id, k->name);
	names(w, "(", k->n_inputs, k->input);
	names(w, ") -> ", k->n_outputs, k->output);
	if (k->serial && !k->opaque)
		str_add(w->out, ", serial");
	if (k->has_tail)
		str_add(w->out, ", with a tail");
	if (k->batch >= 0)
		str_printf(w->out, ", batch %d", k->batch);
	str_addc(w->out, '\n');
	if (k->opaque)
		str_printf(w->out, "  opaque %s\n", k->eqn[0].e.label);
	for (int32_t i = 0; i < k->n_roots; i++)
		tree(w, k->root[i], 1);
	buffers(w);
}

static void reason(printer *w, const fuse_reason *r)
{
	const ir_system *s = w->p->s;
	const char *p = s->eqn.at[r->producer].label;
	const char *c = s->eqn.at[r->consumer].label;

	str_printf(w->out, "not fused, %s %s %s %s %s (%s): %s\n",
		tensor_name(w->p, r->tensor), r->is_write ? "read by" : "from",
		p, r->is_write ? "and overwritten by" : "to", c,
		fuse_why_name(r->why), r->text);
}

static void text(printer *w)
{
	fuse_plan *p = w->p;

	for (int32_t i = 0; i < p->kernel.n; i++)
		kernel(w, p->kernel.at[i]);
	for (int32_t i = 0; i < p->n_alias; i++)
		if (p->alias[i] >= 0)
			str_printf(w->out, "%s is %s\n", tensor_name(p, i),
				tensor_name(p, p->alias[i]));
	for (int32_t i = 0; i < p->reason.n; i++)
		reason(w, &p->reason.at[i]);
}

/* ---- JSON ---- */

static void json_names(
	printer *w, const char *key, int32_t n, const int32_t *at)
{
	str_printf(w->out, ",\"%s\":[", key);
	for (int32_t i = 0; i < n; i++) {
		if (i > 0)
			str_addc(w->out, ',');
		str_json(w->out, tensor_name(w->p, at[i]));
	}
	str_addc(w->out, ']');
}

static void json_tree(printer *w, int32_t n, fuse_node *const *at)
{
	str_addc(w->out, '[');
	for (int32_t i = 0; i < n; i++) {
		if (i > 0)
			str_addc(w->out, ',');
		if (at[i]->kind != FUSE_LOOP) {
			str_printf(w->out, "{\"%s\":%d}",
				at[i]->kind == FUSE_INIT ? "init" : "stmt",
				at[i]->eqn);
			continue;
		}
		str_printf(w->out, "{\"loop\":%d,\"body\":", at[i]->var);
		json_tree(w, at[i]->n_child, at[i]->child);
		str_addc(w->out, '}');
	}
	str_addc(w->out, ']');
}

static void json_vars(printer *w)
{
	str_add(w->out, ",\"vars\":[");
	for (int32_t i = 0; i < w->k->n_vars; i++) {
		const fuse_var *v = &w->k->var[i];

		str_printf(w->out, "%s{\"extent\":%lld,\"kind\":\"%s\"}",
			i > 0 ? "," : "", (long long)v->extent,
			v->kind == AXIS_P   ? "parallel"
			: v->kind == AXIS_R ? "reduced"
					    : "scan");
	}
	str_addc(w->out, ']');
}

static void json_kernel(printer *w, const fuse_kernel *k)
{
	set_kernel(w, k);
	str_printf(w->out, "{\"id\":%d,\"name\":", k->id);
	str_json(w->out, k->name);
	str_add(w->out, ",\"equations\":[");
	for (int32_t i = 0; i < k->n_eqns; i++) {
		if (i > 0)
			str_addc(w->out, ',');
		str_json(w->out,
			k->eqn[i].e.label == NULL ? "" : k->eqn[i].e.label);
	}
	str_addc(w->out, ']');
	json_names(w, "inputs", k->n_inputs, k->input);
	json_names(w, "outputs", k->n_outputs, k->output);
	str_printf(w->out,
		",\"shared\":%d,\"serial\":%s,\"opaque\":%s,\"batch\":%d",
		k->n_shared, k->serial ? "true" : "false",
		k->opaque ? "true" : "false", k->batch);
	str_add(w->out, ",\"seconds\":");
	str_double(w->out, k->seconds);
	json_vars(w);
	str_add(w->out, ",\"tree\":");
	json_tree(w, k->n_roots, k->root);
	str_add(w->out, ",\"private\":[");
	for (int32_t i = 0; i < k->n_bufs; i++) {
		const fuse_buf *b = &k->buf[i];

		str_add(w->out, i > 0 ? ",{\"tensor\":" : "{\"tensor\":");
		str_json(w->out, tensor_name(w->p, b->tensor));
		str_printf(w->out, ",\"scope\":%d,\"elements\":%lld}",
			b->scope == NULL ? -1 : b->scope->var,
			(long long)b->elems);
	}
	str_add(w->out, "]}");
}

static void json_text(printer *w)
{
	fuse_plan *p = w->p;
	bool first = true;

	str_add(w->out, "{\"kernels\":[");
	for (int32_t i = 0; i < p->kernel.n; i++) {
		if (i > 0)
			str_addc(w->out, ',');
		json_kernel(w, p->kernel.at[i]);
	}
	str_add(w->out, "],\"aliases\":{");
	for (int32_t i = 0; i < p->n_alias; i++) {
		if (p->alias[i] < 0)
			continue;
		if (!first)
			str_addc(w->out, ',');
		first = false;
		str_json(w->out, tensor_name(p, i));
		str_addc(w->out, ':');
		str_json(w->out, tensor_name(p, p->alias[i]));
	}
	str_add(w->out, "},\"reasons\":[");
	for (int32_t i = 0; i < p->reason.n; i++) {
		const fuse_reason *r = &p->reason.at[i];

		str_printf(w->out,
			"%s{\"producer\":%d,\"consumer\":%d,\"tensor\":",
			i > 0 ? "," : "", r->producer, r->consumer);
		str_json(w->out, tensor_name(p, r->tensor));
		str_printf(
			w->out, ",\"why\":\"%s\",\"text\":", fuse_why_name(r->why));
		str_json(w->out, r->text);
		str_addc(w->out, '}');
	}
	str_add(w->out, "]}\n");
}

void fuse_print(str *out, fuse_plan *p, bool json)
{
	printer w = {.out = out, .p = p};

	fuse_explain(p);
	if (json)
		json_text(&w);
	else
		text(&w);
}
