/*
 * batch.c: cuts opaque rows along their batch.
 *
 * Consumes an equation that is a C function of whole tensors, and the axes of its
 * batch: those of packs that occur in every operand and every result. Produces
 * axes for its unit, so that it is cut along them like any other, and translates
 * cuts of its tensors to cuts of these axes, and back.
 *
 *     sort(x[a.., n, b..]) -> o[a.., n, b..], k[a.., n, b..]    x: 6,5,4; axis 1
 *     axes of the unit: a_0 and b_0; x cut on axis 2 by mesh 0: b_0 is, so are o, k
 *
 * Guarantees: no other axis of its tensors is cut. Tensors are numbered here:
 * operands, then results.
 */
#include "layout/local.h"

static int32_t tensor_of(const sys_eqn *e, int32_t t)
{
	return t < e->n_opaque_in ? e->opaque_in[t]
				  : e->out[t - e->n_opaque_in];
}

static int32_t axis_of(const sys_eqn *e, int32_t t, int32_t axis)
{
	return e->batch[axis * (e->n_opaque_in + e->n_out) + t];
}

void batch_axes(shard_plan *p, eqn_unit *u)
{
	sys_eqn *e = &u->e;
	const sys_tensor *first = &p->s->tensor.at[tensor_of(e, 0)];
	int64_t *extent, *stride;

	for (int32_t t = 0; t < e->n_opaque_in + e->n_out; t++)
		if (p->s->tensor.at[tensor_of(e, t)].numel == 0)
			return;
	if (e->n_batch == 0 || e->n_batch > IR_MAX_AXES)
		return;
	extent = arena_array(p->a, int64_t, e->n_batch);
	stride = arena_array(p->a, int64_t, e->n_batch);
	for (int32_t b = 0; b < e->n_batch; b++) {
		int32_t k = axis_of(e, 0, b);

		extent[b] = first->shape[k];
		stride[b] = 1; /* it is one of the result */
		e->axis[b] = (sys_axis){.extent = extent[b],
			.kind = AXIS_P,
			.name = arena_printf(p->a, "axis %d", (int)k)};
	}
	e->n_axes = e->n_left = e->n_batch;
	u->box = (ix_box){.n = e->n_batch, .extent = extent};
	u->stride = stride;
}

/* A layout with only tag i and the tags that contain it; the number of tag i. */
static int32_t with_outer(shard_layout *one, const shard_layout *l, int32_t i)
{
	shard_tag t = l->tag[i];

	if (t.within >= 0)
		t.within = with_outer(one, l, t.within);
	one->tag[one->n] = t;
	return one->n++;
}

static int32_t axis_at(const sys_eqn *e, int32_t t, int32_t k)
{
	for (int32_t b = 0; b < e->n_axes; b++)
		if (axis_of(e, t, b) == k)
			return b;
	return -1;
}

int32_t batch_from(shard_plan *p, const shard_eqn *q, int32_t t,
	const shard_layout *l, int32_t i, cut_part *part)
{
	const sys_eqn *e = &q->unit->e;
	const sys_tensor *x = &p->s->tensor.at[tensor_of(e, t)];
	shard_layout one = shard_replicated(l->numel), axis[TN_MAX_RANK];
	int32_t n = 0;

	with_outer(&one, l, i);
	if (e->n_axes == 0 || !shard_by_axis(&one, x->rank, x->shape, axis))
		return 0;
	for (int32_t k = 0; k < x->rank; k++)
		for (int32_t j = 0; j < axis[k].n; j++) {
			shard_tag g = axis[k].tag[j];
			int32_t b = axis_at(e, t, k), w;

			if (g.mesh != l->tag[i].mesh)
				continue;
			if (b < 0 || n == SHARD_MAX_TAGS)
				return 0;
			if (g.within >= 0) {
				const shard_tag *o = &axis[k].tag[g.within];

				w = layout_find(&q->axis[b], o->mesh);
				if (w < 0 || !layout_same_cut(
						     o, &q->axis[b].tag[w]))
					return 0;
				g.within = w;
			}
			part[n++] = (cut_part){b, g};
		}
	return n;
}

shard_layout batch_layout(
	const shard_plan *p, const shard_eqn *q, int32_t t)
{
	const sys_eqn *e = &q->unit->e;
	const sys_tensor *x = &p->s->tensor.at[tensor_of(e, t)];
	shard_layout l = shard_replicated(x->numel);

	for (int32_t b = 0; b < e->n_axes; b++) {
		const shard_layout *axis = &q->axis[b];
		int64_t in = 1;

		for (int32_t k = x->rank - 1; k > axis_of(e, t, b); k--)
			in *= x->shape[k];
		for (int32_t i = 0; i < axis->n; i++) {
			shard_tag g = axis->tag[i];

			g.lo *= in;
			g.hi *= in;
			if (g.within >= 0)
				g.within = layout_find(
					&l, axis->tag[g.within].mesh);
			layout_add(&l, g);
		}
	}
	return l;
}
