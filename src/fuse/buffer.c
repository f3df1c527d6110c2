/*
 * buffer.c: the buffers of private tensors.
 *
 * Consumes the tree of a kernel; produces for each private tensor its scope (the
 * loop in each iteration of which it is computed again) and its subscripts:
 *
 *     for i { for j { t }; for k { o = f(t) } }   ->   t: scope i, subscript j
 *     for i { for j { t; o = f(t) } }             ->   t: scope j, a register
 *
 * The scope contains all statements that compute or read the tensor. A scan reads
 * results of earlier iterations, so its tensor is outside its loop.
 */
#include "fuse/inner.h"

typedef struct leaf {
	const fuse_node *node;
	int32_t n;
	const fuse_node **path; /* loops, outermost first */
} leaf;

typedef struct leaves {
	arena *a;
	VEC(leaf) at;
	const fuse_node *path[FUSE_MAX_NEST * 4];
} leaves;

static void collect(leaves *w, const fuse_node *n, int32_t depth)
{
	if (n->kind != FUSE_LOOP) {
		*vec_push(w->a, &w->at) = (leaf){.node = n,
			.n = depth,
			.path = arena_copy(w->a, w->path,
				(size_t)depth * sizeof *w->path)};
		return;
	}
	if (depth >= FUSE_MAX_NEST * 4)
		env_bug(arena_env(w->a), "fuse.buffer", "loops too deep");
	w->path[depth] = n;
	for (int32_t i = 0; i < n->n_child; i++)
		collect(w, n->child[i], depth + 1);
}

/* Does this leaf compute or read the tensor? An INIT, only if it reads it. */
static bool touches(fuse_state *f, const fuse_kernel *k, const leaf *l,
	int32_t maker, int32_t tensor)
{
	const eqn_unit *u = f->unit[k->eqn[l->node->eqn].source];
	bool init = l->node->kind == FUSE_INIT;

	if (l->node->eqn == maker)
		return true;
	for (int32_t i = 0; i < u->n_reads; i++)
		if (u->read[i].tensor == tensor && u->read[i].in_init == init)
			return true;
	return false;
}

static int32_t common(const leaf *a, const leaf *b, int32_t n)
{
	int32_t i = 0;

	while (i < n && i < a->n && i < b->n && a->path[i] == b->path[i])
		i++;
	return i;
}

/* The number of loops around all statements that compute or read the tensor. */
static int32_t scope_of(fuse_state *f, const fuse_kernel *k, const leaves *w,
	int32_t maker, int32_t tensor, const leaf **home)
{
	const leaf *first = NULL;
	int32_t n = 0;

	for (int32_t i = 0; i < w->at.n; i++) {
		const leaf *l = &w->at.at[i];

		if (!touches(f, k, l, maker, tensor))
			continue;
		n = first == NULL ? l->n : common(first, l, n);
		if (first == NULL)
			first = l;
	}
	*home = first;
	return n;
}

/* The tensor of a scan is needed after an iteration of the scan's loop. */
static int32_t before_scan(fuse_state *f, const fuse_kernel *k, int32_t eqn,
	const leaf *l, int32_t n)
{
	const fuse_eqn *e = &k->eqn[eqn];

	if (rule_dropped(f, FUSE_RULE_STATE) || e->e.scan_step == 0)
		return n;
	for (int32_t i = 0; i < n; i++) {
		const ix_form *at = e->axis_at[e->e.scan_axis];

		if (ix_uses_axis(at, l->path[i]->var))
			return i;
	}
	return n;
}

/* The vars of its elements that are not fixed at the scope, slowest first. */
static void subscripts(fuse_state *f, const fuse_kernel *k, const fuse_eqn *e,
	const leaf *home, int32_t n, fuse_buf *b)
{
	const ix_form *out = e->out_at;
	int32_t *var = arena_array(f->a, int32_t, out->n + 1);
	int64_t *coef = arena_array(fuse_scratch(f), int64_t, out->n + 1);

	for (int32_t t = 0; t < out->n; t++) {
		int32_t v = out->t[t].atom->axis, j = b->n_vars;
		bool fixed = false;

		for (int32_t p = 0; p < n; p++)
			fixed |= home->path[p]->var == v;
		if (fixed)
			continue;
		for (; j > 0 && coef[j - 1] < out->t[t].coef; j--) {
			var[j] = var[j - 1];
			coef[j] = coef[j - 1];
		}
		var[j] = v;
		coef[j] = out->t[t].coef;
		b->n_vars++;
		b->elems *= k->var[v].extent;
	}
	b->var = var;
}

void fuse_buffers(fuse_state *f, fuse_kernel *k, fuse_sees *visible, void *arg)
{
	leaves *w = arena_make(fuse_scratch(f), leaves);
	VEC(fuse_buf) buf = {0};

	w->a = fuse_scratch(f);
	for (int32_t i = 0; i < k->n_roots; i++)
		collect(w, k->root[i], 0);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const fuse_eqn *e = &k->eqn[i];

		for (int32_t c = 0; c < e->e.n_out && !k->opaque; c++) {
			fuse_buf b = {.tensor = e->e.out[c], .elems = 1};
			const leaf *home;
			int32_t n;

			if (visible(arg, b.tensor))
				continue;
			n = scope_of(f, k, w, i, b.tensor, &home);
			n = before_scan(f, k, i, home, n);
			b.scope = n == 0 ? NULL : home->path[n - 1];
			subscripts(f, k, e, home, n, &b);
			*vec_push(f->a, &buf) = b;
		}
	}
	k->n_bufs = buf.n;
	k->buf = buf.at;
}
