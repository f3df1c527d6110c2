/*
 * spread.c: rewrites a kernel of vectors as what one thread of a warp does.
 *
 * Each value keeps its number. Its type has one lane, and masks are conditions
 * of the thread. A form whose lanes are form + 0, form + 1 .. becomes form +
 * number of the lane, and so does the address of a vector in memory.
 */
#include "target/cuda/local.h"

static int32_t log2_of(int32_t lanes)
{
	int32_t n = 0;

	while (lanes > 1) {
		lanes /= 2;
		n++;
	}
	return n;
}

kern_val spread_lane(const spread *s, int32_t lanes)
{
	return s->lane[log2_of(lanes)];
}

const char *cuda_lane(printer *p, int32_t lanes)
{
	return c_name(p, spread_lane(p->more, lanes));
}

/* form + stride * number of the lane */
static const kern_form *of_lane(const spread *s, const kern_form *f,
	int64_t stride, int32_t lanes)
{
	kern_kernel *k = s->narrow;

	return kern_form_add(k, f,
		kern_form_scale(
			k, kern_form_of(k, spread_lane(s, lanes)), stride));
}

kern_access spread_access(
	const spread *s, const kern_access *at, int32_t lanes)
{
	kern_access one = *at;

	if (at->by != 0)
		one.at = kern_form_add(
			s->narrow, at->at, kern_form_of(s->narrow, at->by));
	else if (lanes > 1)
		one.at = of_lane(s, at->at, at->stride, lanes);
	return one;
}

static bool counts_lanes(const kern_value *v)
{
	return v->op == KERN_INDEX || v->op == KERN_DIV || v->op == KERN_MOD ||
	       v->op == KERN_FLOOR;
}

int32_t spread_next(const kern_kernel *k, kern_space space, int32_t last)
{
	int32_t best = -1;

	for (int32_t i = 0; i < k->array.n; i++) {
		const kern_array *r = &k->array.at[i];

		if (r->space == space &&
			(last < 0 || r->number > k->array.at[last].number) &&
			(best < 0 || r->number < k->array.at[best].number))
			best = i;
	}
	return best;
}

static bool declares(const kern_block *b, int32_t array)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if ((s->kind == KERN_ARRAY && s->array == array) ||
			declares(&s->body, array) || declares(&s->other, array))
			return true;
	}
	return false;
}

static bool is_declared(const kern_kernel *k, int32_t array)
{
	for (int32_t i = 0; i < k->n_phases; i++)
		if (declares(&k->phase[i].body, array))
			return true;
	return false;
}

/* Do blocks of warps share the local arrays of all phases? */
static bool is_all_shared(const kern_kernel *k)
{
	for (int32_t i = 0; i < k->n_phases; i++)
		if (k->phase[i].warps == 1)
			return false;
	return true;
}

/* The bytes of a warp's arrays that are no registers. */
static size_t memory_of(const kern_kernel *k, const int32_t *cells)
{
	size_t most = 0;

	for (int32_t i = 0; i < k->array.n; i++) {
		const kern_array *r = &k->array.at[i];
		size_t end = (size_t)r->offset +
			     (size_t)r->elems * dtype_size(kern_stored(r->dtype));

		if (r->space == KERN_LOCAL && cells[i] == 0 && end > most)
			most = end;
	}
	return most;
}

/*
 * Arrays of blocks of statements become memory of the warp, behind its other
 * arrays.
 */
static void move_stack(kern_kernel *k, const int32_t *cells)
{
	enum { ALIGN = 64 };
	size_t *n = &k->local_bytes;

	*n = is_all_shared(k) ? 0 : memory_of(k, cells);
	*n = (*n + ALIGN - 1) / ALIGN * ALIGN;
	for (int32_t i = spread_next(k, KERN_STACK, -1); i >= 0;
		i = spread_next(k, KERN_STACK, i)) {
		kern_array *r = &k->array.at[i];

		if (!is_declared(k, i))
			continue;
		r->offset = (int64_t)*n;
		*n += (size_t)r->elems * dtype_size(kern_stored(r->dtype));
		*n = (*n + ALIGN - 1) / ALIGN * ALIGN;
	}
}

static kern_kernel *copy_of(
	arena *a, const kern_kernel *k, const int32_t *cells)
{
	kern_kernel *n = arena_make(a, kern_kernel);

	*n = *k;
	n->a = a;
	n->forms = map_new(a);
	n->consts = map_new(a);
	memset(&n->value, 0, sizeof n->value);
	for (int32_t i = 0; i < k->value.n; i++)
		*vec_push(a, &n->value) = k->value.at[i];
	memset(&n->array, 0, sizeof n->array);
	for (int32_t i = 0; i < k->array.n; i++)
		*vec_push(a, &n->array) = k->array.at[i];
	move_stack(n, cells);
	return n;
}

/* The lanes of the vectors that the statements of a loop by lane have; 0: none. */
static int32_t lanes_in(const kern_kernel *k, const kern_block *b)
{
	int32_t lanes = 0;

	for (int32_t i = 0; i < b->list.n && lanes == 0; i++) {
		const kern_stmt *t = b->list.at[i];
		const kern_value *v = kern_at(k, t->v), *x = kern_at(k, t->x);

		if (t->kind == KERN_SET_LANE)
			lanes = v->type.lanes;
		else if (t->kind == KERN_LET && v->op == KERN_LANE)
			lanes = kern_at(k, v->arg[0])->type.lanes;
		else if (t->x != 0 && x->op == KERN_LANE)
			lanes = kern_at(k, x->arg[0])->type.lanes;
		if (lanes == 0)
			lanes = lanes_in(k, &t->body);
		if (lanes == 0)
			lanes = lanes_in(k, &t->other);
	}
	return lanes;
}

int32_t spread_by_lane(const spread *s, const kern_stmt *loop)
{
	int32_t lanes = lanes_in(s->wide, &loop->body);

	return lanes > 0 ? lanes : CUDA_WARP;
}

/* Notes the digits of the loop's variable, of which addresses are made. */
static void find_digits(spread *s, const kern_stmt *loop, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *t = b->list.at[i];
		const kern_value *x = kern_at(s->wide, t->v);

		if (t->kind == KERN_LET && counts_lanes(x) &&
			spread_own(s, x->form[0]) != NULL)
			s->own[t->v] = loop;
		find_digits(s, loop, &t->body);
		find_digits(s, loop, &t->other);
	}
}

/* Notes the variables of loops by lane. */
static void find_own(spread *s, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *t = b->list.at[i];

		if (t->by_lane)
			s->own[t->v] = t;
		if (t->by_lane && t->hi->c0 > CUDA_WARP)
			env_bug(arena_env(s->narrow->a), "target/cuda",
				"a loop by %d lanes", (int)t->hi->c0);
		if (t->by_lane)
			find_digits(s, t, &t->body);
		find_own(s, &t->body);
		find_own(s, &t->other);
	}
}

const kern_stmt *spread_own(const spread *s, const kern_form *f)
{
	for (int32_t i = 0; i < f->n; i++)
		if (f->t[i].v < s->wide->value.n && s->own[f->t[i].v] != NULL)
			return s->own[f->t[i].v];
	return NULL;
}

static void add_lanes(arena *a, spread *s)
{
	kern_kernel *k = s->narrow;
	bool used[SPREAD_LANES] = {[SPREAD_LANES - 1] = true}; /* of the warp */

	for (int32_t i = 1; i < s->wide->value.n; i++)
		if (s->wide->value.at[i].type.lanes > 1)
			used[log2_of(s->wide->value.at[i].type.lanes)] = true;
	for (int32_t i = 1; i < SPREAD_LANES; i++)
		if (used[i]) {
			s->lane[i] = k->value.n;
			*vec_push(a, &k->value) = (kern_value){
				.op = KERN_WALK, .type = kern_i64()};
		}
}

static void use_form(bool *used, const kern_form *f)
{
	for (int32_t i = 0; f != NULL && i < f->n; i++)
		used[f->t[i].v] = true;
}

static void use_block(bool *used, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		used[s->x] = true;
		use_form(used, s->lo);
		use_form(used, s->hi);
		use_form(used, s->at.at);
		use_form(used, s->from.at);
		use_block(used, &s->body);
		use_block(used, &s->other);
	}
}

/* Finds the values that loads name as `whole`, and nothing else uses. */
static void find_idle(arena *a, spread *s)
{
	const kern_kernel *k = s->wide;
	bool *used = arena_array(a, bool, k->value.n + 1);

	s->idle = arena_array(a, bool, k->value.n + 1);
	for (int32_t i = 0; i < k->n_phases; i++)
		use_block(used, &k->phase[i].body);
	for (int32_t i = 1; i < k->value.n; i++) {
		const kern_value *v = &k->value.at[i];

		for (int32_t j = 0; j < KERN_MAX_ARGS; j++)
			used[v->arg[j]] = true;
		use_form(used, v->form[0]);
		use_form(used, v->form[1]);
		use_form(used, v->at.at);
		used[v->at.mask] = used[v->at.by] = true;
		s->idle[v->at.whole] = true;
	}
	for (int32_t i = 0; i < k->value.n; i++)
		s->idle[i] &= !used[i];
}

spread *spread_new(arena *a, const kern_kernel *k)
{
	spread *s = arena_make(a, spread);

	for (int32_t i = 1; i < k->value.n; i++)
		if (k->value.at[i].type.lanes > CUDA_WARP)
			env_bug(arena_env(a), "target/cuda",
				"a vector of %d lanes",
				(int)k->value.at[i].type.lanes);
	s->wide = k;
	s->own = arena_array(a, const kern_stmt *, k->value.n + 1);
	spread_find_own_arrays(a, s);
	s->narrow = copy_of(a, k, s->cells);
	for (int32_t i = 0; i < k->n_phases; i++)
		find_own(s, &k->phase[i].body);
	add_lanes(a, s);
	for (int32_t i = 1; i < k->value.n; i++) {
		kern_value *v = &s->narrow->value.at[i];

		if (v->type.lanes > 1 && counts_lanes(v))
			v->form[0] = of_lane(s, v->form[0], 1, v->type.lanes);
		v->type.lanes = 1;
		v->type.mask = 0;
	}
	find_idle(a, s);
	spread_find_syncs(a, s);
	return s;
}
