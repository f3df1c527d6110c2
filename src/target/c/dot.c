/*
 * dot.c: prints helpers: sums of products of neighbours, by the instructions of x86 that
 * compute them (vdpbf16ps, vpdpwssd, vpdpbusd), else by plain C that gives the
 * same bits; and how lanes of their factors are arranged.
 *
 *     dot_u8i8_i32x16(x, y, z)     z[l] += the sum of x[4 l + i] * y[4 l + i]
 *     repeat_u8x4_u8x64(x)         x[0], x[1], x[2], x[3], x[0] ..
 *     zip_i8x32(x, y)              x[0], y[0], x[1] ..
 */
#include "target/c/text.h"

static void repeat_text(str *out, c_math *m, const struct need *d)
{
	const char *to = c_math_type(m, d->t, d->lanes);
	const char *from = c_math_type(m, d->t, d->other);
	int32_t bits = 8 * (int32_t)dtype_size(d->t) * d->other;

	str_printf(out, "INLINE %s repeat_%s_%s(%s x)\n{\n", to, from, to, from);
	if (bits == 32 || bits == 64) /* one element for all lanes */
		str_printf(out,
			"	typedef __INT%d_TYPE__ each __attribute__((vector_size(sizeof(%s))));\n"
			"	__INT%d_TYPE__ e;\n"
			"	__builtin_memcpy(&e, &x, sizeof e);\n"
			"	return (%s)(e - (each){ 0 });\n}\n",
			bits, to, bits, to);
	else
		str_printf(out,
			"	%s r;\n"
			"	for (int l = 0; l < %d; l++)\n"
			"		r[l] = x[l %% %d];\n"
			"	return r;\n}\n",
			to, d->lanes, d->other);
}

static void zip_text(str *out, c_math *m, const struct need *d)
{
	const char *to = c_math_type(m, d->t, d->lanes);
	const char *from = c_math_type(m, d->t, d->lanes / 2);

	str_printf(out,
		"INLINE %s zip_%s(%s x, %s y)\n{\n"
		"	return __builtin_shufflevector(x, y",
		to, to, from, from);
	for (int32_t l = 0; l < d->lanes; l++)
		str_printf(out, ", %d", l / 2 + l % 2 * (d->lanes / 2));
	str_add(out, ");\n}\n");
}

/* What the compiler must say for the instruction to be there. */
static const char *condition(arena *a, const char *of, int64_t bytes)
{
	return bytes == 64 ? arena_printf(a, "defined(__AVX512%s__)", of)
	       : bytes == 32 || bytes == 16
		       ? arena_printf(a,
				 "defined(__AVX512%s__) && defined(__AVX512VL__)",
				 of)
		       : "0";
}

static void dot_text(str *out, c_math *m, const struct need *d)
{
	static const struct {
		tn_dtype x, y;
		int32_t terms;
		const char *word, *of;
	} rows[] = {
		{TN_BF16, TN_BF16, 2, "vdpbf16ps", "BF16"},
		{TN_I16, TN_I16, 2, "vpdpwssd", "VNNI"},
		{TN_U8, TN_I8, 4, "vpdpbusd", "VNNI"},
	};
	const char *z = c_math_type(m, d->t, d->lanes);
	int32_t i = d->of == TN_BF16 ? 0 : d->of == TN_I16 ? 1 : 2;
	int32_t n = rows[i].terms;

	str_printf(out, "INLINE %s dot_%s_%s(%s x, %s y, %s z)\n{\n", z,
		dtype_name(d->of), z, c_math_type(m, rows[i].x, n * d->lanes),
		c_math_type(m, rows[i].y, n * d->lanes), z);
	str_printf(out,
		"#if %s\n"
		"	__asm__(\"%s %%2, %%1, %%0\" : \"+v\"(z) : \"v\"(x), \"v\"(y));\n"
		"#else\n",
		condition(out->a, rows[i].of,
			(int64_t)dtype_size(d->t) * d->lanes),
		rows[i].word);
	if (d->of == TN_BF16) /* the later one first; subnormal numbers are 0 */
		str_printf(out,
			"	for (int l = 0; l < %d; l++)\n"
			"		for (int i = 1; i >= 0; i--) {\n"
			"			__UINT32_TYPE__ w[2] = { (__UINT32_TYPE__)x[2 * l + i] << 16, (__UINT32_TYPE__)y[2 * l + i] << 16 };\n"
			"			f32 f[3];\n"
			"			__builtin_memcpy(f, w, sizeof w);\n"
			"			f[2] = z[l];\n"
			"			for (int j = 0; j < 3; j++)\n"
			"				f[j] = __builtin_fabsf(f[j]) < 0x1p-126f ? __builtin_copysignf(0, f[j]) : f[j];\n"
			"			f[2] = __builtin_fmaf(f[0], f[1], f[2]);\n"
			"			z[l] = __builtin_fabsf(f[2]) < 0x1p-126f ? __builtin_copysignf(0, f[2]) : f[2];\n"
			"		}\n",
			d->lanes);
	else
		str_printf(out,
			"	for (int l = 0; l < %d; l++)\n"
			"		for (int i = 0; i < %d; i++)\n"
			"			z[l] += x[%d * l + i] * y[%d * l + i];\n",
			d->lanes, n, n, n);
	str_add(out, "#endif\n	return z;\n}\n");
}

void c_dot_text(str *out, c_math *m, const struct need *d)
{
	switch (d->kind) {
	case NEED_DOT:
		dot_text(out, m, d);
		break;
	case NEED_REPEAT:
		repeat_text(out, m, d);
		break;
	case NEED_ZIP:
		zip_text(out, m, d);
		break;
	case NEED_TYPE:
	case NEED_UNSIGNED:
	case NEED_MATH:
	case NEED_INT:
	case NEED_FROM:
	case NEED_TURN:
	case NEED_TILES:
	case NEED_TEXT:
		break;
	}
}
