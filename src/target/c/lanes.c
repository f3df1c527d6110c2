/*
 * lanes.c: prints vectors that no expression makes: lanes of a form, and lanes that
 * are not neighbours in memory, one by one.
 */
#include "target/c/text.h"

enum { MOST_INSERTED = 16 }; /* lanes that one expression loads one by one */

#include <inttypes.h>

/* Opens a loop over the lanes of a vector, without its variable: where a variable
 * numbers them, the vector is in memory, and each vector that is read behind stores
 * of its lanes waits for them. */
static void for_lanes(printer *p, int32_t n)
{
	p->n_loops++;
	c_line(p, "#pragma GCC unroll %d", n);
	c_line(p, "for (int l = 0; l < %d; l++)", n);
}

/* One value in all lanes of v's type. */
static const char *in_lanes(printer *p, const kern_value *v, const char *x)
{
	return arena_printf(p->a, "%s((%s)(%s))",
		c_use(p, "splat", v->type.dt, v->type.lanes),
		c_stored_type(p, v->type.dt), x);
}

/* The form with this behind it, + l in lane l. */
static const char *counted(printer *p, const kern_value *v, const char *x)
{
	str s = str_new(p->a);

	str_printf(&s, "%s + (%s){ ", in_lanes(p, v, x), c_type(p, v->type));
	for (int32_t l = 0; l < v->type.lanes; l++)
		str_printf(&s, "%s%d", l > 0 ? ", " : "", l);
	str_add(&s, " }");
	return s.at;
}

/*
 * Lanes of form / m and of form % m: the first lane's remainder, counted on, passes
 * a multiple of m here and there; then the quotient is one more, the remainder m less.
 */
static void divided_lanes(printer *p, const kern_value *v, const char *n)
{
	const char *f = c_form(p, v->form[0]), *type = c_type(p, v->type);
	const char *ge = c_use(p, "ge", v->type.dt, v->type.lanes);
	const char *splat = c_use(p, "splat", v->type.dt, v->type.lanes);
	int64_t m = v->num[0], most = m - 1 + v->type.lanes - 1;
	str s = str_new(p->a);

	c_line(p, "const %s %s_0 = %s;", type, n,
		counted(p, v, arena_printf(p->a, "(%s) %% %" PRId64, f, m)));
	if (v->op == KERN_DIV)
		str_add(&s, in_lanes(p, v, arena_printf(p->a,
					"(%s) / %" PRId64, f, m)));
	else
		str_printf(&s, "%s_0", n);
	for (int64_t at = m; at <= most; at += m) {
		const char *past = arena_printf(p->a,
			"%s(%s_0, %s(%" PRId64 "))", ge, n, splat, at);

		if (v->op == KERN_DIV)
			str_printf(&s, " - %s", past);
		else
			str_printf(&s, " - (%s & %s(%" PRId64 "))", past,
				splat, m);
	}
	c_line(p, "const %s %s = %s;", type, n, s.at);
}

/* The integers of a form, one for each lane after the first. */
void c_by_lane(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);
	const char *n = c_name(p, id);
	int64_t most = v->type.dt == TN_I64 && !p->k->narrow ? INT64_MAX : INT32_MAX;

	if (v->op == KERN_INDEX) {
		c_line(p, "const %s %s = %s;", c_type(p, v->type), n,
			counted(p, v, c_form(p, v->form[0])));
		return;
	}
	if ((v->op == KERN_DIV || v->op == KERN_MOD) &&
		v->num[0] <= most - KERN_MAX_LANES) {
		divided_lanes(p, v, n);
		return;
	}
	c_line(p, "%s %s = { 0 };", c_type(p, v->type), n);
	for_lanes(p, v->type.lanes);
	c_line(p, "	%s[l] = (%s)(%s);", n, c_stored_type(p, v->type.dt),
		c_value(p, id));
}

/* Lanes that are not neighbours in memory: element l of the access. */
static const char *far_element(printer *p, const kern_access *at)
{
	return arena_printf(
		p->a, "(&%s)[%" PRId64 " * l]", c_element(p, at), at->stride);
}

bool c_is_far(const kern_access *at, kern_type t)
{
	return at->at != NULL && at->stride != 1 && t.lanes > 1;
}

/* All at once: compilers insert elements in pairs then, not one after the other. */
static void load_each(printer *p, kern_val id, int32_t n)
{
	const kern_value *v = kern_at(p->k, id);
	str s = str_new(p->a);

	for (int32_t l = 0; l < n; l++)
		str_printf(&s, "%s(&%s)[%" PRId64 "]", l > 0 ? ", " : "",
			c_element(p, &v->at), l * v->at.stride);
	c_line(p, "%s %s = { %s };", c_type(p, v->type), c_name(p, id), s.at);
}

/* Loads them one by one: those that part and mask leave. */
void c_load_far(printer *p, kern_val id)
{
	const kern_value *v = kern_at(p->k, id);
	const kern_access *at = &v->at;
	int32_t n = at->part > 0 ? at->part : v->type.lanes;
	const char *mask = at->mask == 0 ? NULL : c_name(p, at->mask);
	bool by_lane = mask != NULL && kern_at(p->k, at->mask)->type.lanes > 1;

	if (mask == NULL && v->type.lanes <= MOST_INSERTED) {
		load_each(p, id, n);
		return;
	}
	c_line(p, "%s %s = { 0 };", c_type(p, v->type), c_name(p, id));
	for_lanes(p, n);
	if (mask != NULL)
		c_line(p, "	if (%s%s)", mask, by_lane ? "[l]" : "");
	c_line(p, "%s	%s[l] = %s;", mask != NULL ? "	" : "", c_name(p, id),
		far_element(p, at));
}

/* Lanes of a form are computed by a loop, not by an expression. */
bool c_is_by_lane(const kern_value *x)
{
	return x->type.lanes > 1 && x->form[0] != NULL && x->op != KERN_LANE;
}

void c_store_far(printer *p, const kern_stmt *s, const char *x)
{
	kern_type t = kern_at(p->k, s->x)->type;

	for_lanes(p, s->at.part > 0 ? s->at.part : t.lanes);
	c_line(p, "	%s = (%s)[l];", far_element(p, &s->at), x);
}
