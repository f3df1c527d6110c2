/*
 * kern_run.c: a slow interpreter, with which passes and printers are compared.
 *
 * Chunks of a phase run in a random order, memory is poisoned at first, and each
 * access is checked. An element outside its array, not written yet, or accessed by
 * another chunk of the phase is an error kern.run, with the line if the kernel has
 * a text. So is one that another warp of the block has accessed since the last
 * barrier, if one of the two writes.
 */
#include "kern_run_local.h"

#include <math.h>

static void block(struct kern_running *r, const kern_block *b);

static void set_integer(struct kern_running *r, kern_val v, int64_t i)
{
	r->cell[r->first[v]].i = i;
}

static void shuffle(struct kern_running *r, int32_t *order, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		order[i] = (int32_t)i;
	for (int64_t i = n - 1; i > 0; i--) {
		int64_t j = (int64_t)(kern_run_random(r) % (uint64_t)(i + 1));
		int32_t t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

/* Runs the iterations of one warp after another, in a random order. */
static void by_warp(struct kern_running *r, const kern_stmt *s)
{
	int64_t lo = kern_run_form(r, s->lo), hi = kern_run_form(r, s->hi);
	int32_t order[KERN_MAX_WARPS];

	shuffle(r, order, r->warps);
	for (int32_t w = 0; w < r->warps; w++) {
		r->warp = order[w] + 1;
		for (int64_t i = lo + order[w] * s->step;
			s->whole ? i + s->step <= hi : i < hi;
			i += r->warps * s->step) {
			set_integer(r, s->v, i);
			block(r, &s->body);
		}
	}
	r->warp = 0;
}

/* Runs the iterations of the lanes in a random order. */
static void by_lane(struct kern_running *r, const kern_stmt *s)
{
	int64_t n = kern_run_form(r, s->hi);
	int32_t order[KERN_MAX_LANES];

	shuffle(r, order, n);
	for (int64_t i = 0; i < n; i++) {
		set_integer(r, s->v, order[i]);
		block(r, &s->body);
	}
}

static void loop(struct kern_running *r, const kern_stmt *s)
{
	int64_t lo = kern_run_form(r, s->lo), hi = kern_run_form(r, s->hi), i;

	if (s->by_warp) {
		by_warp(r, s);
		return;
	}
	if (s->by_lane) {
		by_lane(r, s);
		return;
	}
	if (s->down) {
		for (i = hi - 1; i >= lo; i--) {
			set_integer(r, s->v, i);
			block(r, &s->body);
		}
		return;
	}
	for (i = lo; s->whole ? i + s->step <= hi : i < hi; i += s->step) {
		set_integer(r, s->v, i);
		block(r, &s->body);
	}
	if (s->after != 0)
		set_integer(r, s->after, i);
}

static int32_t lanes_of(const struct kern_running *r, kern_val v)
{
	return kern_at(r->k, v)->type.lanes;
}

static void set(struct kern_running *r, const kern_stmt *s)
{
	ir_number out[KERN_MAX_LANES], zero[KERN_MAX_LANES] = {{0}};
	const ir_number *x = s->x != 0 ? kern_run_value(r, s->x, out) : zero;
	ir_number *to = kern_run_lanes(r, s->v);
	int32_t n = lanes_of(r, s->v);

	if (s->kind == KERN_SET_LANE)
		to[kern_run_form(r, s->lo)] = x[0];
	else
		memmove(to, x, (size_t)n * sizeof *to);
	for (int32_t w = 1; s->kind == KERN_VAR && s->by_warp && w < r->warps; w++)
		memcpy(to + w * n, to, (size_t)n * sizeof *to);
}

static void store(struct kern_running *r, const kern_stmt *s)
{
	ir_number out[KERN_MAX_LANES];
	const ir_number *x = kern_run_value(r, s->x, out);
	int64_t at = kern_run_form(r, s->at.at);
	int32_t n = s->at.part > 0 ? s->at.part : lanes_of(r, s->x);
	kern_val m = s->at.mask;
	int32_t each = m != 0 && lanes_of(r, m) > 1;

	for (int32_t l = 0; l < n; l++)
		if (m == 0 || r->cell[r->first[m] + each * l].i != 0)
			kern_run_put(r, s->at.array, at + s->at.stride * l,
				x[l]);
}

static void turn(struct kern_running *r, const kern_stmt *s)
{
	int64_t to = kern_run_form(r, s->at.at), side = s->type.lanes;
	int64_t from = kern_run_form(r, s->from.at);
	int64_t unit = kern_turn_unit(s), width = side * unit;
	ir_number *all = arena_array(r->a, ir_number, side * width);

	for (int64_t j = 0; j < side; j++)
		for (int64_t i = 0; i < width; i++)
			all[i / unit * width + j * unit + i % unit] =
				kern_run_get(r, s->from.array,
					from + j * s->m + i, true);
	for (int64_t i = 0; i < side; i++)
		for (int64_t j = 0; j < width; j++)
			kern_run_put(r, s->at.array, to + i * s->n + j,
				all[i * width + j]);
}

/* Row i, column j of the sums: see kern_stmt. */
static ir_number *sum_at(
	struct kern_running *r, const kern_stmt *s, int32_t i, int32_t j)
{
	kern_val v = s->acc[j / 8 * 4 + i / 8 * 2 + j % 2];

	return kern_run_lanes(r, v) + i % 8 * 4 + j % 8 / 2;
}

static void multiply(struct kern_running *r, const kern_stmt *s)
{
	int64_t x = kern_run_form(r, s->at.at), y = kern_run_form(r, s->from.at);

	for (int32_t i = 0; i < kern_part_rows(s); i++)
		for (int32_t j = 0; j < kern_part_columns(s); j++) {
			ir_number *sum = sum_at(r, s, i, j);

			for (int32_t k = 0; k < kern_part_terms(s); k++) {
				int64_t ik = s->at_turned ? k * s->n + i
							  : i * s->n + k;
				int64_t kj = s->from_turned ? j * s->m + k
							    : k * s->m + j;
				ir_number a = kern_run_get(
					r, s->at.array, x + ik, true);
				ir_number b = kern_run_get(
					r, s->from.array, y + kj, true);

				if (dtype_is_int(s->type.dt))
					sum->i = ir_wrap(TN_I32, sum->i + a.i * b.i);
				else
					sum->f = fmaf((float)a.f, (float)b.f,
						(float)sum->f);
			}
		}
}

static float flushed(float x)
{
	return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

/* Adds the terms of one column of a row: see kern_stmt. */
static void add_terms(struct kern_running *r, const kern_stmt *s, int32_t each,
	int64_t x, int64_t y, ir_number *sum)
{
	int32_t at_once = each * KERN_TILE_ROWS;

	for (int32_t first = 0; first < s->terms; first += at_once) {
		float two[2] = {0, 0};

		for (int32_t k = first; k < s->terms && k < first + at_once; k++) {
			ir_number a = kern_run_get(r, s->at.array, x + k, true);
			ir_number b = kern_run_get(r, s->from.array,
				y + k / each * s->m + k % each, true);
			float *f = &two[k % 2];

			if (each == 4)
				sum->i = ir_wrap(TN_I32, sum->i + a.i * b.i);
			else
				*f = flushed(fmaf(flushed((float)a.f),
					flushed((float)b.f), *f));
		}
		if (each == 2)
			sum->f = flushed(flushed((float)sum->f) +
					 flushed(two[0] + two[1]));
	}
}

static void tiles(struct kern_running *r, const kern_stmt *s)
{
	int64_t x = kern_run_form(r, s->at.at), y = kern_run_form(r, s->from.at);
	int32_t each = kern_tile_terms(r->k->array.at[s->at.array].dtype,
		r->k->array.at[s->from.array].dtype);
	int64_t to = kern_run_form(r, s->to.at);
	ir_number out[KERN_MAX_LANES];
	bool begins = s->x != 0 && kern_run_value(r, s->x, out)[0].i != 0;

	for (int32_t i = 0; i < s->rows * s->width; i++) {
		int32_t row = i / s->width, column = i % s->width;
		int64_t at = to + row * s->l + column;
		ir_number sum = {0};

		if (!begins)
			sum = kern_run_get(r, s->to.array, at, true);
		add_terms(r, s, each, x + row * s->n, y + column * each, &sum);
		kern_run_put(r, s->to.array, at, sum);
	}
}

static void move_sums(struct kern_running *r, const kern_stmt *s)
{
	int64_t at = kern_run_form(r, s->at.at);

	for (int32_t i = 0; i < kern_part_rows(s); i++)
		for (int32_t j = 0; j < kern_part_columns(s); j++) {
			ir_number *sum = sum_at(r, s, i, j);

			if (s->kind == KERN_GIVE)
				kern_run_put(r, s->at.array, at + i * s->n + j,
					*sum);
			else
				*sum = kern_run_get(r, s->at.array,
					at + i * s->n + j, true);
		}
}

static void async(struct kern_running *r, const kern_stmt *s)
{
	int64_t to = kern_run_form(r, s->at.at), from = kern_run_form(r, s->from.at);

	for (int32_t i = 0; i < s->rows; i++)
		for (int32_t j = 0; j < s->width; j++) {
			struct kern_moving *m = vec_push(r->a, &r->moving);

			*m = (struct kern_moving){s, to + i * s->n + j,
				from + i * s->m + j, r->warp, r->group};
			kern_run_reach(r, s->from.array, m->from);
			kern_run_move(r, s->at.array, m->to, true);
		}
}

/* The copies of all groups but the last `groups` end, each by its warp. */
static void wait(struct kern_running *r, int32_t groups)
{
	int32_t n = 0;

	for (int32_t i = 0; i < r->moving.n; i++) {
		struct kern_moving m = r->moving.at[i];

		if (r->group - m.group <= groups) {
			r->moving.at[n++] = m;
			continue;
		}
		r->warp = m.warp;
		kern_run_move(r, m.s->at.array, m.to, false);
		kern_run_put(r, m.s->at.array, m.to,
			kern_run_get(r, m.s->from.array, m.from, true));
	}
	r->warp = 0;
	r->moving.n = n;
}

static void condition(struct kern_running *r, const kern_stmt *s)
{
	ir_number out[KERN_MAX_LANES];

	block(r, kern_run_value(r, s->x, out)[0].i != 0 ? &s->body : &s->other);
}

static void statement(struct kern_running *r, const kern_stmt *s)
{
	r->s = s;
	switch (s->kind) {
	case KERN_LET:
		kern_run_define(r, s->v);
		break;
	case KERN_VAR:
	case KERN_SET:
	case KERN_SET_LANE:
		set(r, s);
		break;
	case KERN_STORE:
		store(r, s);
		break;
	case KERN_FOR:
		loop(r, s);
		break;
	case KERN_IF:
		condition(r, s);
		break;
	case KERN_BLOCK:
		block(r, &s->body);
		break;
	case KERN_ARRAY:
		kern_run_stack(r, s->array, s->stream);
		break;
	case KERN_TURN:
		turn(r, s);
		break;
	case KERN_MMA:
		multiply(r, s);
		break;
	case KERN_TILES:
		tiles(r, s);
		break;
	case KERN_TAKE:
	case KERN_GIVE:
		move_sums(r, s);
		break;
	case KERN_ASYNC:
		async(r, s);
		break;
	case KERN_COMMIT:
		r->group++;
		break;
	case KERN_WAIT:
		wait(r, s->groups);
		break;
	case KERN_BARRIER:
		r->barrier++;
		break;
	case KERN_PREFETCH:
	case KERN_FENCE:
	case KERN_RELOAD:
	case KERN_NOTE:
		break;
	}
}

static void block(struct kern_running *r, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++)
		statement(r, b->list.at[i]);
}

/* Runs each chunk once, in a random order. */
static void phase(struct kern_running *r, const kern_phase *p)
{
	int64_t n = p->n_chunks;
	int32_t *order = arena_array(r->a, int32_t, n);

	kern_run_phase(r);
	r->warps = p->warps;
	shuffle(r, order, n);
	for (int64_t i = 0; i < n; i++) {
		r->chunk = order[i];
		r->barrier++;
		set_integer(r, p->chunk, order[i]);
		kern_run_poison(r);
		block(r, &p->body);
		if (r->moving.n > 0)
			kern_run_fail(r, "is copied still when its chunk ends",
				r->moving.at[0].s->at.array,
				r->moving.at[0].to);
	}
}

static void find_named(struct kern_running *r, const kern_block *b)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];

		if (s->kind == KERN_LET)
			r->named[s->v] = true;
		if (s->kind == KERN_VAR)
			r->own[s->v] = s->by_warp;
		find_named(r, &s->body);
		find_named(r, &s->other);
	}
}

static void make_cells(struct kern_running *r)
{
	const kern_kernel *k = r->k;
	int64_t n = 0;

	r->first = arena_array(r->a, int64_t, k->value.n);
	r->named = arena_array(r->a, bool, k->value.n);
	r->own = arena_array(r->a, bool, k->value.n);
	for (int32_t i = 0; i < k->n_phases; i++)
		find_named(r, &k->phase[i].body);
	for (int32_t i = 0; i < k->value.n; i++) {
		const kern_value *x = kern_at(k, i);

		r->first[i] = n;
		r->named[i] |= strchr(kern_op_at(x->op)->flags, 'd') != NULL;
		n += i == 0 ? 0 : x->type.lanes * (r->own[i] ? KERN_MAX_WARPS : 1);
	}
	r->cell = arena_array(r->a, ir_number, n + 1);
	for (int32_t i = 1; i < k->value.n; i++) {
		const kern_value *x = kern_at(k, i);

		if (x->op != KERN_CONST)
			continue;
		if (dtype_is_float(x->type.dt))
			r->cell[r->first[i]].f = x->c.f;
		else
			r->cell[r->first[i]].i = x->c.i;
	}
}

int64_t kern_run(arena *a, kern_kernel *k, void *const *param, uint64_t seed)
{
	struct kern_running r = {.k = k, .a = arena_child(a), .seed = seed};
	int64_t err;

	make_cells(&r);
	kern_run_room(&r, param);
	for (int32_t i = 0; i < k->n_phases; i++)
		phase(&r, &k->phase[i]);
	err = r.err;
	arena_free(r.a);
	return err;
}
