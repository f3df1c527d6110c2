/*
 * verify_size.c: checks that bounds and integers do not exceed 64 bits.
 *
 * Each value has a size that its absolute value does not exceed. It follows from
 * the sizes of its operands, without conditions and loops around: a value that is
 * cut by `imin` or a condition was computed before. Integers from data count as 32
 * bits, and so do those that a check lets be anything: without a condition they
 * are in no address and bound that is accepted. Addresses are not checked here:
 * where they are used, they are inside their arrays; nor is `inside`, which wraps
 * as the address that it guards does. For these kern_range.reach has what values
 * can really be.
 */
#include "kern/verify.h"

#define MOST ((uint64_t)INT64_MAX - UINT32_MAX) /* steps are added to it */
#define FROM_DATA (UINT64_C(1) << 31)
#define ANYTHING (UINT64_C(1) << 62) /* the size of checks of any index */

static uint64_t size_of(int64_t x)
{
	return x < 0 ? -(uint64_t)x : (uint64_t)x;
}

static uint64_t larger(uint64_t x, uint64_t y)
{
	return x > y ? x : y;
}

/* At most 1 + MOST, which says that it is larger. */
static uint64_t plus(uint64_t x, uint64_t y)
{
	return x > MOST || y > MOST || x + y > MOST ? MOST + 1 : x + y;
}

static uint64_t times(uint64_t x, uint64_t y)
{
	return y != 0 && x > MOST / y ? MOST + 1 : x * y;
}

static uint64_t form_size(const struct kern_verifier *v, const kern_form *f)
{
	uint64_t n = f != NULL ? size_of(f->c0) : 0;

	for (int32_t i = 0; f != NULL && i < f->n; i++)
		n = plus(n, times(size_of(f->t[i].coef), v->size[f->t[i].v]));
	return n;
}

void kern_verify_size(struct kern_verifier *v, const kern_form *f)
{
	if (form_size(v, f) > MOST)
		kern_refuse(v, "number",
			"this form may exceed 64 bits; smaller factors would be accepted");
}

/* Is it an integer made of forms? */
static bool is_of_forms(const kern_op_row *r)
{
	const char *to = strchr(r->types, '>') + 1;

	return strchr(r->operands, 'F') != NULL &&
		(*to == 'I' || *to == 'J');
}

static uint64_t check_size(const kern_check *c)
{
	uint64_t n = larger(size_of(c->lo), size_of(c->hi));

	return n >= ANYTHING ? FROM_DATA : n;
}

/* What an integer that is loaded, or computed from such ones, can be. */
static uint64_t data_reach(struct kern_verifier *v, const kern_value *x)
{
	const kern_check *c;
	int64_t n = x->op == KERN_CHECK	 ? x->num[0]
		    : x->op == KERN_LOAD ? v->range.checked[x->at.array]
					 : 0;

	if (n < 1 || n > v->k->check.n)
		return ir_int_least(x->type.dt) < 0
			? -(uint64_t)ir_int_least(x->type.dt)
			: (uint64_t)ir_int_greatest(x->type.dt);
	c = &v->k->check.at[n - 1];
	return larger(size_of(c->lo), size_of(c->hi));
}

static void set_reach(struct kern_verifier *v, kern_val i, const kern_value *x)
{
	uint64_t n;

	if (x->op == KERN_CLAMP)
		n = larger(size_of(x->num[0]), size_of(x->num[1]));
	else if (is_of_forms(kern_op_at(x->op)))
		n = larger(kern_reach(&v->range, x->form[0]),
			kern_reach(&v->range, x->form[1]));
	else
		n = data_reach(v, x);
	v->range.reach[i] = n < KERN_BEYOND ? n : KERN_BEYOND;
}

void kern_size_value(struct kern_verifier *v, kern_val i)
{
	const kern_value *x = kern_at(v->k, i);
	uint64_t n = FROM_DATA;

	if (x->op == KERN_CLAMP)
		n = larger(size_of(x->num[0]), size_of(x->num[1]));
	else if (x->op == KERN_CHECK)
		n = check_size(&v->k->check.at[x->num[0] - 1]);
	else if (is_of_forms(kern_op_at(x->op)))
		n = larger(form_size(v, x->form[0]), form_size(v, x->form[1]));
	if (x->type.dt == TN_I32 && n > UINT64_C(1) << 31)
		n = UINT64_C(1) << 31;
	v->size[i] = n;
	set_reach(v, i, x);
}

void kern_size_loop(struct kern_verifier *v, const kern_stmt *s)
{
	uint64_t *reach = v->range.reach;

	v->size[s->v] = larger(form_size(v, s->lo), form_size(v, s->hi));
	reach[s->v] = larger(
		kern_reach(&v->range, s->lo), kern_reach(&v->range, s->hi));
	if (s->after == 0)
		return;
	v->size[s->after] = plus(v->size[s->v], size_of(s->step));
	reach[s->after] = reach[s->v] >= KERN_BEYOND - size_of(s->step)
				  ? KERN_BEYOND
				  : reach[s->v] + size_of(s->step);
}
