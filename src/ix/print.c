/*
 * print.c: evaluates a form at a point, and prints it.
 *
 * In the text / is floor division, and % is the non-negative remainder:
 *
 *     4*i + (j/2)%3 + 1      j/2 over the whole extent has no %
 *     (4*i + j)/5            a floor atom
 *     clamp(i - 1, 0, 5)     ids[3*i + j]
 */
#include "ix/local.h"

/* Computes with wrap-around; the result is right if the value fits. */
int64_t ix_eval(const ix_form *f, const int64_t *point, ix_fun_eval *fun,
	void *arg)
{
	uint64_t total = (uint64_t)f->c0;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;
		int64_t v = a->kind == IX_DIGIT ?
			point[a->axis] : ix_eval(a->f, point, fun, arg);

		switch (a->kind) {
		case IX_DIGIT:
			v = floor_div(v, a->lo);
			if (a->hi % a->lo == 0)
				v = floor_mod(v, a->hi / a->lo);
			break;
		case IX_FLOOR:
			v = floor_div(v, a->den);
			break;
		case IX_CLAMP:
			v = v < a->lo ? a->lo : v > a->hi ? a->hi : v;
			break;
		case IX_FUN:
			v = fun(arg, a->fun, v);
			break;
		}
		total += (uint64_t)f->t[i].coef * (uint64_t)v;
	}
	return (int64_t)total;
}

struct printer {
	str *s;
	const ix_box *box;
	const char *const *names;
	ix_fun_name *fun_name;
	void *arg;
};

static void print_form(const struct printer *p, const ix_form *f);

static void print_axis(const struct printer *p, int32_t axis)
{
	if (p->names != NULL && p->names[axis] != NULL)
		str_add(p->s, p->names[axis]);
	else
		str_printf(p->s, "a_%d", axis);
}

/* tight: the digit is an operand of * */
static void print_digit(const struct printer *p, const ix_atom *a, bool tight)
{
	bool top = p->box != NULL ? a->hi >= p->box->extent[a->axis] :
		a->hi % a->lo != 0;
	bool quotient = a->lo > 1, both = quotient && !top;

	if (tight && (quotient || !top))
		str_addc(p->s, '(');
	if (both)
		str_addc(p->s, '(');
	print_axis(p, a->axis);
	if (quotient)
		str_printf(p->s, "/%lld", (long long)a->lo);
	if (both)
		str_addc(p->s, ')');
	if (!top)
		str_printf(p->s, "%%%lld", (long long)(a->hi / a->lo));
	if (tight && (quotient || !top))
		str_addc(p->s, ')');
}

static void print_atom(const struct printer *p, const ix_atom *a, bool tight)
{
	switch (a->kind) {
	case IX_DIGIT:
		print_digit(p, a, tight);
		break;
	case IX_FLOOR:
		str_add(p->s, tight ? "((" : "(");
		print_form(p, a->f);
		str_printf(p->s, ")/%lld%s", (long long)a->den,
			tight ? ")" : "");
		break;
	case IX_CLAMP:
		str_add(p->s, "clamp(");
		print_form(p, a->f);
		str_printf(p->s, ", %lld, %lld)", (long long)a->lo,
			(long long)a->hi);
		break;
	case IX_FUN:
		if (p->fun_name != NULL)
			str_add(p->s, p->fun_name(p->arg, a->fun));
		else
			str_printf(p->s, "f_%lld", (long long)a->fun);
		str_addc(p->s, '[');
		print_form(p, a->f);
		str_addc(p->s, ']');
		break;
	}
}

/* Prints |v| in decimal, also for INT64_MIN. */
static void print_size(str *s, int64_t v)
{
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

	str_printf(s, "%llu", (unsigned long long)u);
}

static void print_form(const struct printer *p, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		int64_t c = f->t[i].coef;
		bool one = c == 1 || c == -1;

		if (i > 0)
			str_add(p->s, c < 0 ? " - " : " + ");
		else if (c < 0)
			str_addc(p->s, '-');
		if (!one) {
			print_size(p->s, c);
			str_addc(p->s, '*');
		}
		print_atom(p, f->t[i].atom, !one || (i == 0 && c < 0));
	}
	if (f->n == 0) {
		if (f->c0 < 0)
			str_addc(p->s, '-');
		print_size(p->s, f->c0);
	} else if (f->c0 != 0) {
		str_add(p->s, f->c0 < 0 ? " - " : " + ");
		print_size(p->s, f->c0);
	}
}

void ix_print(str *s, const ix_form *f, const ix_box *box,
	const char *const *names, ix_fun_name *fun_name, void *arg)
{
	struct printer p = {s, box, names, fun_name, arg};

	print_form(&p, f);
}
