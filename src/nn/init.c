/*
 * init.c: initial values of parameters, drawn by the library itself: they are
 * drawn once, so compiling a kernel for them would cost more.
 *
 * The elements are drawn in blocks. The seed of each block follows from the
 * context's next key, so the values do not depend on the machine, the dtype or
 * the number of threads. Large tensors use several threads: 38 million normal
 * values take seconds.
 */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* _SC_NPROCESSORS_ONLN */
#include <tenon.h>

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 256, MANY = 1 << 18, MAX_THREADS = 8 };

/* How two numbers u in [0, 1) become one element. */
typedef struct drawing {
	double (*element)(const struct drawing *d, const double *u);
	double a, b;
} drawing;

static double constant(const drawing *d, const double *u)
{
	(void)u;
	return d->a;
}

static double uniform(const drawing *d, const double *u)
{
	return d->a + (d->b - d->a) * u[0];
}

/* Box-Muller transform (1958); 1 - u is never 0 */
static double normal(const drawing *d, const double *u)
{
	return d->a + d->b * sqrt(-2 * log(1 - u[0])) *
			      cos(6.283185307179586 * u[1]);
}

/* Elements `from` .. `to` of data; `from` is a multiple of BLOCK. */
typedef struct part {
	const drawing *d;
	tn_dtype t;
	void *data;
	int64_t from, to;
	uint64_t key;
} part;

static void *draw_part(void *arg)
{
	const part *p = arg;
	const drawing *d = p->d;
	double u[2 * BLOCK];
	fenv_t host;

	/* the values must not depend on the host's rounding mode */
	fegetenv(&host);
	fesetenv(FE_DFL_ENV);
	for (int64_t i = p->from; i < p->to; i += BLOCK) {
		int64_t most = p->to - i < BLOCK ? p->to - i : BLOCK;

		tn_fill_random(TN_F64, u, 2 * BLOCK,
			p->key + (uint64_t)(i / BLOCK), 0, 0);
		for (int64_t k = 0; k < 2 * BLOCK; k++)
			u[k] = 0.5 * u[k] + 0.5;
		if (p->t == TN_F32)
			for (int64_t k = 0; k < most; k++)
				((float *)p->data)[i + k] =
					(float)d->element(d, &u[2 * k]);
		else
			for (int64_t k = 0; k < most; k++)
				tn_set_f64(p->t, p->data, i + k,
					d->element(d, &u[2 * k]));
	}
	fesetenv(&host);
	return NULL;
}

static void draw(const drawing *d, tn_dtype t, void *data, int64_t n,
	uint64_t key)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t threads = n < MANY || cpus < 1 ? 1
			: cpus > MAX_THREADS   ? MAX_THREADS
					       : cpus;
	int64_t each = (n / threads + BLOCK) / BLOCK * BLOCK;
	pthread_t thread[MAX_THREADS];
	part p[MAX_THREADS];
	bool runs[MAX_THREADS] = {false};

	for (int64_t i = 0; i < threads; i++) {
		int64_t from = i * each < n ? i * each : n;
		int64_t to = i + 1 < threads && from + each < n ? from + each
								: n;

		p[i] = (part){d, t, data, from, to, key};
		runs[i] = i > 0 && pthread_create(&thread[i], NULL, draw_part,
					   &p[i]) == 0;
	}
	for (int64_t i = 0; i < threads; i++)
		if (!runs[i])
			draw_part(&p[i]);
	for (int64_t i = 0; i < threads; i++)
		if (runs[i])
			pthread_join(thread[i], NULL);
}

static tn_status next_key(
	const char *file, int32_t line, tn_context *c, uint64_t *out)
{
	tn_tensor *key = tn_at_random_key(file, line, c);
	tn_status s = tn_at_read(file, line, key, out, sizeof *out);

	tn_drop(key);
	return s;
}

static bool is_float(tn_dtype t)
{
	return t == TN_F32 || t == TN_F64 || t == TN_F16 || t == TN_BF16;
}

static tn_status fill(
	const char *file, int32_t line, tn_tensor *x, const drawing *d)
{
	tn_context *c = tn_tensor_context(x);
	tn_dtype t = tn_tensor_dtype(x);
	int64_t n = tn_tensor_n_elems(x);
	size_t n_bytes = (size_t)n * tn_dtype_bytes(t);
	uint64_t key = 0;
	tn_status s = TN_OK;
	void *data;

	if (!tn_is_valid(x))
		return tn_at_fail(file, line, c, TN_EINVAL, "tensor.handle",
			"the tensor to be drawn is not a valid tensor");
	if (d->element != constant) {
		if (!is_float(t))
			return tn_at_fail(file, line, c, TN_EINVAL,
				"init.dtype", "%s cannot be drawn: only f32, "
					"f64, f16 and bf16 can",
					tn_dtype_name(t));
		s = next_key(file, line, c, &key);
	}
	if (s < 0)
		return s;
	data = malloc(n_bytes > 0 ? n_bytes : 1);
	if (data == NULL)
		return tn_at_fail(file, line, c, TN_ENOMEM, "memory",
			"out of memory: %zu bytes were asked for", n_bytes);
	draw(d, t, data, n, key);
	s = tn_at_set_data(file, line, x, data, n_bytes);
	free(data);
	return s;
}

tn_status tn_at_init_constant(
	const char *file, int32_t line, tn_tensor *x, double value)
{
	drawing d = {constant, value, 0};

	return fill(file, line, x, &d);
}

tn_status tn_at_init_uniform(
	const char *file, int32_t line, tn_tensor *x, double lo, double hi)
{
	drawing d = {uniform, lo, hi};

	return fill(file, line, x, &d);
}

tn_status tn_at_init_normal(const char *file, int32_t line, tn_tensor *x,
	double mean, double deviation)
{
	drawing d = {normal, mean, deviation};

	return fill(file, line, x, &d);
}

/* ---- by the shape ---- */

typedef struct fans {
	double in, out;
} fans;

static tn_status fans_of(
	const char *file, int32_t line, const tn_tensor *x, fans *f)
{
	int32_t rank = tn_tensor_rank(x);
	const int64_t *shape = tn_tensor_shape(x);

	if (!tn_is_valid(x))
		return tn_at_fail(file, line, tn_tensor_context(x), TN_EINVAL,
			"tensor.handle", "the tensor to be drawn is not a "
				"valid tensor");
	if (rank < 2)
		return tn_at_fail(file, line, tn_tensor_context(x), TN_EINVAL,
			"init.rank", "a weight must have two axes or more, "
				"[out, in, ..], but it has %d", rank);
	f->in = (double)shape[1];
	f->out = (double)shape[0];
	for (int32_t i = 2; i < rank; i++) {
		f->in *= (double)shape[i];
		f->out *= (double)shape[i];
	}
	return TN_OK;
}

/* A uniform variable in -b .. b has the deviation b / sqrt(3). */
static tn_status fill_uniform(
	const char *file, int32_t line, tn_tensor *x, double deviation)
{
	double bound = sqrt(3) * deviation;

	return tn_at_init_uniform(file, line, x, -bound, bound);
}

tn_status tn_at_init_kaiming_uniform(
	const char *file, int32_t line, tn_tensor *x, double gain)
{
	fans f;
	tn_status s = fans_of(file, line, x, &f);

	return s < 0 ? s : fill_uniform(file, line, x, gain / sqrt(f.in));
}

tn_status tn_at_init_kaiming_normal(
	const char *file, int32_t line, tn_tensor *x, double gain)
{
	fans f;
	tn_status s = fans_of(file, line, x, &f);

	return s < 0 ? s
		     : tn_at_init_normal(
			       file, line, x, 0, gain / sqrt(f.in));
}

tn_status tn_at_init_xavier_uniform(
	const char *file, int32_t line, tn_tensor *x, double gain)
{
	fans f;
	tn_status s = fans_of(file, line, x, &f);

	return s < 0 ? s
		     : fill_uniform(file, line, x,
			       gain * sqrt(2 / (f.in + f.out)));
}
