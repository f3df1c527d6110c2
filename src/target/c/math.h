/*
 * math.h: arithmetic helpers for generated C, as text.
 *
 * Consumes the name of a helper, a dtype and a number of lanes; produces the
 * C text of that helper and of all helpers that it calls, each printed once,
 * before the kernels that call it. One template gives the scalar and the vector
 * form, and on one target both give the same bits, so that a loop over
 * vectors and its scalar tail agree.
 *
 *     c_math *m = c_math_new(a);
 *     const char *f = c_math_use(m, "exp", TN_F32, 16);  "exp_f32x16"
 *     const char *g = c_math_use(m, "exp", TN_F32, 1);   "exp_f32"
 *     const char *v = c_math_type(m, TN_F32, 16);        "f32x16"
 *     str_add(&file, c_math_text(m));                    then the kernels
 *
 * Types. Lanes of a dtype are called f32x16, i64x8 ...; one lane is f32, i64.
 * f16, bf16 and bool lanes hold their storage: u16x16, u16x16, u8x16.
 * A condition is a mask: 0 or -1 in signed integer lanes as wide as the
 * operands (i32x16 for f32x16). A vector comparison a < b is one already; a
 * scalar comparison is 0 or 1: use lt, le, eq, ne, gt, ge for both.
 *
 * Lanes are 1, 2, 4, 8, 16, 32 or 64. The emitter takes them from the target:
 * vectors wider than the machine's are right but very slow.
 *
 * The text needs -ffp-contract=off: whatever is fused is fused by `mad`.
 *
 * Helpers (T any number, F floating, M mask, B f16/bf16 storage):
 *
 *   splat(t)T        one value in all lanes     sel(M,T,T)T     M ? a : b
 *   lt le eq ne gt ge (T,T)M                    any(M)int       some lane set
 *   load(p)T store(p,T)  any alignment; stream(p,T) aligned to the vector's
 *                    size and past the caches where the machine can
 *   bits(F)I  frombits(I)F  toint(F)I  fromint(I)F   (toint truncates)
 *   mad(a,b,c)F      a*b+c, rounded once where the machine has it
 *   min max (T,T)T   NaN if one is NaN          abs sign relu (T)T
 *   below above (F,F)F   a < b ? a : b, a > b ? a : b; b if one is NaN
 *   div fmod mod pow (T,T)T  shl shr (integers) as in notation/scalar.def
 *   sum prod hmax hmin (T)scalar   over lanes, pairwise, in a fixed order
 *   sqrt rsqrt floor ceil trunc round(ties to even)
 *   exp log tanh erf sin cos expm1 log1p sigmoid softplus (F)F
 *   tan asin acos atan sinh cosh asinh acosh atanh (F)F   libm, lane by lane
 *   atan2 (and fmod) (F,F)F                               libm, lane by lane
 *   isnan isinf (F)M
 *   A mask of one lane may also be 1, as from a < b, where sel takes it.
 *   f32_from_f16 f32_from_bf16 (u16 lanes)f32 lanes,
 *   f16_from_f32 bf16_from_f32 (f32 lanes)u16 lanes: ask with TN_F32
 *   u01(i64 lanes key, i64 lanes counter)f32 lanes: ask with TN_F32
 *
 * f32 helpers are at most 2 ULP off (expm1, log1p, sigmoid, softplus, pow: 4) on
 * every input: docs/math.md. The f64 ones are libm's.
 */
#ifndef TARGET_C_MATH_H
#define TARGET_C_MATH_H

#include "target/c/words.h"

typedef struct c_math c_math;

c_math *c_math_new(arena *a);
/*
 * The same; `mad` rounds the product and the sum on every machine, if not fused. In
 * C99 there are helpers of one lane only.
 */
c_math *c_math_new_as(arena *a, bool fused, c_language l);

/* "f32x16": the lanes of a dtype; its typedef is in the text from now on. */
const char *c_math_type(c_math *m, tn_dtype t, int32_t lanes);

/*
 * The C function that computes `name` on such lanes, now in the text with all
 * it needs; NULL when there is none of that name for the dtype.
 */
const char *c_math_use(
	c_math *m, const char *name, tn_dtype t, int32_t lanes);

/* Everything asked for so far, in order of dependence. */
const char *c_math_text(const c_math *m);
/* What the file must begin with, for that. */
void c_math_head(str *out, const c_math *m);

#endif
