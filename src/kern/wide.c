/*
 * wide.c: joins accesses to neighbours that a lane does at once.
 *
 * Consumes a swept kernel. Vectors whose lanes are n elements apart, with addresses
 * F, F + 1 .. F + n - 1, are n neighbours of each lane:
 *
 *   %3: f32x32 = load p1[F] step 4          together 4 %3: f32x32 = load p1[F] step 4
 *   %4: f32x32 = exp %3                     %5: f32x32 = load p1[F + 1] step 4
 *   %5: f32x32 = load p1[F + 1] step 4  ->  %7: f32x32 = load p1[F + 2] step 4
 *   ..                                      %9: f32x32 = load p1[F + 3] step 4
 *
 * Loads move up to the first of them, stores down to the last one, where nothing
 * between accesses the same elements. F must be a multiple of n: then such an
 * access is aligned if the array is. The verifier checks all of this again but the
 * moves, behind which the statements mean what they say.
 */
#include "kern/verify.h"

struct join {
	kern_kernel *k;
	kern_range range;
};

static const kern_access *access_of(const kern_kernel *k, const kern_stmt *s)
{
	if (s->kind == KERN_STORE)
		return &s->at;
	if (s->kind == KERN_LET && kern_at(k, s->v)->op == KERN_LOAD)
		return &kern_at(k, s->v)->at;
	return NULL;
}

static kern_type type_of(const kern_kernel *k, const kern_stmt *s)
{
	return kern_at(k, s->kind == KERN_STORE ? s->x : s->v)->type;
}

/* Is s the i-th of n accesses to neighbours, of which `first` is the first? */
static bool is_member(
	kern_kernel *k, const kern_stmt *first, const kern_stmt *s, int64_t i)
{
	const kern_access *x = access_of(k, first), *y = access_of(k, s);

	return x != NULL && y != NULL && first->kind == s->kind &&
	       x->array == y->array && y->stride == x->stride && !s->stream &&
	       y->part == 0 && y->mask == 0 && y->whole == 0 &&
	       y->at == kern_form_addc(k, x->at, i) &&
	       kern_same_type(type_of(k, first), type_of(k, s));
}

/* Does the access of s begin n neighbours of each lane, n its stride? */
static bool may_begin(struct kern_range *r, const kern_stmt *s)
{
	const kern_access *at = access_of(r->k, s);
	int64_t bytes;

	if (at == NULL || at->stride < 2 || at->stride > KERN_MAX_TOGETHER ||
		type_of(r->k, s).lanes < 2)
		return false;
	bytes = at->stride * (int64_t)dtype_size(type_of(r->k, s).dt);
	return bytes <= KERN_WIDE_BYTES && (bytes & (bytes - 1)) == 0 &&
	       kern_is_multiple(r, at->at, at->stride);
}

/* ---- the pass ---- */

/* May the two accesses change places? Elements in rows of n, each lane its row. */
static bool are_apart(
	const struct join *j, const kern_access *x, const kern_access *y)
{
	int64_t by;

	if (!kern_arrays_overlap(j->k, x->array, y->array))
		return true;
	return (x->array == y->array || j->k->array.at[x->array].in == y->array + 1 ||
		       j->k->array.at[y->array].in == x->array + 1) &&
	       x->stride == y->stride &&
	       kern_form_is_const(kern_form_sub(j->k, x->at, y->at), &by) &&
	       by != 0 && by < x->stride && by > -x->stride;
}

/* May the access at move across s? It reads, or it writes. */
static bool may_cross(const struct join *j, const kern_access *at, bool writes,
	const kern_stmt *s)
{
	const kern_access *other = access_of(j->k, s);

	if (s->kind == KERN_LET || s->kind == KERN_STORE) {
		if (other == NULL)
			return true;
		return (!writes && s->kind == KERN_LET) ||
		       are_apart(j, at, other);
	}
	return s->kind == KERN_VAR || s->kind == KERN_SET ||
	       s->kind == KERN_PREFETCH || s->kind == KERN_NOTE;
}

static void move(kern_block *b, int32_t from, int32_t to)
{
	kern_stmt *s = b->list.at[from];

	for (; from < to; from++)
		b->list.at[from] = b->list.at[from + 1];
	for (; from > to; from--)
		b->list.at[from] = b->list.at[from - 1];
	b->list.at[to] = s;
}

static bool may_move(
	const struct join *j, const kern_block *b, int32_t from, int32_t to)
{
	const kern_access *at = access_of(j->k, b->list.at[from]);
	bool writes = b->list.at[from]->kind == KERN_STORE;
	int32_t step = from < to ? 1 : -1;

	for (int32_t i = from; i != to; i += step)
		if (!may_cross(j, at, writes, b->list.at[i + step]))
			return false;
	return true;
}

static int32_t find(struct join *j, const kern_block *b, const kern_stmt *first,
	int32_t from, int64_t i)
{
	for (; from < b->list.n; from++)
		if (is_member(j->k, first, b->list.at[from], i))
			return from;
	return -1;
}

/* Joins those that statement i begins; returns whether it did. */
static bool join(struct join *j, kern_block *b, int32_t i)
{
	kern_stmt *first = b->list.at[i];
	bool store = first->kind == KERN_STORE;
	int32_t n = (int32_t)access_of(j->k, first)->stride, at = i;
	int32_t member[KERN_MAX_TOGETHER];

	for (int32_t l = 0; l < n; l++) {
		member[l] = at = find(j, b, first, at, l);
		if (at < 0)
			return false;
	}
	for (int32_t l = 0; l < n; l++)
		if (!may_move(j, b, member[l], store ? member[n - 1] : i))
			return false;
	for (int32_t l = n - 1; store && l >= 0; l--)
		move(b, member[l], member[n - 1] - (n - 1 - l));
	for (int32_t l = 0; !store && l < n; l++)
		move(b, member[l], i + l);
	first->together = n;
	return true;
}

static bool is_wide(const kern_access *at)
{
	return at != NULL && at->stride > 1;
}

/* Gives x of statement i a statement of its own, in front of it: stores move. */
static void name_operand(struct join *j, kern_block *b, int32_t i)
{
	kern_stmt *let = arena_make(j->k->a, kern_stmt), *s = b->list.at[i];

	let->kind = KERN_LET;
	let->v = s->x;
	if (kern_at(j->k, s->x)->op == KERN_REG)
		let->v = s->x = kern_unary(j->k, KERN_COPY,
			kern_at(j->k, s->x)->type, s->x);
	vec_push(j->k->a, &b->list);
	for (int32_t l = b->list.n - 1; l > i; l--)
		b->list.at[l] = b->list.at[l - 1];
	b->list.at[i] = let;
}

static bool is_named(const struct join *j, const kern_block *b, kern_val x)
{
	if (strchr(kern_op_at(kern_at(j->k, x)->op)->flags, 'd') != NULL)
		return kern_at(j->k, x)->op != KERN_REG;
	for (int32_t i = 0; i < b->list.n; i++)
		if (b->list.at[i]->kind == KERN_LET && b->list.at[i]->v == x)
			return true;
	return false;
}

static bool has_wide(const struct join *j, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if (is_wide(access_of(j->k, s)) ||
			(s->x != 0 && kern_at(j->k, s->x)->op == KERN_LOAD &&
				is_wide(&kern_at(j->k, s->x)->at)) ||
			(s->kind == KERN_BLOCK && has_wide(j, &s->body)))
			return true;
	}
	return false;
}

/* The statements without the blocks around those of each vector. */
static void flatten(struct join *j, const kern_block *from, kern_block *to)
{
	for (int32_t i = 0; i < from->list.n; i++) {
		kern_stmt *s = from->list.at[i];

		if (s->kind == KERN_BLOCK)
			flatten(j, &s->body, to);
		else
			*vec_push(j->k->a, &to->list) = s;
	}
}

/* The body of a loop whose lanes take neighbours. */
static void join_all(struct join *j, kern_block *b)
{
	kern_block flat = {{0}};

	flatten(j, b, &flat);
	*b = flat;
	for (int32_t i = 0; i < b->list.n; i++) {
		kern_stmt *s = b->list.at[i];

		if ((s->kind == KERN_STORE || s->kind == KERN_SET) &&
			((s->kind == KERN_STORE && is_wide(&s->at)) ||
				kern_at(j->k, s->x)->op == KERN_LOAD) &&
			!is_named(j, b, s->x))
			name_operand(j, b, i++);
	}
	for (int32_t i = 0; i < b->list.n; i++) {
		kern_stmt *s = b->list.at[i];

		if (s->together > 0 || !may_begin(&j->range, s) || !join(j, b, i))
			continue;
		/* loads are here now, stores are behind */
		i += s->kind == KERN_LET ? s->together - 1 : -1;
	}
}

static void walk(struct join *j, kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		kern_stmt *s = b->list.at[i];

		if (s->kind == KERN_FOR)
			kern_range_loop(&j->range, s);
		if (s->kind == KERN_FOR && has_wide(j, &s->body)) {
			join_all(j, &s->body);
			continue;
		}
		walk(j, &s->body);
		walk(j, &s->other);
	}
}

void kern_join_accesses(kern_kernel *k)
{
	struct join j = {.k = k, .range = kern_range_new(k, k->a)};

	for (int32_t i = 0; i < k->n_phases; i++)
		walk(&j, &k->phase[i].body);
}

/* ---- the verifier ---- */

/* Has it been computed, and given a name? */
static bool is_defined(const struct kern_verifier *v, kern_val x)
{
	return kern_at(v->k, x)->op == KERN_CONST || v->state[x] == DEFINED;
}

void kern_verify_together(
	struct kern_verifier *v, const kern_block *b, int32_t at)
{
	const kern_stmt *first = b->list.at[at];
	int32_t n = first->together;
	bool ok = may_begin(&v->range, first) &&
		  access_of(v->k, first)->stride == n && at + n <= b->list.n;

	for (int32_t i = 0; ok && i < n; i++) {
		const kern_stmt *s = b->list.at[at + i];

		ok = is_member(v->k, first, s, i) &&
		     (i == 0 || s->together == 0) &&
		     (s->kind == KERN_LET || is_defined(v, s->x));
	}
	if (!ok)
		kern_refuse(v, "lanes",
			"together %d: so many loads or stores of one array must follow, of named values, `step %d`, from a multiple of %d on, each one element behind the one before",
			n, n, n);
}
