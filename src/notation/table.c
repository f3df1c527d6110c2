/*
 * table.c: the table of rows: ops.def, the scalar functions as rows, the
 * variadic rows, and those that a user defines.
 *
 * The table is a list of names and texts; a row is parsed when it is first
 * used. A row of ops.def hides a scalar function of the same name.
 *
 *     ir_table_find(t, "exp")
 *     exp(x[~i..]:float) -> o { o[i..] = exp(x[i..]) }
 */
#include "notation/row.h"

typedef struct entry {
	const char *name, *text, *doc;
	const row_builder *builder;
	ir_row *row; /* NULL: not parsed yet */
} entry;

struct ir_table {
	arena *a;
	map *name;
	VEC(entry) entry;
	struct built *built; /* rows that were built for calls */
};

struct built {
	map *text;
	VEC(ir_row *) row;
};

static const struct {
	const char *doc, *text;
} ops[] = {
#define ROW(doc, text) {doc, text},
#include "notation/ops.def"
#undef ROW
};

/* The name in "opaque NAME(...". */
static const char *name_of(arena *a, const char *text)
{
	const char *end = strchr(text, '('), *from = text;

	if (strncmp(text, "opaque ", 7) == 0)
		from += 7;
	return arena_strndup(a, from, (size_t)(end - from));
}

static void add(ir_table *t, entry e)
{
	map_set_str(t->name, e.name, t->entry.n);
	*vec_push(t->a, &t->entry) = e;
}

static const char *class_of(char letter)
{
	switch (letter) {
	case 'F':
		return ":float";
	case 'N':
		return ":num";
	case 'I':
		return ":int";
	case 'B':
		return ":bool";
	default: /* O, T: any dtype */
		return "";
	}
}

static const char *scalar_text(arena *a, const ir_scalar *s)
{
	str text = str_new(a);

	str_printf(&text, "%s(", s->name);
	for (int32_t i = 0; i < s->n_args; i++)
		str_printf(&text, "%s%c[~i..]%s", i > 0 ? ", " : "", 'x' + i,
			class_of(s->sig[2 * i]));
	str_printf(&text, ") -> o { o[i..] = %s(", s->name);
	for (int32_t i = 0; i < s->n_args; i++)
		str_printf(&text, "%s%c[i..]", i > 0 ? ", " : "", 'x' + i);
	str_add(&text, ") }");
	return text.at;
}

ir_table *ir_table_new(arena *a)
{
	ir_table *t = arena_make(a, ir_table);
	const row_builder *b;

	t->a = a;
	t->name = map_new(a);
	t->built = arena_make(a, struct built);
	t->built->text = map_new(a);
	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		add(t, (entry){.name = name_of(a, ops[i].text),
			       .text = ops[i].text,
			       .doc = ops[i].doc});
	for (int32_t i = 0; (b = row_builder_at(i)) != NULL; i++)
		add(t, (entry){.name = b->name,
			       .text = b->text,
			       .doc = b->doc,
			       .builder = b});
	for (int32_t i = 0; i < ir_scalar_n(); i++) {
		const ir_scalar *s = ir_scalar_at(i);

		if (map_get_str(t->name, s->name, -1) < 0)
			add(t, (entry){.name = s->name, .doc = s->doc});
	}
	return t;
}

int32_t ir_table_n(const ir_table *t)
{
	return t->entry.n;
}

const ir_row *ir_table_at(const ir_table *t, int32_t i)
{
	entry *e = &t->entry.at[i];

	if (e->row != NULL)
		return e->row;
	if (e->text == NULL)
		e->text = scalar_text(t->a,
			ir_scalar_at(ir_scalar_find(e->name, strlen(e->name))));
	e->row = row_parse(t->a, e->text, strlen(e->text), (loc){0});
	e->row->doc = e->doc;
	e->row->builder = e->builder;
	return e->row;
}

bool ir_table_is_user(const ir_table *t, int32_t i)
{
	const ir_row *r = t->entry.at[i].row;

	/* the user's rows are parsed when they are defined */
	return r != NULL && r->is_user;
}

const ir_row *ir_table_find(const ir_table *t, const char *name)
{
	int64_t i = map_get_str(t->name, name, -1);

	return i < 0 ? NULL : ir_table_at(t, (int32_t)i);
}

const ir_row *ir_table_define(ir_table *t, const char *text, size_t n, loc at)
{
	ir_row *r = row_parse(t->a, text, n, at);

	if (map_get_str(t->name, r->name, -1) >= 0)
		lex_fail(r->l, &r->l->token[0], "name",
			"there is an operation %s already", r->name);
	if (r->is_opaque && ir_opaque_find(r->name) == NULL)
		lex_fail(r->l, &r->l->token[0], "opaque",
			"an opaque operation needs a function of the library, "
			"and there is none for %s",
			r->name);
	for (int32_t i = 0; i < r->n_params; i++)
		if (!r->param[i].info.is_operand &&
			strcmp(r->param[i].info.kind, "string") == 0)
			lex_fail(r->l, r->param[i].at, "kind",
				"the kind string exists only for rows that "
				"are built, such as einsum");
	r->is_user = true;
	add(t, (entry){.name = r->name, .text = r->text, .doc = "", .row = r});
	return r;
}

const ir_row *row_built(const ir_table *t, const ir_row *r, int32_t n,
	const ir_type *operand, const char *const *shown, int32_t n_attrs,
	const ir_attr *attr, loc at)
{
	str text = str_new(t->a);
	struct built *b = t->built;
	int64_t found;
	ir_row *made;

	r->builder->build(
		&text, r->name, n, operand, shown, n_attrs, attr, at);
	found = map_get(b->text, text.at, text.n, -1);
	if (found >= 0)
		return b->row.at[found];
	made = row_parse(t->a, text.at, text.n, (loc){0});
	made->doc = r->doc;
	map_set(b->text, text.at, text.n, b->row.n);
	*vec_push(t->a, &b->row) = made;
	return made;
}

const char *ir_row_name(const ir_row *r)
{
	return r->name;
}

const char *ir_row_text(const ir_row *r)
{
	return r->text;
}

const char *ir_row_doc(const ir_row *r)
{
	return r->doc;
}

bool ir_row_has_grad(const ir_row *r)
{
	return r->has_grad;
}

bool ir_row_is_user(const ir_row *r)
{
	return r->is_user;
}

int32_t ir_row_n_params(const ir_row *r)
{
	return r->n_params;
}

const ir_param *ir_row_param(const ir_row *r, int32_t i)
{
	return &r->param[i].info;
}

bool ir_row_is_variadic(const ir_row *r)
{
	return r->builder != NULL && r->builder->is_variadic;
}

const ir_row *ir_row_join(const ir_table *t, const ir_row *r)
{
	return r->builder != NULL && r->builder->join != NULL
		? ir_table_find(t, r->builder->join)
		: NULL;
}

int32_t ir_row_n_results(const ir_row *r)
{
	return r->builder != NULL ? r->builder->n_results : r->n_results;
}

int32_t ir_row_count_results(const ir_row *r, const ir_type *operand,
	int32_t n_attrs, const ir_attr *attr)
{
	int64_t n = ir_row_n_results(r);

	if (n < 0)
		n = r->builder->count(operand, n_attrs, attr);
	return n < 1 ? 1 : n > IR_MAX_PIECES ? IR_MAX_PIECES : (int32_t)n;
}

/* ---- rows outside of the table ---- */

const ir_row *ir_row_make(arena *a, const char *text, size_t n, loc at)
{
	ir_row *r = row_parse(a, text, n, at);

	row_check(r);
	return r;
}

const ir_row *ir_row_named(arena *a, const char *name)
{
	ir_row *r = arena_make(a, ir_row);

	r->name = name;
	r->doc = r->text = "";
	return r;
}
