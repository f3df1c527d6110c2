/*
 * test_kernels.c: systems through fuse, loop, emit and the C compiler equal
 * their slow meaning: unfused and fused, plain and scheduled, with the sizes
 * of the schedule made so small that everything is cut; chunks in any order.
 * Printed MapExprs are compared as they stand.
 */
#include "unit.h"
#include "system_parse.h"

#include "run_kernels.h"

#include <math.h>

static const char *const systems[] = {
	/* dtypes, tuples, guards on data, masks */
	"system {\n"
	"  x: f16[6] input 1\n"
	"  ids: i32[6] input 0\n"
	"  v: f16[]\n"
	"  k: i64[]\n"
	"  y: f64[2,3]\n"
	"  z: i8[6]\n"
	"  _ argmax#1: (v, k)[] argmax= (cast(x[i], f32), index(i)) for i:6\n"
	"  _ _#2: y[i:2, j:3] = f64(0.1) * (f64(1) - cast(x[3*i + j], f64))"
	" / f64(-inf)\n"
	"  _ _#3: z[i:6] = sel(inside(ids[i in 0..9] - 2, 0, 3) or "
	"ids[i] == i32(3) and true, i8(-128), cast(k[0], i8))\n"
	"  return y, z, y, x, k\n"
	"}\n",
	/* scans both ways, scatter, digits that do not nest */
	"system {\n"
	"  x: f32[24] input 0\n"
	"  ids: i64[4] input 1\n"
	"  h: f16[24] input 2\n"
	"  c: f32[24]\n"
	"  u: f32[24]\n"
	"  p: f32[24]\n"
	"  q: f16[24]\n"
	"  d: f32[24]\n"
	"  cumsum cumsum#0: c[i:4, t:6 down] = x[6*i + t] + "
	"sel(inside(t, 0, 5), c[6*i + t + 1], 0)\n"
	"  cumsum cumsum#0: u[t:6 up, i:4] = x[6*i + t] + "
	"sel(inside(t, 1, 6), u[4*t + i - 4], 0)\n"
	"  _ scatter#1: p{k + 6*ids[j in 0..4]}[k:6] += x[k + 6*j] for j:4 "
	"from x[at] * 2\n"
	"  _ scatter#1: q{k + 6*ids[j in 0..4]}[k:6] += "
	"cast(x[k + 6*j], f32) for j:4 from cast(h[at], f32)\n"
	"  _ _#2: d[i:24] = x[i/4%3] + x[clamp(i, 3, 23) - 3] + "
	"x[i/4 + (i%4 + 3)/4] - 0.1\n"
	"  return c, u, p, q, d\n"
	"}\n",
	/* an index for all lanes, loaded if one of them needs it: it is in its array only
	   where the condition that they share holds */
	"system {\n"
	"  x: i16[4,2,6] input 1\n"
	"  v: i64[10,6] input 0\n"
	"  w: i64[2,3,4,5] input 2\n"
	"  y: i64[4,6,10,8]\n"
	"  _ up#0: y[n:4, c:6, j:10, l:8] += sel(inside(j - a, 0, 6) and "
	"inside(l - b, 0, 6), v[6*x[12*n + 6*(c/3) + j - a in 0..10] + l - b] * "
	"w[20*c + 5*a + b], i64(0)) for a:4, b:5\n"
	"  return y\n"
	"}\n",
	/* one of everything, rows that are no whole vectors */
	"system {\n"
	"  x: f32[37,50] input 0\n"
	"  y: f16[37,50] input 1\n"
	"  w: bf16[50] input 2\n"
	"  ids: i32[37] input 3\n"
	"  b: bool[37,50] input 4\n"
	"  q: i8[37,50] input 5\n"
	"  t: f32[50,37]\n"
	"  s0: f32[50]\n"
	"  s1: f32[37]\n"
	"  s: f32[]\n"
	"  h: f16[37]\n"
	"  pd: f32[39,52]\n"
	"  g: f32[37,50]\n"
	"  any: bool[37]\n"
	"  all: bool[50]\n"
	"  qs: i8[37]\n"
	"  qp: i8[37,50]\n"
	"  wv: f32[37]\n"
	"  wm: f32[37]\n"
	"  wn: f32[37]\n"
	"  am: f32[50]\n"
	"  ak: i64[50]\n"
	"  an: f32[37]\n"
	"  ar: i64[37]\n"
	"  bw: bf16[37,50]\n"
	"  bl: f32[37,50]\n"
	"  r: f32[37,50]\n"
	"  lt: bool[37,50]\n"
	"  f: f32[37,50]\n"
	"  ci: i32[37,50]\n"
	"  cc: f32[37,90]\n"
	"  tr transpose#0: t[j:50, i:37] = x[50*i + j]\n"
	"  sum0 sum#1: s0[j:50] += x[50*i + j] for i:37\n"
	"  sum1 sum#2: s1[i:37] += x[50*i + j] for j:50\n"
	"  suma sum#3: s[] += x[i] for i:1850\n"
	"  sumh sum#4: h[i:37] += cast(y[50*i + j], f32) for j:50\n"
	"  pad pad#5: pd[i:39, j:52] = sel(inside(i - 1, 0, 37) and "
	"inside(j - 1, 0, 50), x[50*i + j - 51], 0)\n"
	"  ga gather#6: g[i:37, j:50] = x[50*ids[i in 0..37] + j]\n"
	"  any any#7: any[i:37] or= b[50*i + j] for j:50\n"
	"  all all#8: all[j:50] and= b[50*i + j] for i:37\n"
	"  qs sum#9: qs[i:37] += cast(q[50*i + j], i64) for j:50\n"
	"  qp mul#10: qp[i:37, j:50] = q[50*i + j] * q[50*i + j] - "
	"i8(100)\n"
	"  we welford#11: (wn, wm, wv)[i:37] welford= (1, x[50*i + j], 0) "
	"for j:50\n"
	"  am argmax#12: (am, ak)[j:50] argmax= (x[50*i + j], index(i)) "
	"for i:37\n"
	"  an argmin#12: (an, ar)[i:37] argmin= (x[50*i + j], index(j)) "
	"for j:50\n"
	"  bw mul#13: bw[i:37, j:50] = cast(x[50*i + j] * cast(w[j], f32), "
	"bf16)\n"
	"  bl blur#14: bl[i:37, j:50] += sel(inside(i + u - 1, 0, 37) and "
	"inside(j + v - 1, 0, 50), x[50*i + 50*u + j + v - 51], 0) for u:3, "
	"v:3\n"
	"  re reverse#15: r[i:37, j:50] = x[50*i - j + 49]\n"
	"  lt lt#16: lt[i:37, j:50] = x[50*i + j] < 0.5 and "
	"not(b[50*i + j])\n"
	"  ff where#17: f[i:37, j:50] = sel(b[50*i + j], exp(x[50*i + j]), "
	"cast(q[50*i + j], f32))\n"
	"  ci cast#18: ci[i:37, j:50] = cast(x[50*i + j] * 100, i32) + "
	"cast(index(i + j), i32)\n"
	"  co concat#19: cc[i:37, j:90] = sel(inside(j, 0, 50), "
	"x[50*i + j], sel(inside(j, 50, 90), x[50*i + j - 40], 0))\n"
	"  return t, s0, s1, s, h, pd, g, any, all, qs, qp, wm, wv, am, ak, "
	"an, ar, bw, bl, r, lt, f, ci, cc\n"
	"}\n",
	/* a product of whole tiles only, in chunks of two heights */
	"system {\n"
	"  x: f32[30,16] input 0\n"
	"  y: f32[8,16] input 1\n"
	"  t: f32[30,8]\n"
	"  _ _#0: t[i:30, j:8] += x[16*i + k] * y[16*j + k] for k:16\n"
	"  return t\n"
	"}\n",
	/* products in tiles: edges of all kinds, turned operands, batches,
	 * what follows on the tile, a start that is no zero */
	"system {\n"
	"  x: f32[37,70] input 0\n"
	"  y: f32[70,45] input 1\n"
	"  z: f32[45,70] input 2\n"
	"  w: f64[3,9,21] input 3\n"
	"  v: f64[3,21,19] input 4\n"
	"  b: f32[45] input 5\n"
	"  p: f32[37,45] input 6\n"
	"  t: f32[37,45]\n"
	"  r: f32[37,45]\n"
	"  u: f32[37,45]\n"
	"  q: f32[70,45]\n"
	"  g: f64[3,9,19]\n"
	"  _ _#0: t[i:37, j:45] += x[70*i + k] * y[45*k + j] for k:70\n"
	"  _ _#1: r[i:37, j:45] = max(t[45*i + j] + b[j], 0)\n"
	"  _ _#2: u[i:37, j:45] += x[70*i + k] * z[70*j + k] for k:70 "
	"from b[j]\n"
	"  _ _#3: q[i:70, j:45] += x[70*k + i] * p[45*k + j] for k:37\n"
	"  _ _#4: g[a:3, i:9, j:19] += w[189*a + 21*i + k] * "
	"v[399*a + 19*k + j] for k:21\n"
	"  return r, u, q, g\n"
	"}\n",
	/* stages: rows and columns, a scan between, both sums of one tensor */
	"system {\n"
	"  x: f32[64,96] input 0\n"
	"  res: f32[64,96] input 1\n"
	"  g: f32[96] input 2\n"
	"  m: f32[64]\n"
	"  e: f32[64,96]\n"
	"  s: f32[64]\n"
	"  o: f32[64,96]\n"
	"  cm: f32[96]\n"
	"  ce: f32[64,96]\n"
	"  cs: f32[96]\n"
	"  co: f32[64,96]\n"
	"  h: f32[64,96]\n"
	"  mu: f32[64]\n"
	"  v: f32[64]\n"
	"  rr: f32[64]\n"
	"  ln: f32[64,96]\n"
	"  t: f32[64,96]\n"
	"  ts: f32[96]\n"
	"  tu: f32[64]\n"
	"  cu: f32[64,96]\n"
	"  cx: f32[64]\n"
	"  cd: f32[64,96]\n"
	"  softmax.m softmax#0: m[i:64] max= x[96*i + j] for j:96\n"
	"  softmax.e softmax#0: e[i:64, j:96] = exp(x[96*i + j] - m[i])\n"
	"  softmax.s softmax#0: s[i:64] += e[96*i + j] for j:96\n"
	"  softmax.o softmax#0: o[i:64, j:96] = e[96*i + j] / s[i]\n"
	"  c.m softmax#1: cm[j:96] max= x[96*i + j] for i:64\n"
	"  c.e softmax#1: ce[i:64, j:96] = exp(x[96*i + j] - cm[j])\n"
	"  c.s softmax#1: cs[j:96] += ce[96*i + j] for i:64\n"
	"  c.o softmax#1: co[i:64, j:96] = ce[96*i + j] / cs[j]\n"
	"  add add#2: h[i:64, j:96] = x[96*i + j] + res[96*i + j]\n"
	"  ln.mu ln#2: mu[i:64] += h[96*i + j] * f32(0.010416666) for j:96\n"
	"  ln.v ln#2: v[i:64] += (h[96*i + j] - mu[i]) * (h[96*i + j] - "
	"mu[i]) for j:96\n"
	"  ln.r ln#2: rr[i:64] = rsqrt(v[i] / 96 + 0.00001)\n"
	"  ln.o ln#2: ln[i:64, j:96] = (h[96*i + j] - mu[i]) * rr[i] * g[j]\n"
	"  relu relu#3: t[i:64, j:96] = relu(x[96*i + j])\n"
	"  s0 sum#3: ts[j:96] += t[96*i + j] for i:64\n"
	"  s1 sum#3: tu[i:64] += t[96*i + j] for j:96\n"
	"  cumsum cumsum#4: cu[i:64, j:96 up] = t[96*i + j] + "
	"sel(inside(j, 1, 96), cu[96*i + j - 1], 0)\n"
	"  cmax max#4: cx[i:64] max= cu[96*i + j] for j:96\n"
	"  csub sub#4: cd[i:64, j:96] = cu[96*i + j] - cx[i]\n"
	"  return o, co, ln, ts, tu, cd\n"
	"}\n",
};

struct job {
	const char *text;
	bool alone;
	int32_t schedule; /* 0 plain, 1 as it is, 2 everything cut */
	const char *cc;
	int32_t vector_bytes; /* 0: warps of a GPU, emulated */
};

static void **inputs(arena *a, ir_system *s)
{
	void **in = arena_array(a, void *, s->input.n + 1);
	uint64_t seed = 7;

	for (int32_t i = 0; i < s->input.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->input.at[i]];

		in[i] = arena_alloc(
			a, (size_t)t->numel + 1, dtype_size(t->dtype));
		for (int64_t j = 0; j < t->numel; j++) {
			seed = hash_bytes(&seed, sizeof seed, (uint64_t)j);
			if (dtype_is_float(t->dtype))
				dtype_store_f64(t->dtype, in[i], j,
					(double)(int64_t)(seed % 2000) / 250 -
						4);
			else
				dtype_store_i64(t->dtype, in[i], j,
					(int64_t)(seed % (t->dtype == TN_BOOL
									 ? 2
									 : 3)));
		}
	}
	return in;
}

static double distance(const sys_tensor *t, const void *x, const void *y)
{
	double most = 0;

	for (int64_t i = 0; i < t->numel; i++) {
		double a = dtype_load_f64(t->dtype, x, i);
		double b = dtype_load_f64(t->dtype, y, i);
		double d = fabs(a - b) / (1 + fabs(a));

		if (a == b || (isnan(a) && isnan(b)))
			continue;
		if (!(d <= most))
			most = d;
	}
	return most;
}

static fuse_plan *plan_of(arena *a, ir_system *s, bool alone)
{
	fuse_options o = {.no_fusion = alone};
	fuse_plan *p = fuse_partition(a, s, machine_at(0), &o);

	fuse_verify(p);
	return p;
}

static void run_job(arena *a, void *arg)
{
	const struct job *j = arg;
	ir_system *s = ir_system_parse(
		a, ix_new(a), j->text, strlen(j->text), "t.tn");
	const void *const *in = (const void *const *)inputs(a, s);
	void **want = eval_system(a, s, in), **got;
	fuse_plan *p = plan_of(a, s, j->alone);
	machine m = j->vector_bytes == 0 ? *machine_find("cuda/sm_90")
					 : *machine_of_c(j->vector_bytes, 16,
						   MACHINE_ALL_DOTS);
	struct run_options o = {.cc = j->cc,
		.simt = j->vector_bytes == 0,
		.machine = &m,
		.backwards = j->schedule == 2};

	m.unscheduled = j->schedule == 0;
	if (j->schedule == 2) {
		m.schedule.chunk_elems = 4;
		m.memory[MACHINE_L1].bytes = 256;
		m.memory[MACHINE_L2].bytes = 1024;
		m.schedule.stream_bytes = 16;
		m.memory[MACHINE_L3].bytes = 0;
	}
	got = run_kernels(a, s, p, in, &o);
	assert_int_equal(o.error, 0);
	for (int32_t i = 0; i < s->output.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->output.at[i]];
		double d = distance(
			t, want[s->output.at[i]], got[s->output.at[i]]);

		if (d > (t->dtype == TN_F16 || t->dtype == TN_BF16 ? 1e-2
								   : 1e-5))
			fail_msg("%s is off by %g (alone %d, schedule %d)",
				t->name, d, j->alone, j->schedule);
	}
}

static void run_all(int32_t first, const char *cc, int32_t vector_bytes)
{
	for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
		for (int32_t k = first; k < 6; k++) {
			struct job j = {systems[i], k % 2 == 0, k / 2, cc,
				vector_bytes};
			tn_diag d = {0};

			if (unit_run(run_job, &j, 0, &d) != TN_OK)
				fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
		}
}

#ifndef SANITIZE_CC
static void test_equal(void **state)
{
	(void)state;
	run_all(0, "gcc", 64);
}

static void test_narrow_vectors(void **state)
{
	(void)state;
	run_all(4, "gcc -march=haswell", 32);
}

static void test_warps(void **state)
{
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	unit_skip("emulated warps are not watched by sanitizers");
#endif
	run_all(0, NULL, 0);
}

static void test_clang(void **state)
{
	(void)state;
	if (system("clang --version > /dev/null 2>&1") != 0)
		unit_skip("clang is not installed");
	run_all(5, "clang", 64);
}
#else
/* The same, its kernels watched: this program is linked with the sanitizers. */
static void test_sanitized(void **state)
{
	(void)state;
	run_all(0, SANITIZE_CC, 64);
	run_all(4, SANITIZE_CC " -march=haswell", 32);
}
#endif

/* The design's example, to the letter. */
static void seed_example(arena *a, void *arg)
{
	static const char text[] =
		"system {\n"
		"  x: f32[2,1024,1024] input 0\n"
		"  y: f32[2,1024,1024] input 1\n"
		"  t: f32[2,1024,1024]\n"
		"  out: f32[1024,1024]\n"
		"  add add#0: t[i:2097152] = x[i] + y[i]\n"
		"  reduce_sum reduce_sum#1: out[j:1048576] += "
		"t[1048576*k + j] for k:2\n"
		"  return out\n"
		"}\n";
	ir_system *s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
	fuse_plan *p = plan_of(a, s, false);
	const bool *indexes = arg;
	loop_kernel *k;
	str out = str_new(a);

	assert_int_equal(p->kernel.n, 1);
	k = loop_build(a, s, p->kernel.at[0], true);
	loop_verify(k);
	loop_print(&out, k, *indexes);
	assert_string_equal(out.at,
		*indexes ? "fn_add_0_reduce_sum_1(&out[], y[], x[]) {\n"
			   "  AnchoredMapStmt(t) {\n"
			   "    MapStmt([i_0, i_1]) {\n"
			   "      reduce_sum_init(&out[i_0, i_1]);\n"
			   "      MapStmt([i_2]) {\n"
			   "        add(&t[i_2, i_0, i_1], x[i_2, i_0, i_1], "
			   "y[i_2, i_0, i_1]);\n"
			   "        reduce_sum_acc(&out[i_0, i_1], "
			   "t[i_2, i_0, i_1]);\n"
			   "      }\n"
			   "    }\n"
			   "  }\n"
			   "}\n"
			 : "fn_add_0_reduce_sum_1(&out[], y[], x[]) {\n"
			   "  AnchoredMapStmt(t) {\n"
			   "    MapStmt([i_0, i_1]) {\n"
			   "      reduce_sum_init(&out);\n"
			   "      MapStmt([i_2]) {\n"
			   "        add(&t, x, y);\n"
			   "        reduce_sum_acc(&out, t);\n"
			   "      }\n"
			   "    }\n"
			   "  }\n"
			   "}\n");
}

static void test_print(void **state)
{
	bool indexes = false;
	tn_diag d = {0};

	(void)state;
	if (unit_run(seed_example, &indexes, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
	indexes = true;
	if (unit_run(seed_example, &indexes, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
}

/* An index read from data that is outside: reported, memory is not left. */
static void bad_index(arena *a, void *arg)
{
	static const char text[] =
		"system {\n"
		"  x: f32[5] input 0\n"
		"  ids: i64[3] input 1\n"
		"  o: f32[3]\n"
		"  g: f32[3]\n"
		"  take take#0: o[i:3] = x[ids[i in 0..5]]\n"
		"  safe safe#1: g[i:3] = sel(ids[i] < index(5), "
		"x[ids[i in 0..5]], 7)\n"
		"  return o, g\n"
		"}\n";
	ir_system *s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
	float x[5] = {1, 2, 3, 4, 5};
	int64_t ids[3] = {1, 1000000007, 4};
	const void *in[2] = {x, ids};
	struct run_options o = {.machine = machine_find("c/avx512")};
	const float *g;
	void **got;

	(void)arg;
	got = run_kernels(a, s, plan_of(a, s, true), in, &o);
	assert_int_equal(o.error, 1);
	assert_string_equal(s->tensor.at[o.failed_tensor].name, "ids");
	g = got[s->output.at[0]];
	assert_true(g[0] == 2 && g[2] == 5); /* the others are right */
	g = got[s->output.at[1]];
	assert_true(g[0] == 2 && g[1] == 7 && g[2] == 5);
	ids[1] = 3;
	o.error = 0;
	run_kernels(a, s, plan_of(a, s, true), in, &o);
	assert_int_equal(o.error, 0);
}

static void test_bad_index(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(bad_index, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
}

/* Kernels of one structure are one function, whatever their names are. */
static void same_text(arena *a, void *arg)
{
	static const char text[] = "system {\n"
				   "  x: f32[8,40] input 0\n"
				   "  y: f32[8,40] input 1\n"
				   "  p: f32[8,40]\n"
				   "  q: f32[8,40]\n"
				   "  relu relu#0: p[i:320] = relu(x[i])\n"
				   "  relu relu#1: q[j:320] = relu(y[j])\n"
				   "  return p, q\n"
				   "}\n";
	ir_system *s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
	fuse_plan *p = plan_of(a, s, true);
	const machine *m = machine_find("c/avx2");
	const char *fn[2] = {"", ""};
	str unit = str_new(a);

	(void)arg;
	for (int32_t i = 0; i < 2; i++) {
		loop_kernel *k = loop_build(a, s, p->kernel.at[i], false);
		const c_kernel *e;

		loop_schedule(k, m);
		e = c_print(a, kern_lower(a, k));
		fn[i] = e->phase[0].fn;
		c_unit(&unit, &e, 1);
		assert_null(strstr(unit.at, " x["));
	}
	assert_string_equal(fn[0], fn[1]);
}

static void test_same_text(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(same_text, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef SANITIZE_CC
		cmocka_unit_test(test_sanitized),
#endif
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_same_text),
		cmocka_unit_test(test_bad_index),
#ifndef SANITIZE_CC
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_narrow_vectors),
		cmocka_unit_test(test_warps),
		cmocka_unit_test(test_clang),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
