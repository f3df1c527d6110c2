/*
 * test_bounds.c: rows of the user whose places lie outside of their tensors.
 *
 * Each is refused at its call, with the row, the index, its range and the
 * extent; or it is inside, and gives what the interpreter gives. The arrays
 * end at pages that nobody may touch, and begin behind NaN.
 */
#include "unit.h"

#include "base/random.h"
#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 5, COLUMNS = 4, LENGTH = 7, N_X = ROWS * COLUMNS };

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

/* ---- what each fault says ---- */

static const struct {
	const char *name, *row, *rule, *text;
} refused[] = {
	{"far", "far(x[i]) -> o { o[j] = x[j + 1000000000] for j < 2 }",
		"far.x", "index 0 of x, j + 1000000000, may be 1000000000 .. "
		"1000000001, but its extent is 4"},
	{"next", "next(x[i]) -> o { o[i] = x[i + 1] }", "next.x",
		"i + 1, may be 1 .. 4, but its extent is 4"},
	{"before", "before(x[i]) -> o { o[i] = x[i - 3] }", "before.x",
		"i - 3, may be -3 .. 0, but its extent is 4"},
	{"mixed", "mixed(x[i]:float) -> o { o[i] = x[i] + exp(x[2*i]) }",
		"mixed.x", "2*i, may be 0 .. 6, but its extent is 4"},
	{"guarded", "guarded(x[i]) -> o { o[i] = x[i + 2] where i < 3 "
		"else x[0] }", "guarded.x", "may be 2 .. 4"},
	{"summed", "summed(x[i]:float) -> o { o[] += x[i + k] for k < 2 }",
		"summed.x", "its extent is 4"},
	{"wide", "wide(x[i]) -> o { o[i] = "
		"x[(i * 4611686018427387904) / 4611686018427387904] }",
		"wide.overflow", "beyond 2^62"},
	{"wrap", "wrap(x[i]) -> o { o[i] = "
		"x[(i * 2305843009213693952 + 7) / 2305843009213693959] }",
		"wrap.overflow", "beyond 2^62"},
	{"least", "least(x[i]:float) -> o { o[i] = x[i] + "
		"x[(-9223372036854775807 - 1) * i] }",
		"overflow", ""},
	{"many", "many(x[i]) -> o { o[j] = x[0] for j < "
		"4611686018427387904 }", "many.size", "2^48"},
	{"points", "points(x[i]:float) -> o { o[] += x[j % 4] for j < "
		"4611686018427387904 }", "", "2^60"},
	{"left", "left(x[i]:float) -> o { o[i] = x[i]; o[i + 1] += x[i] }",
		"left.o", "i + 1, may be 1 .. 4, but its extent is 4"},
	{"below", "below(x[i]:float) -> o { o[i - 5] += x[i] }", "below.o",
		"-5 .. -2"},
	{"scan", "scan(x[i]:float) -> o { o[i] = x[i] + o[i - 1] }", "scan.o",
		"i - 1, may be -1 .. 2, but its extent is 4"},
};

/* As a view and as a value, compiled and interpreted; then all is well again. */
static void refusals(void **state)
{
	static const float data[] = {1, 2, 3, 4};
	const int64_t n = 4;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof refused / sizeof refused[0]; i++) {
		tn_context *c = context(i % 2 != 0);
		tn_tensor *x = tn_tensor_new(c, TN_F32, 1, &n, data), *y;
		const tn_diag *d = tn_context_diag(c);
		float got[4] = {0};

		y = x;
		if (tn_op_define(c, refused[i / 2].row) == TN_OK)
			assert_int_equal(tn_call(c, refused[i / 2].name, 1, &x,
				0, NULL, 1, &y), TN_EINVAL);
		d = tn_context_diag(c);
		if (strstr(d->rule, refused[i / 2].rule) == NULL ||
			strstr(d->text, refused[i / 2].text) == NULL ||
			d->text[0] == '\0')
			fail_msg("%s: [%s] %s", refused[i / 2].name, d->rule,
				d->text);
		tn_context_clear(c);
		assert_int_equal(tn_read(tn_add(x, x), got, sizeof got),
			TN_OK);
		assert_true(got[3] == 8);
		tn_context_free(c);
	}
}

/* The same rows in a program: refused where it is read. */
static void programs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		tn_context *c = context(false);
		tn_program *p = NULL;
		char text[400];

		snprintf(text, sizeof text,
			"op %s\nprogram {\n  x: f32[4]\n  y = %s(x)\n"
			"  return y\n}\n",
			refused[i].row, refused[i].name);
		assert_int_equal(tn_program_parse(&p, c, text, strlen(text),
			"bounds.tn"), TN_EINVAL);
		assert_null(p);
		assert_non_null(strstr(
			tn_context_diag(c)->text, refused[i].text));
		assert_true(tn_context_diag(c)->line > 0);
		tn_context_free(c);
	}
}

/* A grad block of its own whose place is outside; and what is derived. */
static void adjoints(void **state)
{
	static const float data[] = {1, 2, 3, 4};
	tn_context *c = context(false);
	const int64_t n = 4;
	tn_tensor *x = tn_parameter(c, "x", TN_F32, 1, &n, data), *y = NULL;
	float got[4];

	(void)state;
	tn_op_define(c, "own(x[i]:float) -> o { o[i] = x[i]"
			" grad { gx[i] += go[i + 1] } }");
	tn_op_define(c, "shift(x[i]:float) -> o { o[i] = x[i + 1] else 0 }");
	assert_int_equal(tn_call(c, "own", 1, &x, 0, NULL, 1, &y), TN_OK);
	assert_true(tn_backward(y, x) < 0 ||
		tn_read(tn_gradient(x), got, sizeof got) < 0);
	assert_non_null(strstr(tn_context_diag(c)->text,
		"index 0 of go, i + 1, may be 1 .. 4"));
	tn_context_clear(c);
	tn_zero_grad(x);
	assert_int_equal(tn_call(c, "shift", 1, &x, 0, NULL, 1, &y), TN_OK);
	assert_int_equal(tn_backward(y, x), TN_OK);
	assert_int_equal(tn_read(tn_gradient(x), got, sizeof got), TN_OK);
	assert_true(got[0] == 0 && got[1] == 1 && got[2] == 2 && got[3] == 3);
	tn_context_free(c);
}

/* ---- rows drawn at random ---- */

typedef struct drawer {
	uint64_t state;
	char text[800];
	size_t n;
} drawer;

static int64_t below(drawer *d, int64_t n)
{
	d->state++;
	return (int64_t)(base_mix64(d->state * UINT64_C(0x9e3779b97f4a7c15)) %
		(uint64_t)n);
}

static void __attribute__((format(printf, 2, 3))) put(
	drawer *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->n += (size_t)vsnprintf(
		d->text + d->n, sizeof d->text - d->n, fmt, ap);
	va_end(ap);
	assert_true(d->n < sizeof d->text);
}

/* an index of an axis of extent n; the letter l is below m */
static void put_index(drawer *d, const char *l, int64_t m, int64_t n)
{
	int64_t c = below(d, 4) == 0 ? below(d, 5) - 2 : 0;

	switch (below(d, 10)) {
	case 0:
		put(d, "%lld", (long long)(below(d, n + 1)));
		break;
	case 1:
		put(d, "%lld - %s", (long long)(m - 1 + c), l);
		break;
	case 2:
		put(d, "2 * %s - %lld", l, (long long)below(d, m));
		break;
	case 3:
		put(d, "(%s + %lld) / %lld", l, (long long)c,
			(long long)(1 + below(d, 3)));
		break;
	case 4:
		put(d, "(3 * %s + %lld) %% %lld", l, (long long)c,
			(long long)(1 + below(d, n + 1)));
		break;
	case 5:
		put(d, "clamp(%s + %lld, %lld)", l, (long long)c,
			(long long)(n + (below(d, 6) == 0)));
		break;
	case 6:
		put(d, "(%s * %lld + %lld) / %lld", l,
			(long long)1 << (40 + below(d, 23)), (long long)c,
			(long long)1 << (40 + below(d, 23)));
		break;
	default:
		put(d, "%s + %lld", l, (long long)c);
		break;
	}
}

static void put_read(drawer *d)
{
	const char *l = below(d, 2) == 0 ? "i" : "k";
	int64_t m = l[0] == 'i' ? ROWS : COLUMNS;

	if (below(d, 3) == 0) {
		put(d, "v[");
		put_index(d, l, m, LENGTH);
	} else {
		put(d, "x[");
		put_index(d, "i", ROWS, ROWS);
		put(d, ", ");
		put_index(d, "k", COLUMNS, COLUMNS);
	}
	put(d, "]");
}

static void put_term(drawer *d)
{
	switch (below(d, 4)) {
	case 0:
		put(d, "(");
		put_read(d);
		put(d, " else %lld)", (long long)below(d, 3));
		break;
	case 1:
		put(d, "(");
		put_read(d);
		put(d, " where %s %s %lld else 3)", below(d, 2) ? "i" : "k",
			below(d, 2) ? "<" : ">", (long long)below(d, 5));
		break;
	default:
		put_read(d);
	}
}

static void draw_row(drawer *d, int32_t number)
{
	static const char *const left[] = {"o[i, k] =", "o[i, k] =",
		"o[k, i] =", "o[i] +=", "o[k] max="};

	d->n = 0;
	put(d, "r%d(x[i, k]:float, v[n]:float) -> o { %s ", (int)number,
		left[below(d, 5)]);
	put_term(d);
	for (int64_t more = below(d, 2); more > 0; more--) {
		put(d, " + ");
		put_term(d);
	}
	put(d, " }");
}

/* n numbers behind NaN, in front of a page that cannot be touched */
typedef struct fence {
	char *map;
	size_t bytes;
	float *at;
} fence;

static fence fence_new(int32_t n, float first)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	fence f = {.bytes = 2 * page};

	f.map = mmap(NULL, f.bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(f.map != MAP_FAILED);
	memset(f.map, 0xff, page); /* NaN */
	assert_int_equal(mprotect(f.map + page, page, PROT_NONE), 0);
	f.at = (float *)(void *)(f.map + page) - n;
	for (int32_t i = 0; i < n; i++)
		f.at[i] = first + (float)i;
	return f;
}

static void fence_free(const fence *f)
{
	munmap(f->map, f->bytes);
}

struct oracle {
	const char *row;
	const float *x, *v;
	float out[N_X];
	int64_t n_out;
};

static void interpret(arena *a, void *arg)
{
	struct oracle *o = arg;
	ir_table *t = ir_table_new(a);
	const ir_row *r =
		ir_table_define(t, o->row, strlen(o->row), (loc){0});
	const ir_type in[] = {{TN_F32, 2, {ROWS, COLUMNS}},
		{TN_F32, 1, {LENGTH}}};
	ir_inst *p = ir_instantiate(a, t, r, 2, in, NULL, 0, NULL, (loc){0});
	void **data = arena_array(a, void *, p->n_tensors);
	const ir_type *y = &p->tensor[p->result[0]].type;

	data[0] = arena_copy(a, o->x, N_X * sizeof(float));
	data[1] = arena_copy(a, o->v, LENGTH * sizeof(float));
	data[p->result[0]] = o->out;
	o->n_out = shape_numel(y->shape, y->rank);
	assert_true(o->n_out <= N_X);
	interp_inst(arena_env(a), p, data);
}

static void never(tn_dl_managed *self)
{
	(void)self;
}

static tn_tensor *import(tn_context *c, tn_dl_managed *m, float *at,
	int64_t *shape, int32_t n_axes)
{
	*m = (tn_dl_managed){.tensor = {.data = at,
					    .device = {1, 0},
					    .n_axes = n_axes,
					    .dtype = {2, 32, 1},
					    .shape = shape},
		.deleter = never};
	return tn_dlpack_import(c, m);
}

enum { BATCH = 32, MOST = 400 };

struct tried {
	tn_tensor *y;
	struct oracle o;
	char row[800];
};

static void check(struct tried *t, int32_t n)
{
	tn_tensor *y[BATCH] = {NULL};

	for (int32_t i = 0; i < n; i++)
		y[i] = t[i].y;
	assert_int_equal(tn_eval(y, n), TN_OK); /* one program for all */
	for (int32_t i = 0; i < n; i++) {
		size_t bytes = (size_t)t[i].o.n_out * sizeof(float);
		float got[N_X];

		assert_int_equal(tn_read(y[i], got, bytes), TN_OK);
		if (memcmp(got, t[i].o.out, bytes) != 0)
			fail_msg("%s: another value than interpreted",
				t[i].row);
		tn_drop(y[i]);
	}
}

/* Refused and outside are the same; but for what only may go beyond 2^62. */
static void random_rows(void **state)
{
	const char *seed = getenv("TN_SEED"), *count = getenv("TN_COUNT");
	int32_t most = count != NULL ? atoi(count) : MOST;
	drawer d = {.state = seed != NULL ? strtoull(seed, NULL, 10) : 1};
	tn_context *c = context(false);
	fence fx = fence_new(N_X, 1), fv = fence_new(LENGTH, 100);
	int64_t sx[] = {ROWS, COLUMNS}, sv[] = {LENGTH};
	tn_dl_managed mx, mv;
	tn_tensor *in[2];
	struct tried *t = calloc(BATCH, sizeof *t);
	int32_t n = 0, n_refused = 0, n_run = 0;

	(void)state;
	assert_non_null(t);
	d.state <<= 32;
	in[0] = import(c, &mx, fx.at, sx, 2);
	in[1] = import(c, &mv, fv.at, sv, 1);
	assert_int_equal(tn_context_status(c), TN_OK);
	for (int32_t i = 0; i < most; i++) {
		struct tried *k = &t[n];
		tn_status is, want;
		tn_diag why;
		char name[20];

		draw_row(&d, i);
		memcpy(k->row, d.text, d.n + 1);
		k->o = (struct oracle){.row = k->row, .x = fx.at, .v = fv.at};
		want = unit_run(interpret, &k->o, 0, &why);
		snprintf(name, sizeof name, "r%d", (int)i);
		assert_int_equal(tn_op_define(c, k->row), TN_OK);
		is = tn_call(c, name, 2, in, 0, NULL, 1, &k->y);
		if (is == TN_OK && want != TN_OK)
			fail_msg("%s: accepted, but %s", k->row, why.text);
		if (is < 0) {
			const tn_diag *e = tn_context_diag(c);

			if (want == TN_OK &&
				strstr(e->rule, ".overflow") == NULL)
				fail_msg("%s: [%s] %s", k->row, e->rule,
					e->text);
			assert_true(e->text[0] != '\0');
			tn_context_clear(c);
			n_refused++;
			continue;
		}
		n_run++;
		if (++n == BATCH) {
			check(t, n);
			n = 0;
		}
	}
	if (n > 0)
		check(t, n);
	assert_true(n_refused > most / 10 && n_run > most / 10);
	tn_context_free(c);
	fence_free(&fx);
	fence_free(&fv);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(programs),
		cmocka_unit_test(adjoints),
		cmocka_unit_test(random_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
