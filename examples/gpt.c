/*
 * gpt.c: a small transformer learns to write, byte by byte, sentences such as
 *
 *     Anna likes tea, so Anna gets tea.
 *
 * Who likes what is drawn; what comes after "so" can only be known by looking
 * back. Embeddings, blocks of causal attention and a gelu network behind layer
 * norms, a head that shares the table of the bytes. Saves its parameters, loads
 * them into another set, compares the losses, and writes a few sentences.
 *
 *     cc gpt.c -ltenon -lm && ./a.out [STEPS [FILE]]
 *
 * Exits 0 when the loss of new text is below 0.15 nats a byte, and the same for
 * what was loaded, else 1. Two draws from 8 in 40 bytes cannot be known: 0.1.
 * Who does not look back draws again who gets what: 0.2 at best.
 */
#include <tenon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 128, B = 8, T = 40, C = 64, HEADS = 4, LAYERS = 2 };

/* ---- text ---- */

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (*state >> 33) % below;
}

/* n bytes of text, each a number below V. */
static void write_text(int64_t *to, int n, uint64_t seed)
{
	static const char *const who[] = {"Anna", "Ben", "Carla", "Dan", "Eve",
		"Fritz", "Gina", "Hugo"};
	static const char *const what[] = {"tea", "milk", "soup", "bread",
		"rice", "plums", "nuts", "cake"};
	char line[80];

	for (int i = 0; i < n;) {
		const char *s = who[draw(&seed, 8)], *o = what[draw(&seed, 8)];
		int m = snprintf(line, sizeof line,
			"%s likes %s, so %s gets %s.\n", s, o, s, o);

		for (int k = 0; k < m && i < n; k++)
			to[i++] = line[k];
	}
}

/* ids (B, T) and what follows each, next (B * T). */
static void batch(
	tn_context *c, uint64_t seed, tn_tensor **ids, tn_tensor **next)
{
	static int64_t text[T + 1], x[B * T], y[B * T];
	int64_t xs[] = {B, T}, ys[] = {B * T};

	for (int i = 0; i < B; i++) {
		write_text(text, T + 1, seed * B + (uint64_t)i + 1);
		memcpy(&x[i * T], text, sizeof x[0] * T);
		memcpy(&y[i * T], text + 1, sizeof y[0] * T);
	}
	*ids = tn_tensor_new(c, TN_I64, 2, xs, x);
	*next = tn_tensor_new(c, TN_I64, 1, ys, y);
}

/* ---- model ---- */

typedef struct block {
	tn_layer *norm1, *attention, *norm2, *up, *down;
} block;

typedef struct gpt {
	tn_params *p;
	tn_layer *token, *place, *norm;
	block block[LAYERS];
} gpt;

static gpt gpt_new(tn_context *c)
{
	tn_nn_embedding_options eo = TN_NN_EMBEDDING_OPTIONS_INIT;
	tn_nn_attention_options ao = TN_NN_ATTENTION_OPTIONS_INIT;
	tn_nn_linear_options down = TN_NN_LINEAR_OPTIONS_INIT;
	gpt g = {NULL};

	if (tn_params_new(&g.p, c) < 0)
		return g;
	eo.deviation = 0.1;
	ao.causal = true;
	down.gain = 0.5; /* the sum of all blocks stays near 1 */
	g.token = tn_nn_embedding(g.p, "token", V, C, &eo);
	g.place = tn_nn_embedding(g.p, "place", T, C, &eo);
	for (int i = 0; i < LAYERS; i++) {
		block *b = &g.block[i];

		tn_params_enter(g.p, "block%d", i);
		b->norm1 = tn_nn_layer_norm(g.p, "norm1", C, NULL);
		b->attention = tn_nn_attention(g.p, "attention", C, HEADS, &ao);
		b->norm2 = tn_nn_layer_norm(g.p, "norm2", C, NULL);
		b->up = tn_nn_linear(g.p, "up", C, 4 * C, NULL);
		b->down = tn_nn_linear(g.p, "down", 4 * C, C, &down);
		tn_params_leave(g.p);
	}
	g.norm = tn_nn_layer_norm(g.p, "norm", C, NULL);
	return g;
}

/* ids (B, T) -> (B, T, V): what may follow, up to a constant */
static tn_tensor *gpt_run(const gpt *g, tn_tensor *ids)
{
	tn_context *c = tn_params_context(g->p);
	int64_t t[T], ts[] = {T};
	tn_tensor *x, *h;

	for (int i = 0; i < T; i++)
		t[i] = i;
	x = tn_nn_forward(g->place, tn_tensor_new(c, TN_I64, 1, ts, t));
	x = tn_add(tn_nn_forward(g->token, ids), x); /* (B, T, C) */
	for (int i = 0; i < LAYERS; i++) {
		const block *b = &g->block[i];

		h = tn_nn_forward(b->norm1, x); /* (B, T, C) */
		x = tn_add(x, tn_nn_forward(b->attention, h));
		h = tn_nn_forward(b->norm2, x);		  /* (B, T, C) */
		h = tn_gelu_tanh(tn_nn_forward(b->up, h)); /* (B, T, 4 C) */
		x = tn_add(x, tn_nn_forward(b->down, h)); /* (B, T, C) */
	}
	x = tn_nn_forward(g->norm, x);
	return tn_linear_nobias(x, tn_params_get(g->p, "token.weight"));
}

/* Mean of -log p(next), in nats: () */
static tn_tensor *gpt_loss(const gpt *g, uint64_t seed)
{
	int64_t flat[] = {B * T, V};
	tn_tensor *ids, *next;

	batch(tn_params_context(g->p), seed, &ids, &next);
	return tn_cross_entropy(
		tn_reshape(gpt_run(g, ids), flat, 2), next);
}

/* ---- use ---- */

static double test_loss(const gpt *g)
{
	tn_context *c = tn_params_context(g->p);
	double v;

	tn_scope_enter(c);
	tn_no_grad_enter(c);
	v = tn_item(gpt_loss(g, 1000000));
	tn_no_grad_leave(c);
	tn_scope_leave(c);
	return v;
}

/* Continues "D" by the likeliest byte each time. */
static void speak(const gpt *g)
{
	static float score[B * T * V];
	static int64_t x[B * T] = {'D'};
	tn_context *c = tn_params_context(g->p);
	int64_t xs[] = {B, T};

	for (int i = 0; i + 1 < T; i++) {
		const float *s = &score[i * V];

		tn_scope_enter(c);
		tn_no_grad_enter(c);
		tn_read(gpt_run(g, tn_tensor_new(c, TN_I64, 2, xs, x)), score,
			sizeof score);
		tn_no_grad_leave(c);
		tn_scope_leave(c);
		for (int k = 0; k < V; k++)
			if (s[k] > s[x[i + 1]])
				x[i + 1] = k;
	}
	for (int i = 0; i < T; i++)
		putchar((int)x[i]);
	putchar('\n');
}

/* Through a file into another set: is the loss the same to the last bit? */
static int reload(const gpt *g, const char *path)
{
	tn_pair made = {"made by", "examples/gpt.c"};
	gpt h = gpt_new(tn_params_context(g->p));
	double before = test_loss(g), other = test_loss(&h), after;

	tn_params_save(g->p, path, &made, 1);
	tn_params_load(h.p, path, true);
	after = test_loss(&h);
	printf("loss of new text %.4f; of another model %.4f, loaded %.4f\n",
		before, other, after);
	tn_params_free(h.p);
	return before < 0.15 && before == after && before != other;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 200, ok = 0;
	const char *path = argc > 2 ? argv[2] : "gpt.safetensors";
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	tn_optimizer *opt = NULL;
	tn_context *c = NULL;
	gpt g;

	o.decay = 0.01;
	o.clip_norm = 1;
	if (tn_context_new(&c, NULL) < 0 ||
		tn_optimizer_new(&opt, c, "adamw", &o) < 0)
		return 1;
	g = gpt_new(c);
	tn_optimizer_add_all(opt, g.p);
	for (int step = 0; step < steps; step++) {
		tn_tensor *loss;

		tn_scope_enter(c);
		loss = gpt_loss(&g, (uint64_t)step);
		tn_backward(loss, NULL);
		tn_optimizer_set_lr(
			opt, tn_lr_cosine(step, 20, steps, 5e-3, 1e-4));
		tn_optimizer_step(opt);
		tn_keep(loss);
		tn_scope_leave(c);
		tn_params_eval(g.p);
		if (step % 25 == 0 || step == steps - 1)
			printf("step %3d  loss %.4f\n", step, tn_item(loss));
		tn_drop(loss);
	}
	ok = reload(&g, path);
	speak(&g);
	if (argc < 3)
		remove(path);
	if (tn_context_status(c) != TN_OK)
		fprintf(stderr, "gpt: %s\n", tn_context_diag(c)->text);
	tn_optimizer_free(opt);
	tn_params_free(g.p);
	tn_context_free(c);
	return ok ? 0 : 1;
}
