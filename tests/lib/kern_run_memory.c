/*
 * kern_run_memory.c: the memory of the interpreter, poisoned and checked.
 *
 * Elements that are not written yet are NaN. Lanes of a vector may load them if
 * they are not used: those after the last column of a panel, or of another chunk.
 * A scalar load of them from scratch, which passes values between phases, is an
 * error. For each byte, it records whether it was written, and which chunks of the
 * phase wrote and read it, so that a race is an error in any order of chunks. The
 * same for the warps of a block since the last barrier.
 */
#include "kern_run_local.h"

#include <math.h>

void kern_run_fail(struct kern_running *r, const char *what, int32_t array,
	int64_t at)
{
	str s = str_new(r->a);

	kern_array_name(&s, r->k, array);
	env_fail(arena_env(r->a), TN_EINTERNAL, "kern.run",
		(loc){r->k->file, r->s != NULL ? r->s->line : 0,
			r->s != NULL ? r->s->column : 0},
		"%s: element %lld of %s %s, in chunk %d", r->k->name,
		(long long)at, s.at, what, r->chunk);
}

uint64_t kern_run_random(struct kern_running *r)
{
	r->seed += UINT64_C(0x9e3779b97f4a7c15);
	return (r->seed ^ r->seed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 20;
}

static void fill(struct kern_memory *m)
{
	memset(m->at, 0xff, (size_t)m->n); /* NaN */
	memset(m->set, 0, (size_t)m->n * sizeof *m->set);
}

static struct kern_memory make(struct kern_running *r, int64_t n, bool shared)
{
	struct kern_memory m = {.n = n};

	m.at = arena_array(r->a, uint8_t, n + 1);
	m.set = arena_array(r->a, bool, n + 1);
	m.by_warp = arena_array(r->a, struct kern_touched, n + 1);
	if (shared) {
		m.writer = arena_array(r->a, int32_t, n + 1);
		m.reader = arena_array(r->a, int32_t, n + 1);
	}
	fill(&m);
	return m;
}

void kern_run_room(struct kern_running *r, void *const *param)
{
	const kern_kernel *k = r->k;

	r->scratch = make(r, (int64_t)k->scratch_bytes, true);
	r->local = make(r, (int64_t)k->local_bytes, false);
	r->local.moves = arena_array(r->a, bool, r->local.n + 1);
	r->param = arena_array(r->a, struct kern_memory, k->array.n + 1);
	r->stack = arena_array(r->a, struct kern_memory, k->array.n + 1);
	for (int32_t i = 0; i < k->n_params; i++) {
		const kern_array *p = &k->array.at[i];
		int64_t n = p->elems * (int64_t)dtype_size(p->dtype);
		struct kern_memory m = {.at = param[i], .n = n};

		m.by_warp = arena_array(r->a, struct kern_touched, n + 1);
		m.writer = arena_array(r->a, int32_t, n + 1);
		m.reader = arena_array(r->a, int32_t, n + 1);
		if (p->out && p->in == 0 && !k->shared) {
			m.set = arena_array(r->a, bool, n + 1);
			fill(&m);
		}
		r->param[i] = m;
	}
	/* a param `inside` another: the caller may pass separate memory */
	for (int32_t i = 0; i < k->n_params; i++) {
		int32_t in = k->array.at[i].in;

		if (in > 0 && param[i] == param[in - 1])
			r->param[i] = r->param[in - 1];
	}
}

static void forget(struct kern_memory *m)
{
	memset(m->writer, 0, (size_t)m->n * sizeof *m->writer);
	memset(m->reader, 0, (size_t)m->n * sizeof *m->reader);
}

void kern_run_phase(struct kern_running *r)
{
	forget(&r->scratch);
	for (int32_t i = 0; i < r->k->n_params; i++)
		forget(&r->param[i]);
}

void kern_run_poison(struct kern_running *r)
{
	fill(&r->local);
}

void kern_run_stack(struct kern_running *r, int32_t array, bool zero)
{
	const kern_array *t = &r->k->array.at[array];
	int64_t n = t->elems * (int64_t)dtype_size(t->dtype);

	if (r->stack[array].at == NULL)
		r->stack[array] = make(r, n, false);
	fill(&r->stack[array]);
	if (zero) {
		memset(r->stack[array].at, 0, (size_t)n);
		memset(r->stack[array].set, 1, (size_t)n * sizeof(bool));
	}
}

static struct kern_memory *memory_of(
	struct kern_running *r, int32_t array, int64_t *base)
{
	const kern_array *t = &r->k->array.at[array];

	*base = t->offset;
	switch (t->space) {
	case KERN_PARAM:
		return &r->param[array];
	case KERN_SCRATCH:
		return &r->scratch;
	case KERN_LOCAL:
		return &r->local;
	case KERN_STACK:
		return &r->stack[array];
	}
	return NULL;
}

ir_number kern_run_nothing(tn_dtype t)
{
	ir_number v = {0};

	if (dtype_is_float(t))
		v.f = (double)NAN;
	else
		v.i = ir_wrap(t, INT64_C(0x5a5a5a5a5a5a5a5a));
	return v;
}

/* Its first byte; checks the index. */
static int64_t byte_of(struct kern_running *r, struct kern_memory **m,
	int32_t array, int64_t i)
{
	const kern_array *t = &r->k->array.at[array];
	int64_t size = (int64_t)dtype_size(t->dtype), base;

	*m = memory_of(r, array, &base);
	if (i < 0 || i >= t->elems || base + (i + 1) * size > (*m)->n)
		kern_run_fail(r, "is outside the array", array, i);
	return base + i * size;
}

void kern_run_reach(struct kern_running *r, int32_t array, int64_t i)
{
	struct kern_memory *m;

	(void)byte_of(r, &m, array, i);
}

/* Has another warp written it since the last barrier, or (write) read it? */
static bool changes_hands(
	const struct kern_running *r, const struct kern_touched *t, bool write)
{
	return (t->written == r->barrier && t->writer != r->warp) ||
	       (write && t->read == r->barrier && t->reader != r->warp);
}

/* Is memory of this array common to the warps of a block? */
static bool is_common(const struct kern_running *r, int32_t array)
{
	return r->warps > 1 && r->k->array.at[array].space != KERN_STACK;
}

static void note_warp(struct kern_running *r, struct kern_memory *m,
	int32_t array, int64_t i, int64_t b, bool write)
{
	struct kern_touched *t = &m->by_warp[b];

	if (!is_common(r, array))
		return;
	if (changes_hands(r, t, write))
		kern_run_fail(r, "changes hands between warps without a barrier",
			array, i);
	if (write) {
		t->written = r->barrier;
		t->writer = r->warp;
		return;
	}
	t->reader = t->read == r->barrier && t->reader != r->warp ? -1 : r->warp;
	t->read = r->barrier;
}

static bool is_moving(const struct kern_memory *m, int64_t b)
{
	return m->moves != NULL && m->moves[b];
}

void kern_run_move(struct kern_running *r, int32_t array, int64_t i, bool moves)
{
	struct kern_memory *m;
	int64_t b = byte_of(r, &m, array, i);

	for (size_t j = 0; j < dtype_size(r->k->array.at[array].dtype); j++) {
		if (moves && m->moves[b + (int64_t)j])
			kern_run_fail(r, "is copied twice", array, i);
		m->moves[b + (int64_t)j] = moves;
		m->set[b + (int64_t)j] = false;
		m->at[b + (int64_t)j] = 0xff;
		note_warp(r, m, array, i, b + (int64_t)j, true);
	}
}

ir_number kern_run_get(
	struct kern_running *r, int32_t array, int64_t i, bool alone)
{
	tn_dtype t = kern_stored(r->k->array.at[array].dtype);
	struct kern_memory *m;
	int64_t b = byte_of(r, &m, array, i);
	ir_number v = {0};

	for (int64_t j = b; j < b + (int64_t)dtype_size(t); j++) {
		if (is_moving(m, j))
			kern_run_fail(r, "is read before the wait for its copy",
				array, i);
		if (alone)
			note_warp(r, m, array, i, j, false);
		else if (is_common(r, array) &&
			 changes_hands(r, &m->by_warp[j], false))
			return kern_run_nothing(t);
		if (alone && m->set != NULL && !m->set[j] && m == &r->scratch)
			kern_run_fail(r, "is read before it is written", array,
				i);
		if (m->writer == NULL)
			continue;
		if (m->writer[j] != 0 && m->writer[j] != r->chunk + 1) {
			if (!alone)
				return kern_run_nothing(t);
			kern_run_fail(r, "is written by another chunk", array,
				i);
		}
		if (!alone)
			continue;
		/* -1: two or more readers */
		m->reader[j] = m->reader[j] == 0 ||
					       m->reader[j] == r->chunk + 1
				       ? r->chunk + 1
				       : -1;
	}
	if (dtype_is_float(t))
		v.f = dtype_load_f64(t, m->at + b, 0);
	else
		v.i = dtype_load_i64(t, m->at + b, 0);
	return v;
}

void kern_run_put(
	struct kern_running *r, int32_t array, int64_t i, ir_number v)
{
	tn_dtype t = kern_stored(r->k->array.at[array].dtype);
	struct kern_memory *m;
	int64_t b = byte_of(r, &m, array, i);

	for (int64_t j = b; j < b + (int64_t)dtype_size(t); j++) {
		if (is_moving(m, j))
			kern_run_fail(r, "is written before the wait for its copy",
				array, i);
		note_warp(r, m, array, i, j, true);
		if (m->set != NULL)
			m->set[j] = true;
		if (m->writer == NULL)
			continue;
		if ((m->writer[j] != 0 && m->writer[j] != r->chunk + 1) ||
			(m->reader[j] != 0 && m->reader[j] != r->chunk + 1))
			kern_run_fail(r, "is read or written by another chunk",
				array, i);
		m->writer[j] = r->chunk + 1;
	}
	if (dtype_is_float(t))
		dtype_store_f64(t, m->at + b, 0, v.f);
	else
		dtype_store_i64(t, m->at + b, 0, v.i);
}
