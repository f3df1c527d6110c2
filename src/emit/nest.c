/*
 * nest.c: loops. A node's variable has an interval, known or as C text; FOR
 * walks it, BLOCK cuts it, SPAN restricts it. A vector loop is a loop over
 * whole vectors, perhaps several at a time, and one over the elements left:
 *
 *   for (; i0 + 64 <= hi; i0 += 64)   4 vectors, 4 accumulators
 *   for (; i0 + 16 <= hi; i0 += 16)
 *   for (; i0 + 8 <= hi; i0 += 8)     where so many are known to be left
 *   for (; i0 < hi; i0++)
 */
#include "emit/local.h"

#include <inttypes.h>

enum { LEAST_LANES = 4 };

struct marks em_mark(const emitter *em)
{
	return (struct marks){em->memo.n, em->fun.n, em->def.n, em->facts.n,
		em->digit.n};
}

void em_release(emitter *em, struct marks m)
{
	int32_t i;

	for (i = m.def; i < em->def.n; i++)
		if (!em->def.at[i].used)
			em_line(em, "(void)%s;", em->def.at[i].v.t);
	em->memo.n = m.memo;
	em->fun.n = m.fun;
	em->def.n = m.def;
	em->digit.n = m.digit;
	em->facts.n = m.facts;
	em->dom->n_facts = m.facts;
	em->dom->facts = em->facts.at;
}

void em_declare_registers(emitter *em, const loop_node *scope)
{
	int32_t i;

	for (i = 0; i < em->k->n_bufs; i++) {
		const loop_buf *b = &em->k->buf[i];
		val v = {NULL, b->dtype, em->lanes, 0};

		if (b->scope != loop_first(scope) ||
			(scope == NULL && b->phase != em->phase) ||
			b->where != LOOP_REGISTER || !em->named[i])
			continue;
		if (v.dt == TN_BOOL && em->lanes > 1)
			v.mask = em_mask_bytes(em);
		em_line(em, em->lanes > 1 ? "%s r%d = { 0 };" : "%s r%d = 0;",
			em_val_type(em, v), i);
		if (em->k->eqn[b->eqn].e->monoid == IR_SET)
			em_line(em, "(void)r%d;", i); /* perhaps known */
	}
}

static void body(emitter *em, const loop_node *n)
{
	struct marks m = em_mark(em);

	em_declare_registers(em, n);
	em_nest(em, n->child, n->n_child);
	em_release(em, m);
}

/* Inside, lo <= var < hi. */
static void add_fact(emitter *em, int32_t var, int64_t lo, int64_t hi)
{
	*vec_push(em->a, &em->facts) =
		(ix_fact){ix_axis(em->s->x, em->dom, var), lo, hi};
	em->dom->facts = em->facts.at;
	em->dom->n_facts = em->facts.n;
}

/* few iterations, written one after the other */
bool em_is_unrolled(const emitter *em, const loop_node *n)
{
	return n->lanes <= 1 && !n->backward &&
	       em->span[n->var].len == n->unroll;
}

struct invariants {
	emitter *em;
	loop_set inner; /* loops to be opened */
	bool digits;	/* only those of the lanes */
};

static void hoist(void *arg, const expr *e)
{
	const struct invariants *h = arg;
	emitter *em = h->em;
	int32_t n;
	val v;

	if (e->kind != EX_INSIDE || ix_has_fun(e->form) ||
		!em_form_varies(em, e->form))
		return;
	em_lane_digits(em, e->form);
	if (h->digits || (loop_form_vars(e->form) & h->inner) != 0)
		return;
	n = em->memo.n;
	v = em_ex(em, e);
	if (v.lanes > 1 && em->memo.n > n)
		em_line(em, "(void)%s;", v.t);
}

static void hoist_below(struct invariants h, const loop_node *n)
{
	if (n->kind == LOOP_FOR || n->kind == LOOP_BLOCK)
		h.inner |= (loop_set)1 << n->var;
	if (n->kind == LOOP_STMT) {
		const loop_eqn *e = &h.em->k->eqn[n->eqn];

		for (int32_t i = 0; i < e->e->n_out; i++)
			loop_walk(h.em->a, e->body[i], hoist, &h);
	}
	for (int32_t i = 0; i < n->n_child && n->kind != LOOP_TILE; i++)
		hoist_below(h, n->child[i]);
}

/*
 * Masks of the lanes that no loop from n on changes are made in front of it: a
 * window's mask once for all channels. The C compiler does not see that.
 */
static void masks_in_front(emitter *em, const loop_node *n, bool digits)
{
	if (em->lanes > 1 && em->path.n == 0)
		hoist_below((struct invariants){em, 0, digits}, n);
}

static void one_by_one(emitter *em, const loop_node *n, const char *from)
{
	const struct span *s = &em->span[n->var];
	const char *v = em->var[n->var];
	struct marks m = em_mark(em);
	int64_t i;

	if (from[0] != '\0' && em_is_unrolled(em, n)) {
		masks_in_front(em, n, true);
		m = em_mark(em);
		for (i = 0; i < s->len; i++) {
			em_line(em, "{");
			em->depth++;
			if (s->clo >= 0)
				add_fact(em, n->var, s->clo + i,
					s->clo + i + 1);
			em->var[n->var] = s->clo >= 0 ? "" : from;
			em->plus[n->var] = (s->clo >= 0 ? s->clo : 0) + i;
			body(em, n);
			em_release(em, m);
			em->depth--;
			em_line(em, "}");
		}
		em->var[n->var] = v;
		em->plus[n->var] = 0;
		return;
	}
	masks_in_front(em, n, false);
	if (n->backward)
		em_line(em, "for (i64 %s = %s - 1; %s >= %s; %s--) {", v, s->hi,
			v, from, v);
	else if (from[0] == '\0')
		em_line(em, "for (; %s < %s; %s++) {", v, s->hi, v);
	else
		em_line(em, "for (i64 %s = %s; %s < %s; %s++) {", v, from, v,
			s->hi, v);
	em->depth++;
	body(em, n);
	em->depth--;
	em_line(em, "}");
	em_release(em, m);
}

/* What later vectors read is asked for. */
static void ahead(emitter *em, const loop_node *n)
{
	int32_t i;

	for (i = 0; i < n->n_ahead; i++) {
		const loop_ahead *a = &n->ahead[i];
		int32_t p = loop_param(em->k, a->tensor);

		em->used_param[p] = true;
		em_line(em, "__builtin_prefetch(&p%d[%s], 0, %d);", p,
			em_form_text(em, a->at, NULL), a->far ? 2 : 3);
	}
}

/* `unroll` vectors, each with accumulators of its own */
static void vectors(emitter *em, const loop_node *n, int32_t unroll)
{
	const char *v = em->var[n->var], *hi = em->span[n->var].hi;
	int32_t u, step = unroll * em->lanes, i;

	if (n->unroll <= 1 && em->span[n->var].len >= em->lanes)
		em_open_windows(em, n);
	em_line(em, "for (; %s + %d <= %s; %s += %d) {", v, step, hi, v, step);
	em->depth++;
	for (u = 0; u < unroll; u++) {
		for (i = 0; i < em->acc.n; i++)
			em->acc.at[i].turn = u % em->acc.at[i].n;
		em->plus[n->var] = (int64_t)u * em->lanes;
		if (unroll > 1) {
			em_line(em, "{");
			em->depth++;
		}
		ahead(em, n);
		em_move_windows(em, true);
		body(em, n);
		em_move_windows(em, false);
		if (unroll > 1) {
			em->depth--;
			em_line(em, "}");
		}
	}
	em->plus[n->var] = 0;
	em->window.n = 0;
	em->depth--;
	em_line(em, "}");
}

/* Does something below add up along the variable? */
static bool adds_along(const emitter *em, const loop_node *n, int32_t var)
{
	if (!loop_is_loop(n))
		return (n->kind != LOOP_STMT && n->kind != LOOP_INIT &&
			       n->kind != LOOP_DONE) ||
		       (em->k->eqn[n->eqn].reduced >> var & 1) != 0;
	for (int32_t i = 0; i < n->n_child; i++)
		if (adds_along(em, n->child[i], var))
			return true;
	return false;
}

/* Of `left` elements behind the vectors those that fill shorter ones. */
static int64_t short_vectors(emitter *em, const loop_node *n, int64_t left)
{
	if (adds_along(em, n, n->var))
		return left;
	for (em->lanes = n->lanes / 2; em->lanes >= LEAST_LANES; em->lanes /= 2)
		if (left >= em->lanes) {
			vectors(em, n, 1);
			left -= em->lanes;
		}
	return left;
}

/* The elements behind the vectors as one that is no whole one. */
static void part_vector(emitter *em, const loop_node *n, int64_t left)
{
	struct marks m = em_mark(em);

	em->lanes = n->lanes;
	while (em->lanes / 2 >= left && em->lanes / 2 >= LEAST_LANES)
		em->lanes /= 2;
	em->dead = em->lanes - (int32_t)left;
	masks_in_front(em, n, false);
	body(em, n);
	em_release(em, m);
	em->dead = 0;
}

/*
 * What whole vectors leave of a piece, where only the last piece is no multiple
 * of them, as one vector more; 0: it is not known, or not to be.
 */
static int64_t last_part(const emitter *em, const loop_node *n)
{
	const struct span *s = &em->span[n->var];

	return s->most > 0 && s->most % n->lanes == 0 &&
			       loop_may_part(em->k, n)
		       ? s->rest % n->lanes
		       : 0;
}

static void vector_for(emitter *em, const loop_node *n)
{
	struct span *s = &em->span[n->var];
	int32_t first = em->acc.n, unroll = n->unroll > 1 ? n->unroll : 1;
	struct marks m = em_mark(em);
	int64_t left = s->len, min, max;

	ix_range(em->dom, ix_axis(em->s->x, em->dom, n->var), &min, &max);
	if (left < 0 && max - min + 1 < n->lanes) { /* a piece, cut again */
		one_by_one(em, n, s->lo);
		return;
	}
	em_line(em, "{");
	em->depth++;
	em_line(em, "i64 %s = %s;", em->var[n->var], s->lo);
	em->vvar = n->var;
	em->lanes = n->lanes;
	if (s->len >= 0 && s->len < (int64_t)unroll * n->lanes)
		unroll = 1;
	if (s->len < 0 || s->len >= n->lanes) {
		em_open_lane_accs(em, n, unroll);
		if (unroll > 1) {
			vectors(em, n, unroll);
			if (left >= 0)
				left %= (int64_t)unroll * n->lanes;
		}
		if (left < 0 || left >= n->lanes)
			vectors(em, n, 1);
		em_close_lane_accs(em, first);
		if (left >= 0)
			left %= n->lanes;
	}
	if (left > 1 && loop_may_part(em->k, n)) {
		part_vector(em, n, left);
		left = 0;
	} else if (left < 0 && last_part(em, n) > 1) {
		em_line(em, "if (%s < %s) {", em->var[n->var], s->hi);
		em->depth++;
		part_vector(em, n, last_part(em, n));
		em->depth--;
		em_line(em, "}");
		left = 0;
	} else if (left > 0) {
		left = short_vectors(em, n, left);
	}
	em->lanes = 1;
	em->vvar = -1;
	em_release(em, m);
	if (left > 0 || (left < 0 && (s->whole == 0 || s->whole % n->lanes != 0)))
		one_by_one(em, n, "");
	em->depth--;
	em_line(em, "}");
}

/* Iterations of a chunk loop; those of chunk loops inside it. */
static int64_t n_pieces(const emitter *em, const loop_node *n)
{
	int64_t ext = em->k->var[n->var].extent;

	return n->kind == LOOP_FOR ? ext : (ext + n->size - 1) / n->size;
}

static int64_t pieces_inside(const emitter *em, const loop_node *n)
{
	int64_t p = 1;

	while (n->n_child == 1) {
		n = n->child[0];
		if (n->parallel)
			p *= n_pieces(em, n);
	}
	return p;
}

static const char *number_of_chunk(emitter *em, const loop_node *n)
{
	int64_t inside = pieces_inside(em, n);
	const char *t = "chunk";

	if (inside > 1)
		t = arena_printf(em->a, "chunk / %" PRId64, inside);
	if (n->up != NULL)
		t = arena_printf(em->a, "%s %% %" PRId64, t, n_pieces(em, n));
	return t;
}

/* The ends of the loop where all that it is clipped to holds. */
static void clip(emitter *em, const loop_node *n)
{
	ix *x = em->s->x;
	struct span *s = &em->span[n->var];

	for (int32_t i = 0; i < n->n_clip; i++) {
		const loop_clip *c = &n->clip[i];
		const ix_form *rest = c->rest, *from, *to;
		const char *lo = em_fresh(em, "s"), *hi = em_fresh(em, "s");
		const ix_fact fact = {c->f, c->lo, c->hi};

		em_load_funs(em, rest);
		if (c->stride > 0) { /* lo - rest <= var < hi - rest */
			from = ix_sub(x, em->dom, ix_const(x, c->lo), rest);
			to = ix_sub(x, em->dom, ix_const(x, c->hi), rest);
		} else { /* rest - hi < var <= rest - lo */
			from = ix_sub(x, em->dom, rest, ix_const(x, c->hi - 1));
			to = ix_sub(x, em->dom, rest, ix_const(x, c->lo - 1));
		}
		em_line(em, "const i64 %s = %s(%s, %s);", lo,
			em_own(em, "later_i64"), s->lo,
			em_form_text(em, from, NULL));
		em_line(em, "const i64 %s = %s(%s, %s);", hi,
			em_own(em, "sooner_i64"), s->hi,
			em_form_text(em, to, NULL));
		*s = (struct span){lo, hi, -1, -1, -1, 1, 0, 0, 0};
		*vec_push(em->a, &em->facts) = fact;
	}
	em->dom->facts = em->facts.at;
	em->dom->n_facts = em->facts.n;
}

static void for_loop(emitter *em, const loop_node *n);

static void clipped(emitter *em, const loop_node *n)
{
	struct span old = em->span[n->var];
	struct marks m = em_mark(em);
	loop_node all = *n;

	all.n_clip = 0;
	em_line(em, "{");
	em->depth++;
	if (n->parallel) {
		em_line(em, "const i64 %s = %s;", em->var[n->var],
			number_of_chunk(em, n));
		em->span[n->var].lo = em->var[n->var];
		em->span[n->var].hi = arena_printf(
			em->a, "(%s + 1)", em->var[n->var]);
		clip(em, n);
		em_line(em, "if (%s < %s) {", em->span[n->var].lo,
			em->span[n->var].hi);
		em->depth++;
		body(em, n);
		em->depth--;
		em_line(em, "}");
	} else {
		clip(em, n);
		for_loop(em, &all);
	}
	em_release(em, m);
	em->span[n->var] = old;
	em->depth--;
	em_line(em, "}");
}

static void walk(emitter *em, const loop_node *n)
{
	if (n->lanes > 1)
		vector_for(em, n);
	else
		one_by_one(em, n, em->span[n->var].lo);
}

/* What is left of an interval, in front of what is needed or behind it, where
 * the guard's form lies within these bounds. */
static void fill(emitter *em, const loop_node *n, struct span s, int64_t lo,
	int64_t hi)
{
	struct marks m = em_mark(em);
	loop_node one = *n; /* constants need no more */

	one.unroll = 0;
	em->span[n->var] = s;
	*vec_push(em->a, &em->facts) = (ix_fact){n->need[0].f, lo, hi};
	em->dom->facts = em->facts.at;
	em->dom->n_facts = em->facts.n;
	walk(em, &one);
	em_release(em, m);
}

static void fill_outside(emitter *em, const loop_node *n, struct span old)
{
	struct span s = em->span[n->var], left = old;
	const ix_fact *f = &n->need[0];
	int64_t min, max, stride;

	ix_range(em->dom, f->f, &min, &max);
	loop_stride(f->f, n->var, em->k->var[n->var].extent, &stride);
	left.clo = left.chi = left.len = -1;
	left.mult = 1;
	left.whole = s.whole;
	left.most = 0;
	if (strcmp(s.lo, old.lo) != 0) {
		left.hi = arena_printf(em->a, "%s(%s, %s)",
			em_own(em, "sooner_i64"), s.lo, old.hi);
		fill(em, n, left, stride > 0 ? min : f->hi,
			stride > 0 ? f->lo : max + 1);
	}
	if (strcmp(s.hi, old.hi) != 0) {
		left.lo = s.hi;
		left.hi = old.hi;
		fill(em, n, left, stride > 0 ? f->hi : min,
			stride > 0 ? max + 1 : f->lo);
	}
	em->span[n->var] = s;
}

static void for_loop(emitter *em, const loop_node *n)
{
	struct span old = em->span[n->var];

	if (n->n_clip > 0) {
		clipped(em, n);
		return;
	}
	em_narrow(em, n);

	if (n->parallel) {
		em_line(em, "const i64 %s = %s;", em->var[n->var],
			number_of_chunk(em, n));
		em_declare_registers(em, n);
		em_nest(em, n->child, n->n_child);
		return;
	}
	if (n->n_needs > 0 && n->fills)
		fill_outside(em, n, old);
	walk(em, n);
	em->span[n->var] = old;
}

/* All of the loop is in this block: its ends stay what is known of them. */
static void only_block(emitter *em, const loop_node *n, const char *b)
{
	struct marks m = em_mark(em);

	if (!n->parallel) {
		em_line(em, "{");
		em->depth++;
	}
	em_line(em, "const i64 %s = %" PRId64 ";", b, em->span[n->var].clo);
	em_line(em, "(void)%s;", b);
	em_declare_registers(em, n);
	em_nest(em, n->child, n->n_child);
	if (!n->parallel) {
		em_release(em, m);
		em->depth--;
		em_line(em, "}");
	}
}

/* How long pieces of an interval of one known length are, or of two. */
static void pieces(struct span *s, const struct span *old, int64_t size)
{
	int64_t most = old->len >= 0 ? old->len : old->most;
	int64_t rest = old->len >= 0 ? old->len : old->rest;

	if (most < size) {
		s->most = most;
		s->rest = rest;
	} else if (old->len >= 0 || most % size == 0) {
		s->most = size;
		s->rest = rest % size;
	}
}

static void block(emitter *em, const loop_node *n)
{
	struct span old = em->span[n->var], *s = &em->span[n->var];
	const loop_node *u;
	const char *b, *end, *size;
	int64_t mult = gcd_i64(old.mult, n->size);
	int32_t level = 0;
	struct marks m = em_mark(em);

	for (u = n->up; u != NULL; u = u->up)
		level += u->kind == LOOP_BLOCK && u->var == n->var;
	b = arena_printf(em->a, "b%d_%d", n->var, level);
	end = arena_printf(em->a, "e%d_%d", n->var, level);
	size = arena_printf(em->a, "%" PRId64, n->size);
	if (old.clo >= 0 && old.len <= n->size && n->number < 0) {
		only_block(em, n, b);
		return;
	}
	if (n->parallel) {
		em_line(em, "const i64 %s = %s(%s) * %s;", b, "",
			number_of_chunk(em, n), size);
	} else {
		em_line(em, "for (i64 %s = %s; %s < %s; %s += %s) {", b, old.lo,
			b, old.hi, b, size);
		em->depth++;
	}
	if (n->number >= 0)
		em_line(em, "const i64 %s = %s / %s;", em->var[n->number], b,
			size);
	if (old.len >= 0 && old.len % n->size == 0) {
		end = arena_printf(em->a, "(%s + %s)", b, size);
		*s = (struct span){b, end, -1, -1, n->size, mult, 0, 0, 0};
	} else {
		*s = (struct span){b, end, -1, -1, -1, mult, 0, 0, 0};
		pieces(s, &old, n->size);
		em_line(em, "const i64 %s = %s + %s < %s ? %s + %s : %s;", end,
			b, size, old.hi, b, size, old.hi);
	}
	em_declare_registers(em, n);
	em_nest(em, n->child, n->n_child);
	*s = old;
	if (!n->parallel) {
		em_release(em, m);
		em->depth--;
		em_line(em, "}");
	}
}

/* What its length is a multiple of; 1: not known. */
static int64_t length_of(const struct span *s)
{
	if (s->len >= 0)
		return s->len;
	if (s->most > 0)
		return gcd_i64(s->most, s->rest);
	return s->whole > 0 ? s->whole : 1;
}

static void span(emitter *em, const loop_node *n)
{
	struct span old = em->span[n->var], *s = &em->span[n->var];
	struct marks m = em_mark(em);
	int64_t ends = gcd_i64(n->lo, n->hi);

	s->mult = gcd_i64(old.mult, n->lo);
	if (old.clo >= 0) {
		em_line(em, "{");
		s->clo = n->lo > old.clo ? n->lo : old.clo;
		s->chi = n->hi < old.chi ? n->hi : old.chi;
		s->len = s->chi > s->clo ? s->chi - s->clo : 0;
		s->lo = arena_printf(em->a, "%" PRId64, s->clo);
		s->hi = arena_printf(em->a, "%" PRId64, s->chi);
	} else {
		s->len = -1;
		s->whole = gcd_i64(gcd_i64(old.mult, ends), length_of(&old));
		s->most = 0;
		s->lo = em_fresh(em, "s");
		s->hi = em_fresh(em, "s");
		em_line(em,
			"const i64 %s = %s > %" PRId64 " ? %s : %" PRId64 ";",
			s->lo, old.lo, n->lo, old.lo, n->lo);
		em_line(em,
			"const i64 %s = %s < %" PRId64 " ? %s : %" PRId64 ";",
			s->hi, old.hi, n->hi, old.hi, n->hi);
		em_line(em, "if (%s < %s) {", s->lo, s->hi);
	}
	em->depth++;
	add_fact(em, n->var, n->lo, n->hi);
	em_declare_registers(em, n);
	em_nest(em, n->child, n->n_child);
	em_release(em, m);
	*s = old;
	em->depth--;
	em_line(em, "}");
}

enum { MAX_HELD = 8 };

void em_nest(emitter *em, loop_node *const *list, int32_t n)
{
	int32_t until[MAX_HELD], eqn[MAX_HELD], held = 0;

	for (int32_t i = 0; i < n; i++) {
		const loop_node *c = list[i];

		if (c->kind == LOOP_FOR)
			for_loop(em, c);
		else if (c->kind == LOOP_BLOCK)
			block(em, c);
		else if (c->kind == LOOP_SPAN)
			span(em, c);
		else if (c->kind == LOOP_INIT && held < MAX_HELD &&
			 (until[held] = em_hold_until(em, list, n, i)) >= 0) {
			eqn[held++] = c->eqn;
			em_init(em, c, true);
		} else
			em_leaf(em, c);
		for (int32_t k = 0; k < held; k++)
			if (until[k] == i)
				em_let_go(em, eqn[k]);
	}
}
