/*
 * op_tree.c: ensembles of decision trees (ai.onnx.ml). All rows descend all trees
 * at once, as many steps as the deepest tree has: the nodes are tables, and at
 * is the node of each row in each tree.
 *
 *     at = where(x[row, feature[at]] <= split[at], yes[at], no[at])    per step
 *     scores = sum over trees of weights[leaf[at]]
 *
 * A leaf leads to itself. A node that asks whether a feature is one of n values
 * becomes n nodes, one after the other.
 */
#include "onnx/ops.h"
#include "onnx/ml.h"

#include <math.h>

enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF };
enum { MAX_NODES = 1 << 24, MAX_STEPS = 1 << 12 };

typedef struct tree_node {
	int64_t feature;
	double split;
	int32_t mode;
	int64_t yes, no; /* nodes */
	/* of a set: how many nodes it became, and where the last one leads */
	int64_t length, behind;
	int64_t leaf;	 /* its number; -1: none */
	int64_t depth;
	bool missing;	 /* NaN leads to yes */
	bool is_reached;
} tree_node;

/* A leaf adds weight to the score of a target. */
typedef struct vote {
	int64_t leaf, target;
	double weight;
} vote;

typedef struct ensemble {
	node *d;
	int32_t x;   /* [rows, features] */
	VEC(tree_node) node;
	VEC(int64_t) root;
	VEC(vote) vote;
	int64_t n_leaves, n_targets, steps;
} ensemble;

static list need_list(node *d, const char *name, int64_t n)
{
	list l = on_list_new(d, 0, 0);

	if (!on_list(d, name, &l))
		on_fail(d, "onnx.attr", "attribute %s is missing", name);
	if (n >= 0 && l.n != n)
		on_fail(d, "onnx.attr", "%s has %d numbers; it must have %lld",
			name, (int)l.n, (long long)n);
	return l;
}

/* The list says for each node whether NaN leads to yes; without it: never. */
static void find_missing(ensemble *t)
{
	const char *name = "nodes_missing_value_tracks_true";
	list l;

	if (!on_has_attr(t->d, name))
		return;
	l = need_list(t->d, name, t->node.n);
	for (int32_t i = 0; i < t->node.n; i++)
		t->node.at[i].missing = l.at[i] != 0;
}

/* ---- the form of opset 5: nodes and leaves apart ---- */

static int64_t new_leaf(ensemble *t, int64_t number)
{
	tree_node *n = vec_push(t->d->x->a, &t->node);

	*n = (tree_node){.mode = LEAF, .leaf = number};
	n->yes = n->no = t->node.n - 1;
	return t->node.n - 1;
}

/* The node of each branch; leaves become nodes behind the others. */
static void link_branches(ensemble *t, int64_t n, int64_t n_leaves)
{
	node *d = t->d;
	list yes = need_list(d, "nodes_truenodeids", n);
	list no = need_list(d, "nodes_falsenodeids", n);
	list yes_leaf = need_list(d, "nodes_trueleafs", n);
	list no_leaf = need_list(d, "nodes_falseleafs", n);

	for (int64_t i = 0; i < n; i++) {
		int64_t to = yes.at[i];

		on_bound(d, "a branch", to, 0,
			(yes_leaf.at[i] != 0 ? n_leaves : n) - 1);
		to = yes_leaf.at[i] != 0 ? new_leaf(t, to) : to;
		t->node.at[i].yes = to;
		to = no.at[i];
		on_bound(d, "a branch", to, 0,
			(no_leaf.at[i] != 0 ? n_leaves : n) - 1);
		to = no_leaf.at[i] != 0 ? new_leaf(t, to) : to;
		t->node.at[i].no = to;
	}
}

/* Makes a node for each value of a set, one after the other. */
static void expand_set(ensemble *t, int64_t i, const reals *set, int32_t *next)
{
	int64_t at = i, no = t->node.at[i].no;
	bool first = true;

	t->node.at[i].mode = EQ;
	t->node.at[i].split = NAN; /* an empty set: nothing equals it */
	for (; *next < set->n && !isnan(set->at[*next]); ++*next, first = false) {
		if (!first) {
			tree_node copy = t->node.at[at];

			copy.missing = false;
			*vec_push(t->d->x->a, &t->node) = copy;
			t->node.at[at].no = t->node.n - 1;
			at = t->node.n - 1;
			t->node.at[i].length++;
		}
		t->node.at[at].split = set->at[*next];
	}
	t->node.at[at].no = t->node.at[i].behind = no;
	if (*next >= set->n)
		on_fail(t->d, "onnx.attr", "membership_values has fewer sets, "
			"each with a NaN behind it, than nodes that need one");
	++*next;
}

static void expand_sets(ensemble *t, int64_t n)
{
	node *d = t->d;
	reals set = {0, NULL};
	int32_t next = 0;

	if (on_has_attr(d, "membership_values"))
		set = ml_tensor(d, "membership_values");
	for (int64_t i = 0; i < n; i++)
		if (t->node.at[i].mode == MEMBER)
			expand_set(t, i, &set, &next);
}

static void read_nodes(ensemble *t)
{
	node *d = t->d;
	list feature = need_list(d, "nodes_featureids", -1);
	list roots = need_list(d, "tree_roots", -1);
	list target = need_list(d, "leaf_targetids", -1);
	reals mode = ml_tensor(d, "nodes_modes");
	reals split = ml_tensor(d, "nodes_splits");
	reals weight = ml_tensor(d, "leaf_weights");
	int64_t n = feature.n;

	if (mode.n != n || split.n != n || weight.n != target.n)
		on_fail(d, "onnx.attr", "%d modes and %d splits for %lld nodes, "
			"%d weights for %d leaves: they must be as many",
			(int)mode.n, (int)split.n, (long long)n, (int)weight.n,
			(int)target.n);
	on_bound(d, "the number of nodes", n, 1, MAX_NODES / 4);
	for (int64_t i = 0; i < n; i++)
		*vec_push(d->x->a, &t->node) = (tree_node){
			.feature = feature.at[i], .split = split.at[i],
			.leaf = -1, .mode = (int32_t)on_bound(d, "a mode",
				mode.at[i] >= 0 && mode.at[i] <= MEMBER
					? (int64_t)mode.at[i] : -1,
				0, MEMBER)};
	find_missing(t);
	for (int32_t i = 0; i < target.n; i++)
		*vec_push(d->x->a, &t->vote) = (vote){i, target.at[i],
			weight.at[i]};
	t->n_leaves = target.n;
	link_branches(t, n, target.n);
	expand_sets(t, n);
	for (int32_t i = 0; i < roots.n; i++)
		*vec_push(d->x->a, &t->root) = on_bound(d, "a root", roots.at[i],
			0, n - 1);
}

/* ---- the form before: nodes with numbers of trees and nodes ---- */

/* The node (tree, id), or -1. */
static int64_t find_node(const map *m, int64_t tree, int64_t id)
{
	int64_t key[2] = {tree, id};

	return map_get(m, key, sizeof key, -1);
}

static int32_t mode_of(node *d, const char *name)
{
	static const char *const known[] = {"BRANCH_LEQ", "BRANCH_LT",
		"BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ",
		"BRANCH_MEMBER", "LEAF"};

	for (int32_t i = 0; i < (int32_t)(sizeof known / sizeof *known); i++)
		if (i != MEMBER && !strcmp(name, known[i]))
			return i;
	on_fail(d, "onnx.attr", "a node has the mode \"%.50s\"; accepted are "
		"LEAF and BRANCH_ with LEQ, LT, GTE, GT, EQ, NEQ", name);
}

static void link_old(ensemble *t, map *m, list tree)
{
	node *d = t->d;
	list yes = need_list(d, "nodes_truenodeids", tree.n);
	list no = need_list(d, "nodes_falsenodeids", tree.n);

	for (int32_t i = 0; i < tree.n; i++) {
		tree_node *n = &t->node.at[i];

		n->yes = n->no = i;
		if (n->mode == LEAF) {
			n->leaf = t->n_leaves++;
			continue;
		}
		n->yes = find_node(m, tree.at[i], yes.at[i]);
		n->no = find_node(m, tree.at[i], no.at[i]);
		if (n->yes < 0 || n->no < 0)
			on_fail(d, "onnx.attr", "tree %lld has no node %lld, to "
				"which a branch leads", (long long)tree.at[i],
				(long long)(n->yes < 0 ? yes.at[i] : no.at[i]));
	}
}

/* The votes of leaves: attributes of prefix class or target. */
static void read_votes(ensemble *t, const map *m, const char *prefix)
{
	node *d = t->d;
	arena *a = d->x->a;
	list tree = need_list(d, arena_printf(a, "%s_treeids", prefix), -1);
	list id = need_list(d, arena_printf(a, "%s_nodeids", prefix), tree.n);
	list to = need_list(d, arena_printf(a, "%s_ids", prefix), tree.n);
	reals w = ml_reals(d, arena_printf(a, "%s_weights", prefix));

	if (w.n != tree.n)
		on_fail(d, "onnx.attr", "%s_weights has %d numbers; it must have "
			"%d", prefix, (int)w.n, (int)tree.n);
	for (int32_t i = 0; i < tree.n; i++) {
		int64_t at = find_node(m, tree.at[i], id.at[i]);

		/* a weight of a branch counts nothing */
		if (at < 0 || t->node.at[at].leaf < 0)
			continue;
		*vec_push(a, &t->vote) = (vote){t->node.at[at].leaf, to.at[i],
			w.at[i]};
	}
}

static void read_old(ensemble *t, const char *prefix)
{
	node *d = t->d;
	list tree = need_list(d, "nodes_treeids", -1);
	list id = need_list(d, "nodes_nodeids", tree.n);
	list feature = need_list(d, "nodes_featureids", tree.n);
	reals split = ml_reals(d, "nodes_values");
	map *m = map_new(d->x->a), *seen = map_new(d->x->a);

	on_ignore(d, "nodes_hitrates");
	on_ignore(d, "nodes_hitrates_as_tensor");
	on_bound(d, "the number of nodes", tree.n, 1, MAX_NODES);
	if (on_n_texts(d, "nodes_modes") != tree.n || split.n != tree.n)
		on_fail(d, "onnx.attr", "%d modes and %d values for %d nodes: "
			"they must be as many", on_n_texts(d, "nodes_modes"),
			(int)split.n, (int)tree.n);
	for (int32_t i = 0; i < tree.n; i++) {
		int64_t key[2] = {tree.at[i], id.at[i]};

		if (map_get(m, key, sizeof key, -1) >= 0)
			on_fail(d, "onnx.attr", "tree %lld has two nodes %lld",
				(long long)key[0], (long long)key[1]);
		map_set(m, key, sizeof key, i);
		if (map_get(seen, key, sizeof key[0], -1) < 0)
			*vec_push(d->x->a, &t->root) = i;
		map_set(seen, key, sizeof key[0], i);
		*vec_push(d->x->a, &t->node) = (tree_node){
			.feature = feature.at[i], .split = split.at[i],
			.leaf = -1,
			.mode = mode_of(d, on_text_at(d, "nodes_modes", i))};
	}
	find_missing(t);
	link_old(t, m, tree);
	read_votes(t, m, prefix);
}

/* ---- checks ---- */

static void reach(ensemble *t, int64_t at, int64_t depth, int64_t **last)
{
	tree_node *n = &t->node.at[at];

	on_bound(t->d, "the depth of a tree", depth, 0, MAX_STEPS);
	if (n->is_reached)
		on_fail(t->d, "onnx.attr", "two branches lead to node %lld",
			(long long)at);
	n->is_reached = true;
	n->depth = depth;
	t->steps = depth > t->steps ? depth : t->steps;
	*(*last)++ = at;
}

/* Counts the steps to the deepest leaf; a branch is reached from one node. */
static void descend(ensemble *t)
{
	int64_t *at = arena_array(t->d->x->a, int64_t, t->node.n + 1), *end = at;

	for (int32_t i = 0; i < t->root.n; i++)
		reach(t, t->root.at[i], 0, &end);
	for (; at < end; at++) {
		const tree_node *n = &t->node.at[*at];

		if (n->mode == LEAF)
			continue;
		reach(t, n->yes, n->depth + n->length + 1, &end);
		reach(t, n->length > 0 ? n->behind : n->no,
			n->depth + n->length + 1, &end);
	}
}

static void check_trees(ensemble *t)
{
	node *d = t->d;
	int64_t features = on_extent(d, t->x, 1);

	if (t->root.n == 0 || t->n_leaves == 0)
		on_fail(d, "onnx.attr", "there is no tree with a leaf");
	on_bound(d, "the number of targets", t->n_targets, 1, 1 << 20);
	on_bound(d, "the number of weights", t->n_targets * t->n_leaves, 1,
		1 << 24);
	for (int32_t i = 0; i < t->node.n; i++) {
		if (t->node.at[i].mode == LEAF) {
			t->node.at[i].feature = 0;
			t->node.at[i].split = 0;
			t->node.at[i].missing = false;
		}
		on_bound(d, "the feature of a node", t->node.at[i].feature, 0,
			features - 1);
	}
	for (int32_t i = 0; i < t->vote.n; i++)
		on_bound(d, "the target of a leaf", t->vote.at[i].target, 0,
			t->n_targets - 1);
	descend(t);
}

/* ---- rows ---- */

/* A table of a number per node, read at the nodes `at`. */
static int32_t look_up(ensemble *t, const int64_t *v, int32_t at)
{
	node *d = t->d;

	return rowa(d, "take", A(on_constant(d, TN_I64, LIST(d, t->node.n), v),
			at), INT("axis", 0));
}

static int32_t compared(ensemble *t, int32_t mode, int32_t v, int32_t split)
{
	static const char *const names[] = {"le", "lt", "ge", "gt", "eq", "ne"};
	int32_t is = on_two(t->d, names[mode], v, split);

	if (mode == NEQ) /* NaN leads where nodes_missing_value says */
		is = on_two(t->d, "and", is, on_two(t->d, "eq", v, v));
	return is;
}

struct tables {
	int64_t *feature, *mode, *yes, *no, *missing;
	double *split;
	bool has[MEMBER];
	bool has_missing;
};

static struct tables tables_of(ensemble *t)
{
	arena *a = t->d->x->a;
	int32_t n = t->node.n;
	struct tables k = {0};
	int64_t **ints[] = {&k.feature, &k.mode, &k.yes, &k.no, &k.missing};

	for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
		*ints[i] = arena_array(a, int64_t, n + 1);
	k.split = arena_array(a, double, n + 1);
	for (int32_t i = 0; i < n; i++) {
		const tree_node *v = &t->node.at[i];

		k.feature[i] = v->feature;
		k.mode[i] = v->mode;
		k.yes[i] = v->yes;
		k.no[i] = v->no;
		k.missing[i] = v->missing;
		k.split[i] = v->split;
		k.has_missing = k.has_missing || v->missing;
		if (v->mode < MEMBER)
			k.has[v->mode] = true;
	}
	return k;
}

/* Which branch each row takes at its nodes: bools like at. */
static int32_t branch(ensemble *t, const struct tables *k, int32_t at)
{
	node *d = t->d;
	tn_dtype type = on_dt(d, t->x);
	int32_t split = on_const_real(d, type, LIST(d, t->node.n), k->split);
	int32_t v = rowa(d, "take_along", A(t->x, look_up(t, k->feature, at)),
		INT("axis", 1));
	int32_t is = -1, mode = look_up(t, k->mode, at), n_modes = 0;

	split = rowa(d, "take", A(split, at), INT("axis", 0));
	for (int32_t m = 0; m < MEMBER; m++)
		n_modes += k->has[m];
	for (int32_t m = 0; m < MEMBER; m++) {
		int32_t c;

		if (!k->has[m])
			continue;
		c = compared(t, m, v, split);
		if (n_modes > 1)
			c = on_two(d, "and", c, on_two(d, "eq", mode,
							on_scalar(d, TN_I64, m)));
		is = is < 0 ? c : on_two(d, "or", is, c);
	}
	if (k->has_missing)
		is = on_two(d, "or", is, on_two(d, "and",
					row(d, "isnan", A(v)),
					on_cast_to(d, look_up(t, k->missing, at),
						TN_BOOL)));
	return is;
}

/* [rows, trees]: the numbers of the leaves that the rows come to. */
static int32_t leaves(ensemble *t)
{
	node *d = t->d;
	struct tables k = tables_of(t);
	int64_t *leaf = arena_array(d->x->a, int64_t, t->node.n + 1);
	int32_t at = on_constant(d, TN_I64, LIST(d, t->root.n), t->root.at);

	at = rowa(d, "broadcast_to", A(at), INTS("shape",
			LIST(d, on_extent(d, t->x, 0), t->root.n)));
	for (int64_t i = 0; i < t->steps; i++)
		at = row(d, "where", A(branch(t, &k, at),
					 look_up(t, k.yes, at),
					 look_up(t, k.no, at)));
	for (int32_t i = 0; i < t->node.n; i++)
		leaf[i] = t->node.at[i].leaf < 0 ? 0 : t->node.at[i].leaf;
	return look_up(t, leaf, at);
}

/* how: 0 the mean, 1 the sum, 2 the least, 3 the largest: [rows, targets] */
static int32_t aggregated(ensemble *t, int32_t how)
{
	static const char *const names[] = {"reduce_sum", "reduce_sum",
		"reduce_min", "reduce_max"};
	node *d = t->d;
	tn_dtype type = on_dt(d, t->x);
	double none = how < 2 ? 0 : how == 2 ? INFINITY : -INFINITY;
	int64_t n = t->n_leaves * t->n_targets;
	double *w = arena_array(d->x->a, double, n + 1);
	int32_t o;

	for (int64_t i = 0; i < n; i++)
		w[i] = none;
	for (int32_t i = 0; i < t->vote.n; i++) {
		const vote *v = &t->vote.at[i];
		double *at = &w[v->leaf * t->n_targets + v->target];

		*at = how < 2 ? *at + v->weight
		    : how == 2 ? fmin(*at, v->weight) : fmax(*at, v->weight);
	}
	o = on_const_real(d, type, LIST(d, t->n_leaves, t->n_targets), w);
	o = rowa(d, "take", A(o, leaves(t)), INT("axis", 0));
	o = rowa(d, names[how], A(o), INTS("axes", LIST(d, 1)));
	if (how == 0)
		o = on_two(d, "div", o, on_scalar(d, type, t->root.n));
	if (how >= 2) /* a target without a vote */
		o = row(d, "where", A(row(d, "isinf", A(o)),
					on_scalar(d, type, 0), o));
	return o;
}

/* Adds the base values: one for each target. */
static int32_t on_base(ensemble *t, int32_t scores)
{
	node *d = t->d;
	reals base = ml_reals(d, "base_values");

	if (base.n == 0)
		return scores;
	if (base.n != 1 && base.n != t->n_targets)
		on_fail(d, "onnx.attr", "base_values has %d numbers; it must have "
			"%lld", (int)base.n, (long long)t->n_targets);
	return on_two(d, "add", scores, on_const_real(d, on_dt(d, scores),
						LIST(d, base.n), base.at));
}

void onnx_tree_ensemble(node *d)
{
	static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC",
		"SOFTMAX_ZERO", "PROBIT"};
	ensemble t = {.d = d, .x = ml_rows(d, 0),
		.n_targets = on_int(d, "n_targets", 1)};
	int64_t how = on_bound(d, "aggregate_function",
		on_int(d, "aggregate_function", 1), 0, 3);
	int64_t then = on_bound(d, "post_transform",
		on_int(d, "post_transform", 0), 0, 4);

	on_ignore(d, "nodes_hitrates");
	read_nodes(&t);
	check_trees(&t);
	on_set(d, 0, ml_transform(d, aggregated(&t, (int32_t)how),
			     transforms[then]));
}

void onnx_tree_regressor(node *d)
{
	static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
	const char *name = on_text(d, "aggregate_function", "SUM");
	ensemble t = {.d = d, .x = ml_rows(d, 0),
		.n_targets = on_int(d, "n_targets", 1)};
	int32_t how = 0, o;

	while (how < 4 && strcmp(name, names[how]) != 0)
		how++;
	if (how == 4)
		on_fail(d, "onnx.attr", "aggregate_function is \"%.50s\"; "
			"accepted are AVERAGE, SUM, MIN and MAX", name);
	read_old(&t, "target");
	check_trees(&t);
	o = on_base(&t, aggregated(&t, how));
	o = ml_transform(d, o, on_text(d, "post_transform", "NONE"));
	on_set_elem(d, 0, on_cast_to(d, o, TN_F32), onnx_dtype_elem(TN_F32));
}

/*
 * Of two classes, all leaves may vote for number 0: that is then the score of the
 * second class. The first has what is missing to 1 if all weights are positive,
 * so that they are probabilities; else the negative.
 */
static int32_t of_second(ensemble *t, const char *then, int32_t *label)
{
	node *d = t->d;
	bool positive = true;
	int32_t s, part[2];
	tn_dtype type;

	for (int32_t i = 0; i < t->vote.n; i++)
		positive = positive && t->vote.at[i].weight >= 0;
	t->n_targets = 1;
	check_trees(t);
	s = on_base(t, aggregated(t, 1));
	type = on_dt(d, s);
	*label = on_two(d, "gt", s, on_scalar(d, type, positive ? 0.5 : 0));
	*label = on_reshape(d, *label, LIST(d, on_extent(d, s, 0)));
	part[1] = s;
	part[0] = positive && (!strcmp(then, "NONE") || !strcmp(then, "PROBIT"))
		? on_two(d, "sub", on_scalar(d, type, 1), s)
		: row(d, "neg", A(s));
	return on_concat(d, 2, part, 1);
}

void onnx_tree_classifier(node *d)
{
	ensemble t = {.d = d, .x = ml_rows(d, 0)};
	const char *then = on_text(d, "post_transform", "NONE");
	list l = ml_labels(d, "classlabels_int64s", "classlabels_strings");
	bool one = l.n == 2;
	int32_t o, label;

	read_old(&t, "class");
	t.n_targets = l.n;
	for (int32_t i = 0; i < t.vote.n; i++)
		one = one && t.vote.at[i].target == 0;
	if (one) {
		o = of_second(&t, then, &label);
		label = on_cast_to(d, label, TN_I64);
		label = rowa(d, "take", A(on_const_ints(d, l), label),
			INT("axis", 0));
	} else {
		check_trees(&t);
		o = on_base(&t, aggregated(&t, 1));
		label = ml_label(d, o, l);
	}
	ml_set_label(d, label, "classlabels_strings");
	o = ml_transform(d, o, then);
	on_set_elem(d, 1, on_cast_to(d, o, TN_F32), onnx_dtype_elem(TN_F32));
}
