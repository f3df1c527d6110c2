/*
 * texts.c: a file of kernels, each read in the place of what was made of the
 * program.
 *
 * Params and checks are the program's: a text names them, and cannot change
 * them. What the kernel does between them is the text's.
 */
#include "kern/parse.h"

struct section {
	int32_t number;
	const char *name;
	const lex_token *at;
	int32_t first; /* token behind the '{'; -1: opaque */
	bool used;
};

struct kern_texts {
	arena *a;
	lex *l;
	VEC(struct section) section;
};

static void parse_machine(kern_texts *f, const char *machine)
{
	const lex_token *at, *last;

	lex_need(f->l, "kern");
	at = last = lex_take(f->l);
	while (!lex_is(f->l, "kernel") && lex_peek(f->l)->kind != LEX_END)
		last = lex_take(f->l);
	if ((size_t)(last->at + last->n - at->at) != strlen(machine) ||
		memcmp(at->at, machine, strlen(machine)) != 0)
		lex_fail(f->l, at, "machine",
			"these kernels are for the machine %.*s, the program is compiled for %s",
			(int)(last->at + last->n - at->at), at->at, machine);
}

static void skip_braces(lex *l)
{
	int32_t depth = 1;

	while (depth > 0) {
		if (lex_peek(l)->kind == LEX_END)
			lex_unexpected(l, "'}'");
		depth += lex_is(l, "{") - lex_is(l, "}");
		lex_take(l);
	}
}

static void parse_section(kern_texts *f)
{
	struct section *s = vec_push(f->a, &f->section);
	int64_t number;

	*s = (struct section){.at = lex_peek(f->l), .first = -1};
	lex_need(f->l, "kernel");
	number = lex_int(f->l, "the number of a kernel");
	for (int32_t i = 0; i + 1 < f->section.n; i++)
		if (f->section.at[i].number == number)
			lex_fail(f->l, s->at, "kernel",
				"kernel %lld stands twice", (long long)number);
	s->number = number < 0 || number > INT32_MAX ? -1 : (int32_t)number;
	s->name = lex_name(f->l, "the name of a kernel");
	if (lex_eat(f->l, "opaque"))
		return;
	lex_need(f->l, "{");
	s->first = f->l->next;
	skip_braces(f->l);
}

kern_texts *kern_texts_new(arena *a, const char *text, size_t n,
	const char *file, const char *machine)
{
	kern_texts *f = arena_make(a, kern_texts);

	f->a = a;
	f->l = lex_new(a, "kern", text, n, (loc){.file = file}, true);
	parse_machine(f, machine);
	while (lex_peek(f->l)->kind != LEX_END)
		parse_section(f);
	return f;
}

/* What the text says of a param or a check is what the program has. */
static void match(const kern_texts *f, const struct section *s, kern_kernel *k,
	const kern_kernel *like)
{
	if (k->n_params != like->n_params || k->n_outputs != like->n_outputs)
		lex_fail(f->l, s->at, "param",
			"this kernel has %d params, %d of them results",
			like->n_params, like->n_outputs);
	for (int32_t i = 0; i < k->n_params; i++) {
		kern_array *r = &k->array.at[i];
		const kern_array *w = &like->array.at[i];

		if (r->dtype != w->dtype || r->elems != w->elems ||
			r->out != w->out || r->in != w->in)
			lex_fail(f->l, s->at, "param",
				"param p%d of this kernel is %s[%lld] %s", i,
				dtype_name(w->dtype), (long long)w->elems,
				w->out ? "out" : "in");
		r->tensor = w->tensor;
	}
	if (k->shared != like->shared)
		lex_fail(f->l, s->at, "param", "params of this kernel %s",
			like->shared ? "overlap" : "do not overlap");
	if (k->check.n != like->check.n)
		lex_fail(f->l, s->at, "check", "this kernel has %d checks",
			like->check.n);
	for (int32_t i = 0; i < k->check.n; i++) {
		kern_check *c = &k->check.at[i];
		const kern_check *w = &like->check.at[i];

		if (strcmp(c->name, w->name) != 0 || c->lo != w->lo ||
			c->hi != w->hi)
			lex_fail(f->l, s->at, "check",
				"check %d of this kernel is %s in %lld .. %lld",
				i + 1, w->name, (long long)w->lo,
				(long long)w->hi);
		c->tensor = w->tensor;
	}
}

kern_kernel *kern_texts_apply(
	kern_texts *f, const kern_kernel *like, int32_t number)
{
	for (int32_t i = 0; i < f->section.n; i++) {
		struct section *s = &f->section.at[i];
		kern_kernel *k;

		if (s->number != number)
			continue;
		s->used = true;
		if (strcmp(s->name, like->name) != 0)
			lex_fail(f->l, s->at, "kernel",
				"kernel %d of this program is %s", number,
				like->name);
		if (s->first < 0)
			lex_fail(f->l, s->at, "kernel",
				"this kernel is not opaque here");
		f->l->next = s->first;
		k = kern_new(like->a, like->name);
		kern_parse_kernel(f->l, k);
		match(f, s, k, like);
		k->bytes = like->bytes;
		k->flops = like->flops;
		kern_verify(k);
		return k;
	}
	return NULL;
}

void kern_texts_end(kern_texts *f, int32_t n_kernels)
{
	for (int32_t i = 0; i < f->section.n; i++) {
		const struct section *s = &f->section.at[i];

		if (!s->used && (s->first >= 0 || s->number >= n_kernels))
			lex_fail(f->l, s->at, "kernel",
				"the program has no such kernel: it has kernels 0 to %d",
				n_kernels - 1);
	}
}
