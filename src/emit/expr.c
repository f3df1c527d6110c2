/*
 * expr.c: expressions as straight-line C, each computed once in its block.
 *
 * Consumes interned exprs: one that was named in this block, or one around it,
 * is not computed again. A select evaluates both sides; what must not be read
 * on the side not taken is read under the condition, so no branch is needed
 * and lanes may disagree:
 *
 *   o = inside(i - 1) ? x[i - 1] : 0
 *     const int t0 = i0 >= 1;
 *     const f32 t1 = t0 ? p1[i0 - 1] : 0;
 *     const f32 t2 = t0 ? t1 : 0x0p+0f;
 */
#include "emit/local.h"

#include <inttypes.h>

struct seek {
	emitter *em;
	bool unsafe;
};

static void unsafe_visit(void *arg, const expr *e)
{
	struct seek *s = arg;
	int64_t min, max;

	if (e->form == NULL || s->unsafe)
		return;
	s->unsafe = ix_has_fun(e->form);
	if (e->kind != EX_READ || s->unsafe)
		return;
	ix_range(s->em->dom, e->form, &min, &max);
	s->unsafe = min < 0 || max >= s->em->s->tensor.at[e->tensor].numel;
}

/* May something below be read only where the guards in force hold? */
bool em_is_unsafe(emitter *em, const expr *e)
{
	int64_t known = em->dom->n_facts > 0
				? 0
				: map_get(em->unsafe, &e->id, sizeof e->id, 0);
	struct seek s = {em, false};

	if (known != 0)
		return known == 2;
	loop_walk(em->a, e, unsafe_visit, &s);
	if (em->dom->n_facts == 0)
		map_set(em->unsafe, &e->id, sizeof e->id, s.unsafe ? 2 : 1);
	return s.unsafe;
}

struct reader {
	int32_t tensor;
	bool found;
};

static void reads_visit(void *arg, const expr *e)
{
	struct reader *r = arg;

	r->found |= e->kind == EX_READ &&
		    (e->tensor == r->tensor || ix_has_fun(e->form));
}

/* What was read from a tensor before is not what a scan has stored since. */
void em_forget(emitter *em, int32_t tensor)
{
	int32_t i;

	for (i = 0; i < em->memo.n; i++) {
		struct reader r = {tensor, false};

		if (em->memo.at[i].e == NULL)
			continue;
		loop_walk(em->a, em->memo.at[i].e, reads_visit, &r);
		if (r.found)
			em->memo.at[i].e = NULL;
	}
	for (i = 0; i < em->fun.n; i++)
		em->fun.at[i].atom = NULL;
}

void em_address(emitter *em, struct place_of *p)
{
	int32_t i;

	if (em->lanes == 1)
		return;
	p->affine = true;
	if (p->buf == NULL || p->buf->n_vars == 0) {
		p->varies = em_form_varies(em, p->at);
		if (p->buf != NULL && p->buf->where == LOOP_REGISTER)
			p->varies = false;
		p->affine = loop_stride(p->at, em->vvar,
			em->k->var[em->vvar].extent, &p->stride);
		return;
	}
	for (i = 0; i < p->buf->n_vars; i++) {
		int64_t s = 0;

		p->varies |= em_form_varies(em, p->digit[i]);
		p->affine = p->affine &&
			    loop_stride(p->digit[i], em->vvar,
				    em->k->var[em->vvar].extent, &s);
		p->stride += s * p->buf->stride[i];
	}
}

/*
 * On a side of a condition the subscripts are what it makes of them: those of
 * a window that reads through a reshape are affine only where it is inside.
 */
static void shorten(emitter *em, struct place_of *p)
{
	const ix_form *d[IX_MAX_AXES];

	if (em->path_dom.n_facts == em->dom->n_facts)
		return;
	loop_subscript(em->k, &em->path_dom, p->buf, p->at, d);
	for (int32_t i = 0; i < p->buf->n_vars; i++) {
		if (d[i] == p->digit[i])
			continue;
		p->digit[i] = d[i];
		p->guarded = true;
	}
	em->n_short += p->guarded;
}

struct place_of em_place_buf(emitter *em, int32_t n_buf, const ix_form *at)
{
	struct place_of p = {.buf = &em->k->buf[n_buf],
		.n_buf = n_buf,
		.param = -1,
		.at = at};

	p.dtype = p.buf->dtype;
	loop_subscript(em->k, em->dom, p.buf, at, p.digit);
	if (em->path.n > 0)
		shorten(em, &p);
	em->used_buf[n_buf] = true;
	em_address(em, &p);
	return p;
}

/* The loops of an earlier phase have left it in memory. */
static bool is_complete(const emitter *em, int32_t eqn, int32_t comp)
{
	const loop_buf *b = &em->k->buf[em->k->buf_of[eqn][comp]];

	return b->where != LOOP_SCRATCH && b->phase < em->phase &&
	       loop_param(em->k, em->k->eqn[eqn].e->out[comp]) >= 0;
}

struct place_of em_place_tensor(
	emitter *em, int32_t tensor, const ix_form *at, bool in_memory)
{
	struct place_of p = {.at = at};
	int32_t e, c;

	if (!in_memory && loop_maker(em->k, tensor, &e, &c) &&
		em->k->buf_of[e][c] >= 0 && !is_complete(em, e, c) &&
		(!em->k->eqn[e].stage ||
			loop_is_staged(
				em->k, &em->k->buf[em->k->buf_of[e][c]], at)))
		return em_place_buf(em, em->k->buf_of[e][c], at);
	p.param = loop_param(em->k, tensor);
	if (p.param < 0)
		emit_bug(em, "a tensor is nowhere",
			em->s->tensor.at[tensor].name);
	em->used_param[p.param] = true;
	p.dtype = em->s->tensor.at[tensor].dtype;
	em_address(em, &p);
	return p;
}

/* Values per lane are kept in the buffer side by side. */
static bool per_lane(const emitter *em, const struct place_of *p)
{
	return em->lanes > 1 && p->buf != NULL && p->buf->lanes;
}

const char *em_element(emitter *em, const struct place_of *p, const char *lane)
{
	const char *i;

	if (p->base != NULL)
		return arena_printf(
			em->a, "%s%s]", p->base, em_form_text(em, p->at, lane));
	if (p->buf == NULL)
		return arena_printf(em->a, "p%d[%s]", p->param,
			em_form_text(em, p->at, lane));
	if (p->buf->where == LOOP_REGISTER)
		return per_lane(em, p) && lane != NULL
			       ? arena_printf(em->a, "r%d[%s]", p->n_buf, lane)
			       : arena_printf(em->a, "r%d", p->n_buf);
	i = em->k->eqn[p->buf->eqn].push
		    ? em_form_text(em, p->at, lane)
		    : em_digits_text(em, p->buf, p->digit, lane);
	if (!per_lane(em, p))
		return arena_printf(em->a, "b%d[%s]", p->n_buf, i);
	return arena_printf(em->a, "b%d[(%s) * %d%s%s]", p->n_buf, i, em->lanes,
		lane != NULL ? " + " : "", lane != NULL ? lane : "");
}

/* A value as it is stored -> as it is computed with. */
static val widened(emitter *em, val v, tn_dtype stored)
{
	if (stored == TN_F16 || stored == TN_BF16) {
		const char *f = stored == TN_F16 ? "f32_from_f16"
						 : "f32_from_bf16";

		v.t = arena_printf(
			em->a, "%s(%s)", em_use(em, f, TN_F32, v.lanes), v.t);
		v.dt = TN_F32;
	} else if (stored == TN_BOOL && v.lanes > 1) {
		v.t = arena_printf(em->a,
			"__builtin_convertvector(%s != 0, %s)", v.t,
			em_mask_type(em, em_mask_bytes(em)));
		v.mask = em_mask_bytes(em);
	} else if (stored == TN_BOOL) {
		v.t = arena_printf(em->a, "%s != 0", v.t);
	}
	return em_name_val(em, v);
}

const char *em_load_text(emitter *em, tn_dtype t, const char *element)
{
	if (em->dead > 0)
		return arena_printf(em->a, "%s(&%s, %d)",
			em_use(em, "load_part", t, em->lanes), element,
			em_live(em));
	return arena_printf(em->a, "%s(&%s)",
		em_use(em, "load", t, em->lanes), element);
}

/* Of lanes two apart, the elements of vector 0 or 1 that are in memory. */
static const char *load_half(emitter *em, const struct place_of *p,
	int32_t half)
{
	int32_t n = 2 * em_live(em) - 1 - half * (em->lanes - 1);
	const char *at = em_element(em, p, NULL);

	if (half > 0)
		at = arena_printf(em->a, "%s + %d", at, em->lanes - 1);
	if (n >= em->lanes)
		return arena_printf(em->a, "%s(&%s)",
			em_use(em, "load", p->dtype, em->lanes), at);
	if (n <= half) /* of the second one, no more than the first has */
		return arena_printf(em->a, "(%s){ 0 }",
			em_type(em, p->dtype, em->lanes));
	return arena_printf(em->a, "%s(&%s, %d)",
		em_use(em, "load_part", p->dtype, em->lanes), at, n);
}

/* Lanes that adjoin, or lie two apart: of two vectors each second element. */
static const char *load_whole(emitter *em, const struct place_of *p)
{
	str s;

	if (p->stride == 1)
		return em_load_text(em, p->dtype, em_element(em, p, NULL));
	s = str_new(em->a);
	str_printf(&s, "__builtin_shufflevector(%s, %s",
		load_half(em, p, 0), load_half(em, p, 1));
	for (int32_t l = 0; l < em->lanes; l++)
		str_printf(&s, ", %d",
			2 * l < em->lanes ? 2 * l : 2 * l + 1);
	str_addc(&s, ')');
	return s.at;
}

static bool is_near(const struct place_of *p)
{
	return p->base == NULL && p->affine && p->varies &&
	       (p->stride == 1 || p->stride == 2);
}

/*
 * Lanes that are near each other are loaded whole where all of them lie in the
 * tensor or buffer, even where a condition wants some only: nobody looks at the others.
 */
static const char *is_whole(emitter *em, const struct place_of *p)
{
	int64_t numel;
	const char *at;

	if (!is_near(p) || per_lane(em, p) || !dtype_is_float(p->dtype))
		return NULL;
	if (p->buf != NULL && p->buf->where == LOOP_REGISTER)
		return NULL;
	if (p->buf != NULL && !em->k->eqn[p->buf->eqn].push) {
		numel = p->buf->elems;
		at = em_digits_text(em, p->buf, p->digit, NULL);
	} else if (p->param >= 0) {
		numel = em->s->tensor.at[em->k->param[p->param]].numel;
		at = em_form_text(em, p->at, NULL);
	} else {
		return NULL;
	}
	return arena_printf(em->a, "(%s) >= 0 && (%s) < %" PRId64, at, at,
		numel - p->stride * (em_live(em) - 1));
}

/* The conditions of the path that lanes may differ in, a mask; "": none. */
static const char *path_mask(emitter *em, int32_t bytes)
{
	str s = str_new(em->a);

	for (int32_t i = 0; i < em->path.n; i++) {
		const struct path *p = &em->path.at[i];

		if (p->c.lanes > 1)
			str_printf(&s, "%s%s%s", s.n > 0 ? " & " : "",
				p->negated ? "~" : "",
				em_to_mask(em, p->c, bytes).t);
	}
	return s.at;
}

/* Those that hold for all lanes or none: opened, if there is one. */
static bool open_path(emitter *em)
{
	str s = str_new(em->a);

	for (int32_t i = 0; i < em->path.n; i++) {
		const struct path *p = &em->path.at[i];

		if (p->c.lanes == 1)
			str_printf(&s, "%s%s%s", s.n > 0 ? " && " : "",
				p->negated ? "!" : "", p->c.t);
	}
	if (s.n == 0)
		return false;
	em_line(em, "if (%s) {", s.at);
	em->depth++;
	return true;
}

static void close_brace(emitter *em)
{
	em->depth--;
	em_line(em, "}");
}

static val load_lanes(emitter *em, const struct place_of *p, bool guarded)
{
	const char *n = em_fresh(em, "g"),
		   *cond = guarded ? em_path_text(em, "l") : "";
	const char *whole = guarded ? is_whole(em, p) : NULL, *mask = "";
	bool open;

	if (!guarded && is_near(p) && p->stride == 2 && !per_lane(em, p))
		return widened(em,
			(val){load_whole(em, p), p->dtype, em->lanes, 0},
			p->dtype);
	if (whole != NULL && em->dead > 0 && p->stride == 1 &&
		p->dtype == TN_F32)
		mask = path_mask(em, 4);
	em_line(em, "%s %s = { 0 };", em_type(em, p->dtype, em->lanes), n);
	open = guarded && open_path(em);
	if (mask[0] != '\0') {
		em_line(em, "%s = %s(&%s, %s, %d, %s);", n,
			em_use(em, "load_mask", p->dtype, em->lanes),
			em_element(em, p, NULL), mask, em_live(em), whole);
		if (open)
			close_brace(em);
		return widened(em, (val){n, p->dtype, em->lanes, 0}, p->dtype);
	}
	if (whole != NULL) {
		em_line(em, "if (%s) {", whole);
		em_line(em, "	%s = %s;", n, load_whole(em, p));
		em_line(em, "} else {");
		em->depth++;
	}
	em_line(em, "for (int l = 0; l < %d; l++)", em_live(em));
	if (guarded)
		em_line(em, "	if (%s)", cond);
	em_line(em, "	%s%s[l] = %s;", guarded ? "	" : "", n,
		em_element(em, p, "l"));
	if (whole != NULL)
		close_brace(em);
	if (open)
		close_brace(em);
	return widened(em, (val){n, p->dtype, em->lanes, 0}, p->dtype);
}

val em_load(emitter *em, const struct place_of *p, bool guarded)
{
	bool lanes = p->varies || per_lane(em, p), mixed = false;
	const char *t = em_element(em, p, NULL);
	int32_t i;
	val w;

	if (p->buf != NULL && p->buf->where == LOOP_REGISTER) {
		val v = {t, p->dtype, per_lane(em, p) ? em->lanes : 1, 0};

		if (v.dt == TN_BOOL && v.lanes > 1)
			v.mask = em_mask_bytes(em);
		return v;
	}
	if (em_window(em, p, &w))
		return w;
	for (i = 0; guarded && i < em->path.n; i++)
		mixed |= em->path.at[i].c.lanes > 1;
	lanes |= mixed;
	if (lanes && !guarded &&
		(per_lane(em, p) ? !p->varies : p->affine && p->stride == 1))
		return widened(em,
			(val){per_lane(em, p)
					? arena_printf(em->a, "%s(&%s)",
						em_use(em, "load", p->dtype,
							em->lanes),
						t)
					: em_load_text(em, p->dtype, t),
				p->dtype, em->lanes, 0},
			p->dtype);
	if (lanes && (mixed || !p->varies || !p->affine || p->stride != 1 ||
			     per_lane(em, p)))
		return load_lanes(em, p, guarded);
	if (lanes) { /* the condition is one for all lanes */
		const char *n = em_fresh(em, "g");

		em_line(em, "%s %s = { 0 };", em_type(em, p->dtype, em->lanes),
			n);
		em_line(em, "if (%s)", em_path_text(em, NULL));
		em_line(em, "	%s = %s;", n, em_load_text(em, p->dtype, t));
		return widened(em, (val){n, p->dtype, em->lanes, 0}, p->dtype);
	}
	if (guarded) {
		const char *n = em_fresh(em, "g");

		em_line(em, "const %s %s = %s ? %s : 0;",
			em_type(em, p->dtype, 1), n, em_path_text(em, NULL), t);
		t = n;
	}
	return widened(em, em_val_of(t, p->dtype), p->dtype);
}

static const char *narrowed(emitter *em, val v, tn_dtype to)
{
	if (to == TN_F16 || to == TN_BF16)
		return arena_printf(em->a, "%s(%s)",
			em_use(em,
				to == TN_F16 ? "f16_from_f32" : "bf16_from_f32",
				TN_F32, v.lanes),
			v.t);
	if (to == TN_BOOL && v.lanes > 1)
		return arena_printf(em->a, "__builtin_convertvector(-%s, %s)",
			v.t, em_type(em, TN_U8, v.lanes));
	return v.t;
}

/* Is every vector stored here aligned, and to go past the caches? */
static bool is_aligned(const emitter *em, const struct place_of *p)
{
	int32_t i;

	if (p->param < 0 || p->buf != NULL || !em->k->stream[p->param] ||
		em->dead > 0 ||
		em->lanes * (int32_t)dtype_size(p->dtype) < 16 ||
		em->span[em->vvar].mult % em->lanes != 0 ||
		p->at->c0 % em->lanes != 0)
		return false;
	for (i = 0; i < p->at->n; i++) {
		const ix_term *t = &p->at->t[i];

		if (t->coef % em->lanes != 0 &&
			(t->atom->kind != IX_DIGIT ||
				t->atom->axis != em->vvar))
			return false;
	}
	return true;
}

void em_store(emitter *em, const struct place_of *p, val v)
{
	const char *t = em_element(em, p, NULL);
	bool reg = p->buf != NULL && p->buf->where == LOOP_REGISTER;
	bool wide = em->lanes > 1 && (p->varies || per_lane(em, p));

	v = em_cast(em, v, em_computed(p->dtype));
	if (wide)
		v = v.dt == TN_BOOL ? em_to_mask(em, v, em_mask_bytes(em))
				    : em_to_lanes(em, v);
	if (reg) {
		em_line(em, "%s = %s;", t, v.t);
	} else if (!wide) {
		em_line(em, p->dtype == TN_BOOL ? "%s = (u8)%s;" : "%s = %s;",
			t, narrowed(em, v, p->dtype));
	} else if (per_lane(em, p) ? !p->varies : p->affine && p->stride == 1) {
		bool part = em->dead > 0 && !per_lane(em, p);
		const char *plain = em_use(em, part ? "store_part" : "store",
			p->dtype, em->lanes);

		v.t = narrowed(em, v, p->dtype);
		if (part) {
			em_line(em, "%s(&%s, %s, %d);", plain, t, v.t,
				em_live(em));
		} else if (is_aligned(em, p)) {
			em->streams = em->used_stream[p->param] = true;
			em_line(em, "if (n%d)", p->param);
			em_line(em, "	%s(&%s, %s);",
				em_use(em, "stream", p->dtype, em->lanes), t,
				v.t);
			em_line(em, "else");
			em_line(em, "	%s(&%s, %s);", plain, t, v.t);
		} else {
			em_line(em, "%s(&%s, %s);", plain, t, v.t);
		}
	} else {
		val w = {narrowed(em, v, p->dtype), p->dtype, em->lanes,
			p->dtype == TN_BOOL ? 1 : 0};
		const char *n = em_fresh(em, "s");

		em_line(em, "const %s %s = %s;", em_type(em, w.dt, em->lanes),
			n, w.t);
		em_line(em, "for (int l = 0; l < %d; l++)",
			per_lane(em, p) ? em->lanes : em_live(em));
		em_line(em, "	%s = %s[l];", em_element(em, p, "l"), n);
	}
}

/* Registers are known by their tensor alone. */
const val *em_stored(emitter *em, int32_t tensor, const ix_form *at)
{
	int32_t i;

	for (i = em->def.n - 1; i >= 0; i--)
		if (em->def.at[i].tensor == tensor &&
			(em->def.at[i].at == NULL || em->def.at[i].at == at)) {
			em->def.at[i].used = true;
			return &em->def.at[i].v;
		}
	return NULL;
}

static val read(emitter *em, const expr *e)
{
	bool guarded = em->path.n > 0 && em_is_unsafe(em, e);
	const val *known;
	struct place_of p;
	int32_t q, c;
	val v;

	em_load_funs(em, e->form); /* a register has no index, but it is checked */
	known = em_stored(em, e->tensor, e->form);
	if (known != NULL)
		return *known;
	p = em_place_tensor(em, e->tensor, e->form, false);
	v = em_load(em, &p, guarded || p.guarded);
	if (p.buf != NULL && loop_maker(em->k, e->tensor, &q, &c) &&
		em->k->eqn[q].acc[c] != e->dtype)
		v = em_cast(em, v, e->dtype); /* rounded once, when complete */
	return v;
}

/* What the values of f are compared in when there is one per lane. */
tn_dtype em_index_dtype(emitter *em, const ix_form *f)
{
	int64_t min, max;

	ix_range(em->dom, f, &min, &max);
	return min < INT32_MIN || max > INT32_MAX || em_mask_bytes(em) > 4
		       ? TN_I64
		       : TN_I32;
}

/* A part of the variable that the lanes walk, such as i / 56 % 56. */
static bool is_lane_digit(const emitter *em, const ix_atom *t)
{
	return em->lanes > 1 && t->kind == IX_DIGIT && t->axis == em->vvar &&
	       (t->lo > 1 || t->hi < em->dom->box.extent[t->axis]);
}

/* One number for each lane. */
static const char *by_lane(emitter *em, const ix_form *f, tn_dtype dt)
{
	const char *n = em_fresh(em, "t");

	em_line(em, "%s %s = { 0 };", em_type(em, dt, em->lanes), n);
	em_line(em, "for (int l = 0; l < %d; l++)", em->lanes);
	em_line(em, "	%s[l] = (%s)(%s);", n, em_type(em, dt, 1),
		em_form_text(em, f, "l"));
	return n;
}

static const char *lane_digit(emitter *em, const ix_atom *t, tn_dtype dt)
{
	const char *n;

	for (int32_t i = em->digit.n - 1; i >= 0; i--)
		if (em->digit.at[i].atom == t && em->digit.at[i].dt == dt)
			return em->digit.at[i].t;
	n = by_lane(em,
		ix_digit(em->s->x, em->dom, t->axis, t->lo, t->hi), dt);
	*vec_push(em->a, &em->digit) = (struct memo_digit){t, dt, n};
	return n;
}

void em_lane_digits(emitter *em, const ix_form *f)
{
	tn_dtype dt = em_index_dtype(em, f);

	for (int32_t i = 0; i < f->n; i++) {
		int32_t n = em->digit.n;

		if (is_lane_digit(em, f->t[i].atom))
			(void)lane_digit(em, f->t[i].atom, dt);
		if (em->digit.n > n)
			em_line(em, "(void)%s;", em->digit.at[n].t);
	}
}

/* f without the digits of the lanes; what they add to it goes to s. */
static const ix_form *without_digits(
	emitter *em, const ix_form *f, tn_dtype dt, str *s)
{
	const ix_form *rest = f;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;
		const char *n;

		if (!is_lane_digit(em, t))
			continue;
		n = lane_digit(em, t, dt);
		str_printf(s, f->t[i].coef == 1 ? " + %s" : " + %s * (%s)%" PRId64,
			n, em_type(em, dt, 1), f->t[i].coef);
		rest = ix_sub(em->s->x, em->dom, rest,
			ix_scale(em->s->x,
				ix_digit(em->s->x, em->dom, t->axis, t->lo,
					t->hi),
				f->t[i].coef));
	}
	return rest;
}

val em_index(emitter *em, const ix_form *f, tn_dtype dt)
{
	int64_t stride;
	val v = {NULL, dt, em->lanes, 0};
	const ix_form *rest;
	int32_t l, n = em->digit.n;
	str s = str_new(em->a), digits = str_new(em->a);

	em_load_funs(em, f);
	if (!em_form_varies(em, f) && !(ix_has_fun(f) && em->lanes > 1))
		return em_name_val(
			em, em_val_of(em_form_text(em, f, NULL), TN_I64));
	rest = ix_has_fun(f) ? f : without_digits(em, f, dt, &digits);
	if (ix_has_fun(f) || !loop_stride(rest, em->vvar,
				     em->k->var[em->vvar].extent, &stride)) {
		for (; n < em->digit.n; n++) /* made, and of no use here */
			em_line(em, "(void)%s;", em->digit.at[n].t);
		v.t = by_lane(em, f, dt);
		return v;
	}
	str_printf(&s, "%s((%s)(%s))",
		em_use(em, "splat", dt, em->lanes), em_type(em, dt, 1),
		em_form_text(em, rest, NULL));
	if (stride != 0) {
		str_printf(&s, " + (%s){ ", em_type(em, dt, em->lanes));
		for (l = 0; l < em->lanes; l++)
			str_printf(&s, "%s%" PRId64, l > 0 ? ", " : "",
				stride * l);
		str_add(&s, " }");
	}
	str_add(&s, digits.at);
	v.t = s.at;
	return em_name_val(em, v);
}

static val inside(emitter *em, const expr *e)
{
	int64_t min, max;
	val v;
	const char *lo = "", *hi = "";

	ix_range(em->dom, e->form, &min, &max);
	if (min >= e->lo && max < e->hi)
		return em_val_of("1", TN_BOOL);
	if (max < e->lo || min >= e->hi)
		return em_val_of("0", TN_BOOL);
	v = em_index(em, e->form, em_index_dtype(em, e->form));
	if (min < e->lo)
		lo = arena_printf(em->a, "(%s >= %" PRId64 ")", v.t, e->lo);
	if (max >= e->hi)
		hi = arena_printf(em->a, "(%s < %" PRId64 ")", v.t, e->hi);
	v.t = arena_printf(em->a, "%s%s%s", lo, *lo && *hi ? " & " : "", hi);
	v.mask = v.lanes > 1 ? (int32_t)dtype_size(v.dt) : 0;
	v.dt = TN_BOOL;
	return em_name_val(em, v);
}

/* x, y, z of the text replaced by the arguments */
static const char *fill(emitter *em, const char *text, const char *const *arg)
{
	str s = str_new(em->a);
	const char *p;

	for (p = text; *p != '\0'; p++)
		if (*p >= 'x' && *p <= 'z')
			str_printf(&s, "%s", arg[*p - 'x']);
		else
			str_addc(&s, *p);
	return s.at;
}

/* Infix text: whole numbers wrap, so they are computed unsigned. */
static val infix(
	emitter *em, const ir_scalar *f, const val *x, tn_dtype t, val v)
{
	const char *arg[IR_MAX_ARGS] = {"", "", ""}, *c;
	bool wraps = dtype_is_int(t) && v.dt != TN_BOOL;
	int32_t i;

	for (i = 0; i < f->n_args; i++)
		arg[i] = wraps ? arena_printf(em->a, "(%s)%s",
					 em_unsigned_type(em, t, v.lanes),
					 x[i].t)
			       : x[i].t;
	c = fill(em, f->emit, arg);
	if (wraps)
		c = arena_printf(em->a, "(%s)%s", em_type(em, t, v.lanes), c);
	v.t = c;
	return v;
}

static val scalar_call(emitter *em, const ir_scalar *f, const expr *e, val *x)
{
	tn_dtype t = TN_BOOL, out = em_computed(e->dtype);
	val v = {NULL, out, 1, 0};
	const char *sep = "", *fn;
	int32_t i, bytes = 0;
	bool masks;
	str s;

	for (i = 0; i < f->n_args; i++) {
		if (t == TN_BOOL)
			t = x[i].dt;
		if (x[i].lanes > 1)
			v.lanes = x[i].lanes;
		if (x[i].mask > bytes)
			bytes = x[i].mask;
	}
	masks = t == TN_BOOL && v.lanes > 1;
	if (masks)
		t = em_int_of(bytes);
	else if (t == TN_BOOL)
		t = TN_I32;
	else
		bytes = (int32_t)dtype_size(t);
	for (i = 0; i < f->n_args && v.lanes > 1; i++)
		x[i] = x[i].dt == TN_BOOL ? em_to_mask(em, x[i], bytes)
					  : em_to_lanes(em, x[i]);
	/* true is -1 in a mask, but more than false */
	for (i = 0; i < f->n_args && masks && f->sig[0] == 'O'; i++)
		x[i].t = arena_printf(em->a, "(%s & 1)", x[i].t);
	if (v.lanes > 1 && out == TN_BOOL)
		v.mask = bytes;
	if (f->emit[0] == '(') {
		v = infix(em, f, x, t, v);
	} else {
		if (dtype_is_float(out) && !dtype_is_float(t)) {
			t = out; /* of integers, named after its result */
			for (i = 0; i < f->n_args; i++)
				x[i] = em_cast(em, x[i], TN_I64);
		}
		fn = em_use(em, f->emit, t, v.lanes);
		s = str_new(em->a);
		str_printf(&s, "%s(", fn);
		for (i = 0; i < f->n_args; i++, sep = ", ")
			str_printf(&s, "%s%s", sep, x[i].t);
		str_add(&s, ")");
		v.t = s.at;
	}
	/* infix text gives 0 or 1, helpers what a lane would hold */
	if (out == TN_BOOL && v.lanes == 1 && f->emit[0] != '(')
		v.t = arena_printf(em->a, "%s != 0", v.t);
	return em_name_val(em, v);
}

static val call(emitter *em, const expr *e)
{
	const ir_scalar *f = ir_scalar_at(e->fn);
	val x[IR_MAX_ARGS];
	int32_t i;

	for (i = 0; i < f->n_args; i++)
		x[i] = em_ex(em, e->arg[i]);
	return scalar_call(em, f, e, x);
}

/*
 * What was named on a side that may not be taken is unknown behind it, and so
 * is what has been read there from places that are right there only.
 */
static val side(emitter *em, const expr *e, val c, const expr *cond,
	bool negated)
{
	int32_t n = em->memo.n, nf = em->fun.n, n_short = em->n_short, i;
	ix_dom was = em->path_dom;
	val v;

	em->path_dom = ir_dom_when(em->s, em->path.n > 0 ? &was : em->dom,
		cond, !negated);
	*vec_push(em->a, &em->path) = (struct path){c, negated};
	v = em_ex(em, e);
	em->path.n--;
	em->path_dom = was;
	em->fun.n = nf;
	for (i = n; i < em->memo.n; i++)
		if (em->memo.at[i].e != NULL &&
			(em->n_short > n_short ||
				em_is_unsafe(em, em->memo.at[i].e)))
			em->memo.at[i].e = NULL;
	return v;
}

static val select_value(emitter *em, const expr *e)
{
	val c = em_ex(em, e->arg[0]), x[2], v;
	int32_t i;

	if (c.lanes == 1 && (strcmp(c.t, "1") == 0 || strcmp(c.t, "0") == 0))
		return em_ex(em, e->arg[c.t[0] == '1' ? 1 : 2]);
	x[0] = side(em, e->arg[1], c, e->arg[0], false);
	x[1] = side(em, e->arg[2], c, e->arg[0], true);
	v = (val){NULL, em_computed(e->dtype), 1, 0};
	for (i = 0; i < 2; i++)
		v.lanes = x[i].lanes > v.lanes ? x[i].lanes : v.lanes;
	v.lanes = c.lanes > v.lanes ? c.lanes : v.lanes;
	for (i = 0; i < 2 && v.lanes > 1; i++)
		x[i] = x[i].dt == TN_BOOL
			       ? em_to_mask(em, x[i], em_mask_bytes(em))
			       : em_to_lanes(em, x[i]);
	v.mask = x[0].mask;
	if (v.lanes == 1 || c.lanes == 1) {
		v.t = arena_printf(em->a, "%s ? %s : %s", c.t, x[0].t, x[1].t);
	} else if (v.dt == TN_BOOL) {
		c = em_to_mask(em, c, v.mask);
		v.t = arena_printf(em->a, "(%s & %s) | (~%s & %s)", c.t, x[0].t,
			c.t, x[1].t);
	} else {
		c = em_to_mask(em, c, (int32_t)dtype_size(v.dt));
		v.t = arena_printf(em->a, "%s(%s, %s, %s)",
			em_use(em, "sel", v.dt, v.lanes), c.t, x[0].t, x[1].t);
	}
	return em_name_val(em, v);
}

val em_ex(emitter *em, const expr *e)
{
	val v = {0};
	int32_t i;

	for (i = em->memo.n - 1; i >= 0; i--)
		if (em->memo.at[i].e == e)
			return em->memo.at[i].v;
	switch (e->kind) {
	case EX_CONST:
		return em_literal(em, e->dtype, e->c.f, e->c.i);
	case EX_PARAM:
		return em->param[e->c.i];
	case EX_INDEX:
		v = em_index(em, e->form, TN_I64);
		break;
	case EX_READ:
		v = read(em, e);
		break;
	case EX_CALL:
		v = call(em, e);
		break;
	case EX_SELECT:
		v = select_value(em, e);
		break;
	case EX_INSIDE:
		em_load_funs(em, e->form);
		v = inside(em, e);
		break;
	case EX_CAST:
		v = em_cast(em, em_ex(em, e->arg[0]), e->dtype);
		break;
	}
	*vec_push(em->a, &em->memo) = (struct memo){e, v};
	return v;
}
