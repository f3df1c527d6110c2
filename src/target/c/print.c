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
#include "target/c/text.h"

#include <inttypes.h>

static void block(printer *p, const kern_block *b);

static void in_braces(printer *p, const kern_block *b, const char *end)
{
	p->depth++;
	block(p, b);
	p->depth--;
	c_line(p, "%s", end);
}

/* The same where indices have 32 bits: those in memory have their own. */
static void checked_narrow(printer *p, kern_val id, const char *failed)
{
	const kern_value *v = kern_at(p->k, id);
	const kern_check *c = &p->k->check.at[v->num[0] - 1];
	const char *n = c_name(p, id), *t = c_type_of(p, id);

	c_line(p, "i64 in_%s = (i64)%s;", n, c_name(p, v->arg[0]));
	c_line(p, "if (in_%s < %" PRId64 " || in_%s >= %" PRId64 ") {", n,
		c->lo, n, c->hi);
	c_line(p, "	%s", failed);
	c_line(p, "	in_%s = in_%s < %" PRId64 " ? %" PRId64 " : %" PRId64 ";",
		n, n, c->lo, c->lo, c->hi - 1);
	c_line(p, "}");
	c_line(p, "const %s %s = (%s)in_%s;", t, n, t, n);
	c_line(p, "(void)%s;", n);
}

/* An index read from data, within its bounds; failed: what notes that it is not. */
void c_checked(printer *p, kern_val id, const char *failed)
{
	const kern_value *v = kern_at(p->k, id);
	const kern_check *c = &p->k->check.at[v->num[0] - 1];
	const char *n = c_name(p, id);

	if (p->k->narrow) {
		checked_narrow(p, id, failed);
		return;
	}
	c_line(p, "i64 %s = (i64)%s;", n, c_name(p, v->arg[0]));
	c_line(p, "if (%s < %" PRId64 " || %s >= %" PRId64 ") {", n, c->lo, n,
		c->hi);
	c_line(p, "	%s", failed);
	c_line(p, "	%s = %s(%s, %" PRId64 ", %" PRId64 ");", n,
		c_int_helper(p, "clamp"), n, c->lo, c->hi - 1);
	c_line(p, "}");
}

static bool let_in_lines(printer *p, kern_val v)
{
	const kern_value *x = kern_at(p->k, v);

	if (x->op == KERN_CHECK)
		c_checked(p, v,
			arena_printf(p->a, "*err = %" PRId64 ";", x->num[0]));
	else if (c_is_by_lane(x))
		c_by_lane(p, v);
	else if (x->op == KERN_LOAD && c_is_far(&x->at, x->type))
		c_load_far(p, v);
	else
		return false;
	return true;
}

static void let(printer *p, kern_val v)
{
	p->is_let[v] = true;
	if (!p->d->let(p, v))
		c_line(p, "const %s %s = %s;", c_type_of(p, v), c_name(p, v),
			p->d->value(p, v));
}

static void var(printer *p, const kern_stmt *s)
{
	kern_type t = kern_at(p->k, s->v)->type;
	const char *x = s->x != 0     ? c_taken(p, s->x)
			: t.lanes > 1 ? "{ 0 }"
				      : "0";

	if (!s->by_warp || p->d->warp != NULL) {
		c_line(p, "%s %s = %s;", c_type(p, t), c_name(p, s->v), x);
		return;
	}
	p->each_warp[s->v] = true;
	c_line(p, "%s %s[%d];", c_type(p, t), c_name(p, s->v), p->phase->warps);
	c_line(p, "for (int w = 0; w < %d; w++)", p->phase->warps);
	c_line(p, "	%s[w] = (%s)%s;", c_name(p, s->v), c_type(p, t), x);
}

static void store(printer *p, const kern_stmt *s)
{
	kern_type t = kern_at(p->k, s->x)->type;
	const char *e = c_element(p, &s->at), *x = c_taken(p, s->x);

	if (t.lanes == 1) {
		c_line(p, "%s = %s;", e, x);
	} else if (c_is_far(&s->at, t)) {
		c_store_far(p, s, x);
	} else if (s->at.part > 0) {
		c_line(p, "%s(&%s, %s, %d);",
			c_use(p, "store_part", t.dt, t.lanes), e, x,
			s->at.part);
	} else if (s->stream) {
		c_line(p, "if (n%d)", p->k->array.at[s->at.array].number);
		c_line(p, "	%s(&%s, %s);",
			c_use(p, "stream", t.dt, t.lanes), e, x);
		c_line(p, "else");
		c_line(p, "	%s(&%s, %s);",
			c_use(p, "store", t.dt, t.lanes), e, x);
	} else {
		c_line(p, "%s(&%s, %s);", c_use(p, "store", t.dt, t.lanes), e,
			x);
	}
}

/* Has each warp as many iterations as the others? *n: so many. */
static bool dealt_equally(const printer *p, const kern_stmt *s, int64_t *n)
{
	int64_t all, each = s->step * p->phase->warps;

	if (s->down || s->after != 0 ||
		!kern_form_apart(s->lo, s->hi, &all) || all % each != 0)
		return false;
	*n = all / each;
	return true;
}

/* Where their number is constant, a compiler loads for several of them at a time. */
static void loop_of_warp(printer *p, const kern_stmt *s, int64_t n)
{
	const char *t = c_type_of(p, s->v), *v = c_name(p, s->v);
	const char *first = arena_printf(p->a, "%s + %" PRId64 " * %s",
		c_form(p, s->lo), s->step, p->d->warp(p));

	if (n == 1) {
		c_line(p, "{");
		c_line(p, "	const %s %s = %s;", t, v, first);
	} else {
		c_line(p, "for (%s of_%s = 0; of_%s < %" PRId64 "; of_%s++) {",
			t, v, v, n, v);
		c_line(p, "	const %s %s = %s + %" PRId64 " * of_%s;", t, v,
			first, s->step * p->phase->warps, v);
	}
	in_braces(p, &s->body, "}");
}

static void loop(printer *p, const kern_stmt *s)
{
	const char *v, *lo = c_form(p, s->lo), *hi = c_form(p, s->hi);
	const char *t = c_type_of(p, s->v);
	int64_t step = s->step, n;

	if (s->by_warp && p->d->warp != NULL && dealt_equally(p, s, &n)) {
		loop_of_warp(p, s, n);
		return;
	}
	if (s->by_warp && p->d->warp != NULL) {
		lo = arena_printf(p->a, "%s + %" PRId64 " * %s", lo, step,
			p->d->warp(p));
		step *= p->phase->warps;
	}
	if (s->by_lane && p->d->by_lane != NULL) {
		p->d->by_lane(p, s);
		in_braces(p, &s->body, "}");
		return;
	}
	p->name[s->v] = s->after; /* one variable, in the loop and after it */
	v = c_name(p, s->v);
	p->n_loops++;
	if (s->after != 0)
		c_line(p, "%s %s = %s;", t, v, lo);
	if (s->down)
		c_line(p, "for (%s %s = %s - 1; %s >= %s; %s--) {", t, v, hi, v,
			lo, v);
	else
		c_line(p, "for (%s; %s%s %s %s; %s += %" PRId64 ") {",
			s->after != 0 ? ""
				      : arena_printf(p->a, "%s %s = %s", t, v,
						lo),
			v,
			s->whole ? arena_printf(p->a, " + %" PRId64, s->step)
				 : "",
			s->whole ? "<=" : "<", hi, v, step);
	if (s->by_warp && p->d->warp == NULL)
		p->by_warp = s;
	in_braces(p, &s->body, "}");
	if (s->by_warp)
		p->by_warp = NULL;
}

static void condition(printer *p, const kern_stmt *s)
{
	const char *c = c_taken(p, s->x);

	if (s->rarely)
		c_line(p, "if (%s(%s, 0)) {", c_word_of(p, C_WORD_EXPECT), c);
	else
		c_line(p, "if (%s) {", c);
	p->depth++;
	if (!s->rarely || p->d->rarely == NULL || !p->d->rarely(p, &s->body, block))
		block(p, &s->body);
	p->depth--;
	c_line(p, s->other.list.n > 0 ? "} else {" : "}");
	if (s->other.list.n > 0)
		in_braces(p, &s->other, "}");
}

static void set_lane(printer *p, const kern_stmt *s)
{
	c_line(p,
		kern_at(p->k, s->v)->type.mask > 0 ? "%s[%s] = -(%s);"
						   : "%s[%s] = %s;",
		c_name(p, s->v), c_form(p, s->lo), c_taken(p, s->x));
}

static void array(printer *p, const kern_stmt *s)
{
	const kern_array *r = &p->k->array.at[s->array];

	c_line(p, "%s s%d[%" PRId64 "]%s;", c_stored_type(p, r->dtype),
		r->number, r->elems, s->stream ? " = { 0 }" : "");
}

static void prefetch(printer *p, const kern_stmt *s)
{
	c_line(p, "%s(&%s, %d, %d);", c_word_of(p, C_WORD_PREFETCH),
		c_element(p, &s->at), p->k->array.at[s->at.array].out, s->far ? 2 : 3);
}

static void fence(printer *p)
{
	c_line(p, "__atomic_thread_fence(__ATOMIC_SEQ_CST);");
}

static void reload(printer *p)
{
	const char *word = c_word_of(p, C_WORD_RELOAD);

	if (word[0] != '\0')
		c_line(p, "%s;", word);
}

static void turn(printer *p, const kern_stmt *s)
{
	int32_t unit = kern_turn_unit(s);
	tn_dtype t = unit == 1 ? s->type.dt
		     : unit * (int32_t)dtype_size(s->type.dt) == 4 ? TN_I32
								   : TN_I64;
	const char *to = "", *from = "";

	if (unit > 1) {
		to = arena_printf(p->a, "(%s *)", c_stored_type(p, t));
		from = arena_printf(p->a, "(const %s *)", c_stored_type(p, t));
	}
	c_line(p, "%s(%s&%s, %" PRId64 ", %s&%s, %" PRId64 ");",
		c_turn(p, t, s->type.lanes), to, c_element(p, &s->at),
		s->n / unit, from, c_element(p, &s->from), s->m / unit);
}

/* Column `column` of the row that r and l stand for: lane l of the registers. */
static const char *sum_at(printer *p, const kern_access *at, int64_t step,
	int32_t i, int32_t column)
{
	return arena_printf(p->a,
		"(&%s)[%" PRId64 " * (l / 4 + %d) + 2 * (l %% 4) + %d]",
		c_element(p, at), step, 8 * (i / 2 % 2), column);
}

static void multiply(printer *p, const kern_stmt *s, int32_t i)
{
	tn_dtype t = s->type.dt;
	const char *of = c_use(p, t == TN_F32 ? "tf32" : t == TN_F16 ? "f32_from_f16" : "f32_from_bf16",
		TN_F32, 1);
	const char *r = c_name(p, s->acc[i]);
	bool split = t != TN_F32 && p->k->array.at[s->at.array].dtype == TN_F32;
	const char *x = split ? "(float)" : of;

	c_line(p, "	for (int k = 0, r = l / 4 + %d, c = 2 * (l %% 4) + %d; k < %d; k++)",
		8 * (i / 2 % 2), i / 4 * 8 + i % 2, kern_part_terms(s));
	c_line(p,
		"		%s[l] = __builtin_fmaf(%s((&%s)[%" PRId64
		" * %s]), %s((&%s)[%" PRId64 " * %s]), %s[l]);",
		r, x, c_element(p, &s->at), s->n, s->at_turned ? "k + r" : "r + k",
		of, c_element(p, &s->from), s->m, s->from_turned ? "c + k" : "k + c",
		r);
}

static void matrix(printer *p, const kern_stmt *s)
{
	if (s->kind == KERN_TILES) {
		c_tiles(p, s);
		return;
	}
	for (int32_t i = 0; i < s->n_acc; i++) {
		const char *r = c_name(p, s->acc[i]), *e;

		c_line(p, "for (int l = 0; l < 32; l++)");
		if (s->rows > 0)
			c_line(p, "	if (l / 4 < %d && 2 * (l %% 4) < %d)",
				s->rows - 8 * (i / 2 % 2),
				s->width - (i / 4 * 8 + i % 2));
		if (s->kind == KERN_MMA) {
			multiply(p, s, i);
			continue;
		}
		e = sum_at(p, &s->at, s->n, i, i / 4 * 8 + i % 2);
		if (s->kind == KERN_TAKE)
			c_line(p, "	%s[l] = %s;", r, e);
		else
			c_line(p, "	%s = %s[l];", e, r);
	}
}

/* At once: nothing is to wait for. */
static void async(printer *p, const kern_stmt *s)
{
	if (s->kind != KERN_ASYNC)
		return;
	c_line(p, "for (int i = 0; i < %d; i++)", s->rows);
	c_line(p, "	for (int j = 0; j < %d; j++)", s->width);
	c_line(p, "		(&%s)[i * %" PRId64 " + j] = (&%s)[i * %" PRId64 " + j];",
		c_element(p, &s->at), s->n, c_element(p, &s->from), s->m);
}

static void statement(printer *p, const kern_stmt *s)
{
	p->d->before(p, s);
	switch (s->kind) {
	case KERN_LET:
		let(p, s->v);
		break;
	case KERN_VAR:
		var(p, s);
		break;
	case KERN_SET:
		c_line(p, "%s = %s;", c_name(p, s->v), c_taken(p, s->x));
		break;
	case KERN_SET_LANE:
		p->d->set_lane(p, s);
		break;
	case KERN_STORE:
		p->d->store(p, s);
		break;
	case KERN_FOR:
		loop(p, s);
		break;
	case KERN_IF:
		condition(p, s);
		break;
	case KERN_BLOCK:
		c_line(p, "{");
		in_braces(p, &s->body, "}");
		break;
	case KERN_ARRAY:
		p->d->array(p, s);
		break;
	case KERN_PREFETCH:
		p->d->prefetch(p, s);
		break;
	case KERN_FENCE:
		p->d->fence(p);
		break;
	case KERN_RELOAD:
		reload(p);
		break;
	case KERN_BARRIER:
		p->d->barrier(p);
		break;
	case KERN_TURN:
		p->d->turn(p, s);
		break;
	case KERN_MMA:
	case KERN_TILES:
	case KERN_TAKE:
	case KERN_GIVE:
		p->d->matrix(p, s);
		break;
	case KERN_ASYNC:
	case KERN_COMMIT:
	case KERN_WAIT:
		p->d->async(p, s);
		break;
	case KERN_NOTE:
		c_line(p, "/* %s */", s->text);
		break;
	}
}

static void block(printer *p, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if (s->together > 0 && p->d->together != NULL) {
			p->d->together(p, &b->list.at[i]);
			i += s->together - 1;
		} else {
			statement(p, s);
		}
	}
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

/* What the function needs for some statements in it. */
static void find_needed(printer *p, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		p->tiled |= s->kind == KERN_TILES;
		if (s->kind == KERN_STORE && s->stream)
			stream(p, s);
		find_needed(p, &s->body);
		find_needed(p, &s->other);
	}
}

/* Where the scratch of array r begins: an expression. */
static const char *scratch_at(printer *p, const kern_array *r)
{
	const struct c_places *places = p->more;
	const c_kernel *cells;
	int32_t i = 0;

	if (places == NULL)
		return arena_printf(p->a, "scratch + %" PRId64, r->offset);
	cells = places->cells;
	while (i + 1 < cells->n_cells &&
		cells->cell[i + 1].offset <= (size_t)r->offset)
		i++;
	return arena_printf(p->a, "p[%d] + %" PRId64, p->k->n_params + i,
		r->offset - (int64_t)cells->cell[i].offset);
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
			c_line(p, "%s%s *const %sp%d = p[%d];",
				r->out ? "" : "const ", t,
				k->shared ? "" : "restrict ", i, i);
		else
			c_line(p, "%s *const %c%d = (void *)((char *)%s);", t,
				r->space == KERN_LOCAL ? 'b' : 'q', r->number,
				r->space == KERN_LOCAL
					? arena_printf(p->a, "local + %" PRId64,
						  r->offset)
					: scratch_at(p, r));
		if (p->streams[i] > 0)
			c_line(p,
				"const int n%d = ((%s)p%d & %d) == 0;", i,
				c_word_of(p, C_WORD_ADDRESS), i,
				p->streams[i] - 1);
	}
	c_line(p, "(void)p, (void)scratch, (void)local, (void)chunk, (void)err;");
	if (p->tiled)
		c_open_tiles(p);
}

static void leave(printer *p)
{
	if (p->tiled)
		c_close_tiles(p);
}

static void head(printer *p, str *out, const char *name)
{
	const struct c_places *places = p->more;

	str_printf(out,
		"%svoid %s(void *const *p, void *scratch, void *local,\n"
		"	i64 chunk, i64 *err)\n{\n",
		places != NULL && places->exported ? "KERNEL " : "", name);
}

static void nothing(printer *p)
{
	(void)p;
}

static void nothing_before(printer *p, const kern_stmt *s)
{
	(void)p, (void)s;
}

static void before(printer *p, const kern_stmt *s)
{
	if (s->unroll)
		c_line(p, "#pragma GCC unroll %" PRId64, s->hi->c0 - s->lo->c0);
}

#define ON_A_CPU(language, first)      \
	{.words = (language),          \
		.value = c_value,      \
		.let = let_in_lines,   \
		.before = (first),     \
		.store = store,        \
		.set_lane = set_lane,  \
		.array = array,        \
		.prefetch = prefetch,  \
		.fence = fence,        \
		.barrier = nothing,    \
		.turn = turn,          \
		.matrix = matrix,      \
		.async = async,        \
		.rarely = c_rarely,    \
		.open = pointers,      \
		.close = leave,        \
		.head = head}
static const dialect gnu = ON_A_CPU(C_GNU, before),
		     plain = ON_A_CPU(C_PLAIN, nothing_before);
#undef ON_A_CPU

static const char *phase(printer *p, const kern_phase *ph)
{
	str out = str_new(p->a);

	p->phase = ph;
	p->used = arena_array(p->a, bool, p->k->array.n + 1);
	p->streams = arena_array(p->a, int32_t, p->k->array.n + 1);
	p->out = &out;
	p->depth = 1;
	p->tiled = false;
	c_find_used(p, &ph->body, p->used);
	find_needed(p, &ph->body);
	p->d->open(p);
	block(p, &ph->body);
	p->d->close(p);
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

/*
 * What a loop costs a C compiler, in characters of straight text: gcc 12.2 takes 4.5 ms
 * for 1,000 of them, and 6.2 for a loop (126 kernels of six nets, AVX-512).
 */
enum { LOOP_CHARS = 1400 };

static const struct needs *copy_needs(arena *a, const printer *p)
{
	struct needs *out = arena_make(a, struct needs);
	struct need *at = arena_array(a, struct need, p->needs.n + 1);

	for (int32_t i = 0; i < p->needs.n; i++) {
		at[i] = p->needs.at[i];
		if (at[i].name != NULL)
			at[i].name = arena_strdup(a, at[i].name);
		if (at[i].text != NULL)
			at[i].text = arena_strdup(a, at[i].text);
	}
	out->n = p->needs.n;
	out->at = at;
	return out;
}

c_kernel *c_print_as(
	arena *a, const kern_kernel *k, const dialect *d, const void *more)
{
	arena *tmp = arena_child(a); /* the text while it grows, and its parts */
	printer p = {.a = tmp,
		.k = k,
		.m = c_math_new(tmp),
		.known = map_new(tmp),
		.d = d,
		.more = more};
	c_kernel *out = arena_make(a, c_kernel);
	const char *text[KERN_MAX_PHASES];
	const bool *used[KERN_MAX_PHASES];
	uint64_t h = 1;
	str c = str_new(tmp);

	p.is_let = arena_array(tmp, bool, k->value.n + 1);
	p.each_warp = arena_array(tmp, bool, k->value.n + 1);
	p.name = arena_array(tmp, kern_val, k->value.n + 1);
	c_stored_type(&p, TN_I64);
	c_stored_type(&p, TN_U8);
	for (int32_t i = 0; i < k->n_phases; i++) {
		text[i] = phase(&p, &k->phase[i]);
		used[i] = p.used;
		h = hash_bytes(text[i], strlen(text[i]), h);
	}
	copy_header(a, out, k);
	c_find_cells(a, k, out);
	for (int32_t i = 0; i < k->n_phases; i++) {
		out->phase[i].uses = arena_copy(a, used[i],
			((size_t)k->array.n + 1) * sizeof *used[i]);
		out->phase[i].fn = arena_printf(
			a, "k_%s_%016" PRIx64 "_%d", k->name, h, i);
		out->phase[i].n_chunks = k->phase[i].n_chunks;
		out->phase[i].copies = k->phase[i].copies;
		out->phase[i].warps = k->phase[i].warps;
		p.phase = &k->phase[i];
		d->head(&p, &c, out->phase[i].fn);
		str_printf(&c, "%s%s", text[i],
			i + 1 < k->n_phases ? "\n" : "");
	}
	out->c = arena_strndup(a, c.at, c.n);
	out->work = (int64_t)c.n + (int64_t)p.n_loops * LOOP_CHARS;
	for (int32_t i = 0; i < p.needs.n; i++)
		if (p.needs.at[i].text != NULL)
			out->work += (int64_t)strlen(p.needs.at[i].text);
	out->needs = copy_needs(a, &p);
	arena_free(tmp);
	return out;
}

static c_kernel *in_cells(
	arena *a, const kern_kernel *k, const dialect *d, bool exported)
{
	c_kernel *cells = arena_make(a, c_kernel);
	struct c_places places = {cells, exported};
	c_kernel *out;

	c_find_cells(a, k, cells);
	out = c_print_as(a, k, d, &places);
	out->in_cells = true;
	return out;
}

c_kernel *c_print(arena *a, const kern_kernel *k)
{
	return in_cells(a, k, &gnu, false);
}

c_kernel *c_print_apart(arena *a, const kern_kernel *k)
{
	return in_cells(a, k, &gnu, true);
}

c_kernel *c_print_plain(arena *a, const kern_kernel *k)
{
	return in_cells(a, k, &plain, true);
}
