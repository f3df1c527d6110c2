/*
 * test_cuda_bulk.c: copies in bulk, which one thread begins by a description of a matrix
 * that the driver makes at each launch: of memory that begins anywhere, after a
 * description that is refused, and of what processes of a mesh own. On tests/fake.
 */
#include "cuda_mesh.h"
#include "halves.h"

enum { HEADS = 1, KEYS = 256, WIDTH = 64, N = HEADS * KEYS * WIDTH };

static int begin_bulk(void **state)
{
	int r = begin_mesh(state);

	setenv("TENON_MACHINE", "cuda/sm_90a", 1);
	return r;
}

/* ---- keys that begin anywhere ---- */

enum { ROOM = N + 8 };

static void keep(tn_dl_managed *m)
{
	(void)m; /* the memory is another tensor's */
}

/* Keys at so many bytes from where that memory begins. */
static tn_tensor *keys_at(tn_context *c, void *memory, uint64_t offset, tn_dl_managed *m)
{
	static int64_t shape[3] = {HEADS, KEYS, WIDTH};

	*m = (tn_dl_managed){.deleter = keep};
	m->tensor = (tn_dl_tensor){.data = memory,
		.device = {2, 0},
		.n_axes = 3,
		.dtype = {2, 16, 1},
		.shape = shape,
		.byte_offset = offset};
	return tn_dlpack_import(c, m);
}

/* Attention with keys of a tensor from element `from` on, where they are, or copied. */
static void attend(tn_context *c, const uint16_t *all, tn_dl_managed *of, int32_t from,
	bool copied, uint16_t *out)
{
	const int64_t shape[3] = {HEADS, KEYS, WIDTH};
	static uint16_t x[2][N];
	tn_dl_managed m;
	tn_tensor *q, *k, *v, *o;

	tn_scope_enter(c);
	halves_fill(x[0], N, 11), halves_fill(x[1], N, 12);
	q = tn_tensor_new(c, TN_F16, 3, shape, x[0]);
	v = tn_tensor_new(c, TN_F16, 3, shape, x[1]);
	k = copied ? tn_tensor_new(c, TN_F16, 3, shape, all + from)
		   : keys_at(c, of->tensor.data, 2 * (uint64_t)from, &m);
	o = tn_attention(q, k, v, false, 0.125);
	assert_int_equal(tn_read(o, out, N * sizeof *out), TN_OK);
	tn_scope_leave(c);
}

/* Copies in bulk begin at multiples of 16 bytes; others are made by elements. One after the
 * other, as the same program with other addresses. */
static void test_addresses(void **state)
{
	static const int32_t from[] = {0, 1, 0, 8, 3, 8};
	static uint16_t all[ROOM], out[2][N];
	const int64_t n = ROOM;
	tn_dl_managed *of = NULL;
	tn_context *c;

	(void)state;
	c = context_on("cuda");
	halves_fill(all, ROOM, 13);
	assert_int_equal(
		tn_dlpack_export(tn_tensor_new(c, TN_F16, 1, &n, all), &of), TN_OK);
	for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
		attend(c, all, of, from[i], false, out[0]);
		attend(c, all, of, from[i], true, out[1]);
		assert_memory_equal(out[0], out[1], sizeof out[0]);
	}
	of->deleter(of);
	tn_context_free(c);
}

/* ---- the driver refuses to describe a matrix ---- */

static void expect_refusal(tn_context *c)
{
	assert_string_equal(tn_context_diag(c)->rule, "device.launch");
	assert_non_null(strstr(
		tn_context_diag(c)->text, "cannot describe a matrix for"));
	tn_context_clear(c);
}

static const char attention[] = "program { q: f16[1,256,64]  k: f16[1,256,64]\n"
				"  v: f16[1,256,64]\n"
				"  o = attention(q, k, v, scale=0.125)\n"
				"  p = attention(o, k, v, scale=0.125)\n"
				"  return p }\n";

/* Each description of a call is refused once, behind so many good calls. */
static void refuse_each(int32_t good, const uint16_t *want)
{
	static uint16_t x[3][N], out[N];
	const void *in[] = {x[0], x[1], x[2]};
	void *to[] = {out};
	int32_t failed = 0;

	for (int32_t i = 0; i < 3; i++)
		halves_fill(x[i], N, 20 + (uint32_t)i);
	for (tn_status s = TN_EIO; s != TN_OK; failed += s != TN_OK) {
		tn_context *c = context_on("cuda");
		tn_program *p = parse_on(c, attention);

		for (int32_t i = 0; i < good; i++)
			assert_int_equal(tn_program_run(p, in, to), TN_OK);
		fake->fail_describe = failed + 1;
		memset(out, 0, sizeof out);
		s = tn_program_run(p, in, to);
		fake->fail_describe = 0;
		if (s != TN_OK) {
			assert_int_equal(s, TN_EIO);
			expect_refusal(c);
			assert_int_equal(tn_program_run(p, in, to), TN_OK);
		}
		assert_memory_equal(out, want, sizeof out);
		tn_program_free(p);
		tn_context_free(c);
	}
	/* keys and values of two kernels */
	assert_in_range(failed, 4, 8);
}

static void test_described(void **state)
{
	static uint16_t x[3][N], want[N];
	const void *in[] = {x[0], x[1], x[2]};
	void *to[] = {want};
	tn_context *c = context_on("simt");
	tn_program *p = parse_on(c, attention);

	(void)state;
	for (int32_t i = 0; i < 3; i++)
		halves_fill(x[i], N, 20 + (uint32_t)i);
	assert_int_equal(tn_program_run(p, in, to), TN_OK);
	tn_program_free(p);
	tn_context_free(c);
	for (int32_t good = 0; good < 3; good += 2)
		refuse_each(good, want);
}

/* What is written before the launch that fails stays as it was. */
static void test_written(void **state)
{
	static uint16_t x[4][N], after[N], twice[N], out[2][N];
	const int64_t shape[3] = {HEADS, KEYS, WIDTH};
	tn_context *c = context_on("cuda");
	tn_tensor *in[4], *all[2];

	(void)state;
	for (int32_t i = 0; i < 4; i++) {
		halves_fill(x[i], N, 30 + (uint32_t)i);
		in[i] = tn_tensor_new(c, TN_F16, 3, shape, x[i]);
	}
	for (int32_t i = 0; i < N; i++)
		twice[i] = (uint16_t)(x[3][i] + 0x400);
	all[0] = in[3];
	for (int32_t n = 0; n < 2; n++) {
		tn_add_(in[3], in[3]);
		all[1] = tn_attention(in[0], in[1], in[2], false, 0.125);
		fake->fail_describe = n == 0;
		assert_int_equal(tn_eval(all, 2), n == 0 ? TN_EIO : TN_OK);
		if (n == 0)
			expect_refusal(c);
		assert_int_equal(tn_read(in[3], after, sizeof after), TN_OK);
		assert_memory_equal(after, n == 0 ? x[3] : twice, sizeof after);
	}
	assert_int_equal(tn_read(all[1], out[0], sizeof out[0]), TN_OK);
	all[1] = tn_attention(in[0], in[1], in[2], false, 0.125);
	assert_int_equal(tn_read(all[1], out[1], sizeof out[1]), TN_OK);
	assert_memory_equal(out[0], out[1], sizeof out[0]);
	tn_context_free(c);
}

/* ---- what processes of a mesh own ---- */

enum { MOST_RANKS = 3, MESH_HEADS = 4, M = MESH_HEADS * KEYS * WIDTH };

typedef struct shared {
	tn_placement place; /* of queries */
	bool all_keys;	    /* keys and values are on each process */
	bool bulk;	    /* .. and enough queries for copies in bulk */
	int64_t n_ranks;
	uint16_t out[MOST_RANKS][2][M];
} shared;

static tn_tensor *placed(
	tn_context *c, tn_mesh *m, uint32_t seed, const tn_placement *p)
{
	uint16_t *x = malloc(M * sizeof *x);
	tn_tensor *t;

	halves_fill(x, M, seed);
	t = tn_tensor_new(c, TN_F16, 3, SHAPE(MESH_HEADS, KEYS, WIDTH), x);
	free(x);
	if (m != NULL)
		tn_shard(t, m, p);
	return t;
}

/* Attention, and attention of its result, read from all processes. */
static void attend_on(tn_context *c, tn_mesh *m, const shared *k, uint16_t (*out)[M])
{
	const tn_placement all = TN_REPLICATED;
	const tn_placement *keys = k->all_keys ? &all : &k->place;
	tn_tensor *q = placed(c, m, 41, &k->place), *o;
	tn_tensor *key = placed(c, m, 42, keys), *v = placed(c, m, 43, keys);

	for (int32_t i = 0; i < 2; i++) {
		o = q = tn_attention(q, key, v, false, 0.125);
		if (m != NULL)
			o = tn_reshard(o, m, &all);
		if (tn_read(o, out[i], M * sizeof *out[i]) < 0)
			return;
	}
}

static void attend_all(tn_context *c, int32_t process, void *arg)
{
	shared *k = arg;
	tn_mesh *m = tn_mesh_new(c, 1, NULL, &k->n_ranks);

	attend_on(c, m, k, k->out[process]);
}

static const struct shared trials[] = {
	/* heads: 2 and 2, then 2, 2 and none */
	{.place = TN_SHARDED(0), .bulk = true, .n_ranks = 2},
	{.place = TN_SHARDED(0), .bulk = true, .n_ranks = 3},
	/* queries: 128 and 128, then 86, 86 and 84 */
	{.place = TN_SHARDED(1), .all_keys = true, .bulk = true, .n_ranks = 2},
	{.place = TN_SHARDED(1), .all_keys = true, .n_ranks = 3},
};

static void test_mesh(void **state)
{
	static shared k, one;
	tn_context *c = context_on("cuda");

	(void)state;
	attend_on(c, NULL, &one, one.out[0]);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_free(c);
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		ranks_thread t[MOST_RANKS];

		k = trials[i];
		fake->n_described = 0;
		ranks_run(t, (int32_t)k.n_ranks, false, attend_all, &k);
		assert_int_equal(fake->n_described > 0, trials[i].bulk);
		for (int64_t p = 0; p < k.n_ranks; p++) {
			if (t[p].text[0] != '\0')
				fail_msg("process %d: %s", (int)p, t[p].text);
			assert_memory_equal(k.out[p], one.out[0], sizeof k.out[p]);
		}
	}
}

/* A description of one process is refused: all are told. */
static void refused_once(tn_context *c, int32_t process, void *arg)
{
	shared *k = arg;
	tn_mesh *m = tn_mesh_new(c, 1, NULL, &k->n_ranks);

	attend_on(c, m, k, k->out[process]);
	meet(c);
	if (process == 1)
		fake->fail_describe = 1;
	meet(c);
	attend_on(c, m, k, k->out[process]);
}

static void test_mesh_refused(void **state)
{
	static shared k;
	ranks_thread t[MOST_RANKS];
	int32_t n_own = 0;

	(void)state;
	k = (shared){.place = TN_SHARDED(0), .n_ranks = 2};
	ranks_run(t, 2, false, refused_once, &k);
	for (int32_t p = 0; p < 2; p++) {
		assert_true(t[p].status < 0);
		n_own += strcmp(t[p].rule, "device.launch") == 0;
		if (strstr(t[p].text, "cannot describe a matrix") == NULL)
			assert_string_equal(t[p].rule, "shard.link");
	}
	assert_int_equal(n_own, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_addresses, begin_bulk, end_mesh),
		cmocka_unit_test_setup_teardown(test_described, begin_bulk, end_mesh),
		cmocka_unit_test_setup_teardown(test_written, begin_bulk, end_mesh),
		cmocka_unit_test_setup_teardown(test_mesh, begin_bulk, end_mesh),
		cmocka_unit_test_setup_teardown(test_mesh_refused, begin_bulk, end_mesh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
