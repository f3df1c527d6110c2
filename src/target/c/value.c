/*
 * value.c: prints instructions as C expressions. Operations that C vectors lack are
 * helpers, named after the operation, the dtype and the lanes.
 *
 * A bool of one lane is an int, 0 or 1; in lanes it is a mask. f16 and bf16 are
 * u16 as stored, bools u8.
 */
#include "target/c/text.h"

#include <inttypes.h>

/* ---- needs ---- */

bool c_first(arena *a, map *known, const struct need *n)
{
	struct {
		int32_t of[5];
		char name[44];
	} key = {{(int32_t)n->kind, (int32_t)n->t, (int32_t)n->of, n->lanes,
			 n->other}, ""};
	size_t length = n->name == NULL ? 0 : strlen(n->name);
	int32_t before = map_n(known);

	if (length > sizeof key.name)
		env_bug(arena_env(a), "target/c", "a name of %zu bytes: %s",
			length, n->name);
	memcpy(key.name, n->name == NULL ? "" : n->name, length);
	return map_number(known, &key, sizeof key.of + length) == before;
}

void c_need(printer *p, struct need n)
{
	if (c_first(p->a, p->known, &n))
		*vec_push(p->a, &p->needs) = n;
}

const char *c_use(printer *p, const char *helper, tn_dtype t, int32_t lanes)
{
	const char *f = c_math_use(p->m, helper, t, lanes);

	if (f == NULL)
		env_bug(arena_env(p->a), "target/c", "no helper %s of %s",
			helper, dtype_name(t));
	c_need(p, (struct need){NEED_MATH, helper, t, t, lanes, 0, NULL});
	return f;
}

const char *c_int_helper(printer *p, const char *name)
{
	tn_dtype t = p->k->narrow ? TN_I32 : TN_I64;

	c_need(p, (struct need){NEED_INT, name, t, t, 1, 0, NULL});
	return strcmp(name, "floor_div") == 0 && !p->k->narrow
		       ? name
		       : arena_printf(p->a, "%s_%s", name, dtype_name(t));
}

static const char *lanes_of(printer *p, tn_dtype t, int32_t lanes)
{
	c_need(p, (struct need){NEED_TYPE, NULL, t, t, lanes, 0, NULL});
	return c_math_type(p->m, t, lanes);
}

const char *c_turn(printer *p, tn_dtype t, int32_t lanes)
{
	lanes_of(p, t, lanes);
	c_use(p, "load", t, lanes);
	c_use(p, "store", t, lanes);
	c_need(p, (struct need){NEED_TURN, NULL, t, t, lanes, 0, NULL});
	return arena_printf(p->a, "transpose_%s",
		c_math_type(p->m, t, lanes));
}

/* ---- types ---- */

static tn_dtype int_of(int32_t bytes)
{
	return bytes == 1   ? TN_I8
	       : bytes == 2 ? TN_I16
	       : bytes == 4 ? TN_I32
			    : TN_I64;
}

/* The dtype of the lanes; of a mask, integers of the same width. */
static tn_dtype lane_dtype(kern_type t)
{
	return t.dt == TN_BOOL && t.lanes > 1 ? int_of(t.mask) : t.dt;
}

const char *c_stored_type(printer *p, tn_dtype t)
{
	return lanes_of(p, t, 1);
}

const char *c_word_of(const printer *p, c_word w)
{
	return c_word_in(p->d->words, w);
}

const char *c_type(printer *p, kern_type t)
{
	return t.dt == TN_BOOL && t.lanes == 1
		       ? "int"
		       : lanes_of(p, lane_dtype(t), t.lanes);
}

static const char *unsigned_type(printer *p, kern_type t)
{
	int32_t bytes = (int32_t)dtype_size(t.dt);

	if (t.lanes == 1) /* small integers are promoted and cannot overflow */
		return c_word_of(p, bytes == 8 ? C_WORD_U64 : C_WORD_U32);
	c_need(p, (struct need){NEED_UNSIGNED, NULL, t.dt, t.dt, t.lanes, 0, NULL});
	return arena_printf(p->a, "u%dx%d", 8 * bytes, t.lanes);
}

/* Is it an integer that stands in forms, and only their arithmetic makes? */
static bool is_index(const printer *p, const kern_value *v)
{
	const kern_op_row *r = kern_op_at(v->op);

	if (v->op == KERN_CHECK) {
		const kern_check *c = &p->k->check.at[v->num[0] - 1];

		return c->lo >= -INT32_MAX && c->hi <= INT32_MAX;
	}
	return v->type.dt == TN_I64 && v->type.lanes == 1 &&
	       (v->op == KERN_WALK || v->op == KERN_AFTER ||
		       v->op == KERN_CHUNK ||
		       (r->operands[strlen(r->operands) - 1] != 'A' &&
			       strchr(r->operands, 'F') != NULL &&
			       strchr("IJ", r->types[strlen(r->types) - 1]) !=
				       NULL));
}

const char *c_index_type(printer *p)
{
	return c_stored_type(p, p->k->narrow ? TN_I32 : TN_I64);
}

const char *c_type_of(printer *p, kern_val v)
{
	const kern_value *x = kern_at(p->k, v);

	return is_index(p, x) ? c_index_type(p) : c_type(p, x->type);
}

/* ---- names ---- */

static const char *literal(printer *p, const kern_value *v)
{
	bool one = v->type.dt == TN_F32;
	const char *suffix = one ? "f" : "";
	double f = v->c.f;

	if (v->type.dt == TN_BOOL)
		return v->c.i != 0 ? "1" : "0";
	if (v->type.dt == TN_U64)
		return arena_printf(p->a, "((%s)%" PRIu64 "u)",
			c_type(p, v->type), (uint64_t)v->c.i);
	if (!dtype_is_float(v->type.dt))
		return v->c.i == INT64_MIN
			       ? "(-9223372036854775807LL - 1)"
			       : arena_printf(p->a, "((%s)%" PRId64 ")",
					 c_type(p, v->type), v->c.i);
	if (f != f)
		return c_word_of(p, one ? C_WORD_NAN_F32 : C_WORD_NAN_F64);
	if (f - f != 0)
		return arena_printf(p->a, f < 0 ? "(-%s)" : "%s",
			c_word_of(p, one ? C_WORD_INF_F32 : C_WORD_INF_F64));
	return arena_printf(p->a, __builtin_signbit(f) ? "(%a%s)" : "%a%s", f,
		suffix);
}

/* That of the iteration: each warp has one. */
static const char *own_register(printer *p, kern_val v)
{
	const kern_stmt *s = p->by_warp;

	return arena_printf(p->a, "r%d[(%s - (%s)) / %" PRId64 "]",
		p->name[v] != 0 ? p->name[v] : v, c_name(p, s->v),
		c_form(p, s->lo), s->step);
}

/* "v12"; most of the text of a kernel is such names */
static const char *numbered(arena *a, char letter, int32_t n)
{
	char text[12], *at = text + sizeof text;

	*--at = '\0';
	do
		*--at = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	*--at = letter;
	return arena_copy(a, at, (size_t)(text + sizeof text - at));
}

const char *c_name(printer *p, kern_val v)
{
	const kern_value *x = kern_at(p->k, v);
	char letter = 'v';

	if (x->op == KERN_CONST)
		return literal(p, x);
	if (p->mentioned != NULL)
		p->mentioned[v] = true;
	if (x->op == KERN_CHUNK)
		return "chunk";
	if (p->d->name != NULL && p->d->name(p, v) != NULL)
		return p->d->name(p, v);
	if (p->by_warp != NULL && p->each_warp[v])
		return own_register(p, v);
	if (x->op == KERN_WALK || x->op == KERN_AFTER)
		letter = 'x';
	else if (x->op == KERN_REG)
		letter = 'r';
	return numbered(p->a, letter,
		p->name[v] != 0 ? p->name[v] : v);
}

/*
 * Prints the last value first, the variable of the innermost loop: then GCC finds one
 * address for all reads of a row in the body of the loop.
 */
const char *c_form(printer *p, const kern_form *f)
{
	str s = str_new(p->a);

	for (int32_t i = f->n - 1; i >= 0; i--) {
		int64_t c = f->t[i].coef;
		bool first = i == f->n - 1;

		str_add(&s, c < 0 ? (first ? "-" : " - ") : first ? "" : " + ");
		if (c != 1 && c != -1)
			str_printf(&s, "%" PRIu64 " * ",
				c < 0 ? -(uint64_t)c : (uint64_t)c);
		str_add(&s, c_name(p, f->t[i].v));
	}
	if (f->n == 0)
		str_printf(&s, "%" PRId64, f->c0);
	else if (f->c0 != 0)
		str_printf(&s, " %c %" PRIu64, f->c0 < 0 ? '-' : '+',
			f->c0 < 0 ? -(uint64_t)f->c0 : (uint64_t)f->c0);
	return s.at;
}

/* If the result has lanes, lane l has the value of the form + l. */
static const char *at_lane(printer *p, const kern_value *v)
{
	const char *t = c_form(p, v->form[0]);

	return v->type.lanes > 1 ? arena_printf(p->a, "%s + l", t) : t;
}

/* One factor: in brackets, if it is a sum. */
static const char *factor(printer *p, const kern_value *v)
{
	const kern_form *f = v->form[0];
	const char *t = at_lane(p, v);

	return f->n + (f->c0 != 0) + (v->type.lanes > 1) > 1 ||
			       (f->n == 1 && f->t[0].coef != 1)
		       ? arena_printf(p->a, "(%s)", t)
		       : t;
}

const char *c_array_name(const printer *p, int32_t array)
{
	static const char letter[] = {[KERN_PARAM] = 'p',
		[KERN_SCRATCH] = 'q',
		[KERN_LOCAL] = 'b',
		[KERN_STACK] = 's'};
	const kern_array *r = &p->k->array.at[array];

	return arena_printf(p->a, "%c%d", letter[r->space], r->number);
}

const char *c_element(printer *p, const kern_access *at)
{
	return arena_printf(
		p->a, "%s[%s]", c_array_name(p, at->array), c_form(p, at->at));
}

/* ---- instructions ---- */

/* x, y, z of the text replaced by the arguments */
static const char *fill(printer *p, const char *text, const char *const *arg)
{
	str s = str_new(p->a);

	for (; *text != '\0'; text++)
		if (*text >= 'x' && *text <= 'z')
			str_add(&s, arg[*text - 'x']);
		else
			str_addc(&s, *text);
	return s.at;
}

/* The arguments of a helper, in its brackets. */
static const char *applied(
	printer *p, const char *fn, int32_t n, const char *const *arg)
{
	str s = str_new(p->a);

	str_printf(&s, "%s(", fn);
	for (int32_t i = 0; i < n; i++)
		str_printf(&s, "%s%s", i > 0 ? ", " : "", arg[i]);
	str_addc(&s, ')');
	return s.at;
}

/* The type of the operation: that of its arguments which are not conditions. */
static kern_type work_type(printer *p, const kern_value *v, int32_t n)
{
	kern_type t = {TN_BOOL, v->type.lanes, 0};

	for (int32_t i = 0; i < n; i++) {
		kern_type x = kern_at(p->k, v->arg[i])->type;

		if (t.dt == TN_BOOL)
			t.dt = x.dt;
		if (x.mask > t.mask)
			t.mask = x.mask;
	}
	if (t.dt == TN_BOOL)
		t.dt = t.lanes > 1 ? int_of(t.mask) : TN_I32;
	return (kern_type){t.dt, t.lanes, 0};
}

/* Infix text; integers wrap, so they are computed unsigned. */
static const char *infix(printer *p, const ir_scalar *f, const kern_value *v,
	kern_type t, const char **arg)
{
	if (!dtype_is_int(t.dt) || v->type.dt == TN_BOOL)
		return fill(p, f->emit, arg);
	for (int32_t i = 0; i < f->n_args; i++)
		arg[i] = arena_printf(
			p->a, "(%s)%s", unsigned_type(p, t), arg[i]);
	return arena_printf(
		p->a, "(%s)%s", c_type(p, t), fill(p, f->emit, arg));
}

static bool is_choice(const ir_scalar *f)
{
	return f->n_args == 3 && f->sig[0] == 'B';
}

/* The condition c, by which a value of so many lanes is chosen. */
static const char *decided(printer *p, kern_val c, int32_t lanes)
{
	const char *x = c_name(p, c);

	return lanes > 1 ? applied(p, c_use(p, "decided", TN_I32, 1), 1, &x) : x;
}

static const char *call(printer *p, const kern_value *v)
{
	const ir_scalar *f = ir_scalar_at(v->fn);
	const char *arg[IR_MAX_ARGS] = {"", "", ""}, *s;
	kern_type t = work_type(p, v, f->n_args);
	bool masks = v->type.lanes > 1, conditions = true;

	for (int32_t i = 0; i < f->n_args; i++) {
		arg[i] = c_name(p, v->arg[i]);
		conditions &= kern_at(p->k, v->arg[i])->type.dt == TN_BOOL;
	}
	if (is_choice(f) && kern_at(p->k, v->arg[0])->type.lanes == 1)
		return arena_printf(p->a, "%s ? %s : %s",
			decided(p, v->arg[0], v->type.lanes), arg[1], arg[2]);
	if (is_choice(f) && conditions) /* masks */
		return arena_printf(p->a, "(%s & %s) | (~%s & %s)", arg[0],
			arg[1], arg[0], arg[2]);
	/* true is -1 in a mask, but more than false */
	for (int32_t i = 0; i < f->n_args; i++)
		if (conditions && masks && f->sig[0] == 'O')
			arg[i] = arena_printf(p->a, "(%s & 1)", arg[i]);
	if (f->emit[0] == '(')
		return infix(p, f, v, t, arg);
	if (dtype_is_float(v->type.dt) && !dtype_is_float(t.dt))
		t.dt = v->type.dt; /* of integers, named after its result */
	s = applied(p, c_use(p, f->emit, t.dt, t.lanes), f->n_args, arg);
	/* infix text gives 0 or 1; a helper gives the value of a lane */
	return v->type.dt == TN_BOOL && v->type.lanes == 1
		       ? arena_printf(p->a, "%s != 0", s)
		       : s;
}

static const char *converted(printer *p, const char *x, kern_type to)
{
	return arena_printf(p->a, "__builtin_convertvector(%s, %s)", x,
		c_type(p, to));
}

static const char *from_float(printer *p, const char *x, tn_dtype from,
	kern_type to)
{
	lanes_of(p, from, to.lanes);
	lanes_of(p, to.dt, to.lanes);
	c_need(p, (struct need){NEED_FROM, NULL, from, to.dt, to.lanes, 0, NULL});
	return arena_printf(p->a, "%s_from_%s(%s)",
		c_math_type(p->m, to.dt, to.lanes), dtype_name(from), x);
}

static const char *cast(printer *p, const kern_value *v)
{
	kern_type from = kern_at(p->k, v->arg[0])->type, to = v->type;
	const char *x = c_name(p, v->arg[0]);

	if (to.dt == TN_BOOL && from.dt != TN_BOOL)
		return arena_printf(p->a, "(%s != 0)", x);
	if (dtype_is_float(from.dt) && !dtype_is_float(to.dt))
		return from_float(p, x, from.dt, to);
	if (to.lanes == 1)
		return arena_printf(p->a, "(%s)%s", c_type(p, to), x);
	if (from.dt == TN_BOOL && to.dt != TN_BOOL)
		x = arena_printf(p->a, "-%s", x);
	return lane_dtype(from) == lane_dtype(to) ? x : converted(p, x, to);
}

static const char *from_narrow(
	printer *p, const char *x, tn_dtype from, int32_t n)
{
	tn_dtype wide = dtype_wide(from);

	return applied(p,
		c_use(p, arena_printf(p->a, "%s_from_%s", dtype_name(wide),
				 dtype_name(from)),
			wide, n),
		1, &x);
}

static const char *to_narrow(printer *p, const char *x, tn_dtype to, int32_t n)
{
	tn_dtype wide = dtype_wide(to);

	return applied(p,
		c_use(p, arena_printf(p->a, "%s_from_%s", dtype_name(to),
				 dtype_name(wide)),
			wide, n),
		1, &x);
}

static const char *widen(printer *p, const kern_value *v)
{
	tn_dtype from = kern_at(p->k, v->arg[0])->type.dt;
	const char *x = c_name(p, v->arg[0]);

	if (dtype_is_narrow(from))
		return from_narrow(p, x, from, v->type.lanes);
	x = arena_printf(p->a, "%s != 0", x);
	return v->type.lanes > 1 ? converted(p, x, v->type) : x;
}

static const char *narrow(printer *p, const kern_value *v)
{
	tn_dtype to = v->type.dt;
	const char *x = c_name(p, v->arg[0]);

	if (dtype_is_narrow(to))
		return to_narrow(p, x, to, v->type.lanes);
	return v->type.lanes > 1
		       ? converted(p, arena_printf(p->a, "-%s", x), v->type)
		       : arena_printf(p->a, "(u8)%s", x);
}

static const char *rounded(printer *p, const kern_value *v)
{
	const char *x = to_narrow(
		p, c_name(p, v->arg[0]), v->dt, v->type.lanes);

	return from_narrow(p, x, v->dt, v->type.lanes);
}

static const char *splat(printer *p, const kern_value *v)
{
	const char *x = c_name(p, v->arg[0]);
	tn_dtype t = lane_dtype(v->type);

	if (v->type.dt == TN_BOOL)
		x = arena_printf(p->a, "(%s)-%s", lanes_of(p, t, 1), x);
	return applied(p, c_use(p, "splat", t, v->type.lanes), 1, &x);
}

static const char *lanes(printer *p, const kern_value *v)
{
	str s = str_new(p->a);

	str_printf(&s, "(%s){ ", c_type(p, v->type));
	for (int32_t i = 0; i < v->type.lanes; i++)
		str_printf(&s, "%s%" PRId64, i > 0 ? ", " : "",
			v->type.dt == TN_BOOL ? -v->list[i] : v->list[i]);
	str_add(&s, " }");
	return s.at;
}

static const char *shuffle(printer *p, const kern_value *v)
{
	str s = str_new(p->a);

	str_printf(&s, "__builtin_shufflevector(%s, %s",
		c_name(p, v->arg[0]), c_name(p, v->arg[1]));
	for (int32_t i = 0; i < v->type.lanes; i++)
		str_printf(&s, ", %" PRId64, v->list[i]);
	str_addc(&s, ')');
	return s.at;
}

static const char *multiplied(printer *p, const kern_value *v)
{
	const char *arg[3], *u;

	for (int32_t i = 0; i < 3; i++)
		arg[i] = c_name(p, v->arg[i]);
	if (v->op == KERN_MAD)
		return applied(p, c_use(p, "mad", v->type.dt, v->type.lanes),
			3, arg);
	u = unsigned_type(p, v->type);
	return arena_printf(p->a, "(%s)((%s)%s + (%s)%s * (%s)%s)",
		c_type(p, v->type), u, arg[2], u, arg[0], u, arg[1]);
}

static const char *load(printer *p, const kern_value *v)
{
	const kern_access *at = &v->at;
	const char *e = c_element(p, at);
	int32_t n = v->type.lanes;
	kern_type mask = kern_bool();

	if (at->mask != 0)
		mask = kern_at(p->k, at->mask)->type;
	if (at->by != 0)
		return arena_printf(p->a, "%s(&%s, %s, %s, %d)",
			c_use(p, "gather", v->type.dt, n), e,
			c_name(p, at->by),
			at->mask != 0 ? c_name(p, at->mask)
				      : arena_printf(p->a, "%s(-1)",
						c_use(p, "splat", TN_I32, n)),
			at->part > 0 ? at->part : n);
	if (mask.lanes > 1)
		return arena_printf(p->a, "%s(&%s, %s, %d, %s)",
			c_use(p, "load_mask", v->type.dt, n), e,
			c_name(p, at->mask), at->part > 0 ? at->part : n,
			at->whole != 0 ? c_name(p, at->whole) : "0");
	if (n > 1 && at->part > 0)
		e = arena_printf(p->a, "%s(&%s, %d)",
			c_use(p, "load_part", v->type.dt, n), e, at->part);
	else if (n > 1)
		e = arena_printf(
			p->a, "%s(&%s)", c_use(p, "load", v->type.dt, n), e);
	if (at->mask == 0)
		return e;
	return n == 1 ? arena_printf(p->a, "%s ? %s : 0", c_name(p, at->mask),
				e)
		      : arena_printf(p->a, "%s ? %s : (%s){ 0 }",
				decided(p, at->mask, n), e, c_type(p, v->type));
}

static const char *index_of(printer *p, const kern_value *v)
{
	const char *f = at_lane(p, v);

	return v->type.dt == TN_I64 || v->type.lanes > 1
		       ? f
		       : arena_printf(p->a, "(%s)(%s)", c_type(p, v->type), f);
}

static const char *two(printer *p, const char *helper, const kern_value *v)
{
	return arena_printf(p->a, "%s(%s, %s)", c_int_helper(p, helper),
		c_form(p, v->form[0]), c_form(p, v->form[1]));
}

static const char *inside(printer *p, const kern_value *v)
{
	const char *f = factor(p, v);
	bool lo = v->num[0] != INT64_MIN, hi = v->num[1] != INT64_MAX;
	str s = str_new(p->a);

	if (lo && hi && v->num[1] - 1 == v->num[0])
		return arena_printf(p->a, "(%s == %" PRId64 ")", f, v->num[0]);
	if (lo)
		str_printf(&s, "(%s >= %" PRId64 ")", f, v->num[0]);
	if (lo && hi)
		str_add(&s, " & ");
	if (hi)
		str_printf(&s, "(%s < %" PRId64 ")", f, v->num[1]);
	return lo || hi ? s.at : "1";
}

static const char *lane(printer *p, const kern_value *v)
{
	return arena_printf(p->a,
		v->type.dt == TN_BOOL ? "%s[%s] != 0" : "%s[%s]",
		c_name(p, v->arg[0]), c_form(p, v->form[0]));
}

static const char *any(printer *p, const kern_value *v)
{
	const char *x = c_name(p, v->arg[0]);
	kern_type t = kern_at(p->k, v->arg[0])->type;

	return applied(p, c_use(p, "any", lane_dtype(t), t.lanes), 1, &x);
}

static const char *divided(printer *p, const kern_value *v)
{
	return arena_printf(p->a, "%s %c %" PRId64, factor(p, v),
		v->op == KERN_DIV ? '/' : '%', v->num[0]);
}

static const char *floored(printer *p, const kern_value *v)
{
	return arena_printf(p->a, "%s(%s, %" PRId64 ")",
		c_int_helper(p, "floor_div"), at_lane(p, v), v->num[0]);
}

static const char *least(printer *p, const kern_value *v)
{
	return two(p, "sooner", v);
}

static const char *most(printer *p, const kern_value *v)
{
	return two(p, "later", v);
}

static const char *clamped(printer *p, const kern_value *v)
{
	return arena_printf(p->a, "%s(%s, %" PRId64 ", %" PRId64 ")",
		c_int_helper(p, "clamp"), c_form(p, v->form[0]),
		v->num[0], v->num[1]);
}

static const char *picked(printer *p, const kern_value *v)
{
	return arena_printf(p->a, "%s ? %s : %s", c_name(p, v->arg[0]),
		c_form(p, v->form[0]), c_form(p, v->form[1]));
}

static const char *copied(printer *p, const kern_value *v)
{
	return c_name(p, v->arg[0]);
}

/* u8 times i8, whichever is first in the text of kern: the instruction's order */
static const char *dot(printer *p, const kern_value *v)
{
	tn_dtype x = kern_at(p->k, v->arg[0])->type.dt;
	tn_dtype y = kern_at(p->k, v->arg[1])->type.dt;
	bool turned = x == TN_I8;
	int32_t n = kern_dot_terms(x, y);

	lanes_of(p, x, n * v->type.lanes);
	lanes_of(p, y, n * v->type.lanes);
	c_need(p, (struct need){.kind = NEED_DOT,
		.t = v->type.dt,
		.of = turned ? y : x,
		.lanes = v->type.lanes});
	return arena_printf(p->a, "dot_%s_%s(%s, %s, %s)",
		dtype_name(turned ? y : x), c_type(p, v->type),
		c_name(p, v->arg[turned]), c_name(p, v->arg[!turned]),
		c_name(p, v->arg[2]));
}

static const char *repeated(printer *p, const kern_value *v)
{
	kern_type x = kern_at(p->k, v->arg[0])->type;
	const char *from = c_type(p, x);

	if (x.lanes == v->type.lanes)
		return c_name(p, v->arg[0]);
	c_need(p, (struct need){.kind = NEED_REPEAT,
		.t = x.dt,
		.lanes = v->type.lanes,
		.other = x.lanes});
	return arena_printf(p->a, "repeat_%s_%s(%s)", from,
		c_type(p, v->type), c_name(p, v->arg[0]));
}

static const char *zipped(printer *p, const kern_value *v)
{
	c_type(p, kern_at(p->k, v->arg[0])->type);
	c_need(p, (struct need){.kind = NEED_ZIP,
		.t = v->type.dt,
		.lanes = v->type.lanes});
	return arena_printf(p->a, "zip_%s(%s, %s)", c_type(p, v->type),
		c_name(p, v->arg[0]), c_name(p, v->arg[1]));
}

const char *c_value(printer *p, kern_val id)
{
	/* all others are named: constants, variables and registers */
	static const char *(*const of[KERN_N_OPS])(
		printer *, const kern_value *) = {
		[KERN_CALL] = call, [KERN_MAD] = multiplied,
		[KERN_MULADD] = multiplied, [KERN_SPLAT] = splat,
		[KERN_LANE] = lane, [KERN_SHUFFLE] = shuffle,
		[KERN_LANES] = lanes, [KERN_CAST] = cast,
		[KERN_WIDEN] = widen, [KERN_NARROW] = narrow,
		[KERN_ROUND] = rounded, [KERN_ANY] = any,
		[KERN_INDEX] = index_of, [KERN_DIV] = divided,
		[KERN_MOD] = divided, [KERN_FLOOR] = floored,
		[KERN_MIN] = least, [KERN_MAX] = most,
		[KERN_CLAMP] = clamped, [KERN_PICK] = picked,
		[KERN_INSIDE] = inside, [KERN_LOAD] = load,
		[KERN_COPY] = copied, [KERN_DOT] = dot,
		[KERN_REPEAT] = repeated, [KERN_ZIP] = zipped,
	};
	const kern_value *v = kern_at(p->k, id);

	return of[v->op] != NULL ? of[v->op](p, v) : c_name(p, id);
}

bool c_is_named(const printer *p, kern_val v)
{
	return p->is_let[v] ||
	       strchr(kern_op_at(kern_at(p->k, v)->op)->flags, 'd') != NULL;
}

const char *c_taken(printer *p, kern_val v)
{
	if (c_is_named(p, v))
		return c_name(p, v);
	if (!p->d->let(p, v))
		return p->d->value(p, v);
	p->is_let[v] = true;
	return c_name(p, v);
}
