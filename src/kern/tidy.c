/*
 * tidy.c: numbers values in order of their definitions; see kern.h.
 *
 * A value gets its number where the text shows it first: at its `let`, loop or
 * register; a constant, and a value without a `let`, where it is used. Forms are
 * built again, because their terms are in the order of values.
 */
#include "kern/local.h"

struct tidy {
	kern_kernel *k;
	VEC(kern_value) old;
	kern_val *to; /* 0: not yet */
	bool *declared; /* by array: of a block */
	int32_t n_stack; /* number of arrays of blocks so far */
};

static kern_val moved(struct tidy *t, kern_val v);

static const kern_form *form(struct tidy *t, const kern_form *f)
{
	const kern_form *r;

	if (f == NULL)
		return NULL;
	r = kern_form_const(t->k, f->c0);
	for (int32_t i = 0; i < f->n; i++)
		r = kern_form_add(t->k, r,
			kern_form_term(t->k, f->t[i].coef, moved(t, f->t[i].v)));
	return r;
}

static void access(struct tidy *t, kern_access *at)
{
	at->at = form(t, at->at);
	at->mask = moved(t, at->mask);
	at->whole = moved(t, at->whole);
	at->by = moved(t, at->by);
}

/* Numbers its operands first. */
static kern_val define(struct tidy *t, kern_val v)
{
	kern_value x = t->old.at[v];

	if (t->to[v] != 0)
		return t->to[v];
	for (int32_t i = 0; i < KERN_MAX_ARGS; i++)
		x.arg[i] = moved(t, x.arg[i]);
	for (int32_t i = 0; i < 2; i++)
		x.form[i] = form(t, x.form[i]);
	access(t, &x.at);
	t->to[v] = kern_ins(t->k, &x);
	return t->to[v];
}

static kern_val moved(struct tidy *t, kern_val v)
{
	return v == 0 ? 0 : define(t, v);
}

static const kern_val *moved_all(struct tidy *t, const kern_val *v, int32_t n)
{
	kern_val *to = n > 0 ? arena_array(t->k->a, kern_val, n) : NULL;

	for (int32_t i = 0; i < n; i++)
		to[i] = moved(t, v[i]);
	return to;
}

static void block(struct tidy *t, kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		kern_stmt *s = b->list.at[i];

		if (s->kind == KERN_ARRAY) {
			t->k->array.at[s->array].number = t->n_stack++;
			t->declared[s->array] = true;
		}
		s->lo = form(t, s->lo);
		s->hi = form(t, s->hi);
		access(t, &s->at);
		access(t, &s->from);
		access(t, &s->to);
		s->acc = moved_all(t, s->acc, s->n_acc);
		s->x = moved(t, s->x);
		s->v = moved(t, s->v);
		s->after = moved(t, s->after);
		block(t, &s->body);
		block(t, &s->other);
	}
}

void kern_tidy(kern_kernel *k)
{
	struct tidy t = {.k = k,
		.to = arena_array(k->a, kern_val, k->value.n),
		.declared = arena_array(k->a, bool, k->array.n + 1)};

	t.old.at = k->value.at;
	t.old.n = k->value.n;
	memset(&k->value, 0, sizeof k->value);
	(void)vec_push(k->a, &k->value);
	k->value.at[0] = t.old.at[0];
	k->forms = map_new(k->a);
	k->consts = map_new(k->a);
	for (int32_t i = 0; i < k->n_phases; i++) {
		k->phase[i].chunk = moved(&t, k->phase[i].chunk);
		block(&t, &k->phase[i].body);
	}
	/* what nothing declares any more has no number of what is declared */
	for (int32_t i = 0; i < k->array.n; i++)
		if (k->array.at[i].space == KERN_STACK && !t.declared[i])
			k->array.at[i].number = t.n_stack++;
	for (int32_t i = 1; i < t.old.n; i++)
		if (t.to[i] != 0 && t.old.at[i].op == KERN_CONST) {
			const kern_value *x = &t.old.at[i];
			int64_t key[2] = {x->type.dt, x->c.i};

			map_set(k->consts, key, sizeof key, t.to[i]);
		}
}
