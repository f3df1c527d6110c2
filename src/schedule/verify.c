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
 *   order, write: verify_read.c; guard, tile, turn, part, copies, scale: verify_leaf.c
 *   chunk   chunks write different memory, and read no value of other chunks
 *   lanes   lanes fill at most one vector, and their iterations are independent
 *   done    accumulators outside memory are stored when they are final
 *
 * Every access is inside its tensor by the equations (loop/verify.c), which no text
 * can change.
 */
#include "schedule/verify.h"

/* ---- loops ---- */

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
	} else if ((open & verify_walked_by(n)) != 0) {
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

/* Does the block restrict a scatter to some of its elements? */
static bool divides(const struct sv *v, const loop_node *u, const loop_eqn *e)
{
	const ix_form *row;

	return u->kind == LOOP_BLOCK && u->number < 0 &&
	       loop_row_of(v->k, e, u->var, &row);
}

/* Fails if a loop around n, over none of these variables, would repeat it. */
static void check_repeated(struct sv *v, const loop_node *n, loop_set want)
{
	const loop_eqn *e = &v->k->eqn[n->eqn];

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if ((want & BIT(u->var)) == 0 && !divides(v, u, e) &&
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
	const loop_node *n = l->n, *init = verify_first(v, LOOP_INIT, n->eqn, l->phase);
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
				   verify_first(v, LOOP_PART, n->eqn, l->phase)) &&
		cut->number < 0)
		verify_fail(v, init, "start",
			"%s would be cleared again inside its loop over %s; the "
			"init must be outside that loop",
			verify_eqn(v, n->eqn), verify_var(v, cut->var));
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
			verify_first(v, LOOP_PART, n->eqn, l->phase) != NULL)
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
		v.same[i] = k->var[i].slide != NULL
				    ? k->var[i].slide
				    : ix_axis(k->s->x, &k->dom, i);
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
		verify_reads(&v, l);
		check_chunks(&v, l);
		verify_leaf(&v, l);
	}
	verify_guards(&v);
	verify_copies(&v);
}

/* How far the elements of a buffer are apart along var; 0: they are in none, or the same. */
static int64_t stride_in(const loop_kernel *k, int32_t b, int32_t var)
{
	for (int32_t i = 0; b >= 0 && i < k->buf[b].n_vars; i++)
		if (k->buf[b].var[i] == var)
			return k->buf[b].stride[i];
	return 0;
}

/* What a turn writes are neighbours in the copy: lanes walk it next. Sums that it reads are
 * neighbours in their array. */
static void turn_location(struct sv *v, const loop_node *n)
{
	const loop_kernel *k = v->k;
	int32_t var = n->row_var >= 0 ? n->row_var : n->up->var;
	int32_t of = k->eqn[n->eqn].e->out[0], eqn, comp;
	bool sum = loop_kept(k, of) == n->eqn && loop_maker(k, of, &eqn, &comp);
	int32_t from = sum ? k->buf_of[eqn][comp] : -1;

	if (sum && (k->eqn[eqn].acc[comp] != k->eqn[n->eqn].acc[0] || from < 0 ||
			   (k->buf[from].where != LOOP_LOCAL &&
				   k->buf[from].where != LOOP_SCRATCH)))
		verify_fail(v, n, "turn", "%s is in no array of the dtype of its copy",
			k->s->tensor.at[of].name);
	if (sum && stride_in(k, from, n->var) != 1)
		verify_fail(v, n, "turn",
			"the elements of %s must be neighbours in its array along %s",
			k->s->tensor.at[of].name, verify_var(v, n->var));
	if (stride_in(k, k->buf_of[n->eqn][0], var) !=
		(k->eqn[n->eqn].group > 0 ? k->eqn[n->eqn].group : 1))
		verify_fail(v, n, "turn",
			"the elements of the copy must be neighbours along %s: "
			"the loop over it that reads them needs lanes",
			verify_var(v, var));
}

/* Only arrays have lines to prefetch. */
static void tile_locations(struct sv *v, const loop_node *n)
{
	const loop_kernel *k = v->k;

	for (int32_t i = 0; i < n->n_ahead; i++) {
		int32_t eqn, comp, b = -1;

		if (loop_param(k, n->ahead[i].tensor) >= 0)
			continue;
		if (loop_maker(k, n->ahead[i].tensor, &eqn, &comp))
			b = k->buf_of[eqn][comp];
		if (b < 0 || (k->buf[b].where != LOOP_LOCAL &&
				     k->buf[b].where != LOOP_SCRATCH))
			verify_fail(v, n, "ahead",
				"%s is in no array: it cannot be prefetched",
				k->s->tensor.at[n->ahead[i].tensor].name);
	}
}

void loop_schedule_verify_locations(loop_kernel *k)
{
	struct sv v = verify_new(k);

	verify_warps(&v);
	for (int32_t i = 0; i < v.leaf.n; i++)
		if (v.leaf.at[i].n->kind == LOOP_STAGE)
			turn_location(&v, v.leaf.at[i].n);
		else if (v.leaf.at[i].n->kind == LOOP_TILE)
			tile_locations(&v, v.leaf.at[i].n);
	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t c = 0; c < k->eqn[i].e->n_out; c++) {
			const loop_eqn *e = &k->eqn[i];
			bool apart = k->buf_of[i][c] >= 0 && !e->stage &&
				     loop_param(k, e->e->out[c]) >= 0 &&
				     e->n_parts == 0, done = false;

			for (int32_t p = 0; p < k->n_phases; p++)
				done |= verify_first(&v, LOOP_DONE, i, p) != NULL;
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
