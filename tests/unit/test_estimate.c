/*
 * What a scheduled kernel is expected to cost: facts that follow from the
 * tree alone (bytes, kinds of accesses, chunks), and orders of magnitude.
 */
#include "unit.h"
#include "system_parse.h"

#include "fuse/fuse.h"
#include "schedule/estimate.h"
#include "schedule/schedule.h"

static loop_estimate estimate_of(arena *a, const machine *m, const char *text)
{
	ir_system *s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
	fuse_plan *p = fuse_partition(a, s, machine_at(0), NULL);
	loop_kernel *k;
	loop_estimate e;

	assert_int_equal(p->kernel.n, 1);
	k = loop_build(a, s, p->kernel.at[0], false);
	loop_schedule(k, m);
	loop_estimate_of(k, &e);
	return e;
}

static void is_near(double x, double want, double part)
{
	if (x < want * (1 - part) || x > want * (1 + part))
		fail_msg("%g, expected about %g", x, want);
}

static const char add[] = "system {\n x: f32[8388608] input 0\n"
			  " y: f32[8388608] input 1\n o: f32[8388608]\n"
			  " a o#0: o[i:8388608] = x[i] + y[i]\n"
			  " return o\n}\n";

static void stream(arena *a, void *arg)
{
	loop_estimate e = estimate_of(a, machine_find("c/avx512"), add);
	const loop_phase_cost *p = &e.phase[0];

	(void)arg;
	is_near(p->bytes[MACHINE_MAIN], 3 * 4 * 8388608.0, 0.01);
	is_near(p->load[MACHINE_WHOLE], 2 * 8388608.0 / 16, 0.01);
	is_near(p->store[MACHINE_WHOLE], 8388608.0 / 16, 0.01);
	assert_true(p->load[MACHINE_SCALAR] == 0);
	assert_int_equal(loop_estimate_term(&e), LOOP_TERM_MEMORY);
	/* threads help as far as there are chunks */
	is_near(loop_estimate_seconds(&e, 1) / loop_estimate_seconds(&e, 4), 4,
		0.05);
}

/* Weights are far in each run if all weights of the program are many; results of
 * other kernels are near. */
#define WEIGHTS(n)                                              \
	"system {\n w: f32[262144] input 0\n v: f32[" n             \
	"] input 1\n o: f32[262144]\n"                              \
	" a o#0: o[i:262144] = w[i] + v[i]\n return o\n}\n"

static void homes(arena *a, void *arg)
{
	const machine *m = machine_find("c/avx512");
	double size = 4 * 262144.0;
	loop_estimate e = estimate_of(a, m, WEIGHTS("262144"));
	loop_estimate f = estimate_of(a, m, WEIGHTS("4194304"));

	(void)arg;
	assert_true(e.phase[0].bytes[MACHINE_MAIN] == 0);
	is_near(f.phase[0].bytes[MACHINE_MAIN], 2 * size, 0.05);
	assert_true(loop_estimate_seconds(&f, 1) >
		    1.3 * loop_estimate_seconds(&e, 1));
}

/* Tile registers save most of the cycles of vectors, and long sums more than short ones. */
static void tile_registers(arena *a, void *arg)
{
	static const char format[] =
		"system {\n x: bf16[256,%d] input 0\n w: bf16[%d,256] input 1\n"
		" o: f32[256,256]\n"
		" mm o#0: o[i:256, j:256] += cast(x[%d*i + k], f32) * cast(w[256*k + j], f32)"
		" for k:%d\n return o\n}\n";
	double part[2];

	(void)arg;
	for (int32_t i = 0; i < 2; i++) {
		int32_t n = i == 0 ? 64 : 1024;
		const char *text = arena_printf(a, format, n, n, n, n);
		loop_estimate e[2] = {
			estimate_of(a, machine_find("c/avx512-bf16"), text),
			estimate_of(a, machine_find("c/avx512-amx"), text)};

		part[i] = loop_estimate_part(&e[1], LOOP_TERM_TILE) /
			  loop_estimate_part(&e[0], LOOP_TERM_TILE);
	}
	assert_true(part[0] < 0.8 && part[1] < 0.4 && part[1] < part[0]);
}

/* A sum of few terms and a function behind it: what waits for results is more than
 * in two kernels, and the longer the wait, the more. */
static void waits(arena *a, void *arg)
{
	static const char format[] =
		"system {\n x: f32[8,64,64] input 0\n w: f32[8,9] input 1\n"
		" y: f32[8,62,62]\n%s"
		" sum a#0: y[g:8, r:62, c:62] += x[4096*g + 64*r + 64*j + c + k]"
		" * w[9*g + 3*j + k] for j:3, k:3\n%s}\n";
	static const char *const rest[][2] = {{"", " return y\n"},
		{" s: f32[8,62,62]\n",
			" b s#1: s[g:8, r:62, c:62] = y[3844*g + 62*r + c]"
			" + 1\n return s\n"},
		{" s: f32[8,62,62]\n",
			" b s#1: s[g:8, r:62, c:62] = "
			"sigmoid(sigmoid(y[3844*g + 62*r + c]))\n return s\n"}};
	machine m = *machine_find("c/avx512");
	double wait[3];

	(void)arg;
	for (int i = 0; i < 3; i++) {
		char text[1024];

		snprintf(text, sizeof text, format, rest[i][0], rest[i][1]);
		wait[i] = estimate_of(a, &m, text).phase[0].wait_cycles;
	}
	assert_true(wait[0] == 0);
	assert_true(wait[1] == 0);
	/* 62 rows of 4 vectors, twice 16 operations of 4 cycles behind 36 */
	is_near(wait[2], 8 * 62 * 4 * (36 + 128 - m.cycles.window), 0.6);
	m.cycles.window = 1000;
	{
		char text[1024];

		snprintf(text, sizeof text, format, rest[2][0], rest[2][1]);
		assert_true(estimate_of(a, &m, text).phase[0].wait_cycles ==
			    0);
	}
}

/* In the body of a loop the weights of a round are still near in the next one, and
 * a launch is short. 1.5 MB are more than a kernel finds in L2 elsewhere. */
static void rounds(arena *a, void *arg)
{
	static const char text[] =
		"system {\n w: f32[131072] input 0\n v: f32[131072] input 1\n"
		" o: f32[131072]\n a o#0: o[i:131072] = w[i] + v[i]\n"
		" return o\n}\n";
	const machine *m = machine_find("c/avx512");
	ir_system *s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
	fuse_plan *p = fuse_partition(a, s, machine_at(0), NULL);
	loop_kernel *k = loop_build(a, s, p->kernel.at[0], false);
	loop_estimate once, again;

	(void)arg;
	loop_schedule(k, m);
	loop_estimate_of(k, &once);
	s->in_rounds = true;
	loop_estimate_of(k, &again);
	is_near(once.phase[0].bytes[MACHINE_L3], 3 * 4 * 131072.0, 0.01);
	is_near(again.phase[0].bytes[MACHINE_L2], 3 * 4 * 131072.0, 0.01);
	assert_true(again.phase[0].bytes[MACHINE_L3] == 0);
	assert_true(loop_estimate_seconds(&once, 1) >
		    loop_estimate_seconds(&again, 1) + m->launch_s - m->round_s);
}

/* What is not scheduled has no lanes: every element is priced by itself. */
static void scalar(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f32[16384] input 0\n o: f32[16384]\n"
		" a o#0: o[i:16384] = exp(x[i])\n return o\n}\n";
	machine plain = *machine_find("c/avx512");
	loop_estimate fast = estimate_of(a, machine_find("c/avx512"), text);
	loop_estimate slow;

	(void)arg;
	plain.unscheduled = true;
	slow = estimate_of(a, &plain, text);
	is_near(slow.phase[0].load[MACHINE_SCALAR], 16384, 0.01);
	assert_true(loop_estimate_seconds(&slow, 1) >
		    5 * loop_estimate_seconds(&fast, 1));
	assert_int_equal(loop_estimate_term(&slow), LOOP_TERM_SCALAR);
}

/* 2 * 512^3 operations at some 150 GFLOP/s */
static void product(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f32[512,512] input 0\n"
		" y: f32[512,512] input 1\n o: f32[512,512]\n"
		" a o#0: o[i:512, j:512] += x[512*i + k] * y[512*k + j] "
		"for k:512\n return o\n}\n";
	loop_estimate e = estimate_of(a, machine_find("c/avx512"), text);

	(void)arg;
	assert_int_equal(loop_estimate_term(&e), LOOP_TERM_TILE);
	is_near(loop_estimate_seconds(&e, 1), 2.0 * 512 * 512 * 512 / 150e9,
		0.4);
}

/* Sums stay in registers while the loops of their terms run: rows of a tile that are
 * 8 KB apart are stored once, not once for each term. */
static void stores_of_tiles(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f64[1024,1024] input 0\n"
		" y: f64[1024,1024] input 1\n o: f64[1024,1024]\n"
		" a o#0: o[i:1024, j:1024] += x[1024*i + k] * y[1024*k + j] "
		"for k:1024\n return o\n}\n";
	loop_estimate e = estimate_of(a, machine_find("c/avx512"), text);

	(void)arg;
	is_near(loop_estimate_seconds(&e, 1), 2.0 * 1024 * 1024 * 1024 / 60e9,
		0.4);
}

static void kinds(arena *a, void *arg)
{
	static const char two[] =
		"system {\n x: f32[32768] input 0\n o: f32[16384]\n"
		" a o#0: o[i:16384] = x[2*i]\n return o\n}\n";
	static const char five[] =
		"system {\n x: f32[81920] input 0\n o: f32[16384]\n"
		" a o#0: o[i:16384] = x[5*i]\n return o\n}\n";
	const machine *m = machine_find("c/avx2");
	loop_estimate e = estimate_of(a, m, two);

	(void)arg;
	is_near(e.phase[0].load[MACHINE_STRIDED], 16384.0 / 8, 0.01);
	e = estimate_of(a, m, five);
	is_near(e.phase[0].load[MACHINE_GATHERED], 16384, 0.01);
	/* four of five elements of a line are of no use, and come all the same */
	is_near(e.phase[0].bytes[MACHINE_L2] + e.phase[0].bytes[MACHINE_L3],
		4 * (81920.0 + 16384), 0.05);
}

/* A guard that the spans around decide is free; the edge pays a mask. */
static void guards(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f32[64,56] input 0\n o: f32[64,56]\n"
		" a o#0: o[r:64, i:56] += sel(inside(i + k - 1, 0, 56), "
		"x[56*r + i + k - 1], 0) for k:3\n return o\n}\n";
	loop_estimate e = estimate_of(a, machine_find("c/avx512"), text);
	const loop_phase_cost *p = &e.phase[0];

	(void)arg;
	assert_true(p->load[MACHINE_MASKED] > 0);
	assert_true(p->load[MACHINE_WHOLE] >= p->load[MACHINE_MASKED]);
	assert_true(p->load[MACHINE_SCALAR] == 0);
}

/* One of three tensors is read for each row: as many bytes as are written. */
static void chosen(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f32[2,1048576] input 0\n y: f32[2,1048576] input 1\n"
		" z: f32[4,1048576] input 2\n o: f32[8,1048576]\n"
		" a o#0: o[r:8, i:1048576] = sel(inside(r, 0, 2), x[1048576*r + i], "
		"sel(inside(r, 2, 4), y[1048576*r + i - 2097152], "
		"z[1048576*r + i - 4194304]))\n return o\n}\n";
	loop_estimate e = estimate_of(a, machine_find("c/avx512"), text);

	(void)arg;
	is_near(e.phase[0].bytes[MACHINE_MAIN], 2 * 4 * 8.0 * 1048576, 0.05);
}

/* Three rows of a sliding window, of which two were read for the row before: all of
 * 64 MB come from memory once. */
static void windows(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f32[4096,4096] input 0\n o: f32[4096,4096]\n"
		" a o#0: o[r:4096, i:4096] += "
		"sel(inside(r + j - 1, 0, 4096) and inside(i + k - 1, 0, 4096), "
		"x[4096*r + 4096*j + i + k - 4097], 0) for j:3, k:3\n"
		" return o\n}\n";
	loop_estimate e = estimate_of(a, machine_find("c/avx512"), text);

	(void)arg;
	is_near(e.phase[0].bytes[MACHINE_MAIN], 2 * 4 * 4096.0 * 4096, 0.05);
}

/* Eight rows at a time, two rows of x apart: each eight load 19 rows, not 40, and all
 * rows come from memory once. */
static void windows_abreast(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f32[8195,4096] input 0\n o: f32[4096,4096]\n"
		" a o#0: o[r:4096, i:4096] max= x[8192*r + 4096*j + i] for j:5\n"
		" return o\n}\n";
	loop_estimate e = estimate_of(a, machine_find("c/avx512"), text);

	(void)arg;
	is_near(e.phase[0].load[MACHINE_WHOLE], 4096 * 19.0 / 8 * 256, 0.01);
	is_near(e.phase[0].bytes[MACHINE_MAIN], 3 * 4 * 4096.0 * 4096, 0.05);
}

/* A product whose terms k <= i are needed takes half as long as one of all terms. In
 * the first block of rows it would be a small part. */
static void triangles(arena *a, void *arg)
{
	static const char format[] =
		"system {\n x: f32[1024,1024] input 0\n"
		" y: f32[1024,64] input 1\n o: f32[1024,64]\n"
		" a o#0: o[i:1024, j:64] += %s for k:1024\n return o\n}\n";
	static const char *const terms[] = {
		"x[1024*i + k] * y[64*k + j]",
		"sel(inside(k - i, -1023, 1), x[1024*i + k] * y[64*k + j], 0)"};
	double cycles[2];

	(void)arg;
	for (int i = 0; i < 2; i++) {
		char text[512];

		snprintf(text, sizeof text, format, terms[i]);
		cycles[i] = estimate_of(a, machine_find("c/avx512"), text)
				    .phase[0]
				    .tile_cycles;
	}
	is_near(cycles[1], cycles[0] / 2, 0.3);
}

/*
 * Columns are stored along rows that are 1 KB apart: the lines of 64 of them
 * share 4 sets of the first cache, and all are gone before the next column.
 */
static void crowded(arena *a, void *arg)
{
	static const char format[] =
		"system {\n x: f32[576,%d] input 0\n s: f32[576]\n"
		" o: f32[576,%d]\n"
		" a s#0: s[i:576] += x[i + 576*j] for j:%d\n"
		" a o#1: o[i:576, j:%d] = x[i + 576*j] - s[i]\n"
		" return o\n}\n";
	static const int wide[] = {256, 272};
	double cycles[2];

	(void)arg;
	for (int i = 0; i < 2; i++) {
		char text[512];
		loop_estimate e;

		snprintf(text, sizeof text, format, wide[i], wide[i], wide[i],
			wide[i]);
		e = estimate_of(a, machine_find("c/avx512"), text);
		cycles[i] = e.phase[0].access_cycles / wide[i] / 576;
	}
	assert_true(cycles[0] > cycles[1] +
			0.9 * machine_find("c/avx512")->cycles.crowded);
}

/* The loop with lanes around the sum of the equation that has this label. */
static loop_node *lanes_around(
	const loop_kernel *k, loop_node *n, loop_node *lanes, const char *label)
{
	loop_node *found = NULL;

	if (n->kind == LOOP_FOR && n->lanes > 1)
		lanes = n;
	if (n->kind == LOOP_STMT && !strcmp(k->eqn[n->eqn].e->label, label))
		return lanes;
	for (int32_t i = 0; i < n->n_child && found == NULL; i++)
		found = lanes_around(k, n->child[i], lanes, label);
	return found;
}

/*
 * A sum over rows whose elements a sliding window makes. Behind the vectors
 * each element waits for the one before: 56 are 7 vectors of 8, not 3 of 16.
 */
static void short_rows(arena *a, void *arg)
{
	static const char format[] =
		"system {\n x: f32[96,%d,%d] input 0\n w: f32[96,3] input 1\n"
		" y: f32[96,%d,%d]\n m: f32[96]\n"
		" conv a#0: y[g:96, r:%d, c:%d] += sel(inside(c + k - 1, 0, %d),"
		" x[%d*g + %d*r + c + k - 1] * w[3*g + k], 0) for k:3\n"
		" mean b#1: m[g:96] += y[%d*g + %d*r + c] for r:%d, c:%d\n"
		" return y, m\n}\n";
	static const int rows[][2] = {{48, 16}, {56, 8}, {50, 16}, {28, 4}};

	(void)arg;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int n = rows[i][0], all = n * n;
		loop_node *lanes = NULL;
		loop_estimate e, wide;
		ir_system *s;
		loop_kernel *k;
		char text[1024];

		snprintf(text, sizeof text, format, n, n, n, n, n, n, n, all, n,
			all, n, n, n);
		s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
		k = loop_build(a, s,
			fuse_partition(a, s, machine_at(0), NULL)->kernel.at[0],
			false);
		loop_schedule(k, machine_find("c/avx512"));
		for (int32_t r = 0; r < k->phase[0].n_roots && lanes == NULL; r++)
			lanes = lanes_around(
				k, k->phase[0].root[r], NULL, "mean");
		assert_non_null(lanes);
		assert_int_equal(lanes->lanes, rows[i][1]);
		loop_estimate_of(k, &e);
		lanes->lanes = 16;
		loop_estimate_of(k, &wide);
		if (rows[i][1] < 16)
			assert_true(loop_estimate_seconds(&wide, 1) >
				    1.05 * loop_estimate_seconds(&e, 1));
	}
}

static bool gives_chunks(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (gives_chunks(n->child[i]))
			return true;
	return n->parallel;
}

/*
 * Chunks may be smaller than the padding of a row. A loop in lanes around chunks
 * stays one loop: in pieces, each would have chunks of its own.
 */
static void small_chunks(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: u8[8,2] input 0\n v: u8[17,5]\n o: u8[5]\n"
		" pad a#0: v[i:17, j:5] = sel(inside(i - 8, 0, 8) and "
		"inside(j - 2, 0, 2), x[2*i + j - 18], u8(3))\n"
		" min b#1: o[j:5] min= v[j + 5*i] for i:17\n return o\n}\n";

	(void)arg;
	for (int64_t elems = 1; elems <= 256; elems *= 2) {
		machine m = *machine_find("c/avx512");
		ir_system *s = ir_system_parse(
			a, ix_new(a), text, strlen(text), "t");
		fuse_plan *p = fuse_partition(a, s, machine_at(0), NULL);
		loop_kernel *k = loop_build(a, s, p->kernel.at[0], false);

		m.schedule.chunk_elems = elems;
		m.vector_bytes = elems % 4 == 0 ? 64 : 16;
		loop_schedule(k, &m);
		for (int32_t i = 0; i < k->phase[0].n_roots; i++)
			assert_true(k->phase[0].n_roots == 1 ||
				    !gives_chunks(k->phase[0].root[i]));
	}
}

/* Every constant has a name and a measurement, and is what the machine has. */
static void test_facts(void **state)
{
	machine_fact f;
	int32_t n = 0;

	(void)state;
	for (int32_t i = 0; machine_at(i) != NULL; i++) {
		const machine *m = machine_at(i);

		assert_ptr_equal(machine_find(m->name), m);
		assert_non_null(machine_find(m->priced_as));
		for (n = 0; machine_fact_at(m, n, &f); n++) {
			assert_true(f.value > 0 || (m->tiles.rows == 0 && strncmp(f.name, "tiles.", 6) == 0));
			assert_true(strlen(f.from) > 0);
		}
	}
	assert_true(n > 120);
	assert_null(machine_find("c/none"));
	assert_ptr_equal(machine_of_c(64, 32, MACHINE_TILE_DOTS), machine_find("c/avx512-amx"));
	assert_ptr_equal(machine_of_c(64, 32, MACHINE_ALL_DOTS), machine_find("c/avx512-bf16"));
	assert_ptr_equal(machine_of_c(32, 16, MACHINE_TILE_DOTS), machine_find("c/avx2"));
	assert_ptr_equal(machine_of_c(16, 32, MACHINE_ALL_DOTS), machine_find("c/neon"));
	assert_ptr_equal(machine_of_c(16, 16, MACHINE_ALL_DOTS), machine_find("c/sse"));
	assert_ptr_equal(machine_of_c(4, 1, MACHINE_ALL_DOTS), machine_find("c/plain"));
}

static void test_kernels(void **state)
{
	static const struct {
		const char *name;
		void (*fn)(arena *a, void *arg);
	} all[] = {{"stream", stream}, {"homes", homes},
		{"waits", waits}, {"rounds", rounds},
		{"scalar", scalar}, {"product", product},
		{"stores of tiles", stores_of_tiles},
		{"tile registers", tile_registers},
		{"kinds", kinds}, {"guards", guards},
		{"chosen", chosen},
		{"windows", windows}, {"windows abreast", windows_abreast},
		{"triangles", triangles},
		{"crowded", crowded}, {"short_rows", short_rows},
		{"small_chunks", small_chunks}};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		tn_diag d = {0};

		if (unit_run(all[i].fn, NULL, 0, &d) != TN_OK)
			fail_msg("%s: %s: %s", all[i].name, d.rule, d.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
