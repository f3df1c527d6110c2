/*
 * test_rows_opaque.c: the rows that are C functions, and those whose text is
 * built from operands and attributes. Non-maximum suppression has the cases of
 * ONNX's own tests.
 */
#include "rows.h"

#define ALL "f32 f64 f16 bf16 i8 i16 i32 i64 u8"
#define BOXES "f32[1,6,4] 0 0 1 1  0 0.1 1 1.1  0 -0.1 1 0.9  0 10 1 11 " \
	"0 10.1 1 11.1  0 100 1 101"
#define SCORES "f32[1,1,6] 0.9 0.75 0.6 0.95 0.5 0.3"

/* clang-format off */
static const row_case cases[] = {
	{"sort(a)", {"T[2,4] 3 1 2 1 9 8 9 7"}, {"T[2,4] 1 1 2 3 7 8 9 9", "i64[2,4] 1 3 2 0 3 1 0 2"}, .types = ALL},
	{"sort(a, desc=true)", {"T[2,4] 3 1 2 1 9 8 9 7"}, {"T[2,4] 3 2 1 1 9 9 8 7", "i64[2,4] 0 2 1 3 0 2 1 3"}, .types = ALL},
	{"sort(a, axis=0)", {"f32[3,2] 3 1 2 5 1 3"}, {"f32[3,2] 1 1 2 3 3 5", "i64[3,2] 2 0 1 2 0 1"}},
	{"sort(a)", {"f32[5] nan 1 -inf nan inf"}, {"f32[5] -inf 1 inf nan nan", "i64[5] 2 1 4 0 3"}},
	{"sort(a, desc=true)", {"f32[5] nan 1 -inf nan inf"}, {"f32[5] nan nan inf 1 -inf", "i64[5] 0 3 4 1 2"}},
	{"sort(a)", {"f32[3] 0 -0.0 -1"}, {"f32[3] -1 0 -0.0", "i64[3] 2 0 1"}},
	{"sort(a)", {"bool[3] 1 0 1"}, {"bool[3] 0 1 1", "i64[3] 1 0 2"}},
	{"sort(a)", {"i64[2] 9223372036854775807 9223372036854775806"},
		{"i64[2] 9223372036854775806 9223372036854775807", "i64[2] 1 0"}},
	{"sort(a)", {"f32[2,0]"}, {"f32[2,0]", "i64[2,0]"}},
	{"sort(a)", {"f32[0,2]"}, {"f32[0,2]", "i64[0,2]"}},
	{"sort(a)", {"f32[1] 3"}, {"f32[1] 3", "i64[1] 0"}},
	{"sort(a)", {"f32[] 3"}, {"!sort.axis", ""}},
	{"argsort(a)", {"T[5] 3 1 2 1 0"}, {"i64[5] 4 1 3 2 0"}, .types = ALL},
	{"argsort(a, desc=true)", {"f32[4] 1 nan 2 1"}, {"i64[4] 1 2 0 3"}},
	{"topk(a, count=2)", {"T[2,4] 3 1 2 3 9 8 9 7"}, {"T[2,2] 3 3 9 9", "i64[2,2] 0 3 0 2"}, .types = ALL},
	{"topk(a, count=2, largest=false)", {"T[2,4] 3 1 2 3 9 8 9 7"}, {"T[2,2] 1 2 7 8", "i64[2,2] 1 2 3 1"}, .types = ALL},
	{"topk(a, axis=0, count=1)", {"f32[2,2] 1 5 3 4"}, {"f32[1,2] 3 5", "i64[1,2] 1 0"}},
	{"topk(a, count=0)", {"f32[2] 1 2"}, {"f32[0]", "i64[0]"}},
	{"topk(a, count=3)", {"f32[2] 1 2"}, {"!topk.check", ""}},
	{"topk(a, count=1)", {"f32[3] 1 nan inf"}, {"f32[1] nan", "i64[1] 1"}},
	{"nonzero(a)", {"T[2,3] 0 1 0 1 0 1"}, {"i64[6,2] 0 1 1 0 1 2 -1 -1 -1 -1 -1 -1", "i64[] 3"}, .types = ALL " bool"},
	{"nonzero(a)", {"f32[3] nan -0.0 inf"}, {"i64[3,1] 0 2 -1", "i64[] 2"}},
	{"nonzero(a)", {"f32[] 2"}, {"i64[1,0]", "i64[] 1"}},
	{"nonzero(a)", {"f32[0,2]"}, {"i64[0,2]", "i64[] 0"}},
	{"unique(a)", {"T[2,3] 3 1 3 2 1 3"}, {"T[6] 1 2 3 0 0 0", "i64[6] 1 3 0 -1 -1 -1",
		"i64[6] 2 0 2 1 0 2", "i64[6] 2 1 3 0 0 0", "i64[] 3"}, .types = ALL},
	{"unique(a)", {"f32[4] nan 0 nan -0.0"}, {"f32[4] 0 nan 0 0", "i64[4] 1 0 -1 -1",
		"i64[4] 1 0 1 0", "i64[4] 2 2 0 0", "i64[] 2"}},
	{"unique(a)", {"i32[0]"}, {"i32[0]", "i64[0]", "i64[0]", "i64[0]", "i64[] 0"}},
	{"unique(a)", {"bool[] 1"}, {"bool[1] 1", "i64[1] 0", "i64[1] 0", "i64[1] 1", "i64[] 1"}},
	{"det(a)", {"T[2,2,2] 1 2 3 4  0 2 3 5"}, {"T[2] -2 -6"}, .types = "f32 f64 f16"},
	{"det(a)", {"f64[3,3] 2 0 1  0 0 3  1 4 5"}, {"f64[] -24"}},
	{"det(a)", {"f32[2,2] 1 2 2 4"}, {"f32[] 0"}},
	{"det(a)", {"f32[3,0,0]"}, {"f32[3] 1 1 1"}},
	{"det(a)", {"f32[2,3] 1 2 3 4 5 6"}, {"!det.m", ""}},
	{"unique_slices(a)", {"T[4,2] 3 1  0 2  3 1  0 1"}, {"i64[4] 3 1 0 -1", "i64[4] 2 1 2 0", "i64[4] 1 1 2 0", "i64[] 3"}, .types = ALL},
	{"unique_slices(a, axis=1)", {"f32[2,3] 1 nan 1  2 0 2"}, {"i64[3] 0 1 -1", "i64[3] 0 1 0", "i64[3] 2 1 0", "i64[] 2"}},
	{"unique_slices(a)", {"f32[0,2]"}, {"i64[0]", "i64[0]", "i64[0]", "i64[] 0"}},
	{"non_max_suppression(a, b, 0.5, 0, most=3)", {BOXES, SCORES},
		{"i64[3,3] 0 0 3 0 0 0 0 0 5", "i64[] 3"}},
	{"non_max_suppression(a, b, 0.5, 0, most=2)", {BOXES, SCORES}, {"i64[2,3] 0 0 3 0 0 0", "i64[] 2"}},
	{"non_max_suppression(a, b, 0.5, 0.4, most=9)", {BOXES, SCORES},
		{"i64[6,3] 0 0 3 0 0 0 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1", "i64[] 2"}},
	{"non_max_suppression(a, b, 0.5, 0, most=3)",
		{"f32[1,6,4] 1 1 0 0  0 0.1 1 1.1  0 0.9 1 -0.1  0 10 1 11  1 10.1 0 11.1  1 101 0 100", SCORES},
		{"i64[3,3] 0 0 3 0 0 0 0 0 5", "i64[] 3"}},
	{"non_max_suppression(a, b, 0.5, 0, most=3, center=true)",
		{"f32[1,6,4] 0.5 0.5 1 1  0.5 0.6 1 1  0.5 0.4 1 1  0.5 10.5 1 1  0.5 10.6 1 1  0.5 100.5 1 1", SCORES},
		{"i64[3,3] 0 0 3 0 0 0 0 0 5", "i64[] 3"}},
	{"non_max_suppression(a, b, 0.5, 0, most=2)",
		{"f32[2,2,4] 0 0 1 1  0 0 1 1  0 0 1 1  5 5 6 6", "f32[2,1,2] 0.5 0.5 0.25 nan"},
		{"i64[4,3] 0 0 0 1 0 0 -1 -1 -1 -1 -1 -1", "i64[] 2"}},
	{"non_max_suppression(a, b, 0.5, 0, most=0)", {BOXES, SCORES}, {"i64[0,3]", "i64[] 0"}},
	{"non_max_suppression(a, b, 0.5, 0, most=1)", {"f32[1,0,4]", "f32[1,2,0]"}, {"i64[0,3]", "i64[] 0"}},
	{"argsort(a)", {"f32[2,2] 2 1 0 3"}, {"i64[2,2] 1 0 0 1"}},
	{"topk(a, count=2)", {"f32[2] 1 2"}, {"f32[2] 2 1", "i64[2] 1 0"}},
	{"topk(a, count=-1)", {"f32[2] 1 2"}, {"!topk.check", ""}},
	{"argsort(a)", {"f32[2,2] 3 4 2 1"}, {"i64[2,2] 0 1 1 0"}},
	/* overlap of exactly iou stays, a score of exactly least falls */
	{"non_max_suppression(a, b, 0.5, 0.25, most=3)",
		{"f32[1,3,4] 0 0 1 1  0 0 1 2  9 9 10 10", "f32[1,1,3] 0.75 0.5 0.25"},
		{"i64[3,3] 0 0 0 0 0 1 -1 -1 -1", "i64[] 2"}},
};

static const row_case builders[] = {
	{"concat(a, b, axis=0)", {"T[1,2] 1 2", "T[2,2] 3 4 5 6"}, {"T[3,2] 1 2 3 4 5 6"}, .types = ALL " bool"},
	{"concat(a, b, c, axis=-1)", {"f32[2,1] 1 2", "f32[2,0]", "f32[2,2] 3 4 5 6"}, {"f32[2,3] 1 3 4 2 5 6"}},
	{"concat(a)", {"f32[2] 1 2"}, {"f32[2] 1 2"}},
	{"concat(a, b)", {"f32[0]", "f32[0]"}, {"f32[0]"}},
	{"concat(a, b, axis=1)", {"f32[2,1] 1 2", "f32[3,1] 1 2 3"}, {"!concat.a", ""}},
	{"stack(a, b)", {"T[2] 1 2", "T[2] 3 4"}, {"T[2,2] 1 2 3 4"}, .types = ALL},
	{"stack(a, b, axis=1)", {"f32[2] 1 2", "f32[2] 3 4"}, {"f32[2,2] 1 3 2 4"}},
	{"stack(a, b, c)", {"f32[] 1", "f32[] 2", "f32[] 3"}, {"f32[3] 1 2 3"}},
	{"split(a, axis=1, sizes=[1,2])", {"T[2,3] 1 2 3 4 5 6"}, {"T[2,1] 1 4", "T[2,2] 2 3 5 6"}, .types = ALL},
	{"split(a, sizes=[0,2])", {"f32[2] 1 2"}, {"f32[0]", "f32[2] 1 2"}},
	{"split(a, sizes=[1,2])", {"f32[2] 1 2"}, {"!split.sizes", ""}},
	{"unbind(a, axis=1)", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[2] 1 4", "f32[2] 2 5", "f32[2] 3 6"}},
	{"unbind(a)", {"i8[1] 7"}, {"i8[] 7"}},
	{"einsum(a, b, equation=\"ij,jk->ik\")", {"T[2,2] 1 2 3 4", "T[2,1] 5 6"}, {"T[2,1] 17 39"}, .types = "f32 f64 f16 i32"},
	{"einsum(a, equation=\"ij->ji\")", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[3,2] 1 4 2 5 3 6"}},
	{"einsum(a, equation=\"ii\")", {"f32[2,2] 1 2 3 4"}, {"f32[] 5"}},
	{"einsum(a, b, c, equation=\"i,i,i->\")", {"f32[2] 1 2", "f32[2] 3 4", "f32[2] 5 6"}, {"f32[] 63"}},
	{"einsum(a, b, equation=\"ij,jk\")", {"f32[1,2] 1 2", "f32[2,2] 1 0 0 1"}, {"f32[1,2] 1 2"}},
	{"einsum(a, b, equation=\"bij,bjk->bik\")", {"f32[2,2,3] -2 0 2 -1 1 -2 0 2 -1 1 -2 0", "f32[2,3,2] -2 0 2 -1 1 -2 0 2 -1 1 -2 0"},
		{"f32[2,2,2] 6 -4 2 3 0 2 2 0"}},
	/* extent 1 broadcasts against its letter; so do the axes of ... */
	{"einsum(a, b, equation=\"ij,ij->i\")", {"f32[1,3] -2 0 2", "f32[2,3] -2 0 2 -1 1 -2"}, {"f32[2] 8 -2"}},
	{"einsum(a, b, equation=\"...ij,...jk->...ik\")", {"f32[2,1,2,2] -2 0 2 -1 1 -2 0 2", "f32[2,2,2] -2 0 2 -1 1 -2 0 2"},
		{"f32[2,2,2,2] 4 0 -6 1 -2 4 2 -6 -6 2 4 -2 1 -6 0 4"}},
	{"einsum(a, b, equation=\"...ij, jk\")", {"f32[2,1,3] -2 0 2 -1 1 -2", "f32[3,2] -2 0 2 -1 1 -2"}, {"f32[2,1,2] 6 -4 2 3"}},
	{"einsum(a, equation=\"...->\")", {"f32[2,2] 1 2 3 4"}, {"f32[] 10"}},
	{"einsum(a, equation=\"i...\")", {"f32[1,2] 1 2"}, {"f32[2,1] 1 2"}},
	/* diagonals, outer products, chains */
	{"einsum(a, equation=\"ii->i\")", {"f32[3,3] -2 0 2 -1 1 -2 0 2 -1"}, {"f32[3] -2 1 -1"}},
	{"einsum(a, equation=\"iij->j\")", {"f32[2,2,3] -2 0 2 -1 1 -2 0 2 -1 1 -2 0"}, {"f32[3] -1 -2 2"}},
	{"einsum(a, b, equation=\"i,j->ij\")", {"i8[2] -2 0", "i8[3] -2 0 2"}, {"i8[2,3] 4 0 -4 0 0 0"}},
	{"einsum(a, b, c, equation=\"bij,bjk,bkl->bil\")",
		{"f32[2,2,2] -2 0 2 -1 1 -2 0 2", "f32[2,2,2] -2 0 2 -1 1 -2 0 2", "f32[2,2,2] -2 0 2 -1 1 -2 0 2"},
		{"f32[2,2,2] -8 0 14 -1 1 -14 0 8"}},
	{"einsum(a, b, equation=\"ij,jk->ik\")", {"f32[2,0]", "f32[0,2]"}, {"f32[2,2] 0 0 0 0"}},
};
/* clang-format on */

ROW_CASES(rows_opaque, cases);
ROW_CASES(rows_builder, builders);
