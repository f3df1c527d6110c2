/*
 * The work of the partition, counted: it grows as the number of operations does,
 * layers that repeat cost nothing new, and reasons are found when they are read.
 */
#include "unit.h"

#include "engine/engine.h"
#include "interp/interp.h"

static const char begin[] = "program {\n  v0: f32[64,64]\n"
	"  v1: f32[64,1]\n  v2: f32[1,64]\n";

/* ---- programs ---- */

/* One layer is ten operations; five different ones are repeated. */
static void put_layer(str *s, int32_t i)
{
	static const char *const act[] = {
		"relu", "sigmoid", "abs", "sin", "softplus"};
	static const char *const reduce[] = {"sum", "max", "mean", "min", "l1"};

	str_printf(s, "  a%d = mul(t%d, v2)\n  b%d = add(a%d, v0)\n"
		"  c%d = %s(b%d)\n"
		"  d%d = reduce_%s(c%d, axes=[1], keep=true)\n"
		"  e%d = sub(c%d, d%d)\n  f%d = tanh(e%d)\n"
		"  g%d = softmax(f%d, axis=1)\n"
		"  h%d = transpose(g%d, perm=[1,0])\n"
		"  i%d = add(h%d, t%d)\n  t%d = add(i%d, v0)\n",
		i, i, i, i, i, act[i % 5], i, i, reduce[i % 5], i, i, i, i, i,
		i, i, i, i, i, i, i, i, i + 1, i);
}

static const char *layers(arena *a, int32_t n)
{
	str s = str_new(a);

	str_add(&s, begin);
	str_add(&s, "  t0: f32[64,64]\n");
	for (int32_t i = 0; i < n / 10; i++)
		put_layer(&s, i);
	str_printf(&s, "  return t%d\n}\n", n / 10);
	return s.at;
}

typedef struct drawing {
	uint64_t state;
	str s;
	int32_t n, *rows, *columns; /* by value */
} drawing;

static int32_t draw(drawing *d, int32_t below)
{
	d->state = d->state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (int32_t)(d->state >> 33) % below;
}

/* One of the last 24 values, of these extents; 0: of any. */
static int32_t draw_value(drawing *d, int32_t rows, int32_t columns)
{
	int32_t first = d->n > 24 ? d->n - 24 : 0;

	for (int32_t i = 0; i < 100; i++) {
		int32_t v = first + draw(d, d->n - first);

		if ((rows == 0 || d->rows[v] == rows) &&
			(columns == 0 || d->columns[v] == columns))
			return v;
	}
	return 0;
}

static void draw_call(drawing *d)
{
	static const char *const one[] = {
		"relu", "sigmoid", "tanh", "exp", "abs", "neg"};
	static const char *const two[] = {"add", "sub", "mul", "max", "min"};
	static const char *const reduce[] = {"sum", "max", "mean", "min"};
	int32_t k = draw(d, 100), v = d->n, x = draw_value(d, 0, 0), y;

	d->rows[v] = d->rows[x];
	d->columns[v] = d->columns[x];
	if (k < 30) {
		str_printf(&d->s, "  v%d = %s(v%d)\n", v, one[k % 6], x);
	} else if (k < 72) {
		y = draw_value(d, 0, 0);
		if (d->rows[y] > 1)
			d->rows[v] = 64;
		if (d->columns[y] > 1)
			d->columns[v] = 64;
		str_printf(&d->s, "  v%d = %s(v%d, v%d)\n", v, two[k % 5], x, y);
	} else if (k < 82) {
		*(k % 2 == 0 ? &d->rows[v] : &d->columns[v]) = 1;
		str_printf(&d->s, "  v%d = reduce_%s(v%d, axes=[%d], keep=true)\n",
			v, reduce[k % 4], x, k % 2);
	} else if (k < 89) {
		d->rows[v] = d->columns[x];
		d->columns[v] = d->rows[x];
		str_printf(&d->s, "  v%d = transpose(v%d, perm=[1,0])\n", v, x);
	} else if (k < 95) {
		str_printf(&d->s, "  v%d = softmax(v%d, axis=%d)\n", v, x, k % 2);
	} else {
		y = draw_value(d, d->columns[x], 0);
		if (d->rows[y] != d->columns[x])
			x = y = 0;
		d->rows[v] = d->rows[x];
		d->columns[v] = d->columns[y];
		str_printf(&d->s, "  v%d = matmul(v%d, v%d)\n", v, x, y);
	}
	d->n++;
}

static const char *drawn(arena *a, int32_t n)
{
	drawing d = {.state = 1, .s = str_new(a), .n = 3};

	d.rows = arena_array(a, int32_t, n + 3);
	d.columns = arena_array(a, int32_t, n + 3);
	d.rows[0] = d.rows[1] = d.columns[0] = d.columns[2] = 64;
	d.rows[2] = d.columns[1] = 1;
	str_add(&d.s, begin);
	while (d.n < n + 3)
		draw_call(&d);
	str_add(&d.s, "  return ");
	for (int32_t i = d.n - 24; i < d.n; i++)
		str_printf(&d.s, "%sv%d", i == d.n - 24 ? "" : ", ", i);
	str_add(&d.s, "\n}\n");
	return d.s.at;
}

/* ---- counts ---- */

struct compiling {
	const char *(*text)(arena *a, int32_t n);
	int32_t n;
	fuse_work work; /* out */
};

static void run(arena *a, void *arg)
{
	struct compiling *q = arg;
	const char *text = q->text(a, q->n);
	compile_options o = compile_options_default(machine_at(0));
	compilation *c;

	o.verify = false;
	c = compile_new(a, ir_program_parse(a, text, strlen(text), "t", interp_loop), &o);
	compile_to(c, TN_LEVEL_GROUPS);
	q->work = c->groups->work;
	assert_int_equal(c->groups->reason.n, 0);
	if (q->n > 100)
		return;
	fuse_explain(c->groups);
	assert_true(c->groups->reason.n > 0);
}

static fuse_work count(const char *(*text)(arena *a, int32_t n), int32_t n)
{
	struct compiling q = {.text = text, .n = n};

	assert_int_equal(unit_run(run, &q, 0, NULL), TN_OK);
	return q.work;
}

static void repeats_nothing(void **state)
{
	fuse_work few = count(layers, 100), many = count(layers, 1000);

	(void)state;
	assert_true(few.n_priced > 0 && few.n_judged > 0);
	/* but for the layers around the first and the last equation */
	assert_in_range(many.n_priced, few.n_priced, few.n_priced * 11 / 10);
	assert_in_range(many.n_judged, few.n_judged, few.n_judged * 11 / 10);
	/* each kernel that is made asks for its own loops */
	assert_in_range(many.n_shared, few.n_shared, 10 * few.n_shared);
}

static void grows_as_the_program(void **state)
{
	fuse_work few = count(drawn, 100), many = count(drawn, 1000);

	(void)state;
	/* of each operation; what is not linear would be ten times as much */
	assert_in_range(many.n_priced, 1, 15 * few.n_priced);
	assert_in_range(many.n_judged, 1, 15 * few.n_judged);
	assert_in_range(many.n_shared, 1, 15 * few.n_shared);
	assert_in_range(many.n_priced, 1, 1500);
	assert_in_range(many.n_judged, 1, 5000);
	assert_in_range(many.n_shared, 1, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeats_nothing),
		cmocka_unit_test(grows_as_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
