/*
 * tiles.c: prints products in tile registers, by the instructions of x86 that compute
 * them (AMX), else by plain C that gives the same bits.
 *
 *     int tile_rows = 0;                 at the beginning of a function
 *     tiles_bf16_bf16_2(&tile_rows, sums, 64, k == 0, x, 1024, y, 64, 32, 512);
 *     tiles_end(tile_rows);              and at its end
 *
 * Registers 0 to 3 have sums, of two times 16 rows by two times 16 columns; 4 and 5
 * rows, 6 and 7 columns. Their number of rows is set where it is another one than
 * before, and what a thread has of them is given back at the end of the function.
 */
#include "target/c/text.h"

#include <inttypes.h>

void c_open_tiles(printer *p)
{
	c_need(p, (struct need){.kind = NEED_TILES});
	c_line(p, "int tile_rows = 0;");
}

void c_close_tiles(printer *p)
{
	c_line(p, "tiles_end(tile_rows);");
}

void c_tiles(printer *p, const kern_stmt *s)
{
	tn_dtype x = p->k->array.at[s->at.array].dtype;
	tn_dtype y = p->k->array.at[s->from.array].dtype;
	int32_t vectors = s->width / KERN_TILE_LANES;

	c_need(p, (struct need){.kind = NEED_TILES, .of = x, .t = y, .lanes = vectors});
	c_line(p,
		"tiles_%s_%s_%d(&tile_rows, &%s, %" PRId64 ", %s, &%s, %" PRId64
		", &%s, %" PRId64 ", %d, %d);",
		dtype_name(x), dtype_name(y), vectors, c_element(p, &s->to), s->l,
		s->x == 0 ? "0" : c_taken(p, s->x), c_element(p, &s->at), s->n,
		c_element(p, &s->from), s->m, s->rows, s->terms);
}

/* ---- helpers ---- */

/* What all of them need. */
static const char start_text[] =
	"#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)\n"
	"#define TILE_REGISTERS 1\n"
	"#endif\n"
	"/* so many rows of sums and of the first factor; all rows of the other one */\n"
	"static __attribute__((noinline, unused)) void tiles_begin(int *now, int rows)\n{\n"
	"	*now = rows;\n"
	"#if defined(TILE_REGISTERS)\n"
	"	struct { u8 palette, first, zero[14]; __UINT16_TYPE__ bytes[16]; u8 rows[16]; } c = { .palette = 1 };\n"
	"	for (int i = 0; i < 8; i++) {\n"
	"		int all = i > 5 ? 16 : i == 2 || i == 3 || i == 5 ? rows - 16 : rows;\n"
	"		c.rows[i] = (u8)(all < 0 ? 0 : all < 16 ? all : 16);\n"
	"		c.bytes[i] = c.rows[i] > 0 ? 64 : 0;\n"
	"	}\n"
	"	__asm__ __volatile__(\"ldtilecfg %0\" : : \"m\"(c) : \"memory\");\n"
	"#endif\n}\n"
	"static inline void tiles_end(int rows)\n{\n"
	"#if defined(TILE_REGISTERS)\n"
	"	if (rows > 0)\n"
	"		__asm__ __volatile__(\"tilerelease\" : : : \"memory\");\n"
	"#endif\n"
	"	(void)rows;\n}\n";

/* The instruction that multiplies the dtypes. */
static const char *word_of(tn_dtype x, tn_dtype y)
{
	return x == TN_BF16 ? "tdpbf16ps"
	       : x == TN_I8 ? y == TN_I8 ? "tdpbssd" : "tdpbsud"
	       : y == TN_I8 ? "tdpbusd"
			    : "tdpbuud";
}

/* Loads or stores a register, of rows so many bytes apart. */
static void move(str *out, const char *indent, bool store, int32_t number,
	const char *at, const char *bytes)
{
	str_printf(out,
		store ? "%s__asm__ __volatile__(\"tilestored %%%%tmm%d, (%%0,%%1,1)\" : : \"r\"(%s), \"r\"(%s) : \"memory\");\n"
		      : "%s__asm__ __volatile__(\"tileloadd (%%0,%%1,1), %%%%tmm%d\" : : \"r\"(%s), \"r\"(%s) : \"memory\");\n",
		indent, number, at, bytes);
}

static void multiply(str *out, const char *word, int32_t y, int32_t x, int32_t sum)
{
	str_printf(out,
		"	__asm__ __volatile__(\"%s %%%%tmm%d, %%%%tmm%d, %%%%tmm%d\" : : : \"memory\");\n",
		word, y, x, sum);
}

/* One instruction for each register of sums: 16 groups. */
static void step_text(str *out, const char *name, const char *word, int32_t vectors)
{
	str_printf(out,
		"#if defined(TILE_REGISTERS)\n"
		"INLINE void step_%s(const char *x, i64 xb, const char *y, i64 yb, int low)\n{\n",
		name);
	move(out, "	", false, 6, "y", "yb");
	move(out, "	", false, 4, "x", "xb");
	multiply(out, word, 6, 4, 0);
	if (vectors > 1) {
		move(out, "	", false, 7, "y + 64", "yb");
		multiply(out, word, 7, 4, 1);
	}
	str_add(out, "	if (!low)\n		return;\n");
	move(out, "	", false, 5, "x + 16 * xb", "xb");
	multiply(out, word, 6, 5, 2);
	if (vectors > 1)
		multiply(out, word, 7, 5, 3);
	str_add(out, "}\n#endif\n");
}

/* Registers of the first 16 rows, and of those below, if there are some. */
static void move_sums(str *out, const char *indent, bool store, int32_t vectors)
{
	static const char *const at[] = {"z", "z + 64", "z + 16 * zb", "z + 16 * zb + 64"};

	for (int32_t i = 0; i < 4; i++) {
		if (i == 2)
			str_printf(out, "%sif (low) {\n", indent);
		if (i % 2 < vectors)
			move(out, arena_printf(out->a, "%s%s", indent, i > 1 ? "\t" : ""),
				store, i, at[i], "zb");
	}
	str_printf(out, "%s}\n", indent);
}

static void clear_sums(str *out, int32_t vectors)
{
	for (int32_t i = 0; i < 4; i++)
		if (i % 2 < vectors)
			str_printf(out,
				"		%s__asm__ __volatile__(\"tilezero %%%%tmm%d\" : : : \"memory\");\n",
				i > 1 ? "if (low)\n			" : "", i);
}

/* The terms behind the last 16 groups: with zeros behind them. */
static void rest_text(str *out, const char *name, int32_t size, int32_t each,
	int32_t vectors)
{
	int32_t row = KERN_TILE_BYTES * vectors;

	str_printf(out,
		"	if (terms > 0) {\n"
		"		char a[32 * 64], b[16 * %d];\n"
		"		__builtin_memset(a, 0, sizeof a);\n"
		"		__builtin_memset(b, 0, sizeof b);\n"
		"		for (int r = 0; r < rows; r++)\n"
		"			__builtin_memcpy(a + r * 64, x + r * xb, (__SIZE_TYPE__)terms * %d);\n"
		"		for (int g = 0; g * %d < terms; g++)\n"
		"			__builtin_memcpy(b + g * %d, y + g * yb, %d);\n",
		row, size, each, row, row);
	if (size > 1) /* 0 times what is not used may be NaN */
		str_printf(out,
			"		for (int c = 0; c < %d && terms %% 2 != 0; c++)\n"
			"			__builtin_memset(b + terms / 2 * %d + 4 * c + 2, 0, 2);\n",
			row / 4, row);
	str_printf(out,
		"		step_%s(a, 64, b, %d, low);\n"
		"	}\n",
		name, row);
}

static void fast_text(str *out, const char *name, int32_t size, int32_t each,
	int32_t vectors)
{
	str_printf(out,
		"#if defined(TILE_REGISTERS)\n"
		"	const char *x = px, *y = py;\n"
		"	char *z = pz;\n"
		"	const i64 xb = n * %d, yb = m * %d, zb = l * 4;\n"
		"	const int low = rows > 16;\n"
		"	if (*now != rows)\n"
		"		tiles_begin(now, rows);\n"
		"	if (begins) {\n",
		size, size);
	clear_sums(out, vectors);
	str_add(out, "	} else {\n");
	move_sums(out, "		", false, vectors);
	str_printf(out,
		"	}\n"
		"	for (; terms >= %d; terms -= %d, x += 64, y += 16 * yb)\n"
		"		step_%s(x, xb, y, yb, low);\n",
		16 * each, 16 * each, name);
	rest_text(out, name, size, each, vectors);
	move_sums(out, "	", true, vectors);
}

static void plain_text(str *out, tn_dtype x, tn_dtype y, int32_t each,
	int32_t vectors)
{
	bool floats = x == TN_BF16;

	str_printf(out,
		"#else\n"
		"	const %s *x = px;\n	const %s *y = py;\n"
		"	%s *z = pz;\n"
		"	(void)now;\n"
		"	for (int r = 0; r < rows; r++)\n"
		"		for (int c = 0; c < %d; c++) {\n"
		"			if (begins)\n"
		"				z[r * l + c] = 0;\n",
		floats ? "__UINT16_TYPE__" : dtype_name(x),
		floats ? "__UINT16_TYPE__" : dtype_name(y), floats ? "f32" : "i32",
		vectors * KERN_TILE_LANES);
	if (floats)
		str_add(out,
			"			for (i64 k = 0; k < terms; k += 32) {\n"
			"				f32 s[2] = { 0, 0 }, *to = z + r * l + c;\n"
			"				for (i64 i = k; i < k + 32 && i < terms; i++)\n"
			"					s[i % 2] = tile_flush(__builtin_fmaf(tile_f32(x[r * n + i]), tile_f32(y[i / 2 * m + 2 * c + i % 2]), s[i % 2]));\n"
			"				*to = tile_flush(tile_flush(*to) + tile_flush(s[0] + s[1]));\n"
			"			}\n");
	else
		str_printf(out,
			"			for (i64 k = 0; k < terms; k++)\n"
			"				z[r * l + c] += x[r * n + k] * y[k / %d * m + %d * c + k %% %d];\n",
			each, each, each);
	str_add(out, "		}\n#endif\n}\n");
}

static const char flush_text[] =
	"#if !defined(TILE_REGISTERS)\n"
	"INLINE f32 tile_flush(f32 x)\n{\n"
	"	return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;\n}\n"
	"INLINE f32 tile_f32(__UINT16_TYPE__ x)\n{\n"
	"	const __UINT32_TYPE__ w = (__UINT32_TYPE__)x << 16;\n"
	"	f32 f;\n"
	"	__builtin_memcpy(&f, &w, sizeof f);\n"
	"	return tile_flush(f);\n}\n"
	"#endif\n";

void c_tiles_text(str *out, c_math *m, const struct need *d)
{
	const char *name;
	int32_t each = kern_tile_terms(d->of, d->t);
	int32_t size = (int32_t)dtype_size(d->of);

	c_math_type(m, TN_I64, 1);
	c_math_type(m, TN_U8, 1);
	c_math_type(m, TN_F32, 1);
	c_math_type(m, TN_I32, 1);
	if (d->lanes == 0) {
		str_add(out, start_text);
		str_add(out, flush_text);
		return;
	}
	if (d->of != TN_BF16) {
		c_math_type(m, d->of, 1);
		c_math_type(m, d->t, 1);
	}
	name = arena_printf(out->a, "%s_%s_%d", dtype_name(d->of), dtype_name(d->t),
		d->lanes);
	step_text(out, name, word_of(d->of, d->t), d->lanes);
	str_printf(out,
		"static __attribute__((noinline, unused)) void tiles_%s(int *now, void *pz, i64 l, int begins,\n"
		"	const void *px, i64 n, const void *py, i64 m, int rows, i64 terms)\n{\n",
		name);
	fast_text(out, name, size, each, d->lanes);
	plain_text(out, d->of, d->t, each, d->lanes);
}
