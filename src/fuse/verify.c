/*
 * verify.c: checks a plan against the equations, independently of the code that
 * made it.
 *
 *   1  every equation has one STMT and, if it reduces, one INIT before it
 *   2  the loops around a STMT walk every axis of its equation once
 *   3  a reader is after its producer, outside the producer's reductions
 *   4  along each loop around both, the element read is the one computed in the
 *      same iteration: decided on addresses over the loop variables
 *   5  the scope of a private tensor contains all statements that use it
 *   6  kernels are in topological order, with writes; those of a batch are
 *      neighbours and independent
 */
#include "fuse/inner.h"

typedef struct spot {
	int32_t at; /* in the order of execution, or -1 */
	int32_t n;
	const fuse_node **path;
} spot;

typedef struct checker {
	fuse_plan *p;
	arena *a;
	env *env;
	fuse_kernel *k;
	spot *init, *stmt;
	int32_t clock;
	const fuse_node *path[FUSE_MAX_NEST * 4];
} checker;

static void walk(checker *w, const fuse_node *n, int32_t depth)
{
	spot *s;

	if (n->kind == FUSE_LOOP) {
		if (depth >= FUSE_MAX_NEST * 4 || n->var < 0 ||
			n->var >= w->k->n_vars)
			env_bug(w->env, "fuse.verify", 
				"%s: a loop of v%d at depth %d; at most %d "
				"loops of v0 to v%d are possible", w->k->name,
				n->var, depth, FUSE_MAX_NEST * 4,
				w->k->n_vars - 1);
		for (int32_t i = 0; i < depth; i++)
			if (w->path[i]->var == n->var)
				env_bug(w->env, "fuse.verify",
					"%s: two nested loops walk v%d", w->k->name,
					n->var);
		w->path[depth] = n;
		for (int32_t i = 0; i < n->n_child; i++)
			walk(w, n->child[i], depth + 1);
		return;
	}
	if (n->eqn < 0 || n->eqn >= w->k->n_eqns)
		env_bug(w->env, "fuse.verify", 
			"%s: a statement of equation %d; there are %d",
			w->k->name, n->eqn, w->k->n_eqns);
	s = n->kind == FUSE_INIT ? &w->init[n->eqn] : &w->stmt[n->eqn];
	if (s->at >= 0)
		env_bug(w->env, "fuse.verify", "%s: the tree contains %s twice",
			w->k->name, w->k->eqn[n->eqn].e.label);
	*s = (spot){.at = w->clock++,
		.n = depth,
		.path = arena_copy(
			w->a, w->path, (size_t)depth * sizeof *w->path)};
}

static bool walks(const spot *s, int32_t var)
{
	for (int32_t i = 0; i < s->n; i++)
		if (s->path[i]->var == var)
			return true;
	return false;
}

static void check_axes(checker *w, int32_t i)
{
	const fuse_eqn *e = &w->k->eqn[i];
	const spot *s = &w->stmt[i], *t = &w->init[i];

	if (s->at < 0 || (e->e.monoid != IR_SET) != (t->at >= 0) ||
		(t->at >= 0 && t->at > s->at))
		env_bug(w->env, "fuse.verify", 
			"%s: the tree lacks %s, or its INIT before it",
			w->k->name, e->e.label);
	for (int32_t a = 0; a < e->e.n_axes; a++) {
		const ix_form *f = e->axis_at[a];
		int64_t walked = 1;

		for (int32_t k = 0; k < f->n; k++) {
			int32_t v = f->t[k].atom->axis;

			walked *= w->k->var[v].extent;
			if (!walks(s, v))
				env_bug(w->env, "fuse.verify",
					"%s: %s is outside the loop of v%d",
					w->k->name, e->e.label, v);
		}
		if (walked != e->e.axis[a].extent)
			env_bug(w->env, "fuse.verify",
				"%s: the loops around %s make %lld iterations "
				"over its axis %d of extent %lld",
				w->k->name, e->e.label, (long long)walked, a,
				(long long)e->e.axis[a].extent);
	}
	for (int32_t k = 0; t->at >= 0 && k < e->out_at->n; k++)
		if (!walks(t, e->out_at->t[k].atom->axis))
			env_bug(w->env, "fuse.verify",
				"%s: INIT of %s is outside a loop of its result", w->k->name,
				e->e.label);
}

static int32_t maker_in(const fuse_kernel *k, int32_t tensor)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t c = 0; c < k->eqn[i].e.n_out; c++)
			if (k->eqn[i].e.out[c] == tensor)
				return i;
	return -1;
}

static int32_t common(const spot *a, const spot *b)
{
	int32_t i = 0;

	while (i < a->n && i < b->n && a->path[i] == b->path[i])
		i++;
	return i;
}

/* Element `at` over the axes of equation c, over the vars. */
static const ix_form *over_vars(checker *w, int32_t c, const eqn_read *r)
{
	const fuse_eqn *e = &w->k->eqn[c];
	ix_dom d = {.box = {.n = w->k->n_vars, .extent = w->k->var_extent}};

	if (r->in_init && e->e.push != NULL) {
		const ix_form *flat[1] = {e->out_at};

		return ix_subst(
			w->p->s->x, &d, r->at, 1, r->dom.box.extent, flat);
	}
	return ix_subst(w->p->s->x, &d, r->at, r->dom.box.n, r->dom.box.extent,
		e->axis_at);
}

/* The guards of a read, over the vars. */
static ix_dom facts_over(checker *w, int32_t c, const eqn_read *r)
{
	const fuse_eqn *e = &w->k->eqn[c];
	ix_dom d = {.box = {.n = w->k->n_vars, .extent = w->k->var_extent}};
	ix_fact *fact = arena_array(w->a, ix_fact, r->dom.n_facts + 1);
	const ix_form *flat[1] = {e->out_at};
	bool push = r->in_init && e->e.push != NULL;

	for (int32_t i = 0; i < r->dom.n_facts; i++) {
		fact[i] = r->dom.facts[i];
		fact[i].f = ix_subst(w->p->s->x, &d, fact[i].f, r->dom.box.n,
			r->dom.box.extent, push ? flat : e->axis_at);
	}
	d.n_facts = r->dom.n_facts;
	d.facts = fact;
	return d;
}

/* The digit of an axis of equation c that variable v walks, or NULL. */
static const ix_form *digit_of(
	checker *w, const fuse_eqn *e, const ix_dom *d, int32_t v)
{
	ix *x = w->p->s->x;

	for (int32_t a = 0; a < d->box.n; a++) {
		const ix_form *f = e->axis_at[a];

		for (int32_t k = 0; k < f->n; k++)
			if (f->t[k].atom->axis == v && f->t[k].coef > 0)
				return ix_mod(x, d,
					ix_div(x, d, ix_axis(x, d, a),
						f->t[k].coef),
					w->k->var[v].extent);
	}
	return NULL;
}

/*
 * The same query over the axes of the reader, where guards are simpler: over the
 * vars, an axis that several vars walk hides what a guard says of it.
 */
static bool agree_on_axes(
	checker *w, int32_t c, const eqn_read *r, int64_t coef, int32_t v)
{
	const fuse_eqn *e = &w->k->eqn[c];
	ix_dom d = {.box = {.n = w->k->n_vars, .extent = w->k->var_extent}};
	ix *x = w->p->s->x;
	const ix_form *q, *own;

	if (r->in_init && e->e.push != NULL)
		return false;
	own = digit_of(w, e, &r->dom, v);
	if (own == NULL ||
		ix_equal(x, &d,
			ix_subst(x, &d, own, r->dom.box.n, r->dom.box.extent,
				e->axis_at),
			ix_axis(x, &d, v)) != IX_EQUAL)
		return false;
	q = ix_mod(x, &r->dom, ix_div(x, &r->dom, r->at, coef),
		w->k->var[v].extent);
	return ix_equal(x, &r->dom, q, own) == IX_EQUAL;
}

/*
 * Checks that in every loop around both, p computes (is_write: overwrites) the
 * element that c reads in the same iteration.
 */
static void check_edge(
	checker *w, int32_t p, int32_t c, const eqn_read *r, bool is_write)
{
	const fuse_eqn *e = &w->k->eqn[p];
	const spot *ps = &w->stmt[p];
	const spot *cs = r->in_init ? &w->init[c] : &w->stmt[c];
	const spot *pi = w->init[p].at >= 0 ? &w->init[p] : ps;
	const spot *from = is_write ? pi : ps;
	bool self = p == c;
	int32_t n = common(from, cs);
	const ix_form *at = over_vars(w, c, r);
	ix_dom d = facts_over(w, c, r);
	ix *x = w->p->s->x;

	if (!self && (is_write ? cs->at > from->at : from->at > cs->at))
		env_bug(w->env, "fuse.verify",
			is_write ? "%s: %s reads what %s overwrites before"
				 : "%s: %s reads what %s makes later",
			w->k->name, w->k->eqn[c].e.label, e->e.label);
	for (int32_t i = 0; i < n; i++) {
		int32_t v = from->path[i]->var;
		const ix_form *q = NULL;
		int64_t coef = 0;

		if (self && e->e.scan_step != 0 &&
			ix_uses_axis(e->axis_at[e->e.scan_axis], v))
			continue;
		for (int32_t k = 0; k < e->out_at->n; k++)
			if (e->out_at->t[k].atom->axis == v)
				coef = e->out_at->t[k].coef;
		if (coef > 0)
			q = ix_mod(x, &d, ix_div(x, &d, at, coef),
				w->k->var[v].extent);
		if (q != NULL &&
			(ix_equal(x, &d, q, ix_axis(x, &d, v)) == IX_EQUAL ||
				agree_on_axes(w, c, r, coef, v)))
			continue;
		env_bug(w->env, "fuse.verify",
			"%s: %s reads an element that %s makes in another iteration of "
			"v%d",
			w->k->name, w->k->eqn[c].e.label, e->e.label, v);
	}
}

/* The equation of the kernel that computes tensor t. */
static const fuse_eqn *maker_of(const checker *w, int32_t t)
{
	for (int32_t i = 0; i < w->p->kernel.n; i++) {
		const fuse_kernel *k = w->p->kernel.at[i];
		int32_t e = maker_in(k, t);

		if (e >= 0)
			return &k->eqn[e];
	}
	return NULL;
}

/* Does the equation that computes t not change what r, a read of its storage,
 * reads? */
static bool is_elsewhere(const checker *w, int32_t t, const eqn_read *r)
{
	const fuse_eqn *e = maker_of(w, t);
	eqn_writes q;

	return e != NULL && eqn_find_writes(w->a, w->p->s, &e->e, &q) &&
		eqn_disjoint(w->p->s, &q, r);
}

static void check_edges(checker *w, eqn_graph *g)
{
	fuse_kernel *k = w->k;

	for (int32_t c = 0; c < k->n_eqns; c++) {
		const eqn_unit *u = eqn_unit_new(g, &k->eqn[c].e, c);

		for (int32_t i = 0; i < u->n_reads; i++) {
			const eqn_read *r = &u->read[i];
			int32_t p = maker_in(k, r->tensor);
			int32_t s = w->p->s->tensor.at[r->tensor].storage;

			if (p >= 0)
				check_edge(w, p, c, r, false);
			if (s < 0)
				continue;
			for (int32_t t = r->tensor + 1; t < w->p->s->tensor.n;
				t++) {
				int32_t q = maker_in(k, t);

				if (w->p->s->tensor.at[t].storage == s &&
					q >= 0 && q != c &&
					!is_elsewhere(w, t, r))
					check_edge(w, q, c, r, true);
			}
		}
	}
}

static void check_buffers(checker *w)
{
	const fuse_kernel *k = w->k;

	for (int32_t i = 0; i < k->n_bufs; i++) {
		const fuse_buf *b = &k->buf[i];
		int32_t p = maker_in(k, b->tensor);
		const fuse_eqn *e = p < 0 ? NULL : &k->eqn[p];
		bool found = b->scope == NULL;
		int64_t elems = 1;

		if (e == NULL)
			env_bug(w->env, "fuse.verify", 
				"%s: no equation makes buffer %s", k->name,
				w->p->s->tensor.at[b->tensor].name);
		for (int32_t j = 0; j < w->stmt[p].n; j++)
			found |= w->stmt[p].path[j] == b->scope;
		for (int32_t j = 0; j < b->n_vars; j++)
			elems *= k->var[b->var[j]].extent;
		if (!found || elems != b->elems)
			env_bug(w->env, "fuse.verify", "%s: the buffer of %s has a wrong scope or size",
				k->name, w->p->s->tensor.at[b->tensor].name);
		if (b->scope != NULL && e->e.scan_step != 0 &&
			ix_uses_axis(e->axis_at[e->e.scan_axis], b->scope->var))
			env_bug(w->env, "fuse.verify",
				"%s: the state of the scan %s is lost in its loop", k->name,
				e->e.label);
	}
}

static void check_kernel(checker *w)
{
	fuse_kernel *k = w->k;
	int64_t volume = 0;

	w->clock = 0;
	w->init = arena_array(w->a, spot, k->n_eqns);
	w->stmt = arena_array(w->a, spot, k->n_eqns);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		int64_t v = 1;

		for (int32_t a = 0; a < k->eqn[i].e.n_axes; a++)
			v *= k->eqn[i].e.axis[a].extent;
		volume += k->has_tail && !k->eqn[i].tail ? 0 : v;
		w->init[i].at = w->stmt[i].at = -1;
	}
	if (k->opaque)
		return;
	if (k->n_eqns > 1 && (k->n_shared == 0 || k->has_tail) &&
		volume > w->p->machine->fusion.serial_volume)
		env_bug(w->env, "fuse.verify",
			"%s: its equations share no loop, for %lld elements", k->name,
			(long long)volume);
	for (int32_t i = 0; i < k->n_roots; i++)
		walk(w, k->root[i], 0);
	for (int32_t i = 0; i < k->n_eqns; i++)
		check_axes(w, i);
	check_edges(w, eqn_graph_new(w->a, w->p->s));
	check_buffers(w);
}

/* ---- between kernels ---- */

static bool has(int32_t n, const int32_t *at, int32_t v)
{
	for (int32_t i = 0; i < n; i++)
		if (at[i] == v)
			return true;
	return false;
}

/* Does kernel b read what a computes, or overwrite what a uses? */
static bool needs(checker *w, const fuse_kernel *a, const fuse_kernel *b)
{
	const ir_system *s = w->p->s;

	for (int32_t i = 0; i < b->n_inputs; i++)
		if (has(a->n_outputs, a->output, b->input[i]))
			return true;
	for (int32_t i = 0; i < b->n_outputs; i++) {
		int32_t storage = s->tensor.at[b->output[i]].storage;

		for (int32_t k = 0; storage >= 0 && k < a->n_inputs; k++)
			if (s->tensor.at[a->input[k]].storage == storage)
				return true;
		for (int32_t k = 0; storage >= 0 && k < a->n_outputs; k++)
			if (s->tensor.at[a->output[k]].storage == storage)
				return true;
	}
	return false;
}

/* Checks that the kernels of a batch are neighbours and independent. */
static void check_batches(checker *w)
{
	const fuse_plan *p = w->p;

	for (int32_t i = 0; i < p->kernel.n; i++) {
		const fuse_kernel *a = p->kernel.at[i];
		bool apart = false;

		for (int32_t k = i + 1; a->batch >= 0 && k < p->kernel.n; k++) {
			const fuse_kernel *b = p->kernel.at[k];

			if (b->batch != a->batch) {
				apart = true;
				continue;
			}
			if (apart || needs(w, a, b) || needs(w, b, a))
				env_bug(w->env, "fuse.verify",
					"%s and %s are one batch, but %s",
					a->name, b->name,
					apart ? "other kernels run between them"
					      : "one needs the other");
		}
	}
}

/* Checks that kernel i reads nothing that an earlier kernel has overwritten. */
static void check_reads(checker *w, const int32_t *made, int32_t i)
{
	const ir_system *s = w->p->s;
	const fuse_kernel *k = w->p->kernel.at[i];
	eqn_graph *g;
	bool any = false;

	for (int32_t j = 0; j < k->n_inputs; j++)
		any |= s->tensor.at[k->input[j]].storage >= 0;
	if (!any)
		return;
	g = eqn_graph_new(w->a, w->p->s);
	for (int32_t e = 0; e < k->n_eqns; e++) {
		const eqn_unit *u = eqn_unit_new(g, &k->eqn[e].e, e);

		for (int32_t j = 0; j < u->n_reads; j++) {
			const eqn_read *r = &u->read[j];
			int32_t storage = s->tensor.at[r->tensor].storage;

			for (int32_t t = r->tensor + 1;
				storage >= 0 && t < s->tensor.n; t++)
				if (s->tensor.at[t].storage == storage &&
					s->tensor.at[t].eqn >= 0 &&
					made[t] < i && !is_elsewhere(w, t, r))
					env_bug(w->env, "fuse.verify",
						"%s reads %s after it is "
						"overwritten",
						k->name,
						s->tensor.at[r->tensor].name);
		}
	}
}

static void check_order(checker *w)
{
	fuse_plan *p = w->p;
	int32_t *made = arena_array(w->a, int32_t, p->s->tensor.n + 1);

	for (int32_t t = 0; t < p->s->tensor.n; t++)
		made[t] = p->s->tensor.at[t].eqn < 0 ? -1 : INT32_MAX;
	for (int32_t i = 0; i < p->kernel.n; i++) {
		const fuse_kernel *k = p->kernel.at[i];

		for (int32_t j = 0; j < k->n_inputs; j++) {
			const sys_tensor *t = &p->s->tensor.at[k->input[j]];

			if (made[k->input[j]] >= i)
				env_bug(w->env, "fuse.verify",
					"%s reads %s before it is made",
					k->name, t->name);
		}
		check_reads(w, made, i);
		for (int32_t e = 0; e < k->n_eqns; e++)
			for (int32_t c = 0; c < k->eqn[e].e.n_out; c++) {
				if (made[k->eqn[e].e.out[c]] != INT32_MAX)
					env_bug(w->env, "fuse.verify",
						"two kernels make %s",
						p->s->tensor
							.at[k->eqn[e].e.out[c]]
							.name);
				made[k->eqn[e].e.out[c]] = i;
			}
	}
	for (int32_t i = 0; i < p->s->output.n; i++) {
		int32_t t = p->s->output.at[i];

		if (p->alias[t] >= 0)
			t = p->alias[t];
		if (made[t] == INT32_MAX)
			env_bug(w->env, "fuse.verify", "no kernel makes the output %s",
				p->s->tensor.at[t].name);
	}
}

void fuse_verify(fuse_plan *p)
{
	arena *a = arena_child(p->s->a);
	checker *w = arena_make(a, checker);

	w->a = a;
	w->env = arena_env(a);
	w->p = p;
	for (int32_t i = 0; i < p->kernel.n; i++) {
		w->k = p->kernel.at[i];
		check_kernel(w);
	}
	check_order(w);
	check_batches(w);
	arena_free(a);
}
