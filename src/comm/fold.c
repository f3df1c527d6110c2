/*
 * fold.c: adds arrays by plain loops, for processes that add up partial results. A
 * chunk is in the cache of a core, where a loop is as fast as a kernel, and needs no
 * compilation. The bits are those of a kernel: one addition for each element.
 */
#include "comm/comm.h"
#include "notation/notation.h"

#define FOLD(name, type)                                                       \
	static void name(void *arg, int64_t n, void *far, const void *next)    \
	{                                                                      \
		type *restrict x = far;                                        \
		const type *restrict y = next;                                 \
                                                                               \
		(void)arg;                                                     \
		for (int64_t i = 0; i < n; i++)                                \
			x[i] += y[i];                                          \
	}

FOLD(fold_f32, float)
FOLD(fold_f64, double)

shard_combine *shard_fold(int32_t monoid, tn_dtype t)
{
	if (monoid != IR_SUM)
		return NULL;
	return t == TN_F32 ? fold_f32 : t == TN_F64 ? fold_f64 : NULL;
}
