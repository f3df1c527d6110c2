/*
 * test_slide.c: convolutions whose pixels are rows of tiles (contract/slide.c) equal
 * their slow meaning: strides, dilation, borders on one side, on some axes or on
 * none, groups, one to three axes, on vectors of 64 and 32 bytes; with infinities and
 * NaN beside borders, then with sums in several blocks and chunks in another order. Where
 * something follows the sums, squares of them are turned for it (contract/behind.c).
 */
#include "unit.h"
#include "system_parse.h"
#include "schedule/decision.h"

#include "run_kernels.h"

#include <math.h>

/* When are pixels rows of tiles? */
enum { NEVER, ALWAYS, IF_LARGE /* weights */, IF_WIDE /* vectors */ };

/* w is steady. Few pixels, and as many terms as the schedule asks for. */
static const struct slid {
	const char *text;
	int32_t taken, clips; /* the borders that tiles of 14 rows at most leave out */
} systems[] = {
	{"system {\n x: f32[2,32,17,19] input 0\n w: f32[48,32,3,3] input 1\n"
	 " r: f32[2,48,9,10] input 2\n y: f32[2,48,9,10]\n z: f32[2,48,9,10]\n"
	 " q: f32[2,48,9,10]\n conv a#0: y[n:2, f:48, y_0:9, y_1:10] += "
	 "sel(inside(2*y_0 + k_0 - 1, 0, 17) and inside(2*y_1 + k_1 - 1, 0, 19), "
	 "x[10336*n + 38*y_0 + 2*y_1 + 323*c + 19*k_0 + k_1 - 20] * "
	 "w[288*f + 9*c + 3*k_0 + k_1], 0) for c:32, k_0:3, k_1:3\n"
	 " add b#1: z[i:8640] = y[i] + r[i]\n relu c#2: q[i:8640] = relu(z[i])\n"
	 " return q\n}\n", ALWAYS, 2},
	/* rows of some squares, and of a part of one */
	{"system {\n x: f32[1,90,5,71] input 0\n w: f32[46,90,1,3] input 1\n"
	 " r: f32[1,46,5,71] input 2\n y: f32[1,46,5,71]\n z: f32[1,46,5,71]\n"
	 " q: f32[1,46,5,71]\n conv a#0: y[f:46, y_0:5, y_1:71] += "
	 "sel(inside(y_1 + k - 1, 0, 71), x[71*y_0 + y_1 + 355*c + k - 1] * "
	 "w[270*f + 3*c + k], 0) for c:90, k:3\n"
	 " add b#1: z[i:16330] = y[i] + r[i]\n relu c#2: q[i:16330] = relu(z[i])\n"
	 " return q\n}\n", ALWAYS, 0},
	/* one axis, dilated */
	{"system {\n x: f32[1,90,70] input 0\n w: f32[46,90,3] input 1\n"
	 " y: f32[1,46,70]\n conv a#0: y[f:46, z:70] += "
	 "sel(inside(z + 2*k - 3, 0, 70), x[z + 70*c + 2*k - 3] * "
	 "w[270*f + 3*c + k], 0) for c:90, k:3\n return y\n}\n", ALWAYS, 0},
	/* no border: the image is read where it lies */
	{"system {\n x: f32[1,40,12,18] input 0\n w: f32[64,40,2,5] input 1\n"
	 " y: f32[1,64,11,14]\n conv a#0: y[f:64, y_0:11, y_1:14] += "
	 "x[18*y_0 + y_1 + 216*c + 18*k_0 + k_1] * w[400*f + 10*c + 5*k_0 + k_1] "
	 "for c:40, k_0:2, k_1:5\n return y\n}\n", ALWAYS, 0},
	{"system {\n x: f64[1,16,6,9,9] input 0\n w: f64[16,16,3,3,3] input 1\n"
	 " y: f64[1,16,6,9,9]\n conv a#0: y[f:16, y_0:6, y_1:9, y_2:9] += "
	 "sel(inside(y_0 + k_0 - 1, 0, 6) and inside(y_1 + k_1 - 1, 0, 9) and "
	 "inside(y_2 + k_2 - 1, 0, 9), x[81*y_0 + 9*y_1 + y_2 + 486*c + 81*k_0 + "
	 "9*k_1 + k_2 - 91] * w[432*f + 27*c + 9*k_0 + 3*k_1 + k_2], f64(0)) "
	 "for c:16, k_0:3, k_1:3, k_2:3\n return y\n}\n", ALWAYS, 3},
	{"system {\n x: f32[1,64,9,10] input 0\n w: f32[64,32,3,3] input 1\n"
	 " y: f32[1,64,9,10]\n conv a#0: y[g:2, f:32, y_0:9, y_1:10] += "
	 "sel(inside(y_0 + k_0 - 1, 0, 9) and inside(y_1 + k_1 - 1, 0, 10), "
	 "x[2880*g + 10*y_0 + y_1 + 90*c + 10*k_0 + k_1 - 11] * "
	 "w[9216*g + 288*f + 9*c + 3*k_0 + k_1], 0) for c:32, k_0:3, k_1:3\n"
	 " return y\n}\n", ALWAYS, 2},
	/* a border on one axis of two */
	{"system {\n x: f32[1,96,9,14] input 0\n w: f32[32,96,1,3] input 1\n"
	 " y: f32[1,32,9,14]\n conv a#0: y[f:32, y_0:9, y_1:14] += "
	 "sel(inside(y_1 + k - 1, 0, 14), x[14*y_0 + y_1 + 126*c + k - 1] * "
	 "w[288*f + 3*c + k], 0) for c:96, k:3\n return y\n}\n", ALWAYS, 1},
	/* .. and a window without a border on the other one: each of its rows would
	 * be copied for each of the window's, if they were copied */
	{"system {\n x: f32[1,40,11,14] input 0\n w: f32[32,40,3,3] input 1\n"
	 " y: f32[1,32,9,14]\n conv a#0: y[f:32, y_0:9, y_1:14] += "
	 "sel(inside(y_1 + k - 1, 0, 14), x[14*y_0 + y_1 + 154*c + 14*h + k - 1] * "
	 "w[360*f + 9*c + 3*h + k], 0) for c:40, h:3, k:3\n return y\n}\n", IF_WIDE, 1},
	/* the window goes backwards */
	{"system {\n x: f32[1,96,20] input 0\n w: f32[32,96,3] input 1\n"
	 " y: f32[1,32,20]\n conv a#0: y[f:32, z:20] += "
	 "sel(inside(z - k + 1, 0, 20), x[z + 20*c - k + 1] * w[288*f + 3*c + k], 0) "
	 "for c:96, k:3\n return y\n}\n", ALWAYS, 0},
	/* .. where a tile has all pixels of a row */
	{"system {\n x: f32[1,96,12] input 0\n w: f32[32,96,3] input 1\n"
	 " y: f32[1,32,12]\n conv a#0: y[f:32, z:12] += "
	 "sel(inside(z - k + 1, 0, 12), x[z + 12*c - k + 1] * w[288*f + 3*c + k], 0) "
	 "for c:96, k:3\n return y\n}\n", ALWAYS, 1},
	/* a diagonal: one sum for rows of the image and for pixels of a row */
	{"system {\n x: f32[1,96,9,11] input 0\n w: f32[32,96,3] input 1\n"
	 " y: f32[1,32,9,11]\n conv a#0: y[f:32, y_0:9, y_1:11] += "
	 "sel(inside(y_0 + k - 1, 0, 9) and inside(y_1 + k - 1, 0, 11), "
	 "x[11*y_0 + y_1 + 99*c + 12*k - 12] * w[288*f + 3*c + k], 0) "
	 "for c:96, k:3\n return y\n}\n", IF_WIDE, 2},
	/* of a copy most were border: never with a stride of the window, else without a
	 * copy, where a tile has all pixels of a row */
	{"system {\n x: f32[1,20,7,7] input 0\n w: f32[40,20,5,5] input 1\n"
	 " y: f32[1,40,7,7]\n conv a#0: y[f:40, y_0:7, y_1:7] += "
	 "sel(inside(y_0 + 3*k_0 - 6, 0, 7) and inside(y_1 + 3*k_1 - 6, 0, 7), "
	 "x[7*y_0 + y_1 + 49*c + 21*k_0 + 3*k_1 - 48] * w[500*f + 25*c + 5*k_0 + k_1], "
	 "0) for c:20, k_0:5, k_1:5\n return y\n}\n", NEVER, 0},
	{"system {\n x: f32[1,20,7,7] input 0\n w: f32[48,20,7,7] input 1\n"
	 " y: f32[1,48,7,7]\n conv a#0: y[f:48, y_0:7, y_1:7] += "
	 "sel(inside(y_0 + k_0 - 6, 0, 7) and inside(y_1 + k_1 - 6, 0, 7), "
	 "x[7*y_0 + y_1 + 49*c + 7*k_0 + k_1 - 48] * w[980*f + 49*c + 7*k_0 + k_1], "
	 "0) for c:20, k_0:7, k_1:7\n return y\n}\n", IF_WIDE, 2},
	/* no window: with a stride; with few pixels; with many */
	{"system {\n x: f32[2,256,17,18] input 0\n w: f32[32,256] input 1\n"
	 " y: f32[2,32,9,9]\n conv a#0: y[n:2, f:32, y_0:9, y_1:9] += "
	 "x[78336*n + 36*y_0 + 2*y_1 + 306*c] * w[256*f + c] for c:256\n"
	 " return y\n}\n", ALWAYS, 0},
	{"system {\n x: f32[1,300,11,12] input 0\n w: f32[48,300] input 1\n"
	 " y: f32[1,48,11,12]\n conv a#0: y[f:48, y_0:11, y_1:12] += "
	 "x[12*y_0 + y_1 + 132*c] * w[300*f + c] for c:300\n return y\n}\n", IF_LARGE, 0},
	{"system {\n x: f32[1,256,17,18] input 0\n w: f32[32,256] input 1\n"
	 " y: f32[1,32,17,18]\n conv a#0: y[f:32, y_0:17, y_1:18] += "
	 "x[18*y_0 + y_1 + 306*c] * w[256*f + c] for c:256\n return y\n}\n", NEVER, 0},
	/* few terms: a window has enough of them, a stride alone has not */
	{"system {\n x: f32[1,3,21,23] input 0\n w: f32[32,3,7,7] input 1\n"
	 " y: f32[1,32,11,12]\n conv a#0: y[f:32, y_0:11, y_1:12] += "
	 "sel(inside(2*y_0 + k_0 - 3, 0, 21) and inside(2*y_1 + k_1 - 3, 0, 23), "
	 "x[46*y_0 + 2*y_1 + 483*c + 23*k_0 + k_1 - 72] * "
	 "w[147*f + 49*c + 7*k_0 + k_1], 0) for c:3, k_0:7, k_1:7\n return y\n}\n",
		ALWAYS, 2},
	{"system {\n x: f32[2,200,17,18] input 0\n w: f32[32,200] input 1\n"
	 " y: f32[2,32,9,9]\n conv a#0: y[n:2, f:32, y_0:9, y_1:9] += "
	 "x[61200*n + 36*y_0 + 2*y_1 + 306*c] * w[200*f + c] for c:200\n"
	 " return y\n}\n", NEVER, 0},
	/* .. nor have channels that are counted by two variables */
	{"system {\n x: f32[1,200,126] input 0\n w: f32[32,200] input 1\n"
	 " y: f32[1,32,126]\n conv a#0: y[f:32, z:126] += x[z + 126*c + 12600*h] * "
	 "w[200*f + 2*c + h] for c:100, h:2\n return y\n}\n", NEVER, 0},
	/* too few pixels, terms, or filters */
	{"system {\n x: f32[1,96,5] input 0\n w: f32[32,96,3] input 1\n"
	 " y: f32[1,32,5]\n conv a#0: y[f:32, z:5] += sel(inside(z + k - 1, 0, 5), "
	 "x[z + 5*c + k - 1] * w[288*f + 3*c + k], 0) for c:96, k:3\n return y\n}\n",
		NEVER, 0},
	{"system {\n x: f32[1,16,30] input 0\n w: f32[32,16,3] input 1\n"
	 " y: f32[1,32,30]\n conv a#0: y[f:32, z:30] += sel(inside(z + k - 1, 0, 30), "
	 "x[z + 30*c + k - 1] * w[48*f + 3*c + k], 0) for c:16, k:3\n return y\n}\n",
		NEVER, 0},
	{"system {\n x: f32[1,96,30] input 0\n w: f32[8,96,3] input 1\n"
	 " y: f32[1,8,30]\n conv a#0: y[f:8, z:30] += sel(inside(z + k - 1, 0, 30), "
	 "x[z + 30*c + k - 1] * w[288*f + 3*c + k], 0) for c:96, k:3\n return y\n}\n",
		NEVER, 0},
};

/* How data is chosen. */
enum { NUMBERS, SPECIAL, N_DATA };

static void **inputs(arena *a, ir_system *s, int32_t how)
{
	static const double special[] = {(double)INFINITY, -(double)INFINITY,
		(double)NAN};
	void **in = arena_array(a, void *, s->input.n + 1);
	uint64_t seed = 3;

	for (int32_t i = 0; i < s->input.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->input.at[i]];

		in[i] = arena_alloc(a, (size_t)t->numel + 1, dtype_size(t->dtype));
		for (int64_t j = 0; j < t->numel; j++) {
			double v;

			seed = hash_bytes(&seed, sizeof seed, (uint64_t)j);
			v = (double)(int64_t)(seed % 2000) / 1000 - 1;
			/* a few, so that most sums stay finite */
			if (how == SPECIAL && seed / 2000 % 997 == 0)
				v = special[seed / 2000 / 997 % 3];
			dtype_store_f64(t->dtype, in[i], j, v);
		}
	}
	return in;
}

struct job {
	const struct slid *of;
	int32_t data;
};

static int32_t clips_below(const loop_node *n)
{
	int32_t clips = n->kind == LOOP_TILE ? n->n_clip : 0;

	for (int32_t i = 0; i < n->n_child; i++)
		clips += clips_below(n->child[i]);
	return clips;
}

/* Are pixels rows of the tiles? *clips: of those; *turned: are squares of sums turned? */
static bool is_slid(arena *a, ir_system *s, fuse_plan *p, const machine *m,
	int32_t *clips, bool *turned)
{
	bool found = false;

	*clips = 0;
	*turned = false;

	for (int32_t i = 0; i < p->kernel.n; i++) {
		loop_kernel *k = loop_build(a, s, p->kernel.at[i], false);

		loop_schedule(k, m);
		for (int32_t d = 0; d < k->decision.n; d++) {
			found |= k->decision.at[d].kind == DECIDE_TURN_SLIDE;
			*turned |= k->decision.at[d].kind == DECIDE_SQUARES_SUMS;
		}
		for (int32_t j = 0; j < k->n_phases; j++)
			for (int32_t r = 0; r < k->phase[j].n_roots; r++)
				*clips += clips_below(k->phase[j].root[r]);
	}
	return found;
}

static void compare(const sys_tensor *t, const void *x, const void *y)
{
	for (int64_t i = 0; i < t->numel; i++) {
		double a = dtype_load_f64(t->dtype, x, i);
		double b = dtype_load_f64(t->dtype, y, i);

		if (a == b || (isnan(a) && isnan(b)))
			continue;
		if (!(fabs(a - b) <= 1e-4 * (1 + fabs(a))))
			fail_msg("%s[%lld] is %g, not %g", t->name, (long long)i,
				b, a);
	}
}

static void run_on(arena *a, const struct job *j, ir_system *s,
	const void *const *in, void **want, bool wide)
{
	machine m = *machine_of_c(wide ? 64 : 32, wide ? 32 : 16, MACHINE_ALL_DOTS);
	struct run_options o = {.cc = wide ? "gcc" : "gcc -march=haswell",
		.machine = &m,
		.backwards = j->data == SPECIAL};
	bool taken = j->of->taken == ALWAYS || (j->of->taken == IF_WIDE && wide) ||
		     /* caches are small */
		     (j->of->taken == IF_LARGE && j->data == SPECIAL);
	const fuse_options f = {0};
	fuse_plan *p;
	bool turned, follows = strstr(j->of->text, "relu") != NULL;
	int32_t clips;
	void **got;

	m.product.turned_rows = 4;
	if (!wide) /* as if its registers held enough rows */
		m.product.slide_pixels = (16 - 4) / 2;
	if (j->data == SPECIAL) { /* sums are in several blocks, panels in chunks of theirs */
		m.product.window_tiles = 2;
		m.memory[MACHINE_L1].bytes = 4096;
		m.memory[MACHINE_L2].bytes = 16384;
	}
	p = fuse_partition(a, s, &m, &f);
	fuse_verify(p);
	if (taken) {
		got = run_kernels(a, s, p, in, &o);
		for (int32_t i = 0; i < s->output.n; i++)
			compare(&s->tensor.at[s->output.at[i]],
				want[s->output.at[i]], got[s->output.at[i]]);
	}
	if (is_slid(a, s, p, &m, &clips, &turned) != taken)
		fail_msg("pixels are%s rows of %s", taken ? " not" : "",
			j->of->text);
	if (turned != (taken && follows))
		fail_msg("sums are%s turned: %s", follows ? " not" : "", j->of->text);
	if (wide && clips != j->of->clips)
		fail_msg("%d clips, not %d: %s", clips, j->of->clips, j->of->text);
}

static void run_job(arena *a, void *arg)
{
	const struct job *j = arg;
	ir_system *s[2];
	const void *const *in;
	void **want;

	for (int32_t k = 0; k < 2; k++) {
		s[k] = ir_system_parse(a, ix_new(a), j->of->text,
			strlen(j->of->text), "t");
		for (int32_t i = 0; i < s[k]->input.n; i++) {
			sys_tensor *t = &s[k]->tensor.at[s[k]->input.at[i]];

			t->steady = strcmp(t->name, "w") == 0;
		}
	}
	in = (const void *const *)inputs(a, s[0], j->data);
	want = eval_system(a, s[0], in);
	for (int32_t k = 0; k < 2; k++)
		run_on(a, j, s[k], in, want, k == 0);
}

/* A machine whose vectors have one element, and one whose have four. The sum is long
 * enough for few registers. */
static void no_vectors(arena *a, void *arg)
{
	static const char text[] =
		"system {\n x: f32[1,256,17,18] input 0\n w: f32[64,256,3,3] input 1\n"
		" y: f32[1,64,15,16]\n conv a#0: y[f:64, y_0:15, y_1:16] += "
		"x[18*y_0 + y_1 + 306*c + 18*k_0 + k_1] * "
		"w[2304*f + 9*c + 3*k_0 + k_1] for c:256, k_0:3, k_1:3\n"
		" return y\n}\n";
	const machine *m = machine_find("c/scalar");
	const fuse_options f = {0};
	ir_system *s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
	fuse_plan *p;
	int32_t clips;
	bool turned;

	(void)arg;
	s->tensor.at[s->input.at[1]].steady = true;
	p = fuse_partition(a, s, m, &f);
	assert_false(is_slid(a, s, p, m, &clips, &turned));
	assert_true(is_slid(a, s, p, machine_find("c/sse"), &clips, &turned));
}

static void test_no_vectors(void **state)
{
	(void)state;
	assert_int_equal(unit_run(no_vectors, NULL, 0, NULL), TN_OK);
}

static const loop_node *tile_below(const loop_node *n)
{
	const loop_node *t = n->kind == LOOP_TILE ? n : NULL;

	for (int32_t i = 0; i < n->n_child && t == NULL; i++)
		t = tile_below(n->child[i]);
	return t;
}

/* The tile of a convolution with windows of 3 by 3, on pictures of side * side. */
static const loop_node *tile_of(arena *a, int32_t pictures, int32_t side, const machine *m)
{
	const char *text = arena_printf(a,
		"system {\n x: f32[%d,64,%d,%d] input 0\n w: f32[128,64,3,3] input 1\n"
		" y: f32[%d,128,%d,%d]\n conv a#0: y[n:%d, f:128, y_0:%d, y_1:%d] += "
		"sel(inside(y_0 + k_0 - 1, 0, %d) and inside(y_1 + k_1 - 1, 0, %d), "
		"x[%d*n + %d*y_0 + y_1 + %d*c + %d*k_0 + k_1 - %d] * "
		"w[576*f + 9*c + 3*k_0 + k_1], 0) for c:64, k_0:3, k_1:3\n return y\n}\n",
		pictures, side, side, pictures, side, side, pictures, side, side, side,
		side, 64 * side * side, side, side * side, side, side + 1);
	const fuse_options f = {0};
	ir_system *s = ir_system_parse(a, ix_new(a), text, strlen(text), "t");
	fuse_plan *p;
	const loop_node *t = NULL;

	s->tensor.at[s->input.at[1]].steady = true;
	p = fuse_partition(a, s, m, &f);
	for (int32_t i = 0; i < p->kernel.n; i++) {
		loop_kernel *k = loop_build(a, s, p->kernel.at[i], false);

		loop_schedule(k, m);
		for (int32_t j = 0; j < k->n_phases && t == NULL; j++)
			for (int32_t r = 0; r < k->phase[j].n_roots && t == NULL; r++)
				t = tile_below(k->phase[j].root[r]);
	}
	assert_non_null(t);
	return t;
}

/* The longest block of the variable around the tile. */
static int64_t longest(const loop_node *t, int32_t var)
{
	int64_t n = 0;

	for (; t != NULL; t = t->up)
		if (t->kind == LOOP_BLOCK && t->var == var && t->size > n)
			n = t->size;
	return n;
}

/* Filters that many tiles of a picture meet: a chunk has one panel of them, with as many
 * terms as part of the first cache holds. With few tiles it has all filters, however many
 * pictures there are. */
static void panels(arena *a, void *arg)
{
	const machine *m = machine_find("c/avx512");
	int64_t near = m->memory[MACHINE_L1].bytes / 4 * m->product.window_quarters;
	const loop_node *t = tile_of(a, 2, 28, m);

	(void)arg;
	assert_int_equal(longest(t, t->var), 32);
	assert_true(longest(t, t->sum[0]) * 9 * 32 * 4 <= near);
	assert_true(longest(t, t->sum[0]) * 9 * 32 * 4 >= near / 2);
	t = tile_of(a, 4, 14, m);
	assert_int_equal(longest(t, t->var), 128);
	assert_true(longest(t, t->sum[0]) * 9 * 32 * 4 > near);
}

static void test_panels(void **state)
{
	(void)state;
	assert_int_equal(unit_run(panels, NULL, 0, NULL), TN_OK);
}

static void test_slide(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
		for (int32_t data = 0; data < N_DATA; data++) {
			struct job j = {&systems[i], data};
			tn_diag d = {0};

			if (unit_run(run_job, &j, 0, &d) != TN_OK)
				fail_msg("system %zu: %s: %s\n%s", i, d.rule,
					d.text, d.extra);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slide),
		cmocka_unit_test(test_no_vectors),
		cmocka_unit_test(test_panels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
