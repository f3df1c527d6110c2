/* matrix.c: products of matrices on emulated warps; it stands behind prelude.c. */
/*
 * Products of matrices: each lane loads the elements that it gives the instruction,
 * and shows them to all others. The terms of a sum are added one by one.
 */
/* Element at of p, if there is one; else 0. */
SIMT_USED static unsigned simt_mma_at(
	const __UINT16_TYPE__ *p, simt_int at, int is, simt_int line)
{
	if (!is)
		return 0;
	simt_touch(p + at, 2, 0, line);
	return p[at];
}
/* Row, term: n rows + m terms from p on. Of the first so many of both; others are
 * zeros. */
SIMT_USED static void simt_mma_rows(unsigned *to, const __UINT16_TYPE__ *p,
	simt_int n, simt_int m, int rows, int terms, simt_int line)
{
	const int l = simt_now->lane;
	int i;

	for (i = 0; i < 4; i++) {
		const int r = l / 4 + 8 * (i & 1), t = 2 * (l % 4) + 8 * (i >> 1);

		to[i] = simt_mma_at(p, n * r + m * t, r < rows && t < terms, line) |
			simt_mma_at(p, n * r + m * (t + 1), r < rows && t + 1 < terms,
				line)
				<< 16;
	}
}
/* Term, column: n terms + m columns from p on. */
SIMT_USED static void simt_mma_columns(unsigned *to, const __UINT16_TYPE__ *p,
	simt_int n, simt_int m, int terms, int columns, simt_int line)
{
	const int l = simt_now->lane, c = l / 4;
	int i;

	for (i = 0; i < 2; i++) {
		const int t = 2 * (l % 4) + 8 * i;

		to[i] = simt_mma_at(p, n * t + m * c, t < terms && c < columns, line) |
			simt_mma_at(p, n * (t + 1) + m * c, t + 1 < terms && c < columns,
				line)
				<< 16;
	}
}
/* The word of each lane; valid until the lanes meet again. */
static const simt_word *simt_show(simt_word x, simt_int line)
{
	simt_exchange(x, 0, line);
	return simt_now->slot[simt_now->turn ^ 1];
}
/* What a lane multiplies: the words of its two rows and of its two columns. */
struct simt_factors {
	simt_word rows[2][4], columns[2][4];
};
SIMT_USED static void simt_factors(struct simt_factors *w, const unsigned *x,
	const unsigned *y, simt_int line)
{
	const int l = simt_now->lane;
	const simt_word *seen;
	int i, k;

	for (i = 0; i < 2; i++) { /* words 2 i and 2 i + 1: half of the terms */
		seen = simt_show(x[2 * i] | (simt_word)x[2 * i + 1] << 32, line);
		for (k = 0; k < 4; k++)
			w->rows[i][k] = seen[l / 4 * 4 + k];
	}
	seen = simt_show(y[0] | (simt_word)y[1] << 32, line);
	for (i = 0; i < 2; i++)
		for (k = 0; k < 4; k++)
			w->columns[i][k] = seen[(2 * (l % 4) + i) * 4 + k];
}
/* Half h of the word that lane l shows. */
#define SIMT_HALF(word, h) ((unsigned)((word) >> 16 * (h)) & 0xffff)
SIMT_USED static void simt_mma(float *const *sum, const unsigned *x,
	const unsigned *y, float (*value)(unsigned), simt_int line)
{
	struct simt_factors w;
	int i, k;

	simt_factors(&w, x, y, line);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 16; k++)
			*sum[i] = __builtin_fmaf(
				value(SIMT_HALF(w.rows[k / 8][k % 8 / 2], i / 2 * 2 + k % 2)),
				value(SIMT_HALF(w.columns[i % 2][k % 8 / 2], k / 8 * 2 + k % 2)),
				*sum[i]);
}
/* The same of rows in f32, of which a word has two: row, term as in simt_mma_rows. */
SIMT_USED static void simt_mma_split(unsigned *to, const float *p, simt_int n,
	simt_int m, int rows, int terms, simt_int line)
{
	const int l = simt_now->lane;
	int i;

	for (i = 0; i < 8; i++) {
		const int r = l / 4 + 8 * (i / 2 & 1);
		const int t = 2 * (l % 4) + 8 * (i / 4) + i % 2;
		float x = 0;

		if (r < rows && t < terms) {
			simt_touch(p + n * r + m * t, 4, 0, line);
			x = p[n * r + m * t];
		}
		__builtin_memcpy(to + i, &x, sizeof x);
	}
}
SIMT_USED static float simt_float(simt_word x, int half)
{
	const unsigned w = (unsigned)(x >> 32 * half);
	float f;

	__builtin_memcpy(&f, &w, sizeof f);
	return f;
}
SIMT_USED static void simt_mma_parts(
	float *const *sum, const unsigned *x, const unsigned *y, simt_int line)
{
	const int l = simt_now->lane;
	simt_word rows[4][4], columns[2][4];
	const simt_word *seen;
	int i, k;

	for (i = 0; i < 4; i++) {
		seen = simt_show(x[2 * i] | (simt_word)x[2 * i + 1] << 32, line);
		for (k = 0; k < 4; k++)
			rows[i][k] = seen[l / 4 * 4 + k];
	}
	seen = simt_show(y[0] | (simt_word)y[1] << 32, line);
	for (i = 0; i < 2; i++)
		for (k = 0; k < 4; k++)
			columns[i][k] = seen[(2 * (l % 4) + i) * 4 + k];
	for (i = 0; i < 4; i++)
		for (k = 0; k < 16; k++)
			*sum[i] = __builtin_fmaf(
				simt_float(rows[i / 2 + k / 8 * 2][k % 8 / 2], k % 2),
				from_bf16(SIMT_HALF(columns[i % 2][k % 8 / 2], k / 8 * 2 + k % 2)),
				*sum[i]);
}
#define mma_split_part(to, p, n, r, t) \
	simt_mma_split((to), (p), (n), 1, (r), (t), __LINE__)
#define mma_split_turned_part(to, p, n, r, t) \
	simt_mma_split((to), (p), 1, (n), (r), (t), __LINE__)
#define mma_split(to, p, n) mma_split_part(to, p, n, 16, 16)
#define mma_split_turned(to, p, n) mma_split_turned_part(to, p, n, 16, 16)
#define mma_parts_bf16(a, b, c, d, x, y) \
	simt_mma_parts((float *const[4]){ (a), (b), (c), (d) }, (x), (y), __LINE__)
#define mma_rows_part(to, p, n, r, t) \
	simt_mma_rows((to), (p), (n), 1, (r), (t), __LINE__)
#define mma_rows_turned_part(to, p, n, r, t) \
	simt_mma_rows((to), (p), 1, (n), (r), (t), __LINE__)
#define mma_columns_part(to, p, n, t, c) \
	simt_mma_columns((to), (p), (n), 1, (t), (c), __LINE__)
#define mma_columns_turned_part(to, p, n, t, c) \
	simt_mma_columns((to), (p), 1, (n), (t), (c), __LINE__)
#define mma_rows(to, p, n) mma_rows_part(to, p, n, 16, 16)
#define mma_rows_turned(to, p, n) mma_rows_turned_part(to, p, n, 16, 16)
#define mma_columns(to, p, n) mma_columns_part(to, p, n, 16, 8)
#define mma_columns_turned(to, p, n) mma_columns_turned_part(to, p, n, 16, 8)
#define mma_rows_shared mma_rows
#define mma_rows_turned_shared mma_rows_turned
#define mma_columns_shared mma_columns
#define mma_columns_turned_shared mma_columns_turned
#define mma_bf16(a, b, c, d, x, y) \
	simt_mma((float *const[4]){ (a), (b), (c), (d) }, (x), (y), from_bf16, __LINE__)
#define mma_f16(a, b, c, d, x, y) \
	simt_mma((float *const[4]){ (a), (b), (c), (d) }, (x), (y), from_f16, __LINE__)
/*
 * Factors of one byte, four in a word, whose terms adjoin; the sums are exact, and
 * wrap.
 */
SIMT_USED static void simt_mma_bytes(unsigned *to, int words, const void *p,
	simt_int n, int rows, int terms, simt_int line)
{
	const int l = simt_now->lane, down = words / 2;
	int i, k;

	for (i = 0; i < words; i++) {
		const int r = l / 4 + 8 * (i % down), t = 4 * (l % 4) + 16 * (i / down);

		to[i] = 0;
		for (k = 0; k < 4 && r < rows && t + k < terms; k++) {
			const unsigned char *at =
				(const unsigned char *)p + n * r + t + k;

			simt_touch(at, 1, 0, line);
			to[i] |= (unsigned)*at << 8 * k;
		}
	}
}
SIMT_USED static int simt_byte(simt_word x, int i, int is_signed)
{
	const int b = (int)(x >> 8 * i & 255);

	return is_signed && b > 127 ? b - 256 : b;
}
SIMT_USED static void simt_mma_int(int *const *sum, const unsigned *x,
	const unsigned *y, int x_signed, int y_signed, simt_int line)
{
	struct simt_factors w;
	int i, k;

	simt_factors(&w, x, y, line);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 32; k++)
			*sum[i] = (int)((unsigned)*sum[i] +
				(unsigned)(simt_byte(w.rows[k / 16][k % 16 / 4], i / 2 * 4 + k % 4, x_signed) *
				simt_byte(w.columns[i % 2][k % 16 / 4], k / 16 * 4 + k % 4, y_signed)));
}
#define mma_byte_rows_part(to, p, n, r, t) \
	simt_mma_bytes((to), 4, (p), (n), (r), (t), __LINE__)
#define mma_byte_columns_part(to, p, n, t, c) \
	simt_mma_bytes((to), 2, (p), (n), (c), (t), __LINE__)
#define mma_byte_rows(to, p, n) mma_byte_rows_part(to, p, n, 16, 32)
#define mma_byte_columns(to, p, n) mma_byte_columns_part(to, p, n, 32, 8)
#define mma_byte_rows_shared mma_byte_rows
#define mma_byte_columns_shared mma_byte_columns
#define SIMT_MMA_INT(a, b, c, d, x, y, s, t) \
	simt_mma_int((int *const[4]){ (a), (b), (c), (d) }, (x), (y), (s), (t), __LINE__)
#define mma_i8_i8(a, b, c, d, x, y) SIMT_MMA_INT(a, b, c, d, x, y, 1, 1)
#define mma_i8_u8(a, b, c, d, x, y) SIMT_MMA_INT(a, b, c, d, x, y, 1, 0)
#define mma_u8_i8(a, b, c, d, x, y) SIMT_MMA_INT(a, b, c, d, x, y, 0, 1)
#define mma_u8_u8(a, b, c, d, x, y) SIMT_MMA_INT(a, b, c, d, x, y, 0, 0)
/*
 * Factors in f32, rounded as they are loaded: a word of each lane has one term, as
 * prelude.cu says.
 */
SIMT_USED static unsigned simt_mma_round(
	const float *p, simt_int at, int is, simt_int line)
{
	unsigned w;

	if (!is)
		return 0;
	simt_touch(p + at, 4, 0, line);
	__builtin_memcpy(&w, p + at, sizeof w);
	return (w & 0x7fffffff) > 0x7f800000 ? w : (w + 0x1000) & 0xffffe000;
}
SIMT_USED static void simt_mma_words(unsigned *to, int words, const float *p,
	simt_int n, simt_int m, int rows, int terms, simt_int line)
{
	const int l = simt_now->lane, down = words / 2;
	int i;

	for (i = 0; i < words; i++) {
		const int r = l / 4 + 8 * (i % down), t = l % 4 + 4 * (i / down);

		to[i] = simt_mma_round(p, n * r + m * t, r < rows && t < terms, line);
	}
}
SIMT_USED static void simt_mma_f32(
	float *const *sum, const unsigned *x, const unsigned *y, simt_int line)
{
	struct simt_factors w;
	int i, k;

	simt_factors(&w, x, y, line);
	for (i = 0; i < 4; i++)
		for (k = 0; k < 8; k++)
			*sum[i] = __builtin_fmaf(
				simt_float(w.rows[k / 4][k % 4], i / 2),
				simt_float(w.columns[i % 2][k % 4], k / 4), *sum[i]);
}
#define mma_word_rows_part(to, p, n, r, t) \
	simt_mma_words((to), 4, (p), (n), 1, (r), (t), __LINE__)
#define mma_word_rows_turned_part(to, p, n, r, t) \
	simt_mma_words((to), 4, (p), 1, (n), (r), (t), __LINE__)
#define mma_word_columns_part(to, p, n, t, c) \
	simt_mma_words((to), 2, (p), 1, (n), (c), (t), __LINE__)
#define mma_word_columns_turned_part(to, p, n, t, c) \
	simt_mma_words((to), 2, (p), (n), 1, (c), (t), __LINE__)
#define mma_word_rows(to, p, n) mma_word_rows_part(to, p, n, 16, 8)
#define mma_word_rows_turned(to, p, n) mma_word_rows_turned_part(to, p, n, 16, 8)
#define mma_word_columns(to, p, n) mma_word_columns_part(to, p, n, 8, 8)
#define mma_word_columns_turned(to, p, n) mma_word_columns_turned_part(to, p, n, 8, 8)
#define mma_word_rows_shared mma_word_rows
#define mma_word_rows_turned_shared mma_word_rows_turned
#define mma_word_columns_shared mma_word_columns
#define mma_word_columns_turned_shared mma_word_columns_turned
#define mma_f32(a, b, c, d, x, y) \
	simt_mma_f32((float *const[4]){ (a), (b), (c), (d) }, (x), (y), __LINE__)
