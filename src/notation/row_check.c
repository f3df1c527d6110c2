/*
 * row_check.c: checks the names in a row.
 *
 * Consumes a parsed row; throws notation.name, .letter, .tensor, .call, .result
 * and .arity with a caret. Guarantees for instantiate.c: every letter is bound
 * by an operand or a `for`, and every tensor that is read is an operand or
 * computed by an earlier equation (in a scan: by the same one).
 */
#include "notation/row.h"


enum { IS_LETTER = 1, IS_PACK, IS_ATTR, IS_LET };

struct names {
	const ir_row *r;
	map *word;   /* kinds of words: letters, packs, attributes, lets */
	map *tensor; /* operands, and tensors of the equations so far */
};

static void add_word(
	struct names *c, const char *name, int64_t what, const lex_token *at)
{
	int64_t old = map_get_str(c->word, name, 0);

	if (old != 0 && (old != what || what > IS_PACK))
		lex_fail(c->r->l, at, "name",
			"%s is used twice in this row: the names of letters, "
			"attributes and let must differ",
			name);
	map_set_str(c->word, name, what);
}

/* ---- expressions ---- */

static void check_node(const struct names *c, const row_node *e);

static void check_all(const struct names *c, const row_node *e, int32_t from)
{
	for (int32_t i = from; i < e->n; i++)
		check_node(c, e->arg[i]);
}

static void check_word(const struct names *c, const row_node *e)
{
	int64_t what = map_get_str(c->word, e->name, 0);

	if (e->kind == RN_PACK) {
		if (what != IS_PACK)
			lex_fail(c->r->l, e->at, "letter",
				"%s.. has no extents: no operand and no 'for' "
				"binds it",
				e->name);
		return;
	}
	if (what == IS_PACK)
		lex_fail(c->r->l, e->at, "letter",
			"%s stands for several axes: write %s..", e->name,
			e->name);
	if (what == 0 && strcmp(e->name, "pos") != 0)
		lex_fail(c->r->l, e->at, "letter",
			"%s has no extent: no operand and no 'for' binds it",
			e->name);
}

/* D of cast(e, D): a dtype, an attribute, a tensor or acc */
static void check_dtype(const struct names *c, const row_node *e)
{
	tn_dtype t;

	if (e->kind != RN_NAME)
		lex_fail(c->r->l, e->at, "dtype",
			"cast needs a dtype, an attribute of kind dtype, a "
			"tensor or acc");
	if (strcmp(e->name, "acc") != 0 &&
		!dtype_parse(e->name, strlen(e->name), &t) &&
		map_get_str(c->word, e->name, 0) != IS_ATTR &&
		map_get_str(c->tensor, e->name, 0) == 0)
		lex_fail(c->r->l, e->at, "dtype",
			"%s is not a dtype, attribute or tensor of this row",
			e->name);
}

static void check_call(const struct names *c, const row_node *e)
{
	/*
	 * functions that are not scalar functions: name, least and largest
	 * number of arguments
	 */
	static const struct {
		const char *name;
		int32_t least, most;
	} own[] = {{"cast", 2, 2}, {"inside", 1, 1}, {"stop", 1, 1},
		{"size", 1, 1}, {"len", 1, 1}, {"each", 2, 2},
		{"clamp", 2, 2}};
	int32_t fn = ir_scalar_find(e->name, strlen(e->name));
	int32_t least = -1, most = -1;

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strcmp(own[i].name, e->name) == 0) {
			least = own[i].least;
			most = own[i].most;
		}
	if (least < 0 && fn >= 0)
		least = most = ir_scalar_at(fn)->n_args;
	if (least < 0)
		lex_fail(c->r->l, e->at, "call", "there is no function %s", e->name);
	if (e->n < least || e->n > most)
		lex_fail(c->r->l, e->at, "arity", "%s takes %d argument%s, not %d",
			e->name, least, least == 1 ? "" : "s", e->n);
	if (strcmp(e->name, "cast") == 0) {
		check_node(c, e->arg[0]);
		check_dtype(c, e->arg[1]);
		return;
	}
	if (strcmp(e->name, "inside") == 0 && e->arg[0]->kind != RN_READ)
		lex_fail(c->r->l, e->arg[0]->at, "call", "inside needs a read");
	check_all(c, e, 0);
}

static void check_node(const struct names *c, const row_node *e)
{
	switch (e->kind) {
	case RN_INT:
	case RN_REAL:
	case RN_STAR:
		break;
	case RN_NAME:
	case RN_PACK:
		check_word(c, e);
		break;
	case RN_READ:
		if (map_get_str(c->tensor, e->name, 0) == 0)
			lex_fail(c->r->l, e->at, "tensor",
				"there is no tensor %s here: it is neither an "
				"operand nor the result of an earlier equation",
				e->name);
		check_all(c, e, 0);
		break;
	case RN_CALL:
		check_call(c, e);
		break;
	case RN_SKIP:
		lex_fail(c->r->l, e->at, "syntax",
			"skip may stand only at the end of an update: E else "
			"skip");
	case RN_SIZE:
	case RN_PICK:
	case RN_DROP:
	case RN_NEG:
	case RN_BINARY:
	case RN_COND:
	case RN_WHERE:
	case RN_ELSE:
	case RN_TUPLE:
	case RN_LIST:
		check_all(c, e, 0);
		break;
	}
}

/* ---- definitions of names ---- */

static void bind_pats(struct names *c, int32_t n, const row_pat *p)
{
	for (int32_t i = 0; i < n; i++) {
		if (p[i].kind == PAT_COMP)
			bind_pats(c, p[i].n, p[i].sub);
		else if (p[i].kind != PAT_INT)
			add_word(c, p[i].name,
				p[i].kind == PAT_LETTER ? IS_LETTER : IS_PACK,
				p[i].at);
	}
}

static void check_pats(struct names *c, int32_t n, const row_pat *p)
{
	for (int32_t i = 0; i < n; i++) {
		if (p[i].extent != NULL)
			check_node(c, p[i].extent);
		check_pats(c, p[i].n, p[i].sub);
	}
}

static void bind_fors(struct names *c, int32_t n, const row_stmt *s)
{
	for (int32_t i = 0; i < n; i++)
		for (int32_t k = 0; k < s[i].n_fors; k++)
			add_word(c, s[i].fors[k].name,
				s[i].fors[k].is_pack ? IS_PACK : IS_LETTER,
				s[i].fors[k].at);
}

static void check_eqn(struct names *c, const row_stmt *s)
{
	const row_node *body = s->expr;

	for (int32_t k = 0; k < s->n_fors; k++)
		check_node(c, s->fors[k].extent);
	for (int32_t k = 0; k < s->n_left; k++)
		check_node(c, s->left[k]);
	/* a scan reads its own result */
	if (s->monoid == IR_SET)
		map_set_str(c->tensor, s->out[0], 1);
	if (body->kind == RN_ELSE && body->arg[1]->kind == RN_SKIP) {
		if (map_get_str(c->tensor, s->out[0], 0) == 0 ||
			s->monoid == IR_SET)
			lex_fail(c->r->l, body->at, "syntax",
				"skip is only for updates, and no earlier "
				"equation makes %s",
				s->out[0]);
		check_node(c, body->arg[0]);
	} else {
		check_node(c, body);
	}
	for (int32_t k = 0; k < s->n_out; k++)
		map_set_str(c->tensor, s->out[k], 1);
}

static void check_stmts(struct names *c, int32_t n, const row_stmt *s)
{
	for (int32_t i = 0; i < n; i++) {
		switch (s[i].kind) {
		case STMT_LET:
			check_node(c, s[i].expr);
			add_word(c, s[i].name, IS_LET, s[i].at);
			break;
		case STMT_CHECK:
			check_node(c, s[i].expr);
			break;
		case STMT_EQN:
			check_eqn(c, &s[i]);
			break;
		}
	}
}

static void check_params(struct names *c)
{
	const ir_row *r = c->r;
	static const char *const words[] = {"all", "reverse"};
	tn_dtype t;

	for (int32_t i = 0; i < r->n_params; i++) {
		const row_param *p = &r->param[i];

		if (p->info.is_operand) {
			if (map_get_str(c->tensor, p->info.name, 0) != 0)
				lex_fail(c->r->l, p->at, "name",
					"two operands are named %s",
					p->info.name);
			map_set_str(c->tensor, p->info.name, 1);
			bind_pats(c, p->n_pats, p->pat);
		} else {
			add_word(c, p->info.name, IS_ATTR, p->at);
		}
	}
	for (int32_t i = 0; i < r->n_params; i++) {
		const row_param *p = &r->param[i];
		const row_node *d = p->by_default;

		check_pats(c, p->n_pats, p->pat);
		if (p->along != NULL && map_get_str(c->word, p->along, 0) != IS_ATTR)
			lex_fail(c->r->l, p->at, "name", "there is no attribute %s",
				p->along);
		if (d != NULL && d->kind == RN_NAME &&
			(strcmp(d->name, words[0]) == 0 ||
				strcmp(d->name, words[1]) == 0 ||
				dtype_parse(d->name, strlen(d->name), &t)))
			continue;
		if (d != NULL)
			check_node(c, d);
	}
}

static bool is_made(const ir_row *r, const char *name)
{
	for (int32_t i = 0; i < r->n_stmts; i++)
		for (int32_t k = 0; k < r->stmt[i].n_out; k++)
			if (strcmp(r->stmt[i].out[k], name) == 0)
				return true;
	return false;
}

/* The dtype of a result of an opaque row may be an attribute. */
static void check_dtype_of(struct names *c, const row_param *result)
{
	const ir_row *r = c->r;

	if (result->dtype_of == NULL)
		return;
	for (int32_t i = 0; i < r->n_params; i++)
		if (!r->param[i].info.is_operand &&
			!strcmp(r->param[i].info.name, result->dtype_of) &&
			!strcmp(r->param[i].info.kind, "dtype"))
			return;
	lex_fail(r->l, result->at, "dtype", "%s is neither a dtype nor an "
		"attribute of kind dtype", result->dtype_of);
}

static void check_results(struct names *c)
{
	const ir_row *r = c->r;

	for (int32_t i = 0; i < r->n_results; i++) {
		const row_param *p = &r->result[i];

		for (int32_t k = 0; k < i; k++)
			if (strcmp(r->result[k].info.name, p->info.name) == 0)
				lex_fail(c->r->l, p->at, "name",
					"two results are named %s",
					p->info.name);
		check_dtype_of(c, p);
		if (!r->is_opaque && !is_made(r, p->info.name))
			lex_fail(c->r->l, p->at, "result", "no equation makes %s",
				p->info.name);
	}
	for (int32_t i = 0; r->is_opaque && i < r->n_stmts; i++)
		if (r->stmt[i].kind == STMT_EQN)
			lex_fail(r->l, r->stmt[i].at, "syntax",
				"an opaque row cannot have equations");
}

/*
 * Defines the names of the grad block: gx of every operand and go of every
 * result.
 */
static void add_gradients(struct names *c)
{
	const ir_row *r = c->r;

	for (int32_t i = 0; i < r->n_results; i++) {
		map_set_str(c->tensor,
			arena_printf(r->l->a, "g%s", r->result[i].info.name),
			1);
		map_set_str(c->tensor, r->result[i].info.name, 1);
	}
}

void row_check(const ir_row *r)
{
	struct names c = {.r = r,
		.word = map_new(r->l->a),
		.tensor = map_new(r->l->a)};

	if (r->n_operands > IR_MAX_OPERANDS)
		lex_fail(r->l, &r->l->token[0], "arity",
			"a row can have at most %d operands", IR_MAX_OPERANDS);
	bind_fors(&c, r->n_stmts, r->stmt);
	for (int32_t i = 0; i < r->n_results; i++)
		bind_pats(&c, r->result[i].n_pats, r->result[i].pat);
	check_params(&c);
	for (int32_t i = 0; i < r->n_results; i++)
		check_pats(&c, r->result[i].n_pats, r->result[i].pat);
	check_stmts(&c, r->n_stmts, r->stmt);
	check_results(&c);
	bind_fors(&c, r->n_grads, r->grad);
	add_gradients(&c);
	check_stmts(&c, r->n_grads, r->grad);
}
