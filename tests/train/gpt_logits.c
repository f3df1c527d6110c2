/*
 * gpt_logits.c: gpt_logits CHECKPOINT IDS.npy OUT.npy: what the model of a
 * checkpoint makes of ids [b, t], by its own layers; they take a whole context:
 * what follows after t does not change what is before it.
 */
#include "apps/gpt/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon.h>

int main(int argc, char **argv)
{
	train_config k = train_config_new();
	tn_context *c = NULL;
	train_gpt *g = NULL;
	tn_array *ids = NULL;
	int64_t *full, shape[3] = {0}, b, t;
	tn_tensor *y;
	train_state s;
	float *out;
	bool whole, ok;
	size_t row;

	if (argc != 4 || tn_context_new(&c, NULL) < 0)
		return 2;
	if (train_checkpoint_read(c, argv[1], &k, &s, &whole) < 0 ||
		train_gpt_new(&g, c, &k) < 0 ||
		tn_params_load(train_gpt_params(g), argv[1], true) < 0 ||
		tn_npy_read(&ids, c, argv[2]) < 0)
		goto fail;
	tn_params_eval(train_gpt_params(g));
	b = ids->shape[0];
	t = ids->shape[1];
	full = calloc((size_t)(b * k.context), sizeof *full);
	out = malloc((size_t)(b * k.context * k.vocab) * sizeof *out);
	if (full == NULL || out == NULL)
		return 2;
	for (int64_t i = 0; i < b; i++)
		memcpy(full + i * k.context, (int64_t *)ids->data + i * t,
			(size_t)t * sizeof *full);
	shape[0] = b;
	shape[1] = k.context;
	y = train_gpt_forward(g, tn_tensor_new(c, TN_I64, 2, shape, full));
	ok = tn_read(y, out, (size_t)(b * k.context * k.vocab) * sizeof *out) ==
	     TN_OK;
	row = (size_t)(t * k.vocab);
	for (int64_t i = 0; i < b; i++)
		memmove(out + (size_t)i * row, out + i * k.context * k.vocab,
			row * sizeof *out);
	shape[1] = t;
	shape[2] = k.vocab;
	ok = ok && tn_npy_write(c, argv[3], TN_F32, 3, shape, out) == TN_OK;
	free(full);
	free(out);
	if (!ok)
		goto fail;
	tn_drop(y);
	tn_array_free(ids);
	train_gpt_free(g);
	tn_context_free(c);
	return 0;
fail:
	fprintf(stderr, "gpt_logits: %s\n", tn_context_diag(c)->text);
	return 1;
}
