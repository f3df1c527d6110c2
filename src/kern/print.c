/*
 * print.c: prints a kernel as text, which parse.c reads; see kern.h.
 *
 * Values are numbered in the order of the text: %i0 is the variable of a loop,
 * %r1 a register, %e2 the value after a loop, %3 any other.
 */
#include "kern/local.h"

#include <inttypes.h>

struct print {
	str *out;
	const kern_kernel *k;
	int32_t *number; /* 1 + the number of a value; 0: none yet */
	int32_t n;
	int32_t depth;
};

static void indent(const struct print *p)
{
	for (int32_t i = 0; i < p->depth; i++)
		str_add(p->out, "  ");
}

static void define(struct print *p, kern_val v)
{
	if (p->number[v] == 0)
		p->number[v] = ++p->n;
}

static void constant(const struct print *p, const kern_value *v)
{
	str_printf(p->out, "%s(", dtype_name(v->type.dt));
	if (dtype_is_float(v->type.dt))
		str_double(p->out, v->c.f);
	else
		ir_add_int(p->out, v->type.dt, v->c.i);
	str_addc(p->out, ')');
}

static void value(const struct print *p, kern_val v)
{
	const kern_value *x = kern_at(p->k, v);

	if (x->op == KERN_CONST)
		constant(p, x);
	else if (x->op == KERN_CHUNK)
		str_add(p->out, "chunk");
	else
		str_printf(p->out, "%%%s%d",
			x->op == KERN_WALK    ? "i"
			: x->op == KERN_REG   ? "r"
			: x->op == KERN_AFTER ? "e"
					      : "",
			p->number[v] - 1);
}

static void form(const struct print *p, const kern_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		int64_t c = f->t[i].coef;

		if (i > 0)
			str_add(p->out, c < 0 ? " - " : " + ");
		else if (c < 0)
			str_addc(p->out, '-');
		if (c != 1 && c != -1)
			str_printf(p->out, "%" PRIu64 "*",
				c < 0 ? -(uint64_t)c : (uint64_t)c);
		value(p, f->t[i].v);
	}
	if (f->n == 0)
		str_printf(p->out, "%" PRId64, f->c0);
	else if (f->c0 != 0)
		str_printf(p->out, " %c %" PRIu64, f->c0 < 0 ? '-' : '+',
			f->c0 < 0 ? -(uint64_t)f->c0 : (uint64_t)f->c0);
}

void kern_array_name(str *out, const kern_kernel *k, int32_t array)
{
	const kern_array *r = &k->array.at[array];

	str_printf(out, "%c%d", kern_space_at(r->space)->letter, r->number);
}

static void place(const struct print *p, const kern_access *at)
{
	kern_array_name(p->out, p->k, at->array);
	str_addc(p->out, '[');
	form(p, at->at);
	str_addc(p->out, ']');
}

static void access(const struct print *p, const kern_access *at)
{
	place(p, at);
	if (at->by != 0) {
		str_add(p->out, " by ");
		value(p, at->by);
	}
	if (at->stride != 1)
		str_printf(p->out, " step %" PRId64, at->stride);
	if (at->part != 0)
		str_printf(p->out, " part %d", at->part);
	if (at->mask != 0) {
		str_add(p->out, " mask ");
		value(p, at->mask);
	}
	if (at->whole != 0) {
		str_add(p->out, " whole ");
		value(p, at->whole);
	}
}

static void list(const struct print *p, const int64_t *l, int32_t n)
{
	str_addc(p->out, '[');
	for (int32_t i = 0; i < n; i++)
		str_printf(p->out, "%s%" PRId64, i > 0 ? ", " : "", l[i]);
	str_addc(p->out, ']');
}

/* none: this one means that there is no bound */
static void bound(const struct print *p, int64_t c, int64_t none)
{
	if (c == none)
		str_addc(p->out, '*');
	else
		str_printf(p->out, "%" PRId64, c);
}

static void operand(const struct print *p, const kern_value *v, char kind,
	int32_t *n)
{
	switch (kind) {
	case 'v':
		value(p, v->arg[n[0]++]);
		break;
	case 'F':
		form(p, v->form[n[1]++]);
		break;
	case '#':
		str_printf(p->out, "%" PRId64, v->num[n[2]++]);
		break;
	case '%':
		bound(p, v->num[n[2]], n[2] == 0 ? INT64_MIN : INT64_MAX);
		n[2]++;
		break;
	case 'D':
		str_add(p->out, dtype_name(v->dt));
		break;
	case 'L':
		list(p, v->list, v->type.lanes);
		break;
	default:
		access(p, &v->at);
	}
}

/* an instruction: its name and operands */
static void instruction(const struct print *p, const kern_value *v)
{
	const kern_op_row *r = kern_op_at(v->op);
	const char *sep = " ";
	int32_t n[3] = {0};

	if (v->op == KERN_CALL) {
		const ir_scalar *f = ir_scalar_at(v->fn);

		str_add(p->out, f->name);
		for (int32_t i = 0; i < f->n_args; i++) {
			str_add(p->out, i > 0 ? ", " : " ");
			value(p, v->arg[i]);
		}
		return;
	}
	str_add(p->out, r->name);
	for (const char *o = r->operands; *o != '\0'; o++, sep = ", ") {
		str_add(p->out, sep);
		operand(p, v, *o, n);
	}
}

/* The name of a value; or the instruction that computes it, with its type. */
static void right(struct print *p, kern_val v, bool typed)
{
	const kern_value *x = kern_at(p->k, v);

	if (p->number[v] != 0 || strchr(kern_op_at(x->op)->flags, 'd') != NULL) {
		value(p, v);
		return;
	}
	if (typed)
		str_printf(p->out, "%s ", kern_type_text(p->k->a, x->type));
	instruction(p, x);
}

static void block(struct print *p, const kern_block *b);

static void body(struct print *p, const kern_block *b)
{
	str_add(p->out, " {\n");
	p->depth++;
	block(p, b);
	p->depth--;
	indent(p);
	str_addc(p->out, '}');
}

static void loop(struct print *p, const kern_stmt *s)
{
	str_add(p->out, "for ");
	define(p, s->v);
	value(p, s->v);
	if (s->type.dt != TN_I64)
		str_printf(p->out, ": %s", dtype_name(s->type.dt));
	str_add(p->out, " = ");
	form(p, s->lo);
	str_add(p->out, " .. ");
	form(p, s->hi);
	if (s->step != 1)
		str_printf(p->out, " step %" PRId64, s->step);
	if (s->down)
		str_add(p->out, " down");
	if (s->whole)
		str_add(p->out, " whole");
	if (s->by_warp)
		str_add(p->out, " by warp");
	if (s->by_lane)
		str_add(p->out, " by lane");
	if (s->unroll)
		str_add(p->out, " unroll");
	if (s->after != 0) {
		define(p, s->after);
		str_add(p->out, " after ");
		value(p, s->after);
	}
	body(p, &s->body);
}

static void condition(struct print *p, const kern_stmt *s)
{
	str_add(p->out, s->rarely ? "if rarely " : "if ");
	right(p, s->x, false);
	body(p, &s->body);
	if (s->other.list.n > 0) {
		str_add(p->out, " else");
		body(p, &s->other);
	}
}

/* %r1: f32x16 */
static void typed(struct print *p, kern_val v)
{
	define(p, v);
	value(p, v);
	str_printf(p->out, ": %s", kern_type_text(p->k->a, kern_at(p->k, v)->type));
}

static void assignment(struct print *p, const kern_stmt *s)
{
	str_add(p->out, "set ");
	value(p, s->v);
	if (s->kind == KERN_SET_LANE) {
		str_addc(p->out, '[');
		form(p, s->lo);
		str_addc(p->out, ']');
	}
	str_add(p->out, " = ");
	right(p, s->x, s->kind == KERN_SET_LANE);
}

static void array(struct print *p, int32_t array)
{
	const kern_array *r = &p->k->array.at[array];

	kern_array_name(p->out, p->k, array);
	str_printf(p->out, ": %s[%" PRId64 "]", dtype_name(r->dtype), r->elems);
}

static void turn(struct print *p, const kern_stmt *s)
{
	str_printf(p->out, "turn %s ", kern_type_text(p->k->a, s->type));
	if (s->width > 0)
		str_printf(p->out, "by %d ", s->width);
	place(p, &s->at);
	str_printf(p->out, " rows %" PRId64 " = ", s->n);
	place(p, &s->from);
	str_printf(p->out, " rows %" PRId64, s->m);
}

static void acc(struct print *p, const kern_stmt *s)
{
	for (int32_t i = 0; i < s->n_acc; i++) {
		str_add(p->out, i > 0 ? ", " : "");
		value(p, s->acc[i]);
	}
}

static void rows(struct print *p, const kern_access *at, int64_t n)
{
	place(p, at);
	str_printf(p->out, " rows %" PRId64, n);
}

static void factor(
	struct print *p, const kern_access *at, int64_t n, bool turned)
{
	place(p, at);
	str_printf(p->out, " %s %" PRId64, turned ? "columns" : "rows", n);
}

static void part(struct print *p, const kern_stmt *s)
{
	if (s->warps > 0)
		str_printf(p->out, ", %d terms by %d warps", s->terms, s->warps);
	if (s->rows == 0)
		return;
	str_printf(p->out, " part %d by %d", s->rows, s->width);
	if (s->kind == KERN_MMA)
		str_printf(p->out, " by %d", s->terms);
}

static void matrix(struct print *p, const kern_stmt *s)
{
	if (s->kind == KERN_GIVE) {
		str_add(p->out, "give ");
		rows(p, &s->at, s->n);
		part(p, s);
		str_add(p->out, " = ");
		acc(p, s);
		return;
	}
	if (s->kind == KERN_MMA)
		str_printf(p->out, "mma %s ", kern_type_text(p->k->a, s->type));
	else
		str_add(p->out, "take ");
	acc(p, s);
	if (kern_multiplies(s)) {
		str_add(p->out, " of ");
		factor(p, &s->at, s->n, s->at_turned);
		str_add(p->out, ", ");
		factor(p, &s->from, s->m, s->from_turned);
	} else {
		str_add(p->out, " = ");
		rows(p, &s->at, s->n);
	}
	part(p, s);
}

static void tiles(struct print *p, const kern_stmt *s)
{
	str_add(p->out, "tiles ");
	rows(p, &s->to, s->l);
	str_add(p->out, " of ");
	rows(p, &s->at, s->n);
	str_add(p->out, ", ");
	rows(p, &s->from, s->m);
	str_printf(p->out, ", %d by %d by %d", s->rows, s->width, s->terms);
	if (s->x != 0) {
		str_add(p->out, " zero ");
		right(p, s->x, false);
	}
}

static void async(struct print *p, const kern_stmt *s)
{
	if (s->kind == KERN_COMMIT)
		str_add(p->out, "commit");
	if (s->kind == KERN_WAIT)
		str_printf(p->out, "wait %d", s->groups);
	if (s->kind != KERN_ASYNC)
		return;
	str_add(p->out, "async ");
	rows(p, &s->at, s->n);
	str_add(p->out, " = ");
	rows(p, &s->from, s->m);
	str_printf(p->out, ", %d by %d%s", s->rows, s->width, s->bulk ? " in bulk" : "");
}

static void declaration(struct print *p, const kern_stmt *s)
{
	str_add(p->out, "var ");
	typed(p, s->v);
	str_add(p->out, " = ");
	if (s->x == 0)
		str_add(p->out, "zero");
	else
		right(p, s->x, false);
	if (s->by_warp)
		str_add(p->out, " by warp");
}

static void statement(struct print *p, const kern_stmt *s)
{
	switch (s->kind) {
	case KERN_LET:
		typed(p, s->v);
		str_add(p->out, " = ");
		instruction(p, kern_at(p->k, s->v));
		break;
	case KERN_VAR:
		declaration(p, s);
		break;
	case KERN_SET:
	case KERN_SET_LANE:
		assignment(p, s);
		break;
	case KERN_STORE:
		str_add(p->out, s->stream ? "stream " : "store ");
		access(p, &s->at);
		str_add(p->out, " = ");
		right(p, s->x, true);
		break;
	case KERN_FOR:
		loop(p, s);
		break;
	case KERN_IF:
		condition(p, s);
		break;
	case KERN_BLOCK:
		str_add(p->out, "block");
		body(p, &s->body);
		break;
	case KERN_ARRAY:
		str_add(p->out, s->stream ? "zero array " : "array ");
		array(p, s->array);
		break;
	case KERN_PREFETCH:
		str_add(p->out, s->far ? "prefetch far " : "prefetch ");
		place(p, &s->at);
		break;
	case KERN_FENCE:
		str_add(p->out, "fence");
		break;
	case KERN_RELOAD:
		str_add(p->out, "reload");
		break;
	case KERN_BARRIER:
		str_add(p->out, "barrier");
		break;
	case KERN_TURN:
		turn(p, s);
		break;
	case KERN_TILES:
		tiles(p, s);
		break;
	case KERN_MMA:
	case KERN_TAKE:
	case KERN_GIVE:
		matrix(p, s);
		break;
	case KERN_ASYNC:
	case KERN_COMMIT:
	case KERN_WAIT:
		async(p, s);
		break;
	case KERN_NOTE:
		str_printf(p->out, "note %s;", s->text);
		break;
	}
}

static void block(struct print *p, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		indent(p);
		if (b->list.at[i]->together > 0)
			str_printf(p->out, "together %d ",
				b->list.at[i]->together);
		statement(p, b->list.at[i]);
		str_addc(p->out, '\n');
	}
}

static void header(struct print *p)
{
	const kern_kernel *k = p->k;

	for (int32_t i = 0; i < k->array.n; i++) {
		const kern_array *r = &k->array.at[i];

		if (r->space == KERN_STACK)
			continue;
		str_printf(p->out, "  %s ", kern_space_at(r->space)->name);
		array(p, i);
		if (r->swizzled > 0)
			str_printf(p->out, " swizzled %d", r->swizzled);
		if (r->space != KERN_PARAM)
			str_printf(p->out, " at %" PRId64, r->offset);
		else
			str_add(p->out, r->out ? " out" : " in");
		if (r->in > 0)
			str_printf(p->out, " inside p%d", r->in - 1);
		str_addc(p->out, '\n');
	}
	if (k->shared)
		str_add(p->out, "  params overlap\n");
	if (k->narrow)
		str_add(p->out, "  indices i32\n");
	if (k->scratch_bytes + k->local_bytes > 0)
		str_printf(p->out, "  bytes scratch %zu, local %zu\n",
			k->scratch_bytes, k->local_bytes);
	for (int32_t i = 0; i < k->check.n; i++) {
		const kern_check *c = &k->check.at[i];

		str_printf(p->out,
			"  check %d: %s in %" PRId64 " .. %" PRId64 "\n", i + 1,
			c->name, c->lo, c->hi);
	}
}

void kern_print(str *out, const kern_kernel *k, int32_t number)
{
	struct print p = {.out = out,
		.k = k,
		.number = arena_array(k->a, int32_t, k->value.n)};

	str_printf(out, "kernel %d %s {\n", number, k->name);
	header(&p);
	for (int32_t i = 0; i < k->n_phases; i++) {
		const kern_phase *ph = &k->phase[i];

		str_printf(out, "  phase of %" PRId64 " chunks", ph->n_chunks);
		if (ph->warps > 1)
			str_printf(out, " by %d warps", ph->warps);
		if (ph->copies > 0)
			str_printf(out, ", copies p%d", ph->copies - 1);
		p.depth = 1;
		body(&p, &ph->body);
		str_addc(out, '\n');
	}
	str_add(out, "}\n");
}
