/*
 * op_signal.c: Fourier transforms, as matrix products with a table; window
 * functions; features of text.
 *
 *     DFT(x)   re' = re C + im S, im' = im C - re S
 *              C = cos(2 pi n k / N), S = sin(2 pi n k / N)
 *     DFT(x, inverse, onesided)   re' = re C W / N - im S W / N
 *              W = 2 for each frequency that stands for two, else 1
 */
#include "onnx/ops.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* A transform of n input elements to k results. */
typedef struct transform {
	int64_t n, k;
	bool inverse;
} transform;

static int32_t table(node *d, const transform *f, tn_dtype t, bool sine)
{
	double *v = arena_array(d->x->a, double, f->n * f->k + 1);

	for (int64_t i = 0; i < f->n; i++)
		for (int64_t j = 0; j < f->k; j++) {
			double x = 2 * pi * (double)(i * j % f->n) /
				(double)f->n;

			x = sine ? (f->inverse ? -sin(x) : sin(x)) : cos(x);
			v[i * f->k + j] = f->inverse ? x / (double)f->n : x;
		}
	return on_const_real(d, t, LIST(d, f->n, f->k), v);
}

/* x (.., n, 1 or 2) -> (.., k, 2), along the last axis but one */
static int32_t dft(node *d, const transform *f, int32_t x)
{
	int32_t last = on_rank_of(d, x) - 1, re, im, c, s, out[2];

	on_bound(d, "the length of a transform", f->n, 1, 1 << 13);
	c = table(d, f, on_dt(d, x), false);
	s = table(d, f, on_dt(d, x), true);
	re = rowa(d, "select", A(x), INT("axis", last), INT("index", 0));
	out[0] = on_two(d, "matmul", re, c);
	out[1] = row(d, "neg", A(on_two(d, "matmul", re, s)));
	if (on_extent(d, x, last) == 2) {
		im = rowa(d, "select", A(x), INT("axis", last),
			INT("index", 1));
		out[0] = on_two(d, "add", out[0], on_two(d, "matmul", im, s));
		out[1] = on_two(d, "add", out[1], on_two(d, "matmul", im, c));
	}
	out[0] = on_unsqueeze(d, out[0], last);
	out[1] = on_unsqueeze(d, out[1], last);
	return on_concat(d, 2, out, last);
}

/* x (.., f->n / 2 + 1, 1 or 2), half of a spectrum -> the signal (.., f->n, 1) */
static int32_t from_half(node *d, const transform *f, int32_t x)
{
	int32_t last = on_rank_of(d, x) - 1, part[2], o = -1;
	int64_t half = f->n / 2 + 1;
	tn_dtype t = on_dt(d, x);

	for (int32_t p = 0; p < on_extent(d, x, last); p++) {
		double *v = arena_array(d->x->a, double, half * f->n + 1);

		for (int64_t k = 0; k < half; k++)
			for (int64_t i = 0; i < f->n; i++) {
				double at = 2 * pi * (double)(i * k % f->n) /
					(double)f->n;
				double w = k == 0 || 2 * k == f->n ? 1 : 2;

				v[k * f->n + i] = w / (double)f->n *
					(p == 0 ? cos(at) : -sin(at));
			}
		part[p] = rowa(d, "select", A(x), INT("axis", last),
			INT("index", p));
		part[p] = on_two(d, "matmul", part[p], on_const_real(d, t,
					LIST(d, half, f->n), v));
		o = o < 0 ? part[p] : on_two(d, "add", o, part[p]);
	}
	return on_unsqueeze(d, o, last);
}

/* The first n along an axis, with zeros behind what is there. */
static int32_t first_of(node *d, int32_t x, int32_t axis, int64_t n)
{
	int32_t r = on_rank_of(d, x);
	int64_t have = on_extent(d, x, axis);

	if (n > have) {
		list lo = on_list_new(d, r, 0), hi = on_list_new(d, r, 0);

		hi.at[axis] = n - have;
		x = rowa(d, "pad", A(x), INTS("lo", lo), INTS("hi", hi));
	}
	return on_narrow(d, x, axis, 0, n);
}

void onnx_dft(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x), axis;
	bool onesided = on_int(d, "onesided", 0) != 0, real;
	transform f = {.inverse = on_int(d, "inverse", 0) != 0};
	int64_t have;

	if (r < 3)
		on_fail(d, "onnx.shape", "the input has %d axes, but at least "
			"3 are needed", (int)r);
	if (d->opset < 20)
		axis = on_axis(d, on_int(d, "axis", 1), r - 1);
	else
		axis = on_axis(d, on_has(d, 2) ? on_host_int(d, 2) : -2, r);
	if (axis == r - 1)
		on_fail(d, "onnx.axis", "the last axis must hold the real and "
			"the imaginary part");
	on_bound(d, "the last extent of the input, of real and imaginary parts,",
		on_extent(d, x, r - 1), 1, 2);
	x = on_move_axis(d, x, axis, r - 2);
	have = on_extent(d, x, r - 2);
	/* half of a spectrum in, the real signal out */
	real = onesided && f.inverse;
	f.n = on_has(d, 1) ? on_host_int(d, 1) : real ? 2 * (have - 1) : have;
	on_bound(d, "the length of a transform", f.n, 1, 1 << 13);
	f.k = onesided ? f.n / 2 + 1 : f.n;
	x = first_of(d, x, r - 2, real ? f.k : f.n);
	x = real ? from_half(d, &f, x) : dft(d, &f, x);
	on_set(d, 0, on_move_axis(d, x, r - 2, axis));
}

/* (b, length, 1 or 2) -> (b, frames, frequencies, 2) */
void onnx_stft(node *d)
{
	int32_t x = on_in(d, 0), window = -1;
	int64_t step = on_host_int(d, 1), n, frames;
	transform f = {0};
	list ids;

	if (on_rank_of(d, x) == 2)
		x = on_unsqueeze(d, x, 2);
	if (on_rank_of(d, x) != 3)
		on_fail(d, "onnx.shape", "a signal (b, n, 1) is needed");
	if (on_has(d, 2))
		window = on_in(d, 2);
	n = on_extent(d, x, 1);
	f.n = on_has(d, 3) ? on_host_int(d, 3)
		: window >= 0 ? on_numel(d, window) : n;
	on_bound(d, "the length of a frame", f.n, 1, n);
	on_bound(d, "the step of frames", step, 1, INT64_C(1) << 40);
	frames = on_bound(d, "the number of frames", (n - f.n) / step + 1, 1,
		1 << 20);
	on_bound(d, "all frames", frames * f.n, 1, 1 << 24);
	ids = on_list_new(d, (int32_t)(frames * f.n), 0);
	for (int32_t i = 0; i < ids.n; i++)
		ids.at[i] = i / f.n * step + i % f.n;
	x = rowa(d, "take", A(x, on_constant(d, TN_I64, LIST(d, frames, f.n),
					 ids.at)), INT("axis", 1));
	if (window >= 0)
		x = on_two(d, "mul", x, on_along(d, window, 2, 4));
	f.k = on_int(d, "onesided", 1) != 0 ? f.n / 2 + 1 : f.n;
	on_set(d, 0, dft(d, &f, x));
}

void onnx_window(node *d)
{
	int64_t n = on_bound(d, "the size of a window", on_host_int(d, 0), 0,
		1 << 24);
	bool periodic = on_int(d, "periodic", 1) != 0;
	tn_dtype t = on_elem_dtype(d, on_int(d, "output_datatype", 1));
	double *v = arena_array(d->x->a, double, n + 1);
	char kind = d->op->text[1]; /* hAnn, hAmming, bLackman: */
	bool blackman = d->op->text[0] == 'b';
	bool hann = kind == 'a' && d->op->text[2] == 'n';

	for (int64_t i = 0; i < n; i++) {
		double m = periodic ? (double)n : (double)n - 1;
		double x = m > 0 ? 2 * pi * (double)i / m : 0;

		if (blackman)
			v[i] = 0.42 - 0.5 * cos(x) + 0.08 * cos(2 * x);
		else if (hann)
			v[i] = 0.5 - 0.5 * cos(x);
		else
			v[i] = 25.0 / 46 - (1 - 25.0 / 46) * cos(x);
	}
	on_set_elem(d, 0, on_const_real(d, t, LIST(d, n), v), onnx_dtype_elem(t));
}

static double to_mel(double hz)
{
	return 2595 * log10(1 + hz / 700);
}

/*
 * Triangular filters over the frequencies of a spectrum, evenly spaced in mel.
 */
void onnx_mel_weights(node *d)
{
	int64_t n = on_bound(d, "num_mel_bins", on_host_int(d, 0), 1, 1 << 16);
	int64_t length = on_bound(d, "dft_length", on_host_int(d, 1), 1,
		1 << 20);
	int64_t rate = on_bound(d, "sample_rate", on_host_int(d, 2), 1,
		INT64_C(1) << 40);
	double lo = to_mel(on_host_real(d, 3)), hi = to_mel(on_host_real(d, 4));
	int64_t rows = length / 2 + 1;
	tn_dtype t = on_elem_dtype(d, on_int(d, "output_datatype", 1));
	double step = (hi - lo) / (double)(n + 2), *w;
	list at = on_list_new(d, (int32_t)n + 2, 0);

	on_bound(d, "all weights", rows * n, 1, 1 << 26);
	w = arena_array(d->x->a, double, rows * n + 1);
	for (int32_t i = 0; i < at.n; i++) {
		double hz = 700 * (pow(10, (lo + step * i) / 2595) - 1);

		at.at[i] = on_bound(d, "a position in the spectrum",
			(int64_t)floor((double)(length + 1) * hz /
				(double)rate), 0, rows);
	}
	for (int32_t i = 0; i < (int32_t)n; i++) {
		int64_t a = at.at[i], b = at.at[i + 1], c = at.at[i + 2];

		if (a == b && b < rows)
			w[b * n + i] = 1;
		for (int64_t j = a; j <= b && a != b && j < rows; j++)
			w[j * n + i] = (double)(j - a) / (double)(b - a);
		for (int64_t j = b; j < c && j < rows; j++)
			w[j * n + i] = (double)(c - j) / (double)(c - b);
	}
	on_set_elem(d, 0, on_const_real(d, t, LIST(d, rows, n), w),
		onnx_dtype_elem(t));
}

/* ---- TfIdfVectorizer ---- */

typedef struct tfidf {
	list pool, counts, ids;
	int32_t least, most, skips;
	int64_t width; /* of the result */
} tfidf;

/*
 * The indices of every possible n-gram, for every start and every skip: (count,
 * n)
 */
static list grams(node *d, const tfidf *k, int64_t n, int64_t length)
{
	int32_t skips = n == 1 ? 0 : k->skips;
	list l = on_list_new(d, (int32_t)on_bound(d, "all n-grams",
		length * n * (skips + 1), 0, 1 << 22), 0);

	l.n = 0;
	for (int64_t s = 1; s <= skips + 1; s++)
		for (int64_t i = 0; i + (n - 1) * s < length; i++)
			for (int64_t j = 0; j < n; j++)
				l.at[l.n++] = i + j * s;
	return l;
}

/*
 * Counts the n-grams of the pool, from pool[at] on, in x (b, length): (b,
 * width)
 */
static int32_t count_grams(node *d, const tfidf *k, int32_t x, int64_t n,
	int64_t at, int64_t n_grams, int32_t first)
{
	int64_t b = on_extent(d, x, 0);
	list where = grams(d, k, n, on_extent(d, x, 1));
	int64_t places = where.n / n;
	double *to = arena_array(d->x->a, double, n_grams * k->width + 1);
	int32_t v, pool;

	for (int32_t i = 0; i < n_grams; i++)
		to[i * k->width + k->ids.at[first + i]] = 1;
	v = on_constant(d, TN_I64, LIST(d, places, n), where.at);
	v = rowa(d, "take", A(x, v), INT("axis", 1));
	v = on_reshape(d, v, LIST(d, b, places, 1, n));
	pool = on_constant(d, TN_I64, LIST(d, n_grams, n), k->pool.at + at);
	v = on_two(d, "eq", v, pool);
	v = rowa(d, "reduce_all", A(v), INTS("axes", LIST(d, 3)));
	v = rowa(d, "reduce_sum", A(on_cast_to(d, v, TN_F32)),
		INTS("axes", LIST(d, 1)));
	return on_two(d, "matmul", v,
		on_const_real(d, TN_F32, LIST(d, n_grams, k->width), to));
}

static tfidf read_tfidf(node *d)
{
	tfidf k = {.width = 1};

	if (!on_list(d, "pool_int64s", &k.pool) ||
		!on_list(d, "ngram_counts", &k.counts) ||
		!on_list(d, "ngram_indexes", &k.ids))
		on_fail(d, "onnx.attr", "pool_int64s, ngram_counts and "
					"ngram_indexes are needed");
	k.least = (int32_t)on_bound(d, "min_gram_length",
		on_int(d, "min_gram_length", 1), 1, 1 << 10);
	k.most = (int32_t)on_bound(d, "max_gram_length",
		on_int(d, "max_gram_length", 1), k.least, 1 << 10);
	k.skips = (int32_t)on_bound(d, "max_skip_count",
		on_int(d, "max_skip_count", 0), 0, 1 << 10);
	for (int32_t i = 0; i < k.ids.n; i++) {
		on_bound(d, "an index", k.ids.at[i], 0, 1 << 20);
		if (k.ids.at[i] >= k.width)
			k.width = k.ids.at[i] + 1;
	}
	return k;
}

static int32_t weigh(node *d, const tfidf *k, int32_t sum)
{
	const char *mode = on_text(d, "mode", "TF");
	const wire_floats *weights = on_reals(d, "weights");
	double *w = arena_array(d->x->a, double, k->width + 1);

	if (!strcmp(mode, "IDF"))
		sum = row(d, "min", A(sum, on_scalar(d, TN_F32, 1)));
	if (!strcmp(mode, "TF") || weights == NULL)
		return sum;
	for (int32_t i = 0; i < k->ids.n && i < weights->v.n; i++)
		w[k->ids.at[i]] = (double)weights->v.at[i];
	return on_two(d, "mul", sum,
		on_const_real(d, TN_F32, LIST(d, k->width), w));
}

void onnx_tfidf(node *d)
{
	tfidf k = read_tfidf(d);
	int32_t x = on_cast_to(d, on_in(d, 0), TN_I64), sum, first = 0;
	bool flat = on_rank_of(d, x) == 1;

	if (flat)
		x = on_unsqueeze(d, x, 0);
	if (on_rank_of(d, x) != 2)
		on_fail(d, "onnx.shape", "a list or a matrix is needed");
	sum = on_filled(d, TN_F32, LIST(d, on_extent(d, x, 0), k.width), 0);
	for (int32_t i = 0; i < k.counts.n; i++) {
		int64_t at = k.counts.at[i], n = i + 1, n_grams;
		int64_t end = i + 1 < k.counts.n ? k.counts.at[i + 1]
						 : k.pool.n;

		on_bound(d, "a position in the pool", end, 0, k.pool.n);
		on_bound(d, "a position in the pool", at, 0, end);
		n_grams = (end - at) / n;
		on_bound(d, "the number of n-grams", first + n_grams, 0,
			k.ids.n);
		if (n >= k.least && n <= k.most && n_grams > 0 &&
			(n - 1) < on_extent(d, x, 1))
			sum = on_two(d, "add", sum, count_grams(d, &k, x, n, at,
							 n_grams, first));
		first += (int32_t)n_grams;
	}
	sum = weigh(d, &k, sum);
	on_set(d, 0, flat ? on_reshape(d, sum, LIST(d, k.width)) : sum);
}
