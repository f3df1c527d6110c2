/*
 * print.c: prints a MapExpr.
 *
 *   fn_add_0_reduce_sum_1(&out[], y[], x[]) {
 *     AnchoredMapStmt(t) {
 *       MapStmt([i_0, i_1]) {
 *         reduce_sum_init(&out);
 *         MapStmt([i_2]) {
 *           add(&t, x, y);
 *           reduce_sum_acc(&out, t);
 *
 * With `indexes` every argument is followed by its solved index, per axis of
 * its shape: add(&t[i_2, i_0, i_1], x[i_2, i_0, i_1], y[i_2, i_0, i_1]).
 */
#include "loop/tree.h"

struct print {
	str *out;
	loop_kernel *k;
	bool indexes;
	const char **names; /* of the variables */
};

static void indent(struct print *p, int32_t depth)
{
	while (depth-- > 0)
		str_add(p->out, "  ");
}

static const char *fun_name(void *arg, int64_t fun)
{
	struct print *p = arg;

	return p->k->s->tensor.at[fun].name;
}

static void argument(struct print *p, int32_t tensor, const ix_form *at)
{
	const sys_tensor *t = &p->k->s->tensor.at[tensor];
	const ix_form *axis[TN_MAX_RANK];
	int32_t i;

	str_add(p->out, t->name);
	if (!p->indexes)
		return;
	ix_delinearise(p->k->s->x, &p->k->dom, at, t->rank, t->shape, axis);
	str_addc(p->out, '[');
	for (i = 0; i < t->rank; i++) {
		str_add(p->out, i > 0 ? ", " : "");
		ix_print(
			p->out, axis[i], &p->k->dom.box, p->names, fun_name, p);
	}
	str_addc(p->out, ']');
}

/* Is this argument printed already? Without indexes, names are compared. */
static bool seen(const struct print *p, const ex_reads *r, int32_t n,
	int32_t tensor, const ix_form *at)
{
	int32_t i;

	for (i = 0; i < n; i++)
		if (r->at[i].tensor == tensor &&
			(!p->indexes || r->at[i].at == at))
			return true;
	return false;
}

static void leaf(struct print *p, const loop_node *n, int32_t depth)
{
	const loop_eqn *e = &p->k->eqn[n->eqn];
	const expr *const *of = n->kind == LOOP_INIT ? e->init : e->body;
	int32_t i, j, m;

	indent(p, depth);
	str_add(p->out, loop_label(e));
	if (n->kind == LOOP_INIT)
		str_add(p->out, "_init");
	else if (e->e->monoid != IR_SET)
		str_add(p->out, "_acc");
	for (i = 0; i < e->e->n_out; i++) {
		str_add(p->out, i > 0 ? ", &" : "(&");
		argument(p, e->e->out[i], e->at);
	}
	for (i = 0; i < e->e->n_out; i++) {
		ex_reads r = {0};

		if (of[i] != NULL)
			r = ex_list_reads(p->k->s, of[i]);
		for (j = 0; j < r.n; j++) {
			bool dup = seen(p, &r, j, r.at[j].tensor, r.at[j].at);

			for (m = 0; m < i && !dup; m++) {
				ex_reads q = ex_list_reads(p->k->s, of[m]);

				dup = seen(
					p, &q, q.n, r.at[j].tensor, r.at[j].at);
			}
			if (dup)
				continue;
			str_add(p->out, ", ");
			argument(p, r.at[j].tensor, r.at[j].at);
		}
	}
	str_add(p->out, ");\n");
}

static void tree(struct print *p, const loop_node *n, int32_t depth)
{
	int32_t i;

	if (!loop_is_loop(n)) {
		leaf(p, n, depth);
		return;
	}
	indent(p, depth);
	str_add(p->out, "MapStmt([");
	for (;;) {
		str_add(p->out, p->names[n->var]);
		if (n->n_child != 1 || !loop_is_loop(n->child[0]))
			break;
		str_add(p->out, ", ");
		n = n->child[0];
	}
	str_add(p->out, "]) {\n");
	for (i = 0; i < n->n_child; i++)
		tree(p, n->child[i], depth + 1);
	indent(p, depth);
	str_add(p->out, "}\n");
}

void loop_print(str *out, loop_kernel *k, bool indexes)
{
	struct print p = {out, k, indexes,
		arena_array(k->a, const char *, k->n_vars + 1)};
	const loop_eqn *anchor = &k->eqn[k->anchor];
	int32_t i;

	for (i = 0; i < k->n_vars; i++)
		p.names[i] = k->var[i].name;
	str_printf(out, "%s(", k->name);
	for (i = 0; i < k->n_outputs; i++)
		str_printf(out, "%s&%s[]", i > 0 ? ", " : "",
			k->s->tensor.at[k->param[i]].name);
	for (i = k->n_params - 1; i >= k->n_outputs; i--)
		str_printf(out, "%s%s[]",
			i < k->n_params - 1 || k->n_outputs > 0 ? ", " : "",
			k->s->tensor.at[k->param[i]].name);
	str_printf(out, ") {\n  AnchoredMapStmt(%s) {\n",
		k->s->tensor.at[anchor->e->out[0]].name);
	for (i = 0; i < k->n_roots; i++)
		tree(&p, k->root[i], 2);
	str_add(out, "  }\n}\n");
}
