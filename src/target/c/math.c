/*
 * math.c: prints instances of the helper templates, each once, after those that it
 * needs.
 *
 * Consumes math_base.def, math_memory.def, math_int.def and math_fn.def; produces text such as
 *
 *     typedef float f32x16 __attribute__((vector_size(64)));
 *     INLINE f32x16 neg_f32x16(f32x16 x) { ... }
 *
 * The name of an instance consists of helper and lanes. If a template contains @name,
 * that instance is printed before it. Templates do not call each other in cycles, so
 * the recursion is as deep as the table.
 */
#include "target/c/math.h"

/* ---- lanes ----------------------------------------------------------- */

typedef enum elem {
	E_F32,
	E_F64,
	E_I8,
	E_I16,
	E_I32,
	E_I64,
	E_U8,
	E_U16,
	E_U32,
	E_U64,
	E_N
} elem;

struct c_math {
	arena *a;
	c_language language;
	bool used[C_N_WORDS];
	str text;
	const char *name[E_N][7]; /* of the log2 of lanes; NULL: not asked yet */
	map *done; /* names of types and functions that are in the text */
};

static const struct {
	const char *name;
	c_word c;
	int32_t bytes;
	const char *kind; /* letters, as in the .def files */
	elem mask, bits;
} elems[] = {
	[E_F32] = {"f32", C_WORD_F32, 4, "f", E_I32, E_U32},
	[E_F64] = {"f64", C_WORD_F64, 8, "d", E_I64, E_U64},
	[E_I8] = {"i8", C_WORD_I8, 1, "i", E_I8, E_U8},
	[E_I16] = {"i16", C_WORD_I16, 2, "i", E_I16, E_U16},
	[E_I32] = {"i32", C_WORD_I32, 4, "i", E_I32, E_U32},
	[E_I64] = {"i64", C_WORD_I64, 8, "i", E_I64, E_U64},
	[E_U8] = {"u8", C_WORD_U8, 1, "i", E_I8, E_U8},
	[E_U16] = {"u16", C_WORD_U16, 2, "hi", E_I16, E_U16},
	[E_U32] = {"u32", C_WORD_U32, 4, "i", E_I32, E_U32},
	[E_U64] = {"u64", C_WORD_U64, 8, "ui", E_I64, E_U64},
};

static elem elem_of(tn_dtype t)
{
	static const elem of[TN_N_DTYPES] = {
#define DTYPE(id, name, class, bits, wide, acc, lanes, ...)                    \
	[TN_##id] = E_##lanes,
#include "base/dtype.def"
#undef DTYPE
	};

	return of[t];
}

/* "f32x16", or "f32" for one lane */
static const char *lanes_name(c_math *m, elem e, int32_t lanes)
{
	const char **name = &m->name[e][__builtin_ctz((unsigned)lanes)];

	if (*name == NULL)
		*name = lanes == 1 ? elems[e].name
				   : arena_printf(m->a, "%sx%d",
					     elems[e].name, lanes);
	return *name;
}

static const char *need_type(c_math *m, elem e, int32_t lanes)
{
	const char *name = lanes_name(m, e, lanes);

	if (map_get_str(m->done, name, 0))
		return name;
	map_set_str(m->done, name, 1);
	if (lanes == 1)
		str_printf(&m->text, "typedef %s %s;\n",
			c_word_in(m->language, elems[e].c), name);
	else
		str_printf(&m->text,
			"typedef %s %s __attribute__((vector_size(%d)));\n",
			c_word_in(m->language, elems[e].c), name,
			elems[e].bytes * lanes);
	return name;
}

/* ---- the table ------------------------------------------------------- */

typedef struct template
{
	const char *name, *kinds, *vector, *scalar;
}
template;

#define SAME NULL
#define MATH(name, kinds, vector, scalar) {name, kinds, vector, scalar},
static const template table[] = {
#include "target/c/math_base.def"
#include "target/c/math_memory.def"
#include "target/c/math_int.def"
#include "target/c/math_fn.def"
};
#undef MATH

static const template *find(const char *name, size_t n, elem e)
{
	size_t i;

	for (i = 0; i < sizeof table / sizeof *table; i++)
		if (strlen(table[i].name) == n &&
			memcmp(table[i].name, name, n) == 0 &&
			strpbrk(table[i].kinds, elems[e].kind) != NULL)
			return &table[i];
	return NULL;
}

static const char *text_of(const template *t, int32_t lanes)
{
	return lanes == 1 && t->scalar ? t->scalar : t->vector;
}

/* ---- filling in ------------------------------------------------------ */

static const char *need(
	c_math *m, const char *name, size_t n, elem e, int32_t lanes);

static void add_type(c_math *m, str *out, elem e, int32_t lanes)
{
	str_add(out, need_type(m, e, lanes));
}

/* the text for the capital letter c */
static void add_letter(c_math *m, str *out, char c, const template *t,
	elem e, int32_t lanes)
{
	if (c == 'F')
		add_type(m, out, e, lanes);
	else if (c == 'E')
		add_type(m, out, e, 1);
	else if (c == 'I')
		add_type(m, out, elems[e].mask, lanes);
	else if (c == 'U')
		add_type(m, out, elems[e].bits, lanes);
	else if (c == 'H')
		add_type(m, out, E_U16, lanes);
	else if (c == 'K')
		add_type(m, out, E_U8, lanes);
	else if (c == 'G')
		add_type(m, out, E_I16, lanes);
	else if (c == 'J')
		add_type(m, out, E_I64, lanes);
	else if (c == 'W')
		add_type(m, out, E_U64, lanes);
	else if (c == 'L')
		str_printf(out, "%d", lanes);
	else if (c == 'B')
		str_printf(out, "%d", lanes * elems[e].bytes);
	else if (c == 'Q')
		str_add(out, e == E_F64 ? "52" : "23");
	else if (c == 'C')
		str_printf(out, "%s%s", t->name, e == E_F32 ? "f" : "");
	else
		env_bug(arena_env(m->a), "target/c/math", "letter %c in %s", c,
			t->name);
}

static bool word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* @name, @1.name, @i.name, @w.name; returns what follows */
static const char *add_call(
	c_math *m, str *out, const char *p, elem e, int32_t lanes)
{
	const char *name = p, *f;

	if (p[1] == '.') {
		if (p[0] == '1')
			lanes = 1;
		else
			e = p[0] == 'i' ? elems[e].mask : E_U64;
		name = p += 2;
	}
	while (word(*p))
		p++;
	f = need(m, name, (size_t)(p - name), e, lanes);
	if (!f)
		env_bug(arena_env(m->a), "target/c/math", "no helper %.*s for %s",
			(int)(p - name), name, elems[e].name);
	str_add(out, f);
	return p;
}

/* @<name>; returns what follows */
static const char *add_word(c_math *m, str *out, const char *p)
{
	const char *end = strchr(p, '>');
	c_word w = c_word_named(p, (size_t)(end - p));

	if (w == C_N_WORDS)
		env_bug(arena_env(m->a), "target/c/math", "no word %.*s",
			(int)(end - p), p);
	m->used[w] = true;
	str_add(out, c_word_in(m->language, w));
	return end + 1;
}

static const char *need(
	c_math *m, const char *name, size_t n, elem e, int32_t lanes)
{
	const template *t = find(name, n, e);
	const char *full, *p;
	str out;

	if (!t || !text_of(t, lanes))
		return NULL;
	out = str_new(m->a);
	str_add(&out, t->name);
	str_addc(&out, '_');
	str_add(&out, lanes_name(m, e, lanes));
	full = out.at;
	if (map_get_str(m->done, full, 0))
		return full;
	map_set_str(m->done, full, 1);
	out = str_new(m->a);
	for (p = text_of(t, lanes); *p;) {
		if (*p != '@') {
			str_addc(&out, *p++);
		} else if (p[1] == '<') {
			p = add_word(m, &out, p + 2);
		} else if (p[1] >= 'A' && p[1] <= 'Z') {
			add_letter(m, &out, p[1], t, e, lanes);
			p += 2;
		} else {
			p = add_call(m, &out, p + 1, e, lanes);
		}
	}
	str_addc(&m->text, '\n');
	str_addn(&m->text, out.at, out.n);
	return full;
}

/* ---- interface ------------------------------------------------------- */

c_math *c_math_new(arena *a)
{
	return c_math_new_as(a, true, C_GNU);
}

c_math *c_math_new_as(arena *a, bool fused, c_language l)
{
	c_math *m = arena_make(a, c_math);

	m->a = a;
	m->language = l;
	m->text = str_new(a);
	m->done = map_new(a);
	str_printf(&m->text, "#define INLINE static inline %s\n",
		c_word_in(l, C_WORD_ALWAYS));
	if (!fused) {
		str_add(&m->text, "#define FUSED 0\n");
		return m;
	}
	str_add(&m->text,
		"#if defined(__FMA__) || defined(__AVX512F__) || \\\n"
		"	defined(__FP_FAST_FMAF) || defined(__aarch64__)\n"
		"#define FUSED 1\n"
		"#else\n"
		"#define FUSED 0\n"
		"#endif\n");
	return m;
}

static void check_lanes(c_math *m, int32_t lanes)
{
	if (lanes < 1 || lanes > 64 || (lanes & (lanes - 1)))
		env_bug(arena_env(m->a), "target/c/math", "%d lanes", lanes);
}

const char *c_math_type(c_math *m, tn_dtype t, int32_t lanes)
{
	check_lanes(m, lanes);
	return need_type(m, elem_of(t), lanes);
}

const char *c_math_use(
	c_math *m, const char *name, tn_dtype t, int32_t lanes)
{
	check_lanes(m, lanes);
	return need(m, name, strlen(name), elem_of(t), lanes);
}

const char *c_math_text(const c_math *m)
{
	return m->text.at;
}

void c_math_head(str *out, const c_math *m)
{
	str_add(out, c_words_head(m->language));
	for (int32_t i = 0; i < C_N_WORDS; i++) {
		const char *d = c_word_declares(m->language, (c_word)i);

		if (m->used[i] && d != NULL)
			str_add(out, d);
	}
}
