/* unify.c, attrs.c, index.c, body.c: shapes, dtypes, and every message. */
#include "unit.h"

#include "row_call.h"

struct one {
	const char *row, *types, *attrs, *want, *text;
};

static void call(arena *a, void *arg)
{
	const struct one *c = arg;
	ir_inst *p = row_call(a, ir_table_new(a), c->row, c->types, c->attrs);

	assert_string_equal(call_results(a, p), c->want);
}

static const struct one good[] = {
	{"exp", "f32[2,3]", "", "f32[2,3]", ""},
	{"add", "f32[2,1] f32[3]", "", "f32[2,3]", ""},
	{"add", "i8[0,3] i8[1,3]", "", "i8[0,3]", ""},
	{"add", "f64[] f64[]", "", "f64[]", ""},
	{"lt", "i64[4] i64[]", "", "bool[4]", ""},
	{"where", "bool[2,1] f16[3] f16[]", "", "f16[2,3]", ""},
	{"matmul", "f32[5,1,2,3] f32[7,3,4]", "", "f32[5,7,2,4]", ""},
	{"reduce_sum", "f16[2,3,4]", "axes=[-1,0]", "f16[3]", ""},
	{"reduce_sum", "i8[2,3]", "", "i8[]", ""},
	{"reduce_sum", "i32[2,3]", "axes=[0], keep=1", "i32[1,3]", ""},
	{"reduce_sum", "i32[2,3]", "axes=1", "i32[2]", ""},
	{"reduce_mean", "bf16[2,0]", "axes=[1]", "bf16[2]", ""},
	{"argmax", "f16[2,3]", "axis=-1", "i64[2]", ""},
	{"moments", "f16[2,3]", "", "f16[] f16[]", ""},
	{"transpose", "u8[2,3,4]", "perm=[2,0,-2]", "u8[4,2,3]", ""},
	{"reshape", "bool[2,3]", "shape=[3,1,2]", "bool[3,1,2]", ""},
	{"reshape", "bool[6]", "shape=6", "bool[6]", ""},
	{"reshape", "f32[0,3]", "shape=[7,0]", "f32[7,0]", ""},
	{"slice", "f32[9,5]", "axes=[1], start=[1], count=[2], step=[2]",
		"f32[9,2]", ""},
	{"slice", "f32[9]", "start=[8], count=[3], step=[-4]", "f32[3]", ""},
	{"flip", "f32[2,3]", "axes=[0]", "f32[2,3]", ""},
	{"roll", "f32[0,3]", "shift=[1,2]", "f32[0,3]", ""},
	{"pad", "f32[2,3]", "lo=[1,0], hi=[-1,2]", "f32[2,5]", ""},
	{"squeeze", "f32[1,3,1]", "axes=[0,2]", "f32[3]", ""},
	{"take", "f32[2,3,4] i32[5,6]", "axis=1", "f32[2,5,6,4]", ""},
	{"gather_nd", "i64[7,2] f32[2,3,4]", "", "f32[7,4]", ""},
	{"conv", "f32[1,4,8,8] f32[6,2,3,3]",
		"groups=2, stride=2, lo=1, hi=[1,1]", "f32[1,6,4,4]", ""},
	{"conv", "f32[1,4] f32[6,4]", "", "f32[1,6]", ""},
	{"conv_transpose", "f32[1,6,4] f32[6,2,3]", "stride=2", "f32[1,2,9]",
		""},
	{"group_norm", "f32[2,4,5] f32[4] f32[4]", "groups=2", "f32[2,4,5]",
		""},
	{"batch_norm", "f16[2,3,4] f16[3] f16[3] f16[3] f16[3]", "",
		"f16[2,3,4] f16[3] f16[3]", ""},
	{"attention", "f16[2,4,8] f16[2,5,8] f16[2,5,6]", "scale=0.5, causal=1",
		"f16[2,4,6]", ""},
	{"cumsum", "i32[3,4]", "axis=1", "i32[3,4]", ""},
	{"iota", "", "shape=[2,3], axis=1", "i64[2,3]", ""},
	{"fill", "", "shape=[2], value=1.5, dtype=f16", "f16[2]", ""},
	{"one_hot", "i32[4]", "depth=3", "f32[4,3]", ""},
	{"histogram", "i32[4,5]", "bins=3", "i64[3]", ""},
	{"uniform", "i64[]", "shape=[3]", "f32[3]", ""},
	{"dropout", "bf16[3] i32[]", "", "bf16[3]", ""},
	{"topk", "f32[2,9]", "count=3", "f32[2,3] i64[2,3]", ""},
	{"nonzero", "f32[2,3]", "", "i64[6,2] i64[]", ""},
	{"concat", "f32[2,3] f32[2,0] f32[2,4]", "axis=-1", "f32[2,7]", ""},
	{"stack", "i8[2,3] i8[2,3]", "axis=-1", "i8[2,3,2]", ""},
	{"stack", "i8[] i8[]", "", "i8[2]", ""},
	{"split", "f32[2,5]", "axis=1, sizes=[1,4]", "f32[2,1] f32[2,4]", ""},
	{"split", "f32[5]", "parts=3", "f32[2] f32[2] f32[1]", ""},
	{"unbind", "f32[2,3]", "axis=0", "f32[3] f32[3]", ""},
	{"einsum", "f32[2,3] f32[3,4]", "equation=\"ij, jk -> ik\"",
		"f32[2,4]", ""},
	{"einsum", "f32[2,3] f32[3,4]", "equation=\"ij,jk\"", "f32[2,4]", ""},
	{"einsum", "f32[5,2,3] f32[3,4]", "equation=\"...ij,jk->...ik\"",
		"f32[5,2,4]", ""},
	{"einsum", "f32[1,3] f32[2,3]", "equation=\"ij,ij->i\"", "f32[2]", ""},
	{"einsum", "f32[4,4]", "equation=\"ii->i\"", "f32[4]", ""},
	{"einsum", "f32[4,4]", "equation=\"ii\"", "f32[]", ""},
	{"einsum", "f32[2,3] f32[3,4] f32[4,5]", "equation=\"ab,bc,cd->ad\"",
		"f32[2,5]", ""},
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		tn_diag d = {0};
		struct one c = good[i];

		if (unit_run(call, &c, 0, &d) != TN_OK)
			fail_msg("%s(%s; %s): %s %s\n%s", c.row, c.types,
				c.attrs, d.rule, d.text, d.extra);
	}
}

/* rule and message; those of the specification word for word */
static const struct one bad[] = {
	{"matmul", "f32[8,16] f32[32,4]", "", "matmul.k",
		"matmul: k is 16 in operand x: f32[8,16] but 32 in operand "
		"y: f32[32,4]"},
	{"trace", "f32[2,3]", "", "trace.i",
		"trace: i is 2 but also 3 in operand x: f32[2,3]"},
	{"group_norm", "f32[2,3] f32[3] f32[3]", "groups=2", "group_norm.c",
		"group_norm: extent 3 of operand x: f32[2,3] is not "
		"divisible by 2"},
	{"matmul", "f32[2] f32[2,2]", "", "matmul.x",
		"matmul: operand x: f32[2] has rank 1, but at least rank 2 "
		"is needed"},
	{"add", "f32[4,3] f32[4,2]", "", "add.i",
		"add: operand x: f32[4,3] and operand y: f32[4,2] do not "
		"broadcast: i..[1] is 3 in the one, 2 in the other; "
		"accepted are equal extents, or 1"},
	{"outer", "f32[2,2] f32[2]", "", "outer.x",
		"outer: operand x: f32[2,2] has rank 2, but rank 1 is "
		"needed"},
	{"add", "f32[2] i32[2]", "", "add.dtype",
		"add: operand x: f32[2] and operand y: i32[2] differ in "
		"dtype: cast one explicitly"},
	{"exp", "i32[2]", "", "exp.dtype",
		"exp: operand x: i32[2] must have a float dtype"},
	{"reduce_sum", "bool[2]", "", "reduce_sum.dtype",
		"reduce_sum: operand x: bool[2] must have a numeric dtype"},
	{"eq", "f32[2] f64[2]", "", "eq.dtype",
		"eq: the dtypes f32 and f64 differ: cast one of the values (operand x: "
		"f32[2], operand y: f64[2])"},
	{"add", "f32[2]", "", "add.operands",
		"add: it needs 2 operands, not 1"},
	{"softmax", "f32[2,3]", "axis=2", "softmax.axis",
		"softmax: axis is 2, but operand x: f32[2,3] has rank 2: accepted are -2 .. 1"},
	{"softmax", "f32[]", "", "softmax.axis",
		"softmax: operand x: f32[] has rank 0, so it has no axis -1"},
	{"reduce_sum", "f32[2,3]", "axes=[1,-1]", "reduce_sum.axes",
		"reduce_sum: axis 1 occurs in axes twice"},
	{"reduce_sum", "f32[2,3]", "keep=2", "reduce_sum.keep",
		"reduce_sum: attribute keep must be 0 or 1, not 2"},
	{"reduce_sum", "f32[2,3]", "axis=1", "reduce_sum.axis",
		"reduce_sum: there is no attribute axis; its attributes: axes, "
		"keep"},
	{"reduce_sum", "f32[2,3]", "keep=1, keep=1", "reduce_sum.keep",
		"reduce_sum: attribute keep is given twice"},
	{"transpose", "f32[2,3]", "perm=[0]", "transpose.perm",
		"transpose: perm has 1 entries, but operand x: f32[2,3] "
		"has rank 2"},
	{"transpose", "f32[2,3]", "", "transpose.perm",
		"transpose: attribute perm (perm) is missing"},
	{"reshape", "f32[2,3]", "shape=[4]", "reshape.size",
		"reshape: operand x: f32[2,3] has 6 elements, but o has 4"},
	{"reshape", "f32[2]", "shape=[-1]", "reshape.i",
		"reshape: i would have extent -1 (operand x: f32[2])"},
	{"reshape", "f32[2]", "shape=[1,1,1,1,1,1,1,1,2]", "reshape.i",
		"reshape: i.. would have 9 axes (operand x: f32[2])"},
	{"slice", "f32[4]", "start=[4]", "slice.check",
		"slice: start < #d.. + (count == 0 ? 1 : 0) does not hold "
		"for axis 0 (operand x: f32[4])"},
	{"slice", "f32[4,5]", "axes=[0], start=[1,2]", "slice.start",
		"slice: start has 2 entries, but axes has 1"},
	{"conv", "f32[1,2,3] f32[4,2,5]", "", "conv.y",
		"conv: y would have extent -1 (operand x: f32[1,2,3], "
		"operand w: f32[4,2,5])"},
	{"conv", "f32[1,2,9] f32[4,2,3]", "stride=0", "conv.check",
		"conv: stride > 0 does not hold (operand x: f32[1,2,9], "
		"operand w: f32[4,2,3])"},
	{"conv", "f32[1,2,9] f32[4,2,3]", "groups=0", "conv.g",
		"conv: g is 0, but a digit must have at least one value"},
	{"conv", "f32[1,2,9,9] f32[4,2,3,3]", "stride=[1,2,3]", "conv.length",
		"conv: the packs have different lengths, 2 and 3 (operand x: "
		"f32[1,2,9,9], operand w: f32[4,2,3,3])"},
	{"argmax", "f32[2,0]", "axis=1", "argmax.check",
		"argmax: #i..@axis > 0 does not hold (operand x: f32[2,0])"},
	{"fill", "", "shape=[281474976710656,2], value=0", "fill.size",
		"fill: o would have more than 2^48 elements"},
	{"tile", "f32[9]", "reps=[9223372036854775807]", "tile.overflow",
		"tile: integer arithmetic overflows 64 bits"},
	{"clip", "i32[2]", "lo=0.5", "clip.dtype",
		"clip: 0.5 is not a value of i32 (operand x: i32[2])"},
	{"masked_fill", "u8[2] bool[2]", "value=300", "masked_fill.dtype",
		"masked_fill: 300 is not a value of u8 (operand x: u8[2], "
		"operand c: bool[2])"},
	{"concat", "f32[2] i32[2]", "", "concat.dtype",
		"concat: the dtypes f32 and i32 differ: cast one of the values (operand "
		"x0: f32[2], operand x1: i32[2])"},
	{"concat", "f32[2] f32[2]", "axis=1", "concat.axis",
		"concat: axis is 1, but operand x0: f32[2] allows -1 .. 0"},
	{"concat", "f32[2,3] f32[3,3]", "axis=1", "concat.a",
		"concat: a..[0] is 2 in operand x0: f32[2,3] but 3 in "
		"operand x1: f32[3,3]"},
	{"split", "f32[5]", "sizes=[2,2]", "split.sizes",
		"split: the sizes add up to 4, but axis 0 of operand x: "
		"f32[5] has extent 5"},
	{"einsum", "f32[2,3] f32[4,5]", "equation=\"ij,jk->ik\"", "einsum.j",
		"einsum: j is 3 in operand x0: f32[2,3] but 4 in operand "
		"x1: f32[4,5]"},
	{"einsum", "f32[2,3]", "equation=\"ij,jk->ik\"", "einsum.operands",
		"einsum: there are more terms than operands in "
		"\"ij,jk->ik\""},
	{"einsum", "f32[2,3]", "equation=\"ij->iz\"", "einsum.equation",
		"einsum: a letter of the result is in no term in \"ij->iz\""},
	{"einsum", "f32[2,3]", "equation=\"ij->ii\"", "einsum.equation",
		"einsum: the result has a letter twice in \"ij->ii\""},
	{"einsum", "f32[2,3,4]", "equation=\"ij->i\"", "einsum.rank",
		"einsum: operand x0: f32[2,3,4] has rank 3, but its term "
		"has 2 letters in \"ij->i\""},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		tn_diag d = {0};
		struct one c = bad[i];
		tn_status status = unit_run(call, &c, 0, &d);

		if (status != TN_EINVAL || strcmp(d.rule, c.want) != 0 ||
			strcmp(d.text, c.text) != 0)
			fail_msg("%s(%s; %s): %d %s\n  %s\n  %s %s", c.row,
				c.types, c.attrs, status, d.rule, d.text,
				c.text, d.extra);
	}
}

/* ---- rows of a user ---- */

struct user {
	const char *text, *types, *attrs, *want;
};

static void user(arena *a, void *arg)
{
	const struct user *c = arg;
	ir_table *t = ir_table_new(a);
	const ir_row *r = ir_table_define(t, c->text, strlen(c->text), (loc){0});

	assert_string_equal(
		call_results(a, row_call(a, t, ir_row_name(r), c->types,
				     c->attrs)),
		c->want);
}

static const struct user user_cases[] = {
	/* dtypes */
	{"f(x[i]) -> o { o[i] = i }", "f32[3]", "", "i64[3]"},
	{"f(x[i]:num) -> o { o[i] = 1 }", "f16[3]", "", "f16[3]"},
	{"f(x[i]) -> o { o[i] = 1 }", "f16[3]", "", "f.dtype"},
	{"f(x[i]) -> o { o[i] = i < 2 }", "f16[3]", "", "bool[3]"},
	{"f(x[i]) -> o { o[i] = x[i] + (i < 2) }", "f16[3]", "",
		"f.dtype"},
	{"f(x[i]) -> o { o[i] = x[i] where x[i] else 0 }", "f32[3]",
		"", "f.dtype"},
	{"f(x[i]:num) -> o { o[] += x[i] < 1 }", "f32[3]", "",
		"f.dtype"},
	{"f(x[i]:num) -> o { o[] and= x[i] }", "f32[3]", "",
		"f.dtype"},
	{"f(x[i]) -> o { o[i] = exp(x[i]) }", "i8[3]", "", "f.dtype"},
	{"f(x[i]) -> o { o[i] = x[i] - 0.5 }", "i8[3]", "",
		"f.dtype"},
	{"f(x[i]) -> o { o[i] = x[i] - inf }", "i8[3]", "", "i8[3]"},
	{"f(x[i]) -> o { o[i] = cast(x[i], acc) }", "i8[3]", "",
		"i64[3]"},
	/* what '=' and updates may do */
	{"f(x[i, j]) -> o { o[i] = x[i, j] }", "f32[3,2]", "", "f.j"},
	{"f(x[i, j]) -> o { o[i] = x[i, j] }", "f32[3,1]", "",
		"f32[3]"},
	{"f(x[i]) -> o { o[i] = x[i]; o[i] = x[i] }", "f32[3]", "",
		"f.o"},
	{"f(x[i]) -> o { o[i] = x[i]; x[i] += x[i] }", "f32[3]", "",
		"f.x"},
	{"f(x[i]) -> o { o[i] = x[i]; o[] += x[i] }", "f32[3]", "",
		"f.o"},
	{"f(x[i]) -> x' { x'[i] = x[i] }", "f32[3]", "", "f32[3]"},
	{"f(x[i]) -> x' { x'[0] = x[0] }", "f32[3]", "", "f.x'"},
	/* scans */
	{"f(x[i]:num) -> o { o[i] = x[i] + (o[i - 2] else 0) "
	 "+ (o[i - 1] else 0) }",
		"f32[3]", "", "f32[3]"},
	{"f(x[i]:num) -> o { o[i] = x[i] + (o[i - 2] else 0) "
	 "+ (o[i + 1] else 0) }",
		"f32[3]", "", "f.scan"},
	{"f(x[i, j]:num) -> o { o[i, j] = x[i, j] + (o[i - 1, j - 1] "
	 "else 0) }",
		"f32[3,3]", "", "f.scan"},
	{"f(x[i, j]:num) -> o { o[i, j] = x[i, j] + (o[j, i] else 0) }",
		"f32[3,3]", "", "f.scan"},
	{"f(x[i]:num) -> o { o[i] = x[i] + o[i] }", "f32[3]", "",
		"f.scan"},
	/* packs and attributes */
	{"f(x[i..], k: int) -> o { o[i..] = x[i..] for j < k }",
		"f32[3]", "", "f.k"},
	{"f(x[i..], k: int = #i..) -> o { o[j] = x[j] for j < k }",
		"f32[3]", "", "f.k"},
	{"f(x[i, j, (i, j)]) -> o { o[i, j] = x[i, j, (i, j)] }",
		"f32[2,3,6]", "", "f32[2,3]"},
	{"f(x[i, j, (i, j)]) -> o { o[i, j] = x[i, j, (i, j)] }",
		"f32[2,3,5]", "", "f.i"},
	{"f(x[(i, j)]) -> o { o[i, j] = x[(i, j)] }", "f32[6]", "",
		"f.j"},
	{"f(x[i.., j..]) -> o { o[i..] = x[i.., j..] }", "f32[6]", "",
		"f.j"},
	{"f(x[3]) -> o { o[] = x[0] }", "f32[3]", "", "f32[]"},
	{"f(x[3]) -> o { o[] = x[0] }", "f32[4]", "", "f.x"},
	{"f(x[i]) -> o { o[i] = x[i, i] }", "f32[4]", "", "f.x"},
	{"f(x[i], y[j]:float) -> o { o[i] = x[y[i]] }",
		"f32[4] f32[4]", "", "f.x"},
	{"f(x[i], a: int = b, b: int = a) -> o { o[i] = x[i] }",
		"f32[4]", "", "f.a"},
};

static void test_user(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof user_cases / sizeof user_cases[0]; i++) {
		tn_diag d = {0};
		struct user c = user_cases[i];
		tn_status status = unit_run(user, &c, 0, &d);

		if (status != TN_OK && strcmp(d.rule, c.want) != 0)
			fail_msg("%s: %s %s %s", c.text, d.rule, d.text,
				d.extra);
		if (status == TN_OK && strchr(c.want, '[') == NULL)
			fail_msg("%s: %s is wanted", c.text, c.want);
	}
}

/* The equations of an instance, where the interpreter needs their details. */
static void details(arena *a, void *arg)
{
	ir_table *t = ir_table_new(a);
	ir_inst *p = row_call(a, t, "cumsum_reverse", "f32[3,4]", "axis=1");

	(void)arg;
	assert_int_equal(p->n_eqns, 1);
	assert_true(p->eqn[0].is_scan);
	assert_int_equal(p->eqn[0].scan_axis, 1);
	assert_int_equal(p->eqn[0].scan_step, -1);
	assert_string_equal(p->letter[p->eqn[0].scan_letter].name, "t");
	p = row_call(a, t, "scatter_add", "f32[3,4] i32[2] f32[2,4]", "");
	assert_int_equal(p->n_eqns, 2);
	assert_true(p->eqn[1].is_update && !p->eqn[0].is_update);
	assert_int_equal(p->eqn[1].left[0]->kind, IN_READ);
	p = row_call(a, t, "conv_transpose", "f32[1,2,3] f32[2,2,2]", "");
	assert_true(p->eqn[1].skip);
	p = row_call(a, t, "batch_norm", "f32[2,3] f32[3] f32[3] f32[3] f32[3]",
		"");
	assert_int_equal(p->tensor[p->result[1]].next_of, 3);
	p = row_call(a, t, "argmax", "f16[2,3]", "axis=1");
	assert_int_equal(p->eqn[0].monoid, IR_ARGMAX);
	assert_int_equal(p->eqn[0].n_letters, 2);
	assert_int_equal(p->tensor[p->eqn[0].out[0]].type.dtype, TN_F16);
	p = row_call(a, t, "topk", "f32[2,9]", "count=3");
	assert_non_null(p->opaque);
	assert_int_equal(p->n_opaque_attr, 3);
	assert_int_equal(p->opaque_attr[0], 1); /* axis -1 of rank 2 */
	assert_int_equal(p->opaque_attr[1], 3);
	/* x[a.., n, b..] -> o[a.., m, b..], k: axes 0, 1 and 3 of each */
	p = row_call(a, t, "topk", "f32[2,4,9,5]", "count=3, axis=2");
	assert_int_equal(p->n_batch, 3);
	for (int32_t i = 0; i < 9; i++)
		assert_int_equal(p->batch[i], i / 3 + i / 6);
	/* what one tensor alone has is no batch */
	assert_int_equal(row_call(a, t, "unique_slices", "f32[2,4]", "")
			->n_batch, 0);
	assert_int_equal(row_call(a, t, "sort", "f32[7]", "")->n_batch, 0);
}

static void test_details(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(details, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s %s", d.rule, d.text, d.extra);
	unit_each_alloc_fails(details, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_details),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
