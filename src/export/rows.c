/*
 * rows.c: rows without equations, such as sort: the C of their functions.
 *
 *     static void run_sort(const row_call *j) { .. }
 *
 * The functions are those of the library (notation/opaque.c). Of what they might
 * call, the text has what they do call.
 */
#include "export/templates.h"

#include <inttypes.h>

static const ir_opaque *row_of(const plan_launch *l)
{
	return l->code == NULL && l->eqn->opaque->text != NULL
		? l->eqn->opaque
		: NULL;
}

/* ---- types of elements ---- */

static const struct kind {
	const char *name;
	char kind;
	int32_t bits;
} kinds[] = {
#define DTYPE(id, name, class, bits, ...) [TN_##id] = {name, class, bits},
#include "base/dtype.def"
#undef DTYPE
};

static const struct small {
	int32_t sign, digits, bias, most, nan, inf;
	char has;
} smalls[TN_N_DTYPES] = {
	[TN_F16] = {0x8000, 10, 15, 0x7bff, 0x7e00, 0x7c00, 'i'},
	[TN_BF16] = {0x8000, 7, 127, 0x7f7f, 0x7fc0, 0x7f80, 'i'},
#define SMALL_FLOAT(id, name, sign, digits, bias, most, nan, has)              \
	[TN_##id] = {sign, digits, bias, most, nan, most, has},
#include "base/dtype.def"
#undef SMALL_FLOAT
};

static void put_kinds(str *out)
{
	str_add(out,
		"/* Types of elements. Floats of 16 or fewer bits: the bit of "
		"the sign, digits of the\n"
		" * fraction, the pattern of the greatest number, what NaN and "
		"what is too large become. */\n"
		"static const struct row_kind {\n"
		"	char kind; /* float, integer, unsigned, bool */\n"
		"	int bits;\n"
		"	int32_t sign, digits, bias, most, nan, inf;\n"
		"	char has; /* i: infinity; z: NaN is -0 */\n"
		"} row_kinds[] = {\n");
	for (int32_t t = 0; t < TN_N_DTYPES; t++) {
		const struct small *s = &smalls[t];

		str_printf(out,
			"	{ '%c', %d, 0x%x, %d, %d, 0x%x, 0x%x, 0x%x, "
			"'%c' }, /* %d: %s */\n",
			kinds[t].kind, (int)kinds[t].bits, (unsigned)s->sign,
			(int)s->digits, (int)s->bias, (unsigned)s->most,
			(unsigned)s->nan, (unsigned)s->inf,
			s->has != '\0' ? s->has : '-', (int)t, kinds[t].name);
	}
	str_add(out, "};\n");
}

/* ---- functions ---- */

/* Part of a text at the outermost level: a function, a type, a comment. */
typedef struct chunk {
	const char *text;
	const char *name; /* of a function; NULL: always there */
} chunk;

typedef VEC(chunk) chunks;

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || c == '_';
}

/* The function that a text defines. */
static const char *defined(arena *a, const char *text)
{
	const char *s = strstr(text, "\nstatic "), *end;

	if (strncmp(text, "static ", 7) == 0)
		s = text;
	end = s != NULL ? strchr(s, '(') : NULL;
	if (end == NULL || memchr(s, '{', (size_t)(end - s)) != NULL)
		return NULL;
	for (s = end; is_word(s[-1]);)
		s--;
	return arena_strndup(a, s, (size_t)(end - s));
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = text; (s = strstr(s, word)) != NULL; s += n)
		if (!is_word(s[n]) && (s == text || !is_word(s[-1])))
			return true;
	return false;
}

/* A line of one brace, or of one that ends a declaration, ends a chunk. */
static void split(arena *a, const char *const *lines, chunks *to)
{
	str s = str_new(a);

	for (; *lines != NULL; lines++) {
		const char *line = *lines;

		str_add(&s, line);
		if (line[0] != '}' && lines[1] != NULL)
			continue;
		*vec_push(a, to) = (chunk){s.at, defined(a, s.at)};
		s = str_new(a);
	}
}

/* Adds a text once. */
static void add_text(arena *a, map *seen, const char *const *lines, chunks *to)
{
	const char *key = arena_printf(a, "%p", (const void *)lines);

	if (map_get_str(seen, key, 0) != 0)
		return;
	map_set_str(seen, key, 1);
	split(a, lines, to);
}

static bool is_called(const chunks *c, const bool *kept, int32_t i)
{
	const char *name = c->at[i].name;

	if (name == NULL || strncmp(name, "run_", 4) == 0)
		return true;
	for (int32_t k = i + 1; k < c->n; k++)
		if (kept[k] && has_word(c->at[k].text, name))
			return true;
	return false;
}

/* Functions stand before those that call them. */
static void put_called(str *out, const chunks *c)
{
	bool *kept = arena_array(out->a, bool, c->n + 1);

	for (int32_t i = c->n - 1; i >= 0; i--)
		kept[i] = is_called(c, kept, i);
	for (int32_t i = 0; i < c->n; i++)
		if (kept[i])
			str_add(out, c->at[i].text);
}

void export_rows(str *out, export_net *x)
{
	chunks c = {0};
	map *seen = map_new(x->a);

	for (int32_t i = 0; i < x->plan.n; i++)
		for (int32_t j = 0; j < x->plan.at[i]->p->launch.n; j++) {
			const ir_opaque *row =
				row_of(&x->plan.at[i]->p->launch.at[j]);

			if (row == NULL)
				continue;
			if (c.n == 0)
				add_text(x->a, seen, export_rows_c, &c);
			for (int32_t k = 0; row->text[k] != NULL; k++)
				add_text(x->a, seen, row->text[k], &c);
		}
	if (c.n == 0)
		return;
	str_add(out, "\n");
	put_kinds(out);
	put_called(out, &c);
}

/* ---- types ---- */

void export_row_types(const xplan *n, const plan_launch *l, ir_type *in,
	ir_type *out)
{
	for (int32_t k = 0; k < l->eqn->n_out + l->eqn->n_opaque_in; k++) {
		bool is_out = k < l->eqn->n_out;
		int32_t number = is_out
			? l->eqn->out[k]
			: l->eqn->opaque_in[k - l->eqn->n_out];
		const sys_tensor *t = &n->p->s->tensor.at[number];
		ir_type *y = is_out ? &out[k] : &in[k - l->eqn->n_out];

		y->dtype = t->dtype;
		y->rank = t->rank;
		memcpy(y->shape, t->shape,
			(size_t)t->rank * sizeof t->shape[0]);
	}
}

size_t export_row_room(arena *a, const xplan *n, const plan_launch *l)
{
	const ir_opaque *row = row_of(l);
	ir_type *in = arena_array(a, ir_type, l->eqn->n_opaque_in + 1);
	ir_type *out = arena_array(a, ir_type, l->eqn->n_out + 1);

	export_row_types(n, l, in, out);
	return row->room(in, out, l->eqn->opaque_attr);
}
