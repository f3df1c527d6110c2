/*
 * print.c: prints a kernel as C functions, one per phase, statement by statement.
 *
 *   void k_add_relu_5d1c.._0(void *const *p, void *scratch, void *local, i64 chunk,
 *                            i64 *err)
 *
 * A name consists of the kernel's name, for people, and a hash of the text: kernels
 * with the same text are one function. The text contains no names of the user,
 * except labels in comments, which have only letters, digits, '_' and '.'.
 */
#include "target/c/local.h"

#include <inttypes.h>

static void line(printer *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void line(printer *p, const char *fmt, ...)
{
	va_list ap;

	for (int32_t i = 0; i < p->depth; i++)
		str_addc(p->out, '\t');
	va_start(ap, fmt);
	str_vprintf(p->out, fmt, ap);
	va_end(ap);
	str_addc(p->out, '\n');
}

static void block(printer *p, const kern_block *b);

static void in_braces(printer *p, const kern_block *b, const char *end)
{
	p->depth++;
	block(p, b);
	p->depth--;
	line(p, "%s", end);
}

/* An index read from data, within its bounds. */
static void check(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);
	const kern_check *c = &p->k->check.at[v->num[0] - 1];
	const char *n = c_name(p, id);

	line(p, "i64 %s = (i64)%s;", n, c_name(p, v->arg[0]));
	line(p, "if (%s < %" PRId64 " || %s >= %" PRId64 ") {", n, c->lo, n,
		c->hi);
	line(p, "	*err = %" PRId64 ";", v->num[0]);
	line(p, "	%s = %s(%s, %" PRId64 ", %" PRId64 ");", n,
		c_int_helper(p, "clamp_i64"), n, c->lo, c->hi - 1);
	line(p, "}");
}

/* The integers of a form, one for each lane after the first. */
static void by_lane(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);

	line(p, "%s %s = { 0 };", c_type(p, v->type), c_name(p, id));
	line(p, "for (int l = 0; l < %d; l++)", v->type.lanes);
	line(p, "	%s[l] = (%s)(%s);", c_name(p, id),
		c_stored_type(p, v->type.dt), c_value(p, id));
}

/* Lanes of a form are computed by a loop, not by an expression. */
static bool is_by_lane(const kern_value *x)
{
	return x->type.lanes > 1 && x->form[0] != NULL && x->op != KERN_LANE;
}

static void let(printer *p, kern_val v)
{
	const kern_value *x = kern_at(p->k, v);

	p->is_let[v] = true;
	if (x->op == KERN_CHECK)
		check(p, v);
	else if (is_by_lane(x))
		by_lane(p, v);
	else
		line(p, "const %s %s = %s;", c_type(p, kern_at(p->k, v)->type),
			c_name(p, v), c_value(p, v));
}

/* The operand of a statement: its name, or the expression that computes it. */
static const char *taken(printer *p, kern_val v)
{
	const kern_value *x = kern_at(p->k, v);

	if (strchr(kern_op_at(x->op)->flags, 'd') != NULL || p->is_let[v])
		return c_name(p, v);
	if (x->op != KERN_CHECK && !is_by_lane(x))
		return c_value(p, v);
	let(p, v);
	return c_name(p, v);
}

static void var(printer *p, const kern_stmt *s)
{
	kern_type t = kern_at(p->k, s->v)->type;

	line(p, "%s %s = %s;", c_type(p, t), c_name(p, s->v),
		s->x != 0      ? taken(p, s->x)
		: t.lanes > 1 ? "{ 0 }"
			      : "0");
}

static void store(printer *p, const kern_stmt *s)
{
	kern_type t = kern_at(p->k, s->x)->type;
	const char *e = c_element(p, &s->at), *x = taken(p, s->x);

	if (t.lanes == 1) {
		line(p, "%s = %s;", e, x);
	} else if (s->at.part > 0) {
		line(p, "%s(&%s, %s, %d);",
			c_use(p, "store_part", t.dt, t.lanes), e, x,
			s->at.part);
	} else if (s->stream) {
		line(p, "if (n%d)", p->k->array.at[s->at.array].number);
		line(p, "	%s(&%s, %s);",
			c_use(p, "stream", t.dt, t.lanes), e, x);
		line(p, "else");
		line(p, "	%s(&%s, %s);",
			c_use(p, "store", t.dt, t.lanes), e, x);
	} else {
		line(p, "%s(&%s, %s);", c_use(p, "store", t.dt, t.lanes), e,
			x);
	}
}

static void loop(printer *p, const kern_stmt *s)
{
	const char *v, *lo = c_form(p, s->lo), *hi = c_form(p, s->hi);
	const char *t = c_type(p, kern_at(p->k, s->v)->type);

	p->name[s->v] = s->after; /* one variable, in the loop and after it */
	v = c_name(p, s->v);
	if (s->after != 0)
		line(p, "%s %s = %s;", t, v, lo);
	if (s->down)
		line(p, "for (%s %s = %s - 1; %s >= %s; %s--) {", t, v, hi, v,
			lo, v);
	else
		line(p, "for (%s; %s%s %s %s; %s += %" PRId64 ") {",
			s->after != 0 ? ""
				      : arena_printf(p->a, "%s %s = %s", t, v,
						lo),
			v,
			s->whole ? arena_printf(p->a, " + %" PRId64, s->step)
				 : "",
			s->whole ? "<=" : "<", hi, v, s->step);
	in_braces(p, &s->body, "}");
}

static void condition(printer *p, const kern_stmt *s)
{
	const char *c = taken(p, s->x);

	if (s->rarely)
		line(p, "if (__builtin_expect(%s, 0)) {", c);
	else
		line(p, "if (%s) {", c);
	in_braces(p, &s->body, s->other.list.n > 0 ? "} else {" : "}");
	if (s->other.list.n > 0)
		in_braces(p, &s->other, "}");
}

static void array(printer *p, const kern_stmt *s)
{
	const kern_array *r = &p->k->array.at[s->array];

	line(p, "%s s%d[%" PRId64 "]%s;", c_stored_type(p, r->dtype),
		r->number, r->elems, s->stream ? " = { 0 }" : "");
}

static void statement(printer *p, const kern_stmt *s)
{
	switch (s->kind) {
	case KERN_LET:
		let(p, s->v);
		break;
	case KERN_VAR:
		var(p, s);
		break;
	case KERN_SET:
		line(p, "%s = %s;", c_name(p, s->v), taken(p, s->x));
		break;
	case KERN_SET_LANE:
		line(p,
			kern_at(p->k, s->v)->type.mask > 0 ? "%s[%s] = -(%s);"
							   : "%s[%s] = %s;",
			c_name(p, s->v), c_form(p, s->lo), taken(p, s->x));
		break;
	case KERN_STORE:
		store(p, s);
		break;
	case KERN_FOR:
		loop(p, s);
		break;
	case KERN_IF:
		condition(p, s);
		break;
	case KERN_BLOCK:
		line(p, "{");
		in_braces(p, &s->body, "}");
		break;
	case KERN_ARRAY:
		array(p, s);
		break;
	case KERN_PREFETCH:
		line(p, "__builtin_prefetch(&%s, 0, %d);",
			c_element(p, &s->at), s->far ? 2 : 3);
		break;
	case KERN_FENCE:
		line(p, "__atomic_thread_fence(__ATOMIC_SEQ_CST);");
		break;
	case KERN_TURN:
		line(p, "%s(&%s, %" PRId64 ", &%s, %" PRId64 ");",
			c_turn(p, s->type.dt, s->type.lanes),
			c_element(p, &s->at), s->n, c_element(p, &s->from),
			s->m);
		break;
	case KERN_NOTE:
		line(p, "/* %s */", s->text);
		break;
	}
}

static void block(printer *p, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++)
		statement(p, b->list.at[i]);
}

/* ---- functions ---- */

/* The largest vector that is stored past the caches determines the alignment. */
static void stream(printer *p, const kern_stmt *s)
{
	kern_type t = kern_at(p->k, s->x)->type;
	int32_t bytes = t.lanes * (int32_t)dtype_size(t.dt);

	if (bytes > p->streams[s->at.array])
		p->streams[s->at.array] = bytes;
}

static void use_value(printer *p, kern_val v)
{
	if (kern_at(p->k, v)->op == KERN_LOAD)
		p->used[kern_at(p->k, v)->at.array] = true;
}

/* Arrays that the block names. */
static void find_used(printer *p, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if (s->kind == KERN_LET)
			use_value(p, s->v);
		use_value(p, s->x);
		if (s->kind == KERN_STORE || s->kind == KERN_PREFETCH ||
			s->kind == KERN_TURN)
			p->used[s->at.array] = true;
		if (s->kind == KERN_STORE && s->stream)
			stream(p, s);
		if (s->kind == KERN_TURN)
			p->used[s->from.array] = true;
		find_used(p, &s->body);
		find_used(p, &s->other);
	}
}

static void pointers(printer *p)
{
	const kern_kernel *k = p->k;

	for (int32_t i = 0; i < k->array.n; i++) {
		const kern_array *r = &k->array.at[i];
		const char *t = c_stored_type(p, r->dtype);

		if (!p->used[i] || r->space == KERN_STACK)
			continue;
		if (r->space == KERN_PARAM)
			line(p, "%s%s *const %sp%d = p[%d];",
				r->out ? "" : "const ", t,
				k->shared ? "" : "restrict ", i, i);
		else
			line(p,
				"%s *const %c%d = (void *)((char *)%s + "
				"%" PRId64 ");",
				t, r->space == KERN_LOCAL ? 'b' : 'q',
				r->number,
				r->space == KERN_LOCAL ? "local" : "scratch",
				r->offset);
		if (p->streams[i] > 0)
			line(p,
				"const int n%d = ((__UINTPTR_TYPE__)p%d & %d) "
				"== 0;",
				i, i, p->streams[i] - 1);
	}
	line(p, "(void)p, (void)scratch, (void)local, (void)chunk, (void)err;");
}

static const char *phase(printer *p, const kern_phase *ph)
{
	str out = str_new(p->a);

	p->used = arena_array(p->a, bool, p->k->array.n + 1);
	p->streams = arena_array(p->a, int32_t, p->k->array.n + 1);
	p->out = &out;
	p->depth = 1;
	find_used(p, &ph->body);
	pointers(p);
	block(p, &ph->body);
	str_add(&out, "}\n");
	return out.at;
}

static void copy_header(arena *a, c_kernel *out, const kern_kernel *k)
{
	int32_t *param = arena_array(a, int32_t, k->n_params + 1);
	c_check *check = arena_array(a, c_check, k->check.n + 1);

	for (int32_t i = 0; i < k->n_params; i++)
		param[i] = k->array.at[i].tensor;
	for (int32_t i = 0; i < k->check.n; i++)
		check[i] = (c_check){k->check.at[i].tensor, k->check.at[i].lo,
			k->check.at[i].hi};
	out->n_phases = k->n_phases;
	out->n_params = k->n_params;
	out->param = param;
	out->n_outputs = k->n_outputs;
	out->scratch_bytes = k->scratch_bytes;
	out->local_bytes = k->local_bytes;
	out->n_checks = k->check.n;
	out->check = check;
	out->bytes = k->bytes;
	out->flops = k->flops;
	out->serial = k->serial;
}

c_kernel *c_print(arena *a, const kern_kernel *k)
{
	printer p = {.a = a, .k = k, .m = c_math_new(a), .known = map_new(a)};
	c_kernel *out = arena_make(a, c_kernel);
	struct needs *needs = arena_make(a, struct needs);
	const char *text[KERN_MAX_PHASES];
	uint64_t h = 1;
	str c = str_new(a);

	p.is_let = arena_array(a, bool, k->value.n + 1);
	p.name = arena_array(a, kern_val, k->value.n + 1);
	c_stored_type(&p, TN_I64);
	c_stored_type(&p, TN_U8);
	for (int32_t i = 0; i < k->n_phases; i++) {
		text[i] = phase(&p, &k->phase[i]);
		h = hash_bytes(text[i], strlen(text[i]), h);
	}
	copy_header(a, out, k);
	for (int32_t i = 0; i < k->n_phases; i++) {
		out->phase[i].fn = arena_printf(
			a, "k_%s_%016" PRIx64 "_%d", k->name, h, i);
		out->phase[i].n_chunks = k->phase[i].n_chunks;
		out->phase[i].copies = k->phase[i].copies;
		str_printf(&c,
			"void %s(void *const *p, void *scratch, void *local,\n"
			"	i64 chunk, i64 *err)\n{\n%s%s",
			out->phase[i].fn, text[i],
			i + 1 < k->n_phases ? "\n" : "");
	}
	out->c = c.at;
	needs->n = p.needs.n;
	needs->at = p.needs.at;
	out->needs = needs;
	return out;
}
