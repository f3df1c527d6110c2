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
/*
 * Of four warps, each with rows of its own, and with the same columns, in an array that
 * is swizzled as prelude.cu says.
 */
SIMT_USED static simt_int simt_swizzled(simt_int e, int row, simt_int elems)
{
	const simt_int r = e / row, c = e % row;

	return (c / 64 * (elems / row) + r) * 64 + ((c / 8 % 8) ^ (r % 8)) * 8 + c % 8;
}
SIMT_USED static void simt_copy_swizzled(int wide, __UINT16_TYPE__ *to, simt_int at,
	simt_int elems, int row, const __UINT16_TYPE__ *from, simt_int m, int rows,
	simt_int line)
{
	const int each = wide ? 8 : 1;
	int i;

	for (i = each * simt_now->lane; i < rows * row; i += each * 32) {
		const __UINT16_TYPE__ *q = from + m * (i / row) + i % row;
		__UINT16_TYPE__ *p = to + simt_swizzled(at + i, row, elems);

		if (wide) {
			simt_copy_async(p, q, 16, line);
			continue;
		}
		simt_touch(q, 2, 0, line);
		simt_touch(p, 2, 1, line);
		simt_now->copied[simt_now->lane] = 1;
		*p = *q;
	}
}
#define COPY_SWIZZLED(wide, array, at, elems, row, from, m, rows, width) \
	simt_copy_swizzled((wide), (array), (at), (elems), (row), (from), (m), (rows), \
		__LINE__)
#define PROXY_FENCE() ((void)(simt_now->copied[simt_now->lane] = 0))
/*
 * Where the columns are, as the instruction is told: bytes from the beginning of shared
 * memory, between every 64 columns, and between every eight rows of 128 bytes.
 */
struct simt_columns {
	simt_word at, next, eight;
	int turned;
};
SIMT_USED static struct simt_columns simt_columns_at(const __UINT16_TYPE__ *array, int turned,
	simt_int at, simt_int elems, int row)
{
	return (struct simt_columns){ (simt_word)array - (simt_word)simt_now->block->shared +
			(simt_word)(at / row * 128),
		turned ? 16 : (simt_word)(elems / row * 128), 1024, turned };
}
/* Term k of column j. Bits 4 to 6 of its address are exchanged by bits 7 to 9. */
SIMT_USED static const __UINT16_TYPE__ *simt_column(const struct simt_columns *y, int k, int j)
{
	const int r = y->turned ? j : k, c = y->turned ? k : j;
	const simt_word p = y->at + (simt_word)(c / 64) * y->next +
		(simt_word)(r / 8) * y->eight + (simt_word)(r % 8 * 128 + c % 64 * 2);

	return (const void *)(simt_now->block->shared + (p ^ (p >> 3 & 0x70)));
}
/* The 16 rows of this warp, behind those of the warps of its group before it: each lane
 * loads what it would give the instruction. */
SIMT_USED static const unsigned *simt_rows_at(unsigned *to, int terms,
	const __UINT16_TYPE__ *array, simt_int first, simt_int elems, simt_int line)
{
	const struct simt_warp *w = simt_now;
	const struct simt_columns y =
		simt_columns_at(array, 1, first - w->number % 4 * 16 * 64, elems, 64);
	const int l = w->lane;
	int t, i;

	for (t = 0; t < terms; t += 16)
		for (i = 0; i < 4; i++) { /* as simt_mma_rows */
			const int r = w->number % 4 * 16 + l / 4 + 8 * (i & 1);
			const int k = t + 2 * (l % 4) + 8 * (i >> 1);

			to[t / 4 + i] = simt_mma_at(simt_column(&y, k, r), 0, 1, line) |
				simt_mma_at(simt_column(&y, k + 1, r), 0, 1, line) << 16;
		}
	return to;
}
SIMT_USED static void simt_mma_warps(float *const *sum, int columns, int terms,
	const unsigned *x, struct simt_columns y, float (*value)(unsigned), simt_int line)
{
	struct simt_warp *w = simt_now;
	const int l = w->lane;
	int t, c, i;

	if (w->block->unfenced)
		simt_fail(w->block, line, SIMT_NO_FENCE);
	w->products += l == 0;
	for (t = 0; t < terms; t += 16)
		for (c = 0; c < columns; c += 8) {
			unsigned word[2] = { 0, 0 };

			for (i = 0; i < 4; i++) { /* as simt_mma_columns */
				const int k = t + 2 * (l % 4) + 8 * (i / 2) + i % 2, j = c + l / 4;

				word[i / 2] |= simt_mma_at(simt_column(&y, k, j), 0, 1, line)
					<< 16 * (i % 2);
			}
			simt_mma(sum + c / 2, x + t / 4, word, value, line);
		}
}
#define MMA_BY_WARPS(type, terms, turned, rows, array, at, elems, row, ...) \
	simt_mma_warps((float *const[]){ __VA_ARGS__ }, \
		2 * (int)(sizeof((float *const[]){ __VA_ARGS__ }) / sizeof(float *)), (terms), \
		(rows), simt_columns_at((array), (turned), (at), (elems), (row)), \
		from_##type, __LINE__)
#define MMA_IN_MEMORY(type, terms, turned, rows, first, n, each, array, at, elems, row, ...) \
	simt_mma_warps((float *const[]){ __VA_ARGS__ }, \
		2 * (int)(sizeof((float *const[]){ __VA_ARGS__ }) / sizeof(float *)), (terms), \
		simt_rows_at((unsigned[16]){ 0 }, (terms), (rows), (first), (n), __LINE__), \
		simt_columns_at((array), (turned), (at), (elems), (row)), from_##type, __LINE__)
