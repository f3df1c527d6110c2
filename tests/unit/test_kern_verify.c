/*
 * kern/verify.c: kernels that are right, each by another proof, and one edit of
 * each that makes it wrong; and programs whose kernels are right.
 */
#include "unit.h"

#include "kern_edits.h"
#include "kern_edits_warpgroup.h"

#include "engine/engine.h"
#include "kern/kern.h"
#include "interp/interp.h"

struct read {
	size_t number;
	bool edited;
};

enum {
	N_CASES = sizeof cases / sizeof *cases,
	N_LANE_CASES = sizeof lane_cases / sizeof *lane_cases,
	N_WARPGROUP_CASES = sizeof warpgroup_cases / sizeof *warpgroup_cases,
	N_EDITS = N_CASES + N_LANE_CASES + N_WARPGROUP_CASES,
};

static const struct kern_edit *edit_of(size_t number)
{
	if (number < N_CASES)
		return &cases[number];
	number -= N_CASES;
	return number < N_LANE_CASES ? &lane_cases[number]
				     : &warpgroup_cases[number - N_LANE_CASES];
}

static void verify(arena *a, void *arg)
{
	const struct read *r = arg;
	const struct kern_edit *e = edit_of(r->number);
	const char *text = e->text, *at;
	str s = str_new(a);
	str back = str_new(a);
	kern_kernel *k;

	at = strstr(text, e->from);
	assert_non_null(at);
	str_addn(&s, text, (size_t)(at - text));
	str_add(&s, r->edited ? e->to : e->from);
	str_add(&s, at + strlen(e->from));
	k = kern_parse(a, s.at, s.n, "text");
	kern_verify(k);
	kern_print(&back, k, 0);
	assert_string_equal(back.at, s.at);
}

static void accepts(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_EDITS; i++) {
		struct read r = {.number = i};
		tn_diag d = {0};

		if (unit_run(verify, &r, 0, &d) != TN_OK)
			fail_msg("%s: %s: line %d %s\n%s", edit_of(i)->name,
				d.rule, d.line, d.text, d.extra);
	}
}

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_EDITS; i++) {
		struct read r = {.number = i, .edited = true};
		tn_diag d = {0};

		if (unit_run(verify, &r, 0, &d) == TN_OK ||
			strncmp(d.rule, "kern.", 5) != 0 ||
			strcmp(d.rule + 5, edit_of(i)->rule) != 0)
			fail_msg("%s: %s instead of %s: %s", edit_of(i)->to,
				d.rule, edit_of(i)->rule, d.text);
	}
}

/* Programs whose kernels, in small chunks, read what other chunks write, if a
 * load does not ask for the condition under which it is selected. */
static const char *const programs[] = {
	/* a quotient whose form has other factors than it has itself */
	"program {\n"
	"  x: f32[3,8,4,2]\n"
	"  a = pixel_shuffle(x, r=2)\n"
	"  b = grid_sample(a, x)\n"
	"  return b\n"
	"}\n",
	/* an index that some lane reads: how far the lanes reach bounds it */
	"program {\n"
	"  x: i64[3]\n"
	"  ids: i64[8]\n"
	"  y: i64[8]\n"
	"  a = put_along(x, ids, y, axis=0)\n"
	"  b = diag_embed(a, k=2)\n"
	"  return b\n"
	"}\n",
	/* an element that the condition makes a number */
	"program {\n"
	"  x: f32[65,1]\n"
	"  a = round(x)\n"
	"  b = triu(a)\n"
	"  c = attention_online(b, x, x, scale=2)\n"
	"  return a, c\n"
	"}\n",
	"program {\n"
	"  x: bf16[6,5,12,6]\n"
	"  a = pixel_unshuffle(x, r=2)\n"
	"  b = triu(a, k=2)\n"
	"  return a, b\n"
	"}\n",
	/* the row before the first one, in a copy that is not the first */
	"program {\n"
	"  x: f32[4,7]\n"
	"  m: bool[4,7]\n"
	"  l = log_sigmoid(x)\n"
	"  a = diag_embed(x)\n"
	"  b = tile(a, reps=[2,1,1])\n"
	"  c = affine(b, alpha=2, beta=0.125)\n"
	"  d = linear_recurrence(b, c)\n"
	"  f = masked_fill(l, m, value=-0.5)\n"
	"  return d, f\n"
	"}\n",
	/* loops over a scan's variable that change places */
	"program {\n"
	"  x: u8[5,3,4]\n"
	"  i: i64[5]\n"
	"  a = cumsum_reverse_exclusive(x, axis=1)\n"
	"  b = segment_max(a, i, count=4)\n"
	"  c, d = split(a, axis=1, sizes=[1,2])\n"
	"  return b, c\n"
	"}\n",
	/* a triangle of products, with gradients: panels of 17 rows and 70 columns */
	"op p0(q[b, t, d], k[b, u, d], v[b, u, e], go[b, t, e]) -> gq, gk, gv {\n"
	"  s[b, t, u] += q[b, t, d] * k[b, u, d] where u <= t else cast(0, q);\n"
	"  p[b, t, u] = max(s[b, t, u], 0) where u <= t else cast(0, q);\n"
	"  gp[b, t, u] += go[b, t, e] * v[b, u, e] where u <= t else cast(0, q);\n"
	"  r[b, t] += p[b, t, u] * gp[b, t, u];\n"
	"  gs[b, t, u] = p[b, t, u] * (gp[b, t, u] - r[b, t]) where u <= t else cast(0, q);\n"
	"  gq[b, t, d] += gs[b, t, u] * k[b, u, d] where u <= t else cast(0, q);\n"
	"  gk[b, u, d] += gs[b, t, u] * q[b, t, d] where u <= t else cast(0, q);\n"
	"  gv[b, u, e] += p[b, t, u] * go[b, t, e] where u <= t else cast(0, q)\n"
	"}\n"
	"program {\n"
	"  x2: f32[1,2,70]\n"
	"  x3: f32[1,17,70]\n"
	"  x4: f32[1,17,64]\n"
	"  x5: f32[1,2,64]\n"
	"  g1q, g1k, g1v = p0(x2, x3, x4, x5)\n"
	"  v6 = mul(g1k, x3)\n"
	"  return g1q, g1v, v6\n"
	"}\n",
	/* every second element of a row, and those behind its end */
	"program {\n"
	"  x: f32[50,7,4,6]\n"
	"  y: f32[50,7,8,6]\n"
	"  z: f32[50,7,8,2]\n"
	"  a = attention_online(x, y, z, scale=0.5)\n"
	"  b = fold(a, size=[3], lo=[2])\n"
	"  return a, b\n"
	"}\n",
	/* a version of an input that is returned: in memory of its own */
	"program {\n"
	"  x: f32[8,5,9,3]\n"
	"  a, b, c, d, e, f, g, h = unbind(x, axis=0)\n"
	"  v = write(a, b)\n"
	"  return v\n"
	"}\n",
	/* a sliding window, then what is wider, in one loop in lanes */
	"program {\n"
	"  x: f32[9,8]\n"
	"  i: i32[4,3]\n"
	"  u: f32[4,3,8]\n"
	"  a = scatter_mul(x, i, u)\n"
	"  b = diff(a, axis=0)\n"
	"  k: u8[5]\n"
	"  y: f32[9,5]\n"
	"  c = index_set(a, k, y, axis=-1)\n"
	"  return b, c\n"
	"}\n",
};

static void compile(arena *a, void *arg)
{
	static const char *const machines[] = {"c/avx512", "c/avx2", "c/sse"};
	const char *text = *(const char **)arg;

	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
		machine m = *machine_find(machines[i]);
		compile_options o = compile_options_default(&m);
		ir_program *p =
			ir_program_parse(a, text, strlen(text), "case.tn", interp_loop);

		m.schedule.chunk_elems = 4;
		o.verify_kern = true;
		compile_to(compile_new(a, p, &o), TN_LEVEL_KERN);
	}
}

static void accepts_lowered(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		const char *text = programs[i];
		tn_diag d = {0};

		if (unit_run(compile, &text, 0, &d) != TN_OK)
			fail_msg("%s%s: %s", text, d.rule, d.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses),
		cmocka_unit_test(accepts_lowered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
