/*
 * gpt.c: a small transformer learns to write, byte by byte, sentences such as
 *
 *     Anna likes tea, so Anna gets tea.
 *
 * Who likes what is drawn; what comes after "so" can only be known by looking
 * back. The model and its text are in gpt.h. Saves its parameters, loads them
 * into another set, compares the losses, and writes a few sentences.
 *
 *     cc gpt.c -ltenon -lm && ./a.out [STEPS [FILE]]
 *
 * Exits 0 when the loss of new text is below 0.15 nats a byte, and the same for
 * what was loaded, else 1. Two draws from 8 in 40 bytes cannot be known: 0.1.
 * Who does not look back draws again who gets what: 0.2 at best.
 */
#include "gpt.h"

#include <stdlib.h>

/* ---- use ---- */

static tn_tensor *loss_of_batch(const gpt *g, uint64_t seed)
{
	tn_tensor *ids, *next;

	batch(tn_params_context(g->p), seed, &ids, &next);
	return gpt_loss(g, ids, next);
}

static double test_loss(const gpt *g)
{
	tn_context *c = tn_params_context(g->p);
	double v;

	tn_scope_enter(c);
	tn_no_grad_enter(c);
	v = tn_item(loss_of_batch(g, 1000000));
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
		loss = loss_of_batch(&g, (uint64_t)step);
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
