/*
 * isa.c: kernels for several processors in one file, of which NAME_init chooses.
 *
 *     #pragma GCC target("avx2,fma")        the names of each variant end with
 *     #define mad_f32x8 mad_f32x8_avx2      those of its instructions, and it has
 *     ..                                    a plan of its own: run_part_avx2
 *     #undef mad_f32x8
 *
 * Clang tells a text that is compiled for another processor no macros, so they are
 * defined around it. Variants share the constants, the state, and the arena.
 */
#include "export/local.h"

static const char *const avx2_has[] = {"avx2", "fma", NULL};
static const char *const avx2_macros[] = {
	"__AVX__", "__AVX2__", "__FMA__", NULL};
static const char *const avx512_has[] = {"avx512f", "avx512vl", "avx512bw",
	"avx512dq", "avx2", "fma", NULL};
static const char *const avx512_macros[] = {"__AVX__", "__AVX2__", "__FMA__",
	"__AVX512F__", "__AVX512VL__", "__AVX512BW__", "__AVX512DQ__", NULL};

/* Vectors of 16 bytes are there on every processor, or are taken apart. */
static const export_isa isas[] = {
	{"sse", "c/sse", false, NULL, NULL, NULL},
	{"avx2", "c/avx2", true, "avx2,fma", avx2_has, avx2_macros},
	{"avx512", "c/avx512", true,
		"avx512f,avx512vl,avx512bw,avx512dq,avx2,fma", avx512_has,
		avx512_macros},
};

const export_isa *export_isa_at(int32_t i)
{
	return i < (int32_t)(sizeof isas / sizeof *isas) ? &isas[i] : NULL;
}

static const export_isa *isa_of(const export_net *x, int32_t v)
{
	return x->job->variant[v].isa;
}

const char *export_machines(const export_net *x)
{
	str s = str_new(x->a);

	for (int32_t v = 0; v < x->job->n_variants; v++)
		str_printf(&s, "%s%s", v > 0 ? ", " : "",
			x->job->variant[v].machine);
	return s.at;
}

const char *export_suffix(const export_net *x, int32_t v)
{
	return x->job->n_variants == 1
		? ""
		: arena_printf(x->a, "_%s", isa_of(x, v)->name);
}

/* ---- names ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		(c >= '0' && c <= '9') || c == '_';
}

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* Behind the attributes of a function, if it has some. */
static const char *without_attributes(const char *s)
{
	static const char opens[] = "static __attribute__((";
	const char *end = begins(s, opens) ? strstr(s + sizeof opens - 1, "))") : NULL;

	return end != NULL ? end + 2 : s;
}

/* The name that a line at the outermost level defines; NULL: none. */
static const char *defined(arena *a, const char *line)
{
	const char *end, *s;

	if (begins(line, "typedef ")) {
		end = strpbrk(line, ";\n");
		s = strstr(line, " __attribute__");
		if (s != NULL && end != NULL && s < end)
			end = s;
	} else if (begins(line, "INLINE ") || begins(line, "static ") ||
		begins(line, "KERNEL ")) {
		end = strpbrk(without_attributes(line), "([=\n");
	} else {
		return NULL;
	}
	if (end == NULL)
		return NULL;
	while (end > line && end[-1] == ' ')
		end--;
	for (s = end; s > line && is_word(s[-1]);)
		s--;
	return s < end ? arena_strndup(a, s, (size_t)(end - s)) : NULL;
}

static void put_names(str *out, const char *code, const char *suffix)
{
	map *seen = map_new(out->a);

	for (const char *line = code; *line != '\0';) {
		const char *name = defined(out->a, line);
		const char *end = strchr(line, '\n');

		if (name != NULL && map_get_str(seen, name, 0) == 0) {
			map_set_str(seen, name, 1);
			if (suffix != NULL)
				str_printf(out, "#define %s %s%s\n", name,
					name, suffix);
			else
				str_printf(out, "#undef %s\n", name);
		}
		line = end != NULL ? end + 1 : line + strlen(line);
	}
}

/* ---- around the code ---- */

static void put_target(str *out, const export_isa *isa)
{
	str_add(out, "\n#if HAS_X86\n#if defined(__clang__)\n");
	for (int32_t i = 0; isa->macros[i] != NULL; i++)
		str_printf(out,
			"#pragma push_macro(\"%s\")\n"
			"#undef %s\n"
			"#define %s 1\n",
			isa->macros[i], isa->macros[i], isa->macros[i]);
	str_printf(out,
		"#pragma clang attribute push(__attribute__((target(\"%s\"))), "
		"\\\n"
		"	apply_to = function)\n"
		"#else\n"
		"#pragma GCC push_options\n"
		"#pragma GCC target(\"%s\")\n"
		"#endif\n",
		isa->target, isa->target);
}

static void end_target(str *out, const export_isa *isa)
{
	str_add(out,
		"#if defined(__clang__)\n"
		"#pragma clang attribute pop\n");
	for (int32_t i = 0; isa->macros[i] != NULL; i++)
		str_printf(out, "#pragma pop_macro(\"%s\")\n", isa->macros[i]);
	str_add(out,
		"#else\n"
		"#pragma GCC pop_options\n"
		"#endif\n"
		"#endif\n");
}

/* "f64" and "f32" as C knows them. */
static void put_plain(str *out, const char *line, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || !is_word(line[i - 1]);

		if (first && i + 3 <= n && !is_word(line[i + 3]) &&
			(begins(line + i, "f64") || begins(line + i, "f32"))) {
			str_add(out, line[i + 1] == '6' ? "double" : "float");
			i += 2;
		} else {
			str_addc(out, line[i]);
		}
	}
}

const char *export_isa_split(str *libm, const char *code)
{
	str rest = str_new(libm->a);

	for (const char *line = code; *line != '\0';) {
		const char *end = strchr(line, '\n');
		size_t n = end != NULL ? (size_t)(end - line) + 1 : strlen(line);
		const char *text = arena_strndup(libm->a, line, n);

		if (!begins(line, "extern ")) {
			str_addn(&rest, line, n);
		} else {
			str one = str_new(libm->a);

			put_plain(&one, text, n);
			if (libm->at == NULL || strstr(libm->at, one.at) == NULL)
				str_add(libm, one.at);
		}
		line += n;
	}
	return rest.at != NULL ? rest.at : "";
}

void export_isa_begin(str *out, const export_net *x, int32_t v, const char *code)
{
	const export_isa *isa = isa_of(x, v);

	if (x->job->n_variants == 1)
		return;
	if (v == 0)
		str_add(out,
			"\n#if defined(__x86_64__) || defined(__i386__)\n"
			"#define HAS_X86 1\n"
			"#else\n"
			"#define HAS_X86 0\n"
			"#endif\n");
	str_printf(out, "\n/* ==== %s ==== */\n", isa->name);
	if (isa->target != NULL)
		put_target(out, isa);
	put_names(out, code, export_suffix(x, v));
}

void export_isa_end(str *out, const export_net *x, int32_t v, const char *code)
{
	if (x->job->n_variants == 1)
		return;
	put_names(out, code, NULL);
	str_add(out, "#undef INLINE\n#undef FUSED\n");
	if (isa_of(x, v)->target != NULL)
		end_target(out, isa_of(x, v));
}

/* ---- the choice ---- */

static void put_run_type(str *out)
{
	str_add(out,
		"\ntypedef void run_function(const int part, char *const a, "
		"char *const w,\n"
		"	void *const *const io, void *const local, const int64_t "
		"first,\n"
		"	const int64_t end, int64_t *const err);\n");
}

static void put_one(str *out, const export_net *x)
{
	const char *name = x->job->name;

	put_run_type(out);
	str_printf(out,
		"\n"
		"static void choose_isa(%s_net *n)\n"
		"{\n	(void)n;\n}\n"
		"\n"
		"static int parts_of(const %s_net *n)\n"
		"{\n	(void)n;\n	return %d;\n}\n"
		"\n"
		"static int64_t chunks_of(const %s_net *n)\n"
		"{\n	return n_chunks[n->part];\n}\n"
		"\n"
		"static run_function *run(const %s_net *n)\n"
		"{\n	(void)n;\n	return run_part;\n}\n",
		name, name, (int)x->main->part.n, name, name);
	if (x->job->threads != EXPORT_ALONE)
		str_printf(out,
			"\nstatic int serial(const %s_net *n)\n"
			"{\n	return is_serial[n->part];\n}\n",
			name);
}

static void put_has(str *out, const export_net *x)
{
	str_add(out,
		"\nstatic int has_isa(int i)\n"
		"{\n"
		"#if HAS_X86\n"
		"	__builtin_cpu_init();\n"
		"	switch (i) {\n");
	for (int32_t v = 0; v < x->job->n_variants; v++) {
		const export_isa *isa = isa_of(x, v);

		str_printf(out, "	case %d: /* %s */\n		return 1",
			(int)v, isa->name);
		for (int32_t k = 0; isa->has != NULL && isa->has[k] != NULL; k++)
			str_printf(out,
				" &&\n			"
				"__builtin_cpu_supports(\"%s\")",
				isa->has[k]);
		str_add(out, ";\n");
	}
	str_add(out,
		"	default:\n"
		"		return 0;\n"
		"	}\n"
		"#else\n"
		"	return i == 0;\n"
		"#endif\n"
		"}\n");
}

static void put_variants(str *out, const export_net *x)
{
	put_run_type(out);
	str_add(out,
		"\n"
		"static const struct variant {\n"
		"	run_function *run;\n"
		"	const int64_t *n_chunks;\n"
		"	const unsigned char *is_serial;\n"
		"	int n_parts;\n"
		"} variant[] = {\n");
	for (int32_t v = 0; v < x->job->n_variants; v++) {
		const char *suffix = export_suffix(x, v);

		str_printf(out, "%s	{ run_part%s, n_chunks%s, %s%s, %d },\n",
			v == 1 ? "#if HAS_X86\n" : "", suffix, suffix,
			x->job->threads != EXPORT_ALONE ? "is_serial" : "NULL",
			x->job->threads != EXPORT_ALONE ? suffix : "",
			(int)x->variant[v]->part.n);
	}
	str_add(out, "#endif\n};\n");
}

void export_isa_choice(str *out, const export_net *x)
{
	const char *name = x->job->name, *upper = export_upper(out->a, name);

	if (x->job->n_variants == 1) {
		put_one(out, x);
		return;
	}
	put_variants(out, x);
	put_has(out, x);
	str_printf(out,
		"\nstatic void choose_isa(%s_net *n)\n"
		"{\n"
		"	for (n->isa = %s_ISAS - 1; !has_isa(n->isa);)\n"
		"		n->isa--;\n"
		"}\n"
		"\n"
		"int %s_set_isa(%s_net *n, int isa)\n"
		"{\n"
		"	if (n->arena == NULL || n->part >= 0)\n"
		"		return %s_ESTATE;\n"
		"	if (!has_isa(isa))\n"
		"		return %s_EISA;\n"
		"	n->isa = isa;\n"
		"	return %s_OK;\n"
		"}\n"
		"\n"
		"static int parts_of(const %s_net *n)\n"
		"{\n	return variant[n->isa].n_parts;\n}\n"
		"\n"
		"static int64_t chunks_of(const %s_net *n)\n"
		"{\n	return variant[n->isa].n_chunks[n->part];\n}\n"
		"\n"
		"static run_function *run(const %s_net *n)\n"
		"{\n	return variant[n->isa].run;\n}\n",
		name, upper, name, name, upper, upper, upper, name, name, name);
	if (x->job->threads != EXPORT_ALONE)
		str_printf(out,
			"\nstatic int serial(const %s_net *n)\n"
			"{\n	return variant[n->isa].is_serial[n->part];\n}\n",
			name);
}

/* ---- the header, and the test ---- */

void export_isa_sizes(str *out, const export_net *x)
{
	if (x->job->n_variants == 1)
		return;
	str_add(out, "\n/* Kernels for several processors:");
	for (int32_t v = 0; v < x->job->n_variants; v++)
		str_printf(out, "%s %d %s", v > 0 ? "," : "", (int)v,
			isa_of(x, v)->name);
	str_printf(out, " */\n#define %s_ISAS %d\n",
		export_upper(out->a, x->job->name), (int)x->job->n_variants);
}

void export_isa_functions(str *out, const export_net *x)
{
	const char *name = x->job->name, *upper = export_upper(out->a, name);

	if (x->job->n_variants > 1)
		str_printf(out,
			"/* Between two runs: the kernels to run from now on, "
			"0 .. %s_ISAS - 1, instead of\n"
			" * the last ones that the processor has. */\n"
			"int %s_set_isa(%s_net *n, int isa);\n",
			upper, name, name);
}

void export_isa_test(str *out, const export_net *x)
{
	const char *name = x->job->name, *upper = export_upper(out->a, name);

	str_printf(out,
		"\nenum { N_ISAS = %d };\n"
		"static int isa_now; /* whose bits are expected */\n",
		(int)x->job->n_variants);
	if (x->job->n_variants == 1) {
		str_printf(out,
			"\nstatic void run_isas(%s_net *n)\n"
			"{\n	(void)n;\n}\n"
			"\n"
			"static int chosen(const %s_net *n)\n"
			"{\n	(void)n;\n	return 0;\n}\n",
			name, name);
		return;
	}
	str_printf(out,
		"\nstatic int chosen(const %s_net *n)\n"
		"{\n	return n->isa;\n}\n"
		"\n"
		"static void run_isas(%s_net *n)\n"
		"{\n"
		"	static const char *const isa[] = {",
		name, name);
	for (int32_t v = 0; v < x->job->n_variants; v++)
		str_printf(out, " \"%s\",", isa_of(x, v)->name);
	str_printf(out,
		" NULL };\n"
		"	int was = isa_now;\n"
		"\n"
		"	for (isa_now = 0; isa_now < N_ISAS; isa_now++) {\n"
		"		begin(n);\n"
		"		if (%s_set_isa(n, isa_now) == %s_EISA) {\n"
		"			printf(\"%s_test: there is no %%s "
		"here\\n\", isa[isa_now]);\n"
		"			continue;\n"
		"		}\n"
		"		see_code(run(n), %s_OK, \"a run\");\n"
		"		see_results(isa[isa_now]);\n"
		"	}\n"
		"	see_code(%s_set_isa(n, N_ISAS), %s_EISA, \"no such "
		"instructions\");\n"
		"	isa_now = was;\n"
		"	see_code(%s_set_isa(n, was), %s_OK, \"%s_set_isa\");\n"
		"}\n",
		name, upper, name, upper, name, upper, name, upper, name);
}
