/*
 * measure.c: tn_mesh_measure: measures the move of a matrix from one placement to
 * another.
 */
#include "api/shard.h"

struct measure_call {
	tn_context *c;
	const shard_mesh *m;
	loc at;
	int64_t shape[2];
	const tn_placement *from, *to;
	int32_t repeat;
	tn_move_time *out;
};

static shard_layout layout_of(
	const struct measure_call *k, const tn_placement *p, uint32_t *mask)
{
	shard_layout l = shard_replicated(k->shape[0] * k->shape[1]);

	*mask = 0;
	for (int32_t i = 0; i < k->m->n; i++) {
		if (p[i].kind == TN_PLACE_SHARD)
			shard_cut(k->c->e, &l, k->m, 2, k->shape,
				p[i].axis < 0 ? p[i].axis + 2 : p[i].axis, i,
				p[i].block);
		else if (p[i].kind == TN_PLACE_PARTS && k->m->extent[i] > 1)
			*mask |= 1u << i;
	}
	return l;
}

static void measure(void *arg)
{
	const struct measure_call *k = arg;
	shard_link *l = api_link(k->c);
	arena *a = arena_child(k->c->a);
	shard_layout from, to;
	shard_measure w = {.repeat = k->repeat > 0 ? k->repeat : 1};
	uint32_t mask;

	api_want(k->c, k->from, "from");
	api_want(k->c, k->to, "to");
	api_want(k->c, k->out, "the result");
	if (k->shape[0] < 1 || k->shape[1] < 1 ||
		k->shape[0] > ((int64_t)1 << 40) / k->shape[1])
		env_fail(k->c->e, TN_EINVAL, "shard.shape", k->at,
			"the tensor cannot have %lld x %lld elements",
			(long long)k->shape[0],
			(long long)k->shape[1]);
	from = layout_of(k, k->from, &w.mask);
	to = layout_of(k, k->to, &mask);
	if (mask != 0)
		env_fail(k->c->e, TN_EINVAL, "shard.op", k->at,
			"a move to parts of a sum is not possible");
	w.from = &from;
	w.to = &to;
	w.name = "nothing";
	if (l != NULL)
		shard_measure_run(a, l, k->m, &w);
	*k->out = (tn_move_time){w.name, w.seconds, w.raw_seconds, w.sent,
		w.least};
	arena_free(a);
}

tn_status tn_at_mesh_measure(const char *file, int32_t line, tn_mesh *mesh,
	int64_t rows, int64_t columns, const tn_placement *from,
	const tn_placement *to, int32_t repeat, tn_move_time *out)
{
	if (mesh == NULL)
		return api_null("the mesh");

	struct measure_call k = {.at = {.file = file, .line = line},
		.shape = {rows, columns}, .from = from, .to = to,
		.repeat = repeat, .out = out};

	if (mesh == NULL)
		return api_null("the mesh");
	k.m = api_mesh(mesh, &k.c);
	return api_sticky(k.c, file, line, measure, &k);
}
