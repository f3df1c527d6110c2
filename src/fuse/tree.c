/*
 * tree.c: the loop tree of a set of equations.
 *
 * Consumes units that can be one kernel; produces its loops, such that a loop
 * walks each digit of each unit. Recursive: opens the loops that all members
 * share; then divides the members into groups that share further loops, which
 * become loop nests, one after another.
 *
 *     softmax   for i { init m; for j { m }; init s; for k { e; s }; for l { o } }
 *
 * Init(e) is outside the first loop that e reduces over, which may be outside
 * other loops of e: column sums are
 *
 *     for j { init s }; for i { for k { s += x } }
 */
#include "fuse/inner.h"

typedef VEC(fuse_node *) nodes;

typedef struct builder {
	fuse_state *f;
	arena *a;	/* of the kernel */
	arena *scratch; /* of the sets */
	fuse_kernel *k;
	VEC(fuse_var) var;
	bool *has_init;	   /* by equation: its INIT is in the tree already */
	part_member *last; /* by equation: the member, with the loops of all its digits */
} builder;

static fuse_node *node_new(builder *b, fuse_node_kind kind, int32_t number)
{
	fuse_node *n = arena_make(b->a, fuse_node);

	n->kind = kind;
	n->var = kind == FUSE_LOOP ? number : -1;
	n->eqn = kind == FUSE_LOOP ? -1 : number;
	return n;
}

static void seal(builder *b, fuse_node *n, const nodes *inside)
{
	n->n_child = inside->n;
	n->child = arena_copy(
		b->a, inside->at, (size_t)inside->n * sizeof(fuse_node *));
}

/* Wraps `inside` into loops over var[0] (outermost) .. var[n-1]; appends it to
 * out. */
static void wrap(
	builder *b, nodes *out, int32_t n, const int32_t *var, nodes *inside)
{
	if (n == 0) {
		for (int32_t i = 0; i < inside->n; i++)
			*vec_push(b->scratch, out) = inside->at[i];
		return;
	}
	for (int32_t i = n - 1; i >= 0; i--) {
		fuse_node *l = node_new(b, FUSE_LOOP, var[i]);

		seal(b, l, inside);
		*inside = (nodes){0};
		*vec_push(b->scratch, inside) = l;
	}
	*vec_push(b->scratch, out) = inside->at[0];
}

static int32_t var_new(builder *b, int64_t extent, axis_kind kind)
{
	*vec_push(b->a, &b->var) = (fuse_var){.extent = extent, .kind = kind};
	return b->var.n - 1;
}

static void check_depth(builder *b, int32_t depth)
{
	if (depth > FUSE_MAX_NEST)
		env_bug(b->f->env, "fuse.tree", "loops too deep");
}

/* ---- one equation alone ---- */

/* Joins free digits that are neighbours on one axis. */
static void join_free(part_member *m)
{
	for (int32_t i = 0; i + 1 < m->digit.n;) {
		part_digit *p = &m->digit.at[i], *q = p + 1;

		if (p->var >= 0 || q->var >= 0 || p->d.axis != q->d.axis) {
			i++;
			continue;
		}
		p->d.lo = q->d.lo;
		memmove(q, q + 1,
			(size_t)(m->digit.n - i - 2) * sizeof *m->digit.at);
		m->digit.n--;
	}
}

/* Opens loops over the free digits of a kind; appends their variables. */
static int32_t open_free(
	builder *b, part_member *m, int32_t which, int32_t n, int32_t *var)
{
	const eqn_unit *u = m->u;

	for (int32_t i = 0; i < m->digit.n; i++) {
		part_digit *d = &m->digit.at[i];
		axis_kind kind = u->e.axis[d->d.axis].kind;
		bool left = part_is_left(u, &d->d);
		int32_t is = !left ? 2 : kind == AXIS_S ? 1 : 0;

		if (d->var >= 0 || is != which)
			continue;
		d->var = var_new(b, d->d.hi / d->d.lo, is == 2 ? AXIS_R : kind);
		var[n++] = d->var;
	}
	return n;
}

static void put_alone(builder *b, part_member *m, nodes *out)
{
	int32_t var[IR_MAX_AXES * 8], n = 0, n_outer;
	nodes body = {0}, block = {0};

	if (m->digit.n > IR_MAX_AXES * 8)
		env_bug(b->f->env, "fuse.tree", "too many digits");
	join_free(m);
	n = open_free(b, m, 0, n, var);
	n_outer = n = open_free(b, m, 1, n, var);
	n = open_free(b, m, 2, n, var);
	*vec_push(b->scratch, &body) = node_new(b, FUSE_STMT, m->number);
	if (m->u->e.monoid != IR_SET && !b->has_init[m->number]) {
		b->has_init[m->number] = true;
		*vec_push(b->scratch, &block) = node_new(
			b, FUSE_INIT, m->number);
	}
	wrap(b, &block, n - n_outer, var + n_outer, &body);
	wrap(b, out, n_outer, var, &block);
	b->last[m->number] = *m;
}

/* ---- sets ---- */

static void build(builder *b, part_set *s, nodes *out, int32_t depth);

static void put_group(builder *b, part_set *s, nodes *out, int32_t depth)
{
	if (s->n == 1)
		put_alone(b, &s->m.at[0], out);
	else
		build(b, s, out, depth + 1);
}

static void put_groups(builder *b, part_set *s, nodes *out, int32_t depth)
{
	part_groups w = part_divide(b->f, b->scratch, s, b->var.n);

	for (int32_t g = 0; g < w.n; g++) {
		const part_group *o = &w.at[g];

		if (!o->gone)
			put_group(b,
				part_sub(b->f, b->scratch, s, o->member.n,
					o->member.at),
				out, depth);
	}
}

/* Adds the INITs of members whose first reduced digit is in a class from `mix` on. */
static void put_inits(builder *b, part_set *s, int32_t mix, nodes *out)
{
	for (int32_t i = 0; i < s->n; i++) {
		const part_member *m = &s->m.at[i];
		bool here = false;

		if (m->u->e.monoid == IR_SET || b->has_init[m->number])
			continue;
		for (int32_t k = mix; k < s->class.n; k++)
			here |= !part_is_left(
				m->u, &m->digit.at[s->class.at[k].digit[i]].d);
		if (!here)
			continue;
		b->has_init[m->number] = true;
		*vec_push(b->scratch, out) = node_new(b, FUSE_INIT, m->number);
	}
}

static bool class_is_mixed(const part_set *s, const part_class *k)
{
	for (int32_t i = 0; i < s->n; i++)
		if (!part_is_left(
			    s->m.at[i].u, &s->m.at[i].digit.at[k->digit[i]].d))
			return true;
	return false;
}

/* Bytes, in one iteration of the loops around, of values that members compute
 * for members that reduce along one of the classes. */
static int64_t bytes_for_reducers(builder *b, const part_set *s)
{
	int64_t sum = 0;

	for (int32_t i = 0; i < s->n; i++) {
		const part_member *p = &s->m.at[i];
		bool read = false;
		int64_t bytes = 0;

		for (int32_t j = 0; j < s->edge.n; j++) {
			const part_edge *e = &s->edge.at[j];

			for (int32_t k = 0; k < s->class.n && e->p == i; k++)
				read |= !e->is_write &&
					!part_is_left(s->m.at[e->c].u,
						&s->m.at[e->c]
							 .digit
							 .at[s->class.at[k]
									 .digit[e->c]]
							 .d);
		}
		if (!read)
			continue;
		bytes = (int64_t)dtype_size(
			b->f->s->tensor.at[p->u->e.out[0]].dtype);
		for (int32_t j = 0; j < p->digit.n; j++) {
			const part_digit *d = &p->digit.at[j];

			if (part_is_left(p->u, &d->d) && d->var < 0 &&
				!mul_ok(bytes, d->d.hi / d->d.lo, &bytes))
				return INT64_MAX;
		}
		if (!add_ok(sum, bytes, &sum))
			return INT64_MAX;
	}
	return sum;
}

/*
 * Can contractions be reduced along the loop that computes their operands, piece
 * by piece, because the operands do not fit the cache? For example the gradient
 * of keys along rows of scores: the square of scores is never stored.
 */
static bool mixes(builder *b, part_set *s)
{
	if (s->n < 2)
		return false;
	s->no_policy = true;
	part_refine(s);
	part_classes(b->f, s);
	for (int32_t i = 0; i < s->class.n; i++)
		if (s->class.at[i].kind == AXIS_S)
			return false;
	return s->class.n > 0 && bytes_for_reducers(b, s) >
		b->f->t->memory[MACHINE_L2].bytes / b->f->t->fusion.wait_part;
}

static part_set *all_of(builder *b, const part_set *s)
{
	int32_t *which = arena_array(b->scratch, int32_t, s->n + 1);

	for (int32_t i = 0; i < s->n; i++)
		which[i] = i;
	return part_sub(b->f, b->scratch, s, s->n, which);
}

static void put_inside(builder *b, part_set *s, nodes *out, int32_t depth)
{
	part_set *m = all_of(b, s);

	if (mixes(b, m))
		build(b, m, out, depth + 1);
	else
		put_groups(b, s, out, depth);
}

/* The loops of a set with its classes. */
static void open_classes(builder *b, part_set *s, nodes *out, int32_t depth)
{
	nodes inner = {0}, block = {0};
	int32_t *var, mix;

	check_depth(b, depth);
	if (s->class.n == 0) {
		if (s->n == 1)
			put_alone(b, &s->m.at[0], out);
		else
			put_groups(b, s, out, depth);
		return;
	}
	part_join(s);
	var = arena_array(b->scratch, int32_t, s->class.n);
	mix = s->class.n;
	for (int32_t i = 0; i < s->class.n; i++) {
		const part_class *k = &s->class.at[i];

		if (mix == s->class.n && class_is_mixed(s, k))
			mix = i;
		var[i] = var_new(b, k->extent, k->kind);
		for (int32_t j = 0; j < s->n; j++)
			s->m.at[j].digit.at[k->digit[j]].var = var[i];
	}
	put_inits(b, s, mix, &block);
	if (s->n == 1)
		put_alone(b, &s->m.at[0], &inner);
	else
		put_inside(b, s, &inner, depth);
	wrap(b, &block, s->class.n - mix, var + mix, &inner);
	wrap(b, out, mix, var, &block);
}

static void build(builder *b, part_set *s, nodes *out, int32_t depth)
{
	part_refine(s);
	part_classes(b->f, s);
	open_classes(b, s, out, depth);
}

/* ---- initial values ---- */

static bool on_path(int32_t n, const int32_t *path, int32_t var)
{
	for (int32_t i = 0; i < n; i++)
		if (path[i] == var)
			return true;
	return false;
}

typedef struct flat {
	int64_t lo, hi;
	int32_t var;
} flat;

typedef struct flats {
	int32_t n;
	flat at[IR_MAX_AXES * 4];
} flats;

/* The digits of the element number that loops around walk, by increasing lo. */
static void fixed_flats(
	const part_member *m, int32_t n_path, const int32_t *path, flats *w)
{
	w->n = 0;
	for (int32_t i = 0; i < m->digit.n; i++) {
		const part_digit *d = &m->digit.at[i];
		int32_t j = w->n;
		int64_t k;

		if (!part_is_left(m->u, &d->d) ||
			!on_path(n_path, path, d->var))
			continue;
		k = m->u->stride[d->d.axis];
		for (; j > 0 && w->at[j - 1].lo > k * d->d.lo; j--)
			w->at[j] = w->at[j - 1];
		w->at[j] = (flat){k * d->d.lo, k * d->d.hi, d->var};
		w->n++;
	}
}

/* A scatter clears its whole result: adds loops over the digits not walked. */
static int32_t push_init(builder *b, const part_member *m, int32_t n_path,
	const int32_t *path, int32_t *var, flats *w)
{
	int32_t n_fixed, n_var = 0;
	int64_t walked = 1;

	fixed_flats(m, n_path, path, w);
	n_fixed = w->n;
	for (int32_t i = 0; i <= n_fixed; i++) {
		int64_t to = i < n_fixed ? w->at[i].lo : m->u->out_elems;

		if (to > walked) {
			var[n_var] = var_new(b, to / walked, AXIS_P);
			w->at[w->n++] = (flat){walked, to, var[n_var++]};
		}
		walked = i < n_fixed ? w->at[i].hi : to;
	}
	for (int32_t i = 0; i < n_var / 2; i++) {
		int32_t t = var[i]; /* slowest first */

		var[i] = var[n_var - 1 - i];
		var[n_var - 1 - i] = t;
	}
	return n_var;
}

/* Wraps each INIT into loops over the digits that no loop around it walks. */
static void nest_inits(
	builder *b, nodes *list, int32_t n_path, int32_t *path, flats *scatter)
{
	check_depth(b, n_path);
	for (int32_t i = 0; i < list->n; i++) {
		fuse_node *n = list->at[i];
		int32_t var[IR_MAX_AXES * 4], n_var = 0;
		nodes one = {0}, out = {0};
		const part_member *m;

		if (n->kind == FUSE_STMT)
			continue;
		if (n->kind == FUSE_LOOP) {
			nodes inside = {.at = n->child, .n = n->n_child};

			path[n_path] = n->var;
			nest_inits(b, &inside, n_path + 1, path, scatter);
			continue;
		}
		m = &b->last[n->eqn];
		if (m->u->e.push != NULL) {
			n_var = push_init(
				b, m, n_path, path, var, &scatter[n->eqn]);
		} else {
			for (int32_t k = 0; k < m->digit.n; k++) {
				const part_digit *d = &m->digit.at[k];

				if (part_is_left(m->u, &d->d) &&
					!on_path(n_path, path, d->var))
					var[n_var++] = d->var;
			}
		}
		*vec_push(b->scratch, &one) = n;
		wrap(b, &out, n_var, var, &one);
		list->at[i] = out.at[0];
	}
}

/* ---- the kernel ---- */

static void solve(builder *b, const flats *scatter)
{
	fuse_kernel *k = b->k;
	ix *x = b->f->s->x;
	ix_dom d = {.box = {.n = k->n_vars, .extent = k->var_extent}};

	for (int32_t i = 0; i < k->n_eqns; i++) {
		const part_member *m = &b->last[i];
		const sys_eqn *e = &k->eqn[i].e;
		const ix_form **at = arena_array(
			b->a, const ix_form *, e->n_axes + 1);
		eqn_solved *digit = arena_array(
			b->scratch, eqn_solved, m->digit.n + 1);
		const ix_form *out = ix_const(x, 0);

		for (int32_t j = 0; j < m->digit.n; j++)
			digit[j] = (eqn_solved){.d = m->digit.at[j].d,
				.var = m->digit.at[j].var};
		eqn_solve(b->f->s, &d, e, m->digit.n, digit, at);
		k->eqn[i].axis_at = at;
		if (e->push == NULL) {
			for (int32_t j = 0; j < e->n_left; j++)
				out = ix_add(x, &d, out,
					ix_scale(x, at[j], m->u->stride[j]));
		} else {
			const flats *w = &scatter[i];

			for (int32_t j = 0; j < w->n; j++)
				out = ix_add(x, &d, out,
					ix_scale(x,
						ix_axis(x, &d, w->at[j].var),
						w->at[j].lo));
		}
		k->eqn[i].out_at = out;
	}
}

static void find_anchor(fuse_state *f, fuse_kernel *k, eqn_unit *const *unit)
{
	(void)f;
	for (int32_t i = 1; i < k->n_eqns; i++)
		if (unit[i]->volume > unit[k->anchor]->volume)
			k->anchor = i;
}

/* Builds the tree of the tail, or of the other members. */
static void build_part(
	builder *b, part_set *all, const bool *is_tail, bool tail, nodes *out)
{
	int32_t *which = arena_array(b->scratch, int32_t, all->n + 1), n = 0;
	part_set *s;

	for (int32_t i = 0; i < all->n; i++)
		if (is_tail[i] == tail)
			which[n++] = i;
	s = part_sub(b->f, b->scratch, all, n, which);
	build(b, s, out, 0);
	if (!tail)
		b->k->n_shared = s->class.n;
}

/* Builds one loop, or one loop and a tail, or small loop nests. */
/* s: of all units, with its classes */
static void build_all(
	builder *b, part_set *s, eqn_unit *const *unit, nodes *roots)
{
	int32_t n = s->n;
	bool *is_tail = arena_array(b->scratch, bool, n);
	fuse_kernel *k = b->k;
	int64_t volume = 0;

	for (int32_t i = 0; i < n; i++)
		volume += unit[i]->volume;
	if (n > 1 && s->class.n == 0 &&
		volume > b->f->t->fusion.serial_volume &&
		fuse_tail(b->f, n, unit, is_tail) > 0) {
		k->has_tail = true;
		for (int32_t i = 0; i < n; i++)
			k->eqn[i].tail = is_tail[i];
		build_part(b, s, is_tail, false, roots);
		build_part(b, s, is_tail, true, roots);
		return;
	}
	open_classes(b, s, roots, 0);
	k->n_shared = s->class.n;
	k->serial = s->class.n == 0;
}

static void begin(builder *b, int32_t n, eqn_unit *const *unit)
{
	fuse_kernel *k = arena_make(b->a, fuse_kernel);

	b->k = k;
	k->batch = -1;
	k->n_eqns = n;
	k->eqn = arena_array(b->a, fuse_eqn, n);
	for (int32_t i = 0; i < n; i++)
		k->eqn[i] = (fuse_eqn){
			.e = unit[i]->e, .source = unit[i]->source};
	b->has_init = arena_array(b->scratch, bool, n);
	b->last = arena_array(b->scratch, part_member, n);
}

/* Builds the loops; solve() adds the forms. */
static void build_loops(builder *b, part_set *s, eqn_unit *const *unit,
	nodes *roots, flats *scatter)
{
	int32_t path[FUSE_MAX_NEST + 2];

	build_all(b, s, unit, roots);
	nest_inits(b, roots, 0, path, scatter);
}

int32_t fuse_n_vars(fuse_state *f, int32_t n, eqn_unit *const *unit)
{
	arena *scratch = fuse_scratch(f);
	builder b = {.f = f, .a = scratch, .scratch = scratch};
	nodes roots = {0};
	part_set *s = part_new(f, scratch, n, unit);

	begin(&b, n, unit);
	part_refine(s);
	part_classes(f, s);
	build_loops(&b, s, unit, &roots, arena_array(scratch, flats, n));
	return b.var.n;
}

fuse_kernel *fuse_tree(fuse_state *f, int32_t n, eqn_unit *const *unit)
{
	arena *scratch = fuse_scratch(f);
	builder b = {.f = f, .a = f->a, .scratch = scratch};
	flats *scatter = arena_array(scratch, flats, n);
	nodes roots = {0};
	fuse_kernel *k;
	part_set *s;

	begin(&b, n, unit);
	k = b.k;
	find_anchor(f, k, unit);
	if (unit[0]->e.opaque != NULL) {
		k->opaque = true;
		return k;
	}
	s = part_new(f, scratch, n, unit);
	part_refine(s);
	part_classes(f, s);
	build_loops(&b, s, unit, &roots, scatter);
	k->n_roots = roots.n;
	k->root = arena_copy(
		f->a, roots.at, (size_t)roots.n * sizeof *roots.at);
	k->n_vars = b.var.n;
	k->var = b.var.at;
	k->var_extent = arena_array(f->a, int64_t, b.var.n + 1);
	for (int32_t i = 0; i < b.var.n; i++)
		k->var_extent[i] = b.var.at[i].extent;
	if (n == 1 || k->n_vars <= FUSE_MAX_VARS)
		solve(&b, scatter);
	return k;
}
