/*
 * explain.c: prints the plan of a program on a mesh.
 *
 * Consumes the program of one process; prints the placement of each tensor and the
 * reason, and each move with its bytes and the reason, as text or JSON.
 *
 *     mesh data=2: 2 processes
 *
 *     x: f32[8,16]   data: axis 0 by 4
 *     g: f32[16]     replicated
 *
 *     all-reduce of g: 64 bytes, 32 by the process that sends most
 *       from data: parts of a sum
 *       why  reduce_sum reduces i0, which data cuts
 */
#include "layout/local.h"

enum { MOST_COUNTED = 64 };

typedef struct teller {
	str *o;
	const shard_program *q;
	shard_plan *p;
	const ir_system *s;
	bool json;
} teller;

static const char *axis_name(const sys_eqn *e, int32_t i)
{
	return e->axis[i].name != NULL ? e->axis[i].name : "an axis";
}

/* ---- reasons ---- */

/* The axes of an equation that mesh axis m cuts; only_sums: only reduced ones. */
static void cut_axes(str *s, const shard_eqn *q, int32_t m, bool only_sums)
{
	const eqn_unit *u = q->unit;
	const char *sep = "";

	for (int32_t i = 0; i < u->e.n_axes; i++) {
		if (!layout_uses(&q->axis[i], m) ||
			(only_sums && i < u->e.n_left && u->stride[i] != 0))
			continue;
		str_printf(s, "%s%s", sep, axis_name(&u->e, i));
		sep = " and ";
	}
}

static void why_parts(str *s, const teller *w, int32_t tensor, uint32_t mask)
{
	int32_t eqn = w->s->tensor.at[tensor].eqn;
	const char *sep = "";

	if (eqn < 0) {
		str_add(s, "the tensor is given as parts of a sum");
		return;
	}
	for (int32_t m = 0; m < w->p->mesh->n; m++) {
		const shard_eqn *q = &w->p->eqn[eqn];

		if (!(mask >> m & 1))
			continue;
		str_add(s, sep);
		sep = "; ";
		if (q->masks >> m & 1) {
			str_printf(s, "%s reads what each process along %s "
				      "owns, and 0 elsewhere",
				q->unit->e.label, w->p->mesh->name[m]);
			continue;
		}
		str_printf(s, "%s reduces ", q->unit->e.label);
		cut_axes(s, q, m, true);
		str_printf(s, ", which %s cuts", w->p->mesh->name[m]);
	}
}

static bool same_along(
	const shard_layout *a, const shard_layout *b, int32_t m)
{
	int32_t i = layout_find(a, m), k = layout_find(b, m);

	return i < 0 || k < 0 ? i == k
			      : layout_same_cut(&a->tag[i], &b->tag[k]);
}

static void why_read(str *s, const teller *w, const shard_job *j)
{
	const shard_array *x = &w->q->array.at[j->from[0]];
	const shard_array *y = &w->q->array.at[j->to[0]];
	const shard_eqn *q;
	const char *sep = "";

	if (j->reader < 0) {
		str_add(s, "this is the placement that was given for it");
		return;
	}
	q = &w->p->eqn[j->reader];
	for (int32_t m = 0; m < w->p->mesh->n; m++) {
		if (same_along(&x->layout, &y->layout, m))
			continue;
		str_printf(s, "%s%s ", sep, q->unit->e.label);
		sep = "; ";
		if (layout_uses(&q->own, m)) {
			str_printf(s, "keeps what each process along %s owns",
				w->p->mesh->name[m]);
		} else if (eqn_is_cut_by(q, m) && !(q->masks >> m & 1)) {
			str_printf(s, "is cut by %s along ",
				w->p->mesh->name[m]);
			cut_axes(s, q, m, false);
		} else if (q->unit->e.opaque != NULL) {
			str_printf(s, "needs all of it along %s",
				w->p->mesh->name[m]);
		} else {
			str_printf(s, "has no axis that the cut by %s could "
				      "cut",
				w->p->mesh->name[m]);
		}
	}
}

/* ---- tensors ---- */

static void add_type(str *s, const sys_tensor *t)
{
	str_add(s, dtype_name(t->dtype));
	str_addc(s, '[');
	for (int32_t i = 0; i < t->rank; i++)
		str_printf(s, "%s%lld", i > 0 ? "," : "",
			(long long)t->shape[i]);
	str_addc(s, ']');
}

static void add_layout(str *s, const teller *w, const shard_layout *l,
	int32_t tensor, uint32_t parts, int32_t monoid)
{
	const sys_tensor *t = &w->s->tensor.at[tensor];

	shard_placement_print(
		s, l, parts, monoid, w->p->mesh, t->rank, t->shape);
}

static bool is_dead(const teller *w, int32_t tensor)
{
	int32_t eqn = w->s->tensor.at[tensor].eqn;

	return eqn >= 0 && w->p->eqn[eqn].dead;
}

static void text_tensor(const teller *w, int32_t tensor)
{
	const sys_tensor *t = &w->s->tensor.at[tensor];
	const shard_state *h = &w->p->tensor[tensor];

	str_printf(w->o, "%s: ", t->name);
	add_type(w->o, t);
	str_add(w->o, "  ");
	add_layout(w->o, w, &h->have, tensor, h->parts, h->parts_monoid);
	str_addc(w->o, '\n');
	for (int32_t i = 0; t->eqn >= 0 && i < w->p->why.n; i++)
		if (w->p->why.at[i].eqn == t->eqn)
			str_printf(w->o, "  %s\n", w->p->why.at[i].text);
}

static void json_tensor(const teller *w, int32_t tensor, const char *sep)
{
	const sys_tensor *t = &w->s->tensor.at[tensor];
	const shard_state *h = &w->p->tensor[tensor];
	arena *a = arena_child(w->p->a);
	str s = str_new(a);
	int32_t n = 0;

	str_printf(w->o, "%s\n    {\"name\": ", sep);
	str_json(w->o, t->name);
	add_type(&s, t);
	str_printf(w->o, ", \"type\": \"%s\", \"placement\": ", s.at);
	s = str_new(a);
	add_layout(&s, w, &h->have, tensor, h->parts, h->parts_monoid);
	str_json(w->o, s.at);
	str_printf(w->o, ", \"given\": %s, \"why\": [",
		t->eqn < 0 || h->fixed ? "true" : "false");
	for (int32_t i = 0; t->eqn >= 0 && i < w->p->why.n; i++) {
		if (w->p->why.at[i].eqn != t->eqn)
			continue;
		str_add(w->o, n++ > 0 ? ", " : "");
		str_json(w->o, w->p->why.at[i].text);
	}
	str_add(w->o, "]}");
	arena_free(a);
}

/* ---- moves ---- */

typedef struct bytes {
	int64_t all, most;
} bytes;

/* Bytes of a move; on large meshes, only those of the first processes. */
static bytes count(const teller *w, const shard_job *j)
{
	const shard_array *x = &w->q->array.at[j->from[0]];
	const shard_array *y = &w->q->array.at[j->to[0]];
	int64_t n = shard_mesh_size(arena_env(w->p->a), w->p->mesh);
	int64_t size = 0;
	bytes b = {0};

	for (int32_t k = 0; k < j->n; k++)
		size += (int64_t)dtype_size(
			w->q->array.at[j->from[k]].dtype);
	for (int64_t r = 0; r < n && r < MOST_COUNTED; r++) {
		arena *a = arena_child(w->p->a);
		int64_t sent = size *
			shard_transfer_sent(shard_transfer_new(a, w->p->mesh,
				r, &x->layout, j->mask, &y->layout, j->name));

		b.all += sent;
		if (sent > b.most)
			b.most = sent;
		arena_free(a);
	}
	return b;
}

static void add_why(str *s, const teller *w, const shard_job *j)
{
	if (j->mask != 0)
		why_parts(s, w, w->q->array.at[j->from[0]].tensor, j->mask);
	else
		why_read(s, w, j);
}

static void text_job(const teller *w, const shard_job *j, int32_t phase)
{
	const shard_array *x = &w->q->array.at[j->from[0]];
	const shard_array *y = &w->q->array.at[j->to[0]];
	bytes b = count(w, j);

	str_printf(w->o, "%d: %s of %s: %lld bytes, %lld by the process that "
			 "sends most\n  from  ",
		(int)phase, j->name, w->s->tensor.at[x->tensor].name,
		(long long)b.all, (long long)b.most);
	add_layout(w->o, w, &x->layout, x->tensor, j->mask, j->monoid);
	str_add(w->o, "\n  to    ");
	add_layout(w->o, w, &y->layout, y->tensor, 0, IR_SET);
	str_add(w->o, "\n  why   ");
	add_why(w->o, w, j);
	str_addc(w->o, '\n');
}

static void json_job(
	const teller *w, const shard_job *j, int32_t phase, const char *sep)
{
	const shard_array *x = &w->q->array.at[j->from[0]];
	const shard_array *y = &w->q->array.at[j->to[0]];
	arena *a = arena_child(w->p->a);
	bytes b = count(w, j);
	str from = str_new(a), to = str_new(a), why = str_new(a);

	add_layout(&from, w, &x->layout, x->tensor, j->mask, j->monoid);
	add_layout(&to, w, &y->layout, y->tensor, 0, IR_SET);
	add_why(&why, w, j);
	str_printf(w->o, "%s\n    {\"phase\": %d, \"move\": \"%s\", \"of\": ",
		sep, (int)phase, j->name);
	str_json(w->o, w->s->tensor.at[x->tensor].name);
	str_printf(w->o, ", \"bytes\": %lld, \"most\": %lld, \"from\": ",
		(long long)b.all, (long long)b.most);
	str_json(w->o, from.at);
	str_add(w->o, ", \"to\": ");
	str_json(w->o, to.at);
	str_add(w->o, ", \"why\": ");
	str_json(w->o, why.at);
	str_add(w->o, "}");
	arena_free(a);
}

/* ---- all ---- */

static void add_mesh(const teller *w)
{
	const shard_mesh *m = w->p->mesh;
	long long n = shard_mesh_size(arena_env(w->p->a), m);

	str_add(w->o, w->json ? "{\n  \"mesh\": {" : "mesh ");
	for (int32_t i = 0; i < m->n; i++)
		str_printf(w->o, w->json ? "%s\"%s\": %lld" : "%s%s=%lld",
			i == 0 ? "" : w->json ? ", " : ",", m->name[i],
			(long long)m->extent[i]);
	str_printf(w->o, w->json ? "},\n  \"processes\": %lld"
				 : ": %lld processes",
		n);
	if (n > MOST_COUNTED)
		str_printf(w->o, w->json ? ",\n  \"counted\": %d"
					 : ", bytes of the first %d",
			MOST_COUNTED);
	str_add(w->o, w->json ? ",\n  \"tensors\": [" : "\n\n");
}

void shard_explain(str *out, const shard_program *q, bool json)
{
	teller w = {out, q, q->p, q->p->s, json};
	int32_t n = 0;

	add_mesh(&w);
	for (int32_t t = 0; t < w.s->tensor.n; t++) {
		if (is_dead(&w, t))
			continue;
		if (json)
			json_tensor(&w, t, n > 0 ? "," : "");
		else
			text_tensor(&w, t);
		n++;
	}
	n = 0;
	str_add(out, json ? "],\n  \"moves\": [" : "\n");
	for (int32_t i = 0; i < q->phase.n; i++)
		for (int32_t k = 0; k < q->phase.at[i].job.n; k++) {
			const shard_job *j = &q->phase.at[i].job.at[k];

			if (json)
				json_job(&w, j, i, n > 0 ? "," : "");
			else
				text_job(&w, j, i);
			n++;
		}
	if (json)
		str_add(out, "]\n}\n");
	else if (n == 0)
		str_add(out, "nothing is moved\n");
}
