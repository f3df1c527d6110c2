/*
 * back_cond.c: the backward of a condition: the same condition over the
 * backwards of both bodies (region_back.c).
 */
#include "func/back.h"

static const t_yield *yields(const deriving *d, int32_t r)
{
	return &d->yield.at[r];
}

/* Middles of both branches, those of one type together. */
static void keep_middles(deriving *d)
{
	int32_t n = d->yield.n;

	for (int32_t k = 0; k < 2; k++)
		for (int32_t r = d->g->body[k]->n_known;
			r < d->g->body[k]->n_out; r++) {
			const ir_type *y = &d->g->body[k]->out[r]->type;
			t_yield one = {YIELD_BODY, {-1, -1}};
			int32_t at = n;

			while (k == 1 && at < d->yield.n &&
				(d->yield.at[at].at[1] >= 0 ||
					!t_same_type(
						y, &d->out.at[at]->type)))
				at++;
			if (k == 1 && at < d->yield.n) {
				d->yield.at[at].at[1] = r;
				continue;
			}
			one.at[k] = r;
			(void)back_kept(d, one, y);
		}
}

/* The result of the region for result r of the current branch. */
static int32_t cond_result(const deriving *d, int32_t r)
{
	for (int32_t i = 0; i < d->yield.n; i++)
		if (yields(d, i)->at[d->arm] == r)
			return i;
	env_bug(d->t->e, "region.back", "result %d of a branch is nowhere",
		(int)r);
}

static t_value *cond_operand(
	deriving *d, enum side side, int32_t i, const ir_type *y)
{
	return back_fed(d, (t_feed){FEED_OPERAND, back_operand(d, side, i), 0}, y);
}

static t_value *cond_read(
	deriving *d, const t_trace *body, const t_back *b, int32_t k)
{
	int32_t i = b->from_in[k], r = b->from_out[k], s = b->from_seed[k];

	if (s >= 0)
		return cond_operand(d, OF_SEED, cond_result(d, s),
			&body->out[s]->type);
	if (i >= 0)
		return cond_operand(d, OF_IN,
			d->f->region->feed[d->arm][i].at, &body->in[i]->type);
	return cond_operand(
		d, OF_OUT, cond_result(d, r), &body->out[r]->type);
}

/*
 * A result that is an operand as it is, or a leaf, in one branch, and has a
 * gradient in the other: its cotangent goes there. -1: it does not.
 */
static int32_t straight(const deriving *d, int32_t r, int32_t arm, bool *leaf)
{
	int32_t at = yields(d, r)->at[arm];
	const t_value *v;

	*leaf = false;
	if (r >= d->f->n_known || !t_is_made(d->f->out[r]))
		return -1;
	if (at <= -2)
		return -2 - at;
	v = at >= 0 ? d->g->body[arm]->out[at] : NULL;
	if (v == NULL || !v->tracked || t_is_made(v))
		return -1;
	*leaf = true;
	for (int32_t i = 0; i < d->f->n_in; i++)
		if (d->f->next[i] == r)
			return i;
	return -1;
}

static void find_wanted(deriving *d)
{
	d->wanted = arena_array(d->t->a, bool, 2 * d->f->n_in + 2);
	for (int32_t k = 0; k < 2; k++) {
		const t_back *b = d->g->body[k]->back.at[0];

		for (int32_t j = 0; b->trace != NULL && j < b->trace->n_out;
			j++) {
			int32_t i = d->f->region->feed[k][b->of_in[j]].at;

			d->wanted[2 * i + (b->kind[j] != BACK_OPERAND)] = true;
		}
		for (int32_t r = 0; r < d->f->n_known; r++) {
			bool leaf;
			int32_t i = straight(d, r, k, &leaf);

			if (i >= 0)
				d->wanted[2 * i + leaf] = true;
		}
	}
}

/* The cotangent of operand i, or of leaves of it, in the current branch. */
static t_value *cond_given(
	deriving *d, const t_trace *body, const t_call *back, int32_t i, bool leaf)
{
	const t_back *b = body->back.at[0];
	t_value *sum = NULL;

	for (int32_t j = 0; back != NULL && j < b->trace->n_out; j++)
		if (d->f->region->feed[d->arm][b->of_in[j]].at == i &&
			(b->kind[j] != BACK_OPERAND) == leaf)
			sum = back_added(d->t, sum, back->result[j]);
	for (int32_t r = 0; r < d->f->n_known; r++) {
		bool is_leaf;

		if (straight(d, r, d->arm, &is_leaf) == i && is_leaf == leaf)
			sum = back_added(d->t, sum,
				cond_operand(d, OF_SEED, r,
					&d->f->out[r]->type));
	}
	return sum != NULL ? sum : back_zeros(d->t, &d->f->in[i]->type);
}

static void new_branch(deriving *d, int32_t k)
{
	const t_trace *body = d->g->body[k];
	t_call *back;

	back_begin(d, k);
	back = back_record(d, body, cond_read);
	for (int32_t i = 0; i < 2 * d->f->n_in; i++) {
		int32_t n;

		if (!d->wanted[i])
			continue;
		n = back_made(d, cond_given(d, body, back, i / 2, i % 2 != 0));
		if (k == 0)
			back_give(d, i / 2, i % 2 ? BACK_OLD_LEAF : BACK_OPERAND,
				(t_yield){YIELD_BODY, {n, n}},
				&d->f->in[i / 2]->type);
	}
	back_end(d);
}

void back_cond(deriving *d)
{
	for (int32_t k = 0; k < 2; k++)
		d->g->body[k] = t_trace_tracked(d->t, d->g->body[k]);
	d->d.kind = REGION_COND;
	(void)back_operand(d, OF_IN, 0);
	keep_middles(d);
	find_wanted(d);
	new_branch(d, 0);
	new_branch(d, 1);
}
