/*
 * cut.c: cuts of tensors as cuts of the axes of an equation, and back.
 *
 * Consumes equations as eqn/ prepares them, and layouts over element numbers.
 * A cut passes through a read exactly if the digit of the element number that
 * it cuts is a digit of one axis of the equation (eqn_relate); or if the runs
 * that the address is put together from are, each by itself:
 *
 *     o[i,j] += x[i,k] * y[k,j]    x cut on its axis 0: i; on its axis 1: k
 *     o[i,j] = x[4i + j] + y[j]    x[12] in blocks of 2 on mesh [6]: j by 2 and
 *                                  i by 1; of 3: no part of o needs one block
 */
#include "layout/local.h"

bool eqn_is_cut_by(const shard_eqn *q, int32_t mesh_axis)
{
	for (int32_t i = 0; i < q->unit->e.n_axes; i++)
		if (layout_uses(&q->axis[i], mesh_axis))
			return true;
	return q->masks >> mesh_axis & 1 || layout_uses(&q->own, mesh_axis);
}

bool eqn_reads_init(const eqn_unit *u, const eqn_read *r)
{
	const ix_form *f = r->at;

	return r->in_init && u->e.push != NULL && f->n == 1 && f->c0 == 0 &&
		f->t[0].coef == 1 && f->t[0].atom->kind == IX_DIGIT &&
		f->t[0].atom->lo == 1 && f->t[0].atom->hi == u->out_elems;
}

/* ---- from a read ---- */

/* Is (lo, hi) of the element number one digit of the equation? */
static bool relate(
	shard_plan *p, eqn_edge *e, int64_t lo, int64_t hi, eqn_digit *out)
{
	int64_t numel = p->s->tensor.at[e->read->tensor].numel;

	return hi % lo == 0 && numel % hi == 0 &&
		eqn_relate(p->graph, e,
			(eqn_digit){.axis = 0, .lo = lo, .hi = hi}, out) &&
		out->hi / out->lo == hi / lo;
}

/* A run with its blocks, as one digit: itself, or a coarser one. */
static bool relate_blocks(shard_plan *p, eqn_edge *e, const shard_tag *t,
	cut_part *part)
{
	int64_t g = gcd_i64(t->block, t->hi / t->lo);
	eqn_digit d;

	if (relate(p, e, t->lo, t->hi, &d))
		g = 1;
	else if (g == 1 || !relate(p, e, t->lo * g, t->hi, &d))
		return false;
	part->axis = d.axis;
	part->tag = *t;
	part->tag.lo = d.lo;
	part->tag.hi = d.hi;
	part->tag.block = t->block / g;
	return true;
}

static const ix_form *run_form(const eqn_edge *e, const shard_tag *t)
{
	for (int32_t i = 0; i < e->memo.n; i++)
		if (e->memo.at[i].of.lo == t->lo && e->memo.at[i].of.hi == t->hi)
			return e->memo.at[i].q;
	return NULL;
}

/* Where the address of the run is put together, above the block; ascending. */
static int32_t seams(const ix_form *q, const shard_tag *t, int64_t *at)
{
	int32_t n = 0;

	if (q == NULL || q->c0 != 0)
		return 0;
	for (int32_t i = 0; i < q->n; i++) {
		int64_t c = q->t[i].coef;
		int32_t k = n;

		if (q->t[i].atom->kind != IX_DIGIT || c < 1)
			return 0;
		if (c <= t->block || n == SHARD_MAX_TAGS - 1)
			continue;
		for (; k > 0 && at[k - 1] > c; k--)
			at[k] = at[k - 1];
		at[k] = c;
		n++;
	}
	return n;
}

/* The run in pieces, each a digit: the axis of the mesh splits with it. */
static int32_t split(
	shard_plan *p, eqn_edge *e, const shard_tag *t, cut_part *part)
{
	int64_t at[SHARD_MAX_TAGS], m = t->hi / t->lo, from = 1;
	int32_t n = seams(run_form(e, t), t, at);
	shard_tag piece = *t;

	if (n == 0)
		return 0;
	at[n++] = m;
	for (int32_t k = 0; k < n; k++) {
		int64_t unit = k == 0 ? t->block : from;

		if (at[k] % unit != 0 || m % at[k] != 0)
			return 0;
		piece.lo = t->lo * from;
		piece.hi = t->lo * at[k];
		piece.block = k == 0 ? t->block : 1;
		piece.count = k < n - 1 ? at[k] / unit
					: (t->count * t->mult + piece.mult - 1) /
				piece.mult;
		if (!relate_blocks(p, e, &piece, &part[k]))
			return 0;
		piece.mult *= at[k] / unit;
		from = at[k];
	}
	return n;
}

static bool is_left(const eqn_unit *u, int32_t axis)
{
	return axis < u->e.n_left && u->stride[axis] > 0;
}

/* Pieces of one cut stand all on axes of the result, or all on others. */
static bool are_alike(const eqn_unit *u, int32_t n, const cut_part *part)
{
	for (int32_t i = 1; i < n; i++)
		if (is_left(u, part[i].axis) != is_left(u, part[0].axis))
			return false;
	return true;
}

/* A cut inside the blocks of another: where that one is, if it is whole. */
static int32_t inside(shard_plan *p, const shard_eqn *q, eqn_edge *e,
	const shard_layout *l, int32_t i, cut_part *part)
{
	const shard_tag *t = &l->tag[i], *top = &l->tag[layout_top(l, i)];
	const shard_tag *outer = &l->tag[t->within];
	const shard_layout *axis;
	eqn_digit d;
	int32_t k;

	if (!relate(p, e, top->lo, top->hi, &d))
		return 0;
	axis = &q->axis[d.axis];
	k = layout_find(axis, outer->mesh);
	if (k < 0 || axis->tag[k].lo != d.lo ||
		axis->tag[k].block != outer->block)
		return 0;
	part->axis = d.axis;
	part->tag = *t;
	part->tag.lo = d.lo;
	part->tag.hi = d.lo * (t->hi / t->lo);
	part->tag.within = k;
	return 1;
}

/*
 * Translates tag i of the tensor that read number `read` reads into parts of the
 * equation's axes. Returns their number, at most SHARD_MAX_TAGS; 0: impossible.
 */
static int32_t from_read(shard_plan *p, const shard_eqn *q, int32_t read,
	const shard_layout *l, int32_t i, cut_part *part)
{
	const shard_tag *t = &l->tag[i];
	eqn_edge *e;
	int32_t n;

	if (q->unit->e.opaque != NULL)
		return batch_from(p, q, read, l, i, part);
	e = eqn_join(p->graph, NULL, q->unit, read);
	if (t->within >= 0)
		return inside(p, q, e, l, i, part);
	if (relate_blocks(p, e, t, part))
		return 1;
	n = split(p, e, t, part);
	if (n > 0 && are_alike(q->unit, n, part))
		return n;
	/* o[y] += x[4y + k]: blocks that are no multiples of 4 go to y */
	return halo_takes(p, q->unit, read, t, part);
}

/* ---- from the result ---- */

/* The same for the result. */
static int32_t from_result(const shard_eqn *q, const shard_layout *l,
	int32_t mesh_axis, cut_part *part)
{
	const eqn_unit *u = q->unit;
	int64_t extent[IR_MAX_AXES];
	shard_layout one = shard_replicated(l->numel), *axis;
	int32_t tag = layout_find(l, mesh_axis), n = 0;
	shard_layout room[TN_MAX_RANK];

	if (tag < 0 || l->tag[tag].within >= 0 ||
		u->e.n_left > TN_MAX_RANK)
		return 0;
	one.tag[one.n++] = l->tag[tag];
	if (u->e.push != NULL) {
		const shard_tag *t = &l->tag[tag];

		for (int32_t i = 0; i < u->e.n_left; i++) {
			int64_t k = u->stride[i];

			if (k == 0 || t->lo % k != 0 ||
				t->hi > k * u->box.extent[i])
				continue;
			*part = (cut_part){.axis = i, .tag = *t};
			part->tag.lo = t->lo / k;
			part->tag.hi = t->hi / k;
			return 1;
		}
		return 0;
	}
	for (int32_t i = 0; i < u->e.n_left; i++)
		extent[i] = u->box.extent[i];
	axis = room;
	if (!shard_by_axis(&one, u->e.n_left, extent, axis))
		return 0;
	for (int32_t i = 0; i < u->e.n_left; i++)
		for (int32_t k = 0; k < axis[i].n; k++)
			part[n++] = (cut_part){i, axis[i].tag[k]};
	return n;
}

/* ---- adding ---- */

/* Do the pieces tell each process along the axis of the mesh from the others? Only
 * then is every part of a sum worked out once. */
static bool tells_all(const shard_mesh *m, int32_t n, const cut_part *part)
{
	int64_t told = 1;
	bool more = true;

	while (more && told < m->extent[part[0].tag.mesh]) {
		more = false;
		for (int32_t i = 0; i < n && !more; i++)
			if (part[i].tag.mult == told && part[i].tag.count > 1) {
				told *= part[i].tag.count;
				more = true;
			}
	}
	return more || told >= m->extent[part[0].tag.mesh];
}

/* Adds all parts, which use one axis of the mesh, or none (false). */
static bool add_all(shard_eqn *q, const shard_mesh *m, int32_t n,
	const cut_part *part)
{
	const eqn_unit *u = q->unit;

	if (n == 0)
		return false;
	if (!are_alike(u, n, part) ||
		(!is_left(u, part[0].axis) && !tells_all(m, n, part)))
		return false;
	for (int32_t i = 0; i < n; i++) {
		const shard_tag *t = &part[i].tag;
		shard_layout trial = q->axis[part[i].axis];
		int64_t values = t->hi / t->lo;

		if (u->e.axis[part[i].axis].kind == AXIS_S)
			return false;
		if (values / t->block + (values % t->block != 0) > t->count)
			return false;
		/* a digit of the axis is one of the element number, too */
		if (t->within < 0 &&
			u->e.axis[part[i].axis].extent % t->hi != 0)
			return false;
		/* pieces of one run are apart from each other */
		if (!layout_add(&trial, *t))
			return false;
	}
	for (int32_t i = 0; i < n; i++)
		layout_add(&q->axis[part[i].axis], part[i].tag);
	return true;
}

/* ---- to a read ---- */

/* The run of the element number that tag t, its digit ending at hi, walks;
 * finer than it where the address sees whole blocks alone. */
static bool element_digit(shard_plan *p, const eqn_unit *u, eqn_edge *e,
	const shard_tag *t, int32_t axis, int64_t hi, shard_tag *out)
{
	const ix_form *at = e->read->at;
	bool flat = e->read->in_init && u->e.push != NULL;
	eqn_digit d;

	for (int32_t i = flat ? -1 : 0; i < (flat ? 0 : at->n); i++) {
		const ix_atom *atom = flat ? NULL : at->t[i].atom;
		int64_t alo = 1, ahi = u->box.extent[axis];
		int64_t coef = flat ? u->stride[axis] : at->t[i].coef, f = 1;

		if (!flat) {
			if (atom->kind != IX_DIGIT || atom->axis != axis)
				continue;
			alo = atom->lo;
			ahi = atom->hi;
		}
		if (coef <= 0 || hi > ahi)
			continue;
		if (alo > t->lo) {
			f = alo / t->lo;
			if (alo % t->lo != 0 || t->block % f != 0)
				continue;
		} else if (t->lo % alo != 0) {
			continue;
		}
		*out = *t;
		out->block = t->block / f;
		out->lo = coef * (t->lo * f / alo);
		out->hi = out->lo * (hi / (t->lo * f));
		if (hi % (t->lo * f) != 0 ||
			!relate(p, e, out->lo, out->hi, &d))
			continue;
		if (d.axis == axis && d.lo == t->lo * f && d.hi == hi)
			return true;
	}
	return false;
}

/* Pieces of one run become the run: the same layout, said with fewer words. */
static void join_pieces(const shard_mesh *m, shard_layout *l)
{
	for (int32_t i = 0; i < l->n; i++)
		if (l->tag[i].within >= 0)
			return;
	for (int32_t i = 0; i < l->n; i++) {
		shard_tag *t = &l->tag[i];

		for (int32_t k = 0; k < l->n; k++) {
			const shard_tag *u = &l->tag[k];

			if (layout_is_wide(t) || layout_is_wide(u))
				continue;
			if (u->mesh != t->mesh || u->lo != t->hi ||
				u->block != 1 || u->mult != t->mult * t->count ||
				t->count * t->block != t->hi / t->lo)
				continue;
			t->hi = u->hi;
			t->count *= u->count;
			if (t->mult == 1 && t->count >= m->extent[t->mesh])
				t->count = m->extent[t->mesh];
			l->tag[k] = l->tag[--l->n];
			i = -1;
			break;
		}
	}
}

/* Where the tensor is cut and the read is not: no more than what it reaches. */
static void add_parts(
	shard_plan *p, const eqn_unit *u, int32_t read, shard_layout *l)
{
	const shard_layout *have = &p->tensor[u->read[read].tensor].have;

	for (int32_t i = 0; i < have->n; i++) {
		shard_tag out;

		if (!layout_uses(l, have->tag[i].mesh) &&
			halo_part(p, u, read, &have->tag[i], &out))
			(void)layout_add(l, out);
	}
}

/*
 * Does the tensor's axis as a window sees it bring less than the digit that the
 * address walks, which the axis may have again and again, or in coarse steps?
 *
 *     o[i] = x[i + 8] for i < 4, x: 12, i in blocks of 1
 *     process 0 needs element 8; by the digit of i, elements 0, 4 and 8
 *     o[i] = x[5i + 2] for i < 4, x: 20, i in blocks of 1
 *     process 0 needs element 2; by the digit of i, elements 0 to 4
 */
static bool is_less(const shard_plan *p, int32_t tensor, const shard_tag *seen,
	const shard_tag *digit)
{
	const shard_layout *have = &p->tensor[tensor].have;
	double wide = (double)(seen->block + seen->before + seen->after);

	for (int32_t i = 0; i < have->n; i++)
		if (layout_same_cut(&have->tag[i], digit))
			return false;
	return wide / (double)(seen->hi / seen->lo) <
		(double)digit->block / (double)(digit->hi / digit->lo);
}

shard_layout layout_to_read(shard_plan *p, const shard_eqn *q, int32_t read,
	bool *windows)
{
	const eqn_unit *u = q->unit;
	int32_t tensor = u->read[read].tensor;
	shard_layout l = shard_replicated(p->s->tensor.at[tensor].numel);
	bool may = *windows;
	eqn_edge *e;

	*windows = false;
	if (u->e.opaque != NULL)
		return batch_layout(p, q, read);
	e = eqn_join(p->graph, NULL, u, read);
	for (int32_t a = 0; a < u->e.n_axes; a++) {
		const shard_layout *axis = &q->axis[a];

		for (int32_t i = 0; i < axis->n; i++) {
			const shard_tag *t = &axis->tag[i];
			const shard_tag *top = &axis->tag[layout_top(axis, i)];
			shard_tag out, seen;
			bool wide = halo_needs(p, u, read, a, t, &seen);
			bool digit = element_digit(
				p, u, e, t, a, top->hi, &out);
			bool less = digit && wide && may &&
				is_less(p, tensor, &seen, &out);

			*windows |= less;
			if (less || (wide && !digit))
				layout_add(&l, seen);
			if (less || !digit)
				continue;
			if (t->within >= 0) {
				out.within = layout_find(
					&l, axis->tag[t->within].mesh);
				if (out.within < 0 || out.block != t->block ||
					l.tag[out.within].lo != out.lo ||
					l.tag[out.within].block !=
						axis->tag[t->within].block)
					continue;
				out.hi = out.lo * (t->hi / t->lo);
			}
			layout_add(&l, out);
		}
	}
	if (eqn_reads_init(u, &u->read[read]))
		for (int32_t i = 0; i < q->own.n; i++)
			layout_add(&l, q->own.tag[i]);
	join_pieces(p->mesh, &l);
	add_parts(p, u, read, &l);
	return l;
}

/* ---- all cuts by one axis of the mesh ---- */

/* The cuts of one axis of the mesh together: pieces of it may cut several. */
bool take_read(shard_plan *p, shard_eqn *q, int32_t read, int32_t mesh)
{
	const shard_layout *l = &p->tensor[q->unit->read[read].tensor].have;
	cut_part part[SHARD_MAX_TAGS], one[SHARD_MAX_TAGS];
	int32_t n = 0;

	for (int32_t i = 0; i < l->n; i++) {
		int32_t k;

		if (l->tag[i].mesh != mesh)
			continue;
		k = from_read(p, q, read, l, i, one);
		if (n + k > SHARD_MAX_TAGS)
			return false;
		memcpy(part + n, one, (size_t)k * sizeof *one);
		n += k;
	}
	return add_all(q, p->mesh, n, part);
}

bool take_result(shard_plan *p, shard_eqn *q, int32_t k, int32_t mesh)
{
	const shard_layout *l = &p->tensor[q->unit->e.out[k]].have;
	cut_part part[SHARD_MAX_TAGS];
	int32_t tag = layout_find(l, mesh), n;

	if (q->unit->e.opaque == NULL)
		n = from_result(q, l, mesh, part);
	else
		n = tag < 0 ? 0
			    : batch_from(p, q, q->unit->e.n_opaque_in + k, l,
				      tag, part);
	return add_all(q, p->mesh, n, part);
}
