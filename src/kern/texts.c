/*
 * texts.c: a kernel from a file, instead of the one that was made of the program;
 * and the text of a kernel, verified.
 *
 * The params and checks of the text must be those of the program; everything else
 * in the kernel is up to the text.
 */
#include "kern/parse.h"

/* Checks that the params and checks of the text are those of the program. */
static void match(const lex *l, const lex_token *at, kern_kernel *k,
	const kern_kernel *like)
{
	if (k->n_params != like->n_params || k->n_outputs != like->n_outputs)
		lex_fail(l, at, "param",
			"this kernel has %d params, %d of them results",
			like->n_params, like->n_outputs);
	for (int32_t i = 0; i < k->n_params; i++) {
		kern_array *r = &k->array.at[i];
		const kern_array *w = &like->array.at[i];

		if (r->dtype != w->dtype || r->elems != w->elems ||
			r->out != w->out || r->in != w->in)
			lex_fail(l, at, "param",
				"param p%d of this kernel is %s[%lld] %s", i,
				dtype_name(w->dtype), (long long)w->elems,
				w->out ? "out" : "in");
		r->tensor = w->tensor;
	}
	if (k->shared != like->shared)
		lex_fail(l, at, "param", "params of this kernel %s",
			like->shared ? "overlap" : "do not overlap");
	if (k->check.n != like->check.n)
		lex_fail(l, at, "check", "this kernel has %d checks",
			like->check.n);
	for (int32_t i = 0; i < k->check.n; i++) {
		kern_check *c = &k->check.at[i];
		const kern_check *w = &like->check.at[i];

		if (strcmp(c->name, w->name) != 0 || c->lo != w->lo ||
			c->hi != w->hi)
			lex_fail(l, at, "check",
				"check %d of this kernel is %s in %lld .. %lld",
				i + 1, w->name, (long long)w->lo,
				(long long)w->hi);
		c->tensor = w->tensor;
	}
}

kern_kernel *kern_text_apply(
	kernel_texts *f, const kern_kernel *like, int32_t number)
{
	const lex_token *at;
	lex *l = kernel_texts_open(f, number, like->name, &at);
	kern_kernel *k;

	if (l == NULL)
		return NULL;
	k = kern_new(like->a, like->name);
	kern_parse_kernel(l, k);
	match(l, at, k, like);
	k->bytes = like->bytes;
	k->flops = like->flops;
	k->serial = like->serial;
	k->spread = like->spread;
	kern_verify(k);
	return k;
}

void kern_verify_text(const kern_kernel *k, int32_t number)
{
	arena *a = arena_child(k->a);
	str s = str_new(a);
	kern_kernel *read;

	kern_print(&s, k, number);
	read = kern_parse(a, s.at, s.n, "kern");
	read->own = true;
	kern_verify(read);
	arena_free(a);
}
