/*
 * test_rows_attention.c: attention, rotary positions and random rows.
 */
#include "rows.h"

#include "base/random.h"

#include <math.h>

/*
 * One head: q (t, d), k (u, d), v (u, e). bias (t, u) or NULL; last: position
 * t sees u <= t + last. Rows that see nothing are 0.
 */
typedef struct head {
	int64_t t, u, d, e, last;
	double scale;
	const double *q, *k, *v, *bias;
} head;

static void attend(const head *h, double *out)
{
	for (int64_t t = 0; t < h->t; t++) {
		double z = 0, *o = out + t * h->e;

		for (int64_t e = 0; e < h->e; e++)
			o[e] = 0;
		for (int64_t u = 0; u < h->u && u <= t + h->last; u++) {
			double s = 0;

			for (int64_t d = 0; d < h->d; d++)
				s += h->q[t * h->d + d] * h->k[u * h->d + d];
			s = s * h->scale +
				(h->bias != NULL ? h->bias[t * h->u + u] : 0);
			z += exp(s);
			for (int64_t e = 0; e < h->e; e++)
				o[e] += exp(s) * h->v[u * h->e + e];
		}
		for (int64_t e = 0; e < h->e; e++)
			o[e] = z > 0 ? o[e] / z : 0;
	}
}

/* (2, 3, 4), (2, 5, 4), (2, 5, 2) -> (2, 3, 2) */
static void heads(const ten *in, ten *out, int64_t last, const double *bias)
{
	for (int64_t b = 0; b < 2; b++) {
		head h = {3, 5, 4, 2, last, 0.5, in[0].at + b * 12,
			in[1].at + b * 20, in[2].at + b * 10, bias};

		attend(&h, out->at + b * 6);
	}
}

static void want_plain(const ten *in, ten *out)
{
	heads(in, out, 99, NULL);
}

static void want_causal(const ten *in, ten *out)
{
	heads(in, out, 0, NULL);
}

static void want_bias(const ten *in, ten *out)
{
	heads(in, out, 99, in[3].at);
}

/* q (4, 3, 4): heads in two groups of 2; k (2, 5, 4), v (2, 5, 2) */
static void want_grouped(const ten *in, ten *out)
{
	for (int64_t b = 0; b < 4; b++) {
		head h = {3, 5, 4, 2, 2, 0.5, in[0].at + b * 12,
			in[1].at + b / 2 * 20, in[2].at + b / 2 * 10, NULL};

		attend(&h, out->at + b * 6);
	}
}

/* x (2, 3, 4), c and s (3, 2) */
static void want_rope(const ten *in, ten *out)
{
	for (int64_t i = 0; i < 12; i++) {
		int64_t row = i / 2, h = i % 2, at = row * 4 + h;
		double c = in[1].at[row % 3 * 2 + h];
		double s = in[2].at[row % 3 * 2 + h];
		double x = in[0].at[at], y = in[0].at[at + 2];

		out->at[at] = x * c - y * s;
		out->at[at + 2] = y * c + x * s;
	}
}

static void want_rope_pairs(const ten *in, ten *out)
{
	for (int64_t i = 0; i < 12; i++) {
		int64_t row = i / 2, h = i % 2, at = row * 4 + 2 * h;
		double c = in[1].at[row % 3 * 2 + h];
		double s = in[2].at[row % 3 * 2 + h];
		double x = in[0].at[at], y = in[0].at[at + 1];

		out->at[at] = x * c - y * s;
		out->at[at + 1] = y * c + x * s;
	}
}

#define QKV "T[2,3,4] ~1", "T[2,5,4] ~2", "T[2,5,2] ~3"

/* clang-format off */
static const row_case cases[] = {
	{"attention(a, b, c, scale=0.5)", {QKV}, {"T[2,3,2]"}, want_plain, "f32 f64 f16"},
	{"attention(a, b, c, scale=0.5, causal=true)", {QKV}, {"T[2,3,2]"}, want_causal, "f32 f64 f16"},
	{"attention(a, b, c, scale=1)", {"f32[1,1] 1", "f32[2,1] -inf -inf", "f32[2,1] 3 4"}, {"f32[1,1] 0"}},
	{"attention(a, b, c, scale=1)", {"f32[1,1] 1", "f32[0,1]", "f32[0,2]"}, {"f32[1,2] 0 0"}},
	{"attention(a, b, c, scale=1)", {"f32[1,1] nan", "f32[1,1] 1", "f32[1,1] 3"}, {"f32[1,1] nan"}},
	{"attention(a, b, c)", {"f32[1,1] 1", "f32[1,1] 1", "f32[1,1] 3"}, {"!tn.attr", "scale"}},
	{"attention_bias(a, b, c, d, scale=0.5)", {QKV, "T[3,5] ~4"}, {"T[2,3,2]"}, want_bias, "f32 f64 f16"},
	{"attention_bias(a, b, c, d, scale=1)", {"f32[2,1] 1 1", "f32[2,1] 1 1", "f32[2,1] 3 4",
		"f32[2,2] -inf -inf -inf 0"}, {"f32[2,1] 0 4"}},
	{"attention_grouped(a, b, c, groups=2, causal=true, shift=2, scale=0.5)",
		{"T[4,3,4] ~1", "T[2,5,4] ~2", "T[2,5,2] ~3"}, {"T[4,3,2]"}, want_grouped, "f32 f64 f16"},
	{"attention_online(a, b, c, scale=0.5)", {QKV}, {"T[2,3,2]"}, want_plain, "f32 f64 f16"},
	{"attention_online(a, b, c, scale=0.5, causal=true)", {QKV}, {"T[2,3,2]"}, want_causal, "f32 f64 f16"},
	{"attention_online(a, b, c, scale=1)", {"f32[1,1] 1", "f32[2,1] -inf -inf", "f32[2,1] 3 4"}, {"f32[1,1] 0"}},
	{"attention_online(a, b, c, scale=1)", {"f32[1,1] 1", "f32[3,1] -inf 2 -inf", "f32[3,1] 3 4 5"}, {"f32[1,1] 4"}},
	{"attention_online(a, b, c, scale=1)", {"f32[1,1] 1", "f32[0,1]", "f32[0,2]"}, {"f32[1,2] 0 0"}},
	{"rope(a, b, c)", {"T[2,3,4] ~1", "T[3,2] ~2", "T[3,2] ~3"}, {"T[2,3,4]"}, want_rope, "f32 f64 f16"},
	{"rope(a, b, c)", {"f32[3,3] ~1", "f32[3,1] ~2", "f32[3,1] ~3"}, {"!rope.h", "divisible"}},
	{"rope_pairs(a, b, c)", {"T[2,3,4] ~1", "T[3,2] ~2", "T[3,2] ~3"}, {"T[2,3,4]"}, want_rope_pairs, "f32 f64 f16"},
	{"attention(a, b, c, scale=1)", {"f32[1,1] 1", "f32[2,1] 1000 0", "f32[2,1] 3 4"}, {"f32[1,1] 3"}},
	{"attention(a, b, c, scale=1)", {"f32[1,1] 1", "f32[2,1] -1000 -1000", "f32[2,1] 3 4"}, {"f32[1,1] 3.5"}},
	{"attention_bias(a, b, c, d, scale=1)", {"f32[1,1] 1", "f32[2,1] 1000 0", "f32[2,1] 3 4", "f32[1,2] 0 0"}, {"f32[1,1] 3"}},
	{"attention_bias(a, b, c, d, scale=1)", {"f32[1,1] 1", "f32[2,1] -1000 -1000", "f32[2,1] 3 4", "f32[1,2] 0 0"}, {"f32[1,1] 3.5"}},
	{"attention_grouped(a, b, c, groups=1, scale=1)", {"f32[1,1,1] 1", "f32[1,2,1] 1000 0", "f32[1,2,1] 3 4"}, {"f32[1,1,1] 3"}},
	{"attention_grouped(a, b, c, groups=1, scale=1)", {"f32[1,1,1] 1", "f32[1,2,1] -1000 -1000", "f32[1,2,1] 3 4"}, {"f32[1,1,1] 3.5"}},
	{"attention_grouped(a, b, c, groups=1, scale=1)", {"f32[1,1,1] 1", "f32[1,2,1] -inf -inf", "f32[1,2,1] 3 4"}, {"f32[1,1,1] 0"}},
	{"attention_grouped(a, b, c, groups=1, scale=1, causal=true)",
		{"f32[1,1,1] 1", "f32[1,2,1] 1 1", "f32[1,2,1] 3 4"}, {"f32[1,1,1] 3"}},
};
/* clang-format on */

ROW_CASES(rows_attention, cases);

/* ---- random: the recorded function of (key, position) ---- */

static double u(const ten *in, int64_t counter)
{
	return (double)base_u01((int64_t)in[0].at[0], counter);
}

#define DRAWN(name, expression)                                                \
	static void want_##name(const ten *in, ten *out)                       \
	{                                                                      \
		for (int64_t i = 0; i < out->n; i++)                           \
			out->at[i] = expression;                               \
	}
DRAWN(uniform, -1 + 3 * u(in, i))
DRAWN(normal, sqrt(-2 * log(1 - u(in, 2 * i))) *
	cos(2 * 3.141592653589793 * u(in, 2 * i + 1)))
DRAWN(bernoulli, u(in, i) < in[1].at[i])
DRAWN(randint, -3 + floor(u(in, i) * 7))
DRAWN(exponential, -log(1 - u(in, i)) / 2)
DRAWN(gumbel, -log(-log(u(in, i))))

static void want_dropout(const ten *in, ten *out)
{
	for (int64_t i = 0; i < out->n; i++)
		out->at[i] = u(in + 1, i) < 0.25 ? 0 : in[0].at[i] / 0.75;
}

static void want_categorical(const ten *in, ten *out) /* (5, 4) */
{
	for (int64_t b = 0; b < 5; b++) {
		double most = -HUGE_VAL;

		for (int64_t v = 0; v < 4; v++) {
			double g = in[1].at[b * 4 + v] -
				log(-log(u(in, b * 4 + v)));

			if (g > most)
				most = g, out->at[b] = (double)v;
		}
	}
}

/* clang-format off */
static const row_case randoms[] = {
	{"uniform(a, shape=[2,50], lo=-1, hi=2)", {"i64[] 7"}, {"f32[2,50]"}, want_uniform},
	{"uniform(7, shape=[3])", {0}, {"f32[3] 0.455897033 0.721508145 0.649704278"}},
	{"uniform(a, shape=[], dtype=f64)", {"i32[] 7"}, {"f64[] 0.45589703321456909"}, .tolerance = 1e-7},
	{"uniform(a, shape=[0,3])", {"i32[] 7"}, {"f32[0,3]"}},
	{"normal(a, shape=[100])", {"i64[] 8"}, {"f32[100]"}, want_normal, .tolerance = 1e-5},
	{"normal(a, shape=[100], dtype=f16)", {"i64[] 8"}, {"f16[100]"}, want_normal},
	{"bernoulli(a, b)", {"i64[] 9", "f32[4,5] *0.5"}, {"bool[4,5]"}, want_bernoulli},
	{"bernoulli(a, b)", {"i64[] 9", "f64[3] 0 1 nan"}, {"bool[3] 0 1 0"}},
	{"randint(a, shape=[100], lo=-3, hi=4)", {"i64[] 10"}, {"i64[100]"}, want_randint},
	{"randint(a, shape=[1], lo=3, hi=3)", {"i64[] 10"}, {"!randint.check", ""}},
	{"exponential(a, shape=[50], rate=2)", {"i64[] 11"}, {"f32[50]"}, want_exponential},
	{"gumbel(a, shape=[50])", {"i64[] 12"}, {"f32[50]"}, want_gumbel, .tolerance = 1e-5},
	{"categorical(a, b)", {"i64[] 13", "f32[5,4] ~1"}, {"i64[5]"}, want_categorical},
	{"categorical(a, b)", {"i64[] 13", "f32[2,3] -inf 0 -inf -inf -inf 5"}, {"i64[2] 1 2"}},
	{"dropout(a, b, p=0.25)", {"f32[5,9] ~1", "i64[] 14"}, {"f32[5,9]"}, want_dropout},
	{"dropout(a, b, p=1)", {"f32[3] ~1", "i64[] 14"}, {"f32[3] 0 0 0"}},
	{"dropout(a, b, p=0)", {"f32[3] 1 nan inf", "i64[] 14"}, {"f32[3] 1 nan inf"}},
	{"randint(a, shape=[0], lo=2, hi=16777218)", {"i64[] 10"}, {"i64[0]"}},
	{"randint(a, shape=[0], hi=16777217)", {"i64[] 10"}, {"!randint.check", ""}},
	{"randint(a, shape=[3], hi=1)", {"i64[] 10"}, {"i64[3] 0 0 0"}},
	{"exponential(a, shape=[1])", {"i64[] 7"}, {"f32[1] 0.608616626"}},
	{"categorical(a, b)", {"i64[] 13", "f32[2,1] 5 5"}, {"i64[2] 0 0"}},
	{"categorical(a, b)", {"i64[] 13", "f32[2,0]"}, {"!categorical.check", ""}},
	{"dropout(a, b)", {"f32[3] 1 1 1", "i64[] 7"}, {"f32[3] 0 2 2"}},
};
/* clang-format on */

ROW_CASES(rows_random, randoms);
