/*
 * unit.c: NAME.c: helpers and kernels, the calls, and the functions of NAME.h.
 */
#include "export/templates.h"

#include <inttypes.h>

/* ---- kernels ---- */

/* Is this function called? Those that only copy constants were run already. */
static bool is_called(const export_net *x, int32_t v, const char *name, size_t n)
{
	for (int32_t i = 0; i < x->plan.n; i++) {
		const xplan *p = x->plan.at[i];

		for (int32_t j = 0; p->variant == v && j < p->part.n; j++) {
			const part *t = &p->part.at[j];
			const char *fn;

			if (t->kind != PART_PHASE)
				continue;
			fn = p->p->launch.at[t->launch].code->phase[t->phase].fn;
			if (strlen(fn) == n && memcmp(fn, name, n) == 0)
				return true;
		}
	}
	return false;
}

/* The text without functions that nothing calls: each ends with a brace alone. */
static const char *without_unused(
	const export_net *x, int32_t v, const char *text)
{
	static const char begin[] = "KERNEL void ";
	str out = str_new(x->a);

	for (const char *at = text;;) {
		const char *next = strstr(at, begin), *end, *name;

		if (next == NULL) {
			str_add(&out, at);
			return out.at;
		}
		str_addn(&out, at, (size_t)(next - at));
		end = strstr(next, "\n}\n");
		end = end != NULL ? end + 3 : next + strlen(next);
		name = next + sizeof begin - 1;
		if (is_called(x, v, name, strcspn(name, "(")))
			str_addn(&out, next, (size_t)(end - next));
		at = end;
	}
}

/* Helpers and kernels of a variant. */
static const char *code_of(export_net *x, int32_t v)
{
	const c_kernel **k;
	int32_t n = 0, room = 0;
	str text = str_new(x->a);

	for (int32_t i = 0; i < x->plan.n; i++)
		room += x->plan.at[i]->p->kernel.n;
	k = arena_array(x->a, const c_kernel *, room + 1);
	for (int32_t i = 0; i < x->plan.n; i++)
		for (int32_t j = 0; x->plan.at[i]->variant == v &&
			j < x->plan.at[i]->p->kernel.n; j++)
			k[n++] = x->plan.at[i]->p->kernel.at[j].code;
	x->variant[v]->p->target->unit(&text, k, n);
	return text.at != NULL ? without_unused(x, v, text.at) : "";
}

/* All of the text that depends on the plans. */
static void make_code(export_net *x)
{
	int32_t n = x->job->n_variants;
	const char **code = arena_array(x->a, const char *, n);
	str text = str_new(x->a), libm = str_new(x->a);

	export_rows(&text, x);
	str_add(&text, "\n/* Not an error: a test ended a loop. */\n"
		       "enum { ENDED = -1 };\n");
	for (int32_t v = 0; v < n; v++) {
		code[v] = code_of(x, v);
		if (n > 1)
			code[v] = export_isa_split(&libm, code[v]);
	}
	str_add(&text, libm.at != NULL ? libm.at : "");
	for (int32_t v = 0; v < n; v++) {
		export_isa_begin(&text, x, v, code[v]);
		str_add(&text, "\n/* ---- helpers and kernels ---- */\n\n");
		str_add(&text, code[v]);
		str_add(&text, "\n/* ---- what is called when ---- */\n");
		export_calls(&text, x, v);
		export_isa_end(&text, x, v, code[v]);
	}
	export_isa_choice(&text, x);
	x->code = text.at;
}

/* The functions that the helpers declare: of libm. Each is there once. */
static void find_libm(export_net *x)
{
	map *seen = map_new(x->a);
	VEC(const char *) name = {0};

	for (const char *s = x->code; s != NULL;
		s = strchr(s, '\n') != NULL ? strchr(s, '\n') + 1 : NULL) {
		const char *end = strchr(s, '(');
		const char *begin = end, *fn;

		if (strncmp(s, "extern ", 7) != 0 || end == NULL)
			continue;
		while (begin > s && begin[-1] != ' ')
			begin--;
		fn = arena_strndup(x->a, begin, (size_t)(end - begin));
		if (map_get_str(seen, fn, 0) == 0)
			*vec_push(x->a, &name) = fn;
		map_set_str(seen, fn, 1);
	}
	*vec_push(x->a, &name) = NULL;
	x->libm = name.at;
}

/* ---- state ---- */

static void put_fits(str *out, const export_net *x, const char *upper)
{
	if (x->weights_bytes == 0) {
		str_add(out,
			"\n/* There are no weights. */\n"
			"static int fits(const unsigned char *w, size_t n)\n"
			"{\n"
			"	return w == NULL && n == 0;\n"
			"}\n");
		return;
	}
	str_printf(out,
		"\n/* Are they the weights of this program? */\n"
		"static int fits(const unsigned char *w, size_t n)\n"
		"{\n"
		"	uint32_t version, vector;\n"
		"	uint64_t bytes, id;\n"
		"\n"
		"	if (w == NULL || n < %s_WEIGHTS_BYTES ||\n"
		"		w[0] != 'T' || w[1] != 'N' || w[2] != 'E' ||\n"
		"		w[3] != 'X' || w[4] != 'P' || w[5] != 'O' ||\n"
		"		w[6] != 'R' || w[7] != 'T')\n"
		"		return 0;\n"
		"	memcpy(&version, w + 8, 4);\n"
		"	memcpy(&vector, w + 12, 4);\n"
		"	memcpy(&bytes, w + 16, 8);\n"
		"	memcpy(&id, w + 24, 8);\n"
		"	return version == %d && vector == %d &&\n"
		"		bytes == %s_WEIGHTS_BYTES && id == %s_WEIGHTS_ID;\n"
		"}\n",
		upper, EXPORT_VERSION, (int)x->job->vector_bytes, upper, upper);
}

static void put_alone(str *out, const export_net *x)
{
	str_printf(out,
		"\nstatic void run_chunks(%s_net *n, int64_t end)\n"
		"{\n"
		"	run(n)(n->part, (char *)n->arena, (char *)n->weights, "
		"n->io,\n"
		"		n->arena + %zu, n->chunk, end, &n->error);\n"
		"}\n",
		x->job->name, x->fixed_bytes);
}

static void put_shared(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;
	size_t local = export_up(x->local_bytes);

	str_printf(out,
		"\n/* Of each thread: local memory, then what it found wrong. "
		"*/\n"
		"static unsigned char *own(const %s_net *n, int worker)\n"
		"{\n"
		"	return n->arena + %zu + (size_t)worker * "
		"%s_THREAD_BYTES;\n"
		"}\n"
		"\n"
		"static int64_t *error_of(const %s_net *n, int worker)\n"
		"{\n"
		"	return (int64_t *)(void *)(own(n, worker) + %zu);\n"
		"}\n"
		"\n"
		"static void run_one(void *arg, int64_t chunk, int worker)\n"
		"{\n"
		"	%s_net *n = arg;\n"
		"\n"
		"	chunk += n->chunk;\n"
		"	run(n)(n->part, (char *)n->arena, (char *)n->weights, "
		"n->io,\n"
		"		own(n, worker), chunk, chunk + 1, error_of(n, "
		"worker));\n"
		"}\n",
		name, x->fixed_bytes, upper, name, local, name);
	str_printf(out,
		"\nstatic void run_chunks(%s_net *n, int64_t end)\n"
		"{\n"
		"	int i;\n"
		"\n"
		"	for (i = 0; i == 0 || i < n->n_workers; i++)\n"
		"		*error_of(n, i) = 0;\n"
		"	if (n->n_workers > 1 && !serial(n))\n"
		"		n->parallel(n->user, end - n->chunk, run_one, n);\n"
		"	else\n"
		"		run(n)(n->part, (char *)n->arena,\n"
		"			(char *)n->weights, n->io, own(n, 0), "
		"n->chunk, end,\n"
		"			error_of(n, 0));\n"
		"	for (i = 0; i == 0 || i < n->n_workers; i++)\n"
		"		if (*error_of(n, i) != 0)\n"
		"			n->error = *error_of(n, i);\n"
		"}\n",
		name);
	str_printf(out,
		"\nint %s_set_parallel(%s_net *n, %s_parallel *fn, void *user, "
		"int n_workers)\n"
		"{\n"
		"	if (n->arena == NULL)\n"
		"		return %s_ESTATE;\n"
		"	if (n_workers < 1 || fn == NULL)\n"
		"		n_workers = 1;\n"
		"	if (n->arena_bytes < "
		"%s_ARENA_BYTES_FOR(n_workers))\n"
		"		return %s_EARENA;\n"
		"	n->parallel = fn;\n"
		"	n->user = user;\n"
		"	n->n_workers = n_workers;\n"
		"	return %s_OK;\n"
		"}\n",
		name, name, name, upper, upper, upper, upper);
}

/* Params that variant v has kept copies of. */
static void put_kept(str *out, const export_net *x, int32_t v)
{
	const xplan *n = x->variant[v];
	const char *which = x->job->n_variants == 1
		? ""
		: arena_printf(out->a, "n->isa == %d && ", (int)v);

	for (int32_t i = 0; i < n->part.n; i++) {
		const part *t = &n->part.at[i];

		if (t->kind == PART_SAVE)
			str_printf(out,
				"	if (%sn->part > %d)\n"
				"		memcpy(n->%s%zu%s, n->arena + "
				"%zu, %zu);\n",
				which, (int)i,
				t->from.kind == AT_ARENA ? "arena + " : "io[",
				t->from.at, t->from.kind == AT_ARENA ? "" : "]",
				t->to.at, t->bytes);
	}
}

static void put_fail(str *out, const export_net *x, const char *upper)
{
	str_printf(out,
		"\n/* An index was out of range: params are as they were before. "
		"*/\n"
		"static int fail(%s_net *n)\n"
		"{\n",
		x->job->name);
	for (int32_t v = 0; v < x->job->n_variants; v++)
		put_kept(out, x, v);
	str_printf(out,
		"	n->part = -1;\n"
		"	return %s_EINDEX;\n"
		"}\n",
		upper);
}

/* ---- start ---- */

static void put_pinned(str *out, const export_net *x, int32_t i,
	const char *upper)
{
	const xplan *n = x->main;
	int32_t k = x->io[i].input;
	size_t at = 0, bytes;

	if (k < 0 || n->pinned == NULL || !n->pinned[k])
		return;
	bytes = n->p->location[n->p->s->input.at[k]].bytes;
	if (bytes == 0)
		return;
	for (int32_t j = 0; j < x->constant.n; j++)
		if (x->constant.at[j].data == n->data[k])
			at = x->constant.at[j].at;
	str_printf(out,
		"	for (size_t k = 0; k < %zu; k++)\n"
		"		if (((const unsigned char *)n->io[%d])[k] !=\n"
		"			n->weights[%zu + k])\n"
		"			return %s_EVALUE;\n",
		bytes, (int)i, at, upper);
}

static void put_params(str *out, const export_net *x, const char *upper)
{
	str_printf(out, "%s_net *n", x->job->name);
	for (int32_t i = 0; i < x->n_io; i++) {
		const struct io *io = &x->io[i];

		str_printf(out, ",\n	%s%s ", io->written ? "" : "const ",
			export_c_type(io->t->dtype));
		if (io->t->numel == 0)
			str_printf(out, "*%s", io->ident);
		else
			str_printf(out, "%s[%s_%s_ELEMS]", io->ident, upper,
				export_upper(out->a, io->ident));
	}
	str_add(out, ")\n{\n");
}

static void put_start(str *out, const export_net *x, const char *upper)
{
	const char *name = x->job->name;

	str_printf(out, "\nint %s_start(", name);
	put_params(out, x, upper);
	str_add(out, "	static const unsigned char align[] = {");
	for (int32_t i = 0; i < x->n_io; i++)
		str_printf(out, " %d,",
			x->io[i].t->numel > 0
				? (int)dtype_size(x->io[i].t->dtype)
				: 0);
	str_printf(out,
		" 0 };\n"
		"	int i;\n"
		"\n"
		"	if (n->arena == NULL%s)\n"
		"		return %s_ESTATE;\n"
		"	n->part = -1;\n",
		x->state_bytes > 0 ? " || !n->has_state" : "", upper);
	for (int32_t i = 0; i < x->n_io; i++)
		str_printf(out, "	n->io[%d] = (void *)(uintptr_t)%s;\n",
			(int)i, x->io[i].ident);
	str_printf(out,
		"	for (i = 0; i < %d; i++)\n"
		"		if (align[i] != 0 && (n->io[i] == NULL ||\n"
		"			(uintptr_t)n->io[i] %% align[i] != 0))\n"
		"			return %s_EBUFFER;\n",
		(int)x->n_io, upper);
	for (int32_t i = 0; i < x->n_io; i++)
		put_pinned(out, x, i, upper);
	str_printf(out,
		"	n->part = 0;\n"
		"	n->chunk = 0;\n"
		"	n->error = 0;\n"
		"	return %s_OK;\n"
		"}\n",
		upper);
	str_printf(out, "\nint %s_%s(", name, export_verb(x));
	put_params(out, x, upper);
	str_printf(out, "	int code = %s_start(n", name);
	for (int32_t i = 0; i < x->n_io; i++)
		str_printf(out, ", %s", x->io[i].ident);
	str_printf(out,
		");\n"
		"\n"
		"	return code != %s_OK ? code : %s_run_some(n, "
		"INT64_MAX);\n"
		"}\n",
		upper, name);
}

void export_unit(str *out, export_net *x)
{
	const char *name = x->job->name, *upper = export_upper(out->a, name);

	str_printf(out,
		"/*\n"
		" * %s.c: a program that tenon export --c made, for the machine "
		"%s: see %s.h.\n"
		" *\n"
		" * Compilers must not change the order of its arithmetic: the "
		"flags that this needs\n"
		" * are in the Makefile, and below.\n"
		" */\n"
		"#define %s_UNCHECKED\n"
		"#include \"%s.h\"\n"
		"\n"
		"#include <string.h>\n"
		"\n"
		"#ifdef __FAST_MATH__\n"
		"#error \"-ffast-math changes results: compile without it\"\n"
		"#endif\n"
		"#if defined(__GNUC__) && !defined(__clang__)\n"
		"#pragma GCC optimize(\"fp-contract=off\", "
		"\"no-math-errno\", \\\n"
		"	\"no-trapping-math\", \"wrapv\", "
		"\"no-strict-aliasing\", \\\n"
		"	\"no-tree-vectorize\", "
		"\"no-tree-loop-distribution\", \\\n"
		"	\"no-tree-loop-distribute-patterns\")\n"
		"/* so that it keeps vectors in registers on AMD's processors */\n"
		"#if !defined(__AVX512F__) && (defined(__tune_znver1__) || \\\n"
		"	defined(__tune_znver2__) || defined(__tune_znver3__) || "
		"\\\n"
		"	defined(__tune_znver4__) || defined(__tune_znver5__))\n"
		"#pragma GCC target(\"tune=generic\")\n"
		"#endif\n"
		"#elif defined(__clang__)\n"
		"#pragma STDC FP_CONTRACT OFF\n"
		"#endif\n"
		"/* aligned: as fast whatever code stands before it */\n"
		"#define KERNEL static%s\n",
		name, export_machines(x), name, upper, name,
		x->job->plain ? ""
			      : " __attribute__((noinline, aligned(64)))");
	str_add(out, x->code);
	put_fits(out, x, upper);
	if (x->job->threads == EXPORT_ALONE)
		put_alone(out, x);
	else
		put_shared(out, x, upper);
	put_fail(out, x, upper);
	put_start(out, x, upper);
	export_state_begin(out, x);
	if (x->state_bytes > 0)
		export_fill(out, x, export_state_c);
	if (x->weights_bytes > 0)
		export_fill(out, x, export_check_c);
	export_fill(out, x, export_run_c);
	export_strings_code(out, x);
}

export_net *export_new(arena *a, const export_job *job)
{
	export_net *x = arena_make(a, export_net);

	x->a = a;
	x->job = job;
	export_place(x);
	make_code(x);
	find_libm(x);
	export_pack(x);
	return x;
}
