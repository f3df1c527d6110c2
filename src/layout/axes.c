/*
 * axes.c: translates layouts to the axes of a shape.
 *
 * Consumes a layout over element numbers and a shape of as many elements; decides
 * whether each process owns a box of the axes, and which. Compares a run with
 * blocks of cut = block * lo elements with every boundary B of the shape (a
 * product of inner extents):
 *
 *     B <= cut:       B | cut and B | hi
 *     cut < B < hi:   cut | B and B | hi     the axis of the mesh splits
 *     B >= hi:        hi | B
 *
 *     (12) by 2 on mesh [6], as (3,4):  axis 0 by 1, by coordinate div 2 on the
 *     mesh; axis 1 by 2, by coordinate mod 2
 *     (2,3), axis 1 by 2, as (1,3,2):   not a box: 2 does not divide 3
 *
 * A run with one owner is a box of any axes.
 */
#include "layout/local.h"

static int64_t cut_of(const shard_tag *t)
{
	return t->block * t->lo;
}

static bool one_owner(const shard_tag *t)
{
	return cut_of(t) >= t->hi;
}

/* A run inside the blocks of another starts again in each of them. */
static bool respects(const shard_tag *t, int64_t b)
{
	int64_t cut = cut_of(t), hi = t->hi;

	if (one_owner(t))
		return true;
	if (b >= hi)
		return t->within >= 0 || b % hi == 0;
	if (b <= cut)
		return cut % b == 0 && hi % b == 0;
	return b % cut == 0 && hi % b == 0;
}

bool shard_is_free(const shard_layout *l, int32_t rank, const int64_t *shape,
	int64_t *boundary)
{
	int64_t b = 1;

	if (l->numel == 0)
		return true;
	for (int32_t k = rank - 1; k > 0; k--) {
		b *= shape[k];
		for (int32_t i = 0; i < l->n; i++) {
			if (respects(&l->tag[i], b))
				continue;
			if (boundary != NULL)
				*boundary = b;
			return false;
		}
	}
	return true;
}

/* The part of tag t on the axis whose indices have `in` elements each. */
static void on_axis(const shard_layout *l, int32_t tag, int64_t in,
	int64_t out, shard_layout *axis, int32_t *placed)
{
	const shard_tag *t = &l->tag[tag];
	int64_t cut = cut_of(t), hi = t->hi < out ? t->hi : out;
	shard_tag part = {.mesh = t->mesh, .lo = 1, .within = -1};

	if (out <= cut || in >= t->hi)
		return;
	part.hi = hi / in;
	if (in <= cut && t->lo % in == 0) {
		part.lo = t->lo / in;
		part.block = t->block;
		part.mult = t->mult;
	} else if (in <= cut) {
		part.block = cut / in;
		part.mult = t->mult;
	} else {
		part.block = 1;
		part.mult = t->mult * (in / cut);
	}
	part.count = t->count / (part.mult / t->mult);
	if (hi < t->hi)
		part.count = hi / (in > cut ? in : cut);
	else if (t->count % (part.mult / t->mult) != 0)
		part.count++;
	/* inside blocks that end on this axis */
	if (t->within >= 0 && out > t->hi)
		part.within = placed[t->within];
	placed[tag] = axis->n;
	axis->tag[axis->n++] = part;
}

/* All elements are on the processes at coordinate 0: any axis can have the tag. */
static void on_one(const shard_tag *t, int32_t rank, const int64_t *shape,
	shard_layout *axis)
{
	int64_t in = 1;
	int32_t k = 0;

	for (int32_t i = rank - 1; i >= 0; i--) {
		if (in <= t->lo && t->lo < in * shape[i])
			k = i;
		in *= shape[i];
	}
	axis[k].tag[axis[k].n++] = (shard_tag){.mesh = t->mesh,
		.mult = t->mult,
		.count = t->count,
		.lo = 1,
		.hi = shape[k],
		.block = shape[k],
		.within = -1};
}

bool shard_by_axis(const shard_layout *l, int32_t rank, const int64_t *shape,
	shard_layout *axis)
{
	int64_t out = l->numel;

	if (!shard_is_free(l, rank, shape, NULL) || (rank == 0 && l->n > 0))
		return false;
	for (int32_t i = 0; i < l->n; i++)
		if (layout_is_wide(&l->tag[i]))
			return false;
	for (int32_t k = 0; k < rank; k++)
		axis[k] = shard_replicated(shape[k]);
	if (l->numel == 0)
		return true;
	for (int32_t i = 0; i < l->n; i++)
		if (one_owner(&l->tag[i]))
			on_one(&l->tag[i], rank, shape, axis);
	for (int32_t k = 0; k < rank; k++) {
		int64_t in = out / shape[k];
		int32_t placed[SHARD_MAX_TAGS];

		for (int32_t i = 0; i < l->n; i++) {
			placed[i] = -1;
			if (shape[k] > 1 && !one_owner(&l->tag[i]))
				on_axis(l, i, in, out, &axis[k], placed);
		}
		out = in;
	}
	return true;
}

bool shard_local_shape(const shard_layout *l, const shard_mesh *m,
	int64_t process, int32_t rank, const int64_t *shape, int64_t *local)
{
	shard_layout axis[TN_MAX_RANK];

	if (!shard_by_axis(l, rank, shape, axis))
		return false;
	for (int32_t k = 0; k < rank; k++) {
		local[k] = 0;
		for (int64_t x = 0; x < shape[k]; x++)
			local[k] += shard_owns(&axis[k], m, process, x);
	}
	return true;
}
