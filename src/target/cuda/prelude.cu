/* What kernels call, for NVRTC. A warp executes the functions as a whole. */
#ifndef __INT64_TYPE__
#define __INT8_TYPE__ signed char
#define __INT16_TYPE__ short
#define __INT32_TYPE__ int
#define __INT64_TYPE__ long long
#define __UINT8_TYPE__ unsigned char
#define __UINT16_TYPE__ unsigned short
#define __UINT32_TYPE__ unsigned int
#define __UINT64_TYPE__ unsigned long long
#define __INT64_MAX__ 9223372036854775807LL
#endif
#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#define __FMA__ 1
#define __builtin_fmaf(x, y, z) __fmaf_rn((x), (y), (z))
#define __builtin_fma(x, y, z) __fma_rn((x), (y), (z))
#define __builtin_sqrtf(x) __fsqrt_rn(x)
#define __builtin_sqrt(x) __dsqrt_rn(x)
#define __builtin_memcpy(to, from, n) memcpy((to), (from), (n))
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000ll)
#define KERNEL(name) extern "C" __global__ void name
#define LD(element) (element)
#define ST(element, x) ((element) = (x))
/* Neighbours at once, if the array begins at a multiple of 16 bytes. */
#define ALIGNED(array) ((unsigned long long)(array) % 16 == 0)
#define LD2(wide, element, ...) load_wide((wide), &(element), __VA_ARGS__)
#define LD4(wide, element, ...) load_wide((wide), &(element), __VA_ARGS__)
#define LD8(wide, element, ...) load_wide((wide), &(element), __VA_ARGS__)
#define ST2(wide, element, ...) store_wide((wide), &(element), __VA_ARGS__)
#define ST4(wide, element, ...) store_wide((wide), &(element), __VA_ARGS__)
#define ST8(wide, element, ...) store_wide((wide), &(element), __VA_ARGS__)
template <int bytes> struct wide_word;
template <> struct wide_word<2> { typedef unsigned short type; };
template <> struct wide_word<4> { typedef unsigned type; };
template <> struct wide_word<8> { typedef uint2 type; };
template <> struct wide_word<16> { typedef uint4 type; };
template <typename T, typename... Ts>
[[maybe_unused]] static inline void load_wide(int wide, const T *p, Ts &...x)
{
	typedef typename wide_word<sizeof...(x) * sizeof(T)>::type word;
	T t[sizeof...(x)];
	if (wide) {
		const word w = *(const word *)p;
		memcpy(t, &w, sizeof w);
	} else {
		for (unsigned i = 0; i < sizeof...(x); i++)
			t[i] = p[i];
	}
	unsigned i = 0;
	((x = t[i++]), ...);
}
template <typename T, typename... Ts>
[[maybe_unused]] static inline void store_wide(int wide, T *p, Ts... x)
{
	typedef typename wide_word<sizeof...(x) * sizeof(T)>::type word;
	const T t[] = {(T)x...};
	if (wide) {
		word w;
		memcpy(&w, t, sizeof w);
		*(word *)p = w;
	} else {
		for (unsigned i = 0; i < sizeof...(x); i++)
			p[i] = t[i];
	}
}
/* One instruction each, and the NaN that the CPU has. */
[[maybe_unused]] static inline unsigned short to_bf16(float x)
{
	unsigned short h;
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
	return x == x ? h : (unsigned short)(__float_as_uint(x) >> 16 | 0x40);
}
[[maybe_unused]] static inline float from_bf16(unsigned short h)
{
	return __uint_as_float((unsigned)h << 16);
}
[[maybe_unused]] static inline unsigned short to_f16(float x)
{
	const unsigned b = __float_as_uint(x);
	unsigned short h;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
	return x == x ? h : (unsigned short)((b >> 13 & 0x3ff) | 0x7e00 | (b >> 16 & 0x8000));
}
[[maybe_unused]] static inline float from_f16(unsigned short h)
{
	const unsigned nan = (h & 0x7fffu) << 13 | 0x7fc00000 | (h & 0x8000u) << 16;
	float x;
	asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
	return x == x ? x : __uint_as_float(nan);
}
#define SYNC() __syncwarp()
#define BLOCK_SYNC() __syncthreads()
/* Memory of the block: of what size, the launch says. */
extern __shared__ __align__(1024) char shared_memory[];
#define SHARED() shared_memory
/* The first failure of the launch counts: of the least number. */
#define FAIL(err, n) fail((unsigned long long *)(err), (n))
[[maybe_unused]] static inline void fail(unsigned long long *err, unsigned long long n)
{
	atomicMin(err, n);
}
[[maybe_unused]] static inline int any_lane(int x)
{
	return __any_sync(0xffffffffu, x);
}
/* Byte l of four words. */
[[maybe_unused]] static inline int pick(int l, unsigned long long a, unsigned long long b,
	unsigned long long c, unsigned long long d)
{
	return (int)(((l < 16 ? l < 8 ? a : b : l < 24 ? c : d) >> 8 * (l & 7)) & 255);
}
/* x of lane l; and x of lane l, or y of lane l - n. */
#define SHUFFLES(name, type, as) \
	[[maybe_unused]] static inline type shfl_##name(type x, int l) \
	{ \
		return (type)__shfl_sync(0xffffffffu, (as)x, l); \
	} \
	[[maybe_unused]] static inline type both_##name(type x, type y, int l, int n) \
	{ \
		const type a = shfl_##name(x, l & (n - 1)); \
		const type b = shfl_##name(y, l & (n - 1)); \
		return l < n ? a : b; \
	}
SHUFFLES(f32, float, float)
SHUFFLES(f64, double, double)
SHUFFLES(i8, signed char, int)
SHUFFLES(i16, short, int)
SHUFFLES(i32, int, int)
SHUFFLES(i64, __INT64_TYPE__, long long)
SHUFFLES(u8, unsigned char, int)
SHUFFLES(u16, unsigned short, int)
SHUFFLES(u32, unsigned, unsigned)
SHUFFLES(u64, __UINT64_TYPE__, unsigned long long)
SHUFFLES(bool, int, int)
/*
 * Copies rows of `width` elements from global to shared memory, 16 bytes at a time,
 * if they begin at such multiples; else at once, element by element.
 */
#define COPY_ROWS(wide, to, n, from, m, rows, width) \
	copy_rows<rows, width>((wide), (to), (n), (from), (m))
template <int rows, int width, typename T>
[[maybe_unused]] static inline void copy_rows(
	int wide, T *to, __INT64_TYPE__ n, const T *from, __INT64_TYPE__ m)
{
	const int each = 16 / (int)sizeof(T), row = width / each;
	const int l = (int)(threadIdx.x % 32);
	if (wide) {
		for (int i = l; i < rows * row; i += 32) {
			const unsigned at = (unsigned)__cvta_generic_to_shared(to + n * (i / row) + i % row * each);
			asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :
				: "r"(at), "l"(from + m * (i / row) + i % row * each) : "memory");
		}
	} else {
		for (int i = l; i < rows * width; i += 32)
			to[n * (i / width) + i % width] = from[m * (i / width) + i % width];
	}
}
#define COPY_COMMIT() asm volatile("cp.async.commit_group;" : : : "memory")
#define COPY_WAIT(n) asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory")
/*
 * Factors of a product, two elements in a word. Rows: row l / 4 (word 1 and 3: and
 * 8) has elements 2 (l % 4) and the next (word 2 and 3: and 8). Columns: column l / 4
 * has the rows 2 (l % 4) and the next (word 1: and 8).
 */
[[maybe_unused]] static inline void mma_rows(unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 4; i++) {
		const unsigned short *at = p + n * (l / 4 + 8 * (i & 1)) + 2 * (l % 4) + 8 * (i >> 1);
		to[i] = at[0] | (unsigned)at[1] << 16;
	}
}
[[maybe_unused]] static inline void mma_columns(unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 2; i++) {
		const unsigned short *at = p + n * (2 * (l % 4) + 8 * i) + l / 4;
		to[i] = at[0] | (unsigned)at[n] << 16;
	}
}
/* The same where rows adjoin, and terms are n apart; where terms adjoin, and columns
 * are n apart. */
[[maybe_unused]] static inline void mma_rows_turned(unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 4; i++) {
		const unsigned short *at = p + n * (2 * (l % 4) + 8 * (i >> 1)) + l / 4 + 8 * (i & 1);
		to[i] = at[0] | (unsigned)at[n] << 16;
	}
}
[[maybe_unused]] static inline void mma_columns_turned(unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 2; i++) {
		const unsigned short *at = p + n * (l / 4) + 2 * (l % 4) + 8 * i;
		to[i] = at[0] | (unsigned)at[1] << 16;
	}
}
/* Of the first so many rows, terms and columns; others are zeros. */
[[maybe_unused]] static inline void mma_pair(unsigned *to, const unsigned short *p,
	__INT64_TYPE__ n, __INT64_TYPE__ m, int i, int t, int rows, int terms)
{
	*to = i < rows && t < terms ? p[n * i + m * t] : 0;
	*to |= i < rows && t + 1 < terms ? (unsigned)p[n * i + m * (t + 1)] << 16 : 0;
}
#define MMA_PART(name, words, row, term, rows, terms, n, m) \
	[[maybe_unused]] static inline void name( \
		unsigned *to, const unsigned short *p, __INT64_TYPE__ d, int x, int y) \
	{ \
		const int l = (int)(threadIdx.x % 32); \
		for (int i = 0; i < words; i++) \
			mma_pair(to + i, p, n, m, row, term, rows, terms); \
	}
MMA_PART(mma_rows_part, 4, l / 4 + 8 * (i & 1), 2 * (l % 4) + 8 * (i >> 1), x, y, d, 1)
MMA_PART(mma_rows_turned_part, 4, l / 4 + 8 * (i & 1), 2 * (l % 4) + 8 * (i >> 1), x, y, 1, d)
MMA_PART(mma_columns_part, 2, l / 4, 2 * (l % 4) + 8 * i, y, x, 1, d)
MMA_PART(mma_columns_turned_part, 2, l / 4, 2 * (l % 4) + 8 * i, y, x, d, 1)
/*
 * The same from shared memory: lane l says where 16 bytes of a row begin. Rows of
 * memory are rows of the squares that an instruction takes, or (trans) their columns.
 */
#define LDMATRIX4(trans, to, at) \
	asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \
		: "=r"((to)[0]), "=r"((to)[1]), "=r"((to)[2]), "=r"((to)[3]) \
		: "r"((unsigned)__cvta_generic_to_shared(at)) : "memory")
#define LDMATRIX2(trans, to, at) \
	asm volatile("ldmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 {%0, %1}, [%2];" \
		: "=r"((to)[0]), "=r"((to)[1]) \
		: "r"((unsigned)__cvta_generic_to_shared(at)) : "memory")
[[maybe_unused]] static inline void mma_rows_shared(
	unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	LDMATRIX4("", to, p + n * (l % 16) + l / 16 * 8);
}
[[maybe_unused]] static inline void mma_rows_turned_shared(
	unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	LDMATRIX4(".trans", to, p + n * (l % 8 + l / 16 * 8) + l / 8 % 2 * 8);
}
[[maybe_unused]] static inline void mma_columns_shared(
	unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	LDMATRIX2(".trans", to, p + n * (l % 16));
}
[[maybe_unused]] static inline void mma_columns_turned_shared(
	unsigned *to, const unsigned short *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	LDMATRIX2("", to, p + n * (l % 8) + l / 8 % 2 * 8);
}
#define MMA(name, type, terms) \
	[[maybe_unused]] static inline void mma_##name(float *a, float *b, float *c, float *d, \
		const unsigned *x, const unsigned *y) \
	{ \
		asm volatile("mma.sync.aligned.m16n8" terms ".row.col.f32." type "." type ".f32 " \
			"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
			: "+f"(*a), "+f"(*b), "+f"(*c), "+f"(*d) \
			: "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
	}
MMA(bf16, "bf16", "k16")
MMA(f16, "f16", "k16")
/*
 * Factors of one byte, four in a word, whose terms adjoin: row l / 4 (word 1 and 3: and
 * 8) has the terms 4 (l % 4) and the next three (word 2 and 3: and 16), and so has
 * column l / 4 (word 1: and 16). In bytes they lie as those of two bytes do.
 */
[[maybe_unused]] static inline void mma_byte_rows(unsigned *to, const void *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 4; i++)
		to[i] = *(const unsigned *)((const char *)p + n * (l / 4 + 8 * (i & 1)) + 4 * (l % 4) + 16 * (i >> 1));
}
[[maybe_unused]] static inline void mma_byte_columns(unsigned *to, const void *p, __INT64_TYPE__ n)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 2; i++)
		to[i] = *(const unsigned *)((const char *)p + n * (l / 4) + 4 * (l % 4) + 16 * i);
}
[[maybe_unused]] static inline unsigned mma_bytes(
	const void *p, __INT64_TYPE__ n, int i, int t, int rows, int terms)
{
	unsigned w = 0;
	for (int k = 0; k < 4; k++)
		w |= i < rows && t + k < terms ? (unsigned)((const unsigned char *)p)[n * i + t + k] << 8 * k : 0;
	return w;
}
[[maybe_unused]] static inline void mma_byte_rows_part(
	unsigned *to, const void *p, __INT64_TYPE__ n, int rows, int terms)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 4; i++)
		to[i] = mma_bytes(p, n, l / 4 + 8 * (i & 1), 4 * (l % 4) + 16 * (i >> 1), rows, terms);
}
[[maybe_unused]] static inline void mma_byte_columns_part(
	unsigned *to, const void *p, __INT64_TYPE__ n, int terms, int columns)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 2; i++)
		to[i] = mma_bytes(p, n, l / 4, 4 * (l % 4) + 16 * i, columns, terms);
}
#define mma_byte_rows_shared(to, p, n) \
	mma_rows_shared((to), (const unsigned short *)(p), (n) / 2)
#define mma_byte_columns_shared(to, p, n) \
	mma_columns_turned_shared((to), (const unsigned short *)(p), (n) / 2)
#define MMA_BYTES(x_type, y_type, x_name, y_name) \
	[[maybe_unused]] static inline void mma_##x_type##_##y_type(int *a, int *b, int *c, int *d, \
		const unsigned *x, const unsigned *y) \
	{ \
		asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." x_name "." y_name ".s32 " \
			"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
			: "+r"(*a), "+r"(*b), "+r"(*c), "+r"(*d) \
			: "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1])); \
	}
MMA_BYTES(i8, i8, "s8", "s8")
MMA_BYTES(i8, u8, "s8", "u8")
MMA_BYTES(u8, i8, "u8", "s8")
MMA_BYTES(u8, u8, "u8", "u8")
/*
 * Factors in f32, which are rounded to 10 bits of fraction: row l / 4 (word 1 and 3: and
 * 8) has the term l % 4 (word 2 and 3: and 4), and so has column l / 4 (word 1: and 4). In
 * bytes they lie as those of two bytes do.
 */
[[maybe_unused]] static inline unsigned mma_round(float x)
{
	unsigned w;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
	return w;
}
[[maybe_unused]] static inline void mma_word_rows_at(unsigned *to, const float *p,
	__INT64_TYPE__ n, __INT64_TYPE__ m, int rows, int terms)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 4; i++) {
		const int r = l / 4 + 8 * (i & 1), t = l % 4 + 4 * (i >> 1);
		to[i] = r < rows && t < terms ? mma_round(p[n * r + m * t]) : 0;
	}
}
[[maybe_unused]] static inline void mma_word_columns_at(unsigned *to, const float *p,
	__INT64_TYPE__ n, __INT64_TYPE__ m, int terms, int columns)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 2; i++) {
		const int t = l % 4 + 4 * i, c = l / 4;
		to[i] = t < terms && c < columns ? mma_round(p[n * t + m * c]) : 0;
	}
}
#define mma_word_rows_part(to, p, n, r, t) mma_word_rows_at((to), (p), (n), 1, (r), (t))
#define mma_word_rows_turned_part(to, p, n, r, t) mma_word_rows_at((to), (p), 1, (n), (r), (t))
#define mma_word_columns_part(to, p, n, t, c) mma_word_columns_at((to), (p), (n), 1, (t), (c))
#define mma_word_columns_turned_part(to, p, n, t, c) mma_word_columns_at((to), (p), 1, (n), (t), (c))
#define mma_word_rows(to, p, n) mma_word_rows_part(to, p, n, 16, 8)
#define mma_word_rows_turned(to, p, n) mma_word_rows_turned_part(to, p, n, 16, 8)
#define mma_word_columns(to, p, n) mma_word_columns_part(to, p, n, 8, 8)
#define mma_word_columns_turned(to, p, n) mma_word_columns_turned_part(to, p, n, 8, 8)
/* From shared memory: 16 bytes of a row at a time where terms adjoin, else by elements. */
#define mma_word_rows_turned_shared mma_word_rows_turned
#define mma_word_columns_shared mma_word_columns
[[maybe_unused]] static inline void mma_word_rows_shared(
	unsigned *to, const float *p, __INT64_TYPE__ n)
{
	mma_rows_shared(to, (const unsigned short *)p, 2 * n);
	for (int i = 0; i < 4; i++)
		to[i] = mma_round(__uint_as_float(to[i]));
}
[[maybe_unused]] static inline void mma_word_columns_turned_shared(
	unsigned *to, const float *p, __INT64_TYPE__ n)
{
	mma_columns_turned_shared(to, (const unsigned short *)p, 2 * n);
	for (int i = 0; i < 2; i++)
		to[i] = mma_round(__uint_as_float(to[i]));
}
MMA(f32, "tf32", "k8")
/*
 * Rows in f32: each is the sum of three bf16, the largest first. Infinity and NaN are
 * their own first part.
 */
[[maybe_unused]] static inline void mma_parts(unsigned *to, float x, float y)
{
	unsigned part[2][3];
	for (int i = 0; i < 2; i++) {
		float rest = i == 0 ? x : y;
		for (int k = 0; k < 3; k++) {
			unsigned w = __float_as_uint(rest);
			if ((w & 0x7fffffff) > 0x7f800000)
				w |= 0x400000;
			w &= 0xffff0000;
			rest = (w & 0x7f800000) == 0x7f800000 ? 0 : rest - __uint_as_float(w);
			part[i][k] = w;
		}
	}
	for (int k = 0; k < 3; k++)
		to[4 * k] = part[0][k] >> 16 | part[1][k];
}
[[maybe_unused]] static inline void mma_split_at(unsigned *to, const float *p,
	__INT64_TYPE__ n, __INT64_TYPE__ m, int rows, int terms)
{
	const int l = (int)(threadIdx.x % 32);
	for (int i = 0; i < 4; i++) {
		const int r = l / 4 + 8 * (i & 1), t = 2 * (l % 4) + 8 * (i >> 1);
		mma_parts(to + i, r < rows && t < terms ? p[n * r + m * t] : 0,
			r < rows && t + 1 < terms ? p[n * r + m * (t + 1)] : 0);
	}
}
#define mma_split(to, p, n) mma_split_at((to), (p), (n), 1, 16, 16)
#define mma_split_turned(to, p, n) mma_split_at((to), (p), 1, (n), 16, 16)
#define mma_split_part(to, p, n, r, t) mma_split_at((to), (p), (n), 1, (r), (t))
#define mma_split_turned_part(to, p, n, r, t) mma_split_at((to), (p), 1, (n), (r), (t))
[[maybe_unused]] static inline void mma_parts_bf16(float *a, float *b, float *c, float *d,
	const unsigned *x, const unsigned *y)
{
	for (int k = 2; k >= 0; k--)
		mma_bf16(a, b, c, d, x + 4 * k, y);
}
/*
 * Products by four warps together: each has 16 rows in registers, as above, and all have
 * the same columns, in rows of 128 bytes of shared memory that are swizzled: element e of
 * rows of `row` elements is here. Of longer rows, all first 128 bytes come first.
 */
template <int row> [[maybe_unused]] static inline int swizzled(int e, int elems)
{
	const int r = e / row, c = e % row;
	return (c / 64 * (elems / row) + r) * 64 + ((c / 8 % 8) ^ (r % 8)) * 8 + c % 8;
}
/* COPY_ROWS into such an array, of whole rows. */
#define COPY_SWIZZLED(wide, array, at, elems, row, from, m, rows, width) \
	copy_swizzled<rows, row>((wide), (array), (int)(at), (elems), (from), (m))
template <int rows, int row>
[[maybe_unused]] static inline void copy_swizzled(int wide, unsigned short *to, int at,
	int elems, const unsigned short *from, __INT64_TYPE__ m)
{
	const int l = (int)(threadIdx.x % 32);
	if (wide) {
		for (int i = 8 * l; i < rows * row; i += 8 * 32) {
			const unsigned p = (unsigned)__cvta_generic_to_shared(to + swizzled<row>(at + i, elems));
			asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :
				: "r"(p), "l"(from + m * (i / row) + i % row) : "memory");
		}
	} else {
		for (int i = l; i < rows * row; i += 32)
			to[swizzled<row>(at + i, elems)] = from[m * (i / row) + i % row];
	}
}
/* What this thread has written to shared memory is there for such instructions, behind the
 * next barrier. */
#define PROXY_FENCE() asm volatile("fence.proxy.async.shared::cta;" : : : "memory")
/*
 * Copies in bulk: one thread begins to copy `rows` rows of a box of a matrix into an array
 * as above, and a barrier in shared memory counts the bytes that have come. Each group of
 * copies has the next of BULK_BARRIERS barriers, in turn: it is open once the thread has
 * ended the group, and all of its bytes are there. A matrix that begins anywhere is copied
 * by all threads of the block, element by element.
 */
struct __align__(64) bulk_map { char of_the_driver[128]; };
#define BULK_MAP const __grid_constant__ bulk_map
#define BULK_BARRIERS 8
#define BULK_OPEN(memory) \
	const unsigned bulk_barriers = (unsigned)__cvta_generic_to_shared(memory); \
	unsigned bulk_ended = 0, bulk_met = 0; /* groups */ \
	bulk_open(bulk_barriers)
[[maybe_unused]] static inline void bulk_open(unsigned barriers)
{
	if (threadIdx.x == 0) {
		for (int i = 0; i < BULK_BARRIERS; i++)
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(barriers + 8 * i)
				: "memory");
		asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
	}
	__syncthreads();
}
#define COPY_BULK(wide, map, array, at, elems, row, x, y, from, m, rows) \
	copy_bulk<rows, row>((wide), &(map), (array), (int)(at), (elems), (int)(x), (int)(y), \
		(from), (m), bulk_barriers + bulk_ended % BULK_BARRIERS * 8)
template <int rows, int row>
[[maybe_unused]] static inline void copy_bulk(int wide, const bulk_map *map,
	unsigned short *to, int at, int elems, int x, int y, const unsigned short *from,
	__INT64_TYPE__ m, unsigned barrier)
{
	if (!wide) {
		for (int i = (int)threadIdx.x; i < rows * row; i += (int)blockDim.x)
			to[swizzled<row>(at + i, elems)] = from[m * (i / row) + i % row];
	} else if (threadIdx.x == 0) {
		asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :
			: "r"(barrier), "r"(rows * row * 2) : "memory");
		for (int c = 0; c < row; c += 64)
			asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
				"[%0], [%1, {%2, %3}], [%4];" : : "r"((unsigned)__cvta_generic_to_shared(
				to + swizzled<row>(at + c, elems))), "l"(map), "r"(x + c), "r"(y),
				"r"(barrier) : "memory");
	}
}
#define BULK_COMMIT() bulk_end(bulk_barriers + bulk_ended++ % BULK_BARRIERS * 8)
[[maybe_unused]] static inline void bulk_end(unsigned barrier)
{
	asm volatile("cp.async.commit_group;" : : : "memory");
	if (threadIdx.x == 0)
		asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}
#define BULK_WAIT(n) \
	do { \
		COPY_WAIT(n); \
		_Pragma("unroll 1") for (; (int)(bulk_ended - bulk_met) > (n); bulk_met++) \
			bulk_wait(bulk_barriers + bulk_met % BULK_BARRIERS * 8, \
				bulk_met / BULK_BARRIERS & 1); \
	} while (0)
[[maybe_unused]] static inline void bulk_wait(unsigned barrier, unsigned parity)
{
	asm volatile("{\n.reg .pred open;\nagain:\n"
		"mbarrier.try_wait.parity.shared::cta.b64 open, [%0], %1;\n"
		"@!open bra again;\n}" : : "r"(barrier), "r"(parity) : "memory");
}
#define OUT8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
	"+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define OUT32(d, i) OUT8(d, i), OUT8(d, i + 8), OUT8(d, i + 16), OUT8(d, i + 24)
#define REGS32 \
	"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
	"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define REGS64 REGS32 ", " \
	"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
	"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
/*
 * Where the columns are, for the instruction: the address, in units of 16 bytes; bits 16 on:
 * the distance of the next 64 columns; bits 32 on: that of the next eight rows; bit 62: rows
 * of 128 bytes are swizzled. 16 terms are so many units further on.
 */
template <int row, int turned>
[[maybe_unused]] static inline unsigned long long columns_at(
	const unsigned short *array, int at, int elems)
{
	const unsigned p = (unsigned)__cvta_generic_to_shared(array) + at / row * 128;
	const int next = turned ? 16 : elems / row * 128;
	return (unsigned long long)(p >> 4 & 0x3fff) | (unsigned long long)(next >> 4) << 16 |
		1024ull >> 4 << 32 | 1ull << 62;
}
#define WARPS_MMA(type, columns, n, REGS, OUT, a, b, c, d, e, f, g) \
	template <int turned> [[maybe_unused]] static inline void mma_warps_once_##type( \
		float (&s)[n], const unsigned *x, unsigned long long y) \
	{ \
		asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" f ", 0;\n" \
			"wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." #type "." #type " " \
			"{" REGS "}, {%" a ", %" b ", %" c ", %" d "}, %" e ", add, 1, 1, %" g ";\n}" \
			: OUT : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(y), "r"(1), \
			"n"(turned ? 0 : 1)); \
	}
/* .. with rows in memory, whose terms adjoin. */
#define WARPS_MMA_MEMORY(type, columns, n, REGS, OUT, x, y, f, g) \
	template <int turned> [[maybe_unused]] static inline void mma_warps_once_##type( \
		float (&s)[n], unsigned long long rows, unsigned long long at) \
	{ \
		asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" f ", 0;\n" \
			"wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." #type "." #type " " \
			"{" REGS "}, %" x ", %" y ", add, 1, 1, 0, %" g ";\n}" \
			: OUT : "l"(rows), "l"(at), "r"(1), "n"(turned ? 0 : 1)); \
	}
#define OUTS32 OUT32(s, 0)
#define OUTS64 OUT32(s, 0), OUT32(s, 32)
WARPS_MMA(bf16, "64", 32, REGS32, OUTS32, "32", "33", "34", "35", "36", "37", "38")
WARPS_MMA(bf16, "128", 64, REGS64, OUTS64, "64", "65", "66", "67", "68", "69", "70")
WARPS_MMA(f16, "64", 32, REGS32, OUTS32, "32", "33", "34", "35", "36", "37", "38")
WARPS_MMA(f16, "128", 64, REGS64, OUTS64, "64", "65", "66", "67", "68", "69", "70")
WARPS_MMA_MEMORY(bf16, "64", 32, REGS32, OUTS32, "32", "33", "34", "35")
WARPS_MMA_MEMORY(bf16, "128", 64, REGS64, OUTS64, "64", "65", "66", "67")
WARPS_MMA_MEMORY(f16, "64", 32, REGS32, OUTS32, "32", "33", "34", "35")
WARPS_MMA_MEMORY(f16, "128", 64, REGS64, OUTS64, "64", "65", "66", "67")
/* Until they are done; no register is touched before. */
template <int turned> [[maybe_unused]] static inline void mma_warps_wait(float (&s)[32])
{
	asm volatile("wgmma.wait_group.sync.aligned 0;" : OUTS32 : : "memory");
}
template <int turned> [[maybe_unused]] static inline void mma_warps_wait(float (&s)[64])
{
	asm volatile("wgmma.wait_group.sync.aligned 0;" : OUTS64 : : "memory");
}
#define MMA_BY_WARPS(type, terms, turned, rows, array, at, elems, row, ...) \
	mma_warps_##type<terms, turned, row>((rows), (array), (int)(at), (elems), __VA_ARGS__)
#define MMA_IN_MEMORY(type, terms, turned, rows, first, n, each, array, at, elems, row, ...) \
	mma_warps_##type<terms, turned, row>(rows_at((rows), (int)(first), (n)), (array), \
		(int)(at), (elems), __VA_ARGS__)
/* Where the 64 rows of four warps begin, and, of each 16 terms, the next ones. */
struct rows_in_memory { unsigned long long at; };
[[maybe_unused]] static inline rows_in_memory rows_at(
	const unsigned short *array, int first, int elems)
{
	const int warp = (int)(threadIdx.x / 32 % 4);
	return {columns_at<64, 1>(array, first - warp * 16 * 64, elems)};
}
[[maybe_unused]] static inline unsigned long long terms_of(rows_in_memory x, int i)
{
	return x.at + 2 * i;
}
[[maybe_unused]] static inline const unsigned *terms_of(const unsigned *x, int i)
{
	return x + 4 * i;
}
#define MMA_WARPS(type) \
	template <int terms, int turned, int row, typename T, typename... Ts> \
	[[maybe_unused]] static inline void mma_warps_##type(const T x, \
		const unsigned short *array, int at, int elems, Ts *...sums) \
	{ \
		float s[] = {*sums...}; \
		const unsigned long long y = columns_at<row, turned>(array, at, elems); \
		asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); \
		for (int i = 0; i < terms / 16; i++) \
			mma_warps_once_##type<turned>(s, terms_of(x, i), y + i * (turned ? 2 : 128)); \
		asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); \
		mma_warps_wait<turned>(s); \
		int i = 0; \
		((*sums = s[i++]), ...); \
	}
MMA_WARPS(bf16)
MMA_WARPS(f16)
