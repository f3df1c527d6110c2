/*
 * test_rows_move.c: movement, gather and scatter. Values worked out by hand on
 * small integers, which every dtype holds; larger shapes by loops.
 */
#include "rows.h"

#include <math.h>

/* x[1, 4, 3], 1 channel of 4 columns each interpolated to 7: half pixels */
static void want_linear(const ten *in, ten *out)
{
	for (int64_t a = 0; a < 4; a++)
		for (int64_t y = 0; y < 7; y++) {
			double src = ((double)y + 0.5) * 3 / 7 - 0.5;
			double lo = floor(src), part = src - lo;
			int64_t i = (int64_t)lo, j = i + 1;

			i = i < 0 ? 0 : i;
			j = j > 2 ? 2 : j;
			out->at[7 * a + y] = in->at[3 * a + i] * (1 - part) +
				in->at[3 * a + j] * part;
		}
}

static double pixel(const ten *x, int64_t n, int64_t c, int64_t h, int64_t w)
{
	if (h < 0 || h >= 3 || w < 0 || w >= 4)
		return 0;
	return x->at[((n * 2 + c) * 3 + h) * 4 + w];
}

/* x (2, 2, 3, 4), g (2, 5, 1, 2) -> (2, 2, 5, 1) */
static void want_grid(const ten *in, ten *out)
{
	for (int64_t n = 0; n < 2; n++)
		for (int64_t c = 0; c < 2; c++)
			for (int64_t y = 0; y < 5; y++) {
				const double *g = in[1].at + (n * 5 + y) * 2;
				double u = ((g[0] + 1) * 4 - 1) / 2;
				double v = ((g[1] + 1) * 3 - 1) / 2;
				int64_t i = (int64_t)floor(v);
				int64_t j = (int64_t)floor(u);
				double p = v - floor(v), q = u - floor(u);

				out->at[(n * 2 + c) * 5 + y] =
					pixel(in, n, c, i, j) * (1 - p) *
						(1 - q) +
					pixel(in, n, c, i, j + 1) * (1 - p) * q +
					pixel(in, n, c, i + 1, j) * p * (1 - q) +
					pixel(in, n, c, i + 1, j + 1) * p * q;
			}
}

#define T23 "T[2,3] 1 2 3 4 5 6"
#define ALL "f32 f64 f16 bf16 i8 i16 i32 i64 u8"

/* clang-format off */
static const row_case cases[] = {
	{"reshape(a, shape=[3,2])", {T23}, {"T[3,2] 1 2 3 4 5 6"}, .types = ALL},
	{"reshape(a, shape=[6])", {"bool[2,3] 1 0 0 1 1 0"}, {"bool[6] 1 0 0 1 1 0"}},
	{"reshape(a, shape=[])", {"f32[1,1] 7"}, {"f32[] 7"}},
	{"reshape(a, shape=[1,1])", {"f32[] 7"}, {"f32[1,1] 7"}},
	{"reshape(a, shape=[0,7])", {"f32[3,0]"}, {"f32[0,7]"}},
	{"reshape(a, shape=[4])", {T23}, {"!reshape.size", "6 elements"}},
	{"flatten(a)", {"f32[2,1,2] 1 2 3 4"}, {"f32[2,2] 1 2 3 4"}},
	{"flatten(a, axis=0)", {"f32[2,2] 1 2 3 4"}, {"f32[1,4] 1 2 3 4"}},
	{"flatten(a, axis=2)", {"f32[2,2] 1 2 3 4"}, {"f32[4,1] 1 2 3 4"}},
	{"transpose(a, perm=[1,0])", {T23}, {"T[3,2] 1 4 2 5 3 6"}, .types = ALL},
	{"transpose(a, perm=[2,0,1])", {"i32[1,2,3] 1 2 3 4 5 6"}, {"i32[3,1,2] 1 4 2 5 3 6"}},
	{"transpose(a, perm=[])", {"f32[] 3"}, {"f32[] 3"}},
	{"transpose(a, perm=[1,0])", {"f32[0,3]"}, {"f32[3,0]"}},
	{"transpose(a, perm=[0,0])", {T23}, {"!transpose.perm", ""}},
	{"slice(a, axes=[1], start=[1], count=[2])", {T23}, {"T[2,2] 2 3 5 6"}, .types = ALL},
	{"slice(a, axes=[-1], start=[0], count=[2], step=[2])", {T23}, {"T[2,2] 1 3 4 6"}},
	{"slice(a, axes=[1], start=[2], count=[3], step=[-1])", {T23}, {"T[2,3] 3 2 1 6 5 4"}},
	{"slice(a, axes=[1], start=[3], count=[0])", {T23}, {"T[2,0]"}},
	{"slice(a)", {T23}, {"T[2,3] 1 2 3 4 5 6"}},
	{"slice(a, axes=[1], start=[2], count=[2])", {T23}, {"!slice.check", "axis 1"}},
	{"slice(a, axes=[1], start=[-1], count=[1])", {T23}, {"!slice.check", ""}},
	{"narrow(a, axis=1, start=1, count=1)", {T23}, {"T[2,1] 2 5"}, .types = ALL},
	{"narrow(a, axis=1, start=2, count=2)", {T23}, {"!narrow.check", ""}},
	{"dynamic_narrow(a, b, axis=1, count=2)", {T23, "i64[] 1"},
		{"T[2,2] 2 3 5 6"}, .types = ALL},
	{"dynamic_narrow(a, b, axis=1, count=4)", {T23, "i64[] 0"},
		{"!dynamic_narrow.check", ""}},
	{"select(a, axis=0, index=1)", {T23}, {"T[3] 4 5 6"}, .types = ALL},
	{"select(a, index=0)", {"bool[1] 1"}, {"bool[] 1"}},
	{"select(a, axis=0, index=2)", {T23}, {"!select.check", ""}},
	{"flip(a, axes=[1])", {T23}, {"T[2,3] 3 2 1 6 5 4"}, .types = ALL},
	{"flip(a, axes=[0,-1])", {T23}, {"T[2,3] 6 5 4 3 2 1"}},
	{"flip(a, axes=[])", {"f32[] 1"}, {"f32[] 1"}},
	{"roll(a, axes=[1], shift=[1])", {T23}, {"T[2,3] 3 1 2 6 4 5"}, .types = ALL},
	{"roll(a, axes=[0,1], shift=[1,-4])", {T23}, {"T[2,3] 5 6 4 2 3 1"}},
	{"roll(a, axes=[1], shift=[1])", {"f32[2,0]"}, {"f32[2,0]"}},
	{"broadcast_to(a, shape=[2,3])", {"T[2,1] 1 2"}, {"T[2,3] 1 1 1 2 2 2"}, .types = ALL},
	{"broadcast_to(a, shape=[2,0,2])", {"f32[2] 1 2"}, {"f32[2,0,2]"}},
	{"broadcast_to(a, shape=[2])", {"f32[] 1"}, {"f32[2] 1 1"}},
	{"broadcast_to(a, shape=[4])", {"f32[3] ~1"}, {"!broadcast_to.b", ""}},
	{"squeeze(a, axes=[0,2])", {"f32[1,2,1] 1 2"}, {"f32[2] 1 2"}},
	{"squeeze(a)", {"f32[1,1] 5"}, {"f32[] 5"}},
	{"squeeze(a, axes=[0])", {T23}, {"!squeeze.check", ""}},
	{"unsqueeze(a, axis=1)", {"f32[2] 1 2"}, {"f32[2,1] 1 2"}},
	{"unsqueeze(a)", {"f32[] 1"}, {"f32[1] 1"}},
	{"pad(a, lo=[1,0], hi=[0,2], value=9)", {"T[1,2] 1 2"}, {"T[2,4] 9 9 9 9 1 2 9 9"}, .types = ALL},
	{"pad(a, lo=[-1], hi=[1])", {"f32[3] 1 2 3"}, {"f32[3] 2 3 0"}},
	{"pad(a, lo=[2], hi=[0], value=-inf)", {"f32[0]"}, {"f32[2] -inf -inf"}},
	{"pad(a, lo=[1], hi=[1])", {"bool[1] 1"}, {"bool[3] 0 1 0"}},
	{"pad(a, lo=[-2], hi=[-2])", {"f32[3] 1 2 3"}, {"!pad.i", ""}},
	{"pad_edge(a, lo=[2], hi=[1])", {"T[3] 1 2 3"}, {"T[6] 1 1 1 2 3 3"}, .types = ALL},
	{"pad_edge(a, lo=[1], hi=[0])", {"f32[0]"}, {"!pad_edge.check", ""}},
	{"pad_reflect(a, lo=[2], hi=[2])", {"T[3] 1 2 3"}, {"T[7] 3 2 1 2 3 2 1"}, .types = ALL},
	{"pad_reflect(a, lo=[3], hi=[4])", {"f32[2] 1 2"}, {"f32[9] 2 1 2 1 2 1 2 1 2"}},
	{"pad_reflect(a, lo=[1], hi=[1])", {"f32[1] 5"}, {"f32[3] 5 5 5"}},
	{"pad_reflect(a, lo=[0,1], hi=[0,1])", {T23}, {"T[2,5] 2 1 2 3 2 5 4 5 6 5"}},
	{"pad_wrap(a, lo=[2], hi=[4])", {"T[3] 1 2 3"}, {"T[9] 2 3 1 2 3 1 2 3 1"}, .types = ALL},
	{"tile(a, reps=[2,1])", {"T[1,2] 1 2"}, {"T[2,2] 1 2 1 2"}, .types = ALL},
	{"tile(a, reps=[3])", {"f32[2] 1 2"}, {"f32[6] 1 2 1 2 1 2"}},
	{"tile(a, reps=[0])", {"f32[2] 1 2"}, {"f32[0]"}},
	{"tile(a, reps=[2])", {"f32[0]"}, {"f32[0]"}},
	{"repeat(a, reps=2)", {"T[2] 1 2"}, {"T[4] 1 1 2 2"}, .types = ALL},
	{"repeat(a, axis=1, reps=2)", {"f32[1,2] 1 2"}, {"f32[1,4] 1 1 2 2"}},
	{"repeat(a, reps=0)", {"f32[2] 1 2"}, {"f32[0]"}},
	{"tril(a)", {"T[2,3] 1 2 3 4 5 6"}, {"T[2,3] 1 0 0 4 5 0"}, .types = ALL},
	{"tril(a, k=-1)", {"bool[2,2] 1 1 1 1"}, {"bool[2,2] 0 0 1 0"}},
	{"tril(a)", {"f32[2,2] nan nan 1 inf"}, {"f32[2,2] nan 0 1 inf"}},
	{"triu(a, k=1)", {"f32[1,3,3] 1 2 3 4 5 6 7 8 9"}, {"f32[1,3,3] 0 2 3 0 0 6 0 0 0"}},
	{"diagonal(a)", {"T[2,3] 1 2 3 4 5 6"}, {"T[2] 1 5"}, .types = ALL},
	{"diagonal(a, k=1)", {T23}, {"T[2] 2 6"}},
	{"diagonal(a, k=-1)", {T23}, {"T[1] 4"}},
	{"diagonal(a, k=5)", {T23}, {"T[0]"}},
	{"diag_embed(a)", {"T[2] 1 2"}, {"T[2,2] 1 0 0 2"}, .types = ALL},
	{"diag_embed(a, k=1)", {"f32[1,2] 1 2"}, {"f32[1,3,3] 0 1 0 0 0 2 0 0 0"}},
	{"diag_embed(a, k=-1)", {"f32[1] 4"}, {"f32[2,2] 0 0 4 0"}},
	{"trace(a)", {"T[2,2,2] 1 2 3 4 5 6 7 8"}, {"T[2] 5 13"}, .types = ALL},
	{"trace(a)", {"f32[0,0]"}, {"f32[] 0"}},
	{"trace(a)", {T23}, {"!trace.i", "i is 2 but also 3 in a: f32[2,3]"}},
	{"depth_to_space(a, r=2)", {"T[1,4,1,2] 0 1 2 3 4 5 6 7"},
		{"T[1,1,2,4] 0 2 1 3 4 6 5 7"}, .types = ALL},
	{"space_to_depth(a, r=2)", {"T[1,1,2,4] 0 2 1 3 4 6 5 7"},
		{"T[1,4,1,2] 0 1 2 3 4 5 6 7"}, .types = ALL},
	{"depth_to_space(a, r=2)", {"f32[1,8,1,1] 0 1 2 3 4 5 6 7"},
		{"f32[1,2,2,2] 0 2 4 6 1 3 5 7"}},
	{"depth_to_space(a, r=2)", {"f32[1,6,1,1] ~1"}, {"!depth_to_space.c", "divisible"}},
	{"pixel_shuffle(a, r=2)", {"f32[1,8,1,1] 0 1 2 3 4 5 6 7"},
		{"f32[1,2,2,2] 0 1 2 3 4 5 6 7"}},
	{"pixel_unshuffle(a, r=2)", {"f32[1,1,2,4] 0 1 2 3 4 5 6 7"},
		{"f32[1,4,1,2] 0 2 1 3 4 6 5 7"}},
	{"channel_shuffle(a, groups=2)", {"f32[1,6,1] 0 1 2 3 4 5"}, {"f32[1,6,1] 0 3 1 4 2 5"}},
	{"channel_shuffle(a, groups=3)", {"f32[1,6] 0 1 2 3 4 5"}, {"f32[1,6] 0 2 4 1 3 5"}},
	{"resize_nearest(a, size=[4])", {"T[1,1,2] 1 2"}, {"T[1,1,4] 1 1 2 2"}, .types = ALL},
	{"resize_nearest(a, size=[1,2])", {"f32[1,1,2,3] 1 2 3 4 5 6"}, {"f32[1,1,1,2] 1 2"}},
	{"resize_nearest(a, size=[5])", {"f32[1,1,3] 1 2 3"}, {"f32[1,1,5] 1 1 2 2 3"}},
	{"resize_linear(a, size=7)", {"T[4,3] ~8"}, {"T[4,7]"}, want_linear, "f32 f64 f16"},
	{"resize_linear(a, axis=0, size=4, align=true)", {"f32[2,1] 0 3"}, {"f32[4,1] 0 1 2 3"}},
	{"resize_linear(a, size=1)", {"f32[4] 0 1 2 3"}, {"f32[1] 1.5"}},
	{"resize_linear(a, size=1, align=true)", {"f32[4] 5 1 2 3"}, {"f32[1] 5"}},
	{"grid_sample(a, b)", {"T[2,2,3,4] ~9", "T[2,5,1,2] 0 0 -0.5 -0.75 0.25 -0.25 0.75 0.5 -0.25 -0.5 -1 -1 1 1 "
		"0.125 -0.375 -0.625 -0.25 0.5 -1.25"}, {"T[2,2,5,1]"}, want_grid, "f32 f64"},
	{"diff(a)", {"T[4] 1 4 9 16"}, {"T[3] 3 5 7"}, .types = ALL},
	{"diff(a, axis=0)", {"i32[2,2] 1 2 5 3"}, {"i32[1,2] 4 1"}},
	{"diff(a)", {"f32[0]"}, {"f32[0]"}},
	{"flatten(a)", {"f32[2,2,1] 1 2 3 4"}, {"f32[2,2] 1 2 3 4"}},
	{"slice(a, axes=[1], start=[0], count=[3], step=[-1])", {T23}, {"!slice.check", ""}},
	{"slice(a, axes=[1], start=[2], count=[2], step=[-2])", {T23}, {"T[2,2] 3 1 6 4"}},
	{"slice(a, axes=[1], start=[0], count=[2], step=[3])", {T23}, {"!slice.check", ""}},
	{"slice(a, axes=[1], start=[4], count=[0])", {T23}, {"!slice.check", ""}},
	{"slice(a, axes=[1], start=[3], count=[1])", {T23}, {"!slice.check", ""}},
	{"slice(a, axes=[0], start=[0], count=[0])", {"f32[0]"}, {"f32[0]"}},
	{"slice(a, axes=[0], start=[0], count=[1])", {"f32[0]"}, {"!slice.check", ""}},
	{"slice(a, axes=[1], start=[0], count=[-1])", {T23}, {"!slice.check", ""}},
	{"narrow(a, count=2)", {T23}, {"T[2,3] 1 2 3 4 5 6"}},
	{"narrow(a, start=2, count=0)", {T23}, {"T[0,3]"}},
	{"narrow(a, start=-1, count=1)", {T23}, {"!narrow.check", ""}},
	{"narrow(a, start=1, count=-1)", {T23}, {"!narrow.check", ""}},
	{"select(a, index=-1)", {T23}, {"!select.check", ""}},
	{"roll(a, shift=[1])", {"f32[1] 5"}, {"f32[1] 5"}},
	{"pad_edge(a, lo=[1], hi=[1])", {"f32[1] 5"}, {"f32[3] 5 5 5"}},
	{"pad_edge(a, lo=[2], hi=[-2])", {"f32[0]"}, {"f32[0]"}},
	{"pad_reflect(a, lo=[1], hi=[0])", {"f32[0]"}, {"!pad_reflect.check", ""}},
	{"pad_reflect(a, lo=[2], hi=[-2])", {"f32[0]"}, {"f32[0]"}},
	{"pad_wrap(a, lo=[1], hi=[1])", {"f32[1] 5"}, {"f32[3] 5 5 5"}},
	{"pad_wrap(a, lo=[0], hi=[1])", {"f32[0]"}, {"!pad_wrap.check", ""}},
	{"pad_wrap(a, lo=[2], hi=[-2])", {"f32[0]"}, {"f32[0]"}},
	{"repeat(a, reps=1)", {"f32[2] 1 2"}, {"f32[2] 1 2"}},
	{"repeat(a, reps=-1)", {"f32[2] 1 2"}, {"!repeat.check", ""}},
	{"triu(a)", {"f32[2,2] 1 2 3 4"}, {"f32[2,2] 1 2 0 4"}},
	{"resample(a, b, c)", {"T[3] 1 2 4", "i64[2,2] 0 2 1 1", "T[2,2] 0.5 0.25 1 2"}, {"T[2] 1.5 6"}, .types = "f32 f64 f16"},
	{"resample(a, b, c, axis=1)", {"f32[2,2] 1 2 3 4", "i32[1,2] 1 0", "f32[1,2] 1 10"}, {"f32[2,1] 12 34"}},
	{"sample_pixels(a, b, c)", {"T[1,2,2,2] 1 2 3 4 5 6 7 8", "i64[1,1,3] 0 1 2", "i64[1,1,3] 1 0 0"},
		{"T[1,2,1,3] 2 3 0 6 7 0"}, .types = "f32 f64 i32"},
	{"max_boxes(a, b, c, d, e, f)", {"f32[1,1,2,3] -1 2 3 4 5 -6", "i64[1] 0", "i64[1,2] 0 1", "i64[1,2] 1 2",
		"i64[1,2] 0 2", "i64[1,2] 2 2"}, {"f32[1,1,2,2] 2 0 5 0"}},
	{"sample_boxes(a, b, c, d, e, f)", {"f32[2,1,2,2] 1 2 3 4 5 6 7 8", "i64[1] 1", "i64[1,2] 0 1", "i64[1,1] 1",
		"f32[1,2] 1 2", "f32[1,1] 10"}, {"f32[1,1,2,1] 60 160"}},
	{"resize_linear(a, size=3)", {"f32[1] 5"}, {"f32[3] 5 5 5"}},
	{"resize_linear(a, size=1, align=true)", {"f32[1] 5"}, {"f32[1] 5"}},
	{"resize_linear(a, size=0)", {"f32[0]"}, {"f32[0]"}},
	{"resize_linear(a, size=1)", {"f32[0]"}, {"!resize_linear.check", ""}},
	{"diff(a)", {"i32[2,2] 1 2 5 3"}, {"i32[2,1] 1 -2"}},
};

static const row_case gathers[] = {
	{"take(a, b)", {"T[3] 5 6 7", "i64[2,2] 2 0 1 1"}, {"T[2,2] 7 5 6 6"}, .types = ALL},
	{"take(a, b, axis=1)", {T23, "u8[1] 2"}, {"T[2,1] 3 6"}},
	{"take(a, b, axis=-1)", {T23, "i32[] 1"}, {"T[2] 2 5"}},
	{"take(a, b)", {"f32[3] ~1", "i64[0]"}, {"f32[0]"}},
	{"take(a, b)", {"f32[3] ~1", "i64[1] 3"}, {"!index.range", "3"}},
	{"take(a, b)", {"f32[3] ~1", "i64[1] -1"}, {"!index.range", "-1"}},
	{"take(a, b)", {"f32[3] ~1", "f32[1] 1"}, {"!take.dtype", ""}},
	{"take_along(a, b, axis=1)", {T23, "i64[2,2] 2 0 1 1"}, {"T[2,2] 3 1 5 5"}, .types = ALL},
	{"take_along(a, b)", {T23, "i32[1,3] 1 0 1"}, {"T[1,3] 4 2 6"}},
	{"gather_nd(a, b)", {"i64[2,2] 0 2 1 0", T23}, {"T[2] 3 4"}, .types = ALL},
	{"gather_nd(a, b)", {"i64[2,1] 1 0", T23}, {"T[2,3] 4 5 6 1 2 3"}},
	{"embedding(a, b)", {"i64[2,2] 2 0 1 1", "T[3,2] 1 2 3 4 5 6"},
		{"T[2,2,2] 5 6 1 2 3 4 3 4"}, .types = ALL},
	{"embedding(a, b)", {"i64[] 1", "f32[2,0]"}, {"f32[0]"}},
	{"embedding_bag(a, b)", {"i64[2,2] 2 0 1 1", "T[3,2] 1 2 3 4 5 6"},
		{"T[2,2] 6 8 6 8"}, .types = ALL},
	{"scatter_add(a, b, c)", {"T[3] 10 20 30", "i64[3] 2 0 2", "T[3] 1 2 3"},
		{"T[3] 12 20 34"}, .types = ALL},
	{"scatter_add(a, b, c)", {"i32[2,2] 0 0 0 0", "i64[1,2] 1 1", "i32[1,2,2] 1 2 3 4"},
		{"i32[2,2] 0 0 4 6"}},
	{"scatter_add(a, b, c)", {"f32[2] 0 0", "i64[1] 2", "f32[1] 1"}, {"!index.range", "2"}},
	{"scatter_add(a, b, c)", {"f32[2] 1 2", "i64[0]", "f32[0]"}, {"f32[2] 1 2"}},
	{"scatter_max(a, b, c)", {"T[3] 2 2 2", "i64[3] 0 0 1", "T[3] 1 5 1"},
		{"T[3] 5 2 2"}, .types = ALL},
	{"scatter_min(a, b, c)", {"T[3] 2 2 2", "i64[3] 0 0 1", "T[3] 1 5 3"},
		{"T[3] 1 2 2"}, .types = ALL},
	{"scatter_mul(a, b, c)", {"T[3] 2 2 2", "i64[3] 0 0 1", "T[3] 1 5 3"},
		{"T[3] 10 6 2"}, .types = ALL},
	{"scatter_set(a, b, c)", {"T[3,2] 1 2 3 4 5 6", "i64[3] 2 0 2", "T[3,2] 11 12 13 14 15 16"},
		{"T[3,2] 13 14 3 4 15 16"}, .types = ALL},
	{"scatter_set(a, b, c)", {"bool[2] 0 0", "i64[1] 1", "bool[1] 1"}, {"bool[2] 0 1"}},
	{"scatter_set(a, b, c)", {"f32[2] 1 2", "i64[0]", "f32[0]"}, {"f32[2] 1 2"}},
	{"scatter_set(a, b, c)", {"f32[2] 1 2", "i64[1] -1", "f32[1] 5"}, {"!index.range", "-1"}},
	{"index_add(a, b, c, axis=1)", {T23, "i64[2] 2 2", "T[2,2] 10 20 30 40"},
		{"T[2,3] 1 2 33 4 5 76"}, .types = ALL},
	{"index_set(a, b, c, axis=1)", {T23, "i64[2] 2 2", "T[2,2] 10 20 30 40"},
		{"T[2,3] 1 2 20 4 5 40"}, .types = ALL},
	{"add_along(a, b, c, axis=1)", {T23, "i64[2,2] 2 2 0 1", "T[2,2] 10 20 30 40"},
		{"T[2,3] 1 2 33 34 45 6"}, .types = ALL},
	{"put_along(a, b, c, axis=1)", {T23, "i64[2,2] 2 2 0 1", "T[2,2] 10 20 30 40"},
		{"T[2,3] 1 2 20 30 40 6"}, .types = ALL},
	{"scatter_nd_add(a, b, c)", {"i64[3,2] 0 2 1 0 0 2", T23, "T[3] 10 20 30"},
		{"T[2,3] 1 2 43 24 5 6"}, .types = ALL},
	{"scatter_nd_add(a, b, c)", {"i64[1,1] 1", T23, "T[1,3] 1 2 3"}, {"T[2,3] 1 2 3 5 7 9"}},
	{"scatter_nd_set(a, b, c)", {"i64[3,2] 0 2 1 0 0 2", T23, "T[3] 10 20 30"},
		{"T[2,3] 1 2 30 20 5 6"}, .types = ALL},
	{"histogram(a, bins=4)", {"i32[2,3] 0 1 1 3 3 3"}, {"i64[4] 1 2 0 3"}},
	{"histogram(a, bins=2)", {"i64[0]"}, {"i64[2] 0 0"}},
	{"histogram(a, bins=2)", {"i64[1] 2"}, {"!index.range", "2"}},
	{"segment_sum(a, b, count=3)", {"T[3,2] 1 2 3 4 5 6", "i64[3] 2 0 2"},
		{"T[3,2] 3 4 0 0 6 8"}, .types = ALL},
	{"segment_max(a, b, count=3)", {"f32[3,1] 1 3 2", "i64[3] 2 0 2"}, {"f32[3,1] 3 -inf 2"}},
	{"segment_max(a, b, count=2)", {"i8[1] 5", "i64[1] 1"}, {"i8[2] -128 5"}},
	{"segment_mean(a, b, count=3)", {"T[3,2] 1 2 3 4 5 6", "i64[3] 2 0 2"},
		{"T[3,2] 3 4 0 0 3 4"}, .types = "f32 f64 f16 bf16"},
	{"index_set(a, b, c)", {"f32[2,1] 1 2", "i64[1] 1", "f32[1,1] 7"}, {"f32[2,1] 1 7"}},
	{"index_add(a, b, c)", {"f32[2,1] 1 2", "i64[1] 1", "f32[1,1] 7"}, {"f32[2,1] 1 9"}},
	{"add_along(a, b, c)", {"f32[2,1] 1 2", "i64[1,1] 1", "f32[1,1] 7"}, {"f32[2,1] 1 9"}},
	{"put_along(a, b, c)", {"f32[2,1] 1 2", "i64[1,1] 1", "f32[1,1] 7"}, {"f32[2,1] 1 7"}},
	{"scatter_nd_set(a, b, c)", {"i64[1,1] 1", "f32[2] 1 2", "f32[1] 7"}, {"f32[2] 1 7"}},
	{"take_along(a, b)", {"f32[2] 1 2", "i64[0]"}, {"f32[0]"}},
};
/* clang-format on */

ROW_CASES(rows_move, cases);
ROW_CASES(rows_gather, gathers);
