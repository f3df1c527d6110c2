/*
 * verify_lanes.c: loops in lanes and the direction of scans in a scheduled tree.
 *
 * Consumes a linked tree; fails by the rules "lanes" and "order" (verify.c).
 */
#include "schedule/verify.h"

/* Does a scan over var, from its end or from its beginning, run below n? */
static bool scans_below(const loop_kernel *k, const loop_node *n, int32_t var,
	bool reversed)
{
	if (!loop_is_loop(n))
		return k->eqn[n->eqn].scan_var == var &&
		       k->eqn[n->eqn].reversed == reversed;
	for (int32_t i = 0; i < n->n_child; i++)
		if (scans_below(k, n->child[i], var, reversed))
			return true;
	return false;
}

/*
 * A loop around a scan has its direction. What else is computed in loops over
 * the variable, such as the start of a sum, is so in any order: these may have
 * the direction of a scan elsewhere.
 */
static void check_direction(struct sv *v, const loop_node *n)
{
	const loop_kernel *k = v->k;
	bool may = false;

	for (int32_t i = 0; i < k->n_eqns; i++)
		may |= k->eqn[i].scan_var == n->var && k->eqn[i].reversed;
	if (!n->backward && scans_below(k, n, n->var, true))
		verify_fail(v, n, "order",
			"this loop must be \"backward\": a scan over its variable "
			"runs from the end");
	if (n->backward && (!may || scans_below(k, n, n->var, false)))
		verify_fail(v, n, "order",
			"this loop must not be \"backward\": no scan over its "
			"variable runs from the end");
}

/* Do all pieces of this many values of var, in the blocks and spans around n, have
 * as many? */
static bool is_whole(const loop_kernel *k, const loop_node *n, int32_t var, int64_t size)
{
	bool cut = false;

	for (n = n->up; n != NULL; n = n->up) {
		if (n->var != var)
			continue;
		if (n->kind == LOOP_BLOCK && n->size % size != 0)
			return false;
		cut |= n->kind == LOOP_SPAN && n->lo % size == 0 &&
		       n->hi % size == 0;
	}
	return cut || k->var[var].extent % size == 0;
}

/* Rows abreast: a loop between n, which adds up along `in`, and `in` that walks
 * elements of the sum needs as many accumulators. */
static void check_rows(struct sv *v, const loop_node *n, const loop_node *in)
{
	const loop_kernel *k = v->k;
	const loop_eqn *e = &k->eqn[n->eqn];
	int64_t rows = 1;
	int32_t walks = 0;

	if (n->kind != LOOP_STMT || (e->reduced & BIT(in->var)) == 0)
		return;
	for (const loop_node *u = n->up; u != in; u = u->up) {
		if (!loop_is_loop(u) || (e->reduced & BIT(u->var)) != 0)
			continue;
		rows *= u->unroll > 1 ? u->unroll : 1;
		if (u->kind != LOOP_FOR || u->unroll < 1 ||
			rows > LOOP_MAX_ABREAST || ++walks > LOOP_MAX_WALKS ||
			u->backward || u->n_needs > 0 || u->n_clip > 0 ||
			!is_whole(k, u, u->var, u->unroll) ||
			loop_length(k, u) != u->unroll)
			verify_fail(v, u, "lanes",
				"the lanes of %s add up %s, so a loop over %s in it must be unrolled as a whole: blocks of 1 to %d values around, which all have as many",
				verify_var(v, in->var), verify_eqn(v, n->eqn),
				verify_var(v, u->var), LOOP_MAX_ABREAST);
	}
}

static void check_lanes(struct sv *v, const loop_node *n, const loop_node *in)
{
	loop_kernel *k = v->k;
	struct loop_widest w = {k, n->var, 1};

	if (n->kind == LOOP_FOR)
		check_direction(v, n);
	if (n->kind == LOOP_FOR && n->lanes > 1) {
		loop_widest(&w, n);
		if (in != NULL)
			verify_fail(v, n, "lanes",
				"a loop in lanes contains another one");
		if ((n->lanes & (n->lanes - 1)) != 0 ||
			n->lanes > machine_lanes(k->machine, w.bytes))
			verify_fail(v, n, "lanes",
				"%d lanes of %d bytes do not fit: a vector of %s "
				"has %d such lanes, and lanes are a power of two",
				n->lanes, w.bytes, k->machine->name,
				machine_lanes(k->machine, w.bytes));
		if (!loop_lanes_allowed(k, n, n->var))
			verify_fail(v, n, "lanes",
				"the loop over %s cannot have lanes: its iterations "
				"depend on each other",
				verify_var(v, n->var));
		if (n->wide && !loop_may_be_wide(k, n))
			verify_fail(v, n, "lanes",
				"the loop over %s cannot be wide: lanes that take several elements at once need 2, 4 or 8 of them (`unroll`), all lanes of %s, and accesses to neighbours that begin at multiples of them",
				verify_var(v, n->var), k->machine->name);
		in = n;
	} else if (n->wide) {
		verify_fail(v, n, "lanes", "a wide loop must have lanes");
	} else if (in != NULL &&
		   (n->kind == LOOP_TILE || n->kind == LOOP_STAGE)) {
		verify_fail(v, n, "lanes",
			"a loop in lanes contains a tile or a turn");
	}
	if (in != NULL && in != n)
		check_rows(v, n, in);
	if (n->unroll > 16)
		verify_fail(v, n, "lanes",
			"unroll is %d; it must be 16 at most", n->unroll);
	for (int32_t i = 0; i < n->n_child; i++)
		check_lanes(v, n->child[i], in);
}

void verify_lanes(struct sv *v, const loop_node *root)
{
	check_lanes(v, root, NULL);
}
