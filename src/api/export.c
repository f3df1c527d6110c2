/*
 * export.c: tn_program_export_c: compiles a program for export, makes what its test
 * expects, and writes the files.
 */
#include "api/export.h"

#include "export/export.h"
#include "file/disk.h"
#include "interp/interp.h"
#include "onnx/onnx.h"

#include <errno.h>
#include <sys/stat.h>

/* Constants beyond this are a file of their own. */
enum { MOST_ARRAY = 1 << 20 };
/* Operations that the interpreter is asked for. */
static const double MOST_INTERP = 1e8;

/* Steps of a test of what keeps a state; and many, if they do not take more
 * operations than this. */
enum { TEST_STEPS = 3, MANY_STEPS = 100 };
static const double MOST_MANY = 1e9;

/* ---- what is asked for ---- */

static bool is_name(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++) {
		bool letter = (s[i] >= 'a' && s[i] <= 'z') ||
			(s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_';

		if (!letter && (i == 0 || s[i] < '0' || s[i] > '9'))
			return false;
	}
	return n > 0 && n <= 48;
}

void api_export_check(api_export *k)
{
	const tn_export_options init = TN_EXPORT_INIT;
	tn_context *c = k->c;

	k->o = k->options != NULL ? *k->options : init;
	if (k->o.n_bytes != sizeof init ||
		(unsigned)k->o.weights > TN_EXPORT_AUTO ||
		(unsigned)k->o.threads > TN_EXPORT_PTHREAD ||
		(unsigned)k->o.by > TN_EXPORT_BY_NOTHING ||
		(unsigned)k->o.dialect > TN_EXPORT_C99 || k->o.n_kept < 0 ||
		(k->o.n_kept > 0 && k->o.kept == NULL) || k->o.n_others < 0 ||
		(k->o.n_others > 0 && k->o.others == NULL))
		env_fail(c->e, TN_EINVAL, "export.options", (loc){0},
			"the options are not those of this version: start from "
			"TN_EXPORT_INIT");
	if (k->o.name == NULL)
		k->o.name = "net";
	if (!is_name(k->o.name))
		env_fail(c->e, TN_EINVAL, "export.options", (loc){0},
			"\"%.60s\" cannot be the name of a program in C: up to "
			"48 letters, digits and _ are accepted, and no digit "
			"in front",
			k->o.name);
	if (k->o.dialect == TN_EXPORT_C99) {
		if (k->o.weights == TN_EXPORT_INCBIN)
			env_fail(c->e, TN_EINVAL, "export.options", (loc){0},
				"C99 without extensions has no file that an "
				"assembler includes: let the weights be an "
				"array or a file");
		k->o.no_fma = true;
	}
	if (k->o.int_size != 64 && k->o.int_size != 32)
		env_fail(c->e, TN_EINVAL, "export.options", (loc){0},
			"integers that address elements have 64 bits, or 32, "
			"not %d",
			(int)k->o.int_size);
	api_export_isas(k);
	if (k->o.size == NULL)
		api_want(c, k->dir, "the folder");
	if (!c->device->is_host || c->target != &c_gnu)
		env_fail(c->e, TN_EINVAL, "export.device", (loc){0},
			"the context makes kernels for %s, and only those of "
			"the CPU are plain C: use device cpu",
			api_device_name(c));
}

/* ---- compiling ---- */

static const export_plan *plan_of(tn_context *c, compilation *m)
{
	export_plan *e = arena_make(m->a, export_plan);
	const export_plan **body;

	api_compile_to(c, m, TN_LEVEL_C);
	e->p = m->plan;
	body = arena_array(m->a, const export_plan *, m->plan->launch.n + 1);
	for (int32_t i = 0; i < m->plan->launch.n; i++) {
		const ir_loop *l = plan_loop_of(m->plan, i);

		if (l != NULL)
			body[i] = plan_of(c, compile_body(m, l));
	}
	e->body = body;
	return e;
}

static compile_options options_of(const api_export *k, int32_t v)
{
	const tn_program *p = k->p;
	compile_options o = api_compile_options(k->c);

	if (k->variant[v].machine != NULL)
		o.machine = k->variant[v].machine;
	if (p == NULL)
		return o;
	if (p->schedule.at != NULL) {
		o.schedule = p->schedule;
		o.n_pinned = NULL;
	}
	o.kern = p->kern;
	o.n_apart = p->apart.n;
	o.apart = p->apart.at;
	return o;
}

/* 32 bits must suffice for all indices of all kernels. */
static void check_indices(const api_export *k, const compilation *m)
{
	for (int32_t i = 0; k->o.int_size == 32 && i < m->groups->kernel.n; i++)
		if (m->kernels[i] != NULL && !m->kernels[i]->narrow)
			env_fail(k->c->e, TN_EINVAL, "export.indices", (loc){0},
				"indices of the kernel %s may be above 2^31 - "
				"1, so integers of 32 bits do not suffice: use "
				"64 (--int-size 64), or smaller tensors",
				m->groups->kernel.at[i]->name);
	for (int32_t i = 0; i < m->body.n; i++)
		check_indices(k, m->body.at[i]);
}

static compilation *compiled(api_export *k, int32_t v)
{
	compile_options o = options_of(k, v);

	o.plan.max_units = 1;
	o.target = k->o.dialect == TN_EXPORT_C99 ? &c_apart_plain
		: k->variant[v].fused		 ? &c_apart
						 : &c_apart_unfused;
	return compile_new(k->a, k->ir, &o);
}

struct packers {
	tn_context *c;
	run_lib *lib;
};

static void compile_text_of(void *arg, const char *text)
{
	struct packers *k = arg;

	run_compile(api_jit(k->c), &text, 1, &k->lib);
}

static void find_function(void *arg, const char *name, void *fn)
{
	struct packers *k = arg;

	run_symbol(api_jit(k->c), k->lib, name, fn);
}

/* ---- the test ---- */

/* Arrays of a run: a param is written in a copy of its own. */
struct arrays {
	const void **in;
	void **out;
	const void **after;
};

static size_t bytes_of(const ir_program *p, int32_t value)
{
	return ir_type_bytes(&p->value.at[value].type);
}

static struct arrays new_arrays(api_export *k)
{
	const ir_program *p = k->ir;
	int32_t n_in = p->input.n, n_out = p->output.n;
	struct arrays r = {arena_array(k->a, const void *, n_in + 1),
		arena_array(k->a, void *, n_out + 1),
		arena_array(k->a, const void *, n_in + 1)};

	for (int32_t i = 0; i < n_in; i++) {
		int32_t at = p->input.at[i];
		size_t n = bytes_of(p, at);

		r.in[i] = k->test[i];
		if (n > 0)
			api_want(k->c, r.in[i], p->value.at[at].name);
		if (p->value.at[at].is_param && (k->data[i] == NULL ||
				(k->state != NULL && k->state[i])))
			r.in[i] = arena_copy(k->a, r.in[i], n > 0 ? n : 1);
		r.after[i] = r.in[i];
	}
	for (int32_t i = 0; i < n_out; i++)
		r.out[i] = arena_alloc(
			k->a, bytes_of(p, p->output.at[i]) + 1, 1);
	return r;
}

static bool has_state(const api_export *k)
{
	for (int32_t i = 0; k->state != NULL && i < k->ir->input.n; i++)
		if (k->state[i])
			return true;
	return false;
}

/* Runs compiled kernels of a variant, as one step after the other. */
static void run_kernels(
	api_export *k, const struct arrays *r, int32_t n_steps, int32_t v)
{
	tn_context *c = k->c;
	compile_options o = options_of(k, v);
	plan_exec *x;

	if (k->variant[v].fused && k->p != NULL &&
		k->variant[v].machine == NULL) {
		api_run(k->p, r->in, r->out);
		return;
	}
	if (!k->variant[v].fused)
		o.target = &c_unfused;
	x = api_compile(c, k->a, compile_new(k->a, k->ir, &o));
	for (int32_t i = 0; i < n_steps; i++)
		api_exec_run_host(c, x, r->in, NULL, r->out);
}

/* Without loops. */
static double work_of(const plan *p)
{
	double sum = 0;

	for (int32_t i = 0; i < p->launch.n; i++)
		sum += p->launch.at[i].code != NULL
			? (double)p->launch.at[i].code->flops
			: 0;
	return sum;
}

static bool is_long(const api_export *k, const plan *p)
{
	double sum = work_of(p);

	return k->o.by == TN_EXPORT_BY_KERNELS ||
	       (k->o.by == TN_EXPORT_BY_WORK && sum > MOST_INTERP);
}

/* The bits of each variant, from kernels or from the interpreter. */
static struct arrays set_bits(api_export *k, export_test *t)
{
	struct export_bits *b =
		arena_array(k->a, struct export_bits, k->n_variants);
	struct arrays first = {0};

	for (int32_t v = 0; v < k->n_variants; v++) {
		struct arrays r = new_arrays(k), many = {0};

		if (!k->c->o.interp)
			run_kernels(k, &r, t->n_steps, v);
		if (t->n_many > 0) {
			many = new_arrays(k);
			run_kernels(k, &many, t->n_many, v);
		}
		b[v] = (struct export_bits){(const void *const *)r.out,
			r.after, many.after};
		if (v == 0)
			first = r;
	}
	t->bits = b;
	return first;
}

/* The results of the interpreter, and of compiled kernels. */
static export_test *make_test(api_export *k, const plan *p)
{
	export_test *t = arena_make(k->a, export_test);
	tn_context *c = k->c;
	struct arrays want;

	t->in = k->test;
	t->by = "interpreter";
	t->n_steps = has_state(k) ? TEST_STEPS : 1;
	if (has_state(k) && !c->o.interp && MANY_STEPS * work_of(p) <= MOST_MANY)
		t->n_many = MANY_STEPS;
	want = set_bits(k, t);
	t->fused = c->o.interp ? -1
		: k->n_variants == 1 && k->variant[0].fused &&
			run_jit_target(api_jit(c))->fma;
	if (c->o.interp) {
		/* there are no kernels: nothing says what their bits are */
		for (int32_t i = 0; i < t->n_steps; i++)
			interp_run(c->e, k->ir, want.in, want.out);
	} else if (!is_long(k, p)) {
		want = new_arrays(k);
		for (int32_t i = 0; i < t->n_steps; i++)
			interp_run(c->e, k->ir, want.in, want.out);
	} else {
		t->by = "compiled kernels";
	}
	t->want = (const void *const *)want.out;
	t->after = want.after;
	return t;
}

/* ---- files ---- */

static void write_files(api_export *k, const export_files *f)
{
	if (mkdir(k->dir, 0777) < 0 && errno != EEXIST)
		env_fail(k->c->e, TN_EIO, "export.write",
			(loc){.file = k->dir}, "the folder cannot be made: %s",
			strerror(errno));
	for (int32_t i = 0; i < f->n; i++) {
		const export_file *file = &f->at[i];
		disk_part *part =
			arena_array(k->a, disk_part, file->n_pieces + 1);

		for (int32_t j = 0; j < file->n_pieces; j++)
			part[j] = (disk_part){file->piece[j].data,
				file->piece[j].n_bytes};
		disk_replace(k->a, "export",
			arena_printf(k->a, "%s/%s", k->dir, file->name), part,
			file->n_pieces);
	}
}

static export_weights weights_of(const api_export *k)
{
	size_t sum = 0;

	for (int32_t i = 0; i < k->ir->input.n; i++)
		if (k->data[i] != NULL &&
			(k->pinned == NULL || !k->pinned[i]))
			sum += bytes_of(k->ir, k->ir->input.at[i]);
	if (k->o.weights == TN_EXPORT_AUTO)
		return sum <= MOST_ARRAY ? EXPORT_ARRAY : EXPORT_FILE;
	return k->o.weights == TN_EXPORT_ARRAY	? EXPORT_ARRAY
	       : k->o.weights == TN_EXPORT_FILE ? EXPORT_FILE
						: EXPORT_INCBIN;
}

static const machine *machine_of_context(const api_export *k)
{
	return k->c->machine != NULL
		       ? k->c->machine
		       : api_machine(run_jit_target(api_jit(k->c)));
}

/* The machine of the context without its tile registers: a program must ask the
 * system for them before it uses them, and exported code asks for nothing. NULL: it
 * has none. */
static const machine *without_tiles(const api_export *k)
{
	const machine *m = machine_of_context(k);

	return m->tiles.rows == 0 ? NULL
				  : machine_of_c(m->vector_bytes,
					    m->vector_registers, MACHINE_ALL_DOTS);
}

/* A machine of the export's own: one element at a time; small: each loop as it is, in
 * one round of code; indices of 32 bits. NULL: that of the context. */
static const machine *machine_for(const api_export *k, const machine *m)
{
	machine *own;

	if (k->o.dialect == TN_EXPORT_C99 || k->o.small)
		m = machine_find("c/scalar");
	if (k->o.int_size != 32 && !k->o.small)
		return m == NULL ? without_tiles(k) : m;
	if (m == NULL)
		m = without_tiles(k);
	if (m == NULL)
		m = machine_of_context(k);
	own = arena_copy(k->a, m, sizeof *own);
	own->unscheduled = k->o.small;
	own->narrow_indices = k->o.int_size == 32;
	return own;
}

static void choose_variants(api_export *k)
{
	/* options.isas was read by api_export_isas */
	if (k->n_variants == 0) {
		k->n_variants = 1;
		k->variant[0] = (api_export_variant){
			.machine = machine_for(k, NULL),
			.fused = !k->o.no_fma};
		return;
	}
	for (int32_t v = 0; v < k->n_variants; v++) {
		api_export_variant *at = &k->variant[v];

		at->machine = machine_for(k, machine_find(at->isa->machine));
		at->fused = at->isa->fused && !k->o.no_fma;
	}
}

static void set_sizes(const api_export *k, export_job *job)
{
	export_size *s = arena_array(k->a, export_size, k->o.n_others + 1);

	for (int32_t i = 0; i < k->o.n_others; i++) {
		const tn_export_size *o = &k->o.others[i];

		s[i] = (export_size){o->memory_limit, o->arena_bytes,
			o->state_bytes, o->weights_bytes, o->flops, o->bytes};
	}
	job->n_others = k->o.n_others;
	job->others = s;
	job->memory_limit = k->c->o.memory_limit;
}

static void tell_size(const api_export *k, const export_net *x)
{
	export_size s = export_size_of(x);

	if (k->o.size != NULL)
		*k->o.size = (tn_export_size){s.memory_limit, s.arena_bytes,
			s.state_bytes, s.weights_bytes, s.flops, s.bytes};
}

static void compile_variants(api_export *k, export_job *job)
{
	export_variant *v = arena_array(k->a, export_variant, k->n_variants);

	for (int32_t i = 0; i < k->n_variants; i++) {
		compilation *m = compiled(k, i);

		v[i].plan = plan_of(k->c, m);
		v[i].machine = m->o.machine->name;
		v[i].isa = k->variant[i].isa;
		check_indices(k, m);
		job->fused = job->fused || k->variant[i].fused;
		if (m->o.machine->vector_bytes > job->vector_bytes)
			job->vector_bytes = m->o.machine->vector_bytes;
	}
	job->n_variants = k->n_variants;
	job->variant = v;
}

/* Of a model whose arrays have numbers of strings: all that it knows. */
static void set_strings(const api_export *k, export_job *job)
{
	const onnx_model *m = k->p != NULL && k->p->strings != NULL
		? k->p->model
		: NULL;
	int32_t n = m != NULL ? onnx_n_strings(m) : 0;
	export_string *s = arena_array(k->a, export_string, n + 1);

	for (int32_t i = 0; i < n; i++) {
		int64_t bytes;

		s[i].at = onnx_text_of(m, i, &bytes);
		s[i].n_bytes = (size_t)bytes;
	}
	job->n_strings = n;
	job->string = s;
	job->in_strings = n > 0 ? k->p->in_strings : NULL;
	job->out_strings = n > 0 ? k->p->out_strings : NULL;
}

void api_export_write(api_export *k)
{
	struct packers packers = {k->c, NULL};
	export_job job = {.jit = {compile_text_of, find_function, &packers}};
	export_net *x;
	export_files files;

	choose_variants(k);
	compile_variants(k, &job);
	job.name = k->o.name;
	job.data = k->data;
	job.state = k->state;
	job.pinned = k->pinned;
	job.weights = weights_of(k);
	job.threads = k->o.threads == TN_EXPORT_ALONE ? EXPORT_ALONE
		: k->o.threads == TN_EXPORT_CALLBACK  ? EXPORT_CALLBACK
						      : EXPORT_PTHREAD;
	job.plain = k->o.dialect == TN_EXPORT_C99;
	set_sizes(k, &job);
	set_strings(k, &job);
	x = export_new(k->a, &job);
	tell_size(k, x);
	if (k->dir == NULL)
		return;
	files = export_write(x, k->test != NULL
			? make_test(k, job.variant[0].plan->p)
			: NULL);
	write_files(k, &files);
}

static void write_program(void *arg)
{
	api_export *k = arg;
	tn_program *p = k->p;
	int32_t n = p->ir->input.n;
	const void **test, **data;

	api_export_check(k);
	api_want_shapes(p);
	k->a = arena_child(p->a);
	k->ir = p->ir;
	data = arena_array(k->a, const void *, n + 1);
	for (int32_t i = 0; i < n && p->bound != NULL; i++)
		if (i >= p->n_free || p->pinned[i])
			data[i] = p->bound[i];
	k->data = data;
	k->pinned = p->pinned;
	if (k->o.inputs != NULL && k->o.by != TN_EXPORT_BY_NOTHING) {
		test = arena_array(k->a, const void *, n + 1);
		for (int32_t i = 0; i < n; i++)
			test[i] = i < p->n_free ? k->o.inputs[i] : p->bound[i];
		k->test = test;
	}
	api_export_write(k);
}

tn_status tn_program_export_c(
	tn_program *p, const char *dir, const tn_export_options *options)
{
	if (p == NULL)
		return api_null("the program");

	api_export k = {.c = p->c, .dir = dir, .options = options, .p = p};
	tn_status s = api_call(p->c, write_program, &k);

	arena_free(k.a);
	return s;
}
