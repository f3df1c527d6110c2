/*
 * test_rows_contract.c: contractions, convolution, pooling, and rows that run
 * along an axis. References are nests of loops over padded coordinates.
 */
#include "rows.h"

#include <math.h>

/* ---- contractions ---- */

/* (2, 3, 4) x (4, 5) -> (2, 3, 5) */
static void want_matmul(const ten *in, ten *out)
{
	for (int64_t i = 0; i < 6; i++)
		for (int64_t n = 0; n < 5; n++) {
			double s = 0;

			for (int64_t k = 0; k < 4; k++)
				s += in[0].at[i * 4 + k] * in[1].at[k * 5 + n];
			out->at[i * 5 + n] = s;
		}
}

/* (2, 3) w (4, 3, 2) (2, 2) -> (2, 4) */
static void want_bilinear(const ten *in, ten *out)
{
	for (int64_t b = 0; b < 2; b++)
		for (int64_t f = 0; f < 4; f++) {
			double s = 0;

			for (int64_t i = 0; i < 3; i++)
				for (int64_t j = 0; j < 2; j++)
					s += in[0].at[b * 3 + i] *
						in[1].at[(f * 3 + i) * 2 + j] *
						in[2].at[b * 2 + j];
			out->at[b * 4 + f] = s;
		}
}

/* (3, 4) (2, 4) -> (3, 2) */
static void want_cdist(const ten *in, ten *out)
{
	for (int64_t m = 0; m < 3; m++)
		for (int64_t n = 0; n < 2; n++) {
			double s = 0;

			for (int64_t k = 0; k < 4; k++)
				s += pow(in[0].at[m * 4 + k] -
						in[1].at[n * 4 + k],
					2);
			out->at[m * 2 + n] = sqrt(s);
		}
}

/* clang-format off */
static const row_case cases[] = {
	{"matmul(a, b)", {"T[2,3,4] ~1", "T[4,5] ~2"}, {"T[2,3,5]"}, want_matmul,
		"f32 f64 f16 bf16 i8 i16 i32 i64"},
	{"matmul(a, b)", {"T[2,1,1,2] 1 2 3 4", "T[1,2,2,1] 1 1 2 2"},
		{"T[2,2,1,1] 3 6 7 14"}, .types = "f32 i32 u8"},
	{"matmul(a, b)", {"f32[2,0]", "f32[0,2]"}, {"f32[2,2] 0 0 0 0"}},
	{"matmul(a, b)", {"f32[0,3]", "f32[3,2] ~1"}, {"f32[0,2]"}},
	{"matmul(a, b)", {"f32[2,16] ~1", "f32[32,2] ~1"}, {"!matmul.k", "k is 16 in a: f32[2,16] but 32 in b: f32[32,2]"}},
	{"matmul(a, b)", {"f32[2] ~1", "f32[2,2] ~1"}, {"!matmul.x", "a: f32[2] has rank 1, but at least rank 2"}},
	{"matmul(a, b)", {"f32[2,2] ~1", "f16[2,2] ~1"}, {"!matmul.dtype", ""}},
	{"matmul(a)", {"f32[2,2] ~1"}, {"!tn.arity", "2 operands (x, y)"}},
	{"matmul(a, b)", {"f16[1,4] 256 256 256 256", "f16[4,1] 256 256 -256 -256"}, {"f16[1,1] 0"}},
	{"matmul(a, b)", {"f32[1,2] inf 1", "f32[2,1] 0 1"}, {"f32[1,1] nan"}},
	{"matvec(a, b)", {"T[2,2] 1 2 3 4", "T[2] 5 6"}, {"T[2] 17 39"}, .types = "f32 f16 i64"},
	{"dot(a, b)", {"T[3] 1 2 3", "T[3] 4 5 6"}, {"T[] 32"}, .types = "f32 f64 f16 bf16 i8 u8"},
	{"dot(a, b)", {"f32[0]", "f32[0]"}, {"f32[] 0"}},
	{"vecdot(a, b)", {"f32[2,2] 1 2 3 4", "f32[2] 1 10"}, {"f32[2] 21 43"}},
	{"outer(a, b)", {"T[2] 1 2", "T[3] 3 4 5"}, {"T[2,3] 3 4 5 6 8 10"}, .types = "f32 bf16 i16"},
	{"linear(a, b, c)", {"f32[1,2,2] 1 2 3 4", "f32[3,2] 1 0 0 1 1 1", "f32[3] 10 20 30"},
		{"f32[1,2,3] 11 22 33 13 24 37"}},
	{"linear(a, b, c)", {"f32[2] 1 2", "f32[1,2] 3 4", "f32[1] 5"}, {"f32[1] 16"}},
	{"linear_nobias(a, b)", {"f32[2,2] 1 2 3 4", "f32[3,2] 1 0 0 1 1 1"}, {"f32[2,3] 1 2 3 3 4 7"}},
	{"addmm(a, b, c, alpha=2, beta=0.5)", {"f32[1,2] 2 4", "f32[1,2] 1 2", "f32[2,2] 1 0 0 1"},
		{"f32[1,2] 3 6"}},
	{"bilinear(a, b, c)", {"T[2,3] ~1", "T[4,3,2] ~2", "T[2,2] ~3"}, {"T[2,4]"}, want_bilinear, "f32 f64"},
	{"kron(a, b)", {"i32[1,2] 1 2", "i32[2,2] 1 2 3 4"}, {"i32[2,4] 1 2 2 4 3 4 6 8"}},
	{"cross(a, b)", {"f32[2,3] 1 0 0 1 2 3", "f32[3] 0 1 0"}, {"f32[2,3] 0 0 1 -3 0 1"}},
	{"cross(a, b)", {"f32[2] 1 0", "f32[2] 0 1"}, {"!cross.i", "3"}},
	{"cdist(a, b)", {"T[3,4] ~1", "T[2,4] ~2"}, {"T[3,2]"}, want_cdist, "f32 f64"},
	{"addmm(a, b, c)", {"f32[1,1] 2", "f32[1,1] 3", "f32[1,1] 5"}, {"f32[1,1] 17"}},
	{"cdist(a, b)", {"f32[1,2] 1 2", "f32[2,2] 1 2 1 2.5"}, {"f32[1,2] 0 0.5"}},
};
/* clang-format on */

ROW_CASES(rows_contract, cases);

/* ---- convolution: N = 2, groups, stride, dilation and padding in 2-D ---- */

typedef struct geometry {
	int64_t groups, stride[2], dil[2], lo[2];
} geometry;

static const geometry g2 = {2, {2, 1}, {1, 2}, {1, 2}};

static double at4(const ten *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
	if (c < 0 || c >= t->shape[2] || d < 0 || d >= t->shape[3])
		return 0;
	return t->at[((a * t->shape[1] + b) * t->shape[2] + c) * t->shape[3] + d];
}

static void conv(const geometry *g, const ten *x, const ten *w, ten *o)
{
	int64_t per_in = w->shape[1], per_out = o->shape[1] / g->groups;
	int64_t i = 0;

	for (int64_t n = 0; n < o->shape[0]; n++)
		for (int64_t f = 0; f < o->shape[1]; f++)
			for (int64_t y = 0; y < o->shape[2]; y++)
				for (int64_t z = 0; z < o->shape[3]; z++) {
					double s = 0;

					for (int64_t c = 0; c < per_in; c++)
						for (int64_t k = 0; k < w->shape[2]; k++)
							for (int64_t l = 0; l < w->shape[3]; l++)
								s += at4(x, n, f / per_out * per_in + c,
									     y * g->stride[0] + k * g->dil[0] - g->lo[0],
									     z * g->stride[1] + l * g->dil[1] - g->lo[1]) *
									at4(w, f, c, k, l);
					o->at[i++] = s;
				}
}

static void want_conv(const ten *in, ten *out)
{
	conv(&g2, &in[0], &in[1], out);
}

/* the transposed one, scattered: x (2, 4, 3, 4), w (4, 3, 2, 2) */
static void want_conv_transpose(const ten *in, ten *out)
{
	const ten *x = &in[0], *w = &in[1];
	int64_t per_in = x->shape[1] / g2.groups, per_out = w->shape[1];

	for (int64_t i = 0; i < out->n; i++)
		out->at[i] = 0;
	for (int64_t i = 0; i < x->n; i++)
		for (int64_t f = 0; f < per_out; f++)
			for (int64_t k = 0; k < w->shape[2]; k++)
				for (int64_t l = 0; l < w->shape[3]; l++) {
					int64_t z = i % x->shape[3];
					int64_t y = i / x->shape[3] % x->shape[2];
					int64_t c = i / (x->shape[3] * x->shape[2]) % x->shape[1];
					int64_t n = i / (x->shape[3] * x->shape[2] * x->shape[1]);
					int64_t to = c / per_in * per_out + f;

					y = y * g2.stride[0] + k * g2.dil[0] - g2.lo[0];
					z = z * g2.stride[1] + l * g2.dil[1] - g2.lo[1];
					if (y < 0 || y >= out->shape[2] || z < 0 || z >= out->shape[3])
						continue;
					out->at[((n * out->shape[1] + to) * out->shape[2] + y) * out->shape[3] + z] +=
						x->at[i] * at4(w, c, f, k, l);
				}
}

/* windows of 3 x 2, stride 2 x 1, padded 1 and 0 in front: x (1, 2, 5, 4) */
static void pool(const ten *in, ten *out, int kind)
{
	int64_t i = 0;

	for (int64_t c = 0; c < 2; c++)
		for (int64_t y = 0; y < 3; y++)
			for (int64_t z = 0; z < 3; z++) {
				double most = -HUGE_VAL, sum = 0, n = 0, l3 = 0;

				for (int64_t k = 0; k < 3; k++)
					for (int64_t l = 0; l < 2; l++) {
						int64_t p = 2 * y + k - 1;
						double v = at4(in, 0, c, p, z + l);

						if (p < 0 || p >= 5)
							continue;
						most = fmax(most, v);
						sum += v;
						l3 += pow(fabs(v), 3);
						n++;
					}
				out->at[i++] = kind == 0 ? most :
					kind == 1	 ? sum / n :
					kind == 2	 ? sum / 6 :
							   pow(l3, 1.0 / 3);
			}
}

static void want_max_pool(const ten *in, ten *out)
{
	pool(in, out, 0);
}

static void want_avg_pool(const ten *in, ten *out)
{
	pool(in, out, 1);
}

static void want_avg_padded(const ten *in, ten *out)
{
	pool(in, out, 2);
}

static void want_lp_pool(const ten *in, ten *out)
{
	pool(in, out, 3);
}

#define G2 "groups=2, stride=[2,1], dil=[1,2], lo=[1,2]"
#define POOL "kernel=[3,2], stride=[2,1], lo=[1,0], hi=[1,0]"

/* clang-format off */
static const row_case convs[] = {
	{"conv(a, b, " G2 ", hi=[0,1])", {"T[2,4,5,6] ~1", "T[6,2,3,2] ~2"}, {"T[2,6,2,7]"},
		want_conv, "f32 f64 f16 i32"},
	{"conv(a, b)", {"f32[1,1,5] 1 2 3 4 5", "f32[1,1,2] 1 10"}, {"f32[1,1,4] 21 32 43 54"}},
	{"conv(a, b)", {"f32[1,2] 3 4", "f32[1,2] 5 6"}, {"f32[1,1] 39"}},
	{"conv(a, b, lo=[1,1,1], hi=[1,1,1])", {"f32[1,1,1,1,1] 2", "f32[1,1,3,3,3] *1"}, {"f32[1,1,1,1,1] 2"}},
	{"conv(a, b)", {"f32[0,1,3]", "f32[2,1,2] ~1"}, {"f32[0,2,2]"}},
	{"conv(a, b)", {"f32[1,0,3]", "f32[2,0,2]"}, {"f32[1,2,2] 0 0 0 0"}},
	{"conv(a, b)", {"f32[1,1,2] ~1", "f32[1,1,4] ~1"}, {"!conv.y", ""}},
	{"conv(a, b)", {"f32[1,2,3] ~1", "f32[1,1,2] ~1"}, {"!conv.c", "c is 2 in a: f32[1,2,3] but 1 in b: f32[1,1,2]"}},
	{"conv(a, b, stride=[0])", {"f32[1,1,3] ~1", "f32[1,1,2] ~1"}, {"!conv.check", ""}},
	{"conv_transpose(a, b, " G2 ", hi=[0,1])", {"T[2,4,3,4] ~1", "T[4,3,2,2] ~2"},
		{"T[2,6,5,3]"}, want_conv_transpose, "f32 f64 i32"},
	{"conv_transpose(a, b, stride=[2])", {"f32[1,1,2] 1 2", "f32[1,1,3] 1 10 100"},
		{"f32[1,1,5] 1 10 102 20 200"}},
	{"unfold(a, kernel=[2], stride=[2], lo=[1], hi=[1])", {"f32[1,1,4] 1 2 3 4"},
		{"f32[1,1,2,3] 0 2 4 1 3 0"}},
	{"unfold(a, kernel=[2,1], dil=[2,1])", {"i32[1,1,3,2] 1 2 3 4 5 6"}, {"i32[1,1,2,1,1,2] 1 2 5 6"}},
	{"fold(a, size=[4], stride=[2], lo=[1], hi=[1])", {"f32[1,1,2,3] 0 2 4 1 3 0"},
		{"f32[1,1,4] 1 2 3 4"}},
	{"fold(a, size=[3])", {"i32[1,1,2,2] 1 2 3 4"}, {"i32[1,1,3] 1 5 4"}},
	{"fold(a, size=[7])", {"i32[1,1,2,2] 1 2 3 4"}, {"!fold.check", ""}},
	{"max_pool(a, " POOL ")", {"T[1,2,5,4] ~3"}, {"T[1,2,3,3]"}, want_max_pool, "f32 f64 f16 bf16 i8 i32"},
	{"max_pool(a, kernel=[2], lo=[2])", {"f32[1,1,2] 1 nan"}, {"f32[1,1,3] -inf 1 nan"}},
	{"max_pool(a, kernel=[2], dil=[2])", {"f32[1,1,4] 1 9 3 4"}, {"f32[1,1,2] 3 9"}},
	{"avg_pool(a, " POOL ")", {"T[1,2,5,4] ~3"}, {"T[1,2,3,3]"}, want_avg_pool, "f32 f64 f16 bf16"},
	{"avg_pool(a, kernel=[1], lo=[1])", {"f32[1,1,1] 5"}, {"f32[1,1,2] nan 5"}},
	{"avg_pool_padded(a, " POOL ")", {"T[1,2,5,4] ~3"}, {"T[1,2,3,3]"}, want_avg_padded, "f32 f64 f16 bf16"},
	{"lp_pool(a, p=3, " POOL ")", {"T[1,2,5,4] ~3"}, {"T[1,2,3,3]"}, want_lp_pool, "f32 f64"},
	{"lp_pool(a, kernel=[2])", {"f32[1,1,2] 3 -4"}, {"f32[1,1,1] 5"}},
	{"global_avg_pool(a)", {"T[1,2,2,2] 1 2 3 4 5 6 7 8"}, {"T[1,2] 2.5 6.5"}, .types = "f32 f64 f16 bf16"},
	{"global_avg_pool(a)", {"f32[1,2] 3 4"}, {"f32[1,2] 3 4"}},
	{"global_max_pool(a)", {"T[1,2,2,2] 1 4 3 2 5 8 7 6"}, {"T[1,2] 4 8"}, .types = "f32 i8"},
	{"conv(a, b, dil=[0])", {"f32[1,1,3] ~1", "f32[1,1,1] ~1"}, {"!conv.check", ""}},
	{"conv_transpose(a, b)", {"f32[1,1,2] 1 2", "f32[1,1,2] 1 10"}, {"f32[1,1,3] 1 12 20"}},
	{"conv_transpose(a, b, stride=[0])", {"f32[1,1,3] ~1", "f32[1,1,2] ~1"}, {"!conv_transpose.check", ""}},
	{"conv_transpose(a, b, dil=[0])", {"f32[1,1,3] ~1", "f32[1,1,2] ~1"}, {"!conv_transpose.check", ""}},
	{"unfold(a, kernel=[2], stride=[0])", {"f32[1,1,3] ~1"}, {"!unfold.check", ""}},
	{"unfold(a, kernel=[2], dil=[0])", {"f32[1,1,3] ~1"}, {"!unfold.check", ""}},
	{"fold(a, size=[3], stride=[0])", {"f32[1,1,2,2] ~1"}, {"!fold.check", "stride"}},
	{"fold(a, size=[3], dil=[0])", {"f32[1,1,2,2] ~1"}, {"!fold.check", "dil"}},
	{"max_pool(a, kernel=[2], stride=[0])", {"f32[1,1,3] ~1"}, {"!max_pool.check", ""}},
	{"max_pool(a, kernel=[2], dil=[0])", {"f32[1,1,3] ~1"}, {"!max_pool.check", ""}},
	{"max_pool(a, kernel=[2])", {"f32[1,1,3] 1 3 2"}, {"f32[1,1,2] 3 3"}},
	{"avg_pool(a, kernel=[2], stride=[0])", {"f32[1,1,3] ~1"}, {"!avg_pool.check", ""}},
	{"avg_pool(a, kernel=[2])", {"f32[1,1,3] 1 3 2"}, {"f32[1,1,2] 2 2.5"}},
	{"avg_pool_padded(a, kernel=[2], stride=[0])", {"f32[1,1,3] ~1"}, {"!avg_pool_padded.check", ""}},
	{"avg_pool_padded(a, kernel=[2])", {"f32[1,1,3] 1 3 2"}, {"f32[1,1,2] 2 2.5"}},
	{"lp_pool(a, kernel=[2], stride=[0])", {"f32[1,1,3] ~1"}, {"!lp_pool.check", ""}},
	{"lp_pool(a, kernel=[2])", {"f32[1,1,3] 3 4 0"}, {"f32[1,1,2] 5 4"}},
};

/* ---- running along an axis ---- */

static const row_case scans[] = {
	{"cumsum(a)", {"T[4] 1 2 3 4"}, {"T[4] 1 3 6 10"}, .types = "f32 f64 f16 bf16 i8 i16 i32 i64 u8"},
	{"cumsum(a, axis=1)", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[2,3] 1 3 6 4 9 15"}},
	{"cumsum(a)", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[2,3] 1 2 3 5 7 9"}},
	{"cumsum(a)", {"i8[2] 100 100"}, {"i8[2] 100 -56"}},
	{"cumsum(a)", {"f32[0,2]"}, {"f32[0,2]"}},
	{"cumsum(a, axis=1)", {"f32[2,0]"}, {"f32[2,0]"}},
	{"cumsum(a)", {"f32[1] 5"}, {"f32[1] 5"}},
	{"cumsum(a)", {"f32[] 5"}, {"!cumsum.axis", ""}},
	{"cumsum(a)", {"f32[3] 1 nan 1"}, {"f32[3] 1 nan nan"}},
	{"cumsum_reverse(a)", {"T[4] 1 2 3 4"}, {"T[4] 10 9 7 4"}, .types = "f32 i32"},
	{"cumsum_reverse(a, axis=-1)", {"f32[2,2] 1 2 3 4"}, {"f32[2,2] 3 2 7 4"}},
	{"cumsum_exclusive(a)", {"T[4] 1 2 3 4"}, {"T[4] 0 1 3 6"}, .types = "f32 i32"},
	{"cumsum_reverse_exclusive(a)", {"T[4] 1 2 3 4"}, {"T[4] 9 7 4 0"}, .types = "f32 i32"},
	{"cumprod(a)", {"T[4] 1 2 0 4"}, {"T[4] 1 2 0 0"}, .types = "f32 f16 i8"},
	{"cummax(a)", {"T[4] 1 3 2 5"}, {"T[4] 1 3 3 5"}, .types = "f32 f64 f16 bf16 i8 i64 u8"},
	{"cummax(a)", {"f32[4] -inf 1 nan 2"}, {"f32[4] -inf 1 nan nan"}},
	{"cummin(a)", {"T[4] 3 4 1 2"}, {"T[4] 3 3 1 1"}, .types = "f32 f64 f16 bf16 i8 i64 u8"},
	{"linear_recurrence(a, b)", {"f32[1,3,2] 9 9 2 3 4 5", "f32[1,3,2] 1 2 3 4 5 6"},
		{"f32[1,3,2] 1 2 5 10 25 56"}},
	{"linear_recurrence(a, b)", {"f32[2,1] 0.5 0.5", "f32[2,1] 1 1"}, {"f32[2,1] 1 1.5"}},
	{"discounted_sum(a, gamma=0.5)", {"f32[3] 4 2 8"}, {"f32[3] 7 6 8"}},
	{"moving_average(a, alpha=0.25)", {"f32[3] 4 8 1"}, {"f32[3] 4 5 4"}},
	{"tanh_rnn(a, b)", {"f64[2,1] 0.5 1", "f64[1] 2"}, {"f64[2,1] 0.46211715726000974 0.958264778443468"}},
};
/* clang-format on */

ROW_CASES(rows_conv, convs);
ROW_CASES(rows_scan, scans);
