/*
 * rescale.c: finds rows whose weights depend on their maximum (online softmax).
 *
 * Consumes statements; finds the maximum m of a row, weights f(a - m) of each key,
 * where f maps sums to products, and sums that are linear in the weights. When a
 * block of keys increases m, the sums so far are multiplied by f(m before - m
 * now), so a row can be processed block by block (Milakov, Gimelshein 2018). The
 * properties of f are those of its row in scalar.def; no function is named here.
 *
 *   m[t] max= a[t, u]   p[t, u] = exp(a[t, u] - m[t])    z[t] += p[t, u]
 *                                              w[t, e] += p[t, u] * v[u, e]
 */
#include "eqn/eqn.h"

#define BIT(v) ((uint64_t)1 << (v))

struct rows {
	ir_system *s;
	arena *a;
	int32_t n;
	const eqn_stmt *e;
	eqn_rows *out;
	int64_t n_rows;
	const expr *weight; /* the first weight: f(..) */
	const eqn_stmt *now; /* the current statement, */
	const ix_form *row;  /* and its row; NULL: it reduces a row */
};

/* The statement that computes the tensor, or -1. */
static int32_t maker(const struct rows *r, int32_t tensor)
{
	for (int32_t i = 0; i < r->n; i++)
		if (r->e[i].out == tensor)
			return i;
	return -1;
}

/* Does e read a statement of one of these kinds? one: a bit for each kind */
static bool reads(const struct rows *r, const expr *e, uint32_t kinds)
{
	ex_reads all = ex_list_reads(r->s, e);

	for (int32_t i = 0; i < all.n; i++) {
		int32_t m = maker(r, all.at[i].tensor);

		if (m >= 0 && (kinds >> r->out->kind[m] & 1) != 0)
			return true;
	}
	return false;
}

#define KIND(k) ((uint32_t)1 << EQN_ROW_##k)
#define ROW_KINDS (KIND(MAX) | KIND(GIVEN))

static uint64_t vars_of(const ix_form *f)
{
	uint64_t s = 0;

	for (int32_t i = 0; i < f->n; i++)
		s |= f->t[i].atom->kind == IX_DIGIT
			     ? BIT(f->t[i].atom->axis)
			     : vars_of(f->t[i].atom->f);
	return s;
}

/* ---- linear ---- */

static bool is_linear(struct rows *r, const expr *e, int32_t depth);
static bool is_weight(struct rows *r, const expr *b);

/* Does one law hold: are all arguments with weights among its letters, and linear? */
static bool holds(struct rows *r, const expr *e, const char *law,
	size_t len, int32_t depth)
{
	for (int32_t i = 0; i < e->n_args; i++) {
		bool in = memchr(law, "xyz"[i], len) != NULL;

		if (in ? !is_linear(r, e->arg[i], depth)
		       : reads(r, e->arg[i], KIND(WEIGHT) | ROW_KINDS))
			return false;
	}
	return true;
}

/* Is it a weight, or one of those computed for each key? */
static bool is_one_weight(const struct rows *r, const expr *e)
{
	int32_t m = e->kind == EX_READ ? maker(r, e->tensor) : -1;

	if (e->kind == EX_READ)
		return m >= 0 && r->out->kind[m] == EQN_ROW_WEIGHT;
	return e->kind == EX_CALL && *ir_scalar_at(e->fn)->laws == '+';
}

/* Is e linear in the weights: a sum of weights times factors without weights? */
static bool is_linear(struct rows *r, const expr *e, int32_t depth)
{
	const char *law, *end;
	int32_t m;

	if (depth > 16 || !dtype_is_float(e->dtype))
		return false;
	switch (e->kind) {
	case EX_READ:
		m = maker(r, e->tensor);
		return m >= 0 && r->out->kind[m] == EQN_ROW_WEIGHT;
	case EX_CAST: /* a weight may be rounded: it is as exact before it is scaled */
		return (dtype_size(e->dtype) >= dtype_size(e->arg[0]->dtype) ||
			       is_one_weight(r, e->arg[0])) &&
		       is_linear(r, e->arg[0], depth + 1);
	case EX_SELECT:
		return !reads(r, e->arg[0], KIND(WEIGHT) | ROW_KINDS) &&
		       is_linear(r, e->arg[1], depth + 1) &&
		       (ex_is_zero(e->arg[2]) ||
			       is_linear(r, e->arg[2], depth + 1));
	case EX_CALL:
		law = ir_scalar_at(e->fn)->laws;
		if (*law == '+')
			return is_weight(r, e);
		if (*law == '~') /* as a cast does */
			return is_one_weight(r, e->arg[0]) &&
			       is_linear(r, e->arg[0], depth + 1);
		for (; *law != '\0'; law = *end == ' ' ? end + 1 : end) {
			end = law + strcspn(law, " ");
			if (holds(r, e, law, (size_t)(end - law), depth + 1))
				return true;
		}
		return false;
	case EX_CONST:
	case EX_INDEX:
	case EX_INSIDE:
	case EX_PARAM:
		return false;
	}
	return false;
}

/* ---- weights ---- */

static bool has_law(const expr *e, const char *law)
{
	return e->kind == EX_CALL &&
	       strcmp(ir_scalar_at(e->fn)->laws, law) == 0;
}

/* What e rounds, or has in another float dtype. */
static const expr *float_of(const expr *e)
{
	while (e->kind == EX_CAST && dtype_is_float(e->arg[0]->dtype))
		e = e->arg[0];
	return e;
}

/* If e is a - g, with g computed from the row's maximum: the statement of g; -1. */
static int32_t subtracted(const struct rows *r, const expr *e)
{
	const expr *g;
	int32_t m;

	e = float_of(e);
	if (!has_law(e, "xy") || e->n_args != 2 ||
		ir_scalar_at(e->fn)->f(0, 1, 0) != -1)
		return -1;
	g = float_of(e->arg[1]);
	m = g->kind == EX_READ ? maker(r, g->tensor) : -1;
	if (m < 0 || (ROW_KINDS >> r->out->kind[m] & 1) == 0 ||
		reads(r, e->arg[0], ROW_KINDS | KIND(WEIGHT)) ||
		(vars_of(g->form) & r->now->reduced) != 0 ||
		(r->row != NULL && ix_equal(r->s->x, &r->now->dom, g->form,
					   r->row) != IX_EQUAL))
		return -1;
	return m;
}

/* Is it f(a - g), with g of the current row? */
static bool is_weight(struct rows *r, const expr *b)
{
	int32_t m = subtracted(r, b->arg[0]);

	if (m < 0 || (r->weight != NULL &&
			     (r->out->fn != b->fn || r->out->in != b->dtype ||
				     m != r->out->given)))
		return false;
	r->weight = b;
	r->out->fn = b->fn;
	r->out->in = b->dtype;
	r->out->given = m;
	return true;
}

/* ---- rows and keys ---- */

/*
 * Is the tensor, which has values for each key, stored row by row, and does the
 * reader walk a row: by what it reduces, or by the same number?
 */
static bool is_aligned(const struct rows *r, const eqn_stmt *e)
{
	ex_reads all = ex_list_reads(r->s, e->body);
	const uint32_t keys = KIND(KEY) | KIND(WEIGHT);
	int64_t k = r->out->n_keys;

	for (int32_t i = 0; i < all.n; i++) {
		int32_t m = maker(r, all.at[i].tensor);
		const ix_form *f = all.at[i].at;

		if (m < 0 || (keys >> r->out->kind[m] & 1) == 0)
			continue;
		if (all.at[i].is_index || ix_has_fun(f))
			return false;
		if (e->monoid == IR_SET || (e->reduced & vars_of(f)) == 0) {
			if (ix_equal(r->s->x, &e->dom, f, e->at) != IX_EQUAL)
				return false;
			continue;
		}
		if ((vars_of(ix_div(r->s->x, &e->dom, f, k)) & e->reduced) ||
			(vars_of(ix_mod(r->s->x, &e->dom, f, k)) & ~e->reduced))
			return false;
	}
	return true;
}

static int64_t volume(const eqn_stmt *e, uint64_t axes)
{
	int64_t n = 1;

	for (int32_t i = 0; i < e->dom.box.n; i++)
		if ((axes & BIT(i)) != 0 &&
			!mul_ok(n, e->dom.box.extent[i], &n))
			return -1;
	return n;
}

static int64_t numel(const struct rows *r, const eqn_stmt *e)
{
	return r->s->tensor.at[e->out].numel;
}

/* Marks the statements that compute, for each key, what e reads, recursively. */
static void mark_keys(struct rows *r, const eqn_stmt *e)
{
	ex_reads all = ex_list_reads(r->s, e->body);

	for (int32_t i = 0; i < all.n; i++) {
		int32_t m = maker(r, all.at[i].tensor);

		if (m < 0 || r->out->kind[m] != EQN_ROW_BEFORE ||
			numel(r, &r->e[m]) != r->n_rows * r->out->n_keys)
			continue;
		r->out->kind[m] = EQN_ROW_KEY;
		mark_keys(r, &r->e[m]);
	}
}

/* Finds the kind of statement i, given those before it; false: it fits none. */
static bool kind_of(struct rows *r, int32_t i)
{
	const eqn_stmt *e = &r->e[i];
	eqn_row *kind = &r->out->kind[i];
	const uint32_t done = KIND(SUM) | KIND(BEHIND);
	const uint32_t keys = KIND(KEY) | KIND(WEIGHT);
	bool row = reads(r, e->body, ROW_KINDS), weights = reads(r, e->body,
							   KIND(WEIGHT));

	r->now = e;
	if (reads(r, e->body, done)) {
		*kind = EQN_ROW_BEHIND;
		return !reads(r, e->body, keys);
	}
	if (!row && !weights)
		return *kind != EQN_ROW_KEY || is_aligned(r, e);
	if (e->monoid == IR_SET && !reads(r, e->body, keys) &&
		numel(r, e) != r->n_rows * r->out->n_keys) {
		*kind = numel(r, e) == r->n_rows && r->out->given < 0 &&
					!reads(r, e->body, KIND(GIVEN)) &&
					(!e->seen)
				? EQN_ROW_GIVEN
				: EQN_ROW_BEHIND;
		if (*kind == EQN_ROW_GIVEN)
			r->out->given = i;
		return true;
	}
	if (e->monoid == IR_SET && !e->seen &&
		numel(r, e) == r->n_rows * r->out->n_keys) {
		r->row = ix_div(r->s->x, &e->dom, e->at, r->out->n_keys);
		mark_keys(r, e);
		if (!is_linear(r, e->body, 0))
			return false;
		*kind = EQN_ROW_WEIGHT;
		return is_aligned(r, e);
	}
	r->row = NULL;
	*kind = EQN_ROW_SUM;
	mark_keys(r, e);
	return e->monoid == IR_SUM && e->init == NULL &&
	       volume(e, e->reduced) == r->out->n_keys && is_aligned(r, e) &&
	       is_linear(r, e->body, 0);
}

static bool try_max(struct rows *r, int32_t max)
{
	const eqn_stmt *e = &r->e[max];
	bool any = false;

	*r->out = (eqn_rows){.max = max, .given = -1, .kind = r->out->kind};
	memset(r->out->kind, 0, (size_t)r->n * sizeof *r->out->kind);
	r->weight = NULL;
	r->n_rows = numel(r, e);
	r->out->n_keys = volume(e, e->reduced);
	if (r->out->n_keys < 2)
		return false;
	mark_keys(r, e);
	for (int32_t i = 0; i < r->n; i++)
		if (i == max) {
			r->out->kind[i] = EQN_ROW_MAX;
			if (!is_aligned(r, e))
				return false;
		} else if (!kind_of(r, i)) {
			return false;
		} else {
			any |= r->out->kind[i] == EQN_ROW_SUM;
		}
	return any && r->weight != NULL;
}

bool eqn_as_stmt(ir_system *s, const eqn_unit *u, eqn_stmt *out)
{
	const sys_eqn *e = &u->e;

	if (e->n_out != 1 || e->push != NULL || u->has_scan ||
		e->opaque != NULL)
		return false;
	*out = (eqn_stmt){.monoid = e->monoid, .out = e->out[0],
		.body = e->body[0], .init = e->init[0],
		.dom = {u->box, 0, NULL}, .at = ix_const(s->x, 0)};
	for (int32_t i = 0; i < e->n_axes; i++)
		if (i >= e->n_left)
			out->reduced |= BIT(i);
		else
			out->at = ix_add(s->x, &out->dom, out->at,
				ix_scale(s->x, ix_axis(s->x, &out->dom, i),
					u->stride[i]));
	return true;
}

bool eqn_find_rows(
	arena *a, ir_system *s, int32_t n, const eqn_stmt *e, eqn_rows *out)
{
	struct rows r = {.s = s, .a = a, .n = n, .e = e, .out = out};

	out->kind = arena_array(a, eqn_row, n + 1);
	for (int32_t i = 0; i < n; i++)
		if (e[i].monoid == IR_MAX && e[i].reduced != 0 &&
			e[i].init == NULL &&
			dtype_is_float(s->tensor.at[e[i].out].dtype) &&
			try_max(&r, i))
			return true;
	return false;
}
