/*
 * inst_print.c: prints an instance as a row of the notation.
 *
 * Consumes an instance, for example of an adjoint; produces text without packs
 * and attributes that has the same meaning for the same operands. Every dtype
 * is explicit: constants are inside casts. If a left side does not show the
 * shape of its tensor, an equation before it does, which fills the tensor with
 * the identity.
 *
 *     slice_grad(d_o[3]) -> gx { gx[x_0] = cast(0, f32) for x_0 < 8;
 *       gx[2 * i_0 + 1] += d_o[i_0] for i_0 < 3 }
 */
#include "notation/inst.h"

#include <math.h>

typedef struct printer {
	str *out;
	arena *a;
	const ir_inst *p;
	inst *u; /* for the bounds of left sides */
	const char **tensor, **letter;
	bool *made, *bound; /* by tensor; by letter */
	const in_eqn *q;
	int32_t n_fors;
	map *words; /* names that are used */
} printer;

static _Noreturn void refuse(const printer *w, const char *why)
{
	env_fail(arena_env(w->a), TN_EINVAL, "print.instance", (loc){0},
		"%s cannot be written as a row: %s", ir_row_name(w->p->row),
		why);
}

/* ---- names ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= '0' && c <= '9');
}

/*
 * An unused name of letters, digits and _ that is not a keyword of the
 * notation.
 */
static const char *fresh(const printer *w, map *taken, const char *from)
{
	static const char *const words[] = {"pos", "for", "let", "check",
		"where", "else", "skip", "grad", "and", "or", "not", "inf",
		"nan", "all", "reverse", "cast", "inside", "stop", "size",
		"len", "each", "clamp", "acc", "opaque", "op"};
	str s = str_new(w->a);
	const char *name;
	int32_t number = 0;

	for (const char *c = from; *c != '\0'; c++)
		if (is_word(*c))
			str_addc(&s, *c);
	if (s.n == 0 || (s.at[0] >= '0' && s.at[0] <= '9'))
		s = str_new(w->a), str_printf(&s, "t%s", from);
	if (map_n(taken) == 0)
		for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
			map_set_str(taken, words[i], 1);
	name = s.at;
	while (map_get_str(taken, name, 0) != 0)
		name = arena_printf(w->a, "%s_%d", s.at, (int)++number);
	map_set_str(taken, name, 1);
	return name;
}

static void name_all(printer *w)
{
	const ir_inst *p = w->p;
	map *taken = map_new(w->a);

	w->words = map_new(w->a);
	w->tensor = arena_array(w->a, const char *, p->n_tensors + 1);
	w->letter = arena_array(w->a, const char *, p->n_letters + 1);
	w->made = arena_array(w->a, bool, p->n_tensors + 1);
	w->bound = arena_array(w->a, bool, p->n_letters + 1);
	for (int32_t i = 0; i < p->n_letters; i++)
		w->letter[i] = fresh(w, w->words, p->letter[i].name);
	/* operands first, because the name of x' is made from that of x */
	for (int32_t i = 0; i < p->n_tensors; i++)
		if (p->tensor[i].next_of < 0)
			w->tensor[i] = fresh(w, taken, p->tensor[i].name);
	for (int32_t i = 0; i < p->n_tensors; i++)
		for (int32_t k = 0; k < p->n_tensors; k++)
			if (p->tensor[i].next_of >= 0 &&
				p->tensor[k].operand == p->tensor[i].next_of)
				w->tensor[i] = arena_printf(
					w->a, "%s'", w->tensor[k]);
}

/* ---- index arithmetic ---- */

static void print_value(printer *w, const in_node *n);
static void print_index(printer *w, const in_node *n);

static void print_int(printer *w, int64_t v)
{
	if (v == INT64_MIN)
		str_add(w->out, "(-9223372036854775807 - 1)");
	else
		str_printf(w->out, v < 0 ? "(%lld)" : "%lld", (long long)v);
}

static void print_two(printer *w, const in_node *n, const char *sign)
{
	str_addc(w->out, '(');
	print_index(w, n->arg[0]);
	str_printf(w->out, " %s ", sign);
	print_index(w, n->arg[1]);
	str_addc(w->out, ')');
}

/* Prints an element number as digits of the axes. */
static void print_digits(printer *w, const in_node *n, const ir_type *t)
{
	int64_t stride = shape_numel(t->shape, t->rank);

	for (int32_t i = 0; i < t->rank; i++) {
		int64_t extent = t->shape[i] > 0 ? t->shape[i] : 1;

		stride = stride > 0 ? stride / extent : 1;
		str_add(w->out, i > 0 ? ", (" : "(");
		print_index(w, n);
		str_printf(w->out, " / %lld)", (long long)stride);
		if (i > 0)
			str_printf(w->out, " %% %lld", (long long)extent);
	}
}

static void print_read(printer *w, const in_node *n)
{
	const ir_type *t = &w->p->tensor[n->tensor].type;

	str_printf(w->out, "%s[", w->tensor[n->tensor]);
	if (n->flat && n->index[0]->kind == IN_POS)
		str_addc(w->out, '*');
	else if (n->flat)
		print_digits(w, n->index[0], t);
	for (int32_t i = 0; !n->flat && i < n->n_index; i++) {
		if (i > 0)
			str_add(w->out, ", ");
		print_index(w, n->index[i]);
	}
	str_addc(w->out, ']');
}

static void print_index(printer *w, const in_node *n)
{
	switch (n->kind) {
	case IN_INT:
		print_int(w, n->i);
		return;
	case IN_LETTER:
		str_add(w->out, w->letter[n->i]);
		return;
	case IN_POS:
		str_add(w->out, "pos");
		return;
	case IN_ADD:
		print_two(w, n, "+");
		return;
	case IN_SUB:
		print_two(w, n, "-");
		return;
	case IN_MUL:
		print_two(w, n, "*");
		return;
	case IN_DIV:
		print_two(w, n, "/");
		return;
	case IN_MOD:
		print_two(w, n, "%");
		return;
	case IN_CLAMP:
		str_add(w->out, "clamp(");
		print_index(w, n->arg[0]);
		str_printf(w->out, ", %lld)", (long long)n->i);
		return;
	case IN_READ:
		print_read(w, n);
		return;
	case IN_REAL:
	case IN_CALL:
	case IN_WHERE:
	case IN_ELSE:
	case IN_INSIDE:
	case IN_CAST:
	case IN_STOP:
		break;
	}
	refuse(w, "an index is a value");
}

/* ---- values ---- */

static void print_number(printer *w, const in_node *n)
{
	if (n->kind == IN_INT) {
		print_int(w, n->i);
		return;
	}
	if (isnan(n->f)) {
		str_add(w->out, "nan");
		return;
	}
	if (signbit(n->f))
		str_add(w->out, n->f == 0 ? "(-0.0" : "(");
	if (n->f != 0 || !signbit(n->f))
		str_double(w->out, n->f);
	if (signbit(n->f))
		str_addc(w->out, ')');
}

static void print_list(
	printer *w, const char *fn, int32_t n, const in_node *const *arg)
{
	str_printf(w->out, "%s(", fn);
	for (int32_t i = 0; i < n; i++) {
		if (i > 0)
			str_add(w->out, ", ");
		print_value(w, arg[i]);
	}
	str_addc(w->out, ')');
}

/* The operator of a scalar function that has one in the notation. */
static const char *infix(const char *name)
{
	return strcmp(name, "and") == 0 || strcmp(name, "or") == 0 ? name
								   : NULL;
}

static void print_between(printer *w, const in_node *x, const char *word,
	const in_node *y, const char *word2, const in_node *z)
{
	str_addc(w->out, '(');
	print_value(w, x);
	str_printf(w->out, " %s ", word);
	print_value(w, y);
	if (z != NULL) {
		str_printf(w->out, " %s ", word2);
		print_value(w, z);
	}
	str_addc(w->out, ')');
}

static void print_value(printer *w, const in_node *n)
{
	const ir_scalar *f;

	switch (n->kind) {
	case IN_INT:
	case IN_REAL:
		str_add(w->out, "cast(");
		print_number(w, n);
		str_printf(w->out, ", %s)", dtype_name(n->dtype));
		return;
	case IN_LETTER:
	case IN_POS:
	case IN_ADD:
	case IN_SUB:
	case IN_MUL:
	case IN_DIV:
	case IN_MOD:
	case IN_CLAMP:
		print_index(w, n);
		return;
	case IN_READ:
		print_read(w, n);
		return;
	case IN_CALL:
		f = ir_scalar_at(n->fn);
		if (infix(f->name) != NULL)
			print_between(w, n->arg[0], f->name, n->arg[1], NULL,
				NULL);
		else
			print_list(w, f->name, f->n_args, n->arg);
		return;
	case IN_WHERE:
		print_between(w, n->arg[1], "where", n->arg[0], "else",
			n->arg[2]);
		return;
	case IN_ELSE:
		print_between(w, n->arg[0], "else", n->arg[1], NULL, NULL);
		return;
	case IN_INSIDE:
		print_list(w, "inside", 1, n->arg);
		return;
	case IN_CAST:
		str_add(w->out, "cast(");
		print_value(w, n->arg[0]);
		str_printf(w->out, ", %s)", dtype_name(n->dtype));
		return;
	case IN_STOP:
		print_list(w, "stop", 1, n->arg);
		return;
	}
}

/* ---- equations ---- */

/* Prints extents of letters, at their first occurrence. */
static void print_fors(printer *w)
{
	for (int32_t i = 0; i < w->q->n_letters; i++) {
		int32_t l = w->q->letters[i];

		if (w->bound[l])
			continue;
		w->bound[l] = true;
		str_printf(w->out, "%s%s < %lld",
			w->n_fors++ == 0 ? " for " : ", ", w->letter[l],
			(long long)w->p->letter[l].extent);
	}
}

static void print_left(printer *w, const in_eqn *q)
{
	if (q->n_out > 1)
		str_addc(w->out, '(');
	for (int32_t k = 0; k < q->n_out; k++)
		str_printf(w->out, "%s%s", k > 0 ? ", " : "",
			w->tensor[q->out[k]]);
	str_add(w->out, q->n_out > 1 ? ")[" : "[");
	for (int32_t i = 0; i < q->n_left; i++) {
		if (i > 0)
			str_add(w->out, ", ");
		print_index(w, q->left[i]);
	}
	str_addc(w->out, ']');
}

static bool has_read(const in_node *n)
{
	if (n == NULL)
		return false;
	if (n->kind == IN_READ)
		return true;
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		if (has_read(n->arg[i]))
			return true;
	return false;
}

/* Can the parser infer the shape of the tensor that q computes? */
static bool shows_shape(const printer *w, const in_eqn *q)
{
	const ir_type *t = &w->p->tensor[q->out[0]].type;

	for (int32_t i = 0; i < q->n_left; i++)
		if (has_read(q->left[i]) ||
			inst_extent(w->u, q->left[i]) != t->shape[i])
			return false;
	return !q->skip;
}

/* Prints an equation that fills t with the identity, with new letters. */
static void print_begin(printer *w, const in_eqn *q)
{
	const in_tensor *t = &w->p->tensor[q->out[0]];
	const char *name[TN_MAX_RANK];

	if (q->monoid == IR_SET || q->n_out > 1)
		refuse(w, "a left side does not show its shape");
	str_printf(w->out, "%s[", w->tensor[q->out[0]]);
	for (int32_t i = 0; i < t->type.rank; i++) {
		name[i] = fresh(w, w->words, "e");
		str_printf(w->out, "%s%s", i > 0 ? ", " : "", name[i]);
	}
	str_printf(w->out, "] = cast(%s, %s)",
		ir_monoid_at(q->monoid)->identity[0],
		dtype_name(t->type.dtype));
	for (int32_t i = 0; i < t->type.rank; i++)
		str_printf(w->out, "%s%s < %lld", i > 0 ? ", " : " for ",
			name[i], (long long)t->type.shape[i]);
	str_add(w->out, ";\n  ");
}

static void mark_letters(const in_node *n, bool *seen)
{
	if (n == NULL)
		return;
	if (n->kind == IN_LETTER)
		seen[n->i] = true;
	for (int32_t i = 0; i < n->n_index; i++)
		mark_letters(n->index[i], seen);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		mark_letters(n->arg[i], seen);
}

/*
 * Prints a condition that always holds for each letter that q sums over but
 * does not mention, so that the text mentions it. Returns the number of such
 * letters.
 */
static int32_t print_silent(printer *w, const in_eqn *q)
{
	bool *seen = arena_array(w->a, bool, w->p->n_letters + 1);
	int32_t n = 0;

	for (int32_t i = 0; i < q->n_left; i++)
		mark_letters(q->left[i], seen);
	for (int32_t k = 0; k < ir_n_bodies(q); k++)
		mark_letters(q->body[k], seen);
	for (int32_t i = 0; i < q->n_letters; i++)
		if (!seen[q->letters[i]])
			str_printf(w->out, "%s%s",
				n++ == 0 ? " where 0 <= " : " + ",
				w->letter[q->letters[i]]);
	return n;
}

/*
 * Prints an element of a tuple; its literals have the component's dtype without
 * a cast.
 */
static void print_element(printer *w, const in_node *n)
{
	if (n->kind == IN_INT || n->kind == IN_REAL)
		print_number(w, n);
	else
		print_value(w, n);
}

static void print_eqn(printer *w, const in_eqn *q)
{
	tn_dtype t = w->p->tensor[q->out[0]].type.dtype;
	/* its terms are not rounded: ir_term */
	bool is_wide = q->monoid == IR_SUM && q->body[0]->dtype != t;

	w->q = q;
	w->n_fors = 0;
	if (q->is_update && !w->made[q->out[0]])
		refuse(w, "it is a write");
	if (!q->is_update && !shows_shape(w, q))
		print_begin(w, q);
	print_left(w, q);
	str_printf(w->out, " %s ",
		q->monoid == IR_SET ? "=" : ir_monoid_at(q->monoid)->token);
	if (q->n_out > 1)
		str_addc(w->out, '(');
	if (is_wide)
		str_add(w->out, "cast(");
	for (int32_t k = 0; k < ir_n_bodies(q); k++) {
		if (k > 0)
			str_add(w->out, ", ");
		if (q->n_out > 1)
			print_element(w, q->body[k]);
		else
			print_value(w, q->body[k]);
		if (k == 0 && print_silent(w, q) > 0)
			str_printf(w->out, " else cast(0, %s)",
				dtype_name(q->body[0]->dtype));
	}
	if (is_wide)
		str_printf(w->out, ", %s)", dtype_name(t));
	if (q->n_out > 1)
		str_addc(w->out, ')');
	if (q->skip)
		str_add(w->out, " else skip");
	print_fors(w);
	for (int32_t k = 0; k < q->n_out; k++)
		w->made[q->out[k]] = true;
}

/* ---- the whole ---- */

/* The dtype of a scan, which is that of the first operand of class num. */
static tn_dtype scan_dtype(const printer *w, bool *any)
{
	tn_dtype t = TN_F32;

	*any = false;
	for (int32_t i = 0; i < w->p->n_eqns; i++) {
		const in_eqn *q = &w->p->eqn[i];

		if (!q->is_scan)
			continue;
		if (*any && w->p->tensor[q->out[0]].type.dtype != t)
			refuse(w, "it has scans of two dtypes");
		*any = true;
		t = w->p->tensor[q->out[0]].type.dtype;
	}
	return t;
}

static void print_params(printer *w)
{
	bool scans;
	tn_dtype t = scan_dtype(w, &scans);
	int32_t n = 0;

	for (int32_t i = 0; i < w->p->n_tensors; i++) {
		const in_tensor *x = &w->p->tensor[i];

		if (x->operand < 0)
			continue;
		str_printf(w->out, "%s%s", n++ > 0 ? ", " : "", w->tensor[i]);
		str_shape(w->out, x->type.shape, x->type.rank);
		if (!scans || x->type.dtype != t)
			continue;
		str_add(w->out, ":num");
		scans = false;
	}
	if (scans)
		refuse(w, "no operand has the dtype of its scan");
}

void ir_inst_print(str *out, const ir_inst *p, const char *name)
{
	printer w = {.out = out, .a = out->a, .p = p};

	if (p->opaque != NULL)
		refuse(&w, "it is opaque");
	w.u = arena_make(w.a, inst);
	*w.u = (inst){.a = w.a, .e = arena_env(w.a), .r = p->row};
	for (int32_t i = 0; i < p->n_letters; i++)
		*vec_push(w.a, &w.u->letter) = p->letter[i];
	name_all(&w);
	str_printf(out, "%s(", name);
	print_params(&w);
	str_add(out, ") -> ");
	for (int32_t i = 0; i < p->n_results; i++)
		str_printf(out, "%s%s", i > 0 ? ", " : "",
			w.tensor[p->result[i]]);
	str_add(out, " {\n  ");
	for (int32_t i = 0; i < p->n_eqns; i++) {
		if (i > 0)
			str_add(out, ";\n  ");
		print_eqn(&w, &p->eqn[i]);
	}
	str_add(out, " }");
}
