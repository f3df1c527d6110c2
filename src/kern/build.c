/*
 * build.c: names values in the block that is being built. Integers that are named
 * are known from there to the end of their block; the same one is not named
 * again.
 */
#include "kern/local.h"

/* ---- naming ---- */

static bool same_access(const kern_access *a, const kern_access *b)
{
	return a->array == b->array && a->at == b->at &&
	       a->stride == b->stride && a->part == b->part &&
	       a->mask == b->mask && a->whole == b->whole && a->by == b->by;
}

static bool same_value(const kern_value *a, const kern_value *b)
{
	if (a->op != b->op || !kern_same_type(a->type, b->type) ||
		a->fn != b->fn || a->dt != b->dt ||
		memcmp(a->arg, b->arg, sizeof a->arg) != 0 ||
		memcmp(a->form, b->form, sizeof a->form) != 0 ||
		memcmp(a->num, b->num, sizeof a->num) != 0 ||
		!same_access(&a->at, &b->at))
		return false;
	return a->list == b->list ||
	       (a->list != NULL && b->list != NULL &&
		       memcmp(a->list, b->list,
			       (size_t)a->type.lanes * sizeof *a->list) == 0);
}

static int32_t bucket_of(const kern_value *x)
{
	uint64_t h = hash_bytes(x->arg, sizeof x->arg, (uint64_t)x->op);

	h = hash_bytes(x->form, sizeof x->form, h + (uint64_t)x->fn);
	h = hash_bytes(x->num, sizeof x->num, h + (uint64_t)x->type.lanes);
	return (int32_t)(h % KERN_BUCKETS);
}

static bool reads_register(const kern_kernel *k, const kern_value *v)
{
	for (int32_t i = 0; i < KERN_MAX_ARGS; i++)
		if (v->arg[i] != 0 && kern_at(k, v->arg[i])->op == KERN_REG)
			return true;
	return false;
}

static kern_val let(kern_builder *b, kern_val v, bool number)
{
	kern_kernel *k = b->k;
	const kern_value *x = kern_at(k, v);
	kern_stmt *s;
	int32_t at;

	if (strchr(kern_op_at(x->op)->flags, 'd') != NULL)
		return v;
	number &= strchr(kern_op_at(x->op)->flags, 'p') != NULL &&
		  !reads_register(k, x);
	at = number ? bucket_of(x) : 0;
	for (int32_t i = number ? b->bucket[at] : -1; i >= 0;
		i = b->known.at[i].before)
		if (same_value(kern_at(k, b->known.at[i].v), x))
			return b->known.at[i].v;
	s = kern_add(b, KERN_LET);
	s->v = v;
	if (number) {
		*vec_push(k->a, &b->known) =
			(struct kern_known){v, at, b->bucket[at]};
		b->bucket[at] = b->known.n - 1;
	}
	return v;
}

kern_val kern_let(kern_builder *b, kern_val v)
{
	return let(b, v, b->number);
}

/* ---- integers ---- */

static const kern_form *integer(kern_builder *b, const kern_value *v)
{
	return kern_form_of(b->k, let(b, kern_ins(b->k, v), true));
}

static const kern_form *divided(
	kern_builder *b, kern_op op, const kern_form *f, int64_t m)
{
	kern_value v = {.op = op, .type = kern_i64(), .form = {f}, .num = {m}};

	if (m <= 0)
		kern_bug(b->k, "a division by what is not positive");
	if (kern_exact(b->k, f, m) != NULL)
		return op == KERN_MOD
			       ? kern_form_const(b->k, floor_mod(f->c0, m))
			       : kern_exact(b->k, f, m);
	return integer(b, &v);
}

const kern_form *kern_div(kern_builder *b, const kern_form *f, int64_t m)
{
	return divided(b, KERN_DIV, f, m);
}

const kern_form *kern_floor(kern_builder *b, const kern_form *f, int64_t m)
{
	return divided(b, KERN_FLOOR, f, m);
}

const kern_form *kern_mod(kern_builder *b, const kern_form *f, int64_t m)
{
	return divided(b, KERN_MOD, f, m);
}

static const kern_form *chosen(kern_builder *b, kern_op op, const kern_form *f,
	const kern_form *g)
{
	kern_value v = {.op = op, .type = kern_i64(), .form = {f, g}};
	int64_t d;

	/* a difference that is known decides it */
	if (kern_form_is_const(kern_form_sub(b->k, f, g), &d))
		return (d <= 0) == (op == KERN_MIN) ? f : g;
	return integer(b, &v);
}

const kern_form *kern_min(
	kern_builder *b, const kern_form *f, const kern_form *g)
{
	return chosen(b, KERN_MIN, f, g);
}

const kern_form *kern_max(
	kern_builder *b, const kern_form *f, const kern_form *g)
{
	return chosen(b, KERN_MAX, f, g);
}

const kern_form *kern_clamp(
	kern_builder *b, const kern_form *f, int64_t lo, int64_t hi)
{
	kern_value v = {.op = KERN_CLAMP,
		.type = kern_i64(),
		.form = {f},
		.num = {lo, hi}};
	int64_t c;

	if (kern_form_is_const(f, &c))
		return kern_form_const(b->k, c < lo ? lo : c > hi ? hi : c);
	return integer(b, &v);
}

const kern_form *kern_pick(kern_builder *b, kern_val c, const kern_form *f,
	const kern_form *g)
{
	kern_value v = {.op = KERN_PICK,
		.type = kern_i64(),
		.arg = {c},
		.form = {f, g}};

	if (f == g)
		return f;
	if (kern_at(b->k, c)->op == KERN_CONST)
		return kern_at(b->k, c)->c.i != 0 ? f : g;
	return integer(b, &v);
}

kern_val kern_index(kern_builder *b, const kern_form *f, tn_dtype t)
{
	kern_value v = {
		.op = KERN_INDEX, .type = kern_num(t, 1), .form = {f}};
	int64_t c;

	if (kern_form_is_const(f, &c))
		return kern_const_i(b->k, t, c);
	if (f->n == 1 && f->c0 == 0 && f->t[0].coef == 1 &&
		kern_at(b->k, f->t[0].v)->type.dt == t)
		return f->t[0].v;
	return let(b, kern_ins(b->k, &v), true);
}

kern_val kern_inside(
	kern_builder *b, const kern_form *f, int64_t lo, int64_t hi)
{
	kern_value v = {.op = KERN_INSIDE,
		.type = kern_bool(),
		.form = {f},
		.num = {lo, hi}};
	int64_t c;

	if (kern_form_is_const(f, &c))
		return kern_const_i(b->k, TN_BOOL,
			c >= lo && (hi == INT64_MAX || c < hi));
	return let(b, kern_ins(b->k, &v), true);
}

kern_val kern_checked(kern_builder *b, kern_val raw, int32_t check)
{
	kern_value v = {.op = KERN_CHECK,
		.type = kern_i64(),
		.arg = {raw},
		.num = {check}};

	return let(b, kern_ins(b->k, &v), false);
}
