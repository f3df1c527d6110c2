/*
 * test_spmd_gpt.c: a small transformer, trained by 1, 2 and 4 processes: data
 * in parts, weights in parts, and both. The program is one; only what is said
 * of a few tensors differs. The losses are equal but for the order of sums.
 */
#include "ranks.h"
#include "unit.h"

#include <math.h>

enum { V = 13, B = 4, T = 5, C = 8, HEADS = 2, STEPS = 3 };

/* What the first axis of the mesh does besides. */
typedef enum way {
	WAY_ROWS,     /* sequences of a batch */
	WAY_SEQUENCE, /* places in each sequence; 5 on 2 or 4 processes */
	WAY_STATES    /* rows, and the states of the optimiser */
} way;

typedef struct trial {
	way way;
	int64_t extent[2]; /* data, model; 0: no mesh at all */
	double loss[4][STEPS];
	int64_t sent[4], local[4]; /* bytes; elements of a weight in parts */
} trial;

typedef struct model {
	tn_params *p;
	tn_layer *token, *norm1, *attention, *norm2, *up, *down, *norm;
} model;

static model model_new(tn_context *c)
{
	tn_nn_attention_options ao = TN_NN_ATTENTION_OPTIONS_INIT;
	model g = {NULL};

	ao.causal = true;
	if (tn_params_new(&g.p, c) < 0)
		abort();
	g.token = tn_nn_embedding(g.p, "token", V, C, NULL);
	g.norm1 = tn_nn_layer_norm(g.p, "norm1", C, NULL);
	g.attention = tn_nn_attention(g.p, "attention", C, HEADS, &ao);
	g.norm2 = tn_nn_layer_norm(g.p, "norm2", C, NULL);
	g.up = tn_nn_linear(g.p, "up", C, 4 * C, NULL);
	g.down = tn_nn_linear(g.p, "down", 4 * C, C, NULL);
	g.norm = tn_nn_layer_norm(g.p, "norm", C, NULL);
	return g;
}

static tn_tensor *loss_of(const model *g, tn_mesh *m, way how,
	const int64_t *text, const int64_t *after)
{
	const tn_placement rows[] = {TN_SHARDED(0), TN_REPLICATED};
	const tn_placement places[] = {TN_SHARDED(1), TN_REPLICATED};
	tn_context *c = tn_params_context(g->p);
	tn_tensor *ids = tn_tensor_new(
		c, TN_I64, 2, ((int64_t[]){B, T}), text);
	tn_tensor *next = tn_tensor_new(
		c, TN_I64, 2, ((int64_t[]){B, T}), after);
	tn_tensor *x, *h;

	if (m != NULL) {
		tn_shard(ids, m, how == WAY_SEQUENCE ? places : rows);
		tn_shard(next, m, how == WAY_SEQUENCE ? places : rows);
	}
	x = tn_nn_forward(g->token, ids);
	h = tn_nn_forward(g->norm1, x);
	x = tn_add(x, tn_nn_forward(g->attention, h));
	h = tn_nn_forward(g->norm2, x);
	h = tn_gelu_tanh(tn_nn_forward(g->up, h));
	x = tn_add(x, tn_nn_forward(g->down, h));
	x = tn_nn_forward(g->norm, x);
	x = tn_linear_nobias(x, tn_params_get(g->p, "token.weight"));
	return tn_cross_entropy(tn_reshape(x, ((int64_t[]){B * T, V}), 2),
		tn_reshape(next, ((int64_t[]){B * T}), 1));
}

/* Weights of the network in parts over "model", and the table of the bytes. */
static void place_weights(const model *g, tn_mesh *m)
{
	const tn_placement rows[] = {TN_REPLICATED, TN_SHARDED(0)};
	const tn_placement columns[] = {TN_REPLICATED, TN_SHARDED(1)};

	tn_shard(tn_params_get(g->p, "up.weight"), m, rows);
	tn_shard(tn_params_get(g->p, "up.bias"), m, rows);
	tn_shard(tn_params_get(g->p, "down.weight"), m, columns);
	tn_shard(tn_params_get(g->p, "token.weight"), m, rows);
}

/* Each process has the moments of some rows alone. */
static void place_states(const tn_optimizer *o, const tn_params *p, tn_mesh *m)
{
	const tn_placement rows[] = {TN_SHARDED(0), TN_REPLICATED};

	for (int32_t i = 0; i < tn_params_n(p); i++)
		for (int32_t k = 0; tn_optimizer_state(o, i, k) != NULL; k++)
			tn_shard(tn_optimizer_state(o, i, k), m, rows);
}

static void body(tn_context *c, int32_t process, void *arg)
{
	static const char *const names[] = {"data", "model"};
	trial *t = arg;
	tn_mesh *m = NULL;
	tn_optimizer *o;
	tn_shard_stats s;
	tn_window w;
	model g = model_new(c);

	if (t->extent[0] > 0) {
		m = tn_mesh_new(c, 2, names, t->extent);
		if (t->way == WAY_ROWS)
			place_weights(&g, m);
	}
	if (tn_optimizer_new(&o, c, "adamw", NULL) < 0 ||
		tn_optimizer_add_all(o, g.p) < 0)
		abort();
	if (t->way == WAY_STATES)
		place_states(o, g.p, m);
	for (int i = 0; i < STEPS; i++) {
		int64_t text[B * T], after[B * T];
		tn_tensor *loss;

		for (int k = 0; k < B * T; k++) {
			text[k] = (k * k + 3 * i) % V;
			after[k] = (text[k] * 5 + 1) % V;
		}
		tn_scope_enter(c);
		loss = loss_of(&g, m, t->way, text, after);
		tn_backward(loss, NULL);
		tn_optimizer_step(o);
		t->loss[process][i] = tn_item(loss);
		tn_scope_leave(c);
	}
	tn_context_shard_stats(c, &s);
	t->sent[process] = s.bytes_sent;
	if (tn_local(t->way == WAY_STATES
				? tn_optimizer_state(o, 0, 0)
				: tn_params_get(g.p, "up.weight"),
		    &w) >= 0)
		t->local[process] = w.n_elems;
	tn_optimizer_free(o);
	tn_params_free(g.p);
}

static void train(trial *t, way how, int64_t data, int64_t parts)
{
	ranks_thread r[4];
	int32_t n = data == 0 ? 1 : (int32_t)(data * parts);

	*t = (trial){.way = how, .extent = {data, parts}};
	ranks_run(r, n, true, body, t);
	for (int32_t i = 0; i < n; i++)
		assert_string_equal(r[i].text, "");
}

static void test_train(void **state)
{
	static const int64_t mesh[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
	trial one, t;

	(void)state;
	train(&one, WAY_ROWS, 0, 0);
	for (int i = 1; i < STEPS; i++)
		assert_true(one.loss[0][i] != one.loss[0][0]);
	for (size_t k = 0; k < sizeof mesh / sizeof mesh[0]; k++) {
		int32_t n = (int32_t)(mesh[k][0] * mesh[k][1]);

		train(&t, WAY_ROWS, mesh[k][0], mesh[k][1]);
		for (int32_t p = 0; p < n; p++) {
			for (int i = 0; i < STEPS; i++)
				assert_true(fabs(t.loss[p][i] -
						    one.loss[0][i]) <=
					1e-5 * one.loss[0][i]);
			assert_true((t.sent[p] > 0) == (n > 1));
			assert_int_equal(
				t.local[p], 4 * C * C / mesh[k][1]);
		}
	}
}

/* Places of the sequences: a process needs the keys and values of all. */
static void same_losses(const trial *one, const trial *t, int32_t n)
{
	for (int32_t p = 0; p < n; p++)
		for (int i = 0; i < STEPS; i++)
			assert_true(fabs(t->loss[p][i] - one->loss[0][i]) <=
				1e-5 * one->loss[0][i]);
}

static void test_sequence(void **state)
{
	trial one, t;

	(void)state;
	train(&one, WAY_ROWS, 0, 0);
	for (int32_t n = 2; n <= 4; n += 2) {
		train(&t, WAY_SEQUENCE, n, 1);
		same_losses(&one, &t, n);
		assert_true(t.sent[0] > 0);
	}
}

static void test_states(void **state)
{
	trial one, t;

	(void)state;
	train(&one, WAY_ROWS, 0, 0);
	for (int32_t n = 2; n <= 4; n += 2) {
		train(&t, WAY_STATES, n, 1);
		same_losses(&one, &t, n);
		/* of 13 rows of the table: 7 and 6, or 4, 4, 4 and 1 */
		for (int32_t p = 0; p < n; p++)
			assert_int_equal(t.local[p],
				C * (n == 2 ? 7 - p : p < 3 ? 4 : 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_train),
		cmocka_unit_test(test_sequence), cmocka_unit_test(test_states)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
