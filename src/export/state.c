/*
 * state.c: what a program keeps from run to run, as training does: parameters,
 * moments, the number of steps. It is at the front of the arena.
 *
 *     #define NET_STATE_W(n) ((float *)(void *)((n)->arena + 64))
 *     net_reset, net_save, net_load
 */
#include "export/templates.h"

#include "base/sha256.h"

#include <inttypes.h>

/* Of names and types: the state of one program is that of another, too, if only
 * the machine differs. */
static uint64_t id_of(const export_net *x)
{
	uint8_t digest[HASH_BYTES];
	uint64_t id = 0;
	sha256 h;

	sha256_start(&h);
	for (int32_t i = 0; i < x->n_state; i++) {
		const struct state *s = &x->state[i];
		str type = str_new(x->a);

		str_printf(&type, "%s %s", s->t->name,
			dtype_name(s->t->dtype));
		str_shape(&type, s->t->shape, s->t->rank);
		sha256_add_str(&h, type.at);
	}
	sha256_end(&h, digest);
	for (int32_t i = 0; i < 8; i++)
		id |= (uint64_t)digest[i] << 8 * i;
	return id;
}

/* ---- the header ---- */

void export_state_sizes(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;

	if (x->state_bytes == 0)
		return;
	str_printf(out,
		"\n"
		"/* What is kept from step to step: the first bytes of the "
		"arena, and their parts. */\n"
		"#define %s_STATE_BYTES %zu\n"
		"#define %s_STATE_ID UINT64_C(0x%016" PRIx64 ")\n",
		upper, x->state_bytes, upper, id_of(x));
	for (int32_t i = 0; i < x->n_state; i++) {
		const struct state *s = &x->state[i];
		const char *ident = export_upper(out->a, s->ident);

		str_printf(out, "/* %s: %s", s->t->name,
			dtype_name(s->t->dtype));
		str_shape(out, s->t->shape, s->t->rank);
		str_printf(out,
			" */\n"
			"#define %s_%s_ELEMS %" PRId64 "\n"
			"#define %s_%s(n) ((%s *)(void *)((n)->arena + %zu))\n",
			upper, ident, s->t->numel, upper, ident,
			export_c_type(s->t->dtype), s->at);
	}
	str_printf(out,
		"\n"
		"/* Writes or reads n bytes, those after the last ones; 0: done. "
		"*/\n"
		"typedef int %s_write(void *user, const void *data, size_t n);\n"
		"typedef int %s_read(void *user, void *data, size_t n);\n",
		name, name);
}

void export_state_functions(str *out, const export_net *x)
{
	const char *name = x->job->name;

	if (x->state_bytes == 0)
		return;
	str_printf(out,
		"/* The state as it was when the program was exported; %s_init "
		"does this, too. */\n"
		"int %s_reset(%s_net *n);\n"
		"/* Saves the state, and loads it, between two steps; 64 bytes "
		"before it tell what it\n"
		" * is. If the state that is loaded is cut off or damaged, there "
		"is none: %s_step\n"
		" * refuses until another one is loaded, or %s_reset. */\n"
		"int %s_save(const %s_net *n, %s_write *fn, void *user);\n"
		"int %s_load(%s_net *n, %s_read *fn, void *user);\n",
		name, name, name, name, name, name, name, name, name, name,
		name);
}

/* ---- the program ---- */

void export_state_begin(str *out, const export_net *x)
{
	str_printf(out,
		"\n/* What %s begins with. */\n"
		"static void begin_state(%s_net *n)\n"
		"{\n",
		x->state_bytes > 0 ? "it" : "nothing", x->job->name);
	if (x->state_bytes > 0)
		str_printf(out,
			"	memset(n->arena, 0, %zu);\n"
			"	n->has_state = 1;\n",
			x->state_bytes);
	for (int32_t i = 0; i < x->n_state; i++) {
		const struct state *s = &x->state[i];

		if (s->first > 0)
			str_printf(out,
				"	memcpy(n->arena + %zu, n->weights + "
				"%zu, %zu);\n",
				s->at, s->first, s->bytes);
	}
	if (x->state_bytes == 0)
		str_add(out, "	(void)n;\n");
	str_add(out, "}\n");
}

/* ---- NAME.json ---- */

void export_state_json(str *out, const export_net *x)
{
	for (int32_t i = 0; i < x->n_state; i++) {
		const struct state *s = &x->state[i];

		str_printf(out, "%s\n  {\"name\":", i > 0 ? "," : "");
		str_json(out, s->t->name);
		str_printf(out, ",\"dtype\":\"%s\",\"shape\":",
			dtype_name(s->t->dtype));
		str_shape(out, s->t->shape, s->t->rank);
		str_printf(out, ",\"bytes\":%zu,\"at\":%zu}", s->bytes, s->at);
	}
}

/* ---- NAME_test.c ---- */

/* One hash of the whole state after many steps, by variant. */
static void put_many(str *out, const export_net *x)
{
	const export_test *t = x->test;

	str_printf(out,
		"\nenum { MANY_STEPS = %d };\n"
		"/* hashes of the hashes of the library's bits after so many */\n"
		"static const uint64_t many_bits[N_ISAS] = {",
		(int)t->n_many);
	for (int32_t v = 0; v < x->job->n_variants; v++) {
		uint64_t all = 0;

		for (int32_t i = 0; t->n_many > 0 && i < x->n_state; i++)
			all = (all ^ export_hash(
				       t->bits[v].later[x->state[i].input],
				       x->state[i].bytes)) *
				UINT64_C(0x100000001b3);
		str_printf(out, "%s UINT64_C(0x%016" PRIx64 ")",
			v > 0 ? "," : "", all);
	}
	str_add(out, " };\n");
}

void export_state_test(str *out, const export_net *x)
{
	const char *name = x->job->name;

	if (x->state_bytes == 0) {
		str_printf(out,
			"\nenum { N_STEPS = 1 };\n"
			"#define WORK 0 /* the arena holds nothing else */\n"
			"\n"
			"static void see_state(void)\n{\n}\n"
			"\n"
			"static int again(%s_net *n)\n"
			"{\n	(void)n;\n	return %s_OK;\n}\n"
			"\n"
			"static void see_saved(%s_net *n)\n"
			"{\n	(void)n;\n}\n"
			"\n"
			"static void see_many(%s_net *n)\n"
			"{\n	(void)n;\n}\n",
			name, export_upper(out->a, name), name, name);
		return;
	}
	str_printf(out,
		"\n"
		"enum { N_STEPS = %d };\n"
		"#define WORK %zu /* bytes of the state */\n"
		"\n"
		"/* The state after the steps: hashes of the library's bits. */\n"
		"static const struct { const char *name; size_t at, bytes; "
		"uint64_t bits[N_ISAS]; }\n"
		"state[] = {\n",
		(int)x->test->n_steps, x->state_bytes);
	for (int32_t i = 0; i < x->n_state; i++) {
		const struct state *s = &x->state[i];

		str_printf(out, "	{ \"%s\", %zu, %zu, {", s->ident, s->at,
			s->bytes);
		for (int32_t v = 0; v < x->job->n_variants; v++)
			str_printf(out, "%s UINT64_C(0x%016" PRIx64 ")",
				v > 0 ? "," : "",
				export_hash(x->test->bits[v].after[s->input],
					s->bytes));
		str_add(out, " } },\n");
	}
	str_add(out, "	{ \"\", 0, 0, { 0 } }\n};\n");
	put_many(out, x);
	export_fill(out, x, export_test_state_c);
}
