/*
 * estimate_memory.c: estimates the bytes that a phase moves, by level of memory.
 *
 * For each access below a node: the bytes that one run of the node accesses (its
 * footprint), and for each level the bytes that come from beyond it. A loop
 * multiplies the bytes that differ between its iterations. Bytes that do not
 * differ stay in the level if the footprint of one iteration fits it; else they
 * come again. Memory moves in lines: a single element costs its line, unless its
 * neighbours are used while the line is near.
 *
 * Lines that are a power of two apart share few sets of a memory: where these
 * are too many, none is still there when its next element is needed.
 *
 *   for i < 1000 { for j < 4096 { o[j] += x[4096 i + j] } }
 *   o: 16 KB, which comes to L1 once if 32 KB fit there; x: all of it, once
 */
#include "schedule/estimate_local.h"

enum { N_BEYOND = MACHINE_MAIN, MAX_WALKS = 8 };

/* Steps of so many bytes, between elements that one run accesses. */
typedef struct walk_bytes {
	int64_t bytes;
	double steps;
} walk_bytes;

typedef struct touch {
	int32_t tensor;
	const ix_form *at;
	loop_set vars;
	const loop_buf *b; /* NULL: in memory */
	double size, most; /* bytes of an element; of all elements */
	double foot;
	bool written;
	bool crowded; /* lines written do not all stay in their sets of L1 */
	double lost; /* stores to lines that are gone from L1 for that reason */
	double beyond[N_BEYOND]; /* bytes from beyond the level */
	walk_bytes walk[MAX_WALKS]; /* of loops inside, windows as one */
	int32_t n_walks;
} touch;

typedef VEC(touch) touches;

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* ---- leaves ---- */

typedef struct gather {
	estimate *w;
	touches *out;
	bool copies; /* estimate_copies */
	double part; /* of the iterations that access what is visited */
	map *seen;   /* expression -> number in parts */
	VEC(double) parts; /* of the iterations for which it was visited */
} gather;

/* Adds a part of a line to those of an access that were added before. */
static void add_part(touch *t, double line, double part)
{
	t->foot = least(t->foot + line * part, least(line, t->most));
	for (int32_t l = 0; l < N_BEYOND; l++)
		t->beyond[l] = t->foot;
}

/* done: a complete sum, which goes from its accumulator into memory */
static void add_touch(gather *g, int32_t tensor, const ix_form *at,
	bool written, bool done)
{
	double line = g->w->k->machine->product.line;
	loop_kernel *k = g->w->k;
	int32_t eqn, comp;
	double size = (double)dtype_size(k->s->tensor.at[tensor].dtype);
	touch t = {.tensor = tensor,
		.at = at,
		.vars = loop_form_vars(at),
		.written = written,
		.size = size,
		.most = size * (double)k->s->tensor.at[tensor].numel};

	done = done && loop_param(k, tensor) >= 0;
	if (!done && (written || !g->copies) &&
		loop_maker(k, tensor, &eqn, &comp) &&
		k->buf_of[eqn][comp] >= 0) {
		t.b = &k->buf[k->buf_of[eqn][comp]];
		if (t.b->where == LOOP_REGISTER || t.b->where == LOOP_HELD ||
			(t.b->where == LOOP_LOCAL && g->w->warps > 1))
			return; /* the last: in memory that warps share */
		t.most = (double)t.b->elems * size;
	}
	for (int32_t i = 0; i < g->out->n; i++)
		if (g->out->at[i].tensor == tensor &&
			g->out->at[i].vars == t.vars &&
			g->out->at[i].b == t.b) {
			/* neighbours, in the same lines */
			add_part(&g->out->at[i], line, g->part);
			return;
		}
	add_part(&t, line, g->part);
	*vec_push(g->w->a, g->out) = t;
}

/*
 * Adds what an expression reads. A select by a condition on indices reads for one
 * side only: a concat of many tensors reads each for a part of its iterations.
 */
static void add_reads(gather *g, const expr *e, double part)
{
	int64_t known = map_get(g->seen, &e->id, sizeof e->id, -1);
	estimate_guard guard = {.part = 1};
	bool chosen = false;

	if (part <= 0 || (known >= 0 && g->parts.at[known] >= part))
		return;
	map_set(g->seen, &e->id, sizeof e->id, g->parts.n);
	*vec_push(g->w->a, &g->parts) = part;
	if (e->kind == EX_READ) {
		g->part = part - (known >= 0 ? g->parts.at[known] : 0);
		add_touch(g, e->tensor, e->form, false, false);
		g->part = 1;
	}
	chosen = e->kind == EX_SELECT &&
		 estimate_is_guard(g->w, e->arg[0], &guard);
	for (int32_t i = 0; i < IR_MAX_ARGS && e->arg[i] != NULL; i++)
		add_reads(g, e->arg[i],
			!chosen || i == 0 ? part
			: i == 1	  ? part * guard.part
					  : part * (1 - guard.part));
}

static void leaf(estimate *w, const loop_node *n, touches *out)
{
	const loop_eqn *e = &w->k->eqn[n->eqn];
	gather g = {.w = w,
		.out = out,
		.copies = estimate_copies(w, e),
		.part = 1,
		.seen = map_new(w->a)};

	for (int32_t i = 0; i < e->e->n_out; i++) {
		if (n->kind == LOOP_TILE) {
			add_reads(&g, n->factor[0], 1);
			add_reads(&g, n->factor[1], 1);
		} else if (n->kind == LOOP_STMT || n->kind == LOOP_STAGE) {
			add_reads(&g, e->body[i], 1);
		}
		if (e->e->monoid == IR_SET || n->kind == LOOP_TILE ||
			e->push || w->k->buf_of[n->eqn][i] >= 0 ||
			(e->reduced != 0 && n->kind == LOOP_STMT))
			add_touch(&g, e->e->out[i], e->at, true, false);
		if (n->kind == LOOP_DONE)
			add_touch(&g, e->e->out[i], e->start_at, true, true);
	}
}

/* ---- loops ---- */

static bool is_around(const loop_node *n, const loop_node *inner)
{
	for (; inner != NULL; inner = inner->up)
		if (inner == n)
			return true;
	return false;
}

/* Bytes between two steps of the loop; -1: the steps are not known, 0: none. */
static int64_t bytes_of_step(const estimate *w, const loop_node *n,
	int32_t var, double size, const touch *t)
{
	int64_t s = 0;

	if ((t->vars & BIT(var)) == 0 ||
		(t->b != NULL && is_around(n, t->b->scope)))
		return 0;
	for (int32_t i = 0; t->b != NULL && i < t->b->n_vars; i++)
		if (t->b->var[i] == var)
			s = t->b->stride[i];
	if (s == 0 && !ix_stride(t->at, var, w->k->var[var].extent, &s))
		return -1;
	return (int64_t)((double)(s < 0 ? -s : s) * size * t->size);
}

/*
 * Do so many lines, so many bytes apart, share too few sets of L1? A line can
 * stand in one set only: address / line modulo the number of sets. Farther
 * memories have more sets than a page has lines: where a page lies decides.
 */
static bool is_crowded(const machine *m, double lines, int64_t apart)
{
	int64_t ways = m->product.ways, line = m->product.line;
	int64_t period = m->memory[MACHINE_L1].bytes / ways;
	int64_t step = gcd_i64(apart, period);

	if (apart <= line) /* neighbours: all sets, and their size decides */
		return false;
	return lines > (double)(period / (step > line ? step : line) * ways);
}

/*
 * The part of the elements of an iteration that the one before did not access. A
 * sliding window moves by fewer elements than it has:
 *
 *   for i { for k < 3 { x[64 i + 64 k + j] } }      a third
 *
 * Both loops together are then one walk, of a longer window, whichever is inside.
 */
static double new_part(touch *t, int64_t bytes, double trips)
{
	for (int32_t i = 0; i < t->n_walks; i++) {
		walk_bytes *l = &t->walk[i];
		double moves = (double)(bytes / l->bytes), was = l->steps;
		double back = (double)(l->bytes / bytes);

		if (bytes % l->bytes == 0 && moves <= was) {
			l->steps += (trips - 1) * moves;
			return moves / was;
		}
		if (l->bytes % bytes == 0 && back < trips) { /* the loop over the window is outside */
			*l = (walk_bytes){bytes, (was - 1) * back + trips};
			return (l->steps / was - 1) / (trips - 1);
		}
	}
	if (t->n_walks < MAX_WALKS && trips > 1)
		t->walk[t->n_walks++] = (walk_bytes){bytes, trips};
	return 1;
}

/* Does memory of that level hold so many bytes, `own` of them in arrays of a chunk?
 * Warps share the last cache, and each has arrays of its own. */
static bool is_near(const estimate *w, int32_t l, double bytes, double own)
{
	const machine *m = w->k->machine;

	if (l == MACHINE_L3 && m->block.warps > 1)
		bytes += own * (m->threads - 1);
	return bytes <= (double)m->memory[l].bytes;
}

/* The accesses of t iterations over var, in steps of `size`; `in`: those of one. */
static void repeat(estimate *w, const loop_node *n, int32_t var, double trips,
	double size, touches *in)
{
	double all = 0, own = 0, line = w->k->machine->product.line;

	for (int32_t i = 0; i < in->n; i++) {
		all += in->at[i].foot;
		own += in->at[i].b != NULL ? in->at[i].foot : 0;
	}
	for (int32_t i = 0; i < in->n; i++) {
		touch *t = &in->at[i];
		int64_t bytes = bytes_of_step(w, n, var, size, t);
		double step = bytes < 0 ? 1 : least(1, (double)bytes / line);
		double part = bytes > 0 ? new_part(t, bytes, trips) : 1;
		double more = step >= 1	 ? 1 + (trips - 1) * part
			      : step > 0 ? trips * step
					 : 1;

		if (more < 1)
			more = 1;
		for (int32_t l = 0; l < N_BEYOND; l++) {
			bool near = !(l == MACHINE_L1 && t->crowded) &&
				    is_near(w, l, all, own);

			/* a line is loaded again if its other elements are used too late */
			t->beyond[l] *= near ? more : trips;
		}
		if (t->lost > 0)
			t->lost *= trips;
		else if (t->written && t->crowded && step < 1 &&
			 all <= (double)w->k->machine->memory[0].bytes)
			t->lost = t->beyond[MACHINE_L1] / line;
		t->foot = least(t->foot * more, t->most);
		for (int32_t l = 0; l < N_BEYOND; l++)
			if (!(l == MACHINE_L1 && t->crowded) &&
				is_near(w, l, all * more, own * more))
				t->beyond[l] = least(t->beyond[l], t->foot);
		/* of reads the processor asks ahead */
		t->crowded |= t->written &&
			      is_crowded(w->k->machine, trips, bytes);
	}
}

/* An access to the same elements, compared by the loops around (open), because
 * each loop nest has separate variables inside. */
static touch *same_as(const touches *all, const touch *t, loop_set open)
{
	for (int32_t i = 0; i < all->n; i++)
		if (all->at[i].tensor == t->tensor &&
			all->at[i].b == t->b &&
			((all->at[i].vars ^ t->vars) & open) == 0)
			return &all->at[i];
	return NULL;
}

static loop_set open_at(const loop_node *n)
{
	loop_set s = 0;

	for (; n != NULL; n = n->up)
		if (n->var >= 0)
			s |= BIT(n->var);
	return s;
}

/* Joins consecutive nests: elements that the first leaves near are reused. */
static void join(estimate *w, touches *all, const touches *in, loop_set open)
{
	double sum = 0, own = 0;

	for (int32_t i = 0; i < all->n; i++) {
		sum += all->at[i].foot;
		own += all->at[i].b != NULL ? all->at[i].foot : 0;
	}
	for (int32_t i = 0; i < in->n; i++) {
		const touch *old = same_as(all, &in->at[i], open);
		double more = in->at[i].foot - (old != NULL ? old->foot : 0);

		sum += more > 0 ? more : 0;
		own += more > 0 && in->at[i].b != NULL ? more : 0;
	}
	for (int32_t i = 0; i < in->n; i++) {
		const touch *t = &in->at[i];
		touch *old = same_as(all, t, open);

		if (old == NULL) {
			*vec_push(w->a, all) = *t;
			continue;
		}
		if (t->foot > old->foot)
			old->foot = t->foot;
		old->lost += t->lost;
		for (int32_t l = 0; l < N_BEYOND; l++) {
			bool near = is_near(w, l, sum, own);
			double more = t->beyond[l] + old->beyond[l];
			double most = t->beyond[l] > old->beyond[l]
					      ? t->beyond[l]
					      : old->beyond[l];

			old->beyond[l] = near ? most : more;
		}
	}
}

static touches below(estimate *w, const loop_node *n);

static touches children(estimate *w, const loop_node *n)
{
	touches all = {0};

	for (int32_t i = 0; i < n->n_child; i++) {
		touches in = below(w, n->child[i]);

		join(w, &all, &in, open_at(n));
	}
	return all;
}

static double walked(const estimate *w, int32_t var)
{
	return (double)(w->range[var].hi - w->range[var].lo);
}

/* Repeats a part of n iterations of a loop as often as needed. */
static void repeat_part(estimate *w, const loop_node *n, int32_t var, double at,
	bool first, touches *t)
{
	double all = walked(w, var), now = least(at, all);

	if (first)
		repeat(w, n, var, now, 1, t);
	else if (all > now)
		repeat(w, n, var, all / now, now, t);
}

/* The loops of a tile's sums, during which the results are in registers. */
static void repeat_sums(estimate *w, const loop_node *n, touches *t)
{
	touches stored = {0};

	for (int32_t i = 0; i < t->n; i++)
		*vec_push(w->a, &stored) = t->at[i];
	for (int32_t i = n->n_sums - 1; i >= 0; i--)
		repeat(w, n, n->sum[i], walked(w, n->sum[i]), 1, t);
	for (int32_t i = 0; i < t->n; i++)
		if (stored.at[i].written)
			t->at[i] = stored.at[i];
}

/* A tile or a square: the loops of the sum are around the registers. */
static void inner_loops(estimate *w, const loop_node *n, touches *t)
{
	double columns = n->kind == LOOP_TILE ? (double)n->lanes * n->unroll
					      : n->lanes;
	double rows = n->kind == LOOP_TILE ? (double)n->size : n->lanes;

	repeat_part(w, n, n->var, columns, true, t);
	if (n->row_var >= 0)
		repeat_part(w, n, n->row_var, rows, true, t);
	repeat_sums(w, n, t);
	if (n->row_var >= 0)
		repeat_part(w, n, n->row_var, rows, false, t);
	repeat_part(w, n, n->var, columns, false, t);
}

static touches below(estimate *w, const loop_node *n)
{
	struct estimate_range was, reach;
	touches t = {0};
	double elems;

	if (!loop_is_loop(n)) {
		leaf(w, n, &t);
		if (n->kind == LOOP_TILE || n->kind == LOOP_STAGE)
			inner_loops(w, n, &t);
		return t;
	}
	was = w->range[n->var];
	reach = w->reach[n->var];
	elems = (double)(was.hi - was.lo);
	if (n->kind == LOOP_BLOCK && n->size < was.hi - was.lo)
		w->range[n->var].hi = was.lo + n->size;
	else if (n->kind == LOOP_SPAN && was.lo == 0 &&
		 was.hi == w->k->var[n->var].extent)
		w->range[n->var] = (struct estimate_range){n->lo, n->hi};
	if (n->kind == LOOP_SPAN)
		w->reach[n->var] = (struct estimate_range){n->lo, n->hi};
	t = children(w, n);
	w->range[n->var] = was;
	w->reach[n->var] = reach;
	if (n->kind == LOOP_FOR)
		repeat(w, n, n->var, elems * estimate_needed(w, n), 1, &t);
	else if (n->kind == LOOP_BLOCK)
		repeat(w, n, n->var, elems / (double)n->size, (double)n->size,
			&t);
	return t;
}

/* ---- a phase, a kernel ---- */

/*
 * Has the program run over all else since the tensor was last used? Inputs are
 * weights, mostly, which were used in the run before, and so are copies of them
 * that are kept.
 */
static bool is_cold(const estimate *w, const touch *t)
{
	if (t->b != NULL)
		return t->b->eqn >= 0 && w->kept[t->b->eqn];
	return w->cold && w->k->s->tensor.at[t->tensor].is_input;
}

static double bytes_of(const loop_kernel *k, int32_t tensor)
{
	const sys_tensor *t = &k->s->tensor.at[tensor];

	return (double)t->numel * (double)dtype_size(t->dtype);
}

/* Of so many bytes of a tensor from main memory, those that do not come from the last
 * cache, which all warps share, because another chunk has read them. */
static double read_once(const estimate *w, const touch *t, double bytes)
{
	const machine *m = w->k->machine;
	double all = t->b == NULL ? bytes_of(w->k, t->tensor) : bytes;
	bool stays = m->block.warps > 1 && !t->written && all < bytes &&
		     all <= (double)m->memory[MACHINE_L3].bytes;

	return stays ? all : bytes;
}

void loop_estimate_memory(estimate *w, const loop_phase *ph)
{
	touches all = {0};

	for (int32_t i = 0; i < ph->n_roots; i++) {
		touches in = below(w, ph->root[i]);

		join(w, &all, &in, 0);
	}
	for (int32_t i = 0; i < all.n; i++) {
		const touch *t = &all.at[i];
		int32_t home = is_cold(w, t) ? MACHINE_MAIN : w->home;

		w->out->access_cycles +=
			t->lost * w->k->machine->cycles.crowded;
		for (int32_t l = 0; l < N_BEYOND; l++) {
			double far = t->beyond[l] -
				     (l + 1 < N_BEYOND ? t->beyond[l + 1] : 0);
			int32_t from = l + 1 < home ? l + 1 : home;
			double once = from == MACHINE_MAIN ? read_once(w, t, far) : far;

			w->out->bytes[from] += once > 0 ? once : 0;
			w->out->bytes[MACHINE_L3] += far > once ? far - once : 0;
		}
	}
}

bool estimate_own_banks(const estimate *w, const loop_buf *b)
{
	int64_t size = (int64_t)dtype_size(b->dtype);
	int64_t bank = w->k->machine->block.bank_bytes;
	int64_t each = size > bank ? size : bank;

	for (int32_t i = 0; i < b->n_vars && w->warps > 1 && bank > 0; i++)
		if (b->var[i] == w->lane_var && b->where == LOOP_LOCAL)
			return b->stride[i] * size % bank == 0 &&
			       b->stride[i] * size / each % 2 != 0;
	return false;
}

void estimate_parts(estimate *w, const loop_eqn *e, double n)
{
	const machine_memory *m = w->k->machine->memory;
	int32_t level = MACHINE_L3;

	for (int32_t i = 0; i < e->e->n_out; i++) {
		double size = (double)dtype_size(e->acc[i]);
		double all = size * (double)e->n_parts *
			     (double)w->k->s->tensor.at[e->e->out[i]].numel;

		if (all > (double)m[level].bytes)
			level = MACHINE_MAIN;
		w->out->bytes[level] += n * size;
	}
}

bool estimate_keeps(const loop_kernel *k, const loop_phase *p)
{
	return p->copies > 0 &&
	       k->s->tensor.at[k->param[p->copies - 1]].steady;
}

/* Marks the equations below a node: copies that are kept for all runs. */
static void mark_kept(estimate *w, const loop_node *n)
{
	if (!loop_is_loop(n))
		w->kept[n->eqn] = w->cold;
	for (int32_t i = 0; loop_is_loop(n) && i < n->n_child; i++)
		mark_kept(w, n->child[i]);
}

double loop_input_bytes(const loop_kernel *k)
{
	double sum = 0, most = (double)k->machine->memory[MACHINE_L3].bytes;

	for (int32_t i = 0; i < k->s->input.n && sum <= most; i++)
		sum += bytes_of(k, k->s->input.at[i]);
	return sum;
}

/* The nearest level that so many bytes fit, if L2 has `l2` bytes. */
static int32_t level_of(const machine *m, double bytes, int64_t l2)
{
	int32_t l = MACHINE_L2;

	if (bytes <= (double)l2)
		return l;
	while (l < MACHINE_MAIN && bytes > (double)m->memory[l].bytes)
		l++;
	return l;
}

/* Operations of all equations, as the plan counts them. */
static double work_of(const loop_kernel *k)
{
	double sum = 0;

	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];
		double n = 0, times = 1;

		for (int32_t j = 0; j < e->e->n_out; j++)
			n += (double)e->body[j]->flops +
			     (e->e->monoid != IR_SET);
		for (int32_t v = 0; v < k->n_vars; v++)
			if (((e->left | e->reduced) & BIT(v)) != 0)
				times *= (double)k->var[v].extent;
		sum += n * times;
	}
	return sum;
}

/*
 * A tensor that fits a level is there after its producer has run, and stays for
 * its readers. Inputs come from the farthest memory where all inputs of the
 * program do not stay near from run to run. Each round of a loop uses the same
 * weights, and no other program runs between two rounds: all of them stay in the
 * level that has room for them.
 */
void loop_estimate_homes(estimate *w)
{
	const loop_kernel *k = w->k;
	const machine *m = k->machine;
	double inputs = loop_input_bytes(k);

	w->all = (double)k->scratch_bytes;
	for (int32_t i = 0; i < k->n_params; i++)
		w->all += bytes_of(k, k->param[i]);
	if (k->s->in_rounds) {
		w->home = level_of(
			m, w->all > inputs ? w->all : inputs, m->round_bytes);
		w->cold = false;
	} else {
		w->home = level_of(m, w->all, m->memory[MACHINE_L2].bytes);
		w->cold = inputs > (double)m->stays_bytes;
	}
	w->work = work_of(k);
	w->kept = arena_array(w->a, bool, k->n_eqns + 1);
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; estimate_keeps(k, &k->phase[p]) &&
				    i < k->phase[p].n_roots;
			i++)
			mark_kept(w, k->phase[p].root[i]);
}
