/*
 * verify.c: checks the trees of a schedule. Fails with rule schedule.RULE, at
 * the line of the text where the trees come from one.
 *
 *   loop    no two nested loops walk one variable; blocks and spans are
 *           outside the loop that they divide
 *   span    neighbouring spans cover their variable without gap or overlap
 *   cover   a statement runs once for each value of each of its variables
 *   once    one statement adds up a sum
 *   start   accumulators are cleared before the sum, outside its loops
 *   order   a value is read after its statement, when it is final, and in
 *           the iteration that made it
 *   write   an element is read before a write in place changes it, or in the
 *           iteration that changes it
 *   chunk   chunks write different memory, and read no value of other chunks
 *   lanes   lanes fill at most one vector, and their iterations are independent
 *   guard, tile, turn, part, copies, scale: verify_leaf.c
 *   done    accumulators outside memory are stored when they are final
 *
 * Every access is inside its tensor by the equations (loop/verify.c), which no text
 * can change.
 */
#include "schedule/verify.h"

#include <stdarg.h>

_Noreturn void verify_fail(
	struct sv *v, const loop_node *n, const char *rule, const char *fmt, ...)
{
	char text[400], full[40];
	loc at = {.file = v->k->file, .line = n == NULL ? 0 : n->line};
	va_list ap;

	va_start(ap, fmt);
	text_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	text_print(full, sizeof full, "schedule.%s", rule);
	env_fail(arena_env(v->k->a), v->k->pinned ? TN_EINVAL : TN_EINTERNAL,
		full, at, "%s: %s", v->k->name, text);
}

const char *verify_var(const struct sv *v, int32_t var)
{
	return v->k->var[var].name;
}

const char *verify_eqn(const struct sv *v, int32_t eqn)
{
	return arena_printf(v->k->a, "%s#%d", loop_label(&v->k->eqn[eqn]), eqn);
}

/* ---- loops ---- */

/* Variables that a leaf walks without a loop around it. */
static loop_set walked_by(const loop_node *n)
{
	loop_set s = 0;

	if (n->kind != LOOP_TILE && n->kind != LOOP_STAGE)
		return 0;
	s |= BIT(n->var);
	if (n->row_var >= 0)
		s |= BIT(n->row_var);
	else if (n->kind == LOOP_STAGE && n->up != NULL)
		s |= BIT(n->up->var); /* what the loop around walks */
	for (int32_t i = 0; i < n->n_sums; i++)
		s |= BIT(n->sum[i]);
	return s;
}

loop_set verify_walked(const loop_node *leaf)
{
	loop_set s = walked_by(leaf) | loop_node_open(leaf->up);

	for (const loop_node *u = leaf->up; u != NULL; u = u->up)
		if (u->number >= 0)
			s |= BIT(u->number);
	return s;
}

static void check_loops(struct sv *v, const loop_node *n, loop_set open)
{
	if (loop_is_loop(n)) {
		if ((open & BIT(n->var)) != 0)
			verify_fail(v, n, "loop",
				"a loop around this one walks %s already",
				verify_var(v, n->var));
		if (n->n_child == 0)
			verify_fail(v, n, "loop", "this loop is empty; it needs a statement or a loop");
		if (n->kind == LOOP_FOR)
			open |= BIT(n->var);
		if (n->number >= 0 && v->k->var[n->number].extent !=
			(v->k->var[n->var].extent + n->size - 1) / n->size)
			verify_fail(v, n, "loop",
				"%s has extent %lld, and does not number these "
				"%lld blocks",
				verify_var(v, n->number),
				(long long)v->k->var[n->number].extent,
				(long long)((v->k->var[n->var].extent +
						    n->size - 1) /
					n->size));
	} else if ((open & walked_by(n)) != 0) {
		verify_fail(v, n, "loop",
			"a loop around this statement walks a variable that the "
			"statement walks itself");
	}
	for (int32_t i = 0; i < n->n_child; i++)
		check_loops(v, n->child[i], open);
}

static void check_spans(struct sv *v, loop_node *const *list, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		int64_t at = 0;
		int32_t var = list[i]->var, j = i;

		check_spans(v, list[i]->child, list[i]->n_child);
		if (list[i]->kind != LOOP_SPAN)
			continue;
		for (; j < n && list[j]->kind == LOOP_SPAN &&
			list[j]->var == var && list[j]->lo == at;
			j++) {
			at = list[j]->hi;
			if (list[j]->hi <= list[j]->lo)
				verify_fail(v, list[j], "span",
					
					"this span is empty: it ends at %lld, and must "
					"end after %lld",
					(long long)list[j]->hi,
					(long long)list[j]->lo);
			if (j > i)
				check_spans(v, list[j]->child,
					list[j]->n_child);
		}
		if (at != v->k->var[var].extent)
			verify_fail(v, list[i], "span",
				"these spans of %s cover 0 to %lld; neighbouring "
				"spans must cover 0 to %lld without gap",
				verify_var(v, var), (long long)at,
				(long long)v->k->var[var].extent);
		i = j - 1;
	}
}

/* ---- statements ---- */

static bool is_copy(const loop_eqn *e)
{
	return e->stage || (e->pack && !e->part);
}

static loop_set wanted(const loop_eqn *e, const loop_node *n)
{
	switch (n->kind) {
	case LOOP_STMT:
	case LOOP_TILE:
		return e->left | e->reduced;
	case LOOP_INIT:
	case LOOP_DONE:
		return loop_form_vars(e->start_at);
	case LOOP_PART:
	case LOOP_JOIN:
	case LOOP_SCALE:
	case LOOP_STAGE:
		return e->left;
	case LOOP_FOR:
	case LOOP_BLOCK:
	case LOOP_SPAN:
		break;
	}
	return 0;
}

/* Fails if a loop around n, over none of these variables, would repeat it. */
static void check_repeated(struct sv *v, const loop_node *n, loop_set want)
{
	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if ((want & BIT(u->var)) == 0 &&
			(u->number < 0 || (want & BIT(u->number)) == 0))
			verify_fail(v, n, "cover",
				"the loop over %s would repeat %s; the statement must be outside it",
				verify_var(v, u->var), verify_eqn(v, n->eqn));
}

static void check_cover(struct sv *v, const loop_node *n)
{
	const loop_eqn *e = &v->k->eqn[n->eqn];
	loop_set want = wanted(e, n), missing = want & ~verify_walked(n);
	bool adds = e->e->monoid != IR_SET || e->push || e->scan_var >= 0;

	for (int32_t i = 0; missing != 0 && i < v->k->n_vars; i++)
		if ((missing & BIT(i)) != 0 && v->k->var[i].extent > 1)
			verify_fail(v, n, "cover",
				"%s does not run for each %s: it needs a loop over it",
				verify_eqn(v, n->eqn), verify_var(v, i));
	if ((n->kind == LOOP_STMT && adds) || n->kind == LOOP_TILE ||
		n->kind == LOOP_SCALE)
		check_repeated(v, n,
			n->kind == LOOP_SCALE ? e->left | v->keys : want);
	for (const loop_node *u = n->up; u != NULL; u = u->up) {
		if (u->kind == LOOP_FOR || !is_copy(e) || u->number >= 0 ||
			(want & BIT(u->var)) == 0)
			continue;
		if ((verify_walked(n) & BIT(u->var)) == 0)
			verify_fail(v, n, "cover", "no loop inside walks the block of %s",
				verify_var(v, u->var));
	}
}

static void add_leaves(struct sv *v, const loop_node *n, int32_t phase)
{
	if (!loop_is_loop(n))
		*vec_push(v->k->a, &v->leaf) = (struct sv_leaf){n, phase};
	for (int32_t i = 0; i < n->n_child; i++)
		add_leaves(v, n->child[i], phase);
}

static bool in_first_twin(const loop_node *n)
{
	return loop_first(n) == n;
}

/* Each equation has a statement; a sum has exactly one. */
static void check_once(struct sv *v)
{
	for (int32_t i = 0; i < v->k->n_eqns; i++) {
		const loop_eqn *e = &v->k->eqn[i];
		const loop_node *at = NULL;
		int32_t n = 0;

		for (int32_t j = 0; j < v->leaf.n; j++) {
			const loop_node *l = v->leaf.at[j].n;

			if (l->eqn != i || !in_first_twin(l) ||
				(l->kind != LOOP_STMT && l->kind != LOOP_TILE &&
					l->kind != LOOP_STAGE))
				continue;
			at = l;
			n++;
		}
		if (n == 0)
			verify_fail(v, NULL, "once", "no statement computes %s",
				verify_eqn(v, i));
		if (n > 1 && (e->e->monoid != IR_SET || e->push ||
				     e->scan_var >= 0))
			verify_fail(v, at, "once",
				"%d statements add up %s; there must be one",
				n, verify_eqn(v, i));
	}
}

/* ---- starts ---- */

const loop_node *verify_common(const loop_node *a, const loop_node *b)
{
	for (const loop_node *u = a; u != NULL; u = u->up)
		for (const loop_node *w = b; w != NULL; w = w->up)
			if (u == w)
				return u;
	return NULL;
}

/* The first statement of a kind for eqn in a phase, or NULL. */
static const loop_node *leaf_of(const struct sv *v, loop_kind kind,
	int32_t eqn, int32_t phase)
{
	for (int32_t i = 0; i < v->leaf.n; i++)
		if (v->leaf.at[i].n->kind == kind &&
			v->leaf.at[i].n->eqn == eqn &&
			v->leaf.at[i].phase == phase)
			return v->leaf.at[i].n;
	return NULL;
}

/* The innermost of n and the loops around it that walks one of these, or NULL. */
static const loop_node *loop_over(
	const loop_node *n, loop_set vars)
{
	for (; n != NULL; n = n->up)
		if (loop_is_loop(n) && (vars & BIT(n->var)) != 0)
			return n;
	return NULL;
}

static void check_start(struct sv *v, const struct sv_leaf *l)
{
	const loop_node *n = l->n, *init = leaf_of(v, LOOP_INIT, n->eqn, l->phase);
	const loop_eqn *e = &v->k->eqn[n->eqn];
	const loop_node *both, *cut;

	if (e->e->monoid == IR_SET || e->push ||
		(n->kind == LOOP_TILE && n->start && init == NULL))
		return;
	if (n->kind == LOOP_TILE && n->start && e->init[0] != NULL)
		verify_fail(v, n, "start", 
			"%s has an initial value: it needs an init before the "
			"tile, and no \"start\"",
			verify_eqn(v, n->eqn));
	if (init == NULL || init->order > n->order)
		verify_fail(v, n, "start", "this needs an init of %s before it",
			verify_eqn(v, n->eqn));
	both = verify_common(init, n);
	cut = loop_over(both, e->reduced & ~e->left);
	if (cut != NULL && !(cut->parallel && cut->kind == LOOP_BLOCK &&
				   leaf_of(v, LOOP_PART, n->eqn, l->phase)) &&
		cut->number < 0)
		verify_fail(v, init, "start",
			"%s would be cleared again inside its loop over %s; the "
			"init must be outside that loop",
			verify_eqn(v, n->eqn), verify_var(v, cut->var));
}

/* ---- order ---- */

struct reader {
	struct sv *v;
	const struct sv_leaf *l;
};

static bool makes(const loop_node *n)
{
	return n->kind == LOOP_STMT || n->kind == LOOP_TILE ||
	       n->kind == LOOP_STAGE || n->kind == LOOP_JOIN;
}

int32_t verify_span_var(const loop_node *a, const loop_node *b)
{
	const loop_node *both = verify_common(a, b), *x = a, *y = b;

	if (both == a || both == b)
		return -1;
	while (x->up != both)
		x = x->up;
	while (y->up != both)
		y = y->up;
	return x->kind == LOOP_SPAN && y->kind == LOOP_SPAN && x->var == y->var
		? x->var
		: -1;
}

static const struct sv_leaf *maker_before(
	struct sv *v, const struct sv_leaf *r, int32_t eqn)
{
	const struct sv_leaf *made = NULL;

	for (int32_t i = 0; i < v->leaf.n; i++) {
		const struct sv_leaf *m = &v->leaf.at[i];

		if (m->n->eqn != eqn || !makes(m->n) || m->phase > r->phase)
			continue;
		if (m->phase < r->phase || m->n->order < r->n->order)
			made = m;
		else if (m->n->kind != LOOP_STAGE && !v->online &&
			v->k->eqn[eqn].e->monoid != IR_SET &&
			verify_span_var(m->n, r->n) < 0)
			return NULL; /* a later statement adds to it */
	}
	return made;
}

/* Does index `read` have var as the same digit that `made` has it as? */
static bool is_same_digit(struct sv *v, const ix_dom *d, const ix_form *made,
	const ix_form *read, int32_t var)
{
	loop_kernel *k = v->k;
	int64_t n = k->var[var].extent, stride;
	const ix_atom *digit;
	const ix_form *f;

	if (n == 1)
		return true;
	if (!loop_stride(made, var, n, &stride) || stride < 1)
		return false;
	f = ix_mod(k->s->x, d, ix_div(k->s->x, d, read, stride), n);
	return (ix_is_digit(f, &digit) && digit->axis == var) ||
	       ix_equal(k->s->x, d, f, ix_axis(k->s->x, d, var)) !=
		       IX_DIFFERENT;
}

static void check_made(struct sv *v, const struct sv_leaf *r, int32_t eqn,
	const ix_form *at, const ix_dom *d)
{
	const loop_eqn *e = &v->k->eqn[eqn];
	const struct sv_leaf *m = maker_before(v, r, eqn);
	const loop_node *both, *u;

	if (m == NULL)
		verify_fail(v, r->n, "order",
			"%s is read before its statement; it must be read after it",
			verify_eqn(v, eqn));
	if (m->phase != r->phase)
		return;
	both = verify_common(m->n, r->n);
	for (u = both; u != NULL; u = u->up) {
		if ((e->reduced & ~e->left & BIT(u->var)) != 0 &&
			u->number < 0 && (v->keys & BIT(u->var)) == 0)
			verify_fail(v, r->n, "order",
				"%s is read inside its sum over %s; it must be read after that loop",
				verify_eqn(v, eqn), verify_var(v, u->var));
		if ((e->left & BIT(u->var)) != 0 && at != NULL && !e->push &&
			u->number < 0 &&
			!is_same_digit(v, d, e->at, at, u->var))
			verify_fail(v, r->n, "order",
				"%s is read at another %s than that of the iteration around",
				verify_eqn(v, eqn), verify_var(v, u->var));
	}
}

static const expr *on_read(void *arg, const expr *read, const ix_dom *d)
{
	struct reader *r = arg;
	int32_t eqn, comp;

	verify_written(r->v, r->l, read, d);
	if (loop_maker(r->v->k, read->tensor, &eqn, &comp) &&
		eqn != r->l->n->eqn && !r->v->k->eqn[eqn].stage &&
		!(r->v->online && r->l->n->eqn == r->v->was &&
			eqn == r->v->max))
		check_made(r->v, r->l, eqn, read->form, d);
	return NULL;
}

/* Checks the reads of tensors whose elements are indices in f. */
static void check_data(struct sv *v, const struct sv_leaf *l, const ix_form *f)
{
	int32_t eqn, comp;

	for (int32_t i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN &&
			loop_maker(v->k, (int32_t)t->fun, &eqn, &comp) &&
			eqn != l->n->eqn)
			check_made(v, l, eqn, NULL, NULL);
		if (t->kind != IX_DIGIT)
			check_data(v, l, t->f);
	}
}

struct data {
	struct sv *v;
	const struct sv_leaf *l;
};

static void on_form(void *arg, const expr *e)
{
	struct data *d = arg;

	check_data(d->v, d->l, e->form);
}

static void check_expr(struct sv *v, const struct sv_leaf *l, const expr *e)
{
	loop_kernel *k = v->k;
	struct reader r = {v, l};
	struct data f = {v, l};

	if (e == NULL)
		return;
	ex_subst(k->s, &k->dom, e, k->n_vars, k->dom.box.extent, v->same,
		on_read, &r);
	loop_walk(k->a, e, on_form, &f);
}

static void check_reads(struct sv *v, const struct sv_leaf *l)
{
	const loop_node *n = l->n;
	const loop_eqn *e = &v->k->eqn[n->eqn];

	switch (n->kind) {
	case LOOP_TILE:
		check_expr(v, l, n->factor[0]);
		check_expr(v, l, n->factor[1]);
		check_expr(v, l, n->finish);
		if (n->checked)
			check_expr(v, l, e->body[0]);
		break;
	case LOOP_SCALE:
		check_expr(v, l, n->finish);
		break;
	case LOOP_INIT:
	case LOOP_STMT:
	case LOOP_STAGE:
		for (int32_t i = 0; i < e->e->n_out; i++)
			check_expr(v, l,
				n->kind == LOOP_INIT ? e->init[i] : e->body[i]);
		if (e->push)
			check_data(v, l, e->at);
		break;
	case LOOP_DONE:
		check_made(v, l, n->eqn, e->at, &v->k->dom);
		break;
	case LOOP_PART:
	case LOOP_JOIN:
	case LOOP_FOR:
	case LOOP_BLOCK:
	case LOOP_SPAN:
		break;
	}
}

/* ---- writes in place ---- */

/* The innermost node around both; if they are in different spans of one loop,
 * the span of a. */
static const loop_node *around_both(const loop_node *a, const loop_node *b)
{
	const loop_node *both = verify_common(a, b);

	while (verify_span_var(a, b) >= 0 && a->up != both)
		a = a->up;
	return verify_span_var(a, b) >= 0 ? a : both;
}

/*
 * If another leaf writes the memory that this one reads, it runs later; in
 * loops around both, it writes the element that this iteration reads.
 */
void verify_written(struct sv *v, const struct sv_leaf *r, const expr *read,
	const ix_dom *d)
{
	const sys_tensor *t = v->k->s->tensor.at;
	int32_t storage = t[read->tensor].storage;

	for (int32_t i = 0; storage >= 0 && i < v->leaf.n; i++) {
		const struct sv_leaf *w = &v->leaf.at[i];
		const loop_eqn *e = &v->k->eqn[w->n->eqn];
		int32_t out = e->e->out[0];

		if (e->stage || e->pack || w->n->eqn == r->n->eqn ||
			out == read->tensor || t[out].storage != storage ||
			loop_param(v->k, out) < 0 ||
			loop_param(v->k, read->tensor) < 0)
			continue;
		if (loop_maker(v->k, read->tensor, &(int32_t){0}, &(int32_t){0}) &&
			!ir_in_place(v->k->s, out))
			continue;
		if (loop_leaves(v->k, e, read->form, d))
			continue;
		if (w->phase < r->phase ||
			(w->phase == r->phase && w->n->order < r->n->order &&
				verify_span_var(w->n, r->n) < 0))
			verify_fail(v, r->n, "write",
				
				"%s reads %s after %s has overwritten it; it must read "
				"it before",
				verify_eqn(v, r->n->eqn), t[read->tensor].name,
				verify_eqn(v, w->n->eqn));
		if (w->phase != r->phase)
			continue;
		for (const loop_node *u = around_both(w->n, r->n); u != NULL;
			u = u->up)
			if ((e->left & BIT(u->var)) != 0 &&
				!is_same_digit(v, d, e->at, read->form, u->var))
				verify_fail(v, r->n, "write",
					
					"%s overwrites elements of %s that other "
					"iterations over %s read later",
					verify_eqn(v, w->n->eqn),
					t[read->tensor].name,
					verify_var(v, u->var));
	}
}

/* ---- chunks ---- */

static bool any_parallel(const loop_node *n)
{
	bool any = n->parallel;

	for (int32_t i = 0; i < n->n_child; i++)
		any |= any_parallel(n->child[i]);
	return any;
}

static void check_pieces(struct sv *v, const loop_phase *ph)
{
	loop_node *const *list = ph->root;
	int64_t pieces = 1;
	int32_t n = ph->n_roots;

	for (; n == 1; n = list[0]->n_child, list = list[0]->child) {
		const loop_node *u = list[0];
		int64_t ext = u->parallel ? v->k->var[u->var].extent : 1;

		if (u->parallel && u->kind == LOOP_SPAN)
			verify_fail(v, u, "chunk", 
				"a span cannot be parallel; a loop or a block can");
		if (u->parallel && u->kind == LOOP_BLOCK)
			ext = (ext + u->size - 1) / u->size;
		if (pieces > INT32_MAX / (ext > 0 ? ext : 1))
			verify_fail(v, u, "chunk", 
				"the parallel loops make more than %d chunks",
				INT32_MAX);
		pieces *= ext;
	}
	for (int32_t i = 0; i < n; i++)
		if (any_parallel(list[i]))
			verify_fail(v, list[i], "chunk",
				
				"a parallel loop must be outermost, or the only child "
				"of a parallel loop");
	if (pieces != ph->n_chunks)
		verify_fail(v, ph->n_roots > 0 ? ph->root[0] : NULL, "chunk",
			"the parallel loops of this phase make %lld chunks, and its "
			"line says %lld",
			(long long)pieces, (long long)ph->n_chunks);
}

static bool is_read_in_phase(struct sv *v, int32_t eqn, int32_t phase)
{
	for (int32_t c = 0; c < v->k->eqn[eqn].e->n_out; c++)
		for (int32_t i = 0; i < v->leaf.n; i++)
			if (v->leaf.at[i].phase != phase &&
				v->leaf.at[i].n->eqn != eqn &&
				loop_leaf_reads(v->k, v->leaf.at[i].n,
					v->k->eqn[eqn].e->out[c]))
				return true;
	return false;
}

static void check_chunks(struct sv *v, const struct sv_leaf *l)
{
	const loop_node *n = l->n;
	const loop_eqn *e = &v->k->eqn[n->eqn];

	for (const loop_node *u = n->up; u != NULL; u = u->up) {
		int32_t var = u->number >= 0 && (e->left & BIT(u->number)) != 0
				      ? u->number
				      : u->var;
		bool here = !e->stage && loop_param(v->k, e->e->out[0]) >= 0;

		if (!u->parallel ||
			(e->push ? v->k->var[var].kind == AXIS_P
				 : (e->left & BIT(var)) != 0 &&
					 e->scan_var != var))
			continue;
		if ((e->reduced & BIT(var)) != 0 && u->kind == LOOP_BLOCK &&
			n->kind != LOOP_DONE &&
			leaf_of(v, LOOP_PART, n->eqn, l->phase) != NULL)
			continue;
		if (here || (e->reduced & BIT(var)) != 0 || e->scan_var == var ||
			is_read_in_phase(v, n->eqn, l->phase))
			verify_fail(v, u, "chunk",
				"the loop over %s cannot be parallel: its chunks would "
				"write or read the same elements of %s",
				verify_var(v, u->var), verify_eqn(v, n->eqn));
	}
}

/* ---- all ---- */

static struct sv verify_new(loop_kernel *k)
{
	struct sv v = {.k = k};

	v.same = arena_array(k->a, const ix_form *, k->n_vars + 1);
	for (int32_t i = 0; i < k->n_vars; i++)
		v.same[i] = ix_axis(k->s->x, &k->dom, i);
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			add_leaves(&v, k->phase[p].root[i], p);
	for (int32_t i = 0; i < v.leaf.n; i++)
		v.online |= v.leaf.at[i].n->kind == LOOP_SCALE;
	return v;
}

void loop_schedule_verify(loop_kernel *k)
{
	struct sv v = verify_new(k);

	for (int32_t p = 0; p < k->n_phases; p++) {
		const loop_phase *ph = &k->phase[p];

		check_spans(&v, ph->root, ph->n_roots);
		for (int32_t i = 0; i < ph->n_roots; i++) {
			check_loops(&v, ph->root[i], 0);
			verify_lanes(&v, ph->root[i]);
		}
		check_pieces(&v, ph);
	}
	if (v.online)
		verify_online(&v);
	check_once(&v);
	for (int32_t i = 0; i < v.leaf.n; i++) {
		const struct sv_leaf *l = &v.leaf.at[i];

		check_cover(&v, l->n);
		if (l->n->kind == LOOP_STMT || l->n->kind == LOOP_TILE)
			check_start(&v, l);
		check_reads(&v, l);
		check_chunks(&v, l);
		verify_leaf(&v, l);
	}
	verify_guards(&v);
	verify_copies(&v);
}

/* What a turn writes are neighbours in the copy: lanes walk it next. */
static void turn_location(struct sv *v, const loop_node *n)
{
	const loop_kernel *k = v->k;
	int32_t var = n->row_var >= 0 ? n->row_var : n->up->var;
	int32_t b = k->buf_of[n->eqn][0];
	int64_t stride = 0;

	for (int32_t i = 0; b >= 0 && i < k->buf[b].n_vars; i++)
		if (k->buf[b].var[i] == var)
			stride = k->buf[b].stride[i];
	if (stride != 1)
		verify_fail(v, n, "turn",
			"the elements of the copy must be neighbours along %s: "
			"the loop over it that reads them needs lanes",
			verify_var(v, var));
}

void loop_schedule_verify_locations(loop_kernel *k)
{
	struct sv v = verify_new(k);

	for (int32_t i = 0; i < v.leaf.n; i++)
		if (v.leaf.at[i].n->kind == LOOP_STAGE)
			turn_location(&v, v.leaf.at[i].n);
	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t c = 0; c < k->eqn[i].e->n_out; c++) {
			const loop_eqn *e = &k->eqn[i];
			bool apart = k->buf_of[i][c] >= 0 && !e->stage &&
				     loop_param(k, e->e->out[c]) >= 0 &&
				     e->n_parts == 0, done = false;

			for (int32_t p = 0; p < k->n_phases; p++)
				done |= leaf_of(&v, LOOP_DONE, i, p) != NULL;
			if (apart && !done)
				verify_fail(&v, NULL, "done",
					"%s is not stored: a \"done\" is missing",
					verify_eqn(&v, i));
		}
}

void loop_verify_schedule(loop_kernel *k)
{
	if (k->n_phases > 0 && !k->pinned) {
		loop_schedule_verify(k);
		loop_schedule_verify_locations(k);
	}
}
