/*
 * cost.c: estimates the seconds of a set of equations as one kernel.
 *
 *     T = (m + a - 0.75 min(m, a)) / min(cores, par) + one launch
 *     m = bytes / memory rate, a = flops / arithmetic rate
 *
 * bytes: results that others read; private tensors that do not fit the cache,
 * written and read; partial results of split reductions; tensors from outside,
 * once if the part that one iteration of the shared loops needs fits the cache,
 * else once for each iteration that needs the same part.
 */
#include "fuse/inner.h"

typedef struct cost {
	fuse_state *f;
	part_set *s;
	fuse_sees *sees;
	void *arg;
	double bytes;
	double par;   /* number of independent iterations */
	double split; /* number of chunks of the reduced shared loops */
	/* iterations of a shared loop that a tile treats together */
	double tile;
	/* private bytes of one iteration of the shared loops */
	double private_bytes;
	/* rows without a maximum go by in blocks of keys: blocks of rows are as many as
	 * pay for copies of factors, and the schedule tells */
	bool keyed;
} cost;

/* Number of elements in a vector. */
static int64_t lanes(const cost *c)
{
	return machine_lanes(c->f->t, (int32_t)sizeof(float));
}

/*
 * The factor for reading a large tensor across its rows, which is so if a
 * shared loop walks its fastest digit, and an inner loop a slower one.
 */
static double stride_of(
	const cost *c, int32_t m, const ix_form *at, double bytes)
{
	const part_member *p = &c->s->m.at[m];
	const ix_term *fast = part_fastest(at);
	bool shared = false, left = false;

	if (bytes <= (double)c->f->t->memory[MACHINE_L2].bytes ||
		p->u->contraction)
		return 1;
	if (fast == NULL)
		return 1;
	for (int32_t k = 0; k < p->digit.n; k++) {
		const eqn_digit *d = &p->digit.at[k].d;

		if (!part_form_uses(at, d))
			continue;
		if (part_class_of(c->s, m, k) < 0)
			left = true;
		else if (d->axis == fast->atom->axis && d->lo == fast->atom->lo)
			shared = true;
	}
	return shared && left ? c->f->t->fusion.strided : 1;
}

/* The same factor for a result. */
static double stride_of_result(const cost *c, int32_t m, double bytes)
{
	const part_member *p = &c->s->m.at[m];
	const eqn_unit *u = p->u;
	bool shared = false, left = false;

	if (bytes <= (double)c->f->t->memory[MACHINE_L2].bytes ||
		u->contraction)
		return 1;
	for (int32_t k = 0; k < p->digit.n; k++) {
		const eqn_digit *d = &p->digit.at[k].d;

		if (!part_is_left(u, d))
			continue;
		if (part_class_of(c->s, m, k) < 0)
			left = true;
		else if (u->stride[d->axis] * d->lo == 1)
			shared = true;
	}
	return shared && left ? c->f->t->fusion.strided : 1;
}

static double min_of(double a, double b)
{
	return a < b ? a : b;
}

/* ---- parallelism ---- */

static void find_par(cost *c)
{
	double plain = 1, reduced = 1;
	double most = (double)c->f->t->fusion.split_iterations;

	for (int32_t i = 0; i < c->s->class.n; i++) {
		const part_class *k = &c->s->class.at[i];

		if (k->kind == AXIS_P)
			plain *= (double)k->extent;
		else if (k->kind == AXIS_R)
			reduced *= (double)k->extent;
	}
	c->split = 1;
	if (reduced > 1 && plain < most)
		c->split = min_of(reduced, most / plain);
	c->par = plain * c->split;
}

/* ---- private tensors ---- */

/*
 * The largest number of elements that one iteration of the shared loops
 * computes.
 */
static double per_iteration(const cost *c, int32_t m)
{
	const part_member *p = &c->s->m.at[m];
	double n = (double)p->u->out_elems;

	for (int32_t k = 0; k < p->digit.n; k++)
		if (part_is_left(p->u, &p->digit.at[k].d) &&
			part_class_of(c->s, m, k) >= 0)
			n /= (double)(p->digit.at[k].d.hi /
				      p->digit.at[k].d.lo);
	return n;
}

static double size_of(const cost *c, int32_t tensor)
{
	return (double)dtype_size(c->f->s->tensor.at[tensor].dtype);
}

/* .. of an element that is kept as it is computed with */
static double kept_size(const cost *c, int32_t tensor)
{
	return (double)dtype_size(dtype_acc(c->f->s->tensor.at[tensor].dtype));
}

/*
 * Adds private tensors whose buffer in the loop tree is larger than the cache.
 */
static void add_large(cost *c)
{
	fuse_state own = *c->f;
	eqn_unit **unit = arena_array(fuse_scratch(c->f), eqn_unit *, c->s->n);
	fuse_kernel *k;

	own.a = fuse_scratch(c->f);
	for (int32_t i = 0; i < c->s->n; i++)
		unit[i] = c->f->g->unit.at[c->s->m.at[i].u->id];
	k = fuse_tree(&own, c->s->n, unit);
	if (k->n_vars > FUSE_MAX_VARS)
		return; /* not a possible kernel, see choice_n_vars */
	fuse_buffers(&own, k, c->sees, c->arg);
	for (int32_t i = 0; i < k->n_bufs; i++) {
		double n = (double)c->f->s->tensor.at[k->buf[i].tensor].numel;
		double size = size_of(c, k->buf[i].tensor);

		if ((double)k->buf[i].elems * size >
			(double)c->f->t->memory[MACHINE_L2].bytes)
			c->bytes += 2 * size * n;
	}
}

/*
 * For rows that do not fit the cache and are processed in blocks of keys
 * (schedule/contract/online.c): the part of each member's results that is live
 * at a time. NULL: all of them.
 */
static const double *row_parts(cost *c)
{
	arena *a = fuse_scratch(c->f);
	int32_t n = c->s->n;
	eqn_stmt *e;
	eqn_rows rows;
	double *part, row = 0, every = 0;
	bool product = false, max = false;

	for (int32_t m = 0; m < n; m++) {
		product |= c->s->m.at[m].u->contraction;
		max |= c->s->m.at[m].u->e.monoid == IR_MAX;
		every += per_iteration(c, m) *
			 kept_size(c, c->s->m.at[m].u->e.out[0]);
	}
	if (!product || !max || !machine_is_long(c->f->t, every))
		return NULL;
	e = arena_array(a, eqn_stmt, n + 1);
	for (int32_t m = 0; m < n; m++)
		if (!eqn_as_stmt(c->f->s, c->s->m.at[m].u, &e[m]))
			return NULL;
		else
			e[m].seen = c->sees(c->arg, e[m].out);
	if (!eqn_find_rows(a, c->f->s, n, e, &rows))
		return NULL;
	part = arena_array(a, double, n + 1);
	for (int32_t m = 0; m < n; m++) {
		bool keys = rows.kind[m] == EQN_ROW_KEY ||
			    rows.kind[m] == EQN_ROW_WEIGHT;

		part[m] = keys ? (double)c->f->t->fusion.keys_at_once /
					 (double)rows.n_keys
			       : 1;
		row += keys ? per_iteration(c, m) * kept_size(c, e[m].out) : 0;
	}
	return machine_is_long(c->f->t, row) ? part : NULL;
}

/* The member that computes the tensor; -1: none. */
static int32_t member_of(const cost *c, int32_t tensor)
{
	for (int32_t m = 0; m < c->s->n; m++)
		for (int32_t k = 0; k < c->s->m.at[m].u->e.n_out; k++)
			if (c->s->m.at[m].u->e.out[k] == tensor)
				return m;
	return -1;
}

/* Marks the members that compute, for n keys of an iteration, what m reads. */
static void mark_keys(const cost *c, int32_t m, double n, bool *keys)
{
	const eqn_unit *u = c->s->m.at[m].u;

	for (int32_t r = 0; r < u->n_reads; r++) {
		int32_t of = member_of(c, u->read[r].tensor);

		if (of < 0 || of == m || keys[of] || per_iteration(c, of) != n)
			continue;
		keys[of] = true;
		mark_keys(c, of, n, keys);
	}
}

/* The same for rows without a maximum (schedule/contract/keys.c): values for keys, a
 * product among them, and products that are added up along these keys. */
static const double *key_parts(cost *c)
{
	int32_t n = c->s->n;
	double *part = arena_array(fuse_scratch(c->f), double, n + 1), row = 0, many = 0;
	bool *keys = arena_array(fuse_scratch(c->f), bool, n + 1), made = false;
	bool *sums = arena_array(fuse_scratch(c->f), bool, n + 1);

	for (int32_t m = 0; m < n; m++) {
		const eqn_unit *u = c->s->m.at[m].u;
		double sum = (double)u->volume / (double)u->out_elems;

		if (!u->contraction || (many > 0 && sum != many))
			continue;
		mark_keys(c, m, sum, keys);
		for (int32_t i = 0; i < n; i++)
			many = keys[i] ? sum : many;
		sums[m] = many > 0;
	}
	for (int32_t m = 0; m < n; m++) {
		const eqn_unit *u = c->s->m.at[m].u;

		if (keys[m] && sums[m])
			return NULL; /* a layer after a layer */
		part[m] = keys[m] ? (double)c->f->t->fusion.keys_at_once / many : 1;
		made |= keys[m] && u->contraction;
		row += keys[m] ? per_iteration(c, m) * kept_size(c, u->e.out[0]) : 0;
	}
	return made && machine_is_long_plain(c->f->t, row) ? part : NULL;
}

static void add_results(cost *c)
{
	double private = 0, l2 = (double)c->f->t->memory[MACHINE_L2].bytes;
	bool contraction = false, large = false;
	const double *part = row_parts(c);

	if (part == NULL && c->s->n > 1) {
		part = key_parts(c);
		c->keyed = part != NULL;
	}

	for (int32_t m = 0; m < c->s->n; m++) {
		const eqn_unit *u = c->s->m.at[m].u;
		double inside = per_iteration(c, m) *
				(part != NULL ? part[m] : 1);

		contraction |= u->contraction;
		for (int32_t k = 0; k < u->e.n_out; k++) {
			int32_t t = u->e.out[k];
			double size = size_of(c, t);
			double n = (double)u->out_elems;

			if (!c->sees(c->arg, t)) {
				private += inside * size;
				large |= inside * size > l2;
				continue;
			}
			c->bytes += n * size * stride_of_result(c, m, n * size);
			if (u->e.push != NULL)
				c->bytes += 2 * size *
					    min_of(n, (double)u->volume);
		}
	}
	c->tile = 1;
	if (contraction && private > 0 && c->s->n > 1)
		c->tile = part != NULL ? c->f->t->fusion.rows_at_once
				       : c->f->t->product.block_most;
	c->private_bytes = private;
	if (large)
		add_large(c);
}

/* Adds partial results of the reductions over shared loops. */
static void add_partial(cost *c)
{
	if (c->split <= 1)
		return;
	for (int32_t m = 0; m < c->s->n; m++) {
		const part_member *p = &c->s->m.at[m];
		bool split = false;

		for (int32_t i = 0; i < c->s->class.n; i++)
			split |= !part_is_left(p->u,
				&p->digit.at[c->s->class.at[i].digit[m]].d);
		for (int32_t k = 0; split && k < p->u->e.n_out; k++)
			c->bytes += 2 * size_of(c, p->u->e.out[k]) *
				    (double)p->u->out_elems * c->split;
	}
}

/* ---- tensors from outside ---- */

typedef struct amount {
	int32_t tensor;
	double inside; /* bytes that one iteration of the shared loops reads */
	double once;   /* bytes if each element is read once */
	double again;  /* bytes of reads that are not in the cache any more */
} amount;

/*
 * One read: bytes in all, bytes per iteration, and number of iterations that
 * read the same bytes.
 */
typedef struct reading {
	amount *of;
	double touched, inside, same;
	bool common; /* all iterations do */
} reading;

static reading one_reading(cost *c, int32_t m, const eqn_read *r)
{
	const part_member *p = &c->s->m.at[m];
	double size = size_of(c, r->tensor);
	double numel = (double)c->f->s->tensor.at[r->tensor].numel;
	reading a = {.touched = 1, .inside = 1, .same = 1, .common = true};
	bool *uses = arena_array(fuse_scratch(c->f), bool, c->s->class.n + 1);

	for (int32_t k = 0; k < p->digit.n; k++) {
		const eqn_digit *d = &p->digit.at[k].d;
		int32_t at = part_class_of(c->s, m, k);

		if (r->in_init && d->axis >= p->u->e.n_left)
			continue;
		if (!part_form_uses(r->at, d) &&
			!(r->in_init && p->u->e.push != NULL))
			continue;
		a.touched *= (double)(d->hi / d->lo);
		if (at < 0)
			a.inside *= (double)(d->hi / d->lo);
		else
			uses[at] = true, a.common = false;
	}
	a.touched = min_of(a.touched, numel) * size;
	a.inside = min_of(a.inside, numel) * size;
	if (!r->in_init)
		a.touched *= stride_of(c, m, r->at, a.touched);
	for (int32_t i = 0; i < c->s->class.n; i++)
		if (!uses[i])
			a.same *= (double)c->s->class.at[i].extent;
	return a;
}

typedef VEC(amount *) amounts;

static amount *amount_of(arena *a, amounts *all, int32_t tensor)
{
	for (int32_t k = 0; k < all->n; k++)
		if (all->at[k]->tensor == tensor)
			return all->at[k];
	*vec_push(a, all) = arena_make(a, amount);
	all->at[all->n - 1]->tensor = tensor;
	return all->at[all->n - 1];
}

/* Bytes of memory in the time in which one comes that all threads find in the third
 * cache, if it holds so many. */
static double part_of_far(const cost *c, double bytes)
{
	const machine_memory *m = c->f->t->memory;

	return bytes > (double)m[MACHINE_L3].bytes
		       ? 1
		       : m[MACHINE_MAIN].bytes_per_s / m[MACHINE_L3].bytes_per_s;
}

/*
 * Adds reads. If all that one iteration reads fits the cache, the next
 * iteration finds there what it reads again.
 */
static void add_reads(cost *c)
{
	arena *scratch = fuse_scratch(c->f);
	amounts all = {0};
	VEC(reading) one = {0};
	double l2 = (double)c->f->t->memory[MACHINE_L2].bytes,
	       total = c->private_bytes;

	for (int32_t m = 0; m < c->s->n; m++)
		c->f->where[c->s->m.at[m].u->source] = m;
	for (int32_t m = 0; m < c->s->n; m++) {
		const eqn_unit *u = c->s->m.at[m].u;

		for (int32_t i = 0; i < u->n_reads; i++) {
			int32_t maker = fuse_maker(c->f, u->read[i].tensor);
			reading *r;

			if (maker >= 0 && c->f->where[maker] >= 0)
				continue;
			r = vec_push(scratch, &one);
			*r = one_reading(c, m, &u->read[i]);
			r->of = amount_of(scratch, &all, u->read[i].tensor);
			if (r->inside > r->of->inside)
				r->of->inside = r->inside;
			if (r->touched > r->of->once)
				r->of->once = r->touched;
		}
	}
	for (int32_t m = 0; m < c->s->n; m++)
		c->f->where[c->s->m.at[m].u->source] = -1;
	for (int32_t k = 0; k < all.n; k++)
		total += all.at[k]->inside;
	for (int32_t i = 0; i < one.n; i++) {
		const reading *r = &one.at[i];
		double same = r->same / c->tile;
		/* warps of a block find in their caches what each of them reads */
		double fit = l2 * (r->common ? c->f->t->block.warps : 1);

		if (r->inside > fit || (same > 1 && total > fit))
			r->of->again += r->touched *
					(same < 1 ? 1
						  : 1 + (same - 1) * part_of_far(c, total));
	}
	for (int32_t k = 0; k < all.n; k++)
		c->bytes += all.at[k]->again > all.at[k]->once
				    ? all.at[k]->again
				    : all.at[k]->once;
}

/* ---- the whole ---- */

/*
 * Can products of the set be tiled? Tiles need outer loops that are parallel in
 * every member; together with other reductions, scans or scatters, products
 * become plain loops.
 */
static bool has_tiles(const cost *c)
{
	int32_t n = c->s->n;

	/*
	 * a product takes several equations, because of its copies:
	 * loop_contract
	 */
	for (int32_t m = 0; m < c->s->n; m++)
		n += c->s->m.at[m].u->contraction ? 3 : 0;
	if (c->s->n > 1 && n >= c->f->t->product.most_equations)
		return false;
	for (int32_t i = 0; i < c->s->class.n && c->s->n > 1; i++)
		if (c->s->class.at[i].kind != AXIS_P)
			return false;
	for (int32_t m = 0; m < c->s->n; m++)
		if (c->s->m.at[m].u->e.push != NULL)
			return false;
	return true;
}

/* Do rows or columns fill the lanes? */
static bool is_wide(const cost *c, const eqn_unit *u)
{
	for (int32_t i = 0; i < u->e.n_left; i++)
		if (u->box.extent[i] >= lanes(c))
			return true;
	return false;
}

/*
 * Lanes run along the last axis of the result. Do the inner loops still have a
 * whole vector of it, after the outer loops have taken their part?
 */
static bool lanes_left(const cost *c, int32_t m)
{
	const part_member *p = &c->s->m.at[m];
	const eqn_unit *u = p->u;

	for (int32_t k = 0; k < p->digit.n && c->s->n > 1; k++) {
		const eqn_digit *d = &p->digit.at[k].d;

		if (part_is_left(u, d) && u->stride[d->axis] * d->lo == 1 &&
			d->hi < lanes(c) && u->box.extent[d->axis] >= lanes(c))
			return false;
	}
	return true;
}

/* Is the digit one of rows or of columns, so that only one read walks it? */
static bool is_of_one(const eqn_unit *u, const eqn_digit *d)
{
	for (int32_t i = 0; i < u->n_reads; i++)
		if (!part_form_uses(u->read[i].at, d))
			return true;
	return false;
}

/*
 * Is the set one product with an epilogue, whose blocks the schedule can choose
 * freely?
 */
static bool is_block(const cost *c, int32_t m)
{
	const part_member *p = &c->s->m.at[m];

	for (int32_t i = 0; i < c->s->n; i++)
		if (i != m && c->s->m.at[i].u->contraction)
			return false;
	for (int32_t k = 0; k < p->digit.n; k++)
		if (part_is_left(p->u, &p->digit.at[k].d) &&
			part_class_of(c->s, m, k) < 0)
			return false;
	return true;
}

/*
 * The work of copying factors, relative to that of the sums. A factor that the
 * outer loops do not walk is copied again for each of their blocks, and a copy
 * serves only the rows of that block: the iterations of these loops that a
 * block contains (limited so that enough chunks are left, and fewer if both
 * factors are blocked), times the other rows. Blocks of sliding windows, which
 * overlap, count as single rows; measured on networks of convolutions, which
 * are faster apart.
 */
static double copies_again(const cost *c, int32_t m)
{
	const part_member *p = &c->s->m.at[m];
	const eqn_unit *u = p->u;
	const machine *t = c->f->t;
	double most = 0, fit = t->product.block_most;

	if (c->private_bytes > 0)
		fit = min_of(fit, (double)c->f->t->memory[MACHINE_L2].bytes /
					  2 / c->private_bytes);
	for (int32_t i = 0; i < u->n_reads && !is_block(c, m); i++) {
		const eqn_read *r = &u->read[i];
		double around = 1, rows = 1, inner = 1, outer = 1, batch = 1;
		double tile, most_rows, copy;
		int32_t sums = 0;

		for (int32_t k = 0; k < p->digit.n; k++) {
			const eqn_digit *d = &p->digit.at[k].d;
			bool shared = part_class_of(c->s, m, k) >= 0;
			bool used = part_form_uses(r->at, d);
			double n = (double)(d->hi / d->lo);

			if (!part_is_left(u, d))
				sums += used;
			else if (!is_of_one(u, d))
				batch *= shared ? n : 1;
			else if (used)
				*(shared ? &outer : &inner) *= n;
			else
				*(shared ? &around : &rows) *= n;
		}
		if (around <= 1 || inner * outer <= 1)
			continue;
		tile = outer > 1 ? fit / t->fusion.both_ways : fit;
		most_rows = around * min_of(1, batch / t->product.block_chunks);
		tile = min_of(tile, most_rows);
		if (tile > 1 && sums <= 1)
			rows *= tile;
		copy = (sums > 1 ? t->fusion.copy_window_rows
				 : t->fusion.copy_rows) /
		       rows;
		most = copy > most ? copy : most;
	}
	return most;
}

/*
 * Does member m walk concatenated parts of different lengths by one loop? Then
 * a vector has elements of several parts, and is gathered element by element.
 */
static bool is_mixed(const cost *c, int32_t m)
{
	const part_member *p = &c->s->m.at[m];
	ix *x = c->f->s->x;

	for (int32_t k = 0; k < p->digit.n && c->s->parts; k++) {
		const eqn_digit *d = &p->digit.at[k].d;

		if (part_class_of(c->s, m, k) < 0 ||
			d->hi == p->u->box.extent[d->axis])
			continue;
		for (int32_t i = 0; i < p->u->n_reads; i++) {
			const eqn_read *r = &p->u->read[i];
			int64_t min, max;

			if (r->in_init)
				continue;
			ix_range(&r->dom, ix_axis(x, &r->dom, d->axis), &min,
				&max);
			if (min % d->hi != 0 || (max + 1) % d->hi != 0)
				return true;
		}
	}
	return false;
}

static double arithmetic(const cost *c)
{
	double plain = 0, contracted = 0, untiled = 0;
	bool tiles = has_tiles(c);

	for (int32_t m = 0; m < c->s->n; m++) {
		const eqn_unit *u = c->s->m.at[m].u;
		double volume = (double)u->volume, flops = (double)u->flops;

		if (u->contraction) {
			bool tiled = tiles && lanes_left(c, m);

			*(tiled || !is_wide(c, u) ? &contracted : &untiled) +=
				2 * volume *
				(1 + (c->keyed ? 0 : copies_again(c, m)));
			flops = flops > 2 ? flops - 2 : 0;
		}
		if (is_mixed(c, m))
			flops += c->f->t->fusion.gathered_ops;
		plain += volume * flops;
	}
	return plain / c->f->t->fusion.flops_per_s +
	       contracted / c->f->t->fusion.contract_per_s +
	       untiled / c->f->t->fusion.plain_contract_per_s;
}

double fuse_seconds(fuse_state *f, part_set *s, fuse_sees *sees, void *arg)
{
	cost c = {.f = f, .s = s, .sees = sees, .arg = arg};
	double work, memory, longer, shorter;

	find_par(&c);
	add_results(&c);
	add_partial(&c);
	add_reads(&c);
	work = arithmetic(&c);
	/* alone, a write in place walks only the elements that it writes */
	if (s->n == 1) {
		double share = settle_share(f->w, s->m.at[0].u);

		work *= share;
		c.bytes *= share;
	}
	memory = c.bytes / f->t->memory[MACHINE_MAIN].bytes_per_s;
	longer = work > memory ? work : memory;
	shorter = min_of(work, memory);
	return (longer + f->t->hidden * shorter) /
		       min_of(c.par, (double)f->t->threads) +
	       machine_launch(f->t, f->s->in_rounds);
}
