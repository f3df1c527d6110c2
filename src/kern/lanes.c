/*
 * lanes.c: short loops whose iterations the lanes of a warp run, all at once: lane
 * l runs iteration l. A machine without warps runs one after the other.
 *
 *   for %l = 0 .. 32 by lane {
 *     %9: i64 = load p1[7*%l + %i]       any elements
 *     set %r2[%l] = load p2[%9]          its own lane of a register
 *     store t0[%l] = %9                  an element of its own
 *     %10: i64 = idiv %l, 4
 *     %11: i64 = imod %l, 4              another one, by digits of its number
 *     store b0[64*%10 + 2*%11] = %9
 *   }
 *
 * So no iteration reads what another one writes, sets a register of all, or
 * needs a lane that is not its own. The pass finds such loops, in a kernel whose
 * values are in order; the verifier checks those that a text has.
 */
#include "kern/verify.h"

enum { MAX_NEST = 8 };

struct touched {
	const kern_access *at;
	bool write;
	/* by lane: the element, but for what is the same in all of them; NULL: it is
	 * not known */
	const int64_t *element;
};

struct by_lane {
	kern_kernel *k;
	arena *a;
	const kern_stmt *loop;
	int32_t lanes; /* that its vectors have */
	bool vectors;  /* it has some */
	VEC(struct touched) touched;
	const kern_stmt *s; /* the statement that is wrong, */
	const char *why;    /* and what is; NULL: nothing */
};

static void refuse(struct by_lane *b, const char *why)
{
	if (b->why == NULL)
		b->why = why;
}

/* The lanes of vectors of which so many elements are in use. */
static int32_t lanes_for(int64_t n)
{
	int32_t lanes = 2;

	while (lanes < n)
		lanes *= 2;
	return lanes;
}

static bool is_own(const struct by_lane *b, const kern_form *f)
{
	return f == kern_form_term(b->k, 1, b->loop->v);
}

static bool form_at(const struct by_lane *b, const kern_form *f, int64_t lane,
	bool alone, int64_t *out, int nest);

/* A digit of the lane's number. */
static bool digit_at(const struct by_lane *b, kern_val v, int64_t lane,
	int64_t *out, int nest)
{
	const kern_value *x = kern_at(b->k, v);
	int64_t n;

	if (v == b->loop->v) {
		*out = lane;
		return true;
	}
	if ((x->op != KERN_DIV && x->op != KERN_FLOOR && x->op != KERN_MOD &&
		    x->op != KERN_INDEX) ||
		x->type.lanes > 1 || nest > MAX_NEST ||
		(x->op != KERN_INDEX && x->num[0] < 1) ||
		!form_at(b, x->form[0], lane, true, &n, nest + 1))
		return false;
	*out = x->op == KERN_INDEX ? n
	       : x->op == KERN_MOD ? n - x->num[0] * floor_div(n, x->num[0])
				   : floor_div(n, x->num[0]);
	return true;
}

/* The form in this lane, without what is defined in front of the loop; alone: there
 * must be no such thing. */
static bool form_at(const struct by_lane *b, const kern_form *f, int64_t lane,
	bool alone, int64_t *out, int nest)
{
	int64_t n;

	*out = f->c0;
	for (int32_t i = 0; i < f->n; i++) {
		bool common = f->t[i].v < b->loop->v;

		if ((common && alone) ||
			(!common &&
				(!digit_at(b, f->t[i].v, lane, &n, nest) ||
					!mul_ok(f->t[i].coef, n, &n) ||
					!add_ok(*out, n, out))))
			return false;
	}
	return true;
}

static const int64_t *elements(const struct by_lane *b, const kern_form *f)
{
	int64_t n = b->loop->hi->c0;
	int64_t *out = arena_array(b->a, int64_t, n);

	for (int64_t l = 0; l < n; l++)
		if (!form_at(b, f, l, false, &out[l], 0))
			return NULL;
	return out;
}

static void touch(struct by_lane *b, const kern_access *at, bool write)
{
	*vec_push(b->a, &b->touched) =
		(struct touched){at, write, elements(b, at->at)};
}

static void check_lanes(struct by_lane *b, kern_val id)
{
	if (kern_at(b->k, id)->type.lanes > 1)
		refuse(b, "in a loop by lane, values have one lane: of a vector, `lane` takes that of the iteration");
}

/* A value that this statement computes or takes. */
static void check_value(struct by_lane *b, kern_val id)
{
	const kern_value *x = kern_at(b->k, id);
	bool lane = x->op == KERN_LANE;

	if (id == 0)
		return;
	check_lanes(b, id);
	if (id < b->loop->v || x->op == KERN_REG)
		return;
	if (lane && (!is_own(b, x->form[0]) ||
			    kern_at(b->k, x->arg[0])->type.lanes != b->lanes))
		refuse(b, "in a loop by lane, an iteration has its own lane only, of vectors that have no more lanes than it needs");
	b->vectors |= lane;
	if (x->op == KERN_LOAD)
		touch(b, &x->at, false);
	for (int32_t i = lane; i < KERN_MAX_ARGS; i++)
		check_lanes(b, x->arg[i]);
	check_lanes(b, x->at.mask);
}

static void check_set(struct by_lane *b, const kern_stmt *s)
{
	if (s->kind == KERN_SET && s->v > b->loop->v)
		return;
	b->vectors = true;
	if (s->kind == KERN_SET || !is_own(b, s->lo) ||
		kern_at(b->k, s->v)->type.lanes != b->lanes)
		refuse(b, "in a loop by lane, an iteration sets registers that it declares, and its own lane of registers that have no more lanes than it needs");
}

/* Does each lane have an element of its own? */
static bool are_own(const struct by_lane *b, const int64_t *element)
{
	for (int64_t l = 0; element != NULL && l < b->loop->hi->c0; l++)
		for (int64_t m = 0; m < l; m++)
			if (element[l] == element[m])
				return false;
	return element != NULL;
}

static void check_store(struct by_lane *b, const kern_stmt *s)
{
	touch(b, &s->at, true);
	if (!are_own(b, b->touched.at[b->touched.n - 1].element))
		refuse(b, "in a loop by lane, each iteration must store into an element of its own: at a sum of digits of the loop's variable, plus values from in front of it");
}

static void check_block(struct by_lane *b, const kern_block *block)
{
	for (int32_t i = 0; i < block->list.n && b->why == NULL; i++) {
		const kern_stmt *s = block->list.at[i];

		b->s = s;
		check_value(b, s->x);
		switch (s->kind) {
		case KERN_LET:
			check_value(b, s->v);
			break;
		case KERN_SET:
		case KERN_SET_LANE:
			check_set(b, s);
			break;
		case KERN_STORE:
			check_store(b, s);
			break;
		case KERN_IF:
		case KERN_BLOCK:
			check_block(b, &s->body);
			check_block(b, &s->other);
			break;
		case KERN_VAR:
		case KERN_NOTE:
			break;
		case KERN_FOR:
		case KERN_ARRAY:
		case KERN_PREFETCH:
		case KERN_FENCE:
		case KERN_RELOAD:
		case KERN_BARRIER:
		case KERN_TURN:
		case KERN_MMA:
		case KERN_TILES:
		case KERN_TAKE:
		case KERN_GIVE:
		case KERN_ASYNC:
		case KERN_COMMIT:
		case KERN_WAIT:
			refuse(b, "a loop by lane has values, registers, stores and conditions only");
			break;
		}
	}
}

/* Are both the same, but for what differs between lanes? */
static bool same_common(
	const struct by_lane *b, const kern_form *f, const kern_form *g)
{
	int32_t i = 0;

	/* terms are in the order of their values: common ones come first */
	for (; i < f->n && f->t[i].v < b->loop->v; i++)
		if (i == g->n || f->t[i].v != g->t[i].v ||
			f->t[i].coef != g->t[i].coef)
			return false;
	return i == g->n || g->t[i].v >= b->loop->v;
}

/* Is what lanes access in x never what any lane accesses in y? */
static bool are_apart(const struct by_lane *b, const struct touched *x,
	const struct touched *y)
{
	int64_t n = b->loop->hi->c0;

	if (x->at->array != y->at->array || x->element == NULL ||
		y->element == NULL || !same_common(b, x->at->at, y->at->at))
		return false;
	for (int64_t l = 0; l < n; l++)
		for (int64_t m = 0; m < n; m++)
			if (x->element[l] == y->element[m])
				return false;
	return true;
}

/*
 * What one iteration stores, no other one loads or stores. Vectors of fewer lanes
 * than a warp are in each of its parts, so that several threads run an iteration:
 * what one of them stores, no other one may load.
 */
static void check_apart(struct by_lane *b)
{
	bool several = b->vectors && b->lanes < KERN_MMA_LANES;

	for (int32_t i = 0; i < b->touched.n; i++)
		for (int32_t j = 0; j < b->touched.n; j++) {
			const struct touched *x = &b->touched.at[i];
			const struct touched *y = &b->touched.at[j];

			if (x->write && i != j &&
				kern_arrays_overlap(b->k, x->at->array,
					y->at->array) &&
				(several || x->at->array != y->at->array ||
					x->at->at != y->at->at) &&
				!are_apart(b, x, y))
				refuse(b, "a lane may access an element that another one stores in the same loop by lane");
		}
}

/* Is the loop as such one that lanes can share? */
static bool is_short(const kern_stmt *s, int32_t most)
{
	int64_t lo, hi;

	return kern_form_is_const(s->lo, &lo) &&
	       kern_form_is_const(s->hi, &hi) && lo == 0 && hi >= 2 &&
	       hi <= most && s->step == 1 && !s->down && !s->whole &&
	       s->after == 0 && !s->by_warp;
}

static void check(struct by_lane *b)
{
	int64_t hi = 2;

	(void)kern_form_is_const(b->loop->hi, &hi);
	b->lanes = lanes_for(hi);
	check_block(b, &b->loop->body);
	if (b->why == NULL)
		b->s = b->loop;
	check_apart(b);
}

void kern_verify_by_lane(struct kern_verifier *v, const kern_stmt *s)
{
	struct by_lane b = {.k = v->k, .a = v->a, .loop = s};

	if (!is_short(s, KERN_MAX_LANES))
		kern_refuse(v, "loop",
			"a loop by lane must run from 0 to the number of lanes, 2 to %d",
			KERN_MAX_LANES);
	check(&b);
	if (b.why == NULL)
		return;
	v->s = b.s;
	kern_refuse(v, "lane", "%s", b.why);
}

static void deal(kern_kernel *k, arena *a, const kern_block *block, int32_t most)
{
	for (int32_t i = 0; i < block->list.n; i++) {
		kern_stmt *s = block->list.at[i];
		struct by_lane b = {.k = k, .a = a, .loop = s};

		if (s->kind == KERN_FOR && is_short(s, most)) {
			check(&b);
			s->by_lane = b.why == NULL;
		}
		if (!s->by_lane)
			deal(k, a, &s->body, most);
		deal(k, a, &s->other, most);
	}
}

void kern_deal_to_lanes(kern_kernel *k, int32_t lanes)
{
	arena *a = arena_child(k->a);

	for (int32_t i = 0; i < k->n_phases; i++)
		deal(k, a, &k->phase[i].body, lanes);
	arena_free(a);
}
