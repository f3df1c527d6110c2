/*
 * gpt_parallel.c: the transformer of gpt.h, trained by several processes. What
 * is said of where tensors lie is the table below; the rest follows from it.
 *
 *     mpirun -n 4 ./gpt_parallel data 2 model 2
 *
 *     data      each process has some sequences of a batch
 *     sequence  some places of every sequence; keys and values are gathered
 *     model     some columns of one matrix, some rows of the next
 *     states    as data, and the optimiser's states of some rows (ZeRO)
 *
 * Each process trains the model alone, too: exits 0 if the losses are the same,
 * but for the order in which sums are added up.
 */
#include "gpt.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 4, AXES = 4 };

/* name of a tensor, axis of the mesh: axis of the tensor that it cuts */
static const struct {
	const char *what, *by;
	int32_t axis;
} places[] = {
	{"text", "data", 0}, {"text", "sequence", 1}, {"text", "states", 0},
	{".state", "states", 0}, {"token.weight", "model", 0},
	{".query.", "model", 0}, {".key.", "model", 0},
	{".value.", "model", 0}, {".out.weight", "model", 1},
	{".up.", "model", 0}, {".down.weight", "model", 1},
};

static void put(tn_mesh *m, int n, char **by, tn_tensor *x, const char *name)
{
	tn_placement p[AXES] = {TN_REPLICATED};

	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof places / sizeof *places; k++)
			if (strcmp(places[k].by, by[2 * i]) == 0 &&
				strstr(name, places[k].what) != NULL)
				p[i] = (tn_placement)TN_SHARDED(places[k].axis);
	if (m != NULL)
		tn_shard(x, m, p);
}

/* by: NAME N of each axis of the mesh; n 0: alone. Says so if want is given. */
static bool train(int n, char **by, double *loss, const double *want)
{
	const char *names[AXES];
	int64_t extent[AXES];
	tn_params *states = NULL;
	tn_context *c = NULL;
	tn_optimizer *o = NULL;
	tn_mesh *m = NULL;
	gpt g;
	bool ok;

	if (tn_context_new(&c, NULL) < 0)
		return false;
	for (int i = 0; i < n; i++) {
		names[i] = by[2 * i];
		extent[i] = atoi(by[2 * i + 1]);
	}
	if (n > 0)
		m = tn_mesh_new(c, n, names, extent);
	g = gpt_new(c);
	ok = tn_optimizer_new(&o, c, "adamw", NULL) >= 0 &&
		tn_optimizer_add_all(o, g.p) >= 0 &&
		tn_params_new(&states, c) >= 0 &&
		tn_optimizer_add_states(o, states) >= 0;
	for (int32_t i = 0; ok && i < tn_params_n(g.p); i++)
		put(m, n, by, tn_params_at(g.p, i), tn_params_name(g.p, i));
	for (int32_t i = 0; ok && i < tn_params_n(states); i++)
		put(m, n, by, tn_params_at(states, i),
			tn_params_name(states, i));
	for (int i = 0; ok && i < STEPS; i++) {
		tn_tensor *ids, *next, *mean;

		tn_scope_enter(c);
		batch(c, (uint64_t)i, &ids, &next);
		put(m, n, by, ids, "text");
		put(m, n, by, next, "text");
		mean = gpt_loss(&g, ids, next);
		tn_backward(mean, NULL);
		tn_optimizer_step(o);
		loss[i] = tn_item(mean);
		tn_scope_leave(c);
		if (want != NULL && tn_process(c) == 0)
			printf("loss %.5f, alone %.5f\n", loss[i], want[i]);
		ok = tn_context_status(c) == TN_OK && (want == NULL ||
			fabs(loss[i] - want[i]) <= 1e-4 * want[i]);
	}
	if (tn_context_status(c) != TN_OK)
		fprintf(stderr, "%s\n", tn_context_diag(c)->text);
	tn_params_free(states);
	tn_optimizer_free(o);
	tn_params_free(g.p);
	tn_context_free(c);
	return ok;
}

int main(int argc, char **argv)
{
	double alone[STEPS], all[STEPS];
	int n = (argc - 1) / 2 < AXES ? (argc - 1) / 2 : AXES;

	return train(0, NULL, alone, NULL) &&
		train(n, argv + 1, all, alone) ? 0 : 1;
}
