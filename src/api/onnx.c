/*
 * onnx.c: reads models of the ONNX format, takes values that determine shapes, and
 * builds programs.
 *
 *   tn_onnx_open -> tn_onnx_bind_dim, tn_onnx_give -> tn_onnx_build
 *
 * Elements of initialisers stay in the mapped file if possible, so a model must
 * live as long as its programs; tn_onnx_load gives the model to the program.
 */
#include "api/onnx.h"

#include <stdlib.h>

struct open_call {
	tn_context *c;
	const char *path;
	arena *a;
	tn_onnx *m;
};

static tn_onnx_port port_of(arena *a, const onnx_port *p)
{
	tn_onnx_port out = {.name = p->name, .rank = -1};
	str s = str_new(a);

	onnx_type_print(&s, &p->type);
	out.type = s.at;
	out.is_tensor = p->type.kind == ONNX_TENSOR;
	if (!out.is_tensor || !p->type.has_shape)
		return out;
	out.rank = p->type.rank;
	memcpy(out.shape, p->type.dim, sizeof out.shape);
	return out;
}

static void fill_ports(tn_onnx *m)
{
	int32_t n_in = onnx_n_inputs(m->m);
	int32_t n_out = onnx_n_outputs(m->m);

	m->in = arena_array(m->a, tn_onnx_port, n_in + 1);
	m->out = arena_array(m->a, tn_onnx_port, n_out + 1);
	m->given = arena_alloc(m->a, (size_t)n_in + 1, sizeof *m->given);
	for (int32_t i = 0; i < n_in; i++) {
		m->in[i] = port_of(m->a, onnx_input(m->m, i));
		if (m->in[i].is_tensor)
			onnx_port_dtype(onnx_input(m->m, i), &m->in[i].dtype);
	}
	for (int32_t i = 0; i < n_out; i++) {
		m->out[i] = port_of(m->a, onnx_output(m->m, i));
		if (m->out[i].is_tensor)
			onnx_port_dtype(onnx_output(m->m, i),
				&m->out[i].dtype);
	}
}

static void open_model(void *arg)
{
	struct open_call *k = arg;
	tn_onnx *m;

	api_want(k->c, k->path, "path");
	if (k->a == NULL)
		k->a = arena_child(k->c->a);
	m = arena_make(k->a, tn_onnx);
	m->c = k->c;
	m->a = k->a;
	m->m = onnx_open(k->a, arena_strdup(k->a, k->path));
	fill_ports(m);
	k->m = m;
}

tn_status tn_onnx_open(tn_onnx **out, tn_context *c, const char *path)
{
	struct open_call k = {.c = c, .path = path};
	tn_status s;

	*out = NULL;
	s = api_call(c, open_model, &k);
	if (s < 0)
		arena_free(k.a);
	else
		*out = k.m;
	return s;
}

void tn_onnx_free(tn_onnx *m)
{
	if (m != NULL)
		arena_free(m->a);
}

int32_t tn_onnx_n_inputs(const tn_onnx *m)
{
	if (m == NULL)
		return 0;
	return onnx_n_inputs(m->m);
}

int32_t tn_onnx_n_outputs(const tn_onnx *m)
{
	if (m == NULL)
		return 0;
	return onnx_n_outputs(m->m);
}

int64_t tn_onnx_opset(const tn_onnx *m, const char *domain)
{
	if (m == NULL || domain == NULL)
		return 0;
	return onnx_opset_of(
		m->m, strcmp(domain, "ai.onnx") == 0 ? "" : domain);
}

const tn_onnx_port *tn_onnx_input(const tn_onnx *m, int32_t i)
{
	if (m == NULL)
		return NULL;
	return i >= 0 && i < onnx_n_inputs(m->m) ? &m->in[i] : NULL;
}

const tn_onnx_port *tn_onnx_output(const tn_onnx *m, int32_t i)
{
	if (m == NULL)
		return NULL;
	return i >= 0 && i < onnx_n_outputs(m->m) ? &m->out[i] : NULL;
}

/* ---- what decides shapes ---- */

struct set_call {
	tn_onnx *m;
	const char *name;
	int64_t size;
	int32_t i, n;
	const tn_array *arrays;
};

/* Is it "x[0]", an axis of this input? */
static bool is_axis(const onnx_port *p, const char *name)
{
	size_t n = strlen(p->name);
	char *end = NULL;
	long k;

	if (strncmp(name, p->name, n) != 0 || name[n] != '[')
		return false;
	k = strtol(name + n + 1, &end, 10);
	return end > name + n + 1 && !strcmp(end, "]") && k >= 0 &&
	       (!p->type.has_shape || k < p->type.rank);
}

/* The model must have this dimension: "N", or "x[0]" of an input x. */
static void want_dim(const tn_onnx *m, const char *name)
{
	map *seen = map_new(m->a);
	str known = str_new(m->a);

	for (int32_t i = 0; i < onnx_n_inputs(m->m); i++) {
		const onnx_port *p = onnx_input(m->m, i);
		const onnx_type *t;

		if (is_axis(p, name))
			return;
		for (t = &p->type; t->of != NULL; t = t->of)
			;
		for (int32_t k = 0; k < t->rank; k++) {
			const char *dim = t->dim_name[k];

			if (dim == NULL || map_get_str(seen, dim, 0) != 0)
				continue;
			if (!strcmp(dim, name))
				return;
			map_set_str(seen, dim, 1);
			str_printf(&known, "%s%.60s", known.n > 0 ? ", " : "",
				dim);
		}
	}
	env_fail(m->c->e, TN_EINVAL, "onnx.dim", (loc){0},
		"the model has no dimension \"%.100s\"; it has %.400s", name,
		known.n > 0 ? known.at
			    : "none with a name: use NAME[0] for the first axis "
			      "of input NAME");
}

static void set_dim(void *arg)
{
	struct set_call *k = arg;

	api_want(k->m->c, k->name, "the dimension's name");
	if (k->size < 0)
		env_fail(k->m->c->e, TN_EINVAL, "onnx.dim", (loc){0},
			"the size %lld of dimension %.100s is negative",
			(long long)k->size, k->name);
	want_dim(k->m, k->name);
	*vec_push(k->m->a, &k->m->dim_name) =
		arena_strdup(k->m->a, k->name);
	*vec_push(k->m->a, &k->m->dim) = k->size;
}

tn_status tn_onnx_bind_dim(tn_onnx *m, const char *name, int64_t size)
{
	if (m == NULL)
		return api_null("the model");

	struct set_call k = {.m = m, .name = name, .size = size};

	return api_call(m->c, set_dim, &k);
}

static void want_number(const tn_onnx *m, int32_t i, int32_t n)
{
	if (i < 0 || i >= n)
		env_fail(m->c->e, TN_EINVAL, "onnx.input", (loc){0},
			"the model has %d of them; there is no number %d",
			(int)n, (int)i);
}

static onnx_array array_of(const tn_onnx *m, const tn_array *x)
{
	onnx_array out = {.data = x->data};

	if (tn_dtype_name(x->dtype) == NULL || x->rank < 0 ||
		x->rank > TN_MAX_RANK || shape_numel(x->shape, x->rank) < 0)
		env_fail(m->c->e, TN_EINVAL, "onnx.input", (loc){0},
			"the value that is given is not an array");
	out.type.dtype = x->dtype;
	out.type.rank = x->rank;
	memcpy(out.type.shape, x->shape, sizeof x->shape);
	return out;
}

static void give(void *arg)
{
	struct set_call *k = arg;
	tn_onnx *m = k->m;
	onnx_array *at;

	want_number(m, k->i, onnx_n_inputs(m->m));
	at = arena_array(m->a, onnx_array, k->n + 1);
	for (int32_t i = 0; i < k->n; i++)
		at[i] = array_of(m, &k->arrays[i]);
	m->given[k->i].is = true;
	m->given[k->i].n = k->n;
	m->given[k->i].at = at;
}

tn_status tn_onnx_give(
	tn_onnx *m, int32_t i, int32_t n, const tn_array *arrays)
{
	if (m == NULL)
		return api_null("the model");

	struct set_call k = {.m = m, .i = i, .n = n, .arrays = arrays};

	return api_call(m->c, give, &k);
}

void tn_onnx_fold(tn_onnx *m, int64_t n_elems)
{
	if (m == NULL)
		return;

	m->fold_from = n_elems;
}

void tn_onnx_train(tn_onnx *m, bool training, bool logits)
{
	if (m == NULL)
		return;

	m->training = training;
	m->logits = logits;
}

struct classes_call {
	tn_onnx *m;
	int64_t n;
	uint64_t seed;
};

static void set_classes(void *arg)
{
	struct classes_call *k = arg;

	k->m->m = onnx_classes(k->m->a, k->m->m, k->n, k->seed);
	fill_ports(k->m);
}

tn_status tn_onnx_classes(tn_onnx *m, int64_t n, uint64_t seed)
{
	if (m == NULL)
		return api_null("the model");

	struct classes_call k = {m, n, seed};

	return api_call(m->c, set_classes, &k);
}

struct string_call {
	tn_onnx *m;
	const char *text;
	size_t n_bytes;
	int32_t *out;
};

static void add_string(void *arg)
{
	struct string_call *k = arg;

	if (k->n_bytes > 0)
		api_want(k->m->c, k->text, "text");
	*k->out = onnx_model_string(k->m->m, k->text, k->n_bytes);
}

tn_status tn_onnx_string(
	int32_t *out, tn_onnx *m, const char *text, size_t n_bytes)
{
	*out = -1;
	if (m == NULL)
		return api_null("the model");

	struct string_call k = {m, text, n_bytes, out};

	return api_call(m->c, add_string, &k);
}

const char *tn_onnx_text(const tn_onnx *m, int32_t number, int64_t *n_bytes)
{
	*n_bytes = 0;
	if (m == NULL || number < 0 || number >= onnx_n_strings(m->m))
		return NULL;
	return onnx_text_of(m->m, number, n_bytes);
}

struct read_call {
	tn_onnx *m;
	bool is_output;
	int32_t i;
	const char *path;
	int32_t *n;
	const tn_array **arrays;
};

static void read_value(void *arg)
{
	struct read_call *k = arg;
	tn_onnx *m = k->m;
	const onnx_port *p;
	const onnx_array *at;
	tn_array *out;

	api_want(m->c, k->path, "path");
	want_number(m, k->i, k->is_output ? onnx_n_outputs(m->m)
					  : onnx_n_inputs(m->m));
	p = k->is_output ? onnx_output(m->m, k->i) : onnx_input(m->m, k->i);
	at = onnx_read_value(m->a, m->m, k->path, &p->type, k->n);
	out = arena_array(m->a, tn_array, *k->n + 1);
	for (int32_t i = 0; i < *k->n; i++) {
		const ir_type *t = &at[i].type;

		out[i].dtype = t->dtype;
		out[i].rank = t->rank;
		memcpy(out[i].shape, t->shape, sizeof t->shape);
		out[i].n_elems = shape_numel(t->shape, t->rank);
		out[i].n_bytes = (size_t)out[i].n_elems * dtype_size(t->dtype);
		out[i].data = (void *)(uintptr_t)at[i].data; /* only read */
	}
	*k->arrays = out;
}

tn_status tn_onnx_read(tn_onnx *m, bool is_output, int32_t i, const char *path,
	int32_t *n, const tn_array **arrays)
{
	if (m == NULL)
		return api_null("the model");

	struct read_call k = {m, is_output, i, path, n, arrays};

	*n = 0;
	*arrays = NULL;
	return api_call(m->c, read_value, &k);
}

/* ---- building ---- */

/* With all that was said of the model. */
static onnx_import *new_import(arena *a, const tn_onnx *m)
{
	onnx_import *x = onnx_import_new(a, m->m);

	onnx_fold_from(x, m->fold_from);
	onnx_train(x, m->training, m->logits);
	for (int32_t i = 0; i < m->dim.n; i++)
		onnx_bind_dim(x, m->dim_name.at[i], m->dim.at[i]);
	for (int32_t i = 0; i < onnx_n_inputs(m->m); i++)
		if (m->given[i].is)
			onnx_give(x, i, m->given[i].n, m->given[i].at);
	return x;
}

static void build(void *arg)
{
	struct api_onnx_build *k = arg;
	tn_onnx *m = k->m;
	double start = compile_clock_ms();
	onnx_program o;

	if (k->a == NULL)
		k->a = arena_child(m->a);
	o = onnx_import_run(new_import(k->a, m));
	k->p = api_onnx_program(m->c, k->a, &o);
	k->p->model = m->m;
	m->c->stats.parse_ms += compile_clock_ms() - start;
}

tn_status tn_onnx_build(tn_program **out, tn_onnx *m)
{
	if (m == NULL) {
		*out = NULL;
		return api_null("the model");
	}

	struct api_onnx_build k = {.m = m};
	tn_status s;

	*out = NULL;
	s = api_call(m->c, build, &k);
	if (s < 0)
		arena_free(k.a);
	else
		*out = k.p;
	return s;
}

static bool wants_data(const tn_context *c)
{
	const char *rule = env_diag(c->e)->rule;

	return !strcmp(rule, "onnx.value") || !strcmp(rule, "onnx.dim");
}

/* The program uses the arena of the model, which is freed with it. */
tn_status tn_onnx_load(tn_program **out, tn_context *c, const char *path)
{
	struct open_call k = {.c = c, .path = path};
	struct api_onnx_build b = {0};
	tn_status s;

	*out = NULL;
	s = api_call(c, open_model, &k);
	if (s == TN_OK) {
		tn_onnx_fold(k.m, 2);
		b = (struct api_onnx_build){.m = k.m, .a = k.a};
		s = api_call(c, build, &b);
		if (s < 0 && wants_data(c))
			s = api_call(c, api_onnx_stage, &b);
	}
	if (s < 0)
		arena_free(k.a);
	else
		*out = b.p;
	return s;
}

/* ---- writing ---- */

struct save_call {
	tn_onnx *m;
	const char *path;
	int32_t n;
	const char *const *names;
	const tn_array *arrays;
	arena *a;
};

static void save(void *arg)
{
	struct save_call *k = arg;
	onnx_new *new;

	api_want(k->m->c, k->path, "path");
	k->a = arena_child(k->m->a);
	new = arena_array(k->a, onnx_new, k->n + 1);
	for (int32_t i = 0; i < k->n; i++) {
		api_want(k->m->c, k->names[i], "a parameter's name");
		new[i].name = k->names[i];
		new[i].array = array_of(k->m, &k->arrays[i]);
	}
	onnx_save(k->a, k->m->m, k->path, k->n, new);
}

tn_status tn_onnx_save(tn_onnx *m, const char *path, int32_t n,
	const char *const *names, const tn_array *arrays)
{
	if (m == NULL)
		return api_null("the model");

	struct save_call k = {m, path, n, names, arrays, NULL};
	tn_status s = api_call(m->c, save, &k);

	arena_free(k.a);
	return s;
}

int32_t tn_program_n_params(const tn_program *p)
{
	if (p == NULL)
		return 0;
	return p->staged != NULL ? 0 : p->ir->input.n - p->n_free;
}

const tn_value *tn_program_param(const tn_program *p, int32_t i)
{
	if (p == NULL)
		return NULL;
	return i >= 0 && i < tn_program_n_params(p) ? &p->in[p->n_free + i]
						    : NULL;
}

const void *tn_program_param_data(const tn_program *p, int32_t i)
{
	if (p == NULL)
		return NULL;
	return i >= 0 && i < tn_program_n_params(p) ? p->bound[p->n_free + i]
						    : NULL;
}

struct param_call {
	tn_program *p;
	int32_t i;
	const void *data;
};

static void set_param(void *arg)
{
	struct param_call *k = arg;
	tn_program *p = k->p;

	if (k->i < 0 || k->i >= tn_program_n_params(p))
		env_fail(p->c->e, TN_EINVAL, "api.param", (loc){0},
			"the program has %d parameters; there is no number %d",
			(int)tn_program_n_params(p), (int)k->i);
	api_want(p->c, k->data, "the parameter's elements");
	p->bound[p->n_free + k->i] = k->data;
	p->version[p->n_free + k->i] = 0; /* its owner may write to it at any time */
}

tn_status tn_program_set_param(tn_program *p, int32_t i, const void *data)
{
	if (p == NULL)
		return api_null("the program");

	struct param_call k = {p, i, data};

	return api_call(p->c, set_param, &k);
}

struct bind_call {
	tn_program *p;
	int32_t n_free;
	const char *const *names;
	const void *const *data;
};

static void bind_inputs(void *arg)
{
	const struct bind_call *k = arg;
	tn_program *p = k->p;
	int32_t n = p->ir->input.n;

	if (p->bound != NULL || p->staged != NULL || k->n_free < 0 ||
		k->n_free > n)
		env_fail(p->c->e, TN_EINVAL, "api.param", (loc){0},
			"the program must have inputs and no parameters; 0 to "
			"%d of them can stay inputs", (int)n);
	for (int32_t i = k->n_free; i < n; i++) {
		api_want(p->c, k->names[i - k->n_free], "a parameter's name");
		api_want(p->c, k->data[i - k->n_free],
			"the parameter's elements");
	}
	p->all = arena_array(p->a, const void *, n + 1);
	p->pinned = arena_array(p->a, bool, n + 1);
	p->bound = arena_array(p->a, const void *, n + 1);
	p->n_free = k->n_free;
	for (int32_t i = k->n_free; i < n; i++) {
		const char *name =
			arena_strdup(p->a, k->names[i - k->n_free]);

		ir_program_rename(p->ir, p->ir->input.at[i], name);
		p->in[i].name = name;
		p->bound[i] = k->data[i - k->n_free];
	}
}

tn_status tn_program_bind(tn_program *p, int32_t n_free,
	const char *const *names, const void *const *data)
{
	if (p == NULL)
		return api_null("the program");

	struct bind_call k = {p, n_free, names, data};

	return api_call(p->c, bind_inputs, &k);
}

struct export_call {
	tn_program *p;
	const char *path;
	arena *a;
};

static void export_program(void *arg)
{
	struct export_call *k = arg;

	api_want(k->p->c, k->path, "path");
	api_want_shapes(k->p);
	api_want_numbers(k->p);
	k->a = arena_child(k->p->a);
	onnx_export(k->a, k->p->ir,
		k->p->bound != NULL ? k->p->n_free : k->p->ir->input.n,
		k->p->bound, k->path);
}

tn_status tn_onnx_export(tn_program *p, const char *path)
{
	if (p == NULL)
		return api_null("the program");

	struct export_call k = {.p = p, .path = path};
	tn_status s = api_call(p->c, export_program, &k);

	arena_free(k.a);
	return s;
}

/* ---- text ---- */

struct text_call {
	tn_context *c;
	tn_onnx *m;
	bool json;
	char **out;
};

static void write_info(void *arg)
{
	struct text_call *k = arg;
	arena *a = arena_child(k->c->a);
	str s = str_new(a);

	if (k->m != NULL)
		onnx_info(&s, k->m->m, new_import(a, k->m), k->json);
	else
		onnx_ops_md(&s);
	*k->out = api_text(k->c, &s);
	arena_free(a);
}

tn_status tn_onnx_info(char **out, tn_onnx *m, bool json)
{
	if (m == NULL) {
		*out = NULL;
		return api_null("the model");
	}

	struct text_call k = {m->c, m, json, out};

	*out = NULL;
	return api_call(m->c, write_info, &k);
}

tn_status tn_onnx_ops_text(char **out, tn_context *c)
{
	struct text_call k = {c, NULL, false, out};

	*out = NULL;
	return api_call(c, write_info, &k);
}
