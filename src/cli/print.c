/*
 * print.c: prints arrays like NumPy: aligned, with the fewest digits that
 * distinguish neighbouring numbers (at most 8 decimals), and "..." in long
 * axes.
 *
 *     [[ 1.   2.5 -3. ]
 *      [ 4.   0.  10. ]]
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHOWN = 1000, EDGE = 3, MAX_DECIMALS = 8 };

void cli_type_text(char *out, size_t n, tn_dtype t, int32_t rank,
	const int64_t *shape)
{
	size_t used = (size_t)snprintf(out, n, "%s[", tn_dtype_name(t));

	for (int32_t i = 0; i < rank && used < n; i++)
		used += (size_t)snprintf(out + used, n - used, "%s%" PRId64,
			i ? "," : "", shape[i]);
	if (used < n)
		snprintf(out + used, n - used, "]");
}

/* The format of all elements of an array. */
struct format {
	tn_dtype dtype;
	bool exponent;
	int decimals;
	int width;
};

/*
 * The number of significant digits that always distinguish two numbers of the
 * dtype.
 */
static int digits(tn_dtype t)
{
	return t == TN_F64 ? 17 : t == TN_F32 ? 9 : t == TN_F16 ? 5 : 4;
}

/* Does the text convert back to the same number of the dtype? */
static bool reads_back(tn_dtype t, const char *text, double v)
{
	double r = strtod(text, NULL), a, b;

	tn_set_f64(t, &a, 0, r);
	tn_set_f64(t, &b, 0, v);
	return tn_get_f64(t, &a, 0) == tn_get_f64(t, &b, 0);
}

/* Number of decimals that v needs. */
static int decimals(tn_dtype t, double v, bool exponent)
{
	char text[400];
	int p = 0;

	for (; p < MAX_DECIMALS; p++) {
		snprintf(text, sizeof text, exponent ? "%.*e" : "%.*f", p, v);
		if (reads_back(t, text, v) || p >= digits(t))
			break;
	}
	return p;
}

/* int64 has the bits of a u64 */
static const char *put_int(char *out, size_t n, tn_dtype t, int64_t v)
{
	if (t == TN_U64)
		snprintf(out, n, "%" PRIu64, (uint64_t)v);
	else
		snprintf(out, n, "%" PRId64, v);
	return out;
}

static void element(char *out, size_t n, const struct format *f,
	const void *data, int64_t i)
{
	double v;
	int used;

	if (f->dtype == TN_BOOL) {
		snprintf(out, n, "%s",
			tn_get_i64(f->dtype, data, i) ? "true" : "false");
		return;
	}
	if (!tn_dtype_is_float(f->dtype)) {
		put_int(out, n, f->dtype, tn_get_i64(f->dtype, data, i));
		return;
	}
	v = tn_get_f64(f->dtype, data, i);
	if (!isfinite(v)) {
		snprintf(out, n, "%s", isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
		return;
	}
	used = snprintf(
		out, n, f->exponent ? "%.*e" : "%.*f", f->decimals, v);
	if (f->exponent || f->decimals == 0) {
		if (!f->exponent && used > 0 && (size_t)used + 1 < n)
			memcpy(out + used, ".", 2);
		return;
	}
	/* replace trailing zeros by blanks: 1.500 is printed as "1.5 " */
	for (int k = used - 1; k > 0 && out[k] == '0'; k--)
		out[k] = ' ';
}

/* Number of elements of an axis that are printed. */
static int64_t n_shown(int64_t extent, bool whole)
{
	return whole || extent <= 2 * EDGE ? extent : 2 * EDGE;
}

static int64_t shown(int64_t extent, bool whole, int64_t k)
{
	return whole || extent <= 2 * EDGE || k < EDGE ? k
						       : extent - 2 * EDGE + k;
}

struct walk {
	FILE *f;
	struct format format;
	int32_t rank;
	const int64_t *shape;
	const void *data;
	bool whole;
	/* first pass: collects the widths of the format */
	bool measure;
	double least, most;
	int need;
};

static void visit(struct walk *w, int64_t at)
{
	char text[400];
	double v, a;

	if (!w->measure) {
		element(text, sizeof text, &w->format, w->data, at);
		fprintf(w->f, "%*s", w->format.width, text);
		return;
	}
	if (!tn_dtype_is_float(w->format.dtype))
		return;
	v = tn_get_f64(w->format.dtype, w->data, at);
	a = fabs(v);
	if (!isfinite(v) || a == 0)
		return;
	if (a < w->least)
		w->least = a;
	if (a > w->most)
		w->most = a;
}

static void walk_axis(struct walk *w, int32_t axis, int64_t at,
	void (*leaf)(struct walk *w, int64_t at))
{
	int64_t extent, n;

	if (axis == w->rank) {
		leaf(w, at);
		return;
	}
	extent = w->shape[axis];
	n = n_shown(extent, w->whole);
	if (!w->measure)
		fputc('[', w->f);
	for (int64_t k = 0; k < n; k++) {
		bool gap = n < extent && k == EDGE;
		bool inner = axis + 1 == w->rank;

		if (!w->measure && k > 0) {
			fputs(inner ? " " : "\n", w->f);
			for (int32_t i = 0; !inner && i <= axis; i++)
				fputc(' ', w->f);
		}
		if (!w->measure && gap) {
			fputs(inner ? "... " : "...\n", w->f);
			for (int32_t i = 0; !inner && i <= axis; i++)
				fputc(' ', w->f);
		}
		walk_axis(w, axis + 1,
			at * extent + shown(extent, w->whole, k), leaf);
	}
	if (!w->measure)
		fputc(']', w->f);
}

static void need_decimals(struct walk *w, int64_t at)
{
	double v = tn_get_f64(w->format.dtype, w->data, at);
	int p;

	if (!isfinite(v))
		return;
	p = decimals(w->format.dtype, v, w->format.exponent);
	if (p > w->format.decimals)
		w->format.decimals = p;
}

static void need_width(struct walk *w, int64_t at)
{
	char text[400];
	int n;

	element(text, sizeof text, &w->format, w->data, at);
	n = (int)strlen(text);
	if (n > w->format.width)
		w->format.width = n;
}

void cli_print_array(FILE *f, tn_dtype t, int32_t rank, const int64_t *shape,
	const void *data)
{
	struct walk w = {.f = f, .rank = rank, .shape = shape, .data = data};
	double n = 1;

	for (int32_t i = 0; i < rank; i++)
		n *= (double)shape[i];
	if (n == 0) {
		fputs("[]\n", f);
		return;
	}
	w.whole = n <= MAX_SHOWN;
	w.format.dtype = t;
	w.least = INFINITY;
	w.measure = true;
	walk_axis(&w, 0, 0, visit);
	w.format.exponent = w.most >= 1e8 || w.least < 1e-4 ||
			    (w.most > 0 && w.most / w.least > 1e6);
	if (tn_dtype_is_float(t))
		walk_axis(&w, 0, 0, need_decimals);
	walk_axis(&w, 0, 0, need_width);
	w.measure = false;
	walk_axis(&w, 0, 0, visit);
	fputc('\n', f);
}

void cli_json_array(FILE *f, tn_dtype t, const void *data, int64_t n_elems)
{
	char text[24];

	fputc('[', f);
	for (int64_t i = 0; i < n_elems; i++) {
		fputs(i ? "," : "", f);
		if (t == TN_BOOL)
			fputs(tn_get_i64(t, data, i) ? "true" : "false", f);
		else if (!tn_dtype_is_float(t))
			fputs(put_int(text, sizeof text, t,
				      tn_get_i64(t, data, i)),
				f);
		else if (isfinite(tn_get_f64(t, data, i)))
			fprintf(f, "%.*g", digits(t),
				tn_get_f64(t, data, i));
		else
			fputs("null", f);
	}
	fputc(']', f);
}
