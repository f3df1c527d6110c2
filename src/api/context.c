/*
 * context.c: contexts, and functions that need only a context.
 */
#include "api/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define QUOTE_(x) #x
#define QUOTE(x) QUOTE_(x)

const char *tn_version(void)
{
	return QUOTE(TN_VERSION_MAJOR) "." QUOTE(TN_VERSION_MINOR) "." QUOTE(
		TN_VERSION_PATCH);
}

static bool is_dtype(tn_dtype t)
{
	return (unsigned)t < TN_N_DTYPES;
}

const char *tn_dtype_name(tn_dtype t)
{
	return is_dtype(t) ? dtype_name(t) : NULL;
}

size_t tn_dtype_bytes(tn_dtype t)
{
	return is_dtype(t) ? dtype_size(t) : 0;
}

bool tn_dtype_is_float(tn_dtype t)
{
	return is_dtype(t) && dtype_is_float(t);
}

bool tn_dtype_is_int(tn_dtype t)
{
	return is_dtype(t) && dtype_is_int(t);
}

/* ---- contexts ---- */

/* The absolute path; "" for "". */
static const char *absolute(arena *a, const char *path)
{
	char here[4096];

	if (path[0] == '\0' || path[0] == '/')
		return arena_strdup(a, path);
	if (getcwd(here, sizeof here) == NULL)
		env_fail(arena_env(a), TN_EIO, "run.cache",
			(loc){.file = path}, "the directory that this path "
			"is relative to is not known");
	return arena_printf(a, "%s/%s", here, path);
}

static tn_status no_memory(void)
{
	return api_fail_alone(TN_ENOMEM, "memory", "out of memory for a context");
}

/* Reads TENON_RUN, for programs that have no option for it. */
static void read_run(tn_context *c)
{
	const char *how = getenv("TENON_RUN");

	if (how == NULL || how[0] == '\0')
		return;
	if (strcmp(how, "interp") != 0)
		env_fail(c->e, TN_EINVAL, "context.run", (loc){0},
			"TENON_RUN is \"%.60s\": interp is accepted, for the "
			"interpreter; without the variable kernels are "
			"compiled", how);
	c->o.interp = true;
}

/* Is the variable 1? what: what 1 is accepted for. */
static bool is_on(tn_context *c, const char *name, const char *rule, const char *what)
{
	const char *on = getenv(name);

	if (on == NULL || on[0] == '\0' || strcmp(on, "0") == 0)
		return false;
	if (strcmp(on, "1") != 0)
		env_fail(c->e, TN_EINVAL, rule, (loc){0},
			"%s is \"%.60s\": 1 is accepted, to %s, and 0", name, on, what);
	return true;
}

/* TENON_VERIFY: what the option verify does, and kernels in kern, too. */
static void read_verify(tn_context *c)
{
	if (is_on(c, "TENON_VERIFY", "context.verify",
		    "check every level after the pass that made it"))
		c->o.verify = c->verify_kern = true;
}

static void read_tf32(tn_context *c)
{
	c->o.tf32 |= is_on(c, "TENON_TF32", "context.tf32",
		"round the factors of products in f32 on GPUs");
}

/* TENON_PROGRAMS_MB: how much the programs of one model may take. */
static void read_programs(tn_context *c)
{
	const char *text = getenv("TENON_PROGRAMS_MB");
	char *end;
	long n;

	if (text == NULL || text[0] == '\0')
		text = "1024";
	errno = 0;
	n = strtol(text, &end, 10);
	if (*end != '\0' || errno != 0 || n < 0 || n > 1 << 30)
		env_fail(c->e, TN_EINVAL, "context.programs", (loc){0},
			"TENON_PROGRAMS_MB is \"%.60s\": accepted is a number "
			"of megabytes, 0 to 2^30", text);
	c->program_bytes = (size_t)n << 20;
}

static void open_context(void *arg)
{
	tn_context *c = arg;

	c->a = arena_new(c->e);
	if (c->o.cache_dir != NULL)
		c->o.cache_dir = absolute(c->a, c->o.cache_dir);
	c->dump = compile_dump_read(c->a);
	if (c->dump.dir != NULL)
		c->dump.dir = absolute(c->a, c->dump.dir);
	read_run(c);
	read_verify(c);
	read_tf32(c);
	read_programs(c);
	api_device_open(c);
}

tn_status tn_context_new(tn_context **out, const tn_options *options)
{
	static const tn_options defaults = TN_OPTIONS_INIT;
	const tn_options *o = options != NULL ? options : &defaults;
	tn_context *c;
	tn_status status;
	env *e;

	*out = NULL;
	if (o->n_bytes != sizeof *o)
		return api_fail_alone(TN_EINVAL, "context.options",
			"the options have %zu bytes, not %zu: start from "
			"TN_OPTIONS_INIT", o->n_bytes, sizeof *o);
	e = o->memory.resize != NULL ? env_new_with(&o->memory) : env_new();
	if (e == NULL)
		return no_memory();
	c = o->memory.resize != NULL
		    ? o->memory.resize(o->memory.arg, NULL, sizeof *c)
		    : malloc(sizeof *c);
	if (c == NULL) {
		env_free(e);
		return no_memory();
	}
	*c = (tn_context){.e = e, .o = *o};
	status = env_run(e, open_context, c);
	if (status < 0) {
		const tn_diag d = *env_diag(e);

		tn_context_free(c);
		return api_fail_alone(status, d.rule, "%s", d.text);
	}
	*out = c;
	return TN_OK;
}

void tn_context_free(tn_context *c)
{
	tn_allocator m;

	if (c == NULL)
		return;
	m = c->o.memory;
	tensors_end(c->t);
	api_context_ends(c);
	api_carrier_close(c);
	api_shard_close(c);
	arena_free(c->a);
	env_free(c->e);
	if (m.resize != NULL)
		m.resize(m.arg, c, 0);
	else
		free(c);
}

const char *tn_context_note(const tn_context *c)
{
	if (c == NULL)
		return NULL;

	const char *note =
		c->jit != NULL ? run_jit_stats(c->jit)->note : NULL;

	return note != NULL ? note : "";
}

void tn_context_stats(const tn_context *c, tn_stats *out)
{
	if (c == NULL)
		return;

	*out = c->stats;
	if (c->t != NULL) {
		tensor_stats s = tensor_get_stats(c->t);

		out->n_calls = s.n_calls;
		out->n_flushes = s.n_flushes;
		out->n_plan_hits = s.n_plan_hits;
		out->n_plan_misses = s.n_plan_misses;
		out->n_copies = s.n_copies;
		out->copied_bytes = s.copied_bytes;
		out->bytes_live = s.bytes_live;
		out->bytes_peak = s.bytes_peak;
		out->bytes_cached = s.bytes_cached;
		out->bytes_kept = s.bytes_kept;
		out->n_again = s.n_again;
		out->n_tensors = s.n_tensors;
	}
	if (c->jit != NULL || c->device->stats != NULL) {
		const run_stats *s = c->device->stats != NULL
			? c->device->stats(c->device)
			: run_jit_stats(c->jit);

		out->n_compiled = s->n_compiled;
		out->n_disk_hits = s->n_disk_hits;
		out->n_memory_hits = s->n_memory_hits;
		out->compile_ms = s->compile_ms;
		out->load_ms = s->load_ms;
	}
}

struct ops_call {
	tn_context *c;
	char **out;
	bool markdown;
};

static void ops(void *arg)
{
	struct ops_call *o = arg;
	arena *a = arena_child(o->c->a);
	str s = str_new(a);

	compile_ops_text(&s, ir_table_new(a), o->markdown);
	*o->out = api_text(o->c, &s);
	arena_free(a);
}

tn_status tn_ops_text(char **out, tn_context *c, bool markdown)
{
	struct ops_call o = {c, out, markdown};

	*out = NULL;
	return api_call(c, ops, &o);
}
