/*
 * Which kernels come out, and their loops: the cases of fusion as a table.
 *
 * A tree is written with its extents: 64{ } a parallel loop, r64{ } one along
 * which something is reduced, s64{ } a scan; "m0" clears the accumulator of m.
 * Kernels are separated by |, aliases follow, then the reasons.
 */
#include "unit.h"
#include "fuse_index.h"
#include "interp/interp.h"

#include "fuse/fuse.h"
#include "program/program.h"

static bool reduces(const fuse_kernel *k, const fuse_node *n, int32_t var)
{
	if (n->kind == FUSE_STMT)
		return !ix_uses_axis(k->eqn[n->eqn].out_at, var);
	for (int32_t i = 0; i < n->n_child; i++)
		if (reduces(k, n->child[i], var))
			return true;
	return false;
}

/* the part of a label behind its last dot: softmax.m is m */
static const char *short_label(const char *label)
{
	const char *dot = strrchr(label, '.');

	return dot == NULL ? label : dot + 1;
}

static void write_tree(str *s, const fuse_kernel *k, const fuse_node *n)
{
	if (s->n > 0 && s->at[s->n - 1] != '{')
		str_addc(s, ' ');
	if (n->kind != FUSE_LOOP) {
		str_printf(s, "%s%s", short_label(k->eqn[n->eqn].e.label),
			n->kind == FUSE_INIT ? "0" : "");
		return;
	}
	str_printf(s, "%s%lld{",
		k->var[n->var].kind == AXIS_S ? "s"
		: reduces(k, n, n->var)	      ? "r"
					      : "",
		(long long)k->var[n->var].extent);
	for (int32_t i = 0; i < n->n_child; i++)
		write_tree(s, k, n->child[i]);
	str_addc(s, '}');
}

static const char *why(fuse_why w)
{
	static const char *const name[] = {"several", "completion", "free",
		"shift", "reversed", "misaligned", "opaque", "cycle",
		"overwrite", "cost", "policy", "apart", "request"};

	return name[w];
}

static const char *structure(arena *a, fuse_plan *p)
{
	str s = str_new(a);

	fuse_explain(p);
	for (int32_t i = 0; i < p->kernel.n; i++) {
		const fuse_kernel *k = p->kernel.at[i];

		if (i > 0)
			str_add(&s, " |");
		if (k->opaque)
			str_printf(&s, " opaque %s", k->eqn[0].e.label);
		for (int32_t r = 0; r < k->n_roots; r++)
			write_tree(&s, k, k->root[r]);
		if (k->batch >= 0)
			str_printf(&s, " batch%d", k->batch);
	}
	for (int32_t t = 0; t < p->s->tensor.n; t++)
		if (p->alias[t] >= 0)
			str_printf(&s, " %s=%s", p->s->tensor.at[t].name,
				p->s->tensor.at[p->alias[t]].name);
	for (int32_t i = 0; i < p->reason.n; i++)
		str_printf(&s, " %s%s", i == 0 ? "! " : "",
			why(p->reason.at[i].why));
	return s.at;
}

static fuse_plan *partition_on(arena *a, const machine *m, const char *text,
	const fuse_options *o)
{
	str s = str_new(a);
	ir_program *p;
	fuse_plan *plan;

	str_printf(&s, "program {\n%s}\n", text);
	p = ir_program_parse(a, s.at, s.n, "case.tn", interp_loop);
	plan = fuse_partition(a, ir_lower(a, ix_new(a), p), m, o);
	fuse_verify(plan);
	fuse_explain(plan);
	return plan;
}

static fuse_plan *partition(arena *a, const char *text, const fuse_options *o)
{
	return partition_on(a, NULL, text, o);
}

#define X "x: f32[1024,1024]\n"

static const struct {
	const char *name, *text, *want;
} cases[] = {
#include "fuse_cases.h"
};

static void run_case(arena *a, void *arg)
{
	const int *i = arg;
	const char *got = structure(a, partition(a, cases[*i].text, NULL));

	if (strcmp(got, cases[*i].want) != 0)
		print_error("case %s\n  want %s\n  got  %s\n", cases[*i].name,
			cases[*i].want, got);
	assert_string_equal(got, cases[*i].want);
}

static void test_cases(void **state)
{
	(void)state;
	for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
		tn_diag d;

		if (unit_run(run_case, &i, 0, &d) != TN_OK)
			fail_msg("case %s: %s: %s", cases[i].name, d.rule,
				d.text);
	}
}

/* ---- what a plan says of itself ---- */

static const char softmax[] = "x: f32[64,128]\no = softmax(x)\nreturn o\n";

static void run_plan(arena *a, void *arg)
{
	fuse_plan *p = partition(a, softmax, NULL);
	const fuse_kernel *k = p->kernel.at[0];
	int32_t n_registers = 0, n_rows = 0;

	(void)arg;
	assert_int_equal(p->kernel.n, 1);
	assert_string_equal(k->name, "fn_softmax_0");
	assert_int_equal(k->n_shared, 1);
	assert_int_equal(k->var_extent[0], 64);
	assert_int_equal(k->var[0].kind, AXIS_P);
	assert_int_equal(k->n_inputs, 1);
	assert_int_equal(k->input[0], p->s->input.at[0]);
	assert_int_equal(k->n_outputs, 1);
	assert_int_equal(k->output[0], p->s->output.at[0]);
	assert_int_equal(k->n_bufs, k->n_eqns - 1);
	for (int32_t i = 0; i < k->n_bufs; i++) {
		n_registers += k->buf[i].elems == 1;
		n_rows += k->buf[i].elems == 128;
		assert_ptr_equal(k->buf[i].scope, k->root[0]);
	}
	assert_int_equal(n_rows, 1);
	assert_int_equal(n_registers, k->n_bufs - 1);
	assert_false(k->serial);
	assert_true(k->seconds > 0);
}

static void run_alone(arena *a, void *arg)
{
	fuse_options o = {.no_fusion = true};
	fuse_plan *p = partition(a, softmax, &o);

	(void)arg;
	assert_int_equal(p->kernel.n, 4);
	for (int32_t i = 0; i < p->kernel.n; i++) {
		assert_int_equal(p->kernel.at[i]->n_eqns, 1);
		assert_int_equal(p->kernel.at[i]->n_bufs, 0);
	}
	assert_string_equal(p->kernel.at[3]->name, "fn_softmax_0_part_4");
}

/* What schedules are said to make of kernels: all are alike, those of several
 * equations are a cliff, or each equation more makes a kernel a little slower
 * than it would be apart, or pairs are the fastest kernels, or all are alike but
 * on one thread. */
enum say { ALIKE, CLIFF, SLOPE, PAIRS, LONE };

static double said(enum say how, int32_t n)
{
	static const double of_pairs[] = {0, 1, 1.6, 2.7, 3.9};
	double s = 1;

	if (how == PAIRS)
		return of_pairs[n];
	for (int32_t i = 1; i < n; i++)
		s = how == CLIFF ? (i + 1) * (i + 1) : 1.09 * (s + 1);
	return how == ALIKE || how == LONE ? 1 : s;
}

static fuse_price say(void *arg, arena *a, const fuse_kernel *k)
{
	enum say how = *(enum say *)arg;
	double alone = said(how == LONE ? CLIFF : how, k->n_eqns);

	(void)a;
	assert_true(k->n_outputs > 0 && k->n_inputs > 0);
	/* more than a launch */
	return (fuse_price){said(how, k->n_eqns) * 1e-5, "a cliff",
		alone * 1e-5};
}

/* The bound proposes; what becomes of it decides, and is the reason. */
static void run_price(arena *a, void *arg)
{
	enum say how = ALIKE;
	fuse_pricing price = {say, &how};
	fuse_options o = {.price = &price};
	fuse_plan *p = partition(a, softmax, &o);
	double most = machine_at(0)->fusion.most_lost, sum = 0;
	int32_t n_lost = 0, n = 0;

	(void)arg;
	assert_int_equal(p->kernel.n, 1);
	how = CLIFF; /* the exponentials and their sum are one nest */
	p = partition(a, softmax, &o);
	assert_int_equal(p->kernel.n, 3);
	for (int32_t i = 0; i < p->reason.n; i++) {
		const fuse_reason *r = &p->reason.at[i];

		if (strstr(r->text, "most of it for a cliff") == NULL)
			continue;
		assert_int_equal(r->why, FUSE_WHY_COST);
		assert_true(r->fused > most * r->apart);
		n_lost++;
	}
	assert_true(n_lost > 0);
	how = LONE; /* what saves launches must not lose on one thread */
	p = partition(a, softmax, &o);
	assert_int_equal(p->kernel.n, 3);
	n_lost = 0;
	for (int32_t i = 0; i < p->reason.n; i++)
		n_lost += strstr(p->reason.at[i].text, "us on one thread") !=
			  NULL;
	assert_true(n_lost > 0);
	how = SLOPE; /* many small losses are not one large one */
	p = partition(a, softmax, &o);
	for (int32_t i = 0; i < p->kernel.n; i++) {
		n += p->kernel.at[i]->n_eqns;
		sum += said(SLOPE, p->kernel.at[i]->n_eqns);
	}
	assert_true(p->kernel.n > 1 && sum <= most * n);
}

/* Each merge is allowed to lose a little, but not the kernel that comes of them
 * in comparison with its two halves. */
static void run_split(arena *a, void *arg)
{
	enum say how = PAIRS;
	fuse_pricing price = {say, &how};
	fuse_options o = {.price = &price};
	machine m = *machine_at(0);
	fuse_plan *p;
	int32_t n_text = 0;

	(void)arg;
	m.fusion.split_rounds = 0;
	p = partition_on(a, &m, softmax, &o);
	assert_int_equal(p->kernel.n, 1);
	p = partition(a, softmax, &o);
	assert_int_equal(p->kernel.n, 2);
	assert_int_equal(p->kernel.at[0]->n_eqns, 2);
	assert_int_equal(p->kernel.at[1]->n_eqns, 2);
	assert_true(p->reason.n > 0);
	for (int32_t i = 0; i < p->reason.n; i++) {
		const fuse_reason *r = &p->reason.at[i];

		assert_int_equal(r->why, FUSE_WHY_COST);
		assert_true(r->fused == 1e-5 * said(PAIRS, 4));
		assert_true(r->apart == 2 * (1e-5 * said(PAIRS, 2)));
		n_text += strstr(r->text, "separate kernels 32 us") != NULL;
	}
	assert_int_equal(n_text, p->reason.n);
}

static void run_print(arena *a, void *arg)
{
	str text = str_new(a), json = str_new(a);

	(void)arg;
	fuse_print(&text, partition(a, softmax, NULL), false);
	assert_string_equal(text.at,
		"kernel 0 fn_softmax_0(x) -> o\n"
		"  for v0 < 64 {\n"
		"    init softmax.m: o.m[v0]\n"
		"    for v1 < 128, reduced {\n"
		"      softmax.m: o.m[v0] max= <- x[128*v0 + v1]\n"
		"    }\n"
		"    init softmax.s: o.s[v0]\n"
		"    for v2 < 128, reduced {\n"
		"      softmax.e: o.e[128*v0 + v2] <- x[128*v0 + v2], o.m[v0]\n"
		"      softmax.s: o.s[v0] += <- o.e[128*v0 + v2]\n"
		"    }\n"
		"    for v3 < 128 {\n"
		"      softmax.o: o[128*v0 + v3] <- o.e[128*v0 + v3], o.s[v0]\n"
		"    }\n"
		"  }\n"
		"  private o.m: a register, in v0\n"
		"  private o.e: 128 elements by [v2], in v0\n"
		"  private o.s: a register, in v0\n");
	fuse_print(&json, partition(a, softmax, NULL), true);
	assert_non_null(strstr(json.at,
		"\"tree\":[{\"loop\":0,\"body\":[{\"init\":0},{\"loop\":1,"
		"\"body\":[{\"stmt\":0}]},{\"init\":2},{\"loop\":2,\"body\":["
		"{\"stmt\":1},{\"stmt\":2}]},{\"loop\":3,\"body\":[{\"stmt\":"
		"3}]}]}]"));
}

/* The subscript of a row buffer is its own axis, whatever the address. */
static void run_index(arena *a, void *arg)
{
	fuse_plan *p = partition(a, softmax, NULL);
	const fuse_kernel *k = p->kernel.at[0];
	ix *x = p->s->x;
	ix_dom d = {.box = {.n = k->n_vars, .extent = k->var_extent}};

	(void)arg;
	for (int32_t i = 0; i < k->n_bufs; i++) {
		const fuse_buf *b = &k->buf[i];
		const ix_form *at = ix_add(x, &d,
			ix_scale(x, ix_axis(x, &d, 0), 128),
			ix_axis(x, &d, 3)); /* as the last equation reads it */

		if (b->elems == 128)
			assert_ptr_equal(
				fuse_buf_index(p, k, b, at), ix_axis(x, &d, 3));
		else
			assert_ptr_equal(
				fuse_buf_index(p, k, b, ix_axis(x, &d, 0)),
				ix_const(x, 0));
	}
}

/* Reasons name their witness. */
static void run_reason(arena *a, void *arg)
{
	fuse_plan *p = partition(a,
		X "r: f32[1024,1]\ne = exp(x)\nt = add(e, r)\n"
		  "s = reduce_sum(t, axes=[1])\n"
		  "q = transpose(t, perm=[1,0])\no = add(t, q)\n"
		  "return o, s\n",
		NULL);

	(void)arg;
	assert_int_equal(p->reason.n, 1);
	assert_int_equal(p->reason.at[0].why, FUSE_WHY_SEVERAL);
	assert_string_equal(p->reason.at[0].text,
		"add reads t at [i_0, i_1] and at [i_1, i_0]: no shared loop "
		"fits both reads");
}

/* The eleventh layer is the second one: equal text, equal kernels. */
static void run_layers(arena *a, void *arg)
{
	str s = str_new(a);
	fuse_plan *p;

	(void)arg;
	str_add(&s, "x0: f32[256,512]\ng: f32[512]\nb: f32[512]\n");
	for (int i = 0; i < 12; i++)
		str_printf(&s,
			"w%d: f32[512,512]\nn%d = layer_norm(x%d, g, b)\n"
			"m%d = matmul(n%d, w%d)\na%d = gelu(m%d)\n"
			"x%d = add(a%d, x%d)\n",
			i, i, i, i, i, i, i, i, i + 1, i, i);
	str_add(&s, "return x12\n");
	p = partition(a, s.at, NULL);
	assert_int_equal(p->kernel.n, 24);
	for (int32_t i = 2; i + 3 < p->kernel.n; i++)
		assert_int_equal(
			p->kernel.at[i]->n_eqns, p->kernel.at[i + 2]->n_eqns);
}

static void test_plan(void **state)
{
	(void)state;
	assert_int_equal(unit_run(run_plan, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(run_alone, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(run_price, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(run_split, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(run_print, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(run_index, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(run_reason, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(run_layers, NULL, 0, NULL), TN_OK);
}

static void test_memory(void **state)
{
	(void)state;
	unit_each_alloc_fails(run_alone, NULL);
	unit_each_alloc_fails(run_plan, NULL);
}

/* ---- storages that are overwritten ---- */

typedef struct pen {
	arena *a;
	ir_system *s;
	ix_dom dom;
} pen;

static const int64_t length[1] = {10000};

/* name[i] = sum of a[i] and b[i], either turned round; b may be -1 */
static int32_t line(pen *p, const char *name, int32_t a, bool turn_a, int32_t b,
	bool turn_b, int32_t storage)
{
	ix *x = p->s->x;
	const ix_form *i = ix_axis(x, &p->dom, 0);
	const ix_form *r = ix_addc(x, ix_scale(x, i, -1), length[0] - 1);
	const expr *arg[IR_MAX_ARGS] = {ex_read(p->s, a, turn_a ? r : i)};
	const char *fn = b < 0 ? "neg" : "add";
	sys_eqn e = {.label = name,
		.op = name,
		.call = p->s->eqn.n,
		.monoid = IR_SET,
		.n_out = 1,
		.n_axes = 1,
		.n_left = 1,
		.scan_axis = -1};

	if (b >= 0)
		arg[1] = ex_read(p->s, b, turn_b ? r : i);
	e.axis[0] = (sys_axis){.extent = length[0], .name = "i"};
	e.out[0] = ir_add_tensor(p->s, name, TN_F32, 1, length);
	e.body[0] = ex_call(p->s, ir_scalar_find(fn, strlen(fn)), arg);
	p->s->tensor.at[e.out[0]].storage = storage;
	p->s->tensor.at[e.out[0]].is_output = true;
	*vec_push(p->a, &p->s->output) = e.out[0];
	ir_add_eqn(p->s, &e);
	return e.out[0];
}

static pen pen_new(arena *a, int32_t *x, int32_t *y)
{
	pen p = {.a = a, .s = ir_system_new(a, ix_new(a))};

	p.dom.box = (ix_box){.n = 1, .extent = length};
	*x = ir_add_tensor(p.s, "x", TN_F32, 1, length);
	*y = ir_add_tensor(p.s, "y", TN_F32, 1, length);
	p.s->tensor.at[*x].storage = 0;
	for (int32_t i = 0; i < 2; i++) {
		p.s->tensor.at[i].is_input = true;
		*vec_push(a, &p.s->input) = i;
	}
	return p;
}

static void expect(pen *p, const char *want)
{
	fuse_plan *plan = fuse_partition(p->a, p->s, NULL, NULL);

	fuse_verify(plan);
	assert_string_equal(structure(p->a, plan), want);
}

static void run_writes(arena *a, void *arg)
{
	int32_t x, y, w;
	fuse_plan *plan;
	pen p;

	(void)arg;
	/* both at one place: one loop, the reader first */
	p = pen_new(a, &x, &y);
	line(&p, "w", x, false, y, false, 0);
	line(&p, "r", x, false, y, false, -1);
	expect(&p, "10000{r w}");
	/* case 42: the reader elsewhere: before, and never in one loop */
	p = pen_new(a, &x, &y);
	line(&p, "w", x, false, y, false, 0);
	line(&p, "r", x, true, y, false, -1);
	plan = fuse_partition(a, p.s, NULL, NULL);
	fuse_verify(plan);
	assert_string_equal(
		structure(a, plan), "10000{r} | 10000{w} ! overwrite");
	assert_string_equal(plan->reason.at[0].text,
		"w overwrites x, which r reads at [-i + 9999] in another "
		"iteration");
	/* the reader needs the write: it reads a copy made before */
	p = pen_new(a, &x, &y);
	w = line(&p, "w", x, false, y, false, 0);
	line(&p, "r", x, true, w, false, -1);
	plan = fuse_partition(a, p.s, NULL, NULL);
	fuse_verify(plan);
	assert_string_equal(
		structure(a, plan), "10000{keep w} | 10000{r} ! reversed reversed");
	assert_string_equal(p.s->eqn.at[p.s->eqn.n - 1].why,
		"it is read after it is overwritten");
	assert_int_equal(p.s->tensor.at[w].storage, 0);
	/* the write reads elsewhere what it destroys: the same */
	p = pen_new(a, &x, &y);
	line(&p, "w", x, true, y, false, 0);
	plan = fuse_partition(a, p.s, NULL, NULL);
	fuse_verify(plan);
	assert_string_equal(
		structure(a, plan), "10000{keep} | 10000{w} ! reversed");
	/* an old version that is returned is copied */
	p = pen_new(a, &x, &y);
	w = line(&p, "w", x, false, y, false, 0);
	line(&p, "v", w, false, y, false, 0);
	expect(&p, "10000{w keep v}");
	assert_int_not_equal(p.s->output.at[0], w);
}

static void test_writes(void **state)
{
	(void)state;
	assert_int_equal(unit_run(run_writes, NULL, 0, NULL), TN_OK);
}

/* ---- a tree that is wrong is found ---- */

static void run_broken(arena *a, void *arg)
{
	const int *how = arg;
	fuse_plan *p = partition(a, softmax, NULL);
	fuse_kernel *k = p->kernel.at[0];
	fuse_node *row = k->root[0], *n;

	switch (*how) {
	case 0: /* the sum before the maximum is complete */
		n = row->child[1];
		row->child[1] = row->child[3];
		row->child[3] = n;
		break;
	case 1: /* a statement less */
		row->n_child--;
		break;
	case 2: /* the accumulator cleared in the loop */
		n = row->child[0];
		row->child[0] = row->child[1];
		row->child[1] = n;
		break;
	case 3: /* a buffer of another size */
		k->buf[1].elems = 64;
		break;
	}
	fuse_verify(p);
}

static void test_verify(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++)
		assert_int_equal(
			unit_run(run_broken, &how, 0, NULL), TN_EINTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_verify),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
