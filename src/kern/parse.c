/*
 * parse.c: parses the text of print.c.
 *
 * Consumes untrusted text; produces a kernel in which every name is defined before
 * its use, in a block that is still open. The verifier checks types, bounds and
 * races. Throws kern.* with line and caret.
 */
#include "kern/parse.h"

static kern_stmt *add(struct kern_parser *p, kern_kind kind, const lex_token *t)
{
	kern_stmt *s = kern_add(&p->b, kind);

	kern_parse_place(p, t, &s->line, &s->column);
	return s;
}

static void open_block(struct kern_parser *p, kern_block *b)
{
	lex_need(p->l, "{");
	if (p->b.block.n >= KERN_MAX_DEPTH)
		lex_fail(p->l, lex_peek(p->l), "depth",
			"blocks are nested more than %d deep", KERN_MAX_DEPTH);
	kern_open(&p->b, b);
	*vec_push(p->l->a, &p->blocks) = p->open.n;
	*vec_push(p->l->a, &p->open) = true;
}

static void close_block(struct kern_parser *p)
{
	kern_close(&p->b);
	p->open.at[vec_pop(&p->blocks)] = false;
}

static void statements(struct kern_parser *p, kern_block *b)
{
	open_block(p, b);
	while (!lex_eat(p->l, "}"))
		kern_parse_body(p);
	close_block(p);
}

static void parse_let(struct kern_parser *p, const lex_token *t)
{
	const lex_token *name = kern_parse_name(p);
	kern_stmt *s;
	kern_type type;

	lex_need(p->l, ":");
	type = kern_parse_type(p);
	lex_need(p->l, "=");
	s = add(p, KERN_LET, t);
	s->v = kern_parse_ins(p, type);
	kern_parse_know(p, name, s->v);
}

static void parse_var(struct kern_parser *p, const lex_token *t)
{
	const lex_token *name = kern_parse_name(p);
	kern_stmt *s;
	kern_type type;

	lex_need(p->l, ":");
	type = kern_parse_type(p);
	lex_need(p->l, "=");
	s = add(p, KERN_VAR, t);
	if (!lex_eat(p->l, "zero"))
		s->x = kern_parse_right(p, &type);
	s->v = kern_ins(p->k, &(kern_value){.op = KERN_REG, .type = type});
	s->by_warp = lex_eat(p->l, "by");
	if (s->by_warp)
		lex_need(p->l, "warp");
	kern_parse_know(p, name, s->v);
}

static void parse_set(struct kern_parser *p, const lex_token *t)
{
	const lex_token *at = lex_peek(p->l);
	kern_val v = kern_parse_value(p);
	kern_type type = kern_at(p->k, v)->type;
	kern_stmt *s;

	if (kern_at(p->k, v)->op != KERN_REG)
		lex_fail(p->l, at, "set", "only a register (\"var\") can be set");
	if (lex_eat(p->l, "[")) {
		s = add(p, KERN_SET_LANE, t);
		s->lo = kern_parse_form(p);
		lex_need(p->l, "]");
	} else {
		s = add(p, KERN_SET, t);
	}
	s->v = v;
	lex_need(p->l, "=");
	s->x = kern_parse_right(p, s->kind == KERN_SET ? &type : NULL);
}

static void parse_store(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_STORE, t);

	s->stream = lex_same(t, "stream");
	s->at = kern_parse_access(p, true);
	lex_need(p->l, "=");
	s->x = kern_parse_right(p, NULL);
	if (s->stream)
		p->k->array.at[s->at.array].streams = true;
}

static void parse_for(struct kern_parser *p, const lex_token *t)
{
	const lex_token *name = kern_parse_name(p), *after = NULL;
	kern_stmt *s = add(p, KERN_FOR, t);

	s->type = kern_i64();
	s->step = 1;
	if (lex_eat(p->l, ":"))
		s->type = kern_parse_type(p);
	lex_need(p->l, "=");
	s->lo = kern_parse_form(p);
	lex_need(p->l, "..");
	s->hi = kern_parse_form(p);
	if (lex_eat(p->l, "step"))
		s->step = kern_parse_int(p, 1, INT32_MAX, "a step");
	s->down = lex_eat(p->l, "down");
	s->whole = lex_eat(p->l, "whole");
	if (lex_eat(p->l, "by")) {
		s->by_lane = lex_eat(p->l, "lane");
		s->by_warp = !s->by_lane;
	}
	if (s->by_warp)
		lex_need(p->l, "warp");
	s->unroll = lex_eat(p->l, "unroll");
	s->v = kern_ins(p->k,
		&(kern_value){.op = KERN_WALK, .type = s->type});
	if (lex_eat(p->l, "after")) {
		after = kern_parse_name(p);
		s->after = kern_ins(p->k,
			&(kern_value){.op = KERN_AFTER, .type = s->type});
	}
	open_block(p, &s->body);
	kern_parse_know(p, name, s->v);
	while (!lex_eat(p->l, "}"))
		kern_parse_body(p);
	close_block(p);
	if (after != NULL)
		kern_parse_know(p, after, s->after);
}

static void parse_if(struct kern_parser *p, const lex_token *t)
{
	const kern_type type = kern_bool();
	kern_stmt *s = add(p, KERN_IF, t);

	s->rarely = lex_eat(p->l, "rarely");
	s->x = kern_parse_right(p, &type);
	statements(p, &s->body);
	if (lex_eat(p->l, "else"))
		statements(p, &s->other);
}

static void parse_block(struct kern_parser *p, const lex_token *t)
{
	statements(p, &add(p, KERN_BLOCK, t)->body);
}

/* NAME: dtype[elems] */
static int32_t array(struct kern_parser *p, kern_space space)
{
	const lex_token *t = lex_take(p->l);
	tn_dtype dt;
	int64_t elems;
	int32_t i;
	str name = str_new(p->l->a);

	lex_need(p->l, ":");
	dt = kern_parse_dtype(p);
	lex_need(p->l, "[");
	elems = kern_parse_int(p, 0, (int64_t)1 << 48, "a number of elements");
	lex_need(p->l, "]");
	i = space == KERN_PARAM
		    ? kern_add_param(p->k, dt, elems, false, -1)
		    : kern_add_array(p->k, space, dt, elems, 0);
	kern_array_name(&name, p->k, i);
	if (!lex_same(t, name.at))
		lex_fail(p->l, t, "name",
			"arrays are numbered in order: this one must be %s", name.at);
	map_set_str(p->array, name.at, i);
	return i;
}

static void parse_array(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_ARRAY, t);

	s->stream = lex_same(t, "zero");
	if (s->stream)
		lex_need(p->l, "array");
	s->array = array(p, KERN_STACK);
}

static void parse_prefetch(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_PREFETCH, t);

	s->far = lex_eat(p->l, "far");
	s->at = kern_parse_access(p, false);
}

static void parse_fence(struct kern_parser *p, const lex_token *t)
{
	add(p, KERN_FENCE, t);
}

static void parse_reload(struct kern_parser *p, const lex_token *t)
{
	add(p, KERN_RELOAD, t);
}

static void parse_barrier(struct kern_parser *p, const lex_token *t)
{
	add(p, KERN_BARRIER, t);
}

static void parse_turn(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_TURN, t);

	s->type = kern_parse_type(p);
	if (lex_eat(p->l, "by"))
		s->width = (int32_t)kern_parse_int(
			p, 2, 8, "the neighbours that stay together");
	s->at = kern_parse_access(p, false);
	lex_need(p->l, "rows");
	s->n = lex_int(p->l, "the distance of two rows");
	lex_need(p->l, "=");
	s->from = kern_parse_access(p, false);
	lex_need(p->l, "rows");
	s->m = lex_int(p->l, "the distance of two rows");
}

/* %r1, %r2, .. */
static void parse_acc(struct kern_parser *p, kern_stmt *s)
{
	VEC(kern_val) acc = {0};

	do
		*vec_push(p->k->a, &acc) = kern_parse_value(p);
	while (lex_eat(p->l, ","));
	s->acc = acc.at;
	s->n_acc = acc.n;
}

static int64_t parse_rows(struct kern_parser *p)
{
	lex_need(p->l, "rows");
	return kern_parse_int(p, 1, INT32_MAX, "the distance of two rows");
}

/* rows N, or columns N */
static int64_t parse_factor(struct kern_parser *p, bool *turned)
{
	*turned = lex_eat(p->l, "columns");
	return *turned ? kern_parse_int(p, 1, INT32_MAX,
				 "the distance of two columns")
		       : parse_rows(p);
}

/* part ROWS by COLUMNS [by TERMS], or ", N terms by 4 warps" */
static void parse_part(struct kern_parser *p, kern_stmt *s)
{
	if (s->kind == KERN_MMA && lex_eat(p->l, ",")) {
		s->terms = (int32_t)kern_parse_int(
			p, 1, KERN_SWIZZLED, "the terms of several warps");
		lex_need(p->l, "terms");
		lex_need(p->l, "by");
		s->warps = (int32_t)kern_parse_int(p, KERN_MMA_WARPS,
			KERN_MMA_WARPS, "the warps that multiply together");
		lex_need(p->l, "warps");
		return;
	}
	if (!lex_eat(p->l, "part"))
		return;
	s->rows = (int32_t)kern_parse_int(
		p, 1, KERN_MMA_ROWS, "the rows of a matrix");
	lex_need(p->l, "by");
	s->width = (int32_t)kern_parse_int(
		p, 1, INT16_MAX, "the columns of a matrix");
	if (s->kind != KERN_MMA)
		return;
	lex_need(p->l, "by");
	s->terms = (int32_t)kern_parse_int(
		p, 1, kern_mma_terms(s->type.dt), "the terms of a matrix");
}

static void parse_mma(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_MMA, t);

	s->type = kern_parse_type(p);
	parse_acc(p, s);
	lex_need(p->l, "of");
	s->at = kern_parse_access(p, false);
	s->n = parse_factor(p, &s->at_turned);
	lex_need(p->l, ",");
	s->from = kern_parse_access(p, false);
	s->m = parse_factor(p, &s->from_turned);
	parse_part(p, s);
}

/* b1[H] rows L of p1[F] rows N, b0[G] rows M, ROWS by COLUMNS by TERMS [zero CONDITION] */
static void parse_tiles(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_TILES, t);
	kern_type condition = kern_num(TN_BOOL, 1);

	s->to = kern_parse_access(p, false);
	s->l = parse_rows(p);
	lex_need(p->l, "of");
	s->at = kern_parse_access(p, false);
	s->n = parse_rows(p);
	lex_need(p->l, ",");
	s->from = kern_parse_access(p, false);
	s->m = parse_rows(p);
	lex_need(p->l, ",");
	s->rows = (int32_t)kern_parse_int(p, 1,
		KERN_TILE_ACROSS * KERN_TILE_ROWS, "the rows of tile registers");
	lex_need(p->l, "by");
	s->width = (int32_t)kern_parse_int(p, 1,
		KERN_TILE_ACROSS * KERN_TILE_LANES, "the columns of tile registers");
	lex_need(p->l, "by");
	s->terms = (int32_t)kern_parse_int(
		p, 1, INT32_MAX / KERN_TILE_BYTES, "the terms of a row");
	if (lex_eat(p->l, "zero"))
		s->x = kern_parse_right(p, &condition);
}

static void parse_take(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_TAKE, t);

	parse_acc(p, s);
	lex_need(p->l, "=");
	s->at = kern_parse_access(p, false);
	s->n = parse_rows(p);
	parse_part(p, s);
}

static void parse_give(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_GIVE, t);

	s->at = kern_parse_access(p, false);
	s->n = parse_rows(p);
	parse_part(p, s);
	lex_need(p->l, "=");
	parse_acc(p, s);
}

/* b0[F] rows N = p1[G] rows M, ROWS by WIDTH, or .. in bulk */
static void parse_async(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_ASYNC, t);

	s->at = kern_parse_access(p, false);
	s->n = parse_rows(p);
	lex_need(p->l, "=");
	s->from = kern_parse_access(p, false);
	s->m = parse_rows(p);
	lex_need(p->l, ",");
	s->rows = (int32_t)kern_parse_int(p, 1, INT16_MAX, "a number of rows");
	lex_need(p->l, "by");
	s->width = (int32_t)kern_parse_int(
		p, 1, INT16_MAX, "the elements of a row");
	if (lex_eat(p->l, "in")) {
		lex_need(p->l, "bulk");
		s->bulk = true;
	}
}

static void parse_commit(struct kern_parser *p, const lex_token *t)
{
	add(p, KERN_COMMIT, t);
}

static void parse_wait(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_WAIT, t);

	s->groups = (int32_t)kern_parse_int(p, 0, KERN_MAX_GROUPS,
		"the groups of copies that may be under way");
}

static void parse_note(struct kern_parser *p, const lex_token *t)
{
	kern_stmt *s = add(p, KERN_NOTE, t);
	str text = str_new(p->k->a);

	while (!lex_eat(p->l, ";")) {
		const lex_token *w = lex_take(p->l);

		if (w->kind != LEX_NAME && w->kind != LEX_INT &&
			!lex_same(w, ","))
			lex_fail(p->l, w, "syntax",
				"a note may contain names and commas, and must end with ';'");
		if (text.n > 0 && !lex_same(w, ","))
			str_addc(&text, ' ');
		str_addn(&text, w->at, (size_t)w->n);
	}
	s->text = text.at;
}

static void parse_together(struct kern_parser *p, const lex_token *t)
{
	kern_block *b = p->b.block.at[p->b.block.n - 1];
	int32_t n = b->list.n;
	int64_t together = kern_parse_int(
		p, 2, KERN_MAX_TOGETHER, "the accesses that are one");

	if (lex_is(p->l, "together"))
		lex_unexpected(p->l, "a load or a store");
	(void)t;
	kern_parse_body(p);
	b->list.at[n]->together = (int32_t)together;
}

/* One statement. */
void kern_parse_body(struct kern_parser *p)
{
	static const struct {
		const char *word;
		void (*parse)(struct kern_parser *p, const lex_token *t);
	} words[] = {{"var", parse_var}, {"set", parse_set},
		{"store", parse_store}, {"stream", parse_store},
		{"for", parse_for}, {"if", parse_if}, {"block", parse_block},
		{"array", parse_array}, {"zero", parse_array},
		{"prefetch", parse_prefetch}, {"fence", parse_fence},
		{"reload", parse_reload},
		{"barrier", parse_barrier}, {"together", parse_together},
		{"turn", parse_turn}, {"mma", parse_mma}, {"tiles", parse_tiles}, {"take", parse_take},
		{"give", parse_give}, {"async", parse_async},
		{"commit", parse_commit}, {"wait", parse_wait},
		{"note", parse_note}};
	const lex_token *t = lex_peek(p->l);

	if (lex_is(p->l, "%")) {
		parse_let(p, t);
		return;
	}
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (lex_eat(p->l, words[i].word)) {
			words[i].parse(p, t);
			return;
		}
	lex_unexpected(p->l, "a statement or '}'");
}

/* ---- kernels ---- */

/* pN, which may be declared later */
static int32_t param_number(struct kern_parser *p)
{
	const lex_token *t = lex_take(p->l);
	int32_t n = 0;

	for (int32_t i = 1; i < t->n && n < 100000; i++)
		n = t->at[i] < '0' || t->at[i] > '9' ? 100000
						     : 10 * n + t->at[i] - '0';
	if (t->kind != LEX_NAME || t->at[0] != 'p' || t->n < 2 || n >= 100000)
		lex_fail(p->l, t, "syntax", "a param must be here, such as p0");
	return n;
}

static void parse_param(struct kern_parser *p)
{
	kern_array *r;
	int32_t i;

	if (p->k->array.n != p->k->n_params)
		lex_fail(p->l, lex_peek(p->l), "param",
			"params must be before `scratch` and `local` arrays");
	i = array(p, KERN_PARAM);
	r = &p->k->array.at[i];
	r->out = lex_eat(p->l, "out");
	if (!r->out)
		lex_need(p->l, "in");
	else if (i == p->k->n_outputs)
		p->k->n_outputs++;
	else
		lex_fail(p->l, lex_peek(p->l), "param",
			"results (`out`) must be before the other params");
	if (lex_eat(p->l, "inside"))
		r->in = 1 + param_number(p);
}

static void parse_room(struct kern_parser *p, kern_space space)
{
	int32_t i = array(p, space);

	if (lex_eat(p->l, "swizzled"))
		p->k->array.at[i].swizzled = (int32_t)kern_parse_int(
			p, KERN_SWIZZLED, 2 * KERN_SWIZZLED, "the elements of a row");
	lex_need(p->l, "at");
	p->k->array.at[i].offset = kern_parse_int(
		p, 0, (int64_t)1 << 48, "the first byte of an array");
}

static void parse_bytes(struct kern_parser *p)
{
	const int64_t most = (int64_t)1 << 50;

	lex_need(p->l, "scratch");
	p->k->scratch_bytes = (size_t)kern_parse_int(p, 0, most, "bytes");
	lex_need(p->l, ",");
	lex_need(p->l, "local");
	p->k->local_bytes = (size_t)kern_parse_int(p, 0, most, "bytes");
}

static void parse_check(struct kern_parser *p)
{
	kern_check *c;

	kern_parse_int(p, p->k->check.n + 1, p->k->check.n + 1,
		"the number of this check");
	lex_need(p->l, ":");
	c = vec_push(p->k->a, &p->k->check);
	*c = (kern_check){.tensor = -1};
	c->name = lex_name(p->l, "the name of a tensor");
	lex_need(p->l, "in");
	c->lo = lex_int(p->l, "a bound");
	lex_need(p->l, "..");
	c->hi = lex_int(p->l, "a bound");
	if (c->lo >= c->hi)
		lex_fail(p->l, lex_peek(p->l), "number",
			"the bounds of a check are empty: the first must not be larger");
}

static bool header(struct kern_parser *p)
{
	if (lex_eat(p->l, "param"))
		parse_param(p);
	else if (lex_eat(p->l, "scratch"))
		parse_room(p, KERN_SCRATCH);
	else if (lex_eat(p->l, "local"))
		parse_room(p, KERN_LOCAL);
	else if (lex_eat(p->l, "bytes"))
		parse_bytes(p);
	else if (lex_eat(p->l, "check"))
		parse_check(p);
	else if (lex_eat(p->l, "params"))
		lex_need(p->l, "overlap"), p->k->shared = true;
	else if (lex_eat(p->l, "indices"))
		lex_need(p->l, "i32"), p->k->narrow = true;
	else
		return false;
	return true;
}

static void phase(struct kern_parser *p)
{
	kern_kernel *k = p->k;
	int64_t chunks, warps = 1;
	int32_t copies = 0;

	if (k->n_phases == KERN_MAX_PHASES)
		lex_fail(p->l, lex_peek(p->l), "phase",
			"a kernel has at most %d phases", KERN_MAX_PHASES);
	lex_need(p->l, "phase");
	lex_need(p->l, "of");
	chunks = kern_parse_int(p, 1, INT32_MAX, "the number of chunks");
	lex_need(p->l, "chunks");
	if (lex_eat(p->l, "by")) {
		warps = kern_parse_int(
			p, 2, KERN_MAX_WARPS, "the warps of a block");
		lex_need(p->l, "warps");
	}
	if (lex_eat(p->l, ",")) {
		lex_need(p->l, "copies");
		copies = 1 + kern_parse_array(p);
	}
	kern_open_phase(&p->b, chunks, copies);
	kern_close(&p->b);
	k->phase[k->n_phases - 1].warps = (int32_t)warps;
	statements(p, &k->phase[k->n_phases - 1].body);
}

void kern_parse_kernel(lex *l, kern_kernel *k)
{
	struct kern_parser p = {.l = l,
		.k = k,
		.b = kern_build(k),
		.value = map_new(l->a),
		.array = map_new(l->a),
		.at = l->text,
		.line = l->base.line > 0 ? l->base.line : 1,
		.column = l->base.column > 0 ? l->base.column : 1};

	k->file = l->base.file;
	k->text = l->text;
	k->n_text = l->n_text;
	while (header(&p))
		;
	do
		phase(&p);
	while (lex_is(l, "phase"));
	lex_need(l, "}");
	kern_tidy(k);
}

kern_kernel *kern_parse(
	arena *a, const char *text, size_t n, const char *file)
{
	lex *l = lex_new(a, "kern", text, n, (loc){.file = file}, true);
	kern_kernel *k;

	lex_need(l, "kernel");
	(void)lex_int(l, "the number of a kernel");
	k = kern_new(a, lex_name(l, "the name of a kernel"));
	lex_need(l, "{");
	kern_parse_kernel(l, k);
	if (lex_peek(l)->kind != LEX_END)
		lex_unexpected(l, "the end of the text");
	return k;
}
