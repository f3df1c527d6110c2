/*
 * name.c: the name of a kernel in generated code.
 *
 * Consumes a scheduled kernel; produces the operations of its statements in
 * the order in which they run, each once, as letters, digits and '_', for
 * profilers and debuggers:
 *
 *     add, softmax.m, softmax.s, softmax      ->  add_softmax
 *
 * It depends on labels only, not on names of tensors: kernels with the same code
 * have the same name. It is not unique; the printer of the code makes it so.
 */
#include "loop/tree.h"

enum { MAX_NAME = 48, MAX_WORDS = 64 };

typedef struct naming {
	const loop_kernel *k;
	str *out;
	int32_t n_left_out;
	struct word {
		const char *at;
		size_t n;
	} seen[MAX_WORDS];
	int32_t n_seen;
} naming;

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9');
}

/* The operation of a label: "softmax" of "softmax.m". */
static void add(naming *m, const char *label)
{
	size_t n = strcspn(label, ".");

	for (int32_t i = 0; i < m->n_seen; i++)
		if (m->seen[i].n == n &&
			memcmp(m->seen[i].at, label, n) == 0)
			return;
	if (m->n_seen == MAX_WORDS || m->n_left_out > 0 ||
		m->out->n + n + 1 > MAX_NAME) {
		m->n_left_out++;
		return;
	}
	m->seen[m->n_seen++] = (struct word){label, n};
	if (m->out->n > 0)
		str_addc(m->out, '_');
	for (size_t i = 0; i < n; i++)
		str_addc(m->out, is_letter(label[i]) ? label[i] : '_');
}

static bool is_statement(const loop_node *n)
{
	return n->kind == LOOP_STMT || n->kind == LOOP_TILE ||
	       n->kind == LOOP_PART || n->kind == LOOP_JOIN;
}

/* The recursion is as deep as the loops: a few dozen. */
static void walk(naming *m, const loop_node *n)
{
	if (is_statement(n)) {
		const loop_eqn *e = &m->k->eqn[n->eqn];

		if (!e->stage && !e->pack)
			add(m, loop_label(e));
	}
	for (int32_t i = 0; i < n->n_child; i++)
		walk(m, n->child[i]);
}

void loop_name(str *out, const loop_kernel *k)
{
	naming m = {.k = k, .out = out};

	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			walk(&m, k->phase[p].root[i]);
	if (out->n == 0)
		str_add(out, "copy");
	if (m.n_left_out > 0)
		str_add(out, "_and_more");
}
