/*
 * backward.c: reverse mode over values.
 *
 * Consumes values with cotangents; walks the tracked calls on which they depend,
 * newest first, and records the adjoint of each as ordinary calls, which are
 * evaluated only if needed. The slot of a leaf collects its cotangents.
 *
 *   call    the results of its adjoint go to the operands, through their views
 *   write   the value gets the cotangent at the view, the version before gets
 *           the rest, with zeros at the view
 *   write without gradient    the written elements are a leaf
 */
#include "tape/walk.h"

#include <stdlib.h>

/* ---- small calls ---- */

static t_value *simple(tensors *t, const char *row, int32_t n,
	const t_read *arg, const ir_type *const *type, int32_t n_attrs,
	const ir_attr *attr)
{
	return t_record(t, t_entry_named(t, row, n, type, n_attrs, attr), n,
		arg)
		->result[0];
}

static t_value *sum_of(tensors *t, t_value *x, t_value *y)
{
	t_read arg[2] = {{x, NULL, false, 0}, {y, NULL, false, 0}};
	const ir_type *type[2] = {&x->type, &y->type};

	return simple(t, "add", 2, arg, type, 0, NULL);
}

static t_value *filled(tensors *t, const ir_type *y, double value)
{
	ir_attr attr[] = {
		{.name = "shape",
			.kind = ATTR_INTS,
			.n = y->rank,
			.ints = y->shape},
		{.name = "value", .kind = ATTR_REAL, .f = value},
		{.name = "dtype", .kind = ATTR_DTYPE, .dtype = y->dtype}};

	return simple(t, "fill", 0, NULL, NULL, 3, attr);
}

static const ir_type *view_type(const t_value *v, const t_view *w)
{
	return w == NULL ? &v->type
			 : &w->entry->inst->tensor[w->entry->inst->result[0]]
				    .type;
}

/* v through w, as a value */
static t_value *seen(tensors *t, t_value *v, t_view *w)
{
	t_read arg = {v, w, false, 0};
	const ir_type *type = view_type(v, w);

	return w == NULL ? v : simple(t, "copy", 1, &arg, &type, 0, NULL);
}

/* v with zeros at the view */
static t_value *zeroed(tensors *t, t_value *v, t_view *w)
{
	t_value *zero = filled(t, view_type(v, w), 0);

	return t_record_write(
		t, (t_read){v, w, false, 0}, (t_read){zero, NULL, false, 0});
}

/* ---- collecting ---- */

static void meet(tensors *t, t_value *v)
{
	if (v->walk == t->walk)
		return;
	v->walk = t->walk;
	v->acc = NULL;
	v->is_shared = false;
	t_value_keep(v); /* during the walk */
	*vec_push(t->a, &t->met) = v;
}

/* The walk keeps a reference, too. */
static void collect(tensors *t, t_value **acc, t_value *g)
{
	g = *acc == NULL ? g : sum_of(t, *acc, g);
	meet(t, g);
	*acc = g;
}

/* g with elements of its own: a gradient that is handed out can be written to. */
static t_value *own(tensors *t, t_value *g)
{
	t_read arg = {g, NULL, false, 0};
	const ir_type *type = &g->type;

	return g->is_shared ? simple(t, "copy", 1, &arg, &type, 0, NULL) : g;
}

/* Turns the cotangent of a chain of views into one of the value below. */
static t_value *through_views(tensors *t, t_view *w, t_value *g)
{
	for (; w != NULL; w = w->parent) {
		const t_rule *r = t_rule_of(t, w->entry, 1, 1);
		t_read arg[T_MAX_EXTRA + 1];

		for (int32_t k = 0; k < r->g->n_operands; k++) {
			const struct grad_operand *o = &r->g->operand[k];

			arg[k] = o->from == GRAD_SEED
				? (t_read){g, NULL, false, 0}
				: w->extra[o->i - 1];
		}
		g = t_record(t, r->entry, r->g->n_operands, arg)->result[0];
		meet(t, g);
	}
	return g;
}

static void give(tensors *t, const t_read *to, t_value *g)
{
	if (!to->v->tracked)
		return;
	meet(t, g);
	meet(t, to->v);
	collect(t, &to->v->acc, through_views(t, to->view, g));
}

/* ---- the calls ---- */

static _Noreturn void freed(tensors *t)
{
	env_fail(t->e, TN_EINVAL, "grad.freed",
		t_here(t),
		"an earlier tn_backward released the values that this gradient "
		"needs: call tn_backward_keep there");
}

static _Noreturn void no_second(tensors *t)
{
	env_fail(t->e, TN_EINVAL, "grad.second",
		t_here(t),
		"it was made from a gradient through a condition, a loop, a "
		"function in C, or a compiled function that reads a value where "
		"it was written without a gradient: such a gradient has none "
		"itself; tn_detach it, or take it inside tn_no_grad_enter");
}

static void visit(tensors *t, t_value *v)
{
	t_call *c = v->call;

	if (v->is_freed)
		freed(t);
	meet(t, v);
	if (!t_has_history(v) || c->walk == t->walk)
		return;
	c->walk = t->walk;
	c->refs++;
	*vec_push(t->a, &t->path) = c;
}

static int newest_first(const void *x, const void *y)
{
	const t_call *const *l = x, *const *r = y;

	return (*l)->id > (*r)->id ? -1 : (*l)->id < (*r)->id;
}

static void find_path(tensors *t)
{
	for (int32_t i = 0; i < t->path.n; i++) {
		const t_call *c = t->path.at[i];

		for (int32_t k = 0; k < c->n_args; k++) {
			t_value *v = c->arg[k].v;

			if (v->is_last && c->trace == NULL &&
				t->capture == NULL && !t_overwrites(c, k))
				no_second(t);
			if ((v->tracked || v->is_freed) && !t_overwrites(c, k))
				visit(t, v);
		}
	}
	if (t->path.n > 1)
		qsort(t->path.at, (size_t)t->path.n, sizeof *t->path.at,
			newest_first);
}

/* Result r of c; if it was dropped, a new value for it. */
static t_value *result_of(tensors *t, const t_call *c, int32_t i)
{
	t_value *v = c->result[i];

	if (v == NULL) {
		v = (c->trace != NULL
				? t_record_trace(t, c->trace, c->arg)
				: t_record(t, c->entry, c->n_args, c->arg))
			->result[i];
		meet(t, v);
	}
	return v;
}

/* Operand k of an adjoint that needs only its shape. */
static t_value *shape_of(tensors *t, const t_rule *r, int32_t k)
{
	const ir_inst *p = r->g->inst;
	int32_t i = 0;
	t_value *v;

	while (p->tensor[i].operand != k)
		i++;
	v = filled(t, &p->tensor[i].type, 0);
	meet(t, v);
	return v;
}

/* Records the call again, on available values; its results replace those of c. */
static void make_again(tensors *t, const t_call *c)
{
	t_read arg[IR_MAX_OPERANDS];
	t_value *const *made;
	t_value *next;

	for (int32_t i = 0; i < c->n_args; i++) {
		arg[i] = c->arg[i];
		if (arg[i].v->again)
			arg[i].v = arg[i].v->remade;
	}
	t->no_grad += !c->tracked;
	if (c->entry != NULL) {
		made = t_record(t, c->entry, c->n_args, arg)->result;
	} else {
		next = t_record_write(t, arg[0], arg[1]);
		made = &next;
	}
	t->no_grad -= !c->tracked;
	for (int32_t i = 0; i < c->n_results; i++) {
		meet(t, made[i]);
		if (c->result[i] == NULL)
			continue;
		c->result[i]->remade = made[i];
		c->result[i]->remade_in = t->walk;
	}
	t->stats.n_again++;
}

/* The recomputed value for v, whose elements were not kept; once in each walk. */
static t_value *remade(tensors *t, t_value *v)
{
	t->stack.n = 0;
	*vec_push(t->a, &t->stack) = v;
	while (t->stack.n > 0) {
		const t_value *u = t->stack.at[t->stack.n - 1];
		int32_t n = t->stack.n;

		for (int32_t i = 0; i < u->call->n_args; i++) {
			t_value *w = u->call->arg[i].v;

			if (w->again && w->remade_in != t->walk)
				*vec_push(t->a, &t->stack) = w;
		}
		if (t->stack.n > n)
			continue;
		if (u->remade_in != t->walk)
			make_again(t, u->call);
		t->stack.n--;
	}
	return v->remade;
}

static t_read held(tensors *t, const t_read *r)
{
	return r->v->again ? (t_read){remade(t, r->v), r->view, false, 0} : *r;
}

/* Cotangents that the adjoint only passes on go to their operands as they are, as
 * those of x + y do; the others are still wanted. */
static uint64_t pass_on(
	tensors *t, const t_call *c, const t_rule *r, uint64_t wanted)
{
	for (int32_t k = 0; k < r->g->n_results; k++) {
		int32_t to = r->g->of_operand[k];
		int32_t from = ir_inst_passes(r->g->inst, k);
		t_value *g;

		if (from < 0 || r->g->operand[from].from != GRAD_SEED)
			continue;
		g = c->result[r->g->operand[from].i]->acc;
		g->is_shared = true;
		give(t, &c->arg[to], g);
		wanted &= ~((uint64_t)1 << to);
	}
	return wanted;
}

static void back_call(tensors *t, t_call *c)
{
	uint64_t wanted = 0, seeded = 0;
	const t_rule *r;
	t_read arg[IR_MAX_OPERANDS];
	t_call *made;

	for (int32_t i = 0; i < c->n_args && i < 64; i++)
		if (c->arg[i].v->tracked)
			wanted |= (uint64_t)1 << i;
	for (int32_t i = 0; i < c->n_results; i++)
		if (c->result[i] != NULL && c->result[i]->walk == t->walk &&
			c->result[i]->acc != NULL)
			seeded |= (uint64_t)1 << i;
	if (seeded == 0)
		return;
	r = t_rule_of(t, c->entry, wanted, seeded);
	if (r->g == NULL)
		return;
	wanted = pass_on(t, c, r, wanted);
	r = wanted == 0 ? NULL : t_rule_of(t, c->entry, wanted, seeded);
	if (r == NULL || r->g == NULL)
		return;
	for (int32_t k = 0; k < r->g->n_operands; k++) {
		const struct grad_operand *o = &r->g->operand[k];

		if (o->is_shape)
			arg[k] = (t_read){shape_of(t, r, k), NULL, false, 0};
		else if (o->from == GRAD_OPERAND)
			arg[k] = held(t, &c->arg[o->i]);
		else if (o->from == GRAD_SEED)
			arg[k] = (t_read){c->result[o->i]->acc, NULL, false, 0};
		else
			arg[k] = held(t, &(t_read){result_of(t, c, o->i),
						 NULL, false, 0});
	}
	made = t_record(t, r->entry, r->g->n_operands, arg);
	for (int32_t k = 0; k < r->g->n_results; k++)
		meet(t, made->result[k]);
	for (int32_t k = 0; k < r->g->n_results; k++)
		give(t, &c->arg[r->g->of_operand[k]], made->result[k]);
}

static void back_write(tensors *t, t_call *c)
{
	const t_read *to = &c->arg[0], *value = &c->arg[1];
	t_value *w = c->result[0], *g, *rest = NULL;

	if (w == NULL || w->walk != t->walk || w->acc == NULL)
		return;
	g = w->acc;
	if (to->view != NULL) {
		rest = zeroed(t, g, to->view);
		meet(t, rest);
	}
	if (c->no_grad) {
		t_value *here = filled(t, &g->type, 0), *at;

		meet(t, here);
		at = seen(t, g, to->view);
		meet(t, at);
		here = t_record_write(t, (t_read){here, to->view, false, 0},
			(t_read){at, NULL, false, 0});
		collect(t, &w->slot->acc, here);
	} else if (value->v->tracked) {
		give(t, value, seen(t, g, to->view));
	}
	if (rest != NULL && to->v->tracked)
		collect(t, &to->v->acc, rest);
}

/* ---- compiled functions ---- */

/* The operand whose next version is result r, or NULL. */
static const t_read *written(const t_call *c, int32_t r)
{
	for (int32_t i = 0; i < c->n_args; i++)
		if (c->trace->next[i] == r)
			return &c->arg[i];
	return NULL;
}

static bool has_cotangent(const tensors *t, const t_call *c, int32_t r)
{
	const t_value *v = c->result[r];

	return v != NULL && v->walk == t->walk && v->acc != NULL;
}

/* Operand k of the backward. */
static t_read back_operand(
	tensors *t, t_call *c, const t_back *b, int32_t k, const bool *seeded)
{
	int32_t r = b->from_seed[k] >= 0 ? b->from_seed[k] : b->from_out[k];
	const t_read *of;
	t_value *v;

	if (b->from_in[k] >= 0)
		return held(t, &c->arg[b->from_in[k]]);
	of = written(c, r);
	if (b->from_seed[k] < 0)
		return (t_read){result_of(t, c, r),
			of != NULL ? of->view : NULL, false, 0};
	v = seeded[r] ? seen(t, c->result[r]->acc,
				of != NULL ? of->view : NULL)
		      : filled(t, &c->trace->out[r]->type, 0);
	meet(t, v);
	return (t_read){v, NULL, false, 0};
}

/* Result k of the backward is g. */
static void back_result(
	tensors *t, t_call *c, const t_back *b, int32_t k, t_value *g)
{
	int32_t i = b->of_in[k], r = c->trace->next[i];
	t_value *w = r < 0 ? NULL : c->result[r];

	if (b->kind[k] == BACK_OPERAND) {
		give(t, &c->arg[i], g);
		return;
	}
	if (t->dropped == TENSOR_RULE_LEAF)
		return;
	if (b->kind[k] == BACK_OLD_LEAF || w == NULL) { /* only for the slot */
		w = t_value_new(t, &g->type);
		w->slot = c->slot[i];
		w->slot->refs++;
		meet(t, w);
	}
	meet(t, w);
	collect(t, &w->acc, through_views(t, c->arg[i].view, g));
}

/* Passes on the cotangent of elements that a write through a view kept. */
static void back_rest(tensors *t, t_call *c)
{
	for (int32_t i = 0; i < c->n_args; i++) {
		int32_t r = c->trace->next[i];
		t_value *rest;

		if (r < 0 || !has_cotangent(t, c, r) ||
			c->arg[i].view == NULL || !c->arg[i].v->tracked)
			continue;
		rest = zeroed(t, c->result[r]->acc, c->arg[i].view);
		meet(t, rest);
		meet(t, c->arg[i].v);
		collect(t, &c->arg[i].v->acc, rest);
	}
}

/* Fills t->seeded: results with a cotangent; if a middle has one, all results. */
static bool find_seeded(tensors *t, const t_call *c, bool ask)
{
	bool any = false, middle = false;

	t->seeded.n = 0;
	for (int32_t r = 0; r < c->trace->n_out; r++) {
		bool here = has_cotangent(t, c, r) &&
			t_is_made(c->trace->out[r]);

		*vec_push(t->a, &t->seeded) = here;
		any |= here;
		middle |= here && r >= c->trace->n_known;
	}
	/* then it reads what the one read that said what is kept */
	for (int32_t r = 0; ask && middle && r < c->trace->n_known; r++)
		t->seeded.at[r] = true;
	return any;
}

static void back_trace(tensors *t, t_call *c)
{
	t_trace *f = c->trace, *back = NULL;
	const t_back *b;
	t_call *made;
	bool any;

	any = find_seeded(t, c, true);
	b = any ? t->functions->back_of(t, f, t->seeded.at) : NULL;
	if (b != NULL && b->trace != NULL && t->no_grad == 0)
		back = t->functions->back_live(t, f, b);
	if (b != NULL && back == NULL)
		back = b->trace;
	(void)find_seeded(t, c, false); /* t->seeded was overwritten for functions inside */
	t->operand.n = 0;
	if (b != NULL && b->trace != NULL) {
		for (int32_t k = 0; k < b->trace->n_in; k++) {
			t_read r = back_operand(t, c, b, k, t->seeded.at);

			*vec_push(t->a, &t->operand) = r;
		}
		made = t_record_trace(t, back, t->operand.at);
		for (int32_t k = 0; k < b->trace->n_out; k++) {
			meet(t, made->result[k]);
			made->result[k]->is_shared = b->shared[k];
			made->result[k]->is_last =
				t->no_grad == 0 && back == b->trace;
		}
		for (int32_t k = 0; k < b->trace->n_out; k++)
			back_result(t, c, b, k, made->result[k]);
	}
	back_rest(t, c);
}

/* ---- the walk ---- */

static void end(tensors *t, bool keep);

static void start(tensors *t)
{
	t->walk = ++t->n_walks;
	t->path.n = t->met.n = 0;
}

static void walk(tensors *t)
{
	int64_t outside = t->walking;

	find_path(t);
	for (int32_t i = 0; i < t->path.n; i++) {
		t->walking = t->path.at[i]->id;
		if (t->path.at[i]->trace != NULL)
			back_trace(t, t->path.at[i]);
		else if (t->path.at[i]->entry != NULL)
			back_call(t, t->path.at[i]);
		else
			back_write(t, t->path.at[i]);
	}
	t->walking = outside;
}

/* Takes the cotangents of leaves of the body out of their slots. */
static void find_leaves(
	tensors *t, const t_trace *f, t_value **leaf, t_value **old)
{
	int32_t n = t->met.n;

	for (int32_t k = 0; k < n; k++)
		for (int32_t i = 0; i < f->n_in; i++) {
			t_value *v = t->met.at[k];
			bool newest = f->next[i] >= 0 &&
				f->out[f->next[i]] == v;

			if (v->slot == NULL || v->slot != f->slot[i] ||
				v == f->in[i])
				continue;
			if (v->acc != NULL && !v->is_part)
				collect(t, newest ? &leaf[i] : &old[i], v->acc);
			if (v->slot->acc != NULL)
				collect(t, &old[i], v->slot->acc);
			v->slot->acc = NULL;
		}
	for (int32_t i = 0; i < f->n_in; i++) {
		if (leaf[i] != NULL)
			t_value_keep(leaf[i]);
		if (old[i] != NULL)
			t_value_keep(old[i]);
	}
}

void t_walk_trace(tensors *t, const t_trace *f, t_value *const *seed,
	t_value **grad, t_value **leaf, t_value **old)
{
	start(t);
	for (int32_t i = 0; i < f->n_out; i++) {
		if (seed[i] == NULL)
			continue;
		visit(t, f->out[i]);
		meet(t, seed[i]);
		seed[i]->is_shared = true;
		collect(t, &f->out[i]->acc, seed[i]);
	}
	walk(t);
	for (int32_t i = 0; i < f->n_in; i++) {
		if (f->in[i]->walk != t->walk || f->in[i]->acc == NULL)
			continue;
		grad[i] = f->in[i]->acc;
		t_value_keep(grad[i]);
	}
	find_leaves(t, f, leaf, old);
	end(t, true);
}

/* Frees a call, which cannot be differentiated again. */
static void free_call(tensors *t, t_call *c)
{
	for (int32_t i = 0; i < c->n_results; i++) {
		t_value *v = c->result[i];

		if (v == NULL)
			continue;
		/* state that is written without a gradient is not freed */
		if (t_has_history(v)) {
			v->tracked = false;
			v->is_freed = true;
		}
		if (v->holds_self)
			t_self_release(t, v);
	}
	c->tracked = false;
	if (c->done && !c->again) /* others may need its results */
		t_finish(t, c);
}

static void end(tensors *t, bool keep)
{
	for (int32_t i = 0; i < t->path.n; i++) {
		t_call *c = t->path.at[i];

		if (!keep)
			free_call(t, c);
		t_call_drop(t, c);
	}
	for (int32_t i = 0; i < t->met.n; i++) {
		t_value *v = t->met.at[i];

		v->acc = NULL;
		t_value_drop(t, v);
	}
	t->path.n = t->met.n = 0;
}

static t_value *seed_of(tensors *t, tensor *x, tensor *seed)
{
	loc at = t_here(t);
	t_value *g;

	if (!dtype_is_float(x->type.dtype))
		env_fail(t->e, TN_EINVAL, "grad.dtype", at,
			"%s has no gradient: only f32, f64, f16 and bf16 "
			"tensors have one",
			dtype_name(x->type.dtype));
	if (seed == NULL) {
		if (shape_numel(x->type.shape, x->type.rank) != 1)
			env_fail(t->e, TN_EINVAL, "grad.seed", at,
				"the tensor has more than one element, so "
				"tn_backward needs a seed: a tensor of the "
				"same shape");
		g = filled(t, &x->type, 1);
	} else {
		t_check(t, seed);
		if (seed->type.dtype != x->type.dtype ||
			seed->type.rank != x->type.rank ||
			memcmp(seed->type.shape, x->type.shape,
				sizeof x->type.shape) != 0)
			env_fail(t->e, TN_EINVAL, "grad.seed", at,
				"the seed must have the shape and the dtype of "
				"the tensor whose gradient is taken");
		g = seen(t, t_cur(t, seed->storage), seed->view);
	}
	meet(t, g);
	g->is_shared = seed != NULL;
	return g;
}

static void check_tracked(tensors *t, const tensor *x)
{
	const t_value *v = t_cur(t, x->storage);

	if (v->is_freed)
		freed(t);
	if (v->is_last && !v->tracked)
		no_second(t);
	if (!v->tracked)
		env_fail(t->e, TN_EINVAL, "grad.untracked",
			t_here(t),
			"no tensor that it was made from requires a gradient: "
			"use tn_requires_grad or tn_parameter");
}

static void begin_at(tensors *t, tensor *x, tensor *seed)
{
	t_read r = {t_cur(t, x->storage), x->view, false, 0};
	t_value *g = seed_of(t, x, seed);

	visit(t, r.v);
	give(t, &r, g);
}

/* Adds the cotangents of leaves to their gradients. */
static void fill_slots(tensors *t)
{
	for (int32_t i = 0; i < t->met.n; i++) {
		t_value *v = t->met.at[i];
		t_slot *s = v->slot;

		if (s == NULL)
			continue;
		if (v->acc != NULL && !v->is_part)
			collect(t, &s->acc, v->acc);
		if (s->acc == NULL)
			continue;
		t_slot_add(t, s, own(t, s->acc));
		s->acc = NULL;
	}
}

/* A walk and its arguments. */
typedef struct job {
	tensors *t;
	int32_t n, m;
	tensor *const *out, *const *seed, *const *in;
	tensor **grad;
	bool keep;
} job;

static void run_walk(void *arg)
{
	job *j = arg;
	tensors *t = j->t;

	for (int32_t i = 0; i < j->n; i++)
		begin_at(t, j->out[i], j->seed != NULL ? j->seed[i] : NULL);
	walk(t);
	if (j->grad == NULL)
		fill_slots(t);
	for (int32_t i = 0; i < j->m; i++) {
		const tensor *x = j->in[i];
		t_value *v = t_cur(t, x->storage), *g;

		g = v->walk == t->walk && v->acc != NULL
			? own(t, seen(t, v->acc, x->view))
			: filled(t, &x->type, 0);
		t_value_keep(g);
		j->grad[i] = t_handle_new(
			t, t_storage_new(t, g), NULL, &x->type);
	}
}

/* Ends the walk also after an error. */
static void do_walk(job *j)
{
	tensors *t = j->t;
	int32_t no_grad = t->no_grad;
	tn_status s;

	for (int32_t i = 0; i < j->n; i++) {
		t_check(t, j->out[i]);
		check_tracked(t, j->out[i]);
	}
	for (int32_t i = 0; i < j->m; i++)
		t_check(t, j->in[i]);
	start(t);
	if (j->grad == NULL)
		t->no_grad++;
	s = env_run(t->e, run_walk, j);
	t->walking = 0;
	t->no_grad = no_grad;
	for (int32_t i = 0; i < t->met.n; i++)
		if (t->met.at[i]->slot != NULL)
			t->met.at[i]->slot->acc = NULL;
	end(t, j->keep || s < 0);
	if (s < 0)
		env_rethrow(t->e);
}

void tensor_backward(tensors *t, tensor *x, tensor *seed, bool keep)
{
	job j = {.t = t,
		.n = 1,
		.out = &x,
		.seed = seed != NULL ? &seed : NULL,
		.keep = keep};

	do_walk(&j);
}

void tensor_gradients(tensors *t, int32_t n, tensor *const *out,
	tensor *const *seed, int32_t m, tensor *const *in, tensor **grad)
{
	job j = {t, n, m, out, seed, in, grad, true};

	do_walk(&j);
}

/* ---- slots ---- */

void t_slot_add(tensors *t, t_slot *s, t_value *g)
{
	if (s->grad != NULL) {
		g = sum_of(t, s->grad, g);
		g->adds_to = 1;
	}
	t_value_keep(g);
	if (s->grad != NULL)
		t_value_drop(t, s->grad);
	s->grad = g;
}
