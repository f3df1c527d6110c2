/*
 * test_cuda_mesh.c: moves between devices of several processes, by NCCL, without the
 * memory of the hosts: they give the bits of moves through the hosts, and no element
 * is seen by a host. Processes are threads, on tests/fake.
 */
#include "cuda_mesh.h"

/* all of them take minutes: every n-th in the quick suite */
#ifndef MESH_ALL
#define MESH_ALL 17
#endif

enum { MOST_RANKS = 4, ROOM = 4096, ROWS = 7, COLUMNS = 5, DEPTH = 3 };

#define R TN_REPLICATED
#define S0 TN_SHARDED(0)
#define S1 TN_SHARDED(1)
#define S2 TN_SHARDED(2)
#define WIDE TN_SHARDED_BY(0, 5)
#define P TN_PARTS("sum")
#define MAX TN_PARTS("max")

/* ---- one tensor from one placement to another --------------------------- */

typedef struct moved {
	int64_t extent[2]; /* of the mesh */
	const tn_placement *from, *to;
	const char *dtype;
	bool by_host;
	/* by process: the part of a view that was computed, and of a tensor that
	 * was placed elsewhere */
	size_t n[MOST_RANKS][2];
	char bits[MOST_RANKS][2][ROOM];
	tn_device_stats s[MOST_RANKS];
	char peers[MOST_RANKS][300];
	int64_t n_put, n_get; /* of all, while elements moved */
} moved;

static tn_tensor *numbers(tn_context *c, const moved *k)
{
	float v[ROWS * COLUMNS * DEPTH];
	tn_tensor *x;

	/* sums in another order have other bits */
	for (int32_t i = 0; i < ROWS * COLUMNS * DEPTH; i++)
		v[i] = (float)((i * 37 % 101 - 50) / 7.0) +
		       (float)tn_process(c) * 1e-3f;
	x = tn_tensor_new(c, TN_F32, 3, SHAPE(ROWS, COLUMNS, DEPTH), v);
	return strcmp(k->dtype, "f64") == 0  ? tn_cast(x, TN_F64)
	       : strcmp(k->dtype, "u8") == 0 ? tn_cast(tn_abs(x), TN_U8)
					     : x;
}

static bool is_parts(const tn_placement *p)
{
	return p[0].kind == TN_PLACE_PARTS || p[1].kind == TN_PLACE_PARTS;
}

static void move_it(tn_context *c, int32_t process, void *arg)
{
	moved *k = arg;
	tn_mesh *m = tn_mesh_new(c, 2, NULL, k->extent);
	tn_tensor *a = numbers(c, k), *x, *y;
	int64_t n_put, n_get;

	tn_eval(&a, 1);
	tn_shard(a, m, k->from);
	x = is_parts(k->from) || is_parts(k->to) ? a : tn_neg(a);
	tn_eval(&x, 1);
	meet(c);
	n_put = fake->n_put;
	n_get = fake->n_get;
	meet(c);
	if (is_parts(k->to)) { /* no view is placed so */
		y = a;
	} else {
		y = tn_neg(tn_reshard(a, m, k->to));
		tn_shard(y, m, k->to);
		tn_eval(&y, 1);
		if (x != a)
			tn_shard(x, m, k->to);
	}
	meet(c);
	if (process == 0) {
		k->n_put = fake->n_put - n_put;
		k->n_get = fake->n_get - n_get;
	}
	meet(c);
	k->n[process][0] = local_bits(y, k->bits[process][0], ROOM);
	k->n[process][1] = local_bits(x, k->bits[process][1], ROOM);
	tn_context_device_stats(c, &k->s[process]);
	snprintf(k->peers[process], sizeof k->peers[process], "%s",
		k->s[process].peers);
}

static void run_moved(moved *k, const char *library)
{
	ranks_thread t[MOST_RANKS];
	int32_t n = (int32_t)(k->extent[0] * k->extent[1]);

	setenv("TENON_NCCL", library, 1);
	ranks_run(t, n, false, move_it, k);
	for (int32_t p = 0; p < n; p++)
		if (t[p].text[0] != '\0')
			fail_msg("process %d: %s", (int)p, t[p].text);
}

static void compare(const moved *k, const moved *host)
{
	int32_t n = (int32_t)(k->extent[0] * k->extent[1]);
	int64_t sent = 0;

	for (int32_t p = 0; p < n; p++) {
		for (int32_t i = 0; i < 2; i++) {
			assert_int_equal(k->n[p][i], host->n[p][i]);
			assert_memory_equal(
				k->bits[p][i], host->bits[p][i], k->n[p][i]);
		}
		assert_int_equal(k->s[p].bytes_by_host, 0);
		assert_int_equal(host->s[p].bytes_to_peers, 0);
		assert_int_equal(
			k->s[p].bytes_to_peers, host->s[p].bytes_by_host);
		assert_int_equal(k->s[p].n_host, 0);
		sent += k->s[p].bytes_to_peers;
		if (sent > 0)
			assert_string_equal(k->peers[p], "NCCL 2.28.9");
	}
	assert_int_equal(nccl->n_bytes, sent);
	assert_int_equal(nccl->n_sends, nccl->n_receives);
	assert_true(nccl->most_in_group <= 2 * (n - 1));
	if (sent == 0)
		return;
	/* no element went through a host */
	assert_int_equal(k->n_get, 0);
	assert_int_equal(k->n_put, 0);
	assert_true(host->n_get > 0);
}

static int64_t n_moved;

static void one_pair(int64_t a, int64_t b, const char *dtype,
	const tn_placement *from, const tn_placement *to)
{
	static moved k, host; /* large */

	*nccl = (fake_nccl_state){0};
	k = host = (moved){
		.extent = {a, b}, .from = from, .to = to, .dtype = dtype};
	run_moved(&k, FAKE_NCCL);
	run_moved(&host, "/nowhere/libnccl.so.2");
	compare(&k, &host);
	n_moved += nccl->n_bytes;
}

static const tn_placement places[][2] = {{R, R}, {S0, R}, {S1, R}, {S2, R},
	{WIDE, R}, {P, R}, {R, S0}, {S0, S1}, {S1, S0}, {S0, S0}, {P, S1},
	{P, P}, {MAX, R}};
enum { N_PLACES = sizeof places / sizeof *places };

static void test_moves(void **state)
{
	static const int64_t extent[][2] = {{2, 2}, {3, 1}, {2, 1}, {4, 1}};
	static const char *const dtype[] = {"f32", "f64", "u8"};
	int32_t turn = 0;

	(void)state;
	n_moved = 0;
	for (int32_t i = 0; i < N_PLACES; i++)
		for (int32_t k = 0; k < N_PLACES; k++) {
			const int64_t *e = extent[turn % 4];
			bool sums = is_parts(places[i]) || is_parts(places[k]);

			if (i == k || turn++ % MESH_ALL != 0)
				continue;
			one_pair(e[0], e[1], sums ? "f32" : dtype[turn % 3],
				places[i], places[k]);
		}
	assert_true(n_moved > 0);
}

/* The moves that have names, on four processes; what is asynchronous happens late, or
 * at once. */
static void test_names(void **state)
{
	(void)state;
	for (int32_t early = 0; early < 2; early++) {
		fake->early = early != 0;
		one_pair(4, 1, "f32", places[1], places[0]); /* all-gather */
		assert_true(nccl->n_bytes > 0);
		one_pair(4, 1, "f32", places[2], places[1]); /* all-to-all */
		assert_true(nccl->n_bytes > 0);
		one_pair(4, 1, "f32", places[5], places[0]); /* all-reduce */
		assert_true(nccl->n_bytes > 0);
		one_pair(
			4, 1, "f32", places[5], places[3]); /* reduce-scatter */
		assert_true(nccl->n_bytes > 0);
	}
	/* rows that the driver does not copy at once */
	fake->refuses_rows = true;
	one_pair(4, 1, "f32", places[2], places[1]);
	assert_true(nccl->n_bytes > 0);
	fake->refuses_rows = false;
	one_pair(1, 1, "f32", places[1], places[0]); /* nothing */
	assert_int_equal(nccl->n_bytes, 0);
	assert_int_equal(nccl->n_joins, 0);
}

/* ---- programs ---------------------------------------------------------- */

enum { MOST_OUT = 4 };

typedef void program_body(tn_context *c, tn_mesh *m, tn_tensor **out);

typedef struct computed {
	program_body *body;
	int64_t n_ranks;
	size_t n[MOST_RANKS];
	char bits[MOST_RANKS][ROOM];
	tn_device_stats s[MOST_RANKS];
	int64_t n_get; /* of all, from the first call until all is computed */
} computed;

static tn_tensor *ramp(
	tn_context *c, const char *name, int32_t rank, const int64_t *shape)
{
	float v[256];
	int64_t n = 1;

	for (int32_t i = 0; i < rank; i++)
		n *= shape[i];
	for (int64_t i = 0; i < n; i++)
		v[i] = (float)(i * 29 % 53 - 26) / 17;
	return name != NULL ? tn_parameter(c, name, TN_F32, rank, shape, v)
			    : tn_tensor_new(c, TN_F32, rank, shape, v);
}

static void place(tn_tensor *x, tn_mesh *m, tn_placement p)
{
	tn_shard(x, m, &p);
}

static tn_tensor *seen(tn_tensor *x, tn_mesh *m, tn_placement p)
{
	return tn_reshard(x, m, &p);
}

/* Rows that neighbours have. */
static void halo(tn_context *c, tn_mesh *m, tn_tensor **out)
{
	tn_tensor *x = ramp(c, NULL, 2, SHAPE(11, 6));
	tn_tensor *w = ramp(c, NULL, 3, SHAPE(1, 1, 3));
	tn_tensor *y = ramp(c, NULL, 3, SHAPE(1, 1, 17));

	place(x, m, (tn_placement)S0);
	out[0] = tn_sub(tn_narrow(x, 0, 1, 10), tn_narrow(x, 0, 0, 10));
	place(y, m, (tn_placement)S2);
	y = tn_conv(y, w, 1, NULL, 0, NULL, 0, SHAPE(1), 1, SHAPE(1), 1);
	out[1] = tn_reshape(y, SHAPE(17), 1);
}

/* Partial results of several components, and of several axes. */
static void reductions(tn_context *c, tn_mesh *m, tn_tensor **out)
{
	tn_tensor *x = ramp(c, NULL, 2, SHAPE(6, 7));

	place(x, m, (tn_placement)S1);
	out[0] = tn_softmax(x, 1);
	out[1] = tn_argmax(x, 1, false);
	out[2] = tn_reduce_var(x, SHAPE(1), 1, false, 0);
	out[3] = tn_cast(
		tn_reduce_sum(tn_cast(x, TN_BF16), SHAPE(0, 1), 2, false),
		TN_F32);
}

/* A layer, its gradients, and what is written in place. */
static void step(tn_context *c, tn_mesh *m, tn_tensor **out)
{
	tn_tensor *w = ramp(c, "w", 2, SHAPE(5, 6));
	tn_tensor *u = ramp(c, "u", 2, SHAPE(6, 4));
	tn_tensor *v = ramp(c, NULL, 2, SHAPE(5, 6));
	tn_tensor *x = ramp(c, NULL, 2, SHAPE(7, 5));
	tn_tensor *rate = tn_scalar(c, TN_F32, 0.125);

	place(w, m, (tn_placement)S1);
	place(u, m, (tn_placement)S0);
	place(v, m, (tn_placement)S0);
	for (int32_t i = 0; i < 2; i++) {
		tn_tensor *y = tn_matmul(tn_sin(tn_matmul(x, w)), u), *g;

		tn_backward(tn_reduce_sum(tn_mul(y, y), SHAPE(0, 1), 2, false),
			NULL);
		g = tn_gradient(w);
		tn_no_grad_enter(c);
		tn_copy_(v, tn_add(tn_mul(v, rate), g));
		tn_copy_(w,
			tn_sub(w, tn_mul(seen(v, m, (tn_placement)S1), rate)));
		tn_copy_(u, tn_sub(u, tn_mul(tn_gradient(u), rate)));
		tn_no_grad_leave(c);
		tn_zero_grad(w);
		tn_zero_grad(u);
		out[0] = w;
		tn_eval(out, 1);
	}
	out[1] = u;
	out[2] = v;
}

static tn_status norm(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	tn_tensor *state = user;

	out[0] = tn_mul(in[0], tn_reduce_sum(in[0], SHAPE(0), 1, true));
	tn_add_(state, tn_reduce_max(out[0], SHAPE(1), 1, false));
	return tn_context_status(c);
}

/* A compiled function, three times. */
static void function(tn_context *c, tn_mesh *m, tn_tensor **out)
{
	tn_tensor *x = ramp(c, NULL, 2, SHAPE(6, 5));
	tn_tensor *state = ramp(c, "state", 1, SHAPE(6));
	tn_function *f;

	place(x, m, (tn_placement)S0);
	if (tn_compile(&f, c, norm, state, 1, 1, "norm") < 0)
		return;
	out[0] = x;
	for (int32_t i = 0; i < 3; i++)
		if (tn_function_call(f, &out[0], &out[0]) < 0)
			break;
	out[1] = state;
	tn_eval(out, 2);
	tn_function_free(f);
}

static program_body *const bodies[] = {halo, reductions, step, function};

static void compute(tn_context *c, int32_t process, void *arg)
{
	computed *k = arg;
	tn_mesh *m = tn_mesh_new(c, 1, NULL, &k->n_ranks);
	tn_tensor *out[MOST_OUT] = {NULL};
	int32_t n = 0;
	int64_t n_get;

	meet(c);
	n_get = fake->n_get;
	meet(c);
	k->body(c, m, out);
	while (n < MOST_OUT && out[n] != NULL)
		n++;
	tn_eval(out, n);
	meet(c);
	if (process == 0)
		k->n_get = fake->n_get - n_get;
	meet(c);
	for (int32_t i = 0; i < n; i++)
		k->n[process] += local_bits(out[i],
			k->bits[process] + k->n[process], ROOM - k->n[process]);
	tn_context_device_stats(c, &k->s[process]);
}

static void run_computed(computed *k, const char *library)
{
	ranks_thread t[MOST_RANKS];

	setenv("TENON_NCCL", library, 1);
	ranks_run(t, (int32_t)k->n_ranks, false, compute, k);
	for (int32_t p = 0; p < k->n_ranks; p++)
		if (t[p].text[0] != '\0')
			fail_msg("process %d: %s", (int)p, t[p].text);
}

static void test_programs(void **state)
{
	static computed k, host; /* large */

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		for (int64_t n = 2; n <= MOST_RANKS; n++) {
			if (MESH_ALL > 1 && n != 2 + (int64_t)i % 3)
				continue;
			*nccl = (fake_nccl_state){0};
			k = host = (computed){.body = bodies[i], .n_ranks = n};
			run_computed(&k, FAKE_NCCL);
			run_computed(&host, "/nowhere/libnccl.so.2");
			for (int64_t p = 0; p < n; p++) {
				assert_int_equal(k.n[p], host.n[p]);
				assert_memory_equal(
					k.bits[p], host.bits[p], k.n[p]);
				assert_int_equal(k.s[p].bytes_by_host, 0);
				assert_int_equal(host.s[p].bytes_to_peers, 0);
				assert_int_equal(k.s[p].bytes_to_peers,
					host.s[p].bytes_by_host);
			}
			assert_true(k.n[0] > 0);
			assert_true(nccl->n_bytes > 0);
			assert_int_equal(k.n_get, 0);
			assert_true(host.n_get > 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_names, begin_mesh, end_mesh),
		cmocka_unit_test_setup_teardown(
			test_moves, begin_mesh, end_mesh),
		cmocka_unit_test_setup_teardown(
			test_programs, begin_mesh, end_mesh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
