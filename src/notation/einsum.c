/*
 * einsum.c: makes the row text of an einsum from its equation.
 *
 * Consumes "ij,jk->ik" with `...` for broadcast axes, implicit results
 * ("ij,jk": letters that occur once, sorted), repeated letters (diagonals) and
 * spaces; produces a row. An axis of extent 1 whose letter has another extent
 * elsewhere broadcasts: its pattern is the number 1, and it is read at 0. More
 * than two operands are multiplied one after the other; each letter is summed
 * as soon as no later operand and not the result has it:
 *
 *     ij,jk,kl->il  ->  t1[i, k] += x0[i, j] * x1[j, k];
 *                       o[i, l] += t1[i, k] * x2[k, l]
 */
#include "notation/row.h"


/* One side of the equation: its letters, and whether it has `...`. */
struct term {
	char letter[TN_MAX_RANK + 1];
	/* dots: number of letters before `...`; -1: it has none */
	int32_t n, dots;
};

struct einsum {
	str *out;
	const char *name, *text;
	int32_t n;
	const ir_type *operand;
	const char *const *shown;
	loc at;
	struct term in[IR_MAX_OPERANDS], result;
	bool has_dots;
	int64_t extent[256]; /* of each letter */
};

static _Noreturn void fail(
	const struct einsum *e, const char *what, const char *message)
{
	arena *a = e->out->a;

	env_fail(arena_env(a), TN_EINVAL,
		arena_printf(a, "%s.%s", e->name, what), e->at, "%s: %s in \"%s\"",
		e->name, message, e->text);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *parse_term(
	const struct einsum *e, const char *p, struct term *t)
{
	t->dots = -1;
	for (;; p++) {
		if (*p == ' ')
			continue;
		if (*p == '.') {
			if (p[1] != '.' || p[2] != '.' || t->dots >= 0)
				fail(e, "equation", "'...' may occur only "
					"once in a term");
			t->dots = t->n;
			p += 2;
			continue;
		}
		if (!is_letter(*p))
			return p;
		if (t->n >= TN_MAX_RANK)
			fail(e, "equation", "a term has more than 8 letters");
		t->letter[t->n++] = *p;
	}
}

static bool has(const struct term *t, char c)
{
	return memchr(t->letter, c, (size_t)t->n) != NULL;
}

/* The implicit result: letters that occur once, sorted, after `...`. */
static void implicit_result(struct einsum *e)
{
	int32_t count[256] = {0};

	e->result.dots = -1;
	for (int32_t i = 0; i < e->n; i++) {
		for (int32_t k = 0; k < e->in[i].n; k++)
			count[(unsigned char)e->in[i].letter[k]]++;
		if (e->in[i].dots >= 0)
			e->result.dots = 0;
	}
	for (int c = 0; c < 256; c++)
		if (count[c] == 1) {
			if (e->result.n >= TN_MAX_RANK)
				fail(e, "equation",
					"the result has more than 8 letters");
			e->result.letter[e->result.n++] = (char)c;
		}
}

static void parse_equation(struct einsum *e)
{
	const char *p = e->text;

	for (int32_t i = 0; i < e->n; i++) {
		if (i > 0 && *p++ != ',')
			fail(e, "operands",
				"there are fewer terms than operands");
		p = parse_term(e, p, &e->in[i]);
	}
	if (p[0] == '-' && p[1] == '>')
		p = parse_term(e, p + 2, &e->result);
	else
		implicit_result(e);
	if (*p == ',')
		fail(e, "operands", "there are more terms than operands");
	if (*p != '\0')
		fail(e, "equation", "there is an unknown character");
	for (int32_t k = 0; k < e->result.n; k++) {
		bool found = false;

		for (int32_t i = 0; i < e->n; i++)
			found = found || has(&e->in[i], e->result.letter[k]);
		if (!found)
			fail(e, "equation",
				"a letter of the result is in no term");
		if (memchr(e->result.letter, e->result.letter[k], (size_t)k))
			fail(e, "equation", "the result has a letter twice");
	}
}

/* The axis of operand i that its letter k names. */
static int32_t axis_of(const struct einsum *e, int32_t i, int32_t k)
{
	const struct term *t = &e->in[i];
	int32_t dots = e->operand[i].rank - t->n;

	return t->dots >= 0 && k >= t->dots ? k + dots : k;
}

static _Noreturn void bad_rank(const struct einsum *e, int32_t i)
{
	arena *a = e->out->a;

	fail(e, "rank",
		arena_printf(a, "%s has rank %d, but its term has %d letters",
			row_operand_text(a,
				e->shown != NULL ? e->shown[i] : NULL,
				arena_printf(a, "x%d", i), &e->operand[i]),
			e->operand[i].rank, e->in[i].n));
}

static void find_extents(struct einsum *e)
{
	for (int c = 0; c < 256; c++)
		e->extent[c] = 1;
	for (int32_t i = 0; i < e->n; i++) {
		const struct term *t = &e->in[i];

		e->has_dots = e->has_dots || t->dots >= 0;
		if (t->dots < 0 ? e->operand[i].rank != t->n
				: e->operand[i].rank < t->n)
			bad_rank(e, i);
		for (int32_t k = 0; k < t->n; k++) {
			int64_t x = e->operand[i].shape[axis_of(e, i, k)];
			int64_t *all = &e->extent[(unsigned char)t->letter[k]];

			if (x != 1)
				*all = x;
		}
	}
	if (e->result.dots >= 0 && !e->has_dots)
		fail(e, "equation", "'...' is in the result, but in no term");
}

/* Does axis k of operand i broadcast? */
static bool is_one(const struct einsum *e, int32_t i, int32_t k)
{
	return e->operand[i].shape[axis_of(e, i, k)] == 1 &&
		e->extent[(unsigned char)e->in[i].letter[k]] != 1;
}

/*
 * Prints letters as a list. one: the text for a broadcast axis; NULL: no axis
 * broadcasts.
 */
static void put_term(const struct einsum *e, const struct term *t, int32_t i,
	const char *dots, const char *one)
{
	str_addc(e->out, '[');
	for (int32_t k = 0; k <= t->n; k++) {
		const char *sep = k > 0 || (t->dots == 0) ? ", " : "";

		if (t->dots == k)
			str_printf(e->out, "%s%s", k > 0 ? ", " : "", dots);
		if (k == t->n)
			break;
		if (one != NULL && is_one(e, i, k))
			str_printf(e->out, "%s%s", sep, one);
		else
			str_printf(e->out, "%s%c", sep, t->letter[k]);
	}
	str_addc(e->out, ']');
}

/* The letters of t * operand i that the result or a later operand needs. */
static struct term keep(const struct einsum *e, const struct term *t, int32_t i)
{
	struct term r = {.dots = t->dots >= 0 || e->in[i].dots >= 0 ? 0 : -1};
	const struct term *both[] = {t, &e->in[i]};

	for (int32_t s = 0; s < 2; s++)
		for (int32_t k = 0; k < both[s]->n; k++) {
			char c = both[s]->letter[k];
			bool needed = has(&e->result, c);

			for (int32_t j = i + 1; j < e->n; j++)
				needed = needed || has(&e->in[j], c);
			if (!needed || has(&r, c))
				continue;
			if (r.n >= TN_MAX_RANK)
				fail(e, "rank",
					"an intermediate product would have "
					"more than 8 axes");
			r.letter[r.n++] = c;
		}
	return r;
}

/* "+=" if a letter is summed, else "=". */
static const char *op_of(const struct einsum *e, const struct term *t,
	int32_t i, const struct term *r)
{
	bool sums = (t->dots >= 0 || (i >= 0 && e->in[i].dots >= 0)) &&
		r->dots < 0;

	for (int32_t k = 0; k < t->n; k++)
		sums = sums || !has(r, t->letter[k]);
	for (int32_t k = 0; i >= 0 && k < e->in[i].n; k++)
		sums = sums || !has(r, e->in[i].letter[k]);
	return sums ? "+=" : "=";
}

static void put_steps(struct einsum *e)
{
	struct term far = e->in[0], next;
	const char *name = "x0";

	if (e->n == 1) {
		str_add(e->out, " o");
		put_term(e, &e->result, 0, "ell..", NULL);
		str_printf(e->out, " %s x0", op_of(e, &far, -1, &e->result));
		put_term(e, &far, 0, "ell..", "0");
	}
	for (int32_t i = 1; i < e->n; i++) {
		bool last = i == e->n - 1;

		next = last ? e->result : keep(e, &far, i);
		str_printf(e->out, " %s",
			last ? "o" : arena_printf(e->out->a, "t%d", i));
		put_term(e, &next, 0, "ell..", NULL);
		str_printf(e->out, " %s %s", op_of(e, &far, i, &next), name);
		put_term(e, &far, 0, "ell..", i == 1 ? "0" : NULL);
		str_printf(e->out, " * x%d", i);
		put_term(e, &e->in[i], i, "ell..", "0");
		str_addc(e->out, ';');
		name = arena_printf(e->out->a, "t%d", i);
		far = next;
	}
}

void build_einsum(str *out, const char *name, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at)
{
	struct einsum *e = arena_make(out->a, struct einsum);

	*e = (struct einsum){.out = out,
		.name = name,
		.text = "",
		.n = n,
		.operand = operand,
		.shown = shown,
		.at = at};
	if (n_attrs != 1 || strcmp(attr[0].name, "equation") != 0 ||
		attr[0].kind != ATTR_STRING)
		fail(e, "equation", "exactly one attribute is needed: equation");
	e->text = attr[0].string;
	if (n < 1 || n > IR_MAX_OPERANDS)
		fail(e, "operands", "there is no operand, or there are too "
			"many");
	parse_equation(e);
	find_extents(e);
	str_add(out, "einsum(");
	for (int32_t i = 0; i < n; i++) {
		str_printf(out, "%sx%d", i > 0 ? ", " : "", i);
		put_term(e, &e->in[i], i, "~ell..", "1");
		str_add(out, ":num");
	}
	str_add(out, ") -> o {");
	put_steps(e);
	str_add(out, " }");
}
