/*
 * fuse_gen.c: random systems in pull form.
 *
 * Operations draw their operands mostly from the last few tensors, so that
 * chains, diamonds and several readers of one tensor are frequent; outputs are
 * what nobody reads and a few others. Some inputs are overwritten.
 */
#include "fuse_draft.h"

uint64_t prop_next(prop_random *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int32_t prop_below(prop_random *r, int32_t n)
{
	return (int32_t)(prop_next(r) % (uint64_t)n);
}

bool prop_chance(prop_random *r, int32_t percent)
{
	return prop_below(r, 100) < percent;
}

static void elementwise(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	draft w;

	start(&w, g, "map");
	letters(&w, st.rank, st.shape, where);
	end(&w, "m", st.rank, st.shape, unary(g, read(&w, t, where)));
}

static void combine(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8], *other[8];
	int32_t b = -1;
	draft w;

	for (int32_t i = 0; i < 12 && b < 0; i++) {
		int32_t c = pick(g);

		if (fits(g, t, c) && (c != t || i > 8))
			b = c;
	}
	if (b < 0)
		b = t;
	start(&w, g, "join");
	letters(&w, st.rank, st.shape, where);
	for (int32_t i = 0; i < tensor(g, b)->rank; i++)
		other[i] = tensor(g, b)->shape[i] == 1
				   ? ix_const(g->x, 0)
				   : where[st.rank - tensor(g, b)->rank + i];
	end(&w, "j", st.rank, st.shape,
		binary(g, read(&w, t, where), read(&w, b, other)));
}

/* Reduce over some axes; kept axes have extent 1 or go. Sometimes argmax. */
static void reduce(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	int32_t l[8], rank = 0, mask = below(g, 1 << st.rank);
	int64_t shape[8];
	bool keep = chance(g, 70), tuple = chance(g, 15);
	draft w;

	if (mask == 0)
		mask = 1 << (st.rank - 1);
	start(&w, g, tuple ? "argmax" : "reduce");
	for (int32_t i = 0; i < st.rank; i++) {
		if (mask >> i & 1) {
			if (keep)
				shape[rank++] = 1;
			continue;
		}
		l[i] = letter(&w, st.shape[i], AXIS_P);
		shape[rank++] = st.shape[i];
	}
	for (int32_t i = 0; i < st.rank; i++)
		if (mask >> i & 1)
			l[i] = letter(&w, st.shape[i], AXIS_R);
	for (int32_t i = 0; i < st.rank; i++)
		where[i] = at(&w, l[i]);
	w.e.monoid = tuple	   ? IR_ARGMAX
		     : below(g, 2) ? IR_SUM
		     : below(g, 2) ? IR_MAX
				   : IR_MIN;
	if (!tuple) {
		end(&w, "r", rank, shape, read(&w, t, where));
		return;
	}
	w.e.n_out = 2;
	w.e.body[1] = ex_index(
		g->s, ix_linearise(g->x, &w.d, st.rank, st.shape, where));
	w.e.out[1] = new_tensor(g, "k", rank, shape);
	end(&w, "v", rank, shape, read(&w, t, where));
	*vec_push(g->a, &g->pool) = w.e.out[1];
}

/* o[t] = x[t] + o[t - 1] along one axis, or + o[t + 1] */
static void scan(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8], *before[8];
	int32_t axis = below(g, st.rank), out;
	int64_t n = st.shape[axis], step = chance(g, 70) ? 1 : -1;
	const expr *own, *guard;
	ix_fact fact;
	ix_dom d;
	draft w;

	if (n == 1) {
		elementwise(g, t);
		return;
	}
	start(&w, g, "scan");
	for (int32_t i = 0; i < st.rank; i++)
		letter(&w, st.shape[i], i == axis ? AXIS_S : AXIS_P);
	for (int32_t i = 0; i < st.rank; i++)
		before[i] = where[i] = at(&w, i);
	w.e.scan_axis = w.axis_of[axis];
	w.e.scan_step = (int32_t)step;
	out = new_tensor(g, "s", st.rank, st.shape);
	fact = (ix_fact){.f = where[axis],
		.lo = step > 0 ? 1 : 0,
		.hi = step > 0 ? n : n - 1};
	d = w.d;
	d.n_facts = 1;
	d.facts = &fact;
	before[axis] = ix_addc(g->x, where[axis], -step);
	guard = ex_inside(g->s, where[axis], fact.lo, fact.hi);
	own = ex_select(
		g->s, guard, read_in(&w, &d, out, before), number(g, 0));
	w.e.out[0] = out;
	w.e.body[0] = call(
		g, chance(g, 60) ? "add" : "max", read(&w, t, where), own);
	ir_add_eqn(g->s, &w.e);
	*vec_push(g->a, &g->pool) = out;
}

/* another shape of as many elements */
static int32_t split_shape(gen *g, int64_t n, int64_t *shape)
{
	int32_t rank = 0;

	while (n > 1 && rank < 3) {
		int64_t f = 1;

		for (int32_t i = 0; i < 8 && f == 1; i++) {
			int64_t q = 2 + below(g, 7);

			if (n % q == 0)
				f = q;
		}
		if (f == 1)
			break;
		shape[rank++] = f;
		n /= f;
	}
	if (n > 1 || rank == 0)
		shape[rank++] = n;
	return rank;
}

static void reshape(gen *g, int32_t t)
{
	int64_t shape[8];
	int32_t rank = split_shape(g, tensor(g, t)->numel, shape);
	const ix_form *where[8];
	draft w;

	start(&w, g, "reshape");
	letters(&w, rank, shape, where);
	end(&w, "h", rank, shape,
		ex_read(g->s, t, ix_linearise(g->x, &w.d, rank, shape, where)));
}

static void transpose(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8], *from[8];
	int64_t shape[8];
	int32_t perm[8];
	draft w;

	for (int32_t i = 0; i < st.rank; i++)
		perm[i] = i;
	for (int32_t i = st.rank - 1; i > 0; i--) {
		int32_t k = below(g, i + 1), p = perm[i];

		perm[i] = perm[k];
		perm[k] = p;
	}
	for (int32_t i = 0; i < st.rank; i++)
		shape[i] = st.shape[perm[i]];
	start(&w, g, "transpose");
	letters(&w, st.rank, shape, where);
	for (int32_t i = 0; i < st.rank; i++)
		from[perm[i]] = where[i];
	end(&w, "t", st.rank, shape, read(&w, t, from));
}

/* a slice with a step, or the axis turned round, or both ends padded */
static void window_of(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	int64_t shape[8], n;
	int32_t axis = below(g, st.rank), kind = below(g, 3);
	const expr *body;
	ix_fact fact;
	draft w;

	memcpy(shape, st.shape, sizeof shape);
	n = shape[axis];
	if (kind == 0) {
		int64_t from = below(g, (int32_t)n), step = 1 + below(g, 2);

		shape[axis] = (n - from + step - 1) / step;
		start(&w, g, "slice");
		letters(&w, st.rank, shape, where);
		where[axis] = ix_addc(
			g->x, ix_scale(g->x, where[axis], step), from);
		body = read(&w, t, where);
	} else if (kind == 1) {
		start(&w, g, "flip");
		letters(&w, st.rank, shape, where);
		where[axis] = ix_addc(
			g->x, ix_scale(g->x, where[axis], -1), n - 1);
		body = read(&w, t, where);
	} else {
		int64_t lo = below(g, 3);

		shape[axis] = n + lo + below(g, 3);
		start(&w, g, "pad");
		letters(&w, st.rank, shape, where);
		fact = (ix_fact){.f = where[axis], .lo = lo, .hi = lo + n};
		where[axis] = ix_addc(g->x, where[axis], -lo);
		w.d.n_facts = 1;
		w.d.facts = &fact;
		body = ex_select(g->s,
			ex_inside(g->s, fact.f, fact.lo, fact.hi),
			read(&w, t, where), number(g, 7));
	}
	end(&w, "w", st.rank, shape, body);
}

static void concat(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	int32_t axis = below(g, st.rank), b = -1;
	int64_t shape[8], n = st.shape[axis];
	ix_fact yes, no;
	const expr *first, *second;
	draft w;

	for (int32_t i = 0; i < 10 && b < 0; i++) {
		int32_t c = pick(g);
		bool same = tensor(g, c)->rank == st.rank;

		for (int32_t k = 0; same && k < st.rank; k++)
			same = k == axis ||
			       tensor(g, c)->shape[k] == st.shape[k];
		if (same)
			b = c;
	}
	if (b < 0)
		b = t;
	memcpy(shape, st.shape, sizeof shape);
	shape[axis] = n + tensor(g, b)->shape[axis];
	start(&w, g, "concat");
	letters(&w, st.rank, shape, where);
	yes = (ix_fact){.f = where[axis], .lo = 0, .hi = n};
	no = (ix_fact){.f = where[axis], .lo = n, .hi = shape[axis]};
	w.d.n_facts = 1;
	w.d.facts = &yes;
	first = read(&w, t, where);
	w.d.facts = &no;
	where[axis] = ix_addc(g->x, where[axis], -n);
	second = read(&w, b, where);
	end(&w, "c", st.rank, shape,
		ex_select(g->s, ex_inside(g->s, yes.f, yes.lo, yes.hi), first,
			second));
}

/* sums of windows of three, zero outside */
static void slide(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	int32_t axis = below(g, st.rank), k;
	ix_fact fact;
	const expr *body;
	draft w;

	start(&w, g, "slide");
	letters(&w, st.rank, st.shape, where);
	k = letter(&w, 3, AXIS_R);
	where[axis] = ix_addc(
		g->x, ix_add(g->x, &w.d, where[axis], at(&w, k)), -1);
	fact = (ix_fact){.f = where[axis], .lo = 0, .hi = st.shape[axis]};
	w.d.n_facts = 1;
	w.d.facts = &fact;
	body = ex_select(g->s, ex_inside(g->s, fact.f, fact.lo, fact.hi),
		read(&w, t, where), number(g, 0));
	w.e.monoid = chance(g, 50) ? IR_SUM : IR_MAX;
	end(&w, "b", st.rank, st.shape, body);
}

/* index tensors have values below 4 */
static int32_t index_tensor(gen *g, int64_t n)
{
	int64_t shape[1] = {n};
	int32_t t;

	for (int32_t i = 0; i < g->index.n; i++)
		if (tensor(g, g->index.at[i])->numel == n && chance(g, 70))
			return g->index.at[i];
	t = input(g, "i", 1, shape);
	if (chance(g, 30)) { /* computed: 3 - ids, turned round */
		const ix_form *where[1];
		draft w;

		start(&w, g, "ids");
		letters(&w, 1, shape, where);
		if (n > 1)
			where[0] = ix_addc(
				g->x, ix_scale(g->x, where[0], -1), n - 1);
		t = end(&w, "i", 1, shape,
			chance(g, 50) ? read(&w, t, where)
				      : call(g, "sub", number(g, 3),
						read(&w, t, where)));
		(void)vec_pop(&g->pool);
	}
	*vec_push(g->a, &g->index) = t;
	return t;
}

static const ix_form *data(
	draft *w, int32_t ids, const ix_form *where, int64_t n)
{
	const ix_form *f = ix_fun(w->g->x, ids, where, 0, 4);

	return n < 4 ? ix_clamp(w->g->x, &w->d, f, 0, n - 1) : f;
}

static void gather(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	int32_t axis = below(g, st.rank), ids;
	int64_t shape[8];
	draft w;

	memcpy(shape, st.shape, sizeof shape);
	shape[axis] = 2 + below(g, 4);
	ids = index_tensor(g, shape[axis]);
	start(&w, g, "gather");
	letters(&w, st.rank, shape, where);
	where[axis] = data(&w, ids, where[axis], st.shape[axis]);
	end(&w, "g", st.rank, shape, read(&w, t, where));
}

/* o[..., ids[j], ...] += t[..., j, ...], over zeros or another tensor */
static void scatter(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8];
	int32_t axis = below(g, st.rank), ids, l[8];
	int64_t shape[8], numel = 1;
	draft w;

	memcpy(shape, st.shape, sizeof shape);
	shape[axis] = 2 + below(g, 4);
	for (int32_t i = 0; i < st.rank; i++)
		numel *= shape[i];
	ids = index_tensor(g, st.shape[axis]);
	start(&w, g, "scatter");
	for (int32_t i = 0; i < st.rank; i++)
		if (i != axis)
			l[i] = letter(&w, st.shape[i], AXIS_P);
	l[axis] = letter(&w, st.shape[axis], AXIS_R);
	for (int32_t i = 0; i < st.rank; i++)
		where[i] = at(&w, l[i]);
	w.e.body[0] = read(&w, t, where);
	where[axis] = data(&w, ids, where[axis], shape[axis]);
	w.e.push = ix_linearise(g->x, &w.d, st.rank, shape, where);
	w.e.monoid = chance(g, 70) ? IR_SUM : IR_MAX;
	for (int32_t i = 0; i < 10; i++) {
		int32_t c = pick(g);
		int64_t one[1] = {numel};
		ix_dom flat = {.box = {.n = 1, .extent = one}};

		if (tensor(g, c)->numel != numel || chance(g, 20))
			continue;
		w.e.init[0] = ex_read(g->s, c, ix_axis(g->x, &flat, 0));
		break;
	}
	end(&w, "u", st.rank, shape, w.e.body[0]);
}

/* o[.., m, n] += x[.., m, k] * y[k, n] or y[n, k]; y one more input or x */
static void matmul(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8], *other[2];
	int64_t shape[8], n, k = st.shape[st.rank - 1], two[2];
	int32_t y, ln, lk;
	bool turned = chance(g, 50);
	draft w;

	n = 2 + below(g, 3);
	two[turned] = k;
	two[!turned] = n;
	y = -1;
	for (int32_t i = 0; i < g->pool.n; i++) {
		const sys_tensor *q = tensor(g, g->pool.at[i]);

		if (q->rank == 2 && q->shape[turned] == k && chance(g, 60)) {
			y = g->pool.at[i];
			n = q->shape[!turned];
		}
	}
	if (y < 0)
		y = input(g, "y", 2, two);
	memcpy(shape, st.shape, sizeof shape);
	shape[st.rank - 1] = n;
	start(&w, g, "matmul");
	for (int32_t i = 0; i + 1 < st.rank; i++)
		letter(&w, st.shape[i], AXIS_P);
	ln = letter(&w, n, AXIS_P);
	lk = letter(&w, k, AXIS_R);
	for (int32_t i = 0; i + 1 < st.rank; i++)
		where[i] = at(&w, i);
	where[st.rank - 1] = at(&w, lk);
	other[turned] = at(&w, lk);
	other[!turned] = at(&w, ln);
	w.e.monoid = IR_SUM;
	end(&w, "d", st.rank, shape,
		call(g, "mul", read(&w, t, where), read(&w, y, other)));
}

/* x[i, i] */
static void diagonal(gen *g, int32_t t)
{
	const sys_tensor st = *tensor(g, t);
	const ix_form *where[8], *from[8];
	draft w;

	if (st.rank < 2 || st.shape[0] != st.shape[1]) {
		elementwise(g, t);
		return;
	}
	start(&w, g, "diagonal");
	letters(&w, st.rank - 1, st.shape + 1, where);
	from[0] = where[0];
	for (int32_t i = 1; i < st.rank; i++)
		from[i] = where[i - 1];
	end(&w, "q", st.rank - 1, st.shape + 1, unary(g, read(&w, t, from)));
}

static void operation(gen *g)
{
	int32_t t = pick(g), what = below(g, 100);

	if (what < 3 || (g->writes && chance(g, 10))) {
		fuse_write(g);
		return;
	}
	if (g->writes && chance(g, 35) && tensor(g, t)->rank > 0) {
		if (chance(g, 70))
			fuse_write_part(g);
		else
			fuse_part(g, chance(g, 50) ? t : fuse_alike(g, t));
		return;
	}
	if (tensor(g, t)->rank == 0) {
		elementwise(g, t);
		return;
	}
	if (what < 15)
		elementwise(g, t);
	else if (what < 40)
		combine(g, t);
	else if (what < 60)
		reduce(g, t);
	else if (what < 65)
		scan(g, t);
	else if (what < 71)
		reshape(g, t);
	else if (what < 77)
		transpose(g, t);
	else if (what < 83)
		window_of(g, t);
	else if (what < 86)
		concat(g, t);
	else if (what < 89)
		slide(g, t);
	else if (what < 92)
		gather(g, t);
	else if (what < 95)
		scatter(g, t);
	else if (what < 98)
		matmul(g, t);
	else
		diagonal(g, t);
}

/* t may be too large for another operation: it leaves the pool */
static void trim(gen *g)
{
	int32_t n = 0;

	for (int32_t i = 0; i < g->pool.n; i++)
		if (tensor(g, g->pool.at[i])->numel <= MAX_ELEMS &&
			tensor(g, g->pool.at[i])->rank <= 5)
			g->pool.at[n++] = g->pool.at[i];
	g->pool.n = n;
}

static void outputs(gen *g)
{
	ir_system *s = g->s;
	bool *used = arena_array(g->a, bool, s->tensor.n + 1);

	for (int32_t i = 0; i < s->eqn.n; i++) {
		const sys_eqn *e = &s->eqn.at[i];

		for (int32_t k = 0; k < e->n_out; k++) {
			ex_reads r = ex_list_reads(s, e->body[k]);

			for (int32_t j = 0; j < r.n; j++)
				used[r.at[j].tensor] |= r.at[j].tensor !=
							e->out[0];
			if (e->init[k] == NULL)
				continue;
			r = ex_list_reads(s, e->init[k]);
			for (int32_t j = 0; j < r.n; j++)
				used[r.at[j].tensor] = true;
		}
	}
	for (int32_t t = 0; t < s->tensor.n; t++) {
		sys_tensor *st = &s->tensor.at[t];

		if (st->eqn < 0 || (used[t] && !chance(g, 12)))
			continue;
		st->is_output = true;
		*vec_push(g->a, &s->output) = t;
	}
}

ir_system *prop_system(arena *a, prop_random *r, int32_t n_ops, bool writes)
{
	ix *x = ix_new(a);
	gen g = {.a = a,
		.r = r,
		.x = x,
		.s = ir_system_new(a, x),
		.writes = writes};

	g.n_base = 1 + below(&g, 3);
	for (int32_t i = 0; i < g.n_base; i++)
		*vec_push(a, &g.pool) = random_input(&g, 1 + below(&g, 3));
	if (chance(&g, 50)) { /* one more of the same shape */
		const sys_tensor st = *tensor(&g, g.pool.at[0]);

		*vec_push(a, &g.pool) = input(&g, "x", st.rank, st.shape);
	}
	while (g.s->eqn.n < n_ops) {
		int32_t before = g.s->eqn.n;

		operation(&g);
		trim(&g);
		if (g.pool.n == 0 || g.s->eqn.n == before)
			*vec_push(a, &g.pool) = random_input(
				&g, 1 + below(&g, 3));
	}
	outputs(&g);
	return g.s;
}
