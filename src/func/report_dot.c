/*
 * report_dot.c: a compiled function as a Graphviz picture: its slots with
 * their chains of versions on the left, the calls of the forward, those of the
 * backward, and between them, in bold, what crosses.
 *
 *     tenon explain --level=split --dot FILE.tn | dot -Tsvg > split.svg
 */
#include "func/report.h"

static void add_text(str *s, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			str_addc(s, '\\');
		str_addc(s, *text == '\n' ? ' ' : *text);
	}
}

/* A node for each version of a slot: s<slot>_<version> */
static void add_chains(str *s, naming *m)
{
	const t_trace *f = m->v->trace;

	str_add(s, "  subgraph cluster_slots {\n    label=\"slots\"\n");
	for (int32_t i = 0; i < f->n_in; i++) {
		t_version next = {.next = f->in[i]};
		int32_t n = 0;

		do {
			str_printf(s,
				"    s%d_%d [shape=box style=rounded label=\"",
				(int)i, (int)n);
			add_text(s, report_name(m, next.next));
			str_add(s, "\"]\n");
			if (n > 0)
				str_printf(s, "    s%d_%d -> s%d_%d "
					"[style=dotted]\n", (int)i, (int)n - 1,
					(int)i, (int)n);
			n++;
		} while (t_next_version(f, next.next, &next));
	}
	str_add(s, "  }\n");
}

/* The node that value v is, or is made by; false: a seed, or of the other part */
static bool add_node(str *s, naming *m, const t_trace *f, char part,
	const t_value *v)
{
	int32_t slot, version;

	if (report_slot(m->v->trace, v, &slot, &version)) {
		str_printf(s, "s%d_%d", (int)slot, (int)version);
		return true;
	}
	for (int32_t k = 0; k < f->call.n; k++)
		for (int32_t i = 0; i < f->call.at[k]->n_results; i++)
			if (f->call.at[k]->result[i] == v) {
				str_printf(s, "%c%d", part, (int)k);
				return true;
			}
	return false;
}

static void add_edge(str *s, naming *m, const t_trace *f, char part,
	const t_read *r, int32_t to)
{
	t_seen x = {r->v, r->view};

	str_add(s, "  ");
	if (!add_node(s, m, f, part, r->v)) {
		str_printf(s, "\"");
		add_text(s, report_name(m, r->v));
		str_printf(s, "\"");
	}
	str_printf(s, " -> %c%d [label=\"", part, (int)to);
	t_print_place(m->t, s, &x);
	str_add(s, "\"]\n");
}

static bool is_of_forward(const t_back *b, const t_value *v)
{
	for (int32_t k = 0; k < b->trace->n_in; k++)
		if (b->trace->in[k] == v)
			return b->from_seed[k] < 0;
	return false;
}

static void add_calls(str *s, naming *m, const t_trace *f, char part,
	const char *title)
{
	int32_t slot, version;

	str_printf(s, "  subgraph cluster_%c {\n    label=\"%s\"\n", part,
		title);
	for (int32_t k = 0; k < f->call.n; k++) {
		const t_call *c = f->call.at[k];

		str_printf(s, "    %c%d [label=\"", part, (int)k);
		for (int32_t i = 0; i < c->n_results; i++)
			if (c->result[i] != NULL) {
				add_text(s, report_name(m, c->result[i]));
				str_add(s, " ");
			}
		str_printf(s, "= %s\"]\n", t_is_write(c) ? "write"
			: c->trace != NULL		 ? c->trace->name
					: ir_row_name(c->entry->inst->row));
	}
	str_add(s, "  }\n");
	for (int32_t k = 0; k < f->call.n; k++) {
		const t_call *c = f->call.at[k];

		for (int32_t i = 0; i < c->n_args; i++)
			if (part == 'f' || !is_of_forward(
				report_back(m->v), c->arg[i].v))
				add_edge(s, m, f, part, &c->arg[i], k);
		for (int32_t i = 0; i < c->n_results && part == 'f'; i++)
			if (c->result[i] != NULL && report_slot(f,
				c->result[i], &slot, &version))
				str_printf(s, "  f%d -> s%d_%d\n", (int)k,
					(int)slot, (int)version);
	}
}

/* What crosses from the forward to the backward, by its fate. */
static void add_crossing(str *s, naming *m, const t_back *b)
{
	static const char *const fates[] = {"slot", "output", "saved", "own"};
	const t_trace *f = m->v->trace;
	middle x;

	for (int32_t k = 0; k < b->trace->n_in; k++) {
		if (!report_middle(m->v, k, &x))
			continue;
		for (int32_t c = 0; c < b->trace->call.n; c++) {
			const t_call *call = b->trace->call.at[c];
			bool reads = false;

			for (int32_t i = 0; i < call->n_args; i++)
				reads = reads ||
					call->arg[i].v == b->trace->in[k];
			if (!reads)
				continue;
			str_add(s, "  ");
			if (!add_node(s, m, f, 'f', b->trace->in[k]))
				str_add(s, "constants");
			str_printf(s, " -> b%d [style=bold label=\"%s",
				(int)c, fates[x.fate]);
			if (x.bytes > 0)
				str_printf(s, " %zu bytes", x.bytes);
			str_add(s, "\"]\n");
		}
	}
}

static void add_outputs(str *s, naming *m, int32_t n)
{
	const t_trace *f = m->v->trace;

	for (int32_t i = 0; i < n; i++) {
		const output *o = &m->v->out[i];

		if (o->from.kind != FROM_BODY)
			continue;
		str_printf(s, "  out%d [shape=box label=\"output %d\"]\n  ",
			(int)i, (int)i);
		(void)add_node(s, m, f, 'f', f->out[o->out]);
		str_printf(s, " -> out%d\n", (int)i);
	}
}

void tensor_function_dot(str *s, const tensor_function *f)
{
	str_add(s, "digraph split {\n  rankdir=LR\n  node [shape=plaintext]\n");
	if (f->variant.n > 0) { /* the first kind */
		const variant *v = f->variant.at[0];
		arena *a = arena_child(f->t->a);
		naming *m = report_names(a, f->t, v);
		const t_back *b = report_back(v);

		add_chains(s, m);
		add_calls(s, m, v->trace, 'f', "forward");
		add_outputs(s, m, f->n_out);
		if (b != NULL) {
			add_calls(s, m, b->trace, 'b', "backward");
			add_crossing(s, m, b);
		}
		arena_free(a);
	}
	str_add(s, "}\n");
}
