/*
 * kern/: kernels are built, printed, read back, verified and run.
 */
#include "unit.h"
#include "kern_run.h"

#include "kern/kern.h"
#include "kern_texts.h"
#include "kern_wants.h"
#include "turned_text.h"

static int32_t scalar(const char *name)
{
	return ir_scalar_find(name, strlen(name));
}

/* ---- building ---- */

static void numbers(arena *a, void *arg)
{
	kern_kernel *k = kern_new(a, "k");
	kern_builder b = kern_build(k);
	int32_t p = kern_add_param(k, TN_F32, 100, true, -1);
	const kern_form *c, *f, *g;
	kern_val i, x;
	int64_t n;

	(void)arg;
	kern_open_phase(&b, 4, 0);
	c = kern_form_of(k, k->phase[0].chunk);
	f = kern_form_addc(k, kern_form_scale(k, c, 12), 5);
	/* forms are equal where their pointers are */
	g = kern_form_add(k, kern_form_scale(k, c, 5),
		kern_form_add(k, kern_form_scale(k, c, 7),
			kern_form_const(k, 5)));
	assert_ptr_equal(f, g);
	assert_true(kern_form_is_const(kern_form_sub(k, f, g), &n));
	assert_int_equal(n, 0);
	/* constants are folded, and integers known in the blocks around */
	assert_ptr_equal(kern_mod(&b, kern_form_const(k, -3), 4),
		kern_form_const(k, 1));
	assert_ptr_equal(kern_min(&b, f, kern_form_addc(k, f, 1)), f);
	g = kern_div(&b, c, 3);
	i = kern_for(&b, kern_form_const(k, 0), f, 1, TN_I64);
	assert_ptr_equal(kern_div(&b, c, 3), g);
	f = kern_div(&b, kern_form_of(k, i), 3);
	assert_ptr_not_equal(f, g);
	assert_int_equal(k->phase[0].body.list.n, 2);
	kern_close(&b);
	/* .. not of a block that is closed */
	kern_for(&b, kern_form_const(k, 0), g, 1, TN_I64);
	assert_ptr_not_equal(kern_div(&b, kern_form_of(k, i), 3), f);
	kern_close(&b);
	/* loads are not numbered, pure values on request */
	x = kern_load(k, kern_num(TN_F32, 1), &(kern_access){p, c, 1, 0, 0, 0, 0});
	assert_int_equal(kern_let(&b, x), x);
	b.number = true;
	i = kern_let(&b, kern_call(k, scalar("exp"), kern_num(TN_F32, 1), &x));
	assert_int_equal(kern_let(&b, kern_call(k, scalar("exp"),
					     kern_num(TN_F32, 1), &x)),
		i);
	x = kern_load(k, kern_num(TN_F32, 1), &(kern_access){p, c, 1, 0, 0, 0, 0});
	assert_int_equal(kern_let(&b, x), x);
	assert_int_equal(kern_const_f(k, TN_F32, 0.5),
		kern_const_f(k, TN_F32, 0.5));
	assert_int_not_equal(kern_const_f(k, TN_F32, 0.0),
		kern_const_f(k, TN_F32, -0.0));
	kern_close(&b);
	assert_int_equal(b.block.n, 0);
}

static tn_status run(void (*fn)(arena *a, void *arg), void *arg, tn_diag *d)
{
	return unit_run(fn, arg, 0, d);
}

static void builds(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (run(numbers, NULL, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

/* ---- text ---- */

static const char *const texts[] = {
	relu, tile, stencil, split, gather, scan, turn, step, dealt, kept, digits,
	turned, parts, bytes, tiled};

static void again(arena *a, void *arg)
{
	const char *text = *(const char **)arg;
	kern_kernel *k = kern_parse(a, text, strlen(text), "text");
	str s = str_new(a);
	int number;

	assert_int_equal(sscanf(text, "kernel %d", &number), 1);
	kern_verify(k);
	kern_print(&s, k, number);
	assert_string_equal(s.at, text);
}

static void reads_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const char *text = texts[i];
		tn_diag d = {0};

		if (run(again, &text, &d) != TN_OK)
			fail_msg("%s: %s:%d %s\n%s", d.rule, d.file, d.line,
				d.text, d.extra);
	}
}

/* ---- running ---- */

static const struct meaning {
	const char *text;
	void (*want)(struct data *d);
	double within;
} meanings[] = {{relu, want_relu, 0}, {tile, want_tile, 1e-5},
	{stencil, want_stencil, 1e-7}, {split, want_split, 1e-4},
	{gather, want_gather, 1e-2}, {scan, want_scan, 1e-4},
	{turn, want_turn, 0}, {step, want_step, 1e-6},
	{blocks, want_blocks, 0}, {mma, want_mma, 1e-4},
	{dealt, want_dealt, 0}, {stages, want_stages, 0},
	{tail, want_tail, 1e-4}, {kept, want_kept, 1e-5}, {turned, want_turned, 1e-4}, {parts, want_parts, 1e-4},
	{digits, want_digits, 0}, {dots, want_dots, 1e-4},
	{tiled, want_tiled, 1e-4}, {pairs, want_pairs, 0}, {bytes, want_bytes, 0}};

static void *param_of(arena *a, const kern_kernel *k, int32_t i, struct data *d)
{
	const kern_array *p = &k->array.at[i];
	void *at = arena_alloc(a, (size_t)p->elems, 8);

	for (int32_t e = 0; e < p->elems && !p->out; e++) {
		double x = ((e * 7919 + i * 104729) % 2001 - 1000) / 512.0;

		if (dtype_is_float(p->dtype)) {
			dtype_store_f64(p->dtype, at, e, x);
			d->in[i][e] = dtype_load_f64(p->dtype, at, e);
		} else {
			int64_t n = p->dtype == TN_I8	? (e * 37 + 11) % 256 - 128
				    : p->dtype == TN_U8 ? e * 29 % 256
							: (3 * e) % 5;

			d->in[i][e] = (double)n;
			if (e < 32)
				d->id[e] = n;
			dtype_store_i64(p->dtype, at, e, n);
		}
	}
	return at;
}

static kern_kernel *parsed(arena *a, const char *text)
{
	return kern_parse(a, text, strlen(text), "text");
}

static void means(arena *a, void *arg)
{
	const struct meaning *m = arg;
	kern_kernel *k = parsed(a, m->text);
	struct data *d = arena_make(a, struct data);
	void *param[3];

	for (int32_t i = 0; i < k->n_params; i++)
		param[i] = param_of(a, k, i, d);
	if (k->array.at[0].in > 0)
		param[0] = param[k->array.at[0].in - 1];
	m->want(d);
	assert_int_equal(kern_run(a, k, param, 42), 0);
	for (int32_t i = 0; i < k->array.at[0].elems; i++) {
		double x = dtype_load_f64(k->array.at[0].dtype, param[0], i);

		if (x - d->out[i] > m->within || d->out[i] - x > m->within ||
			x != x)
			fail_msg("%s: element %d is %g, not %g", k->name, i, x,
				d->out[i]);
	}
}

static void runs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
		struct meaning m = meanings[i];
		tn_diag d = {0};

		if (run(means, &m, &d) != TN_OK)
			fail_msg("%s:%d %s", d.rule, d.line, d.text);
	}
}

/* Whose last index is 4294967295. */
static const char large[] = "kernel 0 large {\n"
			    "  param p0: f32[2] out\n"
			    "  param p1: f32[4294967296] in\n"
			    "  phase of 2 chunks {\n"
			    "    %0: f32 = load p1[4294967295*chunk]\n"
			    "    store p0[chunk] = %0\n"
			    "  }\n"
			    "}\n";

/* Lanes that take four neighbours each. */
static const char at_once[] = "kernel 0 wide {\n"
			   "  param p0: f32[256] out\n"
			   "  param p1: f32[256] in\n"
			   "  phase of 1 chunks {\n"
			   "    for %i0 = 0 .. 256 step 128 {\n"
			   "      together 4 %1: f32x32 = load p1[%i0] step 4\n"
			   "      %2: f32x32 = load p1[%i0 + 1] step 4\n"
			   "      %3: f32x32 = load p1[%i0 + 2] step 4\n"
			   "      %4: f32x32 = load p1[%i0 + 3] step 4\n"
			   "      together 4 store p0[%i0] step 4 = %1\n"
			   "      store p0[%i0 + 1] step 4 = %2\n"
			   "      store p0[%i0 + 2] step 4 = %3\n"
			   "      store p0[%i0 + 3] step 4 = %4\n"
			   "    }\n"
			   "  }\n"
			   "}\n";

static void verified(arena *a, void *arg)
{
	kern_kernel *k = parsed(a, arg);
	str s = str_new(a);

	kern_verify(k);
	kern_print(&s, k, 0);
	assert_string_equal(s.at, arg);
}

static void accepts(void **state)
{
	static char text[sizeof at_once];
	tn_diag d = {0};

	(void)state;
	memcpy(text, at_once, sizeof at_once);
	if (run(verified, text, &d) != TN_OK)
		fail_msg("%s:%d %s", d.rule, d.line, d.text);
}

/* ---- what is refused ---- */

static const struct edit {
	const char *name, *text, *from, *to, *rule;
} edits[] = {
	{"no statement", relu, "note relu", "notes relu", "syntax"},
	{"no instruction", relu, "relu %5", "rely %5", "name"},
	{"a value that is not there", relu, "relu %3", "relu %9", "name"},
	{"a value of a block that is closed", relu, "relu %5", "relu %3", "name"},
	{"a param behind other arrays", tile, "  bytes scratch",
		"  param p3: f32[4] in\n  bytes scratch", "param"},
	{"a bound that exceeds 64 bits", split, "%i1 = 256*chunk ..",
		"%i1 = 9223372036854775807*chunk ..", "number"},
	{"a value that is defined twice", relu, "%5: f32 = load",
		"%0: f32 = load", "name"},
	{"a register before its declaration", tile, "mad %12, %9, %r6",
		"mad %12, %9, %r15", "name"},
	{"an array that is not there", relu, "load p1[%i4]", "load p2[%i4]",
		"name"},
	{"arrays out of order", tile, "local b0", "local b1", "name"},
	{"twice as many lanes", relu, "%3: f32x16 = load", "%3: f32x32 = load",
		"bounds"},
	{"half as many lanes", relu, "%3: f32x16 = load", "%3: f32x8 = load",
		"type"},
	{"lanes that no vector has", relu, "%3: f32x16 = load",
		"%3: f32x24 = load", "syntax"},
	{"another dtype", relu, "%5: f32 = load", "%5: f64 = load", "type"},
	{"one lane where all are needed", tile, "mad %12, %9, %r6",
		"mad %11, %9, %r6", "type"},
	{"a mask of other bytes", stencil, "%6: m4x16 = ge %4, %5",
		"%6: m8x16 = ge %4, %5", "type"},
	{"half a type without widening", step, "mad %4, %3, %1",
		"mad %4, %2, %1", "type"},
	{"no condition", tile, "if %5 {", "if %4 {", "type"},
	{"what is set is no register", split, "set %r7 = add %r7, %9",
		"set %9 = add %r7, %9", "set"},
	{"a shuffle of lanes that are not there", split, "[8, 9, 10,",
		"[32, 9, 10,", "lanes"},
	{"a shuffle of a lane before the first", split, "[8, 9, 10,",
		"[-1, 9, 10,", "lanes"},
	{"more lanes live than there are", stencil, "load p1[47] part 13",
		"load p1[47] part 17", "lanes"},
	{"a lane that may not be there", stencil, "for %i9: i32 = 0 .. 16",
		"for %i9: i32 = 0 .. 17", "lanes"},
	{"a step of nothing", relu, "step 16 whole", "step 0 whole", "number"},
	{"a bound that is wider", relu, "%0: i64 = imin 256*chunk + 256, 1000",
		"%0: i64 = imin 256*chunk + 256, 1001", "bounds"},
	{"an end that is gone", relu, "%0: i64 = imin 256*chunk + 256, 1000",
		"%0: i64 = index 256*chunk + 256", "bounds"},
	{"no rest of whole vectors", relu, " step 16 whole after %e2",
		" step 16 after %e2", "bounds"},
	{"a guard that is wider", stencil, "inside %i0 - 1, 0, 46",
		"inside %i0 - 1, -1, 46", "bounds"},
	{"a guard that is dropped", scan, "%3: bool = inside %i1, 1, *",
		"%3: bool = inside %i1, 0, *", "bounds"},
	{"a guard of another lane", stencil, "%10: bool = lane %6, %i9",
		"%10: bool = lane %6, 15", "bounds"},
	{"a lane of the part too many", stencil, "load p1[47] part 13",
		"load p1[47] part 15", "bounds"},
	{"a mask with a lane too many", stencil,
		"%17: m4x16 = lanes [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0,",
		"%17: m4x16 = lanes [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,",
		"bounds"},
	{"a store of the lanes of a mask", stencil, "store p0[%i0] = ",
		"store p0[%i0] mask %6 = ", "type"},
	{"a condition of other extents", tile, "inside -%i3 + %4, 32, 33",
		"inside -%i3 + %4, 8, 33", "bounds"},
	{"a row too many", turn, "for %i0 = 0 .. 32 step 16",
		"for %i0 = 0 .. 48 step 16", "bounds"},
	{"an index that is not checked", gather, "160*%3 + %i4", "160*%2 + %i4",
		"check"},
	{"a check that is not there", gather, "check %2, 1", "check %2, 2",
		"check"},
	{"a wider check", gather, "ids in 0 .. 5", "ids in 0 .. 6", "bounds"},
	{"a store into what is read", relu, "store p0[%i4]", "store p1[%i4]",
		"write"},
	{"chunks that overlap", relu, "%0: i64 = imin 256*chunk + 256, 1000",
		"%0: i64 = imin 256*chunk + 272, 1000", "race"},
	{"chunks that lie on each other", tile, "store p0[80*chunk + %i3 + 16]",
		"store p0[40*chunk + %i3 + 16]", "race"},
	{"a digit of the chunk that is lost", gather,
		"store p0[160*%0 + 32*%1 + %i6]", "store p0[160*%0 + %i6]",
		"race"},
	{"pieces of another number", gather, "idiv chunk, 5", "idiv chunk, 6",
		"race"},
	{"a neighbour's element read", scan, "8*chunk .. 8*chunk + 8",
		"8*chunk .. 8*chunk + 9", "bounds"},
	{"a scan across chunks", scan, "of 8 chunks {\n    for %i0 = 8*chunk .. 8*chunk + 8",
		"of 64 chunks {\n    for %i0 = chunk .. imin", "syntax"},
	{"a row shared by two chunks", scan, "8*chunk .. 8*chunk + 8",
		"7*chunk .. 7*chunk + 8", "race"},
	{"phases that become one", split, "  }\n  phase of 1 chunks {\n", "",
		"race"},
	{"a sum that is joined in no order", split,
		"store q0[chunk] = f32 lane %r0, 0", "store q0[0] = f32 lane %r0, 0",
		"race"},
	{"read before it is written", split, "store q0[chunk] = f32 lane %r0, 0",
		"note nothing;", "order"},
	{"kept behind its reader", turn,
		"    for %i0 = 0 .. 32 step 16 {\n"
		"      turn f32x16 b0[%i0] rows 32 = p1[16*chunk + 48*%i0] rows 48\n"
		"    }\n",
		"", "order"},
	{"no room", tile, "bytes scratch 0, local 2560",
		"bytes scratch 0, local 2559", "room"},
	{"a place between elements", tile, "b0: f32[640] at 0",
		"b0: f32[640] at 2", "room"},
	{"no fence", relu, "    fence\n", "", "fence"},
	{"more than a copy", split, "phase of 4 chunks {",
		"phase of 4 chunks, copies p0 {", "copies"},
	{"another memory", step, "out inside p1", "out inside p2", "param"},
	{"a quotient of what may be negative", gather, "idiv chunk, 5",
		"idiv chunk - 1, 5", "number"},
	{"a loop that runs down in steps", tile, "0 .. 40 step 8 {",
		"0 .. 40 step 8 down {", "loop"},
	{"an unrolled loop of unknown length", relu, "for %i4 = %e2 .. %0 {",
		"for %i4 = %e2 .. %0 unroll {", "loop"},
	{"an unrolled loop that is long", tile, "for %i0 = 0 .. 16 {",
		"for %i0 = 0 .. 1000 unroll {", "loop"},
	{"an unrolled loop without an iteration", tile, "for %i0 = 0 .. 16 {",
		"for %i0 = 0 .. 0 unroll {", "loop"},
	{"an unrolled loop in steps", tile, "0 .. 40 step 8 {",
		"0 .. 40 step 8 unroll {", "loop"},
	{"an address in a register", tile, "load p1[32*chunk + %i8]",
		"load p1[32*chunk + %r6]", "form"},
	{"a loop's variable behind it", tile, "store p0[80*chunk + %i3] = %r6",
		"store p0[80*chunk + %i8] = %r6", "name"},
	{"cells that change hands without a barrier", blocks, "    barrier\n",
		"", "barrier"},
	{"warps that write the same cells", blocks, "store b0[%i0]",
		"store b0[0]", "race"},
	{"warps that write half of each other's cells", blocks,
		"for %i0 = 0 .. 64 step 16", "for %i0 = 0 .. 48 step 8",
		"race"},
	{"warps of a phase that has none", blocks, "1 chunks by 4 warps",
		"1 chunks", "warp"},
	{"memory that all warps write", blocks,
		"%i0 = 0 .. 64 step 16 by warp", "%i0 = 0 .. 64 step 16",
		"warp"},
	{"a barrier that some warps do not reach", blocks,
		"    }\n    barrier\n", "    barrier\n    }\n", "warp"},
	{"a register of all warps", blocks,
		"    for %i1 = 0 .. 64 step 16 by warp {\n"
		"      var %r2: f32 = zero\n",
		"    var %r2: f32 = zero\n"
		"    for %i1 = 0 .. 64 step 16 by warp {\n",
		"warp"},
	{"a register of each warp, of which two run three iterations", kept,
		"by 3 warps", "by 2 warps", "warp"},
	{"a register of each warp that all of them use", kept,
		"    for %i4 = 0 .. 3 by warp {\n",
		"    set %r0 = copy %r0\n    for %i4 = 0 .. 3 by warp {\n", "warp"},
	{"a register of each warp in a loop by warp", kept,
		"        set %r0 = add",
		"        var %r9: f32 = zero by warp\n        set %r0 = add",
		"warp"},
	{"a register of each warp of none", kept, " by 3 warps", "", "warp"},
	{"warps that are dealt out twice", blocks,
		"    for %i1 = 0 .. 64 step 16 by warp {\n",
		"    for %i1 = 0 .. 64 step 16 by warp {\n"
		"    for %i9 = 0 .. 4 by warp { }\n",
		"warp"},
	{"a loop by lane from another lane on", dealt, "%i4 = 0", "%i4 = 1",
		"loop"},
	{"a cell that all lanes write", dealt, "store t0[%i0]", "store t0[0]",
		"lane"},
	{"cells by digits that two lanes share", digits, "imod %i1, 4", "imod %i1, 3",
		"lane"},
	{"cells by digits that two stores share", digits,
		"store p0[8*%2 + 2*%3 + 1]", "store p0[8*%2 + 2*%3 + 2]",
		"lane"},
	{"a cell that another lane writes", dealt, "store t0[%i0] = %2",
		"store t0[%i0] = i64 load t0[5]", "lane"},
	{"another lane's lane", dealt, "set %r3[%i4]", "set %r3[-%i4 + 31]",
		"lane"},
	{"more lanes than iterations", dealt, "%i4 = 0 .. 32", "%i4 = 0 .. 16",
		"lane"},
	{"a loop in one by lane", dealt, "      %5: i64",
		"      for %i9 = 0 .. 2 { }\n      %5: i64", "lane"},
	{"a dot of half as many factors", dots, "dot %7, %5", "dot %3, %5",
		"type"},
	{"a dot into integers", dots, "var %r1: f32x16", "var %r1: i32x16",
		"type"},
	{"a zip of lanes of two dtypes", dots, "zip %3, %4", "zip %3, %r1",
		"type"},
	{"lanes that are repeated as others", dots, "%7: bf16x32",
		"%7: i16x32", "type"},
	{"a term more than the factors have", dots, "%i2 = 0 .. 14",
		"%i2 = 0 .. 18", "bounds"},
	{"tiles of f16", tiled, "p1: bf16", "p1: f16", "type"},
	{"sums of bf16 tiles in integers", tiled, "b1: f32", "b1: i32", "type"},
	{"sums of tiles as narrow as factors", tiled, "b1: f32", "b1: bf16", "type"},
	{"a condition of tiles that is a number", tiled, "zero %5", "zero %i4", "type"},
	{"columns that fill no tile register", tiled, "3 by 16 by 5", "3 by 12 by 5",
		"lanes"},
	{"more columns than tile registers have", tiled, "3 by 16 by 5",
		"3 by 48 by 5", "number"},
	{"more rows than tile registers have", tiled, "3 by 16 by 5", "33 by 16 by 5",
		"number"},
	{"rows of sums that overlap", tiled, "b1[0] rows 16", "b1[0] rows 15", "lanes"},
	{"sums beyond the array", tiled, "tiles b1[0]", "tiles b1[1]", "bounds"},
	{"sums in the memory of a factor", tiled, "f32[48] at 192", "f32[48] at 128",
		"order"},
	{"sums that nobody has begun", tiled, " zero %5", "", "order"},
	{"sums that begin when others have ended", tiled, "inside %i4, 0, 1",
		"inside %i4, 1, 2", "order"},
	{"rows of tiles beyond the array", tiled, "p1[0] rows 6", "p1[0] rows 7",
		"bounds"},
	{"more terms than rows have", tiled, "16 by 5", "16 by 7", "bounds"},
	{"groups beyond the array", tiled, "b0[0] rows 32", "b0[0] rows 34",
		"bounds"},
	{"groups that nobody has copied", tiled, "%i0 = 0 .. 4", "%i0 = 0 .. 2",
		"order"},
	{"pairs in rows of an odd length", pairs, "p0[0] rows 8",
		"p0[0] rows 7", "lanes"},
	{"pairs beyond the array", pairs, "p1[0] rows 8", "p1[8] rows 8",
		"bounds"},
	{"a matrix that is read without a barrier", mma, "    barrier\n", "",
		"barrier"},
	{"rows of a matrix that begin anywhere", mma, "of b0[%i11]",
		"of b0[%i11 + 1]", "lanes"},
	{"columns of a matrix that begin anywhere", turned, "of b0[0] columns",
		"of b0[4] columns", "lanes"},
	{"more columns of a matrix than were copied", turned,
		"for %i1 = 0 .. 32 by warp", "for %i1 = 0 .. 31 by warp", "order"},
	{"columns of a matrix beyond the array", turned, "b1[40*%i2] columns 40",
		"b1[40*%i2] columns 160", "bounds"},
	{"bytes whose terms do not adjoin", bytes, "b1[48*%i2] columns 48\n",
		"b1[48*%i2] rows 48\n", "lanes"},
	{"bytes and sums in f32", bytes, "var %r3: i32x32", "var %r3: f32x32",
		"type"},
	{"more bytes than an instruction has", bytes, "by 16 by 29",
		"by 16 by 33", "number"},
	{"bytes that nobody has copied", bytes, "for %i1 = 0 .. 32 by warp",
		"for %i1 = 0 .. 31 by warp", "order"},
	{"bytes beside bf16", bytes, "mma i8", "mma bf16", "type"},
	{"rows in f32 beside f16", parts, "mma bf16", "mma f16", "type"},
	{"rows of a matrix too near to each other", mma, "%i2] rows 40",
		"%i2] rows 36", "lanes"},
	{"factors of another dtype", mma, "mma bf16", "mma f16", "type"},
	{"sums that are no f32", mma, "var %r3: f32x32", "var %r3: f64x32",
		"type"},
	{"three registers", mma, "%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of",
		"%r3, %r4, %r5 of", "lanes"},
	{"more terms than there are", mma, "%i11 = 0 .. 32 step 16",
		"%i11 = 0 .. 80 step 16", "bounds"},
	{"terms that nobody has copied", mma, "for %i1 = 0 .. 32 by warp",
		"for %i1 = 0 .. 31 by warp", "order"},
	{"sums of two warps in one place", mma, "give p0[%i2] rows 32",
		"give p0[0] rows 32", "race"},
	{"a row of a matrix more than there are", tail, "part 13 by 16 by 16",
		"part 14 by 16 by 16", "order"},
	{"a term more than there are", tail, "part 13 by 15 by 5",
		"part 13 by 15 by 6", "order"},
	{"a part of more columns than registers", tail, "part 13 by 15 by 5",
		"part 13 by 17 by 5", "lanes"},
	{"a part of more terms than an instruction", tail, "part 13 by 15 by 5",
		"part 13 by 15 by 17", "number"},
	{"a row of sums that is outside", tail, "rows 32 part 13 by 16 =",
		"rows 32 part 14 by 16 =", "bounds"},
	{"sums of two warps in one column", tail, "rows 32 part 13 by 16 =",
		"rows 31 part 13 by 16 =", "race"},
	{"no wait for copies", stages, "      wait 0\n", "", "wait"},
	{"a wait for other copies", stages, "      wait 0\n",
		"      wait 1\n", "wait"},
	{"a wait behind its barrier", stages, "      wait 0\n      barrier\n",
		"      barrier\n      wait 0\n", "wait"},
	{"a group that nobody ends", stages, "    commit\n", "", "wait"},
	{"copies that the phase leaves", stages, "    wait 0\n  }", "  }",
		"wait"},
	{"a copy over what is read", stages,
		"      barrier\n      %4: bool", "      %4: bool", "barrier"},
	{"a copy over a copy of the same warp", stages,
		"      async b0[%i0] rows 4 = p1[%i0] rows 4, 2 by 4\n",
		"      async b0[%i0] rows 4 = p1[%i0] rows 4, 2 by 4\n"
		"      async b0[%i0] rows 4 = p1[%i0 + 16] rows 4, 2 by 4\n",
		"wait"},
	{"a copy over one of another iteration", stages,
		"      async b0[%i0] rows 4 = p1[%i0] rows 4, 2 by 4\n",
		"      for %i9 = 0 .. 2 { async b0[%i0] rows 4 = p1[%i0 + 16*%i9] rows 4, 2 by 4 }\n",
		"wait"},
	{"a copy into what others read", stages,
		"      commit\n      for %i3 = 0 .. 16 step 8 by warp {\n"
		"        store p0[%i1 + %i3] = f32x8 load b0[-%i3 + 8]\n"
		"      }\n      wait 0\n      barrier\n",
		"      commit\n      wait 0\n      barrier\n"
		"      for %i3 = 0 .. 16 step 8 by warp {\n"
		"        store p0[%i1 + %i3] = f32x8 load b0[-%i3 + 8]\n"
		"      }\n",
		"barrier"},
	{"a copy by all warps", stages, "for %i0 = 0 .. 16 step 8 by warp",
		"for %i0 = 0 .. 16 step 8", "warp"},
	{"copies of two warps in one place", stages, "async b0[%i0]",
		"async b0[0]", "race"},
	{"a copy of half of 16 bytes", stages, "p1[%i0] rows 4, 2 by 4",
		"p1[%i0] rows 4, 2 by 2", "lanes"},
	{"a copy from an odd element on", stages, "= p1[%i0] rows",
		"= p1[%i0 + 1] rows", "lanes"},
	{"rows that lie on each other", stages, "b0[%i0] rows 4 = p1[%i0] rows 4, 2 by 4",
		"b0[%i0] rows 4 = p1[%i0] rows 8, 2 by 8", "lanes"},
	{"a copy beyond the end", stages, "inside %i1, *, 32",
		"inside %i1, *, 33", "bounds"},
	{"a copy of a result", stages, "= p1[%i0] rows", "= p0[%i0] rows",
		"write"},
	{"a copy into a result", stages, "async b0[%i0]", "async p0[%i0]",
		"write"},
	{"a copy to another dtype", stages, "local b0: f32", "local b0: i32",
		"type"},
	{"a wait of one warp", stages, "      commit\n      for %i3 = 0 .. 16 step 8 by warp {\n",
		"      commit\n      for %i3 = 0 .. 16 step 8 by warp {\n        wait 0\n",
		"warp"},
	{"indices of 32 bits that have 33", large, "  phase",
		"  indices i32\n  phase", "number"},
	{"indices of 16 bits", relu, "  phase", "  indices i16\n  phase",
		"syntax"},
	{"two of four neighbours", at_once, "together 4 %1", "together 2 %1",
		"lanes"},
	{"neighbours from an odd element on", at_once, "%i0 = 0 ..", "%i0 = 1 ..",
		"lanes"},
	{"a neighbour that is left out", at_once, "load p1[%i0 + 1]",
		"load p1[%i0 + 2]", "lanes"},
	{"a load of neighbours that is no load", at_once,
		"%2: f32x32 = load p1[%i0 + 1] step 4",
		"%2: f32x32 = exp %1", "lanes"},
	{"stored before it is there", at_once, "store p0[%i0 + 1] step 4 = %2",
		"store p0[%i0 + 1] step 4 = f32x32 exp %2", "lanes"},
	{"one warp of a block", blocks, "by 4 warps", "by 1 warps", "number"},
};

struct planted {
	const struct edit *e;
	bool run; /* not verified, but run */
};

static void plant(arena *a, void *arg)
{
	const struct planted *p = arg;
	const struct edit *e = p->e;
	const char *at = strstr(e->text, e->from);
	str s = str_new(a);
	kern_kernel *k;
	struct data *d = arena_make(a, struct data);
	void *param[3];

	if (at == NULL)
		env_bug(arena_env(a), "edit", "no \"%s\"", e->from);
	str_addn(&s, e->text, (size_t)(at - e->text));
	str_add(&s, e->to);
	str_add(&s, at + strlen(e->from));
	k = kern_parse(a, s.at, s.n, "planted");
	for (int32_t i = 0; p->run && i < k->n_params; i++)
		param[i] = param_of(a, k, i, d);
	if (p->run)
		(void)kern_run(a, k, param, 7);
	else
		kern_verify(k);
}

static void refuses(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		struct planted p = {.e = &edits[i]};
		tn_diag d = {0};
		tn_status s = run(plant, &p, &d);

		if (s != TN_EINVAL || strncmp(d.rule, "kern.", 5) != 0 ||
			strcmp(d.rule + 5, p.e->rule) != 0) {
			print_error("%s: status %d, rule %s, wanted kern.%s: %s\n",
				p.e->name, s, d.rule, p.e->rule, d.text);
			bad++;
		} else if (d.line < 1 && strcmp(p.e->rule, "room") != 0 &&
			   strcmp(p.e->rule, "param") != 0) {
			print_error("%s: no line: %s\n", p.e->name, d.text);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* What the verifier refuses, run without it: the interpreter finds it, too. */
static void stumbles(void **state)
{
	static const char *const names[] = {"a bound that is wider",
		"an end that is gone", "no rest of whole vectors",
		"a guard that is dropped", "a mask with a lane too many",
		"a condition of other extents", "a row too many",
		"chunks that overlap", "chunks that lie on each other",
		"a digit of the chunk that is lost", "phases that become one",
		"a sum that is joined in no order", "read before it is written",
		"a row shared by two chunks",
		"cells that change hands without a barrier",
		"warps that write half of each other's cells",
		"no wait for copies", "a wait for other copies",
		"a group that nobody ends",
		"copies of two warps in one place",
		"a copy over a copy of the same warp",
		"a copy over one of another iteration"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct planted p = {.run = true};
		tn_diag d = {0};
		tn_status s;

		for (size_t j = 0; j < sizeof edits / sizeof *edits; j++)
			if (strcmp(edits[j].name, names[i]) == 0)
				p.e = &edits[j];
		assert_non_null(p.e);
		s = run(plant, &p, &d);
		if (s != TN_EINTERNAL || strcmp(d.rule, "kern.run") != 0 ||
			d.line < 1)
			fail_msg("%s: status %d, %s: %s", names[i], s, d.rule,
				d.text);
	}
}

static void check_own(arena *a, void *arg)
{
	const struct edit *e = arg;
	const char *at = strstr(e->text, e->from);
	str s = str_new(a);

	str_addn(&s, e->text, (size_t)(at - e->text));
	str_add(&s, e->to);
	str_add(&s, at + strlen(e->from));
	kern_verify_text(parsed(a, s.at), 0);
}

/* A kernel of Tenon's own that is wrong is no error of the user's; the line is in
 * the message. */
static void blames(void **state)
{
	struct edit wide = {"", relu, "imin 256*chunk + 256, 1000",
		"imin 256*chunk + 256, 1001", "bounds"};
	struct edit right = {"", relu, "imin", "imin", ""};
	tn_diag d = {0};

	(void)state;
	assert_int_equal(run(check_own, &wide, &d), TN_EINTERNAL);
	assert_string_equal(d.rule, "kern.bounds");
	assert_non_null(strstr(d.text, "p1 (f32[1000])"));
	assert_non_null(strstr(d.text, ": %5: f32 = load p1[%i4]"));
	assert_int_equal(run(check_own, &right, &d), TN_OK);
}

/* An index that is outside sets the error, and memory is not left. */
static void outside(arena *a, void *arg)
{
	kern_kernel *k = parsed(a, gather);
	struct data *d = arena_make(a, struct data);
	void *param[3];

	(void)arg;
	for (int32_t i = 0; i < 3; i++)
		param[i] = param_of(a, k, i, d);
	((int64_t *)param[2])[3] = 5;
	assert_int_equal(kern_run(a, k, param, 1), 1);
	((int64_t *)param[2])[3] = -1;
	assert_int_equal(kern_run(a, k, param, 2), 1);
	((int64_t *)param[2])[3] = 4;
	assert_int_equal(kern_run(a, k, param, 3), 0);
}

static void checks(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (run(outside, NULL, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builds),
		cmocka_unit_test(reads_back),
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses),
		cmocka_unit_test(runs),
		cmocka_unit_test(stumbles),
		cmocka_unit_test(blames),
		cmocka_unit_test(checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
