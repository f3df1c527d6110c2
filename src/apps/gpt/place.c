/*
 * place.c: the part of a model that each of several processes has in training.
 *
 *     data      some sequences of a batch
 *     sequence  some positions of every sequence
 *     model     some columns of a matrix, some rows of the next
 *     states    like data; and some rows of the optimiser's states
 *
 * Axes of the mesh are found by name. Each process has the whole of every
 * tensor that is not in the table.
 */
#include "apps/gpt/train.h"

#include <string.h>

enum { MAX_AXES = 6 };

/*
 * part of a tensor's name, axis of the mesh, and the axis of the tensor that is
 * cut along it
 */
static const struct {
	const char *what, *by;
	int32_t axis;
} places[] = {
	{"text", "data", 0},
	{"text", "sequence", 1},
	{"text", "states", 0},
	{".state", "states", 0},
	{"token.weight", "model", 0},
	{".query.", "model", 0},
	{".key.", "model", 0},
	{".value.", "model", 0},
	{".out.weight", "model", 1},
	{".up.", "model", 0},
	{".down.weight", "model", 1},
};
enum { N_PLACES = sizeof places / sizeof places[0] };

tn_status train_place(const tn_mesh *m, tn_tensor *x, const char *name)
{
	tn_placement p[MAX_AXES] = {TN_REPLICATED};
	const char *by;
	int64_t extent;

	for (int32_t i = 0; i < MAX_AXES &&
		(by = tn_mesh_axis(m, i, &extent)) != NULL;
		i++) {
		bool known = false;

		for (int k = 0; k < N_PLACES; k++) {
			if (strcmp(places[k].by, by) != 0)
				continue;
			known = true;
			if (strstr(name, places[k].what) != NULL &&
				places[k].axis < tn_tensor_rank(x))
				p[i] = (tn_placement)TN_SHARDED(
					places[k].axis);
		}
		if (!known)
			return tn_at_fail(NULL, 0, tn_tensor_context(x), TN_EINVAL,
				"train.mesh",
				"tenon train has no mesh axis %s: use data, "
				"sequence, model and states",
				by);
	}
	return tn_shard(x, m, p);
}

tn_status train_place_all(const tn_mesh *m, const tn_params *p)
{
	tn_status s = TN_OK;

	for (int32_t i = 0; i < tn_params_n(p) && s >= 0; i++)
		s = train_place(m, tn_params_at(p, i), tn_params_name(p, i));
	return s;
}
