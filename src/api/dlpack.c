/*
 * dlpack.c: exchanges tensors with other libraries, in the memory layout of DLPack
 * (tenon.h declares its structures under other names), and prints tensors.
 *
 * Dense, row-major memory of the CPU is used without a copy, and its address never
 * changes; memory with other strides is copied.
 */
#include "api/api.h"

#include <math.h>
#include <stdlib.h>

enum { CPU = 1 }; /* of DLPack */

static const struct {
	uint8_t code, bits;
} types[TN_N_DTYPES] = {
#define DTYPE(id, name, class, bits, wide, acc, lanes, npy, safetensors, dlpack, ...) \
	[TN_##id] = {dlpack, bits},
#include "base/dtype.def"
#undef DTYPE
};

struct transfer {
	tn_context *c;
	const char *file;
	int32_t line;
	tn_dl_managed *from, **to;
	tensor *x;
};

static _Noreturn void refuse(
	const struct transfer *k, const char *rule, const char *text)
{
	env_fail(k->c->e, TN_EINVAL, rule, (loc){k->file, k->line, 0}, "%s",
		text);
}

/* Is the memory where the context's elements lie? */
static bool is_here(const struct transfer *k)
{
	const tn_dl_tensor *d = &k->from->tensor;

	return d->device.type == k->c->device->dl_type &&
	       (d->device.type == CPU ||
		       d->device.id == k->c->device->number);
}

static ir_type type_of(const struct transfer *k)
{
	const tn_dl_tensor *d = &k->from->tensor;
	ir_type y = {.rank = d->n_axes};
	int32_t found = -1;

	if (d->device.type != CPU && !is_here(k))
		env_fail(k->c->e, TN_EINVAL, "dlpack.device",
			(loc){k->file, k->line, 0},
			"the memory is on device %d of type %d; accepted is "
			"memory of the CPU (type 1)%s%s",
			(int)d->device.id, (int)d->device.type,
			k->c->device->is_host ? "" : " and of ",
			k->c->device->is_host ? "" : k->c->device->name);
	for (int32_t i = 0; i < TN_N_DTYPES; i++)
		if (types[i].code == d->dtype.code && types[i].bits >= 8 &&
			types[i].bits == d->dtype.bits && d->dtype.lanes == 1)
			found = i;
	if (found < 0)
		env_fail(k->c->e, TN_EINVAL, "dlpack.dtype",
			(loc){k->file, k->line, 0},
			"elements of code %d, %d bits, %d lanes are not "
			"supported",
			(int)d->dtype.code, (int)d->dtype.bits,
			(int)d->dtype.lanes);
	y.dtype = (tn_dtype)found;
	if (d->n_axes < 0 || d->n_axes > TN_MAX_RANK)
		refuse(k, "dlpack.shape", "more axes than a tensor can have");
	for (int32_t i = 0; i < d->n_axes; i++)
		y.shape[i] = d->shape[i];
	if (shape_numel(y.shape, y.rank) < 0)
		refuse(k, "dlpack.shape",
			"an extent is negative, or there are too many elements");
	return y;
}

static bool is_dense(const tn_dl_tensor *d)
{
	int64_t n = 1;

	for (int32_t i = d->n_axes - 1; i >= 0 && d->strides != NULL; i--) {
		if (d->shape[i] > 1 && d->strides[i] != n)
			return false;
		n *= d->shape[i];
	}
	return true;
}

static void release(void *arg)
{
	tn_dl_managed *m = arg;

	if (m->deleter != NULL)
		m->deleter(m);
}

/* Copies elements with any strides, or dense, into row-major order. */
static void gather(const tn_dl_tensor *d, const ir_type *y, char *to)
{
	size_t size = dtype_size(y->dtype);
	const char *from = (const char *)d->data + d->byte_offset;
	int64_t at[TN_MAX_RANK] = {0}, n = shape_numel(y->shape, y->rank);

	for (int64_t i = 0; i < n; i++) {
		int64_t off = d->strides == NULL ? i : 0;

		for (int32_t k = 0; k < y->rank && d->strides != NULL; k++)
			off += at[k] * d->strides[k];
		memcpy(to + (size_t)i * size,
			from + off * (int64_t)size, size);
		for (int32_t k = y->rank - 1; k >= 0; k--) {
			if (++at[k] < y->shape[k])
				break;
			at[k] = 0;
		}
	}
}

static void import(void *arg)
{
	struct transfer *k = arg;
	tensors *t = api_tensors(k->c);
	const tn_dl_tensor *d;
	ir_type y;
	char *data;

	api_want(k->c, k->from, "the DLPack tensor");
	d = &k->from->tensor;
	y = type_of(k);
	data = (char *)d->data + d->byte_offset;
	if (data == NULL && shape_numel(y.shape, y.rank) > 0)
		refuse(k, "dlpack.data", "the DLPack tensor has no data");
	if (is_here(k) && is_dense(d) &&
		(uintptr_t)data % dtype_size(y.dtype) == 0) {
		k->x = tensor_import(t, &y, data, release, k->from);
		return;
	}
	if (d->device.type != CPU)
		refuse(k, "dlpack.shape",
			"memory of the device must be dense and row-major");
	data = malloc((size_t)shape_numel(y.shape, y.rank) *
			      dtype_size(y.dtype) + 1);
	if (data == NULL)
		env_fail(k->c->e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a copy of the DLPack tensor");
	gather(d, &y, data);
	k->x = tensor_new(t, &y, data, false, NULL);
	free(data);
	release(k->from);
}

tn_tensor *tn_at_dlpack_import(
	const char *file, int32_t line, tn_context *c, tn_dl_managed *from)
{
	struct transfer k = {
		.c = c, .file = file, .line = line, .from = from};

	return api_sticky(c, file, line, import, &k) < 0
		? NULL
		: api_outer(k.x);
}

/* ---- out ---- */

struct exported {
	tn_dl_managed m;
	tn_context *c;
	tn_tensor *x; /* keeps the data alive */
	int64_t shape[TN_MAX_RANK];
};

static void let_go(void *arg)
{
	struct exported *e = arg;

	if (tn_is_valid(e->x))
		tensor_drop(e->c->t, api_inner(e->x));
}

static void delete_exported(tn_dl_managed *m)
{
	struct exported *e = m->manager;

	(void)api_call(e->c, let_go, e);
	free(e);
}

static void export(void *arg)
{
	struct transfer *k = arg;
	struct exported *e;
	const ir_type *y;
	tensor *x;

	tensors_site(k->c->t, k->file, k->line);
	y = tensor_type_of(k->x);
	if (types[y->dtype].bits < 8)
		env_fail(k->c->e, TN_EINVAL, "dlpack.dtype",
			(loc){k->file, k->line, 0},
			"DLPack packs elements of %s, and here each has a "
			"byte: cast them to %s",
			dtype_name(y->dtype), dtype_name(dtype_wide(y->dtype)));
	e = calloc(1, sizeof *e);
	if (e == NULL)
		env_fail(k->c->e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a DLPack tensor");
	*k->to = &e->m; /* freed below if this fails */
	x = tensor_share(k->c->t, k->x);
	e->x = api_outer(x);
	y = tensor_type_of(x);
	e->c = k->c;
	e->m.manager = e;
	e->m.deleter = delete_exported;
	memcpy(e->shape, y->shape, sizeof e->shape);
	e->m.tensor = (tn_dl_tensor){
		.data = tensor_address(k->c->t, x),
		.device = {k->c->device->dl_type, k->c->device->number},
		.n_axes = y->rank,
		.shape = e->shape};
	e->m.tensor.dtype = (tn_dl_dtype){
		types[y->dtype].code, types[y->dtype].bits, 1};
}

tn_status tn_at_dlpack_export(const char *file, int32_t line, tn_tensor *x,
	tn_dl_managed **out)
{
	struct transfer k = {.file = file,
		.line = line,
		.x = api_inner(x),
		.to = out};
	tn_status s;

	*out = NULL;
	k.c = x != NULL ? tensor_owner(k.x) : NULL;
	if (k.c == NULL || tensor_is_invalid(k.x))
		return tn_at_fail(file, line, k.c, TN_EINVAL, "tensor.handle",
			"the tensor is NULL, was dropped, or is the result of "
			"a failed call");
	s = api_sticky(k.c, file, line, export, &k);
	if (s < 0 && *out != NULL) {
		free(*out);
		*out = NULL;
	}
	return s;
}

/* ---- text ---- */

enum { EDGE = 3, WHOLE = 200 };

struct printing {
	tn_context *c;
	tensor *x;
	char **out;
	const void *data;
	str s;
};

static void add_elem(struct printing *p, tn_dtype t, int64_t i)
{
	if (t == TN_BOOL)
		str_add(&p->s, tn_get_i64(t, p->data, i) ? "true" : "false");
	else if (dtype_is_float(t))
		str_printf(&p->s, "%.6g", tn_get_f64(t, p->data, i));
	else
		ir_add_int(&p->s, t, tn_get_i64(t, p->data, i));
}

/* Prints axis d from element `at` on; "..." replaces the middle of a long axis. */
static int64_t add_axis(struct printing *p, const ir_type *y, int32_t d,
	int64_t at, bool all)
{
	int64_t inner = 1;

	if (d == y->rank) {
		add_elem(p, y->dtype, at);
		return at + 1;
	}
	for (int32_t i = d + 1; i < y->rank; i++)
		inner *= y->shape[i];
	str_addc(&p->s, '[');
	for (int64_t i = 0; i < y->shape[d]; i++) {
		if (!all && i == EDGE && y->shape[d] > 2 * EDGE + 1) {
			str_add(&p->s, ", ...");
			at += (y->shape[d] - 2 * EDGE) * inner;
			i = y->shape[d] - EDGE;
		}
		if (i > 0 && d + 1 < y->rank) {
			str_add(&p->s, ",\n");
			for (int32_t k = 0; k <= d; k++)
				str_addc(&p->s, ' ');
		} else if (i > 0) {
			str_add(&p->s, ", ");
		}
		at = add_axis(p, y, d + 1, at, all);
	}
	str_addc(&p->s, ']');
	return at;
}

static void print(void *arg)
{
	struct printing *p = arg;
	tensor *dense = tensor_share(p->c->t, p->x);
	const ir_type *y = tensor_type_of(dense);
	arena *a = arena_child(p->c->a);

	p->data = tensor_data(p->c->t, dense);
	p->s = str_new(a);
	ir_type_add(&p->s, y);
	str_addc(&p->s, ' ');
	add_axis(p, y, 0, 0, shape_numel(y->shape, y->rank) <= WHOLE);
	*p->out = api_text(p->c, &p->s);
	tensor_drop(p->c->t, dense);
	arena_free(a);
}

tn_status tn_at_text(
	const char *file, int32_t line, tn_tensor *x, char **out)
{
	struct printing p = {.x = api_inner(x), .out = out};

	*out = NULL;
	p.c = x != NULL ? tensor_owner(p.x) : NULL;
	if (p.c == NULL || tensor_is_invalid(p.x))
		return tn_at_fail(file, line, p.c, TN_EINVAL, "tensor.handle",
			"the tensor is NULL, was dropped, or is the result of "
			"a failed call");
	return api_sticky(p.c, file, line, print, &p);
}

/* ---- random keys ---- */

void tn_set_seed(tn_context *c, uint64_t seed)
{
	if (c == NULL)
		return;

	c->seed = seed;
	c->n_keys = 0;
}
