/*
 * intern.c: gives equal forms, and equal atoms, the same pointer.
 *
 * Consumes terms in normal form (see normal.c); guarantees that two calls with
 * the same content give the same pointer, and that ids are consecutive in order
 * of creation. Each form and atom has hidden fields with frequent answers: used
 * axes, kinds of atoms, depth of nesting.
 *
 *     ix_add(i, j) == ix_add(j, i)
 */
#include "ix/local.h"

struct atom_box {
	ix_atom a; /* first member, because its address is public */
	uint64_t hash, axes;
	int32_t depth;
	int has;
};

/* Precedes each form, because a form ends with its terms. */
struct head {
	uint64_t hash, axes;
	int32_t depth;
	int has;
};

struct table {
	const void **slot;
	uint32_t n, cap; /* cap: a power of two */
};

struct memo {
	int64_t stamp;
	const ix_form *f;
};

struct ix {
	arena *a;
	struct table atoms, forms;
	struct memo *memo; /* by atom id */
	int32_t memo_cap;
	int64_t stamp, stamps;
};

ix *ix_new(arena *a)
{
	ix *x = arena_make(a, ix);

	x->a = a;
	return x;
}

arena *ix_arena(const ix *x)
{
	return x->a;
}

/* ---- checked arithmetic ---- */

_Noreturn void ix_overflow(const ix *x)
{
	env_fail(arena_env(x->a), TN_ENOMEM, "ix.overflow", (loc){0},
		"an index expression has a coefficient beyond 64 bits; "
		"tensors of up to 2^48 elements are accepted");
}

int64_t ix_mul(const ix *x, int64_t a, int64_t b)
{
	int64_t r;

	if (!mul_ok(a, b, &r))
		ix_overflow(x);
	return r;
}

int64_t ix_plus(const ix *x, int64_t a, int64_t b)
{
	int64_t r;

	if (!add_ok(a, b, &r))
		ix_overflow(x);
	return r;
}

int64_t ix_fit(const ix *x, wide v)
{
	if (v < INT64_MIN || v > INT64_MAX)
		ix_overflow(x);
	return (int64_t)v;
}

/* ---- summaries of contents ---- */

static const struct atom_box *box_of(const ix_atom *a)
{
	return (const struct atom_box *)(const void *)a;
}

static const struct head *head_of(const ix_form *f)
{
	return (const struct head *)(const void *)((const char *)f -
		sizeof(struct head));
}

uint64_t ix_atom_axes(const ix_atom *a)
{
	return box_of(a)->axes;
}

uint64_t ix_form_axes(const ix_form *f)
{
	return head_of(f)->axes;
}

int ix_form_has(const ix_form *f)
{
	return head_of(f)->has;
}

int ix_atom_has(const ix_atom *a)
{
	return box_of(a)->has;
}

int32_t ix_form_depth(const ix_form *f)
{
	return head_of(f)->depth;
}

bool ix_uses_axis(const ix_form *f, int32_t axis)
{
	return (head_of(f)->axes >> axis & 1) != 0;
}

bool ix_has_fun(const ix_form *f)
{
	return (head_of(f)->has & HAS_FUN) != 0;
}

bool ix_stride(const ix_form *f, int32_t axis, int64_t extent, int64_t *stride)
{
	*stride = 0;
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind != IX_DIGIT) {
			if (ix_uses_axis(t->f, axis))
				return false;
		} else if (t->axis == axis) {
			if (t->lo != 1 || t->hi < extent)
				return false;
			*stride += f->t[i].coef;
		}
	}
	return true;
}

bool ix_is_digit(const ix_form *f, const ix_atom **out)
{
	bool is = f->n == 1 && f->c0 == 0 && f->t[0].coef == 1 &&
		f->t[0].atom->kind == IX_DIGIT;

	if (is && out != NULL)
		*out = f->t[0].atom;
	return is;
}

/* ---- tables ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint64_t hash_atom(const ix_atom *k)
{
	uint64_t h = mix((uint64_t)k->kind + 1, (uint64_t)k->axis);

	h = mix(h, (uint64_t)k->lo);
	h = mix(h, (uint64_t)k->hi);
	h = mix(h, (uint64_t)k->den);
	h = mix(h, (uint64_t)k->fun);
	return mix(h, k->f == NULL ? 0 : (uint64_t)k->f->id + 1);
}

static bool same_atom(const ix_atom *a, const ix_atom *b)
{
	return a->kind == b->kind && a->axis == b->axis && a->lo == b->lo &&
		a->hi == b->hi && a->den == b->den && a->fun == b->fun &&
		a->f == b->f;
}

static uint64_t hash_form(int64_t c0, const ix_term *t, int32_t n)
{
	uint64_t h = mix((uint64_t)n + 1, (uint64_t)c0);

	for (int32_t i = 0; i < n; i++) {
		h = mix(h, (uint64_t)t[i].coef);
		h = mix(h, (uint64_t)t[i].atom->id);
	}
	return h;
}

static bool same_form(const ix_form *f, int64_t c0, const ix_term *t,
	int32_t n)
{
	if (f->n != n || f->c0 != c0)
		return false;
	for (int32_t i = 0; i < n; i++)
		if (f->t[i].coef != t[i].coef || f->t[i].atom != t[i].atom)
			return false;
	return true;
}

/* Makes room for one more entry; hash(slot) recomputes the hash of an entry. */
static void reserve(ix *x, struct table *t, uint64_t (*hash)(const void *))
{
	const void **old = t->slot;
	uint32_t n = t->cap;

	if (t->n * UINT64_C(2) < t->cap)
		return;
	if (t->cap >= UINT32_C(1) << 30)
		ix_overflow(x);
	t->cap = n == 0 ? 64 : 2 * n;
	t->slot = arena_array(x->a, const void *, t->cap);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k;

		if (old[i] == NULL)
			continue;
		k = (uint32_t)hash(old[i]) & (t->cap - 1);
		while (t->slot[k] != NULL)
			k = (k + 1) & (t->cap - 1);
		t->slot[k] = old[i];
	}
}

static uint64_t hash_of_atom(const void *a)
{
	return box_of(a)->hash;
}

static uint64_t hash_of_form(const void *f)
{
	return head_of(f)->hash;
}

static uint64_t axis_bit(const ix *x, int32_t axis)
{
	if (axis < 0 || axis >= IX_MAX_AXES)
		env_bug(arena_env(x->a), "ix", "axis %d of a box", axis);
	return UINT64_C(1) << axis;
}

static const ix_atom *new_atom(ix *x, const ix_atom *key, uint64_t hash)
{
	static const int has[] = {0, HAS_FLOOR, HAS_CLAMP, HAS_FUN};
	struct atom_box *b = arena_make(x->a, struct atom_box);

	b->a = *key;
	b->a.id = (int32_t)x->atoms.n;
	b->hash = hash;
	if (key->kind == IX_DIGIT) {
		b->axes = axis_bit(x, key->axis);
		return &b->a;
	}
	b->axes = head_of(key->f)->axes;
	b->has = head_of(key->f)->has | has[key->kind];
	b->depth = head_of(key->f)->depth + 1;
	if (b->depth > IX_DEPTH)
		env_fail(arena_env(x->a), TN_ENOMEM, "ix.depth", (loc){0},
			"an index expression is nested more than %d deep",
			IX_DEPTH);
	return &b->a;
}

const ix_atom *ix_atom_of(ix *x, const ix_atom *key)
{
	uint64_t hash = hash_atom(key);
	struct table *t = &x->atoms;
	uint32_t k;

	reserve(x, t, hash_of_atom);
	for (k = (uint32_t)hash & (t->cap - 1); t->slot[k] != NULL;
		k = (k + 1) & (t->cap - 1)) {
		const ix_atom *a = t->slot[k];

		if (box_of(a)->hash == hash && same_atom(a, key))
			return a;
	}
	t->slot[k] = new_atom(x, key, hash);
	t->n++;
	return t->slot[k];
}

static const ix_form *new_form(ix *x, int64_t c0, const ix_term *t, int32_t n,
	uint64_t hash)
{
	size_t bytes = sizeof(ix_form) + (size_t)n * sizeof(ix_term);
	struct head *h = arena_alloc(x->a, 1, sizeof(struct head) + bytes);
	ix_form *f = (ix_form *)(void *)(h + 1);

	f->id = (int32_t)x->forms.n;
	f->n = n;
	f->c0 = c0;
	h->hash = hash;
	for (int32_t i = 0; i < n; i++) {
		const struct atom_box *b = box_of(t[i].atom);

		f->t[i] = t[i];
		h->axes |= b->axes;
		h->has |= b->has;
		if (b->depth > h->depth)
			h->depth = b->depth;
	}
	return f;
}

const ix_form *ix_form_of(ix *x, int64_t c0, const ix_term *t, int32_t n)
{
	uint64_t hash = hash_form(c0, t, n);
	struct table *tab = &x->forms;
	uint32_t k;

	reserve(x, tab, hash_of_form);
	for (k = (uint32_t)hash & (tab->cap - 1); tab->slot[k] != NULL;
		k = (k + 1) & (tab->cap - 1)) {
		const ix_form *f = tab->slot[k];

		if (head_of(f)->hash == hash && same_form(f, c0, t, n))
			return f;
	}
	tab->slot[k] = new_form(x, c0, t, n, hash);
	tab->n++;
	return tab->slot[k];
}

const ix_form *ix_const(ix *x, int64_t c)
{
	return ix_form_of(x, c, NULL, 0);
}

/* ---- memo of one substitution ---- */

/*
 * Begins a memo with a new stamp, so that entries of earlier ones are invalid
 * without being cleared.
 */
void ix_memo_begin(ix *x)
{
	x->stamp = ++x->stamps;
}

void ix_memo_end(ix *x)
{
	x->stamp = 0;
}

const ix_form *ix_memo_get(const ix *x, const ix_atom *a)
{
	if (x->stamp == 0 || a->id >= x->memo_cap ||
		x->memo[a->id].stamp != x->stamp)
		return NULL;
	return x->memo[a->id].f;
}

void ix_memo_set(ix *x, const ix_atom *a, const ix_form *f)
{
	if (x->stamp == 0)
		return;
	if (a->id >= x->memo_cap) {
		int32_t cap = 2 * a->id + 64;
		struct memo *m = arena_array(x->a, struct memo, cap);

		if (x->memo_cap > 0)
			memcpy(m, x->memo,
				(size_t)x->memo_cap * sizeof(struct memo));
		x->memo = m;
		x->memo_cap = cap;
	}
	x->memo[a->id].stamp = x->stamp;
	x->memo[a->id].f = f;
}
