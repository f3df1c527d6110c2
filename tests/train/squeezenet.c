/*
 * squeezenet.c: a net of SqueezeNet's architecture as a model file, pictures to
 * teach it, and what there is to say of its answers.
 *
 *     squeezenet write NET.onnx DATA    1,000 classes, 3 x 64 x 64 pictures; 20
 *                                       of 10 classes, as .npy files
 *     squeezenet same A.npy B.npy       as good as equal, else exit status 1
 *     squeezenet loss P.npy Y.npy       -log of what P gives to the classes Y
 *
 * The weights are random (He et al. 2015): a net that has learnt nothing.
 */
#include "../unit/onnx_writer.h"

#include <math.h>
#include <stdio.h>
#include <tenon.h>

enum { SIDE = 64, EXAMPLES = 20, CLASSES = 10 };

typedef struct net {
	arena *a;
	pb graph;
	uint64_t rng;
	int n; /* names so far */
} net;

/* xorshift64* (Vigna 2016), in [-1, 1) */
static float next(uint64_t *rng)
{
	*rng ^= *rng >> 12;
	*rng ^= *rng << 25;
	*rng ^= *rng >> 27;
	return (float)(*rng * UINT64_C(2685821657736338717) >> 40) *
		       0x1p-23f - 1;
}

static void init(net *t, const char *name, int rank, const int64_t *shape,
	float most)
{
	pb x = pb_new(t->a), raw = pb_new(t->a);
	int64_t n = 1;

	for (int i = 0; i < rank; i++) {
		pb_int(&x, 1, shape[i]);
		n *= shape[i];
	}
	pb_int(&x, 2, 1);
	pb_text(&x, 8, name);
	for (int64_t i = 0; i < n; i++) {
		float v = most * next(&t->rng);

		str_addn(&raw.s, (const char *)&v, sizeof v);
	}
	pb_part(&x, 9, &raw);
	pb_part(&t->graph, 5, &x);
}

static void add_node(net *t, const char *text)
{
	mk m = {t->a, text, 0};
	pb n = mk_node(&m);

	pb_part(&t->graph, 1, &n);
}

/* "from" through a convolution and a ReLU; returns the name of the result */
static const char *conv(net *t, const char *from, const char *name,
	int64_t n_out, int64_t n_in, int64_t k, const char *attrs)
{
	int64_t shape[4] = {n_out, n_in, k, k};

	init(t, arena_printf(t->a, "%s_w", name), 4, shape,
		sqrtf(6.0f / (float)(n_in * k * k)));
	init(t, arena_printf(t->a, "%s_b", name), 1, shape, 0);
	add_node(t, arena_printf(t->a,
			    "Conv %s %s_w %s_b > %s_c : kernel_shape=[%d,%d] %s;",
			    from, name, name, name, (int)k, (int)k, attrs));
	add_node(t, arena_printf(t->a, "Relu %s_c > %s;", name, name));
	return name;
}

/* squeeze to s channels; expand to e by 1 x 1 and e by 3 x 3 */
static const char *fire(net *t, const char *from, int number, int64_t n_in,
	int64_t s, int64_t e)
{
	const char *name = arena_printf(t->a, "fire%d", number);
	const char *in = conv(t, from, arena_printf(t->a, "%s_squeeze", name),
		s, n_in, 1, "");

	add_node(t, arena_printf(t->a, "Concat %s %s > %s : axis=1;",
			    conv(t, in, arena_printf(t->a, "%s_expand1", name),
				    e, s, 1, ""),
			    conv(t, in, arena_printf(t->a, "%s_expand3", name),
				    e, s, 3, "pads=[1,1,1,1]"), name));
	return name;
}

static const char *pool(net *t, const char *from)
{
	const char *name = arena_printf(t->a, "pool%d", ++t->n);

	add_node(t, arena_printf(t->a,
			    "MaxPool %s > %s : kernel_shape=[3,3] strides=[2,2];",
			    from, name));
	return name;
}

static pb model_of(arena *a)
{
	net t = {.a = a, .graph = pb_new(a), .rng = 2016};
	mk in = {a, "picture float [N,3,64,64];", 0};
	mk out = {a, "class float [N,1000,1,1];", 0};
	pb model = pb_new(a), opset = pb_new(a), port = mk_port(&in);
	const char *v;

	pb_text(&t.graph, 2, "squeezenet");
	pb_part(&t.graph, 11, &port);
	port = mk_port(&out);
	pb_part(&t.graph, 12, &port);
	v = pool(&t, conv(&t, "picture", "conv1", 64, 3, 3, "strides=[2,2]"));
	v = fire(&t, fire(&t, v, 2, 64, 16, 64), 3, 128, 16, 64);
	v = pool(&t, v);
	v = fire(&t, fire(&t, v, 4, 128, 32, 128), 5, 256, 32, 128);
	v = pool(&t, v);
	v = fire(&t, fire(&t, v, 6, 256, 48, 192), 7, 384, 48, 192);
	v = fire(&t, fire(&t, v, 8, 384, 64, 256), 9, 512, 64, 256);
	add_node(&t, arena_printf(a, "Dropout %s > dropped : ratio=0.5;", v));
	v = conv(&t, "dropped", "conv10", 1000, 512, 1, "");
	add_node(&t, arena_printf(a, "GlobalAveragePool %s > mean;", v));
	add_node(&t, "Softmax mean > class : axis=1;");
	pb_int(&model, 1, 7);
	pb_part(&model, 7, &t.graph);
	pb_int(&opset, 2, 11);
	pb_part(&model, 8, &opset);
	return model;
}

/* Class k: waves of its own direction and colour, and noise. */
static bool write_data(tn_context *c, const char *dir)
{
	static float x[EXAMPLES][3][SIDE][SIDE];
	const int64_t shape[4] = {EXAMPLES, 3, SIDE, SIDE};
	int64_t y[EXAMPLES];
	uint64_t rng = 7;
	char path[4096];

	for (int i = 0; i < EXAMPLES; i++) {
		y[i] = i % CLASSES;
		for (int k = 0; k < 3; k++)
			for (int v = 0; v < SIDE; v++)
				for (int u = 0; u < SIDE; u++)
					x[i][k][v][u] = 0.2f * next(&rng) +
						sinf((float)(y[i] * u +
							     (9 - y[i]) * v) *
								0.15f + (float)k *
								(float)y[i]);
	}
	snprintf(path, sizeof path, "%s/picture.npy", dir);
	if (tn_npy_write(c, path, TN_F32, 4, shape, x) < 0)
		return false;
	snprintf(path, sizeof path, "%s/y.npy", dir);
	return tn_npy_write(c, path, TN_I64, 1, shape, y) == TN_OK;
}

static int write_all(tn_context *c, const char *file, const char *dir)
{
	env *e = env_new();
	arena *a = arena_new(e);
	pb model = model_of(a);
	FILE *f = fopen(file, "wb");
	bool ok = f != NULL && fwrite(model.s.at, 1, model.s.n, f) == model.s.n;

	ok = f != NULL && fclose(f) == 0 && ok && write_data(c, dir);
	arena_free(a);
	env_free(e);
	return ok ? 0 : 1;
}

static int same(const tn_array *a, const tn_array *b)
{
	double far = 0;

	if (a->n_elems != b->n_elems || a->n_elems == 0)
		return 1;
	for (int64_t i = 0; i < a->n_elems; i++) {
		double x = tn_get_f64(a->dtype, a->data, i);
		double d = fabs(x - tn_get_f64(b->dtype, b->data, i));

		if (!(d <= 1e-6 + 1e-4 * fabs(x)))
			far = d > far || d != d ? d : far;
	}
	printf("%lld elements, apart by at most %g beyond what may be\n",
		(long long)a->n_elems, far);
	return far == 0 ? 0 : 1;
}

static int loss(const tn_array *p, const tn_array *y)
{
	int64_t n = p->n_elems / y->n_elems;
	double sum = 0;

	for (int64_t i = 0; i < y->n_elems; i++)
		sum -= log(tn_get_f64(p->dtype, p->data,
			i * n + tn_get_i64(y->dtype, y->data, i)));
	printf("%.6f\n", sum / (double)y->n_elems);
	return 0;
}

int main(int argc, char **argv)
{
	tn_context *c = NULL;
	tn_array *a = NULL, *b = NULL;
	int code = 2;

	if (argc != 4 || tn_context_new(&c, NULL) < 0)
		return code;
	if (strcmp(argv[1], "write") == 0) {
		code = write_all(c, argv[2], argv[3]);
	} else if (tn_npy_read(&a, c, argv[2]) == TN_OK &&
		tn_npy_read(&b, c, argv[3]) == TN_OK) {
		code = strcmp(argv[1], "same") == 0 ? same(a, b) : loss(a, b);
	}
	if (code != 0)
		fprintf(stderr, "squeezenet: %s\n", tn_context_diag(c)->text);
	tn_array_free(a);
	tn_array_free(b);
	tn_context_free(c);
	return code;
}
