/*
 * unit.c: prints a translation unit: the types and helpers that its kernels need,
 * each once, then the kernels, each text once.
 */
#include "target/c/text.h"

#include <inttypes.h>

/* Integers from floats: truncated, saturated to 64 bits, 0 for NaN; then wrapped. */
static void from_float(
	str *out, c_math *m, const struct need *d, c_language l)
{
	const char *most = c_word_in(l, C_WORD_MOST_I64);
	const char *to = c_math_type(m, d->of, 1);
	const char *from = c_math_type(m, d->t, 1), *tv, *fv;

	if (d->lanes == 1) {
		str_printf(out,
			"INLINE %s %s_from_%s(%s x)\n"
			"{\n"
			"	if (x != x)\n"
			"		return 0;\n"
			"%s"
			"	if (x >= 0x1p63f)\n"
			"		return (%s)%s;\n"
			"	if (x < -0x1p63f)\n"
			"		return (%s)(-%s - 1);\n"
			"	return (%s)(i64)x;\n"
			"}\n",
			to, to, from, from,
			d->of == TN_U64 ? "	if (x >= 0x1p64f)\n"
					  "		return ~(u64)0;\n"
					: "",
			to, d->of == TN_U64 ? "x" : most, to, most, to);
		return;
	}
	tv = c_math_type(m, d->of, d->lanes);
	fv = c_math_type(m, d->t, d->lanes);
	str_printf(out,
		"INLINE %s %s_from_%s(%s x)\n"
		"{\n"
		"	%s r = { 0 };\n"
		"	for (int l = 0; l < %d; l++)\n"
		"		r[l] = %s_from_%s(x[l]);\n"
		"	return r;\n"
		"}\n",
		tv, tv, from, fv, tv, d->lanes, to, from);
}

/*
 * A square of W x W: d[i * ds + j] = s[j * ss + i]. log2 W rounds; in each,
 * the first half of the rows is interleaved with the second.
 */
static void turn(str *out, c_math *math, const struct need *d)
{
	const char *lanes = c_math_type(math, d->t, d->lanes);
	const char *one = c_math_type(math, d->t, 1);
	int32_t w = d->lanes, round = 0;

	str_printf(out,
		"static inline void transpose_%s(%s *d, i64 ds, "
		"const %s *s, i64 ss)\n{\n",
		lanes, one, one);
	for (int32_t r = 0; r < w; r++)
		str_printf(out,
			"	const %s a0_%d = load_%s(s + %d * ss);\n",
			lanes, r, lanes, r);
	for (int32_t l = 1; l < w; l *= 2, round++)
		for (int32_t r = 0; r < w; r++) {
			str_printf(out,
				"	const %s a%d_%d = "
				"__builtin_shufflevector(a%d_%d, a%d_%d",
				lanes, round + 1, r, round, r / 2, round,
				r / 2 + w / 2);
			for (int32_t m = 0; m < w; m++)
				str_printf(out, ", %d",
					(m % 2) * w + m / 2 + (r % 2) * w / 2);
			str_add(out, ");\n");
		}
	for (int32_t r = 0; r < w; r++)
		str_printf(out, "	store_%s(d + %d * ds, a%d_%d);\n",
			lanes, r, round, r);
	str_add(out, "}\n");
}

static const struct int_helper {
	const char *name, *args, *value;
} int_helpers[] = {
	/* T: i64, or i32 in kernels whose indices are narrow */
	{"floor_div", "T a, T m", "a / m - (a % m < 0)"},
	{"clamp", "T a, T lo, T hi", "a < lo ? lo : a > hi ? hi : a"},
	{"later", "T a, T b", "a > b ? a : b"},
	{"sooner", "T a, T b", "a < b ? a : b"},
};

static const char *with_type(arena *a, const char *text, const char *type)
{
	str s = str_new(a);

	for (; *text != '\0'; text++)
		if (*text == 'T')
			str_add(&s, type);
		else
			str_addc(&s, *text);
	return s.at;
}

static void int_helper(str *out, const char *name, const char *type)
{
	bool plain = strcmp(name, "floor_div") == 0 && strcmp(type, "i64") == 0;

	for (size_t i = 0; i < sizeof int_helpers / sizeof *int_helpers; i++) {
		const struct int_helper *h = &int_helpers[i];

		if (strcmp(h->name, name) == 0)
			str_printf(out,
				"static inline %s %s%s%s(%s)\n"
				"{\n"
				"	return %s;\n"
				"}\n",
				type, name, plain ? "" : "_",
				plain ? "" : type,
				with_type(out->a, h->args, type), h->value);
	}
}

struct unit {
	c_math *m;
	c_language language;
	str more; /* text after the helpers of math.c */
	map *done;
};

/* The unsigned integers of the same size. */
static tn_dtype unsigned_of(tn_dtype t)
{
	static const tn_dtype of[] = {
		[1] = TN_U8, [2] = TN_U16, [4] = TN_U32, [8] = TN_U64};

	return of[dtype_size(t)];
}

static void add(struct unit *u, const struct need *d)
{
	struct need scalar = *d;

	if (!c_first(u->more.a, u->done, d))
		return;
	switch (d->kind) {
	case NEED_TYPE:
		c_math_type(u->m, d->t, d->lanes);
		break;
	case NEED_UNSIGNED:
		c_math_type(u->m, unsigned_of(d->t), d->lanes);
		break;
	case NEED_MATH:
		c_math_use(u->m, d->name, d->t, d->lanes);
		break;
	case NEED_INT:
		int_helper(&u->more, d->name, c_math_type(u->m, d->t, 1));
		break;
	case NEED_FROM:
		scalar.lanes = 1;
		if (d->lanes > 1)
			add(u, &scalar);
		from_float(&u->more, u->m, d, u->language);
		break;
	case NEED_TURN:
		turn(&u->more, u->m, d);
		break;
	case NEED_TILES:
		c_tiles_text(&u->more, u->m, d);
		break;
	case NEED_DOT:
	case NEED_REPEAT:
	case NEED_ZIP:
		c_dot_text(&u->more, u->m, d);
		break;
	case NEED_TEXT:
		str_add(&u->more, d->text);
		break;
	}
}

static void unit_as(str *out, const c_kernel *const *k, int32_t n, bool fused,
	c_language l)
{
	struct unit u = {c_math_new_as(out->a, fused, l), l, str_new(out->a),
		map_new(out->a)};
	map *functions = map_new(out->a);

	for (int32_t i = 0; i < n; i++) {
		const struct needs *ns = k[i]->needs;

		for (int32_t j = 0; j < ns->n; j++)
			add(&u, &ns->at[j]);
	}
	c_math_head(out, u.m);
	str_add(out, c_math_text(u.m));
	str_add(out, u.more.at == NULL ? "" : u.more.at);
	for (int32_t i = 0; i < n; i++) {
		const char *fn = k[i]->n_phases > 0 ? k[i]->phase[0].fn : "";

		if (k[i]->n_phases == 0 || map_get_str(functions, fn, 0) != 0)
			continue;
		map_set_str(functions, fn, 1);
		str_printf(out, "\n%s", k[i]->c);
	}
}

void c_unit(str *out, const c_kernel *const *k, int32_t n)
{
	unit_as(out, k, n, true, C_GNU);
}

static void unit_unfused(str *out, const c_kernel *const *k, int32_t n)
{
	unit_as(out, k, n, false, C_GNU);
}

static void unit_plain(str *out, const c_kernel *const *k, int32_t n)
{
	unit_as(out, k, n, false, C_PLAIN);
}

const c_target c_gnu = {"c", c_print, c_unit, NULL};
const c_target c_unfused = {"c", c_print, unit_unfused, NULL};
const c_target c_apart = {"c", c_print_apart, c_unit, NULL};
const c_target c_apart_unfused = {"c", c_print_apart, unit_unfused, NULL};
const c_target c_apart_plain = {"c", c_print_plain, unit_plain, NULL};
