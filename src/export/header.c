/*
 * header.c: NAME.h: what a program that calls the exported one sees.
 */
#include "export/local.h"

#include <inttypes.h>

static void put_io_comment(str *out, const export_net *x)
{
	for (int32_t i = 0; i < x->n_io; i++) {
		const struct io *io = &x->io[i];

		str_printf(out, " *   %s: %s", io->ident,
			dtype_name(io->t->dtype));
		str_shape(out, io->t->shape, io->t->rank);
		if (export_is_string(x, io))
			str_add(out, ", numbers of strings");
		str_printf(out, "%s\n",
			io->input >= 0 && io->written ? ", read and written"
			: io->input >= 0	      ? ""
						      : ", written");
	}
}

static void put_sizes(str *out, const export_net *x, const char *name)
{
	for (int32_t i = 0; i < x->n_io; i++)
		str_printf(out, "#define %s_%s_ELEMS %" PRId64 "\n", name,
			export_upper(out->a, x->io[i].ident),
			x->io[i].t->numel);
	str_printf(out,
		"\n"
		"/* The arena's address is a multiple of this; that of the "
		"weights, too. */\n"
		"#define %s_ALIGN %d\n",
		name, (int)export_align(x));
	if (x->job->threads == EXPORT_ALONE) {
		str_printf(out, "#define %s_THREAD_BYTES 0\n"
				"#define %s_ARENA_BYTES %zu\n",
			name, name,
			x->fixed_bytes + x->local_bytes > 0
				? x->fixed_bytes + export_up(x->local_bytes)
				: (size_t)EXPORT_ALIGN);
	} else {
		str_printf(out,
			"#define %s_THREAD_BYTES %zu\n"
			"#define %s_ARENA_BYTES_FOR(n_threads) \\\n"
			"	((size_t)%zu + (size_t)(n_threads) * "
			"%s_THREAD_BYTES)\n"
			"#define %s_ARENA_BYTES %s_ARENA_BYTES_FOR(1)\n",
			name, export_up(x->local_bytes) + EXPORT_ALIGN, name,
			x->fixed_bytes, name, name, name);
	}
	str_printf(out,
		"#define %s_WEIGHTS_BYTES %zu\n"
		"#define %s_WEIGHTS_ID UINT64_C(0x%016" PRIx64 ")\n",
		name, x->weights_bytes, name, x->id);
}

static void put_codes(str *out, const char *lower, const char *name)
{
	static const char *const code[] = {"OK = 0", "MORE = 1",
		"EARENA = -1", "EALIGN = -2", "EWEIGHTS = -3", "EBUFFER = -4",
		"EINDEX = -5", "EVALUE = -6", "ESTATE = -7",
		"ESAVED = -8", "EIO = -9", "EISA = -10"};
	const size_t n = sizeof code / sizeof *code;

	str_printf(out,
		"\n/* What the functions return; %s_error has the texts. */\n"
		"enum {",
		lower);
	for (size_t i = 0; i < n; i++)
		str_printf(out, "\n	%s_%s%s", name, code[i],
			i + 1 < n ? "," : "");
	str_add(out, "\n};\n");
}

static void put_args(str *out, const export_net *x, const char *name)
{
	str_printf(out, "%s_net *n", x->job->name);
	for (int32_t i = 0; i < x->n_io; i++) {
		const struct io *io = &x->io[i];
		const char *type = export_c_type(io->t->dtype);

		str_printf(out, ",\n	%s%s %s%s", io->written ? "" : "const ",
			type, io->t->numel > 0 ? "" : "*", io->ident);
		if (io->t->numel > 0)
			str_printf(out, "[%s_AT_LEAST(%s_%s_ELEMS)]", name,
				name, export_upper(out->a, io->ident));
	}
	str_add(out, ")");
}

static void put_state(str *out, const export_net *x)
{
	const char *name = x->job->name;

	if (x->job->threads != EXPORT_ALONE)
		str_printf(out,
			"\n/* A chunk of work, for worker 0 .. n_workers - 1. "
			"*/\n"
			"typedef void %s_chunk(void *arg, int64_t chunk, int "
			"worker);\n"
			"/* Calls fn for chunks 0 .. n_chunks - 1, each once, "
			"in any order, and returns\n"
			" * when all are done. At a time no two calls have the "
			"same worker. */\n"
			"typedef void %s_parallel(void *user, int64_t "
			"n_chunks, %s_chunk *fn,\n"
			"	void *arg);\n",
			name, name, name);
	str_printf(out,
		"\n/* The state of a program that runs. Its members are "
		"private. */\n"
		"typedef struct %s_net {\n"
		"	unsigned char *arena, *weights;\n"
		"	size_t arena_bytes;\n"
		"	void *io[%d];\n"
		"	int64_t chunk, error;\n"
		"	int part;\n",
		name, x->n_io + 1);
	if (x->job->n_variants > 1)
		str_add(out, "	int isa;\n");
	if (x->state_bytes > 0)
		str_add(out, "	int has_state;\n");
	if (x->job->threads != EXPORT_ALONE)
		str_printf(out,
			"	%s_parallel *parallel;\n"
			"	void *user;\n"
			"	int n_workers;\n",
			name);
	str_printf(out, "} %s_net;\n", name);
}

static void put_functions(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;

	str_printf(out,
		"\n/*\n"
		" * The arena has %s_ARENA_BYTES bytes, and belongs to the "
		"program until the last run.\n"
		" * weights: %s\n"
		" */\n"
		"int %s_init(%s_net *n, void *arena, size_t arena_bytes,\n"
		"	const void *weights, size_t weights_bytes);\n",
		upper,
		x->weights_bytes == 0
			? "there are none: NULL, 0."
			: "those of this program; they are only read, and may "
			  "be in flash.",
		name, name);
	if (x->weights_bytes > 0)
		str_printf(out,
			"/* Reads all weights: are they damaged? */\n"
			"int %s_check_weights(const void *weights, size_t "
			"weights_bytes);\n",
			name);
	if (x->weights_bytes > 0 && x->job->weights != EXPORT_FILE)
		str_printf(out,
			x->job->plain
				? "extern const uint64_t "
				  "%s_weights[%s_WEIGHTS_BYTES / 8];\n"
				: "extern const unsigned char "
				  "%s_weights[%s_WEIGHTS_BYTES];\n",
			name, upper);
	if (x->job->threads != EXPORT_ALONE)
		str_printf(out,
			"/* Chunks are shared by n_workers threads from now "
			"on; the arena has\n"
			" * %s_ARENA_BYTES_FOR(n_workers) bytes. The results "
			"have the same bits. */\n"
			"int %s_set_parallel(%s_net *n, %s_parallel *fn, void "
			"*user, int n_workers);\n",
			upper, name, name, name);
	export_isa_functions(out, x);
	export_state_functions(out, x);
	str_printf(out,
		"/* %s. If it fails, what it reads and writes is as it was. "
		"*/\nint %s_%s(",
		x->state_bytes > 0 ? "One step" : "Runs it", name,
		export_verb(x));
	put_args(out, x, upper);
	str_printf(out, ";\n/* Begins a run: arrays must stay as they are until it "
			"ends. */\nint %s_start(", name);
	put_args(out, x, upper);
	str_printf(out,
		";\n/* Continues with at most so many chunks of the run: %s_MORE "
		"until all are done. */\n"
		"int %s_run_some(%s_net *n, int64_t chunks);\n"
		"const char *%s_error(int code);\n",
		upper, name, name, name);
}

void export_header(str *out, const export_net *x)
{
	const char *name = x->job->name, *upper = export_upper(out->a, name);
	static const char *const weights[] = {[EXPORT_ARRAY] = "_weights",
		[EXPORT_INCBIN] = "_weights",
		[EXPORT_FILE] = " of the file"};

	str_printf(out,
		"/*\n"
		" * %s.h: a program that tenon export --c made, for the machine "
		"%s.\n"
		" *\n",
		name, export_machines(x));
	put_io_comment(out, x);
	str_printf(out,
		" *\n"
		" *     static %s arena[%s_ARENA_BYTES%s];\n"
		" *     %s_net net;\n"
		" *     %s_init(&net, arena, sizeof arena, %s, "
		"%s_WEIGHTS_BYTES);\n"
		" *     %s_%s(&net",
		x->job->plain ? "uint64_t" : "_Alignas(64) unsigned char",
		upper, x->job->plain ? " / 8" : "", name, name,
		x->weights_bytes == 0
			? "NULL"
			: arena_printf(out->a, "%s%s", name,
				  weights[x->job->weights]),
		upper, name, export_verb(x));
	for (int32_t i = 0; i < x->n_io; i++)
		str_printf(out, ", %s", x->io[i].ident);
	str_printf(out,
		");\n"
		" *\n"
		" * It allocates nothing, and calls memcpy and memset only%s",
		x->libm[0] != NULL ? ", and of libm" : ".\n");
	for (int32_t i = 0; x->libm[i] != NULL; i++)
		str_printf(out, "%s %s%s", i > 0 ? "," : "", x->libm[i],
			x->libm[i + 1] == NULL ? ".\n" : "");
	str_printf(out,
		" */\n"
		"#ifndef %s_H\n"
		"#define %s_H\n"
		"\n"
		"#include <stddef.h>\n"
		"#include <stdint.h>\n"
		"\n"
		"#ifdef __cplusplus\n"
		"extern \"C\" {\n"
		"#endif\n"
		"\n"
		"/* Compilers see arrays that are too short. */\n"
		"#if defined(__cplusplus) || defined(%s_UNCHECKED)\n"
		"#define %s_AT_LEAST(n) n\n"
		"#else\n"
		"#define %s_AT_LEAST(n) static n\n"
		"#endif\n"
		"\n",
		upper, upper, upper, upper, upper);
	put_sizes(out, x, upper);
	export_isa_sizes(out, x);
	export_state_sizes(out, x, upper);
	export_strings_sizes(out, x, upper);
	put_codes(out, name, upper);
	put_state(out, x);
	put_functions(out, x, upper);
	export_strings_functions(out, x, upper);
	str_add(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
