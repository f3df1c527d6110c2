/*
 * Strings: what is moved, compared and split, and what is refused: bytes that
 * are no text, numbers that no string has, operators that would take the numbers of
 * strings for numbers.
 */
#include "unit.h"

#include "onnx_run.h"

#include <tenon_export.h>

#include <unistd.h>

#define S(in, node) "opset 20; " in " out y; node " node ";"
#define X "in x string [3];"
#define XY "in x string [2]; in z string [2];"
#define ABC {"string [3] a bb a"}

static const run_case moves[] = {
	{S(X, "Identity x > y"), ABC, "string [3] a bb a"},
	{S(XY, "Equal x z > y"), {"string [2] a ''", "string [2] a b"},
		"bool [2] 1 0"},
	{S(XY, "Concat x z > y : axis=0"), {"string [2] a b", "string [2] c a"},
		"string [4] a b c a"},
	{S(X "in c bool [3]; in z string [];", "Where c x z > y"),
		{"string [3] a bb a", "bool [3] 1 0 1", "string [] é"},
		"string [3] a é a"},
	{S(X "init i int32 [2] 2 1;", "Gather x i > y"), ABC, "string [2] a bb"},
	{S(X "init s int64 [2] 3 1;", "Reshape x s > y"), ABC,
		"string [3,1] a bb a"},
	{S(X "init s int64 [2] 2 3;", "Expand x s > y"), ABC,
		"string [2,3] a bb a a bb a"},
	{S(X, "Shape x > y"), ABC, "int64 [1] 3"},
	{"opset 20; out y; node Constant > y : value_strings=[\"a\",\"b\"];",
		{NULL}, "string [2] a b"},
	{"opset 20; out y; node Constant > y : value_string=\"a b\";", {NULL},
		"string [] 'a b'"},
	{"opset 20; out y; node Constant > y : value=(v string [2] 'a b' c);",
		{NULL}, "string [2] 'a b' c"},
	{S(X "in b bool [];", "If b > y : then_branch={ out x; } "
		"else_branch={ node Transpose x > e; out e; }"),
		{"string [3] a bb a", "bool [] 1"}, "string [3] a bb a"},
	{"opset 20; in x string [2]; in i int64 []; out y;"
	 "node SequenceConstruct x x > s; node SequenceAt s i > y;",
		{"string [2] a b", "int64 [] 1"}, "string [2] a b"},
	{"opset 20; in x string [2]; out y; node Slice x a b > z;"
	 "init a int64 [1] 1; init b int64 [1] 2; node StringConcat z z > y;",
		{"string [2] a b"}, "string [1] bb"},
};

static const run_case reads[] = {
	{S(XY, "StringConcat x z > y"), {"string [2] a 'b '", "string [2] '' é"},
		"string [2] a 'b é'"},
	{S("in x string [2,1]; in z string [2];", "StringConcat x z > y"),
		{"string [2,1] a b", "string [2] c d"},
		"string [2,2] ac ad bc bd"},
	{S("in x string [0]; in z string [1];", "StringConcat x z > y"),
		{"string [0]", "string [1] c"}, "string [0]"},
	{S("in x string [3]; in z string [2];", "StringConcat x z > y"),
		{"string [3] a b c", "string [2] d e"}, "!onnx.shape"},
	{S("in x string [2]; in z int32 [2];", "StringConcat x z > y"),
		{"string [2] a b", "int32 [2] 0 1"}, "!onnx.type"},
	{S("in x string [2];", "StringSplit x > y"),
		{"string [2] ' a  b ' c"}, "string [2,2] a b c ''"},
	{S("in x string [2];", "StringSplit x > z y"),
		{"string [2] ' a  b ' ''"}, "int64 [2] 2 0"},
	{S("in x string [2];", "StringSplit x > y : delimiter=\"--\""),
		{"string [2] a--b---c --"}, "string [2,3] a b -c '' '' ''"},
	{S("in x string [1];", "StringSplit x > y : delimiter=\"-\" maxsplit=1"),
		{"string [1] a-b-c"}, "string [1,2] a b-c"},
	{S("in x string [1];", "StringSplit x > y : maxsplit=1"),
		{"string [1] ' a  b  c '"}, "string [1,2] a 'b  c'"},
	{S("in x string [0];", "StringSplit x > y"), {"string [0]"},
		"string [0,0]"},
	{S(X, "StringNormalizer x > y : case_change_action=\"UPPER\" "
		"stopwords=[\"BB\"]"), {"string [3] aé bb ß"},
		"string [2] AÉ ß"},
	{S(X, "StringNormalizer x > y : case_change_action=\"LOWER\" "
		"is_case_sensitive=1 stopwords=[\"bb\"]"), {"string [3] BB bb Ω"},
		"string [2] bb ω"},
	{S(X, "StringNormalizer x > y : stopwords=[\"a\",\"BB\"]"), ABC,
		"string [1] ''"},
	{S(X, "StringNormalizer x > y : case_change_action=\"LOWER\""),
		{"string [3] ÀŸŹ ΆΏΣ ЀЯӀԮẠ漢"}, "string [3] àÿź άώσ ѐяӏԯạ漢"},
	{S(X, "StringNormalizer x > y : case_change_action=\"UPPER\""),
		{"string [3] àÿź άώς ѐяӏԯạ漢"}, "string [3] ÀŸŹ ΆΏΣ ЀЯӀԮẠ漢"},
	{S(X, "StringNormalizer x > y : case_change_action=\"UPPER\""),
		{"string [3] a b ა"}, "!onnx.string"},
	{S("in x string [1,2];", "StringNormalizer x > y"),
		{"string [1,2] a B"}, "string [1,2] a B"},
	{S(X, "StringNormalizer x > y : case_change_action=\"TITLE\""), ABC,
		"!onnx.attr"},
	{S(X, "StringNormalizer x > y : locale=\"tr_TR\""), ABC, "!onnx.attr"},
	{S("in x string [2,1];", "StringNormalizer x > y"),
		{"string [2,1] a b"}, "!onnx.shape"},
};

static const run_case casts[] = {
	{S("in x float [4];", "Cast x > y : to=8"),
		{"float [4] 0.1 1 -2.5 16777216"},
		"string [4] 0.1 1.0 -2.5 16777216.0"},
	{S("in x float [5];", "Cast x > y : to=8"),
		{"float [5] 1e-4 1.5e-5 1e15 1e16 -1.17549435e-38"},
		"string [5] 0.0001 1.5e-05 1000000000000000.0 1e+16 "
		"-1.1754944e-38"},
	{S("in x float [5];", "Cast x > y : to=8"), {"float [5] inf -inf nan 0 -0"},
		"string [5] INF -INF NaN 0.0 -0.0"},
	{S("in x double [2];", "Cast x > y : to=8"),
		{"double [2] 0.1 1.7976931348623157e308"},
		"string [2] 0.1 1.7976931348623157e+308"},
	{S("in x float16 [2];", "Cast x > y : to=8"), {"float16 [2] 0.1 65504"},
		"string [2] 0.1 65500.0"},
	{S("in x int64 [2];", "Cast x > y : to=8"),
		{"int64 [2] -9223372036854775808 7"},
		"string [2] -9223372036854775808 7"},
	{S("in x uint64 [1];", "Cast x > y : to=8"),
		{"uint64 [1] 9223372036854775808"},
		"string [1] 9223372036854775808"},
	{S("in x float [0];", "Cast x > y : to=8"), {"float [0]"}, "string [0]"},
	{S("in x bool [1];", "Cast x > y : to=8"), {"bool [1] 1"}, "!onnx.elem"},
	{S(X, "Cast x > y : to=8"), ABC, "string [3] a bb a"},
	{S(X, "Cast x > y : to=1"), {"string [3] 3.25 -1e-5 +2"},
		"float [3] 3.25 -1e-5 2"},
	{S(X, "Cast x > y : to=1"), {"string [3] INF -INF +Infinity"},
		"float [3] inf -inf inf"},
	{S(X, "Cast x > z : to=1; node IsNaN z > y"),
		{"string [3] NaN -nan 0"}, "bool [3] 1 1 0"},
	{S(X, "Cast x > y : to=10"), {"string [3] 1 65504 1e9"},
		"float16 [3] 1 65504 inf"},
	{S(X, "Cast x > y : to=7"),
		{"string [3] -9223372036854775808 +7 007"},
		"int64 [3] -9223372036854775808 7 7"},
	{S(X, "Cast x > y : to=13"), {"string [3] 18446744073709551615 0 1"},
		"uint64 [3] 18446744073709551615 0 1"},
	{S(X, "Cast x > y : to=3"), {"string [3] 127 -128 0"},
		"int8 [3] 127 -128 0"},
	{S(X "in z int32 [1];", "CastLike x z > y"),
		{"string [3] 1 2 3", "int32 [1] 0"}, "int32 [3] 1 2 3"},
	{S("in x int32 [1]; in z string [1];", "CastLike x z > y"),
		{"int32 [1] 12", "string [1] a"}, "string [1] 12"},
	{S("in x float [2];", "Cast x > s : to=8; node Cast s > y : to=1"),
		{"float [2] 3.4028235e38 1e-45"}, "float [2] 3.4028235e38 1e-45"},
	{S(X, "Cast x > y : to=3"), {"string [3] 128 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=2"), {"string [3] -1 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=13"), {"string [3] -1 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=7"), {"string [3] 9223372036854775808 0 0"},
		"!onnx.string"},
	{S(X, "Cast x > y : to=7"), {"string [3] 1.5 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=7"), {"string [3] '' 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=7"), {"string [3] - 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=1"), {"string [3] 0x10 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=1"), {"string [3] ' 1' 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=1"), {"string [3] 1e 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=1"), {"string [3] '' 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=1"), {"string [3] infin 0 0"}, "!onnx.string"},
	{S(X, "Cast x > y : to=9"), {"string [3] 1 0 0"}, "!onnx.elem"},
	{S(X, "CastLike x > y"), ABC, "!onnx.input"},
};

/* Strings of words: pattern, then whether each of them matches. */
#define REGEX(pattern, strings, is)                                            \
	{S("in x string [4];", "RegexFullMatch x > y : pattern=\"" pattern "\""), \
		{"string [4] " strings}, is}

static const run_case patterns[] = {
	REGEX("a(b|c)*", "a abcb abd ''", "bool [4] 1 1 0 0"),
	REGEX("", "'' a aa aaa", "bool [4] 1 0 0 0"),
	REGEX("a|bc|", "a bc b ''", "bool [4] 1 1 0 1"),
	REGEX("[a-c-]+", "a-c abd - ''", "bool [4] 1 0 1 0"),
	REGEX("[^a-cx]?", "a x é dd", "bool [4] 0 0 1 0"),
	REGEX("[]a]", "']' a ']a' b", "bool [4] 1 1 0 0"),
	REGEX(".é{2}", "aéé éé éééé ééé", "bool [4] 1 0 0 1"),
	REGEX("(?:ab){2,3}", "ab abab ababab abababab", "bool [4] 0 1 1 0"),
	REGEX("a{2,}", "a aa aaa aab", "bool [4] 0 1 1 0"),
	REGEX("(a{0,2}b){2}", "bb aabab aaabb aabb", "bool [4] 1 1 0 1"),
	REGEX("a{0}b", "b ab a ''", "bool [4] 1 0 0 0"),
	REGEX("(a*)*b", "b aab aa c", "bool [4] 1 1 0 0"),
	REGEX("a{,2}", "'a{,2}' a aa ''", "bool [4] 1 0 0 0"),
	REGEX("\\d+\\.\\w*?", "1.a 12. 1a x.a", "bool [4] 1 1 0 0"),
	REGEX("[\\D\\.]\\S", "ab 1b .. 'a '", "bool [4] 1 0 1 0"),
	REGEX("\\W\\s", "'- ' 'a ' -- '  '", "bool [4] 1 0 0 1"),
	REGEX("^a\\b.*b$", "a-b ab 'a b' a", "bool [4] 1 0 1 0"),
	REGEX("a\\Bb\\z", "ab a b ''", "bool [4] 1 0 0 0"),
	REGEX("(a|b", "a b c d", "!onnx.attr"),
	REGEX("a)", "a b c d", "!onnx.attr"),
	REGEX("*a", "a b c d", "!onnx.attr"),
	REGEX("a**", "a b c d", "!onnx.attr"),
	REGEX("[b-a]", "a b c d", "!onnx.attr"),
	REGEX("[a", "a b c d", "!onnx.attr"),
	REGEX("a\\", "a b c d", "!onnx.attr"),
	REGEX("\\pL", "a b c d", "!onnx.attr"),
	REGEX("(?i)a", "a b c d", "!onnx.attr"),
	REGEX("[[:alpha:]]", "a b c d", "!onnx.attr"),
	REGEX("a{3,2}", "a b c d", "!onnx.attr"),
	REGEX("a{1001}", "a b c d", "!onnx.attr"),
	REGEX("(((a{99}){99}){99})", "a b c d", "!onnx.attr"),
	REGEX("\xff", "a b c d", "!onnx.string"),
};

static const run_case refused[] = {
	{S(X, "Neg x > y"), ABC, "!onnx.elem"},
	{S(X, "Add x x > y"), ABC, "!onnx.elem"},
	{S(X, "Less x x > y"), ABC, "!onnx.elem"},
	{S("in x int32 [3];", "StringSplit x > y"), {"int32 [3] 0 0 0"},
		"!onnx.type"},
	/* numbers of strings are not numbers of i32 */
	{S(X "in z int32 [3];", "Equal x z > y"),
		{"string [3] a b c", "int32 [3] 0 1 2"}, "!onnx.elem"},
	{S(X "in z int32 [3]; in c bool [3];", "Where c x z > y"),
		{"string [3] a b c", "int32 [3] 0 1 2", "bool [3] 1 0 1"},
		"!onnx.elem"},
	{S(X "in z int32 [3];", "Concat z x > y : axis=0"),
		{"string [3] a b c", "int32 [3] 0 1 2"}, "!onnx.elem"},
	{S(X "in z int32 [3];", "Gather z x > y"),
		{"string [3] a b c", "int32 [3] 0 1 2"}, "!onnx.elem"},
	{S(X "in z int32 [3];", "Gather x z > y"),
		{"string [3] a b c", "int32 [3] 0 1 2"}, "string [3] a b c"},
	{S(X "in z int32 [3];", "Reshape z x > y"),
		{"string [3] a b c", "int32 [3] 0 1 2"}, "!onnx.elem"},
	{S(X "in z int32 [3];", "SequenceConstruct x z > s;"
		"init i int64 [] 0; node SequenceAt s i > y"),
		{"string [3] a b c", "int32 [3] 0 1 2"}, "!onnx.elem"},
	{S(X, "SequenceEmpty > e; node SequenceInsert e x > s;"
		"init i int64 [] 0; node SequenceAt s i > y"),
		{"string [3] a b c"}, "string [3] a b c"},
	{S(X "in z int32 [3];", "SequenceConstruct z > e;"
		"node SequenceInsert e x > s;"
		"init i int64 [] 0; node SequenceAt s i > y"),
		{"string [3] a b c", "int32 [3] 0 1 2"}, "!onnx.elem"},
	{"opset 20; in x string [2]; out y; node SequenceConstruct x x > s;"
	 "node SequenceAt s i > z; init i int64 [] 0; node Abs z > y;",
		{"string [2] a b"}, "!onnx.elem"},
	{S("", "Identity w > y") "init w string [1] '\xff'", {NULL},
		"!onnx.string"},
	{S("", "Identity w > y") "init w string [1] 'a\xc3'", {NULL},
		"!onnx.string"},
	{S("", "Identity w > y") "init w string [1] '\xc0\x80'", {NULL},
		"!onnx.string"},
	{S("", "Identity w > y") "init w string [1] '\xed\xa0\x80'", {NULL},
		"!onnx.string"},
	{S("", "Identity w > y") "init w string [1] '\xf4\x90\x80\x80'", {NULL},
		"!onnx.string"},
	{S("", "Identity w > y") "init w string [1] '\xe0\x9f\x80'", {NULL},
		"!onnx.string"},
	{S("", "Identity w > y") "typed w string [1] 1", {NULL}, "!onnx.string"},
	{S("", "Identity w > y") "init w string [3] a b", {NULL}, "!onnx.size"},
	{S("", "Identity w > y") "init w string [1000000000000] a", {NULL},
		"!onnx.size"},
	{S("in x float [1];", "Identity x > y : text=\"\xff\""), {"float [1] 1"},
		"!onnx.attr"},
	{S("", "Constant > y : value_string=\"\xff\""), {NULL}, "!onnx.string"},
};

static void test_moves(void **state)
{
	(void)state;
	check_runs(moves, sizeof moves / sizeof *moves);
}

static void test_reads(void **state)
{
	(void)state;
	check_runs(reads, sizeof reads / sizeof *reads);
}

static void test_casts(void **state)
{
	(void)state;
	check_runs(casts, sizeof casts / sizeof *casts);
}

static void test_patterns(void **state)
{
	env *e = env_new();
	arena *a = arena_new(e);
	str s = str_new(a);
	run_case deep = {.out = "!onnx.attr", .in = {"string [1] a"}};

	(void)state;
	check_runs(patterns, sizeof patterns / sizeof *patterns);
	str_add(&s, "opset 20; in x string [1]; out y;"
		"node RegexFullMatch x > y : pattern=\"");
	for (int i = 0; i < 100000; i++)
		str_addc(&s, '(');
	str_add(&s, "\";");
	deep.model = s.at;
	check_runs(&deep, 1);
	arena_free(a);
	env_free(e);
}

static void test_refused(void **state)
{
	(void)state;
	check_runs(refused, sizeof refused / sizeof *refused);
}

/* A string that doubles 40 times, and long ones that are read too often. */
static void test_size(void **state)
{
	env *e = env_new();
	arena *a = arena_new(e);
	str s = str_new(a);
	run_case c = {.out = "!onnx.size"};

	(void)state;
	str_add(&s, "opset 20; out s40; init s0 string [1] ab;");
	for (int i = 0; i < 40; i++)
		str_printf(&s, "node StringConcat s%d s%d > s%d;", i, i, i + 1);
	c.model = s.at;
	check_runs(&c, 1);
	s.n = 0;
	str_add(&s, "opset 20; out y; init w string [1] ");
	for (int i = 0; i < 1 << 20; i++)
		str_addc(&s, 'a');
	str_add(&s, "; init n int64 [1] 100000; node Expand w n > x;"
		"node StringSplit x > y;");
	c.model = s.at;
	check_runs(&c, 1);
	arena_free(a);
	env_free(e);
}

/* ---- through the public functions ---- */

static tn_onnx *open_text(tn_context *c, const char *text, char *path)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb bytes = onnx_write(a, text);
	int fd = mkstemp(path);
	tn_onnx *m;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.s.at, bytes.s.n), bytes.s.n);
	close(fd);
	arena_free(a);
	env_free(e);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	unlink(path);
	return m;
}

static void test_api(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	tn_context *c;
	tn_onnx *m;
	tn_program *p;
	int32_t a, b, again, in[2];
	tn_array x = {.dtype = TN_I32, .rank = 1, .shape = {2}, .n_elems = 2,
		.n_bytes = sizeof in, .data = in}, *y;
	int64_t n;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	m = open_text(c, "opset 20; in x string [N]; out y;"
		"node StringConcat x x > y;", path);
	assert_int_equal(tn_onnx_input(m, 0)->dtype, TN_I32);
	assert_string_equal(tn_onnx_input(m, 0)->type, "tensor(string)[N]");
	assert_int_equal(tn_onnx_string(&a, m, "ab", 2), TN_OK);
	assert_int_equal(tn_onnx_string(&b, m, "a\0b", 3), TN_OK);
	assert_int_equal(tn_onnx_string(&again, m, "ab", 2), TN_OK);
	assert_true(a == again && a != b);
	assert_memory_equal(tn_onnx_text(m, b, &n), "a\0b", 4);
	assert_int_equal(n, 3);
	assert_int_equal(tn_onnx_string(&again, m, "", 0), TN_OK);
	assert_string_equal(tn_onnx_text(m, again, &n), "");
	assert_null(tn_onnx_text(m, -1, &n));
	assert_null(tn_onnx_text(m, 1 << 20, &n));
	assert_int_equal(tn_onnx_string(&again, m, "a\x80", 2), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.string");
	assert_int_equal(again, -1);

	assert_int_equal(tn_onnx_stage(&p, m), TN_OK);
	for (int k = 0; k < 3; k++) {
		in[0] = k == 1 ? b : a;
		in[1] = b;
		assert_int_equal(tn_program_run_arrays(p, &x, &y), TN_OK);
		assert_memory_equal(tn_onnx_text(m, ((int32_t *)y->data)[0],
			&n), k == 1 ? "a\0ba\0b" : "abab", k == 1 ? 7 : 5);
		tn_array_free(y);
	}
	in[1] = 1000; /* no string has this number */
	assert_int_equal(tn_program_run_arrays(p, &x, &y), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "onnx.string");
	in[1] = -1;
	assert_int_equal(tn_program_run_arrays(p, &x, &y), TN_EINVAL);
	tn_program_free(p);
	tn_onnx_free(m);
	tn_context_free(c);
}

/* What is known as numbers only would be written as numbers. */
static void test_export(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	tn_context *c;
	tn_onnx *m;
	tn_program *p;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	m = open_text(c, "opset 20; in x string [2]; init w string [2] a b;"
		"out y; node Concat x w > y : axis=0;", path);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_onnx_export(p, path), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "export.dtype");
	assert_non_null(strstr(tn_context_diag(c)->text, "x has strings"));
	assert_non_null(strstr(tn_context_diag(c)->text, "whose inputs and"));
	tn_program_free(p);
	tn_onnx_free(m);

	/* strings inside are numbers that nobody else sees */
	memcpy(path + sizeof path - 7, "XXXXXX", 6);
	m = open_text(c, "opset 20; in x bool []; init v string [2] a b;"
		"init w string [2] b a; init u string [2] a c; out z;"
		"node Where x v w > y; node Equal y u > z;", path);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_onnx_export(p, path), TN_OK);
	tn_program_free(p);
	tn_onnx_free(m);
	unlink(path);
	tn_context_free(c);
}

/* Exported as C: numbers, and a table of the strings, which its own test looks
 * through. */
static void test_export_c(void **state)
{
	static const char text[] = "x\0y";
	char path[] = "/tmp/tenon_onnx_XXXXXX", dir[64], command[256];
	int32_t in[2];
	const void *const inputs[] = {in};
	tn_export_options o = TN_EXPORT_INIT;
	tn_context *c;
	tn_onnx *m;
	tn_program *p;
	FILE *f;
	char line[128];
	bool told = false;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	m = open_text(c, "opset 20; in x string [2]; init w string [2] b é;"
		"out y; node Concat x w > y : axis=0;", path);
	assert_int_equal(tn_onnx_string(&in[0], m, text, 3), TN_OK);
	assert_int_equal(tn_onnx_string(&in[1], m, "", 0), TN_OK);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	snprintf(dir, sizeof dir, "%s_c", path);
	o.inputs = inputs;
	assert_int_equal(tn_program_export_c(p, dir, &o), TN_OK);
	snprintf(command, sizeof command, "%s/net.h", dir);
	f = fopen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f) != NULL)
		told |= strstr(line, "out_y: i32[4], numbers of strings") != NULL;
	fclose(f);
	assert_true(told);
	snprintf(command, sizeof command,
		"make -s -C %s CC=cc CFLAGS='-O1 -Wall -Wextra -Werror' check "
		">/dev/null && rm -r %s", dir, dir);
	assert_int_equal(system(command), 0);
	tn_program_free(p);
	tn_onnx_free(m);
	unlink(path);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_casts),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_api),
		cmocka_unit_test(test_export),
		cmocka_unit_test(test_export_c),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
