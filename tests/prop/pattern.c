/*
 * pattern.c: shapes that fit the patterns of operands.
 *
 * Consumes the pattern of an operand as the row has it; either matches a shape
 * with it, or draws one. What letters, packs and attributes stand for is bound
 * on the way, so that the patterns of one row agree:
 *
 *   x[a..(axis), n, b..]   fits [2,3,4], e.g. with a.. = [2], n = 3, b.. = [4]
 *                          and the attribute axis = 1
 *
 * It need not be exact: what does not fit the row is refused by it, and drawn
 * again. It must reach everything.
 */
#include "prop.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_PATS = 10 };

typedef enum kind { LETTER, PACK, JOIN, DIGITS, NUMBER } kind;

typedef struct pat {
	kind kind;
	const char *name;   /* packs: with their dots */
	const char *extent; /* text behind '=' or of the length; or NULL */
	int64_t number;
	struct pattern *sub;
} pat;

struct pattern {
	int32_t n;
	pat at[MAX_PATS];
};

/* ---- bindings ---- */

bound *bindings_find(bindings *b, const char *name)
{
	for (int32_t i = 0; i < b->n; i++)
		if (strcmp(b->at[i].name, name) == 0)
			return &b->at[i];
	return NULL;
}

bound *bindings_add(bindings *b, const char *name)
{
	bound *x = &b->at[b->n < MAX_BOUND ? b->n++ : MAX_BOUND - 1];

	*x = (bound){.name = name};
	return x;
}

int64_t draw_extent(bindings *b)
{
	int64_t p = rng_below(b->r, 100);

	if (b->large > 0 && p < 40) {
		int64_t n = b->large;

		b->large = 0;
		return n;
	}
	if (p < 3)
		return 0;
	if (p < 15)
		return 1;
	if (p < 92)
		return 2 + rng_below(b->r, p < 60 ? 4 : 8);
	return 10 + rng_below(b->r, 60);
}

/* ---- parsing ---- */

static void skip(const char **s)
{
	while (isspace((unsigned char)**s))
		++*s;
}

static bool eat(const char **s, const char *word)
{
	skip(s);
	if (strncmp(*s, word, strlen(word)) != 0)
		return false;
	*s += strlen(word);
	return true;
}

static const char *word(arena *a, const char **s)
{
	const char *from;

	skip(s);
	from = *s;
	while (isalnum((unsigned char)**s) || **s == '_' || **s == '\'')
		++*s;
	return arena_strndup(a, from, (size_t)(*s - from));
}

/* text up to a ',' or ')' that no parenthesis of its own encloses */
static const char *rest(arena *a, const char **s)
{
	const char *from;
	int32_t depth = 0;

	skip(s);
	from = *s;
	for (; **s != '\0' && (depth > 0 || (**s != ',' && **s != ')')); ++*s)
		depth += **s == '(' ? 1 : **s == ')' ? -1 : 0;
	return arena_strndup(a, from, (size_t)(*s - from));
}

static bool parse_list(arena *a, const char **s, pattern *p);

static bool parse_one(arena *a, const char **s, pat *p)
{
	skip(s);
	if (eat(s, "(")) {
		p->kind = DIGITS;
		p->sub = arena_make(a, pattern);
		return parse_list(a, s, p->sub) && eat(s, ")");
	}
	if (isdigit((unsigned char)**s)) {
		p->kind = NUMBER;
		p->number = strtoll(word(a, s), NULL, 10);
		return true;
	}
	p->kind = eat(s, "~") ? JOIN : LETTER;
	p->name = word(a, s);
	if (p->name[0] == '\0')
		return false;
	if (eat(s, "..")) {
		p->name = arena_printf(a, "%s..", p->name);
		if (p->kind == LETTER)
			p->kind = PACK;
		if (eat(s, "(")) {
			p->extent = rest(a, s);
			return eat(s, ")");
		}
		return true;
	}
	if (eat(s, "="))
		p->extent = rest(a, s);
	return p->kind == LETTER;
}

static bool parse_list(arena *a, const char **s, pattern *p)
{
	skip(s);
	if (**s == '\0' || **s == ')')
		return true;
	do
		if (p->n == MAX_PATS || !parse_one(a, s, &p->at[p->n++]))
			return false;
	while (eat(s, ","));
	return true;
}

const pattern *pattern_parse(arena *a, const char *text)
{
	pattern *p = arena_make(a, pattern);
	const char *s = text;

	if (!parse_list(a, &s, p))
		return NULL;
	skip(&s);
	return *s == '\0' ? p : NULL;
}

/* ---- texts of extents and lengths ---- */

/* "groups", "3", "len(#d..)", "#t", "len(size)" */
typedef struct meant {
	int64_t v;	  /* -1: not known yet */
	const char *attr; /* attribute that it speaks of: "=groups"; or NULL */
	bool list;	  /* of its length */
} meant;

static meant meaning(bindings *b, const char *text)
{
	meant m = {.v = -1};
	char name[48];
	const bound *x;

	if (sscanf(text, "%47[0-9]", name) == 1) {
		m.v = strtoll(text, NULL, 10);
		return m;
	}
	if (sscanf(text, "len(#%47[a-zA-Z_.]", name) == 1 ||
		sscanf(text, "#%47[a-zA-Z_.]", name) == 1) {
		x = bindings_find(b, name);
		if (x != NULL)
			m.v = x->is_pack ? x->n : x->e[0];
		return m;
	}
	m.list = sscanf(text, "len(%47[a-zA-Z_]", name) == 1;
	if (!m.list && sscanf(text, "%47[a-zA-Z_]", name) != 1)
		return m;
	m.attr = arena_printf(b->a, "=%s", name);
	x = bindings_find(b, m.attr);
	if (x != NULL)
		m.v = x->e[0];
	return m;
}

static void settle(bindings *b, const meant *m, int64_t v)
{
	bound *x;

	if (m->attr == NULL || m->v >= 0)
		return;
	x = bindings_add(b, m->attr);
	x->n = m->list ? -1 : 0;
	x->e[0] = v;
}

static void bind_letter(bindings *b, const char *name, int64_t e)
{
	bindings_add(b, name)->e[0] = e;
}

/* ---- matching ---- */

static int64_t some_divisor(bindings *b, int64_t e)
{
	int64_t d = e > 0 ? rng_range(b->r, 1, e < 12 ? e : 12) : 1;

	while (e % d != 0)
		d--;
	return d;
}

/* The extent a letter must have; -1: free. */
static int64_t known(bindings *b, const pat *p, meant *m)
{
	const bound *x = bindings_find(b, p->name);

	*m = (meant){.v = -1};
	if (x != NULL)
		return x->e[0];
	if (p->extent != NULL)
		*m = meaning(b, p->extent);
	return m->v;
}

static bool fit_letter(bindings *b, const pat *p, int64_t e)
{
	meant m;
	int64_t v = known(b, p, &m);

	if (v >= 0 && v != e)
		return false;
	settle(b, &m, e);
	if (bindings_find(b, p->name) == NULL)
		bind_letter(b, p->name, e);
	return true;
}

static bool fit_digits(bindings *b, const pattern *p, int64_t e)
{
	int64_t fixed = 1;
	int32_t n_free = 0;
	meant m;

	for (int32_t i = 0; i < p->n; i++) {
		int64_t v = p->at[i].kind == NUMBER ? p->at[i].number
						    : known(b, &p->at[i], &m);

		if (v >= 0)
			fixed *= v;
		else
			n_free++;
	}
	if (fixed == 0 || e % fixed != 0)
		return false;
	e /= fixed;
	for (int32_t i = 0; i < p->n; i++) {
		int64_t v;

		if (p->at[i].kind == NUMBER)
			continue;
		v = known(b, &p->at[i], &m);
		if (v < 0) {
			v = --n_free == 0 ? e : some_divisor(b, e);
			e = v == 0 ? 1 : e / v;
		}
		fit_letter(b, &p->at[i], v);
	}
	return e == 1;
}

/* Broadcasting: joins the extents into those of the pack. */
static bool fit_join(bindings *b, const char *name, const int64_t *e, int32_t n)
{
	bound *x = bindings_find(b, name);

	if (x == NULL) {
		x = bindings_add(b, name);
		x->is_pack = true;
	}
	for (int32_t i = 1; i <= n; i++) {
		int64_t *to = &x->e[x->n - i];

		if (i > x->n) { /* one more axis in front */
			memmove(x->e + 1, x->e, (size_t)x->n * sizeof *x->e);
			x->e[0] = e[n - i];
			x->n++;
		} else if (*to == 1) {
			*to = e[n - i];
		} else if (*to != e[n - i] && e[n - i] != 1) {
			return false;
		}
	}
	return true;
}

static bool fit_pack(bindings *b, const pat *p, const int64_t *e, int32_t n)
{
	bound *x = bindings_find(b, p->name);
	meant m = {.v = -1};

	if (x != NULL)
		return x->n == n &&
			memcmp(x->e, e, (size_t)n * sizeof *e) == 0;
	if (p->extent != NULL)
		m = meaning(b, p->extent);
	if (m.v >= 0 && m.v != n)
		return false;
	settle(b, &m, n);
	x = bindings_add(b, p->name);
	x->is_pack = true;
	x->n = n;
	memcpy(x->e, e, (size_t)n * sizeof *e);
	return true;
}

/* Length of a pack; -1: free. Other patterns are one axis. */
static int64_t axes_of(bindings *b, const pat *p)
{
	const bound *x;

	if (p->kind == JOIN)
		return -1;
	if (p->kind != PACK)
		return 1;
	x = bindings_find(b, p->name);
	if (x != NULL)
		return x->n;
	return p->extent != NULL ? meaning(b, p->extent).v : -1;
}

bool pattern_fit(const pattern *p, bindings *b, const ir_type *t)
{
	int64_t left = t->rank;
	int32_t n_free = 0, at = 0;

	for (int32_t i = 0; i < p->n; i++) {
		int64_t n = axes_of(b, &p->at[i]);

		n_free += n < 0;
		left -= n < 0 ? 0 : n;
	}
	if (left < 0 || (left > 0 && n_free == 0))
		return false;
	for (int32_t i = 0; i < p->n; i++) {
		const pat *q = &p->at[i];
		const int64_t *e = t->shape + at;
		int32_t n = (int32_t)axes_of(b, q);
		bool ok = false;

		if (n < 0) {
			n = (int32_t)(--n_free == 0
					? left
					: rng_range(b->r, 0, left));
			left -= n;
		}
		if (at + n > t->rank)
			return false;
		at += n;
		switch (q->kind) {
		case LETTER:
			ok = fit_letter(b, q, *e);
			break;
		case PACK:
			ok = fit_pack(b, q, e, n);
			break;
		case JOIN:
			ok = fit_join(b, q->name, e, n);
			break;
		case DIGITS:
			ok = fit_digits(b, q->sub, *e);
			break;
		case NUMBER:
			ok = *e == q->number;
			break;
		}
		if (!ok)
			return false;
	}
	return at == t->rank;
}

/* ---- drawing ---- */

static int64_t draw_letter(bindings *b, const pat *p)
{
	meant m;
	int64_t v;

	if (p->kind == NUMBER)
		return p->number;
	v = known(b, p, &m);
	if (v < 0) {
		v = m.attr != NULL ? rng_range(b->r, 1, 4) : draw_extent(b);
		settle(b, &m, v);
	}
	if (bindings_find(b, p->name) == NULL)
		bind_letter(b, p->name, v);
	return v;
}

/* An operand that broadcasts into what there is, now and then beyond. */
static int32_t draw_join(bindings *b, const pat *p, int64_t *e)
{
	const bound *x = bindings_find(b, p->name);
	int32_t n = x == NULL ? (int32_t)rng_range(b->r, 0, 3) : x->n;
	int32_t less = rng_percent(b->r, 30) ? (int32_t)rng_range(b->r, 0, n) : 0;

	if (x != NULL && n < 5 && rng_percent(b->r, 10)) {
		e[0] = draw_extent(b);
		memcpy(e + 1, x->e, (size_t)n * sizeof *e);
		n++;
	} else {
		n -= less;
		for (int32_t i = 0; i < n; i++)
			e[i] = x == NULL ? draw_extent(b) : x->e[less + i];
	}
	for (int32_t i = 0; i < n; i++)
		if (rng_percent(b->r, 12))
			e[i] = 1;
	fit_join(b, p->name, e, n);
	return n;
}

static int32_t draw_pack(bindings *b, const pat *p, int64_t *e, int32_t room)
{
	const bound *x = bindings_find(b, p->name);
	meant m = {.v = -1};
	int32_t n;

	if (x != NULL) {
		memcpy(e, x->e, (size_t)x->n * sizeof *e);
		return x->n;
	}
	if (p->extent != NULL)
		m = meaning(b, p->extent);
	n = (int32_t)(m.v >= 0 ? m.v : rng_range(b->r, 0, room < 3 ? room : 3));
	if (n > room)
		n = room;
	for (int32_t i = 0; i < n; i++)
		e[i] = draw_extent(b);
	fit_pack(b, p, e, n);
	return n;
}

bool pattern_draw(const pattern *p, bindings *b, ir_type *t)
{
	t->rank = 0;
	for (int32_t i = 0; i < p->n; i++) {
		const pat *q = &p->at[i];
		int64_t e[2 * TN_MAX_RANK];
		int32_t n = 1, room = TN_MAX_RANK - 2 - t->rank - (p->n - 1 - i);

		if (room < 0)
			return false;
		switch (q->kind) {
		case LETTER:
		case NUMBER:
			e[0] = draw_letter(b, q);
			break;
		case PACK:
			n = draw_pack(b, q, e, room);
			break;
		case JOIN:
			n = draw_join(b, q, e);
			break;
		case DIGITS:
			e[0] = 1;
			for (int32_t k = 0; k < q->sub->n; k++)
				e[0] *= draw_letter(b, &q->sub->at[k]);
			break;
		}
		if (t->rank + n > TN_MAX_RANK)
			return false;
		memcpy(t->shape + t->rank, e, (size_t)n * sizeof *e);
		t->rank += n;
	}
	return shape_numel(t->shape, t->rank) >= 0;
}
