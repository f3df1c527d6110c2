/*
 * machine_loops.c: the loops that `tenon bench machine` times, each over one kind
 * of instruction, for vectors of several widths.
 */
#include "bench/bench.h"

#include <string.h>

enum { NEAR = BENCH_NEAR, OPS = BENCH_OPS };

/* ---- loops ---- */

/* Nothing is moved across it, and no loop with it in lanes. */
#define STOP() __asm__ __volatile__("" ::: "memory")
/* Vectors are copied: with less alignment their type would not be in registers. */
#define USE(o, a) memcpy((o), &(a), sizeof(a))

#define LOOPS(S, TARGET, BYTES)                                                \
	typedef float vec_##S __attribute__((vector_size(BYTES)));             \
	enum { LANES_##S = BYTES / 4 };                                        \
	TARGET static vec_##S get_##S(const float *x)                          \
	{                                                                      \
		vec_##S v;                                                     \
                                                                               \
		memcpy(&v, x, sizeof v);                                       \
		return v;                                                      \
	}                                                                      \
	TARGET static void scale_##S(float *o, const float *x, int64_t n)      \
	{                                                                      \
		for (int64_t i = 0; i < n; i += LANES_##S) {                   \
			vec_##S v = get_##S(x + i) * 1.5f;                     \
                                                                               \
			USE(o + i, v);                                         \
		}                                                              \
	}                                                                      \
	TARGET static void poly_##S(float *o, const float *x, int64_t n)       \
	{                                                                      \
		for (int64_t i = 0; i < n; i += LANES_##S) {                   \
			vec_##S v = get_##S(x + i), s = v;                     \
                                                                               \
			for (int k = 0; k < OPS / 2; k++)                      \
				s = s * v + 0.25f;                             \
			USE(o + i, s);                                         \
		}                                                              \
	}                                                                      \
	TARGET static void load_##S(float *o, const float *x, int64_t n)       \
	{                                                                      \
		vec_##S a = {0}, b = a, c = a, d = a, e = a, f = a, g = a,     \
			h = a;                                                 \
                                                                               \
		for (int64_t i = 0; i < n; i += 8 * LANES_##S) {               \
			a += get_##S(x + i);                                   \
			b += get_##S(x + i + LANES_##S);                       \
			c += get_##S(x + i + 2 * LANES_##S);                   \
			d += get_##S(x + i + 3 * LANES_##S);                   \
			e += get_##S(x + i + 4 * LANES_##S);                   \
			f += get_##S(x + i + 5 * LANES_##S);                   \
			g += get_##S(x + i + 6 * LANES_##S);                   \
			h += get_##S(x + i + 7 * LANES_##S);                   \
		}                                                              \
		a += b + c + d + e + f + g + h;                                \
		USE(o, a);                                                     \
	}                                                                      \
	TARGET static void chain_##S(float *o, const float *x, int64_t n)      \
	{                                                                      \
		vec_##S a = {0};                                               \
                                                                               \
		for (int64_t i = 0; i < n; i += LANES_##S)                     \
			a += get_##S(x + i);                                   \
		USE(o, a);                                                     \
	}                                                                      \
	/* every second element: n of them */                                  \
	TARGET static void load_two_##S(float *o, const float *x, int64_t n)   \
	{                                                                      \
		vec_##S a = {0}, b = a;                                        \
                                                                               \
		for (int64_t i = 0; i < n; i += 2 * LANES_##S) {               \
			a += EVEN_##S(get_##S(x + 2 * i),                      \
				get_##S(x + 2 * i + LANES_##S));               \
			b += EVEN_##S(get_##S(x + 2 * i + 2 * LANES_##S),      \
				get_##S(x + 2 * i + 3 * LANES_##S));           \
		}                                                              \
		a += b;                                                        \
		USE(o, a);                                                     \
	}                                                                      \
	/* elements that are far apart, lane by lane */                        \
	TARGET static void load_far_##S(float *o, const float *x, int64_t n)   \
	{                                                                      \
		vec_##S a = {0};                                               \
                                                                               \
		for (int64_t i = 0; i < n; i += LANES_##S) {                   \
			vec_##S v = {0};                                       \
                                                                               \
			for (int l = 0; l < LANES_##S; l++)                    \
				v[l] = x[5 * (i + l) % (4 * NEAR)];            \
			a += v;                                                \
		}                                                              \
		USE(o, a);                                                     \
	}                                                                      \
	TARGET static void store_##S(float *o, const float *x, int64_t n)      \
	{                                                                      \
		vec_##S v = get_##S(x);                                        \
                                                                               \
		for (int64_t i = 0; i < n; i += LANES_##S) {                   \
			USE(o + i, v);                                         \
			STOP();                                                \
		}                                                              \
	}                                                                      \
	TARGET static void store_at_##S(float *o, const float *x, int64_t n,   \
		int64_t step)                                                  \
	{                                                                      \
		for (int64_t i = 0; i < n; i += LANES_##S) {                   \
			vec_##S v = get_##S(x + i);                            \
                                                                               \
			for (int l = 0; l < LANES_##S; l++)                    \
				o[step * (i + l) % (4 * NEAR)] = v[l];         \
		}                                                              \
	}                                                                      \
	TARGET static void store_two_##S(float *o, const float *x, int64_t n)  \
	{                                                                      \
		store_at_##S(o, x, n, 2);                                      \
	}                                                                      \
	TARGET static void store_far_##S(float *o, const float *x, int64_t n)  \
	{                                                                      \
		store_at_##S(o, x, n, 5);                                      \
	}                                                                      \
	/* as many cycles of loads as of arithmetic */                         \
	TARGET static void both_##S(float *o, const float *x, int64_t n)       \
	{                                                                      \
		for (int64_t i = 0; i < n; i += LANES_##S) {                   \
			vec_##S v = get_##S(x + i), s = v;                     \
                                                                               \
			for (int k = 0; k < OPS / 2; k++)                      \
				s = s * v +                                    \
					get_##S(x + (i + 16 * k) % NEAR);      \
			USE(o + i, s);                                         \
		}                                                              \
	}                                                                      \
	/* rows of 16 elements, whose length the compiler does not know */     \
	TARGET static void rows_##S(float *o, const float *x, int64_t n)       \
	{                                                                      \
		volatile int64_t length = 16;                                  \
		int64_t columns = length;                                      \
                                                                               \
		for (int64_t r = 0; r < n; r += columns) {                     \
			for (int64_t i = r; i < r + columns;                   \
				i += LANES_##S) {                              \
				vec_##S v = get_##S(x + i) * 1.5f;             \
                                                                               \
				USE(o + i, v);                                 \
			}                                                      \
			STOP();                                                \
		}                                                              \
	}                                                                      \
	/* 64 rows of 256 elements, column by column */                        \
	TARGET static void crowd_##S(float *o, const float *x, int64_t n)      \
	{                                                                      \
		vec_##S v = get_##S(x);                                        \
                                                                               \
		for (int64_t i = 0; i < n / 64; i += LANES_##S)                \
			for (int64_t r = 0; r < 64; r++) {                     \
				USE(o + 256 * r + i % 256, v);                 \
				STOP();                                        \
			}                                                      \
	}

/* The even lanes of two vectors. */
#if defined(__clang__)
#define EVEN_plain(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define EVEN_avx(a, b) \
	__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define EVEN_avx512(a, b)                                                  \
	__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18,   \
		20, 22, 24, 26, 28, 30)
#else
typedef int32_t lanes_plain __attribute__((vector_size(16)));
typedef int32_t lanes_avx __attribute__((vector_size(32)));
typedef int32_t lanes_avx512 __attribute__((vector_size(64)));
#define EVEN_plain(a, b) __builtin_shuffle(a, b, (lanes_plain){0, 2, 4, 6})
#define EVEN_avx(a, b) \
	__builtin_shuffle(a, b, (lanes_avx){0, 2, 4, 6, 8, 10, 12, 14})
#define EVEN_avx512(a, b)                                                  \
	__builtin_shuffle(a, b, (lanes_avx512){0, 2, 4, 6, 8, 10, 12, 14,  \
		16, 18, 20, 22, 24, 26, 28, 30})
#endif

#define ALL(S)                                                              \
	.scale = scale_##S, .poly = poly_##S, .load = load_##S,             \
	.load_two = load_two_##S, .load_far = load_far_##S,                 \
	.store = store_##S, .store_two = store_two_##S,                     \
	.store_far = store_far_##S, .chain = chain_##S, .both = both_##S,   \
	.rows = rows_##S, .crowd = crowd_##S,                               \
	.scalar_poly = scalar_poly, .scalar_load = scalar_load,             \
	.scalar_store = scalar_store, .window = window,                     \
	.guarded = guarded_window, .clock = clock_loop

#define NO_TARGET
LOOPS(plain, NO_TARGET, 16)

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,prefer-vector-width=512")))
LOOPS(avx, AVX, 32)
LOOPS(avx512, AVX512, 64)

/* Rows of 14 elements in vectors of 16 lanes; of 6 in those of 8. */
AVX512 static void load_part_avx512(float *o, const float *x, int64_t n)
{
	__m512 a = _mm512_setzero_ps(), b = a;

	for (int64_t i = 0; i + 2 * 16 <= n; i += 2 * 16) {
		const float *r = x + i / 16 * 14;

		a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(0x3fff, r));
		b = _mm512_add_ps(b, _mm512_maskz_loadu_ps(0x3fff, r + 14));
	}
	_mm512_storeu_ps(o, _mm512_add_ps(a, b));
}

AVX512 static void store_part_avx512(float *o, const float *x, int64_t n)
{
	__m512 v = _mm512_loadu_ps(x);

	for (int64_t i = 0; i < n; i += 16) {
		_mm512_mask_storeu_ps(o + i / 16 * 14, 0x3fff, v);
		STOP();
	}
}

AVX static void load_part_avx(float *o, const float *x, int64_t n)
{
	const __m256i m = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
	__m256 a = _mm256_setzero_ps(), b = a;

	for (int64_t i = 0; i + 2 * 8 <= n; i += 2 * 8) {
		const float *r = x + i / 8 * 6;

		a = _mm256_add_ps(a, _mm256_maskload_ps(r, m));
		b = _mm256_add_ps(b, _mm256_maskload_ps(r + 6, m));
	}
	_mm256_storeu_ps(o, _mm256_add_ps(a, b));
}

AVX static void store_part_avx(float *o, const float *x, int64_t n)
{
	const __m256i m = _mm256_setr_epi32(-1, -1, -1, -1, -1, -1, 0, 0);
	__m256 v = _mm256_loadu_ps(x);

	for (int64_t i = 0; i < n; i += 8) {
		_mm256_maskstore_ps(o + i / 8 * 6, m, v);
		STOP();
	}
}
#endif


/* ---- loops of one element ---- */

static void scalar_poly(float *o, const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		float s = x[i];

		for (int k = 0; k < OPS / 2; k++)
			s = s * x[i] + 0.25f;
		o[i] = s;
		STOP();
	}
}

static void scalar_load(float *o, const float *x, int64_t n)
{
	float a = 0, b = 0, c = 0, d = 0;

	for (int64_t i = 0; i + 4 <= n; i += 4) {
		a += x[i];
		b += x[i + 1];
		c += x[i + 2];
		d += x[i + 3];
		STOP();
	}
	*o = a + b + c + d;
}

static void scalar_store(float *o, const float *x, int64_t n)
{
	float v = *x;

	for (int64_t i = 0; i < n; i++) {
		o[i] = v;
		STOP();
	}
}

/* Sums of five neighbours; with a guard, those beyond the ends are left out. */
static void window(float *o, const float *x, int64_t n)
{
	for (int64_t i = 2; i < n - 2; i++) {
		float s = 0;

		for (int64_t k = -2; k <= 2; k++) {
			s += x[i + k];
			STOP();
		}
		o[i] = s;
	}
}

static void guarded_window(float *o, const float *x, int64_t n)
{
	for (int64_t i = 2; i < n - 2; i++) {
		float s = 0;

		for (int64_t k = -2; k <= 2; k++) {
			if (i + k >= 1 && i + k < n - 1)
				s += x[i + k];
			STOP();
		}
		o[i] = s;
	}
}

/* A chain of operations on an integer: one cycle each. */
static void clock_loop(float *o, const float *x, int64_t n)
{
	uint64_t a = (uint64_t)(uintptr_t)x, b = (uint64_t)(uintptr_t)o;

	__asm__ __volatile__("" : "+r"(a), "+r"(b));
#define NEXT()                                       \
	do {                                         \
		a ^= b;                              \
		__asm__ __volatile__("" : "+r"(a));  \
	} while (0)
	for (int64_t i = 0; i < n; i++) {
		NEXT();
		NEXT();
		NEXT();
		NEXT();
		NEXT();
		NEXT();
		NEXT();
		NEXT();
	}
#undef NEXT
	if (a == 1)
		*o = 0;
}

static const bench_loops all_loops[] = {
#if defined(__x86_64__)
	{64, "avx512f", ALL(avx512), .load_part = load_part_avx512,
		.store_part = store_part_avx512},
	{32, "avx2", ALL(avx), .load_part = load_part_avx,
		.store_part = store_part_avx},
#endif
	{16, NULL, ALL(plain)},
};

static bool cpu_has(const char *what)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (what != NULL && strcmp(what, "avx512f") == 0)
		return __builtin_cpu_supports("avx512f") != 0;
	if (what != NULL)
		return __builtin_cpu_supports("avx2") != 0;
#endif
	return what == NULL;
}

const bench_loops *bench_loops_of(int32_t vector_bytes)
{
	size_t n = sizeof all_loops / sizeof *all_loops;

	for (size_t i = 0; i < n; i++)
		if (cpu_has(all_loops[i].cpu) &&
			(all_loops[i].bytes <= vector_bytes || i + 1 == n))
			return &all_loops[i];
	return NULL;
}
