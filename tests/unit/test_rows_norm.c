/*
 * test_rows_norm.c: softmax, normalisation, losses and attention against
 * straightforward two-pass loops over doubles.
 */
#include "rows.h"

#include <math.h>

/* ---- softmax along the middle of (2, 5, 3) ---- */

static double sum_exp(const ten *x, int64_t i)
{
	double s = 0;

	for (int64_t j = 0; j < 5; j++)
		s += exp(x->at[i / 15 * 15 + j * 3 + i % 3]);
	return s;
}

static void want_softmax(const ten *in, ten *out)
{
	for (int64_t i = 0; i < 30; i++)
		out->at[i] = exp(in->at[i]) / sum_exp(in, i);
}

static void want_log_softmax(const ten *in, ten *out)
{
	for (int64_t i = 0; i < 30; i++)
		out->at[i] = in->at[i] - log(sum_exp(in, i));
}

/* ---- normalisation ---- */

/* Statistics of x over the elements i whose group(i) is g. */
typedef int64_t grouping(int64_t i);

static void stats(const ten *x, grouping *group, int64_t g, double *mean,
	double *var)
{
	double s = 0, v = 0, n = 0;

	for (int64_t i = 0; i < x->n; i++)
		if (group(i) == g)
			s += x->at[i], n++;
	*mean = s / n;
	for (int64_t i = 0; i < x->n; i++)
		if (group(i) == g)
			v += (x->at[i] - *mean) * (x->at[i] - *mean);
	*var = v / n;
}

static void normalise(const ten *x, ten *o, grouping *group, double eps)
{
	for (int64_t i = 0; i < x->n; i++) {
		double mean, var;

		stats(x, group, group(i), &mean, &var);
		o->at[i] = (x->at[i] - mean) / sqrt(var + eps);
	}
}

static int64_t by_6(int64_t i)
{
	return i / 6;
}

static int64_t by_2(int64_t i)
{
	return i / 2;
}

/* layer norm of (2, 3, 2) over its last two axes */
static void want_layer(const ten *in, ten *out)
{
	normalise(&in[0], out, by_6, 1e-5);
	for (int64_t i = 0; i < 12; i++)
		out->at[i] = out->at[i] * in[1].at[i % 6] + in[2].at[i % 6];
}

/* of (6, 2) over its last axis */
static void want_layer1(const ten *in, ten *out)
{
	normalise(&in[0], out, by_2, 0.5);
	for (int64_t i = 0; i < 12; i++)
		out->at[i] = out->at[i] * in[1].at[i % 2] + in[2].at[i % 2];
}

static void want_rms(const ten *in, ten *out) /* (2, 6) */
{
	for (int64_t i = 0; i < 12; i++) {
		double s = 0;

		for (int64_t j = 0; j < 6; j++)
			s += pow(in[0].at[i / 6 * 6 + j], 2);
		out->at[i] = in[0].at[i] / sqrt(s / 6 + 1e-5) * in[1].at[i % 6];
	}
}

/* x (2, 4, 3): channel, pair of channels, sample and channel */
static int64_t channel(int64_t i)
{
	return i / 3 % 4;
}

static int64_t pair(int64_t i)
{
	return i / 6;
}

static int64_t sample_channel(int64_t i)
{
	return i / 3;
}

static void scale_channels(const ten *in, ten *out)
{
	for (int64_t i = 0; i < out->n; i++)
		out->at[i] = out->at[i] * in[1].at[channel(i)] +
			in[2].at[channel(i)];
}

static void want_batch(const ten *in, ten *out)
{
	normalise(&in[0], &out[0], channel, 1e-5);
	scale_channels(in, out);
	for (int64_t c = 0; c < 4; c++) {
		double mean, var;

		stats(&in[0], channel, c, &mean, &var);
		out[1].at[c] = 0.75 * in[3].at[c] + 0.25 * mean;
		out[2].at[c] = 0.75 * in[4].at[c] + 0.25 * var;
	}
}

static void want_batch_infer(const ten *in, ten *out)
{
	for (int64_t i = 0; i < out->n; i++)
		out->at[i] = (in[0].at[i] - in[3].at[channel(i)]) /
			sqrt(in[4].at[channel(i)] + 1e-5);
	scale_channels(in, out);
}

static void want_group(const ten *in, ten *out)
{
	normalise(&in[0], out, pair, 1e-5);
	scale_channels(in, out);
}

static void want_instance(const ten *in, ten *out)
{
	normalise(&in[0], out, sample_channel, 1e-5);
	scale_channels(in, out);
}

static void want_standardize(const ten *in, ten *out)
{
	normalise(&in[0], out, by_6, 1e-5);
}

/* size 3 over the channels of (1, 4, 2) */
static void want_lrn(const ten *in, ten *out)
{
	for (int64_t i = 0; i < 8; i++) {
		double s = 0;

		for (int64_t c = i / 2 - 1; c <= i / 2 + 1; c++)
			if (c >= 0 && c < 4)
				s += pow(in->at[c * 2 + i % 2], 2);
		out->at[i] = in->at[i] / pow(2 + 0.5 / 3 * s, 0.75);
	}
}

#define FLOATS "f32 f64 f16 bf16"
#define CH "T[2,4,3] ~3", "T[4] ~4", "T[4] ~5"

/* clang-format off */
static const row_case cases[] = {
	{"softmax(a, axis=1)", {"T[2,5,3] ~1"}, {"T[2,5,3]"}, want_softmax, FLOATS},
	{"softmax(a)", {"f32[1,3] 1000 1000 -1000"}, {"f32[1,3] 0.5 0.5 0"}},
	{"softmax(a)", {"f32[2,2] -inf 0 -inf -inf"}, {"f32[2,2] 0 1 nan nan"}},
	{"softmax(a)", {"f32[2,0]"}, {"f32[2,0]"}},
	{"softmax(a)", {"f32[0,2]"}, {"f32[0,2]"}},
	{"softmax(a)", {"f32[1] 7"}, {"f32[1] 1"}},
	{"softmax(a)", {"f32[] 7"}, {"!softmax.axis", ""}},
	{"softmax(a, axis=2)", {"f32[2,2] ~1"}, {"!softmax.axis", ""}},
	{"log_softmax(a, axis=1)", {"T[2,5,3] ~1"}, {"T[2,5,3]"}, want_log_softmax, FLOATS},
	{"log_softmax(a)", {"f32[2] 0 -1000"}, {"f32[2] 0 -1000"}},
	{"masked_softmax(a, b)", {"f32[3,3] 1 1 5 9 9 9 2 2 2", "bool[3,3] 1 1 0 0 0 0 0 0 1"},
		{"f32[3,3] 0.5 0.5 0 0 0 0 0 0 1"}},
	{"layer_norm(a, b, c, k=2)", {"T[2,3,2] ~1", "T[3,2] ~2", "T[3,2] ~3"}, {"T[2,3,2]"}, want_layer, FLOATS},
	{"layer_norm(a, b, c, eps=0.5)", {"T[6,2] ~1", "T[2] ~2", "T[2] ~3"}, {"T[6,2]"}, want_layer1, FLOATS},
	{"layer_norm(a, b, c)", {"f16[1,4] 60000 60000 60000 60000", "f16[4] *1", "f16[4] *2"}, {"f16[1,4] 2 2 2 2"}},
	{"layer_norm(a, b, c)", {"f32[0,3]", "f32[3] ~1", "f32[3] ~2"}, {"f32[0,3]"}},
	{"layer_norm(a, b, c)", {"f32[2,3] ~1", "f32[2] ~1", "f32[3] ~2"}, {"!layer_norm.j", ""}},
	{"layer_norm_welford(a, b, c, eps=0.5)", {"T[6,2] ~1", "T[2] ~2", "T[2] ~3"}, {"T[6,2]"}, want_layer1, FLOATS},
	{"rms_norm(a, b)", {"T[2,6] ~1", "T[6] ~2"}, {"T[2,6]"}, want_rms, FLOATS},
	{"batch_norm(a, b, c, d, e, momentum=0.25)", {CH, "T[4] ~6", "T[4] 1 2 3 4"},
		{"T[2,4,3]", "T[4]", "T[4]"}, want_batch, FLOATS},
	{"batch_norm_infer(a, b, c, d, e)", {CH, "T[4] ~6", "T[4] 1 2 3 4"}, {"T[2,4,3]"}, want_batch_infer, FLOATS},
	{"group_norm(a, b, c, groups=2)", {CH}, {"T[2,4,3]"}, want_group, FLOATS},
	{"group_norm(a, b, c, groups=3)", {"f32[2,4,3] ~3", "f32[4] ~4", "f32[4] ~5"}, {"!group_norm.c", "divisible"}},
	{"instance_norm(a, b, c)", {CH}, {"T[2,4,3]"}, want_instance, FLOATS},
	{"standardize(a, axes=[1,2])", {"T[2,3,2] ~7"}, {"T[2,3,2]"}, want_standardize, FLOATS},
	{"l2_normalize(a, axes=[1])", {"T[2,2] 3 4 0 0"}, {"T[2,2] 0.6 0.8 0 0"}, .types = FLOATS},
	{"local_response_norm(a, size=3, alpha=0.5, bias=2)", {"T[1,4,2] ~8"}, {"T[1,4,2]"}, want_lrn, FLOATS},
	{"log_softmax(a)", {"f32[2,2] 0 0 0 -100"}, {"f32[2,2] -0.69314718 -0.69314718 0 -100"}},
	{"masked_softmax(a, b)", {"f32[1,3] 1000 1000 -1000", "bool[1,3] 1 1 1"}, {"f32[1,3] 0.5 0.5 0"}},
	{"masked_softmax(a, b)", {"f32[1,2] -1000 -1000", "bool[1,2] 1 1"}, {"f32[1,2] 0.5 0.5"}},
	{"layer_norm_welford(a, b, c)", {"f32[1,2] 1 3", "f32[2] *1", "f32[2] *0"}, {"f32[1,2] -0.999995 0.999995"}},
	{"batch_norm(a, b, c, d, e)", {"f32[2,1] 1 3", "f32[1] 1", "f32[1] 0", "f32[1] 0", "f32[1] 0"},
		{"f32[2,1] -0.999995 0.999995", "f32[1] 0.2", "f32[1] 0.1"}},
	{"l2_normalize(a)", {"f32[2] 0.003 0.004"}, {"f32[2] 0.6 0.8"}},
	{"l2_normalize(a, eps=2)", {"f32[2] 0.6 0.8"}, {"f32[2] 0.3 0.4"}},
	{"local_response_norm(a, size=1)", {"f32[1,1] 100"}, {"f32[1,1] 59.46035575"}},
	{"local_response_norm(a, size=0)", {"f32[1,1] 100"}, {"!local_response_norm.check", ""}},
};
/* clang-format on */

ROW_CASES(rows_norm, cases);

/* ---- losses ---- */

/* -log softmax of row b of (3, 4) at class v */
static double nll(const ten *x, int64_t b, int64_t v)
{
	double s = 0;

	for (int64_t j = 0; j < 4; j++)
		s += exp(x->at[b * 4 + j]);
	return log(s) - x->at[b * 4 + v];
}

static void want_rows(const ten *in, ten *out)
{
	for (int64_t b = 0; b < 3; b++)
		out->at[b] = nll(in, b, (int64_t)in[1].at[b]);
}

static void want_cross(const ten *in, ten *out)
{
	out->at[0] = (nll(in, 0, (int64_t)in[1].at[0]) +
			     nll(in, 1, (int64_t)in[1].at[1]) +
			     nll(in, 2, (int64_t)in[1].at[2])) /
		3;
}

static void want_masked(const ten *in, ten *out)
{
	out->at[0] = (nll(in, 0, 3) + nll(in, 2, 1)) / 2;
}

static void want_soft(const ten *in, ten *out)
{
	double s = 0;

	for (int64_t b = 0; b < 3; b++)
		for (int64_t v = 0; v < 4; v++)
			s += in[1].at[b * 4 + v] * nll(in, b, v);
	out->at[0] = s / 3;
}

#define PAIR(name, term)                                                       \
	static void want_##name(const ten *in, ten *out)                       \
	{                                                                      \
		double s = 0;                                                  \
                                                                               \
		for (int64_t i = 0; i < in[0].n; i++) {                        \
			double x = in[0].at[i], y = in[1].at[i];               \
                                                                               \
			s += term;                                             \
		}                                                              \
		out->at[0] = s / (double)in[0].n;                              \
	}
PAIR(mse, (x - y) * (x - y))
PAIR(l1, fabs(x - y))
PAIR(huber, fabs(x - y) <= 0.5 ? (x - y) * (x - y) / 2 :
				 0.5 * fabs(x - y) - 0.125)
PAIR(hinge, fmax(0, 1 - x * y))
PAIR(logits, -(y * log(1 / (1 + exp(-x))) + (1 - y) * log(1 / (1 + exp(x)))))

static void want_cosine(const ten *in, ten *out) /* (3, 4) */
{
	for (int64_t b = 0; b < 3; b++) {
		double p = 0, x = 0, y = 0;

		for (int64_t j = 4 * b; j < 4 * b + 4; j++) {
			p += in[0].at[j] * in[1].at[j];
			x += in[0].at[j] * in[0].at[j];
			y += in[1].at[j] * in[1].at[j];
		}
		out->at[b] = p / (sqrt(x) * sqrt(y));
	}
}

#define XY "T[3,4] ~1", "T[3,4] ~2"

/* clang-format off */
static const row_case losses[] = {
	{"mse(a, b)", {XY}, {"T[]"}, want_mse, FLOATS},
	{"mse(a, b)", {"f32[2,1] 1 2", "f32[2] 1 3"}, {"f32[] 1.5"}},
	{"mse(a, b)", {"f32[0]", "f32[0]"}, {"f32[] nan"}},
	{"l1_loss(a, b)", {XY}, {"T[]"}, want_l1, FLOATS},
	{"huber(a, b, delta=0.5)", {XY}, {"T[]"}, want_huber, FLOATS},
	{"hinge_loss(a, b)", {XY}, {"T[]"}, want_hinge, FLOATS},
	{"cross_entropy(a, b)", {"T[3,4] ~1", "i64[3] 3 0 1"}, {"T[]"}, want_cross, FLOATS},
	{"cross_entropy(a, b)", {"f32[1,2] 1000 0", "u8[1] 1"}, {"f32[] 1000"}},
	{"cross_entropy(a, b)", {"f32[2] 0 0", "i64[] 1"}, {"f32[] 0.6931471805599453"}},
	{"cross_entropy(a, b)", {"f32[0,3]", "i64[0]"}, {"f32[] 0"}},
	{"cross_entropy(a, b)", {"f32[1,2] 0 0", "i64[1] 2"}, {"!index.range", "2"}},
	{"cross_entropy(a, b)", {"f32[1,2] 0 0", "i64[2] 2 1"}, {"!cross_entropy.b", ""}},
	{"cross_entropy_rows(a, b)", {"T[3,4] ~1", "i64[3] 3 0 1"}, {"T[3]"}, want_rows, FLOATS},
	{"cross_entropy_masked(a, b)", {"T[3,4] ~1", "i64[3] 3 -100 1"}, {"T[]"}, want_masked, FLOATS},
	{"cross_entropy_masked(a, b, ignore=2)", {"T[3,4] ~1", "u8[3] 3 2 1"}, {"T[]"}, want_masked, FLOATS},
	{"cross_entropy_masked(a, b)", {"f32[1,2] 1 2", "i64[1] -100"}, {"f32[] 0"}},
	{"cross_entropy_soft(a, b)", {XY}, {"T[]"}, want_soft, "f32 f64"},
	{"nll_loss(a, b)", {"f32[2,2] 1 2 3 5", "i32[2] 0 1"}, {"f32[] -3"}},
	{"bce(a, b)", {"f64[4] 0.25 0.5 0 1", "f64[4] 1 0 0 0"},
		{"f64[] 25.51986038541996"}},
	{"bce_with_logits(a, b)", {XY}, {"T[]"}, want_logits, FLOATS},
	{"bce_with_logits(a, b)", {"f32[2] 1000 -1000", "f32[2] 1 1"}, {"f32[] 500"}},
	{"kl_div(a, b)", {"f64[2,2] -1 -2 0 -0.5", "f64[2,2] 0.5 0.5 0 1"},
		{"f64[] 0.6534264097200273"}},
	{"cosine_similarity(a, b)", {XY}, {"T[3]"}, want_cosine, FLOATS},
	{"cosine_similarity(a, b)", {"f32[2] 0 0", "f32[2] 1 1"}, {"f32[] 0"}},
	{"huber(a, b)", {"f32[2] 0 0", "f32[2] 0.5 3"}, {"f32[] 1.3125"}},
	{"cross_entropy_rows(a, b)", {"f32[1,2] 1000 0", "u8[1] 1"}, {"f32[1] 1000"}},
	{"cross_entropy_masked(a, b)", {"f32[1,2] 1000 0", "u8[1] 1"}, {"f32[] 1000"}},
	{"cross_entropy_soft(a, b)", {"f32[1,2] 1000 0", "f32[1,2] 0 1"}, {"f32[] 1000"}},
	{"nll_loss(a, b)", {"f32[1,2] 1 2", "i32[1] 1"}, {"f32[] -2"}},
	{"nll_loss(a, b)", {"f32[0,2]", "i32[0]"}, {"f32[] 0"}},
	{"bce(a, b)", {"f64[1] 0", "f64[1] 1"}, {"f64[] 100"}},
	{"kl_div(a, b)", {"f64[1,1] -2", "f64[1,1] 1"}, {"f64[] 2"}},
	{"cosine_similarity(a, b)", {"f32[1] 0.01", "f32[1] 0.02"}, {"f32[] 1"}},
};
/* clang-format on */

ROW_CASES(rows_loss, losses);
