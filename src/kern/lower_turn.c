/*
 * lower_turn.c: lowers transpositions: reads along i, writes along j. Whole
 * squares are transposed in registers, the remainder is copied element by
 * element. If there is no remainder, no code is made for it, because C
 * compilers warn about unreachable loops.
 */
#include "kern/lower.h"

struct square {
	lowering *lw;
	const loop_node *n;
	struct place_of to, from;
	int32_t iv, jv;
	/* distances between rows of the destination and of the source */
	int64_t ri, step;
};

/* Transposes a square in registers; i + w <= ihi. */
static void whole_square(const struct square *q)
{
	lowering *lw = q->lw;
	int32_t w = q->n->lanes;
	kern_access to = kern_element(q->to.array, lw_element(lw, &q->to, 0));
	kern_access from = kern_element(
		q->from.array, lw_element(lw, &q->from, 0));

	for (int32_t b = 0; b < q->n->n_ahead; b++) {
		kern_val k = lw_for_lanes(lw, w);
		form at = lw_form(lw, q->n->ahead[b].at, 0);

		at = lw_add(lw, at,
			lw_scale(lw, lw_form_of(lw, k), q->step));
		kern_prefetch(lw->b, q->from.array, at, true);
		lw_close(lw);
	}
	kern_turn(lw->b, &to, q->ri, &from, q->step,
		kern_num(lw_stored(q->to.dtype), w), 1);
}

/* Copies element by element from i = `at` on, for all j of the tile. */
static void left_over(const struct square *q, form at, form end)
{
	lowering *lw = q->lw;
	form j = lw->var[q->jv];

	lw->var[q->iv] = lw_form_of(lw, lw_for(lw, at, lw->span[q->iv].hi));
	lw->var[q->jv] = lw_form_of(lw, lw_for(lw, j, end));
	lw_store_to(lw, q->to.array, lw_element(lw, &q->to, 0),
		lw_load_scalar(lw, &q->from, 0, NULL), 0);
	lw_close(lw);
	lw_close(lw);
	lw->var[q->jv] = j;
}

/* Lowers rows j .. j + w, or fewer at the end. */
static void rows(const struct square *q)
{
	lowering *lw = q->lw;
	const struct span *is = &lw->span[q->iv];
	int32_t w = q->n->lanes;
	form i = is->lo, end = lw_addc(lw, lw->var[q->jv], w);

	if (is->len < 0 || is->len >= w) {
		kern_stmt s = {.lo = i, .hi = is->hi, .step = w, .whole = true};
		kern_val after;

		lw->var[q->iv] = lw_form_of(
			lw, kern_for_as(lw->b, &s, &after));
		whole_square(q);
		lw_close(lw);
		i = lw_form_of(lw, after);
	}
	if (is->len < 0 || is->len % w != 0)
		left_over(q, i, end);
}

/* How far elements of the buffer are apart along the variable. */
static int64_t stride_of(const loop_buf *b, int32_t var)
{
	for (int32_t i = 0; i < b->n_vars; i++)
		if (b->var[i] == var)
			return b->stride[i];
	return 0;
}

static void find_strides(struct square *q, const expr *r)
{
	lowering *lw = q->lw;

	if (q->from.buf != NULL) {
		q->step = stride_of(q->from.buf, q->jv);
		if (stride_of(q->from.buf, q->iv) != 1)
			lw_bug(lw, "a tile to be transposed lies across", "");
	} else {
		ix_stride(r->form, q->jv, lw->k->var[q->jv].extent, &q->step);
	}
	q->ri = stride_of(q->to.buf, q->iv);
	if (stride_of(q->to.buf, q->jv) != 1)
		lw_bug(lw, "a transposed tile lies across", "");
}

/* All squares; at the end, fewer columns than a square has are copied one by one. */
static void columns(const struct square *q, const struct span *js)
{
	lowering *lw = q->lw;
	int32_t w = q->n->lanes;
	kern_stmt s = {.lo = js->lo, .hi = js->hi, .step = w};
	kern_stmt *c;

	lw->var[q->jv] = lw_form_of(lw, kern_for_as(lw->b, &s, NULL));
	if (js->len >= 0 && js->len % w == 0) {
		rows(q);
		lw_close(lw);
		return;
	}
	c = kern_if(lw->b,
		lw_inside(lw, lw_sub(lw, js->hi, lw->var[q->jv]), INT64_MIN, w).id, false);
	left_over(q, lw->span[q->iv].lo, js->hi);
	kern_else(lw->b, c);
	rows(q);
	lw_close(lw);
	lw_close(lw);
}

/* .. or in one more square, some of whose columns are copied again: it comes first, so
 * that a vector of columns which is read next was stored by one square. */
static void columns_again(const struct square *q, const struct span *js)
{
	lowering *lw = q->lw;
	int32_t w = q->n->lanes;
	kern_stmt s = {.lo = js->lo,
		.hi = lw_addc(lw, js->lo, js->len - js->len % w),
		.step = w};

	lw->var[q->jv] = lw_addc(lw, js->lo, js->len - w);
	rows(q);
	lw->var[q->jv] = lw_form_of(lw, kern_for_as(lw->b, &s, NULL));
	rows(q);
	lw_close(lw);
}

void lw_transpose(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	const expr *r = e->body[0];
	struct square q = {lw, n,
		lw_place_buf(lw, lw->k->buf_of[n->eqn][0], e->at),
		lw_place_tensor(
			lw, r->tensor, r->form, loop_param(lw->k, r->tensor) >= 0),
		n->var,
		n->row_var >= 0 ? n->row_var : n->up->var, 0, 0};
	struct span old = lw->span[q.jv], js;
	form vi = lw->var[q.iv], vj = lw->var[q.jv];
	int32_t w = n->lanes;

	find_strides(&q, r);
	lw_narrow_to_need(lw, n); /* all or nothing */
	js = lw->span[q.jv];
	js.len = old.len;
	if (n->n_needs == 0 && js.len > w && js.len % w != 0)
		columns_again(&q, &js);
	else
		columns(&q, &js);
	lw->span[q.jv] = old;
	lw->var[q.iv] = vi;
	lw->var[q.jv] = vj;
}
