/*
 * Tensors on CUDA devices, on a driver that needs no GPU (tests/fake): training
 * gives the bits that emulated warps give; what fails - an index, memory, a
 * launch, the device - leaves everything as it was.
 */
#include "cuda.h"

enum { N = 12, M = 20, BATCH = 7, IDS = 5 };

static void good(tn_context *c)
{
	if (tn_context_status(c) != TN_OK)
		fail_msg("%s: %s", tn_context_diag(c)->rule,
			tn_context_diag(c)->text);
}

static void fill(float *at, int32_t n, int32_t seed)
{
	for (int32_t i = 0; i < n; i++)
		at[i] = (float)((i * 29 + seed * 53) % 97) / 97 - 0.5f;
}

static tn_tensor *param(tn_context *c, const char *name, int64_t rows,
	int64_t columns, int32_t seed)
{
	const int64_t shape[2] = {rows, columns};
	float data[N * M];

	fill(data, (int32_t)(rows * columns), seed);
	return tn_parameter(c, name, TN_F32, 2, shape, data);
}

struct model {
	tn_tensor *table, *w, *v;
};

static struct model model_of(tn_context *c)
{
	return (struct model){param(c, "table", N, M, 1), param(c, "w", M, N, 2),
		param(c, "v", N, M, 3)};
}

/* One step: the parameters are written in place, through views, too. */
static tn_tensor *step(tn_context *c, struct model *m, const int64_t *ids,
	int32_t round)
{
	const int64_t n_ids = IDS, axis = 0, start = 1, count = 4;
	tn_tensor *i = tn_tensor_new(c, TN_I64, 1, &n_ids, ids);
	tn_tensor *h = tn_relu(tn_matmul(tn_embedding(i, m->table), m->w));
	tn_tensor *y = tn_matmul(h, m->v), *loss, *rate;
	tn_tensor *all[3] = {m->table, m->w, m->v};

	loss = tn_reduce_mean(tn_mul(y, y), NULL, 0, false);
	tn_backward(loss, NULL);
	rate = tn_scalar(c, TN_F32, 0.1 / (round + 1));
	tn_no_grad_enter(c);
	for (int32_t k = 0; k < 3; k++)
		tn_sub_(all[k], tn_mul(tn_gradient(all[k]), rate));
	tn_add_(tn_slice(m->w, &axis, 1, &start, 1, &count, 1, NULL, 0),
		tn_scalar(c, TN_F32, 0.01));
	tn_no_grad_leave(c);
	for (int32_t k = 0; k < 3; k++)
		tn_zero_grad(all[k]);
	return loss;
}

static const int64_t ids[IDS] = {3, 0, 11, 3, 7};

enum { ROUNDS = 3, ROOM = 3 * N * M + ROUNDS };

static void read_model(tn_context *c, const struct model *m, float *out)
{
	tn_read(m->table, out, N * M * sizeof *out);
	tn_read(m->w, out + N * M, N * M * sizeof *out);
	tn_read(m->v, out + 2 * N * M, N * M * sizeof *out);
	good(c);
}

static void train(const char *device, float *out)
{
	tn_context *c = context_on(device);
	struct model m = model_of(c);

	for (int32_t i = 0; i < ROUNDS; i++) {
		tn_scope_enter(c);
		out[3 * N * M + i] = (float)tn_item(step(c, &m, ids, i));
		tn_scope_leave(c);
	}
	read_model(c, &m, out);
	tn_context_free(c);
}

static void test_train(void **state)
{
	static float simt[ROOM], cuda[ROOM];

	(void)state;
	train("simt", simt);
	for (int32_t early = 0; early < 2; early++) {
		fake->early = early;
		memset(cuda, 0, sizeof cuda);
		train("cuda", cuda);
		assert_memory_equal(simt, cuda, sizeof simt);
	}
}

/* ---- what fails -------------------------------------------------------- */

/* A bad index: the step did nothing, and the next one does what it would have. */
static void test_index(void **state)
{
	static const int64_t bad[IDS] = {3, 0, N, 3, 7};
	static float before[ROOM], after[ROOM], simt[ROOM];
	tn_context *c = context_on("cuda");
	struct model m = model_of(c);

	(void)state;
	read_model(c, &m, before);
	for (int32_t i = 0; i < 2; i++) {
		tn_scope_enter(c);
		(void)tn_item(step(c, &m, bad, 0));
		assert_int_equal(tn_context_status(c), TN_ERANGE);
		assert_non_null(strstr(tn_context_diag(c)->text, "is 12"));
		tn_context_clear(c);
		tn_scope_leave(c);
		read_model(c, &m, after);
		assert_memory_equal(before, after, 3 * N * M * sizeof *before);
	}
	for (int32_t i = 0; i < ROUNDS; i++) {
		tn_scope_enter(c);
		after[3 * N * M + i] = (float)tn_item(step(c, &m, ids, i));
		tn_scope_leave(c);
	}
	read_model(c, &m, after);
	train("simt", simt);
	assert_memory_equal(simt, after, sizeof simt);
	tn_context_free(c);
}

/* Memory ends: the message has sizes; what was there stays, and can be used. */
static void test_memory(void **state)
{
	enum { MB = 1 << 20 };
	tn_context *c;
	tn_tensor *x[64], *more = NULL;
	const int64_t n = 2 * MB / 4;
	float *data = calloc((size_t)n, sizeof *data);
	int32_t k = 0;

	(void)state;
	fake->bytes = 40 * (size_t)MB;
	c = context_on("cuda");
	for (; k < 64; k++) {
		data[1] = (float)k;
		x[k] = tn_tensor_new(c, TN_F32, 1, &n, data);
		if (tn_context_status(c) != TN_OK)
			break;
	}
	assert_in_range(k, 10, 30);
	assert_string_equal(tn_context_diag(c)->rule, "device.memory");
	assert_int_equal(tn_context_status(c), TN_ENOMEM);
	assert_non_null(strstr(tn_context_diag(c)->text,
		"cannot allocate 2097152 bytes of the memory of cuda:0"));
	tn_context_clear(c);
	for (int32_t i = 0; i < k; i++) {
		tn_read(x[i], data, 2 * MB);
		good(c);
		assert_true(data[1] == (float)i);
	}
	/* what is freed is used again */
	tn_drop(x[0]);
	tn_drop(x[1]);
	more = tn_tensor_new(c, TN_F32, 1, &n, data);
	good(c);
	tn_drop(more);
	free(data);
	tn_context_free(c);
}

/* A step, all of which runs now; the loss, or 0 if it failed. */
static float whole_step(tn_context *c, struct model *m, int32_t round)
{
	tn_tensor *all[4];
	float loss = 0;

	tn_scope_enter(c);
	all[0] = step(c, m, ids, round);
	all[1] = m->table;
	all[2] = m->w;
	all[3] = m->v;
	if (tn_eval(all, 4) == TN_OK)
		loss = (float)tn_item(all[0]);
	return loss; /* the scope is left by the caller */
}

/* Each launch of a step is refused once: nothing has happened then. */
static void test_launch(void **state)
{
	static float before[ROOM], after[ROOM], simt[ROOM];
	tn_context *c = context_on("cuda");
	struct model m = model_of(c);
	int32_t failed = 0;

	(void)state;
	read_model(c, &m, before);
	for (int32_t i = 0; i < 100; i++) {
		tn_status s;

		fake->fail_launch = i + 1;
		after[3 * N * M] = whole_step(c, &m, 0);
		fake->fail_launch = 0;
		s = tn_context_status(c);
		if (s == TN_OK)
			break;
		failed++;
		assert_int_equal(s, TN_EIO);
		assert_string_equal(tn_context_diag(c)->rule, "device.launch");
		assert_non_null(strstr(tn_context_diag(c)->text,
			"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
		tn_context_clear(c);
		tn_scope_leave(c);
		read_model(c, &m, after);
		assert_memory_equal(before, after, 3 * N * M * sizeof *before);
	}
	tn_scope_leave(c);
	assert_in_range(failed, 3, 99);
	for (int32_t i = 1; i < ROUNDS; i++) {
		after[3 * N * M + i] = whole_step(c, &m, i);
		tn_scope_leave(c);
	}
	read_model(c, &m, after);
	train("simt", simt);
	for (int32_t i = 0; i < 3 * N * M; i++)
		assert_true(fabsf(simt[i] - after[i]) < 1e-5f);
	tn_context_free(c);
}

/* The device stops: every call says so, with the kernels; all can be freed. */
static void test_lost(void **state)
{
	static float out[ROOM];
	tn_context *c = context_on("cuda");
	struct model m = model_of(c);

	(void)state;
	read_model(c, &m, out);
	fake->fault = 2;
	(void)whole_step(c, &m, 0);
	for (int32_t i = 0; i < 2; i++) {
		assert_int_equal(tn_context_status(c), TN_EIO);
		assert_string_equal(tn_context_diag(c)->rule, "device.lost");
		assert_non_null(strstr(tn_context_diag(c)->text,
			"the device cuda:0 stopped: CUDA_ERROR_ILLEGAL_ADDRESS"));
		assert_non_null(strstr(tn_context_diag(c)->text, "k_"));
		tn_context_clear(c);
		tn_read(m.w, out, N * M * sizeof *out);
	}
	tn_context_clear(c);
	tn_scope_leave(c);
	tn_context_free(c);
	fake->is_broken = false;
	train("cuda", out); /* in a new context */
}

/* ---- graphs ------------------------------------------------------------ */

/* A list of launches is one graph, which is kept while addresses are. */
static void test_graphs(void **state)
{
	static const char text[] = "program {\n  x: f32[9,40]\n  w: f32[40,40]\n"
				   "  a = matmul(x, w)\n  b = softmax(a)\n"
				   "  d = matmul(b, w)\n  e = softmax(d)\n"
				   "  return e\n}\n";
	static float x[360], w[1600], out[360], first[360];
	const void *in[2] = {x, w};
	void *to[1] = {out};
	tn_context *c = context_on("cuda");
	tn_program *p;
	tn_device_stats s;
	int64_t captured = 0;

	(void)state;
	fill(x, 360, 4);
	fill(w, 1600, 5);
	assert_int_equal(
		tn_program_parse(&p, c, text, sizeof text - 1, "t.tn"), TN_OK);
	for (int32_t i = 0; i < 4; i++) {
		memset(out, 0, sizeof out);
		assert_int_equal(tn_program_run(p, in, to), TN_OK);
		if (i == 0)
			memcpy(first, out, sizeof out);
		assert_memory_equal(first, out, sizeof out);
		if (i == 0)
			captured = fake->n_captured;
		assert_int_equal(fake->n_captured, captured);
	}
	assert_true(captured > 1);
	assert_int_equal(fake->n_graph_launches, 4);
	tn_context_device_stats(c, &s);
	assert_int_equal(s.n_graphs, 4);
	assert_in_range(s.n_launches, 4, 1000);
	tn_program_free(p);
	assert_int_equal(fake->n_graphs, 0); /* they end with the program */
	tn_context_free(c);
}

/* ---- beside kernels ---------------------------------------------------- */

static tn_status doubled(void *user, int32_t n_in, const tn_array *in,
	int32_t n_out, const tn_array *out)
{
	int32_t *n = user;

	(void)n_in, (void)n_out;
	++*n;
	for (int64_t i = 0; i < 6; i++)
		((float *)out[0].data)[i] = 2 * ((const float *)in[0].data)[i];
	return TN_OK;
}

/* Rows and functions of the host get copies. */
static void test_host(void **state)
{
	static const float data[6] = {3, -1, 2, 0, 5, 4};
	const int64_t shape[2] = {2, 3};
	tn_context *c = context_on("cuda");
	tn_tensor *x = tn_tensor_new(c, TN_F32, 2, shape, data), *y[2];
	const tn_array type = {.dtype = TN_F32, .rank = 2, .shape = {2, 3}};
	tn_device_stats s;
	float out[6];
	int32_t n = 0;

	(void)state;
	assert_int_equal(tn_sort(tn_add(x, x), 1, false, y), TN_OK);
	tn_read(tn_neg(y[0]), out, sizeof out);
	good(c);
	assert_true(out[0] == 2 && out[1] == -4 && out[2] == -6);
	tn_context_device_stats(c, &s);
	assert_string_equal(s.name, "cuda:0");
	assert_int_equal(s.n_host, 1);
	assert_string_equal(s.host, "sort");
	assert_true(s.bytes_used > 0 && s.bytes_reserved >= s.bytes_used);
	tn_host_call(c, doubled, NULL, &n, 1, &x, 1, &type, y);
	tn_read(tn_add(y[0], x), out, sizeof out);
	good(c);
	assert_int_equal(n, 1);
	assert_memory_equal(out, ((float[]){9, -3, 6, 0, 15, 12}), sizeof out);
	tn_context_free(c);
}

/* One memory for two contexts on a device; none for the CPU's. */
/* Tensors go from device to device, as copies; what fails is said to both. */
static void test_to(void **state)
{
	static const float data[6] = {3, -1, 2, 1, 5, 4};
	const int64_t shape[2] = {2, 3};
	tn_context *cpu = context_on("cpu"), *gpu = context_on("cuda");
	tn_tensor *x = tn_tensor_new(cpu, TN_F32, 2, shape, data), *y, *z;
	tn_tensor *none = tn_tensor_new(cpu, TN_F32, 1, (int64_t[]){0}, NULL);
	float out[6];

	(void)state;
	assert_string_equal(tn_device_of(x), "cpu");
	assert_null(tn_device_of(NULL));
	y = tn_to(gpu, tn_neg(x));
	assert_string_equal(tn_device_of(y), "cuda:0");
	z = tn_to(cpu, tn_add(y, y));
	tn_add_(y, y); /* z is a copy */
	assert_int_equal(tn_eval(&y, 1), TN_OK);
	assert_string_equal(tn_device_of(z), "cpu");
	tn_read(z, out, sizeof out);
	assert_memory_equal(
		out, ((float[]){-6, 2, -4, -2, -10, -8}), sizeof out);
	assert_int_equal(tn_tensor_n_elems(tn_to(gpu, none)), 0);
	good(cpu);
	good(gpu);
	/* a read that fails: both contexts say why, and go on */
	z = tn_embedding(tn_tensor_new(gpu, TN_I64, 1, (int64_t[]){1},
				 (int64_t[]){7}),
		y);
	assert_null(tn_to(cpu, z));
	assert_string_equal(tn_context_diag(cpu)->rule, "index.range");
	assert_string_equal(tn_context_diag(gpu)->rule, "index.range");
	tn_context_clear(cpu);
	tn_context_clear(gpu);
	fake->bytes = fake->in_use + 64;
	assert_false(tn_is_valid(tn_to(gpu, tn_normal(tn_random_key(cpu),
		(int64_t[]){1 << 23}, 1, TN_F32))));
	assert_string_equal(tn_context_diag(gpu)->rule, "device.memory");
	fake->bytes = (size_t)1 << 32;
	tn_context_clear(gpu);
	assert_null(tn_to(gpu, NULL));
	assert_string_equal(tn_context_diag(gpu)->rule, "tensor.handle");
	tn_context_clear(gpu);
	tn_read(tn_to(cpu, y), out, sizeof out);
	assert_memory_equal(
		out, ((float[]){-6, 2, -4, -2, -10, -8}), sizeof out);
	good(cpu);
	tn_context_free(gpu);
	tn_context_free(cpu);
}

static void test_dlpack(void **state)
{
	static const float data[6] = {3, -1, 2, 0, 5, 4};
	const int64_t shape[2] = {2, 3};
	tn_context *c = context_on("cuda"), *d = context_on("cuda:0");
	tn_context *e = context_on("cpu");
	tn_tensor *x = tn_tensor_new(c, TN_F32, 2, shape, data), *y;
	tn_dl_managed *m = NULL;
	float out[6];

	(void)state;
	assert_int_equal(tn_dlpack_export(x, &m), TN_OK);
	assert_int_equal(m->tensor.device.type, 2);
	assert_int_equal(m->tensor.device.id, 0);
	assert_null(tn_dlpack_import(e, m));
	assert_string_equal(tn_context_diag(e)->rule, "dlpack.device");
	y = tn_dlpack_import(d, m);
	good(d);
	tn_add_(y, y);
	tn_eval(&y, 1);
	assert_int_equal(tn_device_wait(d), TN_OK);
	good(d);
	tn_read(x, out, sizeof out);
	assert_memory_equal(out, ((float[]){6, -2, 4, 0, 10, 8}), sizeof out);
	tn_context_free(d);
	tn_context_free(c);
	tn_context_free(e);
}

/* ---- another library, with a stream of its own -------------------------- */

/* Functions of the driver that it calls. */
static struct {
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*alloc)(unsigned long long *at, size_t n);
	int (*free)(unsigned long long at);
	int (*put)(unsigned long long to, const void *from, size_t n, void *s);
	int (*get)(void *to, unsigned long long from, size_t n, void *s);
	int (*stream_new)(void **s, unsigned flags);
	int (*stream_free)(void *s);
	int (*stream_wait)(void *s);
} driver;

static void find(void *lib, const char *name, void *fn)
{
	void *sym = dlsym(lib, name);

	assert_non_null(sym);
	memcpy(fn, &sym, sizeof sym);
}

static void load_driver(void)
{
	void *lib = dlopen(FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);

	find(lib, "cuDevicePrimaryCtxRetain", &driver.retain);
	find(lib, "cuDevicePrimaryCtxRelease_v2", &driver.release);
	find(lib, "cuCtxPushCurrent_v2", &driver.push);
	find(lib, "cuCtxPopCurrent_v2", &driver.pop);
	find(lib, "cuMemAlloc_v2", &driver.alloc);
	find(lib, "cuMemFree_v2", &driver.free);
	find(lib, "cuMemcpyHtoDAsync_v2", &driver.put);
	find(lib, "cuMemcpyDtoHAsync_v2", &driver.get);
	find(lib, "cuStreamCreate", &driver.stream_new);
	find(lib, "cuStreamDestroy_v2", &driver.stream_free);
	find(lib, "cuStreamSynchronize", &driver.stream_wait);
}

static void forget(tn_dl_managed *m)
{
	++*(int *)m->manager;
}

/*
 * It fills memory on its stream, and waits for nothing; Tenon reads that, and
 * writes it in place; it reads that on its stream.
 */
static void share(tn_context *c, void *context, void *stream)
{
	static const float data[6] = {3, -1, 2, 0, 5, 4};
	float out[6], theirs[6];
	unsigned long long at;
	int64_t shape[1] = {6};
	int n_freed = 0;
	tn_dl_managed m = {.manager = &n_freed, .deleter = forget};
	tn_tensor *x, *y;

	assert_int_equal(driver.push(context), 0);
	assert_int_equal(driver.alloc(&at, sizeof data), 0);
	assert_int_equal(driver.put(at, data, sizeof data, stream), 0);
	m.tensor = (tn_dl_tensor){.data = (void *)(uintptr_t)at,
		.device = {2, 0},
		.n_axes = 1,
		.dtype = {2, 32, 1},
		.shape = shape};
	tn_scope_enter(c);
	x = tn_dlpack_import(c, &m);
	assert_int_equal(tn_device_follow(c, stream), TN_OK);
	y = tn_add(x, x);
	tn_read(y, out, sizeof out);
	good(c);
	tn_add_(x, y);
	tn_eval(&x, 1);
	good(c);
	assert_int_equal(tn_device_lead(c, stream), TN_OK);
	assert_int_equal(driver.get(theirs, at, sizeof theirs, stream), 0);
	assert_int_equal(driver.stream_wait(stream), 0);
	for (int32_t i = 0; i < 6; i++) {
		assert_true(out[i] == 2 * data[i]);
		assert_true(theirs[i] == 3 * data[i]);
	}
	tn_scope_leave(c);
	tn_device_wait(c);
	assert_int_equal(n_freed, 1);
	assert_int_equal(driver.free(at), 0);
	assert_int_equal(driver.pop(&context), 0);
}

static void test_streams(void **state)
{
	(void)state;
	load_driver();
	for (int32_t early = 0; early < 2; early++) {
		tn_context *c = context_on("cuda");
		tn_context *cpu = context_on("cpu");
		void *context, *stream;

		fake->early = early;
		assert_non_null(tn_device_stream(c));
		assert_null(tn_device_stream(cpu));
		assert_int_equal(tn_device_follow(cpu, NULL), TN_OK);
		assert_int_equal(tn_device_lead(cpu, NULL), TN_OK);
		assert_int_equal(driver.retain(&context, 0), 0);
		assert_int_equal(driver.push(context), 0);
		assert_int_equal(driver.stream_new(&stream, 1), 0);
		assert_int_equal(driver.pop(&context), 0);
		share(c, context, stream);
		assert_int_equal(driver.push(context), 0);
		assert_int_equal(driver.stream_free(stream), 0);
		assert_int_equal(driver.pop(&context), 0);
		tn_context_free(cpu);
		tn_context_free(c);
		assert_int_equal(driver.release(0), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_train, begin, end),
		cmocka_unit_test_setup_teardown(test_index, begin, end),
		cmocka_unit_test_setup_teardown(test_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_launch, begin, end),
		cmocka_unit_test_setup_teardown(test_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_graphs, begin, end),
		cmocka_unit_test_setup_teardown(test_host, begin, end),
		cmocka_unit_test_setup_teardown(test_to, begin, end),
		cmocka_unit_test_setup_teardown(test_dlpack, begin, end),
		cmocka_unit_test_setup_teardown(test_streams, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
