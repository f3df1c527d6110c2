/*
 * lower*.c, compact.c: the text of lowered systems, left sides of every form
 * against the interpreter, and what is refused.
 */
#include "unit.h"

#include "eval_system.h"

#include "interp/interp.h"

#include <math.h>
#include <stdlib.h>

/* ---- the system, word for word ---- */

struct text {
	const char *program, *equations;
};

static void lowers(arena *a, void *arg)
{
	const struct text *c = arg;
	ir_program *p = ir_program_parse(
		a, c->program, strlen(c->program), "t.tn", interp_loop);
	ir_system *s = ir_lower(a, ix_new(a), p);
	str out = str_new(a);

	ir_system_verify(s);
	for (int32_t i = 0; i < s->eqn.n; i++) {
		ir_eqn_print(&out, s, &s->eqn.at[i]);
		str_add(&out, "\n");
	}
	for (int32_t i = 0; i < s->output.n; i++)
		str_printf(&out, "%s%s", i > 0 ? ", " : "return ",
			s->tensor.at[s->output.at[i]].name);
	assert_string_equal(out.at, c->equations);
}

static const struct text texts[] = {
	/* axes of extent 1 are gone; every letter that is left has a name */
	{"program { x: f32[4,1,8] o = relu(x) return o }",
		"o[i_0:4, i_2:8] = relu(x[8*i_0 + i_2])\nreturn o"},
	{"program { x: f32[2,3] o = reduce_sum(x) return o }",
		"o[] += x[3*i_0 + i_1] for i_0:2, i_1:3\nreturn o"},
	/* f16: wide arithmetic, rounded where a value is stored */
	{"program { x: f16[4] y: f16[4] o = mul(x, y) return o }",
		"o[i_0:4] = cast(cast(x[i_0], f32) * cast(y[i_0], f32), f16)\n"
		"return o"},
	{"program { x: i8[4] o = reduce_sum(x) return o }",
		"o[] += cast(x[i_0], i64) for i_0:4\nreturn o"},
	/* equal equations are one; copies are none; dead ones go */
	{"program { x: f32[4] a = exp(x) b = exp(x) d = log(x) "
	 "o = add(a, b) return o }",
		"a[i_0:4] = exp(x[i_0])\no[i_0:4] = a[i_0] + a[i_0]\nreturn o"},
	{"program { x: f32[4] a = identity(x) o = exp(a) return o, a, x }",
		"o[i_0:4] = exp(x[i_0])\nreturn o, x, x"},
	{"program { x: f32[4] o = reshape(x, shape=[2,2]) return o }",
		"o[i_0:2, i_1:2] = x[2*i_0 + i_1]\nreturn o"},
	/* guards that say nothing are dropped, the rest are ranges */
	{"program { x: f32[4] y: f32[2] o = concat(x, y) return o }",
		"o[t:6] = sel(inside(t, 0, 4), x[t], y[t - 4])\nreturn o"},
	{"program { x: f32[4] y: f32[0] z: f32[2] o = concat(y, x, y, z) "
	 "return o }",
		"o[t:6] = sel(inside(t, 0, 4), x[t], z[t - 4])\nreturn o"},
	{"program { x: f32[4,4] o = tril(x) return o }",
		"o[i:4, j:4] = sel(inside(-i + j, -3, 1), x[4*i + j], 0)\n"
		"return o"},
	{"program { x: f32[4] o = pad(x, lo=[0], hi=[0]) return o }",
		"return x"},
	/* short powers are products */
	{"op f(x[i]:float) -> o { o[i] = pow(x[i], 1) + pow(x[i], 2.0) + pow(x[i], 3) + "
	 "pow(x[i], 0.5) } program { x: f32[4] o = f(x) return o }",
		"o[i:4] = x[i] + x[i] * x[i] + x[i] * x[i] * x[i] + pow(x[i], 0.5)\nreturn o"},
	/* extent 0: no equations for empty tensors, identities */
	{"program { x: f32[0,3] o = exp(x) return o }", "return o"},
	{"program { x: f32[0,3] o = reduce_max(x, axes=[0]) return o }",
		"o[i_0:3] = -inf\nreturn o"},
	{"program { x: u8[0,3] o = reduce_min(x, axes=[0]) return o }",
		"o[i_0:3] = u8(255)\nreturn o"},
	{"program { x: f32[3,0] w: f32[0,2] o = matmul(x, w) return o }",
		"o[i_0:3, i_1:2] = 0\nreturn o"},
	/* tuple monoids, scans, push form */
	{"program { x: f32[2,3] o = argmax(x, axis=1) return o }",
		"(o.m, o)[i_0:2] argmax= (x[3*i_0 + i_1], index(i_1)) for "
		"i_1:3\nreturn o"},
	{"program { x: f32[3,2] o = cumsum(x, axis=0) return o }",
		"o[t:3 up, b_0:2] = x[2*t + b_0] + sel(inside(t - 1, 0, 2), "
		"o[2*t + b_0 - 2], 0)\nreturn o"},
	{"program { x: f32[1,2] o = cumsum(x, axis=0) return o }",
		"o[b_0:2] = x[b_0] + 0\nreturn o"},
	{"program { x: f32[3,2] i: i32[4] u: f32[4,2] "
	 "o = scatter_add(x, i, u) return o }",
		"o{r_0 + 2*i[j_0 in 0..3]}[r_0:2] += u[r_0 + 2*j_0] for j_0:4 "
		"from x[at]\nreturn o"},
	{"program { i: i32[4] o = histogram(i, bins=3) return o }",
		"o{i[j_0 in 0..3]}[] += i64(1) for j_0:4\nreturn o"},
	/* left sides that are no letters: composites are; the rest is solved */
	{"op f(x[i, j]) -> o { o[(j, i)] = x[i, j] } "
	 "program { x: f32[2,3] o = f(x) return o }",
		"o[j:3, i:2] = x[j + 3*i]\nreturn o"},
	{"op f(x[i]) -> o { o[#i - 1 - i] = x[i] } "
	 "program { x: f32[5] o = f(x) return o }",
		"o[j_0:5] = x[-j_0 + 4]\nreturn o"},
	{"op f(x[i]:num) -> o { o[j] = cast(0, x) for j < 9; "
	 "o[2 * i + 1] += x[i] } program { x: f32[4] o = f(x) return o }",
		"o[j_0:9] += sel(inside(j_0%2, 1, 2) and inside(j_0/2, 0, 4), "
		"x[j_0/2], 0)\nreturn o"},
	/* a clamp: few points compare j with all letters, many do not */
	{"op f(x[i]:num) -> o { o[j] = cast(0, x) for j < 8; "
	 "o[clamp(i - 1, 8)] += x[i] } program { x: f32[10] o = f(x) return o }",
		"o[j_0:8] += sel(inside(-j_0 + clamp(i, 1, 8) - 1, 0, 1), "
		"x[i], 0) for i:10\nreturn o"},
	{"op f(x[i]:num) -> o { o[j] = cast(0, x) for j < 9; "
	 "o[clamp(i - 1, 9)] += x[i] } program { x: f32[11] o = f(x) return o }",
		"o{clamp(i, 1, 9) - 1}[] += x[i] for i:11\nreturn o"},
	/* an axis that is compared with data is the data */
	{"op f(x[n, r]:num, i[n]:int) -> o { o[s, r] max= x[n, r] where "
	 "i[n] == s else -inf for s < 9 } "
	 "program { x: f32[10,3] i: i32[10] o = f(x, i) return o }",
		"o.at[n:10] = sel(cast(i[n], i64) >= i64(0) and cast(i[n], i64) "
		"< i64(9), cast(i[n], i64), i64(-1))\n"
		"o{r + 3*clamp(o.at[n in -1..9], 0, 8)}[r:3] max= "
		"sel(inside(o.at[n in -1..9], 0, 9), x[r + 3*n], -inf) for "
		"n:10\nreturn o"},
	{"op f(x[n]:num, i[j]:int) -> o { o[j] += x[n] where n + 2 == i[j] "
	 "else 0 } program { x: f32[9] i: i64[4] o = f(x, i) return o }",
		"o.at[j:4] = sel(i[j] >= i64(2) and i[j] < i64(11), i[j] - "
		"i64(2), i64(-1))\n"
		"o[j:4] += sel(inside(o.at[j in -1..9], 0, 9), "
		"x[clamp(o.at[j in -1..9], 0, 8)], 0)\nreturn o"},
	/* few of them; another number when the condition does not hold; an
	 * index that the dtype does not have */
	{"op f(x[n]:num, i[j]:int) -> o { o[j] += x[n] where n == i[j] "
	 "else 0 } program { x: f32[8] i: i64[4] o = f(x, i) return o }",
		"o[j:4] += sel(index(n) == i[j], x[n], 0) for n:8\nreturn o"},
	{"op f(x[n]:num, i[j]:int) -> o { o[j] += x[n] where n == i[j] "
	 "else 1 } program { x: f32[9] i: i64[4] o = f(x, i) return o }",
		"o[j:4] += sel(index(n) == i[j], x[n], 1) for n:9\nreturn o"},
	{"op f(x[n]:num, i[j]:int) -> o { o[j] += x[n] where n == i[j] "
	 "else 0 } program { x: f32[300] i: u8[4] o = f(x, i) return o }",
		"o[j:4] += sel(cast(index(n), u8) == i[j], x[n], 0) for "
		"n:300\nreturn o"},
	/* rotation and resize */
	{"op f(x[i]:num) -> o { o[j] = cast(0, x) for j < #i; "
	 "o[(i + 5) % #i] += x[i] } program { x: f32[8] o = f(x) return o }",
		"o[j_0:8] += x[j_0 - 8*((j_0 + 3)/8) + 3]\nreturn o"},
	/* a scan axis of a transposed result */
	{"op f(x[i, j]:num) -> o { o[j, i] = x[i, j] + "
	 "(o[j - 1, i] else 0) } program { x: f32[2,3] o = f(x) return o }",
		"o[j:3 up, i:2] = x[j + 3*i] + sel(inside(j - 1, 0, 2), "
		"o[2*j + i - 2], 0)\nreturn o"},
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct text c = texts[i];
		tn_diag d = {0};

		if (unit_run(lowers, &c, 0, &d) != TN_OK)
			fail_msg("%s: %s %s\n%s", c.program, d.rule, d.text,
				d.extra);
	}
	unit_each_alloc_fails(lowers, (void *)(uintptr_t)&texts[4]);
}

/* ---- against the interpreter ---- */

static uint32_t draw(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void *random_data(arena *a, const ir_type *t, uint32_t *seed)
{
	int64_t n = shape_numel(t->shape, t->rank);
	void *data = arena_alloc(a, (size_t)n + 1, dtype_size(t->dtype));

	for (int64_t i = 0; i < n; i++)
		if (dtype_is_float(t->dtype))
			dtype_store_f64(t->dtype, data, i,
				(double)(draw(seed) % 33) / 8 - 2);
		else
			dtype_store_i64(t->dtype, data, i, draw(seed) % 2);
	return data;
}

static void same_data(
	const ir_program *p, int32_t k, const void *got, const void *want)
{
	const ir_value *v = &p->value.at[p->output.at[k]];
	int64_t n = shape_numel(v->type.shape, v->type.rank);

	for (int64_t i = 0; i < n; i++) {
		double g = dtype_load_f64(v->type.dtype, got, i);
		double w = dtype_load_f64(v->type.dtype, want, i);

		if (g != w && !(g != g && w != w) &&
			!(fabs(g - w) <= 1e-5 * (1 + fabs(w))))
			fail_msg("%s[%lld] is %g, not %g", v->name,
				(long long)i, g, w);
	}
}

static void agrees(arena *a, void *arg)
{
	const char *text = arg;
	ir_program *p = ir_program_parse(a, text, strlen(text), "t.tn", interp_loop);
	ir_system *s = ir_lower(a, ix_new(a), p);
	const void **input = arena_array(a, const void *, p->input.n + 1);
	void **output = arena_array(a, void *, p->output.n + 1), **data;
	uint32_t seed = 7;

	for (int32_t i = 0; i < p->input.n; i++)
		input[i] = random_data(
			a, &p->value.at[p->input.at[i]].type, &seed);
	for (int32_t i = 0; i < p->output.n; i++)
		output[i] = random_data(
			a, &p->value.at[p->output.at[i]].type, &seed);
	interp_run(arena_env(a), p, input, output);
	ir_system_verify(s);
	data = eval_system(a, s, input);
	for (int32_t i = 0; i < p->output.n; i++)
		same_data(p, i, data[s->output.at[i]], output[i]);
}

#define ZEROS(n) "o[d] = cast(0, x) for d < " #n "; "
#define F(left, body, types)                                                   \
	"op f(" types ") -> o { " ZEROS(12) "o[" left "] += " body " }\n"

static const char *const agree[] = {
	/* windows, with and without a rest that is solved */
	F("2 * i + k", "x[i] * y[k]", "x[i]:num, y[k]:num")
	"program { x: f32[4] y: f32[3] o = f(x, y) return o }",
	F("2 * i + 3 * k", "x[i] * y[k] * x[i]", "x[i]:num, y[k]:num")
	"program { x: f32[4] y: f32[2] o = f(x, y) return o }",
	F("11 - i - 2 * k", "x[i] * y[k]", "x[i]:num, y[k]:num")
	"program { x: f32[4] y: f32[4] o = f(x, y) return o }",
	F("3 * i - 5", "x[i] else skip", "x[i]:num")
	"program { x: f32[9] o = f(x) return o }",
	F("5 - 3 * i", "x[i] else skip", "x[i]:num")
	"program { x: f32[9] o = f(x) return o }",
	/* the solved window stands in the body, too */
	F("2 * i + k", "x[2 * i + k] * y[k] * z[i] where 2 * i + k < 9 else 1",
		"x[j]:num, y[k]:num, z[i]:num")
	"program { x: f32[12] y: f32[3] z: f32[5] o = f(x, y, z) return o }",
	/* digits of letters */
	F("i / 2", "x[i]", "x[i]:num")
	"program { x: f32[9] o = f(x) return o }",
	F("i % 3", "x[i]", "x[i]:num")
	"program { x: f32[10] o = f(x) return o }",
	F("(i / 2) % 3", "x[i]", "x[i]:num")
	"program { x: f32[24] o = f(x) return o }",
	F("(i % 2) * 6 + i / 2", "x[i]", "x[i]:num")
	"program { x: f32[9] o = f(x) return o }",
	F("(i, j) ", "x[i, j]", "x[i, j]:num")
	"program { x: f32[3,4] o = f(x) return o }",
	F("(j, i)", "x[i, j]", "x[i, j]:num")
	"program { x: f32[3,2] o = f(x) return o }",
	F("i + 4 * j", "x[i, j]", "x[i, j]:num")
	"program { x: f32[2,3] o = f(x) return o }",
	/* rotation, resize, clamp, constants, nothing of a letter */
	F("(i + 5) % 12", "x[i]", "x[i]:num")
	"program { x: f32[12] o = f(x) return o }",
	F("(i + 5) % 7", "x[i]", "x[i]:num")
	"program { x: f32[12] o = f(x) return o }",
	F("2 * i / 3", "x[i]", "x[i]:num")
	"program { x: f32[12] o = f(x) return o }",
	F("i * 5 / 3", "x[i]", "x[i]:num")
	"program { x: f32[7] o = f(x) return o }",
	F("(5 * i + 2) / 2", "x[i] else skip", "x[i]:num")
	"program { x: f32[7] o = f(x) return o }",
	F("(i + 7) / 5", "x[i]", "x[i]:num")
	"program { x: f32[13] o = f(x) return o }",
	"op f(x[i, j]:num) -> o { o[a, b] = cast(0, x) for a < 4, b < 6; "
	"o[2 * i / 3, (j + 4) % 6] += x[i, j] }"
	"program { x: f32[6,6] o = f(x) return o }",
	F("clamp(i - 2, 5)", "x[i]", "x[i]:num")
	"program { x: f32[12] o = f(x) return o }",
	F("clamp(i - 2, 5)", "x[i]", "x[i]:num")
	"program { x: f32[5] o = f(x) return o }",
	/* of two indices, one is solved, or none */
	"op f(x[i, j]:num) -> o { o[a, b] = cast(0, x) for a < 20, b < 9; "
	"o[clamp(i - 2, 20), j + 3] += x[i, j] }"
	"program { x: f32[25,6] o = f(x) return o }",
	"op f(x[i, j]:num) -> o { o[a, b] = cast(0, x) for a < 20, b < 9; "
	"o[2 * clamp(i, 20) - i, clamp(j + i, 9)] += x[i, j] * pos else skip }"
	"program { x: f32[25,6] o = f(x) return o }",
	"op f(x[i, j]:num) -> o { o[a, b] = cast(0, x) for a < 20, b < 9; "
	"o[clamp(i - j, 20), clamp(j - 1, 9)] max= x[i, j] }"
	"program { x: i16[25,13] o = f(x) return o }",
	F("3", "x[i]", "x[i]:num")
	"program { x: f32[12] o = f(x) return o }",
	F("i - i", "x[i]", "x[i]:num")
	"program { x: f32[12] o = f(x) return o }",
	/* an axis that is data: of the result, of the sum, under more
	 * conditions, of an update, twice, from data of any kind */
	"program { x: f32[12,5] i: i64[30] u: f32[30,5] "
	"o = scatter_max(x, i, u) return o }",
	"program { x: i16[12,5] i: i8[6,5] u: i16[6,5,5] "
	"o = scatter_min(x, i, u) return o }",
	"program { x: f32[12] i: u8[30] u: f32[30] "
	"o = scatter_mul(x, i, u) return o }",
	"program { x: f32[30,4] i: i64[30] o = segment_max(x, i, count=13) "
	"return o }",
	"op f(x[n, m]:num, i[j]:int) -> o { o[j] += x[n, m] * n where "
	"x[n, m] > 0 and n - 3 == i[j] and m == i[j] * 2 else 0 } "
	"program { x: f32[12,20] i: i32[9] o = f(x, i) return o }",
	"op f(x[n]:num, i[j]:int) -> o { o[n] = x[n]; o[n] += cast(j, x) where "
	"i[j] + i[0] == n else 0; o[n] max= cast(j, x) where i[j] == n "
	"else -inf } "
	"program { x: f32[12] i: i64[20] o = f(x, i) return o }",
	"op f(x[n]:num, y[j]:num) -> o { o[n] += y[j] where "
	"cast(y[j] * 3, i32) == n else 0 } "
	"program { x: f32[12] y: f32[20] o = f(x, y) return o }",
	"op f(x[n]:num, i[j]:int) -> o, p { (o, p)[j] argmax= (x[n] where "
	"n == i[j] else -inf, n) } "
	"program { x: f32[12] i: i64[20] o, p = f(x, i) return o, p }",
	/* diagonals, and letters that are solved twice */
	"op f(x[i]:num) -> o { o[a, b] = cast(0, x) for a < 5, b < 5; "
	"o[i, i] += x[i] }"
	"program { x: f32[4] o = f(x) return o }",
	"op f(x[i]:num) -> o { o[a, b] = cast(0, x) for a < 5, b < 9; "
	"o[i, 2 * i + 1] += x[i] }"
	"program { x: f32[4] o = f(x) return o }",
	"op f(x[i, j]:num) -> o { o[a, b] = cast(0, x) for a < 6, b < 9; "
	"o[i + j, 8 - i] += x[i, j] }"
	"program { x: f32[4,3] o = f(x) return o }",
	"op f(x[i]:num) -> o { o[a, b] = cast(0, x) for a < 1, b < 4; "
	"o[0, i] max= x[i] }"
	"program { x: f32[4] o = f(x) return o }",
	/* = with a left side that is a bijection */
	"op f(x[i, j]) -> o { o[#j - 1 - j, (i + 0)] = x[i, j] }"
	"program { x: f32[4,3] o = f(x) return o }",
	/* an update of an update; by a maximum; by data with skip */
	"op f(x[i]:num, n[j]:int) -> o { o[i] = x[i]; o[i] += x[i] * x[i]; "
	"o[n[j] * 2 - 1] max= j - 3 else skip }"
	"program { x: i32[4] n: i32[5] o = f(x, n) return o }",
	"op f(x[i, j]:num, n[k]:int) -> o { o[i, j] = x[i, j]; "
	"o[n[k], n[k] + 1] += x[n[k], 0] }"
	"program { x: f32[4,3] n: u8[5] o = f(x, n) return o }",
	/* data in indices under guards, twice, in a clamp */
	"op f(x[i]:num, n[j]:int) -> o { o[j] = x[n[j] - 1] else "
	"x[n[n[j]] + 3] else 0 }"
	"program { x: f32[4] n: i64[5] o = f(x, n) return o }",
	"op f(x[i]:num, n[j]:int) -> o { o[j] = x[clamp(3 * n[j] + j, #i)] }"
	"program { x: f32[4] n: i8[5] o = f(x, n) return o }",
	"op f(x[i]:num, n[j]:int) -> o { o[j] = x[n[j] * 2 + 1] }"
	"program { x: f32[4] n: i8[5] o = f(x, n) return o }",
	/* guards of every comparison, chained */
	"op f(x[i, j]:num) -> o { o[i, j] = x[i, j] where i != j and "
	"0 < i + j <= 4 else x[j, i] where i >= 2 or j == 0 else -1 }"
	"program { x: f32[4,4] o = f(x) return o }",
	/* inside, stop, pos, truth values */
	"op f(x[i]:num) -> o, p, q { o[i] = stop(x[i]) * pos; "
	"p[] += inside(x[i + 2]); q[i] = not(inside(x[i - 1])) or x[i] > 0 }"
	"program { x: f32[5] o, p, q = f(x) return o, p, q }",
	/* a temporary that is updated; a result that is an operand's copy */
	"op f(x[i]:num) -> o, p { t[] += x[i]; t[] += x[i] * 2; p[i] = x[i]; "
	"o[i] = x[i] - t[] }"
	"program { x: f32[5] o, p = f(x) return p, o }",
	/* next versions: the old value may be an output as well */
	"program { x: f32[4,3] g: f32[3] b: f32[3] m: f32[3] v: f32[3] "
	"y, m2, v2 = batch_norm(x, g, b, m, v) "
	"z, m3, v3 = batch_norm(y, g, b, m2, v2) k = exp(m) "
	"return z, m3, v3, m, m2, k }",
	/* data under a floor, with a sign, and with what else is added */
	"op f(x[i, k], n[j]:int) -> o { o[j] = x[n[j] / 2, 1] + "
	"x[3 - n[j] / 3, n[j] % 2] + x[(n[j] / 2 + j) / 2, 0] } "
	"program { x: f32[4,2] n: i32[2] o = f(x, n) return o }",
	/* half precision on the way */
	"program { x: bf16[4,3] y: bf16[3] a = mul(x, y) b = exp(a) "
	"o = reduce_mean(b, axes=[1]) return o, b }",
};

static void test_agrees(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof agree / sizeof agree[0]; i++) {
		tn_diag d = {0};

		if (unit_run(agrees, (void *)(uintptr_t)agree[i], 0, &d) !=
			TN_OK)
			fail_msg("%s: %s %s\n%s", agree[i], d.rule, d.text,
				d.extra);
	}
}

/* ---- refusals ---- */

static void test_refused(void **state)
{
	static const struct {
		const char *text, *rule;
	} cases[] = {
		{"op f(x[i]) -> o { o[i] = x[i + 1] } "
		 "program { x: f32[4] o = f(x) return o }",
			"f.x"},
		{"op f(x[i]) -> o { o[i] = x[i - 1] where i > 1 else x[i + 1] "
		 "where i < 1 else x[i + 3] } "
		 "program { x: f32[4] o = f(x) return o }",
			"f.x"},
		{"op f(x[i]) -> o { o[2 * i] = x[i] } "
		 "program { x: f32[4] o = f(x) return o }",
			"f.o"},
		{"op f(x[i]:num) -> o { o[i] = x[i]; o[i + 1] += x[i] } "
		 "program { x: f32[4] o = f(x) return o }",
			"f.o"},
		{"op f(x[i], y[j]) -> o { o[i + j] = x[i] } "
		 "program { x: f32[4] y: f32[2] o = f(x, y) return o }",
			"f.o"},
		{"op f(x[i], n[j]:int) -> o { o[n[j]] = x[n[j]] } "
		 "program { x: f32[4] n: i32[2] o = f(x, n) return o }",
			"f.o"},
		{"op f(x[i]:num) -> o { o[#i - 1 - i] = x[i] + "
		 "(o[#i - 2 - i] else 0) } "
		 "program { x: f32[4] o = f(x) return o }",
			"f.scan"},
		{"op f(x[i], n[j]:int) -> o { o[j] = x[n[j] + n[0]] } "
		 "program { x: f32[4] n: i32[2] o = f(x, n) return o }",
			"f.x"},
		{"program { x: f32[0] n: i32[2] o = take(x, n) return o }",
			"take.x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tn_diag d = {0};
		tn_status status = unit_run(agrees,
			(void *)(uintptr_t)cases[i].text, 0, &d);

		if (status != TN_EINVAL || strcmp(d.rule, cases[i].rule) != 0)
			fail_msg("%s: %d %s %s", cases[i].text, status, d.rule,
				d.text);
	}
}

/* ---- storages ---- */

static void storages(arena *a, void *arg)
{
	static const char text[] =
		"program { x: f32[4,3] g: f32[3] b: f32[3] m: f32[3] v: f32[3] "
		"y, m2, v2 = batch_norm(x, g, b, m, v) return y, m2, v2 }";
	ir_system *s = ir_lower(a, ix_new(a),
		ir_program_parse(a, text, sizeof text - 1, NULL, interp_loop));
	int32_t m = s->input.at[3], m2 = s->output.at[1];

	(void)arg;
	assert_true(s->tensor.at[m].storage >= 0);
	assert_int_equal(s->tensor.at[m].storage, s->tensor.at[m2].storage);
	assert_int_not_equal(s->tensor.at[m].storage,
		s->tensor.at[s->input.at[4]].storage);
	assert_int_equal(s->tensor.at[s->output.at[0]].storage, -1);
}

static void test_storages(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(storages, NULL, 0, &d) != TN_OK)
		fail_msg("%s %s", d.rule, d.text);
}

/* ---- what is reduced ---- */

struct reduced {
	const char *left, *extents; /* of the axes that are reduced */
};

static void reduces(arena *a, void *arg)
{
	const struct reduced *c = arg;
	str t = str_new(a), out = str_new(a);
	ir_system *s;
	const sys_eqn *e;

	str_printf(&t, "op f(x[i, k]:num) -> o { o[d] = cast(0, x) for d < 99; "
		       "o[%s] += x[i, k] else skip } "
		       "program { x: f32[24,3] o = f(x) return o }",
		c->left);
	s = ir_lower(a, ix_new(a), ir_program_parse(a, t.at, t.n, NULL, interp_loop));
	e = &s->eqn.at[0];
	for (int32_t i = e->n_left; i < e->n_axes; i++)
		str_printf(&out, "%lld ", (long long)e->axis[i].extent);
	assert_string_equal(out.at, c->extents);
}

static void test_reduced(void **state)
{
	static const struct reduced cases[] = {
		{"i", "3 "},
		{"i * 3 + k", ""},
		{"(i, k)", ""},
		{"(k, i)", ""},
		{"2 * i + k", "2 "},	/* the longer letter; k by residues */
		{"3 * i - 2 * k", ""},	/* one k is left for each o */
		{"2 * i + 2 * k", "3 "}, /* no inverse modulo 2 */
		{"i + 5 * k", "3 "},
		{"i / 4", "3 4 "},	/* repeat: the low digit */
		{"i % 4", "3 6 "},	/* tile: the high digit */
		{"(i + 5) % 24", "3 "}, /* roll */
		{"2 * i / 3", "3 2 "},	/* resize */
		{"5 * i / 3", "3 "},
		{"(i + 5) % 7", "24 3 "}, /* no rotation of i: all of it */
		{"7", "24 3 "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct reduced c = cases[i];
		tn_diag d = {0};

		if (unit_run(reduces, &c, 0, &d) != TN_OK)
			fail_msg("%s: %s %s", c.left, d.rule, d.text);
	}
}

/* ---- near-linear ---- */

static void many_calls(arena *a, void *arg)
{
	str t = str_new(a);
	ir_system *s;

	(void)arg;
	str_add(&t, "program { x: f32[64,64] t0 = exp(x) ");
	for (int i = 1; i < 4000; i++)
		str_printf(&t, "t%d = %s ", i,
			i % 4 == 0 ? "softmax(t0)" :
			i % 4 == 1 ? "add(x, x)" :
			i % 4 == 2 ? "transpose(x, perm=[1,0])" :
				     "matmul(x, x)");
	str_add(&t, "return t3999 }");
	s = ir_lower(a, ix_new(a), ir_program_parse(a, t.at, t.n, NULL, interp_loop));
	assert_int_equal(s->eqn.n, 1); /* all but one are dead */
}

static void test_many(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(many_calls, NULL, 0, &d) != TN_OK)
		fail_msg("%s %s", d.rule, d.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_agrees),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_storages),
		cmocka_unit_test(test_reduced),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
