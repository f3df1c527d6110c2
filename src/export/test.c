/*
 * test.c: NAME_test.c: runs the exported program on given inputs, in memory with
 * guards, and compares with what the interpreter made of them, and with the bits
 * of compiled kernels where the compiler fuses products and sums as it did then.
 */
#include "export/templates.h"

#include <inttypes.h>

static void put_data(str *out, const char *kind, int32_t i, const void *data,
	size_t n)
{
	const uint8_t *b = data;

	str_printf(out, "static const uint64_t %s_%d[] = {", kind, (int)i);
	for (size_t at = 0; at < n; at += 8) {
		uint64_t v = 0;

		for (size_t k = at; k < at + 8 && k < n; k++)
			v |= (uint64_t)b[k] << 8 * (k - at);
		str_printf(out, "%s0x%" PRIx64 ",", at % 32 == 0 ? "\n	" : " ",
			v);
	}
	str_add(out, "\n	0\n};\n");
}

static size_t bytes_of(const struct io *io)
{
	return (size_t)io->t->numel * dtype_size(io->t->dtype);
}

static const void *want_of(const export_test *t, const struct io *io)
{
	if (!io->written)
		return NULL;
	return io->input >= 0 ? t->after[io->input] : t->want[io->output];
}

/* Hashes of the library's bits, by variant. */
static void put_hashes(str *out, const export_net *x, const struct io *io)
{
	str_add(out, "{");
	for (int32_t v = 0; v < x->job->n_variants; v++) {
		const struct export_bits *b = &x->test->bits[v];
		const void *bits = !io->written	   ? NULL
			: io->input >= 0 ? b->after[io->input]
					 : b->out[io->output];

		str_printf(out, "%s UINT64_C(0x%016" PRIx64 ")",
			v > 0 ? "," : "",
			bits != NULL ? export_hash(bits, bytes_of(io)) : 0);
	}
	str_add(out, " }");
}

/* How elements are compared, and how far they may be apart. */
static char kind_of(tn_dtype t, double *tolerance)
{
	*tolerance = 0;
	if (!dtype_is_float(t))
		return 'i';
	*tolerance = t == TN_F64 ? 1e-9 : t == TN_F32 ? 1e-4 : 0.02;
	if (t == TN_F32 || t == TN_F64)
		return t == TN_F32 ? 'f' : 'd';
	if (t == TN_F16 || t == TN_BF16)
		return t == TN_F16 ? 'h' : 'b';
	return 'c';
}

static void put_array(str *out, const export_net *x, int32_t i)
{
	const struct io *io = &x->io[i];
	size_t n = bytes_of(io);
	double tolerance;
	char kind = kind_of(io->t->dtype, &tolerance);

	str_printf(out, "	{ \"%s\", '%c', %zu, %zu, %g,\n		", io->ident, kind,
		n, dtype_size(io->t->dtype), tolerance);
	if (io->input >= 0)
		str_printf(out, "start_%d, ", (int)i);
	else
		str_add(out, "NULL, ");
	if (io->written)
		str_printf(out, "want_%d, ", (int)i);
	else
		str_add(out, "NULL, ");
	put_hashes(out, x, io);
	str_printf(out, ",\n		(unsigned char *)room_%d },\n", (int)i);
}

static void put_arrays(str *out, const export_net *x)
{
	const export_test *t = x->test;

	for (int32_t i = 0; i < x->n_io; i++) {
		const struct io *io = &x->io[i];

		if (io->input >= 0)
			put_data(out, "start", i, t->in[io->input],
				bytes_of(io));
		if (io->written)
			put_data(out, "want", i, want_of(t, io),
				bytes_of(io));
		str_printf(out,
			"static uint64_t room_%d[%zu] ALIGNED;\n",
			(int)i, (bytes_of(io) + 2 * 64) / 8 + 1);
	}
	str_add(out,
		"\nstatic struct array {\n"
		"	const char *name;\n"
		"	char kind; /* f f32, d f64, h f16, b bf16, c small floats, i "
		"integers */\n"
		"	size_t bytes, elem;\n"
		"	double tolerance; /* relative */\n"
		"	const uint64_t *start, *want;\n"
		"	uint64_t bits[N_ISAS]; /* hashes of the library's result */\n"
		"	unsigned char *room;\n"
		"} array[] = {\n");
	for (int32_t i = 0; i < x->n_io; i++)
		put_array(out, x, i);
	str_printf(out,
		"	{ \"\", 'i', 0, 1, 0, NULL, NULL, { 0 }, NULL }\n"
		"};\n"
		"enum { N_ARRAYS = %d };\n",
		(int)x->n_io);
}

static void put_call(str *out, const export_net *x, const char *what,
	const char *verb)
{
	str_printf(out,
		"\nstatic int %s(%s_net *n)\n"
		"{\n"
		"	return %s_%s(n",
		what, x->job->name, x->job->name, verb);
	for (int32_t i = 0; i < x->n_io; i++) {
		const struct io *io = &x->io[i];

		str_printf(out, ",\n		(%s%s *)(void *)(array[%d].room + 64)",
			io->written ? "" : "const ",
			export_c_type(io->t->dtype), (int)i);
	}
	str_add(out, ");\n}\n");
}

static void put_weights(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;

	if (x->weights_bytes == 0) {
		str_add(out,
			"\nstatic const unsigned char *const weights = NULL;\n"
			"\n"
			"static int load_weights(const char *file)\n"
			"{\n"
			"	return file != NULL;\n"
			"}\n");
		return;
	}
	str_printf(out, "\nstatic const unsigned char *weights;\n");
	if (x->job->weights == EXPORT_FILE)
		str_printf(out,
			"static uint64_t file_words[%s_WEIGHTS_BYTES / 8] "
			"ALIGNED;\n",
			upper);
	str_printf(out,
		"\n"
		"static int load_weights(const char *file)\n"
		"{\n");
	if (x->job->weights == EXPORT_FILE)
		str_printf(out,
			"	FILE *f = fopen(file, \"rb\");\n"
			"\n"
			"	if (f == NULL || fread(file_words, 1, sizeof "
			"file_words, f) !=\n"
			"				 sizeof file_words) {\n"
			"		printf(\"%s_test: %%s cannot be read\\n\", "
			"file);\n"
			"		return 0;\n"
			"	}\n"
			"	fclose(f);\n"
			"	weights = (const unsigned char *)file_words;\n",
			name);
	else
		str_printf(out,
			"	(void)file;\n"
			"	weights = (const unsigned char *)%s_weights;\n",
			name);
	str_printf(out,
		"	if (%s_check_weights(weights, %s_WEIGHTS_BYTES) == "
		"%s_OK)\n"
		"		return 1;\n"
		"	printf(\"%s_test: the weights are damaged\\n\");\n"
		"	return 0;\n"
		"}\n",
		name, upper, upper, name);
}

static void put_threads(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;

	if (x->job->threads != EXPORT_PTHREAD) {
		str_printf(out,
			"\nstatic void run_threads(%s_net *n)\n"
			"{\n"
			"	(void)n;\n"
			"}\n",
			name);
		return;
	}
	str_printf(out,
		"\nstatic void run_threads(%s_net *n)\n"
		"{\n"
		"	%s_pool pool;\n"
		"	int workers = %s_pool_start(&pool, N_WORKERS);\n"
		"\n"
		"	see_code(%s_init(n, arena + 64, ARENA_BYTES, weights,\n"
		"			 %s_WEIGHTS_BYTES),\n"
		"		%s_OK, \"%s_init\");\n"
		"	see_code(%s_set_parallel(n, %s_pool_run, &pool, "
		"1 << 20),\n"
		"		%s_EARENA, \"more threads than the arena is "
		"for\");\n"
		"	see_code(%s_set_parallel(n, %s_pool_run, &pool, "
		"workers),\n"
		"		%s_OK, \"%s_set_parallel\");\n"
		"	begin(n);\n"
		"	see_code(run(n), %s_OK, \"a run on threads\");\n"
		"	see_results(\"a run on threads\");\n"
		"	%s_pool_stop(&pool);\n"
		"}\n",
		name, name, name, name, upper, upper, name, name, name, upper,
		name, name, upper, name, upper, name);
}

/* What is defined at the end, and called before. */
static void put_declarations(str *out, const char *name)
{
	str_printf(out,
		"\nstatic void begin(%s_net *n);\n"
		"static int run(%s_net *n);\n"
		"static void see_results(const char *how);\n"
		"static void see_code(int code, int want, const char *what);\n"
		"static void say(const char *what, const char *name);\n",
		name, name);
}

/* Does it call a function of libm that may round in its own way? Square roots are
 * exact everywhere. */
static bool has_own_libm(const export_net *x)
{
	for (int32_t i = 0; x->libm[i] != NULL; i++)
		if (strcmp(x->libm[i], "sqrt") != 0 &&
			strcmp(x->libm[i], "sqrtf") != 0)
			return true;
	return false;
}

/* When the bits of the library are expected. */
static void put_bits(str *out, const export_net *x)
{
	bool libm = has_own_libm(x);

	str_printf(out,
		"\n/* Where products and sums are fused as they were%s, bits are "
		"equal. */\n",
		libm ? ", and the C library is that one" : "");
	if (x->job->n_variants > 1)
		str_printf(out, "#define FUSED %d /* in each as it was */\n",
			(int)x->test->fused);
	else if (x->job->fused)
		str_add(out,
			"#if defined(__FMA__) || defined(__AVX512F__) || \\\n"
			"	defined(__FP_FAST_FMAF) || "
			"defined(__aarch64__)\n"
			"#define FUSED 1\n"
			"#else\n"
			"#define FUSED 0\n"
			"#endif\n");
	else
		str_add(out, "#define FUSED 0 /* as on every machine */\n");
	str_printf(out,
		"#ifndef SAME_BITS\n"
		"#if FUSED == %d%s\n"
		"#define SAME_BITS 1\n"
		"#else\n"
		"#define SAME_BITS 0\n"
		"#endif\n"
		"#endif\n",
		(int)x->test->fused,
		libm ? " && defined(__x86_64__) && defined(__GLIBC__)" : "");
}

void export_test_text(str *out, const export_net *x)
{
	const char *name = x->job->name, *upper = export_upper(out->a, name);
	bool threads = x->job->threads == EXPORT_PTHREAD;

	str_printf(out,
		"/*\n"
		" * %s_test.c: runs the program on the inputs below, and "
		"compares with what Tenon's\n"
		" * %s made of them. An argument: the file of "
		"the weights.\n"
		" */\n"
		"#define %s_UNCHECKED\n"
		"#include \"%s\"\n"
		"\n"
		"#include <stdio.h>\n"
		"#include <string.h>\n",
		name, x->test->by, upper,
		arena_printf(out->a, threads ? "%s_threads.h" : "%s.h", name));
	put_bits(out, x);
	str_printf(out, "\n#define ALIGNED%s\n",
		x->job->plain ? "" : " __attribute__((aligned(64)))");
	put_declarations(out, name);
	export_isa_test(out, x);
	str_add(out, "\n/* ---- inputs, and results ---- */\n\n");
	put_arrays(out, x);
	str_printf(out, "\nenum { N_WORKERS = %d };\n", threads ? 3 : 1);
	str_printf(out,
		threads ? "#define ARENA_BYTES %s_ARENA_BYTES_FOR(N_WORKERS)\n"
			: "#define ARENA_BYTES ((size_t)%s_ARENA_BYTES)\n",
		upper);
	str_add(out, "static uint64_t arena_words[(ARENA_BYTES + 2 * 64) / 8] "
		     "ALIGNED;\n"
		     "static unsigned char *const arena = (unsigned char "
		     "*)arena_words;\n");
	put_call(out, x, "step", export_verb(x));
	put_call(out, x, "start", "start");
	put_weights(out, x, upper);
	export_state_test(out, x);
	export_strings_test(out, x, upper);
	put_threads(out, x, upper);
	export_fill(out, x, export_test_c);
}
