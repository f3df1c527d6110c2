/* local.h: private to shard/: cuts of equations. */
#ifndef SHARD_LOCAL_H
#define SHARD_LOCAL_H

#include "shard/shard.h"

/* A tag on an axis of an equation. */
typedef struct place_part {
	int32_t axis;
	shard_tag tag;
} place_part;

/* Does any tag of the layout belong to this axis of the mesh? */
bool layout_uses(const shard_layout *l, int32_t mesh_axis);
/* the tag of the axis of the mesh; -1 */
int32_t layout_find(const shard_layout *l, int32_t mesh_axis);
/* adds t where no other tag cuts the same run; false: one does */
bool layout_add(shard_layout *l, shard_tag t);
/* the first cut of the run that tag i is within */
int32_t layout_top(const shard_layout *l, int32_t i);

bool place_uses(const shard_place *q, int32_t mesh_axis);
/*
 * Tag i of what read number `read` reads, as parts of the equation's axes.
 * Returns their number, at most SHARD_MAX_TAGS; 0: it is none of these.
 */
int32_t place_from_read(shard_plan *p, const shard_place *q, int32_t read,
	const shard_layout *l, int32_t i, place_part *part);
/* the same of the result */
int32_t place_from_result(const shard_place *q, const shard_layout *l,
	int32_t mesh_axis, place_part *part);
/* All of them or none; all of one axis of the mesh. false: none. */
bool place_add(shard_place *q, const shard_mesh *m, int32_t n,
	const place_part *part);
/* what a read needs of its tensor */
shard_layout place_to_read(shard_plan *p, const shard_place *q, int32_t read);

#endif
