/*
 * report.c: what a compiled function has become, as text: its slots - whose
 * storage, which versions - its calls, and for the backward where each value
 * comes from that it reads.
 *
 *     slots
 *       0  argument x   f32[4]  version 0
 *       1  param mean   f32[4]  version 0 -> 2
 *     forward
 *       %0 = square(x)
 *       mean@1 = write(mean[i + 2], %0)                    model.c:12
 *     middles
 *       0  mean@1       f32[4]  saved, 16 bytes: model.c:14 writes mean@2
 *
 * A value is name@version, or %number. Source: docs/compile.md.
 */
#include "func/report.h"

/* ---- names ---- */

static bool has_name(const naming *m, const t_value *v)
{
	return map_get(m->of, &v, sizeof v, -1) >= 0;
}

static void set_name(naming *m, const t_value *v, const char *name)
{
	if (has_name(m, v))
		return;
	map_set(m->of, &v, sizeof v, m->name.n);
	*vec_push(m->a, &m->name) = name;
}

const char *report_name(naming *m, const t_value *v)
{
	int64_t i = map_get(m->of, &v, sizeof v, -1);

	return i < 0 ? "%?" : m->name.at[i];
}

const char *report_slot_name(arena *a, const variant *v, int32_t i)
{
	const source *from = &v->from[i];
	const char *own = from->s != NULL ? from->s->name : NULL;

	switch (from->kind) {
	case FROM_ARG:
	case FROM_STORAGE_OF:
		return own != NULL ? own
				   : arena_printf(a, "a%d", (int)from->arg);
	case FROM_KNOWN:
		return own != NULL ? own : arena_printf(a, "k%d", (int)i);
	case FROM_GRADIENT:
		return arena_printf(a, "grad(%s)", own != NULL ? own : "?");
	case FROM_KEY:
		return arena_printf(a, "key%d", (int)i);
	case FROM_VALUE:
	case FROM_BODY:
		break;
	}
	return arena_printf(a, "c%d", (int)i);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= '0' && c <= '9');
}

const char *report_fresh(arena *a, map *taken, const char *from)
{
	static const char *const words[] = {
		"return", "program", "op", "param", "inf", "nan", "true",
		"false"};
	str s = str_new(a);
	const char *name;
	int32_t number = 0;

	if (from[0] >= '0' && from[0] <= '9')
		str_addc(&s, 'x');
	for (const char *c = from; *c != '\0'; c++)
		if (is_word(*c))
			str_addc(&s, *c);
		else if (c[1] != '\0') /* "grad(w)" is grad_w */
			str_addc(&s, '_');
	if (map_n(taken) == 0)
		for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
			map_set_str(taken, words[i], 1);
	name = s.n > 0 ? s.at : "x";
	while (map_get_str(taken, name, 0) != 0)
		name = arena_printf(a, "%s_%d", s.at, (int)++number);
	map_set_str(taken, name, 1);
	return name;
}

static void name_chain(naming *m, const t_trace *f, int32_t i)
{
	const char *name = report_slot_name(m->a, m->v, i);
	const t_value *v = f->in[i];
	t_version next;

	set_name(m, v, name);
	for (int32_t n = 1; t_next_version(f, v, &next); n++) {
		set_name(m, next.next,
			arena_printf(m->a, "%s@%d", name, (int)n));
		v = next.next;
	}
}

static void name_results(naming *m, const t_trace *f)
{
	for (int32_t k = 0; k < f->call.n; k++)
		for (int32_t i = 0; i < f->call.at[k]->n_results; i++)
			if (f->call.at[k]->result[i] != NULL &&
				!has_name(m, f->call.at[k]->result[i]))
				set_name(m, f->call.at[k]->result[i],
					arena_printf(m->a, "%%%d",
						(int)m->n_free++));
}

naming *report_names(arena *a, tensors *t, const variant *v)
{
	naming *m = arena_make(a, naming);
	const t_trace *f = v->trace;
	const t_back *b = report_back(v);

	*m = (naming){.t = t, .a = a, .v = v, .of = map_new(a)};
	for (int32_t i = 0; i < f->n_in; i++)
		name_chain(m, f, i);
	name_results(m, f);
	if (b == NULL)
		return m;
	for (int32_t k = 0; k < b->trace->n_in; k++)
		if (b->from_seed[k] >= 0)
			set_name(m, b->trace->in[k],
				arena_printf(a, "d(%s)",
					report_name(m,
						f->out[b->from_seed[k]])));
	for (int32_t k = 0; k < b->trace->n_out; k++)
		set_name(m, b->trace->out[k],
			arena_printf(a, "%s(%s)",
				b->kind[k] == BACK_OPERAND ? "d" : "d_written",
				report_name(m, f->in[b->of_in[k]])));
	name_results(m, b->trace);
	return m;
}

/* "mean@1[i + 2, j]" */
static void print_read(str *s, naming *m, const t_read *r)
{
	t_seen x = {r->v, r->view};

	str_add(s, report_name(m, r->v));
	t_print_place(m->t, s, &x);
}

/* "model.c:12"; "" if unknown */
static const char *line_of(const t_trace *f, int32_t call, arena *a)
{
	const loc *at = f->at != NULL ? &f->at[call] : NULL;

	if (at == NULL || at->file == NULL || at->line <= 0)
		return "";
	return arena_printf(a, "%s:%d", at->file, (int)at->line);
}

/* ---- facts ---- */

bool report_slot(
	const t_trace *f, const t_value *v, int32_t *slot, int32_t *version)
{
	for (int32_t i = 0; i < f->n_in; i++) {
		t_version next = {.next = f->in[i]};

		*slot = i;
		*version = 0;
		while (next.next != v && t_next_version(f, next.next, &next))
			++*version;
		if (next.next == v)
			return true;
	}
	return false;
}

const t_back *report_back(const variant *v)
{
	const t_trace *f = v->trace->tracked;

	return f == NULL || f->back.n == 0 || f->back.at[0]->trace == NULL
		? NULL
		: f->back.at[0];
}

bool report_middle(const variant *v, int32_t k, middle *out)
{
	const t_trace *f = v->trace->tracked;
	const t_back *b = f->back.at[0];
	const t_value *x = b->trace->in[k];
	bool in_chain;

	*out = (middle){.v = x, .slot = -1, .result = b->from_out[k]};
	if (b->from_seed[k] >= 0)
		return false;
	for (int32_t i = 0; i < b->moved.n; i++)
		if (b->moved.at[i].to == x) {
			out->v = b->moved.at[i].from;
			out->is_stored = b->moved.at[i].is_stored;
		}
	in_chain = report_slot(f, x, &out->slot, &out->version);
	if (in_chain && t_next_version(f, x, &out->end)) {
		out->fate = FATE_SAVED;
		out->bytes = ir_type_bytes(&x->type);
	} else if (in_chain) {
		out->fate = FATE_SLOT;
	} else if (out->result < f->n_known) {
		out->fate = FATE_FRESH;
	} else {
		out->fate = t_next_version(f, x, &out->end) ? FATE_SAVED
							    : FATE_OWN;
		out->bytes = ir_type_bytes(&x->type);
	}
	return true;
}

/* ---- text ---- */

static void pad_to(str *s, size_t start, size_t column)
{
	do
		str_addc(s, ' ');
	while (s->n - start < column);
}

static const char *source_text(const source *from)
{
	switch (from->kind) {
	case FROM_ARG:
		return "argument ";
	case FROM_STORAGE_OF:
		return "storage of argument ";
	case FROM_KNOWN:
		return "param ";
	case FROM_KEY:
		return "random ";
	case FROM_GRADIENT:
	case FROM_VALUE:
	case FROM_BODY:
		break;
	}
	return from->kind == FROM_VALUE ? "constant " : "";
}

static void add_slots(str *s, naming *m)
{
	const t_trace *f = m->v->trace;

	str_add(s, "slots\n");
	for (int32_t i = 0; i < f->n_in; i++) {
		size_t start = s->n;
		int32_t slot, version = 0;

		str_printf(s, "  %d  %s%s", (int)i,
			source_text(&m->v->from[i]),
			report_name(m, f->in[i]));
		pad_to(s, start, 28);
		ir_type_add(s, &f->in[i]->type);
		pad_to(s, start, 44);
		str_add(s, "version 0");
		if (f->next[i] >= 0 &&
			report_slot(f, f->out[f->next[i]], &slot, &version))
			str_printf(s, " -> %d", (int)version);
		str_addc(s, '\n');
	}
}

static void add_call(str *s, naming *m, const t_trace *f, int32_t k)
{
	const t_call *c = f->call.at[k];
	size_t start = s->n;
	const char *line = f == m->v->trace ? line_of(f, k, m->a) : "";
	const ir_inst *inst = c->entry != NULL ? c->entry->inst : NULL;

	str_add(s, "  ");
	for (int32_t i = 0; i < c->n_results; i++)
		str_printf(s, "%s%s", i > 0 ? ", " : "",
			c->result[i] != NULL ? report_name(m, c->result[i])
					     : "_");
	str_printf(s, " = %s(", t_is_write(c) ? "write"
		: c->trace != NULL		? c->trace->name
		: ir_row_name(inst->asked != NULL ? inst->asked : inst->row));
	for (int32_t i = 0; i < c->n_args; i++) {
		str_add(s, i > 0 ? ", " : "");
		print_read(s, m, &c->arg[i]);
	}
	for (int32_t i = 0; inst != NULL && i < inst->n_attrs; i++) {
		str_add(s, c->n_args + i > 0 ? ", " : "");
		ir_attr_print(s, &inst->attr[i]);
	}
	str_addc(s, ')');
	if (*line != '\0') {
		pad_to(s, start, 60);
		str_add(s, line);
	}
	str_addc(s, '\n');
}

static void add_outputs(str *s, naming *m, int32_t n)
{
	const t_trace *f = m->v->trace;
	int32_t slot, version;

	str_add(s, "outputs\n");
	for (int32_t i = 0; i < n; i++) {
		const output *o = &m->v->out[i];
		size_t start = s->n;

		str_printf(s, "  %d  ", (int)i);
		ir_type_add(s, &o->type);
		pad_to(s, start, 28);
		if (o->from.kind != FROM_BODY) {
			for (slot = 0; slot < f->n_in - 1; slot++)
				if (m->v->from[slot].kind == o->from.kind &&
					m->v->from[slot].arg == o->from.arg &&
					m->v->from[slot].s == o->from.s)
					break;
			version = 0;
			if (f->next[slot] >= 0)
				(void)report_slot(f, f->out[f->next[slot]],
					&slot, &version);
			str_printf(s, "slot %d, version %d%s\n", (int)slot,
				(int)version,
				o->view != NULL ? ", through a view" : "");
		} else if (o->same < i) {
			str_printf(s, "the storage of output %d%s\n",
				(int)o->same,
				o->view != NULL ? ", through a view" : "");
		} else {
			str_printf(s, "fresh: %s%s\n",
				report_name(m, f->out[o->out]),
				o->view != NULL ? ", through a view" : "");
		}
	}
}

static void add_fate(str *s, naming *m, const middle *x)
{
	const t_trace *f = m->v->trace->tracked;
	const char *line;

	switch (x->fate) {
	case FATE_SLOT:
		str_printf(s, "slot %d, version %d, 0 bytes", (int)x->slot,
			(int)x->version);
		break;
	case FATE_FRESH:
		str_printf(s, "output, 0 bytes");
		break;
	case FATE_OWN:
		str_printf(s, "own, %zu bytes: passes over, no copy", x->bytes);
		break;
	case FATE_SAVED:
		line = line_of(f, x->end.call, m->a);
		str_printf(s, "saved, %zu bytes: %s%swrites %s", x->bytes, line,
			*line != '\0' ? " " : "",
			report_name(m, x->end.next));
		break;
	}
	if (x->is_stored)
		str_add(s, ", where it was written");
	str_addc(s, '\n');
}

static void add_middles(str *s, naming *m, const t_back *b)
{
	size_t bytes = 0;
	int32_t n = 0;
	middle x;

	str_add(s, "middles\n");
	for (int32_t k = 0; k < b->trace->n_in; k++) {
		size_t start = s->n;

		if (!report_middle(m->v, k, &x))
			continue;
		bytes += x.bytes;
		str_printf(s, "  %d  %s", (int)n++, report_name(m, x.v));
		pad_to(s, start, 28);
		ir_type_add(s, &x.v->type);
		pad_to(s, start, 44);
		add_fate(s, m, &x);
	}
	str_printf(s, "  %zu bytes are kept for the backward", bytes);
	if (b->trace->n_again > 0)
		str_printf(s, ", %d call%s made again",
			(int)b->trace->n_again,
			b->trace->n_again > 1 ? "s are" : " is");
	str_addc(s, '\n');
}

static void add_back(str *s, naming *m, const t_back *b)
{
	add_middles(s, m, b);
	str_add(s, "backward\n");
	for (int32_t k = 0; k < b->trace->call.n; k++)
		add_call(s, m, b->trace, k);
	str_add(s, "gradients\n");
	for (int32_t k = 0; k < b->trace->n_out; k++)
		str_printf(s, "  %s of slot %d%s\n",
			report_name(m, b->trace->out[k]), (int)b->of_in[k],
			b->kind[k] == BACK_OPERAND
				? ""
				: ": of what is written to it");
}

void tensor_function_print(str *s, const tensor_function *f)
{
	for (int32_t i = 0; i < f->variant.n; i++) {
		const variant *v = f->variant.at[i];
		arena *a = arena_child(f->t->a);
		naming *m = report_names(a, f->t, v);

		str_printf(s, "%s%s, kind %d of %d\n", i > 0 ? "\n" : "",
			f->name, (int)i + 1, (int)f->variant.n);
		add_slots(s, m);
		str_add(s, "forward\n");
		for (int32_t k = 0; k < v->trace->call.n; k++)
			add_call(s, m, v->trace, k);
		add_outputs(s, m, f->n_out);
		for (int32_t k = 0; k < v->grad.n; k++)
			str_printf(s, "  collects the gradient of %s\n",
				v->grad.at[k].to.s != NULL &&
						v->grad.at[k].to.s->name
					? v->grad.at[k].to.s->name
					: "an argument");
		if (report_back(v) != NULL)
			add_back(s, m, report_back(v));
		arena_free(a);
	}
}

/* ---- outputs ---- */

static bool same_source(const source *x, const source *y)
{
	return x->kind == y->kind && x->arg == y->arg && x->s == y->s;
}

int32_t report_output(
	const tensor_function *f, const variant *v, t_halves *h, int32_t i)
{
	const output *o = &v->out[i];
	const t_trace *g = h->f;
	int32_t slot = 0;

	if (o->from.kind == FROM_BODY)
		return t_halves_seen(f->t, h, h->out[o->out], o->view);
	while (slot < g->n_in - 1 && !same_source(&v->from[slot], &o->from))
		slot++;
	return t_halves_seen(f->t, h,
		g->next[slot] >= 0 ? h->out[g->next[slot]] : h->in[slot],
		o->view);
}
