/*
 * rarely.c: what a kernel does rarely is a function of its own.
 *
 * A C compiler gives registers to all variables of a function alike, and computes what
 * two places need once, in front of both: the loops of a tile that is computed term by
 * term, if a sum is not finite, slowed down the loops of all other tiles. The names in
 * such a function are those around it, which are its parameters.
 */
#include "target/c/text.h"

#include <inttypes.h>

struct found {
	const printer *p;
	bool *defined; /* [value] in the block */
	bool *set;     /* [value] a register that gets a value in the block */
	bool loops, other; /* a statement that needs the function around it */
};

/* Does it need nothing of the function but names? */
static bool is_plain(const kern_stmt *s)
{
	return s->kind == KERN_LET || s->kind == KERN_VAR || s->kind == KERN_SET ||
	       s->kind == KERN_SET_LANE || s->kind == KERN_STORE || s->kind == KERN_FOR ||
	       s->kind == KERN_IF || s->kind == KERN_BLOCK || s->kind == KERN_NOTE;
}

static void find(struct found *f, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if (s->kind == KERN_SET || s->kind == KERN_SET_LANE)
			f->set[s->v] = true;
		else
			f->defined[s->v] = true;
		f->defined[s->after] = true;
		f->loops |= s->kind == KERN_FOR;
		f->other |= s->stream || s->by_warp || s->by_lane || !is_plain(s);
		find(f, &s->body);
		find(f, &s->other);
	}
}

static bool sets_others(const struct found *f)
{
	for (int32_t v = 1; v < f->p->k->value.n; v++)
		if (f->set[v] && !f->defined[v])
			return true;
	return false;
}

/* Adds what the function has from outside: as parameters, and as arguments. */
static void add_values(
	printer *p, const struct found *f, const bool *before, str *params, str *args)
{
	for (int32_t v = 1; v < p->k->value.n; v++) {
		bool named = before[v] ||
			     strchr(kern_op_at(kern_at(p->k, v)->op)->flags, 'd') != NULL;

		if (!p->mentioned[v] || !named || f->defined[v])
			continue;
		str_printf(params, ", %s %s", c_type_of(p, v), c_name(p, v));
		str_printf(args, ", %s", c_name(p, v));
	}
}

static void add_arrays(printer *p, const kern_block *b, str *params, str *args)
{
	bool *used = arena_array(p->a, bool, p->k->array.n + 1);

	c_find_used(p, b, used);
	for (int32_t i = 0; i < p->k->array.n; i++) {
		const kern_array *r = &p->k->array.at[i];
		bool keeps = r->space == KERN_PARAM && !r->out;

		if (!used[i])
			continue;
		str_printf(params, ", %s%s *%s", keeps ? "const " : "",
			c_stored_type(p, r->dtype), c_array_name(p, i));
		str_printf(args, ", %s", c_array_name(p, i));
	}
}

static const char *body_of(printer *p, const kern_block *b, c_print_block *print)
{
	str text = str_new(p->a), *out = p->out;
	int32_t depth = p->depth;

	p->out = &text;
	p->depth = 1;
	print(p, b);
	p->out = out;
	p->depth = depth;
	return text.at;
}

bool c_rarely(printer *p, const kern_block *b, c_print_block *print)
{
	int32_t n = p->k->value.n + 1;
	struct found f = {.p = p,
		.defined = arena_array(p->a, bool, n),
		.set = arena_array(p->a, bool, n)};
	bool *before = arena_copy(p->a, p->is_let, (size_t)n * sizeof *before);
	str params = str_new(p->a), args = str_new(p->a);
	const char *body, *name;

	find(&f, b);
	/* a register that each warp has is an array, and what is in such a function stays */
	if (!f.loops || f.other || sets_others(&f) || p->by_warp != NULL ||
		p->mentioned != NULL)
		return false;
	p->mentioned = arena_array(p->a, bool, n);
	body = body_of(p, b, print);
	add_values(p, &f, before, &params, &args);
	p->mentioned = NULL;
	add_arrays(p, b, &params, &args);
	name = arena_printf(p->a, "rarely_%016" PRIx64,
		hash_bytes(body, strlen(body), hash_bytes(params.at, params.n, 1)));
	c_need(p, (struct need){NEED_TEXT, name, TN_U8, TN_U8, 1, 0,
			  arena_printf(p->a,
				  "static %s void %s(i64 *err%s)\n{\n%s\t(void)err;\n}\n",
				  c_word_of(p, C_WORD_SELDOM), name, params.at, body)});
	c_line(p, "%s(err%s);", name, args.at);
	return true;
}
