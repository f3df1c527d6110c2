/*
 * unit.c: a translation unit: types and helpers that its kernels need, each
 * once, then the kernels, those of equal text once.
 */
#include "emit/local.h"

#include <inttypes.h>

/* A type that a helper's own text names: "i32". */
static tn_dtype declare(
	str *out, emit_math *m, const char *name, int32_t n)
{
	tn_dtype t;

	if (!dtype_parse(name, (size_t)n, &t))
		env_bug(arena_env(out->a), "emit", "no type %s", name);
	emit_math_type(m, t, 1);
	return t;
}

/* Whole numbers from floats: towards 0, the ends for what is outside, 0 for
 * NaN; then wrapped. */
static void from_float(str *out, emit_math *m, const char *name)
{
	const char *to = name, *from = strstr(name, "_from_");
	int32_t n = (int32_t)(from - name);

	from += 6;
	declare(out, m, to, n);
	declare(out, m, from, (int32_t)strlen(from));
	str_printf(out,
		"static inline __attribute__((unused)) %.*s %s(%s x)\n"
		"{\n"
		"	if (x != x)\n"
		"		return 0;\n"
		"	if (x >= 0x1p63f)\n"
		"		return (%.*s)__INT64_MAX__;\n"
		"	if (x < -0x1p63f)\n"
		"		return (%.*s)(-__INT64_MAX__ - 1);\n"
		"	return (%.*s)(i64)x;\n"
		"}\n",
		n, to, name, from, n, to, n, to, n, to);
}

/*
 * A square of W x W: d[i * ds + j] = s[j * ss + i]. log2 W rounds; in each,
 * the first half of the rows is interleaved with the second.
 */
static void transpose(str *out, emit_math *math, const char *lanes)
{
	const char *x = strchr(lanes, 'x');
	int32_t n = (int32_t)(x - lanes), w = 0, r, m, l, round = 0;
	tn_dtype t = declare(out, math, lanes, n);

	for (x++; *x != '\0'; x++)
		w = 10 * w + (*x - '0');
	emit_math_use(math, "load", t, w);
	emit_math_use(math, "store", t, w);
	str_printf(out,
		"static inline void transpose_%s(%.*s *d, i64 ds, "
		"const %.*s *s, i64 ss)\n{\n",
		lanes, n, lanes, n, lanes);
	for (r = 0; r < w; r++)
		str_printf(out,
			"	const %s a0_%d = load_%s(s + %d * ss);\n",
			lanes, r, lanes, r);
	for (l = 1; l < w; l *= 2, round++)
		for (r = 0; r < w; r++) {
			str_printf(out,
				"	const %s a%d_%d = "
				"__builtin_shufflevector(a%d_%d, a%d_%d",
				lanes, round + 1, r, round, r / 2, round,
				r / 2 + w / 2);
			for (m = 0; m < w; m++)
				str_printf(out, ", %d",
					(m % 2) * w + m / 2 + (r % 2) * w / 2);
			str_add(out, ");\n");
		}
	for (r = 0; r < w; r++)
		str_printf(out, "	store_%s(d + %d * ds, a%d_%d);\n",
			lanes, r, round, r);
	str_add(out, "}\n");
}

/* What it stands on is asked for here, so that nobody can forget to. */
static void own_text(str *out, emit_math *m, const char *name)
{
	emit_math_type(m, TN_I64, 1);
	if (strcmp(name, "floor_div") == 0)
		str_add(out, "static inline i64 floor_div(i64 a, i64 m)\n"
			     "{\n"
			     "	return a / m - (a % m < 0);\n"
			     "}\n");
	else if (strcmp(name, "clamp_i64") == 0)
		str_add(out,
			"static inline i64 clamp_i64(i64 a, i64 lo, i64 hi)\n"
			"{\n"
			"	return a < lo ? lo : a > hi ? hi : a;\n"
			"}\n");
	else if (strcmp(name, "later_i64") == 0)
		str_add(out, "static inline i64 later_i64(i64 a, i64 b)\n"
			     "{\n"
			     "	return a > b ? a : b;\n"
			     "}\n");
	else if (strcmp(name, "sooner_i64") == 0)
		str_add(out, "static inline i64 sooner_i64(i64 a, i64 b)\n"
			     "{\n"
			     "	return a < b ? a : b;\n"
			     "}\n");
	else if (strncmp(name, "transpose_", 10) == 0)
		transpose(out, m, name + 10);
	else
		from_float(out, m, name);
}

void emit_unit(str *out, const emit_kernel *const *k, int32_t n)
{
	arena *a = out->a;
	emit_math *m = emit_math_new(a);
	str more = str_new(a);
	map *done = map_new(a);
	int32_t i, j;

	for (i = 0; i < n; i++) {
		const struct needs *ns = k[i]->needs;

		for (j = 0; ns != NULL && j < ns->n; j++) {
			const struct need *d = &ns->at[j];
			const char *name = d->name;

			if (name == NULL) {
				emit_math_type(m, d->t, d->lanes);
			} else if (name[0] == '#') {
				int32_t b = (int32_t)dtype_size(d->t);
				const char *t = arena_printf(
					a, "u%dx%d", 8 * b, d->lanes);

				if (map_get_str(done, t, 0) == 0)
					str_printf(&more,
						"typedef __UINT%d_TYPE__ %s "
						"__attribute__((vector_size("
						"%d)));\n",
						8 * b, t, b * d->lanes);
				map_set_str(done, t, 1);
			} else if (name[0] == '@') {
				if (map_get_str(done, name, 0) == 0)
					own_text(&more, m, name + 1);
				map_set_str(done, name, 1);
			} else {
				emit_math_use(m, name, d->t, d->lanes);
			}
		}
	}
	str_add(out, emit_math_text(m));
	str_add(out, more.at == NULL ? "" : more.at);
	for (i = 0; i < n; i++) {
		const char *fn = k[i]->n_phases > 0 ? k[i]->phase[0].fn : "";

		if (k[i]->n_phases == 0 || map_get_str(done, fn, 0) != 0)
			continue;
		map_set_str(done, fn, 1);
		str_printf(out, "\n%s", k[i]->c);
	}
}
