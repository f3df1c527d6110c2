/*
 * plan: equal layers are one function, dead buffers give their bytes back,
 * and the verifier sees it when something is moved.
 */
#include "unit.h"

#include "engine/engine.h"
#include "interp/interp.h"
#include "target/cuda/cuda.h"

#include <stdio.h>

enum { N_LAYERS = 12 };

static compilation *compile_layers(arena *a, bool apart)
{
	compile_options o = compile_options_default(machine_find("c/sse"));
	str s = str_new(a);
	compilation *c;

	str_add(&s, "program {\n  x0: f32[32,64]\n");
	for (int i = 0; i < N_LAYERS; i++)
		str_printf(&s,
			"  t%d = softmax(x%d, axis=1)\n"
			"  x%d = transpose(t%d, perm=[1,0])\n"
			"  y%d = exp(x%d)\n"
			"  x%d = transpose(y%d, perm=[1,0])\n",
			i, 10 * i, 10 * i + 1, i, i, 10 * i + 1,
			10 * (i + 1), i);
	str_printf(&s, "  return x%d\n}\n", 10 * N_LAYERS);
	o.no_fusion = true;
	o.plan.apart = apart;
	c = compile_new(a, ir_program_parse(a, s.at, s.n, "layers", interp_loop), &o);
	compile_to(c, TN_LEVEL_PLAN);
	return c;
}

static void layers(arena *a, void *arg)
{
	const plan *p = compile_layers(a, false)->plan;
	const plan *q = compile_layers(a, true)->plan;
	int32_t most = 0;

	(void)arg;
	assert_true(p->launch.n >= 3 * N_LAYERS);
	/* one set of functions for all layers; the first and the last differ */
	assert_true(p->kernel.n <= 2 * p->launch.n / N_LAYERS);
	for (int32_t k = 0; k < p->kernel.n; k++)
		most = p->kernel.at[k].n_uses > most ? p->kernel.at[k].n_uses
						     : most;
	assert_int_equal(most, N_LAYERS);
	/* a few buffers of 8 KB instead of one for every tensor */
	assert_true(p->tensor_bytes <= 4 * 32 * 64 * sizeof(float));
	assert_true(q->tensor_bytes >= q->sum_bytes);
	assert_int_equal(p->sum_bytes, q->sum_bytes);
	assert_true(p->sum_bytes >= N_LAYERS * 2 * 32 * 64 * sizeof(float));
}

/* One text serves arrays of several sizes: chunks are the launch's. */
static void sizes(arena *a, void *arg)
{
	static const char text[] = "program {\n  x: f32[131072]\n"
				   "  y: f32[65536]\n  t = exp(x)\n"
				   "  u = exp(y)\n  return t, u\n}\n";
	compile_options o = compile_options_default(machine_find("c/sse"));
	compilation *c;
	const plan *p;

	(void)arg;
	o.no_fusion = true;
	c = compile_new(
		a, ir_program_parse(a, text, strlen(text), "sizes", interp_loop), &o);
	compile_to(c, TN_LEVEL_PLAN);
	p = c->plan;
	assert_int_equal(p->launch.n, 2);
	assert_int_equal(p->kernel.n, 1);
	assert_int_equal(p->launch.at[0].code->phase[0].n_chunks,
		2 * p->launch.at[1].code->phase[0].n_chunks);
}

/* A program the params of which are the same at each run. */
static plan *steady(arena *a, const char *on, const c_target *target, const char *text)
{
	compile_options o = compile_options_default(machine_find(on));
	ir_program *p = ir_program_parse(a, text, strlen(text), "steady", interp_loop);
	compilation *c;

	for (int32_t i = 0; i < p->input.n; i++)
		p->value.at[p->input.at[i]].steady =
			p->value.at[p->input.at[i]].is_param;
	o.target = target;
	c = compile_new(a, p, &o);
	compile_to(c, TN_LEVEL_PLAN);
	return c->plan;
}

/* Two convolutions, each with an image that is copied at each run, and with weights of
 * which a copy is kept. */
static plan *images(arena *a, const char *on, const c_target *target)
{
	return steady(a, on, target,
		"program {\n  x: f32[1,64,28,28]\n"
		"  param v: f32[64,64,3,3]\n  param w: f32[32,64,3,3]\n"
		"  y = conv(x, v, lo=[1,1], hi=[1,1])\n  r = relu(y)\n"
		"  z = conv(r, w, lo=[1,1], hi=[1,1])\n  return z\n}\n");
}

/* Products of one kernel keep panels, each of its own weights; a matrix whose rows are
 * no longer than a panel is one already. */
static void kept_products(arena *a, void *arg)
{
	const plan *p = steady(a, "c/avx512", &c_gnu,
		"program {\n  x: f32[64,96]\n  param q: f32[96,96]\n"
		"  param k: f32[96,96]\n  param v: f32[96,96]\n  param w: f32[96,32]\n"
		"  a = matmul(x, q)\n  b = matmul(x, k)\n  c = matmul(x, v)\n"
		"  d = matmul(x, w)\n  return a, b, c, d\n}\n");
	size_t weights = 3 * sizeof(float) * 96 * 96;
	int32_t most = 0;

	(void)arg;
	assert_true(p->kept_bytes >= weights && p->kept_bytes < weights + 4096);
	for (int32_t i = 0; i < p->launch.n; i++)
		if (p->launch.at[i].code->n_phases > most)
			most = p->launch.at[i].code->n_phases;
	assert_true(most > 2);
}

/* One row keeps panels of weights whose columns adjoin; others are read in place. */
static void kept_row(arena *a, void *arg)
{
	const plan *p = steady(a, "c/avx512", &c_gnu,
		"program {\n  x: f32[1,256]\n  param v: f32[256,512]\n"
		"  param w: f32[128,512]\n  h = matmul(x, v)\n  g = cumsum(h, axis=1)\n"
		"  t = transpose(w, perm=[1,0])\n  y = matmul(g, t)\n  return y\n}\n");
	size_t weights = sizeof(float) * 256 * 512;

	(void)arg;
	assert_true(p->kept_bytes >= weights && p->kept_bytes < weights + 4096);
}

/* Only the copies of weights are kept; the images have the same memory. */
static void kept(arena *a, void *arg)
{
	const plan *p = images(a, "c/avx512", &c_gnu);
	size_t image = sizeof(float) * 64 * 30 * 30;
	size_t weights = sizeof(float) * (64 + 32) * 64 * 3 * 3;

	(void)arg;
	assert_int_equal(p->launch.n, 2);
	assert_true(p->scratch_bytes >= image && p->scratch_bytes < 2 * image);
	assert_true(p->kept_bytes >= weights && p->kept_bytes < weights + image);
}

/* Kernels of CUDA C find all of their scratch behind one address. */
static void whole(arena *a, void *arg)
{
	const plan *p = images(a, "cuda/sm_90", &cuda_nvrtc);

	(void)arg;
	assert_int_equal(p->launch.n, 2);
	for (int32_t i = 0; i < p->launch.n; i++) {
		assert_false(p->launch.at[i].code->in_cells);
		assert_null(p->launch.at[i].cell);
	}
}

/* What a launch keeps is where another one keeps something. */
static void kept_twice(arena *a, void *arg)
{
	plan *p = images(a, "c/avx512", &c_gnu);

	(void)arg;
	p->launch.at[1].cell = p->launch.at[0].cell;
	plan_verify(p);
}

/* What a launch keeps is where others have scratch. */
static void not_kept(arena *a, void *arg)
{
	plan *p = images(a, "c/avx512", &c_gnu);
	size_t at[2];

	(void)arg;
	assert_int_equal(p->launch.at[0].code->n_cells, 2);
	for (int32_t i = 0; i < 2; i++) /* what is behind the rest begins it */
		at[i] = p->launch.at[0].cell[i] < p->scratch_bytes
				? p->launch.at[0].cell[i]
				: 0;
	p->launch.at[0].cell = at;
	plan_verify(p);
}

/* Two tensors of the slab that live at the same time, at the same place. */
static void overlapping(arena *a, void *arg)
{
	plan *p = compile_layers(a, true)->plan;
	int32_t first = -1;

	(void)arg;
	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		if (p->location[t].where != PLAN_SLAB)
			continue;
		if (first >= 0 && p->location[t].first <= p->location[first].last &&
			p->location[first].first <= p->location[t].last) {
			p->location[t].offset = p->location[first].offset;
			plan_verify(p);
			return;
		}
		first = t;
	}
}

static void out_of_order(arena *a, void *arg)
{
	plan *p = compile_layers(a, false)->plan;
	plan_launch l = p->launch.at[0];

	(void)arg;
	p->launch.at[0] = p->launch.at[1];
	p->launch.at[1] = l;
	plan_verify(p);
}

static void lost_step(arena *a, void *arg)
{
	plan *p = compile_layers(a, false)->plan;

	(void)arg;
	p->step.n--;
	plan_verify(p);
}

static void shares(void **state)
{
	(void)state;
	assert_int_equal(unit_run(layers, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(sizes, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(kept, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(kept_products, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(kept_row, NULL, 0, NULL), TN_OK);
	assert_int_equal(unit_run(whole, NULL, 0, NULL), TN_OK);
}

static void verifies(void **state)
{
	void (*const broken[])(arena *a, void *arg) = {
		overlapping, out_of_order, lost_step, kept_twice, not_kept};

	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		tn_diag d;

		assert_int_equal(
			unit_run(broken[i], NULL, 0, &d), TN_EINTERNAL);
		assert_string_equal(d.rule, "plan.verify");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares),
		cmocka_unit_test(verifies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
