/*
 * lower_place.c: finds the addresses of elements in this kernel, and lowers
 * their loads and stores.
 */
#include "kern/lower.h"

static bool in_register(const loop_buf *b)
{
	return b->where == LOOP_REGISTER || b->where == LOOP_HELD;
}

void lw_address(lowering *lw, struct place_of *p)
{
	if (lw->lanes == 1)
		return;
	p->affine = true;
	if (p->buf == NULL || p->buf->n_vars == 0 || in_register(p->buf)) {
		p->varies = lw_form_varies(lw, p->at);
		if (p->buf != NULL && in_register(p->buf))
			p->varies = false;
		p->affine = ix_stride(p->at, lw->vvar,
				    lw->k->var[lw->vvar].extent, &p->stride) &&
			    !lw_data_varies(lw, p->at);
		return;
	}
	for (int32_t i = 0; i < p->buf->n_vars; i++) {
		int64_t s = 0;

		p->varies |= lw_form_varies(lw, p->digit[i]);
		p->affine = p->affine &&
			    ix_stride(p->digit[i], lw->vvar,
				    lw->k->var[lw->vvar].extent, &s) &&
			    !lw_data_varies(lw, p->digit[i]);
		p->stride += s * p->buf->stride[i];
	}
}

/*
 * Simplifies the subscripts by the current condition: those of a sliding window
 * through a reshape are affine only inside of the tensor.
 */
static void shorten(lowering *lw, struct place_of *p)
{
	const ix_form *d[IX_MAX_AXES];

	if (lw->path_dom.n_facts == lw->dom->n_facts)
		return;
	loop_subscript(lw->k, &lw->path_dom, p->buf, p->at, d);
	for (int32_t i = 0; i < p->buf->n_vars; i++) {
		if (d[i] == p->digit[i])
			continue;
		p->digit[i] = d[i];
		p->guarded = true;
	}
	lw->n_short += p->guarded;
}

/*
 * The number of elements of a buffer, including separate elements for each
 * lane, and those that vectors in the last row of a copy touch.
 */
static int64_t elems_of(const loop_kernel *k, const loop_buf *b)
{
	int64_t n = b->elems;

	for (const loop_node *u = b->scope; b->lanes && u != NULL; u = u->up)
		if (u->kind == LOOP_FOR && u->lanes > 1)
			return n * u->lanes;
	if ((k->eqn[b->eqn].stage || k->eqn[b->eqn].pack) && b->swizzled == 0)
		n += loop_slack(k->machine) / (int64_t)dtype_size(b->dtype);
	return n;
}

static int32_t array_of_buf(lowering *lw, int32_t n)
{
	const loop_buf *b = &lw->k->buf[n];
	int32_t stage = 0, *at;

	if (in_register(b))
		return -1;
	if (b->stages > 1)
		stage = lw->stage;
	at = &lw->array_of_buf[n * LOOP_MAX_STAGES + stage];
	if (*at < 0) {
		*at = kern_add_array(lw->b->k,
			b->where == LOOP_LOCAL ? KERN_LOCAL : KERN_SCRATCH,
			b->dtype, elems_of(lw->k, b),
			b->offset + stage * b->stage_bytes);
		lw->b->k->array.at[*at].swizzled = b->swizzled;
	}
	return *at;
}

struct place_of lw_place_buf(lowering *lw, int32_t n_buf, const ix_form *at)
{
	struct place_of p = {.buf = &lw->k->buf[n_buf],
		.n_buf = n_buf,
		.param = -1,
		.array = array_of_buf(lw, n_buf),
		.at = at};

	p.dtype = p.buf->dtype;
	loop_subscript(lw->k, lw->dom, p.buf, at, p.digit);
	if (lw->path.n > 0)
		shorten(lw, &p);
	lw_address(lw, &p);
	return p;
}

/* Is it complete in memory, because an earlier phase has computed it? */
static bool is_complete(const lowering *lw, int32_t eqn, int32_t comp)
{
	const loop_buf *b = &lw->k->buf[lw->k->buf_of[eqn][comp]];

	return b->where != LOOP_SCRATCH && b->phase < lw->phase &&
	       loop_param(lw->k, lw->k->eqn[eqn].e->out[comp]) >= 0;
}

struct place_of lw_place_tensor(
	lowering *lw, int32_t tensor, const ix_form *at, bool in_memory)
{
	const loop_kernel *k = lw->k;
	struct place_of p = {.at = at};
	int32_t e, c;

	if (!in_memory && loop_maker(k, tensor, &e, &c) &&
		k->buf_of[e][c] >= 0 && !is_complete(lw, e, c) &&
		(!k->eqn[e].stage ||
			loop_is_staged(
				lw->k, &k->buf[k->buf_of[e][c]], at)))
		return lw_place_buf(lw, k->buf_of[e][c], at);
	p.param = loop_param(k, tensor);
	if (p.param < 0)
		lw_bug(lw, "a tensor is nowhere",
			lw->s->tensor.at[tensor].name);
	p.array = p.param;
	p.dtype = lw->s->tensor.at[tensor].dtype;
	lw_address(lw, &p);
	return p;
}

struct place_of lw_place_read(lowering *lw, int32_t tensor, const ix_form *at)
{
	const loop_kernel *k = lw->k;
	int32_t kept = loop_kept(k, tensor), n = kept >= 0 ? k->buf_of[kept][0] : -1;

	return n >= 0 && loop_is_staged(lw->k, &k->buf[n], at)
		       ? lw_place_buf(lw, n, at)
		       : lw_place_tensor(lw, tensor, at, false);
}

const val *lw_stored_at(lowering *lw, int32_t tensor, const ix_form *at)
{
	for (int32_t i = lw->def.n - 1; i >= 0; i--)
		if (lw->def.at[i].tensor == tensor &&
			(lw->def.at[i].at == NULL || lw->def.at[i].at == at))
			return &lw->def.at[i].v;
	return NULL;
}

/* The register of the iteration of all loops that are written out, row-major. */
static val *register_of(lowering *lw, const struct place_of *p)
{
	const loop_buf *b = p->buf;
	int64_t at = 0;

	for (int32_t i = 0; i < b->n_vars && b->where == LOOP_REGISTER; i++)
		at = at * b->extent[i] + (b->elems > 1 ? lw->plus[b->var[i]] : 0);
	return &lw->reg[p->n_buf][at];
}

static bool is_register(const struct place_of *p)
{
	return p->buf != NULL && in_register(p->buf);
}

bool lw_is_abreast(const struct place_of *p)
{
	return p->buf != NULL && p->buf->where == LOOP_REGISTER && p->buf->elems > 1;
}

/* Does the buffer have one value for each lane, side by side? */
static bool per_lane(const lowering *lw, const struct place_of *p)
{
	return lw->lanes > 1 && p->buf != NULL && p->buf->lanes;
}

form lw_element(lowering *lw, const struct place_of *p, kern_val lane)
{
	form f;

	if (p->plus != NULL)
		return lw_add(lw, p->plus, lw_form(lw, p->at, lane));
	if (p->buf == NULL || lw->k->eqn[p->buf->eqn].push)
		f = lw_form(lw, p->at, lane);
	else
		f = lw_digits(lw, p->buf, p->digit, lane);
	if (!per_lane(lw, p))
		return f;
	f = lw_scale(lw, f, lw->lanes);
	return lane == 0 ? f : lw_add(lw, f, lw_form_of(lw, lane));
}

/* ---- loads and stores, in the dtype of memory ---- */

static val stored_type(const lowering *lw, const struct place_of *p, bool wide)
{
	return (val){0, lw_stored(p->dtype), wide ? lw->lanes : 1, 0};
}

val lw_load_scalar(lowering *lw, const struct place_of *p, kern_val lane,
	const val *guard)
{
	kern_access x;

	if (is_register(p) && per_lane(lw, p))
		return lw_lane_of(lw, *register_of(lw, p),
			lane == 0 ? lw_num(lw, 0) : lw_form_of(lw, lane));
	if (is_register(p))
		return *register_of(lw, p);
	x = kern_element(p->array, lw_element(lw, p, lane));
	if (guard != NULL)
		x.mask = guard->id;
	return lw_load_at(lw, &x, stored_type(lw, p, false));
}

/* Loads a vector at an address: all of it, or only the active lanes. */
static val load_vector(lowering *lw, const struct place_of *p, const val *guard)
{
	kern_access x = kern_element(p->array, lw_element(lw, p, 0));

	if (!per_lane(lw, p)) {
		x.part = lw_as_part(lw, lw_live(lw));
		x.stride = lw->each;
	}
	if (guard != NULL)
		x.mask = guard->id;
	return lw_load_at(lw, &x, stored_type(lw, p, true));
}

/*
 * For lanes with stride two: loads vector 0 or 1, of which only elements in
 * memory are read.
 */
static val load_half(lowering *lw, const struct place_of *p, int32_t half)
{
	int32_t n = 2 * lw_live(lw) - 1 - half * (lw->lanes - 1);
	val type = stored_type(lw, p, true);
	form at = lw_element(lw, p, 0);

	if (half > 0)
		at = lw_addc(lw, at, lw->lanes - 1);
	/* not more elements of the second one than of the first */
	if (n <= half)
		return lw_register(lw, type, 0);
	return lw_load_from(lw, p->array, at, type, n);
}

/*
 * Loads lanes that are contiguous, or that have stride two, as every second
 * element of two vectors.
 */
static val load_whole(lowering *lw, const struct place_of *p)
{
	int64_t list[KERN_MAX_LANES];
	val x;

	if (p->stride == 1)
		return load_vector(lw, p, NULL);
	for (int32_t l = 0; l < lw->lanes; l++)
		list[l] = 2 * l < lw->lanes ? 2 * l : 2 * l + 1;
	x = load_half(lw, p, 0);
	return lw_shuffle(lw, x, load_half(lw, p, 1), list);
}

static bool is_near(const struct place_of *p)
{
	return p->plus == NULL && p->affine && p->varies &&
	       (p->stride == 1 || p->stride == 2);
}

/* Is every lane inside of the tensor where the path's conditions hold, which are the
 * same for all lanes? */
static bool is_sure(const lowering *lw, const struct place_of *p, int64_t numel)
{
	int64_t min, max;

	if (p->buf != NULL || lw_path_mixed(lw))
		return false;
	ix_range(&lw->path_dom, p->at, &min, &max);
	return min >= 0 && max < numel;
}

/*
 * Can all lanes be loaded, because they are inside of the tensor or buffer,
 * even if a condition selects only some of them? The other lanes are not used,
 * but no other chunk may be writing them.
 */
static bool is_whole(lowering *lw, const struct place_of *p, val *c)
{
	int64_t numel;

	if (!is_near(p) || per_lane(lw, p) || !dtype_is_float(p->dtype) ||
		is_register(p))
		return false;
	if (p->buf != NULL && !lw->k->eqn[p->buf->eqn].push)
		numel = p->buf->elems;
	else if (p->param >= 0 &&
		 !lw_may_race(lw, lw->k->param[p->param], NULL))
		numel = lw->s->tensor.at[lw->k->param[p->param]].numel;
	else
		return false;
	*c = is_sure(lw, p, numel)
		     ? lw_bool(lw, true)
		     : lw_inside(lw, lw_element(lw, p, 0), 0,
			       numel - p->stride * (lw_live(lw) - 1));
	return true;
}

/* Are only those lanes loaded that a condition selects, because others may be written
 * by other chunks meanwhile? */
static bool is_raced(lowering *lw, const struct place_of *p)
{
	return lw->k->machine->lanes == 0 && is_near(p) && !per_lane(lw, p) &&
	       p->buf == NULL && p->param >= 0 &&
	       lw_may_race(lw, lw->k->param[p->param], NULL);
}

/* Loads the lanes of a mask, by one instruction if the machine has it. */
static void load_masked(
	lowering *lw, const struct place_of *p, val n, val mask, val whole)
{
	kern_access x = kern_element(p->array, lw_element(lw, p, 0));

	x.part = lw_as_part(lw, lw_live(lw));
	x.mask = mask.id;
	x.whole = whole.id;
	lw_set(lw, n, lw_load_at(lw, &x, n));
}

static void lane_by_lane(
	lowering *lw, const struct place_of *p, val n, bool guarded)
{
	kern_val l = lw_for_lanes(lw, lw_live(lw));

	if (guarded)
		lw_if(lw, lw_path(lw, l));
	lw_set_lane(lw, n, l, lw_load_scalar(lw, p, l, NULL));
	if (guarded)
		lw_close(lw);
	lw_close(lw);
}

/* Does nothing write what it lies in? */
static bool is_steady(const lowering *lw, const struct place_of *p)
{
	const kern_kernel *k = lw->b->k;

	if (p->param < lw->k->n_outputs || k->shared)
		return false;
	for (int32_t i = 0; i < lw->k->n_outputs; i++)
		if (k->array.at[i].in == p->param + 1)
			return false;
	return true;
}

/* Can one instruction load these lanes, wherever they are? Where each thread is a lane,
 * any load does. */
static bool is_gathered(lowering *lw, const struct place_of *p)
{
	return lw->k->machine->lanes == 0 && p->buf == NULL &&
	       p->plus == NULL && p->dtype == TN_F32 && lw->each == 1 &&
	       is_steady(lw, p) && lw_form_varies(lw, p->at) &&
	       lw_index_in_vectors(lw, p->at) &&
	       lw_index_dtype(lw, p->at) == TN_I32;
}

static void load_gathered(lowering *lw, const struct place_of *p, val n,
	val by, bool guarded)
{
	kern_access x = kern_element(p->array, lw_num(lw, 0));

	x.by = by.id;
	x.part = lw_as_part(lw, lw_live(lw));
	if (guarded && lw_path_mixed(lw))
		x.mask = lw_path_mask(lw, 4).id;
	lw_set(lw, n, lw_load_at(lw, &x, n));
}

static void one_by_one(lowering *lw, const struct place_of *p, val n, val by,
	bool guarded)
{
	if (by.id != 0)
		load_gathered(lw, p, n, by, guarded);
	else
		lane_by_lane(lw, p, n, guarded);
}

/* Are the elements of lanes the same distance apart, all of them inside? */
static bool is_far(const lowering *lw, const struct place_of *p, bool guarded)
{
	return !guarded && lw->k->machine->lanes == 0 && p->plus == NULL && p->affine &&
	       p->varies && !per_lane(lw, p) && lw->each == 1;
}

static val load_far(lowering *lw, const struct place_of *p)
{
	kern_access x = kern_element(p->array, lw_element(lw, p, 0));

	x.part = lw_as_part(lw, lw_live(lw));
	x.stride = p->stride;
	return lw_load_at(lw, &x, stored_type(lw, p, true));
}

static val load_lanes(lowering *lw, const struct place_of *p, bool guarded)
{
	val n, all, whole = {0}, mask = {0}, by = {0};
	bool near, sure;

	if (!guarded && is_near(p) && p->stride == 2 && !per_lane(lw, p))
		return lw_widen(lw, load_whole(lw, p), p->dtype);
	if (is_far(lw, p, guarded))
		return lw_widen(lw, load_far(lw, p), p->dtype);
	/* threads load what they need: there is nothing to save */
	near = guarded && lw->k->machine->lanes == 0 && is_whole(lw, p, &whole);
	if (p->stride == 1 && p->dtype == TN_F32 &&
		(near || (guarded && is_raced(lw, p))))
		mask = lw_path_mask(lw, 4);
	sure = near && lw_is_const(lw, whole, &sure) && sure;
	/* in front of the conditions, for later loads */
	if (mask.id == 0 && !sure && is_gathered(lw, p))
		by = lw_index_lanes(lw, p->at, TN_I32);
	n = lw_register(lw, stored_type(lw, p, true), 0);
	all = guarded ? lw_path_of_all(lw) : (val){0};
	if (all.id != 0)
		lw_if(lw, all);
	if (mask.id != 0) {
		load_masked(lw, p, n, mask, whole);
	} else if (sure) {
		lw_set(lw, n, load_whole(lw, p));
	} else if (near) {
		/* at the ends of the tensor; said to be rare, so that no C compiler
		 * computes its addresses in front of the loop */
		kern_stmt *s = kern_if(lw->b, lw_not(lw, whole).id, true);

		one_by_one(lw, p, n, by, guarded);
		kern_else(lw->b, s);
		lw_set(lw, n, load_whole(lw, p));
		lw_close(lw);
	} else {
		one_by_one(lw, p, n, by, guarded);
		if (guarded && by.id == 0)
			*vec_push(lw->a, &lw->loaded) = n.id;
	}
	if (all.id != 0)
		lw_close(lw);
	return lw_widen(lw, n, p->dtype);
}

val lw_load(lowering *lw, const struct place_of *p, bool guarded)
{
	bool own = per_lane(lw, p), lanes = p->varies || own;
	bool mixed = guarded && lw_path_mixed(lw);
	bool whole = own ? !p->varies : p->affine && p->stride == 1;
	val c, v;

	if (is_register(p))
		return *register_of(lw, p);
	if (lw_window(lw, p, &v))
		return v;
	lanes |= mixed;
	if (lanes && (guarded ? mixed || !whole || own || !p->varies : !whole))
		return load_lanes(lw, p, guarded);
	if (guarded) /* the condition is the same for all lanes */
		c = lw_path(lw, 0);
	v = lanes ? load_vector(lw, p, guarded ? &c : NULL)
		  : lw_load_scalar(lw, p, 0, guarded ? &c : NULL);
	return lw_widen(lw, v, p->dtype);
}

/* Is every stored vector aligned, so that it can bypass the caches? */
static bool is_aligned(const lowering *lw, const struct place_of *p)
{
	if (p->param < 0 || p->buf != NULL || !lw->k->stream[p->param] ||
		lw->dead > 0 ||
		lw->lanes * (int32_t)dtype_size(p->dtype) < 16 ||
		lw->span[lw->vvar].mult % lw->lanes != 0 ||
		p->at->c0 % lw->lanes != 0)
		return false;
	for (int32_t i = 0; i < p->at->n; i++) {
		const ix_term *t = &p->at->t[i];

		if (t->coef % lw->lanes != 0 &&
			(t->atom->kind != IX_DIGIT ||
				t->atom->axis != lw->vvar))
			return false;
	}
	return true;
}

static void store_vector(lowering *lw, const struct place_of *p, val v)
{
	kern_access x = kern_element(p->array, lw_element(lw, p, 0));
	bool stream = is_aligned(lw, p);

	if (!per_lane(lw, p)) {
		x.part = lw_as_part(lw, lw_live(lw));
		x.stride = lw->each;
	}
	lw->streams |= stream;
	kern_store(lw->b, &x, v.id, stream);
}

static void store_lanes(lowering *lw, const struct place_of *p, val v)
{
	kern_val l;

	if (lw->k->machine->lanes == 0) /* a lane of a register may be one in memory */
		v = lw_op1(lw, KERN_COPY, v, v);
	l = lw_for_lanes(lw, per_lane(lw, p) ? lw->lanes : lw_live(lw));
	lw_store_to(lw, p->array, lw_element(lw, p, l),
		lw_lane_of(lw, v, lw_form_of(lw, l)), 0);
	lw_close(lw);
}

void lw_put(lowering *lw, const struct place_of *p, val v)
{
	bool own = per_lane(lw, p), wide = lw->lanes > 1 && (p->varies || own);

	v = lw_cast(lw, v, lw_computed(p->dtype));
	if (wide)
		v = v.dt == TN_BOOL ? lw_to_mask(lw, v, lw_mask_bytes(lw))
				    : lw_to_lanes(lw, v);
	if (is_register(p) && p->buf->where == LOOP_HELD && lw->of_lane != NULL) {
		kern_set_lane(lw->b, lw->sums[p->n_buf][lw->number].id, lw->of_lane, v.id);
		return;
	}
	if (is_register(p)) {
		lw_set(lw, *register_of(lw, p), v);
		return;
	}
	v = lw_narrow(lw, v, p->dtype);
	if (!wide)
		lw_store_to(lw, p->array, lw_element(lw, p, 0), v, 0);
	else if (own ? !p->varies : p->affine && p->stride == 1)
		store_vector(lw, p, v);
	else
		store_lanes(lw, p, v);
}
