/*
 * planner.c: where the inputs of a program should lie on a mesh, by cost.
 *
 * Consumes a system and a mesh of any size (no process is there); produces
 * placements of the inputs, and what a step costs a process: flops, bytes
 * received, memory. Inputs whose names differ only in digits and whose shapes
 * are equal are one class, which is placed as one. A proposal is a cut for some
 * classes; all else follows by propagation, and the cost is read from layouts.
 *
 *     all whole -> data cut by "data" -> up.weight by "model" too -> ..
 *
 * A beam of the best proposals grows by one cut at a time, as long as it helps.
 * Training is costed on the forward program: a read along an axis of the mesh
 * that cuts the equation but not what is read has a gradient in parts there.
 */
#include "layout/local.h"

#include <math.h>
#include <stdlib.h>

/* Adam reads and writes seven numbers for each: as so many flops */
static const double flops_of_state = 40;

enum { BEAM = 2, MOST_ROUNDS = 8, MOST_CLASSES = 40, MOST_TRIED = 4000 };

typedef struct input_class {
	const char *name; /* digits as * */
	int32_t tensor, n;
	double bytes; /* of all of them */
} input_class;

typedef struct proposal {
	signed char cut[MOST_CLASSES][SHARD_MAX_AXES]; /* axis of it; -1 */
	shard_bill bill;
	double score;
} proposal;

typedef struct planner {
	arena *a;
	shard_plan *p;
	const shard_wishes *w;
	int32_t n;
	input_class class[MOST_CLASSES];
	int32_t *class_of; /* by input; -1: it is not placed */
	map *tried;
	int32_t n_tried;
	shard_charges *charges; /* NULL: only sums are needed */
} planner;

/* ---- what layouts cost ---- */

static double part_of_run(const shard_layout *l, int32_t i)
{
	const shard_tag *t = &l->tag[i];
	double run = (double)(t->hi / t->lo);

	if (t->within >= 0)
		run = (double)l->tag[t->within].block;
	return t->block < (int64_t)run ? (double)t->block / run : 1;
}

/* of all elements, those that a process has; also: it has b's cuts, too */
static double part_of(const shard_layout *a, const shard_layout *b)
{
	double f = 1;

	for (int32_t i = 0; i < a->n; i++)
		f *= part_of_run(a, i);
	for (int32_t k = 0; b != NULL && k < b->n; k++) {
		bool both = false;

		for (int32_t i = 0; i < a->n; i++)
			both |= layout_same_cut(&a->tag[i], &b->tag[k]);
		if (!both)
			f *= part_of_run(b, k);
	}
	return f;
}

static double bytes_of(const shard_plan *p, int32_t tensor)
{
	const sys_tensor *t = &p->s->tensor.at[tensor];

	return (double)t->numel * (double)dtype_size(t->dtype);
}

static double group_size(const shard_mesh *m, uint32_t mask)
{
	double n = 1;

	for (int32_t k = 0; k < m->n; k++)
		n *= mask >> k & 1 ? (double)m->extent[k] : 1;
	return n;
}

static const char *class_name(arena *a, const char *name)
{
	str s = str_new(a);

	for (const char *c = name; *c != '\0'; c++) {
		if (*c < '0' || *c > '9')
			str_addc(&s, *c);
		else if (s.n == 0 || s.at[s.n - 1] != '*')
			str_addc(&s, '*');
	}
	return s.at;
}

static void charge(planner *z, shard_bill *b, const char *name, int32_t tensor,
	uint32_t mask, double bytes)
{
	double steps = ceil(log2(group_size(z->p->mesh, mask)));
	shard_charge *c = NULL;
	const char *of;

	if (bytes < 1)
		return;
	b->moved += bytes;
	b->link_seconds += bytes / z->w->link + steps * z->w->latency;
	if (z->charges == NULL)
		return;
	of = class_name(z->a, z->p->s->tensor.at[tensor].name);
	for (int32_t i = 0; i < z->charges->n; i++) {
		c = &z->charges->at[i];
		if (strcmp(c->name, name) == 0 && c->mask == mask &&
			strcmp(c->of, of) == 0)
			break;
		c = NULL;
	}
	if (c == NULL) {
		c = vec_push(z->a, z->charges);
		*c = (shard_charge){.name = name, .of = of, .mask = mask};
	}
	c->n++;
	c->bytes += bytes;
}

/* axes of the mesh that cut the equation, and not what it reads */
static uint32_t cuts_beside(const planner *z, const shard_eqn *q,
	const shard_layout *need)
{
	uint32_t mask = 0;

	for (int32_t m = 0; m < z->p->mesh->n; m++)
		if (z->p->mesh->extent[m] > 1 && eqn_is_cut_by(q, m) &&
			!layout_uses(need, m))
			mask |= 1u << m;
	return mask;
}

static void charge_read(planner *z, shard_bill *b, int32_t eqn, int32_t tensor)
{
	shard_plan *p = z->p;
	const shard_layout *have = &p->tensor[tensor].have;
	shard_layout need = shard_needs(p, eqn, tensor);
	double all = bytes_of(p, tensor), local = all * part_of(&need, NULL);
	double lacks = local - all * part_of(&need, have);
	uint32_t mask = 0, parts;

	for (int32_t i = 0; i < have->n; i++)
		mask |= layout_uses(&need, have->tag[i].mesh)
			? 0
			: 1u << have->tag[i].mesh;
	charge(z, b, mask != 0 ? "all-gather" : "all-to-all", tensor,
		mask != 0 ? mask : 1, lacks);
	if (!z->w->train || !dtype_is_float(p->s->tensor.at[tensor].dtype))
		return;
	if (lacks >= 1 && mask == 0)
		charge(z, b, "all-to-all, backward", tensor, 1, lacks);
	parts = cuts_beside(z, &p->eqn[eqn], &need);
	if ((parts & mask) != 0) {
		double n = group_size(p->mesh, parts & mask);

		charge(z, b, "reduce-scatter, gradient", tensor, parts & mask,
			local * (1 - 1 / n));
		local /= n;
		parts &= ~mask;
	}
	if (parts != 0)
		charge(z, b, "all-reduce, gradient", tensor, parts,
			2 * local * (1 - 1 / group_size(p->mesh, parts)));
}

static void charge_result(planner *z, shard_bill *b, int32_t eqn)
{
	shard_plan *p = z->p;
	uint32_t mask = 0;
	bool scattered = false;

	for (int32_t m = 0; m < p->mesh->n; m++)
		if (p->mesh->extent[m] > 1 && shard_is_partial(p, eqn, m)) {
			mask |= 1u << m;
			scattered |= layout_uses(
				&p->tensor[p->eqn[eqn].unit->e.out[0]].have, m);
		}
	for (int32_t k = 0; k < p->eqn[eqn].unit->e.n_out && mask != 0; k++) {
		int32_t t = p->eqn[eqn].unit->e.out[k];
		shard_layout made = shard_makes(p, eqn, k);
		double local = bytes_of(p, t) * part_of(&made, NULL) *
			(1 - 1 / group_size(p->mesh, mask));

		charge(z, b, scattered ? "reduce-scatter" : "all-reduce", t,
			mask, scattered ? local : 2 * local);
	}
}

static bool is_sum(const eqn_unit *u)
{
	return u->e.n_axes > u->e.n_left;
}

/* Is it kept, or read in the loop that makes it? */
static bool is_kept(const planner *z, int32_t tensor)
{
	const shard_plan *p = z->p;
	int32_t eqn = p->s->tensor.at[tensor].eqn;

	if (eqn < 0 || is_sum(p->eqn[eqn].unit))
		return eqn >= 0;
	for (int32_t i = eqn + 1; i < p->s->eqn.n; i++)
		for (int32_t r = 0; r < p->eqn[i].unit->n_reads; r++)
			if (p->eqn[i].unit->read[r].tensor == tensor &&
				is_sum(p->eqn[i].unit))
				return true;
	return false;
}

static void charge_eqn(planner *z, shard_bill *b, int32_t eqn)
{
	const shard_eqn *q = &z->p->eqn[eqn];
	const eqn_unit *u = q->unit;
	double points = 1;

	for (int32_t i = 0; i < u->e.n_axes; i++)
		points *= (double)q->axis[i].numel *
			part_of(&q->axis[i], NULL);
	b->flops += points * (u->n_reads > 1 ? u->n_reads : 1) *
		(z->w->train ? 3 : 1);
	for (int32_t r = 0; r < u->n_reads; r++) {
		bool again = u->read[r].tensor == u->e.out[0];

		for (int32_t k = 0; k < r; k++)
			again |= u->read[k].tensor == u->read[r].tensor;
		if (!again)
			charge_read(z, b, eqn, u->read[r].tensor);
	}
	charge_result(z, b, eqn);
}

/* kept[t]: worked out once, it depends on no layout */
static shard_bill bill_of(planner *z, const bool *kept)
{
	const shard_plan *p = z->p;
	const ir_system *s = p->s;
	shard_bill b = {0};
	double most = 0;

	for (int32_t i = 0; i < s->input.n; i++) {
		int32_t t = s->input.at[i];
		double n = bytes_of(p, t) * part_of(&p->tensor[t].have, NULL);

		b.inputs += n;
		/* its gradient, and two moments of the optimiser */
		if (!z->w->train || !dtype_is_float(s->tensor.at[t].dtype))
			continue;
		b.states += 3 * n;
		b.flops += flops_of_state * n /
			(double)dtype_size(s->tensor.at[t].dtype);
	}
	for (int32_t i = 0; i < s->tensor.n; i++) {
		double n = bytes_of(p, i) * part_of(&p->tensor[i].have, NULL);

		if (s->tensor.at[i].is_input || !kept[i])
			continue;
		b.values += z->w->train ? n : 0;
		most = n > most ? n : most;
	}
	/* without a backward: what is made and what it is made of */
	if (!z->w->train)
		b.values = 2 * most;
	b.memory = b.inputs + b.states + b.values;
	for (int32_t i = 0; i < s->eqn.n; i++)
		if (!p->eqn[i].dead)
			charge_eqn(z, &b, i);
	b.seconds = b.flops / z->w->flops + b.link_seconds;
	return b;
}

/* ---- proposals ---- */

static void put(planner *z, const proposal *c)
{
	shard_plan *p = z->p;

	shard_plan_reset(p);
	for (int32_t i = 0; i < p->s->input.n; i++) {
		int32_t k = z->class_of[i], t = p->s->input.at[i];
		const sys_tensor *x = &p->s->tensor.at[t];
		shard_layout l = shard_replicated(x->numel);

		for (int32_t m = 0; m < p->mesh->n && k >= 0; m++)
			if (c->cut[k][m] >= 0)
				shard_cut(arena_env(z->a), &l, p->mesh,
					x->rank, x->shape, c->cut[k][m], m, 0);
		shard_annotate(p, t, &l, false);
	}
	shard_propagate(p);
	shard_scatter_sums(p);
}

static double over(const planner *z, const shard_bill *b)
{
	return b->memory > z->w->memory ? b->memory / z->w->memory : 0;
}

/* what does not fit comes behind what does, by how much it is too much */
static int better(const void *x, const void *y)
{
	const proposal *a = *(proposal *const *)x, *b = *(proposal *const *)y;

	if (a->score < b->score || b->score < a->score)
		return a->score < b->score ? -1 : 1;
	return memcmp(a->cut, b->cut, sizeof a->cut);
}

static proposal *judge(planner *z, const proposal *c, const bool *kept)
{
	proposal *r;

	if (map_get(z->tried, c->cut, sizeof c->cut, 0) != 0 ||
		z->n_tried >= MOST_TRIED)
		return NULL;
	map_set(z->tried, c->cut, sizeof c->cut, 1);
	z->n_tried++;
	put(z, c);
	r = arena_make(z->a, proposal);
	*r = *c;
	r->bill = bill_of(z, kept);
	/* equal times: the one with less memory */
	r->score = r->bill.seconds * (1 + 1e-6 * r->bill.memory /
		(r->bill.memory + z->w->memory)) +
		(over(z, &r->bill) > 0 ? 1e12 * over(z, &r->bill) : 0);
	return r;
}

typedef VEC(proposal *) proposals;

/* all that differ from c in one cut */
static void grow(planner *z, const proposal *c, const bool *kept,
	proposals *out)
{
	const shard_plan *p = z->p;

	for (int32_t k = 0; k < z->n; k++) {
		const sys_tensor *x = &p->s->tensor.at[z->class[k].tensor];

		for (int32_t m = 0; m < p->mesh->n; m++) {
			proposal d = *c;

			if (p->mesh->extent[m] == 1)
				continue;
			for (int32_t i = -1; i < x->rank; i++) {
				proposal *r;

				if (i >= 0 && x->shape[i] < p->mesh->extent[m])
					continue;
				d.cut[k][m] = (signed char)i;
				r = judge(z, &d, kept);
				if (r != NULL)
					*vec_push(z->a, out) = r;
			}
		}
	}
}

static proposal *search(planner *z, const bool *kept)
{
	proposals best = {0};
	proposal none;
	proposal *first;

	memset(&none, 0, sizeof none);
	memset(none.cut, -1, sizeof none.cut);
	first = judge(z, &none, kept);
	*vec_push(z->a, &best) = first;
	for (int32_t round = 0; round < MOST_ROUNDS; round++) {
		proposals next = {0};
		double was = best.at[0]->score;

		for (int32_t i = 0; i < best.n; i++)
			*vec_push(z->a, &next) = best.at[i];
		for (int32_t i = 0; i < best.n; i++)
			grow(z, best.at[i], kept, &next);
		qsort(next.at, (size_t)next.n, sizeof *next.at, better);
		next.n = next.n < BEAM ? next.n : BEAM;
		best = next;
		if (!(best.at[0]->score < was * (1 - 1e-9)))
			break;
	}
	return best.at[0];
}

/* ---- classes ---- */

static void find_classes(planner *z)
{
	const ir_system *s = z->p->s;

	z->class_of = arena_array(z->a, int32_t, s->input.n + 1);
	for (int32_t i = 0; i < s->input.n; i++) {
		int32_t t = s->input.at[i], k = 0;
		const sys_tensor *x = &s->tensor.at[t];
		const char *name = class_name(z->a, x->name);

		z->class_of[i] = -1;
		for (; k < z->n; k++) {
			const sys_tensor *y =
				&s->tensor.at[z->class[k].tensor];

			if (strcmp(z->class[k].name, name) == 0 &&
				x->rank == y->rank && x->dtype == y->dtype &&
				memcmp(x->shape, y->shape,
					(size_t)x->rank * sizeof *x->shape) ==
					0)
				break;
		}
		if (k == MOST_CLASSES || x->numel <= 1)
			continue;
		if (k == z->n)
			z->class[z->n++] = (input_class){name, t, 0, 0};
		z->class[k].n++;
		z->class[k].bytes += bytes_of(z->p, t);
		z->class_of[i] = k;
	}
}

shard_proposal *shard_propose(arena *a, shard_plan *p, const shard_wishes *w)
{
	shard_proposal *out = arena_make(a, shard_proposal);
	planner z = {.a = arena_child(a), .p = p, .w = w};
	bool *kept = arena_array(a, bool, p->s->tensor.n + 1);
	const proposal *c;

	z.tried = map_new(z.a);
	find_classes(&z);
	for (int32_t t = 0; t < p->s->tensor.n; t++)
		kept[t] = is_kept(&z, t);
	c = search(&z, kept);
	put(&z, c);
	z.a = a; /* what is charged now stays */
	z.charges = &out->charge;
	out->bill = bill_of(&z, kept);
	for (int32_t k = 0; k < z.n; k++)
		*vec_push(a, &out->input) = (shard_placed){
			arena_strdup(a, z.class[k].name), z.class[k].tensor,
			z.class[k].n};
	out->n_tried = z.n_tried;
	return out;
}
