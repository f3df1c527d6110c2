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
#define KERNEL(name) extern "C" __global__ void name
#define LD(element) (element)
#define ST(element, x) ((element) = (x))
#define SYNC() __syncwarp()
/* The first failure of the launch counts: of the least number. */
#define FAIL(err, n) fail((unsigned long long *)(err), (n))
static inline void fail(unsigned long long *err, unsigned long long n)
{
	atomicMin(err, n);
}
static inline int any_lane(int x)
{
	return __any_sync(0xffffffffu, x);
}
/* Byte l of four words. */
static inline int pick(int l, unsigned long long a, unsigned long long b,
	unsigned long long c, unsigned long long d)
{
	return (int)(((l < 16 ? l < 8 ? a : b : l < 24 ? c : d) >> 8 * (l & 7)) & 255);
}
/* x of lane l; and x of lane l, or y of lane l - n. */
#define SHUFFLES(name, type, as) \
	static inline type shfl_##name(type x, int l) \
	{ \
		return (type)__shfl_sync(0xffffffffu, (as)x, l); \
	} \
	static inline type both_##name(type x, type y, int l, int n) \
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
SHUFFLES(bool, int, int)
