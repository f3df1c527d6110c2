/*
 * text.c: prints a scheduled kernel as text, which text_parse.c reads.
 *
 *     kernel 0 fn_matmul_0_relu_1 {
 *       copy pack.2 over i_1, i_2 = w[i_1 + 64*i_2]
 *       phase of 16 chunks {
 *         block i_0 < 512 by 32 parallel {
 *           block i_1 < 64 by 32 {
 *             for i_1 < 64 lanes 16 { for i_2 < 256 { do pack#2 } }
 *             block i_0 < 512 by 8 {
 *               tile matmul#0 rows i_0 by 8 columns i_1 lanes 16 vectors 2 ..
 *       }
 *       location pack.2: local f32, 16384 elements by i_2 256, i_1 32 ..
 *     }
 *
 * First come the changes of the equations (change.c), then the trees, phase by
 * phase, then `location` lines, which follow from the trees and are only
 * compared. The equations are not printed, so a text cannot change what is
 * computed.
 */
#include "schedule/local.h"

struct print {
	str *out;
	loop_kernel *k;
	const char **names; /* of the variables */
};

static void indent(const struct print *p, int32_t depth)
{
	while (depth-- > 0)
		str_add(p->out, "  ");
}

static void form(const struct print *p, const ix_form *f)
{
	ir_form_print(p->out, p->k->s, f, &p->k->dom.box, p->names);
}

static void value(const struct print *p, const expr *e)
{
	ir_expr_print(p->out, p->k->s, e, &p->k->dom.box, p->names);
}

static const char *tensor(const struct print *p, int32_t t)
{
	return p->k->s->tensor.at[t].name;
}

static void eqn(const struct print *p, int32_t i)
{
	str_printf(p->out, "%s#%d", loop_label(&p->k->eqn[i]), i);
}

/* ---- changes ---- */

static void var_list(const struct print *p, loop_set s)
{
	const char *sep = "";

	for (int32_t v = 0; v < p->k->n_vars; v++)
		if ((s & BIT(v)) != 0) {
			str_printf(p->out, "%s%s", sep, p->names[v]);
			sep = ", ";
		}
}

/* The subscripts of the copy, slowest first. */
static void subscripts(const struct print *p, const loop_eqn *e)
{
	loop_set todo = e->left;
	const char *sep = "";

	while (todo != 0) {
		int64_t s, most = 0;
		int32_t best = -1;

		for (int32_t v = 0; v < p->k->n_vars; v++)
			if ((todo & BIT(v)) != 0 &&
				ix_stride(e->at, v, p->k->var[v].extent, &s) &&
				s > most) {
				most = s;
				best = v;
			}
		if (best < 0)
			return;
		str_printf(p->out, "%s%s", sep, p->names[best]);
		todo &= ~BIT(best);
		sep = ", ";
	}
}

static void copy_line(const struct print *p, int32_t i)
{
	const loop_eqn *e = &p->k->eqn[i];

	str_printf(p->out, "copy %s over ", tensor(p, e->e->out[0]));
	subscripts(p, e);
	if (e->panel > 0)
		str_printf(p->out, " panel %lld", (long long)e->panel);
	if (e->group > 0)
		str_printf(p->out, " group %d of %s", e->group,
			p->names[e->group_var]);
	str_add(p->out, " = ");
	value(p, e->body[0]);
}

static void change_line(const struct print *p, const loop_change *c)
{
	const loop_eqn *e = c->eqn < 0 ? NULL : &p->k->eqn[c->eqn];

	switch (c->kind) {
	case LOOP_CHANGE_SPLIT:
		str_printf(p->out, "split %s by %lld as %s", p->names[c->var],
			(long long)c->by, p->names[c->other]);
		break;
	case LOOP_CHANGE_JOIN:
		str_printf(p->out, "join %s, %s", p->names[c->var],
			p->names[c->other]);
		break;
	case LOOP_CHANGE_KEYS:
		str_add(p->out, "keys ");
		var_list(p, c->vars);
		str_printf(p->out, " as %s", p->names[c->var]);
		break;
	case LOOP_CHANGE_SLIDE:
		str_add(p->out, "slide ");
		form(p, p->k->var[c->var].slide);
		str_printf(p->out, " as %s", p->names[c->var]);
		break;
	case LOOP_CHANGE_CUT:
		str_add(p->out, "cut ");
		eqn(p, c->eqn);
		str_printf(p->out, " over %s by %lld as %s into %s",
			p->names[c->var], (long long)c->by, p->names[c->other],
			tensor(p, e->body[0]->tensor));
		break;
	case LOOP_CHANGE_COPY:
		copy_line(p, c->eqn);
		break;
	case LOOP_CHANGE_KEEP:
		str_printf(p->out, "keep %s at ", tensor(p, e->e->out[0]));
		form(p, e->at);
		break;
	case LOOP_CHANGE_ROW:
		str_printf(p->out, "row %s as %s for ", tensor(p, e->e->out[0]),
			e->e->label);
		eqn(p, c->other);
		str_add(p->out, " = ");
		value(p, e->body[0]);
		break;
	}
}

/* Accumulators with another dtype than in the equations: printed first. */
static void sums_lines(const struct print *p)
{
	const loop_kernel *k = p->k;

	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];

		if (e->stage || e->pack || e->acc[0] == loop_natural_acc(k, e, 0))
			continue;
		str_add(p->out, "  sums ");
		eqn(p, i);
		str_printf(p->out, " in %s\n", dtype_name(e->acc[0]));
	}
}

static void changes(const struct print *p)
{
	const loop_kernel *k = p->k;

	sums_lines(p);
	for (int32_t i = 0; i < k->change.n; i++) {
		indent(p, 1);
		change_line(p, &k->change.at[i]);
		str_addc(p->out, '\n');
	}
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].apart) {
			str_add(p->out, "  apart ");
			eqn(p, i);
			str_addc(p->out, '\n');
		}
	for (int32_t i = 0; i < k->n_outputs; i++)
		if (k->stream[i])
			str_printf(p->out, "  past caches %s\n",
				tensor(p, k->param[i]));
}

/* ---- trees ---- */

static void bound(const struct print *p, int64_t b, int64_t none)
{
	if (b == none)
		str_addc(p->out, '*');
	else
		str_printf(p->out, "%lld", (long long)b);
}

static void range(const struct print *p, const char *word, const ix_form *f,
	int64_t lo, int64_t hi)
{
	str_printf(p->out, " %s(", word);
	form(p, f);
	str_add(p->out, ", ");
	bound(p, lo, INT64_MIN);
	str_add(p->out, ", ");
	bound(p, hi, INT64_MAX);
	str_addc(p->out, ')');
}

static void clips(const struct print *p, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_clip; i++)
		range(p, "clip", n->clip[i].f, n->clip[i].lo, n->clip[i].hi);
}

static void needs(const struct print *p, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_needs; i++)
		range(p, "needs", n->need[i].f, n->need[i].lo, n->need[i].hi);
	if (n->near)
		str_add(p->out, " near");
	if (n->fills)
		str_add(p->out, " fills");
}

static void ahead(const struct print *p, const loop_node *n)
{
	for (int32_t i = 0; n->ahead != NULL && i < n->n_ahead; i++) {
		str_printf(p->out, " %s(%s, ", n->ahead[i].far ? "far" : "ahead",
			tensor(p, n->ahead[i].tensor));
		form(p, n->ahead[i].at);
		if (n->ahead[i].n > 0)
			str_printf(p->out, ", %d by %lld", n->ahead[i].n,
				(long long)n->ahead[i].step);
		str_addc(p->out, ')');
	}
}

static void count(const struct print *p, const char *word, int64_t n)
{
	if (n != 0)
		str_printf(p->out, " %s %lld", word, (long long)n);
}

static void loop_line(const struct print *p, const loop_node *n)
{
	str_printf(p->out, "%s %s < %lld",
		n->kind == LOOP_FOR ? "for" : n->kind == LOOP_BLOCK ? "block" : "span",
		p->names[n->var], (long long)p->k->var[n->var].extent);
	if (n->kind == LOOP_BLOCK)
		str_printf(p->out, " by %lld", (long long)n->size);
	if (n->kind == LOOP_SPAN)
		str_printf(p->out, " in %lld..%lld", (long long)n->lo,
			(long long)n->hi);
	if (n->number >= 0)
		str_printf(p->out, " number %s", p->names[n->number]);
	str_add(p->out, n->parallel ? " parallel" : "");
	str_add(p->out, n->bulk ? " in bulk" : n->by_warp ? " by warp" : "");
	count(p, "stages", n->stages);
	str_add(p->out, n->backward ? " backward" : "");
	count(p, "lanes", n->lanes);
	count(p, "unroll", n->unroll);
	str_add(p->out, n->wide ? " wide" : "");
	if (n->held > 0) {
		str_add(p->out, " held ");
		eqn(p, n->held - 1);
	}
	clips(p, n);
	needs(p, n);
	ahead(p, n);
}

static void tile_line(const struct print *p, const loop_node *n)
{
	str_add(p->out, "tile ");
	eqn(p, n->eqn);
	if (n->row_var >= 0)
		str_printf(p->out, " rows %s by %lld", p->names[n->row_var],
			(long long)n->size);
	str_printf(p->out, " columns %s lanes %d vectors %d sums ",
		p->names[n->var], n->lanes, n->unroll);
	for (int32_t i = 0; i < n->n_sums; i++)
		str_printf(p->out, "%s%s", i > 0 ? ", " : "", p->names[n->sum[i]]);
	str_add(p->out, n->matrix ? " matrix" : "");
	if (n->warps > 0)
		str_printf(p->out, " by %d warps%s", n->warps,
			n->in_memory ? " in memory" : "");
	count(p, "dot", n->dot);
	str_add(p->out, n->tiled ? " tiled" : "");
	if (n->offset[0] != 0 || n->offset[1] != 0)
		str_printf(p->out, " less %lld, %lld", (long long)n->offset[0],
			(long long)n->offset[1]);
	str_add(p->out, n->start ? " start" : "");
	str_add(p->out, n->held > 0 ? " held" : "");
	str_add(p->out, n->checked ? " checked" : "");
	if (n->within != NULL) {
		str_add(p->out, " within ");
		value(p, n->within);
	}
	if (n->lines > 0) {
		str_printf(p->out, " lines %d ahead ", n->lines);
		form(p, n->behind);
	}
	clips(p, n);
	needs(p, n);
	ahead(p, n);
	str_add(p->out, " of (");
	value(p, n->factor[0]);
	str_add(p->out, ", ");
	value(p, n->factor[1]);
	if (n->finish != NULL) {
		str_add(p->out, ", ");
		value(p, n->finish);
	}
	str_addc(p->out, ')');
}

static void leaf_line(const struct print *p, const loop_node *n)
{
	static const char *const words[] = {[LOOP_INIT] = "init ",
		[LOOP_STMT] = "do ", [LOOP_DONE] = "done ",
		[LOOP_PART] = "part ", [LOOP_JOIN] = "combine "};

	if (n->kind == LOOP_TILE) {
		tile_line(p, n);
		return;
	}
	if (n->kind == LOOP_SCALE) {
		str_add(p->out, "scale ");
		eqn(p, n->eqn);
		str_add(p->out, " to ");
		value(p, n->finish);
		return;
	}
	if (n->kind != LOOP_STAGE) {
		str_add(p->out, words[n->kind]);
		eqn(p, n->eqn);
		return;
	}
	str_add(p->out, "turn ");
	eqn(p, n->eqn);
	str_printf(p->out, " along %s", p->names[n->var]);
	if (n->row_var >= 0)
		str_printf(p->out, " against %s", p->names[n->row_var]);
	count(p, "lanes", n->lanes);
	needs(p, n);
	ahead(p, n);
}

static void tree(const struct print *p, const loop_node *n, int32_t depth)
{
	indent(p, depth);
	if (!loop_is_loop(n)) {
		leaf_line(p, n);
		str_addc(p->out, '\n');
		return;
	}
	loop_line(p, n);
	str_add(p->out, " {\n");
	for (int32_t i = 0; i < n->n_child; i++)
		tree(p, n->child[i], depth + 1);
	indent(p, depth);
	str_add(p->out, "}\n");
}

static void phase(const struct print *p, const loop_phase *ph)
{
	str_printf(p->out, "  phase of %lld chunks", (long long)ph->n_chunks);
	if (ph->warps > 1)
		str_printf(p->out, " by %d warps", ph->warps);
	if (ph->copies > 0)
		str_printf(p->out, ", copies %s",
			tensor(p, p->k->param[ph->copies - 1]));
	str_add(p->out, " {\n");
	for (int32_t i = 0; i < ph->n_roots; i++)
		tree(p, ph->root[i], 2);
	str_add(p->out, "  }\n");
}

/* ---- locations ---- */

static void location(const struct print *p, const loop_buf *b)
{
	static const char *const where[] = {[LOOP_REGISTER] = "register",
		[LOOP_HELD] = "held", [LOOP_LOCAL] = "local",
		[LOOP_SCRATCH] = "scratch"};

	str_add(p->out, "  location ");
	eqn(p, b->eqn);
	str_printf(p->out, " %s: %s %s, %lld elements",
		tensor(p, p->k->eqn[b->eqn].e->out[b->comp]), where[b->where],
		dtype_name(b->dtype), (long long)b->elems);
	for (int32_t i = 0; i < b->n_vars; i++)
		str_printf(p->out, "%s%s < %lld", i > 0 ? ", " : " by ",
			p->names[b->var[i]], (long long)b->extent[i]);
	if (b->panel > 0)
		str_printf(p->out, " panel %lld", (long long)b->panel);
	if (b->swizzled > 0)
		str_add(p->out, " swizzled");
	if (b->lanes)
		str_add(p->out, " in lanes");
	if (b->stages > 1)
		str_printf(p->out, " in %d stages", b->stages);
	if (b->where == LOOP_LOCAL || b->where == LOOP_SCRATCH)
		str_printf(p->out, " at %lld", (long long)b->offset);
	str_addc(p->out, '\n');
}

void loop_text_locations(str *out, loop_kernel *k)
{
	struct print p = {out, k, loop_var_names(k)};

	for (int32_t i = 0; i < k->n_bufs; i++)
		location(&p, &k->buf[i]);
}

const char **loop_var_names(const loop_kernel *k)
{
	const char **names = arena_array(k->a, const char *, k->n_vars + 1);

	for (int32_t i = 0; i < k->n_vars; i++)
		names[i] = k->var[i].name;
	return names;
}

void loop_text(str *out, loop_kernel *k, int32_t number)
{
	struct print p = {out, k, loop_var_names(k)};

	str_printf(out, "kernel %d %s {\n", number, k->name);
	changes(&p);
	for (int32_t i = 0; i < k->n_phases; i++)
		phase(&p, &k->phase[i]);
	loop_text_locations(out, k);
	str_add(out, "}\n");
}
