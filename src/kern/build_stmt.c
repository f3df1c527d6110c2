/*
 * build_stmt.c: statements of a kernel, appended to the block that is open.
 */
#include "kern/local.h"

kern_builder kern_build(kern_kernel *k)
{
	kern_builder b = {.k = k};

	b.bucket = arena_array(k->a, int32_t, KERN_BUCKETS);
	memset(b.bucket, 0xff, KERN_BUCKETS * sizeof *b.bucket);
	return b;
}

void kern_open(kern_builder *b, kern_block *block)
{
	*vec_push(b->k->a, &b->block) = block;
	*vec_push(b->k->a, &b->mark) = b->known.n;
}

void kern_close(kern_builder *b)
{
	int32_t n = vec_pop(&b->mark);

	b->block.n--;
	while (b->known.n > n) {
		const struct kern_known *x = &vec_pop(&b->known);

		b->bucket[x->bucket] = x->before;
	}
}

void kern_open_phase(kern_builder *b, int64_t n_chunks, int32_t copies)
{
	kern_kernel *k = b->k;
	kern_phase *p;

	if (k->n_phases == KERN_MAX_PHASES)
		env_bug(arena_env(k->a), "kern", "%s: too many phases", k->name);
	p = &k->phase[k->n_phases++];
	*p = (kern_phase){
		.n_chunks = n_chunks, .warps = 1, .copies = copies};
	p->chunk = kern_ins(k,
		&(kern_value){.op = KERN_CHUNK, .type = kern_i64()});
	kern_open(b, &p->body);
}

kern_stmt *kern_add(kern_builder *b, kern_kind kind)
{
	kern_stmt *s = arena_make(b->k->a, kern_stmt);

	s->kind = kind;
	*vec_push(b->k->a, &b->block.at[b->block.n - 1]->list) = s;
	return s;
}

kern_val kern_var(kern_builder *b, kern_type t, kern_val x)
{
	kern_stmt *s = kern_add(b, KERN_VAR);

	s->v = kern_ins(b->k, &(kern_value){.op = KERN_REG, .type = t});
	s->x = x;
	return s->v;
}

kern_val kern_var_by_warp(kern_builder *b, kern_type t)
{
	kern_val v = kern_var(b, t, 0);
	kern_block *in = b->block.at[b->block.n - 1];

	in->list.at[in->list.n - 1]->by_warp = true;
	return v;
}

void kern_set(kern_builder *b, kern_val v, kern_val x)
{
	kern_stmt *s = kern_add(b, KERN_SET);

	s->v = v;
	s->x = x;
}

void kern_set_lane(
	kern_builder *b, kern_val v, const kern_form *lane, kern_val x)
{
	kern_stmt *s = kern_add(b, KERN_SET_LANE);

	s->v = v;
	s->lo = lane;
	s->x = x;
}

void kern_store(kern_builder *b, const kern_access *at, kern_val x, bool stream)
{
	kern_stmt *s = kern_add(b, KERN_STORE);

	s->at = *at;
	s->x = x;
	s->stream = stream;
	if (stream)
		b->k->array.at[at->array].streams = true;
}

kern_val kern_for_as(kern_builder *b, const kern_stmt *like, kern_val *after)
{
	kern_kernel *k = b->k;
	kern_stmt *s = kern_add(b, KERN_FOR);

	*s = *like;
	s->kind = KERN_FOR;
	if (s->type.lanes == 0)
		s->type = kern_i64();
	s->v = kern_ins(k, &(kern_value){.op = KERN_WALK, .type = s->type});
	if (after != NULL)
		s->after = *after = kern_ins(k,
			&(kern_value){.op = KERN_AFTER, .type = s->type});
	kern_open(b, &s->body);
	return s->v;
}

kern_val kern_for(kern_builder *b, const kern_form *lo, const kern_form *hi,
	int64_t step, tn_dtype t)
{
	kern_stmt s = {.lo = lo, .hi = hi, .step = step};

	s.type = kern_num(t, 1);
	return kern_for_as(b, &s, NULL);
}

kern_stmt *kern_if(kern_builder *b, kern_val c, bool rarely)
{
	kern_stmt *s = kern_add(b, KERN_IF);

	s->x = c;
	s->rarely = rarely;
	kern_open(b, &s->body);
	return s;
}

void kern_else(kern_builder *b, kern_stmt *s)
{
	kern_close(b);
	kern_open(b, &s->other);
}

void kern_scope(kern_builder *b)
{
	kern_stmt *s = kern_add(b, KERN_BLOCK);

	kern_open(b, &s->body);
}

int32_t kern_stack(kern_builder *b, tn_dtype t, int64_t elems, bool zero)
{
	kern_stmt *s = kern_add(b, KERN_ARRAY);

	s->array = kern_add_array(b->k, KERN_STACK, t, elems, 0);
	s->stream = zero;
	return s->array;
}

void kern_prefetch(kern_builder *b, int32_t array, const kern_form *at, bool far)
{
	kern_stmt *s = kern_add(b, KERN_PREFETCH);

	s->at = kern_element(array, at);
	s->far = far;
}

void kern_fence(kern_builder *b)
{
	kern_add(b, KERN_FENCE);
}

void kern_reload(kern_builder *b)
{
	kern_add(b, KERN_RELOAD);
}

void kern_note(kern_builder *b, const char *text)
{
	kern_add(b, KERN_NOTE)->text = text;
}

void kern_turn(kern_builder *b, const kern_access *to, int64_t n,
	const kern_access *from, int64_t m, kern_type square, int32_t unit)
{
	kern_stmt *s = kern_add(b, KERN_TURN);

	s->at = *to;
	s->n = n;
	s->from = *from;
	s->m = m;
	s->type = square;
	s->width = unit > 1 ? unit : 0;
}

void kern_async(kern_builder *b, const kern_stmt *like)
{
	kern_stmt *s = kern_add(b, KERN_ASYNC);

	*s = *like;
	s->kind = KERN_ASYNC;
}

void kern_commit(kern_builder *b)
{
	kern_add(b, KERN_COMMIT);
}

void kern_wait(kern_builder *b, int32_t groups)
{
	kern_add(b, KERN_WAIT)->groups = groups;
}

void kern_barrier(kern_builder *b)
{
	kern_add(b, KERN_BARRIER);
}

int32_t kern_accesses(const kern_stmt *s, kern_accessed out[KERN_MOST_ACCESSED])
{
	bool stores = s->kind == KERN_STORE || s->kind == KERN_TURN ||
		      s->kind == KERN_GIVE || s->kind == KERN_ASYNC;
	int32_t n = 0;

	if (stores || s->kind == KERN_PREFETCH)
		out[n++] = (kern_accessed){&s->at, false, stores};
	if (kern_multiplies(s) || s->kind == KERN_TAKE)
		out[n++] = (kern_accessed){&s->at, true, false};
	if (kern_multiplies(s) || s->kind == KERN_TURN || s->kind == KERN_ASYNC)
		out[n++] = (kern_accessed){&s->from, true, false};
	if (s->kind == KERN_TILES)
		out[n++] = (kern_accessed){&s->to, true, true};
	return n;
}

void kern_matrix(kern_builder *b, kern_kind kind, const kern_stmt *like)
{
	kern_stmt *s = kern_add(b, kind);

	*s = *like;
	s->kind = kind;
	s->acc = arena_copy(
		b->k->a, like->acc, (size_t)like->n_acc * sizeof *like->acc);
}
