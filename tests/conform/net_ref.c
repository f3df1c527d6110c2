/*
 * net_ref.c: the operators of the nine nets as plain loops (net_ref.h).
 *
 *     o[f, y, x] += w[f, c, i, j] * x[c, y * s + i - p, x * s + j - p]
 *
 * The operators' definitions of ONNX written down once more, for a batch of one
 * and 2-d windows; what the nets do not use fails loudly.
 */
#include "net_ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct net_ref {
	arena *a;
	onnx_model *m;
	bool drawn;
	map *name; /* -> number */
	VEC(net_array) value;
	const onnx_node *node;
};

static _Noreturn void refuse(const net_ref *r, const char *what)
{
	env_fail(arena_env(r->a), TN_EINVAL, "net_ref", (loc){0},
		"%s: %s is not what this reference knows", r->node->op, what);
}

static const onnx_attr *attr(const net_ref *r, const char *name)
{
	for (int32_t i = 0; i < r->node->attr.n; i++)
		if (strcmp(r->node->attr.at[i].name, name) == 0)
			return &r->node->attr.at[i];
	return NULL;
}

static int64_t attr_int(const net_ref *r, const char *name, int64_t otherwise)
{
	const onnx_attr *x = attr(r, name);

	return x != NULL ? x->i : otherwise;
}

static float attr_real(const net_ref *r, const char *name, float otherwise)
{
	const onnx_attr *x = attr(r, name);

	return x != NULL ? x->f : otherwise;
}

static int64_t attr_at(
	const net_ref *r, const char *name, int32_t i, int64_t otherwise)
{
	const onnx_attr *x = attr(r, name);

	return x != NULL && i < x->ints.v.n ? x->ints.v.at[i] : otherwise;
}

static const net_array *in(const net_ref *r, int32_t i)
{
	int64_t k = i < r->node->in.n
		? map_get_str(r->name, r->node->in.at[i], -1) : -1;

	return k >= 0 ? &r->value.at[k] : NULL;
}

/* Kept from run to run: its memory is used again. */
static net_array *result(net_ref *r, const char *name, int32_t rank,
	const int64_t *shape)
{
	int64_t k = map_get_str(r->name, name, -1);
	net_array *v;

	if (k >= 0)
		return &r->value.at[k];
	map_set_str(r->name, name, r->value.n);
	v = vec_push(r->a, &r->value);
	*v = (net_array){.rank = rank, .n = shape_numel(shape, rank)};
	memcpy(v->shape, shape, (size_t)rank * sizeof *shape);
	v->data = arena_alloc(r->a, (size_t)v->n + 16, sizeof(float));
	return v;
}

static net_array *out(net_ref *r, int32_t rank, const int64_t *shape)
{
	/* values move when a new one is pushed: ask for operands afterwards */
	return result(r, r->node->out.at[0], rank, shape);
}

/* ---- windows ---- */

typedef struct window {
	int64_t k[2], s[2], lo[2], hi[2], n[2]; /* n: extents of the result */
} window;

static window window_of(const net_ref *r, const net_array *x,
	const int64_t *kernel)
{
	window w = {0};
	bool ceil_mode = attr_int(r, "ceil_mode", 0) != 0;

	if (x->rank != 4 || x->shape[0] != 1 || attr(r, "auto_pad") != NULL ||
		attr_at(r, "dilations", 0, 1) != 1 ||
		attr_at(r, "dilations", 1, 1) != 1)
		refuse(r, "the window");
	for (int32_t i = 0; i < 2; i++) {
		int64_t room;

		w.k[i] = kernel != NULL ? kernel[i]
					: attr_at(r, "kernel_shape", i, 1);
		w.s[i] = attr_at(r, "strides", i, 1);
		w.lo[i] = attr_at(r, "pads", i, 0);
		w.hi[i] = attr_at(r, "pads", i + 2, 0);
		room = x->shape[i + 2] + w.lo[i] + w.hi[i] - w.k[i];
		w.n[i] = (room + (ceil_mode ? w.s[i] - 1 : 0)) / w.s[i] + 1;
	}
	return w;
}

/* One row of one filter's place: o[x] += w * in[x * s + shift] in bounds. */
static void add_row(float *o, int64_t n, const float *x, int64_t n_x,
	int64_t s, int64_t shift, float w)
{
	int64_t from = shift < 0 ? (-shift + s - 1) / s : 0;
	int64_t to = n_x - shift <= 0 ? 0 : (n_x - shift + s - 1) / s;

	if (to > n)
		to = n;
	if (s == 1)
		for (int64_t i = from; i < to; i++)
			o[i] += w * x[i + shift];
	else
		for (int64_t i = from; i < to; i++)
			o[i] += w * x[i * s + shift];
}

static void conv(net_ref *r)
{
	const net_array *x = in(r, 0), *w = in(r, 1), *b = in(r, 2);
	window p = window_of(r, x, w->shape + 2);
	int64_t group = attr_int(r, "group", 1), n_f = w->shape[0];
	int64_t n_c = w->shape[1], h = x->shape[2], wide = x->shape[3];
	float *o = out(r, 4, (int64_t[]){1, n_f, p.n[0], p.n[1]})->data;

	x = in(r, 0);
	w = in(r, 1);
	b = in(r, 2);
	for (int64_t f = 0; f < n_f; f++) {
		float *of = o + f * p.n[0] * p.n[1];

		for (int64_t i = 0; i < p.n[0] * p.n[1]; i++)
			of[i] = b != NULL ? b->data[f] : 0;
		for (int64_t q = 0; q < n_c * p.k[0] * p.k[1]; q++) {
			int64_t c = q / (p.k[0] * p.k[1]);
			int64_t i = q / p.k[1] % p.k[0], j = q % p.k[1];
			const float *xc = x->data +
				(f / (n_f / group) * n_c + c) * h * wide;
			float v = w->data[f * n_c * p.k[0] * p.k[1] + q];

			for (int64_t y = 0; y < p.n[0]; y++) {
				int64_t at = y * p.s[0] + i - p.lo[0];

				if (at >= 0 && at < h)
					add_row(of + y * p.n[1], p.n[1],
						xc + at * wide, wide, p.s[1],
						j - p.lo[1], v);
			}
		}
	}
}

static float pool_at(const float *x, int64_t h, int64_t wide, const window *p,
	int64_t y, int64_t z, bool max, bool all)
{
	float most = -INFINITY, sum = 0;
	int64_t n = 0;

	for (int64_t i = 0; i < p->k[0]; i++)
		for (int64_t j = 0; j < p->k[1]; j++) {
			int64_t v = y * p->s[0] + i - p->lo[0];
			int64_t u = z * p->s[1] + j - p->lo[1];

			if (v < 0 || v >= h || u < 0 || u >= wide)
				continue;
			most = fmaxf(most, x[v * wide + u]);
			sum += x[v * wide + u];
			n++;
		}
	return max ? most : sum / (float)(all ? p->k[0] * p->k[1] : n);
}

static void pool(net_ref *r, bool max)
{
	const net_array *x = in(r, 0);
	window p = window_of(r, x, NULL);
	bool all = attr_int(r, "count_include_pad", 0) != 0;
	float *o = out(r, 4, (int64_t[]){1, x->shape[1], p.n[0], p.n[1]})->data;

	x = in(r, 0);
	for (int64_t c = 0; c < x->shape[1]; c++)
		for (int64_t y = 0; y < p.n[0]; y++)
			for (int64_t z = 0; z < p.n[1]; z++)
				*o++ = pool_at(x->data + c * x->shape[2] *
							x->shape[3],
					x->shape[2], x->shape[3], &p, y, z, max,
					all);
}

static void max_pool(net_ref *r)
{
	pool(r, true);
}

static void average_pool(net_ref *r)
{
	pool(r, false);
}

static void global_average(net_ref *r)
{
	int64_t n_c = in(r, 0)->shape[1];
	float *o = out(r, 4, (int64_t[]){1, n_c, 1, 1})->data;
	const net_array *x = in(r, 0);
	int64_t n = x->n / n_c;

	for (int64_t c = 0; c < n_c; c++) {
		double sum = 0;

		for (int64_t i = 0; i < n; i++)
			sum += x->data[c * n + i];
		o[c] = (float)(sum / (double)n);
	}
}

/* ---- the rest ---- */

static void relu(net_ref *r)
{
	float *o = out(r, in(r, 0)->rank, in(r, 0)->shape)->data;
	const net_array *x = in(r, 0);

	for (int64_t i = 0; i < x->n; i++)
		o[i] = x->data[i] > 0 ? x->data[i] : 0;
}

static void same(net_ref *r)
{
	float *o = out(r, in(r, 0)->rank, in(r, 0)->shape)->data;

	memcpy(o, in(r, 0)->data, (size_t)in(r, 0)->n * sizeof *o);
}

/* The element of x that goes to place i of a result of that shape. */
static float spread(const net_array *x, int32_t rank, const int64_t *shape,
	int64_t i)
{
	int64_t at = 0, stride = 1;

	for (int32_t k = rank - 1, j = x->rank - 1; k >= 0; k--, j--) {
		if (j >= 0 && x->shape[j] > 1)
			at += i % shape[k] * stride;
		if (j >= 0)
			stride *= x->shape[j];
		i /= shape[k];
	}
	return x->data[at];
}

static void combine(net_ref *r, bool product)
{
	int64_t shape[TN_MAX_RANK] = {0};
	int32_t rank = 0;
	net_array *o;

	for (int32_t k = 0; k < r->node->in.n; k++)
		rank = in(r, k)->rank > rank ? in(r, k)->rank : rank;
	for (int32_t k = 0; k < r->node->in.n; k++)
		for (int32_t i = 0; i < in(r, k)->rank; i++) {
			int32_t at = rank - in(r, k)->rank + i;
			int64_t n = in(r, k)->shape[i];

			shape[at] = n > shape[at] ? n : shape[at];
		}
	o = out(r, rank, shape);
	for (int64_t i = 0; i < o->n; i++) {
		float v = spread(in(r, 0), rank, shape, i);

		for (int32_t k = 1; k < r->node->in.n; k++) {
			float u = spread(in(r, k), rank, shape, i);

			v = product ? v * u : v + u;
		}
		o->data[i] = v;
	}
}

static void sum(net_ref *r)
{
	combine(r, false);
}

static void mul(net_ref *r)
{
	combine(r, true);
}

static void batch_norm(net_ref *r)
{
	float eps = attr_real(r, "epsilon", 1e-5F);
	float *o = out(r, in(r, 0)->rank, in(r, 0)->shape)->data;
	const net_array *x = in(r, 0);
	int64_t n = x->n / x->shape[1];

	for (int64_t c = 0; c < x->shape[1]; c++) {
		float g = in(r, 1)->data[c] / sqrtf(in(r, 4)->data[c] + eps);

		for (int64_t i = c * n; i < (c + 1) * n; i++)
			o[i] = (x->data[i] - in(r, 3)->data[c]) * g +
				in(r, 2)->data[c];
	}
}

static void lrn(net_ref *r)
{
	int64_t size = attr_int(r, "size", 1);
	double alpha = attr_real(r, "alpha", 1e-4F), bias;
	double beta = attr_real(r, "beta", 0.75F);
	float *o = out(r, in(r, 0)->rank, in(r, 0)->shape)->data;
	const net_array *x = in(r, 0);
	int64_t n_c = x->shape[1], n = x->n / n_c;

	bias = attr_real(r, "bias", 1);
	for (int64_t c = 0; c < n_c; c++)
		for (int64_t i = 0; i < n; i++) {
			double s = 0, v;

			for (int64_t k = c - (size - 1) / 2; k <= c + size / 2;
				k++) {
				if (k < 0 || k >= n_c)
					continue;
				v = x->data[k * n + i];
				s += v * v;
			}
			v = bias + alpha / (double)size * s;
			o[c * n + i] = (float)(x->data[c * n + i] /
					       pow(v, beta));
		}
}

static void concat(net_ref *r)
{
	int32_t axis = (int32_t)attr_int(r, "axis", 1), rank = in(r, 0)->rank;
	int64_t shape[TN_MAX_RANK], outer = 1, at = 0;
	net_array *o;

	memcpy(shape, in(r, 0)->shape, sizeof shape);
	shape[axis] = 0;
	for (int32_t k = 0; k < r->node->in.n; k++)
		shape[axis] += in(r, k)->shape[axis];
	o = out(r, rank, shape);
	for (int32_t i = 0; i < axis; i++)
		outer *= shape[i];
	for (int64_t i = 0; i < outer; i++)
		for (int32_t k = 0; k < r->node->in.n; k++) {
			const net_array *x = in(r, k);
			int64_t n = x->n / outer;

			memcpy(o->data + at, x->data + i * n,
				(size_t)n * sizeof *o->data);
			at += n;
		}
}

static void gemm(net_ref *r)
{
	bool t = attr_int(r, "transB", 0) != 0;
	const net_array *x = in(r, 0), *w = in(r, 1);
	int64_t n = w->shape[t ? 0 : 1], k = w->shape[t ? 1 : 0];
	float *o = out(r, 2, (int64_t[]){1, n})->data;

	x = in(r, 0);
	w = in(r, 1);
	if (x->n != k || attr_int(r, "transA", 0) != 0)
		refuse(r, "the first operand");
	for (int64_t i = 0; i < n; i++)
		o[i] = 0;
	for (int64_t i = 0; i < n; i++) {
		double s = 0;

		for (int64_t j = 0; j < k; j++)
			s += (double)x->data[j] *
				w->data[t ? i * k + j : j * n + i];
		o[i] = attr_real(r, "alpha", 1) * (float)s +
			attr_real(r, "beta", 1) * in(r, 2)->data[i];
	}
}

/* The shape that an initialiser holds; 0 and -1 as ONNX has them. */
static void reshape(net_ref *r)
{
	const net_array *x = in(r, 0), *to = in(r, 1);
	int64_t shape[TN_MAX_RANK], known = 1, n = to->n;

	for (int64_t i = 0; i < n; i++) {
		shape[i] = (int64_t)to->data[i];
		if (shape[i] == 0)
			shape[i] = x->shape[i];
		known *= shape[i] > 0 ? shape[i] : 1;
	}
	for (int64_t i = 0; i < n; i++)
		if (shape[i] < 0)
			shape[i] = x->n / known;
	if (out(r, (int32_t)n, shape)->n != in(r, 0)->n)
		refuse(r, "the shape");
	same(r);
}

static void unsqueeze(net_ref *r)
{
	const net_array *x = in(r, 0);
	const onnx_attr *axes = attr(r, "axes");
	int64_t shape[TN_MAX_RANK];
	int32_t rank = x->rank + axes->ints.v.n;

	for (int32_t i = 0, k = 0, a = 0; i < rank; i++) {
		bool is_new = a < axes->ints.v.n && axes->ints.v.at[a] == i;

		shape[i] = is_new ? 1 : x->shape[k];
		a += is_new;
		k += !is_new;
	}
	(void)out(r, rank, shape);
	same(r);
}

static void transpose(net_ref *r)
{
	int32_t rank = in(r, 0)->rank;
	int64_t shape[TN_MAX_RANK], stride[TN_MAX_RANK], step = 1;
	const net_array *x = in(r, 0);
	net_array *o;

	for (int32_t i = rank - 1; i >= 0; i--) {
		stride[i] = step;
		step *= x->shape[i];
	}
	for (int32_t i = 0; i < rank; i++)
		shape[i] = x->shape[attr_at(r, "perm", i, rank - 1 - i)];
	o = out(r, rank, shape);
	x = in(r, 0);
	for (int64_t i = 0; i < o->n; i++) {
		int64_t rest = i, at = 0;

		for (int32_t k = rank - 1; k >= 0; k--) {
			at += rest % shape[k] *
				stride[attr_at(r, "perm", k, rank - 1 - k)];
			rest /= shape[k];
		}
		o->data[i] = x->data[at];
	}
}

static void softmax(net_ref *r)
{
	net_array *o;
	double total = 0;
	float most = -INFINITY;

	same(r);
	o = out(r, 0, NULL);
	if (r->drawn) /* it makes the output: logits are wanted */
		return;
	for (int64_t i = 0; i < o->n; i++)
		most = fmaxf(most, o->data[i]);
	for (int64_t i = 0; i < o->n; i++)
		total += exp((double)o->data[i] - most);
	for (int64_t i = 0; i < o->n; i++)
		o->data[i] = (float)(exp((double)o->data[i] - most) / total);
}

/* From the name alone: 32 bits that are different for each weight. */
static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261U;

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 16777619U;
	return h | 1;
}

static void constant(net_ref *r)
{
	const net_array *s = in(r, 0);
	const onnx_attr *t = attr(r, "value");
	int64_t shape[TN_MAX_RANK];
	uint32_t h = hash(r->node->out.at[0]);
	float one = 0, scale;
	net_array *o;

	for (int64_t i = 0; i < s->n; i++)
		shape[i] = (int64_t)s->data[i];
	o = out(r, (int32_t)s->n, shape);
	if (t != NULL)
		memcpy(&one, onnx_tensor_array(r->a, r->m, r->m->file, t->t)
				     .data, sizeof one);
	scale = sqrtf(6 * (float)(o->rank > 1 ? o->shape[0] : 1) / (float)o->n);
	for (int64_t i = 0; i < o->n; i++) {
		float u;

		h = h * 1664525U + 1013904223U;
		u = (float)(h >> 8) / (float)(1 << 24);
		if (o->n < 2 || !r->drawn)
			o->data[i] = one;
		else
			o->data[i] = o->rank < 2 ? u + 0.5F
						 : (2 * u - 1) * scale;
	}
}

static const struct {
	const char *op;
	void (*run)(net_ref *r);
} ops[] = {{"Conv", conv}, {"Relu", relu}, {"MaxPool", max_pool},
	{"AveragePool", average_pool}, {"GlobalAveragePool", global_average},
	{"Add", sum}, {"Sum", sum}, {"Mul", mul}, {"Dropout", same},
	{"BatchNormalization", batch_norm}, {"LRN", lrn}, {"Concat", concat},
	{"Gemm", gemm}, {"Reshape", reshape}, {"Unsqueeze", unsqueeze},
	{"Transpose", transpose}, {"Softmax", softmax},
	{"ConstantOfShape", constant}};

static void run_node(net_ref *r)
{
	bool is_const = true;
	int64_t k = map_get_str(r->name, r->node->out.at[0], -1);
	size_t i = 0;

	if (k >= 0 && r->value.at[k].is_const)
		return;
	for (int32_t j = 0; j < r->node->in.n; j++) {
		if (in(r, j) == NULL)
			refuse(r, "an input");
		is_const = is_const && in(r, j)->is_const;
	}
	for (; i < sizeof ops / sizeof ops[0]; i++)
		if (strcmp(ops[i].op, r->node->op) == 0)
			break;
	if (i == sizeof ops / sizeof ops[0])
		refuse(r, "the operator");
	ops[i].run(r);
	k = map_get_str(r->name, r->node->out.at[0], -1);
	r->value.at[k].is_const = is_const;
}

static void add_initialiser(net_ref *r, const onnx_tensor *t)
{
	onnx_array x = onnx_tensor_array(r->a, r->m, r->m->file, t);
	net_array *v = result(r, t->name, x.type.rank, x.type.shape);

	for (int64_t i = 0; i < v->n; i++)
		v->data[i] = (float)dtype_load_f64(x.type.dtype, x.data, i);
	v->is_const = true;
}

net_ref *net_ref_new(arena *a, onnx_model *m, bool drawn)
{
	net_ref *r = arena_make(a, net_ref);

	r->a = a;
	r->m = m;
	r->drawn = drawn;
	r->name = map_new(a);
	for (int32_t i = 0; i < m->graph.init.n; i++)
		add_initialiser(r, &m->graph.init.at[i]);
	return r;
}

const net_array *net_ref_run(net_ref *r, const float *picture)
{
	const onnx_port *p = &r->m->input.at[0];
	net_array *x = result(r, p->name, p->type.rank, p->type.dim);

	memcpy(x->data, picture, (size_t)x->n * sizeof *picture);
	for (int32_t i = 0; i < r->m->graph.node.n; i++) {
		r->node = &r->m->graph.node.at[i];
		run_node(r);
	}
	return &r->value.at[map_get_str(
		r->name, r->m->graph.out.at[0].name, -1)];
}

const net_array *net_ref_const(net_ref *r, const char *name)
{
	int64_t k = map_get_str(r->name, name, -1);

	return k >= 0 && r->value.at[k].is_const ? &r->value.at[k] : NULL;
}
