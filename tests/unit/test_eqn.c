/* Equations joined, judged, put into one another, solved: by hand. */
#include "unit.h"

#include "eqn/eqn.h"

typedef struct desk {
	arena *a;
	ix *x;
	ir_system *s;
	eqn_graph *g;
} desk;

static desk desk_new(arena *a)
{
	desk d = {.a = a, .x = ix_new(a)};

	d.s = ir_system_new(a, d.x);
	return d;
}

static int32_t input(desk *d, const char *name, int64_t n)
{
	int32_t t = ir_add_tensor(d->s, name, TN_F32, 1, &n);

	d->s->tensor.at[t].is_input = true;
	*vec_push(d->a, &d->s->input) = t;
	return t;
}

/* out[left..] (reducing the rest) of `body`: number of the equation */
static int32_t equation(desk *d, const char *name, int32_t n_left,
	int32_t n_axes, const int64_t *extent, const expr *body)
{
	sys_eqn e = {.label = name,
		.op = name,
		.monoid = n_axes > n_left ? IR_SUM : IR_SET,
		.n_out = 1,
		.n_axes = n_axes,
		.n_left = n_left,
		.scan_axis = -1};
	int64_t n = 1;

	for (int32_t i = 0; i < n_axes; i++)
		e.axis[i] = (sys_axis){.extent = extent[i],
			.kind = i < n_left ? AXIS_P : AXIS_R};
	for (int32_t i = 0; i < n_left; i++)
		n *= extent[i];
	e.out[0] = ir_add_tensor(d->s, name, TN_F32, 1, &n);
	e.body[0] = body;
	return ir_add_eqn(d->s, &e);
}

static const expr *call(desk *d, const char *fn, const expr *p, const expr *q)
{
	const expr *arg[IR_MAX_ARGS] = {p, q};

	return ex_call(d->s, ir_scalar_find(fn, strlen(fn)), arg);
}

/* c0 + sum coef[i] * axis i */
static const ix_form *form(
	desk *d, const ix_dom *dom, int64_t c0, const int64_t *coef)
{
	const ix_form *f = ix_const(d->x, c0);

	for (int32_t i = 0; i < dom->box.n; i++)
		f = ix_add(d->x, dom, f,
			ix_scale(d->x, ix_axis(d->x, dom, i), coef[i]));
	return f;
}

/* ---- judge ---- */

static const struct {
	int64_t c0, coef[2];	 /* address over axes i < 4, j < 6 */
	eqn_verdict row, column; /* of the axes of t[4,6], uncut */
} verdicts[] = {
	{0, {6, 1}, EQN_RELATED, EQN_RELATED},
	{0, {6, 0}, EQN_RELATED, EQN_FREE},
	{3, {6, 0}, EQN_RELATED, EQN_FREE},
	{0, {0, 1}, EQN_FREE, EQN_RELATED},
	{18, {-6, 1}, EQN_REVERSED, EQN_RELATED},
	{5, {6, -1}, EQN_RELATED, EQN_REVERSED},
	{0, {1, 4}, EQN_MISALIGNED, EQN_MISALIGNED},
	{6, {0, 1}, EQN_FREE, EQN_RELATED},
};

static void run_judge(arena *a, void *arg)
{
	static const int64_t box[] = {4, 6};
	ix_dom dom = {.box = {2, box}};
	desk d = desk_new(a);
	int32_t x = input(&d, "x", 24);

	(void)arg;
	for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
		static const int64_t own[] = {6, 1};
		/* not a plain copy, and not one axis: t[i,j] = x[..] + x[j] */
		static const int64_t j[] = {0, 1};
		int32_t p = equation(&d, "t", 2, 2, box,
			call(&d, "add", ex_read(d.s, x, form(&d, &dom, 0, own)),
				ex_read(d.s, x, form(&d, &dom, 0, j))));
		int32_t c = equation(&d, "o", 2, 2, box,
			call(&d, "add",
				ex_read(d.s, d.s->eqn.at[p].out[0],
					form(&d, &dom, verdicts[i].c0,
						verdicts[i].coef)),
				ex_read(d.s, x, form(&d, &dom, 0, j))));
		eqn_unit *up, *uc;
		eqn_edge *e;

		d.g = eqn_graph_new(a, d.s);
		up = eqn_unit_new(d.g, &d.s->eqn.at[p], p);
		uc = eqn_unit_new(d.g, &d.s->eqn.at[c], c);
		assert_int_equal(up->e.n_axes, 2);
		assert_int_equal(uc->e.n_axes, 2);
		e = eqn_join(d.g, up, uc, 0);
		assert_int_equal(verdicts[i].row,
			eqn_judge(d.g, e, (eqn_digit){0, 1, 4}));
		assert_int_equal(verdicts[i].column,
			eqn_judge(d.g, e, (eqn_digit){1, 1, 6}));
	}
}

/* A cut of both makes digits of what was misaligned: 24 as 4 x 6 and 12 x 2. */
static void run_cut(arena *a, void *arg)
{
	static const int64_t box[] = {12, 2}, flat[] = {24}, one[] = {1};
	static const int64_t turned[] = {1, 12};
	ix_dom dom = {.box = {2, box}}, line = {.box = {1, flat}};
	desk d = desk_new(a);
	int32_t x = input(&d, "x", 24), p, c;
	eqn_unit *up, *uc;
	eqn_digit at;
	eqn_edge *e;

	(void)arg;
	p = equation(&d, "t", 1, 1, flat,
		call(&d, "exp", ex_read(d.s, x, form(&d, &line, 0, one)),
			NULL));
	c = equation(&d, "o", 2, 2, box,
		call(&d, "exp",
			ex_read(d.s, d.s->eqn.at[p].out[0],
				form(&d, &dom, 0, turned)),
			NULL));
	d.g = eqn_graph_new(a, d.s);
	up = eqn_unit_new(d.g, &d.s->eqn.at[p], p);
	uc = eqn_unit_new(d.g, &d.s->eqn.at[c], c);
	e = eqn_join(d.g, up, uc, 0);
	assert_false(eqn_relate(d.g, e, (eqn_digit){0, 1, 24}, &at));
	assert_true(eqn_relate(d.g, e, (eqn_digit){0, 1, 12}, &at));
	assert_int_equal(at.axis, 0);
	assert_true(eqn_relate(d.g, e, (eqn_digit){0, 12, 24}, &at));
	assert_int_equal(at.axis, 1);
	assert_true(eqn_relate(d.g, e, (eqn_digit){0, 3, 12}, &at));
	assert_int_equal(at.lo, 3);
	assert_int_equal(at.hi, 12);
	assert_false(eqn_relate(d.g, e, (eqn_digit){0, 8, 24}, &at));
}

/* ---- coalesce, inline ---- */

static void run_coalesce(arena *a, void *arg)
{
	static const int64_t box[] = {2, 3, 4}, rows[] = {12, 4, 1};
	static const int64_t some[] = {0, 4, 1}, last[] = {0, 0, 1};
	ix_dom dom = {.box = {3, box}};
	desk d = desk_new(a);
	int32_t x = input(&d, "x", 24), e;
	sys_eqn r;

	(void)arg;
	d.g = eqn_graph_new(a, d.s);
	e = equation(
		&d, "one", 3, 3, box, ex_read(d.s, x, form(&d, &dom, 0, rows)));
	r = eqn_coalesce(d.g, &d.s->eqn.at[e]);
	assert_int_equal(r.n_axes, 1);
	assert_int_equal(r.axis[0].extent, 24);
	e = equation(&d, "two", 3, 3, box,
		call(&d, "add", ex_read(d.s, x, form(&d, &dom, 0, rows)),
			ex_read(d.s, x, form(&d, &dom, 0, some))));
	r = eqn_coalesce(d.g, &d.s->eqn.at[e]);
	assert_int_equal(r.n_axes, 2);
	assert_int_equal(r.axis[0].extent, 2);
	assert_int_equal(r.axis[1].extent, 12);
	e = equation(&d, "three", 3, 3, box,
		call(&d, "add", ex_read(d.s, x, form(&d, &dom, 0, some)),
			ex_read(d.s, x, form(&d, &dom, 0, last))));
	r = eqn_coalesce(d.g, &d.s->eqn.at[e]);
	assert_int_equal(r.n_axes, 3);
	/* never a left axis with a reduced one */
	e = equation(
		&d, "sum", 1, 3, box, ex_read(d.s, x, form(&d, &dom, 0, rows)));
	r = eqn_coalesce(d.g, &d.s->eqn.at[e]);
	assert_int_equal(r.n_axes, 2);
	assert_int_equal(r.n_left, 1);
	assert_int_equal(r.axis[1].extent, 12);
}

static void run_inline(arena *a, void *arg)
{
	static const int64_t box[] = {4, 6}, rows[] = {6, 1}, turned[] = {1, 4};
	ix_dom dom = {.box = {2, box}};
	desk d = desk_new(a);
	int32_t x = input(&d, "x", 24), p, c;
	const expr *want;
	sys_eqn r;

	(void)arg;
	p = equation(&d, "t", 2, 2, box,
		call(&d, "exp", ex_read(d.s, x, form(&d, &dom, 0, rows)),
			NULL));
	c = equation(&d, "o", 2, 2, box,
		call(&d, "neg",
			ex_read(d.s, d.s->eqn.at[p].out[0],
				form(&d, &dom, 0, turned)),
			NULL));
	want = call(&d, "neg",
		call(&d, "exp", ex_read(d.s, x, form(&d, &dom, 0, turned)),
			NULL),
		NULL);
	d.g = eqn_graph_new(a, d.s);
	eqn_replace(d.g, &d.s->eqn.at[p]);
	r = eqn_inline(d.g, &d.s->eqn.at[c]);
	assert_ptr_equal(r.body[0], want); /* interned: the same tree */
	eqn_keep(d.g, &d.s->eqn.at[p]);
	r = eqn_inline(d.g, &d.s->eqn.at[c]);
	assert_ptr_equal(r.body[0], d.s->eqn.at[c].body[0]);
}

/* ---- shapes, guards, contractions ---- */

static void run_units(arena *a, void *arg)
{
	static const int64_t mnk[] = {4, 5, 6};
	static const int64_t left[] = {6, 0, 1}, right[] = {0, 1, 5};
	static const int64_t nk[] = {0, 6, 1};
	ix_dom dom = {.box = {3, mnk}};
	desk d = desk_new(a);
	int32_t x = input(&d, "x", 24), y = input(&d, "y", 30), z, e[4];
	eqn_unit *u[4];

	(void)arg;
	z = input(&d, "z", 24);
	for (int32_t i = 0; i < 4; i++) {
		int32_t t = i == 1 ? z : x;

		e[i] = equation(&d, "m", 2, 3, mnk,
			call(&d, i == 3 ? "add" : "mul",
				ex_read(d.s, t, form(&d, &dom, 0, left)),
				ex_read(d.s, y,
					form(&d, &dom, 0,
						i == 2 ? nk : right))));
	}
	d.g = eqn_graph_new(a, d.s);
	for (int32_t i = 0; i < 4; i++)
		u[i] = eqn_unit_new(d.g, &d.s->eqn.at[e[i]], e[i]);
	assert_int_equal(u[0]->shape, u[1]->shape); /* other tensors */
	assert_int_not_equal(u[0]->shape, u[2]->shape);
	assert_int_not_equal(u[0]->shape, u[3]->shape);
	assert_true(u[0]->contraction);
	assert_int_equal(u[0]->volume, 120);
	assert_int_equal(u[0]->flops, 2);
	assert_int_equal(u[0]->n_reads, 2);
	assert_int_equal(u[0]->stride[0], 5);
	assert_int_equal(u[0]->stride[1], 1);
}

/* o = i < 2 ? t[i] : t2[i - 2]: each read knows on which side it stands. */
static void run_guards(arena *a, void *arg)
{
	static const int64_t box[] = {5}, one[] = {1};
	ix_dom dom = {.box = {1, box}};
	desk d = desk_new(a);
	int32_t x = input(&d, "x", 2), y = input(&d, "y", 3), e;
	eqn_unit *u;
	int64_t lo, hi;

	(void)arg;
	e = equation(&d, "o", 1, 1, box,
		ex_select(d.s, ex_inside(d.s, form(&d, &dom, 0, one), 0, 2),
			ex_read(d.s, x, form(&d, &dom, 0, one)),
			ex_read(d.s, y, form(&d, &dom, -2, one))));
	d.g = eqn_graph_new(a, d.s);
	u = eqn_unit_new(d.g, &d.s->eqn.at[e], e);
	assert_int_equal(u->n_reads, 2);
	ix_range(&u->read[0].dom, u->read[0].at, &lo, &hi);
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 1);
	ix_range(&u->read[1].dom, u->read[1].at, &lo, &hi);
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 2);
	assert_int_equal(u->flops, 0);
}

/* ---- solve ---- */

static void run_solve(arena *a, void *arg)
{
	static const int64_t box[] = {24}, one[] = {1}, vars[] = {6, 4};
	ix_dom dom = {.box = {1, box}}, v = {.box = {2, vars}};
	desk d = desk_new(a);
	int32_t x = input(&d, "x", 24), e;
	eqn_solved at[] = {{{0, 4, 24}, 0}, {{0, 1, 4}, 1}};
	const ix_form *out[1];
	bool *missing = arg;

	e = equation(
		&d, "o", 1, 1, box, ex_read(d.s, x, form(&d, &dom, 0, one)));
	eqn_solve(d.s, &v, &d.s->eqn.at[e], *missing ? 1 : 2, at, out);
	assert_int_equal(ix_eval(out[0], (int64_t[]){3, 2}, NULL, NULL), 14);
}

#define RUN(name, fn)                                                 \
	static void name(void **state)                                \
	{                                                             \
		(void)state;                                          \
		assert_int_equal(unit_run(fn, NULL, 0, NULL), TN_OK); \
	}
RUN(test_judge, run_judge)
RUN(test_cut, run_cut)
RUN(test_coalesce, run_coalesce)
RUN(test_inline, run_inline)
RUN(test_units, run_units)
RUN(test_guards, run_guards)

static void test_solve(void **state)
{
	bool missing = false;

	(void)state;
	assert_int_equal(unit_run(run_solve, &missing, 0, NULL), TN_OK);
	missing = true;
	assert_int_equal(unit_run(run_solve, &missing, 0, NULL), TN_EINTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_coalesce),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_solve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
