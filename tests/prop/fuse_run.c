/*
 * fuse_run.c: what a system means, and what a plan does.
 *
 * The tree interpreter knows nothing of why a plan is right. A cell remembers
 * which tensor it holds; reading a cell that holds another one, or none, is an
 * error, and so is a private element outside its buffer.
 */
#include "fuse_prop.h"
#include "fuse_index.h"

/* ---- values ---- */

typedef struct walker walker;
typedef int64_t load_fn(
	walker *m, int32_t tensor, int64_t at, const ix_form *form);

struct walker {
	arena *a;
	env *env;
	ir_system *s;
	load_fn *load;
	const int64_t *point;
	const int64_t *param;
	/* naive */
	int64_t **data;
	/* trees */
	fuse_plan *p;
	const prop_data *want;
	int32_t n_known;	/* tensors of want */
	const eqn_writes **window; /* by equation: what it leaves as it is */
	const fuse_kernel *k;
	prop_random *r;
	struct cell **memory; /* by tensor; one for all tensors of a storage */
	struct cell **buffer; /* by number of the kernel's buffer */
	const expr **body,
		**init; /* by equation and component, over the vars */
	const ix_form **push;
	int64_t *vars;
	map *slot; /* (buffer, form) -> form of the subscript */
	VEC(const ix_form *) slots;
};

typedef struct cell {
	int32_t tensor; /* -1: nothing */
	int64_t at, value;
} cell;

static _Noreturn void wrong(walker *m, const char *what, int32_t tensor)
{
	env_fail(m->env, TN_EINVAL, "prop.run", (loc){0}, "%s: %s in %s", what,
		m->s->tensor.at[tensor].name,
		m->k == NULL ? "the system" : m->k->name);
}

static int64_t fun_value(void *arg, int64_t fun, int64_t at)
{
	walker *m = arg;

	return m->load(m, (int32_t)fun, at, NULL);
}

static int64_t index_of(walker *m, const ix_form *f)
{
	return ix_eval(f, m->point, fun_value, m);
}

static int64_t value(walker *m, const expr *e)
{
	int64_t v[IR_MAX_ARGS] = {0}, i;

	switch (e->kind) {
	case EX_CONST:
		return e->c.i;
	case EX_INDEX:
		return index_of(m, e->form);
	case EX_READ:
		return m->load(m, e->tensor, index_of(m, e->form), e->form);
	case EX_CALL:
		for (int32_t k = 0; k < e->n_args; k++)
			v[k] = value(m, e->arg[k]);
		return ir_scalar_at(e->fn)->i(v[0], v[1], v[2]);
	case EX_SELECT:
		return value(m, e->arg[value(m, e->arg[0]) != 0 ? 1 : 2]);
	case EX_INSIDE:
		i = index_of(m, e->form);
		return i >= e->lo && i < e->hi;
	case EX_CAST:
		return value(m, e->arg[0]);
	case EX_PARAM:
		return m->param[e->c.i];
	}
	return 0;
}

/* so far (+) next, all components */
static void merge(
	walker *m, const sys_eqn *e, int64_t *so_far, const int64_t *next)
{
	int64_t param[2 * IR_MAX_COMP], r[IR_MAX_COMP];
	tn_dtype acc[IR_MAX_COMP];

	for (int32_t k = 0; k < IR_MAX_COMP; k++)
		acc[k] = TN_I64;
	for (int32_t k = 0; k < e->n_out; k++) {
		param[k] = so_far[k];
		param[IR_MAX_COMP + k] = next[k];
	}
	m->param = param;
	for (int32_t k = 0; k < e->n_out; k++)
		r[k] = value(m, ir_combine(m->s, e->monoid, k, acc));
	memcpy(so_far, r, (size_t)e->n_out * sizeof *r);
}

static int64_t identity(walker *m, const sys_eqn *e, int32_t k)
{
	return ir_identity(m->s, e->monoid, k, TN_I64)->c.i;
}

/* ---- naive ---- */

int64_t prop_input(int32_t t, int64_t i, const sys_tensor *st)
{
	uint64_t z = ((uint64_t)t << 32) + (uint64_t)i * 2654435761u + 77;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z ^= z >> 29;
	if (st->name[0] == 'i')
		return (int64_t)(z % 4);
	return (int64_t)(z % 19) - 9;
}

static int64_t load_naive(walker *m, int32_t t, int64_t at, const ix_form *form)
{
	(void)form;
	if (at < 0 || at >= m->s->tensor.at[t].numel)
		wrong(m, "outside", t);
	return m->data[t][at];
}

/* next point of a box, last axis fastest; false at the end */
static bool step(int32_t n, const sys_axis *axis, int64_t *point)
{
	for (int32_t i = n - 1; i >= 0; i--) {
		if (++point[i] < axis[i].extent)
			return true;
		point[i] = 0;
	}
	return false;
}

static int64_t number_of(const sys_eqn *e, const int64_t *point)
{
	int64_t n = 0;

	for (int32_t i = 0; i < e->n_left; i++)
		n = n * e->axis[i].extent + point[i];
	return n;
}

static void naive_init(walker *m, const sys_eqn *e)
{
	int64_t numel = m->s->tensor.at[e->out[0]].numel;
	int64_t point[IR_MAX_AXES] = {0};

	m->point = point;
	for (int64_t i = 0; i < numel; i++) {
		int64_t n = i;

		if (e->push != NULL) {
			point[0] = i;
		} else {
			for (int32_t k = e->n_left - 1; k >= 0; k--) {
				point[k] = n % e->axis[k].extent;
				n /= e->axis[k].extent;
			}
		}
		for (int32_t k = 0; k < e->n_out; k++)
			m->data[e->out[k]][i] = e->init[k] != NULL
							? value(m, e->init[k])
							: identity(m, e, k);
	}
	m->point = NULL;
}

static void naive_at(walker *m, const sys_eqn *e, int64_t *point)
{
	int64_t now[IR_MAX_COMP], next[IR_MAX_COMP], at;

	m->point = point;
	for (int32_t k = 0; k < e->n_out; k++)
		next[k] = value(m, e->body[k]);
	at = e->push != NULL ? index_of(m, e->push) : number_of(e, point);
	if (e->monoid == IR_SET) {
		m->data[e->out[0]][at] = next[0];
		return;
	}
	for (int32_t k = 0; k < e->n_out; k++)
		now[k] = m->data[e->out[k]][at];
	merge(m, e, now, next);
	for (int32_t k = 0; k < e->n_out; k++)
		m->data[e->out[k]][at] = now[k];
}

static void naive_eqn(walker *m, const sys_eqn *e)
{
	int64_t point[IR_MAX_AXES] = {0}, turned[IR_MAX_AXES];

	if (e->monoid != IR_SET)
		naive_init(m, e);
	do {
		memcpy(turned, point, sizeof point);
		if (e->scan_step < 0) {
			int64_t n = e->axis[e->scan_axis].extent;

			turned[e->scan_axis] = n - 1 - point[e->scan_axis];
		}
		naive_at(m, e, turned);
	} while (step(e->n_axes, e->axis, point));
}

prop_data prop_naive(arena *a, ir_system *s)
{
	walker m = {.a = a, .env = arena_env(a), .s = s, .load = load_naive};

	m.data = arena_array(a, int64_t *, s->tensor.n + 1);
	for (int32_t t = 0; t < s->tensor.n; t++) {
		const sys_tensor *st = &s->tensor.at[t];

		m.data[t] = arena_array(a, int64_t, st->numel + 1);
		for (int64_t i = 0; st->eqn < 0 && i < st->numel; i++)
			m.data[t][i] = prop_input(t, i, st);
	}
	for (int32_t i = 0; i < s->eqn.n; i++)
		naive_eqn(&m, &s->eqn.at[i]);
	return (prop_data){.at = m.data};
}

/* ---- trees ---- */

static int32_t buffer_of(const fuse_kernel *k, int32_t tensor)
{
	for (int32_t i = 0; i < k->n_bufs; i++)
		if (k->buf[i].tensor == tensor)
			return i;
	return -1;
}

static const ix_form *slot_form(walker *m, int32_t b, const ix_form *at)
{
	int32_t key[2] = {b, at->id};
	int64_t found = map_get(m->slot, key, sizeof key, -1);

	if (found >= 0)
		return m->slots.at[found];
	map_set(m->slot, key, sizeof key, m->slots.n);
	*vec_push(m->a, &m->slots) = fuse_buf_index(
		m->p, m->k, &m->k->buf[b], at);
	return m->slots.at[m->slots.n - 1];
}

/* The place of element `at` (at the current point: form's value). */
static cell *place(walker *m, int32_t t, int64_t at, const ix_form *form)
{
	int32_t b = buffer_of(m->k, t);
	int64_t i;

	if (at < 0 || at >= m->s->tensor.at[t].numel)
		wrong(m, "outside", t);
	if (b < 0)
		return &m->memory[t][at];
	if (form == NULL) { /* inside an index: by the digits of its number */
		form = ix_const(m->s->x, at);
		i = index_of(m, slot_form(m, b, form));
	} else {
		i = index_of(m, slot_form(m, b, form));
	}
	if (i < 0 || i >= m->k->buf[b].elems)
		wrong(m, "outside its buffer", t);
	return &m->buffer[b][i];
}

static int64_t load_tree(walker *m, int32_t t, int64_t at, const ix_form *form)
{
	const cell *c = place(m, t, at, form);
	const ir_system *s = m->s;

	if (c->tensor < 0 || c->at != at ||
		(c->tensor != t &&
			(s->tensor.at[t].storage < 0 ||
				s->tensor.at[t].storage !=
					s->tensor.at[c->tensor].storage)))
		wrong(m, "read of what is not there", t);
	/* another version, but the same element: a write elsewhere left it */
	if (c->tensor != t && t < m->n_known &&
		c->value != m->want->at[t][at])
		wrong(m, "read of another version", t);
	return c->value;
}

static void store(
	walker *m, int32_t t, int64_t at, const ix_form *form, int64_t v)
{
	*place(m, t, at, form) = (cell){.tensor = t, .at = at, .value = v};
}

static void do_init(walker *m, int32_t i)
{
	const fuse_eqn *e = &m->k->eqn[i];

	m->point = m->vars;
	for (int32_t k = 0; k < e->e.n_out; k++) {
		const expr *x = m->init[i * IR_MAX_COMP + k];
		int64_t v = x != NULL ? value(m, x) : identity(m, &e->e, k);

		m->point = m->vars;
		store(m, e->e.out[k], index_of(m, e->out_at), e->out_at, v);
	}
}

/* In place: the element is what it was. */
static bool stays(walker *m, int32_t i)
{
	const fuse_eqn *e = &m->k->eqn[i];
	const ir_system *s = m->s;
	const eqn_writes *w = m->window[i];
	int64_t point[IR_MAX_AXES];
	bool changed = false;

	if (w == NULL || s->tensor.at[e->e.out[0]].storage < 0 ||
		s->tensor.at[w->old].storage !=
			s->tensor.at[e->e.out[0]].storage ||
		buffer_of(m->k, e->e.out[0]) >= 0)
		return false;
	for (int32_t k = 0; k < m->k->n_eqns; k++)
		for (int32_t c = 0; c < m->k->eqn[k].e.n_out; c++)
			if (m->k->eqn[k].e.out[c] == w->old)
				return false; /* made here, too */
	for (int32_t k = 0; k < e->e.n_left; k++)
		point[k] = index_of(m, e->axis_at[k]);
	m->point = point;
	for (int32_t k = 0; k < w->n_guards && !changed; k++)
		changed = value(m, w->guard[k]) != 0;
	m->point = m->vars;
	return !changed;
}

static void do_stmt(walker *m, int32_t i)
{
	const fuse_eqn *e = &m->k->eqn[i];
	const ix_form *to = e->e.push != NULL ? m->push[i] : e->out_at;
	int64_t now[IR_MAX_COMP], next[IR_MAX_COMP], at;

	m->point = m->vars;
	for (int32_t k = 0; k < e->e.n_out; k++)
		next[k] = value(m, m->body[i * IR_MAX_COMP + k]);
	at = index_of(m, to);
	if (e->e.monoid == IR_SET) {
		if (!stays(m, i))
			store(m, e->e.out[0], at, to, next[0]);
		return;
	}
	for (int32_t k = 0; k < e->e.n_out; k++)
		now[k] = load_tree(m, e->e.out[k], at, to);
	merge(m, &e->e, now, next);
	for (int32_t k = 0; k < e->e.n_out; k++)
		store(m, e->e.out[k], at, to, now[k]);
}

static void empty(walker *m, const fuse_node *scope)
{
	for (int32_t b = 0; b < m->k->n_bufs; b++) {
		if (m->k->buf[b].scope != scope)
			continue;
		for (int64_t i = 0; i < m->k->buf[b].elems; i++)
			m->buffer[b][i].tensor = -1;
	}
}

static int32_t direction(walker *m, const fuse_node *n)
{
	for (int32_t i = 0; i < m->k->n_eqns; i++) {
		const fuse_eqn *e = &m->k->eqn[i];

		if (e->e.scan_step != 0 &&
			ix_uses_axis(e->axis_at[e->e.scan_axis], n->var))
			return e->e.scan_step;
	}
	return 1;
}

static void run_node(walker *m, const fuse_node *n)
{
	const fuse_var *v;
	int64_t *order;

	if (n->kind == FUSE_INIT) {
		do_init(m, n->eqn);
		return;
	}
	if (n->kind == FUSE_STMT) {
		do_stmt(m, n->eqn);
		return;
	}
	v = &m->k->var[n->var];
	order = arena_array(m->a, int64_t, v->extent);
	for (int64_t i = 0; i < v->extent; i++) {
		int64_t k = v->kind == AXIS_S
				    ? i
				    : prop_below(m->r, (int32_t)i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (int64_t i = 0; i < v->extent; i++) {
		m->vars[n->var] = order[v->kind == AXIS_S && direction(m, n) < 0
						? v->extent - 1 - i
						: i];
		empty(m, n);
		for (int32_t c = 0; c < n->n_child; c++)
			run_node(m, n->child[c]);
	}
	m->vars[n->var] = -1; /* nobody may use it now */
}

static void prepare_kernel(walker *m)
{
	const fuse_kernel *k = m->k;
	ix_dom d = {.box = {.n = k->n_vars, .extent = k->var_extent}};

	m->buffer = arena_array(m->a, cell *, k->n_bufs + 1);
	for (int32_t b = 0; b < k->n_bufs; b++)
		m->buffer[b] = arena_array(m->a, cell, k->buf[b].elems);
	m->slot = map_new(m->a);
	m->slots.n = 0;
	m->window = arena_array(m->a, const eqn_writes *, k->n_eqns + 1);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		eqn_writes *w = arena_make(m->a, eqn_writes);

		if (eqn_find_writes(m->a, m->s, &k->eqn[i].e, w))
			m->window[i] = w;
	}
	m->body = arena_array(m->a, const expr *, k->n_eqns *IR_MAX_COMP);
	m->init = arena_array(m->a, const expr *, k->n_eqns *IR_MAX_COMP);
	m->push = arena_array(m->a, const ix_form *, k->n_eqns);
	m->vars = arena_array(m->a, int64_t, k->n_vars + 1);
	for (int32_t i = 0; i < k->n_vars; i++)
		m->vars[i] = -1;
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const fuse_eqn *e = &k->eqn[i];
		int64_t extent[IR_MAX_AXES];
		int64_t numel[1] = {m->s->tensor.at[e->e.out[0]].numel};

		for (int32_t a = 0; a < e->e.n_axes; a++)
			extent[a] = e->e.axis[a].extent;
		for (int32_t c = 0; c < e->e.n_out; c++) {
			m->body[i * IR_MAX_COMP + c] = ex_subst(m->s, &d,
				e->e.body[c], e->e.n_axes, extent, e->axis_at,
				NULL, NULL);
			if (e->e.init[c] == NULL)
				continue;
			m->init[i * IR_MAX_COMP + c] =
				e->e.push != NULL
					? ex_subst(m->s, &d, e->e.init[c], 1,
						  numel, &e->out_at, NULL, NULL)
					: ex_subst(m->s, &d, e->e.init[c],
						  e->e.n_left, extent,
						  e->axis_at, NULL, NULL);
		}
		if (e->e.push != NULL)
			m->push[i] = ix_subst(m->s->x, &d, e->e.push,
				e->e.n_axes, extent, e->axis_at);
	}
}

static void run_kernel(walker *m, const fuse_kernel *k)
{
	m->k = k;
	prepare_kernel(m);
	empty(m, NULL);
	for (int32_t i = 0; i < k->n_roots; i++)
		run_node(m, k->root[i]);
}

/* ---- kernels in any order that their tensors allow ---- */

static bool touches(const int32_t *at, int32_t n, int32_t t)
{
	for (int32_t i = 0; i < n; i++)
		if (at[i] == t)
			return true;
	return false;
}

static bool has_source(const fuse_kernel *k, int32_t source)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].source == source)
			return true;
	return false;
}

/* Must b wait for a? */
static bool waits(
	const fuse_plan *p, const fuse_kernel *a, const fuse_kernel *b)
{
	for (int32_t i = 0; i < b->n_inputs; i++)
		if (touches(a->output, a->n_outputs, b->input[i]))
			return true;
	for (int32_t i = 0; i < p->wait.n; i++)
		if (has_source(a, p->wait.at[i].reader) &&
			has_source(b, p->wait.at[i].writer))
			return true;
	return false;
}

static void run_all(walker *m)
{
	int32_t n = m->p->kernel.n, done = 0;
	bool *ran = arena_array(m->a, bool, n + 1);

	while (done < n) {
		int32_t *ready = arena_array(m->a, int32_t, n), n_ready = 0, k;

		for (int32_t i = 0; i < n; i++) {
			bool ok = !ran[i];

			for (int32_t j = 0; ok && j < n; j++)
				ok = j == i || ran[j] ||
				     !waits(m->p, m->p->kernel.at[j],
					     m->p->kernel.at[i]);
			if (ok)
				ready[n_ready++] = i;
		}
		if (n_ready == 0)
			env_fail(m->env, TN_EINVAL, "prop.run", (loc){0},
				"kernels wait for each other");
		k = ready[prop_below(m->r, n_ready)];
		ran[k] = true;
		done++;
		run_kernel(m, m->p->kernel.at[k]);
	}
}

static void fill_memory(walker *m)
{
	ir_system *s = m->s;

	m->memory = arena_array(m->a, cell *, s->tensor.n + 1);
	for (int32_t t = 0; t < s->tensor.n; t++) {
		const sys_tensor *st = &s->tensor.at[t];

		for (int32_t o = 0; st->storage >= 0 && o < t; o++)
			if (s->tensor.at[o].storage == st->storage)
				m->memory[t] = m->memory[o];
		if (m->memory[t] != NULL)
			continue;
		m->memory[t] = arena_array(m->a, cell, st->numel + 1);
		for (int64_t i = 0; i < st->numel; i++)
			m->memory[t][i] =
				st->eqn >= 0
					? (cell){.tensor = -1}
					: (cell){t, i, prop_input(t, i, st)};
	}
}

/* the tensor of which an output is a copy made when it was settled */
static int32_t original(ir_system *s, int32_t t)
{
	return s->eqn.at[s->tensor.at[t].eqn].body[0]->tensor;
}

static void compare(walker *m)
{
	ir_system *s = m->s;

	m->k = NULL;
	for (int32_t t = 0; t < s->tensor.n; t++) {
		const sys_tensor *st = &s->tensor.at[t];
		int32_t from = t, was = t;
		bool last = false; /* of a caller's memory */

		for (int32_t o = 0; st->storage >= 0 && o < s->tensor.n; o++)
			if (s->tensor.at[o].storage == st->storage)
				last = o > t ? false
					     : last || s->tensor.at[o].is_input;
		if (!st->is_output && !last)
			continue;
		if (m->p->alias[t] >= 0)
			from = m->p->alias[t];
		if (t >= m->n_known)
			was = original(s, t);
		for (int64_t i = 0; i < st->numel; i++) {
			const cell *c = &m->memory[from][i];

			if (c->tensor < 0 || c->at != i)
				wrong(m, "result is not there", t);
			if (c->value != m->want->at[was][i])
				wrong(m, "wrong value", t);
		}
	}
}

void prop_run(arena *a, fuse_plan *p, prop_random *r, const prop_data *want)
{
	walker m = {.a = a,
		.env = arena_env(a),
		.s = p->s,
		.load = load_tree,
		.p = p,
		.want = want,
		.r = r};

	while (want->at[m.n_known] != NULL)
		m.n_known++;
	fill_memory(&m);
	run_all(&m);
	compare(&m);
}
