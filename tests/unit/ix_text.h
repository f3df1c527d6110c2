/*
 * ix_text.h: forms from text, so that cases are tables.
 *
 *     box    "i:8 j:3"                letters with their extents
 *     form   "4*i + (j/2)%3 + 1"      floor division, non-negative remainder
 *            "clamp(i - 1, 0, 5)", "f[3*i]"   f .. h: values 0 .. 4
 *     facts  "0 <= j - 1 < 6, 2 <= i < 4"
 *
 * Forms are built with the operations of ix.h, in the order of the text.
 */
#ifndef IX_TEXT_H
#define IX_TEXT_H

#include "ix/ix.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct ix_text {
	ix *x;
	ix_dom d;
	int64_t extent[8];
	char letter[8];
	ix_fact facts[8];
	const char *at;
} ix_text;

static inline char ix_text_peek(ix_text *t)
{
	while (*t->at == ' ')
		t->at++;
	return *t->at;
}

static inline bool ix_text_eat(ix_text *t, const char *what)
{
	if (ix_text_peek(t) != *what || strncmp(t->at, what, strlen(what)) != 0)
		return false;
	t->at += strlen(what);
	return true;
}

static inline int64_t ix_text_int(ix_text *t)
{
	char *end;
	int64_t v;

	(void)ix_text_peek(t);
	v = strtoll(t->at, &end, 10);
	t->at = end;
	return v;
}

static inline const ix_form *ix_text_sum(ix_text *t);

static inline const ix_form *ix_text_name(ix_text *t)
{
	char c = *t->at++;
	const ix_form *f;

	if (ix_text_eat(t, "[")) {
		f = ix_text_sum(t);
		(void)ix_text_eat(t, "]");
		return ix_fun(t->x, c - 'f', f, 0, 5);
	}
	for (int32_t i = 0; i < t->d.box.n; i++)
		if (t->letter[i] == c)
			return ix_axis(t->x, &t->d, i);
	fail_msg("no axis '%c'", c);
	return NULL;
}

static inline const ix_form *ix_text_factor(ix_text *t)
{
	const ix_form *f;
	int64_t lo;

	if (ix_text_eat(t, "clamp(")) {
		f = ix_text_sum(t);
		(void)ix_text_eat(t, ",");
		lo = ix_text_int(t);
		(void)ix_text_eat(t, ",");
		f = ix_clamp(t->x, &t->d, f, lo, ix_text_int(t));
		(void)ix_text_eat(t, ")");
		return f;
	}
	if (ix_text_eat(t, "(")) {
		f = ix_text_sum(t);
		(void)ix_text_eat(t, ")");
		return f;
	}
	if (isalpha((unsigned char)ix_text_peek(t)))
		return ix_text_name(t);
	return ix_const(t->x, ix_text_int(t));
}

static inline const ix_form *ix_text_product(ix_text *t)
{
	const ix_form *f = ix_text_factor(t), *g;

	for (;;) {
		if (ix_text_eat(t, "/")) {
			f = ix_div(t->x, &t->d, f, ix_text_int(t));
		} else if (ix_text_eat(t, "%")) {
			f = ix_mod(t->x, &t->d, f, ix_text_int(t));
		} else if (ix_text_eat(t, "*")) {
			g = ix_text_factor(t);
			f = f->n == 0 ? ix_scale(t->x, g, f->c0) :
					ix_scale(t->x, f, g->c0);
		} else {
			return f;
		}
	}
}

static inline const ix_form *ix_text_sum(ix_text *t)
{
	const ix_form *f = ix_const(t->x, 0);
	bool minus = ix_text_eat(t, "-");

	for (;;) {
		const ix_form *g = ix_text_product(t);

		f = minus ? ix_sub(t->x, &t->d, f, g) :
			    ix_add(t->x, &t->d, f, g);
		minus = ix_text_peek(t) == '-';
		if (!ix_text_eat(t, "+") && !ix_text_eat(t, "-"))
			return f;
	}
}

static inline const ix_form *ix_text_form(ix_text *t, const char *text)
{
	const ix_form *f;

	t->at = text;
	f = ix_text_sum(t);
	if (ix_text_peek(t) != '\0')
		fail_msg("'%s' is left of '%s'", t->at, text);
	return f;
}

/* facts may be NULL */
static inline void ix_text_init(ix_text *t, arena *a, const char *box,
	const char *facts)
{
	memset(t, 0, sizeof *t);
	t->x = ix_new(a);
	t->d.box.extent = t->extent;
	for (t->at = box; ix_text_peek(t) != '\0'; t->d.box.n++) {
		t->letter[t->d.box.n] = *t->at++;
		(void)ix_text_eat(t, ":");
		t->extent[t->d.box.n] = ix_text_int(t);
	}
	t->d.facts = t->facts;
	for (t->at = facts == NULL ? "" : facts; ix_text_peek(t) != '\0';) {
		ix_fact g = {NULL, ix_text_int(t), 0};

		(void)ix_text_eat(t, "<=");
		g.f = ix_text_sum(t);
		(void)ix_text_eat(t, "<");
		g.hi = ix_text_int(t);
		(void)ix_text_eat(t, ",");
		t->facts[t->d.n_facts++] = g;
	}
}

static inline const char *ix_text_fun(void *arg, int64_t fun)
{
	static const char *const name[] = {"f", "g", "h"};

	(void)arg;
	return name[fun];
}

static inline const char *ix_text_print(ix_text *t, const ix_form *f)
{
	str s = str_new(ix_arena(t->x));
	const char *names[8];

	for (int32_t i = 0; i < t->d.box.n; i++)
		names[i] = arena_strndup(ix_arena(t->x), &t->letter[i], 1);
	ix_print(&s, f, &t->d.box, names, ix_text_fun, NULL);
	return s.at;
}

#endif
