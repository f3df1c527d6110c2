/*
 * params.c: the named tensors of a model, and their files.
 *
 *     tn_params_enter(p, "block%d", 0);
 *     tn_params_make(p, "bias", ...);      "block0.bias"
 *     tn_params_save(p, "m.safetensors", NULL, 0);
 *
 * Loading compares the file with all parameters before it writes the first value.
 */
#include "api/api.h"
#include "api/shard.h"
#include "file/file.h"

#include <stdio.h>

enum { MAX_NAME = 255, MAX_LISTED = 5 };

typedef struct param {
	const char *name;
	tn_tensor *x;
	bool trained, is_ours;
} param;

struct tn_params {
	tn_context *c;
	arena *a;
	VEC(param) at;
	VEC(tn_tensor *) x;	   /* the tensors of at, for tn_eval */
	map *number; /* name -> 1 + number */
	char prefix[MAX_NAME + 2]; /* with its last dot */
	VEC(int32_t) entered;	   /* lengths of the outer prefixes */
	bool training;
};

typedef struct call {
	tn_context *c;
	tn_params *p, **out_set;
	const char *file;
	int32_t line;
	const char *name, *path;
	tn_tensor *x;
	tn_dtype dtype;
	bool trained, is_ours, strict;
	size_t n_bytes;
	void *memory;
	const tn_pair *pair;
	int32_t n;
	/* files */
	arena *a;
	tensor **shared; /* NULL: not shared yet */
	file_tensors f;
	int32_t *from; /* by parameter: its number in the file, or -1 */
	int32_t i;
	char **text;
} call;

static loc here(const call *k)
{
	return (loc){k->file, k->line, 0};
}

static call call_on(const char *file, int32_t line, tn_params *p)
{
	return (call){.c = p->c, .p = p, .file = file, .line = line};
}

/* ---- the set ---- */

static void make_set(void *arg)
{
	call *k = arg;
	arena *a = arena_child(k->c->a);
	tn_params *p = arena_make(a, tn_params);

	p->c = k->c;
	p->a = a;
	p->number = map_new(a);
	p->training = true;
	*k->out_set = p;
}

tn_status tn_params_new(tn_params **out, tn_context *c)
{
	call k = {.c = c, .out_set = out};

	*out = NULL;
	return api_call(c, make_set, &k);
}

void tn_params_free(tn_params *p)
{
	if (p == NULL)
		return;

	for (int32_t i = 0; i < p->at.n; i++)
		if (p->at.at[i].is_ours)
			tn_drop(p->at.at[i].x);
	arena_free(p->a);
}

tn_context *tn_params_context(const tn_params *p)
{
	if (p == NULL)
		return NULL;
	return p->c;
}

static void alloc(void *arg)
{
	call *k = arg;

	k->memory = arena_alloc(k->p->a, k->n_bytes, 1);
}

void *tn_params_alloc(tn_params *p, size_t n_bytes)
{
	if (p == NULL)
		return NULL;

	call k = {.p = p, .n_bytes = n_bytes};

	return api_sticky(p->c, NULL, 0, alloc, &k) < 0 ? NULL : k.memory;
}

/* ---- names ---- */

static void check_name(const call *k)
{
	size_t n = k->name != NULL ? strlen(k->name) : 0;

	if (n == 0)
		env_fail(k->c->e, TN_EINVAL, "params.name", here(k),
			"the name is empty: give at least one character");
	if (strlen(k->p->prefix) + n > MAX_NAME)
		env_fail(k->c->e, TN_EINVAL, "params.name", here(k),
			"%s%.100s is longer than the %d bytes that a name can "
			"have",
			k->p->prefix, k->name, MAX_NAME);
}

static void enter(void *arg)
{
	call *k = arg;
	tn_params *p = k->p;
	size_t n = strlen(p->prefix);

	check_name(k);
	*vec_push(p->a, &p->entered) = (int32_t)n;
	snprintf(p->prefix + n, sizeof p->prefix - n, "%s.", k->name);
}

tn_status tn_at_params_enter(const char *file, int32_t line, tn_params *p,
	const char *format, ...)
{
	if (p == NULL)
		return api_null("the set of parameters");

	char name[MAX_NAME + 2]; /* a name that was truncated is also too long */
	call k = call_on(file, line, p);
	va_list ap;

	k.name = name;
	va_start(ap, format);
	text_vprint(name, sizeof name, format, ap);
	va_end(ap);
	return api_sticky(p->c, file, line, enter, &k);
}

tn_status tn_params_leave(tn_params *p)
{
	if (p == NULL)
		return api_null("the set of parameters");
	if (p->entered.n == 0)
		return tn_at_fail(NULL, 0, p->c, TN_EINVAL, "params.name",
			"tn_params_leave was called without a tn_params_enter "
			"before it");
	p->prefix[vec_pop(&p->entered)] = '\0';
	return TN_OK;
}

static void add(void *arg)
{
	call *k = arg;
	tn_params *p = k->p;
	const char *name;
	param *q;

	check_name(k);
	name = arena_printf(p->a, "%s%s", p->prefix, k->name);
	if (!file_tensors_takes(name))
		env_fail(k->c->e, TN_EINVAL, "params.name", here(k),
			"%s cannot be saved: a name is UTF-8, and not that of "
			"a file's own data", name);
	if (map_get_str(p->number, name, 0) != 0)
		env_fail(k->c->e, TN_EINVAL, "params.name", here(k),
			"the set has a parameter %s already: choose another "
			"name", name);
	if (k->trained && !dtype_is_float(k->dtype))
		env_fail(k->c->e, TN_EINVAL, "params.dtype", here(k),
			"%s is %s, but only f32, f64, f16 and bf16 can be "
			"trained", name,
			tn_dtype_name(k->dtype));
	vec_reserve(p->a, &p->at, 1);
	vec_reserve(p->a, &p->x, 1);
	map_set_str(p->number, name, p->at.n + 1);
	q = vec_push(p->a, &p->at);
	*q = (param){name, k->x, k->trained, k->is_ours};
	*vec_push(p->a, &p->x) = k->x;
}

tn_status tn_at_params_add(const char *file, int32_t line, tn_params *p,
	const char *name, tn_tensor *x, bool trained)
{
	if (p == NULL)
		return api_null("the set of parameters");

	call k = call_on(file, line, p);

	k.name = name;
	k.x = x;
	k.dtype = tn_tensor_dtype(x);
	k.trained = trained;
	if (!tn_is_valid(x) || tn_tensor_context(x) != p->c)
		return tn_at_fail(file, line, p->c, TN_EINVAL,
			"tensor.handle", "the tensor to be added as %.60s is "
			"not a tensor of this context",
			name != NULL ? name : "");
	return api_sticky(p->c, file, line, add, &k);
}

tn_tensor *tn_at_params_make(const char *file, int32_t line, tn_params *p,
	const char *name, tn_dtype dtype, int32_t rank, const int64_t *shape,
	bool trained)
{
	if (p == NULL) {
		(void)api_null("the set of parameters");
		return NULL;
	}
	call k = call_on(file, line, p);
	char full[MAX_NAME + 2];

	k.name = name;
	k.dtype = dtype;
	k.trained = trained;
	k.is_ours = true;
	snprintf(full, sizeof full, "%s%s", p->prefix,
		name != NULL ? name : "");
	if (!trained && tn_no_grad_enter(p->c) < 0)
		return NULL;
	k.x = tn_at_parameter(
		file, line, p->c, full, dtype, rank, shape, NULL);
	if (!trained)
		tn_no_grad_leave(p->c);
	if (!tn_is_valid(k.x))
		return NULL;
	if (api_sticky(p->c, file, line, add, &k) >= 0)
		return k.x;
	tn_drop(k.x);
	return NULL;
}

/* ---- asking ---- */

int32_t tn_params_n(const tn_params *p)
{
	if (p == NULL)
		return 0;
	return p->at.n;
}

static const param *number(const tn_params *p, int32_t i)
{
	return i >= 0 && i < p->at.n ? &p->at.at[i] : NULL;
}

const char *tn_params_name(const tn_params *p, int32_t i)
{
	if (p == NULL)
		return NULL;
	return number(p, i) != NULL ? number(p, i)->name : NULL;
}

tn_tensor *tn_params_at(const tn_params *p, int32_t i)
{
	if (p == NULL)
		return NULL;
	return number(p, i) != NULL ? number(p, i)->x : NULL;
}

bool tn_params_is_trained(const tn_params *p, int32_t i)
{
	if (p == NULL)
		return false;
	return number(p, i) != NULL && number(p, i)->trained;
}

tn_tensor *tn_params_get(const tn_params *p, const char *name)
{
	if (p == NULL)
		return NULL;
	return name == NULL ? NULL : tn_params_at(
		p, (int32_t)map_get_str(p->number, name, 0) - 1);
}

void tn_params_set_training(tn_params *p, bool training)
{
	if (p == NULL)
		return;

	p->training = training;
}

bool tn_params_training(const tn_params *p)
{
	if (p == NULL)
		return false;
	return p->training;
}

tn_status tn_at_params_eval(const char *file, int32_t line, tn_params *p)
{
	if (p == NULL)
		return api_null("the set of parameters");
	return tn_at_eval(file, line, p->x.at, p->x.n);
}

/* ---- saving ---- */

struct file {
	arena *a;
	const char *path;
	int32_t n, n_pairs;
	const file_tensor *x;
	const file_pair *pair;
};

static void write_file(void *arg)
{
	const struct file *f = arg;

	file_tensors_write(
		f->a, f->path, f->n, f->x, f->n_pairs, f->pair);
}

static void save(void *arg)
{
	call *k = arg;
	tensors *t = api_tensors(k->c);
	int32_t n = k->p->at.n;
	file_tensor *x;
	file_pair *pair;

	api_want(k->c, k->path, "path");
	k->a = arena_child(k->c->a);
	k->shared = arena_array(k->a, tensor *, n + 1);
	x = arena_array(k->a, file_tensor, n + 1);
	pair = arena_array(k->a, file_pair, k->n + 1);
	for (int32_t i = 0; i < n; i++)
		k->shared[i] = tensor_share(
			t, api_inner(k->p->at.at[i].x));
	for (int32_t i = 0; i < n; i++) {
		const ir_type *y = tensor_type_of(k->shared[i]);

		x[i] = (file_tensor){.name = k->p->at.at[i].name,
			.dtype = y->dtype,
			.rank = y->rank,
			.data = tensor_data_in(t, k->shared[i], k->a)};
		memcpy(x[i].shape, y->shape, sizeof y->shape);
	}
	for (int32_t i = 0; i < k->n; i++) {
		api_want(k->c, k->pair[i].key, "a key");
		api_want(k->c, k->pair[i].value, "a value");
		pair[i] = (file_pair){k->pair[i].key, k->pair[i].value};
	}
	api_shard_first(k->c, write_file,
		&(struct file){k->a, k->path, n, k->n, x, pair},
		"saving parameters");
}

tn_status tn_at_params_save(const char *file, int32_t line, tn_params *p,
	const char *path, const tn_pair *metadata, int32_t n)
{
	if (p == NULL)
		return api_null("the set of parameters");

	call k = call_on(file, line, p);
	tn_status s = tn_at_params_eval(file, line, p);

	k.path = path;
	k.pair = metadata;
	k.n = metadata != NULL ? n : 0;
	if (s >= 0)
		s = api_sticky(p->c, file, line, save, &k);
	for (int32_t i = 0; k.shared != NULL && i < p->at.n; i++)
		if (k.shared[i] != NULL)
			tn_drop(api_outer(k.shared[i]));
	arena_free(k.a);
	return s;
}

/* ---- loading ---- */

/* "a, b, c and 7 more" */
static void add_name(str *s, int32_t n, const char *name)
{
	if (n < MAX_LISTED)
		str_printf(s, "%s%.60s", n > 0 ? ", " : "", name);
}

static _Noreturn void refuse_names(
	const call *k, const char *rule, const char *what, str *s, int32_t n)
{
	if (n > MAX_LISTED)
		str_printf(s, " and %d more", (int)(n - MAX_LISTED));
	env_fail(k->c->e, TN_EINVAL, rule, here(k), "%.200s %s: %s", k->path,
		what, s->at);
}

static void compare_types(const call *k, const param *q, const file_tensor *x)
{
	int32_t rank = tn_tensor_rank(q->x);
	str s;

	if (x->dtype == tn_tensor_dtype(q->x) && x->rank == rank &&
		(rank == 0 || memcmp(x->shape, tn_tensor_shape(q->x),
				      (size_t)rank * sizeof *x->shape) == 0))
		return;
	s = str_new(k->a);
	str_printf(&s, "%.100s is %s", q->name,
		dtype_name(tn_tensor_dtype(q->x)));
	str_shape(&s, tn_tensor_shape(q->x), rank);
	str_printf(&s, ", but in %.200s %s", k->path, dtype_name(x->dtype));
	str_shape(&s, x->shape, x->rank);
	env_fail(k->c->e, TN_EINVAL, "params.type", here(k), "%s", s.at);
}

/* Finds each parameter in the file; throws if one is missing or does not fit. */
static void match(call *k)
{
	map *in_file = map_new(k->a);
	str missing = str_new(k->a), unexpected = str_new(k->a);
	int32_t n_missing = 0, n_unexpected = 0;

	for (int32_t i = 0; i < k->f.n; i++) {
		map_set_str(in_file, k->f.at[i].name, i + 1);
		if (map_get_str(k->p->number, k->f.at[i].name, 0) == 0)
			add_name(&unexpected, n_unexpected++,
				k->f.at[i].name);
	}
	for (int32_t i = 0; i < k->p->at.n; i++) {
		const param *q = &k->p->at.at[i];

		if (!tn_is_valid(q->x))
			env_fail(k->c->e, TN_EINVAL, "tensor.handle", here(k),
				"parameter %s was dropped, but its set still "
				"needs it", q->name);
		k->from[i] = (int32_t)map_get_str(in_file, q->name, 0) - 1;
		if (k->from[i] < 0)
			add_name(&missing, n_missing++, q->name);
		else
			compare_types(k, q, &k->f.at[k->from[i]]);
	}
	if (k->strict && n_missing > 0)
		refuse_names(k, "params.missing", "does not have", &missing,
			n_missing);
	if (k->strict && n_unexpected > 0)
		refuse_names(k, "params.unexpected",
			"has tensors that the set of parameters lacks",
			&unexpected,
			n_unexpected);
}

static void open_file(void *arg)
{
	call *k = arg;
	size_t most = 1;

	api_want(k->c, k->path, "path");
	k->a = arena_child(k->c->a);
	file_tensors_open(k->a, k->path, &k->f);
	(void)file_tensors_check(k->a, &k->f);
	k->from = arena_array(k->a, int32_t, k->p->at.n + 1);
	match(k);
	for (int32_t i = 0; i < k->p->at.n; i++)
		if (k->from[i] >= 0 && k->f.at[k->from[i]].n_bytes > most)
			most = k->f.at[k->from[i]].n_bytes;
	k->memory = arena_alloc(k->a, most, 1);
}

static void read_one(void *arg)
{
	call *k = arg;

	file_tensors_read(&k->f, k->from[k->i], k->memory);
}

tn_status tn_at_params_load(const char *file, int32_t line, tn_params *p,
	const char *path, bool strict)
{
	if (p == NULL)
		return api_null("the set of parameters");

	call k = call_on(file, line, p);
	tn_status s;

	k.path = path;
	k.strict = strict;
	s = api_sticky(p->c, file, line, open_file, &k);
	for (k.i = 0; k.i < p->at.n && s >= 0; k.i++) {
		if (k.from[k.i] < 0)
			continue;
		s = api_sticky(p->c, file, line, read_one, &k);
		if (s >= 0)
			s = tn_at_set_data(file, line, p->at.at[k.i].x,
				k.memory, k.f.at[k.from[k.i]].n_bytes);
	}
	arena_free(k.a);
	return s;
}

static void find_metadata(void *arg)
{
	call *k = arg;

	api_want(k->c, k->path, "path");
	api_want(k->c, k->name, "key");
	k->a = arena_child(k->c->a);
	file_tensors_open(k->a, k->path, &k->f);
	if (strcmp(k->name, FILE_SUM) == 0)
		(void)file_tensors_check(k->a, &k->f);
	for (int32_t i = 0; i < k->f.n_pairs; i++) {
		str s;

		if (strcmp(k->f.pair[i].key, k->name) != 0)
			continue;
		s = str_new(k->a);
		str_add(&s, k->f.pair[i].value);
		*k->text = api_text(k->c, &s);
	}
}

tn_status tn_safetensors_metadata(
	char **out, tn_context *c, const char *path, const char *key)
{
	call k = {.c = c, .path = path, .name = key, .text = out};
	tn_status s;

	*out = NULL;
	s = api_call(c, find_metadata, &k);
	arena_free(k.a);
	return s;
}
