/*
 * program.c: programs: parsed from text, compiled, and run on arrays.
 *
 *   tn_program_parse -> tn_program_compile -> tn_program_run, run, run ...
 */
#include "api/api.h"

#include "interp/interp.h"

#include <errno.h>
#include <stdio.h>

/* A .tn file is written by people: a larger one is a mistake. */
enum { MAX_FILE_BYTES = 64 << 20 };

/* ---- parse ---- */

struct parse_call {
	tn_context *c;
	const char *text, *file;
	size_t n;
	tn_program *p;
	arena *a;
};

tn_value *api_values(arena *a, const ir_program *ir, const int32_t *at,
	int32_t n)
{
	tn_value *out = arena_array(a, tn_value, n + 1);

	for (int32_t i = 0; i < n; i++) {
		const ir_value *v = &ir->value.at[at[i]];

		out[i].name = v->name;
		out[i].is_param = v->is_param;
		out[i].dtype = v->type.dtype;
		out[i].rank = v->type.rank;
		memcpy(out[i].shape, v->type.shape, sizeof out[i].shape);
		out[i].n_elems = shape_numel(v->type.shape, v->type.rank);
		out[i].n_bytes =
			(size_t)out[i].n_elems * dtype_size(v->type.dtype);
	}
	return out;
}

static void parse(void *arg)
{
	struct parse_call *k = arg;
	double start = compile_clock_ms();
	tn_program *p;

	if (k->n > 0)
		api_want(k->c, k->text, "text");
	if (k->a == NULL)
		k->a = arena_child(k->c->a);
	p = arena_make(k->a, tn_program);
	p->c = k->c;
	p->a = k->a;
	p->ir = ir_program_parse(k->a, k->text != NULL ? k->text : "", k->n,
		k->file != NULL ? arena_strdup(k->a, k->file) : NULL, interp_loop);
	if (k->c->o.verify)
		ir_program_verify(p->ir);
	p->in = api_values(k->a, p->ir, p->ir->input.at, p->ir->input.n);
	p->out = api_values(k->a, p->ir, p->ir->output.at, p->ir->output.n);
	p->n_free = p->ir->input.n;
	p->n_out = p->ir->output.n;
	k->c->stats.parse_ms += compile_clock_ms() - start;
	k->p = p;
}

static tn_status finish_parse(struct parse_call *k, tn_status s,
	tn_program **out)
{
	if (s < 0)
		arena_free(k->a);
	else
		*out = k->p;
	return s;
}

tn_status tn_program_parse(tn_program **out, tn_context *c, const char *text,
	size_t n_bytes, const char *file)
{
	struct parse_call k = {.c = c, .text = text, .n = n_bytes,
		.file = file};

	*out = NULL;
	return finish_parse(&k, api_call(c, parse, &k), out);
}

static void close_file(void *f)
{
	fclose(f);
}

/* Reads a file, or standard input if its name is "-". */
static str read_all(tn_context *c, arena *a, const char *path)
{
	bool standard = !strcmp(path, "-");
	FILE *f = standard ? stdin : fopen(path, "rb");
	loc at = {.file = path};
	str s;

	if (f == NULL)
		env_fail(c->e, TN_EIO, "file.read", at,
			"it cannot be opened: %s", strerror(errno));
	if (!standard)
		arena_defer(a, close_file, f);
	s = str_new(a);
	for (;;) {
		char part[16384];
		size_t n = fread(part, 1, sizeof part, f);

		str_addn(&s, part, n);
		if (s.n > MAX_FILE_BYTES)
			env_fail(c->e, TN_EINVAL, "file.size", at,
				"the file has more than %d MB, which is too "
				"large for a program",
				MAX_FILE_BYTES >> 20);
		if (n < sizeof part)
			break;
	}
	if (ferror(f))
		env_fail(c->e, TN_EIO, "file.read", at,
			"it cannot be read: %s", strerror(errno));
	return s;
}

static void load(void *arg)
{
	struct parse_call *k = arg;
	str s;

	api_want(k->c, k->file, "path");
	k->a = arena_child(k->c->a);
	s = read_all(k->c, k->a, k->file);
	k->text = s.at;
	k->n = s.n;
	if (!strcmp(k->file, "-"))
		k->file = "<stdin>";
	parse(k);
}

tn_status tn_program_load(tn_program **out, tn_context *c, const char *path)
{
	struct parse_call k = {.c = c, .file = path};

	*out = NULL;
	return finish_parse(&k, api_call(c, load, &k), out);
}

void tn_program_free(tn_program *p)
{
	if (p != NULL)
		arena_free(p->a);
}

int32_t tn_program_n_inputs(const tn_program *p)
{
	if (p == NULL)
		return 0;
	return p->n_free;
}

int32_t tn_program_n_outputs(const tn_program *p)
{
	if (p == NULL)
		return 0;
	return p->n_out;
}

const tn_value *tn_program_input(const tn_program *p, int32_t i)
{
	if (p == NULL)
		return NULL;
	return i >= 0 && i < p->n_free ? &p->in[i] : NULL;
}

const tn_value *tn_program_output(const tn_program *p, int32_t i)
{
	if (p == NULL)
		return NULL;
	return i >= 0 && i < p->n_out ? &p->out[i] : NULL;
}

/* ---- compile ---- */

void api_want_shapes(const tn_program *p)
{
	if (p->staged != NULL)
		env_fail(p->c->e, TN_EINVAL, "onnx.staged", (loc){0},
			"shapes of this model depend on its data: only "
			"tn_program_run_arrays can run it");
}

void api_want_numbers(const tn_program *p)
{
	if (p->strings != NULL)
		env_fail(p->c->e, TN_EINVAL, "export.dtype", (loc){0},
			"%.100s has strings, which a program knows by numbers "
			"that only this model gives them: export a part of it "
			"whose inputs and outputs are numbers "
			"(onnx.utils.extract_model writes one), and look "
			"strings up around it; or export C, which has a table "
			"of them",
			p->strings);
}

static compilation *made_of(tn_program *p)
{
	tn_context *c = p->c;
	compile_options o;

	api_want_shapes(p);
	if (p->made != NULL)
		return p->made;
	o = api_compile_options(c);
	if (p->schedule.at != NULL) {
		o.schedule = p->schedule;
		o.n_pinned = NULL;
	}
	o.kern = p->kern;
	o.n_apart = p->apart.n;
	o.apart = p->apart.at;
	o.plan.single = p->single;
	p->made = compile_new(p->a, p->ir, &o);
	return p->made;
}

compilation *api_made(tn_program *p, tn_level level)
{
	compilation *m = made_of(p);

	api_compile_to(p->c, m, level);
	return m;
}

static void set_ranges(tn_program *p)
{
	ir_system *s = p->made->system;
	arena *tmp = arena_child(p->a);
	int64_t *lo = arena_array(tmp, int64_t, s->tensor.n + 1);
	int64_t *hi = arena_array(tmp, int64_t, s->tensor.n + 1);

	compile_index_ranges(s, lo, hi);
	for (int32_t i = 0; i < s->input.n; i++) {
		p->in[i].lo = lo[s->input.at[i]];
		p->in[i].hi = hi[s->input.at[i]];
	}
	arena_free(tmp);
}

struct pin_call {
	tn_context *c;
	tn_program *p; /* NULL: for programs that are not made yet */
	compile_text *to;
	const char *what;
	compile_text text;
	bool is_text;
};

static void pin(void *arg)
{
	struct pin_call *k = arg;
	arena *a = k->p != NULL ? k->p->a : k->c->a;

	if (k->is_text) {
		api_want(k->c, k->text.at, "text");
	} else {
		str s;

		api_want(k->c, k->text.file, "path");
		s = read_all(k->c, a, k->text.file);
		k->text.at = s.at;
		k->text.n = s.n;
		if (!strcmp(k->text.file, "-"))
			k->text.file = "<stdin>";
	}
	if (k->p != NULL && k->p->made != NULL)
		env_fail(k->c->e, TN_EINVAL,
			arena_printf(a, "%s.late", k->what), (loc){0},
			"the program is compiled already: set its %s "
			"right behind tn_program_parse or tn_program_load",
			k->what);
	*k->to = (compile_text){arena_strndup(a, k->text.at, k->text.n),
		arena_strdup(a, k->text.file != NULL ? k->text.file : k->what),
		k->text.n, NULL};
}

static tn_status pin_text(struct pin_call k, const char *text, size_t n,
	const char *file)
{
	k.text = (compile_text){text != NULL || n > 0 ? text : "", file, n,
		NULL};
	k.is_text = true;
	return api_call(k.c, pin, &k);
}

static tn_status pin_file(struct pin_call k, const char *path)
{
	k.text.file = path;
	return api_call(k.c, pin, &k);
}

tn_status tn_program_set_schedule(
	tn_program *p, const char *text, size_t n_bytes, const char *file)
{
	if (p == NULL)
		return api_null("the program");
	return pin_text((struct pin_call){.c = p->c, .p = p,
			.to = &p->schedule, .what = "schedule"}, text,
		n_bytes, file);
}

tn_status tn_program_load_schedule(tn_program *p, const char *path)
{
	if (p == NULL)
		return api_null("the program");
	return pin_file((struct pin_call){.c = p->c, .p = p,
			.to = &p->schedule, .what = "schedule"}, path);
}

tn_status tn_context_set_schedule(
	tn_context *c, const char *text, size_t n_bytes, const char *file)
{
	if (c == NULL)
		return api_null("the context");
	return pin_text((struct pin_call){.c = c, .to = &c->schedule,
			.what = "schedule"},
		text, n_bytes, file);
}

tn_status tn_context_load_schedule(tn_context *c, const char *path)
{
	if (c == NULL)
		return api_null("the context");
	return pin_file((struct pin_call){.c = c, .to = &c->schedule,
			.what = "schedule"},
		path);
}

tn_status tn_program_set_kern(
	tn_program *p, const char *text, size_t n_bytes, const char *file)
{
	if (p == NULL)
		return api_null("the program");
	return pin_text((struct pin_call){.c = p->c, .p = p,
			.to = &p->kern, .what = "kern"}, text,
		n_bytes, file);
}

tn_status tn_program_load_kern(tn_program *p, const char *path)
{
	if (p == NULL)
		return api_null("the program");
	return pin_file((struct pin_call){.c = p->c, .p = p,
			.to = &p->kern, .what = "kern"}, path);
}

static void compile_native(tn_program *p)
{
	(void)api_made(p, TN_LEVEL_SYSTEM);
	set_ranges(p);
	p->exec = api_compile(p->c, p->a, p->made);
	if (p->lean && p->c->profile == NULL)
		compile_drop_kernels(p->made);
}

/* The interpreter only needs the ranges of indices. */
static void compile_interp(tn_program *p)
{
	(void)api_made(p, TN_LEVEL_SYSTEM);
	set_ranges(p);
}

static void compile(void *arg)
{
	tn_program *p = arg;

	/* a program whose shapes follow from data is compiled when it runs */
	if (p->ready || p->staged != NULL)
		return;
	if (p->c->o.interp)
		compile_interp(p);
	else
		compile_native(p);
	p->ready = true;
}

tn_status tn_program_compile(tn_program *p)
{
	if (p == NULL)
		return api_null("the program");
	return api_call(p->c, compile, p);
}

/* ---- run ---- */

struct run_call {
	tn_program *p;
	const void *const *in;
	void *const *out;
};

static bool share_bytes(const void *x, size_t nx, const void *y, size_t ny)
{
	uintptr_t a = (uintptr_t)x, b = (uintptr_t)y;

	return a < b + ny && b < a + nx;
}

/* A kernel writes an output while it and others still read and write the rest. */
static void check_apart(const struct run_call *r)
{
	const tn_program *p = r->p;

	for (int32_t i = 0; i < p->ir->output.n; i++) {
		const tn_value *y = &p->out[i];

		if (y->n_bytes == 0) /* its pointer may be anything */
			continue;
		for (int32_t j = 0; j < p->n_free; j++)
			if (p->in[j].n_bytes > 0 && share_bytes(r->out[i],
				    y->n_bytes, r->in[j], p->in[j].n_bytes))
				env_fail(p->c->e, TN_EINVAL, "program.overlap",
					(loc){0}, "the array of output %s overlaps "
					"that of input %s: an output needs memory "
					"of its own", y->name, p->in[j].name);
		for (int32_t j = 0; j < i; j++)
			if (p->out[j].n_bytes > 0 && share_bytes(r->out[i],
				    y->n_bytes, r->out[j], p->out[j].n_bytes))
				env_fail(p->c->e, TN_EINVAL, "program.overlap",
					(loc){0}, "the arrays of outputs %s and %s "
					"overlap: an output needs memory of its "
					"own", p->out[j].name, y->name);
	}
}

static void check_arrays(const struct run_call *r)
{
	const tn_program *p = r->p;

	for (int32_t i = 0; i < p->n_free; i++)
		if (p->in[i].n_elems > 0 &&
			(r->in == NULL || r->in[i] == NULL))
			env_fail(p->c->e, TN_EINVAL, "api.null", (loc){0},
				"the array of input %s is NULL", p->in[i].name);
	for (int32_t i = 0; i < p->ir->output.n; i++)
		if (p->out[i].n_elems > 0 &&
			(r->out == NULL || r->out[i] == NULL))
			env_fail(p->c->e, TN_EINVAL, "api.null", (loc){0},
				"the array of output %s is NULL",
				p->out[i].name);
	check_apart(r);
}

/* The arrays of the caller, then bound ones. */
static const void *const *all_inputs(const struct run_call *r)
{
	tn_program *p = r->p;

	if (p->bound == NULL)
		return r->in;
	for (int32_t i = 0; i < p->ir->input.n; i++)
		p->all[i] = i < p->n_free ? r->in[i] : p->bound[i];
	for (int32_t i = 0; i < p->n_free; i++)
		if (p->pinned[i] && memcmp(p->all[i], p->bound[i],
					    p->in[i].n_bytes) != 0)
			env_fail(p->c->e, TN_EINVAL, "onnx.pinned", (loc){0},
				"input %s decided shapes when the program was "
				"built and has another value now: build it "
				"again",
				p->in[i].name);
	return p->all;
}

void api_run(tn_program *p, const void *const *inputs, void *const *outputs)
{
	const struct run_call r = {p, inputs, outputs};
	const void *const *in;

	api_want_shapes(p);
	check_arrays(&r);
	compile(p);
	in = all_inputs(&r);
	if (p->c->o.interp)
		interp_run(p->c->e, p->ir, in, outputs);
	else
		api_exec_run_host(p->c, p->exec, in, p->version, outputs);
}

static void run(void *arg)
{
	const struct run_call *r = arg;

	api_run(r->p, r->in, r->out);
}

tn_status tn_program_run(
	tn_program *p, const void *const *inputs, void *const *outputs)
{
	if (p == NULL)
		return api_null("the program");

	struct run_call r = {p, inputs, outputs};

	return api_call(p->c, run, &r);
}

/* ---- explain ---- */

struct explain_call {
	tn_program *p;
	tn_level level;
	uint32_t flags;
	char **out;
};

static void explain(void *arg)
{
	struct explain_call *k = arg;
	arena *a = arena_child(k->p->a);
	str s = str_new(a);

	if ((unsigned)k->level > TN_LEVEL_C)
		env_fail(k->p->c->e, TN_EINVAL, "api.level", (loc){0},
			"there is no level %d", (int)k->level);
	compile_explain(&s, api_made(k->p, compile_level_needed(k->level)), k->level,
		k->flags);
	*k->out = api_text(k->p->c, &s);
	arena_free(a);
}

tn_status tn_program_explain(
	char **out, tn_program *p, tn_level level, uint32_t flags)
{
	if (p == NULL) {
		*out = NULL;
		return api_null("the program");
	}

	struct explain_call k = {p, level, flags, out};

	*out = NULL;
	return api_call(p->c, explain, &k);
}
