/*
 * leaf.c: statements: initialise, compute and store, accumulate, complete.
 *
 * A reduction over the variable that the lanes walk is spread on accumulators
 * of one vector each; they are combined pairwise, then their lanes in halves,
 * then with what was accumulated so far: always in that order.
 */
#include "emit/local.h"

#include <inttypes.h>

static void comment(emitter *em, const loop_node *n)
{
	const char *l = loop_label(&em->k->eqn[n->eqn]), *p;
	str s = str_new(em->a);

	for (p = l; *p != '\0'; p++)
		str_addc(&s,
			(*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
					(*p >= '0' && *p <= '9') || *p == '.'
				? *p
				: '_');
	em_line(em, "/* %s%s */", s.at,
		n->kind == LOOP_INIT   ? ", start"
		: n->kind == LOOP_DONE ? ", end"
		: n->kind == LOOP_PART ? ", this part"
		: n->kind == LOOP_JOIN ? ", all parts"
		: n->kind == LOOP_SCALE ? ", scaled"
				       : "");
}

/* in what, and how, values are combined */
struct how {
	const loop_eqn *e;
	const tn_dtype *acc;
	bool next; /* y is one element, behind all in x */
};

static val combine(emitter *em, struct how h, int32_t comp, const val *x,
	const val *y)
{
	int32_t n = em->memo.n, i, m = h.e->e->n_out;
	val v;

	for (i = 0; i < m; i++) {
		em->param[i] = x[i];
		em->param[IR_MAX_COMP + i] = y[i];
	}
	v = em_ex(em, (h.next ? ir_combine_next : ir_combine)(em->s,
		h.e->e->monoid, comp, h.acc));
	em->memo.n = n;
	return em_cast(em, v, h.acc[comp]);
}

static struct place_of target(emitter *em, int32_t eqn, int32_t comp)
{
	const loop_eqn *e = &em->k->eqn[eqn];

	return em_place_tensor(em, e->e->out[comp], e->at, false);
}

static void set(emitter *em, const loop_node *n)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	val v[IR_MAX_COMP];
	int32_t i;

	for (i = 0; i < e->e->n_out; i++) {
		struct place_of m;

		if (e->stage) {
			m = em_place_tensor(em, e->e->out[i], e->at, true);
			v[i] = em_load(em, &m, false);
			continue;
		}
		v[i] = em_cast(em, em_ex(em, e->body[i]),
			em->s->tensor.at[e->e->out[i]].dtype);
	}
	for (i = 0; i < e->e->n_out; i++) {
		struct place_of p = target(em, n->eqn, i);
		bool reg = p.buf != NULL && p.buf->where == LOOP_REGISTER;

		if (!reg || em->named[p.n_buf])
			em_store(em, &p, v[i]);
		if (e->scan_var >= 0)
			em_forget(em, e->e->out[i]);
		*vec_push(em->a, &em->def) = (struct def){e->e->out[i],
			reg ? NULL : e->at, v[i], !reg || em->named[p.n_buf]};
	}
}

/* holds: in a variable, from here on */
void em_init(emitter *em, const loop_node *n, bool holds)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	val v[IR_MAX_COMP];
	int32_t i;

	comment(em, n);
	for (i = 0; i < e->e->n_out; i++) {
		const expr *x = e->init[i] != NULL && e->n_parts == 0
					? e->init[i]
					: ir_identity(em->s, e->e->monoid, i,
						  e->acc[i]);

		v[i] = em_cast(em, em_ex(em, x), e->acc[i]);
	}
	if (holds)
		em_hold(em, n->eqn, v);
	for (i = 0; !holds && i < e->e->n_out; i++) {
		struct place_of p = em_place_tensor(
			em, e->e->out[i], e->start_at, false);

		em_store(em, &p, v[i]);
	}
}

static struct lane_acc *find_acc(emitter *em, int32_t eqn)
{
	int32_t i;

	for (i = em->acc.n - 1; i >= 0 && em->lanes > 1; i--)
		if (em->acc.at[i].eqn == eqn)
			return &em->acc.at[i];
	return NULL;
}

static const char *acc_name(
	emitter *em, const struct lane_acc *l, int32_t comp, int32_t turn)
{
	return arena_printf(em->a, "%s_%d", l->name[comp], turn);
}

static val acc_val(
	emitter *em, const struct lane_acc *l, int32_t comp, int32_t turn)
{
	val v = {acc_name(em, l, comp, turn), em_computed(l->acc[comp]),
		em->lanes, 0};

	if (v.dt == TN_BOOL)
		v.mask = em_mask_bytes(em);
	return v;
}

static val as_acc(emitter *em, val v)
{
	return v.dt == TN_BOOL ? em_to_mask(em, v, em_mask_bytes(em))
			       : em_to_lanes(em, v);
}

/* Is the index of every element larger than those accumulated before it? */
static bool in_order(const emitter *em, const loop_node *n, bool fresh)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	const loop_node *u;
	int32_t i, v = __builtin_ctzll(e->reduced | (loop_set)1 << 63);
	int64_t s;

	if (e->push || e->scan_var >= 0 || e->reduced != (loop_set)1 << v)
		return false;
	for (i = 0; i < e->e->n_out; i++) {
		if (e->init[i] != NULL && !fresh)
			return false;
		if (ir_monoid_at(e->e->monoid)->comp[i] == 'K' &&
			(e->body[i]->kind != EX_INDEX ||
				ix_has_fun(e->body[i]->form) ||
				!loop_stride(e->body[i]->form, v,
					em->k->var[v].extent, &s) ||
				s < 1))
			return false;
	}
	for (u = n->up; u != NULL; u = u->up)
		if (u->var == v && u->backward)
			return false;
	return true;
}

static void accumulate(emitter *em, const loop_node *n)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	struct lane_acc *l = find_acc(em, n->eqn);
	const val *held = em_held(em, n->eqn);
	struct how h = {e, l != NULL ? l->acc : e->acc,
		in_order(em, n, l != NULL)};
	struct place_of p[IR_MAX_COMP];
	val x[IR_MAX_COMP], y[IR_MAX_COMP], z[IR_MAX_COMP];
	bool open = false;
	int32_t i, m = e->e->n_out;

	if (e->push) {
		int64_t min, max;
		int64_t numel = em->s->tensor.at[e->e->out[0]].numel;

		em_load_funs(em, e->at);
		ix_range(em->dom, e->at, &min, &max);
		open = min < 0 || max >= numel;
		if (open) {
			em_line(em, "if (%s >= 0 && %s < %" PRId64 ") {",
				em_form_text(em, e->at, NULL),
				em_form_text(em, e->at, NULL), numel);
			em->depth++;
		}
	}
	for (i = 0; i < m; i++)
		y[i] = em_cast(em,
			h.acc[i] == e->acc[i]
				? em_ex(em, e->body[i])
				: em_index(em, e->body[i]->form, h.acc[i]),
			h.acc[i]);
	for (i = 0; i < m; i++) {
		if (l == NULL && held == NULL)
			p[i] = target(em, n->eqn, i);
		x[i] = l != NULL      ? acc_val(em, l, i, l->turn)
		       : held != NULL ? held[i]
				      : em_load(em, &p[i], false);
	}
	for (i = 0; i < m; i++)
		z[i] = combine(em, h, i, x, y);
	for (i = 0; i < m; i++) {
		if (l == NULL && held == NULL)
			em_store(em, &p[i], z[i]);
		else
			em_line(em, "%s = %s;", x[i].t,
				em->lanes > 1 ? as_acc(em, z[i]).t : z[i].t);
	}
	if (open) {
		em->depth--;
		em_line(em, "}");
	}
}

static void done(emitter *em, const loop_node *n)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	int32_t i;

	for (i = 0; i < e->e->n_out; i++) {
		int32_t t = e->e->out[i];
		struct place_of from, to;

		if (em->k->buf_of[n->eqn][i] < 0 || loop_param(em->k, t) < 0)
			continue;
		from = em_place_tensor(em, t, e->start_at, false);
		to = em_place_tensor(em, t, e->start_at, true);
		em_store(em, &to,
			em_cast(em, em_load(em, &from, false),
				em->s->tensor.at[t].dtype));
	}
}

static void scale(emitter *em, const loop_node *n)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	struct place_of p = target(em, n->eqn, 0);
	int32_t memo = em->memo.n;

	em->param[0] = em_load(em, &p, false);
	em_store(em, &p, em_cast(em, em_ex(em, n->finish), e->acc[0]));
	em->memo.n = memo;
}

static const char *parts(emitter *em, const loop_eqn *e, int32_t comp)
{
	const char *n = em_fresh(em, "q"),
		   *t = em_type(em, em_computed(e->acc[comp]), 1);

	em_line(em, "%s *const %s = (void *)((char *)scratch + %" PRId64 ");",
		t, n, e->part_at[comp]);
	return n;
}

/* Number of the block that n is in: of the loop that was split. */
static const char *part_number(
	emitter *em, const loop_node *n, const loop_eqn *e)
{
	while (n->kind != LOOP_BLOCK ||
		(e->reduced & ((loop_set)1 << n->var)) == 0)
		n = n->up;
	return arena_printf(em->a, "b%d_0 / %" PRId64, n->var, n->size);
}

static void part(emitter *em, const loop_node *n)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	int32_t i;

	for (i = 0; i < e->e->n_out; i++) {
		int32_t t = e->e->out[i];
		struct place_of from = em_place_tensor(em, t, e->at, false);
		struct place_of to = {.param = -1,
			.at = e->at,
			.dtype = em_computed(e->acc[i]),
			.base = arena_printf(em->a, "%s[%" PRId64 " * (%s) + ",
				parts(em, e, i), em->s->tensor.at[t].numel,
				part_number(em, n, e))};

		em_address(em, &to);
		em_store(em, &to, em_load(em, &from, false));
	}
}

/* The elements at hand of all blocks, first to last. */
static void join(emitter *em, const loop_node *n)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	val x[IR_MAX_COMP], y[IR_MAX_COMP], z[IR_MAX_COMP];
	const char *c = em_fresh(em, "c"), *q[IR_MAX_COMP];
	int32_t i, m = e->e->n_out;

	for (i = 0; i < m; i++) {
		const expr *f = e->init[i] != NULL
					? e->init[i]
					: ir_identity(em->s, e->e->monoid, i,
						  e->acc[i]);

		q[i] = parts(em, e, i);
		x[i] = em_cast(em, em_ex(em, f), e->acc[i]);
		if (em->lanes > 1)
			x[i] = as_acc(em, x[i]);
		y[i] = x[i];
		x[i].t = em_fresh(em, "a");
		em_line(em, "%s %s = %s;", em_val_type(em, x[i]), x[i].t,
			y[i].t);
	}
	em_line(em, "for (i64 %s = 0; %s < %" PRId64 "; %s++) {", c, c,
		e->n_parts, c);
	em->depth++;
	for (i = 0; i < m; i++) {
		struct place_of from = {.param = -1,
			.at = e->at,
			.dtype = em_computed(e->acc[i]),
			.base = arena_printf(em->a, "%s[%" PRId64 " * %s + ",
				q[i], em->s->tensor.at[e->e->out[i]].numel, c)};

		em_address(em, &from);
		y[i] = em_load(em, &from, false);
	}
	for (i = 0; i < m; i++)
		z[i] = combine(em, (struct how){e, e->acc, false}, i, x, y);
	for (i = 0; i < m; i++)
		em_line(em, "%s = %s;", x[i].t,
			em->lanes > 1 ? as_acc(em, z[i]).t : z[i].t);
	em->depth--;
	em_line(em, "}");
	for (i = 0; i < m; i++) {
		int32_t t = e->e->out[i];
		struct place_of to;

		if (loop_param(em->k, t) < 0)
			continue; /* a component that nobody reads */
		to = em_place_tensor(em, t, e->at, true);

		em_store(em, &to, em_cast(em, x[i], em->s->tensor.at[t].dtype));
	}
}

/* Reductions over the loop's variable into a place that it does not walk. */
static void find_accs(
	emitter *em, const loop_node *loop, const loop_node *n, int32_t unroll)
{
	int32_t i;

	if (n->kind == LOOP_STMT) {
		const loop_eqn *e = &em->k->eqn[n->eqn];
		struct lane_acc l = {
			.eqn = n->eqn, .n = unroll, .turn = 0};

		if (e->e->monoid == IR_SET ||
			(e->reduced >> loop->var & 1) == 0)
			return;
		for (i = 0; i < e->e->n_out; i++) {
			l.name[i] = em_fresh(em, "a");
			l.acc[i] = loop_lane_acc(em->k, e, i);
		}
		*vec_push(em->a, &em->acc) = l;
	}
	for (i = 0; i < n->n_child; i++)
		find_accs(em, loop, n->child[i], unroll);
}

/* lanes are set already */
void em_open_lane_accs(emitter *em, const loop_node *loop, int32_t unroll)
{
	int32_t i = em->acc.n, j, u;

	find_accs(em, loop, loop, unroll);
	for (; i < em->acc.n; i++) {
		const struct lane_acc *l = &em->acc.at[i];
		const loop_eqn *e = &em->k->eqn[l->eqn];

		for (j = 0; j < e->e->n_out; j++) {
			val v = em_ex(em,
				ir_identity(em->s, e->e->monoid, j, l->acc[j]));

			v = as_acc(em, v);
			for (u = 0; u < unroll; u++)
				em_line(em, "%s %s = %s;", em_val_type(em, v),
					acc_name(em, l, j, u), v.t);
		}
	}
}

/* x combined with y in every lane, in place of x */
static void fold(emitter *em, struct how h, val *x, const val *y)
{
	val z[IR_MAX_COMP];
	int32_t i;

	for (i = 0; i < h.e->e->n_out; i++)
		z[i] = combine(em, h, i, x, y);
	for (i = 0; i < h.e->e->n_out; i++)
		x[i] = em->lanes > 1 ? as_acc(em, z[i]) : z[i];
}

static val shuffled(emitter *em, val x, int32_t half)
{
	str s = str_new(em->a);
	int32_t i;

	str_printf(&s, "__builtin_shufflevector(%s, %s", x.t, x.t);
	for (i = 0; i < em->lanes; i++)
		str_printf(&s, ", %d", (i + half) % em->lanes);
	str_add(&s, ")");
	x.t = s.at;
	return em_name_val(em, x);
}

static void close_acc(emitter *em, const struct lane_acc *l)
{
	const loop_eqn *e = &em->k->eqn[l->eqn];
	struct how h = {e, l->acc, false};
	val x[IR_MAX_COMP], y[IR_MAX_COMP], old[IR_MAX_COMP];
	int32_t i, u, step, half, lanes = em->lanes, m = e->e->n_out;

	for (step = 1; step < l->n; step *= 2)
		for (u = 0; u + step < l->n; u += 2 * step) {
			for (i = 0; i < m; i++) {
				x[i] = acc_val(em, l, i, u);
				y[i] = acc_val(em, l, i, u + step);
			}
			fold(em, h, x, y);
			for (i = 0; i < m; i++)
				em_line(em, "%s = %s;", acc_name(em, l, i, u),
					x[i].t);
		}
	for (i = 0; i < m; i++)
		x[i] = acc_val(em, l, i, 0);
	for (half = lanes / 2; half > 0; half /= 2) {
		for (i = 0; i < m; i++)
			y[i] = shuffled(em, x[i], half);
		fold(em, h, x, y);
	}
	em->lanes = 1;
	for (i = 0; i < m; i++) {
		struct place_of p = target(em, l->eqn, i);

		y[i] = em_val_of(
			arena_printf(em->a,
				x[i].dt == TN_BOOL ? "%s[0] != 0" : "%s[0]",
				x[i].t),
			x[i].dt);
		y[i] = em_cast(em, em_name_val(em, y[i]), e->acc[i]);
		old[i] = em_load(em, &p, false);
	}
	h.acc = e->acc;
	fold(em, h, old, y);
	for (i = 0; i < m; i++) {
		struct place_of p = target(em, l->eqn, i);

		em_store(em, &p, old[i]);
	}
	em->lanes = lanes;
}

void em_close_lane_accs(emitter *em, int32_t first)
{
	int32_t i;

	for (i = first; i < em->acc.n; i++)
		close_acc(em, &em->acc.at[i]);
	em->acc.n = first;
}

/* A square tile as it is turned: what is read along i is written along j. */
struct square {
	emitter *em;
	const loop_node *n;
	struct place_of to, from;
	int32_t iv, jv;
	int64_t ri, step; /* between rows of what is written, and of what is read */
};

/* for (; i + 16 <= ihi; i += 16), by registers */
static void whole_squares(const struct square *q)
{
	emitter *em = q->em;
	const char *i = em->var[q->iv];
	int32_t w = q->n->lanes;
	const char *turn = em_own(
		em, arena_printf(em->a, "transpose_%sx%d",
			    dtype_name(q->to.dtype), w));

	em_type(em, q->to.dtype, w);
	em_use(em, "load", q->to.dtype, w);
	em_use(em, "store", q->to.dtype, w);
	em_line(em, "for (; %s + %d <= %s; %s += %d) {", i, w,
		em->span[q->iv].hi, i, w);
	em->depth++;
	for (int32_t b = 0; b < q->n->n_ahead; b++) {
		em_line(em, "for (int k = 0; k < %d; k++)", w);
		em_line(em,
			"	__builtin_prefetch(&p%d[%s + %" PRId64
			" * k], 0, 2);",
			q->from.param,
			em_form_text(em, q->n->ahead[b].at, NULL), q->step);
	}
	em_line(em, "%s(&%s, %" PRId64 ", &%s, %" PRId64 ");", turn,
		em_element(em, &q->to, NULL), q->ri,
		em_element(em, &q->from, NULL), q->step);
	em->depth--;
	em_line(em, "}");
}

/* From i on, j as far as its tile goes, element by element. */
static void left_over(const struct square *q, const char *end)
{
	emitter *em = q->em;
	const char *i = em->var[q->iv], *j = em->var[q->jv];

	em_line(em, "for (; %s < %s; %s++)", i, em->span[q->iv].hi, i);
	em_line(em, "	for (i64 k = %s; k < %s; k++)", j, end);
	em->var[q->jv] = "k";
	em_line(em, "		%s = %s;", em_element(em, &q->to, NULL),
		em_element(em, &q->from, NULL));
	em->var[q->jv] = j;
}

/*
 * Squares by registers; what is left at the sides element by element. Where it
 * is known that nothing is left there is no code for it: C compilers look into
 * loops that are never reached, and find that they do not end.
 */
static void transpose(emitter *em, const loop_node *n)
{
	const loop_eqn *e = &em->k->eqn[n->eqn];
	const expr *r = e->body[0];
	struct square q = {em, n,
		em_place_tensor(em, e->e->out[0], e->at, false),
		em_place_tensor(em, r->tensor, r->form, true), n->var,
		n->row_var >= 0 ? n->row_var : n->up->var, 0, 0};
	struct span old = em->span[q.jv];
	const struct span *is = &em->span[q.iv], *js = &em->span[q.jv];
	int32_t w = n->lanes;
	const char *i = em->var[q.iv], *j = em->var[q.jv];
	int64_t rj = 0;

	loop_stride(r->form, q.jv, em->k->var[q.jv].extent, &q.step);
	for (int32_t b = 0; b < q.to.buf->n_vars; b++) {
		if (q.to.buf->var[b] == q.iv)
			q.ri = q.to.buf->stride[b];
		if (q.to.buf->var[b] == q.jv)
			rj = q.to.buf->stride[b];
	}
	if (rj != 1)
		emit_bug(em, "a transposed tile lies across", "");
	em_narrow(em, n); /* all of it, or nothing */
	em_line(em, "for (i64 %s = %s; %s < %s; %s += %d) {", j, js->lo, j,
		js->hi, j, w);
	em->depth++;
	em_line(em, "i64 %s = %s;", i, is->lo);
	if (old.len < 0 || old.len % w != 0) {
		em_line(em, "if (%s + %d > %s) {", j, w, js->hi);
		em->depth++;
		left_over(&q, js->hi);
		em_line(em, "continue;");
		em->depth--;
		em_line(em, "}");
	}
	if (is->len < 0 || is->len >= w)
		whole_squares(&q);
	if (is->len < 0 || is->len % w != 0)
		left_over(&q, arena_printf(em->a, "%s + %d", j, w));
	em->span[q.jv] = old;
	em->depth--;
	em_line(em, "}");
}

void em_leaf(emitter *em, const loop_node *n)
{
	if (n->kind != LOOP_INIT)
		comment(em, n);
	switch (n->kind) {
	case LOOP_INIT:
		em_init(em, n, false);
		break;
	case LOOP_DONE:
		done(em, n);
		break;
	case LOOP_STMT:
		if (em->k->eqn[n->eqn].e->monoid == IR_SET)
			set(em, n);
		else
			accumulate(em, n);
		break;
	case LOOP_PART:
		part(em, n);
		break;
	case LOOP_JOIN:
		join(em, n);
		break;
	case LOOP_SCALE:
		scale(em, n);
		break;
	case LOOP_STAGE:
		transpose(em, n);
		break;
	case LOOP_TILE:
		em_tile(em, n);
		break;
	case LOOP_FOR:
	case LOOP_BLOCK:
	case LOOP_SPAN:
		emit_bug(em, "no statement", "");
	}
}
