/*
 * draw_contract.c: random programs around sums of products.
 *
 * Products of letters in any order, with batches, windows, groups; factors that
 * are computed on the way in; what follows on the result: biases, activations,
 * residuals, rows that are reduced; two products on one row (attention), and
 * the three of a layer's backward with an update. Written as .tn text:
 *
 *   op p0(x[i, a, k], y[k, j, a]) -> o { o[a, i, j] += max(x[i, a, k], 0) * y[k, j, a] }
 */
#include "prop.h"
#include "interp/interp.h"

#include <stdio.h>

enum { MAX_LETTERS = 8, MOST = 150000, MOST_LARGE = 2200000 };

typedef struct sketch {
	rng r;
	arena *a;
	str op, in, call, out; /* rows, inputs, calls, names that are returned */
	int32_t n;	       /* of names */
	const char *dtype;
	bool warpgroups;
	bool far; /* few rows by a matrix that is read from afar */
} sketch;

/* What is being made: a value and its shape. */
typedef struct made {
	const char *name;
	int32_t rank;
	int64_t shape[MAX_LETTERS];
} made;

static bool chance(sketch *k, int32_t percent)
{
	return rng_percent(&k->r, percent);
}

static int64_t pick(sketch *k, int32_t n, const int64_t *of)
{
	return of[rng_below(&k->r, n)];
}

static const char *fresh(sketch *k, const char *prefix)
{
	return arena_printf(k->a, "%s%d", prefix, (int)k->n++);
}

static made input(sketch *k, int32_t rank, const int64_t *shape)
{
	made m = {.name = fresh(k, "x"), .rank = rank};

	memcpy(m.shape, shape, (size_t)rank * sizeof *shape);
	str_printf(&k->in, "  %s: %s", m.name, k->dtype);
	str_shape(&k->in, shape, rank);
	str_addc(&k->in, '\n');
	return m;
}

static void give(sketch *k, const char *name)
{
	str_printf(&k->out, "%s%s", k->out.n > 0 ? ", " : "", name);
}

static void shuffle(sketch *k, char *s)
{
	for (int32_t i = (int32_t)strlen(s) - 1; i > 0; i--) {
		int64_t j = rng_below(&k->r, i + 1);
		char c = s[i];

		s[i] = s[j];
		s[j] = c;
	}
}

/* ---- what follows ---- */

static const char *spread(sketch *k, const char *text)
{
	const char *name = fresh(k, "v");

	str_printf(&k->call, "  %s = %s\n", name, text);
	return name;
}

static void follow(sketch *k, made *m)
{
	int32_t n = (int32_t)rng_below(&k->r, 4);

	for (int32_t i = 0; i < n; i++) {
		const char *old = m->name;
		int64_t what = rng_below(&k->r, 6);
		int64_t last = m->rank - 1;

		if (what == 0 && m->rank > 0)
			m->name = spread(k, arena_printf(k->a, "add(%s, %s)",
				old, input(k, 1, &m->shape[last]).name));
		else if (what == 1)
			m->name = spread(k,
				arena_printf(k->a, "max(%s, 0)", old));
		else if (what <= 3)
			m->name = spread(k, arena_printf(k->a, "%s(%s, %s)",
				what == 2 ? "add" : "mul", old,
				input(k, m->rank, m->shape).name));
		else if (what == 4 && k->dtype[0] != 'i' && m->rank > 0)
			m->name = spread(k,
				arena_printf(k->a, "softmax(%s)", old));
		else if (m->rank > 0)
			give(k, spread(k, arena_printf(k->a,
				"reduce_sum(%s, axes=[%d])", old,
				(int)rng_below(&k->r, m->rank))));
		if (chance(k, 20))
			give(k, old);
	}
	give(k, m->name);
}

/* ---- products of letters ---- */

static const int64_t rows[] = {2, 3, 4, 5, 7, 13, 14, 15, 16, 27, 29, 33, 48};
static const int64_t columns[] = {1, 3, 8, 15, 16, 17, 31, 32, 33, 40, 64, 70};
static const int64_t sums[] = {1, 2, 5, 8, 9, 16, 21, 33, 64, 70, 130};
/* a sum in pieces, with few rows and columns */
static const int64_t long_sums[] = {1024, 1100, 1537, 2049, 2600, 4099};
static const int64_t few_rows[] = {2, 3, 4, 5, 7};
/* keys that go by in blocks */
static const int64_t many_keys[] = {100, 128, 257, 400, 603};
static const int64_t few_columns[] = {8, 9, 15, 16, 17, 20, 33};
/* what matrix instructions of 16 rows, 8 columns and 16 terms divide */
static const int64_t whole_rows[] = {16, 32, 48, 80};
static const int64_t whole_columns[] = {8, 16, 40, 64, 72};
static const int64_t whole_sums[] = {16, 32, 80, 144};
/* .. and of those that four warps multiply with together, and some others */
static const int64_t large_rows[] = {128, 256, 128, 384, 192};
static const int64_t large_columns[] = {64, 128, 192, 256, 96};
static const int64_t large_sums[] = {64, 128, 192, 160};
#define OF(list) (int32_t)(sizeof(list) / sizeof *(list)), list

typedef struct letters {
	char all[MAX_LETTERS + 1];
	int64_t extent[26];
} letters;

static void add_letters(sketch *k, letters *l, char *to, int32_t n,
	int32_t n_of, const int64_t *of)
{
	for (int32_t i = 0; i < n && strlen(l->all) < MAX_LETTERS; i++) {
		size_t m = strlen(l->all);
		int64_t e = pick(k, n_of, of);

		if (i > 0 && e > 9)
			e = 1 + e % 5;
		l->all[m] = (char)('a' + m);
		l->extent[m] = e;
		strncat(to, &l->all[m], 1);
	}
}

static const char *index_of(sketch *k, const char *s)
{
	str t = str_new(k->a);

	for (; *s != '\0'; s++)
		str_printf(&t, "%s%c", t.n > 0 ? ", " : "", *s);
	return t.at;
}

/* A factor that reads x there, and what may be done to it on the way. */
static const char *factor(
	sketch *k, const letters *l, const char *name, const char *s)
{
	const char *at = index_of(k, s);
	size_t n = strlen(s);

	switch (chance(k, k->warpgroups ? 90 : 50) ? 0 : (int)rng_below(&k->r, 5)) {
	case 1:
		return arena_printf(k->a, "max(%s[%s], 0)", name, at);
	case 2:
		return arena_printf(k->a,
			"(cast(2, %s) where %s[%s] > 0 else 1)", name, name,
			at);
	case 3: /* an axis shifted: outside it is nothing */
		if (n > 0 && l->extent[s[n - 1] - 'a'] > 2)
			return arena_printf(k->a, "(%s[%s - 1] else 0)", name,
				at);
		break;
	case 4: /* an axis from the end */
		if (n > 0)
			return arena_printf(k->a, "%s[%.*s%d - %c]", name,
				(int)(strlen(at) - 1), at,
				(int)l->extent[s[n - 1] - 'a'] - 1, s[n - 1]);
		break;
	default:
		break;
	}
	return arena_printf(k->a, "%s[%s]", name, at);
}

static made operand(sketch *k, const letters *l, const char *s)
{
	int64_t shape[MAX_LETTERS];
	int32_t n = (int32_t)strlen(s);

	for (int32_t i = 0; i < n; i++)
		shape[i] = l->extent[s[i] - 'a'];
	return input(k, n, shape);
}

/* A guard between any two letters: triangles of tiles are nothing. */
static const char *triangle(
	sketch *k, const letters *l, const char *fx, const char *fy)
{
	int64_t n = (int64_t)strlen(l->all), a = rng_below(&k->r, n);
	int64_t b = (a + 1 + rng_below(&k->r, n - 1)) % n;
	int64_t shift = rng_below(&k->r, 40);

	return arena_printf(k->a, "%s * %s where %c %s %c %s %d else cast(0, x)",
		fx, fy, l->all[a], chance(k, 50) ? "<=" : ">", l->all[b],
		chance(k, 50) ? "+" : "-", chance(k, 50) ? 0 : (int)shift);
}

/* A third factor, or a guard. */
static const char *term(sketch *k, const letters *l, const char *o,
	const char *fx, const char *fy)
{
	size_t n = strlen(o);

	switch (chance(k, k->warpgroups ? 90 : 60) ? 0 : (int)rng_below(&k->r, 4)) {
	case 3:
		if (strlen(l->all) > 1)
			return triangle(k, l, fx, fy);
		break;
	case 1:
		return arena_printf(
			k->a, "%s * z[%s] * %s", fx, index_of(k, o), fy);
	case 2:
		if (n > 1)
			return arena_printf(k->a,
				"%s * %s where %c <= %c else cast(0, x)", fx,
				fy, o[0], o[n - 1]);
		break;
	default:
		break;
	}
	return arena_printf(k->a, "%s * %s", fx, fy);
}

static void draw_product(sketch *k)
{
	char x[MAX_LETTERS + 1], y[MAX_LETTERS + 1], o[MAX_LETTERS + 1];
	char both[MAX_LETTERS + 1] = "", m[MAX_LETTERS + 1] = "";
	char n[MAX_LETTERS + 1] = "", sum[MAX_LETTERS + 1] = "";
	const char *name = fresh(k, "p"), *fx, *fy;
	static const int64_t few[] = {1, 2, 3};
	letters l = {.all = ""};
	int64_t volume = 1;
	made out = {0}, of[3];

	if (k->warpgroups) {
		add_letters(k, &l, both, (int32_t)rng_below(&k->r, 2), OF(few));
		add_letters(k, &l, sum, 1, OF(large_sums));
		add_letters(k, &l, n, 1, OF(large_columns));
		add_letters(k, &l, m, 1, OF(large_rows));
	} else if (strstr(k->dtype, "f16") != NULL && chance(k, 70)) {
		add_letters(k, &l, both, (int32_t)rng_below(&k->r, 2), OF(few));
		add_letters(k, &l, sum, 1, OF(whole_sums));
		add_letters(k, &l, n, 1, OF(whole_columns));
		add_letters(k, &l, m, 1, OF(whole_rows));
	} else if (chance(k, 20)) {
		add_letters(k, &l, sum, chance(k, 15) ? 2 : 1, OF(long_sums));
		add_letters(k, &l, n, 1, OF(few_columns));
		add_letters(k, &l, m, 1, OF(few_rows));
	} else {
		add_letters(k, &l, both, (int32_t)rng_below(&k->r, 2), OF(few));
		add_letters(k, &l, sum, chance(k, 25) ? 2 : 1, OF(sums));
		add_letters(k, &l, n, chance(k, 25) ? 2 : 1, OF(columns));
		add_letters(k, &l, m, chance(k, 20) ? 0 : chance(k, 25) ? 2 : 1,
			OF(rows));
	}
	for (size_t i = 0; i < strlen(l.all); i++)
		volume *= l.extent[i];
	if (volume > (k->warpgroups ? MOST_LARGE : MOST))
		return;
	snprintf(x, sizeof x, "%s%s%s", both, m, sum);
	snprintf(y, sizeof y, "%s%s%s", both, sum, n);
	snprintf(o, sizeof o, "%s%s%s", both, m, n);
	if (chance(k, k->warpgroups ? 0 : 60)) {
		shuffle(k, x);
		shuffle(k, y);
	}
	if (k->warpgroups && chance(k, 40)) /* terms of columns adjoin */
		snprintf(y, sizeof y, "%s%s%s", both, n, sum);
	if (chance(k, k->warpgroups ? 10 : 30))
		shuffle(k, o);
	fx = factor(k, &l, "x", x);
	fy = factor(k, &l, "y", y);
	str_printf(&k->op, "op %s(x[%s], y[%s], z[%s]) -> o { o[%s] += %s",
		name, index_of(k, x), index_of(k, y), index_of(k, o),
		index_of(k, o), term(k, &l, o, fx, fy));
	str_add(&k->op, " }\n");
	of[0] = operand(k, &l, x);
	of[1] = operand(k, &l, y);
	of[2] = operand(k, &l, o);
	out.name = spread(k, arena_printf(k->a, "%s(%s, %s, %s)", name,
		of[0].name, of[1].name, of[2].name));
	out.rank = (int32_t)strlen(o);
	for (int32_t i = 0; i < out.rank; i++)
		out.shape[i] = l.extent[o[i] - 'a'];
	follow(k, &out);
}

/* ---- few rows, or one, by a matrix that machines with small caches read from afar ---- */

static const int64_t far_sums[] = {33, 64, 100, 130, 260, 384};
static const int64_t far_columns[] = {48, 64, 128, 67, 192, 256, 100, 147, 384};

static void draw_few_rows(sketch *k)
{
	int64_t m = 1 + rng_below(&k->r, 16), s = pick(k, OF(far_sums));
	int64_t n = pick(k, OF(far_columns));
	bool one = chance(k, 35), turned = chance(k, 40); /* outputs first */
	int64_t xs[] = {m, s}, ys[] = {turned ? n : s, turned ? s : n};
	const char *row = one ? "" : "i, ", *p = fresh(k, "p");
	made x, y, out = {.rank = one ? 1 : 2, .shape = {one ? n : m, n}};

	str_printf(&k->op, "op %s(x[%ss], y[%s]) -> o { o[%sj] += %s * y[%s] }\n", p,
		row, turned ? "j, s" : "s, j", row,
		arena_printf(k->a, chance(k, 20) ? "max(x[%ss], 0)" : "x[%ss]", row),
		turned ? "j, s" : "s, j");
	x = one ? input(k, 1, &xs[1]) : input(k, 2, xs);
	y = input(k, 2, ys);
	out.name = spread(k, arena_printf(k->a, "%s(%s, %s)", p, x.name, y.name));
	follow(k, &out);
}

/* ---- integers of few bits, widened, less what stands for 0 ---- */

static const char *widened(
	sketch *k, const letters *l, const char *name, const char *s)
{
	static const int64_t zeros[] = {0, 0, 1, 7, 127, 128, -128, 255, 300};
	const char *f = arena_printf(k->a, "cast(%s[%s], i32)", name,
		index_of(k, s));
	size_t n = strlen(s);

	if (chance(k, 20) && n > 0 && l->extent[s[n - 1] - 'a'] > 2)
		f = arena_printf(k->a, "cast(%s[%s - 1] else 0, i32)", name,
			index_of(k, s));
	if (chance(k, 50))
		f = arena_printf(k->a, "(%s - %d)", f,
			(int)pick(k, OF(zeros)));
	if (chance(k, 15)) /* outside is 0 behind the difference */
		f = arena_printf(k->a, "(%s where %c > 0 else 0)", f, s[0]);
	return f;
}

static void draw_widened(sketch *k)
{
	static const char *const dtypes[] = {"u8", "i8", "u8", "i8", "i16", "u16"};
	/* rows a, columns b, sums c and d, batches e */
	static const char *const forms[][2] = {{"ac", "cb"}, {"ac", "bc"},
		{"ca", "cb"}, {"acd", "cdb"}, {"adc", "bdc"}, {"eac", "ecb"}};
	const char *name = fresh(k, "p"), *const *form = forms[rng_below(&k->r, 6)];
	letters l = {.all = "abcde"};
	made out = {.rank = 2}, of[2];

	l.extent['a' - 'a'] = pick(k, OF(rows));
	l.extent['b' - 'a'] = pick(k, OF(columns));
	l.extent['c' - 'a'] = pick(k, OF(sums));
	l.extent['d' - 'a'] = 1 + rng_below(&k->r, 4);
	l.extent['e' - 'a'] = 2;
	for (int32_t i = 0; i < 2; i++) {
		k->dtype = dtypes[rng_below(&k->r, 6)];
		of[i] = operand(k, &l, form[i]);
	}
	str_printf(&k->op, "op %s(x[%s]:int, y[%s]:int) -> o { o[%sa, b] += %s * %s }\n",
		name, index_of(k, form[0]), index_of(k, form[1]),
		form[0][0] == 'e' ? "e, " : "", widened(k, &l, "x", form[0]),
		widened(k, &l, "y", form[1]));
	out.name = spread(k, arena_printf(k->a, "%s(%s, %s)", name, of[0].name,
		of[1].name));
	k->dtype = "i32";
	if (form[0][0] == 'e') {
		give(k, out.name);
		return;
	}
	out.shape[0] = l.extent[0];
	out.shape[1] = l.extent[1];
	follow(k, &out);
}

/* ---- windows ---- */

/* With a stride: pixels of other residues have other weights. */
static void draw_transposed(sketch *k)
{
	int64_t stride = 1 + rng_below(&k->r, 3), lo = rng_below(&k->r, 2);
	int64_t x[4] = {1 + rng_below(&k->r, 3), 4 + rng_below(&k->r, 12)};
	int64_t w[4] = {x[1], 1 + rng_below(&k->r, 40)};
	made out = {.rank = 4, .shape = {x[0], w[1]}}, of[2];

	for (int32_t i = 2; i < 4; i++) {
		x[i] = 2 + rng_below(&k->r, 7);
		w[i] = 1 + rng_below(&k->r, 4);
		out.shape[i] = (x[i] - 1) * stride + w[i] - lo;
		if (out.shape[i] < 1)
			return;
	}
	of[0] = input(k, 4, x);
	of[1] = input(k, 4, w);
	out.name = spread(k, arena_printf(k->a,
		"conv_transpose(%s, %s, stride=%d, lo=%d)", of[0].name,
		of[1].name, (int)stride, (int)lo));
	follow(k, &out);
}

static void draw_conv(sketch *k)
{
	int32_t rank = chance(k, 60) ? 2 : 1;
	int64_t groups = chance(k, 70) ? 1 : 2 + rng_below(&k->r, 3);
	int64_t c = 1 + rng_below(&k->r, 6), f = 1 + rng_below(&k->r, 20);
	int64_t x[4] = {1 + rng_below(&k->r, 2), groups * c, 0, 0};
	int64_t w[4] = {groups * f, c, 0, 0};
	int64_t stride = 1 + rng_below(&k->r, 2), dil = 1 + chance(k, 20);
	int64_t lo = rng_below(&k->r, 3), hi = rng_below(&k->r, 2);
	made out = {.rank = 2 + rank}, of[2];
	bool small = chance(k, 50); /* few pixels, channels that fill the lanes */

	if (chance(k, 25)) {
		draw_transposed(k);
		return;
	}
	if (small) {
		groups = 1;
		x[1] = w[1] = 8 + rng_below(&k->r, 16);
		w[0] = 32 + rng_below(&k->r, 40);
		if (w[0] % 16 == 0) /* .. and sums long enough for rows of pixels */
			x[1] = w[1] *= 6;
	}
	out.shape[0] = x[0];
	out.shape[1] = w[0];

	for (int32_t i = 2; i < 2 + rank; i++) {
		w[i] = 1 + rng_below(&k->r, 4);
		x[i] = dil * (w[i] - 1) + 1 + rng_below(&k->r,
				small ? (rank == 1 ? 40 : 8) : rank == 1 ? 70 : 20);
		out.shape[i] =
			(x[i] + lo + hi - dil * (w[i] - 1) - 1) / stride + 1;
	}
	of[0] = input(k, 2 + rank, x);
	of[1] = input(k, 2 + rank, w);
	out.name = spread(k, arena_printf(k->a,
		"conv(%s, %s, groups=%d, stride=%d, dil=%d, lo=%d, hi=%d)",
		of[0].name, of[1].name, (int)groups, (int)stride, (int)dil,
		(int)lo, (int)hi));
	follow(k, &out);
}

/* A window of one channel, of which several rows may be summed at once: a depthwise
 * convolution or a pooling, and perhaps a product of the channels behind it. */
static void draw_window(sketch *k)
{
	int64_t stride = chance(k, 30) ? 2 : 1, lo = rng_below(&k->r, 3), c;
	int64_t x[4] = {1 + rng_below(&k->r, 2), 1 + rng_below(&k->r, 5)};
	int64_t w[4] = {x[1], 1};
	made out = {.rank = 4, .shape = {x[0], x[1]}}, of[2];
	const char *text;

	for (int32_t i = 2; i < 4; i++) {
		w[i] = 1 + rng_below(&k->r, 5);
		out.shape[i] = chance(k, 50) ? 7 * (1 + rng_below(&k->r, 4))
					     : 4 + rng_below(&k->r, 30);
		x[i] = (out.shape[i] - 1) * stride + w[i] - lo;
		if (x[i] < 1 || lo >= w[i])
			return;
	}
	of[0] = input(k, 4, x);
	if (chance(k, 30)) {
		text = arena_printf(k->a, "max_pool(%s, kernel=[%d,%d], stride=[%d,%d], dil=[1,1], lo=[%d,%d], hi=[0,0])",
			of[0].name, (int)w[2], (int)w[3], (int)stride, (int)stride,
			(int)lo, (int)lo);
	} else {
		of[1] = input(k, 4, w);
		text = arena_printf(k->a, "conv(%s, %s, groups=%d, stride=%d, lo=%d, hi=0)",
			of[0].name, of[1].name, (int)x[1], (int)stride, (int)lo);
	}
	out.name = spread(k, text);
	if (chance(k, 40)) {
		c = 8 + rng_below(&k->r, 16);
		text = input(k, 4, (int64_t[]){c, x[1], 1, 1}).name;
		out.name = spread(k, arena_printf(k->a, "conv(%s, %s)", out.name, text));
		out.shape[1] = c;
	}
	follow(k, &out);
}

/* ---- two products on a row ---- */

static void draw_attention(sketch *k)
{
	int64_t b = 1 + rng_below(&k->r, 2), t = pick(k, OF(rows));
	bool many = chance(k, 45);
	int64_t u = many ? pick(k, OF(many_keys)) : pick(k, OF(columns));
	int64_t d = many ? 8 : pick(k, OF(sums));
	int64_t e = many ? 16 : pick(k, OF(columns));
	int64_t qs[] = {b, t, d}, ks[] = {b, u, d}, vs[] = {b, u, e};
	const char *p = fresh(k, "p"), *m = fresh(k, "p"), *w = fresh(k, "p");
	made q = input(k, 3, qs), key = input(k, 3, ks), v = input(k, 3, vs);
	made out = {.rank = 3, .shape = {b, t, e}};
	const char *s;

	if (chance(k, 30)) { /* the row itself, with all its guards */
		out.name = spread(k, arena_printf(k->a,
			"attention(%s, %s, %s, causal=%s, scale=0.25)", q.name,
			key.name, v.name, chance(k, 70) ? "true" : "false"));
		follow(k, &out);
		return;
	}
	str_printf(&k->op,
		"op %s(q[b, t, d], k[b, u, d]) -> o "
		"{ o[b, t, u] += q[b, t, d] * k[b, u, d] }\n"
		"op %s(s[b, t, u]) -> o { o[b, t, u] = s[b, t, u] where u <= t "
		"else -64 }\n"
		"op %s(w[b, t, u], v[b, u, e]) -> o "
		"{ o[b, t, e] += w[b, t, u] * v[b, u, e] }\n",
		p, m, w);
	s = spread(k, arena_printf(k->a, "%s(%s, %s)", p, q.name, key.name));
	if (chance(k, 50))
		s = spread(k, arena_printf(k->a, "mul(%s, 0.25)", s));
	if (chance(k, 50))
		s = spread(k, arena_printf(k->a, "%s(%s)", m, s));
	if (chance(k, 80))
		s = spread(k, arena_printf(k->a, "softmax(%s)", s));
	if (chance(k, 10))
		give(k, s);
	out.name = spread(k, arena_printf(k->a, "%s(%s, %s)", w, s, v.name));
	follow(k, &out);
}

/* Its backward: what is made row by row is added up along the rows. */
static void draw_attention_backward(sketch *k)
{
	int64_t b = 1 + rng_below(&k->r, 4), t = pick(k, OF(rows));
	int64_t u = pick(k, OF(columns)), d = pick(k, OF(sums));
	int64_t e = pick(k, OF(sums));
	int64_t qs[] = {b, t, d}, ks[] = {b, u, d}, vs[] = {b, u, e};
	int64_t gs[] = {b, t, e}, rs[] = {b, t};
	const char *p = fresh(k, "p"), *g = fresh(k, "g");
	/* then rows have no sums but those of products; it takes no random number */
	bool given = (t + u + d) % 2 == 0;
	const char *when = chance(k, 60) ? " where u <= t else cast(0, q)" : "";
	made q = input(k, 3, qs), key = input(k, 3, ks), v = input(k, 3, vs);
	made go = input(k, 3, gs), row = given ? input(k, 2, rs) : go;

	str_printf(&k->op,
		"op %s(q[b, t, d], k[b, u, d], v[b, u, e], go[b, t, e]%s) "
		"-> gq, gk, gv { "
		"s[b, t, u] += q[b, t, d] * k[b, u, d]%s; "
		"p[b, t, u] = max(s[b, t, u], 0)%s; "
		"gp[b, t, u] += go[b, t, e] * v[b, u, e]%s; "
		"%s"
		"gs[b, t, u] = p[b, t, u] * (gp[b, t, u] - r[b, t])%s; "
		"gq[b, t, d] += gs[b, t, u] * k[b, u, d]%s; "
		"gk[b, u, d] += gs[b, t, u] * q[b, t, d]%s; "
		"gv[b, u, e] += p[b, t, u] * go[b, t, e]%s }\n",
		p, given ? ", r[b, t]" : "", when, when, when,
		given ? "" : "r[b, t] += p[b, t, u] * gp[b, t, u]; ", when, when, when,
		when);
	str_printf(&k->call, "  %sq, %sk, %sv = %s(%s, %s, %s, %s%s%s)\n", g, g, g,
		p, q.name, key.name, v.name, go.name, given ? ", " : "",
		given ? row.name : "");
	give(k, arena_printf(k->a, "%sq, %sv", g, g));
	if (chance(k, 50)) /* what follows on such a sum */
		give(k, spread(k, arena_printf(k->a, "mul(%sk, %s)", g,
			key.name)));
	else
		give(k, arena_printf(k->a, "%sk", g));
}

/* ---- a layer's backward ---- */

static void draw_backward(sketch *k)
{
	int64_t m = pick(k, OF(rows)), n = pick(k, OF(columns));
	int64_t c = pick(k, OF(sums));
	int64_t xs[] = {m, c}, ws[] = {c, n}, gs[] = {m, n};
	const char *p = fresh(k, "p"), *g, *u = fresh(k, "p");
	made x = input(k, 2, xs), w = input(k, 2, ws), d = input(k, 2, gs);
	made z = input(k, 2, gs);

	str_printf(&k->op,
		"op %s(x[m, k], w[k, n], g[m, n]) -> gx, gw, gb "
		"{ gx[m, k] += g[m, n] * w[k, n]; gw[k, n] += g[m, n] * "
		"x[m, k]; gb[n] += g[m, n] }\n"
		"op %s(w[k, n], g[k, n]) -> o "
		"{ o[k, n] = w[k, n] - g[k, n] * 0.5 }\n",
		p, u);
	g = spread(k, arena_printf(k->a, "mul(%s, %s)", d.name, z.name));
	str_printf(&k->call, "  %sx, %sw, %sb = %s(%s, %s, %s)\n", g, g, g, p,
		x.name, w.name, g);
	give(k, arena_printf(k->a, "%sx, %sb", g, g));
	give(k, spread(k, arena_printf(k->a, "%s(%s, %sw)", u, w.name, g)));
}

static prop_case *drawn(sketch *k, uint64_t seed, uint64_t index, int64_t style)
{
	prop_case *c = arena_make(k->a, prop_case);
	str all = str_new(k->a);

	str_printf(&all, "%sprogram {\n%s%s  return %s\n}\n", k->op.at, k->in.at,
		k->call.at, k->out.at);
	*c = (prop_case){.seed = seed, .index = index, .far = k->far,
		.style = style < 55   ? STYLE_EXACT
			 : style < 80 ? STYLE_GENERAL
				      : STYLE_SPECIAL};
	c->p = ir_program_parse(k->a, all.at, all.n, "contract.tn", interp_loop);
	return c;
}

prop_case *draw_contract(arena *a, uint64_t seed, uint64_t index)
{
	static const char *const dtypes[] = {"f32", "f32", "f32", "bf16", "f64",
		"f64", "f16", "bf16", "i8", "i32"};
	sketch k = {.r = rng_new(seed ^ UINT64_C(0x5eed), index), .a = a,
		.op = str_new(a), .in = str_new(a), .call = str_new(a),
		.out = str_new(a)};
	int64_t what = rng_below(&k.r, 13), style = rng_below(&k.r, 100);
	rng other = rng_new(seed ^ UINT64_C(0xfe7), index);
	rng slid = rng_new(seed ^ UINT64_C(0x3d1), index);
	bool windows;

	k.dtype = dtypes[rng_below(&k.r, what < 7 ? 10 : 8)];
	k.far = rng_percent(&other, 8);
	windows = rng_percent(&slid, 6);
	if (k.far)
		draw_few_rows(&k);
	while (k.out.n == 0 && !k.far && windows)
		draw_window(&k);
	while (k.out.n == 0) { /* a product may be too large */
		if (what < 5)
			draw_product(&k);
		else if (what < 7)
			draw_conv(&k);
		else if (what < 9)
			draw_attention(&k);
		else if (what >= 11)
			draw_widened(&k);
		else if (what < 10)
			draw_backward(&k);
		else
			draw_attention_backward(&k);
	}
	return drawn(&k, seed, index, style);
}

prop_case *draw_warpgroups(arena *a, uint64_t seed, uint64_t index)
{
	sketch k = {.r = rng_new(seed ^ UINT64_C(0x4a9), index), .a = a,
		.op = str_new(a), .in = str_new(a), .call = str_new(a),
		.out = str_new(a), .warpgroups = true};

	k.dtype = chance(&k, 50) ? "bf16" : "f16";
	while (k.out.n == 0)
		draw_product(&k);
	return drawn(&k, seed, index, rng_below(&k.r, 100));
}
