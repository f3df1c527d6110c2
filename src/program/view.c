/*
 * view.c: views (rows that only move elements), and writes through them.
 *
 * Decides which calls are views: each result has one equation `=` whose body is
 * a read of the first operand. Builds the instance of a write: the next version
 * of a value, with the elements of a view of it replaced.
 *
 *     v = slice(x, ...); x1 = write(v, y)
 *     x1[2*j + 1] = y[j], other elements as in x
 *
 * A write is an equation; memory is decided later.
 */
#include "program/local.h"

#include "notation/row.h"

/* ---- what is a view ---- */

/* Is it a read of data at an index without letters? */
static bool is_index(const ir_inst *p, const in_node *n, int32_t depth)
{
	switch (n->kind) {
	case IN_INT:
	case IN_LETTER:
	case IN_POS:
		return true;
	case IN_MUL:
		if (n->arg[0]->kind != IN_INT && n->arg[1]->kind != IN_INT)
			return false;
		break;
	case IN_DIV:
	case IN_MOD:
		if (n->arg[1]->kind != IN_INT || n->arg[1]->i < 1)
			return false;
		break;
	case IN_ADD:
	case IN_SUB:
		break;
	case IN_READ:
		for (int32_t i = 0; i < n->n_index; i++)
			if (n->index[i]->kind != IN_INT)
				return false;
		return p->tensor[n->tensor].operand >= 0;
	case IN_CLAMP:
	case IN_REAL:
	case IN_CALL:
	case IN_WHERE:
	case IN_ELSE:
	case IN_INSIDE:
	case IN_CAST:
	case IN_STOP:
		return false;
	}
	return depth < 200 && is_index(p, n->arg[0], depth + 1) &&
		is_index(p, n->arg[1], depth + 1);
}

/* The only equation of result r; NULL: it has none, or several. */
static const in_eqn *eqn_of(const ir_inst *p, int32_t r)
{
	const in_eqn *q = NULL;

	for (int32_t i = 0; i < p->n_eqns; i++)
		for (int32_t k = 0; k < p->eqn[i].n_out; k++) {
			if (p->eqn[i].out[k] != p->result[r])
				continue;
			if (q != NULL || p->eqn[i].n_out != 1)
				return NULL;
			q = &p->eqn[i];
		}
	return q;
}

static bool is_moved(const ir_inst *p, int32_t r)
{
	const in_eqn *q = eqn_of(p, r);
	const in_node *b;

	if (q == NULL || q->monoid != IR_SET || q->is_update || q->is_scan ||
		q->skip || p->tensor[p->result[r]].next_of >= 0)
		return false;
	b = q->body[0];
	if (b->kind != IN_READ || p->tensor[b->tensor].operand != 0)
		return false;
	for (int32_t i = 0; i < q->n_left; i++)
		if (q->left[i]->kind != IN_LETTER &&
			(q->left[i]->kind != IN_INT || q->left[i]->i != 0))
			return false;
	for (int32_t i = 0; i < b->n_index; i++)
		if (!is_index(p, b->index[i], 0))
			return false;
	return true;
}

bool ir_inst_is_view(const ir_inst *p)
{
	for (int32_t r = 0; r < p->n_results; r++)
		if (!is_moved(p, r))
			return false;
	return p->n_results > 0 && p->n_eqns == p->n_results &&
		p->opaque == NULL;
}

static bool is_zero(const ir_inst *p, const in_node *x)
{
	return x->kind == IN_LETTER ? p->letter[x->i].extent == 1
				    : x->kind == IN_INT && x->i == 0;
}

/* Is index i of both sides 0, or the same letter, which is in no earlier index? */
static bool is_in_place(
	const ir_inst *p, const in_eqn *q, const in_node *b, int32_t i)
{
	if (is_zero(p, q->left[i]) && is_zero(p, b->index[i]))
		return true;
	if (q->left[i]->kind != IN_LETTER || b->index[i]->kind != IN_LETTER ||
		b->index[i]->i != q->left[i]->i)
		return false;
	for (int32_t k = 0; k < i; k++)
		if (q->left[k]->kind == IN_LETTER &&
			q->left[k]->i == q->left[i]->i)
			return false;
	return true;
}

/* Does q have one term for each element of its result? */
static bool is_one_term(const ir_inst *p, const in_eqn *q, const ir_type *type)
{
	int64_t points = 1, elements = 1;

	for (int32_t i = 0; i < q->n_letters; i++)
		if (__builtin_mul_overflow(points,
			    p->letter[q->letters[i]].extent, &points))
			return false;
	for (int32_t i = 0; i < type->rank; i++)
		elements *= type->shape[i];
	return points == elements;
}

/* The operand of which q is all elements in their places, or -1. */
static int32_t copied(const ir_inst *p, const in_eqn *q)
{
	const ir_type *type = &p->tensor[q->out[0]].type;
	const in_node *b = q->body[0];
	const in_tensor *x;

	if (q->is_update || q->is_scan || q->skip || !is_one_term(p, q, type))
		return -1;
	if (b->kind == IN_ELSE) /* x[i] is inside: the alternative is not used */
		b = b->arg[0];
	if (b->kind != IN_READ || b->flat || b->n_index != q->n_left)
		return -1;
	x = &p->tensor[b->tensor];
	if (x->operand < 0 || !ir_type_same(&x->type, type))
		return -1;
	for (int32_t i = 0; i < q->n_left; i++)
		if (!is_in_place(p, q, b, i))
			return -1;
	return x->operand;
}

bool ir_inst_is_copy(const ir_inst *p)
{
	return p->n_results == 1 && p->n_eqns == 1 && p->opaque == NULL &&
	       p->eqn->monoid == IR_SET && copied(p, p->eqn) == 0;
}

int32_t ir_inst_passes(const ir_inst *p, int32_t r)
{
	const in_eqn *q = p->opaque == NULL ? eqn_of(p, r) : NULL;

	return q != NULL && (q->monoid == IR_SET || q->monoid == IR_SUM) &&
			p->tensor[p->result[r]].next_of < 0
		? copied(p, q)
		: -1;
}

ir_inst *ir_view_part(arena *a, const ir_inst *p, int32_t r)
{
	ir_inst *out = arena_copy(a, p, sizeof *p);
	in_tensor *tensor = arena_array(a, in_tensor, p->n_tensors);
	in_eqn *q = arena_copy(a, eqn_of(p, r), sizeof *q);
	int32_t n = 0, *result = arena_make(a, int32_t);

	while (n < p->n_tensors && p->tensor[n].operand >= 0) {
		tensor[n] = p->tensor[n];
		n++;
	}
	tensor[n] = p->tensor[p->result[r]];
	tensor[n].result = 0;
	*result = q->out[0] = n;
	out->tensor = tensor;
	out->n_tensors = n + 1;
	out->result = result;
	out->n_results = out->n_eqns = 1;
	out->eqn = q;
	out->asked = NULL; /* a call of the row has other results, too */
	out->n_attrs = 0;
	out->attr = NULL;
	return out;
}

/* ---- forms ---- */

typedef struct viewing {
	ix *x;
	const ix_dom *d;
	const ir_inst *view;
	const in_eqn *q;	  /* of the result */
	const ix_form *const *at; /* an index of the result, by axis */
	const int64_t *fun;	  /* by tensor: id of its data */
	int64_t lo, hi;		  /* of the data of this index: lo <= v < hi */
} viewing;

static const ix_form *letter_form(const viewing *v, int64_t letter)
{
	const in_eqn *q = v->q;

	for (int32_t i = 0; i < q->n_left; i++)
		if (q->left[i]->kind == IN_LETTER && q->left[i]->i == letter)
			return v->at[i];
	return ix_const(v->x, 0); /* extent 1 */
}

static int64_t const_place(const ir_type *t, const in_node *n)
{
	int64_t at = 0;

	for (int32_t i = 0; i < n->n_index; i++)
		at = n->flat ? n->index[i]->i
			     : at * t->shape[i] + n->index[i]->i;
	return at;
}

static const ix_form *index_form(const viewing *v, const in_node *n)
{
	ix *x = v->x;
	const ix_form *l, *r;
	const ir_type *t;

	switch (n->kind) {
	case IN_INT:
		return ix_const(x, n->i);
	case IN_LETTER:
		return letter_form(v, n->i);
	case IN_POS:
		t = &v->view->tensor[v->q->out[0]].type;
		return ix_linearise(x, v->d, t->rank, t->shape, v->at);
	case IN_READ:
		return ix_fun(x, v->fun[n->tensor],
			ix_const(x, const_place(
				&v->view->tensor[n->tensor].type, n)),
			v->lo, v->hi);
	case IN_ADD:
	case IN_SUB:
	case IN_MUL:
	case IN_DIV:
	case IN_MOD:
		break;
	case IN_CLAMP:
	case IN_REAL:
	case IN_CALL:
	case IN_WHERE:
	case IN_ELSE:
	case IN_INSIDE:
	case IN_CAST:
	case IN_STOP:
		return ix_const(x, 0); /* is_index refuses it */
	}
	l = index_form(v, n->arg[0]);
	if (n->kind == IN_DIV || n->kind == IN_MOD || n->kind == IN_MUL) {
		int64_t k = n->arg[1]->kind == IN_INT ? n->arg[1]->i
						      : n->arg[0]->i;

		if (n->kind == IN_MUL && n->arg[1]->kind != IN_INT)
			l = index_form(v, n->arg[1]);
		return n->kind == IN_MUL ? ix_scale(x, l, k)
		       : n->kind == IN_DIV ? ix_div(x, v->d, l, k)
					   : ix_mod(x, v->d, l, k);
	}
	r = index_form(v, n->arg[1]);
	return n->kind == IN_ADD ? ix_add(x, v->d, l, r)
				 : ix_sub(x, v->d, l, r);
}

/* The atom of the only data in f, or NULL. */
static const ix_atom *data_of(const ix_form *f)
{
	const ix_atom *found = NULL;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind == IX_DIGIT || (a->kind != IX_FUN && !ix_has_fun(a->f)))
			continue;
		if (found != NULL)
			return NULL;
		found = a->kind == IX_FUN ? a : data_of(a->f);
		if (found == NULL)
			return NULL;
	}
	return found;
}

/* The range of the data of an index, with which each element of the view is one of
 * the n of its axis: views of the view do not change it. */
static void find_range(viewing *v, const in_node *index, int64_t n)
{
	const ir_type *t = &v->view->tensor[v->q->out[0]].type;
	ix_dom own = {.box = {.n = t->rank, .extent = t->shape}};
	const ix_form *at[TN_MAX_RANK], *f;
	const ix_atom *a;
	viewing alone = *v;

	v->lo = alone.lo = -((int64_t)1 << 40);
	v->hi = alone.hi = (int64_t)1 << 40;
	if (shape_numel(t->shape, t->rank) == 0)
		return;
	for (int32_t i = 0; i < t->rank; i++)
		at[i] = ix_axis(v->x, &own, i);
	alone.d = &own;
	alone.at = at;
	f = index_form(&alone, index);
	f = ix_has_fun(f) ? ix_bound_data(v->x, &own, f, n) : NULL;
	a = f == NULL ? NULL : data_of(f);
	if (a == NULL)
		return;
	v->lo = a->lo;
	v->hi = a->hi;
}

static bool has_data(const ir_inst *p)
{
	int32_t n = 0;

	for (int32_t i = 0; i < p->n_tensors; i++)
		n += p->tensor[i].operand >= 0;
	return n > 1;
}

void ir_view_place(ix *x, const ix_dom *d, const ir_inst *view, int32_t r,
	const int64_t *fun, const ix_form *const *at, const ix_form **below)
{
	const in_eqn *q = eqn_of(view, r);
	const in_node *b = q->body[0];
	const ir_type *from = &view->tensor[b->tensor].type;
	viewing v = {x, d, view, q, at, fun, 0, 0};

	for (int32_t i = 0; i < b->n_index; i++) {
		if (has_data(view))
			find_range(&v, b->index[i],
				b->flat ? shape_numel(from->shape, from->rank)
					: from->shape[i]);
		below[i] = index_form(&v, b->index[i]);
	}
	if (b->flat)
		ix_delinearise(x, d, below[0], from->rank, from->shape, below);
}

/* ---- forms as nodes of an instance ---- */

static const in_node *node_int(arena *a, int64_t v)
{
	in_node *n = arena_make(a, in_node);

	*n = (in_node){.kind = IN_INT, .dtype = TN_I64, .i = v};
	return n;
}

static const in_node *node_two(
	arena *a, in_kind kind, const in_node *x, const in_node *y)
{
	in_node *n = arena_make(a, in_node);

	*n = (in_node){.kind = kind, .dtype = TN_I64, .arg = {x, y}};
	return n;
}

typedef struct spelling {
	arena *a;
	ix *x;
	const ix_dom *d;
	const in_node *const *letter; /* by axis */
	const in_tensor *tensor;      /* of the instance: data, by fun */
} spelling;

static const in_node *form_node(const spelling *p, const ix_form *f);

static const in_node *data_node(const spelling *p, const ix_atom *t)
{
	const ir_type *type = &p->tensor[t->fun].type;
	in_node *n = arena_make(p->a, in_node);
	const in_node **at =
		arena_array(p->a, const in_node *, type->rank + 1);
	int64_t rest = t->f->c0;

	for (int32_t i = type->rank - 1; i >= 0; i--) {
		at[i] = node_int(p->a, rest % type->shape[i]);
		rest /= type->shape[i];
	}
	*n = (in_node){.kind = IN_READ,
		.dtype = type->dtype,
		.tensor = (int32_t)t->fun,
		.lo = t->lo,
		.hi = t->hi,
		.n_index = type->rank,
		.index = at};
	return n;
}

static const in_node *atom_node(const spelling *p, const ix_atom *t)
{
	const in_node *n;
	int64_t extent;

	switch (t->kind) {
	case IX_DIGIT:
		n = p->letter[t->axis];
		extent = p->d->box.extent[t->axis];
		if (t->hi < extent)
			n = node_two(p->a, IN_MOD, n, node_int(p->a, t->hi));
		if (t->lo > 1)
			n = node_two(p->a, IN_DIV, n, node_int(p->a, t->lo));
		return n;
	case IX_FLOOR:
		return node_two(p->a, IN_DIV, form_node(p, t->f),
			node_int(p->a, t->den));
	case IX_FUN:
		return data_node(p, t);
	case IX_CLAMP: /* views have none */
		env_bug(arena_env(p->a), "ir_program_write", "a clamp");
	}
	return NULL;
}

static const in_node *form_node(const spelling *p, const ix_form *f)
{
	const in_node *sum = node_int(p->a, f->c0);

	for (int32_t i = 0; i < f->n; i++)
		sum = node_two(p->a, IN_ADD, sum,
			node_two(p->a, IN_MUL, node_int(p->a, f->t[i].coef),
				atom_node(p, f->t[i].atom)));
	return sum;
}

/* ---- writes ---- */

typedef struct writing {
	ir_program *p;
	loc at;
	int32_t view, value, root;
	VEC(int32_t) chain; /* views, beginning at the root */
	VEC(int32_t) arg;   /* of the write: root, value, then data */
	VEC(in_tensor) tensor;
} writing;

static _Noreturn void refuse(
	const writing *w, const char *rule, const char *text)
{
	env_fail(arena_env(w->p->a), TN_EINVAL, rule, w->at, "write: %s", text);
}

static const char *shape_text(const writing *w, int32_t value)
{
	const ir_value *v = &w->p->value.at[value];

	return v->shown != NULL
		? row_operand_text(w->p->a, v->shown, NULL, &v->type)
		: row_type_text(w->p->a, &v->type);
}

static void find_root(writing *w)
{
	const ir_program *p = w->p;
	VEC(int32_t) up = {0};

	w->root = w->view;
	while (p->value.at[w->root].call >= 0 &&
		ir_inst_is_view(p->call.at[p->value.at[w->root].call].inst)) {
		*vec_push(p->a, &up) = w->root;
		w->root = p->call.at[p->value.at[w->root].call].arg[0];
	}
	for (int32_t i = up.n - 1; i >= 0; i--)
		*vec_push(p->a, &w->chain) = up.at[i];
}

static void check_newest(const writing *w)
{
	const ir_value *v = &w->p->value.at[w->root];

	if (v->next_version >= 0)
		refuse(w, "write.version",
			arena_printf(w->p->a,
				"%s is a view of %s, which was written before: "
				"its newest version is %s",
				w->p->value.at[w->view].name, v->name,
				w->p->value.at[v->next_version].name));
}

static void check_value(const writing *w)
{
	const ir_type *v = &w->p->value.at[w->view].type;
	const ir_type *y = &w->p->value.at[w->value].type;

	if (v->dtype != y->dtype || v->rank != y->rank ||
		memcmp(v->shape, y->shape,
			(size_t)v->rank * sizeof v->shape[0]) != 0)
		refuse(w, "write.shape",
			arena_printf(w->p->a,
				"value %s does not fit the view %s: both must "
				"have the same shape and dtype",
				shape_text(w, w->value),
				shape_text(w, w->view)));
}

static int32_t add_tensor(writing *w, const char *name, const ir_type *type,
	int32_t operand)
{
	*vec_push(w->p->a, &w->tensor) = (in_tensor){.name = name,
		.type = *type,
		.operand = operand,
		.result = operand < 0 ? 0 : -1,
		.next_of = operand < 0 ? 0 : -1};
	return w->tensor.n - 1;
}

/* Adds the other operands of a view: data of its indices. */
static const int64_t *add_data(writing *w, const ir_call *c)
{
	const ir_inst *p = c->inst;
	int64_t *to = arena_array(w->p->a, int64_t, p->n_tensors + 1);

	for (int32_t i = 0; i < p->n_tensors; i++) {
		int32_t k = p->tensor[i].operand;

		if (k < 1)
			continue;
		to[i] = add_tensor(w,
			arena_printf(w->p->a, "d%d", (int)w->arg.n),
			&p->tensor[i].type, w->arg.n);
		*vec_push(w->p->a, &w->arg) = c->arg[k];
	}
	return to;
}

static const in_node *const *letters(
	writing *w, ir_inst *inst, const ir_type *t, in_eqn *q)
{
	arena *a = w->p->a;
	const in_node **at = arena_array(a, const in_node *, t->rank + 1);
	int32_t *number = arena_array(a, int32_t, t->rank + 1);
	struct in_letter *l = arena_array(a, struct in_letter, t->rank + 1);

	for (int32_t i = 0; i < t->rank; i++) {
		in_node *n = arena_make(a, in_node);

		l[i].name = arena_printf(a, "j_%d", (int)i);
		l[i].extent = t->shape[i];
		*n = (in_node){.kind = IN_LETTER, .dtype = TN_I64, .i = i};
		at[i] = n;
		number[i] = i;
	}
	inst->n_letters = t->rank;
	inst->letter = l;
	q->n_letters = t->rank;
	q->letters = number;
	return at;
}

/* f without the terms that do not depend on letters. */
static const ix_form *without_data(ix *x, const ix_dom *d, const ix_form *f)
{
	const ix_form *r = f;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN && t->f->n == 0)
			r = ix_sub(x, d, r,
				ix_scale(x,
					ix_fun(x, t->fun, t->f, t->lo, t->hi),
					f->t[i].coef));
	}
	return r;
}

/* Does each view of the chain show elements of the one below it only once? */
static bool each_injective(const writing *w, ix *x)
{
	for (int32_t i = 0; i < w->chain.n; i++) {
		const ir_value *v = &w->p->value.at[w->chain.at[i]];
		const ir_inst *inst = w->p->call.at[v->call].inst;
		const ir_type *t = &v->type;
		const ir_type *from = &inst->tensor[eqn_of(inst, v->result)
				->body[0]->tensor].type;
		const ix_form *at[TN_MAX_RANK], *below[TN_MAX_RANK + 1];
		ix_dom d = {.box = {.n = t->rank, .extent = t->shape}};
		int64_t *fun = arena_array(
			w->p->a, int64_t, inst->n_tensors + 1);

		for (int32_t k = 0; k < inst->n_tensors; k++)
			fun[k] = k;
		for (int32_t k = 0; k < t->rank; k++)
			at[k] = ix_axis(x, &d, k);
		ir_view_place(x, &d, inst, v->result, fun, at, below);
		if (ix_injective(x, &d,
			    without_data(x, &d,
				    ix_linearise(x, &d, from->rank,
					    from->shape, below))) != IX_EQUAL)
			return false;
	}
	return true;
}

/*
 * Fails if two elements of the view are the same element of the root. Where an
 * index from data stands under a division, only the views one by one tell.
 */
static void check_writable(const writing *w, ix *x, const ix_dom *d,
	const ix_form *f, const ir_type *t)
{
	ix_verdict v = ix_injective(x, d, without_data(x, d, f));
	const ir_type *from = &w->p->value.at[w->root].type;

	if (v == IX_EQUAL || (v == IX_UNKNOWN && each_injective(w, x)))
		return;
	for (int32_t i = 0; i < t->rank; i++)
		if (t->shape[i] > 1 && !ix_uses_axis(f, i))
			refuse(w, "write.repeats",
				arena_printf(w->p->a,
					"%s is not writable: axis %d repeats "
					"elements (expanded from 1 to %lld)",
					w->p->value.at[w->view].name, (int)i,
					(long long)t->shape[i]));
	refuse(w, "write.repeats",
		arena_printf(w->p->a,
			"%s is not writable: %s of its elements are the same "
			"one of the %lld of %s",
			w->p->value.at[w->view].name,
			v == IX_UNKNOWN ? "it cannot be ruled out that two"
					: "two",
			(long long)shape_numel(from->shape, from->rank),
			w->p->value.at[w->root].name));
}

/* The index in the root of an element of the view, by axis. */
static const in_node *const *root_place(
	writing *w, const in_node *const *letter, const ir_type *t)
{
	arena *a = w->p->a;
	ix *x = ix_new(a);
	const ir_type *root = &w->p->value.at[w->root].type;
	ix_dom d = {.box = {.n = t->rank, .extent = t->shape}};
	const ix_form *at[TN_MAX_RANK], *below[TN_MAX_RANK + 1];
	const in_node **out = arena_array(a, const in_node *, root->rank + 1);
	spelling p = {a, x, &d, letter, NULL};

	for (int32_t i = 0; i < t->rank; i++)
		at[i] = ix_axis(x, &d, i);
	for (int32_t i = w->chain.n - 1; i >= 0; i--) {
		const ir_value *v = &w->p->value.at[w->chain.at[i]];
		const ir_call *c = &w->p->call.at[v->call];

		ir_view_place(x, &d, c->inst, v->result, add_data(w, c), at,
			below);
		memcpy(at, below, sizeof at);
	}
	check_writable(w, x, &d,
		ix_linearise(x, &d, root->rank, root->shape, at), t);
	p.tensor = w->tensor.at;
	for (int32_t i = 0; i < root->rank; i++)
		out[i] = form_node(&p, at[i]);
	return out;
}

static ir_inst *write_inst(writing *w, const ir_row *row)
{
	arena *a = w->p->a;
	ir_inst *inst = arena_make(a, ir_inst);
	in_eqn *q = arena_make(a, in_eqn);
	in_node *read = arena_make(a, in_node);
	const ir_type *root = &w->p->value.at[w->root].type;
	const ir_type *type = &w->p->value.at[w->value].type;
	const in_node *const *at;
	int32_t *result = arena_make(a, int32_t);
	bool empty = shape_numel(type->shape, type->rank) == 0;

	add_tensor(w, "x", root, 0);
	add_tensor(w, "v", type, 1);
	at = letters(w, inst, type, q);
	*read = (in_node){.kind = IN_READ,
		.dtype = type->dtype,
		.tensor = 1,
		.n_index = type->rank,
		.index = at};
	q->left = w->chain.n == 0 || empty ? at : root_place(w, at, type);
	*result = add_tensor(w, "x'", root, -1);
	q->n_out = 1;
	q->out[0] = *result;
	q->monoid = IR_SET;
	q->is_update = w->chain.n > 0;
	q->n_left = root->rank;
	q->body[0] = read;
	q->scan_axis = q->scan_letter = -1;
	inst->row = row;
	inst->n_tensors = w->tensor.n;
	inst->tensor = w->tensor.at;
	inst->n_results = 1;
	inst->result = result;
	inst->n_eqns = 1;
	inst->eqn = q;
	return inst;
}

int32_t ir_program_write(ir_program *p, int32_t view, int32_t value,
	const char *name, loc at)
{
	writing w = {.p = p, .at = at, .view = view, .value = value};
	ir_call call = {.n_args = 2, .n_results = 1, .view = view, .at = at};
	int32_t *result = arena_make(p->a, int32_t);

	find_root(&w);
	check_newest(&w);
	check_value(&w);
	*vec_push(p->a, &w.arg) = w.root;
	*vec_push(p->a, &w.arg) = value;
	call.row = prog_find_row(p, "write", at);
	call.inst = write_inst(&w, call.row);
	call.n_args = w.arg.n;
	call.arg = w.arg.at;
	*result = prog_add_value(
		p, name, p->value.at[w.root].type, p->call.n, 0, at);
	call.result = result;
	*vec_push(p->a, &p->call) = call;
	p->value.at[w.root].next_version = *result;
	if (name == NULL)
		prog_name_value(p, *result);
	return *result;
}
