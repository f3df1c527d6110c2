/* Optimisers against their formulas, element by element, in double. */
#include "rows.h"

#include <math.h>

/* operands: p, m, v, g, lr, c1, c2 */
static void adam(const ten *in, ten *out, double coupled, double decoupled,
	double eps, bool lamb)
{
	double pp = 0, uu = 0, u[64], r = 1;

	for (int64_t i = 0; i < in[0].n; i++) {
		double p = in[0].at[i], g = in[3].at[i] + coupled * p;
		double m = 0.9 * in[1].at[i] + 0.1 * g;
		double v = 0.999 * in[2].at[i] + 0.001 * g * g;

		u[i] = decoupled * p +
			m * in[5].at[0] / (sqrt(v * in[6].at[0]) + eps);
		out[1].at[i] = m;
		out[2].at[i] = v;
		pp += p * p;
		uu += u[i] * u[i];
	}
	if (lamb && pp > 0 && uu > 0)
		r = sqrt(pp / uu);
	for (int64_t i = 0; i < in[0].n; i++)
		out[0].at[i] = in[0].at[i] - in[4].at[0] * r * u[i];
}

static void want_adam(const ten *in, ten *out)
{
	adam(in, out, 0.25, 0, 0.5, false);
}

static void want_adamw(const ten *in, ten *out)
{
	adam(in, out, 0, 0.01, 0.5, false);
}

static void want_lamb(const ten *in, ten *out)
{
	adam(in, out, 0, 0.01, 0.5, true);
}

static void want_sgd(const ten *in, ten *out)
{
	for (int64_t i = 0; i < out->n; i++)
		out->at[i] = in[0].at[i] -
			in[2].at[0] * (in[1].at[i] + 0.5 * in[0].at[i]);
}

static void momentum(const ten *in, ten *out, bool ahead)
{
	for (int64_t i = 0; i < out->n; i++) {
		double m = 0.9 * in[1].at[i] + in[2].at[i];

		out[1].at[i] = m;
		out[0].at[i] = in[0].at[i] -
			in[3].at[0] * (ahead ? in[2].at[i] + 0.9 * m : m);
	}
}

static void want_momentum(const ten *in, ten *out)
{
	momentum(in, out, false);
}

static void want_nesterov(const ten *in, ten *out)
{
	momentum(in, out, true);
}

static void want_adagrad(const ten *in, ten *out)
{
	for (int64_t i = 0; i < out->n; i++) {
		double g = in[2].at[i], v = in[1].at[i] + g * g;

		out[1].at[i] = v;
		out[0].at[i] = in[0].at[i] -
			in[3].at[0] * g / (sqrt(v) + 0.5);
	}
}

static void want_rmsprop(const ten *in, ten *out)
{
	for (int64_t i = 0; i < out->n; i++) {
		double g = in[2].at[i];
		double v = 0.75 * in[1].at[i] + 0.25 * g * g;

		out[1].at[i] = v;
		out[0].at[i] = in[0].at[i] -
			in[3].at[0] * g / (sqrt(v) + 0.5);
	}
}

#define FLOATS "f32 f64"
#define PMVG "T[3,4] ~1", "T[3,4] ~2", "T[3,4] ~3 0 4", "T[3,4] ~4"
#define RATES "T[] 0.125", "T[] 2", "T[] 4"

/* clang-format off */
static const row_case cases[] = {
	{"adam(a, b, c, d, e, f, g, eps=0.5, decay=0.25)", {PMVG, RATES}, {"T[3,4]", "T[3,4]", "T[3,4]"}, want_adam, FLOATS},
	{"adamw(a, b, c, d, e, f, g, eps=0.5)", {PMVG, RATES}, {"T[3,4]", "T[3,4]", "T[3,4]"}, want_adamw, FLOATS},
	{"lamb(a, b, c, d, e, f, g, eps=0.5)", {PMVG, RATES}, {"T[3,4]", "T[3,4]", "T[3,4]"}, want_lamb, FLOATS},
	{"sgd(a, b, c, decay=0.5)", {"T[3,4] ~1", "T[3,4] ~2", "T[] 0.125"}, {"T[3,4]"}, want_sgd, FLOATS},
	{"sgd_momentum(a, b, c, d)", {"T[3,4] ~1", "T[3,4] ~2", "T[3,4] ~3", "T[] 0.125"}, {"T[3,4]", "T[3,4]"}, want_momentum, FLOATS},
	{"sgd_momentum(a, b, c, d, nesterov=1)", {"T[3,4] ~1", "T[3,4] ~2", "T[3,4] ~3", "T[] 0.125"}, {"T[3,4]", "T[3,4]"}, want_nesterov, FLOATS},
	{"adagrad(a, b, c, d, eps=0.5)", {"T[3,4] ~1", "T[3,4] ~2 0 4", "T[3,4] ~3", "T[] 0.125"}, {"T[3,4]", "T[3,4]"}, want_adagrad, FLOATS},
	{"rmsprop(a, b, c, d, alpha=0.75, eps=0.5)", {"T[3,4] ~1", "T[3,4] ~2 0 4", "T[3,4] ~3", "T[] 0.125"}, {"T[3,4]", "T[3,4]"}, want_rmsprop, FLOATS},
	{"clip_factor(a, limit=2)", {"T[] 16"}, {"T[] 0.5"}, .types = FLOATS},
	{"clip_factor(a, limit=2)", {"T[] 4"}, {"T[] 1"}, .types = FLOATS},
};
/* clang-format on */

ROW_CASES(rows_train, cases);
