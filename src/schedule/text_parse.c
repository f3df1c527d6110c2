/*
 * text_parse.c: schedules a kernel by the text of text.c, instead of
 * loop_schedule.
 *
 * Consumes untrusted text and a kernel of loop_build. Changes of the equations are
 * applied by the functions that schedules call, which refuse invalid ones. Trees
 * are taken from the text and verified (verify.c); `location` lines must be those
 * that follow from the trees. Throws schedule.* with a caret.
 */
#include "schedule/local.h"

#define MOST_AWAY ((int64_t)1 << 40) /* elements that a prefetch may be away */

struct parse {
	lex *l;
	loop_kernel *k;
	ir_scope in; /* the names that are visible so far */
};

static void fail_if(struct parse *p, bool bad, const lex_token *at,
	const char *rule, const char *what)
{
	if (bad)
		lex_fail(p->l, at, rule, "%s", what);
}

/* ---- names ---- */

static void refresh(struct parse *p)
{
	loop_kernel *k = p->k;
	map *m = map_new(k->a);

	for (int32_t i = 0; i < k->n_params; i++)
		map_set_str(m, k->s->tensor.at[k->param[i]].name, k->param[i]);
	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t j = 0; j < k->eqn[i].e->n_out; j++) {
			int32_t t = k->eqn[i].e->out[j];

			map_set_str(m, k->s->tensor.at[t].name, t);
		}
	p->in = (ir_scope){.dom = k->dom,
		.n_names = k->n_vars,
		.names = loop_var_names(k),
		.tensor = m};
}

static int32_t variable(struct parse *p)
{
	const lex_token *t = lex_take(p->l);

	for (int32_t v = 0; v < p->k->n_vars && t->kind == LEX_NAME; v++)
		if (lex_same(t, p->k->var[v].name))
			return v;
	lex_fail(p->l, t, "name", "%s has no variable %.*s", p->k->name, t->n,
		t->at);
}

static int32_t tensor(struct parse *p)
{
	const lex_token *t = lex_take(p->l);
	int64_t i = t->kind == LEX_NAME
			    ? map_get(p->in.tensor, t->at, (size_t)t->n, -1)
			    : -1;

	if (i < 0)
		lex_fail(p->l, t, "name", "%s has no tensor %.*s", p->k->name,
			t->n, t->at);
	return (int32_t)i;
}

static int32_t equation(struct parse *p)
{
	const lex_token *t = lex_peek(p->l);
	const char *label = lex_name(p->l, "an equation");
	int64_t i;

	lex_need(p->l, "#");
	i = lex_int(p->l, "the number of an equation");
	if (i < 0 || i >= p->k->n_eqns)
		lex_fail(p->l, t, "name", "equation %lld; %s has 0 to %d", (long long)i,
			p->k->name, p->k->n_eqns - 1);
	if (strcmp(label, loop_label(&p->k->eqn[i])) != 0)
		lex_fail(p->l, t, "name", "equation %lld is named %s",
			(long long)i,
			loop_label(&p->k->eqn[i]));
	return (int32_t)i;
}

static const ix_form *form(struct parse *p)
{
	return ir_form_parse(p->l, p->k->s, &p->in);
}

/* x0: the sum of dtype t. */
static const expr *value(struct parse *p, const tn_dtype *t)
{
	ir_scope in = p->in;

	in.n_params = t != NULL;
	in.param = t;
	return ir_expr_parse(p->l, p->k->s, &in);
}

static int64_t number(struct parse *p, int64_t lo, int64_t hi, const char *what)
{
	const lex_token *t = lex_peek(p->l);
	int64_t v = lex_int(p->l, what);

	if (v < lo || v > hi)
		lex_fail(p->l, t, "bound", "%s is %lld; it must be %lld to %lld",
			what, (long long)v,
			(long long)lo, (long long)hi);
	return v;
}

/* ---- changes ---- */

static void changed(struct parse *p, bool ok, const lex_token *at)
{
	fail_if(p, !ok, at, "change",
		"the equations of this kernel do not allow this change");
	refresh(p);
}

/* as NAME: the variable that the change added */
static void as_name(struct parse *p)
{
	lex_need(p->l, "as");
	fail_if(p, variable(p) != p->k->n_vars - 1, lex_peek(p->l), "name",
		"the next name must be that of the new variable");
}

static void parse_split(struct parse *p, const lex_token *at)
{
	int32_t v = variable(p);

	lex_need(p->l, "by");
	changed(p, loop_change_split(p->k, v,
			   number(p, 2, INT32_MAX, "the number of residues")),
		at);
	as_name(p);
}

static void parse_join(struct parse *p, const lex_token *at)
{
	int32_t y = variable(p), x;

	lex_need(p->l, ",");
	x = variable(p);
	changed(p, loop_change_join(p->k, y, x), at);
}

static void parse_keys(struct parse *p, const lex_token *at)
{
	loop_set keys = 0;

	do
		keys |= BIT(variable(p));
	while (lex_eat(p->l, ","));
	lex_need(p->l, "as");
	changed(p, loop_change_keys(p->k, keys, variable(p)), at);
}

static void parse_slide(struct parse *p, const lex_token *at)
{
	const ix_form *f = form(p);

	fail_if(p, !loop_change_slide(p->k, f), at, "change",
		"a slide is a sum of variables with factors, whose least value is 0");
	refresh(p);
	as_name(p);
}

/* Gives the tensor of a new equation the name in the text. */
static void name_result(
	struct parse *p, int32_t eqn, const char *name, const lex_token *at)
{
	int32_t t = p->k->eqn[eqn].e->out[0];

	fail_if(p, map_get_str(p->in.tensor, name, t) != t, at, "name",
		"two tensors of this kernel have one name");
	p->k->s->tensor.at[t].name = name;
	refresh(p);
}

static void parse_cut(struct parse *p, const lex_token *at)
{
	int32_t e = equation(p), v;

	lex_need(p->l, "over");
	v = variable(p);
	lex_need(p->l, "by");
	changed(p, loop_change_cut(p->k, e, v,
			   number(p, 1, INT64_MAX, "the length of a piece")),
		at);
	lex_need(p->l, "as");
	lex_need(p->l, p->k->var[p->k->n_vars - 1].name);
	lex_need(p->l, "into");
	name_result(p, p->k->n_eqns - 1, lex_name(p->l, "the name of the pieces"),
		at);
}

static void parse_copy(struct parse *p, const lex_token *at)
{
	loop_kernel *k = p->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n = 0, i;
	const char *name = lex_name(p->l, "the name of the copy");
	loop_set seen = 0;
	int64_t panel = 0;
	int32_t group = 0, group_var = -1;
	const expr *e;

	lex_need(p->l, "over");
	do {
		const lex_token *t = lex_peek(p->l);
		int32_t v = variable(p);

		fail_if(p, (seen & BIT(v)) != 0, t, "name",
			"a copy names a variable twice");
		seen |= BIT(v);
		var[n++] = v;
	} while (lex_eat(p->l, ","));
	if (lex_eat(p->l, "panel"))
		panel = number(p, 1, INT32_MAX, "the width of a panel");
	if (lex_eat(p->l, "group")) {
		group = (int32_t)number(p, 1, 4, "the elements of a group");
		lex_need(p->l, "of");
		group_var = variable(p);
		fail_if(p, (seen & BIT(group_var)) == 0 ||
				(group_var == var[n - 1]) != (group == 1) ||
				(group == 1 && panel > 0),
			at, "change",
			"groups of 1 are of the last subscript, and not in panels; others are of another subscript");
	}
	lex_need(p->l, "=");
	e = value(p, NULL);
	fail_if(p, k->n_eqns >= 63, at, "change", 
		"the kernel has 63 equations already: no copy can be added");
	i = loop_add_copy(k, e, n, var);
	k->eqn[i].panel = panel;
	k->eqn[i].group = group;
	k->eqn[i].group_var = group_var;
	name_result(p, i, name, at);
}

static void parse_keep(struct parse *p, const lex_token *at)
{
	loop_kernel *k = p->k;
	int32_t t = tensor(p), eqn, comp;
	const ix_form *f;

	lex_need(p->l, "at");
	f = form(p);
	fail_if(p, ix_has_fun(f) || loop_kept(k, t) >= 0 ||
			loop_maker(k, t, &eqn, &comp) == (loop_param(k, t) >= 0) ||
			!loop_covers(k, t, f, loop_form_vars(f)) ||
			k->n_eqns >= 63,
		at, "change",
		"keep needs an input or a value that is in no memory, and an index that reaches each of its "
		"elements once");
	loop_add_stage(k, t, f);
	refresh(p);
}

static void parse_row(struct parse *p, const lex_token *at)
{
	loop_kernel *k = p->k;
	const char *name = lex_name(p->l, "the name of the row"), *label;
	int32_t like;

	lex_need(p->l, "as");
	label = lex_name(p->l, "a label");
	lex_need(p->l, "for");
	like = equation(p);
	lex_need(p->l, "=");
	fail_if(p, k->eqn[like].push || k->n_eqns >= 63, at, "change",
		
		"a row needs a kernel of at most 62 equations, and an equation that "
		"is not a scatter");
	name_result(p, loop_add_row(k, label, like, value(p, NULL)), name, at);
}

static void parse_sums(struct parse *p, const lex_token *at)
{
	int32_t e = equation(p);

	lex_need(p->l, "in");
	lex_need(p->l, "i32");
	fail_if(p, !dtype_is_int(p->k->eqn[e].acc[0]) || p->k->eqn[e].push ||
			p->k->eqn[e].e->monoid != IR_SUM ||
			dtype_size(p->k->s->tensor.at[p->k->eqn[e].e->out[0]]
					.dtype) > 4,
		at, "change",
		"only sums of integers of at most 32 bits can be kept in i32");
	p->k->eqn[e].acc[0] = TN_I32;
}

static void parse_past(struct parse *p, const lex_token *at)
{
	int32_t i;

	lex_need(p->l, "caches");
	i = loop_param(p->k, tensor(p));
	fail_if(p, i < 0 || i >= p->k->n_outputs, at, "name",
		"only results of the kernel can be stored past the caches");
	p->k->stream[i] = true;
}

static bool change(struct parse *p)
{
	static const struct {
		const char *word;
		void (*parse)(struct parse *p, const lex_token *at);
	} words[] = {{"split", parse_split}, {"join", parse_join},
		{"keys", parse_keys}, {"slide", parse_slide}, {"cut", parse_cut}, {"copy", parse_copy},
		{"keep", parse_keep}, {"row", parse_row}, {"sums", parse_sums},
		{"past", parse_past}};
	const lex_token *at = lex_peek(p->l);

	if (lex_eat(p->l, "apart")) {
		p->k->eqn[equation(p)].apart = true;
		return true;
	}
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (lex_eat(p->l, words[i].word)) {
			words[i].parse(p, at);
			return true;
		}
	return false;
}

/* ---- trees ---- */

static int64_t bound(struct parse *p, int64_t none)
{
	return lex_eat(p->l, "*") ? none : lex_int(p->l, "a bound or '*'");
}

/* (form, lo, hi) */
static ix_fact range(struct parse *p)
{
	ix_fact f;

	lex_need(p->l, "(");
	f.f = form(p);
	lex_need(p->l, ",");
	f.lo = bound(p, INT64_MIN);
	lex_need(p->l, ",");
	f.hi = bound(p, INT64_MAX);
	lex_need(p->l, ")");
	return f;
}

static void parse_need(struct parse *p, loop_node *n)
{
	ix_fact *list = arena_array(p->k->a, ix_fact, n->n_needs + 1);

	if (n->n_needs > 0)
		memcpy(list, n->need, (size_t)n->n_needs * sizeof *list);
	list[n->n_needs++] = range(p);
	n->need = list;
}

static void parse_clip(struct parse *p, loop_node *n, const lex_token *at)
{
	loop_kernel *k = p->k;
	loop_clip *list = arena_array(k->a, loop_clip, n->n_clip + 1);
	ix_fact f = range(p);
	int64_t s;

	fail_if(p, f.lo == INT64_MIN || f.hi == INT64_MAX, at, "bound",
		"a clip needs both bounds");
	if (n->n_clip > 0)
		memcpy(list, n->clip, (size_t)n->n_clip * sizeof *list);
	n->clip = list;
	if (n->kind == LOOP_TILE) {
		list[n->n_clip++] = (loop_clip){f.f, f.lo, f.hi, NULL, 0};
		return;
	}
	fail_if(p, !ix_stride(f.f, n->var, k->var[n->var].extent, &s) ||
			(s != 1 && s != -1),
		at, "bound", "a clip needs a variable with coefficient 1 or -1");
	list[n->n_clip++] = (loop_clip){f.f, f.lo, f.hi,
		ix_sub(k->s->x, &k->dom, f.f,
			ix_scale(k->s->x, ix_axis(k->s->x, &k->dom, n->var), s)),
		s};
}

/* Is it in memory, or (of a tile) a copy that will be in scratch? */
static bool may_prefetch(const struct parse *p, const loop_node *n, int32_t tensor)
{
	int32_t eqn, comp;

	return loop_param(p->k, tensor) >= 0 ||
	       (n->kind == LOOP_TILE && loop_maker(p->k, tensor, &eqn, &comp) &&
		       p->k->eqn[eqn].pack);
}

/* An element to prefetch: its address is computed in 64 bits. */
static const ix_form *near_form(struct parse *p)
{
	const lex_token *at = lex_peek(p->l);
	const ix_form *f = form(p);
	int64_t min, max;

	ix_range(&p->k->dom, f, &min, &max);
	fail_if(p, min < -MOST_AWAY || max > MOST_AWAY, at, "bound",
		"an element to prefetch must be within 2^40 of the first");
	return f;
}

static void parse_ahead(struct parse *p, loop_node *n, bool far)
{
	loop_ahead *list = arena_array(p->k->a, loop_ahead, n->n_ahead + 1);

	if (n->n_ahead > 0)
		memcpy(list, n->ahead, (size_t)n->n_ahead * sizeof *list);
	lex_need(p->l, "(");
	list[n->n_ahead] = (loop_ahead){.tensor = tensor(p), .far = far};
	fail_if(p, !may_prefetch(p, n, list[n->n_ahead].tensor),
		lex_peek(p->l), "name",
		"only tensors in memory can be prefetched, and by tiles also copies of factors");
	lex_need(p->l, ",");
	list[n->n_ahead].at = near_form(p);
	if (n->kind == LOOP_TILE && lex_eat(p->l, ",")) {
		list[n->n_ahead].n = (int32_t)number(p, 1, LOOP_MAX_FETCH, "elements to prefetch");
		lex_need(p->l, "by");
		list[n->n_ahead].step = number(p, 1, INT32_MAX, "a distance");
	}
	n->n_ahead++;
	lex_need(p->l, ")");
	n->ahead = list;
}

/* An attribute of a loop, a tile or a turn; they can be in any order. */
static bool attribute(struct parse *p, loop_node *n)
{
	const lex_token *at = lex_peek(p->l);
	bool tile = n->kind == LOOP_TILE;

	if (lex_eat(p->l, "needs"))
		parse_need(p, n);
	else if (lex_eat(p->l, "near"))
		n->near = true;
	else if (lex_eat(p->l, "fills"))
		n->fills = true;
	else if (lex_eat(p->l, "lanes"))
		n->lanes = (int32_t)number(p, 1, 1024, "the number of lanes");
	else if (lex_is(p->l, "ahead") || (!tile && lex_is(p->l, "far")))
		parse_ahead(p, n, lex_same(lex_take(p->l), "far"));
	else if ((n->kind == LOOP_FOR || tile) && lex_eat(p->l, "clip"))
		parse_clip(p, n, at);
	else if (n->kind == LOOP_FOR && lex_eat(p->l, "unroll"))
		n->unroll = (int32_t)number(p, 1, 64, "the number of sums");
	else if (n->kind == LOOP_FOR && lex_eat(p->l, "wide"))
		n->wide = true;
	else if (n->kind == LOOP_FOR && lex_eat(p->l, "held"))
		n->held = 1 + equation(p);
	else if (n->kind == LOOP_FOR && lex_eat(p->l, "backward"))
		n->backward = true;
	else if (loop_is_loop(n) && lex_eat(p->l, "parallel"))
		n->parallel = true;
	else if (loop_is_loop(n) && lex_eat(p->l, "by")) {
		lex_need(p->l, "warp");
		n->by_warp = true;
	} else if (n->kind == LOOP_FOR && lex_eat(p->l, "in")) {
		lex_need(p->l, "bulk");
		n->by_warp = n->bulk = true;
	} else if (n->kind == LOOP_BLOCK && lex_eat(p->l, "stages"))
		n->stages = (int32_t)number(p, 2, LOOP_MAX_STAGES,
			"the pieces that are in buffers at a time");
	else if (n->kind == LOOP_BLOCK && lex_eat(p->l, "number"))
		n->number = variable(p);
	else
		return false;
	return true;
}

static loop_node *parse_tree(struct parse *p);

static void parse_list(struct parse *p, loop_node *n)
{
	lex_need(p->l, "{");
	lex_enter(p->l);
	while (!lex_eat(p->l, "}"))
		loop_node_adopt(p->k->a, n, parse_tree(p));
	lex_leave(p->l);
}

static loop_node *parse_loop(struct parse *p, loop_kind kind)
{
	loop_node *n = loop_node_new(p->k->a, kind);
	const lex_token *at;
	int64_t extent;

	n->var = variable(p);
	extent = p->k->var[n->var].extent;
	lex_need(p->l, "<");
	at = lex_peek(p->l);
	if (lex_int(p->l, "the extent of the variable") != extent)
		lex_fail(p->l, at, "bound", "the extent of %s is %lld",
			p->k->var[n->var].name, (long long)extent);
	if (kind == LOOP_BLOCK) {
		lex_need(p->l, "by");
		n->size = number(p, 1, INT64_MAX / 4, "the length of a block");
	} else if (kind == LOOP_SPAN) {
		lex_need(p->l, "in");
		n->lo = number(p, 0, extent, "where a span begins");
		lex_need(p->l, "..");
		n->hi = number(p, n->lo, extent, "where a span ends");
	}
	while (attribute(p, n))
		;
	parse_list(p, n);
	return n;
}

static void parse_sum_list(struct parse *p, loop_node *n)
{
	int32_t *sum = arena_array(p->k->a, int32_t, p->k->n_vars + 1);

	do {
		fail_if(p, n->n_sums >= p->k->n_vars, lex_peek(p->l), "name",
			"a variable twice");
		sum[n->n_sums++] = variable(p);
	} while (lex_eat(p->l, ","));
	n->sum = sum;
}

static loop_node *parse_tile(struct parse *p)
{
	loop_node *n = loop_node_new(p->k->a, LOOP_TILE);

	n->eqn = equation(p);
	if (lex_eat(p->l, "rows")) {
		n->row_var = variable(p);
		lex_need(p->l, "by");
		n->size = number(p, 1, 64, "the rows of a tile");
	}
	lex_need(p->l, "columns");
	n->var = variable(p);
	lex_need(p->l, "lanes");
	n->lanes = (int32_t)number(p, 1, 1024, "the number of lanes");
	lex_need(p->l, "vectors");
	n->unroll = (int32_t)number(p, 1, 64, "the vectors of a tile");
	lex_need(p->l, "sums");
	parse_sum_list(p, n);
	n->matrix = lex_eat(p->l, "matrix");
	if (n->matrix && lex_eat(p->l, "by")) {
		n->warps = (int32_t)number(p, 2, LOOP_MAX_WARPS,
			"the warps of an instruction");
		lex_need(p->l, "warps");
		if (lex_eat(p->l, "in")) {
			lex_need(p->l, "memory");
			n->in_memory = true;
		}
	}
	if (lex_eat(p->l, "dot"))
		n->dot = (int32_t)number(p, 2, 4, "the terms of a dot");
	n->tiled = lex_eat(p->l, "tiled");
	if (lex_eat(p->l, "less")) {
		n->offset[0] = number(p, INT16_MIN, UINT16_MAX, "an offset");
		lex_need(p->l, ",");
		n->offset[1] = number(p, INT16_MIN, UINT16_MAX, "an offset");
	}
	n->start = lex_eat(p->l, "start");
	n->held = lex_eat(p->l, "held");
	n->checked = lex_eat(p->l, "checked");
	if (lex_eat(p->l, "within"))
		n->within = value(p, NULL);
	if (lex_eat(p->l, "lines")) {
		n->lines = (int32_t)number(p, 1, LOOP_MAX_FETCH, "the lines to prefetch");
		lex_need(p->l, "ahead");
		n->behind = near_form(p);
	}
	while (lex_is(p->l, "needs") || lex_is(p->l, "near") || lex_is(p->l, "ahead") ||
		lex_is(p->l, "clip"))
		attribute(p, n);
	lex_need(p->l, "of");
	lex_need(p->l, "(");
	n->factor[0] = value(p, NULL);
	lex_need(p->l, ",");
	n->factor[1] = value(p, NULL);
	if (lex_eat(p->l, ","))
		n->finish = value(p, &p->k->eqn[n->eqn].acc[0]);
	lex_need(p->l, ")");
	return n;
}

static loop_node *parse_turn(struct parse *p)
{
	loop_node *n = loop_node_new(p->k->a, LOOP_STAGE);

	n->eqn = equation(p);
	lex_need(p->l, "along");
	n->var = variable(p);
	if (lex_eat(p->l, "against"))
		n->row_var = variable(p);
	while (attribute(p, n))
		;
	return n;
}

static loop_node *parse_scale(struct parse *p)
{
	loop_node *n = loop_node_new(p->k->a, LOOP_SCALE);

	n->eqn = equation(p);
	lex_need(p->l, "to");
	n->finish = value(p, &p->k->eqn[n->eqn].acc[0]);
	return n;
}

static loop_node *parse_node(struct parse *p)
{
	static const struct {
		const char *word;
		loop_kind kind;
	} loops[] = {{"for", LOOP_FOR}, {"block", LOOP_BLOCK},
		{"span", LOOP_SPAN}},
	  leaves[] = {{"init", LOOP_INIT}, {"do", LOOP_STMT},
		  {"done", LOOP_DONE}, {"part", LOOP_PART},
		  {"combine", LOOP_JOIN}};
	loop_node *n;

	for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
		if (lex_eat(p->l, loops[i].word))
			return parse_loop(p, loops[i].kind);
	for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++)
		if (lex_eat(p->l, leaves[i].word)) {
			n = loop_node_new(p->k->a, leaves[i].kind);
			n->eqn = equation(p);
			return n;
		}
	if (lex_eat(p->l, "tile"))
		return parse_tile(p);
	if (lex_eat(p->l, "turn"))
		return parse_turn(p);
	if (lex_eat(p->l, "scale"))
		return parse_scale(p);
	lex_unexpected(p->l, "a loop or a statement");
}

static loop_node *parse_tree(struct parse *p)
{
	int32_t line = lex_loc(p->l, lex_peek(p->l)).line;
	loop_node *n = parse_node(p);

	n->line = line;
	return n;
}

static void parse_phase(struct parse *p)
{
	loop_kernel *k = p->k;
	loop_node *list = loop_node_new(k->a, LOOP_SPAN);
	loop_phase *ph = &k->phase[k->n_phases];

	fail_if(p, k->n_phases == LOOP_MAX_PHASES, lex_peek(p->l), "bound",
		"a kernel has at most four phases");
	lex_need(p->l, "phase");
	lex_need(p->l, "of");
	*ph = (loop_phase){.n_chunks = number(
				   p, 1, INT32_MAX, "the number of chunks")};
	lex_need(p->l, "chunks");
	if (lex_eat(p->l, "by")) {
		ph->warps = (int32_t)number(p, 2, LOOP_MAX_WARPS,
			"the warps of a block");
		lex_need(p->l, "warps");
	}
	if (lex_eat(p->l, ",")) {
		lex_need(p->l, "copies");
		ph->copies = 1 + loop_param(k, tensor(p));
	}
	parse_list(p, list);
	ph->root = list->child;
	ph->n_roots = list->n_child;
	k->n_phases++;
}

/* ---- what follows from the trees ---- */

static void number_parts(loop_kernel *k, const loop_node *n)
{
	if (n->kind == LOOP_PART)
		for (const loop_node *b = n->up; b != NULL; b = b->up)
			if (b->kind == LOOP_BLOCK && b->parallel &&
				(k->eqn[n->eqn].reduced & BIT(b->var)) != 0)
				k->eqn[n->eqn].n_parts =
					(k->var[b->var].extent + b->size - 1) /
					b->size;
	for (int32_t i = 0; i < n->n_child; i++)
		number_parts(k, n->child[i]);
}

/*
 * Compares the `location` lines of the text with those that follow from the
 * trees. A text may omit all of them, as one that was edited by hand does.
 */
static void check_locations(struct parse *p)
{
	str s = str_new(p->k->a);
	const char *want;

	if (lex_is(p->l, "}"))
		return;
	loop_text_locations(&s, p->k);
	want = s.at;
	while (!lex_is(p->l, "}")) {
		const lex_token *t = lex_peek(p->l);
		const char *end = memchr(t->at, '\n',
			(size_t)(p->l->text + p->l->n_text - t->at));
		size_t n = end == NULL ? 0 : (size_t)(end - t->at), m;

		want += strspn(want, " ");
		m = strcspn(want, "\n");
		while (n > 0 && (t->at[n - 1] == ' ' || t->at[n - 1] == '\r'))
			n--;
		if (n != m || memcmp(t->at, want, m) != 0)
			lex_fail(p->l, t, "location", m > 0
				? "this line must be: %.*s"
				: "the kernel has no more locations: remove "
				  "this line%.*s", (int)m, want);
		want += m + (want[m] == '\n');
		while (lex_peek(p->l)->kind != LEX_END &&
			lex_peek(p->l)->at < t->at + n)
			lex_take(p->l);
	}
	if (*want != 0)
		lex_fail(p->l, lex_peek(p->l), "location",
			"a line is missing: %.*s",
			(int)strcspn(want + 2, "\n"), want + 2);
}

static void parse_kernel(struct parse *p)
{
	loop_kernel *k = p->k;

	refresh(p);
	while (change(p))
		;
	do
		parse_phase(p);
	while (lex_is(p->l, "phase"));
	loop_find_twins(k);
	loop_link(k);
	for (int32_t i = 0; i < k->n_phases; i++)
		for (int32_t j = 0; j < k->phase[i].n_roots; j++)
			number_parts(k, k->phase[i].root[j]);
	loop_room_for_parts(k);
	loop_schedule_verify(k);
	loop_locate(k);
	loop_schedule_verify_locations(k);
	check_locations(p);
	lex_need(p->l, "}");
}

bool loop_text_apply(
	kernel_texts *f, loop_kernel *k, int32_t number, const machine *m)
{
	const lex_token *at;
	struct parse p = {
		.l = kernel_texts_open(f, number, k->name, &at), .k = k};

	if (p.l == NULL)
		return false;
	k->machine = m;
	k->file = p.l->base.file;
	k->pinned = true;
	k->n_roots = k->n_phases = 0;
	k->stream = arena_array(k->a, bool, k->n_params + 1);
	parse_kernel(&p);
	return true;
}
