/*
 * build.c: files for make, CMake and pkg-config, and the list of all files.
 */
#include "export/templates.h"

#include <inttypes.h>

/*
 * Of gcc and clang. Without -ffp-contract=off a compiler fuses what it likes;
 * integers wrap; elements are accessed by pointers of several types. The text has
 * the same in pragmas of gcc, with what keeps its loops as they are (unit.c).
 */
static const char flags[] =
	"-ffp-contract=off -fwrapv -fno-strict-aliasing -fno-math-errno "
	"-fno-trapping-math -fno-tree-vectorize -Wno-psabi";

static const char *replaced(arena *a, const char *text, const char *word,
	const char *with)
{
	str s = str_new(a);
	size_t n = strlen(word);

	while (*text != '\0') {
		if (strncmp(text, word, n) == 0) {
			str_add(&s, with);
			text += n;
		} else {
			str_addc(&s, *text++);
		}
	}
	return s.at;
}

static bool has_source(const export_net *x)
{
	return x->weights_bytes > 0 && x->job->weights != EXPORT_FILE;
}

/* "NAME.c NAME_weights.S": what is compiled, with another ending if given. */
static const char *sources(const export_net *x, arena *a, bool objects)
{
	const char *name = x->job->name;
	const char *end = objects ? "o" : "c";
	str s = str_new(a);

	str_printf(&s, "%s.%s", name, end);
	if (has_source(x))
		str_printf(&s, " %s_weights.%s", name,
			objects || x->job->weights == EXPORT_ARRAY ? end : "S");
	if (x->job->threads == EXPORT_PTHREAD)
		str_printf(&s, " %s_threads.%s", name, end);
	return s.at;
}

static const char *libs(const export_net *x, bool cmake)
{
	bool libm = x->libm[0] != NULL;
	bool threads = x->job->threads == EXPORT_PTHREAD;

	if (libm && threads)
		return cmake ? "m pthread" : "-lm -lpthread";
	if (libm)
		return cmake ? "m" : "-lm";
	return threads ? cmake ? "pthread" : "-lpthread" : "";
}

struct list {
	export_net *x;
	VEC(export_file) file;
};

static void add(void *arg, const char *name, const str *text)
{
	struct list *l = arg;

	export_piece *p = arena_make(l->x->a, export_piece);

	*p = (export_piece){text->at != NULL ? text->at : "", text->n};
	*vec_push(l->x->a, &l->file) = (export_file){name, 1, p};
}

static void add_filled(struct list *l, const char *name,
	const char *const *lines, bool cmake)
{
	arena *a = l->x->a;
	str s = str_new(a), out = str_new(a);
	const char *t;

	export_fill(&s, l->x, lines);
	t = replaced(a, s.at, "@FLAGS@", flags);
	/* with several variants the text itself says what they are for */
	t = replaced(a, t, "@ARCH@",
		l->x->job->n_variants > 1 ? "" : "-march=native");
	t = replaced(a, t, "@SOURCES@", sources(l->x, a, false));
	t = replaced(a, t, "@OBJS@", sources(l->x, a, true));
	t = replaced(a, t, "@LIBM@", libs(l->x, cmake));
	str_add(&out, t);
	add(l, name, &out);
}

/* ---- weights ---- */

static void put_array(str *out, const export_net *x)
{
	const char *name = x->job->name;
	size_t n = 0;

	str_printf(out,
		"/* %s_weights.c: the constants of %s.c. */\n"
		"#include \"%s.h\"\n"
		"\n"
		"const unsigned char %s_weights[%zu] "
		"__attribute__((aligned(64))) = {",
		name, name, name, name, x->weights_bytes);
	for (int32_t i = 0; i < x->weights.n; i++) {
		const export_piece *p = &x->weights.at[i];

		for (size_t k = 0; k < p->n_bytes; k++, n++)
			str_printf(out, "%s%d,", n % 24 == 0 ? "\n" : "",
				((const uint8_t *)p->data)[k]);
	}
	str_add(out, "\n};\n");
}

/* C99 aligns bytes to nothing, and words to themselves. */
static void put_words(str *out, const export_net *x)
{
	const char *name = x->job->name;

	str_printf(out,
		"/* %s_weights.c: the constants of %s.c. */\n"
		"#include \"%s.h\"\n"
		"\n"
		"const uint64_t %s_weights[%zu] = {",
		name, name, name, name, x->weights_bytes / 8);
	for (int32_t i = 0; i < x->weights.n; i++) {
		const export_piece *p = &x->weights.at[i];

		for (size_t k = 0; k < p->n_bytes; k += 8) {
			const uint8_t *b = (const uint8_t *)p->data + k;
			uint64_t v = 0;

			for (size_t j = 0; j < 8; j++)
				v |= (uint64_t)b[j] << 8 * j;
			str_printf(out, "%sUINT64_C(0x%" PRIx64 "),",
				k % 32 == 0 ? "\n" : " ", v);
		}
	}
	str_add(out, "\n};\n");
}

static void put_assembly(str *out, const export_net *x)
{
	const char *name = x->job->name;

	str_printf(out,
		"/* %s_weights.S: the constants of %s.c, from %s.weights. */\n"
		"	.section .rodata\n"
		"	.global %s_weights\n"
		"	.balign 64\n"
		"%s_weights:\n"
		"	.incbin \"%s.weights\"\n"
		"#if defined(__linux__) && defined(__ELF__)\n"
		"	.section .note.GNU-stack, \"\", %%progbits\n"
		"#endif\n",
		name, name, name, name, name, name);
}

static void add_weights(struct list *l)
{
	export_net *x = l->x;
	const char *name = x->job->name;
	str s = str_new(x->a);

	if (x->weights_bytes == 0)
		return;
	if (x->job->weights == EXPORT_ARRAY) {
		if (x->job->plain)
			put_words(&s, x);
		else
			put_array(&s, x);
		add(l, arena_printf(x->a, "%s_weights.c", name), &s);
		return;
	}
	*vec_push(x->a, &l->file) = (export_file){
		arena_printf(x->a, "%s.weights", name), x->weights.n,
		x->weights.at};
	if (x->job->weights == EXPORT_INCBIN) {
		put_assembly(&s, x);
		add(l, arena_printf(x->a, "%s_weights.S", name), &s);
	}
}

/* ---- all files ---- */

static void add_sources(struct list *l)
{
	export_net *x = l->x;
	const char *name = x->job->name;
	str c = str_new(x->a), h = str_new(x->a), json = str_new(x->a);

	export_unit(&c, x);
	export_header(&h, x);
	export_json(&json, x);
	add(l, arena_printf(x->a, "%s.c", name), &c);
	add(l, arena_printf(x->a, "%s.h", name), &h);
	add(l, arena_printf(x->a, "%s.json", name), &json);
	if (x->test != NULL) {
		str t = str_new(x->a);

		export_test_text(&t, x);
		add(l, arena_printf(x->a, "%s_test.c", name), &t);
	}
}

export_files export_write(export_net *x, const export_test *t)
{
	struct list l = {.x = x};
	const char *name = x->job->name;

	x->test = t;
	add_sources(&l);
	add_weights(&l);
	if (x->job->threads == EXPORT_PTHREAD) {
		add_filled(&l, arena_printf(x->a, "%s_threads.c", name),
			export_threads_c, false);
		add_filled(&l, arena_printf(x->a, "%s_threads.h", name),
			export_threads_h, false);
	}
	add_filled(&l, "Makefile", export_make, false);
	add_filled(&l, "CMakeLists.txt", export_cmake, true);
	add_filled(&l, arena_printf(x->a, "%s.pc", name), export_pc, false);
	return (export_files){l.file.n, l.file.at};
}
