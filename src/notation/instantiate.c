/*
 * instantiate.c: instantiates a row for given shapes, dtypes and attributes.
 *
 * Consumes a parsed row and the types of the operands; produces an ir_inst:
 * letters with extents, tensors with types, equations over plain nodes. This
 * is shape inference, dtype inference and the expansion of packs in one walk
 * from left to right. Every failure is ROW.WHAT, where WHAT is the letter,
 * tensor, attribute or rule that fails.
 *
 *     reduce_sum on x f32[2,3], axes=[0]
 *     -> i_0 < 2, i_1 < 3;  o[i_1] += x[i_0, i_1];  o: f32[3]
 */
#include "notation/inst.h"

/* ---- operands ---- */

static bool in_class(const char *class, tn_dtype t)
{
	if (strcmp(class, "num") == 0)
		return t != TN_BOOL;
	if (strcmp(class, "float") == 0)
		return dtype_is_float(t);
	if (strcmp(class, "int") == 0)
		return dtype_is_int(t);
	if (strcmp(class, "bool") == 0)
		return t == TN_BOOL;
	return true;
}

static const char *class_text(const char *class)
{
	static const char *const text[][2] = {
		{"num", "a numeric dtype"},
		{"float", "a float dtype"},
		{"int", "an integer dtype"},
		{"bool", "dtype bool"},
	};

	for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
		if (strcmp(text[i][0], class) == 0)
			return text[i][1];
	return "another dtype";
}

static bool has_dtype_of_row(const row_param *p)
{
	const char *class = p->info.dtype_class;

	return strcmp(class, "num") == 0 || strcmp(class, "float") == 0;
}

/* The operand whose dtype the others must have. */
static const char *typed_before(const inst *u)
{
	int32_t i = 0;

	while (!u->r->param[i].info.is_operand ||
		!has_dtype_of_row(&u->r->param[i]))
		i++;
	return u->r->param[i].info.name;
}

static void check_type(inst *u, const row_param *p, const ir_type *t)
{
	const char *class = p->info.dtype_class, *name = p->info.name;

	if (!in_class(class, t->dtype))
		inst_fail(u, "dtype", "%s must have %s",
			inst_operand(u, name), class_text(class));
	if (!has_dtype_of_row(p))
		return;
	if (u->has_type && u->type != t->dtype)
		inst_fail(u, "dtype",
			"%s and %s differ in dtype: cast one explicitly",
			inst_operand(u, typed_before(u)), inst_operand(u, name));
	u->has_type = true;
	u->type = t->dtype;
}

static void add_operands(inst *u)
{
	int32_t k = 0;

	if (u->n_operands != u->r->n_operands)
		inst_fail(u, "operands", "it needs %d operand%s, not %d",
			u->r->n_operands, u->r->n_operands == 1 ? "" : "s",
			u->n_operands);
	for (int32_t i = 0; i < u->r->n_params; i++) {
		const row_param *p = &u->r->param[i];
		const ir_type *t = &u->operand[k];

		if (!p->info.is_operand)
			continue;
		if (t->rank < 0 || t->rank > TN_MAX_RANK ||
			shape_numel(t->shape, t->rank) < 0)
			inst_fail(u, p->info.name,
				"the shape of %s is not accepted",
				inst_operand(u, p->info.name));
		check_type(u, p, t);
		map_set_str(u->by_name, p->info.name, k);
		*vec_push(u->a, &u->tensor) = (in_tensor){
			.name = p->info.name,
			.type = *t,
			.operand = k++,
			.result = -1,
			.next_of = -1};
	}
}

/* ---- let, check, for: in order, before the equations ---- */

static void run_check(inst *u, const row_stmt *s)
{
	many m = inst_many(u, s->expr);
	const char *from = (s->at + 1)->at, *to = s->end->at + s->end->n;

	for (int32_t i = 0; i < m.n; i++)
		if (inst_entry(u, m, i) == 0) {
			if (m.is_list)
				inst_fail(u, "check",
					"%.*s does not hold for axis %d%s",
					(int)(to - from), from, i,
					inst_operands(u));
			inst_fail(u, "check", "%.*s does not hold%s",
				(int)(to - from), from, inst_operands(u));
		}
}

static void run_let(inst *u, const row_stmt *s)
{
	symbol v = {.name = s->name, .kind = SYM_LET, .is_bound = true};

	v.value = inst_many(u, s->expr);
	map_set_str(u->word, s->name, u->symbol.n);
	*vec_push(u->a, &u->symbol) = v;
}

void inst_prepare(inst *u, int32_t n, const row_stmt *s)
{
	for (int32_t i = 0; i < n; i++) {
		switch (s[i].kind) {
		case STMT_LET:
			run_let(u, &s[i]);
			break;
		case STMT_CHECK:
			run_check(u, &s[i]);
			break;
		case STMT_EQN:
			for (int32_t k = 0; k < s[i].n_fors; k++)
				inst_unify_for(u, &s[i].fors[k]);
			break;
		}
	}
}

/* ---- equations ---- */

static int32_t result_number(const ir_row *r, const char *name)
{
	for (int32_t i = 0; i < r->n_results; i++)
		if (strcmp(r->result[i].info.name, name) == 0)
			return i;
	return -1;
}

/* rm' is the next version of operand rm */
static int32_t next_of(const inst *u, const char *name)
{
	size_t n = strlen(name);

	for (int32_t i = 0; i < u->n_operands; i++) {
		const char *x = u->tensor.at[i].name;

		if (strlen(x) + 1 == n && name[n - 1] == '\'' &&
			memcmp(x, name, n - 1) == 0)
			return i;
	}
	return -1;
}

static void check_next(const inst *u, const in_tensor *t)
{
	const ir_type *old = &u->tensor.at[t->next_of].type;
	bool same = old->dtype == t->type.dtype && old->rank == t->type.rank;

	for (int32_t i = 0; same && i < old->rank; i++)
		same = old->shape[i] == t->type.shape[i];
	if (!same)
		inst_fail(u, t->name,
			"%s would be %s, but it is the next version of %s: "
			"both must have the same shape and dtype",
			t->name, row_type_text(u->a, &t->type),
			inst_tensor(u, &u->tensor.at[t->next_of]));
}

static int32_t add_tensor(
	inst *u, const char *name, tn_dtype dtype, const ir_type *shape)
{
	in_tensor t = {.name = name,
		.type = *shape,
		.operand = -1,
		.result = result_number(u->r, name),
		.next_of = next_of(u, name)};
	int32_t number = u->tensor.n;

	t.type.dtype = dtype;
	if (t.next_of >= 0 && t.result >= 0)
		check_next(u, &t);
	else
		t.next_of = -1;
	map_set_str(u->by_name, name, number);
	*vec_push(u->a, &u->tensor) = t;
	return number;
}

/* Evaluates the left side: its indices, and the shape that they span. */
static void eval_left(inst *u, const row_stmt *s, in_eqn *q, ir_type *shape)
{
	const in_node **v = arena_array(u->a, const in_node *, TN_MAX_RANK);
	int64_t old = map_get_str(u->by_name, s->out[0], -1);

	u->left_name = s->out[0];
	for (int32_t i = 0; i < s->n_left; i++) {
		many m = inst_many(u, s->left[i]);

		for (int32_t k = 0; k < m.n; k++) {
			if (q->n_left >= TN_MAX_RANK)
				inst_fail(u, s->out[0],
					"%s would have rank more than %d%s",
					s->out[0], TN_MAX_RANK,
					inst_operands(u));
			if (!inst_is_index(m.v[k]))
				inst_fail(u, s->out[0],
					"an index of %s is not an integer",
					s->out[0]);
			v[q->n_left++] = m.v[k];
		}
	}
	q->left = v;
	*shape = (ir_type){.rank = q->n_left};
	if (old >= 0) {
		*shape = u->tensor.at[old].type;
		if (shape->rank != q->n_left)
			inst_fail(u, s->out[0],
				"%s has rank %d, but %d indices are given here",
				s->out[0], shape->rank, q->n_left);
	}
	for (int32_t i = 0; old < 0 && i < q->n_left; i++)
		shape->shape[i] = inst_extent(u, v[i]);
	u->left_numel = shape_numel(shape->shape, shape->rank);
	if (u->left_numel < 0)
		inst_fail(u, "size", "%s would have more than 2^48 elements%s",
			s->out[0], inst_operands(u));
}

/* Converts a bool in a sum to a number, which only inside(..) allows. */
static typed count_inside(inst *u, const row_stmt *s, typed v)
{
	in_node *r;

	if (s->monoid != IR_SUM || !v.is_typed || v.n->dtype != TN_BOOL)
		return v;
	if (v.n->kind != IN_INSIDE || !u->has_type)
		inst_fail(u, "dtype", "truth values cannot be added: cast "
			"them to a number");
	r = inst_node(u, IN_CAST, u->type);
	r->arg[0] = v.n;
	v.n = r;
	return v;
}

static void check_element(inst *u, const row_stmt *s, tn_dtype t)
{
	bool truth = s->monoid == IR_AND || s->monoid == IR_OR;

	if (s->monoid != IR_SET && truth != (t == TN_BOOL))
		inst_fail(u, "dtype", "%s does not take %s%s",
			ir_monoid_at(s->monoid)->token, dtype_name(t),
			inst_operands(u));
}

/* The dtype of untyped values that are not combined with typed ones. */
static tn_dtype alone(inst *u, const row_stmt *s, typed v, int64_t old)
{
	if (old >= 0)
		return u->tensor.at[old].type.dtype;
	if (!inst_is_literal(v))
		return TN_I64;
	if (!u->has_type)
		inst_fail(u, "dtype",
			"%s is made of literals only: give its dtype with a "
			"cast",
			s->out[0]);
	return u->type;
}

/*
 * Evaluates the body of an equation with one result; returns the result's
 * dtype.
 */
static tn_dtype eval_single(
	inst *u, const row_stmt *s, const row_node *body, in_eqn *q)
{
	int64_t old = map_get_str(u->by_name, s->out[0], -1);
	typed v = count_inside(u, s, inst_value(u, body));
	tn_dtype t = v.is_typed ? v.n->dtype : alone(u, s, v, old);

	check_element(u, s, t);
	q->body[0] = inst_adapt(u, v, t);
	if (s->monoid == IR_SUM)
		q->body[0] = ir_term(q->body[0], t);
	if (old >= 0 && u->tensor.at[old].type.dtype != t)
		inst_fail(u, "dtype", "%s is %s, but its update is %s%s",
			s->out[0], dtype_name(u->tensor.at[old].type.dtype),
			dtype_name(t), inst_operands(u));
	return t;
}

/*
 * Evaluates the elements of a tuple monoid; literals get the component's dtype.
 */
static tn_dtype eval_tuple(
	inst *u, const row_stmt *s, const row_node *body, in_eqn *q)
{
	typed v[IR_MAX_COMP];
	tn_dtype t = TN_F32, want;
	bool found = false;

	for (int32_t k = 0; k < s->n_out; k++) {
		v[k] = inst_value(u, body->arg[k]);
		if (v[k].is_typed && !found) {
			t = v[k].n->dtype;
			found = true;
		}
	}
	if (!found)
		inst_fail(u, "dtype", "%s has an element of literals only: "
			"give its dtype with a cast",
			ir_monoid_at(s->monoid)->token);
	check_element(u, s, t);
	for (int32_t k = 0; k < s->n_out; k++) {
		bool wide = ir_monoid_at(s->monoid)->comp[k] == 'K';

		want = ir_monoid_acc(s->monoid, k, t);
		q->body[k] = inst_adapt(u, v[k], want);
		if (v[k].is_typed && v[k].n->dtype != t &&
			v[k].n->dtype != want &&
			!(wide && dtype_is_int(v[k].n->dtype)))
			inst_fail(u, "dtype",
				"component %d is %s, not %s%s", k,
				dtype_name(v[k].n->dtype), dtype_name(want),
				inst_operands(u));
	}
	return t;
}

/* ---- letters ---- */

struct seen {
	inst *u;
	VEC(int32_t) letter;
	bool is_in[INST_MAX_LETTERS];
};

static void collect(struct seen *c, const in_node *n)
{
	if (n == NULL)
		return;
	if (n->kind == IN_LETTER && !c->is_in[n->i]) {
		c->is_in[n->i] = true;
		*vec_push(c->u->a, &c->letter) = (int32_t)n->i;
	}
	for (int32_t i = 0; i < n->n_index; i++)
		collect(c, n->index[i]);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		collect(c, n->arg[i]);
}

/*
 * Finds the letters of the equation, those of the left side first; '=' has no
 * others.
 */
static void find_letters(inst *u, const row_stmt *s, in_eqn *q)
{
	struct seen *c = arena_make(u->a, struct seen);
	int64_t points = 1, empty = 1;
	int32_t n_left;

	c->u = u;
	for (int32_t i = 0; i < q->n_left; i++)
		collect(c, q->left[i]);
	n_left = c->letter.n;
	for (int32_t k = 0; k < q->n_out; k++)
		collect(c, q->body[k]);
	q->n_letters = c->letter.n;
	q->letters = c->letter.at;
	if (q->n_letters > IR_MAX_AXES)
		inst_fail(u, "letters", "an equation has more than %d axes",
			IR_MAX_AXES);
	for (int32_t i = 0; i < q->n_letters; i++) {
		const struct in_letter *l = &u->letter.at[q->letters[i]];

		if (i >= n_left && s->monoid == IR_SET && l->extent != 1)
			inst_fail(u, l->name,
				"%s occurs only on the right of '=': use += "
				"or another monoid to reduce over it",
				l->name);
		if (i >= n_left && l->extent == 0)
			empty = 0;
		if (l->extent > 0 && (!mul_ok(points, l->extent, &points) ||
				points > (int64_t)1 << 60))
			inst_fail(u, "size",
				"an equation would have more than 2^60 points%s",
				inst_operands(u));
	}
	if (empty == 0 && u->left_numel > 0 && !q->is_update &&
		(s->monoid == IR_ARGMAX || s->monoid == IR_ARGMIN))
		inst_fail(u, "empty", "there is no largest or smallest of no "
			"elements%s",
			inst_operands(u));
}

/* ---- scans ---- */

struct self {
	inst *u;
	in_eqn *q;
	int32_t out;
	int32_t axis, step; /* step 0: not found yet */
	bool found;
};

static _Noreturn void bad_scan(const struct self *c)
{
	inst_fail(c->u, "scan",
		"a scan must read %s at the index of its left side, with one "
		"letter shifted by constants of one sign",
		c->u->tensor.at[c->out].name);
}

/* index = left + shift? */
static bool shift_of(const in_node *left, const in_node *index, int64_t *shift)
{
	*shift = 0;
	if (ir_same(left, index))
		return true;
	if ((index->kind != IN_ADD && index->kind != IN_SUB) ||
		!ir_same(left, index->arg[0]) ||
		index->arg[1]->kind != IN_INT)
		return false;
	*shift = index->kind == IN_ADD ? index->arg[1]->i : -index->arg[1]->i;
	return *shift != 0;
}

static void self_read(struct self *c, const in_node *n)
{
	bool shifted = false;

	c->found = true;
	if (n->flat)
		bad_scan(c);
	for (int32_t i = 0; i < n->n_index; i++) {
		int64_t shift;
		int32_t step;

		if (!shift_of(c->q->left[i], n->index[i], &shift))
			bad_scan(c);
		if (shift == 0)
			continue;
		step = shift < 0 ? 1 : -1;
		if (shifted || (c->step != 0 &&
				       (step != c->step || i != c->axis)))
			bad_scan(c);
		shifted = true;
		c->axis = i;
		c->step = step;
	}
	if (!shifted || c->q->left[c->axis]->kind != IN_LETTER)
		bad_scan(c);
}

static void find_self(struct self *c, const in_node *n)
{
	if (n == NULL)
		return;
	if (n->kind == IN_READ && n->tensor == c->out)
		self_read(c, n);
	for (int32_t i = 0; i < n->n_index; i++)
		find_self(c, n->index[i]);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		find_self(c, n->arg[i]);
}

static void find_scan(inst *u, in_eqn *q)
{
	struct self c = {.u = u, .q = q, .out = q->out[0]};

	q->scan_axis = q->scan_letter = -1;
	if (q->monoid != IR_SET)
		return;
	find_self(&c, q->body[0]);
	if (!c.found)
		return;
	q->is_scan = true;
	q->scan_axis = c.axis;
	q->scan_step = c.step;
	q->scan_letter = (int32_t)q->left[c.axis]->i;
}

/* ---- an equation ---- */

static bool reads_self(const row_node *e, const char *name)
{
	if (e->kind == RN_READ && strcmp(e->name, name) == 0)
		return true;
	for (int32_t i = 0; i < e->n; i++)
		if (reads_self(e->arg[i], name))
			return true;
	return false;
}

/*
 * The dtype of a scan's result, which is needed before its body is evaluated.
 */
static tn_dtype scan_type(const inst *u, const char *name)
{
	if (!u->has_type)
		inst_fail(u, "dtype",
			"the scan %s needs an operand of class num or float, "
			"which gives its dtype",
			name);
	return u->type;
}

static void run_eqn(inst *u, const row_stmt *s)
{
	in_eqn q = {.n_out = s->n_out, .monoid = s->monoid};
	int64_t old = map_get_str(u->by_name, s->out[0], -1);
	const row_node *body = s->expr;
	ir_type shape;
	tn_dtype t;

	if (old >= 0 && u->tensor.at[old].operand >= 0)
		inst_fail(u, s->out[0], "an equation cannot write an operand");
	if (old >= 0 && (s->monoid == IR_SET || s->n_out > 1))
		inst_fail(u, s->out[0],
			"%s has an equation already: a further one must "
			"update it with += or another monoid",
			s->out[0]);
	q.is_update = old >= 0;
	eval_left(u, s, &q, &shape);
	if (body->kind == RN_ELSE && body->arg[1]->kind == RN_SKIP) {
		q.skip = true;
		body = body->arg[0];
	}
	if (s->monoid == IR_SET && reads_self(body, s->out[0])) {
		q.out[0] = add_tensor(u, s->out[0],
			scan_type(u, s->out[0]), &shape);
		t = eval_single(u, s, body, &q);
	} else {
		t = s->n_out > 1 ? eval_tuple(u, s, body, &q)
				 : eval_single(u, s, body, &q);
		for (int32_t k = 0; k < s->n_out; k++)
			q.out[k] = old >= 0 ? (int32_t)old
					    : add_tensor(u, s->out[k],
						      s->monoid == IR_SET
							      ? t
							      : ir_monoid_result(
									s->monoid,
									k, t),
						      &shape);
	}
	find_letters(u, s, &q);
	find_scan(u, &q);
	*vec_push(u->a, &u->eqn) = q;
}

void inst_eqns(inst *u, int32_t n, const row_stmt *s)
{
	for (int32_t i = 0; i < n; i++)
		if (s[i].kind == STMT_EQN)
			run_eqn(u, &s[i]);
}

/* ---- the whole ---- */

static void opaque_attrs(inst *u, ir_inst *out)
{
	VEC(int64_t) v = {0};

	for (int32_t i = 0; i < u->symbol.n; i++) {
		symbol *s = &u->symbol.at[i];
		int64_t bits;

		if (s->kind != SYM_ATTR)
			continue;
		inst_attr(u, s);
		s = &u->symbol.at[i];
		if (s->is_dtype) {
			*vec_push(u->a, &v) = (int64_t)s->dtype;
			continue;
		}
		if (s->value.is_list)
			*vec_push(u->a, &v) = s->value.n;
		for (int32_t k = 0; k < s->value.n; k++) {
			const in_node *n = s->value.v[k];

			bits = n->i;
			if (strcmp(s->param->info.kind, "real") == 0) {
				double f = inst_f64(n);

				memcpy(&bits, &f, sizeof bits);
			}
			*vec_push(u->a, &v) = bits;
		}
	}
	out->n_opaque_attr = v.n;
	out->opaque_attr = v.at;
}

static ir_inst *finish(inst *u)
{
	ir_inst *out = arena_make(u->a, ir_inst);
	int32_t *result = arena_array(u->a, int32_t, u->r->n_results + 1);

	for (int32_t i = 0; i < u->tensor.n; i++)
		if (u->tensor.at[i].result >= 0)
			result[u->tensor.at[i].result] = i;
	for (int32_t i = 0; i < u->symbol.n; i++)
		if (u->symbol.at[i].kind == SYM_ATTR)
			/* checks attributes that are not used */
			inst_attr(u, &u->symbol.at[i]);
	out->row = u->r;
	out->n_letters = u->letter.n;
	out->letter = u->letter.at;
	out->n_tensors = u->tensor.n;
	out->tensor = u->tensor.at;
	out->n_results = u->r->n_results;
	out->result = result;
	out->n_eqns = u->eqn.n;
	out->eqn = u->eqn.at;
	if (u->r->is_opaque) {
		out->opaque = ir_opaque_find(u->r->name);
		if (out->opaque == NULL)
			inst_fail(u, "opaque", "there is no C function for it");
		opaque_attrs(u, out);
		inst_batch(u, out);
	}
	return out;
}

inst *inst_begin(arena *a, const ir_row *r, int32_t n_operands,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at)
{
	inst *u = arena_make(a, inst);

	*u = (inst){.a = a,
		.e = arena_env(a),
		.r = r,
		.at = at,
		.n_operands = n_operands,
		.operand = operand,
		.shown = shown,
		.word = map_new(a),
		.by_name = map_new(a),
		.left_name = ""};
	add_operands(u);
	inst_attrs(u, n_attrs, attr);
	inst_unify_operands(u);
	inst_prepare(u, r->n_stmts, r->stmt);
	return u;
}

ir_inst *ir_instantiate(arena *a, const ir_table *t, const ir_row *r,
	int32_t n_operands, const ir_type *operand, const char *const *shown,
	int32_t n_attrs, const ir_attr *attr, loc at)
{
	const ir_row *asked = r;
	bool built = r->builder != NULL;
	ir_inst *out;
	inst *u;

	if (built)
		r = row_built(t, r, n_operands, operand, shown, n_attrs, attr,
			at);
	/* the attributes of a built row are in its text */
	u = inst_begin(a, r, n_operands, operand, shown, built ? 0 : n_attrs,
		attr, at);
	if (r->is_opaque)
		inst_unify_results(u);
	inst_eqns(u, r->n_stmts, r->stmt);
	out = finish(u);
	out->asked = asked;
	out->n_attrs = n_attrs;
	out->attr = row_copy_attrs(a, attr, n_attrs);
	return out;
}
