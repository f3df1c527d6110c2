/*
 * system_parse.c: parses the text of system_print.c: tensors and equations.
 * expr_parse.c parses their expressions.
 *
 * Consumes untrusted text; throws system.* with a caret. Each part is checked when
 * it is read, and the verifier runs at the end. A parsed system prints as the
 * text that it was printed from.
 */
#include "notation/lex.h"
#include "system/local.h"
#include "system_parse.h"

/* ---- equations ---- */

/* i:4, t:5 up, ... up to the closing token, which is not consumed */
static void parse_axes(sys_parser *p, sys_eqn *e, const char **names,
	int64_t *extent, axis_kind kind)
{
	do {
		const lex_token *at = lex_peek(p->l);
		sys_axis *axis = &e->axis[e->n_axes];

		sys_fail_if(p, e->n_axes >= IR_MAX_AXES, at, "axes",
			"an equation has more axes than are accepted");
		axis->name = lex_name(p->l, "an axis");
		axis->kind = kind;
		lex_need(p->l, ":");
		axis->extent = lex_int(p->l, "an extent");
		sys_fail_if(p, axis->extent < 1, at, "axes",
			"an axis must have at least one element");
		for (int32_t i = 0; i < e->n_axes; i++)
			sys_fail_if(p, strcmp(names[i], axis->name) == 0, at,
				"axes", "two axes have one name");
		if (kind == AXIS_P &&
			(lex_is(p->l, "up") || lex_is(p->l, "down"))) {
			sys_fail_if(p, e->scan_axis >= 0, at, "axes",
				"an equation can have one scan axis");
			axis->kind = AXIS_S;
			e->scan_axis = e->n_axes;
			e->scan_step = lex_eat(p->l, "up") ? 1 : -1;
			if (e->scan_step < 0)
				lex_need(p->l, "down");
		}
		names[e->n_axes] = axis->name;
		extent[e->n_axes] = axis->extent;
		e->n_axes++;
	} while (lex_eat(p->l, ","));
}

static void parse_results(sys_parser *p, sys_eqn *e)
{
	bool tuple = lex_eat(p->l, "(");

	do {
		const lex_token *at = lex_peek(p->l);

		sys_fail_if(p, e->n_out >= IR_MAX_OUT, at, "syntax",
			"too many results");
		e->out[e->n_out++] = sys_find_tensor(p, lex_take(p->l));
		sys_fail_if(p, p->s->tensor.at[e->out[e->n_out - 1]].eqn >= 0 ||
				p->s->tensor.at[e->out[e->n_out - 1]].is_input,
			at, "name", "another equation computes this tensor already");
		for (int32_t k = 0; k + 1 < e->n_out; k++)
			sys_fail_if(p, e->out[k] == e->out[e->n_out - 1], at,
				"name", "a tensor occurs twice");
	} while (tuple && lex_eat(p->l, ","));
	if (tuple)
		lex_need(p->l, ")");
}

/* The batch, one axis of each operand and each result: "(0, 0), (2, 2)". */
static void parse_batch(sys_parser *p, sys_eqn *e)
{
	VEC(int32_t) v = {0};
	int32_t n = e->n_opaque_in + e->n_out;

	do {
		lex_need(p->l, "(");
		for (int32_t t = 0; t < n; t++) {
			const lex_token *at;
			int32_t tensor = t < e->n_opaque_in
				? e->opaque_in[t]
				: e->out[t - e->n_opaque_in];
			int64_t axis;

			if (t > 0)
				lex_need(p->l, ",");
			at = lex_peek(p->l);
			axis = lex_int(p->l, "an axis");
			sys_fail_if(p, axis < 0 ||
					axis >= p->s->tensor.at[tensor].rank,
				at, "axes", "the tensor does not have this axis");
			*vec_push(p->s->a, &v) = (int32_t)axis;
		}
		lex_need(p->l, ")");
	} while (lex_eat(p->l, ","));
	e->n_batch = v.n / n;
	e->batch = v.at;
}

static void parse_opaque(sys_parser *p, sys_eqn *e)
{
	VEC(int32_t) in = {0};
	VEC(int64_t) attr = {0};
	const lex_token *at = lex_peek(p->l);
	const char *name = lex_name(p->l, "an opaque operation");

	e->opaque = ir_opaque_find(name);
	sys_fail_if(p, e->opaque == NULL, at, "name", "there is no such opaque "
		"operation");
	lex_need(p->l, "(");
	while (!lex_is(p->l, ")") && !lex_is(p->l, ";")) {
		*vec_push(p->s->a, &in) = sys_find_tensor(p, lex_take(p->l));
		if (!lex_eat(p->l, ","))
			break;
	}
	e->n_opaque_in = in.n;
	e->opaque_in = in.at;
	while (lex_eat(p->l, ";")) {
		if (lex_eat(p->l, "each")) {
			parse_batch(p, e);
			break;
		}
		do
			*vec_push(p->s->a, &attr) =
				lex_int(p->l, "an attribute");
		while (lex_eat(p->l, ","));
	}
	lex_need(p->l, ")");
	e->n_opaque_attr = attr.n;
	e->opaque_attr = attr.at;
}

static void parse_tuple(sys_parser *p, int32_t n, const expr **out)
{
	if (n > 1)
		lex_need(p->l, "(");
	for (int32_t k = 0; k < n; k++) {
		if (k > 0)
			lex_need(p->l, ",");
		out[k] = sys_parse_expr(p);
	}
	if (n > 1)
		lex_need(p->l, ")");
}

static int32_t parse_monoid(sys_parser *p, int32_t n_out)
{
	const lex_token *at = lex_peek(p->l);

	if (lex_eat(p->l, "="))
		return IR_SET;
	for (int32_t m = 0; m < ir_monoid_n(); m++) {
		const ir_monoid *row = ir_monoid_at(m);

		if (lex_eat(p->l, row->token) ||
			(lex_is(p->l, row->name) && lex_is2(p->l, 1, "=") &&
				lex_take(p->l) && lex_eat(p->l, "="))) {
			sys_fail_if(p, row->n_comp != n_out, at, "syntax",
				"the number of results differs from the "
				"number of components");
			return m;
		}
	}
	lex_unexpected(p->l, "'=' or a monoid");
}

/*
 * Reduced axes are after the body, which needs them: skips the body to read them
 * first.
 */
static int32_t skip_body(sys_parser *p)
{
	int32_t here = p->l->next, depth = 0, found;

	while (lex_peek(p->l)->kind != LEX_END) {
		if (lex_is(p->l, "(") || lex_is(p->l, "["))
			depth++;
		else if (lex_is(p->l, ")") || lex_is(p->l, "]"))
			depth--;
		else if (depth == 0 &&
			(lex_is(p->l, "for") || lex_is(p->l, "from") ||
				lex_is(p->l, "return") || lex_is(p->l, "}") ||
				lex_is2(p->l, 2, "#")))
			break;
		lex_take(p->l);
	}
	found = p->l->next;
	p->l->next = here;
	return found;
}

static void parse_init(sys_parser *p, sys_eqn *e)
{
	static const char *const at[] = {"at"};

	if (e->push != NULL) {
		int64_t *numel = arena_array(p->s->a, int64_t, 1);

		*numel = p->s->tensor.at[e->out[0]].numel;
		p->in.dom.box = (ix_box){.n = 1, .extent = numel};
		p->in.n_names = 1;
		p->in.names = at;
	} else {
		p->in.dom.box.n = e->n_left;
		p->in.n_names = e->n_left;
	}
	parse_tuple(p, e->n_out, e->init);
}

static void parse_pull(sys_parser *p, sys_eqn *e)
{
	const char **names = arena_array(p->s->a, const char *, IR_MAX_AXES);
	int64_t *extent = arena_array(p->s->a, int64_t, IR_MAX_AXES);
	int32_t push = -1, body, end;

	if (lex_eat(p->l, "{")) {
		push = p->l->next;
		while (!lex_is(p->l, "}") && lex_peek(p->l)->kind != LEX_END)
			lex_take(p->l);
		lex_need(p->l, "}");
	}
	sys_fail_if(p, e->n_out > IR_MAX_COMP, lex_peek(p->l), "syntax",
		"an equation can make at most three tensors");
	lex_need(p->l, "[");
	if (!lex_is(p->l, "]"))
		parse_axes(p, e, names, extent, AXIS_P);
	lex_need(p->l, "]");
	e->n_left = e->n_axes;
	e->monoid = parse_monoid(p, e->n_out);
	body = p->l->next;
	p->l->next = skip_body(p);
	if (lex_eat(p->l, "for"))
		parse_axes(p, e, names, extent, AXIS_R);
	end = p->l->next;
	p->in.dom.box = (ix_box){.n = e->n_axes, .extent = extent};
	p->in.n_names = e->n_axes;
	p->in.names = names;
	if (push >= 0) {
		p->l->next = push;
		e->push = sys_parse_form(p);
		if (!lex_is(p->l, "}"))
			lex_unexpected(p->l, "'}'");
	}
	p->l->next = body;
	parse_tuple(p, e->n_out, e->body);
	if (p->l->next < end && !lex_is(p->l, "for"))
		lex_unexpected(p->l, "'for' or 'from'");
	p->l->next = end;
	if (lex_eat(p->l, "from"))
		parse_init(p, e);
}

static const char *parse_label(sys_parser *p)
{
	const char *name = lex_name(p->l, "a label");

	return strcmp(name, "_") == 0 ? NULL : name;
}

static void parse_eqn(sys_parser *p)
{
	sys_eqn e = {.monoid = IR_SET, .scan_axis = -1};
	const lex_token *at = lex_peek(p->l);

	e.label = parse_label(p);
	e.op = parse_label(p);
	lex_need(p->l, "#");
	e.call = (int32_t)lex_int(p->l, "the number of a call");
	lex_need(p->l, ":");
	parse_results(p, &e);
	if (lex_is(p->l, "=") && lex_is2(p->l, 1, "opaque") &&
		lex_is2(p->l, 3, "(")) {
		lex_need(p->l, "=");
		lex_need(p->l, "opaque");
		parse_opaque(p, &e);
	} else {
		parse_pull(p, &e);
	}
	sys_fail_if(p, p->s->eqn.n >= 1 << 24, at, "size", "too many equations");
	ir_add_eqn(p->s, &e);
}

/* ---- tensors ---- */

static void parse_shape(sys_parser *p, int32_t *rank, int64_t *shape)
{
	*rank = 0;
	lex_need(p->l, "[");
	while (!lex_is(p->l, "]")) {
		const lex_token *at = lex_peek(p->l);

		sys_fail_if(p, *rank >= TN_MAX_RANK, at, "shape",
			"the rank is more than 8");
		shape[*rank] = lex_int(p->l, "an extent");
		sys_fail_if(p, shape[(*rank)++] < 0, at, "shape",
			"an extent is negative");
		if (!lex_eat(p->l, ","))
			break;
	}
	lex_need(p->l, "]");
}

static void parse_tensor(sys_parser *p)
{
	const lex_token *at = lex_peek(p->l);
	const char *name = lex_name(p->l, "a tensor");
	int64_t shape[TN_MAX_RANK] = {0};
	int32_t rank, number;
	tn_dtype t;

	sys_fail_if(p, map_get_str(p->in.tensor, name, -1) >= 0, at, "name",
		"two tensors have one name");
	lex_need(p->l, ":");
	t = sys_parse_dtype(p);
	parse_shape(p, &rank, shape);
	sys_fail_if(p, shape_numel(shape, rank) < 0, at, "shape",
		"the tensor has more than 2^48 elements");
	number = ir_add_tensor(p->s, name, t, rank, shape);
	map_set_str(p->in.tensor, name, number);
	if (lex_eat(p->l, "input")) {
		const lex_token *place = lex_peek(p->l);
		int64_t k = lex_int(p->l, "the number of an input");

		sys_fail_if(p, k < 0 || k > 1 << 20, place, "number",
			"the number of an input must be 0 to 1048576");
		while (p->s->input.n <= k)
			*vec_push(p->s->a, &p->s->input) = -1;
		sys_fail_if(p, p->s->input.at[k] >= 0, place, "number",
			"another tensor is this input already");
		p->s->input.at[k] = number;
		p->s->tensor.at[number].is_input = true;
	}
	if (lex_eat(p->l, "storage"))
		p->s->tensor.at[number].storage =
			(int32_t)lex_int(p->l, "the number of a storage");
}

ir_system *ir_system_parse(
	arena *a, ix *x, const char *text, size_t n, const char *file)
{
	sys_parser p = {.in = {.tensor = map_new(a)}};

	p.l = lex_new(a, "system", text, n, (loc){.file = file}, true);
	p.s = ir_system_new(a, x);
	lex_need(p.l, "system");
	lex_need(p.l, "{");
	while (lex_is2(p.l, 1, ":"))
		parse_tensor(&p);
	for (int32_t i = 0; i < p.s->input.n; i++)
		sys_fail_if(&p, p.s->input.at[i] < 0, lex_peek(p.l), "number",
			"an input is missing");
	while (!lex_is(p.l, "return"))
		parse_eqn(&p);
	lex_need(p.l, "return");
	while (!lex_is(p.l, "}")) {
		int32_t t = sys_find_tensor(&p, lex_take(p.l));

		*vec_push(a, &p.s->output) = t;
		p.s->tensor.at[t].is_output = true;
		if (!lex_eat(p.l, ","))
			break;
	}
	lex_need(p.l, "}");
	sys_check(p.s, TN_EINVAL);
	return p.s;
}
