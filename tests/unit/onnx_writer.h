/*
 * onnx_writer.h: models as bytes, from a text of statements that end with ";":
 *
 *     opset 13;  opset 1 my.domain;
 *     in x float [2,N];  in s seq(float) [2];      out y;
 *     init w float [3] 1 2 3;
 *     node Gemm x w > y : transB=1 alpha=0.5 axes=[0,1] mode="edge";
 *
 * A graph as an attribute stands in braces: body={ in i int64 []; ... out o; }
 * A tensor stands in parentheses: value=(v float [2] 1 2)
 * Elements are written raw; `typed` instead of `init` writes the schema's lists,
 * and `outside` writes pairs that say where in a file they are:
 *
 *     outside w float [3] location=w.bin offset=8 length=12;
 *
 * What is written here is what is not yet exported: the tests' own.
 */
#ifndef ONNX_WRITER_H
#define ONNX_WRITER_H

#include "base/base.h"

#include <stdlib.h>

typedef struct pb {
	str s;
} pb;

static inline pb pb_new(arena *a)
{
	return (pb){str_new(a)};
}

static inline void pb_varint(pb *w, uint64_t v)
{
	while (v >= 0x80) {
		str_addc(&w->s, (char)(v | 0x80));
		v >>= 7;
	}
	str_addc(&w->s, (char)v);
}

static inline void pb_int(pb *w, uint32_t field, int64_t v)
{
	pb_varint(w, field << 3);
	pb_varint(w, (uint64_t)v);
}

static inline void pb_bytes(pb *w, uint32_t field, const void *data, size_t n)
{
	pb_varint(w, field << 3 | 2);
	pb_varint(w, n);
	str_addn(&w->s, data, n);
}

static inline void pb_text(pb *w, uint32_t field, const char *text)
{
	pb_bytes(w, field, text, strlen(text));
}

static inline void pb_part(pb *w, uint32_t field, const pb *part)
{
	pb_bytes(w, field, part->s.at, part->s.n);
}

static inline void pb_float(pb *w, uint32_t field, float v)
{
	pb_varint(w, field << 3 | 5);
	str_addn(&w->s, (const char *)&v, sizeof v);
}

/* ---- the text ---- */

typedef struct mk {
	arena *a;
	const char *s; /* any text: what is no statement becomes some model */
	int32_t depth;
} mk;

static inline void mk_blank(mk *m)
{
	while (*m->s == ' ' || *m->s == '\n' || *m->s == '\t')
		m->s++;
}

static inline bool mk_is(mk *m, const char *word)
{
	size_t n = strlen(word);

	mk_blank(m);
	if (strncmp(m->s, word, n) != 0)
		return false;
	m->s += n;
	return true;
}

static inline const char *mk_word(mk *m)
{
	const char *from;

	mk_blank(m);
	from = m->s;
	while (*m->s != '\0' && strchr(" \n\t;:=>[]{}\",", *m->s) == NULL)
		m->s++;
	if (m->s == from && *m->s != '\0')
		m->s++; /* goes on, whatever it is */
	return arena_strndup(m->a, from, (size_t)(m->s - from));
}

/* The types of base/dtype.def, and those that a tensor cannot hold. */
static const struct mk_type {
	const char *name;
	int32_t elem;
	tn_dtype dtype;
	uint32_t field;
} mk_types[] = {
#define DTYPE(id, name, class, bits, wide, acc, lanes, npy, safetensors, dlpack, \
	number, elem, field)                                                   \
	{elem, number, TN_##id, field},
#include "base/dtype.def"
#undef DTYPE
	{"undefined", 0, TN_U8, 5},
	{"string", 8, TN_U8, 6},
	{"complex64", 14, TN_U8, 4},
	{"complex128", 15, TN_U8, 10},
	{"unknown", 99, TN_U8, 5},
};
enum { MK_N_TYPES = (int)(sizeof mk_types / sizeof mk_types[0]) };

/* By name; the last one: there is none. */
static inline const struct mk_type *mk_elem(const char *name)
{
	int32_t i = 0;

	while (i + 1 < MK_N_TYPES && strcmp(mk_types[i].name, name) != 0)
		i++;
	return &mk_types[i];
}

static inline pb mk_shape(mk *m)
{
	pb shape = pb_new(m->a);

	mk_is(m, "[");
	while (!mk_is(m, "]") && *m->s != '\0') {
		const char *w = mk_word(m);
		pb dim = pb_new(m->a);

		if ((*w >= '0' && *w <= '9') || *w == '-')
			pb_int(&dim, 1, strtoll(w, NULL, 10));
		else
			pb_text(&dim, 2, w);
		pb_part(&shape, 1, &dim);
		mk_is(m, ",");
	}
	return shape;
}

/* "x float [2]", "x seq(float) [2]", "x opt(float) [2]", "x" */
static inline pb mk_port(mk *m)
{
	pb port = pb_new(m->a), of = pb_new(m->a), type = pb_new(m->a);
	const char *elem;
	uint32_t outer = 0;

	pb_text(&port, 1, mk_word(m));
	mk_blank(m);
	if (*m->s == ';')
		return port;
	elem = mk_word(m);
	if (strlen(elem) > 4 && (strncmp(elem, "seq(", 4) == 0 ||
					strncmp(elem, "opt(", 4) == 0)) {
		outer = elem[0] == 's' ? 4 : 9;
		elem = arena_strndup(m->a, elem + 4, strlen(elem) - 5);
	}
	pb_int(&of, 1, mk_elem(elem)->elem);
	mk_blank(m);
	if (*m->s == '[') {
		pb shape = mk_shape(m);

		pb_part(&of, 2, &shape);
	}
	pb_part(&type, 1, &of);
	if (outer > 0) {
		pb inner = type, list = pb_new(m->a);

		pb_part(&list, 1, &inner);
		type = pb_new(m->a);
		pb_part(&type, outer, &list);
	}
	pb_part(&port, 2, &type);
	return port;
}

/* The bytes of elements of fewer bits, the first one in the low bits. */
static inline void mk_packed(
	pb *raw, pb *list, const char *at, int32_t bits, int64_t i)
{
	int32_t off = (int32_t)(i % (8 / bits)) * bits;

	if (off == 0)
		str_addc(&raw->s, 0);
	raw->s.at[raw->s.n - 1] = (char)(raw->s.at[raw->s.n - 1] |
		(at[0] & ((1 << bits) - 1)) << off);
	if (off != 0) /* one integer for each byte; it ends in one or two */
		list->s.n -= list->s.n > 1 && list->s.at[list->s.n - 2] & 0x80
			? 2
			: 1;
	pb_varint(list, (uint8_t)raw->s.at[raw->s.n - 1]);
}

/* Words, or what stands in ' '. */
static inline void mk_strings(mk *m, pb *t)
{
	for (mk_blank(m); *m->s != ';' && *m->s != '\0'; mk_blank(m)) {
		const char *w, *end;

		if (!mk_is(m, "'")) {
			w = mk_word(m);
			pb_text(t, 6, w);
			continue;
		}
		end = strchr(m->s, '\'');
		end = end != NULL ? end : m->s + strlen(m->s);
		pb_bytes(t, 6, m->s, (size_t)(end - m->s));
		m->s = *end != '\0' ? end + 1 : end;
	}
}

static inline void mk_elements(mk *m, pb *t, const struct mk_type *type, bool typed)
{
	pb raw = pb_new(m->a), list = pb_new(m->a);
	size_t size = dtype_size(type->dtype);
	int64_t i = 0;

	for (mk_blank(m); *m->s != ';' && *m->s != '\0'; mk_blank(m), i++) {
		char at[8] = {0};
		double v = text_f64(mk_word(m), NULL);

		dtype_store_f64(type->dtype, at, 0, v);
		if (dtype_bits(type->dtype) < 8) {
			mk_packed(&raw, &list, at, dtype_bits(type->dtype), i);
			continue;
		}
		str_addn(&raw.s, at, size);
		if (type->field == 4 || type->field == 10) {
			str_addn(&list.s, at, size);
		} else {
			uint64_t bits;

			/* whatever a fuzzer writes: cut to what fits */
			dtype_store_f64(TN_I64, &bits, 0, v);
			if (dtype_is_float(type->dtype))
				memcpy(&bits, at, 8);
			pb_varint(&list, bits);
		}
	}
	if (typed)
		pb_part(t, type->field, &list);
	else
		pb_part(t, 9, &raw);
}

/* The words before the next ; as pairs: external data. */
static inline void mk_outside(mk *m, pb *t)
{
	pb_int(t, 14, 1);
	for (mk_blank(m); *m->s != ';' && *m->s != '\0'; mk_blank(m)) {
		pb pair = pb_new(m->a);

		pb_text(&pair, 1, mk_word(m));
		mk_is(m, "=");
		pb_text(&pair, 2, *m->s == ' ' || *m->s == ';' ? ""
							       : mk_word(m));
		pb_part(t, 13, &pair);
	}
}

/* what: init, typed, outside */
static inline pb mk_tensor(mk *m, const char *what)
{
	pb t = pb_new(m->a);
	const struct mk_type *type;

	pb_text(&t, 8, mk_word(m));
	type = mk_elem(mk_word(m));
	pb_int(&t, 2, type->elem);
	mk_is(m, "[");
	while (!mk_is(m, "]") && *m->s != '\0') {
		pb_int(&t, 1, strtoll(mk_word(m), NULL, 10));
		mk_is(m, ",");
	}
	if (what[0] == 'o')
		mk_outside(m, &t);
	else if (type->elem == 8 && what[0] != 't') /* typed: raw, where none may be */
		mk_strings(m, &t);
	else
		mk_elements(m, &t, type, what[0] == 't' && type->elem != 8);
	return t;
}

static inline pb mk_graph(mk *m, pb *model);

static inline void mk_attr_value(mk *m, pb *x)
{
	const char *w;

	if (m->depth < 100 && mk_is(m, "{")) {
		pb g;

		m->depth++;
		g = mk_graph(m, NULL);
		m->depth--;
		mk_is(m, "}");
		pb_part(x, 6, &g);
		pb_int(x, 20, 5);
	} else if (mk_is(m, "(")) {
		size_t n = strcspn(m->s, ")");
		mk part = {m->a, arena_strndup(m->a, m->s, n), m->depth};
		pb t = mk_tensor(&part, "init");

		pb_part(x, 5, &t);
		pb_int(x, 20, 4);
		m->s += n + (m->s[n] == ')');
	} else if (mk_is(m, "\"")) {
		const char *end = strchr(m->s, '"');

		end = end != NULL ? end : m->s + strlen(m->s);
		pb_bytes(x, 4, m->s, (size_t)(end - m->s));
		pb_int(x, 20, 3);
		m->s = *end != '\0' ? end + 1 : end;
	} else if (mk_is(m, "[")) {
		bool real = false;

		if (mk_is(m, "\"")) {
			do {
				pb_text(x, 9, mk_word(m));
				mk_is(m, "\"");
			} while (mk_is(m, ",") && mk_is(m, "\""));
			pb_int(x, 20, 8);
			mk_is(m, "]");
			return;
		}
		while (!mk_is(m, "]") && *m->s != '\0') {
			w = mk_word(m);
			real = real || strchr(w, '.') != NULL;
			if (real)
				pb_float(x, 7, (float)text_f64(w, NULL));
			else
				pb_int(x, 8, strtoll(w, NULL, 10));
			mk_is(m, ",");
		}
		pb_int(x, 20, real ? 6 : 7);
	} else {
		w = mk_word(m);
		if (strchr(w, '.') != NULL)
			pb_float(x, 2, (float)text_f64(w, NULL));
		else
			pb_int(x, 3, strtoll(w, NULL, 10));
		pb_int(x, 20, strchr(w, '.') != NULL ? 1 : 2);
	}
}

/* Conv x w > y : pads=[1,1]; a domain as in my.domain/Conv; "_" is no value */
static inline pb mk_node(mk *m)
{
	pb n = pb_new(m->a);
	const char *op = mk_word(m), *slash = strchr(op, '/');
	uint32_t field = 1;

	if (slash != NULL)
		pb_text(&n, 7, arena_strndup(m->a, op, (size_t)(slash - op)));
	pb_text(&n, 4, slash != NULL ? slash + 1 : op);
	for (mk_blank(m); *m->s != ';' && *m->s != ':' && *m->s != '\0';
		mk_blank(m)) {
		const char *w;

		if (mk_is(m, ">")) {
			field = 2;
			continue;
		}
		w = mk_word(m);
		pb_text(&n, field, strcmp(w, "_") == 0 ? "" : w);
	}
	if (mk_is(m, ":"))
		for (mk_blank(m); *m->s != ';' && *m->s != '\0'; mk_blank(m)) {
			pb x = pb_new(m->a);

			pb_text(&x, 1, mk_word(m));
			mk_is(m, "=");
			mk_attr_value(m, &x);
			pb_part(&n, 5, &x);
		}
	return n;
}

/* model: where opsets go; NULL for graphs within */
static inline pb mk_graph(mk *m, pb *model)
{
	pb g = pb_new(m->a), part;

	pb_text(&g, 2, "g");
	for (mk_blank(m); *m->s != '\0' && *m->s != '}'; mk_blank(m)) {
		const char *what = mk_word(m);

		if (strcmp(what, "in") == 0) {
			part = mk_port(m);
			pb_part(&g, 11, &part);
		} else if (strcmp(what, "out") == 0) {
			part = mk_port(m);
			pb_part(&g, 12, &part);
		} else if (strcmp(what, "init") == 0 ||
			strcmp(what, "typed") == 0 ||
			strcmp(what, "outside") == 0) {
			part = mk_tensor(m, what);
			pb_part(&g, 5, &part);
		} else if (strcmp(what, "node") == 0) {
			part = mk_node(m);
			pb_part(&g, 1, &part);
		} else {
			part = pb_new(m->a);
			pb_int(&part, 2, strtoll(mk_word(m), NULL, 10));
			mk_blank(m);
			if (*m->s != ';')
				pb_text(&part, 1, mk_word(m));
			if (model != NULL)
				pb_part(model, 8, &part);
		}
		mk_is(m, ";");
	}
	return g;
}

/* The bytes of a ModelProto. */
static inline pb onnx_write(arena *a, const char *text)
{
	mk m = {a, text, 0};
	pb model = pb_new(a), g;

	pb_int(&model, 1, 8);
	g = mk_graph(&m, &model);
	pb_part(&model, 7, &g);
	return model;
}

#endif
