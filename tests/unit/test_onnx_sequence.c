/*
 * onnx/: sequences and optionals that are made to do harm, or by mistake: each is
 * refused with its rule; positions, lengths and kinds are checked before use.
 */
#include "onnx_run.h"

#define S(nodes) "opset 18; in x float [2]; out y;" nodes
#define ONE "node SequenceConstruct x > s;"
#define AT(i) ONE "init i int64 [] " i "; node SequenceAt s i > y;"
#define ERASE(i)                                                               \
	ONE "init i int64 [] " i "; node SequenceErase s i > t;"               \
	    "node SequenceLength t > y;"
#define INSERT(i)                                                              \
	ONE "init i int64 [] " i "; node SequenceInsert s x i > t;"            \
	    "node SequenceLength t > y;"
#define SPLIT(n, more)                                                         \
	"init n " n "; node SplitToSequence x n > s" more ";"                  \
	"node SequenceLength s > y;"
#define TWO {"float [2] 1 2"}

static const run_case cases[] = {
	/* positions */
	{S(AT("0")), TWO, "float [2] 1 2"},
	{S(AT("-1")), TWO, "float [2] 1 2"},
	{S(AT("1")), TWO, "!onnx.attr"},
	{S(AT("-2")), TWO, "!onnx.attr"},
	{S(AT("9223372036854775807")), TWO, "!onnx.attr"},
	{S(AT("-9223372036854775808")), TWO, "!onnx.attr"},
	{S("node SequenceEmpty > s; init i int64 [] 0; node SequenceAt s i > y;"),
		TWO, "!onnx.attr"},
	{S(ERASE("0")), TWO, "int64 [] 0"},
	{S(ERASE("1")), TWO, "!onnx.attr"},
	{S(ERASE("-9223372036854775808")), TWO, "!onnx.attr"},
	{S("node SequenceEmpty > s; node SequenceErase s > t;"
	   "node SequenceLength t > y;"), TWO, "!onnx.attr"},
	{S(INSERT("1")), TWO, "int64 [] 2"},
	{S(INSERT("-1")), TWO, "int64 [] 2"},
	{S(INSERT("2")), TWO, "!onnx.attr"},
	{S(INSERT("-2")), TWO, "!onnx.attr"},
	{S(INSERT("9223372036854775807")), TWO, "!onnx.attr"},
	{S(ONE "init i int64 [2] 0 0; node SequenceAt s i > y;"), TWO,
		"!onnx.input"},
	{S(ONE "init i float [] 0; node SequenceAt s i > y;"), TWO,
		"!onnx.type"},
	/* parts */
	{S(SPLIT("int64 [] 1", "")), TWO, "int64 [] 2"},
	{S(SPLIT("int64 [] 0", "")), TWO, "!onnx.attr"},
	{S(SPLIT("int64 [] -1", "")), TWO, "!onnx.attr"},
	{S(SPLIT("int64 [2] 1 2", "")), TWO, "!onnx.attr"},
	{S(SPLIT("int64 [2] 3 -1", "")), TWO, "!onnx.attr"},
	{S(SPLIT("int64 [2] 0 1", "")), TWO, "!onnx.shape"},
	{S(SPLIT("int64 [2] 9223372036854775807 9223372036854775807", "")), TWO,
		"!onnx.attr"},
	{S("init n int64 [2] 1 2; node Split x n > y z;"), TWO, "!onnx.attr"},
	{S("init n int64 [2] 1 0; node Split x n > y z;"), TWO, "!onnx.shape"},
	{S("init n int64 [2] 1 1; node Split x n > y;"), TWO, "float [1] 1"},
	{S(SPLIT("int64 [] 1", " : axis=1")), TWO, "!onnx.axis"},
	{S(SPLIT("int64 [] 1", " : axis=-2")), TWO, "!onnx.axis"},
	{S("node SequenceEmpty > s; node ConcatFromSequence s > y : axis=0;"),
		TWO, "!onnx.shape"},
	{S(ONE "node ConcatFromSequence s > y : axis=1;"), TWO, "!onnx.axis"},
	{S(ONE "node ConcatFromSequence s > y : axis=2 new_axis=1;"), TWO,
		"!onnx.axis"},
	{S("init z float [1,2] 1 2; node SequenceConstruct x z > s;"
	   "node ConcatFromSequence s > y : axis=0;"), TWO, "!concat.x1"},
	{S("init z int64 [2] 1 2; node SequenceConstruct x z > s;"
	   "node ConcatFromSequence s > y : axis=0;"), TWO, "!concat.dtype"},
	/* kinds */
	{S("node SequenceLength x > y;"), TWO, "!onnx.type"},
	{S("init i int64 [] 0; node SequenceAt x i > y;"), TWO, "!onnx.type"},
	{S(ONE "node Neg s > y;"), TWO, "!onnx.type"},
	{S(ONE "node SequenceConstruct s > t; node SequenceLength t > y;"), TWO,
		"!onnx.type"},
	{S(ONE "node SequenceInsert s s > t; node SequenceLength t > y;"), TWO,
		"!onnx.type"},
	{S("node Optional > o; node OptionalGetElement o > y;"), TWO,
		"!onnx.value"},
	{S("node Optional > o; node OptionalGetElement o > t;"
	   "node Neg t > y;"), TWO, "!onnx.value"},
	{S(ONE "node Optional s > o; node OptionalGetElement o > t;"
	       "node Neg t > y;"), TWO, "!onnx.type"},
	/* bodies */
	{S(ONE "node SequenceMap s > t : body={ in e float [2]; node Neg e > f;"
	       "out f; }; node SequenceMap t s > u : body={ in e float [2];"
	       "out e; }; node SequenceLength u > y;"), TWO, "!onnx.graph"},
	{S(ONE "node SequenceEmpty > e; node SequenceMap s e > t : body={"
	       "in a float [2]; in b float [2]; node Add a b > c; out c; };"
	       "node SequenceLength t > y;"), TWO, "!onnx.shape"},
};

static void test_cases(void **state)
{
	(void)state;
	check_runs(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
