/*
 * kernel_texts.c: divides a file of kernel texts into sections.
 */
#include "notation/kernel_texts.h"

struct section {
	int32_t number;
	const char *name;
	const lex_token *at;
	int32_t first; /* first token after the '{'; -1: opaque */
	bool used;
};

struct kernel_texts {
	arena *a;
	lex *l;
	VEC(struct section) section;
};

static void parse_machine(
	kernel_texts *f, const char *level, const char *machine)
{
	const lex_token *at, *last;
	int32_t n;

	lex_need(f->l, level);
	at = last = lex_take(f->l);
	while (!lex_is(f->l, "kernel") && lex_peek(f->l)->kind != LEX_END)
		last = lex_take(f->l);
	n = (int32_t)(last->at + last->n - at->at);
	if ((size_t)n != strlen(machine) || memcmp(at->at, machine, (size_t)n) != 0)
		lex_fail(f->l, at, "machine",
			"this %s is for the machine %.*s, the program is "
			"compiled for %s",
			level, n, at->at, machine);
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

static void parse_section(kernel_texts *f)
{
	struct section *s = vec_push(f->a, &f->section);
	int64_t number;

	*s = (struct section){.at = lex_peek(f->l), .first = -1};
	lex_need(f->l, "kernel");
	number = lex_int(f->l, "the number of a kernel");
	s->number = number < 0 || number > INT32_MAX ? -1 : (int32_t)number;
	for (int32_t i = 0; i + 1 < f->section.n; i++)
		if (f->section.at[i].number == number)
			lex_fail(f->l, s->at, "kernel",
				"kernel %lld occurs twice", (long long)number);
	s->name = lex_name(f->l, "the name of a kernel");
	if (lex_eat(f->l, "opaque"))
		return;
	lex_need(f->l, "{");
	s->first = f->l->next;
	skip_braces(f->l);
}

kernel_texts *kernel_texts_new(arena *a, const char *level, const char *text,
	size_t n, const char *file, const char *machine)
{
	kernel_texts *f = arena_make(a, kernel_texts);

	f->a = a;
	f->l = lex_new(a, level, text, n, (loc){.file = file}, true);
	parse_machine(f, level, machine);
	while (lex_peek(f->l)->kind != LEX_END)
		parse_section(f);
	return f;
}

lex *kernel_texts_open(kernel_texts *f, int32_t number, const char *name,
	const lex_token **at)
{
	for (int32_t i = 0; i < f->section.n; i++) {
		struct section *s = &f->section.at[i];

		if (s->number != number)
			continue;
		s->used = true;
		if (strcmp(s->name, name) != 0)
			lex_fail(f->l, s->at, "kernel",
				"kernel %d of this program is %s", number,
				name);
		if (s->first < 0)
			lex_fail(f->l, s->at, "kernel",
				"this kernel is not opaque here");
		f->l->next = s->first;
		*at = s->at;
		return f->l;
	}
	return NULL;
}

bool kernel_texts_fit(
	const kernel_texts *f, int32_t n, const char *const *name)
{
	for (int32_t i = 0; i < f->section.n; i++) {
		const struct section *s = &f->section.at[i];

		if (s->number < 0 || s->number >= n ||
			(s->first < 0) != (name[s->number] == NULL) ||
			(s->first >= 0 && strcmp(s->name, name[s->number]) != 0))
			return false;
	}
	return f->section.n > 0;
}

void kernel_texts_end(kernel_texts *f, int32_t n_kernels)
{
	for (int32_t i = 0; i < f->section.n; i++) {
		const struct section *s = &f->section.at[i];

		if (!s->used && (s->first >= 0 || s->number >= n_kernels))
			lex_fail(f->l, s->at, "kernel",
				"the program has no such kernel: it has kernels 0 to %d",
				n_kernels - 1);
	}
}
